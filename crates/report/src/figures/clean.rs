//! The figures of the parts of the window in which the hypervisor took nothing.

use brunt_judge::{Clean, CleanFigures, Figure, Judged, RateInterval};
use serde::Serialize;

use super::Latency;

/// What the hypervisor left of a window in which it took time from the CPUs that brunt or the
/// server used: figures of the parts in which it took nothing, beside those of the whole window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CleanSummary {
    /// Length of these parts, nanoseconds; null where it was not recorded when time was stolen. The
    /// figures need 2 s and half of the window, and are null with less.
    pub clean_ns: Figure<u64>,
    /// Successful replies per second of these parts.
    pub successes_per_s: Figure,
    /// How well that is known.
    pub successes_interval_95: Figure<RateInterval>,
    /// Brunt's own share (0 to 1) of the response times, on connections with kernel stamps.
    pub own_share: Figure,
    /// Response time of the successful replies that completed in these parts, all to 0.4 %, the
    /// extremes too. Requests that were never answered count as in the response time of the whole
    /// window.
    pub response: Figure<Latency>,
}

impl CleanSummary {
    pub(super) fn of(judged: &Judged<'_>) -> Figure<Self> {
        let nothing = "the hypervisor took nothing, as far as is known";
        let clean = Figure::of(judged.clean.as_ref(), nothing);
        let clean = match &clean {
            Figure::Known(_) => judged.rate(clean),
            Figure::Absent(_) => clean,
        };
        clean.map(Self::new)
    }

    fn new(clean: &Clean) -> Self {
        let unknown = "when the hypervisor took time was not recorded";
        let reason = match clean.clean_ns {
            Some(_) => "the hypervisor left too little of the window",
            None => unknown,
        };
        let figures = || Figure::of(clean.figures.as_ref(), reason);
        let interval = |it: &CleanFigures| Figure::from(it.successes_interval);
        let own = |it: &CleanFigures| Figure::of(it.own_share, "no reply with kernel stamps");
        let response =
            |it: &CleanFigures| Latency::with_quantiles(&it.response, |q| it.response_quantile(q));
        Self {
            clean_ns: Figure::of(clean.clean_ns, unknown),
            successes_per_s: figures().map(|it| it.successes_per_s),
            successes_interval_95: figures().and_then(interval),
            own_share: figures().and_then(own),
            response: figures().map(response),
        }
    }
}
