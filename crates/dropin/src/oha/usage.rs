//! What oha prints about itself, in brunt's words.

use super::VERSION;

/// The usage text.
pub(super) const USAGE: &str = include_str!("usage.txt");

/// The line of `--version`.
pub(super) fn version() -> String {
    format!("oha {VERSION} [brunt {}]\n", env!("CARGO_PKG_VERSION"))
}
