//! Tests of the parser of replies: every fixture cut at every byte, limits, random replies.

use std::ops::Range;

use proptest::prelude::*;
use proptest::sample::Index;

use super::reply::MAX_SIZE_LINE_BYTES;
use super::{
    KnownHead, MAX_HEADER_FIELDS, MethodKind, Reply, ReplyError, ReplyParser, RequestKind,
};
use crate::Limits;
use crate::test_support::at_every_cut;

/// What a connection gave from its first byte to its end.
#[derive(Debug, PartialEq, Eq)]
struct ParseOutcome {
    replies: Vec<Reply>,
    /// What came in place of a next reply: nothing (`Ok`), or an error.
    ending: Result<(), ReplyError>,
    discarded_bytes: u64,
}

/// Hands the pieces to a parser, then ends the connection; checks the account of bytes after each
/// call. Stops at the first error, as the engine does. Where it `discards`, the parser does not see
/// what nobody reads.
fn run<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    limits: &Limits,
    kind: RequestKind,
    discards: bool,
) -> ParseOutcome {
    let (mut parser, mut known) = (ReplyParser::default(), KnownHead::default());
    let mut replies = Vec::new();
    let mut fed_bytes = 0;
    let account = |replies: &[Reply], parser: &ReplyParser| used(replies) + parser.pending_bytes();
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            let unread_bytes = parser.unread_bytes().min(rest.len() as u64);
            if discards && unread_bytes > 0 {
                parser.discarded(unread_bytes);
                rest = &rest[unread_bytes as usize..];
                fed_bytes += unread_bytes;
                assert_eq!(account(&replies, &parser), fed_bytes);
                continue;
            }
            match parser.receive(rest, limits, kind, &mut known) {
                Ok(progress) => {
                    assert!(progress.reply.is_some() || progress.consumed == rest.len());
                    assert_eq!(parser.is_idle(), progress.reply.is_some());
                    rest = &rest[progress.consumed..];
                    fed_bytes += progress.consumed as u64;
                    replies.extend(progress.reply);
                    assert_eq!(account(&replies, &parser), fed_bytes);
                }
                Err(error) => {
                    fed_bytes += rest.len() as u64;
                    assert_eq!(account(&replies, &parser), fed_bytes);
                    assert_eq!(parser.end(), Err(error));
                    let discarded_bytes = parser.pending_bytes();
                    return ParseOutcome {
                        replies,
                        ending: Err(error),
                        discarded_bytes,
                    };
                }
            }
        }
    }
    let ending = parser.end().map(|reply| replies.extend(reply));
    assert_eq!(account(&replies, &parser), fed_bytes);
    ParseOutcome {
        replies,
        ending,
        discarded_bytes: parser.pending_bytes(),
    }
}

/// Bytes of these replies.
fn used(replies: &[Reply]) -> u64 {
    let bytes = replies
        .iter()
        .map(|reply| reply.head_bytes + reply.body_bytes);
    bytes.sum()
}

/// Gives the replies and the ending of [`run`], which must be the same whether or not the parser
/// sees unread bytes. Bytes that are discarded after an error are left out: they depend on how much
/// of the wire was received by then.
fn run_cut<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]> + Clone,
    limits: &Limits,
    kind: RequestKind,
) -> (Vec<Reply>, Result<(), ReplyError>) {
    let [seen, discarding] = [false, true].map(|discards| {
        let outcome = run(pieces.clone(), limits, kind, discards);
        (outcome.replies, outcome.ending)
    });
    assert_eq!(discarding, seen, "discarding");
    seen
}

/// Runs the wire at every cut; gives the common outcome.
fn run_every_cut(wire: &[u8], limits: &Limits, kind: RequestKind) -> ParseOutcome {
    let _ = at_every_cut(wire, |pieces| run_cut(pieces.iter().copied(), limits, kind));
    run([wire], limits, kind, false)
}

/// What a fixture's reply must be; its head's size follows from the account of bytes.
fn reply(status: u16, body_bytes: u64) -> Reply {
    Reply {
        status,
        head_bytes: 0,
        body_bytes,
        interim: 0,
        keep_alive: true,
        retry_after: false,
    }
}

impl Reply {
    fn interim(self, interim: u16) -> Self {
        Self { interim, ..self }
    }

    fn closing(mut self) -> Self {
        self.keep_alive = false;
        self
    }

    fn later(mut self) -> Self {
        self.retry_after = true;
        self
    }
}

fn check_fixture(
    wire: &[u8],
    kind: RequestKind,
    expected: &[Reply],
    ending: Result<(), ReplyError>,
) {
    let outcome = run_every_cut(wire, &Limits::default(), kind);
    let without_head = |reply: &Reply| Reply {
        head_bytes: 0,
        ..*reply
    };
    let replies: Vec<Reply> = outcome.replies.iter().map(without_head).collect();
    assert_eq!((replies.as_slice(), outcome.ending), (expected, ending));
    let used = used(&outcome.replies);
    assert_eq!(used + outcome.discarded_bytes, wire.len() as u64);
}

const GET: RequestKind = of(MethodKind::Other);
const HEAD: RequestKind = of(MethodKind::Head);
const CONNECT: RequestKind = of(MethodKind::Connect);
const OLD_GET: RequestKind = RequestKind {
    is_http_1_0: true,
    ..GET
};

