//! CPU time that client and server used over a window, as the CPUs that it makes on average.

use crate::{AgentRecord, Backend, Run, ServerEvidence};

/// CPU time with the CPUs that it makes on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuUse {
    /// CPU time in user space, nanoseconds.
    pub user_ns: f64,
    /// CPU time in the kernel, nanoseconds.
    pub system_ns: f64,
    /// CPUs used in user space.
    pub user_cpus: f64,
    /// CPUs used in the kernel.
    pub system_cpus: f64,
}

const NOT_READ: &str = "no CPU time was read";

impl CpuUse {
    /// What was used over `interval_ns`; absent when that has no length.
    fn over(user_ns: u64, system_ns: u64, interval_ns: u64) -> Option<Self> {
        let (user_ns, system_ns) = (user_ns as f64, system_ns as f64);
        (interval_ns > 0).then(|| Self {
            user_ns,
            system_ns,
            user_cpus: user_ns / interval_ns as f64,
            system_cpus: system_ns / interval_ns as f64,
        })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns + other.user_ns,
            system_ns: self.system_ns + other.system_ns,
            user_cpus: self.user_cpus + other.user_cpus,
            system_cpus: self.system_cpus + other.system_cpus,
        }
    }

    /// CPUs used on average.
    pub fn cpus(&self) -> f64 {
        self.user_cpus + self.system_cpus
    }
}

impl Run {
    /// CPU of brunt over the window, all agents together.
    ///
    /// # Errors
    ///
    /// It is not known of all of them; the reason in words.
    pub fn client_cpu(&self) -> Result<CpuUse, &'static str> {
        let agents = self.agents.iter().map(client_cpu_of);
        agents
            .reduce(|sum, agent| Ok(sum?.plus(agent?)))
            .unwrap_or(Err(NOT_READ))
    }

    /// Most memory resident at any time in any of the agents, bytes.
    pub fn peak_resident_bytes(&self) -> u64 {
        let agents = self.agents.iter();
        let peaks = agents.map(|agent| agent.host.peak_resident_bytes);
        peaks.max().unwrap_or(0)
    }
}

fn client_cpu_of(agent: &AgentRecord) -> Result<CpuUse, &'static str> {
    let host = &agent.host;
    if agent.backend == Backend::Sim {
        return Err("the network was simulated");
    }
    if !agent.own_server {
        if host.cpu_user_ns == 0 && host.cpu_system_ns == 0 {
            return Err(NOT_READ);
        }
        return CpuUse::over(host.cpu_user_ns, host.cpu_system_ns, host.cpu_interval_ns)
            .ok_or(NOT_READ);
    }
    let threads = agent.workers.iter().map(|worker| {
        let thread = worker.thread?;
        CpuUse::over(thread.cpu_user_ns, thread.cpu_system_ns, thread.interval_ns)
    });
    threads
        .reduce(|sum, thread| Some(sum?.plus(thread?)))
        .flatten()
        .ok_or("the process also held the reference server")
}

impl ServerEvidence {
    /// CPU over the window; absent where it was read once or never.
    pub fn cpu_use(&self) -> Option<CpuUse> {
        CpuUse::over(self.cpu_user_ns, self.cpu_system_ns, self.interval_ns)
    }
}
