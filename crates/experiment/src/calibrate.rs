//! What brunt itself reaches on a machine, and how exact it is there: runs against a server whose
//! answers are known.

use std::num::NonZeroU32;

use brunt_judge::{InvariantStatus, Quantile, ResponseQuantiles, RunFigures};
use brunt_load::{
    ArrivalProcess, BackendChoice, HttpChoice, LoadModel, Plan, RequestSet, RequestSpec, Schedule,
    ScheduleError, Target, TargetError, Watch,
};
use brunt_record::{Accuracy, Backend, Ceiling, Run};
use thiserror::Error;

use crate::belief::{self, Doubt, Others};
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
/// Attempts to find the machine quiet, and to make a run that can be believed.
const ATTEMPTS: usize = 3;
/// Measurements of a ceiling at best, and at most until two of them agree.
const REPEATS: usize = 2;
const REPEATS_MAX: usize = 4;

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

    /// Looks for a while at what others do on the machine; absent where that cannot be read.
    ///
    /// # Errors
    ///
    /// It was interrupted.
    fn others(&mut self) -> Result<Option<Others>, Self::Error>;
}

/// What becomes of what is not believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubtful {
    /// The doubt ends the calibration.
    Refused,
    /// The doubt is noted beside what was measured.
    Noted,
}

/// Why there is no calibration.
#[derive(Debug, Error)]
pub enum CalibrateError<E> {
    /// Server or run failed.
    #[error(transparent)]
    Bench(E),
    /// What was measured is not believed.
    #[error(transparent)]
    Doubt(Doubt),
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
    /// What was left out or is not believed, and why.
    pub notes: Vec<String>,
}

/// How many runs [`calibrate`] makes at best.
pub fn steps(backends: usize, cpus: u32) -> usize {
    // Two figures per number of workers, one run for delays and one for stalls.
    backends * (2 * REPEATS * worker_counts(cpus).len() + 2)
}

/// Measures ceilings and accuracy of each backend on a machine with so many CPUs, in steps of
/// `step_ns`. Looks first whether the machine is quiet, repeats what cannot be believed, and then
/// does with it what `doubtful` says.
///
/// # Errors
///
/// A server could not be started, or a run could not be made; or something is not believed, where
/// that is refused.
pub fn calibrate<B: Bench>(
    bench: &mut B,
    backends: &[Backend],
    cpus: u32,
    step_ns: u64,
    doubtful: Doubtful,
) -> Result<Calibrated, CalibrateError<B::Error>> {
    let mut calibrated = Calibrated::default();
    let mut doubts = Doubts {
        doubtful,
        // Where the machine is not quiet, repeating takes time and helps nothing.
        attempts: ATTEMPTS,
        notes: &mut calibrated.notes,
    };
    if let Some(doubt) = unquiet(bench)? {
        doubts.attempts = 1;
        doubts.add(doubt)?;
    }
    for &backend in backends {
        let mut measuring = Measuring {
            bench,
            backend,
            cpus,
            step_ns,
            doubts: &mut doubts,
        };
        for workers in worker_counts(cpus) {
            calibrated.ceilings.extend(measuring.ceiling(workers)?);
        }
        calibrated.accuracy.extend(measuring.accuracy()?);
    }
    Ok(calibrated)
}

/// What others do on the machine before the load, where it is too much each time.
fn unquiet<B: Bench>(bench: &mut B) -> Result<Option<Doubt>, CalibrateError<B::Error>> {
    let mut doubt = None;
    for _ in 0..ATTEMPTS {
        let others = bench.others().map_err(CalibrateError::Bench)?;
        doubt = others.and_then(|others| others.doubt("before the first step"));
        if doubt.is_none() {
            break;
        }
    }
    Ok(doubt)
}

/// What is not believed of a calibration.
struct Doubts<'a> {
    doubtful: Doubtful,
    /// How often a run is made that is not believed.
    attempts: usize,
    notes: &'a mut Vec<String>,
}

impl Doubts<'_> {
    fn add<E>(&mut self, doubt: Doubt) -> Result<(), CalibrateError<E>> {
        match self.doubtful {
            Doubtful::Refused => Err(CalibrateError::Doubt(doubt)),
            Doubtful::Noted => {
                self.notes.push(doubt.to_string());
                Ok(())
            }
        }
    }
}

/// Numbers of workers whose ceilings are measured: one, and half of the CPUs. With more, the server
/// would have fewer CPUs than brunt, and the ceiling would be its own.
fn worker_counts(cpus: u32) -> Vec<u32> {
    let mut counts = vec![1, (cpus / 2).max(1)];
    counts.dedup();
    counts
}

/// Measures with one backend.
struct Measuring<'a, 'n, B> {
    bench: &'a mut B,
    backend: Backend,
    cpus: u32,
    step_ns: u64,
    doubts: &'a mut Doubts<'n>,
}

impl<B: Bench> Measuring<'_, '_, B> {
    /// What so many workers reach against the null server, which has the other CPUs, or shares the
    /// only one. Absent where a run was invalid.
    fn ceiling(&mut self, workers: u32) -> Result<Option<Ceiling>, CalibrateError<B::Error>> {
        let server = self.serve(self.cpus.saturating_sub(workers).max(1), false)?;
        let name = self.backend.name();
        let with_workers = format!("{workers} worker{}", if workers == 1 { "" } else { "s" });
        let requests = self.most(
            &format!("{name}, {with_workers}: requests"),
            Plan {
                connections: at_least_one(workers.saturating_mul(CONNECTIONS_PER_WORKER)),
                workers: at_least_one(workers),
                ..self.plan(&server, "/", 1)?
            },
            |run| run.summary().successes_per_s.known(),
        )?;
        let bytes = self.most(
            &format!("{name}, {with_workers}: large bodies"),
            Plan {
                connections: at_least_one(workers.max(BODY_CONNECTIONS)),
                workers: at_least_one(workers),
                ..self.plan(&server, BODY_PATH, 1)?
            },
            |run| run.summary().bytes_received_per_s.known(),
        )?;
        self.stop_serving()?;
        Ok(requests.zip(bytes).map(|(requests, bytes)| Ceiling {
            backend: self.backend,
            workers,
            requests_per_s: requests.0,
            bytes_per_s: bytes.0,
            cpu_ns_per_request: worker_ns_per_reply(&requests.1),
        }))
    }

