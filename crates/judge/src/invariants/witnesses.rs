//! I6 and I8: what the link and the server's own count say.

use brunt_record::{Backend, Route, ServerCount};

use super::outcome::{Checked, Outcome, only_if};
use crate::Bandwidth;
use crate::facts::Facts;
use crate::units::exact::{bytes_per_s, percent};
use crate::units::plural;

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

/// Payload of one direction over the window, bytes: all, and what may have crossed the link outside
/// of it. What was read in the window may have waited in socket buffers when it began: at most one
/// reply per place. What was handed over in it may not have been on the link when it ended, or when
/// its connection did.
fn payloads(facts: &Facts<'_>) -> [(&'static str, f64, f64); 2] {
    let (negotiated, window) = (&facts.agent().negotiated, &facts.summary.window);
    let places = f64::from(facts.summary.live.max) * f64::from(negotiated.depth.max(1));
    let received = window.bytes_received as f64;
    let reply_bytes = match window.replies.total() {
        0 => RECEIVE_BUFFER_BYTES,
        replies => (received / replies as f64).min(RECEIVE_BUFFER_BYTES),
    };
    let failures: f64 = window.failures.iter().map(|(_, count)| count as f64).sum();
    let cut_short = failures + window.connections_opened as f64;
    let unsent = (places + cut_short) * negotiated.request_bytes as f64;
    let sent = if facts.run.is_streams() {
        // What was handed over waits in the sockets for as long as the link is full.
        Bandwidth::of(facts.run, &facts.summary).window.bytes_acked
    } else {
        window.bytes_sent
    };
    [
        ("received", received, places * reply_bytes),
        ("sent", sent as f64, unsent),
    ]
}

/// I6. Virtual interfaces state speeds that they exceed, and a speed can be mistyped: when the
/// interface itself counted as much, the figures are right and the speed is not.
pub(super) fn payload_fits(facts: &Facts<'_>) -> Checked {
    let agent = facts.agent();
    let is_real = agent.backend != Backend::Sim;
    only_if(is_real, "a simulated network has no link")?;
    only_if(!facts.no_window(), "there is no window")?;
    let route = agent
        .evidence
        .network
        .as_ref()
        .map(|network| &network.route);
    let Some(Route::Interface {
        name,
        link_bits_per_s,
        was_given,
        received_bytes,
        sent_bytes,
        ..
    }) = route
    else {
        return Err(Outcome::not_applicable(match route {
            Some(Route::UnixSocket) => "a Unix socket has no link",
            Some(Route::Loopback) => "loopback has no link",
            Some(_) => "the way to the server could not be found out",
            None => "the way to the server was not looked at",
        }));
    };
    let Some(bits_per_s) = link_bits_per_s else {
        let words = format!("the speed of {name} is not known");
        return Err(Outcome::not_applicable(words));
    };
    let link_per_s = *bits_per_s as f64 / 8.0;
    let source = if *was_given {
        "--link-speed"
    } else {
        "its driver"
    };
    let [window_s, interval_s] =
        [facts.window_ns(), agent.evidence.interval_ns].map(|ns| ns as f64 / 1e9);
    let payloads = payloads(facts);
    let told = payloads.map(|(way, bytes, _)| format!("{} {way}", bytes_per_s(bytes / window_s)));
    let mut words = format!(
        "{name} is a link of {} by {source}; {} of payload",
        bytes_per_s(link_per_s),
        told.join(" and ")
    );
    let most_per_s = link_per_s * LINK_SHARE_MOST;
    let mut is_nominal = false;
    for ((way, bytes, outside), counted) in payloads.into_iter().zip([received_bytes, sent_bytes]) {
        let certain_per_s = (bytes - outside).max(0.0) / window_s;
        if certain_per_s <= most_per_s {
            continue;
        }
        words = format!("{words}; at most {} can be {way}", bytes_per_s(most_per_s));
        let counted_per_s = *counted as f64 / interval_s;
        // Without readings, the quotient is undefined or infinite.
        let has_counted =
            counted_per_s.is_finite() && counted_per_s >= certain_per_s * INTERFACE_AGREES;
        if !has_counted {
            return Err(Outcome::broken(words));
        }
        is_nominal = true;
        words = format!(
            "{words}, but the interface itself counted {}: that speed is not its limit",
            bytes_per_s(counted_per_s)
        );
    }
    Ok(Outcome::held_or_flagged(is_nominal, words))
}

/// I8. What was answered, the server has counted, or is about to: many count a request after its
/// reply was written, or add up their counts now and then. What failed or was in flight at the end,
/// it may have counted or not: it may never have seen it, or have answered to nobody. What others
/// sent meanwhile says nothing against the run.
pub(super) fn server_agrees(facts: &Facts<'_>) -> Checked {
    let run = facts.run;
    let streams = "streams have no requests: T1 has the receiver's count";
    only_if(!run.is_streams(), streams)?;
    let count = run.server_count().map_err(Outcome::not_applicable)?;
    let Some(count) = count else {
        let words = "the server's own count was not read (--verify-url)";
        return Err(Outcome::not_applicable(words));
    };
    let ServerCount {
        url,
        path,
        before,
        after,
        own_reads,
    } = &count;
    if after < before {
        return Err(Outcome::broken(format!(
            "{path} at {url} went back from {before} to {after}: the server was started anew, or \
             another one answered"
        )));
    }
    let counted = after - before;
    let sent = facts.summary.lifetime.sends();
    let answered = facts.summary.lifetime.replies.total();
    let requests = plural(counted, "request");
    let words = format!(
        "the server counted {requests} ({path} at {url}, {before} to {after}, of which {own_reads} \
         may be the reading); {sent} sent, {answered} answered"
    );
    if counted < answered {
        let too_few = answered - counted;
        let words = format!("{words}: {too_few} too few");
        let connections = facts.summary.live.max.max(run.plan.connections.get());
        let places = u64::from(connections) * u64::from(run.depth().max(1));
        return if too_few <= places {
            Ok(Outcome::flagged(format!(
                "{words}, no more than can be in flight: they may be counted later"
            )))
        } else {
            Err(Outcome::broken(words))
        };
    }
    let others = counted.saturating_sub(sent.saturating_add(*own_reads));
    if others == 0 {
        return Ok(Outcome::held(words));
    }
    let share = percent(others as f64 / sent.max(1) as f64);
    let words = format!("{words}: {others} more than can be brunt's ({share})");
    let others_most = sent.saturating_mul(COUNTED_TIMES_MOST - 1);
    if others <= others_most.max(OTHERS_EXCUSED) || others_are_seen(facts) {
        let words = format!("{words}; somebody else uses the server");
        Ok(Outcome::flagged(words))
    } else {
        Err(Outcome::broken(format!(
            "{words}; it is another server's count, or of something else"
        )))
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
