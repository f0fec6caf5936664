//! Signals that accuse the way between client and server.

use brunt_record::{Route, TcpCounters};

use super::super::Grade;
use super::super::facts::{RunFacts, ratio};
use super::super::thresholds::{
    BULK_REPLY_BYTES, LINK_FAIL, LINK_WARN, OUT_OF_ORDER_FAIL, OUT_OF_ORDER_WARN,
    QUEUEING_LEAST_NS, QUEUEING_RATIO, RARE_LEAST, RETRANSMITS_FAIL, RETRANSMITS_WARN,
};
use super::super::words::{count, duration, number, percent};
use super::{Reading, grade_above, missing};

/// Payload of a segment on Ethernet.
const SEGMENT_BYTES: f64 = 1448.0;
/// Share of a namespace's segments that must be brunt's for its counters to tell of brunt.
const OWN_SEGMENTS_LEAST: f64 = 0.2;

/// Rare events, and the segments among which they were counted.
#[derive(Clone, Copy)]
struct Rare {
    events: u64,
    segments: u64,
}

impl Rare {
    fn share(self) -> f64 {
        ratio(self.events as f64, self.segments as f64).unwrap_or(0.0)
    }

    /// How it stands; healthy with few.
    fn grade(self, warn: f64, fail: f64) -> Grade {
        if self.events < RARE_LEAST {
            Grade::Healthy
        } else {
            grade_above(self.share(), warn, fail)
        }
    }

    fn words(self, what: &str) -> String {
        let share = percent(self.share());
        format!("{share} of the segments {what} ({})", count(self.events))
    }
}

/// The worse of those that there are.
fn worse(counts: [Option<Rare>; 2]) -> Option<Rare> {
    let known = counts.into_iter().flatten();
    known.filter(|rare| rare.segments > 0).max_by(|a, b| {
        (a.events >= RARE_LEAST, a.share())
            .partial_cmp(&(b.events >= RARE_LEAST, b.share()))
            .unwrap_or(std::cmp::Ordering::Equal)
    })
}

/// Segments sent again: of the sampled connections, and of all of the namespace, without
/// connection requests.
fn sent_again(facts: &RunFacts<'_>) -> Option<Rare> {
    let kernel = &facts.kernel;
    let sampled = Rare {
        events: kernel.segments_retransmitted,
        segments: kernel.segments_sent,
    };
    let all = ours(facts).map(|tcp| Rare {
        events: tcp
            .segments_retransmitted
            .saturating_sub(tcp.syn_retransmits),
        segments: tcp.segments_sent,
    });
    worse([Some(sampled), all])
}

/// The counters of the namespace, where brunt's own segments are many of them: with little load
/// they tell of others.
fn ours<'a>(facts: &RunFacts<'a>) -> Option<&'a TcpCounters> {
    let window = &facts.summary.window;
    let of_bytes = window.bytes_sent.saturating_add(window.bytes_received / 2) as f64;
    // One at a time, each request has a segment of its own; many in flight share segments.
    let of_requests = match facts.run.depth() {
        0 | 1 => window.requests_sent as f64,
        2.. => 0.0,
    };
    let own = of_requests + of_bytes / SEGMENT_BYTES;
    facts
        .tcp()
        .filter(|tcp| own >= OWN_SEGMENTS_LEAST * tcp.segments_sent as f64)
}

fn out_of_order_segments(facts: &RunFacts<'_>) -> Option<Rare> {
    let kernel = &facts.kernel;
    let sampled = Rare {
        events: kernel.segments_out_of_order,
        segments: kernel.segments_received,
    };
    let all = ours(facts).map(|tcp| Rare {
        events: tcp.segments_out_of_order,
        segments: tcp.segments_received,
    });
    worse([Some(sampled), all])
}

/// Whether segments were lost or overtaken more than rarely.
pub(super) fn loses_segments(facts: &RunFacts<'_>) -> bool {
    let is_bad = |rare: Option<Rare>, warn, fail| {
        rare.is_some_and(|rare| rare.grade(warn, fail) != Grade::Healthy)
    };
    is_bad(sent_again(facts), RETRANSMITS_WARN, RETRANSMITS_FAIL)
        || is_bad(
            out_of_order_segments(facts),
            OUT_OF_ORDER_WARN,
            OUT_OF_ORDER_FAIL,
        )
}

pub(super) fn retransmits(facts: &RunFacts<'_>) -> Reading {
    let Some(rare) = sent_again(facts) else {
        return missing(facts, "network.tcp", "no segments were counted");
    };
    // A listening socket with a full accept queue also drops what comes first on a connection that
    // the client takes for open.
    let is_the_servers =
        facts.is_local() && facts.tcp().is_some_and(|tcp| tcp.listen_overflows > 0);
    Reading::new(
        rare.grade(RETRANSMITS_WARN, RETRANSMITS_FAIL),
        rare.words("sent again"),
    )
    .warn_at_most(is_the_servers, "the server's accept queue was full")
}

pub(super) fn out_of_order(facts: &RunFacts<'_>) -> Reading {
    let Some(rare) = out_of_order_segments(facts) else {
        return missing(facts, "network.tcp", "no segments were counted");
    };
    Reading::new(
        rare.grade(OUT_OF_ORDER_WARN, OUT_OF_ORDER_FAIL),
        rare.words("out of order"),
    )
}

/// The round trip of data received grows with a queue on the way, but also with a server that
/// takes its time between two parts of a reply. It fails only together with lost segments, which a
/// full queue leaves behind and a slow server does not [tuned].
pub(super) fn queueing(facts: &RunFacts<'_>) -> Reading {
    if facts.is_local() {
        return Reading::unknown("client and server share a machine");
    }
    let per_reply = ratio(
        facts.summary.window.bytes_received as f64,
        facts.replies() as f64,
    );
    if per_reply.is_none_or(|bytes| bytes < BULK_REPLY_BYTES) {
        return Reading::unknown("replies are too short to queue");
    }
    let kernel = &facts.kernel;
    let (Some(largest_ns), Some(least_ns)) = (kernel.receive_rtt_ns_max, kernel.min_rtt_ns) else {
        return Reading::unknown("the kernel gave no round trips");
    };
    let largest_ns = largest_ns as f64;
    let Some(times) = ratio(largest_ns, least_ns as f64) else {
        return Reading::unknown("the smallest round trip is 0");
    };
    let words = format!(
        "round trip of data up to {}, {}× the smallest",
        duration(largest_ns),
        number(times)
    );
    if times <= QUEUEING_RATIO || largest_ns <= QUEUEING_LEAST_NS {
        return Reading::healthy(words);
    }
    Reading::fail(words).warn_at_most(!loses_segments(facts), "nothing was lost")
}

pub(super) fn link_use(facts: &RunFacts<'_>) -> Reading {
    let Some(network) = facts.network() else {
        return missing(facts, "network", "the way to the server was not read");
    };
    match (&network.route, facts.link_use()) {
        (Route::UnixSocket | Route::Loopback, _) => {
            Reading::unknown("client and server share a machine")
        }
        (Route::Interface { .. }, Some(used)) => Reading::new(
            grade_above(used, LINK_WARN, LINK_FAIL),
            format!("link used to {}", percent(used)),
        ),
        (Route::Interface { .. }, None) => {
            Reading::unknown("the link's speed is not known: `--link-speed`")
        }
        (Route::Unknown, _) => missing(facts, "network.route", "the route is not known"),
    }
}
