//! The rules of the verdict, in the situations that they are for.

use std::num::NonZeroU64;

use brunt_load::ProtocolSpec;
use brunt_record::{FailureKind, GeneratorUse, MissingConnections, Run, Split, StreamRecord};

use crate::behaviour::steadiness::steadiness_of;
use crate::invariants::sample::{MS, US, held_open, nonzero, replaced_after, streamed};
use crate::verdict::tests::bend::*;
use crate::verdict::{Judgement, Verdict, judge_cases, verdict_if};
use crate::{
    Claim, Compared, ComparedSide, Comparison, EndedStreams, Judged, RoundRecord, RunFigures,
    SignalId,
};

/// The verdict on a run whose figures may contradict each other: the invariants are left out.
pub(super) fn judged(run: &Run) -> Judgement {
    let mut cases = cases_of(run);
    cases.iter_mut().for_each(|facts| facts.broken.clear());
    judge_cases(&cases)
}

/// As [`judged`]. The verdict must be this, and its reason and its advice hold these words.
pub(super) fn judged_as(run: &Run, verdict: Verdict, because: &str, advice: &str) -> Judgement {
    let judgement = judged(run);
    let context = format!("{judgement:#?}, not {verdict:?} {because} {advice}");
    assert_eq!(judgement.verdict, verdict, "{context}");
    assert!(judgement.because.contains(because), "{context}");
    assert!(judgement.advice.join("; ").contains(advice), "{context}");
    judgement
}

pub(super) struct Situation {
    sound: fn() -> Run,
    bend: Bend,
    verdict: Verdict,
    says: &'static str,
}

/// What a closed loop, bent, is taken for.
pub(super) fn situation(verdict: Verdict, bend: Bend) -> Situation {
    Situation {
        sound: closed,
        bend,
        verdict,
        says: "",
    }
}

impl Situation {
    pub(super) fn on(self, sound: fn() -> Run) -> Self {
        Self { sound, ..self }
    }

    /// The signal that must come first, words of the reason, and of the advice, apart by bars.
    pub(super) fn says(self, says: &'static str) -> Self {
        Self { says, ..self }
    }
}

pub(super) fn verify(situations: impl IntoIterator<Item = Situation>) {
    for situation in situations {
        let mut run = (situation.sound)();
        (situation.bend)(&mut run);
        let shown: Vec<&str> = situation.says.split(" | ").collect();
        let [first, because, advice] = shown[..] else {
            panic!("{}", situation.says);
        };
        let judgement = judged_as(&run, situation.verdict, because, advice);
        let context = format!("{}: {judgement:#?}", situation.says);
        let decisive = &judgement.decisive;
        assert_eq!(decisive[0].to_string(), first, "{context}");
        assert!((1..=3).contains(&decisive.len()), "{context}");
        assert_eq!(judgement.advice.is_empty(), advice.is_empty(), "{context}");
    }
}

/// The server's single thread is busy all the time.
pub(super) fn saturated(run: &mut Run) {
    one_thread(run, 1_960);
}

#[test]
fn a_broken_invariant_comes_first() {
    let mut run = closed();
    run.agents[0].workers[0].population.recorded += 1;
    saturated(&mut run);
    let judgement = run.judge();
    assert_eq!(judgement.verdict, Verdict::Invalid);
    assert!(
        judgement.because.contains("figures (W6, A4 broken): "),
        "{}",
        judgement.because
    );
    assert_eq!(closed().judge().verdict, Verdict::ConcurrencyLimited);
}

