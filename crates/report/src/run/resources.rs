//! What client and server used: their CPU, memory and descriptors, side by side; what the evidence
//! cost, and what of it is missing.

use brunt_judge::{CpuLedger, Figure, Judged, Summary};
use brunt_record::{CpuUse, Evidence, Run, ServerEvidence, ServerScope};

use super::counts;
use crate::figures::{cpu_ns_per_reply, requests_per_cpu_s};
use crate::foreign::printable;
use crate::page::{Page, Tone};
use crate::units::{self, counted};

/// What generator, client and server used, and who had the CPUs. A short page has what made the
/// requests, why a server is not watched, and who had a noticeable part of the CPUs.
pub(super) fn used(judged: &Judged<'_>, page: &mut Page) {
    let Judged { run, summary, .. } = judged;
    let is_full = page.is_full();
    generator(run, page);
    if is_full {
        client(run, summary, page);
    }
    server(judged, page);
    page.row("CPUs", &cpus(run), Tone::Plain);
}

/// The report leaves out other programs, and parts of the CPU time, that used fewer CPUs than this.
const CPUS_LISTED_LEAST: f64 = 0.05;
/// A smaller share of the workers' time for a script or sessions is not worth a word.
const SCRIPT_SHARE_MIN: f64 = 0.005;
/// Process ids named.
const PIDS_MAX: usize = 8;

/// What brunt itself used; memory of the agent that used most.
fn client(run: &Run, summary: &Summary, page: &mut Page) {
    let mut items = Vec::new();
    match run.client_cpu() {
        Ok(cpu) => items.push(cpu_of(&cpu, None)),
        Err(reason) => items.push(format!("CPU not known: {reason}")),
    }
    if let Figure::Known(ns) = cpu_ns_per_reply(run, summary) {
        let cpu = units::duration(ns.round() as u64);
        let is_polled = summary.spun_ns > 0;
        let polling = if is_polled { ", polling included" } else { "" };
        items.push(format!("{cpu} CPU per reply{polling}"));
    }
    let peak_bytes = Some(run.peak_resident_bytes()).filter(|&bytes| bytes > 0);
    items.extend(peak_bytes.map(units::bytes));
    page.row("client", &items, Tone::Plain);
}

/// What made the requests while the run went on, where something did.
fn generator(run: &Run, page: &mut Page) {
    let Some((used, workers)) = run.generator_use() else {
        return;
    };
    let mut items = Vec::new();
    if let Some(sessions) = &used.sessions {
        let ends = [
            (sessions.begun, "begun"),
            (sessions.completed, "completed"),
            (sessions.failed, "failed"),
        ];
        items.extend(counts(ends, true));
        items.extend(counts([(sessions.reconnected, "reconnected")], false));
    }
    let share = used.share(workers, run.window_ns);
    if let Some(share) = share.filter(|&share| share >= SCRIPT_SHARE_MIN) {
        items.push(format!(
            "took {} of the workers' time",
            units::percent(share)
        ));
    }
    if used.truncated > 0 {
        let bodies = counted(used.truncated, "body", "bodies");
        items.push(format!("{bodies} cut, too large to be kept"));
    }
    if let Some(error) = &used.error {
        items.push(format!("ended the run: {}", printable(error)));
    }
    let name = if used.sessions.is_some() {
        "sessions"
    } else {
        "script"
    };
    page.row(name, &items, Tone::Plain);
}

