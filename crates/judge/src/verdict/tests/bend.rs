//! Sound runs that the tests of the verdict bend, and the ways in which they do.

use std::rc::Rc;

use brunt_load::{ArrivalProcess, LoadModel, Schedule};
use brunt_record::{
    CpuTimes, Evidence, FailureKind, Halving, Histogram, HostEvidence, Instants, KernelSample,
    NetworkEvidence, Observer, OtherPrograms, Parts, Placement, ProgramUse, Protocol, Recorder,
    Recording, RequestTiming, Route, Run, ServerConnections, ServerEvidence, ServerScope,
    ServerThreads, Split, StatusCounts, Tally, TcpCounters, ThreadUse, Throttling, WorkerRecord,
};

use crate::facts::Facts;
use crate::invariants::check;
use crate::invariants::sample::{MS, US, WINDOW, answer, at, deal, finish, nonzero, run_of};
use crate::verdict::facts::RunFacts;

/// A change to a run.
pub(super) type Bend = fn(&mut Run);

pub(super) fn server(run: &mut Run) -> &mut ServerEvidence {
    run.agents[0].evidence.server.as_mut().expect("a server")
}

pub(super) fn unwatched(run: &mut Run) {
    run.agents[0].evidence.server = None;
}

pub(super) fn tcp(run: &mut Run) -> &mut TcpCounters {
    let network = run.agents[0].evidence.network.as_mut().expect("a network");
    network.tcp.as_mut().expect("counters")
}

pub(super) fn thread(run: &mut Run) -> &mut ThreadUse {
    run.agents[0].workers[1].thread.as_mut().expect("a thread")
}

pub(super) fn each(run: &mut Run, change: impl FnMut(&mut WorkerRecord)) {
    run.agents[0].workers.iter_mut().for_each(change);
}

/// What the first worker counted in the window.
pub(super) fn tally(run: &mut Run) -> &mut Tally {
    &mut run.agents[0].workers[0].tallies.measure
}

/// The kernel's sample of the first worker.
pub(super) fn kernel(run: &mut Run) -> &mut KernelSample {
    &mut run.agents[0].workers[0].kernel
}

/// Makes all workers' threads busy for `ms` of 2,000 milliseconds.
pub(super) fn busy_for(run: &mut Run, ms: u64) {
    for worker in &mut run.agents[0].workers {
        let thread = worker.thread.as_mut().expect("a thread");
        thread.cpu_user_ns = 0;
        thread.cpu_system_ns = ms * MS;
    }
    // The process is at least as busy as its threads.
    run.agents[0].host.cpu_user_ns = 0;
    run.agents[0].host.cpu_system_ns = 2 * ms * MS;
}

/// Connections of others at the server, and what they sent: as many segments of 80 bytes.
pub(super) fn others(run: &mut Run, connections: u64, segments: u64) {
    let seen = run.agents[0].evidence.server_connections.as_mut();
    let seen = seen.expect("counted");
    seen.connections += connections;
    seen.segments_received += segments;
    seen.bytes_received += 80 * segments;
    seen.segments_received_beyond += segments;
}

/// Adds another program on the CPUs of both, busy for `ms` milliseconds. The server waited for a
/// CPU for a third of its time, and brunt did not wait.
pub(super) fn beside(run: &mut Run, ms: u64) {
    server(run).run_queue_wait_ns = Some(400 * MS);
    let host = &mut run.agents[0].evidence.host;
    for times in &mut host.cpus {
        times.busy_ns = 1_900 * MS;
        times.idle_ns = 100 * MS;
    }
    host.programs = Some(OtherPrograms {
        cpu_ns: ms * MS,
        largest: vec![ProgramUse {
            name: "cargo".to_owned(),
            cpu_ns: ms * MS,
        }],
    });
}

/// Connections that pause for as long as they are busy.
pub(super) fn thinking(run: &mut Run) {
    run.plan.traffic.think_time_ns = MS;
    for worker in &mut run.agents[0].workers {
        worker.in_flight_ns /= 2;
    }
}

/// Sets the server's CPU, in milliseconds of 2,000 on each of two CPUs.
pub(super) fn server_busy_for(run: &mut Run, ms: u64) {
    let server = server(run);
    server.cpu_user_ns = 0;
    server.cpu_system_ns = ms * MS;
}

/// Sets the status of the first `count` replies in the window of the first worker.
pub(super) fn answered_with(run: &mut Run, status: u16, count: u64) {
    let replies = &mut tally(run).replies;
    let total = replies.total();
    *replies = StatusCounts::default();
    (0..count).for_each(|_| replies.add(status));
    (count..total).for_each(|_| replies.add(200));
}

