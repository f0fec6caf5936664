//! `brunt merge`: two runs that loaded a server at once become one; what cannot be merged is
//! refused by name.

use std::num::NonZeroU32;
use std::path::Path;

use brunt_load::{Part, Plan};
use serde_json::{Value, json};

use crate::support::process::{Outcome, assert_refused, brunt, brunt_with, refused, start};
use crate::support::serve::Serve;
use crate::support::simulated::{at_rate, plan, simulate, with_method};
use crate::support::stored::{Stored, assert_exact, number};

/// Of two runs at once.
const NAMES: [&str; 2] = ["a.json", "b.json"];

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

    fn merge(&self, names: &[&str], options: &[&str]) -> Outcome {
        let paths: Vec<String> = names.iter().map(|name| self.path(name)).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        brunt_with(&[&["merge"], options, &paths].concat())
    }

    /// Makes two runs at once with these options, and merges them. The server has counted what they
    /// say.
    fn at_once(&self, server: &Serve, options: [&str; 2]) -> Outcome {
        let made = [0, 1].map(|place| {
            let (path, url) = (self.path(NAMES[place]), server.url("/delay/2ms"));
            let load = "--oversubscribe -d 2s --warmup 300ms";
            start(&format!("{} {load} -o {path} {url}", options[place]))
        });
        for process in made {
            process.wait().exits_unless_late(0);
        }
        // A run with a late worker is merged all the same.
        let outcome = self.merge(&NAMES, &["-o", &self.path("merged.json")]);
        let outcome = outcome.exits_unless_late(0);
        let run = self.read("merged.json");
        assert_exact(&run);
        let requests = server.settled().requests;
        assert_eq!(number(&run, "/summary/all_phases/sent"), requests);
        outcome
    }

    /// Checks that these are refused with all of `words`, and nothing is left behind.
    fn refused(&self, names: &[&str], words: &[&str]) {
        let output = self.path("refused.json");
        assert_refused(&self.merge(names, &["-o", &output]), words);
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
fn parts_of_a_plan_are_the_run_of_it() {
    let runs = Stored::new();
    let plan = || at_rate(by(10, 4), 3_000.0);
    let part = |index, parts| Part::nth(index, many(parts), many(4));
    for plan in [by(10, 4), plan()] {
        let names = ["1.json", "2.json", "3.json"];
        for (index, name) in (0..).zip(names) {
            let part = runs.simulate_part(name, plan.clone(), part(index, 3));
            assert_eq!(number(&part, "/part_of/connections"), 10);
        }
        let merged = runs.path("merged.json");
        runs.merge(&["2.json", "3.json", "1.json"], &["-q", "-o", &merged])
            .exits(0);
        assert!(runs.read("merged.json").get("part_of").is_none());
        // Without one of them it is not the plan.
        let outcome = runs.merge(&["1.json", "3.json"], &[]).exits(3);
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
    let parts = [1, 2].map(|part| format!("-c 7 -t 3 --part {part}/2 --start-at {start_at}"));
    runs.at_once(&server, [&parts[0], &parts[1]]);
    let run = runs.read("merged.json");
    assert_eq!(number(&run, "/plan/load/connections"), 7);
    assert_eq!(number(&run, "/plan/workers/count"), 3);
    assert_eq!(number(&run, "/window_ns"), 2_000_000_000);
    let starts = ["0", "1"].map(|agent| {
        let pointer = format!("/agents/{agent}/clock/window_start_unix_ms");
        number(&run, &pointer)
    });
    assert!(starts[0].abs_diff(starts[1]) <= 1, "{starts:?}");
}

#[test]
fn a_part_that_is_not_whole_is_refused() {
    let server = Serve::start();
    let url = server.url("/");
    let part = "--part 1/2 -t 2 --start-at 1 --oversubscribe";
    refused(&brunt(&format!("{part} {url}")), "start later");
}

#[test]
fn what_cannot_be_merged_is_said() {
    let runs = Stored::new();
    let first = runs.simulate("a.json", load(4));
    runs.simulate("b.json", load(5));
    runs.write("copy.json", first.to_string());
    runs.refused(
        &["a.json", "copy.json"],
        &["a.json", "copy.json", "the same run"],
    );
    runs.simulate("other.json", with_method(load(5), "PUT"));
    let names = ["a.json", "other.json"];
    let words = ["plan.traffic.requests.requests.method", "GET", "PUT"];
    runs.refused(&names, &[&words, &names[..]].concat());
    let mut old = first.clone();
    old["format"] = json!(2);
    runs.write("old.json", old.to_string());
    let words = "stored in format 2 of an older version, which this version does not read; run it \
                 again";
    runs.refused(&["b.json", "old.json"], &["old.json", words]);
    runs.write("garbage.json", "[1]");
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
    runs.write("a.json", first.to_string());
    runs.write("b.json", second.to_string());
    let outcome = runs.merge(&["a.json", "b.json"], &["--redact"]);
    refused(&outcome, "plan.target.url is not the same");
    assert!(!outcome.stderr.contains("hush"), "{outcome:?}");
    second["plan"]["target"]["url"] = first["plan"]["target"]["url"].clone();
    runs.write("b.json", second.to_string());
    let outcome = runs
        .merge(&["a.json", "b.json"], &["--redact", "--format", "json"])
        .exits(0);
    assert!(!outcome.stdout.contains("hush"), "{outcome:?}");
}
