//! The server as processes of this machine: those that were found, their descendants, what these
//! start while they are watched, and what takes their place when they end. Or as threads of this
//! process, by their names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use brunt_io::cpu::CpuUse;
use brunt_record::{ServerEvidence, ServerPoint, ServerThreads};
use rustix::thread::{CpuSet, Pid, sched_getaffinity};

use super::Origin;
use super::proc_files::{self, ProcessReading};
use crate::cgroup::{CpuQuota, SeenQuota, throttling};
use crate::series::Readings;

/// Processes that are watched at a time, and that are named in the evidence.
const PROCESSES_MAX: usize = 1_024;
/// Descriptors that are counted one by one for every sample; with more, only at the edges.
const COUNTED_PER_SAMPLE_MAX: u64 = 1_000;

/// How the names of the reference server's threads begin.
const NAME_START: &str = "serve-";

/// Watches the server.
///
/// The calls come in this order: `begin_idle` and `end_idle` (and `discard_idle`) before the load,
/// `begin` and `end` at the window's edges, `refresh` and `sample` between them. All may be left
/// out but the last one.
#[derive(Debug)]
pub struct ServerWatch {
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
    ended_cpu: CpuUse,
    /// CPU over the window of the processes that have ended, nanoseconds; exact where their threads
    /// were read.
    ended_ns: u64,
    /// What the threads of the processes that have ended did in the window, as last read.
    ended_threads: Vec<ThreadTimes>,
    /// Threads of all processes when one of them was last seen alive.
    threads_last_seen: u32,
    /// The most CPU that all processes were seen to have used. The kernel adds what a child used to
    /// its parent only after the child has ended, and no sum may fall meanwhile.
    cpu_max: CpuUse,
    /// Processes that brunt descends from. Other processes that these have started are not the
    /// server's.
    own_ancestors: BTreeSet<u32>,
    name: String,
    /// All processes of the machine when it was last looked for new ones.
    listed: BTreeSet<u32>,
    /// When the server was first read before the load, and the CPU that it had used until then.
    idle_first: Option<(u64, u64)>,
    idle_cpus_used: Option<f64>,
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
enum SamplePlace {
    Edge,
    Within,
}

impl ServerWatch {
    /// Watches these processes and their descendants, but not brunt itself; where one of them ends,
    /// others are looked for as `origin` says. `None` when none of them is there.
    pub(super) fn new(pids: &[u32], origin: Origin) -> Option<Self> {
        let own_ancestors = proc_files::own_ancestors();
        let processes = pids
            .iter()
            .filter_map(|&pid| Watched::new(pid, !own_ancestors.contains(&pid)))
            .take(PROCESSES_MAX)
            .collect();
        Self::of(processes, own_ancestors, origin)
    }

    /// Watches the threads of the reference server in this process; `None` when none is seen.
    pub(super) fn own_threads() -> Option<Self> {
        let pid = std::process::id();
        let is_of_server =
            |&tid: &u32| proc_files::name(tid).is_some_and(|name| name.starts_with(NAME_START));
        let threads: BTreeSet<_> = thread_ids(pid).filter(is_of_server).collect();
        if threads.is_empty() {
            return None;
        }
        let mut process = Watched::new(pid, false)?;
        process.only = Some(threads);
        process.last = process.read()?;
        Self::of(vec![process], BTreeSet::new(), Origin::OwnThreads)
    }

