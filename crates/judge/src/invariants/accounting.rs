//! W5, W6 and W9: counts, bytes, requests and phases add up.

use brunt_record::{CarriedIn, Tally, TrialRecord, WorkerRecord, after_ns, counted};

use super::facts::{Facts, sum};
use super::outcome::{Outcome, Problems, percent};
use super::windows::WAKE_UP_NS;

/// How far the rate and the sum of the workers' rates may differ.
const RATES_DIFFER: f64 = 0.01;

/// W5. The series is counted on its own way through the recorder: its totals are the second book.
pub(super) fn workers_add_up(facts: &Facts<'_>) -> Outcome {
    let mut problems = Problems::default();
    for worker in facts.workers() {
        let (points, tally) = (&worker.series.points, &worker.tallies.measure);
        let failures = sum(tally.failures.iter().map(|(_, count)| count));
        let books = [
            (
                "successes",
                sum(points.iter().map(|p| p.successes)),
                tally.replies.successes().into(),
            ),
            (
                "error replies",
                sum(points.iter().map(|p| p.errors)),
                tally.replies.errors().into(),
            ),
            ("failures", sum(points.iter().map(|p| p.failures)), failures),
            (
                "bytes received",
                sum(points.iter().map(|p| p.bytes_received)),
                tally.bytes_received.into(),
            ),
        ];
        for (words, series, counted) in books {
            problems.expect(series == counted, || {
                format!(
                    "worker {}: {counted} {words}, over time {series}",
                    facts.number(worker)
                )
            });
        }
    }
    if facts.no_window() {
        return problems
            .broken()
            .unwrap_or_else(|| Outcome::not_applicable("there is no window"));
    }
    let (mut sum_of_rates, mut shortest_ns) = (0.0, facts.window_ns());
    for worker in facts.workers() {
        // A worker without a window of its own is W4's finding.
        if let (Some(start_ns), Some(end_ns)) = (
            worker.edges.window_start.get(),
            worker.edges.window_end.get(),
        ) {
            let own_ns = after_ns(start_ns, end_ns).max(1);
            sum_of_rates += worker.tallies.measure.replies.total() as f64 * 1e9 / own_ns as f64;
            shortest_ns = shortest_ns.min(own_ns);
        }
    }
    let replies = facts.summary.window.replies.total();
    let rate = replies as f64 * 1e9 / facts.window_ns() as f64;
    let off = if replies == 0 {
        0.0
    } else {
        (sum_of_rates / rate - 1.0).abs()
    };
    // A late wake-up shortens a worker's own window without taking a reply from it.
    let tolerance = RATES_DIFFER.max(WAKE_UP_NS as f64 / shortest_ns as f64);
    let words = format!(
        "{} in the window: {rate:.1} per second; the workers' own rates make {sum_of_rates:.1} \
         ({} off)",
        counted(replies, "reply", "replies"),
        percent(off)
    );
    problems.expect(off <= tolerance, || words.clone());
    problems.or_held(words)
}

/// W6.
pub(super) fn every_request_accounted(facts: &Facts<'_>) -> Outcome {
    let mut problems = Problems::default();
    for worker in facts.workers() {
        account(facts, worker, &mut problems);
    }
    let all = &facts.summary.population;
    let ended = sum([all.recorded, all.failed, all.censored]);
    problems.expect(ended == u128::from(all.issued), || {
        format!("all workers: {} issued, {ended} accounted for", all.issued)
    });
    // Only a run that went on until its count was reached must have reached it.
    if let Some(asked) = facts.agent().share.requests
        && facts.ended_by_count()
    {
        let accounted = facts.accounted_of_count();
        problems.expect(accounted == asked, || {
            format!(
                "{} asked for, {} issued and {} given up or left over",
                counted(asked, "request", "requests"),
                all.issued,
                accounted - all.issued
            )
        });
    }
    let again = match facts.summary.round.sent_again {
        0 => String::new(),
        again => format!(" and {again} of them again"),
    };
    problems.or_held(format!(
        "{} issued = {} recorded + {} failed + {} censored; {} sent in all phases{again}, \
         {} in flight at the end{}",
        all.issued,
        all.recorded,
        all.failed,
        all.censored,
        facts.summary.round.requests_sent,
        facts.summary.in_flight_at_end,
        facts
            .summary
            .carried_in
            .map_or_else(String::new, |carried_in| {
                format!(
                    "; {} in flight when the window began = {} answered + {} failed in it + {} \
                 unanswered at its end",
                    carried_in.in_flight,
                    carried_in.answered,
                    carried_in.failed,
                    carried_in.unanswered
                )
            }),
    ))
}

