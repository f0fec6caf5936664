//! Intervals hold what they are to hold: on runs of known figures, and of simulated servers.

use super::*;
use std::f64::consts::TAU;

use brunt_load::Stage;
use brunt_record::{Histogram, IntervalRecorder, Series, SeriesPoint, grid};
use proptest::prelude::*;

use crate::invariants::sample::{open_run, run, set_stages, steady_run, with_counts};
use crate::statistics::is_share_below;
use crate::statistics::reference::Noise;
use crate::{ResponseQuantiles, RunFigures};

const MS: u64 = 1_000_000;
const QUANTILES: [f64; 7] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// A run of `window_ns` with these completions, each an offset and a response time.
fn run_of(window_ns: u64, completions: impl IntoIterator<Item = (u64, u64)>) -> Run {
    let mut run = run();
    run.window_ns = window_ns;
    run.latencies.response = Histogram::default();
    run.latencies.unfinished = Histogram::default();
    let mut intervals = IntervalRecorder::default();
    intervals.set_window(window_ns);
    for (offset_ns, response_ns) in completions {
        run.latencies.response.record(response_ns);
        intervals.record(offset_ns, response_ns);
    }
    run.latencies.intervals = intervals.finish(window_ns);
    run
}

/// A run of 10 s with 500 responses in each 100 ms, which scatter by a fifth of a millisecond
/// around what is told of these.
fn even_run(response_ns: impl Fn(u64) -> u64) -> Run {
    let scatter = |index: u64| index * 7_919 % 10_007 * 20;
    let completions =
        (0..50_000).map(|index| (index * 200_000, response_ns(index / 500) + scatter(index)));
    run_of(10_000 * MS, completions)
}

fn interval(run: &Run, q: f64) -> Result<Interval, NoInterval> {
    match run.response_quantile(q) {
        Quantile::Known { ns, interval } => {
            let holds = |found: Interval| (found.low_ns..=found.high_ns).contains(&ns);
            assert!(
                interval.is_err() || interval.is_ok_and(holds),
                "{interval:?}"
            );
            interval
        }
        other => panic!("{other:?}"),
    }
}

fn width_ns(run: &Run, q: f64) -> u64 {
    let interval = interval(run, q).expect("an interval");
    interval.high_ns - interval.low_ns
}

#[test]
fn ranks_are_those_of_order_statistics() {
    for (samples, q, middle, ends) in [
        (100, 0.5, 50, [40, 61]),
        (368, 0.99, 365, [360, 368]),
        (1_000, 0.9, 900, [881, 920]),
        (10_000, 0.99, 9_900, [9_880, 9_921]),
        (6, 0.5, 3, [1, 6]),
    ] {
        assert_eq!(rank_of(samples, q), middle, "{samples} {q}");
        assert_eq!(ends_by_ranks(samples, q), ends, "{samples} {q}");
    }
}

/// The ranks of the ends of the interval, if values are independent.
fn ends_by_ranks(samples: u64, q: f64) -> [u64; 2] {
    let from_above = rank_of_upper_end(samples, 1.0 - q);
    [samples + 1 - from_above, rank_of_upper_end(samples, q)]
}

#[test]
fn quantiles_on_the_way_begin_at_the_median() {
    let way = |q: f64| from_median_to(q).collect::<Vec<f64>>();
    assert_eq!(way(0.5), [0.5]);
    assert_eq!(way(0.9), [0.5, 0.75, 0.9]);
    assert_eq!(way(0.8), [0.5, 0.75, 0.8]);
    assert_eq!(way(0.25), [0.5, 0.25]);
    assert_eq!(way(0.2), [0.5, 0.25, 0.2]);
    assert_eq!(way(0.999_999).len(), 9);
}

#[test]
fn neighbours_that_are_alike_widen_the_interval() {
    // Each response time is as often in both runs, so that order statistics are the same; but one
    // run is slow for seconds, the other now and then.
    let level = |interval: u64| MS + interval * 500;
    let drifting = even_run(level);
    let scattered = even_run(|interval| level(interval * 37 % 100));
    let samples = drifting.latencies.response.count();
    let [low, high] = ends_by_ranks(samples, 0.5);
    let response = &drifting.latencies.response;
    let at = |rank| response.bucket_at_rank(rank).expect("a rank").0;
    let by_ranks_ns = at(high) - at(low);
    assert!(width_ns(&drifting, 0.5) > 10 * by_ranks_ns);
    // Levels that come in turn are more regular than independent ones, for which there is a limit.
    assert!(2 * width_ns(&scattered, 0.5) >= by_ranks_ns);
    assert!(width_ns(&drifting, 0.5) > 3 * width_ns(&scattered, 0.5));
    // Of a tail nothing is known then, and that is said.
    let none = interval(&drifting, 0.99).expect_err("no interval");
    let words = none.to_string();
    let start = "it varied over the window; a run about ";
    assert!(words.starts_with(start), "{words}");
    let is_alike = matches!(none, NoInterval::TooAlike { .. });
    assert!(is_alike, "{words}");
}

