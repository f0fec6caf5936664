//! Command lines of tests.

/// The words of a line without quotes.
pub(crate) fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}
