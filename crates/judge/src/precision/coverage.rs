//! Whether intervals hold what they say: 200 simulated runs of each kind and length, of servers
//! whose quantiles and rates are known.

use brunt_record::{Histogram, IntervalRecorder, Series, StatusCounts, grid};

use super::*;
use crate::invariants::sample::{run, steady_run};
use crate::statistics::binomial::is_share_below;
use crate::statistics::noise::Noise;
use crate::{ResponseQuantiles, RunFigures};

const RUNS: u64 = 200;
const LENGTHS_S: [u64; 3] = [1, 2, 10];
const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];
/// Replies per second.
const RATE_PER_S: u64 = 1_000;
const S: u64 = 1_000_000_000;
/// A server's state changes in steps of this length.
const STEP_NS: u64 = S / RATE_PER_S;
/// Draws from the distribution of all response times, for its quantiles.
const DRAWS: usize = 400_000;

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
    Bursts { every_ns: u64, length_ns: u64 },
    /// Half of the time one level, half of it another.
    Switches { after_ns: u64, by: f64 },
    /// Stops at even times, as for a collection of garbage, from a phase of its own: who comes then
    /// waits for the rest of the stop.
    Stalls { every_ns: u64, length_ns: u64 },
    /// Serves one request after the other, for an exponential time, and is busy for this share of
    /// the time (D/M/1).
    Queues { load: f64 },
}

/// What a server adds while it runs.
struct State {
    server: Server,
    window_ns: u64,
    level: f64,
    until_ns: u64,
    is_slow: bool,
}

impl State {
    fn new(server: Server, window_ns: u64, noise: &mut Noise) -> Self {
        let is_slow = match server {
            Server::Bursts {
                every_ns,
                length_ns,
            } => noise.even() < length_ns as f64 / (every_ns + length_ns) as f64,
            _ => noise.even() < 0.5,
        };
        let mut state = Self {
            server,
            window_ns,
            level: noise.normal(),
            until_ns: 0,
            is_slow: !is_slow,
        };
        state.at(0, noise);
        state
    }

    /// What is added at `at_ns`, which is a step after the instant before.
    fn at(&mut self, at_ns: u64, noise: &mut Noise) -> f64 {
        let lengths = match self.server {
            Server::Steady => return 0.0,
            Server::Wanders {
                deviation,
                memory_ns,
            } => {
                let kept = (-(STEP_NS as f64) / memory_ns as f64).exp();
                self.level = kept * self.level + (1.0 - kept * kept).sqrt() * noise.normal();
                return deviation * self.level;
            }
            Server::Drifts { by } => return by * at_ns as f64 / self.window_ns as f64,
            Server::Bursts {
                every_ns,
                length_ns,
            } => (every_ns, length_ns, 0.5),
            Server::Switches { after_ns, by } => (after_ns, after_ns, by),
            Server::Stalls {
                every_ns,
                length_ns,
            } => {
                // The first one begins anywhere within a period.
                if self.until_ns == 0 {
                    self.until_ns = 1 + (noise.even() * every_ns as f64) as u64;
                }
                let into_ns = (at_ns + self.until_ns) % every_ns;
                let left_ns = length_ns.saturating_sub(into_ns);
                return (1.0 + left_ns as f64 / 1e6).ln();
            }
            Server::Queues { load } => {
                self.level = (self.level - 1.0).max(0.0) + load * noise.exponential();
                return self.level.ln();
            }
        };
        let (fast_ns, slow_ns, by) = lengths;
        while at_ns >= self.until_ns {
            self.is_slow = !self.is_slow;
            let mean_ns = if self.is_slow { slow_ns } else { fast_ns };
            self.until_ns += (noise.exponential() * mean_ns as f64) as u64;
        }
        if self.is_slow { by } else { 0.0 }
    }
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

    /// The quantiles of the distribution of all response times of such windows.
    fn truth_ns(self) -> Vec<u64> {
        let all = self.all_ns();
        let rank = |q: f64| (q * DRAWS as f64) as usize;
        QUANTILES.into_iter().map(|q| all[rank(q)]).collect()
    }

