//! Questions that need several rounds of load: which server is faster, how one scales, and how much
//! it can take.
//!
//! Open `course` first: what decides which round comes next. `sweep`, `find` and `compare` are
//! courses.

mod comparable;
mod compare;
mod course;
mod find;
mod sweep;
mod turns;
mod values;

pub use comparable::differences;
pub use compare::{ComparisonCourse, LOOKS, compared, comparison};
pub use course::{ExperimentCourse, NextRound, make_rounds};
pub use find::{SearchCourse, capacity_plan};
pub use sweep::{SweepCourse, first_with_body, is_within_session, plan_at};
pub use turns::shuffled;
pub use values::{SWEEP_AXES, Varied};
