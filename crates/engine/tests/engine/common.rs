//! Plans to start from, and what every run must fulfil.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_load::{BackendChoice, Faults, Plan, RequestSpec, Reuse, Stop, Target};
use brunt_measure::{FailureKind, FailureScope, Finding, Run, Standing, Tally};

pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000_000;
pub(crate) const S: u64 = 1_000_000_000;

pub(crate) fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("at least one")
}

pub(crate) fn many_long(count: u64) -> NonZeroU64 {
    NonZeroU64::new(count).expect("at least one")
}

/// A short run of four connections: 30 ms of warm-up, 200 ms of measurement.
pub(crate) fn plan(url: &str, backend: BackendChoice) -> Plan {
    Plan {
        target: Target::parse(url, None).expect("a URL"),
        request: RequestSpec {
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        },
        connections: many(4),
        workers: many(1),
        pipeline: many(1),
        reuse: Reuse::Unlimited,
        stop: Stop {
            duration_ns: Some(200 * MS),
            requests: None,
        },
        warmup_ns: 30 * MS,
        timeout_ns: 5 * S,
        connect_timeout_ns: 5 * S,
        drain_limit_ns: 2 * S,
        backend,
        source_addresses: Vec::new(),
        oversubscribe: true,
        faults: Faults::default(),
    }
}

/// The counters of all phases and workers.
pub(crate) fn lifetime(run: &Run) -> Tally {
    run.summary().lifetime
}

/// Failed requests of all phases.
pub(crate) fn failed(run: &Run) -> u64 {
    lifetime(run).failures.total(FailureScope::Request)
}

/// The failures of all phases, by kind.
pub(crate) fn failures(run: &Run) -> Vec<(FailureKind, u64)> {
    lifetime(run).failures.iter().collect()
}

/// The broken invariants but for `excused` ones.
pub(crate) fn broken<'a>(run: &'a Run, excused: &[&str]) -> Vec<&'a Finding> {
    run.findings
        .iter()
        .filter(|finding| finding.standing == Standing::Broken)
        .filter(|finding| !excused.contains(&finding.id.as_str()))
        .collect()
}

/// Refuses a run with a broken invariant.
pub(crate) fn expect_valid(run: &Run, what: &str) {
    let broken = broken(run, &[]);
    assert!(broken.is_empty(), "{what}: {broken:#?}");
}

/// How an invariant stands.
pub(crate) fn standing(run: &Run, id: &str) -> Standing {
    let finding = run.findings.iter().find(|finding| finding.id == id);
    finding.expect("every invariant is checked").standing
}
