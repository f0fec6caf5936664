//! Every invariant, holding on a sound run and caught when broken.

mod open;
mod protocol;
mod resources;

use brunt_record::{
    Backend, CarriedIn, FailureKind, Histogram, IntervalRecorder, Latencies, Once, Run,
    SeriesPoint, ServerConnections, ServerCount, ThreadUse, WorkerRecord,
};

use crate::facts::Facts;
use crate::invariants::sample::{
    HELD, MS, US, WINDOW, answer, at, deal, held_open, http2_run, in_run, open_run, replaced_after,
    run, schedule_of, sessions_run, steady_run,
};
use crate::invariants::{CheckOutcome, INVARIANTS, InvariantStatus, Problems, check, is_valid};
use crate::{Figure, Held, RunFigures, Summary};

/// One thing wrong with a run, and what must be found.
struct Case {
    id: &'static str,
    /// How invariant `id` must stand.
    status: InvariantStatus,
    /// Other invariants that the same fault rightly breaks.
    also_broken: &'static [&'static str],
    fault: &'static str,
    sound: fn() -> Run,
    make: fn(&mut Run),
}

fn broken(id: &'static str, fault: &'static str, make: fn(&mut Run)) -> Case {
    Case {
        id,
        status: InvariantStatus::Broken,
        also_broken: &[],
        fault,
        sound: run,
        make,
    }
}

fn flagged(id: &'static str, fault: &'static str, make: fn(&mut Run)) -> Case {
    Case {
        status: InvariantStatus::Flagged,
        ..broken(id, fault, make)
    }
}

fn held(id: &'static str, fault: &'static str, make: fn(&mut Run)) -> Case {
    Case {
        status: InvariantStatus::Held,
        ..broken(id, fault, make)
    }
}

fn not_applicable(id: &'static str, fault: &'static str, make: fn(&mut Run)) -> Case {
    Case {
        status: InvariantStatus::NotApplicable,
        ..broken(id, fault, make)
    }
}

impl Case {
    fn breaking(self, also_broken: &'static [&'static str]) -> Self {
        Self {
            also_broken,
            ..self
        }
    }

    fn on(self, sound: fn() -> Run) -> Self {
        Self { sound, ..self }
    }

    fn verify(&self) {
        let mut run = (self.sound)();
        (self.make)(&mut run);
        deal(&mut run);
        for finding in check(&run) {
            let context = format!("{}, {}: {finding:?}", self.id, self.fault);
            assert!(!finding.detail.is_empty(), "{context}");
            if finding.id == self.id {
                assert_eq!(finding.status, self.status, "{context}");
            } else {
                let is_broken = finding.status == InvariantStatus::Broken;
                let expected = self.also_broken.contains(&finding.id);
                assert_eq!(is_broken, expected, "{context}");
            }
        }
    }
}

fn verify(cases: impl IntoIterator<Item = Case>) {
    cases.into_iter().for_each(|case| case.verify());
}

/// The status and words of one invariant.
fn outcome_of(id: &str, facts: &Facts<'_>) -> CheckOutcome {
    let invariant = INVARIANTS.iter().find(|invariant| invariant.0 == id);
    match invariant.expect("a known id").2(facts) {
        Ok(outcome) | Err(outcome) => outcome,
    }
}

fn standing_of(run: &Run, id: &str) -> InvariantStatus {
    let findings = check(run);
    let finding = findings.iter().find(|finding| finding.id == id);
    finding.expect("it is checked").status
}

/// The same number of values, each `value_ns`.
fn all_at(histogram: &Histogram, value_ns: u64) -> Histogram {
    let mut moved = Histogram::default();
    (0..histogram.count()).for_each(|_| moved.record(value_ns));
    moved
}

/// The same values with the last replaced by `value_ns`.
fn with_one_at(histogram: &Histogram, value_ns: u64) -> Histogram {
    let mut moved = Histogram::default();
    (1..histogram.count()).for_each(|_| moved.record(MS));
    moved.record(value_ns);
    moved
}

/// A thread that had a CPU for half of 2 s.
fn thread() -> ThreadUse {
    ThreadUse {
        interval_ns: 2_000 * MS,
        cpu_user_ns: 1_000 * MS,
        ..ThreadUse::default()
    }
}

