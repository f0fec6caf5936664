//! Durations that never ended, of which lower bounds are known, beside those that did.

use std::borrow::Cow;

use crate::Histogram;

/// `finished` durations and `unfinished` ones, as the least that they can have been.
pub fn with_bounds<'a>(finished: &'a Histogram, unfinished: &Histogram) -> Cow<'a, Histogram> {
    if unfinished.count() == 0 {
        return Cow::Borrowed(finished);
    }
    let mut merged = finished.clone();
    merged.merge(unfinished);
    Cow::Owned(merged)
}

/// The least that the mean of all can be, nanoseconds, with the `unfinished` at their bounds;
/// absent where none is unfinished.
pub fn mean_at_least_ns(finished: &Histogram, unfinished: &Histogram) -> Option<u64> {
    if unfinished.count() == 0 {
        return None;
    }
    let sum_ns = finished.sum_ns() as f64 + unfinished.sum_ns() as f64;
    let count = finished.count() as f64 + unfinished.count() as f64;
    Some((sum_ns / count) as u64)
}

/// The least that the longest of all can be, nanoseconds, with the `unfinished` at their bounds;
/// absent where none is unfinished.
pub fn max_at_least_ns(finished: &Histogram, unfinished: &Histogram) -> Option<u64> {
    let bound_ns = unfinished.max_ns()?;
    Some(finished.max_ns().map_or(bound_ns, |ns| ns.max(bound_ns)))
}
