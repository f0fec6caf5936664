//! A search for a capacity in sections, as a summary, and as it is stored.

use std::fmt::Write;

use brunt_judge::{
    Capacity, CapacityEnd, CapacityOutcome, CapacityResult, CapacityStage, CapacityStep,
    RoundResponse,
};
use brunt_record::{Objective, ReplyOutcome};

use super::{environment, half, known, per_s};
use crate::figures::Object;
use crate::foreign::word;
use crate::objective::{self, Case, CaseOutcome};
use crate::page::{Grid, Page, Role, Tone};
use crate::{ReportError, figures, units};

/// Outcomes of requests that are printed of a step.
const OUTCOMES_LISTED: usize = 3;
/// Columns of the table of steps.
const STEPS: Grid = Grid { label: 8, cell: 9 };

/// A search as it is stored: its own fields, and its outcome, which is ignored when the search is
/// read again.
pub(super) fn stored(capacity: &Capacity) -> Object {
    Object::of(capacity)
        .with("result", capacity.result())
        .with("says", says(capacity))
}

/// The outcome of a search, in a sentence.
fn says(capacity: &Capacity) -> String {
    let mut words = answer(capacity);
    if let Some(spoilt) = capacity.disturbed_steps() {
        let _ = write!(
            words,
            "; other programs or the hypervisor disturbed {spoilt} of {} steps: on a quiet machine \
             the rate may be higher",
            capacity.steps.len()
        );
    }
    words
}

/// What is asked, and what the server used at the rate that holds.
fn beside(capacity: &Capacity) -> Vec<String> {
    let mut items = asked(capacity);
    let held_per_s = capacity.result().met_per_s;
    let step = capacity
        .step_at(held_per_s)
        .filter(|_| held_per_s.is_some());
    let Some(used) = step.and_then(|step| step.record.server) else {
        return items;
    };
    let cpus = used
        .cpus()
        .map(|cpus| format!("{} CPUs", units::cpus(cpus)));
    let memory = used.resident_bytes.map(units::bytes);
    let used: Vec<String> = cpus.into_iter().chain(memory).collect();
    if !used.is_empty() {
        items.push(format!("the server then used {}", used.join(" and ")));
    }
    items
}

/// The answer with what belongs to it.
fn found(capacity: &Capacity) -> String {
    [vec![says(capacity)], beside(capacity)].concat().join("; ")
}

/// The answer as the summary of a run has it.
pub(super) fn summary(capacity: &Capacity) -> Result<Object, ReportError> {
    figures::summary_of_search(capacity, &found(capacity)).ok_or(ReportError::SummaryOfOneRun)
}

/// The answer as test results: each objective has passed where a rate holds, or brunt was the
/// limit.
pub(super) fn test_results(capacity: &Capacity) -> String {
    let result = capacity.result();
    let rate = result.met_per_s.map(|rate| ("rate_per_s".to_owned(), rate));
    let cases = capacity.plan.objectives.iter().map(|asked| Case {
        name: objective::asked(asked),
        outcome: CaseOutcome::of(result.has_passed()),
        found: found(capacity),
        properties: rate.clone().into_iter().collect(),
    });
    let took_ns: u64 = capacity.steps.iter().map(|step| step.took_ns).sum();
    objective::suite(&capacity.plan.url, took_ns, &cases.collect::<Vec<_>>())
}

/// The most frequent outcomes of requests that did not succeed, in words; empty without any.
fn failed(step: &CapacityStep) -> String {
    let record = &step.record;
    let statuses = record.statuses.iter().filter(|(status, _)| *status >= 400);
    let statuses = statuses.map(|(status, count)| (count, format!("had status {status}")));
    let errors = record.statuses.count(ReplyOutcome::ERROR);
    let errors = (errors > 0).then(|| (errors, "had an error for an answer".to_owned()));
    let failures = record.failures.iter();
    let failures = failures.map(|(kind, count)| (count, format!("failed ({})", kind.label())));
    let mut all: Vec<(u64, String)> = statuses.chain(errors).chain(failures).collect();
    all.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    all.truncate(OUTCOMES_LISTED);
    if all.is_empty() {
        return String::new();
    }
    let words = all.into_iter();
    let words = words.map(|(count, what)| format!("{} {what}", units::count(count)));
    let words = words.collect::<Vec<_>>().join(", ");
    format!("of {} requests {words}", units::count(record.issued))
}

