//! How requests and connections fail.

use super::world::{Behaviour, Faults, World};
use super::{Ended, Event, StreamFailure, bytes_of, statuses, template};
use crate::http3::error::{ConnectionError, ErrorCode};
use crate::quic::{self, Lost};

fn ready(behaviour: Behaviour, depth: u32) -> World {
    let mut world = World::new(depth, Faults::NONE, behaviour);
    world.run_until(|world| world.client.is_ready());
    world
}

#[test]
fn a_stream_may_be_reset_and_the_connection_goes_on() {
    for (path, expected) in [
        ("/reset-258", StreamFailure::Reset(ErrorCode::InternalError)),
        ("/reset-267", StreamFailure::NotProcessed),
        ("/reset-77", StreamFailure::Reset(ErrorCode::Other(77))),
        ("/empty", StreamFailure::Incomplete),
    ] {
        let mut world = ready(Behaviour::default(), 2);
        world.client.request(&template(path, 0));
        world.client.request(&template("/10", 0));
        world.run_until(|world| world.events.len() == 3);
        let failed = world.events.iter().find_map(|event| match event {
            Event::Failed { why, .. } => Some(*why),
            _ => None,
        });
        assert_eq!(failed, Some(expected), "{path}");
        assert_eq!(statuses(&world.events), [200], "{path}");
        world.settle();
        let bytes = world.network.delivered_to_client_bytes;
        let rest_bytes = world.client.rest_bytes();
        let accounted = bytes_of(&world.events) + world.overhead_bytes + rest_bytes;
        assert_eq!(accounted, bytes, "{path}");
    }
}

#[test]
fn go_away_refuses_what_it_names_and_what_is_to_come() {
    let mut world = ready(Behaviour::default(), 4);
    for path in ["/silent", "/go-away-1", "/silent", "/silent"] {
        world.client.request(&template(path, 0));
    }
    world.run_until(|world| world.events.len() == 5);
    assert_eq!(world.events[1], Event::GoAway { code: None });
    let refused = |event: &Event| {
        matches!(
            event,
            Event::Failed {
                why: StreamFailure::NotProcessed,
                ..
            }
        )
    };
    assert!(world.events[2..].iter().all(refused), "{:?}", world.events);
    assert_eq!(
        (world.client.in_flight(), world.client.is_spent()),
        (1, true)
    );
}

#[test]
fn a_server_that_goes_away_gracefully_does_so_once() {
    let mut world = ready(Behaviour::default(), 4);
    for path in ["/go-away-1000", "/10", "/silent"] {
        world.client.request(&template(path, 0));
    }
    world.run_until(|world| world.events.len() == 3);
    world.client.request(&template("/go-away-2", 0));
    world.run_until(|world| world.client.in_flight() == 1);
    let is_told = |event: &&Event| matches!(event, Event::GoAway { .. });
    assert_eq!(world.events.iter().filter(is_told).count(), 1);
    assert_eq!(statuses(&world.events), [200]);
}

#[test]
fn a_server_that_breaks_a_rule_is_told_which() {
    let mut world = ready(Behaviour::default(), 2);
    world.client.request(&template("/data-first", 0));
    world.client.request(&template("/silent", 0));
    let ended = world.run_until_ended();
    assert_eq!(ended, Ended::Broken(ConnectionError::FrameUnexpected));
    let mut abandoned = Vec::new();
    while let Some((place, _)) = world.client.abandon() {
        abandoned.push(place);
    }
    assert_eq!(abandoned, [0, 1]);
    world.settle();
    assert_eq!(world.server.closed_with, Some(0x105));
}

#[test]
fn a_server_may_close_by_a_code() {
    let mut world = ready(Behaviour::default(), 1);
    world.client.request(&template("/close-258", 0));
    let ended = world.run_until_ended();
    let Ended::Lost(Lost::ClosedAbove { code, reason }) = ended else {
        panic!("{ended:?}");
    };
    assert_eq!((code, reason.as_str()), (0x102, "as asked"));
}

#[test]
fn this_side_closes_by_a_code() {
    let mut world = ready(Behaviour::default(), 1);
    world.client.close(ErrorCode::NoError, world.now_ns);
    world.settle();
    assert_eq!(world.server.closed_with, Some(0x100));
}

#[test]
fn a_server_may_let_a_connection_idle_for_so_long() {
    let behaviour = Behaviour {
        idle_ms: Some(500),
        ..Behaviour::default()
    };
    let mut world = ready(behaviour, 1);
    assert_eq!(world.run_until_ended(), Ended::Lost(Lost::Idle));
}

#[test]
fn a_handshake_fails_for_want_of_trust_or_of_a_protocol() {
    let untrusted = Behaviour {
        is_trusted: false,
        ..Behaviour::default()
    };
    let mut world = World::new(1, Faults::NONE, untrusted);
    let ended = world.run_until_ended();
    let Ended::Lost(Lost::Broken { code, .. }) = &ended else {
        panic!("{ended:?}");
    };
    assert!(matches!(code, quic::ErrorCode::Tls(42..=48)), "{code}");
    assert!(!ended.is_refusal());

    let other = Behaviour {
        alpn: b"hq-interop",
        ..Behaviour::default()
    };
    let mut world = World::new(1, Faults::NONE, other);
    let ended = world.run_until_ended();
    let Ended::Lost(Lost::Closed { code, .. }) = &ended else {
        panic!("{ended:?}");
    };
    assert_eq!(*code, quic::ErrorCode::Tls(120));
    assert!(!world.client.is_ready());
}

#[test]
fn a_server_may_refuse_a_handshake() {
    let full = Behaviour {
        connections_max: 0,
        ..Behaviour::default()
    };
    let mut world = World::new(1, Faults::NONE, full);
    let ended = world.run_until_ended();
    let Ended::Lost(Lost::Closed { code, .. }) = &ended else {
        panic!("{ended:?}");
    };
    assert_eq!(*code, quic::ErrorCode::ConnectionRefused);
    assert!(ended.is_refusal());
    let parameters = Ended::Lost(Lost::Closed {
        code: quic::ErrorCode::TransportParameterError,
        reason: String::new(),
    });
    assert!(parameters.is_refusal());
    assert!(!Ended::Lost(Lost::Idle).is_refusal());
}

#[test]
fn what_became_of_packets_is_known() {
    let mut world = ready(Behaviour::default(), 1);
    world.settle();
    let figures = world.client.path_figures();
    assert!(figures.packets_sent >= 3, "{figures:?}");
    assert_eq!((figures.packets_lost, figures.bytes_lost), (0, 0));
    assert!(figures.round_trip_ns >= 2_000_000, "{figures:?}");
}
