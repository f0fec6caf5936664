//! The server as processes of this machine: those that were found, their descendants, and what
//! these start while they are watched.

use std::collections::BTreeSet;

use brunt_measure::{ServerEvidence, ServerPoint, ServerScope};

use super::idle::IdleUse;
use super::proc_files::{self, ProcessReading, TickedCpu};
use super::threads::{self, ThreadSums, ThreadTable, usable_cpus};
use crate::evidence::cgroup::CpuQuota;
use crate::evidence::series::Readings;

/// Processes that are watched.
const PROCESSES_MAX: usize = 1_024;
/// Descriptors that are counted one by one for every sample; with more, only at the edges.
const COUNTED_PER_SAMPLE_MAX: u64 = 1_000;

/// Watches processes.
#[derive(Debug)]
pub(super) struct ProcessWatch {
    processes: Vec<Watched>,
    name: String,
    found_by: String,
    /// All processes of the machine when it was last looked for new ones.
    listed: BTreeSet<u32>,
    idle: IdleUse,
    /// When the window began.
    began_ns: Option<u64>,
    points: Readings<ServerPoint>,
    cpus: BTreeSet<u32>,
    quota: Option<CpuQuota>,
    resident_bytes_max: Option<u64>,
    descriptors_max: Option<u64>,
    /// Descriptors have to be counted, and are too many for every sample.
    counts_at_edges_only: bool,
}

/// One process.
#[derive(Debug)]
struct Watched {
    pid: u32,
    /// Its last reading; of the window's begin and after.
    last: ProcessReading,
    /// Its CPU when the window began; 0 when it began later.
    first_cpu: TickedCpu,
    /// Its threads when the window began, none when it began later. Absent: unknown.
    first_threads: Option<ThreadTable>,
    has_ended: bool,
}

/// Whether a sample is at an edge of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Edge,
    Within,
}

impl ProcessWatch {
    /// Watches these processes and their descendants, but not brunt itself. `None` when none of
    /// them is there.
    pub(super) fn new(pids: &[u32], found_by: String) -> Option<Self> {
        let mut processes: Vec<_> = pids.iter().filter_map(|&pid| Watched::new(pid)).collect();
        processes.truncate(PROCESSES_MAX);
        let first_pid = processes.first()?.pid;
        let name = proc_files::name(first_pid)?;
        let mut watch = Self {
            processes,
            name,
            found_by,
            listed: BTreeSet::new(),
            idle: IdleUse::default(),
            began_ns: None,
            points: Readings::default(),
            cpus: BTreeSet::new(),
            quota: CpuQuota::of(Some(first_pid)),
            resident_bytes_max: None,
            descriptors_max: None,
            counts_at_edges_only: false,
        };
        watch.discover();
        Some(watch)
    }

    pub(super) fn begin_idle(&mut self, now_ns: u64) {
        self.idle.begin(now_ns, self.run_ns());
    }

    pub(super) fn end_idle(&mut self, now_ns: u64) {
        self.idle.end(now_ns, self.run_ns());
    }

    pub(super) fn begin(&mut self, now_ns: u64) {
        self.discover();
        self.began_ns = Some(now_ns);
        for process in &mut self.processes {
            process.update();
            process.first_cpu = process.last.cpu;
            process.first_threads = process.read_threads();
        }
        if let Some(quota) = &mut self.quota {
            quota.mark();
        }
        self.add_affinities();
        let point = self.point(now_ns, Place::Edge);
        self.points.add(point);
    }

    pub(super) fn sample(&mut self, now_ns: u64) {
        self.discover();
        self.processes.iter_mut().for_each(Watched::update);
        let point = self.point(now_ns, Place::Within);
        self.points.add(point);
    }

