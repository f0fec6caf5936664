//! What a worker keeps of requests that a generator makes while the run goes on: the texts that it
//! gave, what they hold, and which of its batches is in flight where. The generators of a session's
//! workers are handed out for each round, and taken back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brunt_io::backend::{ClientBackend, PayloadId, Slot};
use brunt_load::{
    Batch, BatchOutcome, BatchTag, ConnectionNumber, GeneratorError, GeneratorResponse, Interrupt,
    RequestFailure, RequestGenerator, ResponseParts, ResponseTimes,
};
use brunt_proto::http1::{self, RequestKind, TextRequest, scan_requests_into};
use brunt_proto::{BodiesWanted, Body};
use brunt_record::{Answer, GeneratorUse, NO_NAME, Protocol, RequestTiming};

use crate::prepare::PrepareError;
use crate::protocol::Out;

/// Texts that a worker hands to its backend for good, so that they are sent without a copy; later
/// ones are copied.
const PAYLOADS_MAX: u32 = 64;
/// Longer texts are copied: all of them are kept as long as the backend is.
const PAYLOAD_BYTES_MAX: usize = 64 << 10;
/// Calls for requests that take less on average are quick: the clock is not read again after each,
/// and they count as a part of the response time. A reading takes a tenth of that.
const QUICK_NS: u64 = 300;

/// The generator of one worker.
#[derive(Debug)]
pub(crate) struct Generated {
    pub(crate) generator: Box<dyn RequestGenerator>,
    /// Turns of its worker: they tell the session whether that is in a call.
    turns: Arc<AtomicU64>,
    /// The text that came last, and the requests that it holds, with their names.
    text: Vec<u8>,
    requests: Vec<TextRequest>,
    names: Vec<u32>,
    /// Names of the requests that were written last.
    pub(crate) written: Vec<u32>,
    /// Where the generator writes.
    fresh: Vec<u8>,
    /// That of `text`, where the backend has it.
    payload: Option<PayloadId>,
    payloads: u32,
    /// Whether connections wait before each request.
    pub(crate) delays: bool,
    wanted: ResponseParts,
    error: Option<GeneratorError>,
    round: InRound,
}

/// What is kept for one round.
#[derive(Debug, Default)]
struct InRound {
    /// The batch of the text that came last, which is about to be written or put off.
    pending: Option<OfPlace>,
    slots: Vec<OfSlot>,
    /// Connections that are parked.
    parked: u32,
    /// What is in flight, by place.
    places: Vec<OfPlace>,
    depth: usize,
    batches: Batches,
    /// Bytes that are kept of each content.
    body_bytes_max: u32,
    requests_time: CallTime,
    delays_time: CallTime,
    responses_time: CallTime,
    truncated: u64,
}

/// A response as it came.
pub(crate) struct ReceivedResponse<'a> {
    pub(crate) answer: &'a Answer,
    pub(crate) times: ResponseTimes,
    /// Its head and body, where they were kept.
    pub(crate) kept: Option<&'a Body>,
}

/// What is known of a request in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfPlace {
    /// Of its batch.
    tag: BatchTag,
    /// Its name's number, or [`NO_NAME`].
    pub(crate) name: u32,
    /// Its batch among those of several requests; [`ALONE`] for a batch of one.
    batch: u32,
}

/// The request is all of its batch: nothing is kept of that.
const ALONE: u32 = u32::MAX;

/// What is kept of a connection.
#[derive(Debug, Default)]
struct OfSlot {
    /// Requests of a batch that found no room.
    rest: Option<Box<Rest>>,
    /// Its batch was empty: it is not asked for again.
    is_parked: bool,
    /// How long it waits before its next request is known.
    is_delayed: bool,
}

/// The requests of a batch that are not written yet.
#[derive(Debug)]
struct Rest {
    request: OfPlace,
    text: Vec<u8>,
    /// In order, the last ones first: bytes, what the response depends on, and the name.
    requests: Vec<(usize, RequestKind, u32)>,
    /// Bytes that were written.
    written: usize,
}

impl Generated {
    pub(crate) fn new(generator: Box<dyn RequestGenerator>) -> Self {
        Self {
            wanted: generator.wanted(),
            delays: generator.delays(),
            generator,
            turns: Arc::default(),
            text: Vec::new(),
            requests: Vec::new(),
            names: Vec::new(),
            written: Vec::new(),
            fresh: Vec::new(),
            payload: None,
            payloads: 0,
            error: None,
            round: InRound::default(),
        }
    }

