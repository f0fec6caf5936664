//! The course of a run: workers started, the common window published, results merged.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use brunt_load::Plan;
use brunt_measure::{
    Backend as BackendName, Evidence, FailureKind, HostUse, Latencies, NameRecord, Once, Run,
    RunEdges, SetUp, Wall, Window,
};
use thiserror::Error;

use crate::assignment::fault_of;
use crate::backend::Backend;
use crate::backend::epoll::Epoll;
use crate::backend::uring::Uring;
use crate::budget::Budget;
use crate::clock;
use crate::control::{Control, Progress};
use crate::evidence::server::WatchError;
use crate::faults;
use crate::gate::{Gate, Start};
use crate::host::{self, CpuUse, Cpus};
use crate::prepare::Prepared;
use crate::protocol::{ClientProtocol, ForProtocol};
use crate::server_count::ServerCountError;
use crate::simulate;
use crate::spin::Spinner;
use crate::thread_meter::ThreadMeter;
use crate::threads;
use crate::witness::Witnesses;
use crate::worker::{Finished, Task, Worker};

/// From the publication of the start until load begins: all workers know it by then, on a busy
/// machine too.
pub(crate) const START_MARGIN_NS: u64 = 20_000_000;
/// How often the watching thread looks around.
pub(crate) const WATCH_NS: u64 = 10_000_000;
/// The same while the next edge is known.
const WATCH_SELDOM_NS: u64 = 50_000_000;

/// Why there is no run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// A signal came before anything was measured, or before a simulation was complete.
    #[error("interrupted before there was a measurement: there is nothing to report")]
    Interrupted,
    /// Set-up ended without a connection.
    #[error(
        "none of the {connections} connections could be opened in set-up: {}; {}",
        what_failed(set_up, *limit_ns),
        remedy(set_up)
    )]
    NoConnection {
        /// Asked for.
        connections: u32,
        /// What failed.
        set_up: Box<SetUp>,
        /// How long set-up lasted at most, nanoseconds.
        limit_ns: u64,
    },
    /// A worker could not be started.
    #[error("cannot start worker {worker}: {reason}")]
    Start {
        /// Its number.
        worker: u32,
        /// The system's reason.
        reason: io::Error,
    },
    /// The server cannot be watched as asked.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// The server's own count cannot be read.
    #[error(transparent)]
    ServerCount(#[from] ServerCountError),
    /// The thread that reads the evidence could not be started.
    #[error("cannot start the thread that watches machine and server: {0}")]
    Observer(io::Error),
    /// A worker's backend failed.
    #[error("worker {worker} failed: {reason}")]
    Worker {
        /// Its number.
        worker: u32,
        /// The system's reason.
        reason: io::Error,
    },
    /// A worker panicked: a bug.
    #[error("worker {worker} panicked; this is a bug in brunt")]
    Panic {
        /// Its number.
        worker: u32,
    },
}

/// One worker's end, with the CPU that its thread used.
pub(crate) struct Ended {
    pub(crate) finished: Finished,
    pub(crate) cpu: CpuUse,
}

/// What the watching thread saw.
#[derive(Default)]
pub(crate) struct Watched {
    cpu: CpuUse,
    cpu_interval_ns: u64,
}

impl Prepared {
    /// The handle to interrupt and watch this run by.
    pub fn control(&self) -> Arc<Control> {
        Arc::new(Control::new(self.plan.workers.get()))
    }

    /// Runs. `own_server` says that the target lives in this process; `show` is called now and
    /// then with the phase and how far the run has come.
    ///
    /// # Errors
    ///
    /// Nothing was measured: interrupted too early, or the kernel failed brunt.
    pub fn run(
        self,
        control: &Arc<Control>,
        own_server: bool,
        show: &mut dyn FnMut(&str, Progress),
    ) -> Result<Run, RunError> {
        match self.backend {
            BackendName::Uring => {
                let body = self.worker_body(Uring::new);
                self.run_threads(control, own_server, show, &body)
            }
            BackendName::Epoll => {
                let body = self.worker_body(|_| Epoll::new());
                self.run_threads(control, own_server, show, &body)
            }
            BackendName::Sim => simulate::simulate_and_show(self, control, show),
        }
    }

