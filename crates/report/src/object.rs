//! An object of JSON that grows figure by figure; what is absent is null, and the reason beside it.

use std::collections::BTreeMap;

use brunt_judge::ABSENT_KEY;
use serde::ser::Error;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

/// Fields in their order, or why one has no JSON form.
#[derive(Debug)]
pub(crate) struct Object(serde_json::Result<Map<String, Value>>);

impl Object {
    /// An object without fields.
    pub(crate) fn new() -> Self {
        Self(Ok(Map::new()))
    }

    /// The fields of `value`.
    pub(crate) fn of(value: &impl Serialize) -> Self {
        Self(serde_json::to_value(value).and_then(serde_json::from_value))
    }

    /// The fields in their order.
    pub(crate) fn fields(self) -> serde_json::Result<Map<String, Value>> {
        self.0
    }

    /// The object with a field more.
    pub(crate) fn with(self, name: &str, value: impl Serialize) -> Self {
        Self(self.0.and_then(|mut fields| {
            fields.insert(name.to_owned(), serde_json::to_value(value)?);
            Ok(fields)
        }))
    }

    /// The object with a field more, where it has a value.
    pub(crate) fn with_some(self, name: &str, value: Option<impl Serialize>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// The object with `absent` at its end: why a figure is null, by the path of the figure, such
    /// as `response.p99_9_ns`.
    pub(crate) fn with_reasons(self) -> Self {
        let mut reasons = BTreeMap::new();
        let fields = self.0.map(|mut fields| {
            for (name, field) in &mut fields {
                take_reasons(field, name, &mut reasons);
            }
            fields
        });
        Self(fields).with("absent", &reasons)
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Ok(fields) => fields.serialize(serializer),
            Err(error) => Err(S::Error::custom(error)),
        }
    }
}

/// Puts null in the place of each absent figure within `value`, and its reason among `reasons`.
fn take_reasons(value: &mut Value, path: &str, reasons: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reason)) = fields.remove(ABSENT_KEY) {
                reasons.insert(path.to_owned(), reason);
                *value = Value::Null;
                return;
            }
            for (name, field) in fields {
                take_reasons(field, &format!("{path}.{name}"), reasons);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                take_reasons(item, &format!("{path}.{index}"), reasons);
            }
        }
        _ => {}
    }
}
