//! The simulated network and the server's side of connections: a queue of timed events.
//!
//! What brunt sends is read when it is sent, for the network brings it to the server unchanged and
//! in order: what travels is the number of messages.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use brunt_io::backend::{Event, Slot};
use brunt_io::timers::Timers;
use rand::Rng;
use rand_pcg::Pcg64;

use super::counts::SimCounts;
use super::handle::SimHandle;
use super::ledger::Ledger;
use super::link::{Client, Link, LinkId, Links, Server};
use super::message::{Message, Scanner};
use super::outside::Outside;
use super::piece::{Completes, Piece};
use super::reference::Reference;
use super::reply::Replies;
use super::request::ReceivedRequest;
use super::served_protocol::ServedProtocol;
use super::settings::SimSettings;
use super::side::Side;
use super::streams::stream::{self, Step};
use super::tls::Wire;

/// Something that happens at its instant.
#[derive(Clone, Debug)]
pub enum SimEvent {
    /// An attempt to connect reaches the server.
    Attempt(LinkId),
    /// The server's answer to it reaches brunt: it failed with this errno, or not.
    Answered(LinkId, Option<i32>),
    /// The network has taken all of a send.
    Taken(LinkId),
    /// Bytes that the network took at `taken_ns` reach the server and complete `count` messages.
    Messages {
        link: LinkId,
        taken_ns: u64,
        count: usize,
    },
    /// The server, which served a request from `from_ns` to `to_ns`, is free for the next.
    Served {
        link: LinkId,
        from_ns: u64,
        to_ns: u64,
    },
    /// The server answers it, or refuses it, because it is above a limit.
    Answers { link: LinkId, is_limited: bool },
    /// The connection has been idle for as long as it may, if no request beyond so many came.
    IdlesOut(LinkId, u64),
    /// Something reaches brunt.
    Arrives(LinkId, Piece),
    /// The end of brunt's side reaches the server.
    ClientClosed(LinkId),
    /// Bytes reach the reference server.
    Carried(LinkId, Rc<[u8]>),
    /// Brunt has made room for what the reference server sends next.
    Drained(LinkId),
    /// The reference server has something to do.
    ReferenceWakes,
    /// Something happens to a stream.
    Stream(LinkId, Step),
    /// The server goes away.
    OutageBegins,
}

/// What brunt's side is to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    Connected,
    ConnectFailed(i32),
    Sent,
    /// There is something in `Link::arrivals`.
    Arrived,
}

/// Everything outside of brunt.
#[derive(Debug)]
pub struct World {
    pub(super) settings: SimSettings,
    pub(super) random: Pcg64,
    pub(super) agenda: Timers<SimEvent>,
    pub(super) links: Links,
    pub(super) replies: Replies,
    pub(super) counts: Rc<RefCell<SimCounts>>,
    pub(super) notices: VecDeque<(LinkId, Notice)>,
    wire: Wire,
    /// The reference server, where it takes the simulated one's place.
    pub(super) reference: Option<Reference>,
    pub(super) ledger: Rc<RefCell<Ledger>>,
    pub(super) in_service: u32,
    /// When the limiter admits the next request, after a burst.
    pub(super) admits_ns: u64,
    /// Requests that wait for the server, longest waiting first.
    pub(super) waiting: VecDeque<LinkId>,
    /// Brunt's side.
    pub(super) side: Side,
    /// Plain text of one send.
    plain: Vec<u8>,
    /// What the server sends on streams.
    pub(super) stream_piece: Rc<[u8]>,
}

impl World {
    /// A world of its own for `worker`.
    pub(super) fn new(
        settings: &SimSettings,
        wire: &Wire,
        worker: u32,
        handle: &SimHandle,
    ) -> Self {
        let mut agenda = Timers::default();
        if let Some(outage) = settings.server.outage {
            agenda.push(outage.from_ns, SimEvent::OutageBegins);
        }
        Self {
            random: Pcg64::new(settings.seed.into(), worker.into()),
            agenda,
            links: Links::default(),
            replies: Replies::default(),
            counts: Rc::clone(&handle.counts),
            notices: VecDeque::new(),
            reference: wire.served_protocol.is_of_reference(settings).then(|| {
                let http2 = settings.reference.unwrap_or_default();
                Reference::new(http2, wire.tls.clone())
            }),
            wire: wire.clone(),
            ledger: Rc::clone(&handle.ledger),
            in_service: 0,
            admits_ns: 0,
            waiting: VecDeque::new(),
            side: Side::default(),
            plain: Vec::new(),
            stream_piece: stream::piece(),
            settings: settings.clone(),
        }
    }

