//! Whether intervals hold what they say: simulated runs against servers whose quantiles and rates
//! are known.

use std::f64::consts::TAU;

use brunt_record::{Histogram, IntervalRecorder, Series, StatusCounts, grid};

use super::*;
use crate::invariants::sample::{run, steady_run};
use crate::statistics::binomial::is_share_below;
use crate::statistics::noise::Noise;
use crate::{ResponseQuantiles, RunFigures};

const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];
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
enum Server {
    /// Each on its own, with a long tail.
    Steady,
    /// A level that wanders (autoregressive, of the first order).
    Wanders { deviation: f64, memory_ns: u64 },
    /// Slower and slower, by so much from the start of the window to its end.
    Drifts { by: f64 },
    /// Slow now and then.
    Bursts {
        every_ns: u64,
        length_ns: u64,
        by: f64,
    },
    /// Stops at even times, as for a collection of garbage, from a phase of its own: who comes then
    /// waits for the rest of the stop.
    Stalls { every_ns: u64, length_ns: u64 },
    /// Serves one request after the other, for an exponential time, and is busy for this share of
    /// the time. Requests come at even times (D/M/1); a step of the run is a millisecond of the
    /// queue.
    Queues { load: f64 },
}

/// What a server adds while it runs.
struct State {
    server: Server,
    runs: Runs,
    level: f64,
    until_ns: u64,
    is_slow: bool,
}

impl State {
    fn new(server: Server, runs: Runs, noise: &mut Noise) -> Self {
        let mut state = Self {
            server,
            runs,
            level: match server {
                Server::Queues { load } => mean_in_queue(load) * noise.exponential(),
                _ => noise.normal(),
            },
            until_ns: 0,
            is_slow: false,
        };
        match server {
            Server::Bursts {
                every_ns,
                length_ns,
                ..
            } => state.is_slow = noise.even() > length_ns as f64 / (every_ns + length_ns) as f64,
            // The first one begins anywhere within a period.
            Server::Stalls { every_ns, .. } => {
                state.until_ns = (noise.even() * every_ns as f64) as u64;
            }
            _ => {}
        }
        state
    }

