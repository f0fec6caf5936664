//! Long lists, large bodies and files without an end: what is too much is refused before the load
//! with what to type, and what is not takes as much memory as it has to.

use crate::support::keeping::Keeping;
use crate::support::process::{Outcome, brunt, limited, refused, success, tool};
use crate::support::run::{RunReport, run};
use crate::support::serve::Serve;
use crate::support::stored::Stored;

/// A list of so many different URLs of so many bytes each, with its line ends.
fn list(files: &Stored, urls: usize, bytes: usize) -> (String, u64) {
    let line = |number| {
        let name = format!("/bytes/1?{number}");
        name.clone() + &"x".repeat(bytes - 1 - name.len()) + "\n"
    };
    let text: String = (0..urls).map(line).collect();
    (files.write("list", &text), text.len() as u64)
}

/// Runs the binary with at most so much address space: what is read without a bound ends it.
fn with_memory(mib: u64, words: &str) -> Outcome {
    limited(&format!("ulimit -v {}", mib << 10), words)
}

/// What a run of one request takes, and some room.
const BASE_BYTES: u64 = 26 << 20;
/// What a name may take beside three times its text, in one worker.
const NAME_BYTES: u64 = 420;

#[test]
fn a_list_takes_three_times_its_text() {
    let server = Serve::start();
    let files = Stored::new();
    for (urls, bytes) in [(100_000, 37), (10_000, 1_000)] {
        let (list, text_bytes) = list(&files, urls, bytes);
        let load = format!("-c 8 -t 1 -n {urls} --urls {list}");
        let report = run(&format!("{load} {}", server.url("/")));
        assert_eq!(report.finding("R1")["status"], "held", "{load}");
        let resident = report.number("/agents/0/host/peak_resident_bytes");
        let most = BASE_BYTES + 3 * text_bytes + NAME_BYTES * urls as u64;
        assert!(resident <= most, "{load}: {resident} of {most}");
        let names = report.at("/names").as_array().expect("a list");
        assert_eq!(names.len(), urls);
        assert!(names.iter().all(|name| name["requests_sent"] == 1));
    }
}

#[test]
fn what_is_stored_of_a_long_list_is_read_back() {
    let server = Serve::start();
    let files = Stored::new();
    let (list, _) = list(&files, 20_000, 60);
    let (stored, url) = (files.path("run.json"), server.url("/"));
    success(&format!("-c 8 -n 40000 -o {stored} --urls {list} {url}"));
    let again = RunReport::of(brunt(&format!("report --format json {stored}")));
    assert_eq!(again.at("/names").as_array().map(Vec::len), Some(20_000));
}

#[test]
fn files_without_an_end_are_refused() {
    let url = "https://127.0.0.1:1/";
    let files = Stored::new();
    let targets = files.write("targets", "POST http://127.0.0.1:1/\n@/dev/zero\n");
    for words in [
        &format!("--cacert /dev/zero -d 100ms {url}"),
        &format!("--cert /dev/zero --key /dev/zero -d 100ms {url}"),
        &format!("-b @/dev/zero -d 100ms {url}"),
        &format!("-H @/dev/zero -d 100ms {url}"),
        &format!("--urls /dev/zero -d 100ms {url}"),
        &format!("--targets {targets} -d 100ms"),
        "serve --tls --cert /dev/zero --key /dev/zero --listen 127.0.0.1:0",
        &format!("ab -n 1 -p /dev/zero {url}"),
        "weighttp -n 1 -p /dev/zero http://127.0.0.1:1/",
        &format!("h2load -n 1 -d /dev/zero {url}"),
        &format!("h2load -n 1 -i /dev/zero {url}"),
        "oha -n 1 -D /dev/zero http://127.0.0.1:1/",
        "tcpkali -T 1 --message-file /dev/zero 127.0.0.1:1",
        "report /dev/zero",
    ] {
        let outcome = with_memory(3_000, words);
        // tcpkali has an exit code of its own for what it cannot read.
        assert!(matches!(outcome.code, Some(1 | 2 | 65)), "{outcome:?}");
        let is_named = ["MiB", "bytes", "too large"]
            .iter()
            .any(|word| outcome.stderr.contains(word));
        assert!(is_named, "{words}: {outcome:?}");
    }
}

#[test]
fn a_large_upload_is_held_once_for_all_connections() {
    const BODY_BYTES: usize = 20 << 20;
    let server = Serve::start();
    let files = Stored::new();
    let (path, stored) = (files.path("upload"), files.path("run.json"));
    let request = |text: &str| {
        let fields = format!("Host: a\r\nContent-Length: {BODY_BYTES}");
        let head = format!("POST /{text} HTTP/1.1\r\n{fields}\r\n\r\n");
        let mut bytes = head.into_bytes();
        bytes.resize(bytes.len() + BODY_BYTES, b'x');
        files.write("upload", bytes);
    };
    let words = |connections| {
        let load = format!("--raw @{path} -c {connections} -t 2 -d 1 -o {stored}");
        format!("{load} {}", server.url("/"))
    };
    request("");
    let outcome = success(&words(16));
    let read = RunReport::of(brunt(&format!("report --format json {stored}")));
    assert!(read.requests().answered > 0, "{outcome:?}");
    let resident = read.number("/agents/0/host/peak_resident_bytes");
    // The file, what its request means, what is encoded, and what is sent.
    let most = BASE_BYTES + 5 * BODY_BYTES as u64;
    assert!(resident <= most, "{resident} of {most}");
    // What is filled in is another one on each connection.
    request("{{seq}}");
    let outcome = brunt(&words(10_000));
    refused(&outcome, "of memory are needed");
}

#[test]
fn a_pipeline_without_measure_is_refused() {
    let words = ["-K", "10000000k", "-n", "10", "URL"];
    let outcome = tool("weighttp", false, &words, &Keeping::start().url("/")).exits(1);
    outcome.assert_says(&["smaller --pipeline"]);
}
