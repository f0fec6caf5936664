//! Streams: bytes without messages, through a send buffer, a network and the server's receive
//! buffer, which it reads as it pleases; and bytes that it sends without being asked.

use std::num::NonZeroU64;
use std::rc::Rc;

use brunt_io::tcp_info::TcpInfo;

use crate::link::{LinkId, Server};
use crate::outside::Outside;
use crate::piece::{Completes, Piece};
use crate::world::{SimEvent, World};

use super::settings::SimReads;
use super::stream::{PIECE_BYTES, Step, Stream};

/// Bytes of payload in a segment.
const SEGMENT_BYTES: u64 = 1_448;
/// The server waits with more while so many bytes lie unread at brunt's side.
const UNREAD_BYTES_MAX: u64 = 1 << 20;

impl World {
    /// The server took a connection that carries a stream.
    pub(in super::super) fn begin_stream(&mut self, at_ns: u64, id: LinkId) {
        let streams = self.settings.server.streams.clone().unwrap_or_default();
        let Some(stream) = self.stream(id) else {
            return;
        };
        // What brunt's side learns with the answer to its attempt.
        stream.edge = streams.buffer_bytes.get();
        if streams.sends_per_s.is_some() {
            self.agenda.push(at_ns, SimEvent::Stream(id, Step::Sends));
        }
    }

    fn stream(&mut self, id: LinkId) -> Option<&mut Stream> {
        self.links.get_mut(id)?.stream.as_deref_mut()
    }

    /// What the kernel would say of a stream at `now_ns`, but for what comes in.
    pub(in super::super) fn stream_account(&self, now_ns: u64, id: LinkId) -> Option<TcpInfo> {
        let stream = self.links.get(id)?.stream.as_deref()?;
        Some(stream.account(now_ns))
    }

    /// Brunt sends so many bytes. Gives whether the connection carries a stream.
    pub(in super::super) fn send_stream(&mut self, now_ns: u64, id: LinkId, bytes: u64) -> bool {
        let Some(stream) = self.stream(id) else {
            return false;
        };
        stream.pending += bytes;
        self.counts.borrow_mut().bytes_sent += bytes;
        if let Some(link) = self.links.get_mut(id) {
            link.sending = true;
        }
        self.push_stream(now_ns, id);
        true
    }

    /// Brunt sends no more.
    pub(in super::super) fn finish_stream(&mut self, now_ns: u64, id: LinkId) -> bool {
        let Some(stream) = self.stream(id) else {
            return false;
        };
        stream.is_finishing = true;
        self.push_stream(now_ns, id);
        true
    }

    /// Moves on what brunt's side may move: into the send buffer, and into the network.
    fn push_stream(&mut self, at_ns: u64, id: LinkId) {
        let (buffer_bytes, network_ns) = (
            u64::from(self.settings.send_buffer_bytes.get()),
            self.settings.network_ns,
        );
        let loss = self.settings.server.streams.as_ref();
        let loss = loss.map_or(0.0, |streams| streams.loss);
        loop {
            let is_lost = self.chance(loss);
            let Some(link) = self.links.get_mut(id) else {
                return;
            };
            let is_open = link.closed_ns.is_none();
            let Some(stream) = link.stream.as_deref_mut().filter(|_| is_open) else {
                return;
            };
            let held = stream.queued + (stream.sent - stream.acknowledged);
            let taken = stream.pending.min(buffer_bytes.saturating_sub(held));
            stream.pending -= taken;
            stream.queued += taken;
            let is_taken = taken > 0 && stream.pending == 0;
            let room = stream.edge.saturating_sub(stream.sent);
            let bytes = stream.queued.min(room).min(PIECE_BYTES);
            stream.queued -= bytes;
            stream.sent += bytes;
            let segments = bytes.div_ceil(SEGMENT_BYTES);
            stream.segments += segments;
            let mut arrival_ns = at_ns + network_ns;
            if is_lost && bytes > 0 {
                stream.segments_again += segments;
                stream.bytes_again += bytes;
                // It is missed when the acknowledgement would have been there.
                arrival_ns += 2 * network_ns;
            }
            arrival_ns = arrival_ns.max(stream.last_arrival_ns);
            let finishes =
                stream.is_finishing && !stream.is_finished && stream.pending + stream.queued == 0;
            stream.is_finished |= finishes;
            if bytes > 0 || finishes {
                stream.last_arrival_ns = arrival_ns;
            }
            let has_more = bytes > 0 && stream.queued > 0 && room > bytes;
            stream.note(at_ns);
            if is_taken {
                self.agenda.push(at_ns, SimEvent::Taken(id));
            }
            let arrives = (bytes > 0).then_some(Step::Arrives(bytes));
            let finishes = finishes.then_some(Step::Finishes);
            for step in arrives.into_iter().chain(finishes) {
                self.agenda.push(arrival_ns, SimEvent::Stream(id, step));
            }
            if !has_more {
                return;
            }
        }
    }

