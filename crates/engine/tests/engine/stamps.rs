//! Kernel receive time stamps and send call times, through the `Backend` trait, and polling.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::num::NonZeroU32;
use std::os::unix::net::UnixListener;

use brunt_io::backend::{Backend, ClientBackend, Event, Outgoing, Peer, SendCall, Slot};
use brunt_io::virtual_machine::VirtualMachine;
use brunt_io::{clock, threads};
use brunt_judge::RunFigures;
use brunt_load::Stamps;
use brunt_server::ListenAddress;
use brunt_testkit::{Costs, LateWakeUps, ServiceTime, Sim, SimMachine, SimServer, SimSettings};

use crate::common::{Kind, MS, S, US, choice, expect_valid, plan, run, serve_at, served, serving};
use crate::kernels::{Kernel, LIMIT_NS, Rig, event_within, on_every_kernel};

on_every_kernel! {
    stamps_lie_between_the_send_of_the_peer_and_our_receive,
    bytes_that_waited_are_stamped_with_their_arrival,
    only_stamped_slots_have_stamps,
    unix_sockets_have_none,
    large_replies_arrive_intact,
    more_bytes_than_buffers_arrive,
    ends_and_resets_are_seen,
    what_came_with_the_connection_is_seen,
    a_send_call_ends_before_the_wait,
    polling_misses_nothing,
}

/// How exactly wall time is known on the run's clock: half of the quickest of several readings of
/// both clocks, with room for a machine that is busy.
const OFFSET_NS: u64 = 2 * MS;
/// Exchanges before the first stamp: the kernel takes none until it has patched its own code.
const UNSTAMPED_MAX: u32 = 2_000;

/// Has the peer write until the kernel stamps what it writes.
fn until_stamped(rig: &mut Rig, slot: Slot, peer: &mut TcpStream) {
    for _ in 0..UNSTAMPED_MAX {
        peer.write_all(b"x").expect("a write");
        assert_eq!(rig.event(), Event::Received(slot));
        if rig.backend.received_stamp_ns().is_some() {
            return;
        }
        std::thread::yield_now();
    }
    panic!("the kernel gives no stamps");
}

/// The next event; each wait for it is at most `wait_ns`, or a poll.
fn event(rig: &mut Rig, wait_ns: Option<u64>) -> Event {
    event_within(&mut *rig.backend, LIMIT_NS, wait_ns).expect("something happens")
}

fn stamps_lie_between_the_send_of_the_peer_and_our_receive(kernel: Kernel) {
    let mut rig = Rig::new(kernel, 1);
    let slot = Slot(0);
    let mut peer = rig.connect(slot);
    until_stamped(&mut rig, slot, &mut peer);
    for _ in 0..100 {
        let before_ns = clock::now_ns();
        peer.write_all(b"hello").expect("a write");
        assert_eq!(rig.event(), Event::Received(slot));
        let stamp_ns = rig.backend.received_stamp_ns().expect("a stamp");
        let now_ns = clock::now_ns();
        assert_eq!(rig.backend.received(), b"hello");
        let possible_ns = before_ns.saturating_sub(OFFSET_NS)..=now_ns;
        assert!(
            possible_ns.contains(&stamp_ns),
            "{stamp_ns}: {possible_ns:?}"
        );
    }
    assert_eq!(rig.backend.stamps_clamped(), 0);
}

fn bytes_that_waited_are_stamped_with_their_arrival(kernel: Kernel) {
    let mut rig = Rig::new(kernel, 1);
    let slot = Slot(0);
    let mut peer = rig.connect(slot);
    until_stamped(&mut rig, slot, &mut peer);
    let before_ns = clock::now_ns();
    peer.write_all(b"first, ").expect("a write");
    threads::sleep(10 * MS);
    let last_ns = clock::now_ns();
    peer.write_all(b"last").expect("a write");
    until_arrived(&peer);
    let arrived_ns = clock::now_ns();
    threads::sleep(10 * MS);
    let mut bytes = Vec::new();
    let mut stamp_ns = 0;
    while bytes.len() < 11 {
        assert_eq!(rig.event(), Event::Received(slot));
        stamp_ns = rig.backend.received_stamp_ns().expect("a stamp");
        assert!(stamp_ns + OFFSET_NS > before_ns);
        bytes.extend_from_slice(rig.backend.received());
    }
    assert_eq!(bytes, b"first, last");
    // That of the last byte, and not that of the read.
    assert!(stamp_ns + OFFSET_NS > last_ns, "{stamp_ns} {last_ns}");
    assert!(
        stamp_ns <= arrived_ns + OFFSET_NS,
        "{stamp_ns} {arrived_ns}"
    );
}

