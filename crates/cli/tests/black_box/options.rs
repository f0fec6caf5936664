//! What the options of the request and of the connections do on the wire.

use std::collections::BTreeSet;

use crate::support::process::{Outcome, Process, binary, brunt_with, refused};
use crate::support::recorder::{Recorder, one_request};
use crate::support::run::{RunReport, run};
use crate::support::serve::{Serve, ServeUnix};

#[test]
fn a_plain_request() {
    let request = one_request(&[]);
    let (head, body) = request.split_once("\r\n\r\n").expect("a whole head");
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some("GET /path?query=1 HTTP/1.1"));
    let fields: Vec<_> = lines.collect();
    let hosts = fields
        .iter()
        .filter(|field| field.starts_with("Host: 127."));
    assert_eq!(hosts.count(), 1, "{head}");
    assert_eq!(body, "");
}

#[test]
fn a_body_as_text_makes_it_a_post() {
    let request = one_request(&["--body", "some text"]);
    assert!(
        request.starts_with("POST /path?query=1 HTTP/1.1\r\n"),
        "{request}"
    );
    assert!(request.contains("\r\nContent-Length: 9\r\n"), "{request}");
    assert!(request.ends_with("\r\n\r\nsome text"), "{request}");
}

#[test]
fn an_empty_body_has_a_length() {
    let request = one_request(&["--body", ""]);
    assert!(request.starts_with("POST "), "{request}");
    assert!(request.contains("\r\nContent-Length: 0\r\n"), "{request}");
}

#[test]
fn headers_are_added_and_replace_ours() {
    let request = one_request(&[
        "-H",
        "host: other.example",
        "-H",
        "X-One: 1",
        "-H",
        "X-Two:2",
        "-H",
        "User-Agent: mine",
    ]);
    let lower = request.to_lowercase();
    assert!(lower.contains("\r\nhost: other.example\r\n"), "{request}");
    assert_eq!(lower.matches("\r\nhost:").count(), 1, "{request}");
    assert_eq!(lower.matches("\r\nuser-agent:").count(), 1, "{request}");
    assert!(lower.contains("\r\nuser-agent: mine\r\n"), "{request}");
    assert!(lower.contains("\r\nx-one: 1\r\n"), "{request}");
    assert!(lower.contains("\r\nx-two: 2\r\n"), "{request}");
}

#[test]
fn without_keepalive_the_server_is_told() {
    let request = one_request(&["--no-keepalive"]).to_lowercase();
    assert!(request.contains("\r\nconnection: close\r\n"), "{request}");
}

#[test]
fn bodies_arrive_whole() {
    let server = Serve::start();
    let url = server.url("/");
    let body = "0123456789".repeat(2_000);
    let arguments = [
        "--format", "json", "-n", "200", "-c", "4", "-b", &body, &url,
    ];
    let report = RunReport::of(brunt_with(&arguments));
    assert_eq!(report.requests().answered, 200);
    let counters = server.settled();
    assert_eq!(
        counters.requests_by_method,
        [("POST".to_owned(), 200)].into()
    );
    assert_eq!(
        counters.bytes_received,
        200 * report.number("/agents/0/negotiated/request_bytes")
    );
    assert!(report.number("/agents/0/negotiated/request_bytes") > 20_000);
}

#[test]
fn through_a_unix_socket_on_both_sides() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let socket = directory.path().join("brunt.sock");
    let server = ServeUnix::start(&socket);
    let path = server.socket.display();
    for backend in crate::support::BACKENDS {
        let before = server.settled().requests;
        let report = run(&format!(
            "--backend {backend} -c 8 -n 1000 --unix-socket {path} http://localhost/bytes/10"
        ));
        let requests = report.requests();
        assert_eq!(
            (requests.sent, requests.answered),
            (1_000, 1_000),
            "{backend}"
        );
        assert_eq!(server.settled().requests - before, 1_000, "{backend}");
        assert_eq!(
            report.at("/plan/target/unix_socket"),
            path.to_string().as_str()
        );
    }
}

