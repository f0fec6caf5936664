//! `brunt h2load` beside the real h2load: the same requests, the same text but for its numbers.

use std::process::Command;

use regex_lite::Regex;

use crate::support::keeping::Keeping;
use crate::support::nginx::{Nginx, Site};
use crate::support::process::{Outcome, Process, binary};
use crate::support::serve::Serve;

fn run(is_real: bool, words: &[&str], url: &str) -> Outcome {
    let mut command = if is_real {
        Command::new("h2load")
    } else {
        let mut command = binary();
        command.arg("h2load");
        command
    };
    command.args(words.iter().map(|word| word.replace("URL", url)));
    Process::start(command).wait()
}

/// `text` line by line, numbers with their units as `#`, and the length of the rows of its table.
fn masked(text: &str) -> Vec<String> {
    let number = Regex::new(r"^\(?[0-9]+(\.[0-9]+)?(us|ms|s|[KMG]?B(/s)?|%)?\)?,?$");
    let number = number.expect("an expression");
    let lines = text.lines().map(|line| {
        let words = line.split_whitespace();
        let words = words.map(|word| if number.is_match(word) { "#" } else { word });
        let words: Vec<&str> = words.collect();
        let is_row = line.starts_with("time ") || line.starts_with("req/s ");
        let length = if is_row { line.len() } else { 0 };
        format!("{length} {}", words.join(" "))
    });
    lines.collect()
}

#[test]
fn runs_over_http_1_are_those_of_the_real_h2load() {
    for words in [
        &["--h1", "-n", "10", "-c", "2", "URL/a?b"][..],
        &["--h1", "-n", "7", "-c", "2", "-t", "2", "URL/"],
        &["-p", "http/1.1", "-n", "4", "-H", "X-A: b", "URL/500"],
    ] {
        let servers = [Keeping::start(), Keeping::start()];
        let url = |server: &Keeping| format!("http://{}", server.address);
        let real = run(true, words, &url(&servers[0]));
        let ours = run(false, words, &url(&servers[1]));
        let [one, other] = [&real, &ours].map(|outcome| masked(&outcome.stdout));
        assert_eq!(one, other, "{words:?}\n{}\n{}", real.stdout, ours.stdout);
        assert_eq!((real.code, ours.code), (Some(0), Some(0)), "{words:?}");
        let [real, ours] = servers.map(|server| server.requests());
        assert_eq!(real, ours, "{words:?}");
    }
}

#[test]
fn streams_over_http_2_are_those_of_the_real_h2load() {
    let folder = tempfile::tempdir().expect("a directory");
    let clear = Serve::start();
    let secure = Serve::start_secure(&folder.path().join("cert.pem"), &[]);
    let body = folder.path().join("body");
    std::fs::write(&body, "a=1").expect("written");
    let body = body.to_str().expect("a path in UTF-8");
    for (server, words) in [
        (&clear, &["-n", "60", "-c", "3", "-m", "10", "URL/"][..]),
        (
            &clear,
            &["-n", "7", "-c", "2", "-m", "4", "-d", body, "URL/"],
        ),
        (
            &clear,
            &[
                "-n",
                "4",
                "-c",
                "2",
                "-m",
                "4",
                "-w16",
                "-W16",
                "URL/bytes/200000",
            ],
        ),
        (&clear, &["--h1", "-n", "12", "-c", "2", "-m", "3", "URL/"]),
        (&secure, &["-n", "20", "-c", "2", "-m", "5", "URL/"]),
        (
            &secure,
            &["-n", "20", "-c", "2", "-m", "5", "-d", body, "URL/"],
        ),
        (
            &secure,
            &[
                "-n",
                "12",
                "-c",
                "2",
                "-m",
                "3",
                "--npn-list=http/1.1",
                "URL/",
            ],
        ),
    ] {
        let url = server.url("");
        let before = server.counters().requests;
        let real = run(true, words, &url);
        let between = server.counters().requests;
        let ours = run(false, words, &url);
        let after = server.counters().requests;
        let [one, other] = [&real, &ours].map(|outcome| masked(&outcome.stdout));
        assert_eq!(one, other, "{words:?}\n{}\n{}", real.stdout, ours.stdout);
        assert_eq!((real.code, ours.code), (Some(0), Some(0)), "{words:?}");
        let of = |text: &str| {
            text.lines()
                .find(|line| line.starts_with("requests: "))
                .map(str::to_owned)
        };
        assert_eq!(of(&real.stdout), of(&ours.stdout), "{words:?}");
        assert_eq!(after - between, between - before, "{words:?}");
    }
}

