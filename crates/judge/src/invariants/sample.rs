//! Small valid runs of two workers, made through the real recorder, for the tests to break.

use std::num::{NonZeroU32, NonZeroU64};

use brunt_load::{
    ArrivalProcess, LoadModel, Plan, ProtocolSpec, RequestSet, RequestSpec, Reuse, Schedule,
    Scheme, Stage, Stamps, Streams, Target, TlsSpec,
};
use brunt_record::{
    AgentClock, AgentRecord, Answer, Backend, Evidence, FailureKind, Histogram, HostUse, Instants,
    KernelSample, Latencies, LimitsChecked, Negotiated, NegotiatedTls, Once, Parts, Population,
    Protocol, Recorder, Recording, RequestTiming, Run, RunEdges, Seeds, Series, SeriesPoint,
    StatusCounts, StreamAccount, StreamReading, StreamRecord, Tally, Window, WorkerEdges,
    WorkerRecord,
};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const US: u64 = 1_000;
const CONNECTIONS: u32 = 4;
const SERVICE_NS: u64 = MS;
const REQUEST_BYTES: u64 = 80;
const HEAD_BYTES: u64 = 120;
const BODY_BYTES: u64 = 100;
const WARMUP_START_NS: u64 = 800 * MS;
const DRAIN_END_NS: u64 = 3_003 * MS;
/// Streams of a connection in HTTP/2, and the bytes of a reply's frames.
const STREAMS: u32 = 4;
const FRAME_BYTES: (u64, u64) = (11, 109);
/// Bytes of a TLS handshake and of the first settings.
const HANDSHAKE_BYTES: u64 = 3_000;
/// Requests of a planned connection, and how often one is due.
const SESSION_REQUESTS: u64 = 4;
const SESSION_GAP_NS: u64 = 10 * MS;
pub(crate) const WINDOW: Window = Window {
    start_ns: 1_000 * MS,
    end_ns: 3_000 * MS,
};

/// An instant of the clock of the process, as a worker writes it.
pub(crate) fn absolute(ns: u64) -> Once {
    let mut edge = Once::default();
    edge.set(ns);
    edge
}

/// An instant of the clock of the process, as a run has it.
pub(crate) fn in_run(ns: u64) -> Once {
    absolute(ns).since(WINDOW.start_ns)
}

/// Due when it was sent.
pub(crate) fn at(sent_ns: u64) -> RequestTiming {
    RequestTiming {
        due_ns: sent_ns,
        sent_ns,
        request: 0,
        again: 0,
    }
}

pub(crate) fn answer(status: u16) -> Answer {
    Answer {
        outcome: status.into(),
        retry_after: false,
        interim: 0,
        head_bytes: HEAD_BYTES,
        body_bytes: BODY_BYTES,
        first_byte_ns: 0,
    }
}

/// A whole reply, of which the last tenth of a millisecond was transfer.
fn replied(recorder: &mut Recorder, timing: RequestTiming, done_ns: u64, status: u16) {
    recorder.received(done_ns, HEAD_BYTES + BODY_BYTES);
    let answer = Answer {
        first_byte_ns: done_ns - 100 * US,
        ..answer(status)
    };
    recorder.reply(timing, done_ns, &answer);
}

/// The parts of its response time, of which brunt took 4 us, and 2 us before the send.
fn split(recorder: &mut Recorder, timing: RequestTiming, free_ns: u64, done_ns: u64) {
    let (parts, misplaced) = Parts::of(&Instants {
        due_ns: timing.due_ns,
        free_ns,
        send_from_ns: timing.sent_ns + US,
        send_to_ns: timing.sent_ns + 6 * US,
        arrived_ns: done_ns - 4 * US,
        received_ns: done_ns - US,
        done_ns,
    });
    recorder.split(timing.due_ns, parts, misplaced);
}