fn first(run: &mut Run) -> &mut WorkerRecord {
    &mut run.agents[0].workers[0]
}

/// Gives each worker this as its smallest round trip.
fn round_trip(run: &mut Run, us: u64) {
    for worker in &mut run.agents[0].workers {
        worker.kernel.min_rtt_ns = Some(us * US);
    }
}

/// The run as if it had been meant to hold one connection more.
fn ask_for_one_more(run: &mut Run) {
    run.plan.load.connections = run.plan.load.connections.saturating_add(1);
    first(run).live.asked += 1;
    first(run).live.most += 1;
}

/// The run as if each worker had held one connection more, and never used it.
fn leave_two_idle(run: &mut Run) {
    for worker in &mut run.agents[0].workers {
        run.plan.load.connections = run.plan.load.connections.saturating_add(1);
        run.latencies.connect.record(200 * US);
        worker.tallies.before.connections_opened += 1;
        let live = &mut worker.live;
        for count in [
            &mut live.asked,
            &mut live.most,
            &mut live.min,
            &mut live.max,
        ] {
            *count += 1;
        }
        live.connection_ns += WINDOW.length_ns();
    }
}

/// The run as if its window had ended with its last request.
fn by_count(run: &mut Run) {
    let issued = run.workers().map(|worker| worker.population.issued).sum();
    run.plan.load.stop.duration_ns = None;
    run.plan.load.stop.requests = Some(issued);
    run.agents[0].clock.edges.measure_end_planned = Once::default();
}

/// The run as if its drain, which was to be none, had ended then.
fn drained_at(run: &mut Run, ms: u64) {
    run.plan.load.drain_limit_ns = 0;
    let clock = &mut run.agents[0].clock;
    clock.edges.drain_end = in_run(ms * MS);
    clock.edges.finished = in_run(3_102 * MS);
    clock.process_ns = 3_102 * MS;
}

/// The run as if a signal had come in warm-up.
fn interrupted_in_warmup(run: &mut Run) {
    let recorders = [0, 1].map(|number| {
        let mut recorder = brunt_record::Recorder::new(number, 4, 4);
        (0..4).for_each(|_| recorder.connected(150 * MS, 200 * US));
        recorder.set_window(WINDOW);
        recorder.sent(at(800 * MS), 1, 80);
        recorder.end_window_at(900 * MS);
        recorder.received(901 * MS, 220);
        recorder.reply(at(800 * MS), 901 * MS, &answer(200));
        recorder.record().edges.started = in_run(100 * MS);
        recorder.record().edges.ready = in_run(160 * MS);
        recorder.record().edges.drained = in_run(901 * MS);
        recorder.finish(900 * MS)
    });
    run.agents[0].interrupted = true;
    run.window_ns = 0;
    run.agents[0].clock.edges.measure_start = Once::default();
    run.agents[0].clock.edges.measure_end = in_run(900 * MS);
    run.agents[0].clock.edges.drain_end = in_run(902 * MS);
    run.agents[0].clock.edges.finished = in_run(903 * MS);
    run.agents[0].clock.process_ns = 903 * MS;
    run.latencies = Latencies::default();
    run.agents[0].workers.clear();
    for recording in recorders {
        run.latencies.merge(&recording.latencies);
        run.agents[0].workers.push(recording.record);
    }
}

#[test]
fn every_invariant_holds_on_a_sound_run() {
    type Sound = fn() -> Run;
    let cases: [(Sound, &[&str]); 5] = [
        (run, &["L2", "L6", "I6", "I8"]),
        (steady_run, &["L2", "L6", "I6", "I8"]),
        (http2_run, &["L2", "L6", "I6", "I8"]),
        (open_run, &["I6", "I8"]),
        (sessions_run, &["L1", "I6", "I8"]),
    ];
    for (sound, not_applicable) in cases {
        let findings = check(&sound());
        for finding in &findings {
            // They are about streams, and about several agents.
            let is_of_others = finding.id == "T1" || finding.id.starts_with('F');
            let expected = if not_applicable.contains(&finding.id) || is_of_others {
                InvariantStatus::NotApplicable
            } else {
                InvariantStatus::Held
            };
            assert_eq!(finding.status, expected, "{finding:?}");
            assert!(!finding.detail.is_empty(), "{finding:?}");
        }
        assert!(is_valid(&findings));
    }
}