    /// Starts an attempt to connect.
    pub(super) fn attempt(&mut self, now_ns: u64, slot: Slot) -> LinkId {
        let server = &self.settings.server;
        let served_protocol = self.wire.served_protocol;
        let link = Link {
            slot: Some(slot),
            scanner: Scanner::of(served_protocol, server),
            tls: match self.reference {
                None => self.wire.server_tls().map(Box::new),
                Some(_) => None,
            },
            stream: (served_protocol == ServedProtocol::Streams).then(Box::default),
            ..Link::default()
        };
        let id = self.links.add(link);
        self.after_network(now_ns, SimEvent::Attempt(id));
        id
    }

    /// The protocol above TCP and TLS.
    pub(super) fn served_protocol(&self) -> ServedProtocol {
        self.wire.served_protocol
    }

    /// Whether nothing but TLS comes before the first request of a connection.
    fn opens_with_request(&self) -> bool {
        let messages = self.settings.server.messages.as_ref();
        match self.wire.served_protocol {
            ServedProtocol::Http1 | ServedProtocol::Streams => true,
            ServedProtocol::Http2 | ServedProtocol::WebSocket => false,
            ServedProtocol::Messages => !messages.is_some_and(|messages| messages.has_opening),
        }
    }

    /// Whether a connection is open for brunt when TCP has opened it.
    pub(super) fn opens_with_tcp(&self) -> bool {
        self.opens_with_request() && self.wire.tls.is_none()
    }

    /// Sends on an open connection.
    pub(super) fn send_on(&mut self, now_ns: u64, id: LinkId, bytes: &[u8]) {
        if self.send_stream(now_ns, id, bytes.len() as u64) {
            return;
        }
        if self.reference.is_some() {
            return self.carry(now_ns, id, bytes);
        }
        let opens_with_tls = self.opens_with_request();
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        link.sending = true;
        let part_bytes = self.settings.send_buffer_bytes.get() as usize;
        let part_of = |bytes: usize| (bytes.max(1) - 1) / part_bytes;
        let round_trip_ns = 2 * self.settings.network_ns;
        let taken_ns = |part: usize| now_ns + part as u64 * round_trip_ns;
        let last_part = part_of(bytes.len());
        let (mut part, mut count, mut requests) = (0, 0, 0);
        let mut parts = Vec::new();
        let in_flight = &mut link.in_flight;
        let mut found = |end: usize, message: Message| {
            // The plain text of TLS may be longer than what carries its end.
            let of = part_of(end).min(last_part);
            if of != part && count > 0 {
                parts.push((part, count));
                count = 0;
            }
            (part, count) = (of, count + 1);
            requests += message.requests();
            in_flight.push_back(message);
        };
        self.counts.borrow_mut().bytes_sent += match &mut link.tls {
            None => {
                link.scanner.scan(bytes, found);
                bytes.len() as u64
            }
            Some(tls) => {
                self.plain.clear();
                if let Some(message) = tls.receive(bytes, opens_with_tls, &mut self.plain) {
                    found(1, message);
                }
                link.scanner.scan(&self.plain, found);
                self.plain.len() as u64
            }
        };
        self.counts.borrow_mut().requests_sent += requests;
        parts.extend((count > 0).then_some((part, count)));
        for (part, count) in parts {
            let taken_ns = taken_ns(part);
            let messages = SimEvent::Messages {
                link: id,
                taken_ns,
                count,
            };
            self.after_network(taken_ns, messages);
        }
        self.agenda.push(taken_ns(last_part), SimEvent::Taken(id));
    }

    /// Ends brunt's side of a connection.
    pub(super) fn close_link(&mut self, now_ns: u64, id: LinkId) {
        if let Some(link) = self.links.get_mut(id) {
            link.client = Client::Closed;
            link.closed_ns = Some(now_ns);
            link.arrivals.clear();
            self.after_network(now_ns, SimEvent::ClientClosed(id));
        }
    }

