//! Stored experiments of several rounds: sweeps, comparisons and searches for a capacity, in every
//! form.

mod capacity;
mod comparison;
mod sweep;

use std::io;

use brunt_judge::{Capacity, ComparedRounds, Sweep, SweepAxis};
use brunt_load::{LoadModel, Plan, Schedule};
use brunt_record::{Environment, MachineDescription, ServerDescription};

use crate::figures::Object;
use crate::foreign::{word, write_json};
use crate::layout::html::Head;
use crate::page::{Page, Tone};
use crate::run::load;
use crate::units::counted;
use crate::{Format, ReportError, Style, figures, layout, units};

pub use comparison::{limits_that, side_name};

/// An experiment, as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub enum Experiment {
    /// Rounds at several values of a setting.
    Sweep(Sweep),
    /// Rounds of several servers in turns.
    Comparison(ComparedRounds),
    /// A search for the highest rate that holds objectives.
    Capacity(Capacity),
}

impl Experiment {
    /// What the experiment is called in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sweep(_) => "sweep",
            Self::Comparison(_) => "comparison",
            Self::Capacity(_) => "search for a capacity",
        }
    }
}

/// Prints an experiment to `out` and flushes it. `style` matters to the text form only.
///
/// # Errors
///
/// When `out` refuses the bytes, or when a figure cannot be encoded.
pub fn write_experiment(
    experiment: &Experiment,
    format: Format,
    style: &Style,
    out: &mut dyn io::Write,
) -> Result<(), ReportError> {
    match (format, experiment) {
        (Format::Text, experiment) => out.write_all(text(experiment, style).as_bytes())?,
        (Format::Html, experiment) => out.write_all(html(experiment)?.as_bytes())?,
        (Format::Markdown, Experiment::Comparison(_)) => {
            let text = text(experiment, &layout::html::TEXT);
            out.write_all(layout::markdown("brunt compare", &text).as_bytes())?;
        }
        (Format::Markdown, _) => return Err(ReportError::MarkdownOfComparison),
        (Format::Json, Experiment::Sweep(sweep)) => write_json(out, &sweep::stored(sweep))?,
        (Format::Json, Experiment::Comparison(found)) => {
            write_json(out, &comparison::stored(found))?
        }
        (Format::Json, Experiment::Capacity(found)) => write_json(out, &capacity::stored(found))?,
        (Format::Summary, Experiment::Capacity(capacity)) => {
            figures::write_summary(&capacity::summary(capacity)?, out)?;
        }
        (Format::Summary, _) => return Err(ReportError::SummaryOfOneRun),
        (Format::Csv, Experiment::Sweep(sweep)) => sweep::table(sweep, out)?,
        (Format::Csv, Experiment::Comparison(compared)) => comparison::table(compared, out)?,
        (Format::Csv, Experiment::Capacity(capacity)) => {
            figures::write_summary_table(capacity::summary(capacity)?, out)?;
        }
    }
    Ok(out.flush()?)
}

fn sections(experiment: &Experiment, page: &mut Page) {
    match experiment {
        Experiment::Sweep(sweep) => sweep::sections(sweep, page),
        Experiment::Comparison(compared) => comparison::sections(compared, page),
        Experiment::Capacity(capacity) => capacity::sections(capacity, page),
    }
}

fn text(experiment: &Experiment, style: &Style) -> String {
    let mut page = Page::new(style);
    sections(experiment, &mut page);
    layout::text(&page, style.colour)
}

fn html(experiment: &Experiment) -> Result<String, ReportError> {
    let mut page = Page::unbroken();
    sections(experiment, &mut page);
    let (kind, heading, data) = match experiment {
        Experiment::Sweep(sweep) => (
            "sweep",
            word(&sweep.plan.url).into_owned(),
            sweep::charts(sweep),
        ),
        Experiment::Comparison(compared) => (
            "compare",
            comparison::sides(compared),
            comparison::charts(compared),
        ),
        Experiment::Capacity(capacity) => (
            "find",
            word(&capacity.plan.url).into_owned(),
            Object::new().with("search", capacity::chart(capacity)),
        ),
    };
    let head = Head {
        kind,
        title: format!("{kind}: {heading}"),
        heading,
        lines: Vec::new(),
        figures: Vec::new(),
    };
    layout::html::document(&head, &page, &data, &text(experiment, &layout::html::TEXT))
}

