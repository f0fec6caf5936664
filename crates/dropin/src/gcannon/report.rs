//! What gcannon prints.

use std::fmt::Write as _;

use super::VERSION;
use super::figures::{Figures, FileFigures, Latencies};
use super::options::{Address, Options};

/// What is printed before the load, unless the result is JSON.
pub fn heading(options: &Options, address: &Address) -> String {
    if options.is_json {
        return String::new();
    }
    let marks = [
        (options.message.is_some(), "WS"),
        (options.is_tui, "TUI"),
        (options.is_cqe, "CQE"),
        (options.has_file_latencies, "TPL"),
    ];
    let marks = marks.into_iter().filter(|(is_given, _)| *is_given);
    let marks: Vec<&str> = marks.map(|(_, mark)| mark).collect();
    let mut text = format!("gcannon v{VERSION}");
    if !marks.is_empty() {
        text.push_str(&format!(" [{}]", marks.join(", ")));
    }
    let Address { host, port, path } = address;
    let per_thread = f64::from(options.connections.get()) / f64::from(options.threads.get());
    let reuse = options.requests_per_connection;
    let reuse = reuse.map_or("unlimited (keep-alive)".to_owned(), |it| it.to_string());
    let templates = match options.raw.len() {
        0 | 1 => String::new(),
        several => format!("  Templates: {several}\n"),
    };
    text.push_str(&format!(
        "\n  Target:    {host}:{port}{path}\n  Threads:   {}\n  Conns:     {} \
         ({per_thread:.0}/thread)\n  Pipeline:  {}\n  Req/conn:  {reuse}\n{templates}  Expected:  \
         {}\n  Duration:  {}s\n\n",
        options.threads, options.connections, options.depth, options.expected, options.duration_s,
    ));
    text
}

/// What is printed when the run is over.
pub fn report(options: &Options, address: &Address, figures: &Figures) -> String {
    match options.is_json {
        true => json(options, address, figures),
        false => text(options, figures),
    }
}

/// The exit code of a run in which something was answered.
pub fn exit_code(options: &Options, figures: &Figures) -> u8 {
    u8::from(figures.unexpected(options) > 0)
}

fn latency(us: u64) -> String {
    match us {
        0..1_000 => format!("{us}us"),
        1_000..1_000_000 => format!("{:.2}ms", us as f64 / 1e3),
        _ => format!("{:.2}s", us as f64 / 1e6),
    }
}

fn count(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{:.2}K", count as f64 / 1e3),
        _ => format!("{:.2}M", count as f64 / 1e6),
    }
}

fn bandwidth(bytes_per_s: f64) -> String {
    let units = [("GB/s", 30), ("MB/s", 20), ("KB/s", 10)];
    let mut units = units
        .iter()
        .map(|&(unit, power)| (unit, f64::from(1 << power)));
    match units.find(|&(_, bytes)| bytes_per_s >= bytes) {
        Some((unit, bytes)) => format!("{:.2}{unit}", bytes_per_s / bytes),
        None => format!("{bytes_per_s:.0}B/s"),
    }
}

fn list(files: &[FileFigures], count: impl Fn(&FileFigures) -> u64) -> String {
    let counts: Vec<String> = files.iter().map(|it| count(it).to_string()).collect();
    counts.join(",")
}

fn text(options: &Options, figures: &Figures) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_text(&mut text, options, figures);
    text
}