#[test]
fn connections_are_spread_over_the_source_addresses() {
    for backend in crate::support::BACKENDS {
        let recorder = Recorder::start();
        let report = run(&format!(
            "--backend {backend} -t 1 -c 4 -n 8 --no-keepalive \
             --source-address 127.0.0.5 --source-address 127.0.0.6 {}",
            recorder.url("/")
        ));
        assert_eq!(report.requests().answered, 8, "{backend}");
        let peers: BTreeSet<_> = recorder
            .requests()
            .iter()
            .map(|request| request.from.to_string())
            .collect();
        assert_eq!(
            Vec::from_iter(peers),
            ["127.0.0.5", "127.0.0.6"],
            "{backend}"
        );
    }
}

#[test]
fn the_longest_durations_are_taken_or_refused() {
    let server = Serve::start();
    for option in ["--duration", "--timeout", "--connect-timeout", "--drain"] {
        let url = server.url("/");
        let outcome = brunt_with(&["-c", "2", "-n", "10", option, "18446744073.7095s", &url]);
        assert!(matches!(outcome.code, Some(0 | 2)), "{option}: {outcome:?}");
        assert!(
            !outcome.stderr.contains("panicked"),
            "{option}: {outcome:?}"
        );
    }
}

#[test]
fn a_url_without_a_scheme_is_http() {
    let server = Serve::start();
    let url = server.url("/bytes/10");
    let bare = url.strip_prefix("http://").expect("that is how it begins");
    let report = run(&format!("-c 2 -n 20 {bare}"));
    assert_eq!(report.requests().answered, 20);
    assert_eq!(report.at("/plan/target/url"), url.as_str());
}

#[test]
fn a_name_is_resolved() {
    let server = Serve::start();
    let url = server.url("/").replace("127.0.0.1", "localhost");
    let report = run(&format!("-c 2 -n 20 {url}"));
    assert_eq!(report.requests().answered, 20);
    assert_eq!(report.at("/plan/target/url"), url.as_str());
}

/// Runs the binary with the blank-separated `words` where it may have `most` descriptors.
fn brunt_with_descriptors(most: u64, words: &str) -> Outcome {
    let binary = env!("CARGO_BIN_EXE_brunt");
    let script = format!("ulimit -n {most}; exec '{binary}' {words}");
    let mut command = std::process::Command::new("sh");
    command.arg("-c").arg(script);
    Process::start(command).wait()
}

#[test]
fn few_descriptors_are_enough_for_few_connections() {
    let server = Serve::start();
    for options in [
        "--backend uring -t 1 -c 1",
        "--backend epoll -t 1 -c 1",
        "--backend uring -t 1 -c 500",
        "--backend uring -t 2 --oversubscribe -c 500",
        "--backend epoll -t 1 -c 20 --no-keepalive",
    ] {
        let words = format!(
            "--format json {options} -d 300ms --warmup 0s {}",
            server.url("/")
        );
        let outcome = brunt_with_descriptors(64, &words);
        if outcome.code == Some(2) {
            // Where io_uring is refused, epoll stands in, and needs one for each connection.
            assert!(options.contains("-c 500"), "{options}: {outcome:?}");
            assert!(!outcome.stderr.contains("--backend"), "{outcome:?}");
            continue;
        }
        let report = RunReport::of(outcome);
        assert!(report.requests().answered > 0, "{options}");
        assert_eq!(report.requests().failed, 0, "{options}");
        let missing = report.at("/agents/0/evidence/missing").to_string();
        assert!(!missing.contains("open files"), "{options}: {missing}");
        assert!(
            report.at("/agents/0/evidence/server").is_object(),
            "{options}"
        );
    }
}

