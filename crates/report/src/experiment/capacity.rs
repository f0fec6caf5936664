//! A search for a capacity for people, in Markdown, in CSV, and as it is stored.

use std::fmt::Write;
use std::io;

use brunt_measure::{
    Capacity, CapacityOutcome, CapacityResult, CapacityStage, CapacityStep, Objective,
    ROUND_QUANTILES,
};
use serde::Serialize;

use super::{csv, environment, figure};
use crate::figures::data_name;
use crate::shortened::word;
use crate::text::layout::{Grid, Page, Tone};
use crate::{ReportError, Style, markdown, objective, units};

/// Columns of the table of steps.
const STEPS: Grid = Grid { label: 8, cell: 9 };

/// A search as it is stored: its own fields, and a `result` that is derived from them.
#[derive(Debug, Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "StoredCapacity")
)]
pub struct StoredCapacity<'a> {
    /// The search.
    #[serde(flatten)]
    pub capacity: &'a Capacity,
    /// Its outcome; ignored when the search is read again.
    pub result: CapacityResult,
    /// The same in words.
    pub says: String,
}

impl<'a> StoredCapacity<'a> {
    /// With its outcome.
    pub fn of(capacity: &'a Capacity) -> Self {
        Self {
            capacity,
            result: capacity.result(),
            says: says(capacity),
        }
    }
}

/// The outcome of a search, in a sentence.
pub(super) fn says(capacity: &Capacity) -> String {
    let unit = environment::per_s(capacity.load.as_ref());
    let rate = |per_s: f64| format!("{} {unit}", units::rate(per_s));
    match capacity.result() {
        CapacityResult::Found {
            rate_per_s,
            missed_per_s,
        } => format!(
            "{} is the highest rate that holds, confirmed {} times; {} misses",
            rate(rate_per_s),
            brunt_measure::CONFIRMATIONS,
            rate(missed_per_s)
        ),
        CapacityResult::AtLeast { rate_per_s } => format!(
            "{} holds, the highest rate that was to be tried (--max-rate)",
            rate(rate_per_s)
        ),
        CapacityResult::ClientLimited {
            rate_per_s,
            limited_per_s,
        } => {
            let held = rate_per_s.map_or_else(
                || "nothing is known of the server".to_owned(),
                |per_s| format!("the server holds at least {}", rate(per_s)),
            );
            format!(
                "brunt or its machine is the limit at {}: {held}",
                rate(limited_per_s)
            )
        }
        CapacityResult::NotMet { missed_per_s } => {
            format!("the objectives are missed even at {}", rate(missed_per_s))
        }
        CapacityResult::Nothing {
            reason,
            met_per_s,
            missed_per_s,
        } => {
            let mut words = format!("no result: {reason}");
            if let Some(met) = met_per_s {
                let _ = write!(words, "; {} held, not confirmed", rate(met));
            }
            if let Some(missed) = missed_per_s {
                let _ = write!(words, "; {} missed", rate(missed));
            }
            words
        }
    }
}

pub(super) fn asked(capacity: &Capacity) -> Vec<String> {
    capacity
        .plan
        .objectives
        .iter()
        .map(objective::asked)
        .collect()
}

pub(super) fn stage(stage: CapacityStage) -> &'static str {
    match stage {
        CapacityStage::Bracket => "bracket",
        CapacityStage::Bisection => "bisect",
        CapacityStage::Confirmation => "confirm",
    }
}

pub(super) fn outcome(outcome: CapacityOutcome) -> &'static str {
    match outcome {
        CapacityOutcome::Met => "met",
        CapacityOutcome::Missed => "MISSED",
        CapacityOutcome::ClientLimited => "CLIENT-LIMITED",
        CapacityOutcome::Undecided => "undecided",
        CapacityOutcome::Invalid => "INVALID",
    }
}

/// The same in data.
pub(super) fn data_outcome(found: CapacityOutcome) -> String {
    outcome(found).to_lowercase().replace('-', "_")
}

/// The quantile that is shown: that of the first objective that has one.
pub(super) fn quantile(capacity: &Capacity) -> (String, f64) {
    let objectives = capacity.plan.objectives.iter();
    let asked = objectives.filter_map(|it| match it {
        Objective::ResponseQuantile { q, .. } => Some(*q),
        _ => None,
    });
    let q = asked.into_iter().next().unwrap_or(0.99);
    (super::words::quantile(q), q)
}

/// What a step measured of it, nanoseconds, and its pessimistic end.
fn measured(step: &CapacityStep, q: f64) -> (Option<f64>, Option<f64>) {
    let found = step.objectives.iter().find_map(|it| match it.objective {
        Objective::ResponseQuantile { q: of, .. } if of == q => Some((it.measured, it.bound)),
        _ => None,
    });
    let known = || step.record.response.quantile_ns(q).map(|ns| ns as f64);
    found.unwrap_or_else(|| (known(), None))
}

