//! Which parts of a window the hypervisor left alone, and the figures of those parts.

use brunt_load::{ArrivalProcess, LoadModel};
use brunt_record::{AgentRecord, Histogram, Intervals, Run, SeriesPoint, after_ns};

use crate::behaviour::overload::overload_of;
use crate::behaviour::steadiness::{follows_plan, steadiness_of_counts};
use crate::precision::{Sample, is_planned_to_vary, rate_interval};
use crate::{NoInterval, Quantile, RateInterval, Steadiness, Summary};

/// The least clean time that figures are found on, nanoseconds: 20 tenths of a second.
const CLEAN_LEAST_NS: u64 = 2_000_000_000;
/// The least clean time that figures are found on, as a part of the window: one in so many.
const CLEAN_LEAST_PART: u64 = 2;
/// Steal that may be missing from the stretches, nanoseconds. The counters from which it is summed
/// up turn at other instants, in ticks of 10 ms.
const UNPLACED_MOST_NS: u64 = 30_000_000;
/// Responses that began under steal, and take longer than this after it, are counted: by then it
/// is a small part of them.
const RESPONSE_MOST_NS: u64 = 100_000_000;
/// What a backlog may have left when it counts as drained, as a share of the arrivals of one part.
const BACKLOG_LEFT: f64 = 0.02;
/// What a backlog may have left when it counts as drained, in standard deviations of the arrivals
/// of one part, where these come by chance.
const BACKLOG_LEFT_DEVIATIONS: f64 = 2.0;

/// What the hypervisor left of a window in which it took time from the CPUs that brunt or the
/// server used.
///
/// A part of the window is left out if time was stolen in it, or what was held up by that may not
/// have been over: so long as a response takes and, in an open loop, until as many requests were
/// answered as had become due. What the server does by itself has no say in it: a part after steal
/// in which a backlog does not become smaller is counted, and so are, of the parts that are left
/// out, those response times that steal does not explain.
#[derive(Clone, Debug)]
pub struct Clean {
    /// Length of the parts that are counted, nanoseconds. Absent where it was not recorded when
    /// time was stolen.
    pub clean_ns: Option<u64>,
    /// The figures of these parts, where they are enough: 2 s and half of the window.
    pub figures: Option<CleanFigures>,
}

/// The figures of the parts of a window in which nothing was stolen.
#[derive(Clone, Debug)]
pub struct CleanFigures {
    /// Length of these parts, nanoseconds.
    pub clean_ns: u64,
    /// Length of the window, nanoseconds.
    pub window_ns: u64,
    /// Successful replies per second.
    pub successes_per_s: f64,
    /// How well that is known, or why that cannot be said.
    pub successes_interval: Result<RateInterval, NoInterval>,
    /// Complete replies, whatever their status.
    pub replies: u64,
    /// Brunt's own share of the response times, on connections with kernel stamps; absent without
    /// any.
    pub own_share: Option<f64>,
    /// Whether the rate held still.
    pub steadiness: Steadiness,
    /// Response times of successful replies that completed in these parts, to 0.4 %.
    pub response: Histogram,
    unfinished: Histogram,
    intervals: Intervals,
    is_planned_to_vary: bool,
}

impl CleanFigures {
    /// The `q`-quantile of the response time, as [`Run::response_quantile`] has it for the whole
    /// window. What never came counts here as well.
    pub fn response_quantile(&self, q: f64) -> Quantile {
        self.sample().quantile(q)
    }

    /// The response times.
    pub(crate) fn sample(&self) -> Sample<'_> {
        Sample {
            finished: &self.response,
            unfinished: &self.unfinished,
            intervals: &self.intervals,
            window_ns: self.clean_ns,
            is_planned_to_vary: self.is_planned_to_vary,
        }
    }
}

impl Clean {
    /// What is left of the window of `run`. Absent where nothing was stolen, as far as is known.
    pub(crate) fn of(run: &Run, summary: &Summary) -> Option<Self> {
        if run.is_streams() {
            // What is kept over time is that of requests.
            return None;
        }
        let spans: Option<Vec<_>> = run.agents.iter().map(stolen_spans).collect();
        let Some(spans) = spans.map(|of_agents| of_agents.concat()) else {
            return Some(Self {
                clean_ns: None,
                figures: None,
            });
        };
        if spans.is_empty() {
            return None;
        }
        let parts = Parts::of(run, summary, &spans);
        let clean_ns = parts.clean_ns();
        let is_enough = is_enough(clean_ns, run.window_ns) && run.not_one_load().is_none();
        Some(Self {
            clean_ns: Some(clean_ns),
            figures: is_enough.then(|| parts.figures(run, summary)),
        })
    }
}