#[test]
fn the_descriptors_that_are_asked_for_are_enough() {
    let server = Serve::start();
    for (options, remedy) in [
        ("--backend uring -t 1 -c 1", "fewer connections (-c)"),
        ("--backend epoll -t 1 -c 100", "fewer connections (-c)"),
    ] {
        let words = format!("-n 1000 {options} {}", server.url("/"));
        let outcome = brunt_with_descriptors(16, &words);
        refused(&outcome, remedy);
        let advises_another = outcome.stderr.contains("--backend uring");
        assert_eq!(advises_another, options.contains("epoll"), "{outcome:?}");
        let (_, advice) = outcome.stderr.split_once("`ulimit -n ").expect("an advice");
        let (needed, _) = advice.split_once('`').expect("its end");
        let outcome = brunt_with_descriptors(needed.parse().expect("a number"), &words);
        assert_eq!(outcome.code, Some(0), "{options}: {outcome:?}");
    }
}

#[test]
fn new_connections_use_one_address_while_its_ports_last() {
    let recorder = Recorder::start();
    let report = run(&format!("-c 4 -n 200 --no-keepalive {}", recorder.url("/")));
    assert_eq!(report.requests().answered, 200);
    assert_eq!(
        report.at("/agents/0/source_addresses"),
        &serde_json::json!([])
    );
    let peers: BTreeSet<_> = recorder
        .requests()
        .iter()
        .map(|request| request.from.to_string())
        .collect();
    assert_eq!(Vec::from_iter(peers), ["127.0.0.1"]);
}

#[test]
fn without_a_url_it_loads_its_own_server() {
    let report = run("-d 200ms --warmup 50ms -c 4");
    assert!(report.flag("/agents/0/own_server"));
    let requests = report.requests();
    assert!(requests.answered > 0);
    assert_eq!(requests.answered, requests.sent);
    // Of the workers' threads alone: the process held the server too.
    let cpu_ns = report.at("/summary/cpu_ns_per_reply").as_f64();
    assert!(cpu_ns.is_some_and(|ns| ns > 0.0), "{cpu_ns:?}");
}

#[test]
fn its_own_server_speaks_tls_and_http2() {
    for (options, protocol, secure) in [
        ("--http3", "HTTP/3", true),
        ("--http2 --streams 5", "HTTP/2", false),
    ] {
        let report = run(&format!("-d 200ms --warmup 50ms -c 4 {options}"));
        assert!(report.flag("/agents/0/own_server"), "{options}");
        assert_eq!(
            report.at("/agents/0/negotiated/protocol"),
            protocol,
            "{options}"
        );
        assert_eq!(
            report.at("/agents/0/negotiated/tls").is_object(),
            secure,
            "{options}"
        );
        let requests = report.requests();
        assert!(requests.answered > 0, "{options}");
        assert_eq!(requests.answered, requests.sent, "{options}");
    }
}

#[test]
fn help_fits_the_terminal() {
    for columns in [80, 100] {
        for words in ["-h", "--help", "serve --help", "report --help"] {
            let mut command = binary();
            command
                .args(words.split(' '))
                .env("COLUMNS", columns.to_string());
            let outcome = Process::start(command).wait();
            assert_eq!(outcome.code, Some(0), "{words}");
            for line in outcome.stdout.lines() {
                let fits = line.chars().count() <= columns;
                assert!(fits, "{words} in {columns} columns: {line}");
            }
        }
    }
}

#[test]
fn help_and_version_go_to_standard_output() {
    for (words, part) in [
        ("-h", "TLS, HTTP/2 and HTTP/3:"),
        ("--help", "SSLKEYLOGFILE"),
        ("--help", "--requests-per-connection"),
        ("serve --help", "/delay/TIME"),
        ("report --help", "--format"),
        ("--version", env!("CARGO_PKG_VERSION")),
    ] {
        let mut command = binary();
        command.args(words.split(' '));
        let outcome = Process::start(command).wait();
        assert_eq!(outcome.code, Some(0), "{words}");
        assert!(outcome.stdout.contains(part), "{words}: {}", outcome.stdout);
        assert_eq!(outcome.stderr, "", "{words}");
    }
}
