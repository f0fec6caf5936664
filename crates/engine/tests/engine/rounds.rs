//! Rounds of one session: connections are kept from one to the next, everything else begins anew.

use brunt_engine::{Phase, Progress, Rounds, RunObserver, Snapshot};
use brunt_judge::RunFigures;
use brunt_load::{Load, Plan, Stop};
use brunt_record::Run;

use crate::common::{
    Kind, MS, Served, Server, choice, expect_valid, lifetime, many, on_every_backend, plan, rate,
    requests_of,
};

on_every_backend! {
    connections_are_kept_and_counts_begin_anew,
    a_round_may_have_another_load,
    snapshots_add_up_to_the_record,
    a_request_left_behind_is_of_no_later_round,
}

/// Measures a round.
type Measure<'a> = dyn FnMut(&Load, &mut dyn RunObserver) -> Run + 'a;

/// Does `body` in one session; gives what the server counted in all.
fn in_session(
    kind: Kind,
    path: &str,
    change: impl FnOnce(&mut Plan),
    body: impl FnOnce(&Plan, &mut Measure<'_>),
) -> Served {
    let server = Server::reference(kind);
    let mut plan = plan(&server.url(path), choice(kind));
    change(&mut plan);
    let (_, served) = server.session(&plan, |session| {
        body(&plan, &mut |load, observer| {
            session.round(load, observer).expect("a round")
        });
    });
    served
}

/// Looks on without interest.
struct Nobody;

impl RunObserver for Nobody {}

/// Connections that were opened, and kept, in a round.
fn opened_and_kept(run: &Run) -> (u64, u64) {
    let kept = run.workers().map(|worker| worker.connections_kept);
    (lifetime(run).connections_opened, kept.sum())
}

fn connections_are_kept_and_counts_begin_anew(kind: Kind) {
    let (mut sent, mut replies) = (0, 0);
    let served = in_session(
        kind,
        "/delay/1ms",
        |plan| {
            plan.load.connections = many(8);
            plan.workers.count = many(2);
        },
        |plan, measure| {
            // (connections, those opened, those kept)
            for (connections, opened, kept) in [(8, 8, 0), (8, 0, 8), (3, 0, 3), (6, 3, 3)] {
                let load = Load {
                    connections: many(connections),
                    ..plan.load.clone()
                };
                let run = measure(&load, &mut Nobody);
                expect_valid(&run, "a round");
                assert_eq!(run.plan.load.connections.get(), connections);
                assert_eq!(opened_and_kept(&run), (opened, kept));
                let lifetime = lifetime(&run);
                sent += lifetime.requests_sent;
                replies += lifetime.replies.total();
                assert!(run.latencies.response.count() > 0);
            }
        },
    );
    assert_eq!((served.requests, served.replies), (sent, replies));
    assert_eq!(served.connections, 11);
}

fn a_round_may_have_another_load(kind: Kind) {
    in_session(
        kind,
        "/",
        |plan| plan.load.connections = many(4),
        |plan, measure| {
            for per_s in [None, Some(500.0), Some(1_000.0), None] {
                let mut load = plan.load.clone();
                if let Some(per_s) = per_s {
                    load.model = requests_of(rate(Default::default(), per_s, 0), 4, 1_000);
                }
                let run = measure(&load, &mut Nobody);
                expect_valid(&run, "a round");
                let planned = per_s.map_or(0.0, |per_s| per_s * 0.2);
                assert_eq!(run.summary().arrivals.planned, planned as u64);
            }
            let load = Load {
                warmup_ns: 0,
                stop: Stop {
                    duration_ns: None,
                    requests: Some(100),
                },
                ..plan.load.clone()
            };
            for _ in 0..2 {
                let run = measure(&load, &mut Nobody);
                expect_valid(&run, "a round by count");
                assert_eq!(run.summary().window.replies.total(), 100);
            }
        },
    );
}

/// Adds up what it is shown.
#[derive(Default)]
struct Sum {
    counts: Progress,
    phases: Vec<Phase>,
    latest: Progress,
}

impl RunObserver for Sum {
    fn progress(&mut self, phase: Phase, progress: &Progress) {
        if self.phases.last() != Some(&phase) {
            self.phases.push(phase);
        }
        self.latest = *progress;
    }

    fn snapshot(&mut self, snapshot: &Snapshot) {
        self.counts.successes += snapshot.counts.successes;
        self.counts.errors += snapshot.counts.errors;
        self.counts.failures += snapshot.counts.failures;
    }
}

fn snapshots_add_up_to_the_record(kind: Kind) {
    in_session(
        kind,
        "/delay/1ms",
        |plan| {
            plan.load.connections = many(6);
            plan.workers.count = many(2);
        },
        |plan, measure| {
            for _ in 0..2 {
                let mut sum = Sum::default();
                let run = measure(&plan.load, &mut sum);
                expect_valid(&run, "a round");
                assert_eq!(sum.counts.successes, lifetime(&run).replies.total());
                assert_eq!((sum.counts.errors, sum.counts.failures), (0, 0));
                assert_eq!(sum.latest.successes, sum.counts.successes);
                assert_eq!(sum.phases.last(), Some(&Phase::Drain));
                assert!(sum.phases.is_sorted(), "{:?}", sum.phases);
            }
        },
    );
}

/// What is still in flight when the drain ends is censored, and its connection is not used again.
fn a_request_left_behind_is_of_no_later_round(kind: Kind) {
    in_session(
        kind,
        "/delay/400ms",
        |plan| {
            plan.load.connections = many(2);
            (plan.load.warmup_ns, plan.load.drain_limit_ns) = (0, 10 * MS);
            plan.load.stop.duration_ns = Some(50 * MS);
        },
        |plan, measure| {
            for _ in 0..3 {
                let run = measure(&plan.load, &mut Nobody);
                expect_valid(&run, "a round without replies");
                assert_eq!(opened_and_kept(&run), (2, 0));
                assert_eq!(lifetime(&run).replies.total(), 0);
                assert_eq!(run.summary().window.failures.iter().count(), 0);
            }
        },
    );
}
