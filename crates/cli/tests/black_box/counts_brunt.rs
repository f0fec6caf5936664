//! What brunt counts and times of a run on the reference server.

use crate::loads::MACHINERIES;
use crate::support::process::brunt;
use crate::support::run::{RunReport, run};
use crate::support::serve::Serve;

#[test]
fn statuses_are_those_that_the_server_sent() {
    for machinery in MACHINERIES {
        let server = Serve::start();
        let report = machinery.run("-c 8 -n 300", &server.url("/refuse-after/100"));
        let counters = server.settled();
        let expected = [("200".to_owned(), 100), ("503".to_owned(), 200)];
        assert_eq!(report.statuses(), expected.into(), "{machinery:?}");
        assert_eq!(counters.replies_by_status, [(200, 100), (503, 200)].into());
        let requests = report.requests();
        assert_eq!(requests.sent, counters.requests, "{machinery:?}");
        assert_eq!(requests.answered, counters.replies, "{machinery:?}");
        assert_eq!(report.total("bytes_sent"), counters.bytes_received);
        // One more is the connection with which brunt found out that the server is there.
        let accepted = counters.connections_accepted - counters.counters_requests;
        assert_eq!(accepted, report.total("connections_opened") + 1);
    }
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

#[test]
fn the_phases_add_up_to_the_life_of_the_process() {
    let server = Serve::start();
    let outcome = brunt(&format!(
        "--format json -c 4 -d 300ms --warmup 200ms {}",
        server.url("/")
    ));
    let took_ns = outcome.took.as_nanos() as u64;
    let report = RunReport::of(outcome);
    let edges = "setup_start warmup_start measure_start measure_end drain_end finished";
    let edges: Vec<u64> = edges.split(' ').map(|name| report.edge_ns(name)).collect();
    assert!(edges.is_sorted(), "{edges:?}");
    let process_ns = report.number("/agents/0/clock/process_ns");
    assert!(process_ns >= edges[5], "{edges:?}");
    assert!(process_ns <= took_ns, "{process_ns} of {took_ns}");
}

#[test]
fn the_warm_up_of_a_closed_loop_is_an_experiment() {
    let server = Serve::start();
    let load = format!("-c 4 -d 100ms --warmup 500ms {}", server.url("/"));
    for (options, is_made) in [
        ("", true),
        ("--rate 100", false),
        ("--think-time 1ms", false),
        ("--warmup 200ms", false),
    ] {
        let load = if options.contains("--warmup") {
            load.replace("--warmup 500ms", "")
        } else {
            load.clone()
        };
        let report = run(&format!("{load} {options}"));
        let made = report.at("/agents/0/workers/0/halving");
        assert_eq!(!made.is_null(), is_made, "{options}: {made}");
    }
}