#[test]
fn clocks_and_phases() {
    verify([
        broken("W1", "ready before its start", |run| {
            first(run).edges.ready = in_run(99 * MS)
        }),
        broken("W1", "drained after the end", |run| {
            first(run).edges.drained = in_run(3_011 * MS)
        }),
        broken("W1", "started before set-up", |run| {
            first(run).edges.started = in_run(99 * MS)
        }),
        flagged("W1", "the wall clock set back", |run| {
            run.agents[0].clock.stepped_ns = -3_600_000_000_000
        }),
        broken("W2", "drain ends before measure", |run| {
            run.agents[0].clock.edges.drain_end = in_run(2_999 * MS)
        }),
        broken("W2", "an edge is missing", |run| {
            run.agents[0].clock.edges.warmup_start = Once::default()
        }),
        broken("W2", "measure is not the window", |run| {
            run.agents[0].clock.edges.measure_start = in_run(1_001 * MS)
        }),
        broken("W2", "warm-up in the numerator", |run| {
            // The first send lies before the window, but nothing was counted before it.
            for worker in &mut run.agents[0].workers {
                let before = std::mem::take(&mut worker.tallies.before);
                worker.tallies.after.merge(&before);
            }
        })
        .breaking(&["W6", "A5"]),
    ]);
}

#[test]
fn windows() {
    verify([
        broken("W4", "two workers forced apart", |run| {
            run.agents[0].workers[0].edges.window_end = in_run(WINDOW.end_ns - 1_000 * MS);
            run.agents[0].workers[1].edges.window_start = in_run(WINDOW.start_ns + 1_000 * MS);
        })
        .breaking(&["W5"]),
        broken("W4", "one worker 3 % late", |run| {
            first(run).edges.window_start = in_run(WINDOW.start_ns + 60 * MS)
        })
        .breaking(&["W5"]),
        broken("W4", "all workers 3 % late", |run| {
            for worker in &mut run.agents[0].workers {
                worker.edges.window_start = in_run(WINDOW.start_ns + 60 * MS);
            }
        })
        .breaking(&["W5"]),
        broken("W4", "one worker outside the window", |run| {
            first(run).edges.window_end = in_run(WINDOW.end_ns + 30 * MS);
            first(run).edges.drained = in_run(WINDOW.end_ns + 30 * MS);
            run.agents[0].clock.edges.drain_end = in_run(WINDOW.end_ns + 30 * MS);
            run.agents[0].clock.edges.finished = in_run(WINDOW.end_ns + 30 * MS);
            run.agents[0].clock.process_ns = WINDOW.end_ns + 30 * MS;
        }),
        flagged("W4", "one worker 0.5 % late", |run| {
            first(run).edges.window_start = in_run(WINDOW.start_ns + 10 * MS)
        }),
        broken("W4", "a worker without a window", |run| {
            first(run).edges.window_start = Once::default()
        })
        .breaking(&["W5"]),
        broken("W4", "no worker", |run| run.agents[0].workers.clear())
            .breaking(&["A4", "A5", "I1", "L1", "R2", "S1"]),
        not_applicable("W4", "interrupted in warm-up", interrupted_in_warmup),
    ]);
}

