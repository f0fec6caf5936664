//! What a page shows of one-way streams: their bytes per second over time.

use brunt_judge::{Judged, RunFigures};

use crate::layout::html::chart::{Chart, Shape, Unit};
use crate::run::bandwidth::joined;

/// Most points of the chart.
const POINTS_MAX: usize = 300;

/// Bits per second over the window, as the headline has them; absent in a run of requests.
pub(super) fn chart(judged: &Judged<'_>) -> Option<Chart> {
    let one_way = judged.run.plan.one_way()?;
    let intervals = joined(&judged.run.bandwidth_intervals(), POINTS_MAX);
    let middle_s = |from_ns: u64, to_ns: u64| (from_ns + to_ns) as f64 / 2e9;
    let x = intervals.iter().map(|it| middle_s(it.from_ns, it.to_ns));
    let y = ("bits per second", Unit::BitsPerSecond);
    let bits_per_s = |bytes_per_s: f64| Some(bytes_per_s * 8.0);
    let mut chart = Chart::over_time("bandwidth", "Bandwidth", y, x.collect());
    if one_way.sends {
        let up = intervals.iter().map(|it| bits_per_s(it.up_bytes_per_s));
        chart.line("acknowledged", 1, Shape::Area, up);
    }
    if one_way.receives {
        let down = intervals.iter().map(|it| bits_per_s(it.down_bytes_per_s));
        chart.line("received", 3, Shape::Line, down);
    }
    chart.caption = "By the kernel's accounts of all streams.".to_owned();
    Some(chart)
}
