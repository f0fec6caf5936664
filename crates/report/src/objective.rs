//! Objectives and their outcomes in words, and as a file of test results in JUnit's form, which CI
//! systems show.

use std::fmt::Write;

use brunt_judge::{Judged, ObjectiveOutcome};
use brunt_record::Objective;

use crate::foreign::word;
use crate::foreign::xml as escaped;
use crate::units;

/// What is asked, as it is typed: `p99 < 10.0 ms`, `errors < 0.1 %`, `rate > 5,000`.
pub(crate) fn asked(objective: &Objective) -> String {
    match *objective {
        Objective::Named {
            ref name,
            ref objective,
        } => format!("{name}: {}", asked(objective)),
        Objective::ResponseQuantile { q, below_ns } => {
            format!("{} < {}", quantile(q), units::duration(below_ns))
        }
        Objective::ResponseMax { below_ns } => format!("max < {}", units::duration(below_ns)),
        Objective::ResponseMean { below_ns } => format!("mean < {}", units::duration(below_ns)),
        Objective::Errors { below } => format!("errors < {}", share(below)),
        Objective::NoErrors => "errors = 0".to_owned(),
        Objective::SuccessesPerS { above } => format!("rate > {}", units::rate(above)),
    }
}

/// What was measured, and the end of its interval that was compared.
pub(crate) fn found(outcome: &ObjectiveOutcome) -> String {
    let (unit, value) = unit(&outcome.objective);
    let side = if unit == PER_S { "at least" } else { "up to" };
    let mut words: Vec<String> = outcome.measured.map(value).into_iter().collect();
    // Where the value itself misses the limit, its interval shows no more.
    if let Some(bound) = outcome.bound.filter(|_| outcome.keeps_limit()) {
        words.push(format!("{side} {} with 95 % confidence", value(bound)));
    }
    words.extend(outcome.reason.clone());
    words.join(", ")
}

const PER_S: &str = "per_s";

/// The unit of what an objective limits, as names of numbers end, and how a value is printed.
fn unit(objective: &Objective) -> (&'static str, fn(f64) -> String) {
    match objective.plain() {
        Objective::ResponseQuantile { .. }
        | Objective::ResponseMax { .. }
        | Objective::ResponseMean { .. }
        | Objective::Named { .. } => ("ns", |ns| units::duration(ns as u64)),
        Objective::Errors { .. } | Objective::NoErrors => ("share", share),
        Objective::SuccessesPerS { .. } => (PER_S, |rate| format!("{} req/s", units::rate(rate))),
    }
}

/// The outcome of an objective in one line. What was not measured, or `is_open`, was neither shown
/// to be met nor to be missed.
pub(crate) fn line(outcome: &ObjectiveOutcome, is_open: bool) -> String {
    let word = match outcome.measured {
        _ if outcome.is_met => "met",
        Some(_) if !is_open => "MISSED",
        _ => "UNDECIDED",
    };
    let (asked, found) = (asked(&outcome.objective), found(outcome));
    format!("{asked} {word}: {found}")
}

