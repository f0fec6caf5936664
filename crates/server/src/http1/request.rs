//! Reading requests of HTTP/1.1: heads with `httparse`, bodies skipped, state kept only while they
//! are incomplete.

use std::mem::MaybeUninit;

use brunt_proto::Limits;
use brunt_proto::http1::{ChunkedReader, ReplyError};
use httparse::Status;

use crate::answer::After;
use crate::route::{self, Method, Route};

/// The largest request head, bytes.
pub(crate) const HEAD_BYTES_MAX: usize = 64 * 1024;
/// The most header fields in a request; in HTTP/2 without pseudo-header fields.
pub(crate) const FIELDS_MAX: usize = 256;
/// Longer heads are not remembered.
const KNOWN_BYTES_MAX: usize = 4 * 1024;

/// All that matters of a request's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) route: Route,
    pub(crate) body: Body,
    /// Whether the client wants the connection kept (RFC 9112 section 9.3).
    pub(crate) keep_alive: bool,
    pub(crate) http10: bool,
    /// The client waits for 100 before it sends the body (RFC 9110 section 10.1.1).
    pub(crate) expects_continue: bool,
}

impl Request {
    /// How the connection goes on after the reply, as the client asked.
    pub(crate) fn after(&self) -> After {
        if self.keep_alive {
            After::KeepOpen
        } else {
            After::Close
        }
    }
}

/// Why a request cannot be read; the answer is 400 and the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    #[error("malformed head: {0}")]
    Head(httparse::Error),
    #[error("head beyond {HEAD_BYTES_MAX} bytes")]
    HeadTooLong,
    #[error("HTTP/1.1 needs exactly one Host field")]
    Host,
    #[error("bad Content-Length, or two that differ")]
    ContentLength,
    #[error("a Transfer-Encoding other than chunked, or beside Content-Length, or in HTTP/1.0")]
    TransferEncoding,
    #[error(transparent)]
    Body(#[from] ReplyError),
}

/// What the reader found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestFound {
    /// A request, head and body complete.
    Request(Request),
    /// The client waits for 100 (Continue) before the body; given once per request.
    ContinueWanted,
    /// More bytes are needed.
    Incomplete,
}

/// The state of reading one connection's requests. At its default between requests.
#[derive(Debug, Default)]
pub(crate) struct RequestReader {
    /// The request whose body is being skipped.
    body: Option<(Request, BodySkip)>,
    /// Bytes of the unfinished head that were searched without finding its end.
    pub(super) looked_at: usize,
}

impl RequestReader {
    /// Whether no request has begun.
    pub(crate) fn is_idle(&self) -> bool {
        self.body.is_none() && self.looked_at == 0
    }

    /// Whether a request's body is coming.
    pub(crate) fn is_in_body(&self) -> bool {
        self.body.is_some()
    }

    /// Looks for the next request in `input`; also returns how many bytes it took. The caller keeps
    /// what was not taken and gives it again, with more behind it.
    pub(crate) fn read(
        &mut self,
        input: &[u8],
        known: &mut KnownHead,
    ) -> Result<(usize, RequestFound), Malformed> {
        let mut taken = 0;
        let mut head_is_new = false;
        if self.body.is_none() {
            let Some((request, length)) = self.read_head(input, known)? else {
                return Ok((0, RequestFound::Incomplete));
            };
            taken = length;
            if request.body == Body::Length(0) {
                return Ok((taken, RequestFound::Request(request)));
            }
            self.body = Some((request, BodySkip::new(request.body)));
            head_is_new = true;
        }
        let Some((request, skip)) = &mut self.body else {
            return Ok((taken, RequestFound::Incomplete));
        };
        let request = *request;
        let rest = &input[taken..];
        let (skipped, is_complete) = skip.skip(rest)?;
        taken += skipped;
        if is_complete {
            self.body = None;
            return Ok((taken, RequestFound::Request(request)));
        }
        let waits = request.expects_continue && head_is_new && rest.is_empty();
        Ok((
            taken,
            if waits {
                RequestFound::ContinueWanted
            } else {
                RequestFound::Incomplete
            },
        ))
    }

    fn read_head(
        &mut self,
        input: &[u8],
        known: &mut KnownHead,
    ) -> Result<Option<(Request, usize)>, Malformed> {
        if let Some(found) = known.find(input) {
            self.looked_at = 0;
            return Ok(Some(found));
        }
        // A head ends with a line end, so without a new one there is nothing new to find; looking
        // again at double the length finds garbage early. Keeps byte-wise arrival linear.
        let news = input.get(self.looked_at..).unwrap_or(input);
        let worth_it = news.contains(&b'\n') || input.len() >= 2 * self.looked_at;
        let found = if worth_it { read_head(input)? } else { None };
        match found {
            Some((request, length)) => {
                self.looked_at = 0;
                known.remember(&input[..length], request);
                Ok(Some((request, length)))
            }
            None if input.len() >= HEAD_BYTES_MAX => Err(Malformed::HeadTooLong),
            None => {
                self.looked_at = input.len();
                Ok(None)
            }
        }
    }
}

