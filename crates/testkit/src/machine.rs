//! The simulated machine as a whole: what all workers speak, one simulation for each, and their
//! accounts.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use brunt_io::virtual_machine::VirtualMachine;
use brunt_load::ProtocolSpec as PlannedProtocol;
use brunt_proto::tls::{
    ALPN_HTTP2, ALPN_HTTP3, ClientSide, ConfigError, Negotiated, ServerSide, TlsError,
};
use brunt_record::{Evidence, ThreadUse, Window};
use brunt_server::Counters;

use crate::counts::SimCounts;
use crate::datagrams::network::Network;
use crate::evidence::evidence;
use crate::handle::SimHandle;
use crate::ledger::Ledger;
use crate::served_protocol::ServedProtocol;
use crate::settings::SimSettings;
use crate::sim::{Sim, SimDatagrams};
use crate::tls::{self, Wire};
use crate::world::World;

/// A simulated machine. What happens on it follows from its settings and from what workers do.
#[derive(Debug)]
pub struct SimMachine {
    settings: SimSettings,
    wire: Wire,
    /// Present where HTTP/3 is served.
    http3: Option<ServerSide>,
    /// By their numbers.
    workers: BTreeMap<u32, SimHandle>,
    counts: Rc<RefCell<SimCounts>>,
    reference: Rc<RefCell<Vec<Counters>>>,
}

impl SimMachine {
    /// A machine whose servers speak HTTP/1.1 in clear text until something else is negotiated.
    pub fn new(settings: SimSettings) -> Self {
        Self {
            settings,
            wire: Wire::default(),
            http3: None,
            workers: BTreeMap::new(),
            counts: Rc::default(),
            reference: Rc::default(),
        }
    }

    /// What network and servers of all workers counted, as far as these are gone.
    pub fn counts(&self) -> SimCounts {
        *self.counts.borrow()
    }

    /// What the reference server of each worker counted, as far as these are gone.
    pub fn reference_counters(&self) -> Vec<Counters> {
        self.reference.borrow().clone()
    }

    /// What remains of a new worker.
    fn begin(&mut self, worker: u32, begin_ns: u64) -> SimHandle {
        let handle = SimHandle {
            counts: Rc::clone(&self.counts),
            reference: Rc::clone(&self.reference),
            now_ns: Rc::new(Cell::new(begin_ns)),
            ..SimHandle::default()
        };
        self.workers.insert(worker, handle.clone());
        handle
    }
}

impl VirtualMachine for SimMachine {
    type Streams = Sim;
    type Datagrams = SimDatagrams;
    type ThreadUse = ThreadUse;
    type Evidence = Evidence;

    fn negotiate(
        &mut self,
        planned: &PlannedProtocol,
        alpn: Option<&'static [u8]>,
        client: Option<&ClientSide>,
    ) -> Result<Option<Negotiated>, TlsError> {
        let served_protocol = match (planned, alpn) {
            (PlannedProtocol::Http(_), Some(ALPN_HTTP2)) => ServedProtocol::Http2,
            (PlannedProtocol::Http(_), _) => ServedProtocol::Http1,
            (PlannedProtocol::WebSocket(_), _) => ServedProtocol::WebSocket,
            (PlannedProtocol::Streams(_), _) => ServedProtocol::Streams,
            _ => ServedProtocol::Messages,
        };
        self.http3 = None;
        let Some(client) = client else {
            let tls = None;
            self.wire = Wire {
                served_protocol,
                tls,
            };
            return Ok(None);
        };
        let broken = |error: ConfigError| TlsError::Broken(error.to_string());
        let side = match alpn {
            Some(ALPN_HTTP3) => {
                let side = tls::server_side(alpn).map_err(broken)?;
                self.http3 = Some(side.clone());
                Some(side)
            }
            _ => {
                self.wire = Wire::secure(served_protocol).map_err(broken)?;
                self.wire.tls.clone()
            }
        };
        side.map(|side| tls::negotiate(client, &side)).transpose()
    }

    fn streams_max(&self) -> Option<u32> {
        let http2 = self.settings.reference.unwrap_or_default();
        Some(http2.streams_max.get())
    }

    fn interrupt_ns(&self) -> Option<u64> {
        self.settings.interrupt_ns
    }

    fn start_worker(&mut self, worker: u32, begin_ns: u64) -> Sim {
        let handle = self.begin(worker, begin_ns);
        let world = World::new(&self.settings, &self.wire, worker, &handle);
        Sim::new(&self.settings, world, &handle)
    }

    fn start_datagram_worker(&mut self, worker: u32, begin_ns: u64) -> SimDatagrams {
        let handle = self.begin(worker, begin_ns);
        let network = Network::new(&self.settings, self.http3.as_ref(), worker, &handle);
        SimDatagrams::new(&self.settings, network, &handle)
    }

    fn now_ns(&self, worker: u32) -> u64 {
        self.workers[&worker].now_ns.get()
    }

    fn observe(&mut self, worker: u32, window: Range<u64>) {
        let window = Window {
            start_ns: window.start,
            end_ns: window.end,
        };
        self.workers[&worker].ledger.borrow_mut().set_window(window);
    }

    fn end_window(&mut self, worker: u32) {
        let ended_ns = self.now_ns(worker);
        let mut ledger = self.workers[&worker].ledger.borrow_mut();
        ledger.end_by(ended_ns);
    }

    fn thread_use(&self, worker: u32) -> Option<ThreadUse> {
        let ledger = self.workers[&worker].ledger.borrow();
        self.settings.host.map(|_| ledger.thread_use())
    }

    fn cpu_ns(&self, worker: u32) -> u64 {
        self.workers[&worker].ledger.borrow().life_cpu_ns
    }

    fn evidence(&self) -> Evidence {
        let ledgers = self
            .workers
            .values()
            .map(|worker| worker.ledger.borrow().clone());
        let ledgers: Vec<Ledger> = ledgers.collect();
        evidence(&self.settings, &ledgers)
    }
}
