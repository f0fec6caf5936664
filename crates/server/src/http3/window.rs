//! How much a client may send in advance of what is read: all that lies behind something that did
//! not come is kept. A window grows with what its client sends, as far as there is room for input.

use std::rc::Rc;

use brunt_proto::http3::ServerConnection;

use crate::room::{Hold, Room};
use crate::worker::Settings;

/// The window of a stream.
pub(super) const STREAM_BYTES: u64 = 1 << 20;
/// The window of a connection: while its handshake lasts, at least and at most; when it is open,
/// where there is room; and at most.
const FIRST_BYTES: [usize; 2] = [2 << 10, 64 << 10];
const OPEN_BYTES: usize = 256 << 10;
const BYTES_MAX: usize = 16 << 20;
/// Times its bytes that a full window may take in memory.
const MEMORY_TIMES: usize = 2;
/// Buffers of a connection that are for input: its window, and heads that are not complete.
const INPUT_BUFFERS: usize = 2;

/// Room for the input of one worker.
pub(super) fn room(settings: &Settings) -> Rc<Room> {
    Room::new(
        settings.input_bytes_max,
        settings.connections_max,
        INPUT_BUFFERS,
    )
}

/// The window of a connection that begins: its own part of the room.
pub(super) fn bytes_at_first(settings: &Settings) -> usize {
    let [least, most] = FIRST_BYTES;
    let buffers = settings.connections_max as usize * INPUT_BUFFERS;
    let part = settings.input_bytes_max / 2 / buffers.max(1) / MEMORY_TIMES;
    part.max(least).min(most)
}

/// The window of one connection, with what it holds of the room.
#[derive(Debug, Default)]
pub(super) struct Window {
    hold: Hold,
    bytes: usize,
    /// What was read when it grew last.
    read_bytes: u64,
}

impl Window {
    /// That of a connection that begins.
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            bytes: bytes_at_first(settings),
            ..Self::default()
        }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Grows on a connection that is open: twofold each time that its client has filled it.
    pub(super) fn fit(&mut self, connection: &mut ServerConnection, room: &Rc<Room>) {
        let read_bytes = connection.read_bytes();
        let wanted_bytes = if read_bytes - self.read_bytes >= self.bytes as u64 {
            (self.bytes * 2).min(BYTES_MAX)
        } else if self.bytes < OPEN_BYTES {
            OPEN_BYTES.min(room.grant_bytes() / MEMORY_TIMES)
        } else {
            return;
        };
        if wanted_bytes <= self.bytes {
            return;
        }
        self.read_bytes = read_bytes;
        if self.hold.set(wanted_bytes * MEMORY_TIMES, room) {
            self.bytes = wanted_bytes;
            connection.set_window(wanted_bytes as u64);
        }
    }
}