/// Whether parts of a window that are together so long are enough for figures of their own.
fn is_enough(clean_ns: u64, window_ns: u64) -> bool {
    clean_ns >= CLEAN_LEAST_NS && clean_ns >= window_ns.div_ceil(CLEAN_LEAST_PART)
}

/// The spans of time in which CPU time may have been stolen from an agent's CPUs that matter, as
/// their first and last instants. Absent where time was stolen and it is not known when.
fn stolen_spans(agent: &AgentRecord) -> Option<Vec<(i64, i64)>> {
    let host = &agent.evidence.host;
    let cpus = agent.cpus_of_both();
    let matters = |cpu: u32| cpus.is_empty() || cpus.contains(&cpu);
    let stolen: Vec<_> = host.stolen.iter().filter(|it| matters(it.cpu)).collect();
    let in_window = stolen.iter().filter(|it| it.until_ns > 0);
    let placed_ns = in_window.fold(0, |sum: u64, it| sum.saturating_add(it.steal_ns));
    let of_cpus = host.cpus.iter().filter(|times| matters(times.cpu));
    let steal_ns = of_cpus.fold(0, |sum: u64, it| sum.saturating_add(it.steal_ns));
    if steal_ns > placed_ns.saturating_add(UNPLACED_MOST_NS) {
        return None;
    }
    let spans = stolen.iter().map(|it| {
        // It is counted when it is over.
        let from_ns = it.from_ns.saturating_sub_unsigned(it.steal_ns);
        (from_ns, it.until_ns.max(from_ns))
    });
    Some(spans.collect())
}

/// The equal parts of a window, and which of them are clean.
struct Parts {
    part_ns: u64,
    is_clean: Vec<bool>,
    /// What most responses take in the parts in which nothing was stolen, nanoseconds.
    response_ns: u64,
}

impl Parts {
    fn of(run: &Run, summary: &Summary, spans: &[(i64, i64)]) -> Self {
        let part_ns = summary.series.interval_ns.max(1);
        let count = (run.window_ns / part_ns).min(usize::MAX as u64) as usize;
        let mut parts = Self {
            part_ns,
            is_clean: Vec::new(),
            response_ns: 0,
        };
        parts.leave_out(count, spans);
        parts.response_ns = parts.most_responses_ns(&run.latencies.intervals);
        // Where arrivals come by chance, the end of a backlog is not seen to a few: it takes about
        // as long to go as it took to come.
        let is_by_chance = match &run.plan.model {
            LoadModel::Open { schedule, .. } => {
                schedule.process() != ArrivalProcess::Constant || schedule.varies()
            }
            _ => false,
        };
        let before = spans.iter();
        let before = before.map(|&(from_ns, until_ns)| after_ns(from_ns, until_ns.min(0)));
        let before_ns = before.fold(0, u64::saturating_add);
        let longer = spans.iter().map(|&(from_ns, until_ns)| {
            let length_ns = after_ns(from_ns, until_ns);
            let stretch_ns = if is_by_chance { length_ns } else { 0 };
            let after_ns = parts.response_ns.max(stretch_ns).min(RESPONSE_MOST_NS);
            (from_ns, until_ns.saturating_add_unsigned(after_ns))
        });
        let longer: Vec<_> = longer.collect();
        parts.leave_out(count, &longer);
        parts.leave_out_backlogs(run, summary, before_ns);
        parts
    }

    /// Marks the parts that overlap with none of `spans`.
    fn leave_out(&mut self, count: usize, spans: &[(i64, i64)]) {
        self.is_clean = vec![true; count];
        for &(from_ns, until_ns) in spans {
            let [from_ns, until_ns] = [from_ns, until_ns].map(|ns| ns.max(0).cast_unsigned());
            let first = from_ns / self.part_ns;
            let last = until_ns.div_ceil(self.part_ns).min(count as u64);
            if first < last {
                self.is_clean[first as usize..last as usize].fill(false);
            }
        }
    }

    /// The 99th percentile of the response times in the clean parts; of all parts, where none is
    /// clean.
    fn most_responses_ns(&self, intervals: &Intervals) -> u64 {
        let clean = intervals.only(|index| self.least_counted(intervals, index, u64::MAX));
        let response = match clean.count() {
            0 => intervals.together(),
            _ => clean.together(),
        };
        response.quantile_ns(0.99).unwrap_or(0)
    }

