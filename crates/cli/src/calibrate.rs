//! `brunt calibrate`: what brunt itself reaches on this machine, and how exact it is there.

use std::io::{self, IsTerminal, Write};
use std::num::NonZeroU32;
use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use brunt_engine::{
    RunError, clock, ports_per_address, raise_descriptor_limit, threads, uring_refusal, usable_cpus,
};
use brunt_load::{
    ArrivalProcess, BackendChoice, Faults, HttpChoice, LoadModel, Plan, RequestSet, RequestSpec,
    Reuse, Schedule, Spin, Stamps, Stop, Target, ThinkSpread, TlsSpec, Watch,
};
use brunt_measure::{
    Accuracy, Backend, Calibration, Ceiling, ClockQuality, MachineLimits, Quantile, Run, Standing,
};
use brunt_server::Running;

use brunt_report::printable;

use crate::args::{CalibrateArguments, CalibrateBackendName, CertificateFormatName};
use crate::calibration_store::{Machine, Place};
use crate::diagnose::worker_ns_per_reply;
use crate::signals::{Interrupts, Second, Wanted};
use crate::{EXIT_INTERRUPTED, message, output, serve};

/// Connections of a worker that is to do as much as it can.
const CONNECTIONS_PER_WORKER: u32 = 64;
/// Connections that carry large bodies: more of them only compete for the caches.
const BODY_CONNECTIONS: u32 = 4;
const BODY_PATH: &str = "/bytes/1m";
/// The load under which exactness is measured: far below what any machine can carry.
const ACCURACY_PER_S: f64 = 1_000.0;
const ACCURACY_CONNECTIONS: u32 = 20;
/// Steps that the accuracy is measured for: with 1 s, samples enough for p99.9.
const ACCURACY_STEPS: u64 = 4;
const DELAY_NS: u64 = 1_000_000;
/// A stall each step, for a tenth of it. Whole periods: then the share of requests that wait longer
/// than some time does not depend on where in a period the window begins.
const STALL_STEPS: u64 = 2;
const STALL_PART: u64 = 10;
const STALL_QUANTILE: f64 = 0.99;
/// Part of a step that load lasts before it is measured.
const WARMUP_PART: u64 = 5;
const QUEUE_MAX: NonZeroU32 = NonZeroU32::new(100_000).unwrap();
const TIMEOUT_NS: u64 = 10_000_000_000;
/// A run whose figures cannot be believed is made once more.
const ATTEMPTS: u32 = 2;
const SLEEPS: usize = 500;
const SLEEP_NS: u64 = 1_000_000;
/// Linux's own default, for where the file cannot be read.
const ACCEPT_QUEUE_DEFAULT: u64 = 4_096;

/// Calibrates.
pub(crate) fn run(arguments: &CalibrateArguments) -> Result<ExitCode> {
    let interrupts = Interrupts::listen(Second::Ends)?;
    let refusal = uring_refusal();
    let backends = backends(arguments.backend, refusal.as_deref())?;
    let machine = Machine::this();
    let place = match arguments.no_store {
        true => None,
        false => Some(Place::open(&machine)?),
    };
    let limits = MachineLimits {
        descriptors: raise_descriptor_limit(),
        ports: ports_per_address(),
        accept_queue: accept_queue(),
        uring_refused: refusal,
    };
    let cpus = usable_cpus();
    let mut steps = Steps {
        step_ns: arguments.step,
        cpus,
        line: StepLine::new(
            arguments.quiet,
            backends.len() * steps_per_backend(cpus) + 1,
        ),
        interrupts,
        notes: Vec::new(),
    };
    let calibration = match steps.all(&backends, &machine, limits) {
        Ok(calibration) => calibration,
        Err(error) => {
            steps.line.clear();
            if matches!(error.downcast_ref(), Some(RunError::Interrupted)) {
                message::print(&"interrupted: there is no certificate");
                return Ok(ExitCode::from(EXIT_INTERRUPTED));
            }
            return Err(error);
        }
    };
    let mut text = match arguments.format {
        CertificateFormatName::Text => {
            brunt_report::calibration_text(&calibration, &output::terminal_style())
        }
        CertificateFormatName::Json => brunt_report::calibration_to_json(&calibration)?,
    };
    let stored = place.map(|place| place.store(&calibration));
    if let (Some(Ok(path)), CertificateFormatName::Text) = (&stored, arguments.format) {
        text.push_str(&format!("\nstored as {}\n", path.display()));
    }
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            return Err(error).context("cannot print the certificate");
        }
        _ => {}
    }
    stored.transpose()?;
    Ok(ExitCode::SUCCESS)
}

