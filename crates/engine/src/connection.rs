//! One client connection: its state, its protocol, and what is in flight on it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use brunt_io::backend::SendCall;
use brunt_record::Opening;

use crate::protocol::{ClientProtocol, WorkerTransport};

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Not open; a new attempt is due at this instant (`u64::MAX`: never).
    Down {
        /// When the next attempt is due.
        retry_ns: u64,
    },
    /// An attempt is in flight.
    Connecting,
    /// TCP and TLS are there; the server's first words are awaited, such as its HTTP/2 settings.
    Greeting {
        /// When the TCP connection was there.
        connected_ns: u64,
    },
    /// An attempt is in flight that is a request: it is answered when the connection is open.
    Attempting,
    /// Open. Where connections are what is requested: one can be opened.
    Open,
    /// brunt has told the server that it sends no more; it awaits the server's answer.
    Closing {
        /// When it stops waiting, if nothing comes before.
        quiet_ns: u64,
        /// When it stops waiting in any case.
        until_ns: u64,
    },
}

/// What is written ahead on a connection, and when what was written was sent.
#[derive(Debug)]
pub(crate) struct Writing {
    /// Bytes that wait until the send in flight is taken.
    pub(crate) outbox: Vec<u8>,
    /// How the requests in flight were sent; absent on a connection without kernel stamps.
    pub(crate) sends: Option<Box<SendTimes>>,
}

/// How the requests in flight on a connection were sent, by their places.
#[derive(Debug)]
pub(crate) struct SendTimes {
    pub(crate) of_places: Box<[SendTime]>,
    /// Places whose requests are in the send in flight.
    pub(crate) in_send: Vec<u32>,
    /// Places whose requests wait for it to be taken.
    pub(crate) waiting: Vec<u32>,
    /// Since when each place without a request would have been free, had brunt taken no time; in an
    /// open loop.
    free_ns: BinaryHeap<Reverse<u64>>,
}

/// How one request was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SendTime {
    /// Since when the request could have been sent.
    pub(crate) free_ns: u64,
    /// The send call that took the request; absent until it was sent.
    pub(crate) send_call: Option<SendCall>,
}

impl Writing {
    /// The state of a new connection, with at most `depth` requests in flight.
    pub(crate) fn new(depth: u32, is_stamped: bool) -> Self {
        Self {
            outbox: Vec::new(),
            sends: is_stamped.then(|| {
                Box::new(SendTimes {
                    of_places: vec![SendTime::default(); depth as usize].into(),
                    in_send: Vec::new(),
                    waiting: Vec::new(),
                    free_ns: BinaryHeap::with_capacity(depth as usize),
                })
            }),
        }
    }
}

impl SendTimes {
    /// The request of `place`, which could have been sent since `free_ns`, was written.
    pub(crate) fn written(&mut self, place: u32, free_ns: u64) {
        self.of_places[place as usize] = SendTime {
            free_ns,
            send_call: None,
        };
        self.waiting.push(place);
    }

    /// The request of `place` was written, and its parts are not to be known.
    pub(crate) fn written_again(&mut self, place: u32) {
        self.of_places[place as usize] = SendTime::default();
    }

    /// The place that has been free longest, of `places` free ones, is taken at `now_ns`; gives
    /// since when it was.
    pub(crate) fn take_free(&mut self, places: u32, now_ns: u64) -> u64 {
        // The server may have taken some back.
        while self.free_ns.len() > places as usize {
            self.free_ns.pop();
        }
        let oldest = self.free_ns.pop();
        oldest.map_or(now_ns, |Reverse(free_ns)| free_ns)
    }

    /// `places` more are free, since `free_ns`.
    pub(crate) fn freed(&mut self, places: u32, free_ns: u64) {
        let unknown = self.of_places.len() - self.free_ns.len();
        let places = unknown.min(places as usize);
        self.free_ns.extend((0..places).map(|_| Reverse(free_ns)));
    }

    /// All that was written is in the send that begins.
    pub(crate) fn begin(&mut self) {
        self.in_send.append(&mut self.waiting);
    }

    /// The send in flight was taken, in this call.
    pub(crate) fn taken(&mut self, send_call: Option<SendCall>) {
        for place in self.in_send.drain(..) {
            self.of_places[place as usize].send_call = send_call;
        }
    }
}

