//! The client against a server on quinn-proto, over a network in virtual time.

mod world;

use super::*;
use crate::fields::request::Request;
use crate::http3::Template;
use crate::quic::{self, Lost};
use crate::test_support::PLAIN;
use world::{Behaviour, MS, World};

/// A request for `path`, with a body of so many bytes.
fn template(path: &str, body_bytes: usize) -> WorkerTemplate {
    let template = Template::new(&Request {
        method: if body_bytes > 0 { "POST" } else { "GET" },
        scheme: "https",
        path,
        body: &vec![b'x'; body_bytes],
        ..PLAIN
    });
    template.unwrap().of_worker()
}

/// Replies so far: place, status, bytes of the body without its frame.
fn statuses(events: &[Event]) -> Vec<u16> {
    let statuses = events.iter().filter_map(|event| match event {
        Event::Reply { reply, .. } => Some(reply.status),
        _ => None,
    });
    statuses.collect()
}

/// What the events say of the bytes that came.
fn bytes_of(events: &[Event]) -> u64 {
    let bytes = events.iter().map(|event| match event {
        Event::Reply { reply, .. } => reply.head_bytes + reply.body_bytes,
        Event::Failed {
            discarded_bytes, ..
        } => *discarded_bytes,
        Event::Ready | Event::GoAway { .. } => 0,
    });
    bytes.sum()
}

/// Every byte that came belongs to something, when nothing is on its way. Gives those that wait.
fn expect_accounted(world: &mut World) -> u64 {
    world.settle();
    let rest_bytes = world.client.rest_bytes();
    let accounted = bytes_of(&world.events) + world.overhead_bytes + rest_bytes;
    assert_eq!(accounted, world.network.delivered_to_client_bytes);
    rest_bytes
}

#[test]
fn requests_are_answered_and_every_byte_has_a_place() {
    let mut world = ready(Behaviour::default(), 2);
    assert_eq!(world.events, [Event::Ready]);
    assert_eq!((world.client.depth(), world.client.in_flight()), (2, 0));
    let places = [
        world.client.request(&template("/1000", 0)),
        world.client.request(&template("/0", 5_000)),
    ];
    assert_eq!((places, world.client.in_flight()), ([0, 1], 2));
    world.run_until(|world| world.events.len() == 3);
    let Event::Reply { place: 0, reply } = world.events[1] else {
        panic!("{:?}", world.events);
    };
    // Types and lengths of two frames, and the field section.
    assert_eq!((reply.status, reply.body_bytes), (200, 3 + 1_000));
    assert!(reply.head_bytes < 20 && reply.first_byte_ns > 3 * MS);
    assert_eq!(statuses(&world.events), [200, 200]);
    assert_eq!(world.server.bodies, [5_000]);
    assert!(world.client.has_settings());
    assert_eq!(expect_accounted(&mut world), 0, "nothing waits");
    // The first flight of a client has 1,200 bytes, that of a server as many at least.
    assert!(world.overhead_bytes > 1_200);
}

/// Sends `requests` requests, as many at once as may be, until all are answered.
fn load(world: &mut World, requests: u64, template: &WorkerTemplate) {
    let mut sent = 0;
    while (world.events.len() as u64) < requests + 1 {
        while sent < requests && world.client.in_flight() < world.client.depth() {
            world.client.request(template);
            sent += 1;
        }
        world.step();
    }
}

#[test]
fn a_body_waits_for_the_windows_of_the_server() {
    let behaviour = Behaviour {
        window_bytes: 20_000,
        ..Behaviour::default()
    };
    let mut world = ready(behaviour, 1);
    world.client.request(&template("/0", 1 << 20));
    world.run_until(|world| world.events.len() == 2);
    assert_eq!(world.server.bodies, [1 << 20]);
    assert_eq!(statuses(&world.events), [200]);
}

