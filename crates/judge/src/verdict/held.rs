//! The rules of runs whose connections were only kept open.

use brunt_record::{FailureKind, FailureScope};

use super::SignalId as Id;
use super::graded::{Decision, GradedSignals};
use crate::Held;
use crate::units::{count, counted};

/// The verdict where this machine had no room for all connections that were to be held.
pub(super) fn no_room(graded: &GradedSignals<'_>) -> Option<Decision> {
    let held = short_of(graded)?;
    if !graded.fails(Id::ClientLimits) {
        return None;
    }
    let because = format!(
        "{}: {}",
        missing_words(&held),
        graded.detail(Id::ClientLimits)
    );
    let advice = "more ports: --source-address, net.ipv4.ip_local_port_range; more descriptors: \
                  ulimit -n, or --backend uring";
    let advice = vec![advice.to_owned()];
    Some(graded.decision(because, [Id::ClientLimits], advice))
}

/// The server, or the way to it, did not take all of them, or did not keep them.
pub(super) fn not_kept(graded: &GradedSignals<'_>) -> Option<Decision> {
    let held = short_of(graded)?;
    let kinds = graded.facts.summary.lifetime.failures.iter();
    let attempts = kinds.filter(|(kind, _)| kind.scope() == FailureScope::Connect);
    let most = attempts.max_by_key(|&(_, count)| count);
    let mut because = missing_words(&held);
    if let Some((kind, times)) = most {
        let attempts = counted(times, "attempt to connect", "attempts to connect");
        because.push_str(&format!("; {attempts} failed ({})", kind.label()));
    }
    because.push_str(&closed_words(&held));
    let advice = match most.map(|(kind, _)| kind) {
        Some(FailureKind::ConnectTimedOut) => {
            "a longer accept queue (listen backlog, net.core.somaxconn), or slower: \
             --connection-rate"
        }
        _ => "raise the server's limits of connections, descriptors and idle time",
    };
    let decisive = [Id::AcceptQueue, Id::ServerCpu];
    Some(graded.decision(because, decisive, vec![advice.to_owned()]))
}

/// All were there at the end: their number is what was asked for.
pub(super) fn all_held(graded: &GradedSignals<'_>) -> Option<Decision> {
    let facts = graded.facts;
    let held = Held::of(facts.run, &facts.summary)?;
    let all = match held.asked {
        1 => "the connection was".to_owned(),
        asked => format!("all {} connections were", count(asked)),
    };
    let closed = closed_words(&held);
    let because =
        format!("{all} held to the end; how many more the server takes was not measured{closed}");
    let advice = format!("for the limit: -c {}", held.asked.saturating_mul(2));
    let decisive = [Id::ServerCpu, Id::WorkerIdle];
    Some(graded.decision(because, decisive, vec![advice]))
}

/// What was held, where that was not all.
fn short_of(graded: &GradedSignals<'_>) -> Option<Held> {
    let facts = graded.facts;
    Held::of(facts.run, &facts.summary).filter(|held| held.missing() > 0)
}

fn missing_words(held: &Held) -> String {
    format!(
        "{} of {} missing at the end",
        count(held.missing()),
        counted(held.asked, "connection was", "connections were")
    )
}

fn closed_words(held: &Held) -> String {
    match held.closed_by_server {
        0 => String::new(),
        closed => format!("; the server closed {}", count(closed)),
    }
}
