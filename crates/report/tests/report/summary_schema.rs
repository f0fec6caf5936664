//! The summary for machines keeps to its JSON Schema.

use std::collections::BTreeSet;

use brunt_report::Format;
use serde_json::Value;

use crate::fixtures;
use crate::golden::{PIPED, written};

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
fn every_summary_is_one_flat_object_of_the_same_34_keys() {
    let schema: Value = serde_json::from_str(brunt_report::SUMMARY_SCHEMA).unwrap();
    let keys: BTreeSet<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 34);
    for (name, run) in fixtures::all().into_iter().chain(fixtures::complete()) {
        let judged = brunt_judge::Judged::of(&run);
        let text = written(&judged, Format::Summary, &PIPED);
        assert_eq!(text.find('\n'), Some(text.len() - 1), "{name}: {text}");
        let summary: Value = serde_json::from_str(&text).unwrap();
        conforms(&schema, &schema, &summary, name).unwrap();
        let fields = summary.as_object().unwrap();
        assert_eq!(fields.keys().collect::<BTreeSet<_>>(), keys, "{name}");
        assert!(!fields.values().any(|it| it.is_object() || it.is_array()));
        // Nobody can take a rate from a run that is not valid, or 0 for what is not known.
        assert!(
            judged.is_valid() || summary["rate_per_s"].is_null(),
            "{name}"
        );
        let is_planned = !summary["target_rate_per_s"].is_null();
        assert_eq!(is_planned, !summary["rate_ratio"].is_null(), "{name}");
        if run.latencies.response.count() == 0 {
            assert!(summary["latency_max_us"].is_null(), "{name}");
        }
    }
}
