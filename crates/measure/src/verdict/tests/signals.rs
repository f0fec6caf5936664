//! Every signal, healthy, at a warning, failing and unknown.

use super::sample::{INTERVAL_NS, closed, open, overloaded, remote};
use super::*;
use crate::invariants::sample::US;
use crate::verdict::SIGNALS;
use crate::verdict::signals::read_all;
use crate::{
    CpuTimes, Diagnosis, DiagnosisPart, FailureKind, Histogram, ModelDescription, Route,
    StageDescription, Throttling,
};

/// What is bent, and how signal `id` must then stand.
struct Bent {
    id: &'static str,
    grade: Grade,
    /// Words that its detail must hold.
    words: &'static str,
    sound: fn() -> Run,
    bend: Bend,
}

fn bent(id: &'static str, grade: Grade, words: &'static str, bend: Bend) -> Bent {
    Bent {
        id,
        grade,
        words,
        sound: closed,
        bend,
    }
}

impl Bent {
    fn on(self, sound: fn() -> Run) -> Self {
        Self { sound, ..self }
    }
}

fn verify(cases: impl IntoIterator<Item = Bent>) {
    for case in cases {
        let mut run = (case.sound)();
        (case.bend)(&mut run);
        let signals = read_all(&Case::of(&run));
        let found = signals.iter().find(|signal| signal.id == case.id);
        let found = found.unwrap_or_else(|| panic!("no signal {}", case.id));
        let context = format!("{found:?}, not {:?} {:?}", case.grade, case.words);
        assert_eq!(found.grade, case.grade, "{context}");
        assert!(found.detail.contains(case.words), "{context}");
    }
}

const HEALTHY: Grade = Grade::Healthy;
const WARN: Grade = Grade::Warn;
const FAIL: Grade = Grade::Fail;
const UNKNOWN: Grade = Grade::Unknown;

fn remote_closed() -> Run {
    remote(closed())
}

/// Some values of a length, and some of another.
fn histogram(values: &[(u64, u64)]) -> Histogram {
    let mut histogram = Histogram::default();
    for &(count, ns) in values {
        (0..count).for_each(|_| histogram.record(ns));
    }
    histogram
}

/// An experiment in which the rate is as given at 8, 4 and 12 connections, and with work added.
pub(super) fn tried(rates: [u64; 4]) -> Option<Diagnosis> {
    let mut parts = Vec::new();
    for round in 0..4 {
        for (level, (connections, delay_ns)) in [(8, 0), (4, 0), (12, 0), (8, 20_000)]
            .into_iter()
            .enumerate()
        {
            parts.push(DiagnosisPart {
                connections,
                delay_ns,
                replies: rates[level] + rates[level] / 500 * (round % 2),
                length_ns: 1_000 * MS,
            });
        }
    }
    Some(Diagnosis {
        workers: 2,
        connections: 8,
        parts,
    })
}

/// What limits, as an experiment shows it. One worker's request takes 20 us at most.
pub(super) const BY_SERVER: [u64; 4] = [90_000; 4];
pub(super) const BY_CONNECTIONS: [u64; 4] = [8_000, 4_000, 12_000, 8_000];
pub(super) const BY_CLIENT: [u64; 4] = [90_000, 90_000, 90_000, 47_368];

#[test]
fn sound_runs_are_sound() {
    for (what, run) in [
        ("closed", closed()),
        ("open", open()),
        ("remote", remote_closed()),
    ] {
        let case = Case::of(&run);
        assert!(case.broken.is_empty(), "{what}: {:?}", case.broken);
        for signal in read_all(&case) {
            let is_good = matches!(signal.grade, HEALTHY | UNKNOWN);
            let accuses = ["connections_busy", "planned_rate"].contains(&signal.id);
            assert!(is_good || accuses, "{what}: {signal:?}");
            assert!(!signal.detail.is_empty(), "{what}: {signal:?}");
        }
    }
}

#[test]
fn ids_are_unique_and_rules_short() {
    for (place, rule) in SIGNALS.iter().enumerate() {
        assert!(SIGNALS[..place].iter().all(|other| other.id != rule.id));
        assert!(rule.rule.len() < 120, "{}", rule.id);
    }
}

