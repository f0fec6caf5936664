//! The server under test: a URL, and perhaps a Unix socket to reach it through.

use std::net::Ipv6Addr;
use std::path::PathBuf;

use crate::protocol::Protocol;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use url::Url;

use brunt_proto::holes::{PlaceholderError, TextWithHoles, has_placeholder, placeholder_bytes};

/// What is shown in place of a query that is redacted, behind a path.
pub(crate) const HIDDEN_QUERY: &str = "?redacted";

/// What is shown of a target whose host nobody names, since a Unix socket leads to it.
const LOCALHOST: &str = "localhost";

/// Why a URL is not a target. What is typed may hold secrets: URLs are named without user name,
/// password and query.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetError {
    /// What begins as a placeholder is none.
    #[error(transparent)]
    Placeholder(#[from] PlaceholderError),
    /// The text is not a URL. Holds it, but for what may be secret, and the parser's reason.
    #[error("`{0}` is not a URL ({1}); write it as http[s]://HOST[:PORT]/PATH")]
    NotUrl(String, String),
    /// The scheme is not spoken. Holds the URL, but for what may be secret, and its scheme.
    #[error("`{0}` has the scheme `{1}`; http and https are spoken")]
    Scheme(String, String),
    /// The URL, which is held but for what may be secret, has no host.
    #[error("`{0}` names no host; write it as http[s]://HOST[:PORT]/PATH")]
    NoHost(String),
    /// The server of messages is not named as one. Holds what was typed, but for what may be
    /// secret, and why not.
    #[error(
        "`{0}` names no server of messages ({1}); write it as HOST:PORT, tcp://HOST:PORT, or \
         tls://HOST:PORT over TLS"
    )]
    NotHostAndPort(String, String),
    /// User and password are not turned into a header behind the user's back. Holds the URL without
    /// them.
    #[error(
        "`{0}` has a user name or password before its host; leave them out there, and give them as \
         -u USER:PASSWORD"
    )]
    UserInfo(String),
}

/// What the URL begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheme {
    /// Clear text.
    Http,
    /// TLS.
    Https,
    /// Messages in clear text.
    Tcp,
    /// Messages over TLS.
    Tls,
    /// WebSocket in clear text.
    Ws,
    /// WebSocket over TLS.
    Wss,
}

impl Scheme {
    /// The scheme as it stands in a URL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Ws => "ws",
            Self::Wss => "wss",
        }
    }

    /// The protocol of its URLs: of several the first, which is HTTP/1.1 for HTTP.
    pub fn protocol(self) -> Protocol {
        let mut all = Protocol::ALL.into_iter();
        let found = all.find(|protocol| protocol.schemes.contains(&self.name()));
        found.unwrap_or_default()
    }

    /// Whether messages are exchanged, and not requests of HTTP.
    pub fn is_of_messages(self) -> bool {
        self.protocol() == Protocol::MESSAGES
    }

    /// Whether TLS is spoken.
    pub fn is_secure(self) -> bool {
        let [_, secure] = self.protocol().schemes;
        self.name() == secure
    }
}

/// The server under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The URL, normalised: what reports and messages show.
    pub url: String,
    /// Clear text or TLS.
    pub scheme: Scheme,
    /// Host name or address, without brackets.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// Value of the Host header field: host, and port where it is not the scheme's own.
    pub authority: String,
    /// Path and query, as sent.
    pub path: String,
    /// Path of a Unix socket to connect to in place of host and port.
    #[serde(serialize_with = "serialize_path")]
    pub unix_socket: Option<PathBuf>,
}

/// Stores the path as text, whatever its bytes are.
fn serialize_path<S: serde::Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    path.as_ref()
        .map(|path| path.to_string_lossy())
        .serialize(serializer)
}

impl Target {
    /// Reads a URL. `host:port/path` without a scheme means http.
    ///
    /// # Errors
    ///
    /// It is not an absolute http or https URL with a host.
    pub fn parse(typed: &str, unix_socket: Option<PathBuf>) -> Result<Self, TargetError> {
        Self::parse_url(typed, unix_socket, false)
    }

