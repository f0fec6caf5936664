//! The sums of the accounting: a table of what must equal what, and the terms.

use brunt_load::protocol::Greeting;
use brunt_record::{ArrivalCounts, SeriesPoint, WorkerRecord};

use super::outcome::Problems;
use crate::facts::Facts;
use crate::figures::held::Lost;

/// What must hold of each worker: the invariant, and two sums of terms.
const OF_WORKERS: &[&str] = &[
    // The series is counted on its own way through the recorder: it is the second book.
    "W5: successes = successes over time",
    "W5: error replies = error replies over time",
    "W5: failures = failures over time",
    "W5: bytes received = bytes received over time",
    "W6: issued = recorded + failed + censored",
    "W6: issued = sent in the window",
    "W6: requests in all = sent in all",
    "W6: requests in all = answered in all + failed in all + in flight at the end",
    "W6: sent before the window = answered before it + failed before it + carried in",
    "W6: carried in = answered of those + failed of those + left of those",
    "L2: planned = sent + skipped for a full queue + skipped for waiting + unsent",
    "L2: planned in all = sent, skipped or left in all",
    "P1: handshakes due = full handshakes + resumed handshakes",
    "I4: bytes received in all = heads + bodies + discarded + overhead",
];

/// What must hold of the agents that are looked at.
const OF_ALL: &[&str] = &[
    "L1: connections asked for = connections dealt out to the workers",
    "L1: connections allowed = connections allowed to the workers",
    "L1: kept + opened to be held = lost + open at the end",
    "A4: latencies = recorded by the workers",
    "A4: times to connect = opened",
    "A4: service times = service times due",
    "A4: response times over time = response times",
    "S2: times to first byte = times of service",
    "S2: times of transfer = times of service",
    "P1: times of TLS handshakes = handshakes",
    "P1: times of first exchanges = first exchanges due",
];

/// Notes each sum of the invariant `id` that is not what it must be.
pub(super) fn check(id: &str, facts: &Facts<'_>, problems: &mut Problems) {
    for worker in facts.workers() {
        let whose = format!("worker {}: ", facts.number(worker));
        compare(id, OF_WORKERS, problems, &whose, |term| {
            of_worker(term, facts, worker)
        });
    }
    compare(id, OF_ALL, problems, "", |term| of_all(term, facts));
}

fn compare(
    id: &str,
    table: &[&str],
    problems: &mut Problems,
    whose: &str,
    value: impl Fn(&str) -> Option<u128>,
) {
    for row in table {
        let Some((of, (left, right))) = parts_of(row) else {
            continue;
        };
        if of != id {
            continue;
        }
        let [(left, left_words), (right, right_words)] = [left, right].map(|side| {
            let terms = side.split(" + ").map(|term| (value(term), term));
            let told = terms.clone();
            let told = told.map(|(value, term)| format!("{} {term}", value.unwrap_or(0)));
            let told = told.collect::<Vec<_>>().join(" + ");
            (terms.map(|(value, _)| value).sum::<Option<u128>>(), told)
        });
        problems.expect(left.is_some() && left == right, || {
            format!("{whose}{left_words}, but {right_words}")
        });
    }
}

/// The invariant of a row, and its two sums.
fn parts_of(row: &str) -> Option<(&str, (&str, &str))> {
    let (id, sums) = row.split_once(": ")?;
    Some((id, sums.split_once(" = ")?))
}

/// What a term is of a worker. Absent where no term has this name.
fn of_worker(term: &str, facts: &Facts<'_>, worker: &WorkerRecord) -> Option<u128> {
    let (before, window) = (&worker.tallies.before, &worker.tallies.measure);
    let all = || worker.tallies.lifetime();
    let connects_only = facts.run.plan.connects_only();
    let (population, carried_in) = (&worker.population, &worker.carried_in);
    let over_time = |of: fn(&SeriesPoint) -> u64| sum(worker.series.points.iter().map(of));
    let all_arrivals = &worker.arrivals_all;
    Some(match term {
        "successes" => window.replies.successes().into(),
        "successes over time" => over_time(|point| point.successes),
        "error replies" => window.replies.errors().into(),
        "error replies over time" => over_time(|point| point.errors),
        "failures" => sum(window.failures.iter().map(|(_, count)| count)),
        "failures over time" => over_time(|point| point.failures),
        "bytes received" => window.bytes_received.into(),
        "bytes received over time" => over_time(|point| point.bytes_received),
        "issued" => population.issued.into(),
        "recorded" => population.recorded.into(),
        "failed" => population.failed.into(),
        "censored" => population.censored.into(),
        // With a schedule of requests, one belongs to the window in which it was planned.
        "sent in the window" if facts.is_open() => worker.arrivals.sent.into(),
        "sent in the window" => window.requests_sent.into(),
        "requests in all" => all().requests_sent.into(),
        "sent in all" if facts.is_open() => all_arrivals.sent.into(),
        "sent in all" => all().requests_sent.into(),
        "answered in all" => all().replies.total().into(),
        "failed in all" => all().failures.of_requests(connects_only).into(),
        "in flight at the end" => worker.in_flight_at_end.into(),
        "sent before the window" => before.requests_sent.into(),
        "answered before it" => before.replies.total().into(),
        "failed before it" => before.failures.of_requests(connects_only).into(),
        "carried in" => carried_in.in_flight.into(),
        "answered of those" => carried_in.answered.into(),
        "failed of those" => carried_in.failed.into(),
        "left of those" => carried_in.unanswered.into(),
        "planned" => worker.arrivals.planned.into(),
        "sent" => worker.arrivals.sent.into(),
        "skipped for a full queue" => worker.arrivals.skipped_full.into(),
        "skipped for waiting" => worker.arrivals.skipped_late.into(),
        "unsent" => worker.arrivals.unsent.into(),
        "planned in all" => all_arrivals.planned.into(),
        "sent, skipped or left in all" => sum(outcomes(all_arrivals)),
        "handshakes due" if facts.run.first().negotiated.tls.is_none() => 0,
        "handshakes due" => all().connections_opened.into(),
        "full handshakes" => all().handshakes_full.into(),
        "resumed handshakes" => all().handshakes_resumed.into(),
        "bytes received in all" => all().bytes_received.into(),
        "heads" => all().reply_head_bytes.into(),
        "bodies" => all().reply_body_bytes.into(),
        "discarded" => all().discarded_bytes.into(),
        "overhead" => all().overhead_bytes.into(),
        _ => return None,
    })
}

