//! Who had the CPUs over the window: the ledger of CPU time; and which parts of the window the
//! hypervisor left alone, with the figures of those parts.

use brunt_load::{ArrivalProcess, LoadModel, Work};
use brunt_record::{
    AgentRecord, Backend, CpuTimes, Histogram, Intervals, ProgramUse, Run, SeriesPoint, after_ns,
};
use serde::Serialize;

use crate::behaviour::steadiness::{follows_plan, overload_of, steadiness_of_counts};
use crate::precision::{Sample, is_planned_to_vary, rate_interval};
use crate::{NoInterval, Quantile, RateInterval, Steadiness, Summary};

/// Who had the CPUs of a machine over the window, nanoseconds. All but `throttled_ns` add up to the
/// time of its CPUs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CpuLedger {
    /// Length of the readings, nanoseconds.
    pub interval_ns: u64,
    /// CPUs of the machine that were read.
    pub cpus: u32,
    /// The server; absent where it was not watched on this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_ns: Option<u64>,
    /// Brunt: its workers and the rest of its process.
    pub client_ns: u64,
    /// All other programs; absent where they were not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others_ns: Option<u64>,
    /// The other programs that used most CPU, largest first.
    pub others: Vec<ProgramUse>,
    /// Busy, and charged to neither server, brunt nor other programs: the kernel's own threads,
    /// interrupts, programs that are not to be seen.
    pub unaccounted_ns: u64,
    /// Taken by the hypervisor.
    pub steal_ns: u64,
    /// Idle, or waiting for a disk.
    pub idle_ns: u64,
    /// For how long brunt's quota held it back; absent without a quota. Others may have had the
    /// CPUs then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled_ns: Option<u64>,
}

impl CpuLedger {
    /// The ledger of an agent's machine. Absent where its CPUs were not read.
    pub fn of(agent: &AgentRecord) -> Option<Self> {
        Self::over(agent, |_| true)
    }

    /// The ledger of those CPUs of an agent's machine for which `wanted` holds. It is worked out as
    /// if server, brunt and others had run on these alone, which bounds what others took of them.
    /// Absent where the CPUs were not read.
    pub(crate) fn over(agent: &AgentRecord, wanted: impl Fn(u32) -> bool) -> Option<Self> {
        let host = &agent.evidence.host;
        let interval_ns = agent.evidence.interval_ns;
        let cpus: Vec<_> = host.cpus.iter().filter(|times| wanted(times.cpu)).collect();
        let sum = |ns: fn(&CpuTimes) -> u64| {
            cpus.iter()
                .map(|times| ns(times))
                .fold(0, u64::saturating_add)
        };
        let total_ns = interval_ns.saturating_mul(cpus.len() as u64);
        if total_ns == 0 || sum(CpuTimes::total_ns) == 0 {
            return None;
        }
        // One that runs elsewhere has no CPU of this machine.
        let server = agent.evidence.server.as_ref();
        let server = server.filter(|server| server.cpu_list.iter().any(|&cpu| wanted(cpu)));
        let over_interval = |cpus: f64| (cpus * interval_ns as f64) as u64;
        let server_ns = server
            .and_then(|server| server.cpus_used())
            .map(over_interval);
        let process_ns = host.series.last().map(|point| point.client_cpu_ns);
        let of_process = process_ns.filter(|_| agent.backend != Backend::Sim);
        let client_ns = match of_process {
            Some(ns) if agent.own_server => ns.saturating_sub(server_ns.unwrap_or(0)),
            Some(ns) => ns,
            None => over_interval(cpus_of_workers(agent)),
        };
        // The kernel counts a thread's time exactly, that a CPU is busy in ticks, and charges what
        // it does between the two to nobody: what was not idle, was busy.
        let steal_ns = sum(|times| times.steal_ns).min(total_ns);
        let room_ns = total_ns - steal_ns;
        let both_ns = client_ns.saturating_add(server_ns.unwrap_or(0));
        let not_idle_ns = room_ns.saturating_sub(sum(|times| times.idle_ns));
        let busy_ns = not_idle_ns.max(both_ns).min(room_ns);
        let client_ns = client_ns.min(busy_ns);
        let server_ns = server_ns.map(|ns| ns.min(busy_ns - client_ns));
        let rest_ns = busy_ns - client_ns - server_ns.unwrap_or(0);
        let programs = host.programs.as_ref();
        let others_ns = programs.map(|programs| programs.cpu_ns.min(rest_ns));
        let largest = programs.map_or(&[][..], |programs| &programs.largest);
        let others = largest.iter().map(|program| ProgramUse {
            cpu_ns: program.cpu_ns.min(others_ns.unwrap_or(0)),
            ..program.clone()
        });
        Some(Self {
            interval_ns,
            cpus: cpus.len() as u32,
            server_ns,
            client_ns,
            others_ns,
            others: others.collect(),
            unaccounted_ns: rest_ns - others_ns.unwrap_or(0),
            steal_ns,
            idle_ns: room_ns - busy_ns,
            throttled_ns: host.throttling.map(|throttling| throttling.throttled_ns),
        })
    }