/// What the server used, where it was watched, and how that is known.
fn server(judged: &Judged<'_>, page: &mut Page) {
    let run = judged.run;
    let evidence = run.evidence_of_server();
    let Some(server) = &evidence.server else {
        if let Some(reason) = evidence.missing.get("server") {
            let words = format!("not watched: {reason}");
            page.row("server", &[words], Tone::Plain);
        }
        return;
    };
    if !page.is_full() {
        return;
    }
    let mut items = vec![who(server)];
    match server.cpu_use() {
        Some(cpu) => items.push(cpu_of(&cpu, server.cpus)),
        None => items.push("CPU not known: it was not read twice".to_owned()),
    }
    let per_cpu_s = requests_per_cpu_s(run, &judged.summary, server).known();
    if let Some(rate) = per_cpu_s.filter(|&rate| rate > 0.0 && judged.withheld().is_none()) {
        let (rate, per_s) = (units::rate(rate), run.unit().per_s);
        items.push(format!("{rate} {per_s} per CPU"));
    }
    items.extend(server.resident_bytes_max.map(units::bytes));
    let descriptors = server.descriptors_max;
    items.extend(descriptors.map(|count| counted(count, "descriptor", "descriptors")));
    page.row("server", &items, Tone::Plain);
    page.row("  watched", &how(server), Tone::Plain);
    page.row("  threads", &threads(server), Tone::Plain);
}

/// Who had the CPUs of brunt's machine; of several machines each agent's is in the data.
fn cpus(run: &Run) -> Vec<String> {
    let Some(ledger) = CpuLedger::of(run.first()).filter(|_| run.is_plain()) else {
        return Vec::new();
    };
    let server = run.first().evidence.server.as_ref();
    let server = server.map_or("server", |server| server.name.as_str());
    let spun_ns: u64 = run.workers().map(|worker| worker.spun_ns).sum();
    ledger_of(&ledger, server, spun_ns > ledger.client_ns / 2)
}

/// The ledger in words: `node 0.75`, `brunt 0.26`, `idle 0.99 of 2`.
fn ledger_of(ledger: &CpuLedger, server: &str, mostly_polls: bool) -> Vec<String> {
    let cpus = |ns: u64| units::cpus(ledger.in_cpus(ns));
    let is_listed = |ns: u64| ledger.in_cpus(ns) >= CPUS_LISTED_LEAST;
    let mut items = Vec::new();
    if let Some(ns) = ledger.server_ns {
        // Brunt's own server has brunt's name.
        let name = if server == "brunt" { "server" } else { server };
        items.push(format!("{} {}", printable(name), cpus(ns)));
    }
    let polling = if mostly_polls { " with polling" } else { "" };
    items.push(format!("brunt {}{polling}", cpus(ledger.client_ns)));
    if let Some(ns) = ledger.others_ns.filter(|&ns| is_listed(ns)) {
        let others = ledger.others.iter().filter(|one| is_listed(one.cpu_ns));
        let named = others.map(|one| format!("{} {}", printable(&one.name), cpus(one.cpu_ns)));
        let named = named.collect::<Vec<_>>().join(", ");
        let named = if named.is_empty() {
            named
        } else {
            format!(" ({named})")
        };
        items.push(format!("other programs {}{named}", cpus(ns)));
    }
    let rest = [
        ("kernel", ledger.unaccounted_ns),
        ("stolen", ledger.steal_ns),
        ("throttled", ledger.throttled_ns.unwrap_or(0)),
    ];
    let listed = rest.iter().filter(|(_, ns)| is_listed(*ns));
    items.extend(listed.map(|(what, ns)| format!("{what} {}", cpus(*ns))));
    items.push(format!("idle {} of {}", cpus(ledger.idle_ns), ledger.cpus));
    items
}

/// The CPUs used, of how many, and where: `1.93 of 2 CPUs (0.61 user, 1.32 kernel)`.
fn cpu_of(cpu: &CpuUse, limit: Option<f64>) -> String {
    let used = units::cpus_used(cpu.cpus(), limit);
    let [user, kernel] = [cpu.user_cpus, cpu.system_cpus].map(units::cpus);
    format!("{used} ({user} user, {kernel} kernel)")
}

/// The server's name, and what of it was watched where that is not one process.
fn who(server: &ServerEvidence) -> String {
    let mut words = vec![match &server.scope {
        ServerScope::Processes { pids, .. } => counted(pids.len() as u64, "process", "processes"),
        ServerScope::OwnThreads => "in this process".to_owned(),
    }];
    let threads = server.threads.map(|threads| threads.count.into());
    words.extend(threads.map(|count| counted(count, "thread", "threads")));
    format!("{} ({})", server.name, words.join(", "))
}

