//! WebSocket: counts of messages equal the server's own, of the reference server and of others'.

use std::collections::BTreeMap;

use brunt_server::Counters;

use crate::loads::{MACHINERIES, Machinery};
use crate::support::BACKENDS;
use crate::support::kosoku::{judge_client, judge_server};
use crate::support::malformed::MalformedServer;
use crate::support::process::{brunt, refused};
use crate::support::run::{RunReport, run};
use crate::support::serve::Serve;
use crate::support::websocket::{NODE, PYTHON, WebSocketServer};

fn url(server: &Serve, path: &str) -> String {
    server.url(path).replacen("http", "ws", 1)
}

/// Runs `load` on every backend, with one and with two workers, each against a new server.
fn compare(path: &str, load: &str, check: impl Fn(&RunReport, &Counters)) {
    for machinery in MACHINERIES {
        let server = Serve::start();
        let report = machinery.run(load, &url(&server, path));
        let counters = server.settled();
        assert_sent(machinery, &report, &counters);
        check(&report, &counters);
    }
}

/// What was sent is what the server got, and all that it sent was received.
fn assert_sent(machinery: Machinery, report: &RunReport, counters: &Counters) {
    let requests = report.requests();
    let counted = counters.websocket_messages_received;
    assert_eq!(requests.sent, counted, "{machinery:?}: messages");
    let control = |name: &str| control(report, name);
    // Between the end of the run and that of its connections, more may be due on each.
    let opened = report.total("connections_opened");
    let pings = control("pings_sent")..=control("pings_sent") + 20 * opened;
    assert!(pings.contains(&counters.websocket_pings), "{pings:?}");
    // Of those that were being opened when the run ended, the server may have seen any; one is that
    // before the run.
    let possible = opened + 1..=opened + 1 + report.number("/plan/connections");
    let agreed = counters.connections_websocket;
    assert!(
        possible.contains(&agreed),
        "{machinery:?}: {agreed} upgrades, {opened} opened"
    );
    // All are ended by Close frames.
    assert_eq!(counters.websocket_closes, agreed, "{machinery:?}");
    assert_eq!(counters.websocket_refused, 0);
}

fn control(report: &RunReport, name: &str) -> u64 {
    let workers = report.at("/agents/0/workers").as_array().expect("a list");
    // Absent where there was none.
    let of = |tallies: &serde_json::Value| tallies["controls"][name].as_u64().unwrap_or(0);
    let phases = ["before", "measure", "after"];
    workers
        .iter()
        .flat_map(|worker| phases.map(|phase| of(&worker["tallies"][phase])))
        .sum()
}

/// Nothing failed, nothing is left over, and each message was answered by the server.
fn assert_answered(report: &RunReport, counters: &Counters) {
    let requests = report.requests();
    assert_eq!(requests.answered, requests.sent);
    assert!(requests.sent > 0);
    assert_eq!(requests.answered, counters.websocket_messages_answered);
}

#[test]
fn echoes_in_a_closed_loop() {
    let load = "-c 8 -d 300ms --warmup 100ms --message hello --reply-match echo";
    compare("/websocket", load, |report, counters| {
        assert_answered(report, counters);
        assert_eq!(report.total("pushes"), 0);
        assert_eq!(
            report.total("reply_body_bytes"),
            counters.websocket_bytes_sent
        );
        assert_eq!(report.at("/agents/0/negotiated/protocol"), "WebSocket");
    });
}

#[test]
fn several_messages_in_flight_with_what_is_filled_in() {
    let load = "-c 4 -n 1000 --depth 8 --message {conn}-{seq}-{rand:3} --message constant \
                --reply-match echo --binary";
    compare("/websocket", load, |report, counters| {
        assert_answered(report, counters);
        assert_eq!(report.requests().sent, 1_000);
    });
}

#[test]
fn long_messages() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("message");
    std::fs::write(&path, [b'x'; 300_000]).expect("the directory is ours");
    for matching in ["any", "echo"] {
        let load = format!(
            "-c 2 -n 40 --message @{} --reply-match {matching}",
            path.display()
        );
        compare("/websocket", &load, |report, counters| {
            assert_answered(report, counters);
            assert_eq!(counters.websocket_bytes_received, 40 * 300_000);
            assert_eq!(report.total("reply_body_bytes"), 40 * 300_000);
        });
    }
    // In frames of 16 KiB, which nobody has to see.
    let load = "-c 2 -n 40 --message a";
    compare("/websocket/chunked/1m", load, |report, counters| {
        assert_answered(report, counters);
        assert_eq!(report.total("reply_body_bytes"), 40 << 20);
    });
}

#[test]
fn a_planned_rate_with_pings() {
    let load = "-r 200 -c 4 -d 500ms --warmup 200ms --message a --ping 50ms";
    compare("/websocket", load, |report, counters| {
        assert_answered(report, counters);
        assert_eq!(report.requests().sent, 140);
        assert!(counters.websocket_pings > 0);
        // The last ones may be on their way: more of them where the client stood still at its end.
        let answered = control(report, "pongs_received");
        assert!(answered <= counters.websocket_pings, "{answered}");
        assert!(answered >= counters.websocket_pings / 2, "{answered}");
    });
}

