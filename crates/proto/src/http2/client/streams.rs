//! The streams in flight on one connection: places, and finding them by their identifiers.

use crate::fields::reply::ReplyState;
use crate::http2::frame::WINDOW_BYTES_MAX;

#[derive(Clone, Copy, Debug)]
pub(super) struct Http2Stream {
    /// Its identifier; 0: the place is free.
    pub(super) id: u32,
    /// The number of its request among the templates.
    pub(super) request: u32,
    /// While the place is free: the next free one.
    next_free: u32,
    /// Bytes of DATA that the server takes; below 0 after it lowered its setting.
    pub(super) send_window_bytes: i32,
    /// Bytes of DATA that the server may send.
    pub(super) receive_window_bytes: u32,
    /// Bytes of the request's body that were sent.
    pub(super) body_sent_bytes: usize,
    /// There is more of the body to send.
    pub(super) is_sending: bool,
    pub(super) reply: ReplyState,
}

impl Http2Stream {
    const FREE: Self = Self {
        id: 0,
        request: 0,
        next_free: NONE,
        send_window_bytes: 0,
        receive_window_bytes: 0,
        body_sent_bytes: 0,
        is_sending: false,
        reply: ReplyState::new(false),
    };

    /// A stream of which nothing was sent or received.
    pub(super) fn new(id: u32, send_window_bytes: i32, receive_window_bytes: u32) -> Self {
        Self {
            id,
            send_window_bytes,
            receive_window_bytes,
            ..Self::FREE
        }
    }
}

/// No place.
const NONE: u32 = u32::MAX;

/// Streams by place and by identifier. Grows with the number of streams in flight at once, to the
/// depth; each operation takes constant time on average, whatever the order of replies.
#[derive(Debug)]
pub(super) struct Streams {
    places: Vec<Http2Stream>,
    /// The place freed last.
    free: u32,
    in_flight: u32,
    /// Where the stream found last is: frames often come several of a stream.
    latest: u32,
    /// Open hash table from identifiers to places, at most half full; [`NONE`] where empty. Its
    /// length is a power of two, or 0.
    index: Vec<u32>,
}

impl Streams {
    pub(super) fn new() -> Self {
        Self {
            places: Vec::new(),
            free: NONE,
            in_flight: 0,
            latest: NONE,
            index: Vec::new(),
        }
    }

    pub(super) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Places that are or were taken.
    pub(super) fn places(&self) -> u32 {
        self.places.len() as u32
    }

    /// Puts a stream in a free place.
    #[inline]
    pub(super) fn insert(&mut self, stream: Http2Stream) -> u32 {
        self.in_flight += 1;
        let place = self.free;
        if let Some(free) = self.places.get_mut(place as usize) {
            self.free = free.next_free;
            *free = stream;
            self.enter(stream.id, place);
            return place;
        }
        let place = self.places.len() as u32;
        self.places.push(stream);
        if self.places.len() * 2 > self.index.len() {
            self.grow_index();
        } else {
            self.enter(stream.id, place);
        }
        place
    }

    #[inline]
    pub(super) fn remove(&mut self, place: u32) -> Option<Http2Stream> {
        let stream = *self.get(place)?;
        self.leave(stream.id);
        // The rest is written when the place is taken again.
        let freed = &mut self.places[place as usize];
        freed.id = 0;
        freed.next_free = self.free;
        self.free = place;
        self.in_flight -= 1;
        Some(stream)
    }

    /// Takes any stream out, with its place, once the connection is lost: places are not given out
    /// again, and no stream is found any more.
    pub(super) fn abandon(&mut self) -> Option<(u32, Http2Stream)> {
        self.index = Vec::new();
        self.free = NONE;
        self.latest = NONE;
        while let Some(stream) = self.places.pop() {
            if stream.id != 0 {
                self.in_flight -= 1;
                return Some((self.places.len() as u32, stream));
            }
        }
        None
    }

    /// The stream at a place; `None` where it is free.
    #[inline]
    pub(super) fn get(&self, place: u32) -> Option<&Http2Stream> {
        self.places
            .get(place as usize)
            .filter(|stream| stream.id != 0)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: u32) -> Option<&mut Http2Stream> {
        self.places
            .get_mut(place as usize)
            .filter(|stream| stream.id != 0)
    }

    /// The stream with this identifier and its place, if it is in flight. `id` is not 0.
    #[inline]
    pub(super) fn find(&mut self, id: u32) -> Option<(u32, &mut Http2Stream)> {
        let is_latest = self
            .places
            .get(self.latest as usize)
            .is_some_and(|stream| stream.id == id);
        if !is_latest {
            let slot = self.slot_of(id)?;
            self.latest = self.index[slot];
        }
        Some((self.latest, &mut self.places[self.latest as usize]))
    }

    /// Changes the send windows of all streams. False when one would be beyond its maximum.
    pub(super) fn widen(&mut self, difference: i64) -> bool {
        for stream in self.places.iter_mut().filter(|stream| stream.id != 0) {
            let window = i64::from(stream.send_window_bytes) + difference;
            match i32::try_from(window) {
                Ok(window) if window <= WINDOW_BYTES_MAX as i32 => {
                    stream.send_window_bytes = window
                }
                _ => return false,
            }
        }
        true
    }

