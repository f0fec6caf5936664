//! How framings, patterns and templates are stored: as the text that people type.

use super::{Framing, Pattern, Template};

/// Stores a type as its text, and reads it from that.
macro_rules! stored_as_text {
    ($($type:ident),*) => {$(
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

    )*};
}

stored_as_text!(Framing, Pattern, Template);
