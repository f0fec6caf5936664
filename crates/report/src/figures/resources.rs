//! What client and server used while the window lasted.

use brunt_judge::{Figure, Summary};
use brunt_record::{CpuUse, Run, ServerEvidence, ServerScope};
use serde::Serialize;

use super::absent::Absent;

/// CPU of brunt over the window: of its process, or of its workers alone where the process also
/// held the server.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
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
pub struct ServerFigures {
    /// Name of the program.
    pub name: String,
    /// What of it was watched: `processes` or `own_threads`.
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

/// CPU of brunt per complete reply of the window, nanoseconds: also where the process held the
/// server too, if the workers' own CPU was read.
pub(crate) fn cpu_ns_per_reply(run: &Run, summary: &Summary) -> Figure {
    match run.client_cpu() {
        Ok(cpu) if run.own_server() => Figure::ratio(
            cpu.user_ns + cpu.system_ns,
            summary.window.replies.total() as f64,
            "no complete reply",
        ),
        _ => summary.cpu_ns_per_reply.clone(),
    }
}

/// Complete replies of the window per second of the server's CPU. Both are taken per second of
/// their own interval: the readings of the server need not span the window.
pub(crate) fn requests_per_cpu_s(run: &Run, summary: &Summary, server: &ServerEvidence) -> Figure {
    if run.is_streams() {
        return Figure::Absent("streams carry no requests".to_owned());
    }
    let replies = summary.window.replies.total() as f64;
    match (server.cpu_use(), run.window_ns) {
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
        let cpu = run.client_cpu();
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
    /// The figures of the server of `run`, where it was watched.
    pub(super) fn new(run: &Run, summary: &Summary, absent: &mut Absent) -> Option<Self> {
        let evidence = run.evidence_of_server();
        let missing = |path: &str| evidence.missing.get(path).map(String::as_str);
        let Some(server) = &evidence.server else {
            let reason = missing("server").unwrap_or("the server was not watched");
            return absent.note("server", reason);
        };
        let cpu = server.cpu_use();
        let mut used = |path: &str, value: fn(&CpuUse) -> f64| {
            absent.known(path, cpu.as_ref().map(value), READ_ONCE)
        };
        let cpu_user_s = used("server.cpu_user_s", |cpu| cpu.user_ns / 1e9);
        let cpu_system_s = used("server.cpu_system_s", |cpu| cpu.system_ns / 1e9);
        let cpus_used = used("server.cpus_used", CpuUse::cpus);
        let unread = |path: &str| missing(path).unwrap_or("it could not be read");
        let mut most = |path: &str, most: Option<u64>| absent.known(path, most, unread(path));
        let resident_bytes_max = most("server.resident_bytes_max", server.resident_bytes_max);
        let descriptors_max = most("server.descriptors_max", server.descriptors_max);
        Some(Self {
            name: server.name.clone(),
            scope: match server.scope {
                ServerScope::Processes { .. } => "processes",
                ServerScope::OwnThreads => "own_threads",
            },
            cpu_user_s,
            cpu_system_s,
            cpus_used,
            cpus: absent.known("server.cpus", server.cpus, unread("server.cpus")),
            requests_per_cpu_s: absent.rate(
                "server.requests_per_cpu_s",
                &requests_per_cpu_s(run, summary, server),
            ),
            resident_bytes_max,
            descriptors_max,
        })
    }
}
