//! Stored runs that are cut, changed or no runs at all are refused with the right error.

use brunt_measure::Run;
use brunt_report::{Format, ReadError, Style, read, write, write_hgrm, write_hlog};
use serde_json::{Value, json};

use crate::fixtures;

fn stored() -> String {
    let mut bytes = Vec::new();
    write(
        &fixtures::few(),
        Format::Json,
        &Style::default(),
        &mut bytes,
    )
    .unwrap();
    String::from_utf8(bytes).unwrap()
}

fn error(json: &str) -> ReadError {
    match read(&mut json.as_bytes()) {
        Ok(_) => panic!("accepted: {json:.100}"),
        Err(error) => error,
    }
}

/// The stored run with the value at `pointer` replaced.
fn changed(pointer: &str, value: Value) -> String {
    let mut stored: Value = serde_json::from_str(&stored()).unwrap();
    *stored
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("no {pointer}")) = value;
    stored.to_string()
}

#[test]
fn what_is_no_run_is_refused() {
    for text in [
        "GET / HTTP/1.1\r\n",
        "{]",
        "\u{0}",
        "{} {}",
        "target  http://h/",
    ] {
        assert!(
            matches!(error(text), ReadError::NotJson(_)),
            "{text}: {}",
            error(text)
        );
    }
    for text in [
        "[]",
        "1",
        "null",
        "{}",
        "{\"format\": \"1\"}",
        "{\"format\": -1}",
    ] {
        assert!(
            matches!(error(text), ReadError::NotARun),
            "{text}: {}",
            error(text)
        );
    }
    assert!(error("[]").to_string().contains("--format json"));
}

#[test]
fn a_run_that_is_cut_anywhere_is_refused() {
    let stored = stored();
    let text = stored.trim_end();
    for length in (0..text.len()).step_by(37).chain([text.len() - 1]) {
        let error = error(&text[..length]);
        assert!(
            matches!(error, ReadError::Truncated(_)),
            "{length}: {error}"
        );
    }
}

#[test]
fn deep_nesting_is_refused() {
    let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
    for field in ["format", "workers"] {
        for end in ["", &format!("{close}}}")] {
            let format = Run::FORMAT;
            error(&format!("{{\"format\": {format}, \"{field}\": {open}{end}"));
        }
    }
}

#[test]
fn another_format_is_named() {
    for other in [1, 3] {
        let error = error(&changed("/format", json!(other)));
        assert!(
            matches!(error, ReadError::OtherFormat { found, known: 2 } if found == other),
            "{error}"
        );
        assert!(error.to_string().contains("version of brunt"), "{error}");
    }
}

/// Format 1 had `pipeline` in place of `depth`, and nothing of TLS and HTTP/2.
#[test]
fn a_run_of_the_first_format_is_not_taken_for_a_changed_one() {
    let mut stored: Value = serde_json::from_str(&changed("/format", json!(1))).unwrap();
    let load = stored["load"].as_object_mut().unwrap();
    let depth = load.remove("depth").unwrap();
    load.insert("pipeline".to_owned(), depth);
    load.remove("tls");
    let error = error(&stored.to_string());
    assert!(
        matches!(error, ReadError::OtherFormat { found: 1, .. }),
        "{error}"
    );
}

#[test]
fn a_missing_field_is_named() {
    let whole: Value = serde_json::from_str(&stored()).unwrap();
    for field in ["load", "window", "latencies", "workers", "host", "findings"] {
        let mut stored = whole.clone();
        stored.as_object_mut().unwrap().remove(field);
        let error = error(&stored.to_string());
        assert!(matches!(error, ReadError::Field(_)), "{field}: {error}");
        assert!(error.to_string().contains(&format!("`{field}`")), "{error}");
    }
}

#[test]
fn the_summary_is_not_needed() {
    for summary in [json!(null), json!({"valid": false}), json!([1, 2])] {
        assert!(read(&mut changed("/summary", summary).as_bytes()).is_ok());
    }
}

const COUNTER: &str = "/workers/0/tallies/measure/requests_sent";