/// One worker: four connections, a reply after 1 ms each time, every 50th with status 503. With
/// `fails`, one reply in the window is cut short and its connection opened again.
fn worker(number: u32, fails: bool) -> Recording {
    let mut recorder = Recorder::new(number, CONNECTIONS, CONNECTIONS);
    for connection in 0..CONNECTIONS {
        recorder.connected(150 * MS + u64::from(connection), 200 * US);
    }
    recorder.set_window(WINDOW);
    let mut in_flight = [None; CONNECTIONS as usize];
    let mut replies = 0_u64;
    let mut tick_ns = WARMUP_START_NS;
    let mut last_ns = 0;
    loop {
        for (connection, sent) in in_flight.iter_mut().enumerate() {
            let now_ns = tick_ns + connection as u64 * 10 * US;
            if let Some(sent_ns) = sent.take() {
                last_ns = now_ns;
                if fails && now_ns == 2_000 * MS {
                    recorder.received(now_ns, 30);
                    recorder.request_failed(at(sent_ns), now_ns, FailureKind::TruncatedHead, 30);
                    recorder.disconnected(now_ns);
                    recorder.connected(now_ns + 100 * US, 100 * US);
                    continue;
                }
                replies += 1;
                let is_success = !replies.is_multiple_of(50);
                let status = if is_success { 200 } else { 503 };
                replied(&mut recorder, at(sent_ns), now_ns, status);
                // The first connection has kernel stamps.
                if connection == 0 && is_success {
                    split(&mut recorder, at(sent_ns), sent_ns, now_ns);
                }
            }
            if now_ns < WINDOW.end_ns {
                if connection == 0 {
                    recorder.lag(now_ns, 3 * US);
                }
                recorder.sent(at(now_ns), 1, REQUEST_BYTES);
                *sent = Some(now_ns);
            }
        }
        if in_flight.iter().all(Option::is_none) {
            break;
        }
        tick_ns += SERVICE_NS;
    }
    finish(recorder, last_ns)
}

/// One worker of an open loop: a request every millisecond, sent 5 us late and answered 1 ms after
/// that, every 50th with status 503. One of them waits for 2 ms; one is never answered.
fn open_worker(number: u32) -> Recording {
    let mut recorder = Recorder::new(number, CONNECTIONS, CONNECTIONS);
    recorder.plan_requests();
    for connection in 0..CONNECTIONS {
        recorder.connected(150 * MS + u64::from(connection), 200 * US);
    }
    recorder.set_window(WINDOW);
    let first_ns = WARMUP_START_NS + u64::from(number) * 500 * US;
    let mut unanswered = None;
    let mut last_ns = 0;
    for (k, due_ns) in (first_ns..WINDOW.end_ns).step_by(MS as usize).enumerate() {
        let waited = k == 1_200;
        let free_ns = if waited { due_ns + 2 * MS } else { 0 };
        let timing = RequestTiming {
            due_ns,
            sent_ns: due_ns.max(free_ns) + 5 * US,
            request: 0,
            again: 0,
        };
        recorder.arrival_planned(due_ns);
        if waited {
            recorder.waiting(due_ns, 1);
        }
        recorder.arrival_sent(due_ns, timing.sent_ns, waited);
        recorder.lag(due_ns, 5 * US);
        recorder.sent(timing, 1, REQUEST_BYTES);
        if k == 2_100 {
            unanswered = Some(timing);
            continue;
        }
        let done_ns = timing.sent_ns + SERVICE_NS;
        let is_success = k % 50 != 49;
        let status = if is_success { 200 } else { 503 };
        replied(&mut recorder, timing, done_ns, status);
        if is_success && k % 4 == 0 {
            split(&mut recorder, timing, free_ns, done_ns);
        }
        last_ns = done_ns;
    }
    if let Some(timing) = unanswered {
        recorder.censored(timing, DRAIN_END_NS, 0);
    }
    finish(recorder, last_ns.max(DRAIN_END_NS))
}

