//! Parsing lists of requests: a URL a line, or the targets of vegeta, as its HTTP-like text or as
//! JSON lines.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Deserialize;
use thiserror::Error;

use crate::{RequestSet, RequestSpec, Target, TargetError};

/// Why a list of requests cannot be used. Each names the line, from 1.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ListError {
    /// There is no request in it.
    #[error("there is no request in it; write one URL per line")]
    Empty,
    /// There are more than a run can have.
    #[error("it has more than {most} requests; split it", most = RequestSet::REQUESTS_MAX)]
    TooMany,
    /// A line is not UTF-8.
    #[error("line {line}: it is no text in UTF-8")]
    NotText {
        /// Its number.
        line: usize,
    },
    /// A line has no URL that can be used.
    #[error("line {line}: {reason}")]
    Url {
        /// Its number.
        line: usize,
        /// Why not.
        reason: TargetError,
    },
    /// A line has a path alone, and no URL says where.
    #[error("line {line}: it is a path alone; give the URL of the server on the command line, too")]
    NoOrigin {
        /// Its number.
        line: usize,
    },
    /// A line names another server than those before it.
    #[error(
        "line {line}: {url} is on another server than {first}; a run loads one server: make a list \
         for each"
    )]
    OtherOrigin {
        /// Its number.
        line: usize,
        /// Its scheme, host and port.
        url: String,
        /// Those of the others.
        first: String,
    },
    /// The first line of a target is not a method and a URL.
    #[error("line {line}: it is no target; write METHOD URL, such as GET http://localhost:8080/")]
    NotTarget {
        /// Its number.
        line: usize,
    },
    /// A line below a target is not a header field.
    #[error("line {line}: it is no header field; write NAME: VALUE, or @FILE for the body")]
    NotHeader {
        /// Its number.
        line: usize,
    },
    /// A line is not a target in JSON.
    #[error("line {line}: it is no target in JSON ({reason})")]
    NotJson {
        /// Its number.
        line: usize,
        /// The parser's reason.
        reason: String,
    },
    /// The body of a target in JSON is not base64.
    #[error("line {line}: its body is not base64")]
    NotBase64 {
        /// Its number.
        line: usize,
    },
}

/// One request of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRequest {
    /// The number of its (first) line, from 1.
    pub line: usize,
    /// The request; without a body where that is in a file.
    pub request: RequestSpec,
    /// The file that its body is in.
    pub body_file: Option<PathBuf>,
}

/// A list of requests to one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestList {
    /// The server.
    pub target: Target,
    /// At least one.
    pub requests: Vec<ListedRequest>,
}

/// Reads a list with a URL per line. Empty lines and those that begin with `#` are passed over. A
/// line that begins with `/` is a path on the server of `base`, which may be absent if all lines
/// are whole URLs.
///
/// # Errors
///
/// A line that is no URL, or one of another server.
pub fn urls(text: &[u8], base: Option<&Target>) -> Result<RequestList, ListError> {
    let mut builder = Builder::new(base);
    for (line, text) in lines(text) {
        let text = text?.trim();
        if !is_comment(text) {
            builder.add(line, "GET", text)?;
        }
    }
    builder.finish()
}

/// Reads the targets of vegeta: JSON lines where the first byte that is no space is `{`, else
/// blocks of a line `METHOD URL`, header fields, and perhaps `@FILE` for the body. Lines that begin
/// with `#` are passed over. `base` is as for [`urls`].
///
/// # Errors
///
/// A line that is malformed, or the URL of another server.
pub fn targets(text: &[u8], base: Option<&Target>) -> Result<RequestList, ListError> {
    let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
    if first == Some(&b'{') {
        json_targets(text, base)
    } else {
        http_targets(text, base)
    }
}

/// One line of vegeta's JSON format (lib/target.schema.json of that project).
#[derive(Deserialize)]
struct JsonTarget {
    method: String,
    url: String,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    header: Option<BTreeMap<String, Vec<String>>>,
}

