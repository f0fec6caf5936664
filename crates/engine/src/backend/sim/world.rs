//! The simulated network and server: an agenda of what happens when.
//!
//! Requests are found when they are sent, for what the network brings to the server is what was
//! sent, in order: only their number travels.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use rand::Rng;
use rand_pcg::Pcg64;

use super::ledger::Ledger;
use super::link::{Client, Link, LinkId, Links, Piece, Server};
use super::reply::{Replies, Status, Template};
use super::request::Request;
use super::settings::{AfterMalformed, Framing, Limiter, SimCounts, SimSettings};
use crate::backend::Slot;
use crate::timers::Timers;

/// Shortest first line of an HTTP/1.0 answer: a cut before its end is a cut in the head.
const STATUS_LINE_BYTES: u32 = 15;

/// What can happen.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// An attempt to connect reaches the server.
    Attempt(LinkId),
    /// The server's answer to it reaches brunt: it failed with this errno, or not.
    Answered(LinkId, Option<i32>),
    /// The network has taken all of a send.
    Taken(LinkId),
    /// Bytes that the network took at `taken_ns` reach the server and complete `count` requests.
    Requests {
        link: LinkId,
        taken_ns: u64,
        count: u64,
    },
    /// The server, which served a request from `from_ns` to `to_ns`, is free for the next.
    Served {
        link: LinkId,
        from_ns: u64,
        to_ns: u64,
    },
    /// The server answers it.
    Answers(LinkId),
    /// The server refuses the request whose turn it is.
    Refuses(LinkId),
    /// Something reaches brunt.
    Arrives(LinkId, Piece),
    /// The end of brunt's side reaches the server.
    ClientClosed(LinkId),
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

/// What a request meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Silent,
    Reset,
    Closed,
    Truncated,
    Malformed,
    ExtraBytes,
    ErrorStatus,
    Answered,
}

/// Everything outside of brunt.
#[derive(Debug)]
pub(super) struct World {
    settings: SimSettings,
    random: Pcg64,
    agenda: Timers<Happening>,
    pub(super) links: Links,
    pub(super) replies: Replies,
    pub(super) counts: SimCounts,
    pub(super) notices: VecDeque<(LinkId, Notice)>,
    ledger: Rc<RefCell<Ledger>>,
    in_service: u32,
    /// When the limiter admits the next request, after a burst.
    admits_ns: u64,
    /// Connections whose request waits for the server, longest waiting first.
    waiting: VecDeque<LinkId>,
}

impl World {
    /// A world of its own for `worker`.
    pub(super) fn new(settings: &SimSettings, worker: u32, ledger: Rc<RefCell<Ledger>>) -> Self {
        let mut agenda = Timers::default();
        if let Some(outage) = settings.server.outage {
            agenda.push(outage.from_ns, Happening::OutageBegins);
        }
        Self {
            random: Pcg64::new(settings.seed.into(), worker.into()),
            agenda,
            links: Links::default(),
            replies: Replies::new(&settings.server),
            counts: SimCounts::default(),
            notices: VecDeque::new(),
            ledger,
            in_service: 0,
            admits_ns: 0,
            waiting: VecDeque::new(),
            settings: settings.clone(),
        }
    }

    /// Starts an attempt to connect.
    pub(super) fn attempt(&mut self, now_ns: u64, slot: Slot) -> LinkId {
        let id = self.links.add(slot);
        self.after_network(now_ns, Happening::Attempt(id));
        id
    }

