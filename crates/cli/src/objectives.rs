//! `--objective`, what is asked of a run, and what is said where it was missed; and `--fail-if`,
//! changes of a server against the first that are too large.

use std::env;

use brunt_judge::{ChangeLimit, Compared, Judged, LimitStands, ROUND_QUANTILES};
use brunt_load::units;
use brunt_record::{OBJECTIVES_MAX, Objective};
use brunt_report::Experiment;

use crate::message;

/// The objectives of one option.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Objectives(Vec<Objective>);

/// The objectives of all options together. Absent where none was given: the objectives that a
/// stored run was asked to reach hold then.
pub(crate) fn asked(options: &[Objectives]) -> Option<Vec<Objective>> {
    let all = options.iter().flat_map(|option| &option.0).cloned();
    let all: Vec<Objective> = all.collect();
    (!all.is_empty()).then_some(all)
}

/// Objectives with commas between them: `p99 < 10ms, errors < 0.1%, rate > 5k`.
pub(crate) fn objectives(typed: &str) -> Result<Objectives, String> {
    let objectives = typed.split(',').map(objective);
    let objectives: Vec<Objective> = objectives.collect::<Result<_, _>>()?;
    if objectives.len() > OBJECTIVES_MAX {
        return Err(format!("there can be {OBJECTIVES_MAX} at most"));
    }
    Ok(Objectives(objectives))
}

/// What stands before an operator, the operator, and what stands behind it.
fn condition(typed: &str) -> Option<(&str, &str, &str)> {
    const OPERATORS: [char; 3] = ['<', '>', '='];
    let (metric, rest) = typed.split_at(typed.find(OPERATORS)?);
    let limit = rest.trim_start_matches(OPERATORS);
    Some((
        metric.trim(),
        &rest[..rest.len() - limit.len()],
        limit.trim(),
    ))
}

/// `5 %` as 0.05.
fn percentage(typed: &str) -> Option<f64> {
    let percent: f64 = typed.strip_suffix('%')?.trim_end().parse().ok()?;
    Some(percent / 100.0)
}

fn objective(typed: &str) -> Result<Objective, String> {
    let unknown = || {
        format!(
            "`{}` is not an objective; write one as p99 < 10ms, mean < 2ms, max < 1s, errors < \
             0.1%, errors = 0 or rate > 5k, or with a name before it, as in login: p99 < 50ms",
            typed.trim()
        )
    };
    // A name may have any of these.
    if let Some((name, of_name)) = typed.rsplit_once(':') {
        let name = name.trim();
        return match objective(of_name)? {
            _ if name.is_empty() => Err(unknown()),
            Objective::SuccessesPerS { .. } => Err(format!(
                "a rate is asked of all requests together, not of `{name}`: rate > 5k"
            )),
            of_name => Ok(Objective::Named {
                name: name.to_owned(),
                objective: Box::new(of_name),
            }),
        };
    }
    let (metric, operator, limit) = condition(typed).ok_or_else(unknown)?;
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
            let q = metric.strip_prefix('p').and_then(quantile);
            if q.is_none() && !["max", "mean"].contains(&metric) {
                return Err(unknown());
            }
            if !is_below {
                return Err(format!(
                    "a response time is asked to stay below a limit: {metric} < 10ms"
                ));
            }
            if limit.ends_with(|last: char| last.is_ascii_digit()) {
                return Err(format!("`{limit}` has no unit; write {metric} < {limit}ms"));
            }
            let below_ns = units::duration_ns(limit).map_err(|error| error.to_string())?;
            Ok(match q {
                Some(q) => Objective::ResponseQuantile { q, below_ns },
                None if metric == "max" => Objective::ResponseMax { below_ns },
                None => Objective::ResponseMean { below_ns },
            })
        }
    }
}

/// `99.9` as 0.999: between 0 and 100, both excluded.
fn quantile(percent: &str) -> Option<f64> {
    let mut digits = percent.chars();
    let is_number = digits.all(|digit| digit.is_ascii_digit() || digit == '.');
    let percent: f64 = percent.parse().ok().filter(|_| is_number)?;
    (percent > 0.0 && percent < 100.0).then_some(percent / 100.0)
}

/// `0.1%` as 0.001: above 0, up to 100 %.
fn share(typed: &str) -> Result<f64, String> {
    percentage(typed)
        .filter(|share| *share > 0.0 && *share <= 1.0)
        .ok_or_else(|| format!("`{typed}` is not a share; write a percentage, as in 0.1%"))
}

/// A change that is too large: `rate < -5%`, `p99 > +5%`.
pub(crate) fn change_limit(typed: &str) -> Result<ChangeLimit, String> {
    let unknown = || {
        format!(
            "`{}` is not a limit of a change; write one as 'rate < -5%' or 'p99 > +5%'",
            typed.trim()
        )
    };
    let (name, operator, limit) = condition(typed).ok_or_else(unknown)?;
    let compared = match name {
        "rate" => Compared::SuccessesPerS,
        "cpu" => Compared::ServerCpu,
        _ => {
            let known = ROUND_QUANTILES.iter().find(|(known, _)| *known == name);
            let (_, q) = known.ok_or_else(|| {
                format!("`{name}` is not compared; there are cpu, rate, p50, p90, p99 and p99.9")
            })?;
            Compared::ResponseQuantile(*q)
        }
    };
    let is_rise = match operator {
        "<" => false,
        ">" => true,
        _ => return Err(unknown()),
    };
    let change = percentage(limit).filter(|change| change.is_finite());
    let change = change.ok_or_else(unknown)?;
    // A limit on the side of no change would be exceeded by a server that is as it was.
    if (is_rise && change < 0.0) || (!is_rise && change > 0.0) {
        return Err(format!(
            "`{}` would fail without a change; write '{name} > +5%' for a rise, or \
             '{name} < -5%' for a fall",
            typed.trim()
        ));
    }
    Ok(ChangeLimit {
        compared,
        change,
        is_rise,
    })
}

