//! Experiments with simulated servers and machines, of which the truth is known.

mod compare;
mod compare_truth;
mod find;
mod sweep;