/// Writes what a search found as test results in JUnit's form: each of its objectives is a test.
///
/// # Errors
///
/// When `out` refuses the bytes.
pub fn write_search_junit(capacity: &Capacity, out: &mut dyn io::Write) -> Result<(), ReportError> {
    out.write_all(capacity::test_results(capacity).as_bytes())?;
    Ok(out.flush()?)
}

/// A value in a table that people read; a dash where it is not known.
fn known<T>(value: Option<T>, say: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), say)
}

/// A figure in a table; empty where it is not known.
fn figure(value: Option<impl ToString>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Agents that are named.
const AGENTS_SHOWN: usize = 8;

/// Rows for machine, server and client; on a full page also for the command.
fn environment(environment: &Environment, brunt_version: &str, page: &mut Page) {
    let agents = &environment.agents;
    if !agents.is_empty() {
        let mut items = vec![units::count(agents.len() as u64)];
        items.extend(agents.iter().take(AGENTS_SHOWN).cloned());
        page.row("agents", &items, Tone::Plain);
    }
    let items = machine(&environment.machine);
    page.row("machine", &items, Tone::Plain);
    if let Some(server) = &environment.server {
        page.row("server", &described_server(server), Tone::Plain);
    }
    let mut items = vec![format!("brunt {brunt_version}")];
    if let Some(client) = &environment.client {
        items.push(client.backend.name().to_owned());
        let (cpus, descriptors) = (client.usable_cpus.into(), client.descriptors_limit);
        items.push(counted(cpus, "usable CPU", "usable CPUs"));
        items.push(counted(descriptors, "descriptor", "descriptors"));
        let ports = client.ports_available;
        items.extend(ports.map(|ports| counted(ports, "local port", "local ports")));
    }
    page.row("client", &items, Tone::Plain);
    if let Some(words) = environment.command.as_ref().filter(|_| page.is_full()) {
        page.row("command", &[load::command(words)], Tone::Plain);
    }
}

/// What is known of a server.
fn described_server(server: &ServerDescription) -> Vec<String> {
    let mut items = vec![server.name.clone()];
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

/// Half of a rate, which leaves room, as options take it; absent below 1 per second.
fn half(per_s: f64) -> Option<String> {
    // Two digits are enough.
    let step = 10_f64.powf((per_s / 2.0).log10().floor() - 1.0);
    let half = (per_s / 2.0 / step).floor() * step;
    (half.is_finite() && half >= 1.0).then(|| format!("{half:.0}"))
}

/// What its rates are of: requests or messages per second.
fn per_s(load: Option<&Plan>) -> &'static str {
    load.map_or("req/s", |plan| plan.unit().per_s)
}

/// The load of a round in a few words, but for what is `varied`.
fn load_of(plan: &Plan, varied: Option<SweepAxis>) -> Vec<String> {
    let (outline, unit) = (plan.traffic.requests.outline(), plan.unit());
    let is_varied = |axis| varied == Some(axis);
    let rate = |schedule: &Schedule, unit: &str| {
        if is_varied(SweepAxis::Rate) {
            "at each rate".to_owned()
        } else {
            load::rate(schedule, unit)
        }
    };
    let first = outline.first.as_ref();
    let mut items = vec![match (&outline.list, first) {
        (Some(list), _) => format!("a list of {} requests", units::count(list.requests)),
        (None, Some(first)) => first.method.clone(),
        (None, None) => "messages".to_owned(),
    }];
    items.push(match &plan.load.model {
        LoadModel::Closed { .. } => "closed loop".to_owned(),
        LoadModel::Held { .. } => "nothing, connections held".to_owned(),
        LoadModel::Open { schedule, .. } => {
            format!("open loop, {}", rate(schedule, unit.per_s))
        }
        LoadModel::Sessions { schedule, .. } => {
            format!("sessions, {}", rate(schedule, "connections/s"))
        }
    });
    if !is_varied(SweepAxis::Connections) {
        let connections = plan.load.connections.get().into();
        items.push(counted(connections, "connection", "connections"));
    }
    let (pipeline, streams) = (plan.traffic.pipeline.get(), plan.traffic.streams.get());
    if pipeline > 1 {
        items.push(format!("{pipeline} requests in flight on each"));
    }
    if streams > 1 && !is_varied(SweepAxis::Streams) {
        items.push(format!("{streams} streams on each"));
    }
    let body_bytes = first.map_or(0, |first| first.body_bytes);
    if body_bytes > 0 && !is_varied(SweepAxis::BodyBytes) {
        items.push(format!("bodies of {}", units::bytes(body_bytes)));
    }
    if plan.tls().is_some() {
        items.push("TLS".to_owned());
    }
    items
}
