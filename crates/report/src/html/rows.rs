//! Rows of the text report as parts of a page: the same words, laid out as lists and tables.

use std::fmt::Write;

use super::escape;
use crate::Style;
use crate::text::layout::{Entry, Page, Tone};

/// A text page that is as wide as there are, for its entries alone.
fn entries(fill: impl FnOnce(&mut Page)) -> Vec<Entry> {
    let mut page = Page::new(&Style {
        width: u16::MAX,
        ..Style::default()
    });
    fill(&mut page);
    page.into_entries()
}

/// The class of what stands out so.
fn class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "plain",
        Tone::Strong => "strong",
        Tone::Warning => "warning",
        Tone::Bad => "bad",
        Tone::Refusal => "refusal",
    }
}

/// What `fill` puts on a text page: rows as lists of labels and items, tables as tables. Empty
/// where there is nothing.
pub(crate) fn rows(fill: impl FnOnce(&mut Page)) -> String {
    let mut parts = Parts::default();
    for entry in entries(fill) {
        parts.add(&entry);
    }
    parts.finish()
}

/// The items of the first row that `fill` puts on a text page.
pub(crate) fn first_items(fill: impl FnOnce(&mut Page)) -> Vec<String> {
    let mut entries = entries(fill).into_iter();
    let items = entries.find_map(|entry| match entry {
        Entry::Row { items, .. } => Some(items),
        Entry::Line(..) | Entry::Cells { .. } => None,
    });
    items.unwrap_or_default()
}

/// Which element is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Open {
    #[default]
    None,
    List,
    /// A table with so many cells in a row, its label included.
    Table(usize),
}

#[derive(Default)]
struct Parts {
    html: String,
    open: Open,
    /// Whether the table has headings alone, and those no label: the row that names it follows.
    is_unnamed: bool,
}

impl Parts {
    fn open(&mut self, wanted: Open) {
        if self.open == wanted {
            return;
        }
        self.close();
        if wanted == Open::List {
            self.html.push_str("<dl>\n");
        }
        self.open = wanted;
    }

    fn close(&mut self) {
        self.html.push_str(match self.open {
            Open::None => "",
            Open::List => "</dl>\n",
            Open::Table(_) => "</tbody></table></div>\n",
        });
        self.open = Open::None;
    }

    fn add(&mut self, entry: &Entry) {
        // Writing to a string does not fail.
        match entry {
            Entry::Line(text, tone) => {
                self.open(Open::None);
                let text = escape::text(text);
                _ = writeln!(self.html, "<p class=\"{}\">{text}</p>", class(*tone));
            }
            // Within a table a row is told of the one above it.
            Entry::Row { label, items, .. }
                if matches!(self.open, Open::Table(_)) && belongs(label) =>
            {
                let Open::Table(cells) = self.open else {
                    return;
                };
                let (label, words) = (escape::text(label.trim()), joined(items));
                let span = cells.saturating_sub(1);
                _ = writeln!(
                    self.html,
                    "<tr><th scope=\"row\">{label}</th>\
                     <td class=\"words\" colspan=\"{span}\">{words}</td></tr>"
                );
            }
            Entry::Row { label, items, tone } => {
                self.open(Open::List);
                let (indent, words) = (label.starts_with(' '), joined(items));
                let label = escape::text(label.trim());
                let sub = if indent { " class=\"sub\"" } else { "" };
                let class = class(*tone);
                _ = writeln!(
                    self.html,
                    "<div{sub}><dt>{label}</dt><dd class=\"{class}\">{words}</dd></div>"
                );
            }
            Entry::Cells { label, cells, note } => self.cells(label, cells, note),
        }
    }

    fn cells(&mut self, label: &str, cells: &[String], note: &str) {
        let is_table = matches!(self.open, Open::Table(_));
        let is_head = !is_table || !(belongs(label) || self.is_unnamed);
        self.is_unnamed = is_head && label.is_empty();
        if is_head {
            self.close();
            let label = escape::text(label.trim());
            _ = write!(
                self.html,
                "<div class=\"scroll\"><table>\n<thead><tr><th scope=\"col\">{label}</th>"
            );
            for cell in cells {
                let cell = escape::text(cell);
                _ = write!(self.html, "<th scope=\"col\">{cell}</th>");
            }
            self.html.push_str("<td></td></tr></thead>\n<tbody>\n");
            self.open = Open::Table(cells.len() + 2);
            return;
        }
        let label = escape::text(label.trim());
        _ = write!(self.html, "<tr><th scope=\"row\">{label}</th>");
        for cell in cells {
            _ = write!(self.html, "<td>{}</td>", escape::text(cell));
        }
        let note = escape::text(note);
        _ = writeln!(self.html, "<td class=\"note\">{note}</td></tr>");
    }