    /// Draws from that distribution, ascending.
    fn all_ns(self) -> Vec<u64> {
        let mut noise = Noise::new(1);
        let mut state = State::new(self, u64::MAX, &mut noise);
        let mut all: Vec<u64> = (0..DRAWS)
            .map(|_| {
                let added = match self {
                    Self::Steady => 0.0,
                    Self::Wanders { deviation, .. } => deviation * noise.normal(),
                    Self::Drifts { by } => by * noise.even(),
                    Self::Bursts {
                        every_ns,
                        length_ns,
                    } => {
                        let share = length_ns as f64 / (every_ns + length_ns) as f64;
                        if noise.even() < share { 0.5 } else { 0.0 }
                    }
                    Self::Switches { by, .. } => {
                        if noise.even() < 0.5 {
                            by
                        } else {
                            0.0
                        }
                    }
                    Self::Stalls { every_ns, .. } => {
                        state.at((noise.even() * every_ns as f64) as u64, &mut noise)
                    }
                    Self::Queues { .. } => state.at(0, &mut noise),
                };
                self.response_ns(added, &mut noise)
            })
            .collect();
        all.sort_unstable();
        all
    }

    /// Makes `run` one against it.
    fn run(self, length_s: u64, noise: &mut Noise, run: &mut Run) {
        let window_ns = length_s * S;
        run.window_ns = window_ns;
        run.latencies.response = Histogram::default();
        run.latencies.unfinished = Histogram::default();
        let mut intervals = IntervalRecorder::default();
        intervals.set_window(window_ns);
        let mut state = State::new(self, window_ns, noise);
        for step in 0..length_s * RATE_PER_S {
            let at_ns = step * STEP_NS;
            let added = state.at(at_ns, noise);
            let response_ns = self.response_ns(added, noise);
            run.latencies.response.record(response_ns);
            intervals.record(at_ns, response_ns);
        }
        run.latencies.intervals = intervals.finish(window_ns);
    }
}

/// The outcome of the intervals of one quantile over some runs.
#[derive(Clone, Copy, Debug, Default)]
struct Tried {
    /// Runs that printed one.
    printed: u64,
    /// Printed intervals that hold the true value.
    held: u64,
    /// Order statistics, as if replies were independent, that hold it.
    held_by_ranks: u64,
    /// Mean of how much wider they are than order statistics.
    wider: f64,
    /// Sum of their widths, nanoseconds.
    width_ns: f64,
}

impl Tried {
    fn share(&self) -> f64 {
        self.held as f64 / self.printed as f64
    }
}

/// 200 runs of each length against `server`: the outcome of each quantile. Every interval that is
/// printed often must hold the truth in 90 of 100 runs at least.
fn try_out(server: Server) -> Vec<[Tried; QUANTILES.len()]> {
    let lengths = LENGTHS_S.map(|length_s| tried(server, length_s));
    for (tried, length_s) in lengths.iter().zip(LENGTHS_S) {
        verify(tried, &format!("{server:?}, {length_s} s"));
    }
    lengths.into()
}

fn verify(tried: &[Tried], words: &str) {
    for (tried, q) in tried.iter().zip(QUANTILES) {
        let often = tried.printed >= RUNS / 5;
        assert!(!often || tried.share() >= 0.9, "{words}, {q}: {tried:?}");
    }
    let (printed, held) = tried.iter().fold((0, 0), |(printed, held), it| {
        (printed + it.printed, held + it.held)
    });
    assert!(held * 100 >= printed * 93, "{words}: {tried:?}");
}

/// The outcome of 200 runs of this length. Prints it too, for a table of all of them:
/// `cargo test --workspace --lib -- --nocapture coverage`.
fn tried(server: Server, length_s: u64) -> [Tried; QUANTILES.len()] {
    let truth_ns = server.truth_ns();
    let mut run = run();
    let mut tried = [Tried::default(); QUANTILES.len()];
    let mut found_ns = [const { Vec::new() }; QUANTILES.len()];
    for index in 0..RUNS {
        let mut noise = Noise::new(u128::from(length_s * 1_000 + index));
        server.run(length_s, &mut noise, &mut run);
        for ((tried, q), &truth_ns) in tried.iter_mut().zip(QUANTILES).zip(&truth_ns) {
            try_one(&run, q, truth_ns, tried);
        }
        for (found_ns, q) in found_ns.iter_mut().zip(QUANTILES) {
            found_ns.extend(run.latencies.response.quantile_ns(q));
        }
    }
    for ((tried, q), found_ns) in tried.iter_mut().zip(QUANTILES).zip(found_ns) {
        tried.wider /= tried.printed.max(1) as f64;
        let width_ns = tried.width_ns / tried.printed.max(1) as f64;
        println!(
            "| {server:?} | {length_s} s | p{} | {} | {} | {:.2} |",
            q * 100.0,
            tried.printed,
            tried.held,
            width_ns / spread_ns(found_ns)
        );
    }
    tried
}

