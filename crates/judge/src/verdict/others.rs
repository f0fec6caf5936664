//! How much of what the server receives is not brunt's: others' share, at least.

use brunt_record::{AgentRecord, Run, ServerConnections};

use crate::Summary;

/// Requests that fit into a segment of any path, bytes.
const ONE_SEGMENT_BYTES: u64 = 1_000;
/// What TLS or HTTP/2 adds to a request on its way at most, with a share of the frames about the
/// whole connection, bytes.
const FRAMING_BYTES: f64 = 40.0;
/// Bytes that a handshake sends at most, without a client's certificate.
const HANDSHAKE_BYTES: f64 = 4_096.0;
/// Segments that a handshake sends at most, without a client's certificate.
const HANDSHAKE_SEGMENTS: f64 = 4.0;
/// Segments of all clients together below which shares of them are chance.
const OTHERS_SEGMENTS_LEAST: u64 = 20;

/// The share of the server's traffic that is not brunt's, and who counted it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Others {
    /// The share, from 0 to 1.
    pub(super) share: f64,
    /// Whether the server itself counted, in requests; else the kernel did, in segments or bytes.
    pub(super) counted_by_server: bool,
}

/// What others sent to the server, by its own count or by the kernel's: the one that shows more,
/// because each may miss some. Else why neither tells. With several agents, what each agent saw of
/// the others is brunt's own traffic.
pub(super) fn others_of(
    run: &Run,
    agent: &AgentRecord,
    summary: &Summary,
) -> Result<Others, &'static str> {
    let by_kernel = match &agent.evidence.server_connections {
        Some(seen) => of_connections(run, summary, seen),
        None => Err("the server's connections were not counted"),
    };
    let (share, counted_by_server) = match (of_count(run, summary), by_kernel) {
        (Some(by_server), Ok(by_kernel)) if by_kernel > by_server => (by_kernel, false),
        (Some(by_server), _) => (by_server, true),
        (None, by_kernel) => (by_kernel?, false),
    };
    Ok(Others {
        share,
        counted_by_server,
    })
}

/// The share of the requests counted by the server that brunt did not send. Bytes of streams that
/// it counted beyond ours break T1.
fn of_count(run: &Run, summary: &Summary) -> Option<f64> {
    if run.is_streams() {
        return None;
    }
    let count = run.server_count().ok()??;
    let difference = count.after.checked_sub(count.before)?;
    let counted = difference.saturating_sub(count.own_reads);
    let beyond = counted.saturating_sub(summary.lifetime.sends());
    (counted > 0).then(|| beyond as f64 / counted as f64)
}

/// The share of what the kernel counted on the server's connections that brunt did not send.
fn of_connections(
    run: &Run,
    summary: &Summary,
    seen: &ServerConnections,
) -> Result<f64, &'static str> {
    if seen.interval_ns == 0 || seen.segments_received < OTHERS_SEGMENTS_LEAST {
        return Err("the server received too little to tell");
    }
    if run.is_streams() {
        return Err("what is under way on streams hides what others send");
    }
    let (received, own) = accounts(run, summary, seen);
    if seen.connections <= u64::from(summary.live.max) {
        let is_known = received >= own / 2.0;
        let too_fast = "brunt's connections come and go too fast to be told from those of others";
        return is_known.then_some(0.0).ok_or(too_fast);
    }
    // Were brunt's the most active ones: what connections did before they were replaced is not
    // known, neither of brunt's nor of others'.
    let least = if run.is_plain() {
        seen.segments_received_beyond as f64 / seen.segments_received as f64
    } else {
        0.0
    };
    let beyond = 1.0 - own / received.max(1.0);
    Ok(beyond.max(least).clamp(0.0, 1.0))
}

/// What the server received, and most of it that was brunt's, in units that the two have in common:
/// segments where each holds a request, else bytes.
fn accounts(run: &Run, summary: &Summary, seen: &ServerConnections) -> (f64, f64) {
    let window = &summary.window;
    // The first reading may have been late.
    let part = (seen.interval_ns as f64 / run.window_ns.max(1) as f64).min(1.0);
    let requests = window.sends() as f64 * part;
    // Sent before the first reading, and received after it.
    let under_way = f64::from(summary.live.max) * f64::from(run.depth().max(1));
    let is_secure = run.plan.tls().is_some();
    let opened = window.connections_opened as f64;
    let handshakes = if is_secure { opened } else { 0.0 };
    if run.depth() <= 1 && run.request_bytes() <= ONE_SEGMENT_BYTES {
        let own = requests + under_way + handshakes * HANDSHAKE_SEGMENTS;
        return (seen.segments_received as f64, own);
    }
    let is_framed = is_secure || run.protocol().adds_frames;
    let framing = if is_framed { FRAMING_BYTES } else { 0.0 };
    let own = window.bytes_sent as f64 * part
        + under_way * run.request_bytes() as f64
        + (requests + under_way) * framing
        + handshakes * HANDSHAKE_BYTES;
    (seen.bytes_received as f64, own)
}
