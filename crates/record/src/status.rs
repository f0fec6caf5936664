//! How requests were answered, and replies counted by it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::merged::{Merge, sum};

const FIRST: u16 = 100;
const LAST: u16 = 999;
/// RFC 9110 section 15: 4xx and 5xx report errors.
const FIRST_ERROR: u16 = 400;

/// How a request was answered: with a status, or in a protocol without them with a success or an
/// error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyOutcome(u16);

impl ReplyOutcome {
    /// A success in a protocol without statuses.
    pub const SUCCESS: Self = Self(0);
    /// An error in a protocol without statuses.
    pub const ERROR: Self = Self(LAST + 1);

    /// A reply with this status, which is an error from 400 on (RFC 9110 section 15). A code
    /// outside 100 to 999 is not HTTP and must have been refused before: it is not counted, so
    /// that the exact accounting (invariant W6) refuses the run.
    #[inline]
    pub fn of_status(status: u16) -> Self {
        match status {
            FIRST..=LAST => Self(status),
            _ => Self(u16::MAX),
        }
    }

    /// The status; absent in a protocol without them.
    #[inline]
    pub fn status(self) -> Option<u16> {
        (FIRST..=LAST).contains(&self.0).then_some(self.0)
    }

    /// Whether the status counts as successful.
    #[inline]
    pub fn is_success(self) -> bool {
        self.0 < FIRST_ERROR
    }
}

impl From<u16> for ReplyOutcome {
    fn from(status: u16) -> Self {
        Self::of_status(status)
    }
}

/// Names in the stored form of what has no status.
const SUCCESS: &str = "success";
const ERROR: &str = "error";

/// Final replies counted by status code, 100 to 999, and those without one as successes and errors.
/// Serialises as a map of what came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusCounts(Box<[u64]>);

impl Default for StatusCounts {
    fn default() -> Self {
        Self(vec![0; usize::from(ReplyOutcome::ERROR.0) + 1].into())
    }
}

impl StatusCounts {
    /// Counts one reply.
    #[inline]
    pub fn add(&mut self, outcome: impl Into<ReplyOutcome>) {
        if let Some(count) = self.0.get_mut(usize::from(outcome.into().0)) {
            *count += 1;
        }
    }

    /// How many replies had this outcome.
    pub fn count(&self, outcome: impl Into<ReplyOutcome>) -> u64 {
        let count = self.0.get(usize::from(outcome.into().0));
        count.copied().unwrap_or(0)
    }

    /// The codes that came, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let codes = FIRST..=LAST;
        codes
            .map(|status| (status, self.0[usize::from(status)]))
            .filter(|&(_, count)| count > 0)
    }

    /// How many replies came in all.
    pub fn total(&self) -> u64 {
        sum(&self.0)
    }

    /// Replies that report success: status below 400.
    pub fn successes(&self) -> u64 {
        sum(&self.0[..usize::from(FIRST_ERROR)])
    }

    /// Replies that report an error: status 400 and above.
    pub fn errors(&self) -> u64 {
        sum(&self.0[usize::from(FIRST_ERROR)..])
    }

    /// Replies of the class `class` (2 for 200 to 299).
    pub fn class(&self, class: u16) -> u64 {
        self.iter()
            .filter(|(status, _)| status / 100 == class)
            .fold(0, |sum, (_, count)| sum.saturating_add(count))
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
    }
}

impl Serialize for StatusCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let named = [
            (SUCCESS, ReplyOutcome::SUCCESS),
            (ERROR, ReplyOutcome::ERROR),
        ]
        .map(|(name, outcome)| (name.to_owned(), self.count(outcome)))
        .into_iter()
        .filter(|&(_, count)| count > 0);
        let codes = self
            .iter()
            .map(|(status, count)| (status.to_string(), count));
        serializer.collect_map(codes.chain(named))
    }
}

impl<'de> Deserialize<'de> for StatusCounts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut counts = Self::default();
        for (name, count) in BTreeMap::<String, u64>::deserialize(deserializer)? {
            let outcome = match name.as_str() {
                SUCCESS => Some(ReplyOutcome::SUCCESS),
                ERROR => Some(ReplyOutcome::ERROR),
                // As it is written: no sign, and no digit more.
                code if code.len() == 3 && code.bytes().all(|byte| byte.is_ascii_digit()) => {
                    code.parse().ok().map(ReplyOutcome::of_status)
                }
                _ => None,
            };
            let place = outcome.and_then(|outcome| counts.0.get_mut(usize::from(outcome.0)));
            *place.ok_or_else(|| serde::de::Error::custom(format!("no such status: {name}")))? =
                count;
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_counted_by_code_class_and_outcome() {
        let mut counts = StatusCounts::default();
        for status in [100, 200, 204, 304, 399, 400, 503, 999] {
            counts.add(status);
        }
        // Not HTTP: not counted.
        [0, 99, 1_000, u16::MAX]
            .into_iter()
            .for_each(|status| counts.add(status));
        assert_eq!(
            (counts.total(), counts.successes(), counts.errors()),
            (8, 5, 3)
        );
        assert_eq!(
            [1, 2, 3, 4, 5, 9].map(|class| counts.class(class)),
            [1, 2, 2, 1, 1, 1]
        );
        let mut twice = counts.clone();
        twice.merge(&counts);
        assert_eq!(twice.total(), 16);
    }

    #[test]
    fn a_protocol_without_statuses_has_successes_and_errors() {
        let mut counts = StatusCounts::default();
        for outcome in [
            ReplyOutcome::SUCCESS,
            ReplyOutcome::SUCCESS,
            ReplyOutcome::ERROR,
        ] {
            counts.add(outcome);
            assert_eq!(outcome.status(), None);
        }
        counts.add(500);
        assert_eq!(
            (counts.total(), counts.successes(), counts.errors()),
            (4, 2, 2)
        );
        assert_eq!(counts.iter().collect::<Vec<_>>(), [(500, 1)]);
        let text = serde_json::to_string(&counts).expect("counts serialise");
        assert_eq!(text, r#"{"500":1,"success":2,"error":1}"#);
        let read: StatusCounts = serde_json::from_str(&text).expect("its own form");
        assert_eq!(read, counts);
    }

    #[test]
    fn the_stored_form_names_the_codes_that_came() {
        let mut counts = StatusCounts::default();
        counts.add(200);
        counts.add(404);
        counts.add(404);
        let text = serde_json::to_string(&counts).expect("counts serialise");
        assert_eq!(text, r#"{"200":1,"404":2}"#);
        assert_eq!(
            serde_json::from_str::<StatusCounts>(&text).expect("its own form"),
            counts
        );
        for text in [
            r#"{"99":1}"#,
            r#"{"1000":1}"#,
            r#"{"0":1}"#,
            r#"{"+20":1}"#,
            r#"{"ok":1}"#,
            r#"{"200":-1}"#,
        ] {
            assert!(
                serde_json::from_str::<StatusCounts>(text).is_err(),
                "{text}"
            );
        }
    }
}
