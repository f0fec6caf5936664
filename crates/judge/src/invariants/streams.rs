//! T1: what streams moved, by the kernel's account, by brunt's own and by the receiver's.

use brunt_record::ServerCount;

use super::outcome::{Checked, Outcome, Problems};
use super::sums::sum;
use crate::Bandwidth;
use crate::facts::Facts;
use crate::units::plural;

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
pub(super) fn acknowledged_was_read(facts: &Facts<'_>) -> Checked {
    let run = facts.run;
    let Some(one_way) = run.plan.one_way() else {
        let words = "there are requests and no streams";
        return Err(Outcome::not_applicable(words));
    };
    let bandwidth = Bandwidth::of(run, &facts.summary);
    let acked = bandwidth.lifetime.bytes_acked;
    let waiting = bandwidth.unacknowledged_bytes;
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
        let interval_ns = streams.interval_ns();
        let off = (interval_ns as f64 - window_ns).abs() / window_ns.max(1.0);
        let is_whole = facts.interrupted() || off <= READINGS_OFF_MOST;
        problems.expect(is_whole || window_ns < 1e9, || {
            let number = facts.number(worker);
            format!(
                "worker {number}: its accounts are of {interval_ns} ns, the window has {window_ns} \
                 ns"
            )
        });
    }
    let (read, sent) = match (run.server_count(), run.server_sent()) {
        (Ok(read), Ok(sent)) => (read, sent),
        (Err(reason), _) | (_, Err(reason)) => return Err(Outcome::not_applicable(reason)),
    };
    let buffers = Buffers::of(facts);
    let held = buffers.words();
    if one_way.sends {
        words = match &read {
            Some(count) => format!("{words}; the receiver read {}", told(count)),
            None => format!("{words}; the receiver's own count was not read (--verify-url)"),
        };
    }
    if let Some(count) = read.filter(|_| one_way.sends) {
        let read = count.counted();
        let read = read.ok_or_else(|| went_back("receiver", &words))?;
        let is_no_more = read <= acked.saturating_add(waiting) || !buffers.are_all_known;
        problems.expect(is_no_more, || {
            format!("more was read than was sent: {words}")
        });
        problems.expect(read.saturating_add(buffers.hold(1)) >= acked, || {
            format!("less was read than was acknowledged: {words}; {held}")
        });
    }
    if let Some(count) = sent.filter(|_| one_way.receives) {
        let received = facts.summary.lifetime.bytes_received;
        words = format!(
            "{words}; {received} bytes received of those that the server sent, {}",
            told(&count)
        );
        let sent = count.counted();
        let sent = sent.ok_or_else(|| went_back("sender", &words))?;
        problems.expect(received <= sent, || {
            format!("more was received than the server sent: {words}")
        });
        // They are in its send buffer, in our receive buffer, or were received.
        problems.expect(received.saturating_add(buffers.hold(2)) >= sent, || {
            format!("less was received than the server sent: {words}; {held}")
        });
    }
    problems.or_held(format!("{words}; {held}"))
}

fn went_back(whose: &str, words: &str) -> Outcome {
    Outcome::broken(format!("the {whose}'s count went back: {words}"))
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
        let bytes_max = agents.filter_map(|it| it.limits.server_buffer_bytes_max);
        let bytes_max = bytes_max.max().unwrap_or(BUFFER_BYTES_ELSEWHERE);
        let opened = facts.summary.lifetime.connections_opened;
        Self {
            streams: opened.saturating_sub(in_order),
            bytes_max: bytes_max.saturating_add(BUFFER_BYTES_BEYOND),
            are_all_known: records().all(|streams| streams.unread_accounts == 0),
        }
    }

    fn words(&self) -> String {
        match self.streams {
            0 => "all streams ended with nothing in any buffer".to_owned(),
            streams => format!(
                "{} ended with buffers that may hold {} each",
                plural(streams, "stream"),
                plural(self.bytes_max, "byte")
            ),
        }
    }

    /// Bytes that were acknowledged and not read, at most, with so many buffers per stream.
    fn hold(&self, per_stream: u64) -> u64 {
        self.streams
            .saturating_mul(self.bytes_max)
            .saturating_mul(per_stream)
    }
}

/// I5, of streams: what was taken from the sockets was received, and what was received was taken or
/// waits. The kernel counts the end of a connection as a byte; where a stream did not end in order,
/// what a receive took that was not looked at any more is at most what one takes at a time.
pub(super) fn kernel_received(facts: &Facts<'_>) -> Checked {
    const TAKEN_AT_ONCE: u64 = 1 << 20;
    let records = || facts.workers().filter_map(|worker| worker.streams.as_ref());
    let kernel = sum(records().map(|streams| streams.lifetime.bytes_received));
    let waiting = sum(records().map(|streams| streams.unread_bytes));
    let unread = sum(records().map(|streams| streams.unread_accounts));
    let own = u128::from(facts.summary.lifetime.bytes_received);
    let streams = facts.summary.lifetime.connections_opened;
    let words = format!(
        "the kernel counted {kernel} bytes on {}, brunt {own}, and {waiting} were in our sockets",
        plural(streams, "stream")
    );
    if unread > 0 || records().count() == 0 {
        let words = format!("not all accounts could be read; {words}");
        return Err(Outcome::not_applicable(words));
    }
    let in_order = sum(records().map(|streams| streams.ended_in_order));
    let not_looked_at = u128::from(streams).saturating_sub(in_order) * u128::from(TAKEN_AT_ONCE);
    let slack = u128::from(streams) + not_looked_at;
    let mut problems = Problems::default();
    let is_explained = own <= kernel && kernel <= own + waiting + slack;
    problems.expect(is_explained, || words.clone());
    problems.or_held(words)
}
