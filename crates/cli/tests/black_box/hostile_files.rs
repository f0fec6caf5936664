//! `brunt report` of what is no stored run, or of runs that were made to do harm: each ends soon,
//! within a bound on its memory, with a report or with exit code 2 and a line that says what is
//! wrong.

use std::io::Write;

use base64::Engine as _;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};

use crate::support::process::{Outcome, assert_refused, brunt, limited};
use crate::support::run::run;
use crate::support::stored::Stored;

/// Address space of the process, KiB. The binary itself has 30 MiB of it, and each worker that is
/// read a count for each kind of failure.
const SPACE_KIB: u64 = 200 << 10;
/// Address space of the process for files at the limit of what is read, KiB.
const SPACE_LARGE_KIB: u64 = 3 << 20;
/// CPU time, seconds: far more than any of these files takes, far less than the worst once took.
const CPU_S: u64 = 20;

/// Reports the file within the limits.
fn report_within(space_kib: u64, path: &str, format: &str) -> Outcome {
    let limits = format!("ulimit -v {space_kib} && ulimit -t {CPU_S}");
    limited(&limits, &format!("report {path} -v --format {format}"))
}

fn report(bytes: &[u8]) -> Outcome {
    let files = Stored::new();
    let outcome = report_within(SPACE_KIB, &files.write("run", bytes), "text");
    assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
    outcome
}

#[track_caller]
fn refused(name: &str, bytes: &[u8], words: &str) {
    let outcome = report(bytes);
    assert_refused(&outcome, &[words]);
    assert!(outcome.stderr.len() < 1_500, "{name}: {outcome:?}");
}

/// A run with every kind of list in it.
fn whole() -> Value {
    let mut whole = run("-c 2 -n 200 --rate 2000").json;
    whole.as_object_mut().expect("an object").remove("summary");
    whole
}

/// The run with the value at `pointer` replaced by `text`, which need not be JSON.
fn with(whole: &Value, pointer: &str, text: &str) -> Vec<u8> {
    const MARK: &str = "what comes here";
    let mut changed = whole.clone();
    *changed
        .pointer_mut(pointer)
        .unwrap_or_else(|| panic!("no {pointer}")) = json!(MARK);
    let mark = format!("\"{MARK}\"");
    changed.to_string().replacen(&mark, text, 1).into_bytes()
}

fn zlib(bytes: impl Iterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    for piece in bytes {
        encoder.write_all(&piece).expect("memory");
    }
    encoder.finish().expect("memory")
}

/// A stored histogram: cookie, length, compressed bytes.
fn histogram(stated: Option<u32>, inflated: impl Iterator<Item = Vec<u8>>) -> String {
    let compressed = zlib(inflated);
    let stated = stated.unwrap_or(compressed.len() as u32);
    let mut bytes = 0x1c84_9314_u32.to_be_bytes().to_vec();
    bytes.extend(stated.to_be_bytes());
    bytes.extend(compressed);
    format!("\"{}\"", base64::prelude::BASE64_STANDARD.encode(bytes))
}

/// The start of an inflated histogram: cookie, length, offset, digits, bounds, ratio.
fn header(length: u32, digits: u32, highest: u64) -> Vec<u8> {
    let mut bytes = 0x1c84_9313_u32.to_be_bytes().to_vec();
    bytes.extend(length.to_be_bytes());
    bytes.extend(0_u32.to_be_bytes());
    bytes.extend(digits.to_be_bytes());
    bytes.extend(1_u64.to_be_bytes());
    bytes.extend(highest.to_be_bytes());
    bytes.extend(1_f64.to_be_bytes());
    bytes
}

const HOUR_NS: u64 = 3_600_000_000_000;
const MIB: usize = 1 << 20;

fn zeros(mib: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..mib).map(|_| vec![0; MIB])
}

#[test]
fn what_is_no_run_is_refused_in_a_line() {
    for path in ["/nonexistent/run.json", "/"] {
        assert_refused(&brunt(&format!("report {path}")), &[path]);
    }
    refused("no JSON", b"this is not JSON", "--format json");
    refused("blanks", &[b' '; 10 * MIB], "cannot read");
    let endless = report_within(SPACE_LARGE_KIB, "/dev/zero", "text");
    assert_refused(&endless, &["no stored run is that large"]);
}

