//! The invariants of planned requests and planned connections.

use brunt_load::{ArrivalProcess, LoadModel, Schedule, Stamps};
use brunt_record::{ArrivalCounts, Parts, Split};

use super::*;

/// The run as one whose server has 10 connections fewer than there are arrivals every 100 ms.
fn backlog_grows(run: &mut Run) {
    for worker in &mut run.agents[0].workers {
        for (index, point) in worker.series.points.iter_mut().enumerate() {
            point.waiting_max = 10 * (index as u64 + 1);
        }
    }
}

/// Changes the arrivals of the first worker, those of the window and those of all phases.
fn in_both_books(run: &mut Run, change: impl Fn(&mut ArrivalCounts)) {
    let worker = first(run);
    change(&mut worker.arrivals);
    change(&mut worker.arrivals_all);
}

/// The run as if a request more had timed out in the window.
fn one_timed_out(run: &mut Run) {
    let worker = first(run);
    worker.population.failed += 1;
    worker.population.issued += 1;
    worker.tallies.measure.failures.add(FailureKind::TimedOut);
    worker.tallies.measure.requests_sent += 1;
    worker.series.points[0].failures += 1;
    in_both_books(run, |arrivals| {
        arrivals.planned += 1;
        arrivals.sent += 1;
    });
    run.plan.limits.timeout_ns = 1_500 * MS;
    run.latencies.lag.record(5 * US);
}

/// One arrival of the first worker that was sent, in all books as if it had waited for as long as
/// the time-out.
fn skip_one(run: &mut Run) {
    in_both_books(run, |arrivals| {
        arrivals.sent -= 1;
        arrivals.sent_by_end = arrivals.sent_by_end.map(|by_end| by_end - 1);
        arrivals.skipped_late += 1;
    });
}

#[test]
fn open_load_was_put_on() {
    let cases = [
        broken("L1", "more open than allowed", |run| {
            first(run).live.max = 5
        }),
        broken("L1", "connections beyond the first not dealt out", |run| {
            if let LoadModel::Open {
                connections_max, ..
            } = &mut run.plan.load.model
            {
                *connections_max = connections_max.saturating_add(1);
            }
        }),
        held("L1", "more were opened", |run| {
            if let LoadModel::Open {
                connections_max, ..
            } = &mut run.plan.load.model
            {
                *connections_max = connections_max.saturating_add(4);
            }
            let live = &mut first(run).live;
            (live.most, live.max) = (8, 8);
            live.connection_ns *= 2;
        }),
        held("L1", "a tenth of them was not needed", |run| {
            let window_ns = run.window_ns;
            let live = &mut first(run).live;
            let unneeded_ns = live.connection_ns / 10;
            live.connection_ns = u64::from(live.asked) * window_ns - unneeded_ns;
            live.missing.unneeded_ns = unneeded_ns;
        }),
        broken("W6", "an arrival without a request", |run| {
            in_both_books(run, |arrivals| {
                arrivals.planned += 1;
                arrivals.sent += 1;
            });
        })
        .breaking(&["S1"]),
        broken("W6", "a request of warm-up without an arrival", |run| {
            let all = &mut first(run).arrivals_all;
            all.planned -= 1;
            all.sent -= 1;
            all.sent_by_end = all.sent_by_end.map(|by_end| by_end - 1);
        })
        .breaking(&["A5"]),
        held("W6", "by count", by_count),
        held("W6", "by count, two never sent", |run| {
            by_count(run);
            *run.plan.load.stop.requests.as_mut().expect("by count") += 2;
            in_both_books(run, |arrivals| {
                arrivals.planned += 2;
                arrivals.skipped_full += 1;
                arrivals.unsent += 1;
            });
            (0..2).for_each(|_| run.latencies.unfinished.record(MS));
        }),
        broken("L2", "an arrival lost", |run| {
            in_both_books(run, |arrivals| arrivals.planned += 1)
        }),
        broken("L2", "an arrival of warm-up lost", |run| {
            first(run).arrivals_all.planned += 1
        }),
        broken("L2", "fewer planned than the schedule has", |run| {
            *expected(run) += 4.0
        }),
        broken("L2", "more planned than the schedule has", |run| {
            *expected(run) -= 4.0
        }),
        held("L2", "the share of a worker rounded", |run| {
            *expected(run) += 2.5
        }),
        held("L2", "Poisson, 5 standard deviations over", |run| {
            let poisson = Schedule::constant_rate(ArrivalProcess::Poisson, 2_000.0, 7);
            *schedule_of(run) = poisson.expect("a rate");
            *expected(run) -= 300.0;
        }),
        broken("L2", "Poisson, 7 standard deviations over", |run| {
            let poisson = Schedule::constant_rate(ArrivalProcess::Poisson, 2_000.0, 7);
            *schedule_of(run) = poisson.expect("a rate");
            *expected(run) -= 430.0;
        }),
        broken("L2", "a schedule that is no number", |run| {
            *expected(run) = f64::NAN
        }),
        held("L2", "by count, the schedule goes on", |run| {
            by_count(run);
            *expected(run) = 9_000.0;
        }),
        held("L2", "interrupted", |run| {
            run.agents[0].interrupted = true;
            *expected(run) = 9_000.0;
        }),
    ];
    verify(cases.map(|case| case.on(open_run)));
    let arrivals = broken("L2", "arrivals in a closed loop", |run| {
        first(run).arrivals_all.planned = 1;
        first(run).arrivals_all.unsent = 1;
    });
    verify([arrivals]);
}

