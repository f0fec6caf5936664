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
use crate::directed::{Asked, Serving};
use crate::http2::Http2Options;
use crate::http3::worker::{Http3Worker, transport};
use crate::route::Route;
use crate::server::Options;
use crate::worker::{Settings, Worker};

impl<L: DatagramListener> Serving for Http3Worker<L> {
    fn settle(&mut self) -> io::Result<Option<u64>> {
        Self::settle(self)
    }
}

/// A server with one worker, which does nothing by itself.
pub struct Hosted {
    shared: Arc<Shared>,
    serving: Box<dyn Serving>,
}

impl Hosted {
    /// A server of HTTP and WebSocket on `backend`, whose waits must return at once; it speaks TLS
    /// where `tls` is given.
    pub fn new<B: ServerBackend + 'static>(
        backend: B,
        http2: Http2Options,
        tls: Option<ServerSide>,
    ) -> Self {
        let shared = Arc::new(Shared::new(1));
        let settings = settings(http2, tls.is_some());
        let serving: Box<dyn Serving> = match tls {
            None => Box::new(Worker::of_http(backend, &shared, 0, settings)),
            Some(side) => {
                let backend = Tls::server(backend, side);
                Box::new(Worker::of_http(backend, &shared, 0, settings))
            }
        };
        Self { shared, serving }
    }

    /// A server of HTTP/2 on `backend`, whose waits must return at once. Whatever the path of a
    /// request says, it waits for [`Self::answer`].
    pub fn directed<B: ServerBackend + 'static>(backend: B, http2: Http2Options) -> Self {
        let shared = Arc::new(Shared::new(1));
        let settings = Settings {
            is_directed: true,
            ..settings(http2, false)
        };
        let serving = Box::new(Worker::of_http(backend, &shared, 0, settings));
        Self { shared, serving }
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
        let serving = Box::new(Http3Worker::new(listener, &transport, &shared, 0, settings));
        Ok(Self { shared, serving })
    }

    /// Does all that can be done at this instant. Gives when there is more to do, if nothing comes
    /// before.
    ///
    /// # Errors
    ///
    /// Only what leaves the backend unusable.
    pub fn settle(&mut self) -> io::Result<Option<u64>> {
        self.serving.settle()
    }

    /// The requests that came since the last time and wait for [`Self::answer`].
    pub fn take_asked(&mut self) -> Vec<Asked> {
        self.serving.take_asked()
    }

    /// Answers a request as if it had asked for `path`, one of the routes. False where it does not
    /// wait any more: its client gave it up, or the connection is over.
    pub fn answer(&mut self, asked: Asked, path: &str) -> bool {
        self.serving.answer(asked, Route::of(path))
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

fn settings(http2: Http2Options, is_tls: bool) -> Settings {
    Settings {
        connections_max: Options::CONNECTIONS_MAX,
        spin: false,
        is_tls,
        idle_timeout_ns: None,
        input_bytes_max: Options::INPUT_BYTES_MAX as usize,
        output_bytes_max: Options::OUTPUT_BYTES_MAX as usize,
        http2,
        is_directed: false,
    }
}
