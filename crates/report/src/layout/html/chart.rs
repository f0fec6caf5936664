//! A chart: what is drawn, as data for the page's script, and the same as a table for readers
//! without one.

use std::fmt::Write;

use serde::Serialize;

use super::escape;
use crate::units;

/// Rows of the table beside a chart; of more points, one in so many is shown.
const ROWS_MAX: usize = 20;
/// Digits of a value that is drawn: more than a pixel of any screen.
const DIGITS: i32 = 5;

/// What the values of an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// Seconds from the start of the window.
    Seconds,
    /// Nanoseconds, drawn on a logarithmic axis.
    Duration,
    /// Events per second.
    PerSecond,
    /// A share of 1.
    Share,
    /// CPUs.
    Cpus,
    /// Bytes.
    Bytes,
    /// Bits per second.
    BitsPerSecond,
    /// How many.
    Count,
    /// `1 / (1 - q)` of a quantile `q`, drawn on a logarithmic axis.
    Rest,
}

impl Unit {
    /// A value in words.
    pub(crate) fn words(self, value: f64) -> String {
        let whole = value.round().max(0.0) as u64;
        match self {
            Self::Seconds => format!("{} s", units::rate(value)),
            Self::Duration => units::duration(whole),
            Self::PerSecond => format!("{}/s", units::rate(value)),
            Self::Share => units::percent(value),
            Self::Cpus => units::cpus(value),
            Self::Bytes => units::bytes(whole),
            Self::BitsPerSecond => units::bits_per_s(value),
            Self::Count => units::count(whole),
            Self::Rest => quantile_words(value),
        }
    }
}

/// The quantile whose rest is one in `rest`, in percent: `99.9 %`.
fn quantile_words(rest: f64) -> String {
    let percent = format!("{:.4}", (1.0 - 1.0 / rest.max(1.0)) * 100.0);
    let percent = percent.trim_end_matches('0').trim_end_matches('.');
    format!("{percent} %")
}

/// How the values of a series are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Shape {
    /// A line.
    Line,
    /// A broken line: what was planned, or a bound.
    Dashed,
    /// A line over a filled area.
    Area,
    /// Points without a line.
    Points,
}

/// One line of a chart.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Series {
    /// Name of the line.
    pub(crate) name: String,
    /// The number of its colour in the page's palette, from 1.
    pub(crate) tint: u8,
    /// How the line is drawn.
    pub(crate) shape: Shape,
    /// A value for each point of the x axis; null where there is none.
    pub(crate) values: Vec<Option<f64>>,
    /// The ends of an interval about each value, drawn as a bar; empty without intervals.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) intervals: Vec<Option<(f64, f64)>>,
}

impl Series {
    /// A series of values that are drawn to a few digits.
    pub(crate) fn new(
        name: impl Into<String>,
        tint: u8,
        shape: Shape,
        values: impl IntoIterator<Item = Option<f64>>,
    ) -> Self {
        let values = values.into_iter();
        Self {
            name: name.into(),
            tint,
            shape,
            values: values.map(|value| value.and_then(short)).collect(),
            intervals: Vec::new(),
        }
    }

    /// Whether the line has more to show than zeros.
    pub(crate) fn is_drawn(&self) -> bool {
        self.values.iter().flatten().any(|&value| value != 0.0)
    }

    /// The line with the ends of an interval about each value.
    pub(crate) fn with_intervals(
        mut self,
        intervals: impl IntoIterator<Item = Option<(f64, f64)>>,
    ) -> Self {
        let intervals = intervals.into_iter();
        let short = |(low, high)| Some((short(low)?, short(high)?));
        self.intervals = intervals.map(|ends| ends.and_then(short)).collect();
        self
    }
}

/// A line whose points are at places of their own.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Name of the line.
    pub(crate) name: String,
    /// The number of its colour in the page's palette, from 1.
    pub(crate) tint: u8,
    /// How the line is drawn.
    pub(crate) shape: Shape,
    /// Places on the x axis, ascending, each with a value.
    pub(crate) points: Vec<(f64, f64)>,
}

