//! The simulated machine and server: read as exactly as they are simulated.

use brunt_judge::RunFigures;
use brunt_record::{CpuTimes, Run, ServerEvidence};
use brunt_testkit::{Limiter, ServiceTime, SimHost, SimSettings, Taken};

use super::{at_the_door, closed, even_rate, faithful, open_loop, plan, run, textbook};
use crate::common::{MS, S, US, expect_valid, lifetime, many, many_long, simulate};

/// Everything else is read.
fn watched(settings: SimSettings, steal: Option<Taken>, contention: Option<Taken>) -> SimSettings {
    SimSettings {
        host: Some(SimHost {
            steal,
            contention,
            bursts: None,
        }),
        ..settings
    }
}

fn taken(part_ns: u64, period_ns: u64) -> Option<Taken> {
    let period_ns = many_long(period_ns);
    Some(Taken { part_ns, period_ns })
}

fn cpu(run: &Run, worker: usize) -> CpuTimes {
    run.agents[0].evidence.host.cpus[worker]
}

fn server_of(run: &Run) -> &ServerEvidence {
    let server = run.agents[0].evidence.server.as_ref();
    server.expect("it has a limit")
}

#[test]
fn without_a_machine_nothing_is_read() {
    let (run, _) = run(plan(), &textbook(MS));
    let evidence = &run.agents[0].evidence;
    assert_eq!(evidence.interval_ns, 0);
    assert!(evidence.server.is_none() && evidence.host.cpus.is_empty());
    let missing = evidence.missing.iter();
    let missing: Vec<_> = missing.map(|(field, why)| (&**field, &**why)).collect();
    let nothing = "simulation: nothing of a machine was read";
    let network = "simulation: there is no network interface";
    let expected = [("host", nothing), ("network", network), ("server", nothing)];
    assert_eq!(missing, expected);
    assert!(run.workers().all(|worker| worker.thread.is_none()));
}

#[test]
fn work_is_cpu_time() {
    let mut plan = open_loop(even_rate(1_000.0), 10, 5 * S);
    plan.workers.count = many(2);
    let mut settings = watched(textbook(MS), None, None);
    settings.costs.send_ns = 52 * US;
    let (run, _) = simulate(plan, &settings).expect("a run");
    expect_valid(&run, "work");
    assert_eq!(run.agents[0].evidence.interval_ns, 5 * S);
    for worker in [0, 1] {
        let thread = run.agents[0].workers[worker].thread.expect("it is read");
        assert_eq!(thread.cpu_user_ns, 2_500 * 52 * US);
        assert_eq!(thread.run_queue_wait_ns, Some(0));
        assert_eq!(thread.involuntary_switches, 0);
        assert_eq!(cpu(&run, worker).busy_ns, thread.cpu_user_ns);
        let of_worker = &run.agents[0].workers[worker];
        assert_eq!(of_worker.cpu_user_ns, thread.cpu_user_ns);
    }
}

#[test]
fn who_sleeps_loses_nothing_and_who_is_woken_waits() {
    // One request at a time, and each wake-up is for one.
    let plan = open_loop(even_rate(29.7), 2, 20 * S);
    let part = taken(4 * MS, 10 * MS);
    for (steal, contention) in [(part, None), (None, part)] {
        let settings = watched(textbook(MS), steal, contention);
        let (run, _) = faithful(&plan, &settings, "taken");
        let thread = run.agents[0].workers[0].thread.expect("it is read");
        let queued_ns = thread.run_queue_wait_ns.expect("it is read");
        let lost_ns = if steal.is_some() {
            assert_eq!(queued_ns, 0);
            cpu(&run, 0).steal_ns
        } else {
            assert_eq!(cpu(&run, 0).steal_ns, 0);
            // The other process ran whenever it had the CPU.
            assert!(cpu(&run, 0).busy_ns.abs_diff(8 * S) <= 4 * MS);
            queued_ns
        };
        // Asleep whenever the CPU was taken.
        assert_eq!(thread.involuntary_switches, 0);
        // And all of it is time by which brunt was late.
        let own = &run.latencies.split.own;
        assert_eq!(own.count(), 594);
        assert!(lost_ns > 200 * MS && lost_ns.abs_diff(own.sum_ns()) <= 4 * MS);
        assert!(own.max_ns() <= Some(4 * MS));
    }
}

