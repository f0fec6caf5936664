//! What a plan holds that may be secret, and files that it needs: what a stored run has of them is
//! how many bytes there were.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::stored_bytes;

/// Something that may be secret. It is sent to a process that runs the plan, and is not stored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Secret<T> {
    /// The secret itself.
    Given(T),
    /// The secret was left out.
    Withheld {
        /// Bytes that it had, at most.
        bytes: u64,
    },
}

impl<T> Secret<T> {
    /// The secret; absent where it was left out.
    pub fn given(&self) -> Option<&T> {
        match self {
            Self::Given(secret) => Some(secret),
            Self::Withheld { .. } => None,
        }
    }

    /// Bytes of it, at most, as `count` counts them.
    pub fn bytes(&self, count: impl Fn(&T) -> usize) -> u64 {
        match self {
            Self::Given(secret) => count(secret) as u64,
            Self::Withheld { bytes } => *bytes,
        }
    }

    /// Leaves it out.
    pub(crate) fn withhold(&mut self, count: impl Fn(&T) -> usize) {
        *self = Self::Withheld {
            bytes: self.bytes(count),
        };
    }
}

impl<T> From<T> for Secret<T> {
    fn from(secret: T) -> Self {
        Self::Given(secret)
    }
}

/// Shows nothing of it.
impl<T> fmt::Debug for Secret<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Given(_) => "Given(..)",
            Self::Withheld { .. } => "Withheld(..)",
        })
    }
}

/// A file that a plan needs. A plan that goes to another process holds what is in it: paths mean
/// nothing elsewhere.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanFile {
    /// The path of the file on this machine: it is read before the run. A plan with such files
    /// cannot be serialised.
    #[serde(skip)]
    At(PathBuf),
    /// What is in it.
    Content {
        /// What messages call it: its path, as typed.
        name: String,
        /// The content of the file.
        #[serde(with = "stored_bytes")]
        bytes: Vec<u8>,
    },
    /// The value was left out, since it may be secret.
    Withheld {
        /// What messages call it: its path, as typed.
        name: String,
    },
}

impl PlanFile {
    /// What messages call it.
    pub fn name(&self) -> String {
        match self {
            Self::At(path) => path.display().to_string(),
            Self::Content { name, .. } | Self::Withheld { name } => name.clone(),
        }
    }

    /// The path of the file, while it was not read.
    pub fn unread(&self) -> Option<&Path> {
        match self {
            Self::At(path) => Some(path),
            Self::Content { .. } | Self::Withheld { .. } => None,
        }
    }

    /// Leaves out what is in it.
    pub(crate) fn withhold(&mut self) {
        *self = Self::Withheld { name: self.name() };
    }

    /// Whether what is in it was left out.
    pub(crate) fn is_withheld(&self) -> bool {
        matches!(self, Self::Withheld { .. })
    }
}

impl<P: Into<PathBuf>> From<P> for PlanFile {
    fn from(path: P) -> Self {
        Self::At(path.into())
    }
}

/// Shows nothing of its content.
impl fmt::Debug for PlanFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PlanFile({:?})", self.name())
    }
}
