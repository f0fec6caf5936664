//! From a plan to a run that can start: the name resolved, the target reachable, the backend
//! chosen, the limits checked. Nothing here sends a request.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use brunt_load::{BackendChoice, Plan};
use brunt_measure::{Backend, LimitsChecked};
use brunt_proto::http1::RequestError;
use thiserror::Error;

use crate::backend::Peer;
use crate::backend::uring::Uring;
use crate::host;
use crate::limits::{self, LimitError};
use crate::request::EncodedRequest;

/// Bytes that a worker's payload may have: offsets into it are 32 bits wide.
const PAYLOAD_BYTES_MAX: usize = 1 << 30;

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
    #[error("cannot connect to {address}: {reason}; is the server running and the port right?")]
    Unreachable {
        /// The last address tried.
        address: String,
        /// The kernel's reason.
        reason: io::Error,
    },
    /// The request cannot be encoded.
    #[error("the request cannot be sent")]
    Request(#[from] RequestError),
    /// A limit is too low.
    #[error(transparent)]
    Limit(#[from] LimitError),
    /// More workers than connections.
    #[error(
        "{workers} workers cannot share {connections} connection(s); use -t {connections} or \
         fewer, or more connections"
    )]
    MoreWorkersThanConnections {
        /// Asked for.
        workers: u32,
        /// Asked for.
        connections: u32,
    },
    /// More workers than CPUs.
    #[error(
        "{workers} workers need as many CPUs, and this process may use {cpus}; use -t {cpus}, or \
         --oversubscribe to run them all the same"
    )]
    MoreWorkersThanCpus {
        /// Asked for.
        workers: u32,
        /// Usable.
        cpus: u32,
    },
    /// Pipelined requests are too large in all.
    #[error(
        "{pipeline} requests of {bytes} bytes are over the limit of 1 GiB under way per \
         connection; use a smaller --pipeline or body"
    )]
    PayloadTooLarge {
        /// Depth asked for.
        pipeline: u32,
        /// Bytes of one request.
        bytes: usize,
    },
    /// A source address is IPv4 and the target IPv6, or the reverse.
    #[error(
        "cannot connect from {address} to {target}: --source-address takes an address of the \
         target's family, IPv4 or IPv6"
    )]
    SourceFamily {
        /// As given.
        address: String,
        /// The target's.
        target: String,
    },
    /// A source address cannot be used.
    #[error("cannot connect from {address}: {reason}; --source-address takes a local address")]
    SourceAddress {
        /// As given.
        address: String,
        /// The kernel's reason.
        reason: io::Error,
    },
}

/// A run that can start.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) peer: Peer,
    pub(crate) sources: Vec<std::net::SocketAddr>,
    pub(crate) backend: Backend,
    pub(crate) backend_note: Option<String>,
    pub(crate) request: Arc<EncodedRequest>,
    pub(crate) limits: LimitsChecked,
    pub(crate) usable_cpus: u32,
}

/// Prepares a run.
///
/// # Errors
///
/// The plan does not fit this machine, or nobody answers at the target.
pub fn prepare(plan: Plan) -> Result<Prepared, PrepareError> {
    let (workers, connections) = (plan.workers.get(), plan.connections.get());
    if workers > connections {
        return Err(PrepareError::MoreWorkersThanConnections {
            workers,
            connections,
        });
    }
    let usable_cpus = host::usable_cpus();
    if workers > usable_cpus && !plan.oversubscribe && plan.backend != BackendChoice::Sim {
        return Err(PrepareError::MoreWorkersThanCpus {
            workers,
            cpus: usable_cpus,
        });
    }
    let request = EncodedRequest::new(&plan)?;
    let payload_bytes = request.payload_bytes(plan.pipeline.get());
    if payload_bytes > PAYLOAD_BYTES_MAX {
        return Err(PrepareError::PayloadTooLarge {
            pipeline: plan.pipeline.get(),
            bytes: request.bytes(false),
        });
    }
    let (backend, backend_note) = choose_backend(plan.backend);
    let peer = if backend == Backend::Sim {
        Peer::Unix("simulated".into())
    } else {
        reach(&plan)?
    };
    for &address in &plan.source_addresses {
        std::net::UdpSocket::bind((address, 0)).map_err(|reason| PrepareError::SourceAddress {
            address: address.to_string(),
            reason,
        })?;
    }
    if let Peer::Tcp(target) = &peer {
        for address in &plan.source_addresses {
            if address.is_ipv4() != target.is_ipv4() {
                return Err(PrepareError::SourceFamily {
                    address: address.to_string(),
                    target: target.ip().to_string(),
                });
            }
        }
    }
    let sources = limits::source_addresses(&plan, &peer);
    let limits = limits::check(&plan, backend, &peer, &sources, payload_bytes as u64)?;
    let request = Arc::new(request);
    Ok(Prepared {
        plan,
        peer,
        sources,
        backend,
        backend_note,
        request,
        limits,
        usable_cpus,
    })
}

/// The backend to use, and why it is not the one asked for.
fn choose_backend(choice: BackendChoice) -> (Backend, Option<String>) {
    match choice {
        BackendChoice::Epoll => (Backend::Epoll, None),
        BackendChoice::Sim => (Backend::Sim, None),
        BackendChoice::Auto | BackendChoice::Uring => match uring_refusal() {
            None => (Backend::Uring, None),
            refusal => (Backend::Epoll, refusal),
        },
    }
}

/// Why io_uring cannot be used here; absent when it can.
pub fn uring_refusal() -> Option<String> {
    Uring::new(1).err().map(|error| refusal(&error))
}

fn refusal(error: &io::Error) -> String {
    let cause = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "see the sysctl kernel.io_uring_disabled, or the container's seccomp profile"
        }
        Some(libc::ENOSYS) => "this kernel has none, or a seccomp profile hides it",
        Some(libc::EINVAL) => "it needs Linux 6.1",
        Some(libc::ENOMEM) => "the memory that may be locked or charged is used up",
        _ => "see dmesg",
    };
    format!("io_uring is not available ({error}; {cause})")
}

/// Finds the first address of the target that takes a connection.
fn reach(plan: &Plan) -> Result<Peer, PrepareError> {
    if let Some(path) = &plan.target.unix_socket {
        return UnixStream::connect(path)
            .map(|_| Peer::Unix(path.clone()))
            .map_err(|reason| PrepareError::Unreachable {
                address: path.display().to_string(),
                reason,
            });
    }
    let host = &plan.target.host;
    let addresses: Vec<_> = (host.as_str(), plan.target.port)
        .to_socket_addrs()
        .map_err(|reason| PrepareError::Resolve {
            host: host.clone(),
            reason,
        })?
        .collect();
    let patience = Duration::from_nanos(plan.connect_timeout_ns);
    let mut failure = None;
    for address in addresses {
        match TcpStream::connect_timeout(&address, patience) {
            Ok(_) => return Ok(Peer::Tcp(address)),
            Err(reason) => failure = Some((address, reason)),
        }
    }
    Err(match failure {
        Some((address, reason)) => PrepareError::Unreachable {
            address: address.to_string(),
            reason,
        },
        None => PrepareError::Resolve {
            host: host.clone(),
            reason: io::Error::new(io::ErrorKind::NotFound, "the name has no address"),
        },
    })
}
