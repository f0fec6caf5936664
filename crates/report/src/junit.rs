//! The objectives of a run as a file of test results in JUnit's form, which CI systems show.

use std::fmt::Write;

use brunt_judge::{Judged, ObjectiveOutcome};
use brunt_record::Objective;

use crate::foreign::xml as escaped;
use crate::objective;
use crate::shortened::word;

/// One suite with a test case per objective, with what was measured; those that were missed are
/// failures. The length of the window stands for the time of each, since all were measured in it.
pub(crate) fn page(judged: &Judged<'_>) -> String {
    let outcomes = judged.objectives();
    let failures = outcomes.iter().filter(|outcome| !outcome.is_met).count();
    let tests = outcomes.len();
    let time_s = judged.run.window_ns as f64 / 1e9;
    let suite = escaped(&word(&judged.run.plan.urls()));
    let mut page = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let counts = format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"0\"");
    // Writing to a string does not fail.
    let _ = writeln!(page, "<testsuites name=\"brunt\" {counts}>");
    let _ = writeln!(
        page,
        "  <testsuite name=\"{suite}\" {counts} time=\"{time_s:.3}\">"
    );
    for outcome in &outcomes {
        let name = escaped(&objective::asked(&outcome.objective));
        let found = escaped(&objective::found(outcome));
        let _ = writeln!(
            page,
            "    <testcase classname=\"{suite}\" name=\"{name}\" time=\"{time_s:.3}\">"
        );
        measured(outcome, &mut page);
        if !outcome.is_met {
            let _ = writeln!(page, "      <failure message=\"{found}\"/>");
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
fn measured(outcome: &ObjectiveOutcome, page: &mut String) {
    let unit = match outcome.objective.plain() {
        Objective::ResponseQuantile { .. }
        | Objective::ResponseMax { .. }
        | Objective::ResponseMean { .. }
        | Objective::Named { .. } => "ns",
        Objective::Errors { .. } | Objective::NoErrors => "share",
        Objective::SuccessesPerS { .. } => "per_s",
    };
    let known = [("measured", outcome.measured), ("bound", outcome.bound)];
    let mut known = known
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)))
        .peekable();
    if known.peek().is_none() {
        return;
    }
    page.push_str("      <properties>\n");
    for (name, value) in known {
        let _ = writeln!(
            page,
            "        <property name=\"{name}_{unit}\" value=\"{value}\"/>"
        );
    }
    page.push_str("      </properties>\n");
}