#[test]
fn pushes_are_told_from_replies() {
    let load = "-c 4 -n 200 --message a --reply-match echo";
    compare("/websocket/interim/3", load, |report, counters| {
        assert_answered(report, counters);
        assert_eq!(counters.websocket_messages_pushed, 600);
        assert_eq!(report.total("pushes"), 600);
    });
    let server = Serve::start();
    let outcome = brunt(&format!("{load} {}", url(&server, "/websocket/interim/3")));
    let row = outcome
        .stdout
        .lines()
        .find(|line| line.starts_with("beside"));
    assert!(
        row.is_some_and(|row| row.contains("600 sent by the server unasked")),
        "{outcome:?}"
    );
    let load = "-c 4 -n 200 --message a --replies 4";
    compare("/websocket/interim/3", load, |report, counters| {
        assert_answered(report, counters);
        assert_eq!(report.total("pushes"), 0);
        assert_eq!(
            report.total("reply_body_bytes"),
            counters.websocket_bytes_sent
        );
    });
}

#[test]
fn what_is_no_websocket_is_said_before_the_run() {
    let (server, malformed) = (Serve::start(), MalformedServer::start());
    let garbage = malformed.url("/malformed/garbage").replace("http", "ws");
    for (words, said) in [
        (
            format!("--message a {}", url(&server, "/status/403")),
            "the server answers the upgrade with status 403 in place of 101; a server that asks \
             where a page is from wants -H 'Origin: https://HOST'",
        ),
        (
            format!("--message a {}", url(&server, "/status/401")),
            "with status 401 in place of 101; give credentials with -u USER:PASSWORD, or with -H",
        ),
        (
            format!("--message a {garbage}"),
            "the reply to the upgrade is refused",
        ),
        (
            format!("--message \\xff {}", url(&server, "/websocket")),
            "is not UTF-8, as a text has to be; send it with --binary",
        ),
        (
            format!("--message a -H Upgrade:x {}", url(&server, "/websocket")),
            "the header field `Upgrade` is part of the WebSocket handshake",
        ),
    ] {
        let outcome = brunt(&words);
        refused(&outcome, said);
    }
}

#[test]
fn over_tls_with_a_subprotocol() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let certificate = directory.path().join("certificate.pem");
    for backend in BACKENDS {
        let server = Serve::start_secure(&certificate, &[]);
        let report = run(&format!(
            "--backend {backend} --cacert {} -c 4 -n 200 --message a --subprotocol chat \
             --reply-match echo {}",
            certificate.display(),
            url(&server, "/websocket")
        ));
        assert_eq!(report.requests().answered, 200);
        assert_eq!(report.total("handshakes_full"), 4);
        let counters = server.settled();
        assert_eq!(counters.websocket_messages_answered, 200);
    }
}

/// The cases of Autobahn, in both directions. Three have no right answer: a Close after a long
/// message (7.1.6), and codes that RFC 6455 does not speak of (7.13.1, 7.13.2).
#[test]
fn it_conforms() {
    let expected = |ok: u32| {
        let outcomes = [("INFORMATIONAL", 3), ("OK", ok)];
        BTreeMap::from(outcomes.map(|(outcome, count)| (outcome.to_owned(), count)))
    };
    assert_eq!(judge_client(), expected(99));
    let server = Serve::start();
    assert_eq!(judge_server(&url(&server, "/websocket")), expected(244));
}

/// Others' servers count what brunt counts.
#[test]
fn counts_equal_those_of_other_servers() {
    for program in [PYTHON, NODE] {
        for backend in BACKENDS {
            let server = WebSocketServer::start(&program);
            let report = run(&format!(
                "--backend {backend} -c 4 -n 500 --depth 2 --message {{seq}} --message @{} \
                 --reply-match echo --ping 20ms {}",
                server.long_message().display(),
                server.url()
            ));
            let requests = report.requests();
            assert_eq!(
                (requests.sent, requests.answered),
                (500, 500),
                "{program:?}"
            );
            assert_eq!(report.total("pushes"), 0);
            // One more is that before the run.
            server.expect(500, 5..=5);
        }
    }
}

/// What nobody waits for is answered all the same: nothing that was sent is lost by that.
#[test]
fn one_way_messages_reach_other_servers() {
    for program in [PYTHON, NODE] {
        for backend in BACKENDS {
            for load in [
                "-c 4 -n 10000 --depth 8",
                "-c 2 -n 2000 --requests-per-connection 100",
            ] {
                let server = WebSocketServer::start(&program);
                let report = run(&format!(
                    "--backend {backend} {load} --replies 0 --message {{seq}} {}",
                    server.url()
                ));
                let sent = report.requests().sent;
                assert_eq!(report.failures().values().sum::<u64>(), 0, "{program:?}");
                // Of those that were being opened at the end, it may have seen any.
                let opened = report.total("connections_opened") + 1;
                server.expect(sent, opened..=opened + report.number("/plan/connections"));
            }
        }
    }
}
