//! How much of the response times is brunt's own.

use brunt_record::{MeanParts, Run};

use super::facts::{RunFacts, ratio};
use super::thresholds::{OWN_LARGE_NS, OWN_LARGE_SHARE, OWN_SAMPLES_LEAST};
use super::words::{duration, percent};
use crate::Quantile;

/// Brunt's own part of the response times at a quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OwnPart {
    /// The quantile's name.
    pub(super) of: &'static str,
    /// The share that the part has of the response time at that quantile.
    pub(super) share: f64,
    /// The length of the part, nanoseconds.
    pub(super) ns: f64,
}

impl OwnPart {
    /// Whether it is that of a few slow requests, not of half of them.
    pub(super) fn is_of_tail(&self) -> bool {
        self.of != "p50"
    }
}

fn own_share_of(parts: Option<MeanParts>) -> Option<f64> {
    let parts = parts?;
    ratio(parts.own_ns(), parts.response_ns())
}

impl RunFacts<'_> {
    /// Schedule lag at p99, nanoseconds. Absent in a closed loop, with too few arrivals, and where
    /// the verdict is found on a part of the window of which the own share is known: over time it
    /// is not kept.
    pub(super) fn lag_ns_p99(&self) -> Option<f64> {
        if self.clean.is_some_and(|clean| clean.own_share.is_some()) {
            return None;
        }
        match Quantile::of(&self.run.latencies.lag, 0.99) {
            Quantile::Known { ns, .. } if !self.is_closed() => Some(ns as f64),
            _ => None,
        }
    }

    /// Brunt's own share of the response times on connections with kernel stamps, over the parts of
    /// the window that the verdict is found on.
    pub(super) fn own_share(&self) -> Option<f64> {
        match self.clean {
            Some(clean) => clean.own_share,
            None => own_share_of(self.run.latencies.split.mean()),
        }
    }

    /// Brunt's own share of the response times above p99, on connections with kernel stamps. Absent
    /// with too few of them, and where the verdict is found on parts of the window: it is not kept
    /// over time.
    pub(super) fn own_share_of_p99(&self) -> Option<f64> {
        if self.clean.is_some() {
            return None;
        }
        own_share_of(self.run.latencies.split.known_tail(0.99).ok())
    }

    /// The quantile of the response time of which brunt's own part is large, and not small: the
    /// median first. By kernel stamps where those are enough, else by the schedule lag, which is
    /// known of each request. Absent where the verdict is found on a part of the window.
    pub(super) fn own_of_quantiles(&self) -> Option<OwnPart> {
        if self.clean.is_some() {
            return None;
        }
        large_part(self.run, &[("p50", 0.5), ("p99", 0.99)])
    }
}

/// The first of these quantiles of the response time of which brunt's own part is large.
fn large_part(run: &Run, quantiles: &[(&'static str, f64)]) -> Option<OwnPart> {
    let latencies = &run.latencies;
    let stamped = latencies.split.count() >= OWN_SAMPLES_LEAST;
    let by_stamps = quantiles.iter().map(|&(of, q)| {
        let parts = if q == 0.5 {
            latencies.split.around(q).filter(|_| stamped)?
        } else {
            latencies.split.known_tail(q).ok()?
        };
        Some((of, parts.own_ns(), parts.response_ns()))
    });
    let by_lag = quantiles.iter().map(|&(of, q)| {
        let known = |quantile| match quantile {
            Quantile::Known { ns, .. } => Some(ns as f64),
            _ => None,
        };
        let lag_ns = known(Quantile::of(&latencies.lag, q))?;
        Some((of, lag_ns, known(Quantile::of(&latencies.response, q))?))
    });
    let mut large = by_stamps
        .chain(by_lag)
        .flatten()
        .filter_map(|(of, ns, response_ns)| {
            let share = ratio(ns, response_ns)?.min(1.0);
            (share > OWN_LARGE_SHARE && ns > OWN_LARGE_NS).then_some(OwnPart { of, share, ns })
        });
    large.next()
}

/// How much of a quantile of the response time is brunt's own, in words, where that is much.
pub(crate) fn own_part_of(run: &Run, name: &'static str, q: f64) -> Option<String> {
    let part = large_part(run, &[(name, q)])?;
    Some(format!(
        "{} of {name}, {}, is brunt's own",
        percent(part.share),
        duration(part.ns)
    ))
}
