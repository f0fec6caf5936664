//! What other numbers of connections do to the rate: in the rounds of an experiment, and in the
//! warm-up of a closed loop, while half of the connections paused.

use brunt_record::{Halving, Run};
use serde::Serialize;

use crate::Summary;
use crate::statistics::{Mean, quantile_975};

/// Replies of a stretch below which its rate is chance.
const REPLIES_LEAST: f64 = 20.0;
/// Slices that a stretch needs beside those in which the change of level still shows.
const SLICES_LEAST: usize = 3;
/// Mean service times for which a change of level still shows: what was in flight is answered, and
/// what was sent at once has spread.
const SETTLING_SERVICE_TIMES: f64 = 2.0;
/// Share of the connections that may be starved, for half of the connections to be half of the
/// load.
const STARVED_MOST: f64 = 0.02;
/// A rate follows in step at most. One that falls by more has another reason: a server that waits
/// for what a paused connection may send.
const ELASTICITY_MOST: f64 = 1.1;
/// Relative standard error of the rate of a window.
const WINDOW_ERROR: f64 = 0.02;
/// Logarithm of all connections over half of them below which they are too much alike.
const STEP_LEAST: f64 = 0.1;

/// Effect of an experiment above which the change went through.
const EFFECT_STRONG: f64 = 0.5;
/// Effect of half of the connections in the warm-up, above which the change went through. A lock
/// that eight of ten connections fill gives 0.68, and its interval ends above this in one run of
/// 50. A second of warm-up gives an interval of 0.2 at 3,000 requests per second [tuned].
const EFFECT_WHOLE: f64 = 0.70;
/// Effect of an experiment below which the change did not go through.
const EFFECT_WEAK: f64 = 0.3;

/// What a change of setting did, with a two-sided 95 % confidence interval over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Effect {
    /// The mean over the rounds.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end of its interval.
    pub high: f64,
}

impl Effect {
    /// The mean of what each round found, with its interval. Absent for fewer than two rounds.
    pub(crate) fn of(rounds: &[f64]) -> Option<Self> {
        let mean = Mean::of(rounds)?;
        Some(Self {
            value: mean.value,
            low: mean.value - mean.half_width,
            high: mean.value + mean.half_width,
        })
    }

    /// A ratio less 1, where this is its logarithm.
    pub(crate) fn change(self) -> Self {
        Self {
            value: self.value.exp_m1(),
            low: self.low.exp_m1(),
            high: self.high.exp_m1(),
        }
    }
}

/// The elasticity of the rate with respect to the connections, from an experiment that decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Elasticity {
    pub(crate) effect: Effect,
    /// Whether fewer connections were tried, and not more: as the warm-up does.
    pub(crate) is_of_fewer: bool,
}

impl Elasticity {
    /// What the warm-up found. Absent where it leaves open what more connections would give.
    pub(crate) fn of_warm_up(run: &Run, summary: &Summary) -> Option<Self> {
        // Those of several machines were not at the same time.
        let [agent] = &run.agents[..] else {
            return None;
        };
        let halving = halving_of(agent.workers.iter().map(|worker| worker.halving.as_ref()))?;
        let replies = summary.window.replies.total() as f64;
        let (effect, is_within) = effect_of(&halving, replies * 1e9 / run.window_ns as f64)?;
        let found = Self {
            effect,
            is_of_fewer: true,
        };
        // Against the window alone, a server that becomes faster with time seems to follow.
        let decides = found.gives_less() || is_within && found.gives_more();
        decides.then_some(found)
    }

    /// Whether more connections would give more. If an experiment only showed that half of the
    /// connections gave less, the rate must follow in full: else a lock that most of them fill
    /// would look the same.
    pub(crate) fn gives_more(&self) -> bool {
        let followed_from = if self.is_of_fewer {
            EFFECT_WHOLE
        } else {
            EFFECT_STRONG
        };
        self.effect.low > followed_from
    }

    /// Whether more connections would give no more, or not in step.
    pub(crate) fn gives_less(&self) -> bool {
        if self.is_of_fewer {
            self.effect.high < EFFECT_WHOLE
        } else {
            self.effect.low <= EFFECT_STRONG
        }
    }

    /// Whether more connections would give no more at all.
    pub(crate) fn gives_nothing(&self) -> bool {
        self.effect.high < EFFECT_WEAK
    }
}

/// The sum of what all workers counted, who took part at the same time. Absent where one did not.
fn halving_of<'a>(mut workers: impl Iterator<Item = Option<&'a Halving>>) -> Option<Halving> {
    let mut all = workers.next()??.clone();
    for other in workers {
        let other = other?;
        if (other.slice_ns, other.replies.len()) != (all.slice_ns, all.replies.len()) {
            return None;
        }
        all.connections = all.connections.saturating_add(other.connections);
        all.used_by_half = all.used_by_half.saturating_add(other.used_by_half);
        all.starved = all.starved.saturating_add(other.starved);
        for (own, others) in all.replies.iter_mut().zip(&other.replies) {
            *own = own.saturating_add(*others);
        }
    }
    let is_whole = all.replies.len() == Halving::SLICES && all.slice_ns > 0;
    let are_all_served = f64::from(all.starved) <= STARVED_MOST * f64::from(all.connections);
    (is_whole && are_all_served).then_some(all)
}

