//! A sweep as it is stored: rounds at several values of one setting. What follows from them, such
//! as the knee, is worked out when it is read.

use std::collections::BTreeMap;

use brunt_load::Plan;
use brunt_record::Environment;
use serde::{Deserialize, Serialize};

use crate::elasticity::Elasticity;
use crate::statistics::{is_share_below, median};
use crate::{Effect, ExperimentKind, RoundRecord, RoundUse, Verdict};

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

/// What client or server used at one value, over its rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct UseSpread {
    /// CPUs used in user space.
    pub user_cpus: Option<Spread>,
    /// CPUs used in the kernel.
    pub system_cpus: Option<Spread>,
    /// Most resident memory, bytes.
    pub resident_bytes: Option<Spread>,
}

/// How often a verdict was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct VerdictCount {
    /// The verdict.
    pub verdict: Verdict,
    /// The number of rounds with this verdict.
    pub rounds: usize,
}

/// All rounds of one value. A figure is null where no round has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SweepPoint {
    /// The value of what is varied.
    pub value: f64,
    /// Rounds that were measured.
    pub rounds: usize,
    /// Successful replies per second.
    pub successes_per_s: Option<Spread>,
    /// The mean response time, nanoseconds.
    pub mean_ns: Option<Spread>,
    /// The median response time, nanoseconds.
    pub p50_ns: Option<Spread>,
    /// The 90th percentile, nanoseconds.
    pub p90_ns: Option<Spread>,
    /// The 99th percentile, nanoseconds.
    pub p99_ns: Option<Spread>,
    /// The 99.9th percentile, nanoseconds.
    pub p99_9_ns: Option<Spread>,
    /// The longest response time, nanoseconds.
    pub max_ns: Option<Spread>,
    /// Requests issued, all rounds together.
    pub issued: u64,
    /// Replies with an error status, all rounds together.
    pub errors: u64,
    /// Requests that failed, all rounds together.
    pub failed: u64,
    /// Share (0 to 1) of the requests that did not succeed.
    pub error_share: Option<Spread>,
    /// What brunt used.
    pub client: UseSpread,
    /// What the server used.
    pub server: UseSpread,
    /// The elasticity of the rate with respect to the connections, from this value to a neighbour,
    /// over the rounds: 1 in step, 0 not at all. The verdicts of the value's rounds take it into
    /// account. Null where something else than connections is varied, or no neighbour tells.
    pub elasticity: Option<NeighbourElasticity>,
    /// What limited most of its rounds; of several verdicts that are as frequent, the one of the
    /// round that was measured first. Null without rounds.
    pub verdict: Option<Verdict>,
    /// All verdicts of its rounds, the most frequent first.
    pub verdicts: Vec<VerdictCount>,
}

/// What a neighbour shows of more connections.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct NeighbourElasticity {
    /// The neighbour: 1.5 to 4 times as many connections, or as few.
    pub neighbour: f64,
    /// The slope of the rate's logarithm over that of the connections, with its 95 % interval over
    /// the rounds.
    pub slope: Effect,
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

/// Neighbouring values with the same verdict.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct VerdictStretch {
    /// The verdict.
    pub verdict: Verdict,
    /// The first of the values.
    pub from: f64,
    /// The last of the values.
    pub to: f64,
}

/// Where more connections cease to give more: the verdict turns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct VerdictTurn {
    /// The last value that is limited by concurrency.
    pub concurrency_limited_to: f64,
    /// The first value behind it that is limited by the server.
    pub server_limited_from: f64,
}

impl Sweep {
    /// The layout that this version writes and reads.
    pub const FORMAT: u32 = 2;

