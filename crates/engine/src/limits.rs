//! The limits of this machine that a run must fit into: looked at, and raised where allowed, before
//! anything is sent; and local addresses of connections.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use brunt_io::backend::Peer;
use brunt_io::threads;
use brunt_io::uring::Uring;
use brunt_load::{BackendChoice, LoadModel, Plan, Schedule, Work};
use brunt_probe::memory;
use brunt_record::{
    Backend, LimitsChecked, LoggedRequest, NameRecord, STAGES_RECORDED_MAX, counted,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::backlog::Arrival;
use crate::negotiate::Negotiated;
use crate::protocol::Sizes;

/// Descriptors that a run opens beside those of its workers, with room for some more: files that
/// are read beside the load, and a connection for the server's own count.
const DESCRIPTORS_BESIDE: u64 = 12;
/// Descriptors of each worker beside its backend's: the kernel's account of its thread, and a
/// socket that is being made.
const DESCRIPTORS_PER_WORKER: u64 = 2;
/// Memory of a worker: buffers, histograms, stack. A generous estimate.
const WORKER_BYTES: u64 = 8 << 20;
/// Threads that a run has beside its workers, and which are still to be started.
const THREADS_BESIDE: u64 = 1;
/// Memory of a connection: measured 4.7 KB in the kernel (docs/many-connections.md) and 0.4 KB in
/// the worker, and room for a request and a reply in the kernel's queues.
const CONNECTION_BYTES: u64 = 7 << 10;
/// Memory of a connection in a server on this machine.
const SERVED_BYTES: u64 = 6 << 10;
/// Memory of the record of a stage in a worker: three histograms of two digits.
const STAGE_BYTES: u64 = 112 << 10;
/// What a TLS session adds to a connection: measured 1.6 KB (TLS 1.3) to 3.8 KB (TLS 1.2) with one
/// certificate, and room for a chain of them.
const TLS_BYTES: u64 = 8 << 10;
/// Memory of a request that is in flight: measured about 100 bytes in HTTP/2, and the worker's own
/// notes.
const REQUEST_BYTES: u64 = 256;
/// Frames of bodies that one connection holds until they are sent, at most.
const BODIES_BYTES: u64 = 144 << 10;
/// Addresses of 127.0.0.0/8 used at most when brunt spreads by itself.
const LOOPBACK_SPREAD_MAX: u64 = 4_096;

/// Raises the soft limit of file descriptors as far as allowed, and gives it.
pub fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let hard = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // Where raising is refused the soft limit stays.
    let _ = setrlimit(Resource::Nofile, hard);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Local addresses to connect from: those asked for; towards loopback, others of 127.0.0.0/8 where
/// the ports of one would run out; else none, which leaves it to the kernel.
pub(crate) fn sources(plan: &Plan, peer: &Peer) -> Sources {
    let (Peer::Tcp(target) | Peer::Udp(target)) = peer else {
        return Sources::default();
    };
    let asked = &plan.connection.source_addresses;
    // Servers beside it may be elsewhere.
    let may_spread = matches!(target.ip(), IpAddr::V4(address) if address.is_loopback())
        && plan.further_targets.is_empty();
    if !asked.is_empty() || !may_spread {
        return Sources {
            addresses: asked.iter().map(|&ip| (ip, 0).into()).collect(),
            ..Sources::default()
        };
    }
    // The kernel tries every second port first, and searches long once those are taken: a third of
    // all leaves it room.
    let ports = (ports_per_address() / 3).max(1);
    let count = ports_needed(plan, target.ip()).div_ceil(ports);
    if count <= 1 {
        return Sources::default();
    }
    let first = u32::from(Ipv4Addr::LOCALHOST);
    let spread = (first..).take(count.min(LOOPBACK_SPREAD_MAX) as usize);
    Sources {
        addresses: spread
            .map(|bits| (Ipv4Addr::from(bits), 0).into())
            .collect(),
        are_chosen: true,
        in_a_row: (ports / u64::from(plan.workers.count.get())) as usize,
    }
}

/// Descriptors that the run needs at once, those that are open already included.
fn descriptors_needed(plan: &Plan, backend: Backend, limit: u64) -> u64 {
    let connections = u64::from(plan.connections_most());
    let workers = u64::from(plan.workers.count.get());
    let of_backends = match backend {
        Backend::Uring => {
            let of_worker = connections.div_ceil(workers);
            workers * Uring::descriptors(of_worker, limit, plan.work() == Work::Streams)
        }
        Backend::Epoll => workers + connections,
        Backend::Sim => 0,
    };
    memory::open_descriptors() + DESCRIPTORS_BESIDE + workers * DESCRIPTORS_PER_WORKER + of_backends
}

/// Looks at descriptors, ports and memory. Where there is too little, the error says what to
/// change.
pub(crate) fn check(
    plan: &Plan,
    negotiated: &Negotiated,
    backend: Backend,
    peer: &Peer,
    sources: &Sources,
    sizes: Sizes,
) -> Result<LimitsChecked, String> {
    if backend == Backend::Sim {
        return Ok(LimitsChecked::default());
    }
    let connections = u64::from(plan.connections_most());
    let workers = u64::from(plan.workers.count.get());
    let descriptors_limit = raise_descriptor_limit();
    let descriptors_needed = descriptors_needed(plan, backend, descriptors_limit);
    if descriptors_needed > descriptors_limit {
        let remedy = match plan.workers.backend {
            BackendChoice::Epoll => ", or --backend uring, whose connections need none",
            BackendChoice::Auto | BackendChoice::Uring => "",
        };
        return Err(format!(
            "{descriptors_needed} file descriptors are needed and {descriptors_limit} allowed; \
             raise the limit with `ulimit -n {descriptors_needed}`, or use fewer connections (-c) \
             or workers (-t){remedy}"
        ));
    }
    let ports = match peer {
        Peer::Tcp(target) | Peer::Udp(target) => Some(check_ports(plan, target.ip(), sources)?),
        Peer::Unix(_) => None,
    };
    let queue_bytes = plan.load.model.queue_max().map_or(0, |queue_max| {
        u64::from(queue_max.get()) * size_of::<Arrival>() as u64
    });
    let payload_bytes = sizes.held as u64;
    let connection_bytes = CONNECTION_BYTES
        + served_bytes(peer)
        + sizes.of_connection as u64
        + protocol_state_bytes(negotiated, payload_bytes)
        // What the buffers of a socket hold that is sent from or received into all the time: what
        // the kernel gives them, where there are many, is a part of its memory for TCP.
        + plan.one_way().map_or(0, |_| 1 << 20);
    let names = plan.traffic.requests.names().len() as u64;
    let planned_bytes = match names {
        0 => plan.workers.held_beside_bytes,
        _ => plan.workers.held_beside_bytes + plan.traffic.requests.held_bytes() + payload_bytes,
    };
    let workers_bytes = workers * (WORKER_BYTES + stage_bytes(&plan.load.model));
    let memory_needed_bytes = workers_bytes
        + workers * names * size_of::<NameRecord>() as u64
        + payload_bytes
        + plan.traffic.requests.held_bytes()
        + logged_bytes(plan)
        + connections * connection_bytes
        + queue_bytes;
    if let Some(space) = memory::address_space() {
        let stacks_bytes = (workers + THREADS_BESIDE) * threads::STACK_BYTES as u64;
        // Less what is the kernel's.
        let of_connections = connections * (connection_bytes - served_bytes(peer)) / 2;
        let needed = workers_bytes + payload_bytes + of_connections + queue_bytes + stacks_bytes;
        if needed > space.left_bytes() {
            return Err(format!(
                "about {} MB of address space are needed and {} MB left of the {} MB that are \
                 allowed (RLIMIT_AS); raise the limit with `ulimit -v`, use fewer workers (-t) or \
                 connections, or limit memory by a cgroup in its place",
                needed.div_ceil(1 << 20),
                space.left_bytes() >> 20,
                space.limit_bytes >> 20
            ));
        }
    }
    let memory_available_bytes = memory::available_memory_bytes();
    if let Some(available) = memory_available_bytes
        && memory_needed_bytes > available
    {
        return Err(format!(
            "about {} MB of memory are needed and {} MB available; use fewer connections, a \
             smaller --pipeline, fewer --streams, a smaller body or a shorter list",
            memory_needed_bytes >> 20,
            available >> 20
        ));
    }
    Ok(LimitsChecked {
        descriptors_needed,
        descriptors_limit,
        ports_needed: ports.map(|(needed, _)| needed),
        ports_available: ports.map(|(_, available)| available),
        memory_needed_bytes,
        memory_available_bytes,
        planned_bytes,
        logged_requests_max: plan.observation.logged_requests_max,
        server_buffer_bytes_max: plan.one_way().and_then(|_| server_buffer_bytes_max(peer)),
    })
}

/// Ports that the run needs at once, and those that there are.
fn check_ports(plan: &Plan, target: IpAddr, sources: &Sources) -> Result<(u64, u64), String> {
    let addresses = sources.addresses.len().max(1) as u64;
    let (needed, available) = (ports_needed(plan, target), ports_per_address() * addresses);
    if needed <= available {
        return Ok((needed, available));
    }
    let offer = counted(addresses, "source address offers", "source addresses offer");
    let why = match plan.load.model {
        LoadModel::Sessions { .. } => format!(
            ", for a closed connection keeps its port for {} s",
            port_hold_s(target)
        ),
        _ => String::new(),
    };
    Err(format!(
        "about {needed} local ports are needed at once{why}, and {offer} {available}; add \
         --source-address, or widen the range with `sysctl -w \
         net.ipv4.ip_local_port_range=\"1024 65535\"`"
    ))
}

/// Memory of the log of single requests, where it is known how many there will be.
fn logged_bytes(plan: &Plan) -> u64 {
    let requests = plan.load.stop.requests.unwrap_or(0);
    requests.min(plan.observation.logged_requests_max) * size_of::<LoggedRequest>() as u64
}

/// Memory of the other end of a connection, if that is on this machine for certain.
fn served_bytes(peer: &Peer) -> u64 {
    match peer {
        Peer::Tcp(target) | Peer::Udp(target) if !target.ip().is_loopback() => 0,
        Peer::Tcp(_) | Peer::Udp(_) | Peer::Unix(_) => SERVED_BYTES,
    }
}

/// Memory of a worker for the records of stages.
fn stage_bytes(model: &LoadModel) -> u64 {
    match model {
        LoadModel::Open { schedule, .. } if schedule.stages().len() <= STAGES_RECORDED_MAX => {
            schedule.stages().len() as u64 * STAGE_BYTES
        }
        _ => 0,
    }
}

/// Memory of a connection beyond an HTTP/1.1 one with one request in flight. The workers share
/// the request in `payload_bytes`; over TLS each connection encrypts it for itself, and over some
/// protocols it writes a copy.
fn protocol_state_bytes(negotiated: &Negotiated, payload_bytes: u64) -> u64 {
    let depth = u64::from(negotiated.depth);
    let cost = negotiated.protocol.cost;
    let copied = if cost.copies_units {
        (payload_bytes * depth).min(BODIES_BYTES)
    } else {
        payload_bytes
    };
    let is_tls = negotiated.tls.is_some();
    let copies = u64::from(cost.copies_units) + u64::from(is_tls);
    let tls = if is_tls { TLS_BYTES } else { 0 };
    tls + cost.state_bytes + depth * REQUEST_BYTES + copies * copied
}

/// Local ports that the run needs at once. Planned connections hold theirs beyond their end; how
/// many are open at once is not known beforehand: a second's worth is assumed.
fn ports_needed(plan: &Plan, target: IpAddr) -> u64 {
    let LoadModel::Sessions { schedule, .. } = &plan.load.model else {
        return plan.connections_most().into();
    };
    let planned_ns = plan.load.stop.duration_ns;
    let planned_ns = planned_ns.map(|duration_ns| duration_ns + plan.load.warmup_ns);
    let length_ns = planned_ns.into_iter().chain(schedule.duration_ns()).min();
    let length_s = length_ns.map_or(f64::INFINITY, |length_ns| length_ns as f64 / 1e9);
    let per_s = Schedule::rate_max(schedule);
    let closed = per_s * length_s.min(port_hold_s(target) as f64);
    let open = per_s.ceil().min(f64::from(plan.connections_most()));
    (closed + open) as u64
}

/// How long the port of a closed connection is not used again, seconds: TIME_WAIT, unless the
/// kernel may cut it short (`tcp_tw_reuse`, linux/Documentation/networking/ip-sysctl.rst).
pub fn port_hold_s(target: IpAddr) -> u64 {
    let reuse = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_tw_reuse");
    let is_short = match reuse.as_deref().map(str::trim) {
        Ok("1") => true,
        Ok("2") => target.is_loopback(),
        _ => false,
    };
    if is_short { 1 } else { 60 }
}

/// Bytes that one buffer of a TCP socket holds at most by this machine's kernel, whether it adapts
/// the buffer or an application sets it (which is doubled: socket(7), SO_RCVBUF); absent where
/// `peer` may be on another machine, or the kernel does not say.
fn server_buffer_bytes_max(peer: &Peer) -> Option<u64> {
    if !matches!(peer, Peer::Tcp(target) if target.ip().is_loopback()) {
        return None;
    }
    let last_of = |path: &str| -> Option<u64> {
        let words = std::fs::read_to_string(path).ok()?;
        words.split_ascii_whitespace().last()?.parse().ok()
    };
    let adapted = ["ipv4/tcp_rmem", "ipv4/tcp_wmem"];
    let set = ["core/rmem_max", "core/wmem_max"];
    let limits = adapted.map(|name| (name, 1)).into_iter();
    let limits = limits.chain(set.map(|name| (name, 2)));
    limits
        .map(|(name, times)| Some(last_of(&format!("/proc/sys/net/{name}"))? * times))
        .try_fold(0, |most, limit| Some(limit?.max(most)))
}

/// Ports of one local address that the kernel may choose from.
pub fn ports_per_address() -> u64 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    ports_in(&range.unwrap_or_default()).unwrap_or(28_232)
}

