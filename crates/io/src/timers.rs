//! Deadlines in the order in which they fall due.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

/// A queue of deadlines, exact to the nanosecond; equal deadlines come in the order of their
/// `push`. There is no removal: a key that no longer matters is ignored when it falls due, so
/// callers keep at most one or two entries per connection.
#[derive(Debug)]
pub struct Timers<K> {
    heap: BinaryHeap<Reverse<Timer<K>>>,
    pushes: u64,
}

#[derive(Debug)]
struct Timer<K> {
    at_ns: u64,
    order: u64,
    key: K,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            pushes: 0,
        }
    }
}

impl<K> Timers<K> {
    /// Adds a deadline.
    pub fn push(&mut self, at_ns: u64, key: K) {
        self.pushes += 1;
        let order = self.pushes;
        self.heap.push(Reverse(Timer { at_ns, order, key }));
    }

    /// The earliest deadline.
    pub fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(entry)| entry.at_ns)
    }

    /// Takes the earliest key whose deadline is not after `now_ns`.
    pub fn pop_due(&mut self, now_ns: u64) -> Option<K> {
        if self.next_ns()? > now_ns {
            return None;
        }
        self.heap.pop().map(|Reverse(entry)| entry.key)
    }
}

impl<K> Ord for Timer<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at_ns, self.order).cmp(&(other.at_ns, other.order))
    }
}

impl<K> PartialOrd for Timer<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> PartialEq for Timer<K> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<K> Eq for Timer<K> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_in_order_of_deadline_then_of_push() {
        let mut timers = Timers::default();
        for (at_ns, key) in [(30, 'c'), (10, 'a'), (30, 'd'), (20, 'b')] {
            timers.push(at_ns, key);
        }
        assert_eq!(timers.next_ns(), Some(10));
        assert_eq!(timers.pop_due(9), None);
        let order: String = std::iter::from_fn(|| timers.pop_due(30)).collect();
        assert_eq!(order, "abcd");
        assert_eq!(timers.next_ns(), None);
    }
}
