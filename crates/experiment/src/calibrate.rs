//! What brunt itself reaches on a machine, and how exact it is there: runs against a server whose
//! answers are known.

use std::num::NonZeroU32;

use brunt_load::{
    ArrivalProcess, BackendChoice, HttpChoice, LoadModel, Plan, RequestSet, RequestSpec, Schedule,
    ScheduleError, Target, TargetError, Watch,
};
use brunt_measure::{Accuracy, Backend, Ceiling, Quantile, Run, Standing};
use thiserror::Error;

use crate::diagnose::worker_ns_per_reply;

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

/// What a calibration needs: a reference server to load, and somebody who runs plans.
pub trait Bench {
    /// What can go wrong with either.
    type Error;

    /// Starts the reference server with so many workers, which poll for new events or sleep, and
    /// gives its authority, such as `127.0.0.1:8080`.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    fn serve(&mut self, workers: u32, polls: bool) -> Result<String, Self::Error>;

    /// Stops it.
    ///
    /// # Errors
    ///
    /// It did not end well.
    fn stop_serving(&mut self) -> Result<(), Self::Error>;

    /// Runs a plan against it; `step` says what for.
    ///
    /// # Errors
    ///
    /// There is no run: nothing was measured, or it was interrupted.
    fn run(&mut self, step: &str, plan: Plan) -> Result<Run, Self::Error>;
}

/// Why there is no calibration.
#[derive(Debug, Error)]
pub enum CalibrateError<E> {
    /// Server or run failed.
    #[error(transparent)]
    Bench(E),
    /// The server's address makes no URL.
    #[error(transparent)]
    Target(TargetError),
    /// The machine cannot carry the rate of the accuracy's schedule.
    #[error(transparent)]
    Schedule(ScheduleError),
}

/// What was measured with the backends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Calibrated {
    /// What brunt reaches, by backend and number of workers.
    pub ceilings: Vec<Ceiling>,
    /// How exact it is, by backend.
    pub accuracy: Vec<Accuracy>,
    /// What was left out, and why.
    pub notes: Vec<String>,
}

/// How many runs [`calibrate`] makes at best.
pub fn steps(backends: usize, cpus: u32) -> usize {
    // Two per number of workers, one for delays and one for stalls.
    backends * (2 * worker_counts(cpus).len() + 2)
}

/// Measures ceilings and accuracy of each backend on a machine with so many CPUs, in steps of
/// `step_ns`.
///
/// # Errors
///
/// A server could not be started, or a run could not be made. A run that is invalid twice is left
/// out, and noted.
pub fn calibrate<B: Bench>(
    bench: &mut B,
    backends: &[Backend],
    cpus: u32,
    step_ns: u64,
) -> Result<Calibrated, CalibrateError<B::Error>> {
    let mut calibrated = Calibrated::default();
    for &backend in backends {
        let mut measuring = Measuring {
            bench,
            backend,
            cpus,
            step_ns,
            notes: &mut calibrated.notes,
        };
        for workers in worker_counts(cpus) {
            calibrated.ceilings.extend(measuring.ceiling(workers)?);
        }
        calibrated.accuracy.extend(measuring.accuracy()?);
    }
    Ok(calibrated)
}

/// Numbers of workers whose ceilings are measured: one, and half of the CPUs. With more, the server
/// would have fewer CPUs than brunt, and the ceiling would be its own.
fn worker_counts(cpus: u32) -> Vec<u32> {
    let mut counts = vec![1, (cpus / 2).max(1)];
    counts.dedup();
    counts
}

/// Measures with one backend.
struct Measuring<'a, B> {
    bench: &'a mut B,
    backend: Backend,
    cpus: u32,
    step_ns: u64,
    notes: &'a mut Vec<String>,
}

