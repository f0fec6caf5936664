//! `brunt merge`: two runs that loaded a server at once become one; what cannot be merged is
//! refused by name.

use std::num::NonZeroU32;
use std::path::Path;

use brunt_load::{Part, Plan};
use serde_json::{Value, json};

use crate::support::process::{Outcome, brunt_with, refused, start};
use crate::support::serve::Serve;
use crate::support::simulated::{at_rate, plan, simulate, with_method};
use crate::support::stored::{Stored, assert_exact, number};

impl Stored {
    /// Stores a simulated run, which takes no time.
    fn simulate(&self, name: &str, plan: Plan) -> Value {
        self.simulate_part(name, plan, None)
    }

    /// Stores a simulated run of a part of a plan.
    fn simulate_part(&self, name: &str, plan: Plan, part: Option<Part>) -> Value {
        simulate(plan, part, &self.place(name));
        self.read(name)
    }

    fn write(&self, name: &str, run: &Value) {
        std::fs::write(self.place(name), run.to_string()).expect("the directory is ours");
    }

    fn merge(&self, names: &[&str], options: &[&str]) -> Outcome {
        let paths: Vec<String> = names.iter().map(|name| self.path(name)).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        brunt_with(&[&["merge"], options, &paths].concat())
    }

    /// Checks that these are refused with all of `words`, and nothing is left behind.
    fn refused(&self, names: &[&str], words: &[&str]) {
        let output = self.path("refused.json");
        let outcome = self.merge(names, &["-o", &output]);
        assert_eq!(outcome.code, Some(2), "{outcome:?}");
        assert_eq!(outcome.stdout, "", "{outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1, "{outcome:?}");
        for word in words {
            assert!(outcome.stderr.contains(word), "{word:?}: {outcome:?}");
        }
        assert!(!Path::new(&output).exists(), "{words:?}");
    }
}

fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("at least one")
}

/// A short load of so many connections.
fn load(connections: u32) -> Plan {
    by(connections, 2)
}

fn by(connections: u32, workers: u32) -> Plan {
    plan("http://simulated/", [connections, workers], [50, 500])
}

#[test]
fn two_runs_at_once_are_one_load() {
    let server = Serve::start();
    let runs = Stored::new();
    let started = [("a.json", 3), ("b.json", 5)].map(|(name, connections)| {
        let path = runs.path(name);
        let url = server.url("/delay/2ms");
        start(&format!(
            "-c {connections} -t 1 --oversubscribe -d 2s --warmup 300ms -q -o {path} {url}"
        ))
    });
    for process in started {
        let outcome = process.wait();
        // A busy machine may spoil a run, and it is merged all the same.
        assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:?}");
    }
    let parts = ["a.json", "b.json"].map(|name| runs.read(name));
    let sum = |pointer: &str| parts.iter().map(|run| number(run, pointer)).sum::<u64>();
    let merged = runs.path("merged.json");
    let outcome = runs.merge(&["a.json", "b.json"], &["-o", &merged]);
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:?}");
    let run = runs.read("merged.json");
    assert_eq!(number(&run, "/plan/connections"), 8);
    assert_eq!(number(&run, "/plan/workers"), 2);
    assert_eq!(run["agents"].as_array().map(Vec::len), Some(2));
    for pointer in [
        "/latencies/response/count",
        "/latencies/connect/count",
        "/summary/requests/issued",
        "/summary/replies/successes",
        "/summary/all_phases/sent",
        "/summary/all_phases/connections_opened",
    ] {
        assert_eq!(number(&run, pointer), sum(pointer), "{pointer}");
    }
    assert_eq!(
        server.settled().requests,
        number(&run, "/summary/all_phases/sent")
    );
    let broken = run["summary"]["broken"].as_array().expect("a list");
    assert_exact(&run);
    // By wall time both are two seconds within the same ones, unless the machine is very busy.
    let share = run["summary"]["windows_overlap_share"].as_f64();
    assert!(share.is_some_and(|share| (0.0..=1.0).contains(&share)));
    if broken.is_empty() && share >= Some(0.9) {
        let rates = parts
            .iter()
            .map(|run| run["summary"]["successes_per_s"].as_f64());
        let rates: Option<f64> = rates.sum();
        let rate = run["summary"]["successes_per_s"].as_f64();
        let off = rate
            .zip(rates)
            .map(|(rate, rates)| (rate / rates - 1.0).abs());
        assert!(off.is_some_and(|off| off < 1e-9), "{rate:?} {rates:?}");
        outcome.assert_prints(&["one load: rates are sums"]);
    }
    // The merged run is a stored run like any other, and of no use to count one of them again.
    let again = brunt_with(&["report", &merged]);
    assert_eq!(again.code, outcome.code, "{again:?}");
    assert_eq!(again.stdout, outcome.stdout);
    runs.refused(&["merged.json", "a.json"], &["hold the same run"]);
}

