//! The HTML page of known runs: what it holds beside the files of every page, whether its parts fit
//! together, and its size.

use std::collections::BTreeSet;

use brunt_judge::{Judged, SweepRound};
use brunt_record::Run;
use brunt_report::{Experiment, Format};

use crate::experiments;
use crate::fixtures;
use crate::golden::{PIPED, compare, written};

/// The page of a run of ten minutes has fewer bytes than this.
const PAGE_BYTES_MAX: usize = 400_000;
/// The page of a sweep of 100 values has fewer bytes than this.
const SWEEP_BYTES_MAX: usize = 2_000_000;
/// What elements may have: nothing that runs, looks or loads.
const ATTRIBUTES: &str = "aria-hidden aria-label aria-labelledby charset class colspan content \
                          data-group height href http-equiv id lang name preserveAspectRatio rel \
                          role scope type viewBox width x y html";
/// Elements without an end tag.
const VOID: [&str; 4] = ["meta", "link", "rect", "br"];

fn page(run: &Run) -> String {
    written(&Judged::of(run), Format::Html, &PIPED)
}

/// The page without the style sheets, scripts and the licence that every page holds, and without
/// their hashes.
fn own_part(page: &str) -> String {
    let mut own = String::new();
    let mut rest = page;
    for (start, end) in [
        ("content=\"default-src", "\">"),
        ("<style>", "</style>"),
        ("<style>", "</style>"),
        ("\n<!-- The charts", "-->"),
        ("<script>", "</script>"),
        ("<script>", "</script>"),
        ("<script>", "</script>"),
    ] {
        let at = rest.find(start).unwrap_or_else(|| panic!("no {start}")) + start.len();
        own.push_str(&rest[..at]);
        let until = rest[at..].find(end).expect("its end");
        own.push_str("...");
        rest = &rest[at + until..];
    }
    own + rest
}

/// The data for the charts.
fn data(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    let (json, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(json).unwrap()
}

/// The tags of a page, each with its name and its attributes.
fn tags(page: &str) -> Vec<(&str, &str)> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some((_, from)) = rest.split_once('<') {
        if let Some(comment) = from.strip_prefix("!--") {
            (_, rest) = comment.split_once("-->").expect("a comment ends");
            continue;
        }
        let (tag, after) = from.split_once('>').expect("a tag ends");
        tags.push(tag.split_once([' ', '\n']).unwrap_or((tag, "")));
        rest = after;
    }
    tags
}

/// The names of attributes, whose values are in quotes.
fn attribute_names(attributes: &str) -> Vec<&str> {
    let outside = attributes.split('"').step_by(2);
    outside
        .flat_map(|part| part.split([' ', '\n', '=', '/']))
        .filter(|name| !name.is_empty())
        .collect()
}

/// The values of an attribute, in order.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let start = format!(" {attribute}=\"");
    let found = page.split(start.as_str()).skip(1);
    found.map(|rest| rest.split('"').next().unwrap()).collect()
}

#[test]
fn html() {
    for name in ["overloaded", "watched"] {
        let mut all = fixtures::all().into_iter();
        let (_, run) = all.find(|(known, _)| *known == name).unwrap();
        compare(&format!("{name}.html"), &own_part(&page(&run)));
    }
}

/// Whether the parts of a page belong together, and nothing in it runs, looks or loads but what is
/// meant to.
fn assert_whole(name: &str, page: &str) {
    let own = own_part(page);
    let mut open = Vec::new();
    for (tag, attributes) in tags(&own) {
        match tag.strip_prefix('/') {
            Some(ended) => assert_eq!(open.pop(), Some(ended), "{name}"),
            None if tag.starts_with('!') || VOID.contains(&tag) => {}
            None => open.push(tag),
        }
        // Neither styles nor scripts but those that the policy names, and nothing from outside.
        for attribute in attribute_names(attributes) {
            let is_allowed = ATTRIBUTES.split(' ').any(|known| known == attribute);
            assert!(is_allowed, "{name}: {tag} {attributes}");
        }
    }
    assert_eq!(open, [""; 0], "{name}");
    assert_eq!(values(&own, "href"), ["data:,"], "{name}");
    let ids = values(&own, "id");
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), unique.len(), "{name}: {ids:?}");
    for label in values(&own, "aria-labelledby") {
        assert!(unique.contains(label), "{name}: {label}");
    }
    let data = data(page);
    for place in values(&own, "data-group") {
        let of = match place {
            "requests" | "latency" | "resources" => "run",
            other => other,
        };
        assert!(!data[of].is_null(), "{name}: nothing for {place}");
    }
}

#[test]
fn the_parts_of_every_page_fit_together() {
    for (name, run) in fixtures::all().into_iter().chain(fixtures::kinds()) {
        let page = page(&run);
        assert!(page.len() < PAGE_BYTES_MAX, "{name}: {} bytes", page.len());
        assert_whole(name, &page);
    }
}

#[test]
fn pages_of_experiments() {
    for (name, experiment) in experiments::all() {
        let page = experiments::written(&experiment, Format::Html);
        assert_whole(name, &page);
        if experiments::IN_EVERY_FORM.contains(&name) {
            compare(&format!("experiment.{name}.html"), &own_part(&page));
        }
    }
}

#[test]
fn a_sweep_of_a_hundred_values_is_a_page_of_bounded_size() {
    let mut sweep = experiments::sweep(10);
    let rounds = std::mem::take(&mut sweep.rounds);
    sweep.plan.values = (1..=100).map(|value| f64::from(value) * 10.0).collect();
    let all = sweep.plan.values.iter().flat_map(|&value| {
        let of_one = rounds.iter().filter(|round| round.value == 20.0).cloned();
        of_one.map(move |round| SweepRound { value, ..round })
    });
    sweep.rounds = all.collect();
    let experiment = Experiment::Sweep(sweep);
    let page = experiments::written(&experiment, Format::Html);
    assert!(page.len() < SWEEP_BYTES_MAX, "{} bytes", page.len());
    assert_whole("sweep", &page);
}

#[test]
fn the_heat_map_holds_every_response_of_the_intervals() {
    let run = fixtures::normal();
    let data = data(&page(&run));
    let columns = data["run"]["heat"]["columns"].as_array().unwrap();
    let counts = columns.iter().flat_map(|column| {
        let column = column.as_array().unwrap().iter().skip(1);
        column.map(|count| count.as_u64().unwrap())
    });
    assert_eq!(counts.sum::<u64>(), run.latencies.intervals.count());
}

#[test]
fn no_rate_is_drawn_where_none_is_told() {
    for (name, run) in [
        ("invalid", fixtures::invalid()),
        ("merged_apart", fixtures::merged_apart()),
    ] {
        let page = own_part(&page(&run));
        assert_eq!(data(&page)["run"]["has_rates"], false, "{name}");
        assert!(!page.contains("req/s") || name == "merged_apart", "{name}");
    }
}
