//! What must not be seen by others: passwords, tokens and keys.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use crate::support::process::{
    Outcome, Process, binary, brunt, brunt_with, refused, success, success_with,
};
use crate::support::serve::{Serve, ServeTcp};
use crate::support::stored::Stored;

const FORMS: [&str; 4] = ["text", "json", "csv", "html"];

/// Checks that nothing of an outcome names `secret`.
fn assert_hidden(outcome: &Outcome, secret: &str, what: &str) {
    for text in [&outcome.stdout, &outcome.stderr] {
        assert!(!text.contains(secret), "{what}: {text}");
    }
}

#[test]
fn credentials_and_bodies_stand_in_no_report() {
    let server = Serve::start();
    let url = server.url("/");
    for format in FORMS {
        let load = format!("-v --format {format} -n 10 -c 1");
        let secret = "-u user:hushhush -H X-Token:hushhush -b hushhush";
        let outcome = success(&format!("{load} {secret} {url}"));
        assert_hidden(&outcome, "hushhush", format);
        assert_hidden(&outcome, "dXNlcjpodXNo", format);
    }
}

/// Words with a secret, `FILE` for the report, `URL` for the server; how the command is stored, and
/// where.
const CALLED: &[(&str, &str, &str)] = &[
    (
        "wrk -t1 -c1 -d1s -H X-Token:hushhush --brunt-report FILE URL",
        "brunt wrk -t 1 -c 1 -d 1s -H X-Token: ... --brunt-report FILE URL",
        "/agents/0",
    ),
    (
        "ab -n9 -q -A user:hushhush -C a=hushhush --brunt-report FILE URL",
        "brunt ab -n 9 -q -A ... -C ... --brunt-report FILE URL",
        "/agents/0",
    ),
    (
        "weighttp -n9 -q -A user:hushhush -C a=hushhush --brunt-report FILE URL",
        "brunt weighttp -n 9 -q -A ... -C ... --brunt-report FILE URL",
        "/agents/0",
    ),
    (
        "h2load -n9 --h1 -HX-Token:hushhush --brunt-report FILE URL",
        "brunt h2load -n 9 --h1 -H X-Token: ... --brunt-report FILE URL",
        "/agents/0",
    ),
    (
        "httperf --port PORT --num-conns 2 --add-header=X-Token:hushhush\\n --brunt-report FILE",
        "brunt httperf --port PORT --num-conns 2 --add-header X-Token: ... --brunt-report FILE",
        "/agents/0",
    ),
    (
        "oha -n9 -c1 -H X-Token:hushhush -d hushhush -a u:hushhush --brunt-report FILE URL",
        "brunt oha -n 9 -c 1 -H X-Token: ... -d ... -a ... --brunt-report FILE URL",
        "/agents/0",
    ),
    (
        "sweep -c 1,2 --rounds 1 -d 100ms -u user:hushhush -o FILE URL",
        "brunt sweep --rounds 1 -c 1,2 -d 100ms -u ... -o FILE URL",
        "/environment",
    ),
    (
        "compare --pairs 7 -d 100ms -HX-Token:hushhush -o FILE URL URL",
        "brunt compare --pairs 7 -d 100ms -H X-Token: ... -o FILE URL URL",
        "/environment",
    ),
    (
        "find --objective errors=0 --budget 10s --max-rate 9 -b hushhush -o FILE URL",
        "brunt find --max-rate 9 --budget 10s -b ... -o FILE --objective errors=0 URL",
        "/environment",
    ),
];

#[test]
fn stored_commands_hold_no_secrets() {
    let server = Serve::start();
    let files = Stored::new();
    let (url, address) = (server.url("/"), server.address());
    let (_, port) = address.split_once(':').expect("an address with a port");
    let named = |words: &str| {
        let words = words.replace("FILE", &files.path("stored.json"));
        words.replace("URL", &url).replace("PORT", port)
    };
    for (typed, stored, place) in CALLED {
        let typed = named(typed);
        let outcome = brunt(&typed);
        let text = files.text("stored.json");
        assert!(!text.contains("hushhush"), "{typed}: {text}");
        // httperf prints its command line itself.
        assert!(!outcome.stderr.contains("hushhush"), "{typed}: {outcome:?}");
        let json = files.read("stored.json");
        let found = json.pointer(place).expect("it is there");
        assert!(found["machine"]["kernel"].is_string(), "{typed}: {found}");
        let command = found["command"].as_array().expect("a list").iter();
        let command: Vec<_> = command.filter_map(|word| word.as_str()).collect();
        assert_eq!(command.join(" "), named(stored));
    }
}

#[test]
fn messages_of_redacted_runs_hold_no_queries() {
    for url in [
        "http://no-such-host.invalid/?hushhush",
        "http://127.0.0.1:1/?hushhush",
        "https://127.0.0.1:1/?hushhush",
    ] {
        let outcome = brunt_with(&["--redact", url]).exits(2);
        assert_hidden(&outcome, "hushhush", url);
    }
    let server = Serve::start();
    let url = server.url("/");
    let missing = format!("{}?hushhush", server.url("/status/404"));
    let load = format!("-d 100ms --warmup 0s --verify-url {missing} {url}");
    let outcome = brunt(&format!("--redact {load}"));
    assert_hidden(&outcome, "hushhush", "--verify-url");
}

