//! Sound runs with all evidence, for the tests to bend: a local server with room, workers with
//! time, connections that are all busy.

use brunt_load::{ArrivalProcess, LoadModel, Schedule};
use brunt_record::{
    CpuTimes, Evidence, HostEvidence, Instants, KernelSample, Latencies, NetworkEvidence, Observer,
    Parts, Recorder, Recording, RequestTiming, Route, Run, ServerConnections, ServerEvidence,
    ServerScope, ServerThreads, TcpCounters, ThreadUse, WorkerEdges,
};

use crate::RunFigures;
use crate::invariants::check;
use crate::invariants::sample::{MS, US, WINDOW, absolute, answer, at, deal, nonzero, steady_run};
use crate::verdict::facts::RunFacts;

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
        let parts = Parts::of(&Instants {
            due_ns: timing.due_ns,
            free_ns: timing.due_ns,
            send_from_ns: timing.sent_ns,
            send_to_ns: timing.sent_ns + 5 * US,
            arrived_ns: done_ns - 4 * US,
            received_ns: done_ns - US,
            done_ns,
        });
        recorder.split(timing.due_ns, parts);
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
    let record = recorder.record();
    record.edges = WorkerEdges {
        started: absolute(100 * MS + u64::from(number)),
        ready: absolute(160 * MS),
        window_start: absolute(WINDOW.start_ns + 20 * US),
        window_end: absolute(WINDOW.end_ns),
        drained: absolute(last_ns),
    };
    record.kernel = KernelSample {
        connections: 1,
        kernel_bytes_received: 10_001,
        own_bytes_received: 10_000,
        min_rtt_ns: Some(30 * US),
        segments_sent: 4_000,
        segments_received: 4_000,
        busy_ns: 1_000 * MS,
        ..KernelSample::default()
    };
    record.thread = Some(ThreadUse {
        interval_ns: INTERVAL_NS,
        cpu_user_ns: 200 * MS,
        cpu_system_ns: 600 * MS,
        spun_ns: 0,
        run_queue_wait_ns: Some(2 * MS),
        involuntary_switches: 20,
    });
    recorder.finish(WINDOW.end_ns)
}

fn run_of(recordings: [Recording; 2]) -> Run {
    let mut run = steady_run();
    run.latencies = Latencies::default();
    run.agents[0].workers.clear();
    for mut recording in recordings {
        run.latencies.merge(&recording.latencies);
        recording.record.count_from(WINDOW.start_ns);
        run.agents[0].workers.push(recording.record);
    }
    run.agents[0].host.usable_cpus = 2;
    run.agents[0].host.cpu_user_ns = 400 * MS;
    run.agents[0].host.cpu_system_ns = 1_200 * MS;
    run.agents[0].evidence = evidence();
    run
}

/// A closed loop of 8 connections that are always busy, on a server with room.
pub(super) fn closed() -> Run {
    run_of([worker(0, false), worker(1, false)])
}

/// An open loop whose rate is met.
pub(super) fn open() -> Run {
    let mut run = run_of([worker(0, true), worker(1, true)]);
    let connections_max = run.plan.connections;
    run.plan.model = LoadModel::Open {
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
    RunFacts::of_agents(run, &run.summary(), &check(run), None)
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
        server: Some(server()),
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

fn server() -> ServerEvidence {
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
