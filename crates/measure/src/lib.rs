//! What happened in a run: the recorder, histograms, the window, the stored run and the
//! invariants that decide whether its figures may be printed.
//!
//! Pure: no clock, no socket, no thread. Times are `u64` nanoseconds on the one monotonic clock of
//! the run while it is recorded (its origin is the start of the process), so a field such as
//! `start_ns` is an instant and `duration_ns` a length. In a [`Run`] instants are `i64` nanoseconds
//! from the start of the window.

mod attainment;
mod backend;
mod bandwidth;
mod binomial;
mod bounded;
mod by_name;
mod calibration;
mod capacity;
mod capacity_search;
mod carried_in;
mod clean;
mod compared;
mod compared_rounds;
mod comparison;
mod confidence;
mod counted;
mod cpu_ledger;
mod cpu_use;
mod diagnosis;
mod ended_streams;
mod environment;
mod error_body;
mod evidence;
mod failure;
mod failure_times;
mod generator_use;
mod grid;
mod halving;
mod hdr_v2;
mod held;
mod histogram;
mod intervals;
mod invariants;
mod judged;
mod knee;
mod latencies;
mod loglinear;
mod machine;
mod mean_interval;
mod name;
#[cfg(test)]
mod noise;
mod objective;
mod once;
mod opening;
mod outage;
mod overlap;
mod overload;
mod paired;
mod placement;
mod precision;
mod quantile;
mod record;
mod recorder;
#[cfg(test)]
mod reference;
mod request_log;
mod round_record;
mod run;
mod series;
mod silence;
mod single_run;
mod sparse;
mod split;
mod spread;
mod stages;
mod status;
mod steadiness;
mod stream_record;
mod student_t;
mod success;
mod summary;
mod sweep;
mod tally;
mod trend;
mod trial;
mod unfinished;
mod variation;
mod verdict;
mod window;
mod with_connect;

