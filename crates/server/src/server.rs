//! Starting and stopping the server: sockets, backends, threads.

use std::fmt;
use std::io;
use std::num::NonZeroU32;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::JoinHandle;

use brunt_io::backend::ServerBackend;
use brunt_io::cpu::bind_thread;
use brunt_io::epoll::Epoll;
use brunt_io::listener::PolledListener;
use brunt_io::tls::Tls;
use brunt_io::uring::Uring;
use brunt_io::{clock, threads};
use brunt_proto::quic::{ServerTransport, TransportError};
use rustls::pki_types::CertificateDer;

use crate::counters::{Counters, Shared};
use crate::http2::Http2Options;
use crate::http3::worker::{Http3Worker, transport};
use crate::listeners::{self, ListenAddress, Listeners, SocketFile};
use crate::tcp::{ParseTcpError, TcpOptions};
use crate::tls::{self, IdentityError, Secure, TlsOptions};
use crate::worker::{Worker, WorkerSettings};

/// A kernel interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// io_uring.
    Uring,
    /// epoll.
    Epoll,
}

impl fmt::Display for BackendKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Uring => "io_uring",
            Self::Epoll => "epoll",
        })
    }
}

/// What is to be decided before the server starts.
#[derive(Debug)]
pub struct ServeOptions {
    /// Where to listen.
    pub address: ListenAddress,
    /// Threads that serve, each on its own.
    pub workers: NonZeroU32,
    /// CPUs that the threads are bound to, by their number, as far as there are any; those without
    /// one run where the scheduler puts them.
    pub cpus: Vec<u32>,
    /// Which kernel interface to use; absent: io_uring where the kernel allows it, else epoll.
    pub backend: Option<BackendKind>,
    /// The most connections at a time, in the whole process; further ones wait to be accepted.
    /// Dealt out evenly to the workers, at least one each.
    pub connections_max: u32,
    /// Whether workers poll instead of sleeping while they have connections: replies that wait for
    /// an instant are sent at it to about a microsecond, and each worker uses a whole CPU.
    pub spin: bool,
    /// How long a connection may stay open without progress of its client or of an answer,
    /// nanoseconds: idle, with half a head, or with an answer that nobody reads. Every byte of a
    /// body or a message is progress. An answer that is to come at a later instant does not count
    /// as idle. Over HTTP/3, how long no packet comes. Absent: for good.
    pub idle_timeout_ns: Option<u64>,
    /// Input that may wait in memory, all connections together, bytes: half heads, and what comes
    /// behind a request that is not answered yet. Half of it is shared evenly. A connection that
    /// needs more may take a 16th of what is left of the other half, and 1 MiB at most. The server
    /// closes a connection that wants more, and counts that.
    pub input_bytes_max: u64,
    /// Output that may be in memory, all connections together, bytes: what is being sent and, in
    /// HTTP/2, what is to follow it and what is known of streams that are not answered yet. It is
    /// dealt out as the input is. A connection for which little is left sends less of a long answer
    /// at a time. The server closes one that wants more, and counts that. Long bodies of HTTP/1.1
    /// and messages in clear text are sent from memory that all of them share, and take none.
    pub output_bytes_max: u64,
    /// How to speak TLS; absent: clear text.
    pub tls: Option<TlsOptions>,
    /// How to speak HTTP/2, which a client begins by its preface, in clear text, too. The same
    /// port speaks HTTP/1.1. What it says of streams and requests is true of HTTP/3, too.
    pub http2: Http2Options,
    /// Whether to speak HTTP/3 beside them, with as many workers of its own: over UDP, on the same
    /// port. Needs TLS, and an address of TCP.
    pub http3: bool,
    /// What to serve on a second address, without HTTP. `workers` and `cpus` are of that address
    /// then, and HTTP has one worker beside them; the other options are of both.
    pub tcp: Option<TcpOptions>,
}

impl ServeOptions {
    /// The default of `connections_max`.
    pub const CONNECTIONS_MAX: u32 = 100_000;
    /// The default of `input_bytes_max`: 1 GiB.
    pub const INPUT_BYTES_MAX: u64 = 1 << 30;
    /// The default of `output_bytes_max`: 1 GiB.
    pub const OUTPUT_BYTES_MAX: u64 = 1 << 30;