fn ports_in(range: &str) -> Option<u64> {
    let mut numbers = range.split_whitespace().map(str::parse::<u64>);
    let (first, last) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some((last + 1).saturating_sub(first))
}

/// Local addresses of connections, which they take in turn. None leaves the choice to the kernel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    pub(crate) addresses: Vec<SocketAddr>,
    /// Nobody asked for them.
    pub(crate) are_chosen: bool,
    /// Connections of a worker that have one address before the next one is taken; 0 is 1. The
    /// kernel finds free ports sooner where addresses are filled one after the other.
    in_a_row: usize,
}

/// The addresses as one worker takes them.
#[derive(Debug)]
pub(crate) struct Turns {
    addresses: Vec<SocketAddr>,
    in_a_row: usize,
    taken: usize,
}

impl Sources {
    /// The addresses as this worker takes them.
    pub(crate) fn turns(&self, worker: u32) -> Turns {
        Turns {
            addresses: self.addresses.clone(),
            in_a_row: self.in_a_row.max(1),
            taken: if self.are_chosen { 0 } else { worker as usize },
        }
    }
}

impl Turns {
    /// The address of a connection that is opened now; absent leaves it to the kernel.
    pub(crate) fn next(&mut self) -> Option<SocketAddr> {
        let turn = self.taken / self.in_a_row;
        self.taken = self.taken.wrapping_add(1);
        let place = turn.checked_rem(self.addresses.len())?;
        Some(self.addresses[place])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_on_this_machine_needs_memory_too() {
        let tcp = |address: &str| Peer::Tcp(address.parse().expect("an address"));
        for (peer, bytes) in [
            (tcp("127.0.0.2:80"), SERVED_BYTES),
            (tcp("[::1]:80"), SERVED_BYTES),
            (Peer::Unix("/run/socket".into()), SERVED_BYTES),
            (tcp("192.0.2.1:80"), 0),
            (tcp("[2001:db8::1]:80"), 0),
        ] {
            assert_eq!(served_bytes(&peer), bytes, "{peer:?}");
        }
    }

    #[test]
    fn the_port_range_is_read_from_the_kernels_text() {
        assert_eq!(ports_in("32768\t60999\n"), Some(28_232));
        assert_eq!(ports_in("1024 65535"), Some(64_512));
        assert_eq!(ports_in("garbage"), None);
    }

    #[test]
    fn addresses_take_turns() {
        assert_eq!(Sources::default().turns(0).next(), None);
        let addresses = [1, 2, 3].map(|host| SocketAddr::from(([127, 0, 0, host], 0)));
        for (are_chosen, in_a_row, worker, expected) in [
            (false, 0, 1, [1, 2, 0, 1]),
            (true, 2, 0, [0, 0, 1, 1]),
            (true, 2, 1, [0, 0, 1, 1]),
        ] {
            let sources = Sources {
                addresses: addresses.to_vec(),
                are_chosen,
                in_a_row,
            };
            let mut turns = sources.turns(worker);
            let taken = expected.map(|_| turns.next());
            assert_eq!(taken, expected.map(|index: usize| Some(addresses[index])));
        }
    }
}
