//! A session: workers that keep their threads, their backends and their open connections, and
//! rounds of load that are measured over them one after the other. A plain run is a session of one
//! round.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::Duration;

use brunt_io::backend::ClientBackend;
use brunt_io::cpu::{CpuUse, Cpus};
use brunt_io::epoll::Epoll;
use brunt_io::spin::Spinner;
use brunt_io::uring::Uring;
use brunt_io::{clock, threads};
use brunt_load::Round;
use brunt_measure::{Run, RunEdges, SetUp, Window};
use brunt_probe::memory;
use brunt_probe::thread_meter::ThreadMeter;

use crate::budget::Budget;
use crate::control::Control;
use crate::error::RunError;
use crate::faults::fault_of;
use crate::observer::{Phase, RunObserver, Snapshots, snapshots};
use crate::prepare::{Kernel, Prepared};
use crate::probes::Probes;
use crate::protocol::{ClientProtocol, ForProtocol};
use crate::run::{Conclusion, Ended, START_MARGIN_NS, Watched, shifted, unopened};
use crate::worker::{Start, Task, Worker};

/// How often the thread that runs a round looks around.
const WATCH: Duration = Duration::from_millis(10);
/// The same while the next edge is known.
const WATCH_SELDOM_NS: u64 = 50_000_000;
/// How long a worker sees to its connections between two looks for the next round.
const IDLE_NS: u64 = 5_000_000;

/// Workers, and the connections that they hold.
#[derive(Debug)]
pub struct Session {
    prepared: Prepared,
    control: Arc<Control>,
    own_server: bool,
    /// To each worker; none before the first round. A worker whose sender is gone leaves.
    orders: Vec<Sender<Order>>,
    reports: Receiver<(u32, Report)>,
    reporter: Sender<(u32, Report)>,
    threads: Vec<JoinHandle<()>>,
}

/// An order to a worker.
#[derive(Debug)]
enum Order {
    /// Sets up for a round, and reports when it is ready.
    Prepare(Box<Preparation>),
    /// Load begins.
    Start(Start),
}

#[derive(Debug)]
struct Preparation {
    task: Task,
    start_delay_ns: u64,
    window_shift_ns: u64,
    threads_that_poll: u32,
    is_observed: bool,
}

/// A report of a worker.
#[derive(Debug)]
enum Report {
    /// Its connections are open, as far as they can be opened.
    Ready(Box<SetUp>),
    /// Its part of the round is over.
    Ended(Box<Ended>),
    /// Its backend failed. It has left.
    Failed(io::Error),
    /// It panicked.
    Panicked,
}

impl Prepared {
    /// A session on this machine. `own_server` says that the target lives in this process. Workers
    /// start, and connections are opened, with the first round.
    pub fn open(self, control: &Arc<Control>, own_server: bool) -> Session {
        let (reporter, reports) = mpsc::channel();
        Session {
            prepared: self,
            control: Arc::clone(control),
            own_server,
            orders: Vec::new(),
            reports,
            reporter,
            threads: Vec::new(),
        }
    }

    /// A session of the one round that the plan is.
    ///
    /// # Errors
    ///
    /// As [`Rounds::round`].
    pub fn run(
        self,
        control: &Arc<Control>,
        own_server: bool,
        observer: &mut dyn RunObserver,
    ) -> Result<Run, RunError> {
        let round = Round::of(&self.plan);
        self.open(control, own_server).round(&round, observer)
    }

    /// What a worker does over this backend, or over TLS over this backend, in the protocol that
    /// was negotiated.
    fn worker_body<B: ClientBackend + 'static>(
        &self,
        make: fn(u32) -> io::Result<B>,
    ) -> Arc<WorkerBody> {
        match self.negotiated.tls_client() {
            None => self.requests.run(OverBackend { make }),
            Some(tls) => self.requests.run(OverBackend {
                make: move |slots| Ok(tls.over(make(slots)?)),
            }),
        }
    }
}

/// A session, wherever it takes place.
pub trait Rounds {
    /// Measures one round: connections that are missing are opened, those too many are closed,
    /// everything is counted anew.
    ///
    /// # Errors
    ///
    /// Nothing was measured: interrupted too early, or the kernel failed brunt. The session is then
    /// of no more use.
    fn round(&mut self, round: &Round, observer: &mut dyn RunObserver) -> Result<Run, RunError>;
}

impl Rounds for Session {
    fn round(&mut self, round: &Round, observer: &mut dyn RunObserver) -> Result<Run, RunError> {
        let outcome = self.measure(round, observer);
        if outcome.is_err() {
            self.control.abort();
            self.orders.clear();
        }
        outcome
    }
}