/// Why a step did not hold; empty where it did.
fn because(step: &CapacityStep) -> String {
    if !step.because.is_empty() {
        return step.because.clone();
    }
    let missed = step.objectives.iter().filter(|it| !it.is_met);
    let missed: Vec<String> = missed.map(|it| objective::line(&it.outcome())).collect();
    missed.join("; ")
}

fn ns(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |ns| units::duration(ns as u64))
}

pub(super) fn cells(step: &CapacityStep, q: f64) -> [String; 6] {
    let (value, bound) = measured(step, q);
    let share = step.record.error_share();
    [
        units::rate(step.rate_per_s),
        units::duration(step.record.window_ns),
        step.record
            .successes_per_s
            .map_or_else(|| "-".to_owned(), units::rate),
        ns(value),
        ns(bound),
        share.map_or_else(|| "-".to_owned(), units::percent),
    ]
}

/// For people.
pub(super) fn text(capacity: &Capacity, style: &Style) -> String {
    let mut page = Page::new(style);
    page.row(
        "find",
        &[word(&capacity.plan.url).into_owned()],
        Tone::Plain,
    );
    page.row("objectives", &asked(capacity), Tone::Plain);
    environment::rows(
        &capacity.environment,
        &capacity.brunt_version,
        style.verbose,
        &mut page,
    );
    page.blank();
    let (name, q) = quantile(capacity);
    let unit = environment::per_s(capacity.load.as_ref());
    let head = ["rate", "window", unit, &name, "up to", "errors"].map(str::to_owned);
    page.table_row(STEPS, "step", &head, "", Tone::Plain);
    for step in &capacity.steps {
        let tone = match step.outcome {
            CapacityOutcome::Met => Tone::Plain,
            CapacityOutcome::Missed | CapacityOutcome::Undecided => Tone::Warning,
            CapacityOutcome::ClientLimited | CapacityOutcome::Invalid => Tone::Bad,
        };
        let word = outcome(step.outcome);
        page.table_row(STEPS, stage(step.stage), &cells(step, q), word, tone);
    }
    page.blank();
    page.row("capacity", &[says(capacity)], Tone::Strong);
    let told = capacity.steps.iter().map(|step| (step, because(step)));
    let told: Vec<_> = told.filter(|(_, because)| !because.is_empty()).collect();
    // One says enough, but to those who want to see all.
    let from = if style.verbose {
        0
    } else {
        told.len().saturating_sub(1)
    };
    for (step, because) in &told[from..] {
        let words = format!("{} {unit}: {because}", units::rate(step.rate_per_s));
        page.row("missed", &[words], Tone::Plain);
    }
    page.into_text()
}

/// For pull requests.
pub(super) fn markdown(capacity: &Capacity) -> String {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        page,
        "### brunt find: {}\n",
        markdown::code(&word(&capacity.plan.url))
    );
    let _ = writeln!(page, "**{}**\n", markdown::escaped(&says(capacity)));
    let asked = asked(capacity);
    let asked: Vec<String> = asked.iter().map(|asked| markdown::code(asked)).collect();
    let _ = writeln!(page, "Objectives: {}\n", asked.join(", "));
    let (name, q) = quantile(capacity);
    let unit = environment::per_s(capacity.load.as_ref());
    let _ = writeln!(
        page,
        "| step | outcome | rate | window | {unit} | {name} | up to | errors |\n\
         |---|---|---:|---:|---:|---:|---:|---:|"
    );
    for step in &capacity.steps {
        let _ = writeln!(
            page,
            "| {} | {} | {} |",
            stage(step.stage),
            outcome(step.outcome),
            cells(step, q).join(" | ")
        );
    }
    page
}

/// A row per step.
pub(super) fn table(capacity: &Capacity, out: &mut dyn io::Write) -> Result<(), ReportError> {
    let mut header: Vec<String> = [
        "stage",
        "outcome",
        "rate_per_s",
        "window_ns",
        "successes_per_s",
        "error_share",
        "verdict",
    ]
    .map(str::to_owned)
    .into();
    let names = ROUND_QUANTILES.map(|(name, _)| format!("response_{}_ns", name.replace('.', "_")));
    header.extend(names);
    header.push("because".to_owned());
    let rows = capacity.steps.iter().map(|step| {
        let mut row = vec![
            stage(step.stage).to_owned(),
            data_outcome(step.outcome),
            step.rate_per_s.to_string(),
            step.record.window_ns.to_string(),
            figure(step.record.successes_per_s),
            figure(step.record.error_share()),
            data_name(step.record.verdict).to_owned(),
        ];
        row.extend(ROUND_QUANTILES.map(|(_, q)| figure(step.record.response.quantile_ns(q))));
        row.push(because(step));
        row
    });
    csv(&header, rows, out)
}
