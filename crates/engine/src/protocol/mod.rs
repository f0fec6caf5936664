//! What a worker asks of a protocol: requests out and responses in, over the bytes of one
//! connection.
//!
//! The trait [`ClientProtocol`] here comes first; `http1` is the simplest that answers it.

mod encoded;
mod exchange;
mod filled;
mod http1;
mod http2;
mod http3;
mod messages;
mod out;
mod payload;
mod streams;
mod websocket;

use std::fmt::{Debug, Display};
use std::sync::Arc;

use brunt_io::backend::{PayloadId, Secured};
use brunt_io::transport::{OutgoingDatagrams, Transport};
use brunt_load::{Plan, RequestId};
use brunt_proto::{BodiesWanted, Body};
use brunt_record::{Answer, ControlFrames, FailureKind, QuicCounts, RequestTiming};

#[cfg(test)]
pub(crate) use encoded::Unread;
pub(crate) use encoded::{EncodedRequests, ForProtocol, MakeBackend};
pub(crate) use exchange::answer;
pub(crate) use http3::transport as quic_transport;
pub(crate) use out::{
    Backends, NewWorker, ON_EPOLL, ON_URING, Out, PayloadPart, TlsClient, WorkerTransport,
};
pub(crate) use websocket::offer_of;

/// Bytes of what a run sends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    /// Of one request, the largest: in HTTP/2 of any but the first of a connection. Of messages the
    /// longest, of streams what they send at a time.
    pub(crate) request: usize,
    /// Further copies of a request that may follow itself on a connection.
    pub(crate) copies: usize,
    /// What each connection has beside those at most: of a request that is filled in, and of such
    /// as follow each other and do not lie so.
    pub(crate) of_connection: usize,
    /// What is held of them all.
    pub(crate) held: usize,
}

impl Sizes {
    /// Of requests that are not repeated.
    fn of(request: usize, held: usize) -> Self {
        Self {
            request,
            held,
            ..Self::default()
        }
    }
}

/// In a place of a connection where no request is in flight.
pub(crate) const FREE_PLACE: RequestTiming = RequestTiming {
    due_ns: u64::MAX,
    sent_ns: u64::MAX,
    request: 0,
    again: 0,
};

/// A request that is to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Next {
    /// Which one.
    pub(crate) request: RequestId,
    /// Requests that are written behind it at once.
    pub(crate) behind: u32,
    /// The connection carries no further one after this and those behind it.
    pub(crate) closes: bool,
    /// When it is written.
    pub(crate) now_ns: u64,
}

/// What happened on a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProtocolEvent {
    /// It can carry requests.
    Ready,
    /// The request in `place` is answered.
    Done {
        place: u32,
        answer: Answer,
        /// The server said that it closes the connection behind this response.
        closes: bool,
    },
    /// The request in `place` failed, and `discarded_bytes` of its response are lost. The
    /// connection lives.
    Failed {
        place: u32,
        kind: FailureKind,
        discarded_bytes: u64,
        /// The server said, in those bytes, that it did not process the request, of whose response
        /// nothing came: it may be sent again, and has not failed then.
        is_unprocessed: bool,
    },
    /// The server takes no further requests on this connection.
    GoAway,
    /// The server closes the connection, on which nothing is in flight: a reply of HTTP/1.1 says
    /// so, with an error status.
    IdleReply,
    /// The server closes the connection, and answers nothing more. What is in flight on it fails
    /// with this kind, as at [`TimedOut::Connection`].
    Closed(FailureKind),
}

/// What time without a response brought about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimedOut {
    /// The request in `place` had no response in time and is given up; `discarded_bytes` of its
    /// response are lost. The connection lives.
    Request { place: u32, discarded_bytes: u64 },
    /// The connection is of no further use. What is in flight on it fails with this kind.
    Connection(FailureKind),
}

/// How far received bytes were taken.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub(crate) struct Taken {
    /// Bytes taken, up to the event; without one, all of them.
    pub(crate) consumed: usize,
    /// What they brought about.
    pub(crate) event: Option<ProtocolEvent>,
}

impl Taken {
    /// So many bytes brought about nothing.
    #[inline]
    fn without_event(consumed: usize) -> Self {
        Self {
            consumed,
            event: None,
        }
    }
}

/// The connection cannot be used any more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken {
    /// Why.
    pub(crate) kind: FailureKind,
    /// Bytes that came though no request was in flight.
    pub(crate) unexpected_bytes: u64,
}

impl From<FailureKind> for Broken {
    fn from(kind: FailureKind) -> Self {
        Self {
            kind,
            unexpected_bytes: 0,
        }
    }
}

/// What the end of a connection means for the requests in flight on it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ConnectionEnd {
    /// It completes the response of the request in `place`, which has no other end.
    Completes { place: u32, answer: Answer },
    /// They fail, the oldest with this kind.
    Fails(FailureKind),
}

/// What the server allows on a connection beyond what was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Capacity {
    /// Requests in flight at once, at most.
    pub(crate) depth: u32,
    /// It takes no further request, ever.
    pub(crate) is_spent: bool,
}

