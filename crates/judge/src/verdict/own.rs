//! How much of the response times is brunt's own.

use brunt_load::LoadModel;
use brunt_record::Run;

use super::facts::{RunFacts, ratio};
use super::thresholds::OWN_SAMPLES_LEAST;
use crate::Quantile;
use crate::units::short::{duration, percent};

/// Brunt's own part of an open loop's response times at p50 or p99, as a share of them. Above this
/// and [`OWN_LARGE_NS`], they are not the server's. Either alone is a clause beside the verdict.
const OWN_LARGE_SHARE: f64 = 0.20;
/// Brunt's own part of an open loop's response times at p50 or p99, nanoseconds. Above this and
/// [`OWN_LARGE_SHARE`], they are not the server's.
const OWN_LARGE_NS: f64 = 100_000.0;
/// Brunt's own part of a quantile that is quoted, as a share of it. Above this and
/// [`OWN_LARGE_NS`], no report calls the figures sound.
const OWN_MOST_SHARE: f64 = 0.50;

/// The quantiles that reports quote.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];

/// Brunt's own part of the response times at a quantile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OwnPart {
    /// The quantile's name.
    pub of: &'static str,
    /// The share (0 to 1) that the part has of the response time at that quantile.
    pub share: f64,
    /// The length of the part, nanoseconds.
    pub ns: f64,
}

impl OwnPart {
    /// The part `ns` of `response_ns`, where that is more than `share` of it, and large.
    fn over(of: &'static str, ns: f64, response_ns: f64, share: f64) -> Option<Self> {
        let found = ratio(ns, response_ns)?.min(1.0);
        (found > share && ns > OWN_LARGE_NS).then_some(Self {
            of,
            share: found,
            ns,
        })
    }

    /// Whether it is that of a few slow requests, not of half of them.
    pub(super) fn is_of_tail(&self) -> bool {
        self.of != "p50"
    }
}

fn known_ns(quantile: Quantile) -> Option<f64> {
    match quantile {
        Quantile::Known { ns, .. } => Some(ns as f64),
        Quantile::AtLeast { .. } | Quantile::TooFew { .. } => None,
    }
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
            None => self.run.latencies.split.mean()?.own_share(),
        }
    }

    /// Brunt's own share of the response times above p99, on connections with kernel stamps. Absent
    /// with too few of them, and where the verdict is found on parts of the window: it is not kept
    /// over time.
    pub(super) fn own_share_of_p99(&self) -> Option<f64> {
        if self.clean.is_some() {
            return None;
        }
        self.run.latencies.split.known_tail(0.99).ok()?.own_share()
    }

    /// The quantile of the response time of which brunt's own part is large, and not small: the
    /// median first. Absent where the verdict is found on a part of the window.
    pub(super) fn own_of_quantiles(&self) -> Option<OwnPart> {
        if self.clean.is_some() {
            return None;
        }
        first_part(self.run, &[("p50", 0.5), ("p99", 0.99)], OWN_LARGE_SHARE)
    }

    /// The first quantile that is quoted most of which is brunt's own, of what the verdict is found
    /// on.
    pub(super) fn mostly_own(&self) -> Option<OwnPart> {
        let Some(clean) = self.clean else {
            return first_part(self.run, &QUANTILES, OWN_MOST_SHARE);
        };
        // Over time, the parts are not kept: what is longer than it is without brunt's own in the
        // whole window is brunt's.
        let rest = &self.run.latencies.split.rest;
        let mut parts = QUANTILES.into_iter().filter_map(|(of, q)| {
            let response_ns = known_ns(clean.response_quantile(q))?;
            let ns = response_ns - known_ns(Quantile::of(rest, q))?;
            OwnPart::over(of, ns, response_ns, OWN_MOST_SHARE)
        });
        parts.next()
    }
}

/// The first of these quantiles of the response time of which brunt's own part is over `share`, and
/// large. By kernel stamps where those are enough, else by the schedule lag, which is known of each
/// request.
fn first_part(run: &Run, quantiles: &[(&'static str, f64)], share: f64) -> Option<OwnPart> {
    let latencies = &run.latencies;
    let by_stamps = quantiles.iter().filter_map(|&(of, q)| {
        // What is above p90 is as much of the slowest as of it.
        let parts = if q > 0.9 {
            latencies.split.known_tail(q).ok()?
        } else {
            let is_known = latencies.split.count() >= OWN_SAMPLES_LEAST;
            latencies.split.around(q).filter(|_| is_known)?
        };
        OwnPart::over(of, parts.own_ns(), parts.response_ns(), share)
    });
    let is_open = matches!(run.plan.model, LoadModel::Open { .. });
    let planned = quantiles.iter().filter(|_| is_open);
    let by_lag = planned.filter_map(|&(of, q)| {
        let lag_ns = known_ns(Quantile::of(&latencies.lag, q))?;
        let response_ns = known_ns(Quantile::of(&latencies.response, q))?;
        OwnPart::over(of, lag_ns, response_ns, share)
    });
    by_stamps.chain(by_lag).next()
}

/// How much of a quantile of the response time is brunt's own, in words, where that is much.
pub(crate) fn own_part_of(run: &Run, name: &'static str, q: f64) -> Option<String> {
    let part = first_part(run, &[(name, q)], OWN_LARGE_SHARE)?;
    let (share, length) = (percent(part.share), duration(part.ns));
    Some(format!("{share} of {name}, {length}, is brunt's own"))
}
