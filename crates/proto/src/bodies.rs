//! Bodies of replies that somebody wants to read: kept while they are received, up to a bound.

/// Which bodies are kept, and how much of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodiesWanted {
    /// Those of replies with this status or a higher one; [`u16::MAX`] for none.
    pub from_status: u16,
    /// Their first bytes, at most.
    pub bytes_max: u32,
}

impl BodiesWanted {
    /// None at all.
    pub const NONE: Self = Self {
        from_status: u16::MAX,
        bytes_max: 0,
    };
}

/// The content of a body, without its framing, as far as it was kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body {
    /// Its first bytes.
    pub bytes: Vec<u8>,
    /// There were more of them.
    pub is_cut: bool,
}

/// The bodies that one connection keeps; small while it keeps none.
#[derive(Debug, Default)]
pub(crate) struct Bodies(Option<Box<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// Those that are being received, by their streams.
    receiving: Vec<(u32, Body)>,
    /// The one that was complete last.
    complete: Option<Body>,
}

impl Bodies {
    /// The final head of a reply came on `stream`.
    #[inline]
    pub(crate) fn begin(&mut self, stream: u32, status: u16, wanted: BodiesWanted) {
        if status >= wanted.from_status {
            self.keep(stream);
        } else if let Some(kept) = &mut self.0 {
            // Whoever wanted the one before has taken it.
            kept.complete = None;
        }
    }

    #[cold]
    fn keep(&mut self, stream: u32) {
        let kept = self.0.get_or_insert_default();
        kept.complete = None;
        kept.receiving.push((stream, Body::default()));
    }

    /// Takes content that came on `stream`.
    #[inline]
    pub(crate) fn add(&mut self, stream: u32, content: &[u8], wanted: BodiesWanted) {
        if let Some(kept) = &mut self.0 {
            kept.add(stream, content, wanted.bytes_max as usize);
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
    fn add(&mut self, stream: u32, content: &[u8], bytes_max: usize) {
        let mut receiving = self.receiving.iter_mut();
        let Some((_, body)) = receiving.find(|(of, _)| *of == stream) else {
            return;
        };
        let room = bytes_max.saturating_sub(body.bytes.len());
        body.is_cut |= content.len() > room;
        body.bytes
            .extend_from_slice(&content[..content.len().min(room)]);
    }

    fn remove(&mut self, stream: u32) -> Option<Body> {
        let at = self.receiving.iter().position(|(of, _)| *of == stream)?;
        Some(self.receiving.swap_remove(at).1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: BodiesWanted = BodiesWanted {
        from_status: 400,
        bytes_max: 5,
    };

    #[test]
    fn what_is_wanted_is_kept_up_to_its_bound() {
        let mut bodies = Bodies::default();
        bodies.begin(1, 200, WANTED);
        bodies.add(1, b"fine", WANTED);
        bodies.complete(1);
        assert_eq!(bodies.take(), None);
        bodies.begin(3, 500, WANTED);
        bodies.begin(5, 404, WANTED);
        bodies.add(3, b"ab", WANTED);
        bodies.add(5, b"12345", WANTED);
        bodies.add(3, b"cdef", WANTED);
        bodies.complete(3);
        let body = |bytes: &[u8], is_cut| Body {
            bytes: bytes.to_vec(),
            is_cut,
        };
        assert_eq!(bodies.take(), Some(body(b"abcde", true)));
        assert_eq!(bodies.take(), None);
        bodies.complete(5);
        assert_eq!(bodies.take(), Some(body(b"12345", false)));
        assert!(bodies.0.is_none(), "nothing is left");
    }

    #[test]
    fn what_nobody_took_or_was_lost_is_not_kept() {
        let mut bodies = Bodies::default();
        bodies.begin(1, 500, WANTED);
        bodies.forget(1);
        bodies.complete(1);
        assert_eq!(bodies.take(), None);
        bodies.begin(1, 500, WANTED);
        bodies.complete(1);
        bodies.begin(1, 200, WANTED);
        bodies.complete(1);
        assert_eq!(bodies.take(), None);
    }
}
