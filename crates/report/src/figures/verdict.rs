//! The verdict, and how far the headline may be trusted, as stored.

use brunt_judge::{RateInterval, RunFigures, Steadiness, Verdict};
use brunt_record::Run;

use super::absent::Absent;

/// The name of `verdict` in data, as in the stored form.
pub(crate) fn data_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Invalid => "invalid",
        Verdict::NoSuccess => "no_success",
        Verdict::ServerFailed => "server_failed",
        Verdict::Disturbed => "disturbed",
        Verdict::Inconclusive => "inconclusive",
        Verdict::ClientLimited => "client_limited",
        Verdict::NetworkLimited => "network_limited",
        Verdict::RateLimited => "rate_limited",
        Verdict::ThinkTime => "think_time",
        Verdict::ServerLimited => "server_limited",
        Verdict::ConcurrencyLimited => "concurrency_limited",
        Verdict::SharedHost => "shared_host",
        Verdict::SharedServer => "shared_server",
    }
}

/// The interval of the headline; `withheld` is the reason for which there are no rates.
pub(super) fn successes_interval(
    run: &Run,
    withheld: Option<&str>,
    absent: &mut Absent,
) -> Option<RateInterval> {
    const PATH: &str = "successes_interval_95";
    match (withheld, run.successes_interval()) {
        (Some(reason), _) => absent.note(PATH, reason),
        (None, Err(reason)) => absent.note(PATH, &reason.to_string()),
        (None, Ok(interval)) => Some(interval),
    }
}

/// Whether the headline's rate held still; `withheld` is the reason for which there are no rates.
pub(super) fn steadiness(
    run: &Run,
    withheld: Option<&str>,
    absent: &mut Absent,
) -> Option<Steadiness> {
    if let Some(reason) = withheld {
        return absent.note("steadiness", reason);
    }
    let steadiness = run.steadiness();
    for (name, is_known, reason) in [
        (
            "halves_differ",
            steadiness.halves_differ.is_some(),
            "too few replies or too short a window for halves, or a planned rate that changes",
        ),
        (
            "trend",
            steadiness.trend.is_some(),
            "no trend beyond chance was seen, or the window is too short for one",
        ),
    ] {
        if !is_known {
            absent.note::<f64>(&format!("steadiness.{name}"), reason);
        }
    }
    Some(steadiness)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_has_one_name_in_all_data() {
        for verdict in [
            Verdict::Invalid,
            Verdict::NoSuccess,
            Verdict::ServerFailed,
            Verdict::Disturbed,
            Verdict::Inconclusive,
            Verdict::ClientLimited,
            Verdict::NetworkLimited,
            Verdict::RateLimited,
            Verdict::ThinkTime,
            Verdict::ServerLimited,
            Verdict::ConcurrencyLimited,
            Verdict::SharedHost,
            Verdict::SharedServer,
        ] {
            let stored = serde_json::to_value(verdict).unwrap();
            assert_eq!(stored, data_name(verdict));
        }
    }
}
