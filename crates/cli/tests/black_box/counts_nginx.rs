//! Requests and replies as brunt counts them, against nginx's own count.

use crate::loads::MACHINERIES;
use crate::support::nginx::{KEEPALIVE_REQUESTS, Nginx};
use crate::support::run::{Arrivals, Requests, RunReport};

/// Runs `load` on every backend, with one and with two workers, against one nginx.
fn compare(url: fn(&Nginx) -> String, load: &str, check: impl Fn(Requests, &RunReport)) {
    let mut nginx = Nginx::start();
    for machinery in MACHINERIES {
        let before = nginx.settled();
        let report = machinery.run(load, &url(&nginx));
        let received = nginx.settled() - before;
        let requests = report.requests();
        assert_eq!(requests.sent, received, "{machinery:?}: {requests:?}");
        assert_eq!(requests.answered, received, "{machinery:?}: {requests:?}");
        assert!(received > 0);
        let expected = [("200".to_owned(), received)];
        assert_eq!(report.statuses(), expected.into(), "{machinery:?}");
        check(requests, &report);
    }
}

#[test]
fn connections_are_used_as_planned() {
    let timed = "-d 300ms --warmup 100ms";
    // The load, and the requests on a connection where they are counted.
    for (load, uses) in [
        (format!("-c 8 {timed}"), None),
        (format!("-c 8 {timed} --no-keepalive"), Some(1)),
        (format!("-c 8 {timed} --requests-per-connection 7"), Some(7)),
        (format!("-c 8 {timed} --pipeline 8"), None),
        ("-c 8 -n 1000".to_owned(), None),
    ] {
        compare(Nginx::url, &load, |requests, report| {
            let opened = report.total("connections_opened");
            let possible = match uses {
                None => 8..=8,
                Some(1) => requests.sent..=requests.sent + 8,
                Some(uses) => requests.sent.div_ceil(uses)..=u64::MAX,
            };
            assert!(possible.contains(&opened), "{load}: {opened}");
            let is_by_count = load.contains("-n 1000");
            assert!(!is_by_count || requests.sent == 1_000, "{requests:?}");
        });
    }
}

/// A rate of requests or of connections is kept to the last one, whatever replies do.
#[test]
fn planned_rates_are_kept() {
    for (load, in_window, in_all, each) in [
        ("-r 200 -c 4", 60, 80, 1),
        (
            "--connection-rate 50 --requests-per-connection 3",
            15,
            20,
            3,
        ),
    ] {
        let load = format!("{load} -d 300ms --warmup 100ms");
        compare(Nginx::url, &load, |requests, report| {
            let all_sent = |planned| Arrivals {
                planned,
                sent: planned,
                skipped: 0,
                unsent: 0,
            };
            assert_eq!(report.arrivals(), all_sent(in_window), "{load}");
            assert_eq!(report.arrivals_all(), all_sent(in_all), "{load}");
            assert_eq!(requests.sent, each * in_all, "{load}");
            let population = report.population();
            assert_eq!(population.issued, population.recorded, "{load}");
        });
    }
}

#[test]
fn where_the_server_replaces_connections() {
    let load = "-c 8 -d 300ms --warmup 100ms";
    compare(Nginx::url_replaced, load, |requests, report| {
        let opened = report.total("connections_opened");
        assert!(opened >= requests.sent / KEEPALIVE_REQUESTS, "{opened}");
    });
}

#[test]
fn where_the_server_replaces_connections_with_pipelined_requests() {
    // nginx does not read what was pipelined behind the last request that it answers.
    let mut nginx = Nginx::start();
    for machinery in MACHINERIES {
        let before = nginx.settled();
        let load = "-c 4 -d 300ms --warmup 100ms --pipeline 8";
        let report = machinery.run(load, &nginx.url_replaced());
        let received = nginx.settled() - before;
        let requests = report.requests();
        assert_eq!(requests.in_flight, 0, "{machinery:?}");
        let sent_again = report.total("sent_again");
        assert!(requests.failed + sent_again > 0, "{machinery:?}");
        // A reset may overtake replies that nginx had sent.
        assert!(
            (requests.answered..=requests.sent + sent_again).contains(&received),
            "{machinery:?}: {received} received, {requests:?}"
        );
    }
}

#[test]
fn cut_off_by_a_signal() {
    let mut nginx = Nginx::start();
    for machinery in MACHINERIES {
        for load in ["-c 8", "-c 4 --pipeline 8", "-c 8 --no-keepalive"] {
            let before = nginx.settled();
            let url = nginx.url();
            let report = machinery.run_interrupted(load, &url, || {
                nginx.wait_for_requests(before + 500);
            });
            let received = nginx.settled() - before;
            let requests = report.requests();
            let counts = (requests.sent, requests.answered);
            assert_eq!(counts, (received, received), "{machinery:?} {load}");
        }
    }
}