#[test]
fn values_that_no_run_can_have_are_refused() {
    for (pointer, value) in [
        (COUNTER, json!(-1)),
        (COUNTER, json!(1.5)),
        (COUNTER, json!("many")),
        ("/latencies/response/count", json!(101)),
        ("/latencies/response/min_ns", json!(u64::MAX)),
        ("/latencies/response/max_ns", json!(null)),
        ("/latencies/response/hdr_v2", json!("%")),
        ("/latencies/response/hdr_v2", json!("AAAA")),
        ("/load/backend", json!("kqueue")),
        ("/load/model/kind", json!("half-open")),
        ("/workers/0/series/interval_ns", json!(0)),
        ("/workers/0/series/interval_ns", json!(150_000_000)),
        ("/workers/0/tallies/measure/replies", json!({"99": 1})),
        (
            "/workers/0/tallies/measure/failures",
            json!({"no_such_kind": 1}),
        ),
    ] {
        let error = error(&changed(pointer, value.clone()));
        assert!(
            matches!(error, ReadError::Field(_)),
            "{pointer} {value}: {error}"
        );
    }
}

#[test]
fn absurd_counters_are_printed_and_break_nothing() {
    let planned = [
        COUNTER,
        "/host/cpu_user_ns",
        "/window/start_ns",
        "/window/end_ns",
        "/edges/warmup_start/ns",
        "/edges/drain_end/ns",
        "/workers/0/population/issued",
        "/workers/0/tallies/before/connections_opened",
        "/workers/0/under_way_at_end",
        "/workers/0/unsent",
        "/workers/0/series/points/0/successes",
        "/workers/0/series/points/0/waiting_max",
        "/workers/0/arrivals/planned",
        "/workers/0/arrivals/sent",
        "/workers/0/spun_ns",
        "/load/model/schedule/expected",
        "/wall/started_unix_ms",
    ];
    let watched = [
        "/evidence/interval_ns",
        "/evidence/observer/cpu_ns",
        "/evidence/observer/readings",
        "/evidence/host/cpus/0/busy_ns",
        "/evidence/host/cpus/0/idle_ns",
        "/evidence/host/pressure_ns",
        "/evidence/host/series/1/busy_ns",
        "/evidence/network/tcp/segments_retransmitted",
        "/evidence/server/interval_ns",
        "/evidence/server/cpu_user_ns",
        "/evidence/server/cpus",
        "/evidence/server/run_queue_wait_ns",
        "/evidence/server/threads/busiest_cpu_ns",
        "/evidence/server/idle_cpus_used",
        "/evidence/server/resident_bytes_max",
        "/evidence/server/series/1/at_ns",
        "/evidence/server/series/1/cpu_user_ns",
        "/evidence/server_count/before",
        "/evidence/server_count/after",
        "/evidence/server_count/own_reads",
        "/workers/0/thread/cpu_user_ns",
        "/workers/0/thread/interval_ns",
        "/workers/0/thread/run_queue_wait_ns",
        "/calibration/made_unix_ms",
        "/calibration/ceilings/1/requests_per_s",
    ];
    let diagnosed = [
        "/diagnosis/parts/0/replies",
        "/diagnosis/parts/0/length_ns",
        "/diagnosis/parts/0/delay_ns",
    ];
    each_is_printed(&fixtures::overloaded(), &planned);
    each_is_printed(&fixtures::watched(), &watched);
    each_is_printed(&fixtures::diagnosed(), &diagnosed);
}

/// Stores `run` with the largest number at one of `pointers` at a time, and prints it in full.
fn each_is_printed(run: &Run, pointers: &[&str]) {
    let mut bytes = Vec::new();
    let style = Style {
        verbose: true,
        spectrum: true,
        ..Style::default()
    };
    write(run, Format::Json, &style, &mut bytes).unwrap();
    let whole: Value = serde_json::from_slice(&bytes).unwrap();
    for pointer in pointers {
        let mut stored = whole.clone();
        *stored
            .pointer_mut(pointer)
            .unwrap_or_else(|| panic!("no {pointer}")) = json!(u64::MAX);
        let worker = stored["workers"][0].clone();
        stored["workers"].as_array_mut().unwrap().push(worker);
        let run = read(&mut stored.to_string().as_bytes()).unwrap();
        for &format in Format::ALL {
            write(&run, format, &style, &mut std::io::sink()).unwrap();
        }
        write_hlog(&run, &mut std::io::sink()).unwrap();
        write_hgrm(&run, &mut std::io::sink()).unwrap();
    }
}
