//! The threads of a process: how long each ran and waited for a CPU, to the nanosecond (a running
//! one to its last tick), and the CPUs that they may use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use brunt_record::ServerThreads;
use rustix::thread::{CpuSet, Pid, sched_getaffinity};

use super::proc_files;
use crate::cgroup::{CpuQuota, SeenQuota};

/// Threads that are looked at, of all processes together.
pub(super) const THREADS_MAX: usize = 10_000;

/// How a thread has spent its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadTimes {
    /// Time on a CPU, nanoseconds.
    pub(super) run_ns: u64,
    /// Ready to run, without a CPU.
    pub(super) wait_ns: u64,
}

impl ThreadTimes {
    /// The first two numbers of `schedstat`.
    fn parse(schedstat: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(schedstat).ok()?;
        let mut numbers = text.split_ascii_whitespace().map(str::parse);
        Some(Self {
            run_ns: numbers.next()?.ok()?,
            wait_ns: numbers.next()?.ok()?,
        })
    }
}

/// The threads of one process at one instant, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadTable(pub(super) BTreeMap<u32, ThreadTimes>);

impl ThreadTable {
    /// Reads those of process `pid` whose ids `is_wanted`. `None` where the kernel keeps no such
    /// times, or the process has ended.
    pub(super) fn read(pid: u32, is_wanted: impl Fn(u32) -> bool) -> Option<Self> {
        let mut buffer = [0; 80];
        let table: BTreeMap<_, _> = thread_ids(pid)
            .filter(|&tid| is_wanted(tid))
            .filter_map(|tid| {
                let file = File::open(format!("/proc/{pid}/task/{tid}/schedstat"));
                // The file is given whole by one read.
                let length = file.and_then(|mut file| file.read(&mut buffer)).ok()?;
                Some((tid, ThreadTimes::parse(&buffer[..length])?))
            })
            .collect();
        // Without CONFIG_SCHED_INFO there are zeroes only.
        table
            .values()
            .any(|times| times.run_ns > 0)
            .then_some(Self(table))
    }

    /// What each thread did since `first`. Those not in `first` began later.
    pub(super) fn since(&self, first: &Self) -> impl Iterator<Item = ThreadTimes> {
        self.0.iter().map(|(tid, end)| {
            let start = first.0.get(tid).copied().unwrap_or_default();
            ThreadTimes {
                run_ns: end.run_ns.saturating_sub(start.run_ns),
                wait_ns: end.wait_ns.saturating_sub(start.wait_ns),
            }
        })
    }

    /// Time on a CPU, of all.
    pub(super) fn run_ns(&self) -> u64 {
        self.0
            .values()
            .fold(0, |sum, times| sum.saturating_add(times.run_ns))
    }
}

/// The threads of a process, as many as are looked at.
pub(super) fn thread_ids(pid: u32) -> impl Iterator<Item = u32> {
    proc_files::numbered_entries(&PathBuf::from(format!("/proc/{pid}/task"))).take(THREADS_MAX)
}

/// Adds the CPUs that a thread may use to `cpus`.
pub(super) fn add_affinity(tid: u32, cpus: &mut BTreeSet<u32>) {
    let affinity = i32::try_from(tid)
        .ok()
        .and_then(Pid::from_raw)
        .and_then(|tid| sched_getaffinity(Some(tid)).ok());
    if let Some(set) = affinity {
        cpus.extend((0..CpuSet::MAX_CPU as u32).filter(|&cpu| set.is_set(cpu as usize)));
    }
}

/// How many CPUs threads may use that share these, and a quota. Absent where either is unknown.
pub(super) fn usable_cpus(affinities: &BTreeSet<u32>, quota: &SeenQuota) -> Option<f64> {
    let count = (!affinities.is_empty()).then_some(affinities.len() as f64)?;
    let allowed = quota.as_ref().ok()?.as_ref().and_then(CpuQuota::cpus);
    Some(allowed.map_or(count, |allowed| allowed.min(count)))
}

/// What threads did over an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadSums {
    pub(super) run_ns: u64,
    pub(super) wait_ns: u64,
    pub(super) active: u32,
    pub(super) saturated: u32,
    pub(super) busiest_cpu_ns: u64,
    pub(super) saturated_cpu_ns: u64,
}

