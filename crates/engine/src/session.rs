//! A session: workers that keep their threads, their backends and their open connections, and
//! rounds of load that are measured over them one after the other. A plain run is a session of one
//! round.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::JoinHandle;
use std::time::Duration;

use brunt_io::backend::ClientBackend;
use brunt_io::cpu::{CpuUse, bind_thread};
use brunt_io::{clock, threads};
use brunt_load::{GeneratorError, Load, RequestGenerator};
use brunt_probe::memory;
use brunt_record::{Backend, Evidence, Run, SetUp, Window};

use crate::failure::RunError;
use crate::generated::Generators;
use crate::observer::{Control, Phase, RunObserver, Snapshots};
use crate::prepare::{PrepareError, Prepared};
use crate::probes::Probes;
use crate::protocol::{ClientProtocol, ForProtocol, MakeBackend, ON_EPOLL, ON_URING};
use crate::run::{AtHand, Begun, START_MARGIN_NS, Watched, WindowEnd};
use crate::task::{Finished, Preparation};
use crate::worker::Worker;
use crate::workload::Workload;

/// How often the thread that runs a round looks around, and how often while the next edge is known.
const WATCH_NS: u64 = 10_000_000;
const WATCH_SELDOM_NS: u64 = 50_000_000;
/// How long a worker sees to its connections between two looks for the next order.
const IDLE_NS: u64 = 5_000_000;
/// How often it is looked whether the workers have left.
const LEAVE_NS: u64 = 1_000_000;

/// Workers, and the connections that they hold.
pub struct Session<'m> {
    prepared: Prepared,
    control: Arc<Control>,
    own_server: bool,
    workers: Box<dyn Workers + 'm>,
    generators: Generators,
}

