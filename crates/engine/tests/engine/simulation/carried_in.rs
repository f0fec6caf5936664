//! Requests that were in flight when the window began: counted, part of the mean in flight, and
//! lower bounds of the response time where they outlast the window.

use brunt_judge::{Quantile, ResponseQuantiles, RunFigures};
use brunt_load::{HttpChoice, Plan};
use brunt_record::{CarriedIn, Run};
use brunt_testkit::{ServiceTime, SimCounts, SimSettings};

use super::{at_the_door, faithful, plan, textbook};
use crate::common::{MS, S, US, ask, many};

/// A second of warm-up, and two of measurement.
fn closed(connections: u32) -> Plan {
    let mut plan = plan();
    plan.load.connections = many(connections);
    plan.load.warmup_ns = S;
    plan.load.halves_warmup = false;
    plan.load.stop.duration_ns = Some(2 * S);
    plan.limits.timeout_ns = 100 * S;
    plan.load.drain_limit_ns = S;
    plan
}

fn carried_in(run: &Run) -> CarriedIn {
    run.summary().carried_in
}

#[test]
fn what_is_in_flight_at_the_start_is_answered_in_the_window() {
    // Requests of 300 ms, one after the other: the fourth is sent at 0.9 s, and answered at 1.2 s.
    let (run, _) = faithful(&closed(7), &textbook(299_800 * US), "across the start");
    let expected = CarriedIn {
        in_flight: 7,
        answered: 7,
        in_flight_ns: 7 * 200 * MS,
        ..CarriedIn::default()
    };
    assert_eq!(carried_in(&run), expected);
    assert_eq!(run.latencies.unfinished.count(), 0);
}

#[test]
fn a_window_shorter_than_the_service_time_shows_it() {
    // Each request takes 10 s, of which the window sees 2.
    let (run, _) = faithful(&closed(64), &textbook(10 * S), "long requests");
    let expected = CarriedIn {
        in_flight: 64,
        unanswered: 64,
        in_flight_ns: 64 * 2 * S,
        ..CarriedIn::default()
    };
    assert_eq!(carried_in(&run), expected);
    assert_eq!(run.summary().in_flight_mean.known(), Some(64.0));
    // 1 s of warm-up, the window, and 1 s of drain.
    let Quantile::AtLeast { ns } = run.response_quantile(0.5) else {
        panic!("{:?}", run.response_quantile(0.5));
    };
    assert!(ns.abs_diff(4 * S) < 50 * MS, "{ns}");
    // Answered in drain, they took as long as they took.
    let mut patient = closed(64);
    patient.load.drain_limit_ns = 20 * S;
    let (run, _) = faithful(&patient, &textbook(10 * S), "answered in drain");
    assert_eq!(carried_in(&run), expected);
    let Quantile::AtLeast { ns } = run.response_quantile(0.5) else {
        panic!("{:?}", run.response_quantile(0.5));
    };
    assert!(ns.abs_diff(10 * S) < 100 * MS, "{ns}");
}

/// A server that never answers one request in 1,000, loaded until most connections hang.
fn forgetful(http: HttpChoice, pipeline: u32) -> (Run, SimCounts) {
    let mut plan = closed(64);
    plan.connection.protocol = http.into();
    plan.traffic.pipeline = many(pipeline);
    plan.traffic.streams = many(4);
    if http == HttpChoice::HTTP2 {
        ask(&mut plan, &[("/delay/1ms", 999), ("/never", 1)]);
    }
    let mut settings = SimSettings {
        seed: 5,
        ..at_the_door(|_| {})
    };
    settings.server.service = ServiceTime::Constant(MS);
    settings.server.faults.silent = 0.001;
    faithful(&plan, &settings, "forgetful")
}

#[test]
fn no_request_that_hangs_is_lost() {
    for (http, pipeline) in [
        (HttpChoice::HTTP1, 1),
        (HttpChoice::HTTP1, 4),
        (HttpChoice::HTTP2, 1),
    ] {
        let (run, counts) = forgetful(http, pipeline);
        let summary = run.summary();
        let carried_in = carried_in(&run);
        let what = format!("{http:?}, {pipeline}: {carried_in:?}");
        // Hung in warm-up, and hung in the window: with what waits behind them on the connection,
        // all that the server did not answer.
        assert!(carried_in.unanswered >= 20, "{what}");
        assert!(summary.population.censored >= 1, "{what}");
        assert_eq!(
            carried_in.unanswered + summary.population.censored,
            summary.in_flight_at_end,
            "{what}"
        );
        if run.agents[0].negotiated.depth == 1 {
            assert_eq!(summary.in_flight_at_end, counts.silent, "{what}");
        }
        assert_eq!(
            run.latencies.unfinished.count(),
            summary.in_flight_at_end,
            "{what}"
        );
        // Little's law sees them: every place is taken all the time.
        let places = f64::from(run.plan.load.connections.get() * run.agents[0].negotiated.depth);
        let mean = summary.in_flight_mean.known().expect("a window");
        assert!((mean - places).abs() < 0.001 * places, "{what}: {mean}");
    }
}
