//! `brunt sweep`: values, reports, and what is left of a sweep that was cut short.

use std::fs;

use crate::support::process::{Process, brunt, start, success};
use crate::support::serve::Serve;
use crate::support::stored::Stored;

#[test]
fn a_server_that_waits_scales_with_its_connections() {
    let server = Serve::start();
    let files = Stored::new();
    let file = files.path("sweep.json");
    let outcome = success(&format!(
        "sweep -t 1 -c 1,4 --rounds 6 -d 100ms --warmup 20ms --seed 3 -o {} {}",
        file,
        server.url("/delay/5ms")
    ));
    outcome.assert_prints(&["connections 1 to 4, 2 values"]);
    let sweep = files.read("sweep.json");
    assert_eq!(sweep["kind"], "sweep");
    assert_eq!(sweep["format"], 2);
    assert_eq!(sweep["plan"]["seed"], 3);
    assert_eq!(sweep["rounds"].as_array().expect("a list").len(), 12);
    assert_eq!(sweep["summary"]["complete"], true);
    let points = sweep["summary"]["points"].as_array().expect("a list");
    let median = |place: usize| points[place]["successes_per_s"]["median"].as_f64();
    let rate = |place| median(place).expect("a rate");
    // Four connections have four times the rate of one, but for what a busy machine does.
    let (low, high) = (rate(0), rate(1));
    assert!((1.5..8.0).contains(&(high / low)), "{low} {high}");
    let low = &points[0]["successes_per_s"]["low"];
    assert!(low.is_number(), "{}", points[0]);
    // Each round has an order of its own.
    let values = sweep["rounds"].as_array().expect("a list").iter();
    let values: Vec<_> = values.map(|round| round["value"].as_f64()).collect();
    let rounds: Vec<_> = values.chunks(2).collect();
    assert!(rounds.iter().any(|round| round != &rounds[0]), "{values:?}");
    let refused = brunt(&format!("report --objective errors=0 {}", file));
    refused.assert_says(&["about a single run"]);
}

#[test]
fn every_setting_can_be_varied() {
    let server = Serve::start();
    let files = Stored::new();
    let file = files.path("sweep.csv");
    for (options, name, values) in [
        ("-r 100..400:x2", "rate_per_s", 3),
        ("-t 1,2 -c 8 --oversubscribe", "workers", 2),
        ("--streams 1,2", "streams", 2),
        ("--body-size 0,100,1k", "body_bytes", 3),
        ("-n 10,20 -c 2", "requests", 2),
        ("--vary connections=1,3", "connections", 2),
    ] {
        success(&format!(
            "sweep {options} --rounds 1 -d 100ms --warmup 50ms --fixed-order -o {} {}",
            file,
            server.url("/")
        ));
        let table = files.text("sweep.csv");
        let mut lines = table.lines();
        let head = lines.next().expect("a header");
        let begin = format!("{name},rounds,");
        assert!(head.starts_with(&begin), "{options}: {head}");
        assert_eq!(lines.count(), values, "{options}: {table}");
    }
}

#[test]
fn an_interrupt_leaves_a_report() {
    let server = Serve::start();
    let files = Stored::new();
    let file = files.path("sweep.json");
    let running = start(&format!(
        "sweep -q -t 1 -c 1..8:x2 --rounds 100 -d 150ms --warmup 50ms -o {} {}",
        file,
        server.url("/delay/10ms")
    ));
    // The warm-up makes some 200 requests, and a round 280 at most.
    server.wait_for_requests(1_000);
    running.wait_interrupted().exits(130);
    let sweep = files.read("sweep.json");
    assert_eq!(sweep["summary"]["complete"], false);
    let rounds = sweep["rounds"].as_array().expect("a list").len();
    assert!((1..400).contains(&rounds), "{rounds}");
}

#[test]
fn gnuplot_draws_the_table_by_the_recipe() {
    let files = Stored::new();
    let recipe = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scaling.gnuplot");
    let stored = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/corpus/stored_run/sweep"
    );
    success(&format!(
        "report -q -o {} {stored}",
        files.path("scaling.csv")
    ));
    let mut command = std::process::Command::new("gnuplot");
    command.arg(recipe).current_dir(files.place(""));
    let outcome = Process::start(command).wait().exits(0);
    // It warns where a column is missing, or has no number.
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("", ""));
    let image = fs::read(files.place("scaling.png")).expect("it was drawn");
    assert!(image.starts_with(b"\x89PNG\r\n"), "{:?}", &image[..8]);
    let side = |at: usize| u32::from_be_bytes(image[at..at + 4].try_into().expect("four bytes"));
    assert_eq!((side(16), side(20)), (1_000, 600));
    assert!(image.len() > 8_000, "curves and labels: {}", image.len());
}
