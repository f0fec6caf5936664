//! Ctrl-C: a full report of what was measured, or a quick end where there is nothing to report.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::BACKENDS;
use crate::support::listener::Port;
use crate::support::process::{Outcome, Process, start};
use crate::support::run::{RunReport, start_run};
use crate::support::serve::Serve;

/// What "at once" may take on a loaded machine.
const AT_ONCE: Duration = Duration::from_secs(10);

/// Sends SIGINT and gives how the process ended, and how long that took.
fn interrupt(process: Process) -> (Outcome, Duration) {
    let sent = Instant::now();
    process.signal(Signal::INT);
    (process.wait(), sent.elapsed())
}

/// Checks an end without a report.
fn assert_nothing_measured(ended: &(Outcome, Duration)) {
    let (outcome, took) = ended;
    assert_eq!(outcome.code, Some(130), "{outcome:?}");
    assert_eq!(outcome.stdout, "");
    assert!(outcome.stderr.contains("interrupted"), "{outcome:?}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    assert!(*took < AT_ONCE, "{took:?}");
}

#[test]
fn in_the_measure_phase_it_gives_a_full_report() {
    for signal in [Signal::INT, Signal::TERM] {
        let server = Serve::start();
        let process = start_run(&format!("-c 4 -d 10m --warmup 0s {}", server.url("/")));
        server.wait_for_requests(100);
        process.signal(signal);
        let outcome = process.wait();
        assert!(outcome.took < AT_ONCE, "{:?}", outcome.took);
        let report = RunReport::of(outcome);
        assert_eq!(report.code, Some(130));
        assert!(report.flag("/interrupted"));
        assert!(report.number("/latencies/response/count") > 0);
        // There was no planned end to be compared with.
        let planned = report.at("/edges/measure_end_planned/ns");
        assert!(planned.is_null(), "{planned}");
    }
}

#[test]
fn in_the_measure_phase_the_text_says_so() {
    let server = Serve::start();
    let process = start(&format!("-c 4 -d 10m --warmup 0s {}", server.url("/")));
    server.wait_for_requests(100);
    let (outcome, _) = interrupt(process);
    assert_eq!(outcome.code, Some(130), "{outcome:?}");
    assert!(outcome.stdout.contains("interrupted"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("throughput"), "{}", outcome.stdout);
}

#[test]
fn a_run_by_number_of_requests_can_be_cut_off() {
    let server = Serve::start();
    let process = start_run(&format!("-c 4 -n 1000m {}", server.url("/")));
    server.wait_for_requests(100);
    let report = RunReport::of(process.wait_interrupted());
    assert!(report.flag("/interrupted"));
    let requests = report.requests();
    assert_eq!(requests.sent, requests.answered);
    let unsent = report.number("/summary/requests/unsent");
    assert_eq!(requests.sent + unsent, 1_000_000_000);
}

#[test]
fn in_the_warm_up_there_is_nothing_to_report() {
    for backend in BACKENDS {
        let server = Serve::start();
        let process = start(&format!(
            "--backend {backend} -c 4 --warmup 10m {}",
            server.url("/")
        ));
        server.wait_for_requests(100);
        assert_nothing_measured(&interrupt(process));
    }
}

#[test]
fn during_set_up_there_is_nothing_to_report() {
    for backend in BACKENDS {
        let port = Port::full_after_one();
        let process = start(&format!(
            "--backend {backend} -t 1 -c 4 --connect-timeout 10m http://{}/",
            port.address
        ));
        port.wait_until_full();
        assert_nothing_measured(&interrupt(process));
    }
}

#[test]
fn a_run_without_a_report_leaves_no_file_behind() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("run.json");
    let server = Serve::start();
    let words = format!(
        "-c 4 --warmup 10m -o {} {}",
        path.display(),
        server.url("/")
    );
    let process = start(&words);
    server.wait_for_requests(100);
    assert_nothing_measured(&interrupt(process));
    assert!(!path.exists());
    std::fs::write(&path, "kept").expect("the directory is ours");
    let seen = server.counters().requests;
    let process = start(&words);
    server.wait_for_requests(seen + 100);
    assert_nothing_measured(&interrupt(process));
    assert_eq!(
        std::fs::read_to_string(&path).expect("it was there before"),
        "kept"
    );
}

#[test]
fn a_second_signal_quits_at_once() {
    for backend in BACKENDS {
        let server = Serve::start();
        let mut process = start(&format!(
            "--backend {backend} -c 4 -d 10m --warmup 0s -T 10m {}",
            server.url("/never")
        ));
        server.wait_for_requests(4);
        process.signal(Signal::INT);
        // The drain now waits for replies that do not come: up to ten minutes.
        let seen = Instant::now();
        while seen.elapsed() < Duration::from_millis(300) {
            assert!(process.is_running(), "{backend}: the first signal ended it");
            std::thread::sleep(Duration::from_millis(10));
        }
        let (outcome, took) = interrupt(process);
        assert_eq!(outcome.code, Some(130), "{backend}: {outcome:?}");
        assert_eq!(outcome.stdout, "", "{backend}");
        assert!(took < AT_ONCE, "{backend}: {took:?}");
    }
}

#[test]
fn the_server_ends_in_good_order() {
    for signal in [Signal::INT, Signal::TERM] {
        let (process, address) = Serve::start_alone();
        crate::support::http::get(address, "/bytes/5");
        process.signal(signal);
        let outcome = process.wait();
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(outcome.stderr, "");
    }
}
