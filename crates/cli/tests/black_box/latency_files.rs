//! The percentile spectrum and the files for HdrHistogram's tools: where they go. What they hold is
//! tested with the reports.

use crate::support::process::{brunt, refused, success};
use crate::support::serve::Serve;
use crate::support::stored::Stored;

#[test]
fn each_file_is_replaced_and_made_again_from_the_stored_run() {
    let (server, files) = (Serve::start(), Stored::new());
    let names = ["run.hlog", "run.hgrm"];
    // What was there is replaced whole.
    for name in names {
        files.write(name, "x".repeat(100_000));
    }
    let options = |ending: &str| {
        let [log, hgrm] = names.map(|name| files.path(name) + ending);
        format!("--hdr-log {log} --hgrm {hgrm}")
    };
    let (json, url) = (files.path("run.json"), server.url("/"));
    let outcome = success(&format!("-c 4 -n 500 -q -o {json} {} {url}", options("")));
    assert_eq!(outcome.stdout, "");
    assert_eq!(
        files.read("run.json")["latencies"]["response"]["count"],
        500
    );
    let [log, hgrm] = names.map(|name| files.text(name));
    assert!(log.starts_with('#') && !log.contains("xxxx"), "{log}");
    assert!(hgrm.contains("#[Mean") && !hgrm.contains("xxxx"), "{hgrm}");
    // The same again from the stored run.
    success(&format!("report {} {json}", options("2")));
    let again = names.map(|name| files.text(&format!("{name}2")));
    assert_eq!(again, [log, hgrm]);
}

#[test]
fn a_full_disk_does_not_cost_the_other_reports() {
    let server = Serve::start();
    let load = "--format json -c 2 -n 100 --hgrm /dev/full";
    let outcome = brunt(&format!("{load} {}", server.url("/")));
    refused(&outcome, "/dev/full");
    outcome.assert_says(&["No space left"]);
    outcome.json();
}
