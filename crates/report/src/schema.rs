//! The JSON Schema of the stored form, generated from the types.

use schemars::generate::SchemaSettings;

use crate::StoredRun;

/// The JSON Schema (draft 2020-12) of what [`crate::Format::Json`] writes.
pub fn schema() -> serde_json::Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings
        .into_generator()
        .into_root_schema_for::<StoredRun<'_>>()
        .to_value()
}

/// The schema as the bytes of `schema/run.schema.json`: indented, with a newline at the end.
pub fn schema_text() -> String {
    format!("{:#}\n", schema())
}
