//! Merging as a property, its refusals, and what invariants and verdict make of several agents.

use brunt_load::{
    ArrivalProcess, HttpChoice, LoadModel, RequestSet, RequestSpec, Schedule, Stage, Stamps,
};
use brunt_record::{
    AgentRecord, AgreedClock, FleetAgent, LostAgent, MergeError, NameRecord, Once, Protocol, Run,
    ServerCount,
};
use proptest::prelude::*;

use crate::invariants::sample::{
    MS, deal, http2_run, nonzero, open_run, replaced_after, run, schedule_of, sessions_run,
    set_stages, steady_run, with_counts,
};
use crate::invariants::{INVARIANTS, Scope};
use crate::{Figure, Grade, InvariantStatus, Judged, RunFigures, Summary, Verdict, check};

/// `run` as the run of the agent `id`.
fn as_agent(mut run: Run, id: &str) -> Run {
    id.clone_into(&mut run.agents[0].id);
    run
}

/// How this invariant stands, and the words for it.
fn finding(run: &Run, id: &str) -> (InvariantStatus, String) {
    let findings = check(run);
    let found = findings.into_iter().find(|finding| finding.id == id);
    let found = found.expect("it is checked");
    (found.status, found.detail)
}

/// Gives each agent of the run one of these clocks of a fleet.
fn in_fleet(run: &mut Run, clocks: [AgreedClock; 2]) {
    for (agent, clock) in run.agents.iter_mut().zip(clocks) {
        agent.fleet = Some(FleetAgent {
            clock: Some(clock),
            ..FleetAgent::default()
        });
    }
}

/// This invariant is broken, as these words say.
#[track_caller]
fn is_broken(run: &Run, id: &str, words: &str) {
    let (status, detail) = finding(run, id);
    assert_eq!(status, InvariantStatus::Broken, "{id}: {detail}");
    assert!(detail.contains(words), "{id}: {detail}");
}

/// Two agents that ran at once.
fn pair(of: fn() -> Run) -> Run {
    Run::merge(vec![as_agent(of(), "a"), as_agent(of(), "b")]).expect("runs of one plan")
}

/// Two agents, the second of which ran `later_ms` milliseconds after the first.
fn apart(of: fn() -> Run, later_ms: u64) -> Run {
    let mut second = as_agent(of(), "b");
    second.agents[0].clock.window_start_unix_ms += later_ms;
    Run::merge(vec![as_agent(of(), "a"), second]).expect("runs of one plan")
}

/// How one of several agents differs from the others.
#[derive(Clone, Debug)]
struct Part {
    later_ms: u64,
    connections: u32,
    rate_per_s: f64,
    responses_ns: Vec<u64>,
    sent: u64,
}

fn part() -> impl Strategy<Value = Part> {
    let responses = prop::collection::vec(1_u64..10_000_000_000, 0..20);
    (0_u64..3, 1_u32..100, 0.1_f64..1e6, responses, any::<u32>()).prop_map(
        |(later_ms, connections, rate_per_s, responses_ns, sent)| Part {
            later_ms,
            connections,
            rate_per_s,
            responses_ns,
            sent: sent.into(),
        },
    )
}

/// Runs of one plan, which need not be sound in themselves.
fn runs() -> impl Strategy<Value = Vec<Run>> {
    (0_usize..5, prop::collection::vec(part(), 1..6)).prop_map(|(which, parts)| {
        let kinds = [run, open_run, sessions_run, http2_run, steady_run];
        let made = parts.into_iter().enumerate();
        made.map(|(number, part)| made_of(kinds[which](), number, &part))
            .collect()
    })
}

