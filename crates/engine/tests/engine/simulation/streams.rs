//! Streams, where the figures are known beforehand.

use std::num::NonZeroU64;

use brunt_judge::{InvariantStatus, RunFigures, Verdict};
use brunt_load::{Plan, ProtocolSpec, Streams, Target};
use brunt_record::{FailureKind, Run};
use brunt_testkit::{SimHost, SimReads, SimSettings, SimStreams};

use super::{faithful, plan};
use crate::common::{MS, S, lifetime, many, status};

/// Bytes of the server's receive buffer.
const BUFFER: u64 = 256 * 1024;

/// Two streams for a second.
fn streaming(sends: bool, receives: bool) -> Plan {
    let mut plan = plan();
    plan.target = Target::parse_tcp(Some("simulated:1"), false, None).expect("a server");
    plan.connection.protocol = ProtocolSpec::Streams(Streams {
        sends,
        receives,
        paced_bits_per_s: None,
        is_arranged: false,
    });
    plan.load.connections = many(2);
    plan.load.stop.duration_ns = Some(S);
    plan
}

/// A server that sends nothing, and is as `change` has it.
fn server(change: impl FnOnce(&mut SimStreams)) -> SimSettings {
    let mut streams = SimStreams {
        sends_per_s: None,
        ..SimStreams::default()
    };
    change(&mut streams);
    let mut settings = SimSettings::new(1);
    settings.server.streams = Some(streams);
    settings.host = Some(SimHost::default());
    settings
}

fn per_s(bytes: u64) -> NonZeroU64 {
    NonZeroU64::new(bytes).expect("a rate")
}

fn ended_in_order(run: &Run) -> u64 {
    let records = run.workers().filter_map(|worker| worker.streams.as_ref());
    records.map(|record| record.ended_in_order).sum()
}

/// The share of the time with something to send that was held up so.
fn shares(run: &Run) -> (f64, f64) {
    let window = run.bandwidth().expect("streams").window;
    let share = |ns: u64| ns as f64 / window.busy_ns as f64;
    (
        share(window.receive_window_limited_ns),
        share(window.send_buffer_limited_ns),
    )
}

#[test]
fn a_server_that_reads_slowly_sets_the_rate() {
    let settings = server(|streams| streams.reads = SimReads::PerSecond(per_s(10_000_000)));
    let (run, counts) = faithful(&streaming(true, false), &settings, "slow reader");
    let found = run.bandwidth().expect("streams");
    let rate = found.up_bytes_per_s.known().expect("it was read");
    assert!((rate / 20_000_000.0 - 1.0).abs() < 0.02, "{rate}");
    assert!(shares(&run).0 > 0.9, "{:?}", shares(&run));
    // All of it is read in the end, and the counts are equal.
    assert_eq!(ended_in_order(&run), 2);
    assert_eq!(found.lifetime.bytes_acked, counts.stream_bytes_read);
    let judged = run.judge();
    assert_eq!(judged.verdict, Verdict::ServerLimited, "{}", judged.because);
    assert!(judged.because.contains("does not read"), "{judged:?}");
}

#[test]
fn a_server_that_does_not_read_has_its_buffers_filled_and_no_more() {
    let settings = server(|streams| streams.reads = SimReads::Nothing);
    let (run, counts) = faithful(&streaming(true, false), &settings, "no reader");
    let found = run.bandwidth().expect("streams");
    assert_eq!(counts.stream_bytes_read, 0);
    assert_eq!(found.lifetime.bytes_acked, 2 * BUFFER);
    assert_eq!(found.window.bytes_acked, 0);
    assert_eq!(shares(&run), (1.0, 0.0));
    assert_eq!(ended_in_order(&run), 0);
    assert_eq!(run.judge().verdict, Verdict::NoSuccess);
}

#[test]
fn a_server_that_stops_reading_in_the_window_is_seen_over_time() {
    let settings = server(|streams| {
        streams.reads = SimReads::PerSecond(per_s(10_000_000));
        streams.stops_after = Some(5_000_000);
    });
    let (run, counts) = faithful(&streaming(true, false), &settings, "stops");
    assert_eq!(counts.stream_bytes_read, 10_000_000);
    let found = run.bandwidth().expect("streams");
    assert_eq!(found.lifetime.bytes_acked, 10_000_000 + 2 * BUFFER);
    let intervals = run.bandwidth_intervals();
    let rates: Vec<f64> = intervals
        .iter()
        .map(|interval| interval.up_bytes_per_s)
        .collect();
    assert!(rates[1] > 19_000_000.0 && rates[8] == 0.0, "{rates:?}");
}

