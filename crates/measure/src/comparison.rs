//! Whether one server is faster than another, from rounds of load on both that took turns, from a
//! stored run of each, or from a search for the capacity of each.

use serde::Serialize;

use crate::single_run::log_ratio;
use crate::{
    Capacity, CapacityResult, Compared, Effect, PAIRS_LEAST, Paired, ROUND_QUANTILES, RoundRecord,
    SingleRun,
};

/// A difference below this is not worth a claim, however sure it is.
const CHANGE_LEAST: f64 = 0.01;
/// Share of the pairs that may be dropped.
const DROPPED_MOST: f64 = 0.2;

/// What a comparison rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Pairs of rounds: how rounds vary is in the interval.
    Pairs,
    /// A stored run of each side: how each varied over its window is in the interval, and how runs
    /// vary from one to the next is not.
    SingleRuns,
    /// A search of each side: the interval goes from the rates that held to those that missed, and
    /// how searches vary is not in it.
    Searches,
}

/// What rounds, runs or searches of two sides show.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What was compared.
    pub compared: Compared,
    /// What it rests on.
    pub basis: Basis,
    /// How many pairs of rounds were made, or of runs or searches: 1.
    pub pairs: usize,
    /// The pairs that do not count, from 0, and why.
    pub dropped: Vec<(usize, String)>,
    /// The medians of side A and side B, over the pairs that count: per second, or nanoseconds.
    /// Absent without any.
    pub medians: Option<(f64, f64)>,
    /// The ratio of B over A, less 1, with its interval. Absent with too few pairs, or where a run
    /// has no interval.
    pub change: Option<Effect>,
    /// How often a difference like this or larger comes by chance if there is none. Absent with too
    /// few pairs, and without rounds in turns.
    pub p_value: Option<f64>,
    /// What a comparison of each side with itself gave in the same rounds, at most, as a ratio less
    /// 1: no claim is made of less. Absent with too few pairs, and without rounds in turns.
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
            basis: Basis::Pairs,
            pairs: pairs.len() + dropped.len(),
            dropped,
            medians: medians(&pairs),
            change: paired.as_ref().map(Paired::change),
            p_value: paired.map(|paired| paired.p_value),
            noise,
            claim,
        }
    }

    /// Compares a stored run of each side: its figures, and the intervals that it has by itself.
    pub fn of_single_runs(
        compared: Compared,
        a: (Option<&RoundRecord>, &SingleRun),
        b: (Option<&RoundRecord>, &SingleRun),
    ) -> Self {
        let figure = |(round, single): (Option<&RoundRecord>, &SingleRun)| {
            let round = round.ok_or("no figures are stored")?;
            let value = value(compared, round)?;
            Ok((value, single.range(compared)))
        };
        let (a, b) = match both(figure(a), figure(b)) {
            Ok(both) => both,
            Err(reason) => return Self::nothing(compared, Basis::SingleRuns, None, reason),
        };
        let medians = Some((a.0, b.0));
        let ratio = both(a.1, b.1).and_then(|ranges| {
            let ratio = log_ratio((a.0, ranges.0), (b.0, ranges.1));
            ratio.ok_or_else(|| "an interval reaches down to 0".to_owned())
        });
        match ratio {
            Ok(ratio) => Self::of_change(compared, Basis::SingleRuns, medians, change_of(ratio)),
            Err(reason) => Self::nothing(compared, Basis::SingleRuns, medians, reason),
        }
    }

    /// Compares the capacities that a search of each side found.
    pub fn of_searches(a: Option<&Capacity>, b: Option<&Capacity>) -> Self {
        let (compared, basis) = (Compared::CapacityPerS, Basis::Searches);
        let ((a, a_missed), (b, b_missed)) = match both(searched(a), searched(b)) {
            Ok(both) => both,
            Err(reason) => return Self::nothing(compared, basis, None, reason),
        };
        let change = Effect {
            value: b / a - 1.0,
            low: b / a_missed - 1.0,
            high: b_missed / a - 1.0,
        };
        Self::of_change(compared, basis, Some((a, b)), change)
    }

    /// Whether nothing can be said.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self.claim, Claim::Nothing(_))
    }

    fn of_change(
        compared: Compared,
        basis: Basis,
        medians: Option<(f64, f64)>,
        change: Effect,
    ) -> Self {
        Self {
            compared,
            basis,
            pairs: 1,
            dropped: Vec::new(),
            medians,
            change: Some(change),
            p_value: None,
            noise: None,
            claim: claim_of(change, CHANGE_LEAST),
        }
    }

    fn nothing(
        compared: Compared,
        basis: Basis,
        medians: Option<(f64, f64)>,
        reason: String,
    ) -> Self {
        Self {
            compared,
            basis,
            pairs: 1,
            dropped: Vec::new(),
            medians,
            change: None,
            p_value: None,
            noise: None,
            claim: Claim::Nothing(reason),
        }
    }
}

