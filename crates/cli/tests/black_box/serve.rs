//! The options of `brunt serve`.

use crate::support::process::brunt;
use crate::support::serve::{Serve, ServeTcp};

#[test]
fn there_is_no_simulated_server() {
    let help = brunt("serve --help");
    assert_eq!(help.code, Some(0));
    assert!(help.stdout.contains("epoll"), "{}", help.stdout);
    assert!(!help.stdout.contains("sim"), "{}", help.stdout);
    let refused = brunt("serve --backend sim");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("auto, uring, epoll"), "{refused:?}");
}

#[test]
fn its_limits_are_said_and_can_be_set() {
    let help = brunt("serve --help").stdout;
    assert!(
        help.contains("--idle-timeout") && help.contains("[default: 60s]"),
        "{help}"
    );
    assert!(help.contains("--input-max"), "{help}");
    assert!(help.contains("--output-max"), "{help}");
    let server = Serve::start_with(&[
        "--idle-timeout",
        "200ms",
        "--input-max",
        "20m",
        "--output-max",
        "20m",
    ]);
    let url = server.url("");
    let address = url.strip_prefix("http://").expect("clear text");
    let mut silent = std::net::TcpStream::connect(address).expect("it listens");
    let mut nothing = Vec::new();
    std::io::Read::read_to_end(&mut silent, &mut nothing).expect("it is closed");
    assert_eq!(nothing, b"");
    assert_eq!(server.counters().connections_timed_out, 1);
}

/// As many as there are slots for handshakes.
const SILENT: usize = 1_024;

#[test]
fn clients_that_say_nothing_leave_room_for_a_handshake() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = Serve::start_secure(&directory.path().join("server.pem"), &[]);
    let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let limits = rustix::process::Rlimit {
        current: limits.maximum,
        ..limits
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limits).expect("up to the hard");
    let url = server.url("");
    let address = url.strip_prefix("https://").expect("TLS");
    let silent: Vec<_> = (0..SILENT)
        .map(|_| std::net::TcpStream::connect(address).expect("it listens"))
        .collect();
    // Some of them have made room by now, and not all by the limit of a handshake.
    let counters = server.counters();
    assert!(counters.handshakes_failed < SILENT as u64, "{counters:?}");
    drop(silent);
}

#[test]
fn it_tells_how_late_its_delayed_answers_were() {
    for options in [&["--spin"][..], &[]] {
        let server = Serve::start_with(options);
        assert_eq!(server.counters().lateness_ns_max, None);
        for path in ["/delay/1ms", "/delay/1.5ms", "/"] {
            assert_eq!(server.get(path), "");
        }
        let counters = server.counters();
        assert_eq!((counters.replies, counters.replies_delayed), (3, 2));
        assert!(counters.lateness_ns_mean.is_some());
        assert!(counters.lateness_ns_mean <= counters.lateness_ns_max);
    }
}

#[test]
fn a_certificate_is_written_for_clients() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("server.pem");
    let server = Serve::start_secure(&path, &["--alpn", "http/1.1"]);
    assert!(server.url("/").starts_with("https://127.0.0.1:"));
    let pem = std::fs::read_to_string(&path).expect("the certificate");
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----\n"), "{pem}");
    assert_eq!(pem.matches("BEGIN").count(), 1, "{pem}");
}

#[test]
fn what_tls_cannot_be_spoken_with_is_said() {
    for (options, code, words) in [
        ("--cert /dev/null", 2, "--tls"),
        ("--tls --key /dev/null", 2, "--cert"),
        ("--tls --cert /nonexistent", 2, "cannot read /nonexistent"),
        ("--tls --cert /dev/null", 2, "no certificate in PEM"),
        ("--tls --client-ca /dev/null", 2, "no certificate in PEM"),
        ("--tls --tls-min 1.3 --tls-max 1.2", 2, "newer than"),
        (
            "--tls --cert-out /nonexistent/x",
            2,
            "cannot write /nonexistent/x",
        ),
        ("--h2-streams 0", 2, "0"),
    ] {
        let refused = brunt(&format!("serve --listen 127.0.0.1:0 {options}"));
        assert_eq!(refused.code, Some(code), "{options}: {refused:?}");
        assert!(refused.stderr.contains(words), "{options}: {refused:?}");
    }
}

#[test]
fn raw_tcp_is_served_beside_http() {
    let server = ServeTcp::start("reply=line:PONG\\r\\n", &["--tcp-fault", "close/2"]);
    let mut stream = std::net::TcpStream::connect(server.address).expect("it listens");
    std::io::Write::write_all(&mut stream, b"PING\r\nPING\r\n").expect("it reads");
    let mut received = String::new();
    std::io::Read::read_to_string(&mut stream, &mut received).expect("it answers");
    assert_eq!(received, "PONG\r\nPONG\r\n");
    let counters = server.settled();
    assert_eq!((counters.messages, counters.replies), (2, 2));
    assert_eq!((counters.bytes_received, counters.bytes_sent), (12, 12));
    assert_eq!(counters.faults_by_kind["close"], 1);
}

#[test]
fn what_raw_tcp_cannot_be_is_said() {
    for (options, words) in [
        ("--tcp-delay 1ms", "--tcp"),
        ("--tcp drain", "none of echo, echo=FRAMING"),
        ("--tcp reply=line", "has no reply"),
        ("--tcp reply=lines:1", "`lines` is no framing"),
        ("--tcp sink --tcp-delay 1ms", "a delay is one of answers"),
        (
            "--tcp source --tcp-fault cut/1",
            "write one of close, reset, silent",
        ),
        ("--tcp echo --tcp-stall 1s", "no SILENCE/PERIOD"),
        (
            "--tcp echo --tcp-listen here",
            "--tcp-listen here: write IP:PORT",
        ),
        (
            "--tcp echo --tcp-listen 192.0.2.1:1",
            "cannot listen on 192.0.2.1:1",
        ),
    ] {
        let refused = brunt(&format!("serve --listen 127.0.0.1:0 {options}"));
        assert_eq!(refused.code, Some(2), "{options}: {refused:?}");
        assert!(refused.stderr.contains(words), "{options}: {refused:?}");
    }
}
