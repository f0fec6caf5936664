//! The environment of an experiment in words: machine, server and client.

use brunt_judge::SweepAxis;
use brunt_load::{LoadModel, Plan};
use brunt_record::{Environment, MachineDescription, ServerDescription};

use crate::page::{Page, Tone};
use crate::run::load::command;
use crate::units;
use crate::units::counted;

/// Agents that are named.
const AGENTS_SHOWN: usize = 8;

/// Rows for machine, server and client; on a full page also for the command.
pub(super) fn rows(environment: &Environment, brunt_version: &str, page: &mut Page) {
    for (label, items) in described(environment, brunt_version) {
        page.row(label, &items, Tone::Plain);
    }
    if let Some(words) = environment.command.as_ref().filter(|_| page.is_full()) {
        page.row("command", &[command(words)], Tone::Plain);
    }
}

/// What is known of each, by label.
fn described(environment: &Environment, brunt_version: &str) -> Vec<(&'static str, Vec<String>)> {
    let mut rows = Vec::new();
    let agents = &environment.agents;
    if !agents.is_empty() {
        let more = agents.len().saturating_sub(AGENTS_SHOWN);
        let mut items = vec![units::count(agents.len() as u64)];
        items.extend(agents.iter().take(AGENTS_SHOWN).cloned());
        items.extend((more > 0).then(|| format!("and {more} more")));
        rows.push(("agents", items));
    }
    let items = machine(&environment.machine);
    if !items.is_empty() {
        rows.push(("machine", items));
    }
    rows.extend(environment.server.iter().map(|it| ("server", server(it))));
    let mut items = vec![format!("brunt {brunt_version}")];
    if let Some(client) = &environment.client {
        items.push(client.backend.name().to_owned());
        let (cpus, descriptors) = (client.usable_cpus.into(), client.descriptors_limit);
        items.push(counted(cpus, "usable CPU", "usable CPUs"));
        items.push(counted(descriptors, "descriptor", "descriptors"));
        let ports = client.ports_available;
        items.extend(ports.map(|ports| counted(ports, "local port", "local ports")));
    }
    rows.push(("client", items));
    rows
}

/// What is known of a server.
pub(super) fn server(server: &ServerDescription) -> Vec<String> {
    let names = [Some(server.name.clone()), server.software.clone()];
    let mut items: Vec<String> = names.into_iter().flatten().collect();
    items.retain(|name| !name.is_empty());
    let processes = server.processes.map(u64::from);
    items.extend(processes.map(|count| counted(count, "process", "processes")));
    let threads = server.threads.map(u64::from);
    items.extend(threads.map(|count| counted(count, "thread", "threads")));
    let cpus = server.cpus;
    items.extend(cpus.map(|cpus| format!("may use {}", units::cpu_limit(cpus))));
    items
}

/// What is known of a machine.
pub(crate) fn machine(machine: &MachineDescription) -> Vec<String> {
    let cpus = machine.cpus.map(|cpus| counted(cpus.into(), "CPU", "CPUs"));
    let memory = machine.memory_bytes.map(units::bytes);
    let kernel = machine.kernel.as_ref();
    let known = [
        machine.processor.clone(),
        cpus,
        memory.map(|memory| format!("{memory} memory")),
        kernel.map(|kernel| format!("Linux {kernel}")),
        machine.distribution.clone(),
    ];
    known.into_iter().flatten().collect()
}

/// What its rates are of: requests or messages per second.
pub(super) fn per_s(load: Option<&Plan>) -> &'static str {
    load.map_or("req/s", |plan| plan.unit().per_s)
}

/// The load of a round in a few words, but for what is `varied`.
pub(super) fn load(plan: &Plan, varied: Option<SweepAxis>) -> Vec<String> {
    let mut items = Vec::new();
    let (outline, unit) = (plan.requests.outline(), plan.unit());
    let first = outline.first.as_ref();
    items.push(match (&outline.list, first) {
        (Some(list), _) => format!("a list of {} requests", units::count(list.requests)),
        (None, Some(first)) => first.method.clone(),
        (None, None) => "messages".to_owned(),
    });
    items.push(match &plan.model {
        LoadModel::Closed { .. } => "closed loop".to_owned(),
        LoadModel::Held { .. } => "nothing, connections held".to_owned(),
        LoadModel::Open { schedule, .. } => match schedule.rate_per_s() {
            _ if varied == Some(SweepAxis::Rate) => {
                format!("{} at each rate, {}", unit.many, schedule.process().name())
            }
            Some(rate) => {
                let (rate, process) = (units::rate(rate), schedule.process().name());
                format!("{rate} {}, {process}", unit.per_s)
            }
            None => format!("{} in stages", unit.many),
        },
        LoadModel::Sessions { schedule, .. } => match schedule.rate_per_s() {
            _ if varied == Some(SweepAxis::Rate) => "connections at each rate".to_owned(),
            Some(rate) => format!("{} connections/s", units::rate(rate)),
            None => "connections in stages".to_owned(),
        },
    });
    if varied != Some(SweepAxis::Connections) {
        let connections = plan.connections.get().into();
        items.push(counted(connections, "connection", "connections"));
    }
    if plan.pipeline.get() > 1 {
        items.push(format!("{} requests in flight on each", plan.pipeline));
    }
    if plan.streams.get() > 1 && varied != Some(SweepAxis::Streams) {
        items.push(format!("{} streams on each", plan.streams));
    }
    let body_bytes = first.map_or(0, |first| first.body_bytes);
    if body_bytes > 0 && varied != Some(SweepAxis::BodyBytes) {
        items.push(format!("bodies of {}", units::bytes(body_bytes)));
    }
    if plan.tls().is_some() {
        items.push("TLS".to_owned());
    }
    items
}
