//! The JSON Schemas of the stored forms, generated from the types.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;

use crate::{RunSummary, StoredCapacity, StoredComparison, StoredRun, StoredSweep};

/// The name of a schema, and what makes it.
pub type NamedSchema = (&'static str, fn() -> serde_json::Value);

/// Each schema: the name of its file in `schema/` without `.schema.json`, and what makes it.
pub const SCHEMAS: &[NamedSchema] = &[
    ("run", schema),
    ("summary", of::<RunSummary>),
    ("sweep", of::<StoredSweep<'_>>),
    ("comparison", of::<StoredComparison<'_>>),
    ("capacity", of::<StoredCapacity<'_>>),
];

/// The JSON Schema (draft 2020-12) of what [`crate::Format::Json`] writes of a run.
pub fn schema() -> serde_json::Value {
    of::<StoredRun<'_>>()
}

fn of<T: JsonSchema>() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

/// The schema of this name as the bytes of its file: indented, with a newline at the end.
pub fn schema_text(name: &str) -> Option<String> {
    let (_, make) = SCHEMAS.iter().find(|(known, _)| *known == name)?;
    Some(format!("{:#}\n", make()))
}