#[test]
fn the_workers() {
    verify([
        bent("worker_idle", HEALTHY, "workers idle 60 %", |_| ()),
        bent("worker_idle", HEALTHY, "busiest worker idle 30 %", |run| {
            thread(run).cpu_user_ns = 798 * MS;
        }),
        bent("worker_idle", WARN, "idle 10 %", |run| busy_for(run, 1_798)),
        bent("worker_idle", FAIL, "idle 2.9 %", |run| {
            thread(run).cpu_system_ns = 1_740 * MS
        }),
        // Polling in vain is no work; waiting for a CPU is not idling.
        bent("worker_idle", HEALTHY, "idle 60 %", |run| {
            (thread(run).cpu_system_ns, thread(run).spun_ns) = (1_600 * MS, 1_000 * MS);
        }),
        bent("worker_idle", FAIL, "idle 0 %", |run| {
            thread(run).run_queue_wait_ns = Some(1_200 * MS);
        }),
        bent("worker_idle", UNKNOWN, "1 worker was not read", |run| {
            run.workers[0].thread = None;
        }),
        bent("worker_idle", UNKNOWN, "not read", |run| {
            run.workers
                .iter_mut()
                .for_each(|worker| worker.thread = None);
        }),
        bent("run_queue_wait", HEALTHY, "0.2 %", |_| ()),
        bent("run_queue_wait", WARN, "3.6 %", |run| {
            thread(run).run_queue_wait_ns = Some(30 * MS);
        }),
        bent("run_queue_wait", FAIL, "14 %", |run| {
            thread(run).cpu_system_ns = 1_500 * MS;
            thread(run).run_queue_wait_ns = Some(280 * MS);
        }),
        // Idle all the same.
        bent("run_queue_wait", WARN, "waking up", |run| {
            thread(run).run_queue_wait_ns = Some(100 * MS);
        }),
        bent("run_queue_wait", UNKNOWN, "does not say", |run| {
            run.workers
                .iter_mut()
                .flat_map(|worker| &mut worker.thread)
                .for_each(|thread| thread.run_queue_wait_ns = None);
        }),
        bent("involuntary_switches", HEALTHY, "10 times", |_| ()),
        bent("involuntary_switches", WARN, "60 times", |run| {
            thread(run).involuntary_switches = 120;
        }),
        bent("involuntary_switches", WARN, "briefly", |run| {
            thread(run).involuntary_switches = 9_000;
        }),
        bent("involuntary_switches", FAIL, "4,500 times", |run| {
            thread(run).involuntary_switches = 9_000;
            thread(run).cpu_system_ns = 1_500 * MS;
            thread(run).run_queue_wait_ns = Some(80 * MS);
        }),
        bent("involuntary_switches", UNKNOWN, "not read", |run| {
            run.workers
                .iter_mut()
                .for_each(|worker| worker.thread = None);
        }),
        bent("worker_imbalance", HEALTHY, "alike", |_| ()),
        bent("worker_imbalance", WARN, "2 times", |run| {
            run.workers[0].live.connection_ns *= 2;
        }),
        bent("worker_imbalance", UNKNOWN, "one worker", |run| {
            run.workers.truncate(1)
        }),
        bent("worker_imbalance", UNKNOWN, "too few", |run| {
            run.workers[0].tallies = Default::default();
        }),
        bent("worker_imbalance", UNKNOWN, "schedule", |_| ()).on(open),
    ]);
}

