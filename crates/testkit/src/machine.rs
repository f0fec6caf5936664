//! The simulated machine as a whole: what all workers speak, one simulation for each, and their
//! accounts.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;

use brunt_io::virtual_machine::VirtualMachine;
use brunt_load::Spoken as PlannedProtocol;
use brunt_proto::tls::{
    ALPN_HTTP2, ALPN_HTTP3, ClientSide, ConfigError, Negotiated, ServerSide, TlsError,
};
use brunt_record::{Evidence, ThreadUse, Window};
use brunt_server::Counters;

use crate::counts::SimCounts;
use crate::datagrams::backend::SimDatagrams;
use crate::evidence::evidence;
use crate::handle::SimHandle;
use crate::ledger::Ledger;
use crate::served_protocol::ServedProtocol;
use crate::settings::SimSettings;
use crate::sim::Sim;
use crate::tls::{self, Spoken};

/// A simulated machine. What happens on it follows from its settings and from what workers do.
#[derive(Debug)]
pub struct SimMachine {
    settings: SimSettings,
    spoken: Spoken,
    /// Present where HTTP/3 is spoken.
    http3: Option<ServerSide>,
    /// By their numbers.
    workers: BTreeMap<u32, SimHandle>,
    /// Those in whose place are others.
    former: Vec<SimHandle>,
}

impl SimMachine {
    /// A machine whose servers speak HTTP/1.1 in clear text until something else is negotiated.
    pub fn new(settings: SimSettings) -> Self {
        Self {
            settings,
            spoken: Spoken::default(),
            http3: None,
            workers: BTreeMap::new(),
            former: Vec::new(),
        }
    }

    /// What network and servers of all workers counted, as far as these are gone.
    pub fn counts(&self) -> SimCounts {
        let mut counts = SimCounts::default();
        for worker in self.workers.values().chain(&self.former) {
            counts.merge(&worker.counts());
        }
        counts
    }

    /// What the reference server of each worker counted, as far as these are gone.
    pub fn reference_counters(&self) -> impl Iterator<Item = Counters> {
        let workers = self.workers.values().chain(&self.former);
        workers.filter_map(SimHandle::reference_counters)
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
            self.spoken = Spoken::clear(served_protocol);
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
                self.spoken = Spoken::secure(served_protocol).map_err(broken)?;
                self.spoken.server_side()
            }
        };
        side.map(|side| tls::negotiate(client, &side)).transpose()
    }

    fn streams_max(&self) -> Option<u32> {
        match self.settings.reference {
            Some(http2) => Some(http2.streams_max.get()),
            None => self.settings.server.http2.streams_max.map(NonZeroU32::get),
        }
    }

    fn interrupt_ns(&self) -> Option<u64> {
        self.settings.interrupt_ns
    }

    fn start_worker(&mut self, worker: u32, begin_ns: u64) -> Sim {
        let (sim, handle) = Sim::speaking(&self.settings, &self.spoken, worker, begin_ns);
        self.former.extend(self.workers.insert(worker, handle));
        sim
    }

    fn start_datagram_worker(&mut self, worker: u32, begin_ns: u64) -> SimDatagrams {
        let (settings, http3) = (&self.settings, self.http3.as_ref());
        let (sim, handle) = SimDatagrams::speaking(settings, http3, worker, begin_ns);
        self.former.extend(self.workers.insert(worker, handle));
        sim
    }

    fn now_ns(&self, worker: u32) -> u64 {
        self.workers[&worker].now_ns()
    }

    fn observe(&mut self, worker: u32, window: Range<u64>) {
        self.workers[&worker].observe(Window {
            start_ns: window.start,
            end_ns: window.end,
        });
    }

    fn end_window(&mut self, worker: u32) {
        self.workers[&worker].end_window();
    }

    fn thread_use(&self, worker: u32) -> Option<ThreadUse> {
        self.settings
            .host
            .map(|_| self.workers[&worker].ledger().thread_use())
    }

    fn cpu_ns(&self, worker: u32) -> u64 {
        self.workers[&worker].ledger().life_cpu_ns()
    }

    fn evidence(&self) -> Evidence {
        let ledgers: Vec<Ledger> = self.workers.values().map(SimHandle::ledger).collect();
        evidence(&self.settings, &ledgers)
    }
}
