//! Connections that are only kept open: what they are sound by, and what counts them.

use super::*;
use crate::invariants::sample_held::{HELD, held_open};
use crate::{Held, RunFigures, Summary};

fn kept() -> Run {
    held_open(steady_run())
}

fn figures(run: &Run) -> Held {
    let summary: Summary = run.summary();
    Held::of(run, &summary).expect("connections were held")
}

#[test]
fn a_run_that_holds_connections_is_sound() {
    let run = kept();
    let broken: Vec<_> = check(&run)
        .into_iter()
        .filter(|finding| finding.status == InvariantStatus::Broken)
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
    assert_eq!(standing_of(&run, "L1"), InvariantStatus::Held);
    let found = figures(&run);
    let all = u64::from(2 * HELD);
    assert_eq!(
        (found.asked, found.open_at_end, found.opened),
        (all, all, all)
    );
    assert_eq!((found.closed_by_server, found.missing()), (0, 0));
    assert!(run.no_success().is_none());
    assert!(Held::of(&super::run(), &super::run().summary()).is_none());
}

/// Each connection that was opened is open at the end, or lost in a way that is counted.
#[test]
fn every_connection_has_one_end() {
    let mut run = kept();
    let worker = &mut run.agents[0].workers[0];
    worker.tallies.measure.connections_closed_idle += 1;
    assert_eq!(standing_of(&run, "L1"), InvariantStatus::Broken);
    let worker = &mut run.agents[0].workers[0];
    worker.tallies.measure.connections_opened += 1;
    assert_eq!(standing_of(&run, "L1"), InvariantStatus::Held);
    let worker = &mut run.agents[0].workers[0];
    worker.live.at_end = Some(HELD - 1);
    worker.tallies.measure.failures.add(FailureKind::IdleReset);
    assert_eq!(standing_of(&run, "L1"), InvariantStatus::Held);
    let found = figures(&run);
    assert_eq!((found.closed_by_server, found.missing()), (2, 1));
}

#[test]
fn memory_is_what_was_added_by_the_connections() {
    let mut run = kept();
    for worker in &mut run.agents[0].workers {
        worker.live.asked = 500;
    }
    assert_eq!(figures(&run).client_bytes_per_connection.known(), None);
    let host = &mut run.agents[0].host;
    host.resident_before_bytes = Some(host.peak_resident_bytes - 1_500_000);
    assert_eq!(
        figures(&run).client_bytes_per_connection.known(),
        Some(1_500)
    );
    run.agents[0].workers[0].live.asked = 499;
    assert_eq!(figures(&run).client_bytes_per_connection.known(), None);
}
