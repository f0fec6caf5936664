//! R1 to R3: memory, workers and limits.

use super::facts::Facts;
use super::outcome::{Outcome, Problems};
use crate::{Backend, ModelDescription};

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
/// Copies of the request that the process and each worker may hold.
const PAYLOAD_COPIES: u64 = 4;

/// What a waiting arrival takes, in a queue that has just grown.
const WAITING_BYTES: u64 = 24;

/// R1.
pub(super) fn memory_within_budget(facts: &Facts<'_>) -> Outcome {
    let (load, host) = (&facts.run.load, &facts.run.host);
    if load.own_server {
        return Outcome::not_applicable("the process also held the reference server");
    }
    if load.backend == Backend::Sim {
        return Outcome::not_applicable("the process also held the simulated network");
    }
    if host.peak_resident_bytes == 0 {
        return Outcome::not_applicable("memory was not read");
    }
    let workers = u64::from(load.workers);
    let connections = u64::from(match load.model {
        ModelDescription::Open {
            connections_max, ..
        } => connections_max.max(load.connections),
        _ => load.connections,
    });
    let waiting = load
        .model
        .schedule()
        .map_or(0, |schedule| schedule.queue_max);
    let queue_bytes = WAITING_BYTES * u64::from(waiting);
    let copies = PAYLOAD_COPIES
        .saturating_mul(u64::from(load.depth))
        .saturating_mul(workers.saturating_add(1));
    let payload_bytes = load.request_bytes.saturating_mul(copies);
    let of = |budget: Budget| {
        budget
            .base_bytes
            .saturating_add(budget.per_worker_bytes.saturating_mul(workers))
            .saturating_add(budget.per_connection_bytes.saturating_mul(connections))
            .saturating_add(payload_bytes)
            .saturating_add(queue_bytes)
    };
    let (ordinary, refused) = (of(ORDINARY), of(REFUSED));
    let mib = |bytes: u64| bytes as f64 / MIB as f64;
    let words = format!(
        "{:.1} MiB resident at most with {workers} workers, {connections} connections and \
         requests of {} bytes; budget {:.1} MiB, refused over {:.1}",
        mib(host.peak_resident_bytes),
        load.request_bytes,
        mib(ordinary),
        mib(refused)
    );
    match host.peak_resident_bytes {
        peak if peak > refused => Outcome::broken(words),
        peak if peak > ordinary => Outcome::flagged(words),
        _ => Outcome::held(words),
    }
}

/// R2.
pub(super) fn workers_fit(facts: &Facts<'_>) -> Outcome {
    let (load, host) = (&facts.run.load, &facts.run.host);
    let reported = facts.run.workers.len();
    let words = format!(
        "{} workers, {reported} reported, {} usable CPUs",
        load.workers, host.usable_cpus
    );
    if reported as u64 != u64::from(load.workers) {
        return Outcome::broken(words);
    }
    if load.backend == Backend::Sim {
        return Outcome::not_applicable(format!("simulated workers need no CPU each; {words}"));
    }
    if host.usable_cpus == 0 {
        return Outcome::not_applicable(format!("usable CPUs were not read; {words}"));
    }
    if load.workers <= host.usable_cpus {
        return Outcome::held(words);
    }
    if load.oversubscribed {
        Outcome::flagged(format!("{words}, as was asked for"))
    } else {
        Outcome::broken(words)
    }
}

/// R3.
pub(super) fn limits_suffice(facts: &Facts<'_>) -> Outcome {
    let limits = &facts.run.limits;
    if facts.run.load.backend == Backend::Sim {
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