/// By how much the rate followed the number of connections that were used, between half and all of
/// them: 1 is in step, 0 not at all. Absent where replies take too long for the stretches of half.
/// Also whether the warm-up shows the rate of all as well: else it is that of the window alone,
/// with so many replies per second.
fn effect_of(halving: &Halving, replies_per_s: f64) -> Option<(Effect, bool)> {
    let [from, until, again_from, again_until] = Halving::EDGES;
    let stretch = |from: usize, until: usize| halving.replies.get(from..until);
    let whole = settled(&[stretch(until, again_from)?], halving.connections);
    let whole = whole.and_then(|settled| logarithm(&settled.concat()));
    let per_slice = (replies_per_s * halving.slice_ns as f64 / 1e9).ln();
    let window = per_slice.is_finite().then_some(Mean {
        value: per_slice,
        error: WINDOW_ERROR,
        half_width: 2.0 * WINDOW_ERROR,
    });
    // The window tells the rate of all more exactly, where it is that of the warm-up.
    let is_same = |whole: Mean, window: Mean| {
        let difference = (window.value - whole.value).abs();
        difference <= whole.half_width
    };
    let all = match (whole, window) {
        (Some(whole), Some(window)) if is_same(whole, window) => window,
        (whole, window) => whole.or(window)?,
    };
    let halves = [stretch(from, until)?, stretch(again_from, again_until)?];
    let settled = settled(&halves, halving.used_by_half)?;
    let half = logarithm(&settled.concat())?;
    // What the two stretches differ by beyond a steady drift is not known better than this.
    let [first, second] = [logarithm(settled[0])?, logarithm(settled[1])?];
    let bent = (first.value - second.value) / 4.0;
    let step = (f64::from(halving.connections) / f64::from(halving.used_by_half)).ln();
    if !step.is_finite() || step < STEP_LEAST {
        return None;
    }
    let value = (all.value - half.value) / step;
    let half_width = all.half_width.hypot(half.half_width).hypot(bent) / step;
    let effect = Effect {
        value,
        low: value - half_width,
        high: value + half_width,
    };
    (effect.low <= ELASTICITY_MOST).then_some((effect, whole.is_some()))
}

/// The slices of each stretch at a level of so many connections in which the switch to that level
/// no longer shows. Absent with too few.
fn settled<'a>(stretches: &[&'a [u64]], connections: u32) -> Option<Vec<&'a [u64]>> {
    let slices = stretches.concat();
    let replies: f64 = slices.iter().map(|&replies| replies as f64).sum();
    // Little's law: a mean service time is connections in use over their rate.
    let service_slices = f64::from(connections) * slices.len() as f64 / replies;
    let settling = 1.0 + (SETTLING_SERVICE_TIMES * service_slices).ceil();
    if !settling.is_finite() {
        return None;
    }
    let stretches = stretches.iter().map(|stretch| {
        // The cast saturates.
        let rest = stretch.get(settling as usize..)?;
        (rest.len() >= SLICES_LEAST).then_some(rest)
    });
    stretches.collect()
}

