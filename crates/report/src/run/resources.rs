//! What client and server used: their CPU, memory and descriptors, side by side; what the evidence
//! cost, and what of it is missing.

use brunt_judge::{CpuLedger, Figure, Judged, Summary};
use brunt_record::{CpuUse, Evidence, Route, Run, ServerEvidence, ServerScope};

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
    generator(run, summary, page);
    if is_full {
        client(run, summary, page);
    }
    server(judged, page);
    page.row("CPUs", &cpus(run, is_full), Tone::Plain);
    if is_full && run.is_plain() {
        for (cpu, items) in each_cpu(run) {
            page.row(&format!("  CPU {cpu}"), &items, Tone::Plain);
        }
    }
}

/// CPUs that have a row of their own.
const CPUS_MAX: usize = 20;
/// The report leaves out other programs, and parts of the CPU time, that used fewer CPUs than this.
const CPUS_LISTED_LEAST: f64 = 0.01;
/// Unless the page is full, the report leaves out other programs, and parts of the CPU time, that
/// used fewer CPUs than this.
const CPUS_NOTICEABLE: f64 = 0.05;
/// A smaller share of the workers' time for a script or sessions is not worth a word.
const SCRIPT_SHARE_MIN: f64 = 0.001;
/// Process ids named.
const PIDS_MAX: usize = 8;

/// What brunt itself used; with how near that is to the most it reaches on this machine.
fn client(run: &Run, summary: &Summary, page: &mut Page) {
    let mut items = Vec::new();
    match run.client_cpu() {
        // Each worker can use a CPU.
        Ok(cpu) => items.push(cpu_of(&cpu, Some(cpus_of_workers(run).into()))),
        Err(reason) => items.push(format!("CPU not known: {reason}")),
    }
    if let Figure::Known(ns) = cpu_ns_per_reply(run, summary) {
        let cpu = units::duration(ns.round() as u64);
        let is_polled = summary.spun_ns > 0;
        let polling = if is_polled { ", polling included" } else { "" };
        items.push(format!("{cpu} CPU per reply{polling}"));
    }
    if summary.spun_ns > 0 {
        items.push(format!("polled for {}", units::duration(summary.spun_ns)));
    }
    let peak_bytes = run.peak_resident_bytes();
    if peak_bytes > 0 {
        items.push(if run.is_plain() {
            units::bytes(peak_bytes)
        } else {
            format!("{} at most each", units::bytes(peak_bytes))
        });
    }
    page.row("client", &items, Tone::Plain);
}

