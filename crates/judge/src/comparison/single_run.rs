//! What one stored run shows of a server by itself: intervals from how it varied over its window,
//! and the ratio of two runs that follows from those.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Compared, Effect, Judged, Quantile, ROUND_QUANTILES, ResponseQuantiles};

/// A 95 % interval of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// A stored run: where it is from, and the 95 % intervals of its figures from how it varied over
/// its window. How much runs vary from one to the next is not in them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SingleRun {
    /// The file that it is stored in, as it was typed.
    pub file: String,
    /// Version of brunt that made it.
    pub brunt_version: String,
    /// Interval of the successful replies per second; null where it is not known.
    pub successes_per_s: Option<Range>,
    /// Interval of the median of the response time, nanoseconds; null where it is not known.
    pub p50_ns: Option<Range>,
    /// Interval of the 90th percentile of the response time, nanoseconds; null where it is not
    /// known.
    pub p90_ns: Option<Range>,
    /// Interval of the 99th percentile of the response time, nanoseconds; null where it is not
    /// known.
    pub p99_ns: Option<Range>,
    /// Interval of the 99.9th percentile of the response time, nanoseconds; null where it is not
    /// known.
    pub p99_9_ns: Option<Range>,
    /// Why an interval is null, by its name, such as `p99` or `successes_per_s`.
    pub missing: BTreeMap<String, String>,
}

impl SingleRun {
    /// The intervals of a run, which is stored in `file`.
    pub fn of(judged: &Judged<'_>, file: String) -> Self {
        let mut missing = BTreeMap::new();
        let successes_per_s = match judged.successes_interval() {
            Ok(interval) => Some(Range {
                low: interval.low_per_s,
                high: interval.high_per_s,
            }),
            Err(reason) => {
                missing.insert("successes_per_s".to_owned(), reason.to_string());
                None
            }
        };
        let [p50_ns, p90_ns, p99_ns, p99_9_ns] = ROUND_QUANTILES.map(|(name, q)| {
            // Why a quantile is not known stands in the round's own record.
            let Quantile::Known { interval, .. } = judged.response_quantile(q) else {
                return None;
            };
            match interval {
                Ok(interval) => Some(Range {
                    low: interval.low_ns as f64,
                    high: interval.high_ns as f64,
                }),
                Err(reason) => {
                    missing.insert(name.to_owned(), reason.to_string());
                    None
                }
            }
        });
        Self {
            file,
            brunt_version: judged.run.brunt_version.clone(),
            successes_per_s,
            p50_ns,
            p90_ns,
            p99_ns,
            p99_9_ns,
            missing,
        }
    }

    /// The interval of what is compared.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(crate) fn range(&self, compared: Compared) -> Result<Range, String> {
        let (found, name) = match compared {
            Compared::SuccessesPerS => (self.successes_per_s, "successes_per_s"),
            Compared::ResponseQuantile(q) => {
                let ranges = [self.p50_ns, self.p90_ns, self.p99_ns, self.p99_9_ns];
                let mut known = ROUND_QUANTILES.iter().zip(ranges);
                let found = known.find(|((_, known), _)| (known - q).abs() < 1e-9);
                found.map_or((None, ""), |((name, _), range)| (range, *name))
            }
            Compared::CapacityPerS | Compared::ServerCpu => (None, ""),
        };
        found.ok_or_else(|| match self.missing.get(name) {
            Some(reason) => format!("it has no interval: {reason}"),
            None => "it has no interval".to_owned(),
        })
    }
}