    pub(super) fn handle_event(&mut self, at_ns: u64, event: SimEvent) {
        match event {
            SimEvent::Attempt(id) => self.answer_attempt(at_ns, id),
            SimEvent::Answered(id, errno) => self.attempt_answered(id, errno),
            SimEvent::Taken(id) => {
                // A send that was reported as failed has no further event.
                let link = self.links.get_mut(id);
                if let Some(link) = link.filter(|link| link.sending) {
                    link.sending = false;
                    self.notices.push_back((id, Notice::Sent));
                }
            }
            SimEvent::Messages {
                link,
                taken_ns,
                count,
            } => {
                for _ in 0..count {
                    self.take_message(at_ns, link, taken_ns);
                }
            }
            SimEvent::Served {
                link,
                from_ns,
                to_ns,
            } => {
                self.note_service(from_ns, to_ns);
                self.served(at_ns, link);
            }
            SimEvent::Answers { link, is_limited } => self.answer(at_ns, link, is_limited),
            SimEvent::IdlesOut(id, turns) => self.idled_out(at_ns, id, turns),
            SimEvent::Arrives(id, piece) => self.arrived(at_ns, id, piece),
            SimEvent::ClientClosed(id) => {
                self.reference_left(at_ns, id);
                self.abandon(id);
                if let Some(link) = self.links.get_mut(id) {
                    let lost = link.in_flight.drain(..).map(|message| message.requests());
                    self.counts.borrow_mut().requests_lost += lost.sum::<u64>();
                }
                self.links.remove(id);
            }
            SimEvent::Carried(id, bytes) => self.carried(at_ns, id, bytes),
            SimEvent::Drained(id) => self.reference_drained(at_ns, id),
            SimEvent::ReferenceWakes => self.move_reference(at_ns),
            SimEvent::Stream(id, step) => self.step_stream(at_ns, id, step),
            SimEvent::OutageBegins => {
                for id in self.links.ids() {
                    self.end(at_ns, id, Piece::Reset);
                    let lost = |slot| Event::ReceiveFailed(slot, libc::ECONNRESET);
                    self.notify_reference(at_ns, id, lost, Rc::default());
                }
            }
        }
    }

    fn answer_attempt(&mut self, at_ns: u64, id: LinkId) {
        let server = &self.settings.server;
        let faults = server.faults;
        let takes_no_more = server
            .accepts_max
            .is_some_and(|most| self.counts.borrow().connections_accepted >= most.get());
        let is_out = server.outage.is_some_and(|outage| outage.holds(at_ns));
        if is_out || self.chance(faults.connect_refused) {
            self.counts.borrow_mut().connections_refused += 1;
            let refused = SimEvent::Answered(id, Some(libc::ECONNREFUSED));
            self.after_network(at_ns, refused);
        } else if takes_no_more || self.chance(faults.connect_unanswered) {
            self.counts.borrow_mut().connections_unanswered += 1;
        } else if let Some(link) = self.links.get_mut(id) {
            link.server = Server::Open;
            self.counts.borrow_mut().connections_accepted += 1;
            self.after_network(at_ns, SimEvent::Answered(id, None));
            self.begin_stream(at_ns, id);
            self.reference_accepts(at_ns, id);
            self.limit_idle(at_ns, id);
        }
    }

