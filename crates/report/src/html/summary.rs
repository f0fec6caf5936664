//! The top of a page: what was loaded, the verdict with its evidence, objectives, and the figures
//! that matter most.

use std::fmt::Write;

use brunt_judge::{Held, Judged, Judgement, Quantile, ResponseQuantiles, RunFigures, Verdict};

use super::{escape, rows, streams};
use crate::figures::ids;
use crate::text::{self, describe, load};
use crate::{objective, units};

/// The quantiles that stand out.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];

/// What was loaded, how, and when.
pub(super) fn head(judged: &Judged<'_>) -> String {
    let run = judged.run;
    let target = load::target(run, false);
    let (url, target) = target
        .split_first()
        .map_or(("", &[][..]), |(url, rest)| (url, rest));
    let lines = [
        target,
        &load::load(run, false),
        &describe::phases(run, false),
    ];
    let mut head = format!(
        "<header>\n<p class=\"kicker\">brunt · load report</p>\n<h1>{}</h1>\n",
        escape::text(url)
    );
    for line in lines.iter().filter(|line| !line.is_empty()) {
        // Writing to a string does not fail.
        _ = writeln!(
            head,
            "<p class=\"meta\">{}</p>",
            escape::text(&line.join(" · "))
        );
    }
    head.push_str("</header>\n");
    head
}

/// How much a reader may rely on the figures, as a class of the page.
fn trust(judgement: &Judgement) -> &'static str {
    match judgement.verdict {
        Verdict::Invalid | Verdict::NoSuccess => "refusal",
        _ if judgement.is_sound() => "sound",
        _ => "warning",
    }
}

/// The verdict, what it rests on, and what to do next.
pub(super) fn verdict(judged: &Judged<'_>) -> String {
    let judgement = &judged.judgement;
    let mut html = format!(
        "<section class=\"verdict {}\" aria-labelledby=\"verdict\">\n<h2 id=\"verdict\">{}</h2>\n",
        trust(judgement),
        escape::text(judgement.verdict.name()),
    );
    let broken = ids(judged.with_status(brunt_judge::InvariantStatus::Broken));
    let because = match (judgement.because.as_str(), broken.is_empty()) {
        ("", false) => format!("invariants are broken: {}", broken.join(", ")),
        (because, _) => because.to_owned(),
    };
    if !because.is_empty() {
        _ = writeln!(html, "<p class=\"because\">{}</p>", escape::text(&because));
    }
    list("evidence", &evidence(judgement), &mut html);
    list("next", &judgement.advice, &mut html);
    html.push_str("</section>\n");
    html
}

/// The signals that decided, without what the verdict says already.
fn evidence(judgement: &Judgement) -> Vec<String> {
    let decisive = judgement.decisive.iter();
    let details = decisive.filter_map(|id| judgement.signals.iter().find(|it| it.id == *id));
    let details = details.map(|signal| signal.detail.clone());
    details
        .filter(|detail| !judgement.because.contains(detail))
        .collect()
}

fn list(label: &str, items: &[String], html: &mut String) {
    if items.is_empty() {
        return;
    }
    _ = write!(html, "<div class=\"points\"><h3>{label}</h3>\n<ul>\n");
    for item in items {
        _ = writeln!(html, "<li>{}</li>", escape::text(item));
    }
    html.push_str("</ul></div>\n");
}

/// Whether the run did what it was asked to; empty where nothing was asked.
pub(super) fn objectives(judged: &Judged<'_>) -> String {
    let outcomes = judged.objectives();
    if outcomes.is_empty() {
        return String::new();
    }
    let mut html = String::from(
        "<section aria-labelledby=\"objectives\">\n<h2 id=\"objectives\">Objectives</h2>\n\
         <div class=\"scroll\"><table class=\"words\"><thead><tr><th scope=\"col\">objective</th>\
         <th scope=\"col\">outcome</th><th scope=\"col\">measured</th></tr></thead>\n<tbody>\n",
    );
    for outcome in &outcomes {
        let (class, word) = match outcome.is_met {
            true => ("met", "✓ met"),
            false => ("missed", "✗ missed"),
        };
        let asked = escape::text(&objective::asked(&outcome.objective));
        let found = escape::text(&objective::found(outcome));
        _ = writeln!(
            html,
            "<tr><th scope=\"row\">{asked}</th><td class=\"{class}\">{word}</td>\
             <td>{found}</td></tr>"
        );
    }
    html.push_str("</tbody></table></div>\n</section>\n");
    html
}

