//! Whether one server is faster than another, from rounds of load on both that took turns, from a
//! stored run of each, or from a search for the capacity of each.

pub(crate) mod compared;
pub(crate) mod compared_rounds;
pub(crate) mod paired;
pub(crate) mod single_run;

use serde::Serialize;

use crate::comparison::paired::{hodges_lehmann, median, pairs_least};
use crate::comparison::single_run::log_ratio;
use crate::round_record::{CLIENT_LIMITED, DISTURBED};
use crate::{
    Capacity, CapacityResult, Compared, Effect, Paired, ROUND_QUANTILES, RoundRecord, SingleRun,
    Verdict,
};

/// A difference below this is not worth a claim, however sure it is.
const CHANGE_LEAST: f64 = 0.01;
/// Share of the pairs that may be dropped. Pairs that do not count are made up for by half as many
/// as were planned. Where more than this are disturbed, the disturbed ones count like the others:
/// on a machine that is never quiet, the noise is in the interval.
const DROPPED_MOST: f64 = 0.5;
/// Share of the pairs that count of which bounds may be left out. Where more are bounds, all pairs
/// are taken for what they surely show.
const BOUNDS_MOST: f64 = 0.2;

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

/// Where brunt was the limit of one side, its throughput is known only to be no less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Brunt was the limit of the second side: the change is at least this.
    AtLeast,
    /// Brunt was the limit of the first side: the change is at most this.
    AtMost,
}

