//! Runs that were broken on purpose are refused, with the invariant named: real stored runs, of
//! which one thing was changed.

use std::path::Path;
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::NamedTempFile;

use crate::output::assert_plain;
use crate::support::process::{Outcome, brunt_with};
use crate::support::run::{RunReport, run};
use crate::support::serve::Serve;

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// A machine that is busy with other things may spoil a run: as often is one made.
const ATTEMPTS: usize = 8;

/// A real run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    Closed,
    Open,
    Sessions,
}

impl Load {
    /// The options of the run.
    fn words(self) -> &'static str {
        match self {
            Self::Closed => "-c 4",
            Self::Open => "-c 4 -r 2000",
            Self::Sessions => "--connection-rate 200 --requests-per-connection 4",
        }
    }

    /// A run of this kind that holds in every respect, as it was stored. Made once.
    fn stored(self) -> &'static Value {
        static RUNS: [OnceLock<Value>; 3] = [const { OnceLock::new() }; 3];
        RUNS[self as usize].get_or_init(|| {
            let server = Serve::start();
            let words = format!(
                "-t 2 --oversubscribe -d 500ms --warmup 100ms {} {}",
                self.words(),
                server.url("/")
            );
            let mut broken = Vec::new();
            for _ in 0..ATTEMPTS {
                let report = run(&words);
                if report.code == Some(0) {
                    return report.json;
                }
                broken.push(report.broken());
            }
            panic!("{self:?}: no run held in {ATTEMPTS} attempts; broken were {broken:?}");
        })
    }
}

/// Invariants that no change of a stored run can break, and why.
const UNBREAKABLE: [(&str, &str); 9] = [
    (
        "F1",
        "the runs here are no parts of a plan; crates/judge breaks it",
    ),
    (
        "F2",
        "the runs here are no parts of a plan; crates/judge breaks it",
    ),
    (
        "F3",
        "the runs here are no parts of a plan; crates/judge breaks it",
    ),
    (
        "F4",
        "the runs here are not those of a fleet; crates/judge breaks it",
    ),
    (
        "F5",
        "the runs here are not those of a fleet; crates/judge breaks it",
    ),
    (
        "F8",
        "the runs here are not those of a fleet; crates/judge breaks it",
    ),
    ("L6", "an overloaded run is no broken one: it is flagged"),
    ("I3", "a server may send before it is asked: it is flagged"),
    (
        "T1",
        "it is about streams, of which the runs here have none; crates/judge breaks it",
    ),
];

/// One thing wrong with a stored run.
struct Break {
    /// The invariant that must be named. Others may be too.
    id: &'static str,
    load: Load,
    what: &'static str,
    edit: fn(&mut Value),
}

const fn closed(id: &'static str, what: &'static str, edit: fn(&mut Value)) -> Break {
    Break {
        id,
        load: Load::Closed,
        what,
        edit,
    }
}

const fn open(id: &'static str, what: &'static str, edit: fn(&mut Value)) -> Break {
    Break {
        load: Load::Open,
        ..closed(id, what, edit)
    }
}

const fn sessions(id: &'static str, what: &'static str, edit: fn(&mut Value)) -> Break {
    Break {
        load: Load::Sessions,
        ..closed(id, what, edit)
    }
}

fn at<'a>(run: &'a mut Value, pointer: &str) -> &'a mut Value {
    run.pointer_mut(pointer)
        .unwrap_or_else(|| panic!("a stored run has no {pointer}"))
}

fn number(run: &Value, pointer: &str) -> u64 {
    let value = run.pointer(pointer);
    value
        .and_then(Value::as_u64)
        .unwrap_or_else(|| panic!("no number at {pointer}, but {value:?}"))
}

/// A number that may be below 0: an instant.
fn instant(run: &Value, pointer: &str) -> i64 {
    let value = run.pointer(pointer);
    value
        .and_then(Value::as_i64)
        .unwrap_or_else(|| panic!("no instant at {pointer}, but {value:?}"))
}

fn set(run: &mut Value, pointer: &str, value: impl Into<Value>) {
    *at(run, pointer) = value.into();
}

/// Changes a number.
fn change(run: &mut Value, pointer: &str, to: impl FnOnce(u64) -> u64) {
    let changed = to(number(run, pointer));
    set(run, pointer, changed);
}

/// Changes a number of each worker.
fn of_workers(run: &mut Value, pointer: &str, to: impl Fn(u64) -> u64) {
    for worker in at(run, "/agents/0/workers").as_array_mut().expect("a list") {
        change(worker, pointer, &to);
    }
}

