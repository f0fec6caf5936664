//! What is outside of a simulated worker: it goes on while the worker works and waits.

use std::cell::RefMut;

use brunt_io::backend::{Event, Payloads, Slot};
use brunt_io::receive_stamps::SendCalls;
use brunt_io::tcp_info::TcpInfo;
use brunt_io::timers::Timers;
use brunt_io::transport::Transport;
use brunt_server::Counters;
use rand::Rng;
use rand_pcg::Pcg64;

use crate::counts::SimCounts;

/// A network of connections, with the server's side of them.
pub trait Outside {
    /// What connections are.
    type Transport: Transport;
    /// Something that happens at its instant.
    type Scheduled;

    /// What is going to happen.
    fn agenda(&mut self) -> &mut Timers<Self::Scheduled>;

    /// Does what an event brings about.
    fn handle(&mut self, at_ns: u64, event: Self::Scheduled);

    /// Where random numbers come from.
    fn random(&mut self) -> &mut Pcg64;

    /// What was counted.
    fn counts(&self) -> RefMut<'_, SimCounts>;

    /// Whether there is something that the worker is to look at.
    fn has_notices(&self) -> bool;

    /// Begins a connection.
    fn open(&mut self, now_ns: u64, slot: Slot);

    /// Sends on one.
    fn send(
        &mut self,
        now_ns: u64,
        slot: Slot,
        outgoing: &<Self::Transport as Transport>::Outgoing,
        payloads: &Payloads,
    );

    /// Ends one.
    fn close(&mut self, now_ns: u64, slot: Slot);

    /// The next event, of those that there are to look at.
    fn next_event(&mut self, now_ns: u64, send_calls: &SendCalls) -> Option<Event>;

    /// What came with the latest event.
    fn received(&self) -> <Self::Transport as Transport>::Received<'_>;

    /// When that came, where stamps are taken.
    fn received_stamp_ns(&self) -> Option<u64>;

    /// Does not have the next bytes of a connection looked at.
    fn discard(&mut self, _slot: Slot, _bytes: u64) {}

    /// Sends no more on a stream. False where connections carry none.
    fn finish(&mut self, _now_ns: u64, _slot: Slot) -> bool {
        false
    }

    /// What the kernel would say of a connection.
    fn tcp_info(&self, _now_ns: u64, _slot: Slot) -> Option<TcpInfo> {
        None
    }

    /// Brunt is gone, and its connections with it; what is in flight comes to its end. Gives what
    /// the reference server counted, where there is one.
    fn leave(&mut self, now_ns: u64) -> Option<Counters>;

    /// Does all that happens up to `until_ns`.
    fn pass(&mut self, until_ns: u64) {
        while let Some(at_ns) = self.agenda().next_ns().filter(|&at_ns| at_ns <= until_ns) {
            if let Some(event) = self.agenda().pop_due(at_ns) {
                self.handle(at_ns, event);
            }
        }
    }

    /// Whether something of this probability happens.
    fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.random().random::<f64>() < probability
    }
}
