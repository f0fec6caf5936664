//! P1: what happened to connections is what their protocol allows.

use brunt_protocols::{FailureFamily, Greeting, Transport};
use brunt_record::{FailureCounts, FailureKind, counted};

use super::facts::{Facts, sum};
use super::outcome::{Outcome, Problems};

/// P1.
pub(super) fn protocol_fits(facts: &Facts<'_>) -> Outcome {
    let run = facts.run;
    let is_tls = run.first().negotiated.tls.is_some();
    let (protocol, name) = (run.protocol(), run.protocol().name);
    let mut problems = Problems::default();
    for worker in facts.workers() {
        let (number, lifetime) = (facts.number(worker), worker.tallies.lifetime());
        let (full, resumed) = (lifetime.handshakes_full, lifetime.handshakes_resumed);
        let opened = lifetime.connections_opened;
        let due = if is_tls { opened } else { 0 };
        problems.expect(sum([full, resumed]) == u128::from(due), || {
            format!(
                "worker {number}: {full} full and {resumed} resumed handshakes of {opened} \
                 connections opened, {due} due"
            )
        });
        let may_resume = run.plan.tls().is_some_and(|tls| tls.resumption);
        problems.expect(may_resume || resumed == 0, || {
            format!("worker {number}: {resumed} resumed handshakes, though none may be")
        });
        let goaways = lifetime.goaways;
        // A later round of a session begins with connections of the rounds before it.
        let had = opened.saturating_add(worker.connections_kept);
        let goaways_most = if protocol.may_ask_to_replace { had } else { 0 };
        problems.expect(goaways <= goaways_most, || {
            format!("worker {number}: {goaways} GOAWAYs, at most {goaways_most} can be")
        });
        for family in FailureFamily::ALL {
            if protocol.failures.contains(&family) {
                continue;
            }
            foreign(&lifetime.failures, |kind| kind.is_of(family)).for_each(|(label, count)| {
                problems.expect(false, || {
                    format!("worker {number}: {label} {}, over {name}", times(count))
                });
            });
        }
        problems.expect(
            protocol.has_control_frames || lifetime.controls.is_none(),
            || format!("worker {number}: control frames of WebSocket, over {name}"),
        );
        let is_over_quic = protocol.transport == Transport::Datagrams;
        problems.expect(is_over_quic || lifetime.quic.is_none(), || {
            format!("worker {number}: counts of QUIC, over {name}")
        });
        problems.expect(protocol.may_push || lifetime.pushes == 0, || {
            format!("worker {number}: {} pushes, over {name}", lifetime.pushes)
        });
        if !is_tls {
            foreign(&lifetime.failures, FailureKind::is_of_tls).for_each(|(label, count)| {
                problems.expect(false, || {
                    format!("worker {number}: {label} {}, in clear text", times(count))
                });
            });
        }
    }
    let lifetime = &facts.summary.lifetime;
    let handshakes = sum([lifetime.handshakes_full, lifetime.handshakes_resumed]);
    let timed = run.latencies.tls.count();
    problems.expect(handshakes == u128::from(timed), || {
        format!("{timed} times of TLS handshakes in the histogram, {handshakes} handshakes")
    });
    let greetings = run.latencies.greeting.count();
    let greetings_due = match protocol.greeting {
        Greeting::Nothing => 0,
        Greeting::Planned if !run.plan.is_opened_by_message() => 0,
        Greeting::Planned | Greeting::Prescribed(_) => lifetime.connections_opened,
    };
    problems.expect(greetings == greetings_due, || {
        format!("{greetings} times of first exchanges in the histogram, {greetings_due} due")
    });
    let over = match &run.first().negotiated.tls {
        Some(tls) => format!(
            "over {}, {} full and {} resumed handshakes",
            tls.version, lifetime.handshakes_full, lifetime.handshakes_resumed
        ),
        None => "in clear text".to_owned(),
    };
    problems.or_held(format!(
        "{} {over}; {} opened, {} asked to be replaced",
        name,
        counted(lifetime.connections_opened, "connection", "connections"),
        lifetime.goaways
    ))
}

/// How often something happened.
fn times(count: u64) -> String {
    counted(count, "time", "times")
}

/// The failures among `counts` of a kind that only another protocol has, in words.
fn foreign(
    counts: &FailureCounts,
    is_foreign: impl Fn(FailureKind) -> bool,
) -> impl Iterator<Item = (&'static str, u64)> {
    counts
        .iter()
        .filter(move |&(kind, _)| is_foreign(kind))
        .map(|(kind, count)| (kind.label(), count))
}
