//! The course of a simulated session: the same workers, one after the other, each in a virtual time
//! of its own that begins at 0. They speak what was negotiated, over TLS where that was.

use std::sync::Arc;

use brunt_io::backend::ClientBackend;
use brunt_io::virtual_machine::VirtualMachine;
use brunt_record::{Evidence, Run, SetUp, ThreadUse};

use crate::failure::RunError;
use crate::observer::{Control, Phase};
use crate::prepare::Prepared;
use crate::protocol::{Backends, ClientProtocol, ForProtocol, MakeBackend};
use crate::run::{AtHand, Begun, START_MARGIN_NS, Watched};
use crate::session::{Rounds, Session, Workers};
use crate::task::Finished;
use crate::worker::Worker;
use crate::workload::Workload;

/// A machine whose accounts are those of a run.
pub trait Machine: VirtualMachine<ThreadUse = ThreadUse, Evidence = Evidence> + 'static {}

impl<M: VirtualMachine<ThreadUse = ThreadUse, Evidence = Evidence> + 'static> Machine for M {}

impl Prepared {
    /// A session in `machine`, the one that it was prepared in. The outcome of its rounds follows
    /// from plan and machine alone. An interrupt has no effect, for there is no one instant that
    /// all workers have reached; [`Control::abort`] ends a round without a result.
    ///
    /// What workers counted is shown when each is done. A round ends with
    /// [`RunError::Interrupted`] when it was aborted, or the machine's own interrupt lies before
    /// the window, and with [`RunError::Worker`] when nothing more would ever happen in the
    /// simulation. After a generator failed, its worker sends nothing.
    pub fn open_in<'m, M: Machine>(
        self,
        machine: &'m mut M,
        control: &Arc<Control>,
    ) -> Session<'m> {
        let backends = Backends::<M, _, _> {
            streams: |worker| Ok(worker.machine.start_worker(worker.number, 0)),
            datagrams: |worker| Ok(worker.machine.start_datagram_worker(worker.number, 0)),
        };
        let tls = self.negotiated.tls_client();
        let workers = self.requests.run(backends, tls, WorkersIn(machine));
        Session::new(self, control, false, workers)
    }

    /// A session of the one round that the plan is.
    ///
    /// # Errors
    ///
    /// As [`Rounds::round`].
    pub fn run_in<M: Machine>(
        self,
        machine: &mut M,
        control: &Arc<Control>,
    ) -> Result<Run, RunError> {
        let load = self.plan.load.clone();
        let ignore = &mut |_, _: &_| {};
        self.open_in(machine, control).round(&load, ignore)
    }
}

/// Finds workers for a machine.
struct WorkersIn<'m, M>(&'m mut M);

impl<'m, M: Machine> ForProtocol<M> for WorkersIn<'m, M> {
    type Outcome = Box<dyn Workers + 'm>;

    fn run<B, P, W>(self, make: MakeBackend<M, B>, protocol: P, workload: W) -> Self::Outcome
    where
        B: ClientBackend<Transport = P::Transport> + 'static,
        P: ClientProtocol,
        W: Workload,
    {
        Box::new(WorkerGroup {
            machine: self.0,
            make,
            protocol,
            workload,
            workers: Vec::new(),
            ready: Vec::new(),
        })
    }
}

struct WorkerGroup<'m, M, B, P: ClientProtocol, W> {
    machine: &'m mut M,
    make: MakeBackend<M, B>,
    protocol: P,
    workload: W,
    /// None before the first round.
    workers: Vec<Worker<B, P, W>>,
    /// Of the round at hand, before its load, and the CPU time that each had before it.
    ready: Vec<(Worker<B, P, W>, u64)>,
}

