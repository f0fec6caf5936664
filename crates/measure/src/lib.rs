//! What happened in a run: the recorder, histograms, the window, the stored run and the
//! invariants that decide whether its figures may be printed.
//!
//! Pure: no clock, no socket, no thread. Times are `u64` nanoseconds on the one monotonic clock of
//! the run (its origin is the start of the process), so a field such as `start_ns` is an instant
//! and `duration_ns` a length.

mod calibration;
mod diagnosis;
mod evidence;
mod failure;
mod histogram;
mod intervals;
mod invariants;
mod latencies;
mod loglinear;
mod once;
mod overload;
mod quantile;
mod record;
mod recorder;
mod run;
mod series;
mod split;
mod status;
mod steadiness;
mod student_t;
mod summary;
mod tally;
mod trend;
mod verdict;

pub use calibration::{Accuracy, Calibration, Ceiling, ClockQuality, MachineLimits};
pub use diagnosis::{Diagnosis, DiagnosisPart, Effect};
pub use evidence::{
    Conntrack, CpuTimes, Evidence, HostEvidence, HostPoint, NetworkEvidence, Observer, Route,
    ServerCount, ServerEvidence, ServerPoint, ServerScope, ServerThreads, TcpCounters, Throttling,
};
pub use failure::{FailureCounts, FailureKind, FailureScope};
pub use histogram::{Histogram, HistogramError};
pub use intervals::{IntervalHistogram, Intervals};
pub use invariants::{Finding, INVARIANTS, Invariant, Standing, check, is_valid};
pub use latencies::Latencies;
pub use once::Once;
pub use overload::Overload;
pub use quantile::{Interval, Quantile, samples_needed};
pub use record::{
    ArrivalCounts, KernelSample, LiveConnections, Population, ThreadUse, WorkerEdges, WorkerRecord,
};
pub use recorder::{Answer, Issue, Recorder, Recording, Skip};
pub use run::{
    Backend, HostUse, LimitsChecked, LoadDescription, ModelDescription, Protocol, Run, RunEdges,
    ScheduleDescription, StageDescription, TlsDescription, Wall, Window,
};
pub use series::{Series, SeriesPoint};
pub use split::{Instants, MeanParts, Parts, Split};
pub use status::StatusCounts;
pub use steadiness::{RateInterval, Steadiness};
pub use summary::{Figure, Summary};
pub use tally::{Phase, PhaseTallies, Tally};
pub use verdict::{
    Grade, Judgement, SIGNALS, Side, Signal, SignalRule, VERDICT_RULES, Verdict, VerdictRule,
};
