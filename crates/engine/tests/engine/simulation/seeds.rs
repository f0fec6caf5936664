//! Properties of runs of random plans.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brunt_engine::RunError;
use brunt_judge::RunFigures;
use brunt_load::LoadModel;
use brunt_record::{ArrivalCounts, FailureKind, Run};
use brunt_testkit::{Framing, SimCounts, SimFaults, SimSettings};

use super::random_plans::Case;
use super::{plan, reconcile, run};
use crate::common::{broken, failures, lifetime};

/// Random plans, per kind.
const SEEDS: u64 = 1_000;
/// Plans that run each time, and plans that the seed of the check chooses among the others.
const CORE_SEEDS: u64 = 200;
const PART_SEEDS: u64 = 200;
/// Seeds that have found a defect.
const FOUND_SEEDS: [u64; 7] = [1_972, 2_416, 2_693, 3_238, 4_069, 4_814, 5_003];
/// The seed of the check: `cargo xtask test` takes another one for each commit.
const CHECK_VARIABLE: &str = "BRUNT_SEED";
/// Names one seed to run alone.
const SEED_VARIABLE: &str = "BRUNT_SIM_SEED";

#[test]
fn random_plans_keep_every_invariant() {
    keep_every_invariant("", Case::of);
}

#[test]
fn random_plans_over_messages_keep_every_invariant() {
    keep_every_invariant("_over_messages", |seed| Case::of(seed).over_messages());
}

#[test]
fn random_plans_of_streams_keep_every_invariant() {
    keep_every_invariant("_of_streams", |seed| Case::of(seed).of_streams());
}

#[test]
fn random_plans_over_tls_keep_every_invariant() {
    keep_every_invariant("_over_tls", |seed| Case::of(seed).over_tls());
}

#[test]
fn random_plans_that_hold_connections_keep_every_invariant() {
    keep_every_invariant("_that_hold_connections", |seed| {
        let case = Case::of(seed);
        let case = match seed % 3 {
            0 => case.over_messages(),
            1 => case.over_tls(),
            _ => case,
        };
        case.held()
    });
}

#[test]
fn random_plans_generated_keep_every_invariant() {
    keep_every_invariant("_generated", |seed| {
        let case = Case::of(seed).generated();
        if seed % 5 == 0 { case.over_tls() } else { case }
    });
}

/// What the environment says.
fn number(variable: &str) -> Option<u64> {
    let typed = std::env::var(variable).ok()?;
    let number = typed.parse();
    Some(number.unwrap_or_else(|_| panic!("{variable} is a number")))
}

/// Which of `parts` parts of a long test this check makes.
pub(super) fn part_of(parts: u64) -> u64 {
    number(CHECK_VARIABLE).unwrap_or(0) % parts
}

/// Seeds of random plans that this check runs: the first `core`, and `part` of the others.
///
/// `BRUNT_SIM_SEED` names the one seed to run.
pub(super) fn checked_seeds(core: u64, part: u64) -> Vec<u64> {
    if let Some(seed) = number(SEED_VARIABLE) {
        return vec![seed];
    }
    let parts = (SEEDS - core) / part;
    let first = core + part_of(parts) * part;
    (0..core).chain(first..first + part).collect()
}

fn keep_every_invariant(protocol: &str, case_of: fn(u64) -> Case) {
    let mut failed = Vec::new();
    let found = match number(SEED_VARIABLE) {
        None => &FOUND_SEEDS[..],
        Some(_) => &[],
    };
    let checked = checked_seeds(CORE_SEEDS, PART_SEEDS);
    for seed in checked.into_iter().chain(found.iter().copied()) {
        let case = case_of(seed);
        let problems = catch_unwind(AssertUnwindSafe(|| case.problems()))
            .unwrap_or_else(|_| vec!["panicked".to_owned()]);
        if !problems.is_empty() {
            failed.push(format!("seed {seed}: {}", problems.join("; ")));
        }
    }
    assert!(
        failed.is_empty(),
        "{} seeds failed; run one alone with {SEED_VARIABLE}=SEED cargo test -p brunt-engine \
         --test engine random_plans{protocol}_keep\n{}",
        failed.len(),
        failed.join("\n")
    );
}

