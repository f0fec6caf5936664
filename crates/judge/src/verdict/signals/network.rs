//! Signals that accuse the way between client and server.

use brunt_load::protocol::Transport;
use brunt_record::{Route, TcpCounters};

use super::super::Grade;
use super::super::facts::{RunFacts, ratio};
use super::super::thresholds::{LINK_WARN, RARE_LEAST};
use super::{Reading, grade_above, missing};
use crate::units::count;
use crate::units::short::{duration, number, percent};

/// Share of the segments that were sent again, from which on the signal warns, and fails.
const RETRANSMITS: [f64; 2] = [0.0001, 0.005];
/// Share of the segments that were received out of order, from which on the signal warns, and fails.
const OUT_OF_ORDER: [f64; 2] = [0.001, 0.01];
/// Bytes per reply from which on the kernel measures the round trip of data received: several
/// segments.
const BULK_REPLY_BYTES: f64 = 4.0 * 1448.0;
/// Largest round trip of data received over the smallest round trip, above which data queues.
const QUEUEING_RATIO: f64 = 8.0;
/// Largest round trip of data received, nanoseconds, above which data queues. Less is the
/// receiver's own batching.
const QUEUEING_LEAST_NS: f64 = 2e6;
/// Use of the link, from which on the signal fails. The proposal was 95 %: TCP's own ups and downs
/// keep a full link at 92 to 97 % [tuned].
const LINK_FAIL: f64 = 0.90;

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

    /// The grade of the share; healthy with few segments.
    fn grade(self, [warn, fail]: [f64; 2]) -> Grade {
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

/// The worse of what was counted of the sampled connections, and of all of the namespace.
fn of_segments(
    facts: &RunFacts<'_>,
    sampled: [u64; 2],
    all: fn(&TcpCounters) -> [u64; 2],
) -> Option<Rare> {
    let rare = |[events, segments]: [u64; 2]| Rare { events, segments };
    worse([Some(rare(sampled)), ours(facts).map(|tcp| rare(all(tcp)))])
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
    let is_ours = |tcp: &&TcpCounters| own >= OWN_SEGMENTS_LEAST * tcp.segments_sent as f64;
    facts.tcp().filter(is_ours)
}

/// How segments sent again (without connection requests) and those out of order stand, for those
/// that were counted.
fn grades(facts: &RunFacts<'_>) -> [Option<(Grade, String)>; 2] {
    let kernel = &facts.kernel;
    let sent = [kernel.segments_retransmitted, kernel.segments_sent];
    let again = of_segments(facts, sent, |tcp| {
        let again = tcp.segments_retransmitted;
        [again.saturating_sub(tcp.syn_retransmits), tcp.segments_sent]
    });
    let received = [kernel.segments_out_of_order, kernel.segments_received];
    let overtaken = of_segments(facts, received, |tcp| {
        [tcp.segments_out_of_order, tcp.segments_received]
    });
    let again = again.map(|rare| (rare.grade(RETRANSMITS), rare.words("sent again")));
    let overtaken = overtaken.map(|rare| (rare.grade(OUT_OF_ORDER), rare.words("out of order")));
    [again, overtaken]
}

/// Whether segments were lost or overtaken more than rarely.
pub(super) fn loses_segments(facts: &RunFacts<'_>) -> bool {
    let mut grades = grades(facts).into_iter().flatten();
    grades.any(|(grade, _)| grade != Grade::Healthy)
}

/// Segments sent again or overtaken. Neither fails for few; a round trip of data that grows with
/// them does.
pub(super) fn lost_segments(facts: &RunFacts<'_>) -> Reading {
    if facts.run.protocol().transport == Transport::Datagrams {
        return lost_packets(facts);
    }
    let [again, overtaken] = grades(facts);
    let Some((again, mut words)) = again else {
        return missing(facts, "network.tcp", "no segments were counted");
    };
    // A listening socket with a full accept queue also drops what comes first on a connection that
    // the client takes for open.
    let is_the_servers =
        facts.is_local() && facts.tcp().is_some_and(|tcp| tcp.listen_overflows > 0);
    let mut reading = Reading::new(again, String::new())
        .warn_at_most(is_the_servers, "the server's accept queue was full");
    words.push_str(&reading.detail);
    if let Some((grade, of_them)) = overtaken.filter(|(grade, _)| *grade != Grade::Healthy) {
        words = format!("{words}, {of_them}");
        if reading.grade != Grade::Fail {
            reading.grade = grade;
        }
    }
    if let Some(queue) = queueing(facts) {
        words = format!("{words}, {queue}");
        reading.grade = match reading.grade {
            // A server that takes its time between two parts of a reply looks the same [tuned].
            Grade::Healthy => Grade::Warn,
            _ => Grade::Fail,
        };
    }
    Reading::new(reading.grade, words)
}

/// The same over datagrams: packets of brunt that it held for lost.
fn lost_packets(facts: &RunFacts<'_>) -> Reading {
    let quic = &facts.summary.window.quic;
    let lost = Rare {
        events: quic.packets_lost,
        segments: quic.packets_sent,
    };
    if lost.segments == 0 {
        return Reading::unknown("no packet was sent");
    }
    let share = percent(lost.share());
    let words = format!("{share} of the packets lost ({})", count(lost.events));
    Reading::new(lost.grade(RETRANSMITS), words)
        // Nothing is lost on the way from a machine to itself.
        .warn_at_most(facts.is_local(), "the server's receive buffer was full")
}

/// How the round trip of data received grew as it does with a queue on the way, in words. Absent
/// where it did not.
fn queueing(facts: &RunFacts<'_>) -> Option<String> {
    let window = &facts.summary.window;
    let per_reply = ratio(window.bytes_received as f64, facts.replies() as f64)?;
    if facts.is_local() || per_reply < BULK_REPLY_BYTES {
        return None;
    }
    let largest_ns = facts.kernel.receive_rtt_ns_max? as f64;
    let times = ratio(largest_ns, facts.kernel.min_rtt_ns? as f64)?;
    (times > QUEUEING_RATIO && largest_ns > QUEUEING_LEAST_NS).then(|| {
        let (largest, times) = (duration(largest_ns), number(times));
        format!("round trip of data up to {largest}, {times}× the smallest")
    })
}

pub(super) fn link_use(facts: &RunFacts<'_>) -> Reading {
    let Some(network) = facts.network() else {
        return missing(facts, "network", "the way to the server was not read");
    };
    match (&network.route, facts.link_use()) {
        (Route::UnixSocket | Route::Loopback, _) => {
            Reading::unknown("client and server share a machine")
        }
        (Route::Interface { .. }, Some(used)) => {
            let words = format!("link used to {}", percent(used));
            Reading::new(grade_above(used, LINK_WARN, LINK_FAIL), words)
        }
        (Route::Interface { .. }, None) => {
            Reading::unknown("the link's speed is not known: `--link-speed`")
        }
        (Route::Unknown, _) => missing(facts, "network.route", "the route is not known"),
    }
}