    /// Reads a URL in whose path and query `{{seq}}`, `{{rand LOW HIGH}}` and `{{uuid}}` stay as
    /// they are: a request for it is to be filled in.
    ///
    /// # Errors
    ///
    /// As of [`Target::parse`], or what begins as a placeholder is none.
    pub fn parse_to_fill_in(
        typed: &str,
        unix_socket: Option<PathBuf>,
    ) -> Result<Self, TargetError> {
        if !has_placeholder(typed.as_bytes()) {
            return Self::parse(typed, unix_socket);
        }
        TextWithHoles::parse(typed.as_bytes())?;
        // Letters stand for them while the rest is read by the rules of URLs.
        let mut mark = "brunt-hole".to_owned();
        while typed.to_ascii_lowercase().contains(&mark) {
            mark.push('-');
        }
        let (mut masked, mut placeholders) = (String::new(), Vec::new());
        let mut rest = typed;
        while let Some(next) = rest.chars().next() {
            let bytes = placeholder_bytes(rest.as_bytes());
            let (taken, behind) = rest.split_at(bytes.unwrap_or(next.len_utf8()));
            match bytes {
                Some(_) => {
                    let masking = format!("{mark}{}.", placeholders.len());
                    masked.push_str(&masking);
                    placeholders.push((masking, taken));
                }
                None => masked.push_str(taken),
            }
            rest = behind;
        }
        let mut target = Self::parse(&masked, unix_socket)?;
        if target.host.contains(&mark) {
            let reason = "a host is not filled in".to_owned();
            return Err(TargetError::NotUrl(without_secrets(typed), reason));
        }
        for (masking, placeholder) in &placeholders {
            target.path = target.path.replace(masking, placeholder);
            target.url = target.url.replace(masking, placeholder);
        }
        Ok(target)
    }

    /// Reads the URL of a WebSocket server, which begins with ws:// or wss://.
    ///
    /// # Errors
    ///
    /// It is not an absolute ws or wss URL with a host.
    pub fn parse_websocket(typed: &str, unix_socket: Option<PathBuf>) -> Result<Self, TargetError> {
        Self::parse_url(typed, unix_socket, true)
    }

    fn parse_url(
        typed: &str,
        unix_socket: Option<PathBuf>,
        is_websocket: bool,
    ) -> Result<Self, TargetError> {
        let with_scheme = if typed.contains("://") {
            typed.to_owned()
        } else {
            format!("http://{typed}")
        };
        let shown = || without_secrets(typed);
        let url = Url::parse(&with_scheme)
            .map_err(|error| TargetError::NotUrl(shown(), reason(&with_scheme, error)))?;
        let scheme = match (url.scheme(), is_websocket) {
            ("http", false) => Scheme::Http,
            ("https", false) => Scheme::Https,
            ("ws", true) => Scheme::Ws,
            ("wss", true) => Scheme::Wss,
            (other, _) => return Err(TargetError::Scheme(shown(), other.to_owned())),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetError::UserInfo(shown()));
        }
        let bracketed = url.host_str().filter(|host| !host.is_empty());
        let bracketed = bracketed.ok_or_else(|| TargetError::NoHost(shown()))?;
        let port = url.port_or_known_default().unwrap_or(80);
        let authority = match url.port() {
            Some(port) => format!("{bracketed}:{port}"),
            None => bracketed.to_owned(),
        };
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let mut without_fragment = url.clone();
        without_fragment.set_fragment(None);
        Ok(Self {
            url: without_fragment.into(),
            scheme,
            host: without_brackets(bracketed),
            port,
            authority,
            path,
            unix_socket,
        })
    }

    /// Reads where messages go: `HOST:PORT`, with `tcp://` or `tls://` before it or not; over TLS
    /// where it says so, or `is_secure`. With a Unix socket nothing need be typed.
    ///
    /// # Errors
    ///
    /// It is something else, or nothing and there is no Unix socket.
    pub fn parse_tcp(
        typed: Option<&str>,
        is_secure: bool,
        unix_socket: Option<PathBuf>,
    ) -> Result<Self, TargetError> {
        let refused = |reason: &str| {
            let shown = without_secrets(typed.unwrap_or_default());
            TargetError::NotHostAndPort(shown, reason.to_owned())
        };
        let is = |scheme: &str, name: &str| scheme.eq_ignore_ascii_case(name);
        let (scheme, rest) = match typed.map(|typed| typed.split_once("://").ok_or(typed)) {
            Some(Ok((tls, rest))) if is(tls, "tls") => (Scheme::Tls, Some(rest)),
            Some(Ok((tcp, _))) if is(tcp, "tcp") && is_secure => {
                return Err(refused("tcp:// is clear text, and TLS was asked for"));
            }
            Some(Ok((tcp, rest))) if is(tcp, "tcp") => (Scheme::Tcp, Some(rest)),
            Some(Ok(_)) => return Err(refused("another protocol is named")),
            Some(Err(rest)) if is_secure => (Scheme::Tls, Some(rest)),
            Some(Err(rest)) => (Scheme::Tcp, Some(rest)),
            None if unix_socket.is_none() => return Err(refused("nothing is given")),
            None if is_secure => (Scheme::Tls, None),
            None => (Scheme::Tcp, None),
        };
        let target = |host: String, port, authority: String| Self {
            url: format!("{}://{authority}", scheme.name()),
            scheme,
            host,
            port,
            authority,
            path: String::new(),
            unix_socket,
        };
        let Some(rest) = rest else {
            return Ok(target(LOCALHOST.to_owned(), 0, LOCALHOST.to_owned()));
        };
        // The rules of hosts and ports are those of URLs; a scheme of its own has no default port.
        let with_scheme = format!("{}://{rest}", scheme.name());
        let url =
            Url::parse(&with_scheme).map_err(|error| refused(&reason(&with_scheme, error)))?;
        let host = url.host_str().filter(|host| !host.is_empty());
        let host = host.ok_or_else(|| refused("there is no host"))?;
        let port = url.port().ok_or_else(|| refused("there is no port"))?;
        let has_more = !matches!(url.path(), "" | "/")
            || url.query().is_some()
            || url.fragment().is_some()
            || !url.username().is_empty()
            || url.password().is_some();
        if has_more {
            return Err(refused("there is more than host and port"));
        }
        let authority = format!("{host}:{port}");
        Ok(target(without_brackets(host), port, authority))
    }

    /// This target with a URL that shows no query.
    pub fn redacted(mut self) -> Self {
        self.url = redact_queries(&self.url);
        self
    }

    /// Leaves out the query where it is not shown.
    pub(crate) fn hide_query(&mut self) {
        if let Some((before, query)) = self.path.split_once('?')
            && !self.url.contains(query)
        {
            self.path = format!("{before}{HIDDEN_QUERY}");
        }
    }

    /// Whether its query was left out.
    pub(crate) fn is_query_hidden(&self) -> bool {
        self.path.ends_with(HIDDEN_QUERY)
    }
}

