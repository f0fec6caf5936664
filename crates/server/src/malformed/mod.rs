//! The ways of breaking a protocol that `/malformed` has, by name.

pub(crate) mod http1;
pub(crate) mod http2;
pub(crate) mod http3;

use crate::protocol::Protocol;

/// One way of breaking a protocol, or several of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(&'static str);

impl Kind {
    /// The kind of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.0 == name)
    }

    /// Every kind once, in the order of the documentation: those of HTTP/1.1, then those that only
    /// later versions have.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let of_http1 = http1::KINDS.iter().map(|kind| Self(kind.name));
        let of_http2 = http2::KINDS.iter().map(|kind| Self(kind.name));
        let of_http3 = http3::KINDS.iter().map(|kind| Self(kind.name));
        let of_http2 = of_http2.filter(|kind| kind.http1().is_none());
        let of_http3 = of_http3.filter(|kind| kind.http1().is_none() && kind.http2().is_none());
        of_http1.chain(of_http2).chain(of_http3)
    }

    /// The name in the path.
    pub(crate) fn name(self) -> &'static str {
        self.0
    }

    /// What the answer does over a protocol, in a few words; absent where that has none such.
    pub(crate) fn meaning(self, protocol: Protocol) -> Option<&'static str> {
        match protocol {
            Protocol::Http1 => self.http1().map(|kind| kind.meaning),
            Protocol::Http2 => self.http2().map(|kind| kind.meaning),
            Protocol::Http3 => self.http3().map(|kind| kind.meaning),
            Protocol::WebSocket => None,
        }
    }

    /// Whether this protocol has such an answer.
    pub(crate) fn exists_in(self, protocol: Protocol) -> bool {
        self.meaning(protocol).is_some()
    }

    /// The malformation over HTTP/1.1; absent where it has none.
    pub(crate) fn http1(self) -> Option<&'static http1::Malformation> {
        http1::KINDS.iter().find(|kind| kind.name == self.0)
    }

    /// The malformation over HTTP/2; absent where it has none.
    pub(crate) fn http2(self) -> Option<&'static http2::Malformation> {
        http2::KINDS.iter().find(|kind| kind.name == self.0)
    }

    /// The malformation over HTTP/3; absent where it has none.
    pub(crate) fn http3(self) -> Option<&'static http3::Malformation> {
        http3::KINDS.iter().find(|kind| kind.name == self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_distinct_and_found() {
        let mut names = BTreeSet::new();
        for kind in Kind::all() {
            assert!(names.insert(kind.name()), "{}", kind.name());
            assert_eq!(Kind::named(kind.name()), Some(kind));
            let protocols = [Protocol::Http1, Protocol::Http2, Protocol::Http3];
            assert!(protocols.iter().any(|protocol| kind.exists_in(*protocol)));
        }
        assert_eq!(Kind::named("none"), None);
        let of_http3 = Kind::all().filter(|kind| kind.exists_in(Protocol::Http3));
        assert_eq!(of_http3.count(), http3::KINDS.len());
    }
}
