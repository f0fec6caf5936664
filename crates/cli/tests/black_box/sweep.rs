//! `brunt sweep`: values, reports, and what is left of a sweep that was cut short.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::process::{Process, brunt, start};
use crate::support::serve::Serve;
use crate::support::wait_for;

fn json(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("it was written");
    serde_json::from_str(&text).expect("JSON")
}

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

#[test]
fn a_simulated_server_scales_as_it_is_known_to() {
    let directory = directory();
    let file = directory.path().join("sweep.json");
    // As a process leaves it that was killed before its first round.
    fs::write(directory.path().join("sweep.json.journal"), "").expect("the directory is ours");
    let outcome = brunt(&format!(
        "sweep --backend sim -t 1 -c 1..64:x2 --rounds 6 -d 200ms --warmup 100ms --seed 3 -o {} \
         http://simulated/",
        file.display()
    ));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains("connections 1 to 64, 7 values"),
        "{}",
        outcome.stdout
    );
    let sweep = json(&file);
    assert_eq!(
        (&sweep["kind"], &sweep["format"]),
        (&"sweep".into(), &2.into())
    );
    assert_eq!(sweep["plan"]["seed"], 3);
    assert_eq!(sweep["rounds"].as_array().expect("a list").len(), 42);
    assert_eq!(sweep["summary"]["complete"], true);
    let points = sweep["summary"]["points"].as_array().expect("a list");
    let rate = |place: usize| {
        points[place]["successes_per_s"]["median"]
            .as_f64()
            .expect("a rate")
    };
    // Nothing limits the simulated server: 64 connections have 64 times the rate of one.
    assert!(
        (rate(6) / rate(0) / 64.0 - 1.0).abs() < 0.05,
        "{} {}",
        rate(0),
        rate(6)
    );
    assert!(
        points[0]["successes_per_s"]["low"].is_number(),
        "{}",
        points[0]
    );
    // Each round has an order of its own.
    let values = sweep["rounds"].as_array().expect("a list").iter();
    let values: Vec<f64> = values
        .map(|round| round["value"].as_f64().expect("one"))
        .collect();
    assert_ne!(values[..7], values[7..14]);
    // The journal is gone when the report is there.
    assert!(!directory.path().join("sweep.json.journal").exists());
    // Every form from the stored one.
    for (form, words) in [
        ("text", "knee        none"),
        ("csv", "connections,rounds,verdict"),
        ("markdown", "### brunt sweep"),
    ] {
        let printed = brunt(&format!("report --format {form} {}", file.display()));
        assert_eq!(printed.code, Some(0), "{}", printed.stderr);
        assert!(printed.stdout.contains(words), "{form}: {}", printed.stdout);
    }
    let unlogged = directory.path().join("requests.csv");
    let refused = brunt(&format!(
        "report --request-log {} {}",
        unlogged.display(),
        file.display()
    ));
    assert_eq!((refused.code, unlogged.exists()), (Some(2), false));
    let refused = brunt(&format!("report --objective errors=0 {}", file.display()));
    assert!(
        refused.stderr.contains("about a single run"),
        "{}",
        refused.stderr
    );
}

#[test]
fn every_setting_can_be_varied() {
    let directory = directory();
    let file = directory.path().join("sweep.csv");
    for (options, name, values) in [
        ("-r 100..400:x2", "rate_per_s", 3),
        ("-t 1,2 -c 8 --oversubscribe", "workers", 2),
        ("--streams 1,2", "streams", 2),
        ("--body-size 0,100,1k", "body_bytes", 3),
        ("-n 10,20 -c 2", "requests", 2),
        ("--vary connections=1,3", "connections", 2),
    ] {
        let outcome = brunt(&format!(
            "sweep --backend sim {options} --rounds 1 -d 100ms --warmup 50ms --fixed-order \
             -o {} http://simulated/",
            file.display()
        ));
        assert_eq!(outcome.code, Some(0), "{options}: {}", outcome.stderr);
        let table = fs::read_to_string(&file).expect("it was written");
        let mut lines = table.lines();
        let head = lines.next().expect("a header");
        assert!(
            head.starts_with(&format!("{name},rounds,")),
            "{options}: {head}"
        );
        assert_eq!(lines.count(), values, "{options}: {table}");
    }
}

#[test]
fn what_was_measured_before_a_kill_is_kept() {
    let server = Serve::start();
    let directory = directory();
    let file = directory.path().join("sweep.json");
    let journal = directory.path().join("sweep.json.journal");
    let command = format!(
        "sweep -q -t 1 -c 1..8:x2 --rounds 3 -d 150ms --warmup 50ms --round-warmup 20ms -o {} {}",
        file.display(),
        server.url("/")
    );
    let killed = start(&command);
    let lines = || fs::read_to_string(&journal).map_or(0, |text| text.lines().count());
    wait_for("three rounds are on disk", || (lines() >= 4).then_some(()));
    killed.kill();
    let kept = fs::read_to_string(&journal).expect("it is there");
    // A line that was being written is as if it had not been begun.
    fs::write(&journal, format!("{kept}{{\"value\": 4.0, \"rou")).expect("it can be written");
    let anew = brunt(&command);
    assert_eq!(anew.code, Some(2));
    assert!(anew.stderr.contains("did not end"), "{}", anew.stderr);
    for (other, words) in [
        ("--rounds 3", "--rounds 4"),
        ("-c 1..8:x2", "-c 1..16:x2"),
        ("-d 150ms", "-d 100ms"),
    ] {
        let other = command.replace(other, words);
        let refused = brunt(&format!("{other} --resume {}", journal.display()));
        assert_eq!(refused.code, Some(2), "{other}");
        assert!(
            refused.stderr.contains("holds another sweep"),
            "{}",
            refused.stderr
        );
    }
    // The name of the report stands for its journal, too.
    let resumed = brunt(&format!("{command} --resume {}", file.display()));
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    let sweep = json(&file);
    let rounds = sweep["rounds"].as_array().expect("a list");
    assert_eq!(
        (rounds.len(), &sweep["summary"]["complete"]),
        (12, &true.into())
    );
    let mut kept = kept.lines();
    kept.next().expect("the head");
    for (line, round) in kept.zip(rounds) {
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(line, *round, "nothing is lost or changed");
    }
    assert!(!journal.exists());
}

