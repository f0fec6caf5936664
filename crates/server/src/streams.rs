//! The streams in flight on a connection of HTTP/2 or HTTP/3: where each is, which of them have
//! something to send now, and which later.

use std::collections::{BTreeMap, VecDeque};

use crate::answer::Body;
use crate::counters::WorkerCounters;
use crate::raw::RawAnswer;
use crate::worker::Wakes;

/// Where a stream is. `I` is a request that is still coming.
#[derive(Debug)]
pub(crate) enum StreamState<I> {
    Incoming(I),
    /// The null answer is due at this instant.
    Waiting {
        at_ns: u64,
    },
    Body(Body),
    /// Nothing follows what was appended.
    Ending,
    /// A reset follows when what was written has been sent.
    Resetting,
    /// The rest of a raw answer that has no end.
    Endless(&'static RawAnswer),
    /// Nothing, until the client gives it up.
    Silence,
}

/// What a stream has after a step.
pub(crate) enum More {
    /// The stream has more to send at once.
    Now,
    /// The stream has more to send from this instant on.
    At(u64),
    /// The stream has more to send when something happens.
    Later,
    Nothing,
}

/// A stream. `O` is what its protocol knows of what it sends.
#[derive(Debug)]
pub(crate) struct Stream<I, O> {
    pub(crate) state: StreamState<I>,
    pub(crate) out: O,
    kept_bytes: usize,
    is_ready: bool,
    /// When the stream goes on, if it waits for that instant.
    wake_ns: Option<u64>,
}

/// The streams of one connection, by their numbers.
#[derive(Debug)]
pub(crate) struct StreamTable<N, I, O> {
    by_number: BTreeMap<N, Stream<I, O>>,
    /// Streams that have something to send and, as far as they know, a window for it.
    ready: VecDeque<N>,
    wakes: Wakes<N>,
    /// Bytes of memory that they keep beside themselves.
    kept_bytes: usize,
}

impl<N, I, O> Default for StreamTable<N, I, O> {
    fn default() -> Self {
        Self {
            by_number: BTreeMap::new(),
            ready: VecDeque::new(),
            wakes: Wakes::default(),
            kept_bytes: 0,
        }
    }
}

impl<N: Copy + Ord, I, O> StreamTable<N, I, O> {
    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    pub(crate) fn contains(&self, number: N) -> bool {
        self.by_number.contains_key(&number)
    }

    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// When the next stream wants to go on, if it waits for nothing else.
    pub(crate) fn wake_ns(&self) -> Option<u64> {
        self.wakes.first_ns()
    }

    /// Whether one has something to send now.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    pub(crate) fn get(&mut self, number: N) -> Option<&mut Stream<I, O>> {
        self.by_number.get_mut(&number)
    }

    /// The request of this stream, if it is not complete.
    pub(crate) fn incoming(&mut self, number: N) -> Option<&mut I> {
        match &mut self.get(number)?.state {
            StreamState::Incoming(incoming) => Some(incoming),
            _ => None,
        }
    }

    /// Has a stream go on in another state; one that is new begins with `out`.
    pub(crate) fn set(&mut self, number: N, state: StreamState<I>, out: impl FnOnce() -> O) {
        let stream = self.by_number.entry(number).or_insert_with(|| Stream {
            state: StreamState::Silence,
            out: out(),
            kept_bytes: 0,
            is_ready: false,
            wake_ns: None,
        });
        self.kept_bytes -= std::mem::take(&mut stream.kept_bytes);
        if let StreamState::Waiting { at_ns } = state {
            self.wakes.plan(number, &mut stream.wake_ns, Some(at_ns));
        }
        let has_more = matches!(
            state,
            StreamState::Body(_) | StreamState::Endless(_) | StreamState::Ending
        );
        stream.state = state;
        if has_more {
            self.go_on(number);
        }
    }

