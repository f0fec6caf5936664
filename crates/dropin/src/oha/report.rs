//! What oha counts of a run, and its text and JSON. Times are in seconds. Writing to a string
//! cannot fail.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use brunt_judge::{RunFigures, Summary};
use brunt_record::{FailureKind, FailureScope, Histogram, Run, Series, SeriesPoint};
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{OhaOptions, ResultForm};
use crate::libraries;

/// Bins of a histogram.
const BINS: usize = 11;
/// Percentages of distributions.
const PERCENTILES: [f64; 9] = [10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99];
/// Rates are over this time at least, nanoseconds.
const RATE_NS: u64 = 10_000_000;
/// What oha calls requests without a reply in time.
const TIMEOUT: &str = "timeout";
/// Characters of the longest bar.
const BAR: f64 = 32.0;

/// The result of `run` in the form that the options ask for; empty where they ask for none.
pub fn report(options: &OhaOptions, run: &Run) -> String {
    let figures = Figures::of(options, run);
    match options.form {
        ResultForm::Text => text(&figures),
        ResultForm::Json => serde_json::to_string_pretty(&value(&figures)).unwrap_or_default(),
        ResultForm::Quiet => String::new(),
    }
}

fn value(figures: &Figures) -> Json {
    let Figures {
        times,
        first_byte,
        opening,
        ..
    } = figures;
    let requests_per_s = figures.per_s(figures.replies + figures.failed());
    let percentile = |wanted: f64| {
        let mut percentiles = times.percentiles.iter();
        let found = percentiles.find(|(percent, _)| *percent == wanted);
        found.and_then(|(_, time)| time.map(ms))
    };
    let statuses = figures.statuses.iter();
    let statuses = statuses.map(|(status, count)| (status.to_string(), value_of(count)));
    // Names are looked up once, before the run.
    let lookup = opening[0].map(|_| 0.0);
    let summary = object([
        ("successRate", value_of(figures.success_rate())),
        ("total", value_of(figures.total_s)),
        ("slowest", value_of(times.most)),
        ("fastest", value_of(times.least)),
        ("average", value_of(times.mean)),
        ("requestsPerSec", value_of(requests_per_s)),
        ("totalData", value_of(figures.data_bytes)),
        ("sizePerRequest", value_of(figures.size_per_reply())),
        ("sizePerSec", value_of(figures.per_s(figures.data_bytes))),
    ]);
    let latency_ms = object([
        ("min", value_of(times.least.map(ms))),
        ("mean", value_of(times.mean.map(ms))),
        ("p50", value_of(percentile(50.0))),
        ("p95", value_of(percentile(95.0))),
        ("p99", value_of(percentile(99.0))),
        ("max", value_of(times.most.map(ms))),
    ]);
    let metrics = object([
        ("success_rate", value_of(figures.success_rate())),
        ("requests_per_sec", value_of(requests_per_s)),
        ("latency_ms", latency_ms),
    ]);
    let of_first_byte = [first_byte.mean, first_byte.least, first_byte.most];
    let details = object([
        ("DNSDialup", three(*opening)),
        ("DNSLookup", three([lookup; 3])),
        ("firstByte", three(of_first_byte)),
    ]);
    object([
        ("summary", summary),
        ("metrics", metrics),
        ("responseTimeHistogram", bins_json(times)),
        ("latencyPercentiles", percentiles(times)),
        ("firstByteHistogram", bins_json(first_byte)),
        ("firstBytePercentiles", percentiles(first_byte)),
        ("rps", rates_json(&figures.rates)),
        ("details", details),
        ("statusCodeDistribution", Json::Object(statuses.collect())),
        ("errorDistribution", value_of(&figures.errors)),
    ])
}

/// A value of JSON whose keys stand in the order in which they are given.
#[derive(Debug)]
enum Json {
    Value(Value),
    Object(Vec<(String, Self)>),
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::Object(parts) => {
                serializer.collect_map(parts.iter().map(|(key, value)| (key, value)))
            }
        }
    }
}

