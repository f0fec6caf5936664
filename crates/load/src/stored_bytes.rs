//! Bytes as a plan stores them: in Base64, for `with` of serde.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::Serializer;

/// Writes bytes.
///
/// # Errors
///
/// As the serializer has them.
pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&base64::display::Base64Display::new(
        bytes,
        &BASE64_STANDARD,
    ))
}

/// Reads bytes.
///
/// # Errors
///
/// It is no text, or no Base64.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    BASE64_STANDARD.decode(text).map_err(D::Error::custom)
}

/// Bytes that are read, in a list or behind an option.
#[derive(serde::Deserialize)]
pub(crate) struct StoredBytes(#[serde(with = "crate::stored_bytes")] pub(crate) Vec<u8>);

/// Bytes that are written, in a list or behind an option.
#[derive(serde::Serialize)]
pub(crate) struct BytesToStore<'a>(
    #[serde(serialize_with = "crate::stored_bytes::serialize")] pub(crate) &'a [u8],
);

/// Bytes that may be absent, as a plan stores them: in Base64, for `with` of serde.
pub(crate) mod optional {
    use super::{BytesToStore, Deserialize, Deserializer, Serializer, StoredBytes};

    pub(crate) fn serialize<S: Serializer>(
        bytes: &Option<Vec<u8>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let bytes = bytes.as_deref().map(BytesToStore);
        serde::Serialize::serialize(&bytes, serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Vec<u8>>, D::Error> {
        let bytes = Option::<StoredBytes>::deserialize(deserializer)?;
        Ok(bytes.map(|StoredBytes(bytes)| bytes))
    }
}
