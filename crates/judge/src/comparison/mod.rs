//! Whether one server is faster than another, from rounds of load on both that took turns, or from
//! a stored run of each. What is stored are the rounds: what they show is worked out when they are
//! read.

pub(crate) mod paired;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use brunt_load::Plan;
use brunt_record::{Environment, ServerDescription};
use serde::{Deserialize, Serialize};

use crate::comparison::paired::{Paired, hodges_lehmann, pairs_least};
use crate::round_record::{CLIENT_LIMITED, DISTURBED, round_quantile};
use crate::statistics::median;
use crate::{
    Effect, ExperimentKind, Judged, PAIRS_MAX, Quantile, ROUND_QUANTILES, ResponseQuantiles,
    RoundRecord, Verdict,
};

/// Most servers of a comparison.
pub const SIDES_MAX: usize = 26;
/// Most looks at pairs so far.
const LOOKS_MAX: u32 = 10;

/// Number of pairs in which brunt was the limit of all sides, after which further pairs would show
/// the same.
const PAIRS_LIMITED: usize = 3;

/// One server and its rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedSide {
    /// Name of the side in reports: `--label`, or the command that starts the server where sides
    /// have one URL; absent where the URL is the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// URL of the server.
    pub url: String,
    /// What is known of the server; absent where it was not watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerDescription>,
    /// The rounds of the side, in the order in which they were measured. Rounds at the same place
    /// of all sides were measured one after another.
    pub rounds: Vec<RoundRecord>,
    /// The intervals of the only round, which is a run that was stored before; absent where rounds
    /// took turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_run: Option<SingleRun>,
}

/// A change of a side against the first that is too large.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChangeLimit {
    /// What changes.
    pub compared: Compared,
    /// The limit, as a ratio less 1: a rise where it is above 0, a fall where it is below. Of 0 and
    /// its direction `is_rise` tells.
    pub change: f64,
    /// Whether the limit is one on a rise.
    pub is_rise: bool,
}

/// How a limit stands beside a comparison of what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitStands {
    /// A change is shown to be beyond the limit: by the whole of its interval.
    Exceeded,
    /// A change is shown to be within the limit: by the whole of its interval.
    Kept,
    /// Neither is shown.
    Open,
    /// Nothing can be said of the change.
    NotJudged,
}

impl ChangeLimit {
    /// How the limit stands beside `found`, a comparison of what it is about.
    fn stands(&self, found: &Comparison) -> LimitStands {
        if found.is_nothing() {
            return LimitStands::NotJudged;
        }
        let Some(change) = found.change else {
            return LimitStands::Open;
        };
        let (is_exceeded, is_kept) = if self.is_rise {
            (change.low > self.change, change.high <= self.change)
        } else {
            (change.high < self.change, change.low >= self.change)
        };
        if is_exceeded && found.claim == Claim::Differs {
            LimitStands::Exceeded
        } else if is_kept {
            LimitStands::Kept
        } else {
            LimitStands::Open
        }
    }
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedRounds {
    /// `comparison`.
    pub kind: ExperimentKind,
    /// Version of this layout: 3.
    pub format: u32,
    /// Version of brunt that made it.
    pub brunt_version: String,
    /// The load of a round in full, on the first server; null where none was measured.
    pub load: Option<Plan>,
    /// Machine, first server and client of the comparison.
    pub environment: Environment,
    /// What is compared: throughput of a closed loop, or response times at equal rates.
    pub compared: Vec<Compared>,
    /// Changes that are too large, by `--fail-if`.
    pub limits: Vec<ChangeLimit>,
    /// Pairs of rounds that were to count; absent without rounds in turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pairs_planned: Option<u32>,
    /// How often the pairs so far might be looked at, where the outcome decided whether more were
    /// made: each look is a chance to err, so that intervals are as wide as those of so many more
    /// figures. Absent where pairs were planned from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub looks: Option<u32>,
    /// Why fewer pairs were made, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<EndedEarly>,
    /// The servers, of which each is compared with the first.
    pub sides: Vec<ComparedSide>,
}

/// Why a comparison ended before its pairs were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedEarly {
    /// A signal ended it.
    Interrupted,
    /// Brunt was the limit of all sides in the first pairs: more of them would show no more.
    ClientLimited,
}

