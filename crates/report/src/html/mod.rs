//! A run as one HTML page that needs no network: verdict first, then figures and charts. Its words
//! and numbers are those of the text report.

mod assets;
pub(crate) mod chart;
pub(crate) mod document;
pub(crate) mod escape;
mod latencies;
mod over_time;
mod phases;
pub(crate) mod rows;
mod streams;
mod summary;

use std::fmt::Write;

use brunt_judge::{Judged, Verdict};

use self::chart::Chart;
use self::over_time::OverTime;
use crate::experiment::environment;
use crate::text::layout::{Page, Tone};
use crate::text::{self, agents, evidence, latency, load, names, outage, resources, stages};
use crate::{ReportError, Style, shortened, units};

/// The page of a run.
///
/// # Errors
///
/// When a chart has no JSON form.
pub(crate) fn page(judged: &Judged<'_>) -> Result<String, ReportError> {
    let run = judged.run;
    let is_withheld = judged.withheld().is_some();
    let over_time = OverTime::new(judged);
    let charts = Charts::new(judged, &over_time);
    let mut body = String::from("<main>\n");
    body.push_str(&summary::head(judged));
    body.push_str(&summary::verdict(judged));
    body.push_str(&summary::objectives(judged));
    body.push_str(&summary::tiles(judged));
    body.push_str(&summary::notes(judged));
    body.push_str(NO_SCRIPT);
    let figures = charts.figures(&["bandwidth", "throughput", "latency"]);
    let figures = match figures.is_empty() {
        true => "<p class=\"empty\">No request of the window succeeded: nothing to draw.</p>\n"
            .to_owned(),
        false => figures,
    };
    section("over-time", "Over time", &figures, &mut body);
    let latency = charts.figures(&["percentiles", "heat"]) + &latency_table(judged);
    section("latency-table", "Response times", &latency, &mut body);
    let by_name = by_name(judged);
    section("by-name", "By request", &by_name, &mut body);
    let by_stage = rows::rows(|page| stages::table(run, is_withheld, true, page));
    section("by-stage", "By stage", &by_stage, &mut body);
    let outcome = outcome(judged) + &charts.figures(&["errors", "waiting", "connections"]);
    section(
        "outcome",
        "Requests, errors and connections",
        &outcome,
        &mut body,
    );
    let used = charts.figures(&["cpu", "memory", "own"]) + &resources(judged);
    section("resources", "Client and server", &used, &mut body);
    body.push_str(&phases::section(run));
    let checks = rows::rows(|page| checks(judged, page));
    section(
        "checks",
        "Signals and checks",
        &details("All signals and invariants", &checks),
        &mut body,
    );
    section(
        "environment",
        "Environment and command",
        &surroundings(judged),
        &mut body,
    );
    body.push_str("</main>\n");
    let title = format!(
        "{}: {}",
        judged.judgement.verdict.name(),
        shortened::word(&run.plan.urls())
    );
    let window_s = run.window_ns as f64 / 1e9;
    document::document(&title, &body, window_s, &charts.drawn())
}

/// Most names of requests that have a row.
const NAMES_MAX: usize = 500;

/// What a reader without scripts is told in place of charts.
pub(crate) const NO_SCRIPT: &str = "<noscript><p class=\"remark\">Charts need JavaScript. \
                                    Below each heading the same is there as a table.</p>\
                                    </noscript>\n";

/// Adds a section, unless there is nothing in it.
pub(crate) fn section(id: &str, title: &str, content: &str, body: &mut String) {
    if !content.is_empty() {
        // Writing to a string does not fail.
        _ = writeln!(
            body,
            "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{title}</h2>\n{content}</section>"
        );
    }
}

/// What is there for those who want it.
pub(crate) fn details(title: &str, content: &str) -> String {
    format!("<details><summary>{title}</summary>\n{content}</details>\n")
}

/// The figures of charts, side by side; empty without any.
pub(crate) fn figures<'a>(charts: impl Iterator<Item = &'a Chart>) -> String {
    let figures: String = charts.map(Chart::figure).collect();
    if figures.is_empty() {
        return figures;
    }
    format!("<div class=\"figures\">\n{figures}</div>\n")
}

/// The charts of a run that have something to show.
struct Charts(Vec<Chart>);

