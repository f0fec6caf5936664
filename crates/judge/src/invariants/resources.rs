//! I6 and R1 to R3: what the link, memory, workers and limits allow.

use brunt_load::Work;
use brunt_record::{AgentRecord, Backend, LoggedRequest, Route};

use super::{CheckOutcome, Checked, Problems, known, must, only_if};
use crate::Bandwidth;
use crate::facts::Facts;
use crate::units::exact::bytes_per_s;
use crate::units::plural;

/// Share of a link's speed that payload can take: the rest is headers and gaps between packets.
const LINK_SHARE_MOST: f64 = 0.98;
/// Share of a payload rate that the interface must have counted itself to stand for all of it:
/// its readings and the window do not end at the same instants.
const INTERFACE_AGREES: f64 = 0.95;
/// What a socket's receive buffer may hold, by the kernel's default (`tcp_rmem`).
const RECEIVE_BUFFER_BYTES: f64 = 6_291_456.0;
const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * KIB;

/// Memory that a run may use is a sum in which connections and workers are never multiplied. It has
/// room for a server that leaves a large incomplete head on every connection. Bytes of the process,
/// of each worker and of each connection:
const BASE_BYTES: f64 = 64.0 * MIB;
const WORKER_BYTES: f64 = 32.0 * MIB;
const CONNECTION_BYTES: f64 = 80.0 * KIB;
/// What a TLS session may keep of its own beside that: keys, and where its peer stops inside a
/// record, that.
const TLS_SESSION_BYTES: f64 = 64.0 * KIB;
/// Times that what the plan itself holds may be in memory at once: a list is read and encoded.
const PLANS: f64 = 2.0;
/// Times that a window that a server fills behind a gap may be in memory: what it sends in pieces
/// takes more room than it has bytes.
const WINDOWS: f64 = 2.0;
/// What a place for a request takes on a connection.
const PLACE_BYTES: f64 = 128.0;
/// Copies of a request that wait on its connection to be taken by the kernel, where each is framed
/// or encrypted for itself: the bytes, and those of a buffer that has just grown.
const OWNED_COPIES: f64 = 2.0;
/// Copies of the request that the process and each worker may hold.
const PAYLOAD_COPIES: f64 = 4.0;
/// What a waiting arrival takes, 24 bytes, in a queue that has just grown to twice its size.
const WAITING_BYTES: f64 = 3.0 * 24.0;

/// Memory that an agent may use, bytes.
fn memory_most_bytes(facts: &Facts<'_>) -> f64 {
    let agent = facts.agent();
    let (share, negotiated) = (&agent.share, &agent.negotiated);
    let workers = f64::from(share.workers);
    let depth = f64::from(negotiated.depth);
    let request = negotiated.request_bytes as f64;
    let payload = request * PAYLOAD_COPIES * depth * (workers + 1.0);
    let queue = WAITING_BYTES * f64::from(share.queue_max.unwrap_or(0));
    let connections = f64::from(share.connections_most());
    BASE_BYTES
        + WORKER_BYTES * workers
        + connection_bytes(agent) * connections
        + payload
        + queue
        + asked_bytes(facts)
}

/// What a connection takes, with what TLS and the protocol add to it.
fn connection_bytes(agent: &AgentRecord) -> f64 {
    let (share, negotiated) = (&agent.share, &agent.negotiated);
    let cost = negotiated.protocol.cost;
    let is_tls = negotiated.tls.is_some();
    let mut place = PLACE_BYTES;
    if is_tls || cost.copies_units {
        place += OWNED_COPIES * negotiated.request_bytes as f64;
    }
    let tls = if is_tls { TLS_SESSION_BYTES } else { 0.0 };
    let connections = share.connections_most();
    let window = cost.window.map(|window| window.of_each(connections));
    CONNECTION_BYTES
        + place * f64::from(negotiated.depth)
        + tls
        + cost.state_bytes_most as f64
        + WINDOWS * window.unwrap_or(0) as f64
}

/// What lists, the records of single requests and those of names take, which grow with what was
/// asked for and sent.
fn asked_bytes(facts: &Facts<'_>) -> f64 {
    let agent = facts.agent();
    let issued = facts.sum(|worker| worker.population.issued);
    let logged = issued.min(agent.limits.logged_requests_max.into()) as f64;
    let names = facts.run.names.iter();
    let names: f64 = names.map(|name| name.held_bytes_max() as f64).sum();
    // Each worker keeps its own.
    let names = names * f64::from(agent.share.workers.max(1));
    PLANS * agent.limits.planned_bytes as f64 + logged * size_of::<LoggedRequest>() as f64 + names
}