/// What is to be done after a pair of rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Course {
    /// More pairs, up to this number in all as it looks now.
    Until(usize),
    /// Nothing: there are as many pairs that count as were planned, or no more may be made.
    Done,
    /// Nothing: brunt was the limit of all sides in each pair.
    ClientLimited,
}

/// What a comparison comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComparisonOutcome {
    /// No limit is exceeded. Without limits: each comparison says something.
    Passed,
    /// A limit is exceeded, or nothing can be said of what it is about.
    Failed,
    /// There are no limits, and nothing can be said of one server at least.
    Undecided,
}

impl ComparedRounds {
    /// The layout that this version writes and reads.
    pub const FORMAT: u32 = 3;

    /// What the comparison comes to: its limits alone decide, where there are any.
    pub fn outcome(&self) -> ComparisonOutcome {
        let has_none = |stand| self.limits_that(stand).is_empty();
        if self.limits.is_empty() && !self.is_decided() {
            ComparisonOutcome::Undecided
        } else if has_none(LimitStands::Exceeded) && has_none(LimitStands::NotJudged) {
            ComparisonOutcome::Passed
        } else {
            ComparisonOutcome::Failed
        }
    }

    /// Every side against the first one.
    pub fn comparisons(&self) -> Vec<Comparison> {
        let Some((first, others)) = self.sides.split_first() else {
            return Vec::new();
        };
        let looks = self.looks.unwrap_or(1).clamp(1, LOOKS_MAX) as usize;
        let figures = self.compared.len() * others.len() * looks;
        let of_side = |(place, other)| {
            self.compared.iter().map(move |&compared| Comparison {
                place,
                ..Comparison::of(compared, first, other, figures)
            })
        };
        (1..).zip(others).flat_map(of_side).collect()
    }

    /// How many pairs of rounds are complete.
    pub fn pairs(&self) -> usize {
        let counts = self.sides.iter().map(|side| side.rounds.len());
        counts.min().unwrap_or(0)
    }

    /// What is to be done after the pairs so far, of which `planned` are to count. Those that do
    /// not are made up for by half as many as were planned, at most.
    pub fn course(&self, planned: usize) -> Course {
        let done = self.pairs();
        let Some((first, others)) = self.sides.split_first() else {
            return Course::Done;
        };
        // The server's CPU is known all the same, and so may be quantiles where the rate was kept.
        let is_limited = |round: &RoundRecord| {
            round.verdict == Verdict::ClientLimited && round.own_parts.is_none()
        };
        let mut rounds = self.sides.iter().flat_map(|side| &side.rounds[..done]);
        let is_cpu_asked = self.compared.contains(&Compared::ServerCpu);
        if done == PAIRS_LIMITED && !is_cpu_asked && rounds.all(is_limited) {
            return Course::ClientLimited;
        }
        let lost = others.iter().flat_map(|other| {
            self.compared.iter().map(|&compared| {
                let pairs = first.rounds[..done].iter().zip(&other.rounds);
                pairs.filter(|(a, b)| is_lost(compared, a, b)).count()
            })
        });
        let most = (planned + planned.div_ceil(2)).min(PAIRS_MAX);
        let until = (planned + lost.max().unwrap_or(0)).min(most);
        if done < until {
            Course::Until(until)
        } else {
            Course::Done
        }
    }

    /// Whether each of the comparisons says something: a difference, or how large one would have
    /// been seen.
    pub fn is_decided(&self) -> bool {
        self.comparisons().iter().all(|found| !found.is_nothing())
    }

    /// Whether each limit is shown to be exceeded or kept.
    pub fn are_limits_decided(&self) -> bool {
        let has_none = |stand| self.limits_that(stand).is_empty();
        has_none(LimitStands::Open) && has_none(LimitStands::NotJudged)
    }

