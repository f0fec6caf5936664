//! Replies counted by status code.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

const FIRST: u16 = 100;
const LAST: u16 = 999;
/// RFC 9110 section 15: 4xx and 5xx report errors.
const FIRST_ERROR: u16 = 400;

/// Final replies counted by status code, 100 to 999. Serialises as a map of the codes that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusCounts(Box<[u64]>);

impl Default for StatusCounts {
    fn default() -> Self {
        Self(vec![0; usize::from(LAST - FIRST) + 1].into())
    }
}

impl StatusCounts {
    /// Counts one reply. A code outside 100 to 999 is not HTTP and must have been refused before:
    /// it is not counted, so that the exact accounting (invariant W6) refuses the run.
    pub fn add(&mut self, status: u16) {
        if let Some(slot) = self.0.get_mut(usize::from(status.wrapping_sub(FIRST))) {
            *slot += 1;
        }
    }

    /// The codes that came, with their counts.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        (FIRST..=LAST)
            .zip(self.0.iter().copied())
            .filter(|&(_, count)| count > 0)
    }

    /// How many replies came in all.
    pub fn total(&self) -> u64 {
        self.0.iter().copied().fold(0, u64::saturating_add)
    }

    /// Replies that report success: status below 400.
    pub fn successes(&self) -> u64 {
        let successes = usize::from(FIRST_ERROR - FIRST);
        self.0[..successes]
            .iter()
            .copied()
            .fold(0, u64::saturating_add)
    }

    /// Replies that report an error: status 400 and above.
    pub fn errors(&self) -> u64 {
        let successes = usize::from(FIRST_ERROR - FIRST);
        self.0[successes..]
            .iter()
            .copied()
            .fold(0, u64::saturating_add)
    }

    /// Replies of the class `class` (2 for 200 to 299).
    pub fn class(&self, class: u16) -> u64 {
        self.iter()
            .filter(|(status, _)| status / 100 == class)
            .fold(0, |sum, (_, count)| sum.saturating_add(count))
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (own, theirs) in self.0.iter_mut().zip(&other.0) {
            *own = own.saturating_add(*theirs);
        }
    }
}

/// Whether a final reply with this status counts as successful.
pub(crate) fn is_success(status: u16) -> bool {
    status < FIRST_ERROR
}

impl Serialize for StatusCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for StatusCounts {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut counts = Self::default();
        for (status, count) in BTreeMap::<u16, u64>::deserialize(deserializer)? {
            let slot = status
                .checked_sub(FIRST)
                .and_then(|index| counts.0.get_mut(usize::from(index)))
                .ok_or_else(|| serde::de::Error::custom(format!("no such status: {status}")))?;
            *slot = count;
        }
        Ok(counts)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for StatusCounts {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "StatusCounts".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Replies by status code, 100 to 999, without those that did not come.",
            "type": "object",
            "propertyNames": { "pattern": "^[1-9][0-9][0-9]$" },
            "additionalProperties": generator.subschema_for::<u64>(),
        })
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