#[test]
fn the_time_that_brunt_takes() {
    verify([
        bent(
            "own_share",
            HEALTHY,
            "own share 0.4 %, of p99 0.4 %",
            |_| (),
        ),
        bent("own_share", WARN, "own share 5.0 %", |run| {
            own_share(run, 50)
        }),
        bent("own_share", WARN, "waking up", |run| own_share(run, 300)),
        bent("own_share", FAIL, "own share 30 %", |run| {
            own_share(run, 300);
            busy_for(run, 1_800);
        }),
        bent("own_share", UNKNOWN, "no kernel stamps", |run| {
            run.load.stamps_every = None
        }),
        bent("own_share", UNKNOWN, "pipelined", |run| {
            run.load.pipeline = 2
        }),
        bent("own_share", UNKNOWN, "0 stamped replies", |run| {
            run.latencies.split = Default::default();
        }),
        bent("schedule_lag", HEALTHY, "p99 5", |_| ()).on(open),
        bent("schedule_lag", HEALTHY, "p99 900", |run| {
            run.latencies.lag = histogram(&[(1_000, 900 * US)]);
            run.latencies.response = histogram(&[(1_000, 80 * MS)]);
        })
        .on(open),
        bent("schedule_lag", WARN, "p99 80", |run| {
            run.latencies.lag = histogram(&[(1_000, 80 * US)]);
        })
        .on(open),
        bent("schedule_lag", WARN, "waking up", |run| {
            run.latencies.lag = histogram(&[(1_000, 200 * US)]);
        })
        .on(open),
        bent("schedule_lag", FAIL, "p99 200", |run| {
            run.latencies.lag = histogram(&[(1_000, 200 * US)]);
            busy_for(run, 1_800);
        })
        .on(open),
        bent("schedule_lag", FAIL, "p99 2", |run| {
            run.latencies.lag = histogram(&[(1_000, 2 * MS)]);
        })
        .on(open),
        bent("schedule_lag", UNKNOWN, "closed loop", |_| ()),
        bent("schedule_lag", UNKNOWN, "too few", |run| {
            run.latencies.lag = Histogram::default();
        })
        .on(open),
        bent("plan_sent", HEALTHY, "everything", |_| ()).on(open),
        // Half busy: at most half of the arrivals can have found no connection free.
        bent("plan_sent", HEALTHY, "no connection free", |run| {
            drop_planned(run, 3_900)
        })
        .on(open),
        bent("plan_sent", WARN, "of the plan not sent", |run| {
            drop_planned(run, 4_044)
        })
        .on(open),
        bent("plan_sent", FAIL, "10 %", |run| drop_planned(run, 4_800)).on(open),
        bent("plan_sent", UNKNOWN, "stages", |run| {
            drop_planned(run, 10);
            if let ModelDescription::Open { schedule, .. } = &mut run.load.model {
                schedule.stages.push(StageDescription {
                    duration_ns: 1,
                    from_per_s: 1.0,
                    to_per_s: 1.0,
                });
            }
        })
        .on(open),
        bent("plan_sent", UNKNOWN, "nothing", |run| {
            run.workers
                .iter_mut()
                .for_each(|worker| worker.arrivals = Default::default());
        })
        .on(open),
        bent("plan_sent", UNKNOWN, "closed loop", |_| ()),
    ]);
}

/// So many microseconds of each millisecond are brunt's.
fn own_share(run: &mut Run, us: u64) {
    let mut split = crate::Split::default();
    for _ in 0..2_000 {
        split.record(&crate::Parts {
            server_ns: 1_000 * US - us * US,
            lag_receive_ns: us * US,
            ..crate::Parts::default()
        });
    }
    run.latencies.split = split;
}

/// So many arrivals of 8,000 were never sent.
fn drop_planned(run: &mut Run, dropped: u64) {
    for worker in &mut run.workers {
        worker.arrivals.sent -= dropped / 2;
        worker.arrivals.skipped_full += dropped / 2;
        // As it is without the edges of the window.
        worker.under_way_ns = worker.live.connection_ns / 2;
    }
}

