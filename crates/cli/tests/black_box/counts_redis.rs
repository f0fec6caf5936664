//! Messages over TCP as brunt counts them, against the counts of redis-server and brunt's own.

use crate::loads::MACHINERIES;
use crate::support::process::{brunt, success};
use crate::support::redis::Redis;
use crate::support::run::RunReport;
use crate::support::serve::ServeTcp;

/// Runs `load` on every backend, with one and with two workers; each sends `command` alone.
fn compare(command: &str, load: &str, check: impl Fn(&RunReport)) {
    let redis = Redis::start();
    for machinery in MACHINERIES {
        let before = redis.calls(command);
        let report = machinery.run_tcp(load, &redis.address().to_string());
        let received = redis.calls(command) - before;
        let requests = report.requests();
        assert_eq!(requests.sent, received, "{machinery:?}: {requests:?}");
        assert_eq!(requests.answered, received, "{machinery:?}: {requests:?}");
        assert!(received > 0);
        assert_eq!(report.at("/agents/0/negotiated/protocol"), "messages");
        check(&report);
    }
}

const PING: &str = r"-m PING\r\n --reply line";

#[test]
fn messages_are_counted_as_planned() {
    type Check = fn(&RunReport);
    let cases: [(&str, String, Check); 6] = [
        (
            "ping",
            format!("{PING} -c 8 -d 300ms --warmup 100ms"),
            |report| {
                assert_eq!(report.total("connections_opened"), 8);
                // +PONG
                let replies = report.requests().answered;
                assert_eq!(report.total("bytes_received"), 7 * replies);
                assert_eq!(report.total("bytes_sent"), 6 * replies);
                let outcomes = report.statuses();
                assert_eq!(outcomes, [("success".to_owned(), replies)].into());
            },
        ),
        (
            "ping",
            format!("{PING} -c 8 -n 1000 --depth 16"),
            |report| {
                assert_eq!(report.requests().sent, 1_000);
            },
        ),
        (
            "ping",
            format!("{PING} -c 8 -r 2000 -d 300ms --warmup 100ms"),
            |report| assert_eq!(report.arrivals().planned, 600),
        ),
        (
            "ping",
            format!("{PING} --connection-rate 200 --requests-per-connection 3 -d 300ms"),
            |report| {
                let opened = report.total("connections_opened");
                assert!(report.requests().sent <= 3 * opened, "{opened}");
            },
        ),
        // $16 and the value, each with its line end.
        (
            "echo",
            r"-m ECHO\x20{rand:16}\r\n --reply fixed=23 -c 4 -n 500 --depth 3".to_owned(),
            |report| {
                assert_eq!(report.requests().sent, 500);
                assert_eq!(report.total("bytes_received"), 23 * 500);
            },
        ),
        // Its answers, which nobody awaits, are unread when a connection has done its part: to
        // close it then would reset it, and lose what redis has not read.
        (
            "ping",
            r"-m PING\r\n --reply none -c 4 -n 20000 --requests-per-connection 500".to_owned(),
            |report| {
                assert_eq!(report.requests().sent, 20_000);
                assert!(report.total("connections_opened") >= 40);
            },
        ),
    ];
    for (command, load, check) in &cases {
        compare(command, load, check);
    }
}

#[test]
fn several_messages_after_one_that_opens_the_connection() {
    let redis = Redis::start();
    for machinery in MACHINERIES {
        let load = r"-m SET\x20k{conn}\x20{seq}\r\n -m INCR\x20n\r\n --reply line -c 4 -n 1000
            --first SELECT\x203\r\n --first-reply delim=OK\r\n";
        let before = ["set", "incr", "select"].map(|command| redis.calls(command));
        let report = machinery.run_tcp(load, &redis.address().to_string());
        let after = ["set", "incr", "select"].map(|command| redis.calls(command));
        let calls = [0, 1, 2].map(|place: usize| after[place] - before[place]);
        assert_eq!(calls[0] + calls[1], 1_000, "{machinery:?}");
        let opened = report.total("connections_opened");
        assert_eq!(calls[2], opened, "{machinery:?}");
        let names = report.at("/names").as_array().expect("a list");
        assert_eq!(names.len(), 2, "{names:?}");
    }
}

#[test]
fn over_a_unix_socket() {
    let redis = Redis::start();
    let path = redis.socket().display().to_string();
    let outcome = success(&format!("tcp {PING} -n 100 -c 2 --unix-socket {path}"));
    assert_eq!(redis.calls("ping"), 100);
    outcome.assert_prints(&["messages    100 ok", "msg/s"]);
    for word in ["req/s", "requests", "statuses"] {
        assert!(!outcome.stdout.contains(word), "{word}: {outcome:?}");
    }
}

