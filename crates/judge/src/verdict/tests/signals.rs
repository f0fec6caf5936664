//! Every signal, healthy, at a warning, failing and unknown.

use brunt_load::protocol::Protocol;
use brunt_record::{FailureKind, Histogram, Route, Run};

use super::bend::*;
use super::sample::{cases_of, closed, open, overloaded, remote};
use crate::invariants::sample::{MS, US, nonzero, sessions_run};
use crate::verdict::Grade;
use crate::verdict::signals::{SIGNALS, read_all};

/// What is bent, and how signal `id` must then stand.
pub(super) struct Bent {
    id: &'static str,
    grade: Grade,
    /// Words that its detail must hold.
    words: &'static str,
    sound: fn() -> Run,
    bend: Bend,
}

pub(super) fn bent(id: &'static str, grade: Grade, words: &'static str, bend: Bend) -> Bent {
    Bent {
        id,
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

pub(super) fn verify(cases: impl IntoIterator<Item = Bent>) {
    for facts in cases {
        let mut run = (facts.sound)();
        (facts.bend)(&mut run);
        let signals = read_all(&cases_of(&run));
        let found = signals
            .iter()
            .find(|signal| signal.id.to_string() == facts.id);
        let found = found.unwrap_or_else(|| panic!("no signal {}", facts.id));
        let context = format!("{found:?}, not {:?} {:?}", facts.grade, facts.words);
        assert_eq!(found.grade, facts.grade, "{context}");
        assert!(found.detail.contains(facts.words), "{context}");
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
    let quic = &mut run.agents[0].workers[0].tallies.measure.quic;
    (quic.packets_sent, quic.packets_lost) = (sent, lost);
}

#[test]
fn the_network() {
    verify([
        bent("lost_segments", HEALTHY, "0 %", |_| ()),
        // A few are none.
        bent("lost_segments", HEALTHY, "(4)", |run| {
            run.agents[0].workers[0].kernel.segments_retransmitted = 4
        }),
        bent("lost_segments", WARN, "0.2 %", |run| {
            run.agents[0].workers[0].kernel.segments_retransmitted = 20;
        }),
        bent("lost_segments", FAIL, "1.0 %", |run| {
            run.agents[0].workers[0].kernel.segments_retransmitted = 80;
        }),
        bent("lost_segments", FAIL, "1.0 %", |run| {
            tcp(run).segments_retransmitted = 800
        }),
        bent("lost_segments", HEALTHY, "0 %", |run| {
            (tcp(run).segments_retransmitted, tcp(run).syn_retransmits) = (800, 800);
        }),
        bent("lost_segments", WARN, "accept queue", |run| {
            (tcp(run).segments_retransmitted, tcp(run).listen_overflows) = (800, 9);
        }),
        // Requests that share segments do not make those of others brunt's.
        bent("lost_segments", HEALTHY, "0 %", |run| {
            run.agents[0].negotiated.depth = 50;
            tcp(run).segments_retransmitted = 800;
        }),
        bent("lost_segments", FAIL, "1.0 %", |run| {
            run.agents[0].negotiated.depth = 50;
            (tcp(run).segments_retransmitted, tcp(run).segments_sent) = (50, 5_000);
        }),
        bent("lost_segments", UNKNOWN, "no segments", no_segments),
        bent("lost_segments", UNKNOWN, "no packet", |run| {
            packets(run, 0, 0)
        }),
        // What TCP counts has no meaning over datagrams.
        bent("lost_segments", HEALTHY, "0 % of the packets", |run| {
            packets(run, 8_000, 0);
            tcp(run).segments_retransmitted = 800;
        }),
        bent("lost_segments", WARN, "(20)", |run| packets(run, 8_000, 20)).on(remote_closed),
        bent("lost_segments", FAIL, "10 % of the packets", |run| {
            packets(run, 8_000, 800)
        })
        .on(remote_closed),
        bent("lost_segments", WARN, "server's receive buffer", |run| {
            packets(run, 8_000, 800)
        }),
        bent(
            "lost_segments",
            WARN,
            "0.2 % of the segments out of",
            |run| tcp(run).segments_out_of_order = 160,
        ),
        bent(
            "lost_segments",
            FAIL,
            "2.0 % of the segments out of",
            |run| tcp(run).segments_out_of_order = 1_600,
        ),
        bent("lost_segments", FAIL, "sent again (80), 0.2 %", |run| {
            run.agents[0].workers[0].kernel.segments_retransmitted = 80;
            tcp(run).segments_out_of_order = 160;
        }),
        bent("lost_segments", HEALTHY, "0 %", |run| bulk(run, 60)).on(remote_closed),
        // Many times the smallest, and still nothing.
        bent("lost_segments", HEALTHY, "0 %", |run| bulk(run, 1_500)).on(remote_closed),
        bent("lost_segments", WARN, "up to 60 ms, 2000×", |run| {
            bulk(run, 60_000)
        })
        .on(remote_closed),
        bent("lost_segments", FAIL, "up to 60 ms, 2000×", |run| {
            bulk(run, 60_000);
            tcp(run).segments_out_of_order = 160;
        })
        .on(remote_closed),
        // On one machine nothing queues on the way.
        bent("lost_segments", HEALTHY, "0 %", |run| bulk(run, 60_000)),
        bent("lost_segments", HEALTHY, "0 %", |run| {
            bulk(run, 60_000);
            run.agents[0].workers[0].kernel.receive_rtt_ns_max = None;
        })
        .on(remote_closed),
        bent("link_use", HEALTHY, "4.0 %", |_| ()).on(remote_closed),
        bent("link_use", WARN, "85 %", |run| link(run, 212_500_000, 0)).on(remote_closed),
        bent("link_use", FAIL, "96 %", |run| link(run, 0, 240_000_000)).on(remote_closed),
        bent("link_use", UNKNOWN, "--link-speed", |run| {
            if let Some(network) = &mut run.agents[0].evidence.network
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
            run.agents[0].evidence.network = None
        }),
    ]);
}

fn no_segments(run: &mut Run) {
    run.agents[0].evidence.network = None;
    each(run, |worker| worker.kernel = Default::default());
}

/// Long replies, with the largest round trip of data.
fn bulk(run: &mut Run, largest_us: u64) {
    run.agents[0].workers[0].tallies.measure.bytes_received = 1 << 30;
    run.agents[0].workers[0].kernel.receive_rtt_ns_max = Some(largest_us * US);
}

#[test]
fn the_server() {
    verify([
        bent("server_cpu", HEALTHY, "server nginx 0.40 of 2 CPUs", |_| ()),
        bent("server_cpu", WARN, "1.70 of 2 CPUs", |run| {
            server_busy_for(run, 3_400)
        }),
        bent("server_cpu", FAIL, "1.95 of 2 CPUs", |run| {
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
        bent("server_cpu", HEALTHY, "1.59 of 2 CPUs", |run| {
            one_thread(run, 3_190);
            server(run).threads.as_mut().expect("threads").active = 2;
        }),
        // It is ready all the time, and runs for half of it.
        bent("server_cpu", WARN, "1 thread waiting for a CPU", |run| {
            one_thread(run, 1_000);
            server(run).run_queue_wait_ns = Some(980 * MS);
        }),
        // A request at a time keeps a thread busy without more being there to do.
        bent("server_cpu", HEALTHY, "0.98 of 2 CPUs", |run| {
            one_thread(run, 1_960);
            each(run, |worker| worker.in_flight_ns = 1_000 * MS);
        }),
        // Connections in their handshakes are more to do.
        bent("server_cpu", FAIL, "1 thread busy all the time", |run| {
            one_thread(run, 1_960);
            run.latencies.tls = histogram(&[(100, 40 * MS)]);
            run.agents[0].workers[0].tallies.measure.connections_opened = 100;
            each(run, |worker| worker.in_flight_ns = 1_000 * MS);
        }),
        bent("server_cpu", UNKNOWN, "not watched", |run| {
            run.agents[0].evidence.server = None
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
        // Bursts alone.
        bent("server_throttling", WARN, "50 %", |run| {
            server_throttled(run, 1_000)
        }),
        bent("server_throttling", FAIL, "50 %", |run| {
            server_busy_for(run, 3_500);
            server_throttled(run, 1_000);
        }),
        bent("server_throttling", UNKNOWN, "not watched", |run| {
            run.agents[0].evidence.server = None
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
        bent("accept_queue", WARN, "20 connections met a full", |run| {
            tcp(run).listen_overflows = 20
        }),
        // A few of many.
        bent("accept_queue", WARN, "3 connections met a full", |run| {
            tcp(run).listen_overflows = 3;
            run.agents[0].workers[0].tallies.measure.connections_opened = 500;
        }),
        bent(
            "accept_queue",
            FAIL,
            "20 connections met a full accept queue",
            |run| {
                tcp(run).listen_overflows = 20;
                run.agents[0].workers[0].tallies.measure.connections_opened = 500;
            },
        ),
        bent("accept_queue", FAIL, "a second and more", |run| {
            run.latencies.connect = histogram(&[(990, MS), (10, 1_010 * MS)]);
            run.agents[0].workers[0].tallies.measure.connections_opened = 500;
        }),
        bent("accept_queue", FAIL, "asked for again", |run| {
            tcp(run).syn_retransmits = 20;
            run.latencies.connect = histogram(&[(499, MS), (1, 1_010 * MS)]);
            run.agents[0].workers[0].tallies.measure.connections_opened = 500;
        })
        .on(remote_closed),
        // Another program's, for all of brunt's connections were quick.
        bent("accept_queue", WARN, "asked for again", |run| {
            tcp(run).syn_retransmits = 20;
            run.agents[0].workers[0].tallies.measure.connections_opened = 500;
        })
        .on(remote_closed),
        // Those of set-up were slow, and the window opened hardly any.
        bent("accept_queue", WARN, "", |run| {
            tcp(run).listen_drops = 1;
            run.latencies.connect = histogram(&[(990, MS), (10, 1_010 * MS)]);
            run.agents[0].workers[0].tallies.measure.connections_opened = 1;
        }),
        // Handshakes that take too long are not the queue's doing; attempts without an answer are.
        bent("accept_queue", HEALTHY, "at once", |run| {
            failed(run, FailureKind::HandshakeTimedOut, 20);
        })
        .on(remote_closed),
        bent("accept_queue", FAIL, "20 attempts not answered", |run| {
            failed(run, FailureKind::ConnectTimedOut, 20);
        })
        .on(remote_closed),
        // On a network that loses segments, requests for connections are lost as well.
        bent("accept_queue", WARN, "as other segments were lost", |run| {
            (tcp(run).syn_retransmits, tcp(run).segments_retransmitted) = (20, 800);
            run.latencies.connect = histogram(&[(499, MS), (1, 1_010 * MS)]);
            run.agents[0].workers[0].tallies.measure.connections_opened = 500;
        })
        .on(remote_closed),
        // Somebody else's listening socket.
        bent("accept_queue", HEALTHY, "at once", |run| {
            tcp(run).listen_overflows = 3
        })
        .on(remote_closed),
        bent("accept_queue", UNKNOWN, "no connection", |run| {
            run.agents[0].evidence.network = None;
            run.latencies.connect = Histogram::default();
        }),
        bent("receive_window", HEALTHY, "0 %", |run| upload(run, 0, 0)),
        bent("receive_window", WARN, "5.0 %", |run| upload(run, 100, 0)),
        bent("receive_window", FAIL, "40 %", |run| upload(run, 800, 0)),
        bent("receive_window", UNKNOWN, "small", |_| ()),
        bent("receive_window", UNKNOWN, "no connection", |run| {
            upload(run, 0, 0);
            each(run, |worker| worker.kernel.busy_ns = 0);
        }),
    ]);
}

#[test]
fn the_same_cpus() {
    verify([
        bent("shared_host", HEALTHY, "CPUs of their own", |_| ()),
        bent("shared_host", HEALTHY, "of the same 2 CPUs", |run| {
            same_cpus(run, 1_000)
        }),
        bent(
            "shared_host",
            FAIL,
            "client 0.70 and server 1.10 of the same 2 CPUs",
            |run| {
                same_cpus(run, 1_900);
            },
        ),
        bent("shared_host", FAIL, "of the same 2 CPUs", |run| {
            same_cpus(run, 1_600);
            run.agents[0].evidence.host.pressure_ns = Some(200 * MS);
        }),
        bent("shared_host", HEALTHY, "of the same 2 CPUs", |run| {
            same_cpus(run, 900);
            run.agents[0].evidence.host.pressure_ns = Some(200 * MS);
        }),
        // Busy, and yet nobody waits.
        bent("shared_host", HEALTHY, "of the same 2 CPUs", |run| {
            same_cpus(run, 1_900);
            server(run).run_queue_wait_ns = Some(10 * MS);
            thread(run).run_queue_wait_ns = Some(2 * MS);
        }),
        // Both may use them, and only workers did.
        bent("shared_host", HEALTHY, "of which the server used", |run| {
            same_cpus(run, 720);
            server_busy_for(run, 30);
            bound(run);
        }),
        bent(
            "shared_host",
            FAIL,
            "client 0.70 and server 1.10 of the same 2 CPUs",
            |run| {
                same_cpus(run, 1_900);
                bound(run);
            },
        ),
        // Of what it used, no more than others used there.
        bent("shared_host", HEALTHY, "server 0.20 of the same 2", |run| {
            same_cpus(run, 900);
            server_busy_for(run, 400);
            bound(run);
        }),
        // Soft interrupts are part of the threads' times, and of the CPUs' a part of their own.
        bent(
            "shared_host",
            FAIL,
            "server 0.30 of the same 2 CPUs",
            |run| {
                same_cpus(run, 1_500);
                server_busy_for(run, 600);
                bound(run);
                softirq(run, 300);
                run.agents[0].evidence.host.pressure_ns = Some(200 * MS);
            },
        ),
        // Somebody else is on the workers' CPUs, not the server.
        bent("shared_host", HEALTHY, "the server used 0 %", |run| {
            same_cpus(run, 1_900);
            server_busy_for(run, 1_000);
            server(run).cpu_list = vec![0, 1, 2, 3];
            run.agents[0].evidence.host.cpus[2].busy_ns = 1_900 * MS;
            bound(run);
        }),
        // Of two CPUs that it filled, one is the workers'.
        bent(
            "shared_host",
            HEALTHY,
            "server 0.30 of the same 2 CPUs",
            |run| {
                same_cpus(run, 720);
                server_busy_for(run, 600);
                bound(run);
            },
        ),
        bent("shared_host", WARN, "others 0.50", |run| {
            same_cpus(run, 2_000);
            server_busy_for(run, 1_600);
        }),
        bent("shared_host", HEALTHY, "do not share", |run| {
            server(run).cpu_list = Vec::new()
        })
        .on(|| {
            let mut run = remote_closed();
            run.agents[0].evidence.server = closed().agents.remove(0).evidence.server;
            run
        }),
        bent("shared_host", UNKNOWN, "server's CPUs", |run| {
            server(run).cpu_list = Vec::new()
        }),
        bent("shared_host", UNKNOWN, "not watched", |run| {
            run.agents[0].evidence.server = None
        }),
        bent("shared_host", UNKNOWN, "were not read", |run| {
            run.agents[0].evidence.host.cpus = Vec::new()
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
            "refused 3.1 % of the requests (429)",
            |run| {
                answered_with(run, 429, 500);
            },
        ),
        bent("refusals", FAIL, "(Retry-After)", |run| {
            run.agents[0].workers[0].tallies.measure.retry_afters = 900;
        }),
        bent("refusals", WARN, "(REFUSED_STREAM)", |run| {
            failed(run, FailureKind::StreamRefused, 1);
        }),
        bent(
            "refusals",
            FAIL,
            "refused 5.9 % of the requests (REFUSED_STREAM, ENHANCE_YOUR_CALM)",
            |run| {
                failed(run, FailureKind::StreamRefused, 900);
                failed(run, FailureKind::StreamEnhanceYourCalm, 100);
            },
        ),
        bent("refusals", FAIL, "refused 100 %", |run| {
            each(run, |worker| worker.tallies = Default::default());
            failed(run, FailureKind::StreamRefused, 9);
        }),
        // Nobody is told to ask less.
        bent("refusals", HEALTHY, "no request", |run| {
            failed(run, FailureKind::StreamInternalError, 900);
            failed(run, FailureKind::NotProcessed, 900);
        }),
        bent("refusals", UNKNOWN, "no reply", |run| {
            each(run, |worker| worker.tallies = Default::default());
        }),
        bent("planned_rate", HEALTHY, "of 4,000 req/s", |_| ()).on(overloaded),
        bent(
            "planned_rate",
            FAIL,
            "100 % of 4,000 req/s answered",
            |_| (),
        )
        .on(open),
        bent("planned_rate", UNKNOWN, "closed loop", |_| ()),
        bent("planned_rate", UNKNOWN, "too short", |run| {
            run.window_ns = 700 * MS;
        })
        .on(open),
        bent("backlog", HEALTHY, "no backlog", |_| ()).on(open),
        bent("backlog", WARN, "overloaded", |run| {
            run.agents[0].evidence.server = None
        })
        .on(overloaded),
        bent("backlog", FAIL, "all connections busy", |_| ()).on(overloaded),
        // Near its end, but with all connections busy it is not known to have had more to do.
        bent(
            "backlog",
            WARN,
            "about 4,000 per second were answered",
            |run| {
                server_busy_for(run, 3_400);
            },
        )
        .on(overloaded),
        bent(
            "backlog",
            FAIL,
            "about 4,000 per second were answered",
            |run| {
                server_busy_for(run, 3_900);
            },
        )
        .on(overloaded),
        bent("backlog", WARN, "were answered", |run| {
            run.agents[0].evidence.server = None;
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
        // With planned connections, those in their handshakes hold their places.
        bent("connections_busy", HEALTHY, "11 % busy", |_| ()).on(sessions_run),
        bent("connections_busy", HEALTHY, "100 % busy", |run| {
            run.latencies.tls = histogram(&[(100, 1_000 * MS)]);
        })
        .on(sessions_run),
        bent("connections_busy", WARN, "× its best", |run| {
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
                run.plan.connections = nonzero(1);
                run.latencies.service = histogram(&[(100, MS), (1_000, 9 * MS)]);
            },
        ),
        bent(
            "connections_busy",
            FAIL,
            "8 connections of 10 streams, always busy",
            |run| streams(run, 10),
        ),
        bent(
            "connections_busy",
            FAIL,
            "8 connections of 4 pipelined requests, always",
            |run| run.agents[0].negotiated.depth = 4,
        ),
        bent(
            "connections_busy",
            HEALTHY,
            "10 streams, 5.0 % busy",
            |run| {
                streams(run, 1);
                run.agents[0].negotiated.depth = 10;
            },
        )
        .on(open),
        bent("connections_busy", UNKNOWN, "not known", |run| {
            run.agents[0].evidence.server = None
        }),
        bent("connections_busy", UNKNOWN, "too few", |run| {
            run.latencies.response = histogram(&[(3, MS)]);
        }),
        bent(
            "elasticity",
            HEALTHY,
            "10 % more connections give 0 % more throughput",
            |run| halved(run, 80),
        ),
        bent("elasticity", WARN, "give 4.0 % more", |run| halved(run, 60)),
        bent("elasticity", FAIL, "give 10 % more", |run| halved(run, 40)),
        bent("elasticity", UNKNOWN, "too short", |run| halved(run, 0)),
        bent("elasticity", UNKNOWN, "was tried", |_| ()),
    ]);
}

#[test]
fn doubts() {
    verify([
        bent("steal", HEALTHY, "steal 0 %", |_| ()),
        // Two ticks.
        bent("steal", HEALTHY, "steal 0.2", |run| stolen(run, 0, 20)),
        bent("steal", WARN, "steal 1", |run| stolen(run, 0, 80)),
        bent("steal", WARN, "steal 2", |run| stolen(run, 3, 200)),
        bent("steal", FAIL, "steal 5", |run| stolen(run, 3, 450)),
        bent("steal", UNKNOWN, "not read", |run| {
            run.agents[0].evidence.host.cpus = Vec::new()
        }),
        bent("drift", HEALTHY, "than the first", |_| ()),
        bent("drift", FAIL, "drifted", drifting),
        bent("drift", WARN, "drifted", |run| drifting_by(run, 1)),
        bent("drift", UNKNOWN, "too short", |run| {
            run.window_ns = 700 * MS;
        }),
        bent("samples", HEALTHY, "replies in 2 s", |_| ()),
        bent("samples", FAIL, "in 400 ms", |run| {
            run.window_ns = 400 * MS;
        }),
        bent("samples", FAIL, "0 replies", |run| {
            each(run, |worker| worker.tallies = Default::default());
        }),
    ]);
}
