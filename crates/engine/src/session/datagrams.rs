//! A protocol over datagrams on the kernel's backends, against a server that loses and repeats
//! some.

use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use brunt_io::backend::Peer;
use brunt_judge::{InvariantStatus, RunFigures, check};
use brunt_load::{BackendChoice, Watch};
use brunt_record::Evidence;

use super::*;
use crate::prepare::prepare;
use crate::protocol::{Echo, EchoCounts, echo_plan};
use crate::run::Watched;
use crate::workload::Requests;

const MS: u64 = 1_000_000;
const DATAGRAM_BYTES: u16 = 1_200;
const DEPTH: u32 = 8;
const CONNECTIONS: u32 = 4;
/// One datagram in so many is lost, and one in so many is repeated.
const LOST_EVERY: u64 = 101;
const REPEATED_EVERY: u64 = 67;

/// What the server counted.
#[derive(Debug, Default)]
struct Counts {
    received: AtomicU64,
    lost: AtomicU64,
    sent: AtomicU64,
}

/// A server of datagrams, which ends when it is dropped.
struct EchoServer {
    address: std::net::SocketAddr,
    counts: Arc<Counts>,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl EchoServer {
    fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let limit = Some(Duration::from_millis(20));
        socket.set_read_timeout(limit).expect("an option");
        let address = socket.local_addr().expect("an address");
        let (counts, ends) = (Arc::<Counts>::default(), Arc::<AtomicBool>::default());
        let (counted, is_ended) = (Arc::clone(&counts), Arc::clone(&ends));
        let serve = move || {
            let mut buffer = [0; 2_048];
            let mut known = Vec::new();
            loop {
                let Ok((bytes, from)) = socket.recv_from(&mut buffer) else {
                    // What still came was read.
                    match is_ended.load(Ordering::Relaxed) {
                        true => return,
                        false => continue,
                    }
                };
                let number = counted.received.fetch_add(1, Ordering::Relaxed);
                // The first datagram of each connection is lost.
                let is_new = !known.contains(&from);
                if is_new {
                    known.push(from);
                }
                if is_new || number % LOST_EVERY == 0 {
                    counted.lost.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                let times = 1 + u64::from(number % REPEATED_EVERY == 0);
                for _ in 0..times {
                    socket.send_to(&buffer[..bytes], from).expect("a send");
                }
                counted.sent.fetch_add(times, Ordering::Relaxed);
            }
        };
        let thread = threads::spawn("echo", serve).expect("a thread");
        Self {
            address,
            counts,
            ends,
            thread: Some(thread),
        }
    }
}

impl Drop for EchoServer {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().expect("it ends well");
        }
    }
}

/// A run of the echo, over a socket that `address` is the other end of.
fn prepared(backend: BackendChoice, address: std::net::SocketAddr) -> Prepared {
    // What is negotiated before a run is so over TCP.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let named = listener.local_addr().expect("an address").to_string();
    let mut plan = echo_plan(&named, CONNECTIONS, DEPTH);
    plan.warmup_ns = 50 * MS;
    plan.stop.duration_ns = Some(300 * MS);
    plan.backend = backend;
    plan.oversubscribe = true;
    plan.observe = false;
    plan.watch = Watch::Off;
    let mut prepared = prepare(plan).expect("a plan that fits");
    prepared.peer = Peer::Udp(address);
    prepared
}