    pub(super) fn end(mut self, now_ns: u64) -> ServerEvidence {
        self.discover();
        self.add_affinities();
        let interval_ns = self
            .began_ns
            .map_or(0, |began_ns| now_ns.saturating_sub(began_ns));
        let mut ticked = TickedCpu::default();
        let (mut cpu_ns, mut count) = (0_u64, 0_u32);
        let mut sums = Some(ThreadSums::default());
        for process in &mut self.processes {
            let threads = process.read_threads();
            process.update();
            let process_ticked = process.cpu();
            ticked = ticked.plus(process_ticked);
            if process.has_ended {
                cpu_ns = cpu_ns.saturating_add(process_ticked.total_ns());
                continue;
            }
            count = count.saturating_add(process.last.threads);
            let mut own = ThreadSums::default();
            let exact_ns = process
                .first_threads
                .as_ref()
                .zip(threads)
                .map(|(first, last)| {
                    own.add(first, &last, interval_ns);
                    if let Some(sums) = &mut sums {
                        sums.add(first, &last, interval_ns);
                    }
                    own.run_ns
                });
            if exact_ns.is_none() {
                sums = None;
            }
            cpu_ns = cpu_ns.saturating_add(best_cpu_ns(exact_ns, process_ticked.total_ns()));
        }
        let cpu = ticked.scaled_to(cpu_ns);
        let last = self.point(now_ns, Place::Edge);
        ServerEvidence {
            scope: ServerScope::Processes {
                pids: self.processes.iter().map(|process| process.pid).collect(),
                found_by: self.found_by,
            },
            name: self.name,
            interval_ns,
            cpu_user_ns: cpu.user_ns,
            cpu_system_ns: cpu.system_ns,
            cpus: usable_cpus(&self.cpus, self.quota.as_ref()),
            cpu_list: self.cpus.into_iter().collect(),
            run_queue_wait_ns: sums.map(|sums| sums.wait_ns),
            throttling: self.quota.as_ref().map(CpuQuota::read),
            threads: sums.map(|sums| sums.threads(count)),
            idle_cpus_used: self.idle.cpus_used(),
            resident_bytes_max: self.resident_bytes_max,
            descriptors_max: self.descriptors_max,
            series: self.points.finish(last),
        }
    }

    /// CPU of all threads so far.
    fn run_ns(&self) -> Option<u64> {
        self.processes.iter().try_fold(0_u64, |sum, process| {
            Some(sum.saturating_add(process.read_threads()?.run_ns()))
        })
    }

    /// Looks for processes that the watched ones have started.
    fn discover(&mut self) {
        let listed: BTreeSet<_> = proc_files::pids().collect();
        let own = std::process::id();
        let fresh: Vec<_> = listed
            .difference(&self.listed)
            .filter(|&&pid| pid != own)
            .filter_map(|&pid| Some((pid, proc_files::parent(pid)?)))
            .collect();
        self.listed = listed;
        let known = self.live().map(|process| process.pid).collect();
        for pid in descendants(&fresh, known) {
            if self.processes.len() >= PROCESSES_MAX {
                return;
            }
            self.processes.extend(Watched::new(pid));
        }
    }

    fn live(&self) -> impl Iterator<Item = &Watched> {
        self.processes.iter().filter(|process| !process.has_ended)
    }

    fn add_affinities(&mut self) {
        let mut cpus = std::mem::take(&mut self.cpus);
        for tid in self
            .live()
            .flat_map(|process| threads::thread_ids(process.pid))
        {
            threads::add_affinity(tid, &mut cpus);
        }
        self.cpus = cpus;
    }

    /// The last readings in sum; notes the most of memory and descriptors.
    fn point(&mut self, now_ns: u64, place: Place) -> ServerPoint {
        let cpu = self
            .processes
            .iter()
            .fold(TickedCpu::default(), |sum, process| sum.plus(process.cpu()));
        let resident_bytes = self
            .live()
            .map(|process| process.last.resident_bytes)
            .fold(0, u64::saturating_add);
        let threads = self
            .live()
            .map(|process| process.last.threads)
            .fold(0, u32::saturating_add);
        let descriptors = self.descriptors(place);
        self.resident_bytes_max = self.resident_bytes_max.max(Some(resident_bytes));
        self.descriptors_max = self.descriptors_max.max(descriptors);
        ServerPoint {
            at_ns: now_ns.saturating_sub(self.began_ns.unwrap_or(now_ns)),
            cpu_user_ns: cpu.user_ns,
            cpu_system_ns: cpu.system_ns,
            threads: Some(threads),
            resident_bytes: Some(resident_bytes),
            descriptors,
        }
    }

    fn descriptors(&mut self, place: Place) -> Option<u64> {
        if self.counts_at_edges_only && place == Place::Within {
            return None;
        }
        let mut counted = 0;
        let sum = self.live().try_fold(0_u64, |sum, process| {
            let (count, was_counted) = proc_files::descriptors(process.pid)?;
            counted += if was_counted { count } else { 0 };
            Some(sum.saturating_add(count))
        });
        self.counts_at_edges_only |= counted > COUNTED_PER_SAMPLE_MAX;
        sum
    }
}

impl Watched {
    /// A process whose whole life counts, until its first readings are taken.
    fn new(pid: u32) -> Option<Self> {
        Some(Self {
            pid,
            last: ProcessReading::of(pid)?,
            first_cpu: TickedCpu::default(),
            first_threads: Some(ThreadTable::default()),
            has_ended: false,
        })
    }

    /// Reads it again, unless it has ended: then the last reading stays.
    fn update(&mut self) {
        if self.has_ended {
            return;
        }
        match ProcessReading::of(self.pid) {
            Some(reading) if reading.start_ticks == self.last.start_ticks => self.last = reading,
            _ => self.has_ended = true,
        }
    }

