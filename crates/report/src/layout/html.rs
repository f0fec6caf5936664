//! A page as one HTML document that needs no network: what was loaded, the outcome, the figures
//! that matter most, then its sections: rows as lists of labels and items, tables as tables.

use std::fmt::Write;

use serde::Serialize;

use super::assets;
use crate::figures::Object;
use crate::foreign::{data_name, html as escaped};
use crate::page::{Entry, Page, Role, Section, Tone};
use crate::{ReportError, Style};

/// What stands above the sections of a document.
pub(crate) struct Head {
    /// What kind of report it is.
    pub(crate) kind: &'static str,
    /// The title of the document.
    pub(crate) title: String,
    /// What was loaded.
    pub(crate) heading: String,
    /// How, a line each.
    pub(crate) lines: Vec<String>,
    /// The figures that matter most.
    pub(crate) figures: Vec<KeyFigure>,
}

/// A figure in large letters.
pub(crate) struct KeyFigure {
    /// What it is.
    pub(crate) label: String,
    /// The figure with its unit; what follows in brackets or behind `±` is smaller.
    pub(crate) value: String,
    /// What belongs to it; may be empty.
    pub(crate) beside: String,
}

/// How the text at the end of a document looks.
pub(crate) const TEXT: Style = Style {
    colour: false,
    width: 100,
    verbose: true,
    spectrum: false,
};

/// The document of a page; `data` is what its charts are drawn from, `text` all of it as text.
///
/// # Errors
///
/// When the data has no JSON form.
pub(crate) fn document(
    head: &Head,
    page: &Page,
    data: &Object,
    text: &str,
) -> Result<String, ReportError> {
    let data = json(data).map_err(ReportError::Encode)?;
    let policy = assets::policy();
    let [answers, others] = sections_html(page.sections());
    let (title, text) = (escaped(&head.title), lines(text));
    let (header, figures) = (header(head), key_figures(&head.figures));
    let mut html = String::with_capacity(others.len() + data.len() + (80 << 10));
    // What stands between two brackets is the name of what belongs there.
    for part in assets::PAGE.split("{{") {
        let (name, behind) = part.split_once("}}").unwrap_or(("", part));
        html.push_str(match name {
            "policy" => &policy,
            "title" => &title,
            "uplot style" => assets::UPLOT_STYLE.text,
            "style" => assets::STYLE.text,
            "header" => &header,
            "outcome" => &answers,
            "figures" => &figures,
            "sections" => &others,
            "text" => &text,
            "data" => &data,
            "uplot licence" => assets::UPLOT_LICENCE,
            "uplot" => assets::UPLOT.text,
            "data script" => assets::DATA.text,
            "charts script" => assets::CHARTS.text,
            _ => "",
        });
        html.push_str(behind);
    }
    Ok(html)
}

/// What was loaded, and how.
fn header(head: &Head) -> String {
    let mut html = format!(
        "<main>\n<header>\n<p class=\"kicker\">brunt · {}</p>\n<h1>{}</h1>\n",
        head.kind,
        escaped(&head.heading)
    );
    for line in head.lines.iter().filter(|line| !line.is_empty()) {
        _ = writeln!(html, "<p class=\"meta\">{}</p>", escaped(line));
    }
    html.push_str("</header>\n");
    html
}

/// The figures that matter most, side by side.
fn key_figures(figures: &[KeyFigure]) -> String {
    if figures.is_empty() {
        return String::new();
    }
    let figures: String = figures.iter().map(KeyFigure::html).collect();
    format!("<section class=\"tiles\" aria-label=\"Key figures\">\n{figures}</section>\n")
}

impl KeyFigure {
    fn html(&self) -> String {
        let starts = [" (", " ±"].map(|start| self.value.find(start));
        let end = starts.into_iter().flatten().min();
        let (value, more) = self.value.split_at(end.unwrap_or(self.value.len()));
        let more = more.trim_start();
        let in_brackets = more.strip_prefix('(');
        let in_brackets = in_brackets.map(|words| words.trim_end_matches(')'));
        let mut beside = vec![in_brackets.unwrap_or(more), &self.beside];
        beside.retain(|words| !words.is_empty());
        format!(
            "<div class=\"tile\"><span class=\"label\">{}</span><span class=\"value\">{}</span>\
             <span class=\"beside\">{}</span></div>\n",
            escaped(&self.label),
            escaped(value),
            escaped(&beside.join(" · "))
        )
    }
}

/// What stands before all sections with the answers, and all other sections, of which the
/// background comes last. One without anything in it is left out.
fn sections_html(sections: &[Section]) -> [String; 2] {
    let (mut answers, mut others, mut background) = (String::new(), String::new(), String::new());
    for (number, part) in sections.iter().enumerate() {
        let id = format!("section-{number}");
        match part.role {
            _ if part.title.is_empty() => answers.push_str(&parts(&part.entries)),
            Role::Outcome => answers.push_str(&outcome(&id, &part.entries)),
            Role::Background => background.push_str(&section(&id, part)),
            Role::Figures | Role::Detail => others.push_str(&section(&id, part)),
        }
    }
    [answers, others + &background]
}

