//! The verdict, and how far the headline may be trusted, as stored.

use brunt_judge::{
    Figure, Judgement, RateInterval, RunFigures, Signal, SignalId, Summary, Verdict,
};
use brunt_record::Run;
use serde::Serialize;

use super::absent::Absent;

/// What limited the run, and what that rests on. Judged anew by each report.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerdictFigures {
    /// What limited the run.
    pub name: Verdict,
    /// Why, in one line of words.
    pub because: String,
    /// Names of the signals that decided, the strongest first.
    pub decisive: Vec<SignalId>,
    /// What to change or to try next; may be empty.
    pub advice: Vec<String>,
    /// All signals.
    pub signals: Vec<Signal>,
}

/// A two-sided 95 % confidence interval of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RateIntervalFigures {
    /// Its lower end, per second.
    pub low_per_s: f64,
    /// Its upper end, per second.
    pub high_per_s: f64,
}

/// Whether the rate of successful replies held still over the window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SteadinessFigures {
    /// Whether the run drifts: its halves differ, or there is a trend, by more than chance and
    /// more than the limit.
    pub drifts: bool,
    /// The rate of the second half against that of the first, as a ratio less 1.
    pub halves_differ: Option<f64>,
    /// Change of the rate over the window as a share of its median, where there is a trend.
    pub trend: Option<f64>,
}

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

impl From<Judgement> for VerdictFigures {
    fn from(judgement: Judgement) -> Self {
        let Judgement {
            verdict,
            because,
            decisive,
            advice,
            signals,
        } = judgement;
        Self {
            name: verdict,
            because,
            decisive,
            advice,
            signals,
        }
    }
}

impl RateIntervalFigures {
    /// The interval of the headline; `withheld` is the reason for which there are no rates.
    pub(super) fn of_successes(
        run: &Run,
        withheld: Option<&str>,
        absent: &mut Absent,
    ) -> Option<Self> {
        const PATH: &str = "successes_interval_95";
        match (withheld, run.successes_interval()) {
            (Some(reason), _) => absent.note(PATH, reason),
            (None, Err(reason)) => absent.note(PATH, &reason.to_string()),
            (
                None,
                Ok(RateInterval {
                    low_per_s,
                    high_per_s,
                }),
            ) => Some(Self {
                low_per_s,
                high_per_s,
            }),
        }
    }
}

impl SteadinessFigures {
    pub(super) fn new(run: &Run, withheld: Option<&str>, absent: &mut Absent) -> Option<Self> {
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
        Some(Self {
            drifts: steadiness.drifts,
            halves_differ: steadiness.halves_differ,
            trend: steadiness.trend,
        })
    }
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
