//! Every rule both ways, and the order among them.

use brunt_load::Stamps;
use brunt_record::{FailureKind, Run, ServerScope};

use super::bend::*;
use super::sample::{cases_of, closed, open, overloaded, remote};
use crate::invariants::sample::{MS, replaced_after};
use crate::verdict::{ConnectionsShow, Judgement, Verdict, judge_cases, verdict_if};
use crate::{RunFigures, SignalId};

/// The verdict on a run whose figures may contradict each other: the invariants are left out.
pub(super) fn judged(run: &Run) -> Judgement {
    let mut cases = cases_of(run);
    cases.iter_mut().for_each(|facts| facts.broken.clear());
    judge_cases(&cases)
}

pub(super) struct Situation {
    what: &'static str,
    sound: fn() -> Run,
    bend: Bend,
    verdict: Verdict,
    /// The signal that must come first, words of the reason, and of the advice, apart by bars.
    told: &'static str,
}

/// What a closed loop, bent, is taken for.
pub(super) fn situation(
    what: &'static str,
    bend: Bend,
    verdict: Verdict,
    told: &'static str,
) -> Situation {
    Situation {
        what,
        sound: closed,
        bend,
        verdict,
        told,
    }
}

impl Situation {
    pub(super) fn on(self, sound: fn() -> Run) -> Self {
        Self { sound, ..self }
    }
}

pub(super) fn verify(situations: impl IntoIterator<Item = Situation>) {
    for situation in situations {
        let mut run = (situation.sound)();
        (situation.bend)(&mut run);
        let judgement = judged(&run);
        let told: Vec<&str> = situation.told.split(" | ").collect();
        let [first, because, advice] = told[..] else {
            panic!("{}", situation.told);
        };
        let context = format!("{}: {judgement:#?}", situation.what);
        assert_eq!(judgement.verdict, situation.verdict, "{context}");
        let decisive = &judgement.decisive;
        assert_eq!(decisive[0].to_string(), first, "{context}");
        assert!((1..=3).contains(&decisive.len()), "{context}");
        assert!(judgement.because.contains(because), "{context}");
        let told = judgement.advice.join("; ");
        assert!(told.contains(advice), "{context}");
        assert_eq!(told.is_empty(), advice.is_empty(), "{context}");
    }
}

/// The server's single thread is busy all the time.
pub(super) fn saturated(run: &mut Run) {
    one_thread(run, 1_960);
}

fn unwatched(run: &mut Run) {
    run.agents[0].evidence.server = None;
}

#[test]
fn a_broken_invariant_comes_first() {
    let mut run = closed();
    run.agents[0].workers[0].population.recorded += 1;
    saturated(&mut run);
    let judgement = run.judge();
    assert_eq!(judgement.verdict, Verdict::Invalid);
    assert!(
        judgement.because.starts_with("W6, A4 are broken: "),
        "{}",
        judgement.because
    );
    assert_eq!(closed().judge().verdict, Verdict::ConcurrencyLimited);
}

#[test]
fn doubts_come_before_the_rest() {
    use Verdict::{ClientLimited, ConcurrencyLimited, Disturbed, Inconclusive, ServerLimited};
    verify([
        situation(
            "steal",
            |run| {
                saturated(run);
                stolen(run, 0, 700);
            },
            Disturbed,
            "steal | hypervisor | CPUs of its own",
        ),
        situation(
            "drift",
            |run| {
                saturated(run);
                drifting(run);
            },
            ServerLimited,
            "server_cpu | the rate drifted: the second half was 13 % slower | for its capacity",
        ),
        situation(
            "a small drift of nobody known",
            drifting,
            ConcurrencyLimited,
            "connections_busy | the rate drifted: the second half was 13 % slower | -c",
        ),
        situation(
            "drift of nobody known",
            |run| drifting_by(run, 10),
            Inconclusive,
            "drift | not steady | --warmup 10s",
        ),
        situation(
            "drift of a client at its end",
            |run| {
                busy_for(run, 1_960);
                drifting(run);
            },
            ClientLimited,
            "worker_idle | the limit | machines",
        ),
        situation(
            "too short",
            |run| run.window_ns = 300 * MS,
            Inconclusive,
            "samples | too little | -d 10s",
        ),
        situation(
            "throttled for a moment, with time to spare",
            |run| {
                saturated(run);
                throttled(run, 60);
            },
            Disturbed,
            "throttling | quota | cpu.max",
        ),
        situation(
            "a rate that falls because ports are used up",
            |run| {
                drifting(run);
                let failures = &mut run.agents[0].workers[0].tallies.measure.failures;
                failures.add(FailureKind::ConnectNoPort);
            },
            ClientLimited,
            "client_limits | the limit | --source-address",
        ),
        situation(
            "a rate that falls because connections are not accepted",
            |run| {
                drifting(run);
                tcp(run).listen_overflows = 90;
                run.agents[0].workers[0].tallies.measure.connections_opened = 500;
            },
            ServerLimited,
            "accept_queue | full accept queue | somaxconn",
        ),
    ]);
}

