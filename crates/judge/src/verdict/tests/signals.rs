//! Every signal, bent until it stands otherwise.

use brunt_load::Stage;
use brunt_load::protocol::Protocol;
use brunt_record::{FailureKind, Histogram, Route, Run, ServerConnections};

use crate::invariants::sample::{MS, US, nonzero, sessions_run, set_stages};
use crate::verdict::Grade;
use crate::verdict::signals::{SIGNALS, read_all};
use crate::verdict::tests::bend::*;
use crate::verdict::tests::bend::{cases_of, closed, open, overloaded, remote};

/// What is bent, and how a signal must then stand.
pub(super) struct Bent {
    grade: Grade,
    /// Words that its detail must hold.
    words: &'static str,
    sound: fn() -> Run,
    bend: Bend,
}

pub(super) fn bent(grade: Grade, words: &'static str, bend: Bend) -> Bent {
    Bent {
        grade,
        words,
        sound: closed,
        bend,
    }
}

impl Bent {
    pub(super) fn on(self, sound: fn() -> Run) -> Self {
        Self { sound, ..self }
    }
}

/// The signal of this name.
struct Named(&'static str);

fn signal(id: &'static str) -> Named {
    Named(id)
}

impl Named {
    fn verify(self, cases: impl IntoIterator<Item = Bent>) {
        for facts in cases {
            let mut run = (facts.sound)();
            (facts.bend)(&mut run);
            let signals = read_all(&cases_of(&run));
            let found = signals
                .iter()
                .find(|signal| signal.id.to_string() == self.0);
            let found = found.unwrap_or_else(|| panic!("no signal {}", self.0));
            let context = format!("{found:?}, not {:?} {:?}", facts.grade, facts.words);
            assert_eq!(found.grade, facts.grade, "{context}");
            assert!(found.detail.contains(facts.words), "{context}");
        }
    }
}

pub(super) const HEALTHY: Grade = Grade::Healthy;
pub(super) const WARN: Grade = Grade::Warn;
pub(super) const FAIL: Grade = Grade::Fail;
pub(super) const UNKNOWN: Grade = Grade::Unknown;

pub(super) fn remote_closed() -> Run {
    remote(closed())
}

#[test]
fn sound_runs_are_sound() {
    for (what, run) in [
        ("closed", closed()),
        ("open", open()),
        ("remote", remote_closed()),
    ] {
        let cases = cases_of(&run);
        let facts = &cases[0];
        assert!(facts.broken.is_empty(), "{what}: {:?}", facts.broken);
        for signal in read_all(&cases) {
            let is_good = matches!(signal.grade, HEALTHY | UNKNOWN);
            let accuses =
                ["connections_busy", "planned_rate"].contains(&signal.id.to_string().as_str());
            assert!(is_good || accuses, "{what}: {signal:?}");
            assert!(!signal.detail.is_empty(), "{what}: {signal:?}");
        }
    }
}

#[test]
fn ids_are_unique() {
    for (place, (id, ..)) in SIGNALS.iter().enumerate() {
        assert!(SIGNALS[..place].iter().all(|(other, ..)| other != id));
    }
}

/// Over HTTP/3 so many packets were sent, and of those so many lost.
fn packets(run: &mut Run, sent: u64, lost: u64) {
    run.agents[0].negotiated.protocol = Protocol::HTTP3;
    let quic = &mut tally(run).quic;
    (quic.packets_sent, quic.packets_lost) = (sent, lost);
}

#[test]
fn the_network() {
    signal("lost_segments").verify([
        bent(HEALTHY, "0 %", |_| ()),
        // A few are none.
        bent(HEALTHY, "(4)", |run| kernel(run).segments_retransmitted = 4),
        bent(WARN, "0.2 %", |run| kernel(run).segments_retransmitted = 20),
        bent(FAIL, "1.0 %", |run| kernel(run).segments_retransmitted = 80),
        bent(FAIL, "1.0 %", |run| tcp(run).segments_retransmitted = 800),
        bent(HEALTHY, "0 %", |run| {
            (tcp(run).segments_retransmitted, tcp(run).syn_retransmits) = (800, 800)
        }),
        bent(WARN, "accept queue", |run| {
            (tcp(run).segments_retransmitted, tcp(run).listen_overflows) = (800, 9)
        }),
        // Requests that share segments do not make those of others brunt's.
        bent(HEALTHY, "0 %", |run| {
            run.agents[0].negotiated.depth = 50;
            tcp(run).segments_retransmitted = 800;
        }),
        bent(FAIL, "1.0 %", |run| {
            run.agents[0].negotiated.depth = 50;
            (tcp(run).segments_retransmitted, tcp(run).segments_sent) = (50, 5_000);
        }),
        bent(UNKNOWN, "no segments", no_segments),
        bent(UNKNOWN, "no packet", |run| packets(run, 0, 0)),
        // What TCP counts has no meaning over datagrams.
        bent(HEALTHY, "0 % of the packets", |run| {
            packets(run, 8_000, 0);
            tcp(run).segments_retransmitted = 800;
        }),
        bent(WARN, "(20)", |run| packets(run, 8_000, 20)).on(remote_closed),
        bent(FAIL, "10 % of the packets", |run| packets(run, 8_000, 800)).on(remote_closed),
        bent(WARN, "server's receive buffer", |run| {
            packets(run, 8_000, 800)
        }),
        bent(WARN, "0.2 % of the segments out of", |run| {
            tcp(run).segments_out_of_order = 160
        }),
        bent(FAIL, "2.0 % of the segments out of", |run| {
            tcp(run).segments_out_of_order = 1_600
        }),
        bent(FAIL, "sent again (80), 0.2 %", |run| {
            kernel(run).segments_retransmitted = 80;
            tcp(run).segments_out_of_order = 160;
        }),
        bent(HEALTHY, "0 %", |run| bulk(run, 60)).on(remote_closed),
        // Many times the smallest, and still nothing.
        bent(HEALTHY, "0 %", |run| bulk(run, 1_500)).on(remote_closed),
        bent(WARN, "up to 60 ms, 2000×", |run| bulk(run, 60_000)).on(remote_closed),
        bent(FAIL, "up to 60 ms, 2000×", |run| {
            bulk(run, 60_000);
            tcp(run).segments_out_of_order = 160;
        })
        .on(remote_closed),
        // On one machine nothing queues on the way.
        bent(HEALTHY, "0 %", |run| bulk(run, 60_000)),
        bent(HEALTHY, "0 %", |run| {
            bulk(run, 60_000);
            kernel(run).receive_rtt_ns_max = None;
        })
        .on(remote_closed),
    ]);
    signal("link_use").verify([
        bent(HEALTHY, "4.0 %", |_| ()).on(remote_closed),
        bent(WARN, "85 %", |run| link(run, 212_500_000, 0)).on(remote_closed),
        bent(FAIL, "96 %", |run| link(run, 0, 240_000_000)).on(remote_closed),
        bent(UNKNOWN, "--link-speed", |run| {
            if let Some(network) = &mut run.agents[0].evidence.network
                && let Route::Interface {
                    link_bits_per_s, ..
                } = &mut network.route
            {
                *link_bits_per_s = None;
            }
        })
        .on(remote_closed),
        bent(UNKNOWN, "share a machine", |_| ()),
        bent(UNKNOWN, "not read", no_network),
    ]);
}

#[test]
fn other_programs_that_somebody_waited_for() {
    signal("other_programs").verify([
        bent(FAIL, "while the server waited", |run| beside(run, 3_000)),
        bent(UNKNOWN, "not read", |_| ()),
        // The server itself may be one of the programs.
        bent(UNKNOWN, "the server was not watched", |run| {
            beside(run, 3_000);
            unwatched(run);
        }),
        // Of a server elsewhere, brunt's half is known.
        bent(FAIL, "while brunt waited", |run| {
            thread(run).run_queue_wait_ns = Some(300 * MS)
        })
        .on(|| {
            let mut run = closed();
            beside(&mut run, 3_000);
            remote(run)
        }),
    ]);
}

fn no_network(run: &mut Run) {
    run.agents[0].evidence.network = None;
}

fn no_cpus(run: &mut Run) {
    run.agents[0].evidence.host.cpus.clear();
}

fn nothing_done(run: &mut Run) {
    each(run, |worker| worker.tallies = Default::default());
}

fn no_segments(run: &mut Run) {
    run.agents[0].evidence.network = None;
    each(run, |worker| worker.kernel = Default::default());
}

/// Long replies, with the largest round trip of data.
fn bulk(run: &mut Run, largest_us: u64) {
    tally(run).bytes_received = 1 << 30;
    kernel(run).receive_rtt_ns_max = Some(largest_us * US);
}

#[test]
fn the_server() {
    signal("server_cpu").verify([
        bent(HEALTHY, "nginx used 0.40 of its 2 CPUs", |_| ()),
        bent(WARN, "1.70 of its 2 CPUs", |run| {
            server_busy_for(run, 3_400)
        }),
        bent(FAIL, "1.95 of its 2 CPUs", |run| {
            server_busy_for(run, 3_900)
        }),
        // One thread, of two CPUs.
        bent(FAIL, "1 thread always busy", |run| one_thread(run, 1_960)),
        // With a helper beside it.
        bent(FAIL, "1 thread always busy", |run| {
            one_thread(run, 2_160);
            server(run).threads.as_mut().expect("threads").active = 2;
        }),
        // With another that has time left.
        bent(HEALTHY, "1.59 of its 2 CPUs", |run| {
            one_thread(run, 3_190);
            server(run).threads.as_mut().expect("threads").active = 2;
        }),
        // It is ready all the time, and runs for half of it.
        bent(WARN, "1 thread waiting for a CPU", |run| {
            one_thread(run, 1_000);
            server(run).run_queue_wait_ns = Some(980 * MS);
        }),
        // A request at a time keeps a thread busy without more being there to do.
        bent(HEALTHY, "0.98 of its 2 CPUs", |run| {
            one_thread(run, 1_960);
            each(run, |worker| worker.in_flight_ns = 1_000 * MS);
        }),
        // Connections in their handshakes are more to do.
        bent(FAIL, "1 thread always busy", |run| {
            one_thread(run, 1_960);
            run.latencies.tls = histogram(&[(100, 40 * MS)]);
            tally(run).connections_opened = 100;
            each(run, |worker| worker.in_flight_ns = 1_000 * MS);
        }),
        bent(UNKNOWN, "not watched", unwatched),
        bent(UNKNOWN, "with nothing to do", |run| {
            server_busy_for(run, 3_900);
            server(run).idle_cpus_used = Some(2.0);
        }),
        bent(UNKNOWN, "of how many", |run| server(run).cpus = None),
    ]);
    signal("server_throttling").verify([
        bent(HEALTHY, "no CPU quota", |_| ()),
        bent(WARN, "0.5 %", |run| server_throttled(run, 10)),
        // Bursts alone.
        bent(WARN, "50 %", |run| server_throttled(run, 1_000)),
        bent(FAIL, "50 %", |run| {
            server_busy_for(run, 3_500);
            server_throttled(run, 1_000);
        }),
        bent(UNKNOWN, "not watched", unwatched),
    ]);
    signal("accept_queue").verify([
        bent(HEALTHY, "at once", |_| ()),
        bent(WARN, "1 connection asked for again", |run| {
            tcp(run).syn_retransmits = 1
        }),
        bent(WARN, "20 connections met a full", |run| {
            tcp(run).listen_overflows = 20
        }),
        // A few of many.
        bent(WARN, "3 connections met a full", |run| {
            tcp(run).listen_overflows = 3;
            tally(run).connections_opened = 500;
        }),
        bent(FAIL, "20 connections met a full accept queue", |run| {
            tcp(run).listen_overflows = 20;
            tally(run).connections_opened = 500;
        }),
        bent(FAIL, "a second and more", |run| {
            run.latencies.connect = histogram(&[(990, MS), (10, 1_010 * MS)]);
            tally(run).connections_opened = 500;
        }),
        bent(FAIL, "asked for again", |run| {
            tcp(run).syn_retransmits = 20;
            run.latencies.connect = histogram(&[(499, MS), (1, 1_010 * MS)]);
            tally(run).connections_opened = 500;
        })
        .on(remote_closed),
        // Another program's, for all of brunt's connections were quick.
        bent(WARN, "asked for again", |run| {
            tcp(run).syn_retransmits = 20;
            tally(run).connections_opened = 500;
        })
        .on(remote_closed),
        // Those of set-up were slow, and the window opened hardly any.
        bent(WARN, "10 connections took a second and more", |run| {
            run.latencies.connect = histogram(&[(990, MS), (10, 1_010 * MS)]);
            tally(run).connections_opened = 1;
        }),
        // Handshakes that take too long are not the queue's doing; attempts without an answer are.
        bent(HEALTHY, "at once", |run| {
            failed(run, FailureKind::HandshakeTimedOut, 20)
        })
        .on(remote_closed),
        bent(FAIL, "20 connections not answered", |run| {
            failed(run, FailureKind::ConnectTimedOut, 20)
        })
        .on(remote_closed),
        // On a network that loses segments, requests for connections are lost as well.
        bent(WARN, "as other segments were lost", |run| {
            (tcp(run).syn_retransmits, tcp(run).segments_retransmitted) = (20, 800);
            run.latencies.connect = histogram(&[(499, MS), (1, 1_010 * MS)]);
            tally(run).connections_opened = 500;
        })
        .on(remote_closed),
        // Somebody else's listening socket.
        bent(HEALTHY, "at once", |run| tcp(run).listen_overflows = 3).on(remote_closed),
        bent(UNKNOWN, "no connection", |run| {
            run.agents[0].evidence.network = None;
            run.latencies.connect = Histogram::default();
        }),
    ]);
    signal("receive_window").verify([
        bent(HEALTHY, "0 %", |run| upload(run, 0, 0)),
        bent(WARN, "5.0 %", |run| upload(run, 100, 0)),
        bent(FAIL, "40 %", |run| upload(run, 800, 0)),
        bent(UNKNOWN, "small", |_| ()),
        bent(UNKNOWN, "no connection", |run| {
            upload(run, 0, 0);
            each(run, |worker| worker.kernel.busy_ns = 0);
        }),
    ]);
}

#[test]
fn the_same_cpus() {
    signal("shared_host").verify([
        bent(HEALTHY, "CPUs of their own", |_| ()),
        bent(HEALTHY, "the same 2 CPUs: ", |run| same_cpus(run, 1_000)),
        bent(FAIL, "brunt 0.70, the server 1.10", |run| {
            same_cpus(run, 1_900)
        }),
        bent(FAIL, "the same 2 CPUs: ", |run| {
            same_cpus(run, 1_600);
            run.agents[0].evidence.host.pressure_ns = Some(200 * MS);
        }),
        bent(HEALTHY, "the same 2 CPUs: ", |run| {
            same_cpus(run, 900);
            run.agents[0].evidence.host.pressure_ns = Some(200 * MS);
        }),
        // Busy, and yet nobody waits.
        bent(HEALTHY, "the same 2 CPUs: ", |run| {
            same_cpus(run, 1_900);
            server(run).run_queue_wait_ns = Some(10 * MS);
            thread(run).run_queue_wait_ns = Some(2 * MS);
        }),
        // Both may use them, and only workers did.
        bent(HEALTHY, "of which the server used", |run| {
            same_cpus(run, 720);
            server_busy_for(run, 30);
            bound(run);
        }),
        bent(FAIL, "brunt 0.70, the server 1.10", |run| {
            same_cpus(run, 1_900);
            bound(run);
        }),
        // Of what it used, no more than others used there.
        bent(HEALTHY, "the server 0.20", |run| {
            same_cpus(run, 900);
            server_busy_for(run, 400);
            bound(run);
        }),
        // Soft interrupts are part of the threads' times, and of the CPUs' a part of their own.
        bent(FAIL, "the server 0.30", |run| {
            same_cpus(run, 1_500);
            server_busy_for(run, 600);
            bound(run);
            softirq(run, 300);
            run.agents[0].evidence.host.pressure_ns = Some(200 * MS);
        }),
        // Somebody else is on the workers' CPUs, not the server.
        bent(HEALTHY, "the server used 0 %", |run| {
            same_cpus(run, 1_900);
            server_busy_for(run, 1_000);
            server(run).cpu_list = vec![0, 1, 2, 3];
            run.agents[0].evidence.host.cpus[2].busy_ns = 1_900 * MS;
            bound(run);
        }),
        // Of two CPUs that it filled, one is the workers'.
        bent(HEALTHY, "the server 0.30", |run| {
            same_cpus(run, 720);
            server_busy_for(run, 600);
            bound(run);
        }),
        bent(WARN, "others 0.50", |run| {
            same_cpus(run, 2_000);
            server_busy_for(run, 1_600);
        }),
        bent(HEALTHY, "do not share", |run| {
            server(run).cpu_list = Vec::new()
        })
        .on(|| {
            let mut run = remote_closed();
            run.agents[0].evidence.server = closed().agents.remove(0).evidence.server;
            run
        }),
        bent(UNKNOWN, "server's CPUs", |run| {
            server(run).cpu_list = Vec::new()
        }),
        bent(UNKNOWN, "not watched", unwatched),
        bent(UNKNOWN, "were not read", no_cpus),
    ]);
}

#[test]
fn the_load() {
    signal("refusals").verify([
        bent(HEALTHY, "no request", |_| ()),
        bent(WARN, "(503)", |run| answered_with(run, 503, 1)),
        bent(FAIL, "3.1 % of the requests refused (429)", |run| {
            answered_with(run, 429, 500)
        }),
        bent(FAIL, "(Retry-After)", |run| tally(run).retry_afters = 900),
        bent(WARN, "(REFUSED_STREAM)", |run| {
            failed(run, FailureKind::StreamRefused, 1)
        }),
        bent(
            FAIL,
            "% of the requests refused (REFUSED_STREAM, EN",
            |run| {
                failed(run, FailureKind::StreamRefused, 900);
                failed(run, FailureKind::StreamEnhanceYourCalm, 100);
            },
        ),
        bent(FAIL, "100 % of the requests refused", |run| {
            each(run, |worker| worker.tallies = Default::default());
            failed(run, FailureKind::StreamRefused, 9);
        }),
        // Nobody is told to ask less.
        bent(HEALTHY, "no request", |run| {
            failed(run, FailureKind::StreamInternalError, 900);
            failed(run, FailureKind::NotProcessed, 900);
        }),
        bent(UNKNOWN, "no reply", nothing_done),
    ]);
    signal("planned_rate").verify([
        bent(HEALTHY, "of the planned 4,000 req/s", |_| ()).on(overloaded),
        bent(FAIL, "100 % of the planned 4,000 req/s answered", |_| ()).on(open),
        bent(UNKNOWN, "closed loop", |_| ()),
        bent(UNKNOWN, "too short", |run| run.window_ns = 700 * MS).on(open),
    ]);
    signal("backlog").verify([
        bent(HEALTHY, "no backlog", |_| ()).on(open),
        bent(WARN, "overloaded", unwatched).on(overloaded),
        bent(FAIL, "all connections busy", |_| ()).on(overloaded),
        // Near its end, but with all connections busy it is not known to have had more to do.
        bent(WARN, "about 4,000 per second were answered", |run| {
            server_busy_for(run, 3_400)
        })
        .on(overloaded),
        bent(FAIL, "about 4,000 per second were answered", |run| {
            server_busy_for(run, 3_900)
        })
        .on(overloaded),
        bent(WARN, "were answered", |run| {
            run.agents[0].evidence.server = None;
            run.latencies.service = histogram(&[(100, MS), (1_000, 9 * MS)]);
        })
        .on(overloaded),
        bent(UNKNOWN, "closed loop", |_| ()),
    ]);
    signal("connections_busy").verify([
        bent(HEALTHY, "the server has no room", |run| {
            server_busy_for(run, 3_900)
        }),
        bent(HEALTHY, "50 % busy", |_| ()).on(open),
        // With planned connections, those in their handshakes hold their places.
        bent(HEALTHY, "11 % busy", |_| ()).on(sessions_run),
        bent(HEALTHY, "100 % busy", |run| {
            run.latencies.tls = histogram(&[(100, 1_000 * MS)])
        })
        .on(sessions_run),
        bent(WARN, "× its best", |run| {
            run.latencies.service = histogram(&[(100, MS), (1_000, 9 * MS)])
        }),
        bent(FAIL, "8 connections, always busy", |_| ()),
        bent(FAIL, "8 connections, always busy", |_| ()).on(overloaded),
        bent(FAIL, "1 connection, always busy", |run| {
            run.plan.load.connections = nonzero(1);
            run.latencies.service = histogram(&[(100, MS), (1_000, 9 * MS)]);
        }),
        bent(FAIL, "8 connections of 10 streams, always busy", |run| {
            streams(run, 10)
        }),
        bent(FAIL, "of 4 pipelined requests", |run| {
            run.agents[0].negotiated.depth = 4
        }),
        bent(HEALTHY, "10 streams, 5.0 % busy", |run| {
            streams(run, 1);
            run.agents[0].negotiated.depth = 10;
        })
        .on(open),
        bent(UNKNOWN, "not known", unwatched),
        bent(UNKNOWN, "too few", |run| {
            run.latencies.response = histogram(&[(3, MS)])
        }),
    ]);
    signal("elasticity").verify([
        bent(HEALTHY, "had 100 % of the rate", |run| halved(run, 80)),
        bent(WARN, "had 75 % of the rate", |run| halved(run, 60)),
        bent(FAIL, "had 50 % of the rate", |run| halved(run, 40)),
        bent(UNKNOWN, "does not tell", |run| halved(run, 0)),
        bent(UNKNOWN, "does not tell", |_| ()),
    ]);
}

#[test]
fn doubts() {
    signal("steal").verify([
        bent(HEALTHY, "steal 0 %", |_| ()),
        // Two ticks.
        bent(HEALTHY, "steal 0.2", |run| stolen(run, 0, 20)),
        bent(WARN, "steal 1", |run| stolen(run, 0, 80)),
        bent(WARN, "steal 2", |run| stolen(run, 3, 200)),
        bent(FAIL, "steal 5", |run| stolen(run, 3, 450)),
        bent(UNKNOWN, "not read", no_cpus),
    ]);
    signal("drift").verify([
        bent(HEALTHY, "of the first", |_| ()),
        bent(FAIL, "drifted", drifting),
        bent(WARN, "drifted", |run| drifting_by(run, 1)),
        bent(UNKNOWN, "too short", |run| run.window_ns = 700 * MS),
    ]);
    signal("samples").verify([
        bent(HEALTHY, "replies in 2 s", |_| ()),
        bent(FAIL, "in 400 ms", |run| run.window_ns = 400 * MS),
        bent(FAIL, "0 replies", nothing_done),
    ]);
}

#[test]
fn the_workers() {
    signal("worker_idle").verify([
        bent(HEALTHY, "idle 60 %", |_| ()),
        bent(HEALTHY, "idle 30 %", |run| {
            thread(run).cpu_user_ns = 798 * MS
        }),
        bent(WARN, "idle 10 %", |run| busy_for(run, 1_798)),
        bent(FAIL, "idle 2.9 %", |run| {
            thread(run).cpu_system_ns = 1_740 * MS
        }),
        // Polling in vain is no work; waiting for a CPU is not idling.
        bent(HEALTHY, "idle 60 %", |run| {
            (thread(run).cpu_system_ns, thread(run).spun_ns) = (1_600 * MS, 1_000 * MS)
        }),
        bent(FAIL, "idle 0 %", |run| {
            thread(run).run_queue_wait_ns = Some(1_200 * MS)
        }),
        bent(UNKNOWN, "1 worker was not read", |run| {
            run.agents[0].workers[0].thread = None
        }),
        bent(UNKNOWN, "not read", |run| {
            each(run, |worker| worker.thread = None)
        }),
    ]);
    signal("run_queue_wait").verify([
        bent(HEALTHY, "0.2 %", |_| ()),
        bent(WARN, "3.6 %", |run| {
            thread(run).run_queue_wait_ns = Some(30 * MS)
        }),
        bent(FAIL, "14 %", |run| {
            thread(run).cpu_system_ns = 1_500 * MS;
            thread(run).run_queue_wait_ns = Some(280 * MS);
        }),
        bent(UNKNOWN, "does not say", |run| {
            each(run, |worker| {
                worker.thread.as_mut().expect("a thread").run_queue_wait_ns = None
            })
        }),
        // Idle all the same: brunt was not the limit.
        bent(WARN, "waking up", |run| {
            own_of(run, 300);
            thread(run).run_queue_wait_ns = Some(200 * MS);
        }),
    ]);
}

#[test]
fn the_time_that_brunt_takes() {
    signal("own_share").verify([
        bent(HEALTHY, "brunt added 0.4 % of the response time", |_| ()),
        bent(WARN, "brunt added 5.0 %", |run| own_of(run, 50)),
        bent(WARN, "slowest 1 %: waking up", |run| own_of(run, 300)),
        bent(FAIL, "brunt added 30 % of the response time", |run| {
            own_of(run, 300);
            busy_for(run, 1_800);
        }),
        // A few replies came while brunt did not run.
        bent(WARN, "brunt added 1.5 % of the response time, and", |run| {
            own_share_of_tail(run, 3_000);
            busy_for(run, 1_800);
        }),
        // Of a few slow ones nothing is told.
        bent(HEALTHY, "added 1.5 %", |run| own_share_of_tail(run, 2_999)),
        bent(UNKNOWN, "pipelined", |run| {
            run.agents[0].negotiated.depth = 2
        }),
        // The parts of each stream are known.
        bent(HEALTHY, "brunt added", |run| streams(run, 10)),
        bent(UNKNOWN, "0 stamped replies", |run| {
            run.latencies.split = Default::default()
        }),
    ]);
    signal("schedule_lag").verify([
        bent(HEALTHY, "p99 5", |_| ()).on(open),
        bent(HEALTHY, "p99 900", |run| {
            run.latencies.lag = histogram(&[(1_000, 900 * US)]);
            run.latencies.response = histogram(&[(1_000, 80 * MS)]);
        })
        .on(open),
        bent(WARN, "p99 80", |run| {
            run.latencies.lag = histogram(&[(1_000, 80 * US)])
        })
        .on(open),
        bent(WARN, "waking up", |run| {
            run.latencies.lag = histogram(&[(1_000, 200 * US)])
        })
        .on(open),
        bent(FAIL, "p99 200", |run| {
            run.latencies.lag = histogram(&[(1_000, 200 * US)]);
            busy_for(run, 1_800);
        })
        .on(open),
        bent(FAIL, "p99 2", |run| {
            run.latencies.lag = histogram(&[(1_000, 2 * MS)]);
            busy_for(run, 1_800);
        })
        .on(open),
        bent(UNKNOWN, "closed loop", |_| ()),
        bent(UNKNOWN, "too few", |run| {
            run.latencies.lag = Histogram::default()
        })
        .on(open),
        // Half busy: at most half of the arrivals can have found no connection free.
        bent(HEALTHY, "p99 5", |run| drop_planned(run, 3_900)).on(open),
        bent(WARN, "of the plan not sent", |run| drop_planned(run, 4_044)).on(open),
        bent(FAIL, "10 %", |run| drop_planned(run, 4_800)).on(open),
        // Nobody knows how many were due when connections were free.
        bent(HEALTHY, "p99 5", |run| {
            drop_planned(run, 4_800);
            let stage = Stage {
                duration_ns: 1,
                from_per_s: 1.0,
                to_per_s: 1.0,
            };
            set_stages(run, vec![stage]);
        })
        .on(open),
        bent(HEALTHY, "p99 5", |run| {
            each(run, |worker| worker.arrivals = Default::default())
        })
        .on(open),
    ]);
}

/// One response in 200 is brunt's alone, and three times as long as the others.
fn own_share_of_tail(run: &mut Run, responses: u64) {
    split(run, responses, |number| match number % 200 {
        0 => (3_000 * US, 0),
        _ => (0, 1_000 * US),
    });
}

/// Lets so many arrivals of 8,000 never be sent.
fn drop_planned(run: &mut Run, dropped: u64) {
    for worker in &mut run.agents[0].workers {
        worker.arrivals.sent -= dropped / 2;
        worker.arrivals.skipped_full += dropped / 2;
        // As it is without the edges of the window.
        worker.in_flight_ns = worker.live.connection_ns / 2;
    }
}

/// Over HTTP/3 so many datagrams came, and as many more found no room.
fn datagrams(run: &mut Run, received: u64, dropped: u64) {
    run.agents[0].negotiated.protocol = Protocol::HTTP3;
    let quic = &mut tally(run).quic;
    (quic.datagrams_received, quic.datagrams_dropped) = (received, dropped);
}

#[test]
fn the_clients_machine() {
    signal("throttling").verify([
        bent(HEALTHY, "no CPU quota", |_| ()),
        bent(WARN, "0.5 %", |run| throttled(run, 10)),
        bent(FAIL, "30 %", |run| throttled(run, 600)),
        bent(UNKNOWN, "nothing was read", |run| {
            run.agents[0].evidence.interval_ns = 0
        }),
        bent(UNKNOWN, "hidden", |run| {
            let missing = &mut run.agents[0].evidence.missing;
            missing.insert("host.throttling".to_owned(), "hidden".to_owned());
        }),
    ]);
    signal("unread_data").verify([
        bent(HEALTHY, "0 full", |_| ()),
        bent(WARN, "4 full", |run| tcp(run).zero_windows_advertised = 4),
        bent(WARN, "server's sockets", |run| {
            tcp(run).zero_windows_advertised = 400
        }),
        bent(FAIL, "400 full", |run| {
            tcp(run).zero_windows_advertised = 400
        })
        .on(remote_closed),
        bent(UNKNOWN, "not read", no_network),
        bent(WARN, "1 segments", |run| tcp(run).receive_prunes = 1),
        bent(FAIL, "80 segments", |run| tcp(run).receive_prunes = 80).on(remote_closed),
        bent(HEALTHY, "0 of 100,000 datagrams", |run| {
            datagrams(run, 100_000, 0)
        }),
        bent(WARN, "4 of 100,004 datagrams", |run| {
            datagrams(run, 100_000, 4)
        }),
        bent(FAIL, "400 of 100,400 datagrams", |run| {
            datagrams(run, 100_000, 400)
        }),
        bent(UNKNOWN, "no datagram came", |run| datagrams(run, 0, 0)),
    ]);
    signal("send_buffer").verify([
        bent(HEALTHY, "0 %", |run| {
            run.agents[0].negotiated.request_bytes = 1 << 20
        }),
        bent(WARN, "2.0 %", |run| upload(run, 0, 40)),
        bent(FAIL, "10 %", |run| upload(run, 0, 200)),
        bent(UNKNOWN, "small", |_| ()),
        bent(UNKNOWN, "no connection", |run| {
            run.agents[0].negotiated.request_bytes = 1 << 20;
            each(run, |worker| worker.kernel.busy_ns = 0);
        }),
    ]);
    signal("client_limits").verify([
        bent(HEALTHY, "sufficed", |_| ()),
        bent(WARN, "outside of the window", |run| {
            run.agents[0].workers[0]
                .tallies
                .before
                .failures
                .add(FailureKind::ConnectNoPort);
        }),
        bent(WARN, "90 % full", |run| conntrack(run, 900, 0)),
        bent(FAIL, "no free local port 1 time", |run| {
            failed(run, FailureKind::ConnectNoPort, 1)
        }),
        bent(FAIL, "no free descriptor", |run| {
            failed(run, FailureKind::ConnectNoDescriptor, 1)
        }),
        bent(FAIL, "96 % full", |run| conntrack(run, 960, 0)),
        bent(FAIL, "3 packets dropped", |run| conntrack(run, 10, 3)),
        bent(UNKNOWN, "no connection", nothing_done),
    ]);
}

fn conntrack(run: &mut Run, entries: u64, dropped_packets: u64) {
    let network = run.agents[0].evidence.network.as_mut().expect("a network");
    network.conntrack = Some(brunt_record::Conntrack {
        entries,
        entries_max: 1_000,
        dropped_packets,
    });
}

/// What the server received of all.
fn seen(run: &mut Run) -> &mut ServerConnections {
    let seen = run.agents[0].evidence.server_connections.as_mut();
    seen.expect("counted")
}

#[test]
fn by_the_connections_at_the_server() {
    signal("other_clients").verify([
        bent(HEALTHY, "nobody else loads", |_| ()),
        // A browser.
        bent(HEALTHY, "other clients send 0.4 %", |run| {
            others(run, 6, 60)
        }),
        bent(HEALTHY, "nobody else loads", |run| others(run, 6, 0)),
        bent(WARN, "1.8 % of what the server receives", |run| {
            others(run, 1, 300)
        }),
        bent(
            FAIL,
            "other clients send 48 % of what the server receives, and use some 0.19 of its 0.40 \
             CPUs",
            |run| others(run, 8, 15_000),
        ),
        // Few that send much: brunt's own account tells.
        bent(FAIL, "other clients send 48 %", |run| {
            others(run, 1, 15_000);
            seen(run).segments_received_beyond = 1;
        }),
        // Connections that were replaced took their account with them: the rest tells.
        bent(FAIL, "other clients send 45 %", |run| {
            *seen(run) = ServerConnections {
                connections: 16,
                segments_received: 200,
                bytes_received: 16_000,
                segments_received_beyond: 90,
                ..*seen(run)
            };
        }),
    ]);
}

#[test]
fn by_bytes_where_a_segment_is_no_request() {
    signal("other_clients").verify([
        bent(HEALTHY, "nobody else", |run| streams(run, 10)),
        bent(HEALTHY, "nobody else", |run| {
            streams(run, 10);
            // Frames about the connection.
            others(run, 0, 2_000);
        }),
        bent(FAIL, "other clients send 25 %", |run| {
            streams(run, 10);
            others(run, 8, 16_000);
            seen(run).segments_received_beyond = 0;
        }),
    ]);
}

#[test]
fn what_cannot_be_told() {
    signal("other_clients").verify([
        bent(UNKNOWN, "not counted", |_| ()).on(remote_closed),
        bent(UNKNOWN, "another namespace", |run| {
            let evidence = &mut run.agents[0].evidence;
            evidence.server_connections = None;
            let reason = "another namespace".to_owned();
            evidence
                .missing
                .insert("server_connections".to_owned(), reason);
        }),
        bent(UNKNOWN, "too little", |run| {
            seen(run).segments_received = 19
        }),
        bent(UNKNOWN, "too little", |run| seen(run).interval_ns = 0),
        bent(UNKNOWN, "come and go", |run| {
            seen(run).segments_received = 100
        }),
    ]);
}

#[test]
fn agents_of_one_run_are_no_others() {
    let mut run = closed();
    others(&mut run, 8, 16_000);
    run.agents.push(run.agents[0].clone());
    let signals = read_all(&cases_of(&run));
    let found = signals
        .iter()
        .find(|signal| signal.id.to_string() == "other_clients");
    assert_eq!(found.map(|signal| signal.grade), Some(HEALTHY), "{found:?}");
}