/// The logarithm of the ratio of `b` over `a`, two independent figures above 0 with an interval
/// each: its interval by the variance estimates recovered from theirs (MOVER; Zou and Donner:
/// Construction of confidence limits about effect measures, Statistics in Medicine 27, 2008).
/// Absent where a logarithm is not finite, or a figure lies outside of its interval.
pub(crate) fn log_ratio(a: (f64, Range), b: (f64, Range)) -> Option<Effect> {
    let log = |(value, range): (f64, Range)| {
        let is_within = range.low <= value && value <= range.high;
        let log = (value.ln(), range.low.ln(), range.high.ln());
        let is_finite = [log.0, log.1, log.2].into_iter().all(f64::is_finite);
        (is_within && is_finite).then_some(log)
    };
    let ((a, a_low, a_high), (b, b_low, b_high)) = (log(a)?, log(b)?);
    let value = b - a;
    Some(Effect {
        value,
        low: value - (b - b_low).hypot(a_high - a),
        high: value + (b_high - b).hypot(a - a_low),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RunFigures;
    use crate::invariants::sample::steady_run;
    use crate::statistics::noise::Noise;

    fn with(value: f64, low: f64, high: f64) -> (f64, Range) {
        (value, Range { low, high })
    }

    #[test]
    fn a_ratio_has_the_margins_of_both_in_squares() {
        let margins = |a, b| log_ratio(a, b).expect("figures above 0");
        // 3 and 4 make 5, on each side for itself.
        let even = |value: f64, by: f64| with(value, value / by.exp(), value * by.exp());
        let found = margins(even(10.0, 0.03), even(20.0, 0.04));
        assert!((found.value - 2.0_f64.ln()).abs() < 1e-12, "{found:?}");
        assert!((found.value - found.low - 0.05).abs() < 1e-12, "{found:?}");
        assert!((found.high - found.value - 0.05).abs() < 1e-12, "{found:?}");
        // What A may be more, B's share of it may be less.
        let a = with(1.0, 1.0, 0.03_f64.exp());
        let b = with(1.0, (-0.04_f64).exp(), 1.0);
        let found = margins(a, b);
        assert!(
            (found.low + 0.05).abs() < 1e-12 && found.high.abs() < 1e-12,
            "{found:?}"
        );
    }

    #[test]
    fn what_has_no_logarithm_has_no_ratio() {
        let sound = with(1.0, 0.5, 2.0);
        assert!(log_ratio(sound, sound).is_some());
        for odd in [
            with(0.0, 0.0, 2.0),
            with(1.0, 0.0, 2.0),
            with(1.0, -1.0, 2.0),
            with(1.0, 0.5, f64::INFINITY),
            with(f64::NAN, 0.5, 2.0),
            with(3.0, 0.5, 2.0),
        ] {
            assert_eq!(log_ratio(sound, odd), None, "{odd:?}");
            assert_eq!(log_ratio(odd, sound), None, "{odd:?}");
        }
    }

    #[test]
    fn the_interval_holds_the_ratio_as_often_as_it_says() {
        let mut noise = Noise::new(7);
        let mut holds = 0;
        for _ in 0..4_000 {
            // A figure whose logarithm is off by a known deviation, with its exact interval.
            let mut figure = |mean: f64, deviation: f64| {
                let value = mean * (deviation * noise.normal()).exp();
                let by = (1.96 * deviation).exp();
                with(value, value / by, value * by)
            };
            let (a, b) = (figure(1_000.0, 0.01), figure(1_050.0, 0.02));
            let Effect { low, high, .. } = log_ratio(a, b).expect("figures above 0");
            holds += u32::from((low..=high).contains(&1.05_f64.ln()));
        }
        let share = f64::from(holds) / 4_000.0;
        assert!((0.94..0.96).contains(&share), "{share}");
    }

    #[test]
    fn a_run_gives_its_intervals_or_why_there_is_none() {
        let run = steady_run();
        let single = SingleRun::of(&Judged::of(&run), "a.json".to_owned());
        let rate = single.successes_per_s.expect("a steady rate");
        let per_s = run.summary().successes_per_s.known().expect("a rate");
        assert!(rate.low <= per_s && per_s <= rate.high, "{rate:?}");
        assert_eq!(single.range(Compared::SuccessesPerS), Ok(rate));
        let p50 = single.range(Compared::ResponseQuantile(0.5));
        assert_eq!(p50.ok(), single.p50_ns);
        let error = single.range(Compared::ResponseQuantile(0.42));
        assert_eq!(error, Err("it has no interval".to_owned()));
        let mut short = run;
        short.window_ns = 0;
        let single = SingleRun::of(&Judged::of(&short), String::new());
        let error = single
            .range(Compared::SuccessesPerS)
            .expect_err("no window");
        assert!(
            error.ends_with(&single.missing["successes_per_s"]),
            "{error}"
        );
    }
}
