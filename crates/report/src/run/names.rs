//! The table of the requests of a list, by their names: all where there are few, else the worst.

use std::cmp::Reverse;

use brunt_judge::{Quantile, ResponseQuantiles};
use brunt_record::{NameRecord, Run};

use super::latency::at_least;
use crate::foreign::printable;
use crate::page::{Grid, Page, Tone};
use crate::shortened::shortened;
use crate::units;

const CELL_COLUMNS: usize = 9;
/// Widest label; on a narrow page it is what the cells leave.
const LABEL_COLUMNS: usize = 34;
/// Two spaces before a name, and one behind.
const SPACES: usize = 3;
const HEADINGS: [&str; 5] = ["sent", "not ok", "p50", "p99", "max"];
/// Names that have a row where nothing more was asked for.
const ROWS_MAX: usize = 10;

/// Prints the table where there are names; on a full page with a row for each.
pub(super) fn table(run: &Run, page: &mut Page) {
    if run.names.is_empty() {
        return;
    }
    let all = run.names.len();
    let mut names: Vec<&NameRecord> = run.names.iter().collect();
    let title = if all > ROWS_MAX && !page.is_full() {
        names.sort_by_cached_key(|name| Reverse(badness(name)));
        names.truncate(ROWS_MAX);
        format!("the worst {ROWS_MAX} of {}", units::count(all as u64))
    } else {
        format!("by {}", run.unit().one)
    };
    let left = page.width().saturating_sub(HEADINGS.len() * CELL_COLUMNS);
    let grid = Grid {
        label: left.min(LABEL_COLUMNS),
        cell: CELL_COLUMNS,
    };
    let headings = HEADINGS.map(str::to_owned);
    page.table_head(grid, &title, &headings, "");
    for name in names {
        let columns = grid.label.saturating_sub(SPACES);
        let label = format!("  {}", shortened(&printable(&name.name), columns));
        page.table_row(grid, &label, &cells(name), "", Tone::Plain);
    }
}

/// What is worse comes later: first by the share of what did not succeed, in thousandths, then by
/// the 99th percentile, or the longest where there are too few for it.
fn badness(name: &NameRecord) -> (u64, u64) {
    let tail_ns = match name.response_quantile(0.99) {
        Quantile::Known { ns, .. } | Quantile::AtLeast { ns } => ns,
        Quantile::TooFew { .. } => name.response.max_ns().unwrap_or(0),
    };
    let share = not_ok(name).saturating_mul(1_000) / name.population.issued.max(1);
    (share, tail_ns)
}

/// Requests that were issued in the window and did not succeed.
fn not_ok(name: &NameRecord) -> u64 {
    let successes = name.response.count();
    name.population.issued.saturating_sub(successes)
}

/// The cells of a name, by the headings.
fn cells(name: &NameRecord) -> [String; HEADINGS.len()] {
    let quantile = |q| name.response_quantile(q).to_string();
    let longest = match (name.unfinished.max_ns(), name.response.max_ns()) {
        (Some(bound_ns), ns) if ns.is_none_or(|ns| ns < bound_ns) => at_least(bound_ns),
        (_, Some(ns)) => units::duration(ns),
        (_, None) => "-".to_owned(),
    };
    [
        units::count(name.population.issued),
        units::count(not_ok(name)),
        quantile(0.5),
        quantile(0.99),
        longest,
    ]
}