const fn of(method: MethodKind) -> RequestKind {
    RequestKind {
        method,
        is_http_1_0: false,
    }
}

macro_rules! reply_cases {
    ($($name:ident: $method:ident $wire:expr => [$($reply:expr),*] $ending:expr;)+) => {
        $(#[test]
        fn $name() {
            check_fixture($wire, $method, &[$($reply),*], $ending);
        })+
    };
}

macro_rules! refused_cases {
    ($($name:ident: $wire:expr => $error:ident;)+) => {
        reply_cases! { $($name: GET $wire => [] Err(ReplyError::$error);)+ }
    };
}

/// A wire that begins with `HTTP/1.1 200 OK`.
macro_rules! ok {
    ($rest:literal) => {
        concat!("HTTP/1.1 200 OK\r\n", $rest).as_bytes()
    };
}

reply_cases! {
    nothing: GET b"" => [] Ok(());
    old_request_keeps_nothing: OLD_GET ok!("Content-Length: 2\r\n\r\nhi")
        => [reply(200, 2).closing()] Ok(());
    old_request_keeps_when_told:
        OLD_GET ok!("Connection: Keep-Alive\r\nContent-Length: 2\r\n\r\nhi")
        => [reply(200, 2)] Ok(());
    old_request_cannot_keep_what_has_no_end:
        OLD_GET b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nhi"
        => [reply(200, 2).closing()] Ok(());
    tunnel: CONNECT ok!("Content-Length: 2\r\n\r\n") => [reply(200, 0).closing()] Ok(());
    no_tunnel: CONNECT b"HTTP/1.1 405 N\r\nContent-Length: 2\r\n\r\nno" => [reply(405, 2)] Ok(());
    length: GET ok!("Content-Length: 5\r\n\r\nhello") => [reply(200, 5)] Ok(());
    length_zero: GET ok!("Content-Length: 0\r\n\r\n") => [reply(200, 0)] Ok(());
    length_any_case: GET ok!("cONTENT-lENGTH:3\r\n\r\nabc") => [reply(200, 3)] Ok(());
    length_padded: GET ok!("Content-Length: \t 3 \t\r\n\r\nabc") => [reply(200, 3)] Ok(());
    length_leading_zeros: GET ok!("Content-Length: 0003\r\n\r\nabc") => [reply(200, 3)] Ok(());
    length_repeated: GET ok!("Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc")
        => [reply(200, 3)] Ok(());
    length_repeated_in_list: GET ok!("Content-Length: 3, 3\r\n\r\nabc") => [reply(200, 3)] Ok(());
    length_of_nginx: GET ok!("Server: nginx/1.26.0\r\n\
        Date: Fri, 21 Nov 2025 00:00:00 GMT\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\
        Last-Modified: Fri, 21 Nov 2025 00:00:00 GMT\r\nConnection: keep-alive\r\n\
        ETag: \"6553f1a0-4\"\r\nAccept-Ranges: bytes\r\n\r\nokay") => [reply(200, 4)] Ok(());
    no_reason: GET b"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx" => [reply(200, 1)] Ok(());
    empty_reason: GET b"HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\nx" => [reply(200, 1)] Ok(());
    obs_text: GET b"HTTP/1.1 200 \xe4\xb8\r\nX: \xff\xfe\r\nContent-Length: 1\r\n\r\nx"
        => [reply(200, 1)] Ok(());
    empty_value: GET ok!("X:\r\nY: \r\nContent-Length: 1\r\n\r\nx") => [reply(200, 1)] Ok(());
    bare_line_feeds: GET b"HTTP/1.1 200 OK\nContent-Length: 2\nX: y\n\nhi"
        => [reply(200, 2)] Ok(());
    mixed_line_ends: GET b"HTTP/1.1 200 OK\nContent-Length: 2\r\n\nhi" => [reply(200, 2)] Ok(());
    error_status: GET b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 3\r\n\r\nbad"
        => [reply(503, 3)] Ok(());
    unassigned_status: GET b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n"
        => [reply(999, 0)] Ok(());
    like_named_fields: GET ok!("Content-Langth: 9\r\nConnectiom: close\r\n\
        Transfer-Encodinh: chunked\r\nContent-Length: 1\r\n\r\nx") => [reply(200, 1)] Ok(());

    close: GET ok!("Connection: close\r\nContent-Length: 2\r\n\r\nhi")
        => [reply(200, 2).closing()] Ok(());
    close_in_list: GET ok!("Connection: TE, ClosE\r\nContent-Length: 0\r\n\r\n")
        => [reply(200, 0).closing()] Ok(());
    close_wins: GET ok!("Connection: close\r\nConnection: keep-alive\r\n\
        Content-Length: 0\r\n\r\n") => [reply(200, 0).closing()] Ok(());
    not_quite_close: GET ok!("Connection: closed\r\nContent-Length: 0\r\n\r\n")
        => [reply(200, 0)] Ok(());
    old_version_closes: GET b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi"
        => [reply(200, 2).closing()] Ok(());
    old_version_kept: GET b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\
        Content-Length: 2\r\n\r\nhi" => [reply(200, 2)] Ok(());
    old_version_kept_and_close: GET b"HTTP/1.0 200 OK\r\nConnection: keep-alive, close\r\n\
        Content-Length: 2\r\n\r\nhi" => [reply(200, 2).closing()] Ok(());
    old_version_until_close: GET b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nhello"
        => [reply(200, 5).closing()] Ok(());
    until_close: GET ok!("\r\nhello\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")
        => [reply(200, 28).closing()] Ok(());
    until_close_empty: GET ok!("\r\n") => [reply(200, 0).closing()] Ok(());
    coding_until_close: GET ok!("Transfer-Encoding: gzip;q=1\r\n\r\nhello")
        => [reply(200, 5).closing()] Ok(());

    head: HEAD ok!("Content-Length: 5\r\n\r\n") => [reply(200, 0)] Ok(());
    head_pair: HEAD ok!("Content-Length: 5\r\n\r\nHTTP/1.1 404 No\r\n\r\n")
        => [reply(200, 0), reply(404, 0)] Ok(());
    head_chunked: HEAD ok!("Transfer-Encoding: chunked\r\n\r\n") => [reply(200, 0)] Ok(());
    head_bad_length: HEAD ok!("Content-Length: x\r\n\r\n") => [reply(200, 0)] Ok(());
    no_content: GET b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nHTTP/1.1 304 NM\r\n\
        Transfer-Encoding: chunked\r\n\r\n" => [reply(204, 0), reply(304, 0)] Ok(());
    no_content_closing: GET b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
        => [reply(204, 0).closing()] Ok(());

    retry_after: GET b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 120\r\n\
        Content-Length: 2\r\n\r\nno" => [reply(429, 2).later()] Ok(());
    retry_after_date_any_case: GET b"HTTP/1.1 503 S\nContent-Length: 0\n\
        retry-AFTER: Fri, 21 Nov 2025 00:00:00 GMT\n\n" => [reply(503, 0).later()] Ok(());
    retry_after_empty: GET b"HTTP/1.1 400 B\r\nRetry-After:\r\nContent-Length: 0\r\n\r\n"
        => [reply(400, 0).later()] Ok(());
    retry_after_not_of_errors: GET ok!("Retry-After: 1\r\nContent-Length: 1\r\n\
        \r\nxHTTP/1.1 301 M\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\nHTTP/1.1 399 M\r\n\
        Retry-After: 1\r\nContent-Length: 0\r\n\r\n")
        => [reply(200, 1), reply(301, 0), reply(399, 0)] Ok(());
    retry_after_like_named: GET b"HTTP/1.1 429 T\r\nRetry-Aftes: 1\r\nRetry_After: 1\r\n\
        Retry-After-: 1\r\nContent-Length: 0\r\n\r\n" => [reply(429, 0)] Ok(());
    retry_after_of_the_final_reply: GET b"HTTP/1.1 103 E\r\nRetry-After: 1\r\n\r\n\
        HTTP/1.1 429 T\r\nContent-Length: 0\r\n\r\n" => [reply(429, 0).interim(1)] Ok(());
    retry_after_of_one: GET b"HTTP/1.1 429 T\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n\
        HTTP/1.1 429 T\r\nContent-Length: 0\r\n\r\n"
        => [reply(429, 0).later(), reply(429, 0)] Ok(());
    retry_after_trailer: GET b"HTTP/1.1 503 S\r\nTransfer-Encoding: chunked\r\n\r\n\
        0\r\nRetry-After: 1\r\n\r\n" => [reply(503, 21)] Ok(());
    retry_after_chunked: GET b"HTTP/1.1 503 S\r\nRetry-After: 1\r\n\
        Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" => [reply(503, 5).later()] Ok(());
    retry_after_until_close: GET b"HTTP/1.1 503 S\r\nRetry-After: 1\r\n\r\nbad"
        => [reply(503, 3).later().closing()] Ok(());
    retry_after_head: HEAD b"HTTP/1.1 429 T\r\nRetry-After: 1\r\nContent-Length: 5\r\n\r\n"
        => [reply(429, 0).later()] Ok(());

    interim: GET b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"
        => [reply(200, 1).interim(1)] Ok(());
    interim_chain: GET b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 102 P\r\n\
        Content-Length: 7\r\nConnection: close\r\n\r\nHTTP/1.1 100 C\n\nHTTP/1.1 204 No\r\n\r\n"
        => [reply(204, 0).interim(3)] Ok(());
    interim_then_pair: GET b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 204 N\r\n\r\nHTTP/1.1 204 N\r\n\r\n"
        => [reply(204, 0).interim(1), reply(204, 0)] Ok(());
    interim_head: HEAD b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n"
        => [reply(200, 0).interim(1)] Ok(());

    pipelined: GET ok!("Content-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\n\
        Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\nHTTP/1.1 404 No\r\nContent-Length: 0\
        \r\n\r\nHTTP/1.1 200 OK\r\n\r\nrest")
        => [reply(200, 2), reply(200, 11), reply(404, 0), reply(200, 4).closing()] Ok(());
    pipelined_then_garbage: GET b"HTTP/1.1 204 No\r\n\r\nHTTP/1.1 204 No\r\n\r\ngarbage"
        => [reply(204, 0), reply(204, 0)] Err(ReplyError::MalformedHead);
    pipelined_then_cut: GET b"HTTP/1.1 204 No\r\n\r\nHTTP/1.1 204 No\r\n"
        => [reply(204, 0)] Err(ReplyError::TruncatedHead);
    longer_than_stated: GET ok!("Content-Length: 2\r\n\r\nabc")
        => [reply(200, 2)] Err(ReplyError::MalformedHead);

    chunked: GET ok!("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
        => [reply(200, 15)] Ok(());
    chunked_empty: GET ok!("Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n") => [reply(200, 5)] Ok(());
    chunked_many: GET ok!("transfer-encoding: CHUNKED\r\n\r\n1\r\na\r\n2\r\nbc\r\n\
        00A\r\n0123456789\r\n000\r\n\r\n") => [reply(200, 37)] Ok(());
    chunked_line_ends_as_data: GET ok!("Transfer-Encoding: chunked\r\n\r\n\
        7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n") => [reply(200, 17)] Ok(());
    chunked_extensions: GET ok!("Transfer-Encoding: chunked\r\n\r\n\
        2;a;b=c;d=\"e;f\"\r\nhi\r\n0 ; \t last\r\n\r\n") => [reply(200, 35)] Ok(());
    chunked_padded_size: GET ok!("Transfer-Encoding: chunked\r\n\r\n\
        2 \t\r\nhi\r\n0   \r\n\r\n") => [reply(200, 17)] Ok(());
    chunked_trailers: GET ok!("Transfer-Encoding: chunked\r\n\r\n\
        2\r\nhi\r\n0\r\nDigest: x\r\nContent-Length: 9\r\n\r\n") => [reply(200, 42)] Ok(());
    chunked_trailers_line_feeds: GET ok!("Transfer-Encoding: chunked\r\n\r\n\
        0\r\nA: b\nC: d\n\nHTTP/1.1 204 N\r\n\r\n") => [reply(200, 14), reply(204, 0)] Ok(());
    chunked_closing: GET ok!("Transfer-Encoding: chunked\r\nConnection: close\r\n\
        \r\n0\r\n\r\n") => [reply(200, 5).closing()] Ok(());
    chunked_after_coding: GET ok!("Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")
        => [reply(200, 5)] Ok(());
    chunked_in_second_field: GET ok!("Transfer-Encoding: gzip,\r\n\
        Transfer-Encoding: , chunked\r\n\r\n0\r\n\r\n") => [reply(200, 5)] Ok(());
    cut_in_second: GET b"HTTP/1.1 204 N\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"
        => [reply(204, 0)] Err(ReplyError::TruncatedBody);
}

refused_cases! {
    garbage: b"garbage" => MalformedHead;
    one_wrong_byte: b"\0" => MalformedHead;
    tls_alert: b"\x15\x03\x01\x00\x02\x02\x16" => TlsAlert;
    tls_alert_begun: b"\x15" => TlsAlert;
    html: b"<html>\r\n\r\n" => MalformedHead;
    empty_line_first: b"\r\nHTTP/1.1 200 OK\r\n\r\n" => MalformedHead;
    line_feed_first: b"\nHTTP/1.1 200 OK\r\n\r\n" => MalformedHead;
    space_first: b" HTTP/1.1 200 OK\r\n\r\n" => MalformedHead;
    lower_case_version: b"http/1.1 200 OK\r\n\r\n" => MalformedHead;
    version_only: b"HTTP/1.1\r\n\r\n" => MalformedHead;
    version_run_on: b"HTTP/1.10 200 OK\r\n\r\n" => MalformedHead;
    two_spaces: b"HTTP/1.1  200 OK\r\n\r\n" => MalformedHead;
    short_status: b"HTTP/1.1 20 OK\r\n\r\n" => MalformedHead;
    long_status: b"HTTP/1.1 2000 OK\r\n\r\n" => MalformedHead;
    signed_status: b"HTTP/1.1 +20 OK\r\n\r\n" => MalformedHead;
    low_status: b"HTTP/1.1 099 Low\r\n\r\n" => MalformedHead;
    zero_in_reason: b"HTTP/1.1 200 O\0K\r\n\r\n" => MalformedHead;
    bare_return_in_reason: b"HTTP/1.1 200 O\rK\r\n\r\n" => MalformedHead;
    no_colon: ok!("Content-Length\r\n\r\n") => MalformedHead;
    no_name: ok!(": value\r\n\r\n") => MalformedHead;
    space_before_colon: ok!("Content-Length : 2\r\n\r\nhi") => MalformedHead;
    folded: ok!("X: a\r\n b\r\nContent-Length: 2\r\n\r\nhi") => MalformedHead;
    folded_first: ok!(" X: a\r\n\r\n") => MalformedHead;
    zero_in_value: ok!("X: a\0b\r\n\r\n") => MalformedHead;
    bare_return_in_value: ok!("X: a\rContent-Length: 2\r\n\r\nhi") => MalformedHead;
    bare_return_ends_head: ok!("X: a\r\n\rhi\n\n") => MalformedHead;
    space_in_name: ok!("X Y: a\r\n\r\n") => MalformedHead;
    malformed_late: ok!("A: b\r\nC: d\r\n(: e\r\nF: g\r\n\r\n") => MalformedHead;

    version_2: b"HTTP/2 200\r\n\r\n" => UnsupportedVersion;
    version_2_0: b"HTTP/2.0 200 OK\r\n\r\n" => UnsupportedVersion;
    version_1_2: b"HTTP/1.2 200 OK\r\n\r\n" => UnsupportedVersion;
    version_0_9: b"HTTP/0.9 200 OK\r\n\r\n" => UnsupportedVersion;

    cut_in_version: b"HTT" => TruncatedHead;
    cut_in_status_line: b"HTTP/1.1 200 OK" => TruncatedHead;
    cut_in_field: ok!("Content-Length: 5") => TruncatedHead;
    cut_before_last_line_feed: ok!("Content-Length: 5\r\n\r") => TruncatedHead;
    cut_after_interim: b"HTTP/1.1 100 Continue\r\n\r\n" => TruncatedHead;
    cut_in_body: ok!("Content-Length: 5\r\n\r\nhell") => TruncatedBody;
    cut_before_body: ok!("Content-Length: 5\r\n\r\n") => TruncatedBody;
    cut_huge_body: ok!("Content-Length: 18446744073709551615\r\n\r\nx") => TruncatedBody;

    length_not_a_number: ok!("Content-Length: five\r\n\r\nhello") => BadContentLength;
    length_empty: ok!("Content-Length:\r\n\r\n") => BadContentLength;
    length_signed: ok!("Content-Length: +5\r\n\r\nhello") => BadContentLength;
    length_negative: ok!("Content-Length: -5\r\n\r\nhello") => BadContentLength;
    length_hexadecimal: ok!("Content-Length: 0x5\r\n\r\nhello") => BadContentLength;
    length_two_words: ok!("Content-Length: 5 5\r\n\r\nhello") => BadContentLength;
    length_overflow: ok!("Content-Length: 18446744073709551616\r\n\r\n") => BadContentLength;
    length_conflict: ok!("Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!")
        => BadContentLength;
    length_conflict_in_list: ok!("Content-Length: 5, 6\r\n\r\nhello!") => BadContentLength;
    length_list_with_gap: ok!("Content-Length: 5,\r\n\r\nhello") => BadContentLength;
    length_mended_later: ok!("Content-Length: x\r\nContent-Length: 5\r\n\r\nhello")
        => BadContentLength;

    coding_and_length: ok!("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n\
        0\r\n\r\n") => BadTransferEncoding;
    length_and_coding: ok!("Content-Length: 5\r\nTransfer-Encoding: gzip\r\n\r\n")
        => BadTransferEncoding;
    coding_in_old_version: b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        => BadTransferEncoding;
    chunked_not_last: ok!("Transfer-Encoding: chunked, gzip\r\n\r\n") => BadTransferEncoding;
    chunked_twice: ok!("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\
        \r\n\r\n0\r\n\r\n") => BadTransferEncoding;
    chunked_with_parameter: ok!("Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n")
        => BadTransferEncoding;
    coding_empty: ok!("Transfer-Encoding: ,\r\n\r\n") => BadTransferEncoding;
    coding_not_a_token: ok!("Transfer-Encoding: \"chunked\"\r\n\r\n") => BadTransferEncoding;
    coding_control_character: b"HTTP/1.1 200 OK\r\nTransfer-Encoding: \xffchunked\r\n\r\n"
        => BadTransferEncoding;

    switching_protocols: b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n" => BadInterim;
    switching_after_interim: b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 101 S\r\n\r\n" => BadInterim;
}

/// A chunked reply's wire with this body.
macro_rules! chunked_wire {
    ($body:literal) => {
        concat!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
            $body
        )
        .as_bytes()
    };
}

