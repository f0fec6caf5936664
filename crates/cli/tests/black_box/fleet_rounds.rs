//! Experiments of several rounds whose load a fleet makes: `brunt fleet sweep` and `brunt fleet
//! find`, and what is left of them where an agent dies or a signal comes.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::nats::Nats;
use crate::support::process::{Process, brunt, refused, start, success};
use crate::support::serve::Serve;
use crate::support::stored::Stored;

/// No outcome may take longer once something is gone.
const HANG: Duration = Duration::from_secs(15);

fn rounds(experiment: &Value, name: &str) -> usize {
    experiment[name].as_array().expect("a list").len()
}

#[test]
fn a_sweep_by_two_agents_shows_how_a_server_scales() {
    let (server, stored) = (Serve::start(), Stored::new());
    let outcome = success(&format!(
        "fleet sweep --local 2 -c 2,8 --rounds 2 -d 400ms --warmup 100ms --round-warmup 50ms \
         --progress json -o {} {}",
        stored.path("sweep.json"),
        server.url("/delay/10ms")
    ));
    let sweep = stored.read("sweep.json");
    assert_eq!(rounds(&sweep, "rounds"), 4);
    assert_eq!(sweep["summary"]["complete"], true);
    let agents = sweep["environment"]["agents"].as_array().expect("a list");
    let mut names: Vec<_> = agents.iter().filter_map(Value::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["local-1", "local-2"]);
    assert_eq!(sweep["load"]["workers"]["count"], 2);
    // Each value has its number of connections, all agents together.
    let issued = |value: f64| -> u64 {
        let of_value = sweep["rounds"].as_array().expect("a list").iter();
        let of_value = of_value.filter(|round| round["value"] == value);
        of_value
            .map(|round| round["record"]["issued"].as_u64().expect("one"))
            .sum()
    };
    let (few, many) = (issued(2.0), issued(8.0));
    assert!((20..=2 * 2 * 41).contains(&few), "{few}");
    assert!((2 * few..=8 * 2 * 41).contains(&many), "{few} {many}");
    assert!(few + many <= server.settled().requests);
    assert!(outcome.stdout.contains("agents"), "{}", outcome.stdout);
    let lines = outcome.stderr.lines();
    let progress: Vec<Value> = lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let is_shown = |record: &Value| record["phase"] == "sweep" && rounds(record, "agents") == 2;
    assert!(progress.iter().any(is_shown), "{progress:?}");
}

#[test]
fn a_setting_that_takes_other_connections_is_swept_too() {
    let (server, stored) = (Serve::start(), Stored::new());
    success(&format!(
        "fleet sweep --local 2 -q -t 2,4 -c 4 --rounds 1 -n 400 --warmup 0s --round-warmup 0s \
         -o {} {}",
        stored.path("sweep.json"),
        server.url("/")
    ));
    let sweep = stored.read("sweep.json");
    let issued: Vec<_> = sweep["rounds"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|round| round["record"]["issued"].clone())
        .collect();
    assert_eq!(issued, [json!(400), json!(400)]);
}

#[test]
fn a_search_by_two_agents_ends_at_the_highest_rate_that_may_be_tried() {
    let (server, stored) = (Serve::start(), Stored::new());
    let words = format!(
        "fleet find --local 2 -q -c 4 -r 200 --max-rate 400 --objective p50<1s -d 2s \
         --warmup 50ms -o {} {}",
        stored.path("found.json"),
        server.url("/")
    );
    brunt(&words).exits(0);
    let found = stored.read("found.json");
    assert_eq!(found["result"]["kind"], "at_least", "{}", found["result"]);
    assert_eq!(found["result"]["met_per_s"], 400.0);
    assert_eq!(
        found["environment"]["agents"].as_array().map(Vec::len),
        Some(2)
    );
    // Arrivals are dealt to the agents: each step has those of the schedule.
    for step in found["steps"].as_array().expect("a list") {
        let rate = step["rate_per_s"].as_f64().expect("a rate");
        let planned = step["record"]["planned_per_s"].as_f64().expect("a rate");
        assert!((planned / rate - 1.0).abs() < 0.05, "{step}");
    }
}

#[test]
fn what_cannot_be_dealt_to_all_agents_is_refused_at_once() {
    let server = Serve::start();
    for (words, reason) in [
        (" -c 2 -t 2 -n 1", "each agent needs a request of its own"),
        ("sweep -c 1,2", "each agent needs a worker of its own"),
        ("sweep -t 1,2 -c 4", "the round of 1 workers cannot be made"),
        ("find -c 1 --objective p50<1s", "use -t 2 and -c 2 or more"),
    ] {
        let url = server.url("/");
        refused(&brunt(&format!("fleet {words} --local 2 {url}")), reason);
    }
    assert_eq!(server.settled().requests, 0);
}

/// Two agents, and a long sweep of theirs of which a round was measured.
fn long_sweep(nats: &Nats, server: &Serve, stored: &Stored) -> (Process, [Process; 2]) {
    let agents = ["east", "south"].map(|name| {
        let url = nats.url();
        start(&format!("agent --nats {url} --name {name} --wait 60s"))
    });
    let sweep = start(&format!(
        "fleet sweep --agents 2 --nats {} -t 2 -c 2,4 --rounds 50 -d 700ms --warmup 100ms -o {} {}",
        nats.url(),
        stored.path("sweep.json"),
        server.url("/delay/2ms")
    ));
    // The warm-up makes some 600 requests, and a round 1,600 at most.
    server.wait_for_requests(4_000);
    (sweep, agents)
}

#[test]
fn an_agent_that_dies_ends_the_sweep_and_the_rounds_before_are_reported() {
    let (nats, server, stored) = (Nats::start(""), Serve::start(), Stored::new());
    let (sweep, [east, south]) = long_sweep(&nats, &server, &stored);
    south.kill();
    let began = Instant::now();
    let outcome = sweep.wait();
    assert!(began.elapsed() < HANG, "{:?}", began.elapsed());
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
    outcome.assert_says(&["the sweep broke off", "agent south"]);
    let left = east.wait();
    assert!(began.elapsed() < HANG, "{:?}", began.elapsed());
    assert!(matches!(left.code, Some(0 | 2)), "{left:?}");
    let found = stored.read("sweep.json");
    let whole = rounds(&found, "rounds");
    assert!((1..100).contains(&whole), "{whole}");
    assert_eq!(found["summary"]["complete"], false);
    let reason = found["broke_off"].as_str().expect("a reason");
    assert!(reason.contains("agent south"), "{reason}");
    assert!(outcome.stdout.contains("agent south"), "{}", outcome.stdout);
}

#[test]
fn a_signal_ends_a_sweep_and_the_rounds_before_are_reported() {
    let (nats, server, stored) = (Nats::start(""), Serve::start(), Stored::new());
    let (sweep, agents) = long_sweep(&nats, &server, &stored);
    sweep.signal(Signal::INT);
    let began = Instant::now();
    sweep.wait().exits(130);
    for agent in agents {
        let outcome = agent.wait();
        assert!(matches!(outcome.code, Some(0 | 2)), "{outcome:?}");
    }
    assert!(began.elapsed() < HANG, "{:?}", began.elapsed());
    let before = rounds(&stored.read("sweep.json"), "rounds");
    assert!(before >= 1, "{before}");
}