#[test]
fn the_clients_machine() {
    verify([
        bent("cpu_pressure", HEALTHY, "1.0 %", |_| ()),
        bent("cpu_pressure", WARN, "10 %", |run| {
            run.evidence.host.pressure_ns = Some(200 * MS);
        }),
        bent("cpu_pressure", WARN, "not the workers", |run| {
            run.evidence.host.pressure_ns = Some(1_000 * MS);
        }),
        bent("cpu_pressure", FAIL, "50 %", |run| {
            run.evidence.host.pressure_ns = Some(1_000 * MS);
            thread(run).cpu_system_ns = 1_300 * MS;
            thread(run).run_queue_wait_ns = Some(200 * MS);
        }),
        bent("cpu_pressure", UNKNOWN, "no PSI here", |run| {
            run.evidence.host.pressure_ns = None;
            let missing = &mut run.evidence.missing;
            missing.insert("host.pressure_ns".to_owned(), "no PSI here".to_owned());
        }),
        bent("throttling", HEALTHY, "no CPU quota", |_| ()),
        bent("throttling", HEALTHY, "never used up", |run| {
            throttled(run, 0)
        }),
        bent("throttling", WARN, "0.5 %", |run| throttled(run, 10)),
        bent("throttling", FAIL, "30 %", |run| throttled(run, 600)),
        bent("throttling", UNKNOWN, "nothing was read", |run| {
            run.evidence.interval_ns = 0
        }),
        bent("throttling", UNKNOWN, "hidden", |run| {
            let missing = &mut run.evidence.missing;
            missing.insert("host.throttling".to_owned(), "hidden".to_owned());
        }),
        bent("zero_windows", HEALTHY, "0 full", |_| ()),
        bent("zero_windows", WARN, "4 full", |run| {
            tcp(run).zero_windows_advertised = 4
        }),
        bent("zero_windows", WARN, "server's sockets", |run| {
            tcp(run).zero_windows_advertised = 400;
        }),
        bent("zero_windows", FAIL, "400 full", |run| {
            tcp(run).zero_windows_advertised = 400
        })
        .on(remote_closed),
        bent("zero_windows", UNKNOWN, "not read", |run| {
            run.evidence.network = None
        }),
        bent("receive_prunes", HEALTHY, "0 segments", |_| ()),
        bent("receive_prunes", WARN, "1 segments", |run| {
            tcp(run).receive_prunes = 1
        }),
        bent("receive_prunes", FAIL, "80 segments", |run| {
            tcp(run).receive_prunes = 80
        })
        .on(remote_closed),
        bent("receive_prunes", UNKNOWN, "not read", |run| {
            run.evidence.network = None
        }),
        bent("send_buffer", HEALTHY, "0 %", |run| {
            run.load.request_bytes = 1 << 20
        }),
        bent("send_buffer", WARN, "2.0 %", |run| upload(run, 0, 40)),
        bent("send_buffer", FAIL, "10 %", |run| upload(run, 0, 200)),
        bent("send_buffer", UNKNOWN, "small", |_| ()),
        bent("send_buffer", UNKNOWN, "no connection", |run| {
            run.load.request_bytes = 1 << 20;
            run.workers
                .iter_mut()
                .for_each(|worker| worker.kernel.busy_ns = 0);
        }),
        bent("client_limits", HEALTHY, "sufficed", |_| ()),
        bent("client_limits", WARN, "outside of the window", |run| {
            run.workers[0]
                .tallies
                .before
                .failures
                .add(FailureKind::ConnectNoPort);
        }),
        bent("client_limits", WARN, "90 % full", |run| {
            conntrack(run, 900, 0)
        }),
        bent("client_limits", FAIL, "no free local port 1 time", |run| {
            run.workers[0]
                .tallies
                .measure
                .failures
                .add(FailureKind::ConnectNoPort);
        }),
        bent("client_limits", FAIL, "no free descriptor", |run| {
            run.workers[0]
                .tallies
                .measure
                .failures
                .add(FailureKind::ConnectNoDescriptor);
        }),
        bent("client_limits", FAIL, "96 % full", |run| {
            conntrack(run, 960, 0)
        }),
        bent("client_limits", FAIL, "3 packets dropped", |run| {
            conntrack(run, 10, 3)
        }),
        bent("client_limits", UNKNOWN, "no connection", |run| {
            run.workers
                .iter_mut()
                .for_each(|worker| worker.tallies = Default::default());
        }),
        bent("ceiling", HEALTHY, "4.0 %", |_| ()),
        bent("ceiling", WARN, "92 %", |run| ceiling(run, 8_700.0)),
        // One worker's ceiling says little about two.
        bent("ceiling", HEALTHY, "with 1 worker", |run| {
            ceiling(run, 8_700.0);
            run.calibration.as_mut().expect("a calibration").ceilings[0].workers = 1;
        }),
        bent("ceiling", UNKNOWN, "calibrate", |run| {
            run.calibration = None
        }),
        bent("ceiling", UNKNOWN, "no rate", |run| ceiling(run, 0.0)),
        bent("ceiling", UNKNOWN, "loopback", |_| ()).on(remote_closed),
        bent("added_delay", HEALTHY, "lowered", |run| {
            run.diagnosis = tried(BY_SERVER)
        }),
        bent("added_delay", WARN, "lowered", |run| {
            run.diagnosis = tried([90_000, 90_000, 90_000, 72_000]);
        }),
        bent("added_delay", FAIL, "lowered", |run| {
            run.diagnosis = tried(BY_CLIENT);
            busy_for(run, 1_900);
        }),
        bent("added_delay", WARN, "have time", |run| {
            run.diagnosis = tried(BY_CLIENT)
        }),
        bent("added_delay", UNKNOWN, "--diagnose", |_| ()),
        bent("added_delay", UNKNOWN, "too little", |run| {
            run.diagnosis = tried([90; 4])
        }),
    ]);
}