#[test]
fn histograms_that_state_or_inflate_to_much() {
    let whole = whole();
    let one = |bytes: Vec<u8>| std::iter::once(bytes);
    let inflating = |length| one(header(length, 3, HOUR_NS)).chain(zeros(500));
    // 4 GiB of zeros are announced, and none comes; 1 GiB comes; some come unannounced.
    for (name, bomb) in [
        ("length", histogram(None, one(header(u32::MAX, 3, HOUR_NS)))),
        ("bomb", histogram(None, inflating(1 << 30))),
        ("silent bomb", histogram(None, inflating(0))),
    ] {
        for place in [
            "/latencies/response/hdr_v2",
            "/latencies/split/own/hdr_v2",
            "/latencies/intervals/hdr_v2/0",
        ] {
            let json = with(&whole, place, &bomb);
            refused(&format!("{name} at {place}"), &json, "istogram");
        }
    }
    // Many in one file: each is within its limit, all together are not.
    let varied: Vec<u8> = (0..4_000_u32).map(|n| (n % 50 + 1) as u8 * 2).collect();
    let varied = [header(varied.len() as u32, 2, HOUR_NS), varied].concat();
    let varied = histogram(None, one(varied));
    let bomb = histogram(None, one(header(30 << 20, 2, HOUR_NS)).chain(zeros(30)));
    for (name, each, words) in [
        ("600 full intervals", varied, "filled buckets"),
        ("600 bombs", bomb, "istogram"),
    ] {
        let list = format!("[{}]", vec![each; 600].join(","));
        refused(
            name,
            &with(&whole, "/latencies/intervals/hdr_v2", &list),
            words,
        );
    }
}

#[test]
fn what_no_run_holds() {
    let whole = whole();
    let list = |element: &str, count: usize| format!("[{}]", vec![element; count].join(","));
    let stage = r#"{"duration_ns":1,"from_per_s":1,"to_per_s":1}"#;
    let unknown = format!("\"{}\"", "\\u001b[31m".repeat(10_000));
    for (pointer, value, words) in [
        (
            "/plan/load/model/open/schedule/stages",
            list(stage, 90_000),
            "stages are too many",
        ),
        (
            "/latencies/intervals/hdr_v2",
            list("null", 100_000),
            "over the limit of 600",
        ),
        ("/agents/0/backend", unknown, "unknown variant"),
    ] {
        refused(pointer, &with(&whole, pointer, &value), words);
    }
    // Fields that no run has are skipped.
    let junk = format!(
        "{{\"junk\":{},\"kind\":\"loopback\"}}",
        list("0", 1_000_000)
    );
    let outcome = report(&with(&whole, "/agents/0/evidence/network/route", &junk));
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:?}");
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let (open, close) = (open.repeat(1_000_000), close.repeat(1_000_000));
        for pointer in ["/format", "/plan", "/agents/0/workers"] {
            let nested = with(&whole, pointer, &format!("{open}1{close}"));
            refused(pointer, &nested, "cannot read");
            report(&with(&whole, pointer, &open)).exits(2);
        }
    }
}

/// As many workers as there may be: accepted, printed in every form, and still bounded.
#[test]
fn the_largest_runs_are_read() {
    let whole = whole();
    let worker = whole["agents"][0]["workers"][0].to_string();
    let workers = format!("[{}]", vec![worker; 4_096].join(","));
    let files = Stored::new();
    let path = files.write("run", with(&whole, "/agents/0/workers", &workers));
    // JSON is the largest of the forms that it can be written in again.
    let outcome = report_within(SPACE_LARGE_KIB, &path, "json");
    // The workers' sums are not those of the histograms.
    assert_eq!(outcome.code, Some(3), "{:.2000}", outcome.stderr);
    assert!(outcome.took.as_secs() < 60, "{:?}", outcome.took);
}
