//! Parsing lists of requests: a URL a line, or the targets of vegeta, as its HTTP-like text or as
//! JSON lines.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use brunt_proto::holes::placeholder_bytes;
use serde::Deserialize;

use thiserror::Error;

use crate::{RequestSet, RequestSpec, Target};

/// What a weight is given with, behind a URL.
const WEIGHT: &str = "weight=";
/// What is filled in on the command line alone.
const ENVIRONMENT: &str = "@env:";
/// Characters of a line that are shown.
const SHOWN_MAX: usize = 80;
/// Methods that a target of vegeta begins with.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// Why a list of requests cannot be used.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct ListError(String);

const EMPTY: &str = "there is no request in it; write one URL per line";
const NOT_TEXT: &str = "it is not text in UTF-8";
const NO_ORIGIN: &str = "it is a path alone; give the URL of the server on the command line, too";
const NOT_TARGET: &str = "it is not a target; write METHOD URL, such as GET http://localhost:8080/";
const NOT_HEADER: &str = "it is not a header field; write NAME: VALUE, or @FILE for the body";
const NO_ENVIRONMENT: &str = "@env: is filled in on the command line alone; give the field there, \
     as in -H 'Authorization: Bearer @env:TOKEN'";
const NOT_BASE64: &str = "its body is not base64";

/// One request of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRequest {
    /// The number of its (first) line, from 1.
    pub line: usize,
    /// The request; its method is empty where the list gives none, and its body where that is in a
    /// file.
    pub request: RequestSpec,
    /// The file that its body is in.
    pub body_file: Option<PathBuf>,
    /// How often it is sent, in relation to the others.
    pub weight: NonZeroU32,
}

/// Reads a list with a URL per line, perhaps with `weight=N` behind it. Empty lines and those that
/// begin with `#` are passed over. A line that begins with `/` is a path on the server of `base`,
/// which may be absent if all lines are whole URLs.
pub fn urls<'a>(text: &'a [u8], base: Option<&Target>) -> RequestList<'a> {
    RequestList::new(without_mark(text), Form::Urls, base)
}

/// Reads the targets of vegeta: JSON lines where the first byte that is no space is `{`, else
/// blocks of a line `METHOD URL`, header fields, and perhaps `@FILE` for the body. Lines that begin
/// with `#` are passed over. Behind a URL may stand `weight=N`, and in JSON `"weight": N`. `base`
/// is as for [`urls`].
pub fn targets<'a>(text: &'a [u8], base: Option<&Target>) -> RequestList<'a> {
    let text = without_mark(text);
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    let form = match first {
        Some(b'{') => Form::Json,
        _ => Form::Http,
    };
    RequestList::new(text, form, base)
}

/// The text behind the byte order mark that some editors put before it.
fn without_mark(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text)
}

/// How a list is written.
#[derive(Debug)]
enum Form {
    Urls,
    Json,
    Http,
}

/// The requests of a list to one server, one after the other.
#[derive(Debug)]
pub struct RequestList<'a> {
    /// The lines that are still to be read.
    rest: Option<&'a [u8]>,
    /// Lines read.
    lines: usize,
    form: Form,
    /// Lines may still belong to the last target, in the form of HTTP.
    is_open: bool,
    target: Option<Target>,
    count: usize,
    /// The request that further lines may belong to.
    last: Option<ListedRequest>,
}

/// A line of vegeta's JSON format (lib/target.schema.json of that project), with a weight.
#[derive(Deserialize)]
struct JsonTarget {
    method: String,
    url: String,
    body: Option<String>,
    header: Option<BTreeMap<String, Vec<String>>>,
    weight: Option<serde_json::Value>,
}

impl<'a> RequestList<'a> {
    fn new(text: &'a [u8], form: Form, base: Option<&Target>) -> Self {
        Self {
            rest: Some(text),
            lines: 0,
            form,
            is_open: false,
            target: base.cloned(),
            count: 0,
            last: None,
        }
    }

    /// The server that all requests are for, when they are read.
    ///
    /// # Errors
    ///
    /// There was no request.
    pub fn target(self) -> Result<Target, ListError> {
        self.target
            .filter(|_| self.count > 0)
            .ok_or_else(|| ListError(EMPTY.to_owned()))
    }