impl Line {
    /// The value at `x`, straight between the two points beside it on an axis of this scale; absent
    /// outside of them.
    fn at(&self, x: f64, scale: fn(f64) -> f64) -> Option<f64> {
        let next = self.points.partition_point(|point| point.0 < x);
        let (to_x, to) = *self.points.get(next)?;
        if to_x == x {
            return Some(to);
        }
        let (from_x, from) = *self.points.get(next.checked_sub(1)?)?;
        let part = (scale(x) - scale(from_x)) / (scale(to_x) - scale(from_x));
        Some(from + (to - from) * part)
    }
}

/// A stretch of the x axis that is shaded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Span {
    /// Where the span begins.
    pub(crate) from: f64,
    /// Where the span ends.
    pub(crate) to: f64,
}

/// A line across the chart at a place of the x axis, with a label.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Mark {
    /// Where.
    pub(crate) at: f64,
    /// What begins there.
    pub(crate) label: String,
}

/// How many response times there are, by when and how long: a heat map.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Heat {
    /// Length of a column, seconds.
    pub(crate) column_s: f64,
    /// Edges of the rows, nanoseconds, shortest first: one more than there are rows.
    pub(crate) edges_ns: Vec<u64>,
    /// For each column the number of its first row that holds something, and the counts from it
    /// on; empty where it holds nothing.
    pub(crate) columns: Vec<Vec<u64>>,
}

/// A chart with a heading.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Chart {
    /// Name of the chart in the page.
    pub(crate) id: String,
    /// Heading of the chart.
    #[serde(skip)]
    pub(crate) title: String,
    /// What the chart shows, in a sentence or two.
    #[serde(skip)]
    pub(crate) caption: String,
    /// What the x axis is of, without its unit.
    pub(crate) x_label: &'static str,
    /// The unit of the x axis.
    pub(crate) x_unit: Unit,
    /// Whether the x axis is logarithmic, whatever its unit.
    pub(crate) is_x_logarithmic: bool,
    /// What the y axis is of, without its unit.
    pub(crate) y_label: &'static str,
    /// The unit of the y axis.
    pub(crate) y_unit: Unit,
    /// The points of the x axis, in order.
    pub(crate) x: Vec<f64>,
    /// The lines.
    pub(crate) series: Vec<Series>,
    /// Shaded stretches.
    pub(crate) spans: Vec<Span>,
    /// Labelled instants.
    pub(crate) marks: Vec<Mark>,
    /// Drawn in place of lines, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) heat: Option<Heat>,
}

