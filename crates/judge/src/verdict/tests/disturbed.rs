//! Other programs on the CPUs of client and server, both ways.

use brunt_record::Run;

use super::bend::*;
use super::rules::{judged, situation, verify};
use super::sample::{closed, open, remote};
use crate::SignalId;
use crate::verdict::{Grade, Verdict};

#[test]
fn programs_that_took_what_the_server_needed() {
    verify([
        situation(
            "most of the CPUs",
            |run| beside(run, 3_000),
            Verdict::Disturbed,
            "other_programs | (cargo 1.50) while the server waited | repeat",
        ),
        situation(
            "beside a brunt near its end",
            |run| {
                beside(run, 3_000);
                busy_for(run, 1_960);
            },
            Verdict::Disturbed,
            "other_programs | on a quiet machine the server may do more | repeat",
        ),
        situation(
            "a rate that was met all the same",
            |run| beside(run, 3_000),
            Verdict::RateLimited,
            "planned_rate | the latencies are not the server's alone | for its capacity",
        )
        .on(open),
        situation(
            "pauses that were planned",
            |run| {
                beside(run, 3_000);
                thinking(run);
            },
            Verdict::ThinkTime,
            "connections_busy | the latencies are not the server's alone | -c 16",
        ),
        situation(
            "a server that has used up its quota",
            |run| {
                beside(run, 3_000);
                server_busy_for(run, 3_500);
                server_throttled(run, 900);
            },
            Verdict::ServerLimited,
            "server_throttling | used up its CPU quota | quota",
        ),
        // The other way.
        situation(
            "nobody waited",
            |run| {
                beside(run, 3_000);
                server(run).run_queue_wait_ns = Some(0);
            },
            Verdict::ConcurrencyLimited,
            "connections_busy | more of them would give more | -c",
        ),
        situation(
            "a wait that is not theirs",
            |run| {
                beside(run, 900);
                server(run).run_queue_wait_ns = Some(3_600_000_000);
            },
            Verdict::ConcurrencyLimited,
            "connections_busy | more of them would give more | -c",
        ),
        situation(
            "a server that had its CPUs, and whose threads wait behind one another",
            |run| {
                beside(run, 900);
                server_busy_for(run, 3_960);
                server(run).run_queue_wait_ns = Some(3_600_000_000);
            },
            Verdict::ServerLimited,
            "server_cpu | used up its CPU | for its capacity",
        ),
        situation(
            "a little",
            |run| beside(run, 300),
            Verdict::ConcurrencyLimited,
            "connections_busy | more of them would give more | -c",
        ),
    ]);
}

#[test]
fn what_is_not_known_disturbs_nobody() {
    let grade = |run: &Run| {
        let signals = judged(run).signals;
        let found = signals
            .into_iter()
            .find(|it| it.id == SignalId::OtherPrograms);
        found.expect("listed").grade
    };
    let mut run = closed();
    beside(&mut run, 3_000);
    assert_eq!(grade(&run), Grade::Fail);
    run.agents[0].evidence.host.programs = None;
    assert_eq!(grade(&run), Grade::Unknown);
    // The server itself may be one of the programs.
    beside(&mut run, 3_000);
    run.agents[0].evidence.server = None;
    assert_eq!(grade(&run), Grade::Unknown);
    // Of a server elsewhere, brunt's half is known.
    let mut run = closed();
    beside(&mut run, 3_000);
    let mut run = remote(run);
    thread(&mut run).run_queue_wait_ns = Some(300_000_000);
    assert_eq!(grade(&run), Grade::Fail);
}
