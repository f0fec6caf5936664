//! Plans to start from, and what every run must fulfil.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::{NonZeroU32, NonZeroU64};

use brunt_engine::{Rounds, RunError, Session, prepare, prepare_simulated};
use brunt_judge::{Finding, InvariantStatus, RunFigures, check};
use brunt_load::{
    ArrivalProcess, BackendChoice, LoadModel, Plan, RequestOrder, RequestSet, RequestSpec,
    Schedule, Stage, Target, Watch,
};
use brunt_record::{Backend, FailureKind, FailureScope, Histogram, Once, Run, Tally, after_ns};
use brunt_server::{BackendKind, Http2Options, ListenAddress, Running, ServeOptions};
use brunt_testkit::{SimCounts, SimMachine, SimServer, SimSettings};

pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000_000;
pub(crate) const S: u64 = 1_000_000_000;

/// No scheduler of an idle machine wakes a thread later than this, nanoseconds.
const LATE_NS: u64 = 5 * MS;
/// No scheduler of a machine that is busy with other things wakes a thread later than this,
/// nanoseconds.
const LATE_MAX_NS: u64 = 80 * MS;

/// Changes the one request of a plan.
pub(crate) fn change_request(plan: &mut Plan, change: impl FnOnce(&mut RequestSpec)) {
    let mut request = plan.traffic.requests.first().expect("a request").to_spec();
    change(&mut request);
    plan.traffic.requests = RequestSet::one(request);
}

/// Has the plan ask for these paths in random order, each so often.
pub(crate) fn ask(plan: &mut Plan, paths: &[(&str, u32)]) {
    let request = plan.traffic.requests.first().expect("a request").to_spec();
    let requests = paths.iter().map(|(path, _)| RequestSpec {
        path: (*path).to_owned(),
        ..request.clone()
    });
    let weights: Vec<_> = paths.iter().map(|&(_, weight)| weight).collect();
    let list = RequestSet::of(requests.collect(), RequestOrder::Random { seed: 1 });
    let list = list.and_then(|list| list.with_weights(&weights));
    plan.traffic.requests = list.expect("a list");
}

pub(crate) fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("at least one")
}

pub(crate) fn many_long(count: u64) -> NonZeroU64 {
    NonZeroU64::new(count).expect("at least one")
}

/// A short run of four connections: 30 ms of warm-up, 200 ms of measurement.
pub(crate) fn plan(url: &str, backend: BackendChoice) -> Plan {
    let target = Target::parse(url, None).expect("a URL");
    let requests = RequestSet::one(RequestSpec::get(&target.path));
    let mut plan = Plan::new(target, requests);
    plan.load.connections = many(4);
    plan.load.stop.duration_ns = Some(200 * MS);
    plan.load.warmup_ns = 30 * MS;
    plan.limits.timeout_ns = 5 * S;
    plan.load.drain_limit_ns = 2 * S;
    plan.workers.backend = backend;
    plan.workers.oversubscribe = true;
    plan.observation.watch = Watch::Off;
    // So that what a server does to requests is seen in the counts of failures.
    plan.traffic.sends_again = false;
    plan
}

/// Has the plan end with so many requests, without a warm-up before them.
pub(crate) fn by_count(plan: &mut Plan, requests: u64) {
    plan.load.stop.requests = Some(requests);
    plan.load.stop.duration_ns = None;
    plan.load.warmup_ns = 0;
}

/// A schedule whose rate does not change.
pub(crate) fn rate(process: ArrivalProcess, rate_per_s: f64, seed: u64) -> Schedule {
    Schedule::constant_rate(process, rate_per_s, seed).expect("a rate")
}

/// An even rate for so long.
pub(crate) fn rate_for(duration_ns: u64, rate_per_s: f64) -> Schedule {
    staged(
        ArrivalProcess::Constant,
        &[(duration_ns, rate_per_s, rate_per_s)],
    )
}

/// A schedule of stages: how long each lasts, and its rates per second at its start and end.
pub(crate) fn staged(process: ArrivalProcess, stages: &[(u64, f64, f64)]) -> Schedule {
    let stages = stages
        .iter()
        .map(|&(duration_ns, from_per_s, to_per_s)| Stage {
            duration_ns,
            from_per_s,
            to_per_s,
        });
    Schedule::staged(process, stages.collect(), 1).expect("stages")
}

/// Has requests due as `schedule` says, on the connections that the plan has.
pub(crate) fn requests_by_plan(plan: &mut Plan, schedule: Schedule, queue_max: u32) {
    plan.load.model = requests_of(schedule, plan.load.connections.get(), queue_max);
}