#[test]
fn a_pair_is_a_pair() {
    use Verdict::{Inconclusive, SharedHost};
    verify([
        situation(
            "both on two CPUs",
            |run| same_cpus(run, 1_900),
            SharedHost,
            "shared_host | the figures describe the pair | taskset",
        ),
        situation(
            "even when both are at their end",
            |run| {
                same_cpus(run, 2_000);
                thread(run).run_queue_wait_ns = Some(1_300 * MS);
            },
            SharedHost,
            "shared_host | pair | taskset -acp 0 42, and let brunt",
        ),
        situation(
            "where workers are bound, and the server could be elsewhere",
            |run| {
                same_cpus(run, 1_900);
                bound(run);
                server(run).cpu_list = vec![0, 1, 2, 3];
            },
            SharedHost,
            "shared_host | pair | of its own: taskset -acp 2-3 42",
        ),
        situation(
            "the same of several processes",
            |run| {
                same_cpus(run, 1_900);
                bound(run);
                server(run).cpu_list = vec![0, 1, 3];
                server(run).scope = ServerScope::Processes {
                    pids: vec![42, 43],
                    found_by: "port 8080".to_owned(),
                };
            },
            SharedHost,
            "shared_host | pair | for p in 42 43; do taskset -acp 3 $p; done",
        ),
        situation(
            "and of one that is not known by its processes",
            |run| {
                same_cpus(run, 1_900);
                server(run).scope = ServerScope::OwnThreads;
            },
            SharedHost,
            "shared_host | pair | another machine",
        ),
        situation(
            "client and server both at their end, each on its own CPUs",
            |run| {
                saturated(run);
                busy_for(run, 1_960);
            },
            Inconclusive,
            "worker_idle | the client and the server | machines",
        ),
        situation(
            "server at its end, and segments lost",
            |run| {
                saturated(run);
                tcp(run).segments_retransmitted = 800;
            },
            Inconclusive,
            "lost_segments | the network and the server | brunt sweep",
        ),
    ]);
}

#[test]
fn the_client_is_blamed_before_the_server() {
    use Verdict::{ClientLimited, ServerLimited};
    verify([
        situation(
            "workers at their end",
            |run| busy_for(run, 1_960),
            ClientLimited,
            "worker_idle | brunt was the limit; the server can do more | more machines",
        ),
        situation(
            "one of them, with CPUs to spare, against a server nobody watched",
            |run| {
                thread(run).cpu_system_ns = 1_780 * MS;
                unwatched(run);
                run.agents[0].host.usable_cpus = 4;
            },
            ClientLimited,
            "worker_idle | may do more | -t 4",
        ),
        situation(
            "a quota that is used up",
            |run| throttled(run, 1_000),
            ClientLimited,
            "throttling | brunt was the limit | cpu.max",
        ),
        situation(
            "a busy process on the same CPU",
            |run| {
                for worker in &mut run.agents[0].workers {
                    let thread = worker.thread.as_mut().expect("a thread");
                    thread.run_queue_wait_ns = Some(1_150 * MS);
                }
            },
            ClientLimited,
            "worker_idle | the limit | taskset",
        ),
        situation(
            "two warnings of different kinds",
            |run| {
                busy_for(run, 1_700);
                thread(run).run_queue_wait_ns = Some(40 * MS);
            },
            ClientLimited,
            "worker_idle | the limit | machines",
        ),
        situation(
            "the same beside a server whose CPU is used up",
            |run| {
                saturated(run);
                busy_for(run, 1_700);
                thread(run).run_queue_wait_ns = Some(40 * MS);
            },
            ServerLimited,
            "server_cpu | describe | for its capacity",
        ),
        situation(
            "warnings of workers that have time",
            |run| {
                saturated(run);
                thread(run).run_queue_wait_ns = Some(40 * MS);
                thread(run).involuntary_switches = 900;
                run.agents[0].evidence.host.pressure_ns = Some(300 * MS);
                tcp(run).zero_windows_advertised = 3;
            },
            ServerLimited,
            "server_cpu | used up its CPU | for its capacity",
        ),
    ]);
}

