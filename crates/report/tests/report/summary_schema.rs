//! The summary for machines keeps to its JSON Schema.

use std::collections::BTreeSet;

use brunt_report::Format;
use serde_json::Value;

use crate::fixtures;
use crate::golden::{PIPED, written};

/// Whether `value` is of a type that `schema` allows, and its constant where it has one.
fn conforms(schema: &Value, value: &Value) -> bool {
    let name = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) | Value::Object(_) => return false,
    };
    let fits = |asked: &Value| asked == name || (asked == "number" && name == "integer");
    let has_type = match &schema["type"] {
        Value::Array(types) => types.iter().any(fits),
        Value::Null => true,
        asked => fits(asked),
    };
    has_type && schema.get("const").is_none_or(|only| only == value)
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
        let fields = summary.as_object().unwrap();
        assert_eq!(fields.keys().collect::<BTreeSet<_>>(), keys, "{name}");
        for (key, value) in fields {
            assert!(
                conforms(&schema["properties"][key], value),
                "{name} {key}: {value}"
            );
        }
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
