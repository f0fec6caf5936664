//! T1: what streams moved, by the kernel's account, by brunt's own and by the receiver's.

use brunt_record::{ServerCount, counted};

use super::facts::{Facts, sum};
use super::outcome::{Outcome, Problems};
use crate::Bandwidth;

/// What one buffer of a server elsewhere may hold: the most that `tcp_rmem` says on any machine
/// that is set up for long and fast ways.
const BUFFER_BYTES_ELSEWHERE: u64 = 64 << 20;
/// What a buffer may hold beyond its limit: the last segments that it took, which the kernel does
/// not cut.
const BUFFER_BYTES_BEYOND: u64 = 128 << 10;
/// Share of the window that its two readings may be off by.
const READINGS_OFF_MOST: f64 = 0.01;

/// T1. What a peer's kernel acknowledged was read, or is in its receive buffer. What was read was
/// acknowledged, or the acknowledgement is on its way: then it is still in our socket. Of streams
/// that both sides ended there is nothing in any buffer. What the server sends is compared in this
/// way, too, with its count of what it gave to its kernel.
pub(super) fn acknowledged_was_read(facts: &Facts<'_>) -> Outcome {
    let run = facts.run;
    let Some(one_way) = run.plan.one_way() else {
        return Outcome::not_applicable("there are requests and no streams");
    };
    let bandwidth = Bandwidth::of(run, &facts.summary);
    let (acked, waiting) = (
        bandwidth.lifetime.bytes_acked,
        bandwidth.unacknowledged_bytes,
    );
    let handed_over = facts.summary.lifetime.bytes_sent;
    let mut words = format!(
        "{acked} bytes acknowledged and {waiting} in our sockets of {handed_over} handed to the \
         kernel"
    );
    let mut problems = Problems::default();
    problems.expect(acked <= handed_over, || {
        format!("more was acknowledged than was sent: {words}")
    });
    let window_ns = facts.window_ns() as f64;
    for worker in facts.workers() {
        let Some(streams) = worker.streams.as_ref().filter(|it| it.readings.len() > 1) else {
            continue;
        };
        let off = (streams.interval_ns() as f64 - window_ns).abs() / window_ns.max(1.0);
        let is_whole = facts.interrupted() || off <= READINGS_OFF_MOST;
        problems.expect(is_whole || window_ns < 1e9, || {
            format!(
                "worker {}: its accounts are of {} ns, the window has {window_ns} ns",
                facts.number(worker),
                streams.interval_ns()
            )
        });
    }
    let counts = match (run.server_count(), run.server_sent()) {
        (Ok(read), Ok(sent)) => (read, sent),
        (Err(reason), _) | (_, Err(reason)) => return Outcome::not_applicable(reason),
    };
    let buffers = Buffers::of(facts);
    if one_way.sends {
        words = match &counts.0 {
            Some(count) => format!("{words}; the receiver read {}", told(count)),
            None => format!("{words}; the receiver's own count was not read (--verify-url)"),
        };
        if let Some(count) = &counts.0 {
            buffers.check_read(count, acked, waiting, &words, &mut problems);
        }
    }
    if let Some(count) = counts.1.filter(|_| one_way.receives) {
        let received = facts.summary.lifetime.bytes_received;
        words = format!(
            "{words}; {received} bytes received of those that the server sent, {}",
            told(&count)
        );
        buffers.check_sent(&count, received, &words, &mut problems);
    }
    problems.or_held(format!("{words}; {}", buffers.words()))
}

/// A count of the server in words.
fn told(count: &ServerCount) -> String {
    let ServerCount { url, path, .. } = count;
    match count.counted() {
        Some(bytes) => format!("{bytes} ({path} at {url})"),
        None => format!("{} after {} ({path} at {url})", count.after, count.before),
    }
}

/// What may be in buffers of the server's sockets.
struct Buffers {
    /// Streams that did not end in order.
    streams: u64,
    /// Bytes in one buffer, at most.
    bytes_max: u64,
    /// The account of each stream is known.
    are_all_known: bool,
}

