//! The figures of the parts of the window in which the hypervisor took nothing.

use brunt_judge::{Clean, RateInterval};
use serde::Serialize;

use super::Latency;
use super::absent::Absent;

/// What the hypervisor left of a window in which it took time from the CPUs that brunt or the
/// server used: figures of the parts in which it took nothing, beside those of the whole window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CleanSummary {
    /// Length of these parts, nanoseconds; null where it was not recorded when time was stolen. The
    /// figures need 2 s and half of the window, and are null with less.
    pub clean_ns: Option<u64>,
    /// Successful replies per second of these parts.
    pub successes_per_s: Option<f64>,
    /// How well that is known.
    pub successes_interval_95: Option<RateInterval>,
    /// Brunt's own share (0 to 1) of the response times, on connections with kernel stamps.
    pub own_share: Option<f64>,
    /// Response time of the successful replies that completed in these parts, all to 0.4 %, the
    /// extremes too. Requests that were never answered count as in the response time of the whole
    /// window.
    pub response: Option<Latency>,
}

impl CleanSummary {
    pub(super) fn new(clean: Option<&Clean>, absent: &mut Absent) -> Option<Self> {
        let nothing = "the hypervisor took nothing, as far as is known";
        let clean = absent.known("clean", clean, nothing)?;
        absent.unless_withheld("clean")?;
        let Some(figures) = &clean.figures else {
            let reason = match clean.clean_ns {
                Some(_) => "the hypervisor left too little of the window",
                None => "when the hypervisor took time was not recorded",
            };
            if clean.clean_ns.is_none() {
                absent.note::<u64>("clean.clean_ns", reason);
            }
            for name in [
                "successes_per_s",
                "successes_interval_95",
                "own_share",
                "response",
            ] {
                absent.note::<f64>(&format!("clean.{name}"), reason);
            }
            return Some(Self {
                clean_ns: clean.clean_ns,
                successes_per_s: None,
                successes_interval_95: None,
                own_share: None,
                response: None,
            });
        };
        let path = "clean.successes_interval_95";
        let successes_interval_95 = match figures.successes_interval {
            Ok(interval) => Some(interval),
            Err(reason) => absent.note(path, &reason.to_string()),
        };
        let no_stamps = "no reply with kernel stamps";
        let own_share = absent.known("clean.own_share", figures.own_share, no_stamps);
        let quantile = |q| figures.response_quantile(q);
        let response =
            Latency::with_quantiles("clean.response", &figures.response, quantile, absent);
        Some(Self {
            clean_ns: clean.clean_ns,
            successes_per_s: Some(figures.successes_per_s),
            successes_interval_95,
            own_share,
            response: Some(response),
        })
    }
}
