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
fn every_report_of_a_strangers_run_is_harmless() {
    let server = Serve::start();
    let mut run = run(&format!("-c 2 -n 50 {}", server.url("/"))).json;
    for path in [
        "/plan/target/url",
        "/agents/0/negotiated/address",
        "/plan/requests/requests/0/method",
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
    assert_eq!(json["plan"]["target"]["url"], run["plan"]["target"]["url"]);
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

/// What a hostile server says in every part of its replies.
const REPLY: &[u8] = b"HTTP/1.1 200 <script>x</script>\xc2\x9b31m\xe2\x80\xae\xff\r\n\
    Server: <script>x</script>\xc2\x9b31m\xe2\x80\xae\xff ##[error]x\r\n\
    X-\xff: \x1b[2J\r\n\
    Content-Length: 38\r\n\r\n\
    <script>\n ::error::x\n\x1b[2J\x07\x9b ##[error]x";

/// A server that answers each connection's first request so.
fn hostile_server(reply: Vec<u8>) -> std::net::SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.set_read_timeout(Some(PATIENCE));
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(&reply);
        }
    });
    address
}

/// Checks that nothing in `text` is obeyed by a terminal, a browser or a CI system.
#[track_caller]
fn assert_inert(text: &str) {
    let shown = text.replace("\r\n", "\n").replace('\t', " ");
    assert_printable(&shown);
    for line in shown.lines() {
        assert!(!line.trim_start().starts_with("::"), "{text:?}");
    }
    assert!(!text.contains("##["), "{text:?}");
}

/// What a server says is shown by no tool as more than text.
#[test]
fn what_a_server_says_is_inert_in_every_tool() {
    let whole = REPLY.to_vec();
    // Bytes that a parser may refuse left out: then the reply is a success.
    let mild: Vec<u8> = REPLY
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| !line.starts_with(b"X-"))
        .collect::<Vec<_>>()
        .concat();
    for reply in [whole, mild] {
        let url = format!("http://{}/<b>", hostile_server(reply));
        for line in [
            "ab -n 3 URL",
            "ab -n 3 -v 2 URL",
            "ab -n 3 -v 4 URL",
            "ab -n 3 -w URL",
            "wrk -t1 -c1 -d1 URL",
            "weighttp -n 3 -c 1 URL",
            "h2load --h1 -n 3 URL",
            "oha -n 3 -c 1 URL",
            "httperf --hog --server 127.0.0.1 --port PORT --num-conns 3 --verbose",
            "-n 3 -c 1 -v URL",
            "-n 3 -c 1 --format html URL",
            "-n 3 -c 1 --format csv URL",
            "tcp -n 3 -c 1 -m GET --reply line HOST",
        ] {
            let host = url.trim_start_matches("http://").trim_end_matches("/<b>");
            let port = host.rsplit(':').next().unwrap_or_default();
            let words: Vec<String> = line
                .split(' ')
                .map(|word| {
                    word.replace("URL", &url)
                        .replace("PORT", port)
                        .replace("HOST", host)
                })
                .collect();
            let outcome = brunt_with(&words);
            assert_inert(&outcome.stdout);
            assert_inert(&outcome.stderr);
            if line.contains("-w") || line.contains("html") {
                assert!(!outcome.stdout.contains("<script>x"), "{line}: {outcome:?}");
                assert!(!outcome.stdout.contains("<b>"), "{line}: {outcome:?}");
            }
        }
    }
}

/// Ordinary text is printed as the real tool prints it.
#[test]
fn what_is_ordinary_is_printed_byte_for_byte() {
    let reply =
        b"HTTP/1.1 200 OK\r\nServer: A/1.0 (Unix) \xc3\xa9\tb\r\nContent-Length: 3\r\n\r\na\tb";
    let url = format!("http://{}/", hostile_server(reply.to_vec()));
    let outcome = brunt_with(&["ab", "-n", "1", "-v", "2", &url]);
    let head = "LOG: header received:\nHTTP/1.1 200 OK\r\nServer: A/1.0 (Unix) é\tb\r\n\
                Content-Length: 3\r\n\r\na\tb\n";
    assert!(outcome.stdout.contains(head), "{outcome:?}");
    let server = "Server Software:        A/1.0 (Unix) é\tb\n";
    assert!(outcome.stdout.contains(server), "{outcome:?}");
}

/// What a script raises and names is shown as no more than text.
#[test]
fn what_a_script_says_is_inert() {
    let server = Serve::start();
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let name = file.path().to_str().expect("a path in UTF-8");
    for source in [
        "error('a\\n::error::x \\27[2J ##[error]')",
        "function done() error('a\\n::error::x\\27[2J') end",
        "function request() return wrk.format(), nil, '::error::x\\27[2J\\n::error::y' end",
        "function request() error('a\\n ::error::x\\27[2J') end",
    ] {
        std::fs::write(file.path(), source).expect("it is ours");
        let url = server.url("/");
        for words in [
            &["-s", name, "-n", "20", "-c", "1", "-v", &url][..],
            &["wrk", "-t1", "-c1", "-d1", "-s", name, &url],
        ] {
            let outcome = brunt_with(words);
            assert_inert(&outcome.stdout);
            assert_inert(&outcome.stderr);
        }
    }
}
