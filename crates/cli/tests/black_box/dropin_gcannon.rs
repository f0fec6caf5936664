//! `brunt gcannon`: its requests, its text and JSON, its exit codes; and raw requests of brunt's
//! own, whose numbers are the same.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::keeping::Keeping;
use crate::support::process::{Outcome, Process, binary, brunt_with};
use crate::support::serve::Serve;

fn gcannon(words: &str) -> Outcome {
    let mut command = binary();
    command.arg("gcannon").args(words.split_whitespace());
    Process::start(command).wait()
}

/// A directory with a file for each text, named `0`, `1` and so on.
fn files(texts: &[&str]) -> (TempDir, Vec<String>) {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let paths = texts.iter().enumerate().map(|(number, text)| {
        let path = directory.path().join(number.to_string());
        fs::write(&path, text).expect("it can be written");
        path.display().to_string()
    });
    let paths = paths.collect();
    (directory, paths)
}

/// The number before or behind `words` in a text.
fn count(text: &str, behind: &str) -> u64 {
    let (_, rest) = text
        .split_once(behind)
        .unwrap_or_else(|| panic!("{behind}: {text}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits
        .parse()
        .unwrap_or_else(|_| panic!("{behind}: {text}"))
}

#[test]
fn the_text_has_what_the_boards_read() {
    let server = Serve::start();
    let url = server.url("/");
    let outcome = gcannon(&format!("{url} -c 8 -t 2 -d 1 -p 4"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let text = &outcome.stdout;
    let address = url.trim_start_matches("http://");
    let heading = format!(
        "gcannon v0.5.3\n  Target:    {address}\n  Threads:   2\n  Conns:     8 (4/thread)\n  \
         Pipeline:  4\n  Req/conn:  unlimited (keep-alive)\n  Expected:  200\n  Duration:  1s\n\n"
    );
    assert!(text.starts_with(&heading), "{text}");
    let responses = count(text, "requests in 1.00s, ");
    assert!(responses > 0 && count(text, "2xx=") == responses, "{text}");
    // Latencies are of requests of the window, of which up to 32 are answered behind it.
    let samples = count(text, "Latency samples: ");
    assert!((responses..=responses + 32).contains(&samples), "{text}");
    let received = server.settled().requests;
    // Those in flight at the end are not counted.
    assert!(
        (responses..=responses + 32).contains(&received),
        "{received}: {text}"
    );
    for absent in ["Reconnects", "Errors", "Per-template", "WARNING"] {
        assert!(!text.contains(absent), "{text}");
    }
}

#[test]
fn files_are_sent_in_equal_turns_with_their_numbers() {
    let server = Keeping::start();
    let host = server.address.to_string();
    let get = format!("GET /a/{{RAND:10:99}} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let post = "POST /b HTTP/1.1\r\nHost: o\r\nContent-Length: 9\r\n\r\nid={SEQ:100001}";
    let (_directory, paths) = files(&[&get, post]);
    let outcome = gcannon(&format!(
        "--raw {} -c 4 -t 2 -d 1 -r 5 --json",
        paths.join(",")
    ));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let json: Value = serde_json::from_str(&outcome.stdout).expect("it is JSON alone");
    let responses = json["responses"].as_u64().expect("a number");
    assert_eq!(json["status"]["2xx"].as_u64(), Some(responses));
    assert!(json["reconnects"].as_u64() > Some(3), "{json}");
    let per_file = [0, 1].map(|at| json["per_template"][at]["2xx"].as_u64().expect("a number"));
    // Two workers have sent at most one more of one of them.
    assert!(per_file[0].abs_diff(per_file[1]) <= 4, "{json}");
    let sent: Vec<String> = server.sequences().concat();
    let of_post = sent.iter().filter_map(|it| it.rsplit_once("\r\n\r\nid="));
    let mut sequence: Vec<u64> = of_post.map(|(_, id)| id.parse().expect("an id")).collect();
    sequence.sort_unstable();
    let different: BTreeSet<u64> = sequence.iter().copied().collect();
    assert_eq!(different.len(), sequence.len(), "a number was sent twice");
    assert_eq!(sequence[0], 100_001);
    let of_get = sent.iter().filter_map(|it| it.strip_prefix("GET /a/"));
    let drawn: Vec<u64> = of_get
        .map(|it| it[..2].parse().expect("a number"))
        .collect();
    assert!(drawn.len() > 20 && drawn.iter().all(|it| (10..100).contains(it)));
    // Nobody asks for the end of a connection.
    assert!(sent.iter().all(|it| !it.contains("Connection")), "{sent:?}");
}

#[test]
fn statuses_decide_about_the_exit_code() {
    let server = Serve::start();
    let url = server.url("/status/404");
    let outcome = gcannon(&format!("{url} -c 2 -d 1"));
    assert_eq!(outcome.code, Some(1), "{outcome:?}");
    assert!(outcome.stdout.contains("\n\n  WARNING: "), "{outcome:?}");
    assert_eq!(gcannon(&format!("{url} -c 2 -d 1 -s 404")).code, Some(0));
}

#[test]
fn frames_are_counted() {
    let server = Serve::start();
    let outcome = gcannon(&format!("{} --ws -c 3 -d 1 -p 2", server.url("/websocket")));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let text = &outcome.stdout;
    assert!(text.starts_with("gcannon v0.5.3 [WS]\n"), "{text}");
    let frames = count(text, "frames sent in 1.00s, ");
    assert!(frames > 0, "{text}");
    assert_eq!(
        (count(text, "WS upgrades: "), count(text, "WS frames:   ")),
        (3, frames)
    );
}

#[test]
fn what_cannot_run_is_said() {
    for (words, says) in [
        ("", "Usage: gcannon"),
        ("https://h/", "Error: only http:// URLs supported\n"),
        (
            "http://h/ --raw /nowhere",
            "Error: cannot open raw request file '/nowhere'\n",
        ),
        (
            "http://127.0.0.1:1/ -d 1",
            "Error: cannot connect to '127.0.0.1': Connection refused\n",
        ),
    ] {
        let outcome = gcannon(words);
        assert_eq!(outcome.code, Some(1), "{words}: {outcome:?}");
        assert!(outcome.stderr.starts_with(says), "{words}: {outcome:?}");
    }
}

#[test]
fn explained_lines_send_the_same() {
    let server = Keeping::start();
    let host = server.address.to_string();
    let get = format!("GET /{{SEQ:100}} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let (_directory, paths) = files(&[&get]);
    let outcome = gcannon(&format!("--explain --raw {} -c 1", paths[0]));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let line = outcome.stdout.trim().to_owned();
    assert!(
        outcome.stderr.contains("each number of {SEQ:START} once"),
        "{outcome:?}"
    );
    let words: Vec<&str> = line.split(' ').skip(1).collect();
    let outcome = brunt_with(&[&words[..], &["-n", "20"]].concat());
    assert_eq!(outcome.code, Some(0), "{line}: {outcome:?}");
    let expected: BTreeSet<String> = (100..120)
        .map(|number| format!("GET /{number} HTTP/1.1\r\nHost: ADDRESS\r\n\r\n"))
        .collect();
    assert_eq!(server.requests(), expected, "{line}");
}

#[test]
fn lists_fields_and_bodies_are_filled_in() {
    let server = Keeping::start();
    let url = format!("http://{}/a/{{{{rand 5 5}}}}?n={{{{seq}}}}", server.address);
    let body = "{\"id\": {{seq 7}}, \"name\": \"{{seq}} \\{{seq}}\"}";
    let words = [
        "-n",
        "3",
        "-c",
        "1",
        "-H",
        "X-N: {{seq 20}}",
        "-b",
        body,
        "--seed",
        "3",
        &url,
    ];
    let outcome = brunt_with(&words);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(
        outcome.stdout.contains("random numbers (seed 3)"),
        "{outcome:?}"
    );
    let expected: BTreeSet<String> = (0..3)
        .map(|at| {
            let (one, seven, twenty) = (1 + at, 7 + at, 20 + at);
            let body = format!("{{\"id\": {seven:12}, \"name\": \"{one:012} {{{{seq}}}}\"}}");
            format!(
                "POST /a/5?n={one:012} HTTP/1.1\r\nHost: ADDRESS\r\nX-N: \
                 {twenty:012}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            )
        })
        .collect();
    assert_eq!(server.requests(), expected);
    for (words, says) in [
        (&["-H", "X: {{seq x}}"][..], "`{{seq x}}` is not filled in"),
        (&["--seed", "3"][..], "--seed"),
    ] {
        let outcome = brunt_with(&[words, &["-n", "1", &url.replace("{{", "{")]].concat());
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(says), "{words:?}: {outcome:?}");
    }
}
