//! The ledger of CPU time: who had the CPUs of brunt's machine over the window.

use brunt_record::{AgentRecord, Backend, CpuTimes, ProgramUse};
use serde::Serialize;

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
        let cpus: Vec<_> = host.cpus.iter().filter(|it| wanted(it.cpu)).collect();
        let sum =
            |ns: fn(&CpuTimes) -> u64| cpus.iter().map(|it| ns(it)).fold(0, u64::saturating_add);
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
    let used = read.map(|thread| {
        let cpu_ns = thread.cpu_ns();
        cpu_ns as f64 / thread.interval_ns as f64
    });
    used.sum()
}

#[cfg(test)]
mod tests {
    use brunt_record::{HostPoint, OtherPrograms};

    use super::*;
    use crate::invariants::sample::{MS, steady_run};

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
        assert_eq!(
            (ledger.unaccounted_ns, sum(&ledger)),
            (140 * MS, 2_000 * MS)
        );
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
            assert!(
                ledger
                    .others
                    .iter()
                    .all(|it| Some(it.cpu_ns) <= ledger.others_ns)
            );
        }
        let one = CpuLedger::over(&agent(500, Some(600)), |cpu| cpu == 1).expect("read");
        assert_eq!((one.cpus, sum(&one)), (1, 1_000 * MS));
        let mut unread = agent(500, None);
        unread.evidence.host.cpus.clear();
        assert_eq!(CpuLedger::of(&unread), None);
    }
}
