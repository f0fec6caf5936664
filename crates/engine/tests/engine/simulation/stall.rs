//! L4: a server that falls silent for 100 ms in each second.
//!
//! What is due in a silence of s = 100 ms is answered at its end, so a request that is due x
//! before that end takes x: of the requests of a second (D = 1 s), (s - x) / D take longer than x,
//! and the q-quantile is s - (1 - q) D. Arrivals lie 1 ms apart, and so exact is the figure.

use std::num::NonZeroU64;

use brunt_judge::RunFigures;
use brunt_load::{ArrivalProcess, Plan};
use brunt_record::{Histogram, Run};
use brunt_testkit::{ServiceTime, SimServer, SimSettings, Stall};

use super::{at_the_door, faithful, open_loop, plan, rate, run};
use crate::common::{MS, S, US, many};

const SILENCE_NS: u64 = 100 * MS;
/// Time from one arrival to the next.
const GAP_NS: u64 = MS;
/// Past the silence in which load begins, so that a window of n seconds has n whole ones.
const WARMUP_NS: u64 = 200 * MS;

/// Releases a backlog at full speed: 100 requests in 0.1 ms.
fn stalling() -> SimSettings {
    at_the_door(SimServer {
        service: ServiceTime::Constant(US),
        stall: Some(Stall {
            silence_ns: SILENCE_NS,
            period_ns: NonZeroU64::MIN.saturating_add(S - 1),
        }),
        ..SimServer::default()
    })
}

/// How many values are above 0.2 ms: all that a silence met.
fn long(histogram: &Histogram) -> u64 {
    histogram.buckets().count_between(200 * US, u64::MAX)
}

/// 1,000 arrivals per second.
fn arrivals(process: ArrivalProcess, connections: u32, seconds: u64) -> Plan {
    let mut plan = open_loop(rate(process, 1_000.0, 3), connections, seconds * S);
    plan.warmup_ns = WARMUP_NS;
    plan
}

fn even(connections: u32, seconds: u64) -> Plan {
    arrivals(ArrivalProcess::Constant, connections, seconds)
}

fn expect_quantiles(run: &Run, tolerance_ns: u64, what: &str) {
    for (q, truth_ns) in [(0.95, 50 * MS), (0.99, 90 * MS), (0.999, 99 * MS)] {
        let quantile_ns = run.latencies.response.quantile_ns(q).expect("latencies");
        let of_bucket = truth_ns / 1_000;
        assert!(
            quantile_ns.abs_diff(truth_ns) <= tolerance_ns + of_bucket,
            "{what}: the {q}-quantile is {quantile_ns}, not {truth_ns}"
        );
    }
}

#[test]
fn response_times_show_every_silence() {
    for (connections, workers, seconds) in [(10, 1, 20), (10, 2, 20), (1, 1, 20), (10, 1, 600)] {
        let what = format!("{connections} connections, {workers} workers, {seconds} s");
        let mut plan = even(connections, seconds);
        plan.workers = many(workers);
        let (run, _) = faithful(&plan, &stalling(), &what);
        // And what the release of the backlog takes.
        expect_quantiles(&run, GAP_NS + 100 * US, &what);
        assert_eq!(run.latencies.response.count(), 1_000 * seconds, "{what}");
        // 99 or 100 arrivals are due in a silence and take longer than 0.2 ms.
        let silences = long(&run.latencies.response);
        assert!(
            (99 * seconds..=100 * seconds).contains(&silences),
            "{what}: {silences}"
        );
    }
}

#[test]
fn random_arrivals_show_the_same_quantiles() {
    // Of n arrivals, each of which meets a silence or not, a share p ± sqrt(p (1 - p) / n) takes
    // longer than the quantile; a share of 1 in D is 1 s of response time.
    let plan = arrivals(ArrivalProcess::Poisson, 10, 600);
    let (run, _) = faithful(&plan, &stalling(), "Poisson");
    let deviation = (0.05 * 0.95 / 600_000.0_f64).sqrt() * 1e9;
    expect_quantiles(&run, 5 * deviation as u64, "Poisson");
}

#[test]
fn service_times_hide_what_waited_in_brunt() {
    for connections in [1, 10] {
        let seconds = 20;
        let plan = even(connections, seconds);
        let (run, _) = faithful(&plan, &stalling(), "hidden");
        let service = &run.latencies.service;
        // One request per connection was on its way in each silence; the others were sent, and
        // answered at once, when it was over.
        assert_eq!(long(service), u64::from(connections) * seconds);
        assert_eq!(service.quantile_ns(0.95), Some(US));
        let shown_ns = service.quantile_ns(0.999).expect("latencies");
        let truth_ns = run
            .latencies
            .response
            .quantile_ns(0.999)
            .expect("latencies");
        assert!(
            connections > 1 || shown_ns == US && truth_ns > 98 * MS,
            "{shown_ns}"
        );
        // A closed loop sees the same silences as rarely.
        let mut plan = plan_of_closed_loop(connections);
        plan.stop.duration_ns = Some(seconds * S);
        let mut settings = stalling();
        settings.server.service = ServiceTime::Constant(MS);
        let (closed, _) = faithful(&plan, &settings, "a closed loop");
        assert_eq!(
            closed
                .latencies
                .response
                .buckets()
                .count_between(2 * MS, u64::MAX),
            u64::from(connections) * seconds
        );
        let shown_ns = closed
            .latencies
            .response
            .quantile_ns(0.99)
            .expect("latencies");
        assert!(shown_ns < MS + US, "{shown_ns}");
    }
}

fn plan_of_closed_loop(connections: u32) -> Plan {
    let mut plan = plan();
    plan.connections = many(connections);
    plan.warmup_ns = WARMUP_NS;
    plan
}

#[test]
fn more_connections_do_not_help_against_a_silence() {
    // Each arrival finds a free connection, or has one opened; none is answered sooner.
    let few = even(10, 20);
    let many_connections = even(200, 20);
    let (few, _) = run(few, &stalling());
    let (more, _) = run(many_connections, &stalling());
    assert_eq!(more.summary().arrivals.waited, 0);
    expect_quantiles(&more, GAP_NS, "200 connections");
    // With a connection for each, service and response times are one.
    assert_eq!(more.latencies.service, more.latencies.response);
    let [few, more] = [few, more].map(|run| run.latencies.response.sum_ns());
    // A silence releases 100 requests over 10 connections: 10 µs in all.
    assert!(
        few >= more && few - more <= 20 * 100 * 10 * US,
        "{few} {more}"
    );
}
