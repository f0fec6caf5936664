//! `brunt ab` beside the real ab: the same command lines give the same requests, the same text but
//! for its numbers, and the same exit code.

use std::process::Command;

use crate::dropin_wrk::masked;
use crate::support::at_once;
use crate::support::keeping::Keeping;
use crate::support::listener::Port;
use crate::support::process::{Outcome, Process, binary};

/// Runs `words`, in which `URL` stands for the server, by the real ab or by brunt.
fn run(is_real: bool, words: &[&str], url: &str) -> Outcome {
    let mut command = if is_real {
        Command::new("ab")
    } else {
        let mut command = binary();
        command.arg("ab");
        command
    };
    command.args(words.iter().map(|word| word.replace("URL", url)));
    Process::start(command).wait()
}

/// Lines with numbers masked, without what depends on how the times vary.
fn text(outcome: &Outcome) -> Vec<String> {
    let stdout = outcome.stdout.replace('<', " <").replace('>', "> ");
    let lines = masked(&stdout, "URL").into_iter();
    let lines = lines.map(|line| line.splitn(3, ' ').last().unwrap_or_default().to_owned());
    let is_doubt = |line: &String| {
        ["WARNING: ", "ERROR: ", "deviation apart", "These results"]
            .iter()
            .any(|begin| line.starts_with(begin))
    };
    // The host of a request has a port, which differs.
    let is_varying = |line: &String| is_doubt(line) || line.starts_with("Host: ");
    lines.filter(|line| !is_varying(line)).collect()
}

/// Standard error without brunt's own line.
fn told(outcome: &Outcome) -> String {
    let lines = outcome.stderr.lines();
    let lines = lines.filter(|line| !line.starts_with("brunt: "));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn runs_are_those_of_the_real_ab() {
    let body = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(body.path(), "{\"a\": 1}").expect("it is ours");
    let body = body.path().to_str().expect("a path in UTF-8");
    let cases: &[&[&str]] = &[
        &["-n", "20", "-c", "2", "URL/a?b=1"],
        &["-kn200", "-c4", "URL/"],
        &["-q", "-S", "-d", "-n", "6", "URL/500"],
        &[
            "-l",
            "-k",
            "-n",
            "5",
            "-H",
            "Host: other",
            "-H",
            "accept: x",
            "URL/",
        ],
        &[
            "-n5",
            "-p",
            body,
            "-T",
            "text/json",
            "-C",
            "c=d",
            "-A",
            "u:p",
            "-H",
            "X-A: 1",
            "URL/p",
        ],
        &["-n", "3", "-u", body, "URL/put"],
        &["-i", "-n", "3", "URL/"],
        &["-m", "PATCH", "-n", "3", "-P", "p:q", "-A", "u:p", "URL/"],
        &["-w", "-k", "-n", "4", "URL/"],
        &[
            "-x", "a", "-y", "b", "-z", "c", "-n", "160", "-c", "40", "-p", body, "URL/500",
        ],
        &["-v", "3", "-n", "2", "URL/"],
    ];
    at_once(cases.iter().copied(), |words| {
        let servers = [Keeping::start(), Keeping::start()];
        let url = |server: &Keeping| format!("http://{}", server.address);
        let real = run(true, words, &url(&servers[0]));
        let ours = run(false, words, &url(&servers[1]));
        assert_eq!(
            text(&real),
            text(&ours),
            "{words:?}\n{}\n{}",
            real.stdout,
            ours.stdout
        );
        assert_eq!((real.code, ours.code), (Some(0), Some(0)), "{words:?}");
        assert_eq!(told(&real), told(&ours), "{words:?}");
        assert_eq!(ours.stderr.matches("brunt: ").count(), 1, "{}", ours.stderr);
        let [real, ours] = servers.map(|server| server.requests());
        assert_eq!(real, ours, "{words:?}");
        assert_eq!(real.len(), 1, "{words:?}");
    });
}

#[test]
fn what_cannot_run_ends_as_in_the_real_ab() {
    let port = Port::refusing();
    let url = format!("http://{}", port.address);
    let cases: &[&[&str]] = &[
        &[],
        &["-h"],
        &["-V"],
        &["-x"],
        &["-n"],
        &["-n", "x", "URL/"],
        &["-c", "5", "URL/"],
        &["-c", "999999", "-n", "999999", "URL/"],
        &["URL"],
        &["URL/", "-n", "3"],
        &["-i", "-p", "/etc/hostname", "URL/"],
        &["-p", "/proc/nobody", "URL/"],
        &["-p", "/etc", "URL/"],
        &["-n", "2", "URL/"],
        &["-Y", "URL/"],
        &["http://a..b/"],
    ];
    at_once(cases.iter().copied(), |words| {
        let [real, ours] = [true, false].map(|is_real| run(is_real, words, &url));
        assert_eq!(real.stderr, ours.stderr, "{words:?}");
        assert_eq!(real.stdout, ours.stdout, "{words:?}");
        assert_eq!(real.code, ours.code, "{words:?}");
    });
}

#[test]
fn the_translation_is_printed_and_nothing_is_run() {
    let outcome = run(false, &["--explain", "-n9", "http://nobody.invalid/"], "");
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let first = outcome.stdout.lines().next();
    let expected = "brunt -c 1 -n 9 -T 30s --no-keepalive http://nobody.invalid/";
    assert_eq!(first, Some(expected));
}

#[test]
fn what_brunt_does_not_have_is_said() {
    for option in ["-fTLS1.1", "-ZAES128-SHA", "-n99999999"] {
        let outcome = run(false, &[option, "https://127.0.0.1:1/"], "");
        assert_eq!(outcome.code, Some(1), "{outcome:?}");
        assert!(outcome.stderr.starts_with("brunt: -"), "{outcome:?}");
    }
}

#[test]
fn files_have_the_shape_of_the_real_abs() {
    let files = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| files.path().join(name).display().to_string();
    let shapes = [true, false].map(|is_real| {
        let server = Keeping::start();
        let (tsv, csv) = (
            path(&format!("{is_real}.tsv")),
            path(&format!("{is_real}.csv")),
        );
        let words = ["-k", "-n", "7", "-c", "2", "-g", &tsv, "-e", &csv, "URL/"];
        let outcome = run(is_real, &words, &format!("http://{}", server.address));
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        [tsv, csv].map(|file| {
            let text = std::fs::read_to_string(&file).expect("it was written");
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            let columns = |line: &String| line.split(['\t', ',']).count();
            let shape: Vec<usize> = lines.iter().map(columns).collect();
            (lines[0].clone(), shape)
        })
    });
    assert_eq!(shapes[0], shapes[1]);
    assert_eq!(shapes[0][0].1, [6; 8]);
}
