//! Simulated runs: figures that are known beforehand, and properties of runs drawn at random.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brunt_engine::backend::sim::{
    AfterMalformed, Costs, Framing, LateWakeUps, Outage, ServiceTime, SimCounts, SimFaults,
    SimServer, SimSettings, Stall,
};
use brunt_engine::{RunError, prepare, simulate};
use brunt_load::{BackendChoice, Plan, Reuse, Stop};
use brunt_measure::{FailureKind, Run, Standing};
use rand::Rng;
use rand_pcg::Pcg64;

use crate::common::{
    MS, S, US, broken, expect_valid, failed, failures, lifetime, many, many_long, standing,
};

/// Runs drawn at random.
const SEEDS: u64 = 1_000;
/// Names one seed to run alone.
const SEED_VARIABLE: &str = "BRUNT_SIM_SEED";

fn plan() -> Plan {
    crate::common::plan("http://simulated/", BackendChoice::Sim)
}

fn run(plan: Plan, settings: &SimSettings) -> (Run, SimCounts) {
    simulate(prepare(plan).expect("a plan that fits"), settings).expect("a run")
}

/// A server with a constant service time, 100 µs away, loaded by a client whose work takes no
/// time.
fn textbook(service_ns: u64) -> SimSettings {
    SimSettings {
        network_ns: 100 * US,
        costs: Costs::NONE,
        server: SimServer {
            service: ServiceTime::Constant(service_ns),
            ..SimServer::default()
        },
        ..SimSettings::new(1)
    }
}

#[test]
fn n_connections_give_n_replies_per_service_time() {
    for (connections, workers) in [(1, 1), (7, 1), (7, 3), (100, 2)] {
        let mut plan = plan();
        plan.connections = many(connections);
        plan.workers = many(workers);
        plan.stop.duration_ns = Some(S);
        let (run, _) = run(plan, &textbook(800 * US));
        expect_valid(&run, "textbook");
        let expected = u64::from(connections) * 1_000;
        let replies = run.summary().window.replies.successes();
        // Each connection may gain or lose one at the edges of the window.
        assert!(
            replies.abs_diff(expected) <= u64::from(connections),
            "{connections} connections, {workers} workers: {replies} replies"
        );
        assert_eq!(run.latencies.response.min_ns(), Some(MS));
        assert_eq!(run.latencies.response.max_ns(), Some(MS));
        let under_way = run.summary().under_way_mean.known().expect("a mean");
        assert!(
            (under_way - f64::from(connections)).abs() < 0.001,
            "{under_way}"
        );
    }
}

#[test]
fn a_server_with_one_place_gives_one_reply_per_service_time() {
    for connections in [1, 2, 50] {
        let mut plan = plan();
        plan.connections = many(connections);
        plan.stop.duration_ns = Some(S);
        let mut settings = textbook(MS);
        settings.network_ns = 0;
        settings.server.concurrency = Some(many(1));
        let (run, _) = run(plan, &settings);
        expect_valid(&run, "one place");
        let replies = run.summary().window.replies.successes();
        assert!(replies.abs_diff(1_000) <= 1, "{connections}: {replies}");
        // Little's law: each waits until all others were served.
        assert_eq!(run.latencies.response.max_ns(), Some(u64::from(connections) * MS));
    }
}

#[test]
fn the_cost_of_work_is_part_of_every_latency() {
    let mut plan = plan();
    plan.connections = many(1);
    plan.stop.duration_ns = Some(S);
    let mut settings = textbook(800 * US);
    settings.costs = Costs::default();
    let (run, _) = run(plan, &settings);
    expect_valid(&run, "costs");
    let (min_ns, max_ns) = (run.latencies.response.min_ns(), run.latencies.response.max_ns());
    assert_eq!(min_ns, max_ns);
    let latency_ns = min_ns.expect("latencies");
    assert!(
        (MS + US..MS + 10 * US).contains(&latency_ns),
        "{latency_ns}"
    );
    // A closed loop sends when it receives: the rate is the inverse of the latency.
    let replies = run.summary().window.replies.successes();
    assert!(replies.abs_diff(S / latency_ns) <= 1, "{replies}");
}

#[test]
fn pipelined_requests_share_the_round_trip() {
    let mut plan = plan();
    plan.connections = many(1);
    plan.pipeline = many(4);
    plan.stop.duration_ns = Some(S);
    // One request after the other is served while the others are on their way.
    let (run, counts) = run(plan, &textbook(MS));
    expect_valid(&run, "pipelined");
    let replies = run.summary().window.replies.successes();
    assert!(replies.abs_diff(1_000) <= 4, "{replies}");
    assert_eq!(counts.replies_delivered, lifetime(&run).replies.total());
}

