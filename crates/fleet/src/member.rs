//! One agent as its coordinator knows it.

use std::collections::VecDeque;

use brunt_load::Part;
use brunt_record::{AgreedClock, Window};

use crate::address::AgentId;
use crate::agreement::{Agreed, ClockAgreement, ClockExchange};
use crate::chunks::Assembly;
use crate::messages::{Hello, Phase, Pong, Status, Stop, ToAgent};

/// From one ping to the next, while the clocks are agreed on.
const PING_FAST_NS: u64 = 20_000_000;
/// From one ping to the next, else.
const PING_NS: u64 = 250_000_000;
/// Exchanges after which the clocks are agreed on well enough to start.
pub(crate) const EXCHANGES_LEAST: u32 = 24;
/// Until something long is said again that does not seem to have been heard.
pub(crate) const REPEAT_LONG_NS: u64 = 1_000_000_000;
/// Until an order is said again, which has to be heard soon.
pub(crate) const REPEAT_ORDER_NS: u64 = 200_000_000;
/// Pings that an answer may still come to.
const PINGS_OPEN: usize = 64;
/// For how long after an edge exchanges still say more about the clocks at that edge.
const AFTER_EDGE_NS: u64 = 1_000_000_000;

/// One agent as its coordinator knows it.
#[derive(Clone, Debug, Default)]
pub struct Member {
    /// Its id.
    pub(crate) id: AgentId,
    /// How it introduced itself.
    pub(crate) hello: Hello,
    pub(crate) clock: ClockAgreement,
    pub(crate) status: Status,
    /// When it was heard last.
    pub(crate) heard_ns: u64,
    round: u32,
    /// The workers that it has of the round's plan.
    pub(crate) part: Option<Part>,
    /// Why there is no result of it in this round, and since when that is known.
    pub(crate) lost: Option<(String, u64)>,
    pub(crate) result: Option<Vec<u8>>,
    pub(crate) assembly: Assembly,
    sequence: u64,
    /// Pings without an answer: their numbers, and when they were sent.
    pings: VecDeque<(u64, u64)>,
    pub(crate) answered: Option<u64>,
    pub(crate) ping_due_ns: u64,
    /// When something may be said again that was said.
    repeat_ns: u64,
    /// How its clock stood at the edges of the window.
    start: Option<Agreed>,
    pub(crate) end: Option<Agreed>,
    /// It was told that all is well.
    pub(crate) is_dismissed: bool,
}

impl Member {
    pub(crate) fn new(id: AgentId, hello: Hello, now_ns: u64) -> Self {
        Self {
            id,
            hello,
            heard_ns: now_ns,
            ping_due_ns: now_ns,
            repeat_ns: now_ns,
            ..Self::default()
        }
    }

    /// Makes ready for a round, of which it has this part. What is known of its clock stays.
    pub(crate) fn begin(&mut self, round: u32, part: Part, now_ns: u64) {
        self.round = round;
        self.part = Some(part);
        self.status = Status {
            round,
            ..Status::default()
        };
        self.lost = None;
        self.result = None;
        self.assembly = Assembly::default();
        self.start = None;
        self.end = None;
        self.was_heard(now_ns);
    }

    /// Whether nothing more is wanted of it: its result is here, or it is lost.
    pub(crate) fn is_settled(&self) -> bool {
        self.lost.is_some() || self.result.is_some()
    }

    pub(crate) fn has_failed(&self) -> Option<&str> {
        match &self.status.phase {
            Phase::Failed { reason } => Some(reason),
            _ => None,
        }
    }

    /// A ping, if one is due or wanted at once.
    pub(crate) fn ping(&mut self, now_ns: u64, is_wanted: bool) -> Option<ToAgent> {
        if now_ns < self.ping_due_ns && !is_wanted {
            return None;
        }
        let pause_ns = if self.clock.count() < EXCHANGES_LEAST {
            PING_FAST_NS
        } else {
            PING_NS
        };
        self.ping_due_ns = now_ns + pause_ns;
        self.sequence += 1;
        if self.pings.len() == PINGS_OPEN {
            self.pings.pop_front();
        }
        self.pings.push_back((self.sequence, now_ns));
        Some(ToAgent::Ping {
            sequence: self.sequence,
            sent_ns: now_ns,
        })
    }

    /// Whether something that was not heard may be said now; then not again for this long.
    pub(crate) fn may_say(&mut self, now_ns: u64, pause_ns: u64) -> bool {
        let may = now_ns >= self.repeat_ns;
        if may {
            self.repeat_ns = now_ns + pause_ns;
        }
        may
    }

    /// What was said was heard: the next thing may be said at once.
    pub(crate) fn was_heard(&mut self, now_ns: u64) {
        self.repeat_ns = now_ns;
    }

    /// Takes the answer to a ping. `window` is when it begins and ends, as far as that is known.
    pub(crate) fn pong(&mut self, now_ns: u64, pong: Pong, window: Option<Window>) {
        let mut pings = self.pings.iter();
        let place = pings.position(|(sequence, _)| *sequence == pong.sequence);
        let Some((_, sent_ns)) = place.and_then(|place| self.pings.remove(place)) else {
            // It came twice, or nobody asked.
            return;
        };
        self.heard_ns = now_ns;
        self.clock.add(ClockExchange {
            sent_ns,
            received_ns: pong.received_ns,
            replied_ns: pong.replied_ns,
            returned_ns: now_ns,
        });
        if self
            .answered
            .is_none_or(|answered| pong.sequence > answered)
        {
            self.answered = Some(pong.sequence);
            // What it says of an earlier round is old, unless it says that it will do no more.
            let has_failed = matches!(pong.status.phase, Phase::Failed { .. });
            if pong.status.round == self.round || has_failed {
                self.status = pong.status;
            }
        }
        if let Some(Window { start_ns, end_ns }) = window {
            for (edge_ns, known) in [(start_ns, &mut self.start), (end_ns, &mut self.end)] {
                let says_more = now_ns <= edge_ns.saturating_add(AFTER_EDGE_NS);
                if now_ns >= edge_ns && (says_more || known.is_none()) {
                    *known = self.clock.at(edge_ns);
                }
            }
        }
    }

    /// Whether it knows of this end of the load.
    pub(crate) fn knows(&self, stop: &Stop) -> bool {
        self.status.stop.as_ref() == Some(stop)
    }

    /// How its window lay to the common one.
    pub(crate) fn clocks(&self, window: Window, warmup_ns: u64) -> Option<AgreedClock> {
        let Window { start_ns, end_ns } = window;
        let own_start_ns = self.status.start_ns?.checked_add(warmup_ns)?;
        let own_end_ns = own_start_ns.checked_add(end_ns.checked_sub(start_ns)?)?;
        let (start, end) = (self.start?, self.end?);
        Some(AgreedClock {
            start_skew_ns: start.later_ns(own_start_ns, start_ns),
            start_bound_ns: start.bound_ns.ceil() as u64,
            end_skew_ns: end.later_ns(own_end_ns, end_ns),
            end_bound_ns: end.bound_ns.ceil() as u64,
            exchanges: self.clock.count(),
            round_trip_ns_min: self.clock.round_trip_ns_min()?,
        })
    }
}
