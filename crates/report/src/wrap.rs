//! Items of a row, broken into lines of a width.

use crate::foreign::printable;

/// Between the items of one line.
const SEPARATOR: &str = " · ";

/// The items on lines of at most `width` columns. A line breaks between items where it can, then
/// between words, then inside a word.
pub(crate) fn lines(items: &[String], width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for item in items {
        let item = &*printable(item);
        let gap = if line.is_empty() { "" } else { SEPARATOR };
        if columns(&line) + columns(gap) + columns(item) <= width {
            line.push_str(gap);
            line.push_str(item);
            continue;
        }
        if !line.is_empty() {
            lines.push(std::mem::take(&mut line));
        }
        for word in words(item) {
            let gap = if line.is_empty() { "" } else { " " };
            if columns(&line) + columns(gap) + columns(word) <= width {
                line.push_str(gap);
                line.push_str(word);
                continue;
            }
            if !line.is_empty() {
                lines.push(std::mem::take(&mut line));
            }
            let mut rest = word;
            while columns(rest) > width {
                let (piece, after) = rest.split_at(break_in_word(rest, width));
                lines.push(piece.to_owned());
                rest = after;
            }
            line.push_str(rest);
        }
    }
    lines.push(line);
    lines
}

/// The words of `text`; a number and a short word after it, its unit, are one.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    for (gap, _) in text.match_indices(' ') {
        let next = text[gap + 1..].split(' ').next().unwrap_or_default();
        if !text[..gap].ends_with(|last: char| last.is_ascii_digit()) || columns(next) > 5 {
            words.push(&text[start..gap]);
            start = gap + 1;
        }
    }
    words.push(&text[start..]);
    words
}

/// Where to break a word that is wider than `width`, in bytes: behind the last mark of a URL in
/// the second half of the line, or at its end.
fn break_in_word(word: &str, width: usize) -> usize {
    let mut at_end = 0;
    let mut at_mark = None;
    for (column, (start, character)) in word.char_indices().take(width).enumerate() {
        at_end = start + character.len_utf8();
        if column >= width / 2 && matches!(character, '/' | '?' | '&' | '=' | '-' | ',' | ';') {
            at_mark = Some(at_end);
        }
    }
    at_mark.unwrap_or(at_end)
}

pub(crate) fn columns(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_items_then_words_then_inside_words() {
        let cases: &[(&[&str], usize, &[&str])] = &[
            (&["a", "b"], 10, &["a · b"]),
            (&["aaaa", "bbbb"], 11, &["aaaa · bbbb"]),
            (&["aaaa", "bbbb"], 10, &["aaaa", "bbbb"]),
            (&["one two three", "x"], 9, &["one two", "three · x"]),
            (&["http://h/aa/bbbbbb"], 12, &["http://h/aa/", "bbbbbb"]),
            (
                &["it took 10.0 s; again"],
                12,
                &["it took", "10.0 s;", "again"],
            ),
            (&["µµµµµµµ"], 3, &["µµµ", "µµµ", "µ"]),
            (&[], 10, &[""]),
        ];
        for (items, width, expected) in cases {
            let items: Vec<String> = items.iter().map(|&item| item.to_owned()).collect();
            let found = lines(&items, *width);
            assert_eq!(found, *expected, "{items:?} in {width}");
            assert!(
                found.iter().all(|line| columns(line) <= *width),
                "{found:?} in {width}"
            );
        }
    }

    #[test]
    fn nothing_is_lost_however_narrow() {
        let items = [
            "http://host/a?b=c&d".to_owned(),
            "two words".to_owned(),
            "ünïcödé".to_owned(),
        ];
        let letters = |text: &str| text.replace([' ', '·'], "");
        for width in 1..60 {
            let found = lines(&items, width);
            assert_eq!(
                letters(&found.concat()),
                letters(&items.concat()),
                "{width}"
            );
            assert!(found.iter().all(|line| columns(line) <= width), "{width}");
        }
    }
}