/// `text` with the queries of all URLs in it made unreadable.
pub fn redact_queries(text: &str) -> String {
    let ends_url = |character: char| character.is_whitespace() || "`\"'<>".contains(character);
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(scheme_end) = rest.find("://") {
        let url_end = rest[scheme_end..]
            .find(ends_url)
            .map_or(rest.len(), |length| scheme_end + length);
        let url = &rest[..url_end];
        match url.split_once('?') {
            // A question mark that ends a sentence begins no query.
            Some((before, query)) if !query.is_empty() => {
                shown.push_str(before);
                shown.push_str(HIDDEN_QUERY);
            }
            _ => shown.push_str(url),
        }
        rest = &rest[url_end..];
    }
    shown.push_str(rest);
    shown
}

/// Stands in place of what may be secret.
pub const HIDDEN: &str = "...";

/// A header field without its value.
pub fn redact_field(field: &str) -> String {
    match field.split_once(':') {
        Some((name, _)) => format!("{name}: {HIDDEN}"),
        None => HIDDEN.to_owned(),
    }
}

/// The host as it is connected to.
fn without_brackets(host: &str) -> String {
    host.trim_matches(['[', ']']).to_owned()
}

/// Why a URL cannot be read.
fn reason(url: &str, error: url::ParseError) -> String {
    lacks_brackets(url).unwrap_or_else(|| error.to_string())
}

/// What is wrong with a URL whose host is an IPv6 address without brackets; absent where it is not.
fn lacks_brackets(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let is_address = |text: &str| text.parse::<Ipv6Addr>().is_ok();
    // What ends as a port is taken for one.
    let bracketed = match authority.rsplit_once(':') {
        Some((host, port)) if is_address(host) && port.parse::<u16>().is_ok() => {
            format!("[{host}]:{port}")
        }
        _ if is_address(authority) => format!("[{authority}]"),
        _ => return None,
    };
    Some(format!("an IPv6 address stands in brackets: {bracketed}"))
}