impl ThreadSums {
    /// Adds the threads of `last`, from `first` on. Those not in `first` began in the interval.
    pub(super) fn add(&mut self, first: &ThreadTable, last: &ThreadTable, interval_ns: u64) {
        for times in last.since(first) {
            self.add_thread(times, interval_ns);
        }
    }

    /// Adds a thread that did this in the interval.
    pub(super) fn add_thread(&mut self, times: ThreadTimes, interval_ns: u64) {
        let ThreadTimes { run_ns, wait_ns } = times;
        self.run_ns = self.run_ns.saturating_add(run_ns);
        self.wait_ns = self.wait_ns.saturating_add(wait_ns);
        self.busiest_cpu_ns = self.busiest_cpu_ns.max(run_ns);
        self.active += u32::from(is_share(run_ns, 5, interval_ns));
        if is_share(run_ns.saturating_add(wait_ns), 90, interval_ns) {
            self.saturated += 1;
            self.saturated_cpu_ns = self.saturated_cpu_ns.saturating_add(run_ns);
        }
    }

    /// The times as they are stored, with the number of threads at the end.
    pub(super) fn threads(&self, count: u32) -> ServerThreads {
        ServerThreads {
            count,
            active: self.active,
            saturated: self.saturated,
            busiest_cpu_ns: self.busiest_cpu_ns,
            saturated_cpu_ns: self.saturated_cpu_ns,
        }
    }
}

/// Whether `part_ns` is at least `percent` of `whole_ns`, which is not 0.
fn is_share(part_ns: u64, percent: u32, whole_ns: u64) -> bool {
    whole_ns > 0 && u128::from(part_ns) * 100 >= u128::from(whole_ns) * u128::from(percent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::UnseenQuota;

    fn table(threads: &[(u32, u64, u64)]) -> ThreadTable {
        let times = |&(tid, run_ns, wait_ns)| (tid, ThreadTimes { run_ns, wait_ns });
        ThreadTable(threads.iter().map(times).collect())
    }

    #[test]
    fn schedstat_begins_with_run_and_wait() {
        for (text, times) in [
            ("1019041 11600 3\n", Some((1_019_041, 11_600))),
            ("0 0 0\n", Some((0, 0))),
            ("7", None),
            ("", None),
            ("a b c", None),
            ("99999999999999999999999 1 1", None),
        ] {
            let parsed = ThreadTimes::parse(text.as_bytes());
            assert_eq!(parsed.map(|t| (t.run_ns, t.wait_ns)), times, "{text:?}");
        }
    }

    #[test]
    fn threads_are_counted_by_what_they_did() {
        let first = table(&[(1, 500, 50), (2, 10, 0), (3, 10, 10), (4, 900, 0)]);
        // Thread 4 has ended, 5 is new.
        let last = table(&[(1, 1_400, 50), (2, 59, 0), (3, 60, 860), (5, 49, 2)]);
        let mut sums = ThreadSums::default();
        sums.add(&first, &last, 1_000);
        assert_eq!(
            sums,
            ThreadSums {
                run_ns: 900 + 49 + 50 + 49,
                wait_ns: 850 + 2,
                active: 2,
                saturated: 2,
                busiest_cpu_ns: 900,
                saturated_cpu_ns: 900 + 50,
            }
        );
        let mut none = ThreadSums::default();
        none.add(&first, &last, 0);
        assert_eq!((none.active, none.saturated), (0, 0));
    }

    #[test]
    fn threads_of_this_process_can_be_read() {
        let pid = std::process::id();
        assert!(thread_ids(pid).any(|tid| tid == pid));
        if let Some(table) = ThreadTable::read(pid, |_| true) {
            let later = ThreadTable::read(pid, |tid| tid == pid).unwrap();
            assert!(later.run_ns() >= table.0[&pid].run_ns);
        }
        let mut cpus = BTreeSet::new();
        add_affinity(pid, &mut cpus);
        assert!(!cpus.is_empty());
        assert_eq!(usable_cpus(&cpus, &Ok(None)), Some(cpus.len() as f64));
        assert_eq!(usable_cpus(&BTreeSet::new(), &Ok(None)), None);
        let unseen = UnseenQuota::NotMounted("/../x".to_owned());
        assert_eq!(usable_cpus(&cpus, &Err(unseen)), None);
        assert_eq!(ThreadTable::read(u32::MAX, |_| true), None);
    }
}