fn made_of(mut run: Run, number: usize, part: &Part) -> Run {
    run.plan.load.connections = nonzero(part.connections);
    if run.plan.load.model.schedule().is_some() {
        let schedule = schedule_of(&mut run);
        let process = schedule.process();
        *schedule = Schedule::constant_rate(process, part.rate_per_s, 7).expect("a rate");
    }
    run.names = vec![NameRecord::named("/")];
    for &ns in &part.responses_ns {
        run.latencies.response.record(ns);
        run.names[0].response.record(ns);
    }
    run.names[0].requests_sent = part.sent;
    let agent = &mut run.agents[0];
    agent.id = format!("{number:032x}");
    agent.clock.window_start_unix_ms += part.later_ms;
    agent.workers[0].tallies.measure.requests_sent += part.sent;
    deal(&mut run);
    run
}

fn merged(runs: &[Run]) -> Run {
    Run::merge(runs.to_vec()).expect("runs of one plan")
}

proptest! {
    // A case merges up to six runs several times: more of them take half a minute.
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn order_and_grouping_do_not_matter(
        runs in runs(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 6),
        cut in any::<prop::sample::Index>(),
    ) {
        let whole = merged(&runs);
        let mut left = runs.clone();
        let mut shuffled = Vec::new();
        for place in order {
            if !left.is_empty() {
                shuffled.push(left.remove(place.index(left.len())));
            }
        }
        shuffled.extend(left);
        prop_assert_eq!(&merged(&shuffled), &whole);
        let (first, second) = shuffled.split_at(cut.index(shuffled.len()));
        if !first.is_empty() {
            let grouped = [merged(first), merged(second)];
            prop_assert_eq!(&merged(&grouped), &whole);
        }
        // One after the other.
        let one_by_one = shuffled.iter().cloned().reduce(|sum, run| merged(&[sum, run]));
        prop_assert_eq!(one_by_one.as_ref(), Some(&whole));
        prop_assert_eq!(whole.check_sound(), Ok(()));
    }

    #[test]
    fn nothing_is_lost_or_counted_twice(runs in runs()) {
        let whole = merged(&runs);
        let sum = |count: &dyn Fn(&Run) -> u64| runs.iter().map(count).sum::<u64>();
        let counts: [&dyn Fn(&Run) -> u64; 9] = [
            &|run| run.latencies.response.count(),
            &|run| run.latencies.connect.count(),
            &|run| run.latencies.intervals.count(),
            &|run| run.names[0].response.count(),
            &|run| run.names[0].requests_sent,
            &|run| run.summary().window.requests_sent,
            &|run| run.summary().series.points.iter().map(|point| point.successes).sum(),
            &|run| run.plan.load.connections.get().into(),
            &|run| run.workers().count() as u64,
        ];
        for count in counts {
            prop_assert_eq!(count(&whole), sum(count));
        }
        prop_assert_eq!(whole.agents.len(), runs.len());
        for ns in [1_000, 1_000_000, 5_000_000_000] {
            let up_to = |run: &Run| run.latencies.response.buckets().count_between(0, ns);
            prop_assert_eq!(up_to(&whole), runs.iter().map(up_to).sum::<u64>());
        }
        // No agent can come in again.
        for run in runs {
            let again = Run::merge(vec![whole.clone(), run]);
            let refusal = MergeError::SameAgent { first: 0, second: 1 };
            prop_assert_eq!(again, Err(refusal));
        }
    }
}