/// What may be shown of a URL that was typed wrong: not its query, nor what stands before its host.
/// A password may hold anything, so all before the last `@` is left out.
fn without_secrets(typed: &str) -> String {
    let (scheme, rest) = match typed.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), typed),
    };
    let (before, rest) = match rest.rsplit_once('@') {
        Some((_, rest)) => ("***@", rest),
        None => ("", rest),
    };
    let (shown, _) = rest.split_once('?').unwrap_or((rest, ""));
    format!("{scheme}{before}{shown}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_of_a_url_stay_as_they_are() {
        let parse = |typed: &str| Target::parse_to_fill_in(typed, None);
        let target = parse("http://h/a b/{{rand 1 9}}/{x}?id={{seq}}&{y}#{{seq}}").expect("a URL");
        assert_eq!(target.path, "/a%20b/{{rand 1 9}}/%7Bx%7D?id={{seq}}&{y}");
        assert_eq!(target.url, format!("http://h{}", target.path));
        let marked = parse("http://h/brunt-hole0./{{seq}}").expect("a URL");
        assert_eq!(marked.path, "/brunt-hole0./{{seq}}");
        // The escapes of URLs say that nothing is filled in.
        let literal = parse("http://h/%7B%7Bseq%7D%7D").expect("a URL");
        assert_eq!(literal.path, "/%7B%7Bseq%7D%7D");
        assert_eq!(
            Target::parse("http://h/{{seq}}", None).expect("a URL").path,
            literal.path
        );
        for (typed, words) in [
            ("http://h/{{rand 5}}", "`{{rand 5}}` is not filled in"),
            ("http://{{seq}}/", "a host is not filled in"),
        ] {
            let error = parse(typed).expect_err(typed).to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn parts_of_good_urls() {
        // Host, port, authority and path.
        for (typed, parts) in [
            ("http://example.org", "example.org 80 example.org /"),
            (
                "http://127.0.0.1:8080/a/b?c=d#e",
                "127.0.0.1 8080 127.0.0.1:8080 /a/b?c=d",
            ),
            ("http://[::1]:81/", "::1 81 [::1]:81 /"),
            ("localhost:8080/x", "localhost 8080 localhost:8080 /x"),
            ("example.org/a b", "example.org 80 example.org /a%20b"),
            ("https://example.org/", "example.org 443 example.org /"),
            ("https://host:8443/", "host 8443 host:8443 /"),
            ("https://[::1]/a?b", "::1 443 [::1] /a?b"),
            ("https://host:80/", "host 80 host:80 /"),
            ("http://host:80/", "host 80 host /"),
        ] {
            let target = Target::parse(typed, None).unwrap();
            let (host, port) = (&target.host, target.port);
            let found = format!("{host} {port} {} {}", target.authority, target.path);
            assert_eq!(found, parts, "{typed}");
        }
    }

    #[test]
    fn the_scheme_is_that_of_the_url() {
        for (typed, scheme, url) in [
            ("https://host", Scheme::Https, "https://host/"),
            ("HTTPS://Host:443/#top", Scheme::Https, "https://host/"),
            ("http://host:443/", Scheme::Http, "http://host:443/"),
            // A port says nothing of what is spoken on it.
            ("host:443", Scheme::Http, "http://host:443/"),
        ] {
            let target = Target::parse(typed, None).expect(typed);
            assert_eq!((target.scheme, &*target.url), (scheme, url), "{typed}");
            assert!(target.url.starts_with(scheme.name()), "{typed}");
        }
    }

    #[test]
    fn servers_of_messages_are_a_host_and_a_port() {
        let parse = |typed, is_secure| Target::parse_tcp(Some(typed), is_secure, None);
        for (typed, is_secure, url, host, port) in [
            (
                "localhost:6379",
                false,
                "tcp://localhost:6379",
                "localhost",
                6379,
            ),
            ("tcp://Host:80", false, "tcp://Host:80", "Host", 80),
            ("tls://host:443/", false, "tls://host:443", "host", 443),
            ("host:6380", true, "tls://host:6380", "host", 6380),
            ("tls://[::1]:1", true, "tls://[::1]:1", "::1", 1),
            ("TCP://host:80", false, "tcp://host:80", "host", 80),
            ("Tls://host:80", false, "tls://host:80", "host", 80),
            ("127.0.0.1:7", false, "tcp://127.0.0.1:7", "127.0.0.1", 7),
        ] {
            let target = parse(typed, is_secure).expect(typed);
            assert_eq!(
                (&*target.url, &*target.host, target.port),
                (url, host, port),
                "{typed}"
            );
            let scheme = if url.starts_with("tls") {
                Scheme::Tls
            } else {
                Scheme::Tcp
            };
            assert_eq!(target.scheme, scheme);
        }
        for (typed, is_secure, words) in [
            ("host", false, "there is no port"),
            ("host:0x", false, "invalid port"),
            (":80", false, "host"),
            ("", false, "host"),
            ("host:80/path", false, "more than host and port"),
            ("user@host:80", false, "more than host and port"),
            ("http://host:80", false, "another protocol is named"),
            ("tcp://host:80", true, "clear text"),
            ("TCP://host:80", true, "clear text"),
            ("::1:80", false, "in brackets: [::1]:80"),
        ] {
            let error = parse(typed, is_secure).expect_err(typed).to_string();
            assert!(error.contains(words), "{typed}: {error}");
            assert!(error.contains("HOST:PORT"), "{typed}: {error}");
        }
        let by_path = Target::parse_tcp(None, true, Some("/run/s".into())).expect("a socket");
        assert_eq!(
            (&*by_path.url, &*by_path.host),
            ("tls://localhost", "localhost")
        );
        assert!(Target::parse_tcp(None, false, None).is_err());
    }

    #[test]
    fn websocket_has_urls_of_its_own() {
        for (typed, scheme, port, path) in [
            ("ws://host", Scheme::Ws, 80, "/"),
            ("WSS://host/a?b", Scheme::Wss, 443, "/a?b"),
            ("ws://host:81/#x", Scheme::Ws, 81, "/"),
        ] {
            let target = Target::parse_websocket(typed, None).expect(typed);
            let found = (target.scheme, target.port, &*target.path);
            assert_eq!(found, (scheme, port, path), "{typed}");
            assert_eq!(target.scheme.protocol(), Protocol::WEBSOCKET);
            let error = Target::parse(typed, None).expect_err(typed).to_string();
            assert!(error.contains("http and https are spoken"), "{error}");
        }
        assert!(Target::parse_websocket("http://host", None).is_err());
    }

    #[test]
    fn bad_urls_are_refused_with_the_reason() {
        for (typed, words) in [
            ("ftp://example.org/", "scheme `ftp`; http and https"),
            ("https://", "not a URL"),
            ("http://", "not a URL"),
            ("http://exa mple/", "not a URL"),
            ("http://host:99999/", "not a URL"),
            (
                "http://user:pass@host/",
                "`http://***@host/` has a user name",
            ),
            ("http://user@host/", "-u USER:PASSWORD"),
            ("http://::1:6080/", "in brackets: [::1]:6080)"),
            ("::1:6080", "in brackets: [::1]:6080)"),
            ("http://2001:db8::1?a", "in brackets: [2001:db8::1])"),
            ("", "not a URL"),
        ] {
            let message = Target::parse(typed, None).unwrap_err().to_string();
            assert!(message.contains(words), "{typed}: {message}");
        }
    }

    #[test]
    fn what_may_be_secret_is_not_in_a_refusal() {
        for typed in [
            "http://user:hidden@host/a",
            "http://hidden@host:80",
            "http://user:hid/den@host/",
            "user:hidden@host/",
            "ftp://user:hidden@host/?hidden",
            "http://user:hid@den@host/",
            "http://user:hid?den@host/",
            "http://user:hid#den@host/",
            "http://ho st/?token=hidden",
            "http://user:hidden@host:99999/#hidden@x",
        ] {
            let message = Target::parse(typed, None).unwrap_err().to_string();
            assert!(!message.contains("user:hid"), "{typed}: {message}");
            assert!(!message.contains("token"), "{typed}: {message}");
        }
    }

    #[test]
    fn a_redacted_target_is_the_same_but_for_what_is_shown() {
        let target = Target::parse("https://host:1/a?token=x&b=c", None).unwrap();
        let redacted = target.clone().redacted();
        assert_eq!(redacted.url, "https://host:1/a?redacted");
        assert_eq!(redacted.path, "/a?token=x&b=c");
        let url = redacted.url.clone();
        assert_eq!(Target { url, ..target }, redacted);
        assert_eq!(redacted.clone().redacted(), redacted);
    }

    #[test]
    fn queries_are_found_in_text() {
        for (text, shown) in [
            ("", ""),
            ("is it there? no", "is it there? no"),
            ("http://host/", "http://host/"),
            ("http://host/?", "http://host/?"),
            ("http://host?a", "http://host?redacted"),
            (
                "cannot get `http://a/b?c=d`: refused; https://e/?f?g is",
                "cannot get `http://a/b?redacted`: refused; https://e/?redacted is",
            ),
        ] {
            assert_eq!(redact_queries(text), shown, "{text}");
        }
    }
}
