//! Whether one server is faster than another, from rounds of load on both that took turns.

use serde::{Deserialize, Serialize};

use crate::{PAIRS_LEAST, Paired, ROUND_QUANTILES, RoundRecord};

/// A difference below this is not worth a claim, however sure it is.
const CHANGE_LEAST: f64 = 0.01;
/// Share of the pairs that may be dropped.
const DROPPED_MOST: f64 = 0.2;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Compared {
    /// Successful replies per second: more is better.
    SuccessesPerS,
    /// A quantile (0 to 1) of the response time, one of [`ROUND_QUANTILES`]: less is better.
    ResponseQuantile(f64),
}

impl Compared {
    /// Whether more of it is better.
    pub fn is_better_if_more(self) -> bool {
        matches!(self, Self::SuccessesPerS)
    }
}

/// What rounds of two sides tell.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What was compared.
    pub compared: Compared,
    /// How many pairs of rounds were made.
    pub pairs: usize,
    /// The pairs that do not count, from 0, and why.
    pub dropped: Vec<(usize, String)>,
    /// The medians of side A and side B, over the pairs that count: per second, or nanoseconds.
    /// Absent without any.
    pub medians: Option<(f64, f64)>,
    /// The ratio of B over A. Absent with too few pairs.
    pub paired: Option<Paired>,
    /// What a comparison of each side with itself gave in the same rounds, at most, as a ratio less
    /// 1: no claim is made of less. Absent with too few pairs.
    pub noise: Option<f64>,
    /// What may be said.
    pub claim: Claim,
}

/// What may be said of a comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Claim {
    /// The sides differ.
    Differs,
    /// No difference was shown.
    NoDifference {
        /// A change (as a ratio less 1) that would have been seen.
        visible: f64,
    },
    /// Nothing, and why.
    Nothing(String),
}

impl Comparison {
    /// Compares two sides, whose rounds at the same place were made one after the other.
    pub fn of(compared: Compared, a: &[RoundRecord], b: &[RoundRecord]) -> Self {
        let pairs = a.iter().zip(b);
        let values = pairs.map(|(a, b)| Ok((value(compared, a)?, value(compared, b)?)));
        Self::of_values(compared, values)
    }

    /// The same of what was measured, or why a pair does not count.
    fn of_values(
        compared: Compared,
        values: impl Iterator<Item = Result<(f64, f64), String>>,
    ) -> Self {
        let mut dropped = Vec::new();
        let mut pairs = Vec::new();
        for (place, value) in values.enumerate() {
            match value {
                Ok(pair) => pairs.push(pair),
                Err(reason) => dropped.push((place, reason)),
            }
        }
        let paired = Paired::of(&pairs);
        let noise = noise(&pairs);
        let claim = claim(&pairs, &dropped, paired.as_ref(), noise);
        Self {
            compared,
            pairs: pairs.len() + dropped.len(),
            dropped,
            medians: medians(&pairs),
            paired,
            noise,
            claim,
        }
    }
}

/// What is compared, of one round; or why it does not count.
fn value(compared: Compared, round: &RoundRecord) -> Result<f64, String> {
    if let Some(reason) = round.is_no_measurement() {
        return Err(reason);
    }
    let (found, name) = match compared {
        Compared::SuccessesPerS => (round.successes_per_s, "successes_per_s"),
        Compared::ResponseQuantile(q) => {
            let known = ROUND_QUANTILES
                .iter()
                .find(|(_, known)| (known - q).abs() < 1e-9);
            let name = known.map_or("", |(name, _)| name);
            (round.response.quantile_ns(q).map(|ns| ns as f64), name)
        }
    };
    let missing = || match round.missing.get(name) {
        Some(reason) => reason.clone(),
        None => "nothing was measured".to_owned(),
    };
    found.filter(|value| *value > 0.0).ok_or_else(missing)
}

/// What each side differs from itself by, from one pair to the next.
fn noise(pairs: &[(f64, f64)]) -> Option<f64> {
    let of_side = |side: fn(&(f64, f64)) -> f64| {
        // The earlier and the later one in turn, so that a drift cancels out.
        let turns = pairs.windows(2).enumerate().map(|(place, two)| {
            let (one, other) = (side(&two[0]), side(&two[1]));
            if place % 2 == 0 {
                (one, other)
            } else {
                (other, one)
            }
        });
        let turns: Vec<_> = turns.collect();
        Paired::of(&turns).map(|paired| paired.change().value.abs())
    };
    let (a, b) = (of_side(|pair| pair.0)?, of_side(|pair| pair.1)?);
    Some(a.max(b))
}

fn claim(
    pairs: &[(f64, f64)],
    dropped: &[(usize, String)],
    paired: Option<&Paired>,
    noise: Option<f64>,
) -> Claim {
    let all = pairs.len() + dropped.len();
    if dropped.len() as f64 > DROPPED_MOST * all as f64 {
        let (_, first) = &dropped[0];
        return Claim::Nothing(format!(
            "{} of {all} pairs do not count ({first})",
            dropped.len()
        ));
    }
    let Some(paired) = paired else {
        return Claim::Nothing(format!(
            "{} pairs are too few; {PAIRS_LEAST} are the least",
            pairs.len()
        ));
    };
    let change = paired.change();
    let least = noise.unwrap_or(0.0).max(CHANGE_LEAST);
    let excludes_none = change.low > 0.0 || change.high < 0.0;
    if excludes_none && change.value.abs() > least {
        return Claim::Differs;
    }
    let half_width = (change.high - change.value).max(change.value - change.low);
    Claim::NoDifference {
        visible: half_width.max(least),
    }
}