#[test]
fn a_busy_worker_loses_all_that_is_taken() {
    let mut plan = closed(64, 1);
    plan.load.stop.duration_ns = Some(2 * S);
    // It has always something to do.
    let mut settings = at_the_door(|server| server.service = ServiceTime::Constant(10 * US));
    settings.costs.send_ns = 20 * US;
    settings.network_ns = US;
    let (free, _) = faithful(&plan, &watched(settings.clone(), None, None), "free");
    let of_rate = |run: &Run| {
        run.summary().window.replies.successes() as f64
            / free.summary().window.replies.successes() as f64
    };
    assert!(cpu(&free, 0).idle_ns < 10 * MS, "{:?}", cpu(&free, 0));
    let steal = taken(2 * MS, 20 * MS);
    let (stolen, _) = faithful(&plan, &watched(settings.clone(), steal, None), "steal");
    assert!(cpu(&stolen, 0).steal_ns.abs_diff(200 * MS) <= 2 * MS);
    assert!((of_rate(&stolen) - 0.9).abs() < 0.01);
    let contention = taken(3 * MS, 10 * MS);
    let (shared, _) = faithful(&plan, &watched(settings, None, contention), "contention");
    let thread = shared.agents[0].workers[0].thread.expect("it is read");
    let queued_ns = thread.run_queue_wait_ns.expect("it is read");
    assert!(queued_ns.abs_diff(600 * MS) <= 3 * MS, "{queued_ns}");
    assert!(thread.involuntary_switches.abs_diff(200) <= 1);
    assert!((of_rate(&shared) - 0.7).abs() < 0.01);
    // CPUs do not do nothing while they are taken.
    assert!(cpu(&shared, 0).idle_ns < 10 * MS, "{:?}", cpu(&shared, 0));
}

#[test]
fn a_server_is_busy_while_it_serves() {
    // (places, arrivals per second, workers)
    for (places, rate_per_s, workers) in [(1, 500.0, 1), (4, 500.0, 1), (2, 3_000.0, 2)] {
        let mut plan = open_loop(even_rate(rate_per_s), 100, 2 * S);
        plan.workers.count = many(workers);
        let mut settings = watched(textbook(MS), None, None);
        settings.server.concurrency = Some(many(places));
        settings.server.delay_ns = 7 * MS;
        let (run, _) = faithful(&plan, &settings, "a server");
        let server = server_of(&run);
        assert_eq!(server.cpus, Some(f64::from(places * workers)));
        assert_eq!(server.interval_ns, 2 * S);
        let used = server.cpus_used().expect("an interval");
        assert!((used - rate_per_s / 1_000.0).abs() < 0.01, "{used}");
        // It takes a place for 1 ms, and 8 ms until the answer.
        assert_eq!(run.latencies.response.min_ns(), Some(8 * MS + 200 * US));
    }
    let settings = watched(textbook(MS), None, None);
    let (run, _) = faithful(&open_loop(even_rate(10.0), 2, S), &settings, "no limit");
    assert!(run.agents[0].evidence.server.is_none());
    assert!(run.agents[0].evidence.missing.contains_key("server"));
}

#[test]
fn accounts_of_a_run_by_count_end_with_it() {
    let mut plan = plan();
    plan.load.stop.duration_ns = None;
    plan.load.stop.requests = Some(1_000);
    let mut settings = watched(textbook(MS), None, None);
    settings.server.concurrency = Some(many(1));
    let (run, _) = faithful(&plan, &settings, "by count");
    let length_ns = run.window_ns;
    assert!(run.agents[0].evidence.interval_ns.abs_diff(length_ns) <= MS);
    let server = server_of(&run);
    assert!(server.cpus_used().expect("an interval") > 0.99);
}

#[test]
fn a_limiter_admits_its_rate_and_says_when_to_come_again() {
    let mut plan = closed(50, 1);
    plan.load.stop.duration_ns = Some(5 * S);
    let mut settings = textbook(MS);
    settings.server.limiter = Some(Limiter {
        every_ns: many_long(MS),
        burst: many(10),
        refusal_ns: 5 * MS,
    });
    let (run, counts) = faithful(&plan, &settings, "a limiter");
    let window = &run.summary().window;
    assert!(window.replies.successes().abs_diff(5_000) <= 10);
    assert_eq!(window.retry_afters, window.replies.errors());
    assert!(window.retry_afters > 10_000, "{}", window.retry_afters);
    let all = lifetime(&run);
    let limited = all.replies.iter().filter(|&(status, _)| status == 429);
    let limited: u64 = limited.map(|(_, count)| count).sum();
    assert_eq!(all.retry_afters, limited);
    assert!(counts.replies_limited >= all.retry_afters);
    // Below its rate nobody is refused.
    let (run, _) = faithful(&open_loop(even_rate(999.0), 50, 5 * S), &settings, "below");
    assert_eq!(lifetime(&run).retry_afters, 0);
}

#[test]
fn a_server_that_drifts_becomes_slower_as_computed() {
    let mut plan = closed(1, 1);
    plan.load.warmup_ns = 0;
    plan.load.stop.duration_ns = Some(10 * S);
    let mut settings = textbook(MS);
    settings.network_ns = 0;
    settings.server.drift_per_s = 0.1;
    let (run, _) = faithful(&plan, &settings, "drift");
    // Twice as slow after 10 s: the integral of 1,000 / (1 + t / 10) over 10 s.
    let replies = run.summary().window.replies.successes() as f64;
    assert!(
        (replies / (10_000.0 * 2.0_f64.ln()) - 1.0).abs() < 0.01,
        "{replies}"
    );
    let response = &run.latencies.response;
    assert!(response.min_ns() < Some(1_010 * US) && response.max_ns() > Some(1_990 * US));
}
