//! From a plan to a run that can start: the name resolved, the target reachable, the protocol
//! negotiated, the backend chosen, the limits checked. Nothing here sends a request.

use std::io;
use std::net::ToSocketAddrs;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use brunt_io::backend::Peer;
use brunt_io::blocking::{Deadline, Link};
use brunt_io::clock;
use brunt_io::cpu::{Cpus, usable_cpus};
use brunt_io::socket::{self, SocketOptionError};
use brunt_io::tls_config::{self, TlsConfigError};
use brunt_io::uring::Uring;
use brunt_io::virtual_machine::VirtualMachine;
use brunt_load::{BackendChoice, Load, Part, Placement, Plan, Schedule, WithheldParts, Work};
use brunt_record::{Backend, LimitsChecked, Transport, counted};
use thiserror::Error;

use crate::limits::{self, Sources};
use crate::negotiate::{self, NegotiateError, Negotiated};
use crate::placement::{ARRIVALS_PER_WORKER_MAX, Placed};
use crate::protocol::{EncodeError, EncodedRequests};

/// Bytes that a worker's payload may have: offsets into it are 32 bits wide.
const PAYLOAD_BYTES_MAX: usize = 1 << 30;
/// Bytes of the copies of a request that may follow each other on a connection, beside one.
const COPIES_BYTES_MAX: usize = 64 << 20;

