//! The memory that a worker's connections may take together: one room for input that waits, and one
//! for output.

use std::cell::Cell;
use std::rc::Rc;

/// A buffer may have this part of what is left of the half that is shared.
const SHARES: usize = 16;
/// What is granted in any case of what is left, a share of it at most.
const GRANT_BYTES_MIN: usize = 4 * 1024;
/// Buffers of one connection that are for input: what waits, and a field block of HTTP/2.
pub(crate) const INPUT_BUFFERS: usize = 2;
/// Buffers of one connection that are for output: what is being sent, and in HTTP/2 what follows it
/// and what is known of its streams.
pub(crate) const OUTPUT_BUFFERS: usize = 3;

/// Room for buffers of one kind, of one worker. Half of it is shared evenly, so that the head of
/// a request finds room whatever the others do; the other half is for those that have more.
#[derive(Debug)]
pub(crate) struct Room {
    /// What each buffer may always have.
    own_bytes: usize,
    /// Most bytes that the connections with more than their own room may have together.
    shared_bytes_max: usize,
    /// Bytes that these connections have.
    shared_bytes: Cell<usize>,
}

impl Room {
    /// Room for as many bytes, and as many connections with so many buffers each.
    pub(crate) fn new(bytes_max: usize, connections_max: u32, buffers: usize) -> Rc<Self> {
        let buffers = buffers.saturating_mul(connections_max.max(1) as usize);
        Rc::new(Self {
            own_bytes: bytes_max / 2 / buffers,
            shared_bytes_max: bytes_max / 2,
            shared_bytes: Cell::new(0),
        })
    }

    /// What buffers have that have more than their own part.
    #[cfg(test)]
    pub(crate) fn shared_bytes(&self) -> usize {
        self.shared_bytes.get()
    }

    /// What one buffer more is to be made for, where it may be of any length. Such buffers leave
    /// half of what is shared to those that are as long as they are, as far as they can.
    pub(crate) fn grant_bytes(&self) -> usize {
        let left_of = |bytes: usize| bytes.saturating_sub(self.shared_bytes.get()) / SHARES;
        let of_half = left_of(self.shared_bytes_max / 2);
        let of_all = left_of(self.shared_bytes_max);
        self.own_bytes.max(of_half).max(of_all.min(GRANT_BYTES_MIN))
    }

    /// What a buffer of this size takes of what is shared.
    fn shared_part(&self, bytes: usize) -> usize {
        if bytes > self.own_bytes { bytes } else { 0 }
    }
}

/// What one buffer holds of a room; given back when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    room: Option<Rc<Room>>,
    shared_bytes: usize,
}

impl Hold {
    /// Holds `bytes` instead of what was held; false, and no change, when that is more than there
    /// is for one buffer.
    pub(crate) fn set(&mut self, bytes: usize, room: &Rc<Room>) -> bool {
        let wanted_bytes = room.shared_part(bytes);
        let others_bytes = room.shared_bytes.get() - self.shared_bytes;
        let free_bytes = room.shared_bytes_max.saturating_sub(others_bytes);
        if wanted_bytes > self.shared_bytes && wanted_bytes > free_bytes / SHARES {
            return false;
        }
        room.shared_bytes.set(others_bytes + wanted_bytes);
        self.shared_bytes = wanted_bytes;
        self.room.get_or_insert_with(|| Rc::clone(room));
        true
    }

    /// Notes that the buffer has become as large as this.
    pub(crate) fn correct(&mut self, bytes: usize) {
        if let Some(room) = &self.room {
            let part_bytes = room.shared_part(bytes);
            let before_bytes = std::mem::replace(&mut self.shared_bytes, part_bytes);
            let others_bytes = room.shared_bytes.get() - before_bytes;
            room.shared_bytes.set(others_bytes + part_bytes);
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.correct(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_free_is_shared_and_given_back() {
        // 100 bytes for each of 160 buffers, 16,000 for those that have more.
        let room = Room::new(32_000, 80, INPUT_BUFFERS);
        let mut first = Hold::default();
        assert!(!first.set(1_001, &room));
        assert!(first.set(1_000, &room));
        let mut second = Hold::default();
        // A share of the rest.
        assert!(!second.set(940, &room));
        assert_eq!(room.grant_bytes(), 937);
        assert!(second.set(937, &room));
        // What is held may stay, or become less, but not grow.
        assert!(!first.set(1_001, &room));
        assert_eq!(room.shared_bytes(), 1_937);
        assert!(first.set(100, &room));
        assert_eq!(room.shared_bytes(), 937);
        first.correct(128);
        assert_eq!(room.shared_bytes(), 1_065);
        drop(second);
        drop(first);
        assert_eq!(room.shared_bytes(), 0);
    }

    #[test]
    fn what_can_be_short_leaves_room_to_what_cannot() {
        let room = Room::new(64 << 20, 100_000, OUTPUT_BUFFERS);
        let hoard: Vec<Hold> = std::iter::repeat_with(|| {
            let mut hold = Hold::default();
            assert!(hold.set(room.grant_bytes(), &room));
            hold
        })
        .take(3_000)
        .collect();
        assert_eq!(room.grant_bytes(), GRANT_BYTES_MIN);
        assert!(Hold::default().set(64 * 1024, &room));
        drop(hoard);
        assert_eq!(room.shared_bytes(), 0);
    }

    #[test]
    fn hoarders_leave_everybody_a_part() {
        let room = Room::new(1 << 20, 1_000, INPUT_BUFFERS);
        let mut hoard = Vec::new();
        for _ in 0..10_000 {
            let mut hold = Hold::default();
            let mut bytes = 1 << 16;
            while !hold.set(bytes, &room) {
                bytes -= bytes.div_ceil(8);
            }
            assert!(bytes >= 200, "{bytes}");
            hoard.push(hold);
            assert!(room.shared_bytes() <= 1 << 19);
        }
        hoard.clear();
        assert_eq!(room.shared_bytes(), 0);
    }
}
