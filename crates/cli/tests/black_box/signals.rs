//! SIGINT, SIGTERM and SIGHUP: a full report of what was measured, or a quick end where there is
//! nothing to report, also while the server is silent.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::listener::Port;
use crate::support::process::{Outcome, Process, binary, start, start_with_hangup};
use crate::support::run::{RunReport, start_run};
use crate::support::serve::Serve;
use crate::support::stored::Stored;
use crate::support::{BACKENDS, at_once};

/// What "at once" may take on a loaded machine. Whatever is waited for here without a signal takes
/// ten minutes.
const AT_ONCE: Duration = Duration::from_secs(20);
/// Each ends a run.
const SIGNALS: [Signal; 3] = [Signal::INT, Signal::TERM, Signal::HUP];

/// Sends SIGINT and gives how the process ended, and how long that took.
fn interrupt(process: Process) -> (Outcome, Duration) {
    end_by(Signal::INT, process)
}

/// Sends the signal and gives how the process ended, and how long that took.
fn end_by(signal: Signal, process: Process) -> (Outcome, Duration) {
    let sent = Instant::now();
    process.signal(signal);
    (process.wait(), sent.elapsed())
}

/// Starts a run whose report is JSON, on standard output and in `file`, and which SIGHUP ends.
fn start_hanging(words: &str, file: &std::path::Path) -> Process {
    let mut command = binary();
    command.args(["--format", "json", "-q", "-o"]).arg(file);
    command.args(words.split_whitespace());
    start_with_hangup(&command)
}

/// Starts a run with `load` whose server has four requests and never answers.
fn start_silent(backend: &str, load: &str, file: &std::path::Path) -> (Serve, Process) {
    let server = Serve::start();
    let words = format!("--backend {backend} -c 4 -T 10m {load}");
    let process = start_hanging(&format!("{words} {}", server.url("/never")), file);
    server.wait_for_requests(4);
    (server, process)
}

/// Checks a full report in `file`, of a run in which four requests had no reply.
fn assert_reported(outcome: &Outcome, file: &std::path::Path) -> RunReport {
    assert_eq!(outcome.code, Some(130), "{outcome:?}");
    let text = std::fs::read_to_string(file).expect("a report");
    let report = RunReport::interrupted(&text);
    let requests = report.requests();
    assert_eq!((requests.sent, requests.in_flight), (4, 4), "{requests:?}");
    report
}