#[test]
fn the_ends_are_as_far_off_as_the_distribution_says() {
    // A long tail: above the p99 it is ten times as thin as below.
    let tail = |index: u64| match index * 7_919 % 1_000 {
        place @ 990.. => 10 * MS + (place - 990) * 10 * MS,
        place => MS + place * 9_000,
    };
    let run = run_of(
        10_000 * MS,
        (0..20_000).map(|index| (index * 500_000, tail(index))),
    );
    let Quantile::Known {
        ns,
        interval: Ok(Interval { low_ns, high_ns }),
    } = run.response_quantile(0.99)
    else {
        panic!("an interval");
    };
    assert!(high_ns - ns > 5 * (ns - low_ns), "{low_ns} {ns} {high_ns}");
    let max_ns = run.latencies.response.max_ns().expect("a maximum");
    assert!(high_ns <= max_ns);
}

#[test]
fn values_that_are_not_told_apart_over_time_have_the_width_of_their_bucket() {
    let of = |response_ns: fn(u64) -> u64| {
        run_of(
            10_000 * MS,
            (0..50_000).map(|index| (index * 200_000, response_ns(index / 500))),
        )
    };
    let flat = of(|_| MS);
    assert_eq!(width_ns(&flat, 0.5), 0, "the extremes are known exactly");
    // The level moves within one bucket.
    let bucket = Intervals::bucket_of(MS);
    let hidden = of(|interval| {
        let bucket = Intervals::bucket_of(MS);
        if interval < 50 {
            *bucket.start()
        } else {
            *bucket.end()
        }
    });
    let found = interval(&hidden, 0.5).expect("an interval");
    assert!(
        found.low_ns <= *bucket.start() && found.high_ns >= *bucket.end() - bucket.end() / 1_000
    );
}

#[test]
fn what_the_window_does_not_tell_is_said() {
    let ms = |index: u64| index * MS;
    // Replies in 15 of 80 parts, in one, in none.
    let many = run_of(1_000 * MS, (0..600).map(|n| (n / 40 * 20 * MS, MS)));
    let one = run_of(1_000 * MS, (0..600).map(|n| (999 * MS, ms(n))));
    for (run, parts) in [(many, 15), (one, 1)] {
        let none = interval(&run, 0.5).expect_err("no interval");
        let too_few = NoInterval::TooFewParts { parts, needed: 16 };
        assert_eq!(none, too_few, "{none}");
    }
    let mut unknown = even_run(ms);
    unknown.latencies.intervals = Intervals::default();
    let none = interval(&unknown, 0.5).expect_err("no interval");
    let is_none = matches!(none, NoInterval::TooFewParts { parts: 0, .. });
    assert!(is_none, "{none}");
}

#[test]
fn what_was_never_answered_may_come_of_one_event() {
    let spread = |index: u64| MS + index * 7_919 % 10_007 * 100;
    let completions = || (0..100_000).map(|index| (index * 100_000, spread(index)));
    let answered = run_of(10_000 * MS, completions());
    let mut some = run_of(10_000 * MS, completions());
    (0..500).for_each(|_| some.latencies.unfinished.record(20 * MS));
    assert!(width_ns(&some, 0.9) > width_ns(&answered, 0.9));
    // Half of what lies above the p99.
    assert!(interval(&answered, 0.99).is_ok());
    assert!(interval(&some, 0.99).is_err());
}

#[test]
fn a_rate_that_is_planned_to_vary_has_no_interval() {
    let stage = |from_per_s, to_per_s| Stage {
        duration_ns: 5_000 * MS,
        from_per_s,
        to_per_s,
    };
    for (stages, varies) in [
        (vec![], false),
        (vec![stage(10.0, 10.0)], false),
        (vec![stage(10.0, 10.0), stage(10.0, 10.0)], false),
        (vec![stage(10.0, 20.0)], true),
        (vec![stage(10.0, 10.0), stage(20.0, 20.0)], true),
    ] {
        let mut run = even_run(|interval| MS + interval * 37 % 100 * 10_000);
        run.agents[0].workers.truncate(1);
        run.agents[0].workers[0].series = Series::default();
        run.agents[0].workers[0].series.points = vec![SeriesPoint::default(); 100];
        run.plan.load.model = open_run().plan.load.model;
        if !stages.is_empty() {
            set_stages(&mut run, stages);
        }
        let planned = Some(NoInterval::PlannedToVary);
        assert_eq!(interval(&run, 0.5).err() == planned, varies);
        assert_eq!(run.successes_interval().err() == planned, varies);
    }
}

