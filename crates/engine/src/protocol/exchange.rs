//! What exchanges of messages have in common, over TCP and over WebSocket: messages that are
//! encoded once for all workers, and what a connection keeps of those in flight.

use std::collections::VecDeque;
use std::iter::StepBy;
use std::ops::RangeFrom;

use brunt_load::Plan;
use brunt_proto::messages::{Template, Values};
use brunt_record::{Answer, ReplyOutcome, RequestTiming};

use super::EncodeError;
use super::payload::{Copies, Payload};

/// The messages of a run.
#[derive(Debug)]
pub(super) struct MessageSet {
    pub(super) messages: Vec<Message>,
    /// The constant ones, as they are sent.
    pub(super) payload: Payload,
    pub(super) exchanged: Exchanged,
    /// Whether what was filled in has to be known when its echo comes.
    pub(super) keeps_rendered: bool,
}

/// A message.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) template: Template,
    /// Where it lies in the payload; absent where it is filled in each time.
    pub(super) copies: Option<Copies>,
}

/// How messages are exchanged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Exchanged {
    /// Replies are echoes.
    pub(super) is_echo: bool,
    /// Messages that may be in flight on a connection.
    pub(super) depth: u32,
    /// What random numbers depend on.
    pub(super) seed: u64,
    /// When the run's clock began, nanoseconds since 1970.
    pub(super) clock_origin_unix_ns: u64,
}

impl MessageSet {
    /// The messages of the plan, whose constant ones `check` takes by their names, as it takes the
    /// `first` one of each connection. Each has `sent_bytes` when it is sent, and `copies` in the
    /// payload if all of those have so many bytes.
    pub(super) fn new(
        plan: &Plan,
        first: Option<&Template>,
        exchanged: Exchanged,
        check: impl Fn(&str, &[u8]) -> Result<(), EncodeError>,
        sent_bytes: fn(usize) -> usize,
        copies: impl Fn(usize) -> u32,
    ) -> Result<Self, EncodeError> {
        let specs = plan.traffic.requests.messages();
        let constant = specs.iter().filter_map(|spec| spec.template.as_constant());
        let count = copies(constant.map(|bytes| sent_bytes(bytes.len())).sum());
        let (mut messages, mut payload) = (Vec::new(), Payload::default());
        for spec in specs {
            let mut copies = None;
            if let Some(bytes) = spec.template.as_constant() {
                check(&spec.name, bytes)?;
                copies = Some(payload.add(sent_bytes(bytes.len()), count, 0)?);
            }
            messages.push(Message {
                template: spec.template.clone(),
                copies,
            });
        }
        if let Some(bytes) = first.and_then(Template::as_constant) {
            check("of --first", bytes)?;
        }
        let is_filled = |message: &Message| message.copies.is_none();
        Ok(Self {
            keeps_rendered: exchanged.is_echo && messages.iter().any(is_filled),
            messages,
            payload,
            exchanged,
        })
    }

    /// The constant messages, and where they lie in the payload.
    pub(super) fn constant(&self) -> impl Iterator<Item = (&[u8], Copies)> {
        let messages = self.messages.iter();
        messages.filter_map(|message| Some((message.template.as_constant()?, message.copies?)))
    }

    /// Most bytes that each of the messages has.
    pub(super) fn lengths(&self) -> impl Iterator<Item = usize> {
        self.messages
            .iter()
            .map(|message| message.template.bytes_max())
    }

    /// Bytes that are held of them.
    pub(super) fn held_bytes(&self) -> usize {
        let templates = self
            .messages
            .iter()
            .map(|message| message.template.held_bytes());
        templates.sum::<usize>() + self.payload.len() + size_of_val(&self.messages[..])
    }

    /// What is filled into the message that is next on the connection.
    pub(super) fn values(&self, connection: &InFlight, now_ns: u64) -> Values {
        let (number, sequence) = (connection.number, connection.sequence);
        // Far apart for each connection and each message; what is drawn from it mixes its bits.
        let connection_seed = self
            .exchanged
            .seed
            .wrapping_add(number.wrapping_mul(0xd134_2543_de82_ef95));
        Values {
            connection: number,
            sequence,
            now_ns: self.exchanged.clock_origin_unix_ns.saturating_add(now_ns),
            seed: connection_seed.wrapping_add(sequence.wrapping_mul(0xaf25_1af3_b0f0_25b5)),
            connection_seed,
        }
    }

