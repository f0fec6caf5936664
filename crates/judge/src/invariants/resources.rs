//! R1 to R3: memory, workers and limits.

use brunt_record::{AgentRecord, Backend, LoggedRequest, counted};

use super::facts::Facts;
use super::outcome::{Outcome, Problems};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Memory that a run may use: a sum in which connections and workers are never multiplied.
struct Budget {
    base_bytes: u64,
    per_worker_bytes: u64,
    per_connection_bytes: u64,
}

/// What an ordinary run stays under.
const ORDINARY: Budget = Budget {
    base_bytes: 48 * MIB,
    per_worker_bytes: 24 * MIB,
    per_connection_bytes: 8 * KIB,
};
/// What a run may need whose server leaves a large incomplete head on every connection.
const REFUSED: Budget = Budget {
    base_bytes: 64 * MIB,
    per_worker_bytes: 32 * MIB,
    per_connection_bytes: 80 * KIB,
};
/// What a TLS session may keep of its own beside an ordinary connection: keys, and where its peer
/// stops inside a record, that.
const TLS_BYTES: [u64; 2] = [20 * KIB, 64 * KIB];
/// What a place for a request takes on a connection.
const PLACE_BYTES: u64 = 128;
/// Copies of a request that wait on its connection to be taken by the kernel, where each is framed
/// or encrypted for itself: the bytes, and those of a buffer that has just grown.
const OWNED_COPIES: u64 = 2;
/// Times a window that a server fills behind a gap may be in memory: what it sends in pieces takes
/// more room than it has bytes.
const WINDOW_TIMES: u64 = 2;
/// Copies of the request that the process and each worker may hold.
const PAYLOAD_COPIES: u64 = 4;

/// Times that what the plan itself holds may be in memory at once, in halves: a list is read and
/// encoded.
const PLANNED_HALVES: [u64; 2] = [3, 4];

/// What a waiting arrival takes, 24 bytes, in a queue that has just grown to twice its size.
const WAITING_BYTES: u64 = 3 * 24;

/// R1.
pub(super) fn memory_within_budget(facts: &Facts<'_>) -> Outcome {
    let (agent, host) = (facts.agent(), &facts.agent().host);
    if agent.own_server {
        return Outcome::not_applicable("the process also held the reference server");
    }
    if agent.backend == Backend::Sim {
        return Outcome::not_applicable("the process also held the simulated network");
    }
    if host.peak_resident_bytes == 0 {
        return Outcome::not_applicable("memory was not read");
    }
    let (share, negotiated) = (&agent.share, &agent.negotiated);
    let workers = u64::from(share.workers);
    let connections = u64::from(share.connections_most());
    let waiting = share.queue_max.unwrap_or(0);
    let queue_bytes = WAITING_BYTES * u64::from(waiting);
    let copies = PAYLOAD_COPIES
        .saturating_mul(u64::from(negotiated.depth))
        .saturating_mul(workers.saturating_add(1));
    let payload_bytes = negotiated.request_bytes.saturating_mul(copies);
    let asked = [0, 1].map(|budget| {
        let planned = agent.limits.planned_bytes;
        let planned = planned.saturating_mul(PLANNED_HALVES[budget]) / 2;
        planned.saturating_add(recorded_bytes(facts))
    });
    let of = |budget: Budget, session_bytes: u64| {
        let per_connection_bytes = budget.per_connection_bytes.saturating_add(session_bytes);
        budget
            .base_bytes
            .saturating_add(budget.per_worker_bytes.saturating_mul(workers))
            .saturating_add(per_connection_bytes.saturating_mul(connections))
            .saturating_add(payload_bytes)
            .saturating_add(queue_bytes)
    };
    let [session_ordinary, session_most] = session_bytes(agent);
    let ordinary = of(ORDINARY, session_ordinary).saturating_add(asked[0]);
    let refused = of(REFUSED, session_most).saturating_add(asked[1]);
    let mib = |bytes: u64| bytes as f64 / MIB as f64;
    let kept = match asked[0] {
        0 => String::new(),
        bytes => format!(", and {:.1} MiB for lists, names and logs", mib(bytes)),
    };
    let words = format!(
        "{:.1} MiB resident at most with {}, {} and requests of {}{kept}; budget {:.1} MiB, \
         refused over {:.1}",
        mib(host.peak_resident_bytes),
        counted(workers, "worker", "workers"),
        counted(connections, "connection", "connections"),
        counted(negotiated.request_bytes, "byte", "bytes"),
        mib(ordinary),
        mib(refused)
    );
    let is_generated = agent
        .workers
        .iter()
        .any(|worker| worker.generator.is_some());
    match host.peak_resident_bytes {
        // Nobody knows how much of that is the script's.
        peak if peak > ordinary && is_generated => {
            Outcome::not_applicable(format!("a script holds what it wants: {words}"))
        }
        peak if peak > refused => Outcome::broken(words),
        peak if peak > ordinary => Outcome::flagged(words),
        _ => Outcome::held(words),
    }
}