/// Waits until what was measured for `length` since now is over.
fn wait_out(length: Duration, process: &mut Process) {
    let since = Instant::now();
    while since.elapsed() < length {
        assert!(process.is_running(), "nothing ended it yet");
        std::thread::sleep(Duration::from_millis(10));
    }
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
fn a_run_by_number_of_requests_can_be_cut_off() {
    let server = Serve::start();
    let process = start_run(&format!("-c 4 -n 1000m {}", server.url("/")));
    server.wait_for_requests(100);
    let report = RunReport::of(process.wait_interrupted());
    assert!(report.flag("/agents/0/interrupted"));
    let requests = report.requests();
    assert_eq!(requests.sent, requests.answered);
    let unsent = report.number("/summary/requests/unsent");
    assert_eq!(requests.sent + unsent, 1_000_000_000);
}

#[test]
fn before_the_window_a_silent_server_holds_nothing_up() {
    let files = Stored::new();
    let file = files.place("run.json");
    for (backend, signal) in combinations() {
        let (_server, process) = start_silent(backend, "--warmup 10m", &file);
        assert_nothing_measured(&end_by(signal, process));

        let port = Port::full_after_one();
        let words = format!("--backend {backend} -t 1 -c 4 --connect-timeout 10m");
        let process = start_hanging(&format!("{words} http://{}/", port.address), &file);
        port.wait_until_full();
        assert_nothing_measured(&end_by(signal, process));
        assert!(!file.exists());
    }
}

#[test]
fn before_set_up_a_silent_server_holds_nothing_up() {
    let files = Stored::new();
    let file = files.place("run.json");
    // It does not even answer the handshake of the connection that is made before the run.
    let port = Port::full_after_one();
    let words = format!("-c 4 -k --connect-timeout 10m https://{}/", port.address);
    let process = start_hanging(&words, &file);
    port.wait_until_full();
    assert_nothing_measured(&interrupt(process));
    // Nor does the page with its count.
    let (server, page) = (Serve::start(), Port::full_after_one());
    let words = format!(
        "-c 4 --verify-url http://{}/ {}",
        page.address,
        server.url("/")
    );
    let process = start_hanging(&words, &file);
    page.wait_until_full();
    assert_nothing_measured(&interrupt(process));
    assert!(!file.exists());
}

#[test]
fn in_window_and_drain_a_silent_server_holds_up_no_report() {
    at_once(combinations(), |(backend, signal)| {
        let files = Stored::new();
        let file = files.place("run.json");
        for (load, waited_ms) in [("-d 10m --warmup 0s", 0), ("-d 300ms --warmup 0s", 400)] {
            let (_server, mut process) = start_silent(backend, load, &file);
            wait_out(Duration::from_millis(waited_ms), &mut process);
            let (outcome, took) = end_by(signal, process);
            assert!(took < AT_ONCE, "{backend}, {signal:?}: {took:?}");
            let report = assert_reported(&outcome, &file);
            let planned = report.at("/agents/0/clock/edges/measure_end_planned/ns");
            // In drain the window was over.
            assert_eq!(planned.is_null(), waited_ms == 0, "{load}: {planned}");
        }
    });
}

/// Each signal on each backend.
fn combinations() -> impl Iterator<Item = (&'static str, Signal)> {
    BACKENDS
        .into_iter()
        .flat_map(|backend| SIGNALS.map(|signal| (backend, signal)))
}

#[test]
fn a_run_without_a_report_leaves_no_file_behind() {
    let (server, files) = (Serve::start(), Stored::new());
    let path = files.place("run.json");
    let words = format!(
        "-c 4 --warmup 10m -o {} {}",
        path.display(),
        server.url("/")
    );
    let process = start(&words);
    server.wait_for_requests(100);
    assert_nothing_measured(&interrupt(process));
    assert!(!path.exists());
    files.write("run.json", "kept");
    let seen = server.counters().requests;
    let process = start(&words);
    server.wait_for_requests(seen + 100);
    assert_nothing_measured(&interrupt(process));
    assert_eq!(files.text("run.json"), "kept");
}

#[test]
fn a_second_signal_ends_it_at_once_with_a_report() {
    let files = Stored::new();
    let file = files.place("run.json");
    for (backend, signal) in combinations() {
        let (_server, process) = start_silent(backend, "-d 10m --warmup 0s", &file);
        process.signal(Signal::INT);
        // A signal that comes while the same one is pending is lost.
        process.wait_for_message("a second signal ends");
        let (outcome, took) = end_by(signal, process);
        assert!(took < AT_ONCE, "{backend}, {signal:?}: {took:?}");
        assert_reported(&outcome, &file);
    }
}

#[test]
fn the_server_ends_in_good_order() {
    for signal in SIGNALS {
        let (process, address) = Serve::start_alone();
        crate::support::http::get(address, "/bytes/5");
        process.signal(signal);
        let outcome = process.wait().exits(0);
        assert_eq!(outcome.stderr, "");
    }
}

#[test]
fn a_hang_up_that_is_ignored_ends_nothing() {
    let server = Serve::start();
    let mut command = std::process::Command::new("nohup");
    command.arg(binary().get_program());
    command.args(["-q", "-c", "4", "-d", "10m", "--warmup", "0s"]);
    command.arg(server.url("/"));
    let mut process = Process::start(command);
    server.wait_for_requests(100);
    process.signal(Signal::HUP);
    wait_out(Duration::from_millis(500), &mut process);
    let seen = server.counters().requests;
    server.wait_for_requests(seen + 100);
    assert_eq!(process.wait_interrupted().code, Some(130));
}

#[test]
fn an_overload_holds_up_no_signal() {
    for backend in BACKENDS {
        let server = Serve::start();
        let words = format!("--backend {backend} -t 1 -c 4 -r 10m -d 10m --warmup 0s -q");
        let process = start_run(&format!("{words} {}", server.url("/")));
        server.wait_for_requests(100);
        let (outcome, took) = interrupt(process);
        assert!(took < AT_ONCE, "{backend}: {took:?}");
        let report = RunReport::of(outcome);
        let arrivals = report.arrivals();
        assert!(
            arrivals.skipped + arrivals.unsent > arrivals.sent,
            "{arrivals:?}"
        );
    }
}
