//! The verdict, and how far the headline may be trusted, as stored.

use brunt_judge::{Figure, RateInterval, RunFigures, Steadiness, Summary, Verdict};
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

/// Complete replies per second as a share of the ceiling that `brunt calibrate` found for this
/// backend and number of workers.
pub(crate) fn ceiling_share(run: &Run, summary: &Summary) -> Figure {
    if !run.is_plain() {
        return Figure::Absent("several agents share no ceiling".to_owned());
    }
    let agent = run.first();
    if !run.is_like_calibration() {
        return Figure::Absent("calibrated over HTTP/1.1 in clear text only".to_owned());
    }
    let Some(calibration) = &agent.calibration else {
        return Figure::Absent("this machine was not calibrated".to_owned());
    };
    let window_s = run.window_ns as f64 / 1e9;
    let replies = summary.window.replies.total() as f64;
    match calibration.ceiling(agent.backend, agent.share.workers) {
        Some(ceiling) => Figure::ratio(
            replies,
            ceiling.requests_per_s * window_s,
            "the window or the ceiling is 0",
        ),
        None => Figure::Absent(format!(
            "the calibration has no ceiling for {}",
            agent.backend.name()
        )),
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
