//! Which HTTP a plan asks for.

use brunt_protocols::Protocol;
use serde::{Deserialize, Serialize};

use crate::exchange::Exchange;

/// Which HTTP is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HttpChoice {
    /// Over TLS what the server chooses (ALPN, RFC 7301) from HTTP/2 and HTTP/1.1; in clear text
    /// HTTP/1.1.
    #[default]
    Auto,
    /// HTTP/1.1.
    Http1,
    /// HTTP/2; in clear text by prior knowledge (RFC 9113 section 3.3).
    Http2,
    /// HTTP/3, by prior knowledge: over TLS alone, which is a part of QUIC.
    Http3,
}

impl Exchange for HttpChoice {
    fn protocols(&self) -> &'static [Protocol] {
        match self {
            Self::Auto => &[Protocol::HTTP2, Protocol::HTTP1],
            Self::Http1 => &[Protocol::HTTP1],
            Self::Http2 => &[Protocol::HTTP2],
            Self::Http3 => &[Protocol::HTTP3],
        }
    }

    fn narrow_to(&mut self, protocol: Protocol) {
        let mut choices = [Self::Http1, Self::Http2, Self::Http3].into_iter();
        *self = choices
            .find(|it| it.preferred() == protocol)
            .unwrap_or(*self);
    }
}

#[cfg(test)]
mod tests {
    use super::HttpChoice::{Auto, Http1, Http2, Http3};
    use super::*;

    #[test]
    fn over_tls_the_server_chooses_among_those_that_were_asked_for() {
        let (h1, h2) = (Some(Protocol::HTTP1), Some(Protocol::HTTP2));
        // (what was asked for, what the server chose, what is spoken)
        for (http, alpn, protocol) in [
            (Auto, Some("h2"), h2),
            (Auto, Some("http/1.1"), h1),
            (Auto, None, h1),
            (Auto, Some("h3"), None),
            (Http1, Some("http/1.1"), h1),
            (Http1, None, h1),
            (Http1, Some("h2"), None),
            (Http2, Some("h2"), h2),
            (Http2, None, None),
            (Http3, Some("h3"), Some(Protocol::HTTP3)),
            (Http3, Some("h2"), None),
            (Http3, None, None),
        ] {
            let chosen = http.chosen(alpn.map(str::as_bytes));
            assert_eq!(chosen, protocol, "{http:?} {alpn:?}");
        }
    }

    #[test]
    fn in_clear_text_it_is_http_1_unless_http_2_was_asked_for() {
        for (http, protocol) in [
            (Auto, Protocol::HTTP1),
            (Http1, Protocol::HTTP1),
            (Http2, Protocol::HTTP2),
        ] {
            assert_eq!(http.in_clear_text(), protocol, "{http:?}");
        }
    }

    #[test]
    fn what_was_chosen_is_not_left_to_the_server_again() {
        for protocol in [Protocol::HTTP1, Protocol::HTTP2, Protocol::HTTP3] {
            let mut http = HttpChoice::default();
            assert_eq!(http, Auto);
            http.narrow_to(protocol);
            assert_eq!(http.protocols(), [protocol]);
        }
    }
}