#[test]
fn accounts() {
    verify([
        broken("W5", "a reply missing over time", |run| {
            first(run).series.points[3].successes -= 1
        }),
        broken("W5", "a byte too many over time", |run| {
            first(run).series.points[3].bytes_received += 1
        }),
        broken("W5", "a failure missing over time", |run| {
            for point in &mut first(run).series.points {
                point.failures = 0;
            }
        }),
        broken("W5", "an error reply counted as success over time", |run| {
            let point = &mut first(run).series.points[3];
            (point.errors, point.successes) = (point.errors - 1, point.successes + 1);
        }),
        broken("W5", "a worker's own rate is not the window's", |run| {
            for worker in &mut run.agents[0].workers {
                worker.edges.window_end = in_run(WINDOW.end_ns - 50 * MS);
            }
        })
        .breaking(&["W4"]),
        broken("W6", "a request vanished from the window", |run| {
            first(run).population.censored += 1
        })
        .breaking(&["L5"]),
        broken("W6", "a request vanished from the run", |run| {
            first(run).in_flight_at_end += 1
        }),
        broken("W6", "a latency more than replies", |run| {
            first(run).population.recorded += 1;
            run.latencies.response.record(MS);
        })
        .breaking(&["A4", "S2"]),
        held("W6", "sent again", |run| {
            first(run).tallies.measure.sent_again = 7
        }),
        broken("W6", "sent again though nothing may be", |run| {
            first(run).tallies.measure.sent_again = 7;
            run.plan.traffic.sends_again = false;
        }),
        broken("W6", "sent but not issued", |run| {
            first(run).tallies.measure.requests_sent += 1;
            first(run).tallies.before.requests_sent -= 1;
        }),
        broken("W6", "a request of warm-up vanished", |run| {
            let carried_in = &mut first(run).carried_in;
            carried_in.answered -= 1;
        }),
        broken("W6", "one of warm-up more than was left", |run| {
            let carried_in = &mut first(run).carried_in;
            carried_in.in_flight += 1;
            carried_in.failed += 1;
        })
        .breaking(&["I1"]),
        held("W6", "by count", by_count),
        broken("W6", "by count, one request over", |run| {
            by_count(run);
            *run.plan.load.stop.requests.as_mut().expect("by count") -= 1;
        }),
        held("W6", "by count, one never sent", |run| {
            by_count(run);
            *run.plan.load.stop.requests.as_mut().expect("by count") += 1;
            first(run).unsent = 1;
        }),
        held("W6", "interrupted in warm-up", interrupted_in_warmup),
    ]);
}

#[test]
fn time_is_reported_and_kept() {
    verify([
        broken("W7", "11 ms are in no phase", |run| {
            run.agents[0].clock.process_ns = 3_021 * MS
        }),
        not_applicable("W7", "simulated", |run| {
            run.agents[0].backend = Backend::Sim;
            run.agents[0].clock.process_ns = 7 * MS;
        }),
        held("W7", "interrupted in warm-up", interrupted_in_warmup),
        flagged("W8", "measure ended 3 ms late", |run| {
            run.agents[0].clock.edges.measure_end_planned = in_run(WINDOW.end_ns - 3 * MS)
        }),
        broken("W8", "no planned end", |run| {
            run.agents[0].clock.edges.measure_end_planned = Once::default()
        }),
        broken("W8", "drain overran", |run| drained_at(run, 3_101)),
        held("W8", "drain took its limit and 100 ms", |run| {
            drained_at(run, 3_100)
        }),
        held("W8", "interrupted", |run| {
            run.agents[0].interrupted = true;
            run.agents[0].clock.edges.measure_end_planned = in_run(10_000 * MS);
        }),
        not_applicable("W8", "by count", by_count),
    ]);
}

#[test]
fn load_was_put_on() {
    verify([
        broken("L1", "one connection in nine missing", ask_for_one_more),
        broken("L1", "the remainder is not dealt out", |run| {
            run.plan.load.connections = run.plan.load.connections.saturating_add(1)
        }),
        broken("L1", "more open than asked for", |run| {
            first(run).live.max += 1
        }),
        flagged("L1", "the server closes connections", |run| {
            // One connection of nine is missing for 2 s: it is being opened again.
            ask_for_one_more(run);
            let tally = &mut first(run).tallies.measure;
            tally.connections_opened += 5_000;
            tally.connections_closed_idle += 5_000;
            (0..5_000).for_each(|_| run.latencies.connect.record(200 * US));
            first(run).live.missing.opening_ns = 2_000_000 * US;
        }),
        not_applicable("L1", "without keep-alive", |run| {
            ask_for_one_more(run);
            run.plan.traffic.reuse = replaced_after(1);
        }),
        not_applicable("L1", "a limit of requests per connection", |run| {
            ask_for_one_more(run);
            run.plan.traffic.reuse = replaced_after(100);
        }),
        not_applicable("L1", "connections close as the count runs out", |run| {
            by_count(run);
            ask_for_one_more(run);
            first(run).live.max += 1;
        }),
        broken("L1", "by count, a connection never open", |run| {
            by_count(run);
            ask_for_one_more(run);
        }),
        not_applicable("L1", "interrupted in warm-up", interrupted_in_warmup),
        broken("L7", "a latency over the time-out", |run| {
            run.plan.limits.timeout_ns = 100 * MS
        })
        .on(|| {
            let mut run = run();
            run.latencies.response = with_one_at(&run.latencies.response, 111 * MS);
            run
        })
        .breaking(&["I1", "S2"]),
        flagged("L7", "a latency within the timer's resolution", |run| {
            run.plan.limits.timeout_ns = 100 * MS;
            run.latencies.response = with_one_at(&run.latencies.response, 105 * MS);
        })
        .breaking(&["I1", "S2"]),
        broken("L7", "a time-out before its time", |run| {
            let failures = &mut first(run).tallies.measure.failures;
            *failures = Default::default();
            failures.add(FailureKind::TimedOut);
        }),
        broken("L7", "time-outs of answered requests", |run| {
            run.plan.limits.timeout_ns = 50 * MS;
            let tally = &mut first(run).tallies.measure;
            tally.failures.add(FailureKind::TimedOut);
            tally.failures.add(FailureKind::TimedOut);
            first(run).series.points[0].failures += 2;
        })
        .breaking(&["W6"]),
    ]);
}