    /// Its worker goes on.
    pub(crate) fn turn(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }

    /// Begins a round with this many connections of this depth. Nothing is in flight.
    pub(crate) fn begin(&mut self, slots: u32, depth: u32) {
        let free = OfPlace {
            tag: BatchTag::default(),
            name: NO_NAME,
            batch: ALONE,
        };
        self.round = InRound {
            slots: (0..slots).map(|_| OfSlot::default()).collect(),
            places: vec![free; slots as usize * depth as usize],
            depth: depth as usize,
            body_bytes_max: GeneratorUse::body_bytes_max(slots),
            ..InRound::default()
        };
        self.generator.begin(slots);
    }

    /// The figures of a round, and the names of the requests by their numbers. Nothing is in
    /// flight; what was made and not written is given up.
    pub(crate) fn end(&mut self) -> (GeneratorUse, Vec<String>) {
        for slot in 0..self.round.slots.len() as u32 {
            self.give_up(Slot(slot));
        }
        let used = GeneratorUse {
            calls: self.round.requests_time.calls,
            calls_ns: (self.round.requests_time.ns).saturating_add(self.round.delays_time.ns),
            reported: self.round.responses_time.calls,
            reported_ns: self.round.responses_time.ns,
            truncated: self.round.truncated,
            error: self.error.as_ref().map(|error| error.message.clone()),
            sessions: self.generator.sessions(),
        };
        (used, self.generator.names().to_vec())
    }

    pub(crate) fn error(&self) -> Option<&GeneratorError> {
        self.error.as_ref()
    }

    /// Notes why the run is to end; the first reason counts.
    pub(crate) fn fail(&mut self, error: GeneratorError) {
        self.error.get_or_insert(error);
    }

    /// Whether it gives no further requests, to no connection.
    pub(crate) fn is_over(&self) -> bool {
        self.error.is_some() || self.generator.is_stopped()
    }

    /// Whether all of `live` open connections wait for nothing that would come.
    pub(crate) fn is_idle(&self, live: u32) -> bool {
        self.is_over() || self.round.parked > 0 && self.round.parked >= live
    }

    pub(crate) fn is_parked(&self, slot: Slot) -> bool {
        self.round.slots[slot.0 as usize].is_parked
    }

    /// How long the connection waits before its next request, beside what it would; 0 where that
    /// was asked already.
    pub(crate) fn delay_ns(
        &mut self,
        slot: Slot,
        is_counted: bool,
        backend: &impl ClientBackend,
    ) -> u64 {
        let is_over = self.is_over();
        let of_slot = &mut self.round.slots[slot.0 as usize];
        if of_slot.is_delayed || of_slot.rest.is_some() || of_slot.is_parked || is_over {
            return 0;
        }
        of_slot.is_delayed = true;
        let from_ns = (self.round.delays_time).begin(is_counted, || backend.now_ns());
        let asked = self.generator.delay_ns(ConnectionNumber(slot.0));
        self.round.delays_time.end(from_ns, || backend.now_ns());
        asked.unwrap_or_else(|error| {
            self.fail(error);
            0
        })
    }

    /// Whether what a connection carries goes on with another one when it is lost.
    pub(crate) fn goes_on(&self, slot: Slot) -> bool {
        !self.is_over() && self.generator.goes_on(ConnectionNumber(slot.0))
    }

    /// An open connection is no more, and nothing is in flight on it.
    pub(crate) fn closed(&mut self, slot: Slot) {
        self.give_up(slot);
        self.generator.closed(ConnectionNumber(slot.0));
    }

    /// Gives up what was asked for and is not written.
    fn give_up(&mut self, slot: Slot) {
        let of_slot = std::mem::take(&mut self.round.slots[slot.0 as usize]);
        self.round.parked -= u32::from(of_slot.is_parked);
        if let Some(rest) = of_slot.rest {
            let count = rest.requests.len() as u32;
            self.end_requests(slot, rest.request, count, Some(RequestFailure::NotSent));
        }
    }

