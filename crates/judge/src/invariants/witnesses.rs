//! I6 and I8: what the link and the server's own count say.

use brunt_record::{Backend, Route, ServerCount};

use super::facts::Facts;
use super::outcome::{Outcome, bytes_per_s, percent};
use crate::Bandwidth;

/// Share of a link's speed that payload can take: the rest is headers and gaps between packets.
const LINK_SHARE_MOST: f64 = 0.98;
/// Share of a payload rate that the interface must have counted itself to stand for all of it:
/// its readings and the window do not end at the same instants.
const INTERFACE_AGREES: f64 = 0.95;
/// What a socket's receive buffer may hold, by the kernel's default (`tcp_rmem`).
const RECEIVE_BUFFER_BYTES: f64 = 6_291_456.0;
/// Times what was sent beyond which the server's count is another server's, or of something else.
const COUNTED_TIMES_MOST: u64 = 2;
/// Requests of others that are excused in the shortest run: somebody checks whether the server is
/// alive.
const OTHERS_EXCUSED: u64 = 10;

/// The payload of one direction over the window.
struct Payload {
    direction: &'static str,
    per_s: f64,
    /// Payload per second, without what may have crossed the link outside of the window.
    certain_per_s: f64,
}

impl Payload {
    fn new(direction: &'static str, bytes: u64, outside_bytes: f64, window_ns: u64) -> Self {
        let window_s = window_ns as f64 / 1e9;
        Self {
            direction,
            per_s: bytes as f64 / window_s,
            certain_per_s: (bytes as f64 - outside_bytes).max(0.0) / window_s,
        }
    }

    fn words(&self) -> String {
        format!("{} {}", bytes_per_s(self.per_s), self.direction)
    }
}

/// Received and sent. What was read in the window may have waited in socket buffers when it began:
/// at most one reply per place. What was handed over in it may not have been on the link when it
/// ended, or when its connection did.
fn payloads(facts: &Facts<'_>) -> [Payload; 2] {
    let (negotiated, window) = (&facts.agent().negotiated, &facts.summary.window);
    let places = f64::from(facts.summary.live.max) * f64::from(negotiated.depth.max(1));
    let reply_bytes = match window.replies.total() {
        0 => RECEIVE_BUFFER_BYTES,
        replies => (window.bytes_received as f64 / replies as f64).min(RECEIVE_BUFFER_BYTES),
    };
    let failures: f64 = window.failures.iter().map(|(_, count)| count as f64).sum();
    let cut_short = failures + window.connections_opened as f64;
    let unsent_bytes = (places + cut_short) * negotiated.request_bytes as f64;
    let of = |direction, bytes, outside_bytes| {
        Payload::new(direction, bytes, outside_bytes, facts.window_ns())
    };
    let sent_bytes = match facts.run.is_streams() {
        // What was handed over waits in the sockets for as long as the link is full.
        true => Bandwidth::of(facts.run, &facts.summary).window.bytes_acked,
        false => window.bytes_sent,
    };
    [
        of("received", window.bytes_received, places * reply_bytes),
        of("sent", sent_bytes, unsent_bytes),
    ]
}

/// I6.
pub(super) fn payload_fits(facts: &Facts<'_>) -> Outcome {
    if facts.agent().backend == Backend::Sim {
        return Outcome::not_applicable("a simulated network has no link");
    }
    if facts.no_window() {
        return Outcome::not_applicable("there is no window");
    }
    let Some(network) = &facts.agent().evidence.network else {
        return Outcome::not_applicable("the way to the server was not looked at");
    };
    match &network.route {
        Route::UnixSocket => Outcome::not_applicable("a Unix socket has no link"),
        Route::Unknown => Outcome::not_applicable("the way to the server could not be found out"),
        Route::Loopback => Outcome::not_applicable("loopback has no link"),
        Route::Interface {
            name,
            link_bits_per_s: Some(bits_per_s),
            was_given,
            received_bytes,
            sent_bytes,
            ..
        } => {
            let source = if *was_given {
                "--link-speed"
            } else {
                "its driver"
            };
            let link = Link {
                words: format!(
                    "{name} is a link of {} by {source}",
                    bytes_per_s(*bits_per_s as f64 / 8.0)
                ),
                bytes_per_s: *bits_per_s as f64 / 8.0,
                counted_bytes: [*received_bytes, *sent_bytes],
            };
            under_speed(facts, &link)
        }
        Route::Interface { name, .. } => {
            Outcome::not_applicable(format!("the speed of {name} is not known"))
        }
    }
}

