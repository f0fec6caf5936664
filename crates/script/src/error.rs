//! Why a script cannot be used.

use thiserror::Error;

/// Why a script cannot be used. Messages of Lua name the script and the line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// The script's name cannot be that of a file.
    #[error("the name of the script has a NUL byte in it")]
    Name,
    /// The file cannot be read, is no Lua, or fails where it stands.
    #[error("{message}")]
    Load {
        /// The error, as Lua words it.
        message: String,
    },
    /// `setup`, `init` or the first `request` fails.
    #[error("{message}")]
    SetUp {
        /// The error, as Lua words it.
        message: String,
    },
    /// A name has no address.
    #[error("unable to resolve {host}:{service} {reason}")]
    Resolve {
        /// The host, as it was looked up.
        host: String,
        /// Port or name of a service.
        service: String,
        /// The system's reason.
        reason: String,
    },
    /// No address of the target takes a connection.
    #[error("unable to connect to {host}:{service} {reason}")]
    Connect {
        /// The host, as it was looked up.
        host: String,
        /// Port or name of a service.
        service: String,
        /// The system's reason.
        reason: String,
    },
    /// It is loaded for longer than it may be.
    #[error(
        "{name} was not ready after {} s: {called} takes so long",
        *limit_ns as f64 / 1e9
    )]
    Late {
        /// The script.
        name: String,
        /// How long that may take, nanoseconds.
        limit_ns: u64,
        /// What does not return, in words.
        called: &'static str,
    },
    /// The system refuses a thread for it.
    #[error("cannot start a thread: {0}")]
    Thread(String),
    /// `teardown` or `done` fails.
    #[error("{message}")]
    Done {
        /// The error, as Lua words it.
        message: String,
    },
    /// A worker is still in its script.
    #[error("worker {} has not come back from the script", worker + 1)]
    Stuck {
        /// Number of the worker, from 0.
        worker: usize,
    },
    /// Lua can get no memory.
    #[error("there is no memory for another Lua state")]
    Memory,
}