/// What the records of single requests and of names take, which grow with what was sent.
fn recorded_bytes(facts: &Facts<'_>) -> u64 {
    let agent = facts.agent();
    let workers = agent.workers.iter();
    let issued = workers
        .map(|worker| worker.population.issued)
        .fold(0, u64::saturating_add);
    let logged = issued.min(agent.limits.logged_requests_max);
    let log_bytes = logged.saturating_mul(size_of::<LoggedRequest>() as u64);
    // Each worker keeps its own.
    let names = facts.run.names.iter();
    let names_bytes = names
        .map(|name| name.held_bytes_max() as u64)
        .fold(0, u64::saturating_add)
        .saturating_mul(u64::from(agent.share.workers).max(1));
    log_bytes.saturating_add(names_bytes)
}

/// What TLS and the protocol add to a connection: ordinarily, and at most.
fn session_bytes(agent: &AgentRecord) -> [u64; 2] {
    let negotiated = &agent.negotiated;
    let depth = u64::from(negotiated.depth);
    let is_tls = negotiated.tls.is_some();
    let cost = negotiated.protocol.cost;
    let owned = if is_tls || cost.copies_units {
        OWNED_COPIES
    } else {
        0
    };
    let places = owned
        .saturating_mul(negotiated.request_bytes)
        .saturating_add(PLACE_BYTES)
        .saturating_mul(depth);
    std::array::from_fn(|budget| {
        let tls = if is_tls { TLS_BYTES[budget] } else { 0 };
        let kept = match cost.window {
            Some(window) if budget == 1 => {
                WINDOW_TIMES * window.of_each(agent.share.connections_most())
            }
            _ => 0,
        };
        let state = cost.state_bytes_budgets[budget];
        places
            .saturating_add(tls)
            .saturating_add(state)
            .saturating_add(kept)
    })
}

/// R2.
pub(super) fn workers_fit(facts: &Facts<'_>) -> Outcome {
    let (agent, host) = (facts.agent(), &facts.agent().host);
    let reported = facts.workers().count();
    let words = format!(
        "{}, {reported} reported, {}",
        counted(agent.share.workers.into(), "worker", "workers"),
        counted(host.usable_cpus.into(), "usable CPU", "usable CPUs")
    );
    if reported as u64 != u64::from(agent.share.workers) {
        return Outcome::broken(words);
    }
    if agent.backend == Backend::Sim {
        return Outcome::not_applicable(format!("simulated workers need no CPU each; {words}"));
    }
    if host.usable_cpus == 0 {
        return Outcome::not_applicable(format!("usable CPUs were not read; {words}"));
    }
    if agent.share.workers <= host.usable_cpus {
        return Outcome::held(words);
    }
    if facts.run.plan.oversubscribe {
        Outcome::flagged(format!("{words}, as was asked for"))
    } else {
        Outcome::broken(words)
    }
}

/// R3.
pub(super) fn limits_suffice(facts: &Facts<'_>) -> Outcome {
    let limits = &facts.agent().limits;
    if facts.agent().backend == Backend::Sim {
        return Outcome::not_applicable("a simulated network has no limits");
    }
    let pairs = [
        (
            "file descriptors",
            Some(limits.descriptors_needed),
            Some(limits.descriptors_limit),
        ),
        ("local ports", limits.ports_needed, limits.ports_available),
        (
            "bytes of memory",
            Some(limits.memory_needed_bytes),
            limits.memory_available_bytes,
        ),
    ];
    let mut problems = Problems::default();
    let mut held = Vec::new();
    for (words, needed, available) in pairs {
        if let (Some(needed), Some(available)) = (needed, available) {
            problems.expect(needed <= available, || {
                format!("{needed} {words} needed, {available} available")
            });
            held.push(format!("{needed} of {available} {words}"));
        }
    }
    problems.or_held(format!("needed: {}", held.join(", ")))
}