/// Turns the connections into ones over HTTP/2, each with this many streams that are always in
/// flight.
pub(super) fn streams(run: &mut Run, streams: u32) {
    run.agents[0].negotiated.protocol = Protocol::HTTP2;
    run.agents[0].negotiated.depth = streams;
    for worker in &mut run.agents[0].workers {
        worker.in_flight_ns *= u64::from(streams);
    }
}

/// Requests of the first worker that failed in the window.
pub(super) fn failed(run: &mut Run, kind: FailureKind, count: u64) {
    let failures = &mut tally(run).failures;
    (0..count).for_each(|_| failures.add(kind));
}

/// A warm-up in which each worker had so many replies per slice with half of its connections, and
/// 80 with all of them.
pub(super) fn halved(run: &mut Run, by_half: u64) {
    let slices = (0..Halving::SLICES).map(|slice| {
        if Halving::pauses_half(slice) {
            by_half
        } else {
            80
        }
    });
    let replies: Vec<u64> = slices.collect();
    for worker in &mut run.agents[0].workers {
        worker.halving = Some(Halving {
            connections: 4,
            used_by_half: 2,
            starved: 0,
            slice_ns: 20 * MS,
            replies: replies.clone(),
        });
    }
}

pub(super) fn server_throttled(run: &mut Run, ms: u64) {
    server(run).throttling = Some(throttling(ms));
}

/// A single thread does the work, and the process used so many milliseconds of 2,000.
pub(super) fn one_thread(run: &mut Run, ms: u64) {
    server_busy_for(run, ms);
    server(run).threads = Some(ServerThreads {
        count: 1,
        active: 1,
        saturated: 1,
        busiest_cpu_ns: (ms * MS).min(INTERVAL_NS),
        saturated_cpu_ns: (ms * MS).min(INTERVAL_NS),
    });
}

/// Client and server on CPUs 0 and 1, busy for so many milliseconds of 2,000 each; the pair uses
/// 1,400 and 2,200 of them. Both wait.
pub(super) fn same_cpus(run: &mut Run, busy_ms: u64) {
    busy_for(run, 700);
    server_busy_for(run, 2_200);
    server(run).cpu_list = vec![0, 1];
    server(run).run_queue_wait_ns = Some(200 * MS);
    thread(run).run_queue_wait_ns = Some(50 * MS);
    for times in &mut run.agents[0].evidence.host.cpus {
        let busy_ns = if times.cpu < 2 { busy_ms * MS } else { 0 };
        *times = CpuTimes {
            busy_ns,
            idle_ns: INTERVAL_NS - busy_ns,
            softirq_ns: 0,
            ..*times
        };
    }
}

/// Puts `ms` milliseconds of the time of the first two CPUs into soft interrupts.
pub(super) fn softirq(run: &mut Run, ms: u64) {
    for times in run.agents[0].evidence.host.cpus.iter_mut().take(2) {
        times.softirq_ns = ms * MS;
    }
}

/// Binds each worker to a CPU of its own, from the first on.
pub(super) fn bound(run: &mut Run) {
    for (worker, cpu) in run.agents[0].workers.iter_mut().zip(0..) {
        worker.bound_cpu = Some(cpu);
    }
    run.agents[0].placement = Some(Placement::ServerAnywhere);
}

pub(super) fn stolen(run: &mut Run, cpu: usize, ms: u64) {
    run.agents[0].evidence.host.cpus[cpu].steal_ns = ms * MS;
}

/// Has less and less done over the window.
pub(super) fn drifting(run: &mut Run) {
    drifting_by(run, 5);
}

/// Takes `replies` replies more from each point than from the one before.
pub(super) fn drifting_by(run: &mut Run, replies: u64) {
    for worker in &mut run.agents[0].workers {
        worker.series = worker.series.coarsened();
        for (index, point) in worker.series.points.iter_mut().enumerate() {
            point.successes -= replies * index as u64;
        }
    }
}

pub(super) fn link(run: &mut Run, received: u64, sent: u64) {
    if let Some(network) = &mut run.agents[0].evidence.network
        && let Route::Interface {
            received_bytes,
            sent_bytes,
            ..
        } = &mut network.route
    {
        (*received_bytes, *sent_bytes) = (received, sent);
    }
}

/// Some values of a length, and some of another.
pub(super) fn histogram(values: &[(u64, u64)]) -> Histogram {
    let mut histogram = Histogram::default();
    for &(count, ns) in values {
        (0..count).for_each(|_| histogram.record(ns));
    }
    histogram
}

