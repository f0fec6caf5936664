//! `brunt compare`: servers whose difference is known.

use rustix::process::Signal;

use crate::support::process::{brunt, start, success};
use crate::support::serve::Serve;

const ROUNDS: &str = "--pairs 7 -c 4 -t 1 -d 200ms --warmup 50ms";
const LOAD: &str = "-c 4 -t 1 -d 200ms --warmup 50ms";

#[test]
fn a_server_that_takes_four_times_as_long_is_slower() {
    let server = Serve::start();
    let (fast, slow) = (server.url("/delay/10ms"), server.url("/delay/40ms"));
    let outcome = brunt(&format!("compare {ROUNDS} --format json {fast} {slow}"));
    assert_eq!(outcome.messages(), "");
    let found = outcome.json();
    let [only] = &found["comparisons"].as_array().expect("a list")[..] else {
        panic!("{found}");
    };
    assert_eq!(only["compared"], "successes_per_s");
    assert_eq!(only["sides"], serde_json::json!(["A", "B"]));
    let pairs = only["pairs"].as_u64().expect("a number");
    assert!((7..=11).contains(&pairs), "{only}");
    let is_decided = found["is_decided"].as_bool().expect("whether it is");
    assert_eq!(outcome.code, Some(if is_decided { 0 } else { 4 }), "{only}");
    // A busy machine may spoil rounds, but never turns the answer.
    if is_decided {
        assert_eq!(only["claim"], "differs", "{only}");
        let says = only["says"].as_str().expect("words");
        assert!(
            says.starts_with("B is ") && says.contains(" % slower (97.5 % CI "),
            "{says}"
        );
        let change = only["change"].as_f64().expect("a number");
        assert!((-0.9..-0.5).contains(&change), "{only}");
    }
    let urls: Vec<_> = found["sides"].as_array().expect("a list").iter().collect();
    assert_eq!(
        (&urls[0]["url"], &urls[1]["url"]),
        (&fast.into(), &slow.into())
    );
}

#[test]
fn a_server_is_as_fast_as_itself() {
    let server = Serve::start();
    let [a, b, c] = ["/", "/bytes/1", "/bytes/2"].map(|path| server.url(path));
    // At equal rates it is the response time that is compared, of each side with the first. How
    // sure the answer is, experiments with simulated servers show.
    let open = brunt(&format!("compare --pairs 9 {LOAD} -r 500 {a} {b} {c}"));
    assert!(matches!(open.code, Some(0 | 4)), "{}", open.messages());
    open.assert_prints(&["p50  ", "p99  ", "A and B", "A and C", "\nrounds  "]);
    assert!(open.stdout.lines().all(|line| line.chars().count() <= 80));
}

#[test]
fn a_comparison_exits_alike_as_it_is_made_and_from_its_file() {
    let stored = tempfile::NamedTempFile::with_suffix(".json").expect("a file");
    let path = stored.path().display();
    let server = Serve::start();
    let (fast, slow) = (server.url("/delay/1ms"), server.url("/delay/20ms"));
    for (limit, codes) in [("p90>+9900%", [0, 1]), ("p90>+5%", [1, 1])] {
        let made = brunt(&format!(
            "compare --pairs 9 {LOAD} -r 100 --fail-if {limit} -o {path} {fast} {slow}"
        ));
        assert!(
            made.code.is_some_and(|code| codes.contains(&code)),
            "{made:?}"
        );
        let again = brunt(&format!("report {path}"));
        assert_eq!(again.code, made.code, "{again:?}");
    }
}

#[test]
fn the_script_for_ci_says_what_it_needs() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/ci/compare");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = std::process::Command::new(script)
        .current_dir(&directory)
        .env("URL", "http://127.0.0.1:1/")
        .env("START", "./server")
        .output()
        .expect("it starts");
    let message = String::from_utf8_lossy(&run.stderr).into_owned();
    assert_eq!(run.status.code(), Some(2), "{message}");
    assert!(
        message.contains("BASE: the commit to compare with"),
        "{message}"
    );
}

#[test]
fn rounds_go_on_until_each_limit_is_decided() {
    let server = Serve::start();
    let options = "compare -c 8 -t 1 -d 100ms --warmup 20ms -r 500 --format json";
    let url = server.url("/delay/10ms");
    let run = success(&format!(
        "{options} --until-decided 30s --fail-if p90>+1000% {url} {url}"
    ));
    let found = run.json();
    let pairs = found["comparisons"][0]["pairs"].as_u64().expect("pairs");
    assert!(pairs >= 10, "{pairs}");
    assert_eq!(found["open"], serde_json::json!([]));
    assert_eq!(found["looks"], 4);
}

#[test]
fn what_is_complete_when_a_signal_comes_is_reported() {
    let server = Serve::start();
    let (fast, slow) = (server.url("/delay/2ms"), server.url("/delay/20ms"));
    let start = |requests: u64| {
        let before = server.counters().requests;
        let process = start(&format!(
            "compare --pairs 100 -c 2 -t 1 -d 100ms --warmup 20ms --format json -q {fast} {slow}"
        ));
        server.wait_for_requests(before + requests);
        process.signal(Signal::INT);
        process.wait()
    };
    // No pair has more than 150.
    let outcome = start(1_500).exits(130);
    let found = outcome.json();
    assert_eq!(found["ended_early"], "interrupted");
    let rounds = |side: usize| {
        found["sides"][side]["rounds"]
            .as_array()
            .map_or(0, Vec::len)
    };
    assert!((7..100).contains(&rounds(0)), "{found}");
    assert_eq!(rounds(0), rounds(1));
    assert_eq!(found["comparisons"][0]["pairs"], rounds(0));
    // Without a complete pair there is nothing to report.
    let outcome = start(1);
    assert_eq!(
        (outcome.code, &*outcome.stdout),
        (Some(130), ""),
        "{outcome:?}"
    );
    outcome.assert_says(&["interrupted"]);
}

#[test]
fn what_nothing_can_be_said_of_is_not_decided() {
    // No request of the second succeeds.
    let server = Serve::start();
    let (good, bad) = (server.url("/"), server.url("/status/500"));
    let outcome = brunt(&format!("compare {ROUNDS} --format json {good} {bad}")).exits(4);
    let found = outcome.json();
    assert_eq!(found["is_decided"], false);
    let pairs = &found["comparisons"][0]["pairs"];
    assert_eq!(*pairs, 11, "half as many are made up for, at most");
}