    /// What a worker does over this backend, or over TLS over this backend, in the protocol that
    /// was negotiated.
    fn worker_body<B: Backend + 'static>(&self, make: fn(u32) -> io::Result<B>) -> Arc<WorkerBody> {
        match self.agreement.tls_client() {
            None => self.requests.run(OverBackend { make }),
            Some(tls) => self.requests.run(OverBackend {
                make: move |slots| Ok(tls.over(make(slots)?)),
            }),
        }
    }

    fn run_threads(
        self,
        control: &Arc<Control>,
        own_server: bool,
        show: &mut dyn FnMut(&str, Progress),
        body: &Arc<WorkerBody>,
    ) -> Result<Run, RunError> {
        let wall_start = (clock::unix_ms(), clock::now_ns());
        let mut edges = RunEdges::default();
        edges.setup_start.set(clock::now_ns());
        let workers = self.plan.workers.get();
        let witnesses = Witnesses::call(&self, own_server, control, show)?;
        let budget = self.budget();
        let gate = Arc::new(Gate::default());
        let finished = Arc::new(AtomicU32::new(0));
        let mut crew = Vec::new();
        let cpus = Cpus::of_process();
        // A server in this process needs as many CPUs again.
        let threads_that_poll = if own_server { 2 * workers } else { workers };
        for worker in 0..workers {
            let task = self.task(worker, budget.clone(), control);
            let spinner = Spinner::new(task.spin, threads_that_poll, cpus);
            let start_delay_ns = fault_of(self.plan.faults.start_delay, worker);
            let window_shift_ns = fault_of(self.plan.faults.window_shift, worker);
            let is_observed = self.plan.observe;
            let (own_gate, own_finished) = (Arc::clone(&gate), Arc::clone(&finished));
            let body = Arc::clone(body);
            let body = move || {
                let _leaving = Leaving {
                    gate: &own_gate,
                    finished: &own_finished,
                };
                threads::sleep(start_delay_ns);
                body(WorkerStart {
                    task,
                    spinner,
                    gate: &own_gate,
                    window_shift_ns,
                    is_observed,
                })
            };
            match threads::spawn(&format!("brunt-load-{worker}"), body) {
                Ok(thread) => crew.push(thread),
                Err(reason) => {
                    control.abort();
                    gate.open(None);
                    return Err(RunError::Start { worker, reason });
                }
            }
        }
        while !gate.all_ready(workers, Duration::from_nanos(WATCH_NS)) {
            show("set-up", control.progress());
            if control.is_interrupted() {
                control.abort();
                gate.open(None);
            }
        }
        // After an interrupt it says nothing that no connection is open.
        let unopened = (!control.is_aborted())
            .then(|| unopened(&gate.set_up(), &self.plan))
            .flatten();
        if unopened.is_some() {
            control.abort();
        }
        let load_ns = clock::now_ns() + START_MARGIN_NS;
        let window = self.window_from(load_ns);
        edges.warmup_start.set(load_ns);
        witnesses.begin(load_ns, window);
        gate.open((!control.is_aborted()).then_some(Start { load_ns, window }));
        let watched = watch(
            control,
            window,
            &|| finished.load(Ordering::Acquire) == workers,
            show,
        );
        let ended = join(crew)?;
        if control.is_aborted() {
            return Err(unopened.unwrap_or(RunError::Interrupted));
        }
        let unsent = budget.map_or(0, |budget| budget.left());
        Ok(self.conclude(Conclusion {
            control,
            own_server,
            wall_start: Some(wall_start),
            edges,
            window,
            ended,
            unsent,
            watched,
            evidence: witnesses.testify(control, show),
        }))
    }

    /// The window of a run whose load begins at `load_ns`; without a duration it has no end yet.
    pub(crate) fn window_from(&self, load_ns: u64) -> Window {
        let start_ns = load_ns + self.plan.warmup_ns;
        let length_ns = self.plan.stop.duration_ns.unwrap_or(u64::MAX);
        Window {
            start_ns,
            end_ns: start_ns.saturating_add(length_ns),
        }
    }

    fn budget(&self) -> Option<Arc<Budget>> {
        let workers = self.plan.workers.get();
        self.plan
            .stop
            .requests
            .map(|requests| Arc::new(Budget::new(requests, workers)))
    }

    pub(crate) fn conclude(self, conclusion: Conclusion<'_>) -> Run {
        let Conclusion {
            control,
            mut edges,
            mut window,
            mut ended,
            ..
        } = conclusion;
        let planned_end_ns = window.end_ns;
        window.end_ns = window.end_ns.min(control.end_ns());
        let counts_requests = self.plan.stop.requests.is_some();
        let early_end_ns = counts_requests
            .then(|| early_end_ns(&mut ended, conclusion.unsent, window))
            .flatten();
        if let Some(end_ns) = early_end_ns {
            window.end_ns = end_ns.max(window.start_ns);
        }
        let load_ns = edges.warmup_start.get().unwrap_or(window.start_ns);
        edges.measure_start.set(window.start_ns);
        edges.measure_end.set(window.end_ns);
        if self.plan.stop.duration_ns.is_some()
            && early_end_ns.is_none()
            && control.end_ns() >= planned_end_ns
        {
            edges.measure_end_planned.set(planned_end_ns);
        }
        let mut latencies = Latencies::default();
        let mut names = Vec::new();
        let mut workers = Vec::new();
        let mut drain_end_ns = window.end_ns;
        let mut sources_used = 0;
        for Ended { finished, cpu } in ended {
            sources_used = sources_used.max(finished.sources_used);
            let mut recording = finished.recorder.finish(window.end_ns);
            recording.record.cpu_user_ns = cpu.user_ns;
            recording.record.cpu_system_ns = cpu.system_ns;
            if conclusion.wall_start.is_some() {
                // Polling takes CPU time, and none is polled away that was not used.
                let used_ns = cpu.user_ns.saturating_add(cpu.system_ns);
                recording.record.spun_ns = recording.record.spun_ns.min(used_ns);
            }
            if workers.is_empty() {
                // What nobody drew belongs to no worker: it is stated once.
                recording.record.unsent += conclusion.unsent;
            }
            let lived_from_ns = recording.record.edges.window_start.get().unwrap_or(0);
            let lived = &mut recording.record.edges.window_end;
            if early_end_ns.is_some()
                || counts_requests && lived.get().is_some_and(|end_ns| end_ns < window.end_ns)
            {
                // It left because nothing was left to do: it would have idled until the end.
                *lived = Once::at(window.end_ns.max(lived_from_ns));
            }
            faults::apply(&self.plan.faults, &mut recording);
            drain_end_ns = drain_end_ns.max(recording.record.edges.drained.get().unwrap_or(0));
            latencies.merge(&recording.latencies);
            brunt_measure::merge_names(&mut names, recording.names);
            workers.push(recording.record);
        }
        for (record, name) in names.iter_mut().zip(self.plan.requests.names()) {
            let record: &mut NameRecord = record;
            record.name.clone_from(name);
        }
        edges.drain_end.set(drain_end_ns);
        let wall = match conclusion.wall_start {
            Some(start) => wall_since(start),
            None => Wall {
                process_ns: drain_end_ns,
                ..Wall::default()
            },
        };
        edges.finished.set(wall.process_ns);
        let peak_resident_bytes = conclusion
            .wall_start
            .and_then(|_| host::peak_resident_bytes());
        let mut run = Run {
            format: Run::FORMAT,
            brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
            load: self.describe(conclusion.own_server, load_ns, window, sources_used),
            interrupted: control.is_interrupted(),
            window,
            edges,
            wall,
            host: HostUse {
                usable_cpus: self.usable_cpus,
                cpu_user_ns: conclusion.watched.cpu.user_ns,
                cpu_system_ns: conclusion.watched.cpu.system_ns,
                cpu_interval_ns: conclusion.watched.cpu_interval_ns,
                peak_resident_bytes: peak_resident_bytes.unwrap_or(0),
            },
            limits: self.limits,
            latencies,
            workers,
            names,
            evidence: conclusion.evidence,
            diagnosis: None,
            calibration: None,
            findings: Vec::new(),
        };
        run.findings = brunt_measure::check(&run);
        run
    }
}

