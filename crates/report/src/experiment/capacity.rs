//! A search for a capacity in sections, as a summary, and as it is stored.

use std::fmt::Write;

use brunt_judge::{
    Capacity, CapacityOutcome, CapacityResult, CapacityStage, CapacityStep, RoundResponse,
};
use brunt_record::{Objective, ReplyOutcome};

use super::{environment, half, known, per_s};
use crate::figures::Object;
use crate::foreign::word;
use crate::objective::{self, Case, Ending};
use crate::page::{Grid, Page, Role, Tone};
use crate::{ReportError, figures, units};

/// Outcomes of requests that are told of a step.
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
pub(super) fn says(capacity: &Capacity) -> String {
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
    let held_per_s = capacity.result().held_per_s();
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
    let held_per_s = capacity.result().held_per_s();
    let step = capacity.step_at(held_per_s);
    let found = found(capacity);
    let used = step.and_then(|step| step.record.server).unwrap_or_default();
    let resident_bytes = used.resident_bytes.map(|bytes| bytes as f64);
    let known = [
        ("rate_per_s", held_per_s),
        ("server_cpus", used.cpus()),
        ("server_resident_bytes", resident_bytes),
    ];
    let known = known
        .iter()
        .filter_map(|(name, value)| Some(((*name).to_owned(), (*value)?)));
    let properties: Vec<(String, f64)> = known.collect();
    let has_passed = capacity.result().has_passed();
    let cases = capacity.plan.objectives.iter().map(|asked| Case {
        name: objective::asked(asked),
        ending: Ending::of(has_passed),
        found: found.clone(),
        properties: properties.clone(),
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

/// The last step that was measured at this rate: what failed there, behind a colon.
fn failed_at(capacity: &Capacity, per_s: f64) -> String {
    let mut steps = capacity.steps.iter().rev();
    let step = steps.find(|step| step.rate_per_s == per_s);
    step.map_or_else(String::new, behind_colon)
}

/// What failed in a step, behind a colon; empty without any.
fn behind_colon(step: &CapacityStep) -> String {
    let failed = failed(step);
    if failed.is_empty() {
        failed
    } else {
        format!(": {failed}")
    }
}

fn answer(capacity: &Capacity) -> String {
    let unit = per_s(capacity.load.as_ref());
    let rate = |per_s: f64| format!("{} {unit}", units::rate(per_s));
    match capacity.result() {
        CapacityResult::Found {
            rate_per_s,
            missed_per_s,
        } => {
            let (held, missed) = (rate(rate_per_s), rate(missed_per_s));
            let times = brunt_judge::CONFIRMATIONS;
            format!(
                "{held} is the highest rate that holds, confirmed {times} times; {missed} misses"
            )
        }
        CapacityResult::AtLeast { rate_per_s } => {
            let held = rate(rate_per_s);
            format!("{held} holds, the highest rate that was to be tried (--max-rate)")
        }
        CapacityResult::ClientLimited {
            rate_per_s,
            limited_per_s,
        } => {
            let held = match rate_per_s {
                Some(per_s) => format!("the server holds at least {}", rate(per_s)),
                None => "nothing is known of the server".to_owned(),
            };
            let limited = rate(limited_per_s);
            format!("{held}; brunt or its machine is the limit at {limited}")
        }
        CapacityResult::Impossible { missed_per_s } => {
            let mut steps = capacity.steps.iter();
            let step = steps.find(|step| step.rate_per_s == missed_per_s);
            let words = step.map_or_else(String::new, replies);
            format!("no rate can meet this: at {} {words}", rate(missed_per_s))
        }
        CapacityResult::NotMet { missed_per_s } => {
            let has_budget = capacity.plan.budget_ns.is_some();
            let longer = "; to judge a lower rate takes a longer --budget";
            let longer = if has_budget { longer } else { "" };
            let (missed, failed) = (rate(missed_per_s), failed_at(capacity, missed_per_s));
            format!("the objectives are missed even at {missed}{failed}{longer}")
        }
        CapacityResult::Bracket {
            met_per_s,
            missed_per_s,
            confirmations,
        } => {
            let budget = capacity.plan.budget_ns.map(units::duration);
            let budget = budget.map_or_else(String::new, |budget| format!(" of {budget}"));
            let met = match (met_per_s, confirmations) {
                (Some(met), 0) => format!("{} holds, not confirmed", rate(met)),
                (Some(met), 1) => format!("{} holds, confirmed once", rate(met)),
                (Some(met), times) => format!("{} holds, confirmed {times} times", rate(met)),
                (None, _) => {
                    let last = capacity.steps.last().map_or_else(String::new, behind_colon);
                    format!("no rate was shown to hold{last}")
                }
            };
            let missed = match missed_per_s {
                Some(missed) => format!("{} misses", rate(missed)),
                None => "none missed so far".to_owned(),
            };
            format!(
                "{met}; {missed}; the budget{budget} is over, and a longer --budget brings the two \
                 closer"
            )
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

/// The run that shows the server below its capacity.
fn next(capacity: &Capacity) -> Option<String> {
    let held = capacity.result().held_per_s()?;
    let rate = half(held)?;
    Some(format!("response times at half of that rate: -r {rate}"))
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
        CapacityStage::LowLoad => "low load",
        CapacityStage::Recovery => "recovery",
        CapacityStage::Bracket => "bracket",
        CapacityStage::Bisection => "bisect",
        CapacityStage::Confirmation => "confirm",
    }
}

/// The outcome of a step of a search.
fn outcome(outcome: CapacityOutcome) -> &'static str {
    match outcome {
        CapacityOutcome::Met => "met",
        CapacityOutcome::Missed => "MISSED",
        CapacityOutcome::ClientLimited => "CLIENT-LIMITED",
        CapacityOutcome::Undecided => "undecided",
        CapacityOutcome::Invalid => "INVALID",
    }
}

/// The outcome of a step in words. Few replies at low load say nothing, or that no rate can meet
/// the objective.
fn step_outcome(step: &CapacityStep) -> &'static str {
    match (step.stage, step.outcome) {
        (stage, CapacityOutcome::Undecided) if stage.is_at_low_load() => "not missed",
        _ => outcome(step.outcome),
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

/// Why a step did not hold, or by what it did; empty where its whole window did. The same rate may
/// have held before.
fn because(steps: &[CapacityStep], place: usize) -> String {
    let step = &steps[place];
    let has_recovered =
        step.stage == CapacityStage::Recovery && step.outcome == CapacityOutcome::Undecided;
    match step.outcome {
        CapacityOutcome::Met => return step.because.clone(),
        _ if has_recovered => return String::new(),
        _ => {}
    }
    let mut words = match (&*step.because, step.stage) {
        ("", CapacityStage::LowLoad) => replies(step),
        ("", CapacityStage::Recovery) => "the server still worked off the overload".to_owned(),
        ("", _) => {
            let missed = step.objectives.iter().filter(|outcome| !outcome.is_met);
            let missed: Vec<String> = missed
                .map(|outcome| match step.outcome {
                    CapacityOutcome::Undecided => objective::not_shown(outcome),
                    _ => objective::line(outcome),
                })
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
    let same = |other: &&CapacityStep| other.rate_per_s == step.rate_per_s;
    if step.outcome == CapacityOutcome::Undecided && !step.stage.is_at_low_load() {
        let before = place.checked_sub(1).map(|before| &steps[before]);
        if before.is_some_and(|before| step.counts_as_met_after(before)) {
            words.push_str("; counted as met: both measurements are within the limits");
            return words;
        }
        if steps.get(place + 1).is_some_and(|next| same(&next)) {
            words.push_str("; measured once more");
            return words;
        }
        let was_open = |step: &CapacityStep| {
            !matches!(step.outcome, CapacityOutcome::Met | CapacityOutcome::Missed)
        };
        if !before.is_some_and(|before| same(&before) && was_open(before)) {
            words.push_str("; there was no time to measure it once more");
            return words;
        }
        words.push_str("; taken for missed");
    }
    let mut before = steps[..place].iter().rev().filter(same);
    let held_before = before.find(|step| step.outcome == CapacityOutcome::Met);
    let over = |held: &CapacityStep| units::duration(held.record.window_ns);
    if let Some(held) = held_later(steps, place) {
        let over = over(held);
        let _ = write!(
            words,
            "; over {over} it held later: the miss was of a moment only"
        );
    } else if let Some(held) = held_before {
        let over = over(held);
        let _ = write!(
            words,
            "; over {over} it held before, but not always: the rate is too high"
        );
    }
    words
}

/// The later step in which the rate held that missed in this one.
fn held_later(steps: &[CapacityStep], place: usize) -> Option<&CapacityStep> {
    let missed = &steps[place];
    let is_same = |other: &&CapacityStep| {
        other.rate_per_s == missed.rate_per_s && other.outcome == CapacityOutcome::Met
    };
    let is_miss = matches!(
        missed.outcome,
        CapacityOutcome::Missed | CapacityOutcome::ClientLimited
    );
    steps[place + 1..].iter().find(is_same).filter(|_| is_miss)
}

/// Whether the reason of a step is shown without `-v`.
fn always_says_why(steps: &[CapacityStep], place: usize) -> bool {
    let step = &steps[place];
    let held = |other: &CapacityStep| {
        other.rate_per_s == step.rate_per_s && other.outcome == CapacityOutcome::Met
    };
    match step.outcome {
        CapacityOutcome::Met => false,
        CapacityOutcome::Undecided => !step.stage.is_at_low_load(),
        _ => steps[..place].iter().any(held) || held_later(steps, place).is_some(),
    }
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
    let tone = match capacity.result() {
        CapacityResult::Found { .. } | CapacityResult::AtLeast { .. } => Tone::Strong,
        _ => Tone::Warning,
    };
    page.row("capacity", &[says(capacity)], tone);
    page.row("  with", &beside(capacity), Tone::Plain);
    page.section("Environment", Role::Background);
    let url = word(&capacity.plan.url).into_owned();
    page.row("find", &[url], Tone::Plain);
    environment(&capacity.environment, &capacity.brunt_version, page);
    page.section("Steps", Role::Figures);
    page.charts("searches");
    steps(capacity, page);
    page.section("Why", Role::Figures);
    reasons(capacity, page);
    if let Some(next) = next(capacity) {
        page.row("next", &[next], Tone::Plain);
    }
}

/// The rates that were tried, each with its outcome, for the chart of this search.
pub(super) fn chart(capacity: &Capacity, name: Option<String>) -> Object {
    let steps = capacity.steps.iter();
    let steps: Vec<_> = steps.map(|step| (step.rate_per_s, step.outcome)).collect();
    Object::new().with("name", name).with("steps", steps)
}

/// The table of all steps.
pub(super) fn steps(capacity: &Capacity, page: &mut Page) {
    let (name, q) = quantile(capacity);
    let unit = per_s(capacity.load.as_ref());
    let heads = ["rate", "window", unit, &name, "up to", "errors"];
    page.table_head(STEPS, "step", &heads, "");
    for step in &capacity.steps {
        let tone = match step.outcome {
            CapacityOutcome::Met => Tone::Plain,
            CapacityOutcome::Undecided if step.stage.is_at_low_load() => Tone::Plain,
            CapacityOutcome::Missed | CapacityOutcome::Undecided => Tone::Warning,
            CapacityOutcome::ClientLimited | CapacityOutcome::Invalid => Tone::Bad,
        };
        let word = step_outcome(step);
        page.table_row(STEPS, stage(step.stage), &cells(step, q), word, tone);
    }
}

/// Why steps did not hold: on a full page all of them.
fn reasons(capacity: &Capacity, page: &mut Page) {
    let (steps, unit) = (&capacity.steps, per_s(capacity.load.as_ref()));
    let reasons: Vec<String> = (0..steps.len())
        .map(|place| because(steps, place))
        .collect();
    let last_missed = reasons.iter().rposition(|because| !because.is_empty());
    for (place, (step, because)) in steps.iter().zip(&reasons).enumerate() {
        let is_shown =
            page.is_full() || always_says_why(steps, place) || last_missed == Some(place);
        if !is_shown || because.is_empty() {
            continue;
        }
        let words = format!("{} {unit}: {because}", units::rate(step.rate_per_s));
        page.row(&step_outcome(step).to_lowercase(), &[words], Tone::Plain);
    }
}