    /// The largest of measurements of a rate of which two agree, with its run. Absent where no run
    /// was valid.
    fn most(
        &mut self,
        step: &str,
        plan: Plan,
        rate: impl Fn(&Run) -> Option<f64>,
    ) -> Result<Option<(f64, Run)>, CalibrateError<B::Error>> {
        let mut rates = Vec::new();
        let mut best: Option<(f64, Run)> = None;
        let repeats = match self.doubts.attempts {
            1 => 1,
            _ => REPEATS_MAX,
        };
        for _ in 0..repeats {
            let run = self.measure(step, plan.clone(), |_| None)?;
            let Some((per_s, run)) = run.and_then(|run| Some((rate(&run)?, run))) else {
                break;
            };
            let is_confirmed = rates.iter().any(|&other| belief::agree(per_s, other));
            rates.push(per_s);
            if best.as_ref().is_none_or(|(most, _)| per_s > *most) {
                best = Some((per_s, run));
            }
            if is_confirmed {
                return Ok(best);
            }
        }
        if rates.len() == REPEATS_MAX {
            self.doubts.add(Doubt::Apart {
                step: step.to_owned(),
                times: rates.len(),
                low: rates.iter().copied().fold(f64::INFINITY, f64::min),
                high: rates.iter().copied().fold(0.0, f64::max),
            })?;
        }
        Ok(best)
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
        let step = format!("{name}: known delays");
        let delays = self.measure(
            &step,
            Plan {
                model: open.clone(),
                ..self.plan(&server, &format!("/delay/{DELAY_NS}ns"), ACCURACY_STEPS)?
            },
            |run| belief::inexact_delay(&step, delay_error_ns(run, 0.5), delay_error_ns(run, 0.99)),
        )?;
        let period_ns = self.step_ns;
        let silence_ns = period_ns / STALL_PART;
        let path = format!("/stall/{silence_ns}ns/{period_ns}ns");
        let stall_error = |run: &Run| {
            let measured_ns = known_ns(run.response_quantile(STALL_QUANTILE))?;
            let true_ns = stall_quantile_ns(silence_ns, period_ns, STALL_QUANTILE);
            Some(measured_ns as f64 / true_ns - 1.0)
        };
        let step = format!("{name}: known stalls");
        let stalls = self.measure(
            &step,
            Plan {
                model: open,
                ..self.plan(&server, &path, STALL_STEPS)?
            },
            |run| belief::inexact_stall(&step, stall_error(run)?),
        )?;
        self.stop_serving()?;
        if delays.is_none() && stalls.is_none() {
            return Ok(None);
        }
        let error_ns = |q| delay_error_ns(delays.as_ref()?, q);
        Ok(Some(Accuracy {
            backend: self.backend,
            delay_ns: DELAY_NS,
            p50_error_ns: error_ns(0.5),
            p99_error_ns: error_ns(0.99),
            p99_9_error_ns: error_ns(0.999),
            stall_p99_error: stalls.as_ref().and_then(stall_error),
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
        plan.spoken = HttpChoice::HTTP1.into();
        plan.stop.duration_ns = Some(self.step_ns * lasting);
        plan.warmup_ns = self.step_ns / WARMUP_PART;
        plan.halves_warmup = false;
        plan.timeout_ns = TIMEOUT_NS;
        plan.setup_timeout_ns = Some(TIMEOUT_NS);
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

    /// Runs a plan, again where the run is not believed: it is invalid, others used the machine, or
    /// `judge` says so. Absent where none was valid.
    fn measure(
        &mut self,
        step: &str,
        plan: Plan,
        judge: impl Fn(&Run) -> Option<Doubt>,
    ) -> Result<Option<Run>, CalibrateError<B::Error>> {
        let mut doubted = None;
        for _ in 0..self.doubts.attempts {
            let run = self
                .bench
                .run(step, plan.clone())
                .map_err(CalibrateError::Bench)?;
            let findings = brunt_judge::check(&run);
            let broken = findings
                .iter()
                .find(|finding| finding.status == InvariantStatus::Broken);
            if let Some(finding) = broken {
                let invalid = Doubt::Invalid {
                    step: step.to_owned(),
                    finding: format!("{}: {}", finding.id, finding.detail),
                };
                doubted = Some((invalid, None));
                continue;
            }
            let others = Others::beside(&run)
                .and_then(|others| others.doubt(format_args!("in the step `{step}`")));
            match others.or_else(|| judge(&run)) {
                None => return Ok(Some(run)),
                Some(doubt) => doubted = Some((doubt, Some(run))),
            }
        }
        let Some((doubt, run)) = doubted else {
            return Ok(None);
        };
        self.doubts.add(doubt)?;
        Ok(run)
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

/// How much more than the delay of each answer a quantile of a run is.
fn delay_error_ns(run: &Run, q: f64) -> Option<i64> {
    Some(known_ns(run.response_quantile(q))? as i64 - DELAY_NS as i64)
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
            (1, vec![1], 6),
            (2, vec![1], 6),
            (3, vec![1], 6),
            (4, vec![1, 2], 10),
            (64, vec![1, 32], 10),
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
