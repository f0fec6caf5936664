//! How a command line ends that starts no run, or whose run cannot start.

use std::fmt::Display;
use std::io;

use brunt_engine::PrepareError;
use thiserror::Error;

/// What is printed, and the exit code: those of the peer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Error)]
#[error("{stderr}")]
pub struct Ending {
    /// Text for standard output.
    pub stdout: String,
    /// Text for standard error: whole lines, or empty.
    pub stderr: String,
    /// Exit code of the process.
    pub code: u8,
}

impl Ending {
    /// An ending with `text` on standard output, and success.
    pub(crate) fn printed(text: &str) -> Self {
        Self {
            stdout: text.to_owned(),
            ..Self::default()
        }
    }

    /// An ending with a line of brunt's own on standard error, and the exit code 1.
    pub(crate) fn of_brunt(reason: impl Display) -> Self {
        Self::error(&format!("brunt: {reason}"), 1)
    }

    /// An ending with one line on standard error and nothing on standard output.
    pub fn error(line: &str, code: u8) -> Self {
        Self {
            stderr: format!("{line}\n"),
            code,
            ..Self::default()
        }
    }
}

/// Succeeds where something is right.
///
/// # Errors
///
/// It is wrong: the ending.
pub(crate) fn ensure(is_right: bool, ending: impl FnOnce() -> Ending) -> Result<(), Ending> {
    if is_right { Ok(()) } else { Err(ending()) }
}

/// What the C library says of `error`: without the number that Rust puts behind it.
pub(crate) fn strerror(error: &io::Error) -> String {
    let text = error.to_string();
    let reason = text.trim_start_matches("failed to lookup address information: ");
    let end = reason.find(" (os error ").unwrap_or(reason.len());
    reason[..end].to_owned()
}

/// Why a target cannot be reached, in the words of the C library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The name of the server has no address.
    Resolve(String),
    /// Nobody answers; with the system's number of the reason, where there is one.
    Connect(String, Option<u32>),
}

impl Cause {
    /// That of a failed preparation; absent where it is another one.
    pub(crate) fn of(error: &PrepareError) -> Option<Self> {
        match error {
            PrepareError::Resolve { reason, .. } => Some(Self::Resolve(strerror(reason))),
            PrepareError::Unreachable { reason, .. } => {
                let code = reason.raw_os_error().map(i32::unsigned_abs);
                Some(Self::Connect(strerror(reason), code))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_those_of_the_c_library() {
        let refused = io::Error::from_raw_os_error(111);
        assert_eq!(strerror(&refused), "Connection refused");
        let resolver = "failed to lookup address information: Name or service not known";
        assert_eq!(
            strerror(&io::Error::other(resolver)),
            "Name or service not known"
        );
        assert_eq!(strerror(&io::Error::other("timed out")), "timed out");
    }
}