pub use attainment::ObjectiveOutcome;
pub use backend::Backend;
pub use bandwidth::{Bandwidth, BandwidthInterval, CountBeside};
pub use bounded::WORKERS_MAX;
pub use by_name::{
    FailureCount, GENERATED_NAMES_MAX, NAMES_MAX, NO_NAME, NameRecord, StatusCount, forget_unnamed,
    merge_names, name_buckets_max,
};
pub use calibration::{Accuracy, Calibration, Ceiling, ClockQuality, MachineLimits};
pub use capacity::{
    CAPACITY_STEPS_MAX, Capacity, CapacityKind, CapacityObjective, CapacityOutcome, CapacityPlan,
    CapacityResult, CapacityStage, CapacityStep,
};
pub use capacity_search::{
    CAPACITY_DRAIN_NS_MAX, CONFIRMATIONS, CapacityNext, CapacitySearch, CapacityStepReport,
    rates_to_judge,
};
pub use carried_in::CarriedIn;
pub use clean::{Clean, CleanFigures};
pub use compared::Compared;
pub use compared_rounds::{
    ChangeLimit, ComparedPair, ComparedRounds, ComparedSide, ComparisonKind, Course, EndedEarly,
    SIDES_MAX,
};
pub use comparison::{Basis, Bound, Claim, Comparison};
pub use confidence::{Interval, NoInterval, RateInterval, samples_needed};
pub use counted::{count, counted};
pub use cpu_ledger::CpuLedger;
pub use cpu_use::CpuUse;
pub use diagnosis::{Diagnosis, DiagnosisPart, Effect};
pub use ended_streams::EndedStreams;
pub use environment::{ClientDescription, Environment, ServerDescription};
pub use error_body::ErrorBody;
pub use evidence::{
    Conntrack, CpuTimes, Evidence, HostEvidence, HostPoint, NetworkEvidence, Observer,
    OtherPrograms, PROGRAMS_MAX, ProgramUse, Route, ServerConnections, ServerCount, ServerEvidence,
    ServerPoint, ServerScope, ServerThreads, ServerWindow, Stolen, TcpCounters, Throttling,
};
pub use failure::{FailureCounts, FailureKind, FailureScope};
pub use failure_times::FailureTimes;
pub use generator_use::{GeneratorUse, SessionUse};
pub use halving::Halving;
pub use hdr_v2::HdrV2Error;
#[cfg(any(test, feature = "fuzz"))]
pub use hdr_v2::fuzz_hdr_v2;
pub use held::Held;
pub use histogram::{Histogram, HistogramError};
pub use intervals::{IntervalHistogram, Intervals};
pub use invariants::{Finding, INVARIANTS, Invariant, Scope, Standing, check, is_valid};
pub use judged::Judged;
pub use knee::{Bend, knee};
pub use latencies::Latencies;
pub use machine::MachineDescription;
pub use name::Name;
pub use objective::{OBJECTIVES_MAX, Objective};
pub use once::Once;
pub use opening::Opening;
pub use outage::{Outage, ServerFailure, Stretch};
pub use overload::Overload;
pub use paired::{PAIRS_LEAST, PAIRS_MAX, Paired, pairs_least};
pub use placement::{Placement, PlacementReason, cpu_list};
pub use quantile::Quantile;
pub use record::{
    ArrivalCounts, Downtime, KernelSample, LiveConnections, MissingConnections, Pause, Population,
    SetUp, ThreadUse, WorkerEdges, WorkerRecord,
};
pub use recorder::{Answer, LogPlace, Recorder, Recording, RequestTiming, Skip};
pub use request_log::{LoggedEnd, LoggedRequest, LoggedResponse, RequestLog};
pub use round_record::{ROUND_QUANTILES, RoundRecord, RoundResponse, RoundUse, VerdictIf};
pub use run::{
    AGENTS_MAX, AgentClock, AgentRecord, Amounts, ArrivalProcess, BackendChoice, HostUse,
    Http2Description, HttpChoice, LimitsChecked, ListDescription, ListOrder, METHODS_MAX,
    MergeError, MessagesDescription, ModelDescription, Negotiated, NegotiatedTls,
    OpeningDescription, PlanDescription, Protocol, RequestDescription, RequestsDescription, Run,
    RunEdges, ScheduleDescription, Seeds, SocketsDescription, Spin, StageDescription, StageRates,
    Stamps, StopDescription, StreamsDescription, ThinkDescription, ThinkSpread, TlsDescription,
    TlsVersion, Unit, UnsoundRun, WebSocketDescription, WindowOverlap, after_ns,
};
pub use series::{Series, SeriesPoint};
pub use single_run::{Range, SingleRun};
pub use sparse::SparseHistogram;
pub use split::{Instants, MeanParts, Misplaced, Parts, Split, TooFewInTail};
pub use spread::Spread;
pub use stages::{STAGES_RECORDED_MAX, StageRecord};
pub use status::{ReplyOutcome, StatusCounts};
pub use steadiness::Steadiness;
pub use stream_record::{StreamAccount, StreamReading, StreamRecord};
pub use success::{NoSuccess, NoSuccessCause, NoSuccessPopulation};
pub use summary::{Figure, Summary, Trials};
pub use sweep::{
    NeighbourElasticity, SWEEP_ROUNDS_MAX, SWEEP_VALUES_MAX, Sweep, SweepAxis, SweepHighest,
    SweepKind, SweepPlan, SweepPoint, SweepRound, UseSpread, VerdictCount, VerdictStretch,
    VerdictTurn,
};
pub use tally::{ControlFrames, Phase, PhaseTallies, Tally};
pub use trial::TrialRecord;
pub use verdict::{
    Grade, Judgement, SIGNALS, Side, Signal, SignalId, SignalRule, VERDICT_RULES, Verdict,
    VerdictRule, shell_word,
};
pub use window::Window;