#[test]
fn what_never_ended_is_counted() {
    let cases = [
        broken("L5", "a censored request without a bound", |run| {
            run.latencies.unfinished = Histogram::default();
            run.latencies.unfinished.record(MS);
        }),
        broken("L5", "a bound too many", |run| {
            run.latencies.unfinished.record(MS)
        }),
        broken("L5", "a skipped arrival without a bound", |run| {
            skip_one(run)
        })
        .breaking(&["W6", "S1"]),
        held("L5", "a time-out", |run| {
            one_timed_out(run);
            run.latencies.unfinished.record(1_500 * MS);
        }),
        // Warm-up left one request to each worker, which may have timed out.
        broken("L5", "time-outs without a bound", |run| {
            (0..3).for_each(|_| one_timed_out(run))
        }),
        held("L6", "nothing grows", |_| {}),
        flagged("L6", "the backlog grows", backlog_grows),
        flagged("L6", "the queue was full", |run| {
            in_both_books(run, |arrivals| {
                arrivals.planned += 1;
                arrivals.skipped_full += 1;
            });
            run.latencies.unfinished.record(MS);
        }),
        broken("L7", "a time-out before its time", |run| {
            // From the planned instant: load began 2.203 s before the end of drain.
            run.plan.limits.timeout_ns = 2_300 * MS;
            let failures = &mut first(run).tallies.before.failures;
            failures.add(FailureKind::TimedOut);
        })
        .breaking(&["W6", "A5"]),
    ];
    verify(cases.map(|case| case.on(open_run)));
    verify([not_applicable("L6", "a closed loop", |_| {})]);
}

#[test]
fn an_overloaded_run_says_so() {
    let mut run = open_run();
    backlog_grows(&mut run);
    let outcome = outcome_of("L6", &Facts::of(&run));
    // 3,998 of 4,000 were done in 2 s.
    let words = "overloaded: about 1999.0 per second were answered, latency grows by 500.2 µs per \
                 second; quantiles depend on the duration";
    assert_eq!(outcome.detail, words);
}

#[test]
fn planned_connections() {
    let cases = [
        broken("L1", "more open than allowed", |run| {
            first(run).live.max = 5
        }),
        broken("L1", "connections held that nobody asked for", |run| {
            first(run).live.asked = 1
        }),
        broken("L2", "an arrival lost", |run| {
            in_both_books(run, |arrivals| arrivals.planned += 1)
        }),
        broken("L2", "a connection that nobody planned", |run| {
            first(run).tallies.measure.connections_opened += 1;
            run.latencies.connect.record(US);
        }),
        held("L2", "a connection refused", |run| {
            let worker = first(run);
            let failures = &mut worker.tallies.measure.failures;
            failures.add(FailureKind::ConnectRefused);
            worker.series.points[0].failures += 1;
            in_both_books(run, |arrivals| {
                arrivals.planned += 1;
                arrivals.sent += 1;
            });
            run.latencies.lag.record(US);
        }),
        // A connection that was skipped is no request without an end.
        held("L5", "an arrival skipped", |run| {
            in_both_books(run, |arrivals| {
                arrivals.planned += 1;
                arrivals.skipped_late += 1;
            });
        }),
        broken("W6", "sent but not issued", |run| {
            first(run).tallies.measure.requests_sent += 1;
            first(run).tallies.before.requests_sent -= 1;
        }),
        held("I1", "connections that think", |run| {
            run.plan.traffic.think_time_ns = MS;
            for worker in &mut run.agents[0].workers {
                worker.live.connection_ns *= 2;
            }
        }),
        held("A4", "no service time apart from the response time", |_| {}),
    ];
    verify(cases.map(|case| case.on(sessions_run)));
}