    /// Calls the generator, and scans the text that it gives.
    #[inline]
    fn next_batch(&mut self, slot: Slot) -> Result<Batch, GeneratorError> {
        self.fresh.clear();
        let connection = ConnectionNumber(slot.0);
        let batch = self.generator.next(connection, &mut self.fresh)?;
        let fault = match batch {
            Batch::New { .. } => scan_requests_into(&self.fresh, &mut self.requests)
                .err()
                .map(|error| format!("the text of a request cannot be sent: {error}")),
            Batch::Same { .. } if self.requests.is_empty() => {
                Some("the text of before was asked for, and there was none".to_owned())
            }
            _ => None,
        };
        fault.map_or(Ok(batch), |message| Err(GeneratorError { message }))
    }

    /// Asks what the connection is to send, unless something of what was asked for before is left.
    /// Gives how many requests; absent where it is to be closed.
    #[inline]
    pub(crate) fn ask(
        &mut self,
        slot: Slot,
        is_counted: bool,
        backend: &mut impl ClientBackend,
    ) -> Option<u32> {
        let of_slot = &mut self.round.slots[slot.0 as usize];
        if let Some(rest) = &of_slot.rest {
            return Some(rest.requests.len() as u32);
        }
        if of_slot.is_parked {
            return Some(0);
        }
        if self.is_over() {
            self.park(slot);
            return Some(0);
        }
        let from_ns = (self.round.requests_time).begin(is_counted, || backend.now_ns());
        let asked = self.next_batch(slot);
        self.round.requests_time.end(from_ns, || backend.now_ns());
        let (tag, name) = match asked {
            Ok(Batch::Nothing) => {
                self.park(slot);
                return Some(0);
            }
            Ok(Batch::Close) => return None,
            Ok(Batch::New { tag, name }) => {
                std::mem::swap(&mut self.text, &mut self.fresh);
                self.payload = None;
                (tag, name)
            }
            Ok(Batch::Same { tag, name }) => {
                let is_short = self.text.len() <= PAYLOAD_BYTES_MAX;
                if self.payload.is_none() && self.payloads < PAYLOADS_MAX && is_short {
                    self.payload = Some(backend.add_payload(self.text.as_slice().into()));
                    self.payloads += 1;
                }
                (tag, name)
            }
            Err(error) => {
                // What was scanned is not what `text` holds.
                self.requests.clear();
                self.fail(error);
                return Some(0);
            }
        };
        let left = self.requests.len() as u32;
        let batch = match left {
            1 => ALONE,
            _ => self.round.batches.add(left),
        };
        let name = name.unwrap_or(NO_NAME);
        self.names.clear();
        if left > 1 {
            self.generator.names_in(tag, &mut self.names);
        }
        self.names.resize(self.requests.len(), name);
        self.round.pending = Some(OfPlace { tag, name, batch });
        Some(left)
    }

    /// Whether what such a call takes is not worth another reading of the clock: it is known by
    /// then to be short on average.
    #[inline]
    pub(crate) fn is_quick(&self) -> bool {
        let CallTime { calls, ns } = self.round.requests_time;
        calls > TIMED_FIRST && ns < calls.saturating_mul(QUICK_NS)
    }

    fn park(&mut self, slot: Slot) {
        let is_parked = &mut self.round.slots[slot.0 as usize].is_parked;
        self.round.parked += u32::from(!*is_parked);
        *is_parked = true;
    }

    /// What was made for a connection is not written now.
    pub(crate) fn put_off(&mut self, slot: Slot) {
        if let Some(request) = self.round.pending.take() {
            self.keep_rest(slot, request, 0);
        }
    }

    /// The requests of a batch wait whose first `written` ones are written.
    fn keep_rest(&mut self, slot: Slot, request: OfPlace, written: usize) {
        let last = self.requests[..written].last();
        let from = last.map_or(0, |last| last.range.end);
        let waiting = self.requests[written..].iter().zip(&self.names[written..]);
        let rest = Rest {
            request,
            text: self.text[from..].to_vec(),
            requests: waiting
                .rev()
                .map(|(of_text, &name)| (of_text.range.len(), of_text.kind, name))
                .collect(),
            written: 0,
        };
        self.round.slots[slot.0 as usize].rest = Some(Box::new(rest));
    }