#[test]
fn figures() {
    verify([
        broken("A4", "the histograms of one worker lost", |run| {
            let recorded = run.agents[0].workers[1].population.recorded;
            let mut half = Histogram::default();
            (recorded..run.latencies.response.count()).for_each(|_| half.record(MS));
            run.latencies.response = half;
        })
        .breaking(&["A5", "I1", "S2"]),
        broken("A4", "a time to connect lost", |run| {
            let mut fewer = Histogram::default();
            (1..run.latencies.connect.count()).for_each(|_| fewer.record(US));
            run.latencies.connect = fewer;
        }),
        broken("A5", "error replies among the successes", |run| {
            let errors = std::mem::take(&mut run.latencies.response_error);
            run.latencies.response.merge(&errors);
        })
        .breaking(&["A4", "S2"]),
        held("A5", "interrupted in warm-up", interrupted_in_warmup),
    ]);
}

/// Each request had a connection of its own, which took 300 us to open.
fn connecting_per_request(run: &mut Run) {
    run.plan.traffic.reuse = replaced_after(1);
    first(run).tallies.measure.connections_opened += 20_000;
    run.latencies.connect.record_many(300 * US, 20_000);
    let response = &run.latencies.response;
    let mut with_connect = Histogram::default();
    for ns in [response.min_ns(), response.max_ns()].into_iter().flatten() {
        with_connect.record(ns + 300 * US);
    }
    let rest = response.count() - with_connect.count();
    with_connect.record_many(response.max_ns().expect("a response"), rest);
    run.latencies.with_connect = with_connect;
}

#[test]
fn connecting_comes_on_top() {
    verify([
        held("S2", "a connection per request", connecting_per_request),
        held("S2", "not recorded", |run| {
            run.plan.traffic.reuse = replaced_after(1)
        }),
        broken("S2", "one without its connecting", |run| {
            connecting_per_request(run);
            run.latencies.with_connect = Histogram::default();
            run.latencies.with_connect.record(2 * MS);
        }),
        broken("S2", "connecting that takes less than nothing", |run| {
            connecting_per_request(run);
            run.latencies.with_connect = all_at(&run.latencies.response, 100 * US);
        }),
        broken("S2", "more first replies than replies", |run| {
            connecting_per_request(run);
            run.latencies.with_connect.record(2 * MS);
        }),
    ]);
}