    /// Leaves out the parts in which a backlog drains, behind those that are out already.
    /// `before_ns` is the time that was stolen before the window.
    fn leave_out_backlogs(&mut self, run: &Run, summary: &Summary, before_ns: u64) {
        let LoadModel::Open { schedule, .. } = &run.plan.model else {
            // In a closed loop nothing piles up.
            return;
        };
        if schedule.varies() || overload_of(run, summary).is_some() {
            return;
        }
        let parts = run.window_ns as f64 / self.part_ns as f64;
        let due = summary.arrivals.planned as f64 / parts;
        let by_chance = match schedule.process() {
            ArrivalProcess::Poisson => BACKLOG_LEFT_DEVIATIONS * due.sqrt(),
            _ => 0.0,
        };
        let left = by_chance.max(BACKLOG_LEFT * due);
        let mut backlog = due * before_ns as f64 / self.part_ns as f64;
        for (index, is_clean) in self.is_clean.iter_mut().enumerate() {
            let point = summary.series.points.get(index);
            let ended = point.map_or(0, |it| it.successes + it.errors + it.failures) as f64;
            let after = (backlog + due - ended).max(0.0);
            if !*is_clean {
                backlog = after;
            } else if backlog > left && after < backlog {
                *is_clean = false;
                backlog = after;
            } else {
                // What does not drain is not of the steal.
                backlog = 0.0;
            }
        }
    }

    fn clean_ns(&self) -> u64 {
        let clean = self.is_clean.iter().filter(|is_clean| **is_clean).count();
        (clean as u64).saturating_mul(self.part_ns)
    }

    /// The response time from which on those that completed in the interval `index` are counted. It
    /// is 0 where all parts of the interval are clean. Otherwise it is `most_ns` more than the
    /// stretch that is left out.
    fn least_counted(&self, intervals: &Intervals, index: usize, most_ns: u64) -> u64 {
        let (length_ns, count) = (intervals.interval_ns(), self.is_clean.len());
        let from_ns = (index as u64).saturating_mul(length_ns);
        let until_ns = from_ns.saturating_add(length_ns);
        let first = ((from_ns / self.part_ns) as usize).min(count);
        let after = (until_ns.div_ceil(self.part_ns) as usize).min(count);
        let is_whole = until_ns <= (count as u64).saturating_mul(self.part_ns);
        if is_whole && self.is_clean[first..after].iter().all(|is_clean| *is_clean) {
            return 0;
        }
        let is_out = |part: &usize| !self.is_clean[*part];
        let before = (0..first).rev().take_while(is_out).count();
        let behind = (after..count).take_while(is_out).count();
        let stretch_ns = ((before + behind) as u64).saturating_mul(self.part_ns);
        most_ns.saturating_add(stretch_ns.saturating_add(length_ns))
    }

    fn figures(&self, run: &Run, summary: &Summary) -> CleanFigures {
        let clean_ns = self.clean_ns();
        let series = &summary.series;
        let nothing = SeriesPoint::default();
        let points = series.points.iter().chain(std::iter::repeat(&nothing));
        let points = points.zip(&self.is_clean);
        let points: Vec<&SeriesPoint> = points
            .filter_map(|(point, is_clean)| is_clean.then_some(point))
            .collect();
        let counts: Vec<f64> = points.iter().map(|it| it.successes as f64).collect();
        let successes_per_s = counts.iter().sum::<f64>() * 1e9 / clean_ns as f64;
        let is_planned_to_vary = is_planned_to_vary(run);
        let successes_interval = if is_planned_to_vary {
            Err(NoInterval::PlannedToVary)
        } else {
            rate_interval(successes_per_s, counts.clone(), self.part_ns)
        };
        let sum = |of: fn(&SeriesPoint) -> u64| {
            let counts = points.iter().map(|point| of(point));
            counts.fold(0, u64::saturating_add)
        };
        let response_ns = sum(|it| it.stamped_response_ns) as f64;
        let own_share = sum(|it| it.stamped_own_ns) as f64 / response_ns;
        let all = &run.latencies.intervals;
        let intervals = all.only(|index| self.least_counted(all, index, self.response_ns));
        CleanFigures {
            clean_ns,
            window_ns: run.window_ns,
            successes_per_s,
            successes_interval,
            replies: sum(|it| it.successes.saturating_add(it.errors)),
            own_share: own_share.is_finite().then_some(own_share),
            steadiness: steadiness_of_counts(
                &counts,
                self.part_ns,
                is_planned_to_vary,
                follows_plan(run, summary),
            ),
            response: intervals.together(),
            unfinished: run.latencies.unfinished.clone(),
            intervals,
            is_planned_to_vary,
        }
    }
}

