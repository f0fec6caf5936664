//! oha's text and JSON of a run. Writing to a string cannot fail.

use std::cmp::Reverse;
use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::figures::{Figures, PERCENTILES, Times};
use super::{Form, Options};
use crate::sizes::binary;

/// Characters of the longest bar.
const BAR: f64 = 32.0;

/// The result in the form that the options ask for; empty where they ask for none.
pub fn report(options: &Options, figures: &Figures) -> String {
    match options.form {
        Form::Text => text(options, figures),
        Form::Json => {
            let value = value(options, figures);
            serde_json::to_string_pretty(&value).unwrap_or_default()
        }
        Form::Quiet => String::new(),
    }
}

fn value(options: &Options, figures: &Figures) -> Value {
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
    let statuses: Map<String, Value> = statuses
        .map(|(status, count)| (status.to_string(), json!(count)))
        .collect();
    let mut value = json!({
        "summary": {
            "successRate": figures.success_rate(),
            "total": figures.total_s,
            "slowest": times.most,
            "fastest": times.least,
            "average": times.mean,
            "requestsPerSec": requests_per_s,
            "totalData": figures.data_bytes,
            "sizePerRequest": figures.data_bytes.checked_div(figures.replies),
            "sizePerSec": figures.per_s(figures.data_bytes),
        },
        "metrics": {
            "success_rate": figures.success_rate(),
            "requests_per_sec": requests_per_s,
            "latency_ms": {
                "min": times.least.map(ms),
                "mean": times.mean.map(ms),
                "p50": percentile(50.0),
                "p95": percentile(95.0),
                "p99": percentile(99.0),
                "max": times.most.map(ms),
            },
        },
        "responseTimeHistogram": bins(times),
        "latencyPercentiles": percentiles(times),
        "firstByteHistogram": bins(first_byte),
        "firstBytePercentiles": percentiles(first_byte),
        "rps": rates(&figures.rates),
        "details": {
            "DNSDialup": {
                "average": opening[0],
                "fastest": opening[1],
                "slowest": opening[2],
            },
            // Names are looked up once, before the run.
            "DNSLookup": { "average": 0.0, "fastest": 0.0, "slowest": 0.0 },
            "firstByte": {
                "average": first_byte.mean,
                "fastest": first_byte.least,
                "slowest": first_byte.most,
            },
        },
        "statusCodeDistribution": statuses,
        "errorDistribution": figures.errors,
    });
    if options.has_breakdown
        && let Some(object) = value.as_object_mut()
    {
        for (name, times) in [
            ("Successful", &figures.successes),
            ("NotSuccessful", &figures.failures),
        ] {
            object.insert(format!("responseTimeHistogram{name}"), bins(times));
            object.insert(format!("latencyPercentiles{name}"), percentiles(times));
        }
    }
    value
}

fn ms(seconds: f64) -> f64 {
    (seconds * 1e6).round() / 1e3
}

fn bins(times: &Times) -> Value {
    let bins = times.bins.iter();
    let bins = bins.map(|(label, count)| (label.to_string(), json!(count)));
    Value::Object(bins.collect())
}

fn percentiles(times: &Times) -> Value {
    let percentiles = times.percentiles.iter();
    let percentiles = percentiles.map(|(percent, time)| (format!("p{percent}"), json!(time)));
    Value::Object(percentiles.collect())
}

/// Statistics of the rates of intervals.
fn rates(rates: &[f64]) -> Value {
    let mut sorted = rates.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let mean = (count > 0.0).then(|| sorted.iter().sum::<f64>() / count);
    let deviation = mean.filter(|_| count > 1.0).map(|mean| {
        let squares = sorted.iter().map(|rate| (rate - mean) * (rate - mean));
        (squares.sum::<f64>() / (count - 1.0)).sqrt()
    });
    let percentiles: Map<String, Value> = PERCENTILES
        .into_iter()
        .map(|percent| {
            let place = (percent / 100.0 * count) as usize;
            (format!("p{percent}"), json!(sorted.get(place)))
        })
        .collect();
    json!({
        "mean": mean,
        "stddev": deviation,
        "max": sorted.last(),
        "min": sorted.first(),
        "percentiles": percentiles,
    })
}

fn text(options: &Options, figures: &Figures) -> String {
    let times = &figures.times;
    let (unit, length_s) = options
        .unit
        .unwrap_or_else(|| unit(times.most.unwrap_or(0.0)));
    let time = |time: Option<f64>| match time {
        Some(seconds) => format!("{:.4} {unit}", seconds / length_s),
        None => format!("NaN {unit}"),
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
        time(times.most),
        time(times.least),
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
    let mut parts = vec![("", times)];
    if options.has_breakdown {
        parts.push((" (2xx only)", &figures.successes));
        parts.push((" (4xx + 5xx only)", &figures.failures));
    }
    for (of, times) in parts {
        let _ = write!(
            text,
            "\nResponse time histogram{of}:\n{}",
            bars(times, unit, length_s)
        );
        let _ = writeln!(text, "\nResponse time distribution{of}:");
        for (percent, seconds) in &times.percentiles {
            let _ = writeln!(text, "  {percent:.2}% in {}", time(*seconds));
        }
    }
    let dialup = figures.opening.map(time).join(", ");
    let lookup = [Some(0.0); 3].map(time).join(", ");
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
    let most = times
        .bins
        .iter()
        .map(|&(_, count)| count)
        .max()
        .unwrap_or(0)
        .max(1);
    let count_width = most.to_string().len();
    let widths = times.bins.iter().map(|(label, _)| {
        let whole = (label / length_s) as u64;
        whole.to_string().len()
    });
    let width = widths.max().unwrap_or(0) + 4;
    let mut text = String::new();
    for &(label, count) in &times.bins {
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