refused_cases! {
    chunk_size_missing: chunked_wire!("\r\nhi\r\n0\r\n\r\n") => BadChunk;
    chunk_size_not_hexadecimal: chunked_wire!("g\r\nhi\r\n0\r\n\r\n") => BadChunk;
    chunk_size_prefixed: chunked_wire!("0x2\r\nhi\r\n0\r\n\r\n") => BadChunk;
    chunk_size_signed: chunked_wire!("-2\r\nhi\r\n0\r\n\r\n") => BadChunk;
    chunk_size_space_first: chunked_wire!(" 2\r\nhi\r\n0\r\n\r\n") => BadChunk;
    chunk_size_in_two: chunked_wire!("1 0\r\nhi\r\n0\r\n\r\n") => BadChunk;
    chunk_size_overflow: chunked_wire!("10000000000000000\r\nhi\r\n0\r\n\r\n") => BadChunk;
    chunk_size_bare_line_feed: chunked_wire!("2\nhi\r\n0\r\n\r\n") => BadChunk;
    chunk_size_bare_return: chunked_wire!("2\rhi\r\n0\r\n\r\n") => BadChunk;
    chunk_extension_line_feed: chunked_wire!("2;a\nhi\r\n0\r\n\r\n") => BadChunk;
    chunk_extension_zero: chunked_wire!("2;a\0\r\nhi\r\n0\r\n\r\n") => BadChunk;
    chunk_extension_without_size: chunked_wire!(";a\r\nhi\r\n0\r\n\r\n") => BadChunk;
    chunk_data_too_long: chunked_wire!("2\r\nhi!\r\n0\r\n\r\n") => BadChunk;
    chunk_data_too_short: chunked_wire!("4\r\nhi\r\n0\r\n\r\n") => BadChunk;
    chunk_data_bare_line_feed: chunked_wire!("2\r\nhi\n0\r\n\r\n") => BadChunk;
    chunk_data_bare_return: chunked_wire!("2\r\nhi\r0\r\n\r\n") => BadChunk;
    trailer_malformed: chunked_wire!("0\r\nno colon\r\n\r\n") => BadChunk;
    trailer_malformed_second: chunked_wire!("0\r\nA: b\r\n C: d\r\n\r\n") => BadChunk;
    trailer_bare_return: chunked_wire!("0\r\nA: b\rC: d\r\n\r\n") => BadChunk;

    cut_in_chunk_size: chunked_wire!("1") => TruncatedBody;
    cut_largest_chunk: chunked_wire!("ffffffffffffffff\r\nx") => TruncatedBody;
    cut_after_chunk: chunked_wire!("2\r\nhi\r\n") => TruncatedBody;
    cut_in_last_chunk: chunked_wire!("2\r\nhi\r\n0\r\n") => TruncatedBody;
    cut_in_trailer: chunked_wire!("0\r\nA: b") => TruncatedBody;
    cut_before_trailers_end: chunked_wire!("0\r\nA: b\r\n\r") => TruncatedBody;
    cut_in_malformed_trailer: chunked_wire!("0\r\nno colon") => TruncatedBody;
}

