//! `brunt report` of stored runs that were made to do harm: each ends soon, within a bound on its
//! memory, with a report or with exit code 2 and a line that says what is wrong.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use base64::Engine as _;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};

use crate::support::process::{Outcome, Process};
use crate::support::run::run;

/// Address space of the process, KiB. The binary itself has 30 MiB of it, and each worker that is
/// read a count for each kind of failure.
const SPACE_KIB: u64 = 200 << 10;
/// Address space of the process for files at the limit of what is read, KiB.
const SPACE_LARGE_KIB: u64 = 3 << 20;
/// CPU time, seconds: far more than any of these files takes, far less than the worst once took.
const CPU_S: u64 = 20;

/// Reports the file within the limits.
fn report_within(space_kib: u64, path: &Path, format: &str) -> Outcome {
    let limits = format!("ulimit -v {space_kib} && ulimit -t {CPU_S} && exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command
        .args(["-c", &limits, env!("CARGO_BIN_EXE_brunt"), "report"])
        .arg(path)
        .args(["-v", "--format", format]);
    Process::start(command).wait()
}

fn report(bytes: &[u8]) -> Outcome {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), bytes).expect("it is ours");
    let outcome = report_within(SPACE_KIB, file.path(), "text");
    assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
    outcome
}

/// Reports `bytes`, and checks that they are refused with `words`.
fn refused(name: &str, bytes: &[u8], words: &str) {
    let outcome = report(bytes);
    assert_eq!(outcome.code, Some(2), "{name}: {outcome:?}");
    assert_eq!(outcome.stdout, "", "{name}");
    assert_eq!(outcome.stderr.lines().count(), 1, "{name}: {outcome:?}");
    assert!(outcome.stderr.contains(words), "{name}: {outcome:?}");
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
fn histograms_that_state_or_inflate_to_much() {
    let whole = whole();
    let one = |bytes: Vec<u8>| std::iter::once(bytes);
    let bombs = [
        // 4 GiB of zeros are announced, and none comes.
        ("length", histogram(None, one(header(u32::MAX, 3, HOUR_NS)))),
        // 1 GiB of zeros comes.
        (
            "bomb",
            histogram(None, one(header(1 << 30, 3, HOUR_NS)).chain(zeros(500))),
        ),
        (
            "silent bomb",
            histogram(None, one(header(0, 3, HOUR_NS)).chain(zeros(500))),
        ),
        (
            "outer length",
            histogram(Some(u32::MAX), one(header(0, 3, HOUR_NS))),
        ),
        ("digits", histogram(None, one(header(0, 5, HOUR_NS)))),
        (
            "many digits",
            histogram(None, one(header(0, u32::MAX, HOUR_NS))),
        ),
        ("range", histogram(None, one(header(0, 3, u64::MAX)))),
        ("no bytes", histogram(None, std::iter::empty())),
        (
            "beyond",
            histogram(
                None,
                one([header(10, 3, HOUR_NS), vec![0xff; 9], vec![1]].concat()),
            ),
        ),
        ("not compressed", "\"HISTFAAAAAQAAAAA\"".to_owned()),
        ("not base64", "\"HISTFA!\"".to_owned()),
        ("half base64", "\"HISTFAA\"".to_owned()),
    ];
    for place in [
        "/latencies/response/hdr_v2",
        "/latencies/split/own/hdr_v2",
        "/latencies/intervals/hdr_v2/0",
    ] {
        for (name, bomb) in &bombs {
            let json = with(&whole, place, bomb);
            refused(&format!("{name} at {place}"), &json, "istogram");
        }
    }
    // Many in one file: each is within its limit, all together are not.
    let varied: Vec<u8> = (0..4_000_u32).map(|n| (n % 50 + 1) as u8 * 2).collect();
    let varied = [header(varied.len() as u32, 2, HOUR_NS), varied].concat();
    let varied = histogram(None, one(varied));
    let list = format!("[{}]", vec![varied; 600].join(","));
    let json = with(&whole, "/latencies/intervals/hdr_v2", &list);
    refused("600 full intervals", &json, "filled buckets");
    let bomb = histogram(None, one(header(30 << 20, 2, HOUR_NS)).chain(zeros(30)));
    let list = format!("[{}]", vec![bomb; 600].join(","));
    let json = with(&whole, "/latencies/intervals/hdr_v2", &list);
    assert!(json.len() > 10 * MIB);
    refused("600 bombs", &json, "istogram");
}

#[test]
fn what_no_run_holds() {
    let whole = whole();
    let list = |element: &str, count: usize| format!("[{}]", vec![element; count].join(","));
    for (pointer, element, count, words) in [
        (
            "/plan/model/open/schedule/stages",
            r#"{"duration_ns":1,"from_per_s":1,"to_per_s":1}"#,
            90_000,
            "stages are too many",
        ),
        (
            "/latencies/intervals/hdr_v2",
            "null",
            100_000,
            "over the limit of 600",
        ),
    ] {
        refused(
            pointer,
            &with(&whole, pointer, &list(element, count)),
            words,
        );
    }
    // Fields that no run has are skipped.
    let zeros = list("0", 1_000_000);
    for (pointer, junk) in [
        (
            "/plan/model",
            format!("{{\"closed\":{{\"junk\":{zeros}}}}}"),
        ),
        (
            "/agents/0/evidence/network/route",
            format!("{{\"junk\":{zeros},\"kind\":\"loopback\"}}"),
        ),
    ] {
        let outcome = report(&with(&whole, pointer, &junk));
        // A closed loop is not the plan that the agent has a share of.
        let is_unsound = outcome.stderr.contains("shares of its agents");
        assert!(
            matches!(outcome.code, Some(0 | 3)) || is_unsound,
            "{pointer}: {outcome:?}"
        );
    }
    let outcome = report(&with(&whole, "/agents/0/host", &zeros));
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    let unknown = format!("\"{}\"", "\\u001b[31m".repeat(10_000));
    for pointer in ["/agents/0/backend", "/plan/backend", "/plan/spin"] {
        refused(pointer, &with(&whole, pointer, &unknown), "unknown variant");
    }
}

#[test]
fn what_is_cut_nested_or_mistyped() {
    let whole = whole();
    let text = whole.to_string();
    for part in 1..12 {
        let cut = &text.as_bytes()[..text.len() * part / 12];
        refused(&format!("cut at {part}/12"), cut, "truncated");
    }
    for (name, open, close) in [("lists", "[", "]"), ("objects", "{\"a\":", "}")] {
        let (open, close) = (open.repeat(1_000_000), close.repeat(1_000_000));
        for pointer in [
            "/format",
            "/plan",
            "/agents",
            "/agents/0/workers",
            "/latencies/response/hdr_v2",
        ] {
            let nested = with(&whole, pointer, &format!("{open}1{close}"));
            refused(&format!("{name} at {pointer}"), &nested, "cannot read");
            let open = with(&whole, pointer, &open);
            assert_eq!(report(&open).code, Some(2), "{name} open at {pointer}");
        }
    }
    for (pointer, value) in [
        ("/agents/0/workers/0/tallies/measure/requests_sent", "-1"),
        (
            "/agents/0/workers/0/tallies/measure/requests_sent",
            "18446744073709551616",
        ),
        ("/agents/0/workers/0/tallies/measure/requests_sent", "1e999"),
        ("/agents/0/workers/0/tallies/measure/requests_sent", "NaN"),
        (
            "/agents/0/workers/0/tallies/measure/replies",
            "{\"99999\":1}",
        ),
        ("/agents/0/workers/0/tallies/measure/failures", "{\"\":1}"),
        ("/agents/0/workers/0/series/interval_ns", "0"),
        ("/agents/0/workers/0/worker", "4294967296"),
        ("/window_ns", "[]"),
        ("/window_ns", "null"),
        ("/agents", "[]"),
        ("/plan/connections", "\"2\""),
        ("/plan/model", "{}"),
        ("/plan/model", "{\"open\":{}}"),
        ("/plan/connections", "0"),
        ("/plan/model/open/schedule/rate_per_s", "-1"),
        ("/plan/requests", "{\"order\":\"turns\"}"),
        ("/plan/requests", "{\"order\":\"turns\",\"requests\":[]}"),
        ("/latencies/response", "{}"),
        ("/latencies/response/count", "4611686018427387905"),
        ("/agents/0/evidence/missing", "[]"),
    ] {
        refused(
            &format!("{value} at {pointer}"),
            &with(&whole, pointer, value),
            "cannot read",
        );
    }
    for (name, bytes) in [
        ("twice", [text.as_bytes(), text.as_bytes()].concat()),
        ("zeros", vec![0; 10 * MIB]),
        ("quotes", vec![b'"'; 10 * MIB]),
        ("escapes", vec![b'\\'; 10 * MIB]),
        ("blanks", vec![b' '; 10 * MIB]),
        (
            "not UTF-8",
            text.replace("http", "\u{fffd}").into_bytes().repeat(2),
        ),
    ] {
        refused(name, &bytes, "cannot read");
    }
    let endless = report_within(SPACE_LARGE_KIB, Path::new("/dev/zero"), "text");
    assert_eq!(endless.code, Some(2), "{endless:?}");
    assert!(
        endless.stderr.contains("no stored run is that large"),
        "{endless:?}"
    );
}

/// As many workers as there may be: accepted, printed in every form, and still bounded.
#[test]
fn the_largest_runs_are_read() {
    let whole = whole();
    let worker = whole["agents"][0]["workers"][0].to_string();
    let workers = format!("[{}]", vec![worker; 4_096].join(","));
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), with(&whole, "/agents/0/workers", &workers)).expect("it is ours");
    // JSON is the largest of the forms that it can be written in again.
    let outcome = report_within(SPACE_LARGE_KIB, file.path(), "json");
    // The workers' sums are not those of the histograms.
    assert_eq!(outcome.code, Some(3), "{:.2000}", outcome.stderr);
    assert!(outcome.took.as_secs() < 60, "{:?}", outcome.took);
}
