//! The sections of a page as elements of HTML: rows as lists of labels and items, tables as tables.

use std::fmt::Write;

use super::escape;
use crate::page::{Entry, Role, Tone};

/// The sections of a page.
#[derive(Debug, Default)]
pub(super) struct Sections {
    /// What stands before all sections, and the answers.
    pub(super) outcome: String,
    /// All others.
    pub(super) rest: String,
}

/// The sections of these entries. One without anything in it is left out.
pub(super) fn html(entries: &[Entry]) -> Sections {
    let mut sections = Sections::default();
    let mut background = String::new();
    let begins = entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| matches!(entry, Entry::Section(..)))
        .map(|(place, _)| place);
    let begins: Vec<usize> = begins.chain([entries.len()]).collect();
    sections.outcome.push_str(&parts(&entries[..begins[0]]));
    for (number, ends) in begins.windows(2).enumerate() {
        let (Entry::Section(title, role), content) =
            (&entries[ends[0]], &entries[ends[0] + 1..ends[1]])
        else {
            continue;
        };
        let id = format!("section-{}", number + 1);
        match role {
            Role::Outcome => sections.outcome.push_str(&outcome(&id, content)),
            Role::Figures => sections.rest.push_str(&section(&id, title, content)),
            Role::Detail => sections.rest.push_str(&detail(title, content)),
            Role::Background => background.push_str(&section(&id, title, content)),
        }
    }
    sections.rest.push_str(&background);
    sections
}

fn section(id: &str, title: &str, content: &[Entry]) -> String {
    let parts = parts(content);
    if parts.is_empty() {
        return parts;
    }
    let title = escape::text(title);
    format!("<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{title}</h2>\n{parts}</section>\n")
}

/// What is there for those who want it.
fn detail(title: &str, content: &[Entry]) -> String {
    let parts = parts(content);
    if parts.is_empty() {
        return parts;
    }
    let title = escape::text(title);
    format!("<details><summary>{title}</summary>\n{parts}</details>\n")
}

/// An answer in a box: its first row is the heading.
fn outcome(id: &str, content: &[Entry]) -> String {
    let Some((first, content)) = content.split_first() else {
        return String::new();
    };
    let Entry::Row {
        label, items, tone, ..
    } = first
    else {
        return String::new();
    };
    let trust = match tone {
        Tone::Plain | Tone::Strong => "sound",
        Tone::Warning => "warning",
        Tone::Bad | Tone::Refusal => "refusal",
    };
    let (label, heading, parts) = (escape::text(label), joined(items), parts(content));
    format!(
        "<section class=\"verdict {trust}\" aria-labelledby=\"{id}\">\n\
         <p class=\"kicker\">{label}</p>\n<h2 id=\"{id}\">{heading}</h2>\n{parts}</section>\n"
    )
}

fn parts(content: &[Entry]) -> String {
    let mut parts = Parts::default();
    for entry in content {
        parts.add(entry);
    }
    parts.open(Open::None);
    parts.html
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

/// Which element is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Open {
    #[default]
    None,
    List,
    /// The headings of a table.
    Head,
    /// The rows of a table with so many cells each, the label and the note included.
    Rows(usize),
}

#[derive(Default)]
struct Parts {
    html: String,
    open: Open,
}

impl Parts {
    /// Closes what is open, and opens what is wanted, unless it is open.
    fn open(&mut self, wanted: Open) {
        if self.open == wanted {
            return;
        }
        self.html.push_str(match (self.open, wanted) {
            (Open::Head, Open::Rows(_)) => "</thead>\n<tbody>\n",
            (Open::None, _) => "",
            (Open::List, _) => "</dl>\n",
            (Open::Head, _) => "</thead></table></div>\n",
            (Open::Rows(_), _) => "</tbody></table></div>\n",
        });
        self.html.push_str(match wanted {
            Open::List => "<dl>\n",
            Open::Head => "<div class=\"scroll\"><table>\n<thead>",
            Open::None | Open::Rows(_) => "",
        });
        self.open = wanted;
    }

