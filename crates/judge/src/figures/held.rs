//! Connections that are only kept open: how many were, and how the others ended.

use brunt_record::{FailureKind, FailureScope, Run};

use crate::{Figure, Summary};

/// Fewer connections than this tell nothing of what one takes of brunt's memory.
const TOLD_LEAST: u64 = 1_000;
/// Why it is not told.
const UNREAD: &str = "not read, or too few connections to tell";

/// The figures of a run whose connections are only kept open.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Held {
    /// Connections that were to be held.
    pub asked: u64,
    /// Connections open at the end of the window.
    pub open_at_end: u64,
    /// Fewest at any instant of the window.
    pub open_min: u64,
    /// Most at any instant of the window.
    pub open_max: u64,
    /// Connections opened in all, those in place of lost ones included.
    pub opened: u64,
    /// Attempts to open one that failed.
    pub attempts_failed: u64,
    /// Open connections that the server closed or reset.
    pub closed_by_server: u64,
    /// Open connections that brunt gave up, for what the server sent breaks the protocol.
    pub given_up: u64,
    /// Time from the start of set-up until as many connections were open as could be, nanoseconds;
    /// of several agents that of the slowest one. Null where set-up did not end.
    pub set_up_ns: Figure<u64>,
    /// Resident memory of brunt's process at its most, beyond what it had before the connections,
    /// for each of them. Null where it was not read, and with fewer than 1,000 connections.
    pub client_bytes_per_connection: Figure<u64>,
}

impl Held {
    /// The figures of a run and its summary; absent where connections had something to carry.
    pub fn of(run: &Run, summary: &Summary) -> Option<Self> {
        if !run.is_held() {
            return None;
        }
        let lifetime = &summary.lifetime;
        let lost = Lost::of(summary);
        let asked = summary.live.asked.into();
        let set_up = run.agents.iter().filter_map(|agent| {
            let ready = agent.workers.iter().filter_map(|it| it.edges.ready.get());
            let from_ns = agent.clock.edges.setup_start.get()?;
            Some(ready.max()?.saturating_sub(from_ns).max(0).cast_unsigned())
        });
        let beyond = run.agents.iter().map(|agent| {
            let before = agent.host.resident_before_bytes?;
            let peak = Some(agent.host.peak_resident_bytes).filter(|&bytes| bytes > 0)?;
            Some(peak.saturating_sub(before))
        });
        let beyond = beyond.sum::<Option<u64>>().filter(|_| asked >= TOLD_LEAST);
        let each = beyond.map(|bytes| bytes / asked);
        Some(Self {
            asked,
            open_at_end: summary.live.at_end.unwrap_or(0).into(),
            open_min: summary.live.min.into(),
            open_max: summary.live.max.into(),
            opened: lifetime.connections_opened,
            attempts_failed: lifetime.failures.total(FailureScope::Connect),
            closed_by_server: lost.closed,
            given_up: lost.given_up,
            set_up_ns: Figure::of(set_up.max(), "set-up did not end"),
            client_bytes_per_connection: Figure::of(each, UNREAD),
        })
    }

    /// How many of those that were to be held are missing at the end.
    pub fn missing(&self) -> u64 {
        self.asked.saturating_sub(self.open_at_end)
    }
}

/// Connections that were open, and are no more.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    pub(crate) closed: u64,
    pub(crate) given_up: u64,
}

impl Lost {
    pub(crate) fn of(summary: &Summary) -> Self {
        let lifetime = &summary.lifetime;
        let reset = lifetime.failures.get(FailureKind::IdleReset);
        Self {
            closed: lifetime.connections_closed_idle.saturating_add(reset),
            given_up: lifetime.failures.get(FailureKind::UnexpectedBytes),
        }
    }
}
