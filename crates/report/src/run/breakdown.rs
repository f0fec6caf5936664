//! Tables of what the figures are of: the stages of a schedule, the requests of a list by their
//! names, and the agents of a merged run.

use std::cmp::Reverse;

use brunt_judge::{Figure, Judged, Quantile, ResponseQuantiles, Summary};
use brunt_load::Schedule;
use brunt_record::{AgentRecord, FleetAgent, NameRecord, Run, max_at_least_ns};

use super::latency::{cell, known_or};
use crate::figures::{RecordedStage, recorded_stages};
use crate::foreign::{printable, shortened};
use crate::page::{Grid, Page, Tone};
use crate::units::{self, counted};

/// All columns take 80 of the page.
const STAGES: Grid = Grid {
    label: 20,
    cell: 10,
};
/// The columns behind the rate asked for.
const STAGE_HEADINGS: [&str; 6] = ["planned", "not ok", "ok/s", "p50", "p99", "max"];
/// Most stages that have a row where nothing more was asked for.
const STAGES_MAX: usize = 12;

/// Prints the table where there is more than one stage; on a full page whatever their number.
pub(super) fn stages(judged: &Judged<'_>, page: &mut Page) {
    let (run, is_withheld) = (judged.run, judged.withheld().is_some());
    let asked = run
        .plan
        .load
        .model
        .schedule()
        .map_or(&[][..], Schedule::stages);
    if asked.len() < 2 {
        return;
    }
    let recorded = match recorded_stages(run) {
        Ok(stages) => stages,
        Err(reason) => {
            let reason = format!("results of each are {reason}");
            return page.row("stages", &[reason], Tone::Plain);
        }
    };
    let rows = if page.is_full() {
        asked.len()
    } else {
        STAGES_MAX
    };
    page.table_head(STAGES, "stages", &STAGE_HEADINGS, "");
    for stage in recorded.iter().take(rows) {
        let [from, to] = [stage.asked.from_per_s, stage.asked.to_per_s].map(units::rate);
        let label = if from == to {
            format!("  {from}/s")
        } else {
            format!("  {from}..{to}/s")
        };
        if stage.measured_ns == 0 {
            let never = "the window ended before it".to_owned();
            page.row(&label, &[never], Tone::Plain);
            continue;
        }
        let cells = stage_cells(stage, is_withheld);
        page.table_row(STAGES, &label, &cells, "", Tone::Plain);
    }
    if recorded.len() > rows {
        let more = format!("{} more: -v has them all", recorded.len() - rows);
        page.row("", &[more], Tone::Plain);
    }
}

fn stage_cells(stage: &RecordedStage<'_>, is_withheld: bool) -> [String; STAGE_HEADINGS.len()] {
    let record = stage.record;
    let planned = record.arrivals.planned;
    let rate = stage.successes_per_s().known().filter(|_| !is_withheld);
    let quantile = |q| cell(record.response_quantile(q));
    [
        units::count(planned),
        units::count(planned.saturating_sub(record.response.count())),
        rate.map_or_else(|| "-".to_owned(), units::rate),
        quantile(0.5),
        quantile(0.99),
        known_or(
            record.response.max_ns(),
            max_at_least_ns(&record.response, &record.unfinished),
        ),
    ]
}

/// All columns take 79 of the page.
const NAMES: Grid = Grid { label: 34, cell: 9 };
/// Two spaces before a name, and one behind.
const SPACES: usize = 3;
const NAME_HEADINGS: [&str; 5] = ["sent", "not ok", "p50", "p99", "max"];
/// Names that have a row where nothing more was asked for.
const NAMES_MAX: usize = 10;

/// Prints the table where there are names; on a full page with a row for each.
pub(super) fn names(run: &Run, page: &mut Page) {
    if run.names.is_empty() {
        return;
    }
    let all = run.names.len();
    let mut shown: Vec<&NameRecord> = run.names.iter().collect();
    let title = if all > NAMES_MAX && !page.is_full() {
        shown.sort_by_cached_key(|name| Reverse(badness(name)));
        shown.truncate(NAMES_MAX);
        format!("the worst {NAMES_MAX} of {}", units::count(all as u64))
    } else {
        format!("by {}", run.unit().one)
    };
    page.table_head(NAMES, &title, &NAME_HEADINGS, "");
    for name in shown {
        let label = shortened(&printable(&name.name), NAMES.label - SPACES).into_owned();
        let label = format!("  {label}");
        page.table_row(NAMES, &label, &name_cells(name), "", Tone::Plain);
    }
}

/// What is worse comes later: first by the share of what did not succeed, in thousandths, then by
/// the 99th percentile, or the longest where there are too few for it.
fn badness(name: &NameRecord) -> (u64, u64) {
    let tail_ns = match name.response_quantile(0.99) {
        Quantile::Known { ns, .. } | Quantile::AtLeast { ns } => ns,
        Quantile::TooFew { .. } => name.response.max_ns().unwrap_or(0),
    };
    let share = not_ok(name).saturating_mul(1_000) / name.population.issued.max(1);
    (share, tail_ns)
}