fn counted(counts: &[u64]) -> Run {
    with_counts(steady_run(), counts)
}

#[test]
fn a_rate_has_its_interval() {
    let few = NoInterval::TooFewParts {
        parts: 15,
        needed: 16,
    };
    assert_eq!(counted(&[1_000; 15]).successes_interval(), Err(few));
    let even = counted(&[1_000; 20]).successes_interval();
    let even = even.expect("20 points");
    assert!((even.low_per_s - 10_000.0).abs() < 1e-6 && (even.high_per_s - 10_000.0).abs() < 1e-6);
    // Up and down by turns is what a window averages out; slow and then fast is not.
    let by_turns: Vec<u64> = (0..40).map(|index| 900 + index % 2 * 200).collect();
    let mut in_order = by_turns.clone();
    in_order.sort_unstable();
    let half = |counts: &[u64]| {
        let found = counted(counts).successes_interval().expect("40 points");
        (found.high_per_s - found.low_per_s) / 2.0
    };
    assert!(half(&by_turns) < 100.0, "{}", half(&by_turns));
    assert!(half(&in_order) > 1_000.0, "{}", half(&in_order));
    let mut no_window = steady_run();
    no_window.window_ns = 0;
    assert_eq!(no_window.successes_interval(), Err(NoInterval::NoRate));
}

proptest! {
    #[test]
    fn the_interval_of_a_rate_holds_it(counts in prop::collection::vec(0_u64..2_000, 1..80)) {
        let run = counted(&counts);
        let rate = run.summary().successes_per_s.known();
        match (run.successes_interval(), rate) {
            (Ok(interval), Some(rate)) => {
                prop_assert!(interval.low_per_s >= 0.0);
                prop_assert!(interval.low_per_s <= rate && rate <= interval.high_per_s);
            }
            (interval, _) => prop_assert!(counts.len() < 16, "{:?}", interval),
        }
    }

    #[test]
    fn intervals_hold_their_quantiles_lie_within_the_extremes_and_are_in_order(
        completions in prop::collection::vec((0_u64..1_000 * MS, 1_u64..10_000 * MS), 0..3_000),
        unfinished in prop::collection::vec(0_u64..20_000 * MS, 0..3),
        slow in 1_u64..50,
    ) {
        let mut completions = completions;
        completions.sort_unstable();
        // The last tenth is slow.
        let slowed = |&(at, ns): &(u64, u64)| (at, if at > 900 * MS { ns * slow } else { ns });
        let mut run = run_of(1_000 * MS, completions.iter().map(slowed));
        unfinished.iter().for_each(|&ns| run.latencies.unfinished.record(ns));
        let mut before = (0, 0);
        for q in QUANTILES {
            let Quantile::Known { ns, interval } = run.response_quantile(q) else {
                continue;
            };
            let Ok(Interval { low_ns, high_ns }) = interval else {
                prop_assert!(!interval.expect_err("none").to_string().is_empty());
                continue;
            };
            prop_assert!(low_ns <= ns && ns <= high_ns);
            let (min_ns, max_ns) = (
                run.latencies.response.min_ns().unwrap_or(u64::MAX),
                run.latencies.response.max_ns().unwrap_or(0),
            );
            prop_assert!(min_ns.min(ns) <= low_ns && high_ns <= max_ns.max(ns));
            prop_assert!(before.0 <= low_ns && before.1 <= high_ns);
            before = (low_ns, high_ns);
        }
    }
}

use SampleServer::{Bursts, Drifts, Queues, Stalls, Steady, Wanders};

const COVERED: [f64; 3] = [0.5, 0.9, 0.99];
const S: u64 = 1_000_000_000;
/// Instants at which a server's state is looked at for its distribution.
const INSTANTS: u32 = 400;

/// Runs that are simulated.
#[derive(Clone, Copy, Debug)]
struct Runs {
    count: u64,
    length_s: u64,
    replies_per_s: u64,
}

/// 10 s with 20,000 replies: enough for quantiles up to the p99.
const USUAL: Runs = Runs {
    count: 100,
    length_s: 10,
    replies_per_s: 2_000,
};

impl Runs {
    fn window_ns(self) -> u64 {
        self.length_s * S
    }

