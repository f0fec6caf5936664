//! A brunt that is stopped again and again: what would have been without its stops is the rest of
//! a response time, and all else is its own share.

use brunt_load::{ArrivalProcess, HttpChoice, Plan};
use brunt_record::{Histogram, Run};
use brunt_testkit::{Costs, LateWakeUps, ServiceTime, SimHost, SimSettings, Stall, Taken};

use super::{even_rate, faithful, open_loop, rate, textbook};
use crate::common::{MS, S, US, change_request, many, many_long, requests_by_plan};

/// A host on which others have the CPU for 80 ms of every 100 ms.
fn throttled(settings: &SimSettings) -> SimSettings {
    let contention = Some(Taken {
        part_ns: 80 * MS,
        period_ns: many_long(100 * MS),
    });
    let host = SimHost {
        contention,
        ..SimHost::default()
    };
    SimSettings {
        host: Some(host),
        ..settings.clone()
    }
}

fn rest(run: &Run) -> &Histogram {
    let split = &run.latencies.split;
    assert_eq!(split.count(), run.latencies.response.count());
    assert_eq!(
        u128::from(split.own.sum_ns()) + u128::from(split.rest.sum_ns()),
        u128::from(run.latencies.response.sum_ns())
    );
    &split.rest
}

/// How much of the response times is brunt's own share.
fn own_share(run: &Run) -> f64 {
    run.latencies.split.own.sum_ns() as f64 / run.latencies.response.sum_ns() as f64
}

#[test]
fn the_rest_is_to_the_nanosecond_what_a_punctual_brunt_measures() {
    // The server takes the same time whatever the load, so the queue before one connection is
    // known: due instants, and 1 ms each.
    for process in ArrivalProcess::ALL {
        for rate_per_s in [100.0, 800.0, 950.0] {
            let what = format!("{process}, {rate_per_s}");
            let plan = open_loop(rate(*process, rate_per_s, 9), 1, 10 * S);
            let settings = textbook(800 * US);
            let (punctual, _) = faithful(&plan, &settings, &what);
            let (stopped, _) = faithful(&plan, &throttled(&settings), &what);
            let (truth, found) = (&punctual.latencies.response, rest(&stopped));
            let of = |found: &Histogram| {
                (
                    found.count(),
                    found.sum_ns(),
                    found.min_ns(),
                    found.max_ns(),
                )
            };
            assert_eq!(of(found), of(truth), "{what}");
            for q in [0.5, 0.9, 0.99, 0.999] {
                assert_eq!(found.quantile_ns(q), truth.quantile_ns(q), "{what}, {q}");
            }
            assert_eq!(own_share(&punctual), 0.0, "{what}");
            assert!(own_share(&stopped) > 0.5, "{what}: {}", own_share(&stopped));
        }
    }
}

/// 40,000 requests per second on 16 connections or streams, to a server that takes 50 µs on
/// average.
fn busy(http: HttpChoice) -> (Plan, SimSettings) {
    let mut plan = open_loop(even_rate(40_000.0), 16, 2 * S);
    plan.connection.protocol = http.into();
    if http == HttpChoice::HTTP2 {
        plan.traffic.streams = many(4);
        plan.load.connections = many(4);
        change_request(&mut plan, |request| request.path = "/delay/50us".to_owned());
        requests_by_plan(&mut plan, even_rate(40_000.0), 10_000_000);
    }
    let mut settings = textbook(0);
    settings.server.service = ServiceTime::Exponential { mean_ns: 50 * US };
    settings.network_ns = 5 * US;
    settings.costs = Costs {
        clock_ns: 20,
        send_ns: US,
        event_ns: 200,
        ..Costs::NONE
    };
    (plan, settings)
}

fn expect_near(found: &Histogram, truth: &Histogram, what: &str) {
    for q in [0.5, 0.9, 0.99, 0.999] {
        let (found_ns, truth_ns) = (found.quantile_ns(q), truth.quantile_ns(q));
        let (found_ns, truth_ns) = (found_ns.expect("some"), truth_ns.expect("some"));
        let ratio = found_ns as f64 / truth_ns as f64;
        assert!(
            (0.9..1.15).contains(&ratio),
            "{what}: q {q} is {found_ns} ns, in truth {truth_ns} ns"
        );
    }
}

#[test]
fn a_throttled_brunt_leaves_the_rest_as_it_was() {
    for http in [HttpChoice::HTTP1, HttpChoice::HTTP2] {
        let what = format!("{http:?}");
        let (plan, settings) = busy(http);
        let (free, _) = faithful(&plan, &settings, &what);
        let (stopped, _) = faithful(&plan, &throttled(&settings), &what);
        expect_near(rest(&stopped), rest(&free), &what);
        // 40 ms on average, of which the server took some 70 µs.
        assert!(
            own_share(&stopped) > 0.99,
            "{what}: {}",
            own_share(&stopped)
        );
        let tail = stopped.latencies.split.tail(0.99).expect("a tail");
        assert!(
            tail.own_ns() > 0.99 * tail.response_ns(),
            "{what}: {tail:?}"
        );
    }
}

#[test]
fn a_stall_of_the_server_is_still_the_servers() {
    let (plan, mut settings) = busy(HttpChoice::HTTP1);
    settings.server.stall = Some(Stall {
        silence_ns: 50 * MS,
        period_ns: many_long(250 * MS),
    });
    let (free, _) = faithful(&plan, &settings, "a stall");
    assert!(own_share(&free) < 0.005, "{}", own_share(&free));
    // Brunt is stopped for 10 ms now and then, mostly while the server answers.
    settings.late_wake_ups = Some(LateWakeUps {
        probability: 0.0002,
        delay_ns: 10 * MS,
    });
    let (stopped, counts) = faithful(&plan, &settings, "a stall");
    assert!(counts.late_wake_ups >= 5, "{}", counts.late_wake_ups);
    let (truth, found) = (rest(&free), rest(&stopped));
    let ratio = found.sum_ns() as f64 / truth.sum_ns() as f64;
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
    for q in [0.9, 0.99] {
        let (found_ns, truth_ns) = (found.quantile_ns(q), truth.quantile_ns(q));
        let ratio = found_ns.expect("some") as f64 / truth_ns.expect("some") as f64;
        assert!(
            (0.9..1.1).contains(&ratio),
            "q {q}: {found_ns:?} of {truth_ns:?}"
        );
    }
    // All of the rise is brunt's own share.
    let rise_ns = stopped.latencies.response.sum_ns() - free.latencies.response.sum_ns();
    let ratio = stopped.latencies.split.own.sum_ns() as f64 / rise_ns as f64;
    assert!((0.7..1.3).contains(&ratio), "{ratio}");
}