#[test]
fn size_of_the_state_of_a_connection() {
    let bytes = size_of::<ReplyParser>();
    assert!(bytes <= 64, "{bytes} bytes");
}

#[test]
fn head_bytes_hold_interim_replies() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\n";
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    let wire = format!("{interim}{head}hi");
    let outcome = run_every_cut(wire.as_bytes(), &Limits::default(), GET);
    let head_bytes = (interim.len() + head.len()) as u64;
    assert_eq!(outcome.replies[0].head_bytes, head_bytes);
}

#[test]
fn idle_until_the_first_byte_and_after_the_last() {
    let wire = b"HTTP/1.1 100 C\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    let (mut parser, mut known) = (ReplyParser::default(), KnownHead::default());
    assert!(parser.is_idle());
    for (at, byte) in wire.iter().enumerate() {
        let progress = parser
            .receive(&[*byte], &Limits::default(), GET, &mut known)
            .unwrap();
        assert_eq!(progress.reply.is_some(), at + 1 == wire.len());
        assert_eq!(parser.is_idle(), at + 1 == wire.len());
    }
    assert_eq!(parser.end(), Ok(None));
}

#[test]
fn bytes_after_an_error_are_counted_until_reset() {
    let (mut parser, mut known) = (ReplyParser::default(), KnownHead::default());
    let mut receive = |parser: &mut ReplyParser, bytes: &[u8]| {
        parser.receive(bytes, &Limits::default(), GET, &mut known)
    };
    let error = Err(ReplyError::MalformedHead);
    assert!(receive(&mut parser, b"HTTP/1.1 ").is_ok());
    assert_eq!(receive(&mut parser, b"oops, and more"), error);
    assert_eq!(parser.pending_bytes(), 23);
    assert_eq!(receive(&mut parser, b"HTTP/1.1 204 N\r\n\r\n"), error);
    assert_eq!(parser.pending_bytes(), 41);
    assert!(!parser.is_idle());
    parser.reset();
    assert_eq!((parser.pending_bytes(), parser.is_idle()), (0, true));
    let progress = receive(&mut parser, b"HTTP/1.1 204 N\r\n\r\n").unwrap();
    assert_eq!(progress.reply.map(|reply| reply.status), Some(204));
}

