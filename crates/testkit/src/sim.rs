//! The backend of one simulated worker.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::sync::Arc;

use brunt_io::backend::{
    Backend, ClientBackend, Event, OutgoingOf, PayloadId, Payloads, Peer, ReceivedOf, SendCall,
    Slot,
};
use brunt_io::receive_stamps::SendCalls;
use brunt_io::tcp_info::TcpInfo;
use brunt_server::Counters;

use crate::cpu::Cpu;
use crate::datagrams::network::Network;
use crate::handle::SimHandle;
use crate::ledger::Ledger;
use crate::outside::Outside;
use crate::settings::SimSettings;
use crate::world::World;

/// A worker whose connections are byte streams.
pub type Sim = SimWorker<World>;
/// A worker whose connections are datagram sockets.
pub type SimDatagrams = SimWorker<Network>;

/// One worker's clock, with the simulated network and server. A client's side only: there is nobody
/// who could be accepted.
#[derive(Debug)]
pub struct SimWorker<O: Outside> {
    cpu: Cpu,
    settings: SimSettings,
    outside: O,
    payloads: Payloads,
    send_calls: SendCalls,
    reference: Rc<RefCell<Vec<Counters>>>,
    ledger: Rc<RefCell<Ledger>>,
}

impl<O: Outside> SimWorker<O> {
    /// A worker in `outside` that leaves this behind.
    pub(crate) fn new(settings: &SimSettings, outside: O, handle: &SimHandle) -> Self {
        Self {
            cpu: handle.cpu(settings.host),
            settings: settings.clone(),
            outside,
            payloads: Payloads::default(),
            send_calls: SendCalls::default(),
            reference: Rc::clone(&handle.reference),
            ledger: Rc::clone(&handle.ledger),
        }
    }
}

impl<O: Outside> Backend for SimWorker<O> {
    type Transport = O::Transport;

    fn now_ns(&self) -> u64 {
        self.cpu.run(self.settings.costs.clock_ns)
    }

    fn add_payload(&mut self, bytes: Arc<[u8]>) -> PayloadId {
        self.payloads.add(bytes)
    }

    fn send(&mut self, slot: Slot, outgoing: OutgoingOf<Self>) {
        let from_ns = self.cpu.now_ns();
        let to_ns = self.cpu.run(self.settings.costs.send_ns);
        self.send_calls.note(slot, SendCall { from_ns, to_ns });
        self.outside.send(to_ns, slot, &outgoing, &self.payloads);
        self.payloads.recycle::<O::Transport>(outgoing);
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.payloads.take_buffer()
    }

    fn close(&mut self, slot: Slot) {
        let now_ns = self.cpu.run(self.settings.costs.open_ns);
        self.outside.close(now_ns, slot);
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        let from_ns = self.cpu.run(self.settings.costs.event_ns);
        let until_ns = until_ns.unwrap_or(u64::MAX).max(from_ns);
        let outside = &mut self.outside;
        outside.pass(from_ns);
        let mut now_ns = from_ns;
        while !outside.has_notices() {
            let next_ns = outside.agenda().next_ns();
            now_ns = next_ns.map_or(until_ns, |next_ns| next_ns.min(until_ns));
            if now_ns == u64::MAX {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the simulation waits for ever: nothing more will happen in it",
                ));
            }
            if next_ns.is_none_or(|next_ns| next_ns > until_ns) {
                break;
            }
            outside.pass(now_ns);
        }
        if let Some(late) = self.settings.late_wake_ups
            && now_ns > from_ns
            && outside.chance(late.probability)
        {
            outside.counts().late_wake_ups += 1;
            now_ns += late.delay_ns;
        }
        let now_ns = self.cpu.wake(now_ns);
        outside.pass(now_ns);
        Ok(())
    }

    fn next_event(&mut self) -> Option<Event> {
        let event = self
            .outside
            .next_event(self.cpu.now_ns(), &self.send_calls)?;
        self.cpu.run(self.settings.costs.event_ns);
        Some(event)
    }

    #[inline]
    fn received(&self) -> ReceivedOf<'_, Self> {
        self.outside.received()
    }
}

impl<O: Outside> ClientBackend for SimWorker<O> {
    fn set_stamps(&mut self, every: Option<NonZeroU32>) {
        self.send_calls.set_every(every);
    }

    fn open(&mut self, slot: Slot, _peer: &Peer, _source: Option<SocketAddr>) -> io::Result<()> {
        let now_ns = self.cpu.run(self.settings.costs.open_ns);
        if self.outside.chance(self.settings.server.faults.no_socket) {
            self.outside.counts().connections_impossible += 1;
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        self.outside.open(now_ns, slot);
        self.send_calls.opened(slot);
        Ok(())
    }

    fn discard(&mut self, slot: Slot, bytes: u64) {
        self.outside.discard(slot, bytes);
    }

    fn finish(&mut self, slot: Slot) -> bool {
        self.outside.finish(self.cpu.now_ns(), slot)
    }

    fn received_stamp_ns(&self) -> Option<u64> {
        self.outside.received_stamp_ns()
    }

    fn send_call(&self, slot: Slot) -> Option<SendCall> {
        self.send_calls.latest(slot)
    }

    fn tcp_info(&self, slot: Slot) -> Option<TcpInfo> {
        self.outside.tcp_info(self.cpu.now_ns(), slot)
    }
}

impl<O: Outside> Drop for SimWorker<O> {
    fn drop(&mut self) {
        let now_ns = self.cpu.now_ns();
        self.ledger.borrow_mut().end_by(now_ns);
        self.reference
            .borrow_mut()
            .extend(self.outside.leave(now_ns));
    }
}
