//! The ways of breaking a protocol that `/malformed` has, by name.

pub(crate) mod http1;
pub(crate) mod http2;

use crate::protocol::Protocol;

/// One way of breaking the protocol: of HTTP/1.1, of HTTP/2, or of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind(u8);

impl Kind {
    /// The kind of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.name() == name)
    }

    /// Every kind, in the order of the documentation: those of HTTP/1.1, and those of HTTP/2 alone.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..http1::KINDS.len() + http2_alone().len()).map(|index| Self(index as u8))
    }

    /// The name in the path.
    pub(crate) fn name(self) -> &'static str {
        match self.http1() {
            Some(kind) => kind.name,
            None => self.http2().map_or("", |kind| kind.name),
        }
    }

    /// What the answer does, in a few words.
    pub(crate) fn meaning(self) -> &'static str {
        match self.http1() {
            Some(kind) => kind.meaning,
            None => self.http2().map_or("", |kind| kind.meaning),
        }
    }

    /// Whether this protocol has such an answer.
    pub(crate) fn exists_in(self, protocol: Protocol) -> bool {
        match protocol {
            Protocol::Http1 => self.http1().is_some(),
            Protocol::Http2 => self.http2().is_some(),
            Protocol::Http3 | Protocol::WebSocket => false,
        }
    }

    /// The malformation over HTTP/1.1; absent where it has none.
    pub(crate) fn http1(self) -> Option<&'static http1::Malformation> {
        http1::KINDS.get(usize::from(self.0))
    }

    /// The malformation over HTTP/2; absent where it has none.
    pub(crate) fn http2(self) -> Option<&'static http2::Malformation> {
        match self.http1() {
            Some(kind) => http2::KINDS.iter().find(|other| other.name == kind.name),
            None => http2_alone().get(usize::from(self.0) - http1::KINDS.len()),
        }
    }
}

/// The kinds that HTTP/1.1 does not have.
fn http2_alone() -> &'static [http2::Malformation] {
    &http2::KINDS[http2::COMMON..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_found() {
        for kind in Kind::all() {
            assert_eq!(Kind::named(kind.name()), Some(kind));
            assert!(!kind.meaning().is_empty());
        }
        assert_eq!(Kind::named("none"), None);
    }

    #[test]
    fn kinds_of_both_protocols_stand_first() {
        for (at, kind) in http2::KINDS.iter().enumerate() {
            let is_common = Kind::named(kind.name).is_some_and(|kind| kind.http1().is_some());
            assert_eq!(is_common, at < http2::COMMON, "{}", kind.name);
            assert!(Kind::named(kind.name).is_some_and(|kind| kind.http2().is_some()));
        }
    }
}
