//! What a planned load says of the server: pauses, one request at a time, response times that are
//! brunt's own.

use brunt_load::Stage;
use brunt_record::{MissingConnections, Parts, Run, Split};

use super::bend::*;
use super::rules::{judged, saturated, situation, verify};
use super::sample::{open, overloaded};
use crate::invariants::sample::{MS, US, nonzero, set_stages};
use crate::verdict::Verdict;
use crate::{Claim, Compared, Comparison, Judged, RoundRecord};

/// Response times, of which so much is brunt's own: in most of them, and in one of twenty.
fn own(run: &mut Run, most_ns: u64, some_ns: u64) {
    run.latencies.split = Split::default();
    for number in 0..4_000 {
        let own_ns = if number % 20 == 0 { some_ns } else { most_ns };
        run.latencies.split.record(&Parts {
            lag_send_ns: own_ns,
            server_ns: 300 * US,
            ..Parts::default()
        });
    }
}

/// A closed loop of one connection by one worker, which is busy for so many of 2,000 ms.
fn one(run: &mut Run, busy_ms: u64) {
    run.agents[0].workers.truncate(1);
    run.plan.connections = nonzero(1);
    run.agents[0].share.connections = 1;
    busy_for(run, busy_ms);
    own_of(run, 430);
}

/// Makes brunt's own share of each response time so many thousandths.
fn own_of(run: &mut Run, thousandths: u64) {
    run.latencies.split = Split::default();
    for _ in 0..4_000 {
        run.latencies.split.record(&Parts {
            lag_receive_ns: thousandths * 100,
            server_ns: (1_000 - thousandths) * 100,
            ..Parts::default()
        });
    }
}

#[test]
fn stages_that_were_met_have_no_rate_to_raise() {
    let steady = Stage {
        duration_ns: 2_000 * MS,
        from_per_s: 4_000.0,
        to_per_s: 4_000.0,
    };
    let mut run = open();
    set_stages(&mut run, vec![steady]);
    let judgement = judged(&run);
    assert_eq!(judgement.verdict, Verdict::RateLimited, "{judgement:#?}");
    assert_eq!(
        judgement.advice,
        ["for the capacity: higher rates in --stages"]
    );
}

#[test]
fn pauses_that_were_planned() {
    verify([
        situation(
            "pauses",
            thinking,
            Verdict::ThinkTime,
            "connections_busy | paused by plan for 50 % | -c 16; or a shorter --think-time",
        ),
        situation(
            "pauses before connections that the server ended are opened again",
            |run| {
                thinking(run);
                // All that are open are busy; as many users think.
                for worker in &mut run.agents[0].workers {
                    worker.live.connection_ns /= 2;
                    worker.live.missing = MissingConnections {
                        thinking_ns: worker.live.connection_ns,
                        ..MissingConnections::default()
                    };
                }
            },
            Verdict::ThinkTime,
            "connections_busy | paused by plan for 50 % | -c 16",
        ),
        situation(
            "pauses between requests to a server at its end",
            |run| {
                thinking(run);
                one_thread(run, 1_960);
            },
            Verdict::ServerLimited,
            "server_cpu | used up its CPU | ",
        ),
        situation(
            "and by a brunt at its end",
            |run| {
                thinking(run);
                busy_for(run, 1_960);
            },
            Verdict::ClientLimited,
            "worker_idle | the limit | machines",
        ),
    ]);
}

#[test]
fn one_request_at_a_time() {
    verify([
        situation(
            "brunt is busy for most of each round trip",
            |run| one(run, 1_700),
            Verdict::ConcurrencyLimited,
            "connections_busy | 43 % of whose round trip is brunt's own | -c 2",
        ),
        situation(
            "the server's thread is busy for most of each round trip",
            |run| {
                one(run, 700);
                one_thread(run, 1_760);
                server(run).threads.as_mut().expect("set").saturated = 0;
            },
            Verdict::ConcurrencyLimited,
            "connections_busy | one request at a time | -c 2",
        ),
        situation(
            "the server uses up its CPU, but not with requests alone",
            |run| {
                one(run, 700);
                server(run).cpus = Some(1.0);
                server_busy_for(run, 1_940);
            },
            Verdict::ConcurrencyLimited,
            "connections_busy | one request at a time | -c 2",
        ),
        situation(
            "on the CPU of the server, with which brunt takes turns",
            |run| {
                same_cpus(run, 1_900);
                one(run, 700);
            },
            Verdict::ConcurrencyLimited,
            "connections_busy | 43 % | -c 2",
        ),
        situation(
            "a worker that is busy all the time",
            |run| one(run, 1_960),
            Verdict::ClientLimited,
            "worker_idle | the limit | machines",
        ),
    ]);
}

