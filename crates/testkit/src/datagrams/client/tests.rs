//! The simulated network of datagrams, event by event.

use std::num::NonZeroU32;

use brunt_io::backend::{Backend, ClientBackend, Peer};
use brunt_io::transport::Ecn;
use brunt_io::virtual_machine::VirtualMachine;

use super::*;
use crate::datagrams::{DatagramFault, DatagramNetwork, PlannedFault};
use crate::settings::ServiceTime;
use crate::{Costs, SimDatagrams, SimMachine, SimSettings};

const MS: u64 = 1_000_000;
const SLOT: Slot = Slot(0);

/// A server that takes no time, 1 ms away, and work that takes none.
fn settings(datagrams: DatagramNetwork) -> SimSettings {
    let mut settings = SimSettings::new(1);
    settings.network_ns = MS;
    settings.costs = Costs::NONE;
    settings.server.service = ServiceTime::Constant(0);
    settings.datagrams = datagrams;
    settings
}

fn opened(datagrams: DatagramNetwork) -> (SimDatagrams, SimMachine) {
    let mut machine = SimMachine::new(settings(datagrams));
    let mut sim = machine.start_datagram_worker(0, 0);
    sim.set_stamps(NonZeroU32::new(1));
    let peer = Peer::Unix("simulated".into());
    sim.open(SLOT, &peer, None).expect("a socket");
    assert_eq!(sim.next_event(), Some(Event::Connected(SLOT)));
    (sim, machine)
}

fn send(sim: &mut SimDatagrams, bytes: &[u8], segment_bytes: u16, ecn: Option<Ecn>) {
    let outgoing = OutgoingDatagrams {
        bytes: bytes.to_vec(),
        segment_bytes: NonZeroU16::new(segment_bytes).expect("not 0"),
        ecn,
    };
    sim.send(SLOT, outgoing);
    assert_eq!(sim.next_event(), Some(Event::Sent(SLOT)));
}

/// What comes by `until_ns`: the datagrams of each event.
fn receive(sim: &mut SimDatagrams, until_ns: u64) -> Vec<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    while sim.now_ns() < until_ns {
        sim.wait(Some(until_ns)).expect("a simulation");
        while let Some(event) = sim.next_event() {
            assert_eq!(event, Event::Received(SLOT));
            assert_eq!(sim.received_stamp_ns(), Some(sim.now_ns()));
            all.push(sim.received().segments().map(<[u8]>::to_vec).collect());
        }
    }
    all
}

#[test]
fn datagrams_of_one_size_come_at_once_with_their_borders() {
    let (mut sim, machine) = opened(DatagramNetwork::default());
    send(&mut sim, b"aabbccd", 2, Some(Ecn::Capable0));
    send(&mut sim, b"eee", 3, None);
    let all = receive(&mut sim, 5 * MS);
    let expected: [&[&[u8]]; 2] = [&[b"aa", b"bb", b"cc", b"d"], &[b"eee"]];
    assert_eq!(all, expected);
    drop(sim);
    let counts = machine.counts().datagrams;
    assert_eq!((counts.served, counts.delivered), (5, 5));
}

#[test]
fn planned_faults_meet_the_first_datagram_from_their_instant_on() {
    let planned = [
        DatagramFault::Lost,
        DatagramFault::Repeated,
        DatagramFault::HeldBack,
        DatagramFault::Marked,
    ];
    let (mut sim, machine) = opened(DatagramNetwork {
        held_back_ns: 10 * MS,
        planned: planned.map(|fault| PlannedFault { at_ns: 0, fault }).into(),
        ..DatagramNetwork::default()
    });
    send(&mut sim, b"1234", 1, Some(Ecn::Capable1));
    // The first is lost, the second comes twice, the third late and the fourth marked.
    let all = receive(&mut sim, 5 * MS);
    assert_eq!(all.concat().concat(), b"224");
    assert_eq!(all.len(), 2, "marks are not mixed");
    assert_eq!(receive(&mut sim, 20 * MS).concat().concat(), b"3");
    drop(sim);
    let counts = machine.counts().datagrams;
    let way = counts.to_server;
    assert_eq!((way.sent, way.lost, way.repeated), (4, 1, 1));
    assert_eq!((way.held_back, way.marked, way.arrived), (1, 1, 4));
}

#[test]
fn large_datagrams_are_lost_and_full_sockets_drop_and_tell() {
    let (mut sim, machine) = opened(DatagramNetwork {
        bytes_max: NonZeroU16::new(10),
        socket_bytes_max: 20,
        ..DatagramNetwork::default()
    });
    send(&mut sim, &[1; 11], 11, None);
    assert!(receive(&mut sim, 5 * MS).is_empty());
    send(&mut sim, &[2; 30], 10, None);
    assert_eq!(receive(&mut sim, 10 * MS).concat().len(), 2);
    send(&mut sim, &[3; 10], 10, None);
    sim.wait(Some(20 * MS)).expect("a simulation");
    assert_eq!(sim.next_event(), Some(Event::Received(SLOT)));
    assert_eq!(sim.received().dropped, 1);
    drop(sim);
    let counts = machine.counts().datagrams;
    assert_eq!((counts.to_server.too_large, counts.dropped), (1, 1));
}

#[test]
fn what_comes_to_a_closed_socket_is_unclaimed() {
    let (mut sim, machine) = opened(DatagramNetwork::default());
    send(&mut sim, b"one", 3, None);
    sim.close(SLOT);
    let peer = Peer::Unix("simulated".into());
    sim.open(SLOT, &peer, None).expect("a socket");
    assert_eq!(sim.next_event(), Some(Event::Connected(SLOT)));
    assert!(receive(&mut sim, 5 * MS).is_empty());
    drop(sim);
    assert_eq!(machine.counts().datagrams.unclaimed, 1);
}