#[test]
fn late_wake_ups_raise_latencies_by_the_delay() {
    let mut plan = plan();
    plan.connections = many(1);
    plan.stop.duration_ns = Some(S);
    let mut settings = textbook(800 * US);
    settings.late_wake_ups = Some(LateWakeUps {
        probability: 0.1,
        delay_ns: 3 * MS,
    });
    let (run, counts) = run(plan, &settings);
    expect_valid(&run, "late");
    assert_eq!(run.latencies.response.min_ns(), Some(MS));
    assert_eq!(run.latencies.response.max_ns(), Some(4 * MS));
    assert!(counts.late_wake_ups > 50, "{}", counts.late_wake_ups);
}

#[test]
fn an_hour_of_load_is_a_unit_test() {
    let mut plan = plan();
    plan.connections = many(10);
    plan.workers = many(2);
    plan.warmup_ns = 10 * S;
    plan.stop.duration_ns = Some(3_600 * S);
    let (run, counts) = run(plan, &textbook(99_800 * US));
    expect_valid(&run, "an hour");
    assert_eq!(run.window.length_ns(), 3_600 * S);
    let replies = run.summary().window.replies.successes();
    assert!(replies.abs_diff(360_000) <= 10, "{replies}");
    assert_eq!(run.latencies.response.max_ns(), Some(100 * MS));
    assert_eq!(counts.requests, lifetime(&run).requests_sent);
}

#[test]
fn a_silent_server_ends_the_run_on_time() {
    let mut plan = plan();
    plan.drain_limit_ns = 300 * MS;
    let mut settings = SimSettings::new(1);
    settings.server.faults.silent = 1.0;
    let (run, counts) = run(plan, &settings);
    expect_valid(&run, "silent");
    let end_ns = run.edges.drain_end.get().expect("an end");
    assert!(end_ns - run.window.start_ns <= (200 + 300 + 100) * MS);
    assert_eq!(run.summary().under_way_at_end, 4);
    assert_eq!((counts.requests, counts.silent), (4, 4));
}

#[test]
fn a_run_by_count_without_a_connection_gives_up() {
    let mut plan = plan();
    plan.connect_timeout_ns = 10 * MS;
    plan.stop.requests = Some(10);
    plan.stop.duration_ns = None;
    plan.timeout_ns = 50 * MS;
    let mut settings = SimSettings::new(1);
    settings.server.faults.connect_unanswered = 1.0;
    let (run, counts) = run(plan, &settings);
    assert_eq!(run.summary().unsent, 10);
    assert_eq!(counts.connections_accepted, 0);
    assert_eq!(standing(&run, "L1"), Standing::Broken);
    assert!(
        broken(&run, &["L1"]).is_empty(),
        "{:#?}",
        broken(&run, &["L1"])
    );
}

#[test]
fn an_interrupt_before_the_window_leaves_no_run_and_one_in_it_a_shorter_one() {
    let mut settings = SimSettings::new(1);
    settings.interrupt_ns = Some(10 * MS);
    let outcome = simulate(prepare(plan()).expect("a plan that fits"), &settings);
    assert!(matches!(outcome, Err(RunError::Interrupted)));
    settings.interrupt_ns = Some(100 * MS);
    let (run, counts) = run(plan(), &settings);
    expect_valid(&run, "interrupted");
    assert!(run.interrupted);
    assert!(
        (100 * MS..200 * MS).contains(&run.window.end_ns),
        "{:?}",
        run.window
    );
    assert_eq!(counts.requests, lifetime(&run).requests_sent);
}

/// One drawn case.
struct Case {
    plan: Plan,
    settings: SimSettings,
}

/// Draws values; the probability that something is out of the ordinary is a third each.
struct Draw(Pcg64);

impl Draw {
    fn within(&mut self, least: u64, most: u64) -> u64 {
        self.0.random_range(least..=most)
    }

    /// Mostly small: evenly spread over the orders of magnitude.
    fn length(&mut self, least_ns: u64, most_ns: u64) -> u64 {
        let (low, high) = ((least_ns as f64).ln(), (most_ns as f64).ln());
        self.0.random_range(low..=high).exp() as u64
    }

    fn sometimes(&mut self) -> bool {
        self.within(1, 3) == 1
    }

    fn fault(&mut self) -> f64 {
        if self.sometimes() {
            self.0.random_range(0.0..0.08)
        } else {
            0.0
        }
    }
}

impl Case {
    fn of(seed: u64) -> Self {
        let mut draw = Draw(Pcg64::new(seed.into(), 1_000));
        Self {
            plan: Self::plan(&mut draw),
            settings: Self::settings(&mut draw, seed),
        }
    }