/// Runs one worker of the echo.
fn run(prepared: &Prepared, echo: &Arc<EchoCounts>) -> Run {
    let protocol = Echo::new(DATAGRAM_BYTES, 20 * MS, DEPTH, echo);
    let body = match prepared.carrier {
        Kernel::Uring => OnBackends { backends: OnUring }.run(protocol, Requests),
        Kernel::Epoll => OnBackends { backends: OnEpoll }.run(protocol, Requests),
    };
    let control = prepared.control();
    let (orders, of_worker) = mpsc::channel();
    let (reporter, reports) = mpsc::channel();
    let reporter = Reporter {
        worker: 0,
        reports: reporter,
    };
    let place = PlaceOfWorker {
        cpus: Cpus::of_process(),
        bound_cpu: None,
    };
    let worker = move || body(&of_worker, &reporter, place).expect("a worker");
    let thread = threads::spawn("echo-load", worker).expect("a thread");
    let preparation = Preparation {
        task: prepared.task(0, None, &control),
        threads_that_poll: 2,
        is_observed: false,
        holds_start: false,
        generated: None,
    };
    let mut edges = RunEdges::default();
    edges.setup_start.set(clock::now_ns());
    let wall_start = (clock::unix_ms(), clock::now_ns());
    orders
        .send(Order::Prepare(Box::new(preparation)))
        .expect("a worker");
    let report = || heard(reports.recv().expect("a worker")).expect("a worker that goes on");
    assert!(matches!(report(), Report::Ready(set_up) if set_up.open == CONNECTIONS));
    let load_ns = clock::now_ns() + START_MARGIN_NS;
    let window = prepared.window_from(load_ns);
    edges.warmup_start.set(load_ns);
    let start = Start { load_ns, window };
    orders.send(Order::Start(start)).expect("a worker");
    let Report::Ended(ended) = report() else {
        panic!("it is over");
    };
    drop(orders);
    thread.join().expect("it ends well");
    let mut ended = vec![*ended];
    let ending = prepared.ending(&control, &mut ended, 0, window);
    prepared.conclude(Conclusion {
        control: &control,
        own_server: true,
        wall_start: Some(wall_start),
        resident_before_bytes: None,
        edges,
        window,
        ended,
        unsent: 0,
        ending,
        watched: Watched::default(),
        evidence: Evidence::default(),
    })
}

#[test]
fn requests_over_datagrams_are_all_accounted_for() {
    for backend in [BackendChoice::Uring, BackendChoice::Epoll] {
        let server = EchoServer::start();
        let echo = Arc::<EchoCounts>::default();
        let run = run(&prepared(backend, server.address), &echo);
        let counts = Arc::clone(&server.counts);
        drop(server);

        // On a machine that is busy with other things a worker may come late into its window.
        let broken: Vec<_> = check(&run)
            .into_iter()
            .filter(|finding| finding.status == InvariantStatus::Broken)
            .filter(|finding| !matches!(finding.id, "W4" | "W5"))
            .collect();
        assert!(broken.is_empty(), "{backend:?}: {broken:#?}");
        let lifetime = run.summary().lifetime;
        assert_eq!(lifetime.failures.iter().count(), 0);
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        // Loopback loses nothing, and brunt reads what the server's sockets can hold.
        assert_eq!(of(&echo.sent), of(&counts.received), "{backend:?}");
        assert!(of(&echo.received) <= of(&counts.sent), "{backend:?}");
        let connections = u64::from(CONNECTIONS);
        assert_eq!(lifetime.connections_opened, connections);
        assert!(of(&echo.again_opening) >= connections);
        assert!(of(&echo.again) >= of(&counts.lost));
        let first_sends = of(&echo.sent) - of(&echo.again);
        assert_eq!(first_sends, lifetime.requests_sent + connections);
        let firsts = of(&echo.received) - of(&echo.stale);
        assert_eq!(firsts, lifetime.replies.total() + connections);
        assert!(lifetime.replies.total() > 100, "{backend:?}");
    }
}

#[test]
fn a_closed_port_is_a_refused_connection() {
    for backend in [BackendChoice::Uring, BackendChoice::Epoll] {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("an address");
        drop(socket);
        let prepared = prepared(backend, address);
        let control = prepared.control();
        let task = Task {
            setup_limit_ns: 200 * MS,
            ..prepared.task(0, None, &control)
        };
        let spinner = Spinner::new(task.spin, 1, Cpus::of_process());
        let echo = Arc::<EchoCounts>::default();
        let protocol = Echo::new(DATAGRAM_BYTES, 20 * MS, DEPTH, &echo);
        let set_up = match prepared.carrier {
            Kernel::Uring => {
                let backend = OnUring.datagrams(&mut (), CONNECTIONS).expect("io_uring");
                Worker::new(backend, protocol, Requests, task, spinner).set_up()
            }
            Kernel::Epoll => {
                let backend = OnEpoll.datagrams(&mut (), CONNECTIONS).expect("epoll");
                Worker::new(backend, protocol, Requests, task, spinner).set_up()
            }
        };
        let set_up = set_up.expect("a worker");
        assert_eq!(set_up.open, 0);
        let kinds: Vec<_> = set_up.failures.iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, [brunt_record::FailureKind::ConnectRefused]);
    }
}