fn write_text(text: &mut String, options: &Options, figures: &Figures) -> std::fmt::Result {
    let is_websocket = options.message.is_some();
    let Latencies {
        samples,
        mean_us,
        percentiles_us,
    } = figures.latencies;
    let [p50, p90, p99, p999] = percentiles_us.map(latency);
    let (requests, responses) = (figures.requests, figures.responses);
    let elapsed_s = figures.elapsed_s;
    writeln!(
        text,
        "\n  Thread Stats   Avg      p50      p90      p99    p99.9"
    )?;
    writeln!(
        text,
        "    Latency   {:>6}   {p50:>6}   {p90:>6}   {p99:>6}   {p999:>6}\n",
        latency(mean_us)
    )?;
    match is_websocket {
        true => writeln!(
            text,
            "  {requests} frames sent in {elapsed_s:.2}s, {responses} frames received"
        )?,
        false => writeln!(
            text,
            "  {requests} requests in {elapsed_s:.2}s, {responses} responses"
        )?,
    }
    writeln!(
        text,
        "  Throughput: {} req/s",
        count(figures.per_s(responses) as u64)
    )?;
    writeln!(
        text,
        "  Bandwidth:  {}",
        bandwidth(figures.per_s(figures.bytes))
    )?;
    let [of_2xx, of_3xx, of_4xx, of_5xx] = figures.classes;
    if is_websocket {
        writeln!(
            text,
            "  WS upgrades: {}\n  WS frames:   {of_2xx}",
            figures.upgrades
        )?;
    } else {
        write!(
            text,
            "  Status codes: 2xx={of_2xx}, 3xx={of_3xx}, 4xx={of_4xx}, 5xx={of_5xx}"
        )?;
        if figures.other() > 0 {
            write!(text, ", other={}", figures.other())?;
        }
        writeln!(text)?;
    }
    let percent = match responses {
        0 => 0.0,
        _ => 100.0 * samples as f64 / responses as f64,
    };
    writeln!(
        text,
        "  Latency samples: {samples} / {responses} responses ({percent:.1}%)"
    )?;
    if figures.reconnects > 0 {
        writeln!(text, "  Reconnects: {}", figures.reconnects)?;
    }
    let (connect, read, timeout) = (figures.connect, figures.read, figures.timeout);
    if connect + read + timeout > 0 {
        writeln!(
            text,
            "  Errors: connect {connect}, read {read}, timeout {timeout}"
        )?;
    }
    if !figures.files.is_empty() {
        writeln!(
            text,
            "  Per-template: {}",
            list(&figures.files, |it| it.responses)
        )?;
        writeln!(
            text,
            "  Per-template-ok: {}",
            list(&figures.files, |it| it.successes)
        )?;
    }
    if options.has_file_latencies && !figures.files.is_empty() {
        write_file_latencies(text, &figures.files)?;
    }
    let unexpected = figures.unexpected(options);
    if unexpected > 0 {
        let percent = 100.0 * unexpected as f64 / responses as f64;
        writeln!(
            text,
            "\n  WARNING: {unexpected}/{responses} responses ({percent:.1}%) had unexpected status \
             (expected {}xx)",
            options.expected / 100
        )?;
    }
    Ok(())
}

fn write_file_latencies(text: &mut String, files: &[FileFigures]) -> std::fmt::Result {
    writeln!(text, "\n  Per-template latency:")?;
    let [avg, p50, p90, p99, p999] = ["Avg", "p50", "p90", "p99", "p99.9"];
    writeln!(
        text,
        "   Tpl  {avg:>8}  {p50:>8}  {p90:>8}  {p99:>8}  {p999:>8}"
    )?;
    for (number, file) in files.iter().enumerate() {
        if file.latencies.samples == 0 {
            continue;
        }
        let [p50, p90, p99, p999] = file.latencies.percentiles_us.map(latency);
        let avg = latency(file.latencies.mean_us);
        writeln!(
            text,
            "    #{number:<3} {avg:>8}  {p50:>8}  {p90:>8}  {p99:>8}  {p999:>8}"
        )?;
    }
    Ok(())
}

