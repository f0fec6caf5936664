//! The charts of all response times: their percentiles, and a heat map of when they were how long.

use brunt_record::{Histogram, Run};

use super::over_time::OverTime;
use crate::layout::html::chart::{Chart, Heat, Line, Shape, Unit};
use crate::spectrum::{Spectrum, Step};

/// Most rows of a heat map.
const ROWS_MAX: usize = 64;
/// Finest rows: 16 of them per doubling.
const ROWS_PER_DOUBLING_MAX: u32 = 16;

/// The percentiles of the response times on an axis on which each nine takes the same room.
pub(super) fn percentiles(run: &Run) -> Option<Chart> {
    let response = Spectrum::of_response(run);
    let total = response.values.count();
    if response.steps.is_empty() {
        return None;
    }
    let mut lines = vec![Line {
        name: "response time".to_owned(),
        tint: 1,
        shape: Shape::Line,
        points: points(&response.steps, total, |step| !step.is_bound),
    }];
    let bounds = points(&response.steps, total, |step| step.is_bound);
    let of = |histogram: &Histogram| {
        let spectrum = Spectrum::of(histogram);
        points(&spectrum.steps, histogram.count(), |_| true)
    };
    for (name, tint, points) in [
        ("at least", 2, bounds),
        ("since sent", 3, of(&run.latencies.service)),
        ("without brunt's share", 4, of(&run.latencies.split.rest)),
    ] {
        lines.push(Line {
            name: name.to_owned(),
            tint,
            shape: Shape::Dashed,
            points,
        });
    }
    let y = ("response time", Unit::Duration);
    let chart = Chart {
        x_label: "percentile",
        x_unit: Unit::Rest,
        caption: "How long the slowest took: each further nine has the same room.".to_owned(),
        ..Chart::over_time("percentiles", "Percentiles", y, Vec::new())
    };
    Some(chart.of_lines(lines, f64::ln))
}

/// A part of all, as one in so many above it, and the response time there, nanoseconds.
type Point = (f64, f64);

/// The steps that are `wanted`, of `total` response times; the longest stands where one in all of
/// them does.
fn points(steps: &[Step], total: u64, wanted: impl Fn(&Step) -> bool) -> Vec<Point> {
    let most = total.max(2) as f64;
    let mut points: Vec<Point> = Vec::new();
    for step in steps.iter().filter(|step| wanted(step)) {
        let rest = if step.quantile < 1.0 {
            (1.0 / (1.0 - step.quantile)).min(most)
        } else {
            most
        };
        match points.last_mut() {
            // Steps beyond the last response time repeat it.
            Some(last) if last.0 >= rest => last.1 = last.1.max(step.ns as f64),
            _ => points.push((rest, step.ns as f64)),
        }
    }
    points
}

/// How many responses took how long, over the window; absent without any.
pub(super) fn heat_map(over_time: &OverTime<'_>) -> Option<Chart> {
    let intervals = over_time.intervals();
    let buckets = || intervals.filled().flatten().map(|(ns, _)| ns.max(1));
    let (least_ns, most_ns) = (buckets().min()?, buckets().max()?);
    let edges_ns = edges(least_ns, most_ns);
    let columns: Vec<Vec<u64>> = intervals
        .filled()
        .map(|filled| column(filled, &edges_ns))
        .collect();
    let column_s = over_time.interval_s();
    let ends = (0..=columns.len()).map(|index| index as f64 * column_s);
    let y = ("response time", Unit::Duration);
    let mut chart = Chart::over_time("heat", "Heat map", y, ends.collect());
    chart.caption =
        "How many responses took how long, when: the stronger the colour, the more.".to_owned();
    chart.heat = Some(Heat {
        column_s,
        edges_ns,
        columns,
    });
    Some(chart)
}

/// The number of the first row that holds something, and the counts from it on.
fn column(filled: impl Iterator<Item = (u64, u64)>, edges_ns: &[u64]) -> Vec<u64> {
    let mut column: Vec<u64> = Vec::new();
    for (ns, count) in filled {
        let row = edges_ns.partition_point(|&edge| edge <= ns.max(1)) - 1;
        if column.is_empty() {
            column.push(row as u64);
        }
        let place = row - column[0] as usize + 1;
        column.resize(column.len().max(place + 1), 0);
        column[place] = column[place].saturating_add(count);
    }
    column
}

/// Edges of rows of equal height on a logarithmic axis that hold all from `least_ns` to `most_ns`.
fn edges(least_ns: u64, most_ns: u64) -> Vec<u64> {
    let mut per_doubling = ROWS_PER_DOUBLING_MAX;
    loop {
        let step = 2_f64.powf(1.0 / f64::from(per_doubling));
        let mut edges = vec![least_ns];
        let mut edge = least_ns as f64;
        while edges.last().is_some_and(|&last| last <= most_ns) && edges.len() <= ROWS_MAX + 1 {
            edge *= step;
            // Rows of the shortest times are a nanosecond high at least.
            let next = (edge.ceil() as u64).max(edges.last().map_or(1, |&last| last + 1));
            edges.push(next);
        }
        if edges.len() <= ROWS_MAX + 1 || per_doubling == 1 {
            return edges;
        }
        per_doubling /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_heat_map_hold_everything_and_are_bounded() {
        const HOUR_NS: u64 = 3_600_000_000_000;
        for (least_ns, most_ns) in [
            (1, 1),
            (1, 3),
            (1, HOUR_NS),
            (300_000, 400_000),
            (50_000, 9_000_000),
            (HOUR_NS, HOUR_NS),
        ] {
            let edges = edges(least_ns, most_ns);
            assert!(edges.is_sorted_by(|one, next| one < next), "{edges:?}");
            assert!(edges[0] <= least_ns && *edges.last().unwrap() > most_ns);
            assert!(edges.len() <= ROWS_MAX + 1, "{}", edges.len());
        }
    }

    #[test]
    fn the_longest_stands_at_one_in_all() {
        let step = |quantile, ns| Step {
            ns,
            quantile,
            count: 0,
            is_bound: false,
        };
        let steps = [
            step(0.0, 1),
            step(0.5, 2),
            step(0.75, 3),
            step(0.95, 9),
            step(1.0, 9),
        ];
        let found = points(&steps, 10, |_| true);
        assert_eq!(found, [(1.0, 1.0), (2.0, 2.0), (4.0, 3.0), (10.0, 9.0)]);
    }
}
