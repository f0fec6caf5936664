//! Standard output and standard error that take nothing, or not for long: no command and no drop-in
//! ends by them, and only what a full standard output loses changes the exit code.

use std::path::Path;

use crate::support::process::{Process, brunt_with, in_shell};
use crate::support::serve::{Serve, ServeTcp};
use crate::support::simulated::{plan, simulate};
use crate::support::stored::Stored;
use crate::support::{at_once, wait_for};

/// What a shell does with both streams of `"$@"`. `$CODE` names the file for its exit code.
const STREAMS: [(&str, &str); 4] = [
    ("both closed", "\"$@\" >&- 2>&-; echo $? >\"$CODE\""),
    (
        "both full",
        "\"$@\" >/dev/full 2>/dev/full; echo $? >\"$CODE\"",
    ),
    (
        "messages nowhere",
        "\"$@\" >/dev/null 2>/dev/full; echo $? >\"$CODE\"",
    ),
    (
        "a reader of one line",
        "{ \"$@\" 2>&1; echo $? >\"$CODE\"; } | head -n 1",
    ),
];

/// The exit code of brunt called with `words` and such streams.
fn code_with(streams: &str, words: &[&str], file: &Path) -> String {
    let _ = std::fs::remove_file(file);
    let mut command = in_shell(streams, words);
    command.env("CODE", file);
    Process::start(command).wait();
    // With a pipe the shell ends when the reader does.
    let code = wait_for("the exit code is written", || {
        let text = std::fs::read_to_string(file).ok()?;
        text.ends_with('\n').then_some(text)
    });
    code.trim().to_owned()
}

/// The exit code that `call` gives, which calls again where a busy machine has left a run too
/// little of its window: that is a verdict of its own.
fn unless_invalid(call: impl Fn() -> String) -> String {
    const ATTEMPTS: usize = 5;
    let mut codes = (0..ATTEMPTS).map(|_| call());
    codes
        .find(|code| code != "3")
        .unwrap_or_else(|| "3".to_owned())
}

/// Whether `lines` exit alike with all streams, and with the code before each.
fn exit_alike(lines: &[(i32, String)]) {
    check_codes(lines, |code| code);
}

/// As [`exit_alike`], but for a standard output that is full: what was to be there is lost.
fn exit_alike_unless_full(lines: &[(i32, String)]) {
    check_codes(lines, |_| 2);
}

fn check_codes(lines: &[(i32, String)], of_full: fn(i32) -> i32) {
    at_once(lines, |(code, line)| {
        let files = Stored::new();
        let words: Vec<&str> = line.split_whitespace().collect();
        let (code, full) = (code.to_string(), of_full(*code).to_string());
        let good = unless_invalid(|| {
            let good = brunt_with(&words);
            good.code
                .map_or(format!("{good:?}"), |code| code.to_string())
        });
        assert_eq!(good, code, "{line}");
        for (name, streams) in STREAMS {
            let found = unless_invalid(|| code_with(streams, &words, &files.place("code")));
            let expected = if name == "both full" { &full } else { &code };
            assert_eq!(&found, expected, "{line}: {name}");
        }
    });
}

#[test]
fn runs_exit_as_with_good_streams() {
    let (server, files) = (Serve::start(), Stored::new());
    let text = "print('setup')\nfunction done() print('done') end\n";
    let (url, script) = (server.url("/"), files.write("prints.lua", text));
    exit_alike_unless_full(&[
        (0, format!("-c 2 -n 50 {url}")),
        (0, format!("-c 2 -n 50 --format json {url}")),
        (0, format!("-c 2 -n 50 --format summary {url}")),
        (0, format!("-c 2 -n 50 --format csv {url}")),
        (0, format!("-c 2 -n 50 -s {script} {url}")),
        (0, "-d 100ms".to_owned()),
        (1, format!("-c 2 -n 50 --objective p50<1ns {url}")),
        (1, format!("-c 2 -n 50 {}", server.url("/status/404"))),
        (2, "-n 10 http://127.0.0.1:1/".to_owned()),
        (2, "--no-such".to_owned()),
        (0, "--help".to_owned()),
    ]);
}

#[test]
fn commands_exit_as_with_good_streams() {
    let server = Serve::start();
    let echo = ServeTcp::start("echo=line", &[]);
    let (url, tcp) = (server.url("/"), echo.address);
    let files = Stored::new();
    let (a, sweep) = (files.path("a.json"), files.path("s.json"));
    let plan = plan("http://simulated/", [64, 1], [1_000, 200]);
    simulate(plan, None, &files.place("a.json"));
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/stored_run");
    let rounds = "-t 1 -d 100ms --warmup 20ms";
    exit_alike_unless_full(&[
        (0, format!("report {a}")),
        (0, format!("report --format csv {a}")),
        (1, format!("report --objective p50<1ns {a}")),
        (2, "report /nowhere.json".to_owned()),
        (2, format!("merge {a} {a}")),
        (0, format!("report {corpus}/comparison")),
        (0, format!("report {corpus}/capacity")),
        (
            0,
            format!("sweep -c 1,2 --rounds 1 {rounds} -o {sweep} {url}"),
        ),
        (1, format!("find {rounds} -r 10k --objective p50<1ns {url}")),
        (0, format!("tcp -m PING\\n --reply line -d 100ms {tcp}")),
    ]);
}

#[test]
fn drop_ins_exit_as_with_good_streams() {
    let server = Serve::start();
    let tcp = ServeTcp::start("echo=line", &[]);
    let (url, address) = (server.url("/"), server.address());
    let (host, port) = address.split_once(':').expect("an address");
    // The tools themselves do not look at what standard output says, but for oha.
    exit_alike(&[
        (0, format!("wrk -t1 -c2 -d1 {url}")),
        (0, format!("wrk2 -t1 -c2 -d1 -R100 {url}")),
        (1, "wrk -d1 http://127.0.0.1:1/".to_owned()),
        (1, "wrk --no-such".to_owned()),
        (0, format!("ab -n 50 -c 2 {url}")),
        (0, format!("weighttp -n 50 -c 2 {url}")),
        (0, format!("h2load -n 50 -c 2 {url}")),
        (
            0,
            format!("httperf --server {host} --port {port} --num-conns 5"),
        ),
        (0, format!("tcpkali -T200ms -c2 -m PING\\n {}", tcp.address)),
    ]);
    check_codes(&[(0, format!("oha --no-tui -n 50 -c 2 {url}"))], |_| 1);
}

#[test]
fn a_report_that_standard_output_does_not_take_is_a_message() {
    let (server, files) = (Serve::start(), Stored::new());
    let url = server.url("/");
    let refused = |output: &str| {
        let words = ["-d", "100ms", &url, "-o", output];
        Process::start(in_shell("exec \"$@\" >/dev/full", &words))
            .wait()
            .exits(2)
    };
    let outcome = refused(&files.path("run.json"));
    let expected = "brunt: cannot write to standard output: No space left on device (os error 28)";
    assert_eq!(outcome.stderr.trim_end(), expected);
    assert!(files.text("run.json").contains("\"brunt_version\""));
    // What was asked for there by name is a file like others.
    refused("-");
}