fn value_of(value: impl Serialize) -> Json {
    Json::Value(json!(value))
}

fn object(parts: impl IntoIterator<Item = (&'static str, Json)>) -> Json {
    let parts = parts.into_iter();
    Json::Object(parts.map(|(key, value)| (key.to_owned(), value)).collect())
}

fn three([average, fastest, slowest]: [Option<f64>; 3]) -> Json {
    object([
        ("average", value_of(average)),
        ("fastest", value_of(fastest)),
        ("slowest", value_of(slowest)),
    ])
}

fn ms(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e3
}

fn bins_json(times: &TimesFound) -> Json {
    let bins = times.bins.iter();
    let bins = bins.map(|(label, count)| (label.to_string(), value_of(count)));
    let mut bins: Vec<_> = bins.collect();
    if bins.is_empty() {
        bins.push(("NaN".to_owned(), value_of(0)));
    }
    Json::Object(bins)
}

fn percentiles(times: &TimesFound) -> Json {
    let percentiles = times.percentiles.iter();
    let percentiles = percentiles.map(|(percent, time)| (format!("p{percent}"), value_of(time)));
    Json::Object(percentiles.collect())
}

/// Statistics of the rates of intervals.
fn rates_json(rates: &[f64]) -> Json {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let mean = (count > 0.0).then(|| sorted.iter().sum::<f64>() / count);
    let deviation = mean.filter(|_| count > 1.0);
    let deviation = deviation.map(|mean| libraries::deviation(sorted.iter().copied(), mean));
    let percentiles = PERCENTILES.into_iter().map(|percent| {
        let place = (percent / 100.0 * count) as usize;
        (format!("p{percent}"), value_of(sorted.get(place)))
    });
    object([
        ("mean", value_of(mean)),
        ("stddev", value_of(deviation)),
        ("max", value_of(sorted.last())),
        ("min", value_of(sorted.first())),
        ("percentiles", Json::Object(percentiles.collect())),
    ])
}

fn text(figures: &Figures) -> String {
    let times = &figures.times;
    let (unit, length_s) = unit(times.most.unwrap_or(0.0));
    let time_or = |nothing: &str, time: Option<f64>| match time {
        Some(seconds) => format!("{:.4} {unit}", seconds / length_s),
        None => format!("{nothing} {unit}"),
    };
    let time = |seconds: Option<f64>| time_or("NaN", seconds);
    // The mean, the shortest and the longest; of nothing as oha finds them.
    let three = |[mean, least, most]: [Option<f64>; 3]| {
        [time(mean), time_or("inf", least), time_or("-inf", most)].join(", ")
    };
    let requests_per_s = figures.per_s(figures.replies + figures.failed());
    let requests_per_s = requests_per_s.unwrap_or(0.0);
    let size = figures.size_per_reply();
    let mut text = format!(
        "Summary:\n  Success rate:\t{:.2}%\n  Total:\t{}\n  Slowest:\t{}\n  Fastest:\t{}\n  \
         Average:\t{}\n  Requests/sec:\t{requests_per_s:.4}\n\n  Total data:\t{}\n  \
         Size/request:\t{}\n  Size/sec:\t{}\n",
        figures.success_rate().unwrap_or(f64::NAN) * 100.0,
        time(Some(figures.total_s)),
        time_or("-inf", times.most),
        time_or("inf", times.least),
        time(times.mean),
        binary(figures.data_bytes as f64),
        size.map_or("NaN".to_owned(), |size| binary(size as f64)),
        binary(figures.per_s(figures.data_bytes).unwrap_or(0.0).floor()),
    );
    let bars = bars(times, unit, length_s);
    let percentiles = times.percentiles.iter();
    let percentiles =
        percentiles.map(|(percent, seconds)| format!("  {percent:.2}% in {}\n", time(*seconds)));
    let percentiles: String = percentiles.collect();
    let dialup = three(figures.opening);
    let lookup = three(figures.opening.map(|opening| opening.map(|_| 0.0)));
    let mut statuses = figures.statuses.clone();
    statuses.sort_by_key(|&(_, count)| Reverse(count));
    let statuses = statuses.iter();
    let statuses = statuses.map(|(status, count)| format!("  [{status}] {count} responses\n"));
    let statuses: String = statuses.collect();
    text += &format!(
        "\nResponse time histogram:\n{bars}\nResponse time distribution:\n{percentiles}\n\n\
         Details (average, fastest, slowest):\n  DNS+dialup:\t{dialup}\n  \
         DNS-lookup:\t{lookup}\n\nStatus code distribution:\n{statuses}"
    );
    let mut errors: Vec<_> = figures.errors.iter().collect();
    errors.sort_by_key(|&(_, count)| Reverse(*count));
    if !errors.is_empty() {
        text.push_str("\nError distribution:\n");
    }
    for (error, count) in errors {
        let _ = writeln!(text, "  [{count}] {error}");
    }
    text
}

/// The histogram as bars.
fn bars(times: &TimesFound, unit: &str, length_s: f64) -> String {
    let bins: &[(f64, u64)] = match &times.bins[..] {
        [] => &[(f64::NAN, 0); BINS],
        bins => bins,
    };
    let most = bins.iter().map(|&(_, count)| count).max();
    let most = most.unwrap_or(0).max(1);
    let count_width = most.to_string().len();
    let whole = |label: f64| ((label / length_s) as u64).to_string().len();
    let width = bins.iter().map(|&(label, _)| whole(label)).max();
    let width = width.unwrap_or(0) + 4;
    let mut text = String::new();
    for &(label, count) in bins {
        let bar = "■".repeat((BAR * count as f64 / most as f64) as usize);
        let (label, blanks) = (label / length_s, count_width - count.to_string().len());
        let _ = writeln!(
            text,
            "  {label:>width$.3} {unit} [{count}]{:blanks$} |{bar}",
            ""
        );
    }
    text
}

/// The unit that fits times as long as this.
fn unit(seconds: f64) -> (&'static str, f64) {
    let units = [
        ("hr", 3_600.0),
        ("10 min", 600.0),
        ("min", 60.0),
        ("10 sec", 10.0),
        ("sec", 1.0),
        ("ms", 1e-3),
        ("us", 1e-6),
    ];
    let fits = units.into_iter().find(|(_, length_s)| seconds > *length_s);
    fits.unwrap_or(("ns", 1e-9))
}

/// Bytes with a unit: whole bytes, else two decimals.
fn binary(bytes: f64) -> String {
    let mut amount = bytes;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if amount < 1_024.0 {
            break;
        }
        amount /= 1_024.0;
        unit = larger;
    }
    let decimals = if unit == "B" { 0 } else { 2 };
    format!("{amount:.decimals$} {unit}")
}