/// Waits until the other kernel side has taken all that was written: nothing is left that was not
/// acknowledged.
fn until_arrived(peer: &TcpStream) {
    let local = peer.local_addr().expect("an address");
    let remote = peer.peer_addr().expect("an address");
    let limit_ns = clock::now_ns() + LIMIT_NS;
    loop {
        let sockets = procfs::net::tcp().expect("the kernel's list of sockets");
        let own = sockets
            .iter()
            .find(|socket| (socket.local_address, socket.remote_address) == (local, remote));
        if own.expect("it is connected").tx_queue == 0 {
            return;
        }
        assert!(clock::now_ns() < limit_ns, "the bytes do not arrive");
        std::thread::yield_now();
    }
}

fn only_stamped_slots_have_stamps(kernel: Kernel) {
    for (every, stamped) in [(0, &[][..]), (1, &[0, 1, 2, 3, 4]), (2, &[0, 2, 4])] {
        let mut rig = Rig::new(kernel, every);
        let payload = rig.backend.add_payload((*b"ping").into());
        // Connected the other way round, and each slot a second time.
        for number in (0..5).rev().chain(0..5) {
            let slot = Slot(number);
            let mut peer = rig.connect(slot);
            assert_eq!(rig.backend.send_call(slot), None);
            let is_stamped = stamped.contains(&number);
            if is_stamped {
                until_stamped(&mut rig, slot, &mut peer);
            }
            peer.write_all(b"x").expect("a write");
            assert_eq!(rig.event(), Event::Received(slot));
            assert_eq!(rig.backend.received(), b"x");
            assert_eq!(rig.backend.received_stamp_ns().is_some(), is_stamped);
            let before_ns = clock::now_ns();
            rig.backend.send(
                slot,
                Outgoing::Shared {
                    payload,
                    start: 0,
                    end: 4,
                },
            );
            assert_eq!(rig.event(), Event::Sent(slot));
            assert_eq!(rig.backend.received_stamp_ns(), None);
            rig.backend.wait(Some(0)).expect("a backend");
            let after_ns = clock::now_ns();
            let send_call = rig.backend.send_call(slot);
            assert_eq!(send_call.is_some(), is_stamped);
            if let Some(SendCall { from_ns, to_ns }) = send_call {
                assert!(before_ns <= from_ns && from_ns <= to_ns && to_ns <= after_ns);
            }
            let mut bytes = [0; 4];
            peer.read_exact(&mut bytes).expect("a request");
            assert_eq!(&bytes, b"ping");
            rig.backend.close(slot);
        }
    }
}

fn unix_sockets_have_none(kernel: Kernel) {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    let mut rig = Rig::new(kernel, 1);
    let opened = rig.backend.open(Slot(0), &Peer::Unix(path), None);
    opened.expect("a connection attempt");
    assert_eq!(rig.event(), Event::Connected(Slot(0)));
    let (mut peer, _) = listener.accept().expect("a connection");
    for _ in 0..10 {
        peer.write_all(b"hello").expect("a write");
        assert_eq!(rig.event(), Event::Received(Slot(0)));
        assert_eq!(rig.backend.received(), b"hello");
        assert_eq!(rig.backend.received_stamp_ns(), None);
    }
    rig.backend.send(Slot(0), Outgoing::Owned(b"ping".to_vec()));
    assert_eq!(rig.event(), Event::Sent(Slot(0)));
    assert!(rig.backend.send_call(Slot(0)).is_some());
    drop(peer);
    let end = rig.event();
    // What the peer has not read makes its close a reset.
    let reset = Event::ReceiveFailed(Slot(0), libc::ECONNRESET);
    assert!(end == reset || end == Event::Ended(Slot(0)), "{end:?}");
}

/// Bytes that show where they belong.
fn pattern(length: usize) -> Vec<u8> {
    (0..length as u32)
        .map(|at| (at ^ at >> 8 ^ at >> 16) as u8)
        .collect()
}

