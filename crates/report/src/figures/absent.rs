//! Figures that are absent, as they are stored: null, and the reasons beside them.

use std::collections::BTreeMap;

use brunt_judge::ABSENT_KEY;
use serde_json::Value;

/// What is null by itself, and why.
const NULLS: [(&str, &str); 5] = [
    ("overload.growth_ns_per_s", "no growth of latency was seen"),
    (
        "steadiness.halves_differ",
        "too few replies or too short a window for halves, or a planned rate that changes",
    ),
    (
        "steadiness.trend",
        "no trend beyond chance was seen, or the window is too short for one",
    ),
    (
        "held.client_bytes_per_connection",
        "not read, or too few connections to tell",
    ),
    ("held.set_up_ns", "set-up did not end"),
];

/// Puts null in the place of each absent figure of `figures`. Gives the reasons, by the path of the
/// figure, such as `response.p99_9_ns`.
pub(super) fn take_reasons(figures: &mut Value) -> BTreeMap<String, String> {
    let mut reasons = BTreeMap::new();
    take(figures, "", &mut reasons);
    for (path, reason) in NULLS {
        let pointer = format!("/{}", path.replace('.', "/"));
        if figures.pointer(&pointer).is_some_and(Value::is_null) {
            reasons.insert(path.to_owned(), reason.to_owned());
        }
    }
    reasons
}

fn take(value: &mut Value, path: &str, reasons: &mut BTreeMap<String, String>) {
    let below = |name: &str| match path {
        "" => name.to_owned(),
        _ => format!("{path}.{name}"),
    };
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reason)) = fields.remove(ABSENT_KEY) {
                reasons.insert(path.to_owned(), reason);
                *value = Value::Null;
                return;
            }
            for (name, field) in fields {
                take(field, &below(name), reasons);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                take(item, &below(&index.to_string()), reasons);
            }
        }
        _ => {}
    }
}
