//! CPU use and waits of a worker's thread, from one edge of the window to the other.

use brunt_io::cpu::{Contention, ContentionProbe, CpuUse};
use brunt_record::ThreadUse;

/// Reads the kernel's account of one thread at both edges of the window; to be used by that thread.
#[derive(Debug)]
pub struct ThreadMeter {
    probe: ContentionProbe,
    /// The reading at the start of the window; absent before.
    start: Option<ThreadReading>,
}

#[derive(Clone, Copy, Debug)]
struct ThreadReading {
    at_ns: u64,
    cpu: CpuUse,
    contention: Contention,
    spun_ns: u64,
}

impl ThreadMeter {
    /// The meter of the calling thread.
    pub fn of_thread() -> Self {
        Self {
            probe: ContentionProbe::of_thread(),
            start: None,
        }
    }

    /// The window has begun; the thread has polled in vain for `spun_ns` so far.
    pub fn begin(&mut self, now_ns: u64, spun_ns: u64) {
        self.start = self.read(now_ns, spun_ns);
    }

    /// The window is over. Absent when it never began, and where the kernel gives no account.
    pub fn end(&self, now_ns: u64, spun_ns: u64) -> Option<ThreadUse> {
        let (start, end) = (self.start?, self.read(now_ns, spun_ns)?);
        let cpu = end.cpu.since(start.cpu);
        let contention = end.contention.since(start.contention);
        Some(ThreadUse {
            interval_ns: end.at_ns.saturating_sub(start.at_ns),
            cpu_user_ns: cpu.user_ns,
            cpu_system_ns: cpu.system_ns,
            spun_ns: (end.spun_ns.saturating_sub(start.spun_ns)).min(cpu.total_ns()),
            run_queue_wait_ns: contention.run_queue_wait_ns,
            involuntary_switches: contention.involuntary_switches,
        })
    }

    fn read(&self, now_ns: u64, spun_ns: u64) -> Option<ThreadReading> {
        Some(ThreadReading {
            at_ns: now_ns,
            cpu: CpuUse::of_thread().ok()?,
            contention: self.probe.read(),
            spun_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_reads_from_edge_to_edge() {
        let mut meter = ThreadMeter::of_thread();
        assert_eq!(meter.end(9, 0), None, "the window never began");
        meter.begin(1_000, 50);
        let used = meter.end(5_000, 80).expect("a Linux kernel reports it");
        assert_eq!(used.interval_ns, 4_000);
        let cpu_ns = used.cpu_user_ns + used.cpu_system_ns;
        assert_eq!(used.spun_ns, cpu_ns.min(30), "polling is CPU time");
    }
}
