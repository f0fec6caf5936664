//! The course of a simulated session: the same workers, one after the other, each in a virtual time
//! of its own that begins at 0. They speak what was negotiated, over TLS where that was.

use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

use brunt_io::cpu::{CpuUse, Cpus};
use brunt_io::spin::Spinner;
use brunt_io::virtual_machine::VirtualMachine;
use brunt_load::{GeneratorError, RequestGenerator, Round};
use brunt_record::{Evidence, Run, RunEdges, SetUp, ThreadUse, Window};

use crate::backlog::Budget;
use crate::failure::RunError;
use crate::generated::{Generators, GeneratorsError};
use crate::observer::{Control, Phase, RunObserver, Snapshots, snapshots};
use crate::prepare::Prepared;
use crate::protocol::{Backends, ClientProtocol, ForProtocol, OverTls, WorkerTransport};
use crate::run::{Conclusion, Ended, START_MARGIN_NS, Watched, hand_over_log, unopened};
use crate::session::Rounds;
use crate::task::Start;
use crate::worker::Worker;
use crate::workload::Workload;

/// A machine whose accounts are those of a run.
pub trait Machine: VirtualMachine<ThreadUse = ThreadUse, Evidence = Evidence> {}

impl<M: VirtualMachine<ThreadUse = ThreadUse, Evidence = Evidence>> Machine for M {}

/// A session in simulation. The outcome of its rounds follows from plan and machine alone.
pub struct SimulatedSession<'m> {
    prepared: Prepared,
    control: Arc<Control>,
    group: Box<dyn SimulatedWorkers + 'm>,
    generators: Generators,
}

impl Prepared {
    /// A session in `machine`, the one that it was prepared in. An interrupt has no effect, for
    /// there is no one instant that all workers have reached; [`Control::abort`] ends a round
    /// without a result.
    pub fn open_in<'m, M: Machine>(
        self,
        machine: &'m mut M,
        control: &Arc<Control>,
    ) -> SimulatedSession<'m> {
        let backends = InMachine(PhantomData);
        let group: Box<dyn SimulatedWorkers + 'm> = match self.negotiated.tls_client() {
            None => self.requests.run(WorkerMaker { machine, backends }),
            Some(client) => self.requests.run(WorkerMaker {
                machine,
                backends: OverTls {
                    inner: backends,
                    client,
                },
            }),
        };
        SimulatedSession {
            prepared: self,
            control: Arc::clone(control),
            group,
            generators: Generators::default(),
        }
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
        let round = Round::of(&self.plan);
        let ignore = &mut |_, _: &_| {};
        self.open_in(machine, control).round(&round, ignore)
    }
}

impl SimulatedSession<'_> {
    /// As [`crate::Session::set_generators`].
    ///
    /// # Errors
    ///
    /// There is not one for each worker, or what is spoken takes no texts.
    pub fn set_generators(
        &mut self,
        generators: Vec<Box<dyn RequestGenerator>>,
    ) -> Result<(), GeneratorsError> {
        let workers = self.prepared.worker_count();
        let protocol = self.prepared.negotiated.protocol;
        self.generators = Generators::new(generators, workers, protocol)?;
        self.prepared.plan.is_generated = true;
        Ok(())
    }

    /// Why a generator ended the rounds so far, if one did: its worker sent nothing from then on.
    pub fn generator_error(&self) -> Option<&GeneratorError> {
        self.generators.error()
    }
}

/// What workers counted is shown when each is done. A round ends with [`RunError::Interrupted`]
/// when it was aborted, or the machine's own interrupt lies before the window, and with
/// [`RunError::Worker`] when nothing more would ever happen in the simulation.
impl Rounds for SimulatedSession<'_> {
    fn round(&mut self, round: &Round, observer: &mut dyn RunObserver) -> Result<Run, RunError> {
        let prepared = self.prepared.of_round(round);
        self.generators.check(&prepared.plan)?;
        self.group
            .round(&prepared, &self.control, (&mut self.generators, observer))
    }
}