    /// Options of a server with one worker at `address`, the rest by default.
    pub fn new(address: ListenAddress) -> Self {
        Self {
            address,
            workers: NonZeroU32::MIN,
            cpus: Vec::new(),
            backend: None,
            connections_max: Self::CONNECTIONS_MAX,
            spin: false,
            idle_timeout_ns: None,
            input_bytes_max: Self::INPUT_BYTES_MAX,
            output_bytes_max: Self::OUTPUT_BYTES_MAX,
            tls: None,
            http2: Http2Options::default(),
            http3: false,
            tcp: None,
        }
    }
}

/// Why the server could not be started, or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listening socket could not be made.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address that was asked for.
        address: ListenAddress,
        /// What the kernel said.
        source: io::Error,
    },
    /// What is to be served over raw TCP does not fit together.
    #[error(transparent)]
    Tcp(#[from] ParseTcpError),
    /// TLS cannot be spoken with what was given.
    #[error("cannot speak TLS")]
    Tls(#[source] IdentityError),
    /// HTTP/3 has no TLS, or no port.
    #[error("HTTP/3 needs TLS, and an address with a port")]
    Http3Alone,
    /// HTTP/3 cannot be spoken with this TLS.
    #[error("cannot speak HTTP/3")]
    Http3(#[source] TransportError),
    /// The chosen backend does not work here.
    #[error("cannot use {backend}")]
    Backend {
        /// The backend.
        backend: BackendKind,
        /// What the kernel said.
        source: io::Error,
    },
    /// No thread could be started.
    #[error("cannot start a worker")]
    Thread(#[source] io::Error),
    /// A worker's backend failed while it served.
    #[error("a worker failed")]
    Worker(#[source] io::Error),
    /// A worker panicked.
    #[error("a worker panicked")]
    Panicked,
}

/// Starts the server; when it returns, connections are accepted.
///
/// # Errors
///
/// The address cannot be listened on, the certificate or its key cannot be used, the backend does
/// not work, or no thread can be started.
/// Nothing is left running then.
pub fn start(options: &ServeOptions) -> Result<Running, ServeError> {
    let tcp = options.tcp.as_ref();
    tcp.map_or(Ok(()), TcpOptions::check)?;
    let tcp_workers = tcp.map_or(0, |_| options.workers.get());
    let http_workers = tcp.map_or(options.workers.get(), |_| 1);
    let has_port = matches!(options.address, ListenAddress::Tcp(_));
    if options.http3 && !(has_port && options.tls.is_some()) {
        return Err(ServeError::Http3Alone);
    }
    let http = listen(&options.address, http_workers, options.http3)?;
    let raw = tcp.map(|tcp| listen(&tcp.address, tcp_workers, false));
    let raw = raw.transpose()?;
    let listening = || std::iter::once(&http).chain(&raw);
    let ip = listening().find_map(|listeners| match &listeners.address {
        ListenAddress::Tcp(address) => Some(address.ip()),
        ListenAddress::Unix(_) => None,
    });
    let secure = options.tls.as_ref().map(|tls| Secure::new(tls, ip));
    let secure = secure.transpose().map_err(ServeError::Tls)?;
    let workers = http_workers as usize + http.datagrams.len();
    let certificates = secure.as_ref().map(|secure| secure.certificates.clone());
    let mut running = Running {
        _socket_files: listening().filter_map(Listeners::file).collect(),
        address: http.address.clone(),
        tcp_address: raw.as_ref().map(|listeners| listeners.address.clone()),
        certificates: certificates.unwrap_or_default(),
        backend: BackendKind::Epoll,
        shared: Arc::new(Shared::new(workers).with_tcp(tcp_workers as usize)),
        threads: Vec::new(),
    };
    let settings = |workers: u32| {
        let part = |bytes: u64| usize::try_from(bytes / u64::from(workers)).unwrap_or(usize::MAX);
        WorkerSettings {
            connections_max: (options.connections_max / workers).max(1),
            spin: options.spin,
            idle_timeout_ns: options.idle_timeout_ns,
            input_bytes_max: part(options.input_bytes_max),
            output_bytes_max: part(options.output_bytes_max),
            is_tls: secure.is_some(),
            http2: options.http2,
        }
    };
    let mut places = Vec::new();
    let mut add = |service: Service, sockets: Vec<Arc<OwnedFd>>, first: usize, cpus: &[u32]| {
        let settings = settings(sockets.len() as u32);
        for (index, socket) in sockets.into_iter().enumerate() {
            places.push(WorkerSetup {
                index: first + index,
                cpu: cpus.get(index).copied(),
                socket,
                settings,
                service: service.clone(),
                shared: Arc::clone(&running.shared),
                secure: secure.clone(),
            });
        }
    };
    let mut http_cpus = &options.cpus[..];
    if let (Some(tcp), Some(raw)) = (tcp, raw) {
        // Where raw TCP is served, the CPUs are for that.
        http_cpus = &[];
        add(Service::Tcp(tcp.clone()), raw.sockets, 0, &options.cpus);
    }
    add(Service::Http, http.sockets, 0, http_cpus);
    if let Some(secure) = secure.as_ref().filter(|_| options.http3) {
        let transport = transport(&secure.http3, &settings(http_workers), clock::origin());
        let service = Service::Http3(transport.map_err(ServeError::Http3)?);
        // Their numbers follow those of TCP.
        add(service, http.datagrams, http_workers as usize, http_cpus);
    }
    let mut kind = options.backend;
    for place in places {
        let (backend, thread) = start_worker(place, kind)?;
        running.threads.push(thread);
        running.backend = backend;
        // The first worker decides for all.
        kind = Some(backend);
    }
    Ok(running)
}

/// A server that runs. It stops when this is dropped.
#[derive(Debug)]
pub struct Running {
    address: ListenAddress,
    tcp_address: Option<ListenAddress>,
    certificates: Vec<CertificateDer<'static>>,
    backend: BackendKind,
    shared: Arc<Shared>,
    threads: Vec<Thread>,
    _socket_files: Vec<SocketFile>,
}

impl Running {
    /// Where the server listens, with the port that the kernel chose.
    pub fn address(&self) -> &ListenAddress {
        &self.address
    }

    /// Where the server serves raw TCP, with the port that the kernel chose; absent where it does
    /// not.
    pub fn tcp_address(&self) -> Option<&ListenAddress> {
        self.tcp_address.as_ref()
    }

    /// The chain of certificates that clients see, own certificate first; empty in clear text.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.certificates
    }

    /// The chain of certificates that clients see, in PEM; empty in clear text. A client needs to
    /// trust nothing else if the certificate was made here.
    pub fn certificates_pem(&self) -> String {
        tls::to_pem(&self.certificates)
    }

    /// The kernel interface in use.
    pub fn backend(&self) -> BackendKind {
        self.backend
    }

    /// Exact totals as of now.
    pub fn counters(&self) -> Counters {
        self.shared.totals()
    }

    /// Closes everything and gives the final totals, within about 100 ms.
    ///
    /// # Errors
    ///
    /// A worker failed while it served.
    pub fn stop(mut self) -> Result<Counters, ServeError> {
        self.join()?;
        Ok(self.shared.totals())
    }

    fn join(&mut self) -> Result<(), ServeError> {
        self.shared.stop.store(true, Ordering::Relaxed);
        let mut outcome = Ok(());
        for thread in self.threads.drain(..) {
            let result = match thread.join() {
                Ok(result) => result.map_err(ServeError::Worker),
                Err(_) => Err(ServeError::Panicked),
            };
            outcome = outcome.and(result);
        }
        outcome
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Whoever drops it does not ask how it ended.
        let _ = self.join();
    }
}

/// Where a worker belongs, and what it needs.
struct WorkerSetup {
    shared: Arc<Shared>,
    index: usize,
    cpu: Option<u32>,
    socket: Arc<OwnedFd>,
    settings: WorkerSettings,
    service: Service,
    secure: Option<Secure>,
}

/// What a worker serves.
#[derive(Clone)]
enum Service {
    /// HTTP over TCP, or a Unix socket.
    Http,
    Tcp(TcpOptions),
    Http3(ServerTransport),
}

impl Service {
    /// Its name in those of threads.
    fn name(&self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Tcp(_) => "tcp",
            Self::Http3(_) => "http3",
        }
    }
}

/// What came of serving: the outer error is that the backend could not be set up, the inner one
/// that it failed later.
type Served = io::Result<io::Result<()>>;

impl WorkerSetup {
    /// Serves on a backend of this kind.
    fn serve(&self, kind: BackendKind, ready: &dyn Fn() -> bool) -> Served {
        match (kind, &self.service) {
            (_, Service::Http3(transport)) => {
                let listener = PolledListener::new(Arc::clone(&self.socket))?;
                let (shared, index) = (&self.shared, self.index);
                let mut worker =
                    Http3Worker::new(listener, transport, shared, index, self.settings);
                begin(ready, || worker.run())
            }
            (BackendKind::Uring, _) => {
                self.serve_streams(Uring::new(self.settings.connections_max)?, ready)
            }
            (BackendKind::Epoll, _) => self.serve_streams(Epoll::new()?, ready),
        }
    }

    /// Serves on a backend, with TLS around it where there is a certificate.
    fn serve_streams<B: ServerBackend>(&self, backend: B, ready: &dyn Fn() -> bool) -> Served {
        match &self.secure {
            None => self.serve_on(backend, ready),
            Some(secure) => self.serve_on(Tls::server(backend, secure.side.clone()), ready),
        }
    }

    fn serve_on<B: ServerBackend>(&self, mut backend: B, ready: &dyn Fn() -> bool) -> Served {
        backend.listen(self.socket.as_fd())?;
        let (shared, index, settings) = (&self.shared, self.index, self.settings);
        if let Service::Tcp(tcp) = &self.service {
            let mut worker = Worker::of_tcp(backend, tcp, shared, index, settings);
            return begin(ready, || worker.run());
        }
        let mut worker = Worker::of_http(backend, shared, index, settings);
        begin(ready, || worker.run())
    }
}

/// Runs a worker whose backend is set up, unless the server is not started after all.
fn begin(ready: &dyn Fn() -> bool, run: impl FnOnce() -> io::Result<()>) -> Served {
    if !ready() {
        return Ok(Ok(()));
    }
    threads::precise_timers();
    Ok(run())
}

type Thread = JoinHandle<io::Result<()>>;

/// Starts a worker and waits until its backend is set up: only the worker's own thread may do it.
/// Without a kind, it is io_uring where the kernel allows it, else epoll.
fn start_worker(
    place: WorkerSetup,
    kind: Option<BackendKind>,
) -> Result<(BackendKind, Thread), ServeError> {
    let (ready, started) = mpsc::channel();
    let name = format!("serve-{}-{}", place.service.name(), place.index);
    let body = move || {
        if let Some(cpu) = place.cpu {
            // Where it may not be bound, the scheduler chooses.
            let _ = bind_thread(cpu);
        }
        let serve = |kind| place.serve(kind, &|| ready.send(Ok(kind)).is_ok());
        let outcome = match kind {
            Some(kind) => serve(kind),
            None => serve(BackendKind::Uring).or_else(|_| serve(BackendKind::Epoll)),
        };
        outcome.unwrap_or_else(|source| {
            let backend = kind.unwrap_or(BackendKind::Epoll);
            // The receiver is gone only when `start` has given up.
            let _ = ready.send(Err(ServeError::Backend { backend, source }));
            Ok(())
        })
    };
    let thread = threads::spawn(&name, body).map_err(ServeError::Thread)?;
    let kind = started.recv().unwrap_or(Err(ServeError::Panicked))?;
    Ok((kind, thread))
}

fn listen(address: &ListenAddress, workers: u32, with_udp: bool) -> Result<Listeners, ServeError> {
    listeners::listen(address, workers, with_udp).map_err(|source| ServeError::Listen {
        address: address.clone(),
        source,
    })
}