    /// `ns`, a part of the ledger, as the CPUs that it makes on average.
    pub fn in_cpus(&self, ns: u64) -> f64 {
        ns as f64 / self.interval_ns.max(1) as f64
    }
}

/// CPUs that an agent's workers used on average, as far as they were read.
fn cpus_of_workers(agent: &AgentRecord) -> f64 {
    let threads = agent.workers.iter().filter_map(|worker| worker.thread);
    let read = threads.filter(|thread| thread.interval_ns > 0);
    read.map(|thread| thread.cpu_ns() as f64 / thread.interval_ns as f64)
        .sum()
}

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
        if run.work() == Work::Streams {
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
        let figures = is_enough.then(|| parts.figures(run, summary));
        let clean_ns = Some(clean_ns);
        Some(Self { clean_ns, figures })
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
    let stolen: Vec<_> = host
        .stolen
        .iter()
        .filter(|stretch| matters(stretch.cpu))
        .collect();
    let in_window = stolen.iter().filter(|stretch| stretch.until_ns > 0);
    let placed_ns = in_window.fold(0, |sum: u64, stretch| sum.saturating_add(stretch.steal_ns));
    let of_cpus = host.cpus.iter().filter(|times| matters(times.cpu));
    let steal_ns = of_cpus.fold(0, |sum: u64, times| sum.saturating_add(times.steal_ns));
    if steal_ns > placed_ns.saturating_add(UNPLACED_MOST_NS) {
        return None;
    }
    let spans = stolen.iter().map(|stretch| {
        // It is counted when it is over.
        let from_ns = stretch.from_ns.saturating_sub_unsigned(stretch.steal_ns);
        (from_ns, stretch.until_ns.max(from_ns))
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
        let is_by_chance = match &run.plan.load.model {
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
        let LoadModel::Open { schedule, .. } = &run.plan.load.model else {
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
            let ended =
                point.map_or(0, |point| point.successes + point.errors + point.failures) as f64;
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
        let counts: Vec<f64> = points.iter().map(|point| point.successes as f64).collect();
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
        let response_ns = sum(|point| point.stamped_response_ns) as f64;
        let own_share = sum(|point| point.stamped_own_ns) as f64 / response_ns;
        let all = &run.latencies.intervals;
        let intervals = all.only(|index| self.least_counted(all, index, self.response_ns));
        CleanFigures {
            clean_ns,
            window_ns: run.window_ns,
            successes_per_s,
            successes_interval,
            replies: sum(|point| point.successes.saturating_add(point.errors)),
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
    use super::*;
    use brunt_record::{HostPoint, Objective, OtherPrograms, Stolen};

    use crate::invariants::sample::{MS, open_run, steady_run, with_counts};
    use crate::{Judged, ResponseQuantiles, RoundRecord, RunFigures};

    /// Two CPUs over a second, each busy for `busy_ms`. Brunt used 260 ms, and others `others_ms`.
    fn agent(busy_ms: u64, others_ms: Option<u64>) -> AgentRecord {
        let mut agent = steady_run().agents.remove(0);
        agent.backend = Backend::Epoll;
        agent.evidence.interval_ns = 1_000 * MS;
        let host = &mut agent.evidence.host;
        host.cpus = (0..2)
            .map(|cpu| CpuTimes {
                cpu,
                busy_ns: busy_ms * MS,
                softirq_ns: 0,
                steal_ns: 10 * MS,
                idle_ns: (990 - busy_ms) * MS,
            })
            .collect();
        host.series = vec![HostPoint {
            client_cpu_ns: 260 * MS,
            ..HostPoint::default()
        }];
        host.programs = others_ms.map(|ms| OtherPrograms {
            cpu_ns: ms * MS,
            largest: vec![ProgramUse {
                name: "cargo".to_owned(),
                cpu_ns: ms * MS,
            }],
        });
        agent.evidence.server = None;
        agent
    }

    fn sum(ledger: &CpuLedger) -> u64 {
        ledger.server_ns.unwrap_or(0)
            + ledger.client_ns
            + ledger.others_ns.unwrap_or(0)
            + ledger.unaccounted_ns
            + ledger.steal_ns
            + ledger.idle_ns
    }

    #[test]
    fn what_the_kernel_charges_to_nobody_is_told() {
        let mut agent = agent(500, Some(600));
        for times in &mut agent.evidence.host.cpus {
            times.busy_ns = 300 * MS;
        }
        let ledger = CpuLedger::of(&agent).expect("read");
        let sums = [ledger.unaccounted_ns, sum(&ledger)];
        assert_eq!(sums, [140 * MS, 2_000 * MS]);
    }

    #[test]
    fn it_adds_up_whatever_the_readings_are() {
        // (busy per CPU, others read, others told, unaccounted, idle)
        let cases = [
            (500, Some(600), Some(600), 140, 980),
            (500, None, None, 740, 980),
            // More than there is room for.
            (500, Some(2_000), Some(740), 0, 980),
            (100, Some(50), Some(0), 0, 1_720),
        ];
        for (busy, read, others, unaccounted, idle) in cases {
            let ledger = CpuLedger::of(&agent(busy, read)).expect("read");
            assert_eq!(sum(&ledger), 2_000 * MS, "{ledger:?}");
            assert_eq!(ledger.client_ns, 260 * MS);
            assert_eq!(ledger.others_ns, others.map(|ms: u64| ms * MS));
            assert_eq!(ledger.unaccounted_ns, unaccounted * MS);
            assert_eq!(ledger.idle_ns, idle * MS);
            let mut largest = ledger.others.iter();
            assert!(largest.all(|program| Some(program.cpu_ns) <= ledger.others_ns));
        }
        let one = CpuLedger::over(&agent(500, Some(600)), |cpu| cpu == 1).expect("read");
        assert_eq!((one.cpus, sum(&one)), (1, 1_000 * MS));
        let mut unread = agent(500, None);
        unread.evidence.host.cpus.clear();
        assert_eq!(CpuLedger::of(&unread), None);
    }

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

    /// The counters of the only CPU have so much steal.
    fn counted(run: &mut Run, steal_ms: u64) {
        run.agents[0].evidence.host.cpus = vec![CpuTimes {
            steal_ns: steal_ms * MS,
            ..CpuTimes::default()
        }];
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
        let is_of_part = |run: &Run| -> Vec<bool> {
            let outcomes = Judged::of(run).objectives().into_iter();
            let reasons = outcomes.map(|outcome| outcome.reason.unwrap_or_default());
            let is_of_part = reasons.map(|reason| reason.contains("without CPU steal"));
            is_of_part.collect()
        };
        // What nobody notices decides nothing.
        steal(&mut run, 0, 3 * S + S / 10 + S / 20, 60);
        assert!(Judged::of(&run).undisturbed().is_none());
        assert_eq!(is_of_part(&run), [false; 5]);
        counted(&mut run, 60);
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
        counted(&mut run, 90);
        steal(&mut run, 0, S, 60);
        // Ticks of the counters.
        assert!(figures(&run).clean_ns < 10_000 * MS);
        counted(&mut run, 91);
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
        let drained = [due + due / 2, due + due * 3 / 10];
        assert_eq!(after_steal(&drained), 9_700 * MS);
        // It does not: that is the server's doing.
        assert_eq!(after_steal(&[due, due]), 9_900 * MS);
        steal(&mut run, 0, 4 * S + S / 10 - S / 100, 40);
        assert_eq!(figures(&run).clean_ns, 9_900 * MS);
    }
}
