//! The kernel as the load and the reference server use it: backends over connections in numbered
//! slots, TLS over each of them, sockets, clock, timers and threads.
//!
//! Open `backend` first: what a worker asks of the kernel, and the events that answer it. `uring`
//! and `epoll` are the two that do it, `tls` stands before either.

pub mod backend;
pub mod blocking;
pub mod clock;
pub mod cpu;
#[cfg(test)]
mod datagram_tests;
mod datagrams;
pub mod epoll;
pub mod files;
pub mod heap;
#[cfg(test)]
mod kernel_tests;
pub mod listener;
pub mod process_group;
pub mod receive_stamps;
pub mod socket;
pub mod spin;
#[cfg(test)]
mod stream_tests;
pub mod tcp_info;
pub mod threads;
pub mod timers;
pub mod tls;
pub mod tls_config;
#[cfg(any(test, feature = "test-peers"))]
pub mod tls_peer;
pub mod transport;
pub mod uring;
pub mod virtual_machine;
