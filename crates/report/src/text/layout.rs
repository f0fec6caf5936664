//! Lines of a text report: labels in one column, items beside them, wrapped at the page's width.

use std::borrow::Cow;

use crate::{Style, foreign, printable};

/// Columns of the label and the gap after it.
const LABEL: usize = 12;
/// A table with many cells.
const NARROW: Grid = Grid {
    label: LABEL,
    cell: 10,
};
/// A table with few and long ones.
const WIDE: Grid = Grid {
    label: LABEL,
    cell: 13,
};
/// Between the items of one line.
const SEPARATOR: &str = " · ";

/// The columns of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    /// Columns of the label and the gap after it.
    pub(crate) label: usize,
    /// Columns of each cell.
    pub(crate) cell: usize,
}

/// How a line stands out, on a terminal with colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// The line does not stand out.
    Plain,
    /// The headline.
    Strong,
    /// Something to look at.
    Warning,
    /// Something went wrong.
    Bad,
    /// The figures are refused.
    Refusal,
}

impl Tone {
    fn escape_code(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Strong => Some("\x1b[1m"),
            Self::Warning => Some("\x1b[33m"),
            Self::Bad => Some("\x1b[31m"),
            Self::Refusal => Some("\x1b[1;31m"),
        }
    }
}

/// What a page was asked to hold, in order and as it was given: for reports that are laid out in
/// another way.
#[derive(Clone, Debug)]
pub(crate) enum Entry {
    /// Text over the whole width.
    Line(String, Tone),
    /// A label and its items.
    Row {
        /// What stands before the items; begins with spaces where the row belongs to the one above.
        label: String,
        /// Each a few words.
        items: Vec<String>,
        /// How the row stands out.
        tone: Tone,
    },
    /// A row of a table; the first one of a table holds its headings.
    Cells {
        /// The first cell.
        label: String,
        /// The cells behind the first.
        cells: Vec<String>,
        /// Behind them; may be empty.
        note: String,
    },
}

/// A page that grows line by line.
#[derive(Debug)]
pub(crate) struct Page {
    width: usize,
    colour: bool,
    text: String,
    entries: Vec<Entry>,
}

impl Page {
    /// An empty page.
    pub(crate) fn new(style: &Style) -> Self {
        let width = usize::from(style.width.clamp(64, 160));
        Self {
            width,
            colour: style.colour,
            text: String::new(),
            entries: Vec::new(),
        }
    }

    /// What was laid out.
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    /// The entries that the page was asked to hold.
    pub(crate) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    /// An empty line, but no second one.
    pub(crate) fn blank(&mut self) {
        if !self.text.ends_with("\n\n") {
            self.end_line();
        }
    }

    fn end_line(&mut self) {
        let start = self.text.rfind('\n').map_or(0, |end| end + 1);
        if let Some(at) = foreign::command_in(&self.text[start..]) {
            self.text
                .replace_range(start + at..=start + at, foreign::COLON);
        }
        self.text.push('\n');
    }

    /// Text over the whole width.
    pub(crate) fn line(&mut self, text: &str, tone: Tone) {
        self.entries.push(Entry::Line(text.to_owned(), tone));
        for line in wrapped(&[printable(text)], self.width) {
            self.painted(&line, tone);
            self.end_line();
        }
    }

    /// A label and its items, on as many lines as they need.
    pub(crate) fn row(&mut self, label: &str, items: &[String], tone: Tone) {
        let mut shown = label;
        let indent = LABEL.max(columns(&printable(label)) + 1);
        for line in self.item_lines(label, items, indent, tone) {
            self.label(shown);
            self.painted(&line, tone);
            self.end_line();
            shown = "";
        }
    }

    /// Items without a label, behind `indent`.
    pub(crate) fn items(&mut self, indent: &str, items: &[String], tone: Tone) {
        for line in self.item_lines(indent, items, indent.len(), tone) {
            self.text.push_str(indent);
            self.painted(&line, tone);
            self.end_line();
        }
    }