/// How a connection is ended on which nothing is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// It is closed.
    AtOnce,
    /// The server answers what was written, [`ProtocolEvent::Closed`] at last.
    Answered,
    /// Our side is closed (FIN), and the server is read to its end: to close a socket in which
    /// something is unread resets the connection, and the server loses what it did not read.
    Heard,
}

/// What came on a connection and belongs to no response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Aside {
    pub(crate) overhead_bytes: u64,
    /// Whole messages that answer nothing, whose bytes are among these.
    pub(crate) pushes: u64,
    /// Control frames, those that were sent included.
    pub(crate) controls: ControlFrames,
}

impl Aside {
    /// Nothing but bytes.
    #[inline]
    fn of_bytes(overhead_bytes: u64) -> Self {
        Self {
            overhead_bytes,
            ..Self::default()
        }
    }
}

/// What comes on a connection of a protocol at once.
pub(crate) type ReceivedOf<'a, P> = <<P as ClientProtocol>::Transport as Transport>::Received<'a>;

/// The client's side of a protocol: one value per worker, which holds what its connections share.
///
/// The order of calls on one connection: `open`, then `request` and `receive` as they come, and
/// `close` when it is gone and nothing is in flight on it. Over streams, what is to be sent is
/// appended to an [`Out`] and goes out in that order; over datagrams, `transmit` is asked for it
/// after any of these.
pub(crate) trait ClientProtocol: Clone + Debug + Send + Sync + 'static {
    /// What carries it.
    type Transport: WorkerTransport;
    /// What it keeps of one connection. Small while the connection is down.
    type Connection: Debug;

    /// Responses come in the order of the requests: what is behind a request that fails has no
    /// response either, and none can be cancelled alone.
    const IN_ORDER: bool;

    /// Called once by each worker, before all else, with its number among `workers`; `add` hands a
    /// payload to its backend.
    fn start(&mut self, _worker: u32, _workers: u32, _add: &mut dyn FnMut(Arc<[u8]>) -> PayloadId) {
    }

    /// A connection that is down.
    fn connection(&self) -> Self::Connection;

    /// The connection was made, over TLS where there is TLS. Gives whether it can carry requests at
    /// once; else [`ProtocolEvent::Ready`] tells when.
    fn open(&mut self, connection: &mut Self::Connection, out: &mut Out, now_ns: u64) -> bool;

    /// Whether connections may end otherwise than [`Closing::AtOnce`].
    fn parts(&self) -> bool {
        false
    }

    /// Nothing is in flight on a connection, and nothing more will be sent: says so to the server.
    fn part(&mut self, _connection: &mut Self::Connection, _out: &mut Out) -> Closing {
        Closing::AtOnce
    }

    /// The connection is gone, and nothing is in flight on it. Gives how many of its bytes are in
    /// no response, no failure and no overhead.
    fn close(&mut self, connection: &mut Self::Connection) -> u64;

    /// A round is over, and nothing is in flight on the connection. Gives how many of its bytes are
    /// in no response, no failure and no overhead. Where there are none, it may go on in another
    /// round; else it is ended.
    fn end_round(&mut self, connection: &mut Self::Connection) -> u64 {
        self.close(connection)
    }

    /// Writes a request; gives its place, below the depth.
    fn request(&mut self, connection: &mut Self::Connection, next: Next, out: &mut Out) -> u32;

    /// Takes received bytes up to the next event. `places` are those of the connection. To be
    /// called until there is no event; where responses are not in order with no bytes left too,
    /// since the last ones may bring about several.
    ///
    /// # Errors
    ///
    /// The connection cannot be used any more; what is in flight on it is still to be abandoned.
    fn receive(
        &mut self,
        connection: &mut Self::Connection,
        received: ReceivedOf<'_, Self>,
        received_ns: u64,
        places: &[RequestTiming],
        out: &mut Out,
    ) -> Result<Taken, Broken>;

    /// How many of the bytes that come next on a connection need not be seen.
    fn unread_bytes(&self, _connection: &Self::Connection) -> u64 {
        0
    }

    /// As many of these bytes came, and nobody saw them.
    fn discarded(&mut self, _connection: &mut Self::Connection, _bytes: u64) {}

    /// The server closed its side, with requests in flight.
    fn ended(&mut self, _connection: &mut Self::Connection) -> ConnectionEnd {
        ConnectionEnd::Fails(FailureKind::ClosedBeforeReply)
    }

    /// Whether a request may be sent again, once, where its connection ended before its response
    /// began: the server may have processed it (RFC 9110 section 9.2.2).
    fn may_repeat(&self, _request: RequestId) -> bool {
        false
    }

    /// Takes a request out of a connection that is lost, the oldest where responses are in order;
    /// gives its place and the bytes of its incomplete response.
    fn abandon(&mut self, connection: &mut Self::Connection) -> Option<(u32, u64)>;

    /// What came since this was last asked and belongs to no response.
    #[inline]
    fn take_aside(&mut self, _connection: &mut Self::Connection) -> Aside {
        Aside::default()
    }

    /// Whether bytes may come though nothing is in flight.
    fn may_still_hear(&self, _connection: &Self::Connection) -> bool {
        false
    }

    // What follows, not every protocol does: frames and timers of its own (HTTP/2, HTTP/3,
    // WebSocket), messages without answers and pushes, texts of scripts and bodies that are kept,
    // and datagrams (QUIC).

    /// Something may be written while a send is in flight; it waits until that one is taken. False:
    /// only `request` and `open` write, and not while a send is in flight. Always true over
    /// datagrams.
    const WRITES_AHEAD: bool = false;

    /// How a request fails on a connection whose server makes brunt write, and does not read.
    const FLOODED: FailureKind = FailureKind::Http2Error;

    /// When a timer of the protocol itself is due on an open connection, beside those of the
    /// requests in flight; [`u64::MAX`] for never. It changes with what is received, and when
    /// requests end; over datagrams also with what is sent, and on connections that are being
    /// opened.
    #[inline]
    fn next_timeout_ns(&self, _connection: &Self::Connection) -> u64 {
        u64::MAX
    }

    /// A timer of the protocol is due, or, where responses come in any order, a request in flight
    /// had no response in time. Gives what that brings about; to be called until that is nothing.
    /// `places` are those of the connection.
    fn timed_out(
        &mut self,
        _connection: &mut Self::Connection,
        _now_ns: u64,
        _places: &[RequestTiming],
        _out: &mut Out,
    ) -> Option<TimedOut> {
        None
    }

    /// What was written before is sent: what was held back meanwhile can be.
    fn resume(&mut self, _connection: &mut Self::Connection, _out: &mut Out) {}

    /// What the server allows; absent where it cannot tell.
    #[inline]
    fn capacity(&self, _connection: &Self::Connection) -> Option<Capacity> {
        None
    }

    /// What the server first sent in place of an answer, since this was last asked: the beginning
    /// of a message that answers none, or the `grpc-message` of a call that failed.
    fn take_unexpected(&mut self) -> Option<String> {
        None
    }

    /// Bytes that may wait behind a send; a server that makes brunt write more does not read.
    fn waiting_bytes_max(&self) -> usize {
        0
    }

    /// Servers may send messages that answer nothing, which look as replies do.
    const MAY_BE_PUSHED_TO: bool = false;

    /// All that was written on a connection so far is in the send that begins.
    #[inline]
    fn sending(&mut self, _connection: &mut Self::Connection) {}

    /// All that was sent on a connection was taken by the kernel: where a request needs no
    /// response, it is answered by that. Gives its place; to be called until there is none.
    #[inline]
    fn taken(&mut self, _connection: &mut Self::Connection, _now_ns: u64) -> Option<(u32, Answer)> {
        None
    }

    /// Whether the request that was written last is still to be handed to the kernel: what is
    /// received next cannot answer it. Called before it where [`Self::MAY_BE_PUSHED_TO`].
    fn note_put_off(&mut self, _connection: &mut Self::Connection, _is_put_off: bool) {}

    /// Which bodies are kept from now on, for [`Self::take_body`].
    fn want_bodies(&mut self, _wanted: BodiesWanted) {}

    /// Takes the body of the response that was given out last, where it was wanted.
    fn take_body(&mut self, _connection: &mut Self::Connection) -> Option<Body> {
        None
    }

    /// From now on requests come as text of HTTP/1, and their numbers are those of their kinds.
    fn accept_texts(&mut self) {}

    /// A request whose text is written by the worker takes a place, below the depth.
    fn place_of_text(&mut self, _connection: &mut Self::Connection) -> u32 {
        0
    }

    /// Over datagrams, gives what is to be sent next on a connection on which no send is in flight,
    /// at least one byte; absent for nothing. Called again when that was taken. `spare` is an empty
    /// buffer to be taken for it.
    fn transmit(
        &mut self,
        _connection: &mut Self::Connection,
        _now_ns: u64,
        _spare: &mut Vec<u8>,
    ) -> Option<OutgoingDatagrams> {
        None
    }

    /// The handshake of an open connection that the protocol itself has secured.
    fn secured(&self, _connection: &Self::Connection) -> Option<Secured> {
        None
    }

    /// What QUIC counted on the connection since this was last asked; absent without it.
    fn take_quic(&mut self, _connection: &mut Self::Connection) -> Option<QuicCounts> {
        None
    }
}

/// Why a request cannot be encoded, or its protocol not be spoken as the plan says.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EncodeError(String);

impl EncodeError {
    /// The protocol cannot carry the request of `plan` that has this index.
    fn request(plan: &Plan, index: usize, reason: impl Display) -> Self {
        if plan.traffic.requests.count() > 1 {
            Self(format!("request {} of the list: {reason}", index + 1))
        } else {
            Self::protocol(reason)
        }
    }

    /// The protocol cannot be spoken as the plan says.
    fn protocol(reason: impl Display) -> Self {
        Self(reason.to_string())
    }
}
