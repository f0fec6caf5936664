//! oha's text and JSON of a run. Writing to a string cannot fail.

use std::cmp::Reverse;
use std::fmt::Write;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::figures::{BINS, Figures, PERCENTILES, Times};
use super::{Form, Options};
use crate::sizes::binary;

/// Characters of the longest bar.
const BAR: f64 = 32.0;

/// The result in the form that the options ask for; empty where they ask for none.
pub fn report(options: &Options, figures: &Figures) -> String {
    match options.form {
        Form::Text => text(figures),
        Form::Json => {
            let value = value(figures);
            serde_json::to_string_pretty(&value).unwrap_or_default()
        }
        Form::Quiet => String::new(),
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
    let [average, fastest, slowest] = *opening;
    // Names are looked up once, before the run.
    let lookup = average.map(|_| 0.0);
    object([
        (
            "summary",
            object([
                ("successRate", value_of(figures.success_rate())),
                ("total", value_of(figures.total_s)),
                ("slowest", value_of(times.most)),
                ("fastest", value_of(times.least)),
                ("average", value_of(times.mean)),
                ("requestsPerSec", value_of(requests_per_s)),
                ("totalData", value_of(figures.data_bytes)),
                (
                    "sizePerRequest",
                    value_of(figures.data_bytes.checked_div(figures.replies)),
                ),
                ("sizePerSec", value_of(figures.per_s(figures.data_bytes))),
            ]),
        ),
        (
            "metrics",
            object([
                ("success_rate", value_of(figures.success_rate())),
                ("requests_per_sec", value_of(requests_per_s)),
                (
                    "latency_ms",
                    object([
                        ("min", value_of(times.least.map(ms))),
                        ("mean", value_of(times.mean.map(ms))),
                        ("p50", value_of(percentile(50.0))),
                        ("p95", value_of(percentile(95.0))),
                        ("p99", value_of(percentile(99.0))),
                        ("max", value_of(times.most.map(ms))),
                    ]),
                ),
            ]),
        ),
        ("responseTimeHistogram", bins(times)),
        ("latencyPercentiles", percentiles(times)),
        ("firstByteHistogram", bins(first_byte)),
        ("firstBytePercentiles", percentiles(first_byte)),
        ("rps", rates(&figures.rates)),
        (
            "details",
            object([
                ("DNSDialup", three([average, fastest, slowest])),
                ("DNSLookup", three([lookup; 3])),
                (
                    "firstByte",
                    three([first_byte.mean, first_byte.least, first_byte.most]),
                ),
            ]),
        ),
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
            Self::Object(parts) => serializer.collect_map(parts.iter().map(|(key, it)| (key, it))),
        }
    }
}

fn value_of(value: impl Serialize) -> Json {
    Json::Value(json!(value))
}

fn object(parts: impl IntoIterator<Item = (&'static str, Json)>) -> Json {
    let parts = parts.into_iter();
    Json::Object(parts.map(|(key, it)| (key.to_owned(), it)).collect())
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

fn bins(times: &Times) -> Json {
    let bins = times.bins.iter();
    let mut bins: Vec<_> = bins
        .map(|(label, count)| (label.to_string(), value_of(count)))
        .collect();
    if bins.is_empty() {
        bins.push(("NaN".to_owned(), value_of(0)));
    }
    Json::Object(bins)
}

fn percentiles(times: &Times) -> Json {
    let percentiles = times.percentiles.iter();
    let percentiles = percentiles.map(|(percent, time)| (format!("p{percent}"), value_of(time)));
    Json::Object(percentiles.collect())
}

/// Statistics of the rates of intervals.
fn rates(rates: &[f64]) -> Json {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let mean = (count > 0.0).then(|| sorted.iter().sum::<f64>() / count);
    let deviation = mean.filter(|_| count > 1.0).map(|mean| {
        let squares = sorted.iter().map(|rate| (rate - mean) * (rate - mean));
        (squares.sum::<f64>() / (count - 1.0)).sqrt()
    });
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
    let time = |it: Option<f64>| time_or("NaN", it);
    // The mean, the shortest and the longest; of nothing as oha finds them.
    let three = |[mean, least, most]: [Option<f64>; 3]| {
        [time(mean), time_or("inf", least), time_or("-inf", most)].join(", ")
    };
    let requests_per_s = figures
        .per_s(figures.replies + figures.failed())
        .unwrap_or(0.0);
    let mut text = format!(
        "Summary:\n  Success rate:\t{:.2}%\n  Total:\t{}\n  Slowest:\t{}\n  Fastest:\t{}\n  \
         Average:\t{}\n  Requests/sec:\t{requests_per_s:.4}\n\n  Total data:\t{}\n  \
         Size/request:\t{}\n  Size/sec:\t{}\n",
        figures.success_rate().unwrap_or(f64::NAN) * 100.0,
        time(Some(figures.total_s)),
        time_or("-inf", times.most),
        time_or("inf", times.least),
        time(times.mean),
        binary(figures.data_bytes as f64, " "),
        match figures.data_bytes.checked_div(figures.replies) {
            Some(size) => binary(size as f64, " "),
            None => "NaN".to_owned(),
        },
        binary(
            figures.per_s(figures.data_bytes).unwrap_or(0.0).floor(),
            " "
        ),
    );
    let bars = bars(times, unit, length_s);
    let _ = write!(
        text,
        "\nResponse time histogram:\n{bars}\nResponse time distribution:\n"
    );
    for (percent, seconds) in &times.percentiles {
        let _ = writeln!(text, "  {percent:.2}% in {}", time(*seconds));
    }
    let dialup = three(figures.opening);
    let lookup = three(figures.opening.map(|it| it.map(|_| 0.0)));
    let _ = write!(
        text,
        "\n\nDetails (average, fastest, slowest):\n  DNS+dialup:\t{dialup}\n  \
         DNS-lookup:\t{lookup}\n\nStatus code distribution:\n"
    );
    let mut statuses = figures.statuses.clone();
    statuses.sort_by_key(|&(_, count)| Reverse(count));
    for (status, count) in statuses {
        let _ = writeln!(text, "  [{status}] {count} responses");
    }
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
fn bars(times: &Times, unit: &str, length_s: f64) -> String {
    let bins: &[(f64, u64)] = match &times.bins[..] {
        [] => &[(f64::NAN, 0); BINS],
        bins => bins,
    };
    let most = bins
        .iter()
        .map(|&(_, count)| count)
        .max()
        .unwrap_or(0)
        .max(1);
    let count_width = most.to_string().len();
    let widths = bins.iter().map(|(label, _)| {
        let whole = (label / length_s) as u64;
        whole.to_string().len()
    });
    let width = widths.max().unwrap_or(0) + 4;
    let mut text = String::new();
    for &(label, count) in bins {
        let blanks = " ".repeat(count_width - count.to_string().len());
        let bar = "■".repeat((BAR * count as f64 / most as f64) as usize);
        let label = label / length_s;
        let _ = writeln!(text, "  {label:>width$.3} {unit} [{count}]{blanks} |{bar}");
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let times = Times {
            bins: vec![(0.001, 5), (0.0125, 16), (0.024, 0)],
            ..Times::default()
        };
        assert_eq!(
            bars(&times, "ms", 1e-3),
            "   1.000 ms [5]  |■■■■■■■■■■\n  12.500 ms [16] |■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■\n  \
             24.000 ms [0]  |\n"
        );
    }

    #[test]
    fn rates_have_no_deviation_alone() {
        let rates = |of: &[f64]| serde_json::to_value(rates(of)).expect("numbers");
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
}
