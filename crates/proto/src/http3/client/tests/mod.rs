//! The client against a server on quinn-proto, over a network in virtual time.

mod ends;
mod world;

use super::super::template::Template;
use super::*;
use crate::fields::request::Request;
use world::{Behaviour, Faults, MS, World};

/// A request for `path`, with a body of so many bytes.
fn template(path: &str, body_bytes: usize) -> WorkerTemplate {
    let template = Template::new(&Request {
        method: if body_bytes > 0 { "POST" } else { "GET" },
        scheme: "https",
        authority: "localhost",
        path,
        headers: &[],
        body: &vec![b'x'; body_bytes],
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

/// Every byte that came belongs to something.
fn expect_accounted(world: &mut World, overhead_bytes: u64) {
    let rest_bytes = world.client.rest_bytes();
    let events_bytes = bytes_of(&world.events);
    assert_eq!(
        events_bytes + overhead_bytes + rest_bytes,
        world.network.delivered_to_client_bytes
    );
    assert_eq!(rest_bytes, 0, "nothing waits");
}

#[test]
fn requests_are_answered_and_every_byte_has_a_place() {
    let mut world = World::new(2, Faults::NONE, Behaviour::default());
    world.run_until(|world| world.client.is_ready());
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
    world.settle();
    let overhead_bytes = world.overhead_bytes;
    expect_accounted(&mut world, overhead_bytes);
    // The first flight of a client has 1,200 bytes, that of a server as many at least.
    assert!(overhead_bytes > 1_200);
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
fn what_is_lost_repeated_or_reordered_comes_once() {
    for seed in 0..20 {
        let faults = Faults {
            seed,
            lost: 0.05,
            repeated: 0.05,
            held_back: 0.2,
        };
        let mut world = World::new(8, faults, Behaviour::default());
        load(&mut world, 200, &template("/9000", 3_000));
        assert_eq!(statuses(&world.events), [200; 200], "seed {seed}");
        assert_eq!(world.server.bodies, [3_000; 200]);
        assert_eq!(world.client.in_flight(), 0);
        let network = &world.network;
        assert!(network.lost > 0 && network.repeated > 0 && network.held_back > 0);
        let overhead_bytes = world.overhead_bytes;
        expect_accounted(&mut world, overhead_bytes);
    }
}

#[test]
fn equal_seeds_give_equal_datagrams_but_for_their_keys() {
    let faults = Faults {
        seed: 3,
        lost: 0.03,
        repeated: 0.0,
        held_back: 0.1,
    };
    let sizes = [(); 2].map(|()| {
        let mut world = World::new(4, faults, Behaviour::default());
        load(&mut world, 50, &template("/9000", 0));
        (world.network.sizes, world.now_ns)
    });
    assert_eq!(sizes[0], sizes[1]);
}

#[test]
fn a_body_waits_for_the_windows_of_the_server() {
    let behaviour = Behaviour {
        window_bytes: 20_000,
        ..Behaviour::default()
    };
    let mut world = World::new(1, Faults::NONE, behaviour);
    world.run_until(|world| world.client.is_ready());
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
    let mut world = World::new(8, Faults::NONE, behaviour);
    world.run_until(|world| world.client.is_ready());
    assert_eq!(world.client.depth(), 3);
    load(&mut world, 40, &template("/10", 0));
    assert_eq!(statuses(&world.events), [200; 40]);
    world.settle();
    assert_eq!((world.client.depth(), world.client.is_spent()), (3, false));
}

#[test]
fn a_cancelled_request_leaves_the_others_alone() {
    let mut world = World::new(2, Faults::NONE, Behaviour::default());
    world.run_until(|world| world.client.is_ready());
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
