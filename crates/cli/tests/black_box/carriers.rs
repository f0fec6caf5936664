//! What carries the requests, HTTP/1.1 or HTTP/2, in clear text or over TLS, changes neither what
//! is counted nor what is known of times: against the reference server.

use brunt_server::Counters;
use tempfile::TempDir;

use crate::loads::{MACHINERIES, Machinery};
use crate::support::run::RunReport;
use crate::support::serve::Serve;
use crate::support::{at_once, wait_for};

const MS: u64 = 1_000_000;

/// What carries the requests.
#[derive(Clone, Copy, Debug)]
struct Carrier {
    http2: bool,
    tls: bool,
}

/// All but HTTP/1.1 in clear text, with which everything else is tested.
const CARRIERS: [Carrier; 3] = [
    Carrier {
        http2: true,
        tls: false,
    },
    Carrier {
        http2: false,
        tls: true,
    },
    Carrier {
        http2: true,
        tls: true,
    },
];

impl Carrier {
    /// A server, whose certificate, if it has one, lies in `directory`.
    fn start(self, directory: &TempDir, options: &[&str]) -> Serve {
        match self.tls {
            false => Serve::start_with(options),
            true => Serve::start_secure(&directory.path().join("certificate.pem"), options),
        }
    }

    fn options(self, server: &Serve) -> String {
        let forced = if self.http2 { "--http2" } else { "--http1" };
        match self.tls {
            false => forced.to_owned(),
            true => format!("{forced} --cacert {}", server.certificate().display()),
        }
    }

    fn run(self, machinery: Machinery, load: &str, path: &str, server: &Serve) -> RunReport {
        let load = format!("{} {load}", self.options(server));
        self.checked(machinery.run(&load, &server.url(path)))
    }

    fn checked(self, report: RunReport) -> RunReport {
        let protocol = if self.http2 { "HTTP/2" } else { "HTTP/1.1" };
        assert_eq!(report.at("/agents/0/negotiated/protocol"), protocol);
        assert_eq!(report.at("/agents/0/negotiated/tls").is_object(), self.tls);
        report
    }

    /// The option that lets a connection have `depth` requests in flight.
    fn depth(self, depth: u32) -> String {
        let option = if self.http2 { "streams" } else { "pipeline" };
        format!("--{option} {depth}")
    }
}

/// Runs the load that `load` gives on every carrier, backend and number of workers, each against a
/// new server.
fn compare(
    path: &str,
    load: impl Fn(Carrier) -> String + Sync,
    check: impl Fn(&RunReport, &Counters, Carrier) + Sync,
) {
    at_once(CARRIERS, |carrier| {
        for machinery in MACHINERIES {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let server = carrier.start(&directory, &[]);
            let report = carrier.run(machinery, &load(carrier), path, &server);
            check(&report, &agreed(carrier, &report, &server), carrier);
        }
    });
}

/// Compares the counts that must be equal whatever the load, and gives the server's.
fn agreed(carrier: Carrier, report: &RunReport, server: &Serve) -> Counters {
    // One more is the connection with which brunt found out what the server speaks. One that was
    // closed as soon as it was open may be open for one side of TLS alone.
    let opened = report.total("connections_opened") + 1;
    let seen = |counters: &Counters| {
        let accepted = counters.connections_accepted - counters.counters_requests;
        (accepted, accepted + counters.handshakes_failed)
    };
    let counters = wait_for("the server sees every connection", || {
        Some(server.settled()).filter(|counters| seen(counters).1 >= opened)
    });
    // Of those that were being opened when the run ended, the server may have seen any.
    let (accepted, seen) = seen(&counters);
    let connections = report.number("/plan/connections");
    assert!(
        seen <= opened + connections && counters.handshakes_failed <= connections,
        "{carrier:?}: {opened} opened, {counters:?}"
    );
    let requests = report.requests();
    let sends = requests.sent + report.total("sent_again");
    assert_eq!(sends, counters.requests, "{carrier:?}: requests");
    assert_eq!(requests.answered, counters.replies, "{carrier:?}: replies");
    let over_http2 = match carrier.http2 {
        true => opened.min(accepted)..=accepted,
        false => 0..=0,
    };
    let found = counters.connections_http2;
    assert!(over_http2.contains(&found), "{carrier:?}: {found}");
    let handshakes = report.total("handshakes_full");
    let expected = if carrier.tls { opened - 1 } else { 0 };
    assert_eq!(handshakes, expected, "{carrier:?}");
    counters
}