    /// What is added at `at_ns`, which is a step after the instant before.
    fn at(&mut self, at_ns: u64, noise: &mut Noise) -> f64 {
        match self.server {
            Server::Steady => 0.0,
            Server::Wanders {
                deviation,
                memory_ns,
            } => {
                let kept = (-(self.runs.step_ns() as f64) / memory_ns as f64).exp();
                self.level = kept * self.level + (1.0 - kept * kept).sqrt() * noise.normal();
                deviation * self.level
            }
            Server::Drifts { by } => by * at_ns as f64 / self.runs.window_ns() as f64,
            Server::Bursts {
                every_ns,
                length_ns,
                by,
            } => {
                while at_ns >= self.until_ns {
                    self.is_slow = !self.is_slow;
                    let mean_ns = if self.is_slow { length_ns } else { every_ns };
                    self.until_ns += (noise.exponential() * mean_ns as f64) as u64;
                }
                if self.is_slow { by } else { 0.0 }
            }
            Server::Stalls {
                every_ns,
                length_ns,
            } => stalled(length_ns.saturating_sub((at_ns + self.until_ns) % every_ns) as f64),
            Server::Queues { load } => {
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

impl Server {
    /// The response time with what the state adds, nanoseconds.
    fn response_ns(self, added: f64, noise: &mut Noise) -> u64 {
        let own = match self {
            Self::Steady => (0.2 + noise.exponential()).ln(),
            Self::Queues { .. } => 0.0,
            _ => 0.1 * noise.normal(),
        };
        ((added + own).exp() * 1e6) as u64
    }

    /// The share of all response times of such windows that take up to so many milliseconds.
    fn share_up_to(self, ms: f64) -> f64 {
        let with = |added: f64, deviation: f64| normal_share((ms.ln() - added) / deviation);
        let instants = (0..INSTANTS).map(|it| (f64::from(it) + 0.5) / f64::from(INSTANTS));
        match self {
            Self::Steady => -f64::exp_m1(-(ms - 0.2).max(0.0)),
            Self::Queues { load } => -f64::exp_m1(-ms / mean_in_queue(load)),
            Self::Wanders { deviation, .. } => with(0.0, deviation.hypot(0.1)),
            Self::Drifts { by } => {
                instants.map(|at| with(by * at, 0.1)).sum::<f64>() / f64::from(INSTANTS)
            }
            Self::Bursts {
                every_ns,
                length_ns,
                by,
            } => {
                let slow = length_ns as f64 / (every_ns + length_ns) as f64;
                slow * with(by, 0.1) + (1.0 - slow) * with(0.0, 0.1)
            }
            Self::Stalls {
                every_ns,
                length_ns,
            } => {
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
fn tried(server: Server, runs: Runs) -> [Tried; QUANTILES.len()] {
    let truth_ns = QUANTILES.map(|q| server.quantile_ns(q));
    let mut run = run();
    let mut tried = [Tried::default(); QUANTILES.len()];
    let mut widths_ns = [const { Vec::new() }; QUANTILES.len()];
    let mut variances = [0.0; QUANTILES.len()];
    for index in 0..runs.count {
        let mut noise = Noise::new(runs.length_s * 1_000 + index);
        server.run(runs, &mut noise, &mut run);
        let response = &run.latencies.response;
        for (place, q) in QUANTILES.into_iter().enumerate() {
            let width_ns = try_one(&run, q, truth_ns[place] as u64, &mut tried[place]);
            widths_ns[place].extend(width_ns);
            let above = response.count_from(truth_ns[place] as u64) as f64;
            let share = 1.0 - above / response.count() as f64;
            variances[place] += (share - q).powi(2) / runs.count as f64;
        }
    }
    for (place, q) in QUANTILES.into_iter().enumerate() {
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
    let ranks = Ranks::of(response.count(), q, response.count() as f64);
    let at = |rank| response.bucket_at_rank(rank).unwrap_or((ns, ns));
    let by_ranks = at(ranks.low).0..=at(ranks.high).1;
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

const fn wanders(deviation: f64, memory_ns: u64) -> Server {
    Server::Wanders {
        deviation,
        memory_ns,
    }
}

const fn bursts(every_ns: u64, length_ns: u64, by: f64) -> Server {
    Server::Bursts {
        every_ns,
        length_ns,
        by,
    }
}

const STALLS: Server = Server::Stalls {
    // No multiple of the steps: stalls would be met at the same instants again and again.
    every_ns: S / 5 + 167_001,
    length_ns: S / 100,
};
const DRIFTS: Server = Server::Drifts { by: 0.1 };

const fn queues(load: f64) -> Server {
    Server::Queues { load }
}

/// Servers, and of how many of the quantiles they have narrow intervals in windows of 10 s.
const SERVERS: [(Server, usize); 8] = [
    (Server::Steady, 3),
    (wanders(0.1, S / 50), 3),
    (wanders(0.02, S / 20), 3),
    (wanders(0.1, S / 5), 1),
    (bursts(S / 20, S / 200, 0.5), 3),
    // Half of the time one level, half of it another.
    (bursts(S / 100, S / 100, 0.3), 3),
    (queues(0.5), 3),
    (queues(0.9), 2),
];

#[test]
fn the_truth_is_in_95_of_100_intervals_that_are_little_wider_than_they_have_to_be() {
    let (mut printed, mut missed) = (0, 0);
    for (server, narrow) in SERVERS {
        for (place, (tried, q)) in tried(server, USUAL).iter().zip(QUANTILES).enumerate() {
            let words = format!("{server:?}, {q}: {tried:?}");
            if place < narrow {
                assert!(tried.holds() && tried.is_narrow(), "{words}");
                (printed, missed) = (printed + tried.printed, missed + tried.missed());
            }
            // What is printed seldom is printed where more seems to be known than is.
            assert!(narrow == 0 || tried.missed() * 12 <= tried.runs, "{words}");
            // Neighbours that are alike are held where order statistics are not.
            if q == 0.9 && matches!(server, Server::Bursts { by: 0.5, .. }) {
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
        for server in [Server::Steady, wanders(0.02, S / 20), STALLS] {
            let tried = tried(server, runs);
            let all_hold = tried.iter().all(|it| it.printed < 20 || it.holds());
            assert!(
                all_hold && tried[0].is_printed_in(0.99),
                "{server:?}: {tried:?}"
            );
        }
    }
}

#[test]
fn servers_that_drift_or_stall_at_even_times_are_held() {
    // Their intervals are wider than they had to be: a single window does not tell a drift from
    // chance.
    for server in [DRIFTS, Server::Drifts { by: -0.02 }, STALLS] {
        let tried = tried(server, Runs { count: 50, ..USUAL });
        assert!(
            tried.iter().all(|it| it.held == it.printed || it.holds()),
            "{tried:?}"
        );
        assert!(tried[0].is_printed_in(1.0), "{server:?}: {tried:?}");
    }
}

#[test]
fn a_queue_that_remembers_for_longer_than_the_window_is_not_known() {
    // At 0.99 of its capacity some 20,000 requests before count.
    let tried = tried(queues(0.99), USUAL);
    let [median, p90, p99] = tried;
    assert!(!p90.is_printed_in(0.1) && p99.printed == 0, "{tried:?}");
    // A window that is calm by chance tells nothing of it.
    assert!(!median.is_printed_in(0.7), "{median:?}");
    assert!(median.missed() * 5 <= median.runs, "{median:?}");
}

#[test]
fn rates_are_held() {
    for (deviation, memory_ns) in [(0.0, S), (0.1, S / 20), (0.02, S / 50)] {
        let mut run = steady_run();
        run.agents[0].workers.truncate(1);
        for length_s in [1, 2, 10] {
            let runs = Runs { length_s, ..USUAL };
            let window_ns = runs.window_ns();
            let server = wanders(deviation, memory_ns);
            // Each step has two replies on average, as many more as the level is above 0.
            let truth_per_s = 2.0 * runs.replies_per_s as f64;
            let (mut held, mut wide) = (0, 0.0);
            for index in 0..runs.count {
                let mut noise = Noise::new(index);
                let mut state = State::new(server, runs, &mut noise);
                let mut series = Series::over(window_ns);
                let mut replies = StatusCounts::default();
                for step in 0..length_s * runs.replies_per_s {
                    let at_ns = step * runs.step_ns();
                    let chance = f64::midpoint(1.0, state.at(at_ns, &mut noise));
                    for _ in 0..4 {
                        if noise.even() < chance {
                            series.at(at_ns, 1).successes += 1;
                            replies.add(200);
                        }
                    }
                }
                run.window_ns = window_ns;
                run.agents[0].workers[0].tallies.measure.replies = replies;
                run.agents[0].workers[0].series = series;
                let found = run.successes_interval().expect("parts enough");
                let range = found.low_per_s..=found.high_per_s;
                held += u64::from(range.contains(&truth_per_s));
                wide += (found.high_per_s - found.low_per_s) / 2.0 / truth_per_s;
            }
            assert!(
                held * 10 >= runs.count * 9,
                "{server:?}, {length_s} s: {held}"
            );
            // Of a steady one, little more than what independent replies have.
            if deviation == 0.0 {
                let independent = 1.96 / (2.0 * truth_per_s * length_s as f64).sqrt();
                let wider = wide / runs.count as f64 / independent;
                assert!(wider < 1.3, "{length_s} s: {wider}");
            }
        }
    }
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
fn shown_below(server: Server) -> [[u64; 3]; QUANTILES.len()] {
    let limits_ns = QUANTILES.map(|q| {
        let over_ns = server.quantile_ns(1.0 - 1.05 * (1.0 - q));
        let median_ns = server.quantile_ns(0.5);
        let far_ns = median_ns + (server.quantile_ns(q) - median_ns) * 10.0;
        (over_ns as u64, far_ns as u64)
    });
    let mut shown = [[0; 3]; QUANTILES.len()];
    let mut run = run();
    for index in 0..LIMITED.count {
        let mut noise = Noise::new(index);
        server.run(LIMITED, &mut noise, &mut run);
        let sample = response_sample(&run);
        for ((shown, q), (over_ns, far_ns)) in shown.iter_mut().zip(QUANTILES).zip(limits_ns) {
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
        Server::Steady,
        wanders(0.1, S / 50),
        wanders(0.1, S / 5),
        bursts(S / 20, S / 200, 0.5),
        bursts(S / 100, S / 100, 0.3),
        queues(0.5),
        queues(0.8),
    ] {
        for (q, [over, far, independent]) in QUANTILES.into_iter().zip(shown_below(server)) {
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
    assert!(
        !is_shown_above(over_in_all, all_runs, 0.025),
        "{over_in_all}"
    );
    assert!(too_often >= 5, "{too_often}");
}
