//! Standard output and standard error that take nothing, or not for long: no command and no drop-in
//! ends by them, and only what a full standard output loses changes the exit code.

use std::path::Path;
use std::process::Command;

use crate::support::process::{Process, binary, brunt_with};
use crate::support::serve::{Serve, ServeTcp};
use crate::support::simulated::{plan, simulate};
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
fn code_with(streams: &str, words: &[&str], directory: &Path) -> String {
    let file = directory.join("code");
    let _ = std::fs::remove_file(&file);
    let brunt = binary();
    let mut command = Command::new("sh");
    for (name, value) in brunt.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("CODE", &file).args(["-c", streams, "sh"]);
    command.arg(brunt.get_program()).args(words);
    Process::start(command).wait();
    // With a pipe the shell ends when the reader does.
    let code = wait_for("the exit code is written", || {
        let text = std::fs::read_to_string(&file).ok()?;
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
        let directory = tempfile::tempdir().expect("a temporary directory");
        let words: Vec<&str> = line.split_whitespace().collect();
        let (code, full) = (code.to_string(), of_full(*code).to_string());
        let good = unless_invalid(|| {
            let good = brunt_with(&words);
            good.code
                .map_or_else(|| format!("{good:?}"), |code| code.to_string())
        });
        assert_eq!(good, code, "{line}");
        for (name, streams) in STREAMS {
            let found = unless_invalid(|| code_with(streams, &words, directory.path()));
            let expected = if name == "both full" { &full } else { &code };
            assert_eq!(&found, expected, "{line}: {name}");
        }
    });
}

#[test]
fn runs_exit_as_with_good_streams() {
    let server = Serve::start();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let script = directory.path().join("prints.lua");
    let text = "print('setup')\nfunction done() print('done') end\n";
    std::fs::write(&script, text).expect("the directory is ours");
    let (url, script) = (server.url("/"), script.display());
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
    let tcp = ServeTcp::start("echo=line", &[]);
    let url = server.url("/");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let plan = plan("http://simulated/", [64, 1], [1_000, 200]);
    simulate(plan, None, &directory.path().join("a.json"));
    let a = path("a.json");
    let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/stored_run");
    let rounds = "-t 1 -d 100ms --warmup 20ms";
    exit_alike_unless_full(&[
        (0, format!("report {a}")),
        (0, format!("report --format csv {a}")),
        (1, format!("report --objective p50<1ns {a}")),
        (2, "report /nowhere.json".to_owned()),
        (2, format!("merge {a} {a}")),
        (0, format!("report {corpus}/comparison")),
        (1, format!("report {corpus}/comparison_capacity")),
        (0, format!("report {corpus}/capacity")),
        (
            0,
            format!(
                "sweep -c 1,2 --rounds 1 {rounds} -o {} {url}",
                path("s.json")
            ),
        ),
        (1, format!("find {rounds} -r 10k --objective p50<1ns {url}")),
        (
            0,
            format!("tcp -m PING\\n --reply line -d 100ms {}", tcp.address),
        ),
    ]);
}

#[test]
fn drop_ins_exit_as_with_good_streams() {
    let server = Serve::start();
    let tcp = ServeTcp::start("echo=line", &[]);
    let (url, host) = (server.url("/"), server.url("").replace("http://", ""));
    let (host, port) = host.split_once(':').expect("an address");
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
    let directory = tempfile::tempdir().expect("a temporary directory");
    let file = directory.path().join("run.json");
    let server = Serve::start();
    let start = |output: &Path| {
        let mut command = Command::new("sh");
        command.args(["-c", "exec \"$0\" \"$@\" >/dev/full"]);
        command.arg(binary().get_program());
        command
            .args(["-d", "100ms", &server.url("/"), "-o"])
            .arg(output);
        Process::start(command).wait()
    };
    let outcome = start(&file);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    let said: Vec<&str> = outcome.stderr.lines().collect();
    let expected = "brunt: cannot write to standard output: No space left on device (os error 28)";
    assert_eq!(said, [expected], "{outcome:?}");
    let stored = std::fs::read_to_string(&file).expect("it is written");
    assert!(stored.contains("\"brunt_version\""), "{stored}");
    // What was asked for there by name is a file like others.
    let outcome = start(Path::new("-"));
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
}
