//! What client and server used while the window lasted.

use brunt_judge::{Figure, Judged, Summary};
use brunt_record::{CpuUse, Run, ServerEvidence, ServerScope};
use serde::Serialize;

/// CPU of brunt over the window: of its process, or of its workers alone where the process also
/// held the server.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientFigures {
    /// CPU in user space, seconds.
    pub cpu_user_s: Figure,
    /// CPU in the kernel, seconds.
    pub cpu_system_s: Figure,
    /// CPUs used on average.
    pub cpus_used: Figure,
}

/// What the server used, between the first reading of it in the window and the last one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerFigures {
    /// Name of the program.
    pub name: String,
    /// What of it was watched: `processes` or `own_threads`.
    pub scope: &'static str,
    /// CPU in user space, seconds.
    pub cpu_user_s: Figure,
    /// CPU in the kernel, seconds.
    pub cpu_system_s: Figure,
    /// CPUs used on average.
    pub cpus_used: Figure,
    /// CPUs that it may use.
    pub cpus: Figure,
    /// Complete replies of the window per second of its CPU.
    pub requests_per_cpu_s: Figure,
    /// Most resident memory, bytes.
    pub resident_bytes_max: Figure<u64>,
    /// Most open file descriptors.
    pub descriptors_max: Figure<u64>,
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
    pub(super) fn new(run: &Run) -> Self {
        let cpu = Figure::from(run.client_cpu());
        let figure = |value: fn(CpuUse) -> f64| cpu.clone().map(value);
        Self {
            cpu_user_s: figure(|cpu| cpu.user_ns / 1e9),
            cpu_system_s: figure(|cpu| cpu.system_ns / 1e9),
            cpus_used: figure(|cpu| cpu.cpus()),
        }
    }
}

impl ServerFigures {
    /// The figures of the server, where it was watched.
    pub(super) fn of(judged: &Judged<'_>) -> Figure<Self> {
        let evidence = judged.run.evidence_of_server();
        let missing = |path: &str| evidence.missing.get(path).map(String::as_str);
        let Some(server) = &evidence.server else {
            let reason = missing("server").unwrap_or("the server was not watched");
            return Figure::Absent(reason.to_owned());
        };
        let cpu = server.cpu_use();
        let used = |value: fn(&CpuUse) -> f64| Figure::of(cpu.as_ref().map(value), READ_ONCE);
        let unread = |path: &str| missing(path).unwrap_or("it could not be read");
        let most = |path: &str, most: Option<u64>| Figure::of(most, unread(path));
        Figure::Known(Self {
            name: server.name.clone(),
            scope: match server.scope {
                ServerScope::Processes { .. } => "processes",
                ServerScope::OwnThreads => "own_threads",
            },
            cpu_user_s: used(|cpu| cpu.user_ns / 1e9),
            cpu_system_s: used(|cpu| cpu.system_ns / 1e9),
            cpus_used: used(CpuUse::cpus),
            cpus: Figure::of(server.cpus, unread("server.cpus")),
            requests_per_cpu_s: judged.rate(requests_per_cpu_s(
                judged.run,
                &judged.summary,
                server,
            )),
            resident_bytes_max: most("server.resident_bytes_max", server.resident_bytes_max),
            descriptors_max: most("server.descriptors_max", server.descriptors_max),
        })
    }
}
