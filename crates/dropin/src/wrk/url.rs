//! URLs as wrk takes them: what its parser accepts, each part as typed.

use brunt_load::{Scheme, Target};

/// A URL's parts, as typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// The URL as typed.
    pub typed: String,
    /// The scheme: what stands before `://`.
    pub scheme: String,
    /// Name or address, without brackets.
    pub host: String,
    /// The port as typed; absent without one.
    pub port: Option<String>,
    /// All that follows host and port: path, query and fragment; `/` where there is no path.
    pub path: String,
}

impl Url {
    /// Absent where wrk calls it invalid.
    pub fn parse(typed: &str) -> Option<Self> {
        let (scheme, rest) = typed.split_once("://")?;
        let is_scheme = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphabetic());
        if !is_scheme || !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let server_end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (server, behind) = rest.split_at(server_end);
        let server = match server.rsplit_once('@') {
            Some((user, _)) if user.contains('@') => return None,
            Some((_, server)) => server,
            None => server,
        };
        let (host, port) = host_and_port(server)?;
        let path = if behind.starts_with('/') { behind } else { "/" };
        Some(Self {
            typed: typed.to_owned(),
            scheme: scheme.to_owned(),
            host: host.to_owned(),
            port: port.map(str::to_owned),
            path: path.to_owned(),
        })
    }

    /// The port, or the scheme that stands for it: as in wrk's messages.
    pub fn service(&self) -> &str {
        self.port.as_deref().unwrap_or(&self.scheme)
    }

    /// The value of the Host header field: a port is named where one was typed.
    pub fn authority(&self) -> String {
        let host = if self.host.contains(':') {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        };
        match &self.port {
            Some(port) => format!("{host}:{port}"),
            None => host,
        }
    }

    /// The server. Absent where the scheme stands for no port that is known.
    pub(crate) fn target(&self) -> Option<Target> {
        let scheme = if self.scheme.eq_ignore_ascii_case("https") {
            Scheme::Https
        } else {
            Scheme::Http
        };
        let port = match &self.port {
            Some(port) => port.parse().ok()?,
            None if scheme == Scheme::Https => 443,
            None if self.scheme.eq_ignore_ascii_case("http") => 80,
            None => return None,
        };
        // What may be secret before the host is not sent, and shown nowhere.
        let url = format!("{}://{}{}", self.scheme, self.authority(), self.path);
        Some(Target {
            url,
            scheme,
            host: self.host.clone(),
            port,
            authority: self.authority(),
            path: self.path.clone(),
            unix_socket: None,
        })
    }
}

fn host_and_port(server: &str) -> Option<(&str, Option<&str>)> {
    let (host, behind) = match server.strip_prefix('[') {
        Some(rest) => {
            let (host, behind) = rest.split_once(']')?;
            let is_address = |byte: u8| byte.is_ascii_hexdigit() || b":.%".contains(&byte);
            let (address, zone) = host.split_once('%').unwrap_or((host, ""));
            if !address.bytes().all(is_address) || zone.contains(['[', ']', ':']) {
                return None;
            }
            (host, behind)
        }
        None => {
            let end = server.find(':').unwrap_or(server.len());
            let (host, behind) = server.split_at(end);
            // The underscore is a name's in container networks; wrk's parser lets it pass in some
            // builds alone.
            let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
            if !host.bytes().all(is_host) {
                return None;
            }
            (host, behind)
        }
    };
    if host.is_empty() {
        return None;
    }
    if behind.is_empty() {
        return Some((host, None));
    }
    let port = behind.strip_prefix(':')?;
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    (is_port && port.parse::<u16>().is_ok()).then_some((host, Some(port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_typed() {
        for (typed, host, service, authority, path) in [
            ("http://h", "h", "http", "h", "/"),
            ("http://h:80/", "h", "80", "h:80", "/"),
            (
                "http://h:8080/p/a?q=1#frag",
                "h",
                "8080",
                "h:8080",
                "/p/a?q=1#frag",
            ),
            ("http://h?x=1", "h", "http", "h", "/"),
            ("http://[::1]:81/a b", "", "", "", ""),
            ("http://[::1]:81/a%20b", "::1", "81", "[::1]:81", "/a%20b"),
            ("https://h/{a}|b", "h", "https", "h", "/{a}|b"),
            ("http://u:p@h:1/x", "h", "1", "h:1", "/x"),
            ("http://a_b-c.d/", "a_b-c.d", "http", "a_b-c.d", "/"),
        ] {
            let url = Url::parse(typed);
            if host.is_empty() {
                assert_eq!(url, None, "{typed}");
                continue;
            }
            let url = url.expect(typed);
            assert_eq!(
                (&*url.host, url.service(), &*url.authority(), &*url.path),
                (host, service, authority, path),
                "{typed}"
            );
        }
    }

    #[test]
    fn invalid_ones() {
        for typed in [
            "",
            "h",
            "localhost:8080/",
            "127.0.0.1:8080",
            "/path",
            "http:/h/",
            "http://",
            "http:///x",
            "http://h:/",
            "http://h:65536/",
            "http://h:8x/",
            "http://h#frag",
            "http://h x/",
            "http://[::1/",
            "http://ü/",
            "h2://h/",
            "http://a@b@c/",
        ] {
            assert_eq!(Url::parse(typed), None, "{typed}");
        }
    }

    #[test]
    fn the_target_is_what_the_url_says() {
        let target = |typed: &str| Url::parse(typed).expect(typed).target();
        let secret = target("http://u:hidden@h:80/?q").expect("it has a port");
        assert!(!secret.url.contains("hidden"));
        assert_eq!((secret.port, &*secret.authority), (80, "h:80"));
        assert_eq!(target("https://h/").map(|target| target.port), Some(443));
        assert_eq!(target("ftp://h/"), None);
        let other = target("ftp://h:21/").expect("it has a port");
        assert_eq!((other.port, other.scheme), (21, Scheme::Http));
    }
}