    fn finish(mut self) -> String {
        self.close();
        self.html
    }
}

/// A table with these headings, of numbers but for the last column where it `ends_in_words`.
pub(crate) fn table(
    heads: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
    ends_in_words: bool,
) -> String {
    let class = if ends_in_words {
        " class=\"ends-in-words\""
    } else {
        ""
    };
    let mut html = format!("<div class=\"scroll\"><table{class}>\n<thead><tr>");
    for head in heads {
        _ = write!(html, "<th scope=\"col\">{}</th>", escape::text(head));
    }
    html.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        html.push_str("<tr>");
        for (place, (head, cell)) in heads.iter().zip(&row).enumerate() {
            let (head, cell) = (escape::text(head), escape::text(cell));
            _ = match place {
                0 => write!(html, "<th scope=\"row\">{cell}</th>"),
                // Where a row does not fit, its cells are named one by one.
                _ => write!(html, "<td data-head=\"{head}\">{cell}</td>"),
            };
        }
        html.push_str("</tr>\n");
    }
    html.push_str("</tbody></table></div>\n");
    html
}

/// Whether a row with this label belongs to the one above it.
fn belongs(label: &str) -> bool {
    label.is_empty() || label.starts_with(' ')
}

/// The items, one after the other.
fn joined(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| escape::text(item)).collect();
    items.join(" <span class=\"dot\">·</span> ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::layout::Grid;

    #[test]
    fn a_page_becomes_lists_and_tables_in_order() {
        let grid = Grid { label: 9, cell: 9 };
        let cells = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        let html = rows(|page| {
            page.row("one", &cells("a<b", "c"), Tone::Warning);
            page.row("  two", &cells("d", "e"), Tone::Plain);
            page.table_row(grid, "head", &cells("p50", "p99"), "", Tone::Plain);
            page.table_row(grid, "  <row>", &cells("1 ms", "2 ms"), "note", Tone::Plain);
            page.row("  why", &["few".to_owned()], Tone::Plain);
            page.row("three", &["f".to_owned()], Tone::Plain);
        });
        let places: Vec<Option<usize>> = [
            "<dl>",
            "<dd class=\"warning\">a&lt;b <span class=\"dot\">·</span> c</dd>",
            "<div class=\"sub\"><dt>two",
            "</dl>\n<div class=\"scroll\"><table>",
            "<th scope=\"row\">&lt;row&gt;</th><td>1 ms</td><td>2 ms</td>",
            "colspan=\"3\">few",
            "</tbody></table></div>\n<dl>",
        ]
        .iter()
        .map(|part| html.find(part))
        .collect();
        assert!(
            places.iter().all(Option::is_some) && places.is_sorted(),
            "{places:?}\n{html}"
        );
        assert_eq!(rows(|_| ()), "");
    }

    #[test]
    fn the_row_that_names_a_table_stands_below_its_headings() {
        let grid = Grid { label: 9, cell: 9 };
        let html = rows(|page| {
            page.table_row(grid, "", &["p50".to_owned()], "", Tone::Plain);
            page.table_row(grid, "latency", &["1 ms".to_owned()], "", Tone::Plain);
            page.table_row(grid, "  lag", &["2 ms".to_owned()], "", Tone::Plain);
            page.table_row(grid, "names", &["sent".to_owned()], "", Tone::Plain);
        });
        assert_eq!(html.matches("<table>").count(), 2, "{html}");
        let (first, second) = html.split_once("</table>").unwrap_or_default();
        for cell in ["<td>1 ms</td>", "<td>2 ms</td>", "row\">latency</th>"] {
            assert!(first.contains(cell), "{cell}: {html}");
        }
        assert!(second.contains("col\">names</th>"), "{html}");
    }

    #[test]
    fn the_first_row_is_found() {
        let items = first_items(|page| page.row("a", &["b".to_owned()], Tone::Plain));
        assert_eq!(items, ["b"]);
        assert!(first_items(|_| ()).is_empty());
    }
}
