//! A page as Markdown, for pull requests.

use std::fmt::Write;

use crate::foreign;
use crate::page::{Entry, Page, Role, Tone};

/// The page as Markdown below this title, without details.
pub(crate) fn markdown(title: &str, page: &Page) -> String {
    let mut text = format!("### {title}\n");
    let mut is_list = false;
    let mut is_detail = false;
    for entry in page.entries() {
        if let Entry::Section(_, role) = entry {
            is_detail = *role == Role::Detail;
        }
        if is_detail {
            continue;
        }
        let is_row = matches!(entry, Entry::Row { .. });
        if is_row && !is_list {
            text.push('\n');
        }
        is_list = is_row;
        // Writing to a string does not fail.
        match entry {
            Entry::Section(..) | Entry::Blank | Entry::Charts(_) => {}
            Entry::Line(line, _) => _ = writeln!(text, "\n{}", foreign::markdown(line)),
            Entry::Row {
                label, items, tone, ..
            } => _ = writeln!(text, "- {}", row(label.trim(), items, *tone)),
            Entry::Cells {
                is_head,
                label,
                cells,
                note,
                ..
            } => {
                let cells = [label].into_iter().chain(cells).chain([note]);
                let cells: Vec<String> = cells.map(|it| foreign::markdown(it.trim())).collect();
                let before = if *is_head { "\n" } else { "" };
                _ = writeln!(text, "{before}| {} |", cells.join(" | "));
                if *is_head {
                    _ = writeln!(text, "|{}", "---|".repeat(cells.len()));
                }
            }
        }
    }
    text
}

/// A label and its items; what stands out is bold.
fn row(label: &str, items: &[String], tone: Tone) -> String {
    let words = foreign::markdown(&items.join(" · "));
    let words = match tone {
        Tone::Plain => words,
        _ => format!("**{words}**"),
    };
    let label = foreign::markdown(label);
    let colon = if label.is_empty() { "" } else { ": " };
    format!("{label}{colon}{words}")
}
