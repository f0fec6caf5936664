//! Whether a calibration can be believed: what the machine did beside it, and what it measured.

use std::fmt;

use brunt_record::Run;
use thiserror::Error;

/// Most that other programs may use of the CPUs' time: more than a quiet machine's services take.
const OTHERS_MAX: f64 = 0.05;
/// Most that the hypervisor may take of it.
const STOLEN_MAX: f64 = 0.05;
/// Most by which two measurements of one ceiling may differ, as a ratio less 1.
const APART_MAX: f64 = 0.2;
/// Most by which quantiles may be off a known delay: far beyond what a machine does that is idle.
const P50_ERROR_NS_MAX: u64 = 1_000_000;
const P99_ERROR_NS_MAX: u64 = 10_000_000;
/// Most by which p99 of a known stall may be off, as a ratio less 1.
const STALL_ERROR_MAX: f64 = 0.5;

/// What others had of the CPUs that brunt may use, over some time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Others {
    /// CPUs that brunt may use.
    pub cpus: usize,
    /// CPUs that programs beside brunt used on average.
    pub used_cpus: f64,
    /// CPUs that the hypervisor took on average.
    pub stolen_cpus: f64,
}

/// Why a calibration is not believed.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum Doubt {
    /// Other programs used CPUs.
    #[error(
        "{when}, other programs used {:.2} CPUs of {}, and a calibration bears {:.2}; end them \
         (top lists them) or wait until they are done, and calibrate again",
        .others.used_cpus, .others.cpus, .others.most(OTHERS_MAX)
    )]
    Busy {
        /// When the programs ran, in words.
        when: String,
        /// What was read.
        others: Others,
    },
    /// Other virtual machines used CPUs.
    #[error(
        "{when}, the hypervisor took {:.2} CPUs of {}, and a calibration bears {:.2}; calibrate \
         when the host is quieter, or on a machine with CPUs of its own",
        .others.stolen_cpus, .others.cpus, .others.most(STOLEN_MAX)
    )]
    Stolen {
        /// When the virtual machines ran, in words.
        when: String,
        /// What was read.
        others: Others,
    },
    /// No two measurements of one figure agree.
    #[error(
        "{step}: {times} measurements reached {low:.0} to {high:.0} per second, no two within \
         {:.0} % of each other; find what else runs or changes the clock of the CPUs, and \
         calibrate again",
        100.0 * APART_MAX
    )]
    Apart {
        /// What was measured.
        step: String,
        /// How often.
        times: usize,
        /// The least.
        low: f64,
        /// The most.
        high: f64,
    },
    /// A known time was measured wrongly.
    #[error("{step}: {what}; find what holds up this machine, and calibrate again")]
    Inexact {
        /// What was measured.
        step: String,
        /// Which figure, and how far off it is.
        what: String,
    },
    /// An invariant of the run is broken.
    #[error("{step}: the run was invalid ({finding}); calibrate again when the machine is quiet")]
    Invalid {
        /// What was measured.
        step: String,
        /// The invariant and what was found.
        finding: String,
    },
}

impl Others {
    /// What was read of the machine while a run was measured; absent where it was not read.
    pub fn beside(run: &Run) -> Option<Self> {
        let evidence = &run.agents.first()?.evidence;
        let (host, interval_ns) = (&evidence.host, evidence.interval_ns);
        let own_ns = host.series.last()?.client_cpu_ns;
        let is_usable = |cpu: u32| host.client_cpus.is_empty() || host.client_cpus.contains(&cpu);
        let (mut cpus, mut busy_ns, mut stolen_ns) = (0, 0, 0);
        for times in host.cpus.iter().filter(|times| is_usable(times.cpu)) {
            cpus += 1;
            // Soft interrupts carry the load's own packets.
            busy_ns += times.busy_ns.saturating_sub(times.softirq_ns);
            stolen_ns += times.steal_ns;
        }
        Self::over(interval_ns, cpus, busy_ns.saturating_sub(own_ns), stolen_ns)
    }