    /// Sends on an open connection.
    pub(super) fn send(&mut self, now_ns: u64, id: LinkId, bytes: &[u8]) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        link.sending = true;
        let part_bytes = self.settings.send_buffer_bytes.get() as usize;
        let part_of = |bytes: usize| (bytes.max(1) - 1) / part_bytes;
        let round_trip_ns = 2 * self.settings.network_ns;
        let taken_ns = |part: usize| now_ns + part as u64 * round_trip_ns;
        let (mut part, mut count) = (0, 0);
        let mut parts = Vec::new();
        link.scanner.scan(bytes, |end, request| {
            if part_of(end) != part && count > 0 {
                parts.push((part, count));
                count = 0;
            }
            (part, count) = (part_of(end), count + 1);
            link.in_flight.push_back(request);
        });
        for (part, count) in parts
            .into_iter()
            .chain((count > 0).then_some((part, count)))
        {
            self.counts.requests_sent += count;
            let taken_ns = taken_ns(part);
            let requests = Happening::Requests {
                link: id,
                taken_ns,
                count,
            };
            self.after_network(taken_ns, requests);
        }
        self.counts.bytes_sent += bytes.len() as u64;
        self.agenda
            .push(taken_ns(part_of(bytes.len())), Happening::Taken(id));
    }

    /// Ends brunt's side of a connection.
    pub(super) fn close(&mut self, now_ns: u64, id: LinkId) {
        if let Some(link) = self.links.get_mut(id) {
            link.client = Client::Closed;
            link.closed_ns = Some(now_ns);
            link.arrivals.clear();
            self.after_network(now_ns, Happening::ClientClosed(id));
        }
    }

    /// When the next thing happens.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.agenda.next_ns()
    }

    /// Lets everything happen that happens up to `until_ns`.
    pub(super) fn pass(&mut self, until_ns: u64) {
        while let Some(at_ns) = self.agenda.next_ns().filter(|&at_ns| at_ns <= until_ns) {
            if let Some(happening) = self.agenda.pop_due(at_ns) {
                self.happen(at_ns, happening);
            }
        }
    }

    fn happen(&mut self, at_ns: u64, happening: Happening) {
        match happening {
            Happening::Attempt(id) => self.answer_attempt(at_ns, id),
            Happening::Answered(id, errno) => self.attempt_answered(id, errno),
            Happening::Taken(id) => {
                // Of a send that was reported as failed there is nothing more to tell.
                let link = self.links.get_mut(id);
                if let Some(link) = link.filter(|link| link.sending) {
                    link.sending = false;
                    self.notices.push_back((id, Notice::Sent));
                }
            }
            Happening::Requests {
                link,
                taken_ns,
                count,
            } => self.take_requests(at_ns, link, taken_ns, count),
            Happening::Served {
                link,
                from_ns,
                to_ns,
            } => {
                self.ledger.borrow_mut().served(from_ns, to_ns);
                self.served(at_ns, link);
            }
            Happening::Answers(id) => self.answer_next(at_ns, id, None),
            Happening::Refuses(id) => self.answer_next(at_ns, id, Some(Status::TooManyRequests)),
            Happening::Arrives(id, piece) => self.arrived(at_ns, id, piece),
            Happening::ClientClosed(id) => {
                self.abandon(id);
                self.links.remove(id);
            }
            Happening::OutageBegins => {
                for id in self.links.ids() {
                    self.end(at_ns, id, Piece::Reset);
                }
            }
        }
    }

    fn answer_attempt(&mut self, at_ns: u64, id: LinkId) {
        let server = &self.settings.server;
        let faults = server.faults;
        let is_out = server
            .outage
            .is_some_and(|outage| (outage.from_ns..outage.until_ns).contains(&at_ns));
        if is_out || self.chance(faults.connect_refused) {
            self.counts.connections_refused += 1;
            let refused = Happening::Answered(id, Some(libc::ECONNREFUSED));
            self.after_network(at_ns, refused);
        } else if self.chance(faults.connect_unanswered) {
            self.counts.connections_unanswered += 1;
        } else if let Some(link) = self.links.get_mut(id) {
            link.server = Server::Open;
            self.counts.connections_accepted += 1;
            self.after_network(at_ns, Happening::Answered(id, None));
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

    fn take_requests(&mut self, at_ns: u64, id: LinkId, taken_ns: u64, count: u64) {
        let Some(link) = self.links.get_mut(id) else {
            self.counts.requests_lost += count;
            return;
        };
        if link.closed_ns.is_some_and(|closed_ns| closed_ns < taken_ns) {
            self.counts.requests_lost += count;
            return;
        }
        let arrived = link.in_flight.drain(..count as usize);
        if link.server == Server::Open {
            link.pending.extend(arrived);
            self.counts.requests += count;
            self.begin(at_ns, id);
        } else {
            drop(arrived);
            self.counts.requests_lost += count;
            // Whoever sends to a closed socket is told by a reset.
            self.after_network(at_ns, Happening::Arrives(id, Piece::Reset));
        }
    }

    /// Turns to the next request of a connection, if nothing hinders it.
    fn begin(&mut self, at_ns: u64, id: LinkId) {
        let limit = self.settings.server.concurrency;
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        if link.serving.is_some() || link.is_silent || link.server != Server::Open {
            return;
        }
        link.serving = link.pending.pop_front();
        if link.serving.is_none() {
            return;
        }
        if let Some(limiter) = self.settings.server.limiter
            && !self.admits(at_ns, limiter)
        {
            let refused_ns = at_ns + limiter.refusal_ns;
            self.agenda.push(refused_ns, Happening::Refuses(id));
        } else if limit.is_some_and(|limit| self.in_service >= limit.get()) {
            self.waiting.push_back(id);
        } else {
            self.serve(at_ns, id);
        }
    }

    fn serve(&mut self, at_ns: u64, id: LinkId) {
        self.in_service += 1;
        let server = &self.settings.server;
        let mut service_ns = server.service.draw(&mut self.random);
        if server.drift_per_s != 0.0 {
            let factor = 1.0 + server.drift_per_s * at_ns as f64 / 1e9;
            service_ns = (service_ns as f64 * factor) as u64;
        }
        let to_ns = at_ns + service_ns;
        let served = Happening::Served {
            link: id,
            from_ns: at_ns,
            to_ns,
        };
        self.agenda.push(self.after_silence(to_ns), served);
    }

    /// When the server can answer what it could answer at `at_ns` but for its silences.
    fn after_silence(&self, at_ns: u64) -> u64 {
        let left_ns = self.settings.server.stall.map_or(0, |stall| {
            stall.silence_ns.saturating_sub(at_ns % stall.period_ns)
        });
        at_ns + left_ns
    }

    /// Whether the limiter lets a request in.
    fn admits(&mut self, at_ns: u64, limiter: Limiter) -> bool {
        let every_ns = limiter.every_ns.get();
        let burst_ns = every_ns.saturating_mul(u64::from(limiter.burst.get()) - 1);
        let next_ns = self.admits_ns.max(at_ns);
        let is_admitted = next_ns - at_ns <= burst_ns;
        if is_admitted {
            self.admits_ns = next_ns.saturating_add(every_ns);
        }
        is_admitted
    }

    fn served(&mut self, at_ns: u64, id: LinkId) {
        self.in_service -= 1;
        // The place goes to the longest waiting, unless its connection is gone.
        while let Some(next) = self.waiting.pop_front() {
            if self
                .links
                .get(next)
                .is_some_and(|link| link.serving.is_some())
            {
                self.serve(at_ns, next);
                break;
            }
        }
        let delay_ns = self.settings.server.delay_ns;
        if delay_ns > 0 {
            let answered_ns = self.after_silence(at_ns + delay_ns);
            self.agenda.push(answered_ns, Happening::Answers(id));
        } else {
            self.answer_next(at_ns, id, None);
        }
    }

    /// Answers the request whose turn it is, with a certain status or as its fate wills.
    fn answer_next(&mut self, at_ns: u64, id: LinkId, status: Option<Status>) {
        let request = self.links.get_mut(id).and_then(|link| link.serving.take());
        if let Some(request) = request {
            match status {
                Some(status) => self.reply(at_ns, id, request, status, false),
                None => self.answer(at_ns, id, request),
            }
            self.begin(at_ns, id);
        }
    }

    fn answer(&mut self, at_ns: u64, id: LinkId, request: Request) {
        let fate = self.fate();
        match fate {
            Fate::Silent => {
                self.counts.silent += 1;
                self.fall_silent(id);
            }
            Fate::Reset => {
                self.counts.reset += 1;
                self.end(at_ns, id, Piece::Reset);
            }
            Fate::Closed => {
                self.counts.closed += 1;
                self.end(at_ns, id, Piece::End { completes: false });
            }
            Fate::Truncated => {
                self.counts.truncated += 1;
                let template = Template::Reply {
                    status: Status::Ok,
                    is_head: request.is_head,
                    closes: false,
                };
                let whole = match self.settings.server.framing {
                    // A body without a length cannot be cut short, only a head can.
                    Framing::UntilClose => STATUS_LINE_BYTES,
                    Framing::Length | Framing::Chunked => self.length(template),
                };
                let cut = self.random.random_range(1..whole);
                self.deliver(at_ns, id, template, cut, false);
                self.end(at_ns, id, Piece::End { completes: false });
            }
            Fate::Malformed => {
                self.counts.malformed += 1;
                let length = self.length(Template::Malformed);
                self.deliver(at_ns, id, Template::Malformed, length, false);
                match self.settings.server.after_malformed {
                    AfterMalformed::Close => self.end(at_ns, id, Piece::End { completes: false }),
                    AfterMalformed::Continue => {}
                    AfterMalformed::FallSilent => self.fall_silent(id),
                }
            }
            Fate::ExtraBytes => self.reply(at_ns, id, request, Status::Ok, true),
            Fate::ErrorStatus => self.reply(at_ns, id, request, Status::Unavailable, false),
            Fate::Answered => self.reply(at_ns, id, request, Status::Ok, false),
        }
    }

    /// Replies, with or without unasked bytes behind it.
    fn reply(&mut self, at_ns: u64, id: LinkId, request: Request, status: Status, extra: bool) {
        let server = &self.settings.server;
        let until_close = server.framing == Framing::UntilClose;
        let asked = request.closes && server.honours_close;
        let (limit, announces) = (server.close_after, server.announces_close);
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        link.answered += 1;
        let is_last = limit.is_some_and(|limit| link.answered >= limit.get());
        let template = Template::Reply {
            status,
            is_head: request.is_head,
            closes: asked || (is_last && announces),
        };
        let ended_by_close = until_close && !request.is_head;
        self.counts.replies += 1;
        self.counts.replies_error += u64::from(status == Status::Unavailable);
        self.counts.replies_limited += u64::from(status == Status::TooManyRequests);
        let length = self.length(template);
        self.deliver(at_ns, id, template, length, !ended_by_close);
        if extra {
            self.counts.extra_bytes += 1;
            let length = self.length(Template::Extra);
            self.deliver(at_ns, id, Template::Extra, length, false);
        }
        if asked || is_last || until_close {
            let completes = ended_by_close;
            self.end(at_ns, id, Piece::End { completes });
        }
    }

    fn fall_silent(&mut self, id: LinkId) {
        if let Some(link) = self.links.get_mut(id) {
            link.is_silent = true;
        }
    }

    fn fate(&mut self) -> Fate {
        let faults = &self.settings.server.faults;
        let fates = [
            (faults.silent, Fate::Silent),
            (faults.reset, Fate::Reset),
            (faults.closed, Fate::Closed),
            (faults.truncated, Fate::Truncated),
            (faults.malformed, Fate::Malformed),
            (faults.extra_bytes, Fate::ExtraBytes),
            (faults.error_status, Fate::ErrorStatus),
        ];
        if fates.iter().all(|&(probability, _)| probability <= 0.0) {
            return Fate::Answered;
        }
        let mut even: f64 = self.random.random();
        for (probability, fate) in fates {
            if even < probability {
                return fate;
            }
            even -= probability;
        }
        Fate::Answered
    }

    fn length(&self, template: Template) -> u32 {
        self.replies.bytes(template).len() as u32
    }

    /// Sends the first `length` bytes of an answer to brunt, perhaps in pieces.
    fn deliver(&mut self, at_ns: u64, id: LinkId, template: Template, length: u32, complete: bool) {
        let (most, gap_ns) = {
            let server = &self.settings.server;
            (server.pieces_max.get(), server.piece_gap_ns)
        };
        let mut pieces = if most > 1 {
            self.random.random_range(1..=most)
        } else {
            1
        };
        let (mut start, mut sent_ns) = (0, at_ns);
        while start < length {
            let left = length - start;
            let end = match pieces {
                0 | 1 => length,
                _ => start + self.random.random_range(1..=left),
            };
            pieces = pieces.saturating_sub(1);
            let piece = Piece::Bytes {
                template,
                start,
                end,
                completes: complete && end == length,
            };
            self.arrive_in_order(sent_ns, id, piece);
            if gap_ns > 0 {
                sent_ns += self.random.random_range(0..=gap_ns);
            }
            start = end;
        }
    }

    /// The server ends its side.
    fn end(&mut self, at_ns: u64, id: LinkId, how: Piece) {
        if self
            .links
            .get(id)
            .is_some_and(|link| link.server == Server::Open)
        {
            self.abandon(id);
            self.arrive_in_order(at_ns, id, how);
            if let Some(link) = self.links.get_mut(id) {
                link.server = Server::Closed;
            }
        }
    }

    /// What waits on this connection will not be answered.
    fn abandon(&mut self, id: LinkId) {
        if let Some(link) = self.links.get_mut(id) {
            let serving = u64::from(link.serving.take().is_some());
            self.counts.abandoned += link.pending.len() as u64 + serving;
            link.pending.clear();
        }
    }

    fn arrive_in_order(&mut self, sent_ns: u64, id: LinkId, piece: Piece) {
        let network_ns = self.settings.network_ns;
        if let Some(link) = self.links.get_mut(id) {
            link.last_arrival_ns = link.last_arrival_ns.max(sent_ns + network_ns);
            let at_ns = link.last_arrival_ns;
            self.agenda.push(at_ns, Happening::Arrives(id, piece));
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

    fn after_network(&mut self, from_ns: u64, happening: Happening) {
        self.agenda
            .push(from_ns + self.settings.network_ns, happening);
    }

    /// Whether something of this probability happens.
    pub(super) fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.random.random::<f64>() < probability
    }

    /// The connection, if brunt has not closed it.
    pub(super) fn open_link(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links
            .get_mut(id)
            .filter(|link| link.client != Client::Closed)
    }
}
