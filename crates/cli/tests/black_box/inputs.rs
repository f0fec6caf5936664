//! What the options of the request make of it on the wire: typed, or read from files, standard
//! input and the environment; and stored runs from standard input.

use crate::support::process::{Outcome, Process, brunt_with, in_shell, refused};
use crate::support::recorder::Recorder;
use crate::support::run::{RunReport, run};
use crate::support::serve::Serve;
use crate::support::stored::Stored;

/// Runs the binary with `words`, in which `FILE` stands for a file that holds `input`. That is on
/// its standard input, too, and `SECRET` is in its environment.
fn brunt_reading(words: &[&str], input: &str) -> Outcome {
    let files = Stored::new();
    let path = files.write("input", input);
    let words: Vec<String> = words
        .iter()
        .map(|word| word.replace("FILE", &path))
        .collect();
    let mut command = in_shell(&format!("exec \"$@\" < {path}"), &words);
    command.env("SECRET", "from the environment");
    Process::start(command).wait()
}

/// Makes one request with `options`, which may read `input`, and gives it as it came.
fn one_request(options: &[&str], input: &str) -> String {
    let recorder = Recorder::start();
    let url = recorder.url("/path?query=1");
    let load = ["--format", "json", "-n", "1", "-c", "1"];
    let words = [&load, options, &[&url]].concat();
    let report = RunReport::of(brunt_reading(&words, input));
    let request = recorder.requests().remove(0).text;
    let bytes = report.number("/agents/0/negotiated/request_bytes");
    assert_eq!(request.len() as u64, bytes, "{options:?}");
    request
}

/// Options of the request, the input, and what the request holds, in large or small letters, with
/// `|` between: at its end before a `$`.
const REQUESTS: &[(&[&str], &str, &str)] = &[
    (
        &[],
        "",
        "GET /path?query=1 HTTP/1.1\r\n|\r\nHost: 127.|\r\n\r\n$",
    ),
    // A body makes it a POST.
    (
        &["--body", "some text"],
        "",
        "POST /path|\r\nContent-Length: 9\r\n|\r\n\r\nsome text$",
    ),
    (&["--body", ""], "", "POST /path|\r\nContent-Length: 0\r\n"),
    (
        &["-m", "PUT", "--body", "@FILE"],
        "line\r\n\r\nline",
        "PUT /path|\r\nContent-Length: 12\r\n|\r\n\r\nline\r\n\r\nline$",
    ),
    (
        &["-b", "@-"],
        "typed\nafter",
        "POST /path|\r\n\r\ntyped\nafter$",
    ),
    (&["-b", "@env:SECRET"], "", "\r\n\r\nfrom the environment$"),
    // Header fields are added and replace ours, and keep their order.
    (
        &["-Hhost:other.example", "-HX-Two:2", "-HUser-Agent:mine"],
        "",
        "\r\nhost: other.example\r\n|\r\nX-Two: 2\r\n|\r\nUser-Agent: mine\r\n",
    ),
    (
        &["-HX-Zero:0", "-H@FILE", "-HX-Last:3"],
        "X-One: 1\r\n\nX-Two:2\n",
        "X-Zero: 0\r\nX-One: 1\r\nX-Two: 2\r\nX-Last: 3\r\n",
    ),
    (
        &["-H", "@-"],
        "X-One: 1\nX-Two: 2",
        "X-One: 1\r\nX-Two: 2\r\n",
    ),
    (
        &["-H", "Authorization:@env:SECRET"],
        "",
        "\r\nAuthorization: from the environment\r\n",
    ),
    (&["--no-keepalive"], "", "\r\nConnection: close\r\n"),
    (&["--redact"], "", "GET /path?query=1 HTTP/1.1\r\n"),
    // The example of RFC 7617 section 2.
    (&["-u", "@FILE"], "Aladdin:open sesame\n", ALADDIN),
    (&["-u", "@-"], "Aladdin:open sesame", ALADDIN),
    (
        &["-u", "user:@env:SECRET"],
        "",
        "\r\nAuthorization: Basic dXNlcjpmcm9tIHRoZSBlbnZpcm9ubWVudA==\r\n",
    ),
];
const ALADDIN: &str = "\r\nAuthorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n";

#[test]
fn the_request_is_what_was_typed_or_read() {
    for (options, input, parts) in REQUESTS {
        let request = one_request(options, input).to_lowercase();
        assert_eq!(request.matches("\r\nhost:").count(), 1, "{request}");
        for part in parts.to_lowercase().split('|') {
            let is_there = match part.strip_suffix('$') {
                Some(end) => request.ends_with(end),
                None => request.contains(part),
            };
            assert!(is_there, "{options:?}: {part:?} in {request}");
        }
    }
}

#[test]
fn what_cannot_be_read_is_refused_without_its_text() {
    let files = Stored::new();
    let fields = files.write("fields", "Good: 1\nAuthorization hidden\n");
    let control = files.write("control", "Authorization: hid\u{1}den");
    let bare = files.write("bare", "hidden");
    let url = Recorder::start().url("/");
    for (arguments, words) in [
        (vec!["-H", "@/nonexistent/fields"], "/nonexistent/fields"),
        (vec!["-H", &format!("@{fields}")], "line 2"),
        (vec!["-H", &format!("@{control}")], "Authorization"),
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
        let outcome = brunt_with(&[&arguments[..], &[&url]].concat());
        refused(&outcome, words);
        for hidden in ["hidden", "hid\u{1}den"] {
            assert!(!outcome.stderr.contains(hidden), "{outcome:?}");
        }
    }
}

#[test]
fn a_stored_run_from_standard_input() {
    let server = Serve::start();
    let stored = run(&format!("-c 2 -n 50 {}", server.url("/"))).json;
    let outcome = brunt_reading(&["report", "-"], &stored.to_string()).exits(0);
    assert!(outcome.stdout.starts_with("http"), "{outcome:?}");
    let again = brunt_reading(&["report", "--format", "json", "-"], &stored.to_string()).json();
    assert_eq!(again["latencies"], stored["latencies"]);
    let outcome = brunt_reading(&["report", "-"], "garbage").exits(2);
    outcome.assert_says(&["standard input", "not JSON"]);
}

#[test]
fn a_request_may_be_given_byte_by_byte() {
    let text = "GET http://other/x HTTP/1.0\r\nx-a:b\r\nContent-length: 2\r\n\r\n";
    let files = Stored::new();
    let typed = text.replace("\r\n", "\\r\\n");
    for raw in [format!("@{}", files.write("raw", text)), typed] {
        let request = one_request(&["--no-keepalive", "--raw", &raw, "-b", "ab"], "");
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
