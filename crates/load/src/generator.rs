//! Requests that are made one by one while a run goes on, such as those of a script.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What a worker asks for its requests, and shows their responses. One value per worker; it is
/// asked by that worker's thread alone, and dropped when the run is over: whoever made it gets back
/// what is inside by that.
///
/// The order of calls for one connection: `opened`, and then, over and over: `delay_ns` (where
/// [`RequestGenerator::delays`]), `next`, per response `response` (where
/// [`RequestGenerator::wanted`] asks for any), and `ended` once every request of the batch is
/// answered or has failed. (Where requests are planned, and several may be in flight on a
/// connection, `next` does not wait for that.) `closed` comes last, once every batch has ended; not
/// at the end of a run, which leaves connections open.
pub trait RequestGenerator: Debug + Send {
    /// A round begins, with as many connections at most. Nothing is in flight. Those that are open
    /// since the round before are not announced by `opened`.
    fn begin(&mut self, _connections: u32) {}

    /// A connection is being opened, for the first time or anew; `opened` or `unopened` follows.
    fn opening(&mut self, _connection: ConnectionNumber) {}

    /// The attempt to open a connection failed.
    fn unopened(&mut self, _connection: ConnectionNumber) {}

    /// A connection was opened, for the first time or anew: nothing was asked on it yet.
    fn opened(&mut self, _connection: ConnectionNumber) {}

    /// An open connection is no more, whoever closed it.
    fn closed(&mut self, _connection: ConnectionNumber) {}

    /// Whether what an open connection carries, which is about to be lost, goes on with another
    /// one, though the connections themselves are what is planned. That one is opened when the
    /// pause that `delay_ns` says is over.
    fn goes_on(&self, _connection: ConnectionNumber) -> bool {
        false
    }

    /// Whether the generator has no use for connections that are not being opened yet.
    fn begins_no_more(&self) -> bool {
        false
    }

    /// Whether connections wait before each request, as long as `delay_ns` says.
    fn delays(&self) -> bool;

    /// How long a connection waits before its next request, nanoseconds.
    ///
    /// # Errors
    ///
    /// The run is to end.
    fn delay_ns(&mut self, connection: ConnectionNumber) -> Result<u64, GeneratorError>;

    /// Gives what a connection sends next: one request, or several at once.
    ///
    /// Their text (HTTP/1.1) is appended to `text`; nothing is appended where it is that of the
    /// batch before ([`Batch::Same`]).
    ///
    /// # Errors
    ///
    /// The run is to end.
    fn next(
        &mut self,
        connection: ConnectionNumber,
        text: &mut Vec<u8>,
    ) -> Result<Batch, GeneratorError>;

    /// The parts of responses that the generator wants to see from now on.
    fn wanted(&self) -> ResponseParts;

    /// Takes a response, in the order in which they come. Those that come when the window is over
    /// are not shown: only `ended` tells of them.
    ///
    /// # Errors
    ///
    /// The run is to end.
    fn response(&mut self, response: &GeneratorResponse<'_>) -> Result<(), GeneratorError>;

    /// Every request of the batch with this tag is answered or has failed: the tag is free.
    fn ended(&mut self, connection: ConnectionNumber, tag: BatchTag, outcome: BatchOutcome);

    /// Whether the generator makes no further requests; the run goes on without this worker's.
    fn is_stopped(&self) -> bool;

    /// Where connections that it opens from now on go; absent: to the target.
    fn address(&self) -> Option<SocketAddr> {
        None
    }

    /// What ends a call into this generator that does not return, from another thread; absent where
    /// every call returns.
    fn interrupt(&self) -> Option<Arc<dyn Interrupt>> {
        None
    }

    /// Puts the places of the names of the requests of a batch, which has several and was made just
    /// now, into `names`, which is empty; it stays so where all have the batch's.
    fn names_in(&self, _tag: BatchTag, _names: &mut Vec<u32>) {}

    /// How many sessions there were so far; absent where it knows none.
    fn sessions(&self) -> Option<SessionCounts> {
        None
    }

    /// The names under which figures are kept, by [`Batch::New::name`]; they only grow.
    fn names(&self) -> &[String];
}

/// Ends a call into a generator from another thread, such as one that waits for a worker after the
/// end of the run.
pub trait Interrupt: Debug + Send + Sync {
    /// The call in progress, if any, fails with an error soon. It need not: what waits in the
    /// system's calls is not reached, so a worker may have to be left behind. Calls after it fail,
    /// too.
    fn interrupt(&self);
}

/// The number of a connection of a generator's worker, counted from 0 and below what
/// [`RequestGenerator::begin`] said. A connection that is lost and opened anew keeps its number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionNumber(pub u32);

/// What a connection sends next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Batch {
    /// The text that was appended.
    New {
        /// Given back with its responses.
        tag: BatchTag,
        /// The place of its name in [`RequestGenerator::names`]; absent without one.
        name: Option<u32>,
    },
    /// The text of the last [`Batch::New`] of this worker, once more.
    Same {
        /// Given back with its responses.
        tag: BatchTag,
        /// The place of the request's name in [`RequestGenerator::names`]; absent without one.
        name: Option<u32>,
    },
    /// Nothing: the connection stays open and sends no more. Where connections are what is planned,
    /// it is closed.
    Nothing,
    /// Nothing: the connection is closed. The next one is opened in its place, where connections
    /// are not what is planned.
    Close,
}

