//! A report before it is laid out: sections of rows, tables and charts. Text, HTML and Markdown lay
//! the same ones out.

use serde::Serialize;

use crate::Style;
use crate::foreign::printable;
use crate::wrap::{columns, lines};

/// Columns of the label and the gap after it.
pub(crate) const LABEL: usize = 12;
/// A table with few and long cells.
pub(crate) const WIDE: Grid = Grid {
    label: LABEL,
    cell: 13,
};
/// Width of a page whose lines are not broken.
const UNBROKEN: usize = u16::MAX as usize;

/// The columns of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    /// Columns of the label and the gap after it.
    pub(crate) label: usize,
    /// Columns of each cell.
    pub(crate) cell: usize,
}

impl Grid {
    /// The cells of a row behind its label, right-aligned.
    pub(crate) fn aligned(self, cells: &[String]) -> String {
        let width = self.cell;
        let cells: String = cells.iter().map(|cell| format!("{cell:>width$}")).collect();
        printable(&cells).into_owned()
    }
}

/// How a line stands out, on a terminal with colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
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
    /// This tone where `holds`; else the line does not stand out.
    pub(crate) fn when(self, holds: bool) -> Self {
        if holds { self } else { Self::Plain }
    }
}

/// What a section is to a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The answer: on a page of HTML it comes first.
    Outcome,
    /// Figures.
    Figures,
    /// For those who want it: on a page of HTML it is folded away.
    Detail,
    /// What was asked, and where it ran: on a page of HTML it comes last.
    Background,
}

/// A part of a page. Text shows a blank line above it.
#[derive(Debug)]
pub(crate) struct Section {
    /// The title; empty of what stands before all others.
    pub(crate) title: String,
    pub(crate) role: Role,
    pub(crate) entries: Vec<Entry>,
}

/// A part of a section.
#[derive(Debug)]
pub(crate) enum Entry {
    /// A blank line of text.
    Blank,
    /// Text over the whole width.
    Line(String, Tone),
    /// A label and its items.
    Row {
        /// What stands before the items; begins with spaces where the row belongs to the one above.
        label: String,
        /// Columns before the items.
        indent: usize,
        /// Each a few words.
        items: Vec<String>,
        /// How the row stands out.
        tone: Tone,
    },
    /// A row of a table.
    Cells {
        /// Whether the cells are headings.
        is_head: bool,
        /// The columns of the table.
        grid: Grid,
        /// The first cell.
        label: String,
        /// The cells behind the first.
        cells: Vec<String>,
        /// Behind them; may be empty.
        note: String,
        /// How the row stands out.
        tone: Tone,
    },
    /// The place of the charts of this name, which a page's script draws. Text has none.
    Charts(&'static str),
}

/// A page that grows entry by entry.
#[derive(Debug)]
pub(crate) struct Page {
    width: usize,
    is_full: bool,
    sections: Vec<Section>,
}

impl Page {
    /// An empty page of text.
    pub(crate) fn new(style: &Style) -> Self {
        let width = usize::from(style.width.clamp(80, 160));
        Self::of(width, style.verbose)
    }

    /// An empty page with everything on it, whose lines whoever lays it out breaks.
    pub(crate) fn unbroken() -> Self {
        Self::of(UNBROKEN, true)
    }

    fn of(width: usize, is_full: bool) -> Self {
        let mut page = Self {
            width,
            is_full,
            sections: Vec::new(),
        };
        page.section("", Role::Figures);
        page
    }

    /// Whether the page has what changes nothing about how the rest is to be read.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full
    }

    /// Columns of the page.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// What is on the page. The first section has no title.
    pub(crate) fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Label and items of the first row.
    pub(crate) fn first_row(&self) -> Option<(&str, &[String])> {
        let mut entries = self.sections.iter().flat_map(|section| &section.entries);
        entries.find_map(|entry| match entry {
            Entry::Row { label, items, .. } => Some((label.as_str(), items.as_slice())),
            _ => None,
        })
    }

    /// Begins a section where the page is full. On a short one, what follows belongs to the section
    /// above.
    pub(crate) fn subsection(&mut self, title: &str, role: Role) {
        if self.is_full {
            self.section(title, role);
        }
    }

    /// Begins a section.
    pub(crate) fn section(&mut self, title: &str, role: Role) {
        self.sections.push(Section {
            title: title.to_owned(),
            role,
            entries: Vec::new(),
        });
    }

    fn add(&mut self, entry: Entry) {
        if let Some(section) = self.sections.last_mut() {
            section.entries.push(entry);
        }
    }

    /// A blank line, but no second one.
    pub(crate) fn blank(&mut self) {
        self.add(Entry::Blank);
    }

    /// Text over the whole width.
    pub(crate) fn line(&mut self, text: &str, tone: Tone) {
        self.add(Entry::Line(text.to_owned(), tone));
    }

    /// A label and its items, on as many lines as they need; no row where there are none.
    pub(crate) fn row(&mut self, label: &str, items: &[String], tone: Tone) {
        let indent = LABEL.max(columns(&printable(label)) + 1);
        self.indented(label, indent, items, tone);
    }

    /// Items that say themselves what they are: on a short page they stand without their label.
    pub(crate) fn lead(&mut self, label: &str, items: &[String], tone: Tone) {
        if self.is_full {
            self.row(label, items, tone);
        } else {
            let indent = if label.is_empty() { 2 } else { 0 };
            self.indented("", indent, items, tone);
        }
    }

    fn indented(&mut self, label: &str, indent: usize, items: &[String], tone: Tone) {
        if items.is_empty() {
            return;
        }
        self.add(Entry::Row {
            label: label.to_owned(),
            indent,
            items: items.to_vec(),
            tone,
        });
    }

    /// The headings of a table: one for its labels, one for each cell, and one for the notes.
    pub(crate) fn table_head(&mut self, grid: Grid, label: &str, cells: &[&str], note: &str) {
        self.add(Entry::Cells {
            is_head: true,
            grid,
            label: label.to_owned(),
            cells: cells.iter().map(|&cell| cell.to_owned()).collect(),
            note: note.to_owned(),
            tone: Tone::Plain,
        });
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
        self.add(Entry::Cells {
            is_head: false,
            grid,
            label: label.to_owned(),
            cells: cells.to_vec(),
            note: note.to_owned(),
            tone,
        });
    }

    /// The place of the charts of this name.
    pub(crate) fn charts(&mut self, name: &'static str) {
        self.add(Entry::Charts(name));
    }

    /// Lines that items without a label take.
    pub(crate) fn lines_of(&self, items: &[String]) -> usize {
        lines(items, self.width).len()
    }
}
