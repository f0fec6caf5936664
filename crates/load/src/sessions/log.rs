//! Parsing logs of sessions: the files of httperf's `--wsesslog`.

use std::collections::HashMap;
use std::fmt::Display;

use thiserror::Error;

use crate::{RequestSet, RequestSpec, Schedule};

/// Why a log of sessions cannot be used.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct SessionLogError(String);

const EMPTY: &str =
    "there is no session in it; write one path per line, and an empty line between two";
const NOT_TEXT: &str = "it is not text in UTF-8";
const NO_METHOD: &str = "a method is missing behind method=";
const UNCLOSED: &str = "the quotation mark of its contents has no counterpart";

/// A line, which this is wrong with.
fn refused(line: usize, reason: impl Display) -> SessionLogError {
    SessionLogError(format!("line {line}: {reason}"))
}

/// Sessions in the order in which they are replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLog {
    /// The sessions, at least one.
    pub sessions: Vec<LoggedSession>,
}

/// What one user does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedSession {
    /// The bursts of the session in order, at least one.
    pub bursts: Vec<Burst>,
}

/// A request, those that are sent all at once when it is answered, and a pause after the last of
/// their replies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Burst {
    /// The requests of the burst in order, at least one.
    pub requests: Vec<LoggedRequest>,
    /// The pause until the next burst, nanoseconds; absent where the log does not say. What stands
    /// last in the burst counts.
    pub think_ns: Option<u64>,
}

/// One request of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedRequest {
    /// The number of its (first) line, from 1.
    pub line: usize,
    /// Method, path and content; no header fields.
    pub request: RequestSpec,
}

impl SessionLog {
    /// The most requests of a burst.
    pub const BURST_MAX: usize = 1_000;

    /// Reads a log. Lines that begin with `#` are passed over; lines of spaces alone part the
    /// sessions; a line that begins with a space belongs to the burst of the line above.
    ///
    /// # Errors
    ///
    /// The first line that is malformed.
    pub fn parse(text: &[u8]) -> Result<Self, SessionLogError> {
        let mut reader = Reader {
            rest: text,
            line: 1,
        };
        let mut sessions: Vec<LoggedSession> = Vec::new();
        let (mut is_open, mut requests) = (false, 0);
        while let Some(begin) = reader.line_begin() {
            let (request, think_ns) = match begin {
                Begin::Comment => {
                    while reader.take().is_some_and(|byte| byte != b'\n') {}
                    continue;
                }
                Begin::Empty => {
                    is_open = false;
                    continue;
                }
                Begin::Request { .. } => reader.request()?,
            };
            requests += 1;
            if requests > RequestSet::REQUESTS_MAX {
                let most = RequestSet::REQUESTS_MAX;
                let words = format!("it has more than {most} requests; split it");
                return Err(SessionLogError(words));
            }
            if !std::mem::replace(&mut is_open, true) {
                sessions.push(LoggedSession::default());
            }
            let last = sessions.len() - 1;
            let bursts = &mut sessions[last].bursts;
            if bursts.is_empty() || !matches!(begin, Begin::Request { is_indented: true }) {
                bursts.push(Burst::default());
            }
            let last = bursts.len() - 1;
            let burst = &mut bursts[last];
            if burst.requests.len() == Self::BURST_MAX {
                return Err(long_burst(request.line));
            }
            burst.requests.push(request);
            burst.think_ns = think_ns.or(burst.think_ns);
        }
        if sessions.is_empty() {
            return Err(SessionLogError(EMPTY.to_owned()));
        }
        Ok(Self { sessions })
    }

    /// All requests, in order.
    pub fn requests(&self) -> impl Iterator<Item = &LoggedRequest> {
        let bursts = self.sessions.iter().flat_map(|session| &session.bursts);
        bursts.flat_map(|burst| &burst.requests)
    }
}

/// How a line begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begin {
    Comment,
    Empty,
    Request { is_indented: bool },
}

/// What of a log is not read yet.
struct Reader<'a> {
    rest: &'a [u8],
    /// The number of the line that it begins in.
    line: usize,
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

