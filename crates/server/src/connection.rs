//! What the server keeps of one connection: next to nothing while it is idle.

use std::rc::Rc;

use crate::answer::{After, Context};
use crate::batch::{Batch, Hold, Room};
use crate::http1::answer_input;
use crate::http1::reply::{PendingReply, Step};
use crate::http1::request::{KnownHead, RequestReader};
use crate::http2::Http2Session;
use crate::websocket::WebSocketSession;
use crate::worker::{Link, Linked};

/// Input that may wait on one connection while a reply is in flight.
pub(crate) const INPUT_BYTES_MAX: usize = 1 << 20;

/// One slot's connection.
#[derive(Debug, Default)]
pub(crate) struct HttpConnection {
    pub(crate) link: Link,
    /// Whether its first bytes have shown which protocol it speaks.
    pub(crate) begun: bool,
    /// What to do when nothing is in flight; other than `KeepOpen`, no input matters any more.
    pub(crate) after: After,
    /// What of the room for output is in flight.
    pub(crate) sending_hold: Hold,
    /// Present while a request or a reply of HTTP/1.1 is incomplete, and on a connection that
    /// speaks WebSocket.
    pub(crate) work: Option<Box<Work>>,
    /// Present on a connection that speaks HTTP/2.
    pub(crate) http2: Option<Box<Http2>>,
}

impl Linked for HttpConnection {
    fn link(&mut self) -> &mut Link {
        &mut self.link
    }

    fn wake_ns(&mut self) -> Option<&mut Option<u64>> {
        match (&mut self.http2, &mut self.work) {
            (Some(http2), _) => Some(&mut http2.wake_ns),
            (None, Some(work)) => Some(&mut work.wake_ns),
            (None, None) => None,
        }
    }
}

/// An incomplete request or reply of HTTP/1.1, or what is kept of a connection of WebSocket.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Present once it speaks WebSocket.
    pub(crate) websocket: Option<Box<WebSocketSession>>,
    pub(crate) reader: RequestReader,
    pub(crate) stream: Option<PendingReply>,
    /// When the stream wants to go on.
    pub(crate) wake_ns: Option<u64>,
    /// When the answer that is sent next was due, if it had to wait for an instant.
    pub(crate) due_ns: Option<u64>,
    /// When a request in the input was noticed: at the latest input or, if that was later, at the
    /// latest part of a reply before it.
    pub(crate) noticed_ns: u64,
    pub(crate) input: Input,
}

impl Work {
    /// Keeps input that was noticed at `now_ns` for later; false when there would be too much of
    /// it.
    pub(crate) fn keep(&mut self, bytes: &[u8], now_ns: u64, room: &Rc<Room>) -> bool {
        self.noticed_ns = now_ns;
        self.input.keep(bytes, room)
    }

    /// Whether the head of a request is coming.
    pub(crate) fn is_in_head(&self) -> bool {
        self.stream.is_none() && self.websocket.is_none() && !self.reader.is_in_body()
    }

    /// Whether nothing is incomplete.
    pub(crate) fn is_done(&self) -> bool {
        let is_between = self.stream.is_none() && self.websocket.is_none();
        is_between && self.input.rest().is_empty() && self.reader.is_idle()
    }

    /// Whether what comes is to be answered at once: messages, with nothing before them.
    pub(crate) fn is_open(&self) -> bool {
        let websocket = self.websocket.as_ref();
        let is_listening = websocket.is_some_and(|websocket| !websocket.is_sending());
        is_listening && self.wake_ns.is_none() && self.input.rest().is_empty()
    }

    /// Goes on with the reply in hand, or with the input.
    pub(crate) fn step(
        &mut self,
        known: &mut KnownHead,
        batch: &mut Batch,
        room: &Rc<Room>,
        context: &Context<'_>,
    ) -> Step {
        if let Some(stream) = &mut self.stream {
            let step = stream.step(context.now_ns(), batch, context.counters);
            if let Step::End(_) = step {
                self.stream = None;
            }
            return step;
        }
        let rest = self.input.rest();
        let (taken, step) = if let Some(websocket) = &mut self.websocket {
            websocket.advance(rest, batch, room, context)
        } else {
            answer_input(&mut self.reader, known, rest, batch, context)
        };
        self.input.take(taken);
        step
    }
}