/// Counts one more of what is counted by name.
fn one_more(run: &mut Value, pointer: &str, name: &str) {
    let counts = at(run, pointer).as_object_mut().expect("counts by name");
    let count = counts.get(name).and_then(Value::as_u64).unwrap_or(0);
    counts.insert(name.to_owned(), (count + 1).into());
}

/// The network as an interface of this speed that counted nothing.
fn through_link(run: &mut Value, bits_per_s: u64) {
    let route = json!({
        "kind": "interface", "name": "eth0", "link_bits_per_s": bits_per_s, "was_given": false,
        "received_bytes": 0, "sent_bytes": 0, "dropped_packets": 0,
    });
    let network = json!({ "route": route, "tcp": null, "conntrack": null, "time_wait": null });
    set(run, "/agents/0/evidence/network", network);
}

/// A server that counted this many times the requests that were sent.
fn server_counted(run: &mut Value, times: f64) {
    let sent = number(run, "/summary/all_phases/sent") as f64;
    let count = json!({
        "url": "http://127.0.0.1:1/counters", "path": "requests", "before": 1_000,
        "after": 1_000 + (sent * times) as u64, "own_reads": 2,
    });
    set(run, "/agents/0/evidence/server_count", count);
}

/// What each invariant is there to find.
const BREAKS: &[Break] = &[
    closed("W1", "a worker is ready before it started", |run| {
        let started_ns = instant(run, "/agents/0/workers/0/edges/started/ns");
        set(run, "/agents/0/workers/0/edges/ready/ns", started_ns - 1);
    }),
    closed("W1", "a clock that steps by an hour in drain", |run| {
        change(run, "/agents/0/workers/1/edges/drained/ns", |ns| {
            ns + 3_600 * S
        });
    }),
    closed("W2", "the window starts before measure does", |run| {
        set(run, "/agents/0/clock/edges/measure_start/ns", 50_000_000);
    }),
    closed("W2", "a window of half the length of measure", |run| {
        change(run, "/window_ns", |ns| ns / 2);
    }),
    closed("W2", "measure never began", |run| {
        set(run, "/agents/0/clock/edges/measure_start/ns", Value::Null);
    }),
    closed("W3", "the start of the window was written again", |run| {
        at(run, "/agents/0/clock/edges/measure_start")["rewrites"] = 1.into();
    }),
    closed("W4", "a worker left its window early", |run| {
        change(run, "/agents/0/workers/0/edges/window_end/ns", |ns| {
            ns - 200 * MS
        });
    }),
    sessions("W4", "a worker started late", |run| {
        change(run, "/agents/0/workers/1/edges/window_start/ns", |ns| {
            ns + 200 * MS
        });
    }),
    closed(
        "W5",
        "the sum of the workers' rates is not the rate",
        |run| {
            of_workers(run, "/edges/window_end/ns", |ns| ns - 100 * MS);
        },
    ),
    open("W5", "a reply is counted, and not over time", |run| {
        one_more(run, "/agents/0/workers/0/tallies/measure/replies", "200");
    }),
    closed("W5", "a byte more over time", |run| {
        change(
            run,
            "/agents/0/workers/0/series/points/0/bytes_received",
            |n| n + 1,
        );
    }),
    closed("W6", "a request vanished", |run| {
        change(run, "/agents/0/workers/0/population/issued", |n| n + 1);
    }),
    open("W6", "a reply counted twice", |run| {
        change(run, "/agents/0/workers/0/population/recorded", |n| n + 1);
    }),
    closed("W7", "50 ms are in no phase", |run| {
        change(run, "/agents/0/clock/process_ns", |ns| ns + 50 * MS);
    }),
    closed("W8", "drain took longer than it may", |run| {
        set(run, "/plan/drain_limit_ns", 0);
        let end_ns = number(run, "/agents/0/clock/edges/measure_end/ns") + 200 * MS;
        set(run, "/agents/0/clock/edges/drain_end/ns", end_ns);
        set(run, "/agents/0/clock/edges/finished/ns", end_ns);
        let start_ns = instant(run, "/agents/0/clock/process_start_ns");
        set(
            run,
            "/agents/0/clock/process_ns",
            end_ns.cast_signed() - start_ns,
        );
    }),
    closed("W8", "the planned end is not known", |run| {
        set(
            run,
            "/agents/0/clock/edges/measure_end_planned/ns",
            Value::Null,
        );
    }),
    closed("L1", "half of the connections were open", |run| {
        of_workers(run, "/live/connection_ns", |ns| ns / 2);
    }),
    open("L1", "more connections than were allowed", |run| {
        change(run, "/agents/0/workers/0/live/max", |n| n + 1);
    }),
    open("L2", "an arrival vanished", |run| {
        change(run, "/agents/0/workers/0/arrivals/planned", |n| n + 1);
    }),
    open("L2", "the schedule has twice as many", |run| {
        let planned = number(run, "/summary/arrivals/planned") as f64;
        set(run, "/agents/0/expected_arrivals", planned * 2.0);
    }),
    sessions("L2", "a connection more than arrivals", |run| {
        of_workers(run, "/tallies/measure/connections_opened", |n| 2 * n + 1);
    }),
    open("L5", "what was never sent is in no quantile", |run| {
        for counts in ["arrivals", "arrivals_all"] {
            for field in ["planned", "unsent"] {
                change(run, &format!("/agents/0/workers/0/{counts}/{field}"), |n| {
                    n + 1
                });
            }
        }
    }),
    closed("L7", "a time-out before its time", |run| {
        one_more(
            run,
            "/agents/0/workers/0/tallies/measure/failures",
            "timed_out",
        );
    }),
    closed("A3", "a longest response that no bucket holds", |run| {
        change(run, "/latencies/response/max_ns", |ns| ns * 4);
    }),
    closed("A4", "the histogram lost all times to connect", |run| {
        let nobody = at(run, "/latencies/unfinished").clone();
        set(run, "/latencies/connect", nobody);
    }),
    closed("A5", "error replies are among the successes", |run| {
        let successes = at(run, "/latencies/response").take();
        let errors = at(run, "/latencies/response_error").take();
        set(run, "/latencies/response", errors);
        set(run, "/latencies/response_error", successes);
    }),
    closed("S1", "an own share that is in no part", |run| {
        let rests = at(run, "/latencies/split/rest").clone();
        set(run, "/latencies/split/own", rests);
    }),
    closed("S2", "no reply has a time of transfer", |run| {
        let nobody = at(run, "/latencies/unfinished").clone();
        set(run, "/latencies/transfer", nobody);
    }),
    open("S2", "first bytes that are not of the replies", |run| {
        let others = at(run, "/latencies/response").clone();
        set(run, "/latencies/first_byte", others);
    }),
    closed("P1", "a TLS handshake in clear text", |run| {
        change(
            run,
            "/agents/0/workers/0/tallies/before/handshakes_full",
            |n| n + 1,
        );
    }),
    open("P1", "a GOAWAY over HTTP/1.1", |run| {
        change(run, "/agents/0/workers/1/tallies/measure/goaways", |n| {
            n + 1
        });
    }),
    sessions("P1", "a stream reset over HTTP/1.1", |run| {
        one_more(
            run,
            "/agents/0/workers/0/tallies/measure/failures",
            "stream_refused",
        );
    }),
    closed("I1", "more requests in flight than places", |run| {
        of_workers(run, "/in_flight_ns", |ns| ns * 3);
    }),
    closed("I2", "drain ended before the longest response", |run| {
        let sent_ns = instant(run, "/agents/0/workers/0/first_send/ns");
        set(run, "/agents/0/clock/edges/drain_end/ns", sent_ns);
    }),
    closed("I4", "a byte that no reply explains", |run| {
        change(
            run,
            "/agents/0/workers/0/tallies/measure/bytes_received",
            |n| n + 1,
        );
    }),
    open("I4", "overhead in place of a body", |run| {
        change(
            run,
            "/agents/0/workers/0/tallies/measure/overhead_bytes",
            |n| n + 1,
        );
    }),
    closed("I5", "the kernel counted more bytes", |run| {
        change(
            run,
            "/agents/0/workers/0/kernel/kernel_bytes_received",
            |n| n + 1_000,
        );
    }),
    closed("I6", "more payload than the link carries", |run| {
        through_link(run, 1_000);
    }),
    closed("I7", "more CPU time than there was", |run| {
        change(run, "/agents/0/host/cpu_system_ns", |ns| ns + 100_000 * S);
    }),
    closed("I7", "a thread on more than one CPU at a time", |run| {
        let used = json!({
            "interval_ns": 500 * MS, "cpu_user_ns": S, "cpu_system_ns": 0, "spun_ns": 0,
            "run_queue_wait_ns": null, "involuntary_switches": 0,
        });
        set(run, "/agents/0/workers/0/thread", used);
    }),
    closed("I8", "the server counted half of it", |run| {
        server_counted(run, 0.5);
    }),
    open("I8", "the server counted three times as much", |run| {
        server_counted(run, 3.0);
    }),
    closed("I8", "the server's counter went back", |run| {
        server_counted(run, 1.0);
        set(run, "/agents/0/evidence/server_count/before", u64::MAX);
    }),
    closed("R1", "memory like connections times workers", |run| {
        set(run, "/agents/0/host/peak_resident_bytes", 1_u64 << 40);
    }),
    closed("R2", "a worker did not report", |run| {
        change(run, "/plan/workers", |n| n + 1);
        change(run, "/agents/0/share/workers", |n| n + 1);
    }),
    closed("R3", "fewer descriptors than needed", |run| {
        set(run, "/agents/0/limits/descriptors_limit", 0);
    }),
];