/// Arrivals by outcome.
pub(super) fn outcomes(arrivals: &ArrivalCounts) -> [u64; 4] {
    [
        arrivals.sent,
        arrivals.skipped_full,
        arrivals.skipped_late,
        arrivals.unsent,
    ]
}

/// What a term is of the agents that are looked at. Absent where no term has this name.
fn of_all(term: &str, facts: &Facts<'_>) -> Option<u128> {
    let (run, lifetime, latencies) = (facts.run, &facts.summary.lifetime, &facts.run.latencies);
    let share = &facts.agents.first()?.share;
    let lost = Lost::of(&facts.summary);
    let held = |count: u128| if run.is_held() { count } else { 0 };
    Some(match term {
        "connections asked for" if facts.is_sessions() => 0,
        "connections asked for" => share.connections.into(),
        "connections dealt out to the workers" => facts.sum(|it| it.live.asked.into()),
        "connections allowed" if !facts.is_open() => share.connections.into(),
        "connections allowed" => share.connections_max.unwrap_or(share.connections).into(),
        "connections allowed to the workers" => facts.sum(|it| it.live.most.into()),
        "kept" => held(facts.sum(|worker| worker.connections_kept)),
        "opened to be held" => held(lifetime.connections_opened.into()),
        "lost" => held(sum([lost.closed, lost.given_up])),
        "open at the end" => held(facts.summary.live.at_end.unwrap_or(0).into()),
        "latencies" => sum(facts.latencies().map(|(_, it)| it.count())),
        "recorded by the workers" => facts.sum(|worker| worker.population.recorded),
        "times to connect" => latencies.connect.count().into(),
        "opened" => lifetime.connections_opened.into(),
        "service times" => latencies.service.count().into(),
        // From the send, both are the same.
        "service times due" if !facts.is_open() => 0,
        "service times due" | "response times" => latencies.response.count().into(),
        "response times over time" => latencies.intervals.count().into(),
        "times to first byte" => latencies.first_byte.count().into(),
        "times of transfer" => latencies.transfer.count().into(),
        "times of service" => facts.service().count().into(),
        "times of TLS handshakes" => latencies.tls.count().into(),
        "handshakes" => sum([lifetime.handshakes_full, lifetime.handshakes_resumed]),
        "times of first exchanges" => latencies.greeting.count().into(),
        "first exchanges due" => match run.protocol().greeting {
            Greeting::Nothing => 0,
            Greeting::Planned if !run.plan.is_opened_by_message() => 0,
            Greeting::Planned | Greeting::Prescribed(_) => lifetime.connections_opened.into(),
        },
        _ => return None,
    })
}

/// The sum, in a type that cannot overflow.
pub(super) fn sum(values: impl IntoIterator<Item = u64>) -> u128 {
    values.into_iter().map(u128::from).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants::sample::run;

    #[test]
    fn each_row_is_two_sums_of_known_terms() {
        let run = run();
        let facts = Facts::of(&run);
        let worker = &run.agents[0].workers[0];
        type Value<'a> = &'a dyn Fn(&str) -> Option<u128>;
        let tables: [(&[&str], Value<'_>); 2] = [
            (OF_WORKERS, &|term| of_worker(term, &facts, worker)),
            (OF_ALL, &|term| of_all(term, &facts)),
        ];
        for (table, value) in tables {
            for row in table {
                let (_, (left, right)) = parts_of(row).expect("two sums");
                let mut terms = left.split(" + ").chain(right.split(" + "));
                assert!(terms.all(|term| value(term).is_some()), "{row}");
            }
        }
        assert_eq!(of_all("another", &facts), None);
    }
}