#[test]
fn over_http_3_datagrams_and_times_are_those_of_newer_versions() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = Serve::start_secure(&folder.path().join("cert.pem"), &["--http3"]);
    let (url, words) = (server.url(""), ["-n", "20", "-c", "2", "-m", "5", "URL/"]);
    let real = run(true, &words, &url);
    for option in ["--h3", "--alpn-list=h3"] {
        let before = server.counters().requests;
        let ours = run(false, &[&[option], &words[..]].concat(), &url);
        assert_eq!(ours.code, Some(0), "{ours:?}");
        assert_eq!(server.counters().requests - before, 20, "{ours:?}");
        // What is above the times, without what depends on the version.
        let common = |text: &str| {
            let above = text.lines().take_while(|line| !line.starts_with("    "));
            let lines = above.filter(|line| {
                let begins = ["Cipher: ", "Server Temp Key: ", "UDP datagram: "];
                !begins.iter().any(|begin| line.starts_with(begin))
            });
            let lines: Vec<&str> = lines.collect();
            masked(&lines.join("\n").replace("protocol: h2", "protocol: h3"))
        };
        assert_eq!(common(&real.stdout), common(&ours.stdout), "{ours:?}");
        let time = r" +[1-9][0-9]*(\.[0-9]{2})?(us|ms|s)";
        let number = r" +[0-9]+\.[0-9]{2}";
        let expected = [
            "UDP datagram: [1-9][0-9]* sent, [1-9][0-9]* received".to_owned(),
            r" {17}min +max +median +p95 +p99 +mean +sd +\+/- sd".to_owned(),
            format!("request     : ({time}){{6}} +[0-9.]+(us|ms){number}%"),
            format!("connect     : ({time}){{6}} +[0-9.]+(us|ms){number}%"),
            format!("TTFB        : ({time}){{6}} +[0-9.]+(us|ms){number}%"),
            format!("req/s       : ({number}){{8}}%"),
        ];
        let lines: Vec<&str> = ours.stdout.lines().collect();
        let shown = &lines[lines.len() - expected.len()..];
        for (line, expected) in shown.iter().zip(&expected) {
            let expected = Regex::new(&format!("^{expected}$")).expect("an expression");
            assert!(expected.is_match(line), "{expected}: {line}");
        }
    }
}

