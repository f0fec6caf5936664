//! ab's request, byte for byte.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::options::Options;

const AGENT: &str = "ApacheBench/2.3";

/// The bytes of each request: of a run with this body, which is sent where the options name a file.
pub(super) fn request(options: &Options, body: &[u8]) -> Vec<u8> {
    let target = match options.proxy {
        Some(_) => &options.url.typed,
        None => &options.url.path,
    };
    let mut head = format!("{} {target} HTTP/1.0\r\n", options.method);
    let mut line = |name: &str, value: &str| {
        head.push_str(name);
        head.push_str(": ");
        head.push_str(value);
        head.push_str("\r\n");
    };
    if options.keep_alive {
        line("Connection", "Keep-Alive");
    }
    if let Some(cookie) = &options.cookie {
        line("Cookie", cookie);
    }
    for user in &options.users {
        let name = if user.is_proxys {
            "Proxy-Authorization"
        } else {
            "Authorization"
        };
        let credentials = BASE64_STANDARD.encode(&user.credentials);
        line(name, &format!("Basic {credentials}"));
    }
    if let Some(file) = &options.body {
        line("Content-length", &body.len().to_string());
        line("Content-type", &file.content_type);
    }
    for typed in &options.headers {
        head.push_str(typed);
        head.push_str("\r\n");
    }
    let is_typed = |name: &str| {
        let mut typed = options.headers.iter();
        typed.any(|typed| {
            let start = typed.get(..name.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(name))
        })
    };
    for (name, value) in [
        ("Host:", options.url.authority.as_str()),
        ("User-Agent:", AGENT),
        ("Accept:", "*/*"),
    ] {
        if !is_typed(name) {
            head.push_str(&format!("{name} {value}\r\n"));
        }
    }
    head.push_str("\r\n");
    let mut request = head.into_bytes();
    if options.body.is_some() {
        request.extend_from_slice(body);
    }
    request
}