#[cfg(test)]
mod tests {
    use brunt_record::{CpuTimes, Objective, Stolen};

    use super::*;
    use crate::invariants::sample::{MS, open_run, steady_run, with_counts};
    use crate::{Judged, ResponseQuantiles, RoundRecord, RunFigures};

    const S: i64 = 1_000_000_000;
    const TENTHS: usize = 100;

    /// `usual` replies in each tenth of 10 s; `other` gives tenths with another number.
    fn counts(usual: u64, other: &[(usize, u64)]) -> Vec<u64> {
        let mut counts = vec![usual; TENTHS];
        for &(tenth, count) in other {
            counts[tenth] = count;
        }
        counts
    }

    fn closed(other: &[(usize, u64)]) -> Run {
        with_counts(steady_run(), &counts(1_000, other))
    }

    /// A reading at `until_ns` told of `steal_ms` more since 50 ms before it.
    fn steal(run: &mut Run, cpu: u32, until_ns: i64, steal_ms: u64) {
        run.agents[0].evidence.host.stolen.push(Stolen {
            cpu,
            from_ns: until_ns - 50 * MS.cast_signed(),
            until_ns,
            steal_ns: steal_ms * MS,
        });
    }

    fn clean_of(run: &Run) -> Option<Clean> {
        Clean::of(run, &run.summary())
    }

    fn figures(run: &Run) -> CleanFigures {
        let figures = clean_of(run).and_then(|clean| clean.figures);
        figures.expect("enough is left")
    }

    #[test]
    fn nothing_stolen_leaves_nothing_to_say() {
        assert!(clean_of(&closed(&[(30, 0)])).is_none());
    }

    #[test]
    fn what_was_slow_while_time_was_stolen_is_left_out() {
        let mut run = closed(&[(30, 400), (31, 700)]);
        // Between 3.04 s and 3.15 s.
        steal(&mut run, 0, 3 * S + S / 10 + S / 20, 60);
        let figures = figures(&run);
        assert_eq!(figures.clean_ns, 9_800 * MS);
        assert_eq!(figures.successes_per_s, 10_000.0);
        assert_eq!(figures.replies, 98_000);
        assert!(!figures.steadiness.drifts);
    }

    #[test]
    fn objectives_of_the_rest_are_judged_by_its_quantiles() {
        let (q, below_ns) = (0.99, 1_000 * MS);
        let mut run = steady_run();
        run.objectives = vec![
            Objective::ResponseQuantile { q, below_ns },
            Objective::Errors { below: 0.5 },
        ];
        assert!(Judged::of(&run).objectives_of_clean().is_none());
        steal(&mut run, 0, 3 * S + S / 10 + S / 20, 60);
        let judged = Judged::of(&run);
        let of_clean = judged.objectives_of_clean().expect("enough is left");
        let rest = figures(&run);
        let Quantile::Known { ns, .. } = rest.response_quantile(q) else {
            panic!("{rest:?}");
        };
        assert_eq!(of_clean[0].measured, Some(ns as f64));
        let whole = judged.objectives();
        assert_ne!(of_clean[0], whole[0]);
        assert_eq!(of_clean[1], whole[1]);
    }

    #[test]
    fn a_verdict_on_the_rest_has_figures_and_objectives_of_the_rest() {
        let mut run = steady_run();
        let below_ns = 1_000 * MS;
        run.objectives = vec![
            Objective::ResponseQuantile { q: 0.99, below_ns },
            Objective::ResponseMax { below_ns },
            Objective::ResponseMean { below_ns },
            Objective::SuccessesPerS { above: 9_000.0 },
            Objective::Errors { below: 0.5 },
        ];
        let is_of_part = |run: &Run| {
            let outcomes = Judged::of(run).objectives();
            let reasons = outcomes.into_iter().map(|outcome| outcome.reason);
            let part = "in which the hypervisor took nothing";
            reasons
                .map(|it| it.is_some_and(|it| it.contains(part)))
                .collect::<Vec<_>>()
        };
        // What nobody notices decides nothing.
        steal(&mut run, 0, 3 * S + S / 10 + S / 20, 60);
        assert!(Judged::of(&run).undisturbed().is_none());
        assert_eq!(is_of_part(&run), [false; 5]);
        run.agents[0].evidence.host.cpus = vec![CpuTimes {
            cpu: 0,
            steal_ns: 60 * MS,
            ..CpuTimes::default()
        }];
        let judged = Judged::of(&run);
        let rest = judged.undisturbed().expect("the verdict rests on it");
        let q = 0.99;
        assert_eq!(judged.response_quantile(q), rest.response_quantile(q));
        assert_ne!(judged.response_quantile(q), run.response_quantile(q));
        assert_eq!(is_of_part(&run), [true, true, true, true, false]);
        let outcomes = judged.objectives();
        let per_s = Some(rest.successes_per_s);
        assert_eq!(outcomes[3].measured, per_s);
        let record = RoundRecord::of(&judged);
        assert_eq!(record.successes_per_s, per_s);
        assert_eq!(record.undisturbed_ns, Some(rest.clean_ns));
        assert_eq!(record.response.max_ns, rest.response.max_ns());
    }

