//! What passes between brunt and the reference server, through the simulated network.

use std::rc::Rc;

use brunt_io::backend::{Event, Slot};

use crate::link::{LinkId, Server};
use crate::piece::{Completes, Piece};
use crate::reference::Order;
use crate::world::{SimEvent, World};

impl World {
    /// Carries what brunt sends to the reference server, part after part.
    pub(crate) fn carry(&mut self, now_ns: u64, id: LinkId, bytes: &[u8]) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        link.sending = true;
        self.counts.borrow_mut().bytes_sent += bytes.len() as u64;
        let part_bytes = self.settings.send_buffer_bytes.get() as usize;
        let mut taken_ns = now_ns;
        for (number, part) in (0..).zip(bytes.chunks(part_bytes)) {
            taken_ns = now_ns + number * 2 * self.settings.network_ns;
            self.after_network(taken_ns, SimEvent::Carried(id, part.into()));
        }
        self.agenda.push(taken_ns, SimEvent::Taken(id));
    }

    /// Has the reference server accept a connection.
    pub(crate) fn reference_accepts(&mut self, at_ns: u64, id: LinkId) {
        if let Some(reference) = &self.reference {
            reference.attempted(id);
        }
        self.move_reference(at_ns);
    }

    /// Bytes of brunt's reach the reference server.
    pub(crate) fn carried(&mut self, at_ns: u64, id: LinkId, bytes: Rc<[u8]>) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        link.turns += 1;
        if link.server == Server::Closed {
            // A peer that sends to a closed socket gets a reset.
            return self.after_network(at_ns, SimEvent::Arrives(id, Piece::Reset));
        }
        self.notify_reference(at_ns, id, Event::Received, bytes);
        self.limit_idle(at_ns, id);
    }

    /// Brunt's side of a connection is gone.
    pub(crate) fn reference_left(&mut self, at_ns: u64, id: LinkId) {
        if let Some(reference) = &self.reference {
            reference.forget(id);
        }
        let holds = self.links.get(id).is_some_and(|link| link.holds_server);
        let event = |slot| {
            if holds {
                Event::SendFailed(slot, libc::ECONNRESET)
            } else {
                Event::Ended(slot)
            }
        };
        self.notify_reference(at_ns, id, event, Rc::default());
    }

    /// Brunt took bytes: where a send of the reference server waits for that, it goes on.
    pub(crate) fn unhold_reference(&mut self, now_ns: u64, id: LinkId) {
        let most = u64::from(self.settings.send_buffer_bytes.get());
        let link = self.links.get(id);
        if link.is_some_and(|link| link.holds_server && link.bytes_on_their_way() <= most) {
            self.after_network(now_ns, SimEvent::Drained(id));
        }
    }

    /// The reference server learns of it.
    pub(crate) fn reference_drained(&mut self, at_ns: u64, id: LinkId) {
        if let Some(link) = self.links.get_mut(id)
            && std::mem::take(&mut link.holds_server)
        {
            self.notify_reference(at_ns, id, Event::Sent, Rc::default());
        }
    }

    /// Something happens on a connection to the reference server, which deals with it.
    pub(crate) fn notify_reference(
        &mut self,
        at_ns: u64,
        id: LinkId,
        event: impl FnOnce(Slot) -> Event,
        bytes: Rc<[u8]>,
    ) {
        if let Some(reference) = &self.reference {
            reference.happened(id, event, bytes);
        }
        self.move_reference(at_ns);
    }

    /// Has the reference server do what there is to do at this instant.
    pub(crate) fn move_reference(&mut self, at_ns: u64) {
        while let Some(reference) = &mut self.reference {
            let (orders, wakes_ns) = reference.settle(at_ns);
            if let Some(wakes_ns) = wakes_ns {
                self.agenda.push(wakes_ns, SimEvent::ReferenceWakes);
            }
            if orders.is_empty() {
                return;
            }
            for order in orders {
                match order {
                    Order::Send(id, bytes) => self.send_of_reference(at_ns, id, bytes),
                    Order::End(id, how) => self.end(at_ns, id, how),
                }
            }
        }
    }

    /// Sends what the reference server says. That is done at once, as long as brunt reads.
    fn send_of_reference(&mut self, at_ns: u64, id: LinkId, bytes: Rc<[u8]>) {
        let most = u64::from(self.settings.send_buffer_bytes.get());
        let sent: fn(Slot) -> Event = Event::Sent;
        let lost: fn(Slot) -> Event = |slot| Event::SendFailed(slot, libc::ECONNRESET);
        let mut outcome = Some(lost);
        if let Some(link) = self.links.get_mut(id) {
            link.bytes_put += bytes.len() as u64;
            link.holds_server = link.bytes_on_their_way() > most;
            outcome = (!link.holds_server).then_some(sent);
            self.deliver_as_is(at_ns, id, bytes, Completes::Nothing);
        }
        if let (Some(reference), Some(event)) = (&self.reference, outcome) {
            reference.happened(id, event, Rc::default());
        }
    }
}
