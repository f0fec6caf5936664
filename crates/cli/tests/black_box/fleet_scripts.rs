//! Requests that a script or the sessions of a log make, by the agents of a fleet: each worker has
//! its number among those of all agents.

use crate::support::nats::Nats;
use crate::support::process::{brunt, refused, start, success};
use crate::support::serve::Serve;
use crate::support::stored::{Stored, assert_exact, number, sent_by_name};

/// Threads are numbered in setup(), as wrk's scripts do it. What a thread sends is named after it.
const NUMBERED: &str = "local threads = 0\n\
    function setup(thread) thread:set('number', threads); threads = threads + 1 end\n\
    function init(arguments) word = arguments[1]; sent = 0 end\n\
    function request()\n\
       sent = sent + 1\n\
       local path = '/bytes/10?' .. word .. number .. '.' .. sent\n\
       return wrk.format(nil, path), 'thread ' .. number\n\
    end\n\
    function response(status, headers, body)\n\
       if status ~= 200 or #body ~= 10 then error('wrong') end\n\
    end\n";

#[test]
fn the_threads_of_a_script_are_numbered_over_all_agents() {
    let (server, stored) = (Serve::start(), Stored::new());
    success(&format!(
        "fleet --local 2 -t 4 -c 8 -r 400 -d 1s --warmup 0s -s {} -o {} {} w",
        stored.write("a.lua", NUMBERED),
        stored.path("run.json"),
        server.url("/")
    ));
    let run = stored.counted(server.settled().requests);
    assert_eq!(run["agents"].as_array().map(Vec::len), Some(2));
    assert_eq!(run["plan"]["traffic"]["is_generated"], true);
    let expected = (0..4).map(|thread| (format!("thread {thread}"), 100));
    assert_eq!(sent_by_name(&run), expected.collect());
    assert_eq!(number(&run, "/summary/requests/successes"), 400);
}

#[test]
fn a_script_that_asks_for_nothing_is_shared_out_too() {
    let (server, stored) = (Serve::start(), Stored::new());
    let constant = "wrk.method = 'POST'\nwrk.body = 'x'\nwrk.path = '/bytes/20'\n";
    success(&format!(
        "fleet --local 2 -c 4 -r 200 -d 1s --warmup 0s -s {} -o {} {}",
        stored.write("a.lua", constant),
        stored.path("run.json"),
        server.url("/")
    ));
    let run = stored.read("run.json");
    assert_exact(&run);
    assert_eq!(number(&run, "/summary/arrivals/planned"), 200);
    assert_eq!(number(&run, "/plan/workers/count"), 2);
}

#[test]
fn sessions_are_dealt_as_to_the_workers_of_one_process() {
    let (server, stored) = (Serve::start(), Stored::new());
    let log = "/bytes/1?a think=0.01\n/bytes/1?a\n\n/bytes/1?b\n\n/bytes/1?c\n  /bytes/1?d\n";
    let load = format!(
        "-t 3 -c 60 --connection-rate 20 --arrivals constant -d 990ms --warmup 0s --sessions {}",
        stored.write("users.log", log)
    );
    let made = |command: &str| {
        success(&format!(
            "{command} {load} -o {} {}",
            stored.path("run.json"),
            server.url("/")
        ));
        let run = stored.read("run.json");
        assert_exact(&run);
        assert_eq!(number(&run, "/summary/arrivals/planned"), 20, "{command}");
        let workers = run["agents"].as_array().expect("a list").iter();
        let workers = workers.flat_map(|agent| agent["workers"].as_array().expect("a list"));
        let sessions: Vec<u64> = workers
            .map(|worker| number(worker, "/generator/sessions/completed"))
            .collect();
        (sent_by_name(&run), sessions)
    };
    let (plain, of_workers) = made("--oversubscribe");
    let (fleet, of_agents) = made("fleet --local 2 --oversubscribe");
    // Session s goes to worker s mod 3, whichever agent has it.
    assert_eq!(of_agents, of_workers);
    assert_eq!(fleet, plain);
}

#[test]
fn what_several_processes_cannot_do_is_refused() {
    let (server, stored) = (Serve::start(), Stored::new());
    let file = |name: &str, text: &str| stored.write(name, text);
    let done = file("done.lua", "function done(summary) print('it') end\n");
    let teardown = file("teardown.lua", "function teardown() end\n");
    let wrong = file("wrong.lua", "function request( end\n");
    let bad = file("bad.log", "/a foo=1\n");
    for (options, words) in [
        (format!("-s {done}"), "the script has done()"),
        (format!("-s {teardown}"), "the script has teardown()"),
        (format!("-s {wrong}"), "wrong.lua:1:"),
        (format!("-s {}", stored.path("none.lua")), "cannot read"),
        (format!("--sessions {bad}"), "\"foo=1\" is not known"),
    ] {
        let url = server.url("/");
        refused(&brunt(&format!("fleet --local 2 {options} {url}")), words);
    }
    assert_eq!(server.settled().requests, 0);
}

#[test]
fn an_agent_runs_scripts_only_where_it_was_told_to() {
    let (nats, server, stored) = (Nats::start(""), Serve::start(), Stored::new());
    let script = stored.write("a.lua", NUMBERED);
    let fleet = |agent: &str| {
        let agent = start(&format!(
            "agent --nats {} --name east --wait 60s {agent}",
            nats.url()
        ));
        let outcome = brunt(&format!(
            "fleet --agents 1 --nats {} -c 2 -n 50 -s {script} {} w",
            nats.url(),
            server.url("/")
        ));
        (outcome, agent.wait())
    };
    let (outcome, agent) = fleet("");
    refused(&outcome, "agent east: this agent runs no scripts");
    refused(&agent, "--allow-scripts");
    let (outcome, agent) = fleet("--allow-scripts");
    outcome.exits_unless_late(0);
    assert_eq!(agent.code, Some(0), "{agent:?}");
    assert_eq!(server.settled().requests, 50);
}
