//! A value that is written once, with every further attempt counted.

use serde::{Deserialize, Serialize};

/// A write-once instant. A second `set` changes nothing and is counted, so that invariant W3 can
/// see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Once {
    ns: Option<u64>,
    #[serde(default, skip_serializing_if = "is_zero")]
    rewrites: u32,
}

impl Once {
    /// An edge that is already written.
    pub fn at(ns: u64) -> Self {
        Self {
            ns: Some(ns),
            rewrites: 0,
        }
    }

    /// Writes the instant, unless it was written before.
    pub fn set(&mut self, ns: u64) {
        match self.ns {
            None => self.ns = Some(ns),
            Some(_) => self.rewrites = self.rewrites.saturating_add(1),
        }
    }

    /// The instant, when it was written.
    pub fn get(&self) -> Option<u64> {
        self.ns
    }

    /// How often something tried to write it again.
    pub fn rewrites(&self) -> u32 {
        self.rewrites
    }
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