    /// What others used of the CPUs over an interval; absent when it has no length.
    pub fn over(interval_ns: u64, cpus: usize, used_ns: u64, stolen_ns: u64) -> Option<Self> {
        (interval_ns > 0 && cpus > 0).then(|| Self {
            cpus,
            used_cpus: used_ns as f64 / interval_ns as f64,
            stolen_cpus: stolen_ns as f64 / interval_ns as f64,
        })
    }

    /// Why the others make a calibration doubtful, if they do. `when` says when they ran.
    pub(crate) fn doubt(self, when: impl fmt::Display) -> Option<Doubt> {
        let (others, when) = (self, when.to_string());
        if self.used_cpus > self.most(OTHERS_MAX) {
            Some(Doubt::Busy { when, others })
        } else if self.stolen_cpus > self.most(STOLEN_MAX) {
            Some(Doubt::Stolen { when, others })
        } else {
            None
        }
    }

    fn most(self, share: f64) -> f64 {
        share * self.cpus as f64
    }
}

/// Whether two measurements of one figure agree.
pub(crate) fn agree(one: f64, other: f64) -> bool {
    one.max(other) <= one.min(other) * (1.0 + APART_MAX)
}

/// What is wrong with errors of p50 and p99 at a known delay, if anything is.
pub(crate) fn inexact_delay(
    step: &str,
    p50_error_ns: Option<i64>,
    p99_error_ns: Option<i64>,
) -> Option<Doubt> {
    [
        ("p50", p50_error_ns, P50_ERROR_NS_MAX),
        ("p99", p99_error_ns, P99_ERROR_NS_MAX),
    ]
    .into_iter()
    .find_map(|(name, error_ns, most_ns)| {
        let error_ns = error_ns.filter(|error_ns| error_ns.unsigned_abs() > most_ns)?;
        Some(Doubt::Inexact {
            step: step.to_owned(),
            what: format!(
                "{name} of a known delay is off by {:.3} ms, and {:.0} ms is the most that is \
                 believed",
                error_ns as f64 / 1e6,
                most_ns as f64 / 1e6
            ),
        })
    })
}

/// What is wrong with the error of p99 of a known stall, if anything is.
pub(crate) fn inexact_stall(step: &str, error: f64) -> Option<Doubt> {
    (error.abs() > STALL_ERROR_MAX).then(|| Doubt::Inexact {
        step: step.to_owned(),
        what: format!(
            "p99 of a known stall is off by {:.0} %, and {:.0} % is the most that is believed",
            100.0 * error,
            100.0 * STALL_ERROR_MAX
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_busy_from_a_twentieth_of_its_cpus_on() {
        for (cpus, used_cpus, stolen_cpus, words) in [
            (2, 0.0, 0.0, None),
            (2, 0.1, 0.1, None),
            (2, 0.11, 0.0, Some("other programs used 0.11 CPUs of 2")),
            (2, 0.0, 0.11, Some("the hypervisor took 0.11 CPUs of 2")),
            (64, 3.0, 3.0, None),
            (64, 3.5, 0.0, Some("bears 3.20")),
        ] {
            let others = Others {
                cpus,
                used_cpus,
                stolen_cpus,
            };
            let doubt = others.doubt("then").map(|doubt| doubt.to_string());
            match (&doubt, words) {
                (Some(doubt), Some(words)) => assert!(doubt.contains(words), "{doubt}"),
                _ => assert_eq!(doubt.as_deref(), words, "{others:?}"),
            }
        }
        assert_eq!(Others::over(0, 2, 5, 5), None);
    }

    #[test]
    fn known_times_must_be_found() {
        const MS: i64 = 1_000_000;
        for (p50, p99, is_believed) in [
            (Some(80_000), Some(2 * MS), true),
            (None, None, true),
            (Some(2 * MS), Some(3 * MS), false),
            (Some(0), Some(201 * MS), false),
            (Some(0), Some(-11 * MS), false),
        ] {
            assert_eq!(inexact_delay("a", p50, p99).is_none(), is_believed);
        }
        assert_eq!(inexact_stall("a", -0.4), None);
        assert!(inexact_stall("a", 0.6).is_some());
        assert!(agree(100.0, 119.0) && agree(119.0, 100.0) && !agree(139.0, 260.0));
    }
}
