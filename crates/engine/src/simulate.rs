//! The course of a simulated run: the same workers, one after the other, each in a virtual time of
//! its own that begins at 0. They speak what was agreed on, over TLS where that was.

use std::io;
use std::sync::Arc;

use brunt_load::{LoadModel, share};
use brunt_measure::{Backend as BackendName, Protocol, Run, RunEdges, SetUp, Window};

use crate::assignment::fault_of;
use crate::backend::Backend;
use crate::backend::sim::evidence::evidence;
use crate::backend::sim::{Sim, SimCounts, SimHandle, SimSettings, Spoken};
use crate::budget::Budget;
use crate::clock;
use crate::control::{Control, Progress};
use crate::gate::Start;
use crate::host::{CpuUse, Cpus};
use crate::prepare::Prepared;
use crate::protocol::{ClientProtocol, ForProtocol};
use crate::run::{
    Conclusion, Ended, RunError, START_MARGIN_NS, WATCH_NS, Watched, shifted, unopened,
};
use crate::spin::Spinner;
use crate::threads;
use crate::worker::Worker;

/// Runs in simulation, whatever backend was prepared, and gives the run with what the simulated
/// servers of all workers counted. The outcome follows from `prepared` and `settings` alone.
///
/// # Errors
///
/// [`RunError::Interrupted`] when `settings` put the interrupt before the window;
/// [`RunError::Worker`] when nothing more would ever happen in the simulation, or the server's side
/// of TLS cannot be made.
pub fn simulate(prepared: Prepared, settings: &SimSettings) -> Result<(Run, SimCounts), RunError> {
    let control = prepared.control();
    simulate_under(prepared, settings, &control)
}

/// `brunt --backend sim`: simulates with the default settings while `show` is called now and then.
/// An interrupt ends it without a result, for there is no one instant that all workers have
/// reached.
pub(crate) fn simulate_and_show(
    prepared: Prepared,
    control: &Arc<Control>,
    show: &mut dyn FnMut(&str, Progress),
) -> Result<Run, RunError> {
    let started_unix_ms = clock::unix_ms();
    let own = Arc::clone(control);
    let body = move || simulate_under(prepared, &SimSettings::new(SimSettings::SEED), &own);
    let thread = threads::spawn("brunt-sim", body)
        .map_err(|reason| RunError::Start { worker: 0, reason })?;
    while !thread.is_finished() {
        show("simulation", control.progress());
        if control.is_interrupted() {
            control.abort();
        }
        threads::sleep(WATCH_NS);
    }
    let outcome = thread.join().map_err(|_| RunError::Panic { worker: 0 })?;
    let (mut run, _) = outcome?;
    run.wall.started_unix_ms = started_unix_ms;
    Ok(run)
}

/// One simulated worker, with its connections open.
struct Ready<B, P: ClientProtocol> {
    worker: Worker<B, P>,
    handle: SimHandle,
    budget: Option<Arc<Budget>>,
    window_shift_ns: u64,
}

fn simulate_under(
    mut prepared: Prepared,
    settings: &SimSettings,
    control: &Arc<Control>,
) -> Result<(Run, SimCounts), RunError> {
    prepared.backend = BackendName::Sim;
    prepared.backend_note = None;
    let agreement = &mut prepared.agreement;
    let protocol = agreement.protocol;
    if let (Protocol::Http2, Some(most)) = (protocol, settings.server.http2.streams_max) {
        // As on the connection that is made before a run.
        agreement.depth = agreement.depth.min(most.max(1));
    }
    let tls = agreement.tls_client();
    let requests = prepared.requests.clone();
    match tls {
        None => {
            let spoken = Spoken::clear(protocol);
            requests.run(Simulation {
                prepared,
                settings,
                control,
                spoken,
                make: |sim| sim,
            })
        }
        Some(tls) => {
            let spoken = Spoken::secure(protocol).map_err(|error| RunError::Worker {
                worker: 0,
                reason: io::Error::other(error),
            })?;
            requests.run(Simulation {
                prepared,
                settings,
                control,
                spoken,
                make: |sim| tls.over(sim),
            })
        }
    }
}

/// Workers over what `make` makes of their simulated networks.
struct Simulation<'a, M> {
    prepared: Prepared,
    settings: &'a SimSettings,
    control: &'a Arc<Control>,
    spoken: Spoken,
    make: M,
}

impl<B: Backend, M: Fn(Sim) -> B> ForProtocol for Simulation<'_, M> {
    type Outcome = Result<(Run, SimCounts), RunError>;

    fn run<P: ClientProtocol>(self, protocol: P) -> Self::Outcome {
        let set_up = set_up(&self, &protocol)?;
        let Simulation {
            prepared,
            settings,
            control,
            ..
        } = self;
        simulate_load(prepared, settings, control, set_up)
    }
}