/// What rounds, runs or searches of two sides show.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// What was compared.
    pub compared: Compared,
    /// What the comparison rests on.
    pub basis: Basis,
    /// How many pairs of rounds were made; 1 of stored runs and of searches.
    pub pairs: usize,
    /// The pairs that do not count, from 0, and why.
    pub dropped: Vec<(usize, String)>,
    /// How many of the pairs that count have a round in which others took CPUs that it needed.
    pub disturbed: usize,
    /// The medians of side A and side B, over the pairs that count: per second, or nanoseconds.
    /// Absent without any.
    pub medians: Option<(f64, f64)>,
    /// The ratio of B over A, less 1, with its interval. Absent with too few pairs, where a run has
    /// no interval, and where it is a bound that shows no difference.
    pub change: Option<Effect>,
    /// Which end of the interval alone is known, so that the change is known to be no smaller;
    /// absent where both are known.
    pub bound: Option<Bound>,
    /// How often a difference like this or larger comes by chance if there is none. Absent with too
    /// few pairs, of bounds, and without rounds in turns.
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
    /// Compares two sides whose rounds at the same place were made one after the other. The
    /// comparison is one of `figures` that are made at once.
    pub fn of(compared: Compared, a: &[RoundRecord], b: &[RoundRecord], figures: usize) -> Self {
        let pairs = a.iter().zip(b);
        Self::of_values(compared, pairs.map(|(a, b)| pair(compared, a, b)), figures)
    }

    /// Compares pairs of values. A value that is an error says why its pair does not count. The
    /// comparison is one of `figures` that are made at once.
    fn of_values(
        compared: Compared,
        values: impl Iterator<Item = Result<Pair, String>>,
        figures: usize,
    ) -> Self {
        let mut dropped = Vec::new();
        let mut pairs = Vec::new();
        for (place, value) in values.enumerate() {
            match value {
                Ok(pair) => pairs.push((place, pair)),
                Err(reason) => dropped.push((place, reason)),
            }
        }
        let all = pairs.len() + dropped.len();
        let least = pairs_least(figures);
        let mut leave_out = |most: f64, is_left_out: fn(&Pair) -> Option<&'static str>| {
            let left_out = pairs.iter().filter_map(|(place, pair)| {
                is_left_out(pair).map(|reason| (*place, reason.to_owned()))
            });
            let left_out: Vec<_> = left_out.collect();
            if left_out.len() as f64 <= most && pairs.len() - left_out.len() >= least {
                pairs.retain(|(_, pair)| is_left_out(pair).is_none());
                dropped.extend(left_out);
            }
            pairs.len() as f64
        };
        let most_dropped = DROPPED_MOST * all as f64;
        let kept = leave_out(most_dropped, |pair| pair.is_disturbed.then_some(DISTURBED));
        leave_out(BOUNDS_MOST * kept, |pair| {
            pair.bound.map(|_| CLIENT_LIMITED)
        });
        dropped.sort_unstable();
        let pairs: Vec<_> = pairs.into_iter().map(|(_, pair)| pair).collect();
        let bounds = pairs.iter().filter(|pair| pair.bound.is_some()).count();
        let values: Vec<_> = pairs.iter().map(|pair| (pair.a, pair.b)).collect();
        let counts = dropped.len() as f64 <= DROPPED_MOST * all as f64;
        let paired = match bounds {
            0 => Paired::of(&values, figures),
            _ => Paired::of_bounds(&pairs.iter().map(Pair::logs).collect::<Vec<_>>(), figures),
        };
        // Where too many do not count, those that do say nothing either.
        let paired = paired.filter(|_| counts);
        let noise = paired.and_then(|_| noise(&values));
        let mut found = Self {
            compared,
            basis: Basis::Pairs,
            pairs: all,
            dropped,
            disturbed: pairs.iter().filter(|pair| pair.is_disturbed).count(),
            medians: medians(&values),
            change: None,
            bound: None,
            p_value: paired.and_then(|paired| paired.p_value),
            noise,
            claim: Claim::Nothing(String::new()),
        };
        match paired {
            Some(paired) => {
                let least = noise.unwrap_or(0.0).max(CHANGE_LEAST);
                found.take(paired.change(), least, bounds);
            }
            None => found.claim = Claim::Nothing(too_few(all, &found.dropped, figures)),
        }
        found
    }

    /// Takes what `change` says. A change below `least` counts as none. `bounds` of the pairs are
    /// bounds.
    fn take(&mut self, change: Effect, least: f64, bounds: usize) {
        self.claim = claim_of(change, least);
        self.change = Some(change);
        if bounds == 0 {
            return;
        }
        self.bound = match self.claim {
            Claim::Differs if change.high.is_infinite() => Some(Bound::AtLeast),
            Claim::Differs if change.low <= -1.0 => Some(Bound::AtMost),
            // Bounds that leave both ends known.
            _ if change.high.is_finite() && change.low > -1.0 => return,
            _ => None,
        };
        if self.bound.is_none() {
            self.change = None;
            self.claim = Claim::Nothing(match self.basis {
                Basis::Pairs => format!(
                    "brunt was the limit of one side in {bounds} of {} pairs, and that bound does \
                     not tell",
                    self.pairs - self.dropped.len()
                ),
                _ => "brunt was the limit of one, and that bound does not tell".to_owned(),
            });
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
            // How runs vary is not in the interval of one.
            if is_disturbed(compared, round) {
                return Err(DISTURBED.to_owned());
            }
            Ok((measured(compared, round)?, single.range(compared)))
        };
        let (a, b) = match both(figure(a), figure(b)) {
            Ok(both) => both,
            Err(reason) => return Self::nothing(compared, Basis::SingleRuns, None, reason),
        };
        let nothing = |medians, reason| Self::nothing(compared, Basis::SingleRuns, medians, reason);
        let pair = match Pair::of(a.0, b.0) {
            Ok(pair) => pair,
            Err(reason) => return nothing(None, format!("neither counts ({reason})")),
        };
        let medians = Some((pair.a, pair.b));
        let ratio = both(a.1, b.1).and_then(|ranges| {
            let ratio = log_ratio((pair.a, ranges.0), (pair.b, ranges.1));
            ratio.ok_or_else(|| "an interval reaches down to 0".to_owned())
        });
        let mut ratio = match ratio {
            Ok(ratio) => ratio,
            Err(reason) => return nothing(medians, reason),
        };
        match pair.bound {
            Some(Bound::AtLeast) => ratio.high = f64::INFINITY,
            Some(Bound::AtMost) => ratio.low = f64::NEG_INFINITY,
            None => {}
        }
        let change = change_of(ratio);
        let mut found = Self::of_change(compared, Basis::SingleRuns, medians, change);
        found.take(change, CHANGE_LEAST, usize::from(pair.bound.is_some()));
        found
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

    /// Whether a difference is claimed.
    pub(crate) fn is_claim(&self) -> bool {
        self.claim == Claim::Differs
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
            disturbed: 0,
            medians,
            change: Some(change),
            bound: None,
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
            disturbed: 0,
            medians,
            change: None,
            bound: None,
            p_value: None,
            noise: None,
            claim: Claim::Nothing(reason),
        }
    }
}

