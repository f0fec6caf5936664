//! The certificate of `brunt calibrate`: what brunt itself reaches on a machine, and how exact it
//! is there.

use brunt_protocols::Protocol;
use serde::{Deserialize, Serialize};

use crate::Backend;
use crate::limits::{REMARKS_MAX, WORKERS_MAX};
use brunt_load::bounded;

/// Most ceilings of a machine: one per backend and number of workers.
const CEILINGS_MAX: usize = 2 * WORKERS_MAX as usize;
/// Most rows on accuracy: a few per backend.
const ACCURACIES_MAX: usize = 100;

/// What was measured on one machine with one version of brunt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Calibration {
    /// Version of this layout: 1.
    pub format: u32,
    /// Version of brunt.
    pub brunt_version: String,
    /// The machine: its name, kernel and processor in words.
    pub machine: String,
    /// CPUs that brunt could use.
    pub usable_cpus: u32,
    /// When the calibration was made, milliseconds since 1970-01-01 UTC.
    pub made_unix_ms: u64,
    /// What was reached against the null server on loopback, per backend and number of workers.
    #[serde(deserialize_with = "bounded::list::<_, _, CEILINGS_MAX>")]
    pub ceilings: Vec<Ceiling>,
    /// How exact latencies are, per backend.
    #[serde(deserialize_with = "bounded::list::<_, _, ACCURACIES_MAX>")]
    pub accuracy: Vec<Accuracy>,
    /// How exact sleeping and the clock are.
    pub clock: ClockQuality,
    /// What the machine allows.
    pub limits: MachineLimits,
    /// What was left out, and why: one sentence each.
    #[serde(default, deserialize_with = "bounded::list::<_, _, REMARKS_MAX>")]
    pub notes: Vec<String>,
}

/// The most that one backend and number of workers reached.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ceiling {
    /// Kernel interface.
    pub backend: Backend,
    /// Worker threads.
    pub workers: u32,
    /// Requests per second without a body.
    pub requests_per_s: f64,
    /// Bytes received per second with large bodies.
    pub bytes_per_s: f64,
    /// CPU of one request on the client's side, nanoseconds; absent where it was not read.
    pub cpu_ns_per_request: Option<f64>,
}

/// Measured quantiles against the truth: answers after a known delay, and a known stall.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Accuracy {
    /// Kernel interface.
    pub backend: Backend,
    /// The delay of each answer, nanoseconds.
    pub delay_ns: u64,
    /// How much more than the delay was measured at the median, nanoseconds; absent with too few
    /// samples.
    pub p50_error_ns: Option<i64>,
    /// How much more than the delay was measured at p99, nanoseconds; absent with too few samples.
    pub p99_error_ns: Option<i64>,
    /// How much more than the delay was measured at p99.9, nanoseconds; absent with too few
    /// samples.
    pub p99_9_error_ns: Option<i64>,
    /// A server silent for a known time: measured p99 against arithmetic, as a ratio less 1.
    pub stall_p99_error: Option<f64>,
}

/// Sleep and clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClockQuality {
    /// Time of one reading of the clock, nanoseconds.
    pub read_ns: f64,
    /// Smallest step between two readings that differ, nanoseconds.
    pub step_ns: u64,
    /// How late a sleep ends, median, nanoseconds.
    pub sleep_late_ns_p50: u64,
    /// How late a sleep ends, p99, nanoseconds.
    pub sleep_late_ns_p99: u64,
    /// How late the latest sleep ends, nanoseconds.
    pub sleep_late_ns_max: u64,
}

/// What the machine allows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MachineLimits {
    /// File descriptors that a process may have.
    pub descriptors: u64,
    /// Local ports for outgoing connections, per source and target address.
    pub ports: u64,
    /// Longest accept queue of a listening socket.
    pub accept_queue: u64,
    /// Why io_uring cannot be used; absent when it can.
    pub uring_refused: Option<String>,
}

impl Calibration {
    /// The layout that this version writes and reads.
    pub const FORMAT: u32 = 1;
    /// What is spoken in one, in clear text.
    pub const PROTOCOL: Protocol = Protocol::HTTP1;

    /// The ceiling of this backend: with as many workers, else with the number next below it.
    pub fn ceiling(&self, backend: Backend, workers: u32) -> Option<&Ceiling> {
        self.ceilings
            .iter()
            .filter(|ceiling| ceiling.backend == backend && ceiling.workers <= workers)
            .max_by_key(|ceiling| ceiling.workers)
    }
}
