//! The closed loop, where the figures are known beforehand.

use brunt_judge::{Grade, InvariantStatus, RunFigures, SignalId};
use brunt_load::{Plan, RequestOrder, RequestSet, RequestSpec, Reuse, ThinkSpread};
use brunt_testkit::{Costs, LateWakeUps, Outage, ServiceTime, SimSettings};

use super::{at_the_door, closed, plan, run, textbook};
use crate::common::{MS, S, US, by_count, expect_valid, lifetime, many, many_long, status};

#[test]
fn n_connections_give_n_replies_per_service_time() {
    for (connections, workers) in [(1, 1), (7, 1), (7, 3), (100, 2)] {
        let mut plan = closed(connections, 1);
        plan.workers.count = many(workers);
        let (run, _) = run(plan, &textbook(800 * US));
        expect_valid(&run, "textbook");
        let expected = u64::from(connections) * 1_000;
        let replies = run.summary().window.replies.successes();
        // Each connection may gain or lose one at the edges of the window.
        assert!(
            replies.abs_diff(expected) <= u64::from(connections),
            "{connections} connections, {workers} workers: {replies} replies"
        );
        assert_eq!(run.latencies.response.min_ns(), Some(MS));
        assert_eq!(run.latencies.response.max_ns(), Some(MS));
        let in_flight = run.summary().in_flight_mean.known().expect("a mean");
        assert!(
            (in_flight - f64::from(connections)).abs() < 0.001,
            "{in_flight}"
        );
    }
}

#[test]
fn requests_have_the_shares_of_their_weights() {
    let requests = ["/a", "/b", "/c"].map(RequestSpec::get).to_vec();
    let set = |order| {
        let set = RequestSet::of(requests.clone(), order).expect("a list");
        set.with_weights(&[50, 10, 40]).expect("few turns")
    };
    let shares = |order, workers| {
        let mut plan = plan();
        plan.traffic.requests = set(order);
        plan.load.connections = many(6);
        plan.workers.count = many(workers);
        by_count(&mut plan, 3_000);
        let (run, _) = run(plan, &textbook(800 * US));
        expect_valid(&run, "weights");
        assert!(run.plan.traffic.requests.is_weighted());
        let names = run.names.iter();
        let sent: Vec<u64> = names.map(|name| name.requests_sent).collect();
        assert_eq!(sent.iter().sum::<u64>(), 3_000);
        sent
    };
    assert_eq!(shares(RequestOrder::Turns, 1), [1_500, 300, 1_200]);
    // Each worker takes whole rounds of its own, but for the last.
    let expected = [1_500, 300, 1_200];
    let of_three = shares(RequestOrder::Turns, 3);
    let near = |most: u64| move |(sent, share): (&u64, u64)| sent.abs_diff(share) <= most;
    assert!(of_three.iter().zip(expected).all(near(3)), "{of_three:?}");
    // Five standard deviations.
    let random = shares(RequestOrder::Random { seed: 4 }, 2);
    assert!(random.iter().zip(expected).all(near(137)), "{random:?}");
}

#[test]
fn a_server_with_one_place_gives_one_reply_per_service_time() {
    for connections in [1, 2, 50] {
        let mut settings = textbook(MS);
        settings.network_ns = 0;
        settings.server.concurrency = Some(many(1));
        let (run, _) = run(closed(connections, 1), &settings);
        expect_valid(&run, "one place");
        let replies = run.summary().window.replies.successes();
        assert!(replies.abs_diff(1_000) <= 1, "{connections}: {replies}");
        // Little's law: each waits until all others were served.
        let max_ns = u64::from(connections) * MS;
        assert_eq!(run.latencies.response.max_ns(), Some(max_ns));
    }
}

