//! Objectives and their outcomes in words.

use brunt_judge::ObjectiveOutcome;
use brunt_record::Objective;

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
    let asked = outcome.objective.plain();
    let value = |value: f64| match asked {
        Objective::ResponseQuantile { .. }
        | Objective::ResponseMax { .. }
        | Objective::ResponseMean { .. }
        | Objective::Named { .. } => units::duration(value as u64),
        Objective::Errors { .. } | Objective::NoErrors => share(value),
        Objective::SuccessesPerS { .. } => format!("{} req/s", units::rate(value)),
    };
    let side = match asked {
        Objective::SuccessesPerS { .. } => "from",
        _ => "up to",
    };
    let mut words: Vec<String> = outcome.measured.map(value).into_iter().collect();
    if let Some(bound) = outcome.bound {
        words.push(format!("{side} {} with 95 % confidence", value(bound)));
    }
    words.extend(outcome.reason.clone());
    words.join(", ")
}

/// Whether the objective was reached, in a word.
pub(crate) fn word(outcome: &ObjectiveOutcome) -> &'static str {
    if outcome.is_met { "met" } else { "MISSED" }
}

/// The outcome of an objective in one line.
pub(crate) fn line(outcome: &ObjectiveOutcome) -> String {
    let (asked, word) = (asked(&outcome.objective), word(outcome));
    format!("{asked} {word}: {}", found(outcome))
}

/// An outcome that was not shown, in one line.
pub(crate) fn not_shown(outcome: &ObjectiveOutcome) -> String {
    let (asked, found) = (asked(&outcome.objective), found(outcome));
    format!("{asked} not shown: {found}")
}

/// `p99`, `p99.9`.
pub(crate) fn quantile(q: f64) -> String {
    // Nines beyond what floats hold are not told.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_read_as_they_are_typed() {
        for (objective, words) in [
            (
                Objective::ResponseQuantile {
                    q: 0.99,
                    below_ns: 10_000_000,
                },
                "p99 < 10.0 ms",
            ),
            (
                Objective::ResponseQuantile {
                    q: 0.999_9,
                    below_ns: 1_500_000_000,
                },
                "p99.99 < 1.50 s",
            ),
            (Objective::Errors { below: 0.001 }, "errors < 0.1 %"),
            (Objective::Errors { below: 0.000_05 }, "errors < 0.005 %"),
            (Objective::Errors { below: 0.25 }, "errors < 25 %"),
            (Objective::NoErrors, "errors = 0"),
            (Objective::SuccessesPerS { above: 5_000.0 }, "rate > 5,000"),
            (
                Objective::ResponseMean {
                    below_ns: 2_000_000,
                },
                "mean < 2.00 ms",
            ),
            (
                Objective::Named {
                    name: "login".to_owned(),
                    objective: Box::new(Objective::ResponseMax {
                        below_ns: 50_000_000,
                    }),
                },
                "login: max < 50.0 ms",
            ),
        ] {
            assert_eq!(asked(&objective), words);
        }
    }
}
