//! The backend of one simulated worker whose connections are datagram sockets.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::num::{NonZeroU16, NonZeroU32};
use std::rc::Rc;
use std::sync::Arc;

use brunt_io::backend::{Backend, ClientBackend, Event, PayloadId, Peer, SendCall, Slot};
use brunt_io::payloads::Payloads;
use brunt_io::send_calls::SendCalls;
use brunt_io::tcp_info::TcpInfo;
use brunt_io::transport::{self, Ecn, OutgoingDatagrams, ReceivedDatagrams};
use brunt_proto::tls::ServerSide;
use brunt_server::Counters;

use super::datagram::Datagram;
use super::network::{Network, Notice, SocketId};
use crate::counts::SimCounts;
use crate::cpu::Cpu;
use crate::handle::SimHandle;
use crate::settings::{Costs, LateWakeUps, SimSettings};
use crate::waiting::{self, Outside};

/// Datagrams and bytes of them that are given out at once, as by the kernel.
const SEGMENTS_MAX: usize = 64;
const RECEIVED_BYTES_MAX: usize = 65_535;

/// One worker's simulated network, server and clock. The server is the reference server where
/// HTTP/3 is spoken; else it sends back every datagram as it is.
#[derive(Debug)]
pub struct SimDatagrams {
    cpu: Cpu,
    costs: Costs,
    late_wake_ups: Option<LateWakeUps>,
    no_socket: f64,
    network: Network,
    payloads: Payloads,
    send_calls: SendCalls,
    received: Received,
    counts: Rc<RefCell<SimCounts>>,
    reference: Rc<RefCell<Option<Counters>>>,
}

/// What came with the latest `Received` event.
#[derive(Debug, Default)]
struct Received {
    bytes: Vec<u8>,
    segment_bytes: Option<NonZeroU16>,
    ecn: Option<Ecn>,
    dropped: u32,
    stamp_ns: Option<u64>,
}

impl SimDatagrams {
    /// A simulation for worker number `worker` whose clock starts at `start_ns`, with a server that
    /// sends back what comes.
    pub fn new(settings: &SimSettings, worker: u32, start_ns: u64) -> (Self, SimHandle) {
        Self::speaking(settings, None, worker, start_ns)
    }

    /// The same, with the reference server of HTTP/3 where this is its side of TLS.
    pub(crate) fn speaking(
        settings: &SimSettings,
        http3: Option<&ServerSide>,
        worker: u32,
        start_ns: u64,
    ) -> (Self, SimHandle) {
        let handle = SimHandle::starting_at(start_ns);
        let sim = Self {
            cpu: handle.cpu(settings.host),
            costs: settings.costs,
            late_wake_ups: settings.late_wake_ups,
            no_socket: settings.server.faults.no_socket,
            network: Network::new(settings, http3, worker, Rc::clone(&handle.ledger)),
            payloads: Payloads::default(),
            send_calls: SendCalls::default(),
            received: Received::default(),
            counts: Rc::clone(&handle.counts),
            reference: Rc::clone(&handle.reference),
        };
        (sim, handle)
    }

    /// Takes what came on a socket: datagrams of one size and mark, of which the last may be
    /// smaller, as the kernel puts them together.
    fn take_arrivals(&mut self, id: SocketId) -> Option<Event> {
        let is_stamped = self.send_calls.includes(id.slot);
        let Self {
            network, received, ..
        } = self;
        let socket = network.socket(id)?;
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
            network.notices.push_front((id, Notice::Arrived));
        }
        network.counts.datagrams.delivered += taken as u64;
        network.counts.bytes_delivered += received.bytes.len() as u64;
        (!received.bytes.is_empty()).then_some(Event::Received(id.slot))
    }
}

impl Backend for SimDatagrams {
    type Transport = transport::Datagram;

    fn now_ns(&self) -> u64 {
        self.cpu.run(self.costs.clock_ns)
    }

    fn add_payload(&mut self, bytes: Arc<[u8]>) -> PayloadId {
        self.payloads.add(bytes)
    }

    fn send(&mut self, slot: Slot, outgoing: OutgoingDatagrams) {
        let from_ns = self.cpu.now_ns();
        let to_ns = self.cpu.run(self.costs.send_ns);
        self.send_calls.note(slot, SendCall { from_ns, to_ns });
        self.network.counts.bytes_sent += outgoing.bytes.len() as u64;
        for bytes in outgoing.bytes.chunks(outgoing.segment_bytes.get().into()) {
            let datagram = Datagram {
                bytes: bytes.into(),
                ecn: outgoing.ecn,
            };
            self.network.send(to_ns, slot, &datagram);
        }
        self.network.notice(slot, Notice::Sent);
        self.payloads.recycle::<transport::Datagram>(outgoing);
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.payloads.take_buffer()
    }

    fn close(&mut self, slot: Slot) {
        self.cpu.run(self.costs.open_ns);
        self.network.close(slot);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        let from_ns = self.cpu.run(self.costs.wait_ns);
        let late = self.late_wake_ups;
        waiting::wait(&self.cpu, &mut self.network, (from_ns, until_ns), late)
    }

    fn next_event(&mut self) -> Option<Event> {
        self.received.bytes.clear();
        self.received.stamp_ns = None;
        loop {
            let (id, notice) = self.network.notices.pop_front()?;
            if self.network.socket(id).is_none() {
                continue;
            }
            let event = match notice {
                Notice::Connected => Some(Event::Connected(id.slot)),
                Notice::Sent => Some(Event::Sent(id.slot)),
                Notice::Arrived => self.take_arrivals(id),
                Notice::Refused => {
                    self.network.end(id);
                    Some(Event::ReceiveFailed(id.slot, libc::ECONNREFUSED))
                }
            };
            if event.is_some() {
                self.cpu.run(self.costs.event_ns);
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
}

impl ClientBackend for SimDatagrams {
    fn set_stamps(&mut self, every: Option<NonZeroU32>) {
        self.send_calls.set_every(every);
    }

    fn open(&mut self, slot: Slot, _peer: &Peer, _source: Option<SocketAddr>) -> io::Result<()> {
        self.cpu.run(self.costs.open_ns);
        if self.network.chance(self.no_socket) {
            self.network.counts.connections_impossible += 1;
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        self.network.open(slot);
        self.send_calls.opened(slot);
        Ok(())
    }

    fn received_stamp_ns(&self) -> Option<u64> {
        self.received.stamp_ns
    }

    fn send_call(&self, slot: Slot) -> Option<SendCall> {
        self.send_calls.latest(slot)
    }

    fn tcp_info(&self, _slot: Slot) -> Option<TcpInfo> {
        None
    }
}

impl Drop for SimDatagrams {
    /// Brunt closed all its sockets; the datagrams in flight reach their end.
    fn drop(&mut self) {
        self.network.close_all();
        self.network.pass(u64::MAX);
        let reference = self.network.reference_counters();
        let mut counts = self.network.counts;
        if let Some(counters) = &reference {
            counts.connections_accepted = counters.connections_accepted;
        }
        *self.counts.borrow_mut() = counts;
        *self.reference.borrow_mut() = reference;
    }
}

#[cfg(test)]
mod tests;