/// What failed in a step, behind a colon; empty where nothing did.
fn behind_colon(step: Option<&CapacityStep>) -> String {
    let failed = step.map(failed).filter(|words| !words.is_empty());
    failed.map_or_else(String::new, |words| format!(": {words}"))
}

fn answer(capacity: &Capacity) -> String {
    let unit = per_s(capacity.load.as_ref());
    let CapacityResult {
        end,
        met_per_s,
        missed_per_s,
        confirmations,
    } = capacity.result();
    let rate = |per_s: f64| format!("{} {unit}", units::rate(per_s));
    let (met, missed) = (met_per_s.map(rate), missed_per_s.map(rate));
    let missed_words = missed.clone().unwrap_or_default();
    let met_words = met.clone().unwrap_or_default();
    let is_missed = |step: &&CapacityStep| Some(step.rate_per_s) == missed_per_s;
    let mut of_missed = capacity.steps.iter().filter(is_missed);
    let is_shown = of_missed.any(|step| step.outcome == CapacityOutcome::Missed);
    let misses = if is_shown {
        "misses them"
    } else {
        "may miss them"
    };
    match end {
        CapacityEnd::Found => format!(
            "{met_words} is the highest rate that meets the objectives, confirmed {confirmations} \
             times; {missed_words} {misses}"
        ),
        CapacityEnd::AtLeast => format!(
            "{met_words} meets the objectives, the highest rate that was to be tried (--max-rate)"
        ),
        CapacityEnd::ClientLimited => {
            let met = met.map(|met| format!("the server can take at least {met}"));
            let met = met.unwrap_or_else(|| "nothing is known of the server".to_owned());
            format!("{met}; brunt or its machine is the limit at {missed_words}")
        }
        CapacityEnd::Impossible => {
            let step = capacity.steps.iter().find(is_missed);
            let words = step.map_or_else(String::new, replies);
            format!("no rate can meet this: at {missed_words} {words}")
        }
        CapacityEnd::NotMet => {
            let failed = behind_colon(capacity.steps.iter().rev().find(is_missed));
            format!(
                "the objectives are missed even at {missed_words}{failed}; to judge a lower rate \
                 takes a longer --budget"
            )
        }
        CapacityEnd::Bracket => {
            let budget = units::duration(capacity.plan.budget_ns);
            let times = match confirmations {
                0 => "not confirmed".to_owned(),
                1 => "confirmed once".to_owned(),
                times => format!("confirmed {times} times"),
            };
            let met = met.map(|met| format!("{met} meets the objectives, {times}"));
            let met = met.unwrap_or_else(|| {
                let failed = behind_colon(capacity.steps.last());
                format!("no rate was shown to meet the objectives{failed}")
            });
            let missed = missed.map(|missed| format!("{missed} {misses}"));
            let missed = missed.unwrap_or_else(|| "none missed them so far".to_owned());
            format!(
                "{met}; {missed}; the budget of {budget} is over, a longer --budget tells more \
                 exactly"
            )
        }
        CapacityEnd::Nothing { reason } => {
            let met = met.map(|met| format!("{met} met the objectives, not confirmed"));
            let missed = missed.map(|missed| format!("{missed} missed them"));
            let words = [Some(format!("no result: {reason}")), met, missed];
            words.into_iter().flatten().collect::<Vec<_>>().join("; ")
        }
    }
}

