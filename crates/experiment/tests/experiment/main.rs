//! Experiments with simulated servers and machines, of which the truth is known.

mod calibrate;
mod compare;
mod compare_truth;
mod diagnose;
mod find;