/// One worker of planned connections: one every 10 ms, each with four requests of 1 ms.
fn sessions_worker(number: u32) -> Recording {
    let mut recorder = Recorder::new(number, 0, CONNECTIONS);
    recorder.set_window(WINDOW);
    let mut last_ns = 0;
    for due_ns in (WARMUP_START_NS..WINDOW.end_ns).step_by(SESSION_GAP_NS as usize) {
        recorder.arrival_planned(due_ns);
        recorder.arrival_sent(due_ns, due_ns, false);
        recorder.lag(due_ns, 5 * US);
        let connected_ns = due_ns + 205 * US;
        recorder.connected(connected_ns, 200 * US);
        let mut sent_ns = connected_ns;
        for request in 0..SESSION_REQUESTS {
            recorder.sent(at(sent_ns), 1, REQUEST_BYTES);
            let done_ns = sent_ns + SERVICE_NS;
            replied(&mut recorder, at(sent_ns), done_ns, 200);
            if request == 0 {
                recorder.first_reply(due_ns, done_ns);
            }
            sent_ns = done_ns;
        }
        recorder.disconnected(sent_ns);
        last_ns = sent_ns;
    }
    finish(recorder, last_ns)
}

/// A connection in HTTP/2 over TLS is open.
fn secured(recorder: &mut Recorder, at_ns: u64, is_resumed: bool) {
    recorder.connected(at_ns, 200 * US);
    recorder.secured(at_ns, 900 * US, is_resumed);
    recorder.greeted(100 * US);
    recorder.received(at_ns, HANDSHAKE_BYTES);
    recorder.tally(at_ns).overhead_bytes += HANDSHAKE_BYTES;
}

/// One worker over HTTP/2: four streams on each of four connections, a reply after 1 ms each time.
/// In the window one connection is asked to be replaced, with one request that was not processed,
/// and one stream of another is refused.
fn http2_worker(number: u32) -> Recording {
    let mut recorder = Recorder::new(number, CONNECTIONS, CONNECTIONS);
    for connection in 0..CONNECTIONS {
        secured(&mut recorder, 150 * MS + u64::from(connection), false);
    }
    recorder.set_window(WINDOW);
    let (head_bytes, body_bytes) = FRAME_BYTES;
    let (goaway_ns, open_again_ns) = (2_000 * MS, 2_002 * MS);
    let mut in_flight = [[None; STREAMS as usize]; CONNECTIONS as usize];
    let (mut tick_ns, mut last_ns) = (WARMUP_START_NS, 0);
    loop {
        for (connection, streams) in in_flight.iter_mut().enumerate() {
            let now_ns = tick_ns + connection as u64 * 10 * US;
            let is_replaced = connection == 0;
            if is_replaced && now_ns == goaway_ns {
                recorder.tally(now_ns).goaways += 1;
            }
            if is_replaced && now_ns == open_again_ns {
                secured(&mut recorder, now_ns, true);
            }
            for (stream, sent) in streams.iter_mut().enumerate() {
                if let Some(sent_ns) = sent.take() {
                    last_ns = now_ns;
                    if is_replaced && now_ns == goaway_ns && stream == 3 {
                        let kind = FailureKind::NotProcessed;
                        recorder.request_failed(at(sent_ns), now_ns, kind, 0);
                    } else if connection == 1 && stream == 0 && tick_ns == goaway_ns {
                        // RST_STREAM: a frame's header and a code.
                        let kind = FailureKind::StreamRefused;
                        recorder.received(now_ns, 13);
                        recorder.request_failed(at(sent_ns), now_ns, kind, 13);
                    } else {
                        recorder.received(now_ns, head_bytes + body_bytes);
                        let answer = Answer {
                            head_bytes,
                            body_bytes,
                            first_byte_ns: now_ns - 50 * US,
                            ..answer(200)
                        };
                        recorder.reply(at(sent_ns), now_ns, &answer);
                    }
                }
                let is_gone = is_replaced && (goaway_ns..open_again_ns).contains(&now_ns);
                if now_ns < WINDOW.end_ns && !is_gone {
                    recorder.sent(at(now_ns), 1, REQUEST_BYTES);
                    *sent = Some(now_ns);
                }
            }
            if is_replaced && now_ns == goaway_ns {
                recorder.disconnected(now_ns);
            }
        }
        if tick_ns >= WINDOW.end_ns {
            break;
        }
        tick_ns += SERVICE_NS;
    }
    finish(recorder, last_ns)
}