impl Session {
    fn measure(&mut self, round: &Round, observer: &mut dyn RunObserver) -> Result<Run, RunError> {
        let wall_start = (clock::unix_ms(), clock::now_ns());
        let mut edges = RunEdges::default();
        edges.setup_start.set(clock::now_ns());
        memory::reset_peak_resident();
        let prepared = self.prepared.of_round(round);
        let workers = prepared.workers.len() as u32;
        let control = Arc::clone(&self.control);
        let probes = Probes::start(&prepared, self.own_server, &control, observer)?;
        let budget = prepared.requests_of_part();
        let budget = budget.map(|requests| Arc::new(Budget::new(requests, workers)));
        let (sender, mut snapshots) = snapshots(prepared.plan.workers.get(), observer);
        self.start_workers()?;
        for (worker, orders) in prepared.workers.clone().zip(&self.orders) {
            let faults = &prepared.faults;
            let mut task = prepared.task(worker, budget.clone(), &control);
            task.busy_ns += round.added_work_ns;
            task.snapshots = Some(sender.clone());
            // Whoever is gone has said why.
            let _ = orders.send(Order::Prepare(Box::new(Preparation {
                task,
                start_delay_ns: fault_of(faults.start_delay, worker),
                window_shift_ns: fault_of(faults.window_shift, worker),
                // A server in this process needs as many CPUs again.
                threads_that_poll: if self.own_server {
                    2 * workers
                } else {
                    workers
                },
                is_observed: prepared.plan.observe,
            })));
        }
        drop(sender);
        let set_up = self.await_ready(&mut snapshots, observer)?;
        if let Some(error) = unopened(&set_up, &prepared.plan) {
            return Err(error);
        }
        let load_ns = clock::now_ns() + START_MARGIN_NS;
        let window = prepared.window_from(load_ns);
        edges.warmup_start.set(load_ns);
        probes.begin(load_ns, window);
        for orders in &self.orders {
            let _ = orders.send(Order::Start(Start { load_ns, window }));
        }
        let (ended, watched) = self.watch(window, &mut snapshots, observer)?;
        if control.is_aborted() {
            return Err(RunError::Interrupted);
        }
        let progress = snapshots.progress();
        let evidence = probes.finish(&control, &progress, observer);
        Ok(prepared.conclude(Conclusion {
            control: &control,
            own_server: self.own_server,
            wall_start: Some(wall_start),
            edges,
            window,
            ended,
            unsent: budget.map_or(0, |budget| budget.left()),
            watched,
            evidence,
        }))
    }

    fn start_workers(&mut self) -> Result<(), RunError> {
        if !self.threads.is_empty() {
            return Ok(());
        }
        let body = match self.prepared.carrier {
            Kernel::Uring => self.prepared.worker_body(Uring::new),
            Kernel::Epoll => self.prepared.worker_body(|_| Epoll::new()),
        };
        let cpus = Cpus::of_process();
        for worker in self.prepared.workers.clone() {
            let (sender, orders) = mpsc::channel();
            let reporter = Reporter {
                worker,
                reports: self.reporter.clone(),
            };
            let body = Arc::clone(&body);
            let body = move || {
                if let Err(error) = body(&orders, &reporter, cpus) {
                    reporter.report(Report::Failed(error));
                }
            };
            let thread = threads::spawn(&format!("brunt-load-{worker}"), body)
                .map_err(|reason| RunError::Start { worker, reason })?;
            self.threads.push(thread);
            self.orders.push(sender);
        }
        Ok(())
    }

