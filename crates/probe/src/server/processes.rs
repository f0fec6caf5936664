//! The server as processes of this machine: those that were found, their descendants, what these
//! start while they are watched, and what takes their place when they end.

use std::collections::{BTreeMap, BTreeSet};

use brunt_record::{ServerEvidence, ServerPoint, ServerScope};

use super::idle::IdleUse;
use super::origin::Origin;
use super::proc_files::{self, TickedCpu};
use super::process::{Watched, best_cpu_ns};
use super::threads::{self, THREADS_MAX, ThreadSums, ThreadTimes, usable_cpus};
use crate::cgroup::{CpuQuota, SeenQuota, throttling};
use crate::series::Readings;

/// Processes that are watched at a time, and that are named in the evidence.
const PROCESSES_MAX: usize = 1_024;
/// Descriptors that are counted one by one for every sample; with more, only at the edges.
const COUNTED_PER_SAMPLE_MAX: u64 = 1_000;

/// Watches processes.
#[derive(Debug)]
pub(super) struct ProcessWatch {
    origin: Origin,
    /// Processes that were found, without their descendants.
    found: BTreeSet<u32>,
    /// How many processes were found at first.
    found_at_first: usize,
    /// A process that was found has ended, and fewer have been found since than at first.
    is_incomplete: bool,
    /// Processes that live, parents before their descendants.
    processes: Vec<Watched>,
    /// Ids of all processes that were watched.
    pids: Vec<u32>,
    /// CPU over the window of the processes that have ended.
    ended_cpu: TickedCpu,
    /// CPU over the window of the processes that have ended, nanoseconds; exact where their threads
    /// were read.
    ended_ns: u64,
    /// What the threads of the processes that have ended did in the window, as last read.
    ended_threads: Vec<ThreadTimes>,
    /// Threads of all processes when one of them was last seen alive.
    threads_last_seen: u32,
    /// The most CPU that all processes were seen to have used. The kernel adds what a child used to
    /// its parent only after the child has ended, and no sum may fall meanwhile.
    cpu_max: TickedCpu,
    /// Processes that brunt descends from. Other processes that these have started are not the
    /// server's.
    own_ancestors: BTreeSet<u32>,
    name: String,
    /// All processes of the machine when it was last looked for new ones.
    listed: BTreeSet<u32>,
    idle: IdleUse,
    /// When the window began.
    began_ns: Option<u64>,
    /// When the window began, in the ticks in which the kernel gives the start of a process; 0
    /// where it is unknown.
    began_ticks: u64,
    points: Readings<ServerPoint>,
    cpus: BTreeSet<u32>,
    quota: SeenQuota,
    resident_bytes_max: Option<u64>,
    descriptors_max: Option<u64>,
    /// When the window began, there were too many threads to read them one by one.
    began_with_too_many_threads: bool,
    /// Descriptors have to be counted, and are too many for every sample.
    counts_at_edges_only: bool,
}

/// Whether a sample is at an edge of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Edge,
    Within,
}