#[test]
fn an_error_counts_all_bytes_of_its_call_but_no_earlier_reply() {
    let wire = b"HTTP/1.1 204 N\r\n\r\ngarbage";
    let outcome = run([&wire[..]], &Limits::default(), GET, false);
    assert_eq!((outcome.replies.len(), outcome.discarded_bytes), (1, 7));
}

/// Pairs of replies on two connections that share the latest head: the second reply is what it is
/// on a connection of its own, whatever came before.
#[test]
fn a_known_head_changes_nothing() {
    let head = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
    let long = format!("Content-Length: 2\r\nX: {}\r\n", "x".repeat(2_000));
    let wires = [
        head("Content-Length: 2\r\n") + "hi",
        head("Content-Length: 2\r\n") + "hiHTTP/1.1 204 N\r\n\r\n",
        head("Content-Length: 2\r\n") + "h",
        head("Content-Length: 0\r\n"),
        head("Content-Length: 0\r\nConnection: close\r\n"),
        head("Transfer-Encoding: chunked\r\n") + "2\r\nhi\r\n0\r\n\r\n",
        head("Transfer-Encoding: chunked\r\n") + "2\r\nhi\r\noops",
        head("") + "until the end",
        head(&long) + "hi",
        "HTTP/1.1 100 C\r\n\r\n".to_owned() + &head("Content-Length: 2\r\n") + "hi",
        "HTTP/1.1 429 T\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 304 N\r\nContent-Length: 9\r\n\r\n".to_owned(),
        "oops".to_owned(),
    ];
    // All replies of a connection, and its end.
    let all = |wire: &str, cut: usize, kind, known: &mut KnownHead| {
        let (mut parser, mut replies) = (ReplyParser::default(), Vec::new());
        let (left, right) = wire.as_bytes().split_at(cut);
        for mut rest in [left, right] {
            while !rest.is_empty() {
                match parser.receive(rest, &Limits::default(), kind, known) {
                    Ok(progress) => {
                        replies.extend(progress.reply);
                        rest = &rest[progress.consumed..];
                    }
                    Err(error) => return (replies, Err(error), parser.pending_bytes() > 0),
                }
            }
        }
        let end = parser.end();
        (replies, end.map(|_| ()), parser.pending_bytes() > 0)
    };
    for before in &wires {
        for wire in &wires {
            for (kind_before, kind) in [
                (GET, GET),
                (GET, HEAD),
                (HEAD, GET),
                (HEAD, HEAD),
                (OLD_GET, GET),
                (GET, OLD_GET),
            ] {
                let alone = all(wire, 0, kind, &mut KnownHead::default());
                for cut in 0..=wire.len() {
                    let mut known = KnownHead::default();
                    let _ = all(before, 0, kind_before, &mut known);
                    let found = all(wire, cut, kind, &mut known);
                    assert_eq!(found, alone, "{before:?} {wire:?} {cut} {kind:?}");
                }
            }
        }
    }
}

