//! Requests before the handshake is complete.

use super::*;

const EARLY: Behaviour = Behaviour {
    window_bytes: 1 << 20,
    streams_max: 100,
    idle_ms: None,
    is_trusted: true,
    alpn: crate::tls::ALPN_HTTP3,
    connections_max: 1,
    early_data: true,
};

/// A connection of a client that has had another one.
fn resumed(depth: u32, faults: Faults, other: Option<Behaviour>) -> World {
    let mut first = World::new(1, Faults::NONE, EARLY);
    assert_eq!(first.client.early_data(), EarlyData::None);
    first.run_until(|world| world.client.is_ready());
    first.settle();
    let world = first.again(depth, faults, other);
    assert_eq!(world.client.early_data(), EarlyData::Offered);
    assert!(!world.client.is_ready());
    assert_eq!(world.client.depth(), depth);
    world
}

#[test]
fn a_server_takes_requests_before_the_handshake_is_complete() {
    let mut world = resumed(2, Faults::NONE, None);
    world.client.request(&template("/1000", 0));
    world.client.request(&template("/0", 5_000));
    world.run_until(|world| world.events.len() == 3);
    assert_eq!(world.events[0], Event::Ready);
    let Event::Reply { place: 0, reply } = world.events[1] else {
        panic!("{:?}", world.events);
    };
    // One round trip, where it is two otherwise.
    assert!(reply.first_byte_ns < 3 * MS, "{reply:?}");
    assert_eq!(statuses(&world.events), [200, 200]);
    assert_eq!(world.server.bodies, [5_000]);
    assert_eq!(world.client.early_data(), EarlyData::Accepted);
    load(&mut world, 10, &template("/10", 0));
    world.settle();
    let overhead_bytes = world.overhead_bytes;
    expect_accounted(&mut world, overhead_bytes);
}

#[test]
fn what_a_server_does_not_take_is_sent_again_as_far_as_it_allows() {
    let stranger = Behaviour {
        streams_max: 2,
        ..EARLY
    };
    let mut world = resumed(4, Faults::NONE, Some(stranger));
    for _ in 0..3 {
        world.client.request(&template("/1000", 300));
    }
    let cancelled = world.client.request(&template("/1000", 300));
    assert_eq!(world.client.cancel(cancelled), 0);
    world.run_until(|world| world.events.len() == 4);
    assert_eq!(world.events[0], Event::Ready);
    let refused = Event::Failed {
        place: 2,
        why: StreamFailure::NotProcessed,
        discarded_bytes: 0,
    };
    assert_eq!(world.events[1], refused);
    assert_eq!(statuses(&world.events), [200, 200]);
    assert_eq!(world.server.bodies, [300, 300]);
    assert_eq!(world.client.early_data(), EarlyData::Rejected);
    assert_eq!(world.client.in_flight(), 0);
    load(&mut world, 10, &template("/10", 0));
    world.settle();
    let overhead_bytes = world.overhead_bytes;
    expect_accounted(&mut world, overhead_bytes);
}

#[test]
fn each_early_request_is_answered_once_over_a_network_with_faults() {
    for seed in 0..20 {
        let faults = Faults {
            seed,
            lost: 0.1,
            repeated: 0.1,
            held_back: 0.2,
        };
        for other in [None, Some(EARLY)] {
            let mut world = resumed(8, faults, other);
            for _ in 0..8 {
                world.client.request(&template("/900", 700));
            }
            world.run_until(|world| world.events.len() == 9);
            assert_eq!(statuses(&world.events), [200; 8], "seed {seed}");
            assert_eq!(world.server.bodies, [700; 8]);
            let became = match other {
                None => EarlyData::Accepted,
                Some(_) => EarlyData::Rejected,
            };
            assert_eq!(world.client.early_data(), became, "seed {seed}");
        }
    }
}