impl Reader<'_> {
    fn take(&mut self) -> Option<u8> {
        let (&first, rest) = self.rest.split_first()?;
        self.rest = rest;
        self.line += usize::from(first == b'\n');
        Some(first)
    }

    /// Goes to the first word of a line; an empty one is taken with its end. Absent at the end.
    fn line_begin(&mut self) -> Option<Begin> {
        match self.rest.first()? {
            b'#' => return Some(Begin::Comment),
            first if !is_space(*first) => return Some(Begin::Request { is_indented: false }),
            _ => {}
        }
        self.skip_spaces();
        Some(match self.rest.first() {
            Some(b'\n') | None => {
                self.take();
                Begin::Empty
            }
            Some(_) => Begin::Request { is_indented: true },
        })
    }

    fn skip_spaces(&mut self) {
        while let Some(&first) = self.rest.first()
            && is_space(first)
            && first != b'\n'
        {
            self.take();
        }
    }

    /// The word up to the next space.
    fn word(&mut self) -> Result<String, SessionLogError> {
        let line = self.line;
        let end = self.rest.iter().position(|&byte| is_space(byte));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        let word = std::str::from_utf8(word).map_err(|_| refused(line, NOT_TEXT))?;
        Ok(word.to_owned())
    }

    /// A line with a request, from its first word to its end; with its think time, if any.
    fn request(&mut self) -> Result<(LoggedRequest, Option<u64>), SessionLogError> {
        let line = self.line;
        let mut request = RequestSpec::get(&self.word()?);
        let mut think_ns = None;
        loop {
            self.skip_spaces();
            match self.rest.first() {
                None | Some(b'\n') => {
                    self.take();
                    return Ok((LoggedRequest { line, request }, think_ns));
                }
                Some(_) => {}
            }
            if let Some(rest) = self.rest.strip_prefix(b"contents=") {
                self.rest = rest;
                request.body = self.contents()?;
                continue;
            }
            let line = self.line;
            let word = self.word()?;
            match word.split_once('=') {
                Some(("method", "")) => return Err(refused(line, NO_METHOD)),
                Some(("method", method)) => method.clone_into(&mut request.method),
                Some(("think", typed)) => think_ns = Some(think_time(typed, line)?),
                _ => return Err(unknown(line, &word)),
            }
        }
    }

    /// Contents up to the next space that stands in no quotation marks.
    fn contents(&mut self) -> Result<Vec<u8>, SessionLogError> {
        let line = self.line;
        let mut contents = Vec::new();
        let mut quote = None;
        while let Some(&next) = self.rest.first() {
            if quote.is_none() && is_space(next) {
                return Ok(contents);
            }
            self.take();
            match (next, quote) {
                (b'\\', _) => match self.take() {
                    Some(b'n') => contents.push(b'\n'),
                    Some(b'r') => contents.push(b'\r'),
                    Some(b't') => contents.push(b'\t'),
                    Some(other) => contents.push(other),
                    None => contents.push(b'\\'),
                },
                (mark, Some(open)) if mark == open => quote = None,
                (b'\'' | b'"', None) => quote = Some(next),
                _ => contents.push(next),
            }
        }
        match quote {
            Some(_) => Err(refused(line, UNCLOSED)),
            None => Ok(contents),
        }
    }
}

fn think_time(typed: &str, line: usize) -> Result<u64, SessionLogError> {
    let seconds: Option<f64> = typed.parse().ok();
    let longest_s = Schedule::DURATION_MAX_NS as f64 / 1e9;
    match seconds.filter(|seconds| (0.0..=longest_s).contains(seconds)) {
        Some(seconds) => Ok((seconds * 1e9).round() as u64),
        None => Err(no_think_time(line, typed)),
    }
}

fn no_think_time(line: usize, typed: &str) -> SessionLogError {
    let words = "is not a think time; write seconds, such as think=0.5";
    refused(line, format_args!("{typed:?} {words}"))
}

fn unknown(line: usize, word: &str) -> SessionLogError {
    let words = "is not known; behind a path stand method=, think= (in seconds) and contents=";
    refused(line, format_args!("{word:?} {words}"))
}

fn long_burst(line: usize) -> SessionLogError {
    let most = SessionLog::BURST_MAX;
    refused(line, format_args!("a burst has {most} requests at most"))
}

const HEAD_END: &[u8] = b"\r\n\r\n";

/// Requests as they are sent, by their numbers, and the names that figures stand under.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionTexts {
    texts: Vec<Text>,
    names: Vec<String>,
    places: HashMap<String, u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Text {
    bytes: Vec<u8>,
    /// Where further header fields can stand.
    fields_end: usize,
    name: u32,
}

impl SessionTexts {
    /// Adds the text of one request of HTTP/1.1, and gives its number.
    pub fn add(&mut self, bytes: Vec<u8>, name: &str) -> u32 {
        let name = *self.places.entry(name.to_owned()).or_insert_with(|| {
            self.names.push(name.to_owned());
            self.names.len() as u32 - 1
        });
        let mut windows = bytes.windows(HEAD_END.len());
        let head_end = windows.position(|window| window == HEAD_END);
        let fields_end = head_end.map_or(bytes.len(), |at| at + 2);
        self.texts.push(Text {
            bytes,
            fields_end,
            name,
        });
        self.texts.len() as u32 - 1
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.texts.len()
    }

    /// The bytes of the request of this number.
    pub fn bytes(&self, number: u32) -> &[u8] {
        &self.texts[number as usize].bytes
    }

    /// The names that there are.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The place of the name of a request among [`SessionTexts::names`].
    pub(super) fn name_of(&self, number: u32) -> u32 {
        self.texts[number as usize].name
    }