/// Each limit, met exactly and passed by one, whole and at every cut.
#[test]
fn limits() {
    let head = "HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 0\r\n\r\n";
    let trailers = "A: b\r\nC: d\r\n\r\n";
    let chunked = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n{trailers}");
    let interim = "HTTP/1.1 100 C\r\n\r\nHTTP/1.1 103 E\r\n\r\nHTTP/1.1 204 N\r\n\r\n";
    let size_line = |bytes: u32| {
        let extension = "e".repeat(bytes as usize - 4);
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0;{extension}\r\n\r\n")
    };
    let default = Limits::default();
    let limits = |head_bytes, header_fields, interim_replies| Limits {
        head_bytes,
        header_fields,
        interim_replies,
        ..default
    };
    let head_bytes = |head_bytes| limits(head_bytes, 256, 16);
    let header_fields = |header_fields| limits(65_536, header_fields, 16);
    let interim_replies = |interim_replies| limits(65_536, 256, interim_replies);
    let head_len = head.len() as u32;
    let (too_large, too_many) = (ReplyError::HeadTooLarge, ReplyError::TooManyHeaders);
    let bad_interim = ReplyError::BadInterim;
    let (longest, longer) = (MAX_SIZE_LINE_BYTES, MAX_SIZE_LINE_BYTES + 1);
    let ok = Ok(1);
    let cases = [
        (head, head_bytes(head_len), ok),
        (head, head_bytes(head_len - 1), Err(too_large)),
        (head, head_bytes(5), Err(too_large)),
        (head, head_bytes(0), Err(too_large)),
        (head, header_fields(2), ok),
        (head, header_fields(1), Err(too_many)),
        (head, header_fields(0), Err(too_many)),
        (&chunked, header_fields(2), ok),
        (&chunked, header_fields(1), Err(too_many)),
        (interim, interim_replies(2), ok),
        (interim, interim_replies(1), Err(bad_interim)),
        (interim, interim_replies(0), Err(bad_interim)),
        (&size_line(longest), default, ok),
        (&size_line(longer), default, Err(ReplyError::BadChunk)),
    ];
    for (wire, limits, expected) in cases {
        let outcome = run_every_cut(wire.as_bytes(), &limits, GET);
        let found = outcome.ending.map(|()| outcome.replies.len());
        assert_eq!(found, expected, "{limits:?} on {wire:.60}");
    }

    // The head is longer than these trailers, so fields are added until they are the longer part.
    let long = chunked.replace("A: b\r\n", &"A: b\r\n".repeat(20));
    let trailer_bytes = (trailers.len() + 19 * 6) as u32;
    let outcome = run_every_cut(long.as_bytes(), &head_bytes(trailer_bytes), GET);
    assert_eq!(outcome.ending, Ok(()));
    let outcome = run_every_cut(long.as_bytes(), &head_bytes(trailer_bytes - 1), GET);
    assert_eq!(outcome.ending, Err(ReplyError::TrailersTooLarge));
}

