//! Runs in HTTP/3 against servers that others wrote: what brunt counts is what they log.

use crate::loads::MACHINERIES;
use crate::support::aioquic::Aioquic;
use crate::support::caddy::Caddy;
use crate::support::certificates::Authority;
use crate::support::process::{brunt, refused};
use crate::support::run::{RunReport, run};

const LOGGED: &str = "HTTP/3.0";

/// Every request was answered by this status, over connections with a handshake each.
fn all_answered(report: &RunReport, status: &str) -> u64 {
    let requests = report.requests();
    assert_eq!(requests.answered, requests.sent, "{requests:?}");
    assert!(report.failures().is_empty(), "{:?}", report.failures());
    assert_eq!(
        report.statuses(),
        [(status.to_owned(), requests.sent)].into()
    );
    assert_eq!(report.at("/agents/0/negotiated/protocol"), "HTTP/3");
    let handshakes = report.total("handshakes_full") + report.total("handshakes_resumed");
    assert_eq!(handshakes, report.total("connections_opened"));
    assert_eq!(report.number("/latencies/tls/count"), handshakes);
    requests.sent
}

#[test]
fn caddy_logs_what_brunt_counts() {
    let authority = Authority::new();
    let caddy = Caddy::start(|address| authority.server(address));
    for machinery in MACHINERIES {
        for (options, status) in [
            ("-c 4 --streams 10 -n 1000", "200"),
            ("-c 4 -d 200ms --warmup 50ms", "200"),
            ("-c 2 -n 300 -m HEAD", "200"),
            ("-c 2 -n 100 -m POST -b @src/main.rs --streams 4", "200"),
            ("-c 4 -n 40 --no-keepalive", "200"),
            ("-c 4 -n 200 --requests-per-connection 7 --streams 3", "200"),
            ("-c 4 --rate 500 -d 300ms --streams 4", "200"),
            (
                "--connection-rate 100 -d 300ms --requests-per-connection 2",
                "200",
            ),
        ] {
            let before = caddy.logged(LOGGED);
            let load = format!("{} --http3 {options}", authority.trusted());
            let report = machinery.run(&load, &caddy.url());
            let answered = all_answered(&report, status);
            caddy.wait_until_logged(LOGGED, before + answered);
        }
    }
}

#[test]
fn what_cannot_be_is_said_before_a_run() {
    let authority = Authority::new();
    let caddy = Caddy::start(|address| authority.server(address));
    let url = caddy.url();
    for (load, expected) in [
        (format!("--http3 {url}"), "UnknownIssuer"),
        (
            "--http3 http://127.0.0.1:9/".to_owned(),
            "give an https URL",
        ),
        (
            format!("{} --http3 --tls-max 1.2 {url}", authority.trusted()),
            "QUIC needs TLS 1.3",
        ),
    ] {
        let outcome = brunt(&format!("-n 10 {load}"));
        refused(&outcome, expected);
    }
}

#[test]
fn aioquic_answers_what_brunt_asks() {
    const MEGABYTE: u64 = 1_000_000;
    let authority = Authority::new();
    let server = Aioquic::start(|address| authority.server(address));
    let megabyte = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(megabyte.path(), vec![b'x'; MEGABYTE as usize]).expect("the file is ours");
    let call = "-H content-type:application/grpc";
    let upload = format!("-m POST -b @{}", megabyte.path().display());
    for (options, path, logged, status, body_bytes) in [
        ("", "/", "GET / 0", "200", 6),
        (upload.as_str(), "/", "POST / 1000000", "200", 6),
        ("-m HEAD", "/", "HEAD / 0", "200", 0),
        ("", "/missing", "GET /missing 0", "404", 16),
        ("", "/trailers", "GET /trailers 0", "200", 6),
        (call, "/call", "GET /call 0", "200", 6),
        ("", "/early", "GET /early 0", "200", 6),
        ("", "/large", "GET /large 0", "200", MEGABYTE),
        ("", "/empty", "GET /empty 0", "200", 0),
    ] {
        for (backend, requests) in [("uring", 8), ("epoll", 6)] {
            let load = format!("-c 2 --streams 2 -n {requests} --backend {backend} {options}");
            let before = server.answered(logged);
            let words = format!(
                "{} --http3 {load} {}",
                authority.trusted(),
                server.url(path)
            );
            let report = run(&words);
            assert_eq!(all_answered(&report, status), requests, "{words}");
            let answered = server.answered(logged) - before;
            // The connection before the run asks for nothing.
            assert_eq!(answered, requests, "{words}");
            // The heads of frames, and trailers.
            let framing = report.total("reply_body_bytes") - body_bytes * requests;
            assert!(framing <= 32 * requests, "{words}: {framing}");
        }
    }
    let load = format!("{} --http3 -c 2 -n 8 {call}", authority.trusted());
    for path in ["/trailers", "/"] {
        let report = run(&format!("{load} {}", server.url(path)));
        assert_eq!(report.failures(), [("call_no_status".to_owned(), 8)].into());
        assert_eq!(report.requests().answered, 0, "{path}");
    }
}

#[test]
fn a_server_that_goes_away_gracefully_breaks_no_invariant() {
    let authority = Authority::new();
    let server = Aioquic::start(|address| authority.server(address));
    let url = server.url("/graceful");
    let load = "--http3 -c 2 -n 64 --warmup 0s";
    let report = run(&format!("{} {load} {url}", authority.trusted()));
    assert_eq!(all_answered(&report, "200"), 64);
    let goaways = report.total("goaways");
    assert!(
        (4..=report.total("connections_opened")).contains(&goaways),
        "{goaways}"
    );
    assert_eq!(report.broken(), [""; 0]);
}

#[test]
fn a_server_that_withholds_a_byte_is_named() {
    let authority = Authority::new();
    let server = Aioquic::start(|address| authority.server(address));
    let url = server.url("/withheld");
    // Of so many connections each has a window of 4 MiB.
    let load = "--http3 -c 64 -n 1 -T 6s";
    let report = run(&format!("{} {load} {url}", authority.trusted()));
    assert_eq!(report.failures(), [("quic_withheld".to_owned(), 1)].into());
    assert_eq!(report.broken(), [""; 0]);
}