#[test]
fn an_interrupt_leaves_a_report_and_a_journal() {
    let server = Serve::start();
    let directory = directory();
    let file = directory.path().join("sweep.json");
    let journal = directory.path().join("sweep.json.journal");
    let running = start(&format!(
        "sweep -q -t 1 -c 1..8:x2 --rounds 100 -d 150ms --warmup 50ms -o {} {}",
        file.display(),
        server.url("/")
    ));
    let lines = || fs::read_to_string(&journal).map_or(0, |text| text.lines().count());
    wait_for("two rounds are on disk", || (lines() >= 3).then_some(()));
    let outcome = running.wait_interrupted();
    assert_eq!(outcome.code, Some(130), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("--resume"), "{}", outcome.stderr);
    let sweep = json(&file);
    assert_eq!(sweep["summary"]["complete"], false);
    let rounds = sweep["rounds"].as_array().expect("a list").len();
    assert_eq!(rounds + 1, lines());
}

#[test]
fn what_is_no_sweep_is_refused() {
    for (words, reason) in [
        ("http://a/", "nothing is varied"),
        ("-c 1..10 http://a/", "no step"),
        ("-c 1,2 -r 1,2 http://a/", "one setting"),
        ("-c 1,2", "give the URL"),
        ("-c 1,2 --diagnose http://a/", "--diagnose"),
        ("-c 1,2 http://a/ http://b/", "one server"),
        ("-c 1,2 --hgrm x http://a/", "--hgrm"),
        ("-c 1,2 --request-log x http://a/", "--request-log"),
        ("-c 1,2 --sessions x http://a/", "--sessions"),
        (
            "-c 1,2 --resume /nonexistent http://a/",
            "cannot open the journal",
        ),
        ("--preset slow http://a/", "classic"),
    ] {
        let outcome = brunt(&format!("sweep {words}"));
        assert_eq!(outcome.code, Some(2), "{words}");
        assert!(
            outcome.stderr.contains(reason),
            "{words}: {}",
            outcome.stderr
        );
    }
    let schema = brunt("sweep --schema");
    assert!(schema.stdout.contains("StoredSweep"), "{}", schema.stdout);
}

#[test]
fn gnuplot_draws_the_table_by_the_recipe() {
    let directory = directory();
    let recipe = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scaling.gnuplot");
    // Without a value in some columns: p99 needs more replies than the least connections have.
    let outcome = brunt(&format!(
        "sweep --backend sim -t 1 -c 1..64:x4 --rounds 2 -d 100ms --warmup 20ms -q -o {} \
         http://simulated/",
        directory.path().join("scaling.csv").display()
    ));
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let mut command = std::process::Command::new("gnuplot");
    command.arg(recipe).current_dir(directory.path());
    let outcome = Process::start(command).wait();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    // It warns where a column is missing, or has no number.
    assert_eq!((outcome.stdout.as_str(), outcome.stderr.as_str()), ("", ""));
    let image = fs::read(directory.path().join("scaling.png")).expect("it was drawn");
    assert!(image.starts_with(b"\x89PNG\r\n"), "{:?}", &image[..8]);
    let side = |at: usize| u32::from_be_bytes(image[at..at + 4].try_into().expect("four bytes"));
    assert_eq!((side(16), side(20)), (1_000, 600));
    assert!(image.len() > 8_000, "curves and labels: {}", image.len());
}

#[test]
fn a_link_in_the_place_of_a_journal_is_not_followed() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let elsewhere = directory.path().join("elsewhere");
    let report = directory.path().join("sweep.json");
    let link = directory.path().join("sweep.json.journal");
    std::os::unix::fs::symlink(&elsewhere, &link).expect("the directory is ours");
    let line = format!(
        "sweep --backend sim -c 1,2 --rounds 1 -d 50ms --warmup 0s -o {} http://h/",
        report.display()
    );
    // One that leads nowhere, and one that leads to a file.
    for is_there in [false, true] {
        if is_there {
            fs::write(&elsewhere, "").expect("the directory is ours");
        }
        let outcome = brunt(&line);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        let said = "sweep.json.journal is a symbolic link";
        assert!(outcome.stderr.contains(said), "{outcome:?}");
        assert_eq!(elsewhere.exists(), is_there);
    }
    assert!(!report.exists());
}