/// Why a run cannot start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// The host name has no address.
    #[error("cannot resolve `{host}`: {reason}; check the name, or give an address")]
    Resolve {
        /// As in the URL.
        host: String,
        /// The resolver's reason.
        reason: io::Error,
    },
    /// Nobody answers at the target.
    #[error(
        "cannot connect to {address}: {reason}; is the server running and the port right? \
         `brunt serve` is one to try with"
    )]
    Unreachable {
        /// The last address tried.
        address: String,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// The plan was stored without what may be secret.
    #[error(transparent)]
    Withheld(#[from] WithheldParts),
    /// TLS cannot be spoken as the plan wants it.
    #[error(transparent)]
    TlsConfig(#[from] TlsConfigError),
    /// The server does not speak what was asked for.
    #[error(transparent)]
    Negotiate(#[from] NegotiateError),
    /// The request cannot be encoded.
    #[error("the request cannot be sent")]
    Request(#[from] EncodeError),
    /// An option of the sockets cannot be had.
    #[error(transparent)]
    Sockets(#[from] SocketOptionError),
    /// This machine cannot run the plan so, as the text says with what to change.
    #[error("{0}")]
    Plan(String),
}

/// A run that can start.
#[derive(Clone, Debug)]
pub struct Prepared {
    pub(crate) plan: Plan,
    /// Where the servers are, the target first.
    pub(crate) peers: Arc<[Peer]>,
    pub(crate) sources: Sources,
    pub(crate) backend: Backend,
    pub(crate) backend_note: Option<String>,
    pub(crate) negotiated: Negotiated,
    pub(crate) requests: EncodedRequests,
    pub(crate) limits: LimitsChecked,
    pub(crate) cpus: Cpus,
    /// Where its workers are.
    pub(crate) placed: Placed,
    /// The numbers of the plan's workers that run in this process: all of them, as a rule.
    pub(crate) workers: Range<u32>,
}

impl Prepared {
    /// How many workers run in this process.
    pub fn worker_count(&self) -> u32 {
        self.workers.end - self.workers.start
    }

    /// What was prepared, for a round with this load.
    pub(crate) fn of_round(&self, load: &Load) -> Arc<Self> {
        let mut prepared = self.clone();
        prepared.plan.load = load.clone();
        prepared.plan.load.connections = load.connections.min(self.plan.load.connections);
        Arc::new(prepared)
    }
}

/// Prepares a run on this machine.
///
/// # Errors
///
/// The plan does not fit this machine, or nobody answers at the target.
pub fn prepare(plan: Plan) -> Result<Prepared, PrepareError> {
    prepare_part(plan, None)
}

/// Prepares what one of several agents does of a plan on this machine; absent: all of it.
///
/// # Errors
///
/// As [`prepare`]; or the plan has no such part.
pub fn prepare_part(mut plan: Plan, part: Option<Part>) -> Result<Prepared, PrepareError> {
    plan.check_complete()?;
    let cpus = usable_cpus();
    // How many workers a part has was said to all agents.
    let is_placed = plan.workers.placement == Placement::Auto && part.is_none();
    if is_placed && !plan.workers.oversubscribe {
        let most = plan.load.model.default_workers(cpus);
        plan.workers.count = plan.workers.count.min(most);
    }
    check_workers(&plan)?;
    let here = workers_here(&plan, part)?;
    let workers = here.end - here.start;
    if workers > cpus && !plan.workers.oversubscribe {
        return Err(PrepareError::Plan(format!(
            "{workers} workers need as many CPUs, and this process may use {cpus}; use -t {cpus}, \
             or --oversubscribe to run them all the same"
        )));
    }
    let (backend, backend_note) = choose_backend(plan.workers.backend);
    tls_config::read_files(&mut plan.connection.tls)?;
    let (peer, negotiated) = negotiate_with_target(&plan)?;
    let placed = if part.is_some() && plan.workers.placement == Placement::Auto {
        Placed::unbound(&plan, Some(brunt_record::Placement::Given))
    } else {
        Placed::choose(&plan, &peer)
    };
    let peers = with_further(peer, &plan)?;
    prepared(plan, part, backend, backend_note, peers, negotiated, placed)
}

/// Where the servers are: that of the target, and those beside it, each connected to once.
fn with_further(first: Peer, plan: &Plan) -> Result<Arc<[Peer]>, PrepareError> {
    let further = plan.further_targets.iter().map(|target| {
        let plan = Plan {
            target: target.clone(),
            ..plan.clone()
        };
        if is_arranged(&plan) || is_over_datagrams(&plan) {
            peers(&plan).map(|mut peers| peers.swap_remove(0))
        } else {
            reach(&plan).map(|(peer, _, _)| peer)
        }
    });
    std::iter::once(Ok(first)).chain(further).collect()
}

/// Prepares a run in `machine`, with whose servers it negotiates.
///
/// # Errors
///
/// The plan does not fit this machine, or cannot be simulated.
pub fn prepare_simulated(
    plan: Plan,
    machine: &mut impl VirtualMachine,
) -> Result<Prepared, PrepareError> {
    prepare_simulated_part(plan, None, machine)
}

/// Prepares what one of several agents does of a plan in `machine`; absent: all of it.
///
/// # Errors
///
/// As [`prepare_simulated`]; or the plan has no such part.
pub fn prepare_simulated_part(
    mut plan: Plan,
    part: Option<Part>,
    machine: &mut impl VirtualMachine,
) -> Result<Prepared, PrepareError> {
    plan.check_complete()?;
    check_workers(&plan)?;
    tls_config::read_files(&mut plan.connection.tls)?;
    let peers = Arc::new([Peer::Unix("simulated".into())]);
    let side = tls_config::for_simulation(&plan)?;
    let negotiated = Negotiated::simulated_in(&plan, side, machine)?;
    let placed = Placed::unbound(&plan, None);
    prepared(plan, part, Backend::Sim, None, peers, negotiated, placed)
}

/// Whether the workers can share what they are to do.
fn check_workers(plan: &Plan) -> Result<(), PrepareError> {
    let (workers, connections) = (plan.workers.count.get(), plan.load.connections.get());
    if workers > connections {
        return Err(PrepareError::Plan(format!(
            "{workers} workers cannot share {}; use -t {connections} or fewer, or more connections",
            counted(u64::from(connections), "connection", "connections")
        )));
    }
    let most_per_s = ARRIVALS_PER_WORKER_MAX * f64::from(workers);
    let rate_per_s = plan.load.model.schedule().map_or(0.0, Schedule::rate_max);
    if rate_per_s > most_per_s {
        return Err(PrepareError::Plan(format!(
            "{rate_per_s} arrivals per second are more than {workers} worker(s) can plan, which is \
             {most_per_s}; use a rate of at most that, or more workers (-t)"
        )));
    }
    Ok(())
}

/// The numbers of the workers of this process.
fn workers_here(plan: &Plan, part: Option<Part>) -> Result<Range<u32>, PrepareError> {
    let workers = plan.workers.count.get();
    let here = part.map_or(0..workers, Part::workers);
    if here.is_empty() || here.end > workers {
        let last = here.end.saturating_sub(1);
        Err(PrepareError::Plan(format!(
            "a plan of {workers} workers has no workers up to number {last}"
        )))
    } else {
        Ok(here)
    }
}

/// Encodes the requests and checks the limits.
fn prepared(
    mut plan: Plan,
    part: Option<Part>,
    backend: Backend,
    backend_note: Option<String>,
    peers: Arc<[Peer]>,
    negotiated: Negotiated,
    placed: Placed,
) -> Result<Prepared, PrepareError> {
    plan.workers.count = placed.workers;
    let workers = workers_here(&plan, part)?;
    // What the others do is no matter of this machine.
    let too_low = || PrepareError::Plan("the rate of the plan is too low to be shared out".into());
    let own = plan.part(workers.clone()).ok_or_else(too_low)?;
    let origin_unix_ns = match backend {
        Backend::Sim => 0,
        _ => clock::origin_unix_ns(),
    };
    let (protocol, depth) = (negotiated.protocol, negotiated.depth);
    let side = negotiated.tls_client().map(|client| client.side);
    let requests = EncodedRequests::new(&plan, protocol, depth, side.as_ref(), origin_unix_ns)?;
    let sizes = requests.sizes();
    if sizes.held > PAYLOAD_BYTES_MAX || sizes.copies > COPIES_BYTES_MAX {
        return Err(PrepareError::Plan(format!(
            "{depth} requests of {} bytes in flight on a connection take more than {} MiB; use a \
             smaller --pipeline (in place of weighttp, -K) or body",
            sizes.request,
            COPIES_BYTES_MAX >> 20
        )));
    }
    let peer = &peers[0];
    for &address in &plan.connection.source_addresses {
        let socket = std::net::UdpSocket::bind((address, 0));
        let reached = socket.and_then(|socket| match peer {
            Peer::Tcp(target) | Peer::Udp(target) => socket.connect(target),
            Peer::Unix(_) => Ok(()),
        });
        reached.map_err(|reason| {
            PrepareError::Plan(format!(
                "cannot connect from {address}: {reason}; --source-address takes a local address \
                 of the target's family, IPv4 or IPv6"
            ))
        })?;
    }
    let sources = limits::sources(&own, peer);
    // What is simulated has a Unix socket for its peer.
    let is_unix = matches!(peer, Peer::Unix(_)) && backend != Backend::Sim;
    if is_unix && plan.work() == Work::Streams {
        return Err(PrepareError::Plan(
            "a Unix socket has no account of what was acknowledged; give the server's HOST:PORT"
                .to_owned(),
        ));
    }
    let limits = limits::check(&own, &negotiated, backend, peer, &sources, sizes)
        .map_err(PrepareError::Plan)?;
    let prepared = Prepared {
        plan,
        peers,
        sources,
        backend,
        backend_note,
        negotiated,
        requests,
        limits,
        cpus: Cpus::of_process(),
        placed,
        workers,
    };
    if let Peer::Tcp(target) = prepared.peers[0] {
        socket::check_options(target, &prepared.sockets())?;
    }
    Ok(prepared)
}

/// The backend to use, and why it is not the one asked for.
fn choose_backend(choice: BackendChoice) -> (Backend, Option<String>) {
    if choice == BackendChoice::Epoll {
        return (Backend::Epoll, None);
    }
    match Uring::new(1) {
        Ok(_) => (Backend::Uring, None),
        Err(error) => {
            let note = format!(
                "io_uring is not available ({error}; it needs Linux 6.1, the sysctl \
                 kernel.io_uring_disabled at 0, and a container's seccomp profile that allows it)"
            );
            (Backend::Epoll, Some(note))
        }
    }
}

/// Connects to the target and negotiates what is spoken. Files are read before that.
fn negotiate_with_target(plan: &Plan) -> Result<(Peer, Negotiated), PrepareError> {
    negotiate::refuse_pipeline(plan, plan.connection.protocol.in_clear_text())?;
    let side = tls_config::for_target(plan)?;
    if is_arranged(plan) {
        return Ok((peers(plan)?.swap_remove(0), Negotiated::unasked(plan)?));
    }
    if let Some(side) = side.as_ref().filter(|_| is_over_datagrams(plan)) {
        return first_of(plan, |peer| {
            let negotiated = negotiate::quic::negotiate(plan, side.clone(), &peer)?;
            Ok((peer, negotiated))
        });
    }
    let (peer, link, deadline) = reach(plan)?;
    Ok((peer, negotiate::negotiate(plan, side, link, deadline)?))
}

/// What `attempt` gives of the first address of the target that it succeeds with.
fn first_of<T>(
    plan: &Plan,
    attempt: impl Fn(Peer) -> Result<T, PrepareError>,
) -> Result<T, PrepareError> {
    let mut peers = peers(plan)?;
    let last = peers.swap_remove(peers.len() - 1);
    let outcome = peers.into_iter().find_map(|peer| attempt(peer).ok());
    outcome.map_or_else(|| attempt(last), Ok)
}

/// Whether the plan speaks over datagrams.
fn is_over_datagrams(plan: &Plan) -> bool {
    plan.connection.protocol.preferred().transport == Transport::Datagrams
}

/// Connects to the first address of the target that takes a connection; gives the deadline of the
/// attempt, too, which in a run holds for handshakes as well.
fn reach(plan: &Plan) -> Result<(Peer, Link, Deadline), PrepareError> {
    let patience = Duration::from_nanos(plan.limits.connect_timeout_ns);
    let connect = |peer: Peer| {
        let deadline = Deadline::after(plan.limits.connect_timeout_ns);
        match Link::connect(&peer, patience) {
            Ok(link) => Ok((peer, link, deadline)),
            Err(reason) => Err(PrepareError::Unreachable {
                address: address_of(&peer),
                reason,
            }),
        }
    };
    first_of(plan, connect)
}

/// Where a peer is, in words.
pub(crate) fn address_of(peer: &Peer) -> String {
    match peer {
        Peer::Tcp(address) | Peer::Udp(address) => address.to_string(),
        Peer::Unix(path) => path.display().to_string(),
    }
}

/// Whether a connection before the run would take the place of one of it.
fn is_arranged(plan: &Plan) -> bool {
    plan.one_way().is_some_and(|streams| streams.is_arranged)
}

/// The addresses of the target, at least one, for what carries the protocol.
fn peers(plan: &Plan) -> Result<Vec<Peer>, PrepareError> {
    if let Some(path) = &plan.target.unix_socket {
        return Ok(vec![Peer::Unix(path.clone())]);
    }
    let host = &plan.target.host;
    let unresolved = |reason| PrepareError::Resolve {
        host: host.clone(),
        reason,
    };
    let addresses = (host.as_str(), plan.target.port).to_socket_addrs();
    let peer = if is_over_datagrams(plan) {
        Peer::Udp
    } else {
        Peer::Tcp
    };
    let peers: Vec<Peer> = addresses.map_err(unresolved)?.map(peer).collect();
    if peers.is_empty() {
        let reason = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        return Err(unresolved(reason));
    }
    Ok(peers)
}