#[test]
fn what_cannot_be_merged_is_refused_by_name() {
    fn refused(what: &str, edit: fn(&mut Run)) {
        let (first, mut second) = (as_agent(open_run(), "a"), as_agent(open_run(), "b"));
        edit(&mut second);
        deal(&mut second);
        for runs in [[first.clone(), second.clone()], [second, first]] {
            match Run::merge(runs.into()) {
                Err(MergeError::Differs {
                    field,
                    first: 0,
                    second: 1,
                    first_value,
                    second_value,
                }) => {
                    assert_eq!(field, what);
                    assert_ne!(first_value, second_value, "{what}");
                }
                other => panic!("{what}: {:?}", other.map(drop)),
            }
        }
    }
    refused("plan.target.url", |run| run.plan.target.url.push('x'));
    refused("plan.limits.timeout_ns", |run| {
        run.plan.limits.timeout_ns += 1
    });
    refused("plan.observation.stamps", |run| {
        run.plan.observation.stamps = Stamps::Off
    });
    refused("plan.connection.protocol.http", |run| {
        run.plan.connection.protocol = HttpChoice::HTTP2.into()
    });
    refused("plan.traffic.requests.requests.method", |run| {
        let mut first = RequestSpec::get("/");
        first.method = "PUT".to_owned();
        run.plan.traffic.requests = RequestSet::one(first);
    });
    refused("plan.traffic.reuse", |run| {
        run.plan.traffic.reuse = replaced_after(3)
    });
    refused("plan.load.stop.duration_ns", |run| {
        run.plan.load.stop.duration_ns = Some(1)
    });
    refused("plan.load.stop.requests", |run| {
        run.plan.load.stop.requests = Some(1)
    });
    refused("plan.load.model", |run| {
        run.plan.load.model = LoadModel::Closed {
            connect_per_s: None,
        };
    });
    refused("plan.load.model.open.schedule.process", |run| {
        let poisson = Schedule::constant_rate(ArrivalProcess::Poisson, 2_000.0, 7);
        *schedule_of(run) = poisson.expect("a rate");
    });
    refused("plan.load.model.open.schedule.rate_per_s", |run| {
        let stage = Stage {
            duration_ns: 1,
            from_per_s: 1.0,
            to_per_s: 1.0,
        };
        set_stages(run, vec![stage]);
    });
    refused("the length of the window", |run| run.window_ns -= 1);
    refused("the protocol", |run| {
        run.agents[0].negotiated.protocol = Protocol::HTTP2
    });
    refused("requests in flight per connection", |run| {
        run.agents[0].negotiated.depth = 7
    });
    refused("the version of brunt", |run| run.brunt_version.push('x'));
    assert_eq!(Run::merge(Vec::new()), Err(MergeError::Nothing));
    let mut unsound = as_agent(run(), "b");
    unsound.plan.load.connections = nonzero(9);
    let error = Run::merge(vec![as_agent(run(), "a"), unsound]).map(drop);
    let reason = "the shares of its agents do not make the amounts of its plan".to_owned();
    assert_eq!(error, Err(MergeError::Unsound { run: 1, reason }));
}

#[test]
fn lists_with_other_requests_are_not_merged() {
    let with_names = |id: &str, names: &[&str]| {
        let mut run = as_agent(run(), id);
        run.names = names.iter().map(|&name| NameRecord::named(name)).collect();
        run
    };
    for (others, value) in [
        (&["/a", "/c"][..], "`/c`"),
        (&["/a"], "nothing"),
        (&["/b", "/a"], "`/b`"),
    ] {
        let runs = vec![with_names("a", &["/a", "/b"]), with_names("b", others)];
        match Run::merge(runs) {
            Err(MergeError::Differs { second_value, .. }) => assert_eq!(second_value, value),
            other => panic!("{others:?}: {:?}", other.map(drop)),
        }
    }
}

#[test]
fn sound_agents_make_a_sound_run() {
    for (what, of) in [
        ("closed", run as fn() -> Run),
        ("open", open_run),
        ("sessions", sessions_run),
        ("HTTP/2", http2_run),
    ] {
        for later_ms in [0, 100, 60_000] {
            let (alone, both) = (check(&of()), check(&apart(of, later_ms)));
            for (alone, both) in alone.iter().zip(&both) {
                assert_eq!(both.status, alone.status, "{what}, {later_ms}: {both:?}");
            }
        }
    }
}

