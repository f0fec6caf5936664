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
    let (values, varied) = (&found.plan.values, found.plan.varied);
    let ends = values.first().zip(values.last());
    let is_wide = |(&from, &to): (&f64, &f64)| from > 0.0 && to / from >= LOGARITHMIC_FROM;
    let turn = found.turn().map(|turn| turn.server_limited_from);
    let marks = [(found.knee(), "knee"), (turn, "server-limited")];
    let marks = marks.into_iter().filter_map(|(at, label)| {
        let label = label.to_owned();
        Some(Mark { at: at?, label })
    });
    Chart {
        x_label: varied.name(),
        x_unit: match varied {
            SweepAxis::Rate => Unit::PerSecond,
            SweepAxis::BodyBytes => Unit::Bytes,
            _ => Unit::Count,
        },
        is_x_logarithmic: ends.is_some_and(is_wide),
        marks: marks.collect(),
        ..Chart::over_time(id, title, y, values.clone())
    }
}

/// The medians of a figure with their intervals, or what was least and most where there is none.
fn medians(
    name: &str,
    tint: u8,
    points: &[SweepPoint],
    of: impl Fn(&SweepPoint) -> Option<Spread>,
) -> Series {
    let values = points.iter().map(|point| Some(of(point)?.median));
    let series = Series::new(name, tint, Shape::Line, values);
    series.with_intervals(points.iter().map(|point| {
        let spread = of(point)?;
        let low = spread.low.unwrap_or(spread.min);
        Some((low, spread.high.unwrap_or(spread.max)))
    }))
}

/// The curves of a sweep.
pub(super) fn of_sweep(found: &Sweep, points: &[SweepPoint]) -> Vec<Chart> {
    let bars = if points.iter().any(|point| point.rounds >= 6) {
        "Medians of the rounds; bars are their 95 % intervals."
    } else {
        "Medians of the rounds; bars go from the least to the most."
    };
    let chart = |id, title, y, caption: &str, lines| Chart {
        caption: caption.to_owned(),
        series: lines,
        ..along(found, id, title, y)
    };
    let spread =
        |name, tint, of: fn(&SweepPoint) -> Option<Spread>| medians(name, tint, points, of);
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
    let latencies = vec![
        spread("p99", 2, |point| point.p99_ns),
        spread("p90", 3, |point| point.p90_ns),
        spread("p50", 1, |point| point.p50_ns),
    ];
    let rate = spread("successful", 1, |point| point.successes_per_s);
    let errors = spread("without success", 5, |point| point.error_share);
    let cpus = both(|used| Some(used.user_cpus?.median + used.system_cpus?.median));
    let memory = both(|used| Some(used.resident_bytes?.max));
    let of_cpus = "User space and kernel, medians of the rounds.";
    let y = ("successful replies per second", Unit::PerSecond);
    let throughput = chart("throughput", "Throughput", y, bars, vec![rate]);
    let y = ("response time", Unit::Duration);
    let latency = chart("latency", "Response time", y, bars, latencies);
    let y = ("requests without success", Unit::Share);
    let errors = chart("errors", "Errors", y, bars, vec![errors]);
    let cpu = chart("cpu", "CPU", ("CPUs used", Unit::Cpus), of_cpus, cpus);
    let y = ("resident memory", Unit::Bytes);
    let memory = chart("memory", "Memory", y, "The most of all rounds.", memory);
    vec![throughput, latency, errors, cpu, memory]
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
    let pairs = of(pair.first).zip(of(pair.second)).enumerate();
    let ratios = pairs.map(|(place, both)| {
        let (one, other) = (both.0?, both.1?);
        (one > 0.0 && !is_dropped(place)).then(|| other / one - 1.0)
    });
    let ratios: Vec<Option<f64>> = ratios.collect();
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
    let (id, title) = match of {
        Some(of) => (
            format!("steps-tried-{of}"),
            format!("{of}: rates that were tried"),
        ),
        None => ("steps-tried".to_owned(), "Rates that were tried".to_owned()),
    };
    let y = ("requests planned per second", Unit::PerSecond);
    let mut chart = Chart {
        x_label: "step",
        x_unit: Unit::Count,
        ..Chart::over_time(id, title, y, x)
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
        chart.line(name, tint, Shape::Points, values);
    }
    chart
}