/// Framed by lines, the value behind the length would be a message that nobody asked for.
#[test]
fn replies_of_redis_are_framed_by_its_protocol() {
    const HELLO: &str = r"--first HELLO\x203\r\n";
    let redis = Redis::start();
    for command in ["SET full value", "HSET hash a 1 b 2", "RPUSH list 1 2 3"] {
        redis.tell(command);
    }
    // The command, what it sends, other options, whether it succeeds, and bytes of each reply.
    for (command, message, more, is_success, bytes) in [
        ("get", r"GET\x20full\r\n", "", true, 11),
        ("get", r"GET\x20none\r\n", "", true, 5),
        ("get", r"GET\x20none\r\n", HELLO, true, 3),
        ("hgetall", r"HGETALL\x20hash\r\n", "", true, 32),
        ("hgetall", r"HGETALL\x20hash\r\n", HELLO, true, 32),
        ("lrange", r"LRANGE\x20list\x200\x20-1\r\n", "", true, 25),
        ("get", r"GET\x20hash\r\n", "", false, 68),
        ("get", r"GET\x20hash\r\n", HELLO, false, 68),
    ] {
        for machinery in MACHINERIES {
            let before = redis.calls(command);
            let load = format!("-m {message} --reply resp -c 4 -n 1000 --depth 8 {more}");
            let report = machinery.run_tcp(&load, &redis.address().to_string());
            let received = redis.calls(command) - before;
            let requests = report.requests();
            let what = format!("{machinery:?} {message} {more}: {requests:?}");
            assert_eq!((requests.sent, received), (1_000, 1_000), "{what}");
            assert_eq!(requests.answered, 1_000, "{what}");
            let outcome = if is_success { "success" } else { "error" };
            assert_eq!(report.statuses()[outcome], 1_000, "{what}");
            let overhead = report.at("/summary/all_phases/overhead_bytes");
            let overhead = overhead.as_u64().expect("a count");
            assert_eq!(overhead > 0, !more.is_empty(), "{what}");
            let received = report.total("bytes_received") - overhead;
            assert_eq!(received, 1_000 * bytes, "{what}");
            assert_eq!(report.total("pushes"), 0, "{what}");
        }
    }
}

#[test]
fn errors_of_redis_are_told_as_such() {
    let redis = Redis::start();
    let words = r"tcp -m INCRBY\x20n\x20x\r\n --reply resp -n 100 -c 1";
    let outcome = brunt(&format!("{words} {}", redis.address())).exits(1);
    outcome.assert_prints(&[
        "NO-SUCCESS",
        "all 100 messages since the window began had an\nerror for an answer",
        "100 error replies",
    ]);
    let words = r"tcp -m PING\r\n --first NOSUCH\r\n --reply resp -n 100 -c 1";
    let outcome = brunt(&format!("{words} {}", redis.address()));
    assert_ne!(outcome.code, Some(0), "{outcome:?}");
    let all = format!("{}{}", outcome.stdout, outcome.stderr);
    assert!(all.contains("first message refused"), "{outcome:?}");
}

#[test]
fn a_framing_that_ends_replies_too_early_is_named() {
    let redis = Redis::start();
    redis.tell("SET full value");
    for (reply, is_noted) in [("line", true), ("resp", false)] {
        let words = format!(r"tcp -m GET\x20full\r\n --reply {reply} -c 2 -d 200ms --warmup 0s");
        for form in ["text", "html"] {
            let outcome = success(&format!("{words} --format {form} {}", redis.address()));
            let note = "does --reply line end a reply too early?";
            assert_eq!(outcome.unbroken().contains(note), is_noted, "{outcome:?}");
        }
    }
}

/// Every byte of each echo is compared, and the server counts what it read and sent.
#[test]
fn echoes_of_the_reference_server_are_verified() {
    let server = ServeTcp::start("echo", &[]);
    for machinery in MACHINERIES {
        let before = server.settled();
        let load =
            r"-m {conn}\x20{seq}\x20{rand:4000}\n -m ping\n --reply echo -c 4 -n 2000 --depth 3";
        let report = machinery.run_tcp(load, &server.address.to_string());
        let after = server.settled();
        assert_eq!(report.requests().answered, 2_000, "{machinery:?}");
        let received = after.bytes_received - before.bytes_received;
        assert_eq!(report.total("bytes_sent"), received, "{machinery:?}");
        assert_eq!(report.total("bytes_received"), received, "{machinery:?}");
    }
}
