//! Limits on what a reply may hold, whatever the protocol, and the heads and bodies of replies that
//! somebody wants to read: they are kept while they are received, up to a bound.

/// Which bodies are kept, and how much of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodiesWanted {
    /// Bodies of replies with this status or a higher one are kept; [`u16::MAX`] for none.
    pub from_status: u16,
    /// Most bytes that are kept of a body, from its beginning.
    pub bytes_max: u32,
    /// Whether the heads of all final replies are kept, in HTTP/1.
    pub heads: bool,
}

impl BodiesWanted {
    /// None at all.
    pub const NONE: Self = Self {
        from_status: u16::MAX,
        bytes_max: 0,
        heads: false,
    };

    /// Whether anything is kept of a reply with this status.
    #[inline]
    pub(crate) fn holds(self, status: u16) -> bool {
        status >= self.from_status || self.heads
    }
}

/// What was kept of a reply: the content of its body, without its framing, and its head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// The first bytes of the body.
    pub bytes: Vec<u8>,
    /// The body had more bytes than were kept.
    pub is_cut: bool,
    /// The final head, with the empty line that ends it; empty where it was not wanted.
    pub head: Vec<u8>,
}

/// The bodies that one connection keeps; small while it keeps none.
#[derive(Debug, Default)]
pub(crate) struct Bodies(Option<Box<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// Bodies of replies that are being received.
    receiving: Vec<Receiving>,
    /// The one that was complete last.
    complete: Option<Body>,
}

/// The body of a reply that is being received.
#[derive(Debug)]
struct Receiving {
    stream: u32,
    /// What was wanted of its content when it began, at most.
    bytes_max: u32,
    body: Body,
}

impl Bodies {
    /// The final `head` of a reply came on `stream`; empty where it is not to be had.
    #[inline]
    pub(crate) fn begin(&mut self, stream: u32, status: u16, wanted: BodiesWanted, head: &[u8]) {
        if wanted.holds(status) {
            let head = if wanted.heads { head } else { &[] };
            let bytes_max = if status >= wanted.from_status {
                wanted.bytes_max
            } else {
                0
            };
            self.keep(stream, bytes_max, head);
        } else if let Some(kept) = &mut self.0 {
            // Whoever wanted the one before has taken it.
            kept.complete = None;
        }
    }

    #[cold]
    fn keep(&mut self, stream: u32, bytes_max: u32, head: &[u8]) {
        let kept = self.0.get_or_insert_default();
        kept.complete = None;
        let body = Body {
            head: head.to_vec(),
            ..Body::default()
        };
        kept.receiving.push(Receiving {
            stream,
            bytes_max,
            body,
        });
    }

    /// Whether nothing is kept of what is being received.
    pub(crate) fn keeps_none(&self) -> bool {
        self.0.as_ref().is_none_or(|kept| kept.receiving.is_empty())
    }

    /// Takes content that came on `stream`.
    #[inline]
    pub(crate) fn add(&mut self, stream: u32, content: &[u8]) {
        if let Some(kept) = &mut self.0 {
            kept.add(stream, content);
        }
    }

    /// The reply on `stream` is complete.
    #[inline]
    pub(crate) fn complete(&mut self, stream: u32) {
        if let Some(kept) = &mut self.0 {
            kept.complete = kept.remove(stream);
        }
    }

    /// The reply on `stream` will not be complete.
    #[inline]
    pub(crate) fn forget(&mut self, stream: u32) {
        if let Some(kept) = &mut self.0 {
            kept.remove(stream);
        }
    }

    /// Takes the body of the reply that was given out last, where it was kept.
    pub(crate) fn take(&mut self) -> Option<Body> {
        let kept = self.0.as_mut()?;
        let body = kept.complete.take();
        if kept.receiving.is_empty() {
            self.0 = None;
        }
        body
    }
}

