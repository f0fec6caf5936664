//! The places of a connection, each for a request in flight.

use bytes::Bytes;

use crate::http3::message::ReplyReader;
use crate::http3::template::WorkerTemplate;

/// Of a place that is free.
const NO_STREAM: u64 = u64::MAX;

/// A place, with the request in flight in it.
#[derive(Debug)]
pub(super) struct Place {
    /// The number of its stream among those of the client.
    pub(super) stream: u64,
    pub(super) reader: ReplyReader,
    /// What was not written yet of the request.
    pub(super) unsent: Bytes,
    /// All of it was written, and the end of its stream.
    pub(super) is_sent: bool,
    /// Something may have come that lies behind something lost.
    has_gap: bool,
    /// Bytes of the connection that nobody had read when the reply got on last.
    unread_bytes: u64,
    /// The hint of its stream leads here.
    is_hinted: bool,
}

/// How the sending of a request stood when its place became free.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    pub(super) stream: u64,
    pub(super) is_sent: bool,
}

/// All places of a connection.
#[derive(Debug)]
pub(super) struct Places {
    places: Vec<Place>,
    free: Vec<u32>,
    /// Where the request of a stream is, by the low bits of the stream's number. Streams that lie
    /// far from each other may share an entry, which is the later one's.
    hints: Box<[u32]>,
    /// Places of requests in flight that no hint leads to.
    unhinted: u32,
    /// Places that may have gaps.
    gaps: u32,
    depth: u32,
}

impl Places {
    /// Room for `depth` requests, which takes memory as it is used.
    pub(super) fn new(depth: u32) -> Self {
        let hints = (2 * depth as usize).next_power_of_two();
        Self {
            places: Vec::new(),
            free: Vec::new(),
            hints: vec![0; hints].into(),
            unhinted: 0,
            gaps: 0,
            depth,
        }
    }