    pub(in super::super) fn step_stream(&mut self, at_ns: u64, id: LinkId, step: Step) {
        let is_gone = |server| matches!(server, Server::Absent | Server::Closed);
        let is_closed = self.links.get(id).is_none_or(|link| is_gone(link.server));
        match step {
            Step::Acknowledges { bytes, edge } => {
                if let Some(stream) = self.stream(id) {
                    stream.acknowledged = bytes;
                    stream.edge = edge;
                    self.push_stream(at_ns, id);
                }
            }
            Step::Arrives(_) if is_closed => {
                // A peer that sends to a closed socket gets a reset.
                self.after_network(at_ns, SimEvent::Arrives(id, Piece::Reset));
            }
            _ if is_closed => {}
            Step::Arrives(bytes) => {
                if let Some(stream) = self.stream(id) {
                    stream.unread += bytes;
                    self.acknowledge(at_ns, id);
                    self.read_stream(at_ns, id);
                }
            }
            Step::Finishes => {
                if let Some(stream) = self.stream(id) {
                    stream.has_ended = true;
                    self.end_stream(at_ns, id);
                }
            }
            Step::Reads(bytes) => {
                self.counts.borrow_mut().stream_bytes_read += bytes;
                if let Some(stream) = self.stream(id) {
                    stream.is_reading = false;
                    stream.unread -= bytes;
                    stream.read += bytes;
                    self.acknowledge(at_ns, id);
                    self.read_stream(at_ns, id);
                    self.end_stream(at_ns, id);
                }
            }
            Step::Sends => self.send_from_server(at_ns, id),
        }
    }

    /// The server says what it has, and how much more it takes.
    fn acknowledge(&mut self, at_ns: u64, id: LinkId) {
        let settings = self.settings.server.streams.as_ref();
        let room = settings.map_or(0, |streams| streams.buffer_bytes.get());
        if let Some(stream) = self.stream(id) {
            let (bytes, edge) = (stream.read + stream.unread, stream.read + room);
            let step = Step::Acknowledges { bytes, edge };
            self.after_network(at_ns, SimEvent::Stream(id, step));
        }
    }

    /// The server reads the next part of a stream, if there is one, and it reads.
    fn read_stream(&mut self, at_ns: u64, id: LinkId) {
        let Some(settings) = self.settings.server.streams.clone() else {
            return;
        };
        let Some(stream) = self.stream(id).filter(|stream| !stream.is_reading) else {
            return;
        };
        let limits = [
            settings.stops_after,
            settings.closes_after.map(NonZeroU64::get),
        ];
        let left = limits
            .into_iter()
            .flatten()
            .map(|limit| limit.saturating_sub(stream.read));
        let bytes = left.fold(stream.unread.min(PIECE_BYTES), u64::min);
        let pause_ns = match settings.reads {
            SimReads::Nothing => return,
            SimReads::AsItComes => 0,
            SimReads::PerSecond(rate) => bytes.saturating_mul(1_000_000_000) / rate,
        };
        if bytes > 0 {
            stream.is_reading = true;
            let step = Step::Reads(bytes);
            self.agenda
                .push(at_ns + pause_ns, SimEvent::Stream(id, step));
        }
    }

    /// The server ends a stream where it is time: brunt's end is there and all was read, or it has
    /// enough.
    fn end_stream(&mut self, at_ns: u64, id: LinkId) {
        let limit = self.settings.server.streams.as_ref();
        let limit = limit.and_then(|streams| streams.closes_after);
        let Some(stream) = self.stream(id) else {
            return;
        };
        let has_enough = limit.is_some_and(|limit| stream.read >= limit.get());
        let is_read = stream.has_ended && stream.unread == 0;
        // As a kernel does: who closes a socket without having read it all resets it.
        let piece = match stream.unread {
            0 => Piece::END,
            _ => Piece::Reset,
        };
        if has_enough || is_read {
            self.end(at_ns, id, piece);
        }
    }

    /// The server sends the next piece.
    fn send_from_server(&mut self, at_ns: u64, id: LinkId) {
        let settings = self.settings.server.streams.as_ref();
        let Some(rate) = settings.and_then(|streams| streams.sends_per_s) else {
            return;
        };
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        let has_ended = link.stream.as_ref().is_none_or(|stream| stream.has_ended);
        if link.server != Server::Open || has_ended {
            return;
        }
        if link.bytes_arrived - link.bytes_taken < UNREAD_BYTES_MAX {
            self.counts.borrow_mut().stream_bytes_sent += PIECE_BYTES;
            let piece = Piece::Bytes {
                bytes: Rc::clone(&self.stream_piece),
                start: 0,
                end: PIECE_BYTES as u32,
                completes: Completes::Nothing,
            };
            self.arrive_in_order(at_ns, id, piece);
        }
        let next_ns = at_ns + (PIECE_BYTES * 1_000_000_000 / rate).max(1);
        self.agenda.push(next_ns, SimEvent::Stream(id, Step::Sends));
    }
}
