//! Signals of the client, healthy, at a warning, failing and unknown.

use brunt_load::protocol::Protocol;
use brunt_load::{Stage, Stamps};
use brunt_record::{FailureKind, Histogram, Run};

use super::bend::*;
use super::sample::open;
use super::signals::*;
use crate::invariants::sample::{MS, US, set_stages};

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
            run.agents[0].workers[0].thread = None;
        }),
        bent("worker_idle", UNKNOWN, "not read", |run| {
            each(run, |worker| worker.thread = None);
        }),
        bent("run_queue_wait", HEALTHY, "0.2 %", |_| ()),
        bent("run_queue_wait", WARN, "3.6 %", |run| {
            thread(run).run_queue_wait_ns = Some(30 * MS);
        }),
        bent("run_queue_wait", FAIL, "14 %", |run| {
            thread(run).cpu_system_ns = 1_500 * MS;
            thread(run).run_queue_wait_ns = Some(280 * MS);
        }),
        // Idle all the same: brunt was not the limit.
        bent("run_queue_wait", WARN, "waking up", |run| {
            own_share(run, 300);
            thread(run).run_queue_wait_ns = Some(200 * MS);
        }),
        bent(
            "own_share",
            WARN,
            "30 % of the response time is brunt's own: waking up",
            |run| {
                own_share(run, 300);
                thread(run).run_queue_wait_ns = Some(200 * MS);
            },
        ),
        bent("run_queue_wait", UNKNOWN, "does not say", |run| {
            run.agents[0]
                .workers
                .iter_mut()
                .flat_map(|worker| &mut worker.thread)
                .for_each(|thread| thread.run_queue_wait_ns = None);
        }),
    ]);
}

#[test]
fn the_time_that_brunt_takes() {
    verify([
        bent(
            "own_share",
            HEALTHY,
            "0.4 % of the response time is brunt's own, above p99 0.4 %",
            |_| (),
        ),
        bent(
            "own_share",
            WARN,
            "5.0 % of the response time is brunt's own",
            |run| own_share(run, 50),
        ),
        bent("own_share", WARN, "waking up", |run| own_share(run, 300)),
        bent(
            "own_share",
            FAIL,
            "30 % of the response time is brunt's own",
            |run| {
                own_share(run, 300);
                busy_for(run, 1_800);
            },
        ),
        // A few replies came while brunt did not run.
        bent(
            "own_share",
            WARN,
            "1.5 % of the response time is brunt's own, above p99",
            |run| {
                own_share_of_tail(run, 3_000);
                busy_for(run, 1_800);
            },
        ),
        // Of a few slow ones nothing is told.
        bent(
            "own_share",
            HEALTHY,
            "1.5 % of the response time is brunt's own",
            |run| {
                own_share_of_tail(run, 2_999);
            },
        ),
        bent("own_share", UNKNOWN, "no kernel stamps", |run| {
            run.plan.stamps = Stamps::Off
        }),
        bent("own_share", UNKNOWN, "pipelined", |run| {
            run.agents[0].negotiated.depth = 2
        }),
        // The parts of each stream are known.
        bent("own_share", HEALTHY, "brunt's own", |run| streams(run, 10)),
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
            busy_for(run, 1_800);
        })
        .on(open),
        bent("schedule_lag", UNKNOWN, "closed loop", |_| ()),
        bent("schedule_lag", UNKNOWN, "too few", |run| {
            run.latencies.lag = Histogram::default();
        })
        .on(open),
        // Half busy: at most half of the arrivals can have found no connection free.
        bent("schedule_lag", HEALTHY, "p99 5", |run| {
            drop_planned(run, 3_900)
        })
        .on(open),
        bent("schedule_lag", WARN, "of the plan not sent", |run| {
            drop_planned(run, 4_044)
        })
        .on(open),
        bent("schedule_lag", FAIL, "10 %", |run| drop_planned(run, 4_800)).on(open),
        // Nobody knows how many were due when connections were free.
        bent("schedule_lag", HEALTHY, "p99 5", |run| {
            drop_planned(run, 4_800);
            let stage = Stage {
                duration_ns: 1,
                from_per_s: 1.0,
                to_per_s: 1.0,
            };
            set_stages(run, vec![stage]);
        })
        .on(open),
        bent("schedule_lag", HEALTHY, "p99 5", |run| {
            each(run, |worker| worker.arrivals = Default::default());
        })
        .on(open),
    ]);
}

