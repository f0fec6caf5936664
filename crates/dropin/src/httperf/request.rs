//! httperf's requests, byte for byte.

use brunt_load::sessions::{SessionLog, SessionTexts};

use super::options::{Options, Uris, Workload};
use crate::Ending;

const AGENT: &str = "httperf/0.9.0";
/// Most requests of a working set or a list; more are refused.
const REQUESTS_MAX: usize = 1 << 20;

/// What is read from files before a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// The log of `--wsesslog`.
    pub log: Option<SessionLog>,
    /// The list of `--wlog`.
    pub list: Option<Vec<u8>>,
}

impl Options {
    /// The requests that are sent, by their numbers, and what is said about them: whole lines, or
    /// empty.
    ///
    /// # Errors
    ///
    /// There are none, or too many.
    pub(super) fn texts(&self, files: &Files) -> Result<(SessionTexts, String), Ending> {
        let (header, warning) = self.added_header();
        let mut texts = SessionTexts::default();
        let method = self.method.as_deref().unwrap_or("GET");
        let mut add = |method: &str, uri: &[u8], body: &[u8]| {
            let text = self.text((method, uri), header.as_deref().unwrap_or_default(), body);
            let uri = String::from_utf8_lossy(uri);
            let name = match method {
                "GET" => uri.into_owned(),
                _ => format!("{method} {uri}"),
            };
            texts.add(text, &name);
        };
        let too_many = || Ending::error("brunt: there are too many requests; use fewer", 1);
        match (&self.workload, &files.log, &self.uris, &files.list) {
            (Workload::Log { .. }, Some(log), ..) => {
                for logged in log.requests() {
                    let request = &logged.request;
                    add(&request.method, request.path.as_bytes(), &request.body);
                }
            }
            (.., Uris::List { .. }, Some(list)) => {
                let list = list.strip_suffix(b"\0").unwrap_or(list);
                let uris: Vec<_> = list.split(|&byte| byte == 0).collect();
                if list.is_empty() {
                    return Err(Ending::error(
                        "brunt: there is no URI in the list of --wlog",
                        1,
                    ));
                }
                if uris.len() > REQUESTS_MAX {
                    return Err(too_many());
                }
                uris.iter().for_each(|uri| add(method, uri, b""));
            }
            (.., Uris::Set { requests, .. }, _) => {
                if *requests == 0 || *requests as usize > REQUESTS_MAX {
                    return Err(too_many());
                }
                let digits = (requests - 1).to_string().len();
                for number in 0..*requests {
                    add(
                        method,
                        path_in_set(&self.uri, number, digits).as_bytes(),
                        b"",
                    );
                }
            }
            _ => add(method, self.uri.as_bytes(), b""),
        }
        Ok((texts, warning))
    }

    fn text(&self, (method, uri): (&str, &[u8]), header: &[u8], body: &[u8]) -> Vec<u8> {
        let version = if self.is_http_1_0 { "1.0" } else { "1.1" };
        let mut text = [method.as_bytes(), b" ", uri].concat();
        text.extend(format!(" HTTP/{version}\r\nUser-Agent: {AGENT}\r\n").bytes());
        if self.is_http_1_0 {
            text.extend(b"Connection: keep-alive\r\n");
        }
        if !self.no_host {
            let host = self.server_name.as_ref().unwrap_or(&self.server);
            text.extend(format!("Host: {host}\r\n").bytes());
        }
        text.extend(header);
        if !body.is_empty() {
            text.extend(format!("Content-length: {}\r\n", body.len()).bytes());
        }
        text.extend(b"\r\n");
        text.extend(body);
        text
    }

    /// The header lines that were typed, and what is said of them.
    fn added_header(&self) -> (Option<Vec<u8>>, String) {
        let Some(typed) = &self.add_header else {
            return (None, String::new());
        };
        let (mut header, mut warning) = (Vec::new(), String::new());
        let mut rest = typed.bytes().peekable();
        while let Some(byte) = rest.next() {
            if byte != b'\\' {
                header.push(byte);
                continue;
            }
            match rest.next() {
                Some(b'n') => header.extend(b"\r\n"),
                Some(b'r') => header.push(b'\r'),
                Some(b'a') => header.push(b'\x07'),
                Some(b'\\') | None => header.push(b'\\'),
                Some(digit @ b'0'..=b'7') => {
                    let mut value = u32::from(digit - b'0');
                    while let Some(digit @ b'0'..=b'7') = rest.peek().copied() {
                        value = (value * 8 + u32::from(digit - b'0')) & 0xff;
                        rest.next();
                    }
                    header.push(value as u8);
                }
                Some(other) => warning.push_str(&format!(
                    "httperf: ignoring unknown escape sequence `\\{}' in --add-header\n",
                    char::from(other)
                )),
            }
        }
        (Some(header), warning)
    }
}

/// The path of a request of a working set: its digits, as many as the largest has, are folders.
fn path_in_set(prefix: &str, number: u32, digits: usize) -> String {
    let prefix = prefix.strip_suffix('/').unwrap_or(prefix);
    let mut path = prefix.to_owned();
    for digit in format!("{number:0digits$}").chars() {
        path.push('/');
        path.push(digit);
    }
    path + ".html"
}
