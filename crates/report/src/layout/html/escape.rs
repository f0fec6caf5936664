//! Text from anywhere, made inert in HTML: the one way into a page.

use std::borrow::Cow;

use serde::Serialize;

pub(crate) use crate::foreign::html as text;

/// A text of several lines, made inert in HTML; lines stay lines.
pub(crate) fn lines(lines: &str) -> String {
    let lines: Vec<String> = lines.lines().map(text).collect();
    lines.join("\n")
}

/// `value` as JSON that may stand in a `<script>` element: with nothing in it that HTML or old
/// JavaScript would take for an end.
///
/// # Errors
///
/// When `value` has no JSON form.
pub(crate) fn json(value: &impl Serialize) -> serde_json::Result<String> {
    let json = serde_json::to_string(value)?;
    let mut escaped = String::with_capacity(json.len());
    // Outside of strings JSON has none of these.
    for character in json.chars() {
        let word: Cow<'_, str> = match character {
            '<' => "\\u003c".into(),
            '>' => "\\u003e".into(),
            '&' => "\\u0026".into(),
            '\u{2028}' => "\\u2028".into(),
            '\u{2029}' => "\\u2029".into(),
            other => {
                escaped.push(other);
                continue;
            }
        };
        escaped.push_str(&word);
    }
    Ok(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        assert_eq!(lines("a<\nb\u{1b}"), "a&lt;\nb\\u{1b}");
    }

    #[test]
    fn json_ends_no_script_and_reads_back_the_same() {
        let hostile = "</script><!--<script>& \u{2028}\u{2029}\"\\\u{0}";
        let escaped = json(&[hostile]).expect("a text has a JSON form");
        for part in ["<", ">", "&", "\u{2028}", "\u{2029}"] {
            assert!(!escaped.contains(part), "{escaped}");
        }
        let read: Vec<String> = serde_json::from_str(&escaped).expect("it is JSON");
        assert_eq!(read, [hostile]);
    }
}
