//! The name of a request: a text of its own, or a part of one that many names share.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that is small beside others that are parts of the same one.
#[derive(Clone, Default)]
pub struct Name {
    /// Absent for the empty name.
    whole: Option<Arc<String>>,
    start: u32,
    end: u32,
}

impl Name {
    /// The part of `whole` in this range; empty where there is no such part.
    pub fn part_of(whole: &Arc<String>, range: Range<u32>) -> Self {
        Self {
            whole: Some(Arc::clone(whole)),
            start: range.start,
            end: range.end,
        }
    }
}

impl From<String> for Name {
    fn from(text: String) -> Self {
        let end = u32::try_from(text.len()).unwrap_or(0);
        Self::part_of(&Arc::new(text), 0..end)
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Deref for Name {
    type Target = str;

    fn deref(&self) -> &str {
        let range = self.start as usize..self.end as usize;
        let whole = self.whole.as_deref();
        whole.and_then(|whole| whole.get(range)).unwrap_or_default()
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Name {}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(
        clippy::reversed_empty_ranges,
        reason = "a range that is none is a case"
    )]
    fn names_are_texts() {
        let whole = Arc::new("/a/bäc".to_owned());
        let part = Name::part_of(&whole, 2..6);
        assert_eq!((&*part, part == Name::from("/bä")), ("/bä", true));
        assert_eq!(&*Name::default(), "");
        // Within a character, and beyond the end.
        for range in [2..5, 4..3, 0..8] {
            assert_eq!(&*Name::part_of(&whole, range), "");
        }
        assert_eq!(size_of::<Name>(), 16);
        let json = serde_json::to_string(&part).expect("a text");
        assert_eq!(json, "\"/bä\"");
        assert_eq!(serde_json::from_str::<Name>(&json).expect("a text"), part);
    }
}
