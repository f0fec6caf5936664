//! Changes to sound runs that make a case of them.

use brunt_record::{
    CpuTimes, FailureKind, Halving, Histogram, OtherPrograms, Placement, ProgramUse, Protocol,
    Route, Run, ServerCount, ServerEvidence, ServerThreads, StatusCounts, TcpCounters, ThreadUse,
    Throttling, WorkerRecord,
};

use super::sample::INTERVAL_NS;
use crate::RunFigures;
use crate::invariants::sample::MS;

/// A change to a run.
pub(super) type Bend = fn(&mut Run);

pub(super) fn server(run: &mut Run) -> &mut ServerEvidence {
    run.agents[0].evidence.server.as_mut().expect("a server")
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
    run.plan.think_time_ns = MS;
    for worker in &mut run.agents[0].workers {
        worker.in_flight_ns /= 2;
    }
}

/// Has the server's own count exceed what was sent by `requests`.
pub(super) fn counted_beyond(run: &mut Run, requests: u64) {
    run.agents[0].evidence.server_count = Some(ServerCount {
        url: "http://127.0.0.1:8080/counters".to_owned(),
        path: "requests".to_owned(),
        before: 100,
        after: 100 + run.summary().lifetime.requests_sent + requests,
        own_reads: 0,
    });
}

/// Sets the server's CPU, in milliseconds of 2,000 on each of two CPUs.
pub(super) fn server_busy_for(run: &mut Run, ms: u64) {
    let server = server(run);
    server.cpu_user_ns = 0;
    server.cpu_system_ns = ms * MS;
}

/// Sets the status of the first `count` replies in the window of the first worker.
pub(super) fn answered_with(run: &mut Run, status: u16, count: u64) {
    let replies = &mut run.agents[0].workers[0].tallies.measure.replies;
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
    let failures = &mut run.agents[0].workers[0].tallies.measure.failures;
    (0..count).for_each(|_| failures.add(kind));
}

/// A warm-up in which each worker had so many replies per slice with half of its connections, and
/// 80 with all of them.
pub(super) fn halved(run: &mut Run, by_half: u64) {
    let slices = (0..Halving::SLICES).map(|slice| match Halving::pauses_half(slice) {
        true => by_half,
        false => 80,
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
    server(run).throttling = Some(Throttling {
        periods: 200,
        throttled_periods: ms / 10,
        throttled_ns: ms * MS,
    });
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
    run.agents[0].evidence.host.throttling = Some(Throttling {
        periods: 200,
        throttled_periods: ms / 10,
        throttled_ns: ms * MS,
    });
}

/// Makes the requests uploads. Of 1,000 ms, the server's window held those of the first worker up
/// for `window_ms`, and our buffer for `buffer_ms`.
pub(super) fn upload(run: &mut Run, window_ms: u64, buffer_ms: u64) {
    run.agents[0].negotiated.request_bytes = 1 << 20;
    let kernel = &mut run.agents[0].workers[0].kernel;
    kernel.receive_window_limited_ns = window_ms * MS;
    kernel.send_buffer_limited_ns = buffer_ms * MS;
}