#[test]
fn impossible_latencies() {
    verify([
        broken("I1", "service times too long for the rate", |run| {
            run.latencies.response = all_at(&run.latencies.response, 2 * MS)
        })
        .breaking(&["S2"]),
        broken("I1", "more in flight than connections", |run| {
            first(run).in_flight_ns *= 2
        }),
        broken("I1", "idle connections", leave_two_idle).on(steady_run),
        held("I1", "idle until their first requests were sent", |run| {
            leave_two_idle(run);
            for worker in &mut run.agents[0].workers {
                worker.live.not_begun_ns = WINDOW.length_ns();
            }
        })
        .on(steady_run),
        broken("I1", "idle for longer than that", |run| {
            leave_two_idle(run);
            for worker in &mut run.agents[0].workers {
                worker.live.not_begun_ns = WINDOW.length_ns() / 4;
            }
        })
        .on(steady_run),
        held("I1", "idle after a failure", leave_two_idle),
        held("I1", "idle while the server allowed no streams", |run| {
            first(run).tallies.before.connections_shut = 1;
            leave_two_idle(run);
        })
        .on(steady_run),
        broken("I1", "less in flight than the times of requests", |run| {
            first(run).in_flight_ns -= 100 * MS
        }),
        broken("I1", "requests of warm-up for longer than any", |run| {
            let carried_in = &mut first(run).carried_in;
            carried_in.in_flight_ns = 20_000 * MS;
        }),
        broken("I1", "more carried in than there are places", |run| {
            for worker in &mut run.agents[0].workers {
                worker.tallies.before.requests_sent += 1;
                worker.tallies.before.failures.add(FailureKind::Reset);
                worker.carried_in.in_flight += 5;
            }
        })
        .breaking(&["W6"]),
        broken("I1", "a rate of three times the replies", |run| {
            for worker in &mut run.agents[0].workers {
                let replies = worker.tallies.measure.replies.clone();
                worker.tallies.measure.replies.merge(&replies);
                worker.tallies.measure.replies.merge(&replies);
            }
        })
        .breaking(&["W5", "W6", "A5", "I4"]),
        not_applicable("I1", "requests as long as the window", |run| {
            // Eight requests, one per connection, ended in drain.
            for worker in &mut run.agents[0].workers {
                worker.population.issued = 4;
                worker.population.recorded = 4;
                worker.carried_in = CarriedIn::default();
                worker.tallies = Default::default();
                worker.tallies.before.connections_opened = 4;
                worker.tallies.measure.requests_sent = 4;
                (0..4).for_each(|_| worker.tallies.after.replies.add(200));
                worker.tallies.after.bytes_received = 880;
                worker.tallies.after.reply_head_bytes = 480;
                worker.tallies.after.reply_body_bytes = 400;
                worker.in_flight_ns = 4 * (WINDOW.length_ns() - 1);
                worker.first_send = in_run(WINDOW.start_ns + 1);
                worker.series.points.fill(SeriesPoint::default());
            }
            run.latencies = Latencies {
                connect: run.latencies.connect.clone(),
                ..Latencies::default()
            };
            let mut over_time = IntervalRecorder::default();
            for _ in 0..8 {
                let response_ns = WINDOW.length_ns() + 2 * MS;
                run.latencies.response.record(response_ns);
                run.latencies.first_byte.record(response_ns);
                run.latencies.transfer.record(0);
                over_time.record(WINDOW.length_ns() - 1, response_ns);
            }
            run.latencies.intervals = over_time.finish(WINDOW.length_ns());
        })
        .on(steady_run),
        broken("I2", "a latency longer than the run", |run| {
            run.latencies.response = with_one_at(&run.latencies.response, 2_204 * MS)
        })
        .breaking(&["I1", "S2"]),
        held("I2", "a latency as long as the run", |run| {
            run.latencies.response = with_one_at(&run.latencies.response, 2_203 * MS)
        })
        .breaking(&["I1", "S2"]),
        flagged("I3", "faster than half the round trip", |run| {
            round_trip(run, 2_010)
        })
        .on(steady_run),
        flagged("I3", "somewhat faster than the sampled round trip", |run| {
            round_trip(run, 1_010)
        }),
        flagged("I3", "faster than all sampled round trips", |run| {
            for worker in &mut run.agents[0].workers {
                worker.kernel.min_rtt_ns = Some(1_010 * US);
                worker.kernel.connections = 5;
            }
        }),
        held("I3", "within the kernel's rounding", |run| {
            round_trip(run, 1_001)
        }),
        not_applicable("I3", "no round trip", |run| {
            for worker in &mut run.agents[0].workers {
                worker.kernel.min_rtt_ns = None;
            }
        }),
    ]);
}

