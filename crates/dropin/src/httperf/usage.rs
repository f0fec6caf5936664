//! What httperf prints about itself.

/// The usage text.
pub(super) const USAGE: &str = include_str!("usage.txt");

/// The version, which runs print that are asked for it.
pub(super) const VERSION: &str =
    "httperf: httperf-0.9.0 compiled without DEBUG without TIME_SYSCALLS.\n";
