//! Requests that are given as text, byte by byte: where each ends, and what its reply depends on.

use std::ops::Range;

use thiserror::Error;

use crate::field_value::{is_token_byte, list, printable_prefix};

/// What a reply answers, as far as the end of the reply and of its connection depends on that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RequestKind {
    /// The method of the request, where that matters.
    pub method: MethodKind,
    /// The request is one of HTTP/1.0: its connection is used again only if the reply says so
    /// (`Connection: keep-alive`), whatever the reply's version.
    pub is_http_1_0: bool,
}

/// What matters of a method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// The reply's head says whether it has a body.
    #[default]
    Other,
    /// `HEAD`: the reply has no body (RFC 9110 section 9.3.2).
    Head,
    /// `CONNECT`: a successful reply has no body, and behind it the connection is a tunnel (RFC
    /// 9110 section 9.3.6).
    Connect,
}

impl RequestKind {
    /// Every kind, by its number.
    pub const ALL: [Self; 6] = {
        const fn of(method: MethodKind, is_http_1_0: bool) -> RequestKind {
            RequestKind {
                method,
                is_http_1_0,
            }
        }
        [
            of(MethodKind::Other, false),
            of(MethodKind::Head, false),
            of(MethodKind::Connect, false),
            of(MethodKind::Other, true),
            of(MethodKind::Head, true),
            of(MethodKind::Connect, true),
        ]
    };

    /// The place of the kind in [`RequestKind::ALL`].
    pub fn number(self) -> u32 {
        self.method as u32 + 3 * u32::from(self.is_http_1_0)
    }

    /// The kind of a request of HTTP/1.1 with this method.
    pub fn of_method(method: &[u8]) -> Self {
        Self {
            method: match method {
                b"HEAD" => MethodKind::Head,
                b"CONNECT" => MethodKind::Connect,
                _ => MethodKind::Other,
            },
            is_http_1_0: false,
        }
    }
}

/// Whether a request with this method may be made twice with the effect of once (RFC 9110 section
/// 9.2.2).
pub fn is_idempotent(method: &[u8]) -> bool {
    matches!(
        method,
        b"GET" | b"HEAD" | b"OPTIONS" | b"TRACE" | b"PUT" | b"DELETE"
    )
}

/// One request of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextRequest {
    /// The place of its bytes in the text. The requests of a text follow each other without a gap.
    pub range: Range<usize>,
    /// Where its body begins in the text.
    pub body_start: usize,
    /// What its reply depends on.
    pub kind: RequestKind,
    /// The request says that its connection is not used again: by `Connection: close` or, in
    /// HTTP/1.0, by saying nothing.
    pub closes: bool,
}

/// The longest text that [`scan_requests_into`] takes, bytes: every connection may hold one.
pub const TEXT_BYTES_MAX: usize = 16 << 20;

/// Most requests of one text.
pub const TEXT_REQUESTS_MAX: usize = 4_096;

/// What is wrong with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum TextFault {
    /// The text ends before a request does, or holds none.
    #[error("incomplete request")]
    Incomplete,
    /// A request does not begin with a method.
    #[error("invalid HTTP method")]
    Method,
    /// The URL is missing, or holds a control character.
    #[error("invalid URL")]
    Url,
    /// The first line ends neither with `HTTP/1.0` nor with `HTTP/1.1`.
    #[error("invalid HTTP version")]
    Version,
    /// A carriage return without a line feed.
    #[error("LF character expected")]
    LineFeed,
    /// A character that a header field cannot have there.
    #[error("invalid character in header")]
    Header,
    /// A length that is not a number.
    #[error("invalid character in content-length header")]
    ContentLength,
    /// A second length that differs, or a length beside `Transfer-Encoding`.
    #[error("unexpected content-length header")]
    UnexpectedContentLength,
    /// A chunk does not begin with its size, or does not end where its size says.
    #[error("invalid character in chunk size header")]
    ChunkSize,
    /// A request follows one that ends its connection.
    #[error("data received after completed connection: close message")]
    BehindClosing,
    /// The text has more bytes than [`TEXT_BYTES_MAX`].
    #[error("more than {} MiB of requests at once", TEXT_BYTES_MAX >> 20)]
    TooLong,
    /// The text has more requests than [`TEXT_REQUESTS_MAX`].
    #[error("more than {TEXT_REQUESTS_MAX} requests at once")]
    TooMany,
}

