//! A finished run, taken apart: the JSON report with its sums.

use std::collections::BTreeMap;

use serde_json::Value;

use super::process::{Outcome, Process, brunt};

/// A run whose report was printed as JSON.
#[derive(Debug)]
pub(crate) struct RunReport {
    pub(crate) code: Option<i32>,
    pub(crate) json: Value,
}

/// Requests of all phases: `sent = answered + failed + in_flight`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Requests {
    pub(crate) sent: u64,
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    pub(crate) in_flight: u64,
}

/// Planned arrivals: `planned = sent + skipped + unsent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrivals {
    pub(crate) planned: u64,
    pub(crate) sent: u64,
    /// Dropped, because the queue was full or the time-out over.
    pub(crate) skipped: u64,
    pub(crate) unsent: u64,
}

/// Requests issued in the window: `issued = recorded + failed + censored`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Population {
    pub(crate) issued: u64,
    pub(crate) recorded: u64,
    pub(crate) failed: u64,
    pub(crate) censored: u64,
}

/// Invariants that do not depend on how the machine was scheduled: a run that breaks one of them
/// is wrong on a loaded machine too.
pub(crate) const EXACT: [&str; 10] = ["W1", "W2", "W6", "L2", "L5", "L7", "A4", "A5", "I4", "I5"];

/// Runs the binary with the blank-separated `words` and takes its JSON report.
pub(crate) fn run(words: &str) -> RunReport {
    RunReport::of(brunt(&format!("--format json {words}")))
}

/// Starts a run with the blank-separated `words` whose report is JSON.
pub(crate) fn start_run(words: &str) -> Process {
    super::process::start(&format!("--format json {words}"))
}

impl RunReport {
    /// Reads what a run with `--format json` printed, and checks what holds for every run.
    pub(crate) fn of(outcome: Outcome) -> Self {
        let messages = outcome.messages();
        let is_interrupted = outcome.code == Some(130);
        let mut others = messages.lines();
        // After an interrupt, a loaded machine may let replies be waited for.
        let other = others.find(|line| !is_interrupted || !line.contains("a second signal ends"));
        assert_eq!(other, None, "standard error of a run with a report");
        Self::read(outcome.code, &outcome.stdout)
    }

    /// Reads the text of a report of a run that a signal ended, and checks what holds for every
    /// run.
    pub(crate) fn interrupted(text: &str) -> Self {
        Self::read(Some(130), text)
    }

    fn read(code: Option<i32>, text: &str) -> Self {
        let json = serde_json::from_str(text);
        let json = json.unwrap_or_else(|error| panic!("no JSON report ({error}): {text:?}"));
        let report = Self { code, json };
        report.check();
        report
    }

    fn check(&self) {
        let report = self;
        let broken = report.broken();
        for id in EXACT {
            let finding = report.finding(id);
            assert!(!broken.contains(&id.to_owned()), "{finding}");
        }
        let verdict = report.at("/summary/verdict/name");
        let succeeded = verdict != "no_success" && verdict != "server_failed";
        let expected = match (report.flag("/agents/0/interrupted"), broken.is_empty()) {
            (true, _) => 130,
            (false, true) if succeeded => 0,
            (false, true) => 1,
            (false, false) => 3,
        };
        assert_eq!(report.code, Some(expected), "broken: {broken:?}");
    }

    /// The value at a JSON pointer.
    pub(crate) fn at(&self, pointer: &str) -> &Value {
        self.json
            .pointer(pointer)
            .unwrap_or_else(|| panic!("the report has no {pointer}"))
    }

    /// The whole number at a JSON pointer.
    pub(crate) fn number(&self, pointer: &str) -> u64 {
        let value = self.at(pointer);
        value
            .as_u64()
            .unwrap_or_else(|| panic!("{pointer} is {value}"))
    }

    /// The truth value at a JSON pointer.
    pub(crate) fn flag(&self, pointer: &str) -> bool {
        self.at(pointer)
            .as_bool()
            .unwrap_or_else(|| panic!("{pointer} is no truth value"))
    }

    /// An instant of the run from the start of the process, by its edge's name.
    pub(crate) fn edge_ns(&self, name: &str) -> u64 {
        let edge_ns = self.instant(&format!("/agents/0/clock/edges/{name}/ns"));
        let start_ns = self.instant("/agents/0/clock/process_start_ns");
        u64::try_from(edge_ns - start_ns).expect("nothing is before the start")
    }

    /// An instant from the start of the window.
    pub(crate) fn instant(&self, pointer: &str) -> i64 {
        self.at(pointer)
            .as_i64()
            .unwrap_or_else(|| panic!("{pointer} is not an instant"))
    }

    /// Names of the broken invariants.
    pub(crate) fn broken(&self) -> Vec<String> {
        let names = self.at("/summary/broken").as_array().expect("a list");
        names
            .iter()
            .map(|name| name.as_str().expect("a name").to_owned())
            .collect()
    }

