//! Questions that need several rounds of load: which server is faster, how one scales, and how much
//! it can take.

mod compare;
mod find;
mod sweep;
mod turns;

pub use compare::compare;
pub use find::{Finder, capacity_plan};
pub use sweep::{is_within_session, plan_at, sweep_order};
pub use turns::{shuffled, turns};