    /// What the oldest message in flight was, for its echo; empty where replies are none.
    #[inline]
    pub(super) fn oldest_sent<'a>(
        &'a self,
        connection: &'a InFlight,
        places: &[RequestTiming],
    ) -> &'a [u8] {
        if !self.exchanged.is_echo {
            return &[];
        }
        if self.keeps_rendered {
            return connection.rendered.first();
        }
        let place = connection.requests.oldest as usize;
        let message = &self.messages[places[place].request as usize];
        message.template.as_constant().unwrap_or_default()
    }

    /// A message was written; gives its place.
    #[inline]
    pub(super) fn take(&self, connection: &mut InFlight) -> u32 {
        connection.sequence += 1;
        connection.requests.take(self.exchanged.depth)
    }

    /// The oldest message in flight is no more; gives its place.
    #[inline]
    pub(super) fn leave(&self, connection: &mut InFlight) -> u32 {
        if self.keeps_rendered {
            connection.rendered.pop();
        }
        connection.requests.leave(self.exchanged.depth)
    }
}

/// The messages in flight on a connection.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    /// Its number in the run, and how many messages were sent on it.
    pub(super) number: u64,
    pub(super) sequence: u64,
    pub(super) requests: InOrder,
    /// What was filled in and is awaited as an echo.
    pub(super) rendered: Rendered,
}

/// An answer without a status, of so many bytes.
#[inline]
pub(crate) fn answer(
    outcome: ReplyOutcome,
    head_bytes: u64,
    body_bytes: u64,
    first_byte_ns: u64,
) -> Answer {
    Answer {
        outcome,
        retry_after: false,
        interim: 0,
        head_bytes,
        body_bytes,
        first_byte_ns,
    }
}

/// Gives connections their numbers in the run: those of a worker among so many.
pub(super) type ConnectionNumbers = StepBy<RangeFrom<u64>>;

pub(super) fn connection_numbers(worker: u32, workers: u32) -> ConnectionNumbers {
    (u64::from(worker)..).step_by(workers as usize)
}

/// Messages that were filled in and whose echoes are awaited, oldest first. A connection without
/// any takes a word for it.
#[derive(Debug, Default)]
pub(super) struct Rendered(Option<Box<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    /// Where the oldest one begins.
    start: usize,
    lengths: VecDeque<usize>,
}

impl Rendered {
    /// Keeps a message that was written.
    pub(super) fn push(&mut self, message: &[u8]) {
        let kept = self.0.get_or_insert_default();
        if kept.start > kept.bytes.len() / 2 {
            kept.bytes.drain(..kept.start);
            kept.start = 0;
        }
        kept.bytes.extend_from_slice(message);
        kept.lengths.push_back(message.len());
    }

    /// The oldest one; empty where there is none.
    pub(super) fn first(&self) -> &[u8] {
        let Some(kept) = &self.0 else { return &[] };
        let length = kept.lengths.front().copied().unwrap_or(0);
        &kept.bytes[kept.start..kept.start + length]
    }

    /// The oldest one is no more.
    pub(super) fn pop(&mut self) {
        let Some(kept) = &mut self.0 else { return };
        kept.start += kept.lengths.pop_front().unwrap_or(0);
        if kept.lengths.is_empty() {
            kept.bytes.clear();
            kept.start = 0;
        }
    }
}

/// The requests in flight on one connection, oldest first, in places below the depth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InOrder {
    /// Place of the oldest one.
    pub(super) oldest: u32,
    pub(super) count: u32,
}

impl InOrder {
    /// The oldest one leaves its place, which is given.
    #[inline]
    pub(super) fn leave(&mut self, depth: u32) -> u32 {
        let place = self.oldest;
        self.oldest = self.place(1, depth);
        self.count -= 1;
        place
    }

    /// Gives the place of a request that was just written.
    #[inline]
    pub(super) fn take(&mut self, depth: u32) -> u32 {
        let place = self.place(self.count, depth);
        self.count += 1;
        place
    }

    /// The place of the one that has `before` others in flight before it.
    #[inline]
    fn place(self, before: u32, depth: u32) -> u32 {
        // Both are below the depth or equal to it.
        let place = self.oldest + before;
        if place >= depth { place - depth } else { place }
    }
}
