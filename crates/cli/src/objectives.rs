//! `--objective`: what is asked of a run, and what is said where it was missed.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use brunt_load::units;
use brunt_measure::{Judged, OBJECTIVES_MAX, Objective};
use brunt_report::{Format, Style};

use crate::message;

/// The objectives of one option.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Objectives(Vec<Objective>);

/// Those of all options, where any was given: else what a stored run was asked holds.
pub(crate) fn asked(options: &[Objectives]) -> Option<Vec<Objective>> {
    let all: Vec<_> = options
        .iter()
        .flat_map(|option| &option.0)
        .copied()
        .collect();
    (!all.is_empty()).then_some(all)
}

/// Objectives with commas between them: `p99 < 10ms, errors < 0.1%, rate > 5k`.
pub(crate) fn objectives(typed: &str) -> Result<Objectives, String> {
    let objectives = typed
        .split(',')
        .map(objective)
        .collect::<Result<Vec<_>, _>>()?;
    if objectives.len() > OBJECTIVES_MAX {
        return Err(format!("there can be {OBJECTIVES_MAX} at most"));
    }
    Ok(Objectives(objectives))
}

fn objective(typed: &str) -> Result<Objective, String> {
    let unknown = || {
        format!(
            "`{}` is no objective; write one as p99 < 10ms, errors < 0.1%, errors = 0 or rate > 5k",
            typed.trim()
        )
    };
    let at = typed.find(['<', '>', '=']).ok_or_else(unknown)?;
    let (metric, rest) = typed.split_at(at);
    let (metric, limit) = (
        metric.trim(),
        rest.trim_start_matches(['<', '>', '=']).trim(),
    );
    let operator = &rest[..rest.len() - rest.trim_start_matches(['<', '>', '=']).len()];
    let is_below = matches!(operator, "<" | "<=");
    match metric {
        "errors" if is_below => Ok(Objective::Errors {
            below: share(limit)?,
        }),
        "errors" if operator == "=" && limit == "0" => Ok(Objective::NoErrors),
        "errors" => {
            Err("errors are asked to stay below a share: errors < 0.1%, or errors = 0".to_owned())
        }
        "rate" if matches!(operator, ">" | ">=") => Ok(Objective::SuccessesPerS {
            above: units::rate(limit).map_err(|error| error.to_string())?,
        }),
        "rate" => Err("a rate is asked to stay above a limit: rate > 5k".to_owned()),
        _ => {
            let q = metric
                .strip_prefix('p')
                .and_then(quantile)
                .ok_or_else(unknown)?;
            if !is_below {
                return Err(format!(
                    "a response time is asked to stay below a limit: {metric} < 10ms"
                ));
            }
            if limit.ends_with(|last: char| last.is_ascii_digit()) {
                return Err(format!("`{limit}` has no unit; write {metric} < {limit}ms"));
            }
            let below_ns = units::duration_ns(limit).map_err(|error| error.to_string())?;
            Ok(Objective::ResponseQuantile { q, below_ns })
        }
    }
}

/// `99.9` as 0.999: between 0 and 100, both excluded.
fn quantile(percent: &str) -> Option<f64> {
    let is_number = percent
        .chars()
        .all(|digit| digit.is_ascii_digit() || digit == '.');
    let percent: f64 = percent.parse().ok().filter(|_| is_number)?;
    (percent > 0.0 && percent < 100.0).then_some(percent / 100.0)
}

/// `0.1%` as 0.001: above 0, up to 100 %.
fn share(typed: &str) -> Result<f64, String> {
    let percent = typed
        .strip_suffix('%')
        .and_then(|number| number.trim().parse().ok());
    percent
        .filter(|percent: &f64| *percent > 0.0 && *percent <= 100.0)
        .map(|percent| percent / 100.0)
        .ok_or_else(|| format!("`{typed}` is no share; write a percentage, as in 0.1%"))
}

/// Says on standard error what was missed; under GitHub Actions also as an annotation, and with a
/// table in the summary of the step.
///
/// # Errors
///
/// The summary cannot be written.
pub(crate) fn announce(judged: &Judged<'_>) -> Result<()> {
    let is_github = env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true");
    for missed in brunt_report::missed_objectives(judged) {
        message::print(&format_args!("objective {missed}"));
        if is_github {
            message::annotate(&missed);
        }
    }
    match env::var_os("GITHUB_STEP_SUMMARY") {
        Some(path) if is_github && !judged.run.objectives.is_empty() => {
            append_summary(judged, Path::new(&path))
        }
        _ => Ok(()),
    }
}

fn append_summary(judged: &Judged<'_>, path: &Path) -> Result<()> {
    let mut page = Vec::new();
    brunt_report::write(judged, Format::Markdown, &Style::default(), &mut page)?;
    page.push(b'\n');
    let file = OpenOptions::new().append(true).create(true).open(path);
    file.and_then(|mut file| file.write_all(&page))
        .with_context(|| format!("cannot write the summary to {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed() {
        let quantile = |q, below_ns| Objective::ResponseQuantile { q, below_ns };
        for (typed, expected) in [
            ("p99 < 10ms", vec![quantile(0.99, 10_000_000)]),
            ("p99.9<=1.5s", vec![quantile(0.999, 1_500_000_000)]),
            (
                "p50<1ms,errors < 0.1%, errors = 0 ,rate > 5k",
                vec![
                    quantile(0.5, 1_000_000),
                    Objective::Errors { below: 0.001 },
                    Objective::NoErrors,
                    Objective::SuccessesPerS { above: 5_000.0 },
                ],
            ),
            (
                "rate >= 100/s",
                vec![Objective::SuccessesPerS { above: 100.0 }],
            ),
        ] {
            let found = objectives(typed).expect(typed).0;
            for (found, expected) in found.iter().zip(&expected) {
                match (found, expected) {
                    (
                        Objective::ResponseQuantile { q, below_ns },
                        Objective::ResponseQuantile {
                            q: other,
                            below_ns: others,
                        },
                    ) => assert!((q - other).abs() < 1e-12 && below_ns == others, "{typed}"),
                    _ => assert_eq!(found, expected, "{typed}"),
                }
            }
            assert_eq!(found.len(), expected.len(), "{typed}");
        }
        for (typed, words) in [
            ("", "is no objective"),
            ("p99", "is no objective"),
            ("p99 < 10ms,", "is no objective"),
            ("p100 < 10ms", "is no objective"),
            ("p-1 < 10ms", "is no objective"),
            ("pNaN < 1s", "is no objective"),
            ("speed > 5", "is no objective"),
            ("p99 > 10ms", "stay below"),
            ("p99 == 10ms", "stay below"),
            ("p99 < x", "is no duration"),
            ("p99 < 10", "write p99 < 10ms"),
            ("errors < 1", "percentage"),
            ("errors < 0%", "percentage"),
            ("errors < 101%", "percentage"),
            ("errors > 1%", "stay below"),
            ("rate < 5k", "stay above"),
            ("rate > x", "is no rate"),
        ] {
            let error = objectives(typed).expect_err(typed);
            assert!(error.contains(words), "{typed}: {error}");
        }
    }
}
