//! The server under test: a URL, and perhaps a Unix socket to reach it through.

use std::path::PathBuf;

use thiserror::Error;
use url::Url;

/// Why a URL is no target.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetError {
    /// The text is not a URL.
    #[error("`{url}` is not a URL ({reason}); write it as http[s]://HOST[:PORT]/PATH")]
    NotUrl {
        /// As typed.
        url: String,
        /// The parser's reason.
        reason: String,
    },
    /// The scheme is not spoken.
    #[error("`{url}` has the scheme `{scheme}`; http and https are spoken")]
    Scheme {
        /// As typed.
        url: String,
        /// Its scheme.
        scheme: String,
    },
    /// There is no host.
    #[error("`{url}` names no host; write it as http[s]://HOST[:PORT]/PATH")]
    NoHost {
        /// As typed.
        url: String,
    },
    /// User and password are not turned into a header behind the user's back.
    #[error("`{url}` holds a user name; give it as a header: -H 'Authorization: Basic ...'")]
    UserInfo {
        /// As typed.
        url: String,
    },
}

/// What the URL begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Clear text.
    Http,
    /// TLS.
    Https,
}

impl Scheme {
    /// As in the URL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// The server under test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The URL, normalised.
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
    pub unix_socket: Option<PathBuf>,
}

impl Target {
    /// Reads a URL. `host:port/path` without a scheme means http.
    ///
    /// # Errors
    ///
    /// It is not an absolute http or https URL with a host.
    pub fn parse(typed: &str, unix_socket: Option<PathBuf>) -> Result<Self, TargetError> {
        let with_scheme = if typed.contains("://") {
            typed.to_owned()
        } else {
            format!("http://{typed}")
        };
        let url = Url::parse(&with_scheme).map_err(|reason| TargetError::NotUrl {
            url: typed.to_owned(),
            reason: reason.to_string(),
        })?;
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => {
                return Err(TargetError::Scheme {
                    url: typed.to_owned(),
                    scheme: other.to_owned(),
                });
            }
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(TargetError::UserInfo {
                url: typed.to_owned(),
            });
        }
        let bracketed = match url.host_str() {
            Some(host) if !host.is_empty() => host,
            _ => {
                return Err(TargetError::NoHost {
                    url: typed.to_owned(),
                });
            }
        };
        let host = bracketed
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let port = url.port_or_known_default().unwrap_or(80);
        let authority = match url.port() {
            Some(port) => format!("{bracketed}:{port}"),
            None => bracketed.to_owned(),
        };
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let mut shown = url.clone();
        shown.set_fragment(None);
        Ok(Self {
            url: shown.into(),
            scheme,
            host,
            port,
            authority,
            path,
            unix_socket,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_good_urls() {
        for (typed, host, port, authority, path) in [
            ("http://example.org", "example.org", 80, "example.org", "/"),
            (
                "http://127.0.0.1:8080/a/b?c=d#e",
                "127.0.0.1",
                8080,
                "127.0.0.1:8080",
                "/a/b?c=d",
            ),
            ("http://[::1]:81/", "::1", 81, "[::1]:81", "/"),
            (
                "localhost:8080/x",
                "localhost",
                8080,
                "localhost:8080",
                "/x",
            ),
            (
                "example.org/a b",
                "example.org",
                80,
                "example.org",
                "/a%20b",
            ),
            (
                "https://example.org/",
                "example.org",
                443,
                "example.org",
                "/",
            ),
            (
                "https://example.org:8443/",
                "example.org",
                8443,
                "example.org:8443",
                "/",
            ),
            ("https://[::1]/a?b", "::1", 443, "[::1]", "/a?b"),
            (
                "https://example.org:80/",
                "example.org",
                80,
                "example.org:80",
                "/",
            ),
            (
                "http://example.org:80/",
                "example.org",
                80,
                "example.org",
                "/",
            ),
        ] {
            let target = Target::parse(typed, None).unwrap();
            assert_eq!(
                (
                    &*target.host,
                    target.port,
                    &*target.authority,
                    &*target.path
                ),
                (host, port, authority, path),
                "{typed}"
            );
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
    fn bad_urls_are_refused_with_the_reason() {
        for (typed, words) in [
            ("ftp://example.org/", "scheme `ftp`; http and https"),
            ("https://", "not a URL"),
            ("http://", "not a URL"),
            ("http://exa mple/", "not a URL"),
            ("http://host:99999/", "not a URL"),
            ("http://user:pass@host/", "user name"),
            ("", "not a URL"),
        ] {
            let message = Target::parse(typed, None).unwrap_err().to_string();
            assert!(message.contains(words), "{typed}: {message}");
        }
    }
}
