//! What is read from files, standard input and the environment: bodies, header fields,
//! credentials, stored runs.

use std::io::Write;
use std::process::Command;

use crate::support::process::{Outcome, Process, brunt_with, refused};
use crate::support::recorder::{Recorder, one_request};
use crate::support::run::{RunReport, run};
use crate::support::serve::Serve;

/// A file that holds `text`, and its path.
fn file(text: &str) -> (tempfile::NamedTempFile, String) {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("it is ours");
    let path = file.path().to_str().expect("a path in UTF-8").to_owned();
    (file, path)
}

/// Runs the binary with the blank-separated `words`, `input` on its standard input and `SECRET`
/// in its environment.
fn brunt_reading(words: &str, input: &str) -> Outcome {
    let (_file, path) = file(input);
    let script = format!("exec '{}' {words} < {path}", env!("CARGO_BIN_EXE_brunt"));
    let mut command = Command::new("sh");
    command
        .args(["-c", &script])
        .env("SECRET", "from the environment");
    Process::start(command).wait()
}

/// What one request of such a run holds.
fn request_reading(words: &str, input: &str) -> String {
    let recorder = Recorder::start();
    let load = format!("--format json -n 1 -c 1 {words} {}", recorder.url("/"));
    let report = RunReport::of(brunt_reading(&load, input));
    assert_eq!(report.requests().answered, 1);
    recorder.requests().remove(0).text
}

#[test]
fn a_body_from_a_file() {
    let body = "line\r\n\r\n".repeat(1_000);
    let (_file, path) = file(&body);
    let request = one_request(&["-m", "PUT", "--body", &format!("@{path}")]);
    assert!(request.starts_with("PUT "), "{request}");
    assert!(
        request.contains("\r\nContent-Length: 8000\r\n"),
        "{request}"
    );
    assert!(request.ends_with(&format!("\r\n\r\n{body}")));
}

#[test]
fn a_body_from_standard_input_or_the_environment() {
    let request = request_reading("-b @-", "typed\nafter");
    assert!(request.starts_with("POST "), "{request}");
    assert!(request.ends_with("\r\n\r\ntyped\nafter"), "{request}");
    let request = request_reading("-b @env:SECRET", "");
    assert!(
        request.ends_with("\r\n\r\nfrom the environment"),
        "{request}"
    );
}

#[test]
fn header_fields_from_a_file_keep_their_order() {
    let fields = "X-One: 1\r\n\nX-Two:2\n";
    let (_file, path) = file(fields);
    let request = one_request(&[
        "-H",
        "X-Zero: 0",
        "-H",
        &format!("@{path}"),
        "-H",
        "X-Last: 3",
    ]);
    let expected = "X-Zero: 0\r\nX-One: 1\r\nX-Two: 2\r\nX-Last: 3\r\n";
    assert!(request.contains(expected), "{request}");
    let request = request_reading("-H @-", "X-One: 1\nX-Two: 2");
    assert!(request.contains("X-One: 1\r\nX-Two: 2\r\n"), "{request}");
}

#[test]
fn a_header_field_from_the_environment() {
    let request = request_reading("-H 'Authorization: Bearer @env:SECRET'", "");
    let field = "\r\nAuthorization: Bearer from the environment\r\n";
    assert!(request.contains(field), "{request}");
}

#[test]
fn user_and_password() {
    // The example of RFC 7617 section 2.
    let (typed, field) = (
        "Aladdin:open sesame",
        "\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n",
    );
    let (_file, path) = file(&format!("{typed}\n"));
    for source in [typed, &format!("@{path}")] {
        let request = one_request(&["-u", source]);
        assert!(request.contains(field), "{source}: {request}");
    }
    let request = request_reading("-u @-", typed);
    assert!(request.contains(field), "{request}");
    let request = request_reading("-u user:@env:SECRET", "");
    let field = "\r\nAuthorization: Basic dXNlcjpmcm9tIHRoZSBlbnZpcm9ubWVudA==\r\n";
    assert!(request.contains(field), "{request}");
}

#[test]
fn what_cannot_be_read_is_refused_without_its_text() {
    let (_file, fields) = file("Good: 1\nAuthorization hidden\n");
    let (_other, control) = file("Authorization: hid\u{1}den");
    let (_third, bare) = file("hidden");
    for (arguments, words) in [
        (vec!["-H", "@/nonexistent/fields"], "/nonexistent/fields"),
        (vec!["-H", &format!("@{fields}")], "line 2"),
        (vec!["-H", &format!("@{control}")], "Authorization"),
        (
            vec!["-H", "X: @env:NO_SUCH_VARIABLE"],
            "@env:NO_SUCH_VARIABLE",
        ),
        (vec!["-H", "X: @env:"], "variable is missing"),
        (vec!["-H", "@"], "file is missing"),
        (vec!["-b", "@"], "file is missing"),
        (vec!["-b", "@-", "-H", "@-"], "standard input"),
        (vec!["-b", "@-", "-u", "@-"], "standard input"),
        (vec!["-u", "hidden"], "USER:PASSWORD"),
        (vec!["-u", "a:hid\u{1}den"], "control character"),
        (vec!["-u", &format!("@{bare}")], "USER:PASSWORD"),
        (
            vec!["-u", "a:hidden", "-H", "authorization: x"],
            "-H gives another",
        ),
    ] {
        let url = Recorder::start().url("/");
        let outcome = brunt_with(&[&arguments[..], &[&url]].concat());
        refused(&outcome, words);
        for hidden in ["hidden", "hid\u{1}den"] {
            assert!(
                !outcome.stderr.contains(hidden),
                "{arguments:?}: {outcome:?}"
            );
        }
    }
}

#[test]
fn a_stored_run_from_standard_input() {
    let server = Serve::start();
    let stored = run(&format!("-c 2 -n 50 {}", server.url("/")))
        .json
        .to_string();
    let outcome = brunt_reading("report -", &stored);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stdout.starts_with("http"), "{outcome:?}");
    let outcome = brunt_reading("report --format json -", &stored);
    let again: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("a whole report");
    assert_eq!(
        again["latencies"],
        serde_json::from_str::<serde_json::Value>(&stored).expect("it is")["latencies"]
    );
    let outcome = brunt_reading("report -", "garbage");
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    outcome.assert_says(&["standard input", "not JSON"]);
}

#[test]
fn a_request_may_be_given_byte_by_byte() {
    let text = "GET http://other/x HTTP/1.0\r\nx-a:b\r\nContent-length: 2\r\n\r\n";
    let (_file, path) = file(text);
    let typed = text.replace("\r\n", "\\r\\n");
    for raw in [format!("@{path}"), typed] {
        let request = one_request(&["--no-keepalive", "--raw", &raw, "-b", "ab"]);
        assert_eq!(request, format!("{text}ab"));
    }
    for (raw, says) in [
        ("GET / HTTP/1.1", "--raw"),
        ("", "--raw: incomplete request at 1:1"),
        ("\\q", "--raw: "),
    ] {
        let outcome = brunt_with(&["--raw", raw, "http://127.0.0.1:1/"]);
        refused(&outcome, says);
    }
}
