//! Servers that break the protocol, or the connection: the run completes, what failed is counted
//! under its kind, and memory stays bounded.

use std::collections::BTreeSet;

use brunt_testkit::malformed;

use crate::support::BACKENDS;
use crate::support::listener::Port;
use crate::support::malformed::MalformedServer;
use crate::support::process::brunt;
use crate::support::run::{RunReport, run};

/// Far above what these runs need, and far below what an endless reply would take.
const MEMORY_BYTES_MAX: u64 = 64 << 20;

/// How requests fail, and every kind of `/malformed/KIND` over HTTP/2 that has them fail so.
const MALFORMED_HTTP2: &[(&str, &str)] = &[
    ("closed_before_reply", "empty half-head"),
    (
        "http2_error",
        "garbage too-many-fields large-head endless-head bad-hpack bad-huffman idle-stream \
         even-stream stream-zero large-frame bad-padding push lone-continuation cut-head \
         bad-settings huge-window zero-increment window-overflow growing-goaway",
    ),
    (
        "malformed_head",
        "bad-status bad-field nul-in-field no-status two-statuses late-status \
         connection-field data-first",
    ),
    (
        "bad_content_length",
        "bad-content-length negative-content-length huge-content-length two-lengths",
    ),
    ("long_body", "body-in-204 short-length"),
    (
        "bad_interim",
        "unasked-upgrade endless-interim ending-interim",
    ),
    // The answer is whole: what comes on a stream that has ended is dropped.
    ("", "extra-bytes"),
    ("truncated_body", "short-body"),
    (
        "timed_out",
        "endless-settings endless-pings endless-empty-data",
    ),
];

/// How requests fail, and every kind of `/malformed/KIND` over HTTP/3 that has them fail so.
const MALFORMED_HTTP3: &[(&str, &str)] = &[
    ("http3_closed_no_error", "empty"),
    (
        "http3_error",
        "garbage half-head extra-bytes bad-huffman data-first push bad-settings \
         growing-goaway bad-qpack dynamic-table http2-frame stream-settings half-data \
         control-data bad-goaway cancelled-push large-push-id closed-control second-control \
         push-stream encoder-insert decoder-acknowledges",
    ),
    (
        "malformed_head",
        "bad-status bad-field nul-in-field no-status two-statuses late-status \
         connection-field",
    ),
    (
        "bad_content_length",
        "bad-content-length negative-content-length huge-content-length two-lengths",
    ),
    ("long_body", "body-in-204 short-length"),
    ("bad_interim", "unasked-upgrade endless-interim"),
    ("truncated_body", "short-body"),
    ("head_too_large", "too-many-fields large-head endless-head"),
    ("truncated_head", "ending-interim"),
    ("timed_out", "endless-empty-data huge-data endless-frames"),
];

/// Each kind of a table, and how its requests fail.
fn kinds_of(
    table: &'static [(&'static str, &'static str)],
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let rows = table.iter();
    rows.flat_map(|&(failure, kinds)| kinds.split(' ').map(move |kind| (kind, failure)))
}

/// Runs `load` against `url` on a backend, and checks what holds for every such run.
fn survive(backend: &str, url: &str, load: &str) -> RunReport {
    let words = format!("--backend {backend} -t 1 --warmup 0s {load} {url}");
    let report = run(&words);
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
        let known: BTreeSet<_> = kinds_of(table).map(|(kind, _)| kind).collect();
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
    table: &'static [(&'static str, &'static str)],
) {
    for ((kind, expected), backend) in kinds_of(table).zip(BACKENDS.into_iter().cycle()) {
        let path = format!("/malformed/{kind}");
        let timeout = if expected == "timed_out" {
            "-T 400ms"
        } else {
            ""
        };
        let load = format!("{protocol} -c 2 -d 150ms {timeout}");
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
