//! L4: a server that falls silent for 100 ms in each second.
//!
//! What is due in a silence of s = 100 ms is answered at its end, so a request that is due x
//! before that end takes x: of the requests of a second (D = 1 s), (s - x) / D take longer than x,
//! and the q-quantile is s - (1 - q) D. Arrivals lie 1 ms apart, and so exact is the figure.

use brunt_judge::RunFigures;
use brunt_load::{ArrivalProcess, Plan};
use brunt_record::Histogram;
use brunt_testkit::{ServiceTime, SimSettings};

use super::{SILENCES, at_the_door, closed, expect_silences, faithful, open_loop, rate, run};
use crate::common::{MS, S, US, many};

/// What a histogram's buckets may add to the median of what a silence met, the least value here.
const BUCKET_NS: u64 = 50 * US;
/// Time from one arrival to the next.
const GAP_NS: u64 = MS;
/// Past the silence in which load begins, so that a window of n seconds has n whole ones.
const WARMUP_NS: u64 = 200 * MS;

/// Releases a backlog at full speed: 100 requests in 0.1 ms.
fn stalling() -> SimSettings {
    at_the_door(|server| {
        server.service = ServiceTime::Constant(US);
        server.stall = Some(SILENCES);
    })
}

/// How many values are above 0.2 ms: all that a silence met.
fn long(histogram: &Histogram) -> u64 {
    histogram.buckets().count_between(200 * US, u64::MAX)
}

/// 1,000 arrivals per second.
fn arrivals(process: ArrivalProcess, connections: u32, seconds: u64) -> Plan {
    let mut plan = open_loop(rate(process, 1_000.0, 3), connections, seconds * S);
    plan.load.warmup_ns = WARMUP_NS;
    plan
}

fn even(connections: u32, seconds: u64) -> Plan {
    arrivals(ArrivalProcess::Constant, connections, seconds)
}

#[test]
fn response_times_show_every_silence() {
    for (connections, workers, seconds) in [(10, 1, 20), (10, 2, 20), (1, 1, 20), (10, 1, 600)] {
        let what = format!("{connections} connections, {workers} workers, {seconds} s");
        let mut plan = even(connections, seconds);
        plan.workers.count = many(workers);
        let (run, _) = faithful(&plan, &stalling(), &what);
        // And what the release of the backlog takes.
        expect_silences(&run, GAP_NS + 100 * US + BUCKET_NS, &what);
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
    expect_silences(&run, 5 * deviation as u64 + BUCKET_NS, "Poisson");
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
        let response = &run.latencies.response;
        let truth_ns = response.quantile_ns(0.999).expect("latencies");
        assert!(
            connections > 1 || shown_ns == US && truth_ns > 98 * MS,
            "{shown_ns}"
        );
        // A closed loop sees the same silences as rarely.
        let mut plan = closed(connections, 1);
        plan.load.warmup_ns = WARMUP_NS;
        plan.load.stop.duration_ns = Some(seconds * S);
        let mut settings = stalling();
        settings.server.service = ServiceTime::Constant(MS);
        let (closed, _) = faithful(&plan, &settings, "a closed loop");
        let response = &closed.latencies.response;
        let long = response.buckets().count_between(2 * MS, u64::MAX);
        assert_eq!(long, u64::from(connections) * seconds);
        let shown_ns = response.quantile_ns(0.99).expect("latencies");
        assert!(shown_ns < MS + US, "{shown_ns}");
    }
}

#[test]
fn more_connections_do_not_help_against_a_silence() {
    // Each arrival finds a free connection, or has one opened; none is answered sooner.
    let few = even(10, 20);
    let many_connections = even(200, 20);
    let (few, _) = run(few, &stalling());
    let (more, _) = run(many_connections, &stalling());
    assert_eq!(more.summary().arrivals.waited, 0);
    expect_silences(&more, GAP_NS + BUCKET_NS, "200 connections");
    // With a connection for each, service and response times are one.
    assert_eq!(more.latencies.service, more.latencies.response);
    let [few, more] = [few, more].map(|run| run.latencies.response.sum_ns());
    // A silence releases 100 requests over 10 connections: 10 µs in all.
    assert!(
        few >= more && few - more <= 20 * 100 * 10 * US,
        "{few} {more}"
    );
}