#[test]
fn doubts_come_before_the_rest() {
    use Verdict::{ClientLimited, ConcurrencyLimited, Disturbed, Inconclusive, ServerLimited};
    verify([
        // Steal.
        situation(Disturbed, |run| {
            saturated(run);
            stolen(run, 0, 700);
        })
        .says("steal | CPU steal | CPUs of its own"),
        // Drift.
        situation(ServerLimited, |run| {
            saturated(run);
            drifting(run);
        })
        .says("server_cpu | the rate drifted: the second half had 87 % of the rate | for its capacity"),
        // A small drift of nobody known.
        situation(ConcurrencyLimited, drifting)
            .says("connections_busy | the rate drifted: the second half had 87 % of the rate | -c"),
        // Drift of nobody known.
        situation(Inconclusive, |run| drifting_by(run, 10))
            .says("drift | not steady | --warmup 10s"),
        // Drift of a client at its end.
        situation(ClientLimited, |run| {
            busy_for(run, 1_960);
            drifting(run);
        })
        .says("worker_idle | the limit | brunt fleet"),
        // Too short.
        situation(Inconclusive, |run| run.window_ns = 300 * MS)
            .says("samples | too little | -d 10s"),
        // Throttled for a moment, with time to spare.
        situation(Disturbed, |run| {
            saturated(run);
            throttled(run, 60);
        })
        .says("throttling | quota | cpu.max"),
        // A rate that falls because ports are used up.
        situation(ClientLimited, |run| {
            drifting(run);
            failed(run, FailureKind::ConnectNoPort, 1);
        })
        .says("client_limits | the limit | --source-address"),
        // A rate that falls because connections are not accepted.
        situation(ServerLimited, |run| {
            drifting(run);
            tcp(run).listen_overflows = 90;
            tally(run).connections_opened = 500;
        })
        .says("accept_queue | full accept queue | somaxconn"),
    ]);
}

#[test]
fn a_pair_is_a_pair() {
    use Verdict::{Inconclusive, SharedHost};
    verify([
        // Both on two CPUs.
        situation(SharedHost, |run| same_cpus(run, 1_900))
            .says("shared_host | the figures describe the pair | taskset"),
        // Even when both are at their end.
        situation(SharedHost, |run| {
            same_cpus(run, 2_000);
            thread(run).run_queue_wait_ns = Some(1_300 * MS);
        })
        .says("shared_host | pair | of its own: taskset -acp 0 PID"),
        // Where workers are bound, and the server could be elsewhere.
        situation(SharedHost, |run| {
            same_cpus(run, 1_900);
            bound(run);
            server(run).cpu_list = vec![0, 1, 2, 3];
        })
        .says("shared_host | pair | of its own: taskset -acp 2-3 PID"),
        // Client and server both at their end, each on its own CPUs.
        situation(Inconclusive, |run| {
            saturated(run);
            busy_for(run, 1_960);
        })
        .says("worker_idle | the client and the server | brunt fleet"),
        // Server at its end, and segments lost.
        situation(Inconclusive, |run| {
            saturated(run);
            tcp(run).segments_retransmitted = 800;
        })
        .says("lost_segments | the network and the server | brunt sweep"),
    ]);
}

#[test]
fn the_client_is_blamed_before_the_server() {
    use Verdict::{ClientLimited, ServerLimited};
    verify([
        // Workers at their end.
        situation(ClientLimited, |run| busy_for(run, 1_960))
            .says("worker_idle | brunt was the limit; the server may do more | more CPUs"),
        // One of them, with CPUs to spare, against a server nobody watched.
        situation(ClientLimited, |run| {
            thread(run).cpu_system_ns = 1_780 * MS;
            unwatched(run);
            run.agents[0].host.usable_cpus = 4;
        })
        .says("worker_idle | may do more | -t 4"),
        // A quota that is used up.
        situation(ClientLimited, |run| throttled(run, 1_000))
            .says("throttling | brunt was the limit | cpu.max"),
        // A busy process on the same CPU.
        situation(ClientLimited, |run| {
            for worker in &mut run.agents[0].workers {
                let thread = worker.thread.as_mut().expect("a thread");
                thread.run_queue_wait_ns = Some(1_150 * MS);
            }
        })
        .says("worker_idle | the limit | taskset"),
        // Two warnings of different kinds.
        situation(ClientLimited, |run| {
            busy_for(run, 1_700);
            thread(run).run_queue_wait_ns = Some(40 * MS);
        })
        .says("worker_idle | the limit | brunt fleet"),
        // The same beside a server whose CPU is used up.
        situation(ServerLimited, |run| {
            saturated(run);
            busy_for(run, 1_700);
            thread(run).run_queue_wait_ns = Some(40 * MS);
        })
        .says("server_cpu | describe | for its capacity"),
        // Warnings of workers that have time.
        situation(ServerLimited, |run| {
            saturated(run);
            thread(run).run_queue_wait_ns = Some(40 * MS);
            thread(run).involuntary_switches = 900;
            run.agents[0].evidence.host.pressure_ns = Some(300 * MS);
            tcp(run).zero_windows_advertised = 3;
        })
        .says("server_cpu | was at its limit | for its capacity"),
    ]);
}

