//! What is read beside a load: the machine, the network and the server's processes while the window
//! lasts, metrics pages, and the server's own count of requests.
//!
//! Open `observer` first: the thread that reads ten times a second, and what it keeps. What it reads
//! of the machine is in `machine`, `steal` and `programs`; of the server, in `server`.

pub mod cgroup;
mod fetch;
#[cfg(any(test, feature = "fuzz"))]
mod fuzz;
pub mod host;
pub mod machine;
pub mod memory;
mod netlink;
pub mod network;
pub mod observer;
mod programs;
mod prometheus;
mod route;
mod series;
pub mod server;
mod server_connections;
pub mod server_count;
pub mod server_window;
mod steal;
pub mod thread_meter;

pub use fetch::{FetchError, FetchFault, ask, speaks_tls};
#[cfg(any(test, feature = "fuzz"))]
pub use fuzz::fuzz_page;
