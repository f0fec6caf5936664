//! The objectives of a run as a file of test results in JUnit's form, which CI systems show.

use std::fmt::Write;

use brunt_measure::Judged;

use crate::objective;

/// One suite with a test case per objective; those that were missed are failures. The length of
/// the window stands for the time of each, since all were measured in it.
pub(crate) fn page(judged: &Judged<'_>) -> String {
    let outcomes = judged.objectives();
    let failures = outcomes.iter().filter(|outcome| !outcome.is_met).count();
    let tests = outcomes.len();
    let time_s = judged.run.window_ns as f64 / 1e9;
    let suite = escaped(&judged.run.plan.url);
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
        let case = format!("    <testcase classname=\"{suite}\" name=\"{name}\"");
        let _ = match outcome.is_met {
            true => writeln!(page, "{case} time=\"{time_s:.3}\"/>"),
            false => writeln!(
                page,
                "{case} time=\"{time_s:.3}\">\n      <failure message=\"{found}\"/>\n    \
                 </testcase>"
            ),
        };
    }
    page.push_str("  </testsuite>\n</testsuites>\n");
    page
}

/// `text` within an attribute (XML 1.0 sections 2.2 and 2.3): control characters have no form there
/// at all.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in crate::printable(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}