    /// What was found of one invariant.
    pub(crate) fn finding(&self, id: &str) -> &Value {
        self.at("/summary/findings")
            .as_array()
            .and_then(|findings| findings.iter().find(|finding| finding["id"] == id))
            .unwrap_or_else(|| panic!("no finding {id}"))
    }

    /// Requests of all phases and workers, added up from the counters and not from the summary.
    pub(crate) fn requests(&self) -> Requests {
        let workers = self.at("/agents/0/workers").as_array().expect("a list");
        let in_flight = |worker: &Value| worker["in_flight_at_end"].as_u64().expect("a count");
        let requests = Requests {
            sent: self.total("requests_sent"),
            answered: self.by_name("replies").values().sum(),
            failed: self
                .failures()
                .iter()
                .filter(|(kind, _)| is_of_request(kind))
                .map(|(_, count)| count)
                .sum(),
            in_flight: workers.iter().map(in_flight).sum(),
        };
        let ended = requests.answered + requests.failed;
        assert_eq!(requests.sent, ended + requests.in_flight, "{requests:?}");
        for (name, count) in [
            ("sent", requests.sent),
            ("answered", requests.answered),
            ("failed", requests.failed),
            ("in_flight", requests.in_flight),
        ] {
            let stated = self.number(&format!("/summary/all_phases/{name}"));
            assert_eq!(stated, count, "{name} of the summary and of the counters");
        }
        requests
    }

    /// Arrivals planned in the window.
    pub(crate) fn arrivals(&self) -> Arrivals {
        self.arrivals_of("arrivals")
    }

    /// Arrivals of all phases.
    pub(crate) fn arrivals_all(&self) -> Arrivals {
        self.arrivals_of("arrivals_all")
    }

    fn arrivals_of(&self, name: &str) -> Arrivals {
        let sum = |field: &str| self.over_workers(&format!("/{name}/{field}"));
        let arrivals = Arrivals {
            planned: sum("planned"),
            sent: sum("sent"),
            skipped: sum("skipped_full") + sum("skipped_late"),
            unsent: sum("unsent"),
        };
        let others = arrivals.skipped + arrivals.unsent;
        assert_eq!(arrivals.planned, arrivals.sent + others, "{arrivals:?}");
        arrivals
    }

    /// The outcome of the requests issued in the window.
    pub(crate) fn population(&self) -> Population {
        let sum = |field: &str| self.over_workers(&format!("/population/{field}"));
        let population = Population {
            issued: sum("issued"),
            recorded: sum("recorded"),
            failed: sum("failed"),
            censored: sum("censored"),
        };
        let others = population.failed + population.censored;
        assert_eq!(
            population.issued,
            population.recorded + others,
            "{population:?}"
        );
        population
    }

    /// A number that every worker has, by its JSON pointer there, added up.
    fn over_workers(&self, pointer: &str) -> u64 {
        let workers = self.at("/agents/0/workers").as_array().expect("a list");
        let of = |worker: &Value| worker.pointer(pointer).and_then(Value::as_u64);
        workers
            .iter()
            .map(|worker| of(worker).unwrap_or_else(|| panic!("no worker{pointer}")))
            .sum()
    }

    /// Failures of all phases and workers by kind.
    pub(crate) fn failures(&self) -> BTreeMap<String, u64> {
        self.by_name("failures")
    }

    /// Replies of all phases and workers by status.
    pub(crate) fn statuses(&self) -> BTreeMap<String, u64> {
        self.by_name("replies")
    }

    /// One counter, all phases and workers.
    pub(crate) fn total(&self, counter: &str) -> u64 {
        self.tallies()
            .map(|tally| tally[counter].as_u64().expect("a count"))
            .sum()
    }

    /// The same of a counter that is left out where it is 0.
    pub(crate) fn total_if_any(&self, counter: &str) -> u64 {
        self.tallies()
            .filter_map(|tally| tally[counter].as_u64())
            .sum()
    }

    fn by_name(&self, counter: &str) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for tally in self.tallies() {
            for (name, count) in tally[counter].as_object().expect("counts by name") {
                *sums.entry(name.clone()).or_default() += count.as_u64().expect("a count");
            }
        }
        sums
    }

    fn tallies(&self) -> impl Iterator<Item = &Value> {
        let workers = self.at("/agents/0/workers").as_array().expect("a list");
        let phases = ["before", "measure", "after"];
        workers
            .iter()
            .flat_map(move |worker| phases.map(|phase| &worker["tallies"][phase]))
    }
}

fn is_of_request(kind: &str) -> bool {
    let of_connection = [
        "handshake_cut",
        "handshake_timed_out",
        "tls_alert",
        "tls_certificate",
        "tls_failed",
        "other_protocol",
        "unexpected_bytes",
        "idle_reset",
        "upgrade_refused",
        "quic_version",
        "quic_refused",
        "quic_failed",
    ];
    !kind.starts_with("connect_") && !of_connection.contains(&kind)
}