/// The backends to calibrate, one at least.
fn backends(typed: CalibrateBackendName, refusal: Option<&str>) -> Result<Vec<Backend>> {
    Ok(match (typed, refusal) {
        (CalibrateBackendName::All, None) => vec![Backend::Uring, Backend::Epoll],
        (CalibrateBackendName::Uring, None) => vec![Backend::Uring],
        (CalibrateBackendName::Uring, Some(refusal)) => bail!("{refusal}"),
        (CalibrateBackendName::All, Some(_)) | (CalibrateBackendName::Epoll, _) => {
            vec![Backend::Epoll]
        }
    })
}

/// Numbers of workers whose ceilings are measured: one, and half of the CPUs. With more, the server
/// would have fewer CPUs than brunt, and the ceiling would be its own.
fn worker_counts(cpus: u32) -> Vec<u32> {
    let mut counts = vec![1, (cpus / 2).max(1)];
    counts.dedup();
    counts
}

/// Two per number of workers, one for delays and one for stalls.
fn steps_per_backend(cpus: u32) -> usize {
    2 * worker_counts(cpus).len() + 2
}

/// What was measured with one backend.
struct Measured<'a> {
    steps: &'a mut Steps,
    backend: Backend,
}

/// The course of a calibration.
struct Steps {
    step_ns: u64,
    cpus: u32,
    line: StepLine,
    interrupts: Interrupts,
    /// What was left out.
    notes: Vec<String>,
}

impl Steps {
    fn all(
        &mut self,
        backends: &[Backend],
        machine: &Machine,
        limits: MachineLimits,
    ) -> Result<Calibration> {
        self.line.show("clock and sleep");
        let clock = clock_quality(&self.interrupts)?;
        let (mut ceilings, mut accuracy) = (Vec::new(), Vec::new());
        for &backend in backends {
            let mut measured = Measured {
                steps: &mut *self,
                backend,
            };
            for workers in worker_counts(measured.steps.cpus) {
                ceilings.extend(measured.ceiling(workers)?);
            }
            accuracy.extend(measured.accuracy()?);
        }
        self.line.clear();
        Ok(Calibration {
            format: Calibration::FORMAT,
            brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: machine.in_words(),
            usable_cpus: self.cpus,
            made_unix_ms: clock::unix_ms(),
            ceilings,
            accuracy,
            clock,
            limits,
            notes: std::mem::take(&mut self.notes),
        })
    }
}

