//! What the options of the connections do, and the help.

use std::collections::BTreeSet;

use crate::support::process::{Process, binary, brunt_with, limited, refused};
use crate::support::recorder::Recorder;
use crate::support::run::{RunReport, run};
use crate::support::serve::{Serve, ServeUnix};
use crate::support::stored::Stored;

#[test]
fn through_a_unix_socket_on_both_sides() {
    let files = Stored::new();
    let server = ServeUnix::start(&files.place("brunt.sock"));
    let path = server.socket.display();
    for backend in crate::support::BACKENDS {
        let before = server.settled().requests;
        let report = run(&format!(
            "--backend {backend} -c 8 -n 1000 --unix-socket {path} http://localhost/bytes/10"
        ));
        let requests = report.requests();
        let counts = (requests.sent, requests.answered);
        assert_eq!(counts, (1_000, 1_000), "{backend}");
        assert_eq!(server.settled().requests - before, 1_000, "{backend}");
        let stored = report.at("/plan/target/unix_socket");
        assert_eq!(stored, path.to_string().as_str());
    }
}

/// New connections use one address while its ports last, or all that are given.
#[test]
fn connections_are_spread_over_the_source_addresses() {
    let two = "--source-address 127.0.0.5 --source-address 127.0.0.6";
    for (options, requests, expected) in [
        (
            format!("--backend uring -t 1 {two}"),
            8,
            &["127.0.0.5", "127.0.0.6"][..],
        ),
        (
            format!("--backend epoll -t 1 {two}"),
            8,
            &["127.0.0.5", "127.0.0.6"],
        ),
        (String::new(), 200, &["127.0.0.1"]),
    ] {
        let recorder = Recorder::start();
        let load = format!("-c 4 -n {requests} --no-keepalive {options}");
        let report = run(&format!("{load} {}", recorder.url("/")));
        assert_eq!(report.requests().answered, requests, "{options}");
        let peers = recorder.requests();
        let peers: BTreeSet<_> = peers
            .iter()
            .map(|request| request.from.to_string())
            .collect();
        assert_eq!(Vec::from_iter(peers), expected, "{options}");
    }
}

#[test]
fn the_longest_durations_are_taken_or_refused() {
    let server = Serve::start();
    for option in ["--duration", "--timeout", "--connect-timeout", "--drain"] {
        let url = server.url("/");
        let outcome = brunt_with(&["-c", "2", "-n", "10", option, "18446744073.7095s", &url]);
        assert!(matches!(outcome.code, Some(0 | 2)), "{option}: {outcome:?}");
        assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
    }
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
        let outcome = limited("ulimit -n 64", &words);
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
        assert!(report.at("/agents/0/evidence/server").is_object());
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
        let outcome = limited("ulimit -n 16", &words);
        refused(&outcome, remedy);
        let advises_another = outcome.stderr.contains("--backend uring");
        assert_eq!(advises_another, options.contains("epoll"), "{outcome:?}");
        let (_, advice) = outcome.stderr.split_once("`ulimit -n ").expect("an advice");
        let (needed, _) = advice.split_once('`').expect("its end");
        limited(&format!("ulimit -n {needed}"), &words).exits_unless_late(0);
    }
}

#[test]
fn without_a_url_it_loads_its_own_server() {
    for (options, protocol, is_secure) in [
        ("", "HTTP/1.1", false),
        ("--http3", "HTTP/3", true),
        ("--http2 --streams 5", "HTTP/2", false),
    ] {
        let report = run(&format!("-d 200ms --warmup 50ms -c 4 {options}"));
        assert!(report.flag("/agents/0/own_server"), "{options}");
        let negotiated = report.at("/agents/0/negotiated");
        assert_eq!(negotiated["protocol"], protocol, "{options}");
        assert_eq!(negotiated["tls"].is_object(), is_secure, "{options}");
        let requests = report.requests();
        assert!(requests.answered > 0, "{options}");
        assert_eq!(requests.answered, requests.sent, "{options}");
        // Of the workers' threads alone: the process held the server too.
        let cpu_ns = report.at("/summary/cpu_ns_per_reply").as_f64();
        assert!(cpu_ns.is_some_and(|ns| ns > 0.0), "{cpu_ns:?}");
    }
}

#[test]
fn help_and_version_go_to_standard_output_and_fit_the_terminal() {
    for (words, part) in [
        ("-h", "TLS, HTTP/2 and HTTP/3:"),
        ("--help", "SSLKEYLOGFILE"),
        ("--help", "--requests-per-connection"),
        ("serve --help", "/delay/TIME"),
        ("serve --help", "[default: 60s]"),
        ("report --help", "--format"),
        ("--version", env!("CARGO_PKG_VERSION")),
    ] {
        for columns in [80, 100] {
            let mut command = binary();
            command.args(words.split(' '));
            command.env("COLUMNS", columns.to_string());
            let outcome = Process::start(command).wait().exits(0);
            outcome.assert_prints(&[part]);
            assert_eq!(outcome.stderr, "", "{words}");
            for line in outcome.stdout.lines() {
                let fits = line.chars().count() <= columns;
                assert!(fits, "{words} in {columns} columns: {line}");
            }
        }
    }
}