pub(super) fn throttled(run: &mut Run, ms: u64) {
    run.evidence.host.throttling = Some(Throttling {
        periods: 20,
        throttled_periods: 10,
        throttled_ns: ms * MS,
    });
}

/// Uploads, of 1,000 ms per worker so many held up by the server's window and by our buffer.
pub(super) fn upload(run: &mut Run, window_ms: u64, buffer_ms: u64) {
    run.load.request_bytes = 1 << 20;
    let kernel = &mut run.workers[0].kernel;
    kernel.receive_window_limited_ns = window_ms * MS;
    kernel.send_buffer_limited_ns = buffer_ms * MS;
}

fn conntrack(run: &mut Run, entries: u64, dropped_packets: u64) {
    let network = run.evidence.network.as_mut().expect("a network");
    network.conntrack = Some(crate::Conntrack {
        entries,
        entries_max: 1_000,
        dropped_packets,
    });
}

fn ceiling(run: &mut Run, requests_per_s: f64) {
    let calibration = run.calibration.as_mut().expect("a calibration");
    calibration.ceilings[0].requests_per_s = requests_per_s;
}

#[test]
fn the_network() {
    verify([
        bent("retransmits", HEALTHY, "0 %", |_| ()),
        // A few are none.
        bent("retransmits", HEALTHY, "(4)", |run| {
            run.workers[0].kernel.segments_retransmitted = 4
        }),
        bent("retransmits", WARN, "0.2 %", |run| {
            run.workers[0].kernel.segments_retransmitted = 20;
        }),
        bent("retransmits", FAIL, "1.0 %", |run| {
            run.workers[0].kernel.segments_retransmitted = 80;
        }),
        bent("retransmits", FAIL, "1.0 %", |run| {
            tcp(run).segments_retransmitted = 800
        }),
        bent("retransmits", HEALTHY, "0 %", |run| {
            (tcp(run).segments_retransmitted, tcp(run).syn_retransmits) = (800, 800);
        }),
        bent("retransmits", WARN, "accept queue", |run| {
            (tcp(run).segments_retransmitted, tcp(run).listen_overflows) = (800, 9);
        }),
        bent("retransmits", UNKNOWN, "no segments", no_segments),
        bent("out_of_order", HEALTHY, "0 %", |_| ()),
        bent("out_of_order", WARN, "0.2 %", |run| {
            tcp(run).segments_out_of_order = 160
        }),
        bent("out_of_order", FAIL, "2.0 %", |run| {
            tcp(run).segments_out_of_order = 1_600
        }),
        bent("out_of_order", UNKNOWN, "no segments", no_segments),
        bent("queueing", HEALTHY, "2 times", |run| bulk(run, 60)).on(remote_closed),
        // Many times the smallest, and still nothing.
        bent("queueing", HEALTHY, "50 times", |run| bulk(run, 1_500)).on(remote_closed),
        bent("queueing", WARN, "nothing was lost", |run| {
            bulk(run, 60_000)
        })
        .on(remote_closed),
        bent("queueing", FAIL, "up to 60 ms, 2000 times", |run| {
            bulk(run, 60_000);
            tcp(run).segments_out_of_order = 160;
        })
        .on(remote_closed),
        bent("queueing", UNKNOWN, "share a machine", |run| {
            bulk(run, 60_000)
        }),
        bent("queueing", UNKNOWN, "too short", |_| ()).on(remote_closed),
        bent("queueing", UNKNOWN, "no round trips", |run| {
            bulk(run, 60_000);
            run.workers[0].kernel.receive_rtt_ns_max = None;
        })
        .on(remote_closed),
        bent("link_use", HEALTHY, "4.0 %", |_| ()).on(remote_closed),
        bent("link_use", WARN, "85 %", |run| link(run, 212_500_000, 0)).on(remote_closed),
        bent("link_use", FAIL, "96 %", |run| link(run, 0, 240_000_000)).on(remote_closed),
        bent("link_use", UNKNOWN, "--link-speed", |run| {
            if let Some(network) = &mut run.evidence.network
                && let Route::Interface {
                    link_bits_per_s, ..
                } = &mut network.route
            {
                *link_bits_per_s = None;
            }
        })
        .on(remote_closed),
        bent("link_use", UNKNOWN, "share a machine", |_| ()),
        bent("link_use", UNKNOWN, "not read", |run| {
            run.evidence.network = None
        }),
    ]);
}

fn no_segments(run: &mut Run) {
    run.evidence.network = None;
    run.workers
        .iter_mut()
        .for_each(|worker| worker.kernel = Default::default());
}

