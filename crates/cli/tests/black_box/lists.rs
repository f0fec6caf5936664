//! Lists of requests: what was sent under each name, against what nginx logged for each path.

use crate::loads::MACHINERIES;
use crate::support::nginx::{Nginx, Site};
use crate::support::process::{brunt, refused, success};
use crate::support::run::run;
use crate::support::serve::Serve;
use crate::support::stored::{Stored, sent_by_name};

/// Files that are there, and some that are not.
const PATHS: [&str; 7] = [
    "/100.html",
    "/100.html?a=1",
    "/100.html?a=2",
    "/missing",
    "/100.html?b",
    "/also/missing?c=d",
    "/100.html?a=1",
];

/// Runs each of `loads` on every backend, with one and two workers.
fn compare(http2: bool, option: &str, list: &str, loads: &[&str]) {
    let site = Site::clear(http2);
    let mut nginx = Nginx::start_sites(std::slice::from_ref(&site));
    for machinery in MACHINERIES {
        for load in loads {
            let before = nginx.logged_by_path();
            let protocol = if http2 { "--http2" } else { "--http1" };
            let load = format!("{protocol} {option} {list} {load}");
            let report = machinery.run(&load, &site.url("/"));
            nginx.settled();
            let mut received = nginx.logged_by_path();
            for (path, count) in before {
                *received.entry(path).or_default() -= count;
            }
            received.retain(|_, count| *count > 0);
            assert_eq!(sent_by_name(&report.json), received, "{machinery:?} {load}");
            let requests = report.requests();
            let all: u64 = received.values().sum();
            assert_eq!(requests.sent, all, "{machinery:?} {load}");
            assert_eq!(requests.answered, requests.sent, "{machinery:?} {load}");
        }
    }
}

#[test]
fn urls_over_http1() {
    let files = Stored::new();
    let list = files.write("list", PATHS.join("\n"));
    let loads = [
        "-c 8 -d 200ms --warmup 50ms",
        "-c 4 -n 1001 --pipeline 4",
        "-c 4 -n 200 --requests-per-connection 3",
        "-c 4 -r 2000 -d 200ms --order random --seed 7",
    ];
    compare(false, "--urls", &list, &loads);
}

#[test]
fn urls_over_http2() {
    let files = Stored::new();
    let list = files.write("list", PATHS.join("\n"));
    let loads = [
        "-c 2 --streams 8 -d 200ms --warmup 50ms",
        "-c 4 -r 2000 -d 200ms --order random --seed 7",
    ];
    compare(true, "--urls", &list, &loads);
}

#[test]
fn targets_have_fields_and_methods_of_their_own() {
    let text = "HEAD /100.html\nX-One: 1\n\nGET /missing\n\nHEAD /100.html?x\nX-One: 2\n";
    let files = Stored::new();
    let list = files.write("list", text);
    let site = Site::clear(false);
    let mut nginx = Nginx::start_sites(std::slice::from_ref(&site));
    let options = format!("--targets {list} -c 3 -n 300 --http1");
    let report = run(&format!("{options} {}", site.url("/")));
    nginx.settled();
    let names = sent_by_name(&report.json);
    let expected = ["/missing", "HEAD /100.html", "HEAD /100.html?x"];
    assert_eq!(names.keys().collect::<Vec<_>>(), expected);
    // Each worker begins at a place of its own.
    assert!(
        names.values().all(|&count| (99..=101).contains(&count)),
        "{names:?}"
    );
    let logged = nginx.logged_by_path();
    assert_eq!(logged.values().sum::<u64>(), 300);
    assert_eq!(logged["/missing"], names["/missing"]);
}

#[test]
fn a_list_is_titled_by_all_of_its_methods() {
    let server = Serve::start();
    for (option, text, title) in [
        (
            "--targets",
            "POST HOST/\n\nGET /\n",
            Some(" · POST, GET · "),
        ),
        ("--targets", "POST HOST/\n\nPOST /\n", Some(" · POST · ")),
        ("--targets", "GET HOST/\n\nGET /\n", None),
        ("--urls", "HOST/ weight=3\n/\n", None),
    ] {
        let files = Stored::new();
        let list = files.write("list", text.replace("HOST", &server.url("")));
        let load = format!("-n 40 -c 2 {option} {list}");
        let outcome = success(&load);
        let headline: Vec<&str> = outcome.stdout.lines().take(4).collect();
        let headline = headline.join("\n");
        match title {
            Some(title) => assert!(headline.contains(title), "{headline}"),
            None => assert!(!headline.contains("GET"), "{headline}"),
        }
        let is_weighted = outcome.stdout.contains("2 requests in turns by weight");
        assert_eq!(is_weighted, text.contains("weight"), "{}", outcome.stdout);
    }
}

#[test]
fn a_list_that_cannot_be_used_is_refused_with_its_line() {
    for (option, text, words) in [
        ("--urls", "HOST/a\nhttp://other/b\n", "line 2: http://other"),
        (
            "--urls",
            "HOST/ weight=4000000000\n/b weight=3\n",
            "the weights add up to more",
        ),
        (
            "--targets",
            "GET HOST/\n@/no/such/file\n",
            "cannot read the body",
        ),
    ] {
        let files = Stored::new();
        let list = files.write("list", text.replace("HOST", "http://127.0.0.1:1"));
        let outcome = brunt(&format!("{option} {list} -d 100ms"));
        refused(&outcome, words);
    }
}
