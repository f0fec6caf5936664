//! WebSocket: counts of messages equal the server's own, of the reference server and of others'.

use std::collections::BTreeMap;

use crate::support::BACKENDS;
use crate::support::kosoku::{judge_client, judge_server};
use crate::support::malformed::MalformedServer;
use crate::support::process::{brunt, refused};
use crate::support::run::run;
use crate::support::serve::Serve;
use crate::support::websocket::{NODE, PYTHON, WebSocketServer};

fn url(server: &Serve, path: &str) -> String {
    server.url(path).replacen("http", "ws", 1)
}

#[test]
fn pushes_are_told_from_replies() {
    let server = Serve::start();
    let url = url(&server, "/websocket/interim/3");
    let outcome = brunt(&format!("-c 4 -n 200 --message a --reply-match echo {url}"));
    let mut rows = outcome
        .stdout
        .lines()
        .filter(|row| row.starts_with("beside"));
    let is_counted = rows.any(|row| row.contains("600 sent by the server unasked"));
    assert!(is_counted, "{outcome:?}");
    assert_eq!(server.settled().websocket_messages_pushed, 600);
    let report = run(&format!("-c 4 -n 200 --message a --replies 4 {url}"));
    assert_eq!(
        (report.requests().answered, report.total("pushes")),
        (200, 0)
    );
}

#[test]
fn what_is_no_websocket_is_said_before_the_run() {
    let (server, malformed) = (Serve::start(), MalformedServer::start());
    let garbage = malformed.url("/malformed/garbage").replace("http", "ws");
    for (words, message) in [
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
        refused(&outcome, message);
    }
}

#[test]
fn over_tls_with_a_subprotocol() {
    for backend in BACKENDS {
        let server = Serve::start_secure(&[]);
        let report = run(&format!(
            "--backend {backend} --cacert {} -c 4 -n 200 --message a --subprotocol chat \
             --reply-match echo {}",
            server.certificate().display(),
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
                server.expect(
                    sent,
                    opened..=opened + report.number("/plan/load/connections"),
                );
            }
        }
    }
}