    fn add(&mut self, entry: &Entry) {
        // Writing to a string does not fail.
        match entry {
            Entry::Section(..) | Entry::Blank => {}
            Entry::Line(text, tone) => {
                self.open(Open::None);
                let text = escape::text(text);
                _ = writeln!(self.html, "<p class=\"{}\">{text}</p>", class(*tone));
            }
            Entry::Charts(name) => {
                self.open(Open::None);
                let place = format!("<div class=\"figures\" data-group=\"{name}\"></div>\n");
                self.html.push_str(&place);
            }
            Entry::Row {
                label, items, tone, ..
            } => self.row(label, items, *tone),
            Entry::Cells {
                is_head: true,
                label,
                cells,
                note,
                ..
            } => {
                self.open(Open::Head);
                self.html.push_str("<tr>");
                for cell in [label].into_iter().chain(cells).chain([note]) {
                    let cell = escape::text(cell.trim());
                    _ = write!(self.html, "<th scope=\"col\">{cell}</th>");
                }
                self.html.push_str("</tr>");
            }
            Entry::Cells {
                label, cells, note, ..
            } => {
                self.open(Open::Rows(cells.len() + 2));
                let label = escape::text(label.trim());
                _ = write!(self.html, "<tr><th scope=\"row\">{label}</th>");
                for cell in cells {
                    _ = write!(self.html, "<td>{}</td>", escape::text(cell));
                }
                let note = escape::text(note);
                _ = writeln!(self.html, "<td class=\"note\">{note}</td></tr>");
            }
        }
    }

    fn row(&mut self, label: &str, items: &[String], tone: Tone) {
        let is_below = label.is_empty() || label.starts_with(' ');
        let (label, words) = (escape::text(label.trim()), joined(items));
        // Within a table, a row without a label continues the row above it.
        if let Open::Rows(cells) = self.open
            && is_below
        {
            let span = cells.saturating_sub(1);
            _ = writeln!(
                self.html,
                "<tr><th scope=\"row\">{label}</th>\
                 <td class=\"words\" colspan=\"{span}\">{words}</td></tr>"
            );
            return;
        }
        self.open(Open::List);
        let sub = if is_below { " class=\"sub\"" } else { "" };
        let class = class(tone);
        _ = writeln!(
            self.html,
            "<div{sub}><dt>{label}</dt><dd class=\"{class}\">{words}</dd></div>"
        );
    }
}

/// The items, one after the other.
fn joined(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| escape::text(item)).collect();
    items.join(" <span class=\"dot\">·</span> ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Grid, Page};

    const GRID: Grid = Grid { label: 9, cell: 9 };

    fn html_of(fill: impl FnOnce(&mut Page)) -> Sections {
        let mut page = Page::unbroken();
        fill(&mut page);
        html(page.entries())
    }

    #[test]
    fn a_page_becomes_lists_and_tables_in_order() {
        let cells = |a: &str, b: &str| [a.to_owned(), b.to_owned()];
        let html = html_of(|page| {
            page.row("one", &cells("a<b", "c"), Tone::Warning);
            page.row("  two", &cells("d", "e"), Tone::Plain);
            page.table_head(GRID, "head", &cells("p50", "p99"), "");
            page.table_row(GRID, "<row>", &cells("1 ms", "2 ms"), "note", Tone::Plain);
            page.row("  why", &["few".to_owned()], Tone::Plain);
            page.row("three", &["f".to_owned()], Tone::Plain);
        })
        .outcome;
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
    }

    #[test]
    fn the_answer_comes_first_and_what_is_empty_is_left_out() {
        let sections = html_of(|page| {
            page.section("Where", Role::Background);
            page.row("host", &["a".to_owned()], Tone::Plain);
            page.section("Nothing", Role::Figures);
            page.section("Found", Role::Outcome);
            page.row("found", &["it <holds>".to_owned()], Tone::Warning);
            page.section("More", Role::Detail);
            page.row("more", &["b".to_owned()], Tone::Plain);
        });
        assert!(sections.outcome.contains("verdict warning"), "{sections:?}");
        assert!(
            sections.outcome.contains(">it &lt;holds&gt;</h2>"),
            "{sections:?}"
        );
        let detail = sections.rest.find("<details>");
        assert!(detail < sections.rest.find(">Where</h2>"), "{sections:?}");
        assert!(!sections.rest.contains("Nothing"), "{sections:?}");
    }
}