    #[test]
    fn stalls_of_the_server_are_never_left_out() {
        let stalled: Vec<_> = (50..60).map(|tenth| (tenth, 0)).collect();
        let mut run = closed(&stalled);
        steal(&mut run, 0, S - S / 50, 20);
        let figures = figures(&run);
        assert_eq!(figures.clean_ns, 9_900 * MS);
        assert_eq!(figures.replies, 89_000);
    }

    #[test]
    fn what_was_stolen_before_the_window_reaches_into_it() {
        let mut run = closed(&[]);
        steal(&mut run, 0, S / 50, 60);
        assert_eq!(figures(&run).clean_ns, 9_900 * MS);
        let mut run = closed(&[]);
        steal(&mut run, 0, -S / 2, 60);
        assert_eq!(figures(&run).clean_ns, 10_000 * MS);
    }

    #[test]
    fn half_of_the_window_and_two_seconds_are_enough() {
        for (clean_ns, window_ns, expected) in [
            (2_000 * MS, 4_000 * MS, true),
            (2_000 * MS, 4_000 * MS + 2, false),
            (1_999 * MS, 2_000 * MS, false),
            (10_000 * MS, 10_000 * MS, true),
            (0, 0, false),
        ] {
            assert_eq!(is_enough(clean_ns, window_ns), expected, "{clean_ns}");
        }
        let mut run = closed(&[]);
        for tenth in (0..100).step_by(2) {
            steal(&mut run, 0, tenth * S / 10 + S * 8 / 100, 10);
        }
        assert_eq!(figures(&run).clean_ns, 5_000 * MS);
        steal(&mut run, 0, S / 10 + S * 8 / 100, 10);
        let clean = clean_of(&run).expect("something was stolen");
        assert_eq!(clean.clean_ns, Some(4_900 * MS));
        assert!(clean.figures.is_none());
    }

    #[test]
    fn steal_that_no_reading_places_leaves_no_figures() {
        let mut run = closed(&[]);
        run.agents[0].evidence.host.cpus = vec![CpuTimes {
            cpu: 0,
            steal_ns: 90 * MS,
            ..CpuTimes::default()
        }];
        steal(&mut run, 0, S, 60);
        // Ticks of the counters.
        assert!(figures(&run).clean_ns < 10_000 * MS);
        run.agents[0].evidence.host.cpus[0].steal_ns = 91 * MS;
        let clean = clean_of(&run).expect("something was stolen");
        assert!(clean.clean_ns.is_none() && clean.figures.is_none());
    }

    #[test]
    fn only_cpus_of_the_workers_and_the_server_matter() {
        let mut run = closed(&[]);
        run.agents[0].workers[0].bound_cpu = Some(3);
        steal(&mut run, 2, S, 60);
        assert!(clean_of(&run).is_none());
        steal(&mut run, 3, S, 60);
        assert!(clean_of(&run).is_some());
    }

    #[test]
    fn an_open_loop_goes_without_the_tenths_in_which_a_backlog_drains() {
        let mut run = with_counts(open_run(), &counts(100, &[]));
        let due = run.summary().arrivals.planned / TENTHS as u64;
        let after_steal = |drained: &[u64]| {
            let mut other = vec![(40, due / 5)];
            let drained = drained.iter().enumerate();
            other.extend(drained.map(|(index, &count)| (41 + index, count)));
            let mut run = with_counts(open_run(), &counts(due, &other));
            steal(&mut run, 0, 4 * S + S / 10 - S / 100, 40);
            figures(&run).clean_ns
        };
        // It drains within two tenths.
        assert_eq!(
            after_steal(&[due + due / 2, due + due * 3 / 10]),
            9_700 * MS
        );
        // It does not: that is the server's doing.
        assert_eq!(after_steal(&[due, due]), 9_900 * MS);
        steal(&mut run, 0, 4 * S + S / 10 - S / 100, 40);
        assert_eq!(figures(&run).clean_ns, 9_900 * MS);
    }
}
