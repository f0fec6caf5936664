//! One-way streams against a peer of the test's own: what is reported is what the peer counted.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use brunt_engine::prepare;
use brunt_judge::{InvariantStatus, RunFigures, Verdict};
use brunt_load::{Plan, SocketOptions, Spoken, Streams};
use brunt_record::{FailureKind, Run};

use crate::common::{Kind, MS, choice, expect_valid, many, plan, status};

/// What the peer does on each connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    /// The server reads all that comes.
    Reads,
    /// The server sends without end.
    Sends,
    /// The server reads and sends at once.
    Both,
    /// The server takes connections and reads nothing.
    Nothing,
    /// The server reads this many bytes, and closes.
    Closes(u64),
}

/// A peer with a count of what it read and sent, on all connections together.
struct Peer {
    address: SocketAddr,
    read: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

fn peer(does: Does) -> Peer {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let read = Arc::new(AtomicU64::new(0));
    let is_over = Arc::new(AtomicBool::new(false));
    let (count, over) = (Arc::clone(&read), Arc::clone(&is_over));
    let thread = std::thread::spawn(move || {
        let mut connections = Vec::new();
        while let Ok((socket, _)) = listener.accept() {
            if over.load(Ordering::Relaxed) {
                break;
            }
            let patience = Some(Duration::from_secs(20));
            socket.set_read_timeout(patience).expect("an option");
            socket.set_write_timeout(patience).expect("an option");
            if matches!(does, Does::Sends | Does::Both) {
                let mut socket = socket.try_clone().expect("a descriptor");
                connections.push(std::thread::spawn(move || {
                    let bytes = vec![1; 100_000];
                    while socket.write_all(&bytes).is_ok() {}
                }));
            }
            let (count, over) = (Arc::clone(&count), Arc::clone(&over));
            let mut socket = socket;
            connections.push(std::thread::spawn(move || match does {
                Does::Nothing => {
                    while !over.load(Ordering::Relaxed) {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
                _ => {
                    let most = match does {
                        Does::Closes(most) => most,
                        _ => u64::MAX,
                    };
                    let (mut buffer, mut bytes) = (vec![0; 100_000], 0);
                    while bytes < most {
                        match socket.read(&mut buffer) {
                            Ok(0) | Err(_) => break,
                            Ok(more) => {
                                bytes += more as u64;
                                count.fetch_add(more as u64, Ordering::Relaxed);
                            }
                        }
                    }
                }
            }));
        }
        for connection in connections {
            connection.join().expect("a connection that ends well");
        }
    });
    Peer {
        address,
        read,
        is_over,
        thread,
    }
}

impl Peer {
    /// Ends it; gives the bytes that it read.
    fn end(self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        // The last connection that it takes.
        drop(std::net::TcpStream::connect(self.address));
        self.thread.join().expect("a peer that ends well");
        self.read.load(Ordering::Relaxed)
    }
}

/// A run of streams against the peer, and what that read.
fn stream(kind: Kind, does: Does, streams: Streams, change: impl FnOnce(&mut Plan)) -> (Run, u64) {
    let peer = peer(does);
    let mut plan = plan(&format!("http://{}/", peer.address), choice(kind));
    plan.connections = many(3);
    plan.spoken = Spoken::Streams(streams);
    plan.drain_limit_ns = 200 * MS;
    change(&mut plan);
    let prepared = prepare(plan).expect("a plan that fits");
    let control = prepared.control();
    let run = prepared.run(&control, true, &mut |_, _: &_| {});
    (run.expect("a run"), peer.end())
}

const UP: Streams = Streams {
    sends: true,
    receives: false,
    paced_bits_per_s: None,
    is_arranged: false,
};
const DOWN: Streams = Streams {
    sends: false,
    receives: true,
    paced_bits_per_s: None,
    is_arranged: false,
};
const BOTH: Streams = Streams {
    sends: true,
    receives: true,
    paced_bits_per_s: None,
    is_arranged: false,
};

/// What was acknowledged was read by the peer or was in its buffers, and nothing else was read.
fn expect_read(run: &Run, read: u64) {
    let found = run.bandwidth().expect("streams");
    let (acked, waiting) = (found.lifetime.bytes_acked, found.unacknowledged_bytes);
    assert!(acked > 0);
    assert!(
        read <= acked + waiting && acked <= read + 64_000_000,
        "{read} read, {acked} acknowledged, {waiting} not yet"
    );
    assert_eq!(status(run, "T1"), InvariantStatus::Held);
}

fn an_upload_is_what_the_peer_acknowledged(kind: Kind) {
    let (run, read) = stream(kind, Does::Reads, UP, |_| {});
    expect_valid(&run, "upload");
    expect_read(&run, read);
    let found = run.bandwidth().expect("streams");
    assert_eq!(found.streams, 3);
    assert_eq!(found.down_bytes, 0);
    let rate = found.up_bytes_per_s.known().expect("it was read");
    let by_window = found.window.bytes_acked as f64 * 1e9 / run.window_ns as f64;
    assert!((rate / by_window - 1.0).abs() < 0.5, "{rate} {by_window}");
    assert!(
        found
            .fairness
            .is_some_and(|index| index > 0.3 && index <= 1.0)
    );
    assert!(found.min_rtt_ns.is_some() && found.window.segments_sent > 0);
    let intervals = run.bandwidth_intervals();
    assert!(intervals.len() >= 2, "{intervals:?}");
    let bytes: f64 = intervals
        .iter()
        .map(|it| it.up_bytes_per_s * (it.to_ns - it.from_ns) as f64 / 1e9)
        .sum();
    let all = found.window.bytes_acked as f64;
    assert!((bytes - all).abs() <= all * 0.001 + 10.0, "{bytes} {all}");
}

fn one_stream_does_not_hold_up_the_readings(kind: Kind) {
    let (run, _) = stream(kind, Does::Reads, UP, |plan| plan.connections = many(1));
    expect_valid(&run, "one stream");
    let readings = &run.agents[0].workers[0]
        .streams
        .as_ref()
        .expect("streams")
        .readings;
    assert!(readings.len() >= 3, "{readings:?}");
}

fn a_download_is_what_was_taken_from_the_sockets(kind: Kind) {
    let (run, _) = stream(kind, Does::Sends, DOWN, |_| {});
    expect_valid(&run, "download");
    let found = run.bandwidth().expect("streams");
    assert!(found.down_bytes > 0);
    assert_eq!(found.lifetime.bytes_acked, 0);
    assert_eq!(status(&run, "I5"), InvariantStatus::Held);
}

fn both_ways_go_at_once(kind: Kind) {
    let (run, read) = stream(kind, Does::Both, BOTH, |_| {});
    expect_valid(&run, "both ways");
    expect_read(&run, read);
    assert!(run.bandwidth().expect("streams").down_bytes > 0);
}

fn the_kernel_paces_what_is_sent(kind: Kind) {
    let bits_per_s = 80_000_000;
    let streams = Streams {
        paced_bits_per_s: NonZeroU64::new(bits_per_s),
        is_arranged: false,
        ..UP
    };
    let (run, read) = stream(kind, Does::Reads, streams, |plan| {
        plan.stop.duration_ns = Some(1_000 * MS);
        plan.warmup_ns = 200 * MS;
    });
    expect_valid(&run, "paced");
    expect_read(&run, read);
    let found = run.bandwidth().expect("streams");
    let rate = found.up_bytes_per_s.known().expect("it was read") * 8.0;
    // TCP sends its first segments without pauses.
    assert!(rate < 1.2 * bits_per_s as f64, "{rate} bit/s");
}

fn a_peer_that_does_not_read_is_found_out(kind: Kind) {
    let (run, read) = stream(kind, Does::Nothing, UP, |plan| {
        plan.stop.duration_ns = Some(600 * MS);
    });
    assert_eq!(read, 0);
    expect_valid(&run, "not reading");
    let judged = run.judge();
    // Nothing moved in the window, or the peer's buffers took a last part of it.
    match judged.verdict {
        Verdict::NoSuccess => assert_eq!(run.bandwidth().expect("streams").window.bytes_acked, 0),
        _ => {
            let window = run.bandwidth().expect("streams").window;
            assert!(window.receive_window_limited_ns > window.busy_ns / 10);
        }
    }
}

fn streams_that_the_peer_ends_are_opened_again(kind: Kind) {
    let (run, read) = stream(kind, Does::Closes(3_000_000), UP, |_| {});
    expect_valid(&run, "closed by the peer");
    let lifetime = run.summary().lifetime;
    assert!(lifetime.connections_opened > 3);
    let [ended, reset] = [FailureKind::StreamEnded, FailureKind::StreamReset]
        .map(|kind| lifetime.failures.get(kind));
    assert!(ended + reset > 0, "{lifetime:?}");
    assert_eq!(lifetime.connections_closed_idle, 0);
    let acked = run.bandwidth().expect("streams").lifetime.bytes_acked;
    assert!(acked > 0 && read > 0, "{acked} {read}");
}

fn options_of_sockets_are_in_force(kind: Kind) {
    let (run, read) = stream(kind, Does::Reads, UP, |plan| {
        plan.sockets = SocketOptions {
            segment_bytes: std::num::NonZeroU32::new(1_000),
            congestion: Some("reno".to_owned()),
            ..SocketOptions::default()
        };
    });
    expect_valid(&run, "small segments");
    expect_read(&run, read);
    let window = run.bandwidth().expect("streams").window;
    assert!(window.segments_sent >= window.bytes_acked / 1_000 / 2);
    assert_eq!(
        run.plan
            .sockets
            .segment_bytes
            .map(std::num::NonZeroU32::get),
        Some(1_000)
    );
}

crate::common::on_both_kernels![
    an_upload_is_what_the_peer_acknowledged,
    one_stream_does_not_hold_up_the_readings,
    a_download_is_what_was_taken_from_the_sockets,
    both_ways_go_at_once,
    the_kernel_paces_what_is_sent,
    a_peer_that_does_not_read_is_found_out,
    streams_that_the_peer_ends_are_opened_again,
    options_of_sockets_are_in_force,
];