#[test]
fn parts_of_a_plan_are_the_run_of_it() {
    let runs = Stored::new();
    let plan = || at_rate(by(10, 4), 3_000.0);
    let part = |index, parts| Part::nth(index, many(parts), many(4));
    for plan in [by(10, 4), plan()] {
        let whole = runs.simulate("whole.json", plan.clone());
        let names = ["1.json", "2.json", "3.json"];
        for (index, name) in (0..).zip(names) {
            let part = runs.simulate_part(name, plan.clone(), part(index, 3));
            assert_eq!(number(&part, "/part_of/connections"), 10);
        }
        let merged = runs.path("merged.json");
        let outcome = runs.merge(&["2.json", "3.json", "1.json"], &["-q", "-o", &merged]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let merged = runs.read("merged.json");
        for pointer in ["/latencies", "/plan", "/window_ns"] {
            assert_eq!(merged.pointer(pointer), whole.pointer(pointer), "{pointer}");
        }
        assert!(merged.get("part_of").is_none());
        // Without one of them it is not the plan.
        let outcome = runs.merge(&["1.json", "3.json"], &[]);
        assert_eq!(outcome.code, Some(3), "{outcome:?}");
        assert!(outcome.stdout.contains("without 2"), "{}", outcome.stdout);
    }
    runs.refused(&["merged.json", "1.json"], &["hold the same run"]);
    std::fs::copy(runs.place("1.json"), runs.place("copy.json")).expect("ours");
    runs.refused(&["1.json", "copy.json"], &["hold the same run"]);
    runs.simulate_part("again.json", plan(), part(0, 4));
    runs.refused(&["1.json", "again.json"], &["overlap", "worker 0"]);
}

#[test]
fn parts_with_an_agreed_start_are_one_load() {
    let server = Serve::start();
    let runs = Stored::new();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let start_at = now.expect("after 1970").as_millis() as u64 + 4_000;
    let start_at = format!("{}.{:03}", start_at / 1_000, start_at % 1_000);
    let names = ["1.json", "2.json"];
    let started = [1, 2].map(|number| {
        let path = runs.path(names[number - 1]);
        let url = server.url("/delay/2ms");
        start(&format!(
            "-c 7 -t 3 --oversubscribe -d 2s --warmup 300ms -q -o {path} {url} --part {number}/2 \
             --start-at {start_at}"
        ))
    });
    for process in started {
        let outcome = process.wait();
        // A busy machine may spoil a run, and it is merged all the same.
        assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:?}");
    }
    let merged = runs.path("merged.json");
    let outcome = runs.merge(&names, &["-o", &merged]);
    assert!(matches!(outcome.code, Some(0 | 3)), "{outcome:?}");
    let run = runs.read("merged.json");
    assert_eq!(number(&run, "/plan/connections"), 7);
    assert_eq!(number(&run, "/plan/workers"), 3);
    assert_eq!(number(&run, "/window_ns"), 2_000_000_000);
    assert_eq!(
        server.settled().requests,
        number(&run, "/summary/all_phases/sent")
    );
    let starts = ["0", "1"].map(|agent| {
        let pointer = format!("/agents/{agent}/clock/window_start_unix_ms");
        number(&run, &pointer)
    });
    assert!(starts[0].abs_diff(starts[1]) <= 1, "{starts:?}");
    assert_exact(&run);
}

#[test]
fn a_part_that_is_not_whole_is_refused() {
    let server = Serve::start();
    let url = server.url("/");
    let missed = brunt_with(&[
        "--part",
        "1/2",
        "-t",
        "2",
        "--start-at",
        "1",
        "--oversubscribe",
        &url,
    ]);
    refused(&missed, "start later");
}

#[test]
fn what_cannot_be_merged_is_said() {
    let runs = Stored::new();
    let first = runs.simulate("a.json", load(4));
    runs.simulate("b.json", load(5));
    runs.refused(&["a.json", "a.json"], &["a.json is given twice"]);
    runs.write("copy.json", &first);
    runs.refused(
        &["a.json", "copy.json"],
        &["a.json", "copy.json", "the same run"],
    );
    runs.simulate("other.json", with_method(load(5), "PUT"));
    let names = ["a.json", "other.json"];
    let words = ["the method of plan.requests", "GET", "PUT"];
    runs.refused(&names, &[&words, &names[..]].concat());
    let mut old = first.clone();
    old["format"] = json!(2);
    runs.write("old.json", &old);
    let words = "stored in format 2 of an older version, which this version does not read; run it \
                 again";
    runs.refused(&["b.json", "old.json"], &["old.json", words]);
    runs.write("garbage.json", &json!([1]));
    runs.refused(
        &["garbage.json", "b.json"],
        &["garbage.json", "not a stored run"],
    );
    runs.refused(&["b.json", "missing.json"], &["missing.json"]);
}

#[test]
fn a_query_stays_secret() {
    let runs = Stored::new();
    let mut first = runs.simulate("a.json", load(4));
    let mut second = runs.simulate("b.json", load(5));
    first["plan"]["target"]["url"] = json!("http://host/?token=hush");
    second["plan"]["target"]["url"] = json!("http://host/?token=hash");
    runs.write("a.json", &first);
    runs.write("b.json", &second);
    let outcome = runs.merge(&["a.json", "b.json"], &["--redact"]);
    refused(&outcome, "plan.target.url is not the same");
    assert!(!outcome.stderr.contains("hush"), "{outcome:?}");
    second["plan"]["target"]["url"] = first["plan"]["target"]["url"].clone();
    runs.write("b.json", &second);
    let outcome = runs.merge(&["a.json", "b.json"], &["--redact", "--format", "json"]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(!outcome.stdout.contains("hush"), "{outcome:?}");
}
