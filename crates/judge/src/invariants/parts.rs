//! S1 and S2: the parts of response and service times, and the schedule lag.

use super::outcome::{Checked, Problems};
use super::sums::{self, sum};
use crate::facts::Facts;
use crate::units::exact::time;
use crate::units::plural;

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
    problems.expect(run.plan.stamps.every().is_some() || count == 0, || {
        format!("{count} response times split without stamps")
    });
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
    sums::check("S2", facts, &mut problems);
    for (words, part) in [
        ("times to first byte", first_byte),
        ("times of transfer", transfer),
    ] {
        problems.expect(part.max_ns() <= service.max_ns(), || {
            let [longest, all] = [part, service].map(|it| time(it.max_ns().unwrap_or(0)));
            format!("{words} up to {longest}, service times up to {all}")
        });
    }
    let sums_ns = [first_byte, transfer, service].map(|it| it.sum_ns());
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