/// How the server was watched.
fn how(server: &ServerEvidence) -> Vec<String> {
    match &server.scope {
        ServerScope::Processes { pids, found_by } => {
            let named: Vec<String> = pids.iter().take(PIDS_MAX).map(u32::to_string).collect();
            let more = if pids.len() > PIDS_MAX { " …" } else { "" };
            let word = if pids.len() == 1 { "pid" } else { "pids" };
            let pids = format!("{word} {}{more}", named.join(", "));
            vec![found_by.clone(), pids]
        }
        ServerScope::OwnThreads => vec!["the reference server's own threads".to_owned()],
    }
}

/// What its threads did, and what kept them from a CPU.
fn threads(server: &ServerEvidence) -> Vec<String> {
    let mut items = Vec::new();
    if let Some(threads) = server.threads.filter(|_| server.interval_ns > 0) {
        let busy = units::count(threads.active.into());
        let busiest = threads.busiest_cpu_ns as f64 / server.interval_ns as f64;
        let busiest = units::cpus_used(busiest, None);
        items.push(format!("{busy} busy, the busiest {busiest}"));
    }
    let wait_ns = server.run_queue_wait_ns;
    items.extend(wait_ns.map(|ns| format!("waited {} for a CPU", units::duration(ns))));
    items
}

/// Prints all of it.
pub(super) fn evidence(run: &Run, page: &mut Page) {
    for (number, agent) in (1..).zip(&run.agents) {
        if !run.is_plain() {
            let id = std::slice::from_ref(&agent.id);
            page.row(&format!("agent {number}"), id, Tone::Plain);
        }
        evidence_of(&agent.evidence, page);
    }
}

/// What could not be read, and what reading the rest cost.
fn evidence_of(evidence: &Evidence, page: &mut Page) {
    let observer = &evidence.observer;
    let (used_ns, interval_ns) = (observer.cpu_ns as f64, evidence.interval_ns as f64);
    if let Figure::Known(share) = Figure::ratio(used_ns, interval_ns, "") {
        let readings = counted(observer.readings, "reading", "readings");
        let cost = format!("{readings}, which took {share:.4} CPUs");
        page.row("evidence", &[cost], Tone::Plain);
    }
    // The row of the server says why there is none.
    let missing = evidence.missing.iter();
    for (name, reason) in missing.filter(|(name, _)| name.as_str() != "server") {
        page.row("  missing", &[format!("{name}: {reason}")], Tone::Plain);
    }
}

#[cfg(test)]
mod tests {
    use brunt_record::ProgramUse;

    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn the_ledger_names_who_had_the_cpus() {
        const CENT: u64 = S / 100;
        let program = |name: &str, cents| ProgramUse {
            name: name.to_owned(),
            cpu_ns: cents * CENT,
        };
        let ledger = CpuLedger {
            interval_ns: S,
            cpus: 2,
            server_ns: Some(75 * CENT),
            client_ns: 26 * CENT,
            others_ns: Some(97 * CENT),
            others: vec![
                program("cargo", 90),
                program("sh\u{1b}[1m", 7),
                program("x", 4),
            ],
            unaccounted_ns: 6 * CENT,
            steal_ns: 4 * CENT,
            idle_ns: 2 * CENT,
            throttled_ns: Some(30 * CENT),
        };
        assert_eq!(
            ledger_of(&ledger, "brunt", false).join(" · "),
            "server 0.75 · brunt 0.26 · other programs 0.97 (cargo 0.90, sh\\u{1b}[1m 0.07) \
             · kernel 0.06 · throttled 0.30 · idle 0.02 of 2"
        );
        assert_eq!(
            ledger_of(&ledger, "node", true)[..2].join(" · "),
            "node 0.75 · brunt 0.26 with polling"
        );
    }
}