/// The figures of a run, as oha names them.
#[derive(Clone, Debug)]
struct Figures {
    /// Length of the run.
    total_s: f64,
    /// Replies, whatever their status.
    replies: u64,
    /// Bytes of their bodies.
    data_bytes: u64,
    /// Replies by status.
    statuses: Vec<(u16, u64)>,
    /// Failures by what is said of them.
    errors: BTreeMap<&'static str, u64>,
    /// Latencies of all replies.
    times: TimesFound,
    /// From the send to the first byte.
    first_byte: TimesFound,
    /// To open a connection: mean, shortest, longest.
    opening: [Option<f64>; 3],
    /// Replies per second, interval by interval.
    rates: Vec<f64>,
}

/// A distribution of times.
#[derive(Clone, Debug, Default, PartialEq)]
struct TimesFound {
    /// The shortest; absent of nothing, as the others.
    least: Option<f64>,
    /// The longest.
    most: Option<f64>,
    /// The mean.
    mean: Option<f64>,
    /// The longest time of each bin, with how many there are; empty of nothing.
    bins: Vec<(f64, u64)>,
    /// By percentage.
    percentiles: Vec<(f64, Option<f64>)>,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

impl TimesFound {
    fn of(times: &Histogram) -> Self {
        let quantile = |percent: f64| (percent, times.quantile_ns(percent / 100.0).map(seconds));
        Self {
            least: times.min_ns().map(seconds),
            most: times.max_ns().map(seconds),
            mean: times.mean_ns().map(|ns| ns / 1e9),
            bins: bins(times),
            percentiles: PERCENTILES.map(quantile).to_vec(),
        }
    }
}

/// Bins of equal width, the first of which has the shortest time alone.
fn bins(times: &Histogram) -> Vec<(f64, u64)> {
    let (Some(least_ns), Some(most_ns)) = (times.min_ns(), times.max_ns()) else {
        return Vec::new();
    };
    let step_ns = (most_ns - least_ns) as f64 / (BINS - 1) as f64;
    let mut counts = [0; BINS];
    let buckets = times.buckets();
    for bucket in buckets.iter_recorded() {
        // What is counted with the shortest is as short, for all that is known.
        let ns = if buckets.equivalent(bucket.value_iterated_to(), least_ns) {
            least_ns
        } else {
            buckets.median_equivalent(bucket.value_iterated_to())
        };
        let above_ns = (ns.clamp(least_ns, most_ns) - least_ns) as f64;
        let steps = if step_ns > 0.0 {
            above_ns / step_ns
        } else {
            0.0
        };
        let bin = steps.ceil() as usize;
        counts[bin.min(BINS - 1)] += bucket.count_at_value();
    }
    let bins = counts.iter().enumerate();
    bins.map(|(bin, &count)| ((least_ns as f64 + step_ns * bin as f64) / 1e9, count))
        .collect()
}

impl Figures {
    /// The figures of `run`.
    fn of(options: &OhaOptions, run: &Run) -> Self {
        let summary = run.summary();
        let latencies = &run.latencies;
        let is_planned = options.rate_per_s.is_some();
        let is_from_send = is_planned && !options.is_corrected;
        let planned = &latencies.response;
        let successes = if is_from_send {
            &latencies.service
        } else {
            planned
        };
        let mut all = successes.clone();
        all.merge(&latencies.response_error);
        let statuses: Vec<(u16, u64)> = summary.lifetime.replies.iter().collect();
        let sum =
            |one: Option<u64>, other: Option<u64>| one.map(|ns| seconds(ns + other.unwrap_or(0)));
        let (connect, tls) = (&latencies.connect, &latencies.tls);
        let opening = [
            (connect.count() > 0).then(|| latencies.opening_mean_ns() / 1e9),
            sum(connect.min_ns(), tls.min_ns()),
            sum(connect.max_ns(), tls.max_ns()),
        ];
        Self {
            total_s: seconds(run.window_ns),
            replies: summary.lifetime.replies.total(),
            data_bytes: summary.lifetime.reply_body_bytes,
            errors: errors(&summary),
            times: TimesFound::of(&all),
            first_byte: TimesFound::of(&latencies.first_byte),
            // Those of requests that failed are not told.
            opening: opening.map(|s| s.filter(|_| !statuses.is_empty())),
            rates: rates(&summary.series, run.window_ns, !statuses.is_empty()),
            statuses,
        }
    }

