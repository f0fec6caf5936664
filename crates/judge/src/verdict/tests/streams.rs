//! What holds up streams, as the kernel's accounts say.

use std::num::NonZeroU64;

use brunt_load::Spoken;
use brunt_record::{FailureKind, Run, StreamRecord};

use super::bend::busy_for;
use super::rules::{judged, situation, verify};
use super::sample::closed;
use crate::invariants::sample_streams::streamed;
use crate::{EndedStreams, RunFigures, Verdict};

/// Streams between a client and a server that both have time.
fn streams() -> Run {
    streamed(closed())
}

fn each(run: &mut Run, change: impl Fn(&mut StreamRecord)) {
    for worker in &mut run.agents[0].workers {
        change(worker.streams.as_mut().expect("streams"));
    }
}

#[test]
fn accounts_name_the_side_that_holds_streams_up() {
    use Verdict::{ClientLimited, NetworkLimited, RateLimited, ServerLimited};
    verify([
        situation(
            "the server does not read",
            |run| {
                each(run, |it| {
                    it.window.receive_window_limited_ns = it.window.busy_ns / 2;
                });
            },
            ServerLimited,
            "receive_window | does not read | ",
        )
        .on(streams),
        situation(
            "the send buffer is too small",
            |run| {
                each(run, |it| {
                    it.window.send_buffer_limited_ns = it.window.busy_ns / 4;
                });
            },
            ClientLimited,
            "send_buffer | brunt was the limit | tcp_wmem",
        )
        .on(streams),
        situation(
            "the worker has no time",
            |run| busy_for(run, 1_990),
            ClientLimited,
            "worker_idle | brunt was the limit | more",
        )
        .on(streams),
        situation(
            "segments are lost",
            |run| {
                each(run, |it| {
                    it.window.segments_retransmitted = it.window.segments_sent / 50;
                });
            },
            NetworkLimited,
            "lost_segments | loses or delays segments | where segments are lost",
        )
        .on(streams),
        situation(
            "the bandwidth asked for is met",
            |run| pace(run, 1_600_000_000),
            RateLimited,
            "planned_rate | was met | --bandwidth",
        )
        .on(streams),
    ]);
}

/// Asks for a bandwidth.
fn pace(run: &mut Run, bits_per_s: u64) {
    let Spoken::Streams(streams) = &mut run.plan.spoken else {
        panic!("streams");
    };
    streams.paced_bits_per_s = NonZeroU64::new(bits_per_s);
}

#[test]
fn a_bandwidth_that_is_not_met_decides_nothing() {
    let mut run = streams();
    pace(&mut run, 3_200_000_000);
    assert_ne!(judged(&run).verdict, Verdict::RateLimited);
}

#[test]
fn streams_on_which_nothing_moves_are_no_success() {
    let mut run = streams();
    each(&mut run, |it| {
        it.window = Default::default();
        it.lifetime = Default::default();
    });
    for worker in &mut run.agents[0].workers {
        worker.tallies.measure.bytes_received = 0;
    }
    let judgement = judged(&run);
    assert_eq!(judgement.verdict, Verdict::NoSuccess);
    assert!(
        judgement.because.contains("no byte was moved"),
        "{judgement:#?}"
    );
}

#[test]
fn a_rate_of_bytes_that_falls_off_drifts() {
    let mut run = streams();
    assert!(!run.steadiness().drifts);
    each(&mut run, |it| {
        for (step, reading) in it.readings.iter_mut().enumerate() {
            let step = step as u64;
            // Each step moves less than the one before.
            reading.bytes_acked = step * 10_000_000 - step * step * 150_000;
            reading.bytes_received = 0;
        }
    });
    assert!(run.steadiness().drifts);
}

#[test]
fn streams_that_do_not_last_are_a_server_that_fails() {
    let asked = u64::from(streams().summary().live.asked);
    for (ended, reset, verdict) in [
        (asked, 0, Verdict::ServerFailed),
        (1, asked, Verdict::ServerFailed),
        (0, 1, judged(&streams()).verdict),
    ] {
        let mut run = streams();
        let failures = &mut run.agents[0].workers[0].tallies.measure.failures;
        (0..ended).for_each(|_| failures.add(FailureKind::StreamEnded));
        (0..reset).for_each(|_| failures.add(FailureKind::StreamReset));
        let found = EndedStreams::of(&run).expect("some ended");
        assert_eq!((found.ended, found.reset), (ended, reset));
        assert_eq!(found.do_last(), verdict != Verdict::ServerFailed);
        let judgement = judged(&run);
        assert_eq!(judgement.verdict, verdict, "{}", judgement.because);
    }
    assert_eq!(EndedStreams::of(&streams()), None);
}
