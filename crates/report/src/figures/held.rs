//! Figures of connections that were only kept open.

use brunt_judge::{Held, Judged};

use super::absent::Absent;

/// The figures of connections that were only kept open, with the reasons for what is null. Absent
/// in a run of requests.
pub(super) fn held(judged: &Judged<'_>, absent: &mut Absent) -> Option<Held> {
    let held = Held::of(judged.run, &judged.summary)?;
    if held.client_bytes_per_connection.is_none() {
        let reason = "not read, or too few connections to tell";
        absent.note::<()>("held.client_bytes_per_connection", reason);
    }
    if held.set_up_ns.is_none() {
        absent.note::<()>("held.set_up_ns", "set-up did not end");
    }
    Some(held)
}