#[test]
fn a_server_allows_so_many_streams_and_more_when_some_have_ended() {
    let behaviour = Behaviour {
        streams_max: 3,
        ..Behaviour::default()
    };
    let mut world = ready(behaviour, 8);
    assert_eq!(world.client.depth(), 3);
    load(&mut world, 40, &template("/10", 0));
    assert_eq!(statuses(&world.events), [200; 40]);
    world.settle();
    assert_eq!((world.client.depth(), world.client.is_spent()), (3, false));
}

#[test]
fn a_cancelled_request_leaves_the_others_alone() {
    let mut world = ready(Behaviour::default(), 2);
    let silent = world.client.request(&template("/silent", 0));
    let other = world.client.request(&template("/100", 0));
    world.run_until(|world| world.events.len() == 2);
    assert!(matches!(world.events[1], Event::Reply { place, .. } if place == other));
    assert_eq!(world.client.cancel(silent), 0);
    assert_eq!(world.client.in_flight(), 0);
    world.settle();
    // H3_REQUEST_CANCELLED.
    assert_eq!(world.server.stopped, [0x10c]);
    let again = world.client.request(&template("/100", 0));
    world.run_until(|world| world.events.len() == 3);
    assert!(matches!(world.events[2], Event::Reply { place, .. } if place == again));
}

fn ready(behaviour: Behaviour, depth: u32) -> World {
    let mut world = World::new(depth, behaviour);
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
        expect_accounted(&mut world);
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
    for event in &world.events[2..] {
        let Event::Failed { why, .. } = event else {
            panic!("{event:?}");
        };
        assert_eq!(*why, StreamFailure::NotProcessed);
    }
    let found = (world.client.in_flight(), world.client.is_spent());
    assert_eq!(found, (1, true));
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
    let is_go_away = |event: &&Event| matches!(event, Event::GoAway { .. });
    assert_eq!(world.events.iter().filter(is_go_away).count(), 1);
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
    let mut world = World::new(1, untrusted);
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
    let mut world = World::new(1, other);
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
    let mut world = World::new(1, full);
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

#[test]
fn requests_are_found_by_their_streams_however_far_apart() {
    let template = WorkerTemplate {
        wire: Bytes::from_static(b"x"),
        is_head: false,
        is_call: false,
    };
    let mut places = Places::new(3);
    assert_eq!(places.first_in_flight(), None);
    // All of them share a hint.
    let streams = [5, 13, 5 + 8 * 1_000];
    let taken = streams.map(|stream| places.take(stream, &template));
    assert_eq!((taken, places.in_flight()), ([0, 1, 2], 3));
    assert_eq!(places.unhinted, 2);
    for (stream, at) in streams.into_iter().zip(taken) {
        assert_eq!(places.of_stream(stream), Some(at));
    }
    let found = (places.of_stream(21), places.first_from(6));
    assert_eq!(found, (None, Some(1)));
    places.note_gap(1, 100);
    places.note_gap(1, 250);
    assert_eq!(places.bytes_behind_gap(1, 300), 200);
    places.note_progress(1, 290);
    assert_eq!(places.bytes_behind_gap(1, 300), 10);
    assert_eq!(places.bytes_behind_gap(0, 300), 0);
    assert!(places.have_gaps());
    let (bytes, sending) = places.free(1);
    assert_eq!((bytes, sending.stream, sending.is_sent), (0, 13, false));
    assert!(!places.have_gaps());
    assert_eq!((places.of_stream(13), places.in_flight()), (None, 2));
    assert_eq!(places.unhinted, 1);
    assert_eq!(places.take(29, &template), 1);
    // The hint is of the latest one alone.
    assert_eq!(places.unhinted, 2);
    let found = [5, 29, 5 + 8 * 1_000].map(|stream| places.of_stream(stream));
    assert_eq!(found, [Some(0), Some(1), Some(2)]);
    places.free(2);
    let found = (places.unhinted, places.of_stream(5 + 8 * 1_000));
    assert_eq!(found, (1, None));
}
