//! A round, from what its workers need to one run of all that they counted; and what a run does not
//! find out by itself: how it was called, and what it was asked to reach.

use std::hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState};
use std::sync::Arc;

use brunt_io::backend::Peer;
use brunt_io::clock;
use brunt_io::cpu::CpuUse;
use brunt_io::spin::Spinner;
use brunt_judge::{NoSuccessCause, RunFigures};
use brunt_load::{Amounts, Plan, Work};
use brunt_probe::memory;
use brunt_record::{
    AgentClock, AgentRecord, Evidence, FailureKind, HostUse, Latencies, Negotiated, Objective,
    Once, RequestLog, Run, RunEdges, Seeds, SetUp, Window, WorkerRecord,
};
use thiserror::Error;

use crate::backlog::Budgets;
use crate::failure::RunError;
use crate::generated::Generators;
use crate::observer::{Control, Phase, Progress, RunObserver, Snapshots};
use crate::prepare::{PrepareError, Prepared, address_of, prepare};
use crate::task::{Finished, Preparation};

/// From the publication of the start until load begins: all workers know it by then, on a busy
/// machine too.
pub(crate) const START_MARGIN_NS: u64 = 20_000_000;

/// How a round began whose workers are ready.
pub(crate) struct Begun {
    pub(crate) setup_start_ns: u64,
    /// The wall clock at that time; none in virtual time.
    pub(crate) unix_ms: Option<u64>,
    /// Memory of the process before connections were opened; none in virtual time.
    pub(crate) resident_before_bytes: Option<u64>,
    pub(crate) set_up: SetUp,
}

/// A round that is being measured.
pub(crate) struct AtHand<'a> {
    pub(crate) prepared: Arc<Prepared>,
    pub(crate) control: &'a Arc<Control>,
    pub(crate) own_server: bool,
    pub(crate) generators: &'a mut Generators,
    /// What its workers draw the requests of a run by count from.
    pub(crate) budgets: Budgets,
    pub(crate) snapshots: Snapshots,
    pub(crate) observer: &'a mut dyn RunObserver,
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
        Arc::default()
    }

    /// The window of a run whose load begins at `load_ns`; without a duration it has no end yet.
    pub(crate) fn window_from(&self, load_ns: u64) -> Window {
        let start_ns = load_ns + self.plan.load.warmup_ns;
        let length_ns = self.plan.load.stop.duration_ns.unwrap_or(u64::MAX);
        Window {
            start_ns,
            end_ns: start_ns.saturating_add(length_ns),
        }
    }

    /// Whether the window may end before its time because nothing is left to do.
    fn may_end(&self) -> bool {
        let stop = self.plan.load.stop;
        stop.requests.is_some() || stop.duration_ns.is_none()
    }

    /// The plan as it is stored, with the amounts of the workers of this process. Where other
    /// processes have the rest of the plan, the amounts of the whole plan are given, too.
    pub(crate) fn stored_plan(&self) -> (Plan, Option<Amounts>) {
        let plan = self.plan.without_secrets();
        let is_part = self.worker_count() != plan.workers.count.get();
        let part_of = is_part.then(|| plan.amounts());
        (plan.part(self.workers.clone()).unwrap_or(plan), part_of)
    }

    /// Arrivals that the workers of this process have in `window` on average, in a load that starts
    /// at `load_ns`. Absent without a schedule.
    pub(crate) fn expected_arrivals(&self, load_ns: u64, window: Window) -> Option<f64> {
        let schedule = self.plan.load.model.schedule()?;
        let from_load = schedule.clone().after(self.plan.load.warmup_ns);
        let (from_ns, to_ns) = (window.start_ns - load_ns, window.end_ns - load_ns);
        let expected = from_load.expected(from_ns, to_ns);
        let (own, all) = (self.worker_count(), self.plan.workers.count.get());
        Some(expected * (f64::from(own) / f64::from(all)))
    }

    /// What was negotiated.
    pub(crate) fn describe_negotiated(&self) -> Negotiated {
        let tls = self.negotiated.tls.as_ref();
        Negotiated {
            address: address_of(&self.peers[0]),
            protocol: self.negotiated.protocol,
            note: self.negotiated.note.clone(),
            depth: self.negotiated.depth,
            tls: tls.map(|tls| tls.description.clone()),
            request_bytes: self.requests.sizes().request as u64,
        }
    }
}

