//! Runs with known contents, made with the real recorder.

mod bandwidth;
mod complete;
mod kinds;
mod listed;
mod merged;
mod planned;
mod secured;
mod watched;

use std::num::{NonZeroU32, NonZeroU64};
use std::sync::LazyLock;

use brunt_load::{
    ArrivalProcess, LoadModel, Plan, RequestSet, RequestSpec, Reuse, Schedule, Stamps, Target,
};
use brunt_record::{
    AgentClock, AgentRecord, Answer, Backend, ErrorBody, Evidence, FailureKind, HostUse, Instants,
    KernelSample, Latencies, LimitsChecked, Negotiated, Objective, Once, Parts, Protocol, Recorder,
    Recording, RequestTiming, Run, RunEdges, Seeds, Window,
};

pub(crate) use bandwidth::{bandwidth, both_ways};
pub(crate) use complete::{complete, plans};
pub(crate) use kinds::{kinds, per_request, server_failed};
pub(crate) use listed::{listed, scripted};
pub(crate) use merged::{merged, merged_apart};
pub(crate) use planned::{growing, open, overloaded, sessions};
pub(crate) use secured::{resumed, streams};
pub(crate) use watched::{client_limited, machine, stolen, watched};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;
const US: u64 = 1_000;
/// Bytes of the head and the body of every reply.
const REPLY: (u64, u64) = (238, 100);
const REQUEST_BYTES: u64 = 58;
/// One request in this many is on a connection with kernel stamps.
const STAMPS_EVERY: u32 = 16;