/// Long replies, with the largest round trip of data.
fn bulk(run: &mut Run, largest_us: u64) {
    run.workers[0].tallies.measure.bytes_received = 1 << 30;
    run.workers[0].kernel.receive_rtt_ns_max = Some(largest_us * US);
}

pub(super) fn link(run: &mut Run, received: u64, sent: u64) {
    if let Some(network) = &mut run.evidence.network
        && let Route::Interface {
            received_bytes,
            sent_bytes,
            ..
        } = &mut network.route
    {
        (*received_bytes, *sent_bytes) = (received, sent);
    }
}

#[test]
fn the_server() {
    verify([
        bent("server_cpu", HEALTHY, "server nginx 20 % of 2 CPUs", |_| ()),
        bent("server_cpu", WARN, "85 %", |run| {
            server_busy_for(run, 3_400)
        }),
        bent("server_cpu", FAIL, "98 % of 2 CPUs", |run| {
            server_busy_for(run, 3_900)
        }),
        // One thread, of two CPUs.
        bent("server_cpu", FAIL, "1 thread busy all the time", |run| {
            one_thread(run, 1_960)
        }),
        // With a helper beside it.
        bent("server_cpu", FAIL, "1 thread busy", |run| {
            one_thread(run, 2_160);
            server(run).threads.as_mut().expect("threads").active = 2;
        }),
        // With another that has time left.
        bent("server_cpu", HEALTHY, "80 % of 2 CPUs", |run| {
            one_thread(run, 3_190);
            server(run).threads.as_mut().expect("threads").active = 2;
        }),
        // It is ready all the time, and runs for half of it.
        bent("server_cpu", WARN, "1 thread waiting for a CPU", |run| {
            one_thread(run, 1_000);
            server(run).run_queue_wait_ns = Some(980 * MS);
        }),
        // A request at a time keeps a thread busy without more being there to do.
        bent("server_cpu", HEALTHY, "49 %", |run| {
            one_thread(run, 1_960);
            run.workers
                .iter_mut()
                .for_each(|worker| worker.under_way_ns = 1_000 * MS);
        }),
        bent("server_cpu", UNKNOWN, "not watched", |run| {
            run.evidence.server = None
        }),
        bent("server_cpu", UNKNOWN, "with nothing to do", |run| {
            server_busy_for(run, 3_900);
            server(run).idle_cpus_used = Some(2.0);
        }),
        bent("server_cpu", UNKNOWN, "of how many", |run| {
            server(run).cpus = None
        }),
        bent("server_throttling", HEALTHY, "no CPU quota", |_| ()),
        bent("server_throttling", WARN, "0.5 %", |run| {
            server_throttled(run, 10)
        }),
        bent("server_throttling", FAIL, "50 %", |run| {
            server_throttled(run, 1_000)
        }),
        bent("server_throttling", UNKNOWN, "not watched", |run| {
            run.evidence.server = None
        }),
        bent("accept_queue", HEALTHY, "at once", |_| ()),
        bent("accept_queue", WARN, "dropped on arrival", |run| {
            tcp(run).listen_drops = 3
        }),
        bent(
            "accept_queue",
            WARN,
            "1 connection asked for again",
            |run| {
                tcp(run).syn_retransmits = 1;
            },
        ),
        bent("accept_queue", WARN, "none of the window's", |run| {
            tcp(run).listen_overflows = 3
        }),
        bent(
            "accept_queue",
            FAIL,
            "3 connections met a full accept queue",
            |run| {
                tcp(run).listen_overflows = 3;
                run.workers[0].tallies.measure.connections_opened = 500;
            },
        ),
        bent("accept_queue", FAIL, "a second and more", |run| {
            run.latencies.connect = histogram(&[(990, MS), (10, 1_010 * MS)]);
            run.workers[0].tallies.measure.connections_opened = 500;
        }),
        bent("accept_queue", FAIL, "asked for again", |run| {
            tcp(run).syn_retransmits = 20;
            run.workers[0].tallies.measure.connections_opened = 500;
        })
        .on(remote_closed),
        // On a network that loses segments, requests for connections are lost as well.
        bent("accept_queue", WARN, "as other segments were lost", |run| {
            (tcp(run).syn_retransmits, tcp(run).segments_retransmitted) = (20, 800);
            run.workers[0].tallies.measure.connections_opened = 500;
        })
        .on(remote_closed),
        // Somebody else's listening socket.
        bent("accept_queue", HEALTHY, "at once", |run| {
            tcp(run).listen_overflows = 3
        })
        .on(remote_closed),
        bent("accept_queue", UNKNOWN, "no connection", |run| {
            run.evidence.network = None;
            run.latencies.connect = Histogram::default();
        }),
        bent("receive_window", HEALTHY, "0 %", |run| upload(run, 0, 0)),
        bent("receive_window", WARN, "5.0 %", |run| upload(run, 100, 0)),
        bent("receive_window", FAIL, "40 %", |run| upload(run, 800, 0)),
        bent("receive_window", UNKNOWN, "small", |_| ()),
        bent("receive_window", UNKNOWN, "no connection", |run| {
            upload(run, 0, 0);
            run.workers
                .iter_mut()
                .for_each(|worker| worker.kernel.busy_ns = 0);
        }),
    ]);
}