impl AtHand<'_> {
    /// What the worker in this place, among those of the process, needs for the round.
    pub(crate) fn preparation(&mut self, place: usize, worker: u32) -> Preparation {
        let budget = self.budgets.of(place);
        // A server in this process needs as many CPUs again.
        let cpus_per_worker = if self.own_server { 2 } else { 1 };
        let threads_that_poll = cpus_per_worker * self.prepared.worker_count();
        Preparation {
            task: self.prepared.task(worker, budget, self.control),
            shown: self.snapshots.shown(worker),
            spinner: Spinner::new(self.prepared.spin(), threads_that_poll, self.prepared.cpus),
            generated: self.generators.take(place),
        }
    }

    /// Shows what workers counted, and how far the round is.
    pub(crate) fn show(&mut self, phase: Phase) {
        self.snapshots.deliver(self.observer);
        self.observer.progress(phase, &self.snapshots.progress());
    }

    /// Shows what workers counted last, all of whom have left, and hands over what they logged in a
    /// window that began at `start_ns`.
    pub(crate) fn hand_over(&mut self, start_ns: u64, finished: &mut [Finished]) {
        self.snapshots.deliver(self.observer);
        for finished in &*finished {
            self.snapshots.add(&finished.last_shown, self.observer);
        }
        self.show(Phase::Drain);
        if self.prepared.plan.observation.logged_requests_max > 0 {
            let mut log = RequestLog::new(start_ns);
            for finished in finished {
                finished.recorder.hand_over_log(&mut log);
            }
            self.observer.request_log(log);
        }
    }

    /// How the window ended of workers that have left.
    pub(crate) fn window_end(&self, finished: &mut [Finished], window: Window) -> WindowEnd {
        let end_ns = window.end_ns.min(self.control.end_ns());
        let early_ns = if self.prepared.may_end() {
            early_end_ns(finished, self.budgets.left(), Window { end_ns, ..window })
        } else {
            None
        };
        WindowEnd {
            end_ns: early_ns.map_or(end_ns, |early_ns| early_ns.max(window.start_ns)),
            is_early: early_ns.is_some(),
            is_cut_short: self.control.is_cut_short(),
        }
    }

    /// The run that a round was, all of whose workers have left.
    pub(crate) fn conclude(
        &self,
        begun: Begun,
        load_ns: u64,
        finished: Vec<Finished>,
        watched: Watched,
        end: WindowEnd,
        evidence: Evidence,
    ) -> Run {
        let prepared = &*self.prepared;
        let planned = prepared.window_from(load_ns);
        let window = Window {
            end_ns: end.end_ns,
            ..planned
        };
        let may_end = prepared.may_end();
        let mut edges = RunEdges::default();
        edges.setup_start.set(begun.setup_start_ns);
        edges.warmup_start.set(load_ns);
        edges.measure_start.set(window.start_ns);
        edges.measure_end.set(window.end_ns);
        if prepared.plan.load.stop.duration_ns.is_some()
            && !end.is_early
            && self.control.end_ns() >= planned.end_ns
        {
            edges.measure_end_planned.set(planned.end_ns);
        }
        let mut latencies = Latencies::default();
        let mut names = Vec::new();
        let mut workers = Vec::new();
        let mut drain_end_ns = window.end_ns;
        for finished in finished {
            let cpu = finished.cpu;
            let mut recording = finished.recorder.finish(window.end_ns);
            recording.record.cpu_user_ns = cpu.user_ns;
            recording.record.cpu_system_ns = cpu.system_ns;
            recording.record.bound_cpu = finished.bound_cpu;
            if begun.unix_ms.is_some() {
                // Polling takes CPU time, and none is polled away that was not used.
                let used_ns = cpu.user_ns.saturating_add(cpu.system_ns);
                recording.record.spun_ns = recording.record.spun_ns.min(used_ns);
            }
            if workers.is_empty() {
                // What nobody drew belongs to no worker: it is stated once.
                recording.record.unsent += self.budgets.left();
            }
            let lived_from_ns = recording.record.edges.window_start.get().unwrap_or(0);
            let end_ns = window.end_ns.cast_signed();
            let lived = &mut recording.record.edges.window_end;
            if end.is_early || may_end && lived.get().is_some_and(|left_ns| left_ns < end_ns) {
                // It left because nothing was left to do: it would have idled until the end.
                *lived = Once::at(end_ns.max(lived_from_ns));
            }
            let drained_ns = recording.record.edges.drained.get();
            let drained_ns = drained_ns.map_or(0, i64::cast_unsigned);
            drain_end_ns = drain_end_ns.max(drained_ns);
            recording.record.count_from(window.start_ns);
            latencies.merge(&recording.latencies);
            brunt_record::merge_names(&mut names, recording.names);
            workers.push(recording.record);
        }
        brunt_record::forget_unnamed(&mut names);
        for (record, name) in names.iter_mut().zip(prepared.plan.traffic.requests.names()) {
            name.clone_into(&mut record.name);
        }
        edges.drain_end.set(drain_end_ns);
        let mut clock = match begun.unix_ms {
            Some(unix_ms) => clock_since(unix_ms, begun.setup_start_ns, window.start_ns),
            None => AgentClock {
                process_ns: drain_end_ns,
                ..AgentClock::default()
            },
        };
        clock.process_start_ns = -window.start_ns.cast_signed();
        edges.finished.set(clock.process_ns);
        clock.edges = edges.since(window.start_ns);
        let peak_resident_bytes = begun.unix_ms.and_then(|_| memory::peak_resident_bytes());
        let (plan, part_of) = prepared.stored_plan();
        let is_simulated = begun.unix_ms.is_none();
        let source_addresses = prepared.sources.addresses.iter();
        let agent = AgentRecord {
            id: agent_id(is_simulated.then_some((clock.process_start_ns, &workers[..]))),
            command: None,
            machine: None,
            share: plan.amounts(),
            seeds: Seeds::of(&prepared.plan),
            negotiated: prepared.describe_negotiated(),
            speaks_tls: false,
            backend: prepared.backend,
            backend_note: prepared.backend_note.clone(),
            placement: prepared.placed.record,
            source_addresses: source_addresses
                .map(|source| source.ip().to_string())
                .collect(),
            source_addresses_chosen: prepared.sources.are_chosen,
            own_server: self.own_server,
            expected_arrivals: prepared.expected_arrivals(load_ns, window),
            interrupted: end.is_cut_short,
            clock,
            fleet: None,
            host: HostUse {
                usable_cpus: prepared.cpus.usable,
                cpu_user_ns: watched.cpu.user_ns,
                cpu_system_ns: watched.cpu.system_ns,
                cpu_interval_ns: watched.cpu_interval_ns,
                peak_resident_bytes: peak_resident_bytes.unwrap_or(0),
                resident_before_bytes: begun
                    .resident_before_bytes
                    .filter(|_| prepared.plan.work() == Work::Hold),
            },
            limits: prepared.limits.clone(),
            evidence,
            workers,
        };
        Run {
            format: Run::FORMAT,
            brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
            plan,
            part_of,
            window_ns: window.length_ns(),
            agents: vec![agent],
            lost_agents: Vec::new(),
            latencies,
            names,
            objectives: Vec::new(),
        }
    }
}