fn all_answered(report: &RunReport) -> u64 {
    let requests = report.requests();
    assert_eq!(requests.answered, requests.sent);
    assert!(report.failures().is_empty(), "{:?}", report.failures());
    requests.sent
}

#[test]
fn closed_loop_by_duration() {
    let load = |carrier: Carrier| format!("-c 8 {} -d 300ms --warmup 100ms", carrier.depth(4));
    compare("/bytes/1000", load, |report, counters, carrier| {
        let answered = all_answered(report);
        assert!(answered > 0);
        let of_replies = report.total("reply_head_bytes") + report.total("reply_body_bytes");
        if carrier.http2 {
            // Settings and the like are no part of replies.
            assert!(of_replies < counters.bytes_sent);
            assert!(of_replies > answered * 1_000);
        } else {
            assert_eq!(of_replies, counters.bytes_sent);
        }
    });
}

#[test]
fn statuses_are_those_that_the_server_sent() {
    let load = |carrier: Carrier| format!("-c 8 {} -n 300", carrier.depth(2));
    compare("/refuse-after/100", load, |report, counters, _| {
        let expected = [("200".to_owned(), 100), ("503".to_owned(), 200)];
        assert_eq!(report.statuses(), expected.into());
        assert_eq!(counters.replies_by_status, [(200, 100), (503, 200)].into());
    });
}

#[test]
fn requests_in_flight_at_the_end_are_named() {
    // What is pipelined behind a request without a reply is not read.
    let depth = |carrier: Carrier| if carrier.http2 { 3 } else { 1 };
    let load = |carrier: Carrier| {
        let depth = carrier.depth(depth(carrier));
        format!("-c 8 {depth} -d 200ms --warmup 0s -T 10m --drain 0s")
    };
    compare("/never", load, |report, counters, carrier| {
        let requests = report.requests();
        let places = 8 * u64::from(depth(carrier));
        assert_eq!((requests.sent, requests.in_flight), (places, places));
        assert_eq!(report.number("/summary/requests/censored"), places);
        assert_eq!(counters.faults, places);
    });
}

#[test]
fn requests_that_time_out() {
    let load = |_| "-c 4 -n 40 -T 100ms".to_owned();
    compare("/never", load, |report, counters, carrier| {
        let requests = report.requests();
        assert_eq!((requests.sent, requests.failed), (40, 40));
        assert_eq!(report.failures(), [("timed_out".to_owned(), 40)].into());
        // Streams are given up one by one, unless nothing at all is heard of the server.
        let given_up = counters.streams_cancelled;
        assert!(given_up <= if carrier.http2 { 40 } else { 0 }, "{given_up}");
    });
}

#[test]
fn cut_off_by_a_signal() {
    for carrier in CARRIERS {
        for machinery in MACHINERIES {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let server = carrier.start(&directory, &[]);
            let load = format!("{} -c 4 {}", carrier.options(&server), carrier.depth(8));
            let report = machinery.run_interrupted(&load, &server.url("/"), || {
                server.wait_for_requests(500);
            });
            let report = carrier.checked(report);
            agreed(carrier, &report, &server);
            assert!(all_answered(&report) >= 500);
        }
    }
}

#[test]
fn a_silence_is_seen_by_all_that_was_due_in_it() {
    // Of the requests due in a second, evenly, the share (silence - x) / period waits for longer
    // than x: a loaded machine makes some wait longer, and none shorter.
    let truth_ns = 90 * MS;
    at_once(CARRIERS, |carrier| {
        for machinery in &MACHINERIES[..2] {
            let directory = tempfile::tempdir().expect("a temporary directory");
            let server = carrier.start(&directory, &[]);
            let load = "-r 1000 -c 10 -d 2s --warmup 0s";
            let report = carrier.run(*machinery, load, "/stall/100ms/1s", &server);
            assert_eq!(all_answered(&report), 2_000);
            let found_ns = report.number("/summary/response/p99_ns");
            assert!(
                found_ns >= truth_ns * 95 / 100,
                "{carrier:?} {machinery:?}: {found_ns}"
            );
        }
    });
}
