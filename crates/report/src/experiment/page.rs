//! Experiments as HTML pages: what was found, the curve or the pairs that show it, and tables.

use std::fmt::Write;

use brunt_judge::{
    Basis, Capacity, CapacityOutcome, CapacityResult, Claim, Compared, ComparedPair,
    ComparedRounds, Effect, RoundRecord, Spread, Sweep, SweepAxis, SweepPoint, UseSpread,
};
use brunt_load::Plan;
use brunt_record::Environment;

use super::words::{
    exceeded_limits, limit, limits_kept, limits_not_judged, limits_open, names, says, side_name,
};
use super::{capacity, comparison_text, environment, sweep};
use crate::html::chart::{Chart, Mark, Series, Shape, Unit};
use crate::html::document::document;
use crate::html::rows::{rows, table};
use crate::html::{NO_SCRIPT, details, escape, figures, section};
use crate::shortened::word;
use crate::text::layout::Tone;
use crate::text::load::command;
use crate::{ReportError, Style, units};

/// Values that are so many times apart are drawn on a logarithmic axis.
const LOGARITHMIC_FROM: f64 = 50.0;

/// The head of a page: what kind of experiment, of what, and how.
fn head(kind: &str, title: &str, lines: &[String]) -> String {
    let mut head = format!(
        "<main>\n<header>\n<p class=\"kicker\">brunt · {kind}</p>\n<h1>{}</h1>\n",
        escape::text(title)
    );
    for line in lines.iter().filter(|line| !line.is_empty()) {
        // Writing to a string does not fail.
        _ = writeln!(head, "<p class=\"meta\">{}</p>", escape::text(line));
    }
    head.push_str("</header>\n");
    head
}

/// What was found first, in a box, and what else is known beside it.
fn outcome(trust: &str, first: &str, beside: &[(String, String)]) -> String {
    let mut html = format!(
        "<section class=\"verdict {trust}\" aria-labelledby=\"verdict\">\n\
         <h2 id=\"verdict\">{}</h2>\n",
        escape::text(first)
    );
    for (label, words) in beside {
        let (label, words) = (escape::text(label), escape::text(words));
        _ = writeln!(
            html,
            "<div class=\"points\"><h3>{label}</h3><ul><li>{words}</li></ul></div>"
        );
    }
    html.push_str("</section>\n");
    html
}

/// Where it was measured, and all of it as text.
fn surroundings(known: &Environment, brunt_version: &str, text: &str) -> String {
    let command = known.command.as_ref().map_or_else(String::new, |words| {
        let words = escape::text(&command(words));
        format!("<pre class=\"command\">{words}</pre>\n")
    });
    let known = rows(|page| environment::rows(known, brunt_version, false, page));
    let whole = format!("<pre>{}</pre>\n", escape::lines(text));
    command + &known + &details("The whole report as text", &whole)
}

/// The style of the text within a page.
fn in_full() -> Style {
    Style {
        verbose: true,
        width: 100,
        ..Style::default()
    }
}

fn load_line(load: Option<&Plan>, varied: Option<SweepAxis>) -> String {
    load.map_or_else(String::new, |plan| {
        environment::load(plan, varied).join(" · ")
    })
}

/// The page of a sweep.
///
/// # Errors
///
/// When a chart has no JSON form.
pub(super) fn sweep(found: &Sweep) -> Result<String, ReportError> {
    let plan = &found.plan;
    let mut body = head(
        "sweep",
        &word(&plan.url),
        &[
            sweep::varied(found),
            load_line(found.load.as_ref(), Some(plan.varied)),
            sweep::rounds(found),
        ],
    );
    let mut findings = sweep::findings(found).into_iter();
    let (label, first) = findings
        .next()
        .unwrap_or(("", "no round has a rate".to_owned()));
    let first = [label, first.as_str()].join(" ").trim().to_owned();
    let mut beside: Vec<(String, String)> = findings
        .map(|(label, words)| (label.to_owned(), words))
        .collect();
    let shortfall = sweep::shortfall(found);
    let trust = if shortfall.is_some() {
        "warning"
    } else {
        "sound"
    };
    beside.extend(shortfall.map(|words| ("incomplete".to_owned(), words)));
    body.push_str(&outcome(trust, &first, &beside));
    let points = found.points();
    let charts = sweep_charts(found, &points);
    body.push_str(NO_SCRIPT);
    section("curves", "Scaling", &figures(charts.iter()), &mut body);
    let values = table(
        &sweep::heads(found).each_ref().map(String::as_str),
        sweep::table(found).map(Vec::from),
        true,
    );
    section("values", "Values", &values, &mut body);
    let text = sweep::text(found, &in_full());
    let known = surroundings(&found.environment, &found.brunt_version, &text);
    section("environment", "Environment", &known, &mut body);
    body.push_str("</main>\n");
    let title = format!("sweep of {}: {}", plan.varied.name(), word(&plan.url));
    document(&title, &body, 0.0, &charts.iter().collect::<Vec<_>>())
}

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