/// The medians of both sides.
fn medians(pairs: &[(f64, f64)]) -> Option<(f64, f64)> {
    let median = |mut values: Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        Some(f64::midpoint(values[last / 2], values[last.div_ceil(2)]))
    };
    let (a, b) = pairs.iter().copied().unzip();
    Some((median(a)?, median(b)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Judged;
    use crate::invariants::sample::steady_run;
    use crate::noise::Noise;

    const A: [f64; 10] = [
        20_000.0, 20_200.0, 19_900.0, 20_100.0, 20_300.0, 19_800.0, 20_000.0, 20_200.0, 20_100.0,
        19_900.0,
    ];

    fn comparison(a: &[f64], b: &[f64]) -> Comparison {
        let pairs = a.iter().zip(b).map(|(a, b)| Ok((*a, *b)));
        Comparison::of_values(Compared::SuccessesPerS, pairs)
    }

    #[test]
    fn a_clear_difference_is_claimed() {
        let faster = comparison(&A, &A.map(|per_s| per_s * 1.05));
        assert_eq!(faster.claim, Claim::Differs, "{faster:?}");
        let change = faster.paired.expect("enough").change();
        assert!(change.low <= 0.051 && change.high >= 0.049, "{change:?}");
        let (a, b) = faster.medians.expect("some");
        assert!(a < b);
    }

    #[test]
    fn what_is_small_or_unsure_is_not() {
        // Half a percent, though sure.
        let same = comparison(&A, &A.map(|per_s| per_s * 1.005));
        assert!(matches!(same.claim, Claim::NoDifference { visible } if visible >= 0.01));
        // The rounds of one side differ more than the sides.
        let mut other = A;
        other.rotate_left(3);
        let noisy = comparison(&A, &other);
        assert!(
            matches!(noisy.claim, Claim::NoDifference { .. }),
            "{noisy:?}"
        );
    }

    #[test]
    fn rounds_that_do_not_count_are_dropped_with_their_pairs() {
        let drop = |count: usize| {
            let pairs = A.iter().enumerate().map(|(place, a)| match place < count {
                true => Err("why".to_owned()),
                false => Ok((*a, *a)),
            });
            Comparison::of_values(Compared::SuccessesPerS, pairs)
        };
        let few = drop(2);
        assert_eq!(few.dropped.len(), 2);
        assert!(matches!(few.claim, Claim::NoDifference { .. }), "{few:?}");
        let many = drop(3);
        assert!(
            matches!(&many.claim, Claim::Nothing(why) if why.contains("3 of 10")),
            "{many:?}"
        );
    }

    #[test]
    fn rounds_give_what_is_compared_or_why_they_do_not_count() {
        let (whole, mut broken) = (steady_run(), steady_run());
        broken.agents[0].workers[0].tallies.measure.requests_sent += 1_000_000;
        let record = |run| RoundRecord::of(&Judged::of(run));
        let (whole, broken) = (record(&whole), record(&broken));
        let rate = value(Compared::SuccessesPerS, &whole).expect("it counts");
        let p50_ns = value(Compared::ResponseQuantile(0.5), &whole).expect("it counts");
        assert!(rate > 1_000.0, "{rate}");
        assert!((900_000.0..1_100_000.0).contains(&p50_ns), "{p50_ns}");
        let mut few = whole.clone();
        few.response.p99_9_ns = None;
        let reason = "3 replies, 3,688 are needed".to_owned();
        few.missing.insert("p99.9".to_owned(), reason.clone());
        assert_eq!(value(Compared::ResponseQuantile(0.999), &few), Err(reason));
        let reason = value(Compared::SuccessesPerS, &broken).expect_err("it is broken");
        assert!(reason.contains("withheld"), "{reason}");
        let (a, b) = ([whole.clone(), whole.clone()], [whole, broken]);
        let pairs = Comparison::of(Compared::SuccessesPerS, &a, &b);
        assert_eq!((pairs.pairs, pairs.dropped.len()), (2, 1));
    }

    /// Of `repetitions` comparisons whose B is `ratio` times A, rounds varying by 2 %: the share in
    /// which a difference is claimed, and in which the interval holds the ratio.
    fn repeated(ratio: f64, repetitions: u64) -> (f64, f64) {
        let (mut claims, mut holds) = (0, 0);
        for seed in 0..repetitions {
            let mut noise = Noise::new(seed.into());
            let mut round = |mean: f64| mean * (0.02 * noise.normal()).exp();
            let pairs: Vec<_> = (0..10)
                .map(|_| (round(1_000.0), round(1_000.0 * ratio)))
                .collect();
            let paired = Paired::of(&pairs).expect("enough");
            let claim = claim(&pairs, &[], Some(&paired), super::noise(&pairs));
            claims += u64::from(claim == Claim::Differs);
            let change = paired.change();
            holds += u64::from((change.low..=change.high).contains(&(ratio - 1.0)));
        }
        let share = |count: u64| count as f64 / repetitions as f64;
        (share(claims), share(holds))
    }

    #[test]
    fn a_server_is_no_faster_than_itself() {
        let (claims, holds) = repeated(1.0, 1_000);
        assert!(claims <= 0.05, "{claims}");
        assert!(holds >= 0.93, "{holds}");
    }

    #[test]
    fn five_percent_are_found() {
        let (claims, holds) = repeated(0.95, 1_000);
        assert!(claims >= 0.9, "{claims}");
        assert!(holds >= 0.93, "{holds}");
    }

    #[test]
    fn too_few_pairs_tell_nothing() {
        let few = comparison(&A[..5], &A[..5]);
        assert!(
            matches!(&few.claim, Claim::Nothing(why) if why.contains("too few")),
            "{few:?}"
        );
        let none = comparison(&[], &[]);
        assert!(matches!(none.claim, Claim::Nothing(_)) && none.medians.is_none());
    }
}
