//! `brunt fleet` and `brunt agent` over a real broker: what the agents measured adds up to what the
//! server counted, and nobody waits for ever for one that is gone.

use std::path::Path;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::certificates::{Authority, Identity};
use crate::support::foreign::free_address;
use crate::support::nats::Nats;
use crate::support::process::{Process, brunt, brunt_with, refused, start, success};
use crate::support::serve::{Serve, ServeTcp};
use crate::support::stored::{Stored, agent_names, assert_exact, number};
use crate::support::wait_for;

fn agent(nats: &Nats, name: &str, options: &str) -> Process {
    start(&format!(
        "agent --nats {} --name {name} --wait 60s {options}",
        nats.url()
    ))
}

fn bound_ns(run: &Value, agent: usize) -> u64 {
    let pointer = format!("/agents/{agent}/fleet/clock/start_bound_ns");
    number(run, &pointer)
}

#[test]
fn two_local_agents_are_one_run_and_their_counts_are_the_servers() {
    let server = Serve::start();
    let stored = Stored::new();
    let outcome = success(&format!(
        "fleet --local 2 -c 7 -d 2s --warmup 300ms -o {} {}",
        stored.path("run.json"),
        server.url("/delay/2ms")
    ));
    let run = stored.read("run.json");
    let agents = run["agents"].as_array().expect("a list");
    assert_eq!(agents.len(), 2);
    assert!(run.get("part_of").is_none());
    for (pointer, expected) in [
        ("/plan/load/connections", 7),
        ("/plan/workers/count", 2),
        ("/window_ns", 2_000_000_000),
        ("/summary/all_phases/sent", server.settled().requests),
    ] {
        assert_eq!(number(&run, pointer), expected, "{pointer}");
    }
    assert_exact(&run);
    let names = agent_names(&run);
    assert_eq!(names, ["local-1", "local-2"]);
    for (place, name) in names.into_iter().enumerate() {
        // Over loopback it is some hundred microseconds; a busy machine answers later.
        assert!(bound_ns(&run, place) < 100_000_000, "{run}");
        outcome.assert_prints(&[name, "clock known to"]);
    }
    let again = brunt_with(&["report", &stored.path("run.json")]);
    assert_eq!(again.stdout, outcome.stdout);
}

#[test]
fn agents_serve_the_coordinator_of_their_job_whichever_comes_first() {
    let (nats, server, stored) = (Nats::start(""), Serve::start(), Stored::new());
    let (address, host) = (server.url("/delay/1ms"), server.address());
    let first = agent(&nats, "east", &format!("--job night --allow-target {host}"));
    // One of another job is not asked.
    let mut other = agent(&nats, "west", "--job day");
    let fleet = start(&format!(
        "fleet --agents 2 --nats {} --job night -c 4 -t 2 -d 1s --warmup 100ms -o {} {address}",
        nats.url(),
        stored.path("run.json")
    ));
    first.wait_for_message("waits for the coordinator");
    let second = agent(&nats, "south", "--job night");
    fleet.wait().exits_unless_late(0);
    for process in [first, second] {
        process.wait().exits(0);
    }
    assert!(other.is_running());
    other.wait_interrupted().exits(130);
    stored.counted(server.settled().requests);
}

/// Starts two agents and a coordinator of a long load, and waits until it goes on.
fn long_load(nats: &Nats, server: &Serve, stored: &Stored) -> (Process, [Process; 2]) {
    let agents = ["east", "south"].map(|name| {
        let kept = stored.path(&format!("{name}.json"));
        agent(nats, name, &format!("--keep {kept}"))
    });
    let fleet = start(&format!(
        "fleet --agents 2 --nats {} -c 4 -t 2 -d 50s --warmup 100ms -o {} {}",
        nats.url(),
        stored.path("run.json"),
        server.url("/delay/2ms")
    ));
    server.wait_for_requests(1_000);
    (fleet, agents)
}

#[test]
fn a_broker_that_restarts_is_survived() {
    let (nats, server, stored) = (Nats::start(""), Serve::start(), Stored::new());
    let (fleet, agents) = long_load(&nats, &server, &stored);
    let address = nats.address();
    nats.kill();
    fleet.wait_for_message("the broker is gone");
    let _nats = Nats::start_at(address, "");
    fleet.wait_for_message("the broker is there again");
    std::thread::sleep(Duration::from_secs(2));
    fleet.wait_interrupted().exits(130);
    for process in agents {
        process.wait().exits(0);
    }
    let run = stored.read("run.json");
    assert_exact(&run);
    assert_eq!(run["agents"].as_array().map(Vec::len), Some(2));
}

/// The configuration that is shipped, with a certificate of the test's own. Where it listens is the
/// test's matter.
fn shipped(identity: &Identity) -> String {
    let text = include_str!("../../../../docs/nats-server.conf");
    let lines = text.lines().filter(|line| !line.starts_with("listen:"));
    let own = |path: &Path| path.display().to_string();
    let text = lines.collect::<Vec<_>>().join("\n");
    text.replace("/etc/nats/cert.pem", &own(&identity.certificate))
        .replace("/etc/nats/key.pem", &own(&identity.key))
}

