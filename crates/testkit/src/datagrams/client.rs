//! Brunt's side of connections that are datagram sockets.

use std::cell::RefMut;
use std::num::NonZeroU16;

use brunt_io::backend::{Event, Payloads, Slot};
use brunt_io::receive_stamps::SendCalls;
use brunt_io::timers::Timers;
use brunt_io::transport::{self, OutgoingDatagrams, ReceivedDatagrams};
use brunt_server::Counters;
use rand_pcg::Pcg64;

use super::datagram::Datagram;
use super::network::{Network, NetworkEvent, Notice, SocketId};
use crate::counts::SimCounts;
use crate::outside::Outside;

/// Datagrams and bytes of them that are given out at once, as by the kernel.
const SEGMENTS_MAX: usize = 64;
const RECEIVED_BYTES_MAX: usize = 65_535;

impl Network {
    /// Takes what came on a socket: datagrams of one size and mark, of which the last may be
    /// smaller, as the kernel puts them together.
    fn take_arrivals(&mut self, id: SocketId, send_calls: &SendCalls) -> Option<Event> {
        let mut received = std::mem::take(&mut self.received);
        let socket = self.socket(id)?;
        let slot = socket.slot;
        let is_stamped = send_calls.includes(slot);
        received.dropped = socket.dropped;
        let mut taken = 0;
        let mut segment_bytes = 0;
        let mut is_last = false;
        while taken < SEGMENTS_MAX
            && !is_last
            && let Some((at_ns, datagram)) = socket.take(|next| {
                let bytes = next.bytes.len();
                let is_like_others = bytes <= segment_bytes && next.ecn == received.ecn;
                taken == 0 || is_like_others && received.bytes.len() + bytes <= RECEIVED_BYTES_MAX
            })
        {
            if taken == 0 {
                segment_bytes = datagram.bytes.len();
                received.ecn = datagram.ecn;
            }
            is_last = datagram.bytes.len() < segment_bytes;
            received.bytes.extend_from_slice(&datagram.bytes);
            received.stamp_ns = is_stamped.then_some(at_ns);
            taken += 1;
        }
        received.segment_bytes = u16::try_from(segment_bytes).ok().and_then(NonZeroU16::new);
        if !socket.arrivals.is_empty() {
            self.notices.push_front((id, Notice::Arrived));
        }
        self.counts.borrow_mut().bytes_delivered += received.bytes.len() as u64;
        self.received = received;
        (!self.received.bytes.is_empty()).then_some(Event::Received(slot))
    }
}

impl Outside for Network {
    type Transport = transport::Datagram;
    type Scheduled = NetworkEvent;

    fn agenda(&mut self) -> &mut Timers<NetworkEvent> {
        &mut self.agenda
    }

    fn handle(&mut self, at_ns: u64, event: NetworkEvent) {
        self.handle_event(at_ns, event);
    }

    fn random(&mut self) -> &mut Pcg64 {
        &mut self.random
    }

    fn counts(&self) -> RefMut<'_, SimCounts> {
        self.counts.borrow_mut()
    }

    fn has_notices(&self) -> bool {
        !self.notices.is_empty()
    }

    fn open(&mut self, _now_ns: u64, slot: Slot) {
        self.open_socket(slot);
    }

    fn send(&mut self, now_ns: u64, slot: Slot, outgoing: &OutgoingDatagrams, _: &Payloads) {
        self.counts.borrow_mut().bytes_sent += outgoing.bytes.len() as u64;
        for bytes in outgoing.bytes.chunks(outgoing.segment_bytes.get().into()) {
            let datagram = Datagram {
                bytes: bytes.into(),
                ecn: outgoing.ecn,
            };
            self.send_from(now_ns, slot, datagram);
        }
        self.notice(slot, Notice::Sent);
    }

    fn close(&mut self, _now_ns: u64, slot: Slot) {
        self.close_socket(slot);
    }

    fn next_event(&mut self, _now_ns: u64, send_calls: &SendCalls) -> Option<Event> {
        self.received.bytes.clear();
        self.received.stamp_ns = None;
        loop {
            let (id, notice) = self.notices.pop_front()?;
            let Some(slot) = self.socket(id).map(|socket| socket.slot) else {
                continue;
            };
            let event = match notice {
                Notice::Connected => Some(Event::Connected(slot)),
                Notice::Sent => Some(Event::Sent(slot)),
                Notice::Arrived => self.take_arrivals(id, send_calls),
                Notice::Refused => {
                    self.end(id);
                    Some(Event::ReceiveFailed(slot, libc::ECONNREFUSED))
                }
            };
            if event.is_some() {
                return event;
            }
        }
    }

    fn received(&self) -> ReceivedDatagrams<'_> {
        let received = &self.received;
        ReceivedDatagrams {
            bytes: &received.bytes,
            segment_bytes: received.segment_bytes.unwrap_or(NonZeroU16::MIN),
            ecn: received.ecn,
            dropped: received.dropped,
        }
    }

    fn received_stamp_ns(&self) -> Option<u64> {
        self.received.stamp_ns
    }

    fn leave(&mut self, _now_ns: u64) -> Option<Counters> {
        self.close_all();
        self.pass(u64::MAX);
        let counters = self.reference_counters()?;
        self.counts.borrow_mut().connections_accepted += counters.connections_accepted;
        Some(counters)
    }
}
