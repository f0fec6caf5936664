//! The options of `brunt serve`.

use std::net::TcpStream;

use crate::support::foreign::free_address;
use crate::support::process::{Process, in_shell};
use crate::support::serve::{Serve, ServeTcp};
use crate::support::{http, wait_for};

#[test]
fn its_limits_are_said_and_can_be_set() {
    let limits = "--idle-timeout 200ms --input-max 20m --output-max 20m";
    let server = Serve::start_with(&limits.split(' ').collect::<Vec<_>>());
    let mut silent = TcpStream::connect(server.address()).expect("it listens");
    let mut nothing = Vec::new();
    std::io::Read::read_to_end(&mut silent, &mut nothing).expect("it is closed");
    assert_eq!(nothing, b"");
    assert_eq!(server.counters().connections_timed_out, 1);
}

/// Many clients ask for much and read nothing: memory is bounded by what was set, and somebody else
/// is answered beside them. What the kernel takes is not the server's.
#[test]
fn clients_that_read_nothing_take_no_memory() {
    const CLIENTS: usize = 200;
    const MIB: u64 = 1 << 20;
    for (backend, path) in [
        ("epoll", "/websocket/bytes/1048576"),
        ("uring", "/websocket/chunked/1048576"),
        ("epoll", "/chunked/1g"),
    ] {
        let options = ["--backend", backend, "--output-max", "16m"];
        let server = Serve::start_with(&options);
        let before = server.peak_bytes();
        let mut asked = format!(
            "GET {path} HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        .into_bytes();
        if path.starts_with("/websocket") {
            asked.extend([0x81, 0x81, 0, 0, 0, 0, b'x'].repeat(10));
        }
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let mut client = TcpStream::connect(server.address()).expect("it listens");
                std::io::Write::write_all(&mut client, &asked).expect("it reads");
                client
            })
            .collect();
        for _ in 0..20 {
            assert_eq!(server.get("/"), "");
        }
        let counters = server.counters();
        assert_eq!(counters.requests as usize, CLIENTS + 20, "{path}");
        assert_eq!(counters.connections_overflowed, 0, "{path}");
        let grown = server.peak_bytes() - before;
        assert!(grown < 32 * MIB, "{backend} {path}: {grown}");
        drop(clients);
    }
}

#[test]
fn it_serves_where_nobody_reads_what_it_prints() {
    for is_full in [true, false] {
        let address = free_address();
        let output = if is_full { "> /dev/full" } else { "" };
        let words = ["serve", "-t", "1", "-l", &address.to_string()];
        let command = in_shell(&format!("exec \"$@\" {output}"), &words);
        // Its reader leaves at once.
        let (process, _) = Process::start_open(command);
        wait_for("it listens", || TcpStream::connect(address).ok());
        assert_eq!(http::get(address, "/bytes/3"), "abc");
        let code = if is_full { 2 } else { 0 };
        let outcome = process.wait_interrupted().exits(code);
        let full = outcome.stderr.matches("cannot write to standard output");
        assert_eq!(full.count(), usize::from(is_full), "{outcome:?}");
        assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
    }
}

/// As many connections as there are slots for handshakes.
const SILENT: usize = 1_024;

#[test]
fn clients_that_say_nothing_leave_room_for_a_handshake() {
    let server = Serve::start_secure(&[]);
    let limits = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let limits = rustix::process::Rlimit {
        current: limits.maximum,
        ..limits
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, limits).expect("up to the hard");
    let silent: Vec<_> = (0..SILENT)
        .map(|_| TcpStream::connect(server.address()).expect("it listens"))
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
    let server = Serve::start_secure(&["--alpn", "http/1.1"]);
    assert!(server.url("/").starts_with("https://127.0.0.1:"));
    let pem = std::fs::read_to_string(server.certificate()).expect("the certificate");
    assert!(pem.starts_with("-----BEGIN CERTIFICATE-----\n"), "{pem}");
    assert_eq!(pem.matches("BEGIN").count(), 1, "{pem}");
}

#[test]
fn raw_tcp_is_served_beside_http() {
    let server = ServeTcp::start("reply=line:PONG\\r\\n", &[]);
    let mut stream = TcpStream::connect(server.address).expect("it listens");
    std::io::Write::write_all(&mut stream, b"PING\r\nPING\r\n").expect("it reads");
    let ends = stream.shutdown(std::net::Shutdown::Write);
    ends.expect("it is connected");
    let mut received = String::new();
    std::io::Read::read_to_string(&mut stream, &mut received).expect("it answers");
    assert_eq!(received, "PONG\r\nPONG\r\n");
    let counters = server.settled();
    assert_eq!((counters.messages, counters.replies), (2, 2));
    assert_eq!((counters.bytes_received, counters.bytes_sent), (12, 12));
}
