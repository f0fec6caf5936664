//! What the states of a script have in common: addresses, what was decided of threads, and the
//! outcome of the run.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::distribution::Distribution;
use crate::error::ScriptError;
use crate::lua::State;

/// Most different addresses that one script can have.
const ADDRESSES_MAX: usize = 4_096;

/// The figures of a run that `done` is called with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Counts.
    pub summary: Summary,
    /// Microseconds of each batch of requests.
    pub latency: Distribution,
    /// Requests a second: one value per worker and 100 ms.
    pub requests: Distribution,
}

/// The counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Length of the run, microseconds.
    pub duration_us: u64,
    /// Complete responses of any status.
    pub requests: u64,
    /// Bytes of responses, after decryption.
    pub bytes: u64,
    /// Connections that could not be made.
    pub connect_errors: u64,
    /// Connections that failed while something was read.
    pub read_errors: u64,
    /// Connections that failed while something was sent.
    pub write_errors: u64,
    /// Responses with a status of 400 or more.
    pub status_errors: u64,
    /// Requests that took too long.
    pub timeouts: u64,
}

/// What the states of a script have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    threads: Vec<Thread>,
    addresses: Mutex<Vec<SocketAddr>>,
    outcome: Mutex<Option<Outcome>>,
    failure: Mutex<Option<ScriptError>>,
    target: Mutex<Option<SocketAddr>>,
    /// What took a connection last.
    connected: Mutex<Option<SocketAddr>>,
    /// Why the last address that did not take a connection did not.
    connect_error: Mutex<Option<String>>,
}

/// A thread of the script's: a worker.
#[derive(Debug, Default)]
struct Thread {
    /// The Lua state of the thread; absent while its worker has it.
    state: Mutex<Option<State>>,
    is_stopped: AtomicBool,
    /// Where its connections go: a place in the addresses.
    address: Mutex<Option<usize>>,
}

impl Shared {
    pub(crate) fn new(threads: usize) -> Self {
        Self {
            threads: (0..threads).map(|_| Thread::default()).collect(),
            addresses: Mutex::default(),
            outcome: Mutex::default(),
            failure: Mutex::default(),
            target: Mutex::default(),
            connected: Mutex::default(),
            connect_error: Mutex::default(),
        }
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// The state of a thread, or the place for it.
    pub(crate) fn state(&self, thread: usize) -> Option<MutexGuard<'_, Option<State>>> {
        self.threads.get(thread).map(|thread| lock(&thread.state))
    }

    /// The number of an address, which may be new; absent where there are too many.
    pub(crate) fn address_id(&self, address: SocketAddr) -> Option<usize> {
        let mut addresses = lock(&self.addresses);
        if let Some(id) = addresses.iter().position(|known| *known == address) {
            return Some(id);
        }
        if addresses.len() >= ADDRESSES_MAX {
            return None;
        }
        addresses.push(address);
        Some(addresses.len() - 1)
    }

    /// The address with this number.
    pub(crate) fn address(&self, id: usize) -> Option<SocketAddr> {
        lock(&self.addresses).get(id).copied()
    }

    /// The number of the address that a thread connects to.
    pub(crate) fn thread_address(&self, thread: usize) -> Option<usize> {
        *lock(&self.threads.get(thread)?.address)
    }

    pub(crate) fn set_thread_address(&self, thread: usize, id: usize) {
        if let Some(thread) = self.threads.get(thread) {
            *lock(&thread.address) = Some(id);
        }
    }

    /// Where the target is by its own name: what threads connect to that choose no address.
    pub(crate) fn address_of_target(&self) -> Option<SocketAddr> {
        *lock(&self.target)
    }

    /// What took a connection last is the target: wrk tries its addresses from the last to the
    /// first.
    pub(crate) fn note_target(&self) {
        *lock(&self.target) = *lock(&self.connected);
    }

    pub(crate) fn stop(&self, thread: usize) {
        if let Some(thread) = self.threads.get(thread) {
            thread.is_stopped.store(true, Ordering::Relaxed);
        }
    }

    /// What was stopped before a run runs nevertheless, as in wrk.
    pub(crate) fn start_all(&self) {
        for thread in &self.threads {
            thread.is_stopped.store(false, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_stopped(&self, thread: usize) -> bool {
        let thread = self.threads.get(thread);
        thread.is_some_and(|thread| thread.is_stopped.load(Ordering::Relaxed))
    }

    pub(crate) fn outcome(&self) -> MutexGuard<'_, Option<Outcome>> {
        lock(&self.outcome)
    }

    /// Keeps why a call into the script is about to fail, where Lua would only have words for it.
    pub(crate) fn note_failure(&self, error: ScriptError) {
        *lock(&self.failure) = Some(error);
    }

    pub(crate) fn note_connected(&self, address: SocketAddr) {
        *lock(&self.connected) = Some(address);
    }

    pub(crate) fn note_connect_error(&self, error: &io::Error) {
        let text = error.to_string();
        // Without the number that Rust adds to the system's words.
        let words = text.split(" (os error").next().unwrap_or_default();
        *lock(&self.connect_error) = Some(words.to_owned());
    }

    pub(crate) fn take_connect_error(&self) -> Option<String> {
        lock(&self.connect_error).take()
    }

    pub(crate) fn take_failure(&self) -> Option<ScriptError> {
        lock(&self.failure).take()
    }
}

/// Locks whatever happened to others that had it locked: what is kept here is whole at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
