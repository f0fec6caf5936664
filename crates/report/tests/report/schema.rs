//! The committed JSON Schemas are those that the types give. `BLESS=1` rewrites them.

use std::collections::BTreeSet;

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
    for (name, run) in fixtures::all().into_iter().chain(fixtures::complete()) {
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
fn every_summary_is_one_flat_object_of_the_same_30_keys() {
    let schema: Value = serde_json::from_str(brunt_report::SUMMARY_SCHEMA).unwrap();
    let keys: BTreeSet<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 30);
    for (name, run) in fixtures::all().into_iter().chain(fixtures::complete()) {
        let judged = brunt_judge::Judged::of(&run);
        let mut bytes = Vec::new();
        write(&judged, Format::Summary, &Style::default(), &mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
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

/// The files in `golden/` that hold runs.
const RUNS: [&str; 3] = ["complete", "complete.held", "stolen"];

/// Fields that none of them holds, and why.
const NOT_HELD: [(&str, &str); 12] = [
    ("BandwidthInterval.down_bytes_per_s", A_RATE),
    ("BandwidthInterval.from_ns", A_RATE),
    ("BandwidthInterval.segments_retransmitted", A_RATE),
    ("BandwidthInterval.to_ns", A_RATE),
    ("BandwidthInterval.up_bytes_per_s", A_RATE),
    ("Overload.capacity_per_s", A_RATE),
    ("Overload.growth_ns_per_s", A_RATE),
    ("RequestSpec.body", A_SECRET),
    ("RequestSpec.headers", A_SECRET),
    ("RequestSpec.text", A_SECRET),
    ("Secret.given", A_SECRET),
    ("Secret2.given", A_SECRET),
];
const A_RATE: &str = "a run of all kinds at once is invalid, which withholds its rates";

const A_SECRET: &str = "what may be secret is in a plan that is run, and in no stored one";

/// A type, or one within it, and a field of it.
type Field = (String, String);

/// Adds each field of each type of a schema.
fn fields(schema: &Value, owner: &str, found: &mut BTreeSet<Field>) {
    match schema {
        Value::Object(keywords) => {
            for (keyword, value) in keywords {
                match (keyword.as_str(), value) {
                    ("properties", Value::Object(properties)) => {
                        for (name, property) in properties {
                            found.insert((owner.to_owned(), name.clone()));
                            fields(property, &format!("{owner}.{name}"), found);
                        }
                    }
                    ("$defs", Value::Object(types)) => {
                        types.iter().for_each(|(name, it)| fields(it, name, found));
                    }
                    _ => fields(value, owner, found),
                }
            }
        }
        Value::Array(schemas) => schemas.iter().for_each(|it| fields(it, owner, found)),
        _ => {}
    }
}

/// Adds the fields that `value` has.
fn held(root: &Value, schema: &Value, value: &Value, owner: &str, found: &mut BTreeSet<Field>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        held(root, &root["$defs"][name], value, name, found);
    }
    for alternatives in ["anyOf", "oneOf"] {
        for schema in schema[alternatives].as_array().into_iter().flatten() {
            if conforms(root, schema, value, "").is_ok() {
                held(root, schema, value, owner, found);
            }
        }
    }
    for item in value.as_array().into_iter().flatten() {
        held(root, &schema["items"], item, owner, found);
    }
    for (name, field) in value.as_object().into_iter().flatten() {
        let known = &schema["properties"][name];
        if known.is_null() {
            held(root, &schema["additionalProperties"], field, owner, found);
        } else {
            found.insert((owner.to_owned(), name.clone()));
            held(root, known, field, &format!("{owner}.{name}"), found);
        }
    }
}

#[test]
fn the_stored_runs_that_are_kept_hold_every_field() {
    let schema = brunt_report::schema();
    let (mut known, mut seen) = (BTreeSet::new(), BTreeSet::new());
    fields(&schema, "run", &mut known);
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");
    for name in RUNS {
        let text = std::fs::read_to_string(format!("{directory}/{name}.json")).unwrap();
        let stored = serde_json::from_str(&text).unwrap();
        held(&schema, &schema, &stored, "run", &mut seen);
    }
    let text = std::fs::read_to_string(format!("{directory}/plans.json")).unwrap();
    let plans: Vec<Value> = serde_json::from_str(&text).unwrap();
    for plan in plans {
        conforms(&schema, &schema["$defs"]["Plan"], &plan, "a plan").unwrap();
        held(&schema, &schema["$defs"]["Plan"], &plan, "Plan", &mut seen);
    }
    let missing = known.difference(&seen);
    let missing: Vec<String> = missing
        .map(|(owner, name)| format!("{owner}.{name}"))
        .collect();
    let expected: Vec<&str> = NOT_HELD.iter().map(|(field, _)| *field).collect();
    assert_eq!(
        missing, expected,
        "give a field a value in fixtures/complete.rs, or say why it has none"
    );
}
