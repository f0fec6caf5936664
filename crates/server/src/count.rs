//! Numbers that one thread adds to and others read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that one thread adds to and others read.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    /// Adds. Only the worker that owns the count may call it, so no locked instruction is needed.
    pub(crate) fn add(&self, count: u64) {
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_add(count),
            Ordering::Release,
        );
    }

    /// Takes back what was added before; same rule.
    pub(crate) fn subtract(&self, count: u64) {
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_sub(count),
            Ordering::Release,
        );
    }

    /// Raises it to `value` if it is below; same rule.
    pub(crate) fn raise(&self, value: u64) {
        if value > self.0.load(Ordering::Relaxed) {
            self.0.store(value, Ordering::Release);
        }
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// What the loop of a worker counts, whatever its service.
#[derive(Debug, Default)]
pub(crate) struct LinkCounters {
    pub(crate) accepted: Count,
    pub(crate) closed: Count,
    pub(crate) accepts_failed: Count,
    pub(crate) handshakes_failed: Count,
    pub(crate) timed_out: Count,
    pub(crate) overflowed: Count,
    pub(crate) bytes_received: Count,
}

/// Adds `counts` to `totals`, each by its name, those that are not 0.
pub(crate) fn add_named(totals: &mut BTreeMap<String, u64>, names: &[&str], counts: &[Count]) {
    for (name, count) in names.iter().zip(counts) {
        match count.get() {
            0 => {}
            count => *totals.entry((*name).to_owned()).or_default() += count,
        }
    }
}
