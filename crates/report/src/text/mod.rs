//! The report for people: what was asked, what came of it, and whether it may be believed.

mod certificate;
mod describe;
mod evidence;
mod latency;
mod layout;
mod load;
mod resources;
mod spectrum;
mod verdict;

use brunt_measure::{
    Figure, Finding, ModelDescription, RateInterval, Run, Standing, Summary, Verdict,
};

pub use self::certificate::calibration_text;
use self::layout::{Page, Tone};
use crate::figures::{AllPhases, ids, server_counted, standing_at};
use crate::{Style, units};

/// The whole report.
pub(crate) fn page(run: &Run, style: &Style) -> String {
    let summary = run.summary();
    let judgement = run.judge();
    let is_withheld = standing_at(run, Standing::Broken).next().is_some();
    let client_limited = judgement.verdict == Verdict::ClientLimited;
    let mut page = Page::new(style);
    refusal(run, &mut page);
    page.row("target", &load::target(&run.load), Tone::Plain);
    page.row("load", &load::load(&run.load, run.window), Tone::Plain);
    if style.verbose {
        for (index, stage) in load::stages(&run.load).into_iter().enumerate() {
            page.row(&format!("  stage {}", index + 1), &[stage], Tone::Plain);
        }
    }
    page.row("window", &describe::phases(run), Tone::Plain);
    let mut notes = describe::notes(run, &summary);
    // Where the drift decides, the verdict tells of it.
    if !is_withheld && !judgement.decisive.contains(&"drift") {
        notes.extend(describe::drift(&run.steadiness()));
    }
    for note in notes {
        page.row("note", &[note], Tone::Warning);
    }
    page.blank();
    throughput(run, &summary, client_limited, &mut page);
    arrivals(run, &summary, is_withheld, &mut page);
    requests(run, &summary, style.verbose, &mut page);
    latency::table(run, &summary, client_limited, style.verbose, &mut page);
    page.blank();
    verdict::rows(&judgement, style.verbose, &mut page);
    page.blank();
    if style.spectrum {
        spectrum::spectrum(run, &mut page);
        page.blank();
    }
    connections(run, &summary, &mut page);
    all_phases(run, &summary, &mut page);
    resources::client(run, &summary, is_withheld, &mut page);
    resources::server(run, &summary, is_withheld, style.verbose, &mut page);
    if style.verbose {
        evidence::rows(run, &summary, is_withheld, &mut page);
    }
    page.blank();
    checks(run, style.verbose, &mut page);
    page.into_text()
}

/// The first line of a run whose figures are refused.
fn refusal(run: &Run, page: &mut Page) {
    let broken = ids(standing_at(run, Standing::Broken));
    if !broken.is_empty() {
        let line = format!(
            "INVALID: the figures below break {} of {} invariants ({})",
            broken.len(),
            run.findings.len(),
            broken.join(", "),
        );
        page.line(&line, Tone::Refusal);
        page.blank();
    }
}

fn throughput(run: &Run, summary: &Summary, client_limited: bool, page: &mut Page) {
    let broken = ids(standing_at(run, Standing::Broken));
    if !broken.is_empty() {
        let reason = format!("withheld: {} broken, see below", broken.join(", "));
        return page.row("throughput", &[reason], Tone::Refusal);
    }
    let mut items = Vec::new();
    match &summary.successes_per_s {
        Figure::Known(rate) => {
            let per_s = format!("{} req/s", units::rate(*rate));
            // The precision of a lower bound says nothing about the server.
            items.push(if client_limited {
                format!("at least {per_s}")
            } else {
                per_s + &precision(run.successes_interval().as_ref(), *rate)
            });
        }
        Figure::Absent(reason) => items.push(format!("not known: {reason}")),
    }
    // The attempts stand beside the headline where they tell something else than it does.
    if let (Some(successes), Some(attempts)) = (
        summary.successes_per_s.known(),
        summary.attempts_per_s.known(),
    ) && (attempts - successes).abs() > attempts * 0.001
    {
        items.push(format!("of {} sent/s", units::rate(attempts)));
    }
    if let Some(rate) = summary.bytes_received_per_s.known() {
        items.push(format!("{} received", units::bytes_per_s(rate)));
    }
    page.row("throughput", &items, Tone::Strong);
}