/// Requests that were issued in the window and did not succeed.
fn not_ok(name: &NameRecord) -> u64 {
    let successes = name.response.count();
    name.population.issued.saturating_sub(successes)
}

/// The cells of a name, by the headings.
fn name_cells(name: &NameRecord) -> [String; NAME_HEADINGS.len()] {
    let quantile = |q| cell(name.response_quantile(q));
    let (ns, bound_ns) = (name.response.max_ns(), name.unfinished.max_ns());
    // Absent is less than any.
    let bound_ns = bound_ns.filter(|_| bound_ns > ns);
    [
        units::count(name.population.issued),
        units::count(not_ok(name)),
        quantile(0.5),
        quantile(0.99),
        known_or(ns, bound_ns),
    ]
}

/// Characters of an id that are shown: enough to tell a few apart.
const ID_CHARS: usize = 8;

/// The rows of the agents; none where there is one. On a full page with what they ran on, and from
/// when on.
pub(super) fn agents(judged: &Judged<'_>, page: &mut Page) {
    let run = judged.run;
    for lost in &run.lost_agents {
        let items = [
            printable(&lost.name).into_owned(),
            printable(&lost.reason).into_owned(),
            counted(lost.workers.into(), "worker", "workers"),
            "no result".to_owned(),
        ];
        page.row("lost agent", &items, Tone::Warning);
    }
    let Some(overlap) = run.overlap() else {
        return;
    };
    let is_broken = !judged.is_valid();
    let is_one_load = run.not_one_load().is_none();
    let (words, tone) = if is_one_load {
        ("rates are added up", Tone::Plain)
    } else {
        ("too little for a common rate", Tone::Warning)
    };
    let items = [
        units::count(run.agents.len() as u64),
        format!("their windows overlap by {}", units::percent(overlap)),
        words.to_owned(),
    ];
    page.row("agents", &items, tone);
    for (number, agent) in (1..).zip(run.agents.chunks(1)) {
        let is_full = page.is_full() || !is_one_load;
        let items = of_agent(run, agent, is_broken, is_full);
        page.row(&format!("  agent {number}"), &items, Tone::Plain);
    }
}

fn of_agent(run: &Run, one: &[AgentRecord], is_broken: bool, is_full: bool) -> Vec<String> {
    let (agent, summary) = (&one[0], Summary::of(run, one));
    let name = match &agent.fleet {
        Some(fleet) => printable(&fleet.name).into_owned(),
        None => format!("id {:.ID_CHARS$}", agent.id),
    };
    let mut items = vec![
        name,
        counted(agent.share.connections.into(), "connection", "connections"),
        counted(agent.share.workers.into(), "worker", "workers"),
    ];
    if is_full {
        let [start_ms, first_ms] =
            [agent, run.first()].map(|agent| agent.clock.window_start_unix_ms);
        let later_ns = start_ms.saturating_sub(first_ms).saturating_mul(1_000_000);
        items.push(agent.backend.name().to_owned());
        items.push(match later_ns {
            0 => format!("from {}", units::date_time(start_ms)),
            _ => format!("{} after agent 1", units::duration(later_ns)),
        });
    }
    let successes = summary.window.replies.successes();
    items.push(format!("{} ok", units::count(successes)));
    let rate = summary.successes_per_s.known().filter(|_| !is_broken);
    items.extend(rate.map(|rate| format!("{} {}", units::rate(rate), run.unit().per_s)));
    if let Some(fleet) = &agent.fleet {
        items.extend(of_fleet(fleet).into_iter().filter(|_| !is_broken));
        items.extend(cpus_busy(agent));
        let bounds = fleet.clock.iter();
        let bounds = bounds.map(|bound| bound.start_bound_ns.max(bound.end_bound_ns));
        items.extend(bounds.map(|ns| format!("clock known to ±{}", units::duration(ns))));
    }
    if agent.interrupted {
        items.push("interrupted".to_owned());
    }
    items
}

/// What its coordinator found of its part alone.
fn of_fleet(fleet: &FleetAgent) -> Vec<String> {
    let p99 = fleet.response_p99_ns;
    let p99 = p99.map(|ns| format!("p99 {}", units::duration(ns)));
    let own = fleet.own_share;
    let own =
        own.map(|share| format!("brunt added {} of the response time", units::percent(share)));
    let verdict = printable(&fleet.verdict).into_owned();
    p99.into_iter().chain(own).chain([verdict]).collect()
}

/// The CPUs that it used, on average over the window.
fn cpus_busy(agent: &AgentRecord) -> Option<String> {
    let host = &agent.host;
    let used_ns = host.cpu_user_ns.saturating_add(host.cpu_system_ns);
    let cpus = Figure::ratio(used_ns as f64, host.cpu_interval_ns as f64, "").known()?;
    Some(units::cpus_used(cpus, None))
}