fn sweep_charts(found: &Sweep, points: &[SweepPoint]) -> Vec<Chart> {
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

/// The page of a comparison.
///
/// # Errors
///
/// When a chart has no JSON form.
pub(super) fn comparison(found: &ComparedRounds) -> Result<String, ReportError> {
    let sides: Vec<String> = found
        .sides
        .iter()
        .enumerate()
        .map(|(place, side)| {
            let name = comparison_text::name_of(side).join(", ");
            format!("{}: {name}", side_name(place))
        })
        .collect();
    let mut lines = vec![load_line(comparison_text::load(found), None)];
    let servers = found.sides.iter().enumerate();
    lines.extend(servers.filter_map(|(place, side)| {
        let items = environment::server(side.server.as_ref()?);
        Some(format!("{}: {}", side_name(place), items.join(" · ")))
    }));
    let stored = found.sides.iter().enumerate();
    let stored = stored.filter(|(_, side)| side.single_run.is_some());
    lines.extend(stored.map(|(place, side)| {
        let items = comparison_text::origin(side);
        format!("{}: {}", side_name(place), items.join(" · "))
    }));
    let rounds_of_sides = comparison_text::rounds(found).into_iter();
    lines.extend(rounds_of_sides.map(|(label, items)| format!("{label}: {}", items.join(" · "))));
    let mut body = head("compare", &sides.join(" · "), &lines);
    let (pairs, names) = (found.comparisons(), names(found));
    for pair in &pairs {
        // Several sections would have one name.
        let html = outcome(trust(found, pair), &says(pair, &names), &[]);
        let name = format!("verdict-{}-{}", name_of(pair), pair.second);
        body.push_str(&html.replace("\"verdict\"", &format!("\"{name}\"")));
    }
    for (label, limits) in [
        ("exceeded", exceeded_limits(found)),
        ("not judged", limits_not_judged(found)),
        ("open", limits_open(found)),
        ("kept", limits_kept(found)),
    ] {
        for words in limits {
            let words = escape::text(&words);
            _ = writeln!(body, "<p class=\"remark\">{label}: {words}</p>");
        }
    }
    let is_of_pairs = |pair: &&ComparedPair| pair.comparison.basis == Basis::Pairs;
    let ratios: Vec<Chart> = pairs
        .iter()
        .filter(is_of_pairs)
        .map(|pair| ratios(found, pair))
        .filter(|chart| !chart.is_empty())
        .collect();
    let searches = found.sides.iter().enumerate();
    let searches = searches.filter_map(|(place, side)| Some((place, side.capacity.as_ref()?)));
    let tried: Vec<Chart> = searches
        .clone()
        .map(|(place, search)| steps(search, Some(&side_name(place))))
        .filter(|chart| !chart.is_empty())
        .collect();
    if !(ratios.is_empty() && tried.is_empty()) {
        body.push_str(NO_SCRIPT);
    }
    section(
        "ratios",
        "Pairs of rounds",
        &figures(ratios.iter()),
        &mut body,
    );
    section("searches", "Searches", &figures(tried.iter()), &mut body);
    let per_s = environment::per_s(found.load.as_ref());
    let told = rows(|page| {
        for pair in &pairs {
            comparison_text::rows(pair, &names, per_s, page);
        }
        for asked in &found.limits {
            page.row("fail if", &[limit(asked)], Tone::Plain);
        }
        for (place, search) in searches.clone() {
            let words = format!("{}: {}", side_name(place), capacity::says(search));
            page.row("found", &[words], Tone::Strong);
        }
    });
    section("found", "What was found", &told, &mut body);
    let mut every = rounds(found);
    for (place, search) in searches {
        let title = format!("All steps of {}", side_name(place));
        every.push_str(&details(&title, &every_step(search)));
    }
    section("rounds", "All that was measured", &every, &mut body);
    let text = comparison_text::text(found, &in_full());
    let known = comparison_text::surroundings(found);
    let known = surroundings(&known, &found.brunt_version, &text);
    section("environment", "Environment", &known, &mut body);
    body.push_str("</main>\n");
    let title = match pairs.first() {
        Some(pair) => format!("compare: {}", says(pair, &names)),
        None => "compare".to_owned(),
    };
    let charts: Vec<&Chart> = ratios.iter().chain(&tried).collect();
    document(&title, &body, 0.0, &charts)
}

/// How what a pair shows stands out: a limit that is exceeded most, and nothing that got worse as
/// good.
fn trust(found: &ComparedRounds, pair: &ComparedPair) -> &'static str {
    if found.exceeded().iter().any(|(_, of)| of == pair) {
        return "refusal";
    }
    let comparison = &pair.comparison;
    let is_better_if_more = comparison.compared.is_better_if_more();
    let is_better = |change: Effect| (change.value > 0.0) == is_better_if_more;
    match comparison.claim {
        Claim::Differs if comparison.change.is_some_and(is_better) => "sound",
        Claim::NoDifference { .. } => "sound",
        Claim::Differs | Claim::Nothing(_) => "warning",
    }
}

