//! Threads and the kernel: the worker loop, its backends, limits and the course of a run.

mod assignment;
pub mod backend;
mod backlog;
mod blocking;
mod budget;
pub mod clock;
mod connection;
mod control;
mod describe;
mod evidence;
mod expectation;
mod failure;
mod faults;
mod fetch;
mod fuzz;
mod gate;
mod host;
mod limits;
mod negotiate;
mod prepare;
mod prometheus;
mod protocol;
mod receive_stamps;
mod run;
mod server_count;
mod simulate;
pub mod socket;
mod sources;
mod spin;
pub mod tcp_info;
mod thread_meter;
pub mod threads;
pub mod timers;
mod tls_config;
#[cfg(test)]
mod tls_peer;
mod witness;
mod worker;

pub use control::{Control, Progress};
pub use evidence::server::WatchError;
#[doc(hidden)]
pub use fuzz::{
    fuzz_cgroup, fuzz_control_message, fuzz_counter_page, fuzz_page, fuzz_prometheus,
    fuzz_socket_tables,
};
pub use host::{Cpus, available_memory_bytes, usable_cpus};
pub use limits::{LimitError, ports_per_address, raise_descriptor_limit};
pub use negotiate::{Instead, NegotiateError, Step};
pub use prepare::{PrepareError, Prepared, prepare, uring_refusal};
pub use protocol::EncodeError;
pub use run::RunError;
pub use server_count::ServerCountError;
pub use simulate::simulate;
pub use spin::Spinner;
pub use tls_config::TlsConfigError;