/// What tells an agent from all others: drawn at random or, in simulation, from what it recorded,
/// which follows from its plan alone.
fn agent_id(recorded: Option<(i64, &[WorkerRecord])>) -> String {
    let half = |number: u64| match recorded {
        None => RandomState::new().hash_one(number),
        Some(recorded) => {
            let mut hasher = DefaultHasher::new();
            (number, format!("{recorded:?}")).hash(&mut hasher);
            hasher.finish()
        }
    };
    format!("{:016x}{:016x}", half(0), half(1))
}

/// How a window ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowEnd {
    /// When.
    pub(crate) end_ns: u64,
    /// Before its time, because nothing was left to do.
    pub(crate) is_early: bool,
    /// Before its time, because somebody asked for that.
    pub(crate) is_cut_short: bool,
}

/// When a run by count was over, if all workers left before the end of the window: with the last
/// reply when everything was sent, else when the last worker gave up. What waited then is still
/// sent in drain, and its reply, which counts as one of the window, lies in it.
fn early_end_ns(all: &mut [Finished], unsent_by_none: u64, window: Window) -> Option<u64> {
    let (mut left_ns, mut done_ns, mut unsent) = (0, 0, unsent_by_none);
    for finished in all {
        let record = finished.recorder.record();
        left_ns = left_ns.max(record.edges.window_end.get()?.cast_unsigned());
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

/// The labels of a run which began at `unix_ms` by the wall clock, and at `start_ns` by its own;
/// its window, at `window_start_ns`. The process's length is that as of now.
fn clock_since(unix_ms: u64, start_ns: u64, window_start_ns: u64) -> AgentClock {
    let now_ns = clock::now_ns();
    let wall_ms = clock::unix_ms() as i64 - unix_ms as i64;
    AgentClock {
        window_start_unix_ms: unix_ms + window_start_ns.saturating_sub(start_ns) / 1_000_000,
        stepped_ns: wall_ms * 1_000_000 - (now_ns - start_ns) as i64,
        process_ns: now_ns,
        ..AgentClock::default()
    }
}

impl Watched {
    /// The process's CPU since the start of the window, where that was read.
    pub(crate) fn since(before: Option<(u64, CpuUse)>) -> Option<Self> {
        let (since_ns, cpu_before) = before?;
        let cpu = CpuUse::of_process().ok()?.since(cpu_before);
        Some(Self {
            cpu,
            cpu_interval_ns: clock::now_ns() - since_ns,
        })
    }
}

/// Limit of the handshake that shows whether TLS is spoken, nanoseconds.
const TLS_LIMIT_NS: u64 = 1_000_000_000;

/// Where a run comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    /// The command line, a word each, without what may be secret; absent where there is none.
    pub command: Option<Vec<String>>,
    /// What the run is asked to reach.
    pub objectives: Vec<Objective>,
}

/// Why a plan was not run.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The run could not be prepared.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The run could not be made.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Runs a plan from beginning to end, and completes its record: what `brunt -o` stores.
///
/// # Errors
///
/// The plan does not fit this machine, nobody answers, or nothing was measured.
pub fn run(plan: Plan, origin: &Origin) -> Result<Run, LoadError> {
    let prepared = prepare(plan)?;
    let control = prepared.control();
    let mut run = prepared.run(&control, false, &mut |_: Phase, _: &Progress| ())?;
    complete(&mut run, origin);
    Ok(run)
}

/// Adds to a run what it does not know of itself. A simulated one is the same on every machine, and
/// says nothing of it.
pub fn complete(run: &mut Run, origin: &Origin) {
    run.objectives.clone_from(&origin.objectives);
    let is_simulated = run.is_simulated();
    let machine = (!is_simulated).then(brunt_probe::machine::description);
    let speaks_tls = speaks_tls(run);
    for agent in &mut run.agents {
        agent.command.clone_from(&origin.command);
        agent.machine.clone_from(&machine);
        agent.speaks_tls |= speaks_tls;
    }
}

/// Whether nothing succeeded because TLS is spoken at that port. Only some servers say so.
fn speaks_tls(run: &Run) -> bool {
    let is_clear = run.plan.tls().is_none() && run.work() != Work::Streams && !run.is_simulated();
    // The others would have in their logs what brunt counts nowhere.
    let could_be = run.no_success().is_some_and(|found| {
        matches!(
            found.cause,
            NoSuccessCause::Status(400)
                | NoSuccessCause::Failure(FailureKind::ClosedBeforeReply | FailureKind::Reset)
        )
    });
    let address = &run.first().negotiated.address;
    let peer = match &run.plan.target.unix_socket {
        Some(path) => Some(Peer::Unix(path.clone())),
        None => address.parse().ok().map(Peer::Tcp),
    };
    let peer = peer.filter(|_| is_clear && could_be);
    peer.is_some_and(|peer| brunt_probe::speaks_tls(&peer, "localhost", TLS_LIMIT_NS))
}
