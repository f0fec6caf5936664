//! Messages over TCP against the reference server: its known delays and silences, every framing,
//! and whatever else a run can be, with equal counts on both sides.

use std::io::Write;
use std::net::SocketAddr;

use brunt_server::TcpCounters;
use serde_json::Value;

use crate::loads::MACHINERIES;
use crate::support::listener::serve_each;
use crate::support::process::{brunt, success};
use crate::support::run::{RunReport, run};
use crate::support::serve::{Serve, ServeTcp};
use crate::support::{BACKENDS, at_once};

/// Runs `load` on every backend, with one and with two workers, each against a new server with this
/// `--tcp`; nothing fails, and both sides count the same.
fn compare(service: &str, load: &str, check: impl Fn(&RunReport, &TcpCounters) + Sync) {
    at_once(MACHINERIES, |machinery| {
        let server = ServeTcp::start(service, &[]);
        let report = machinery.run_tcp(load, &server.address.to_string());
        let counters = server.settled();
        assert_equal(&report, &counters);
        check(&report, &counters);
    });
}

/// All messages that were sent were answered, and counted by the server.
fn assert_equal(report: &RunReport, counters: &TcpCounters) {
    let requests = report.requests();
    let sent = (requests.sent, requests.failed, requests.in_flight);
    assert_eq!(sent, (counters.messages, 0, 0), "{:?}", report.failures());
    assert!(requests.sent > 0);
    assert_eq!(requests.answered, requests.sent);
    assert_eq!(report.total("bytes_sent"), counters.bytes_received);
    assert_eq!(report.total("bytes_received"), counters.bytes_sent);
    // One more is the connection before the run; of those that were being opened when it ended, the
    // server may have seen any.
    let opened = report.total("connections_opened") + 1;
    let possible = opened..=opened + report.number("/plan/load/connections");
    let accepted = counters.connections_accepted;
    assert!(possible.contains(&accepted), "{accepted} not {possible:?}");
}

#[test]
fn every_framing_ends_its_replies() {
    for (service, message, reply, bytes) in [
        ("echo=line", r"{seq}\n", "line", None),
        ("reply=line:fine\\n", r"ping\n", "line", Some(5)),
        ("reply=line:20k", r"ping\n", "line", Some(20 * 1024 + 1)),
        ("reply=delim=;:abc;", "ping;", "delim=;", Some(4)),
        ("reply=fixed=7:3", "{rand:7}", "fixed=3", Some(3)),
        ("reply=fixed=4:1m", "ping", "fixed=1048576", Some(1 << 20)),
        ("echo=fixed=9", "123456789", "echo", Some(9)),
        ("reply=len8:200", r"\x04ping", "len8", Some(201)),
        ("reply=len16be:300", r"\x00\x04ping", "len16be", Some(302)),
        ("reply=len16le:300", r"\x04\x00ping", "len16le", Some(302)),
        ("reply=len24be:300", r"\0\0\x04ping", "len24be", Some(303)),
        ("reply=len24le:300", r"\x04\0\0ping", "len24le", Some(303)),
        ("reply=len32be:70k", r"\0\0\0\x04ping", "len32be", None),
        ("reply=len32le:70k", r"\x04\0\0\0ping", "len32le", None),
        (
            "reply=len16be@2-4:10",
            r"ab\0\x08ping",
            "len16be@2-4",
            Some(14),
        ),
        ("reply=marker=ab*2:5", "pingabxab", "marker=ab*2", Some(9)),
    ] {
        let load = format!("-m {message} --reply {reply} -c 3 -n 60 --depth 4");
        compare(service, &load, |report, counters| {
            assert_eq!(report.requests().sent, 60, "{service}");
            if let Some(bytes) = bytes {
                assert_eq!(counters.bytes_sent, 60 * bytes, "{service}");
            }
        });
    }
}