/// The latest head and what it meant. Load generators send the same head over and over, and equal
/// bytes mean an equal request.
#[derive(Debug, Default)]
pub(crate) struct KnownHead {
    bytes: Vec<u8>,
    request: Option<Request>,
}

impl KnownHead {
    fn find(&self, input: &[u8]) -> Option<(Request, usize)> {
        let request = self.request?;
        // The head ends with an empty line: whatever follows it is not a part of it.
        input
            .starts_with(&self.bytes)
            .then_some((request, self.bytes.len()))
    }

    fn remember(&mut self, head: &[u8], request: Request) {
        if head.len() <= KNOWN_BYTES_MAX {
            self.bytes.clear();
            self.bytes.extend_from_slice(head);
            self.request = Some(request);
        }
    }
}

/// Reads a whole head, or nothing of it. `httparse` skips the empty lines before it (RFC 9112
/// section 2.2).
fn read_head(input: &[u8]) -> Result<Option<(Request, usize)>, Malformed> {
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut head = httparse::Request::new(&mut []);
    let length = match head.parse_with_uninit_headers(input, &mut fields) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) => return Ok(None),
        Err(error) => return Err(Malformed::Head(error)),
    };
    if length > HEAD_BYTES_MAX {
        return Err(Malformed::HeadTooLong);
    }
    let http10 = head.version == Some(0);
    let framing = BodyFraming::of(head.headers)?;
    if !http10 && framing.hosts != 1 {
        return Err(Malformed::Host);
    }
    let body = match (framing.length, framing.chunked) {
        (None, false) => Body::Length(0),
        (Some(length), false) => Body::Length(length),
        (None, true) if !http10 => Body::Chunked,
        _ => return Err(Malformed::TransferEncoding),
    };
    let request = Request {
        method: Method::of(head.method.unwrap_or_default()),
        route: Route::of(head.path.unwrap_or_default()),
        body,
        keep_alive: !framing.close && (!http10 || framing.keep_alive),
        http10,
        expects_continue: framing.expects_continue && !http10,
    };
    Ok(Some((request, length)))
}

/// What the header fields say about the message's limits and the connection.
#[derive(Default)]
struct BodyFraming {
    hosts: u32,
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    expects_continue: bool,
}