impl Measured<'_> {
    /// What so many workers reach against the null server, which has the other CPUs, or shares the
    /// only one. Absent where a run was invalid.
    fn ceiling(&mut self, workers: u32) -> Result<Option<Ceiling>> {
        let serving = self.steps.cpus.saturating_sub(workers).max(1);
        let server = serve::own_server(serving, brunt_server::BackendChoice::Auto, false, None)?;
        let name = self.backend.name();
        let with_workers = format!("{workers} worker{}", if workers == 1 { "" } else { "s" });
        let closed = LoadModel::Closed {
            connect_per_s: None,
        };
        let requests = self.measure(
            &format!("{name}, {with_workers}: requests"),
            Plan {
                connections: at_least_one(workers.saturating_mul(CONNECTIONS_PER_WORKER)),
                workers: at_least_one(workers),
                ..self.plan(&server, "/", closed.clone(), 1)?
            },
        )?;
        let bytes = self.measure(
            &format!("{name}, {with_workers}: large bodies"),
            Plan {
                connections: at_least_one(workers.max(BODY_CONNECTIONS)),
                workers: at_least_one(workers),
                ..self.plan(&server, BODY_PATH, closed, 1)?
            },
        )?;
        stop(server)?;
        Ok(requests.zip(bytes).and_then(|(requests, bytes)| {
            Some(Ceiling {
                backend: self.backend,
                workers,
                requests_per_s: requests.summary().successes_per_s.known()?,
                bytes_per_s: bytes.summary().bytes_received_per_s.known()?,
                cpu_ns_per_request: worker_ns_per_reply(&requests),
            })
        }))
    }

    /// What one worker measures of known delays and stalls. Absent where both runs were invalid.
    fn accuracy(&mut self) -> Result<Option<Accuracy>> {
        let spin = self.steps.cpus > 1;
        let server = serve::own_server(1, brunt_server::BackendChoice::Auto, spin, None)?;
        let name = self.backend.name();
        let open = LoadModel::Open {
            schedule: Schedule::constant_rate(ArrivalProcess::Constant, ACCURACY_PER_S, 0)?,
            connections_max: at_least_one(ACCURACY_CONNECTIONS),
            queue_max: QUEUE_MAX,
        };
        let delays = self.measure(
            &format!("{name}: known delays"),
            self.plan(
                &server,
                &format!("/delay/{DELAY_NS}ns"),
                open.clone(),
                ACCURACY_STEPS,
            )?,
        )?;
        let period_ns = self.steps.step_ns;
        let silence_ns = period_ns / STALL_PART;
        let stalls = self.measure(
            &format!("{name}: known stalls"),
            self.plan(
                &server,
                &format!("/stall/{silence_ns}ns/{period_ns}ns"),
                open,
                STALL_STEPS,
            )?,
        )?;
        stop(server)?;
        if delays.is_none() && stalls.is_none() {
            return Ok(None);
        }
        let error_ns = |q| {
            let measured_ns = known_ns(delays.as_ref()?.response_quantile(q))?;
            Some(measured_ns as i64 - DELAY_NS as i64)
        };
        Ok(Some(Accuracy {
            backend: self.backend,
            delay_ns: DELAY_NS,
            p50_error_ns: error_ns(0.5),
            p99_error_ns: error_ns(0.99),
            p99_9_error_ns: error_ns(0.999),
            stall_p99_error: stalls.and_then(|run| {
                let measured_ns = known_ns(run.response_quantile(STALL_QUANTILE))?;
                let true_ns = stall_quantile_ns(silence_ns, period_ns, STALL_QUANTILE);
                Some(measured_ns as f64 / true_ns - 1.0)
            }),
        }))
    }

    /// A plan for one of the steps, `lasting` times as long as they are.
    fn plan(&self, server: &Running, path: &str, model: LoadModel, lasting: u64) -> Result<Plan> {
        let step_ns = self.steps.step_ns;
        let target = Target::parse(&format!("http://{}{path}", server.address()), None)?;
        Ok(Plan {
            requests: RequestSet::one(RequestSpec::get(&target.path)),
            target,
            model,
            connections: at_least_one(ACCURACY_CONNECTIONS),
            workers: NonZeroU32::MIN,
            http: HttpChoice::Http1,
            tls: TlsSpec::default(),
            pipeline: NonZeroU32::MIN,
            streams: NonZeroU32::MIN,
            reuse: Reuse::Unlimited,
            think_time_ns: 0,
            think_spread: ThinkSpread::Fixed,
            think_seed: 0,
            stop: Stop {
                duration_ns: Some(step_ns * lasting),
                requests: None,
            },
            warmup_ns: step_ns / WARMUP_PART,
            timeout_ns: TIMEOUT_NS,
            setup_timeout_ns: TIMEOUT_NS,
            connect_timeout_ns: TIMEOUT_NS,
            drain_limit_ns: TIMEOUT_NS,
            backend: match self.backend {
                Backend::Uring => BackendChoice::Uring,
                Backend::Epoll => BackendChoice::Epoll,
                Backend::Sim => BackendChoice::Sim,
            },
            source_addresses: Vec::new(),
            stamps: Stamps::Sampled,
            spin: Spin::Auto,
            oversubscribe: false,
            observe: true,
            watch: Watch::Off,
            server_counter: None,
            link_bits_per_s: None,
            experiment: None,
            faults: Faults::default(),
        })
    }

    /// Runs a plan; absent, with a note, when that gives no valid run.
    fn measure(&mut self, what: &str, plan: Plan) -> Result<Option<Run>> {
        self.steps.line.show(what);
        let mut broken = String::new();
        for _ in 0..ATTEMPTS {
            let interrupts = &self.steps.interrupts;
            let prepared = interrupts.prepare(plan.clone())?;
            let run = interrupts.run(prepared, true, Wanted::Whole, &mut |_, _| {})?;
            if run.interrupted {
                return Err(RunError::Interrupted.into());
            }
            let found = run
                .findings
                .iter()
                .find(|finding| finding.standing == Standing::Broken);
            match found {
                None => return Ok(Some(run)),
                Some(finding) => broken = format!("{}: {}", finding.id, finding.detail),
            }
        }
        let note =
            format!("{what}: left out, since {ATTEMPTS} runs in a row were invalid ({broken})");
        self.steps.notes.push(note);
        Ok(None)
    }
}

fn at_least_one(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
}

fn stop(server: Running) -> Result<()> {
    server
        .stop()
        .map(|_| ())
        .context("the reference server did not end well")
}

fn known_ns(quantile: Quantile) -> Option<u64> {
    match quantile {
        Quantile::Known { ns, .. } => Some(ns),
        Quantile::AtLeast { .. } | Quantile::TooFew { .. } => None,
    }
}

/// The `q`-quantile of the response time where a server is silent for `silence_ns` of every
/// `period_ns`, and answers at once otherwise: requests planned evenly wait for longer than x with
/// the share `(silence - x) / period`.
fn stall_quantile_ns(silence_ns: u64, period_ns: u64, q: f64) -> f64 {
    silence_ns as f64 - (1.0 - q) * period_ns as f64
}

