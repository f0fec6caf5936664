//! The ways to lay a page out: as text, with labels in one column, items beside them, wrapped at
//! the page's width; as Markdown, for pull requests; and as HTML.

use crate::foreign::{self, printable};
use crate::page::{Entry, LABEL, Page, Tone};
use crate::wrap::{columns, lines};

mod assets;
pub(crate) mod html;

fn escape_code(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::Strong => Some("\x1b[1m"),
        Tone::Warning => Some("\x1b[33m"),
        Tone::Bad => Some("\x1b[31m"),
        Tone::Refusal => Some("\x1b[1;31m"),
    }
}

/// The page as text, with escape codes for colour where it is `coloured`.
pub(crate) fn text(page: &Page, is_coloured: bool) -> String {
    let mut text = Text {
        width: page.width(),
        is_coloured,
        text: String::new(),
    };
    for section in page.sections() {
        text.blank();
        section.entries.iter().for_each(|entry| text.add(entry));
    }
    text.text
}

/// A text that grows line by line.
struct Text {
    width: usize,
    is_coloured: bool,
    text: String,
}

impl Text {
    fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Blank => self.blank(),
            Entry::Charts(_) => {}
            Entry::Line(line, tone) => {
                for line in lines(std::slice::from_ref(line), self.width) {
                    self.painted(&line, *tone);
                    self.end_line();
                }
            }
            Entry::Row {
                label,
                indent,
                items,
                tone,
            } => {
                let mut label = label.as_str();
                for line in lines(items, self.width - indent) {
                    self.label(label, LABEL.min(*indent));
                    self.painted(&line, *tone);
                    self.end_line();
                    label = "";
                }
            }
            Entry::Cells {
                grid,
                label,
                cells,
                note,
                tone,
                ..
            } => {
                let mut line = grid.aligned(cells);
                // Empty cells at the end leave the note their room.
                line.truncate(line.trim_end().len());
                let columns_used = grid.label + columns(&line) + 2 + columns(note);
                if !note.is_empty() && columns_used <= self.width {
                    line.push_str("  ");
                    line.push_str(note);
                }
                self.label(label, grid.label);
                self.painted(&line, *tone);
                self.end_line();
            }
        }
    }

    /// An empty line, but not as the first one, and no second one.
    fn blank(&mut self) {
        if !self.text.is_empty() && !self.text.ends_with("\n\n") {
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

    fn label(&mut self, label: &str, width: usize) {
        // A label that is too long keeps a gap: the row is then wider, but readable.
        let label = printable(label);
        self.text.push_str(&label);
        let used = columns(&label);
        let gap = if width == 0 {
            0
        } else {
            width.saturating_sub(used).max(1)
        };
        self.text.extend(std::iter::repeat_n(' ', gap));
    }

    fn painted(&mut self, text: &str, tone: Tone) {
        match escape_code(tone).filter(|_| self.is_coloured) {
            Some(code) => {
                self.text.push_str(code);
                self.text.push_str(text);
                self.text.push_str("\x1b[0m");
            }
            None => self.text.push_str(text),
        }
    }
}

/// A text as Markdown below this title: as code, which keeps its columns, and of which nothing is
/// obeyed.
pub(crate) fn markdown(title: &str, text: &str) -> String {
    let mut markdown = format!("### {title}\n\n");
    for line in text.lines() {
        let indent = if line.is_empty() { "" } else { "    " };
        markdown.extend([indent, line, "\n"]);
    }
    markdown
}