    /// The first `count` of what the connection is to send, which has as many, are written to
    /// `out`, and take `places` of it, which `next_place` gives. The others wait.
    #[inline]
    pub(crate) fn write_to(
        &mut self,
        slot: Slot,
        timing: RequestTiming,
        count: u32,
        mut next_place: impl FnMut() -> u32,
        places: &mut [RequestTiming],
        out: &mut Out,
    ) {
        let InRound {
            pending,
            slots,
            places: of_places,
            depth,
            ..
        } = &mut self.round;
        let of_slot = &mut slots[slot.0 as usize];
        of_slot.is_delayed = false;
        let pending = pending.take();
        let rest = of_slot.rest.as_ref().map(|rest| rest.request);
        let Some(request) = pending.or(rest) else {
            return;
        };
        let of_places = &mut of_places[slot.0 as usize * *depth..];
        let written = &mut self.written;
        written.clear();
        let mut take_place = |kind: RequestKind, name: u32| {
            let place = next_place() as usize;
            places[place] = RequestTiming {
                request: kind.number(),
                ..timing
            };
            of_places[place] = OfPlace { name, ..request };
            written.push(name);
        };
        let count = count as usize;
        if pending.is_some() {
            let (now, later) = self.requests.split_at(count.min(self.requests.len()));
            for (of_text, &name) in now.iter().zip(&self.names) {
                take_place(of_text.kind, name);
            }
            let end = now.last().map_or(0, |last| last.range.end);
            let payload = self.payload.filter(|_| later.is_empty());
            out.append_text(&self.text[..end], payload);
            if !later.is_empty() {
                self.keep_rest(slot, request, count);
            }
        } else if let Some(rest) = &mut of_slot.rest {
            let from = rest.written;
            for _ in 0..count {
                if let Some((bytes, kind, name)) = rest.requests.pop() {
                    rest.written += bytes;
                    take_place(kind, name);
                }
            }
            out.append_text(&rest.text[from..rest.written], None);
            if rest.requests.is_empty() {
                of_slot.rest = None;
            }
        }
    }

    /// The request in this place.
    #[inline]
    pub(crate) fn request_in(&self, slot: Slot, place: u32) -> OfPlace {
        let place = slot.0 as usize * self.round.depth + place as usize;
        self.round.places[place]
    }

    /// `count` requests of this one's batch are answered, or failed.
    #[inline]
    pub(crate) fn end_requests(
        &mut self,
        slot: Slot,
        request: OfPlace,
        count: u32,
        failure: Option<RequestFailure>,
    ) {
        let ended = match request.batch {
            ALONE => Some(outcome(failure)),
            batch => self.round.batches.end(batch, count, failure),
        };
        if let Some(outcome) = ended {
            let connection = ConnectionNumber(slot.0);
            self.generator.ended(connection, request.tag, outcome);
        }
    }

    /// Whether it sees more of responses than their status.
    pub(crate) fn wants_contents(&self) -> bool {
        self.wanted >= ResponseParts::Headers
    }

    /// What is kept of responses for it, beside those that are kept for others.
    pub(crate) fn wanted(&self, others: BodiesWanted) -> BodiesWanted {
        match self.wanted {
            ResponseParts::Nothing | ResponseParts::Status => others,
            ResponseParts::Headers => BodiesWanted {
                heads: true,
                ..others
            },
            ResponseParts::Body => BodiesWanted {
                from_status: 0,
                bytes_max: self.round.body_bytes_max,
                heads: true,
            },
        }
    }

    /// Whether it wants to see something else than before.
    #[inline]
    pub(crate) fn withdrew_its_request(&mut self) -> bool {
        let wanted = self.generator.wanted();
        wanted != std::mem::replace(&mut self.wanted, wanted)
    }

    /// Shows it the response to a request. The time of the call is taken if that `is_counted`.
    #[inline]
    pub(crate) fn show(
        &mut self,
        slot: Slot,
        request: OfPlace,
        received: ReceivedResponse<'_>,
        is_counted: bool,
        backend: &impl ClientBackend,
    ) {
        if self.wanted > ResponseParts::Nothing && self.error.is_none() {
            let headers: Vec<(&[u8], &[u8])> = received
                .kept
                .map(|kept| http1::head_fields(&kept.head).collect())
                .unwrap_or_default();
            let sees_body = self.wanted == ResponseParts::Body;
            let kept = received.kept.filter(|_| sees_body);
            let response = GeneratorResponse {
                connection: ConnectionNumber(slot.0),
                tag: request.tag,
                status: received.answer.outcome.status().unwrap_or(0),
                headers: &headers,
                body: kept.map_or(&[], |kept| &kept.bytes),
                is_truncated: kept.is_some_and(|kept| kept.is_cut),
                head_bytes: received.answer.head_bytes,
                body_bytes: received.answer.body_bytes,
                times: received.times,
            };
            self.round.truncated += u64::from(response.is_truncated);
            let from_ns = (self.round.responses_time).begin(is_counted, || backend.now_ns());
            let outcome = self.generator.response(&response);
            self.round.responses_time.end(from_ns, || backend.now_ns());
            if let Err(error) = outcome {
                self.fail(error);
            }
        }
    }
}

