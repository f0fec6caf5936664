//! When a run ends, and what its window is, whatever the server or a worker does.

use crate::support::BACKENDS;
use crate::support::process::brunt;
use crate::support::run::{RunReport, run};
use crate::support::serve::Serve;

const MS: u64 = 1_000_000;

#[test]
fn requests_without_a_reply_are_named_in_the_text() {
    let server = Serve::start();
    let outcome = brunt(&format!(
        "-c 4 -d 200ms --warmup 0s --drain 100ms {}",
        server.url("/never")
    ));
    let words = "4 without a reply at the end";
    assert!(outcome.stdout.contains(words), "{}", outcome.stdout);
}

#[test]
fn drain_waits_for_the_last_replies() {
    let server = Serve::start();
    for backend in BACKENDS {
        let report = run(&format!(
            "--backend {backend} -c 4 -d 100ms --warmup 0s {}",
            server.url("/delay/400ms")
        ));
        let requests = report.requests();
        assert_eq!((requests.sent, requests.answered), (4, 4), "{backend}");
        assert_eq!(report.number("/summary/requests/censored"), 0);
        // Sent in the window, answered after it: a latency, and no part of the rate.
        assert_eq!(report.number("/latencies/response/count"), 4);
        assert_eq!(report.number("/summary/replies/successes"), 0);
        assert!(report.number("/latencies/response/min_ns") >= 400 * MS);
    }
}

#[test]
fn a_run_by_number_ends_with_its_last_reply() {
    let server = Serve::start();
    let report = run(&format!("-c 4 -n 8 {}", server.url("/delay/50ms")));
    let window_ns = report.number("/summary/window_ns");
    assert!(window_ns >= 100 * MS, "{window_ns}");
    let last_ns = report.edge_ns("measure_start") + window_ns;
    assert_eq!(report.edge_ns("measure_end"), last_ns);
    assert_eq!(report.number("/summary/replies/successes"), 8);
}

#[test]
fn number_and_duration_together_end_with_the_first() {
    let server = Serve::start();
    let url = server.url("/delay/20ms");
    let report = run(&format!("-c 1 -n 1000 -d 200ms {url}"));
    assert!(report.requests().answered < 1_000);
    assert_eq!(report.number("/summary/window_ns"), 200 * MS);
    let requests = report.requests();
    let unsent = report.number("/summary/requests/unsent");
    assert_eq!(requests.sent + unsent, 1_000);
    let report = run(&format!("-c 1 -n 3 -d 10m {url}"));
    assert_eq!(report.requests().answered, 3);
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
    let edges = [
        "setup_start",
        "warmup_start",
        "measure_start",
        "measure_end",
        "drain_end",
        "finished",
    ]
    .map(|name| report.edge_ns(name));
    assert!(edges.is_sorted(), "{edges:?}");
    let process_ns = report.number("/agents/0/clock/process_ns");
    assert!(process_ns >= edges[5], "{edges:?}");
    assert!(process_ns <= took_ns, "{process_ns} of {took_ns}");
}
