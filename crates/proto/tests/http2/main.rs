//! The HTTP/2 client against another implementation's server, in memory: what was asked is what
//! the server saw, and what the server answered is what the client says.

mod peer;

use std::collections::BTreeMap;

use brunt_proto::http2::frame::ErrorCode;
use brunt_proto::http2::{Request, StreamFailure, Template};

use peer::{Answer, Numbers, Outcome, Talk};

const PLAIN: Request<'_> = Request {
    method: "GET",
    scheme: "http",
    authority: "localhost:8080",
    path: "/some/path?and=query",
    headers: &[],
    body: b"",
};

fn talk(request: &Request<'_>, requests: u32, depth: u32, answer: fn(u32) -> Answer) -> Talk {
    Talk {
        template: Template::new(request).unwrap(),
        requests,
        depth,
        answer,
        server: h2::server::Builder::new(),
        graceful_end_after: None,
        abrupt_end_after: None,
    }
}

/// Every request had a reply with the status and body that the server's answer has.
fn check_answered(outcome: &Outcome, requests: u32, answer: fn(u32) -> Answer) {
    assert_eq!(outcome.failures, BTreeMap::new());
    assert_eq!(outcome.replies.len(), requests as usize);
    for (&stream, reply) in &outcome.replies {
        let answer = answer(stream);
        assert_eq!(reply.status, answer.status);
        assert_eq!(reply.interim, answer.interim);
        let has_retry = answer.headers.iter().any(|(name, _)| name == "retry-after");
        assert_eq!(reply.retry_after, has_retry && answer.status >= 400);
        let content_bytes: u64 = answer.pieces.iter().map(|piece| *piece as u64).sum();
        assert!(reply.body_bytes >= content_bytes);
        assert!(reply.body_bytes <= content_bytes + 1_000);
    }
}

/// The server saw `request` in every stream.
fn check_seen(outcome: &Outcome, request: &Request<'_>, requests: u32) {
    let mut headers: Vec<(String, String)> = request
        .headers
        .iter()
        .map(|(name, value)| (name.to_lowercase(), value.clone()))
        .collect();
    if !request.body.is_empty() {
        headers.push(("content-length".into(), request.body.len().to_string()));
    }
    headers.sort();
    assert_eq!(outcome.seen.len(), requests as usize);
    for (place, seen) in outcome.seen.values().enumerate() {
        assert_eq!(
            outcome.seen.keys().nth(place),
            Some(&(2 * place as u32 + 1))
        );
        assert_eq!(seen.method, request.method);
        let uri = format!("{}://{}{}", request.scheme, request.authority, request.path);
        assert_eq!(seen.uri, uri);
        assert_eq!(seen.headers, headers);
        assert_eq!(seen.body, request.body);
    }
}

/// Fields out of a small set, so that the server's encoder inserts, refers and evicts.
fn random_answer(stream: u32) -> Answer {
    const NAMES: [&str; 10] = [
        "server",
        "date",
        "content-type",
        "retry-after",
        "etag",
        "x-request-id",
        "set-cookie",
        "cache-control",
        "x-long",
        "vary",
    ];
    const STATUSES: [u16; 8] = [200, 200, 200, 206, 301, 404, 429, 503];
    let mut numbers = Numbers::new(stream);
    let mut headers = Vec::new();
    for _ in 0..numbers.below(8) {
        let name = NAMES[numbers.below(NAMES.len())];
        let variant = numbers.below(4);
        let value = match name {
            "x-long" => "long value, ".repeat(20 * (variant + 1)) + ".",
            "x-request-id" => format!("{:016x}", numbers.next()),
            _ => format!("{name} \u{7e} {variant}"),
        };
        headers.push((name.to_owned(), value));
    }
    let mut pieces = Vec::new();
    for _ in 0..numbers.below(4) {
        pieces.push(numbers.below(3_000));
    }
    if numbers.below(2) == 0 {
        let length: usize = pieces.iter().sum();
        headers.push(("content-length".to_owned(), length.to_string()));
    }
    Answer {
        status: STATUSES[numbers.below(STATUSES.len())],
        headers,
        pieces,
        interim: numbers.below(8).saturating_sub(5) as u32,
        has_trailers: numbers.below(4) == 0,
        reset: None,
    }
}

#[test]
fn random_replies() {
    for table_bytes in [4_096, 0, 100, 600, 65_536] {
        let mut talk = talk(&PLAIN, 600, 10, random_answer);
        talk.server.header_table_size(table_bytes);
        let outcome = talk.run();
        check_answered(&outcome, 600, random_answer);
        check_seen(&outcome, &PLAIN, 600);
    }
}

fn ok(_: u32) -> Answer {
    Answer::default()
}

