//! weighttp's JSON and text of a run. Writing to a string cannot fail.

use std::fmt::Write;

use brunt_judge::RunFigures;
use brunt_record::{FailureScope, LoggedEnd, RequestLog, Run};

use super::options::{Form, WeighttpOptions, version};
use crate::libraries::{self, share, short_us};

/// What is printed when the load begins.
pub fn heading(options: &WeighttpOptions) -> String {
    let mut text = String::new();
    if options.is_quiet {
        return text;
    }
    text.push_str(version(options.form));
    let mut threads = String::new();
    for number in 0..options.threads {
        let clients = share(options.clients, options.threads, number);
        let requests = share(options.requests, options.threads, number);
        let _ = writeln!(
            threads,
            "spawning thread #{}: {clients} concurrent requests, {requests} total requests",
            number + 1
        );
    }
    let start = "starting benchmark...\n";
    match options.form {
        Form::Json => text + &threads + start,
        Form::Text => text + start + &threads,
    }
}

/// A line of progress.
pub fn progress(percent: u64) -> String {
    format!("progress: {percent:3}% done\n")
}

/// Times, and how weighttp finds percentiles among them.
#[derive(Clone, Debug, Default)]
struct Times {
    sorted: libraries::Times,
    /// Places of an even number of them count one less.
    is_lowered: bool,
}

impl Times {
    fn of(us: Vec<u32>, is_lowered: bool) -> Self {
        let sorted = libraries::Times::of(us);
        Self { sorted, is_lowered }
    }

    fn at(&self, percent: u64) -> u64 {
        let count = self.sorted.total();
        let is_lowered = count.is_multiple_of(2) && (self.is_lowered || percent == 50);
        self.sorted.at(match percent {
            0 => 0,
            100 => count,
            _ => (count * percent / 100).saturating_sub(is_lowered.into()),
        })
    }
}

/// The outcome of a run.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    taken_us: u64,
    started: u64,
    done: u64,
    passed: u64,
    /// Replies by the first digit of their status.
    statuses: [u64; 6],
    bytes: u64,
    head_bytes: u64,
    connect: Times,
    first_byte: Times,
    response: Times,
    total: Times,
}

impl Measured {
    /// The outcome of `run`, with its log.
    pub fn of(run: &Run, log: &RequestLog) -> Self {
        let all = &run.summary().lifetime;
        let mut measured = Self {
            taken_us: (run.window_ns / 1_000).max(1),
            started: all.requests_sent + all.failures.total(FailureScope::Connect),
            ..Self::default()
        };
        let [mut connect, mut first_byte, mut response, mut total] = [const { Vec::new() }; 4];
        for request in log.requests() {
            measured.done += 1;
            measured.bytes += u64::from(request.head_bytes) + request.body_bytes;
            measured.head_bytes += u64::from(request.head_bytes);
            if let LoggedEnd::Reply(outcome) = request.end {
                let class = usize::from(outcome.status().map_or(0, |status| status / 100));
                measured
                    .statuses
                    .get_mut(class)
                    .into_iter()
                    .for_each(|count| *count += 1);
                measured.passed += u64::from(matches!(class, 2 | 3));
            }
            let us = |to_ns: u64| to_ns.saturating_sub(request.sent_ns) / 1_000;
            let opening_us = request.opening_us();
            connect.extend(opening_us.map(short_us));
            first_byte.push(short_us(us(request.first_byte_ns)));
            response.push(short_us(us(request.done_ns)));
            total.push(short_us(us(request.done_ns) + opening_us.unwrap_or(0)));
        }
        measured.connect = Times::of(connect, true);
        measured.first_byte = Times::of(first_byte, false);
        measured.response = Times::of(response, false);
        measured.total = Times::of(total, false);
        measured
    }

    fn failed(&self) -> u64 {
        self.done - self.passed
    }
}

/// What is printed at the end of a run: for standard output and for standard error.
pub fn report(options: &WeighttpOptions, measured: &Measured) -> (String, String) {
    if measured.done == 0 {
        return (String::new(), "error: request_count 0\n".to_owned());
    }
    match options.form {
        Form::Json => (json(options, measured), warnings(options, measured)),
        Form::Text => (text(options, measured), String::new()),
    }
}

