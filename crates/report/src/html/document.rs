//! The whole document around what a report says: head, styles, data and scripts.

use std::fmt::Write;

use serde::Serialize;

use super::chart::Chart;
use super::{assets, escape};
use crate::ReportError;

/// What the page's script reads.
#[derive(Serialize)]
struct Data<'a> {
    /// Length of the window, seconds.
    window_s: f64,
    charts: &'a [&'a Chart],
}

/// A page with this title and body, of which `charts` are the charts.
///
/// # Errors
///
/// When a chart has no JSON form.
pub(crate) fn document(
    title: &str,
    body: &str,
    window_s: f64,
    charts: &[&Chart],
) -> Result<String, ReportError> {
    let data = escape::json(&Data { window_s, charts }).map_err(ReportError::Encode)?;
    let mut page = String::with_capacity(body.len() + data.len() + (80 << 10));
    // Writing to a string does not fail.
    _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"brunt\">\n\
         <link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>",
        assets::policy(),
        escape::text(title)
    );
    for part in [
        assets::UPLOT_STYLE.text,
        "</style>\n<style>",
        assets::STYLE.text,
        "</style>\n</head>\n<body>\n",
        body,
        "<script type=\"application/json\" id=\"data\">",
        &data,
        "</script>\n<!-- The charts are drawn by uPlot, under this licence:\n",
        assets::UPLOT_LICENCE,
        "-->\n<script>",
        assets::UPLOT.text,
        "</script>\n<script>",
        assets::CHARTS.text,
        "</script>\n</body>\n</html>\n",
    ] {
        page.push_str(part);
    }
    Ok(page)
}