    /// A server's state changes in steps of this length, one for each reply.
    fn step_ns(self) -> u64 {
        S / self.replies_per_s
    }
}

/// How a server's response times come about. The logarithm of each is that of a millisecond, what
/// the server's state adds, and noise of its own.
#[derive(Clone, Copy, Debug)]
enum SampleServer {
    /// Each on its own, with a long tail.
    Steady,
    /// A level that wanders (autoregressive, of the first order): by this deviation, with a memory
    /// of so many nanoseconds.
    Wanders(f64, u64),
    /// Slower and slower, by so much from the start of the window to its end.
    Drifts(f64),
    /// Slow now and then: after so many nanoseconds, for so many, by so much.
    Bursts(u64, u64, f64),
    /// Stops every so many nanoseconds for so many, as for a collection of garbage, from a phase of
    /// its own: who comes then waits for the rest of the stop.
    Stalls(u64, u64),
    /// Serves one request after the other, for an exponential time, and is busy for this share of
    /// the time. Requests come at even times (D/M/1); a step of the run is a millisecond of the
    /// queue.
    Queues(f64),
}

/// What a server adds while it runs.
struct State {
    server: SampleServer,
    runs: Runs,
    level: f64,
    until_ns: u64,
    is_slow: bool,
}

impl State {
    fn new(server: SampleServer, runs: Runs, noise: &mut Noise) -> Self {
        let mut state = Self {
            server,
            runs,
            level: match server {
                Queues(load) => mean_in_queue(load) * noise.exponential(),
                _ => noise.normal(),
            },
            until_ns: 0,
            is_slow: false,
        };
        match server {
            Bursts(every_ns, length_ns, _) => {
                state.is_slow = noise.even() > length_ns as f64 / (every_ns + length_ns) as f64
            }
            // The first one begins anywhere within a period.
            Stalls(every_ns, _) => {
                state.until_ns = (noise.even() * every_ns as f64) as u64;
            }
            _ => {}
        }
        state
    }

    /// What is added at `at_ns`, which is a step after the instant before.
    fn at(&mut self, at_ns: u64, noise: &mut Noise) -> f64 {
        match self.server {
            Steady => 0.0,
            Wanders(deviation, memory_ns) => {
                let kept = (-(self.runs.step_ns() as f64) / memory_ns as f64).exp();
                self.level = kept * self.level + (1.0 - kept * kept).sqrt() * noise.normal();
                deviation * self.level
            }
            Drifts(by) => by * at_ns as f64 / self.runs.window_ns() as f64,
            Bursts(every_ns, length_ns, by) => {
                while at_ns >= self.until_ns {
                    self.is_slow = !self.is_slow;
                    let mean_ns = if self.is_slow { length_ns } else { every_ns };
                    self.until_ns += (noise.exponential() * mean_ns as f64) as u64;
                }
                if self.is_slow { by } else { 0.0 }
            }
            Stalls(every_ns, length_ns) => {
                stalled(length_ns.saturating_sub((at_ns + self.until_ns) % every_ns) as f64)
            }
            Queues(load) => {
                self.level = (self.level - 1.0).max(0.0) + load * noise.exponential();
                self.level.ln()
            }
        }
    }
}

/// What a stall adds that goes on for so long.
fn stalled(left_ns: f64) -> f64 {
    (1.0 + left_ns / 1e6).ln()
}

/// The mean response time in a queue, which is exponential, milliseconds.
fn mean_in_queue(load: f64) -> f64 {
    let free = (0..10_000).fold(1.0, |free: f64, _| -f64::exp_m1(-free / load));
    load / free
}

impl SampleServer {
    /// The response time with what the state adds, nanoseconds.
    fn response_ns(self, added: f64, noise: &mut Noise) -> u64 {
        let own = match self {
            Self::Steady => (0.2 + noise.exponential()).ln(),
            Self::Queues(_) => 0.0,
            _ => 0.1 * noise.normal(),
        };
        ((added + own).exp() * 1e6) as u64
    }