/// The workers of a session, whatever they speak.
trait SimulatedWorkers {
    fn round(
        &mut self,
        prepared: &Arc<Prepared>,
        control: &Arc<Control>,
        round: (&mut Generators, &mut dyn RunObserver),
    ) -> Result<Run, RunError>;
}

/// The backends of a machine, from the beginning of its time on.
struct InMachine<M>(PhantomData<M>);

impl<M: Machine> Backends for InMachine<M> {
    type Machine = M;
    type Streams = M::Streams;
    type Datagrams = M::Datagrams;

    fn streams(&self, machine: &mut M, worker: u32, _slots: u32) -> io::Result<M::Streams> {
        Ok(machine.start_worker(worker, 0))
    }

    fn datagrams(&self, machine: &mut M, worker: u32, _slots: u32) -> io::Result<M::Datagrams> {
        Ok(machine.start_datagram_worker(worker, 0))
    }
}

/// Finds workers for a machine, on these backends.
struct WorkerMaker<'m, B: Backends> {
    machine: &'m mut B::Machine,
    backends: B,
}

impl<'m, B: Backends<Machine: Machine> + 'm> ForProtocol for WorkerMaker<'m, B> {
    type Outcome = Box<dyn SimulatedWorkers + 'm>;

    fn run<P: ClientProtocol, W: Workload>(self, protocol: P, workload: W) -> Self::Outcome {
        Box::new(WorkerGroup {
            machine: self.machine,
            backends: self.backends,
            protocol,
            workload,
            workers: Vec::new(),
        })
    }
}

/// The backend of a worker of a protocol.
type BackendOf<B, P> = <<P as ClientProtocol>::Transport as WorkerTransport>::Backend<B>;

struct WorkerGroup<'m, B: Backends, P: ClientProtocol, W: Workload> {
    machine: &'m mut B::Machine,
    backends: B,
    protocol: P,
    workload: W,
    /// None before the first round.
    workers: Vec<Worker<BackendOf<B, P>, P, W>>,
}

impl<B: Backends, P: ClientProtocol, W: Workload> Drop for WorkerGroup<'_, B, P, W> {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            worker.leave();
        }
    }
}

/// What a worker is given for a round.
struct Ready<B, P: ClientProtocol, W: Workload> {
    worker: Worker<B, P, W>,
    budget: Option<Arc<Budget>>,
    cpu_before_ns: u64,
}

impl<B, P, W> SimulatedWorkers for WorkerGroup<'_, B, P, W>
where
    B: Backends<Machine: Machine>,
    P: ClientProtocol,
    W: Workload,
{
    fn round(
        &mut self,
        prepared: &Arc<Prepared>,
        control: &Arc<Control>,
        (generators, observer): (&mut Generators, &mut dyn RunObserver),
    ) -> Result<Run, RunError> {
        control.begin_round();
        let (sender, mut shown) = snapshots(prepared.workers.clone(), observer);
        let mut edges = RunEdges::default();
        let former = prepared.workers.clone().take(self.workers.len());
        let setup_ns = former.map(|worker| self.machine.now_ns(worker)).min();
        edges.setup_start.set(setup_ns.unwrap_or(0));
        let (mut group, mut set_up) = (Vec::new(), SetUp::default());
        let mut former = std::mem::take(&mut self.workers).into_iter();
        for (place, worker) in prepared.workers.clone().enumerate() {
            // Workers in simulation cannot share a budget, for they do not live at the same time.
            let requests = prepared.plan.requests_of(worker..worker + 1);
            let budget = requests.map(|requests| Arc::new(Budget::new(requests, 1)));
            let task = prepared.task(worker, budget.clone(), control, &sender);
            let spinner = Spinner::new(
                prepared.spin(),
                prepared.plan.workers.get(),
                Cpus::of_process(),
            );
            let (mut ready, cpu_before_ns) = match former.next() {
                Some(former) => {
                    let cpu_before_ns = self.machine.cpu_ns(worker);
                    (former.again(task, spinner), cpu_before_ns)
                }
                None => {
                    let backend = P::Transport::backend(
                        &self.backends,
                        self.machine,
                        worker,
                        task.connections,
                    )
                    .map_err(|reason| RunError::Worker { worker, reason })?;
                    let (protocol, workload) = (self.protocol.clone(), self.workload.clone());
                    (Worker::new(backend, protocol, workload, task, spinner), 0)
                }
            };
            if let Some(generated) = generators.take(place) {
                ready.generate(generated);
            }
            let of_worker = ready
                .set_up()
                .map_err(|reason| RunError::Worker { worker, reason })?;
            set_up.merge(&of_worker);
            group.push(Ready {
                worker: ready,
                budget,
                cpu_before_ns,
            });
        }
        drop(sender);
        shown.deliver(observer);
        observer.progress(Phase::SetUp, &shown.progress());
        self.load(
            prepared,
            control,
            edges,
            group,
            &set_up,
            (generators, &mut shown, observer),
        )
    }
}