    fn of(processes: Vec<Watched>, own_ancestors: BTreeSet<u32>, origin: Origin) -> Option<Self> {
        let first_pid = processes.first()?.pid;
        let name = match origin {
            Origin::OwnThreads => "reference server".to_owned(),
            _ => proc_files::name(first_pid)?,
        };
        let found: BTreeSet<_> = processes.iter().map(|process| process.pid).collect();
        let mut watch = Self {
            origin,
            found_at_first: found.len(),
            found,
            is_incomplete: false,
            pids: processes.iter().map(|process| process.pid).collect(),
            processes,
            ended_cpu: CpuUse::default(),
            ended_ns: 0,
            ended_threads: Vec::new(),
            threads_last_seen: 0,
            cpu_max: CpuUse::default(),
            own_ancestors,
            name,
            listed: BTreeSet::new(),
            idle_first: None,
            idle_cpus_used: None,
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

    /// The connections are open, and there is no load: first reading of what the server uses then.
    pub(crate) fn begin_idle(&mut self, now_ns: u64) {
        self.idle_first = self.run_ns().map(|run_ns| (now_ns, run_ns));
    }

    /// There is still no load, some milliseconds later: second reading of it.
    pub(crate) fn end_idle(&mut self, now_ns: u64) {
        let readings = self.idle_first.zip(self.run_ns());
        self.idle_cpus_used =
            readings.and_then(|(first, run_ns)| cpus_used(first, (now_ns, run_ns)));
    }

    /// The load began before the second reading ended: what was read says nothing.
    pub(crate) fn discard_idle(&mut self) {
        self.idle_cpus_used = None;
    }

    /// CPUs used between the two readings; absent without both.
    pub(super) fn idle_cpus_used(&self) -> Option<f64> {
        self.idle_cpus_used
    }

    /// The window begins.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        self.discover();
        self.update();
        self.find_again();
        self.began_ns = Some(now_ns);
        self.began_ticks = proc_files::uptime_ticks();
        self.ended_cpu = CpuUse::default();
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
        let point = self.point(now_ns, SamplePlace::Edge);
        self.points.add(point);
    }

    /// Reads the known processes again, and looks for others where one of them has ended: what a
    /// process did until it ended is known as of the last reading. To be called ten times per
    /// second.
    pub(crate) fn refresh(&mut self) {
        self.update();
        if self.reads_threads() {
            self.processes.iter_mut().for_each(Watched::update_threads);
        }
        self.find_again();
    }

    /// A reading within the window, to be called once per second.
    pub(crate) fn sample(&mut self, now_ns: u64) {
        self.discover();
        self.refresh();
        let point = self.point(now_ns, SamplePlace::Within);
        self.points.add(point);
    }

    /// The window ends. What could not be read is added to `missing`.
    pub(crate) fn end(
        mut self,
        now_ns: u64,
        missing: &mut BTreeMap<String, String>,
    ) -> ServerEvidence {
        self.discover();
        self.find_again();
        self.add_affinities();
        let interval_ns = now_ns.saturating_sub(self.began_ns.unwrap_or(now_ns));
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
        let mut all_threads = Some(std::mem::take(&mut self.ended_threads));
        for process in &self.processes {
            let tables = process.first_threads.as_ref().zip(tables.get(&process.pid));
            let threads: Option<Vec<_>> = tables.map(|(first, last)| last.since(first).collect());
            exact_ns = exact_ns.saturating_add(process.best_cpu_ns(threads.as_deref()));
            let both = all_threads.zip(threads);
            all_threads = both.map(|(all, threads)| [all, threads].concat());
        }
        let sums = all_threads.map(|threads| ThreadSums::of(&threads, interval_ns));
        let last = self.point(now_ns, SamplePlace::Edge);
        let count = self.threads_last_seen;
        let cpu = self.cpu_max.scaled_to(exact_ns);
        ServerEvidence {
            scope: self.origin.scope(self.pids),
            name: self.name,
            interval_ns,
            cpu_user_ns: cpu.user_ns,
            cpu_system_ns: cpu.system_ns,
            cpus: usable_cpus(&self.cpus, &self.quota),
            cpu_list: self.cpus.into_iter().collect(),
            run_queue_wait_ns: sums.map(|sums| sums.wait_ns),
            throttling: throttling(&self.quota),
            threads: sums.map(|sums| sums.threads(count)),
            idle_cpus_used: self.idle_cpus_used,
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
            let cpu_ns = process.best_cpu_ns(threads.as_deref());
            self.ended_ns = self.ended_ns.saturating_add(cpu_ns);
            let room = THREADS_MAX.saturating_sub(self.ended_threads.len());
            self.ended_threads
                .extend(threads.into_iter().flatten().take(room));
            let mut parents = self.processes.iter_mut().chain(&mut ended);
            if let Some(parent) = parents.find(|parent| parent.pid == process.last.parent) {
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
        if matches!(self.origin, Origin::OwnThreads) {
            return;
        }
        let listed: BTreeSet<_> = proc_files::pids().collect();
        let own = std::process::id();
        let fresh: Vec<_> = listed
            .difference(&self.listed)
            .filter(|&&pid| pid != own)
            .filter_map(|&pid| Some((pid, proc_files::parent(pid)?)))
            .collect();
        self.listed = listed;
        let counting = self.processes.iter().filter(|one| one.counts_children);
        let known = counting.map(|process| process.pid).collect();
        for pid in descendants(&fresh, known) {
            self.add(pid);
        }
    }

    /// The CPUs that each thread may use; of too many threads, that the first one of each process
    /// may.
    pub(super) fn affinities(&self) -> Vec<BTreeSet<u32>> {
        let reads_threads = self.reads_threads();
        let processes = self.processes.iter();
        let tids = processes.flat_map(|process| process.tids(reads_threads));
        let known = tids.map(affinity).filter(|cpus| !cpus.is_empty());
        known.take(THREADS_MAX).collect()
    }

    /// Notes the CPUs that it may use: too many threads are taken to be as free as the first one of
    /// their process.
    fn add_affinities(&mut self) {
        let affinities = self.affinities();
        self.cpus.extend(affinities.into_iter().flatten());
    }

    /// The last readings in sum; notes the most of memory and descriptors.
    fn point(&mut self, now_ns: u64, place: SamplePlace) -> ServerPoint {
        let live = self.processes.iter();
        let cpu = live.fold(self.ended_cpu, |sum, process| sum.plus(process.cpu()));
        self.cpu_max = cpu.max(self.cpu_max);
        let cpu = self.cpu_max;
        let last = || self.processes.iter().map(|process| process.last);
        let resident_bytes: u64 = last().map(|last| last.resident_bytes).sum();
        let threads: u32 = last().map(|last| last.threads).sum();
        if !self.processes.is_empty() {
            self.threads_last_seen = threads;
        }
        // Memory and descriptors belong to all threads of a process.
        let is_whole = !matches!(self.origin, Origin::OwnThreads);
        let resident_bytes = is_whole.then_some(resident_bytes);
        let descriptors = is_whole.then(|| self.descriptors(place)).flatten();
        self.resident_bytes_max = self.resident_bytes_max.max(resident_bytes);
        self.descriptors_max = self.descriptors_max.max(descriptors);
        ServerPoint {
            at_ns: now_ns.saturating_sub(self.began_ns.unwrap_or(now_ns)),
            cpu_user_ns: cpu.user_ns,
            cpu_system_ns: cpu.system_ns,
            threads: Some(threads),
            resident_bytes,
            descriptors,
        }
    }

    fn descriptors(&mut self, place: SamplePlace) -> Option<u64> {
        if self.counts_at_edges_only && place == SamplePlace::Within {
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

/// CPUs used between two readings, (when, CPU so far); absent where they are not apart.
fn cpus_used((then_ns, before_ns): (u64, u64), (now_ns, run_ns): (u64, u64)) -> Option<f64> {
    let interval_ns = now_ns.checked_sub(then_ns).filter(|&ns| ns > 0)?;
    Some(run_ns.saturating_sub(before_ns) as f64 / interval_ns as f64)
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

/// One process that is watched.
#[derive(Debug, Default)]
pub(super) struct Watched {
    pub(super) pid: u32,
    /// Those of its threads that are watched; absent: the whole process is.
    only: Option<BTreeSet<u32>>,
    /// The last reading of the process; from the window's begin on.
    pub(super) last: ProcessReading,
    /// CPU of the process when the window began; 0 when the process began later.
    pub(super) first_cpu: CpuUse,
    /// The CPU of children that it had waited for when the window began; 0 when it began later.
    pub(super) first_waited: CpuUse,
    /// What watched children that have ended since had used in all their lives.
    pub(super) watched_children: CpuUse,
    pub(super) counts_children: bool,
    /// Threads of the process when the window began, none when it began later. Absent: unknown.
    pub(super) first_threads: Option<ThreadTable>,
    /// The last reading of its threads; absent when none was taken.
    pub(super) last_threads: Option<ThreadTable>,
    pub(super) has_ended: bool,
}

impl Watched {
    /// A process whose whole life counts, until its first readings are taken.
    pub(super) fn new(pid: u32, counts_children: bool) -> Option<Self> {
        Some(Self {
            pid,
            last: ProcessReading::of(pid)?,
            counts_children,
            first_threads: Some(ThreadTable::default()),
            ..Self::default()
        })
    }

    /// Reads it, or of threads the CPU that these used.
    fn read(&self) -> Option<ProcessReading> {
        let process = ProcessReading::of(self.pid)?;
        let Some(only) = &self.only else {
            return Some(process);
        };
        let threads = only.iter().filter_map(|tid| {
            let pid = self.pid;
            ProcessReading::of_file(&format!("/proc/{pid}/task/{tid}/stat"))
        });
        Some(ProcessReading {
            cpu: threads.fold(CpuUse::default(), |sum, thread| sum.plus(thread.cpu)),
            threads: only.len() as u32,
            ..process
        })
    }

    /// The threads to look at; the first one alone of a whole process with too many.
    fn tids(&self, reads_threads: bool) -> BTreeSet<u32> {
        if let Some(only) = &self.only {
            return only.clone();
        }
        let others = reads_threads.then(|| thread_ids(self.pid));
        others.into_iter().flatten().chain([self.pid]).collect()
    }

    /// Reads it again, unless it has ended: then the last reading stays.
    pub(super) fn update(&mut self) {
        if self.has_ended {
            return;
        }
        match self.read() {
            Some(reading) if reading.start_ticks == self.last.start_ticks => {
                self.has_ended = reading.has_ended;
                if self.has_ended {
                    // Its threads and its memory are gone; its CPU time is complete.
                    self.last.cpu = reading.cpu;
                    self.last.waited_cpu = reading.waited_cpu;
                } else {
                    self.last = reading;
                }
            }
            _ => self.has_ended = true,
        }
    }

    /// Reads its threads again. A process that ends while it is read has fewer by then, so that
    /// the table with more in it stays.
    pub(super) fn update_threads(&mut self) {
        let run_ns = |table: &Option<ThreadTable>| table.as_ref().map(ThreadTable::run_ns);
        let read = self.read_threads();
        if run_ns(&read) >= run_ns(&self.last_threads) {
            self.last_threads = read;
        }
    }

    /// What each of its threads did in the window until they were last read; absent: unknown.
    pub(super) fn threads_since_first(&self) -> Option<Vec<ThreadTimes>> {
        let (first, last) = (self.first_threads.as_ref()?, self.last_threads.as_ref()?);
        Some(last.since(first).collect())
    }

    /// Counts the CPU of the process from now on.
    pub(super) fn begin(&mut self) {
        self.first_cpu = self.last.cpu;
        self.first_waited = self.last.waited_cpu;
        self.watched_children = CpuUse::default();
    }

    pub(super) fn read_threads(&self) -> Option<ThreadTable> {
        let is_wanted = |tid| self.only.as_ref().is_none_or(|only| only.contains(&tid));
        ThreadTable::read(self.pid, is_wanted)
    }

    /// CPU of the process since the window began, with that of children that nobody watched.
    pub(super) fn cpu(&self) -> CpuUse {
        self.own_cpu().plus(self.unwatched_children())
    }

    pub(super) fn own_cpu(&self) -> CpuUse {
        self.last.cpu.since(self.first_cpu)
    }

    /// CPU of children that it has waited for since the window began, beyond what was seen of them
    /// while they lived. Nothing is known of children that it does not wait for (SIGCHLD ignored).
    pub(super) fn unwatched_children(&self) -> CpuUse {
        if !self.counts_children {
            return CpuUse::default();
        }
        let waited = self.last.waited_cpu.since(self.first_waited);
        waited.since(self.watched_children)
    }

    /// CPU since the window began, with that of children that nobody watched; exact where it is
    /// known what each of its threads did.
    fn best_cpu_ns(&self, threads: Option<&[ThreadTimes]>) -> u64 {
        let exact_ns = threads.map(|threads| threads.iter().map(|times| times.run_ns).sum());
        best_cpu_ns(exact_ns, self.own_cpu().total_ns())
            .saturating_add(self.unwatched_children().total_ns())
    }

    /// What its parent is given when it waits for it, as far as it was seen: its own CPU, and that
    /// of the children that it has waited for, some perhaps after its last reading.
    pub(super) fn lifetime_cpu(&self) -> CpuUse {
        let seen = self.first_waited.plus(self.watched_children);
        self.last.cpu.plus(self.last.waited_cpu.max(seen))
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
        self.0.values().map(|times| times.run_ns).sum()
    }
}

/// The threads of a process, as many as are looked at.
pub(super) fn thread_ids(pid: u32) -> impl Iterator<Item = u32> {
    proc_files::numbered_entries(&PathBuf::from(format!("/proc/{pid}/task"))).take(THREADS_MAX)
}

/// The CPUs that a thread may use; none where that is not known.
fn affinity(tid: u32) -> BTreeSet<u32> {
    let tid = i32::try_from(tid).ok().and_then(Pid::from_raw);
    let Some(set) = tid.and_then(|tid| sched_getaffinity(Some(tid)).ok()) else {
        return BTreeSet::new();
    };
    let cpus = 0..CpuSet::MAX_CPU as u32;
    cpus.filter(|&cpu| set.is_set(cpu as usize)).collect()
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
    /// What these threads did in the interval.
    fn of(threads: &[ThreadTimes], interval_ns: u64) -> Self {
        let mut sums = Self::default();
        for &ThreadTimes { run_ns, wait_ns } in threads {
            sums.run_ns = sums.run_ns.saturating_add(run_ns);
            sums.wait_ns = sums.wait_ns.saturating_add(wait_ns);
            sums.busiest_cpu_ns = sums.busiest_cpu_ns.max(run_ns);
            sums.active += u32::from(is_share(run_ns, 5, interval_ns));
            if is_share(run_ns.saturating_add(wait_ns), 90, interval_ns) {
                sums.saturated += 1;
                sums.saturated_cpu_ns = sums.saturated_cpu_ns.saturating_add(run_ns);
            }
        }
        sums
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
    use std::sync::mpsc;

    use brunt_record::ServerScope;

    use super::*;
    use crate::server::processes::ThreadTable;

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
    fn own_watch() -> ServerWatch {
        let pids = vec![std::process::id()];
        ServerWatch::new(&pids.clone(), Origin::Pids(pids)).unwrap()
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
    fn cpu(ms: u64) -> CpuUse {
        CpuUse {
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
        let point = watch.point(0, SamplePlace::Within);
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
        if let Some(watch) = ServerWatch::new(&[parent], Origin::Pids(vec![parent])) {
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
        assert_eq!(watch.point(0, SamplePlace::Within).cpu_user_ns, 90 * MS);
        watch.processes[1].has_ended = true;
        watch.retire();
        assert_eq!(watch.point(0, SamplePlace::Within).cpu_user_ns, 90 * MS);
        watch.processes[0].last.waited_cpu = cpu(95);
        assert_eq!(watch.point(0, SamplePlace::Within).cpu_user_ns, 95 * MS);
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
    fn refresh_until_used(watch: &mut ServerWatch, pid: u32) {
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
        let mut watch = ServerWatch::new(&pids, Origin::Pids(pids.clone())).unwrap();
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
        let mut watch = ServerWatch::new(&pids, origin).unwrap();
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
        assert_eq!(added.own_cpu(), CpuUse::default());
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

    const SEVEN_MS: CpuUse = CpuUse {
        user_ns: 7 * MS,
        system_ns: 0,
    };

    #[test]
    fn what_has_ended_keeps_its_last_reading() {
        let mut process = Watched::new(std::process::id(), true).unwrap();
        // As if its id had been given to another.
        process.last.start_ticks ^= 1;
        process.last.cpu = SEVEN_MS;
        process.last.waited_cpu = CpuUse::default();
        process.update();
        assert!(process.has_ended);
        assert_eq!(process.cpu(), SEVEN_MS);
        process.update();
        assert_eq!(process.cpu(), SEVEN_MS);
    }

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
        let threads: Vec<_> = last.since(&first).collect();
        assert_eq!(
            ThreadSums::of(&threads, 1_000),
            ThreadSums {
                run_ns: 900 + 49 + 50 + 49,
                wait_ns: 850 + 2,
                active: 2,
                saturated: 2,
                busiest_cpu_ns: 900,
                saturated_cpu_ns: 900 + 50,
            }
        );
        let none = ThreadSums::of(&threads, 0);
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
        let cpus = affinity(pid);
        assert!(!cpus.is_empty());
        assert_eq!(usable_cpus(&cpus, &Ok(None)), Some(cpus.len() as f64));
        assert_eq!(usable_cpus(&BTreeSet::new(), &Ok(None)), None);
        assert_eq!(usable_cpus(&cpus, &Err("unseen".to_owned())), None);
        assert_eq!(ThreadTable::read(u32::MAX, |_| true), None);
    }

    #[test]
    fn only_the_servers_threads_are_watched() {
        let (end, ended) = mpsc::channel::<()>();
        let (named, is_named) = mpsc::channel();
        let thread = brunt_io::threads::spawn("serve-7", move || {
            named.send(()).unwrap();
            let mut sum = 0_u64;
            while ended.try_recv() == Err(mpsc::TryRecvError::Empty) {
                sum = std::hint::black_box(sum.wrapping_add(1));
            }
        })
        .unwrap();
        is_named.recv().unwrap();

        let mut watch = ServerWatch::own_threads().unwrap();
        watch.begin(1_000);
        watch.sample(1_500);
        let evidence = watch.end(2_000, &mut BTreeMap::new());
        end.send(()).unwrap();
        thread.join().unwrap();

        assert_eq!(evidence.scope, ServerScope::OwnThreads);
        assert_eq!((evidence.interval_ns, evidence.series.len()), (1_000, 3));
        assert!(evidence.threads.is_none_or(|threads| threads.count == 1));
        assert!(!evidence.cpu_list.is_empty());
        assert_eq!(evidence.resident_bytes_max, None);
    }

    #[test]
    fn idle_use_needs_two_readings_apart() {
        for (first, second, expected) in [
            ((100, 50), (200, 60), Some(0.1)),
            ((100, 50), (200, 250), Some(2.0)),
            ((100, 50), (200, 40), Some(0.0)),
            ((100, 50), (100, 60), None),
        ] {
            assert_eq!(cpus_used(first, second), expected, "{first:?} {second:?}");
        }
    }
}