impl<B: Bench> Measuring<'_, B> {
    /// What so many workers reach against the null server, which has the other CPUs, or shares the
    /// only one. Absent where a run was invalid.
    fn ceiling(&mut self, workers: u32) -> Result<Option<Ceiling>, CalibrateError<B::Error>> {
        let server = self.serve(self.cpus.saturating_sub(workers).max(1), false)?;
        let name = self.backend.name();
        let with_workers = format!("{workers} worker{}", if workers == 1 { "" } else { "s" });
        let requests = self.measure(
            &format!("{name}, {with_workers}: requests"),
            Plan {
                connections: at_least_one(workers.saturating_mul(CONNECTIONS_PER_WORKER)),
                workers: at_least_one(workers),
                ..self.plan(&server, "/", 1)?
            },
        )?;
        let bytes = self.measure(
            &format!("{name}, {with_workers}: large bodies"),
            Plan {
                connections: at_least_one(workers.max(BODY_CONNECTIONS)),
                workers: at_least_one(workers),
                ..self.plan(&server, BODY_PATH, 1)?
            },
        )?;
        self.stop_serving()?;
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
    fn accuracy(&mut self) -> Result<Option<Accuracy>, CalibrateError<B::Error>> {
        let server = self.serve(1, self.cpus > 1)?;
        let name = self.backend.name();
        let schedule = Schedule::constant_rate(ArrivalProcess::Constant, ACCURACY_PER_S, 0)
            .map_err(CalibrateError::Schedule)?;
        let open = LoadModel::Open {
            schedule,
            connections_max: at_least_one(ACCURACY_CONNECTIONS),
            queue_max: QUEUE_MAX,
        };
        let delays = self.measure(
            &format!("{name}: known delays"),
            Plan {
                model: open.clone(),
                ..self.plan(&server, &format!("/delay/{DELAY_NS}ns"), ACCURACY_STEPS)?
            },
        )?;
        let period_ns = self.step_ns;
        let silence_ns = period_ns / STALL_PART;
        let path = format!("/stall/{silence_ns}ns/{period_ns}ns");
        let stalls = self.measure(
            &format!("{name}: known stalls"),
            Plan {
                model: open,
                ..self.plan(&server, &path, STALL_STEPS)?
            },
        )?;
        self.stop_serving()?;
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
    fn plan(
        &self,
        server: &str,
        path: &str,
        lasting: u64,
    ) -> Result<Plan, CalibrateError<B::Error>> {
        let target = Target::parse(&format!("http://{server}{path}"), None)
            .map_err(CalibrateError::Target)?;
        let requests = RequestSet::one(RequestSpec::get(&target.path));
        let mut plan = Plan::new(target, requests);
        plan.connections = at_least_one(ACCURACY_CONNECTIONS);
        plan.spoken = HttpChoice::Http1.into();
        plan.stop.duration_ns = Some(self.step_ns * lasting);
        plan.warmup_ns = self.step_ns / WARMUP_PART;
        plan.halves_warmup = false;
        plan.timeout_ns = TIMEOUT_NS;
        plan.setup_timeout_ns = TIMEOUT_NS;
        plan.connect_timeout_ns = TIMEOUT_NS;
        plan.drain_limit_ns = TIMEOUT_NS;
        plan.watch = Watch::Off;
        plan.backend = match self.backend {
            Backend::Uring => BackendChoice::Uring,
            Backend::Epoll => BackendChoice::Epoll,
            Backend::Sim => BackendChoice::Sim,
        };
        Ok(plan)
    }

    fn serve(&mut self, workers: u32, polls: bool) -> Result<String, CalibrateError<B::Error>> {
        self.bench
            .serve(workers, polls)
            .map_err(CalibrateError::Bench)
    }

    fn stop_serving(&mut self) -> Result<(), CalibrateError<B::Error>> {
        self.bench.stop_serving().map_err(CalibrateError::Bench)
    }

    /// Runs a plan; absent, with a note, when that gives no valid run.
    fn measure(&mut self, step: &str, plan: Plan) -> Result<Option<Run>, CalibrateError<B::Error>> {
        let mut broken = String::new();
        for _ in 0..ATTEMPTS {
            let run = self
                .bench
                .run(step, plan.clone())
                .map_err(CalibrateError::Bench)?;
            let findings = brunt_measure::check(&run);
            let found = findings
                .iter()
                .find(|finding| finding.standing == Standing::Broken);
            match found {
                None => return Ok(Some(run)),
                Some(finding) => broken = format!("{}: {}", finding.id, finding.detail),
            }
        }
        self.notes.push(format!(
            "{step}: left out, since {ATTEMPTS} runs in a row were invalid ({broken})"
        ));
        Ok(None)
    }
}

fn at_least_one(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_are_measured_for_one_worker_and_for_half_of_the_cpus() {
        for (cpus, counts, count) in [
            (1, vec![1], 4),
            (2, vec![1], 4),
            (3, vec![1], 4),
            (4, vec![1, 2], 6),
            (64, vec![1, 32], 6),
        ] {
            assert_eq!(worker_counts(cpus), counts, "{cpus}");
            assert_eq!(steps(2, cpus), 2 * count, "{cpus}");
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
}
