//! How a command line ends that starts no run, or whose run cannot start.

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

    /// An ending with one line on standard error and nothing on standard output.
    pub(crate) fn error(line: &str, code: u8) -> Self {
        Self {
            stdout: String::new(),
            stderr: format!("{line}\n"),
            code,
        }
    }
}

/// What the C library says of `error`: without the number that Rust puts behind it.
pub(crate) fn strerror(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.strip_prefix("failed to lookup address information: ");
    let text = text.map_or_else(|| error.to_string(), str::to_owned);
    match text.rfind(" (os error ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

/// The cause of a failed preparation, in the words of the C library. Absent where it is neither the
/// name nor the connection.
pub(crate) fn cause(error: &PrepareError) -> Option<Cause> {
    match error {
        PrepareError::Resolve { reason, .. } => Some(Cause::Resolve(strerror(reason))),
        PrepareError::Unreachable { reason, .. } => {
            let code = reason.raw_os_error().map(i32::unsigned_abs);
            Some(Cause::Connect(strerror(reason), code))
        }
        _ => None,
    }
}

/// Why a target cannot be reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The name of the server has no address.
    Resolve(String),
    /// Nobody answers; with the system's number of the reason, where there is one.
    Connect(String, Option<u32>),
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
