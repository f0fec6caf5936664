//! The percentile spectrum of the response times, in the steps of HdrHistogram.

use brunt_record::{Histogram, Run};
use serde::Serialize;

/// Steps per half of the remaining distance to 100 %, as HdrHistogram's tools print them.
const STEPS_PER_HALF: u32 = 5;
/// How far a quantile may differ by what was never answered, and still be known: as in
/// [`Run::response_quantile`].
const UNFINISHED_DIFFER: f64 = 0.01;

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Step {
    /// No response time up to `quantile` is above it.
    pub(crate) ns: u64,
    /// 0 to 1.
    pub(crate) quantile: f64,
    /// Response times up to `ns`.
    pub(crate) count: u64,
    /// Whether `ns` is a lower bound.
    pub(crate) is_bound: bool,
}

/// Response times of successful replies and, as the least they can have been, those of what was
/// never answered.
#[derive(Debug, Serialize)]
pub(crate) struct Spectrum {
    /// The steps from the smallest value to 100 %; empty without a value.
    pub(crate) steps: Vec<Step>,
    /// How many of the values are lower bounds.
    pub(crate) bounds: u64,
    /// The smallest lower bound.
    pub(crate) bounds_from_ns: Option<u64>,
    /// How many values there are.
    pub(crate) count: u64,
    /// The values in one histogram.
    #[serde(skip)]
    pub(crate) values: Histogram,
}

impl Spectrum {
    /// Durations of which all ended.
    pub(crate) fn of(values: &Histogram) -> Self {
        Self {
            steps: steps(values, values),
            bounds: 0,
            bounds_from_ns: None,
            count: values.count(),
            values: values.clone(),
        }
    }

    /// The response times of `run`.
    pub(crate) fn of_response(run: &Run) -> Self {
        let unfinished = &run.latencies.unfinished;
        let mut values = run.latencies.response.clone();
        values.merge(unfinished);
        Self {
            steps: steps(&values, &run.latencies.response),
            bounds: unfinished.count(),
            bounds_from_ns: unfinished.min_ns(),
            count: values.count(),
            values,
        }
    }
}

/// The steps of `values`, which are those of `finished` and lower bounds.
fn steps(values: &Histogram, finished: &Histogram) -> Vec<Step> {
    let (Some(min_ns), Some(max_ns)) = (values.min_ns(), values.max_ns()) else {
        return Vec::new();
    };
    let mut count = 0_u64;
    values
        .buckets()
        .iter_quantiles(STEPS_PER_HALF)
        .map(|step| {
            count = count.saturating_add(step.count_since_last_iteration());
            let quantile = step.quantile_iterated_to();
            // A bucket is known by its upper edge; the extremes are known exactly. What is beyond
            // the buckets is in the last one.
            let ns = if quantile < 1.0 {
                step.value_iterated_to().clamp(min_ns, max_ns)
            } else {
                max_ns
            };
            Step {
                ns,
                quantile,
                count,
                is_bound: is_bound(values, finished, quantile, ns),
            }
        })
        .collect()
}

/// Whether the quantile, `ns` with unfinished requests at their bounds, is higher if they take
/// for ever.
fn is_bound(values: &Histogram, finished: &Histogram, quantile: f64, ns: u64) -> bool {
    if values.count() == finished.count() {
        return false;
    }
    let rank = (values.count() as f64 * quantile).ceil();
    let finished_quantile = rank / finished.count() as f64;
    let most_ns = if finished_quantile <= 1.0 {
        finished.quantile_ns(finished_quantile)
    } else {
        None
    };
    most_ns.is_none_or(|most_ns| most_ns as f64 > ns as f64 * (1.0 + UNFINISHED_DIFFER))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        values.into_iter().for_each(|ns| histogram.record(ns));
        histogram
    }

    #[test]
    fn steps_halve_the_rest_and_end_with_the_exact_maximum() {
        let values = of((1..=1_000).map(|index| index * 1_000));
        let steps = steps(&values, &values);
        let percents: Vec<f64> = steps
            .iter()
            .map(|step| (step.quantile * 1e6).round() / 1e4)
            .collect();
        assert_eq!(percents[..7], [0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 55.0]);
        assert_eq!(percents[10..13], [75.0, 77.5, 80.0]);
        assert_eq!(steps[5].count, 500);
        let last = steps.last().unwrap();
        assert_eq!(
            (last.ns, last.quantile, last.count),
            (1_000_000, 1.0, 1_000)
        );
        assert!(steps.iter().all(|step| !step.is_bound));
    }

    #[test]
    fn a_step_is_a_bound_where_the_unfinished_could_move_it() {
        let finished = (1..=900).map(|index| index * 1_000);
        // Bounds, and the quantile from which on they matter.
        for (bound_ns, from) in [(2_000_000, 0.9), (1_000, 0.0), (0, -1.0)] {
            let finished = of(finished.clone());
            let mut values = of([bound_ns; 100]);
            values.merge(&finished);
            for step in steps(&values, &finished) {
                let at = (bound_ns, step.quantile);
                assert_eq!(step.is_bound, step.quantile > from, "{at:?}");
            }
        }
    }

    #[test]
    fn nothing_recorded_has_no_step() {
        assert_eq!(steps(&Histogram::default(), &Histogram::default()), []);
    }
}
