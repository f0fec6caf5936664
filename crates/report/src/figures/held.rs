//! Figures of connections that were only kept open.

use brunt_judge::{Held, Judged};

use super::absent::Absent;

/// The figures of connections that were only kept open, with the reasons for what is null. Absent
/// in a run of requests.
pub(super) fn held(judged: &Judged<'_>, absent: &mut Absent) -> Option<Held> {
    let held = Held::of(judged.run, &judged.summary)?;
    let bytes = held.client_bytes_per_connection.as_ref();
    let reason = "not read, or too few connections to tell";
    absent.known("held.client_bytes_per_connection", bytes, reason);
    absent.known(
        "held.set_up_ns",
        held.set_up_ns.as_ref(),
        "set-up did not end",
    );
    Some(held)
}
