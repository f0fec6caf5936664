//! Lines of a list that are no URL with its weight: what to write instead.

/// What a weight is given with, behind a URL.
pub(crate) const WEIGHT: &str = "weight=";

/// Characters of a line that are shown.
const SHOWN_MAX: usize = 80;
/// Methods that a target of vegeta begins with.
const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// What a line of a list of URLs is, where that shows by its beginning, and what to do instead.
pub(crate) fn remedy(text: &str) -> Option<&'static str> {
    if text.starts_with('{') {
        return Some("it is a target in JSON: give the file with --targets");
    }
    let (first, _) = text.split_once(char::is_whitespace)?;
    METHODS
        .contains(&first)
        .then_some("it is a target: give the file with --targets")
}

/// What stands behind a URL, and is not a weight.
pub(crate) fn more_than_a_url(behind: &str) -> String {
    format!(
        "behind the URL stands `{}`; a line has a URL and, if need be, {WEIGHT}N; within a URL \
         write %20 for a space (docs/lists.md has what lines of other tools become)",
        shortened(behind)
    )
}

/// The beginning of a long text.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