/// What made the requests while the run went on, where something did.
fn generator(run: &Run, summary: &Summary, page: &mut Page) {
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
        let again = sessions.reconnected;
        if again > 0 {
            items.push(counted(again, "further connection", "further connections"));
        }
    }
    let issued = summary.population.issued as f64;
    if let Figure::Known(ns) = Figure::ratio(used.time_ns() as f64, issued, "") {
        let time = units::duration(ns.round() as u64);
        items.push(format!("took {time} per request"));
    }
    let share = used.share(workers, run.window_ns);
    if let Some(share) = share.filter(|&share| share >= SCRIPT_SHARE_MIN) {
        let is_one = run.workers().count() == 1;
        let whose = if is_one {
            "the worker's"
        } else {
            "the workers'"
        };
        items.push(format!("{} of {whose} time", units::percent(share)));
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

/// CPUs that the workers can use: one each.
fn cpus_of_workers(run: &Run) -> u32 {
    let agents = run.agents.iter();
    let cpus = agents.map(|agent| agent.host.usable_cpus.min(agent.share.workers));
    cpus.fold(0, u32::saturating_add)
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

/// Who had the CPUs of brunt's machine; of several machines each agent's is in the data. `is_full`:
/// with who had little of them.
fn cpus(run: &Run, is_full: bool) -> Vec<String> {
    let Some(ledger) = CpuLedger::of(run.first()).filter(|_| run.is_plain()) else {
        return Vec::new();
    };
    let server = run.first().evidence.server.as_ref();
    let name = server.map_or("server", |server| server.name.as_str());
    let least = if is_full {
        CPUS_LISTED_LEAST
    } else {
        CPUS_NOTICEABLE
    };
    ledger_of(&ledger, name, least)
}

/// What each CPU did that workers or the server could use: `busy 0.98 (interrupts 0.08), idle
/// 0.02`. Who of them ran where is not known.
fn each_cpu(run: &Run) -> Vec<(u32, Vec<String>)> {
    let evidence = &run.first().evidence;
    let server = evidence.server.as_ref();
    let is_used = |cpu: u32| {
        let of_server = server.is_some_and(|server| server.cpu_list.contains(&cpu));
        of_server || evidence.host.client_cpus.contains(&cpu)
    };
    let cpus = evidence.host.cpus.iter();
    let used = cpus.filter(|times| is_used(times.cpu) && times.total_ns() > 0);
    let rows = used.map(|times| {
        let of = |ns: u64| units::cpus(ns as f64 / times.total_ns() as f64);
        let (busy, interrupts) = (of(times.busy_ns), of(times.softirq_ns));
        let mut items = vec![format!("busy {busy} (interrupts {interrupts})")];
        items.extend((times.steal_ns > 0).then(|| format!("stolen {}", of(times.steal_ns))));
        items.push(format!("idle {}", of(times.idle_ns)));
        (times.cpu, items)
    });
    rows.take(CPUS_MAX).collect()
}

/// The ledger in words: `node 0.75`, `brunt 0.26`, `idle 0.99 of 2`.
fn ledger_of(ledger: &CpuLedger, server: &str, least: f64) -> Vec<String> {
    let cpus = |ns: u64| units::cpus(ledger.in_cpus(ns));
    let is_listed = |ns: u64| ledger.in_cpus(ns) >= least;
    let mut items = Vec::new();
    if let Some(ns) = ledger.server_ns {
        // Brunt's own server has brunt's name.
        let name = if server == "brunt" { "server" } else { server };
        items.push(format!("{} {}", printable(name), cpus(ns)));
    }
    items.push(format!("brunt {}", cpus(ledger.client_ns)));
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
    let share = |ns: u64| ns as f64 / server.interval_ns as f64;
    let is_known = server.interval_ns > 0;
    let mut items = Vec::new();
    if let Some(threads) = server.threads.filter(|_| is_known) {
        let [busy, saturated] =
            [threads.active, threads.saturated].map(|count| units::count(count.into()));
        items.push(format!("{busy} busy, {saturated} saturated"));
        let busiest = units::cpus_used(share(threads.busiest_cpu_ns), None);
        items.push(format!("the busiest {busiest}"));
    }
    if let Some(wait_ns) = server.run_queue_wait_ns {
        items.push(format!("waited {} for a CPU", units::duration(wait_ns)));
    }
    if let Some(cpus) = server.idle_cpus_used {
        items.push(format!("{} before the load", units::cpus_used(cpus, None)));
    }
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

/// What was read, and what could not be.
fn evidence_of(evidence: &Evidence, page: &mut Page) {
    page.row("evidence", &observer(evidence), Tone::Plain);
    // The row of the server says why there is none.
    let missing = evidence.missing.iter();
    for (name, reason) in missing.filter(|(name, _)| name.as_str() != "server") {
        page.row("  missing", &[format!("{name}: {reason}")], Tone::Plain);
    }
    let network = evidence.network.as_ref();
    if let Some(Route::Interface {
        name,
        dropped_packets,
        ..
    }) = network.map(|network| &network.route)
    {
        let drops = format!("{name} drops {}", units::count(*dropped_packets));
        page.row("network", &[drops], Tone::Plain);
    }
}

/// What reading cost.
fn observer(evidence: &Evidence) -> Vec<String> {
    let observer = &evidence.observer;
    if observer.readings == 0 {
        return vec!["not read".to_owned()];
    }
    let readings = counted(observer.readings, "reading", "readings");
    let mut items = vec![format!(
        "{readings}, one per {}",
        units::duration(observer.pause_ns)
    )];
    let (used_ns, interval_ns) = (observer.cpu_ns as f64, evidence.interval_ns as f64);
    if let Figure::Known(share) = Figure::ratio(used_ns, interval_ns, "") {
        items.push(format!("reading took {share:.4} CPUs"));
    }
    items
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
                program("x", 0),
            ],
            unaccounted_ns: 2 * CENT,
            steal_ns: CENT,
            idle_ns: 2 * CENT,
            throttled_ns: Some(30 * CENT),
        };
        assert_eq!(
            ledger_of(&ledger, "brunt", CPUS_LISTED_LEAST).join(" · "),
            "server 0.75 · brunt 0.26 · other programs 0.97 (cargo 0.90, sh\\u{1b}[1m 0.07) \
             · kernel 0.02 · stolen 0.01 · throttled 0.30 · idle 0.02 of 2"
        );
        let listed = ledger_of(&ledger, "node", 0.1);
        assert_eq!(listed[2], "other programs 0.97 (cargo 0.90)");
    }
}
