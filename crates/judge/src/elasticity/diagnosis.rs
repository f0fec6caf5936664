//! What the active experiments of `--diagnose` show: what the rate did when connections and brunt's
//! own work were changed on purpose.

use std::collections::BTreeMap;

use brunt_record::{Diagnosis, DiagnosisPart};

use super::Effect;

/// An added delay that could lower the rate by less than this, were brunt the only bottleneck,
/// says nothing: so much is chance.
const FALL_LEAST: f64 = 0.01;

/// The elasticity of the rate with respect to the connections: the slope of its logarithm over the
/// logarithm of their number. 1: the rate grows in step, so that connections are the limit; 0: it
/// does not grow. Absent without two numbers of connections in each of two rounds.
pub fn connections_elasticity(diagnosis: &Diagnosis) -> Option<Effect> {
    let slopes: Vec<f64> = rounds(diagnosis)
        .filter_map(|round| {
            let points = round.iter().filter(|part| part.delay_ns == 0);
            slope(points.filter_map(|part| {
                let connections = (part.connections > 0).then_some(part.connections)?;
                Some((f64::from(connections).ln(), per_s(part)?.ln()))
            }))
        })
        .collect();
    Effect::of(&slopes)
}

/// By how much work added to each request lowers the rate, as a share of what it would do if
/// brunt's workers were the only bottleneck. 1: they are on the critical path; 0: they are
/// not. Absent without parts with added work and without, and when it was too little to tell.
pub fn delay_effect(diagnosis: &Diagnosis) -> Option<Effect> {
    let workers = f64::from(diagnosis.workers.max(1));
    let effects: Vec<f64> = rounds(diagnosis)
        .filter_map(|round| {
            let at = |is_delayed: bool| {
                round.iter().find(|part| {
                    part.connections == diagnosis.connections && (part.delay_ns > 0) == is_delayed
                })
            };
            let (free, delayed) = (at(false)?, at(true)?);
            let (free_per_s, delayed_per_s) = (per_s(free)?, per_s(delayed)?);
            let added = delayed.delay_ns as f64 / 1e9 * free_per_s / workers;
            let fall_expected = added / (1.0 + added);
            let fall = 1.0 - delayed_per_s / free_per_s;
            (fall_expected >= FALL_LEAST).then_some(fall / fall_expected)
        })
        .collect();
    Effect::of(&effects)
}

/// The parts by round. Each round holds each setting as often as any other round does.
fn rounds(diagnosis: &Diagnosis) -> impl Iterator<Item = &[DiagnosisPart]> {
    let mut times = BTreeMap::new();
    for part in &diagnosis.parts {
        let count = times.entry((part.connections, part.delay_ns)).or_insert(0);
        *count += 1_usize;
    }
    let rounds = times.into_values().fold(0, greatest_common_divisor);
    let length = diagnosis
        .parts
        .len()
        .checked_div(rounds)
        .unwrap_or(0)
        .max(1);
    diagnosis.parts.chunks_exact(length)
}

/// The rate of the part. Absent without a reply.
fn per_s(part: &DiagnosisPart) -> Option<f64> {
    (part.replies > 0 && part.length_ns > 0)
        .then(|| part.replies as f64 * 1e9 / part.length_ns as f64)
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 {
        a
    } else {
        greatest_common_divisor(b, a % b)
    }
}

