//! What a server that failed did before and after.

use brunt_measure::{Outage, Run, Stretch, Window};

use super::layout::{Page, Tone};
use crate::units;

/// The rows of a server that failed in the window; each outage too, if `verbose`.
pub(super) fn rows(run: &Run, verbose: bool, page: &mut Page) {
    let Some(failure) = run.server_failure() else {
        return;
    };
    for (label, found) in [("before", &failure.before), ("after", &failure.after)] {
        if let Some(found) = found {
            page.row(label, &stretch(found), Tone::Plain);
        }
    }
    if verbose {
        for found in &failure.outages {
            page.row("  outage", &outage(*found, run.window), Tone::Plain);
        }
    }
}

/// Rate and response times of a part of the window.
fn stretch(found: &Stretch) -> Vec<String> {
    let mut items = vec![format!(
        "{} req/s over {}",
        units::rate(found.successes_per_s),
        units::duration(found.length_ns)
    )];
    for (name, quantile) in [
        ("p50", found.response_ns_p50),
        ("p99", found.response_ns_p99),
    ] {
        items.extend(quantile.map(|ns| format!("{name} {}", units::duration(ns))));
    }
    items
}

fn outage(found: Outage, window: Window) -> Vec<String> {
    let until_ns = found.until_ns.unwrap_or(window.length_ns());
    let length = units::duration(until_ns.saturating_sub(found.from_ns));
    let end = match found.until_ns {
        Some(ns) => format!("to {}", units::duration(ns)),
        None => "to the end".to_owned(),
    };
    vec![
        format!(
            "from {} of the window {end}",
            units::duration(found.from_ns)
        ),
        length,
    ]
}
