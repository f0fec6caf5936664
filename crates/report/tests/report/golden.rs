//! Reports of the fixtures, compared byte for byte with `tests/golden/`: of each the text, and of
//! some the other forms. `BLESS=1` rewrites the files.

use std::path::Path;

use brunt_judge::{InvariantStatus, Judged, check};
use brunt_load::Scheme;
use brunt_record::Run;
use brunt_report::{Format, Style, read, write};

use crate::experiments;
use crate::fixtures::{self, replaced_after};

pub(crate) const PIPED: Style = Style {
    colour: false,
    width: 80,
    verbose: false,
    spectrum: false,
};

const COLOURED: Style = Style {
    colour: true,
    ..PIPED
};

const IN_FULL: Style = Style {
    verbose: true,
    ..PIPED
};

const WITH_SPECTRUM: Style = Style {
    spectrum: true,
    ..IN_FULL
};

/// What is written of a run in this form.
pub(crate) fn written(judged: &Judged<'_>, format: Format, style: &Style) -> String {
    let mut bytes = Vec::new();
    write(judged, format, style, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The objectives of a run as test results.
pub(crate) fn junit_of(judged: &Judged<'_>) -> String {
    let mut bytes = Vec::new();
    brunt_report::write_junit(judged, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn report(run: &Run, format: Format, style: &Style) -> String {
    written(&Judged::of(run), format, style)
}

pub(crate) fn compare(file: &str, found: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(file);
    if std::env::var_os("BLESS").is_some_and(|value| value == "1") {
        std::fs::write(&path, found).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        golden == found,
        "{file} differs; look at it and run the test with BLESS=1 if it is right.\n\
         --- golden\n{golden}\n--- found\n{found}"
    );
}

/// Counts of one with a noun for several, such as `1 workers`.
fn plurals_of_one(text: &str) -> Vec<String> {
    // They end in s and stand for one thing, or are verbs.
    const SINGULAR: [&str; 12] = [
        "s", "ms", "ns", "is", "was", "has", "does", "holds", "process", "status", "address",
        "class",
    ];
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_one = |word: &str| word.trim_start_matches(|c: char| !c.is_alphanumeric()) == "1";
    let found = words.windows(2).filter(|pair| {
        let noun = pair[1].trim_end_matches(|c: char| !c.is_alphanumeric());
        let is_word = noun
            .chars()
            .all(|c| c.is_ascii_lowercase() || c == '-' || c == 'C')
            || noun == "CPUs";
        is_one(pair[0]) && is_word && noun.ends_with('s') && !SINGULAR.contains(&noun)
    });
    found.map(|pair| pair.join(" ")).collect()
}

#[test]
fn one_thing_is_singular() {
    assert_eq!(plurals_of_one("of 1 workers, 1 s"), ["1 workers,"]);
    let runs = fixtures::all().into_iter().chain(fixtures::kinds());
    let runs = runs.flat_map(|(name, run)| {
        [PIPED, IN_FULL].map(|style| (name, report(&run, Format::Text, &style)))
    });
    let experiments = experiments::all().into_iter();
    let experiments =
        experiments.map(|(name, found)| (name, experiments::written(&found, Format::Text)));
    for (name, text) in runs.chain(experiments) {
        assert_eq!(
            plurals_of_one(&text),
            Vec::<String>::new(),
            "{name}:\n{text}"
        );
    }
}

/// The rows of a page: labels, and what stands beside them, on one line.
fn rows(text: &str) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    for line in text.lines().filter(|line| line.is_char_boundary(12)) {
        let (label, items) = line.split_at(12);
        match rows.last_mut().filter(|_| label.trim().is_empty()) {
            Some((_, row)) => *row = format!("{row} · {}", items.trim()),
            None => rows.push((label.trim().to_owned(), items.trim().to_owned())),
        }
    }
    rows
}

/// The numbers of a row, each with the words before it up to a colon, and those behind it.
fn numbers(row: &str) -> Vec<(&str, f64, &str)> {
    let parsed = |text: &str| text.replace(',', "").parse::<f64>().ok();
    let items = row.split(" · ").filter_map(|item| {
        if let Some((before, number)) = item.rsplit_once(": ") {
            return Some((before, parsed(number)?, ""));
        }
        let (number, behind) = item.split_once(' ')?;
        Some(("", parsed(number)?, behind))
    });
    items.collect()
}

/// Checks that all rows of a page count what ended in the window alike.
fn assert_adds_up(name: &str, text: &str) {
    let rows = rows(text);
    let row = |label: &str| {
        let found = rows.iter().find(|(known, _)| known == label);
        found.map_or(Vec::new(), |(_, items)| numbers(items))
    };
    let of = |label: &str, ends: &[&str]| -> f64 {
        let row = row(label);
        let found = row.iter().filter(|(_, _, behind)| ends.contains(behind));
        found.map(|(_, count, _)| count).sum()
    };
    let ok = of("requests", &["ok"]);
    let errors = of("requests", &["error replies"]);
    let sum = |label: &str, from: &str| -> f64 {
        let row = row(label);
        row.iter()
            .filter(|one| one.0 >= from)
            .map(|one| one.1)
            .sum()
    };
    if !row("statuses").is_empty() {
        let statuses = (sum("statuses", ""), sum("statuses", "400"));
        assert_eq!(statuses, (ok + errors, errors), "{name}:\n{text}");
    }
    let failed = of("requests", &["failed"]);
    if !row("requests").is_empty() {
        assert_eq!(sum("failures", ""), failed, "{name}:\n{text}");
    }
    // Where steal is left out, the whole window has a row of its own.
    let throughput = [row("whole"), row("throughput")].concat();
    let rate = throughput.iter().find(|one| one.2.starts_with("req/s"));
    let length = text
        .split_once(" s after")
        .or(text.split_once(" s measured"));
    if let (Some((_, per_s, _)), Some((before, _))) = (rate, length) {
        let seconds: f64 = before.rsplit(['\n', ' ']).next().unwrap().parse().unwrap();
        let off = (per_s * seconds - ok).abs();
        assert!(off <= ok * 0.01 + 1.0, "{name}: {off} off in\n{text}");
    }
    let ends = [
        "sent",
        "sent after the window",
        "skipped, the queue was full",
        "waited too long",
        "never sent",
    ];
    let planned = of("arrivals", &["planned"]);
    assert_eq!(of("arrivals", &ends), planned, "{name}:\n{text}");
    let ends = ["answered", "failed", "in flight at the end"];
    let sent = of("whole run", &["sent"]);
    assert_eq!(of("whole run", &ends), sent, "{name}:\n{text}");
}

#[test]
fn the_counts_of_a_page_add_up() {
    for (name, run) in fixtures::all().into_iter().chain(fixtures::kinds()) {
        for style in [PIPED, IN_FULL] {
            assert_adds_up(name, &report(&run, Format::Text, &style));
        }
    }
}

#[test]
fn a_long_url_is_cut_where_people_read() {
    let mut run = fixtures::normal();
    let query = "q".repeat(9_000);
    run.plan.target.url = format!("http://127.0.0.1:8080/begin?{query}/the-end");
    for format in [Format::Text, Format::Html] {
        let text = report(&run, format, &PIPED);
        assert!(!text.contains(&"q".repeat(400)), "{format:?}");
        let unbroken = text.replace(['\n', ' '], "");
        for part in ["/begin?", "...", "/the-end"] {
            assert!(unbroken.contains(part), "{format:?} {part}");
        }
    }
    let text = report(&run, Format::Text, &PIPED);
    assert!(text.lines().count() < 60, "{text}");
    for format in [Format::Json, Format::Csv] {
        assert!(report(&run, format, &PIPED).contains(&query), "{format:?}");
    }
}

#[test]
fn one_fixture_is_invalid() {
    for (name, run) in fixtures::all().into_iter().chain(fixtures::kinds()) {
        let findings = check(&run);
        let broken = findings
            .iter()
            .find(|finding| finding.status == InvariantStatus::Broken);
        assert_eq!(broken.is_some(), name == "invalid", "{name}: {broken:?}");
        assert_eq!(run.check_sound(), Ok(()), "{name}");
    }
}

#[test]
fn text_at_80_columns() {
    for (name, run) in fixtures::all() {
        compare(&format!("{name}.txt"), &report(&run, Format::Text, &PIPED));
    }
}

#[test]
fn text_at_100_columns() {
    let style = Style {
        width: 100,
        ..PIPED
    };
    let text = report(&fixtures::listed(), Format::Text, &style);
    compare("listed.100.txt", &text);
}

/// Lines of a report in which nothing is unusual, blank ones counted.
const LINES_MAX: usize = 14;

#[test]
fn the_usual_kinds_of_run_fit_their_lines() {
    const OTHERS: [&str; 4] = ["open", "sessions", "client_limited", "watched"];
    let others = fixtures::all().into_iter();
    let others = others.filter(|(name, _)| OTHERS.contains(name));
    for (name, run) in fixtures::kinds().into_iter().chain(others) {
        for width in [80, 100] {
            let text = report(&run, Format::Text, &Style { width, ..PIPED });
            if width == 80 && !OTHERS.contains(&name) {
                compare(&format!("kind.{name}.txt"), &text);
            }
            let lines = text.lines().count();
            assert!(
                lines <= LINES_MAX,
                "{name} at {width}, {lines} lines:\n{text}"
            );
        }
    }
}

#[test]
fn text_with_colour() {
    let text = report(&fixtures::failures(), Format::Text, &COLOURED);
    compare("failures.colour.txt", &text);
}

#[test]
fn text_in_full() {
    for (name, run) in [
        ("failures", fixtures::failures()),
        ("watched", fixtures::watched()),
        ("streams", fixtures::streams()),
        ("server_failed", fixtures::server_failed()),
    ] {
        let text = report(&run, Format::Text, &IN_FULL);
        compare(&format!("{name}.verbose.txt"), &text);
    }
}

#[test]
fn text_with_the_spectrum() {
    let text = report(&fixtures::overloaded(), Format::Text, &WITH_SPECTRUM);
    let (_, spectrum) = text.split_once("\nspectrum").unwrap();
    let (spectrum, _) = spectrum.split_once("\n\n").unwrap();
    compare("overloaded.spectrum.txt", &format!("spectrum{spectrum}\n"));
}

#[test]
fn what_is_spoken_in_clear_text_is_told() {
    let mut run = fixtures::streams();
    run.plan.target.scheme = Scheme::Http;
    run.agents[0].negotiated.tls = None;
    run.plan.traffic.reuse = replaced_after(1);
    let words = "HTTP/2 in clear text · a connection per request";
    let text = report(&run, Format::Text, &PIPED);
    assert!(text.contains(words), "{text}");
}

#[test]
fn transfer_has_a_row_where_it_takes_time() {
    let mut run = fixtures::resumed();
    let has_row = |run: &Run| report(run, Format::Text, &PIPED).contains("\n  transfer ");
    assert!(!has_row(&run));
    run.latencies.transfer = run.latencies.response.clone();
    assert!(has_row(&run));
    run.latencies.transfer = Default::default();
    run.latencies.first_byte = Default::default();
    assert!(!has_row(&run));
}

#[test]
fn csv() {
    let run = fixtures::failures();
    compare("failures.csv", &report(&run, Format::Csv, &PIPED));
}

#[test]
fn junit() {
    let mut run = fixtures::objectives();
    run.plan.target.url.push_str("?a=<b>&c=\"d\"");
    compare("objectives.junit.xml", &junit_of(&Judged::of(&run)));
}

#[test]
fn json() {
    let stolen = ("stolen", fixtures::stolen());
    for (name, run) in fixtures::complete().into_iter().chain([stolen]) {
        assert_eq!(run.check_sound(), Ok(()), "{name}");
        compare(&format!("{name}.json"), &report(&run, Format::Json, &PIPED));
    }
}

#[test]
fn stored_plans() {
    let plans = fixtures::plans();
    let text = serde_json::to_string_pretty(&plans).unwrap() + "\n";
    assert!(!text.contains("hush") && !text.contains("aHVzaA"), "{text}");
    let read: Vec<brunt_load::Plan> = serde_json::from_str(&text).unwrap();
    assert_eq!(read, plans);
    compare("plans.json", &text);
}

#[test]
fn no_line_of_text_is_wider_than_the_page() {
    for (name, run) in fixtures::all().into_iter().chain(fixtures::kinds()) {
        let pages = [(80, false), (80, true), (160, true)];
        for (width, verbose) in pages {
            let style = Style {
                colour: false,
                width,
                verbose,
                spectrum: verbose,
            };
            for line in report(&run, Format::Text, &style).lines() {
                assert!(
                    line.chars().count() <= width.into(),
                    "{name} at {width}: {line:?}"
                );
                assert!(!line.ends_with(' '), "{name} at {width}: {line:?}");
            }
        }
    }
}

#[test]
fn nothing_is_printed_that_is_no_number() {
    for (name, run) in fixtures::all().into_iter().chain(fixtures::kinds()) {
        let texts = [
            report(&run, Format::Text, &PIPED),
            report(&run, Format::Text, &WITH_SPECTRUM),
            report(&run, Format::Csv, &PIPED),
        ];
        for word in texts.iter().flat_map(|text| {
            text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '(' | ')' | ':'))
        }) {
            let number = word.strip_prefix('±').unwrap_or(word);
            let is_negative_zero = number.strip_prefix('-').is_some_and(|digits| {
                !digits.is_empty() && digits.chars().all(|c| matches!(c, '0' | '.'))
            });
            let is_none = matches!(number, "NaN" | "inf" | "-inf" | "-NaN" | "undefined");
            assert!(!is_negative_zero && !is_none, "{name}: {word}");
        }
    }
}

#[test]
fn connecting_has_a_row_where_each_request_has_a_connection() {
    let run = fixtures::per_request();
    let label = |run: &Run| report(run, Format::Text, &PIPED).contains("\n  with connect ");
    assert!(label(&run));
    let json: serde_json::Value =
        serde_json::from_str(&report(&run, Format::Json, &PIPED)).unwrap();
    let count = |name: &str| json["summary"][name]["count"].as_u64().unwrap();
    assert_eq!(count("with_connect"), count("response"));
    let mut kept = run.clone();
    kept.latencies.response.merge(&run.latencies.response);
    assert!(!label(&kept));
    assert!(!label(&fixtures::resumed()) && !label(&fixtures::sessions()));
}

#[test]
fn colour_changes_nothing_but_colour() {
    for (name, run) in fixtures::all() {
        let plain = report(&run, Format::Text, &PIPED);
        let mut coloured = report(&run, Format::Text, &COLOURED);
        for code in ["\x1b[1m", "\x1b[31m", "\x1b[33m", "\x1b[1;31m", "\x1b[0m"] {
            coloured = coloured.replace(code, "");
        }
        assert!(!plain.contains('\x1b'), "{name}");
        assert_eq!(plain, coloured, "{name}");
    }
}

#[test]
fn a_stored_run_is_read_back_whole() {
    for (name, run) in fixtures::all().into_iter().chain(fixtures::complete()) {
        let json = report(&run, Format::Json, &PIPED);
        let again = read(&mut json.as_bytes()).unwrap();
        assert!(again == run, "{name}");
        assert_eq!(report(&again, Format::Json, &PIPED), json, "{name}");
        assert_eq!(
            report(&again, Format::Text, &PIPED),
            report(&run, Format::Text, &PIPED),
            "{name}"
        );
    }
}

#[test]
fn every_null_of_the_summary_has_its_reason() {
    fn nulls(value: &serde_json::Value, path: &str, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Null => found.push(path.to_owned()),
            serde_json::Value::Object(fields) => {
                for (name, field) in fields {
                    let dot = if path.is_empty() { "" } else { "." };
                    nulls(field, &format!("{path}{dot}{name}"), found);
                }
            }
            serde_json::Value::Array(elements) => {
                for (index, element) in elements.iter().enumerate() {
                    nulls(element, &format!("{path}.{index}"), found);
                }
            }
            _ => {}
        }
    }
    for (name, run) in fixtures::all() {
        let json: serde_json::Value =
            serde_json::from_str(&report(&run, Format::Json, &PIPED)).unwrap();
        let mut found = Vec::new();
        nulls(&json["summary"], "", &mut found);
        found.sort();
        let reasons: Vec<&String> = json["summary"]["absent"]
            .as_object()
            .unwrap()
            .keys()
            .collect();
        assert_eq!(found.iter().collect::<Vec<_>>(), reasons, "{name}");
    }
}

#[test]
fn a_closed_output_is_an_error_and_no_panic() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    for &format in Format::OF_RUNS {
        let error = write(&Judged::of(&fixtures::few()), format, &PIPED, &mut Closed).unwrap_err();
        let brunt_report::ReportError::Output(error) = error else {
            panic!("{format}: {error}");
        };
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "{format}");
    }
}
