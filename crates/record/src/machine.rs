//! A machine, and the kernel interface that brunt used on it.

use serde::{Deserialize, Serialize};

/// A machine in words and numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineDescription {
    /// Model of its processor; null where unknown, as all of the following.
    pub processor: Option<String>,
    /// CPUs that are online.
    pub cpus: Option<u32>,
    /// Memory, bytes.
    pub memory_bytes: Option<u64>,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// Name and version of the distribution.
    pub distribution: Option<String>,
}

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
