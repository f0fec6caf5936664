//! T1 and I5 of streams, and what says nothing about them.

use super::*;
use crate::invariants::sample_streams::streamed;
use crate::{ServerCount, StreamRecord};

fn streams() -> Run {
    streamed(steady_run())
}

fn first_record(run: &mut Run) -> &mut StreamRecord {
    let streams = run.agents[0].workers[0].streams.as_mut();
    streams.expect("streams")
}

/// The receiver's count of what it read: so many bytes more than were acknowledged, or fewer.
fn counted(run: &mut Run, more: i64) {
    let acked = run.bandwidth().expect("streams").lifetime.bytes_acked;
    run.agents[0].evidence.server_count = Some(ServerCount {
        url: "http://127.0.0.1:1/counters".to_owned(),
        path: "bytes_read".to_owned(),
        before: 1_000,
        after: 1_000_u64.saturating_add_signed(acked as i64 + more),
        own_reads: 0,
    });
}

fn standing_of(run: &Run, id: &str) -> Standing {
    let findings = check(run);
    let finding = findings.iter().find(|finding| finding.id == id);
    finding.expect("it is checked").standing
}

#[test]
fn a_run_of_streams_is_sound_and_has_no_response_times() {
    let run = streams();
    let broken: Vec<_> = check(&run)
        .into_iter()
        .filter(|finding| finding.standing == Standing::Broken)
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
    for (id, standing) in [
        ("T1", Standing::Held),
        ("I5", Standing::Held),
        ("I1", Standing::NotApplicable),
        ("I4", Standing::NotApplicable),
        ("I8", Standing::NotApplicable),
    ] {
        assert_eq!(standing_of(&run, id), standing, "{id}");
    }
    assert_eq!(standing_of(&super::run(), "T1"), Standing::NotApplicable);
    let found = run.bandwidth().expect("streams");
    assert_eq!(found.up_bytes_per_s, Figure::Known(200_000_000.0));
    assert_eq!(found.down_bytes_per_s, Figure::Known(200_000_000.0));
    assert_eq!((found.streams, found.fairness), (8, Some(1.0)));
    assert_eq!(found.smoothed_rtt_ns, Some(50 * US));
    let intervals = run.bandwidth_intervals();
    assert_eq!(intervals.len(), 20);
    for interval in intervals {
        let rates = [interval.up_bytes_per_s, interval.down_bytes_per_s];
        assert_eq!(rates, [200_000_000.0; 2]);
    }
}

#[test]
fn workers_that_read_at_other_instants_add_up() {
    let mut run = streams();
    for reading in &mut first_record(&mut run).readings[1..20] {
        // Half a step late, with what came in it.
        reading.at_ns += 50 * MS as i64;
        reading.bytes_acked += 5_000_000;
    }
    for interval in run.bandwidth_intervals() {
        let off = (interval.up_bytes_per_s / 200_000_000.0 - 1.0).abs();
        assert!(off < 1e-9, "{interval:?}");
    }
}

#[test]
fn what_was_read_is_what_was_acknowledged() {
    type Make = fn(&mut Run);
    let cases: &[(&str, Make, Standing)] = &[
        ("exactly as much", |run| counted(run, 0), Standing::Held),
        (
            "some waits in the receiver's buffers",
            |run| counted(run, -9_000_000),
            Standing::Held,
        ),
        (
            "more than buffers hold is missing",
            |run| {
                run.agents[0].workers.iter_mut().for_each(|worker| {
                    let streams = worker.streams.as_mut().expect("streams");
                    streams.lifetime.bytes_acked *= 10;
                    worker.tallies.measure.bytes_sent *= 10;
                });
                counted(run, -1_500_000_000);
            },
            Standing::Broken,
        ),
        (
            "the acknowledgement is on its way",
            |run| {
                first_record(run).unacknowledged_bytes = 50_000;
                counted(run, 40_000);
            },
            Standing::Held,
        ),
        ("more was read", |run| counted(run, 1), Standing::Broken),
        (
            "the count went back",
            |run| {
                counted(run, 0);
                let count = run.agents[0].evidence.server_count.as_mut();
                count.expect("it was read").after = 0;
            },
            Standing::Broken,
        ),
        (
            "more was acknowledged than sent",
            |run| first_record(run).lifetime.bytes_acked += 1,
            Standing::Broken,
        ),
        (
            "a reading is missing",
            |run| first_record(run).readings.truncate(15),
            Standing::Broken,
        ),
    ];
    for (what, make, standing) in cases {
        let mut run = streams();
        make(&mut run);
        assert_eq!(standing_of(&run, "T1"), *standing, "{what}");
    }
}

#[test]
fn what_came_in_was_taken_or_waits() {
    type Make = fn(&mut Run);
    let cases: &[(&str, Make, Standing)] = &[
        (
            "an end counts as a byte",
            |run| first_record(run).lifetime.bytes_received += 1,
            Standing::Held,
        ),
        (
            "some was not read",
            |run| {
                first_record(run).lifetime.bytes_received += 30_000_000;
                first_record(run).unread_bytes = 30_000_000;
            },
            Standing::Held,
        ),
        (
            "some is lost",
            |run| first_record(run).lifetime.bytes_received += 30_000_000,
            Standing::Broken,
        ),
        (
            "more was taken than came",
            |run| first_record(run).lifetime.bytes_received -= 1,
            Standing::Broken,
        ),
        (
            "an account could not be read",
            |run| first_record(run).unread_accounts = 1,
            Standing::NotApplicable,
        ),
    ];
    for (what, make, standing) in cases {
        let mut run = streams();
        make(&mut run);
        assert_eq!(standing_of(&run, "I5"), *standing, "{what}");
    }
}
