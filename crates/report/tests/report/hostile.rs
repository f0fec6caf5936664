//! Every value of stored runs, replaced by what no run holds: a refusal or a run that can be judged
//! and printed in every form, and never a panic.

use brunt_judge::Judged;
use brunt_report::{Format, ReadError, Style, read, write, write_hgrm, write_hlog};
use serde_json::{Value, json};

use crate::fixtures;
use crate::golden::{junit_of, written};

/// Each check tries one in so many of the values, and the next others.
const PARTS: usize = 4;

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
    for &format in Format::OF_RUNS {
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
    let (mut places_seen, mut tried, mut accepted) = (0, 0, 0);
    let part = fixtures::part_of(PARTS);
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
                places_seen += 1;
                if places_seen % PARTS != part {
                    continue;
                }
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
    assert!(tried > 3_000 / PARTS as u32, "{tried}");
    assert!(
        accepted > tried / 20 && accepted < tried,
        "{accepted} of {tried}"
    );
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

/// What strangers may write, one that begins with each kind of harm.
const HOSTILE: [&str; 3] = [
    "\n ::error::x\u{1b}[2J\u{9b}31m\u{202e}\u{feff} ##[error]</script><script>x\"'><b>`|*x*",
    "::error::x",
    "=1+1\u{7}",
];

/// Checks that no reader of this form obeys anything in it.
#[track_caller]
fn assert_inert(bytes: &[u8], format: Format) {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    let is_harmful = |character: char| {
        (character.is_control() && character != '\n')
            || matches!(
                character,
                '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}' | '\u{feff}'
            )
    };
    if let Some(at) = text.find(is_harmful) {
        panic!("{format}: {:?}", &text[..text.ceil_char_boundary(at + 80)]);
    }
    match format {
        Format::Text => {
            let is_command = |line: &str| line.trim_start().starts_with("::");
            assert!(!text.lines().any(is_command), "{text}");
            assert!(!text.contains("##["), "{text}");
        }
        Format::Html => assert!(!text.contains("<script>x"), "{text}"),
        Format::Csv => {
            let mut rows = csv::Reader::from_reader(bytes);
            for row in rows.records() {
                let row = row.expect("CSV");
                let is_formula = |cell: &str| cell.starts_with(['=', '@', '|']);
                assert!(!row.iter().any(is_formula), "{row:?}");
            }
        }
        Format::Json | Format::Summary | Format::Markdown => {}
    }
}

/// Every text of every run that may be any text is replaced, and no form of the report obeys it.
#[test]
fn texts_of_strangers_are_inert_in_every_form() {
    let mut replaced_texts = 0;
    for (name, whole) in stored() {
        let mut places = Vec::new();
        pointers(&whole, "", &mut places);
        places.retain(|place| whole.pointer(place).is_some_and(Value::is_string));
        for hostile in HOSTILE {
            let mut run = whole.clone();
            for place in &places {
                let json = replaced(&run, place, json!(hostile));
                if read(&mut &json[..]).is_ok() {
                    *run.pointer_mut(place).expect("it was found there") = json!(hostile);
                    replaced_texts += 1;
                }
            }
            let run = read(&mut run.to_string().as_bytes()).expect("it was read in part");
            let judged = Judged::of(&run);
            for &format in Format::OF_RUNS {
                for verbose in [false, true] {
                    let style = Style {
                        verbose,
                        ..Style::default()
                    };
                    assert_inert(written(&judged, format, &style).as_bytes(), format);
                }
            }
            let text = junit_of(&judged);
            let is_harmful = text.contains("<script>x") || text.contains('\u{1b}');
            assert!(!is_harmful, "{name}: {text}");
        }
    }
    assert!(replaced_texts > 200, "{replaced_texts}");
}