impl<M, B, P, W> Workers for WorkerGroup<'_, M, B, P, W>
where
    M: Machine,
    B: ClientBackend<Transport = P::Transport>,
    P: ClientProtocol,
    W: Workload,
{
    fn set_up(&mut self, round: &mut AtHand<'_>) -> Result<Begun, RunError> {
        let prepared = Arc::clone(&round.prepared);
        let former = prepared.workers.clone().take(self.workers.len());
        let setup_start_ns = former.map(|worker| self.machine.now_ns(worker)).min();
        let mut set_up = SetUp::default();
        self.ready.clear();
        let mut former = std::mem::take(&mut self.workers).into_iter();
        for (place, worker) in prepared.workers.clone().enumerate() {
            let preparation = round.preparation(place, worker);
            let failed = |reason| RunError::Worker { worker, reason };
            let (mut ready, cpu_before_ns) = match former.next() {
                Some(former) => (former.again(preparation), self.machine.cpu_ns(worker)),
                None => {
                    let place = preparation.task.place(&mut *self.machine);
                    let backend = (self.make)(place).map_err(failed)?;
                    let (protocol, workload) = (self.protocol.clone(), self.workload.clone());
                    (Worker::new(backend, protocol, workload, preparation), 0)
                }
            };
            set_up.merge(&ready.set_up().map_err(failed)?);
            self.ready.push((ready, cpu_before_ns));
        }
        round.show(Phase::SetUp);
        let window = prepared.window_from(self.start_of_load(round)?);
        if let Some(interrupt_ns) = self.machine.interrupt_ns() {
            if interrupt_ns < window.start_ns {
                return Err(RunError::Interrupted);
            }
            round.control.interrupted_ns.set_min(interrupt_ns);
        }
        Ok(Begun {
            setup_start_ns: setup_start_ns.unwrap_or(0),
            unix_ms: None,
            resident_before_bytes: None,
            set_up,
        })
    }

    /// When the last of them is ready.
    fn start_of_load(&mut self, round: &mut AtHand<'_>) -> Result<u64, RunError> {
        let workers = round.prepared.workers.clone();
        let ready_ns = workers.map(|worker| self.machine.now_ns(worker));
        Ok(ready_ns.max().unwrap_or(0) + START_MARGIN_NS)
    }

    fn run(
        &mut self,
        round: &mut AtHand<'_>,
        load_ns: u64,
    ) -> Result<(Vec<Finished>, Watched), RunError> {
        let (prepared, control) = (Arc::clone(&round.prepared), round.control);
        let window = prepared.window_from(load_ns);
        let mut all = Vec::new();
        let ready = prepared.workers.clone().zip(self.ready.drain(..));
        for (place, (worker, (mut ready, cpu_before_ns))) in ready.enumerate() {
            let observed = window.start_ns..window.end_ns.min(control.end_ns());
            self.machine.observe(worker, observed);
            let finished = ready.run(load_ns);
            let mut finished = finished.map_err(|reason| RunError::Worker { worker, reason })?;
            self.machine.end_window(worker);
            if let Some(thread) = self.machine.thread_use(worker) {
                finished.recorder.record().thread = Some(thread);
            }
            round.show(Phase::Measure);
            round.generators.put_back(place, finished.generated.take());
            finished.cpu.user_ns = self.machine.cpu_ns(worker) - cpu_before_ns;
            all.push(finished);
            self.workers.push(ready);
        }
        if control.is_aborted() {
            return Err(RunError::Interrupted);
        }
        let drained_ns = all
            .iter_mut()
            .filter_map(|finished| finished.recorder.record().edges.drained.get())
            .max();
        let drained_ns = drained_ns.and_then(|at_ns| u64::try_from(at_ns).ok());
        if drained_ns.is_some_and(|at_ns| control.is_interrupted_by(at_ns)) {
            control.interrupt();
        }
        Ok((all, Watched::default()))
    }

    fn evidence(&mut self, _round: &mut AtHand<'_>) -> Evidence {
        self.machine.evidence()
    }

    fn leave(&mut self, _control: &Control, _is_hurried: &dyn Fn() -> bool) {
        for mut worker in self.workers.drain(..) {
            worker.leave();
        }
    }
}