/// Fills in what the recorder is not told by events.
pub(crate) fn finish(mut recorder: Recorder, drained_ns: u64) -> Recording {
    let record = recorder.record();
    record.edges = WorkerEdges {
        started: absolute(100 * MS + u64::from(record.worker)),
        ready: absolute(160 * MS),
        window_start: absolute(WINDOW.start_ns + 20 * US),
        window_end: absolute(WINDOW.end_ns),
        drained: absolute(drained_ns),
    };
    record.kernel = KernelSample {
        connections: 1,
        kernel_bytes_received: 10_001,
        own_bytes_received: 10_000,
        min_rtt_ns: Some(30 * US),
        ..KernelSample::default()
    };
    recorder.finish(WINDOW.end_ns)
}

/// A run with one failure per worker in which every invariant holds.
pub(crate) fn run() -> Run {
    run_of([worker(0, true), worker(1, true)])
}

/// A run without a failure, so that no connection idles, in which every invariant holds.
pub(crate) fn steady_run() -> Run {
    run_of([worker(0, false), worker(1, false)])
}

/// The run with one worker, which had so many successes in each 100 ms.
pub(crate) fn with_counts(mut run: Run, counts: &[u64]) -> Run {
    run.window_ns = counts.len() as u64 * 100 * MS;
    run.agents[0].workers.truncate(1);
    let mut replies = StatusCounts::default();
    (0..counts.iter().sum()).for_each(|_| replies.add(200));
    run.agents[0].workers[0].tallies.measure.replies = replies;
    let points = counts.iter().map(|&successes| SeriesPoint {
        successes,
        ..SeriesPoint::default()
    });
    run.agents[0].workers[0].series = Series {
        points: points.collect(),
        ..Series::default()
    };
    run
}

/// The run without anything that happened since its window began.
pub(crate) fn emptied(mut run: Run) -> Run {
    run.latencies.response = Histogram::default();
    run.latencies.response_error = Histogram::default();
    for worker in &mut run.agents[0].workers {
        worker.population = Population::default();
        worker.tallies.measure = Tally::default();
        worker.tallies.after = Tally::default();
        worker.in_flight_at_end = 0;
    }
    run
}

/// Makes the run one over TLS 1.3.
pub(crate) fn over_tls(run: &mut Run) {
    run.agents[0].negotiated.tls = Some(NegotiatedTls {
        version: "TLS 1.3".to_owned(),
        cipher_suite: "TLS_AES_128_GCM_SHA256".to_owned(),
        group: Some("X25519".to_owned()),
    });
    run.plan.target.scheme = Scheme::Https;
    run.plan.connection.tls = TlsSpec {
        server_name: Some("localhost".to_owned()),
        resumption: true,
        ..TlsSpec::default()
    };
}

/// A run over HTTP/2 and TLS, with a GOAWAY and a refused stream per worker, in which every
/// invariant holds.
pub(crate) fn http2_run() -> Run {
    let mut run = run_of([http2_worker(0), http2_worker(1)]);
    run.plan.target = target("https://localhost/");
    run.agents[0].negotiated.protocol = Protocol::HTTP2;
    run.agents[0].negotiated.depth = STREAMS;
    over_tls(&mut run);
    run
}

/// An open loop of 2,000 requests per second in which every invariant holds that can.
pub(crate) fn open_run() -> Run {
    let mut run = run_of([open_worker(0), open_worker(1)]);
    run.plan.load.model = LoadModel::Open {
        schedule: schedule(2_000.0),
        connections_max: nonzero(2 * CONNECTIONS),
        queue_max: nonzero(100),
    };
    scheduled(&mut run, 4_000.0);
    run
}

/// 200 planned connections per second in which every invariant holds that can.
pub(crate) fn sessions_run() -> Run {
    let mut run = run_of([sessions_worker(0), sessions_worker(1)]);
    run.plan.load.model = LoadModel::Sessions {
        schedule: schedule(200.0),
        queue_max: nonzero(100),
    };
    scheduled(&mut run, 400.0);
    run.plan.traffic.reuse = replaced_after(SESSION_REQUESTS);
    run.plan.observation.stamps = Stamps::Off;
    run
}