#[test]
fn users_that_think_do_not_move_in_lockstep() {
    const USERS: u32 = 1_000;
    // Each sends once per second, as often as in lockstep.
    let replies_of_all = 10_000;
    for spread in [
        ThinkSpread::Fixed,
        ThinkSpread::Uniform,
        ThinkSpread::Exponential,
    ] {
        for (workers, reuse) in [(1, Reuse::Unlimited), (3, Reuse::Requests(many_long(1)))] {
            let mut plan = closed(USERS, 1);
            plan.workers.count = many(workers);
            plan.traffic.reuse = reuse;
            plan.traffic.think_time_ns = S;
            plan.traffic.think_spread = spread;
            plan.traffic.think_seed = 17;
            plan.load.warmup_ns = S;
            plan.load.stop.duration_ns = Some(10 * S);
            let mut settings = textbook(200 * US);
            settings.network_ns = 0;
            settings.server.concurrency = Some(many(1));
            let (run, _) = run(plan, &settings);
            expect_valid(&run, spread.name());
            let replies = run.summary().window.replies.successes();
            assert!(
                u64::abs_diff(replies, replies_of_all) < 500,
                "{spread:?}, {workers} workers: {replies}"
            );
            // One place that is in use for 20 % of the time: all at once would wait for 100 ms.
            let p50_ns = run.latencies.response.quantile_ns(0.5).expect("many");
            assert!(
                p50_ns < MS,
                "{spread:?}, {workers} workers: p50 {p50_ns} ns"
            );
            assert_eq!(run.plan.traffic.think_spread, spread);
            assert_eq!(run.agents[0].seeds.think, Some(17));
        }
    }
}

#[test]
fn the_cost_of_work_is_part_of_every_latency() {
    let mut settings = textbook(800 * US);
    settings.costs = Costs::default();
    let (run, _) = run(closed(1, 1), &settings);
    expect_valid(&run, "costs");
    let response = &run.latencies.response;
    assert_eq!(response.min_ns(), response.max_ns());
    let latency_ns = response.min_ns().expect("latencies");
    let expected_ns = MS + US..MS + 10 * US;
    assert!(expected_ns.contains(&latency_ns), "{latency_ns}");
    // A closed loop sends when it receives: the rate is the inverse of the latency.
    let replies = run.summary().window.replies.successes();
    assert!(replies.abs_diff(S / latency_ns) <= 1, "{replies}");
}

/// First requests that take longer than the warm-up: 4,000 of them, half a millisecond each, and
/// replies that come meanwhile.
#[test]
fn a_window_may_begin_before_the_last_first_request() {
    let mut plan = closed(4_000, 1);
    plan.load.warmup_ns = 500 * MS;
    plan.load.stop.duration_ns = Some(4 * S);
    let mut settings = textbook(S);
    settings.costs.send_ns = 500 * US;
    let (mut run, _) = run(plan, &settings);
    expect_valid(&run, "first requests");
    assert_eq!(run.agents[0].workers[0].pauses, []);
    let waited = run.summary().live.not_begun_ns as f64 / run.window_ns as f64;
    assert!((400.0..2_500.0).contains(&waited), "{waited}");
    // Replies were read while they were sent.
    let points = &run.agents[0].workers[0].series.points;
    assert!(
        points[..points.len() / 2]
            .iter()
            .any(|point| point.successes > 0)
    );
    // Without that knowledge connections would seem to be lost.
    run.agents[0].workers[0].live.not_begun_ns = 0;
    assert_eq!(status(&run, "I1"), InvariantStatus::Broken);
}

/// More time-outs at once than one turn sees to are no pause of the worker.
#[test]
fn deadlines_that_wait_for_their_turn_are_no_pause() {
    let mut plan = closed(6_000, 1);
    plan.limits.timeout_ns = S;
    plan.load.stop.duration_ns = Some(2 * S);
    let mut settings = textbook(10 * S);
    settings.costs.open_ns = 50 * US;
    let (run, _) = run(plan, &settings);
    assert!(run.summary().window.failures.iter().next().is_some());
    assert_eq!(run.agents[0].workers[0].pauses, []);
}

#[test]
fn pipelined_requests_share_the_round_trip() {
    // One request after the other is served while the others are on their way.
    let (run, counts) = run(closed(1, 4), &textbook(MS));
    expect_valid(&run, "pipelined");
    let replies = run.summary().window.replies.successes();
    assert!(replies.abs_diff(1_000) <= 4, "{replies}");
    assert_eq!(counts.replies_delivered, lifetime(&run).replies.total());
}

#[test]
fn late_wake_ups_raise_latencies_by_the_delay() {
    let mut settings = textbook(800 * US);
    settings.late_wake_ups = Some(LateWakeUps {
        probability: 0.1,
        delay_ns: 3 * MS,
    });
    let (run, counts) = run(closed(1, 1), &settings);
    expect_valid(&run, "late");
    assert_eq!(run.latencies.response.min_ns(), Some(MS));
    assert_eq!(run.latencies.response.max_ns(), Some(4 * MS));
    assert!(counts.late_wake_ups > 50, "{}", counts.late_wake_ups);
}

