//! Hostile servers: whatever one connection does, the run ends in time, its memory is bounded, its
//! failures have their kind, and the connections beside it are answered.

mod http1;
mod http2;
mod http3;
mod tls;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::hostile::{Hostile, Serve, Step};
use crate::support::process::brunt;
use crate::support::run::RunReport;

/// Most memory that a run may take, bytes: far above what these runs need.
const MEMORY_BYTES_MAX: u64 = 64 << 20;
/// Least number of answers that the quiet connections get, on a machine however loaded.
const ANSWERED_MIN: u64 = 6;
/// Longest time that a run may take. It is planned to take a second or two.
const TIME_MAX: Duration = Duration::from_secs(25);
/// How much later than planned a drain may end, nanoseconds.
const LATE_NS_MAX: u64 = 5_000_000_000;
/// The longest drain that these runs allow.
const DRAIN_NS: u64 = 300_000_000;
/// How often a run is begun.
const ATTEMPTS: usize = 10;
/// Runs at a time: they mostly wait.
const RUNS: usize = 4;

/// How long a run lasts, and what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// What fails does so at once.
    Brief,
    /// Requests or handshakes are waited for until they time out.
    Patient,
}
use Pace::{Brief, Patient};

impl Pace {
    /// The options of such a run.
    fn options(self) -> &'static str {
        match self {
            Brief => "-d 300ms -T 5s",
            Patient => "-d 1s -T 600ms --connect-timeout 600ms",
        }
    }
}

/// One way to be hostile.
struct Behaviour {
    name: &'static str,
    /// What the server does on the hostile connection.
    steps: Vec<Step>,
    pace: Pace,
    /// The kinds of failure that come of it: at least one of them, and no others. Empty where brunt
    /// puts up with it.
    kinds: &'static [&'static str],
    /// Further options of the run.
    options: String,
}

/// What fails at once.
fn brief(name: &'static str, kinds: &'static [&'static str], steps: Vec<Step>) -> Behaviour {
    Behaviour {
        name,
        steps,
        pace: Brief,
        kinds,
        options: String::new(),
    }
}

/// What is waited for until it times out.
fn patient(name: &'static str, kinds: &'static [&'static str], steps: Vec<Step>) -> Behaviour {
    let pace = Patient;
    Behaviour {
        pace,
        ..brief(name, kinds, steps)
    }
}

impl Behaviour {
    /// This behaviour with further options of the run.
    fn with(self, options: impl Into<String>) -> Self {
        let options = options.into();
        Self { options, ..self }
    }

    /// Runs against it, beside quiet connections.
    fn check(self, backend: &str, scheme: &str, options: &str, quiet: Serve) {
        let kinds = self.kinds;
        let pace = self.pace.options();
        let steps = Arc::new(self.steps);
        // On a loaded machine the first connection, which is a quiet one, may be late.
        let mut refused = String::new();
        let begun = (0..ATTEMPTS).find_map(|_| {
            let steps = Arc::clone(&steps);
            let hostile: Serve = Arc::new(move |peer| peer.follow(&steps));
            let server = Hostile::start(Arc::clone(&quiet), hostile);
            let outcome = brunt(&format!(
                "--format json --backend {backend} -t 1 -c 4 --warmup 0s --think-time 2ms \
                 --drain 300ms --watch off {pace} {options} {} {scheme}://{}/",
                self.options, server.address
            ));
            if outcome.code == Some(2) {
                refused = outcome.stderr;
                return None;
            }
            Some((server, outcome))
        });
        let (server, outcome) = begun.unwrap_or_else(|| panic!("no run began: {refused}"));
        assert!(outcome.took < TIME_MAX, "it took {:?}", outcome.took);
        assert!(server.count() > 0, "it was not hostile");
        expect_endured(&RunReport::of(outcome), kinds);
    }
}

/// The run ended in time with bounded memory and failures of these kinds, and quiet connections
/// were answered.
fn expect_endured(report: &RunReport, kinds: &[&str]) {
    let drained_ns = report.edge_ns("drain_end") - report.edge_ns("measure_end");
    assert!(
        drained_ns < DRAIN_NS + LATE_NS_MAX,
        "drain: {drained_ns} ns"
    );
    let resident_bytes = report.number("/agents/0/host/peak_resident_bytes");
    assert!(resident_bytes < MEMORY_BYTES_MAX, "{resident_bytes} bytes");
    let requests = report.requests();
    assert!(requests.answered >= ANSWERED_MIN, "{requests:?}");
    let failures = report.failures();
    let expected = |kind: &String| kinds.contains(&kind.as_str());
    assert!(failures.keys().all(expected), "{failures:?}");
    // What was not processed is sent again, behind pauses that may outlast a brief run.
    let sent_again = report.total("sent_again");
    assert!(
        kinds.is_empty() || !failures.is_empty() || sent_again > 0,
        "no failure"
    );
    if kinds.is_empty() {
        // Nothing keeps its connections from being open throughout.
        assert_ne!(report.finding("L1")["status"], "broken");
    }
}

/// Checks all of `behaviours`, several at a time.
fn check_all(
    backend: &str,
    scheme: &str,
    options: &str,
    quiet: fn() -> Serve,
    behaviours: Vec<Behaviour>,
) {
    let named = behaviours.into_iter();
    let named = named.map(|behaviour| (behaviour.name, behaviour));
    check_each(backend, named.collect(), |behaviour| {
        behaviour.check(backend, scheme, options, quiet());
    });
}

/// Does `check` with each of these, several at a time, and names those with which it fails.
fn check_each<T: Send>(backend: &str, named: Vec<(&'static str, T)>, check: impl Fn(T) + Sync) {
    let next = Mutex::new(named.into_iter());
    let failed = Mutex::new(Vec::new());
    let check_next = || {
        let taken = next.lock().expect("nobody panics with it").next();
        let (name, behaviour) = taken?;
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| check(behaviour))) {
            let words = panic.downcast_ref::<String>().cloned();
            let mut failed = failed.lock().expect("nobody panics with it");
            failed.push((name, words.unwrap_or_default()));
        }
        Some(())
    };
    std::thread::scope(|scope| {
        for _ in 0..RUNS {
            scope.spawn(|| while check_next().is_some() {});
        }
    });
    let failed = failed.into_inner().expect("nobody panics with it");
    assert!(failed.is_empty(), "on {backend}: {failed:#?}");
}