fn schedule(rate_per_s: f64) -> Schedule {
    Schedule::constant_rate(ArrivalProcess::Constant, rate_per_s, 7).expect("a rate")
}

/// The schedule of a run, to be replaced.
pub(crate) fn schedule_of(run: &mut Run) -> &mut Schedule {
    match &mut run.plan.load.model {
        LoadModel::Open { schedule, .. } | LoadModel::Sessions { schedule, .. } => schedule,
        LoadModel::Closed { .. } | LoadModel::Held { .. } => panic!("without a schedule"),
    }
}

/// Gives the run's schedule these stages.
pub(crate) fn set_stages(run: &mut Run, stages: Vec<Stage>) {
    let schedule = schedule_of(run);
    *schedule = Schedule::staged(schedule.process(), stages, 7).expect("stages");
}

/// A connection is replaced after so many requests.
pub(crate) fn replaced_after(requests: u64) -> Reuse {
    Reuse::Requests(NonZeroU64::new(requests).expect("above 0"))
}

pub(crate) fn nonzero(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("above 0")
}

pub(crate) fn target(url: &str) -> Target {
    Target::parse(url, None).expect(url)
}

/// The run with what is known of its schedule.
fn scheduled(run: &mut Run, expected: f64) {
    run.agents[0].expected_arrivals = Some(expected);
    run.agents[0].seeds.arrivals = Some(7);
    deal(run);
}

/// Gives the only agent all of the plan's amounts.
pub(crate) fn deal(run: &mut Run) {
    run.agents[0].share = run.plan.amounts();
}

pub(crate) fn run_of(recordings: [Recording; 2]) -> Run {
    let mut latencies = Latencies::default();
    let mut workers = Vec::new();
    for mut recording in recordings {
        latencies.merge(&recording.latencies);
        recording.record.count_from(WINDOW.start_ns);
        workers.push(recording.record);
    }
    let requests = RequestSet::one(RequestSpec::get("/"));
    let mut plan = Plan::new(target("http://127.0.0.1:8080/"), requests);
    plan.load.connections = nonzero(2 * CONNECTIONS);
    plan.workers.count = nonzero(2);
    plan.load.stop.duration_ns = Some(2_000 * MS);
    plan.load.warmup_ns = 200 * MS;
    plan.limits.timeout_ns = 30_000 * MS;
    plan.limits.setup_timeout_ns = Some(30_000 * MS);
    plan.load.drain_limit_ns = 1_000 * MS;
    let agent = AgentRecord {
        id: "0a".to_owned(),
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
            window_start_unix_ms: 1_700_000_001_000,
            stepped_ns: 0,
            process_start_ns: -1_000 * MS as i64,
            process_ns: 3_011 * MS,
            edges: RunEdges {
                setup_start: in_run(100 * MS),
                warmup_start: in_run(WARMUP_START_NS),
                measure_start: in_run(WINDOW.start_ns),
                measure_end: in_run(WINDOW.end_ns),
                measure_end_planned: in_run(WINDOW.end_ns),
                drain_end: in_run(DRAIN_END_NS),
                finished: in_run(3_010 * MS),
            },
        },
        fleet: None,
        host: HostUse {
            usable_cpus: 2,
            cpu_user_ns: 50 * MS,
            cpu_system_ns: 250 * MS,
            cpu_interval_ns: 2_000 * MS,
            peak_resident_bytes: 12 << 20,
            resident_before_bytes: None,
        },
        limits: LimitsChecked {
            descriptors_needed: 40,
            descriptors_limit: 1_024,
            ports_needed: Some(8),
            ports_available: Some(28_232),
            memory_needed_bytes: 10 << 20,
            memory_available_bytes: Some(1 << 30),
            ..LimitsChecked::default()
        },
        evidence: Evidence::default(),
        workers,
    };
    Run {
        format: Run::FORMAT,
        brunt_version: "0.0.0".to_owned(),
        plan,
        part_of: None,
        window_ns: WINDOW.length_ns(),
        agents: vec![agent],
        lost_agents: Vec::new(),
        latencies,
        names: Vec::new(),
        objectives: Vec::new(),
    }
}