/// Why a text is not one of requests, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{fault} at {line}:{column}")]
pub struct RequestTextError {
    /// What is wrong.
    pub fault: TextFault,
    /// The line of the byte that is wrong, from 1. Lines end with line feeds.
    pub line: usize,
    /// The column of the byte that is wrong, in bytes from 1.
    pub column: usize,
}

/// Finds the requests of `text`, all of which must be complete; there is at least one.
///
/// What is between them is left to whoever wrote them: that a method is known, that a path is one,
/// or that there is a `Host`, is not asked. Line ends without a carriage return are accepted, and
/// so are empty lines before, between and behind requests. Those behind the last one are its own.
///
/// # Errors
///
/// The first fault in the text.
pub fn scan_requests(text: &[u8]) -> Result<Vec<TextRequest>, RequestTextError> {
    let mut found = Vec::new();
    scan_all(text, &mut found)?;
    Ok(found)
}

/// Finds the requests of `text`, which was made for one connection, as [`scan_requests`] does, and
/// writes them to `found`, whose memory is used again.
///
/// # Errors
///
/// The first fault in the text, or that it is longer than [`TEXT_BYTES_MAX`]. What `found` then
/// holds has no meaning.
pub fn scan_requests_into(
    text: &[u8],
    found: &mut Vec<TextRequest>,
) -> Result<(), RequestTextError> {
    found.clear();
    if text.len() > TEXT_BYTES_MAX {
        return Err(located(text, TextFault::TooLong, 0));
    }
    scan_all(text, found)
}

fn scan_all(text: &[u8], found: &mut Vec<TextRequest>) -> Result<(), RequestTextError> {
    let scanned = Scan { text, at: 0 }.all(found);
    scanned.map_err(|(fault, at)| located(text, fault, at))
}

/// A fault with its line and column.
#[cold]
fn located(text: &[u8], fault: TextFault, at: usize) -> RequestTextError {
    let before = &text[..at.min(text.len())];
    let line_start = before
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |feed| feed + 1);
    RequestTextError {
        fault,
        line: 1 + before.iter().filter(|&&byte| byte == b'\n').count(),
        column: 1 + at - line_start,
    }
}

/// A fault, and the offset of the byte that is wrong.
type Fault = (TextFault, usize);

/// What the header fields of a request say about its end, and that of its connection.
#[derive(Default)]
struct StatedFields {
    content_length: Option<u64>,
    is_chunked: bool,
    has_coding: bool,
    close: bool,
    keep_alive: bool,
}