/// Logarithm of the mean of counts, with its interval. Absent where they are too few.
fn logarithm(counts: &[u64]) -> Option<Mean> {
    let counts: Vec<f64> = counts.iter().map(|&count| count as f64).collect();
    let mean = Mean::of(&counts)?;
    if mean.value * (counts.len() as f64) < REPLIES_LEAST {
        return None;
    }
    // The logarithm's error is the relative one.
    let error = mean.error / mean.value;
    Some(Mean {
        value: mean.value.ln(),
        error,
        half_width: quantile_975(counts.len() - 1) * error,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// One worker whose connections give `per_slice(slice, connections in use)`.
    fn worker(connections: u32, per_slice: impl Fn(usize, f64) -> f64) -> Halving {
        let used_by_half = connections.div_ceil(2);
        let replies = (0..Halving::SLICES).map(|slice| {
            let used = if Halving::pauses_half(slice) {
                used_by_half
            } else {
                connections
            };
            // Two per cent of scatter.
            let scatter = 1.0 + 0.01 * (slice * 7 % 5) as f64 - 0.02;
            (per_slice(slice, f64::from(used)) * scatter) as u64
        });
        Halving {
            connections,
            used_by_half,
            slice_ns: 20_000_000,
            starved: 0,
            replies: replies.collect(),
        }
    }

    /// What the warm-up shows of all connections and of half of them.
    fn elasticity(workers: &[Halving]) -> Option<Effect> {
        let all = halving_of(workers.iter().map(Some))?;
        effect_of(&all, 0.0).map(|(effect, _)| effect)
    }

    fn assert_about(effect: Option<Effect>, value: f64) {
        let effect = effect.expect("a signal");
        assert!((effect.value - value).abs() < 0.05, "{effect:?}");
        assert!(effect.low < value && value < effect.high, "{effect:?}");
        assert!(effect.high - effect.low < 0.4, "{effect:?}");
    }

    #[test]
    fn the_rate_follows_what_limits_it() {
        assert_about(elasticity(&[worker(64, |_, _| 1_000.0)]), 0.0);
        assert_about(elasticity(&[worker(64, |_, used| used * 40.0)]), 1.0);
        // A lock that 45 connections fill.
        let lock = worker(64, |_, used| used.min(45.25) * 40.0);
        assert_about(elasticity(&[lock]), 0.5);
        // A server that becomes faster throughout.
        let warming = |slice: usize, used: f64| used * (200.0 + slice as f64);
        assert_about(elasticity(&[worker(64, warming)]), 1.0);
    }

    #[test]
    fn workers_add_up() {
        let workers = [
            worker(33, |_, used| used * 40.0),
            worker(31, |_, used| used * 40.0),
        ];
        assert_about(elasticity(&workers), 1.0);
    }

    #[test]
    fn levels_too_short_to_tell_say_nothing() {
        // Replies that take as long as eight slices.
        let slow = worker(64, |_, used| used / 8.0);
        assert_eq!(elasticity(&[slow]), None);
        // Few of them.
        let few = worker(2, |_, used| used);
        assert_eq!(elasticity(&[few]), None);
        // A worker without the experiment.
        let with = worker(64, |_, _| 1_000.0);
        assert_eq!(halving_of([Some(&with), None].into_iter()), None);
        assert_eq!(elasticity(&[]), None);
        // Served in part.
        let mut in_part = worker(64, |_, used| used * 40.0);
        in_part.starved = 2;
        assert_eq!(elasticity(&[in_part]), None);
        // A server that waits for what a paused connection may send.
        let waits = worker(64, |_, used| if used < 64.0 { 30.0 } else { 1_000.0 });
        assert_eq!(elasticity(&[waits]), None);
        // Nobody paused.
        assert_eq!(elasticity(&[worker(1, |_, _| 1_000.0)]), None);
    }

    #[test]
    fn a_window_that_agrees_makes_it_more_exact() {
        let noisy = worker(64, |slice, used| {
            used * [30.0, 50.0, 40.0, 44.0, 36.0][slice % 5]
        });
        let all = halving_of([Some(&noisy)].into_iter()).expect("it took part");
        let width = |all: &Halving, per_s: f64| {
            let (effect, is_within) = effect_of(all, per_s).expect("a signal");
            assert!(is_within);
            effect.high - effect.low
        };
        let per_s = 64.0 * 40.0 * 50.0;
        let alone = width(&all, 0.0);
        let with = width(&all, per_s);
        assert!(with < 0.9 * alone, "{with} of {alone}");
        // A server that became faster is not compared with its beginning.
        assert_eq!(width(&all, 2.0 * per_s), alone);
    }

    #[test]
    fn replies_that_take_long_are_compared_with_the_window() {
        // Four places of 8 ms: 64 connections wait for 128 ms, 32 for 64 ms.
        let four_places = worker(64, |_, _| 10.0);
        assert_eq!(elasticity(std::slice::from_ref(&four_places)), None);
        let all = halving_of([Some(&four_places)].into_iter()).expect("it took part");
        let (effect, is_within) = effect_of(&all, 500.0).expect("a signal");
        assert!(effect.low < 0.0 && effect.high < 0.3, "{effect:?}");
        assert!(!is_within);
    }

    #[test]
    fn what_bends_is_known_less_well() {
        // Stopped in the first stretch at half.
        let stopped = worker(64, |slice, _| match slice {
            12..16 => 0.0,
            _ => 1_000.0,
        });
        let effect = elasticity(&[stopped]).expect("a signal");
        let is_open = effect.low < 0.0 && effect.high > 0.3;
        assert!(is_open, "{effect:?}");
    }

    proptest! {
        #[test]
        fn effects_are_numbers(
            connections in any::<u32>(),
            used_by_half in any::<u32>(),
            slice_ns in any::<u64>(),
            per_s in prop_oneof![0.0..1e9, any::<f64>()],
            replies in prop::collection::vec(prop_oneof![0_u64..200, any::<u64>()], 45..55),
        ) {
            let halving = Halving { connections, used_by_half, starved: 0, slice_ns, replies };
            let all = halving_of([Some(&halving), Some(&halving)].into_iter());
            if let Some((effect, _)) = all.and_then(|all| effect_of(&all, per_s)) {
                prop_assert!(effect.low.is_finite() && effect.high.is_finite());
                prop_assert!(effect.low <= effect.value && effect.value <= effect.high);
            }
        }
    }
}