/// The error of a set-up that opened no connection of those that were to be held.
pub(crate) fn unopened(set_up: &SetUp, plan: &Plan) -> Option<RunError> {
    (set_up.asked > 0 && set_up.opened == 0).then(|| RunError::NoConnection {
        connections: set_up.asked,
        set_up: Box::new(set_up.clone()),
        limit_ns: plan.setup_limit_ns(),
    })
}

fn what_failed(set_up: &SetUp, limit_ns: u64) -> String {
    let attempts: u64 = set_up.failures.iter().map(|(_, count)| count).sum();
    match set_up.main_failure() {
        None => format!(
            "no attempt was answered within {} s (--setup-timeout)",
            limit_ns as f64 / 1e9
        ),
        Some((kind, count)) if count == attempts => {
            format!("{attempts} attempts failed, all with `{}`", kind.label())
        }
        Some((kind, count)) => format!(
            "{attempts} attempts failed, {count} of them with `{}`",
            kind.label()
        ),
    }
}

/// What to do about it.
fn remedy(set_up: &SetUp) -> &'static str {
    match set_up.main_failure().map(|(kind, _)| kind) {
        Some(FailureKind::ConnectRefused | FailureKind::ConnectUnreachable) => {
            "is the server still running, and its port open to this machine?"
        }
        Some(FailureKind::ConnectTimedOut) | None => {
            "the server does not take connections as fast as they come, or at all: use fewer (-c), \
             open them more slowly (--connection-rate), or wait longer (--connect-timeout, \
             --setup-timeout)"
        }
        Some(FailureKind::HandshakeTimedOut) => {
            "the server takes connections and does not complete handshakes: use fewer (-c), open \
             them more slowly (--connection-rate), or wait longer (--connect-timeout, \
             --setup-timeout)"
        }
        Some(FailureKind::ConnectNoPort) => {
            "use fewer connections (-c), or offer more local addresses (--source-address)"
        }
        Some(FailureKind::ConnectNoDescriptor) => {
            "use fewer connections (-c), or raise the limit of open files (ulimit -n)"
        }
        Some(_) => "see the server's log for why it ends connections before they are of use",
    }
}

