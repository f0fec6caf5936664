//! Text that strangers wrote, in files, on pages and in arguments: no terminal obeys it, and no
//! spreadsheet computes it.

use std::io::{Read, Write};

use serde_json::json;

use crate::support::PATIENCE;
use crate::support::listener::serve_each;
use crate::support::process::{brunt, brunt_with};
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

#[test]
fn a_page_of_the_server_is_quoted_harmlessly() {
    let page = json!({ format!("a{HOSTILE}"): 1, "b": { HOSTILE: 2 } }).to_string();
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
    let address = hostile_server((head + &page).into_bytes());
    let server = Serve::start();
    for path in ["/", "/#requests", "/#a"] {
        let url = server.url("/");
        let outcome = brunt(&format!("-n 10 --verify-url http://{address}{path} {url}")).exits(2);
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
        let outcome = brunt_with(arguments).exits(2);
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
    serve_each(move |mut stream| {
        let _ = stream.set_read_timeout(Some(PATIENCE));
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(&reply);
    })
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
            if line.contains("html") {
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
