//! Limits that the system sets for the process: what they refuse has a message, and no limit ends a
//! run by a signal. That of a file's size is tested with the files.

use std::process::Command;

use crate::support::process::{Outcome, Process, binary, limited};
use crate::support::run::RunReport;
use crate::support::serve::Serve;
use crate::support::{BACKENDS, at_once};

#[test]
fn an_address_space_that_is_too_small_is_an_error() {
    let server = Serve::start();
    let mut ran = 0;
    for backend in BACKENDS {
        // The smallest has just room for the program: without, the kernel ends it as it begins.
        for megabytes in [40, 48, 56, 64, 72, 80, 96, 128, 192, 512] {
            let line = format!("--backend {backend} -c 2 -n 20 {}", server.url("/"));
            let limit = format!("ulimit -c 0; ulimit -v {}", megabytes << 10);
            let outcome = limited(&limit, &line);
            match outcome.code {
                // A busy machine may leave the window too little of it.
                Some(0 | 3) => ran += 1,
                Some(2) => {
                    outcome.assert_says(&["of address space are", "RLIMIT_AS", "ulimit -v"]);
                }
                // The program itself has no room: then it does not begin.
                Some(127) if megabytes == 40 => {
                    outcome.assert_says(&["while loading shared libraries"]);
                }
                _ => panic!("{megabytes} MB, {backend}: {outcome:?}"),
            }
        }
    }
    assert!(ran >= 6, "{ran} ran");
}

/// What a server with this many workers needs is between the smallest limit and the largest.
#[test]
fn memory_that_is_refused_is_an_error() {
    let mut cases = Vec::new();
    for protocols in ["--tls", "--tls --http3"] {
        for megabytes in (80..=160).step_by(10) {
            cases.push((protocols, megabytes));
        }
    }
    at_once(&cases, |(protocols, megabytes)| {
        let line = format!("serve -q -t 8 {protocols} -l 127.0.0.1:0");
        let limit = format!("ulimit -c 0; ulimit -v {}", megabytes << 10);
        let outcome = limited(&format!("{limit}; set -- timeout 2 \"$@\""), &line);
        let is_named = outcome.stderr.starts_with("brunt: ");
        // The standard library ends the process where a thread's signal stack, which it asks for
        // before anything of brunt runs there, finds no address.
        let words = "failed to allocate an alternative stack";
        let is_of_std = outcome.code.is_none() && outcome.stderr.contains(words);
        // 124: it served until it was ended.
        let is_well = outcome.code == Some(124) || outcome.code == Some(2) && is_named;
        assert!(is_well || is_of_std, "{megabytes} MB: {outcome:?}");
    });
}

/// Forbids the system call with the number in its first argument, by a filter of system calls.
const WITHOUT: &str = include_str!("support/without_call.py");

#[test]
fn a_ring_that_may_be_made_and_not_entered_is_not_used() {
    let server = Serve::start();
    for backend in ["auto", "uring"] {
        let load = format!("--backend {backend} -c 2 -n 100 --format json");
        let line = format!("{load} {}", server.url("/"));
        // io_uring_enter(2), whose number is the same on all machines.
        let report = RunReport::of(without_call(426, &line));
        assert_eq!(report.requests().answered, 100);
        assert_eq!(report.at("/agents/0/backend"), "epoll");
        let note = report.at("/agents/0/backend_note").to_string();
        assert!(note.contains("io_uring is not available"), "{note}");
        assert!(note.contains("seccomp"), "{note}");
    }
}

/// Runs brunt with `words` where the system call of this number is forbidden.
fn without_call(number: u32, words: &str) -> Outcome {
    let mut command = Command::new("python3");
    command.args(["-c", WITHOUT, &number.to_string()]);
    command.arg(binary().get_program());
    command.args(words.split_whitespace());
    Process::start(command).wait()
}

const CLOCK_NANOSLEEP: u32 = [115, 230][cfg!(target_arch = "x86_64") as usize];

#[test]
fn a_sleep_that_is_forbidden_is_no_matter() {
    let server = Serve::start();
    let url = server.url("/");
    for line in [
        format!("-c 2 -n 100 {url}"),
        format!("--backend epoll -c 2 -r 500 -d 300ms {url}"),
    ] {
        let outcome = without_call(CLOCK_NANOSLEEP, &line);
        let outcome = outcome.exits_unless_late(0);
        assert!(!outcome.stderr.contains("panicked"), "{outcome:?}");
    }
}