    fn read_threads(&self) -> Option<ThreadTable> {
        if self.has_ended {
            return Some(ThreadTable::default());
        }
        ThreadTable::read(self.pid, |_| true)
    }

    /// Its CPU since the window began.
    fn cpu(&self) -> TickedCpu {
        self.last.cpu.since(self.first_cpu)
    }
}

/// Those of `fresh` (process, parent) that descend from `known`, parents first.
fn descendants(fresh: &[(u32, u32)], mut known: BTreeSet<u32>) -> Vec<u32> {
    let mut found = Vec::new();
    loop {
        let before = found.len();
        for &(pid, parent) in fresh {
            if known.contains(&parent) && known.insert(pid) {
                found.push(pid);
            }
        }
        if found.len() == before {
            return found;
        }
    }
}

/// CPU of a process: of its threads, which is exact; or by its own ticks where they show clearly
/// more, since threads have ended and taken their times with them.
fn best_cpu_ns(exact_ns: Option<u64>, ticked_ns: u64) -> u64 {
    // User and system time are cut to whole ticks, each.
    let uncertain_ns = 2 * proc_files::tick_ns();
    match exact_ns {
        Some(exact_ns) if exact_ns.saturating_add(uncertain_ns) >= ticked_ns => exact_ns,
        _ => ticked_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn descendants_are_found_in_any_order() {
        for (fresh, known, found) in [
            (vec![(5, 4), (4, 1), (6, 9)], vec![1], vec![4, 5]),
            (vec![(2, 1), (3, 1)], vec![1], vec![2, 3]),
            (vec![(1, 1), (2, 2)], vec![1], vec![]),
            (vec![(2, 3), (3, 2)], vec![1], vec![]),
            (vec![(2, 1)], vec![], vec![]),
        ] {
            let result = descendants(&fresh, known.iter().copied().collect());
            assert_eq!(result, found, "{fresh:?} of {known:?}");
        }
    }

    #[test]
    fn ticks_count_where_threads_have_ended() {
        for (exact_ns, ticked_ns, cpu_ns) in [
            (Some(1_003 * MS), 1_000 * MS, 1_003 * MS),
            (Some(995 * MS), 1_000 * MS, 995 * MS),
            (Some(300 * MS), 1_000 * MS, 1_000 * MS),
            (Some(0), 0, 0),
            (None, 70 * MS, 70 * MS),
        ] {
            assert_eq!(
                best_cpu_ns(exact_ns, ticked_ns),
                cpu_ns,
                "{exact_ns:?} {ticked_ns}"
            );
        }
    }

    /// A watch of this very process, which `find` would not give.
    fn own_watch() -> ProcessWatch {
        ProcessWatch::new(&[std::process::id()], "test".to_owned()).unwrap()
    }

    #[test]
    fn the_evidence_holds_what_was_read() {
        let mut watch = own_watch();
        watch.begin_idle(MS);
        watch.end_idle(2 * MS);
        watch.begin(1_000 * MS);
        watch.sample(2_000 * MS);
        let evidence = watch.end(2_500 * MS);
        assert_eq!(evidence.interval_ns, 1_500 * MS);
        let at: Vec<_> = evidence.series.iter().map(|point| point.at_ns).collect();
        assert_eq!(at, [0, 1_000 * MS, 1_500 * MS]);
        assert!(
            evidence
                .cpus
                .is_some_and(|cpus| cpus <= evidence.cpu_list.len() as f64)
        );
        assert!(evidence.resident_bytes_max > Some(0) && evidence.descriptors_max > Some(0));
        let pids = match &evidence.scope {
            ServerScope::Processes { pids, found_by } => {
                assert_eq!(found_by, "test");
                pids
            }
            other => unreachable!("{other:?}"),
        };
        assert_eq!(pids[0], std::process::id());
        if let Some(threads) = evidence.threads {
            assert!(threads.count >= 1 && threads.busiest_cpu_ns <= evidence.cpu_ns());
        }
    }

    #[test]
    fn a_window_that_never_began_has_no_length() {
        let evidence = own_watch().end(5);
        assert_eq!((evidence.interval_ns, evidence.series.len()), (0, 1));
        assert_eq!(evidence.cpus_used(), None);
    }

    #[test]
    fn what_has_ended_keeps_its_last_reading() {
        let mut process = Watched::new(std::process::id()).unwrap();
        // As if its id had been given to another.
        process.last.start_ticks ^= 1;
        process.last.cpu = TickedCpu {
            user_ns: 7,
            system_ns: 0,
        };
        process.update();
        assert!(process.has_ended);
        assert_eq!(process.cpu().total_ns(), 7);
        process.update();
        assert_eq!(process.cpu().total_ns(), 7);
    }
}