/// What is of one agent is looked at for each, and the one that broke it is named.
#[test]
fn what_one_agent_breaks_is_broken() {
    type Fault = fn(&mut AgentRecord);
    let faults: [(&str, Fault); 11] = [
        ("W1", |agent| agent.workers[0].edges.started = Once::at(0)),
        ("W2", |agent| agent.clock.edges.measure_start = Once::at(1)),
        ("W4", |agent| {
            agent.workers[0].edges.window_end = Once::at(1_000_000_000)
        }),
        ("W6", |agent| agent.workers[0].population.recorded += 1),
        ("W7", |agent| agent.clock.process_ns += 1_000 * MS),
        ("W8", |agent| {
            agent.clock.edges.drain_end = Once::at(60_000_000_000)
        }),
        ("L1", |agent| agent.workers[0].live.connection_ns /= 2),
        ("I7", |agent| agent.host.cpu_user_ns = 1 << 60),
        ("R1", |agent| agent.host.peak_resident_bytes = 1 << 60),
        ("R2", |agent| agent.host.usable_cpus = 1),
        ("R3", |agent| agent.limits.descriptors_limit = 0),
    ];
    for (id, fault) in faults {
        let mut run = pair(run);
        fault(&mut run.agents[1]);
        is_broken(&run, id, "agent 2");
        let (_, detail) = finding(&run, id);
        assert!(!detail.contains("agent 1"), "{id}: {detail}");
    }
    let of_agents = INVARIANTS.iter().filter(|row| row.1 == Scope::Agent);
    let known = of_agents.clone().filter(|(known, ..)| {
        let is_broken = faults.iter().any(|(id, _)| id == known);
        // The way to the server is not known in these runs.
        is_broken || *known == "I6"
    });
    assert_eq!(known.count(), of_agents.count());
}

/// Each agent's reading of the server's counter holds what the others sent.
#[test]
fn the_servers_count_is_over_all_agents() {
    let counted = |path: &str, before: u64, after: u64| {
        Some(ServerCount {
            url: "http://127.0.0.1/counters".to_owned(),
            path: path.to_owned(),
            before,
            after,
            own_reads: 2,
        })
    };
    let status = |run: &Run| finding(run, "I8").0;
    let mut run = pair(run);
    let sent = run.summary().lifetime.requests_sent;
    run.agents[0].evidence.server_count = counted("requests", 100, 100 + sent / 2);
    run.agents[1].evidence.server_count = counted("requests", 110, 100 + sent);
    assert_eq!(status(&run), InvariantStatus::Held);
    run.agents[1].evidence.server_count = counted("requests", 110, 100 + sent / 2);
    assert_eq!(status(&run), InvariantStatus::Broken);
    run.agents[1].evidence.server_count = counted("others", 110, 100 + sent);
    assert_eq!(status(&run), InvariantStatus::NotApplicable);
    run.agents[1].evidence.server_count = None;
    assert_eq!(status(&run), InvariantStatus::NotApplicable);
}

/// Two agents with two of the plan's `workers` each.
fn parts(workers: u32) -> Vec<Run> {
    let mut whole = run().plan.amounts();
    let share = whole.clone();
    while whole.workers < workers {
        whole.add(&share);
    }
    [("a", 0), ("b", 2)]
        .map(|(id, first)| {
            let mut run = as_agent(run(), id);
            run.part_of = Some(whole.clone());
            for (worker, number) in run.agents[0].workers.iter_mut().zip(first..) {
                worker.worker = number;
            }
            run
        })
        .into()
}

#[test]
fn parts_are_all_there_or_the_missing_ones_are_named() {
    let of_fleet = |run: &Run| finding(run, "F2");
    let whole = merged(&parts(4));
    assert_eq!((whole.check_sound(), &whole.part_of), (Ok(()), &None));
    assert_eq!(whole.plan.workers.count, nonzero(4));
    assert_eq!(of_fleet(&whole).0, InvariantStatus::Held);
    let lacking = merged(&parts(6));
    assert_eq!(lacking.check_sound(), Ok(()));
    is_broken(&lacking, "F2", "4 of 6 workers are here, without 4, 5");
    assert!(!Judged::of(&lacking).is_valid());
    // By itself a part is sound, and so are agents with plans of their own.
    assert_eq!(of_fleet(&parts(4)[0]).0, InvariantStatus::NotApplicable);
    assert_eq!(of_fleet(&pair(run)).0, InvariantStatus::NotApplicable);
}

