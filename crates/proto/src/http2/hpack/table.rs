//! The dynamic table (RFC 7541 sections 2.3.2 and 4).

use std::collections::VecDeque;

use crate::fields::FIELD_OVERHEAD_BYTES;

/// A field of the table, and the sizes of what it was made of.
#[derive(Debug)]
pub(super) struct Entry<K> {
    pub(super) kept: K,
    pub(super) name_bytes: u32,
    pub(super) value_bytes: u32,
}

impl<K> Entry<K> {
    fn size_bytes(&self) -> u64 {
        u64::from(self.name_bytes) + u64::from(self.value_bytes) + u64::from(FIELD_OVERHEAD_BYTES)
    }
}

/// The latest fields that fit `size_max_bytes`, the latest first.
#[derive(Debug)]
pub(super) struct Table<K> {
    entries: VecDeque<Entry<K>>,
    size_bytes: u64,
    size_max_bytes: u32,
}

impl<K> Table<K> {
    pub(super) fn new(size_max_bytes: u32) -> Self {
        Self {
            entries: VecDeque::new(),
            size_bytes: 0,
            size_max_bytes,
        }
    }

    /// The entry inserted `age` insertions ago: 0 is the latest.
    #[inline]
    pub(super) fn get(&self, age: usize) -> Option<&Entry<K>> {
        self.entries.get(age)
    }

    /// Inserts a field. One that is larger than the table empties it and is not kept (section 4.4).
    pub(super) fn insert(&mut self, entry: Entry<K>) {
        let size_bytes = entry.size_bytes();
        let room = u64::from(self.size_max_bytes).checked_sub(size_bytes);
        self.evict(room.unwrap_or(0));
        if room.is_some() {
            self.size_bytes += size_bytes;
            self.entries.push_front(entry);
        }
    }

    /// Whether no field can stay, for even an empty one is too large.
    #[inline]
    pub(super) fn is_closed(&self) -> bool {
        self.size_max_bytes < FIELD_OVERHEAD_BYTES
    }

    pub(super) fn resize(&mut self, size_max_bytes: u32) {
        self.size_max_bytes = size_max_bytes;
        self.evict(size_max_bytes.into());
    }

    /// Drops the oldest fields until the others have at most so many bytes.
    fn evict(&mut self, size_bytes: u64) {
        while self.size_bytes > size_bytes {
            let Some(oldest) = self.entries.pop_back() else {
                return;
            };
            self.size_bytes -= oldest.size_bytes();
        }
    }

    #[cfg(test)]
    pub(super) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kept: u32, bytes: u32) -> Entry<u32> {
        Entry {
            kept,
            name_bytes: bytes / 2,
            value_bytes: bytes - bytes / 2,
        }
    }

    fn contents(table: &Table<u32>) -> Vec<u32> {
        (0..)
            .map_while(|age| table.get(age))
            .map(|entry| entry.kept)
            .collect()
    }

    #[test]
    fn the_oldest_make_room() {
        let mut table = Table::new(100);
        table.insert(entry(1, 18));
        table.insert(entry(2, 18));
        assert_eq!((contents(&table), table.size_bytes()), (vec![2, 1], 100));
        table.insert(entry(3, 0));
        assert_eq!((contents(&table), table.size_bytes()), (vec![3, 2], 82));
        table.insert(entry(4, 68));
        assert_eq!((contents(&table), table.size_bytes()), (vec![4], 100));
        table.insert(entry(5, 69));
        assert_eq!((contents(&table), table.size_bytes()), (vec![], 0));
        table.insert(entry(6, u32::MAX));
        assert_eq!((contents(&table), table.size_bytes()), (vec![], 0));
    }

    #[test]
    fn a_smaller_table_holds_less() {
        let mut table = Table::new(200);
        for kept in 1..=4 {
            table.insert(entry(kept, 8));
        }
        table.resize(119);
        assert_eq!(contents(&table), [4, 3]);
        table.resize(0);
        assert_eq!((contents(&table), table.size_bytes()), (vec![], 0));
        table.insert(entry(5, 0));
        assert!(contents(&table).is_empty() && table.is_closed());
        table.resize(31);
        assert!(table.is_closed());
        table.resize(32);
        assert!(!table.is_closed());
        table.insert(entry(6, 0));
        assert_eq!(contents(&table), [6]);
    }
}