impl Kept {
    #[cold]
    fn add(&mut self, stream: u32, content: &[u8]) {
        let mut receiving = self.receiving.iter_mut();
        let Some(one) = receiving.find(|one| one.stream == stream) else {
            return;
        };
        let (bytes_max, body) = (one.bytes_max as usize, &mut one.body);
        let room = bytes_max.saturating_sub(body.bytes.len());
        body.is_cut |= content.len() > room;
        body.bytes
            .extend_from_slice(&content[..content.len().min(room)]);
    }

    fn remove(&mut self, stream: u32) -> Option<Body> {
        let at = self.receiving.iter().position(|one| one.stream == stream)?;
        Some(self.receiving.swap_remove(at).body)
    }
}

/// How large a reply may be; one value per run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one head, and likewise of the trailers of one body. In HTTP/1.1, the last empty
    /// line is included. In HTTP/2 and HTTP/3, they are those of the field block as it came, with
    /// the frame headers where it takes several frames, and likewise those of its fields decoded,
    /// each 32 bytes more than its name and value (RFC 9113 section 6.5.2, RFC 9114 section
    /// 4.2.2). Default 64 KiB.
    pub head_bytes: u32,
    /// Fields of one head, and likewise of the trailers of one body; in HTTP/2 and HTTP/3 without
    /// `:status`. Default 256; in HTTP/1.1 never more than
    /// [`MAX_HEADER_FIELDS`](crate::http1::MAX_HEADER_FIELDS).
    pub header_fields: u16,
    /// Interim (1xx) replies before one final reply. Default 16.
    pub interim_replies: u16,
    /// Bodies that are kept. Default none.
    pub bodies: BodiesWanted,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 64 * 1024,
            header_fields: 256,
            interim_replies: 16,
            bodies: BodiesWanted::NONE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: BodiesWanted = BodiesWanted {
        from_status: 400,
        bytes_max: 5,
        heads: false,
    };

    #[test]
    fn what_is_wanted_is_kept_up_to_its_bound() {
        let mut bodies = Bodies::default();
        bodies.begin(1, 200, WANTED, b"H");
        bodies.add(1, b"fine");
        bodies.complete(1);
        assert_eq!(bodies.take(), None);
        bodies.begin(3, 500, WANTED, b"H");
        bodies.begin(5, 404, WANTED, b"H");
        bodies.add(3, b"ab");
        bodies.add(5, b"12345");
        bodies.add(3, b"cdef");
        bodies.complete(3);
        let body = |bytes: &[u8], is_cut| Body {
            bytes: bytes.to_vec(),
            is_cut,
            head: Vec::new(),
        };
        assert_eq!(bodies.take(), Some(body(b"abcde", true)));
        assert_eq!(bodies.take(), None);
        bodies.complete(5);
        assert_eq!(bodies.take(), Some(body(b"12345", false)));
        assert!(bodies.0.is_none(), "nothing is left");
    }

    #[test]
    fn heads_are_kept_of_all_and_bodies_of_some() {
        let wanted = BodiesWanted {
            heads: true,
            ..WANTED
        };
        let mut bodies = Bodies::default();
        for (status, content) in [(200, ""), (500, "oops")] {
            bodies.begin(1, status, wanted, b"HTTP/1.1");
            bodies.add(1, b"oops");
            bodies.complete(1);
            let body = bodies.take().expect("kept");
            assert_eq!(
                (&body.head[..], &body.bytes[..]),
                (&b"HTTP/1.1"[..], content.as_bytes())
            );
        }
    }

    #[test]
    fn what_nobody_took_or_was_lost_is_not_kept() {
        let mut bodies = Bodies::default();
        bodies.begin(1, 500, WANTED, b"H");
        bodies.forget(1);
        bodies.complete(1);
        assert_eq!(bodies.take(), None);
        bodies.begin(1, 500, WANTED, b"H");
        bodies.complete(1);
        bodies.begin(1, 200, WANTED, b"H");
        bodies.complete(1);
        assert_eq!(bodies.take(), None);
    }
}