#[test]
fn an_agent_that_was_lost_is_named() {
    let lost = LostAgent {
        name: "north-7".to_owned(),
        first_worker: 2,
        workers: 2,
        reason: "was silent for 5.1 s".to_owned(),
        at_ns: 1,
    };
    // Of one agent that is left, too.
    let mut alone = parts(4).remove(0);
    alone.lost_agents = vec![lost.clone()];
    let mut twice = parts(6);
    twice
        .iter_mut()
        .for_each(|run| run.lost_agents = vec![lost.clone()]);
    let both = merged(&twice);
    assert_eq!(both.lost_agents, [lost]);
    for run in [alone, both] {
        let words = "agent north-7 was silent for 5.1 s (2 workers)";
        is_broken(&run, "F2", words);
        assert!(!Judged::of(&run).is_valid());
    }
}

#[test]
fn the_clocks_of_a_fleet_say_how_long_its_window_was() {
    use InvariantStatus::{Broken, Flagged, Held};
    let clock = |skew_ms: i64, bound_ms: u64| AgreedClock {
        start_skew_ns: skew_ms * MS as i64,
        start_bound_ns: bound_ms * MS,
        end_skew_ns: skew_ms * MS as i64,
        end_bound_ns: bound_ms * MS,
        ..AgreedClock::default()
    };
    for (first, second, share, status) in [
        (clock(0, 0), clock(0, 0), 1.0, Held),
        (clock(0, 4), clock(0, 0), 0.996, Held),
        (clock(0, 0), clock(15, 0), 0.9925, Flagged),
        (clock(-9, 2), clock(15, 0), 0.987, Broken),
        (clock(0, 0), clock(9_000, 0), 0.0, Broken),
    ] {
        // Labels of wall time say nothing where clocks were agreed on.
        let mut run = apart(run, 60_000);
        in_fleet(&mut run, [first, second]);
        let overlap = run.overlap().expect("two agents");
        assert!((overlap - share).abs() < 1e-9, "{overlap:?} {share}");
        let found = finding(&run, "F4");
        assert_eq!(found.0, status, "{found:?}");
        let fleet = run.agents[1].fleet.as_mut().expect("of a fleet");
        fleet.clock = None;
        "south-2".clone_into(&mut fleet.name);
        is_broken(&run, "F4", "south-2");
    }
}

#[test]
fn what_an_agent_broke_by_itself_is_named() {
    use InvariantStatus::{Held, NotApplicable};
    let mut run = merged(&parts(4));
    assert_eq!(finding(&run, "F5").0, NotApplicable);
    for (agent, name) in run.agents.iter_mut().zip(["east", "south"]) {
        agent.fleet = Some(FleetAgent {
            name: name.to_owned(),
            ..FleetAgent::default()
        });
    }
    assert_eq!(finding(&run, "F5").0, Held);
    let south = run.agents[1].fleet.as_mut().expect("of a fleet");
    south.broken = vec!["L2".to_owned(), "I1".to_owned()];
    is_broken(&run, "F5", "south is INVALID by itself (L2, I1 broken)");
    assert!(!Judged::of(&run).is_valid());
}

#[test]
fn a_part_has_workers_of_its_plan() {
    type Edit = fn(&mut Run);
    let edits: [Edit; 4] = [
        |run| run.agents[0].workers[1].worker = 0,
        |run| run.agents[0].workers[1].worker = 4,
        |run| run.part_of.as_mut().expect("a part").workers = 2,
        |run| drop(run.agents[0].workers.pop()),
    ];
    for (number, edit) in edits.into_iter().enumerate() {
        let mut part = parts(4).remove(0);
        assert_eq!(part.check_sound(), Ok(()));
        edit(&mut part);
        let words = "its workers are no part of the plan that it is said to be a part of";
        assert_eq!(part.check_sound(), Err(words.to_owned()), "{number}");
    }
}