/// The batches of several requests that are in flight or waiting.
#[derive(Debug, Default)]
struct Batches {
    batches: Vec<OfBatch>,
    free: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct OfBatch {
    /// Requests that have no outcome yet.
    left: u32,
    /// Why the first one that failed did.
    failure: Option<RequestFailure>,
}

impl Batches {
    /// Gives the number of a batch of so many requests.
    fn add(&mut self, left: u32) -> u32 {
        let batch = OfBatch {
            left,
            failure: None,
        };
        if let Some(number) = self.free.pop() {
            self.batches[number as usize] = batch;
            return number;
        }
        self.batches.push(batch);
        self.batches.len() as u32 - 1
    }

    /// `count` requests of a batch have this outcome; how the batch ended, if no other is left.
    fn end(
        &mut self,
        number: u32,
        count: u32,
        failure: Option<RequestFailure>,
    ) -> Option<BatchOutcome> {
        let batch = &mut self.batches[number as usize];
        batch.left = batch.left.saturating_sub(count);
        batch.failure = batch.failure.or(failure);
        (batch.left == 0).then(|| {
            self.free.push(number);
            outcome(batch.failure)
        })
    }
}

fn outcome(failure: Option<RequestFailure>) -> BatchOutcome {
    failure.map_or(BatchOutcome::Answered, BatchOutcome::Failed)
}

/// Number of calls that are timed at first; after them, one call in `TIMED_EVERY` is timed. Two
/// readings of the clock would take a hundredth of the time of a request. The period is one that no
/// script has, so that the timed calls stand for the others.
const TIMED_FIRST: u64 = 1_000;
const TIMED_EVERY: u64 = 31;
/// Time that calls take, by those that are timed.
#[derive(Clone, Copy, Debug, Default)]
struct CallTime {
    calls: u64,
    ns: u64,
}

impl CallTime {
    /// A call begins; gives when, if its time is taken.
    #[inline]
    fn begin(&mut self, is_counted: bool, now_ns: impl FnOnce() -> u64) -> Option<u64> {
        if !is_counted {
            return None;
        }
        self.calls += 1;
        let is_timed = self.calls <= TIMED_FIRST || self.calls.is_multiple_of(TIMED_EVERY);
        is_timed.then(now_ns)
    }

    /// The call that began at `from_ns` is over.
    #[inline]
    fn end(&mut self, from_ns: Option<u64>, now_ns: impl FnOnce() -> u64) {
        if let Some(from_ns) = from_ns {
            let is_one_of_the_first = self.calls <= TIMED_FIRST;
            let stands_for = if is_one_of_the_first { 1 } else { TIMED_EVERY };
            let ns = now_ns().saturating_sub(from_ns);
            self.ns = self.ns.saturating_add(ns.saturating_mul(stands_for));
        }
    }
}

/// When the load is over, a call of a generator is interrupted if it lasts this long. A worker that
/// is in no call looks around twenty times a second.
const PATIENCE_NS: u64 = 1_000_000_000;
/// A worker that is still in a call this long after the interrupt is left behind: functions of the
/// system, which no interrupt reaches, may take as long.
const LEFT_BEHIND_NS: u64 = 5_000_000_000;

/// A generator for each worker; none where requests are those of the plan.
#[derive(Debug, Default)]
pub(crate) struct Generators {
    /// By worker, from the first worker of this process on.
    of_workers: Vec<OfWorker>,
}

/// The generator of a worker, and how the session sees that the worker is in a call of it, and ends
/// that.
#[derive(Debug)]
struct OfWorker {
    /// Absent while the worker has it.
    generated: Option<Box<Generated>>,
    /// Absent where there is none, and once it was used.
    interrupt: Option<Arc<dyn Interrupt>>,
    /// Turns of the worker so far.
    turns: Arc<AtomicU64>,
    /// The turns as last seen, and since when they have not changed.
    seen: (u64, u64),
}

impl Generators {
    pub(crate) fn new(
        generators: Vec<Box<dyn RequestGenerator>>,
        workers: u32,
        protocol: Protocol,
    ) -> Result<Self, PrepareError> {
        if generators.len() != workers as usize {
            return Err(PrepareError::Plan(format!(
                "{} generators of requests for {workers} workers: each worker needs one",
                generators.len()
            )));
        }
        if !protocol.takes_texts {
            return Err(PrepareError::Plan(format!(
                "the requests of a script are texts of HTTP/1.1, and {} is what is spoken here; \
                 use --http1",
                protocol.name
            )));
        }
        let of_workers = generators.into_iter().map(|generator| {
            let generated = Box::new(Generated::new(generator));
            OfWorker {
                interrupt: generated.generator.interrupt(),
                turns: Arc::clone(&generated.turns),
                generated: Some(generated),
                seen: (0, 0),
            }
        });
        Ok(Self {
            of_workers: of_workers.collect(),
        })
    }