fn account(facts: &Facts<'_>, worker: &WorkerRecord, problems: &mut Problems) {
    let number = facts.number(worker);
    let of_window = &worker.population;
    let ended = sum([of_window.recorded, of_window.failed, of_window.censored]);
    problems.expect(ended == u128::from(of_window.issued), || {
        format!(
            "worker {number}: {} issued in the window, but {} recorded, {} failed and {} censored",
            of_window.issued, of_window.recorded, of_window.failed, of_window.censored
        )
    });
    let lifetime = worker.tallies.lifetime();
    let (replies, failed) = (
        lifetime.replies.total(),
        lifetime
            .failures
            .of_requests(facts.run.plan.connects_only()),
    );
    let ended = sum([replies, failed, worker.in_flight_at_end]);
    problems.expect(ended == u128::from(lifetime.requests_sent), || {
        format!(
            "worker {number}: {} sent, but {replies} answered, {failed} failed and {} in flight",
            lifetime.requests_sent, worker.in_flight_at_end
        )
    });
    if let Some(carried_in) = &worker.carried_in {
        let CarriedIn {
            in_flight,
            answered,
            failed,
            unanswered,
            in_flight_ns: _,
        } = *carried_in;
        let before = &worker.tallies.before;
        let ended = sum([
            before.replies.total(),
            before.failures.of_requests(facts.run.plan.connects_only()),
        ]);
        let left = u128::from(before.requests_sent).checked_sub(ended);
        problems.expect(left == Some(in_flight.into()), || {
            format!(
                "worker {number}: {in_flight} in flight when the window began, but {} sent and \
                 {ended} ended before it",
                before.requests_sent
            )
        });
        let became = sum([answered, failed, unanswered]);
        problems.expect(became == u128::from(in_flight), || {
            format!(
                "worker {number}: {in_flight} in flight when the window began, but {answered} \
                 answered and {failed} failed in it, and {unanswered} left at its end"
            )
        });
    }
    let again = lifetime.sent_again;
    problems.expect(facts.run.plan.sends_again || again == 0, || {
        format!("worker {number}: {again} sent again, though none may be")
    });
    if facts.is_open() {
        // A request belongs to the window in which it was planned, whenever it was sent.
        let pairs = [
            ("in the window", of_window.issued, worker.arrivals.sent),
            ("in all", lifetime.requests_sent, worker.arrivals_all.sent),
        ];
        for (when, requests, arrivals) in pairs {
            problems.expect(requests == arrivals, || {
                format!("worker {number}: {requests} issued {when}, of {arrivals} arrivals sent")
            });
        }
    } else {
        // `measure` and `issued` count the same sends.
        let sent = worker.tallies.measure.requests_sent;
        problems.expect(sent == of_window.issued, || {
            format!(
                "worker {number}: {sent} sent in the window, {} issued",
                of_window.issued
            )
        });
    }
}