/// The figures that matter most, large.
pub(super) fn tiles(judged: &Judged<'_>) -> String {
    let mut html = String::from("<section class=\"tiles\" aria-label=\"Key figures\">\n");
    let run = judged.run;
    let held = Held::of(run, &judged.summary);
    let (label, throughput) = match (run.is_streams(), &held) {
        (true, _) => ("bandwidth", streams::headline(judged)),
        (false, Some(held)) => (
            "held",
            rows::first_items(|page| text::held::headline(judged, held, page)),
        ),
        (false, None) => (
            "throughput",
            rows::first_items(|page| text::throughput(judged, false, page)),
        ),
    };
    let (headline, beside) = throughput
        .split_first()
        .map_or(("not known", &[][..]), |(first, rest)| (first, rest));
    tile(label, headline, &beside.join(" · "), &mut html);
    if !run.has_units() {
        html.push_str("</section>\n");
        return html;
    }
    for (name, q) in QUANTILES {
        let (value, beside) = match judged.response_quantile(q) {
            Quantile::Known { ns, interval } => {
                let beside = interval.map_or_else(
                    |_| String::new(),
                    |it| {
                        let (low, high) = (units::duration(it.low_ns), units::duration(it.high_ns));
                        format!("95 %: {low} to {high}")
                    },
                );
                let beside = match whole(judged, q) {
                    Some(whole) if beside.is_empty() => whole,
                    Some(whole) => format!("{beside} · {whole}"),
                    None => beside,
                };
                (units::duration(ns), beside)
            }
            Quantile::AtLeast { ns } => {
                let bound = text::latency::at_least(ns);
                (bound, "others were never answered".to_owned())
            }
            Quantile::TooFew { samples, needed } => {
                let samples = units::counted(samples, "reply", "replies");
                let needed = units::count(needed);
                ("too few".to_owned(), format!("{samples}, needs {needed}"))
            }
        };
        tile(&format!("{name} response time"), &value, &beside, &mut html);
    }
    let issued = judged.summary.population.issued;
    let others = issued.saturating_sub(run.latencies.response.count());
    let of = format!("of {} {}", units::count(issued), run.unit().many);
    let share = match (others, issued) {
        (0, _) | (_, 0) => of,
        _ => format!("{of}, {}", units::percent(others as f64 / issued as f64)),
    };
    tile("not successful", &units::count(others), &share, &mut html);
    html.push_str("</section>\n");
    html
}

/// The quantile of the whole window, where the verdict rests on a part of it.
fn whole(judged: &Judged<'_>, q: f64) -> Option<String> {
    judged.undisturbed()?;
    match judged.run.response_quantile(q) {
        Quantile::Known { ns, .. } => Some(format!("whole window: {}", units::duration(ns))),
        Quantile::AtLeast { ns } => Some(format!("whole window: {}", text::latency::at_least(ns))),
        Quantile::TooFew { .. } => None,
    }
}

/// `value` with what stands behind its unit smaller.
fn tile(label: &str, value: &str, beside: &str, html: &mut String) {
    let (value, more) = match value.split_once(" (").or_else(|| value.split_once(" ±")) {
        Some((first, rest)) if value.contains(" ±") && !value.contains(" (") => {
            (first, format!("±{rest}"))
        }
        Some((first, rest)) => (first, rest.trim_end_matches(')').to_owned()),
        None => (value, String::new()),
    };
    let beside = match (more.is_empty(), beside.is_empty()) {
        (true, _) => beside.to_owned(),
        (false, true) => more,
        (false, false) => format!("{more} · {beside}"),
    };
    _ = writeln!(
        html,
        "<div class=\"tile\"><span class=\"label\">{}</span><span class=\"value\">{}</span>\
         <span class=\"beside\">{}</span></div>",
        escape::text(label),
        escape::text(value),
        escape::text(&beside)
    );
}

/// What sets this run apart from what was asked for.
pub(super) fn notes(judged: &Judged<'_>) -> String {
    let run = judged.run;
    let mut notes: Vec<String> = text::unopened(run, &judged.summary).into_iter().collect();
    notes.extend(describe::notes(run, &judged.summary, true));
    if judged.withheld().is_none() {
        notes.extend(describe::drift(&run.steadiness()));
    }
    let mut html = String::new();
    for note in notes {
        _ = writeln!(html, "<p class=\"remark\">{}</p>", escape::text(&note));
    }
    html
}
