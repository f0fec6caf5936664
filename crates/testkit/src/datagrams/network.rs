//! The simulated network between datagram sockets and the reference server of HTTP/3.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::rc::Rc;

use brunt_io::backend::Slot;
use brunt_io::timers::Timers;
use brunt_io::transport::Ecn;
use brunt_proto::tls::ServerSide;
use brunt_server::Counters;
use rand_pcg::Pcg64;

use super::datagram::{Datagram, ReceivedDatagram};
use super::reference::Reference;
use crate::counts::SimCounts;
use crate::handle::SimHandle;
use crate::outside::Outside;
use crate::settings::SimSettings;

/// Where the addresses of sockets begin: each has its own (RFC 1918).
const FIRST_ADDRESS: u32 = 10 << 24;

/// The name of a socket of brunt's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SocketId(u32);

#[derive(Debug)]
pub(super) struct Socket {
    pub(super) slot: Slot,
    /// What came and was not taken, and when.
    pub(super) arrivals: VecDeque<(u64, Datagram)>,
    arrived_bytes: u32,
    pub(super) dropped: u32,
}

/// Something that happens at its instant.
#[derive(Debug)]
pub enum NetworkEvent {
    /// A datagram reaches the server.
    AtServer(SocketId, Datagram),
    /// A datagram reaches a socket.
    AtClient(SocketId, Datagram),
    /// A socket learns that nobody listens (ICMP).
    Refused(SocketId),
    /// The reference server has something to do.
    ReferenceWakes,
}

/// What brunt's side is to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notice {
    Connected,
    Sent,
    Arrived,
    Refused,
}

/// Everything outside of brunt.
#[derive(Debug)]
pub struct Network {
    settings: SimSettings,
    pub(super) random: Pcg64,
    pub(super) agenda: Timers<NetworkEvent>,
    /// All that there ever were, by their names.
    sockets: Vec<Option<Box<Socket>>>,
    /// The latest in each slot.
    slots: Vec<SocketId>,
    /// Absent where the TLS library is broken: then nothing is answered.
    reference: Option<Reference>,
    /// Brunt is gone: the reference server does nothing more by itself, or it would repeat what is
    /// not acknowledged for ever.
    is_over: bool,
    pub(super) notices: VecDeque<(SocketId, Notice)>,
    pub(super) received: ReceivedDatagram,
    pub(super) counts: Rc<RefCell<SimCounts>>,
}

impl Network {
    pub(crate) fn new(
        settings: &SimSettings,
        http3: Option<&ServerSide>,
        worker: u32,
        handle: &SimHandle,
    ) -> Self {
        let http2 = settings.reference.unwrap_or_default();
        Self {
            reference: http3.and_then(|side| Reference::new(http2, side).ok()),
            random: Pcg64::new(settings.seed.into(), worker.into()),
            settings: settings.clone(),
            agenda: Timers::default(),
            sockets: Vec::new(),
            slots: Vec::new(),
            is_over: false,
            notices: VecDeque::new(),
            received: ReceivedDatagram::default(),
            counts: Rc::clone(&handle.counts),
        }
    }

    /// What the reference server counted; absent where there is none.
    pub(super) fn reference_counters(&self) -> Option<Counters> {
        self.reference.as_ref().map(Reference::counters)
    }

    /// Makes a socket in a free slot.
    pub(super) fn open_socket(&mut self, slot: Slot) {
        let id = SocketId(self.sockets.len() as u32);
        let socket = Socket {
            slot,
            arrivals: VecDeque::new(),
            arrived_bytes: 0,
            dropped: 0,
        };
        self.sockets.push(Some(Box::new(socket)));
        let index = slot.0 as usize;
        if self.slots.len() <= index {
            self.slots.resize(index + 1, id);
        }
        self.slots[index] = id;
        self.counts.borrow_mut().connections_established += 1;
        self.notice(slot, Notice::Connected);
    }

    /// Ends the socket in a slot.
    pub(super) fn close_socket(&mut self, slot: Slot) {
        self.end(self.slots[slot.0 as usize]);
    }

    /// Ends all sockets, for good.
    pub(super) fn close_all(&mut self) {
        self.is_over = true;
        for id in (0..self.sockets.len() as u32).map(SocketId) {
            self.end(id);
        }
    }

    /// Sends a datagram from the socket in a slot.
    pub(super) fn send_from(&mut self, now_ns: u64, slot: Slot, datagram: Datagram) {
        let id = self.slots[slot.0 as usize];
        self.carry(now_ns, id, datagram, NetworkEvent::AtServer);
    }

    /// Has brunt's side look at the socket in a slot.
    pub(super) fn notice(&mut self, slot: Slot, notice: Notice) {
        let id = self.slots[slot.0 as usize];
        self.notices.push_back((id, notice));
    }