/// A single thread does the work, and the process used so many milliseconds of 2,000.
pub(super) fn one_thread(run: &mut Run, ms: u64) {
    server_busy_for(run, ms);
    server(run).threads = Some(crate::ServerThreads {
        count: 1,
        active: 1,
        saturated: 1,
        busiest_cpu_ns: (ms * MS).min(INTERVAL_NS),
    });
}

pub(super) fn server_throttled(run: &mut Run, ms: u64) {
    server(run).throttling = Some(Throttling {
        periods: 20,
        throttled_periods: 10,
        throttled_ns: ms * MS,
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
    for times in &mut run.evidence.host.cpus {
        let busy_ns = if times.cpu < 2 { busy_ms * MS } else { 0 };
        *times = CpuTimes {
            busy_ns,
            idle_ns: INTERVAL_NS - busy_ns,
            softirq_ns: 0,
            ..*times
        };
    }
}

#[test]
fn the_same_cpus() {
    verify([
        bent("shared_host", HEALTHY, "CPUs of their own", |_| ()),
        bent("shared_host", HEALTHY, "on the same 2 CPUs", |run| {
            same_cpus(run, 1_000)
        }),
        bent(
            "shared_host",
            FAIL,
            "client 1.4 and server 2.2 CPU-seconds on the same 2 CPUs",
            |run| {
                same_cpus(run, 1_900);
            },
        ),
        bent("shared_host", FAIL, "CPU-seconds", |run| {
            same_cpus(run, 1_600);
            run.evidence.host.pressure_ns = Some(200 * MS);
        }),
        bent("shared_host", HEALTHY, "CPU-seconds", |run| {
            same_cpus(run, 900);
            run.evidence.host.pressure_ns = Some(200 * MS);
        }),
        // Busy, and yet nobody waits.
        bent("shared_host", HEALTHY, "CPU-seconds", |run| {
            same_cpus(run, 1_900);
            server(run).run_queue_wait_ns = Some(10 * MS);
            thread(run).run_queue_wait_ns = Some(2 * MS);
        }),
        bent("shared_host", WARN, "others 1", |run| {
            same_cpus(run, 2_000);
            server_busy_for(run, 1_600);
        }),
        bent("shared_host", HEALTHY, "do not share", |run| {
            server(run).cpu_list = Vec::new()
        })
        .on(|| Run {
            evidence: crate::Evidence {
                server: closed().evidence.server,
                ..remote_closed().evidence
            },
            ..remote_closed()
        }),
        bent("shared_host", UNKNOWN, "server's CPUs", |run| {
            server(run).cpu_list = Vec::new()
        }),
        bent("shared_host", UNKNOWN, "not watched", |run| {
            run.evidence.server = None
        }),
        bent("shared_host", UNKNOWN, "were not read", |run| {
            run.evidence.host.cpus = Vec::new()
        }),
    ]);
}

#[test]
fn the_load() {
    verify([
        bent("refusals", HEALTHY, "no request", |_| ()),
        bent("refusals", WARN, "(503)", |run| answered_with(run, 503, 1)),
        bent(
            "refusals",
            FAIL,
            "turned 3.1 % of the requests away (429)",
            |run| {
                answered_with(run, 429, 500);
            },
        ),
        bent("refusals", FAIL, "(Retry-After)", |run| {
            run.workers[0].tallies.measure.retry_afters = 900;
        }),
        bent("refusals", UNKNOWN, "no reply", |run| {
            run.workers
                .iter_mut()
                .for_each(|worker| worker.tallies = Default::default());
        }),
        bent("planned_rate", HEALTHY, "of 4,000 requests", |_| ()).on(overloaded),
        bent("planned_rate", FAIL, "was met", |_| ()).on(open),
        bent("planned_rate", UNKNOWN, "closed loop", |_| ()),
        bent("planned_rate", UNKNOWN, "too short", |run| {
            run.window.end_ns = run.window.start_ns + 700 * MS;
        })
        .on(open),
        bent("backlog", HEALTHY, "no backlog", |_| ()).on(open),
        bent("backlog", WARN, "overloaded", |run| {
            run.evidence.server = None
        })
        .on(overloaded),
        bent("backlog", FAIL, "all connections busy", |_| ()).on(overloaded),
        bent("backlog", FAIL, "capacity about 4,000 per second", |run| {
            server_busy_for(run, 3_400);
        })
        .on(overloaded),
        bent("backlog", FAIL, "times its best", |run| {
            run.evidence.server = None;
            run.latencies.service = histogram(&[(100, MS), (1_000, 9 * MS)]);
        })
        .on(overloaded),
        bent("backlog", UNKNOWN, "closed loop", |_| ()),
        bent(
            "connections_busy",
            HEALTHY,
            "the server has no room",
            |run| {
                server_busy_for(run, 3_900);
            },
        ),
        bent("connections_busy", HEALTHY, "50 % busy", |_| ()).on(open),
        bent("connections_busy", WARN, "times its best", |run| {
            run.latencies.service = histogram(&[(100, MS), (1_000, 9 * MS)]);
        }),
        bent(
            "connections_busy",
            FAIL,
            "8 connections, always busy",
            |_| (),
        ),
        bent(
            "connections_busy",
            FAIL,
            "8 connections, always busy",
            |_| (),
        )
        .on(overloaded),
        bent(
            "connections_busy",
            FAIL,
            "1 connection, always busy",
            |run| {
                run.load.connections = 1;
                run.latencies.service = histogram(&[(100, MS), (1_000, 9 * MS)]);
            },
        ),
        bent("connections_busy", UNKNOWN, "not known", |run| {
            run.evidence.server = None
        }),
        bent("connections_busy", UNKNOWN, "too few", |run| {
            run.latencies.response = histogram(&[(3, MS)]);
        }),
        bent("elasticity", HEALTHY, "gave 0 %", |run| {
            run.diagnosis = tried(BY_SERVER)
        }),
        bent("elasticity", WARN, "gave 0.4", |run| {
            run.diagnosis = tried([80_000, 60_000, 94_000, 80_000]);
        }),
        bent("elasticity", FAIL, "gave 1 %", |run| {
            run.diagnosis = tried(BY_CONNECTIONS)
        }),
        bent("elasticity", UNKNOWN, "--diagnose", |_| ()),
    ]);
}

#[test]
fn doubts() {
    verify([
        bent("steal", HEALTHY, "steal 0 %", |_| ()),
        // Two ticks.
        bent("steal", HEALTHY, "steal 0.2", |run| stolen(run, 0, 20)),
        bent("steal", WARN, "steal 1", |run| stolen(run, 0, 80)),
        bent("steal", FAIL, "steal 2", |run| stolen(run, 3, 200)),
        bent("steal", UNKNOWN, "not read", |run| {
            run.evidence.host.cpus = Vec::new()
        }),
        bent("drift", HEALTHY, "against the first", |_| ()),
        bent("drift", FAIL, "drifted", drifting),
        bent("drift", UNKNOWN, "too short", |run| {
            run.window.end_ns = run.window.start_ns + 700 * MS;
        }),
        bent("samples", HEALTHY, "replies in 2 s", |_| ()),
        bent("samples", FAIL, "in 400 ms", |run| {
            run.window.end_ns = run.window.start_ns + 400 * MS;
        }),
        bent("samples", FAIL, "0 replies", |run| {
            run.workers
                .iter_mut()
                .for_each(|worker| worker.tallies = Default::default());
        }),
    ]);
}

pub(super) fn stolen(run: &mut Run, cpu: usize, ms: u64) {
    run.evidence.host.cpus[cpu].steal_ns = ms * MS;
}

/// Less and less is done.
pub(super) fn drifting(run: &mut Run) {
    for worker in &mut run.workers {
        for (index, point) in worker.series.points.iter_mut().enumerate() {
            point.successes -= 5 * index as u64;
        }
    }
}
