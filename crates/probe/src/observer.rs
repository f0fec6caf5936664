//! The evidence behind the verdict: a thread that reads the machine, the network and the server
//! while the window lasts.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use brunt_io::backend::Peer;
use brunt_io::cpu::CpuUse;
use brunt_io::{clock, threads};
use brunt_record::{Evidence, Observer as Cost, ServerEvidence, ServerScope, Window};

use crate::host::HostReader;
use crate::network::NetworkReader;
use crate::programs::ProgramsReader;
use crate::series::Pace;
use crate::server::{ServerWatch, cpus_used_now};
use crate::server_connections::ConnectionsReader;
use crate::steal::{self, StealReader};

/// Shortest and longest time between two readings of the machine.
const PAUSE_MIN_NS: u64 = 100_000_000;
const PAUSE_MAX_NS: u64 = 2_000_000_000;
/// Longest time between two readings of the server. The server may have many threads.
const SERVER_PAUSE_MAX_NS: u64 = 3_000_000_000;
/// One in this many readings of the server is a whole one, which is kept. The readings between hold
/// on to what a process did before it ended.
const SERVER_READINGS_PER_SAMPLE: u64 = 10;
/// How long an end of the window that an interrupt sets may go unnoticed, at most. To look more
/// often would take a worker on the same CPU away from its work.
const NOTICE_NS: u64 = PAUSE_MIN_NS;
/// The baseline of the idle server ends so long before the load begins.
const BASELINE_MARGIN_NS: u64 = 2_000_000;
/// CPUs that a server used before the load, from which on it is read again after the load: it may
/// have been at work still, as one that has just started is.
const BASELINE_DOUBTFUL_CPUS: f64 = 0.1;
/// How long it is read then.
const BASELINE_AGAIN_NS: u64 = 50_000_000;

/// What is read, and what for.
#[derive(Debug)]
pub struct Sources {
    /// The server's address.
    pub peer: Peer,
    /// Most connections that brunt has to it at once.
    pub connections_max: u64,
    /// Speed of the link to it, where the user gave it.
    pub link_bits_per_s: Option<u64>,
    /// How the server is watched.
    pub server: Option<ServerWatch>,
    /// What cannot be read, and why, as far as it is known before.
    pub missing: BTreeMap<String, String>,
}

/// The handle on the reading thread, which ends when this is dropped.
#[derive(Debug)]
pub struct Observer {
    orders: Arc<Orders>,
    thread: Option<JoinHandle<Evidence>>,
}

impl Observer {
    /// Starts the thread, which opens its files and waits for [`Self::begin`]. `end_ns` gives the
    /// end of the window that an interrupt has set, `u64::MAX` for none.
    ///
    /// # Errors
    ///
    /// The system refuses another thread.
    pub fn start(sources: Sources, end_ns: impl Fn() -> u64 + Send + 'static) -> io::Result<Self> {
        let orders = Arc::new(Orders::default());
        let own_orders = Arc::clone(&orders);
        let body = move || observe(sources, &own_orders, &end_ns);
        let thread = threads::spawn("brunt-observe", body)?;
        Ok(Self {
            orders,
            thread: Some(thread),
        })
    }

    /// Publishes when load begins, some milliseconds from now, and the window.
    pub fn begin(&self, load_ns: u64, window: Window) {
        self.orders.give(|state| {
            state.begin = Some(Begin { load_ns, window });
        });
    }