/// One connection of a worker. Its requests in flight are kept by the worker, in `depth` places
/// per connection.
#[derive(Debug)]
pub(crate) struct Connection<P: ClientProtocol> {
    pub(crate) state: State,
    /// What the protocol keeps of it.
    pub(crate) protocol: P::Connection,
    /// Absent while the connection is down, and where the protocol writes nothing ahead.
    pub(crate) writing: Option<Box<Writing>>,
    /// Requests sent and not yet answered.
    pub(crate) in_flight: u32,
    /// Requests that may be in flight at once, by what was asked for and what the server allows.
    pub(crate) depth: u32,
    /// A send was not yet taken by the kernel in full.
    pub(crate) sending: bool,
    /// Bytes of that send that are in no count yet: it is a large one.
    pub(crate) uncounted_bytes: u64,
    /// Set-up does not wait for it: it was open once, failed often enough, or is not to be opened.
    pub(crate) settled: bool,
    /// The connection is to be held, and is not open: it never was, or the last attempt failed.
    pub(crate) is_lacking: bool,
    /// Since when the connection is open and has nothing in flight, and yet can take nothing,
    /// because the server has not taken what was sent before; `u64::MAX` where that is not so.
    pub(crate) blocked_since_ns: u64,
    /// The attempt in flight counts among those that are bounded.
    pub(crate) is_bounded: bool,
    /// The connection is in the list from which arrivals take one.
    pub(crate) is_offered: bool,
    /// When the latest attempt began, and when it led to an open connection.
    pub(crate) opened_from_ns: u64,
    pub(crate) opened_ns: u64,
    /// A request was sent on it since it was opened.
    pub(crate) is_used: bool,
    /// A request on it ended since it was opened: with a reply, or in failure.
    pub(crate) has_ended_one: bool,
    /// It carries a request that was sent again, and nothing behind it until that is answered.
    pub(crate) is_alone: bool,
    /// The server allows no request on it at present.
    pub(crate) is_shut: bool,
    /// Since when the connection could take a request, by the kernel's stamp where there is one.
    pub(crate) free_ns: u64,
    /// In an open loop with stamps, since when it could take a request, had brunt taken no time so
    /// far. From the send of a request until its response, this holds the value of that request.
    /// Where responses come in any order, it holds only that of the request being written.
    pub(crate) punctual_free_ns: u64,
    /// Think time from `free_ns` to the next request, nanoseconds, in a closed loop and in a
    /// session.
    pub(crate) think_ns: u64,
    /// Whether it is a stamp that tells when the last bytes came.
    pub(crate) is_stamp_known: bool,
    /// How late brunt was with the last request on the connection, nanoseconds; in an open loop, as
    /// far as that is known.
    pub(crate) late_ns: u64,
    /// When the connection was due by plan, until it has a reply; `u64::MAX` where it was not
    /// planned.
    pub(crate) session_due_ns: u64,
    /// Since when the connection waits for its next attempt, after one that failed; `u64::MAX`
    /// where it does not.
    pub(crate) waiting_since_ns: u64,
    /// It is down because no request needs it.
    pub(crate) is_unneeded: bool,
    /// Attempts in a row that failed, or led to a connection of no use.
    pub(crate) attempts: u32,
    /// Requests that it may still carry.
    pub(crate) requests_left: u64,
    /// What is left of its part of the run's requests, and what was sent of that; [`u64::MAX`] left
    /// where it has none of its own.
    pub(crate) part_left: u64,
    pub(crate) part_sent: u64,
    /// Bytes read from it since it was opened.
    pub(crate) received_bytes: u64,
    /// The deadline that is armed for it, `u64::MAX` for none.
    pub(crate) armed_ns: u64,
}

impl<P: ClientProtocol> Connection<P> {
    /// A connection that is not open; set-up waits for it or not.
    pub(crate) fn new(protocol: P::Connection, is_awaited: bool) -> Self {
        Self {
            state: State::Down { retry_ns: u64::MAX },
            protocol,
            writing: None,
            in_flight: 0,
            depth: 0,
            sending: false,
            uncounted_bytes: 0,
            settled: !is_awaited,
            is_lacking: is_awaited,
            blocked_since_ns: u64::MAX,
            is_bounded: false,
            is_offered: false,
            opened_ns: 0,
            opened_from_ns: 0,
            is_used: false,
            has_ended_one: false,
            is_alone: false,
            is_shut: false,
            free_ns: 0,
            punctual_free_ns: 0,
            think_ns: 0,
            is_stamp_known: false,
            late_ns: 0,
            session_due_ns: u64::MAX,
            waiting_since_ns: u64::MAX,
            is_unneeded: false,
            attempts: 0,
            requests_left: 0,
            part_left: u64::MAX,
            part_sent: 0,
            received_bytes: 0,
            armed_ns: u64::MAX,
        }
    }

