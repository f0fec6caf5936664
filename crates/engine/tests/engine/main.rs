//! The engine as a whole: the same cases on every backend, and properties of simulated runs.

mod common;
mod counts;
mod failures;
mod phases;
mod simulation;
mod stamps;