#[test]
fn times_are_those_of_the_replies_that_are_counted() {
    let folder = tempfile::tempdir().expect("a directory");
    let server = Serve::start();
    let log = folder.path().join("log");
    let log = format!("--log-file={}", log.display());
    let words = [&*log, "-D", "500ms", "-c", "2", "URL/delay/900ms"];
    let ours = run(false, &words, &server.url(""));
    assert_eq!(ours.code, Some(0), "{ours:?}");
    assert!(ours.stdout.contains("\nstatus codes: 0 2xx,"), "{ours:?}");
    let row = |begin: &str| {
        let line = ours.stdout.lines().find(|line| line.starts_with(begin));
        let numbers = line.and_then(|line| line.split_once(':')).expect("a row").1;
        numbers
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let none = ["0us", "0us", "0us", "0us", "0.00%"];
    assert_eq!(row("time for request:"), none, "{ours:?}");
    assert_eq!(row("time to 1st byte:"), none, "{ours:?}");
    assert_ne!(row("time for connect:")[1], "0us", "{ours:?}");
    assert_eq!(row("req/s "), ["0.00", "0.00", "0.00", "0.00", "100.00%"]);
    let logged = std::fs::read_to_string(folder.path().join("log"));
    assert_eq!(logged.expect("a log"), "");
}

/// Where the real h2load counts the status of HTTP.
#[test]
fn failed_calls_of_grpc_are_errors() {
    let words = [
        "-n",
        "60",
        "-c",
        "3",
        "-m",
        "5",
        "-H",
        "content-type: application/grpc",
    ];
    let site = Site::clear(true).with("add_trailer grpc-status 12;");
    let _nginx = Nginx::start_sites(std::slice::from_ref(&site));
    let ours = run(
        false,
        &[&words[..], &["URL/100.html"]].concat(),
        &site.url(""),
    );
    assert_eq!(ours.code, Some(0), "{ours:?}");
    for line in [
        "requests: 60 total, 60 started, 0 done, 0 succeeded, 60 failed, 60 errored, 0 timeout",
        "status codes: 0 2xx, 0 3xx, 0 4xx, 0 5xx",
    ] {
        assert!(ours.stdout.lines().any(|found| found == line), "{ours:?}");
    }
}

#[test]
fn each_connection_sends_what_h2loads_does() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path.to_str().expect("a path in UTF-8").to_owned()
    };
    let (body, uris) = (path("body", "a=1"), path("uris", "http://h/u1\n/u2?x\n"));
    for words in [
        &["--h1", "-n", "7", "-c", "2", "URL/a", "URL/b?c"][..],
        &["--h1", "-n", "10", "-c", "3", "-t", "2", "URL/"],
        &[
            "--h1", "-n", "8", "-c", "2", "-m", "3", "-H", "X-A: b", "URL/",
        ],
        &["--h1", "-n", "4", "-m", "3", "-d", &body, "URL/p"],
        &["--h1", "-n", "6", "-c", "2", "-B", "URL", "-i", &uris],
        &["--h1", "-n", "6", "-c", "2", "--rps", "50", "URL/"],
        &["-p", "http/1.1", "-n", "5", "-c", "2", "URL/close"],
    ] {
        let servers = [Keeping::start(), Keeping::start()];
        let url = |server: &Keeping| format!("http://{}", server.address);
        let ended = [
            run(true, words, &url(&servers[0])),
            run(false, words, &url(&servers[1])),
        ];
        for outcome in &ended {
            assert_eq!(outcome.code, Some(0), "{words:?}: {outcome:?}");
        }
        let [real, ours] = servers.map(|server| {
            let address = server.address.to_string();
            let mut sequences = server.sequences();
            for request in sequences.iter_mut().flatten() {
                *request = request.replace(&address, "ADDRESS");
            }
            sequences.sort();
            sequences
        });
        assert_eq!(ours, real, "{words:?}");
    }
}

#[test]
fn what_is_wrong_ends_as_in_the_real_h2load() {
    for words in [
        &[][..],
        &["--version"],
        &["-n", "x", "http://h/"],
        &["-n", "1", "-c", "2", "http://h/"],
        &["-r", "1", "-D", "1", "http://h/"],
        &["-p", "foo", "http://h/"],
    ] {
        let [real, ours] = [true, false].map(|is_real| run(is_real, words, ""));
        assert_eq!(real.stderr, ours.stderr, "{words:?}");
        assert_eq!(real.stdout, ours.stdout, "{words:?}");
        assert_eq!(real.code, ours.code, "{words:?}");
    }
    let ours = run(false, &["--h3", "http://h/"], "");
    assert_eq!(ours.code, Some(1), "{ours:?}");
    assert!(ours.stderr.starts_with("brunt: "), "{ours:?}");
}
