//! What the full report adds about the evidence: what it cost, and what is missing.

use brunt_judge::Figure;
use brunt_record::{Evidence, Route, Run};

use crate::page::{Page, Tone};
use crate::units::{self, counted};

/// Prints all of it.
pub(super) fn rows(run: &Run, page: &mut Page) {
    for (number, agent) in (1..).zip(&run.agents) {
        if !run.is_plain() {
            let id = std::slice::from_ref(&agent.id);
            page.row(&format!("agent {number}"), id, Tone::Plain);
        }
        of_agent(&agent.evidence, page);
    }
}

/// What was read, and what could not be.
fn of_agent(evidence: &Evidence, page: &mut Page) {
    page.row("evidence", &observer(evidence), Tone::Plain);
    // Why there is no server is told by its own row.
    let missing = evidence.missing.iter();
    for (name, reason) in missing.filter(|(name, _)| name.as_str() != "server") {
        page.row("  missing", &[format!("{name}: {reason}")], Tone::Plain);
    }
    let network = network(evidence);
    if !network.is_empty() {
        page.row("network", &network, Tone::Plain);
    }
}

/// What reading cost.
fn observer(evidence: &Evidence) -> Vec<String> {
    let observer = &evidence.observer;
    if observer.readings == 0 {
        return vec!["none was read".to_owned()];
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

/// What the kernel held and threw away on the way to the server, and its work for it.
fn network(evidence: &Evidence) -> Vec<String> {
    let network = evidence.network.as_ref();
    let mut items = Vec::new();
    if let Some(sockets) = network.and_then(|network| network.time_wait) {
        items.push(format!("time-wait {}", units::count(sockets)));
    }
    if let Some(Route::Interface {
        name,
        dropped_packets,
        ..
    }) = network.map(|network| &network.route)
    {
        items.push(format!("{name} drops {}", units::count(*dropped_packets)));
    }
    let host = &evidence.host;
    let (mut softirq_ns, mut total_ns) = (0_u64, 0_u64);
    for times in &host.cpus {
        if host.client_cpus.contains(&times.cpu) {
            softirq_ns = softirq_ns.saturating_add(times.softirq_ns);
            total_ns = total_ns.saturating_add(times.total_ns());
        }
    }
    if let Figure::Known(share) = Figure::ratio(softirq_ns as f64, total_ns as f64, "") {
        items.push(format!("brunt's CPUs {} in softirq", units::percent(share)));
    }
    items
}