pub(super) fn throttled(run: &mut Run, ms: u64) {
    run.agents[0].evidence.host.throttling = Some(throttling(ms));
}

fn throttling(ms: u64) -> Throttling {
    Throttling {
        periods: 200,
        throttled_periods: ms / 10,
        throttled_ns: ms * MS,
    }
}

/// Makes the requests uploads. Of 1,000 ms, the server's window held those of the first worker up
/// for `window_ms`, and our buffer for `buffer_ms`.
pub(super) fn upload(run: &mut Run, window_ms: u64, buffer_ms: u64) {
    run.agents[0].negotiated.request_bytes = 1 << 20;
    let kernel = kernel(run);
    kernel.receive_window_limited_ns = window_ms * MS;
    kernel.send_buffer_limited_ns = buffer_ms * MS;
}

const CONNECTIONS: u64 = 4;
/// Service time of a reply without its wait for others, nanoseconds.
const SERVICE_NS: u64 = MS;
const WARMUP_START_NS: u64 = 800 * MS;
pub(super) const INTERVAL_NS: u64 = 2_000 * MS;

/// The reply to a request, of whose response time 4 us are brunt's.
fn replied(recorder: &mut Recorder, timing: RequestTiming, is_stamped: bool) -> u64 {
    let done_ns = timing.sent_ns + SERVICE_NS;
    recorder.received(done_ns, 220);
    recorder.reply(timing, done_ns, &answer(200));
    if is_stamped {
        let (parts, misplaced) = Parts::of(&Instants {
            due_ns: timing.due_ns,
            free_ns: timing.due_ns,
            send_from_ns: timing.sent_ns,
            send_to_ns: timing.sent_ns + 5 * US,
            arrived_ns: done_ns - 4 * US,
            received_ns: done_ns - US,
            done_ns,
        });
        recorder.split(timing.due_ns, parts, misplaced);
    }
    done_ns
}

/// A worker whose connections are busy back to back in a closed loop. In an open loop they rest for
/// as long as they work.
fn worker(number: u32, is_open: bool) -> Recording {
    let connections = CONNECTIONS as u32;
    let mut recorder = Recorder::new(number, connections, connections);
    if is_open {
        recorder.plan_requests();
    }
    for connection in 0..CONNECTIONS {
        recorder.connected(150 * MS + connection, 200 * US);
    }
    recorder.set_window(WINDOW);
    let mut in_flight = [None; CONNECTIONS as usize];
    let mut last_ns = 0;
    let ticks = (WARMUP_START_NS..=WINDOW.end_ns).step_by(SERVICE_NS as usize);
    for (tick, tick_ns) in ticks.enumerate() {
        for (connection, sent) in in_flight.iter_mut().enumerate() {
            if let Some(timing) = sent.take() {
                last_ns = replied(&mut recorder, timing, connection == 0);
            }
            let due_ns = tick_ns + connection as u64 * 10 * US;
            if due_ns >= WINDOW.end_ns || (is_open && tick % 2 == 1) {
                continue;
            }
            let mut timing = at(due_ns);
            if is_open {
                timing.sent_ns += 5 * US;
                recorder.arrival_planned(due_ns);
                recorder.arrival_sent(due_ns, due_ns, false);
                recorder.lag(due_ns, 5 * US);
            }
            recorder.sent(timing, 1, 80);
            *sent = Some(timing);
        }
    }
    let mut recording = finish(recorder, last_ns);
    let record = &mut recording.record;
    record.kernel.segments_sent = 4_000;
    record.kernel.segments_received = 4_000;
    record.kernel.busy_ns = 1_000 * MS;
    record.thread = Some(ThreadUse {
        interval_ns: INTERVAL_NS,
        cpu_user_ns: 200 * MS,
        cpu_system_ns: 600 * MS,
        spun_ns: 0,
        run_queue_wait_ns: Some(2 * MS),
        involuntary_switches: 20,
    });
    recording
}

fn run_watched(recordings: [Recording; 2]) -> Run {
    let mut run = run_of(recordings);
    run.agents[0].host.cpu_user_ns = 400 * MS;
    run.agents[0].host.cpu_system_ns = 1_200 * MS;
    run.agents[0].evidence = evidence();
    run
}

/// A closed loop of 8 connections that are always busy, on a server with room.
pub(super) fn closed() -> Run {
    run_watched([worker(0, false), worker(1, false)])
}