#[test]
fn strangers_are_not_let_in() {
    let (address, authority) = (free_address(), Authority::new());
    let nats = Nats::start_at(address, &shipped(&authority.server(address)));
    let (server, stored) = (Serve::start(), Stored::new());
    let right = stored.write("agent", "agent:two\n");
    let wrong = stored.write("wrong", "agent:three");
    let broken = stored.write("broken", "agent");
    let own = stored.write("coordinator", "coordinator:one");
    let open = format!("tls://{}", nats.address());
    let url = format!("{open} --nats-ca {}", authority.roots().display());
    for (broker, words) in [
        (url.clone(), "cannot connect"),
        (
            format!("{open} --nats-credentials {right}"),
            "cannot connect",
        ),
        (
            format!("{url} --nats-credentials {wrong}"),
            "cannot connect",
        ),
        (
            format!("{url} --nats-credentials {broken}"),
            "USER:PASSWORD",
        ),
    ] {
        refused(&brunt(&format!("agent --nats {broker}")), words);
    }
    // Who has an agent's credentials is no coordinator, and the other way round.
    let fleet = format!(
        "fleet --agents 1 --nats {url} -c 1 -d 300ms {}",
        server.url("/")
    );
    let outcome = brunt(&format!("{fleet} --nats-credentials {right}"));
    refused(&outcome, "the broker refuses");
    let outcome = brunt(&format!("agent --nats {url} --nats-credentials {own}"));
    refused(&outcome, "the broker refuses");
    let agent = start(&format!("agent --nats {url} --nats-credentials {right}"));
    success(&format!("{fleet} --nats-credentials {own}"));
    assert_eq!(agent.wait().code, Some(0));
}

#[test]
fn loads_over_tcp_are_shared_out() {
    let stored = Stored::new();
    let fleet = |service: &str, load: &str| {
        let server = ServeTcp::start(service, &[]);
        success(&format!(
            "fleet tcp --local 2 -t 2 {load} -o {} {}",
            stored.path("run.json"),
            server.address
        ));
        let run = stored.read("run.json");
        assert_exact(&run);
        assert_eq!(run["agents"].as_array().map(Vec::len), Some(2), "{load}");
        (run, server.settled())
    };
    let (run, counters) = fleet("echo=line", "-c 5 -m ping\\n --reply line -n 1001");
    assert_eq!(number(&run, "/summary/requests/issued"), 1_001);
    assert_eq!(counters.messages, 1_001);
    let (run, counters) = fleet("echo=line", "-c 4 --connect-only -r 400 -d 1s --warmup 0s");
    assert_eq!(number(&run, "/summary/arrivals/planned"), 400);
    let opened = number(&run, "/summary/all_phases/connections_opened");
    assert!(counters.connections_accepted >= opened);
    // A limit of bandwidth is shared out, too.
    let (run, counters) = fleet(
        "sink",
        "-c 4 --send --bandwidth 80mbit -d 1s --warmup 500ms",
    );
    assert_eq!(number(&run, "/summary/bandwidth/streams"), 4);
    let acked = number(&run, "/summary/bandwidth/up_bytes");
    assert!((1_000_000..13_000_000).contains(&acked), "{acked}");
    assert!(counters.bytes_received >= acked);
}

#[test]
fn a_local_agent_that_is_killed_is_known_at_once() {
    let (server, stored) = (Serve::start(), Stored::new());
    let fleet = start(&format!(
        "fleet --local 2 -c 4 -d 50s --warmup 100ms -o {} {}",
        stored.path("run.json"),
        server.url("/delay/2ms")
    ));
    server.wait_for_requests(1_000);
    let victim = wait_for("an agent of it", || child_named(fleet.id(), "local-2"));
    let pid = rustix::process::Pid::from_raw(victim).expect("a process");
    rustix::process::kill_process(pid, Signal::KILL).expect("it is there");
    let outcome = fleet.wait().exits(3);
    outcome.assert_prints(&["local-2 was ended by signal 9"]);
    let run = stored.read("run.json");
    assert_eq!(run["lost_agents"][0]["name"], "local-2");
}

/// The child of `parent` that has this word among its arguments.
fn child_named(parent: u32, word: &str) -> Option<i32> {
    let entries = std::fs::read_dir("/proc").ok()?;
    entries.flatten().find_map(|entry| {
        let number: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let (_, fields) = stat.rsplit_once(')')?;
        let of: u32 = fields.split_whitespace().nth(1)?.parse().ok()?;
        let words = std::fs::read(entry.path().join("cmdline")).ok()?;
        let is_named = words
            .split(|&byte| byte == 0)
            .any(|argument| argument == word.as_bytes());
        (of == parent && is_named).then_some(number)
    })
}
