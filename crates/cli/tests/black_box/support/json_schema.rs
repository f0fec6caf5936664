//! As much of JSON Schema as the schema of a stored run uses. What it does not know fails the
//! test, so that the schema cannot outgrow it unseen.

use serde_json::Value;

/// Keywords that say nothing about a value.
const WITHOUT_MEANING: [&str; 6] = [
    "$defs",
    "$schema",
    "default",
    "title",
    "description",
    "format",
];

/// Where and how `value` breaks `schema`.
pub(crate) fn violations(schema: &Value, value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, schema, value, "", &mut found);
    found
}

fn check(root: &Value, schema: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    let Some(keywords) = schema.as_object() else {
        if schema == &Value::Bool(false) {
            found.push(format!("{place}: not allowed"));
        }
        return;
    };
    for (keyword, rule) in keywords {
        match keyword.as_str() {
            "$ref" => {
                let pointer = rule.as_str().and_then(|link| link.strip_prefix('#'));
                let target = pointer.and_then(|pointer| root.pointer(pointer));
                check(root, target.expect("a link within"), value, place, found);
            }
            "type" => {
                let names = rule
                    .as_array()
                    .map_or_else(|| vec![rule], |names| names.iter().collect());
                if !names.iter().any(|name| is_of_type(value, name)) {
                    found.push(format!("{place}: {value} is not of type {rule}"));
                }
            }
            "const" if rule != value => found.push(format!("{place}: {value} is not {rule}")),
            "enum" if !list(rule).contains(value) => {
                found.push(format!("{place}: {value} is none of {rule}"));
            }
            "minimum" if value.is_number() && value.as_f64() < rule.as_f64() => {
                found.push(format!("{place}: {value} is below {rule}"));
            }
            "required" => {
                for name in list(rule) {
                    if value.get(name.as_str().expect("a name")).is_none() {
                        found.push(format!("{place}: {name} is missing"));
                    }
                }
            }
            "items" => {
                for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                    check(root, rule, item, &format!("{place}/{index}"), found);
                }
            }
            "properties" | "propertyNames" | "additionalProperties" => {
                for (name, part) in value.as_object().into_iter().flatten() {
                    let place = format!("{place}/{name}");
                    let known = schema["properties"].get(name);
                    match (keyword.as_str(), known) {
                        ("properties", Some(known)) => check(root, known, part, &place, found),
                        ("propertyNames", _) => {
                            check(root, rule, &Value::from(name.as_str()), &place, found);
                        }
                        ("additionalProperties", None) => check(root, rule, part, &place, found),
                        _ => {}
                    }
                }
            }
            "oneOf" | "anyOf" => {
                let fits = |rule| {
                    let mut found = Vec::new();
                    check(root, rule, value, place, &mut found);
                    found.is_empty()
                };
                let count = list(rule).iter().filter(|rule| fits(rule)).count();
                if count == 0 || keyword == "oneOf" && count > 1 {
                    found.push(format!("{place}: {value} fits {count} of {rule}"));
                }
            }
            "const" | "enum" | "minimum" => {}
            "pattern" | "maximum" => check_bound(keyword, rule, value, place, found),
            known if WITHOUT_MEANING.contains(&known) => {}
            unknown => found.push(format!("{place}: unknown keyword {unknown}")),
        }
    }
}

fn check_bound(keyword: &str, rule: &Value, value: &Value, place: &str, found: &mut Vec<String>) {
    // Patterns are those of status codes, which are checked when the run is read again.
    if keyword == "maximum" && value.is_number() && value.as_f64() > rule.as_f64() {
        found.push(format!("{place}: {value} is above {rule}"));
    }
}

fn list(rule: &Value) -> &[Value] {
    rule.as_array().expect("a list")
}

fn is_of_type(value: &Value, name: &Value) -> bool {
    match name.as_str().expect("a name") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("unknown type {other}"),
    }
}