#[test]
fn the_network_limits() {
    use Verdict::NetworkLimited;
    verify([
        situation(
            "a full link",
            |run| link(run, 245_000_000, 0),
            NetworkLimited,
            "link_use | the link is full | faster link",
        )
        .on(|| remote(closed())),
        situation(
            "loss",
            |run| tcp(run).segments_retransmitted = 800,
            NetworkLimited,
            "lost_segments | loses | lost",
        ),
    ]);
}

#[test]
fn the_rate_limits() {
    use Verdict::RateLimited;
    verify([
        situation(
            "a rate that is met",
            |_| (),
            RateLimited,
            "planned_rate | was met, the capacity not measured | for its capacity",
        )
        .on(open),
        situation(
            "a rate that is met by a server of which nothing is known",
            |_| (),
            RateLimited,
            "planned_rate | was met | for its capacity",
        )
        .on(|| remote(open())),
        situation(
            "a limiter",
            |run| answered_with(run, 429, 500),
            RateLimited,
            "refusals | the server refused 3.1 % of the requests (429) | -r RATE",
        ),
        situation(
            "a limiter in a server at its end",
            |run| {
                saturated(run);
                answered_with(run, 503, 500);
            },
            RateLimited,
            "refusals | (503) | -r RATE",
        ),
        situation(
            "a limiter that turns most away, so fast that all are at their end",
            |run| {
                saturated(run);
                busy_for(run, 1_960);
                drifting(run);
                answered_with(run, 503, 4_000);
            },
            RateLimited,
            "refusals | (503) | -r RATE",
        ),
        situation(
            "a limiter beside other programs",
            |run| {
                beside(run, 3_000);
                answered_with(run, 429, 4_000);
            },
            RateLimited,
            "refusals | (429) | -r RATE",
        ),
        situation(
            "a server that refuses streams",
            |run| failed(run, FailureKind::StreamEnhanceYourCalm, 500),
            RateLimited,
            "refusals | (ENHANCE_YOUR_CALM) | -r RATE",
        ),
    ]);
}