/// Says on standard error what was missed; under GitHub Actions also as an annotation.
pub(crate) fn announce(judged: &Judged<'_>) {
    let is_github = env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true");
    for missed in brunt_report::missed_objectives(judged) {
        message::print(&format_args!("objective {missed}"));
        if is_github {
            message::annotate(&missed);
        }
    }
}

/// Says on standard error which limits of changes were exceeded, or could not be judged.
pub(crate) fn announce_limits(experiment: &Experiment) {
    let Experiment::Comparison(compared) = experiment else {
        return;
    };
    for (outcome, stand) in [
        ("failed", LimitStands::Exceeded),
        ("not judged", LimitStands::NotJudged),
        ("undecided", LimitStands::Open),
    ] {
        for words in brunt_report::limits_that(compared, stand) {
            message::print(&format_args!("{outcome} {words}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed() {
        let quantile = |q, below_ns| Objective::ResponseQuantile { q, below_ns };
        let max = |below_ns| Objective::ResponseMax { below_ns };
        let mean = |below_ns| Objective::ResponseMean { below_ns };
        let errors = |below| Objective::Errors { below };
        let rate = |above| Objective::SuccessesPerS { above };
        let named = |name: &str, objective| Objective::Named {
            name: name.to_owned(),
            objective: Box::new(objective),
        };
        let none = || Objective::NoErrors;
        for (typed, expected) in [
            ("p99 < 10ms", vec![quantile(0.99, 10_000_000)]),
            ("p99.9<=1.5s", vec![quantile(0.999, 1_500_000_000)]),
            (
                "p50<1ms,errors < 0.1%, errors = 0 ,rate > 5k",
                vec![
                    quantile(0.5, 1_000_000),
                    errors(0.001),
                    none(),
                    rate(5_000.0),
                ],
            ),
            (
                "max < 1s, mean<2ms",
                vec![max(1_000_000_000), mean(2_000_000)],
            ),
            (
                "login: max < 50 ms, POST /a?b=c:8080: errors = 0",
                vec![
                    named("login", max(50_000_000)),
                    named("POST /a?b=c:8080", none()),
                ],
            ),
            ("rate >= 100/s", vec![rate(100.0)]),
        ] {
            let found = objectives(typed).expect(typed).0;
            // 99.9 % is no binary fraction.
            let rounded = |objective: &Objective| match objective {
                Objective::ResponseQuantile { q, below_ns } => {
                    quantile((q * 1e9).round(), *below_ns)
                }
                objective => objective.clone(),
            };
            let of = |all: &[Objective]| all.iter().map(rounded).collect::<Vec<_>>();
            assert_eq!(of(&found), of(&expected), "{typed}");
        }
        for (typed, words) in [
            ("", "is not an objective"),
            ("p99", "is not an objective"),
            ("p99 < 10ms,", "is not an objective"),
            ("p100 < 10ms", "is not an objective"),
            ("p-1 < 10ms", "is not an objective"),
            ("pNaN < 1s", "is not an objective"),
            ("speed > 5", "is not an objective"),
            ("p99 > 10ms", "stay below"),
            ("p99 == 10ms", "stay below"),
            ("p99 < x", "is not a duration"),
            ("p99 < 10", "write p99 < 10ms"),
            ("errors < 1", "percentage"),
            ("errors < 0%", "percentage"),
            ("errors < 101%", "percentage"),
            ("errors > 1%", "stay below"),
            ("rate < 5k", "stay above"),
            ("max > 1s", "stay below"),
            ("mean < 2", "write mean < 2ms"),
            (": p99 < 1s", "is not an objective"),
            ("login: rate > 5k", "not of `login`"),
            ("login: speed < 5", "is not an objective"),
            ("rate > x", "is not a rate"),
            ("rate > 5,000", "is not an objective"),
        ] {
            let error = objectives(typed).expect_err(typed);
            assert!(error.contains(words), "{typed}: {error}");
        }
    }

    #[test]
    fn limits_of_changes() {
        for (typed, compared, change, is_rise) in [
            ("rate < -5%", Compared::SuccessesPerS, -0.05, false),
            ("p99 > +5%", Compared::ResponseQuantile(0.99), 0.05, true),
            ("cpu > +3%", Compared::ServerCpu, 0.03, true),
            (
                "p99.9>2.5 %",
                Compared::ResponseQuantile(0.999),
                0.025,
                true,
            ),
            ("p50 > 0%", Compared::ResponseQuantile(0.5), 0.0, true),
        ] {
            let limit = ChangeLimit {
                compared,
                change,
                is_rise,
            };
            assert_eq!(change_limit(typed), Ok(limit), "{typed}");
        }
        for (typed, words) in [
            ("", "not a limit"),
            ("p99", "not a limit"),
            ("p99 > 5", "not a limit"),
            ("p99 > x%", "not a limit"),
            ("p99 > inf%", "not a limit"),
            ("p42 > 5%", "not compared"),
            ("p99 > -5%", "without a change"),
            ("rate < 5%", "without a change"),
        ] {
            let error = change_limit(typed).expect_err(typed);
            assert!(error.contains(words), "{typed}: {error}");
        }
    }
}