#[test]
fn impossible_counts() {
    verify([
        broken("I4", "a byte too many received", |run| {
            first(run).tallies.after.bytes_received += 1
        }),
        broken("I4", "a discarded byte forgotten", |run| {
            first(run).tallies.measure.discarded_bytes -= 1
        }),
        broken("I4", "a reply too short to be one", |run| {
            first(run).reply_bytes_min = Some(13)
        }),
        broken("I4", "all replies longer than their bytes", |run| {
            first(run).reply_bytes_min = Some(221)
        }),
        broken("I4", "no smallest reply", |run| {
            first(run).reply_bytes_min = None
        }),
        broken("I5", "the kernel counted more", |run| {
            first(run).kernel.kernel_bytes_received = 10_002
        }),
        broken("I5", "the kernel counted less", |run| {
            first(run).kernel.kernel_bytes_received = 9_999
        }),
        held("I5", "without a FIN", |run| {
            first(run).kernel.kernel_bytes_received = 10_000
        }),
        not_applicable("I5", "no connection sampled", |run| {
            for worker in &mut run.agents[0].workers {
                worker.kernel = Default::default();
            }
        }),
        broken("I7", "more CPU than there was", |run| {
            run.agents[0].host.cpu_system_ns = 6_100 * MS
        }),
        flagged("I7", "more CPU than the quota rounded down", |run| {
            run.agents[0].host.cpu_system_ns = 5_000 * MS
        }),
        broken("I7", "no CPU for so many replies", |run| {
            let tally = &mut first(run).tallies.measure;
            (0..1_200_000).for_each(|_| tally.replies.add(200));
        })
        .breaking(&["W5", "W6", "A5", "I1", "I4"]),
        broken("I7", "a thread on more than one CPU", |run| {
            first(run).thread = Some(ThreadUse {
                cpu_user_ns: 2_051 * MS,
                ..thread()
            });
        }),
        broken("I7", "a thread that polled longer than it lived", |run| {
            first(run).thread = Some(ThreadUse {
                spun_ns: 2_051 * MS,
                ..thread()
            });
        }),
        held("I7", "threads within their time", |run| {
            for worker in &mut run.agents[0].workers {
                worker.thread = Some(ThreadUse {
                    cpu_system_ns: 1_050 * MS,
                    ..thread()
                });
            }
        }),
        not_applicable("I7", "CPU was not read", |run| {
            run.agents[0].host.cpu_user_ns = 0;
            run.agents[0].host.cpu_system_ns = 0;
        }),
        not_applicable("I7", "simulated", |run| {
            run.agents[0].backend = Backend::Sim;
            run.agents[0].host.cpu_system_ns = 1;
        }),
    ]);
}

#[test]
fn many_problems_are_counted_not_listed() {
    let mut problems = Problems::default();
    for number in 0..10 {
        problems.expect(number % 2 == 0, || format!("problem {number}"));
    }
    let shown = CheckOutcome::broken("problem 1; problem 3; problem 5; and 2 more");
    assert_eq!(problems.or_held("fine"), Err(shown));
    let held = Problems::default().or_held("fine");
    assert_eq!(held, Ok(CheckOutcome::held("fine")));
}

/// The run whose server counted `more` than what was sent, or fewer than what was answered.
fn counted(run: &mut Run, more: i64) {
    let lifetime = run.summary().lifetime;
    let ours = if more < 0 {
        lifetime.replies.total()
    } else {
        lifetime.requests_sent
    };
    run.agents[0].evidence.server_count = Some(ServerCount {
        url: "http://127.0.0.1:8080/counters".to_owned(),
        path: "requests".to_owned(),
        before: 1_000,
        after: 1_000_u64.saturating_add_signed(more) + ours,
        own_reads: 2,
    });
}

/// The server's count.
fn read(run: &mut Run) -> &mut ServerCount {
    let count = run.agents[0].evidence.server_count.as_mut();
    count.expect("it was read")
}