/// R1.
pub(super) fn memory_within_budget(facts: &Facts<'_>) -> Checked {
    let agent = facts.agent();
    let is_alone = !agent.own_server;
    only_if(is_alone, "the process also held the reference server")?;
    let is_real = agent.backend != Backend::Sim;
    only_if(is_real, "the process also held the simulated network")?;
    let peak = agent.host.peak_resident_bytes as f64;
    only_if(peak > 0.0, "memory was not read")?;
    let most = memory_most_bytes(facts);
    let words = format!(
        "{:.1} MiB resident at most with {}, {} and requests of {}; budget {:.1} MiB",
        peak / MIB,
        plural(agent.share.workers, "worker"),
        plural(agent.share.connections_most(), "connection"),
        plural(agent.negotiated.request_bytes, "byte"),
        most / MIB
    );
    let is_generated = facts.workers().any(|worker| worker.generator.is_some());
    // Nobody knows how much of that is the script's.
    let of_script = format!("a script holds what it wants: {words}");
    only_if(peak <= most || !is_generated, &of_script)?;
    must(peak <= most, &words)?;
    Ok(CheckOutcome::held(words))
}

/// R2.
pub(super) fn workers_fit(facts: &Facts<'_>) -> Checked {
    let agent = facts.agent();
    let (workers, usable) = (agent.share.workers, agent.host.usable_cpus);
    let reported = facts.workers().count();
    let (asked, cpus) = (plural(workers, "worker"), plural(usable, "usable CPU"));
    let words = format!("{asked}, {reported} reported, {cpus}");
    must(reported as u64 == u64::from(workers), &words)?;
    let simulated = format!("simulated workers need no CPU each; {words}");
    only_if(agent.backend != Backend::Sim, &simulated)?;
    only_if(usable > 0, &format!("usable CPUs were not read; {words}"))?;
    if workers <= usable {
        return Ok(CheckOutcome::held(words));
    }
    must(facts.run.plan.workers.oversubscribe, &words)?;
    Ok(CheckOutcome::flagged(format!("{words}, as was asked for")))
}

/// R3.
pub(super) fn limits_suffice(facts: &Facts<'_>) -> Checked {
    let limits = &facts.agent().limits;
    let is_real = facts.agent().backend != Backend::Sim;
    only_if(is_real, "a simulated network has no limits")?;
    let descriptors = Some((limits.descriptors_needed, limits.descriptors_limit));
    let ports = limits.ports_needed.zip(limits.ports_available);
    let memory_needed = Some(limits.memory_needed_bytes);
    let memory = memory_needed.zip(limits.memory_available_bytes);
    let mut problems = Problems::default();
    let mut held = Vec::new();
    for (words, of) in [
        ("file descriptors", descriptors),
        ("local ports", ports),
        ("bytes of memory", memory),
    ] {
        if let Some((needed, available)) = of {
            problems.expect(needed <= available, || {
                format!("{needed} {words} needed, {available} available")
            });
            held.push(format!("{needed} of {available} {words}"));
        }
    }
    problems.or_held(format!("needed: {}", held.join(", ")))
}

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
    let sent = if facts.run.work() == Work::Streams {
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
    let network = agent.evidence.network.as_ref();
    let route = network.map(|network| &network.route);
    let Some(Route::Interface {
        name,
        link_bits_per_s,
        received_bytes,
        sent_bytes,
        ..
    }) = route
    else {
        return Err(CheckOutcome::not_applicable(match route {
            Some(Route::UnixSocket) => "a Unix socket has no link",
            Some(Route::Loopback) => "loopback has no link",
            Some(_) => "the way to the server could not be found out",
            None => "the way to the server was not looked at",
        }));
    };
    let unknown = format!("the speed of {name} is not known");
    let link_per_s = known(*link_bits_per_s, &unknown)? as f64 / 8.0;
    let [window_s, interval_s] =
        [facts.run.window_ns, agent.evidence.interval_ns].map(|ns| ns as f64 / 1e9);
    let payloads = payloads(facts);
    let shown = payloads.map(|(way, bytes, _)| format!("{} {way}", bytes_per_s(bytes / window_s)));
    let mut words = format!(
        "{name} is a link of {}; {} of payload",
        bytes_per_s(link_per_s),
        shown.join(" and ")
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
        must(has_counted, &words)?;
        is_nominal = true;
        words = format!(
            "{words}, but the interface itself counted {}: that speed is not its limit",
            bytes_per_s(counted_per_s)
        );
    }
    Ok(CheckOutcome::held_or_flagged(is_nominal, words))
}