/// `p99`, `p99.9`.
pub(crate) fn quantile(q: f64) -> String {
    // Floats hold no more nines.
    let text = format!("{:.6}", q * 100.0);
    format!("p{}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A share that may be small: `0 %`, `0.05 %`, `2.5 %`.
fn share(share: f64) -> String {
    let value = share * 100.0;
    if share == 0.0 || value >= 0.995 {
        return units::percent(share);
    }
    let digits = (1.0 - value.log10().floor()).clamp(2.0, 6.0) as usize;
    let text = format!("{value:.digits$}");
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A test case: an objective.
pub(crate) struct Case {
    /// What is asked.
    pub(crate) name: String,
    pub(crate) outcome: CaseOutcome,
    /// What was found, in words.
    pub(crate) found: String,
    /// Numbers, by their names.
    pub(crate) properties: Vec<(String, f64)>,
}

/// How a test case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CaseOutcome {
    Passed,
    Failed,
    Skipped,
}

impl CaseOutcome {
    pub(crate) fn of(has_passed: bool) -> Self {
        if has_passed {
            Self::Passed
        } else {
            Self::Failed
        }
    }
}

/// One suite with a test case per objective, with what was measured; those that were missed are
/// failures. Where most of a quantile is brunt's own, a case more is skipped, so that no system
/// shows the suite as passed without that. The length of the window stands for the time of each,
/// since all were measured in it.
pub(crate) fn page(judged: &Judged<'_>) -> String {
    let outcomes = judged.objectives();
    let cases = outcomes.iter().map(|outcome| Case {
        name: asked(&outcome.objective),
        outcome: CaseOutcome::of(outcome.is_met),
        found: found(outcome),
        properties: measured(outcome),
    });
    let mut cases: Vec<Case> = cases.collect();
    if judged.judgement.mostly_own.is_some() {
        cases.push(Case {
            name: "latencies are the server's".to_owned(),
            outcome: CaseOutcome::Skipped,
            found: judged.judgement.because.clone(),
            properties: Vec::new(),
        });
    }
    suite(&judged.run.plan.urls(), judged.run.window_ns, &cases)
}

/// The suite of what was loaded, which took so long.
pub(crate) fn suite(url: &str, took_ns: u64, cases: &[Case]) -> String {
    let count = |outcome| cases.iter().filter(|case| case.outcome == outcome).count();
    let (failures, skipped) = (count(CaseOutcome::Failed), count(CaseOutcome::Skipped));
    let tests = cases.len();
    let time_s = took_ns as f64 / 1e9;
    let suite = escaped(&word(url));
    let counts = format!(r#"tests="{tests}" failures="{failures}" errors="0" skipped="{skipped}""#);
    let mut page = format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="brunt" {counts}>
  <testsuite name="{suite}" {counts} time="{time_s:.3}">
"#
    );
    // Writing to a string does not fail.
    for case in cases {
        let (name, found) = (escaped(&case.name), escaped(&case.found));
        let attributes = format!(r#"classname="{suite}" name="{name}" time="{time_s:.3}""#);
        _ = writeln!(page, "    <testcase {attributes}>");
        if !case.properties.is_empty() {
            page.push_str("      <properties>\n");
            for (name, value) in &case.properties {
                let property = format!(r#"name="{name}" value="{value}""#);
                _ = writeln!(page, "        <property {property}/>");
            }
            page.push_str("      </properties>\n");
        }
        match case.outcome {
            CaseOutcome::Passed => {}
            CaseOutcome::Failed => _ = writeln!(page, "      <failure message=\"{found}\"/>"),
            CaseOutcome::Skipped => _ = writeln!(page, "      <skipped message=\"{found}\"/>"),
        }
        _ = writeln!(
            page,
            "      <system-out>{found}</system-out>\n    </testcase>"
        );
    }
    page.push_str("  </testsuite>\n</testsuites>\n");
    page
}

/// What was measured and the end of its interval that was compared, as properties: numbers in the
/// unit of the limit.
fn measured(outcome: &ObjectiveOutcome) -> Vec<(String, f64)> {
    let (unit, _) = unit(&outcome.objective);
    let known = [("measured", outcome.measured), ("bound", outcome.bound)].into_iter();
    let known = known.filter_map(|(name, value)| Some((format!("{name}_{unit}"), value?)));
    known.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_shares_and_outer_quantiles_have_all_their_digits() {
        let quantile = |q| Objective::ResponseQuantile {
            q,
            below_ns: 1_500_000_000,
        };
        for (objective, words) in [
            (quantile(0.99), "p99 < 1.50 s"),
            (quantile(0.999_9), "p99.99 < 1.50 s"),
            (Objective::Errors { below: 0.001 }, "errors < 0.1 %"),
            (Objective::Errors { below: 0.000_05 }, "errors < 0.005 %"),
            (Objective::Errors { below: 0.25 }, "errors < 25 %"),
        ] {
            assert_eq!(asked(&objective), words);
        }
    }
}