    /// Waits for all workers to be ready, and gives what their set-up came to.
    fn await_ready(
        &mut self,
        snapshots: &mut Snapshots,
        observer: &mut dyn RunObserver,
    ) -> Result<SetUp, RunError> {
        let (mut set_up, mut ready) = (SetUp::default(), 0);
        while ready < self.orders.len() {
            if let Report::Ready(of_worker) = match self.reports.recv_timeout(WATCH) {
                Ok(report) => heard(report)?,
                Err(RecvTimeoutError::Timeout) => {
                    snapshots.deliver(observer);
                    observer.progress(Phase::SetUp, &snapshots.progress());
                    if self.control.is_interrupted() {
                        // After an interrupt it says nothing that no connection is open.
                        return Err(RunError::Interrupted);
                    }
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(RunError::Panic { worker: 0 }),
            } {
                set_up.merge(&of_worker);
                ready += 1;
            }
        }
        snapshots.deliver(observer);
        observer.progress(Phase::SetUp, &snapshots.progress());
        if self.control.is_interrupted() {
            return Err(RunError::Interrupted);
        }
        Ok(set_up)
    }

    /// Watches the round from the start of load until all workers are done: reads the process's CPU
    /// at the window's edges, shows progress, passes on an interrupt.
    fn watch(
        &mut self,
        window: Window,
        snapshots: &mut Snapshots,
        observer: &mut dyn RunObserver,
    ) -> Result<(Vec<Ended>, Watched), RunError> {
        let control = Arc::clone(&self.control);
        let mut before: Option<(u64, CpuUse)> = None;
        let mut watched = None;
        let mut ended: Vec<Option<Ended>> = self.orders.iter().map(|_| None).collect();
        while ended.iter().any(Option::is_none) {
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
                watched = Watched::since(before);
            }
            let (phase, next_edge_ns) = if now_ns < window.start_ns {
                (Phase::WarmUp, window.start_ns)
            } else if now_ns < end_ns {
                (Phase::Measure, end_ns)
            } else {
                (Phase::Drain, u64::MAX)
            };
            snapshots.deliver(observer);
            observer.progress(phase, &snapshots.progress());
            // A worker that polls on the same CPU is not to be disturbed more often than needed;
            // but the end of the window must not be slept through.
            let pause_ns = WATCH_SELDOM_NS.min(next_edge_ns.saturating_sub(now_ns));
            match self.reports.recv_timeout(Duration::from_nanos(pause_ns)) {
                Ok(report) => {
                    let worker = (report.0 - self.prepared.workers.start) as usize;
                    if let Report::Ended(end) = heard(report)? {
                        ended[worker] = Some(*end);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(RunError::Panic { worker: 0 }),
            }
        }
        let watched = watched
            .or_else(|| Watched::since(before))
            .unwrap_or_default();
        snapshots.deliver(observer);
        let ended: Vec<Ended> = ended.into_iter().flatten().collect();
        for end in &ended {
            if let Some(rest) = &end.finished.rest {
                snapshots.take(rest, observer);
            }
        }
        observer.progress(Phase::Drain, &snapshots.progress());
        Ok((ended, watched))
    }
}

impl Drop for Session {
    /// Workers leave, and close their connections.
    fn drop(&mut self) {
        self.orders.clear();
        for thread in self.threads.drain(..) {
            // What went wrong with it was reported.
            let _ = thread.join();
        }
    }
}

/// The report of a worker that is still there.
fn heard((worker, report): (u32, Report)) -> Result<Report, RunError> {
    match report {
        Report::Failed(reason) => Err(RunError::Worker { worker, reason }),
        Report::Panicked => Err(RunError::Panic { worker }),
        report @ (Report::Ready(_) | Report::Ended(_)) => Ok(report),
    }
}

/// A worker's way to say something, also that it panics: nobody is to wait for it then.
struct Reporter {
    worker: u32,
    reports: Sender<(u32, Report)>,
}

impl Reporter {
    fn report(&self, report: Report) {
        // Where nobody listens any more, nobody waits.
        let _ = self.reports.send((self.worker, report));
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.report(Report::Panicked);
        }
    }
}

/// The body of a worker thread.
type WorkerBody = dyn Fn(&Receiver<Order>, &Reporter, Cpus) -> io::Result<()> + Send + Sync;

/// Makes the body of worker threads over the backends that `make` makes.
struct OverBackend<M> {
    make: M,
}

impl<B, M> ForProtocol for OverBackend<M>
where
    B: ClientBackend + 'static,
    M: Fn(u32) -> io::Result<B> + Send + Sync + 'static,
{
    type Outcome = Arc<WorkerBody>;

    fn run<P: ClientProtocol>(self, protocol: P) -> Arc<WorkerBody> {
        Arc::new(move |orders, reporter, cpus| {
            threads::precise_timers();
            let mut worker: Option<Worker<B, P>> = None;
            while let Some(preparation) = next_round(orders, &mut worker)? {
                threads::sleep(preparation.start_delay_ns);
                let task = preparation.task;
                let spinner = Spinner::new(task.spin, preparation.threads_that_poll, cpus);
                let mut ready = match worker.take() {
                    None => {
                        let backend = (self.make)(task.connections)?;
                        Worker::new(backend, protocol.clone(), task, spinner)
                    }
                    Some(worker) => worker.again(task, spinner),
                };
                reporter.report(Report::Ready(Box::new(ready.set_up()?)));
                let Ok(Order::Start(mut start)) = orders.recv() else {
                    return Ok(());
                };
                if preparation.is_observed {
                    ready.meter(ThreadMeter::of_thread());
                }
                start.window = shifted(start.window, preparation.window_shift_ns);
                let before = CpuUse::of_thread().unwrap_or_default();
                let finished = ready.run(start)?;
                let cpu = CpuUse::of_thread().unwrap_or_default();
                reporter.report(Report::Ended(Box::new(Ended {
                    finished,
                    cpu: cpu.since(before),
                })));
                worker = Some(ready);
            }
            Ok(())
        })
    }
}

/// Waits for the next round; until it comes a worker that has connections sees to them. None when
/// there will be no other round.
fn next_round<B: ClientBackend, P: ClientProtocol>(
    orders: &Receiver<Order>,
    worker: &mut Option<Worker<B, P>>,
) -> io::Result<Option<Preparation>> {
    loop {
        let order = match worker {
            None => orders.recv().map_err(|_| TryRecvError::Disconnected),
            Some(_) => orders.try_recv(),
        };
        match (order, worker.as_mut()) {
            (Ok(Order::Prepare(preparation)), _) => return Ok(Some(*preparation)),
            (Err(TryRecvError::Empty), Some(worker)) => worker.idle(IDLE_NS)?,
            // A start without a round, or nobody who could order one.
            _ => return Ok(None),
        }
    }
}
