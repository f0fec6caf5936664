//! W5 and W6: counts, bytes and requests add up.

use brunt_record::{CarriedIn, WorkerRecord, after_ns, counted};

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
    let again = match facts.summary.lifetime.sent_again {
        0 => String::new(),
        again => format!(" and {again} of them again"),
    };
    let carried_in = facts.summary.carried_in;
    problems.or_held(format!(
        "{} issued = {} recorded + {} failed + {} censored; {} sent in all phases{again}, \
         {} in flight at the end; {} in flight when the window began = {} answered + {} failed in \
         it + {} unanswered at its end",
        all.issued,
        all.recorded,
        all.failed,
        all.censored,
        facts.summary.lifetime.requests_sent,
        facts.summary.in_flight_at_end,
        carried_in.in_flight,
        carried_in.answered,
        carried_in.failed,
        carried_in.unanswered
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
    let CarriedIn {
        in_flight,
        answered,
        failed,
        unanswered,
        in_flight_ns: _,
    } = worker.carried_in;
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
