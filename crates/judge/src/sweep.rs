//! A sweep as it is stored: rounds at several values of one setting. What follows from them, such
//! as the highest throughput, is worked out when it is read.

use std::collections::BTreeMap;

use brunt_load::Plan;
use brunt_record::Environment;
use serde::{Deserialize, Serialize};

use crate::elasticity::Elasticity;
use crate::statistics::{is_share_below, median};
use crate::{Effect, ExperimentKind, RoundRecord, Verdict};

/// Most values of a sweep.
pub const SWEEP_VALUES_MAX: usize = 10_000;
/// Most rounds of each value.
pub const SWEEP_ROUNDS_MAX: u32 = 1_000;
/// How many times as many connections another value may have, or this one, for the two to tell what
/// more connections give: nearer ones are too much alike, farther ones are other worlds.
const NEIGHBOUR_LEAST: f64 = 1.5;
const NEIGHBOUR_MOST: f64 = 4.0;
/// Medians of the throughput that differ by more are not alike, however they scatter.
const ALIKE_MOST: f64 = 0.05;

/// The setting that is varied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepAxis {
    /// Connections held at once.
    Connections,
    /// Requests planned per second.
    Rate,
    /// Worker threads.
    Workers,
    /// Requests in flight per connection in HTTP/2.
    Streams,
    /// Bytes of each request's body.
    BodyBytes,
    /// Requests of each round.
    Requests,
}

impl SweepAxis {
    /// The setting's name as printed, in the plural or with its unit.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connections => "connections",
            Self::Rate => "rate",
            Self::Workers => "workers",
            Self::Streams => "streams",
            Self::BodyBytes => "body bytes",
            Self::Requests => "requests",
        }
    }

    /// The setting's name in data, with its unit.
    pub fn data_name(self) -> &'static str {
        match self {
            Self::Rate => "rate_per_s",
            Self::BodyBytes => "body_bytes",
            _ => self.name(),
        }
    }
}

/// What a sweep is to measure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepPlan {
    /// The URL.
    pub url: String,
    /// What is varied.
    pub varied: SweepAxis,
    /// The values of the varied setting, ascending.
    pub values: Vec<f64>,
    /// Rounds of each value.
    pub rounds: u32,
    /// Seed of the order of the values in each round; null for ascending order in all.
    pub seed: Option<u64>,
    /// Length of a round's window, nanoseconds; null where requests end it.
    pub window_ns: Option<u64>,
    /// Length of the warm-up before all rounds, at the largest value, nanoseconds.
    pub warmup_ns: u64,
    /// Length of the warm-up of each round, nanoseconds.
    pub round_warmup_ns: u64,
}

/// A round of a sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepRound {
    /// The value of what is varied.
    pub value: f64,
    /// The number of the round among those of its value, from 0.
    pub round: u32,
    /// The outcome of the round.
    pub record: RoundRecord,
}

/// A sweep.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sweep {
    /// `sweep`.
    pub kind: ExperimentKind,
    /// Version of this layout: 2.
    pub format: u32,
    /// Version of brunt that made it.
    pub brunt_version: String,
    /// What was to be measured.
    pub plan: SweepPlan,
    /// The load of a round in full, at the largest value; null where none was measured.
    pub load: Option<Plan>,
    /// Machine, server and client of the sweep.
    pub environment: Environment,
    /// Why the sweep ended before all was measured; null where all was, and where it was
    /// interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broke_off: Option<String>,
    /// The rounds, in the order in which they were measured. Fewer than planned where it was
    /// interrupted, or broke off.
    pub rounds: Vec<SweepRound>,
}

/// All rounds of one value.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepPoint<'a> {
    /// The value of what is varied.
    pub value: f64,
    /// Its rounds that were measured.
    pub rounds: Vec<&'a RoundRecord>,
    /// How far the rate follows the connections, from this value to a neighbour with 1.5 to 4 times
    /// as many or as few, over the rounds: 1 in step, 0 not at all. The verdicts of the value's
    /// rounds take it into account. Absent where something else than connections is varied, or no
    /// neighbour tells.
    pub elasticity: Option<Effect>,
    /// What limited most of its rounds; of several verdicts that are as frequent, the one of the
    /// round that was measured first. Absent without rounds.
    pub verdict: Option<Verdict>,
}

impl SweepPoint<'_> {
    /// A figure over the rounds; absent where no round has it.
    pub fn spread(&self, of: impl Fn(&RoundRecord) -> Option<f64>) -> Option<Spread> {
        Spread::of(self.rounds.iter().filter_map(|round| of(round)))
    }

    /// Successful replies per second.
    pub fn successes_per_s(&self) -> Option<Spread> {
        self.spread(|round| round.successes_per_s)
    }
}

/// The highest throughput of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SweepHighest {
    /// The value with the highest median.
    pub value: f64,
    /// Successful replies per second at this value.
    pub successes_per_s: Spread,
    /// The least value whose throughput is lower by no more than by chance: the two intervals of
    /// the medians overlap, with fewer than 6 rounds what was seen in them, and the medians are
    /// within 5 %.
    pub from: f64,
}

