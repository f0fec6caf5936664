//! A page as one HTML document that needs no network: what was loaded, the outcome, the figures
//! that matter most, then its sections with charts and tables.

mod assets;
mod escape;
mod sections;

use std::fmt::Write;

use crate::ReportError;
use crate::object::Object;
use crate::page::Page;

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

/// Shown in place of charts where scripts are off.
const NO_SCRIPT: &str = "<noscript><p class=\"remark\">Charts need JavaScript. Below each heading \
                         the same is there in words.</p></noscript>\n";

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
    let data = escape::json(data).map_err(ReportError::Encode)?;
    let parts = sections::html(page.entries());
    let mut body = header(head) + &parts.outcome + &key_figures(&head.figures);
    body.push_str(NO_SCRIPT);
    body.push_str(&parts.rest);
    // Writing to a string does not fail.
    _ = write!(
        body,
        "<details><summary>The whole report as text</summary>\n<pre>{}</pre>\n</details>\n</main>\n",
        escape::lines(text)
    );
    let mut html = String::with_capacity(body.len() + data.len() + (80 << 10));
    _ = write!(
        html,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"brunt\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>",
        assets::policy(),
        escape::text(&head.title)
    );
    for part in [
        assets::UPLOT_STYLE.text,
        "</style>\n<style>",
        assets::STYLE.text,
        "</style>\n</head>\n<body>\n",
        &body,
        "<script type=\"application/json\" id=\"data\">",
        &data,
        "</script>\n<!-- The charts are drawn by uPlot, under this licence:\n",
        assets::UPLOT_LICENCE,
        "-->\n<script>",
        assets::UPLOT.text,
        "</script>\n<script>",
        assets::DATA.text,
        "</script>\n<script>",
        assets::CHARTS.text,
        "</script>\n</body>\n</html>\n",
    ] {
        html.push_str(part);
    }
    Ok(html)
}

/// What was loaded, and how.
fn header(head: &Head) -> String {
    let mut html = format!(
        "<main>\n<header>\n<p class=\"kicker\">brunt · {}</p>\n<h1>{}</h1>\n",
        head.kind,
        escape::text(&head.heading)
    );
    for line in head.lines.iter().filter(|line| !line.is_empty()) {
        _ = writeln!(html, "<p class=\"meta\">{}</p>", escape::text(line));
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
        let parts = self.value.split_once(" (").map(|(first, rest)| {
            let rest = rest.trim_end_matches(')');
            (first, rest.to_owned())
        });
        let with_precision = || {
            let (first, rest) = self.value.split_once(" ±")?;
            Some((first, format!("±{rest}")))
        };
        let (value, more) = parts
            .or_else(with_precision)
            .unwrap_or((&self.value, String::new()));
        let mut beside = vec![more, self.beside.clone()];
        beside.retain(|words| !words.is_empty());
        format!(
            "<div class=\"tile\"><span class=\"label\">{}</span><span class=\"value\">{}</span>\
             <span class=\"beside\">{}</span></div>\n",
            escape::text(&self.label),
            escape::text(value),
            escape::text(&beside.join(" · "))
        )
    }
}
