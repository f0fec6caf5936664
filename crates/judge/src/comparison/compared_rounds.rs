//! Rounds of several servers that took turns, a run of each, or a search for the capacity of each,
//! as they are stored. What they show is worked out when they are read.

use brunt_load::Plan;
use brunt_record::{Environment, ServerDescription};
use serde::{Deserialize, Serialize};

use crate::comparison::is_lost;
use crate::{Capacity, Compared, Comparison, Effect, PAIRS_MAX, RoundRecord, SingleRun, Verdict};

/// Most servers of a comparison.
pub const SIDES_MAX: usize = 26;
/// Most looks at pairs so far.
const LOOKS_MAX: u32 = 10;

/// Number of pairs in which brunt was the limit of all sides, after which further pairs would show
/// the same.
const PAIRS_LIMITED: usize = 3;

/// What kind of stored file it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ComparisonKind {
    /// A comparison.
    #[default]
    #[serde(rename = "comparison")]
    Comparison,
}

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
    /// The search for the highest rate that holds the objectives; null without objectives.
    pub capacity: Option<Capacity>,
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

impl ChangeLimit {
    /// Whether a change is shown to be beyond the limit: by the whole of its interval.
    pub fn is_exceeded_by(&self, low: f64, high: f64) -> bool {
        match self.is_rise {
            true => low > self.change,
            false => high < self.change,
        }
    }

    /// Whether a change is shown to be within the limit: by the whole of its interval.
    pub fn is_kept_by(&self, low: f64, high: f64) -> bool {
        match self.is_rise {
            true => high <= self.change,
            false => low >= self.change,
        }
    }
}

/// A comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedRounds {
    /// `comparison`.
    pub kind: ComparisonKind,
    /// Version of this layout: 3.
    pub format: u32,
    /// Version of brunt that made it.
    pub brunt_version: String,
    /// The load of a round in full, on the first server; null where none was measured.
    pub load: Option<Plan>,
    /// Machine, first server and client of the comparison.
    pub environment: Environment,
    /// What is compared: throughput of a closed loop, response times at equal rates, or the highest
    /// rate that holds objectives.
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

/// Two sides and what was found.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedPair {
    /// The place of the first side, from 0.
    pub first: usize,
    /// The place of the other one.
    pub second: usize,
    /// What their rounds show.
    pub comparison: Comparison,
}

impl ComparedRounds {
    /// The layout that this version writes and reads.
    pub const FORMAT: u32 = 3;

    /// What the comparison comes to: its limits alone decide, where there are any.
    pub fn outcome(&self) -> ComparisonOutcome {
        if self.limits.is_empty() {
            return if self.is_decided() {
                ComparisonOutcome::Passed
            } else {
                ComparisonOutcome::Undecided
            };
        }
        if self.exceeded().is_empty() && self.not_judged().is_empty() {
            ComparisonOutcome::Passed
        } else {
            ComparisonOutcome::Failed
        }
    }

    /// Every side against the first one.
    pub fn comparisons(&self) -> Vec<ComparedPair> {
        let Some((first, others)) = self.sides.split_first() else {
            return Vec::new();
        };
        let looks = self.looks.unwrap_or(1).clamp(1, LOOKS_MAX) as usize;
        let figures = self.compared.len() * others.len() * looks;
        let pair = |compared, second: usize, other: &ComparedSide| ComparedPair {
            first: 0,
            second,
            comparison: comparison(compared, first, other, figures),
        };
        others
            .iter()
            .zip(1..)
            .flat_map(|(other, second)| {
                let all = self.compared.iter();
                all.map(move |&compared| pair(compared, second, other))
            })
            .collect()
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
        match done < until {
            true => Course::Until(until),
            false => Course::Done,
        }
    }

    /// Whether each of the comparisons says something: a difference, or how large one would have
    /// been seen.
    pub fn is_decided(&self) -> bool {
        let pairs = self.comparisons();
        pairs.iter().all(|pair| !pair.comparison.is_nothing())
    }

    /// The limits that were exceeded, and by which pair.
    pub fn exceeded(&self) -> Vec<(ChangeLimit, ComparedPair)> {
        self.limited(|limit, comparison| {
            let change = comparison.change.filter(|_| comparison.is_claim());
            change.is_some_and(|it| limit.is_exceeded_by(it.low, it.high))
        })
    }

    /// The limits that are neither shown to be exceeded nor shown to be kept, and by which pair.
    pub fn open(&self) -> Vec<(ChangeLimit, ComparedPair)> {
        self.limited(|limit, comparison| {
            let is_open = |it: Effect| {
                let is_exceeded = comparison.is_claim() && limit.is_exceeded_by(it.low, it.high);
                !is_exceeded && !limit.is_kept_by(it.low, it.high)
            };
            !comparison.is_nothing() && comparison.change.is_none_or(is_open)
        })
    }

    /// The limits that are shown to be kept, and by which pair.
    pub fn kept(&self) -> Vec<(ChangeLimit, ComparedPair)> {
        self.limited(|limit, comparison| {
            let is_exceeded =
                |it: &Effect| comparison.is_claim() && limit.is_exceeded_by(it.low, it.high);
            let change = comparison.change.filter(|_| !comparison.is_nothing());
            change.is_some_and(|it| limit.is_kept_by(it.low, it.high) && !is_exceeded(&it))
        })
    }

    /// Whether each limit is shown to be exceeded or kept.
    pub fn are_limits_decided(&self) -> bool {
        self.open().is_empty() && self.not_judged().is_empty()
    }

    /// The limits of which nothing can be said, and of which pair.
    pub fn not_judged(&self) -> Vec<(ChangeLimit, ComparedPair)> {
        self.limited(|_, comparison| comparison.is_nothing())
    }

    /// The limits with the pairs that they are about, of which this is so.
    fn limited(
        &self,
        is_so: impl Fn(&ChangeLimit, &Comparison) -> bool,
    ) -> Vec<(ChangeLimit, ComparedPair)> {
        let pairs = self.comparisons();
        let limits = self.limits.iter();
        limits
            .flat_map(|limit| pairs.iter().map(move |pair| (limit, pair)))
            .filter(|(limit, pair)| {
                let comparison = &pair.comparison;
                comparison.compared == limit.compared && is_so(limit, comparison)
            })
            .map(|(limit, pair)| (*limit, pair.clone()))
            .collect()
    }
}

fn comparison(
    compared: Compared,
    first: &ComparedSide,
    other: &ComparedSide,
    figures: usize,
) -> Comparison {
    if compared == Compared::CapacityPerS {
        return Comparison::of_searches(first.capacity.as_ref(), other.capacity.as_ref());
    }
    match (&first.single_run, &other.single_run) {
        (Some(of_first), Some(of_other)) => Comparison::of_single_runs(
            compared,
            (first.rounds.first(), of_first),
            (other.rounds.first(), of_other),
        ),
        _ => Comparison::of(compared, &first.rounds, &other.rounds, figures),
    }
}