/// Both values, or why one of the two does not count, or why neither does.
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
        CapacityResult::ClientLimited { .. } => CLIENT_LIMITED.to_owned(),
        CapacityResult::NotMet { .. } | CapacityResult::Impossible { .. } => {
            "no rate held".to_owned()
        }
        CapacityResult::Bracket {
            met_per_s: Some(met),
            missed_per_s: Some(missed),
            ..
        } if met > 0.0 && missed.is_finite() => return Ok((met, missed)),
        CapacityResult::Bracket { .. } => "the budget was over".to_owned(),
        CapacityResult::Nothing { reason, .. } => reason,
    })
}

/// What was measured of a pair of rounds, or of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pair {
    a: f64,
    b: f64,
    /// Whether the figure of one side is known only to be no less.
    bound: Option<Bound>,
    /// Whether others took CPUs that one of the rounds needed.
    is_disturbed: bool,
}

impl Pair {
    /// A pair of two values of undisturbed rounds, each with whether it is a bound. Two bounds say
    /// nothing of their ratio.
    fn of(a: (f64, bool), b: (f64, bool)) -> Result<Self, String> {
        let bound = match (a.1, b.1) {
            (true, true) => return Err(CLIENT_LIMITED.to_owned()),
            (true, false) => Some(Bound::AtMost),
            (false, true) => Some(Bound::AtLeast),
            (false, false) => None,
        };
        let (a, b) = (a.0, b.0);
        Ok(Self {
            a,
            b,
            bound,
            is_disturbed: false,
        })
    }

    /// The logarithms between which that of the ratio is known to lie.
    fn logs(&self) -> (f64, f64) {
        let log = (self.b / self.a).ln();
        match self.bound {
            None => (log, log),
            Some(Bound::AtLeast) => (log, f64::INFINITY),
            Some(Bound::AtMost) => (f64::NEG_INFINITY, log),
        }
    }
}

/// What is compared, measured of a pair of rounds; or why the pair does not count.
fn pair(compared: Compared, a: &RoundRecord, b: &RoundRecord) -> Result<Pair, String> {
    let pair = Pair::of(measured(compared, a)?, measured(compared, b)?)?;
    Ok(Pair {
        is_disturbed: is_disturbed(compared, a) || is_disturbed(compared, b),
        ..pair
    })
}

/// Whether another pair of rounds may count in the place of this one. What one pair has too few
/// replies for, another has too few for as well.
pub(crate) fn is_lost(compared: Compared, a: &RoundRecord, b: &RoundRecord) -> bool {
    let [a_bound, b_bound] = [a, b].map(|round| is_bound(compared, round));
    let is_spoilt = |round| !says(compared, round) || is_disturbed(compared, round);
    a_bound && b_bound || is_spoilt(a) || is_spoilt(b)
}

/// Whether a round says something of what is compared. What a server spends on a reply it spends
/// also where brunt limits the rate.
fn says(compared: Compared, round: &RoundRecord) -> bool {
    is_bound(compared, round)
        || compared == Compared::ServerCpu && round.verdict == Verdict::ClientLimited
        || round.verdict == Verdict::Disturbed
        || round.is_no_measurement().is_none()
}