/// Makes brunt's own share of the response time so many microseconds of each millisecond.
fn own_share(run: &mut Run, us: u64) {
    let mut split = brunt_record::Split::default();
    for _ in 0..2_000 {
        split.record(&brunt_record::Parts {
            server_ns: 1_000 * US - us * US,
            lag_receive_ns: us * US,
            ..brunt_record::Parts::default()
        });
    }
    run.latencies.split = split;
}

/// One response in 200 is brunt's alone, and three times as long as the others.
fn own_share_of_tail(run: &mut Run, responses: u64) {
    let mut split = brunt_record::Split::default();
    for number in 0..responses {
        let (server_ns, lag_receive_ns) = if number % 200 == 0 {
            (0, 3_000 * US)
        } else {
            (1_000 * US, 0)
        };
        split.record(&brunt_record::Parts {
            server_ns,
            lag_receive_ns,
            ..brunt_record::Parts::default()
        });
    }
    run.latencies.split = split;
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
    let quic = &mut run.agents[0].workers[0].tallies.measure.quic;
    (quic.datagrams_received, quic.datagrams_dropped) = (received, dropped);
}

#[test]
fn the_clients_machine() {
    verify([
        bent("throttling", HEALTHY, "no CPU quota", |_| ()),
        bent("throttling", HEALTHY, "never used up", |run| {
            throttled(run, 0)
        }),
        bent("throttling", WARN, "0.5 %", |run| throttled(run, 10)),
        bent("throttling", FAIL, "30 %", |run| throttled(run, 600)),
        bent("throttling", UNKNOWN, "nothing was read", |run| {
            run.agents[0].evidence.interval_ns = 0
        }),
        bent("throttling", UNKNOWN, "hidden", |run| {
            let missing = &mut run.agents[0].evidence.missing;
            missing.insert("host.throttling".to_owned(), "hidden".to_owned());
        }),
        bent("unread_data", HEALTHY, "0 full", |_| ()),
        bent("unread_data", WARN, "4 full", |run| {
            tcp(run).zero_windows_advertised = 4
        }),
        bent("unread_data", WARN, "server's sockets", |run| {
            tcp(run).zero_windows_advertised = 400;
        }),
        bent("unread_data", FAIL, "400 full", |run| {
            tcp(run).zero_windows_advertised = 400
        })
        .on(remote_closed),
        bent("unread_data", UNKNOWN, "not read", |run| {
            run.agents[0].evidence.network = None
        }),
        bent("unread_data", WARN, "1 segments", |run| {
            tcp(run).receive_prunes = 1
        }),
        bent("unread_data", FAIL, "80 segments", |run| {
            tcp(run).receive_prunes = 80
        })
        .on(remote_closed),
        bent("unread_data", HEALTHY, "0 of 100,000 datagrams", |run| {
            datagrams(run, 100_000, 0)
        }),
        bent("unread_data", WARN, "4 of 100,004 datagrams", |run| {
            datagrams(run, 100_000, 4)
        }),
        bent("unread_data", FAIL, "400 of 100,400 datagrams", |run| {
            datagrams(run, 100_000, 400)
        }),
        bent("unread_data", UNKNOWN, "no datagram came", |run| {
            datagrams(run, 0, 0)
        }),
        bent("send_buffer", HEALTHY, "0 %", |run| {
            run.agents[0].negotiated.request_bytes = 1 << 20
        }),
        bent("send_buffer", WARN, "2.0 %", |run| upload(run, 0, 40)),
        bent("send_buffer", FAIL, "10 %", |run| upload(run, 0, 200)),
        bent("send_buffer", UNKNOWN, "small", |_| ()),
        bent("send_buffer", UNKNOWN, "no connection", |run| {
            run.agents[0].negotiated.request_bytes = 1 << 20;
            each(run, |worker| worker.kernel.busy_ns = 0);
        }),
        bent("client_limits", HEALTHY, "sufficed", |_| ()),
        bent("client_limits", WARN, "outside of the window", |run| {
            run.agents[0].workers[0]
                .tallies
                .before
                .failures
                .add(FailureKind::ConnectNoPort);
        }),
        bent("client_limits", WARN, "90 % full", |run| {
            conntrack(run, 900, 0)
        }),
        bent("client_limits", FAIL, "no free local port 1 time", |run| {
            run.agents[0].workers[0]
                .tallies
                .measure
                .failures
                .add(FailureKind::ConnectNoPort);
        }),
        bent("client_limits", FAIL, "no free descriptor", |run| {
            run.agents[0].workers[0]
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
            each(run, |worker| worker.tallies = Default::default());
        }),
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