/// What a pair compares, as a word of a name.
fn name_of(pair: &ComparedPair) -> String {
    let label = comparison_text::compared_of(pair);
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
fn ratios(found: &ComparedRounds, pair: &ComparedPair) -> Chart {
    let comparison = &pair.comparison;
    let label = comparison_text::compared_of(pair);
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

/// Every round of every side.
fn rounds(found: &ComparedRounds) -> String {
    let most = found.sides.iter().map(|side| side.rounds.len()).max();
    let rounds = (0..most.unwrap_or(0)).flat_map(|place| {
        let sides = found.sides.iter().enumerate();
        sides.filter_map(move |(side, it)| Some((place, side, it.rounds.get(place)?)))
    });
    let ns = |ns: Option<u64>| ns.map_or_else(|| "-".to_owned(), units::duration);
    let rows = rounds.map(|(place, side, round)| {
        let rate = round.successes_per_s;
        vec![
            format!("{} {}", place + 1, side_name(side)),
            rate.map_or_else(|| "-".to_owned(), units::rate),
            ns(round.response.p50_ns),
            ns(round.response.p99_ns),
            round.verdict.name().to_owned(),
        ]
    });
    if most.unwrap_or(0) == 0 {
        return String::new();
    }
    let unit = environment::per_s(found.load.as_ref());
    let rounds = table(&["round", unit, "p50", "p99", "verdict"], rows, true);
    details("All rounds", &rounds)
}

/// The page of a search for a capacity.
///
/// # Errors
///
/// When a chart has no JSON form.
pub(super) fn capacity(found: &Capacity) -> Result<String, ReportError> {
    let lines = [load_line(found.load.as_ref(), Some(SweepAxis::Rate))];
    let mut body = head("find", &word(&found.plan.url), &lines);
    let trust = match found.result() {
        CapacityResult::Found { .. } | CapacityResult::AtLeast { .. } => "sound",
        CapacityResult::ClientLimited { .. }
        | CapacityResult::NotMet { .. }
        | CapacityResult::Impossible { .. }
        | CapacityResult::Bracket { .. }
        | CapacityResult::Nothing { .. } => "warning",
    };
    let asked = ("objectives".to_owned(), capacity::beside(found).join(", "));
    body.push_str(&outcome(trust, &capacity::says(found), &[asked]));
    let charts: Vec<Chart> = [steps(found, None)]
        .into_iter()
        .filter(|chart| !chart.is_empty())
        .collect();
    body.push_str(NO_SCRIPT);
    section("steps", "Steps", &figures(charts.iter()), &mut body);
    section("values", "Every step", &every_step(found), &mut body);
    let text = capacity::text(found, &in_full());
    let known = surroundings(&found.environment, &found.brunt_version, &text);
    section("environment", "Environment", &known, &mut body);
    body.push_str("</main>\n");
    let title = format!("find: {}", capacity::says(found));
    document(&title, &body, 0.0, &charts.iter().collect::<Vec<_>>())
}

/// The steps of a search as a table.
fn every_step(found: &Capacity) -> String {
    let (name, q) = capacity::quantile(found);
    let rows = found.steps.iter().enumerate().map(|(place, step)| {
        let mut row = vec![
            capacity::stage(step.stage).to_owned(),
            capacity::step_outcome(step).to_owned(),
        ];
        row.extend(capacity::cells(step, q));
        row.push(capacity::because(&found.steps, place));
        row
    });
    let heads = [
        "step",
        "outcome",
        "rate",
        "window",
        environment::per_s(found.load.as_ref()),
        &name,
        "up to",
        "errors",
        "because",
    ];
    table(&heads, rows, true)
}

/// The rates that were tried, by their outcome; of a search that has this name among others.
fn steps(found: &Capacity, of: Option<&str>) -> Chart {
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
    for (outcome, tint) in [
        (CapacityOutcome::Met, 3),
        (CapacityOutcome::Missed, 2),
        (CapacityOutcome::ClientLimited, 5),
        (CapacityOutcome::Undecided, 4),
        (CapacityOutcome::Invalid, 1),
    ] {
        let values = found.steps.iter();
        let values = values.map(|step| (step.outcome == outcome).then_some(step.rate_per_s));
        let name = capacity::outcome(outcome).to_lowercase();
        let series = Series::new(name, tint, Shape::Points, values);
        if series.values.iter().any(Option::is_some) {
            chart.series.push(series);
        }
    }
    chart
}
