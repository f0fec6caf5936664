//! What a server that failed did before and after.

use brunt_judge::{Judged, Outage, Stretch};
use brunt_record::Unit;

use crate::page::{Page, Tone};
use crate::units;

/// The rows of a server that failed in the window; on a full page each outage too.
pub(super) fn rows(judged: &Judged<'_>, page: &mut Page) {
    let run = judged.run;
    let Some(failure) = judged.server_failure() else {
        return;
    };
    for (label, found) in [("before", &failure.before), ("after", &failure.after)] {
        if let Some(found) = found {
            page.row(label, &stretch(run.unit(), found), Tone::Plain);
        }
    }
    if page.is_full() {
        let is_silent = failure.outages.is_empty();
        let label = if is_silent { "  silence" } else { "  outage" };
        for found in failure.down() {
            page.row(label, &outage(*found, run.window_ns), Tone::Plain);
        }
    }
}

/// Rate and response times of a part of the window.
fn stretch(unit: Unit, found: &Stretch) -> Vec<String> {
    let (rate, length) = (
        units::rate(found.successes_per_s),
        units::duration(found.length_ns),
    );
    let mut items = vec![format!("{rate} {} over {length}", unit.per_s)];
    let (p50, p99) = (found.response_ns_p50, found.response_ns_p99);
    for (name, quantile) in [("p50", p50), ("p99", p99)] {
        items.extend(quantile.map(|ns| format!("{name} {}", units::duration(ns))));
    }
    items
}

fn outage(found: Outage, window_ns: u64) -> Vec<String> {
    let until_ns = found.until_ns.unwrap_or(window_ns);
    let length = units::duration(until_ns.saturating_sub(found.from_ns));
    let end = match found.until_ns {
        Some(ns) => format!("to {}", units::duration(ns)),
        None => "to the end".to_owned(),
    };
    let from = units::duration(found.from_ns);
    vec![format!("from {from} of the window {end}"), length]
}

#[cfg(test)]
mod tests {
    use brunt_record::Protocol;

    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_part_of_the_window_has_the_figures_that_are_known() {
        let unit = Protocol::HTTP1.unit;
        // (p50, p99, what is told of them)
        for (p50_ns, p99_ns, words) in [
            (
                Some(612_000),
                Some(2 * MS),
                &["p50 612 µs", "p99 2.00 ms"][..],
            ),
            (Some(612_000), None, &["p50 612 µs"]),
            (None, None, &[]),
        ] {
            let items = stretch(
                unit,
                &Stretch {
                    length_ns: 1_500 * MS,
                    successes_per_s: 4_000.4,
                    response_ns_p50: p50_ns,
                    response_ns_p99: p99_ns,
                },
            );
            assert_eq!(items[0], "4,000 req/s over 1.50 s");
            assert_eq!(&items[1..], words);
        }
        let nothing = stretch(
            unit,
            &Stretch {
                length_ns: 100 * MS,
                successes_per_s: 0.0,
                response_ns_p50: None,
                response_ns_p99: None,
            },
        );
        assert_eq!(nothing, ["0 req/s over 100 ms"]);
    }

    #[test]
    fn an_outage_has_its_ends_and_its_length() {
        for (from_ms, until_ms, words) in [
            (
                1_500,
                Some(2_600),
                ["from 1.50 s of the window to 2.60 s", "1.10 s"],
            ),
            (
                0,
                Some(250),
                ["from 0 ns of the window to 250 ms", "250 ms"],
            ),
            (
                3_000,
                None,
                ["from 3.00 s of the window to the end", "1.00 s"],
            ),
            // A stored run may say what cannot be.
            (
                9_000,
                None,
                ["from 9.00 s of the window to the end", "0 ns"],
            ),
        ] {
            let found = Outage {
                from_ns: from_ms * MS,
                until_ns: until_ms.map(|ms: u64| ms * MS),
            };
            assert_eq!(outage(found, 4_000 * MS), words);
        }
    }
}
