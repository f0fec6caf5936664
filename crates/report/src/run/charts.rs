//! What a page's script draws the charts of a run from: what was recorded over the window, in no
//! more steps than a chart shows.

use brunt_judge::{Judged, Quantile, RunFigures, samples_needed};
use brunt_load::LoadModel;
use brunt_record::{Histogram, Intervals, Run};
use serde::Serialize;
use serde_json::json;

use super::bandwidth::joined;
use crate::figures::Object;
use crate::hdr::Spectrum;

/// Most points of a chart.
const POINTS_MAX: usize = 300;
/// Points of a short window: fewer, so that each is of enough responses.
const POINTS_FEW: u64 = 50;
/// Points that are not joined, though each is of few responses.
const POINTS_LEAST: usize = 20;
/// Steps of a short window are at most this long, nanoseconds.
const USUAL_NS: u64 = 100_000_000;
/// Most agents whose CPU has a line.
const AGENTS_MAX: usize = 5;
/// The outermost quantile of the response times over time.
const OUTERMOST: f64 = 0.99;
/// Rows of a heat map per doubling of the response time.
const ROWS_PER_DOUBLING: u8 = 8;

/// The data; `assets/data.js` makes charts of it.
pub(super) fn data(judged: &Judged<'_>) -> Object {
    let run = judged.run;
    let most_steps = run.window_ns / POINTS_MAX as u64;
    let step_ns = most_steps.max(USUAL_NS).min(run.window_ns / POINTS_FEW);
    let intervals = run.latencies.intervals.coarsened_to(step_ns);
    let latencies = &run.latencies;
    let spectra = Object::new()
        .with("response", Spectrum::of_response(run))
        .with("service", Spectrum::of(&latencies.service))
        .with("rest", Spectrum::of(&latencies.split.rest));
    let is_withheld = judged.withheld().is_some();
    let one_way = run.plan.one_way().filter(|_| !is_withheld);
    let bandwidth = one_way.map(|one_way| {
        json!({
            "sends": one_way.sends,
            "receives": one_way.receives,
            "intervals": joined(&run.bandwidth_intervals(), POINTS_MAX),
        })
    });
    let server = run.evidence_of_server().server.as_ref();
    let has_rates = !is_withheld && run.work().has_units();
    Object::new()
        .with("window_ns", run.window_ns)
        .with(
            "is_open",
            matches!(run.plan.load.model, LoadModel::Open { .. }),
        )
        .with("has_statuses", run.protocol().has_statuses)
        // Where there is no rate, there is none over time.
        .with("has_rates", has_rates)
        .with("schedule", run.plan.load.model.schedule())
        .with("series", judged.summary.series.coarsened_to(step_ns))
        .with("latency", latency(&intervals))
        .with("heat", heat(&intervals))
        .with("spectra", spectra)
        .with("clients", clients(run))
        .with("server", server.map(|server| thinned(&server.series)))
        .with("stolen_s", stolen(run))
        .with("bandwidth", bandwidth)
}

/// Quantiles of the response times in steps that are long enough for the outermost, where enough of
/// them are left.
fn latency(intervals: &Intervals) -> Object {
    let mut filled = intervals.clone();
    while filled.len() / 2 >= POINTS_LEAST {
        let mut counts: Vec<u64> = filled.histograms().map(|part| part.count()).collect();
        counts.sort_unstable();
        let joined = filled.coarsened_to(filled.interval_ns() + 1);
        let is_longest = joined.interval_ns() == filled.interval_ns();
        if is_longest || counts[counts.len() / 2] >= samples_needed(OUTERMOST) {
            break;
        }
        filled = joined;
    }
    let histograms: Vec<Histogram> = filled.histograms().collect();
    let quantile = |q| -> Vec<Option<u64>> {
        let found = histograms.iter().map(|part| Quantile::of(part, q));
        found.map(|quantile| quantile.known_ns()).collect()
    };
    let longest: Vec<_> = histograms.iter().map(Histogram::max_ns).collect();
    Object::new()
        .with("interval_ns", filled.interval_ns())
        .with("max_ns", longest)
        .with("p99_ns", quantile(OUTERMOST))
        .with("p90_ns", quantile(0.9))
        .with("p50_ns", quantile(0.5))
}

/// How many responses took how long, over the window: for each step the number of the first row
/// that holds something, and the counts from it on. Row `n` begins at 2^(n/8) nanoseconds.
fn heat(intervals: &Intervals) -> Object {
    let columns = intervals.filled().map(|filled| {
        let mut column: Vec<u64> = Vec::new();
        for (ns, count) in filled {
            let row = (ns.max(1) as f64).log2() * f64::from(ROWS_PER_DOUBLING);
            let row = row as usize;
            if column.is_empty() {
                column.push(row as u64);
            }
            let place = row - column[0] as usize + 1;
            column.resize(column.len().max(place + 1), 0);
            column[place] = column[place].saturating_add(count);
        }
        column
    });
    Object::new()
        .with("interval_ns", intervals.interval_ns())
        .with("rows_per_doubling", ROWS_PER_DOUBLING)
        .with("columns", columns.collect::<Vec<_>>())
}

/// When the CPU of each agent was read, and its sum.
fn clients(run: &Run) -> Vec<Object> {
    let agents = (1..).zip(run.agents.iter().take(AGENTS_MAX));
    // With its own server in the process, there is no telling whose CPU it was.
    let agents = agents.filter(|(_, agent)| !agent.own_server);
    let clients = agents.map(|(number, agent)| {
        let readings = thinned(&agent.evidence.host.series).into_iter();
        let cpu: Vec<_> = readings.map(|one| [one.at_ns, one.client_cpu_ns]).collect();
        let name = if run.is_plain() {
            "client".to_owned()
        } else {
            format!("client, agent {number}")
        };
        Object::new().with("name", name).with("cpu", cpu)
    });
    clients.collect()
}

/// No more readings than a chart shows.
fn thinned<T>(readings: &[T]) -> Vec<&T> {
    let step = readings.len().div_ceil(POINTS_MAX).max(1);
    readings.iter().step_by(step).collect()
}

/// A stretch of the window.
#[derive(Clone, Copy, Debug, Serialize)]
struct Span {
    from: f64,
    to: f64,
}

/// When the hypervisor took CPUs of any agent, seconds: joined where a chart would show no gap.
fn stolen(run: &Run) -> Vec<Span> {
    let window_s = run.window_ns as f64 / 1e9;
    let agents = run.agents.iter();
    let all = agents.flat_map(|agent| &agent.evidence.host.stolen);
    let spans = all.map(|stolen| Span {
        from: (stolen.from_ns as f64 / 1e9).max(0.0),
        to: (stolen.until_ns as f64 / 1e9).min(window_s),
    });
    let mut spans: Vec<Span> = spans.filter(|span| span.to > span.from).collect();
    spans.sort_by(|one, other| one.from.total_cmp(&other.from));
    let mut joined: Vec<Span> = Vec::new();
    for span in spans {
        match joined.last_mut() {
            Some(last) if span.from <= last.to + window_s / POINTS_MAX as f64 => {
                last.to = last.to.max(span.to);
            }
            _ => joined.push(span),
        }
    }
    joined
}
