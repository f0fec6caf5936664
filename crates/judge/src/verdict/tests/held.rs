//! What limits connections that are only kept open.

use brunt_record::{FailureKind, Run};

use super::rules::{judged, situation, verify};
use super::sample::closed;
use crate::Verdict;
use crate::invariants::sample_held::held_open;

fn kept() -> Run {
    held_open(closed())
}

/// The first worker lacks one at the end, after attempts that failed like this.
fn one_missing(run: &mut Run, kind: FailureKind) {
    let worker = &mut run.agents[0].workers[0];
    let open = worker.live.at_end.expect("it was held");
    worker.live.at_end = Some(open - 1);
    worker.tallies.measure.connections_closed_idle += 1;
    for _ in 0..3 {
        worker.tallies.measure.failures.add(kind);
    }
}

#[test]
fn what_is_missing_is_the_servers_or_ours() {
    use Verdict::{ClientLimited, ConcurrencyLimited, ServerLimited};
    verify([
        situation(
            "all are there",
            |_| {},
            ConcurrencyLimited,
            "server_cpu | connections were held to the end | -c 16",
        )
        .on(kept),
        situation(
            "the server refuses one",
            |run| one_missing(run, FailureKind::ConnectRefused),
            ServerLimited,
            "accept_queue | 1 of 8 connections | limits of connections",
        )
        .on(kept),
        situation(
            "attempts are not answered",
            |run| one_missing(run, FailureKind::ConnectTimedOut),
            ServerLimited,
            "accept_queue | connect timed out | --connection-rate",
        )
        .on(kept),
        situation(
            "there is no port left",
            |run| one_missing(run, FailureKind::ConnectNoPort),
            ClientLimited,
            "client_limits | 1 of 8 connections | --source-address",
        )
        .on(kept),
    ]);
    let closed_meanwhile = |run: &mut Run| {
        let worker = &mut run.agents[0].workers[0];
        worker.tallies.measure.connections_closed_idle += 5;
        worker.tallies.measure.connections_opened += 5;
    };
    let mut run = kept();
    closed_meanwhile(&mut run);
    let judgement = judged(&run);
    assert_eq!(judgement.verdict, ConcurrencyLimited);
    assert!(
        judgement.because.contains("the server closed 5"),
        "{judgement:?}"
    );
}