    /// The next line, without the spaces around it.
    fn line(&mut self) -> Option<Result<&'a str, String>> {
        let rest = self.rest?;
        let end = rest.iter().position(|&byte| byte == b'\n');
        let bytes = &rest[..end.unwrap_or(rest.len())];
        self.rest = end.map(|end| &rest[end + 1..]);
        self.lines += 1;
        let text = std::str::from_utf8(bytes).map_err(|_| NOT_TEXT.to_owned());
        Some(text.map(str::trim))
    }

    fn read(&mut self) -> Result<Option<ListedRequest>, String> {
        match self.form {
            Form::Urls => self.url_line(),
            Form::Json => self.json_line(),
            Form::Http => self.http_target(),
        }
    }

    fn url_line(&mut self) -> Result<Option<ListedRequest>, String> {
        while let Some(line) = self.line() {
            let text = line?;
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            if let Some(remedy) = remedy(text) {
                return Err(remedy.to_owned());
            }
            let (url, weight) = url_and_weight(text)?;
            let mut listed = self.request("", url)?;
            listed.weight = weight;
            return Ok(Some(listed));
        }
        Ok(None)
    }

    fn json_line(&mut self) -> Result<Option<ListedRequest>, String> {
        while let Some(line) = self.line() {
            let text = line?;
            if text.is_empty() {
                continue;
            }
            let target: JsonTarget = serde_json::from_str(text)
                .map_err(|reason| format!("it is not a target in JSON ({reason})"))?;
            let mut listed = self.request(&target.method, &target.url)?;
            for (name, values) in target.header.unwrap_or_default() {
                for value in values {
                    if value.contains(ENVIRONMENT) {
                        return Err(NO_ENVIRONMENT.to_owned());
                    }
                    listed.request.headers.push((name.clone(), value));
                }
            }
            if let Some(body) = target.body {
                let body = BASE64_STANDARD.decode(body);
                listed.request.body = body.map_err(|_| NOT_BASE64)?;
            }
            if let Some(typed) = target.weight {
                listed.weight = weight(&typed.to_string())?;
            }
            return Ok(Some(listed));
        }
        Ok(None)
    }

    /// A target whose lines are all read: at the first line that belongs to the next one.
    fn http_target(&mut self) -> Result<Option<ListedRequest>, String> {
        while let Some(line) = self.line() {
            let text = line?;
            if text.is_empty() {
                self.is_open = false;
                continue;
            }
            if text.starts_with('#') {
                continue;
            }
            if let Some((method, url)) = text.split_once(char::is_whitespace)
                && (!self.is_open || is_request_line(method, url))
            {
                self.is_open = true;
                let (url, weight) = url_and_weight(url.trim())?;
                let mut listed = self.request(method, url)?;
                listed.weight = weight;
                if let Some(before) = self.last.replace(listed) {
                    return Ok(Some(before));
                }
                continue;
            }
            let Some(listed) = self.last.as_mut().filter(|_| self.is_open) else {
                return Err(NOT_TARGET.to_owned());
            };
            if text.contains(ENVIRONMENT) {
                return Err(NO_ENVIRONMENT.to_owned());
            }
            if let Some(path) = text.strip_prefix('@') {
                listed.body_file = Some(path.into());
                // The body is the last of a target.
                self.is_open = false;
                continue;
            }
            match text.split_once(':') {
                Some((name, value)) if !name.is_empty() => {
                    let field = (name.trim().to_owned(), value.trim().to_owned());
                    listed.request.headers.push(field);
                }
                _ => return Err(NOT_HEADER.to_owned()),
            }
        }
        Ok(self.last.take())
    }

    /// The request whose URL is in the line that was read last.
    fn request(&mut self, method: &str, url: &str) -> Result<ListedRequest, String> {
        self.count += 1;
        let server = self.target.as_ref().map(origin_of);
        let whole = match &server {
            _ if !url.starts_with('/') => url.to_owned(),
            Some(server) => format!("{server}{url}"),
            None => return Err(NO_ORIGIN.to_owned()),
        };
        let target = Target::parse_to_fill_in(&whole, None).map_err(|error| error.to_string())?;
        let (path, origin) = (target.path.clone(), origin_of(&target));
        self.target.get_or_insert(target);
        if let Some(server) = server.filter(|server| *server != origin) {
            return Err(format!(
                "{origin} is on another server than {server}; a run loads one server: make a list \
                 for each"
            ));
        }
        Ok(ListedRequest {
            line: self.lines,
            request: RequestSpec {
                method: method.to_owned(),
                ..RequestSpec::get(&path)
            },
            body_file: None,
            weight: NonZeroU32::MIN,
        })
    }
}

