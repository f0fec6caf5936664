//! The charts of a run, by the sections of its report.

mod latencies;
mod over_time;
mod streams;

pub(super) use self::over_time::OverTime;
use crate::layout::html::chart::Chart;

/// Those of requests, their errors and connections.
pub(super) fn of_requests(over_time: &OverTime<'_>) -> Vec<Chart> {
    let judged = over_time.judged;
    let is_withheld = judged.withheld().is_some();
    let charts = [
        streams::chart(judged).filter(|_| !is_withheld),
        // Where there is no rate, there is none over time.
        (!is_withheld && judged.run.has_units()).then(|| over_time.throughput()),
        Some(over_time.errors()),
        Some(over_time.waiting()),
        over_time.connections(),
    ];
    charts.into_iter().flatten().collect()
}

/// Those of response times.
pub(super) fn of_latency(over_time: &OverTime<'_>) -> Vec<Chart> {
    let charts = [
        Some(over_time.latency()),
        latencies::percentiles(over_time.judged.run),
        latencies::heat_map(over_time),
    ];
    charts.into_iter().flatten().collect()
}

/// Those of what client and server used.
pub(super) fn of_resources(over_time: &OverTime<'_>) -> Vec<Chart> {
    let charts = [
        Some(over_time.cpu()),
        over_time.memory(),
        Some(over_time.own_share()),
    ];
    charts.into_iter().flatten().collect()
}
