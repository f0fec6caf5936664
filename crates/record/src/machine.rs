//! A machine, as reports describe it.

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