#[test]
fn response_times_that_are_brunts_own() {
    verify([
        situation(
            "most of them",
            |run| own(run, 150 * US, 150 * US),
            Verdict::ClientLimited,
            "schedule_lag | 33 % of p50, 150 µs, is brunt's own | taskset",
        )
        .on(open),
        situation(
            "the slowest",
            |run| own(run, 5 * US, 600 * US),
            Verdict::ClientLimited,
            "schedule_lag | 67 % of p99, 600 µs, is brunt's own | taskset",
        )
        .on(open),
        situation(
            "a little steal, which does not explain half of the requests",
            |run| {
                own(run, 600 * US, 600 * US);
                stolen(run, 0, 150);
            },
            Verdict::ClientLimited,
            "schedule_lag | of p50, 600 µs, is brunt's own | taskset",
        )
        .on(open),
        situation(
            "a little steal, which explains the slowest",
            |run| {
                own(run, 10 * US, 600 * US);
                stolen(run, 0, 150);
            },
            Verdict::RateLimited,
            "planned_rate | the hypervisor took CPUs (steal | for its capacity",
        )
        .on(open),
        // The other way: large or long alone is told beside the rate.
        situation(
            "a large part that is short",
            |run| own(run, 90 * US, 90 * US),
            Verdict::RateLimited,
            "planned_rate | was met, the capacity not measured; 23 % | for its capacity",
        )
        .on(open),
    ]);
    // The lag is known of each request.
    let mut run = open();
    run.latencies.split = Split::default();
    run.latencies.lag = histogram(&[(1_000, 2 * MS)]);
    let judgement = judged(&run);
    assert_eq!(judgement.verdict, Verdict::ClientLimited, "{judgement:#?}");
    assert!(judgement.because.contains("of p50, 2 ms"), "{judgement:#?}");
}

#[test]
fn rounds_are_compared_by_the_quantiles_that_are_the_servers() {
    let mut run = open();
    own(&mut run, 5 * US, 600 * US);
    let round = RoundRecord::of(&Judged::of(&run));
    assert_eq!(round.verdict, Verdict::ClientLimited, "{}", round.because);
    let rounds = vec![round; 10];
    let of = |q: f64| Comparison::of(Compared::ResponseQuantile(q), &rounds, &rounds, 2);
    let p50 = of(0.5);
    assert!(matches!(p50.claim, Claim::NoDifference { .. }), "{p50:?}");
    let p99 = of(0.99);
    let reason = "neither".to_owned();
    let words = match &p99.claim {
        Claim::Nothing(words) => words,
        _ => &reason,
    };
    assert_eq!(words, "67 % of p99, 600 µs, is brunt's own in every pair");
}

#[test]
fn no_report_is_sound_where_most_of_a_quoted_quantile_is_brunts_own() {
    for (most_ns, some_ns, told) in [
        (10 * US, 600 * US, Some("p99")),
        // Not most of it; and too little of it.
        (10 * US, 250 * US, None),
        (90 * US, 90 * US, None),
    ] {
        let mut run = open();
        own(&mut run, most_ns, some_ns);
        // The rate was met; what the slowest took longer may be the hypervisor's doing.
        stolen(&mut run, 0, 150);
        let judgement = judged(&run);
        assert_eq!(judgement.verdict, Verdict::RateLimited, "{judgement:#?}");
        assert_eq!(judgement.mostly_own.map(|own| own.of), told);
        assert_eq!(judgement.is_sound(), told.is_none());
        let words = "; most of p99, 600 µs, is brunt's own";
        assert_eq!(judgement.because.contains(words), told.is_some());
    }
}

#[test]
fn an_open_loop_above_what_the_servers_cpu_gives_is_the_servers() {
    let late = |run: &mut Run| {
        saturated(run);
        own_of(run, 430);
    };
    let judgement = |bend: &dyn Fn(&mut Run)| {
        let mut run = overloaded();
        late(&mut run);
        bend(&mut run);
        judged(&run)
    };
    for bend in [
        |_: &mut Run| (),
        // Too short a wait for a CPU to use up what brunt has.
        |run: &mut Run| thread(run).run_queue_wait_ns = Some(300 * MS),
    ] {
        let found = judgement(&bend);
        assert_eq!(found.verdict, Verdict::ServerLimited, "{found:#?}");
        let words = "the server used up its CPU; the throughput describes it; 43 %";
        assert!(found.because.starts_with(words), "{found:#?}");
    }
    // The other way: brunt is at its end as well, or held back.
    let found = judgement(&|run| busy_for(run, 1_960));
    assert_ne!(found.verdict, Verdict::ServerLimited, "{found:#?}");
    let found = judgement(&|run| throttled(run, 1_500));
    assert_ne!(found.verdict, Verdict::ServerLimited, "{found:#?}");
}