#[test]
fn an_hour_of_load_is_a_unit_test() {
    let mut plan = closed(10, 1);
    plan.workers.count = many(2);
    plan.load.warmup_ns = 10 * S;
    plan.load.stop.duration_ns = Some(3_600 * S);
    let (run, counts) = run(plan, &textbook(99_800 * US));
    expect_valid(&run, "an hour");
    assert_eq!(run.window_ns, 3_600 * S);
    let replies = run.summary().window.replies.successes();
    assert!(replies.abs_diff(360_000) <= 10, "{replies}");
    assert_eq!(run.latencies.response.max_ns(), Some(100 * MS));
    assert_eq!(counts.requests, lifetime(&run).requests_sent);
}

#[test]
fn a_run_by_count_without_a_connection_gives_up() {
    let mut plan = plan();
    plan.limits.connect_timeout_ns = 10 * MS;
    plan.load.stop.requests = Some(10);
    plan.load.stop.duration_ns = None;
    plan.limits.timeout_ns = 50 * MS;
    let mut settings = SimSettings::new(1);
    // It goes away in the warm-up, for ever.
    settings.server.outage = Some(Outage {
        from_ns: 40 * MS,
        until_ns: u64::MAX,
    });
    let (run, counts) = run(plan, &settings);
    assert_eq!(run.summary().unsent, 10);
    assert_eq!(counts.connections_accepted, 4);
    assert_eq!(status(&run, "L1"), InvariantStatus::Flagged);
    expect_valid(&run, "no connection");
}

/// What the experiment within the warm-up shows of a server, as its signal says it.
fn elasticity_of(mut plan: Plan, settings: &SimSettings) -> (Grade, String) {
    plan.load.warmup_ns = S;
    plan.load.stop.duration_ns = Some(S);
    let (run, _) = run(plan, settings);
    expect_valid(&run, "halved");
    let judgement = run.judge();
    let mut signals = judgement.signals.into_iter();
    let signal = signals.find(|signal| signal.id == SignalId::Elasticity);
    let signal = signal.expect("the signal is always there");
    (signal.grade, signal.detail)
}

#[test]
fn half_of_the_connections_in_the_warm_up_show_what_they_give() {
    // (places at the server, connections, what follows)
    for (places, connections, grade) in [
        (None, 64, Grade::Fail),
        (Some(many(4)), 64, Grade::Healthy),
        (Some(many(30)), 64, Grade::Healthy),
        // Neither: half of the connections do not fill it, and all of them more than do.
        (Some(many(45)), 64, Grade::Warn),
        (Some(many(1)), 2, Grade::Healthy),
    ] {
        let settings = at_the_door(|server| {
            server.service = ServiceTime::Exponential { mean_ns: 5 * MS };
            server.concurrency = places;
        });
        let (found, detail) = elasticity_of(closed(connections, 1), &settings);
        let found = if detail.contains("in the warm-up") {
            found
        } else {
            Grade::Unknown
        };
        assert_eq!(found, grade, "{places:?} {connections}: {detail}");
    }
}

#[test]
fn replies_slower_than_the_stretches_say_nothing_of_halves() {
    let settings = at_the_door(|server| server.service = ServiceTime::Constant(200 * MS));
    let (grade, detail) = elasticity_of(plan(), &settings);
    assert_eq!(grade, Grade::Unknown, "{detail}");
}

#[test]
fn connections_that_paused_go_on() {
    let mut plan = closed(7, 1);
    plan.workers.count = many(2);
    plan.load.warmup_ns = S;
    plan.load.halves_warmup = true;
    let (halved, counts) = run(plan.clone(), &textbook(800 * US));
    expect_valid(&halved, "halved");
    assert_eq!(halved.summary().window.replies.successes(), 7_000);
    plan.load.halves_warmup = false;
    let (whole, counts_of_whole) = run(plan, &textbook(800 * US));
    assert!(whole.workers().all(|worker| worker.halving.is_none()));
    // 3 of 7 connections paused for 30 of 50 parts of a second.
    let fewer = counts_of_whole.requests - counts.requests;
    assert!(fewer.abs_diff(1_800) < 20, "{fewer} requests fewer");
}
