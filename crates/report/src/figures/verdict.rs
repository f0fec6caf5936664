//! The verdict, and how far the headline may be trusted, as stored.

use brunt_judge::{RateInterval, RunFigures, Steadiness, Verdict};
use brunt_record::Run;

use super::absent::Absent;

/// The name of `verdict` in data, as in the stored form.
pub(crate) fn data_name(verdict: Verdict) -> String {
    verdict.name().to_lowercase().replace('-', "_")
}

/// The interval of the headline.
pub(super) fn successes_interval(run: &Run, absent: &mut Absent) -> Option<RateInterval> {
    const PATH: &str = "successes_interval_95";
    absent.unless_withheld(PATH)?;
    match run.successes_interval() {
        Ok(interval) => Some(interval),
        Err(reason) => absent.note(PATH, &reason.to_string()),
    }
}

/// Whether the headline's rate held still.
pub(super) fn steadiness(run: &Run, absent: &mut Absent) -> Option<Steadiness> {
    absent.unless_withheld("steadiness")?;
    let steadiness = run.steadiness();
    absent.known(
        "steadiness.halves_differ",
        steadiness.halves_differ.as_ref(),
        "too few replies or too short a window for halves, or a planned rate that changes",
    );
    absent.known(
        "steadiness.trend",
        steadiness.trend.as_ref(),
        "no trend beyond chance was seen, or the window is too short for one",
    );
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