impl Case {
    /// What is wrong with the run.
    fn problems(&self) -> Vec<String> {
        let (run, counts, mut problems) = match self.run_with_problems() {
            Ok(done) => done,
            // It came before there was a measurement.
            Err(RunError::Interrupted) if self.settings.interrupt_ns.is_some() => {
                return Vec::new();
            }
            // Each attempt failed.
            Err(RunError::NoConnection { set_up, .. }) if set_up.main_failure().is_some() => {
                return Vec::new();
            }
            Err(error) => return vec![error.to_string()],
        };
        // A brunt that wakes up late replaces connections late.
        let excused: &[&str] = match counts.late_wake_ups {
            0 => &[],
            _ => &["L1"],
        };
        let broken = broken(&run, excused).into_iter();
        problems.extend(broken.map(|finding| format!("{} broken: {}", finding.id, finding.detail)));
        problems.extend(reconcile::mismatches(&self.plan, &run, &counts));
        problems.extend(self.unexplained(&run, &counts));
        if !problems.is_empty() {
            problems.push(format!("{counts:?}, {:?}", failures(&run)));
        }
        problems
    }

    /// Failures and missing replies that the simulated server did not cause.
    fn unexplained(&self, run: &Run, counts: &SimCounts) -> Vec<String> {
        let lifetime = lifetime(run);
        let timed_out = lifetime.failures.get(FailureKind::TimedOut);
        let replies = lifetime.replies.total();
        let server = &self.settings.server;
        let is_well_formed = server.faults.malformed + server.faults.extra_bytes == 0.0;
        let is_faultless = server.faults == SimFaults::default()
            && server.outage.is_none()
            && server.close_after.is_none()
            && server
                .streams
                .as_ref()
                .is_none_or(|streams| streams.closes_after.is_none())
            && server.framing != Framing::UntilClose;
        let is_of_time = |kind| {
            let of_time = [
                FailureKind::TimedOut,
                FailureKind::ConnectTimedOut,
                FailureKind::HandshakeTimedOut,
            ];
            of_time.contains(&kind) || (kind == FailureKind::Unanswered && timed_out > 0)
        };
        let mut unexplained = Vec::new();
        if is_well_formed && counts.replies_delivered > replies + timed_out {
            unexplained
                .push("an answer that brunt took is neither a reply nor too late".to_owned());
        }
        for (kind, count) in failures(run) {
            if is_faultless && !is_of_time(kind) {
                unexplained.push(format!("{count} {kind:?} from a faultless server"));
            }
        }
        unexplained
    }
}

#[test]
fn the_seeds_cover_every_model_and_outcome() {
    let (mut closed, mut open, mut sessions) = (0, 0, 0);
    let mut arrivals = ArrivalCounts::default();
    let mut grown = 0;
    for seed in 0..200 {
        let case = Case::of(seed);
        let Ok((run, _)) = case.run() else {
            continue;
        };
        match case.plan.load.model {
            LoadModel::Closed { .. } => closed += 1,
            LoadModel::Open { .. } => open += 1,
            LoadModel::Sessions { .. } => sessions += 1,
            LoadModel::Held { .. } => panic!("something is sent in each"),
        }
        let summary = run.summary();
        arrivals.merge(&summary.arrivals);
        grown += u32::from(summary.live.max > case.plan.load.connections.get());
    }
    assert!(
        closed > 30 && open > 30 && sessions > 30,
        "{closed} {open} {sessions}"
    );
    assert!(grown > 5, "{grown}");
    let outcomes = [
        arrivals.sent - arrivals.waited,
        arrivals.waited,
        arrivals.skipped_full,
        arrivals.skipped_late,
        arrivals.unsent,
    ];
    assert!(outcomes.iter().all(|&count| count > 100), "{arrivals:?}");
}

#[test]
fn equal_seeds_give_equal_runs_and_others_do_not() {
    let case_of: [fn(u64) -> Case; 7] = [
        Case::of,
        |seed| Case::of(seed).over_http2().of_reference(false),
        |seed| Case::of(seed).over_tls(),
        |seed| Case::of(seed).over_http2().of_reference(true),
        |seed| Case::of(seed).over_messages(),
        |seed| Case::of(seed).over_websocket(),
        |seed| Case::of(seed).of_streams(),
    ];
    for seed in 0..6 {
        for case_of in case_of {
            let [first, second] = [case_of(seed), case_of(seed)].map(|case| case.run().ok());
            assert_eq!(first, second, "seed {seed}");
        }
    }
    let runs = [1, 2].map(|seed| run(plan(), &SimSettings::new(seed)).0);
    assert_ne!(runs[0].latencies.response, runs[1].latencies.response);
}