/// How a batch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchOutcome {
    /// Every request was answered, with whatever status.
    Answered,
    /// At least one request was not answered. Holds why the first of them was not.
    Failed(RequestFailure),
}

/// Why a request was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFailure {
    /// The request was not sent: its connection was lost, or the run was over before.
    NotSent,
    /// The request was answered too late, or not in the time that a request has.
    TimedOut,
    /// The request's connection was closed or reset before the response was complete.
    ConnectionLost,
    /// What came is no response that can be read.
    Unreadable,
    /// The run was over before the response was complete.
    Unfinished,
}

/// What a generator knows a batch by, as long as one of its requests is in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchTag(pub u32);

/// What is wanted of responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ResponseParts {
    /// Nothing: they are not shown.
    #[default]
    Nothing,
    /// Status alone.
    Status,
    /// Status and header fields.
    Headers,
    /// Status, header fields and content.
    Body,
}

/// A response, as far as it is wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct GeneratorResponse<'a> {
    /// The connection on which the response came.
    pub connection: ConnectionNumber,
    /// The tag of the request's batch.
    pub tag: BatchTag,
    /// Status code.
    pub status: u16,
    /// Names and values of its header fields in the order in which they came, names as the server
    /// wrote them; empty where they are not wanted.
    pub headers: &'a [(&'a [u8], &'a [u8])],
    /// The content without framing; empty where it is not wanted.
    pub body: &'a [u8],
    /// The content had more bytes than are kept: 16 MiB, or less where a worker has more than 64
    /// connections, of all of which it keeps 1 GiB, but 64 KiB of each.
    pub is_truncated: bool,
    /// Bytes of its head, with those of interim responses before it.
    pub head_bytes: u64,
    /// Bytes of its content with their framing, however much of it is wanted and kept.
    pub body_bytes: u64,
    /// The instants of the response and of its request.
    pub times: ResponseTimes,
}

/// Instants of a response and its request, nanoseconds on the clock of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseTimes {
    /// When the opening of the connection began.
    pub opening_ns: u64,
    /// When the connection was open, with TLS where there is any.
    pub opened_ns: u64,
    /// When the request was sent.
    pub sent_ns: u64,
    /// When the first byte of the response was received.
    pub first_byte_ns: u64,
    /// When the response was complete.
    pub done_ns: u64,
}

/// How many sessions there were. Those that are neither completed nor failed were going on when the
/// run was over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionCounts {
    /// Sessions for which a connection was to be opened.
    pub begun: u64,
    /// Sessions all of whose requests were answered.
    pub completed: u64,
    /// Sessions that ended before all their requests were answered.
    pub failed: u64,
    /// Further connections of sessions that had lost theirs.
    pub reconnected: u64,
}

/// Why a generator ends the run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct GeneratorError {
    /// What happened, and where: a script's name and line.
    pub message: String,
}