/// Requests that are due as `schedule` says.
pub(crate) fn requests_of(schedule: Schedule, connections_max: u32, queue_max: u32) -> LoadModel {
    LoadModel::Open {
        schedule,
        connections_max: many(connections_max),
        queue_max: many(queue_max),
    }
}

/// Has connections due as `schedule` says.
pub(crate) fn connections_by_plan(plan: &mut Plan, schedule: Schedule, queue_max: u32) {
    plan.load.model = LoadModel::Sessions {
        schedule,
        queue_max: many(queue_max),
    };
}

/// The counters of all phases and workers.
pub(crate) fn lifetime(run: &Run) -> Tally {
    run.summary().lifetime
}

/// Failed requests of all phases.
pub(crate) fn failed(run: &Run) -> u64 {
    lifetime(run).failures.total(FailureScope::Request)
}

/// The failures of all phases, by kind.
pub(crate) fn failures(run: &Run) -> Vec<(FailureKind, u64)> {
    lifetime(run).failures.iter().collect()
}

/// The broken invariants but for `excused` ones. On a machine that is busy with other things a
/// worker may come late into its window, which W4 and W5 are there to refuse: where that happened,
/// and nothing else did, they say nothing about the engine.
pub(crate) fn broken(run: &Run, excused: &[&str]) -> Vec<Finding> {
    let came_late = run.agents[0].backend != Backend::Sim && only_came_late(run);
    check(run)
        .into_iter()
        .filter(|finding| finding.status == InvariantStatus::Broken)
        .filter(|finding| !excused.contains(&finding.id))
        .filter(|finding| !(came_late && matches!(finding.id, "W4" | "W5")))
        .collect()
}

/// Whether a worker came late into its window, none by more than a busy machine explains, and all
/// stayed to its end.
fn only_came_late(run: &Run) -> bool {
    let late_ns = run.agents[0].workers.iter().map(|worker| {
        let lived_from_ns = worker.edges.window_start.get()?;
        let lived_until_ns = worker.edges.window_end.get()?;
        (after_ns(0, lived_until_ns) >= run.window_ns).then(|| after_ns(0, lived_from_ns))
    });
    late_ns
        .collect::<Option<Vec<_>>>()
        .and_then(|late_ns| late_ns.into_iter().max())
        .is_some_and(|late_ns| (LATE_NS..=LATE_MAX_NS).contains(&late_ns))
}

/// Refuses a run with a broken invariant.
pub(crate) fn expect_valid(run: &Run, what: &str) {
    let broken = broken(run, &[]);
    assert!(broken.is_empty(), "{what}: {broken:#?}");
}

/// Refuses a run in which anything is broken or failed, or whose counts are not those of the
/// server.
pub(crate) fn expect_faultless(run: &Run, served: Served, what: &str) {
    expect_valid(run, what);
    expect_equal_counts(run, served, what);
    assert_eq!(failures(run), [], "{what}");
}

/// Each response time is known together with opening its connection, or none is: where each
/// connection `has_one` request.
pub(crate) fn expect_connecting(run: &Run, has_one: bool) {
    let latencies = &run.latencies;
    assert_eq!(run.connects_per_request(), has_one);
    if !has_one {
        return;
    }
    let (response, with_connect) = (&latencies.response, &latencies.with_connect);
    assert_eq!(with_connect.count(), response.count());
    let least_ns = |histogram: &Histogram| histogram.min_ns().unwrap_or(0);
    let opening_ns = [&latencies.connect, &latencies.tls, &latencies.greeting].map(least_ns);
    let opening_ns: u64 = opening_ns.iter().sum();
    assert!(opening_ns > 0);
    assert!(least_ns(with_connect) >= least_ns(response) + opening_ns);
    assert!(with_connect.sum_ns() >= response.sum_ns() + response.count() * opening_ns);
}

/// An instant of a run on the clock of its process.
pub(crate) fn at_ns(run: &Run, edge: Once) -> u64 {
    let since_window_ns = edge.get().expect("an edge");
    after_ns(run.agents[0].clock.process_start_ns, since_window_ns)
}

/// The start of the window on the clock of the process.
pub(crate) fn window_start_ns(run: &Run) -> u64 {
    after_ns(run.agents[0].clock.process_start_ns, 0)
}