fn json(options: &WeighttpOptions, measured: &Measured) -> String {
    let [_, _, s2, s3, s4, s5] = measured.statuses;
    let per_s = |count: u64| u128::from(count) * 1_000_000 / u128::from(measured.taken_us);
    let reused = measured
        .done
        .saturating_sub(measured.connect.sorted.total());
    let lost = measured.failed().saturating_sub(s4 + s5);
    let mut text = format!(
        "{{\n  \"reqs_per_sec\": {},\n  \"kBps_per_sec\": {},\n  \"secs_elapsed\": {}.{:06},\n  \
         \"request_counts\": {{\n    \"started\":    {},\n    \"retired\":    {},\n    \
         \"keep-alive\": {}\n  }},\n  \
         \"response_counts\": {{\n    \"pass\": {},\n    \"fail\": {},\n    \"errs\": 0\n  }},\n  \
         \"status_codes\": {{\n    \"2xx\":  {s2},\n    \"3xx\":  {s3},\n    \
         \"4xx\":  {s4},\n    \"5xx\":  {s5}\n  }},\n  \
         \"traffic\": {{\n    \"bytes_total\":   {:12},\n    \"bytes_headers\": {:12},\n    \
         \"bytes_body\":    {:12}\n  }},\n",
        per_s(measured.done),
        per_s(measured.bytes / 1_024),
        measured.taken_us / 1_000_000,
        measured.taken_us % 1_000_000,
        measured.started,
        measured.done,
        reused.saturating_sub(lost),
        measured.passed,
        measured.failed(),
        measured.bytes,
        measured.head_bytes,
        measured.bytes - measured.head_bytes
    );
    let blocks = [
        ("connect_times", &measured.connect),
        ("time_to_first_byte", &measured.first_byte),
        ("response_times", &measured.response),
        ("total_times", &measured.total),
    ];
    for (name, times) in blocks {
        let end = if name == "total_times" { "" } else { "," };
        let sorted = &times.sorted;
        let _ = writeln!(
            text,
            "  \"{name}\": {{\n     \"num\": {:9},\n     \"avg\": {:9},\n     \
             \"stddev\": {:6.0},\n     \"unit\": \"us\",",
            sorted.total(),
            sorted.mean(),
            sorted.deviation()
        );
        let percents: &[u64] = if options.no_percentiles {
            &[0, 50, 100]
        } else {
            &[0, 50, 66, 75, 80, 90, 95, 98, 99, 100]
        };
        for &percent in percents {
            let comma = if percent == 100 { "" } else { "," };
            let key = format!("\"{percent}%\"");
            let _ = writeln!(text, "{key:>10}: {:9}{comma}", times.at(percent));
        }
        let _ = writeln!(text, "  }}{end}");
    }
    text.push_str("}\n");
    text
}

fn warnings(options: &WeighttpOptions, measured: &Measured) -> String {
    let mut text = String::new();
    if options.no_warnings {
        return text;
    }
    for (name, times) in [
        ("connect time", &measured.connect),
        ("time to first byte", &measured.first_byte),
        ("response time", &measured.response),
        ("total time", &measured.total),
    ] {
        let stdev = times.sorted.deviation();
        let apart = times.sorted.mean().abs_diff(times.at(50)) as f64;
        if stdev < 1.0 || apart <= stdev {
            continue;
        }
        let (word, factor, plural, doubt) = if apart > 2.0 * stdev {
            ("ERROR", 2, "s", "are")
        } else {
            ("WARNING", 1, "", "may be")
        };
        let _ = write!(
            text,
            "{word}: {name} median and mean differ by > {factor} standard deviation{plural}.\n\
             These results {doubt} unreliable; be cautious drawing conclusions.\n"
        );
    }
    text
}

/// The text of weighttp 0.4.
fn text(options: &WeighttpOptions, measured: &Measured) -> String {
    let us = measured.taken_us;
    let per_s = |count: u64| u128::from(count) * 1_000_000 / u128::from(us);
    let [_, _, s2, s3, s4, s5] = measured.statuses;
    format!(
        "\nfinished in {} sec, {} millisec and {} microsec, {} req/s, {} kbyte/s\n\
         requests: {} total, {} started, {} done, {} succeeded, {} failed, 0 errored\n\
         status codes: {s2} 2xx, {s3} 3xx, {s4} 4xx, {s5} 5xx\n\
         traffic: {} bytes total, {} bytes http, {} bytes data\n",
        us / 1_000_000,
        us / 1_000 % 1_000,
        us % 1_000,
        per_s(measured.done),
        per_s(measured.bytes / 1_024),
        options.requests,
        measured.started,
        measured.done,
        measured.passed,
        measured.failed(),
        measured.bytes,
        measured.head_bytes,
        measured.bytes - measured.head_bytes,
    )
}