impl BodyFraming {
    fn of(fields: &[httparse::Header<'_>]) -> Result<Self, Malformed> {
        let mut framing = Self::default();
        for field in fields {
            let is = |name: &str| field.name.eq_ignore_ascii_case(name);
            // By length first: most fields are none of these.
            match field.name.len() {
                4 if is("host") => framing.hosts += 1,
                6 if is("expect") => {
                    framing.expects_continue |= field.value.eq_ignore_ascii_case(b"100-continue");
                }
                10 if is("connection") => {
                    for option in field.value.split(|byte| *byte == b',') {
                        let option = option.trim_ascii();
                        framing.close |= option.eq_ignore_ascii_case(b"close");
                        framing.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                14 if is("content-length") => {
                    let length = content_length(field.value).ok_or(Malformed::ContentLength)?;
                    if framing.length.is_some_and(|earlier| earlier != length) {
                        return Err(Malformed::ContentLength);
                    }
                    framing.length = Some(length);
                }
                17 if is("transfer-encoding") => {
                    if framing.chunked || !field.value.eq_ignore_ascii_case(b"chunked") {
                        return Err(Malformed::TransferEncoding);
                    }
                    framing.chunked = true;
                }
                _ => {}
            }
        }
        Ok(framing)
    }
}

/// Digits only (RFC 9110 section 8.6).
pub(crate) fn content_length(value: &[u8]) -> Option<u64> {
    route::count(std::str::from_utf8(value).ok()?)
}

/// How the end of a request's body is found (RFC 9112 section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    /// Content-Length, or 0.
    Length(u64),
    Chunked,
}

/// What of a body is to come next.
#[derive(Debug)]
enum BodySkip {
    /// So many bytes.
    Length(u64),
    Chunks(ChunkedReader),
}

impl BodySkip {
    /// The start of a body.
    fn new(body: Body) -> Self {
        match body {
            Body::Length(length) => Self::Length(length),
            Body::Chunked => Self::Chunks(ChunkedReader::default()),
        }
    }

    /// Takes as much of `input` as belongs to the body. Gives how much that was, and whether the
    /// body is complete.
    fn skip(&mut self, input: &[u8]) -> Result<(usize, bool), ReplyError> {
        match self {
            Self::Length(left) => {
                let taken =
                    usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                *left -= taken as u64;
                Ok((taken, *left == 0))
            }
            Self::Chunks(chunks) => {
                let end = chunks.receive(input, &Limits::default())?;
                Ok((end.unwrap_or(input.len()), end.is_some()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fuzz::{fuzz_requests, read_all, read_more};
    use super::*;

    fn get(route: Route) -> Request {
        Request {
            method: Method::GET,
            route,
            body: Body::Length(0),
            keep_alive: true,
            http10: false,
            expects_continue: false,
        }
    }

    /// The requests in `text`, checked to be the same when it is cut at every byte.
    fn read(text: &str) -> (Vec<Request>, Result<(), Malformed>) {
        fuzz_requests(text.as_bytes());
        for cut in 0..text.len() {
            let mut reader = RequestReader::default();
            let mut known = KnownHead::default();
            let (mut input, mut requests) = (text.as_bytes()[..cut].to_vec(), Vec::new());
            let first = read_more(&mut reader, &mut known, &mut input, &mut requests);
            input.extend_from_slice(&text.as_bytes()[cut..]);
            let end =
                first.and_then(|()| read_more(&mut reader, &mut known, &mut input, &mut requests));
            assert_eq!(
                (requests, end),
                read_all(text.as_bytes(), text.len()),
                "cut at {cut}"
            );
        }
        read_all(text.as_bytes(), text.len())
    }

    /// A request with these fields beside its host, and what follows its head.
    fn asked(line: &str, fields: &str, end: &str) -> String {
        format!("{line} HTTP/1.1\r\nHost: x\r\n{fields}\r\n{end}")
    }

    #[test]
    fn well_formed_requests_are_read() {
        let null = get(Route::Null);
        let plain = asked("GET /", "", "");
        let of = |method, route, body| Request {
            method: Method::of(method),
            body,
            ..get(route)
        };
        let post = of("POST", Route::Null, Body::Length(5));
        let put = of("PUT", Route::Null, Body::Chunked);
        let absent = of("HEAD", Route::Status(404), Body::Length(0));
        let unknown = of("BREW", Route::Unknown, Body::Length(0));
        let old = Request {
            http10: true,
            ..null
        };
        let last = |request: Request| Request {
            keep_alive: false,
            ..request
        };
        let five = get(Route::Bytes(5));
        let (length, encoding) = ("Content-Length: 5\r\n", "Transfer-Encoding: Chunked\r\n");
        let chunks = "5;a=b\r\n12345\r\n0\r\nT: 1\r\n\r\n";
        let pipelined = plain.clone() + &asked("GET /bytes/5", "", "") + &plain + "GET";
        let closing = asked("GET /", "Connection: Foo, Close\r\n", "");
        let kept = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
        let sized = asked("POST /", &length.repeat(2), "12345") + &plain;
        for (text, requests) in [
            (String::new(), vec![]),
            ("\r\n\r\n".to_owned(), vec![]),
            (plain.clone(), vec![null]),
            (format!("\r\n\n{plain}\r\n"), vec![null]),
            (plain.replace('\r', ""), vec![null]),
            (pipelined, vec![null, five, null]),
            (closing, vec![last(null)]),
            ("GET / HTTP/1.0\r\n\r\n".to_owned(), vec![last(old)]),
            (kept.to_owned(), vec![old]),
            (asked("HEAD /status/404", "", ""), vec![absent]),
            (asked("BREW /pot", "", ""), vec![unknown]),
            (sized, vec![post, null]),
            (asked("PUT /", encoding, chunks) + &plain, vec![put, null]),
            (asked("POST /", length, "1234"), vec![]),
        ] {
            assert_eq!(read(&text), (requests, Ok(())), "{text:?}");
        }
    }

    #[test]
    fn malformed_requests_end_the_reading() {
        use httparse::Error;
        let (length, encoding) = (Malformed::ContentLength, Malformed::TransferEncoding);
        let both = "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n";
        let of_fields = [
            ("Host: y\r\n", Malformed::Host),
            ("no colon\r\n", Malformed::Head(Error::HeaderName)),
            ("Content-Length: +5\r\n", length),
            ("Content-Length: \r\n", length),
            ("Content-Length: 5\r\nContent-Length: 6\r\n", length),
            ("Content-Length: 18446744073709551616\r\n", length),
            ("Transfer-Encoding: gzip, chunked\r\n", encoding),
            (both, encoding),
        ]
        .map(|(fields, error)| (asked("POST /", fields, ""), error));
        let chunked = "Transfer-Encoding: chunked\r\n";
        let (token, version) = (
            Malformed::Head(Error::Token),
            Malformed::Head(Error::Version),
        );
        let chunk = Malformed::Body(ReplyError::BadChunk);
        let others = [
            ("\u{16}\u{3}\u{1}\u{2}".to_owned(), token),
            ("GET / HTTP/2.0\r\n\r\n".to_owned(), version),
            ("GET / HTTP/1.1\r\n\r\n".to_owned(), Malformed::Host),
            (format!("POST / HTTP/1.0\r\n{chunked}\r\n"), encoding),
            (asked("POST /", chunked, "x\r\n"), chunk),
        ];
        for (text, error) in of_fields.into_iter().chain(others) {
            assert_eq!(read(&text), (vec![], Err(error)), "{text:?}");
        }
    }

    #[test]
    fn heads_are_bounded() {
        let too_many = Malformed::Head(httparse::Error::TooManyHeaders);
        for (fields, expected) in [(FIELDS_MAX, Ok(())), (FIELDS_MAX + 1, Err(too_many))] {
            let others = "X: y\r\n".repeat(fields - 1);
            let text = format!("GET / HTTP/1.1\r\nHost: x\r\n{others}\r\n");
            assert_eq!(read_all(text.as_bytes(), 1).1, expected, "{fields}");
        }

        let longest = HEAD_BYTES_MAX - "GET / HTTP/1.1\r\nHost: \r\n\r\n".len();
        for (length, end) in [
            (longest, Ok(())),
            (longest + 1, Err(Malformed::HeadTooLong)),
        ] {
            let text = format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", "x".repeat(length));
            for step in [text.len(), 1_000, 1] {
                let (requests, outcome) = read_all(text.as_bytes(), step);
                assert_eq!((requests.len(), outcome), (usize::from(end.is_ok()), end));
            }
        }
    }

    #[test]
    fn continue_is_wanted_once_and_only_without_a_body() {
        let head =
            "POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
        let mut known = KnownHead::default();
        let mut reader = RequestReader::default();
        let found = reader.read(head.as_bytes(), &mut known).unwrap();
        assert_eq!(found, (head.len(), RequestFound::ContinueWanted));
        assert_eq!(
            reader.read(b"", &mut known).unwrap(),
            (0, RequestFound::Incomplete)
        );
        assert_eq!(
            reader.read(b"1", &mut known).unwrap(),
            (1, RequestFound::Incomplete)
        );
        assert!(matches!(
            reader.read(b"2", &mut known).unwrap(),
            (1, RequestFound::Request(_))
        ));
        let with_body = format!("{head}1");
        let found = reader.read(with_body.as_bytes(), &mut known).unwrap();
        assert_eq!(found, (with_body.len(), RequestFound::Incomplete));
    }

    #[test]
    fn mutated_requests_read_the_same_in_pieces() {
        let seed = b"POST /bytes/5 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
            5;a=b\r\n12345\r\n0\r\nT: 1\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n";
        for at in 0..seed.len() {
            for byte in [b'\r', b'\n', b':', b' ', b'0', b'f', 0, 0xff] {
                let mut data = seed.to_vec();
                data[at] = byte;
                fuzz_requests(&data);
                data.truncate(at + 1);
                fuzz_requests(&data);
            }
        }
    }

    #[test]
    fn bodies_end_where_they_say() {
        let chunked = |chunks| (asked("PUT /", "Transfer-Encoding: chunked\r\n", ""), chunks);
        let sized = |length, body| {
            (
                asked("PUT /", &format!("Content-Length: {length}\r\n"), ""),
                body,
            )
        };
        let (complete, bad) = (Ok(true), Err(Malformed::Body(ReplyError::BadChunk)));
        for ((head, body), outcome) in [
            (sized(0, ""), complete),
            (sized(2, "ab"), complete),
            (sized(4, "abc"), Ok(false)),
            (chunked("0\r\n\r\n"), complete),
            (chunked("3\r\nabc\r\n0\r\n\r\n"), complete),
            (
                chunked("0A;x=\"y\"\r\n0123456789\r\n00\r\nT: v\r\n\r\n"),
                complete,
            ),
            (chunked("3\r\nab"), Ok(false)),
            (chunked("3\n"), bad),
            (chunked("\r\n"), bad),
            (chunked("-1\r\n"), bad),
            (chunked("fffffffffffffffff\r\n"), bad),
            (chunked("3\r\nabcd\r\n"), bad),
            (chunked("3\r\nabc\rx"), bad),
        ] {
            let (requests, end) = read(&(head + body));
            assert_eq!(end.map(|()| requests.len() == 1), outcome, "{body:?}");
        }
    }
}