#[test]
fn the_server_limits() {
    use Verdict::{ClientLimited, Inconclusive, ServerLimited};
    verify([
        situation(
            "a single thread at its end",
            saturated,
            ServerLimited,
            "server_cpu | used up its CPU; the figures describe it | for its capacity",
        ),
        situation(
            "the same in an overloaded open loop",
            saturated,
            ServerLimited,
            "server_cpu | used up its CPU; the figures describe it | for its capacity",
        )
        .on(overloaded),
        situation(
            "a quota",
            |run| {
                server_busy_for(run, 3_500);
                server_throttled(run, 900);
            },
            ServerLimited,
            "server_throttling | used up its CPU quota | quota",
        ),
        situation(
            "an overload with the server near its end",
            |run| {
                server_busy_for(run, 3_500);
                // Some connections are free.
                for worker in &mut run.agents[0].workers {
                    worker.in_flight_ns /= 2;
                }
            },
            ServerLimited,
            "backlog | did not keep up with the rate | for its capacity",
        )
        .on(overloaded),
        situation(
            "no more in the warm-up with all connections than with half of them",
            |run| halved(run, 80),
            ServerLimited,
            "elasticity | did no more with more connections | for its capacity",
        ),
        situation(
            "uploads that it does not read",
            |run| {
                upload(run, 900, 0);
                unwatched(run);
            },
            ServerLimited,
            "receive_window | does not read | for its capacity",
        ),
        // The other way.
        situation(
            "at its end, and nothing is known of the client",
            |run| {
                saturated(run);
                each(run, |worker| worker.thread = None);
                run.plan.stamps = Stamps::Off;
            },
            Inconclusive,
            "server_cpu | not known whether brunt was the limit | brunt sweep",
        ),
        situation(
            "threads that wait for CPUs which others use",
            |run| one_thread(run, 900),
            Inconclusive,
            "server_cpu | nearly used up | brunt sweep",
        ),
        situation(
            "an overload, with a client near its end",
            |run| {
                server_busy_for(run, 3_500);
                busy_for(run, 1_700);
            },
            Inconclusive,
            "server_cpu | nearly used up | --max-connections 16",
        )
        .on(overloaded),
        situation(
            "at its end, with a client at its end by a hair",
            |run| {
                saturated(run);
                busy_for(run, 1_910);
                run.agents[0].evidence.server = None;
            },
            ClientLimited,
            "worker_idle | the limit | machines",
        ),
    ]);
}