    /// Notes a row, and gives its items on lines that leave `indent` columns.
    fn item_lines(
        &mut self,
        label: &str,
        items: &[String],
        indent: usize,
        tone: Tone,
    ) -> Vec<String> {
        self.entries.push(Entry::Row {
            label: label.to_owned(),
            items: items.to_vec(),
            tone,
        });
        let items: Vec<Cow<'_, str>> = items.iter().map(|item| printable(item)).collect();
        wrapped(&items, self.width - indent)
    }

    /// Lines that items without a label take.
    pub(crate) fn lines_of(&self, items: &[String]) -> usize {
        let items: Vec<Cow<'_, str>> = items.iter().map(|item| printable(item)).collect();
        wrapped(&items, self.width).len()
    }

    /// A label, a row of right-aligned cells, and a note behind them where there is room.
    pub(crate) fn cells(&mut self, label: &str, cells: &[String], note: &str, tone: Tone) {
        self.table_row(NARROW, label, cells, note, tone);
    }

    /// A label and a row of right-aligned, wider cells.
    pub(crate) fn wide_cells(&mut self, label: &str, cells: &[String], tone: Tone) {
        self.table_row(WIDE, label, cells, "", tone);
    }

    /// A row of a table with columns of its own: a label, right-aligned cells, and a note behind
    /// them where there is room.
    pub(crate) fn table_row(
        &mut self,
        grid: Grid,
        label: &str,
        cells: &[String],
        note: &str,
        tone: Tone,
    ) {
        self.entries.push(Entry::Cells {
            label: label.to_owned(),
            cells: cells.to_vec(),
            note: note.to_owned(),
        });
        let mut line = printable(&aligned(cells, grid.cell)).into_owned();
        // Empty cells at the end leave the note their room.
        line.truncate(line.trim_end().len());
        if !note.is_empty() && self.has_room(grid, cells, note) {
            line.push_str("  ");
            line.push_str(note);
        }
        self.label_within(label, grid.label);
        self.painted(&line, tone);
        self.end_line();
    }

    /// Whether a row of a table has room for a note behind its cells.
    pub(crate) fn has_room(&self, grid: Grid, cells: &[String], note: &str) -> bool {
        let line = aligned(cells, grid.cell);
        grid.label + columns(&printable(line.trim_end())) + 2 + columns(note) <= self.width
    }

    /// Columns of the page.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    fn label(&mut self, label: &str) {
        self.label_within(label, LABEL);
    }

    fn label_within(&mut self, label: &str, width: usize) {
        // A label that is too long keeps a gap: the row is then wider, but readable.
        let label = printable(label);
        self.text.push_str(&label);
        let used = label.chars().count();
        self.text
            .extend(std::iter::repeat_n(' ', width.saturating_sub(used).max(1)));
    }

    fn painted(&mut self, text: &str, tone: Tone) {
        match tone.escape_code().filter(|_| self.colour) {
            Some(code) => {
                self.text.push_str(code);
                self.text.push_str(text);
                self.text.push_str("\x1b[0m");
            }
            None => self.text.push_str(text),
        }
    }
}

fn aligned(cells: &[String], width: usize) -> String {
    cells.iter().map(|cell| format!("{cell:>width$}")).collect()
}

/// The items on lines of at most `width` columns. A line breaks between items where it can, then
/// between words, then inside a word.
fn wrapped<T: AsRef<str>>(items: &[T], width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for item in items.iter().map(AsRef::as_ref) {
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

fn columns(text: &str) -> usize {
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
            (&["one two three", "x"], 8, &["one two", "three", "x"]),
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
        for (items, width, lines) in cases {
            let items: Vec<String> = items.iter().map(|&item| item.to_owned()).collect();
            let found = wrapped(&items, *width);
            if *width != 8 {
                assert_eq!(found, *lines, "{items:?} in {width}");
            }
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
            let lines = wrapped(&items, width);
            assert_eq!(
                letters(&lines.concat()),
                letters(&items.concat()),
                "{width}"
            );
            assert!(lines.iter().all(|line| columns(line) <= width), "{width}");
        }
    }
}