    /// The share of all response times of such windows that take up to so many milliseconds.
    fn share_up_to(self, ms: f64) -> f64 {
        let with = |added: f64, deviation: f64| normal_share((ms.ln() - added) / deviation);
        let instants = (0..INSTANTS).map(|place| (f64::from(place) + 0.5) / f64::from(INSTANTS));
        match self {
            Self::Steady => -f64::exp_m1(-(ms - 0.2).max(0.0)),
            Self::Queues(load) => -f64::exp_m1(-ms / mean_in_queue(load)),
            Self::Wanders(deviation, _) => with(0.0, deviation.hypot(0.1)),
            Self::Drifts(by) => {
                instants.map(|at| with(by * at, 0.1)).sum::<f64>() / f64::from(INSTANTS)
            }
            Self::Bursts(every_ns, length_ns, by) => {
                let slow = length_ns as f64 / (every_ns + length_ns) as f64;
                slow * with(by, 0.1) + (1.0 - slow) * with(0.0, 0.1)
            }
            Self::Stalls(every_ns, length_ns) => {
                let stalls = instants.map(|at| with(stalled(at * length_ns as f64), 0.1));
                let stalls = stalls.sum::<f64>() / f64::from(INSTANTS);
                let slow = length_ns as f64 / every_ns as f64;
                slow * stalls + (1.0 - slow) * with(0.0, 0.1)
            }
        }
    }

    /// The quantile of all response times of such windows, nanoseconds.
    fn quantile_ns(self, q: f64) -> f64 {
        let (mut low, mut high) = (1e-3_f64, 1e6_f64);
        for _ in 0..50 {
            let middle = (low * high).sqrt();
            if self.share_up_to(middle) < q {
                low = middle;
            } else {
                high = middle;
            }
        }
        high * 1e6
    }

    /// Makes `run` one against it.
    fn run(self, runs: Runs, noise: &mut Noise, run: &mut Run) {
        let window_ns = runs.window_ns();
        run.window_ns = window_ns;
        run.latencies.response = Histogram::default();
        run.latencies.unfinished = Histogram::default();
        let mut intervals = IntervalRecorder::default();
        intervals.set_window(window_ns);
        let mut state = State::new(self, runs, noise);
        for step in 0..runs.length_s * runs.replies_per_s {
            let at_ns = step * runs.step_ns();
            let added = state.at(at_ns, noise);
            let response_ns = self.response_ns(added, noise);
            run.latencies.response.record(response_ns);
            intervals.record(at_ns, response_ns);
        }
        run.latencies.intervals = intervals.finish(window_ns);
    }
}

/// The share of the standard normal distribution up to `value` (Marsaglia 2004, Journal of
/// Statistical Software 11).
fn normal_share(value: f64) -> f64 {
    if value.abs() > 7.0 {
        return f64::from(u8::from(value > 0.0));
    }
    let (mut sum, mut term, mut odd) = (value, value, 1.0);
    while term.abs() > 1e-17 * sum.abs() {
        odd += 2.0;
        term *= value * value / odd;
        sum += term;
    }
    0.5 + sum * (-0.5 * value * value).exp() / TAU.sqrt()
}

/// The outcome of the intervals of one quantile over some runs.
#[derive(Clone, Copy, Debug, Default)]
struct Tried {
    runs: u64,
    /// Runs that printed one.
    printed: u64,
    /// Printed intervals that hold the true value.
    held: u64,
    /// Order statistics, as if replies were independent, that hold it.
    held_by_ranks: u64,
    /// Median of how wide they are beside an interval that knows how much the share of replies up
    /// to the quantile varies from run to run: no method knows more of a single run.
    beside_known: f64,
}

impl Tried {
    fn missed(&self) -> u64 {
        self.printed - self.held
    }

    /// Whether it is not shown that more than 7 % of the printed ones miss the truth.
    fn holds(&self) -> bool {
        !is_shown_above(self.missed(), self.printed, 0.07)
    }

    fn is_printed_in(&self, share: f64) -> bool {
        self.printed as f64 >= share * self.runs as f64
    }

    fn is_narrow(&self) -> bool {
        self.is_printed_in(0.95) && self.beside_known < 1.5
    }
}

/// Whether `count` of `of` trials show that the probability is above `limit`.
fn is_shown_above(count: u64, of: u64, limit: f64) -> bool {
    is_share_below((of - count) as f64, of as f64, 1.0 - limit)
}

