//! The command line that repeats a run, to paste, with other options where they decide more.

use crate::{ModelDescription, PlanDescription, Stamps};

/// The longest URL that a line to paste holds.
const URL_BYTES_MAX: usize = 300;

/// A URL that a shell takes as one word, whatever is in it.
pub(super) fn quoted(url: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":/._-~%[]@+,=".contains(&byte);
    if url.bytes().all(is_plain) {
        url.to_owned()
    } else {
        format!("'{}'", url.replace('\'', r"'\''"))
    }
}

/// A length as options take it: `10s`, `250ms`.
fn length(ns: u64) -> String {
    match ns {
        _ if ns.is_multiple_of(1_000_000_000) => format!("{}s", ns / 1_000_000_000),
        _ if ns.is_multiple_of(1_000_000) => format!("{}ms", ns / 1_000_000),
        _ => format!("{}us", ns.div_ceil(1_000)),
    }
}

/// Whether the plan holds all that its command line had: a list of requests, header fields, a body,
/// TLS, a long URL, schedules in stages or of connections and rarer options are left to whoever
/// typed them.
fn is_whole(plan: &PlanDescription) -> bool {
    let is_simple = plan.requests.list.is_none()
        && plan.requests.first.as_ref().is_some_and(|first| {
            first.method == "GET" && first.header_names.is_empty() && first.body_bytes == 0
        });
    let is_usual = plan.tls.is_none()
        && plan.unix_socket.is_none()
        && plan.requests_per_connection.is_none()
        && plan.think.is_none()
        && (plan.pipeline, plan.streams) == (1, 1)
        && plan.http2.is_none()
        && !plan.has_equal_parts
        && !matches!(plan.stamps, Stamps::Off);
    let is_one_rate = match &plan.model {
        ModelDescription::Closed { connect_per_s } => connect_per_s.is_none(),
        ModelDescription::Open { schedule, .. } => schedule.rate_per_s.is_some(),
        ModelDescription::Held { .. } | ModelDescription::Sessions { .. } => false,
    };
    is_simple && is_usual && is_one_rate && plan.url.len() <= URL_BYTES_MAX
}

/// The command line of a run like that of `plan` over `duration_ns`, with `options` besides; where
/// the plan does not hold all of it, what is to be changed.
pub(super) fn repeated(plan: &PlanDescription, duration_ns: u64, options: &[&str]) -> String {
    let mut changed = vec![format!("-d {}", length(duration_ns))];
    changed.extend(options.iter().map(|&option| option.to_owned()));
    if !is_whole(plan) {
        return format!("the same with {}", changed.join(" "));
    }
    let mut words = vec!["brunt".to_owned(), format!("-c {}", plan.connections)];
    if let ModelDescription::Open { schedule, .. } = &plan.model
        && let Some(rate) = schedule.rate_per_s
    {
        words.push(format!("-r {rate}"));
    }
    words.extend(changed);
    words.push(quoted(&plan.url));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants::sample::{open_run, run};

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_plain_run_is_repeated_by_its_line() {
        let mut plan = run().plan;
        plan.url = "http://127.0.0.1:8080/a?b=c&d".to_owned();
        let connections = plan.connections;
        let line = repeated(&plan, 60 * S, &["--warmup 10s"]);
        let expected = format!("brunt -c {connections} -d 60s --warmup 10s '{}'", plan.url);
        assert_eq!(line, expected);
        if let Some(first) = &mut plan.requests.first {
            first.body_bytes = 1;
        }
        assert_eq!(repeated(&plan, S / 4, &[]), "the same with -d 250ms");
        let open = repeated(&open_run().plan, 20 * S, &[]);
        assert!(open.contains(" -r ") && open.contains(" -d 20s "), "{open}");
    }
}