    /// The values with the figures of their rounds, ascending. Those without a round are in it.
    pub fn points(&self) -> Vec<SweepPoint> {
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
        let values = self.plan.values.iter();
        values
            .map(|&value| {
                let neighbour = self.neighbour(value);
                let elasticity = neighbour.and_then(|neighbour| {
                    let slope = slope(value, rounds(value), neighbour, rounds(neighbour))?;
                    Some(NeighbourElasticity { neighbour, slope })
                });
                point(value, rounds(value), elasticity)
            })
            .collect()
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
            points.filter_map(|point| Some((point.value, point.successes_per_s?)))
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

    /// Where the curve bends: of throughput over connections, workers and streams, of p99 over the
    /// rate. Absent where it does not, and of what else is varied.
    pub fn knee(&self) -> Option<f64> {
        if matches!(self.plan.varied, SweepAxis::BodyBytes | SweepAxis::Requests) {
            return None;
        }
        let is_rate = self.plan.varied == SweepAxis::Rate;
        let curve = self.points().into_iter().filter_map(|point| {
            let figure = if is_rate {
                point.p99_ns
            } else {
                point.successes_per_s
            };
            Some((point.value, figure?.median))
        });
        knee(&curve.collect::<Vec<_>>(), is_rate)
    }

    /// The verdicts over the values: neighbours with the same one are one stretch.
    pub fn stretches(&self) -> Vec<VerdictStretch> {
        let mut stretches: Vec<VerdictStretch> = Vec::new();
        for point in self.points() {
            let Some(verdict) = point.verdict else {
                continue;
            };
            match stretches.last_mut() {
                Some(last) if last.verdict == verdict => last.to = point.value,
                _ => stretches.push(VerdictStretch {
                    verdict,
                    from: point.value,
                    to: point.value,
                }),
            }
        }
        stretches
    }

    /// Where the verdict turns from concurrency to the server: no value behind the turn is limited
    /// by concurrency. Absent where it does not.
    pub fn turn(&self) -> Option<VerdictTurn> {
        let stretches = self.stretches();
        let last = stretches
            .iter()
            .rposition(|stretch| stretch.verdict == Verdict::ConcurrencyLimited)?;
        let server = stretches[last..]
            .iter()
            .find(|stretch| stretch.verdict == Verdict::ServerLimited)?;
        Some(VerdictTurn {
            concurrency_limited_to: stretches[last].to,
            server_limited_from: server.from,
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

/// The figures of the rounds of one value.
fn point(
    value: f64,
    rounds: &[&SweepRound],
    elasticity: Option<NeighbourElasticity>,
) -> SweepPoint {
    let shows = elasticity.map(|found| Elasticity {
        effect: found.slope,
        is_of_fewer: found.neighbour < value,
    });
    let rounds: Vec<&RoundRecord> = rounds.iter().map(|round| &round.record).collect();
    let spread = |of: &dyn Fn(&RoundRecord) -> Option<f64>| {
        Spread::of(rounds.iter().filter_map(|round| of(round)))
    };
    let whole = |of: &dyn Fn(&RoundRecord) -> Option<u64>| {
        spread(&|round| of(round).map(|value| value as f64))
    };
    let sum = |of: fn(&RoundRecord) -> u64| {
        let counts = rounds.iter().map(|round| of(round));
        counts.fold(0_u64, u64::saturating_add)
    };
    let used = |of: &dyn Fn(&RoundRecord) -> Option<RoundUse>| UseSpread {
        user_cpus: spread(&|round| of(round)?.user_cpus),
        system_cpus: spread(&|round| of(round)?.system_cpus),
        resident_bytes: whole(&|round| of(round)?.resident_bytes),
    };
    let verdicts = verdicts(&rounds, shows);
    SweepPoint {
        value,
        rounds: rounds.len(),
        successes_per_s: spread(&|round| round.successes_per_s),
        mean_ns: whole(&|round| round.response.mean_ns),
        p50_ns: whole(&|round| round.response.p50_ns),
        p90_ns: whole(&|round| round.response.p90_ns),
        p99_ns: whole(&|round| round.response.p99_ns),
        p99_9_ns: whole(&|round| round.response.p99_9_ns),
        max_ns: whole(&|round| round.response.max_ns),
        issued: sum(|round| round.issued),
        errors: sum(|round| round.errors),
        failed: sum(|round| round.failed),
        error_share: spread(&RoundRecord::error_share),
        client: used(&|round| Some(round.client)),
        server: used(&|round| round.server),
        elasticity,
        verdict: verdicts.first().map(|count| count.verdict),
        verdicts,
    }
}

/// How often each verdict was given, the most frequent first, then the one that was first.
fn verdicts(rounds: &[&RoundRecord], shows: Option<Elasticity>) -> Vec<VerdictCount> {
    let mut counts: Vec<VerdictCount> = Vec::new();
    for round in rounds {
        let verdict = round.verdict_with(shows);
        match counts.iter_mut().find(|count| count.verdict == verdict) {
            Some(count) => count.rounds += 1,
            None => counts.push(VerdictCount { verdict, rounds: 1 }),
        }
    }
    counts.sort_by_key(|count| std::cmp::Reverse(count.rounds));
    counts
}

/// Fewest points of which a bend can be told.
const POINTS_LEAST: usize = 5;
/// A curve that stays nearer to the straight line than this, of scaled axes, has no knee.
const DISTANCE_LEAST: f64 = 0.1;

/// The x of the knee of a curve (x ascending, and y): where it flattens or, where that is asked,
/// where it steepens. Absent where there is none, or with too few points.
pub(crate) fn knee(points: &[(f64, f64)], steepens: bool) -> Option<f64> {
    let ends = |of: fn(&(f64, f64)) -> f64| {
        let values = || points.iter().map(of);
        let least = values().reduce(f64::min)?;
        let length = values().reduce(f64::max)? - least;
        (length.is_finite() && length > 0.0).then_some((least, length))
    };
    if points.len() < POINTS_LEAST {
        return None;
    }
    let (x_least, x_length) = ends(|point| point.0)?;
    let (y_least, y_length) = ends(|point| point.1)?;
    let distances = points.iter().map(|&(x, y)| {
        let above = (y - y_least) / y_length - (x - x_least) / x_length;
        (x, if steepens { -above } else { above })
    });
    // The first of those that are as far.
    let farthest = distances.reduce(|best, next| if next.1 > best.1 { next } else { best });
    let (x, distance) = farthest?;
    let is_within = x > points[0].0 && x < points[points.len() - 1].0;
    (distance >= DISTANCE_LEAST && is_within).then_some(x)
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
    fn points_knee_and_turn_follow_from_the_rounds() {
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
        let rate = points[0].successes_per_s.expect("three rounds");
        assert_eq!((rate.min, rate.median, rate.max), (100.0, 101.0, 102.0));
        assert_eq!(points[0].verdict, Some(C));
        assert_eq!(swept.knee(), Some(4.0));
        let highest = swept.highest().expect("a rate");
        assert_eq!((highest.value, highest.from), (32.0, 16.0));
        let turn = swept.turn().expect("it turns");
        assert_eq!(turn.concurrency_limited_to, 4.0);
        assert_eq!(turn.server_limited_from, 16.0);
        assert_eq!(swept.stretches().len(), 3);
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
        assert_eq!((points[0].rounds, points[1].rounds), (2, 0));
        assert_eq!((points[1].verdict, points[1].successes_per_s), (None, None));
        assert_eq!((swept.knee(), swept.turn()), (None, None));
    }

    fn curve(x: &[f64], y: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        x.iter().map(|&x| (x, y(x))).collect()
    }

    #[test]
    fn saturation_is_a_knee() {
        let x: Vec<f64> = (1..=100).map(f64::from).collect();
        // A server with 20 places: its rate follows the connections, then no more.
        let points = curve(&x, |x| x.min(20.0) * 1_000.0);
        assert_eq!(knee(&points, false), Some(20.0));
        // It declines behind it.
        let points = curve(&x, |x| x.min(20.0) * 1_000.0 - 10.0 * x);
        assert_eq!(knee(&points, false), Some(20.0));
    }

    #[test]
    fn straight_short_and_flat_curves_have_none() {
        let x: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(knee(&curve(&x, |x| 3.0 * x), false), None);
        assert_eq!(knee(&curve(&x, |_| 3.0), false), None);
        assert_eq!(knee(&curve(&x[..4], |x| x.min(2.0)), false), None);
        assert_eq!(knee(&[], false), None);
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
