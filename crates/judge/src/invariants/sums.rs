//! W5, W6, A4, A5, S1, S2 and P1: counts, bytes, requests and times add up, and are of one
//! population and one protocol each. The sums are a table of what must equal what.

use brunt_load::Work;
use brunt_load::protocol::{FailureFamily, Greeting, Transport};
use brunt_record::{
    ArrivalCounts, Histogram, Population, SeriesPoint, StatusCounts, WorkerRecord, after_ns,
    counted,
};

use crate::facts::Facts;
use crate::figures::Lost;
use crate::invariants::windows::WAKE_UP_NS;
use crate::invariants::{CheckOutcome, Checked, Problems, must, only_if};
use crate::units::exact::{percent, time};
use crate::units::plural;

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
            let shown = terms.clone();
            let shown = shown.map(|(value, term)| format!("{} {term}", value.unwrap_or(0)));
            let shown = shown.collect::<Vec<_>>().join(" + ");
            (terms.map(|(value, _)| value).sum::<Option<u128>>(), shown)
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
    let work = facts.run.work();
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
        "failed in all" => all().failures.of_requests(work).into(),
        "in flight at the end" => worker.in_flight_at_end.into(),
        "sent before the window" => before.requests_sent.into(),
        "answered before it" => before.replies.total().into(),
        "failed before it" => before.failures.of_requests(work).into(),
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
    let held = |count: u128| if run.work() == Work::Hold { count } else { 0 };
    Some(match term {
        "connections asked for" if facts.is_sessions() => 0,
        "connections asked for" => share.connections.into(),
        "connections dealt out to the workers" => facts.sum(|worker| worker.live.asked.into()),
        "connections allowed" if !facts.is_open() => share.connections.into(),
        "connections allowed" => share.connections_max.unwrap_or(share.connections).into(),
        "connections allowed to the workers" => facts.sum(|worker| worker.live.most.into()),
        "kept" => held(facts.sum(|worker| worker.connections_kept)),
        "opened to be held" => held(lifetime.connections_opened.into()),
        "lost" => held(sum([lost.closed, lost.given_up])),
        "open at the end" => held(facts.summary.live.at_end.unwrap_or(0).into()),
        "latencies" => sum(facts.latencies().map(|(_, all)| all.count())),
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

/// How far the rate and the sum of the workers' rates may differ.
const RATES_DIFFER: f64 = 0.01;

/// W5.
pub(super) fn workers_add_up(facts: &Facts<'_>) -> Checked {
    let mut problems = Problems::default();
    check("W5", facts, &mut problems);
    problems.none()?;
    only_if(!facts.no_window(), "there is no window")?;
    let (mut sum_of_rates, mut shortest_ns) = (0.0, facts.run.window_ns);
    for worker in facts.workers() {
        let edges = &worker.edges;
        // A worker without a window of its own is W4's finding.
        if let (Some(start_ns), Some(end_ns)) = (edges.window_start.get(), edges.window_end.get()) {
            let own_ns = after_ns(start_ns, end_ns).max(1);
            sum_of_rates += worker.tallies.measure.replies.total() as f64 * 1e9 / own_ns as f64;
            shortest_ns = shortest_ns.min(own_ns);
        }
    }
    let replies = facts.summary.window.replies.total();
    let rate = replies as f64 * 1e9 / facts.run.window_ns as f64;
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
    must(off <= tolerance, &words)?;
    Ok(CheckOutcome::held(words))
}

/// W6.
pub(super) fn every_request_accounted(facts: &Facts<'_>) -> Checked {
    let mut problems = Problems::default();
    check("W6", facts, &mut problems);
    let (all, lifetime) = (&facts.summary.population, &facts.summary.lifetime);
    let again = lifetime.sent_again;
    problems.expect(facts.run.plan.traffic.sends_again || again == 0, || {
        format!("{again} sent again, though none may be")
    });
    // Only a run that went on until its count was reached must have reached it.
    let asked = facts.agent().share.requests;
    if let Some(asked) = asked.filter(|_| facts.ended_by_count()) {
        let accounted = facts.accounted_of_count();
        let beside = accounted - all.issued;
        problems.expect(accounted == asked, || {
            let asked = plural(asked, "request");
            let issued = all.issued;
            format!("{asked} asked for, {issued} issued and {beside} given up or left over")
        });
    }
    let again = match again {
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
        lifetime.requests_sent,
        facts.summary.in_flight_at_end,
        carried_in.in_flight,
        carried_in.answered,
        carried_in.failed,
        carried_in.unanswered
    ))
}

/// A4.
pub(super) fn histograms_merged(facts: &Facts<'_>) -> Checked {
    let mut problems = Problems::default();
    check("A4", facts, &mut problems);
    if !facts.run.names.is_empty() {
        names_add_up(facts, &mut problems);
    }
    let held = sum(facts.latencies().map(|(_, all)| all.count()));
    problems.or_held(format!(
        "{} and {} to connect, of {}",
        counted(held as u64, "latency", "latencies"),
        plural(facts.run.latencies.connect.count(), "time"),
        plural(facts.workers().count(), "worker")
    ))
}

/// The figures by name are those of the run.
fn names_add_up(facts: &Facts<'_>, problems: &mut Problems) {
    let run = facts.run;
    let mut of_names = Population::default();
    for name in &run.names {
        of_names.merge(&name.population);
    }
    let of_workers = facts.summary.population;
    problems.expect(of_names == of_workers, || {
        format!("the names had {of_names:?}, and the workers {of_workers:?}")
    });
    let by_name = sum(run.names.iter().map(|name| name.requests_sent));
    let sent = facts.summary.lifetime.requests_sent;
    problems.expect(by_name == u128::from(sent), || {
        let by_name = plural(by_name, "request");
        format!("{by_name} sent by name, {sent} in all")
    });
    let responses = sum(run.names.iter().map(|name| name.response.count()));
    let successes = u128::from(run.latencies.response.count());
    // A generator may name its first request when others had responses.
    let is_part = responses == successes || run.is_generated() && responses < successes;
    problems.expect(is_part, || {
        let responses = plural(responses, "response time");
        format!("{responses} of successes by name, {successes} in all")
    });
}

/// A5. Each histogram holds replies of its own kind, from the start of the window on: all of
/// them, but for those to requests that warm-up left in flight.
pub(super) fn populations_apart(facts: &Facts<'_>) -> Checked {
    let latencies = &facts.run.latencies;
    let mut problems = Problems::default();
    let left_by_warmup = facts.left_by_warmup();
    let since = |of: fn(&StatusCounts) -> u64| {
        facts.sum(|worker| {
            let (window, after) = (&worker.tallies.measure, &worker.tallies.after);
            of(&window.replies).saturating_add(of(&after.replies))
        })
    };
    let successes = (&latencies.response, since(StatusCounts::successes));
    let errors = (&latencies.response_error, since(StatusCounts::errors));
    for (words, (histogram, replies)) in [("successes", successes), ("error replies", errors)] {
        let count = u128::from(histogram.count());
        let fits = count <= replies && replies - count <= left_by_warmup;
        problems.expect(fits, || {
            format!(
                "latencies of {words}: {count}, such replies since the window began: {replies}, \
                 requests left by warm-up: {left_by_warmup}"
            )
        });
    }
    let window = &facts.summary.window;
    let failures = sum(window.failures.iter().map(|(_, count)| count));
    problems.or_held(format!(
        "in the window: {} (the headline), {}, {}, {}",
        counted(window.replies.successes(), "success", "successes"),
        counted(window.replies.errors(), "error reply", "error replies"),
        plural(failures, "failure"),
        plural(window.sends(), "attempt"),
    ))
}

/// S1.
pub(super) fn parts_add_up(facts: &Facts<'_>) -> Checked {
    let run = facts.run;
    let (split, response) = (&run.latencies.split, &run.latencies.response);
    let mut problems = Problems::default();
    let (mut whole_ns, mut own_ns, mut is_exact) = (0, 0, true);
    for bucket in split.buckets() {
        let (bucket_ns, bucket_own_ns) = bucket.sums.exact_sums();
        if bucket.sums.is_saturated() {
            is_exact = false;
            continue;
        }
        let (from_ns, to_ns) = bucket.edges_ns();
        let count = u128::from(bucket.count);
        let edges_ns = count * u128::from(from_ns)..=count * u128::from(to_ns);
        problems.expect(edges_ns.contains(&bucket_ns), || {
            let [from, to] = [from_ns, to_ns].map(time);
            format!("{count} response times of {from} to {to} have parts of {bucket_ns} ns in all")
        });
        whole_ns += bucket_ns;
        own_ns += bucket_own_ns;
    }
    if is_exact && own_ns < u64::MAX.into() {
        let own_shares_ns = split.own.sum_ns();
        problems.expect(own_ns == u128::from(own_shares_ns), || {
            format!("own shares of {own_shares_ns} ns in all, in the parts {own_ns} ns")
        });
    }
    if is_exact && whole_ns < u64::MAX.into() {
        let sum_ns = sum([split.own.sum_ns(), split.rest.sum_ns()]);
        problems.expect(sum_ns == whole_ns, || {
            format!("own shares and rests of {sum_ns} ns in all, in the parts {whole_ns} ns")
        });
    }
    let (count, all) = (split.count(), response.count());
    problems.expect(count <= all, || {
        format!("{count} response times split, of {all}")
    });
    let (own_max, response_max) = (split.own.max_ns(), response.max_ns());
    problems.expect(own_max <= response_max, || {
        let [own, longest] = [own_max, response_max].map(|ns| time(ns.unwrap_or(0)));
        format!("an own share of {own}, the longest response is {longest}")
    });
    if is_exact && response.sum_ns() < u64::MAX {
        let all_ns = u128::from(response.sum_ns());
        let fits = whole_ns <= all_ns && (count < all || whole_ns == all_ns);
        problems.expect(fits, || {
            format!("parts of {whole_ns} ns in all, of response times of {all_ns} ns")
        });
    }
    problems.expect(
        run.plan.observation.stamps.every().is_some() || count == 0,
        || format!("{count} response times split without stamps"),
    );
    lag_counted(facts, &mut problems);
    let [own, whole] = [own_ns, whole_ns].map(|ns| time(u64::try_from(ns).unwrap_or(u64::MAX)));
    let lags = run.latencies.lag.count();
    problems.or_held(format!(
        "{count} of {all} response times split; own share {own} of {whole}; {lags} schedule lags"
    ))
}

/// Each arrival that was sent has a lag. Within connections, only some sends have one.
fn lag_counted(facts: &Facts<'_>, problems: &mut Problems) {
    let lags = u128::from(facts.run.latencies.lag.count());
    let least = u128::from(facts.summary.arrivals.sent);
    let most = if facts.is_open() {
        least
    } else {
        least + u128::from(facts.summary.population.issued)
    };
    problems.expect((least..=most).contains(&lags), || {
        format!("{lags} schedule lags of {least} arrivals sent, at most {most}")
    });
}

/// S2. The recorder divides each service time at the first byte of the reply, and adds connecting
/// to the response time of the first reply of a connection. Sums that have lost their exact value
/// say nothing.
pub(super) fn service_divided(facts: &Facts<'_>) -> Checked {
    let (service, latencies) = (facts.service(), &facts.run.latencies);
    let (first_byte, transfer) = (&latencies.first_byte, &latencies.transfer);
    let mut problems = Problems::default();
    check("S2", facts, &mut problems);
    for (words, part) in [
        ("times to first byte", first_byte),
        ("times of transfer", transfer),
    ] {
        problems.expect(part.max_ns() <= service.max_ns(), || {
            let [longest, all] = [part, service].map(|times| time(times.max_ns().unwrap_or(0)));
            format!("{words} up to {longest}, service times up to {all}")
        });
    }
    let sums_ns = [first_byte, transfer, service].map(Histogram::sum_ns);
    let [first_byte_ns, transfer_ns, whole_ns] = sums_ns;
    let is_exact = sums_ns.iter().all(|&sum_ns| sum_ns < u64::MAX);
    let divided_ns = sum([first_byte_ns, transfer_ns]);
    problems.expect(!is_exact || divided_ns == u128::from(whole_ns), || {
        format!(
            "{first_byte_ns} ns to first bytes and {transfer_ns} ns of transfer, of {whole_ns} ns \
             of service"
        )
    });
    connecting_on_top(facts, &mut problems);
    let [first_byte, transfer, whole] = sums_ns.map(time);
    problems.or_held(format!(
        "{} service times: {first_byte} to first bytes and {transfer} of transfer make {whole}",
        service.count()
    ))
}

/// A connection has one first reply. Where each carries one request, all response times are those
/// of first replies, and each is longer with its connecting.
fn connecting_on_top(facts: &Facts<'_>, problems: &mut Problems) {
    let latencies = &facts.run.latencies;
    let (with_connect, response) = (&latencies.with_connect, &latencies.response);
    let (count, responses) = (with_connect.count(), response.count());
    let opened = facts.summary.lifetime.connections_opened;
    problems.expect(count <= responses.min(opened), || {
        let opened = plural(opened, "connection");
        format!("{count} response times with connecting, of {responses} and {opened}")
    });
    if count == 0 || facts.run.plan.requests_per_connection() != Some(1) {
        return;
    }
    problems.expect(count == responses, || {
        format!(
            "{count} response times with connecting, of {responses} on connections of their own"
        )
    });
    let longer = [
        (response.min_ns(), with_connect.min_ns()),
        (response.max_ns(), with_connect.max_ns()),
        (Some(response.sum_ns()), Some(with_connect.sum_ns())),
    ];
    for (without_ns, with_ns) in longer {
        problems.expect(without_ns <= with_ns, || {
            let [without, with] = [without_ns, with_ns].map(|ns| time(ns.unwrap_or(0)));
            format!("{with} with connecting, {without} without")
        });
    }
}

/// P1.
pub(super) fn protocol_fits(facts: &Facts<'_>) -> Checked {
    let run = facts.run;
    let tls = &run.first().negotiated.tls;
    let (protocol, name) = (run.protocol(), run.protocol().name);
    let may_resume = run.plan.tls().is_some_and(|tls| tls.resumption);
    let is_over_quic = protocol.transport == Transport::Datagrams;
    let mut problems = Problems::default();
    check("P1", facts, &mut problems);
    for worker in facts.workers() {
        let (number, lifetime) = (facts.number(worker), worker.tallies.lifetime());
        let goaways = lifetime.goaways;
        // A later round of a session begins with connections of the rounds before it.
        let had = lifetime.connections_opened;
        let had = had.saturating_add(worker.connections_kept);
        let goaways_most = if protocol.may_ask_to_replace { had } else { 0 };
        problems.expect(goaways <= goaways_most, || {
            format!("worker {number}: {goaways} GOAWAYs, at most {goaways_most} can be")
        });
        for (kind, count) in lifetime.failures.iter() {
            let (label, times) = (kind.label(), plural(count, "time"));
            let mut foreign = FailureFamily::ALL.into_iter();
            let is_foreign = |family| !protocol.failures.contains(&family) && kind.is_of(family);
            problems.expect(!foreign.any(is_foreign), || {
                format!("worker {number}: {label} {times}, over {name}")
            });
            problems.expect(tls.is_some() || !kind.is_of_tls(), || {
                format!("worker {number}: {label} {times}, in clear text")
            });
        }
        let (resumed, pushes) = (lifetime.handshakes_resumed, lifetime.pushes);
        let (controls, quic) = (lifetime.controls, lifetime.quic);
        for (may_be, is_none, what) in [
            (
                may_resume,
                resumed == 0,
                "resumed handshakes, though none may be",
            ),
            (protocol.may_push, pushes == 0, "pushes"),
            (
                protocol.has_control_frames,
                controls.is_none(),
                "control frames of WebSocket",
            ),
            (is_over_quic, quic.is_none(), "counts of QUIC"),
        ] {
            problems.expect(may_be || is_none, || {
                format!("worker {number}: {what}, over {name}")
            });
        }
    }
    let lifetime = &facts.summary.lifetime;
    let over = match tls {
        Some(tls) => format!(
            "over {}, {} full and {} resumed handshakes",
            tls.version, lifetime.handshakes_full, lifetime.handshakes_resumed
        ),
        None => "in clear text".to_owned(),
    };
    let opened = plural(lifetime.connections_opened, "connection");
    let goaways = lifetime.goaways;
    problems.or_held(format!(
        "{name} {over}; {opened} opened, {goaways} asked to be replaced"
    ))
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
