//! `brunt calibrate`: what brunt itself reaches on this machine, and how exact it is there.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow, bail};
use brunt_engine::{RunError, ports_per_address, raise_descriptor_limit, uring_refusal};
use brunt_experiment::{Bench, CalibrateError, Doubt, Doubtful, Others, calibrate, steps};
use brunt_io::cpu::{CpuUse, allowed_cpus, usable_cpus};
use brunt_io::{clock, threads};
use brunt_load::{Placement, Plan};
use brunt_record::{Backend, Calibration, ClockQuality, CpuTimes, MachineLimits, Run};
use brunt_report::printable;
use brunt_server::Running;

use crate::calibrate_args::{CalibrateArguments, CalibrateBackendName, CertificateFormatName};
use crate::calibration_store::{Machine, Place};
use crate::run::interrupted;
use crate::serve::Halves;
use crate::session::{SessionOptions, is_interrupt};
use crate::signals::{Interrupts, Second};
use crate::{message, output, serve};

const SLEEPS: usize = 500;
const SLEEP_NS: u64 = 1_000_000;
/// How long the machine is looked at before the first step, in so many parts: an interrupt ends it.
const LOOK_PARTS: u32 = 5;
const LOOK_PART_NS: u64 = 100_000_000;
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
    let mut steps = Steps {
        line: StepLine::new(arguments.quiet, steps(backends.len(), usable_cpus()) + 1),
        interrupts,
        server: None,
        cpus: None,
    };
    let doubtful = match &place {
        Some(_) => Doubtful::Refused,
        None => Doubtful::Noted,
    };
    let calibration = match steps.all(&backends, arguments.step, &machine, limits, doubtful) {
        Ok(calibration) => calibration,
        Err(error) => {
            steps.line.clear();
            if let (Some(doubt), Some(place)) = (error.downcast_ref::<Doubt>(), &place) {
                bail!(
                    "nothing is stored, since it could not be believed: {doubt}. {}. --no-store \
                     measures all the same",
                    place.kept()
                );
            }
            if is_interrupt(&error) {
                return interrupted("interrupted: there is no certificate");
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
    message::output(&text);
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

/// The course of a calibration.
struct Steps {
    line: StepLine,
    interrupts: Interrupts,
    /// The reference server, while there is one.
    server: Option<Running>,
    /// The CPUs that it leaves to workers; absent where the scheduler places both.
    cpus: Option<Vec<u32>>,
}

impl Steps {
    fn all(
        &mut self,
        backends: &[Backend],
        step_ns: u64,
        machine: &Machine,
        limits: MachineLimits,
        doubtful: Doubtful,
    ) -> Result<Calibration> {
        self.line.show("clock and sleep");
        let clock = clock_quality(&self.interrupts)?;
        let cpus = usable_cpus();
        let calibrated = calibrate(self, backends, cpus, step_ns, doubtful);
        let calibrated = calibrated.map_err(|error| match error {
            CalibrateError::Bench(error) => error,
            CalibrateError::Doubt(doubt) => doubt.into(),
            CalibrateError::Target(error) => error.into(),
            CalibrateError::Schedule(error) => error.into(),
        })?;
        self.line.clear();
        Ok(Calibration {
            format: Calibration::FORMAT,
            brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
            machine: machine.in_words(),
            usable_cpus: cpus,
            made_unix_ms: clock::unix_ms(),
            ceilings: calibrated.ceilings,
            accuracy: calibrated.accuracy,
            clock,
            limits,
            notes: calibrated.notes,
        })
    }
}

impl Bench for Steps {
    type Error = anyhow::Error;

    fn serve(&mut self, workers: u32, polls: bool) -> Result<String> {
        let backend = brunt_server::BackendChoice::Auto;
        let halves = Halves::both(workers);
        let server = serve::own_server(&halves, backend, polls, None, false)?;
        self.cpus = halves.of_workers;
        let authority = server.address().to_string();
        self.server = Some(server);
        Ok(authority)
    }

    fn stop_serving(&mut self) -> Result<()> {
        match self.server.take() {
            Some(server) => server
                .stop()
                .map(|_| ())
                .context("the reference server did not end well"),
            None => Ok(()),
        }
    }

    fn run(&mut self, step: &str, mut plan: Plan) -> Result<Run> {
        self.line.show(step);
        if let Some(cpus) = &self.cpus {
            plan.placement = Placement::Bound(cpus.clone());
        }
        let options = SessionOptions {
            own_server: true,
            ..SessionOptions::default()
        };
        self.interrupts.round(plan, options, &mut |_, _: &_| {})
    }

    fn others(&mut self) -> Result<Option<Others>> {
        let start = MachineUse::read();
        for _ in 0..LOOK_PARTS {
            threads::sleep(LOOK_PART_NS);
            if self.interrupts.came() {
                return Err(RunError::Interrupted.into());
            }
        }
        let end = MachineUse::read();
        Ok(start.zip(end).and_then(|(start, end)| end.since(&start)))
    }
}

/// What the machine's CPUs did until now, and brunt of that.
struct MachineUse {
    at_ns: u64,
    cpus: Vec<CpuTimes>,
    own: CpuUse,
}

impl MachineUse {
    /// Absent where the kernel does not say.
    fn read() -> Option<Self> {
        let usable = allowed_cpus().ok()?;
        let mut cpus = brunt_probe::host::cpu_times().ok()?;
        cpus.retain(|times| usable.contains(&times.cpu));
        Some(Self {
            at_ns: clock::now_ns(),
            cpus,
            own: CpuUse::of_process().ok()?,
        })
    }

    /// What others had of them since `start`.
    fn since(&self, start: &Self) -> Option<Others> {
        let cpus = brunt_probe::host::difference(&start.cpus, &self.cpus);
        let own = self.own.since(start.own);
        let sum = |part: fn(&CpuTimes) -> u64| cpus.iter().map(part).sum::<u64>();
        Others::over(
            self.at_ns.saturating_sub(start.at_ns),
            cpus.len(),
            sum(|times| times.busy_ns).saturating_sub(own.user_ns + own.system_ns),
            sum(|times| times.steal_ns),
        )
    }
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
            shown: !quiet && message::is_live(),
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
            message::draw(&line);
        }
    }

    /// Takes the line away.
    fn clear(&mut self) {
        if self.shown && self.done > 0 {
            message::erase();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn quantiles_are_values_that_occurred() {
        let sorted: Vec<u64> = (1..=500).collect();
        for (q, expected) in [(0.0, 1), (0.5, 250), (0.99, 495), (1.0, 500)] {
            assert_eq!(at_quantile(&sorted, q), expected, "{q}");
        }
        assert_eq!(at_quantile(&[], 0.5), 0);
    }
}
