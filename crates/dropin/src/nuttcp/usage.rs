//! nuttcp's usage and version.

/// The version whose client brunt stands in for.
pub(super) const VERSION: &str = "6.1.2";

/// What is printed for `-h`, and where something is wrong.
pub(super) const USAGE: &str = include_str!("usage.txt");
