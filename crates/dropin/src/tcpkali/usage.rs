//! What tcpkali's help is here: the options that brunt takes.

/// The help text of `-h`.
pub(super) const SHORT: &str = include_str!("usage-short.txt");
/// The help text of `--help`.
pub(super) const LONG: &str = include_str!("usage-long.txt");
