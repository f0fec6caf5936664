//! What happened in a run: the recorder, histograms, the window, and the stored run of several
//! agents, which is merged exactly. What follows from a run is worked out by `brunt-judge`.
//!
//! Open `recorder` first: what a worker tells of each request. What it keeps is in `record` and
//! `histogram`; the run that is stored, and how runs merge, in `run`.
//!
//! Pure: no clock, no socket, no thread. Times are `u64` nanoseconds on the one monotonic clock of
//! the run while it is recorded (its origin is the start of the process), so a field such as
//! `start_ns` is an instant and `duration_ns` a length. In a [`Run`] instants are `i64` nanoseconds
//! from the start of the window.

mod by_name;
mod counted;
mod environment;
mod evidence;
mod failure;
mod filled;
pub mod grid;
mod histogram;
mod intervals;
mod loglinear;
mod merged;
mod objective;
mod record;
mod recorder;
mod request_log;
mod run;
mod series;
mod sparse;
mod split;
mod stages;
mod tally;

pub use brunt_load::SessionCounts;
pub use brunt_load::protocol::{
    DepthPlace, Greeting, Protocol, ProtocolDescription, Transport, Unit,
};
pub use by_name::{
    GENERATED_NAMES_MAX, NAMES_MAX, NO_NAME, NameRecord, forget_unnamed, merge_names,
};
pub use counted::{count, counted};
pub use environment::{
    Backend, ClientDescription, CpuUse, Environment, GeneratorUse, MachineDescription, Placement,
    ServerDescription, cpu_list,
};
pub use evidence::{
    Conntrack, CpuTimes, Evidence, HostEvidence, HostPoint, NetworkEvidence, Observer,
    OtherPrograms, PROGRAMS_MAX, ProgramUse, Route, ServerConnections, ServerCount, ServerEvidence,
    ServerPoint, ServerScope, ServerThreads, ServerWindow, Stolen, TcpCounters, Throttling,
};
pub use failure::{FailureCounts, FailureKind, FailureScope};
#[cfg(any(test, feature = "fuzz"))]
pub use filled::fuzz_buckets;
pub use histogram::{Histogram, Latencies, max_at_least_ns, mean_at_least_ns, with_bounds};
pub use intervals::{IntervalHistogram, IntervalRecorder, Intervals, Share};
pub use objective::{OBJECTIVES_MAX, Objective};
pub use record::{
    ArrivalCounts, CarriedIn, Downtime, ErrorBody, Halving, KernelSample, LiveConnections,
    MissingConnections, Once, Pause, Population, SetUp, StreamAccount, StreamReading, StreamRecord,
    ThreadUse, WorkerEdges, WorkerRecord,
};
pub use recorder::{Answer, LogPlace, Opening, Recorder, Recording, RequestTiming, Skip};
pub use request_log::{LoggedEnd, LoggedRequest, LoggedResponse, RequestLog};
pub use run::{
    AGENTS_MAX, AgentClock, AgentRecord, AgreedClock, FleetAgent, HostUse, LimitsChecked,
    LostAgent, MergeError, Negotiated, NegotiatedTls, Run, RunEdges, Seeds, WORKERS_MAX, Window,
    after_ns, leaf_differences,
};
pub use series::{Series, SeriesPoint};
pub use sparse::SparseHistogram;
pub use split::{
    Bucket as SplitBucket, Instants, MeanParts, Misplaced, Parts, Split, TooFewInTail,
};
pub use stages::{STAGES_RECORDED_MAX, StageRecord};
pub use tally::{
    ControlFrames, Phase, PhaseTallies, QuicCounts, ReplyOutcome, StatusCounts, Tally,
};