/// The stored `run` in a file.
fn file_of(run: &Value) -> NamedTempFile {
    let file = NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), run.to_string()).expect("it is ours");
    file
}

/// `brunt report` of `path` with `options`.
fn report(options: &[&str], path: &Path) -> Outcome {
    let path = path.to_str().expect("a path in UTF-8");
    brunt_with(&[&["report"], options, &[path]].concat())
}

/// Checks that a report refuses the figures of its run, and names `id`.
fn refused(context: &str, id: &str, text: &Outcome, json: RunReport) {
    assert_eq!(text.code, Some(3), "{context}: {text:?}");
    let stdout = &text.stdout;
    let first = stdout.lines().next().expect("a line");
    let names: Vec<_> = first.split(|c: char| !c.is_alphanumeric()).collect();
    assert!(
        names.contains(&"INVALID") && names.contains(&id),
        "{context}: {first}"
    );
    let line = |name: &str| {
        stdout
            .lines()
            .skip_while(|line| name == id && !line.starts_with("checks"))
            .find(|line| line.split_whitespace().next() == Some(name))
            .unwrap_or_else(|| panic!("{context}: no line {name} in {stdout}"))
    };
    assert!(line(id).contains("BROKEN: "), "{context}: {stdout}");
    assert!(
        line("throughput").contains("withheld"),
        "{context}: {stdout}"
    );
    // Before it stands what was asked for.
    let (_, figures) = stdout.split_once("\nthroughput").expect("a line");
    assert!(!figures.contains(" req/s"), "{context}: {stdout}");

    assert_plain(stdout, context);

    assert_eq!(json.code, Some(3), "{context}");
    let broken = json.broken();
    assert!(broken.contains(&id.to_owned()), "{context}: {broken:?}");
    let detail = json.finding(id)["detail"].as_str().expect("words");
    assert!(!detail.is_empty(), "{context}");
    for figure in [
        "successes_per_s",
        "attempts_per_s",
        "bytes_received_per_s",
        "bytes_sent_per_s",
    ] {
        let value = json.at(&format!("/summary/{figure}"));
        assert_eq!(value, &Value::Null, "{context}: {figure}");
        let reason = json.at(&format!("/summary/absent/{figure}"));
        let reason = reason.as_str().expect("a reason");
        assert!(reason.contains(id), "{context}: {figure}: {reason}");
    }
}