/// How far apart the ends of the middle 95 % of some values are: an interval of a quantile that
/// knew the process would be as wide as those of the quantiles of many runs.
fn spread_ns(mut values: Vec<u64>) -> f64 {
    values.sort_unstable();
    let at = |q: f64| values[(q * (values.len() - 1) as f64).round() as usize];
    (at(0.975) - at(0.025)) as f64
}

fn try_one(run: &Run, q: f64, truth_ns: u64, tried: &mut Tried) {
    let (ns, interval) = match run.response_quantile(q) {
        Quantile::Known { ns, interval } => (ns, interval),
        Quantile::TooFew { .. } => return,
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
            let width = (by_ranks.end() - by_ranks.start()) as f64;
            tried.wider += (high_ns - low_ns) as f64 / width;
            tried.width_ns += (high_ns - low_ns) as f64;
        }
        Err(NoInterval::TooAlike { .. }) => {}
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn steady_servers_have_intervals_little_wider_than_order_statistics() {
    let lengths = try_out(Server::Steady);
    for (length_s, tried) in LENGTHS_S.into_iter().zip(lengths) {
        for (tried, q) in tried.iter().zip(QUANTILES) {
            // Intervals need some five times as many samples as the quantile.
            let is_expected = length_s * RATE_PER_S > 6 * samples_needed(q);
            if is_expected {
                let words = format!("{length_s} s, {q}: {tried:?}");
                assert!(tried.printed * 10 >= RUNS * 9, "{words}");
                assert!(tried.wider < 1.7, "{words}");
            }
        }
    }
}

#[test]
fn servers_that_wander_are_held() {
    let lengths = try_out(Server::Wanders {
        deviation: 0.1,
        memory_ns: S / 20,
    });
    for tried in &lengths {
        let median = tried[0];
        assert!(median.printed * 10 >= RUNS * 9, "{median:?}");
        // Order statistics alone do not see it.
        assert!(median.held_by_ranks < RUNS / 2, "{median:?}");
    }
    // 10 s are 200 times its memory: enough for p90 and p95.
    assert!(
        lengths[2][..3].iter().all(|it| it.printed * 10 >= RUNS * 8),
        "{:?}",
        lengths[2]
    );
}

#[test]
fn servers_that_wander_a_little_are_held() {
    let lengths = try_out(Server::Wanders {
        deviation: 0.02,
        memory_ns: S / 20,
    });
    for tried in &lengths {
        assert!(
            tried[..3].iter().all(|it| it.printed * 10 >= RUNS * 9),
            "{tried:?}"
        );
    }
}

#[test]
fn servers_that_drift_are_held() {
    let lengths = try_out(Server::Drifts { by: 0.1 });
    assert!(lengths.iter().all(|tried| tried[0].printed == RUNS));
    try_out(Server::Drifts { by: -0.02 });
}

#[test]
fn servers_with_bursts_are_held() {
    let lengths = try_out(Server::Bursts {
        every_ns: S / 20,
        length_ns: S / 200,
    });
    assert!(lengths.iter().all(|tried| tried[0].printed == RUNS));
    assert!(
        lengths[0][1].held_by_ranks < RUNS / 2,
        "{:?}",
        lengths[0][1]
    );
}

#[test]
fn servers_that_switch_are_held() {
    let lengths = try_out(Server::Switches {
        after_ns: S / 100,
        by: 0.3,
    });
    assert!(
        lengths
            .iter()
            .all(|tried| tried[0].printed * 10 >= RUNS * 9)
    );
}

#[test]
fn servers_that_stall_at_even_times_are_held() {
    try_out(Server::Stalls {
        // No multiple of the steps: stalls would be met at the same instants again and again.
        every_ns: S / 5 + STEP_NS / 3,
        length_ns: S / 100,
    });
}

#[test]
fn servers_with_queues_are_held() {
    try_out(Server::Queues { load: 0.5 });
    // What a queue remembers takes longer to see the fuller the server is.
    let busy = Server::Queues { load: 0.9 };
    verify(&tried(busy, 10), &format!("{busy:?}"));
    let full = tried(Server::Queues { load: 0.99 }, 60);
    assert!(
        full[0].printed >= RUNS / 2 && full[0].share() >= 0.9,
        "{:?}",
        full[0]
    );
}

#[test]
fn rates_are_held() {
    for (deviation, memory_ns) in [(0.0, S), (0.1, S / 20), (0.02, S / 50)] {
        let mut run = steady_run();
        run.agents[0].workers.truncate(1);
        for length_s in LENGTHS_S {
            let window_ns = length_s * S;
            let server = Server::Wanders {
                deviation,
                memory_ns,
            };
            // Each step has two replies on average, as many more as the level is above 0.
            let truth_per_s = 2.0 * RATE_PER_S as f64;
            let (mut held, mut wide) = (0, 0.0);
            for index in 0..RUNS {
                let mut noise = Noise::new(u128::from(index));
                let mut state = State::new(server, window_ns, &mut noise);
                let mut series = Series::over(window_ns);
                let mut replies = StatusCounts::default();
                for step in 0..length_s * RATE_PER_S {
                    let at_ns = step * STEP_NS;
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
            assert!(held * 100 >= RUNS * 92, "{server:?}, {length_s} s: {held}");
            // Of a steady one, little more than what independent replies have.
            if deviation == 0.0 {
                let independent = 1.96 / (2.0 * truth_per_s * length_s as f64).sqrt();
                let wider = wide / RUNS as f64 / independent;
                assert!(wider < 1.6, "{length_s} s: {wider}");
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

/// Shares of 200 runs of `length_s` seconds in which the `q`-quantile is shown to lie below a
/// limit. The first is of a limit that 1.05 times `1 - q` of the requests reach, and the second of
/// one that is `times` as far from the median as the quantile. The third is as the first, with
/// replies taken for independent.
fn shown_below(server: Server, length_s: u64, q: f64, times: f64) -> [f64; 3] {
    let all = server.all_ns();
    let at = |q: f64| all[(q * DRAWS as f64) as usize];
    let over_ns = at(1.0 - 1.05 * (1.0 - q));
    let far_ns = at(0.5) + ((at(q) - at(0.5)) as f64 * times) as u64;
    let mut shown = [0_u64; 3];
    let mut run = run();
    for index in 0..RUNS {
        let mut noise = Noise::new(u128::from(length_s * 1_000 + index));
        server.run(length_s, &mut noise, &mut run);
        let sample = response_sample(&run);
        let limits = Limits::of(&sample, q).expect("samples enough");
        let (samples, over) = (sample.finished.count(), sample.finished.count_from(over_ns));
        shown[0] += u64::from(limits.is_below(over_ns));
        shown[1] += u64::from(limits.is_below(far_ns));
        shown[2] += u64::from(is_share_below(over as f64, samples as f64, 1.0 - q));
    }
    shown.map(|shown| shown as f64 / RUNS as f64)
}

#[test]
fn limits_just_under_the_quantile_are_not_met_and_far_ones_are() {
    let wanders = |memory_ns| Server::Wanders {
        deviation: 0.1,
        memory_ns,
    };
    // Independence would have been believed in too often.
    let mut too_often = 0;
    for server in [
        Server::Steady,
        wanders(S / 50),
        wanders(S / 5),
        Server::Bursts {
            every_ns: S / 20,
            length_ns: S / 200,
        },
        Server::Switches {
            after_ns: S / 100,
            by: 0.3,
        },
        Server::Queues { load: 0.5 },
        Server::Queues { load: 0.8 },
    ] {
        for length_s in [4, 15] {
            for q in [0.5, 0.9, 0.99] {
                let [over, far, independent] = shown_below(server, length_s, q, 10.0);
                too_often += u32::from(independent > 0.1);
                let words = format!("{server:?}, {length_s} s, {q}: {over} {far}");
                assert!(over <= 0.05, "{words}");
                // Ten times nothing is nothing.
                assert!(q <= 0.5 || far >= 0.95, "{words}");
            }
        }
    }
    assert!(too_often >= 10, "{too_often}");
}