impl Chart {
    /// A chart over the time of the window.
    pub(crate) fn over_time(
        id: impl Into<String>,
        title: impl Into<String>,
        (y_label, y_unit): (&'static str, Unit),
        x: Vec<f64>,
    ) -> Self {
        Self {
            id: id.into(),
            title: title.into(),
            caption: String::new(),
            x_label: "time in the window",
            x_unit: Unit::Seconds,
            is_x_logarithmic: false,
            y_label,
            y_unit,
            x,
            series: Vec::new(),
            spans: Vec::new(),
            marks: Vec::new(),
            heat: None,
        }
    }

    /// Adds a line, if it has a value.
    pub(crate) fn line(
        &mut self,
        name: impl Into<String>,
        tint: u8,
        shape: Shape,
        values: impl IntoIterator<Item = Option<f64>>,
    ) {
        let series = Series::new(name, tint, shape, values);
        if series.values.iter().any(Option::is_some) {
            self.series.push(series);
        }
    }

    /// The chart of these lines over all the places of their points, on an axis of this scale.
    pub(crate) fn of_lines(mut self, lines: Vec<Line>, scale: fn(f64) -> f64) -> Self {
        let points = lines.iter().flat_map(|line| &line.points);
        self.x = points.map(|&(x, _)| x).collect();
        self.x.sort_by(f64::total_cmp);
        self.x.dedup();
        for line in lines {
            let values: Vec<_> = self.x.iter().map(|&x| line.at(x, scale)).collect();
            self.line(line.name, line.tint, line.shape, values);
        }
        self
    }

    /// Whether the chart has nothing to draw, or only zeros.
    pub(crate) fn is_empty(&self) -> bool {
        self.heat.is_none() && !self.series.iter().any(Series::is_drawn)
    }

    /// The figure of the chart, with the table of its points.
    pub(crate) fn figure(&self) -> String {
        let table = match &self.heat {
            Some(heat) => heat.table(),
            None => self.table(),
        };
        let (title, caption) = (escape::text(&self.title), escape::text(&self.caption));
        let names: Vec<&str> = self.series.iter().map(|it| it.name.as_str()).collect();
        let of = match names.as_slice() {
            [] => String::new(),
            names => format!(" Lines: {}.", names.join(", ")),
        };
        let label = format!(
            "Chart: {}, {} by {}.{of} Its points are in the table below it.",
            self.title, self.y_label, self.x_label
        );
        format!(
            "<figure id=\"{id}\">\n<figcaption><h3>{title}</h3><p>{caption}</p></figcaption>\n\
             <div class=\"chart\" data-chart=\"{id}\" role=\"img\" aria-label=\"{label}\"></div>\n\
             <details><summary>{title} as a table</summary>\n{table}</details>\n</figure>\n",
            id = self.id,
            label = escape::text(&label),
        )
    }

    /// The points of the chart as a table: all, or one in so many.
    fn table(&self) -> String {
        let step = self.x.len().div_ceil(ROWS_MAX).max(1);
        let mut caption = String::new();
        if step > 1 {
            let all = units::count(self.x.len() as u64);
            caption = format!("One in {step} of {all} points");
        }
        let mut head = vec![self.x_label.to_owned()];
        head.extend(self.series.iter().map(|series| series.name.clone()));
        let points = self.x.iter().enumerate().step_by(step);
        let rows = points.map(|(index, x)| {
            let values = self.series.iter().map(|series| self.cell(series, index));
            [self.x_unit.words(*x)].into_iter().chain(values).collect()
        });
        table(&caption, &head, rows)
    }

    /// A value of a line, with its interval.
    fn cell(&self, series: &Series, index: usize) -> String {
        let value = series.values.get(index).copied().flatten();
        let mut words = value.map_or_else(|| "–".to_owned(), |it| self.y_unit.words(it));
        if let Some(&Some((low, high))) = series.intervals.get(index) {
            let [low, high] = [low, high].map(|end| self.y_unit.words(end));
            words = format!("{words} ({low} to {high})");
        }
        words
    }
}

/// A table of HTML; the first cell of each row is its heading.
fn table(caption: &str, head: &[String], rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut table = String::from("<div class=\"scroll\"><table>");
    // Writing to a string does not fail.
    if !caption.is_empty() {
        _ = write!(table, "<caption>{}</caption>", escape::text(caption));
    }
    table.push_str("\n<thead><tr>");
    for cell in head {
        _ = write!(table, "<th scope=\"col\">{}</th>", escape::text(cell));
    }
    table.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        table.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            let cell = escape::text(cell);
            _ = match index {
                0 => write!(table, "<th scope=\"row\">{cell}</th>"),
                _ => write!(table, "<td>{cell}</td>"),
            };
        }
        table.push_str("</tr>\n");
    }
    table.push_str("</tbody></table></div>\n");
    table
}

impl Heat {
    /// Columns of its table.
    const TIMES_MAX: usize = 8;
    /// Rows of its table.
    const ROWS_MAX: usize = 16;

    /// The counts of the chart as a table, rows and columns joined.
    fn table(&self) -> String {
        let rows = self.edges_ns.len().saturating_sub(1);
        let (row_step, column_step) = (
            rows.div_ceil(Self::ROWS_MAX).max(1),
            self.columns.len().div_ceil(Self::TIMES_MAX).max(1),
        );
        let mut sums = vec![vec![0_u64; self.columns.len().div_ceil(column_step)]; rows];
        for (column, counts) in self.columns.iter().enumerate() {
            let Some((&first, counts)) = counts.split_first() else {
                continue;
            };
            for (row, count) in (first as usize..).zip(counts) {
                if let Some(sum) = sums.get_mut(row / row_step) {
                    let sum = &mut sum[column / column_step];
                    *sum = sum.saturating_add(*count);
                }
            }
        }
        let starts = (0..self.columns.len()).step_by(column_step);
        let starts = starts.map(|start| Unit::Seconds.words(start as f64 * self.column_s));
        let mut head = vec!["up to".to_owned()];
        head.extend(starts.map(|start| format!("from {start}")));
        let rows = sums.iter().enumerate().take(rows.div_ceil(row_step));
        let rows = rows.map(|(row, sums)| {
            let edge = (row + 1) * row_step;
            let edge = self.edges_ns[edge.min(self.edges_ns.len() - 1)];
            let sums = sums.iter().map(|&sum| units::count(sum));
            [units::duration(edge)].into_iter().chain(sums).collect()
        });
        table(
            "Responses by response time and time in the window",
            &head,
            rows,
        )
    }
}