#[test]
fn over_tls() {
    at_once(MACHINERIES, |machinery| {
        let server = ServeTcp::start_secure("echo=line");
        let trust = format!("--cacert {}", server.certificate().display());
        for load in [
            r"-m {conn}:{seq}\n -m constant\n --depth 4 -n 300",
            r"-m ping\n -r 300 -d 300ms --warmup 0s",
            r"-m ping\n -n 50 --no-keepalive --first hello\n",
        ] {
            let before = server.settled();
            let load = format!("{load} --reply echo -c 4 {trust}");
            let report = machinery.run_tcp(&load, &format!("tls://{}", server.address));
            let after = server.settled();
            let requests = report.requests();
            assert_eq!(requests.answered, requests.sent, "{load}");
            let opened = report.total("connections_opened");
            assert_eq!(report.total("handshakes_full"), opened, "{load}");
            let first = if load.contains("--first") { opened } else { 0 };
            // Those that stood open, or were being opened, when the run ended.
            let received = after.messages - before.messages;
            let possible = requests.sent + first..=requests.sent + first + 4;
            assert!(possible.contains(&received), "{load}: {received}");
        }
    });
}

/// What the report of a run with `--hold` says of its connections.
fn held(report: &RunReport, name: &str) -> u64 {
    report.number(&format!("/summary/held/{name}"))
}

#[test]
fn connections_are_held() {
    let server = ServeTcp::start("echo=line", &[]);
    for machinery in &MACHINERIES[..2] {
        let before = server.settled();
        let report = machinery.run_tcp("--hold -c 2000 -d 300ms", &server.address.to_string());
        assert_eq!(held(&report, "open_at_end"), 2_000);
        assert!(report.at("/plan/load/model/held").is_object());
        // One is the connection before the run.
        let accepted = server.settled().connections_accepted - before.connections_accepted;
        assert_eq!(accepted, 2_001);
        let each = held(&report, "client_bytes_per_connection");
        assert!(each < 6_000, "{each} bytes per connection");
    }
}

#[test]
fn connections_of_websocket_and_http_are_held_too() {
    for backend in BACKENDS {
        let server = Serve::start();
        let at = server.url("/websocket").replacen("http", "ws", 1);
        let load = format!("--backend {backend} --hold -c 40 -d 400ms");
        let report = run(&format!("{load} --ping 50ms {at}"));
        assert_eq!(held(&report, "open_at_end"), 40);
        assert_eq!(report.at("/agents/0/negotiated/protocol"), "WebSocket");
        let counters = server.settled();
        assert!(counters.websocket_pings >= 40, "{counters:?}");
        assert_eq!(counters.websocket_messages_received, 0);
        for options in ["", "--http2"] {
            let report = run(&format!("{load} {options} {}", server.url("/")));
            assert_eq!(held(&report, "open_at_end"), 40);
            assert_eq!(report.requests().sent, 0);
        }
    }
}

#[test]
fn connections_are_opened_and_closed_again() {
    let secure = ServeTcp::start_secure("sink");
    let trust = format!("--cacert {}", secure.certificate().display());
    let url = format!("tls://{}", secure.address);
    for machinery in &MACHINERIES[..2] {
        for load in ["-c 4 -n 200", "-c 4 -r 500 --arrivals poisson -n 200"] {
            let report = machinery.run_tcp(&format!("--connect-only {load} {trust}"), &url);
            let requests = report.requests();
            assert_eq!((requests.sent, requests.answered), (200, 200), "{load}");
            assert_eq!(report.total("handshakes_full"), 200, "{load}");
            assert_eq!(secure.settled().bytes_received, 0, "{load}");
            assert_eq!(report.at("/plan/connection/protocol"), "connections");
            let least = |of: &str| report.number(&format!("/latencies/{of}/min_ns"));
            assert!(least("response") >= least("connect"), "{load}");
            assert!(least("response") > least("tls"), "{load}");
        }
    }
    let clear = ServeTcp::start("sink", &[]);
    // So long that no worker comes late to a hundredth of it, beside other tests.
    let load = "tcp --connect-only -c 2 -r 100 -d 2s --warmup 0s";
    let outcome = brunt(&format!("{load} {}", clear.address)).exits(0);
    outcome.assert_prints(&["connections/s", "opened and closed again", "2 at a time"]);
    assert!(!outcome.stdout.contains("msg/s"), "{outcome:?}");
}

