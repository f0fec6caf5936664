//! Plans to start from, and what every run must fulfil.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_engine::backend::sim::{SimServer, SimSettings};
use brunt_engine::{prepare, simulate};
use brunt_load::{
    BackendChoice, Faults, HttpChoice, LoadModel, Plan, RequestSet, RequestSpec, Reuse, Spin,
    Stamps, Stop, Target, ThinkSpread, TlsSpec, Watch,
};
use brunt_measure::{Backend, FailureKind, FailureScope, Finding, Histogram, Run, Standing, Tally};
use brunt_server::{ListenAddress, Options, Running};

pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000_000;
pub(crate) const S: u64 = 1_000_000_000;

/// No scheduler of an idle machine wakes a thread this late.
const LATE_NS: u64 = 5 * MS;
/// Nor does one of a machine that is busy with other things wake it later than this.
const LATE_MAX_NS: u64 = 80 * MS;

/// Changes the one request of a plan.
pub(crate) fn change_request(plan: &mut Plan, change: impl FnOnce(&mut RequestSpec)) {
    let mut request = plan.requests.first().clone();
    change(&mut request);
    plan.requests = RequestSet::one(request);
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
    Plan {
        requests: RequestSet::one(RequestSpec::get(&target.path)),
        target,
        model: LoadModel::Closed {
            connect_per_s: None,
        },
        connections: many(4),
        workers: many(1),
        http: HttpChoice::Auto,
        tls: TlsSpec::default(),
        pipeline: many(1),
        streams: many(1),
        reuse: Reuse::Unlimited,
        think_time_ns: 0,
        think_spread: ThinkSpread::Fixed,
        think_seed: 0,
        stop: Stop {
            duration_ns: Some(200 * MS),
            requests: None,
        },
        warmup_ns: 30 * MS,
        timeout_ns: 5 * S,
        setup_timeout_ns: 30 * S,
        connect_timeout_ns: 5 * S,
        drain_limit_ns: 2 * S,
        backend,
        source_addresses: Vec::new(),
        stamps: Stamps::Sampled,
        spin: Spin::Auto,
        oversubscribe: true,
        observe: true,
        watch: Watch::Off,
        server_counter: None,
        link_bits_per_s: None,
        experiment: None,
        faults: Faults::default(),
    }
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
pub(crate) fn broken<'a>(run: &'a Run, excused: &[&str]) -> Vec<&'a Finding> {
    let came_late = run.load.backend != Backend::Sim && only_came_late(run);
    run.findings
        .iter()
        .filter(|finding| finding.standing == Standing::Broken)
        .filter(|finding| !excused.contains(&finding.id.as_str()))
        .filter(|finding| !(came_late && matches!(finding.id.as_str(), "W4" | "W5")))
        .collect()
}

/// Whether a worker came late into its window, none by more than a busy machine explains, and all
/// stayed to its end.
fn only_came_late(run: &Run) -> bool {
    let late_ns = run.workers.iter().map(|worker| {
        let lived_from_ns = worker.edges.window_start.get()?;
        let lived_until_ns = worker.edges.window_end.get()?;
        (lived_until_ns >= run.window.end_ns)
            .then(|| lived_from_ns.saturating_sub(run.window.start_ns))
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

/// How an invariant stands.
pub(crate) fn standing(run: &Run, id: &str) -> Standing {
    let finding = run.findings.iter().find(|finding| finding.id == id);
    finding.expect("every invariant is checked").standing
}

/// What a case runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Uring,
    Epoll,
    Sim,
}

/// Makes a test per backend of each case.
macro_rules! on_every_backend {
    ($($case:ident),+ $(,)?) => {
        mod uring {
            $(#[test] fn $case() { super::$case(crate::common::Kind::Uring) })+
        }
        mod epoll {
            $(#[test] fn $case() { super::$case(crate::common::Kind::Epoll) })+
        }
        mod sim {
            $(#[test] fn $case() { super::$case(crate::common::Kind::Sim) })+
        }
    };
}
pub(crate) use on_every_backend;

/// What the other side counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) requests: u64,
    pub(crate) replies: u64,
    /// Without the attempt that looks whether the server is there.
    pub(crate) connections: u64,
}

/// Runs against the reference server's `path`, or in simulation against `server`.
pub(crate) fn load(
    kind: Kind,
    path: &str,
    server: SimServer,
    change: impl FnOnce(&mut Plan),
) -> (Run, Served) {
    match kind {
        Kind::Sim => simulated(SimSettings::new(1), server, change),
        Kind::Uring | Kind::Epoll => {
            let serving = serve(kind);
            let mut plan = plan(&url(&serving, path), choice(kind));
            change(&mut plan);
            let prepared = prepare(plan).expect("a plan that fits");
            let control = prepared.control();
            let run = prepared.run(&control, true, &mut |_, _| {});
            (run.expect("a run"), served(serving))
        }
    }
}

/// Runs in simulation.
pub(crate) fn simulated(
    settings: SimSettings,
    server: SimServer,
    change: impl FnOnce(&mut Plan),
) -> (Run, Served) {
    let mut plan = plan("http://simulated/", BackendChoice::Sim);
    change(&mut plan);
    let prepared = prepare(plan).expect("a plan that fits");
    let settings = SimSettings { server, ..settings };
    let (run, counts) = simulate(prepared, &settings).expect("a run");
    let served = Served {
        requests: counts.requests,
        replies: counts.replies,
        connections: counts.connections_accepted,
    };
    (run, served)
}

/// The backend to ask for. Where the kernel refuses io_uring, epoll is tested twice.
pub(crate) fn choice(kind: Kind) -> BackendChoice {
    match kind {
        Kind::Uring => BackendChoice::Uring,
        Kind::Epoll => BackendChoice::Epoll,
        Kind::Sim => BackendChoice::Sim,
    }
}

/// The reference server on a free port.
pub(crate) fn serve(kind: Kind) -> Running {
    serve_at(kind, ListenAddress::Tcp(([127, 0, 0, 1], 0).into()))
}

/// The reference server at `address`.
pub(crate) fn serve_at(kind: Kind, address: ListenAddress) -> Running {
    let mut options = Options::new(address);
    options.backend = match kind {
        Kind::Epoll => brunt_server::BackendChoice::Epoll,
        Kind::Uring | Kind::Sim => brunt_server::BackendChoice::Auto,
    };
    brunt_server::start(&options).expect("a server")
}

pub(crate) fn url(serving: &Running, path: &str) -> String {
    format!("http://{}{path}", serving.address())
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
    let opening = u64::from(run.load.connections);
    assert!(
        (opened..=opened + opening).contains(&served.connections),
        "{what}: {opened} connections opened, {} accepted",
        served.connections
    );
}