impl ProcessWatch {
    /// Watches these processes and their descendants, but not brunt itself; where one of them ends,
    /// others are looked for as `origin` says. `None` when none of them is there.
    pub(super) fn new(pids: &[u32], origin: Origin) -> Option<Self> {
        let own_ancestors = proc_files::own_ancestors();
        let processes: Vec<_> = pids
            .iter()
            .filter_map(|&pid| Watched::new(pid, !own_ancestors.contains(&pid)))
            .take(PROCESSES_MAX)
            .collect();
        let first_pid = processes.first()?.pid;
        let name = proc_files::name(first_pid)?;
        let found: BTreeSet<_> = processes.iter().map(|process| process.pid).collect();
        let mut watch = Self {
            origin,
            found_at_first: found.len(),
            found,
            is_incomplete: false,
            pids: processes.iter().map(|process| process.pid).collect(),
            processes,
            ended_cpu: TickedCpu::default(),
            ended_ns: 0,
            ended_threads: Vec::new(),
            threads_last_seen: 0,
            cpu_max: TickedCpu::default(),
            own_ancestors,
            name,
            listed: BTreeSet::new(),
            idle: IdleUse::default(),
            began_ns: None,
            began_ticks: 0,
            points: Readings::default(),
            cpus: BTreeSet::new(),
            quota: CpuQuota::of(Some(first_pid)),
            resident_bytes_max: None,
            descriptors_max: None,
            began_with_too_many_threads: false,
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

    pub(super) fn discard_idle(&mut self) {
        self.idle.discard();
    }

    /// CPUs used between the two readings; absent without both.
    pub(super) fn idle_cpus_used(&self) -> Option<f64> {
        self.idle.cpus_used()
    }

    pub(super) fn begin(&mut self, now_ns: u64) {
        self.discover();
        self.update();
        self.find_again();
        self.began_ns = Some(now_ns);
        self.began_ticks = proc_files::uptime_ticks();
        self.ended_cpu = TickedCpu::default();
        self.ended_ns = 0;
        self.ended_threads.clear();
        let reads_threads = self.reads_threads();
        self.began_with_too_many_threads = !reads_threads;
        for process in &mut self.processes {
            process.begin();
            process.first_threads = None;
            if reads_threads {
                process.first_threads = process.read_threads();
            }
            process.last_threads.clone_from(&process.first_threads);
        }
        if let Ok(Some(quota)) = &mut self.quota {
            quota.mark();
        }
        self.add_affinities();
        let point = self.point(now_ns, Place::Edge);
        self.points.add(point);
    }

    /// Reads the known processes again, and looks for others where one of them has ended: what a
    /// process did until it ended is known as of the last reading.
    pub(super) fn refresh(&mut self) {
        self.update();
        if self.reads_threads() {
            self.processes.iter_mut().for_each(Watched::update_threads);
        }
        self.find_again();
    }

    pub(super) fn sample(&mut self, now_ns: u64) {
        self.discover();
        self.refresh();
        let point = self.point(now_ns, Place::Within);
        self.points.add(point);
    }

    /// What could not be read is added to `missing`.
    pub(super) fn end(
        mut self,
        now_ns: u64,
        missing: &mut BTreeMap<String, String>,
    ) -> ServerEvidence {
        self.discover();
        self.find_again();
        self.add_affinities();
        let interval_ns = self
            .began_ns
            .map_or(0, |began_ns| now_ns.saturating_sub(began_ns));
        let mut tables = BTreeMap::new();
        if self.reads_threads() && !self.began_with_too_many_threads {
            for process in &self.processes {
                tables.extend(process.read_threads().map(|table| (process.pid, table)));
            }
        } else {
            missing.insert(
                "server.threads".to_owned(),
                format!("it has more than {THREADS_MAX} threads, which are not read one by one"),
            );
        }
        if let Err(unseen) = &self.quota {
            missing.insert(
                "server.cpus".to_owned(),
                format!("whether the server is under a CPU quota is unknown: {unseen}"),
            );
        }
        self.update();
        let mut exact_ns = self.ended_ns;
        let mut sums = Some(ThreadSums::default());
        if let Some(sums) = &mut sums {
            for &times in &self.ended_threads {
                sums.add_thread(times, interval_ns);
            }
        }
        for process in &self.processes {
            let tables = process.first_threads.as_ref().zip(tables.get(&process.pid));
            let run_ns = tables.map(|(first, last)| {
                let mut own = ThreadSums::default();
                own.add(first, last, interval_ns);
                if let Some(sums) = &mut sums {
                    sums.add(first, last, interval_ns);
                }
                own.run_ns
            });
            if run_ns.is_none() {
                sums = None;
            }
            exact_ns = exact_ns
                .saturating_add(best_cpu_ns(run_ns, process.own_cpu().total_ns()))
                .saturating_add(process.unwatched_children().total_ns());
        }
        let last = self.point(now_ns, Place::Edge);
        let count = self.threads_last_seen;
        let cpu = self.cpu_max.scaled_to(exact_ns);
        ServerEvidence {
            scope: ServerScope::Processes {
                pids: self.pids,
                found_by: self.origin.words(),
            },
            name: self.name,
            interval_ns,
            cpu_user_ns: cpu.user_ns,
            cpu_system_ns: cpu.system_ns,
            cpus: usable_cpus(&self.cpus, &self.quota),
            cpu_list: self.cpus.into_iter().collect(),
            run_queue_wait_ns: sums.map(|sums| sums.wait_ns),
            throttling: throttling(&self.quota),
            threads: sums.map(|sums| sums.threads(count)),
            idle_cpus_used: self.idle.cpus_used(),
            resident_bytes_max: self.resident_bytes_max,
            descriptors_max: self.descriptors_max,
            series: self.points.finish(last),
        }
    }

    /// CPU of all threads so far; absent where they cannot be read, or are too many.
    fn run_ns(&self) -> Option<u64> {
        if !self.reads_threads() {
            return None;
        }
        self.processes.iter().try_fold(0_u64, |sum, process| {
            Some(sum.saturating_add(process.read_threads()?.run_ns()))
        })
    }

    /// Whether the threads are few enough to be read one by one.
    fn reads_threads(&self) -> bool {
        are_few(self.processes.iter().map(|process| process.last.threads))
    }

    /// Reads all again, parents first, and leaves out those that have ended.
    fn update(&mut self) {
        self.processes.iter_mut().for_each(Watched::update);
        self.retire();
    }

    /// Leaves out the processes that have ended; what they used stays counted.
    fn retire(&mut self) {
        let all = std::mem::take(&mut self.processes);
        let (mut ended, live): (Vec<_>, _) = all.into_iter().partition(|process| process.has_ended);
        self.processes = live;
        // Children before their parents.
        while let Some(process) = ended.pop() {
            self.is_incomplete |= self.found.remove(&process.pid);
            self.ended_cpu = self.ended_cpu.plus(process.cpu());
            let threads = process.threads_since_first();
            let run_ns = threads
                .as_ref()
                .map(|threads| threads.iter().map(|times| times.run_ns).sum());
            self.ended_ns = self
                .ended_ns
                .saturating_add(best_cpu_ns(run_ns, process.own_cpu().total_ns()))
                .saturating_add(process.unwatched_children().total_ns());
            let room = THREADS_MAX.saturating_sub(self.ended_threads.len());
            self.ended_threads
                .extend(threads.into_iter().flatten().take(room));
            let parent = self
                .processes
                .iter_mut()
                .chain(&mut ended)
                .find(|parent| parent.pid == process.last.parent);
            if let Some(parent) = parent {
                parent.watched_children = parent.watched_children.plus(process.lifetime_cpu());
            }
        }
    }

    /// Looks for the processes that have taken the place of those that have ended: a server that
    /// was started again is another process, which nobody descends from.
    fn find_again(&mut self) {
        if !self.is_incomplete {
            return;
        }
        let found = self.origin.pids();
        let known = self.processes.len();
        found.iter().for_each(|&pid| self.add(pid));
        self.found = found.into_iter().collect();
        self.is_incomplete = self.found.len() < self.found_at_first;
        if self.processes.len() > known {
            // Any process may be a descendant of these.
            self.listed.clear();
            self.discover();
        }
    }

    /// Watches one process more, unless it is watched. What it did before the window began does
    /// not count.
    fn add(&mut self, pid: u32) {
        let is_known = self.processes.iter().any(|process| process.pid == pid);
        if is_known || self.processes.len() >= PROCESSES_MAX {
            return;
        }
        // A server that started brunt's shell started that as well.
        let counts_children = !self.own_ancestors.contains(&pid);
        let Some(mut process) = Watched::new(pid, counts_children) else {
            return;
        };
        if process.last.start_ticks < self.began_ticks {
            process.begin();
            process.first_threads = process.read_threads();
        }
        self.processes.push(process);
        if self.pids.len() < PROCESSES_MAX {
            self.pids.push(pid);
        }
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
        let known = self
            .processes
            .iter()
            .filter(|process| process.counts_children)
            .map(|process| process.pid)
            .collect();
        for pid in descendants(&fresh, known) {
            self.add(pid);
        }
    }

    /// The CPUs that each thread may use; of too many threads, that the first one of each process
    /// may.
    pub(super) fn affinities(&self) -> Vec<BTreeSet<u32>> {
        let reads_threads = self.reads_threads();
        let tids = self.processes.iter().flat_map(|process| {
            let others = reads_threads.then(|| threads::thread_ids(process.pid));
            std::iter::once(process.pid).chain(
                others
                    .into_iter()
                    .flatten()
                    .filter(|&tid| tid != process.pid),
            )
        });
        tids.map(|tid| {
            let mut cpus = BTreeSet::new();
            threads::add_affinity(tid, &mut cpus);
            cpus
        })
        .filter(|cpus| !cpus.is_empty())
        .take(THREADS_MAX)
        .collect()
    }

    fn add_affinities(&mut self) {
        let reads_threads = self.reads_threads();
        for process in &self.processes {
            // Too many threads are taken to be as free as the first one of their process.
            threads::add_affinity(process.pid, &mut self.cpus);
            if reads_threads {
                for tid in threads::thread_ids(process.pid) {
                    threads::add_affinity(tid, &mut self.cpus);
                }
            }
        }
    }

    /// The last readings in sum; notes the most of memory and descriptors.
    fn point(&mut self, now_ns: u64, place: Place) -> ServerPoint {
        let cpu = self
            .processes
            .iter()
            .fold(self.ended_cpu, |sum, process| sum.plus(process.cpu()))
            .max(self.cpu_max);
        self.cpu_max = cpu;
        let resident_bytes = self
            .processes
            .iter()
            .map(|process| process.last.resident_bytes)
            .fold(0, u64::saturating_add);
        let threads = self
            .processes
            .iter()
            .map(|process| process.last.threads)
            .fold(0, u32::saturating_add);
        if !self.processes.is_empty() {
            self.threads_last_seen = threads;
        }
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
        let sum = self.processes.iter().try_fold(0_u64, |sum, process| {
            let (count, was_counted) = proc_files::descriptors(process.pid)?;
            counted += if was_counted { count } else { 0 };
            Some(sum.saturating_add(count))
        });
        self.counts_at_edges_only |= counted > COUNTED_PER_SAMPLE_MAX;
        sum
    }
}

/// Whether processes with so many threads each can be read thread by thread.
fn are_few(mut threads: impl Iterator<Item = u32>) -> bool {
    threads
        .try_fold(THREADS_MAX, |left, count| left.checked_sub(count as usize))
        .is_some()
}

/// The processes of `fresh` (process, parent) that descend from `known`, parents first.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::threads::ThreadTable;

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

    /// A watch of this very process, which `find` would not give.
    fn own_watch() -> ProcessWatch {
        let pids = vec![std::process::id()];
        ProcessWatch::new(&pids.clone(), Origin::Pids(pids)).unwrap()
    }

    #[test]
    fn the_evidence_holds_what_was_read() {
        let mut watch = own_watch();
        watch.begin_idle(MS);
        watch.end_idle(2 * MS);
        watch.begin(1_000 * MS);
        watch.sample(2_000 * MS);
        let evidence = watch.end(2_500 * MS, &mut BTreeMap::new());
        assert_eq!(evidence.interval_ns, 1_500 * MS);
        let at: Vec<_> = evidence.series.iter().map(|point| point.at_ns).collect();
        assert_eq!(at, [0, 1_000 * MS, 1_500 * MS]);
        assert!(
            evidence
                .cpus
                .is_none_or(|cpus| cpus <= evidence.cpu_list.len() as f64)
        );
        assert!(evidence.resident_bytes_max > Some(0) && evidence.descriptors_max > Some(0));
        let pids = match &evidence.scope {
            ServerScope::Processes { pids, found_by } => {
                assert_eq!(found_by, &format!("--watch {}", std::process::id()));
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
        let evidence = own_watch().end(5, &mut BTreeMap::new());
        assert_eq!((evidence.interval_ns, evidence.series.len()), (0, 1));
        assert_eq!(evidence.cpus_used(), None);
    }

    /// CPU in user space, milliseconds.
    fn cpu(ms: u64) -> TickedCpu {
        TickedCpu {
            user_ns: ms * MS,
            system_ns: 0,
        }
    }

    /// A process as of its last reading: its parent, its own CPU and its waited-for children's,
    /// milliseconds, of which the window's begin saw the second each.
    fn process(pid: u32, parent: u32, own: [u64; 2], waited: [u64; 2]) -> Watched {
        let mut process = Watched::new(std::process::id(), true).unwrap();
        process.pid = pid;
        process.last.parent = parent;
        process.last.cpu = cpu(own[0]);
        process.first_cpu = cpu(own[1]);
        process.last.waited_cpu = cpu(waited[0]);
        process.first_waited = cpu(waited[1]);
        process
    }

    /// CPU over the window of these, of which some have ended, in milliseconds.
    fn counted(processes: Vec<Watched>, ended: &[u32]) -> (u64, Vec<u32>) {
        let mut watch = own_watch();
        watch.processes = processes;
        for process in &mut watch.processes {
            process.has_ended = ended.contains(&process.pid);
        }
        watch.retire();
        let point = watch.point(0, Place::Within);
        let live = watch.processes.iter().map(|process| process.pid).collect();
        (point.cpu_user_ns / MS, live)
    }

    #[test]
    fn children_that_come_and_go_are_counted_once() {
        for (processes, ended, ms, live) in [
            // Nobody saw them.
            (
                vec![process(1, 0, [150, 100], [730, 700])],
                &[][..],
                80,
                vec![1],
            ),
            // One was watched: 20 ms before the window, 40 ms in it, 10 ms after it was last seen.
            (
                vec![
                    process(1, 0, [100, 100], [70, 0]),
                    process(2, 1, [60, 20], [0, 0]),
                ],
                &[2],
                50,
                vec![1],
            ),
            // It was not waited for yet, or never will be.
            (
                vec![
                    process(1, 0, [100, 100], [0, 0]),
                    process(2, 1, [60, 20], [0, 0]),
                ],
                &[2],
                40,
                vec![1],
            ),
            // Its parent lives elsewhere.
            (
                vec![
                    process(1, 0, [100, 100], [0, 0]),
                    process(2, 9, [60, 20], [0, 0]),
                ],
                &[2],
                40,
                vec![1],
            ),
            // A child and then its child ended; the first parent got all of it.
            (
                vec![
                    process(1, 0, [0, 0], [100, 0]),
                    process(2, 1, [60, 0], [0, 0]),
                    process(3, 2, [40, 0], [0, 0]),
                ],
                &[2, 3],
                100,
                vec![1],
            ),
        ] {
            assert_eq!(counted(processes, ended), (ms, live));
        }
    }

    #[test]
    fn children_of_a_process_that_brunt_descends_from_do_not_count() {
        let mut shell = process(1, 0, [150, 100], [730, 700]);
        shell.counts_children = false;
        assert_eq!(counted(vec![shell], &[]), (50, vec![1]));

        let parent = std::os::unix::process::parent_id();
        if let Some(watch) = ProcessWatch::new(&[parent], Origin::Pids(vec![parent])) {
            assert_eq!(watch.pids, [parent]);
        }
    }

    #[test]
    fn no_sum_falls_while_a_child_goes() {
        let mut watch = own_watch();
        // The child ended after its parent was read.
        watch.processes = vec![
            process(1, 0, [0, 0], [30, 0]),
            process(2, 1, [60, 0], [0, 0]),
        ];
        assert_eq!(watch.point(0, Place::Within).cpu_user_ns, 90 * MS);
        watch.processes[1].has_ended = true;
        watch.retire();
        assert_eq!(watch.point(0, Place::Within).cpu_user_ns, 90 * MS);
        watch.processes[0].last.waited_cpu = cpu(95);
        assert_eq!(watch.point(0, Place::Within).cpu_user_ns, 95 * MS);
    }

    #[test]
    fn threads_are_read_one_by_one_up_to_a_bound() {
        for (threads, expected) in [
            (vec![], true),
            (vec![10_000], true),
            (vec![9_999, 1], true),
            (vec![9_999, 2], false),
            (vec![u32::MAX, u32::MAX], false),
        ] {
            assert_eq!(are_few(threads.iter().copied()), expected, "{threads:?}");
        }
        let mut watch = own_watch();
        watch.begin(0);
        watch.processes[0].last.threads = THREADS_MAX as u32 + 1;
        assert_eq!(watch.run_ns(), None);
        let mut missing = BTreeMap::new();
        let evidence = watch.end(5, &mut missing);
        assert_eq!((evidence.threads, evidence.run_queue_wait_ns), (None, None));
        assert!(missing["server.threads"].contains("10000"), "{missing:?}");
    }

    /// A process that is busy with nothing, under a name of its own.
    struct Busy(std::process::Child);

    impl Busy {
        fn start(name: &str) -> Self {
            use std::os::unix::process::CommandExt;
            let mut command = std::process::Command::new("sh");
            command.arg0(name).args(["-c", "while :; do :; done"]);
            let busy = Self(command.spawn().expect("a shell"));
            // It has its name, and has run, from a moment after its start on.
            let pid = busy.0.id();
            while !proc_files::pids_named(name).contains(&pid)
                || ThreadTable::read(pid, |_| true).is_none()
            {}
            busy
        }

        fn kill(self) {
            drop(self);
        }
    }

    impl Drop for Busy {
        fn drop(&mut self) {
            self.0.kill().expect("it is ours");
            self.0.wait().expect("it is ours");
        }
    }

    /// Reads again until the process `pid` was seen to have used some CPU.
    fn refresh_until_used(watch: &mut ProcessWatch, pid: u32) {
        let has_worked = |process: &Watched| {
            let threads = process.threads_since_first().unwrap_or_default();
            let run_ns: u64 = threads.iter().map(|times| times.run_ns).sum();
            process.pid == pid && process.own_cpu().total_ns() > 0 && run_ns > 0
        };
        while !watch.processes.iter().any(has_worked) {
            watch.refresh();
        }
    }

    #[test]
    fn what_a_killed_process_used_stays_counted() {
        let busy = Busy::start("busy");
        let pids = vec![busy.0.id()];
        let mut watch = ProcessWatch::new(&pids, Origin::Pids(pids.clone())).unwrap();
        watch.begin(1_000 * MS);
        refresh_until_used(&mut watch, pids[0]);
        busy.kill();
        watch.sample(2_000 * MS);
        assert!(watch.processes.is_empty());
        let evidence = watch.end(3_000 * MS, &mut BTreeMap::new());
        assert!(evidence.cpu_ns() > 0, "{evidence:?}");
        let threads = evidence.threads.expect("they were read");
        assert!(
            threads.count == 1 && threads.busiest_cpu_ns > 0,
            "{threads:?}"
        );
        let alive: Vec<_> = evidence.series.iter().map(|point| point.threads).collect();
        assert_eq!(alive, [Some(1), Some(0), Some(0)]);
    }

    #[test]
    fn a_process_that_takes_the_place_of_another_is_counted() {
        let name = format!("busy-{}", std::process::id());
        let (first, older) = (Busy::start(&name), Busy::start("busy"));
        let pids = proc_files::pids_named(&name);
        assert_eq!(pids, [first.0.id()]);
        let origin = Origin::Named(name.clone());
        let mut watch = ProcessWatch::new(&pids, origin).unwrap();
        watch.begin(1_000 * MS);
        refresh_until_used(&mut watch, first.0.id());
        first.kill();
        // Nothing has taken its place yet.
        watch.refresh();
        assert!(watch.processes.is_empty() && watch.is_incomplete);
        let second = Busy::start(&name);
        let pid = second.0.id();
        refresh_until_used(&mut watch, pid);
        assert!(!watch.is_incomplete);
        let first_ns = watch.ended_ns;
        assert!(first_ns > 0);
        // One that was there before the window began counts from when it is found.
        watch.began_ticks = u64::MAX;
        watch.add(older.0.id());
        let added = watch.processes.last().expect("it was added");
        assert_eq!(added.own_cpu(), TickedCpu::default());
        assert!(
            added
                .first_threads
                .as_ref()
                .is_none_or(|table| table.run_ns() > 0)
        );
        older.kill();
        watch.update();
        let evidence = watch.end(3_000 * MS, &mut BTreeMap::new());
        second.kill();
        assert!(evidence.cpu_ns() > first_ns, "{evidence:?}");
        assert_eq!(evidence.threads.map(|threads| threads.count), Some(1));
        let ServerScope::Processes { pids: watched, .. } = evidence.scope else {
            unreachable!("{:?}", evidence.scope);
        };
        assert!(
            watched.contains(&pids[0]) && watched.contains(&pid),
            "{watched:?}"
        );
    }
}