/// The least-squares slope of `y` over `x`. Absent where `x` is the same in all points.
fn slope(points: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let points: Vec<_> = points.collect();
    let n = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / n;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / n;
    let (mut along, mut across) = (0.0, 0.0);
    for (x, y) in &points {
        along += (x - mean_x).powi(2);
        across += (x - mean_x) * (y - mean_y);
    }
    // Logarithms of different whole numbers differ by more than rounding.
    (along > 1e-18).then(|| across / along)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEVELS: [(u32, u64); 4] = [(64, 0), (32, 0), (96, 0), (64, 5_000)];

    /// Four rounds of half a second per level, in orders that turn.
    fn experiment(
        workers: u32,
        levels: &[(u32, u64)],
        per_s: impl Fn(u32, u64) -> f64,
    ) -> Diagnosis {
        let mut parts = Vec::new();
        for round in 0..4 {
            for place in 0..levels.len() {
                let place = if round % 2 == 0 {
                    place
                } else {
                    levels.len() - 1 - place
                };
                let (connections, delay_ns) = levels[place];
                // Half a per cent of scatter.
                let scatter = 1.0 + 0.005 * f64::from((round * 7 + place as u32) % 3) - 0.005;
                parts.push(DiagnosisPart {
                    connections,
                    delay_ns,
                    replies: (per_s(connections, delay_ns) * 0.5 * scatter) as u64,
                    length_ns: 500_000_000,
                });
            }
        }
        Diagnosis {
            workers,
            connections: levels[0].0,
            parts,
        }
    }

    fn assert_about(effect: Option<Effect>, value: f64) {
        let effect = effect.expect("an effect");
        assert!(
            effect.low <= effect.value && effect.value <= effect.high,
            "{effect:?}"
        );
        assert!(
            effect.low - 0.02 <= value && value <= effect.high + 0.02,
            "{effect:?}"
        );
        assert!(
            (effect.value - value).abs() < 0.15,
            "{effect:?}, not {value}"
        );
    }

    #[test]
    fn what_limits_shows_in_the_effects() {
        type Rate = fn(u32, u64) -> f64;
        // (what limits, workers, rate by connections and delay, elasticity, effect of the delay)
        let cases: [(&str, u32, Rate, f64, f64); 4] = [
            ("the server", 1, |_, _| 100_000.0, 0.0, 0.0),
            (
                "the connections",
                1,
                |c, _| f64::from(c) * 2_000.0,
                1.0,
                0.0,
            ),
            (
                "one worker of 10 us",
                1,
                |_, d| 1e9 / (10_000 + d) as f64,
                0.0,
                1.0,
            ),
            (
                "two workers of 10 us",
                2,
                |_, d| 2e9 / (10_000 + d) as f64,
                0.0,
                1.0,
            ),
        ];
        for (what, workers, rate, elasticity, delay) in cases {
            let made = experiment(workers, &LEVELS, rate);
            assert_eq!(rounds(&made).count(), 4, "{what}");
            assert_about(connections_elasticity(&made), elasticity);
            assert_about(delay_effect(&made), delay);
        }
    }

    #[test]
    fn one_connection_has_no_fewer() {
        let levels = [(1, 0), (2, 0), (1, 20_000)];
        let made = experiment(1, &levels, |c, d| f64::from(c) * 1e9 / (60_000 + d) as f64);
        assert_about(connections_elasticity(&made), 1.0);
        // One connection feels everything that is on its way.
        assert_about(delay_effect(&made), 1.0);
        // The same level twice in a round.
        let twice = experiment(1, &[(1, 0), (1, 0), (2, 0), (1, 20_000)], |c, _| {
            f64::from(c) * 1e3
        });
        assert_eq!(rounds(&twice).count(), 4);
        assert_about(connections_elasticity(&twice), 1.0);
    }

    #[test]
    fn what_was_not_tried_has_no_effect() {
        let none = Diagnosis {
            workers: 1,
            connections: 64,
            parts: Vec::new(),
        };
        let same = experiment(1, &[(64, 0)], |_, _| 1e5);
        let silent = experiment(1, &LEVELS, |_, _| 0.0);
        let mut short = experiment(1, &LEVELS, |_, _| 1e5);
        short.parts.truncate(4);
        for made in [none, same, silent, short] {
            assert_eq!(connections_elasticity(&made), None, "{made:?}");
            assert_eq!(delay_effect(&made), None, "{made:?}");
        }
        // 5 us in 50 ms are too little to be seen.
        let slow = experiment(1, &LEVELS, |c, _| f64::from(c) * 20.0);
        assert_eq!(delay_effect(&slow), None);
        assert_about(connections_elasticity(&slow), 1.0);
    }

    fn any_part() -> impl Strategy<Value = DiagnosisPart> {
        let number = prop_oneof![0_u64..4, any::<u64>()];
        (0_u32..4, 0_u64..3, number.clone(), number).prop_map(
            |(connections, delay_ns, replies, length_ns)| DiagnosisPart {
                connections,
                delay_ns: delay_ns.wrapping_mul(u64::MAX / 3),
                replies,
                length_ns,
            },
        )
    }

    proptest! {
        #[test]
        fn effects_are_numbers(
            workers in any::<u32>(),
            connections in 0_u32..4,
            parts in prop::collection::vec(any_part(), 0..40),
        ) {
            let made = Diagnosis { workers, connections, parts };
            let effects = [connections_elasticity(&made), delay_effect(&made)];
            for effect in effects.into_iter().flatten() {
                prop_assert!(effect.low.is_finite() && effect.high.is_finite());
                prop_assert!(effect.low <= effect.value && effect.value <= effect.high);
            }
        }
    }
}