/// An open loop whose rate is met.
pub(super) fn open() -> Run {
    let mut run = run_watched([worker(0, true), worker(1, true)]);
    let connections_max = run.plan.load.connections;
    run.plan.load.model = LoadModel::Open {
        schedule: Schedule::constant_rate(ArrivalProcess::Constant, 4_000.0, 7).expect("a rate"),
        connections_max,
        queue_max: nonzero(100),
    };
    run.agents[0].expected_arrivals = Some(8_000.0);
    deal(&mut run);
    run
}

/// The facts of a run, as each of its agents saw it.
pub(super) fn cases_of(run: &Run) -> Vec<RunFacts<'_>> {
    RunFacts::of_agents(&Rc::new(Facts::of(run)), &check(run), None)
}

/// An open loop with a backlog that grows to the end, and all connections busy.
pub(super) fn overloaded() -> Run {
    let mut run = open();
    for worker in &mut run.agents[0].workers {
        for (index, point) in worker.series.points.iter_mut().enumerate() {
            point.waiting_max = 50 * (index as u64 + 1);
        }
        worker.in_flight_ns = CONNECTIONS * INTERVAL_NS;
    }
    run
}

/// The server is elsewhere, and nothing of it is known.
pub(super) fn remote(mut run: Run) -> Run {
    run.agents[0].negotiated.address = "192.0.2.7:80".to_owned();
    run.agents[0].evidence.server = None;
    run.agents[0].evidence.server_connections = None;
    run.agents[0].evidence.network = Some(NetworkEvidence {
        route: Route::Interface {
            name: "eth0".to_owned(),
            link_bits_per_s: Some(1_000_000_000),
            was_given: false,
            received_bytes: 10_000_000,
            sent_bytes: 3_000_000,
            dropped_packets: 0,
        },
        ..network()
    });
    run
}

fn evidence() -> Evidence {
    Evidence {
        interval_ns: INTERVAL_NS,
        host: HostEvidence {
            cpus: (0..4)
                .map(|cpu| CpuTimes {
                    cpu,
                    busy_ns: 900 * MS,
                    softirq_ns: 50 * MS,
                    steal_ns: 0,
                    idle_ns: 1_100 * MS,
                })
                .collect(),
            client_cpus: vec![0, 1],
            pressure_ns: Some(20 * MS),
            throttling: None,
            programs: None,
            stolen: Vec::new(),
            series: Vec::new(),
        },
        network: Some(network()),
        server: Some(watched()),
        server_connections: Some(ServerConnections {
            interval_ns: INTERVAL_NS,
            connections: 2 * CONNECTIONS,
            bytes_received: 1_280_000,
            segments_received: 16_000,
            segments_received_beyond: 0,
        }),
        server_count: None,
        server_sent: None,
        server_window: None,
        observer: Observer::default(),
        missing: [].into(),
    }
}

fn network() -> NetworkEvidence {
    NetworkEvidence {
        route: Route::Loopback,
        tcp: Some(TcpCounters {
            segments_received: 80_000,
            segments_sent: 80_000,
            ..TcpCounters::default()
        }),
        conntrack: None,
        time_wait: Some(0),
    }
}

fn watched() -> ServerEvidence {
    ServerEvidence {
        scope: ServerScope::Processes {
            pids: vec![42],
            found_by: "port 8080".to_owned(),
        },
        name: "nginx".to_owned(),
        interval_ns: INTERVAL_NS,
        cpu_user_ns: 300 * MS,
        cpu_system_ns: 500 * MS,
        cpus: Some(2.0),
        cpu_list: vec![2, 3],
        run_queue_wait_ns: Some(4 * MS),
        throttling: None,
        threads: Some(ServerThreads {
            count: 2,
            active: 2,
            saturated: 0,
            busiest_cpu_ns: 500 * MS,
            saturated_cpu_ns: 0,
        }),
        idle_cpus_used: Some(0.0),
        resident_bytes_max: Some(10 << 20),
        descriptors_max: Some(40),
        series: Vec::new(),
    }
}

/// Gives the run so many response times, each of which has a part of brunt's own and the server's.
pub(super) fn split(run: &mut Run, responses: u64, parts: impl Fn(u64) -> (u64, u64)) {
    run.latencies.split = Split::default();
    for number in 0..responses {
        let (lag_receive_ns, server_ns) = parts(number);
        run.latencies.split.record(&Parts {
            lag_receive_ns,
            server_ns,
            ..Parts::default()
        });
    }
}

/// Makes brunt's own share of each response time so many thousandths.
pub(super) fn own_of(run: &mut Run, thousandths: u64) {
    let parts_ns = (thousandths * 100, (1_000 - thousandths) * 100);
    split(run, 4_000, |_| parts_ns);
}