/// How far `rate` may be off, as a share of it; empty where that is not known.
fn precision(interval: Option<&RateInterval>, rate: f64) -> String {
    let Some(interval) = interval else {
        return String::new();
    };
    let off = (interval.high_per_s - rate).max(rate - interval.low_per_s);
    match Figure::ratio(off, rate, "") {
        // Rounded up where it would look like none.
        Figure::Known(share) => format!(" ±{}", units::percent(share.max(0.001))),
        Figure::Absent(_) => String::new(),
    }
}

/// What became of the schedule, where there is one.
fn arrivals(run: &Run, summary: &Summary, is_withheld: bool, page: &mut Page) {
    if run.load.model.schedule().is_none() {
        return;
    }
    let lost = summary.arrivals.planned > summary.arrivals.sent;
    let tone = if lost { Tone::Warning } else { Tone::Plain };
    page.row("arrivals", &load::arrivals(run, summary, is_withheld), tone);
    if let Some(overload) = run.overload().filter(|_| !is_withheld) {
        let unit = match run.load.model {
            ModelDescription::Sessions { .. } => "connections/s",
            _ => "req/s",
        };
        page.row(
            "overloaded",
            &[load::overload(&overload, unit)],
            Tone::Warning,
        );
    }
}

fn requests(run: &Run, summary: &Summary, verbose: bool, page: &mut Page) {
    let population = &summary.population;
    let mut items = vec![
        format!("{} ok", units::count(run.latencies.response.count())),
        format!(
            "{} error statuses",
            units::count(run.latencies.response_error.count())
        ),
        format!("{} failed", units::count(population.failed)),
        format!("{} censored", units::count(population.censored)),
    ];
    if summary.unsent > 0 {
        items.push(format!("{} never sent", units::count(summary.unsent)));
    }
    page.row("requests", &items, Tone::Plain);
    page.row(
        "statuses",
        &describe::statuses(&summary.window.replies, verbose),
        Tone::Plain,
    );
    let failures = describe::failures(&summary.lifetime.failures);
    if !failures.is_empty() {
        page.row("failures", &failures, Tone::Bad);
    }
}

fn connections(run: &Run, summary: &Summary, page: &mut Page) {
    let live = &summary.live;
    let all = AllPhases::new(&run.load.model, summary);
    let is_sessions = matches!(run.load.model, ModelDescription::Sessions { .. });
    let is_steady = !is_sessions && live.min == live.asked && live.max == live.asked;
    let count = |connections: u32| units::count(connections.into());
    let mut items = Vec::new();
    if is_steady {
        items.push(format!("{} live throughout", count(live.asked)));
    } else {
        let mean = summary.live_mean.known().map_or_else(
            || "mean not known".to_owned(),
            |mean| format!("mean {}", units::rate(mean)),
        );
        let asked = if is_sessions {
            format!("at most {}", count(live.most))
        } else if live.most > live.asked {
            format!("{} to {} asked", count(live.asked), count(live.most))
        } else {
            format!("{} asked", count(live.asked))
        };
        items.push(format!(
            "{} to {} live, {mean}, of {asked}",
            count(live.min),
            count(live.max),
        ));
    }
    items.push(format!("{} opened", units::count(all.connections_opened)));
    if run.load.tls.is_some() {
        items.push(format!(
            "{}, {} resumed",
            describe::counted(all.handshakes_full, "full handshake", "full handshakes"),
            units::count(all.handshakes_resumed)
        ));
    }
    items.push(format!(
        "{} closed idle by server",
        units::count(all.connections_closed_by_server)
    ));
    if !is_sessions {
        items.push(format!(
            "{} replaced",
            units::count(all.connections_replaced)
        ));
    }
    if all.goaways > 0 {
        items.push(format!(
            "{} asked to be replaced by the server (GOAWAY)",
            units::count(all.goaways)
        ));
    }
    if all.connections_shut > 0 {
        items.push(format!(
            "{} times without streams by the server's settings",
            units::count(all.connections_shut)
        ));
    }
    let is_short = !is_sessions && live.min < live.asked;
    let tone = if is_short { Tone::Warning } else { Tone::Plain };
    page.row("connections", &items, tone);
}

