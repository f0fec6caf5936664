//! Threads and the kernel: the worker loop, its backends, limits and the course of a run.

mod assignment;
pub mod backend;
mod backlog;
mod budget;
pub mod clock;
mod connection;
mod control;
mod describe;
mod expectation;
mod failure;
mod faults;
mod gate;
mod host;
mod limits;
mod prepare;
mod receive_stamps;
mod request;
mod run;
mod simulate;
pub mod socket;
mod spin;
pub mod tcp_info;
mod thread_meter;
pub mod threads;
pub mod timers;
mod worker;

pub use control::{Control, Progress};
pub use host::{Cpus, usable_cpus};
pub use limits::{LimitError, ports_per_address, raise_descriptor_limit};
pub use prepare::{PrepareError, Prepared, prepare, uring_refusal};
pub use run::RunError;
pub use simulate::simulate;
pub use spin::Spinner;
