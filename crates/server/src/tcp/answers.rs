//! Answers that wait on one connection, in the order of their messages.

use std::collections::VecDeque;

/// Groups of answers that may wait on one connection before no more is read.
const GROUPS_MAX: usize = 1_024;
/// Bytes of answers that may wait on one connection before no more is read.
const WAITING_BYTES_MAX: u64 = 256 * 1024;

/// Answers that become due together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    /// When the answers are due; 0: at once.
    at_ns: u64,
    answers: u64,
    bytes: u64,
}

/// The answers that wait.
#[derive(Debug, Default)]
pub(super) struct Answers {
    groups: VecDeque<Group>,
    bytes: u64,
}

/// What is to be sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) answers: u64,
    pub(super) bytes: u64,
}

impl Answers {
    /// Adds answers of so many bytes in all that are due at this instant, or, if that is later,
    /// with the one before; 0: at once.
    pub(super) fn push(&mut self, at_ns: u64, answers: u64, bytes: u64) {
        self.bytes += bytes;
        if let Some(last) = self.groups.back_mut()
            && last.at_ns >= at_ns
        {
            last.answers += answers;
            last.bytes += bytes;
            return;
        }
        self.groups.push_back(Group {
            at_ns,
            answers,
            bytes,
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Whether so many wait that nothing more should be read.
    pub(super) fn is_full(&self) -> bool {
        self.groups.len() >= GROUPS_MAX || self.bytes >= WAITING_BYTES_MAX
    }

    /// Answers that wait.
    pub(super) fn count(&self) -> u64 {
        self.groups.iter().map(|group| group.answers).sum()
    }

    /// When the next answer is due; 0: at once.
    pub(super) fn next_ns(&self) -> Option<u64> {
        self.groups.front().map(|group| group.at_ns)
    }

    /// Takes answers that are due at `now_ns`, `answers_max` of them at most where they are alike,
    /// which is what a limit needs. `late` learns of those that had to wait for an instant: their
    /// number, and how late they are.
    pub(super) fn take(
        &mut self,
        now_ns: u64,
        answers_max: u64,
        mut late: impl FnMut(u64, u64),
    ) -> Due {
        let mut due = Due::default();
        while let Some(group) = self.groups.front_mut()
            && group.at_ns <= now_ns
            && due.answers < answers_max
        {
            let answers = group.answers.min(answers_max - due.answers);
            let bytes = if answers == group.answers {
                group.bytes
            } else {
                group.bytes / group.answers * answers
            };
            due.answers += answers;
            due.bytes += bytes;
            if group.at_ns > 0 {
                late(answers, now_ns - group.at_ns);
            }
            group.answers -= answers;
            group.bytes -= bytes;
            if group.answers == 0 {
                self.groups.pop_front();
            }
        }
        self.bytes -= due.bytes;
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_when_they_are_due_and_in_order() {
        let mut answers = Answers::default();
        answers.push(10, 1, 5);
        answers.push(10, 2, 10);
        // One that would be due before another waits for it.
        answers.push(5, 1, 5);
        answers.push(20, 1, 5);
        assert_eq!((answers.next_ns(), answers.count()), (Some(10), 5));
        let mut late = Vec::new();
        let mut take = |now_ns, max| {
            let due = answers.take(now_ns, max, |count, ns| late.push((count, ns)));
            (due.answers, due.bytes)
        };
        assert_eq!(take(9, 9), (0, 0));
        assert_eq!(take(12, 3), (3, 15));
        assert_eq!(take(12, 3), (1, 5));
        assert_eq!(take(25, 3), (1, 5));
        assert_eq!(late, [(3, 2), (1, 2), (1, 5)]);
        assert!(answers.is_empty());
        assert_eq!(answers.bytes, 0);
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut answers = Answers::default();
        answers.push(0, 1, WAITING_BYTES_MAX - 1);
        assert!(!answers.is_full());
        answers.push(0, 1, 1);
        assert!(answers.is_full());
        let mut answers = Answers::default();
        for at_ns in 1..=GROUPS_MAX as u64 {
            assert!(!answers.is_full());
            answers.push(at_ns, 1, 1);
        }
        assert!(answers.is_full());
    }
}