impl Sweep {
    /// The layout that this version writes and reads.
    pub const FORMAT: u32 = 2;

    /// The values with their rounds, ascending. Those without a round are in it.
    pub fn points(&self) -> Vec<SweepPoint<'_>> {
        let mut of_value: BTreeMap<u64, Vec<&SweepRound>> = BTreeMap::new();
        for round in &self.rounds {
            let rounds = of_value.entry(round.value.to_bits()).or_default();
            rounds.push(round);
        }
        let rounds = |value: f64| {
            of_value
                .get(&value.to_bits())
                .map_or(&[][..], Vec::as_slice)
        };
        let point = |&value: &f64| {
            let neighbour = self.neighbour(value);
            let shows = neighbour.and_then(|neighbour| {
                Some(Elasticity {
                    effect: slope(value, rounds(value), neighbour, rounds(neighbour))?,
                    is_of_fewer: neighbour < value,
                })
            });
            let records = rounds(value).iter().map(|round| &round.record);
            let verdicts = records.clone().map(|round| round.verdict_with(shows));
            SweepPoint {
                value,
                rounds: records.collect(),
                elasticity: shows.map(|shows| shows.effect),
                verdict: most_frequent(&verdicts.collect::<Vec<_>>()),
            }
        };
        self.plan.values.iter().map(point).collect()
    }

    /// The value that tells what more connections than `value` give: the next one above that is
    /// apart enough, and at the end the next one below.
    fn neighbour(&self, value: f64) -> Option<f64> {
        if self.plan.varied != SweepAxis::Connections {
            return None;
        }
        let apart = |other: f64| {
            let ratio = (other / value).max(value / other);
            (NEIGHBOUR_LEAST..=NEIGHBOUR_MOST).contains(&ratio)
        };
        let values = || self.plan.values.iter().copied();
        let above = values().find(|&other| other > value && apart(other));
        above.or_else(|| values().rfind(|&other| other < value && apart(other)))
    }

    /// Whether every planned round was measured.
    pub fn is_complete(&self) -> bool {
        self.rounds.len() as u64 >= self.plan.values.len() as u64 * u64::from(self.plan.rounds)
    }

    /// The highest throughput. Absent without one.
    pub fn highest(&self) -> Option<SweepHighest> {
        let points = self.points();
        let rates = || {
            let points = points.iter();
            points.filter_map(|point| Some((point.value, point.successes_per_s()?)))
        };
        let (value, best) =
            rates().max_by(|(_, one), (_, other)| one.median.total_cmp(&other.median))?;
        let least = best.low.unwrap_or(best.min);
        let is_as_high = |rate: &Spread| {
            let most = rate.high.unwrap_or(rate.max);
            most >= least && rate.median >= (1.0 - ALIKE_MOST) * best.median
        };
        let from = rates().find(|(_, rate)| is_as_high(rate));
        Some(SweepHighest {
            value,
            successes_per_s: best,
            from: from.map_or(value, |(value, _)| value),
        })
    }
}

/// The slope of the rate's logarithm over that of the connections between two values, of the rounds
/// that both have and whose rates are the server's. Absent with fewer than two.
fn slope(
    value: f64,
    rounds: &[&SweepRound],
    neighbour: f64,
    others: &[&SweepRound],
) -> Option<Effect> {
    let log_rate = |round: &SweepRound| {
        let per_s = round.record.successes_per_s.filter(|&per_s| per_s > 0.0)?;
        round.record.is_of_server().then(|| per_s.ln())
    };
    let slopes: Vec<f64> = rounds
        .iter()
        .filter_map(|round| {
            let other = others.iter().find(|other| other.round == round.round)?;
            let rise = log_rate(other)? - log_rate(round)?;
            Some(rise / (neighbour / value).ln())
        })
        .collect();
    Effect::of(&slopes)
}

/// The most frequent of these verdicts, or the first of those that are.
fn most_frequent(verdicts: &[Verdict]) -> Option<Verdict> {
    let count = |verdict: &Verdict| verdicts.iter().filter(|other| *other == verdict).count();
    // Of equal ones, the last has the maximum.
    verdicts
        .iter()
        .rev()
        .max_by_key(|verdict| count(verdict))
        .copied()
}

/// A figure over rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Rounds that have the figure.
    pub rounds: usize,
    /// The least.
    pub min: f64,
    /// The median.
    pub median: f64,
    /// The most.
    pub max: f64,
    /// The lower end of the median's 95 % interval, by order statistics; null with fewer than 6
    /// rounds, with which it would reach beyond what was seen.
    pub low: Option<f64>,
    /// The upper end of the median's 95 % interval; null with fewer than 6 rounds.
    pub high: Option<f64>,
}

