//! T1: what streams moved, by the kernel's account, by brunt's own and by the receiver's.

use super::facts::{Facts, sum};
use super::outcome::{Outcome, Problems};
use crate::{Bandwidth, ServerCount};

/// What one socket's receive buffer may hold: the most that `tcp_rmem` says on any machine that is
/// set up for long and fast ways.
const RECEIVE_BUFFER_BYTES: u64 = 64 << 20;
/// Share of the window that its two readings may be off by.
const READINGS_OFF_MOST: f64 = 0.01;

/// T1. What a peer's kernel acknowledged is in its receive buffer or was read; what was read was
/// acknowledged, or the acknowledgement is on its way: then it is still in our socket.
pub(super) fn acknowledged_was_read(facts: &Facts<'_>) -> Outcome {
    let run = facts.run;
    if !run.is_streams() {
        return Outcome::not_applicable("there are requests and no streams");
    }
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
    let (unread, count) = (
        sum(run.stream_records().map(|streams| streams.unread_accounts)),
        match run.server_count() {
            Ok(count) => count,
            Err(reason) => return Outcome::not_applicable(reason),
        },
    );
    let sends = run.plan.one_way.is_some_and(|one_way| one_way.sends);
    let Some(count) = count.filter(|_| sends) else {
        return problems.or_held(match sends {
            true => format!("{words}; the receiver's own count was not read (--verify-url)"),
            false => words,
        });
    };
    let ServerCount {
        url,
        path,
        before,
        after,
        ..
    } = &count;
    words = format!(
        "{words}; the receiver read {} ({path} at {url})",
        after.saturating_sub(*before)
    );
    if after < before {
        return Outcome::broken(format!("the receiver's count went back: {words}"));
    }
    let read = after - before;
    let streams = facts.summary.lifetime.connections_opened;
    let buffers = streams.saturating_mul(RECEIVE_BUFFER_BYTES);
    problems.expect(read <= acked.saturating_add(waiting) || unread > 0, || {
        format!("more was read than was sent: {words}")
    });
    problems.expect(read.saturating_add(buffers) >= acked, || {
        format!("more is missing than {streams} receive buffers hold: {words}")
    });
    problems.or_held(words)
}

/// I5, of streams: what was taken from the sockets was received, and what was received was taken or
/// waits. The kernel counts the end of a connection as a byte; what a receive took that was not
/// looked at any more is at most what one takes at a time.
pub(super) fn kernel_received(facts: &Facts<'_>) -> Outcome {
    const TAKEN_AT_ONCE: u64 = 1 << 20;
    let records = || facts.workers().filter_map(|worker| worker.streams.as_ref());
    let kernel = sum(records().map(|streams| streams.lifetime.bytes_received));
    let waiting = sum(records().map(|streams| streams.unread_bytes));
    let unread = sum(records().map(|streams| streams.unread_accounts));
    let own = u128::from(facts.summary.lifetime.bytes_received);
    let streams = facts.summary.lifetime.connections_opened;
    let words = format!(
        "the kernel counted {kernel} bytes on {streams} streams, brunt {own}, and {waiting} were \
         in our sockets"
    );
    if unread > 0 || records().count() == 0 {
        return Outcome::not_applicable(format!("not all accounts could be read; {words}"));
    }
    let slack = u128::from(streams) * u128::from(TAKEN_AT_ONCE);
    if own > kernel || kernel > own + waiting + slack {
        Outcome::broken(words)
    } else {
        Outcome::held(words)
    }
}