/// A text that is read from its start.
struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn all(&mut self, found: &mut Vec<TextRequest>) -> Result<(), Fault> {
        loop {
            let from = self.at;
            self.skip_empty_lines();
            if self.at == self.text.len() {
                break;
            }
            match found.last() {
                Some(before) if before.closes => return Err((TextFault::BehindClosing, self.at)),
                _ if found.len() == TEXT_REQUESTS_MAX => return Err((TextFault::TooMany, self.at)),
                _ => found.push(self.one(from)?),
            }
        }
        match found.last_mut() {
            Some(last) => last.range.end = self.text.len(),
            None => return Err((TextFault::Incomplete, self.at)),
        }
        Ok(())
    }

    fn one(&mut self, from: usize) -> Result<TextRequest, Fault> {
        let mut kind = RequestKind::of_method(self.method()?);
        self.url()?;
        kind.is_http_1_0 = self.version()?;
        let stated = self.fields()?;
        let body_start = self.at;
        if stated.is_chunked {
            self.chunks()?;
        } else {
            let left = (self.text.len() - self.at) as u64;
            match stated.content_length.unwrap_or(0) {
                bytes if bytes <= left => self.at += bytes as usize,
                _ => return Err((TextFault::Incomplete, self.text.len())),
            }
        }
        Ok(TextRequest {
            range: from..self.at,
            body_start,
            kind,
            closes: stated.close || kind.is_http_1_0 && !stated.keep_alive,
        })
    }

    fn skip_empty_lines(&mut self) {
        while matches!(self.text.get(self.at), Some(b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// The byte that comes next.
    fn peek(&self) -> Result<u8, Fault> {
        let byte = self.text.get(self.at).copied();
        byte.ok_or((TextFault::Incomplete, self.at))
    }

    /// Skips bytes that `is_part`, and gives them.
    fn while_part(&mut self, is_part: impl Fn(u8) -> bool) -> &[u8] {
        let rest = &self.text[self.at..];
        let count = rest.iter().position(|&byte| !is_part(byte));
        let part = &rest[..count.unwrap_or(rest.len())];
        self.at += part.len();
        part
    }

    /// An upper-case word, with the space behind it.
    fn method(&mut self) -> Result<&[u8], Fault> {
        let from = self.at;
        self.while_part(|byte| byte.is_ascii_uppercase() || matches!(byte, b'-' | b'_'));
        let end = self.at;
        if self.peek()? != b' ' || end == from {
            return Err((TextFault::Method, end));
        }
        self.while_part(|byte| byte == b' ');
        Ok(&self.text[from..end])
    }

    /// The URL, with the space behind it.
    fn url(&mut self) -> Result<(), Fault> {
        let bytes = printable_prefix(&self.text[self.at..], b'!');
        self.at += bytes;
        if self.peek()? != b' ' || bytes == 0 {
            return Err((TextFault::Url, self.at));
        }
        self.while_part(|byte| byte == b' ');
        Ok(())
    }

    /// The version, with the end of its line. Gives whether it is HTTP/1.0.
    fn version(&mut self) -> Result<bool, Fault> {
        if self.text[self.at..].starts_with(b"HTTP/1.1\r\n") {
            self.at += 10;
            return Ok(false);
        }
        for &expected in b"HTTP/1." {
            if self.peek()? != expected {
                return Err((TextFault::Version, self.at));
            }
            self.at += 1;
        }
        let minor = self.peek()?;
        if !matches!(minor, b'0' | b'1') {
            return Err((TextFault::Version, self.at));
        }
        self.at += 1;
        self.line_end(TextFault::Version)?;
        Ok(minor == b'0')
    }

    /// CRLF, or LF alone; `fault` where the line goes on.
    #[inline]
    fn line_end(&mut self, fault: TextFault) -> Result<(), Fault> {
        if self.text[self.at..].starts_with(b"\r\n") {
            self.at += 2;
            return Ok(());
        }
        self.other_line_end(fault)
    }

    fn other_line_end(&mut self, fault: TextFault) -> Result<(), Fault> {
        match self.peek()? {
            b'\n' => {}
            b'\r' => {
                self.at += 1;
                if self.peek()? != b'\n' {
                    return Err((TextFault::LineFeed, self.at));
                }
            }
            _ => return Err((fault, self.at)),
        }
        self.at += 1;
        Ok(())
    }

    /// Header fields, with the empty line behind them.
    fn fields(&mut self) -> Result<StatedFields, Fault> {
        let mut stated = StatedFields::default();
        while !matches!(self.peek()?, b'\r' | b'\n') {
            self.field(&mut stated)?;
        }
        self.line_end(TextFault::Header)?;
        if stated.has_coding && stated.content_length.is_some() {
            return Err((TextFault::UnexpectedContentLength, self.at));
        }
        Ok(stated)
    }

    fn field(&mut self, stated: &mut StatedFields) -> Result<(), Fault> {
        let name_from = self.at;
        self.while_part(is_token_byte);
        let name_end = self.at;
        if self.peek()? != b':' || name_end == name_from {
            return Err((TextFault::Header, self.at));
        }
        self.at += 1;
        let value_from = self.at;
        loop {
            self.at += printable_prefix(&self.text[self.at..], b' ');
            if self.text.get(self.at) != Some(&b'\t') {
                break;
            }
            self.at += 1;
        }
        let value = &self.text[value_from..self.at];
        match name_end - name_from {
            10 | 14 | 17 => stated.add(&self.text[name_from..name_end], value, value_from)?,
            _ => {}
        }
        self.line_end(TextFault::Header)
    }

    /// A body in chunks, with its trailers (RFC 9112 section 7.1).
    fn chunks(&mut self) -> Result<(), Fault> {
        loop {
            let digits_from = self.at;
            let digits = self.while_part(|byte| byte.is_ascii_hexdigit());
            let size = std::str::from_utf8(digits)
                .ok()
                .and_then(|digits| usize::from_str_radix(digits, 16).ok());
            let next = self.peek()?;
            let Some(size) = size else {
                return Err((TextFault::ChunkSize, digits_from));
            };
            if matches!(next, b';' | b' ' | b'\t') {
                self.while_part(|byte| !matches!(byte, b'\r' | b'\n'));
            }
            self.line_end(TextFault::ChunkSize)?;
            if size == 0 {
                break;
            }
            if size > self.text.len() - self.at {
                return Err((TextFault::Incomplete, self.text.len()));
            }
            self.at += size;
            self.line_end(TextFault::ChunkSize)?;
        }
        self.fields().map(|_| ())
    }
}

impl StatedFields {
    /// Takes a field whose value begins at `value_from`.
    fn add(&mut self, name: &[u8], value: &[u8], value_from: usize) -> Result<(), Fault> {
        if name.eq_ignore_ascii_case(b"connection") {
            for option in list(value) {
                self.close |= option.eq_ignore_ascii_case(b"close");
                self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.has_coding = true;
            let last = list(value).last();
            self.is_chunked = last.is_some_and(|coding| coding.eq_ignore_ascii_case(b"chunked"));
        } else if name.eq_ignore_ascii_case(b"content-length") {
            let bytes = content_length(value, value_from)?;
            if self.content_length.is_some_and(|before| before != bytes) {
                return Err((TextFault::UnexpectedContentLength, value_from));
            }
            self.content_length = Some(bytes);
        }
        Ok(())
    }
}

/// The length that the value of a field states.
fn content_length(value: &[u8], value_from: usize) -> Result<u64, Fault> {
    let padding = value
        .iter()
        .take_while(|&&byte| matches!(byte, b' ' | b'\t'));
    let from = padding.count();
    let digits = value[from..].trim_ascii_end();
    let wrong = digits.iter().position(|byte| !byte.is_ascii_digit());
    let number = std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| digits.parse().ok());
    match (wrong, number) {
        (None, Some(bytes)) => Ok(bytes),
        (wrong, _) => Err((
            TextFault::ContentLength,
            value_from + from + wrong.unwrap_or(0),
        )),
    }
}

/// The parts of one request of a text, for a protocol that words them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextParts<'a> {
    /// Method.
    pub method: &'a [u8],
    /// What is asked for: a path with its query, or a whole URL.
    pub url: &'a [u8],
    /// The lines of its header fields, without the empty one behind them.
    fields: &'a [u8],
    /// What is behind the head, as it is sent.
    pub body: &'a [u8],
}

impl<'a> TextParts<'a> {
    /// The parts of a request that was found in `text`.
    pub fn of(text: &'a [u8], request: &TextRequest) -> Self {
        let head = text[request.range.start..request.body_start].trim_ascii_start();
        let line_end = head.iter().position(|&byte| byte == b'\n');
        let (line, fields) = head.split_at(line_end.map_or(head.len(), |feed| feed + 1));
        let (method, rest) = first_word(line.trim_ascii());
        // What is filled in may have spaces.
        let version = rest.iter().rposition(u8::is_ascii_whitespace);
        let version = version.filter(|&at| rest[at + 1..].starts_with(b"HTTP/"));
        let url = version.map_or_else(|| first_word(rest).0, |at| rest[..at].trim_ascii_end());
        Self {
            method,
            url,
            fields: fields.trim_ascii_end(),
            body: &text[request.body_start..request.range.end],
        }
    }

    /// Names and values of its header fields, in order, without the spaces around values.
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        field_lines(self.fields)
    }
}