/// How fine the clock is, and how late sleeps end on a thread that sleeps as workers do.
fn clock_quality(interrupts: &Interrupts) -> Result<ClockQuality> {
    let fineness = clock::fineness();
    let interrupts = interrupts.clone();
    let sleeper = threads::spawn("brunt-sleeper", move || {
        threads::precise_timers();
        let mut late_ns = Vec::with_capacity(SLEEPS);
        while late_ns.len() < SLEEPS && !interrupts.came() {
            let due_ns = clock::now_ns() + SLEEP_NS;
            threads::sleep(SLEEP_NS);
            late_ns.push(clock::now_ns().saturating_sub(due_ns));
        }
        late_ns
    });
    let mut late_ns = sleeper
        .context("cannot start a thread")?
        .join()
        .map_err(|_| anyhow!("the sleeping thread panicked"))?;
    if late_ns.len() < SLEEPS {
        return Err(RunError::Interrupted.into());
    }
    late_ns.sort_unstable();
    Ok(ClockQuality {
        read_ns: fineness.read_ns,
        step_ns: fineness.step_ns,
        sleep_late_ns_p50: at_quantile(&late_ns, 0.5),
        sleep_late_ns_p99: at_quantile(&late_ns, 0.99),
        sleep_late_ns_max: at_quantile(&late_ns, 1.0),
    })
}

/// The `q`-quantile of sorted values, by nearest rank; 0 of none.
fn at_quantile(sorted: &[u64], q: f64) -> u64 {
    let rank = (sorted.len() as f64 * q).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

/// The longest accept queue that a listening socket of this machine may have.
fn accept_queue() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
    text.trim().parse().unwrap_or(ACCEPT_QUEUE_DEFAULT)
}

/// One line on standard error with the current step; nothing where that is no terminal.
struct StepLine {
    shown: bool,
    done: usize,
    total: usize,
}

impl StepLine {
    fn new(quiet: bool, total: usize) -> Self {
        Self {
            shown: !quiet && io::stderr().is_terminal(),
            done: 0,
            total,
        }
    }

    /// The next step begins.
    fn show(&mut self, what: &str) {
        self.done += 1;
        if self.shown {
            let line = format!("calibrate {} of {} · {what}", self.done, self.total);
            let width = usize::from(output::terminal_width().saturating_sub(1));
            let line: String = printable(&line).chars().take(width).collect();
            // A terminal that went away is no reason to stop.
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
        }
    }

    /// Takes the line away.
    fn clear(&mut self) {
        if self.shown && self.done > 0 {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_of_workers_is_measured_once() {
        for (cpus, counts) in [
            (1, vec![1]),
            (2, vec![1]),
            (3, vec![1]),
            (4, vec![1, 2]),
            (9, vec![1, 4]),
        ] {
            assert_eq!(worker_counts(cpus), counts);
            assert!(
                counts
                    .iter()
                    .all(|&workers| cpus == 1 || workers <= cpus - workers)
            );
        }
    }

    #[test]
    fn backends_are_those_that_work() {
        use CalibrateBackendName::{All, Epoll, Uring};
        for (typed, refusal, expected) in [
            (All, None, Some(vec![Backend::Uring, Backend::Epoll])),
            (All, Some("no"), Some(vec![Backend::Epoll])),
            (Uring, None, Some(vec![Backend::Uring])),
            (Uring, Some("no"), None),
            (Epoll, None, Some(vec![Backend::Epoll])),
            (Epoll, Some("no"), Some(vec![Backend::Epoll])),
        ] {
            assert_eq!(
                backends(typed, refusal).ok(),
                expected,
                "{typed:?} {refusal:?}"
            );
        }
    }

    #[test]
    fn stalls_follow_arithmetic() {
        const MS: u64 = 1_000_000;
        for (q, expected_ms) in [(0.95, 50.0), (0.99, 90.0), (0.999, 99.0)] {
            let ns = stall_quantile_ns(100 * MS, 1_000 * MS, q);
            assert!((ns / 1e6 - expected_ms).abs() < 1e-6, "{q}: {ns}");
        }
    }

    #[test]
    fn quantiles_are_values_that_occurred() {
        let sorted: Vec<u64> = (1..=500).collect();
        for (q, expected) in [(0.0, 1), (0.5, 250), (0.99, 495), (1.0, 500)] {
            assert_eq!(at_quantile(&sorted, q), expected, "{q}");
        }
        assert_eq!(at_quantile(&[], 0.5), 0);
    }
}