    fn plan(draw: &mut Draw) -> Plan {
        let mut plan = plan();
        let connections = draw.within(1, 20);
        plan.connections = many(connections as u32);
        plan.workers = many(draw.within(1, connections.min(4)) as u32);
        if draw.sometimes() {
            plan.pipeline = many(draw.within(1, 8) as u32);
        }
        if draw.sometimes() {
            plan.reuse = Reuse::Requests(many_long(draw.length(1, 50)));
        }
        plan.stop = Stop {
            duration_ns: Some(draw.length(10 * MS, 200 * MS)),
            requests: None,
        };
        if draw.sometimes() {
            plan.stop.requests = Some(draw.length(1, 3_000));
            if draw.sometimes() {
                plan.stop.duration_ns = None;
            }
        }
        plan.warmup_ns = draw.within(0, 2) * draw.length(MS, 50 * MS);
        plan.timeout_ns = draw.length(5 * MS, S);
        plan.connect_timeout_ns = draw.length(5 * MS, 200 * MS);
        plan.drain_limit_ns = draw.within(0, 1) * draw.length(MS, 500 * MS);
        match draw.within(1, 6) {
            1 => plan.request.method = "HEAD".to_owned(),
            2 => {
                plan.request.method = "POST".to_owned();
                plan.request.body = vec![b'b'; draw.length(1, 200_000) as usize];
            }
            _ => {}
        }
        plan
    }

    fn settings(draw: &mut Draw, seed: u64) -> SimSettings {
        let mut settings = SimSettings::new(seed);
        settings.network_ns = draw.length(US, 2 * MS);
        settings.send_buffer_bytes = many(draw.length(1_000, 100_000) as u32);
        settings.late_wake_ups = draw.sometimes().then(|| LateWakeUps {
            probability: 0.05,
            delay_ns: draw.length(10 * US, 20 * MS),
        });
        let server = &mut settings.server;
        let service_ns = draw.length(20 * US, 20 * MS);
        server.service = match draw.within(1, 3) {
            1 => ServiceTime::Constant(service_ns),
            2 => ServiceTime::Uniform {
                min_ns: service_ns / 2,
                max_ns: service_ns * 2,
            },
            _ => ServiceTime::Exponential {
                mean_ns: service_ns,
            },
        };
        server.concurrency = draw.sometimes().then(|| many(draw.within(1, 4) as u32));
        server.stall = draw.sometimes().then(|| {
            let period_ns = draw.length(MS, 100 * MS);
            Stall {
                silence_ns: period_ns / draw.within(2, 10),
                period_ns: many_long(period_ns),
            }
        });
        server.close_after = draw.sometimes().then(|| many_long(draw.length(1, 100)));
        server.announces_close = draw.within(0, 1) == 1;
        server.honours_close = !draw.sometimes();
        server.outage = (draw.within(1, 10) == 1).then(|| {
            let from_ns = draw.length(MS, 100 * MS);
            Outage {
                from_ns,
                until_ns: from_ns + draw.length(MS, 100 * MS),
            }
        });
        server.body_bytes = draw.within(0, 1) as u32 * draw.length(1, 150_000) as u32;
        server.framing = match draw.within(1, 6) {
            1 => Framing::Chunked,
            2 => Framing::UntilClose,
            _ => Framing::Length,
        };
        server.interim = if draw.sometimes() { 2 } else { 0 };
        if draw.sometimes() {
            server.pieces_max = many(draw.within(2, 6) as u32);
            server.piece_gap_ns = draw.within(0, 300 * US);
        }
        if draw.sometimes() {
            server.faults = SimFaults {
                connect_refused: draw.fault(),
                connect_unanswered: draw.fault(),
                silent: draw.fault(),
                reset: draw.fault(),
                closed: draw.fault(),
                truncated: draw.fault(),
                malformed: draw.fault(),
                extra_bytes: draw.fault(),
                error_status: draw.fault(),
            };
            server.after_malformed = match draw.within(1, 3) {
                1 => AfterMalformed::Close,
                2 => AfterMalformed::Continue,
                _ => AfterMalformed::FallSilent,
            };
        }
        settings
    }

    fn run(&self) -> (Run, SimCounts) {
        run(self.plan.clone(), &self.settings)
    }
}