/// The result as JSON, laid out as gcannon does.
fn json(options: &Options, address: &Address, figures: &Figures) -> String {
    let is_websocket = options.message.is_some();
    let Address { host, port, path } = address;
    let target = match port {
        80 => format!("{host}{path}"),
        _ => format!("{host}:{port}{path}"),
    };
    // Quotes and control characters are escaped, which gcannon leaves as they are.
    let target = serde_json::Value::from(target);
    let Latencies {
        samples,
        mean_us,
        percentiles_us: [p50, p90, p99, p999],
    } = figures.latencies;
    let [of_2xx, of_3xx, of_4xx, of_5xx] = figures.classes;
    let frames = match is_websocket {
        true => format!(
            "  \"ws_upgrades\": {},\n  \"ws_frames\": {of_2xx},\n",
            figures.upgrades
        ),
        false => String::new(),
    };
    let mut per_file = String::new();
    if !figures.files.is_empty() {
        let rows: Vec<String> = figures.files.iter().map(|it| row(options, it)).collect();
        per_file = format!(",\n  \"per_template\": [{}\n  ]", rows.join(","));
    }
    format!(
        "{{\n  \"version\": \"{VERSION}\",\n  \"target\": {target},\n  \"mode\": \"{mode}\",\n  \
         \"connections\": {connections},\n  \"threads\": {threads},\n  \"pipeline_depth\": \
         {depth},\n  \"duration_sec\": {duration},\n  \"elapsed_sec\": {elapsed:.3},\n  \
         \"requests\": {requests},\n  \"responses\": {responses},\n  \"rps\": {rps:.2},\n  \
         \"bandwidth_bps\": {bandwidth:.2},\n  \"bytes_read\": {bytes},\n  \"latency_us\": {{\n    \
         \"avg\": {mean_us},\n    \"p50\": {p50},\n    \"p90\": {p90},\n    \"p99\": {p99},\n    \
         \"p999\": {p999},\n    \"samples\": {samples}\n  }},\n{frames}  \"status\": {{\n    \
         \"2xx\": {of_2xx},\n    \"3xx\": {of_3xx},\n    \"4xx\": {of_4xx},\n    \"5xx\": \
         {of_5xx},\n    \"other\": {other}\n  }},\n  \"errors\": {{\n    \"connect\": \
         {connect},\n    \"read\": {read},\n    \"timeout\": {timeout}\n  }},\n  \"reconnects\": \
         {reconnects}{per_file}\n}}\n",
        mode = if is_websocket { "websocket" } else { "http" },
        connections = options.connections,
        threads = options.threads,
        depth = options.depth,
        duration = options.duration_s,
        elapsed = figures.elapsed_s,
        requests = figures.requests,
        responses = figures.responses,
        rps = figures.per_s(figures.responses),
        bandwidth = figures.per_s(figures.bytes),
        bytes = figures.bytes,
        other = figures.other(),
        connect = figures.connect,
        read = figures.read,
        timeout = figures.timeout,
        reconnects = figures.reconnects,
    )
}