/// W9.
pub(super) fn phases_add_up(facts: &Facts<'_>) -> Outcome {
    let (agent, summary) = (facts.agent(), &facts.summary);
    let Some(trials) = &agent.trials else {
        return Outcome::not_applicable("the version that made the run counted no trials");
    };
    let mut problems = Problems::default();
    let workers: Vec<u32> = trials.iter().map(|trial| trial.workers).collect();
    // A trial that is forced by a simulation has no placement beside it.
    let too_few = agent.placement.as_ref().map(|it| &it.too_few);
    problems.expect(too_few.is_none_or(|tried| *tried == workers), || {
        format!("{too_few:?} workers were too few, but there were trials of {workers:?}")
    });
    let mut earlier_ns = agent.clock.process_start_ns;
    for trial in trials {
        of_trial(facts, trial, &mut problems);
        problems.expect(earlier_ns <= trial.from_ns, || {
            format!("the trial of {} began too early", workers_of(trial))
        });
        earlier_ns = trial.until_ns;
    }
    let setup_ns = agent.clock.edges.setup_start.get();
    problems.expect(setup_ns.is_none_or(|at_ns| earlier_ns <= at_ns), || {
        "the last trial ended after the set-up had begun".to_owned()
    });
    let phases = facts.workers().flat_map(|worker| {
        let tallies = &worker.tallies;
        [&tallies.before, &tallies.measure, &tallies.after]
    });
    let all = trials.iter().map(|trial| &trial.tally).chain(phases);
    type Count = (&'static str, fn(&Tally) -> u64);
    let counts: [Count; 5] = [
        ("requests sent", |tally| tally.requests_sent),
        ("requests sent again", |tally| tally.sent_again),
        ("replies", |tally| tally.replies.total()),
        ("bytes received", |tally| tally.bytes_received),
        ("connections opened", |tally| tally.connections_opened),
    ];
    for (words, of) in counts {
        let (phases, counted) = (sum(all.clone().map(of)), of(&summary.lifetime));
        problems.expect(phases == u128::from(counted), || {
            format!("{counted} {words} in all, the phases make {phases}")
        });
    }
    let lifetime = &summary.lifetime;
    let answered = lifetime.replies.total();
    let failed = lifetime
        .failures
        .of_requests(facts.run.plan.connects_only());
    let (in_flight, cut_off) = (summary.in_flight_at_end, summary.trials.cut_off);
    problems.or_held(format!(
        "{} sent in all, {} of them in trials of too few workers = {answered} answered + {failed} \
         failed + {in_flight} in flight at the end + {cut_off} cut off by brunt",
        lifetime.requests_sent, summary.trials.tally.requests_sent
    ))
}

fn workers_of(trial: &TrialRecord) -> String {
    counted(trial.workers.into(), "worker", "workers")
}

/// What is wrong with the counts of one trial.
fn of_trial(facts: &Facts<'_>, trial: &TrialRecord, problems: &mut Problems) {
    let TrialRecord { tally, cut_off, .. } = trial;
    let workers = workers_of(trial);
    let failed = tally.failures.of_requests(facts.run.plan.connects_only());
    let ended = sum([tally.replies.total(), failed, *cut_off]);
    problems.expect(ended == u128::from(tally.requests_sent), || {
        format!(
            "trial of {workers}: {} sent, but {} answered, {failed} failed and {cut_off} \
             cut off",
            tally.requests_sent,
            tally.replies.total()
        )
    });
    problems.expect(trial.from_ns <= trial.until_ns, || {
        format!("the trial of {workers} ended before it began")
    });
    if facts.is_open() {
        let sent = trial.arrivals.sent;
        problems.expect(tally.requests_sent == sent, || {
            format!(
                "trial of {workers}: {} sent, of {sent} arrivals",
                tally.requests_sent
            )
        });
    }
    if !facts.run.is_streams() {
        let explained = sum([
            tally.reply_head_bytes,
            tally.reply_body_bytes,
            tally.discarded_bytes,
            tally.overhead_bytes,
        ]);
        problems.expect(explained == u128::from(tally.bytes_received), || {
            format!(
                "trial of {workers}: {} bytes received, {explained} explained",
                tally.bytes_received
            )
        });
    }
}
