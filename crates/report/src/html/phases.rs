//! The phases of a run, as a bar and as a table.

use std::fmt::Write;

use brunt_record::{Once, Run, RunEdges, after_ns};

use super::escape;
use crate::units;

/// Width of the bar in its own units.
const BAR: f64 = 1_000.0;
/// The least width of a phase that took any time.
const PART_LEAST: f64 = 6.0;

type Edge = fn(&RunEdges) -> Once;

/// The phases with their edges.
const PHASES: [(&str, &str, Edge, Edge); 4] = [
    (
        "set-up",
        "connections are opened",
        |it| it.setup_start,
        |it| it.warmup_start,
    ),
    (
        "warm-up",
        "load that is not counted",
        |it| it.warmup_start,
        |it| it.measure_start,
    ),
    (
        "measure",
        "the window: all figures are of it",
        |it| it.measure_start,
        |it| it.measure_end,
    ),
    (
        "drain",
        "replies to what was sent in the window",
        |it| it.measure_end,
        |it| it.drain_end,
    ),
];

/// The phases of the first agent, as far as they were recorded.
pub(super) fn section(run: &Run) -> String {
    let edges = &run.first().clock.edges;
    let phases: Vec<(&str, &str, i64, u64)> = PHASES
        .iter()
        .filter_map(|(name, what, from, to)| {
            let (from_ns, to_ns) = from(edges).get().zip(to(edges).get())?;
            Some((*name, *what, from_ns, after_ns(from_ns, to_ns)))
        })
        .collect();
    if phases.is_empty() {
        return String::new();
    }
    let total_ns = phases.iter().map(|it| it.3 as f64).sum::<f64>().max(1.0);
    let mut bar = format!(
        "<svg class=\"phases\" viewBox=\"0 0 {BAR} 16\" preserveAspectRatio=\"none\" \
         aria-hidden=\"true\">"
    );
    let mut rows = String::new();
    let widths: Vec<f64> = phases
        .iter()
        .map(|it| (it.3 as f64 / total_ns * BAR).max(PART_LEAST))
        .collect();
    let scale = BAR / widths.iter().sum::<f64>();
    let mut at = 0.0;
    for ((name, what, from_ns, length_ns), width) in phases.iter().zip(widths) {
        let width = width * scale;
        // Writing to a string does not fail.
        _ = write!(
            bar,
            "<rect class=\"phase-{name}\" x=\"{at:.1}\" y=\"0\" width=\"{width:.1}\" \
             height=\"16\"/>"
        );
        at += width;
        let from = units::difference(*from_ns);
        _ = writeln!(
            rows,
            "<tr><th scope=\"row\"><span class=\"key phase-{name}\"></span>{name}</th>\
             <td>{}</td><td>{}</td><td class=\"words\">{what}</td></tr>",
            escape::text(&from),
            escape::text(&units::duration(*length_ns)),
        );
    }
    let of = match run.is_plain() {
        true => "",
        false => " (agent 1)",
    };
    format!(
        "<section aria-labelledby=\"phases\">\n<h2 id=\"phases\">Phases{of}</h2>\n{bar}</svg>\n\
         <div class=\"scroll\"><table><thead><tr><th scope=\"col\">phase</th>\
         <th scope=\"col\">begins</th><th scope=\"col\">length</th><td></td></tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}