/// The JSON that the command with these words prints. A busy machine may spoil so many rounds that
/// a search passes no rate (1), or nothing can be said of a server (4).
fn experiment(words: &str) -> Value {
    let outcome = brunt(&format!("{words} --format json -q"));
    assert!(matches!(outcome.code, Some(0 | 1 | 4)), "{outcome:?}");
    outcome.json()
}

#[test]
fn experiments_take_messages_by_their_url() {
    let echo = ServeTcp::start("echo=line", &[]);
    let slow = ServeTcp::start("echo=line", &["--tcp-delay", "20ms"]);
    let web = Serve::start();
    let ping = r"--message ping\n";
    let tcp = format!("{ping} --reply line --depth 2");
    let at = |server: &ServeTcp| format!("tcp://{}", server.address);
    let ws = |path: &str| web.url(path).replacen("http", "ws", 1);
    for words in [
        format!("{tcp} {}", at(&echo)),
        format!("{ping} --depth 2 {}", ws("/websocket")),
    ] {
        let sweep = experiment(&format!(
            "sweep -c 1,2,4 --rounds 2 -d 60ms --warmup 30ms --round-warmup 10ms {words}"
        ));
        let rounds = sweep["rounds"].as_array().expect("a list");
        assert_eq!(rounds.len(), 6, "{words}");
        assert_eq!(sweep["load"]["traffic"]["pipeline"], 2, "{words}");
        let found = experiment(&format!(
            "find --objective p50<2s -r 100 --max-rate 200 -d 100ms --warmup 20ms {words}"
        ));
        let steps = found["steps"].as_array().expect("a list");
        assert!(steps.len() >= 2, "{words}: {steps:?}");
    }
    for sides in [
        format!("{tcp} {} {}", at(&echo), at(&slow)),
        format!(
            "{ping} {} {}",
            ws("/websocket"),
            ws("/websocket/delay/20ms")
        ),
    ] {
        let compared = experiment(&format!(
            "compare --pairs 7 -c 2 -t 1 -d 100ms --warmup 20ms {sides}"
        ));
        let [only] = &compared["comparisons"].as_array().expect("a list")[..] else {
            panic!("{compared}");
        };
        if only["claim"] != "nothing" {
            assert_eq!(only["claim"], "differs", "{only}");
            let change = only["change"].as_f64();
            assert!(change.is_some_and(|change| change < -0.5), "{only}");
        }
    }
}

/// A server that sends lines without a pause, and reads what it is sent or does not.
fn flooding(reads: bool) -> SocketAddr {
    serve_each(move |mut socket| {
        if reads {
            let mut reader = socket.try_clone().expect("a descriptor");
            std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
        }
        let lines = b"pushed line\n".repeat(4_096);
        while socket.write_all(&lines).is_ok() {}
    })
}

/// What a server does breaks no invariant, whatever it is.
#[test]
fn floods_of_unasked_messages_break_no_run() {
    // The longer one fills all that a server does not read.
    let long = format!("{}\\n", "x".repeat(9_000));
    for (reads, message) in [(true, r"x\n"), (false, r"x\n"), (false, &long)] {
        let address = flooding(reads);
        for backend in BACKENDS {
            for connections in [4, 16] {
                let load = format!("-m {message} --reply line -c {connections}");
                let load = format!("tcp --backend {backend} {load} --warmup 100ms -d 600ms");
                let what = format!("{backend}, {connections} connections, read: {reads}");
                let text = success(&format!("{load} {address}")).stdout;
                let is_counted = text.contains("sent by the server unasked");
                assert!(is_counted, "{what}: {text}");
                // It was not.
                assert!(!text.contains("wall clock was set"), "{what}: {text}");
            }
        }
    }
}