/// Simulates the load by workers whose connections are open.
fn simulate_load<B: Backend, P: ClientProtocol>(
    prepared: Prepared,
    settings: &SimSettings,
    control: &Arc<Control>,
    (crew, set_up): (Vec<Ready<B, P>>, SetUp),
) -> Result<(Run, SimCounts), RunError> {
    let mut edges = RunEdges::default();
    edges.setup_start.set(0);
    let ready_ns = crew.iter().map(|ready| ready.handle.now_ns()).max();
    let load_ns = ready_ns.unwrap_or(0) + START_MARGIN_NS;
    let window = prepared.window_from(load_ns);
    edges.warmup_start.set(load_ns);
    if let Some(interrupt_ns) = settings.interrupt_ns {
        if interrupt_ns < window.start_ns {
            return Err(RunError::Interrupted);
        }
        control.interrupted_at(interrupt_ns);
    }
    if let Some(error) = unopened(&set_up, &prepared.plan) {
        return Err(error);
    }
    let mut ended = Vec::new();
    let mut unsent = 0;
    let mut counts = SimCounts::default();
    let mut ledgers = Vec::new();
    for (worker, ready) in (0..).zip(crew) {
        let mut start = Start { load_ns, window };
        start.window = shifted(start.window, ready.window_shift_ns);
        ready.handle.observe(Window {
            end_ns: start.window.end_ns.min(control.end_ns()),
            ..start.window
        });
        let mut finished = ready
            .worker
            .run(start)
            .map_err(|reason| RunError::Worker { worker, reason })?;
        counts.merge(&ready.handle.counts());
        unsent += ready.budget.map_or(0, |budget| budget.left());
        let ledger = ready.handle.ledger();
        if settings.host.is_some() {
            finished.recorder.record().thread = Some(ledger.thread_use());
        }
        ended.push(Ended {
            finished,
            cpu: CpuUse {
                user_ns: ledger.life_cpu_ns(),
                system_ns: 0,
            },
        });
        ledgers.push(ledger);
    }
    if control.is_aborted() {
        return Err(RunError::Interrupted);
    }
    let drained_ns = ended
        .iter_mut()
        .filter_map(|end| end.finished.recorder.record().edges.drained.get())
        .max();
    if drained_ns.is_some_and(|at_ns| control.is_interrupted_by(at_ns)) {
        control.interrupt();
    }
    let run = prepared.conclude(Conclusion {
        control,
        own_server: false,
        wall_start: None,
        edges,
        window,
        ended,
        unsent,
        watched: Watched::default(),
        evidence: evidence(settings, &ledgers),
    });
    Ok((run, counts))
}

/// Opens the connections of all workers.
fn set_up<B: Backend, P: ClientProtocol, M: Fn(Sim) -> B>(
    simulation: &Simulation<'_, M>,
    protocol: &P,
) -> Result<(Vec<Ready<B, P>>, SetUp), RunError> {
    let Simulation {
        prepared,
        settings,
        control,
        spoken,
        make,
    } = simulation;
    let plan = &prepared.plan;
    let workers = plan.workers.get();
    let (mut crew, mut set_up) = (Vec::new(), SetUp::default());
    let mut connections_before = 0;
    for worker in 0..workers {
        let connections = share(plan.connections.get(), workers, worker);
        let budget = plan.stop.requests.map(|requests| {
            let requests = match plan.model {
                LoadModel::Closed { .. } => {
                    let dealt =
                        |connections| dealt_to(requests, connections, plan.connections.get());
                    dealt(connections_before + connections) - dealt(connections_before)
                }
                // As the arrivals are.
                LoadModel::Open { .. } | LoadModel::Sessions { .. } => {
                    let (all, number) = (u64::from(workers), u64::from(worker));
                    requests / all + u64::from(number < requests % all)
                }
            };
            Arc::new(Budget::new(requests, 1))
        });
        connections_before += connections;
        let start_delay_ns = fault_of(plan.faults.start_delay, worker);
        let (sim, handle) = Sim::speaking(settings, spoken, worker, start_delay_ns);
        let task = prepared.task(worker, budget.clone(), control);
        let spinner = Spinner::new(task.spin, workers, Cpus::of_process());
        let mut ready = Worker::new(make(sim), protocol.clone(), task, spinner);
        let of_worker = ready
            .set_up()
            .map_err(|reason| RunError::Worker { worker, reason })?;
        set_up.merge(&of_worker);
        crew.push(Ready {
            worker: ready,
            handle,
            budget,
            window_shift_ns: fault_of(plan.faults.window_shift, worker),
        });
    }
    Ok((crew, set_up))
}

/// How many of `requests` the first `connections` of `all` have among them. Workers in simulation
/// cannot share a budget, for they do not live at the same time: in a closed loop each has the
/// part of its connections.
fn dealt_to(requests: u64, connections: u32, all: u32) -> u64 {
    let dealt = u128::from(requests) * u128::from(connections) / u128::from(all.max(1));
    u64::try_from(dealt).unwrap_or(requests)
}

#[cfg(test)]
mod tests {
    use super::dealt_to;

    #[test]
    fn requests_are_dealt_by_connections_and_none_is_lost() {
        for requests in [0, 1, 7, 1_000, u64::MAX] {
            for all in 1..20 {
                assert_eq!(dealt_to(requests, all, all), requests);
                let dealt: Vec<u64> = (0..=all)
                    .map(|count| dealt_to(requests, count, all))
                    .collect();
                assert!(dealt.is_sorted());
            }
        }
    }
}
