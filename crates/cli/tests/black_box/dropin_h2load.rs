//! `brunt h2load` where no table of command lines has it: HTTP/3, times, failed calls of gRPC.

use regex_lite::Regex;

use crate::support::nginx::{Nginx, Site};
use crate::support::process::{Outcome, tool};
use crate::support::serve::Serve;
use crate::support::stored::Stored;

fn run(words: &[&str], url: &str) -> Outcome {
    tool("h2load", false, words, url)
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
fn over_http_3_datagrams_and_times_are_those_of_newer_versions() {
    let server = Serve::start_secure(&["--http3"]);
    let (url, words) = (server.url(""), ["-n", "20", "-c", "2", "-m", "5", "URL/"]);
    let real = tool("h2load", true, &words, &url);
    for option in ["--h3", "--alpn-list=h3"] {
        let before = server.counters().requests;
        let ours = run(&[&[option], &words[..]].concat(), &url).exits(0);
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
    let (server, files) = (Serve::start(), Stored::new());
    let log = format!("--log-file={}", files.path("log"));
    let words = [&*log, "-D", "500ms", "-c", "2", "URL/delay/900ms"];
    let ours = run(&words, &server.url("")).exits(0);
    assert!(ours.stdout.contains("\nstatus codes: 0 2xx,"), "{ours:?}");
    let row = |begin: &str| {
        let line = ours.stdout.lines().find(|line| line.starts_with(begin));
        let numbers = line.and_then(|line| line.split_once(':')).expect("a row").1;
        let numbers = numbers.split_whitespace();
        numbers.map(str::to_owned).collect::<Vec<_>>()
    };
    let none = ["0us", "0us", "0us", "0us", "0.00%"];
    assert_eq!(row("time for request:"), none, "{ours:?}");
    assert_eq!(row("time to 1st byte:"), none, "{ours:?}");
    assert_ne!(row("time for connect:")[1], "0us", "{ours:?}");
    assert_eq!(row("req/s "), ["0.00", "0.00", "0.00", "0.00", "100.00%"]);
    assert_eq!(files.text("log"), "");
}

/// Where the real h2load counts the status of HTTP.
#[test]
fn failed_calls_of_grpc_are_errors() {
    let field = "content-type: application/grpc";
    let words = [
        "-n",
        "60",
        "-c",
        "3",
        "-m",
        "5",
        "-H",
        field,
        "URL/100.html",
    ];
    let site = Site::clear(true).with("add_trailer grpc-status 12;");
    let _nginx = Nginx::start_sites(std::slice::from_ref(&site));
    let ours = run(&words, &site.url("")).exits(0);
    for line in [
        "requests: 60 total, 60 started, 0 done, 0 succeeded, 60 failed, 60 errored, 0 timeout",
        "status codes: 0 2xx, 0 3xx, 0 4xx, 0 5xx",
    ] {
        assert!(ours.stdout.lines().any(|found| found == line), "{ours:?}");
    }
}
