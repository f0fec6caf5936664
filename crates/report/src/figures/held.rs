//! Figures of connections that were only kept open.

use brunt_judge::{Held, Judged};
use serde::Serialize;

use super::absent::Absent;

/// What became of connections that were only kept open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldFigures {
    /// Connections that were to be held.
    pub asked: u64,
    /// Of them, open at the end of the window.
    pub open_at_end: u64,
    /// Fewest open at any instant of the window.
    pub open_min: u64,
    /// Most open at any instant of the window.
    pub open_max: u64,
    /// Opened in all, those in place of lost ones included.
    pub opened: u64,
    /// Attempts to open one that failed.
    pub attempts_failed: u64,
    /// Open ones that the server closed or reset.
    pub closed_by_server: u64,
    /// Open ones that brunt gave up, for what the server sent breaks the protocol.
    pub given_up: u64,
    /// Length of set-up, nanoseconds; null where it is not known.
    pub set_up_ns: Option<u64>,
    /// Memory of brunt's process beyond what it had before them, for each, bytes; null where it
    /// was not read, and with fewer than 1,000 of them.
    pub client_bytes_per_connection: Option<u64>,
}

impl HeldFigures {
    /// Absent in a run of requests.
    pub(super) fn new(judged: &Judged<'_>, absent: &mut Absent) -> Option<Self> {
        let held = Held::of(judged.run, &judged.summary)?;
        if held.client_bytes_per_connection.is_none() {
            let reason = "not read, or too few connections to tell";
            absent.note::<()>("held.client_bytes_per_connection", reason);
        }
        if held.set_up_ns.is_none() {
            absent.note::<()>("held.set_up_ns", "set-up did not end");
        }
        Some(Self {
            asked: held.asked,
            open_at_end: held.open_at_end,
            open_min: held.open_min,
            open_max: held.open_max,
            opened: held.opened,
            attempts_failed: held.attempts_failed,
            closed_by_server: held.closed_by_server,
            given_up: held.given_up,
            set_up_ns: held.set_up_ns,
            client_bytes_per_connection: held.client_bytes_per_connection,
        })
    }
}
