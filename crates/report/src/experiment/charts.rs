//! The charts of experiments: curves over the values of a sweep, the ratio of each pair of rounds,
//! and the steps of a search.

use brunt_judge::{
    Capacity, CapacityOutcome, Compared, ComparedPair, ComparedRounds, RoundRecord, Spread, Sweep,
    SweepAxis, SweepPoint, UseSpread,
};

use super::words::{compared_of, outcome, side_name};
use crate::layout::html::chart::{Chart, Mark, Series, Shape, Unit};

/// Values that are so many times apart are drawn on a logarithmic axis.
const LOGARITHMIC_FROM: f64 = 50.0;

/// A chart over the values of a sweep.
fn along(found: &Sweep, id: &str, title: &str, y: (&'static str, Unit)) -> Chart {
    let values = &found.plan.values;
    let ends = values.first().zip(values.last());
    let marks = [
        found.knee().map(|at| (at, "knee")),
        found
            .turn()
            .map(|turn| (turn.server_limited_from, "server-limited")),
    ];
    Chart {
        x_label: found.plan.varied.name(),
        x_unit: match found.plan.varied {
            SweepAxis::Rate => Unit::PerSecond,
            SweepAxis::BodyBytes => Unit::Bytes,
            _ => Unit::Count,
        },
        is_x_logarithmic: ends
            .is_some_and(|(&from, &to)| from > 0.0 && to / from >= LOGARITHMIC_FROM),
        marks: marks
            .into_iter()
            .flatten()
            .map(|(at, label)| Mark {
                at,
                label: label.to_owned(),
            })
            .collect(),
        ..Chart::over_time(id, title, y, values.clone())
    }
}

/// The medians of a figure with their intervals, or what was least and most where there is none.
fn medians(
    name: &str,
    tint: u8,
    shape: Shape,
    points: &[SweepPoint],
    of: impl Fn(&SweepPoint) -> Option<Spread>,
) -> Series {
    let values = points.iter().map(|point| Some(of(point)?.median));
    let series = Series::new(name, tint, shape, values);
    series.with_intervals(points.iter().map(|point| {
        let spread = of(point)?;
        Some((
            spread.low.unwrap_or(spread.min),
            spread.high.unwrap_or(spread.max),
        ))
    }))
}

/// The curves of a sweep.
pub(super) fn of_sweep(found: &Sweep, points: &[SweepPoint]) -> Vec<Chart> {
    let bars = match points.iter().any(|point| point.rounds >= 6) {
        true => "Medians of the rounds; bars are their 95 % intervals.",
        false => "Medians of the rounds; bars go from the least to the most.",
    };
    let chart = |id, title, y, caption: &str, lines| Chart {
        caption: caption.to_owned(),
        series: lines,
        ..along(found, id, title, y)
    };
    let spread = |name, tint, of: fn(&SweepPoint) -> Option<Spread>| {
        medians(name, tint, Shape::Line, points, of)
    };
    let both = |of: fn(&UseSpread) -> Option<f64>| {
        let values = |side: fn(&SweepPoint) -> &UseSpread| {
            let values = points.iter().map(move |point| of(side(point)));
            values.collect::<Vec<_>>()
        };
        vec![
            Series::new("server", 2, Shape::Line, values(|point| &point.server)),
            Series::new("brunt", 1, Shape::Dashed, values(|point| &point.client)),
        ]
    };
    let charts = [
        chart(
            "throughput",
            "Throughput",
            ("successful replies per second", Unit::PerSecond),
            bars,
            vec![spread("successful", 1, |point| point.successes_per_s)],
        ),
        chart(
            "latency",
            "Response time",
            ("response time", Unit::Duration),
            bars,
            vec![
                spread("p99", 2, |point| point.p99_ns),
                spread("p90", 3, |point| point.p90_ns),
                spread("p50", 1, |point| point.p50_ns),
            ],
        ),
        chart(
            "errors",
            "Errors",
            ("requests without success", Unit::Share),
            bars,
            vec![spread("without success", 5, |point| point.error_share)],
        ),
        chart(
            "cpu",
            "CPU",
            ("CPUs used", Unit::Cpus),
            "User space and kernel, medians of the rounds.",
            both(|used| Some(used.user_cpus?.median + used.system_cpus?.median)),
        ),
        chart(
            "memory",
            "Memory",
            ("resident memory", Unit::Bytes),
            "The most of all rounds.",
            both(|used| Some(used.resident_bytes?.max)),
        ),
    ];
    let charts = charts.into_iter();
    charts.filter(|chart| !chart.is_empty()).collect()
}

/// What a pair compares, as a word of a name.
fn name_of(pair: &ComparedPair) -> String {
    let label = compared_of(pair);
    label.replace(|it: char| !it.is_ascii_alphanumeric(), "-")
}

/// What is compared, of one round.
fn figure(compared: Compared, round: &RoundRecord) -> Option<f64> {
    match compared {
        Compared::SuccessesPerS => round.successes_per_s,
        Compared::ResponseQuantile(q) => round.response.quantile_ns(q).map(|ns| ns as f64),
        Compared::ServerCpu => round.server_cpu_ns_per_reply(),
        // That of a search is no figure of a round.
        Compared::CapacityPerS => None,
    }
}

/// The ratio of each pair of rounds, and the estimate with its interval.
pub(super) fn ratios(found: &ComparedRounds, pair: &ComparedPair) -> Chart {
    let comparison = &pair.comparison;
    let label = compared_of(pair);
    let (first, second) = (side_name(pair.first), side_name(pair.second));
    let of = |side: usize| {
        let rounds = found.sides.get(side).map_or(&[][..], |side| &side.rounds);
        rounds
            .iter()
            .map(|round| figure(comparison.compared, round))
    };
    let is_dropped = |place: usize| comparison.dropped.iter().any(|(pair, _)| *pair == place);
    let ratios: Vec<Option<f64>> = of(pair.first)
        .zip(of(pair.second))
        .enumerate()
        .map(|(place, both)| {
            let (one, other) = (both.0?, both.1?);
            (one > 0.0 && !is_dropped(place)).then(|| other / one - 1.0)
        })
        .collect();
    let count = ratios.len();
    let id = format!("ratios-{}-{}", name_of(pair), pair.second);
    let title = format!("{label}: {second} against {first}");
    let x = (1..=count).map(|place| place as f64).collect();
    let mut chart = Chart {
        x_label: "pair of rounds",
        x_unit: Unit::Count,
        ..Chart::over_time(id, title, ("change", Unit::Share), x)
    };
    chart.caption = format!("Each point is a round of {second} over the one of {first} beside it.");
    chart.line("pair", 1, Shape::Points, ratios);
    if let Some(change) = comparison.change.filter(|_| count > 0) {
        for (name, tint, shape, value) in [
            ("estimate", 2, Shape::Line, change.value),
            ("97.5 % from", 4, Shape::Dashed, change.low),
            ("to", 4, Shape::Dashed, change.high),
        ] {
            // Of a bound one end is not known.
            if !value.is_finite() || value <= -1.0 {
                continue;
            }
            chart.line(name, tint, shape, std::iter::repeat_n(Some(value), count));
        }
    }
    chart
}

/// The rates that were tried, by their outcome; of a search that has this name among others.
pub(super) fn steps(found: &Capacity, of: Option<&str>) -> Chart {
    let x = (1..=found.steps.len()).map(|place| place as f64).collect();
    let mut chart = Chart {
        x_label: "step",
        x_unit: Unit::Count,
        ..Chart::over_time(
            of.map_or("steps-tried".to_owned(), |of| format!("steps-tried-{of}")),
            of.map_or("Rates that were tried".to_owned(), |of| {
                format!("{of}: rates that were tried")
            }),
            ("requests planned per second", Unit::PerSecond),
            x,
        )
    };
    chart.caption = "The outcome of each step.".to_owned();
    let all = found.steps.iter().map(|step| Some(step.rate_per_s));
    chart.line("rate", 6, Shape::Dashed, all);
    for (result, tint) in [
        (CapacityOutcome::Met, 3),
        (CapacityOutcome::Missed, 2),
        (CapacityOutcome::ClientLimited, 5),
        (CapacityOutcome::Undecided, 4),
        (CapacityOutcome::Invalid, 1),
    ] {
        let values = found.steps.iter();
        let values = values.map(|step| (step.outcome == result).then_some(step.rate_per_s));
        let name = outcome(result).to_lowercase();
        let series = Series::new(name, tint, Shape::Points, values);
        if series.values.iter().any(Option::is_some) {
            chart.series.push(series);
        }
    }
    chart
}
