//! wrk's and wrk2's text of a run.

use std::fmt::Write;

use brunt_engine::PrepareError;
use brunt_judge::RunFigures;
use brunt_record::{FailureKind, FailureScope, Histogram, Run};
use brunt_script::Distribution;

use super::latencies::{Recorded, of_us, per_thread};
use super::units::{BINARY, METRIC, TIME_S, column, time_us};
use super::{Options, Program};
use crate::Ending;
use crate::ending::Cause;

const PERCENTILES: [f64; 4] = [50.0, 75.0, 90.0, 99.0];
const RECORDED: &str = "Recorded Latency";
const UNCORRECTED: &str =
    "Uncorrected Latency (measured without taking delayed starts into account)";
const RULE: &str = "----------------------------------------------------------\n";

/// The two lines that are printed when the load begins.
pub fn heading(options: &Options) -> String {
    format!(
        "Running {} test @ {}\n  {} threads and {} connections\n",
        TIME_S.print(options.duration_s as f64, 0),
        options.url.typed,
        options.threads(),
        options.connections(),
    )
}

/// What is printed at the end.
pub fn report(options: &Options, run: &Run) -> String {
    let mut text = format!(
        "  Thread Stats{:>6}{:>11}{:>8}{:>12}\n",
        "Avg", "Stdev", "Max", "+/- Stdev"
    );
    let latencies = &run.latencies;
    let mut response = latencies.response.clone();
    response.merge(&latencies.response_error);
    match options.program {
        Program::Wrk => latency_of_wrk(options, &response, run, &mut text),
        Program::Wrk2 => latency_of_wrk2(options, &response, run, &mut text),
    }
    text + &counts_and_rates(&Counts::of(run))
}

fn latency_of_wrk(options: &Options, response: &Histogram, run: &Run, text: &mut String) {
    let latency = of_us(response);
    row(&Row::of(&latency), "Latency", time_us, text);
    row(&Row::of(&per_thread(run)), "Req/Sec", metric, text);
    if !options.latency {
        return;
    }
    text.push_str("  Latency Distribution\n");
    for percent in PERCENTILES {
        let us = latency.percentile(percent) as f64;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{percent:7.0}%{}", column(&time_us(us), 10));
    }
}

fn latency_of_wrk2(options: &Options, response: &Histogram, run: &Run, text: &mut String) {
    let recorded = Recorded::of(response);
    let latency = Row {
        mean: recorded.mean_us(),
        stdev: recorded.stdev_us(),
        max: recorded.max_us(),
        within_percent: recorded.within_stdev_percent(),
    };
    row(&latency, "Latency", time_us, text);
    row(&Row::of(&per_thread(run)), "Req/Sec", metric, text);
    if options.latency {
        recorded.print(RECORDED, text);
        text.push_str(RULE);
    }
    if options.uncorrected_latency {
        text.push('\n');
        let service = Recorded::of(&run.latencies.service);
        service.print(UNCORRECTED, text);
        text.push_str(RULE);
    }
}

/// A number such as `56.20k`.
fn metric(number: f64) -> String {
    METRIC.print(number, 2)
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
struct Row {
    mean: f64,
    stdev: f64,
    max: f64,
    within_percent: f64,
}

impl Row {
    fn of(numbers: &Distribution) -> Self {
        Self {
            mean: numbers.mean(),
            stdev: numbers.stdev(),
            max: numbers.max() as f64,
            // Not a number without any, where wrk prints -nan.
            within_percent: match numbers.total() {
                0 => 0.0,
                _ => numbers.within_stdev_percent(1.0),
            },
        }
    }
}

fn row(row: &Row, name: &str, unit: fn(f64) -> String, text: &mut String) {
    let _ = writeln!(
        text,
        "    {name:<10}{}{}{}{:8.2}%",
        column(&unit(row.mean), 8),
        column(&unit(row.stdev), 10),
        column(&unit(row.max), 9),
        row.within_percent,
    );
}

fn counts_and_rates(counts: &Counts) -> String {
    let Counts {
        requests,
        connect,
        read,
        timeout,
        status,
        ..
    } = counts;
    let taken = time_us((counts.duration_ns / 1_000) as f64);
    let bytes = BINARY.print(counts.bytes as f64, 2);
    let mut text = format!("  {requests} requests in {taken}, {bytes}B read\n");
    if connect + read + timeout > 0 {
        text += &format!(
            "  Socket errors: connect {connect}, read {read}, write 0, timeout {timeout}\n"
        );
    }
    if *status > 0 {
        text += &format!("  Non-2xx or 3xx responses: {status}\n");
    }
    let per_s = counts.per_s(*requests);
    let bytes_per_s = BINARY.print(counts.per_s(counts.bytes), 2);
    text + &format!("Requests/sec: {per_s:9.2}\nTransfer/sec: {bytes_per_s:>10}B\n")
}

/// Counts of a run, as wrk names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Length of the run, nanoseconds.
    pub(super) duration_ns: u64,
    /// Complete replies, whatever their status.
    pub(super) requests: u64,
    /// Bytes of replies, decrypted.
    pub(super) bytes: u64,
    /// Connections that could not be opened.
    pub(super) connect: u64,
    /// Replies that were truncated or are none.
    pub(super) read: u64,
    /// Requests without a reply in time, among them those in flight to the end and beyond.
    pub(super) timeout: u64,
    /// Replies with a status of 400 and above.
    pub(super) status: u64,
}