    /// TCP and TLS are there.
    pub(crate) fn established(&mut self, depth: u32, is_stamped: bool) {
        self.received_bytes = 0;
        self.sending = false;
        self.has_ended_one = false;
        self.is_alone = false;
        self.think_ns = 0;
        self.is_shut = false;
        self.depth = depth;
        self.writing = P::WRITES_AHEAD.then(|| Box::new(Writing::new(depth, is_stamped)));
    }

    /// Whether the connection is open, nothing is in flight on it, and nothing is being sent.
    /// Datagrams may be at any time, such as acknowledgements, and no later one waits for them.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.state == State::Open
            && self.in_flight == 0
            && !(self.sending && P::Transport::IS_RELIABLE)
            && self.depth > 0
            && self.requests_left > 0
    }

    /// An open connection at rest, as another round finds it at `now_ns`.
    pub(crate) fn kept(self, now_ns: u64) -> Self {
        let is_awaited = false;
        Self {
            state: State::Open,
            writing: self.writing,
            sending: self.sending,
            depth: self.depth,
            opened_ns: self.opened_ns,
            opened_from_ns: self.opened_from_ns,
            // What was opened for an earlier round is no new connection.
            has_ended_one: true,
            free_ns: now_ns,
            punctual_free_ns: now_ns,
            requests_left: self.requests_left,
            received_bytes: self.received_bytes,
            ..Self::new(self.protocol, is_awaited)
        }
    }

    /// Whether the connection could take a request now: it is open, and neither full nor spent.
    pub(crate) fn has_room(&self) -> bool {
        self.state == State::Open && self.may_write() && self.room() > 0
    }

    /// Whether its server answered before it had read what it answers, so that nothing is awaited
    /// and nothing can be sent.
    #[inline]
    pub(crate) fn is_stuck(&self) -> bool {
        self.state == State::Open && self.in_flight == 0 && !self.may_write()
    }

    /// What is due at `due_ns` takes a place on it: when it would have, had brunt been on time with
    /// those before it there, is kept for its parts. On connections with stamps, in an open loop.
    pub(crate) fn take_place(&mut self, due_ns: u64, now_ns: u64) {
        let places = self.depth.saturating_sub(self.in_flight);
        if let Some(sends) = self.sends() {
            self.punctual_free_ns = sends.take_free(places, now_ns);
        }
        self.punctual_free_ns = self.punctual_free_ns.max(due_ns);
        self.late_ns = now_ns.saturating_sub(self.punctual_free_ns);
    }

    /// Whether nothing is to be opened in its place.
    pub(crate) fn is_down_for_good(&self) -> bool {
        self.state == State::Down { retry_ns: u64::MAX }
    }

    /// Whether a user who was answered on it, which is gone, thinks before the next one is opened:
    /// a server that serves one connection after the other would wait for its request.
    pub(crate) fn thinks_first(&self) -> bool {
        self.is_used && self.think_ns > 0
    }

    /// When the connection may send again, in a closed loop.
    pub(crate) fn resume_ns(&self) -> u64 {
        self.free_ns.saturating_add(self.think_ns)
    }

    /// Whether requests may be written now.
    pub(crate) fn may_write(&self) -> bool {
        !self.sending || P::WRITES_AHEAD
    }

    /// The attempt that opened it, where no request on it has ended since.
    #[inline]
    pub(crate) fn opening(&self) -> Option<Opening> {
        (!self.has_ended_one).then_some(Opening {
            from_ns: self.opened_from_ns,
            to_ns: self.opened_ns,
        })
    }

    /// How many more requests may be in flight on it.
    pub(crate) fn room(&self) -> u64 {
        u64::from(self.depth.saturating_sub(self.in_flight))
            .min(self.requests_left)
            .min(self.part_left)
    }

    /// How the requests in its places were sent, where that is kept.
    pub(crate) fn sends(&mut self) -> Option<&mut SendTimes> {
        self.writing.as_mut()?.sends.as_deref_mut()
    }
}