/// Both, or why they are not: where one does not count, or neither.
fn both<T>(a: Result<T, String>, b: Result<T, String>) -> Result<(T, T), String> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(reason), Err(of_b)) if reason == of_b => Err(format!("neither counts ({reason})")),
        (Err(reason), _) => Err(format!("the first does not count ({reason})")),
        (_, Err(reason)) => Err(format!("the second does not count ({reason})")),
    }
}

/// A ratio less 1, of its logarithm.
fn change_of(log_ratio: Effect) -> Effect {
    Effect {
        value: log_ratio.value.exp_m1(),
        low: log_ratio.low.exp_m1(),
        high: log_ratio.high.exp_m1(),
    }
}

/// The rate that holds and the one that misses; or why there are not both.
fn searched(capacity: Option<&Capacity>) -> Result<(f64, f64), String> {
    let capacity = capacity.ok_or("no search was made")?;
    Err(match capacity.result() {
        CapacityResult::Found {
            rate_per_s,
            missed_per_s,
        } if rate_per_s > 0.0 && missed_per_s.is_finite() => return Ok((rate_per_s, missed_per_s)),
        CapacityResult::Found { .. } => "the rates are none".to_owned(),
        CapacityResult::AtLeast { .. } => "no rate missed, up to --max-rate".to_owned(),
        CapacityResult::ClientLimited { .. } => "brunt was the limit".to_owned(),
        CapacityResult::NotMet { .. } => "no rate held".to_owned(),
        CapacityResult::Nothing { reason, .. } => reason,
    })
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
        Compared::CapacityPerS => (None, ""),
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
    claim_of(paired.change(), noise.unwrap_or(0.0).max(CHANGE_LEAST))
}

