//! Numbers as the C library reads and prints them.

/// A number with up to six significant digits, as `%g` prints it.
pub(super) fn general(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let without_zeros = |text: &str| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text.to_owned(),
    };
    if (-4..6).contains(&exponent) {
        let places = (5 - exponent).unsigned_abs() as usize;
        without_zeros(&format!("{value:.places$}"))
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        let exponent = exponent.unsigned_abs();
        format!("{}e{sign}{exponent:02}", without_zeros(digits))
    }
}

/// A whole number, followed by nothing.
pub(super) fn whole(typed: &str) -> Option<i64> {
    typed.trim_start().parse().ok()
}

/// A number of seconds or per second, followed by nothing.
pub(super) fn real(typed: &str) -> Option<f64> {
    let value: f64 = typed.trim_start().parse().ok()?;
    value.is_finite().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_the_c_library_prints_them() {
        for (value, text) in [
            (0.0, "0"),
            (3.0, "3"),
            (1.25, "1.25"),
            (0.1234, "0.1234"),
            (123_456.789, "123457"),
            (0.333_333_333, "0.333333"),
            (1e8, "1e+08"),
            (1_234_567.0, "1.23457e+06"),
            (0.000_012_5, "1.25e-05"),
            (100.0, "100"),
            (999_999.9, "1e+06"),
        ] {
            assert_eq!(general(value), text, "{value}");
        }
    }
}
