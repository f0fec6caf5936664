//! Values of a sweep as people type them: `1..1000:10`, `1..10k:x2`, `1,10,100`.

use std::str::FromStr;

use brunt_judge::{SWEEP_VALUES_MAX, SweepAxis};
use brunt_load::units;
use brunt_record::WORKERS_MAX;

/// What can be varied, by the names that are typed.
pub const SWEEP_AXES: [(&str, SweepAxis); 6] = [
    ("connections", SweepAxis::Connections),
    ("rate", SweepAxis::Rate),
    ("threads", SweepAxis::Workers),
    ("streams", SweepAxis::Streams),
    ("body-size", SweepAxis::BodyBytes),
    ("requests", SweepAxis::Requests),
];
/// Largest body of a request.
const BODY_BYTES_MAX: f64 = (64_u32 << 20) as f64;

/// What is varied, and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Varied {
    /// The setting.
    pub axis: SweepAxis,
    /// Its values, ascending: one at least.
    pub values: Vec<f64>,
}

/// `NAME=VALUES`.
impl FromStr for Varied {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let (name, values) = typed.split_once('=').ok_or_else(|| {
            "write what is varied and its values, as in connections=1..1000:10".to_owned()
        })?;
        let known = SWEEP_AXES.iter().find(|(known, _)| *known == name);
        let (_, axis) = known.ok_or_else(|| {
            format!(
                "`{name}` cannot be varied; there are connections, rate, threads, streams, \
                 body-size and requests"
            )
        })?;
        Self::read(*axis, values)
    }
}

impl Varied {
    /// The values of this setting.
    ///
    /// # Errors
    ///
    /// They are none; in words.
    pub fn read(axis: SweepAxis, typed: &str) -> Result<Self, String> {
        let mut values = Vec::new();
        for part in typed.split(',') {
            if part.trim().is_empty() {
                return Err(format!(
                    "`{typed}` has no value where one is expected; write values with one comma \
                     between them, as in 1,10,100"
                ));
            }
            add_values(axis, part, &mut values)?;
            if values.len() > SWEEP_VALUES_MAX {
                return Err(format!("there can be {SWEEP_VALUES_MAX} values at most"));
            }
        }
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        let most = match axis {
            SweepAxis::Connections | SweepAxis::Streams => f64::from(u32::MAX),
            SweepAxis::Workers => f64::from(WORKERS_MAX),
            SweepAxis::BodyBytes => BODY_BYTES_MAX,
            SweepAxis::Rate | SweepAxis::Requests => f64::INFINITY,
        };
        if let Some(&last) = values.last().filter(|&&last| last > most) {
            return Err(format!("{last} is too large; {most} is the most"));
        }
        Ok(Self { axis, values })
    }
}

/// Adds a number, or `FROM..TO:STEP` or `FROM..TO:xFACTOR`.
fn add_values(axis: SweepAxis, typed: &str, values: &mut Vec<f64>) -> Result<(), String> {
    let number = |typed: &str| match axis {
        SweepAxis::Rate => units::rate(typed).map_err(|error| error.to_string()),
        _ => match units::count(typed).map_err(|error| error.to_string())? {
            0 if axis != SweepAxis::BodyBytes => Err("0 is not a value to measure at".to_owned()),
            count => Ok(count as f64),
        },
    };
    let Some((from, rest)) = typed.split_once("..") else {
        values.push(number(typed)?);
        return Ok(());
    };
    let no_step = || {
        format!(
            "`{typed}` has no step; write 1..1000:10 for steps of 10, 1..1000:x2 for twice as \
             much each time, or a list such as 1,10,100"
        )
    };
    let (to, step) = match rest.split_once(':') {
        Some((to, step)) => (to, Some(step)),
        None => (rest, None),
    };
    if from.is_empty() || to.is_empty() {
        return Err(format!(
            "`{typed}` has two ends, as in 1..1000:10; write both"
        ));
    }
    let (from, to) = (number(from)?, number(to)?);
    if from > to {
        return Err(format!(
            "`{typed}` goes down; write the smaller value first"
        ));
    }
    let step = step.ok_or_else(no_step)?;
    let is_whole = axis != SweepAxis::Rate;
    let (factor, step) = match step.strip_prefix('x') {
        Some(factor) => (factor.parse().map_err(|_| no_step())?, 0.0),
        None => (1.0, number(step)?),
    };
    if step == 0.0 && !(f64::is_finite(factor) && factor > 1.0 && from > 0.0) {
        return Err(format!(
            "`{typed}`: a step is above 0, a factor above 1, and what it multiplies above 0"
        ));
    }
    let mut value = from;
    // What rounding takes from the last value does not leave it out.
    while value <= to * (1.0 + 1e-9) && values.len() <= SWEEP_VALUES_MAX {
        values.push(if is_whole { value.round() } else { value });
        value = value * factor + step;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varied(typed: &str) -> Result<Varied, String> {
        typed.parse()
    }

    #[test]
    fn values_are_linear_geometric_or_listed() {
        for (typed, values) in [
            ("connections=1..31:10", vec![1.0, 11.0, 21.0, 31.0]),
            ("connections=1..10:x2", vec![1.0, 2.0, 4.0, 8.0]),
            ("connections=1..5:x1.5", vec![1.0, 2.0, 3.0]),
            ("connections=100,1,10,10", vec![1.0, 10.0, 100.0]),
            ("threads=1,4..8:4", vec![1.0, 4.0, 8.0]),
            ("rate=0.5..2:x2", vec![0.5, 1.0, 2.0]),
            ("rate=1k..3k:1k", vec![1_000.0, 2_000.0, 3_000.0]),
            ("body-size=0,1k", vec![0.0, 1_000.0]),
        ] {
            assert_eq!(varied(typed).expect(typed).values, values, "{typed}");
        }
        let classic = varied("connections=1..1000:10").expect("values").values;
        assert_eq!((classic.len(), classic[99]), (100, 991.0));
    }

    #[test]
    fn what_is_no_values() {
        for (typed, words) in [
            ("1..10", "as in connections="),
            ("speed=1..10:1", "cannot be varied"),
            ("connections=1..10", "no step"),
            ("connections=10..1:1", "goes down"),
            ("connections=10..1", "goes down"),
            ("connections=1..", "write both"),
            ("connections=..9:1", "write both"),
            ("connections=1..:2", "write both"),
            ("connections=", "no value"),
            ("connections=1,,2", "no value"),
            ("connections=1,", "no value"),
            ("connections=1..10:x1", "above 1"),
            ("connections=1..10:0", "0 is not a value"),
            ("connections=0..10:1", "0 is not a value"),
            ("connections=1..1000000:1", "10000 values"),
            ("connections=x", "is not a count"),
            ("connections=1,5g", "too large"),
            ("body-size=0..10:x2", "above 0"),
            ("rate=1..2:x", "no step"),
        ] {
            let error = varied(typed).expect_err(typed);
            assert!(error.contains(words), "{typed}: {error}");
        }
    }
}
