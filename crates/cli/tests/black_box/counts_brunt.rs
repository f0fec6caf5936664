//! Requests and replies as brunt counts them, against the reference server's own count.

use brunt_server::Counters;

use crate::loads::{MACHINERIES, Machinery};
use crate::support::run::{Requests, RunReport, run};
use crate::support::serve::Serve;

/// Runs `load` on every backend, with one and with two workers, each against a new server.
pub(crate) fn compare(path: &str, load: &str, check: impl Fn(&RunReport, &Counters)) {
    for machinery in MACHINERIES {
        let server = Serve::start();
        let report = machinery.run(load, &server.url(path));
        check(&report, &agreed(machinery, &report, &server));
    }
}

/// Compares the counts that must be equal whatever the load, and gives the server's.
pub(crate) fn agreed(machinery: Machinery, report: &RunReport, server: &Serve) -> Counters {
    let counters = server.settled();
    let requests = report.requests();
    let sends = requests.sent + report.total("sent_again");
    assert_eq!(sends, counters.requests, "{machinery:?}: requests");
    assert_eq!(
        requests.answered, counters.replies,
        "{machinery:?}: replies"
    );
    assert_eq!(
        report.total("bytes_sent"),
        counters.bytes_received,
        "{machinery:?}: bytes of requests"
    );
    // One more is the connection with which brunt found out that the server is there. Of those
    // that were being opened when the run ended, the server may have seen any.
    let opened = report.total("connections_opened") + 1;
    let accepted = counters.connections_accepted - counters.counters_requests;
    let possible = opened..=opened + report.number("/plan/connections");
    assert!(
        possible.contains(&accepted),
        "{machinery:?}: {accepted} connections accepted, {opened} opened"
    );
    counters
}

/// Nothing failed, nothing is left over.
pub(crate) fn all_answered(report: &RunReport) -> Requests {
    let requests = report.requests();
    assert_eq!(requests.answered, requests.sent);
    assert!(requests.sent > 0);
    requests
}

#[test]
fn closed_loop_by_duration() {
    compare(
        "/bytes/100",
        "-c 8 -d 300ms --warmup 100ms",
        |report, counters| {
            all_answered(report);
            assert_eq!(
                report.total("bytes_received"),
                counters.bytes_sent,
                "bytes of replies"
            );
        },
    );
}

#[test]
fn by_number_of_requests_after_a_warm_up() {
    compare("/", "-c 8 -n 1000 --warmup 100ms", |report, _| {
        all_answered(report);
        assert_eq!(report.number("/summary/requests/issued"), 1_000);
    });
}

/// The report also has response times together with opening the connection.
fn expect_connecting(report: &RunReport) {
    let figure = |name: &str| report.number(&format!("/summary/{name}"));
    assert_eq!(figure("with_connect/count"), figure("response/count"));
    let least_ns = figure("response/min_ns") + figure("connect/min_ns");
    assert!(figure("with_connect/min_ns") >= least_ns);
    assert!(figure("with_connect/max_ns") >= figure("response/max_ns"));
}

#[test]
fn by_number_of_requests_without_keepalive() {
    compare("/", "-c 8 -n 500 --no-keepalive", |report, _| {
        assert_eq!(all_answered(report).sent, 500);
        expect_connecting(report);
    });
}

#[test]
fn cut_off_by_a_signal() {
    for machinery in MACHINERIES {
        for load in ["-c 8", "-c 4 --pipeline 8", "-c 8 --no-keepalive"] {
            let server = Serve::start();
            let report = machinery.run_interrupted(load, &server.url("/"), || {
                server.wait_for_requests(500);
            });
            agreed(machinery, &report, &server);
            assert!(all_answered(&report).sent >= 500);
        }
    }
}

#[test]
fn requests_in_flight_at_the_end_are_named() {
    compare(
        "/never",
        "-c 8 -d 200ms --warmup 0s -T 10m --drain 0s",
        |report, counters| {
            let expected = Requests {
                sent: 8,
                answered: 0,
                failed: 0,
                in_flight: 8,
            };
            assert_eq!(report.requests(), expected);
            assert_eq!(report.number("/summary/requests/censored"), 8);
            assert_eq!(counters.faults, 8);
        },
    );
}

#[test]
fn when_the_server_closes_at_random() {
    compare(
        "/random-close/20",
        "-c 8 -d 300ms --warmup 0s",
        |report, counters| {
            let requests = report.requests();
            assert!(requests.failed > 0);
            let again = report.total("sent_again");
            assert!(again > 0);
            assert_eq!(requests.failed + again, counters.faults);
        },
    );
}

#[test]
fn statuses_are_those_that_the_server_sent() {
    compare("/refuse-after/100", "-c 8 -n 300", |report, counters| {
        let expected = [("200".to_owned(), 100), ("503".to_owned(), 200)];
        assert_eq!(report.statuses(), expected.into());
        assert_eq!(counters.replies_by_status, [(200, 100), (503, 200)].into());
    });
}

#[test]
fn bytes_sent_per_second_are_those_of_the_window() {
    let server = Serve::start();
    for options in ["", "--http2 --streams 2"] {
        let report = run(&format!(
            "-c 2 -t 1 -d 300ms --warmup 100ms -b 0123456789 {options} {}",
            server.url("/")
        ));
        let sent = report.number("/agents/0/workers/0/tallies/measure/bytes_sent");
        let requests = report.number("/agents/0/workers/0/tallies/measure/requests_sent");
        assert!(sent >= 10 * requests && requests > 0, "{options}: {sent}");
        let window_s = report.number("/summary/window_ns") as f64 / 1e9;
        let per_s = report.at("/summary/bytes_sent_per_s").as_f64();
        let per_s = per_s.expect("a rate");
        assert!(
            (per_s * window_s / sent as f64 - 1.0).abs() < 1e-9,
            "{options}: {per_s}"
        );
    }
}