    /// A request takes a place, with this stream.
    #[inline]
    pub(super) fn take(&mut self, stream: u64, template: &WorkerTemplate) -> u32 {
        debug_assert!(self.in_flight() < self.depth, "there is a place");
        let mut reader = ReplyReader::new(template.is_head);
        if template.is_call {
            reader.expect_call();
        }
        let place = Place {
            stream,
            reader,
            unsent: template.wire.clone(),
            is_sent: false,
            has_gap: false,
            unread_bytes: 0,
            is_hinted: true,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.places[at as usize] = place;
                at
            }
            None => {
                if self.places.len() == self.places.capacity() {
                    // Most connections have few. A vector would begin with four.
                    self.places.reserve_exact(self.places.len().max(1));
                }
                self.places.push(place);
                self.places.len() as u32 - 1
            }
        };
        self.hint(at, stream);
        at
    }

    /// Has the hint of a stream lead to its place, and to no other one.
    #[inline]
    fn hint(&mut self, at: u32, stream: u64) {
        let hint = self.hint_of(stream);
        let before = std::mem::replace(&mut self.hints[hint], at);
        if before != at
            && let Some(other) = self.places.get(before as usize)
            && other.stream != NO_STREAM
            && other.is_hinted
            && self.hint_of(other.stream) == hint
        {
            self.places[before as usize].is_hinted = false;
            self.unhinted += 1;
        }
    }

    #[inline]
    fn hint_of(&self, stream: u64) -> usize {
        stream as usize & (self.hints.len() - 1)
    }

    /// The place of the request with this stream; absent where it is not in flight.
    #[inline]
    pub(super) fn of_stream(&self, stream: u64) -> Option<u32> {
        let hinted = self.hints[self.hint_of(stream)];
        match self.places.get(hinted as usize) {
            Some(place) if place.stream == stream => Some(hinted),
            // What comes of a stream behind its reply is as frequent as replies.
            _ if self.unhinted == 0 => None,
            _ => self.find(|it| it == stream),
        }
    }

    /// A place whose request has a stream from this one on.
    pub(super) fn first_from(&self, stream: u64) -> Option<u32> {
        self.find(|it| it >= stream && it != NO_STREAM)
    }

    /// The first place with a request in flight.
    pub(super) fn first_in_flight(&self) -> Option<u32> {
        self.find(|it| it != NO_STREAM)
    }

    fn find(&self, is_it: impl Fn(u64) -> bool) -> Option<u32> {
        let at = self.places.iter().position(|place| is_it(place.stream));
        at.map(|at| at as u32)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, at: u32) -> &mut Place {
        &mut self.places[at as usize]
    }

    /// Frees a place; gives the bytes that came of its reply.
    #[inline]
    pub(super) fn free(&mut self, at: u32) -> (u64, Sending) {
        let place = &mut self.places[at as usize];
        let sending = Sending {
            stream: place.stream,
            is_sent: place.is_sent,
        };
        let bytes = place.reader.pending_bytes();
        self.gaps -= u32::from(place.has_gap);
        self.unhinted -= u32::from(!place.is_hinted);
        (place.has_gap, place.is_hinted) = (false, true);
        place.stream = NO_STREAM;
        place.unsent = Bytes::new();
        self.free.push(at);
        (bytes, sending)
    }

    /// Something came for a place, and could not be read, as `unread_bytes` of the connection.
    pub(super) fn note_gap(&mut self, at: u32, unread_bytes: u64) {
        let place = &mut self.places[at as usize];
        if !std::mem::replace(&mut place.has_gap, true) {
            place.unread_bytes = unread_bytes;
            self.gaps += 1;
        }
    }

    /// More of a reply was read, with so many bytes of the connection left.
    #[inline]
    pub(super) fn note_progress(&mut self, at: u32, unread_bytes: u64) {
        self.places[at as usize].unread_bytes = unread_bytes;
    }

    /// Bytes that came since a reply got on, where it waits for something in front of them.
    pub(super) fn bytes_behind_gap(&self, at: u32, unread_bytes: u64) -> u64 {
        let place = &self.places[at as usize];
        if place.has_gap {
            unread_bytes.saturating_sub(place.unread_bytes)
        } else {
            0
        }
    }

    /// Whether something may have come that cannot be read yet.
    #[inline]
    pub(super) fn have_gaps(&self) -> bool {
        self.gaps > 0
    }

    /// Requests in flight.
    #[inline]
    pub(super) fn in_flight(&self) -> u32 {
        (self.places.len() - self.free.len()) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_found_by_their_streams_however_far_apart() {
        let template = WorkerTemplate {
            wire: Bytes::from_static(b"x"),
            is_head: false,
            is_call: false,
        };
        let mut places = Places::new(3);
        assert_eq!(places.first_in_flight(), None);
        // All of them share a hint.
        let streams = [5, 13, 5 + 8 * 1_000];
        let taken = streams.map(|stream| places.take(stream, &template));
        assert_eq!((taken, places.in_flight()), ([0, 1, 2], 3));
        assert_eq!(places.unhinted, 2);
        for (stream, at) in streams.into_iter().zip(taken) {
            assert_eq!(places.of_stream(stream), Some(at));
        }
        assert_eq!(
            (places.of_stream(21), places.first_from(6)),
            (None, Some(1))
        );
        places.note_gap(1, 100);
        places.note_gap(1, 250);
        assert_eq!(places.bytes_behind_gap(1, 300), 200);
        places.note_progress(1, 290);
        assert_eq!(places.bytes_behind_gap(1, 300), 10);
        assert_eq!(places.bytes_behind_gap(0, 300), 0);
        assert!(places.have_gaps());
        let (bytes, sending) = places.free(1);
        assert_eq!((bytes, sending.stream, sending.is_sent), (0, 13, false));
        assert!(!places.have_gaps());
        assert_eq!((places.of_stream(13), places.in_flight()), (None, 2));
        assert_eq!(places.unhinted, 1);
        assert_eq!(places.take(29, &template), 1);
        // The hint is of the latest one alone.
        assert_eq!(places.unhinted, 2);
        let found = [5, 29, 5 + 8 * 1_000].map(|stream| places.of_stream(stream));
        assert_eq!(found, [Some(0), Some(1), Some(2)]);
        places.free(2);
        assert_eq!(
            (places.unhinted, places.of_stream(5 + 8 * 1_000)),
            (1, None)
        );
    }
}
