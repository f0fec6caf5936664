//! Amounts of bytes in powers of 1,024, as tools print them whose units say so.

/// Bytes with a unit, and this between them: whole bytes, else two decimals.
pub(crate) fn binary(bytes: f64, gap: &str) -> String {
    let mut amount = bytes;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if amount < 1_024.0 {
            break;
        }
        amount /= 1_024.0;
        unit = larger;
    }
    let decimals = if unit == "B" { 0 } else { 2 };
    format!("{amount:.decimals$}{gap}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_begins_where_it_is_whole() {
        for (amount, expected) in [
            (0.0, "0 B"),
            (1_023.0, "1023 B"),
            (1_024.0, "1.00 KiB"),
            (1_239_876.0, "1.18 MiB"),
            (2e18, "1818989.40 TiB"),
        ] {
            assert_eq!(binary(amount, " "), expected);
        }
    }
}