#[test]
fn the_server_counted_the_same() {
    verify([
        held("I8", "as many as were sent", |run| counted(run, 0)),
        held("I8", "with the reading itself", |run| counted(run, 2)),
        held("I8", "without those that failed", |run| {
            counted(run, 0);
            let failed = run.summary().lifetime.requests_sent;
            let answered = run.summary().lifetime.replies.total();
            assert!(failed > answered, "the sample has failures");
            read(run).after = 1_000 + answered;
        }),
        flagged("I8", "one fewer than were answered", |run| counted(run, -1)),
        flagged("I8", "as many fewer as can be in flight", |run| {
            let places =
                i64::from(run.plan.load.connections.get() * run.agents[0].negotiated.depth);
            counted(run, -places);
        }),
        broken("I8", "fewer than that", |run| {
            let places =
                i64::from(run.plan.load.connections.get() * run.agents[0].negotiated.depth);
            counted(run, -places - 1);
        }),
        flagged("I8", "one of somebody else", |run| counted(run, 3)),
        flagged("I8", "as many of somebody else, and the reading", |run| {
            let sent = run.summary().lifetime.requests_sent;
            counted(run, 2 + sent as i64);
        }),
        broken("I8", "more of somebody else", |run| {
            let sent = run.summary().lifetime.requests_sent;
            counted(run, 3 + sent as i64);
        }),
        flagged("I8", "more of somebody whom the kernel saw", |run| {
            let sent = run.summary().lifetime.requests_sent;
            counted(run, 3 + sent as i64);
            run.agents[0].evidence.server_connections = Some(ServerConnections {
                connections: u64::from(run.summary().live.max) + 1,
                segments_received_beyond: 1,
                ..ServerConnections::default()
            });
        }),
        broken("I8", "a counter that went back", |run| {
            counted(run, 0);
            read(run).after = 999;
        }),
        not_applicable("I8", "not read", |_| {}),
    ]);
}

#[test]
fn a_few_requests_of_others_are_excused_in_a_short_run() {
    for (others, status) in [
        (10, InvariantStatus::Flagged),
        (11, InvariantStatus::Broken),
    ] {
        let mut run = run();
        interrupted_in_warmup(&mut run);
        counted(&mut run, 2 + others);
        let findings = check(&run);
        let finding = findings.iter().find(|finding| finding.id == "I8");
        assert_eq!(finding.expect("it is checked").status, status);
    }
}

fn kept() -> Run {
    held_open(steady_run())
}

fn held_figures(run: &Run) -> Held {
    let summary: Summary = run.summary();
    Held::of(run, &summary).expect("connections were held")
}

#[test]
fn a_run_that_holds_connections_is_sound() {
    let kept = kept();
    let findings = check(&kept);
    assert!(is_valid(&findings), "{findings:#?}");
    assert_eq!(standing_of(&kept, "L1"), InvariantStatus::Held);
    let found = held_figures(&kept);
    let all = u64::from(2 * HELD);
    assert_eq!(
        (found.asked, found.open_at_end, found.opened),
        (all, all, all)
    );
    assert_eq!((found.closed_by_server, found.missing()), (0, 0));
    assert!(kept.no_success().is_none());
    assert!(Held::of(&run(), &run().summary()).is_none());
}

/// Each connection that was opened is open at the end, or lost in a way that is counted.
#[test]
fn every_connection_has_one_end() {
    let mut run = kept();
    let worker = &mut run.agents[0].workers[0];
    worker.tallies.measure.connections_closed_idle += 1;
    assert_eq!(standing_of(&run, "L1"), InvariantStatus::Broken);
    let worker = &mut run.agents[0].workers[0];
    worker.tallies.measure.connections_opened += 1;
    assert_eq!(standing_of(&run, "L1"), InvariantStatus::Held);
    let worker = &mut run.agents[0].workers[0];
    worker.live.at_end = Some(HELD - 1);
    worker.tallies.measure.failures.add(FailureKind::IdleReset);
    assert_eq!(standing_of(&run, "L1"), InvariantStatus::Held);
    let found = held_figures(&run);
    assert_eq!((found.closed_by_server, found.missing()), (2, 1));
}

#[test]
fn memory_is_what_was_added_by_the_connections() {
    let mut run = kept();
    for worker in &mut run.agents[0].workers {
        worker.live.asked = 500;
    }
    assert_eq!(held_figures(&run).client_bytes_per_connection.known(), None);
    let host = &mut run.agents[0].host;
    host.resident_before_bytes = Some(host.peak_resident_bytes - 1_500_000);
    let bytes = held_figures(&run).client_bytes_per_connection;
    assert_eq!(bytes, Figure::Known(1_500));
    run.agents[0].workers[0].live.asked = 499;
    assert_eq!(held_figures(&run).client_bytes_per_connection.known(), None);
}
