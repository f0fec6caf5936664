//! Text that strangers wrote, in files, on pages and in arguments: no terminal obeys it, and no
//! spreadsheet computes it.

use std::io::{Read, Write};
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::support::PATIENCE;
use crate::support::process::{Outcome, brunt_with};
use crate::support::run::run;
use crate::support::serve::Serve;

/// Escape sequences in both of their forms, and marks that turn lines around.
const HOSTILE: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}\u{2066}\u{200f}\u{61c}\u{200b}\
                       \u{2028}\r";

/// Checks that `text` holds nothing that a terminal obeys, beside the ends of its lines.
#[track_caller]
fn assert_printable(text: &str) {
    let is_harmful = |character: char| {
        (character.is_control() && character != '\n')
            || matches!(
                character,
                '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}' | '\u{feff}'
            )
    };
    assert!(!text.contains(is_harmful), "{text:?}");
}

/// Reports `run` as it is stored, with `options`.
fn report(run: &Value, options: &[&str]) -> Outcome {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), run.to_string()).expect("it is ours");
    let name = file.path().to_str().expect("a path in UTF-8");
    brunt_with(&[&["report"], options, &[name]].concat())
}

#[test]
fn an_unknown_word_of_a_stored_run_is_named_harmlessly() {
    let mut run = run("-c 2 -n 50").json;
    run["agents"][0]["backend"] = json!(format!("uring{HOSTILE}"));
    let outcome = report(&run, &[]);
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    assert_eq!(outcome.stdout, "");
    assert_printable(&outcome.stderr);
    assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
    assert!(outcome.stderr.contains("uring\\u{1b}[2J"), "{outcome:?}");
}

#[test]
fn every_report_of_a_strangers_run_is_harmless() {
    let server = Serve::start();
    let mut run = run(&format!("-c 2 -n 50 {}", server.url("/"))).json;
    for path in [
        "/plan/url",
        "/agents/0/negotiated/address",
        "/plan/requests/first/method",
        "/brunt_version",
        "/agents/0/evidence/server/name",
        "/agents/0/id",
    ] {
        let text = run.pointer_mut(path).unwrap_or_else(|| panic!("no {path}"));
        *text = json!(format!("=1+1{HOSTILE}"));
    }
    for options in [
        &["-v"][..],
        &["--latency"],
        &["--format", "csv"],
        &["--format", "json"],
    ] {
        let outcome = report(&run, options);
        assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:?}");
        assert_printable(&outcome.stdout);
        assert_printable(&outcome.stderr);
    }
    let csv = report(&run, &["--format", "csv"]).stdout;
    assert!(!csv.contains(",=") && !csv.contains("\"="), "{csv}");
    assert!(csv.contains("'=1+1\\u{1b}"), "{csv}");
    let json = report(&run, &["--format", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["plan"]["url"], run["plan"]["url"]);
}

#[test]
fn a_page_of_the_server_is_quoted_harmlessly() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        let page = json!({ format!("a{HOSTILE}"): 1, "b": { HOSTILE: 2 } }).to_string();
        for mut stream in listener.incoming().flatten() {
            let _ = stream.set_read_timeout(Some(PATIENCE));
            let _ = stream.read(&mut [0; 4096]);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
            let _ = stream.write_all((head + &page).as_bytes());
        }
    });
    let server = Serve::start();
    for path in ["/", "/#requests", "/#a"] {
        let outcome = brunt_with(&[
            "-n",
            "10",
            "--verify-url",
            &format!("http://{address}{path}"),
            &server.url("/"),
        ]);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert_printable(&outcome.stderr);
    }
}

#[test]
fn arguments_are_quoted_harmlessly() {
    let url = format!("http://{HOSTILE}/");
    for arguments in [
        &["-t", HOSTILE][..],
        &["-d", "1\u{9b}s"],
        &[url.as_str()],
        &["--nothing\u{1b}[31m"],
        &["-o", "/nonexistent/\u{1b}[31m", "http://127.0.0.1:1/"],
        &["report", "/nonexistent/\u{1b}[31m"],
    ] {
        let outcome = brunt_with(arguments);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert_printable(&outcome.stderr);
    }
}