#[test]
fn the_network_limits() {
    use Verdict::NetworkLimited;
    verify([
        // A full link.
        situation(NetworkLimited, |run| link(run, 245_000_000, 0))
            .says("link_use | the link is full | faster link")
            .on(|| remote(closed())),
        // Loss.
        situation(NetworkLimited, |run| tcp(run).segments_retransmitted = 800)
            .says("lost_segments | loses | lost"),
    ]);
}

#[test]
fn the_rate_limits() {
    use Verdict::RateLimited;
    verify([
        // A rate that is met.
        situation(RateLimited, |_| ())
            .says("planned_rate | was met, the capacity not measured | for its capacity")
            .on(open),
        // A rate that is met by a server of which nothing is known.
        situation(RateLimited, |_| ())
            .says("planned_rate | was met | for its capacity")
            .on(|| remote(open())),
        // A limiter.
        situation(RateLimited, |run| answered_with(run, 429, 500))
            .says("refusals | limit was reached: 3.1 % of the requests refused (429) | -r RATE"),
        // A limiter in a server at its end.
        situation(RateLimited, |run| {
            saturated(run);
            answered_with(run, 503, 500);
        })
        .says("refusals | (503) | -r RATE"),
        // A limiter that turns most away, so fast that all are at their end.
        situation(RateLimited, |run| {
            saturated(run);
            busy_for(run, 1_960);
            drifting(run);
            answered_with(run, 503, 4_000);
        })
        .says("refusals | (503) | -r RATE"),
        // A limiter beside other programs.
        situation(RateLimited, |run| {
            beside(run, 3_000);
            answered_with(run, 429, 4_000);
        })
        .says("refusals | (429) | -r RATE"),
        // A server that refuses streams.
        situation(RateLimited, |run| {
            failed(run, FailureKind::StreamEnhanceYourCalm, 500)
        })
        .says("refusals | (ENHANCE_YOUR_CALM) | -r RATE"),
    ]);
}

#[test]
fn the_server_limits() {
    use Verdict::{ClientLimited, Inconclusive, ServerLimited};
    verify([
        // A single thread at its end.
        situation(ServerLimited, saturated)
            .says("server_cpu | was at its limit; the figures describe it | for its capacity"),
        // The same in an overloaded open loop.
        situation(ServerLimited, saturated)
            .says("server_cpu | was at its limit; the figures describe it | for its capacity")
            .on(overloaded),
        // A quota.
        situation(ServerLimited, |run| {
            server_busy_for(run, 3_500);
            server_throttled(run, 900);
        })
        .says("server_throttling | used up its CPU quota | quota"),
        // An overload with the server near its end.
        situation(ServerLimited, |run| {
            server_busy_for(run, 3_500);
            // Some connections are free.
            for worker in &mut run.agents[0].workers {
                worker.in_flight_ns /= 2;
            }
        })
        .says("backlog | did not keep up with the rate | for its capacity")
        .on(overloaded),
        // No more in the warm-up with all connections than with half of them.
        situation(ServerLimited, |run| halved(run, 80))
            .says("elasticity | did no more with more connections | for its capacity"),
        // Uploads that it does not read.
        situation(ServerLimited, |run| {
            upload(run, 900, 0);
            unwatched(run);
        })
        .says("receive_window | does not read | for its capacity"),
        // The other way.
        // At its end, and nothing is known of the client.
        situation(Inconclusive, |run| {
            saturated(run);
            each(run, |worker| worker.thread = None);
            run.latencies.split = Split::default();
        })
        .says("server_cpu | whether brunt was the limit is not known | brunt sweep"),
        // Threads that wait for CPUs which others use.
        situation(Inconclusive, |run| one_thread(run, 900))
            .says("server_cpu | nearly used up | brunt sweep"),
        // An overload, with a client near its end.
        situation(Inconclusive, |run| {
            server_busy_for(run, 3_500);
            busy_for(run, 1_700);
        })
        .says("server_cpu | nearly used up | --max-connections 16")
        .on(overloaded),
        // At its end, with a client at its end by a hair.
        situation(ClientLimited, |run| {
            saturated(run);
            busy_for(run, 1_910);
            run.agents[0].evidence.server = None;
        })
        .says("worker_idle | the limit | brunt fleet"),
    ]);
}