    /// Appends the text of a request, with `field` (a header line with its end, or nothing) behind
    /// its other header fields.
    pub(super) fn append(&self, number: u32, field: &[u8], text: &mut Vec<u8>) {
        let Text {
            bytes, fields_end, ..
        } = &self.texts[number as usize];
        let (before, behind) = bytes.split_at(*fields_end);
        for part in [before, field, behind] {
            text.extend_from_slice(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each session as its bursts: requests with a comma between them, `~` and the think time.
    fn shape(text: &str) -> Vec<String> {
        let log = SessionLog::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}"));
        let burst = |burst: &Burst| {
            let names = burst.requests.iter().map(|logged| logged.request.name());
            let names = names.collect::<Vec<_>>().join(",");
            match burst.think_ns {
                Some(ns) => format!("{names}~{}", ns / 1_000_000),
                None => names,
            }
        };
        let sessions = log.sessions.iter();
        sessions
            .map(|session| {
                let bursts: Vec<_> = session.bursts.iter().map(burst).collect();
                bursts.join(" ")
            })
            .collect()
    }

    #[test]
    fn sessions_bursts_and_think_times() {
        for (text, expected) in [
            ("/a", &["/a"][..]),
            ("# c\n/a\n\n\n \t\n/b\n", &["/a", "/b"]),
            (
                "/a think=2.0\n  /a1\n\t/a2\n/b method=POST\n",
                &["/a,/a1,/a2~2000 POST /b"],
            ),
            // The last think time of a burst counts.
            (
                "/a think=0.3\n /a1\n /a2 think=.05\n /a3\n",
                &["/a,/a1,/a2,/a3~50"],
            ),
            // A comment parts nothing, and a burst may begin indented.
            ("/a\n# c\n /b\n", &["/a,/b"]),
            ("  /a\n/b\n", &["/a /b"]),
            ("\n\n  /a\r\n/b think=0 \r\n", &["/a /b~0"]),
            ("/a\n\x0c\n/b \x0b\n", &["/a", "/b"]),
            ("/e?x=1&y='2'\n", &["/e?x=1&y='2'"]),
            ("/a method=HEAD method=PUT\n", &["PUT /a"]),
        ] {
            assert_eq!(shape(text), expected, "{text:?}");
        }
    }

    #[test]
    fn contents_are_quoted_as_httperf_takes_them() {
        // What httperf 0.9.0 sent for each.
        for (typed, contents) in [
            ("'x=1&y=2'", &b"x=1&y=2"[..]),
            (r#""two\nlines\"q\" it's""#, b"two\nlines\"q\" it's"),
            ("\"a\\\nb\"", b"a\nb"),
            (
                r#"'single \'q\' "d" \n \\ \t'"#,
                b"single 'q' \"d\" \n \\ \t",
            ),
            (r#""\r\x\0\a\"\t""#, b"\rx0a\"\t"),
            (r"a\nb", b"a\nb"),
            (r#""a"'b c'd"#, b"ab cd"),
            ("''", b""),
        ] {
            let text = format!("/a think=1 contents={typed} method=POST\n/b\n");
            let log = SessionLog::parse(text.as_bytes()).expect(typed);
            let requests: Vec<_> = log.requests().map(|logged| &logged.request).collect();
            assert_eq!(requests[0].body, contents, "{typed}");
            assert_eq!(
                (requests[0].name(), requests[1].name()),
                ("POST /a".into(), "/b".into())
            );
        }
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let empty = || SessionLogError(EMPTY.to_owned());
        for (text, error) in [
            ("", empty()),
            ("# c\n \n", empty()),
            ("/a foo=1", unknown(1, "foo=1")),
            ("/a\n/b contents=x y\n", unknown(2, "y")),
            ("/a\n # indented\n", unknown(2, "indented")),
            ("/a method=", refused(1, NO_METHOD)),
            ("/a contents='\\\nx'\n/b think=x", no_think_time(3, "x")),
            ("/a think=-1", no_think_time(1, "-1")),
            ("/a think=inf", no_think_time(1, "inf")),
            ("/a think=1e99", no_think_time(1, "1e99")),
            ("/a\n/b contents=\"x\n/c\n", refused(2, UNCLOSED)),
        ] {
            assert_eq!(SessionLog::parse(text.as_bytes()), Err(error), "{text:?}");
        }
        let parsed = SessionLog::parse(b"/a\n/\xff");
        assert_eq!(parsed, Err(refused(2, NOT_TEXT)));
        let most = format!("/a{}", "\n /b".repeat(SessionLog::BURST_MAX));
        let parsed = SessionLog::parse(most.as_bytes());
        assert_eq!(parsed, Err(long_burst(1_001)));
    }

    #[test]
    fn a_field_goes_behind_the_others() {
        let mut texts = SessionTexts::default();
        let post = b"POST /a HTTP/1.1\r\nHost: h\r\n\r\nx\r\n\r\ny";
        assert_eq!(texts.add(post.to_vec(), "a"), 0);
        assert_eq!(texts.add(b"GET".to_vec(), "b"), 1);
        assert_eq!(texts.add(b"PUT".to_vec(), "a"), 2);
        assert_eq!((texts.count(), texts.names().len()), (3, 2));
        assert_eq!((texts.name_of(1), texts.name_of(2)), (1, 0));
        let mut text = Vec::new();
        texts.append(0, b"Cookie: c\r\n", &mut text);
        let expected = b"POST /a HTTP/1.1\r\nHost: h\r\nCookie: c\r\n\r\nx\r\n\r\ny";
        assert_eq!(text, expected);
    }
}
