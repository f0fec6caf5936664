//! The objectives of a run as a file of test results in JUnit's form, which CI systems show.

use std::fmt::Write;

use brunt_judge::{Judged, ObjectiveOutcome};
use brunt_record::Objective;

use crate::foreign::xml as escaped;
use crate::objective;
use crate::shortened::word;

/// A test case: an objective.
pub(crate) struct Case {
    /// What is asked.
    pub(crate) name: String,
    pub(crate) ending: Ending,
    /// What was found, in words.
    pub(crate) found: String,
    /// Numbers, by their names.
    pub(crate) properties: Vec<(String, f64)>,
}

/// How a test case ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Passed,
    Failed,
    Skipped,
}

impl Ending {
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
        name: objective::asked(&outcome.objective),
        ending: Ending::of(outcome.is_met),
        found: objective::found(outcome),
        properties: measured(outcome),
    });
    let mut cases: Vec<Case> = cases.collect();
    if judged.judgement.mostly_own.is_some() {
        cases.push(Case {
            name: "latencies are the server's".to_owned(),
            ending: Ending::Skipped,
            found: judged.judgement.because.clone(),
            properties: Vec::new(),
        });
    }
    suite(&judged.run.plan.urls(), judged.run.window_ns, &cases)
}

/// The suite of what was loaded, which took so long.
pub(crate) fn suite(url: &str, took_ns: u64, cases: &[Case]) -> String {
    let count = |ending| cases.iter().filter(|case| case.ending == ending).count();
    let (failures, skipped) = (count(Ending::Failed), count(Ending::Skipped));
    let tests = cases.len();
    let time_s = took_ns as f64 / 1e9;
    let suite = escaped(&word(url));
    let mut page = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let counts =
        format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"");
    // Writing to a string does not fail.
    let _ = writeln!(page, "<testsuites name=\"brunt\" {counts}>");
    let _ = writeln!(
        page,
        "  <testsuite name=\"{suite}\" {counts} time=\"{time_s:.3}\">"
    );
    for case in cases {
        let (name, found) = (escaped(&case.name), escaped(&case.found));
        let _ = writeln!(
            page,
            "    <testcase classname=\"{suite}\" name=\"{name}\" time=\"{time_s:.3}\">"
        );
        if !case.properties.is_empty() {
            page.push_str("      <properties>\n");
            for (name, value) in &case.properties {
                let _ = writeln!(
                    page,
                    "        <property name=\"{name}\" value=\"{value}\"/>"
                );
            }
            page.push_str("      </properties>\n");
        }
        match case.ending {
            Ending::Passed => {}
            Ending::Failed => _ = writeln!(page, "      <failure message=\"{found}\"/>"),
            Ending::Skipped => _ = writeln!(page, "      <skipped message=\"{found}\"/>"),
        }
        let _ = writeln!(
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
    let unit = match outcome.objective.plain() {
        Objective::ResponseQuantile { .. }
        | Objective::ResponseMax { .. }
        | Objective::ResponseMean { .. }
        | Objective::Named { .. } => "ns",
        Objective::Errors { .. } | Objective::NoErrors => "share",
        Objective::SuccessesPerS { .. } => "per_s",
    };
    let known = [("measured", outcome.measured), ("bound", outcome.bound)].into_iter();
    let known = known.filter_map(|(name, value)| Some((format!("{name}_{unit}"), value?)));
    known.collect()
}