/// Whether others took CPUs that a round needed. What a server spends on a reply it spends then,
/// too.
fn is_disturbed(compared: Compared, round: &RoundRecord) -> bool {
    compared != Compared::ServerCpu && round.verdict == Verdict::Disturbed
}

/// Whether what is compared of a round is known to be no less: brunt was the limit of its
/// throughput. A response time at a rate that brunt did not keep is no bound of anything.
fn is_bound(compared: Compared, round: &RoundRecord) -> bool {
    compared == Compared::SuccessesPerS
        && round.verdict == Verdict::ClientLimited
        && round.successes_per_s.is_some()
}

/// What is compared, measured of one round, with whether it is a bound; or why it does not count.
fn measured(compared: Compared, round: &RoundRecord) -> Result<(f64, bool), String> {
    let is_bound = is_bound(compared, round);
    if !says(compared, round)
        && let Some(reason) = round.is_no_measurement()
    {
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
        Compared::ServerCpu => (round.server_cpu_ns_per_reply(), "server_cpu"),
        Compared::CapacityPerS => (None, ""),
    };
    let missing = || match round.missing.get(name) {
        Some(reason) => reason.clone(),
        None if compared == Compared::ServerCpu => "the server's CPU time is not known".to_owned(),
        None => "nothing was measured".to_owned(),
    };
    let found = found.filter(|value| *value > 0.0).ok_or_else(missing)?;
    Ok((found, is_bound))
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
        hodges_lehmann(&turns).map(|log| log.exp_m1().abs())
    };
    let (a, b) = (of_side(|pair| pair.0)?, of_side(|pair| pair.1)?);
    Some(a.max(b))
}

