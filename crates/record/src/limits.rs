//! Most of what a stored run may hold, where several parts of it have the same limit.

/// Most workers of an agent.
pub const WORKERS_MAX: u32 = 4_096;
/// Most CPUs of one machine: Linux knows no more.
pub const CPUS_MAX: usize = 8_192;
/// Most findings, notes, and fields that could not be read: far more than there are.
pub const REMARKS_MAX: usize = 1_000;
/// Most words of a command line that is kept.
pub const COMMAND_WORDS_MAX: usize = 1 << 16;