impl Charts {
    fn new(judged: &Judged<'_>, over_time: &OverTime<'_>) -> Self {
        let is_withheld = judged.withheld().is_some();
        let charts = [
            streams::chart(judged).filter(|_| !is_withheld),
            // Where there is no rate, there is none over time.
            (!is_withheld && judged.run.has_units()).then(|| over_time.throughput()),
            Some(over_time.latency()),
            latencies::percentiles(judged.run),
            latencies::heat_map(over_time),
            Some(over_time.errors()),
            Some(over_time.waiting()),
            over_time.connections(),
            Some(over_time.own_share()),
            Some(over_time.cpu()),
            over_time.memory(),
        ];
        let charts = charts.into_iter().flatten();
        Self(charts.filter(|chart| !chart.is_empty()).collect())
    }

    /// The figures of those with these names, side by side; empty without any.
    fn figures(&self, ids: &[&str]) -> String {
        let find = |id: &&str| self.0.iter().find(|chart| chart.id == *id);
        figures(ids.iter().filter_map(find))
    }

    /// All charts that are drawn.
    fn drawn(&self) -> Vec<&Chart> {
        self.0.iter().collect()
    }
}

/// The table of the response times; empty where there are no requests.
fn latency_table(judged: &Judged<'_>) -> String {
    if !judged.run.has_units() {
        return String::new();
    }
    rows::rows(|page| latency::table(judged, true, page))
}

/// The requests of a list by their names, as long as those are; empty for a single request.
fn by_name(judged: &Judged<'_>) -> String {
    let names = &judged.run.names;
    if names.is_empty() {
        return String::new();
    }
    let heads: Vec<&str> = [judged.run.unit().one]
        .into_iter()
        .chain(names::HEADINGS)
        .collect();
    let rows = names.iter().take(NAMES_MAX).map(|name| {
        let mut row = vec![name.name.to_string()];
        row.extend(names::cells(name));
        row
    });
    let mut table = rows::table(&heads, rows, false);
    if names.len() > NAMES_MAX {
        let [shown, all] = [NAMES_MAX, names.len()].map(|it| units::count(it as u64));
        _ = writeln!(table, "<p class=\"empty\">The first {shown} of {all}.</p>");
    }
    table
}

/// Outcomes of the requests, and of the connections.
fn outcome(judged: &Judged<'_>) -> String {
    let (run, summary) = (judged.run, &judged.summary);
    let is_withheld = judged.withheld().is_some();
    if run.is_streams() {
        return rows::rows(|page| {
            text::bandwidth::rows(judged, true, page);
            text::failures(run, summary, page);
            text::connections(run, summary, true, page);
        });
    }
    if run.is_held() {
        return rows::rows(|page| {
            text::held::rows(judged, page);
            text::failures(run, summary, page);
            text::beside(run, summary, page);
        });
    }
    rows::rows(|page| {
        text::throughput(judged, true, page);
        text::arrivals(run, summary, is_withheld, true, page);
        text::requests(run, summary, false, page);
        text::connections(run, summary, true, page);
        text::whole_run(run, summary, false, page);
        if judged.judgement.verdict == Verdict::ServerFailed {
            outage::rows(run, true, page);
        }
        agents::rows(judged, true, page);
    })
}

/// What client and server used.
fn resources(judged: &Judged<'_>) -> String {
    let (run, summary) = (judged.run, &judged.summary);
    let is_withheld = judged.withheld().is_some();
    rows::rows(|page| resources::used(run, summary, is_withheld, page))
}

/// Signals and invariants, one by one.
fn checks(judged: &Judged<'_>, page: &mut Page) {
    text::verdict::signals(&judged.judgement, page);
    text::checks(judged, &[], true, page);
}

/// Where it ran, how it was asked for, and all of it as text.
fn surroundings(judged: &Judged<'_>) -> String {
    let run = judged.run;
    let commands: String = load::commands(run)
        .iter()
        .map(|it| format!("<pre class=\"command\">{}</pre>\n", escape::text(it)))
        .collect();
    let known = rows::rows(|page| {
        text::asked(run, page);
        let begun = units::date_time(run.first().clock.window_start_unix_ms);
        page.row("window", &[format!("began {begun}")], Tone::Plain);
        page.row(
            "brunt",
            &[format!("version {}", run.brunt_version)],
            Tone::Plain,
        );
        for machine in run.agents.iter().filter_map(|agent| agent.machine.as_ref()) {
            page.row("machine", &environment::machine(machine), Tone::Plain);
        }
        evidence::rows(run, page);
    });
    let style = Style {
        verbose: true,
        width: 100,
        ..Style::default()
    };
    let whole = escape::lines(&text::page(judged, &style));
    let whole = details("The whole report as text", &format!("<pre>{whole}</pre>\n"));
    commands + &known + &whole
}