/// Rounds with other numbers of connections, by the verdict of each.
#[test]
fn an_experiment_decides() {
    const FLAT: f64 = 0.0;
    const IN_STEP: f64 = 1.0;
    use Verdict::{ConcurrencyLimited, Inconclusive, ServerLimited, SharedServer};
    let decides = |mut run: Run, bend: Bend, slope, expected| {
        bend(&mut run);
        let found = verdict_if(&mut cases_of(&run), slope);
        assert_eq!(found, expected, "{slope}");
    };
    // A lock in the server, and one that others load.
    decides(closed(), |_| (), FLAT, ServerLimited);
    let loaded: Bend = |run| others(run, 8, 15_000);
    decides(closed(), loaded, FLAT, SharedServer);
    let unknown_link: Bend = |run| {
        if let Some(network) = &mut run.agents[0].evidence.network {
            network.route = brunt_record::Route::Unknown;
        }
    };
    decides(remote(closed()), unknown_link, FLAT, Inconclusive);
    // More give more: whatever the server is, and with workers near their end.
    decides(closed(), |_| (), IN_STEP, ConcurrencyLimited);
    decides(remote(closed()), |_| (), IN_STEP, ConcurrencyLimited);
    let near_end: Bend = |run| busy_for(run, 1_700);
    decides(closed(), near_end, IN_STEP, ConcurrencyLimited);
}

#[test]
fn the_connections_limit() {
    use Verdict::{ConcurrencyLimited, Inconclusive};
    verify([
        // All busy, both sides with room.
        situation(ConcurrencyLimited, |_| ())
            .says("connections_busy | more of them would give more | -c 16"),
        // An open loop with too few.
        situation(ConcurrencyLimited, |_| ())
            .says("connections_busy | would give more | --max-connections 16")
            .on(overloaded),
        // Half as much in the warm-up with half of them, whatever the server is.
        situation(ConcurrencyLimited, |run| halved(run, 40))
            .says("elasticity | would give more | -c 16")
            .on(|| remote(closed())),
        // All streams busy.
        situation(ConcurrencyLimited, |run| streams(run, 10)).says(
            "connections_busy | would give more | --streams 20; more connections: -c 16; make sure",
        ),
        // No more streams than a connection has requests.
        situation(ConcurrencyLimited, |run| {
            streams(run, 1);
            run.plan.traffic.reuse = replaced_after(1);
        })
        .says("connections_busy | would give more | -c 16; make sure"),
        // All of the streams that the server allows.
        situation(ConcurrencyLimited, |run| {
            streams(run, 10);
            run.agents[0].negotiated.note = Some("the server allows 10 streams".to_owned());
        })
        .says("connections_busy | would give more | more connections: -c 16"),
        // The other way.
        // All busy, and requests wait for each other.
        situation(Inconclusive, |run| {
            run.latencies.service = Default::default();
            (0..1_000).for_each(|k| run.latencies.service.record(MS + MS * (k / 100)));
        })
        .says("server_cpu | CPU to spare | brunt sweep"),
        // A server of which nothing is known.
        situation(Inconclusive, unwatched)
            .says("worker_idle | the server's CPU use is not known | --watch PID"),
        // The same elsewhere.
        situation(Inconclusive, |_| ())
            .says("worker_idle | not known | connections: ")
            .on(|| remote(closed())),
    ]);
}