    /// Notes what a stream keeps beside itself.
    pub(crate) fn keep(&mut self, number: N, kept_bytes: usize) {
        if let Some(stream) = self.by_number.get_mut(&number) {
            let before_bytes = std::mem::replace(&mut stream.kept_bytes, kept_bytes);
            self.kept_bytes = self.kept_bytes - before_bytes + kept_bytes;
        }
    }

    /// A stream has something to send now, as far as is known.
    pub(crate) fn go_on(&mut self, number: N) {
        if let Some(stream) = self.by_number.get_mut(&number)
            && !std::mem::replace(&mut stream.is_ready, true)
        {
            self.ready.push_back(number);
        }
    }

    /// Visits all of them; those for which `visit` says so go on.
    pub(crate) fn visit<E>(
        &mut self,
        mut visit: impl FnMut(&mut Stream<I, O>) -> Result<bool, E>,
    ) -> Result<(), E> {
        for (&number, stream) in &mut self.by_number {
            if visit(stream)? && !std::mem::replace(&mut stream.is_ready, true) {
                self.ready.push_back(number);
            }
        }
        Ok(())
    }

    /// The next one that waited for an instant which has come by `now_ns`.
    pub(crate) fn next_due(&mut self, now_ns: u64) -> Option<(N, &mut Stream<I, O>)> {
        let number = self.wakes.next(now_ns)?;
        let stream = self.by_number.get_mut(&number)?;
        stream.wake_ns = None;
        Some((number, stream))
    }

    /// The next one that has something to send now. [`Self::after`] is told what more it has.
    pub(crate) fn next_ready(&mut self) -> Option<(N, &mut Stream<I, O>)> {
        let number = self.ready.pop_front()?;
        let stream = self.by_number.get_mut(&number)?;
        stream.is_ready = false;
        Some((number, stream))
    }

    /// Has a stream go on after a step; whether it ended.
    pub(crate) fn after(&mut self, number: N, more: More) -> bool {
        match more {
            More::Now => self.go_on(number),
            More::At(at_ns) => {
                if let Some(stream) = self.by_number.get_mut(&number) {
                    self.wakes.plan(number, &mut stream.wake_ns, Some(at_ns));
                }
            }
            More::Later => {}
            More::Nothing => {
                self.end(number);
                return true;
            }
        }
        false
    }

    /// Ends a stream; whether there was one, and an answer was still due on it.
    pub(crate) fn end(&mut self, number: N) -> Option<bool> {
        let mut stream = self.by_number.remove(&number)?;
        self.kept_bytes -= stream.kept_bytes;
        if stream.is_ready {
            self.ready.retain(|other| *other != number);
        }
        self.wakes.plan(number, &mut stream.wake_ns, None);
        Some(matches!(stream.state, StreamState::Waiting { .. }))
    }

    /// Ends a stream that the client gave up; whether there was one.
    pub(crate) fn cancel(&mut self, number: N, counters: &WorkerCounters) -> bool {
        let Some(was_due) = self.end(number) else {
            return false;
        };
        counters.streams_cancelled.add(1);
        counters.requests_abandoned.add(u64::from(was_due));
        true
    }

    /// Ends those from this one on, which a GOAWAY names as not processed. `end` learns of each.
    pub(crate) fn ignore_from(
        &mut self,
        from: N,
        counters: &WorkerCounters,
        mut end: impl FnMut(N),
    ) {
        while let Some((&number, _)) = self.by_number.last_key_value()
            && number >= from
        {
            let was_due = self.end(number) == Some(true);
            counters.streams_ignored.add(1);
            counters.requests_abandoned.add(u64::from(was_due));
            end(number);
        }
    }

    /// Ends all of them, since the connection is lost.
    pub(crate) fn abandon(&mut self, counters: &WorkerCounters) {
        let is_due = |stream: &&Stream<I, O>| matches!(stream.state, StreamState::Waiting { .. });
        let due = self.by_number.values().filter(is_due).count();
        counters.requests_abandoned.add(due as u64);
        *self = Self::default();
    }
}