/// Rounds with other numbers of connections, by the verdict of each.
#[test]
fn an_experiment_decides() {
    use ConnectionsShow::{Flat, InStep};
    use Verdict::{ConcurrencyLimited, Inconclusive, ServerLimited, SharedServer};
    let unknown_link: Bend = |run| {
        if let Some(network) = &mut run.agents[0].evidence.network {
            network.route = brunt_record::Route::Unknown;
        }
    };
    let cases: [(&str, Run, Bend, ConnectionsShow, Verdict); 6] = [
        (
            "a lock in the server",
            closed(),
            |_| (),
            Flat,
            ServerLimited,
        ),
        (
            "a server that others load",
            closed(),
            |run| others(run, 8, 15_000),
            Flat,
            SharedServer,
        ),
        (
            "a link of unknown speed",
            remote(closed()),
            unknown_link,
            Flat,
            Inconclusive,
        ),
        (
            "more give more",
            closed(),
            |_| (),
            InStep,
            ConcurrencyLimited,
        ),
        (
            "whatever the server is",
            remote(closed()),
            |_| (),
            InStep,
            ConcurrencyLimited,
        ),
        (
            "workers near their end",
            closed(),
            |run| busy_for(run, 1_700),
            InStep,
            ConcurrencyLimited,
        ),
    ];
    for (what, mut run, bend, show, expected) in cases {
        bend(&mut run);
        let found = verdict_if(&run, &run.summary(), &[], None, show);
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn the_connections_limit() {
    use Verdict::{ConcurrencyLimited, Inconclusive};
    verify([
        situation(
            "all busy, both sides with room",
            |_| (),
            ConcurrencyLimited,
            "connections_busy | more of them would give more | -c 16",
        ),
        situation(
            "an open loop with too few",
            |_| (),
            ConcurrencyLimited,
            "connections_busy | would give more | --max-connections 16",
        )
        .on(overloaded),
        situation(
            "half as much in the warm-up with half of them, whatever the server is",
            |run| halved(run, 40),
            ConcurrencyLimited,
            "elasticity | would give more | -c 16",
        )
        .on(|| remote(closed())),
        situation(
            "all streams busy",
            |run| streams(run, 10),
            ConcurrencyLimited,
            "connections_busy | would give more | --streams 20; more connections: -c 16; make sure",
        ),
        situation(
            "no more streams than a connection has requests",
            |run| {
                streams(run, 1);
                run.plan.reuse = replaced_after(1);
                run.plan.reuse = replaced_after(1);
            },
            ConcurrencyLimited,
            "connections_busy | would give more | -c 16; make sure",
        ),
        situation(
            "all of the streams that the server allows",
            |run| {
                streams(run, 10);
                run.agents[0].negotiated.note = Some("the server allows 10 streams".to_owned());
            },
            ConcurrencyLimited,
            "connections_busy | would give more | -c 16; the server allows 10 streams",
        ),
        // The other way.
        situation(
            "all busy, and requests wait for each other",
            |run| {
                run.latencies.service = Default::default();
                (0..1_000).for_each(|k| run.latencies.service.record(MS + MS * (k / 100)));
            },
            Inconclusive,
            "server_cpu | CPU to spare | brunt sweep",
        ),
        situation(
            "a server of which nothing is known",
            unwatched,
            Inconclusive,
            "worker_idle | the server's CPU use is not known | --watch PID",
        ),
        situation(
            "the same elsewhere",
            |_| (),
            Inconclusive,
            "worker_idle | not known | connections: ",
        )
        .on(|| remote(closed())),
    ]);
}

#[test]
fn requests_that_were_not_processed_are_explained_whatever_limits() {
    let mut run = closed();
    let advice = |run: &Run| run.judge().advice.join("; ");
    assert!(!advice(&run).contains("keepalive_requests"));
    run.agents[0].negotiated.protocol = brunt_load::protocol::Protocol::HTTP2;
    for _ in 0..run.summary().lifetime.connections_opened {
        run.latencies.greeting.record(100_000);
    }
    let fail = |run: &mut Run, requests: u64| {
        for worker in &mut run.agents[0].workers {
            for _ in 0..requests {
                worker.tallies.after.failures.add(FailureKind::NotProcessed);
            }
            worker.tallies.after.requests_sent += requests;
        }
    };
    fail(&mut run, 1);
    let told = advice(&run);
    assert!(told.contains("more connections: "), "{told}");
    assert!(told.ends_with("--requests-per-connection"), "{told}");
    // The report prints the first one only.
    let sent = run.summary().lifetime.requests_sent;
    fail(&mut run, sent / 100);
    let told = advice(&run);
    assert!(told.starts_with("the server replaces"), "{told}");
    assert!(told.contains("-c 16"), "{told}");
    // Figures that are refused explain nothing.
    run.agents[0].negotiated.protocol = brunt_load::protocol::Protocol::HTTP1;
    assert_eq!(run.judge().verdict, Verdict::Invalid);
    assert!(run.judge().advice.is_empty());
}

#[test]
fn nothing_but_a_client_with_time_is_called_anything_else() {
    // Each failure of the client on each run that would otherwise describe something else.
    let failures: [Bend; 6] = [
        |run| busy_for(run, 1_960),
        |run| thread(run).run_queue_wait_ns = Some(1_300 * MS),
        |run| throttled(run, 1_500),
        |run| {
            let failures = &mut run.agents[0].workers[0].tallies.measure.failures;
            failures.add(FailureKind::ConnectNoDescriptor);
        },
        |run| upload(run, 0, 900),
        |run| {
            let network = run.agents[0].evidence.network.as_mut().expect("a network");
            network.conntrack = Some(brunt_record::Conntrack {
                entries: 9,
                entries_max: 9,
                dropped_packets: 1,
            });
        },
    ];
    let others: [Bend; 6] = [
        |_| (),
        saturated,
        |run| server_throttled(run, 900),
        |run| answered_with(run, 429, 500),
        |run| halved(run, 80),
        |run| halved(run, 40),
    ];
    for sound in [closed, open, overloaded] {
        for (other, bend_other) in others.iter().enumerate() {
            for (failure, bend) in failures.iter().enumerate() {
                let mut run = sound();
                bend_other(&mut run);
                bend(&mut run);
                let judgement = judged(&run);
                let is_safe = matches!(
                    judgement.verdict,
                    Verdict::ClientLimited
                        | Verdict::Disturbed
                        | Verdict::Inconclusive
                        | Verdict::SharedHost
                );
                // A rate that was met was met, however late brunt was.
                let is_met = judgement.verdict == Verdict::RateLimited
                    && judgement.decisive[0] == SignalId::PlannedRate;
                assert!(is_safe || is_met, "{failure} on {other}: {judgement:#?}");
            }
        }
    }
}