impl Iterator for RequestList<'_> {
    type Item = Result<ListedRequest, ListError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = self.read();
        let next = if self.count > RequestSet::REQUESTS_MAX {
            let most = RequestSet::REQUESTS_MAX;
            Some(Err(ListError(format!(
                "it has more than {most} requests; split it"
            ))))
        } else {
            let in_line = |reason| ListError(format!("line {}: {reason}", self.lines));
            read.map_err(in_line).transpose()
        };
        if matches!(next, Some(Err(_))) {
            // Nothing behind it can be told.
            (self.rest, self.last) = (None, None);
            self.form = Form::Urls;
        }
        next
    }
}

/// A URL, and the weight behind it.
fn url_and_weight(text: &str) -> Result<(&str, NonZeroU32), String> {
    let (url, behind) = text.split_at(url_bytes(text));
    let behind = behind.trim();
    if behind.is_empty() {
        return Ok((text, NonZeroU32::MIN));
    }
    match behind.strip_prefix(WEIGHT) {
        Some(typed) => Ok((url, weight(typed)?)),
        None => Err(format!(
            "behind the URL stands `{}`; a line has a URL and, if need be, {WEIGHT}N; within a URL \
             write %20 for a space (docs/lists.md has what lines of other tools become)",
            shortened(behind)
        )),
    }
}

/// A weight, as it is typed.
fn weight(typed: &str) -> Result<NonZeroU32, String> {
    let weight = typed.trim().parse();
    weight.map_err(|_| {
        let typed = shortened(typed);
        format!("`{typed}` is not a weight; write a whole number from 1, such as weight=3")
    })
}

/// What a line of a list of URLs is, where that shows by its beginning, and what to do instead.
fn remedy(text: &str) -> Option<&'static str> {
    if text.starts_with('{') {
        return Some("it is a target in JSON: give the file with --targets");
    }
    let (first, _) = text.split_once(char::is_whitespace)?;
    METHODS
        .contains(&first)
        .then_some("it is a target: give the file with --targets")
}

/// The beginning of a long text.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Bytes of the URL that a line begins with: up to the first space that is not in a placeholder.
fn url_bytes(text: &str) -> usize {
    let mut at = 0;
    while let Some(next) = text[at..]
        .chars()
        .next()
        .filter(|next| !next.is_whitespace())
    {
        let placeholder = placeholder_bytes(&text.as_bytes()[at..]);
        at += placeholder.unwrap_or(next.len_utf8());
    }
    at
}

/// Whether a line below a target begins the next one, though no empty line stands between them: a
/// header field's name ends in a colon.
fn is_request_line(method: &str, url: &str) -> bool {
    method.bytes().all(|byte| byte.is_ascii_uppercase())
        && (url.trim_start().starts_with('/') || url.contains("://"))
}

