//! What follows from a run: its figures and how well they are known, the invariants that decide
//! whether they may be printed, what limited it, and what several runs show together.
//!
//! Pure: a function of what `brunt-record` stores. The same record gives the same judgement.

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
mod run_figures;
mod statistics;
mod sweep;
pub mod units;
mod verdict;

pub use attainment::ObjectiveOutcome;
pub use behaviour::clean::{Clean, CleanFigures};
pub use behaviour::cpu_ledger::CpuLedger;
pub use behaviour::ended_streams::EndedStreams;
pub use behaviour::failure_times::FailureTimes;
pub use behaviour::outage::{ServerFailure, Stretch};
pub use behaviour::overload::Overload;
pub use behaviour::silence::Outage;
pub use behaviour::steadiness::Steadiness;
pub use behaviour::success::{NoSuccess, NoSuccessCause, NoSuccessPopulation};
pub use capacity::rates::{CONFIRMATIONS, CapacityStepReport};
pub use capacity::search::{CapacityNext, CapacitySearch};
pub use capacity::windows::{CAPACITY_DRAIN_NS_MAX, rates_to_judge};
pub use capacity::{
    CAPACITY_STEPS_MAX, Capacity, CapacityKind, CapacityObjective, CapacityOutcome, CapacityPlan,
    CapacityResult, CapacityStage, CapacityStep,
};
pub use comparison::compared::Compared;
pub use comparison::compared_rounds::{
    ChangeLimit, ComparedPair, ComparedRounds, ComparedSide, ComparisonKind, ComparisonOutcome,
    Course, EndedEarly, SIDES_MAX,
};
pub use comparison::paired::{PAIRS_LEAST, PAIRS_MAX, Paired, pairs_least};
pub use comparison::single_run::{Range, SingleRun};
pub use comparison::{Basis, Bound, Claim, Comparison};
pub use elasticity::Effect;
pub use figures::bandwidth::{Bandwidth, BandwidthInterval, CountBeside};
pub use figures::figure::{ABSENT_KEY, Figure};
pub use figures::held::Held;
pub use figures::summary::Summary;
pub use invariants::{Finding, InvariantStatus, check, is_valid};
pub use judged::Judged;
pub use precision::ResponseQuantiles;
pub use precision::confidence::{Interval, NoInterval, RateInterval, samples_needed};
pub use precision::quantile::Quantile;
pub use round_record::{ROUND_QUANTILES, RoundRecord, RoundResponse, RoundUse, VerdictIf};
pub use run_figures::RunFigures;
pub use sweep::knee::{Bend, knee};
pub use sweep::spread::Spread;
pub use sweep::{
    NeighbourElasticity, SWEEP_ROUNDS_MAX, SWEEP_VALUES_MAX, Sweep, SweepAxis, SweepHighest,
    SweepKind, SweepPlan, SweepPoint, SweepRound, UseSpread, VerdictCount, VerdictStretch,
    VerdictTurn,
};
pub use verdict::{Grade, Judgement, OwnPart, Side, Signal, SignalId, Verdict, shell_word};