/// Everything that is known when the last worker has left.
pub(crate) struct Conclusion<'a> {
    pub(crate) control: &'a Control,
    pub(crate) own_server: bool,
    /// Wall clock (ms) and monotonic clock (ns) at one and the same time; none in virtual time.
    pub(crate) wall_start: Option<(u64, u64)>,
    pub(crate) edges: RunEdges,
    pub(crate) window: Window,
    pub(crate) ended: Vec<Ended>,
    /// Requests of a run by count that no worker drew.
    pub(crate) unsent: u64,
    pub(crate) watched: Watched,
    pub(crate) evidence: Evidence,
}

/// When a run by count was over, if all workers left before the end of the window: with the last
/// reply when everything was sent, else when the last worker gave up. What waited then is still
/// sent in drain, and its reply, which counts as one of the window, lies in it.
fn early_end_ns(ended: &mut [Ended], unsent_by_none: u64, window: Window) -> Option<u64> {
    let (mut left_ns, mut done_ns, mut unsent) = (0, 0, unsent_by_none);
    for Ended { finished, .. } in ended {
        let record = finished.recorder.record();
        left_ns = left_ns.max(record.edges.window_end.get()?);
        done_ns = done_ns.max(finished.last_done_ns);
        unsent = unsent.saturating_add(record.unsent);
        unsent = unsent.saturating_add(record.arrivals.unsent);
    }
    let is_early = left_ns < window.end_ns;
    is_early.then(|| {
        let gave_up = unsent > 0 || done_ns < window.start_ns;
        let end_ns = if gave_up {
            left_ns.max(done_ns + 1)
        } else {
            done_ns + 1
        };
        end_ns.min(window.end_ns)
    })
}

/// The labels, and the process's length as of now.
fn wall_since((unix_ms, start_ns): (u64, u64)) -> Wall {
    let now_ns = clock::now_ns();
    let wall_ms = clock::unix_ms() as i64 - unix_ms as i64;
    Wall {
        started_unix_ms: unix_ms.saturating_sub(start_ns / 1_000_000),
        stepped_ns: wall_ms * 1_000_000 - (now_ns - start_ns) as i64,
        process_ns: now_ns,
    }
}

/// The window as a worker lives it that a fault moved by `shift_ns`.
pub(crate) fn shifted(window: Window, shift_ns: u64) -> Window {
    Window {
        start_ns: window.start_ns + shift_ns,
        end_ns: window.end_ns.saturating_add(shift_ns),
    }
}

/// Reports the end of a worker thread, however it comes: a panic must not leave others waiting.
struct Leaving<'a> {
    gate: &'a Gate,
    finished: &'a AtomicU32,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.gate.excuse();
        }
        self.finished.fetch_add(1, Ordering::Release);
    }
}

/// What a worker thread is given.
struct WorkerStart<'a> {
    task: Task,
    spinner: Spinner,
    gate: &'a Gate,
    window_shift_ns: u64,
    is_observed: bool,
}