#[test]
fn default_limits_hold_against_endless_input() {
    let field = "Name: value\r\n";
    let long_field = format!("{field}X: {}", "y".repeat(70_000));
    let head = |rest: &str| format!("HTTP/1.1 200 OK\r\n{rest}");
    let long_reason = format!("HTTP/1.1 200 {}", "O".repeat(70_000));
    let cases = [
        (head(&field.repeat(257)), ReplyError::TooManyHeaders),
        (head(&long_field), ReplyError::HeadTooLarge),
        (long_reason, ReplyError::HeadTooLarge),
        ("HTTP/1.1 100 C\r\n\r\n".repeat(17), ReplyError::BadInterim),
    ];
    for (wire, error) in cases {
        for piece_bytes in [1, 1000, wire.len()] {
            let ending = run_cut(wire.as_bytes().chunks(piece_bytes), &Limits::default(), GET).1;
            assert_eq!(ending, Err(error));
        }
    }
}

#[test]
fn the_number_of_fields_has_a_ceiling() {
    let default = Limits::default();
    let unlimited = Limits {
        header_fields: u16::MAX,
        ..default
    };
    assert_eq!(MAX_HEADER_FIELDS, 256);
    for (fields, limits, expected) in [
        (150, default, Ok(())),
        (256, default, Ok(())),
        (257, default, Err(ReplyError::TooManyHeaders)),
        (256, unlimited, Ok(())),
        (257, unlimited, Err(ReplyError::TooManyHeaders)),
    ] {
        let fields = "A: b\r\n".repeat(fields);
        let wire = format!("HTTP/1.1 204 N\r\n{fields}\r\n");
        assert_eq!(run([wire.as_bytes()], &limits, GET, false).ending, expected);
        assert_eq!(run_cut(wire.as_bytes().chunks(7), &limits, GET).1, expected);
    }
}