fn json_targets(text: &[u8], base: Option<&Target>) -> Result<RequestList, ListError> {
    let mut builder = Builder::new(base);
    for (line, text) in lines(text) {
        let text = text?.trim();
        if text.is_empty() {
            continue;
        }
        let target: JsonTarget =
            serde_json::from_str(text).map_err(|reason| ListError::NotJson {
                line,
                reason: reason.to_string(),
            })?;
        let listed = builder.add(line, &target.method, &target.url)?;
        for (name, values) in target.header.unwrap_or_default() {
            let fields = values.into_iter().map(|value| (name.clone(), value));
            listed.request.headers.extend(fields);
        }
        if let Some(body) = target.body {
            let body = BASE64_STANDARD.decode(body);
            listed.request.body = body.map_err(|_| ListError::NotBase64 { line })?;
        }
    }
    builder.finish()
}

fn http_targets(text: &[u8], base: Option<&Target>) -> Result<RequestList, ListError> {
    let mut builder = Builder::new(base);
    let mut is_open = false;
    for (line, text) in lines(text) {
        let text = text?.trim();
        if text.is_empty() {
            is_open = false;
            continue;
        }
        if text.starts_with('#') {
            continue;
        }
        if let Some((method, url)) = text.split_once(char::is_whitespace)
            && (!is_open || is_request_line(method, url))
        {
            builder.add(line, method, url.trim())?;
            is_open = true;
            continue;
        }
        let Some(listed) = builder.requests.last_mut().filter(|_| is_open) else {
            return Err(ListError::NotTarget { line });
        };
        if let Some(path) = text.strip_prefix('@') {
            listed.body_file = Some(path.into());
            // The body is the last of a target.
            is_open = false;
            continue;
        }
        let field = text.split_once(':').map(|(name, value)| {
            let (name, value) = (name.trim(), value.trim());
            (name.to_owned(), value.to_owned())
        });
        match field {
            Some((name, value)) if !name.is_empty() => listed.request.headers.push((name, value)),
            _ => return Err(ListError::NotHeader { line }),
        }
    }
    builder.finish()
}

/// Whether a line below a target begins the next one, though no empty line stands between them: a
/// header field's name ends in a colon.
fn is_request_line(method: &str, url: &str) -> bool {
    method.bytes().all(|byte| byte.is_ascii_uppercase())
        && (url.trim_start().starts_with('/') || url.contains("://"))
}

fn is_comment(text: &str) -> bool {
    text.is_empty() || text.starts_with('#')
}

/// The lines with their numbers, from 1.
fn lines(text: &[u8]) -> impl Iterator<Item = (usize, Result<&str, ListError>)> {
    (1..)
        .zip(text.split(|&byte| byte == b'\n'))
        .map(|(line, bytes)| {
            let text = std::str::from_utf8(bytes).map_err(|_| ListError::NotText { line });
            (line, text)
        })
}

/// The list so far.
struct Builder {
    target: Option<Target>,
    requests: Vec<ListedRequest>,
}

impl Builder {
    fn new(base: Option<&Target>) -> Self {
        Self {
            target: base.cloned(),
            requests: Vec::new(),
        }
    }

    /// Adds a request, whose URL is in `line`.
    fn add(
        &mut self,
        line: usize,
        method: &str,
        url: &str,
    ) -> Result<&mut ListedRequest, ListError> {
        if self.requests.len() == RequestSet::REQUESTS_MAX {
            return Err(ListError::TooMany);
        }
        let whole;
        let url = if url.starts_with('/') {
            let target = self.target.as_ref().ok_or(ListError::NoOrigin { line })?;
            whole = format!("{}{url}", origin_of(target));
            &whole
        } else {
            url
        };
        let target = Target::parse(url, None).map_err(|reason| ListError::Url { line, reason })?;
        let first = self.target.get_or_insert_with(|| target.clone());
        let (own, others) = (origin_of(&target), origin_of(first));
        if own != others {
            return Err(ListError::OtherOrigin {
                line,
                url: own,
                first: others,
            });
        }
        self.requests.push(ListedRequest {
            line,
            request: RequestSpec {
                method: method.to_owned(),
                path: target.path,
                headers: Vec::new(),
                body: Vec::new(),
                text: None,
            },
            body_file: None,
        });
        let last = self.requests.len() - 1;
        Ok(&mut self.requests[last])
    }