    /// The socket of this name, while it lasts.
    pub(super) fn socket(&mut self, id: SocketId) -> Option<&mut Socket> {
        self.sockets[id.0 as usize].as_deref_mut()
    }

    /// A socket is over, or learned that nobody listens: it receives nothing more.
    pub(super) fn end(&mut self, id: SocketId) {
        self.sockets[id.0 as usize] = None;
    }

    /// Lets the network do with a datagram what it does; `arrives` is what its arrival is.
    fn carry(
        &mut self,
        now_ns: u64,
        id: SocketId,
        mut datagram: Datagram,
        arrives: fn(SocketId, Datagram) -> NetworkEvent,
    ) {
        let faults = self.settings.datagrams;
        if self.chance(faults.lost) {
            return;
        }
        let is_repeated = self.chance(faults.repeated);
        let is_held_back = self.chance(faults.held_back);
        if datagram.ecn.is_some() && self.chance(faults.marked) {
            datagram.ecn = Some(Ecn::CongestionExperienced);
        }
        let held_ns = if is_held_back { faults.held_back_ns } else { 0 };
        let at_ns = now_ns + self.settings.network_ns + held_ns;
        if is_repeated {
            self.agenda.push(at_ns, arrives(id, datagram.clone()));
        }
        self.agenda.push(at_ns, arrives(id, datagram));
    }

    pub(super) fn handle_event(&mut self, at_ns: u64, event: NetworkEvent) {
        match event {
            NetworkEvent::AtServer(id, datagram) => self.serve(at_ns, id, datagram),
            NetworkEvent::AtClient(id, datagram) => self.arrive(at_ns, id, datagram),
            NetworkEvent::ReferenceWakes if self.is_over => {}
            NetworkEvent::ReferenceWakes => self.move_reference(at_ns),
            NetworkEvent::Refused(id) => {
                if self.socket(id).is_some() {
                    self.notices.push_back((id, Notice::Refused));
                }
            }
        }
    }

    fn serve(&mut self, at_ns: u64, id: SocketId, datagram: Datagram) {
        let outage = self.settings.server.outage;
        if outage.is_some_and(|outage| outage.holds(at_ns)) {
            let refused_ns = at_ns + self.settings.network_ns;
            self.agenda.push(refused_ns, NetworkEvent::Refused(id));
        } else if let Some(reference) = &self.reference {
            reference.arrived(address_of(id), datagram);
            self.move_reference(at_ns);
        }
    }

    /// Has the reference server do what there is to do.
    fn move_reference(&mut self, at_ns: u64) {
        let Some(reference) = &mut self.reference else {
            return;
        };
        let (sent, wakes_ns) = reference.settle(at_ns);
        if let Some(wakes_ns) = wakes_ns.filter(|_| !self.is_over) {
            self.agenda.push(wakes_ns, NetworkEvent::ReferenceWakes);
        }
        for (to, datagram) in sent {
            if let Some(id) = socket_at(to) {
                self.carry(at_ns, id, datagram, NetworkEvent::AtClient);
            }
        }
    }

    fn arrive(&mut self, at_ns: u64, id: SocketId, datagram: Datagram) {
        let most = self.settings.datagrams.socket_bytes_max;
        let Some(socket) = self.socket(id) else {
            return;
        };
        let bytes = datagram.bytes.len() as u32;
        if socket.arrived_bytes + bytes > most {
            socket.dropped += 1;
            return;
        }
        socket.arrived_bytes += bytes;
        socket.arrivals.push_back((at_ns, datagram));
        if socket.arrivals.len() == 1 {
            self.notices.push_back((id, Notice::Arrived));
        }
    }
}

/// Where the server sees a socket.
fn address_of(id: SocketId) -> SocketAddr {
    (Ipv4Addr::from(FIRST_ADDRESS + id.0), 1).into()
}

/// The socket that the server sees there.
fn socket_at(address: SocketAddr) -> Option<SocketId> {
    match address.ip() {
        IpAddr::V4(ip) => Some(SocketId(u32::from(ip) - FIRST_ADDRESS)),
        IpAddr::V6(_) => None,
    }
}

impl Socket {
    /// Takes the first datagram that came, if it is one that `may_follow`.
    pub(super) fn take(
        &mut self,
        may_follow: impl FnOnce(&Datagram) -> bool,
    ) -> Option<(u64, Datagram)> {
        let (_, first) = self.arrivals.front()?;
        if !may_follow(first) {
            return None;
        }
        let taken = self.arrivals.pop_front()?;
        self.arrived_bytes -= taken.1.bytes.len() as u32;
        Some(taken)
    }
}