/// The JSON report of a run that is broken, without the checks that hold for every good one.
fn json_of(outcome: &Outcome) -> RunReport {
    let json = serde_json::from_str(&outcome.stdout)
        .unwrap_or_else(|error| panic!("no JSON report ({error}): {outcome:?}"));
    RunReport {
        code: outcome.code,
        json,
    }
}

#[test]
fn a_run_that_was_not_changed_is_accepted() {
    for load in [Load::Closed, Load::Open, Load::Sessions] {
        let file = file_of(load.stored());
        let text = report(&[], file.path());
        assert_eq!(text.code, Some(0), "{load:?}: {text:?}");
        assert!(text.stdout.contains(" req/s"), "{load:?}: {text:?}");
        let json = json_of(&report(&["--format", "json"], file.path()));
        assert_eq!((json.code, json.broken()), (Some(0), Vec::new()));
        assert!(json.at("/summary/successes_per_s").is_number());
    }
}

#[test]
fn a_run_that_was_broken_is_refused_with_the_invariant_named() {
    for Break {
        id,
        load,
        what,
        edit,
    } in BREAKS
    {
        let context = format!("{id}, {what}");
        let mut run = load.stored().clone();
        edit(&mut run);
        let file = file_of(&run);
        let text = report(&[], file.path());
        let json = json_of(&report(&["--format", "json"], file.path()));
        refused(&context, id, &text, json);
    }
}

#[test]
fn every_invariant_is_broken_once() {
    let findings = Load::Closed.stored()["summary"]["findings"].as_array();
    for finding in findings.expect("a list") {
        let id = finding["id"].as_str().expect("a name");
        let is_broken = BREAKS.iter().any(|broken| broken.id == id);
        let reason = UNBREAKABLE
            .iter()
            .find(|(unbreakable, _)| *unbreakable == id);
        assert!(
            is_broken != reason.is_some(),
            "{id}: give it a row in BREAKS, or the reason for which no run can break it"
        );
    }
}