    fn finish(self) -> Result<RequestList, ListError> {
        match self.target {
            Some(target) if !self.requests.is_empty() => Ok(RequestList {
                target,
                requests: self.requests,
            }),
            _ => Err(ListError::Empty),
        }
    }
}

/// Scheme, host and port.
fn origin_of(target: &Target) -> String {
    format!("{}://{}", target.scheme.name(), target.authority)
}

/// Any bytes are read or refused, and what is read is to one server; for fuzzing.
#[doc(hidden)]
pub fn fuzz_request_list(bytes: &[u8]) {
    for list in [urls(bytes, None), targets(bytes, None)]
        .into_iter()
        .flatten()
    {
        assert!(!list.requests.is_empty());
        let lines = bytes.split(|&byte| byte == b'\n').count();
        assert!(list.requests.len() <= lines);
        for listed in &list.requests {
            assert!((1..=lines).contains(&listed.line));
            assert!(listed.request.path.starts_with('/'));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &Result<RequestList, ListError>) -> Vec<String> {
        let list = list.as_ref().expect("a list");
        list.requests
            .iter()
            .map(|listed| listed.request.name())
            .collect()
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
        let other = |line, url: &str| ListError::OtherOrigin {
            line,
            url: url.to_owned(),
            first: "http://a".to_owned(),
        };
        for (text, error) in [
            ("", ListError::Empty),
            ("# nothing\n", ListError::Empty),
            ("/x", ListError::NoOrigin { line: 1 }),
            ("http://a/\nhttp://b/", other(2, "http://b")),
            ("http://a/\nhttps://a/", other(2, "https://a")),
            ("http://a/\n\nhttp://a:81/", other(3, "http://a:81")),
        ] {
            assert_eq!(urls(text.as_bytes(), None), Err(error), "{text:?}");
        }
        let text = "http://a/\nhttp://u:p@a/";
        let refused = urls(text.as_bytes(), None)
            .expect_err("user name")
            .to_string();
        assert!(refused.starts_with("line 2: "), "{refused}");
        assert!(!refused.contains("u:p"), "{refused}");
        assert_eq!(
            urls(b"http://a/\n\xff", None),
            Err(ListError::NotText { line: 2 })
        );
    }

    #[test]
    fn a_server_given_beside_the_list_holds_for_it() {
        let base = Target::parse("http://a:81/ignored", None).expect("a URL");
        let list = urls(b"/x\n/y", Some(&base));
        assert_eq!(names(&list), ["/x", "/y"]);
        let other = urls(b"http://b/x", Some(&base));
        assert!(matches!(other, Err(ListError::OtherOrigin { line: 1, .. })));
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
        for (text, error) in [
            ("GET\n", ListError::NotTarget { line: 1 }),
            ("@body\n", ListError::NotTarget { line: 1 }),
            (
                "GET http://a/\nno field\n",
                ListError::NotHeader { line: 2 },
            ),
            ("GET http://a/\n: empty\n", ListError::NotHeader { line: 2 }),
            (
                "GET http://a/\n@body\nX-1:\n",
                ListError::NotTarget { line: 3 },
            ),
        ] {
            assert_eq!(targets(text.as_bytes(), None), Err(error), "{text:?}");
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
            let refused = targets(text.as_bytes(), None);
            assert!(
                matches!(&refused, Err(ListError::NotJson { line: at, .. }) if *at == line),
                "{refused:?}"
            );
        }
        let text = br#"{"method":"GET","url":"http://a/","body":"?"}"#;
        assert_eq!(targets(text, None), Err(ListError::NotBase64 { line: 1 }));
    }
}