/// Every fixture by its name. They are made once: it takes longer than most tests.
pub(crate) fn all() -> Vec<(&'static str, Run)> {
    static ALL: LazyLock<Vec<(&'static str, Run)>> = LazyLock::new(made);
    ALL.clone()
}

fn made() -> Vec<(&'static str, Run)> {
    [
        ("normal", normal()),
        ("failures", failures()),
        ("interrupted", interrupted()),
        ("few", few()),
        ("invalid", invalid()),
        ("silent", silent()),
        ("open", open()),
        ("growing", growing()),
        ("overloaded", overloaded()),
        ("sessions", sessions()),
        ("watched", watched()),
        ("client_limited", client_limited()),
        ("stolen", stolen()),
        ("objectives", objectives()),
        ("streams", streams()),
        ("resumed", resumed()),
        ("per_request", per_request()),
        ("listed", listed()),
        ("scripted", scripted()),
        ("server_failed", server_failed()),
        ("merged", merged()),
        ("merged_apart", merged_apart()),
        ("bandwidth", bandwidth()),
        ("both_ways", both_ways()),
    ]
    .into()
}

/// 100 connections, two workers, 20,000 replies of 300 µs to 9 ms in 10 s; kernel stamps on a
/// sample of the connections.
pub(crate) fn normal() -> Run {
    let window = until(11 * S);
    run(
        window,
        vec![steady(0, 50, window, 10_000), steady(1, 50, window, 10_000)],
    )
}

/// Of what was asked, a part was reached, a part not, and a part is not known.
pub(crate) fn objectives() -> Run {
    let mut run = normal();
    let quantile = |q, below_ns| Objective::ResponseQuantile { q, below_ns };
    run.objectives = vec![
        quantile(0.99, 100 * MS),
        quantile(0.5, MS),
        quantile(0.999_99, S),
        Objective::Errors { below: 0.01 },
        Objective::NoErrors,
        Objective::SuccessesPerS { above: 1_000_000.0 },
        Objective::ResponseMax { below_ns: S },
        Objective::ResponseMean { below_ns: MS },
        Objective::Named {
            name: "login".to_owned(),
            objective: Box::new(Objective::NoErrors),
        },
    ];
    run
}

/// A server that refuses, resets, answers late and with errors; connections are replaced.
pub(crate) fn failures() -> Run {
    let window = until(6 * S);
    let mut recorder = opened(0, 10, window);
    let mut latency = ServiceTimes::new(3);
    for index in 0..5_000_u64 {
        let sent_ns = window.start_ns + index * MS;
        let done_ns = sent_ns + latency.next_ns();
        let timing = sent_at(sent_ns);
        recorder.sent(timing, 1, REQUEST_BYTES);
        if index % 100 == 50 {
            recorder.received(done_ns, 57);
            recorder.request_failed(timing, done_ns, FailureKind::TruncatedBody, 57);
            recorder.disconnected(done_ns);
            recorder.failed(done_ns, FailureKind::ConnectRefused, 0);
            recorder.connected(done_ns + MS / 2, MS / 4);
        } else {
            let status = match index % 40 {
                3 => 503,
                7 | 9 => 404,
                11 => 429,
                13 => 204,
                _ => 200,
            };
            recorder.received(done_ns, REPLY.0 + REPLY.1);
            recorder.reply(timing, done_ns, &answer(status));
        }
    }
    for (kind, sent_ns) in [
        (FailureKind::TimedOut, window.end_ns + 5 * MS - S),
        (FailureKind::BadChunk, window.end_ns - 2 * MS),
        (FailureKind::BadContentLength, window.end_ns - 2 * MS),
    ] {
        let timing = sent_at(sent_ns);
        recorder.sent(timing, 1, REQUEST_BYTES);
        recorder.request_failed(timing, window.end_ns + 5 * MS, kind, 0);
    }
    recorder.tally(window.end_ns - MS).connections_closed_idle += 1;
    recorder.record().error_bodies = [
        (
            503,
            "<html>\n<head><title>503</title></head>\n\u{1b}[2J",
            true,
        ),
        (404, "{\"error\": \"no such item\"}", false),
        (429, "", false),
    ]
    .map(|(status, text, is_cut)| ErrorBody {
        status,
        text: text.to_owned(),
        is_cut,
    })
    .to_vec();
    let mut run = run(window, vec![recorder.finish(window.end_ns)]);
    run.plan.target = target(
        "http://[2001:db8::17]:8080/a/rather/long/path/with/many/segments/so/that/it/wraps?and=a&\
         query=string&of=some&length=too",
    );
    run.agents[0].negotiated.address = "[2001:db8::17]:8080".to_owned();
    let mut post = RequestSpec::get("/100.html");
    post.method = "POST".to_owned();
    run.plan.traffic.requests = RequestSet::one(post);
    run.agents[0].backend = Backend::Epoll;
    run.agents[0].backend_note = Some(
        "io_uring is refused by this kernel (kernel.io_uring_disabled is 2), so epoll ran"
            .to_owned(),
    );
    run.agents[0].negotiated.depth = 4;
    run.plan.limits.timeout_ns = S;
    run.plan.observation.stamps = Stamps::Off;
    run.plan.load.model = LoadModel::Closed {
        connect_per_s: Some(500.0),
    };
    run.plan.traffic.reuse = replaced_after(1_000);
    run.agents[0].source_addresses_chosen = true;
    run.agents[0].source_addresses = (1..=12).map(|host| format!("127.0.0.{host}")).collect();
    deal(run)
}

/// Ctrl-C after 3.2 of 10 s.
pub(crate) fn interrupted() -> Run {
    let window = until(S + 3_214_159_265);
    let mut run = run(window, vec![steady(0, 64, window, 4_000)]);
    run.agents[0].interrupted = true;
    run.plan.target.unix_socket = Some("/run/app/http.sock".into());
    run.agents[0].negotiated.address = "/run/app/http.sock".to_owned();
    run.plan.traffic.reuse = replaced_after(1);
    run.plan.traffic.think_time_ns = 5 * MS;
    run.agents[0].workers[0].stamps_clamped = 2;
    run.agents[0].clock.edges.measure_end_planned = in_run(11 * S);
    run.agents[0].limits.ports_needed = None;
    run.agents[0].limits.ports_available = None;
    run
}

/// 100 requests were asked for, on brunt's own server.
pub(crate) fn few() -> Run {
    let window = until(S + 51 * MS);
    let mut run = run(window, vec![steady(0, 2, window, 100)]);
    run.plan.load.stop.duration_ns = None;
    run.plan.load.stop.requests = Some(100);
    run.agents[0].own_server = true;
    run.agents[0].host.cpu_user_ns = 15 * MS;
    run.agents[0].host.cpu_system_ns = 45 * MS;
    run.agents[0].clock.edges.measure_end_planned = Once::default();
    deal(run)
}

/// Two workers whose windows do not agree.
pub(crate) fn invalid() -> Run {
    let mut run = normal();
    run.agents[0].workers[1].edges.window_start = in_run(2 * S);
    run.agents[0].clock.edges.measure_end_planned = in_run(11 * S - 12_400_000);
    run
}

/// A server that takes connections and never answers.
pub(crate) fn silent() -> Run {
    let window = until(3 * S);
    let mut recorder = opened(0, 8, window);
    for _ in 0..8 {
        let timing = sent_at(window.start_ns - 900 * MS);
        recorder.sent(timing, 1, REQUEST_BYTES);
        recorder.censored(timing, window.end_ns + 500 * MS, 0);
    }
    let mut run = run(window, vec![recorder.finish(window.end_ns)]);
    run.plan.target.url = "http://127.0.0.1:8080/\u{1b}[31mred".to_owned();
    run
}

/// A window that ends at this instant.
const fn until(end_ns: u64) -> Window {
    Window {
        start_ns: S,
        end_ns,
    }
}

/// An instant of the clock of the process, as a worker writes it.
fn absolute(ns: u64) -> Once {
    let mut edge = Once::default();
    edge.set(ns);
    edge
}

/// An instant as a run has it, whose window begins after a second, as they all do.
fn in_run(ns: u64) -> Once {
    absolute(ns).since(S)
}

/// A schedule of one rate, to be given to a run.
fn schedule(process: ArrivalProcess, rate_per_s: f64, seed: u64) -> Schedule {
    Schedule::constant_rate(process, rate_per_s, seed).expect("a rate")
}

pub(crate) fn nonzero(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("above 0")
}

/// A connection is replaced after so many requests.
pub(crate) fn replaced_after(requests: u64) -> Reuse {
    Reuse::Requests(NonZeroU64::new(requests).expect("above 0"))
}

pub(crate) fn target(url: &str) -> Target {
    Target::parse(url, None).expect(url)
}

/// Gives the run its schedule, with its seed and what it has in the window.
fn planned(run: &mut Run, model: LoadModel, seed: u64, expected: f64) {
    run.plan.load.model = model;
    run.agents[0].seeds.arrivals = Some(seed);
    run.agents[0].expected_arrivals = Some(expected);
}

/// Gives the only agent all of the plan's amounts.
fn deal(mut run: Run) -> Run {
    run.agents[0].share = run.plan.amounts();
    run
}

/// A recorder with `connections` connections open before the window.
fn opened(worker: u32, connections: u32, window: Window) -> Recorder {
    let mut recorder = Recorder::new(worker, connections, connections);
    recorder.record().edges.started = absolute(2 * MS);
    recorder.record().edges.ready = absolute(20 * MS);
    for index in 0..u64::from(connections) {
        recorder.connected(10 * MS + index, MS / 10 + index * 1_000);
    }
    recorder.set_window(window);
    recorder.record().edges.window_start = absolute(window.start_ns);
    recorder.record().edges.window_end = absolute(window.end_ns);
    recorder.record().edges.drained = absolute(window.end_ns + 8 * MS);
    recorder.record().cpu_user_ns = 20 * MS;
    recorder.record().cpu_system_ns = 60 * MS;
    recorder.record().reply_bytes_min = Some(REPLY.0 + REPLY.1);
    recorder.record().kernel = KernelSample {
        connections: 1,
        kernel_bytes_received: 33_800,
        own_bytes_received: 33_800,
        min_rtt_ns: Some(21_000),
        ..KernelSample::default()
    };
    recorder
}

/// A worker whose `requests` requests are spread evenly over the window, all answered with 200,
/// after so long that its connections are busy nearly all the time.
fn steady(worker: u32, connections: u32, window: Window, requests: u64) -> Recording {
    paced(worker, connections, window, requests, |index| {
        index * window.length_ns() / requests
    })
}

/// A worker whose request of each index is sent as long after the start of the window as `at`
/// says.
fn paced(
    worker: u32,
    connections: u32,
    window: Window,
    requests: u64,
    at: impl Fn(u64) -> u64,
) -> Recording {
    let mut recorder = opened(worker, connections, window);
    let mut latency = ServiceTimes::new(u64::from(worker) + 1);
    let mut last_ns = window.end_ns;
    for index in 0..requests {
        let sent_ns = window.start_ns + at(index);
        let busy_ns = u64::from(connections) * (at(index + 1) - at(index)) * 96 / 100;
        let done_ns = sent_ns + latency.next_ns() * busy_ns / ServiceTimes::MEAN_NS;
        last_ns = last_ns.max(done_ns);
        let timing = sent_at(sent_ns);
        recorder.sent(timing, 1, REQUEST_BYTES);
        recorder.lag(sent_ns, 300 + index % 512);
        recorder.received(done_ns, REPLY.0 + REPLY.1);
        recorder.reply(timing, done_ns, &answer(200));
        if index.is_multiple_of(u64::from(STAMPS_EVERY)) {
            split(&mut recorder, sent_ns, sent_ns, sent_ns, done_ns);
        }
    }
    recorder.record().edges.drained = absolute(last_ns + 8 * MS);
    recorder.finish(window.end_ns)
}

/// A request that was due when it was sent.
fn sent_at(sent_ns: u64) -> RequestTiming {
    RequestTiming {
        due_ns: sent_ns,
        sent_ns,
        request: 0,
        again: 0,
    }
}

/// A reply whose first byte came with its last.
fn answer(status: u16) -> Answer {
    Answer {
        outcome: status.into(),
        retry_after: false,
        interim: 0,
        head_bytes: REPLY.0,
        body_bytes: REPLY.1,
        first_byte_ns: u64::MAX,
    }
}

/// Records the parts of a response time: brunt takes 2 µs to send, 3 to 6 to receive and 1 to
/// parse.
fn split(recorder: &mut Recorder, due_ns: u64, free_ns: u64, sent_ns: u64, done_ns: u64) {
    let (parts, misplaced) = Parts::of(&Instants {
        due_ns,
        free_ns,
        send_from_ns: sent_ns,
        send_to_ns: sent_ns + 2 * US,
        arrived_ns: done_ns - 4 * US - done_ns % (3 * US),
        received_ns: done_ns - US,
        done_ns,
    });
    recorder.split(due_ns, parts, misplaced);
}

/// A run of these recordings against a server on loopback.
fn run(window: Window, recordings: Vec<Recording>) -> Run {
    let mut latencies = Latencies::default();
    let mut workers = Vec::new();
    for mut recording in recordings {
        latencies.merge(&recording.latencies);
        recording.record.count_from(window.start_ns);
        workers.push(recording.record);
    }
    let drained = workers
        .iter()
        .filter_map(|one| one.edges.drained.get())
        .max();
    let drained_ns = drained.map_or(window.end_ns, |ns| window.start_ns + ns.unsigned_abs());
    let requests = RequestSet::one(RequestSpec::get("/100.html"));
    let mut plan = Plan::new(target("http://127.0.0.1:8080/100.html"), requests);
    plan.load.connections = nonzero(
        workers
            .iter()
            .map(|worker| worker.live.asked)
            .sum::<u32>()
            .max(1),
    );
    plan.workers.count = nonzero(workers.len() as u32);
    plan.limits.setup_timeout_ns = Some(30 * S);
    plan.load.drain_limit_ns = S;
    let agent = AgentRecord {
        id: "0123456789abcdef0123456789abcdef".to_owned(),
        command: None,
        machine: None,
        share: plan.amounts(),
        seeds: Seeds::default(),
        negotiated: Negotiated {
            address: "127.0.0.1:8080".to_owned(),
            protocol: Protocol::HTTP1,
            note: None,
            depth: 1,
            tls: None,
            request_bytes: REQUEST_BYTES,
        },
        speaks_tls: false,
        backend: Backend::Uring,
        backend_note: None,
        placement: None,
        source_addresses: Vec::new(),
        source_addresses_chosen: false,
        own_server: false,
        expected_arrivals: None,
        interrupted: false,
        clock: AgentClock {
            window_start_unix_ms: 1_767_225_600_000 + window.start_ns / MS,
            stepped_ns: -120,
            process_start_ns: -window.start_ns.cast_signed(),
            process_ns: drained_ns + MS,
            edges: RunEdges {
                setup_start: absolute(2 * MS),
                warmup_start: absolute(22 * MS + 310_000),
                measure_start: absolute(window.start_ns),
                measure_end: absolute(window.end_ns),
                measure_end_planned: absolute(window.end_ns),
                drain_end: absolute(drained_ns),
                finished: absolute(drained_ns + MS),
            }
            .since(window.start_ns),
        },
        fleet: None,
        host: HostUse {
            usable_cpus: 2,
            cpu_user_ns: 30 * MS,
            cpu_system_ns: 90 * MS,
            cpu_interval_ns: window.length_ns(),
            peak_resident_bytes: 12_100_000,
            resident_before_bytes: None,
        },
        limits: LimitsChecked {
            descriptors_needed: 120,
            descriptors_limit: 20_000,
            ports_needed: Some(100),
            ports_available: Some(28_232),
            memory_needed_bytes: 9_000_000,
            memory_available_bytes: Some(8_000_000_000),
            ..LimitsChecked::default()
        },
        evidence: Evidence::default(),
        workers,
    };
    Run {
        format: Run::FORMAT,
        brunt_version: "0.1.0".to_owned(),
        plan,
        part_of: None,
        window_ns: window.length_ns(),
        agents: vec![agent],
        lost_agents: Vec::new(),
        latencies,
        names: Vec::new(),
        objectives: Vec::new(),
    }
}

/// Service times from a fixed sequence: mostly 300 to 900 µs, one in 128 of several milliseconds.
struct ServiceTimes(u64);

impl ServiceTimes {
    /// Their mean over a long time.
    const MEAN_NS: u64 = 642_000;

    fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next_ns(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963);
        let random = self.0 >> 33;
        let usual_ns = 300_000 + random % 600_000;
        if random.is_multiple_of(128) {
            usual_ns * 10
        } else {
            usual_ns
        }
    }
}

/// Which of `parts` parts of a long test this check makes: `cargo xtask test` names another seed
/// for each commit.
pub(crate) fn part_of(parts: usize) -> usize {
    let typed = std::env::var("BRUNT_SEED").unwrap_or_default();
    typed.parse().map_or(0, |seed: usize| seed % parts)
}