/// How an invariant stands.
pub(crate) fn status(run: &Run, id: &str) -> InvariantStatus {
    let findings = check(run);
    let finding = findings.iter().find(|finding| finding.id == id);
    finding.expect("every invariant is checked").status
}

/// What a case runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Uring,
    Epoll,
    Sim,
}

/// Makes tests of each case: a module per name, with what the case runs on.
macro_rules! on_each {
    ([$($module:ident: $kind:ident),+] $cases:tt) => {
        $(crate::common::on_each! { @one $module: $kind, $cases })+
    };
    (@one $module:ident: $kind:ident, { $($case:ident),+ $(,)? }) => {
        mod $module {
            $(#[test] fn $case() { super::$case(crate::common::Kind::$kind) })+
        }
    };
}
pub(crate) use on_each;

/// Makes a test per backend of each case.
macro_rules! on_every_backend {
    ($($cases:tt)+) => {
        crate::common::on_each! { [uring: Uring, epoll: Epoll, sim: Sim] { $($cases)+ } }
    };
}
pub(crate) use on_every_backend;

/// Tests that run on both interfaces of the kernel.
macro_rules! on_both_kernels {
    ($($cases:tt)+) => {
        crate::common::on_each! { [uring: Uring, epoll: Epoll] { $($cases)+ } }
    };
}
pub(crate) use on_both_kernels;

/// What the other side counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) requests: u64,
    pub(crate) replies: u64,
    /// Connections, without the attempt that looks whether the server is there.
    pub(crate) connections: u64,
}

/// A server to load.
pub(crate) enum Server {
    Real(Running),
    Simulated(Box<SimSettings>),
}

