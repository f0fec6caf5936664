//! The barrier between set-up and load: workers report ready, and all get the same start.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use brunt_measure::{SetUp, Window};

/// The instants that all workers share, published once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Start {
    /// Load begins: the start of the warm-up.
    pub(crate) load_ns: u64,
    /// The window; its end is `u64::MAX` for a run by count alone.
    pub(crate) window: Window,
}

/// Where workers wait for the start.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ready: u32,
    set_up: SetUp,
    /// `Some(None)`: there will be no start.
    start: Option<Option<Start>>,
}

impl Gate {
    /// Reports one worker ready, whose set-up came to `set_up`, and waits for the start. None when
    /// there will be none.
    pub(crate) fn ready_and_wait(&self, set_up: &SetUp) -> Option<Start> {
        let mut state = self.lock();
        state.ready += 1;
        state.set_up.merge(set_up);
        self.changed.notify_all();
        loop {
            if let Some(start) = state.start {
                return start;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Counts one worker as ready that will never come.
    pub(crate) fn excuse(&self) {
        self.lock().ready += 1;
        self.changed.notify_all();
    }

    /// What the set-up of all workers that are ready came to.
    pub(crate) fn set_up(&self) -> SetUp {
        self.lock().set_up.clone()
    }

    /// Waits a little for all of `workers` to be ready, and says whether they are.
    pub(crate) fn all_ready(&self, workers: u32, patience: Duration) -> bool {
        let state = self.lock();
        let (state, _) = self
            .changed
            .wait_timeout_while(state, patience, |state| state.ready < workers)
            .unwrap_or_else(PoisonError::into_inner);
        state.ready >= workers
    }

    /// Publishes the start, or that there will be none.
    pub(crate) fn open(&self, start: Option<Start>) {
        self.lock().start = Some(start);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