/// What may be said of a change, of which less than `least` is none.
fn claim_of(change: Effect, least: f64) -> Claim {
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
        let change = faster.change.expect("enough");
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
    fn two_runs_are_compared_by_their_own_intervals() {
        let run = steady_run();
        let record = RoundRecord::of(&Judged::of(&run));
        let single = SingleRun::of(&run, "a.json".to_owned());
        let compare = |other: &RoundRecord, of_other: &SingleRun| {
            let sides = ((Some(&record), &single), (Some(other), of_other));
            Comparison::of_single_runs(Compared::SuccessesPerS, sides.0, sides.1)
        };
        let same = compare(&record, &single);
        assert_eq!((same.basis, same.pairs), (Basis::SingleRuns, 1));
        assert!(matches!(same.claim, Claim::NoDifference { .. }), "{same:?}");
        let scaled = |ratio: f64| {
            let (mut other, mut of_other) = (record.clone(), single.clone());
            other.successes_per_s = record.successes_per_s.map(|per_s| per_s * ratio);
            let range = of_other.successes_per_s.as_mut().expect("a steady rate");
            (range.low, range.high) = (range.low * ratio, range.high * ratio);
            (other, of_other)
        };
        let (other, of_other) = scaled(1.5);
        let faster = compare(&other, &of_other);
        assert_eq!(faster.claim, Claim::Differs, "{faster:?}");
        let change = faster.change.expect("two intervals");
        assert!((change.value - 0.5).abs() < 1e-9, "{change:?}");
        assert!(change.low < 0.5 && change.high > 0.5, "{change:?}");
        // What does not count, or has no interval, decides nothing.
        let mut limited = other.clone();
        limited.verdict = crate::Verdict::ClientLimited;
        let nothing = compare(&limited, &of_other);
        let reason = "the second does not count (brunt was the limit)".to_owned();
        assert_eq!(nothing.claim, Claim::Nothing(reason));
        let mut without = of_other;
        without.successes_per_s = None;
        without
            .missing
            .insert("successes_per_s".to_owned(), "why".to_owned());
        let nothing = compare(&other, &without);
        let reason = "the second does not count (it has no interval: why)".to_owned();
        assert_eq!(nothing.claim, Claim::Nothing(reason));
        assert!(nothing.medians.is_some() && nothing.change.is_none());
        let none =
            Comparison::of_single_runs(Compared::SuccessesPerS, (None, &single), (None, &single));
        let reason = "neither counts (no figures are stored)".to_owned();
        assert_eq!(none.claim, Claim::Nothing(reason));
    }

    #[test]
    fn capacities_are_compared_by_what_held_and_missed() {
        use crate::{
            CapacityKind, CapacityOutcome, CapacityPlan, CapacityStage, CapacityStep, Environment,
        };
        let record = RoundRecord::of(&Judged::of(&steady_run()));
        let step = |stage, rate_per_s, outcome| CapacityStep {
            stage,
            rate_per_s,
            outcome,
            because: String::new(),
            objectives: Vec::new(),
            record: record.clone(),
        };
        let capacity = |held: f64, missed: f64| {
            let bracket = CapacityStage::Bracket;
            let confirmed = step(CapacityStage::Confirmation, held, CapacityOutcome::Met);
            let mut steps = vec![
                step(bracket, held, CapacityOutcome::Met),
                step(bracket, missed, CapacityOutcome::Missed),
            ];
            steps.extend(std::iter::repeat_n(confirmed, crate::CONFIRMATIONS));
            Capacity {
                kind: CapacityKind::Capacity,
                format: Capacity::FORMAT,
                brunt_version: String::new(),
                plan: CapacityPlan {
                    url: String::new(),
                    objectives: Vec::new(),
                    tolerance: 0.02,
                    first_per_s: held,
                    least_per_s: 1.0,
                    most_per_s: 1e6,
                    window_ns: 1,
                    warmup_ns: 0,
                },
                load: None,
                environment: Environment::default(),
                broke_off: None,
                steps,
            }
        };
        let compare = |a: &Capacity, b: &Capacity| Comparison::of_searches(Some(a), Some(b));
        let a = capacity(1_000.0, 1_020.0);
        let less = compare(&a, &capacity(900.0, 918.0));
        assert_eq!(
            (less.claim.clone(), less.basis),
            (Claim::Differs, Basis::Searches)
        );
        assert_eq!(less.medians, Some((1_000.0, 900.0)));
        let change = less.change.expect("both were found");
        for (found, expected) in [
            (change.value, -0.1),
            (change.low, 900.0 / 1_020.0 - 1.0),
            (change.high, 0.918 - 1.0),
        ] {
            assert!((found - expected).abs() < 1e-12, "{change:?}");
        }
        // What held of one lies below what missed of the other, and the other way about.
        let same = compare(&a, &capacity(1_010.0, 1_030.0));
        assert!(matches!(same.claim, Claim::NoDifference { visible } if visible > 0.01));
        let mut broken_off = a.clone();
        broken_off.steps.truncate(3);
        let nothing = compare(&a, &broken_off);
        let Claim::Nothing(reason) = &nothing.claim else {
            panic!("{nothing:?}");
        };
        assert!(
            reason.starts_with("the second does not count ("),
            "{reason}"
        );
        let none = Comparison::of_searches(None, None);
        let reason = "neither counts (no search was made)".to_owned();
        assert_eq!(none.claim, Claim::Nothing(reason));
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
