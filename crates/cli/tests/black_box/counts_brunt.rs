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