/// Names and values of the header fields in these lines, without the spaces around values.
pub(super) fn field_lines(lines: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    lines.split(|&byte| byte == b'\n').filter_map(|line| {
        let colon = line.iter().position(|&byte| byte == b':')?;
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    })
}

/// The first word of a line, and what follows the spaces behind it.
fn first_word(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(u8::is_ascii_whitespace);
    let (word, rest) = line.split_at(end.unwrap_or(line.len()));
    (word, rest.trim_ascii_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<TextRequest> {
        scan_requests(text.as_bytes()).expect("requests")
    }

    #[test]
    fn what_may_be_made_twice_has_such_a_method() {
        for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"] {
            assert!(is_idempotent(method.as_bytes()), "{method}");
        }
        for method in ["POST", "PATCH", "CONNECT", "get", "PURGE", ""] {
            assert!(!is_idempotent(method.as_bytes()), "{method}");
        }
    }

    fn refused(text: &str) -> String {
        match scan_requests(text.as_bytes()) {
            Ok(found) => panic!("{text:?}: {found:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_text_holds_one_request_or_several() {
        let one = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        let requests = found(one);
        assert_eq!(requests.len(), 1);
        assert_eq!(requests[0].range, 0..one.len());
        assert_eq!(requests[0].kind, RequestKind::default());
        assert!(!requests[0].closes);
        let post = "POST /a HTTP/1.1\r\nContent-Length:  3 \r\n\r\nabc";
        let chunked = "PUT /b HTTP/1.1\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n\
                       3;x=y\r\nabc\r\n0\r\nT: v\r\n\r\n";
        let last = "\r\nHEAD /c HTTP/1.0\nConnection: Keep-Alive\n\n";
        let text = format!("{one}{post}{chunked}{last}\r\n");
        let requests = found(&text);
        let texts = requests.iter().map(|request| &text[request.range.clone()]);
        let last = &format!("{last}\r\n");
        assert_eq!(texts.collect::<Vec<_>>(), [one, post, chunked, last]);
        let kind = &requests[3].kind;
        assert_eq!((kind.method, kind.is_http_1_0), (MethodKind::Head, true));
        assert!(!requests[3].closes);
        assert_eq!(&text[requests[1].body_start..requests[1].range.end], "abc");
    }

    #[test]
    fn kinds_have_numbers() {
        for (number, kind) in RequestKind::ALL.into_iter().enumerate() {
            assert_eq!(kind.number() as usize, number);
        }
    }

    #[test]
    fn a_request_may_end_its_connection() {
        let closes = |text| found(text)[0].closes;
        assert!(closes("GET / HTTP/1.0\r\n\r\n"));
        assert!(closes("GET / HTTP/1.1\r\nconnection: te, Close\r\n\r\n"));
        assert!(!closes("GET / HTTP/1.1\r\nX-Connection: close\r\n\r\n"));
        let connect = found("CONNECT a:1 HTTP/1.1\r\n\r\n");
        assert_eq!(connect[0].kind.method, MethodKind::Connect);
    }

    /// The first two of each table are what wrk 4.1.0 says to these texts.
    #[test]
    fn faults_have_their_places() {
        let two = "GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n";
        for (text, message) in [
            ("", "incomplete request at 1:1"),
            ("42", "invalid HTTP method at 1:1"),
            ("get / HTTP/1.1\r\n\r\n", "invalid HTTP method at 1:1"),
            ("GET\r\n\r\n", "invalid HTTP method at 1:4"),
            ("GET  HTTP/1.1\r\n\r\n", "invalid URL at 1:14"),
            ("GET /\r\n\r\n", "invalid URL at 1:6"),
            ("GET /a\tb HTTP/1.1\r\n\r\n", "invalid URL at 1:7"),
            ("GET / HTTP/2.0\r\n\r\n", "invalid HTTP version at 1:12"),
            ("GET / HTTP/1.2\r\n\r\n", "invalid HTTP version at 1:14"),
            ("GET / HTTP/1.1 \r\n\r\n", "invalid HTTP version at 1:15"),
            ("GET / HTTP/1.1\rX", "LF character expected at 1:16"),
            (
                two,
                "data received after completed connection: close message at 3:1",
            ),
        ] {
            assert_eq!(refused(text), message, "{text:?}");
        }
        let (header, length) = ("invalid character in header", "content-length header");
        let (unexpected, size) = ("unexpected content-length", "chunk size header");
        let cut = "incomplete request";
        for (rest, message, place) in [
            ("Foo bar\r\n\r\n", header, "2:4"),
            ("Host: x\r\n", cut, "3:1"),
            (": x\r\n\r\n", header, "2:1"),
            ("A: \0\r\n\r\n", header, "2:4"),
            ("Content-Length: 1x\r\n\r\n", length, "2:18"),
            ("Content-Length:\r\n\r\n", length, "2:16"),
            (
                "Content-Length: 99999999999999999999\r\n\r\n",
                length,
                "2:17",
            ),
            (
                "Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
                unexpected,
                "3:16",
            ),
            (
                "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
                unexpected,
                "5:1",
            ),
            ("Content-Length: 5\r\n\r\nabc", cut, "4:4"),
            ("Transfer-Encoding: chunked\r\n\r\nzz\r\n", size, "4:1"),
            (
                "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n",
                size,
                "5:4",
            ),
            (
                "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
                cut,
                "5:1",
            ),
        ] {
            let error = refused(&format!("GET / HTTP/1.1\r\n{rest}"));
            let is_right = error.contains(message) && error.ends_with(&format!(" at {place}"));
            assert!(is_right, "{rest:?}: {error}");
        }
    }

    #[test]
    fn what_is_cut_is_incomplete() {
        let text = "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
                    2\r\nab\r\n0\r\nT: v\r\n\r\n";
        for end in 0..text.len() {
            let error = scan_requests(&text.as_bytes()[..end]).expect_err("cut");
            assert_eq!(error.fault, TextFault::Incomplete, "{:?}", &text[..end]);
        }
        assert_eq!(found(text).len(), 1);
    }

    #[test]
    fn texts_are_bounded() {
        let head = format!("POST / HTTP/1.1\r\nContent-Length: {TEXT_BYTES_MAX}\r\n\r\n");
        let long = [head.as_bytes(), &vec![b'a'; TEXT_BYTES_MAX]].concat();
        // A list holds it once for all connections.
        let whole = scan_requests(&long).expect("one")[0].range.len();
        assert_eq!(whole, long.len());
        let error = scan_requests_into(&long, &mut Vec::new()).expect_err("too long");
        let message = "more than 16 MiB of requests at once at 1:1";
        assert_eq!(error.to_string(), message);
        let one = "GET / HTTP/1.1\r\n\r\n";
        let most = found(&one.repeat(TEXT_REQUESTS_MAX)).len();
        assert_eq!(most, TEXT_REQUESTS_MAX);
        let message = refused(&one.repeat(TEXT_REQUESTS_MAX + 1));
        assert_eq!(message, "more than 4096 requests at once at 8193:1");
    }

    #[test]
    fn parts_are_found() {
        let text = "\r\nPOST  http://h/p?q HTTP/1.1\r\nHost:h\r\nA:  b c \r\nContent-Length: 2\r\n\
                    \r\nxy";
        let requests = found(text);
        let parts = TextParts::of(text.as_bytes(), &requests[0]);
        assert_eq!(parts.method, b"POST");
        assert_eq!(parts.url, b"http://h/p?q");
        let fields: Vec<(&[u8], &[u8])> = parts.fields().collect();
        let expected: [(&[u8], &[u8]); 3] =
            [(b"Host", b"h"), (b"A", b"b c"), (b"Content-Length", b"2")];
        assert_eq!(fields, expected);
        assert_eq!(parts.body, b"xy");
        let bare = "GET / HTTP/1.1\n\n";
        let parts = TextParts::of(bare.as_bytes(), &found(bare)[0]);
        assert_eq!(parts.fields().count(), 0);
    }
}