    /// The limits that stand so beside a comparison of what they are about, each with that.
    pub fn limits_that(&self, stand: LimitStands) -> Vec<(ChangeLimit, Comparison)> {
        let all = self.comparisons();
        let limits = self.limits.iter();
        limits
            .flat_map(|limit| all.iter().map(move |found| (limit, found)))
            .filter(|(limit, found)| {
                found.compared == limit.compared && limit.stands(found) == stand
            })
            .map(|(limit, found)| (*limit, found.clone()))
            .collect()
    }
}

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
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// Pairs of rounds: how rounds vary is in the interval.
    Pairs,
    /// A stored run of each side: how each varied over its window is in the interval, and how runs
    /// vary from one to the next is not.
    SingleRuns,
}

/// Where brunt was the limit of one side, its throughput is known only to be no less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// Brunt was the limit of the second side: the change is at least this.
    AtLeast,
    /// Brunt was the limit of the first side: the change is at most this.
    AtMost,
}

/// What rounds or runs of two sides show.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The place of the second side, from 0.
    pub place: usize,
    /// What was compared.
    pub compared: Compared,
    /// What the comparison rests on.
    pub basis: Basis,
    /// How many pairs of rounds were made; 1 of stored runs.
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
    /// Compares two sides, whose rounds at the same place were made one after the other, or which
    /// have a stored run each. The comparison is one of `figures` that are made at once.
    pub fn of(compared: Compared, a: &ComparedSide, b: &ComparedSide, figures: usize) -> Self {
        if let (Some(of_a), Some(of_b)) = (&a.single_run, &b.single_run) {
            let (a, b) = ((a.rounds.first(), of_a), (b.rounds.first(), of_b));
            let mut found = Self::nothing(compared, Basis::SingleRuns);
            if let Err(reason) = found.take_single_runs(a, b) {
                found.claim = Claim::Nothing(reason);
            }
            return found;
        }
        let pairs = a.rounds.iter().zip(&b.rounds);
        let pairs = pairs.map(|(a, b)| Pair::of(measured(compared, a)?, measured(compared, b)?));
        Self::of_values(compared, pairs, figures)
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
        let logs: Vec<_> = pairs.iter().map(Pair::logs).collect();
        // Where too many do not count, those that do say nothing either.
        let paired = Paired::of(&logs, figures).filter(|_| counts);
        let noise = paired.and_then(|_| noise(&values));
        let mut found = Self {
            pairs: all,
            dropped,
            disturbed: pairs.iter().filter(|pair| pair.is_disturbed).count(),
            p_value: paired.and_then(|paired| paired.p_value),
            noise,
            medians: medians(&values),
            ..Self::nothing(compared, Basis::Pairs)
        };
        match paired {
            Some(paired) => {
                let least = noise.unwrap_or(0.0).max(CHANGE_LEAST);
                found.take(paired.log_ratio.change(), least, bounds);
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
                    "brunt was the limit of one side in {bounds} of {} pairs, so its rate is only \
                     a lower bound",
                    self.pairs - self.dropped.len()
                ),
                _ => {
                    "brunt was the limit of one side, so its rate is only a lower bound".to_owned()
                }
            });
        }
    }

    /// Takes what a stored run of each side shows: its figures, and the intervals that it has by
    /// itself.
    ///
    /// # Errors
    ///
    /// Why nothing can be said.
    fn take_single_runs(&mut self, a: SingleSide<'_>, b: SingleSide<'_>) -> Result<(), String> {
        let compared = self.compared;
        let figure = |(round, single): SingleSide<'_>| {
            let round = round.ok_or("no figures are stored")?;
            match measured(compared, round)? {
                // How runs vary is not in the interval of one.
                (_, Standing::Disturbed) => Err(DISTURBED.to_owned()),
                measured => Ok((measured, single.range(compared))),
            }
        };
        let (a, b) = both(figure(a), figure(b))?;
        let pair = Pair::of(a.0, b.0).map_err(|reason| format!("neither counts ({reason})"))?;
        self.medians = Some((pair.a, pair.b));
        let ranges = both(a.1, b.1)?;
        let ratio = log_ratio((pair.a, ranges.0), (pair.b, ranges.1));
        let mut ratio = ratio.ok_or("an interval reaches down to 0")?;
        match pair.bound {
            Some(Bound::AtLeast) => ratio.high = f64::INFINITY,
            Some(Bound::AtMost) => ratio.low = f64::NEG_INFINITY,
            None => {}
        }
        let bounds = usize::from(pair.bound.is_some());
        self.take(ratio.change(), CHANGE_LEAST, bounds);
        Ok(())
    }

    /// Whether nothing can be said.
    pub(crate) fn is_nothing(&self) -> bool {
        matches!(self.claim, Claim::Nothing(_))
    }

    fn nothing(compared: Compared, basis: Basis) -> Self {
        Self {
            place: 1,
            compared,
            basis,
            pairs: 1,
            dropped: Vec::new(),
            disturbed: 0,
            medians: None,
            change: None,
            bound: None,
            p_value: None,
            noise: None,
            claim: Claim::Nothing(String::new()),
        }
    }
}