impl Buffers {
    fn of(facts: &Facts<'_>) -> Self {
        let records = || facts.run.stream_records();
        let in_order: u64 = records().fold(0, |all, it| all.saturating_add(it.ended_in_order));
        let agents = facts.run.agents.iter();
        let bytes_max = agents
            .filter_map(|it| it.limits.server_buffer_bytes_max)
            .max();
        Self {
            streams: facts
                .summary
                .lifetime
                .connections_opened
                .saturating_sub(in_order),
            bytes_max: bytes_max
                .unwrap_or(BUFFER_BYTES_ELSEWHERE)
                .saturating_add(BUFFER_BYTES_BEYOND),
            are_all_known: records().all(|streams| streams.unread_accounts == 0),
        }
    }

    fn words(&self) -> String {
        match self.streams {
            0 => "all streams ended with nothing in any buffer".to_owned(),
            streams => format!(
                "{} ended with buffers that may hold {} each",
                counted(streams, "stream", "streams"),
                counted(self.bytes_max, "byte", "bytes")
            ),
        }
    }

    /// Bytes that were acknowledged and not read, at most, with so many buffers per stream.
    fn hold(&self, per_stream: u64) -> u64 {
        self.streams
            .saturating_mul(self.bytes_max)
            .saturating_mul(per_stream)
    }

    fn check_read(
        &self,
        count: &ServerCount,
        acked: u64,
        waiting: u64,
        words: &str,
        problems: &mut Problems,
    ) {
        let Some(read) = count.counted() else {
            return problems.expect(false, || format!("the receiver's count went back: {words}"));
        };
        let is_no_more = read <= acked.saturating_add(waiting) || !self.are_all_known;
        problems.expect(is_no_more, || {
            format!("more was read than was sent: {words}")
        });
        problems.expect(read.saturating_add(self.hold(1)) >= acked, || {
            format!(
                "less was read than was acknowledged: {words}; {}",
                self.words()
            )
        });
    }

    /// Bytes that the server sent are in its send buffer, in our receive buffer, or were received.
    fn check_sent(&self, count: &ServerCount, received: u64, words: &str, problems: &mut Problems) {
        let Some(sent) = count.counted() else {
            return problems.expect(false, || format!("the sender's count went back: {words}"));
        };
        problems.expect(received <= sent, || {
            format!("more was received than the server sent: {words}")
        });
        problems.expect(received.saturating_add(self.hold(2)) >= sent, || {
            format!(
                "less was received than the server sent: {words}; {}",
                self.words()
            )
        });
    }
}

/// I5, of streams: what was taken from the sockets was received, and what was received was taken or
/// waits. The kernel counts the end of a connection as a byte; where a stream did not end in order,
/// what a receive took that was not looked at any more is at most what one takes at a time.
pub(super) fn kernel_received(facts: &Facts<'_>) -> Outcome {
    const TAKEN_AT_ONCE: u64 = 1 << 20;
    let records = || facts.workers().filter_map(|worker| worker.streams.as_ref());
    let kernel = sum(records().map(|streams| streams.lifetime.bytes_received));
    let waiting = sum(records().map(|streams| streams.unread_bytes));
    let unread = sum(records().map(|streams| streams.unread_accounts));
    let own = u128::from(facts.summary.lifetime.bytes_received);
    let streams = facts.summary.lifetime.connections_opened;
    let words = format!(
        "the kernel counted {kernel} bytes on {}, brunt {own}, and {waiting} were in our sockets",
        counted(streams, "stream", "streams")
    );
    if unread > 0 || records().count() == 0 {
        return Outcome::not_applicable(format!("not all accounts could be read; {words}"));
    }
    let in_order = sum(records().map(|streams| streams.ended_in_order));
    let not_looked_at = u128::from(streams).saturating_sub(in_order) * u128::from(TAKEN_AT_ONCE);
    let slack = u128::from(streams) + not_looked_at;
    if own > kernel || kernel > own + waiting + slack {
        Outcome::broken(words)
    } else {
        Outcome::held(words)
    }
}