#[test]
fn a_small_send_buffer_is_found_out() {
    let mut settings = server(|_| {});
    // A round trip of 2 ms for each 64 KiB.
    settings.network_ns = MS;
    let (run, counts) = faithful(&streaming(true, false), &settings, "small buffer");
    let found = run.bandwidth().expect("streams");
    let rate = found.up_bytes_per_s.known().expect("it was read");
    let expected = 2.0 * 65_536.0 / 0.002;
    assert!((rate / expected - 1.0).abs() < 0.02, "{rate} {expected}");
    assert!(shares(&run).1 > 0.9, "{:?}", shares(&run));
    assert_eq!(found.lifetime.bytes_acked, counts.stream_bytes_read);
    let judged = run.judge();
    assert_eq!(judged.verdict, Verdict::ClientLimited, "{}", judged.because);
}

#[test]
fn what_the_server_sends_is_received() {
    let settings = server(|streams| streams.sends_per_s = Some(per_s(50_000_000)));
    let (run, counts) = faithful(&streaming(false, true), &settings, "source");
    let found = run.bandwidth().expect("streams");
    let rate = found.down_bytes_per_s.known().expect("it is counted");
    assert!((rate / 100_000_000.0 - 1.0).abs() < 0.01, "{rate}");
    assert_eq!(ended_in_order(&run), 2);
    assert_eq!(lifetime(&run).bytes_received, counts.stream_bytes_sent);
    assert_eq!(status(&run, "I5"), InvariantStatus::Held);
}

#[test]
fn both_ways_at_once_are_counted_apart() {
    let settings = server(|streams| {
        streams.reads = SimReads::PerSecond(per_s(10_000_000));
        streams.sends_per_s = Some(per_s(40_000_000));
    });
    let (run, counts) = faithful(&streaming(true, true), &settings, "both");
    let found = run.bandwidth().expect("streams");
    let [up, down] = [found.up_bytes_per_s, found.down_bytes_per_s].map(|rate| rate.known());
    let off = |rate: Option<f64>, expected: f64| (rate.expect("known") / expected - 1.0).abs();
    assert!(off(up, 20_000_000.0) < 0.02 && off(down, 80_000_000.0) < 0.01);
    assert_eq!(found.lifetime.bytes_acked, counts.stream_bytes_read);
    assert_eq!(lifetime(&run).bytes_received, counts.stream_bytes_sent);
}

#[test]
fn streams_that_the_server_closes_are_opened_again() {
    let settings = server(|streams| {
        streams.reads = SimReads::PerSecond(per_s(20_000_000));
        streams.closes_after = NonZeroU64::new(1_000_000);
    });
    let (run, counts) = faithful(&streaming(true, false), &settings, "closing");
    let lifetime = lifetime(&run);
    // 20 MB/s on each of two streams: each lasts 50 ms. The second one comes at once, others after
    // pauses of 20 ms, 40 ms and so on.
    let opened = lifetime.connections_opened;
    assert!((12..=18).contains(&opened), "{lifetime:?}");
    let reset = lifetime.failures.get(FailureKind::StreamReset);
    assert!(reset + 2 >= lifetime.connections_opened, "{lifetime:?}");
    assert!(counts.stream_bytes_read >= 10_000_000);
    let judged = run.judge();
    assert_eq!(judged.verdict, Verdict::ServerFailed, "{}", judged.because);
    assert!(
        judged.because.contains("ended or reset 14 streams"),
        "{judged:?}"
    );
    assert!(judged.because.contains("moved 1.1 MB"), "{judged:?}");
}

#[test]
fn what_is_lost_is_sent_again_and_counted() {
    let settings = server(|streams| {
        streams.reads = SimReads::PerSecond(per_s(100_000_000));
        streams.loss = 0.02;
    });
    let (run, counts) = faithful(&streaming(true, false), &settings, "loss");
    let found = run.bandwidth().expect("streams");
    let share = found.window.segments_retransmitted as f64 / found.window.segments_sent as f64;
    assert!((0.01..0.03).contains(&share), "{share}");
    assert_eq!(found.lifetime.bytes_acked, counts.stream_bytes_read);
    let again: u64 = run
        .bandwidth_intervals()
        .iter()
        .map(|reading| reading.segments_retransmitted)
        .sum();
    assert_eq!(again, found.window.segments_retransmitted);
}
