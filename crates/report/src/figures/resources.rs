//! What client and server used while the window lasted.

use brunt_measure::{AgentRecord, Backend, Figure, Run, ServerEvidence, ServerScope, Summary};
use serde::Serialize;

use super::absent::Absent;

/// CPU of brunt over the window: of its process, or of its workers alone where the process also
/// held the server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClientFigures {
    /// CPU in user space, seconds.
    pub cpu_user_s: Option<f64>,
    /// CPU in the kernel, seconds.
    pub cpu_system_s: Option<f64>,
    /// CPUs used on average.
    pub cpus_used: Option<f64>,
}

/// What the server used, between the first reading of it in the window and the last one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerFigures {
    /// Its name.
    pub name: String,
    /// What of it was watched: `processes`, `own_threads`, `exporter_process` or `exporter_host`.
    pub scope: &'static str,
    /// CPU in user space, seconds.
    pub cpu_user_s: Option<f64>,
    /// CPU in the kernel, seconds.
    pub cpu_system_s: Option<f64>,
    /// CPUs used on average.
    pub cpus_used: Option<f64>,
    /// CPUs that it may use.
    pub cpus: Option<f64>,
    /// Complete replies of the window per second of its CPU.
    pub requests_per_cpu_s: Option<f64>,
    /// Most resident memory, bytes.
    pub resident_bytes_max: Option<u64>,
    /// Most open file descriptors.
    pub descriptors_max: Option<u64>,
}

/// CPU time with the CPUs that it makes on average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CpuUse {
    /// In user space, nanoseconds.
    pub(crate) user_ns: f64,
    /// In the kernel, nanoseconds.
    pub(crate) system_ns: f64,
    /// CPUs used in user space.
    pub(crate) user_cpus: f64,
    /// CPUs used in the kernel.
    pub(crate) system_cpus: f64,
}

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
    pub(crate) fn cpus(&self) -> f64 {
        self.user_cpus + self.system_cpus
    }
}

/// CPU of brunt over the window, or why it is not known.
pub(crate) fn client_cpu(run: &Run) -> Result<CpuUse, &'static str> {
    let agents = run.agents.iter().map(client_cpu_of);
    agents
        .reduce(|sum, agent| Ok(sum?.plus(agent?)))
        .unwrap_or(Err(NOT_READ))
}

const NOT_READ: &str = "no CPU time was read";

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

/// Most memory resident at any time in any of the agents, bytes.
pub(crate) fn peak_resident_bytes(run: &Run) -> u64 {
    let peaks = run
        .agents
        .iter()
        .map(|agent| agent.host.peak_resident_bytes);
    peaks.max().unwrap_or(0)
}

/// CPU of brunt per complete reply of the window, nanoseconds: also where the process held the
/// server too, if the workers' own CPU was read.
pub(crate) fn cpu_ns_per_reply(run: &Run, summary: &Summary) -> Figure {
    match client_cpu(run) {
        Ok(cpu) if run.own_server() => Figure::ratio(
            cpu.user_ns + cpu.system_ns,
            summary.window.replies.total() as f64,
            "no complete reply",
        ),
        _ => summary.cpu_ns_per_reply.clone(),
    }
}

/// CPU of the server over the window; absent where it was read once or never.
pub(crate) fn server_cpu(server: &ServerEvidence) -> Option<CpuUse> {
    CpuUse::over(server.cpu_user_ns, server.cpu_system_ns, server.interval_ns)
}

/// Complete replies of the window per second of the server's CPU. Both are taken per second of
/// their own interval: the readings of the server need not span the window.
pub(crate) fn requests_per_cpu_s(run: &Run, summary: &Summary, server: &ServerEvidence) -> Figure {
    let replies = summary.window.replies.total() as f64;
    match (server_cpu(server), run.window_ns) {
        (_, 0) => Figure::Absent("the measure phase has no length".to_owned()),
        (None, _) => Figure::Absent(READ_ONCE.to_owned()),
        (Some(cpu), window_ns) => Figure::ratio(
            replies / (window_ns as f64 / 1e9),
            cpu.cpus(),
            "no CPU time of the server was seen",
        ),
    }
}

/// The server's own count of requests over the run; absent where that went back.
pub(crate) fn server_counted(run: &Run) -> Option<Result<u64, String>> {
    let count = match run.server_count() {
        Ok(count) => count?,
        Err(reason) => return Some(Err(reason)),
    };
    let counted = count.after.checked_sub(count.before);
    Some(counted.ok_or_else(|| {
        format!(
            "the server's count went back, from {} to {}",
            count.before, count.after
        )
    }))
}

const READ_ONCE: &str = "the server was not read twice";

impl ClientFigures {
    pub(super) fn new(run: &Run, absent: &mut Absent) -> Self {
        let cpu = client_cpu(run);
        let mut figure = |name: &str, value: fn(&CpuUse) -> f64| match &cpu {
            Ok(cpu) => Some(value(cpu)),
            Err(reason) => absent.note(&format!("client.{name}"), reason),
        };
        Self {
            cpu_user_s: figure("cpu_user_s", |cpu| cpu.user_ns / 1e9),
            cpu_system_s: figure("cpu_system_s", |cpu| cpu.system_ns / 1e9),
            cpus_used: figure("cpus_used", CpuUse::cpus),
        }
    }
}

impl ServerFigures {
    /// The figures of the server of `run`, where it was watched; `withheld` is the reason for
    /// which there are no rates.
    pub(super) fn new(
        run: &Run,
        summary: &Summary,
        withheld: Option<&str>,
        absent: &mut Absent,
    ) -> Option<Self> {
        let evidence = run.evidence_of_server();
        let Some(server) = &evidence.server else {
            let reason = evidence.missing.get("server").map(String::as_str);
            return absent.note("server", reason.unwrap_or("the server was not watched"));
        };
        let cpu = server_cpu(server);
        let mut figure = |name: &str, value: fn(&CpuUse) -> f64| match &cpu {
            Some(cpu) => Some(value(cpu)),
            None => absent.note(&format!("server.{name}"), READ_ONCE),
        };
        let cpu_user_s = figure("cpu_user_s", |cpu| cpu.user_ns / 1e9);
        let cpu_system_s = figure("cpu_system_s", |cpu| cpu.system_ns / 1e9);
        let cpus_used = figure("cpus_used", CpuUse::cpus);
        let requests_per_cpu_s = match withheld {
            Some(reason) => absent.note("server.requests_per_cpu_s", reason),
            None => absent.figure(
                "server.requests_per_cpu_s",
                &requests_per_cpu_s(run, summary, server),
            ),
        };
        for (name, is_known) in [
            ("cpus", server.cpus.is_some()),
            ("resident_bytes_max", server.resident_bytes_max.is_some()),
            ("descriptors_max", server.descriptors_max.is_some()),
        ] {
            if !is_known {
                let reason = evidence.missing.get(&format!("server.{name}"));
                let reason = reason.map_or("it could not be read", String::as_str);
                absent.note::<u64>(&format!("server.{name}"), reason);
            }
        }
        Some(Self {
            name: server.name.clone(),
            scope: match server.scope {
                ServerScope::Processes { .. } => "processes",
                ServerScope::OwnThreads => "own_threads",
                ServerScope::ExporterProcess { .. } => "exporter_process",
                ServerScope::ExporterHost { .. } => "exporter_host",
            },
            cpu_user_s,
            cpu_system_s,
            cpus_used,
            cpus: server.cpus,
            requests_per_cpu_s,
            resident_bytes_max: server.resident_bytes_max,
            descriptors_max: server.descriptors_max,
        })
    }
}
