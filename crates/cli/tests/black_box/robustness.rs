//! Servers that break the protocol, or the connection: the run completes, what failed is counted
//! under its kind, and memory stays bounded.

use std::collections::BTreeSet;

use brunt_testkit::malformed;

use crate::support::BACKENDS;
use crate::support::listener::Port;
use crate::support::malformed::MalformedServer;
use crate::support::process::brunt;
use crate::support::run::{RunReport, run, that_sends};

/// Far above what these runs need, and far below what an endless reply would take.
const MEMORY_BYTES_MAX: u64 = 64 << 20;

/// Every kind of `/malformed/KIND` over HTTP/2, and how its requests fail.
const MALFORMED_HTTP2: &[(&str, &str)] = &[
    ("empty", "closed_before_reply"),
    ("garbage", "http2_error"),
    ("bad-status", "malformed_head"),
    ("bad-field", "malformed_head"),
    ("nul-in-field", "malformed_head"),
    ("half-head", "closed_before_reply"),
    ("bad-content-length", "bad_content_length"),
    ("negative-content-length", "bad_content_length"),
    ("huge-content-length", "bad_content_length"),
    ("two-lengths", "bad_content_length"),
    ("body-in-204", "long_body"),
    ("unasked-upgrade", "bad_interim"),
    // The answer is whole: what comes on a stream that has ended is dropped.
    ("extra-bytes", ""),
    ("short-length", "long_body"),
    ("short-body", "truncated_body"),
    ("too-many-fields", "http2_error"),
    ("large-head", "http2_error"),
    ("endless-head", "http2_error"),
    ("endless-interim", "bad_interim"),
    ("bad-hpack", "http2_error"),
    ("bad-huffman", "http2_error"),
    ("no-status", "malformed_head"),
    ("two-statuses", "malformed_head"),
    ("late-status", "malformed_head"),
    ("connection-field", "malformed_head"),
    ("ending-interim", "bad_interim"),
    ("data-first", "malformed_head"),
    ("idle-stream", "http2_error"),
    ("even-stream", "http2_error"),
    ("stream-zero", "http2_error"),
    ("large-frame", "http2_error"),
    ("bad-padding", "http2_error"),
    ("push", "http2_error"),
    ("lone-continuation", "http2_error"),
    ("cut-head", "http2_error"),
    ("bad-settings", "http2_error"),
    ("huge-window", "http2_error"),
    ("zero-increment", "http2_error"),
    ("window-overflow", "http2_error"),
    ("growing-goaway", "http2_error"),
    ("endless-settings", "timed_out"),
    ("endless-pings", "timed_out"),
    ("endless-empty-data", "timed_out"),
];

/// Every kind of `/malformed/KIND` over HTTP/3, and how its requests fail.
const MALFORMED_HTTP3: &[(&str, &str)] = &[
    ("empty", "http3_closed_no_error"),
    ("garbage", "http3_error"),
    ("bad-status", "malformed_head"),
    ("bad-field", "malformed_head"),
    ("nul-in-field", "malformed_head"),
    ("half-head", "http3_error"),
    ("bad-content-length", "bad_content_length"),
    ("negative-content-length", "bad_content_length"),
    ("huge-content-length", "bad_content_length"),
    ("two-lengths", "bad_content_length"),
    ("body-in-204", "long_body"),
    ("unasked-upgrade", "bad_interim"),
    ("extra-bytes", "http3_error"),
    ("short-length", "long_body"),
    ("short-body", "truncated_body"),
    ("too-many-fields", "head_too_large"),
    ("large-head", "head_too_large"),
    ("endless-head", "head_too_large"),
    ("endless-interim", "bad_interim"),
    ("bad-huffman", "http3_error"),
    ("no-status", "malformed_head"),
    ("two-statuses", "malformed_head"),
    ("late-status", "malformed_head"),
    ("connection-field", "malformed_head"),
    ("ending-interim", "truncated_head"),
    ("data-first", "http3_error"),
    ("push", "http3_error"),
    ("bad-settings", "http3_error"),
    ("growing-goaway", "http3_error"),
    ("endless-empty-data", "timed_out"),
    ("bad-qpack", "http3_error"),
    ("dynamic-table", "http3_error"),
    ("http2-frame", "http3_error"),
    ("stream-settings", "http3_error"),
    ("half-data", "http3_error"),
    ("huge-data", "timed_out"),
    ("endless-frames", "timed_out"),
    ("control-data", "http3_error"),
    ("bad-goaway", "http3_error"),
    ("cancelled-push", "http3_error"),
    ("large-push-id", "http3_error"),
    ("closed-control", "http3_error"),
    ("second-control", "http3_error"),
    ("push-stream", "http3_error"),
    ("encoder-insert", "http3_error"),
    ("decoder-acknowledges", "http3_error"),
];

