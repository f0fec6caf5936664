//! Who waits for which instant.

use std::collections::BTreeSet;

/// Those that wait for an instant, each with a note of its own instant. A set, because what is over
/// leaves it at once: otherwise a client could pile up long delays.
#[derive(Debug)]
pub(crate) struct Wakes<K>(BTreeSet<(u64, K)>);

impl<K> Default for Wakes<K> {
    fn default() -> Self {
        Self(BTreeSet::new())
    }
}

impl<K: Copy + Ord> Wakes<K> {
    /// Has `key`, which waits for what `noted_ns` says, wait for another instant; absent: for none.
    pub(crate) fn plan(&mut self, key: K, noted_ns: &mut Option<u64>, at_ns: Option<u64>) {
        if *noted_ns == at_ns {
            return;
        }
        if let Some(before_ns) = std::mem::replace(noted_ns, at_ns) {
            self.0.remove(&(before_ns, key));
        }
        if let Some(at_ns) = at_ns {
            self.0.insert((at_ns, key));
        }
    }

    /// Takes the next one whose instant has come by `now_ns`; its note is the caller's to clear.
    pub(crate) fn next(&mut self, now_ns: u64) -> Option<K> {
        let &(at_ns, key) = self.0.first()?;
        if at_ns > now_ns {
            return None;
        }
        self.0.pop_first();
        Some(key)
    }

    /// The first instant that is waited for.
    pub(crate) fn first_ns(&self) -> Option<u64> {
        self.0.first().map(|&(at_ns, _)| at_ns)
    }

    #[cfg(test)]
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}