/// A link with a speed, and what its interface counted: received and sent, with headers.
struct Link {
    words: String,
    bytes_per_s: f64,
    counted_bytes: [u64; 2],
}

/// Virtual interfaces state speeds that they exceed, and a speed can be mistyped: when the
/// interface itself counted as much, the figures are right and the speed is not.
fn under_speed(facts: &Facts<'_>, link: &Link) -> Outcome {
    let most_per_s = link.bytes_per_s * LINK_SHARE_MOST;
    let interval_s = facts.agent().evidence.interval_ns as f64 / 1e9;
    let payloads = payloads(facts);
    let mut words = format!(
        "{}; {} and {} of payload",
        link.words,
        payloads[0].words(),
        payloads[1].words()
    );
    let mut is_nominal = false;
    for (payload, counted_bytes) in payloads.iter().zip(link.counted_bytes) {
        if payload.certain_per_s <= most_per_s {
            continue;
        }
        let counted_per_s = counted_bytes as f64 / interval_s;
        words = format!(
            "{words}; at most {} can be {}",
            bytes_per_s(most_per_s),
            payload.direction
        );
        // Without readings, the quotient is undefined or infinite.
        if !(counted_per_s.is_finite() && counted_per_s >= payload.certain_per_s * INTERFACE_AGREES)
        {
            return Outcome::broken(words);
        }
        is_nominal = true;
        words = format!(
            "{words}, but the interface itself counted {}: that speed is not its limit",
            bytes_per_s(counted_per_s)
        );
    }
    if is_nominal {
        Outcome::flagged(words)
    } else {
        Outcome::held(words)
    }
}

/// I8. What was answered, the server has counted, or is about to: many count a request after its
/// reply was written, or add up their counts now and then. What failed or was in flight at the end,
/// it may have counted or not: it may never have seen it, or have answered to nobody. What others
/// sent meanwhile says nothing against the run.
pub(super) fn server_agrees(facts: &Facts<'_>) -> Outcome {
    if facts.run.is_streams() {
        return Outcome::not_applicable("streams have no requests: T1 has the receiver's count");
    }
    let count = match facts.run.server_count() {
        Ok(Some(count)) => count,
        Ok(None) => {
            return Outcome::not_applicable("the server's own count was not read (--verify-url)");
        }
        Err(reason) => return Outcome::not_applicable(reason),
    };
    let ServerCount {
        url,
        path,
        before,
        after,
        own_reads,
    } = &count;
    if after < before {
        return Outcome::broken(format!(
            "{path} at {url} went back from {before} to {after}: the server was started anew, or \
             another one answered"
        ));
    }
    let counted = after - before;
    let (sent, answered) = (
        facts.summary.lifetime.sends(),
        facts.summary.lifetime.replies.total(),
    );
    let words = format!(
        "the server counted {} ({path} at {url}, {before} to {after}, of which {own_reads} may be \
         the reading); {sent} sent, {answered} answered",
        brunt_record::counted(counted, "request", "requests")
    );
    if let Some(too_few) = answered.checked_sub(counted).filter(|&few| few > 0) {
        let words = format!("{words}: {too_few} too few");
        return if too_few <= places(facts) {
            Outcome::flagged(format!(
                "{words}, no more than can be in flight: they may be counted later"
            ))
        } else {
            Outcome::broken(words)
        };
    }
    let others = counted.saturating_sub(sent.saturating_add(*own_reads));
    if others == 0 {
        return Outcome::held(words);
    }
    let share = others as f64 / sent.max(1) as f64;
    let words = format!(
        "{words}: {others} more than can be brunt's ({})",
        percent(share)
    );
    let others_most = sent.saturating_mul(COUNTED_TIMES_MOST - 1);
    if others <= others_most.max(OTHERS_EXCUSED) || others_are_seen(facts) {
        Outcome::flagged(format!("{words}; somebody else uses the server"))
    } else {
        Outcome::broken(format!(
            "{words}; it is another server's count, or of something else"
        ))
    }
}

/// Whether the kernel saw others send to the server.
fn others_are_seen(facts: &Facts<'_>) -> bool {
    let own = u64::from(facts.summary.live.max);
    let agents = facts.run.agents.iter();
    agents
        .filter_map(|agent| agent.evidence.server_connections.as_ref())
        .any(|seen| seen.connections > own && seen.segments_received_beyond > 0)
}

/// Requests that can be in flight at once.
fn places(facts: &Facts<'_>) -> u64 {
    let run = facts.run;
    let connections = facts.summary.live.max.max(run.plan.connections.get());
    u64::from(connections) * u64::from(run.depth().max(1))
}