/// A connection that speaks HTTP/2.
#[derive(Debug)]
pub(crate) struct Http2 {
    pub(crate) session: Http2Session,
    /// An incomplete frame, or what waits for room in the output.
    pub(crate) input: Input,
    /// When the latest bytes came.
    pub(crate) noticed_ns: u64,
    /// Input that came while a send was in flight.
    pub(crate) pending: Batch,
    /// What of the room for output it has beside what is being sent: for `pending`, and for what is
    /// known of its streams.
    pub(crate) pending_hold: Hold,
    pub(crate) streams_hold: Hold,
    /// When the worker is to come back.
    pub(crate) wake_ns: Option<u64>,
    /// When the connection is closed at the latest, once it has nothing more to do but send.
    pub(crate) closes_ns: Option<u64>,
}

impl Http2 {
    pub(crate) fn new(session: Http2Session) -> Self {
        Self {
            session,
            input: Input::default(),
            noticed_ns: 0,
            pending: Batch::default(),
            pending_hold: Hold::default(),
            streams_hold: Hold::default(),
            wake_ns: None,
            closes_ns: None,
        }
    }

    /// Has the room for output know what it has now beside what is being sent; false when that is
    /// too much.
    pub(crate) fn holds_output(&mut self, room: &Rc<Room>) -> bool {
        let pending_bytes = self.pending.length();
        let streams_bytes = self.session.streams.bytes();
        if !self.pending_hold.set(pending_bytes, room)
            || !self.streams_hold.set(streams_bytes, room)
        {
            return false;
        }
        self.pending_hold.correct(self.pending.capacity());
        true
    }
}

/// Bytes that came and are not dealt with.
#[derive(Debug, Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    /// How many of them are dealt with.
    taken: usize,
    hold: Hold,
}

impl Input {
    /// The bytes that are not dealt with.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.taken..]
    }

    /// Notes that `count` bytes are dealt with.
    pub(crate) fn take(&mut self, count: usize) {
        self.taken += count;
        if self.taken == self.bytes.len() {
            // An idle connection holds no memory for its input.
            *self = Self::default();
        }
    }

    /// Keeps more for later; false when there would be too much of it: on this connection, or
    /// for its share of the room.
    pub(crate) fn keep(&mut self, bytes: &[u8], room: &Rc<Room>) -> bool {
        if self.taken > 0 {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
        let length = self.bytes.len() + bytes.len();
        if length > INPUT_BYTES_MAX || !self.hold.set(length.max(self.bytes.capacity()), room) {
            return false;
        }
        self.bytes.extend_from_slice(bytes);
        // It grows by more than was asked for, and may do so.
        self.hold.correct(self.bytes.capacity());
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::INPUT_BUFFERS;

    #[test]
    fn an_idle_connection_is_small() {
        assert!(size_of::<HttpConnection>() <= 40);
    }

    #[test]
    fn input_is_kept_in_order_and_bounded() {
        let room = Room::new(64 << 20, 1_000, INPUT_BUFFERS);
        let mut work = Work::default();
        assert!(work.keep(b"abc", 7, &room));
        work.input.take(2);
        assert!(work.keep(b"de", 9, &room));
        assert_eq!(work.noticed_ns, 9);
        assert_eq!(work.input.rest(), b"cde");
        assert!(!work.is_done());
        work.input.take(3);
        assert!(work.is_done());
        assert_eq!(room.shared_bytes(), 0);
        assert!(work.keep(&vec![0; INPUT_BYTES_MAX], 10, &room));
        assert!(!work.keep(b"x", 11, &room));
        assert_eq!(room.shared_bytes(), INPUT_BYTES_MAX);
        drop(work);
        assert_eq!(room.shared_bytes(), 0);
    }
}
