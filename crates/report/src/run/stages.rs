//! The table of the stages of a schedule: what was asked in each, and the outcome.

use brunt_judge::{Judged, ResponseQuantiles};
use brunt_load::Schedule;

use super::latency::at_least;
use crate::figures::{RecordedStage, recorded_stages};
use crate::page::{Grid, Page, Tone};
use crate::units;

/// All columns take 80 of the page.
const GRID: Grid = Grid { label: 17, cell: 9 };
/// The columns behind the rate asked for, and the columns that the page needs to have for each.
const COLUMNS: [(&str, usize); 7] = [
    ("planned", 80),
    ("not ok", 0),
    ("ok/s", 0),
    ("p50", 0),
    ("p90", 71),
    ("p99", 0),
    ("max", 0),
];
/// Most stages that have a row where nothing more was asked for.
const ROWS_MAX: usize = 12;

/// Prints the table where there is more than one stage; on a full page whatever their number.
pub(super) fn table(judged: &Judged<'_>, page: &mut Page) {
    let (run, is_withheld) = (judged.run, judged.withheld().is_some());
    let asked = run.plan.model.schedule().map_or(&[][..], Schedule::stages);
    if asked.len() < 2 {
        return;
    }
    let stages = match recorded_stages(run) {
        Ok(stages) => stages,
        Err(reason) => {
            let reason = format!("results of each are {reason}");
            return page.row("stages", &[reason], Tone::Plain);
        }
    };
    let rows = if page.is_full() {
        asked.len()
    } else {
        ROWS_MAX
    };
    let width = page.width();
    let fitting = |cells: [String; COLUMNS.len()]| -> Vec<String> {
        let cells = cells.into_iter().zip(COLUMNS);
        let fitting = cells.filter(|(_, (_, page_min))| *page_min <= width);
        fitting.map(|(cell, _)| cell).collect()
    };
    let headings = fitting(COLUMNS.map(|(heading, _)| heading.to_owned()));
    page.table_head(GRID, "stages", &headings, "");
    for stage in stages.iter().take(rows) {
        let label = format!("  {}", rates(stage));
        if stage.measured_ns == 0 {
            let never = "the window ended before it".to_owned();
            page.row(&label, &[never], Tone::Plain);
            continue;
        }
        let cells = fitting(cells(stage, is_withheld));
        page.table_row(GRID, &label, &cells, "", Tone::Plain);
    }
    if stages.len() > rows {
        let more = format!("{} more: -v has them all", stages.len() - rows);
        page.row("", &[more], Tone::Plain);
    }
}

/// The rate that was asked for, per second.
fn rates(stage: &RecordedStage<'_>) -> String {
    let (from, to) = (rate(stage.asked.from_per_s), rate(stage.asked.to_per_s));
    if from == to {
        format!("{from}/s")
    } else {
        format!("{from}..{to}/s")
    }
}

/// A rate as short as it is typed: `500`, `20k`, `1.5m`.
fn rate(per_s: f64) -> String {
    let (scale, suffix) = match per_s {
        0.0..1e4 => (1.0, ""),
        1e4..1e6 => (1e3, "k"),
        1e6..1e9 => (1e6, "m"),
        _ => (1e9, "g"),
    };
    let digits = units::rate(per_s / scale);
    let digits = if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        &digits
    };
    format!("{digits}{suffix}")
}

/// `words`, or shorter ones for a value whose digits do not fit a cell.
fn fitting(value: f64, words: String) -> String {
    if value < 1e6 { words } else { rate(value) }
}

fn cells(stage: &RecordedStage<'_>, is_withheld: bool) -> [String; COLUMNS.len()] {
    let record = stage.record;
    let planned = record.arrivals.planned;
    let count = |count: u64| fitting(count as f64, units::count(count));
    let rate = stage.successes_per_s().known().filter(|_| !is_withheld);
    let longest = match (record.response_max_at_least_ns(), record.response.max_ns()) {
        (Some(ns), _) => at_least(ns),
        (None, Some(ns)) => units::duration(ns),
        (None, None) => "-".to_owned(),
    };
    let quantile = |q| record.response_quantile(q).to_string();
    [
        count(planned),
        count(planned.saturating_sub(record.response.count())),
        rate.map_or_else(|| "-".to_owned(), |it| fitting(it, units::rate(it))),
        quantile(0.5),
        quantile(0.9),
        quantile(0.99),
        longest,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_short() {
        for (per_s, words) in [
            (0.0, "0"),
            (0.25, "0.25"),
            (20.0, "20"),
            (500.0, "500"),
            (5_000.0, "5,000"),
            (20_000.0, "20k"),
            (123_456.0, "123k"),
            (1_500_000.0, "1.5m"),
            (1e9, "1g"),
        ] {
            assert_eq!(rate(per_s), words);
        }
    }

    #[test]
    fn large_counts_fit_their_cells() {
        for (value, words) in [(999_999, "999,999"), (1_234_567, "1.23m")] {
            assert_eq!(fitting(value as f64, units::count(value)), words);
        }
    }
}
