//! The signal of other clients: healthy, at a warning, failing and unknown.

use brunt_record::{Run, ServerConnections};

use super::bend::*;
use super::sample::{cases_of, closed};
use super::signals::{FAIL, HEALTHY, UNKNOWN, WARN, bent, remote_closed, verify};
use crate::verdict::signals::read_all;

const ID: &str = "other_clients";

/// What the server received of all.
fn seen(run: &mut Run) -> &mut ServerConnections {
    let seen = run.agents[0].evidence.server_connections.as_mut();
    seen.expect("counted")
}

#[test]
fn by_the_connections_at_the_server() {
    verify([
        bent(ID, HEALTHY, "nobody else loads", |_| ()),
        // A browser.
        bent(ID, HEALTHY, "other clients send 0.4 %", |run| {
            others(run, 6, 60)
        }),
        bent(ID, HEALTHY, "nobody else loads", |run| others(run, 6, 0)),
        bent(ID, WARN, "1.8 % of what the server receives", |run| {
            others(run, 1, 300)
        }),
        bent(
            ID,
            FAIL,
            "other clients send 48 % of what the server receives, and use some 0.19 of its 0.40 \
             CPUs",
            |run| others(run, 8, 15_000),
        ),
        // Few that send much: brunt's own account tells.
        bent(ID, FAIL, "other clients send 48 %", |run| {
            others(run, 1, 15_000);
            seen(run).segments_received_beyond = 1;
        }),
        // Connections that were replaced took their account with them: the rest tells.
        bent(ID, FAIL, "other clients send 45 %", |run| {
            *seen(run) = ServerConnections {
                connections: 16,
                segments_received: 200,
                bytes_received: 16_000,
                segments_received_beyond: 90,
                ..*seen(run)
            };
        }),
    ]);
}

#[test]
fn by_bytes_where_a_segment_is_no_request() {
    verify([
        bent(ID, HEALTHY, "nobody else", |run| streams(run, 10)),
        bent(ID, HEALTHY, "nobody else", |run| {
            streams(run, 10);
            // Frames about the connection.
            others(run, 0, 2_000);
        }),
        bent(ID, FAIL, "other clients send 25 %", |run| {
            streams(run, 10);
            others(run, 8, 16_000);
            seen(run).segments_received_beyond = 0;
        }),
    ]);
}

#[test]
fn by_the_servers_own_count() {
    verify([
        bent(ID, HEALTHY, "nobody else", |run| counted_beyond(run, 0)),
        bent(
            ID,
            FAIL,
            "% of the requests that the server counts",
            |run| counted_beyond(run, 9_000),
        ),
        // Where one of the two misses them.
        bent(ID, FAIL, "what the server receives", |run| {
            counted_beyond(run, 0);
            others(run, 8, 15_000);
        }),
        bent(ID, FAIL, "the server counts", |run| {
            counted_beyond(run, 9_000);
            run.agents[0].evidence.server_connections = None;
        }),
        bent(ID, UNKNOWN, "not counted", |run| {
            run.agents[0].evidence.server_connections = None;
        }),
    ]);
}

#[test]
fn what_cannot_be_told() {
    verify([
        bent(ID, UNKNOWN, "not counted", |_| ()).on(remote_closed),
        bent(ID, UNKNOWN, "another namespace", |run| {
            let evidence = &mut run.agents[0].evidence;
            evidence.server_connections = None;
            let reason = "another namespace".to_owned();
            evidence
                .missing
                .insert("server_connections".to_owned(), reason);
        }),
        bent(ID, UNKNOWN, "too little", |run| {
            seen(run).segments_received = 19
        }),
        bent(ID, UNKNOWN, "too little", |run| seen(run).interval_ns = 0),
        bent(ID, UNKNOWN, "come and go", |run| {
            seen(run).segments_received = 100;
        }),
    ]);
}

#[test]
fn agents_of_one_run_are_no_others() {
    let mut run = closed();
    others(&mut run, 8, 16_000);
    run.agents.push(run.agents[0].clone());
    let signals = read_all(&cases_of(&run));
    let found = signals.iter().find(|signal| signal.id.to_string() == ID);
    assert_eq!(found.map(|signal| signal.grade), Some(HEALTHY), "{found:?}");
}
