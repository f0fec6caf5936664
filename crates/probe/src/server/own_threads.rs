//! The reference server within this process: its threads, by their names.

use std::collections::{BTreeMap, BTreeSet};

use brunt_record::{ServerEvidence, ServerPoint, ServerScope};

use super::IdleUse;
use super::proc_files::{self, ProcessReading, TickedCpu};
use super::processes::{self, ThreadSums, ThreadTable, usable_cpus};
use crate::cgroup::{CpuQuota, SeenQuota, throttling};
use crate::series::Readings;

/// Names of its threads begin so.
const NAME_START: &str = "serve-";

/// Watches threads of this process.
#[derive(Debug)]
pub(super) struct OwnThreads {
    pid: u32,
    /// The threads, and their CPU when the window began.
    threads: BTreeMap<u32, TickedCpu>,
    idle: IdleUse,
    began_ns: Option<u64>,
    first: Option<ThreadTable>,
    quota: SeenQuota,
    points: Readings<ServerPoint>,
}

impl OwnThreads {
    /// `None` when there are no such threads.
    pub(super) fn find() -> Option<Self> {
        let pid = std::process::id();
        let threads: BTreeMap<_, _> = processes::thread_ids(pid)
            .filter(|&tid| proc_files::name(tid).is_some_and(|name| name.starts_with(NAME_START)))
            .map(|tid| (tid, TickedCpu::default()))
            .collect();
        (!threads.is_empty()).then(|| Self {
            pid,
            threads,
            idle: IdleUse::default(),
            began_ns: None,
            first: None,
            quota: CpuQuota::of(None),
            points: Readings::default(),
        })
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

    pub(super) fn begin(&mut self, now_ns: u64) {
        self.began_ns = Some(now_ns);
        if let Ok(Some(quota)) = &mut self.quota {
            quota.mark();
        }
        self.first = self.read();
        for (&tid, first) in &mut self.threads {
            *first = ticked_cpu(self.pid, tid).unwrap_or_default();
        }
        let point = self.point(now_ns);
        self.points.add(point);
    }

    pub(super) fn sample(&mut self, now_ns: u64) {
        let point = self.point(now_ns);
        self.points.add(point);
    }

    pub(super) fn end(self, now_ns: u64) -> ServerEvidence {
        let interval_ns = now_ns.saturating_sub(self.began_ns.unwrap_or(now_ns));
        let sums = self.first.as_ref().zip(self.read()).map(|(first, last)| {
            let mut sums = ThreadSums::default();
            sums.add(first, &last, interval_ns);
            sums
        });
        let ticked = self.cpu();
        let cpu = ticked.scaled_to(sums.map_or(ticked.total_ns(), |sums| sums.run_ns));
        let mut cpus = BTreeSet::new();
        for &tid in self.threads.keys() {
            processes::add_affinity(tid, &mut cpus);
        }
        let last = self.point(now_ns);
        ServerEvidence {
            scope: ServerScope::OwnThreads,
            name: "reference server".to_owned(),
            interval_ns,
            cpu_user_ns: cpu.user_ns,
            cpu_system_ns: cpu.system_ns,
            cpus: usable_cpus(&cpus, &self.quota),
            cpu_list: cpus.into_iter().collect(),
            run_queue_wait_ns: sums.map(|sums| sums.wait_ns),
            throttling: throttling(&self.quota),
            threads: sums.map(|sums| sums.threads(self.threads.len() as u32)),
            idle_cpus_used: self.idle.cpus_used(),
            // Memory and descriptors are those of the process, most of them the client's.
            resident_bytes_max: None,
            descriptors_max: None,
            series: self.points.finish(last),
        }
    }

    fn read(&self) -> Option<ThreadTable> {
        ThreadTable::read(self.pid, |tid| self.threads.contains_key(&tid))
    }

    fn run_ns(&self) -> Option<u64> {
        self.read().map(|table| table.run_ns())
    }

    /// CPU since the window began.
    fn cpu(&self) -> TickedCpu {
        self.threads
            .iter()
            .fold(TickedCpu::default(), |sum, (&tid, first)| {
                let last = ticked_cpu(self.pid, tid).unwrap_or(*first);
                sum.plus(last.since(*first))
            })
    }

    fn point(&self, now_ns: u64) -> ServerPoint {
        let cpu = self.cpu();
        ServerPoint {
            at_ns: now_ns.saturating_sub(self.began_ns.unwrap_or(now_ns)),
            cpu_user_ns: cpu.user_ns,
            cpu_system_ns: cpu.system_ns,
            threads: Some(self.threads.len() as u32),
            resident_bytes: None,
            descriptors: None,
        }
    }
}

/// CPU of one thread so far.
fn ticked_cpu(pid: u32, tid: u32) -> Option<TickedCpu> {
    ProcessReading::of_file(&format!("/proc/{pid}/task/{tid}/stat")).map(|reading| reading.cpu)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

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

        let mut watch = OwnThreads::find().unwrap();
        watch.begin(1_000);
        watch.sample(1_500);
        let evidence = watch.end(2_000);
        end.send(()).unwrap();
        thread.join().unwrap();

        assert_eq!(evidence.scope, ServerScope::OwnThreads);
        assert_eq!((evidence.interval_ns, evidence.series.len()), (1_000, 3));
        assert!(evidence.threads.is_none_or(|threads| threads.count == 1));
        assert!(!evidence.cpu_list.is_empty());
        assert_eq!(evidence.resident_bytes_max, None);
    }
}