fn row(options: &Options, file: &FileFigures) -> String {
    let latencies = match options.has_file_latencies && file.latencies.samples > 0 {
        true => {
            let [p50, _, p99, _] = file.latencies.percentiles_us;
            let avg = file.latencies.mean_us;
            format!(", \"latency_us\": {{\"avg\": {avg}, \"p50\": {p50}, \"p99\": {p99}}}")
        }
        false => String::new(),
    };
    format!(
        "\n    {{\"responses\": {}, \"2xx\": {}{latencies}}}",
        file.responses, file.successes
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words;

    fn options(line: &str) -> (Options, Address) {
        let options = Options::parse(&words(line)).expect(line);
        let address = options.address.clone().expect("a URL");
        (options, address)
    }

    fn figures() -> Figures {
        let latencies = Latencies {
            samples: 4_823_000,
            mean_us: 1_204,
            percentiles_us: [980, 1_999, 15_000, 2_500_000],
        };
        Figures {
            elapsed_s: 5.0,
            requests: 4_827_000,
            responses: 4_823_900,
            bytes: 379_368_000,
            classes: [4_823_000, 0, 900, 0],
            latencies,
            ..Figures::default()
        }
    }

    #[test]
    fn the_text_is_gcannons() {
        let (options, address) = options("http://h:8080/a?b -c 512 -t 64 -d 5");
        assert_eq!(
            heading(&options, &address),
            "gcannon v0.5.3\n  Target:    h:8080/a?b\n  Threads:   64\n  Conns:     512 \
             (8/thread)\n  Pipeline:  1\n  Req/conn:  unlimited (keep-alive)\n  Expected:  200\n  \
             Duration:  5s\n\n"
        );
        let text = report(&options, &address, &figures());
        assert_eq!(
            text,
            "\n  Thread Stats   Avg      p50      p90      p99    p99.9\n    Latency   1.20ms    \
             980us   2.00ms   15.00ms    2.50s\n\n  4827000 requests in 5.00s, 4823900 \
             responses\n  Throughput: 964.78K req/s\n  Bandwidth:  72.36MB/s\n  Status codes: \
             2xx=4823000, 3xx=0, 4xx=900, 5xx=0\n  Latency samples: 4823000 / 4823900 responses \
             (100.0%)\n\n  WARNING: 900/4823900 responses (0.0%) had unexpected status (expected \
             2xx)\n"
        );
        assert_eq!(exit_code(&options, &figures()), 1);
        let (expecting, _) = self::options("http://h/ -s 404");
        let all = Figures {
            classes: [0, 0, 4_823_900, 0],
            ..figures()
        };
        assert_eq!(exit_code(&expecting, &all), 0);
    }

    #[test]
    fn lines_that_not_every_run_has() {
        let (options, address) = options("http://h/ -R a,b -r 10 --per-tpl-latency");
        let file = FileFigures {
            responses: 7,
            successes: 5,
            latencies: Latencies {
                samples: 7,
                mean_us: 9,
                percentiles_us: [1, 2, 3, 4_000],
            },
        };
        let more = Figures {
            reconnects: 12,
            connect: 1,
            read: 2,
            timeout: 3,
            files: vec![file.clone(), FileFigures::default()],
            ..figures()
        };
        let heading = heading(&options, &address);
        assert!(heading.starts_with("gcannon v0.5.3 [TPL]\n"), "{heading}");
        assert!(
            heading.contains("  Req/conn:  10\n  Templates: 2\n"),
            "{heading}"
        );
        let text = report(&options, &address, &more);
        let tail = "  Reconnects: 12\n  Errors: connect 1, read 2, timeout 3\n  Per-template: \
                    7,0\n  Per-template-ok: 5,0\n\n  Per-template latency:\n   Tpl       Avg       \
                    p50       p90       p99     p99.9\n    #0        9us       1us       2us       \
                    3us    4.00ms\n";
        assert!(text.contains(tail), "{text}");
        let (frames, _) = self::options("http://h/ --ws");
        let counted = Figures {
            upgrades: 100,
            classes: [4_823_900, 0, 0, 0],
            ..figures()
        };
        let text = report(&frames, &address, &counted);
        let lines = "  4827000 frames sent in 5.00s, 4823900 frames received\n";
        assert!(text.contains(lines), "{text}");
        assert!(
            text.contains("  WS upgrades: 100\n  WS frames:   4823900\n"),
            "{text}"
        );
        assert_eq!(exit_code(&frames, &counted), 0);
    }

    #[test]
    fn the_json_has_all_keys() {
        let (options, address) = options("http://h:81/\"a -R a,b --json --per-tpl-latency");
        assert_eq!(heading(&options, &address), "");
        let file = FileFigures {
            responses: 1,
            successes: 1,
            latencies: Latencies {
                samples: 1,
                ..Latencies::default()
            },
        };
        let figures = Figures {
            files: vec![file, FileFigures::default()],
            ..figures()
        };
        let text = report(&options, &address, &figures);
        let json: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!(json["target"], "h:81/\"a");
        assert_eq!(
            (&json["mode"], &json["rps"]),
            (&"http".into(), &964_780.0.into())
        );
        assert_eq!(json["latency_us"]["p999"], 2_500_000);
        assert_eq!(json["per_template"][0]["latency_us"]["p99"], 0);
        assert_eq!(json["per_template"][1]["2xx"], 0);
        assert!(json["ws_frames"].is_null() && json["errors"]["timeout"] == 0);
        assert!(text.starts_with("{\n  \"version\": \"0.5.3\",\n  \"target\": "));
        assert!(text.ends_with("\n  ]\n}\n"), "{text}");
    }
}