/// The outcome of each quantile of some runs against `server`.
fn tried(server: SampleServer, runs: Runs) -> [Tried; COVERED.len()] {
    let truth_ns = COVERED.map(|q| server.quantile_ns(q));
    let mut run = run();
    let mut tried = [Tried::default(); COVERED.len()];
    let mut widths_ns = [const { Vec::new() }; COVERED.len()];
    let mut variances = [0.0; COVERED.len()];
    for index in 0..runs.count {
        let mut noise = Noise::new(runs.length_s * 1_000 + index);
        server.run(runs, &mut noise, &mut run);
        let response = &run.latencies.response;
        for (place, q) in COVERED.into_iter().enumerate() {
            let width_ns = try_one(&run, q, truth_ns[place] as u64, &mut tried[place]);
            widths_ns[place].extend(width_ns);
            let above = response.count_from(truth_ns[place] as u64) as f64;
            let share = 1.0 - above / response.count() as f64;
            variances[place] += (share - q).powi(2) / runs.count as f64;
        }
    }
    for (place, q) in COVERED.into_iter().enumerate() {
        let margin = Z_95 * variances[place].sqrt();
        let known_ns = server.quantile_ns((q + margin).min(1.0 - 1e-6))
            - server.quantile_ns((q - margin).max(1e-6));
        tried[place].beside_known = median(std::mem::take(&mut widths_ns[place])) / known_ns;
    }
    tried
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The width of the interval, nanoseconds, where there is one.
fn try_one(run: &Run, q: f64, truth_ns: u64, tried: &mut Tried) -> Option<f64> {
    tried.runs += 1;
    let (ns, interval) = match run.response_quantile(q) {
        Quantile::Known { ns, interval } => (ns, interval),
        other => panic!("{other:?}"),
    };
    let response = &run.latencies.response;
    let [low, high] = ends_by_ranks(response.count(), q);
    let at = |rank| response.bucket_at_rank(rank).unwrap_or((ns, ns));
    let by_ranks = at(low).0..=at(high).1;
    tried.held_by_ranks += u64::from(by_ranks.contains(&truth_ns));
    match interval {
        Ok(Interval { low_ns, high_ns }) => {
            tried.printed += 1;
            tried.held += u64::from((low_ns..=high_ns).contains(&truth_ns));
            Some((high_ns - low_ns) as f64)
        }
        Err(NoInterval::TooAlike { .. }) => None,
        Err(other) => panic!("{other}"),
    }
}

// No multiple of the steps: stalls would be met at the same instants again and again.
const STALLS: SampleServer = Stalls(S / 5 + 167_001, S / 100);
const DRIFTS: SampleServer = Drifts(0.1);

/// Servers, and of how many of the quantiles they have narrow intervals in windows of 10 s.
const SERVERS: [(SampleServer, usize); 8] = [
    (Steady, 3),
    (Wanders(0.1, S / 50), 3),
    (Wanders(0.02, S / 20), 3),
    (Wanders(0.1, S / 5), 1),
    (Bursts(S / 20, S / 200, 0.5), 3),
    // Half of the time one level, half of it another.
    (Bursts(S / 100, S / 100, 0.3), 3),
    (Queues(0.5), 3),
    (Queues(0.9), 2),
];

#[test]
fn the_truth_is_in_95_of_100_intervals_that_are_little_wider_than_they_have_to_be() {
    let (mut printed, mut missed) = (0, 0);
    for (server, narrow) in SERVERS {
        for (place, (tried, q)) in tried(server, USUAL).iter().zip(COVERED).enumerate() {
            let words = format!("{server:?}, {q}: {tried:?}");
            if place < narrow {
                assert!(tried.holds() && tried.is_narrow(), "{words}");
                (printed, missed) = (printed + tried.printed, missed + tried.missed());
            }
            // What is printed seldom is printed where more seems to be known than is.
            assert!(narrow == 0 || tried.missed() * 12 <= tried.runs, "{words}");
            // Neighbours that are alike are held where order statistics are not.
            if q == 0.9 && matches!(server, Bursts(_, _, 0.5)) {
                assert!(tried.held_by_ranks * 2 < tried.runs, "{words}");
            }
        }
    }
    let share = missed as f64 / printed as f64;
    assert!((0.03..0.07).contains(&share), "{missed} of {printed}");
}

#[test]
fn short_windows_have_intervals_of_the_median() {
    for length_s in [1, 2] {
        let runs = Runs { length_s, ..USUAL };
        for server in [Steady, Wanders(0.02, S / 20), STALLS] {
            let tried = tried(server, runs);
            let all_hold = tried
                .iter()
                .all(|tried| tried.printed < 20 || tried.holds());
            let is_printed = tried[0].is_printed_in(0.99);
            assert!(all_hold && is_printed, "{server:?}: {tried:?}");
        }
    }
}

#[test]
fn servers_that_drift_or_stall_at_even_times_are_held() {
    // Their intervals are wider than they had to be: a single window does not tell a drift from
    // chance.
    for server in [DRIFTS, Drifts(-0.02), STALLS] {
        let tried = tried(server, Runs { count: 50, ..USUAL });
        let holds = |tried: &Tried| tried.held == tried.printed || tried.holds();
        assert!(tried.iter().all(holds), "{tried:?}");
        assert!(tried[0].is_printed_in(1.0), "{server:?}: {tried:?}");
    }
}

#[test]
fn a_queue_that_remembers_for_longer_than_the_window_is_not_known() {
    // At 0.99 of its capacity some 20,000 requests before count.
    let tried = tried(Queues(0.99), USUAL);
    let [median, p90, p99] = tried;
    assert!(!p90.is_printed_in(0.1) && p99.printed == 0, "{tried:?}");
    // A window that is calm by chance tells nothing of it.
    assert!(!median.is_printed_in(0.7), "{median:?}");
    assert!(median.missed() * 5 <= median.runs, "{median:?}");
}

#[test]
fn windows_of_all_lengths_have_parts_enough() {
    for length_ms in [7, 50, 333, 1_000, 9_999, 60_000, 3_600_000] {
        let window_ns = length_ms * 1_000_000;
        let parts = window_ns / grid::over(window_ns, 600);
        assert!(parts >= PARTS_LEAST as u64, "{length_ms}");
    }
}

/// Runs of each kind that are compared with limits.
const LIMITED: Runs = Runs {
    count: 100,
    length_s: 3,
    replies_per_s: 2_000,
};

/// In how many runs each quantile is shown to lie below a limit. The first is of a limit that 1.05
/// times `1 - q` of the requests reach, and the second of one that is ten times as far from the
/// median as the quantile. The third is as the first, with replies taken for independent.
fn shown_below(server: SampleServer) -> [[u64; 3]; COVERED.len()] {
    let limits_ns = COVERED.map(|q| {
        let over_ns = server.quantile_ns(1.0 - 1.05 * (1.0 - q));
        let median_ns = server.quantile_ns(0.5);
        let far_ns = median_ns + (server.quantile_ns(q) - median_ns) * 10.0;
        (over_ns as u64, far_ns as u64)
    });
    let mut shown = [[0; 3]; COVERED.len()];
    let mut run = run();
    for index in 0..LIMITED.count {
        let mut noise = Noise::new(index);
        server.run(LIMITED, &mut noise, &mut run);
        let sample = response_sample(&run);
        for ((shown, q), (over_ns, far_ns)) in shown.iter_mut().zip(COVERED).zip(limits_ns) {
            let limits = Limits::of(&sample, q).expect("samples enough");
            let (samples, over) = (sample.finished.count(), sample.finished.count_from(over_ns));
            shown[0] += u64::from(limits.is_below(over_ns));
            shown[1] += u64::from(limits.is_below(far_ns));
            shown[2] += u64::from(is_share_below(over as f64, samples as f64, 1.0 - q));
        }
    }
    shown
}

#[test]
fn limits_just_under_the_quantile_are_not_met_and_far_ones_are() {
    // Independence would have been believed in too often.
    let mut too_often = 0;
    let (mut over_in_all, mut all_runs) = (0, 0);
    for server in [
        Steady,
        Wanders(0.1, S / 50),
        Wanders(0.1, S / 5),
        Bursts(S / 20, S / 200, 0.5),
        Bursts(S / 100, S / 100, 0.3),
        Queues(0.5),
        Queues(0.8),
    ] {
        for (q, [over, far, independent]) in COVERED.into_iter().zip(shown_below(server)) {
            too_often += u32::from(independent * 10 > LIMITED.count);
            let words = format!("{server:?}, {q}: {over} {far}");
            // 10 of 100 may be chance in one case of 21, but not the mean of all of them.
            assert!(!is_shown_above(over, LIMITED.count, 0.05), "{words}");
            (over_in_all, all_runs) = (over_in_all + over, all_runs + LIMITED.count);
            // Ten times nothing is nothing.
            assert!(q <= 0.5 || far * 100 >= LIMITED.count * 95, "{words}");
        }
    }
    // What a 95 % interval leaves out at one of its ends.
    let is_too_often = is_shown_above(over_in_all, all_runs, 0.025);
    assert!(!is_too_often, "{over_in_all}");
    assert!(too_often >= 5, "{too_often}");
}

fn of(values: impl IntoIterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::default();
    values.into_iter().for_each(|ns| histogram.record(ns));
    histogram
}

fn same(count: usize, ns: u64) -> Histogram {
    of(std::iter::repeat_n(ns, count))
}

#[test]
fn samples_needed_are_those_of_the_tables() {
    let cases = [
        (0.5, 6),
        (0.01, 368),
        (0.9, 36),
        (0.99, 368),
        (0.999, 3_688),
        (0.9999, 36_887),
        (0.0, u64::MAX),
        (1.0, u64::MAX),
        (f64::NAN, u64::MAX),
    ];
    for (q, needed) in cases {
        assert_eq!(samples_needed(q), needed, "{q}");
    }
}

#[test]
fn a_quantile_needs_its_samples() {
    for (count, q, needed) in [
        (0, 0.99, 368),
        (367, 0.99, 368),
        (5, 0.5, 6),
        (9, 1.0, u64::MAX),
    ] {
        let few = Quantile::TooFew {
            samples: count as u64,
            needed,
        };
        assert_eq!(Quantile::of(&same(count, 1_000), q), few);
    }
    let known = Quantile::Known {
        ns: 1_000,
        interval: Err(NoInterval::NotOverTime),
    };
    assert_eq!(Quantile::of(&same(368, 1_000), 0.99), known);
}

#[test]
fn requests_without_an_end_are_lower_bounds() {
    // (finished, unfinished, q, value, whether it is known). 1 to 10,000 us is the usual.
    let even = || of((1..=10_000).map(|us| us * 1_000));
    let cases: [(Histogram, Histogram, f64, u64, bool); 6] = [
        (even(), same(0, 0), 0.9, 9_000, true),
        // A thousandth at 20 ms moves p50 by half a thousandth.
        (even(), same(10, 20 * MS), 0.5, 5_005, true),
        // A tenth at 20 ms: p90 is between 9,900 us and never.
        (even(), same(1_112, 20 * MS), 0.95, 20_000, false),
        // Bounds below the quantile say little about it.
        (even(), same(1_000, 1_000), 0.5, 4_500, false),
        // The share is just under 1 - q, but the interval reaches beyond.
        (even(), same(99, 20 * MS), 0.99, 9_999, false),
        (even(), same(10_000, 20 * MS), 0.9, 20_000, false),
    ];
    for (finished, unfinished, q, us, is_known) in cases {
        let near = |ns: u64, us: u64| (ns as f64 / (us as f64 * 1e3) - 1.0).abs() < 0.002;
        match quantile_of(&finished, &unfinished, q) {
            Quantile::Known { ns, .. } if is_known => assert!(near(ns, us), "{q}: {ns}"),
            Quantile::AtLeast { ns } if !is_known => assert!(near(ns, us), "{q}: {ns}"),
            other => panic!("{q}: {other:?}"),
        }
    }
    let beside = quantile_of(&same(10_000, 1_000_001), &same(1, 20 * MS), 0.5);
    assert!(
        matches!(beside, Quantile::Known { ns, .. } if ns >= 1_000_001),
        "{beside:?}"
    );
    let few = quantile_of(&same(4, MS), &same(1, MS), 0.5);
    let too_few = Quantile::TooFew {
        samples: 5,
        needed: 6,
    };
    assert_eq!(few, too_few);
    let enough = quantile_of(&same(0, MS), &same(6, MS), 0.5);
    assert_eq!(enough, Quantile::AtLeast { ns: MS });
}

proptest! {
    #[test]
    fn what_is_known_has_samples_and_few_without_an_end(
        finished in prop::collection::vec(0_u64..8_000_000_000_000, 0..80),
        unfinished in prop::collection::vec(0_u64..8_000_000_000_000, 0..20),
        q in 0.001_f64..0.999,
    ) {
        let (finished, unfinished) = (of(finished), of(unfinished));
        let samples = finished.count() + unfinished.count();
        match quantile_of(&finished, &unfinished, q) {
            Quantile::Known { .. } => {
                let share = unfinished.count() as f64 / samples as f64;
                prop_assert!(share <= 1.0 - q);
            }
            Quantile::AtLeast { .. } => prop_assert!(unfinished.count() > 0),
            Quantile::TooFew { samples: had, needed } => {
                prop_assert_eq!(had, samples);
                prop_assert!(had < needed);
            }
        }
    }

    #[test]
    fn what_unfinished_requests_would_have_become_is_within(
        values in prop::collection::vec(1_u64..1_000_000, 50..200),
        cut in 100_000_u64..1_000_000,
        q in 0.1_f64..0.95,
    ) {
        // The truth, had nobody been cut off.
        let truth = of(values.iter().copied()).quantile_ns(q).expect("not empty");
        let finished = of(values.iter().copied().filter(|&ns| ns <= cut));
        let unfinished = of(values.iter().filter(|&&ns| ns > cut).map(|_| cut));
        let near = |ns: u64| ns as f64 * 1.011 + 2.0;
        match quantile_of(&finished, &unfinished, q) {
            Quantile::Known { ns, .. } => {
                prop_assert!(near(ns) >= truth as f64 && near(truth) >= ns as f64);
            }
            Quantile::AtLeast { ns } => prop_assert!(near(truth) >= ns as f64),
            Quantile::TooFew { .. } => {}
        }
    }
}