impl Server {
    /// The reference server; where brunt is simulated, the network is, too.
    pub(crate) fn reference(kind: Kind) -> Self {
        match kind {
            Kind::Sim => Self::Simulated(Box::new(reference(Http2Options::default()))),
            Kind::Uring | Kind::Epoll => Self::Real(serve(kind)),
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        match self {
            Self::Real(serving) => url(serving, path),
            Self::Simulated(_) => format!("http://simulated{path}"),
        }
    }

    /// Does `body` in one session of the plan. Gives what comes of that, and what the server
    /// counted in all.
    pub(crate) fn session<T>(
        self,
        plan: &Plan,
        body: impl FnOnce(&mut Session<'_>) -> T,
    ) -> (T, Served) {
        match self {
            Self::Simulated(settings) => {
                let mut machine = SimMachine::new(*settings);
                let prepared = prepare_simulated(plan.clone(), &mut machine);
                let prepared = prepared.expect("a plan that fits");
                let control = prepared.control();
                let outcome = body(&mut prepared.open_in(&mut machine, &control));
                (outcome, served_on(&machine))
            }
            Self::Real(serving) => {
                let prepared = prepare(plan.clone()).expect("a plan that fits");
                let control = prepared.control();
                let outcome = body(&mut prepared.open(&control, true));
                (outcome, served(serving))
            }
        }
    }
}

/// Carries out a plan on the kernel. Its server is in this process, too, whose memory is therefore
/// not the run's alone.
pub(crate) fn run(plan: Plan) -> Run {
    let prepared = prepare(plan).expect("a plan that fits");
    let control = prepared.control();
    let run = prepared.run(&control, true, &mut |_, _: &_| {});
    run.expect("a run")
}

/// A server that does this with each connection, in a thread of its own, and knows how many came
/// before. It goes on until the test's process ends.
pub(crate) fn serve_each(behave: impl Fn(u64, TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    std::thread::spawn(move || {
        for (before, stream) in (0..).zip(listener.incoming().flatten()) {
            let behave = behave.clone();
            std::thread::spawn(move || behave(before, stream));
        }
    });
    address
}

/// Runs against the reference server's `path`.
pub(crate) fn load(kind: Kind, path: &str, change: impl FnOnce(&mut Plan)) -> (Run, Served) {
    let server = Server::reference(kind);
    let mut plan = plan(&server.url(path), choice(kind));
    change(&mut plan);
    let (run, served) = server.session(&plan, |session| {
        session.round(&plan.load, &mut |_, _: &_| {})
    });
    (run.expect("a run"), served)
}

/// A simulation whose server is changed so.
pub(crate) fn serving(change: impl FnOnce(&mut SimServer)) -> SimSettings {
    let mut settings = SimSettings::new(1);
    change(&mut settings.server);
    settings
}

/// Runs in simulation.
pub(crate) fn simulated(settings: SimSettings, change: impl FnOnce(&mut Plan)) -> (Run, Served) {
    let mut plan = plan("http://simulated/", BackendChoice::Auto);
    change(&mut plan);
    let (run, counts) = simulate(plan, &settings).expect("a run");
    (run, served_in(&counts))
}

/// A simulation with the reference server, whose answers come in up to three pieces.
pub(crate) fn reference(http2: Http2Options) -> SimSettings {
    let mut settings = SimSettings::new(1);
    settings.reference = Some(http2);
    settings.server.pieces_max = many(3);
    settings
}

/// What the servers of a simulation counted, whichever they are.
pub(crate) fn served_on(machine: &SimMachine) -> Served {
    served_in(&counted(machine))
}

/// What network and servers of a simulation counted, with the requests and replies of the
/// reference servers.
pub(crate) fn counted(machine: &SimMachine) -> SimCounts {
    let mut counts = machine.counts();
    for counters in machine.reference_counters() {
        let with_status = |status| counters.replies_by_status.get(&status).copied();
        counts.requests += counters.requests;
        counts.replies += counters.replies;
        counts.replies_error += with_status(503).unwrap_or(0);
        counts.silent += counters.faults_by_kind.get("silent").copied().unwrap_or(0);
    }
    counts
}

/// What simulated servers counted.
pub(crate) fn served_in(counts: &SimCounts) -> Served {
    Served {
        requests: counts.requests,
        replies: counts.replies,
        connections: counts.connections_accepted,
    }
}

/// Runs a plan in simulation. Also gives what the servers of all workers counted.
pub(crate) fn simulate(plan: Plan, settings: &SimSettings) -> Result<(Run, SimCounts), RunError> {
    let mut machine = SimMachine::new(settings.clone());
    let run = run_in(&mut machine, plan)?;
    Ok((run, counted(&machine)))
}

fn run_in(machine: &mut SimMachine, plan: Plan) -> Result<Run, RunError> {
    let prepared = prepare_simulated(plan, machine).expect("a plan that fits");
    let control = prepared.control();
    prepared.run_in(machine, &control)
}

/// The backend to ask for. Where the kernel refuses io_uring, epoll is tested twice.
pub(crate) fn choice(kind: Kind) -> BackendChoice {
    match kind {
        Kind::Uring => BackendChoice::Uring,
        Kind::Epoll => BackendChoice::Epoll,
        Kind::Sim => BackendChoice::Auto,
    }
}

/// What a server beside such a run is to use.
pub(crate) fn server_backend(kind: Kind) -> Option<BackendKind> {
    (kind == Kind::Epoll).then_some(BackendKind::Epoll)
}

/// The reference server on a free port.
pub(crate) fn serve(kind: Kind) -> Running {
    serve_at(kind, ListenAddress::Tcp(([127, 0, 0, 1], 0).into()))
}

/// The reference server at `address`.
pub(crate) fn serve_at(kind: Kind, address: ListenAddress) -> Running {
    let mut options = ServeOptions::new(address);
    options.backend = server_backend(kind);
    brunt_server::start(&options).expect("a server")
}

pub(crate) fn url(serving: &Running, path: &str) -> String {
    format!("http://{}{path}", serving.address())
}

/// Has the plan trust the server's certificate.
pub(crate) fn trust(plan: &mut Plan, serving: &Running) {
    let certificates = serving.certificates().iter();
    plan.connection.tls.roots_der = certificates.map(|der| der.to_vec()).collect();
}

/// Stops the server and gives what it counted.
pub(crate) fn served(serving: Running) -> Served {
    let counters = serving.stop().expect("a server that ends well");
    Served {
        requests: counters.requests,
        replies: counters.replies,
        connections: counters.connections_accepted.saturating_sub(1),
    }
}

/// Refuses a run whose counts are not those of the server.
pub(crate) fn expect_equal_counts(run: &Run, served: Served, what: &str) {
    let lifetime = lifetime(run);
    assert_eq!(lifetime.requests_sent, served.requests, "{what}: requests");
    assert_eq!(lifetime.replies.total(), served.replies, "{what}: replies");
    expect_equal_connections(run, served, what);
}

/// Refuses a run whose connections are not those that the server accepted, but for those that
/// were being opened when the run ended.
pub(crate) fn expect_equal_connections(run: &Run, served: Served, what: &str) {
    let opened = lifetime(run).connections_opened;
    let opening = u64::from(run.plan.load.connections.get());
    assert!(
        (opened..=opened + opening).contains(&served.connections),
        "{what}: {opened} connections opened, {} accepted",
        served.connections
    );
}
