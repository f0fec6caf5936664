//! A value that is written once, with every further attempt counted.

use serde::{Deserialize, Serialize};

/// A write-once instant, nanoseconds. A second `set` changes nothing and is counted, so that
/// invariant W3 can see it. While a run is recorded it is one of the clock of the process; in a run
/// it counts from the start of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Once {
    ns: Option<i64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    rewrites: u32,
}

impl Once {
    /// An edge that is already written.
    pub fn at(ns: i64) -> Self {
        Self {
            ns: Some(ns),
            rewrites: 0,
        }
    }

    /// Writes the instant, unless it was written before.
    pub fn set(&mut self, ns: u64) {
        match self.ns {
            None => self.ns = Some(i64::try_from(ns).unwrap_or(i64::MAX)),
            Some(_) => self.rewrites = self.rewrites.saturating_add(1),
        }
    }

    /// The instant; absent where it was never written.
    pub fn get(&self) -> Option<i64> {
        self.ns
    }

    /// This instant, counted from `origin_ns`.
    #[must_use]
    pub fn since(self, origin_ns: u64) -> Self {
        Self {
            ns: self.ns.map(|ns| since_ns(ns, origin_ns)),
            rewrites: self.rewrites,
        }
    }

    /// How often something tried to write it again.
    pub fn rewrites(&self) -> u32 {
        self.rewrites
    }
}

/// An instant, counted from `origin_ns`.
pub(crate) fn since_ns(ns: i64, origin_ns: u64) -> i64 {
    ns.saturating_sub(i64::try_from(origin_ns).unwrap_or(i64::MAX))
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_first_write_counts() {
        let mut edge = Once::default();
        assert_eq!((edge.get(), edge.rewrites()), (None, 0));
        edge.set(5);
        edge.set(7);
        assert_eq!((edge.get(), edge.rewrites()), (Some(5), 1));
        assert_eq!((Once::at(5).get(), Once::at(5).rewrites()), (Some(5), 0));
    }
}
