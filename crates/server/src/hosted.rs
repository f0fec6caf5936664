//! A worker on a backend of the caller's, who moves it on: for a simulation.

use std::fmt;
use std::io;
use std::sync::Arc;

use brunt_io::backend::ServerBackend;
use brunt_io::clock;
use brunt_io::listener::DatagramListener;
use brunt_io::tls::Tls;
use brunt_proto::quic::TransportError;
use brunt_proto::tls::ServerSide;

use crate::counters::{Counters, Shared};
use crate::http2::Http2Options;
use crate::http3::worker::{Http3Worker, transport};
use crate::server::ServeOptions;
use crate::worker::{Worker, WorkerSettings};

/// Does what there is to do at this instant, and gives when there will be more.
type Settle = Box<dyn FnMut() -> io::Result<Option<u64>>>;

/// A server with one worker, which does nothing by itself.
pub struct Hosted {
    shared: Arc<Shared>,
    settle: Settle,
}

impl Hosted {
    /// A server of HTTP and WebSocket on `backend`, whose waits must return at once; it speaks TLS
    /// where `tls` is given.
    pub fn new<B: ServerBackend + 'static>(
        backend: B,
        http2: Http2Options,
        tls: Option<ServerSide>,
    ) -> Self {
        let settings = settings(http2, tls.is_some());
        match tls {
            None => Self::of_http(backend, settings),
            Some(side) => Self::of_http(Tls::server(backend, side), settings),
        }
    }

    fn of_http<B: ServerBackend + 'static>(backend: B, settings: WorkerSettings) -> Self {
        let shared = Arc::new(Shared::new(1));
        let mut worker = Worker::of_http(backend, &shared, 0, settings);
        let settle = Box::new(move || worker.settle());
        Self { shared, settle }
    }

    /// A server of HTTP/3 on `listener`, whose waits must return at once.
    ///
    /// # Errors
    ///
    /// `tls` is not set up for QUIC.
    pub fn of_datagrams<L: DatagramListener + 'static>(
        listener: L,
        http2: Http2Options,
        tls: &ServerSide,
    ) -> Result<Self, TransportError> {
        let shared = Arc::new(Shared::new(1));
        let settings = settings(http2, true);
        let transport = transport(tls, &settings, clock::origin())?;
        let mut worker = Http3Worker::new(listener, &transport, &shared, 0, settings);
        let settle = Box::new(move || worker.settle());
        Ok(Self { shared, settle })
    }

    /// Does all that can be done at this instant. Gives when there is more to do, if nothing comes
    /// before.
    ///
    /// # Errors
    ///
    /// Only what leaves the backend unusable.
    pub fn settle(&mut self) -> io::Result<Option<u64>> {
        (self.settle)()
    }

    /// What the server counted until now.
    pub fn counters(&self) -> Counters {
        self.shared.totals()
    }
}

impl fmt::Debug for Hosted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Hosted").finish_non_exhaustive()
    }
}

fn settings(http2: Http2Options, is_tls: bool) -> WorkerSettings {
    WorkerSettings {
        connections_max: ServeOptions::CONNECTIONS_MAX,
        spin: false,
        is_tls,
        idle_timeout_ns: None,
        input_bytes_max: ServeOptions::INPUT_BYTES_MAX as usize,
        output_bytes_max: ServeOptions::OUTPUT_BYTES_MAX as usize,
        http2,
    }
}