/// A section; a detail is folded, for those who want it.
fn section(id: &str, section: &Section) -> String {
    let (title, parts) = (escaped(&section.title), parts(&section.entries));
    if parts.is_empty() {
        parts
    } else if section.role == Role::Detail {
        format!("<details><summary>{title}</summary>\n{parts}</details>\n")
    } else {
        let heading = format!("<h2 id=\"{id}\">{title}</h2>");
        format!("<section aria-labelledby=\"{id}\">\n{heading}\n{parts}</section>\n")
    }
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
    let (label, heading, parts) = (escaped(label), joined(items), parts(content));
    format!(
        "<section class=\"verdict {trust}\" aria-labelledby=\"{id}\">\n\
         <p class=\"kicker\">{label}</p>\n<h2 id=\"{id}\">{heading}</h2>\n{parts}</section>\n"
    )
}

/// Ends of what may be open: a list, the headings of a table, and its rows.
const LIST_END: &str = "</dl>\n";
const HEAD_END: &str = "</thead></table></div>\n";
const TABLE_END: &str = "</tbody></table></div>\n";

/// Rows as lists of labels and items, tables as tables.
fn parts(content: &[Entry]) -> String {
    let mut html = String::new();
    let mut end = "";
    // Cells of the table's rows, without the label.
    let mut columns = 0;
    // Writing to a string does not fail.
    for entry in content {
        match entry {
            Entry::Blank => {}
            Entry::Line(text, tone) => {
                let (class, text) = (data_name(tone), escaped(text));
                _ = writeln!(html, "{end}<p class=\"{class}\">{text}</p>");
                end = "";
            }
            Entry::Charts(name) => {
                _ = writeln!(
                    html,
                    "{end}<div class=\"figures\" data-group=\"{name}\"></div>"
                );
                end = "";
            }
            Entry::Cells {
                is_head: true,
                label,
                cells,
                note,
                ..
            } => {
                if end != HEAD_END {
                    _ = write!(html, "{end}<div class=\"scroll\"><table>\n<thead>");
                    end = HEAD_END;
                }
                html.push_str("<tr>");
                for cell in [label].into_iter().chain(cells).chain([note]) {
                    let cell = escaped(cell.trim());
                    _ = write!(html, "<th scope=\"col\">{cell}</th>");
                }
                html.push_str("</tr>");
            }
            Entry::Cells {
                label, cells, note, ..
            } => {
                if end == HEAD_END {
                    html.push_str("</thead>\n<tbody>\n");
                    end = TABLE_END;
                }
                columns = cells.len() + 1;
                let (label, note) = (escaped(label.trim()), escaped(note));
                _ = write!(html, "<tr><th scope=\"row\">{label}</th>");
                for cell in cells {
                    _ = write!(html, "<td>{}</td>", escaped(cell));
                }
                _ = writeln!(html, "<td class=\"note\">{note}</td></tr>");
            }
            Entry::Row {
                label, items, tone, ..
            } => {
                let is_below = label.is_empty() || label.starts_with(' ');
                let (label, words) = (escaped(label.trim()), joined(items));
                if end == TABLE_END && is_below {
                    // Within a table, such a row continues the one above it.
                    _ = writeln!(
                        html,
                        "<tr><th scope=\"row\">{label}</th>\
                         <td class=\"words\" colspan=\"{columns}\">{words}</td></tr>"
                    );
                    continue;
                }
                if end != LIST_END {
                    _ = writeln!(html, "{end}<dl>");
                    end = LIST_END;
                }
                let sub = if is_below { " class=\"sub\"" } else { "" };
                let class = data_name(tone);
                _ = writeln!(
                    html,
                    "<div{sub}><dt>{label}</dt><dd class=\"{class}\">{words}</dd></div>"
                );
            }
        }
    }
    html + end
}

/// The items, one after the other.
fn joined(items: &[String]) -> String {
    let items: Vec<String> = items.iter().map(|item| escaped(item)).collect();
    items.join(" <span class=\"dot\">·</span> ")
}

/// A text of several lines, made inert in HTML; lines stay lines.
fn lines(lines: &str) -> String {
    let lines: Vec<String> = lines.lines().map(escaped).collect();
    lines.join("\n")
}

/// `value` as JSON that may stand in a `<script>` element: with nothing in it that HTML or old
/// JavaScript would take for an end.
///
/// # Errors
///
/// When `value` has no JSON form.
fn json(value: &impl Serialize) -> serde_json::Result<String> {
    let mut json = serde_json::to_string(value)?;
    // Outside of strings JSON has none of these.
    for (character, escape) in [
        ('<', "\\u003c"),
        ('>', "\\u003e"),
        ('&', "\\u0026"),
        ('\u{2028}', "\\u2028"),
        ('\u{2029}', "\\u2029"),
    ] {
        json = json.replace(character, escape);
    }
    Ok(json)
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
