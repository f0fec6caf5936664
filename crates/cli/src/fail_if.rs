//! `--fail-if`: changes of a server against the first that are too large.

use brunt_judge::{ChangeLimit, Compared, ROUND_QUANTILES};

/// `rate < -5%`, `p99 > +5%`.
pub(crate) fn change_limit(typed: &str) -> Result<ChangeLimit, String> {
    let unknown = || {
        format!(
            "`{}` is not a limit of a change; write one as 'rate < -5%' or 'p99 > +5%'",
            typed.trim()
        )
    };
    let at = typed.find(['<', '>']).ok_or_else(unknown)?;
    let (name, is_rise) = (typed[..at].trim(), typed[at..].starts_with('>'));
    let limit = typed[at + 1..].trim();
    let compared = match name {
        "rate" => Compared::SuccessesPerS,
        "capacity" => Compared::CapacityPerS,
        "cpu" => Compared::ServerCpu,
        _ => {
            let known = ROUND_QUANTILES.iter().find(|(known, _)| *known == name);
            let (_, q) = known.ok_or_else(|| {
                format!(
                    "`{name}` is not compared; there are cpu, rate, p50, p90, p99, p99.9 and \
                     capacity"
                )
            })?;
            Compared::ResponseQuantile(*q)
        }
    };
    let percent = limit.strip_suffix('%').map(str::trim_end);
    let percent: f64 = percent
        .and_then(|number| number.parse().ok())
        .filter(|percent: &f64| percent.is_finite())
        .ok_or_else(unknown)?;
    // A limit on the side of no change would be exceeded by a server that is as it was.
    if (is_rise && percent < 0.0) || (!is_rise && percent > 0.0) {
        return Err(format!(
            "`{}` would fail without a change; write '{name} > +5%' for a rise, or \
             '{name} < -5%' for a fall",
            typed.trim()
        ));
    }
    Ok(ChangeLimit {
        compared,
        change: percent / 100.0,
        is_rise,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_of_changes() {
        for (typed, compared, change, is_rise) in [
            ("rate < -5%", Compared::SuccessesPerS, -0.05, false),
            ("p99 > +5%", Compared::ResponseQuantile(0.99), 0.05, true),
            ("capacity < -5%", Compared::CapacityPerS, -0.05, false),
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