/// The workers of a session: threads of this machine, or those of a simulated one.
pub(crate) trait Workers {
    /// Has all of them open what is missing for a round.
    fn set_up(&mut self, round: &mut AtHand<'_>) -> Result<Begun, RunError>;

    /// When the load begins, all of whose workers are ready.
    fn start_of_load(&mut self, round: &mut AtHand<'_>) -> Result<u64, RunError>;

    /// Has all of them make the load, which begins at `load_ns`, and waits until they have left.
    fn run(
        &mut self,
        round: &mut AtHand<'_>,
        load_ns: u64,
    ) -> Result<(Vec<Finished>, Watched), RunError>;

    /// How the window of all agents ends, a share of whose requests was done here by `own`.
    fn agreed_end(
        &mut self,
        _round: &mut AtHand<'_>,
        own: WindowEnd,
        _window: Window,
    ) -> Result<WindowEnd, RunError> {
        Ok(own)
    }

    /// What was read beside the load.
    fn evidence(&mut self, round: &mut AtHand<'_>) -> Evidence;

    /// A round failed.
    fn fail(&mut self, _control: &Control) {}

    /// The last round is over: has them leave, and close their connections: where the protocol has
    /// it so, when the servers have heard of it; once `is_hurried`, without waiting for them.
    fn leave(&mut self, control: &Control, is_hurried: &dyn Fn() -> bool);
}

/// Workers on threads of this machine.
struct Threads {
    /// To each worker; none before the first round. A worker whose sender is gone leaves.
    orders: Vec<Sender<Order>>,
    reports: Receiver<(u32, Report)>,
    reporter: Sender<(u32, Report)>,
    threads: Vec<JoinHandle<()>>,
    /// What is read beside the round at hand.
    probes: Option<Probes>,
}

/// An order to a worker.
#[derive(Debug)]
enum Order {
    /// Sets up for a round, and reports when it is ready.
    Prepare(Box<Preparation>),
    /// Load begins at this instant.
    Start(u64),
}

/// A report of a worker.
#[derive(Debug)]
enum Report {
    /// Its connections are open, as far as they can be opened.
    Ready(Box<SetUp>),
    /// Its part of the round is over.
    Ended(Box<Finished>),
    /// Its backend failed, or it panicked. It has left.
    Failed(RunError),
}

impl Prepared {
    /// A session on this machine. `own_server` says that the target lives in this process. Workers
    /// start, and connections are opened, with the first round.
    pub fn open(self, control: &Arc<Control>, own_server: bool) -> Session<'static> {
        let (reporter, reports) = mpsc::channel();
        let workers = Threads {
            orders: Vec::new(),
            reports,
            reporter,
            threads: Vec::new(),
            probes: None,
        };
        Session::new(self, control, own_server, Box::new(workers))
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
        let load = self.plan.load.clone();
        self.open(control, own_server).round(&load, observer)
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
    fn round(&mut self, load: &Load, observer: &mut dyn RunObserver) -> Result<Run, RunError>;
}

impl Rounds for Session<'_> {
    fn round(&mut self, load: &Load, observer: &mut dyn RunObserver) -> Result<Run, RunError> {
        let outcome = self.measure(load, observer);
        if outcome.is_err() {
            self.workers.fail(&self.control);
        }
        outcome
    }
}

impl<'m> Session<'m> {
    pub(crate) fn new(
        prepared: Prepared,
        control: &Arc<Control>,
        own_server: bool,
        workers: Box<dyn Workers + 'm>,
    ) -> Self {
        Self {
            prepared,
            control: Arc::clone(control),
            own_server,
            workers,
            generators: Generators::default(),
        }
    }

    /// Has the requests of all rounds made by these, one for each worker in order: those of the
    /// plan are not sent. They are dropped with the session.
    ///
    /// # Errors
    ///
    /// There is not one for each worker, or what is spoken takes no texts.
    pub fn set_generators(
        &mut self,
        generators: Vec<Box<dyn RequestGenerator>>,
    ) -> Result<(), PrepareError> {
        let workers = self.prepared.worker_count();
        let protocol = self.prepared.negotiated.protocol;
        self.generators = Generators::new(generators, workers, protocol)?;
        self.prepared.plan.traffic.is_generated = true;
        Ok(())
    }

    /// Why a generator ended the rounds so far, if one did.
    pub fn generator_error(&self) -> Option<&GeneratorError> {
        self.generators.error()
    }

    /// Has the workers leave, as dropping it does; once `is_hurried`, without waiting for servers.
    pub fn leave(mut self, is_hurried: impl Fn() -> bool) {
        self.workers.leave(&self.control, &is_hurried);
    }

    fn measure(&mut self, load: &Load, observer: &mut dyn RunObserver) -> Result<Run, RunError> {
        let prepared = self.prepared.of_round(load);
        if prepared.plan.traffic.is_generated && self.generators.is_empty() {
            return Err(RunError::NoGenerator);
        }
        self.control.done_window_ns.set(u64::MAX);
        let workers = &mut self.workers;
        let round = &mut AtHand {
            prepared: Arc::clone(&prepared),
            control: &self.control,
            own_server: self.own_server,
            generators: &mut self.generators,
            budgets: prepared.budgets(),
            snapshots: Snapshots::new(prepared.workers.clone()),
            observer,
        };
        let begun = workers.set_up(round)?;
        let set_up = &begun.set_up;
        if set_up.asked > 0 && set_up.opened == 0 && set_up.open == 0 {
            let set_up = Box::new(set_up.clone());
            return Err(RunError::NoConnection { set_up });
        }
        let load_ns = workers.start_of_load(round)?;
        let window = prepared.window_from(load_ns);
        let (mut finished, watched) = workers.run(round, load_ns)?;
        round.hand_over(window.start_ns, &mut finished);
        let end = round.window_end(&mut finished, window);
        let end = workers.agreed_end(round, end, window)?;
        let evidence = workers.evidence(round);
        Ok(round.conclude(begun, load_ns, finished, watched, end, evidence))
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.workers.leave(&self.control, &|| false);
    }
}

impl Workers for Threads {
    fn set_up(&mut self, round: &mut AtHand<'_>) -> Result<Begun, RunError> {
        let (unix_ms, setup_start_ns) = (clock::unix_ms(), clock::now_ns());
        memory::reset_peak_resident();
        let resident_before_bytes = memory::resident_bytes();
        let prepared = Arc::clone(&round.prepared);
        let control = round.control;
        let probes = Probes::start(&prepared, round.own_server, control, round.observer)?;
        self.probes = Some(probes);
        self.start(&prepared)?;
        for (place, (worker, orders)) in prepared.workers.clone().zip(&self.orders).enumerate() {
            let preparation = round.preparation(place, worker);
            // Whoever is gone has said why.
            let _ = orders.send(Order::Prepare(Box::new(preparation)));
        }
        Ok(Begun {
            setup_start_ns,
            unix_ms: Some(unix_ms),
            resident_before_bytes,
            set_up: self.await_ready(round)?,
        })
    }

    /// Soon, unless somebody else says when.
    fn start_of_load(&mut self, round: &mut AtHand<'_>) -> Result<u64, RunError> {
        let control = round.control;
        if !control.holds_start.load(Relaxed) {
            return Ok(clock::now_ns() + START_MARGIN_NS);
        }
        loop {
            round.show(Phase::Ready);
            if control.is_interrupted() {
                return Err(RunError::Interrupted);
            }
            if let Some(load_ns) = control.start_ns.take() {
                let earliest_ns = clock::now_ns() + START_MARGIN_NS;
                return match earliest_ns.checked_sub(load_ns) {
                    None | Some(0) => Ok(load_ns),
                    Some(late_ns) => Err(RunError::StartMissed { late_ns }),
                };
            }
            // Whoever says something now has failed.
            self.listen(WATCH_NS)?;
        }
    }

    /// Watches the round from the start of load until all workers are done: reads the process's CPU
    /// at the window's edges, shows progress, passes on an interrupt.
    fn run(
        &mut self,
        round: &mut AtHand<'_>,
        load_ns: u64,
    ) -> Result<(Vec<Finished>, Watched), RunError> {
        let (prepared, control) = (Arc::clone(&round.prepared), round.control);
        let window = prepared.window_from(load_ns);
        if let Some(probes) = &self.probes {
            probes.begin(load_ns, window);
        }
        for orders in &self.orders {
            let _ = orders.send(Order::Start(load_ns));
        }
        // An agreed start may be seconds away.
        let ready_until_ns = if control.holds_start.load(Relaxed) {
            load_ns
        } else {
            0
        };
        let mut before: Option<(u64, CpuUse)> = None;
        let mut watched = None;
        let mut finished: Vec<Option<Finished>> = self.orders.iter().map(|_| None).collect();
        while finished.iter().any(Option::is_none) {
            let now_ns = clock::now_ns();
            let end_ns = window.end_ns.min(control.end_ns());
            if control.is_interrupted() && !control.is_interrupted_by(now_ns) {
                if now_ns < window.start_ns {
                    control.abort();
                }
                control.interrupted_ns.set_min(now_ns);
            }
            let over_ns = if control.leaves_at_once() {
                now_ns
            } else {
                end_ns
            };
            let is_done = |place: usize| finished.get(place).is_none_or(Option::is_some);
            if let Some(place) = round.generators.look(now_ns, over_ns, is_done) {
                // Nobody waits for the thread.
                self.threads.clear();
                return Err(RunError::LeftBehind {
                    worker: prepared.workers.start + place as u32,
                });
            }
            if before.is_none() && now_ns >= window.start_ns {
                before = CpuUse::of_process().ok().map(|cpu| (now_ns, cpu));
            }
            if watched.is_none() && now_ns >= end_ns {
                watched = Watched::since(before);
            }
            let (phase, next_edge_ns) = if now_ns < ready_until_ns {
                (Phase::Ready, ready_until_ns)
            } else if now_ns < window.start_ns {
                (Phase::WarmUp, window.start_ns)
            } else if now_ns < end_ns {
                (Phase::Measure, end_ns)
            } else {
                (Phase::Drain, u64::MAX)
            };
            round.show(phase);
            // A worker that polls on the same CPU is not to be disturbed more often than needed;
            // but the end of the window must not be slept through.
            let pause_ns = WATCH_SELDOM_NS.min(next_edge_ns.saturating_sub(now_ns));
            if let Some((worker, Report::Ended(mut end))) = self.listen(pause_ns)? {
                let place = (worker - prepared.workers.start) as usize;
                round.generators.put_back(place, end.generated.take());
                finished[place] = Some(*end);
            }
        }
        let watched = watched
            .or_else(|| Watched::since(before))
            .unwrap_or_default();
        if control.is_aborted() {
            // A generator may have ended the round before there was a measurement.
            let error = round.generators.error().cloned();
            return Err(error.map_or(RunError::Interrupted, RunError::Generator));
        }
        Ok((finished.into_iter().flatten().collect(), watched))
    }

    /// With the agent that takes longest.
    fn agreed_end(
        &mut self,
        round: &mut AtHand<'_>,
        own: WindowEnd,
        window: Window,
    ) -> Result<WindowEnd, RunError> {
        let control = round.control;
        if round.prepared.plan.load.stop.requests.is_none() || !control.holds_end.load(Relaxed) {
            return Ok(own);
        }
        let own_window_ns = own.end_ns.saturating_sub(window.start_ns);
        control.done_window_ns.set(own_window_ns);
        loop {
            round.show(Phase::Drain);
            if let Some(agreed_ns) = control.agreed_end_ns.known() {
                // Nothing that was measured here lies outside.
                let end_ns = agreed_ns.max(own.end_ns);
                return Ok(WindowEnd {
                    end_ns,
                    is_early: own.is_early || end_ns > own.end_ns,
                    ..own
                });
            }
            if control.is_interrupted() {
                // Nobody says it any more.
                return Ok(WindowEnd {
                    is_cut_short: true,
                    ..own
                });
            }
            // Whoever says something now has failed.
            self.listen(WATCH_NS)?;
        }
    }

    fn evidence(&mut self, round: &mut AtHand<'_>) -> Evidence {
        let progress = round.snapshots.progress();
        let probes = self.probes.take();
        probes.map_or_else(Evidence::default, |probes| {
            probes.finish(round.control, &progress, round.observer)
        })
    }

    fn fail(&mut self, control: &Control) {
        control.abort();
        self.orders.clear();
        self.probes = None;
    }

    fn leave(&mut self, control: &Control, is_hurried: &dyn Fn() -> bool) {
        self.orders.clear();
        while !self.threads.iter().all(JoinHandle::is_finished) {
            if is_hurried() {
                control.hurry();
            }
            threads::sleep(LEAVE_NS);
        }
    }
}

impl Threads {
    fn start(&mut self, prepared: &Prepared) -> Result<(), RunError> {
        if !self.threads.is_empty() {
            return Ok(());
        }
        let tls = prepared.negotiated.tls_client();
        let body = match prepared.backend {
            Backend::Uring => prepared.requests.run(ON_URING, tls, BodyMaker),
            Backend::Epoll => prepared.requests.run(ON_EPOLL, tls, BodyMaker),
            Backend::Sim => return Err(RunError::OfSimulation),
        };
        for (place, worker) in prepared.workers.clone().enumerate() {
            let (sender, orders) = mpsc::channel();
            let reporter = self.reporter.clone();
            let cpu = prepared.placed.cpus.get(place).copied();
            let body = Arc::clone(&body);
            let failed = move |reason| RunError::Worker { worker, reason };
            let body = move || {
                // Where nobody listens any more, nobody waits.
                let report = |report| drop(reporter.send((worker, report)));
                // Where it may not be bound, the scheduler chooses, and the report says so.
                let bound_cpu = cpu.filter(|&cpu| bind_thread(cpu).is_ok());
                let course = AssertUnwindSafe(|| body(&orders, &report, bound_cpu));
                let panic = |_| Err(io::Error::other("it panicked; this is a bug in brunt"));
                if let Err(reason) = catch_unwind(course).unwrap_or_else(panic) {
                    report(Report::Failed(failed(reason)));
                }
            };
            let name = format!("brunt-load-{worker}");
            let thread = threads::spawn(&name, body).map_err(failed)?;
            self.threads.push(thread);
            self.orders.push(sender);
        }
        Ok(())
    }

    /// The report that comes within `ns`, if one does: that of a worker which is still there.
    fn listen(&self, ns: u64) -> Result<Option<(u32, Report)>, RunError> {
        match self.reports.recv_timeout(Duration::from_nanos(ns)) {
            Ok((_, Report::Failed(error))) => Err(error),
            report => Ok(report.ok()),
        }
    }

    /// Waits for all workers to be ready, and gives what their set-up came to.
    fn await_ready(&self, round: &mut AtHand<'_>) -> Result<SetUp, RunError> {
        let (mut set_up, mut ready) = (SetUp::default(), 0);
        loop {
            round.show(Phase::SetUp);
            if round.control.is_interrupted() {
                // After an interrupt it says nothing that no connection is open.
                return Err(RunError::Interrupted);
            }
            if ready == self.orders.len() {
                return Ok(set_up);
            }
            if let Some((_, Report::Ready(of_worker))) = self.listen(WATCH_NS)? {
                set_up.merge(&of_worker);
                ready += 1;
            }
        }
    }
}

/// The body of a worker thread: how it hears and reports, and the CPU that it is bound to.
type WorkerBody =
    dyn Fn(&Receiver<Order>, &dyn Fn(Report), Option<u32>) -> io::Result<()> + Send + Sync;

/// Makes the body of worker threads.
struct BodyMaker;

impl ForProtocol<()> for BodyMaker {
    type Outcome = Arc<WorkerBody>;

    fn run<B, P, W>(self, make: MakeBackend<(), B>, protocol: P, workload: W) -> Self::Outcome
    where
        B: ClientBackend<Transport = P::Transport> + 'static,
        P: ClientProtocol,
        W: Workload,
    {
        Arc::new(move |orders, report, bound_cpu| {
            threads::precise_timers();
            let mut worker: Option<Worker<B, P, W>> = None;
            while let Some(Order::Prepare(preparation)) = match &mut worker {
                None => orders.recv().ok(),
                Some(worker) => worker.next_order(orders)?,
            } {
                let mut ready = match worker.take() {
                    None => {
                        let backend = make(preparation.task.place(&mut ()))?;
                        Worker::new(backend, protocol.clone(), workload.clone(), *preparation)
                    }
                    Some(worker) => worker.again(*preparation),
                };
                report(Report::Ready(Box::new(ready.set_up()?)));
                let Some(Order::Start(load_ns)) = ready.next_order(orders)? else {
                    ready.leave();
                    return Ok(());
                };
                let before = CpuUse::of_thread().unwrap_or_default();
                let mut finished = ready.run(load_ns)?;
                finished.cpu = CpuUse::of_thread().unwrap_or_default().since(before);
                finished.bound_cpu = bound_cpu;
                report(Report::Ended(Box::new(finished)));
                worker = Some(ready);
            }
            if let Some(worker) = &mut worker {
                worker.leave();
            }
            Ok(())
        })
    }
}

impl<P: ClientProtocol, B: ClientBackend<Transport = P::Transport>, W: Workload> Worker<B, P, W> {
    /// Waits for the next order, which may take long: until it comes the worker sees to its
    /// connections. Absent when nobody is there any more who could give one.
    fn next_order(&mut self, orders: &Receiver<Order>) -> io::Result<Option<Order>> {
        loop {
            match orders.try_recv() {
                Ok(order) => return Ok(Some(order)),
                Err(TryRecvError::Empty) => self.stand_by(IDLE_NS)?,
                Err(TryRecvError::Disconnected) => return Ok(None),
            }
        }
    }
}