impl Counts {
    /// The counts of `run`: replies of the window, errors of the whole run.
    pub(super) fn of(run: &Run) -> Self {
        let summary = run.summary();
        let (window, all) = (&summary.window, &summary.lifetime);
        let timed_out = all.failures.get(FailureKind::TimedOut);
        let requests_failed = all.failures.total(FailureScope::Request);
        // Where a backlog was still being sent, what is in flight was sent just now.
        let never_answered = match summary.arrivals_all.unsent {
            0 => summary.population.censored,
            _ => 0,
        };
        let read = requests_failed
            .saturating_sub(timed_out)
            .saturating_add(all.failures.total(FailureScope::Connection));
        Self {
            duration_ns: run.window_ns,
            requests: window.replies.total(),
            bytes: window.bytes_received.saturating_sub(window.overhead_bytes),
            connect: all.failures.total(FailureScope::Connect),
            read,
            timeout: timed_out.saturating_add(never_answered),
            status: window.replies.total() - window.replies.successes(),
        }
    }

    /// `count` per second of the run; 0 for a run without length.
    fn per_s(&self, count: u64) -> f64 {
        if self.duration_ns == 0 {
            0.0
        } else {
            count as f64 * 1e9 / self.duration_ns as f64
        }
    }
}

/// How a run ends that cannot be prepared. Absent where wrk has no words for it.
pub fn preparation_ending(options: &Options, error: &PrepareError) -> Option<Ending> {
    let (host, service) = (&options.url.host, options.url.service());
    let line = match Cause::of(error)? {
        Cause::Resolve(reason) => format!("unable to resolve {host}:{service} {reason}"),
        Cause::Connect(reason, _) => format!("unable to connect to {host}:{service} {reason}"),
    };
    Some(Ending::error(&line, 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_as_in_wrk() {
        // Captured from wrk.
        for (figures, name, unit, line) in [
            (
                (20_370.0, 43.97, 20_520.0, 79.59),
                "Latency",
                time_us as fn(f64) -> String,
                "    Latency    20.37ms   43.97us  20.52ms   79.59%\n",
            ),
            (
                (98.70, 6.58, 101.0, 90.0),
                "Req/Sec",
                metric,
                "    Req/Sec    98.70      6.58   101.00     90.00%\n",
            ),
            (
                (635.91, 890.0, 12_920.0, 93.69),
                "Latency",
                time_us,
                "    Latency   635.91us    0.89ms  12.92ms   93.69%\n",
            ),
            (
                (56_200.0, 8_070.0, 62_000.0, 86.54),
                "Req/Sec",
                metric,
                "    Req/Sec    56.20k     8.07k   62.00k    86.54%\n",
            ),
        ] {
            let (mean, stdev, max, within_percent) = figures;
            let figures = Row {
                mean,
                stdev,
                max,
                within_percent,
            };
            let mut text = String::new();
            row(&figures, name, unit, &mut text);
            assert_eq!(text, line);
        }
    }

    #[test]
    fn counts_and_rates_stand_as_in_wrk() {
        let mut counts = Counts {
            duration_ns: 1_000_408_000,
            requests: 98,
            bytes: 14_500,
            status: 49,
            ..Counts::default()
        };
        assert_eq!(
            counts_and_rates(&counts),
            "  98 requests in 1.00s, 14.16KB read\n  Non-2xx or 3xx responses: 49\n\
             Requests/sec:     97.96\nTransfer/sec:     14.15KB\n"
        );
        counts.timeout = 3;
        counts.duration_ns = 0;
        assert_eq!(
            counts_and_rates(&counts),
            "  98 requests in 0.00us, 14.16KB read\n  \
             Socket errors: connect 0, read 0, write 0, timeout 3\n  \
             Non-2xx or 3xx responses: 49\nRequests/sec:      0.00\nTransfer/sec:       0.00B\n"
        );
    }
}
