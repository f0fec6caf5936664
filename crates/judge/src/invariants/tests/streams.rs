//! T1 and I5 of streams, and what says nothing about them.

use brunt_record::{ServerCount, ServerWindow, StreamRecord};

use super::*;
use crate::invariants::sample_streams::streamed;
use crate::{Figure, RunFigures};
use InvariantStatus::{Broken, Held, NotApplicable};

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

/// All streams ended in order.
fn ended(run: &mut Run) {
    for worker in &mut run.agents[0].workers {
        worker.streams.as_mut().expect("streams").ended_in_order = 4;
    }
}

/// The sender's count of what it sent: so many bytes more than were received, or fewer.
fn sent(run: &mut Run, more: i64) {
    let received = run.summary().lifetime.bytes_received;
    run.agents[0].evidence.server_sent = Some(ServerCount {
        url: "http://127.0.0.1:1/counters".to_owned(),
        path: "bytes_sent".to_owned(),
        before: 1_000,
        after: 1_000_u64.saturating_add_signed(received as i64 + more),
        own_reads: 0,
    });
}

#[test]
fn a_run_of_streams_is_sound_and_has_no_response_times() {
    let run = streams();
    let broken: Vec<_> = check(&run)
        .into_iter()
        .filter(|finding| finding.status == Broken)
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
    for (id, status) in [
        ("T1", Held),
        ("I5", Held),
        ("I1", NotApplicable),
        ("I4", NotApplicable),
        ("I8", NotApplicable),
    ] {
        assert_eq!(standing_of(&run, id), status, "{id}");
    }
    assert_eq!(standing_of(&super::run(), "T1"), NotApplicable);
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
    let cases: &[(&str, Make, InvariantStatus)] = &[
        ("exactly as much", |run| counted(run, 0), Held),
        (
            "some waits in the receiver's buffers",
            |run| counted(run, -9_000_000),
            Held,
        ),
        (
            "more than buffers hold is missing",
            // Eight streams, with 8 MB in each buffer and a last segment of 128 KiB.
            |run| counted(run, -8 * (8_000_000 + (128 << 10)) - 1),
            Broken,
        ),
        (
            "the server is elsewhere, and its buffers may be larger",
            |run| {
                run.agents[0].limits.server_buffer_bytes_max = None;
                counted(run, -8 * (8_000_000 + (128 << 10)) - 1);
            },
            Held,
        ),
        (
            "streams that ended have nothing in buffers",
            |run| {
                ended(run);
                counted(run, -1);
            },
            Broken,
        ),
        (
            "streams that ended were read to the end",
            |run| {
                ended(run);
                counted(run, 0);
                sent(run, 0);
            },
            Held,
        ),
        (
            "one stream that did not end may have something in its buffers",
            |run| {
                ended(run);
                first_record(run).ended_in_order = 3;
                counted(run, -7_000_000);
                sent(run, 15_000_000);
            },
            Held,
        ),
        (
            "more was sent than two buffers hold",
            |run| {
                ended(run);
                first_record(run).ended_in_order = 3;
                sent(run, 17_000_000);
            },
            Broken,
        ),
        (
            "more was received than the server sent",
            |run| sent(run, -1),
            Broken,
        ),
        (
            "the sender's count went back",
            |run| {
                sent(run, 0);
                let count = run.agents[0].evidence.server_sent.as_mut();
                count.expect("it was read").after = 0;
            },
            Broken,
        ),
        (
            "the acknowledgement is on its way",
            |run| {
                first_record(run).unacknowledged_bytes = 50_000;
                counted(run, 40_000);
            },
            Held,
        ),
        ("more was read", |run| counted(run, 1), Broken),
        (
            "the count went back",
            |run| {
                counted(run, 0);
                let count = run.agents[0].evidence.server_count.as_mut();
                count.expect("it was read").after = 0;
            },
            Broken,
        ),
        (
            "more was acknowledged than sent",
            |run| first_record(run).lifetime.bytes_acked += 1,
            Broken,
        ),
        (
            "a reading is missing",
            |run| first_record(run).readings.truncate(15),
            Broken,
        ),
    ];
    for (what, make, status) in cases {
        let mut run = streams();
        make(&mut run);
        assert_eq!(standing_of(&run, "T1"), *status, "{what}");
    }
}

#[test]
fn counts_beside_each_other_are_told() {
    let mut run = streams();
    let found = run.bandwidth().expect("streams");
    assert_eq!((found.up_counts, found.down_counts), (None, None));
    assert!(found.server_read_bytes_per_s.known().is_none());
    counted(&mut run, -4_000_000);
    sent(&mut run, 0);
    run.agents[0].evidence.server_window = Some(ServerWindow {
        interval_ns: 2_000_000_000,
        bytes_received: 390_000_000,
        bytes_sent: 400_000_000,
    });
    let found = run.bandwidth().expect("streams");
    let up = found.up_counts.expect("it was read");
    assert_eq!(up.own, found.lifetime.bytes_acked);
    assert_eq!(up.difference(), Some(-0.01));
    let down = found.down_counts.expect("it was read");
    assert_eq!(down.difference(), Some(0.0));
    assert_eq!(found.server_read_bytes_per_s, Figure::Known(195_000_000.0));
    assert_eq!(found.server_sent_bytes_per_s, Figure::Known(200_000_000.0));
}

#[test]
fn what_came_in_was_taken_or_waits() {
    type Make = fn(&mut Run);
    let cases: &[(&str, Make, InvariantStatus)] = &[
        (
            "an end counts as a byte",
            |run| first_record(run).lifetime.bytes_received += 1,
            Held,
        ),
        (
            "some was not read",
            |run| {
                first_record(run).lifetime.bytes_received += 30_000_000;
                first_record(run).unread_bytes = 30_000_000;
            },
            Held,
        ),
        (
            "some is lost",
            |run| first_record(run).lifetime.bytes_received += 30_000_000,
            Broken,
        ),
        (
            "of streams that ended all was looked at",
            |run| {
                ended(run);
                first_record(run).lifetime.bytes_received += 9;
            },
            Broken,
        ),
        (
            "more was taken than came",
            |run| first_record(run).lifetime.bytes_received -= 1,
            Broken,
        ),
        (
            "an account could not be read",
            |run| first_record(run).unread_accounts = 1,
            NotApplicable,
        ),
    ];
    for (what, make, status) in cases {
        let mut run = streams();
        make(&mut run);
        assert_eq!(standing_of(&run, "I5"), *status, "{what}");
    }
}
