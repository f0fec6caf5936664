//! Which request the simulated server handles next, for how long, and with which outcome.

use std::rc::Rc;

use brunt_io::backend::Event;
use rand::Rng;

use super::link::{Link, LinkId, Server};
use super::piece::{Completes, Piece};
use super::served_protocol::ServedProtocol;
use super::settings::Limiter;
use super::world::{SimEvent, World};

/// What comes on a connection that has been idle for too long (RFC 9110 section 15.5.9).
const TIMED_OUT: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 4\r\nConnection: close\r\n\r\nlate";

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Silent,
    Reset,
    Closed,
    Truncated,
    Malformed,
    ExtraBytes,
    ErrorStatus,
    /// Refused by the limiter.
    Limited,
    Answered,
}

impl World {
    /// Turns to the requests of a connection whose turn has come.
    pub(super) fn begin(&mut self, at_ns: u64, id: LinkId) {
        let limit = self.settings.server.concurrency;
        while self.links.get_mut(id).is_some_and(Link::take_turn) {
            if let Some(limiter) = self.settings.server.limiter
                && !self.admits(at_ns, limiter)
            {
                let refused_ns = at_ns + limiter.refusal_ns;
                self.answer_at(refused_ns, id, true);
            } else if limit.is_some_and(|limit| self.in_service >= limit.get()) {
                self.waiting.push_back(id);
            } else {
                self.serve(at_ns, id);
            }
        }
    }

    fn serve(&mut self, at_ns: u64, link: LinkId) {
        self.in_service += 1;
        let server = &self.settings.server;
        let mut service_ns = server.service.draw(&mut self.random);
        if server.drift_per_s != 0.0 {
            let factor = 1.0 + server.drift_per_s * at_ns as f64 / 1e9;
            service_ns = (service_ns as f64 * factor) as u64;
        }
        let bursts = self.settings.host.and_then(|host| host.bursts);
        let to_ns = match bursts {
            Some(bursts) => bursts.done_ns(at_ns, service_ns),
            None => at_ns + service_ns,
        };
        let served = SimEvent::Served {
            link,
            from_ns: at_ns,
            to_ns,
        };
        self.agenda.push(self.after_silence(to_ns), served);
    }

    /// Has the accounts say that a request was served so, and what the hypervisor took of it.
    pub(super) fn note_service(&mut self, from_ns: u64, to_ns: u64) {
        let mut ledger = self.ledger.borrow_mut();
        let mut at_ns = from_ns;
        if let Some(bursts) = self.settings.host.and_then(|host| host.bursts) {
            while at_ns < to_ns {
                if let Some(until_ns) = bursts.until_ns(at_ns) {
                    ledger.server_stolen(at_ns, until_ns.min(to_ns));
                    at_ns = until_ns;
                }
                let free_ns = bursts.next_ns(at_ns).min(to_ns);
                ledger.served(at_ns, free_ns);
                at_ns = free_ns;
            }
        } else {
            ledger.served(from_ns, to_ns);
        }
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

    /// A request was served, even if its connection is gone.
    pub(super) fn served(&mut self, at_ns: u64, id: LinkId) {
        self.in_service -= 1;
        // The place goes to the longest waiting, unless its connection is gone.
        while let Some(next) = self.waiting.pop_front() {
            let link = self.links.get(next);
            if link.is_some_and(|link| link.serving.is_some()) {
                self.serve(at_ns, next);
                break;
            }
        }
        let delay_ns = self.settings.server.delay_ns;
        if delay_ns > 0 {
            let answered_ns = self.after_silence(at_ns + delay_ns);
            self.answer_at(answered_ns, id, false);
        } else {
            self.answer(at_ns, id, false);
        }
    }

    fn answer_at(&mut self, at_ns: u64, link: LinkId, is_limited: bool) {
        let answers = SimEvent::Answers { link, is_limited };
        self.agenda.push(at_ns, answers);
    }

    /// A request has its outcome, if it can still be answered, and the turn is the next one's.
    pub(super) fn answer(&mut self, at_ns: u64, id: LinkId, is_limited: bool) {
        let link = self.links.get_mut(id).filter(|link| !link.is_silent);
        let Some(request) = link.and_then(|link| link.serving.take()) else {
            return;
        };
        let outcome = if is_limited {
            Fate::Limited
        } else {
            self.outcome()
        };
        match self.served_protocol() {
            ServedProtocol::Http1 => self.answer_http1(at_ns, id, request, outcome),
            ServedProtocol::Messages => self.answer_message(at_ns, id, outcome),
            // They have no requests, or the reference server has them.
            ServedProtocol::Http2 | ServedProtocol::Streams | ServedProtocol::WebSocket => {}
        }
        self.begin(at_ns, id);
        self.limit_idle(at_ns, id);
    }

    /// Looks at the connection again when it may not be idle any longer.
    pub(super) fn limit_idle(&mut self, at_ns: u64, id: LinkId) {
        if let Some(idle) = self.settings.server.idle
            && let Some(link) = self.links.get(id)
        {
            let over = SimEvent::IdlesOut(id, link.turns);
            self.agenda.push(at_ns + idle.after_ns, over);
        }
    }

    /// Closes the connection if it has been idle since `turns` requests had come.
    pub(super) fn idled_out(&mut self, at_ns: u64, id: LinkId, turns: u64) {
        let (Some(idle), Some(link)) = (self.settings.server.idle, self.links.get(id)) else {
            return;
        };
        let is_idle = link.turns == turns && link.serving.is_none() && link.pending.is_empty();
        if !is_idle || link.server != Server::Open {
            return;
        }
        self.counts.borrow_mut().closed_idle += 1;
        if idle.sends_408 {
            self.deliver(at_ns, id, TIMED_OUT.into(), Completes::Nothing);
        }
        self.end(at_ns, id, Piece::END);
        let lost = |slot| Event::ReceiveFailed(slot, libc::ECONNRESET);
        self.notify_reference(at_ns, id, lost, Rc::default());
    }

    /// The status of an answer that is whole.
    pub(super) fn status_of(outcome: Fate) -> u16 {
        match outcome {
            Fate::ErrorStatus => 503,
            Fate::Limited => 429,
            _ => 200,
        }
    }

    /// Counts an answer that is whole.
    pub(super) fn count_reply(&mut self, status: u16) {
        self.counts.borrow_mut().replies += 1;
        self.counts.borrow_mut().replies_error += u64::from(status == 503);
        self.counts.borrow_mut().replies_limited += u64::from(status == 429);
    }

    fn outcome(&mut self) -> Fate {
        let faults = &self.settings.server.faults;
        let outcomes = [
            (faults.silent, Fate::Silent),
            (faults.reset, Fate::Reset),
            (faults.closed, Fate::Closed),
            (faults.truncated, Fate::Truncated),
            (faults.malformed, Fate::Malformed),
            (faults.extra_bytes, Fate::ExtraBytes),
            (faults.error_status, Fate::ErrorStatus),
        ];
        if outcomes.iter().all(|&(probability, _)| probability <= 0.0) {
            return Fate::Answered;
        }
        let mut even: f64 = self.random.random();
        for (probability, outcome) in outcomes {
            if even < probability {
                return outcome;
            }
            even -= probability;
        }
        Fate::Answered
    }
}