/// The file of `-e`.
pub fn csv(measured: &Measured) -> String {
    let mut text = "Percentage served,Time in us\n".to_owned();
    let total = &measured.total.sorted;
    for percent in 0..=100 {
        let us = total.at(total.total() * percent / 100);
        let _ = writeln!(text, "{percent},{us}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::getopt::tests::words;

    fn options(line: &str) -> WeighttpOptions {
        let words = words(line);
        WeighttpOptions::parse(Form::Json, &words).expect(line)
    }

    fn measured() -> Measured {
        let of = |us: &[u32], is_lowered| Times::of(us.to_vec(), is_lowered);
        Measured {
            taken_us: 1_822,
            started: 4,
            done: 4,
            passed: 1,
            statuses: [0, 0, 1, 0, 0, 3],
            bytes: 296,
            head_bytes: 240,
            connect: of(&[92, 133, 214, 569], true),
            first_byte: of(&[107, 107, 217, 341], false),
            response: of(&[107, 107, 217, 341], false),
            total: of(&[199, 321, 472, 788], false),
        }
    }

    #[test]
    fn the_json_is_weighttps() {
        let (text, _) = report(&options("-d -n 4 h/"), &measured());
        // Captured from weighttp.
        let expected = r#"{
  "reqs_per_sec": 2195,
  "kBps_per_sec": 0,
  "secs_elapsed": 0.001822,
  "request_counts": {
    "started":    4,
    "retired":    4,
    "keep-alive": 0
  },
  "response_counts": {
    "pass": 1,
    "fail": 3,
    "errs": 0
  },
  "status_codes": {
    "2xx":  1,
    "3xx":  0,
    "4xx":  0,
    "5xx":  3
  },
  "traffic": {
    "bytes_total":            296,
    "bytes_headers":          240,
    "bytes_body":              56
  },
  "connect_times": {
     "num":         4,
     "avg":       252,
     "stddev":    217,
     "unit": "us",
      "0%":        92,
     "50%":       133,
    "100%":       569
  },
"#;
        assert!(text.starts_with(expected), "{text}");
        assert!(text.ends_with("     \"50%\":       321,\n    \"100%\":       788\n  }\n}\n"));
        let (text, _) = report(&options("-n 4 h/"), &measured());
        assert_eq!(text.matches("%\": ").count(), 40, "{text}");
    }

    #[test]
    fn the_text_is_that_of_0_4() {
        let options = options("--text -n 4 -c 3 -t 2 h/");
        let (text, _) = report(&options, &measured());
        let expected = "
finished in 0 sec, 1 millisec and 822 microsec, 2195 req/s, 0 kbyte/s
requests: 4 total, 4 started, 4 done, 1 succeeded, 3 failed, 0 errored
status codes: 1 2xx, 0 3xx, 0 4xx, 3 5xx
traffic: 296 bytes total, 240 bytes http, 56 bytes data
";
        assert_eq!(text, expected);
        let lines = heading(&options);
        let second = "spawning thread #2: 1 concurrent requests, 2 total requests\n";
        assert!(lines.ends_with(second), "{lines}");
        assert_eq!(progress(10), "progress:  10% done\n");
    }

    #[test]
    fn doubts_go_to_standard_error() {
        let mut measured = measured();
        measured.total = Times::of(vec![1, 1, 1, 1, 1, 1, 1, 1_000], false);
        let (_, stderr) = report(&options("-n 4 h/"), &measured);
        assert!(!stderr.contains("connect"), "{stderr}");
        measured.total = Times::of([vec![1; 999], vec![9_000; 1_001]].concat(), false);
        let (_, stderr) = report(&options("-n 4 h/"), &measured);
        assert!(!stderr.contains("WARNING: connect time"), "{stderr}");
        let (_, stderr) = report(&options("-S -n 4 h/"), &measured);
        assert_eq!(stderr, "");
        let (text, stderr) = report(&options("-n 4 h/"), &Measured::default());
        assert_eq!((&*text, &*stderr), ("", "error: request_count 0\n"));
    }

    #[test]
    fn all_percentiles_are_written() {
        let csv = csv(&measured());
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(
            (lines.len(), lines[1], lines[101]),
            (102, "0,199", "100,788")
        );
        assert_eq!(lines[51], "50,472");
    }
}
