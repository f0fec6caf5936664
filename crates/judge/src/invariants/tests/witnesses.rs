//! The invariants that set a run beside what others counted: link and server.

use brunt_record::{NetworkEvidence, Route, ServerConnections, ServerCount};

use super::*;
use crate::RunFigures;

/// Payload received by the sample run in its window of 2 s, bytes per second, to 1 %: some 8,000
/// replies per second of 220 bytes.
const RECEIVED_PER_S: f64 = 1_760_000.0;

/// The run through a network of this kind.
fn through(run: &mut Run, route: Route) {
    run.agents[0].evidence.interval_ns = WINDOW.length_ns();
    run.agents[0].evidence.network = Some(NetworkEvidence {
        route,
        tcp: None,
        conntrack: None,
        time_wait: None,
    });
}

/// The run through an interface whose link carries `times` the payload received; it counted
/// `counted_times` of it in either direction.
fn through_link(run: &mut Run, times: f64, counted_times: f64) {
    let counted_bytes = (RECEIVED_PER_S * 2.0 * counted_times) as u64;
    through(
        run,
        Route::Interface {
            name: "eth0".to_owned(),
            link_bits_per_s: Some((RECEIVED_PER_S * 8.0 * times) as u64),
            was_given: false,
            received_bytes: counted_bytes,
            sent_bytes: counted_bytes,
            dropped_packets: 0,
        },
    );
}

#[test]
fn payload_fits_the_link() {
    verify([
        broken("I6", "more received than the link carries", |run| {
            through_link(run, 0.9, 0.5);
        }),
        broken("I6", "the same, of a link that counted nothing", |run| {
            through_link(run, 0.9, 0.0);
        }),
        broken("I6", "the same, with no reading of the interface", |run| {
            through_link(run, 0.9, 2.0);
            run.agents[0].evidence.interval_ns = 0;
        }),
        broken("I6", "more sent than the link carries", |run| {
            through_link(run, 1.5, 1.5);
            first(run).tallies.measure.bytes_sent += 6_000_000;
        }),
        flagged("I6", "a speed that the interface itself exceeds", |run| {
            through_link(run, 0.5, 1.1);
        }),
        held("I6", "a link that is nearly full", |run| {
            through_link(run, 1.03, 1.0);
        }),
        held(
            "I6",
            "a request per connection that is not yet sent",
            |run| {
                through_link(run, 1.1, 1.1);
                run.agents[0].negotiated.request_bytes = 1_000_000;
                first(run).tallies.measure.bytes_sent += 8_000_000;
            },
        ),
        not_applicable("I6", "a link of unknown speed", |run| {
            through_link(run, 0.5, 0.5);
            if let Some(NetworkEvidence {
                route: Route::Interface {
                    link_bits_per_s, ..
                },
                ..
            }) = &mut run.agents[0].evidence.network
            {
                *link_bits_per_s = None;
            }
        }),
        not_applicable("I6", "a Unix socket", |run| through(run, Route::UnixSocket)),
        not_applicable("I6", "a way that is not known", |run| {
            through(run, Route::Unknown);
        }),
        not_applicable("I6", "simulated", |run| {
            through_link(run, 0.5, 0.5);
            run.agents[0].backend = Backend::Sim;
        }),
        not_applicable("I6", "interrupted in warm-up", |run| {
            interrupted_in_warmup(run);
            through_link(run, 0.5, 0.5);
        }),
    ]);
}

/// The run whose server counted `more` than what was sent, or fewer than what was answered.
fn counted(run: &mut Run, more: i64) {
    let lifetime = run.summary().lifetime;
    let ours = if more < 0 {
        lifetime.replies.total()
    } else {
        lifetime.requests_sent
    };
    run.agents[0].evidence.server_count = Some(ServerCount {
        url: "http://127.0.0.1:8080/counters".to_owned(),
        path: "requests".to_owned(),
        before: 1_000,
        after: 1_000_u64.saturating_add_signed(more) + ours,
        own_reads: 2,
    });
}

#[test]
fn the_server_counted_the_same() {
    verify([
        held("I8", "as many as were sent", |run| counted(run, 0)),
        held("I8", "with the reading itself", |run| counted(run, 2)),
        held("I8", "without those that failed", |run| {
            counted(run, 0);
            let failed = run.summary().lifetime.requests_sent;
            let answered = run.summary().lifetime.replies.total();
            assert!(failed > answered, "the sample has failures");
            let count = run.agents[0]
                .evidence
                .server_count
                .as_mut()
                .expect("it was read");
            count.after = count.before + answered;
        }),
        flagged("I8", "one fewer than were answered", |run| counted(run, -1)),
        flagged("I8", "as many fewer as can be in flight", |run| {
            let places = i64::from(run.plan.connections.get() * run.agents[0].negotiated.depth);
            counted(run, -places);
        }),
        broken("I8", "fewer than that", |run| {
            let places = i64::from(run.plan.connections.get() * run.agents[0].negotiated.depth);
            counted(run, -places - 1);
        }),
        flagged("I8", "one of somebody else", |run| counted(run, 3)),
        flagged("I8", "as many of somebody else, and the reading", |run| {
            let sent = run.summary().lifetime.requests_sent;
            counted(run, 2 + sent as i64);
        }),
        broken("I8", "more of somebody else", |run| {
            let sent = run.summary().lifetime.requests_sent;
            counted(run, 3 + sent as i64);
        }),
        flagged("I8", "more of somebody whom the kernel saw", |run| {
            let sent = run.summary().lifetime.requests_sent;
            counted(run, 3 + sent as i64);
            run.agents[0].evidence.server_connections = Some(ServerConnections {
                connections: u64::from(run.summary().live.max) + 1,
                segments_received_beyond: 1,
                ..ServerConnections::default()
            });
        }),
        broken("I8", "a counter that went back", |run| {
            counted(run, 0);
            run.agents[0]
                .evidence
                .server_count
                .as_mut()
                .expect("it was read")
                .after = 999;
        }),
        not_applicable("I8", "not read", |_| {}),
    ]);
}

#[test]
fn a_few_requests_of_others_are_excused_in_a_short_run() {
    for (others, status) in [
        (10, InvariantStatus::Flagged),
        (11, InvariantStatus::Broken),
    ] {
        let mut run = run();
        interrupted_in_warmup(&mut run);
        counted(&mut run, 2 + others);
        let findings = check(&run);
        let finding = findings.iter().find(|finding| finding.id == "I8");
        assert_eq!(finding.expect("it is checked").status, status);
    }
}
