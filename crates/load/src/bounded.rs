//! Lists and maps that are bounded while they are read: what a stranger's file says of its length
//! fills no memory.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Reads a list of at most `MOST` elements, for `deserialize_with`.
///
/// # Errors
///
/// The list has more elements, or an element is not one.
pub fn list<'de, D, T, const MOST: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    deserializer.deserialize_seq(List::<T, MOST>(PhantomData))
}

/// Reads a list of 1 to `MOST` elements, for `deserialize_with`.
///
/// # Errors
///
/// As [`list`], or the list is empty.
pub fn some<'de, D, T, const MOST: usize>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let list = list::<D, T, MOST>(deserializer)?;
    if list.is_empty() {
        return Err(D::Error::custom(
            "an empty list, where one element is needed",
        ));
    }
    Ok(list)
}

/// Reads a list of at most `MOST` elements into an optional field with a default, for
/// `deserialize_with`.
///
/// # Errors
///
/// As [`list`].
pub fn some_list<'de, D, T, const MOST: usize>(deserializer: D) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    list::<D, T, MOST>(deserializer).map(Some)
}

/// Reads a map of at most `MOST` entries, for `deserialize_with`.
///
/// # Errors
///
/// The map has more entries, or an entry is not one.
pub fn map<'de, D, K, V, const MOST: usize>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
{
    deserializer.deserialize_map(Map::<K, V, MOST>(PhantomData))
}

/// A field that must be there.
///
/// # Errors
///
/// The field is absent; the message names it.
pub fn present<T, E: Error>(name: &'static str, field: Option<T>) -> Result<T, E> {
    field.ok_or_else(|| E::missing_field(name))
}

struct List<T, const MOST: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for List<T, MOST> {
    type Value = Vec<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a list of at most {MOST} elements")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Vec<T>, A::Error> {
        let mut list = Vec::new();
        while let Some(element) = access.next_element()? {
            if list.len() == MOST {
                return Err(Error::custom(format_args!(
                    "a list over the limit of {MOST} elements"
                )));
            }
            list.push(element);
        }
        Ok(list)
    }
}

struct Map<K, V, const MOST: usize>(PhantomData<(K, V)>);

impl<'de, K, V, const MOST: usize> Visitor<'de> for Map<K, V, MOST>
where
    K: Deserialize<'de> + Ord,
    V: Deserialize<'de>,
{
    type Value = BTreeMap<K, V>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a map of at most {MOST} entries")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Self::Value, A::Error> {
        let mut map = BTreeMap::new();
        // A key that comes again counts again: reading it takes time.
        for count in 0.. {
            let Some((key, value)) = access.next_entry()? else {
                break;
            };
            if count == MOST {
                return Err(Error::custom(format_args!(
                    "a map over the limit of {MOST} entries"
                )));
            }
            map.insert(key, value);
        }
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Bounded {
        #[serde(default, deserialize_with = "list::<_, _, 3>")]
        list: Vec<u32>,
        #[serde(default, deserialize_with = "map::<_, _, _, 2>")]
        map: BTreeMap<String, u32>,
    }

    #[test]
    fn what_is_over_its_limit_is_refused() {
        let read = |json: &str| serde_json::from_str::<Bounded>(json);
        let most = read(r#"{"list": [1, 2, 3], "map": {"a": 1, "b": 2}}"#).expect("at the limits");
        assert_eq!((most.list.len(), most.map.len()), (3, 2));
        for (json, words) in [
            (r#"{"list": [1, 2, 3, 4]}"#, "limit of 3 elements"),
            (r#"{"map": {"a": 1, "b": 2, "c": 3}}"#, "limit of 2 entries"),
            (r#"{"map": {"a": 1, "a": 2, "a": 3}}"#, "limit of 2 entries"),
            (r#"{"list": {}}"#, "at most 3 elements"),
            (r#"{"map": []}"#, "at most 2 entries"),
        ] {
            let error = read(json).map(drop).expect_err(json).to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    /// The element that is one too many ends the reading: what follows is not looked at.
    #[test]
    fn nothing_behind_the_limit_is_read() {
        let error = serde_json::from_str::<Bounded>(r#"{"list": [1, 2, 3, 4, no JSON"#).map(drop);
        let error = error.expect_err("over the limit").to_string();
        assert!(error.contains("limit of 3 elements"), "{error}");
    }
}
