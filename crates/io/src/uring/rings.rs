//! A set of rings: those that have something to do, so that a turn looks at them alone.

/// Numbers of rings, a bit each.
#[derive(Debug, Default)]
pub(super) struct RingSet {
    words: Vec<u64>,
}

impl RingSet {
    pub(super) fn insert(&mut self, ring: usize) {
        let word = ring / 64;
        if self.words.len() <= word {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (ring % 64);
    }

    pub(super) fn remove(&mut self, ring: usize) {
        if let Some(word) = self.words.get_mut(ring / 64) {
            *word &= !(1 << (ring % 64));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// The lowest number from `ring` on.
    pub(super) fn first_from(&self, ring: usize) -> Option<usize> {
        let first = ring / 64;
        let mut mask = !0 << (ring % 64);
        for (index, &word) in self.words.iter().enumerate().skip(first) {
            let rest = word & mask;
            if rest != 0 {
                return Some(index * 64 + rest.trailing_zeros() as usize);
            }
            mask = !0;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(set: &RingSet) -> Vec<usize> {
        let next = |ring: &usize| set.first_from(ring + 1);
        std::iter::successors(set.first_from(0), next).collect()
    }

    #[test]
    fn numbers_come_in_order() {
        let mut set = RingSet::default();
        assert!(set.is_empty());
        assert_eq!(set.first_from(0), None);
        set.remove(200);
        for ring in [130, 64, 0, 63, 5, 64] {
            set.insert(ring);
        }
        assert_eq!(all(&set), [0, 5, 63, 64, 130]);
        assert_eq!(set.first_from(131), None);
        assert_eq!(set.first_from(500), None);
        set.remove(63);
        set.remove(130);
        assert_eq!(all(&set), [0, 5, 64]);
        for ring in all(&set) {
            set.remove(ring);
        }
        assert!(set.is_empty());
    }
}