/// A valid reply and what must be found in it.
#[derive(Clone, Debug)]
struct Generated {
    wire: Vec<u8>,
    expected: Reply,
}

fn header_fields(count: Range<usize>) -> impl Strategy<Value = String> {
    let line_end = prop_oneof![9 => Just("\r\n"), 1 => Just("\n")];
    proptest::collection::vec(
        ("X-[a-zA-Z0-9-]{0,20}", ":[ \t]{0,2}[ -~]{0,40}", line_end),
        count,
    )
    .prop_map(|fields| {
        fields
            .iter()
            .map(|(name, value, end)| format!("{name}{value}{end}"))
            .collect()
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..300)
}

/// The field that frames a body, and the framed body.
fn framed_body() -> impl Strategy<Value = (String, Vec<u8>)> {
    let with_length = body().prop_map(|body| (format!("Content-Length: {}\r\n", body.len()), body));
    let chunk = (
        proptest::collection::vec(any::<u8>(), 1..100),
        "[ \t]{0,2}(;[a-z=]{0,9}){0,2}",
    );
    let chunked = (proptest::collection::vec(chunk, 0..5), header_fields(0..3)).prop_map(
        |(chunks, trailers)| {
            let mut wire = Vec::new();
            for (data, extension) in chunks {
                wire.extend_from_slice(format!("{:x}{extension}\r\n", data.len()).as_bytes());
                wire.extend_from_slice(&data);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(format!("0\r\n{trailers}\r\n").as_bytes());
            ("Transfer-Encoding: chunked\r\n".to_owned(), wire)
        },
    );
    prop_oneof![with_length, chunked]
}

fn generated_reply() -> impl Strategy<Value = Generated> {
    let interims = proptest::collection::vec(header_fields(0..2), 0..3);
    let without_body = prop_oneof![Just(204_u16), Just(304)]
        .prop_map(|status| (status, String::new(), Vec::new()));
    let with_body = (200..600_u16, framed_body())
        .prop_filter("has no body", |(status, _)| !matches!(status, 204 | 304))
        .prop_map(|(status, (framing, body))| (status, framing, body));
    let content = prop_oneof![1 => without_body, 4 => with_body];
    (
        interims,
        header_fields(0..4),
        content,
        header_fields(0..4),
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(interims, before, (status, framing, body), after, close, later)| {
                let mut head: String = interims
                    .iter()
                    .map(|fields| format!("HTTP/1.1 103 E\r\n{fields}\r\n"))
                    .collect();
                let connection = if close { "Connection: close\r\n" } else { "" };
                let retry = if later { "Retry-After: 1\r\n" } else { "" };
                head += &format!(
                    "HTTP/1.1 {status} R\r\n{before}{framing}{connection}{retry}{after}\r\n"
                );
                let expected = Reply {
                    status,
                    head_bytes: head.len() as u64,
                    body_bytes: body.len() as u64,
                    interim: interims.len() as u16,
                    keep_alive: !close,
                    retry_after: later && status >= 400,
                };
                let mut wire = head.into_bytes();
                wire.extend_from_slice(&body);
                Generated { wire, expected }
            },
        )
}

/// The pieces between the cuts.
fn pieces<'a>(wire: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut.index(wire.len() + 1)).collect();
    ends.push(wire.len());
    ends.sort_unstable();
    let mut start = 0;
    ends.into_iter()
        .map(|end| {
            let piece = &wire[start..end];
            start = end;
            piece
        })
        .collect()
}

fn cuts() -> impl Strategy<Value = Vec<Index>> {
    proptest::collection::vec(any::<Index>(), 0..12)
}

proptest! {
    #[test]
    fn valid_replies_are_found_however_cut(
        replies in proptest::collection::vec(generated_reply(), 1..5),
        cuts in cuts(),
    ) {
        let wire: Vec<u8> = replies.iter().flat_map(|reply| reply.wire.iter().copied()).collect();
        let expected: Vec<Reply> = replies.iter().map(|reply| reply.expected).collect();
        let outcome = run_cut(pieces(&wire, &cuts), &Limits::default(), GET);
        prop_assert_eq!(outcome, (expected, Ok(())));
    }

    #[test]
    fn broken_replies_end_alike_however_cut(
        replies in proptest::collection::vec(generated_reply(), 1..3),
        changes in proptest::collection::vec((any::<Index>(), any::<u8>()), 1..4),
        length in any::<Index>(),
        cuts in cuts(),
        kind in prop_oneof![Just(GET), Just(HEAD), Just(OLD_GET), Just(CONNECT)],
        head_bytes in prop_oneof![Just(64 * 1024), 0..200_u32],
    ) {
        let mut wire: Vec<u8> =
            replies.iter().flat_map(|reply| reply.wire.iter().copied()).collect();
        for (place, byte) in changes {
            let place = place.index(wire.len());
            wire[place] = byte;
        }
        wire.truncate(length.index(wire.len() + 1));
        let limits = Limits { head_bytes, ..Limits::default() };
        let whole = run_cut([&wire[..]], &limits, kind);
        prop_assert_eq!(&run_cut(pieces(&wire, &cuts), &limits, kind), &whole);
        prop_assert_eq!(&run_cut(wire.chunks(1), &limits, kind), &whole);
    }
}
