//! P1: what happened to connections is what their protocol allows.

use brunt_load::protocol::{FailureFamily, Transport};

use super::outcome::{Checked, Problems};
use super::sums;
use crate::facts::Facts;
use crate::units::plural;

/// P1.
pub(super) fn protocol_fits(facts: &Facts<'_>) -> Checked {
    let run = facts.run;
    let tls = &run.first().negotiated.tls;
    let (protocol, name) = (run.protocol(), run.protocol().name);
    let may_resume = run.plan.tls().is_some_and(|tls| tls.resumption);
    let is_over_quic = protocol.transport == Transport::Datagrams;
    let mut problems = Problems::default();
    sums::check("P1", facts, &mut problems);
    for worker in facts.workers() {
        let (number, lifetime) = (facts.number(worker), worker.tallies.lifetime());
        let resumed = lifetime.handshakes_resumed;
        problems.expect(may_resume || resumed == 0, || {
            format!("worker {number}: {resumed} resumed handshakes, though none may be")
        });
        let goaways = lifetime.goaways;
        // A later round of a session begins with connections of the rounds before it.
        let had = lifetime.connections_opened;
        let had = had.saturating_add(worker.connections_kept);
        let goaways_most = if protocol.may_ask_to_replace { had } else { 0 };
        problems.expect(goaways <= goaways_most, || {
            format!("worker {number}: {goaways} GOAWAYs, at most {goaways_most} can be")
        });
        for (kind, count) in lifetime.failures.iter() {
            let (label, times) = (kind.label(), plural(count, "time"));
            let mut foreign = FailureFamily::ALL.into_iter();
            let is_foreign = |family| !protocol.failures.contains(&family) && kind.is_of(family);
            problems.expect(!foreign.any(is_foreign), || {
                format!("worker {number}: {label} {times}, over {name}")
            });
            problems.expect(tls.is_some() || !kind.is_of_tls(), || {
                format!("worker {number}: {label} {times}, in clear text")
            });
        }
        let has_controls = !lifetime.controls.is_none();
        problems.expect(protocol.has_control_frames || !has_controls, || {
            format!("worker {number}: control frames of WebSocket, over {name}")
        });
        problems.expect(is_over_quic || lifetime.quic.is_none(), || {
            format!("worker {number}: counts of QUIC, over {name}")
        });
        let pushes = lifetime.pushes;
        problems.expect(protocol.may_push || pushes == 0, || {
            format!("worker {number}: {pushes} pushes, over {name}")
        });
    }
    let lifetime = &facts.summary.lifetime;
    let over = match tls {
        Some(tls) => format!(
            "over {}, {} full and {} resumed handshakes",
            tls.version, lifetime.handshakes_full, lifetime.handshakes_resumed
        ),
        None => "in clear text".to_owned(),
    };
    let opened = plural(lifetime.connections_opened, "connection");
    let goaways = lifetime.goaways;
    problems.or_held(format!(
        "{name} {over}; {opened} opened, {goaways} asked to be replaced"
    ))
}