#[test]
fn what_was_not_at_once_has_no_rate() {
    for (later_ms, share, is_one) in [
        (0, 1.0, true),
        (200, 0.9, true),
        (201, 0.8995, false),
        (2_000, 0.0, false),
        (3_600_000, 0.0, false),
    ] {
        let run = apart(run, later_ms);
        let overlap = run.overlap().expect("two agents");
        assert!((overlap - share).abs() < 1e-9, "{overlap:?}");
        assert_eq!(run.not_one_load().is_none(), is_one);
        let judged = Judged::of(&run);
        assert!(judged.is_valid(), "{:?}", judged.findings);
        let summary = &judged.summary;
        for figure in [
            &summary.successes_per_s,
            &summary.attempts_per_s,
            &summary.bytes_received_per_s,
            &summary.bytes_sent_per_s,
            &summary.live_mean,
            &summary.in_flight_mean,
        ] {
            assert_eq!(figure.known().is_some(), is_one, "{figure:?}");
        }
        let doubtful = judged.judgement.because.contains("not one load");
        assert_eq!(doubtful, !is_one, "{:?}", judged.judgement);
        if !is_one {
            assert_eq!(judged.judgement.verdict, Verdict::Inconclusive);
            assert!(judged.withheld().is_some());
        }
        // Counts and latencies are those of both, and each agent has a rate.
        assert_eq!(
            summary.window.replies.total(),
            2 * self::run().summary().window.replies.total()
        );
        for agent in run.agents.chunks(1) {
            assert!(matches!(
                Summary::of(&run, agent).successes_per_s,
                Figure::Known(_)
            ));
        }
    }
    assert_eq!(run().overlap(), None);
}

#[test]
fn a_signal_is_that_of_the_agent_where_it_is_worst() {
    let grade_of = |run: &Run, id: &str| {
        let mut signals = run.judge().signals.into_iter();
        let signal = signals.find(|signal| signal.id.to_string() == id);
        let signal = signal.unwrap_or_else(|| panic!("no {id}"));
        (signal.grade, signal.detail)
    };
    let mut run = pair(|| with_counts(run(), &[1_000; 20]));
    let thread = brunt_record::ThreadUse {
        interval_ns: 2_000 * MS,
        cpu_user_ns: 200 * MS,
        run_queue_wait_ns: Some(0),
        ..brunt_record::ThreadUse::default()
    };
    // Of one of them nothing is known: then nobody knows whether brunt had time.
    run.agents[0].workers[0].thread = Some(thread);
    let (grade, detail) = grade_of(&run, "worker_idle");
    assert_eq!(grade, Grade::Unknown, "{detail}");
    assert!(detail.starts_with("agent 2: "), "{detail}");
    run.agents[1].workers[0].thread = Some(thread);
    assert_eq!(
        grade_of(&run, "worker_idle"),
        (Grade::Healthy, "brunt idle 90 %".to_owned())
    );
    run.agents[1].workers[0].thread = Some(brunt_record::ThreadUse {
        cpu_user_ns: 1_999 * MS,
        ..thread
    });
    let (grade, detail) = grade_of(&run, "worker_idle");
    assert_eq!(grade, Grade::Fail);
    assert!(detail.starts_with("agent 2: brunt idle"), "{detail}");
    // What the server does is known as soon as one agent sees it.
    let (grade, _) = grade_of(&run, "accept_queue");
    assert_ne!(grade, Grade::Unknown);
}

#[test]
fn seeds_are_told_where_all_agents_have_the_same() {
    let mut run = pair(open_run);
    assert_eq!(run.seed(|seeds| seeds.arrivals), Some(7));
    run.agents[1].seeds.arrivals = Some(8);
    assert_eq!(run.seed(|seeds| seeds.arrivals), None);
}