    /// Whether requests are those of the plan.
    pub(crate) fn is_empty(&self) -> bool {
        self.of_workers.is_empty()
    }

    /// Takes the generator of a worker, by its place among the workers of this process.
    pub(crate) fn take(&mut self, place: usize) -> Option<Box<Generated>> {
        self.of_workers.get_mut(place)?.generated.take()
    }

    /// The round is over for the worker in this place.
    pub(crate) fn put_back(&mut self, place: usize, generated: Option<Box<Generated>>) {
        if let Some(of_worker) = self.of_workers.get_mut(place) {
            of_worker.generated = generated;
        }
    }

    /// Why one of them ended the run, if one did: none of them is with its worker.
    pub(crate) fn error(&self) -> Option<&GeneratorError> {
        let of_workers = self.of_workers.iter();
        let mut generated = of_workers.filter_map(|of_worker| of_worker.generated.as_deref());
        generated.find_map(Generated::error)
    }

    /// The load was over at `over_ns`, if that has come: calls that hold up workers, of which
    /// `is_done` tells, are interrupted. Gives the place of one that is to be left behind.
    pub(crate) fn look(
        &mut self,
        now_ns: u64,
        over_ns: u64,
        is_done: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut left_behind = None;
        for (place, worker) in self.of_workers.iter_mut().enumerate() {
            let turns = worker.turns.load(Ordering::Relaxed);
            if turns != worker.seen.0 || is_done(place) || now_ns < over_ns {
                worker.seen = (turns, now_ns);
                continue;
            }
            let held_ns = now_ns.saturating_sub(worker.seen.1);
            if held_ns >= PATIENCE_NS
                && let Some(interrupt) = worker.interrupt.take()
            {
                interrupt.interrupt();
            }
            if held_ns >= PATIENCE_NS + LEFT_BEHIND_NS {
                left_behind = Some(place);
            }
        }
        left_behind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_ends_with_the_last_of_its_requests() {
        let mut batches = Batches::default();
        let (first, second) = (batches.add(3), batches.add(2));
        let (late, lost) = (RequestFailure::TimedOut, RequestFailure::ConnectionLost);
        assert_eq!(batches.end(first, 1, Some(late)), None);
        assert_eq!(batches.end(second, 2, None), Some(BatchOutcome::Answered));
        assert_eq!(batches.end(first, 1, Some(lost)), None);
        let failed = BatchOutcome::Failed(late);
        assert_eq!(batches.end(first, 1, None), Some(failed));
        // Their numbers are used again.
        assert!(batches.add(2) < 2 && batches.add(2) < 2);
    }

    #[test]
    fn calls_are_timed_seldom_and_stand_for_all() {
        let mut time = CallTime::default();
        let clock = std::cell::Cell::new(0);
        let calls = TIMED_FIRST + 100 * TIMED_EVERY;
        for _ in 0..calls {
            let from_ns = time.begin(true, || clock.get());
            clock.set(clock.get() + 7);
            time.end(from_ns, || clock.get());
        }
        assert_eq!(time.calls, calls);
        let off = time.ns.abs_diff(7 * calls);
        assert!(off <= 7 * TIMED_EVERY, "{} of {}", time.ns, 7 * calls);
        assert_eq!(time.begin(false, || unreachable!("not counted")), None);
        assert_eq!(time.calls, calls);
    }
}
