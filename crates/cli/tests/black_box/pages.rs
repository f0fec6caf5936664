//! HTML reports, opened in a browser: whether they are drawn, keep to themselves, and can be read
//! without their scripts.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::at_once;
use crate::support::chromium::{open, read_without_scripts};
use crate::support::process::{Outcome, brunt, brunt_with};
use crate::support::serve::Serve;
use crate::support::simulated::{at_rate, plan, simulate};
use crate::support::stored::Stored;

/// Larger is no page of a run of ten minutes.
const RUN_BYTES_MAX: u64 = 400_000;
/// Width of a phone, pixels.
const PHONE: u32 = 400;
/// What would run, load or rewrite something, were it not text.
const HOSTILE: &str = "</script></style></pre>--><!--<script>document.title='owned'</script>\
                       <img src=http://outside.invalid/x onerror=\"document.title='owned'\">\
                       \"'&lt;\u{2028}`${document.title='owned'}";

/// The page of a run with these blank-separated words.
fn page_of_run(pages: &Stored, name: &str, words: &str) -> PathBuf {
    let page = pages.place(name);
    let outcome = brunt(&format!("-q -o {} {words}", page.display()));
    assert_written(&page, &outcome);
    page
}

fn assert_written(page: &Path, outcome: &Outcome) {
    let bytes = page.metadata().map(|file| file.len()).unwrap_or_default();
    assert!(bytes > 10_000, "{outcome:?}");
}

/// Opens a page in light and in dark: every one of its charts is drawn, with coloured pixels, and
/// nothing is complained about or asked of the network.
fn assert_drawn(page: &Path, charts: &[&str]) {
    at_once(["1", "0"], |scheme| {
        let opened = open(
            page,
            &[&format!("--blink-settings=preferredColorScheme={scheme}")],
        );
        assert_eq!(opened.console, [""; 0], "{page:?}");
        assert_eq!(opened.requests, [""; 0], "{page:?}");
        assert!(
            opened.dom.contains("data-charts="),
            "the script ended early"
        );
        let mut places = opened.dom.split(" data-chart=\"").skip(1).map(|rest| {
            let (name, rest) = rest.split_once('"').expect("a value");
            let tag = rest.split('>').next().unwrap_or_default();
            let drawn = tag.split("data-drawn=\"").nth(1);
            let pixels = drawn.and_then(|pixels| pixels.split('"').next()?.parse::<u64>().ok());
            (name, pixels)
        });
        let places: Vec<_> = places.by_ref().collect();
        for (name, pixels) in &places {
            assert!(
                pixels.is_some_and(|pixels| pixels > 0),
                "{page:?} {name}: {pixels:?}"
            );
        }
        for chart in charts {
            let is_there = places.iter().any(|(name, _)| name == chart);
            assert!(is_there, "{page:?} {chart}: {places:?}");
        }
    });
}

/// Reads a page on a phone on which no script runs: the words are there, and nothing sticks out.
fn assert_readable(page: &Path, words: &[&str]) {
    let read = read_without_scripts(page, PHONE);
    for words in words {
        assert!(
            read.text.contains(words),
            "{page:?}: no {words:?} in {}",
            read.text
        );
    }
    assert!(read.width <= PHONE, "{page:?}: {} pixels", read.width);
}

#[test]
fn a_run_is_drawn_and_can_be_read_without_scripts() {
    let (server, pages) = (Serve::start(), Stored::new());
    let url = server.url("/bytes/100");
    let page = page_of_run(
        &pages,
        "run.html",
        &format!("-c 4 -d 1s --warmup 200ms {url}"),
    );
    assert_drawn(
        &page,
        &["throughput", "latency", "percentiles", "heat", "cpu", "own"],
    );
    let words = [
        "throughput",
        "Environment",
        "Charts need JavaScript",
        "req/s",
        &url,
    ];
    assert_readable(&page, &words);
}

#[test]
fn an_open_loop_with_failures_is_drawn() {
    let (server, pages) = (Serve::start(), Stored::new());
    let url = server.url("/random-close/20");
    let load = "-c 4 -r 400 -d 1s --warmup 0s --objective errors<0.1%";
    let page = page_of_run(&pages, "open.html", &format!("{load} {url}"));
    assert_drawn(&page, &["throughput", "latency", "errors", "connections"]);
    assert_readable(&page, &["objectives", "MISSED", "closed before reply"]);
}