/// Why pairs show nothing.
fn too_few(all: usize, dropped: &[(usize, String)], figures: usize) -> String {
    let are_most = dropped.len() as f64 > DROPPED_MOST * all as f64;
    match dropped.first() {
        Some((_, first)) if dropped.iter().all(|(_, it)| it == first) && dropped.len() == all => {
            format!("{first} in every pair")
        }
        Some((_, first)) if are_most => {
            format!("{} of {all} pairs do not count ({first})", dropped.len())
        }
        _ => format!(
            "{} pairs are too few; {} are the least",
            all - dropped.len(),
            pairs_least(figures)
        ),
    }
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
    let middle = |mut values: Vec<f64>| {
        values.sort_unstable_by(f64::total_cmp);
        median(&values)
    };
    let (a, b) = pairs.iter().copied().unzip();
    Some((middle(a)?, middle(b)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Judged;
    use crate::invariants::sample::steady_run;

    const A: [f64; 10] = [
        20_000.0, 20_200.0, 19_900.0, 20_100.0, 20_300.0, 19_800.0, 20_000.0, 20_200.0, 20_100.0,
        19_900.0,
    ];

    fn of_pairs(pairs: impl Iterator<Item = Result<Pair, String>>) -> Comparison {
        Comparison::of_values(Compared::SuccessesPerS, pairs, 1)
    }

    fn comparison(a: &[f64], b: &[f64]) -> Comparison {
        let pairs = a.iter().zip(b);
        of_pairs(pairs.map(|(a, b)| Pair::of((*a, false), (*b, false))))
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
        let drop = |count: usize, of: usize| {
            let pairs = A.iter().cycle().take(of).enumerate();
            of_pairs(pairs.map(|(place, a)| match place < count {
                true => Err("why".to_owned()),
                false => Pair::of((*a, false), (*a, false)),
            }))
        };
        let some = drop(5, 15);
        assert_eq!(some.dropped.len(), 5);
        assert!(matches!(some.claim, Claim::NoDifference { .. }), "{some:?}");
        for (count, of, reason) in [
            (8, 15, "8 of 15 pairs do not count (why)"),
            (4, 10, "6 pairs are too few; 7 are the least"),
            (3, 3, "why in every pair"),
        ] {
            let nothing = drop(count, of);
            assert_eq!(nothing.claim, Claim::Nothing(reason.to_owned()));
            assert_eq!((nothing.change, nothing.noise), (None, None));
        }
    }

    #[test]
    fn disturbed_pairs_count_where_there_is_nothing_better() {
        let with = |disturbed: usize, of: usize| {
            let pairs = A.iter().cycle().take(of).enumerate();
            of_pairs(pairs.map(|(place, a)| {
                let pair = Pair::of((*a, false), (*a * 1.05, false))?;
                Ok(Pair {
                    is_disturbed: place < disturbed,
                    ..pair
                })
            }))
        };
        for (disturbed, of, dropped) in [(0, 10, 0), (5, 15, 5), (8, 15, 0), (3, 8, 0), (10, 10, 0)]
        {
            let found = with(disturbed, of);
            assert_eq!(found.claim, Claim::Differs, "{disturbed} of {of}");
            assert_eq!(found.dropped.len(), dropped, "{disturbed} of {of}");
            assert_eq!(found.disturbed, disturbed - dropped, "{disturbed} of {of}");
        }
        let mut record = RoundRecord::of(&Judged::of(&steady_run()));
        record.verdict = Verdict::Disturbed;
        for compared in [Compared::SuccessesPerS, Compared::ResponseQuantile(0.5)] {
            let pair = pair(compared, &record, &record).expect("it counts");
            assert!(pair.is_disturbed);
            assert!(is_lost(compared, &record, &record), "another is made");
        }
        assert!(!is_lost(Compared::ServerCpu, &record, &record));
        let single = SingleRun::of(&steady_run(), "a.json".to_owned());
        let side = (Some(&record), &single);
        let runs = Comparison::of_single_runs(Compared::SuccessesPerS, side, side);
        assert!(runs.is_nothing(), "one run does not show how runs vary");
    }

    /// The pairs of [`A`] and so many times that, with the places at which either is a bound.
    fn bounded(ratio: f64, is_bound: impl Fn(usize) -> (bool, bool)) -> Comparison {
        of_pairs(A.iter().enumerate().map(|(place, a)| {
            let (of_a, of_b) = is_bound(place);
            Pair::of((*a, of_a), (a * ratio, of_b))
        }))
    }

    #[test]
    fn a_bound_that_suffices_is_a_claim() {
        let at_least = bounded(263.0, |_| (false, true));
        assert_eq!(at_least.claim, Claim::Differs, "{at_least:?}");
        assert_eq!(at_least.bound, Some(Bound::AtLeast));
        let change = at_least.change.expect("one end");
        assert!(
            change.low > 250.0 && change.high.is_infinite(),
            "{change:?}"
        );
        assert_eq!((at_least.dropped.len(), at_least.p_value), (0, None));
        let at_most = bounded(0.8, |_| (true, false));
        assert_eq!(at_most.bound, Some(Bound::AtMost), "{at_most:?}");
        assert_eq!(at_most.claim, Claim::Differs);
        // Some bounds among values, all of them towards the claim.
        let some = bounded(1.3, |place| (false, place % 3 == 0));
        assert_eq!(
            (some.claim, some.bound),
            (Claim::Differs, Some(Bound::AtLeast))
        );
    }

    #[test]
    fn a_bound_that_does_not_suffice_is_none() {
        for (ratio, is_bound) in [
            // The slower one could be faster than was seen.
            (0.8, (|_| (false, true)) as fn(usize) -> (bool, bool)),
            (1.3, |_| (true, false)),
            (1.3, |place| (place % 2 == 0, place % 2 == 1)),
        ] {
            let nothing = bounded(ratio, is_bound);
            assert!(
                matches!(&nothing.claim, Claim::Nothing(why) if why.contains("in 10 of 10 pairs")),
                "{nothing:?}"
            );
            assert_eq!((nothing.change, nothing.bound), (None, None));
        }
        let neither = bounded(1.3, |_| (true, true));
        let reason = "brunt was the limit in every pair".to_owned();
        assert_eq!(neither.claim, Claim::Nothing(reason));
    }

    #[test]
    fn a_few_bounds_are_left_out() {
        let found = bounded(1.1, |place| (place == 4, place == 7));
        let places: Vec<_> = found.dropped.iter().map(|(place, _)| *place).collect();
        assert_eq!(places, [4, 7]);
        assert_eq!((found.claim, found.bound), (Claim::Differs, None));
    }

    #[test]
    fn rounds_give_what_is_compared_or_why_they_do_not_count() {
        let (whole, mut broken) = (steady_run(), steady_run());
        broken.agents[0].workers[0].tallies.measure.requests_sent += 1_000_000;
        let record = |run| RoundRecord::of(&Judged::of(run));
        let (whole, broken) = (record(&whole), record(&broken));
        let (rate, _) = measured(Compared::SuccessesPerS, &whole).expect("it counts");
        let p50 = measured(Compared::ResponseQuantile(0.5), &whole);
        let (p50_ns, _) = p50.expect("it counts");
        assert!(rate > 1_000.0, "{rate}");
        assert!((900_000.0..1_100_000.0).contains(&p50_ns), "{p50_ns}");
        let mut few = whole.clone();
        few.response.p99_9_ns = None;
        let reason = "3 replies, 3,688 are needed".to_owned();
        few.missing.insert("p99.9".to_owned(), reason.clone());
        let p99_9 = Compared::ResponseQuantile(0.999);
        assert_eq!(measured(p99_9, &few), Err(reason));
        assert!(
            !is_lost(p99_9, &few, &few),
            "another pair has no more replies"
        );
        let reason = measured(Compared::SuccessesPerS, &broken).expect_err("it is broken");
        assert!(reason.contains("withheld"), "{reason}");
        let mut limited = whole.clone();
        limited.verdict = Verdict::ClientLimited;
        assert_eq!(
            measured(Compared::SuccessesPerS, &limited),
            Ok((rate, true))
        );
        // Nothing follows of a response time from one at a rate that brunt did not keep.
        assert!(measured(Compared::ResponseQuantile(0.5), &limited).is_err());
        for (a, b, lost) in [
            (&whole, &whole, false),
            (&whole, &limited, false),
            (&limited, &limited, true),
            (&limited, &broken, true),
            (&broken, &whole, true),
        ] {
            assert_eq!(is_lost(Compared::SuccessesPerS, a, b), lost, "{a:?} {b:?}");
        }
        let (a, b) = ([whole.clone(), whole.clone()], [whole, broken]);
        let pairs = Comparison::of(Compared::SuccessesPerS, &a, &b, 1);
        assert_eq!((pairs.pairs, pairs.dropped.len()), (2, 1));
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
        // Of a bound one end is known, which may suffice.
        let limited = |mut record: RoundRecord| {
            record.verdict = Verdict::ClientLimited;
            record
        };
        let at_least = compare(&limited(other.clone()), &of_other);
        assert_eq!(
            (at_least.claim, at_least.bound),
            (Claim::Differs, Some(Bound::AtLeast))
        );
        let (slower, of_slower) = scaled(0.5);
        let nothing = compare(&limited(slower), &of_slower);
        let reason = "brunt was the limit of one, and that bound does not tell".to_owned();
        assert_eq!(nothing.claim, Claim::Nothing(reason));
        // What does not count, or has no interval, decides nothing.
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
        use brunt_record::Environment;

        use crate::{CapacityKind, CapacityOutcome, CapacityPlan, CapacityStage, CapacityStep};
        let record = RoundRecord::of(&Judged::of(&steady_run()));
        let step = |stage, rate_per_s, outcome| CapacityStep {
            stage,
            rate_per_s,
            took_ns: 0,
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
                    budget_ns: None,
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