fn large_replies_arrive_intact(kernel: Kernel) {
    let expected = pattern(6 << 20);
    let mut rig = Rig::new(kernel, 1);
    let slot = Slot(0);
    let mut peer = rig.connect(slot);
    until_stamped(&mut rig, slot, &mut peer);
    let before_ns = clock::now_ns();
    let bytes = expected.clone();
    let writer = std::thread::spawn(move || peer.write_all(&bytes).expect("a write"));
    let mut received = Vec::with_capacity(expected.len());
    let mut latest_ns = before_ns.saturating_sub(OFFSET_NS);
    loop {
        match rig.event() {
            Event::Received(_) => received.extend_from_slice(rig.backend.received()),
            Event::Ended(_) => break,
            other => panic!("{other:?}"),
        }
        let stamp_ns = rig.backend.received_stamp_ns().expect("a stamp");
        assert!(stamp_ns + OFFSET_NS >= latest_ns, "{stamp_ns} {latest_ns}");
        latest_ns = stamp_ns;
    }
    writer.join().expect("a writer");
    assert_eq!(received.len(), expected.len());
    assert!(received == expected);
}

fn more_bytes_than_buffers_arrive(kernel: Kernel) {
    const CONNECTIONS: u32 = 24;
    let expected = pattern(40_000);
    let mut rig = Rig::new(kernel, 2);
    let mut peers: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|number| rig.connect(Slot(number)))
        .collect();
    for peer in &mut peers {
        peer.write_all(&expected).expect("a write");
        peer.shutdown(Shutdown::Write).expect("an end");
    }
    let mut received = vec![Vec::new(); CONNECTIONS as usize];
    let mut open = CONNECTIONS;
    while open > 0 {
        match rig.event() {
            Event::Received(slot) => {
                received[slot.0 as usize].extend_from_slice(rig.backend.received());
            }
            Event::Ended(_) => open -= 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(received.iter().all(|bytes| *bytes == expected));
}

fn ends_and_resets_are_seen(kernel: Kernel) {
    let mut rig = Rig::new(kernel, 1);
    let slot = Slot(0);
    for _ in 0..10 {
        let peer = rig.connect(slot);
        drop(peer);
        assert_eq!(rig.event(), Event::Ended(slot));
        assert_eq!(rig.backend.received_stamp_ns(), None);
        rig.backend.close(slot);
        let mut peer = rig.connect(slot);
        peer.write_all(b"last words").expect("a write");
        drop(peer);
        assert_eq!(rig.event(), Event::Received(slot));
        assert_eq!(rig.backend.received(), b"last words");
        assert_eq!(rig.event(), Event::Ended(slot));
        rig.backend.close(slot);
        let peer = rig.connect(slot);
        let linger = Some(std::time::Duration::ZERO);
        let socket = socket2::SockRef::from(&peer);
        socket.set_linger(linger).expect("an option");
        drop(peer);
        let reset = Event::ReceiveFailed(slot, libc::ECONNRESET);
        assert_eq!(rig.event(), reset);
        rig.backend.close(slot);
        // Bytes for a connection that was closed are nobody's.
        let mut peer = rig.connect(slot);
        peer.write_all(b"too late").expect("a write");
        rig.backend.wait(Some(0)).expect("a backend");
        rig.backend.close(slot);
        assert_eq!(rig.backend.next_event(), None);
    }
}

/// A server that speaks first, or closes at once, before the client looks.
fn what_came_with_the_connection_is_seen(kernel: Kernel) {
    for text in ["first words", ""] {
        let mut rig = Rig::new(kernel, 1);
        let slot = Slot(0);
        rig.open(slot);
        if matches!(kernel, Kernel::Uring | Kernel::Rings(_)) {
            // It connects with the first wait.
            rig.backend.wait(Some(0)).expect("a backend");
        }
        let mut peer = rig.accept();
        peer.write_all(text.as_bytes()).expect("a write");
        peer.shutdown(Shutdown::Write).expect("a close");
        assert_eq!(rig.event(), Event::Connected(slot));
        if !text.is_empty() {
            assert_eq!(rig.event(), Event::Received(slot));
            assert_eq!(rig.backend.received(), text.as_bytes());
        }
        assert_eq!(rig.event(), Event::Ended(slot));
    }
}

/// It would end with the wait each time if it were measured wrongly. That brunt does not get the
/// CPU for as long as the wait lasts may happen, but not time and again.
fn a_send_call_ends_before_the_wait(kernel: Kernel) {
    const TRIES: u32 = 10;
    assert!((0..TRIES).any(|_| send_call_ends_before_the_wait(kernel)));
}

fn send_call_ends_before_the_wait(kernel: Kernel) -> bool {
    let mut rig = Rig::new(kernel, 1);
    let slot = Slot(0);
    let _peer = rig.connect(slot);
    let before_ns = clock::now_ns();
    rig.backend.send(slot, Outgoing::Owned(b"ping".to_vec()));
    // Nothing comes back, and the sent bytes themselves are an event.
    let until_ns = before_ns + 50 * MS;
    while clock::now_ns() < until_ns {
        rig.backend.wait(Some(until_ns)).expect("a backend");
        while rig.backend.next_event().is_some() {}
    }
    let send_call = rig.backend.send_call(slot).expect("a send call");
    assert!(before_ns <= send_call.from_ns && send_call.from_ns <= send_call.to_ns);
    send_call.to_ns < until_ns
}

fn polling_misses_nothing(kernel: Kernel) {
    for every in [0, 1] {
        let mut rig = Rig::new(kernel, every);
        let slot = Slot(0);
        let mut peer = rig.connect(slot);
        let echo = std::thread::spawn(move || {
            let mut byte = [0];
            while peer.read_exact(&mut byte).is_ok() {
                peer.write_all(&byte).expect("a write");
            }
        });
        let payload = rig.backend.add_payload((0..=255).collect());
        for round in 0..400_u32 {
            // A poll as soon as it was sent, polls only, or waits.
            let wait_ns = (round % 3 == 0).then_some(S);
            let start = round % 256;
            let end = start + 1;
            let outgoing = Outgoing::Shared {
                payload,
                start,
                end,
            };
            rig.backend.send(slot, outgoing);
            let mut answered = false;
            let mut sent = false;
            while !answered || !sent {
                match event(&mut rig, wait_ns) {
                    Event::Sent(_) => sent = true,
                    Event::Received(_) => {
                        assert_eq!(rig.backend.received(), &[start as u8]);
                        answered = true;
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
        rig.backend.close(slot);
        drop(rig);
        echo.join().expect("an echo");
    }
}

#[test]
fn slots_far_apart_are_stamped() {
    for kernel in [Kernel::Uring, Kernel::Epoll] {
        far_apart(kernel);
    }
}

fn far_apart(kernel: Kernel) {
    // On io_uring, slots of several rings.
    let slots = [Slot(0), Slot(16_384), Slot(33_000)];
    let mut rig = Rig::new(kernel, 8);
    let mut peers = slots.map(|slot| rig.connect(slot));
    for (slot, peer) in slots.iter().zip(&mut peers) {
        until_stamped(&mut rig, *slot, peer);
    }
    for _ in 0..20 {
        for slot in slots {
            rig.backend.send(slot, Outgoing::Owned(b"ping".to_vec()));
        }
        let mut sent = 0;
        while sent < slots.len() {
            assert!(matches!(rig.event(), Event::Sent(_)));
            sent += 1;
        }
        for (&slot, peer) in slots.iter().zip(&mut peers).rev() {
            let before_ns = clock::now_ns();
            let mut bytes = [0; 4];
            peer.read_exact(&mut bytes).expect("a request");
            peer.write_all(&bytes).expect("a write");
            // By polls alone.
            assert_eq!(event(&mut rig, None), Event::Received(slot));
            let stamp_ns = rig.backend.received_stamp_ns().expect("a stamp");
            assert!(stamp_ns + OFFSET_NS >= before_ns);
            let send_call = rig.backend.send_call(slot).expect("a send call");
            assert!(send_call.to_ns <= before_ns);
        }
    }
}

/// A simulated backend whose first slot is connected.
fn sim(settings: &SimSettings) -> (Sim, SimMachine) {
    let mut machine = SimMachine::new(settings.clone());
    let mut sim = machine.start_worker(0, 0);
    sim.set_stamps(NonZeroU32::new(2));
    for number in 0..3 {
        let peer = Peer::Tcp(([127, 0, 0, 1], 80).into());
        let slot = Slot(number);
        sim.open(slot, &peer, None).expect("a connection attempt");
        sim.wait(None).expect("a simulation");
        assert_eq!(sim.next_event(), Some(Event::Connected(slot)));
    }
    (sim, machine)
}

/// Sends a request, and takes its reply; gives the latest stamp, and how many bytes came.
fn exchange(sim: &mut Sim, slot: Slot) -> (Option<u64>, usize) {
    let request = b"GET / HTTP/1.1\r\nHost: simulated\r\n\r\n";
    sim.send(slot, Outgoing::Owned(request.to_vec()));
    let (mut stamp_ns, mut bytes) = (None, 0);
    loop {
        match sim.next_event() {
            Some(Event::Received(_)) => {
                assert!(stamp_ns <= sim.received_stamp_ns());
                stamp_ns = sim.received_stamp_ns();
                bytes += sim.received().len();
            }
            Some(_) => assert_eq!(sim.received_stamp_ns(), None),
            None if bytes > 0 => return (stamp_ns, bytes),
            None => sim.wait(None).expect("a simulation"),
        }
    }
}

#[test]
fn simulated_stamps_are_exact_whenever_brunt_wakes_up() {
    for late in [0, 50 * MS] {
        let mut settings = serving(|server| server.service = ServiceTime::Constant(MS));
        settings.network_ns = 100 * US;
        settings.costs = Costs::NONE;
        settings.costs.send_ns = 2 * US;
        settings.late_wake_ups = (late > 0).then_some(LateWakeUps {
            probability: 1.0,
            delay_ns: late,
        });
        let (mut sim, machine) = sim(&settings);
        for _ in 0..5 {
            for slot in [Slot(0), Slot(2)] {
                let from_ns = machine.now_ns(0);
                let (stamp_ns, _) = exchange(&mut sim, slot);
                let to_ns = from_ns + 2 * US;
                assert_eq!(sim.send_call(slot), Some(SendCall { from_ns, to_ns }));
                let arrival_ns = to_ns + MS + 200 * US;
                assert_eq!(stamp_ns, Some(arrival_ns));
                assert!(machine.now_ns(0) >= arrival_ns + late);
            }
            assert_eq!(exchange(&mut sim, Slot(1)).0, None);
            assert_eq!(sim.send_call(Slot(1)), None);
        }
        sim.close(Slot(0));
        let peer = Peer::Tcp(([127, 0, 0, 1], 80).into());
        let opened = sim.open(Slot(0), &peer, None);
        opened.expect("a connection attempt");
        assert_eq!(sim.send_call(Slot(0)), None);
    }
}

#[test]
fn a_simulated_read_is_stamped_with_its_last_piece() {
    let settings = SimSettings {
        network_ns: 100 * US,
        costs: Costs::NONE,
        late_wake_ups: Some(LateWakeUps {
            probability: 0.5,
            delay_ns: 300 * US,
        }),
        server: SimServer {
            pieces_max: NonZeroU32::new(6).expect("at least one"),
            piece_gap_ns: 100 * US,
            ..SimServer::default()
        },
        ..SimSettings::new(7)
    };
    let (mut sim, machine) = sim(&settings);
    let mut spread = 0;
    for _ in 0..100 {
        let from_ns = machine.now_ns(0);
        let (stamp_ns, _) = exchange(&mut sim, Slot(0));
        let stamp_ns = stamp_ns.expect("a stamp");
        assert!((from_ns + 200 * US..=machine.now_ns(0)).contains(&stamp_ns));
        spread += u32::from(stamp_ns > from_ns + 200 * US);
        // Pieces that are still on their way belong to this reply.
        while sim.wait(Some(machine.now_ns(0) + 10 * MS)).is_ok() && sim.next_event().is_some() {}
    }
    assert!(spread > 0);
}

/// Nothing but a stamp tells since when a closed loop could have sent: without stamps there is no
/// lag, and none that is 0.
#[test]
fn a_closed_loop_over_a_unix_socket_has_no_lag() {
    for kind in [Kind::Uring, Kind::Epoll] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let serving = serve_at(kind, ListenAddress::Unix(path.clone()));
        let mut plan = plan("http://localhost/", choice(kind));
        plan.target.unix_socket = Some(path);
        plan.observation.stamps = Stamps::Full;
        let run = run(plan);
        served(serving);
        expect_valid(&run, "a Unix socket");
        assert!(run.summary().population.recorded > 0);
        assert_eq!(run.latencies.split.count(), 0);
        assert_eq!(run.latencies.lag.count(), 0);
    }
}