    /// Where a search for `id` begins. Consecutive identifiers are far from each other, so that a
    /// search seldom meets others.
    #[inline]
    fn home(&self, id: u32) -> usize {
        /// 2^32 divided by the golden ratio.
        const SPREAD: u32 = 0x9e37_79b9;
        // Identifiers are odd: the lowest bit says nothing.
        let hash = u64::from((id >> 1).wrapping_mul(SPREAD));
        // The top bits, as many as the index needs.
        ((hash * self.index.len() as u64) >> 32) as usize
    }

    #[inline]
    fn next(&self, slot: usize) -> usize {
        (slot + 1) & (self.index.len() - 1)
    }

    /// The slot of the index that has `id`.
    #[inline]
    fn slot_of(&self, id: u32) -> Option<usize> {
        if self.index.is_empty() {
            return None;
        }
        let mut slot = self.home(id);
        loop {
            let place = self.index[slot];
            if place == NONE {
                return None;
            }
            if self.places[place as usize].id == id {
                return Some(slot);
            }
            slot = self.next(slot);
        }
    }

    fn enter(&mut self, id: u32, place: u32) {
        let mut slot = self.home(id);
        while self.index[slot] != NONE {
            slot = self.next(slot);
        }
        self.index[slot] = place;
    }

    /// Takes `id` out of the index, and moves what was entered behind it for its sake.
    fn leave(&mut self, id: u32) {
        let Some(mut hole) = self.slot_of(id) else {
            return;
        };
        let mask = self.index.len() - 1;
        let mut slot = hole;
        loop {
            slot = self.next(slot);
            let place = self.index[slot];
            if place == NONE {
                break;
            }
            let home = self.home(self.places[place as usize].id);
            let from_home = slot.wrapping_sub(home) & mask;
            let from_hole = slot.wrapping_sub(hole) & mask;
            if from_home >= from_hole {
                self.index[hole] = place;
                hole = slot;
            }
        }
        self.index[hole] = NONE;
    }

    fn grow_index(&mut self) {
        let slots = (self.places.len() * 2).next_power_of_two();
        self.index = vec![NONE; slots];
        for place in 0..self.places.len() {
            let id = self.places[place].id;
            if id != 0 {
                self.enter(id, place as u32);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_empty_table_finds_nothing() {
        let mut streams = Streams::new();
        assert!(streams.find(1).is_none());
        assert!(streams.remove(0).is_none());
        assert!(streams.abandon().is_none());
    }

    #[test]
    fn places_are_used_again() {
        let mut streams = Streams::new();
        let stream = |id| Http2Stream::new(id, 0, 0);
        assert_eq!(streams.insert(stream(1)), 0);
        assert_eq!(streams.insert(stream(3)), 1);
        assert_eq!(streams.remove(0).map(|stream| stream.id), Some(1));
        assert_eq!(streams.insert(stream(5)), 0);
        assert_eq!(streams.insert(stream(7)), 2);
        assert_eq!((streams.in_flight(), streams.places()), (3, 3));
        let mut abandoned = Vec::new();
        while let Some((place, stream)) = streams.abandon() {
            abandoned.push((place, stream.id));
        }
        assert_eq!(abandoned, [(2, 7), (1, 3), (0, 5)]);
        assert!(streams.find(3).is_none());
    }

    #[test]
    fn windows_have_bounds() {
        let mut streams = Streams::new();
        streams.insert(Http2Stream::new(1, -5, 0));
        assert!(streams.widen(i64::from(WINDOW_BYTES_MAX)));
        assert!(!streams.widen(6));
        assert!(streams.widen(-i64::from(WINDOW_BYTES_MAX)));
        assert_eq!(
            streams.get(0).map(|stream| stream.send_window_bytes),
            Some(-5)
        );
    }

    proptest! {
        /// As a map from identifiers to places.
        #[test]
        fn streams_are_found(
            depth in 1_usize..40,
            steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..400),
        ) {
            let mut streams = Streams::new();
            let mut model = BTreeMap::new();
            let mut next_id = 1;
            for (inserts, which) in steps {
                if model.len() < depth && (inserts || model.is_empty()) {
                    let place = streams.insert(Http2Stream::new(next_id, 0, 0));
                    prop_assert!((place as usize) < depth);
                    prop_assert!(!model.values().any(|taken| *taken == place));
                    model.insert(next_id, place);
                    next_id += 2;
                } else {
                    let ids: Vec<u32> = model.keys().copied().collect();
                    let id = *which.get(&ids);
                    let place = model.remove(&id).unwrap();
                    prop_assert_eq!(streams.remove(place).map(|stream| stream.id), Some(id));
                    prop_assert!(streams.find(id).is_none());
                }
                prop_assert_eq!(streams.in_flight() as usize, model.len());
                for (&id, &place) in &model {
                    let found = streams.find(id).map(|(place, stream)| (place, stream.id));
                    prop_assert_eq!(found, Some((place, id)));
                }
            }
        }
    }
}
