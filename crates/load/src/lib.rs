//! What to send and when: the plan of a run, its target, and how the load is shared out over
//! workers. Pure: no clock, no socket, no thread.

mod plan;
mod share;
mod target;
pub mod units;

pub use plan::{BackendChoice, Faults, Plan, RequestSpec, Reuse, Stop};
pub use share::share;
pub use target::{Target, TargetError};
