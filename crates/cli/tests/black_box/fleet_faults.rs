//! An agent, the coordinator or the broker of a fleet is killed (SIGKILL) or stopped (SIGSTOP), in
//! each phase: the outcome names what is gone, what was measured is kept, and nobody hangs.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::at_once;
use crate::support::nats::Nats;
use crate::support::process::{Outcome, Process, start};
use crate::support::serve::Serve;
use crate::support::stored::Stored;

/// No outcome may take longer once something is gone, or goes on.
const HANG: Duration = Duration::from_secs(15);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Agent,
    Coordinator,
    Broker,
}

/// A phase that lasts until something happens.
#[derive(Clone, Copy, Debug)]
struct Phase<'a> {
    /// What the coordinator says in it.
    mark: &'a str,
    /// Agents that are waited for: there are two.
    agents: u32,
    /// What is loaded, and how.
    load: &'a str,
    /// The window has begun.
    is_measured: bool,
}

/// All that may happen in a phase.
fn strike_each(phase: Phase<'_>) {
    let victims = [Victim::Agent, Victim::Coordinator, Victim::Broker];
    let cases = victims.map(|victim| [(victim, Signal::KILL), (victim, Signal::STOP)]);
    at_once(cases.into_iter().flatten(), |(victim, signal)| {
        strike(phase, victim, signal);
    });
}

fn strike(phase: Phase<'_>, victim: Victim, signal: Signal) {
    let nats = Nats::start("");
    let stored = Stored::new();
    let [east, south] = ["east", "south"].map(|name| {
        let (url, kept) = (nats.url(), stored.path(name));
        start(&format!(
            "agent --nats {url} --name {name} --wait 60s --keep {kept}.json"
        ))
    });
    let fleet = start(&format!(
        "fleet --agents {} --gather 9s --nats {} --progress json -t 2 {}",
        phase.agents,
        nats.url(),
        phase.load
    ));
    fleet.wait_for_message(phase.mark);
    if phase.agents == 2 {
        // Until then, agents wait for a coordinator: for 60 s, by --wait.
        for agent in [&east, &south] {
            agent.wait_for_message("the plan has come");
        }
    }
    let case = format!("{victim:?} {signal:?} {phase:?}");
    let struck = Instant::now();
    match victim {
        Victim::Agent => south.signal(signal),
        Victim::Coordinator => fleet.signal(signal),
        Victim::Broker => nats.signal(signal),
    }
    let ended = |process: Process| {
        let outcome = process.wait();
        assert!(struck.elapsed() < HANG, "{case}: {outcome:?}");
        outcome
    };
    let resumed = |process: Process| {
        process.signal(Signal::CONT);
        let resumed = Instant::now();
        let outcome = process.wait();
        assert!(resumed.elapsed() < HANG, "{case}: {outcome:?}");
        outcome
    };
    let was_killed = signal == Signal::KILL;
    match victim {
        Victim::Agent => {
            agent_is_missed(&case, phase, &ended(fleet));
            let left = ended(east);
            let code = if phase.is_measured { 0 } else { 2 };
            assert_eq!(left.code, Some(code), "{case}: {left:?}");
            if !was_killed {
                resumed(south).exits(2);
            }
        }
        Victim::Coordinator => {
            for process in [east, south] {
                let outcome = ended(process).exits(2);
                assert_says(&case, &outcome.stderr, "coordinator was silent");
            }
            if !was_killed {
                resumed(fleet).exits(2);
            }
        }
        Victim::Broker => {
            let outcome = ended(fleet).exits(2);
            let words = match (phase.is_measured, phase.agents) {
                (true, _) => "no result of any agent",
                (false, 2) => "silent",
                (false, _) => "agents are there",
            };
            assert_says(&case, &outcome.stderr, words);
            for process in [east, south] {
                ended(process).exits(2);
            }
        }
    }
    if phase.is_measured && victim != Victim::Agent {
        // What was measured is there all the same.
        for name in ["east.json", "south.json"] {
            assert_says(&case, &stored.text(name), "\"part_of\"");
        }
    }
}

/// The outcome of the coordinator where an agent of two is gone.
fn agent_is_missed(case: &str, phase: Phase<'_>, outcome: &Outcome) {
    if phase.is_measured {
        assert_eq!(outcome.code, Some(3), "{case}: {outcome:?}");
        for words in ["INVALID", "lost agent", "south"] {
            assert_says(case, &outcome.stdout, words);
        }
        return;
    }
    assert_eq!(outcome.code, Some(2), "{case}: {outcome:?}");
    let words = match phase.agents {
        2 => "agent south was silent",
        _ => "1 of 3 agents are there",
    };
    assert_says(case, &outcome.stderr, words);
}

fn assert_says(case: &str, text: &str, words: &str) {
    assert!(text.contains(words), "{case}: {words}: {text}");
}

#[test]
fn while_agents_are_waited_for() {
    let server = Serve::start();
    strike_each(Phase {
        mark: "2 of 3 agents are there",
        agents: 3,
        load: &format!("-c 4 -d 1s {}", server.url("/")),
        is_measured: false,
    });
}

#[test]
fn while_connections_are_opened() {
    // It takes connections, and never makes a handshake.
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    strike_each(Phase {
        mark: "\"phase\":\"set-up\"",
        agents: 2,
        load: &format!("-c 4 -d 1s -k --connect-timeout 50s https://{address}/"),
        is_measured: false,
    });
}

#[test]
fn in_the_window() {
    let server = Serve::start();
    strike_each(Phase {
        mark: "\"phase\":\"measure\"",
        agents: 2,
        load: &format!("-c 4 -r 100 --warmup 0s -d 50s {}", server.url("/")),
        is_measured: true,
    });
}