#[test]
fn a_key_log_that_others_may_read_is_refused() {
    let files = Stored::new();
    let log = files.write("keys", "");
    let set_mode = |mode| {
        std::fs::set_permissions(&log, Permissions::from_mode(mode)).expect("it is ours");
    };
    let secured = || {
        let mut command = binary();
        command
            .args(["--http3", "-n", "10", "-c", "1"])
            .env("SSLKEYLOGFILE", &log);
        Process::start(command).wait()
    };
    set_mode(0o644);
    let outcome = secured();
    let typed = format!("chmod 600 {log}");
    refused(&outcome, &typed);
    assert_eq!(files.text("keys"), "");
    set_mode(0o600);
    secured().exits_unless_late(0);
    assert!(!files.text("keys").is_empty());
    std::fs::remove_file(&log).expect("it is ours");
    secured().exits_unless_late(0);
    let mode = std::fs::metadata(&log).expect("it was made").mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Runs with a secret wherever one can be typed. `DIR` is a directory with lists and scripts, `URL`
/// the server, `WS` that server over WebSocket, `TCP` an echo. `_` stands for a blank in a word.
const TYPED: &[&str] = &[
    "tcp -m hushhush -m hushhush{seq} --first AUTH_hushhush --reply echo -n 20 -c 1 TCP",
    "tcp --message=hushhush --first=hushhush --first-reply=echo --reply=echo -n 20 -c 1 TCP",
    "tcp --hold --first hushhush --first-reply echo -d 100ms -c 1 TCP",
    "--message hushhush --message hushhush2 --subprotocol hushhush -n 20 -c 1 WS?hushhush",
    "-s DIR/requests.lua -d 100ms --warmup 0s -c 1 URL?hushhush hushhush -- --hushhush hushhush",
    "-n 20 -c 1 --verify-url URLcounters?hushhush URL?hushhush",
    "--urls DIR/urls -n 20 -c 1 URL",
    "--targets DIR/targets -n 20 -c 1 -H X-A:hushhush -u hushhush:hushhush",
];

/// Experiments with a secret wherever one can be typed; they have fewer outputs. Their words are as
/// in [`TYPED`].
const TYPED_IN_EXPERIMENTS: &[&str] = &[
    "sweep -c 1,2 --rounds 1 -d 100ms --message hushhush --first hushhush --reply echo tcp://TCP",
    "sweep -c 1,2 --rounds 1 -d 100ms --message hushhush --subprotocol hushhush WS?hushhush",
    "find --max-rate 50 --objective errors=0 -d 200ms --message hushhush --reply echo tcp://TCP",
];

#[test]
fn what_is_redacted_is_nowhere() {
    let (server, echo) = (Serve::start(), ServeTcp::start("echo", &[]));
    let files = Stored::new();
    files.write("urls", "/?hushhush\n/status/200?b=hushhush\n");
    let target = format!("POST {}?hushhush\nX-B: hushhush\n\n", server.url("/"));
    files.write("targets", &target);
    files.write("requests.lua", "function init(arguments) end\n");
    let named = |words: &str| -> Vec<String> {
        let of = |word: &str| {
            word.replace("DIR/", &files.path(""))
                .replace("URL", &server.url("/"))
                .replace("WS", &server.url("/websocket").replace("http", "ws"))
                .replace("TCP", &echo.address.to_string())
                .replace('_', " ")
        };
        words.split_whitespace().map(of).collect()
    };
    let assert_nowhere = |outcome: &Outcome, names: &[&str], what: &str| {
        assert_hidden(outcome, "hushhush", what);
        for name in names {
            let text = files.text(name);
            assert!(!text.contains("hushhush"), "{what}, {name}: {text}");
            std::fs::remove_file(files.place(name)).expect("it is ours");
        }
    };
    for typed in TYPED {
        let words = named(typed);
        let with = |more: &str| match words.iter().position(|word| word.starts_with("http")) {
            // What stands behind the URL of a script is its own.
            Some(at) if typed.contains("requests.lua") => {
                [&words[..at], &named(more), &words[at..]].concat()
            }
            _ => [&words[..], &named(more)].concat(),
        };
        let (logs, names) = if typed.contains("--hold") {
            ("", &["a.json"][..])
        } else {
            (
                "--hdr-log DIR/a.hlog --hgrm DIR/a.hgrm --objective errors<90% \
                 --junit DIR/a.xml",
                &["a.json", "a.hlog", "a.hgrm", "a.xml"][..],
            )
        };
        let outcome = success_with(&with(&format!("--redact -v -o DIR/a.json {logs}")));
        assert_nowhere(&outcome, names, typed);
        // What was stored with it can be redacted later.
        success_with(&with("-o DIR/open.json"));
        for format in FORMS {
            let again = format!("report --redact -v --format {format} DIR/open.json");
            let outcome = success_with(&named(&again));
            assert_nowhere(&outcome, &[], &format!("{typed}, stored, as {format}"));
        }
    }
    for typed in TYPED_IN_EXPERIMENTS {
        let outcome = success_with(&[named(typed), named("--redact -o DIR/a.json")].concat());
        assert_nowhere(&outcome, &["a.json"], typed);
    }
    // Nor in what is said of what is wrong with it.
    for typed in [
        "tcp --redact -m {hushhush} --reply echo TCP",
        "tcp --redact -m a --first \\hushhush --reply echo TCP",
        "--redact --message {hushhush} WS",
    ] {
        let words = named(typed);
        let outcome = brunt_with(&words.iter().map(String::as_str).collect::<Vec<_>>()).exits(2);
        assert_hidden(&outcome, "hushhush", typed);
    }
}
