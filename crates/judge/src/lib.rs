//! What follows from a run: its figures and how well they are known, the invariants that decide
//! whether they may be printed, what limited it, and what several runs show together.
//!
//! Pure: a function of what `brunt-record` stores. The same record gives the same judgement.
//!
//! Open `judged` first: a run with all that follows from it. `figures` has the numbers,
//! `invariants` what must hold, `verdict/rules` what limited the run.

mod attainment;
mod behaviour;
mod capacity;
mod comparison;
mod elasticity;
mod facts;
mod figures;
mod invariants;
mod judged;
#[cfg(test)]
mod merged;
mod precision;
mod round_record;
mod statistics;
mod sweep;
pub mod units;
mod verdict;

pub use attainment::ObjectiveOutcome;
pub use behaviour::cpus::{Clean, CleanFigures, CpuLedger};
pub use behaviour::failures::{
    EndedStreams, FailureTimes, NoSuccess, NoSuccessCause, Outage, ServerFailure, Stretch,
};
pub use behaviour::steadiness::{Overload, Steadiness};
pub use capacity::search::{CapacityNext, CapacitySearch};
pub use capacity::{
    CAPACITY_DRAIN_NS_MAX, Capacity, CapacityEnd, CapacityOutcome, CapacityPlan, CapacityResult,
    CapacityStage, CapacityStep, rates_to_judge,
};
pub use comparison::paired::{PAIRS_LEAST, PAIRS_MAX, pairs_least};
pub use comparison::{
    Basis, Bound, ChangeLimit, Claim, Compared, ComparedRounds, ComparedSide, Comparison,
    ComparisonOutcome, Course, EndedEarly, LimitStands, Range, SIDES_MAX, SingleRun,
};
pub use elasticity::Effect;
pub use figures::bandwidth::{Bandwidth, BandwidthInterval, CountBeside};
pub use figures::{ABSENT_KEY, Figure, Held, Summary};
pub use invariants::{Finding, InvariantStatus, check, is_valid};
pub use judged::{Judged, RunFigures};
pub use precision::{
    Interval, NoInterval, Quantile, RateInterval, ResponseQuantiles, samples_needed,
};
pub use round_record::{
    ExperimentKind, ROUND_QUANTILES, RoundRecord, RoundResponse, RoundUse, VerdictIf,
};
pub use sweep::{
    SWEEP_ROUNDS_MAX, SWEEP_VALUES_MAX, Spread, Sweep, SweepAxis, SweepHighest, SweepPlan,
    SweepPoint, SweepRound,
};
pub use verdict::{AccusedSide, Grade, Judgement, OwnPart, Signal, SignalId, Verdict, shell_word};
