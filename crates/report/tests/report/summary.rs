//! The derived figures of whole runs agree with what the run holds.

use brunt_judge::{Judged, OwnPart};
use brunt_record::Run;
use brunt_report::Format;
use serde_json::Value;

use crate::fixtures;
use crate::golden::{PIPED, junit_of, written};

#[test]
fn a_set_up_that_fell_short_is_told() {
    let mut run = fixtures::normal();
    for worker in &mut run.agents[0].workers {
        worker.set_up = Some(brunt_record::SetUp {
            asked: 500,
            open: 500,
            opened: 500,
            ..Default::default()
        });
    }
    let text = |run: &Run| written(&Judged::of(run), Format::Text, &PIPED);
    assert!(!text(&run).contains("when set-up"));
    let set_up = run.agents[0].workers[0].set_up.as_mut().expect("set above");
    (set_up.open, set_up.timed_out) = (2, true);
    // Lines may be broken anywhere.
    let words = text(&run).split_whitespace().collect::<Vec<_>>().join(" ");
    let says = "502 of 1,000 open when set-up was over its limit";
    assert!(words.contains(says), "{words}");
}

#[test]
fn what_is_not_open_when_the_window_begins_is_said_first() {
    let mut run = fixtures::normal();
    let written = |run: &Run, format| written(&Judged::of(run), format, &PIPED);
    let says = "5 of 64 connections were not open when the window began";
    run.plan.load.connections = fixtures::nonzero(64);
    for count in [None, Some(0)] {
        run.agents[0].workers[0].live.unopened_at_start = count;
        assert!(!written(&run, Format::Text).contains("not open when"));
    }
    run.agents[0].workers[0].live.unopened_at_start = Some(5);
    let text = written(&run, Format::Text);
    // Above it is the headline alone, where there is one.
    let (above, _) = text.split_once(says).expect("a line");
    let is_headline = above.starts_with("INVALID") && !above.contains("\n\n");
    assert!(above.is_empty() || is_headline, "{text}");
    assert!(written(&run, Format::Html).contains(says));
    let figures = figures_of(&Judged::of(&run));
    assert_eq!(figures["live"]["unopened_at_start"], 5);
}

#[test]
fn stages_together_are_the_window() {
    for (name, run) in fixtures::all() {
        let figures = figures_of(&Judged::of(&run));
        let Some(stages) = figures["stages"].as_array() else {
            continue;
        };
        assert_eq!(name, "overloaded");
        let sum = |path: &str| -> u64 {
            let counts = stages.iter().map(|stage| stage.pointer(path).unwrap());
            counts.map(|count| count.as_u64().unwrap()).sum()
        };
        assert_eq!(sum("/measured_ns"), figures["window_ns"]);
        assert_eq!(sum("/arrivals/planned"), figures["arrivals"]["planned"]);
        for count in ["issued", "successes", "errors", "failed", "censored"] {
            assert_eq!(sum(&format!("/{count}")), figures["requests"][count]);
        }
        let [ramp, overload] = stages.as_slice() else {
            panic!("{stages:?}");
        };
        assert!(
            overload["response"]["at_least_ns"]["p99"].is_u64(),
            "{overload:?}"
        );
        assert!(ramp["successes_per_s"].as_f64() > Some(1_000.0), "{ramp:?}");
    }
}

/// A run that ends in a stage measures part of it, and has nothing of those behind it.
#[test]
fn stages_behind_the_window_have_no_rate() {
    let mut run = fixtures::overloaded();
    run.window_ns = 2_000_000_000;
    // Nobody would believe such a run.
    let figures = |run: &Run| {
        let mut judged = Judged::of(run);
        judged.findings.clear();
        figures_of(&judged)
    };
    let found = figures(&run);
    assert_eq!(found["stages"][0]["measured_ns"], 2_000_000_000);
    assert_eq!(found["stages"][1]["measured_ns"], 0);
    let reason = "the window ended before it";
    assert_eq!(found["absent"]["stages.1.successes_per_s"], reason);
    run.latencies.stages.clear();
    assert_eq!(figures(&run)["absent"]["stages"], "not recorded");
}

/// The figures of the stored form.
fn figures_of(judged: &Judged<'_>) -> Value {
    let text = written(judged, Format::Json, &PIPED);
    serde_json::from_str::<Value>(&text).unwrap()["summary"].take()
}

/// One in 200 packets that are lost is no accident.
#[test]
fn lost_packets_are_told_unless_they_are_few() {
    for (lost, is_told) in [(0, false), (2, false), (3, true)] {
        let mut run = fixtures::normal();
        let quic = &mut run.agents[0].workers[0].tallies.measure.quic;
        (quic.packets_sent, quic.packets_lost, quic.bytes_lost) = (410, lost, 3_600);
        let text = written(&Judged::of(&run), Format::Text, &PIPED);
        let words = format!("{lost} of 410 packets lost");
        assert_eq!(text.contains(&words), is_told, "{text}");
    }
}

#[test]
fn a_reader_sees_first_what_the_verdict_rests_on_and_where_that_is_brunts_own() {
    let run = fixtures::stolen();
    let mut judged = Judged::of(&run);
    let page = |judged: &Judged<'_>, format| written(judged, format, &PIPED);
    let summary = |judged: &Judged<'_>| -> Value {
        serde_json::from_str(&page(judged, Format::Summary)).unwrap()
    };
    let found = summary(&judged);
    assert_eq!(found["undisturbed_s"], 3.65);
    let of = |name: &str| found[name].as_f64().unwrap();
    assert!(of("latency_p99_us") < of("latency_p99_whole_us"));
    assert_eq!(found["latency_valid"], true);
    assert!(page(&judged, Format::Html).contains("class=\"verdict sound\""));
    assert!(junit_of(&judged).contains("skipped=\"0\""));
    judged.judgement.mostly_own = Some(OwnPart {
        of: "p99",
        share: 0.97,
        ns: 19.2e6,
    });
    let found = summary(&judged);
    assert_eq!(
        (&found["latency_valid"], &found["valid"]),
        (&false.into(), &true.into())
    );
    assert!(page(&judged, Format::Html).contains("class=\"verdict warning\""));
    assert!(junit_of(&judged).contains("<skipped message="));
}
