//! Brunt's side of connections that are byte streams.

use std::cell::RefMut;
use std::rc::Rc;

use brunt_io::backend::{Event, Outgoing, Payloads, Slot};
use brunt_io::receive_stamps::SendCalls;
use brunt_io::tcp_info::TcpInfo;
use brunt_io::timers::Timers;
use brunt_io::transport::Stream;
use brunt_server::Counters;
use rand_pcg::Pcg64;

use crate::counts::SimCounts;
use crate::link::{Client, LinkId};
use crate::outside::Outside;
use crate::piece::Piece;
use crate::reference::Reference;
use crate::side::Received;
use crate::world::{Notice, SimEvent, World};

/// Bytes given out at once.
const RECEIVE_BYTES: usize = 64 * 1024;

impl World {
    fn link_of(&self, slot: Slot) -> Option<LinkId> {
        *self.side.slots.get(slot.0 as usize)?
    }

    /// Takes what arrived on a connection: all bytes at hand, or the end.
    fn take_arrivals(&mut self, id: LinkId, slot: Slot, is_stamped: bool) -> Option<Event> {
        let Self { side, links, .. } = self;
        let mut counts = self.counts.borrow_mut();
        let link = links.get_mut(id)?;
        side.buffer.clear();
        if link.discard_bytes > 0 {
            let discarded = link.discard(&mut counts);
            if discarded > 0 {
                if !link.arrivals.is_empty() {
                    self.notices.push_front((id, Notice::Arrived));
                }
                return Some(Event::Discarded(slot, discarded as u32));
            }
        }
        let mut taken = 0;
        while let Some((arrived_ns, piece)) = link.arrivals.front_mut() {
            let Piece::Bytes {
                bytes,
                start,
                end,
                completes,
            } = piece
            else {
                break;
            };
            let until = (*end).min(*start + (RECEIVE_BYTES - taken) as u32);
            if *start == until {
                break;
            }
            if taken == 0 {
                side.received = Received::Piece(Rc::clone(bytes), *start, until);
            } else {
                if let Received::Piece(bytes, start, end) = &side.received {
                    side.buffer
                        .extend_from_slice(&bytes[*start as usize..*end as usize]);
                    side.received = Received::Buffer;
                }
                side.buffer
                    .extend_from_slice(&bytes[*start as usize..until as usize]);
            }
            side.received_stamp_ns = is_stamped.then_some(*arrived_ns);
            taken += (until - *start) as usize;
            *start = until;
            if until == *end {
                counts.completed(*completes);
                link.arrivals.pop_front();
            }
        }
        if taken > 0 {
            link.bytes_taken += taken as u64;
            counts.bytes_delivered += taken as u64;
            if !link.arrivals.is_empty() {
                self.notices.push_front((id, Notice::Arrived));
            }
            return Some(Event::Received(slot));
        }
        let (_, end) = link.arrivals.pop_front()?;
        link.client = Client::Ended;
        link.arrivals.clear();
        match end {
            Piece::End { completes } => {
                counts.completed(completes);
                Some(Event::Ended(slot))
            }
            _ if std::mem::take(&mut link.sending) => {
                Some(Event::SendFailed(slot, libc::ECONNRESET))
            }
            _ => Some(Event::ReceiveFailed(slot, libc::ECONNRESET)),
        }
    }
}

impl Outside for World {
    type Transport = Stream;
    type Scheduled = SimEvent;

    fn agenda(&mut self) -> &mut Timers<SimEvent> {
        &mut self.agenda
    }

    fn handle(&mut self, at_ns: u64, event: SimEvent) {
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

    fn open(&mut self, now_ns: u64, slot: Slot) {
        let index = slot.0 as usize;
        if self.side.slots.len() <= index {
            self.side.slots.resize(index + 1, None);
        }
        self.side.slots[index] = Some(self.attempt(now_ns, slot));
    }

    fn send(&mut self, now_ns: u64, slot: Slot, outgoing: &Outgoing, payloads: &Payloads) {
        if let Some(id) = self.link_of(slot) {
            self.send_on(now_ns, id, payloads.bytes(outgoing));
        }
    }

    fn close(&mut self, now_ns: u64, slot: Slot) {
        if let Some(id) = self.link_of(slot) {
            self.close_link(now_ns, id);
            self.side.slots[slot.0 as usize] = None;
        }
    }

    fn next_event(&mut self, now_ns: u64, send_calls: &SendCalls) -> Option<Event> {
        self.side.received = Received::Nothing;
        self.side.received_stamp_ns = None;
        loop {
            let (id, notice) = self.notices.pop_front()?;
            let Some(slot) = self.open_link(id).and_then(|link| link.slot) else {
                continue;
            };
            let event = match notice {
                Notice::Connected => {
                    let opens = u64::from(self.opens_with_tcp());
                    self.counts.borrow_mut().connections_established += opens;
                    Some(Event::Connected(slot))
                }
                Notice::ConnectFailed(errno) => Some(Event::ConnectFailed(slot, errno)),
                Notice::Sent => Some(Event::Sent(slot)),
                Notice::Arrived => {
                    let event = self.take_arrivals(id, slot, send_calls.includes(slot));
                    self.unhold_reference(now_ns, id);
                    event
                }
            };
            if event.is_some() {
                return event;
            }
        }
    }

    #[inline]
    fn received(&self) -> &[u8] {
        match &self.side.received {
            Received::Nothing => &[],
            Received::Piece(bytes, start, end) => &bytes[*start as usize..*end as usize],
            Received::Buffer => &self.side.buffer,
        }
    }

    fn received_stamp_ns(&self) -> Option<u64> {
        self.side.received_stamp_ns
    }

    fn discard(&mut self, slot: Slot, bytes: u64) {
        let id = self.link_of(slot);
        if let Some(link) = id.and_then(|id| self.links.get_mut(id)) {
            link.discard_bytes = bytes;
        }
    }

    /// Only of streams: servers of all else read to the end what was sent, in any case.
    fn finish(&mut self, now_ns: u64, slot: Slot) -> bool {
        let id = self.link_of(slot);
        id.is_some_and(|id| self.finish_stream(now_ns, id))
    }

    fn tcp_info(&self, now_ns: u64, slot: Slot) -> Option<TcpInfo> {
        let id = self.link_of(slot)?;
        let link = self.links.get(id)?;
        let stream = self.stream_account(now_ns, id);
        Some(TcpInfo {
            bytes_received: link.bytes_arrived,
            bytes_unread: link.bytes_arrived - link.bytes_taken,
            min_rtt_ns: Some(2 * self.settings.network_ns),
            ..stream.unwrap_or_default()
        })
    }

    fn leave(&mut self, now_ns: u64) -> Option<Counters> {
        for id in std::mem::take(&mut self.side.slots).into_iter().flatten() {
            self.close_link(now_ns, id);
        }
        self.pass(u64::MAX);
        self.reference.as_ref().map(Reference::counters)
    }
}
