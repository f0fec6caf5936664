//! Threads and the kernel: the worker loop, its backends, limits and the course of a run.

pub mod backend;
pub mod clock;
pub mod socket;
pub mod tcp_info;
pub mod threads;
pub mod timers;