#[test]
fn nothing_to_draw_is_a_page_all_the_same() {
    let (server, pages) = (Serve::start(), Stored::new());
    let url = server.url("/never");
    let load = "-c 1 -d 100ms --warmup 0s --drain 50ms";
    let page = page_of_run(&pages, "never.html", &format!("{load} {url}"));
    assert_drawn(&page, &[]);
    assert_readable(&page, &["NO-SUCCESS"]);
}

/// Ten minutes in virtual time, as a schedule with steps: its page is small, and is what `report`
/// makes of the stored run.
#[test]
fn ten_minutes_are_a_small_page() {
    let pages = Stored::new();
    let stored = pages.place("run.json");
    let plan = plan("http://simulated/", [20, 2], [1_000, 600_000]);
    simulate(at_rate(plan, 2_000.0), None, &stored);
    let page = pages.place("run.html");
    let outcome = brunt(&format!(
        "report {} -q -o {}",
        stored.display(),
        page.display()
    ));
    assert_written(&page, &outcome);
    let bytes = page.metadata().expect("it was written").len();
    assert!(bytes < RUN_BYTES_MAX, "{bytes} bytes");
    assert_drawn(&page, &["throughput", "latency", "percentiles", "heat"]);
}

/// Pages of a comparison that is measured, and of experiments with known rounds.
#[test]
fn experiments_are_drawn() {
    let (server, pages) = (Serve::start(), Stored::new());
    let (fast, slow) = (server.url("/delay/1ms"), server.url("/delay/2ms"));
    let compare = format!("compare --pairs 7 -c 2 -t 1 -d 100ms --warmup 20ms {fast} {slow}");
    let stored = |name: &str| {
        let corpus = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/stored_run");
        format!("report {corpus}/{name}")
    };
    at_once(
        [
            (
                "sweep.html",
                stored("sweep"),
                &["throughput", "latency", "cpu", "memory"][..],
                "from 50 connections on",
            ),
            (
                "find.html",
                stored("capacity"),
                &["steps-tried"],
                "is the highest rate that meets the objectives",
            ),
            ("compare.html", compare, &["ratios-throughput-1"], "A: http"),
        ],
        |(name, words, charts, sentence)| {
            let page = pages.place(name);
            let outcome = brunt(&format!("{words} -q -o {}", page.display()));
            assert_written(&page, &outcome);
            assert_drawn(&page, charts);
            assert_readable(&page, &[sentence, "JavaScript", "Environment"]);
        },
    );
}

/// Replaces what a peer, a file or a user could have chosen.
fn poison(value: &mut Value) {
    const OWN: &str = "kind backend protocol process http stamps spin order placement reuse \
                       scheme think_spread watch buckets reason";
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                match field {
                    Value::String(text) if OWN.split(' ').all(|own| own != name) => {
                        *text = HOSTILE.to_owned();
                    }
                    Value::Object(_) | Value::Array(_) if name != "buckets" => {
                        poison(field);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(poison),
        _ => {}
    }
}

#[test]
fn hostile_text_runs_nowhere() {
    let (server, pages) = (Serve::start(), Stored::new());
    let stored = pages.place("run.json");
    let path = stored.to_str().expect("a path in UTF-8");
    let url = server.url("/status/500");
    let outcome = brunt(&format!("-q -o {path} -c 2 -d 300ms --warmup 0s {url}"));
    assert!(stored.exists(), "{outcome:?}");
    let mut run = pages.read("run.json");
    poison(&mut run);
    run["agents"][0]["workers"][0]["error_bodies"] =
        serde_json::json!([{"status": 500, "text": HOSTILE, "is_cut": false}]);
    pages.write("run.json", run.to_string());
    let page = pages.place("run.html");
    let outcome = brunt_with(&["report", "-q", path, "-o", page.to_str().expect("UTF-8")]);
    assert_written(&page, &outcome);
    assert_drawn(&page, &["errors"]);
    let opened = open(&page, &[]);
    let title = opened.dom.split("<title>").nth(1).expect("a title");
    assert!(!title.starts_with("owned"), "{title:.80}");
    assert_readable(&page, &["document.title='owned'"]);
}