/// The body of a worker thread.
type WorkerBody = dyn Fn(WorkerStart<'_>) -> io::Result<Option<Ended>> + Send + Sync;

/// Makes the body of worker threads over the backends that `make` makes.
struct OverBackend<M> {
    make: M,
}

impl<B, M> ForProtocol for OverBackend<M>
where
    B: Backend + 'static,
    M: Fn(u32) -> io::Result<B> + Send + Sync + 'static,
{
    type Outcome = Arc<WorkerBody>;

    fn run<P: ClientProtocol>(self, protocol: P) -> Arc<WorkerBody> {
        Arc::new(move |start| {
            let backend = (self.make)(start.task.connections);
            work(start, backend, protocol.clone())
        })
    }
}

fn work<B: Backend, P: ClientProtocol>(
    start: WorkerStart<'_>,
    backend: io::Result<B>,
    protocol: P,
) -> io::Result<Option<Ended>> {
    let WorkerStart {
        task,
        spinner,
        gate,
        window_shift_ns,
        is_observed,
    } = start;
    threads::precise_timers();
    let mut worker = backend.map(|backend| Worker::new(backend, protocol, task, spinner));
    let outcome = match &mut worker {
        Ok(worker) => worker.set_up(),
        Err(_) => Ok(SetUp::default()),
    };
    // Whatever happened, the others must not wait for this one.
    let start = gate.ready_and_wait(outcome.as_ref().unwrap_or(&SetUp::default()));
    outcome?;
    let mut worker = worker?;
    let Some(mut start) = start else {
        return Ok(None);
    };
    if is_observed {
        worker.meter(ThreadMeter::of_thread());
    }
    start.window = shifted(start.window, window_shift_ns);
    let finished = worker.run(start)?;
    Ok(Some(Ended {
        finished,
        cpu: CpuUse::of_thread().unwrap_or_default(),
    }))
}

/// Watches the run from the start of load until all workers are done: reads the process's CPU at
/// the window's edges, shows progress, passes on an interrupt.
fn watch(
    control: &Control,
    window: Window,
    all_finished: &dyn Fn() -> bool,
    show: &mut dyn FnMut(&str, Progress),
) -> Watched {
    let mut before: Option<(u64, CpuUse)> = None;
    let mut watched = None;
    while !all_finished() {
        let now_ns = clock::now_ns();
        let end_ns = window.end_ns.min(control.end_ns());
        if control.is_interrupted() && !control.is_interrupted_by(now_ns) {
            if now_ns < window.start_ns {
                control.abort();
            }
            control.interrupted_at(now_ns);
        }
        if before.is_none() && now_ns >= window.start_ns {
            before = CpuUse::of_process().ok().map(|cpu| (now_ns, cpu));
        }
        if watched.is_none() && now_ns >= end_ns {
            watched = cpu_since(before);
        }
        let (phase, next_edge_ns) = if now_ns < window.start_ns {
            ("warm-up", window.start_ns)
        } else if now_ns < end_ns {
            ("measure", end_ns)
        } else {
            ("drain", u64::MAX)
        };
        show(phase, control.progress());
        // A worker that polls on the same CPU is not to be disturbed more often than needed; but
        // an end that is not known must not be waited for in vain.
        let pause_ns = if next_edge_ns == u64::MAX {
            WATCH_NS
        } else {
            WATCH_SELDOM_NS
        };
        threads::sleep(pause_ns.min(next_edge_ns.saturating_sub(now_ns)));
    }
    watched.or_else(|| cpu_since(before)).unwrap_or_default()
}

fn cpu_since(before: Option<(u64, CpuUse)>) -> Option<Watched> {
    let (since_ns, cpu_before) = before?;
    let cpu = CpuUse::of_process().ok()?.since(cpu_before);
    Some(Watched {
        cpu,
        cpu_interval_ns: clock::now_ns() - since_ns,
    })
}

fn join(crew: Vec<JoinHandle<io::Result<Option<Ended>>>>) -> Result<Vec<Ended>, RunError> {
    let mut ended = Vec::new();
    let mut failure = None;
    for (worker, thread) in (0..).zip(crew) {
        match thread.join() {
            Ok(Ok(Some(end))) => ended.push(end),
            Ok(Ok(None)) => {}
            Ok(Err(reason)) => failure = failure.or(Some(RunError::Worker { worker, reason })),
            Err(_) => failure = failure.or(Some(RunError::Panic { worker })),
        }
    }
    failure.map_or(Ok(ended), Err)
}