fn all_phases(run: &Run, summary: &Summary, page: &mut Page) {
    let all = AllPhases::new(&run.load.model, summary);
    let mut items = vec![
        format!("{} sent", units::count(all.sent)),
        format!("{} answered", units::count(all.answered)),
        format!("{} failed", units::count(all.failed)),
        format!("{} under way", units::count(all.under_way)),
    ];
    let own_reads = run.evidence.server_count.as_ref().map(|it| it.own_reads);
    items.extend(
        server_counted(run).map(|counted| match (counted, own_reads) {
            (Err(reason), _) => reason,
            (Ok(count), None | Some(0)) => format!("server counted {}", units::count(count)),
            (Ok(count), Some(own)) => format!(
                "server counted {}, up to {} by being asked",
                units::count(count),
                units::count(own)
            ),
        }),
    );
    page.row("all phases", &items, Tone::Plain);
}

fn checks(run: &Run, verbose: bool, page: &mut Page) {
    let count = |standing| standing_at(run, standing).count() as u64;
    let (held, broken) = (count(Standing::Held), count(Standing::Broken));
    let (flagged, beside) = (count(Standing::Flagged), count(Standing::NotApplicable));
    if run.findings.is_empty() {
        return page.row("checks", &["none were made".to_owned()], Tone::Warning);
    }
    let mut items = Vec::new();
    let mut tone = Tone::Plain;
    if broken > 0 {
        items.push(format!("{} BROKEN", units::count(broken)));
        tone = Tone::Refusal;
    }
    items.push(describe::counted(
        held,
        "invariant holds",
        "invariants hold",
    ));
    if flagged > 0 {
        items.push(format!("{} flagged", units::count(flagged)));
    }
    if beside > 0 {
        items.push(describe::counted(beside, "does not apply", "do not apply"));
    }
    page.row("checks", &items, tone);
    for standing in [
        Standing::Broken,
        Standing::Flagged,
        Standing::Held,
        Standing::NotApplicable,
    ] {
        for finding in standing_at(run, standing) {
            if verbose || matches!(standing, Standing::Broken | Standing::Flagged) {
                check(finding, page);
            }
        }
    }
}

/// The line of one invariant.
fn check(finding: &Finding, page: &mut Page) {
    let (word, tone) = match finding.standing {
        Standing::Held => ("holds", Tone::Plain),
        Standing::Flagged => ("flagged", Tone::Warning),
        Standing::Broken => ("BROKEN", Tone::Bad),
        Standing::NotApplicable => ("does not apply", Tone::Plain),
    };
    let line = match finding.detail.as_str() {
        "" => word.to_owned(),
        detail => format!("{word}: {detail}"),
    };
    page.row(&format!("  {}", finding.id), &[line], tone);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_is_a_share_of_the_rate() {
        for (ends, rate, words) in [
            (None, 100.0, ""),
            (Some((99.2, 100.8)), 100.0, " ±0.8 %"),
            (Some((100.0, 100.0)), 100.0, " ±0.1 %"),
            (Some((0.0, 30.0)), 10.0, " ±200 %"),
            (Some((0.0, 0.0)), 0.0, ""),
        ] {
            let interval = ends.map(|(low_per_s, high_per_s)| RateInterval {
                low_per_s,
                high_per_s,
            });
            assert_eq!(precision(interval.as_ref(), rate), words);
        }
    }
}