/// The run that shows the server below its capacity.
fn next(capacity: &Capacity) -> Option<String> {
    let met_per_s = capacity.result().met_per_s?;
    let (rate, met) = (half(met_per_s)?, units::rate(met_per_s));
    let line = format!("brunt -r {rate} URL");
    Some(format!("response times at half of {met}/s: {line}"))
}

fn asked(capacity: &Capacity) -> Vec<String> {
    let objectives = capacity.plan.objectives.iter();
    objectives.map(objective::asked).collect()
}

fn stage(stage: CapacityStage) -> &'static str {
    match stage {
        CapacityStage::LowLoad => "low load",
        CapacityStage::Recovery => "recovery",
        CapacityStage::Bracket => "bracket",
        CapacityStage::Bisection => "bisect",
        CapacityStage::Confirmation => "confirm",
    }
}

/// The outcome of a step. Few replies at low load say nothing, or that no rate can meet the
/// objective.
fn step_outcome(step: &CapacityStep) -> &'static str {
    match step.outcome {
        CapacityOutcome::Met => "met",
        CapacityOutcome::Missed => "MISSED",
        CapacityOutcome::ClientLimited => "CLIENT-LIMITED",
        CapacityOutcome::Undecided if step.stage.is_at_low_load() => "not missed",
        CapacityOutcome::Undecided => "undecided",
        CapacityOutcome::Invalid => "INVALID",
    }
}

/// The quantile that is shown: that of the first objective that has one.
fn quantile(capacity: &Capacity) -> (String, f64) {
    let objectives = capacity.plan.objectives.iter();
    let asked = objectives.filter_map(|objective| match objective {
        Objective::ResponseQuantile { q, .. } => Some(*q),
        _ => None,
    });
    let q = asked.into_iter().next().unwrap_or(0.99);
    (objective::quantile(q), q)
}

/// What a step measured of it, nanoseconds, and its pessimistic end.
fn measured(step: &CapacityStep, q: f64) -> (Option<f64>, Option<f64>) {
    let is_of =
        |asked: &Objective| matches!(asked, Objective::ResponseQuantile { q: of, .. } if *of == q);
    let mut outcomes = step.objectives.iter();
    match outcomes.find(|outcome| is_of(&outcome.objective)) {
        Some(found) => (found.measured, found.bound),
        None => (
            step.record.response.quantile_ns(q).map(|ns| ns as f64),
            None,
        ),
    }
}

/// The replies of a step in which so few are needed that there are no quantiles.
fn replies(step: &CapacityStep) -> String {
    let RoundResponse { min_ns, max_ns, .. } = step.record.response;
    let (successes, issued) = (step.record.successes, step.record.issued);
    let failed = failed(step);
    match (min_ns, max_ns) {
        _ if !failed.is_empty() => failed,
        _ if successes < issued => {
            let [successes, issued] = [successes, issued].map(units::count);
            format!("{successes} of {issued} requests succeeded")
        }
        (Some(min_ns), Some(max_ns)) => {
            let [least, most] = [min_ns, max_ns].map(units::duration);
            format!("replies take {least} to {most}")
        }
        _ => "there is no reply".to_owned(),
    }
}

/// Why a step did not meet the objectives, or by what it did; empty where its whole window did.
fn because(steps: &[CapacityStep], place: usize) -> String {
    let step = &steps[place];
    let is_undecided = step.outcome == CapacityOutcome::Undecided;
    if step.outcome == CapacityOutcome::Met {
        return step.because.clone();
    }
    if is_undecided && step.stage == CapacityStage::Recovery {
        return String::new();
    }
    let mut words = match (&*step.because, step.stage) {
        ("", CapacityStage::LowLoad) => replies(step),
        ("", CapacityStage::Recovery) => "the server still worked off the overload".to_owned(),
        ("", _) => {
            let missed = step.objectives.iter().filter(|outcome| !outcome.is_met);
            let missed: Vec<String> = missed
                .map(|outcome| objective::line(outcome, is_undecided))
                .collect();
            missed.join("; ")
        }
        (because, _) => because.to_owned(),
    };
    let failed = failed(step);
    if !failed.is_empty() && !words.contains(&failed) {
        words.push_str(if words.is_empty() { "" } else { "; " });
        words.push_str(&failed);
    }
    let before = place.checked_sub(1).map(|before| &steps[before]);
    if is_undecided && before.is_some_and(|before| step.counts_as_met_after(before)) {
        words.push_str("; counted as met: both measurements are within the limits");
    }
    words
}