    /// Failed requests.
    fn failed(&self) -> u64 {
        self.errors.values().sum()
    }

    /// The share of replies in all that was tried; absent of nothing.
    fn success_rate(&self) -> Option<f64> {
        let tried = self.replies + self.failed();
        (tried > 0).then(|| self.replies as f64 / tried as f64)
    }

    /// Bytes of the body of a reply; absent without any.
    fn size_per_reply(&self) -> Option<u64> {
        self.data_bytes.checked_div(self.replies)
    }

    /// `amount` per second; absent for a run without length.
    fn per_s(&self, amount: u64) -> Option<f64> {
        (self.total_s > 0.0).then(|| amount as f64 / self.total_s)
    }
}

/// Failures of requests and of attempts to connect, and what was never answered.
fn errors(summary: &Summary) -> BTreeMap<&'static str, u64> {
    let mut errors = BTreeMap::new();
    for (kind, count) in summary.lifetime.failures.iter() {
        let name = match kind {
            FailureKind::TimedOut => TIMEOUT,
            _ if kind.scope() == FailureScope::Connection => continue,
            _ => kind.label(),
        };
        *errors.entry(name).or_insert(0) += count;
    }
    let arrivals = &summary.arrivals_all;
    let skipped = arrivals.skipped_full + arrivals.skipped_late;
    let unanswered = summary.population.censored + skipped + arrivals.unsent;
    if unanswered > 0 {
        *errors.entry(TIMEOUT).or_insert(0) += unanswered;
    }
    errors
}

