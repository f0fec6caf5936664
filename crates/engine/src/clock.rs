//! The one clock: the only file that asks the system for the time.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

static ORIGIN: OnceLock<Instant> = OnceLock::new();

/// Nanoseconds of CLOCK_MONOTONIC since the first call in this process. The binary calls it first
/// thing, so that the origin is the start of the process.
pub fn now_ns() -> u64 {
    ORIGIN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Wall-clock time, milliseconds since 1970-01-01 UTC: for labels only.
pub fn unix_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_millis() as u64)
}
