//! The committed JSON Schemas are those that the types give. `BLESS=1` rewrites them.

use brunt_report::{Format, SCHEMAS, Style, schema_text, write, write_experiment};
use serde_json::Value;

use crate::{experiments, fixtures};

#[test]
fn the_committed_schemas_are_current() {
    for (name, _) in SCHEMAS {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/schema");
        let path = format!("{directory}/{name}.schema.json");
        let generated = schema_text(name).unwrap();
        if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
            std::fs::write(&path, &generated).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == generated,
            "{path} is out of date: run this test with BLESS=1"
        );
    }
}

/// Checks `value` against the parts of `schema` that the types can give: references, properties,
/// items, alternatives and plain types.
fn conforms(root: &Value, schema: &Value, value: &Value, path: &str) -> Result<(), String> {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root
            .pointer(reference.trim_start_matches('#'))
            .ok_or("dangling $ref")?;
        conforms(root, target, value, path)?;
    }
    for alternatives in ["anyOf", "oneOf"] {
        if let Some(schemas) = schema[alternatives].as_array()
            && !schemas
                .iter()
                .any(|schema| conforms(root, schema, value, path).is_ok())
        {
            return Err(format!("{path}: none of {alternatives}"));
        }
    }
    let name = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let fits = |asked: &Value| asked == name || (asked == "number" && name == "integer");
    match &schema["type"] {
        Value::Array(types) if !types.iter().any(fits) => return Err(format!("{path}: {name}")),
        asked @ Value::String(_) if !fits(asked) => return Err(format!("{path}: {name}")),
        _ => {}
    }
    if schema.get("const").is_some_and(|only| only != value) {
        return Err(format!("{path}: {value} is not the constant"));
    }
    if let Value::Array(items) = value {
        for (index, item) in items.iter().enumerate() {
            conforms(root, &schema["items"], item, &format!("{path}/{index}"))?;
        }
    }
    if let Value::Object(fields) = value {
        for required in schema["required"].as_array().into_iter().flatten() {
            if !fields.contains_key(required.as_str().unwrap_or_default()) {
                return Err(format!("{path}: {required} is missing"));
            }
        }
        for (name, field) in fields {
            let path = format!("{path}/{name}");
            match (
                schema["properties"].get(name),
                &schema["additionalProperties"],
            ) {
                (Some(schema), _) => conforms(root, schema, field, &path)?,
                (None, rest @ Value::Object(_)) => conforms(root, rest, field, &path)?,
                (None, Value::Bool(false)) if schema.get("patternProperties").is_none() => {
                    return Err(format!("{path}: not in the schema"));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

#[test]
fn every_fixture_conforms_to_the_schema() {
    let schema = brunt_report::schema();
    for (name, run) in fixtures::all() {
        let mut bytes = Vec::new();
        write(
            &brunt_judge::Judged::of(&run),
            Format::Json,
            &Style::default(),
            &mut bytes,
        )
        .unwrap();
        let stored: Value = serde_json::from_slice(&bytes).unwrap();
        conforms(&schema, &schema, &stored, name).unwrap();
        for field in stored.as_object().unwrap().keys() {
            assert!(
                schema["properties"].get(field).is_some(),
                "{field} is not in the schema"
            );
        }
    }
}

#[test]
fn every_experiment_conforms_to_its_schema() {
    for (name, kind, experiment) in experiments::all() {
        let (_, make) = SCHEMAS.iter().find(|(known, _)| *known == kind).unwrap();
        let schema = make();
        let mut bytes = Vec::new();
        write_experiment(&experiment, Format::Json, &Style::default(), &mut bytes).unwrap();
        let stored: Value = serde_json::from_slice(&bytes).unwrap();
        conforms(&schema, &schema, &stored, name).unwrap();
        for field in stored.as_object().unwrap().keys() {
            assert!(
                schema["properties"].get(field).is_some(),
                "{field} is not in the schema"
            );
        }
    }
}