impl<B, P, W> WorkerGroup<'_, B, P, W>
where
    B: Backends<Machine: Machine>,
    P: ClientProtocol,
    W: Workload,
{
    /// Simulates the load by workers whose connections are open.
    fn load(
        &mut self,
        prepared: &Arc<Prepared>,
        control: &Arc<Control>,
        mut edges: RunEdges,
        group: Vec<Ready<BackendOf<B, P>, P, W>>,
        set_up: &SetUp,
        (generators, shown, observer): (&mut Generators, &mut Snapshots, &mut dyn RunObserver),
    ) -> Result<Run, RunError> {
        let workers = prepared.workers.clone();
        let ready_ns = workers.clone().map(|worker| self.machine.now_ns(worker));
        let load_ns = ready_ns.max().unwrap_or(0) + START_MARGIN_NS;
        let window = prepared.window_from(load_ns);
        edges.warmup_start.set(load_ns);
        if let Some(interrupt_ns) = self.machine.interrupt_ns() {
            if interrupt_ns < window.start_ns {
                return Err(RunError::Interrupted);
            }
            control.interrupted_at(interrupt_ns);
        }
        if let Some(error) = unopened(set_up) {
            return Err(error);
        }
        let mut ended = Vec::new();
        let mut unsent = 0;
        for (place, (worker, mut ready)) in workers.zip(group).enumerate() {
            let start = Start { load_ns, window };
            let observed = Window {
                end_ns: start.window.end_ns.min(control.end_ns()),
                ..start.window
            };
            self.machine
                .observe(worker, observed.start_ns..observed.end_ns);
            let mut finished = ready
                .worker
                .run(start)
                .map_err(|reason| RunError::Worker { worker, reason })?;
            self.machine.end_window(worker);
            unsent += ready.budget.map_or(0, |budget| budget.left());
            if let Some(thread) = self.machine.thread_use(worker) {
                finished.recorder.record().thread = Some(thread);
            }
            shown.deliver(observer);
            if let Some(rest) = &finished.rest {
                shown.take(rest, observer);
            }
            observer.progress(Phase::Measure, &shown.progress());
            let mut end = Ended {
                finished,
                cpu: CpuUse {
                    user_ns: self.machine.cpu_ns(worker) - ready.cpu_before_ns,
                    system_ns: 0,
                },
                bound_cpu: None,
            };
            generators.put_back(place, end.finished.generated.take());
            ended.push(end);
            self.workers.push(ready.worker);
        }
        if control.is_aborted() {
            return Err(RunError::Interrupted);
        }
        let drained_ns = ended
            .iter_mut()
            .filter_map(|end| end.finished.recorder.record().edges.drained.get())
            .max();
        let drained_ns = drained_ns.and_then(|at_ns| u64::try_from(at_ns).ok());
        if drained_ns.is_some_and(|at_ns| control.is_interrupted_by(at_ns)) {
            control.interrupt();
        }
        observer.progress(Phase::Drain, &shown.progress());
        hand_over_log(&prepared.plan, window.start_ns, &mut ended, observer);
        let ending = prepared.ending(control, &mut ended, unsent, window);
        Ok(prepared.conclude(Conclusion {
            control,
            own_server: false,
            wall_start: None,
            resident_before_bytes: None,
            edges,
            window,
            ended,
            unsent,
            ending,
            watched: Watched::default(),
            evidence: self.machine.evidence(),
        }))
    }
}