/// The only round of a side, and its intervals.
type SingleSide<'a> = (Option<&'a RoundRecord>, &'a SingleRun);

/// Both values, or why one of the two does not count, or why neither does.
fn both<T>(a: Result<T, String>, b: Result<T, String>) -> Result<(T, T), String> {
    match (a, b) {
        (Ok(a), Ok(b)) => Ok((a, b)),
        (Err(reason), Err(of_b)) if reason == of_b => Err(format!("neither counts ({reason})")),
        (Err(reason), _) => Err(format!("the first does not count ({reason})")),
        (_, Err(reason)) => Err(format!("the second does not count ({reason})")),
    }
}

/// How a round stands to what is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// It is a measurement.
    Measured,
    /// It is known to be no less: brunt was the limit of the throughput.
    NoLess,
    /// Others took CPUs that the round needed.
    Disturbed,
}

impl Standing {
    /// How a round stands, or why it says nothing.
    fn of(compared: Compared, round: &RoundRecord) -> Result<Self, String> {
        match (round.verdict, compared) {
            // What a server spends on a reply it spends also where others take CPUs, or brunt
            // limits the rate.
            (Verdict::Disturbed | Verdict::ClientLimited, Compared::ServerCpu) => {
                return Ok(Self::Measured);
            }
            (Verdict::Disturbed, _) => return Ok(Self::Disturbed),
            (Verdict::ClientLimited, Compared::SuccessesPerS)
                if round.successes_per_s.is_some() =>
            {
                return Ok(Self::NoLess);
            }
            // Brunt's own part of other quantiles may make it the limit, and this one be the
            // server's. A response time at a rate that brunt did not keep is no bound of anything.
            (Verdict::ClientLimited, _) => {
                let own = round.own_parts.as_ref().zip(compared.quantile_name());
                if let Some((parts, name)) = own {
                    return parts.get(name).cloned().map_or(Ok(Self::Measured), Err);
                }
            }
            _ => {}
        }
        round.is_no_measurement().map_or(Ok(Self::Measured), Err)
    }
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
    /// A pair of two values, or why it does not count: two bounds say nothing of their ratio.
    fn of(a: (f64, Standing), b: (f64, Standing)) -> Result<Self, String> {
        let bound = match (a.1, b.1) {
            (Standing::NoLess, Standing::NoLess) => return Err(CLIENT_LIMITED.to_owned()),
            (Standing::NoLess, _) => Some(Bound::AtMost),
            (_, Standing::NoLess) => Some(Bound::AtLeast),
            _ => None,
        };
        Ok(Self {
            a: a.0,
            b: b.0,
            bound,
            is_disturbed: [a.1, b.1].contains(&Standing::Disturbed),
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

/// Whether another pair of rounds may count in the place of this one. What one pair has too few
/// replies for, another has too few for as well.
fn is_lost(compared: Compared, a: &RoundRecord, b: &RoundRecord) -> bool {
    let stands = |round| Standing::of(compared, round).map(|standing| (1.0, standing));
    let pair = stands(a).and_then(|a| Pair::of(a, stands(b)?));
    pair.map_or(true, |pair| pair.is_disturbed)
}

/// What is compared, measured of one round, and how it stands; or why it does not count.
fn measured(compared: Compared, round: &RoundRecord) -> Result<(f64, Standing), String> {
    let standing = Standing::of(compared, round)?;
    let missing = || match round.missing.get(compared.key()) {
        Some(reason) => reason.clone(),
        None if compared == Compared::ServerCpu => "the server's CPU time is not known".to_owned(),
        None => "nothing was measured".to_owned(),
    };
    let found = compared.figure(round).filter(|value| *value > 0.0);
    Ok((found.ok_or_else(missing)?, standing))
}

/// What each side differs from itself by, from one pair to the next.
fn noise(pairs: &[(f64, f64)]) -> Option<f64> {
    let of_side = |side: fn(&(f64, f64)) -> f64| {
        // The earlier and the later one in turn, so that a drift cancels out.
        let turns = pairs.windows(2).enumerate().map(|(place, two)| {
            let first = place % 2;
            (side(&two[first]), side(&two[1 - first]))
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
        Some((_, first)) if dropped.len() == all && dropped.iter().all(|(_, why)| why == first) => {
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
    // As factors: to a hundredth is as far as to a hundredfold.
    if excludes_none && change.value.ln_1p().abs() > least.ln_1p() {
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

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compared {
    /// Successful replies per second: more is better.
    SuccessesPerS,
    /// A quantile (0 to 1) of the response time, one of [`crate::ROUND_QUANTILES`]: less is better.
    ResponseQuantile(f64),
    /// CPU time of the server per successful reply: less is better.
    ServerCpu,
}

impl Compared {
    /// The name of the quantile that is compared, as rounds have it.
    pub(crate) fn quantile_name(self) -> Option<&'static str> {
        let Self::ResponseQuantile(q) = self else {
            return None;
        };
        Some(ROUND_QUANTILES[round_quantile(q)?].0)
    }

    /// The name of what is compared where rounds and runs say why they have none.
    fn key(self) -> &'static str {
        match self {
            Self::SuccessesPerS => "successes_per_s",
            Self::ResponseQuantile(_) => self.quantile_name().unwrap_or_default(),
            Self::ServerCpu => "",
        }
    }

    /// What is compared, of one round.
    pub fn figure(self, round: &RoundRecord) -> Option<f64> {
        match self {
            Self::SuccessesPerS => round.successes_per_s,
            Self::ResponseQuantile(q) => round.response.quantile_ns(q).map(|ns| ns as f64),
            Self::ServerCpu => round.server_cpu_ns_per_reply(),
        }
    }

    /// Whether more of it is better.
    pub fn is_better_if_more(self) -> bool {
        self == Self::SuccessesPerS
    }
}

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
    /// The intervals that are known, by their names, such as `p99` (nanoseconds) or
    /// `successes_per_s`.
    pub ranges: BTreeMap<String, Range>,
    /// Why the others are not, by their names.
    pub missing: BTreeMap<String, String>,
}

impl SingleRun {
    /// The intervals of a run, which is stored in `file`.
    pub fn of(judged: &Judged<'_>, file: String) -> Self {
        let rate = judged.successes_interval();
        let rate = rate.map(|interval| [interval.low_per_s, interval.high_per_s]);
        let mut all = vec![("successes_per_s", rate)];
        for (name, q) in ROUND_QUANTILES {
            // Why a quantile is not known stands in the round's own record.
            if let Quantile::Known { interval, .. } = judged.response_quantile(q) {
                let ends = interval.map(|found| [found.low_ns, found.high_ns]);
                all.push((name, ends.map(|ends| ends.map(|ns| ns as f64))));
            }
        }
        let (mut ranges, mut missing) = (BTreeMap::new(), BTreeMap::new());
        for (name, interval) in all {
            let name = name.to_owned();
            match interval {
                Ok([low, high]) => drop(ranges.insert(name, Range { low, high })),
                Err(reason) => drop(missing.insert(name, reason.to_string())),
            }
        }
        Self {
            file,
            brunt_version: judged.run.brunt_version.clone(),
            ranges,
            missing,
        }
    }

    /// The interval of what is compared.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(crate) fn range(&self, compared: Compared) -> Result<Range, String> {
        let found = self.ranges.get(compared.key()).copied();
        found.ok_or_else(|| match self.missing.get(compared.key()) {
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