/// `value` to a few digits; absent where it is no number.
pub(crate) fn short(value: f64) -> Option<f64> {
    if !value.is_finite() {
        return None;
    }
    if value == 0.0 {
        return Some(0.0);
    }
    let places = DIGITS - 1 - value.abs().log10().floor() as i32;
    let scale = 10_f64.powi(places.abs().min(300));
    let rounded = match places {
        0.. => (value * scale).round() / scale,
        _ => (value / scale).round() * scale,
    };
    Some(if rounded.is_finite() { rounded } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_a_few_digits() {
        for (value, expected) in [
            (0.0, Some(0.0)),
            (1.0 / 3.0, Some(0.333_33)),
            (123_456_789.0, Some(123_460_000.0)),
            (f64::NAN, None),
            (f64::INFINITY, None),
        ] {
            assert_eq!(short(value), expected);
        }
        assert!(short(f64::MAX).is_some_and(f64::is_finite));
        assert!(short(f64::MIN_POSITIVE).is_some_and(f64::is_finite));
    }

    #[test]
    fn quantiles_are_told_by_their_nines() {
        for (rest, words) in [
            (1.0, "0 %"),
            (2.0, "50 %"),
            (100.0, "99 %"),
            (1_000.0, "99.9 %"),
        ] {
            assert_eq!(Unit::Rest.words(rest), words);
        }
    }

    #[test]
    fn lines_of_other_places_share_an_axis() {
        let lines = [
            ("a", vec![(1.0, 0.0), (4.0, 8.0)]),
            ("b", vec![(2.0, 5.0)]),
            ("c", vec![]),
        ];
        let lines = lines.map(|(name, points)| Line {
            name: name.to_owned(),
            tint: 1,
            shape: Shape::Line,
            points,
        });
        for (scale, middle) in [((|x| x) as fn(f64) -> f64, 2.666_7), (f64::ln, 4.0)] {
            let chart = Chart::over_time("x", "X", ("y", Unit::Cpus), Vec::new());
            let chart = chart.of_lines(lines.to_vec(), scale);
            assert_eq!(chart.x, [1.0, 2.0, 4.0]);
            assert_eq!(chart.series[0].values, [Some(0.0), Some(middle), Some(8.0)]);
            assert_eq!(chart.series[1].values, [None, Some(5.0), None]);
            assert_eq!(chart.series.len(), 2);
        }
    }

    #[test]
    fn a_table_of_many_points_shows_some_of_them() {
        let x: Vec<f64> = (0..100).map(f64::from).collect();
        let mut chart = Chart::over_time("a", "A", ("rate", Unit::PerSecond), x.clone());
        assert!(chart.is_empty());
        let values = x.iter().map(|&x| Some(x));
        chart
            .series
            .push(Series::new("<b>", 1, Shape::Line, values));
        let figure = chart.figure();
        assert!(!chart.is_empty());
        assert_eq!(figure.matches("<tr>").count(), 1 + ROWS_MAX);
        assert!(figure.contains("One in 5 of 100 points"), "{figure}");
        assert!(!figure.contains("<b>"), "{figure}");
    }

    #[test]
    fn a_heat_map_has_a_table_of_all_its_counts() {
        let heat = Heat {
            column_s: 0.5,
            edges_ns: (0..=40).map(|edge| edge * 1_000).collect(),
            columns: vec![vec![0, 1, 2], vec![], vec![39, 7]],
        };
        let table = heat.table();
        for count in ["<td>3</td>", "<td>7</td>"] {
            assert_eq!(table.matches(count).count(), 1, "{table}");
        }
    }
}