#[test]
fn requests_of_all_kinds() {
    let fields = |fields: &[(&str, &str)]| -> Vec<(String, String)> {
        fields
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    };
    let several = fields(&[
        ("User-Agent", "a/1 (b; c) d"),
        ("accept", "*/*"),
        ("accept-encoding", "gzip, deflate"),
        ("authorization", "Basic dTpw"),
        ("cookie", "a=b"),
        ("x-empty", ""),
        ("x-twice", "1"),
        ("x-twice", "1"),
        ("te", "trailers"),
    ]);
    let large = fields(&[("x-large", &"value!".repeat(600)), ("x-small", "1")]);
    let huge = fields(&[("x-huge", &"#".repeat(50_000)), ("x-small", "1")]);
    for (headers, method, body) in [
        (&several, "GET", &b""[..]),
        (&several, "POST", b"hello"),
        (&large, "DELETE", b""),
        (&huge, "PUT", &[b'x'; 40_000]),
    ] {
        let request = Request {
            method,
            headers,
            body,
            ..PLAIN
        };
        for table_bytes in [4_096, 0, 200] {
            let mut talk = talk(&request, 30, 4, ok);
            talk.server
                .header_table_size(table_bytes)
                .max_header_list_size(1 << 20);
            let outcome = talk.run();
            check_answered(&outcome, 30, ok);
            check_seen(&outcome, &request, 30);
        }
    }
}

#[test]
fn replies_to_head_have_no_body() {
    fn answer(_: u32) -> Answer {
        Answer {
            headers: vec![("content-length".into(), "1000".into())],
            ..Answer::default()
        }
    }
    let request = Request {
        method: "HEAD",
        ..PLAIN
    };
    check_answered(&talk(&request, 20, 2, answer).run(), 20, answer);
}

#[test]
fn bodies_pass_small_windows() {
    let body: Vec<u8> = (0..300_000_u32).map(|at| (at / 7) as u8).collect();
    let request = Request {
        method: "POST",
        body: &body,
        ..PLAIN
    };
    for (stream_bytes, connection_bytes) in [(65_535, 65_535), (1_000, 70_000), (1 << 30, 1 << 30)]
    {
        let mut talk = talk(&request, 8, 3, ok);
        talk.server
            .initial_window_size(stream_bytes)
            .initial_connection_window_size(connection_bytes);
        let outcome = talk.run();
        check_answered(&outcome, 8, ok);
        check_seen(&outcome, &request, 8);
    }
}

#[test]
fn large_replies() {
    fn answer(stream: u32) -> Answer {
        Answer {
            pieces: vec![100_000; 1 + stream as usize % 40],
            ..Answer::default()
        }
    }
    let outcome = talk(&PLAIN, 30, 5, answer).run();
    assert_eq!(outcome.failures, BTreeMap::new());
    for (stream, reply) in outcome.replies {
        let content_bytes: usize = answer(stream).pieces.iter().sum();
        let frames = content_bytes.div_ceil(16_384) + answer(stream).pieces.len();
        let least = content_bytes + 9;
        assert!((least..=content_bytes + 9 * (frames + 40)).contains(&(reply.body_bytes as usize)));
    }
}

#[test]
fn the_servers_limit_of_streams_is_kept() {
    let mut talk = talk(&PLAIN, 200, 50, random_answer);
    talk.server.max_concurrent_streams(7);
    let outcome = talk.run();
    assert_eq!(outcome.in_flight_max, 7);
    check_answered(&outcome, 200, random_answer);
}

#[test]
fn resets() {
    fn answer(stream: u32) -> Answer {
        let code = [0, 1, 2, 7, 8, 11, 13, 77][stream as usize / 2 % 8];
        Answer {
            reset: (!stream.is_multiple_of(3)).then(|| (stream.is_multiple_of(5), code.into())),
            ..random_answer(stream)
        }
    }
    let outcome = talk(&PLAIN, 400, 10, answer).run();
    assert_eq!(outcome.replies.len() + outcome.failures.len(), 400);
    for stream in (0..400).map(|place| 2 * place + 1) {
        match answer(stream).reset {
            None => assert_eq!(outcome.replies[&stream].status, answer(stream).status),
            Some((_, reason)) => {
                let code = ErrorCode::of(reason.into());
                assert_eq!(outcome.failures[&stream], StreamFailure::Reset(code));
            }
        }
    }
}

#[test]
fn a_graceful_end_loses_nothing() {
    for after in [1, 5, 77] {
        let mut talk = talk(&PLAIN, 1_000, 20, random_answer);
        talk.graceful_end_after = Some(after);
        let outcome = talk.run();
        assert_eq!(outcome.go_aways, [ErrorCode::NoError]);
        assert!(outcome.replies.len() >= after as usize);
        assert_eq!(outcome.replies.len(), outcome.seen.len());
        assert!(
            outcome
                .failures
                .values()
                .all(|why| *why == StreamFailure::NotProcessed)
        );
        assert!(outcome.sent < 1_000);
        assert_eq!(
            outcome.replies.len() + outcome.failures.len(),
            outcome.sent as usize
        );
    }
}

#[test]
fn an_abrupt_end_is_told() {
    let mut talk = talk(&PLAIN, 1_000, 20, random_answer);
    talk.abrupt_end_after = Some(50);
    let outcome = talk.run();
    assert_eq!(outcome.go_aways, [ErrorCode::EnhanceYourCalm]);
    let settled = outcome.replies.len() + outcome.failures.len() + outcome.abandoned as usize;
    assert_eq!(settled, outcome.sent as usize);
}