fn cells(step: &CapacityStep, q: f64) -> [String; 6] {
    let (value, bound) = measured(step, q);
    let share = step.record.error_share();
    let rate = step.record.successes_per_s;
    let ns = |value| known(value, |ns: f64| units::duration(ns as u64));
    [
        units::rate(step.rate_per_s),
        units::duration(step.record.window_ns),
        known(rate, units::rate),
        ns(value),
        ns(bound),
        known(share, units::percent),
    ]
}

/// The sections of a search.
pub(super) fn sections(capacity: &Capacity, page: &mut Page) {
    page.section("Capacity", Role::Outcome);
    let tone = match capacity.result().end {
        CapacityEnd::Found | CapacityEnd::AtLeast => Tone::Strong,
        _ => Tone::Warning,
    };
    page.row("capacity", &[says(capacity)], tone);
    page.row("  with", &beside(capacity), Tone::Plain);
    page.section("Environment", Role::Background);
    let url = word(&capacity.plan.url).into_owned();
    page.row("find", &[url], Tone::Plain);
    environment(&capacity.environment, &capacity.brunt_version, page);
    page.section("Steps", Role::Figures);
    page.charts("search");
    steps(capacity, page);
    page.section("Why", Role::Figures);
    reasons(capacity, page);
    if let Some(next) = next(capacity) {
        page.row("next", &[next], Tone::Plain);
    }
}

/// The rates that were tried, each with its outcome, for the chart of this search.
pub(super) fn chart(capacity: &Capacity) -> Object {
    let steps = capacity.steps.iter();
    let steps: Vec<_> = steps.map(|step| (step.rate_per_s, step.outcome)).collect();
    Object::new().with("steps", steps)
}

/// How a step stands out; not at all where it went on as it was to.
fn tone(step: &CapacityStep) -> Tone {
    match step.outcome {
        CapacityOutcome::Met => Tone::Plain,
        CapacityOutcome::Undecided if step.stage.is_at_low_load() => Tone::Plain,
        CapacityOutcome::Missed | CapacityOutcome::Undecided => Tone::Warning,
        CapacityOutcome::ClientLimited | CapacityOutcome::Invalid => Tone::Bad,
    }
}

/// The table of all steps.
fn steps(capacity: &Capacity, page: &mut Page) {
    let (name, q) = quantile(capacity);
    let unit = per_s(capacity.load.as_ref());
    let heads = ["rate", "window", unit, &name, "CI up to", "errors"];
    page.table_head(STEPS, "step", &heads, "");
    for step in &capacity.steps {
        let word = step_outcome(step);
        page.table_row(STEPS, stage(step.stage), &cells(step, q), word, tone(step));
    }
}

/// Why steps did not meet the objectives, or by what they did: on a full page all of them, else the
/// last that stands out.
fn reasons(capacity: &Capacity, page: &mut Page) {
    let (steps, unit) = (&capacity.steps, per_s(capacity.load.as_ref()));
    let reasons = (0..steps.len()).map(|place| (&steps[place], because(steps, place)));
    let mut reasons: Vec<_> = reasons.filter(|(_, words)| !words.is_empty()).collect();
    if !page.is_full() {
        reasons.retain(|(step, _)| tone(step) != Tone::Plain);
        reasons.drain(..reasons.len().saturating_sub(1));
    }
    for (step, because) in reasons {
        let words = format!("{} {unit}: {because}", units::rate(step.rate_per_s));
        page.row(&step_outcome(step).to_lowercase(), &[words], Tone::Plain);
    }
}