    /// All workers have left: takes the last reading, unless the window's end came before, and
    /// returns what was read. Without a window there is nothing in it.
    pub fn finish(mut self) -> Evidence {
        self.orders.give(|state| state.stop = Some(Stop::Finish));
        // A panic of the thread costs the evidence, not the run.
        let evidence = self.thread.take().and_then(|thread| thread.join().ok());
        evidence.unwrap_or_default()
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.orders
            .give(|state| state.stop = state.stop.or(Some(Stop::Leave)));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Begin {
    load_ns: u64,
    window: Window,
}

/// Why the thread ends before the window does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// The observation ends, with a last reading.
    Finish,
    /// Nobody wants to know.
    Leave,
}

/// Messages to the thread.
#[derive(Debug, Default)]
struct Orders {
    state: Mutex<ObserverState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ObserverState {
    begin: Option<Begin>,
    stop: Option<Stop>,
}

impl Orders {
    fn give(&self, change: impl FnOnce(&mut ObserverState)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    fn wait_for_begin(&self) -> Result<Begin, Stop> {
        let is_silent = |state: &mut ObserverState| state.stop.is_none() && state.begin.is_none();
        let state = self.changed.wait_while(self.lock(), is_silent);
        let state = state.unwrap_or_else(PoisonError::into_inner);
        match state.stop {
            Some(stop) => Err(stop),
            None => state.begin.ok_or(Stop::Leave),
        }
    }

    /// Waits for an instant; returns the time then.
    fn wait_until(&self, at_ns: u64) -> Result<u64, Stop> {
        let mut state = self.lock();
        loop {
            if let Some(stop) = state.stop {
                return Err(stop);
            }
            let now_ns = clock::now_ns();
            if now_ns >= at_ns {
                return Ok(now_ns);
            }
            let pause = Duration::from_nanos(at_ns - now_ns);
            (state, _) = self
                .changed
                .wait_timeout(state, pause)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, ObserverState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's body.
fn observe(sources: Sources, orders: &Orders, end_ns: &dyn Fn() -> u64) -> Evidence {
    // Edges are to be met.
    threads::precise_timers();
    let mut reader = Reader {
        host: HostReader::new(),
        steal: StealReader::new(),
        network: NetworkReader::new(&sources.peer, sources.link_bits_per_s),
        programs: ProgramsReader::default(),
        connections: ConnectionsReader::new(&sources.peer, sources.connections_max),
        server: sources.server,
        pace: Pace::new(PAUSE_MIN_NS, PAUSE_MAX_NS),
        server_pace: Pace::new(PAUSE_MIN_NS, SERVER_PAUSE_MAX_NS),
        server_due_ns: 0,
        server_sample_due_ns: 0,
        start_ns: 0,
        start_cpu_ns: 0,
    };
    let missing = sources.missing;
    match follow(&mut reader, orders, end_ns) {
        Ok(()) | Err(Stop::Finish) if reader.start_ns > 0 => {
            let mut evidence = reader.end(missing);
            if let Some(server) = &mut evidence.server {
                read_baseline_again(server, orders);
            }
            evidence
        }
        _ => Evidence {
            missing,
            ..Evidence::default()
        },
    }
}

/// A server that polls uses CPUs before the load and after it: the less of both is its baseline.
fn read_baseline_again(server: &mut ServerEvidence, orders: &Orders) {
    let Some(before) = server.idle_cpus_used else {
        return;
    };
    // Until all workers have left.
    if before >= BASELINE_DOUBTFUL_CPUS
        && orders.wait_until(u64::MAX) == Err(Stop::Finish)
        && let Some(after) = cpus_used_now(&server.scope, BASELINE_AGAIN_NS)
    {
        server.idle_cpus_used = Some(before.min(after));
    }
}

/// Reads from the beginning to the end of the window, without the last reading.
fn follow(reader: &mut Reader, orders: &Orders, cut_ns: &dyn Fn() -> u64) -> Result<(), Stop> {
    let Begin { load_ns, window } = orders.wait_for_begin()?;
    let baseline_end_ns = load_ns.saturating_sub(BASELINE_MARGIN_NS);
    if let Some(server) = &mut reader.server
        && clock::now_ns() < baseline_end_ns
    {
        server.begin_idle(clock::now_ns());
        server.end_idle(orders.wait_until(baseline_end_ns)?);
        // Many threads take long to read, and what they did under load is no baseline.
        if clock::now_ns() >= load_ns {
            server.discard_idle();
        }
    }
    // What was stolen just before the window may reach into it.
    let before_ns = window.start_ns.saturating_sub(steal::BEFORE_NS);
    let now_ns = orders.wait_until(before_ns.max(load_ns))?;
    reader.steal.begin(now_ns, window.start_ns);
    let mut steal_due_ns = now_ns + reader.steal.pause_ns();
    while steal_due_ns < window.start_ns {
        let now_ns = orders.wait_until(steal_due_ns)?;
        reader.sample_steal();
        steal_due_ns = (steal_due_ns + reader.steal.pause_ns()).max(now_ns);
    }
    reader.begin(orders.wait_until(window.start_ns)?);
    let mut due_ns = reader.start_ns + reader.pace.pause_ns();
    loop {
        let end_ns = window.end_ns.min(cut_ns());
        let notice_ns = clock::now_ns().saturating_add(NOTICE_NS);
        let next_ns = due_ns.min(steal_due_ns).min(notice_ns);
        let now_ns = orders.wait_until(end_ns.min(next_ns))?;
        if now_ns >= window.end_ns.min(cut_ns()) {
            return Ok(());
        }
        if now_ns >= due_ns {
            reader.sample(now_ns);
            // A reading that came late, or took long, is not made up for.
            due_ns = (due_ns + reader.pace.pause_ns()).max(now_ns);
        }
        if now_ns >= steal_due_ns {
            reader.sample_steal();
            steal_due_ns = (steal_due_ns + reader.steal.pause_ns()).max(now_ns);
        }
    }
}

/// All that is read, how often, and at what cost.
#[derive(Debug)]
struct Reader {
    host: HostReader,
    steal: StealReader,
    network: NetworkReader,
    programs: ProgramsReader,
    connections: ConnectionsReader,
    server: Option<ServerWatch>,
    pace: Pace,
    server_pace: Pace,
    server_due_ns: u64,
    server_sample_due_ns: u64,
    /// When the window began, by the first reading; 0 before it.
    start_ns: u64,
    start_cpu_ns: u64,
}

impl Reader {
    fn begin(&mut self, now_ns: u64) {
        self.start_ns = now_ns;
        self.start_cpu_ns = thread_cpu_ns();
        self.host.begin(now_ns);
        self.network.begin();
        self.programs.begin();
        self.connections.begin(clock::now_ns());
        // The edges cost more than what comes in between, and come twice only: they say nothing of
        // how long the pause should be.
        self.pace.note(0);
        if let Some(server) = &mut self.server {
            server.begin(clock::now_ns());
            self.server_due_ns = now_ns.saturating_add(PAUSE_MIN_NS);
            self.server_sample_due_ns =
                now_ns.saturating_add(PAUSE_MIN_NS * SERVER_READINGS_PER_SAMPLE);
        }
    }

    fn sample_steal(&mut self) {
        let before_ns = thread_cpu_ns();
        self.steal.sample(clock::now_ns());
        self.steal.cost(thread_cpu_ns().saturating_sub(before_ns));
    }

    fn sample(&mut self, now_ns: u64) {
        let before_ns = thread_cpu_ns();
        self.host.sample(now_ns);
        let between_ns = thread_cpu_ns();
        self.pace.note(between_ns.saturating_sub(before_ns));
        if let Some(server) = &mut self.server
            && now_ns >= self.server_due_ns
        {
            let is_sample = now_ns >= self.server_sample_due_ns;
            if is_sample {
                server.sample(clock::now_ns());
            } else {
                server.refresh();
            }
            self.server_pace
                .note(thread_cpu_ns().saturating_sub(between_ns));
            let pause_ns = self.server_pace.pause_ns();
            self.server_due_ns = self.server_due_ns.saturating_add(pause_ns).max(now_ns);
            if is_sample {
                let pause_ns = pause_ns.saturating_mul(SERVER_READINGS_PER_SAMPLE);
                let due_ns = self.server_sample_due_ns.saturating_add(pause_ns);
                self.server_sample_due_ns = due_ns.max(now_ns);
            }
        }
    }

    fn end(self, mut missing: BTreeMap<String, String>) -> Evidence {
        let now_ns = clock::now_ns();
        let mut host = self.host.end(now_ns, &mut missing);
        host.stolen = self.steal.finish(now_ns);
        let network = self.network.end(&mut missing);
        let server_connections = self.connections.end(clock::now_ns(), &mut missing);
        let server = self
            .server
            .map(|server| server.end(clock::now_ns(), &mut missing));
        let watched = match server.as_ref().map(|server| &server.scope) {
            Some(ServerScope::Processes { pids, .. }) => pids.iter().copied().collect(),
            _ => BTreeSet::new(),
        };
        host.programs = Some(self.programs.end(&watched));
        Evidence {
            interval_ns: now_ns.saturating_sub(self.start_ns),
            host,
            network: Some(network),
            server,
            server_connections,
            server_count: None,
            server_sent: None,
            server_window: None,
            observer: Cost {
                cpu_ns: thread_cpu_ns().saturating_sub(self.start_cpu_ns),
                readings: self.pace.readings() + 1,
                pause_ns: self.pace.pause_ns(),
            },
            missing,
        }
    }
}

/// CPU of the calling thread, nanoseconds.
fn thread_cpu_ns() -> u64 {
    CpuUse::of_thread().map_or(0, CpuUse::total_ns)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    const MS: u64 = 1_000_000;

    /// An observer, and the end of the window that an interrupt has set.
    fn observer(cut_ns: &Arc<AtomicU64>) -> Observer {
        let sources = Sources {
            peer: Peer::Tcp(([127, 0, 0, 1], 80).into()),
            connections_max: 1,
            link_bits_per_s: None,
            server: None,
            missing: BTreeMap::from([("server".to_owned(), "nobody asked".to_owned())]),
        };
        let cut_ns = Arc::clone(cut_ns);
        Observer::start(sources, move || cut_ns.load(Ordering::Relaxed)).expect("a thread")
    }

    fn window(start_ns: u64, length_ns: u64) -> Window {
        Window {
            start_ns,
            end_ns: start_ns.saturating_add(length_ns),
        }
    }

    /// Lets the thread come to its end by itself.
    fn joined(mut observer: Observer) -> Evidence {
        let thread = observer.thread.take().expect("running");
        thread.join().expect("no panic")
    }

    fn check(evidence: &Evidence) {
        let series = &evidence.host.series;
        assert_eq!(series.first(), Some(&brunt_record::HostPoint::default()));
        assert_eq!(
            series.last().map(|point| point.at_ns),
            Some(evidence.interval_ns)
        );
        assert!(series.windows(2).all(|pair| {
            pair[0].at_ns < pair[1].at_ns
                && pair[0].busy_ns <= pair[1].busy_ns
                && pair[0].steal_ns <= pair[1].steal_ns
                && pair[0].pressure_ns <= pair[1].pressure_ns
                && pair[0].client_cpu_ns <= pair[1].client_cpu_ns
        }));
        assert_eq!(evidence.missing["server"], "nobody asked");
        assert!(!evidence.host.cpus.is_empty() && !evidence.host.client_cpus.is_empty());
        let network = evidence.network.as_ref().expect("not in simulation");
        assert_eq!(network.route, brunt_record::Route::Loopback);
        assert!(network.tcp.is_some());
    }

    #[test]
    fn a_window_is_read_from_edge_to_edge() {
        let cut_ns = Arc::new(AtomicU64::new(u64::MAX));
        let observer = observer(&cut_ns);
        let now_ns = clock::now_ns();
        observer.begin(now_ns + MS, window(now_ns + 5 * MS, 250 * MS));
        let evidence = joined(observer);
        check(&evidence);
        // A busy machine may let it wait at either edge.
        assert!((1..60_000 * MS).contains(&evidence.interval_ns));
        assert!((2..=4).contains(&evidence.observer.readings));
        assert_eq!(
            evidence.host.series.len() as u64,
            evidence.observer.readings
        );
        assert!(evidence.observer.pause_ns >= PAUSE_MIN_NS);
    }

    #[test]
    fn an_interrupt_ends_the_window() {
        let cut_ns = Arc::new(AtomicU64::new(u64::MAX));
        let observer = observer(&cut_ns);
        let now_ns = clock::now_ns();
        observer.begin(now_ns, window(now_ns, u64::MAX));
        cut_ns.store(now_ns + 60_000_000, Ordering::Relaxed);
        check(&joined(observer));
    }

    #[test]
    fn the_end_of_the_run_ends_the_window() {
        let cut_ns = Arc::new(AtomicU64::new(u64::MAX));
        let observer = observer(&cut_ns);
        let now_ns = clock::now_ns();
        observer.begin(now_ns, window(now_ns, 3_600_000 * MS));
        // Whether the first reading was taken by then is up to the machine; one alone is none.
        let evidence = observer.finish();
        assert!(evidence.interval_ns < 3_600_000 * MS);
        assert_ne!(evidence.observer.readings, 1);
    }

    #[test]
    fn without_a_window_there_is_no_evidence() {
        let cut_ns = Arc::new(AtomicU64::new(u64::MAX));
        let waiting = observer(&cut_ns);
        let later = observer(&cut_ns);
        let far_ns = clock::now_ns() + 3_600_000 * MS;
        later.begin(far_ns, window(far_ns, MS));
        for observer in [waiting, later] {
            let evidence = observer.finish();
            assert_eq!((evidence.interval_ns, evidence.network), (0, None));
            assert_eq!(evidence.missing["server"], "nobody asked");
        }
    }

    #[test]
    fn the_thread_ends_with_its_handle() {
        let cut_ns = Arc::new(AtomicU64::new(u64::MAX));
        let far_ns = clock::now_ns() + 3_600_000 * MS;
        let idle = observer(&cut_ns);
        let before_load = observer(&cut_ns);
        before_load.begin(far_ns, window(far_ns, MS));
        let reading = observer(&cut_ns);
        reading.begin(0, window(0, far_ns));
        for observer in [idle, before_load, reading] {
            let orders = Arc::downgrade(&observer.orders);
            drop(observer);
            assert_eq!(orders.strong_count(), 0);
        }
    }
}