#[test]
fn runs_drawn_at_random_keep_every_invariant() {
    let alone = std::env::var(SEED_VARIABLE).ok();
    let seeds = match alone.as_deref().map(str::parse) {
        Some(seed) => {
            let seed: u64 = seed.expect("a number");
            seed..seed + 1
        }
        None => 0..SEEDS,
    };
    let mut failed = Vec::new();
    for seed in seeds {
        let case = Case::of(seed);
        let problems = catch_unwind(AssertUnwindSafe(|| case.problems()))
            .unwrap_or_else(|_| vec!["panicked".to_owned()]);
        if !problems.is_empty() {
            failed.push(format!("seed {seed}: {}", problems.join("; ")));
        }
    }
    assert!(
        failed.is_empty(),
        "{} seeds failed; run one alone with {SEED_VARIABLE}=SEED cargo test -p brunt-engine \
         --test engine drawn_at_random\n{}",
        failed.len(),
        failed.join("\n")
    );
}

impl Case {
    /// What is wrong with the run.
    fn problems(&self) -> Vec<String> {
        let (run, counts) = self.run();
        let excused: &[&str] = if self.may_lack_connections(&run, &counts) {
            &["L1"]
        } else {
            &[]
        };
        let broken = broken(&run, excused).into_iter();
        let mut problems: Vec<_> = broken
            .map(|finding| format!("{} broken: {}", finding.id, finding.detail))
            .collect();
        problems.extend(
            self.books(&run, &counts)
                .into_iter()
                .filter(|&(_, holds)| !holds)
                .map(|(words, _)| format!("not so: {words}")),
        );
        if !problems.is_empty() {
            problems.push(format!("{counts:?}, {:?}", failures(&run)));
        }
        problems
    }

    /// Whether the load that was asked for may be missing: where attempts to connect fail; and
    /// where connections that ended are replaced late, in a run by count, or in a window too short
    /// to tell how long that takes.
    fn may_lack_connections(&self, run: &Run, counts: &SimCounts) -> bool {
        let fail = counts.connections_refused + counts.connections_unanswered > 0;
        let replaced = counts.connections_accepted > u64::from(run.load.connections);
        let is_short = run.window.length_ns() < 20 * 2 * self.settings.network_ns;
        let late = counts.late_wake_ups > 0;
        fail || replaced && (run.load.requests.is_some() || is_short || late)
    }

    /// Two independent books, and whether they agree.
    fn books(&self, run: &Run, counts: &SimCounts) -> Vec<(&'static str, bool)> {
        let lifetime = lifetime(run);
        let timed_out = lifetime.failures.get(FailureKind::TimedOut);
        let replies = lifetime.replies.total();
        let server = &self.settings.server;
        let ended = replies + failed(run) + run.summary().under_way_at_end;
        let is_well_formed = server.faults.malformed + server.faults.extra_bytes == 0.0;
        let is_faultless = server.faults == SimFaults::default()
            && server.outage.is_none()
            && server.close_after.is_none()
            && server.framing != Framing::UntilClose;
        let is_of_time = |kind| {
            matches!(kind, FailureKind::TimedOut | FailureKind::ConnectTimedOut)
                || (kind == FailureKind::Unanswered && timed_out > 0)
        };
        vec![
            (
                "sent = received + lost",
                counts.requests_sent == counts.requests + counts.requests_lost,
            ),
            (
                "received = answered + faults + abandoned",
                counts.requests == counts.replies + counts.faults() + counts.abandoned,
            ),
            (
                "requests sent agree",
                lifetime.requests_sent == counts.requests_sent,
            ),
            ("bytes sent agree", lifetime.bytes_sent == counts.bytes_sent),
            (
                "bytes received agree",
                lifetime.bytes_received == counts.bytes_delivered,
            ),
            (
                "connections agree",
                lifetime.connections_opened == counts.connections_established
                    && counts.connections_established <= counts.connections_accepted,
            ),
            (
                "sent = replies + failed + under way",
                lifetime.requests_sent == ended,
            ),
            (
                "no more replies than answers",
                replies <= counts.replies_delivered && counts.replies_delivered <= counts.replies,
            ),
            (
                "an answer that brunt took is a reply, or was too late",
                !is_well_formed || counts.replies_delivered <= replies + timed_out,
            ),
            (
                "a faultless server causes no failures but for its slowness",
                !is_faultless || failures(run).into_iter().all(|(kind, _)| is_of_time(kind)),
            ),
        ]
    }
}

#[test]
fn equal_seeds_give_equal_runs_and_others_do_not() {
    for seed in 0..40 {
        assert_eq!(Case::of(seed).run(), Case::of(seed).run(), "seed {seed}");
    }
    let runs = [1, 2].map(|seed| run(plan(), &SimSettings::new(seed)).0);
    assert_ne!(runs[0].latencies.response, runs[1].latencies.response);
}
