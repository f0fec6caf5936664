//! S1 and S2: the parts of response and service times, and the schedule lag.

use brunt_record::counted;

use super::facts::{Facts, sum};
use super::outcome::{Outcome, Problems, time};

/// S1.
pub(super) fn parts_add_up(facts: &Facts<'_>) -> Outcome {
    let run = facts.run;
    let (split, response) = (&run.latencies.split, &run.latencies.response);
    let mut problems = Problems::default();
    let (mut whole_ns, mut own_ns, mut is_exact) = (0, 0, true);
    for bucket in split.buckets() {
        let (bucket_ns, bucket_own_ns) = bucket.sums.exact_sums();
        let (from_ns, to_ns) = bucket.edges_ns();
        let count = u128::from(bucket.count);
        if bucket.sums.is_saturated() {
            is_exact = false;
            continue;
        }
        let fits =
            count * u128::from(from_ns) <= bucket_ns && bucket_ns <= count * u128::from(to_ns);
        problems.expect(fits, || {
            format!(
                "{count} response times of {} to {} have parts of {bucket_ns} ns in all",
                time(from_ns),
                time(to_ns)
            )
        });
        whole_ns += bucket_ns;
        own_ns += bucket_own_ns;
    }
    let count = split.count();
    if is_exact && own_ns < u64::MAX.into() {
        problems.expect(own_ns == u128::from(split.own.sum_ns()), || {
            format!(
                "own shares of {} ns in all, in the parts {own_ns} ns",
                split.own.sum_ns()
            )
        });
    }
    if is_exact && whole_ns < u64::MAX.into() {
        let sum_ns = sum([split.own.sum_ns(), split.rest.sum_ns()]);
        problems.expect(sum_ns == whole_ns, || {
            format!("own shares and rests of {sum_ns} ns in all, in the parts {whole_ns} ns")
        });
    }
    problems.expect(count <= response.count(), || {
        format!("{count} response times split, of {}", response.count())
    });
    let (own_max, response_max) = (split.own.max_ns(), response.max_ns());
    problems.expect(own_max <= response_max, || {
        format!(
            "an own share of {}, the longest response is {}",
            time(own_max.unwrap_or(0)),
            time(response_max.unwrap_or(0))
        )
    });
    if is_exact && response.sum_ns() < u64::MAX {
        let all_ns = u128::from(response.sum_ns());
        let fits = whole_ns <= all_ns && (count < response.count() || whole_ns == all_ns);
        problems.expect(fits, || {
            format!("parts of {whole_ns} ns in all, of response times of {all_ns} ns")
        });
    }
    problems.expect(run.plan.stamps.every().is_some() || count == 0, || {
        format!("{count} response times split without stamps")
    });
    lag_counted(facts, &mut problems);
    problems.or_held(format!(
        "{count} of {} response times split; own share {} of {}; {} schedule lags",
        response.count(),
        time(u64::try_from(own_ns).unwrap_or(u64::MAX)),
        time(u64::try_from(whole_ns).unwrap_or(u64::MAX)),
        run.latencies.lag.count()
    ))
}

/// S2. The recorder divides each service time at the first byte of the reply, and adds connecting
/// to the response time of the first reply of a connection. Sums that have lost their exact value
/// say nothing.
pub(super) fn service_divided(facts: &Facts<'_>) -> Outcome {
    let (service, latencies) = (facts.service(), &facts.run.latencies);
    let mut problems = Problems::default();
    for (words, part) in [
        ("times to first byte", &latencies.first_byte),
        ("times of transfer", &latencies.transfer),
    ] {
        problems.expect(part.count() == service.count(), || {
            format!(
                "{} {words} of {} service times",
                part.count(),
                service.count()
            )
        });
        let (longest, service_longest) = (part.max_ns(), service.max_ns());
        problems.expect(longest <= service_longest, || {
            format!(
                "{words} up to {}, service times up to {}",
                time(longest.unwrap_or(0)),
                time(service_longest.unwrap_or(0))
            )
        });
    }
    let (first_byte_ns, transfer_ns) = (latencies.first_byte.sum_ns(), latencies.transfer.sum_ns());
    let whole_ns = service.sum_ns();
    let is_exact = [first_byte_ns, transfer_ns, whole_ns]
        .iter()
        .all(|&sum_ns| sum_ns < u64::MAX);
    let divided_ns = sum([first_byte_ns, transfer_ns]);
    problems.expect(!is_exact || divided_ns == u128::from(whole_ns), || {
        format!(
            "{first_byte_ns} ns to first bytes and {transfer_ns} ns of transfer, of {whole_ns} ns \
             of service"
        )
    });
    connecting_on_top(facts, &mut problems);
    problems.or_held(format!(
        "{} service times: {} to first bytes and {} of transfer make {}",
        service.count(),
        time(first_byte_ns),
        time(transfer_ns),
        time(whole_ns)
    ))
}

/// A connection has one first reply. Where each carries one request, all response times are those
/// of first replies, and each is longer with its connecting. Runs of versions that did not record
/// them have none.
fn connecting_on_top(facts: &Facts<'_>, problems: &mut Problems) {
    let latencies = &facts.run.latencies;
    let (with_connect, response) = (&latencies.with_connect, &latencies.response);
    let count = with_connect.count();
    let opened = facts.summary.lifetime.connections_opened;
    problems.expect(count <= response.count().min(opened), || {
        format!(
            "{count} response times with connecting, of {} and {}",
            response.count(),
            counted(opened, "connection", "connections")
        )
    });
    if count == 0 || facts.run.plan.requests_per_connection() != Some(1) {
        return;
    }
    problems.expect(count == response.count(), || {
        format!(
            "{count} response times with connecting, of {} on connections of their own",
            response.count()
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

/// Each arrival that was sent has a lag. Within connections, only some sends have one.
fn lag_counted(facts: &Facts<'_>, problems: &mut Problems) {
    let lags = u128::from(facts.run.latencies.lag.count());
    let least = u128::from(facts.summary.arrivals.sent);
    let most = if facts.is_open() {
        least
    } else {
        sum([facts.summary.population.issued]) + least
    };
    problems.expect((least..=most).contains(&lags), || {
        format!("{lags} schedule lags of {least} arrivals sent, at most {most}")
    });
}
