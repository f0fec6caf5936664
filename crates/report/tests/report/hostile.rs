//! Every value of stored runs, replaced by what no run holds: a refusal or a run that can be judged
//! and printed in every form, and never a panic.

use brunt_measure::Judged;
use brunt_report::{Format, ReadError, Style, read, write, write_hgrm, write_hlog};
use serde_json::{Value, json};

use crate::fixtures;

/// Longer than any list of a stored run but those of workers may be.
const MANY: usize = 70_000;

/// The JSON pointers of all values below `value`, of lists the first element's alone.
fn pointers(value: &Value, prefix: &str, found: &mut Vec<String>) {
    found.push(prefix.to_owned());
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let name = name.replace('~', "~0").replace('/', "~1");
                pointers(field, &format!("{prefix}/{name}"), found);
            }
        }
        Value::Array(elements) => {
            if let Some(first) = elements.first() {
                pointers(first, &format!("{prefix}/0"), found);
            }
        }
        _ => {}
    }
}

/// What to put in a value's place, none of its own kind alone.
fn strangers(value: &Value) -> Vec<Value> {
    let mut strangers = vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(1e308),
        json!(u64::MAX),
        json!(""),
        json!("\u{1b}[2J\u{9b}31m\u{202e}=cmd|' /C calc'!A0"),
        json!([]),
        json!({}),
        (0..100).fold(json!(0), |nested, _| json!([nested])),
    ];
    match value {
        Value::Array(elements) => {
            if let Some(first) = elements.first() {
                strangers.push(json!([first, first, first]));
                strangers.push(elements.iter().rev().cloned().collect());
            }
        }
        Value::String(text) => {
            strangers.push(json!(text.repeat(3)));
            strangers.push(json!(text.get(..text.len() / 2)));
            strangers.push(json!("\0".repeat(2_000)));
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or(0.0);
            strangers.push(json!(number + 1.0));
            strangers.push(json!(number * 1e9));
        }
        _ => {}
    }
    strangers
}

/// Reads `json`; where that works, judges and prints it in every form.
fn taken(json: &[u8]) -> Result<(), ReadError> {
    let run = read(&mut &json[..])?;
    let judged = Judged::of(&run);
    let verbose = Style {
        verbose: true,
        spectrum: true,
        ..Style::default()
    };
    for &format in Format::ALL {
        write(&judged, format, &verbose, &mut std::io::sink()).expect("a run that was read");
    }
    let plain = Style::default();
    write(&judged, Format::Text, &plain, &mut std::io::sink()).expect("a run that was read");
    write_hlog(&run, &mut std::io::sink()).expect("a run that was read");
    write_hgrm(&run, &mut std::io::sink()).expect("a run that was read");
    Ok(())
}

fn replaced(whole: &Value, pointer: &str, value: Value) -> Vec<u8> {
    let mut changed = whole.clone();
    *changed.pointer_mut(pointer).expect("it was found there") = value;
    changed.to_string().into_bytes()
}

/// The fixtures as stored, without what is derived, and with the start of their lists alone.
fn stored() -> Vec<(&'static str, Value)> {
    let stored = fixtures::all().into_iter().map(|(name, run)| {
        let mut stored = serde_json::to_value(run).expect("a run serialises");
        shorten(&mut stored);
        (name, stored)
    });
    stored.collect()
}

fn shorten(value: &mut Value) {
    match value {
        Value::Array(elements) => {
            elements.truncate(4);
            elements.iter_mut().for_each(shorten);
        }
        // The buckets of a split add up to what it holds: fewer of them are no sound run.
        Value::Object(fields) => fields
            .iter_mut()
            .filter(|(name, _)| *name != "buckets")
            .for_each(|(_, field)| shorten(field)),
        _ => {}
    }
}

#[test]
fn no_value_in_any_place_causes_a_panic() {
    let (mut tried, mut accepted) = (0, 0);
    let mut seen = std::collections::BTreeSet::new();
    for (name, whole) in stored() {
        let mut places = Vec::new();
        pointers(&whole, "", &mut places);
        for pointer in places {
            // A place that another fixture has too was tried there.
            if !seen.insert(pointer.clone()) {
                continue;
            }
            for stranger in strangers(whole.pointer(&pointer).expect("it was found there")) {
                let json = replaced(&whole, &pointer, stranger);
                let outcome = std::panic::catch_unwind(|| taken(&json));
                let outcome = outcome.unwrap_or_else(|_| {
                    panic!("{name}{pointer}: {:.2000}", String::from_utf8_lossy(&json))
                });
                tried += 1;
                accepted += u32::from(outcome.is_ok());
                if let Err(error) = outcome {
                    let words = error.to_string();
                    assert!(words.len() < 1_500, "{name}{pointer}: {words}");
                }
            }
        }
    }
    assert!(tried > 3_000, "{tried}");
    assert!(
        accepted > tried / 20 && accepted < tried,
        "{accepted} of {tried}"
    );
}

/// Whatever lists a run has, also those that come to be: one that is too long is refused.
#[test]
fn every_list_is_bounded() {
    let mut lists = 0;
    let mut seen = std::collections::BTreeSet::new();
    for (name, whole) in stored() {
        let mut places = Vec::new();
        pointers(&whole, "", &mut places);
        for pointer in places {
            let Some(Value::Array(elements)) = whole.pointer(&pointer) else {
                continue;
            };
            // Those of workers are large: a list of 70,000 of them is over another limit. There may
            // be as many names. The buckets of a sparse histogram are pairs, of two numbers alone.
            let is_bounded_so = !["/agents", "/agents/0/workers", "/names"]
                .contains(&pointer.as_str())
                && !pointer.contains("/buckets/");
            let (Some(first), true) = (elements.first(), is_bounded_so) else {
                continue;
            };
            if !seen.insert(pointer.clone()) {
                continue;
            }
            let json = replaced(&whole, &pointer, vec![first.clone(); MANY].into());
            let error = taken(&json).expect_err(&pointer).to_string();
            assert!(error.contains("limit"), "{name}{pointer}: {error}");
            lists += 1;
        }
    }
    assert!(lists >= 12, "{lists}");
}

#[test]
fn every_text_is_bounded() {
    let long = "a".repeat((1 << 20) + 1);
    let (_, whole) = stored().swap_remove(0);
    let mut places = Vec::new();
    pointers(&whole, "", &mut places);
    places.retain(|pointer| whole.pointer(pointer).is_some_and(Value::is_string));
    assert!(places.len() >= 10, "{places:?}");
    for pointer in places {
        let json = replaced(&whole, &pointer, json!(long));
        let error = read(&mut &json[..]).map(drop).expect_err(&pointer);
        assert!(
            matches!(error, ReadError::LongText { .. }),
            "{pointer}: {error}"
        );
    }
}

#[test]
fn a_number_may_have_a_million_digits() {
    let (_, whole) = stored().swap_remove(0);
    let text = whole.to_string();
    let place = text.find("\"requests_sent\":").expect("it is stored") + 16;
    for digits in ["9".repeat(1 << 20), format!("0.{}1", "0".repeat(1 << 20))] {
        let json = [&text[..place], &digits, &text[place..]].concat();
        let error = taken(json.as_bytes()).expect_err("no counter");
        assert!(error.to_string().len() < 1_500, "{error}");
    }
}