impl Spread {
    /// The spread of `values`; absent without any. Values that are not finite do not count.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values
            .into_iter()
            .filter(|value| value.is_finite())
            .collect();
        values.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let last = values.len() - 1;
        // As many are below the true median as tosses of a coin show heads.
        let count = values.len() as f64;
        let outside = (0..values.len() / 2)
            .take_while(|&below| is_share_below(below as f64, count, 0.5))
            .last();
        Some(Self {
            rounds: values.len(),
            min,
            median: median(&values)?,
            max,
            low: outside.map(|outside| values[outside]),
            high: outside.map(|outside| values[last - outside]),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariants::sample::steady_run;
    use crate::{Judged, VerdictIf};

    fn sweep(values: &[(f64, f64, Verdict)]) -> Sweep {
        let run = steady_run();
        let record = RoundRecord::of(&Judged::of(&run));
        let rounds = values.iter().flat_map(|&(value, per_s, verdict)| {
            let record = record.clone();
            (0..3).map(move |round| SweepRound {
                value,
                round,
                record: RoundRecord {
                    verdict,
                    verdict_if: None,
                    successes_per_s: Some(per_s + f64::from(round)),
                    ..record.clone()
                },
            })
        });
        Sweep {
            kind: ExperimentKind::Sweep,
            format: Sweep::FORMAT,
            brunt_version: String::new(),
            plan: SweepPlan {
                url: "http://a/".to_owned(),
                varied: SweepAxis::Connections,
                values: values.iter().map(|value| value.0).collect(),
                rounds: 3,
                seed: None,
                window_ns: Some(1),
                warmup_ns: 0,
                round_warmup_ns: 0,
            },
            load: None,
            environment: Environment::default(),
            broke_off: None,
            rounds: rounds.collect(),
        }
    }

    #[test]
    fn neighbours_decide_what_a_round_leaves_open() {
        use Verdict::{ClientLimited as L, ConcurrencyLimited as C, Inconclusive as I};
        let decided = |values: &[(f64, f64, Verdict)]| -> Vec<Verdict> {
            let mut swept = sweep(values);
            for round in &mut swept.rounds {
                let (in_step, flat) = match round.record.verdict {
                    L => (L, L),
                    _ => (C, Verdict::ServerLimited),
                };
                round.record.verdict_if = Some(VerdictIf { in_step, flat });
            }
            let points = swept.points().into_iter();
            points.filter_map(|point| point.verdict).collect()
        };
        let rates = [
            (1.0, 1e3),
            (2.0, 2e3),
            (4.0, 4e3),
            (8.0, 4_050.0),
            (16.0, 4_050.0),
        ];
        let open = rates.map(|(connections, per_s)| (connections, per_s, I));
        let server = Verdict::ServerLimited;
        assert_eq!(decided(&open), [C, C, server, server, server]);
        // A rate that brunt limits says nothing of its neighbours, and stays as it was.
        let mut limited = open;
        limited[4].2 = L;
        assert_eq!(decided(&limited), [C, C, server, I, L]);
        // Values that are too far apart tell nothing.
        assert_eq!(decided(&[(1.0, 1_000.0, I), (100.0, 1_000.0, I)]), [I, I]);
    }

    #[test]
    fn points_and_the_highest_follow_from_the_rounds() {
        use Verdict::{ConcurrencyLimited as C, Inconclusive as I, ServerLimited as S};
        let swept = sweep(&[
            (1.0, 100.0, C),
            (2.0, 200.0, C),
            (4.0, 400.0, C),
            (8.0, 420.0, I),
            (16.0, 430.0, S),
            (32.0, 430.0, S),
        ]);
        assert!(swept.is_complete());
        let points = swept.points();
        let rate = points[0].successes_per_s().expect("three rounds");
        assert_eq!((rate.min, rate.median, rate.max), (100.0, 101.0, 102.0));
        assert_eq!(points[0].verdict, Some(C));
        let highest = swept.highest().expect("a rate");
        assert_eq!((highest.value, highest.from), (32.0, 16.0));
        // Of verdicts that are as frequent, the first one counts.
        let tied = [
            (&[C, S, S][..], Some(S)),
            (&[I, S, C, S, I], Some(I)),
            (&[], None),
        ];
        for (verdicts, found) in tied {
            assert_eq!(most_frequent(verdicts), found, "{verdicts:?}");
        }
    }

    #[test]
    fn a_sweep_that_was_cut_short_has_points_without_rounds() {
        let mut swept = sweep(&[
            (1.0, 1.0, Verdict::ServerLimited),
            (2.0, 2.0, Verdict::Invalid),
        ]);
        swept.rounds.truncate(2);
        assert!(!swept.is_complete());
        let points = swept.points();
        assert_eq!((points[0].rounds.len(), points[1].rounds.len()), (2, 0));
        assert_eq!(
            (points[1].verdict, points[1].successes_per_s()),
            (None, None)
        );
    }

    #[test]
    fn few_rounds_have_no_interval() {
        assert_eq!(Spread::of([]), None);
        assert_eq!(Spread::of([f64::NAN]), None);
        let three = Spread::of([3.0, 1.0, 2.0]).expect("values");
        assert_eq!((three.min, three.median, three.max), (1.0, 2.0, 3.0));
        assert_eq!((three.low, three.high), (None, None));
        let four = Spread::of([4.0, 1.0, 2.0, 3.0]).expect("values");
        assert_eq!((four.rounds, four.median), (4, 2.5));
    }
}