/// Gives a worker what another recorder has, which saw no request.
fn recorded_anew(worker: &mut WorkerRecord, latencies: &mut Latencies, recorder: Recorder) {
    let mut recording = recorder.finish(WINDOW.end_ns);
    latencies.merge(&recording.latencies);
    recording.record.count_from(WINDOW.start_ns);
    *worker = WorkerRecord {
        edges: worker.edges,
        thread: worker.thread,
        bound_cpu: worker.bound_cpu,
        ..recording.record
    };
}

/// Connections of each worker.
pub(crate) const HELD: u32 = 4;

/// The run with nothing on its connections. Of evidence and threads it keeps what it has.
pub(crate) fn held_open(mut run: Run) -> Run {
    run.latencies = Latencies::default();
    run.plan.load.model = LoadModel::Held {
        connect_per_s: None,
    };
    for worker in &mut run.agents[0].workers {
        let mut recorder = Recorder::new(worker.worker, HELD, HELD);
        for slot in 0..u64::from(HELD) {
            recorder.connected(150 * MS + slot, 200 * US);
        }
        recorder.set_window(WINDOW);
        recorder.held_until_now();
        recorded_anew(worker, &mut run.latencies, recorder);
    }
    run
}

/// Streams of each worker.
const WORKER_STREAMS: u64 = 4;
/// What a worker moves in 100 ms, each way.
const STEP_BYTES: u64 = 10_000_000;
const STEP_NS: u64 = 100 * MS;

/// The run with streams in place of requests. Of evidence and threads it keeps what it has.
pub(crate) fn streamed(mut run: Run) -> Run {
    run.latencies = Latencies::default();
    run.plan.connection.protocol = ProtocolSpec::Streams(Streams {
        sends: true,
        receives: true,
        paced_bits_per_s: None,
        is_arranged: false,
    });
    run.agents[0].limits.server_buffer_bytes_max = Some(8_000_000);
    run.agents[0].negotiated.protocol = Protocol::TCP;
    run.agents[0].negotiated.request_bytes = 262_144;
    for worker in &mut run.agents[0].workers {
        let mut recorder =
            Recorder::new(worker.worker, WORKER_STREAMS as u32, WORKER_STREAMS as u32);
        for stream in 0..WORKER_STREAMS {
            recorder.connected(150 * MS + stream, 200 * US);
        }
        recorder.set_window(WINDOW);
        let steps = (WINDOW.start_ns..WINDOW.end_ns).step_by(STEP_NS as usize);
        for at_ns in steps {
            recorder.tally(at_ns).bytes_sent += STEP_BYTES;
            recorder.received(at_ns, STEP_BYTES);
        }
        recorded_anew(worker, &mut run.latencies, recorder);
        worker.streams = Some(stream_record());
    }
    run
}

fn stream_record() -> StreamRecord {
    let steps = WINDOW.length_ns() / STEP_NS;
    let window = StreamAccount {
        bytes_acked: steps * STEP_BYTES,
        bytes_received: steps * STEP_BYTES,
        segments_sent: steps * STEP_BYTES / 1_448,
        segments_received: steps * STEP_BYTES / 1_448,
        busy_ns: WORKER_STREAMS * WINDOW.length_ns(),
        ..StreamAccount::default()
    };
    StreamRecord {
        window,
        lifetime: window,
        readings: (0..=steps)
            .map(|step| StreamReading {
                at_ns: (step * STEP_NS) as i64,
                bytes_acked: step * STEP_BYTES,
                bytes_received: step * STEP_BYTES,
                segments_retransmitted: 0,
            })
            .collect(),
        bytes_of_streams: vec![2 * steps * STEP_BYTES / WORKER_STREAMS; WORKER_STREAMS as usize],
        streams: WORKER_STREAMS as u32,
        min_rtt_ns: Some(30 * US),
        smoothed_rtt_ns_sum: WORKER_STREAMS * 50 * US,
        delivery_bytes_per_s: STEP_BYTES * 10,
        ..StreamRecord::default()
    }
}
