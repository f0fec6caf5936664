//! The kernel interface that carried a load.

use serde::{Deserialize, Serialize};

/// The kernel interface under a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// io_uring.
    Uring,
    /// epoll.
    Epoll,
    /// A simulated network in virtual time.
    Sim,
}

impl Backend {
    /// The backend's name as typed and printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uring => "io_uring",
            Self::Epoll => "epoll",
            Self::Sim => "sim",
        }
    }
}