/// Runs `load` against `url` on a backend, and checks what holds for every such run.
fn survive(backend: &str, url: &str, load: &str) -> RunReport {
    let words = format!("--backend {backend} -t 1 --warmup 0s {load} {url}");
    let report = that_sends(|| run(&words));
    let requests = report.requests();
    assert!(requests.sent > 0, "{url} on {backend}");
    let resident_bytes = report.number("/agents/0/host/peak_resident_bytes");
    assert!(
        (1..MEMORY_BYTES_MAX).contains(&resident_bytes),
        "{url} on {backend}: {resident_bytes} bytes of memory"
    );
    report
}

#[test]
fn every_kind_of_malformed_answer_is_in_a_table() {
    // Those of HTTP/1.1 are tested with the engine.
    for (table, names) in [MALFORMED_HTTP2, MALFORMED_HTTP3]
        .iter()
        .zip(&malformed::names()[1..])
    {
        let known: BTreeSet<_> = table.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(BTreeSet::from_iter(names.iter().copied()), known);
    }
}

#[test]
fn malformed_answers_over_http2_are_counted() {
    let server = MalformedServer::start();
    malformed_answers_of_streams_are_counted(&server, "--http2", MALFORMED_HTTP2);
}

#[test]
fn malformed_answers_over_http3_are_counted() {
    let server = MalformedServer::start_http3();
    malformed_answers_of_streams_are_counted(&server, "--http3 -k", MALFORMED_HTTP3);
}

fn malformed_answers_of_streams_are_counted(
    server: &MalformedServer,
    protocol: &str,
    table: &[(&str, &str)],
) {
    for (&(kind, expected), backend) in table.iter().zip(BACKENDS.into_iter().cycle()) {
        let path = format!("/malformed/{kind}");
        let timeout = if expected == "timed_out" {
            "-T 400ms"
        } else {
            ""
        };
        let load = format!("{protocol} -c 2 -d 50ms {timeout}");
        let report = survive(backend, &server.url(&path), &load);
        let (requests, failures) = (report.requests(), report.failures());
        let failed = if expected.is_empty() {
            0
        } else {
            requests.sent
        };
        assert_eq!(requests.failed, failed, "{kind} on {backend}: {requests:?}");
        let mut kinds: Vec<_> = failures.keys().map(String::as_str).collect();
        if ["endless-settings", "endless-pings"].contains(&kind) && kinds.contains(&"http2_error") {
            // The acknowledgements that nobody reads may reach their bound before the time is up,
            // on one of the connections or on both.
            kinds = vec![expected];
        }
        let expected = Some(expected).filter(|kind| !kind.is_empty());
        assert_eq!(kinds, Vec::from_iter(expected), "{kind} on {backend}");
    }
}

#[test]
fn malformed_answers_to_pipelined_requests_fail_all_of_them() {
    let server = MalformedServer::start();
    for backend in BACKENDS {
        let load = "-c 2 -d 100ms --pipeline 4";
        let report = survive(backend, &server.url("/malformed/garbage"), load);
        let (requests, failures) = (report.requests(), report.failures());
        assert_eq!((requests.answered, requests.in_flight), (0, 0), "{backend}");
        let first = failures["malformed_head"];
        assert_eq!(failures["unanswered"], 3 * first, "{backend}: {failures:?}");
    }
}

#[test]
fn a_server_that_takes_no_connection_ends_set_up_with_a_clear_message() {
    for backend in BACKENDS {
        let port = Port::full_after_one();
        let outcome = brunt(&format!(
            "--backend {backend} -t 1 -c 1000 http://{}/",
            port.address
        ))
        .exits(2);
        assert_eq!(outcome.stdout, "");
        let message = outcome.messages();
        let says = "brunt: none of the 1000 connections could be opened in set-up: ";
        assert!(message.starts_with(says), "{message}");
        assert!(message.contains("use fewer (-c)"), "{message}");
    }
}
