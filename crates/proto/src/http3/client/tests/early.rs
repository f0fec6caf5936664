//! Requests before the handshake is complete.

use super::*;
use crate::quic::EARLY_BYTES_MAX;

const EARLY: Behaviour = Behaviour {
    window_bytes: 1 << 20,
    streams_max: 100,
    idle_ms: None,
    is_trusted: true,
    alpn: crate::tls::ALPN_HTTP3,
    connections_max: 1,
    resumption: true,
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
    // Those of the second kind are more than may be sent early, and than the first window holds.
    for (seed, lost, body_bytes) in (0..100).flat_map(|seed| {
        let lost = [0.1, 0.2, 0.4][seed as usize % 3];
        [(seed, lost, 300), (seed, lost, 5_000)]
    }) {
        let faults = Faults {
            seed,
            lost,
            repeated: 0.1,
            held_back: 0.2,
        };
        for other in [None, Some(EARLY)] {
            let what = format!("seed {seed}, {lost} lost, bodies of {body_bytes}");
            let mut world = resumed(8, faults, other);
            for _ in 0..8 {
                world.client.request(&template("/900", body_bytes));
            }
            world.run_until(|world| world.events.len() == 9);
            assert_eq!(statuses(&world.events), [200; 8], "{what}");
            assert_eq!(world.server.bodies, [body_bytes as u64; 8], "{what}");
            let became = match other {
                None => EarlyData::Accepted,
                Some(_) => EarlyData::Rejected,
            };
            assert_eq!(world.client.early_data(), became, "{what}");
        }
    }
}

#[test]
fn what_is_too_much_for_early_data_waits_for_the_end_of_the_handshake() {
    let mut world = resumed(2, Faults::NONE, None);
    let way_ns = MS;
    world.client.request(&template("/10", EARLY_BYTES_MAX));
    world.client.request(&template("/0", 0));
    // What comes in the first way is all that was sent early.
    world.run_until(|world| world.now_ns >= way_ns);
    let early_bytes: usize = world.network.sizes.iter().sum();
    assert!(
        (EARLY_BYTES_MAX..EARLY_BYTES_MAX + 3_000).contains(&early_bytes),
        "{early_bytes}"
    );
    assert!(world.server.bodies.is_empty());
    world.run_until(|world| world.events.len() == 3);
    assert_eq!(statuses(&world.events), [200, 200]);
    assert_eq!(world.server.bodies, [EARLY_BYTES_MAX as u64]);
    assert_eq!(world.client.early_data(), EarlyData::Accepted);
}