/// Scheme, host and port.
fn origin_of(target: &Target) -> String {
    format!("{}://{}", target.scheme.name(), target.authority)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    struct Whole {
        target: Target,
        requests: Vec<ListedRequest>,
    }

    fn whole(mut list: RequestList<'_>) -> Result<Whole, ListError> {
        let requests = list.by_ref().collect::<Result<Vec<_>, _>>()?;
        let target = list.target()?;
        Ok(Whole { target, requests })
    }

    fn refused_at(line: usize, reason: &str) -> Result<Whole, ListError> {
        Err(ListError(format!("line {line}: {reason}")))
    }

    fn urls(text: &[u8], base: Option<&Target>) -> Result<Whole, ListError> {
        whole(super::urls(text, base))
    }

    fn targets(text: &[u8], base: Option<&Target>) -> Result<Whole, ListError> {
        whole(super::targets(text, base))
    }

    fn names(list: &Result<Whole, ListError>) -> Vec<String> {
        let requests = &list.as_ref().expect("a list").requests;
        let requests = requests.iter().map(|listed| &listed.request);
        requests
            .map(|request| match &*request.method {
                "" => request.path.clone(),
                _ => request.name(),
            })
            .collect()
    }

    fn weights(list: &Result<Whole, ListError>) -> Vec<u32> {
        let requests = &list.as_ref().expect("a list").requests;
        requests.iter().map(|listed| listed.weight.get()).collect()
    }

    #[test]
    fn placeholders_may_have_spaces() {
        let list = urls(
            b"http://a/{{rand 1 9}}\n/{{seq 5}}/x?{{ seq }} weight=3\n",
            None,
        );
        assert_eq!(names(&list), ["/{{rand 1 9}}", "/{{seq 5}}/x?{{ seq }}"]);
        assert_eq!(weights(&list), [1, 3]);
        let list = targets(b"POST http://a/{{rand 1 9}} weight=2\nX: {{seq}}\n", None);
        assert_eq!(
            (names(&list), weights(&list)),
            (vec!["POST /{{rand 1 9}}".to_owned()], vec![2])
        );
        let refused = urls(b"http://a/\n/{{rand 1}}\n", None).expect_err("one number");
        assert!(refused.to_string().contains("line 2"), "{refused}");
    }

    #[test]
    fn weights_stand_behind_urls() {
        let list = urls(b"http://a/x weight=3\n/y\n/z\tweight=20 \r\n", None);
        assert_eq!(names(&list), ["/x", "/y", "/z"]);
        assert_eq!(weights(&list), [3, 1, 20]);
        let list = targets(b"GET http://a/x weight=3\nX: y\nPOST /y\n", None);
        assert_eq!(names(&list), ["/x", "POST /y"]);
        assert_eq!(weights(&list), [3, 1]);
        let list = targets(
            b"{\"method\":\"GET\",\"url\":\"http://a/\",\"weight\":7}",
            None,
        );
        assert_eq!(weights(&list), [7]);
        for typed in ["0", "-1", "1.5", "x", "", "4294967296"] {
            let refused = urls(format!("http://a/ weight={typed}").as_bytes(), None);
            let words =
                format!("`{typed}` is not a weight; write a whole number from 1, such as weight=3");
            assert_eq!(refused, refused_at(1, &words));
        }
    }

    #[test]
    fn lines_of_other_tools_are_refused_with_what_does_it() {
        for (line, words) in [
            ("http://a/orders 3", "behind the URL stands `3`"),
            ("3 /orders", "behind the URL stands `/orders`"),
            ("/orders weight:3", "behind the URL stands `weight:3`"),
            (
                "http://a/orders POST {\"n\": 1}",
                "stands `POST {\"n\": 1}`",
            ),
            (
                "GET http://a/",
                "it is a target: give the file with --targets",
            ),
            ("{\"method\":\"GET\",\"url\":\"http://a/\"}", "--targets"),
            ("curl -s 'http://a/x?y'", "docs/lists.md"),
            ("http://a/b c", "write %20 for a space"),
        ] {
            let base = Target::parse("http://a/", None).expect("a URL");
            let refused = urls(line.as_bytes(), Some(&base))
                .expect_err(line)
                .to_string();
            assert!(refused.contains(words), "{line}: {refused}");
            assert!(
                refused.starts_with("line 1: ") && refused.len() < 500,
                "{refused}"
            );
        }
        let long = format!("http://a/ POST {}", "x".repeat(100_000));
        let refused = urls(long.as_bytes(), None).expect_err("a body").to_string();
        assert!(refused.len() < 500, "{refused}");
        let refused = targets(b"GET http://a/ 3", None)
            .expect_err("a weight")
            .to_string();
        assert!(refused.contains("behind the URL stands `3`"), "{refused}");
    }

    #[test]
    fn urls_stand_one_a_line() {
        let text = b"http://a:81/x\n\n# a comment\r\n  http://a:81/y?z=1 \r\n/w\na:81/v";
        let list = urls(text, None);
        assert_eq!(names(&list), ["/x", "/y?z=1", "/w", "/v"]);
        let list = list.expect("a list");
        assert_eq!(list.target.authority, "a:81");
        let numbers: Vec<usize> = list.requests.iter().map(|listed| listed.line).collect();
        assert_eq!(numbers, [1, 4, 5, 6]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let other = |line, url: &str| {
            let words = "is on another server than http://a; a run loads one server: make a list \
                         for each";
            refused_at(line, &format!("{url} {words}"))
        };
        let empty = || Err(ListError(EMPTY.to_owned()));
        for (text, error) in [
            ("", empty()),
            ("# nothing\n", empty()),
            ("/x", refused_at(1, NO_ORIGIN)),
            ("http://a/\nhttp://b/", other(2, "http://b")),
            ("http://a/\nhttps://a/", other(2, "https://a")),
            ("http://a/\n\nhttp://a:81/", other(3, "http://a:81")),
        ] {
            assert_eq!(urls(text.as_bytes(), None), error, "{text:?}");
        }
        let text = "http://a/\nhttp://u:p@a/";
        let refused = urls(text.as_bytes(), None)
            .expect_err("user name")
            .to_string();
        assert!(refused.starts_with("line 2: "), "{refused}");
        assert!(!refused.contains("u:p"), "{refused}");
        assert_eq!(urls(b"http://a/\n\xff", None), refused_at(2, NOT_TEXT));
    }

    #[test]
    fn a_server_given_beside_the_list_holds_for_it() {
        let base = Target::parse("http://a:81/ignored", None).expect("a URL");
        let list = urls(b"/x\n/y", Some(&base));
        assert_eq!(names(&list), ["/x", "/y"]);
        let other = urls(b"http://b/x", Some(&base));
        let refused = other.expect_err("another server").to_string();
        assert!(
            refused.starts_with("line 1: http://b is on another server"),
            "{refused}"
        );
    }

    #[test]
    fn targets_of_vegeta_as_text() {
        let text = b"# first\nGET http://a/x\nX-One: 1\nX-Two:2\n\nPOST http://a/y\n\
            # with a body\nContent-Type: text/plain\n@/tmp/body\nDELETE http://a/z\nPUT /w\n";
        let list = targets(text, None);
        assert_eq!(names(&list), ["/x", "POST /y", "DELETE /z", "PUT /w"]);
        let requests = list.expect("a list").requests;
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [field("X-One", "1"), field("X-Two", "2")];
        assert_eq!(requests[0].request.headers, expected);
        assert_eq!(requests[1].body_file, Some("/tmp/body".into()));
        assert_eq!(requests[2].body_file, None);
        for (text, line, error) in [
            ("GET\n", 1, NOT_TARGET),
            ("@body\n", 1, NOT_TARGET),
            ("GET http://a/\nno field\n", 2, NOT_HEADER),
            ("GET http://a/\n: empty\n", 2, NOT_HEADER),
            ("GET http://a/\nA: Bearer @env:B\n", 2, NO_ENVIRONMENT),
            ("POST http://a/\n@env:B\n", 2, NO_ENVIRONMENT),
            (
                "{\"method\":\"GET\",\"url\":\"http://a/\",\"header\":{\"X\":[\"@env:B\"]}}",
                1,
                NO_ENVIRONMENT,
            ),
            ("GET http://a/\n@body\nX-1:\n", 3, NOT_TARGET),
        ] {
            assert_eq!(
                targets(text.as_bytes(), None),
                refused_at(line, error),
                "{text:?}"
            );
        }
    }

    #[test]
    fn targets_of_vegeta_as_json() {
        let text = br#"{"method":"GET","url":"http://a/x","header":{"X":["1","2"]}}

            {"method":"POST","url":"http://a/y","body":"aGVsbG8="}"#;
        let list = targets(text, None);
        assert_eq!(names(&list), ["/x", "POST /y"]);
        let requests = list.expect("a list").requests;
        let field = |value: &str| ("X".to_owned(), value.to_owned());
        assert_eq!(requests[0].request.headers, [field("1"), field("2")]);
        assert_eq!(requests[1].request.body, b"hello");
        assert_eq!(requests[1].line, 3);
        for (text, line) in [("{", 1), ("{\"method\":\"GET\"}", 1), ("{}", 1)] {
            let refused = targets(text.as_bytes(), None).expect_err(text).to_string();
            let words = format!("line {line}: it is not a target in JSON");
            assert!(refused.starts_with(&words), "{refused}");
        }
        let text = br#"{"method":"GET","url":"http://a/","body":"?"}"#;
        assert_eq!(targets(text, None), refused_at(1, NOT_BASE64));
    }
}
