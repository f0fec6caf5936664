//! Which HTTP a plan asks for.

use std::fmt;

use crate::protocol::Protocol;
use serde::{Deserialize, Serialize};

use crate::protocol_spec::Exchange;

/// Which HTTP is spoken: one version, or what the server chooses.
#[derive(Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HttpChoice {
    /// The only version that may be spoken; absent where the server chooses.
    only: Option<Protocol>,
}

impl HttpChoice {
    /// Over TLS what the server chooses (ALPN, RFC 7301) from HTTP/2 and HTTP/1.1; in clear text
    /// HTTP/1.1.
    pub const AUTO: Self = Self { only: None };
    /// HTTP/1.1.
    pub const HTTP1: Self = Self::only(Protocol::HTTP1);
    /// HTTP/2; in clear text by prior knowledge (RFC 9113 section 3.3).
    pub const HTTP2: Self = Self::only(Protocol::HTTP2);
    /// HTTP/3, by prior knowledge: over TLS alone, which is a part of QUIC.
    pub const HTTP3: Self = Self::only(Protocol::HTTP3);

    const fn only(protocol: Protocol) -> Self {
        Self {
            only: Some(protocol),
        }
    }

    /// All choices.
    fn all() -> impl Iterator<Item = Self> {
        let versions = Protocol::ALL.into_iter();
        let versions = versions.filter(|version| version.version_option.is_some());
        [Self::AUTO].into_iter().chain(versions.map(Self::only))
    }

    /// The option that makes this choice; absent where none need be given.
    pub fn option(self) -> Option<&'static str> {
        self.only?.version_option
    }

    /// The name as stored: that of its option.
    fn name(self) -> &'static str {
        (self.option()).map_or("auto", |option| option.trim_start_matches('-'))
    }
}

impl Exchange for HttpChoice {
    fn protocols(&self) -> &'static [Protocol] {
        let all: &'static [Protocol] = &Protocol::ALL;
        let place = self
            .only
            .and_then(|only| all.iter().position(|protocol| *protocol == only));
        match place {
            Some(place) => &all[place..=place],
            None => &[Protocol::HTTP2, Protocol::HTTP1],
        }
    }
}

impl fmt::Debug for HttpChoice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl From<HttpChoice> for String {
    fn from(choice: HttpChoice) -> Self {
        choice.name().to_owned()
    }
}

impl TryFrom<String> for HttpChoice {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let found = Self::all().find(|choice| choice.name() == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = Self::all().map(Self::name).collect();
            let names = names.join(", ");
            format!("unknown HTTP `{name}`, expected one of {names}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_tls_the_server_chooses_among_those_that_were_asked_for() {
        let (h1, h2) = (Some(Protocol::HTTP1), Some(Protocol::HTTP2));
        // (what was asked for, what the server chose, what is spoken)
        for (http, alpn, protocol) in [
            (HttpChoice::AUTO, Some("h2"), h2),
            (HttpChoice::AUTO, Some("http/1.1"), h1),
            (HttpChoice::AUTO, None, h1),
            (HttpChoice::AUTO, Some("h3"), None),
            (HttpChoice::HTTP1, Some("http/1.1"), h1),
            (HttpChoice::HTTP1, None, h1),
            (HttpChoice::HTTP1, Some("h2"), None),
            (HttpChoice::HTTP2, Some("h2"), h2),
            (HttpChoice::HTTP2, None, None),
            (HttpChoice::HTTP3, Some("h3"), Some(Protocol::HTTP3)),
            (HttpChoice::HTTP3, Some("h2"), None),
            (HttpChoice::HTTP3, None, None),
        ] {
            let chosen = http.chosen(alpn.map(str::as_bytes));
            assert_eq!(chosen, protocol, "{http:?} {alpn:?}");
        }
    }

    #[test]
    fn in_clear_text_it_is_http_1_unless_http_2_was_asked_for() {
        for (http, protocol) in [
            (HttpChoice::AUTO, Protocol::HTTP1),
            (HttpChoice::HTTP1, Protocol::HTTP1),
            (HttpChoice::HTTP2, Protocol::HTTP2),
        ] {
            assert_eq!(http.in_clear_text(), protocol, "{http:?}");
        }
    }

    #[test]
    fn each_choice_is_stored_as_its_name() {
        for (http, name) in [
            (HttpChoice::AUTO, "auto"),
            (HttpChoice::HTTP1, "http1"),
            (HttpChoice::HTTP2, "http2"),
            (HttpChoice::HTTP3, "http3"),
        ] {
            let stored = serde_json::to_string(&http).expect("a name");
            assert_eq!(stored, format!("\"{name}\""));
            let read: HttpChoice = serde_json::from_str(&stored).expect(&stored);
            assert_eq!(read, http);
        }
        let error = serde_json::from_str::<HttpChoice>("\"http9\"").expect_err("no version");
        assert!(error.to_string().contains("http9"), "{error}");
    }
}