    fn attempt_answered(&mut self, id: LinkId, errno: Option<i32>) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        if link.client != Client::Connecting {
            return;
        }
        let (client, notice) = match errno {
            None => (Client::Open, Notice::Connected),
            Some(errno) => (Client::Ended, Notice::ConnectFailed(errno)),
        };
        link.client = client;
        self.notices.push_back((id, notice));
    }

    fn take_message(&mut self, at_ns: u64, id: LinkId, taken_ns: u64) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        let Some(message) = link.in_flight.pop_front() else {
            return;
        };
        let is_late = link.closed_ns.is_some_and(|closed_ns| closed_ns < taken_ns);
        if is_late || matches!(link.server, Server::Absent | Server::Closed) {
            self.counts.borrow_mut().requests_lost += message.requests();
            if !is_late {
                // A peer that sends to a closed socket gets a reset.
                self.after_network(at_ns, SimEvent::Arrives(id, Piece::Reset));
            }
            return;
        }
        match message {
            Message::Request(request) => {
                link.pending.push_back(request);
                self.counts.borrow_mut().requests += 1;
                self.begin(at_ns, id);
            }
            Message::Opening(bytes) => self.answer_opening(at_ns, id, bytes),
            Message::Exchange(bytes) => {
                link.messages.push_back(bytes);
                link.pending.push_back(ReceivedRequest::default());
                self.counts.borrow_mut().requests += 1;
                self.begin(at_ns, id);
            }
            Message::Handshake {
                answer,
                is_first,
                completes,
            } => {
                if !is_first || self.begins_handshake(at_ns, id) {
                    self.deliver_as_is(at_ns, id, answer, completes);
                }
            }
            Message::TlsFailed { answer } => {
                self.deliver_as_is(at_ns, id, answer, Completes::Nothing);
                self.end(at_ns, id, Piece::END);
            }
        }
    }

    /// Whether the server takes part in the handshake that now begins.
    pub(super) fn begins_handshake(&mut self, at_ns: u64, id: LinkId) -> bool {
        let faults = self.settings.server.faults;
        if self.chance(faults.handshake_cut) {
            self.counts.borrow_mut().handshakes_cut += 1;
            self.end(at_ns, id, Piece::END);
            false
        } else if self.chance(faults.handshake_silent) {
            self.counts.borrow_mut().handshakes_silent += 1;
            self.fall_silent(id);
            false
        } else {
            true
        }
    }

    pub(super) fn fall_silent(&mut self, id: LinkId) {
        if let Some(link) = self.links.get_mut(id) {
            link.is_silent = true;
        }
    }

    /// Sends bytes of HTTP to brunt, perhaps in pieces.
    pub(super) fn deliver(&mut self, at_ns: u64, id: LinkId, bytes: Rc<[u8]>, whole: Completes) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        match link.tls.as_mut().map(|tls| tls.send(&bytes)) {
            None => self.deliver_as_is(at_ns, id, bytes, whole),
            Some(records) => self.deliver_as_is(at_ns, id, records, whole),
        }
    }

    /// Sends bytes that need no TLS, or have been through it.
    pub(super) fn deliver_as_is(
        &mut self,
        at_ns: u64,
        id: LinkId,
        bytes: Rc<[u8]>,
        whole: Completes,
    ) {
        let (most, gap_ns) = {
            let server = &self.settings.server;
            (server.pieces_max.get(), server.piece_gap_ns)
        };
        let mut pieces = if most > 1 {
            self.random.random_range(1..=most)
        } else {
            1
        };
        let length = bytes.len() as u32;
        let (mut start, mut sent_ns) = (0, at_ns);
        while start < length {
            let left = length - start;
            let end = match pieces {
                0 | 1 => length,
                _ => start + self.random.random_range(1..=left),
            };
            pieces = pieces.saturating_sub(1);
            let is_last = end == length;
            let piece = Piece::Bytes {
                bytes: Rc::clone(&bytes),
                start,
                end,
                completes: if is_last { whole } else { Completes::Nothing },
            };
            self.arrive_in_order(sent_ns, id, piece);
            if gap_ns > 0 {
                sent_ns += self.random.random_range(0..=gap_ns);
            }
            start = end;
        }
    }

    /// The server ends its side.
    pub(super) fn end(&mut self, at_ns: u64, id: LinkId, how: Piece) {
        let link = self.links.get(id);
        if link.is_some_and(|link| matches!(link.server, Server::Open | Server::Ending)) {
            self.abandon(id);
            self.end_sending(at_ns, id, how);
            if let Some(link) = self.links.get_mut(id) {
                link.server = Server::Closed;
            }
        }
    }

    /// The server sends nothing more.
    pub(super) fn end_sending(&mut self, at_ns: u64, id: LinkId, how: Piece) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        if link.server != Server::Open {
            return;
        }
        link.server = Server::Ending;
        self.arrive_in_order(at_ns, id, how);
    }

    /// What waits on this connection will not be answered.
    pub(super) fn abandon(&mut self, id: LinkId) {
        if let Some(link) = self.links.get_mut(id) {
            let serving = usize::from(link.serving.take().is_some());
            self.counts.borrow_mut().abandoned += (link.pending.len() + serving) as u64;
            link.pending.clear();
            link.messages.clear();
        }
    }

    pub(super) fn arrive_in_order(&mut self, sent_ns: u64, id: LinkId, piece: Piece) {
        let network_ns = self.settings.network_ns;
        if let Some(link) = self.links.get_mut(id) {
            link.last_arrival_ns = link.last_arrival_ns.max(sent_ns + network_ns);
            let at_ns = link.last_arrival_ns;
            self.agenda.push(at_ns, SimEvent::Arrives(id, piece));
        }
    }

    fn arrived(&mut self, at_ns: u64, id: LinkId, piece: Piece) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        if link.client != Client::Open {
            return;
        }
        if let Piece::Bytes { start, end, .. } = piece {
            link.bytes_arrived += u64::from(end - start);
        }
        link.arrivals.push_back((at_ns, piece));
        if link.arrivals.len() == 1 {
            self.notices.push_back((id, Notice::Arrived));
        }
    }

    pub(super) fn after_network(&mut self, from_ns: u64, event: SimEvent) {
        self.agenda.push(from_ns + self.settings.network_ns, event);
    }

    /// The connection, if brunt has not closed it.
    pub(super) fn open_link(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links
            .get_mut(id)
            .filter(|link| link.client != Client::Closed)
    }
}
