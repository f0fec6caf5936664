//! How many workers there are and on which CPUs, and what the report says of it.

use std::process::Command;

use serde_json::Value;

use crate::support::process::{Outcome, Process, binary, brunt, first_line};
use crate::support::run::{RunReport, run};
use crate::support::serve::Serve;

/// CPUs that this process may use.
pub(crate) fn cpus() -> Vec<u64> {
    let set = rustix::thread::sched_getaffinity(None).expect("Linux says it");
    let numbers = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu));
    numbers.map(|cpu| cpu as u64).collect()
}

/// Whether nothing but the server decides where workers go: there are several CPUs, and the tests
/// have all of the machine's.
fn is_free() -> bool {
    let online = std::fs::read_to_string("/proc/cpuinfo").expect("Linux has it");
    let online = online.lines().filter(|line| line.starts_with("processor"));
    let usable = std::thread::available_parallelism().map_or(1, usize::from);
    cpus().len() == online.count() && usable > 1
}

/// Half of the CPUs.
fn half() -> usize {
    cpus().len() / 2
}

/// The reason, and the CPUs that workers are bound to.
fn placement(report: &RunReport) -> (String, Vec<Option<u64>>) {
    let workers = report.at("/agents/0/workers").as_array().expect("a list");
    let bound = workers.iter().map(|worker| worker["bound_cpu"].as_u64());
    let reason = report.at("/agents/0/placement");
    let reason = reason.as_str().expect("a word").to_owned();
    (reason, bound.collect())
}

/// The binary on one CPU.
pub(crate) fn taskset(cpu: u64, words: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", &cpu.to_string()]);
    command.arg(binary().get_program());
    command.args(words.split_whitespace());
    command
}

fn report_of(command: Command) -> RunReport {
    let outcome: Outcome = Process::start(command).wait();
    RunReport::of(outcome)
}

#[test]
fn a_server_on_this_machine_gets_workers_on_half_of_the_cpus() {
    let server = Serve::start();
    let url = server.url("/");
    let report = run(&format!("-d 200ms --warmup 100ms {url}"));
    let (reason, bound) = placement(&report);
    if !is_free() {
        assert!(
            ["one_cpu", "confined"].contains(&reason.as_str()),
            "{reason}"
        );
        return;
    }
    assert_eq!(reason, "server_anywhere");
    let half: Vec<Option<u64>> = cpus().into_iter().rev().map(Some).take(half()).collect();
    assert_eq!(bound, half);
    assert_eq!(report.number("/plan/workers/count"), half.len() as u64);
    let text = brunt(&format!("-v -d 200ms --warmup 100ms {url}")).stdout;
    let workers = if half.len() == 1 {
        "1 worker"
    } else {
        "workers on CPUs"
    };
    assert!(text.contains(workers), "{text}");
    assert!(text.contains("the server is on this machine"), "{text}");
}

#[test]
fn there_is_at_most_one_worker_per_connection() {
    let server = Serve::start();
    let report = run(&format!("-n 100 -c 1 {}", server.url("/")));
    let (reason, bound) = placement(&report);
    if is_free() {
        assert_eq!((reason.as_str(), bound.len()), ("server_anywhere", 1));
    }
}

#[test]
fn what_was_said_by_options_or_from_outside_overrides_it() {
    let server = Serve::start();
    let load = format!("-d 200ms --warmup 0s {}", server.url("/"));
    let (reason, bound) = placement(&run(&format!("-t 1 {load}")));
    assert_eq!((reason.as_str(), bound), ("given", vec![None]));
    if is_free() {
        let confined = taskset(cpus()[0], &format!("--format json {load}"));
        let (reason, bound) = placement(&report_of(confined));
        assert_eq!((reason.as_str(), bound), ("confined", vec![None]));
    }
}

#[test]
fn workers_keep_off_the_cpus_of_a_server_that_is_bound() {
    if !is_free() {
        return;
    }
    let last = *cpus().last().expect("several");
    let (serving, stdout) = Process::start_open(taskset(last, "serve --listen 127.0.0.1:0"));
    let line = first_line(stdout);
    let address = line.split_whitespace().nth(2).expect(&line);
    let report = run(&format!("-d 200ms --warmup 100ms http://{address}/"));
    let (reason, bound) = placement(&report);
    assert_eq!(reason, "server_bound");
    assert!(
        !bound.contains(&Some(last)) && !bound.contains(&None),
        "{bound:?}"
    );
    let signals = report.at("/summary/verdict/signals");
    let shared = signals.as_array().expect("a list").iter();
    let shared: Vec<&Value> = shared.filter(|row| row["id"] == "shared_host").collect();
    assert_eq!(
        shared[0]["detail"],
        "client and server have CPUs of their own"
    );
    drop(serving);
}

#[test]
fn brunt_and_its_own_server_have_cpus_of_their_own() {
    let report = run("-d 200ms --warmup 0s");
    let (reason, bound) = placement(&report);
    let of_server = report.at("/agents/0/evidence/server/cpu_list");
    let of_server = of_server.as_array().expect("a list");
    if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
        assert_eq!(bound, [None]);
        return;
    }
    assert_eq!(reason, "own_server");
    for cpu in bound {
        let cpu = cpu.expect("each is bound");
        assert!(!of_server.contains(&cpu.into()), "{of_server:?}");
    }
}