#[test]
fn nothing_but_a_client_with_time_is_called_anything_else() {
    // Each failure of the client on each run that would otherwise describe something else.
    let failures: [Bend; 6] = [
        |run| busy_for(run, 1_960),
        |run| thread(run).run_queue_wait_ns = Some(1_300 * MS),
        |run| throttled(run, 1_500),
        |run| failed(run, FailureKind::ConnectNoDescriptor, 1),
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

/// Response times, of which so much is brunt's own: in most of them, and in one of twenty.
fn own(run: &mut Run, most_ns: u64, some_ns: u64) {
    split(run, 4_000, |number| match number % 20 {
        0 => (some_ns, 300 * US),
        _ => (most_ns, 300 * US),
    });
}

/// A closed loop of one connection by one worker, which is busy for so many of 2,000 ms.
fn one(run: &mut Run, busy_ms: u64) {
    run.agents[0].workers.truncate(1);
    run.plan.load.connections = nonzero(1);
    run.agents[0].share.connections = 1;
    busy_for(run, busy_ms);
    own_of(run, 430);
}

#[test]
fn pauses_that_were_planned() {
    verify([
        // Pauses.
        situation(Verdict::ThinkTime, thinking)
            .says("connections_busy | paused by plan for 50 % | -c 16, or shorter pauses"),
        // Pauses before connections that the server ended are opened again.
        situation(Verdict::ThinkTime, |run| {
            thinking(run);
            // All that are open are busy; as many users think.
            for worker in &mut run.agents[0].workers {
                worker.live.connection_ns /= 2;
                worker.live.missing = MissingConnections {
                    thinking_ns: worker.live.connection_ns,
                    ..MissingConnections::default()
                };
            }
        })
        .says("connections_busy | paused by plan for 50 % | -c 16"),
        // Pauses between requests to a server at its end.
        situation(Verdict::ServerLimited, |run| {
            thinking(run);
            one_thread(run, 1_960);
        })
        .says("server_cpu | was at its limit | "),
        // And by a brunt at its end.
        situation(Verdict::ClientLimited, |run| {
            thinking(run);
            busy_for(run, 1_960);
        })
        .says("worker_idle | the limit | brunt fleet"),
    ]);
}

#[test]
fn one_request_at_a_time() {
    verify([
        // Brunt is busy for most of each round trip.
        situation(Verdict::ConcurrencyLimited, |run| one(run, 1_700))
            .says("connections_busy | 43 % of whose round trip is brunt's own | -c 2"),
        // The server's thread is busy for most of each round trip.
        situation(Verdict::ConcurrencyLimited, |run| {
            one(run, 700);
            one_thread(run, 1_760);
            server(run).threads.as_mut().expect("set").saturated = 0;
        })
        .says("connections_busy | one request at a time | -c 2"),
        // The server uses up its CPU, but not with requests alone.
        situation(Verdict::ConcurrencyLimited, |run| {
            one(run, 700);
            server(run).cpus = Some(1.0);
            server_busy_for(run, 1_940);
        })
        .says("connections_busy | one request at a time | -c 2"),
        // On the CPU of the server, with which brunt takes turns.
        situation(Verdict::ConcurrencyLimited, |run| {
            same_cpus(run, 1_900);
            one(run, 700);
        })
        .says("connections_busy | 43 % | -c 2"),
        // A worker that is busy all the time.
        situation(Verdict::ClientLimited, |run| one(run, 1_960))
            .says("worker_idle | the limit | brunt fleet"),
    ]);
}

#[test]
fn response_times_that_are_brunts_own() {
    verify([
        // Most of them.
        situation(Verdict::ClientLimited, |run| own(run, 150 * US, 150 * US))
            .says("schedule_lag | 33 % of p50 is brunt's own | taskset")
            .on(open),
        // The slowest.
        situation(Verdict::ClientLimited, |run| own(run, 5 * US, 600 * US))
            .says("schedule_lag | 67 % of p99 and above is brunt's own | taskset")
            .on(open),
        // A little steal, which does not explain half of the requests.
        situation(Verdict::ClientLimited, |run| {
            own(run, 600 * US, 600 * US);
            stolen(run, 0, 150);
        })
        .says("schedule_lag | of p50 is brunt's own | taskset")
        .on(open),
        // A little steal, which explains the slowest.
        situation(Verdict::RateLimited, |run| {
            own(run, 10 * US, 600 * US);
            stolen(run, 0, 150);
        })
        .says("planned_rate | steal | for its capacity")
        .on(open),
        // The other way: large or long alone is told beside the rate.
        // A large part that is short.
        situation(Verdict::RateLimited, |run| own(run, 90 * US, 90 * US))
            .says("planned_rate | was met, the capacity not measured | for its capacity")
            .on(open),
    ]);
    // The lag is known of each request.
    let mut run = open();
    run.latencies.split = Split::default();
    run.latencies.lag = histogram(&[(1_000, 2 * MS)]);
    judged_as(&run, Verdict::ClientLimited, "about 100 % of p50", "");
}

#[test]
fn rounds_are_compared_by_the_quantiles_that_are_the_servers() {
    let mut run = open();
    own(&mut run, 5 * US, 600 * US);
    let round = RoundRecord::of(&Judged::of(&run));
    assert_eq!(round.verdict, Verdict::ClientLimited, "{}", round.because);
    let side = ComparedSide {
        label: None,
        url: String::new(),
        server: None,
        rounds: vec![round; 10],
        single_run: None,
    };
    let of = |q: f64| Comparison::of(Compared::ResponseQuantile(q), &side, &side, 2);
    let p50 = of(0.5);
    assert!(matches!(p50.claim, Claim::NoDifference { .. }), "{p50:?}");
    let reason = "about 67 % of p99 and above is brunt's own in every pair";
    assert_eq!(of(0.99).claim, Claim::Nothing(reason.to_owned()));
}

#[test]
fn no_report_is_sound_where_most_of_a_quoted_quantile_is_brunts_own() {
    for (most_ns, some_ns, shown) in [
        (10 * US, 600 * US, Some("p99")),
        // Not most of it; and too little of it.
        (10 * US, 250 * US, None),
        (90 * US, 90 * US, None),
    ] {
        let mut run = open();
        own(&mut run, most_ns, some_ns);
        // The rate was met; what the slowest took longer may be the hypervisor's doing.
        stolen(&mut run, 0, 150);
        let judgement = judged_as(&run, Verdict::RateLimited, "", "");
        assert_eq!(judgement.mostly_own.map(|own| own.of), shown);
        assert_eq!(judgement.is_sound(), shown.is_none());
        let words = "; about 67 % of p99 and above is brunt's own";
        assert_eq!(judgement.because.contains(words), shown.is_some());
    }
}

#[test]
fn an_open_loop_above_what_the_servers_cpu_gives_is_the_servers() {
    let late = |bend: Bend| {
        let mut run = overloaded();
        saturated(&mut run);
        own(&mut run, 300 * US, 300 * US);
        bend(&mut run);
        run
    };
    // Too short a wait for a CPU does not use up what brunt has.
    let short: Bend = |run| thread(run).run_queue_wait_ns = Some(300 * MS);
    for bend in [|_: &mut Run| (), short] {
        let words = "the server was at its limit; the throughput describes it; about 50 % of p50";
        judged_as(&late(bend), Verdict::ServerLimited, words, "");
    }
    // The other way: brunt is at its end as well, or held back.
    let held_back: Bend = |run| throttled(run, 1_500);
    for bend in [|run: &mut Run| busy_for(run, 1_960), held_back] {
        let found = judged(&late(bend));
        assert_ne!(found.verdict, Verdict::ServerLimited, "{found:#?}");
    }
}

#[test]
fn a_server_of_several_clients_is_not_measured_by_one() {
    use Verdict::{ClientLimited, ConcurrencyLimited, RateLimited, ServerLimited, SharedServer};
    verify([
        // The server is at its end for two.
        situation(SharedServer, |run| {
            saturated(run);
            others(run, 8, 15_000);
        })
        .says("other_clients | all clients together bring it | stop the other clients"),
        // Which others loaded already before brunt did.
        situation(SharedServer, |run| {
            saturated(run);
            server(run).idle_cpus_used = Some(0.98);
            others(run, 8, 15_000);
        })
        .says("other_clients | all clients together bring it | stop the other clients"),
        // A browser beside brunt.
        situation(ServerLimited, |run| {
            saturated(run);
            others(run, 6, 60);
        })
        .says("server_cpu | was at its limit | for its capacity"),
        // A server with room for all.
        situation(ConcurrencyLimited, |run| others(run, 8, 15_000))
            .says("connections_busy | more of them | -c"),
        // A rate that is met.
        situation(RateLimited, |run| others(run, 8, 15_000))
            .says("planned_rate | was met | for its capacity")
            .on(open),
        // A client at its end.
        situation(ClientLimited, |run| {
            busy_for(run, 1_960);
            others(run, 8, 15_000);
        })
        .says("worker_idle | brunt was the limit | brunt fleet"),
    ]);
}

/// Has workers spend this share of the window in a script.
fn in_script(run: &mut Run, share: f64) {
    let calls_ns = (run.window_ns as f64 * share) as u64;
    for worker in &mut run.agents[0].workers {
        worker.generator = Some(GeneratorUse {
            calls_ns,
            ..GeneratorUse::default()
        });
    }
}

#[test]
fn a_script_is_named_where_it_takes_the_time() {
    verify([
        // A third of the time of workers at their end.
        situation(Verdict::ClientLimited, |run| {
                busy_for(run, 1_960);
                in_script(run, 0.33);
            }).says("worker_idle | brunt was the limit, 33 % of its workers' time in the script; the server may | a cheaper script"),
        // Workers at their end for other reasons.
        situation(Verdict::ClientLimited, |run| {
                busy_for(run, 1_960);
                in_script(run, 0.05);
            }).says("worker_idle | brunt was the limit; the server may do more | more CPUs"),
    ]);
}

#[test]
fn programs_that_took_what_the_server_needed() {
    verify([
        // Most of the CPUs.
        situation(Verdict::Disturbed, |run| beside(run, 3_000))
            .says("other_programs | (cargo 1.50) while the server waited | repeat"),
        // Beside a brunt near its end.
        situation(Verdict::Disturbed, |run| {
            beside(run, 3_000);
            busy_for(run, 1_960);
        })
        .says("other_programs | on a quiet machine the server may do more | repeat"),
        // A rate that was met all the same.
        situation(Verdict::RateLimited, |run| beside(run, 3_000))
            .says("planned_rate | the latencies are not the server's alone | for its capacity")
            .on(open),
        // Pauses that were planned.
        situation(Verdict::ThinkTime, |run| {
            beside(run, 3_000);
            thinking(run);
        })
        .says("connections_busy | the latencies are not the server's alone | -c 16"),
        // A server that has used up its quota.
        situation(Verdict::ServerLimited, |run| {
            beside(run, 3_000);
            server_busy_for(run, 3_500);
            server_throttled(run, 900);
        })
        .says("server_throttling | used up its CPU quota | quota"),
        // The other way.
        // Nobody waited.
        situation(Verdict::ConcurrencyLimited, |run| {
            beside(run, 3_000);
            server(run).run_queue_wait_ns = Some(0);
        })
        .says("connections_busy | more of them would give more | -c"),
        // A wait that is not theirs.
        situation(Verdict::ConcurrencyLimited, |run| {
            beside(run, 900);
            server(run).run_queue_wait_ns = Some(3_600_000_000);
        })
        .says("connections_busy | more of them would give more | -c"),
        // A server that had its CPUs, and whose threads wait behind one another.
        situation(Verdict::ServerLimited, |run| {
            beside(run, 900);
            server_busy_for(run, 3_960);
            server(run).run_queue_wait_ns = Some(3_600_000_000);
        })
        .says("server_cpu | was at its limit | for its capacity"),
        // A little.
        situation(Verdict::ConcurrencyLimited, |run| beside(run, 300))
            .says("connections_busy | more of them would give more | -c"),
    ]);
}

fn kept() -> Run {
    held_open(closed())
}

/// The first worker lacks one at the end, after attempts that failed like this.
fn one_missing(run: &mut Run, kind: FailureKind) {
    let worker = &mut run.agents[0].workers[0];
    let open = worker.live.at_end.expect("it was held");
    worker.live.at_end = Some(open - 1);
    worker.tallies.measure.connections_closed_idle += 1;
    for _ in 0..3 {
        worker.tallies.measure.failures.add(kind);
    }
}

#[test]
fn what_is_missing_is_the_servers_or_ours() {
    use Verdict::{ClientLimited, ConcurrencyLimited, ServerLimited};
    verify([
        // All are there.
        situation(ConcurrencyLimited, |_| {})
            .says("server_cpu | connections were held to the end | -c 16")
            .on(kept),
        // The server refuses one.
        situation(ServerLimited, |run| {
            one_missing(run, FailureKind::ConnectRefused)
        })
        .says("accept_queue | 1 of 8 connections | limits of connections")
        .on(kept),
        // Attempts are not answered.
        situation(ServerLimited, |run| {
            one_missing(run, FailureKind::ConnectTimedOut)
        })
        .says("accept_queue | 1 of 8 connections | --connection-rate")
        .on(kept),
        // There is no port left.
        situation(ClientLimited, |run| {
            one_missing(run, FailureKind::ConnectNoPort)
        })
        .says("client_limits | 1 of 8 connections | --source-address")
        .on(kept),
    ]);
}

/// Streams between a client and a server that both have time.
fn sound_streams() -> Run {
    streamed(closed())
}

fn each_record(run: &mut Run, change: impl Fn(&mut StreamRecord)) {
    for worker in &mut run.agents[0].workers {
        change(worker.streams.as_mut().expect("streams"));
    }
}

#[test]
fn accounts_name_the_side_that_holds_streams_up() {
    use Verdict::{ClientLimited, NetworkLimited, RateLimited, ServerLimited};
    verify([
        // The server does not read.
        situation(ServerLimited, |run| {
            each_record(run, |streams| {
                streams.window.receive_window_limited_ns = streams.window.busy_ns / 2;
            });
        })
        .says("receive_window | does not read | ")
        .on(sound_streams),
        // The send buffer is too small.
        situation(ClientLimited, |run| {
            each_record(run, |streams| {
                streams.window.send_buffer_limited_ns = streams.window.busy_ns / 4;
            });
        })
        .says("send_buffer | brunt was the limit | tcp_wmem")
        .on(sound_streams),
        // The worker has no time.
        situation(ClientLimited, |run| busy_for(run, 1_990))
            .says("worker_idle | brunt was the limit | more")
            .on(sound_streams),
        // Segments are lost.
        situation(NetworkLimited, |run| {
            each_record(run, |streams| {
                streams.window.segments_retransmitted = streams.window.segments_sent / 50;
            });
        })
        .says("lost_segments | loses or delays segments | where segments are lost")
        .on(sound_streams),
        // The bandwidth asked for is met.
        situation(RateLimited, |run| pace(run, 1_600_000_000))
            .says("planned_rate | was met | a higher --bandwidth")
            .on(sound_streams),
    ]);
}

/// Asks for a bandwidth.
fn pace(run: &mut Run, bits_per_s: u64) {
    let ProtocolSpec::Streams(streams) = &mut run.plan.connection.protocol else {
        panic!("streams");
    };
    streams.paced_bits_per_s = NonZeroU64::new(bits_per_s);
}

#[test]
fn a_bandwidth_that_is_not_met_decides_nothing() {
    let mut run = sound_streams();
    pace(&mut run, 3_200_000_000);
    assert_ne!(judged(&run).verdict, Verdict::RateLimited);
}

#[test]
fn streams_on_which_nothing_moves_are_no_success() {
    let mut run = sound_streams();
    each_record(&mut run, |streams| {
        streams.window = Default::default();
        streams.lifetime = Default::default();
    });
    for worker in &mut run.agents[0].workers {
        worker.tallies.measure.bytes_received = 0;
    }
    judged_as(&run, Verdict::NoSuccess, "no byte was moved", "");
}

#[test]
fn a_rate_of_bytes_that_falls_off_drifts() {
    let mut run = sound_streams();
    assert!(!steadiness_of(&run, &run.summary()).drifts);
    each_record(&mut run, |streams| {
        for (step, reading) in streams.readings.iter_mut().enumerate() {
            let step = step as u64;
            // Each step moves less than the one before.
            reading.bytes_acked = step * 10_000_000 - step * step * 150_000;
            reading.bytes_received = 0;
        }
    });
    assert!(steadiness_of(&run, &run.summary()).drifts);
}

#[test]
fn streams_that_do_not_last_are_a_server_that_fails() {
    let asked = u64::from(sound_streams().summary().live.asked);
    for (ended, reset, verdict) in [
        (asked, 0, Verdict::ServerFailed),
        (1, asked, Verdict::ServerFailed),
        (0, 1, judged(&sound_streams()).verdict),
    ] {
        let mut run = sound_streams();
        failed(&mut run, FailureKind::StreamEnded, ended);
        failed(&mut run, FailureKind::StreamReset, reset);
        let found = EndedStreams::of(&run).expect("some ended");
        assert_eq!(found.ended, ended + reset);
        assert_eq!(found.do_last(), verdict != Verdict::ServerFailed);
        judged_as(&run, verdict, "", "");
    }
    assert_eq!(EndedStreams::of(&sound_streams()), None);
}