/// Replies per second in the intervals that lie in the window; short ones are taken together.
fn rates(series: &Series, window_ns: u64, has_replies: bool) -> Vec<f64> {
    let interval_ns = series.interval_ns.max(1);
    let whole = ((window_ns / interval_ns) as usize).min(series.points.len());
    let together = RATE_NS.div_ceil(interval_ns).max(1);
    let points = series.points[..whole].chunks_exact(together as usize);
    let rate = |points: &[SeriesPoint]| {
        let replies = points.iter().map(|point| point.successes + point.errors);
        replies.sum::<u64>() as f64 / seconds(together * interval_ns)
    };
    points.filter(|_| has_replies).map(rate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_begins_where_it_is_whole() {
        for (amount, expected) in [
            (0.0, "0 B"),
            (1_023.0, "1023 B"),
            (1_024.0, "1.00 KiB"),
            (1_239_876.0, "1.18 MiB"),
            (2e18, "1818989.40 TiB"),
        ] {
            assert_eq!(binary(amount), expected);
        }
    }

    #[test]
    fn units_are_those_of_oha() {
        for (seconds, expected) in [
            (0.0, "ns"),
            (0.001, "us"),
            (0.0011, "ms"),
            (1.5, "sec"),
            (11.0, "10 sec"),
            (7_200.0, "hr"),
        ] {
            assert_eq!(unit(seconds).0, expected, "{seconds}");
        }
    }

    #[test]
    fn bars_stand_as_in_oha() {
        let times = TimesFound {
            bins: vec![(0.001, 5), (0.0125, 16), (0.024, 0)],
            ..TimesFound::default()
        };
        assert_eq!(
            bars(&times, "ms", 1e-3),
            "   1.000 ms [5]  |■■■■■■■■■■\n  12.500 ms [16] |■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■\n  \
             24.000 ms [0]  |\n"
        );
    }

    #[test]
    fn rates_have_no_deviation_alone() {
        let rates = |of: &[f64]| serde_json::to_value(rates_json(of)).expect("numbers");
        let found = rates(&[5.0]);
        assert_eq!(
            (&found["mean"], &found["stddev"]),
            (&json!(5.0), &Value::Null)
        );
        let found = rates(&[4.0, 6.0]);
        assert_eq!(
            (&found["max"], &found["percentiles"]["p50"]),
            (&json!(6.0), &json!(6.0))
        );
        assert_eq!(found["stddev"], json!(2.0_f64.sqrt()));
    }

    #[test]
    fn bins_are_of_equal_width() {
        let mut times = Histogram::default();
        (1..=11).for_each(|ms| times.record(ms * 1_000_000));
        let found = TimesFound::of(&times);
        let counts: Vec<u64> = found.bins.iter().map(|&(_, count)| count).collect();
        assert_eq!(counts.iter().sum::<u64>(), 11);
        assert_eq!((found.bins[0].0, counts[0]), (0.001, 1));
        assert!((found.bins[10].0 - 0.011).abs() < 1e-9);
        assert_eq!((found.least, found.most), (Some(0.001), Some(0.011)));
        let one = {
            let mut times = Histogram::default();
            times.record(5_000_000);
            TimesFound::of(&times)
        };
        assert_eq!(one.bins[0], (0.005, 1));
        let none = TimesFound::of(&Histogram::default());
        assert!(
            none.bins.is_empty()
                && none
                    .percentiles
                    .iter()
                    .all(|(_, seconds)| seconds.is_none())
        );
    }
}
