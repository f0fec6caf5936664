//! How h2load ends where its command line is wrong.

use crate::Ending;

/// The line on standard error, and exit code 1.
pub(super) fn error(line: &str) -> Ending {
    Ending::error(line, 1)
}