#[test]
fn parts_of_response_times() {
    let cases = [
        broken("S1", "an own share lost", |run| {
            let own = &run.latencies.split.own;
            run.latencies.split.own = all_at(own, US);
        }),
        broken("S1", "a rest lost", |run| {
            let rest = &run.latencies.split.rest;
            run.latencies.split.rest = all_at(rest, US);
        }),
        broken("S1", "more split than there are", |run| {
            let split = run.latencies.split.clone();
            (0..9).for_each(|_| run.latencies.split.merge(&split));
        }),
        broken("S1", "parts of other response times", |run| {
            let mut stored = serde_json::to_value(&run.latencies.split).expect("a split");
            let server_ns = &mut stored["buckets"][0]["sums"]["server_ns"];
            *server_ns = (server_ns.as_u64().expect("a number") / 2).into();
            run.latencies.split = serde_json::from_value(stored).expect("a split");
        }),
        held("S1", "all split", |run| {
            // Every response has parts, so that their sums are those of the response times.
            let mut response = Histogram::default();
            let mut split = Split::default();
            for _ in 0..run.latencies.response.count() {
                response.record(MS);
                let (server_ns, parse_ns) = (MS - 5 * US, 5 * US);
                split.record(&Parts {
                    server_ns,
                    parse_ns,
                    ..Default::default()
                });
            }
            (run.latencies.response, run.latencies.split) = (response, split);
        }),
        broken("S1", "all split, and a nanosecond over", |run| {
            let mut response = Histogram::default();
            let mut split = Split::default();
            for _ in 0..run.latencies.response.count() {
                response.record(MS);
                split.record(&Parts {
                    server_ns: MS - 1,
                    ..Default::default()
                });
            }
            (run.latencies.response, run.latencies.split) = (response, split);
        }),
        broken("S1", "an arrival without a lag", |run| {
            let lag = &run.latencies.lag;
            let mut fewer = Histogram::default();
            (1..lag.count()).for_each(|_| fewer.record(5 * US));
            run.latencies.lag = fewer;
        }),
        held("S1", "without stamps", |run| {
            run.plan.observation.stamps = Stamps::Off;
            run.latencies.split = Split::default();
        }),
    ];
    verify(cases.map(|case| case.on(open_run)));
    verify([broken("S1", "more lags than requests", |run| {
        (0..20_000).for_each(|_| run.latencies.lag.record(US))
    })]);
}

#[test]
fn impossible_open_latencies() {
    let cases = [
        broken("I1", "service times too long for the rate", |run| {
            run.latencies.service = all_at(&run.latencies.service, 9 * MS)
        })
        .breaking(&["S2"]),
        held("I1", "connections that idle", |_| {}),
        broken("I1", "more in flight than connections", |run| {
            first(run).in_flight_ns *= 10
        }),
        held("I1", "as many that wait to be sent again", |run| {
            let in_flight_ns = first(run).in_flight_ns;
            first(run).in_flight_ns = 10 * in_flight_ns;
            first(run).awaiting_again_ns = 9 * in_flight_ns;
        }),
        held("I1", "response times that waited", |run| {
            run.latencies.response = all_at(&run.latencies.response, 900 * MS)
        }),
        broken("I2", "a latency from before the window", |run| {
            run.latencies.response = with_one_at(&run.latencies.response, 2_004 * MS)
        }),
        held("I2", "a latency as long as window and drain", |run| {
            run.latencies.response = with_one_at(&run.latencies.response, 2_003 * MS)
        }),
        flagged("I3", "served faster than half the round trip", |run| {
            round_trip(run, 2_010)
        }),
        broken("A4", "service times of one worker lost", |run| {
            run.latencies.service = Histogram::default();
            run.latencies.service.record(MS);
        })
        .breaking(&["S2"]),
        broken("A4", "response times over time lost", |run| {
            run.latencies.intervals = Default::default()
        }),
        broken("A5", "replies to requests of nowhere", |run| {
            (0..3).for_each(|_| first(run).tallies.after.replies.add(200))
        })
        .breaking(&["W6", "I4"]),
    ];
    verify(cases.map(|case| case.on(open_run)));
}

fn expected(run: &mut Run) -> &mut f64 {
    let expected = run.agents[0].expected_arrivals.as_mut();
    expected.expect("a schedule")
}
