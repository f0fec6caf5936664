//! Counts for people, with their noun.

/// A count with commas between thousands: `155,310`.
pub fn count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `number` and the word for it: `1 connection`, `64 connections`.
pub fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", count(number), if number == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        for (number, words) in [
            (0, "0 replies"),
            (1, "1 reply"),
            (2, "2 replies"),
            (999, "999 replies"),
            (1_000, "1,000 replies"),
            (1_234_567, "1,234,567 replies"),
            (u64::MAX, "18,446,744,073,709,551,615 replies"),
        ] {
            assert_eq!(counted(number, "reply", "replies"), words);
        }
    }
}
