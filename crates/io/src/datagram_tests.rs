//! Datagram sockets over the kernel's backends.

use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::num::{NonZeroU16, NonZeroU32};
use std::os::fd::AsFd;
use std::time::Duration;

use brunt_load::SocketOptions;
use rustix::io::Errno;
use socket2::SockRef;

use crate::backend::{ClientBackend, Event, Peer, Slot};
use crate::clock;
use crate::datagrams::{self, About};
use crate::epoll::Epoll;
use crate::kernel_tests::{Kernel, on_every_kernel};
use crate::socket;
use crate::transport::{Datagram, Ecn, OutgoingDatagrams};
use crate::uring::Uring;

on_every_kernel! {
    borders_are_kept_both_ways,
    many_datagrams_are_received_at_once,
    more_than_one_call_takes_are_sent_in_order,
    marks_go_out_and_come_in,
    quiet_sends_arrive_and_nothing_is_heard_of_them,
    what_was_sent_quietly_survives_its_slot,
    a_closed_port_is_an_error,
    buffers_are_bounded_and_drops_are_told,
    a_flood_does_not_keep_others_waiting,
    what_is_too_large_is_lost,
    a_slot_may_be_used_again,
    stamps_are_those_of_arrival,
    only_udp_is_reached,
}

/// How long anything may take that is sure to come.
const LIMIT_NS: u64 = 30_000_000_000;
const S: u64 = 1_000_000_000;

fn backend(kernel: Kernel) -> Box<dyn ClientBackend<Transport = Datagram>> {
    match kernel {
        Kernel::Uring => Box::new(Uring::of_datagrams(4).expect("io_uring")),
        Kernel::Rings => Box::new(Uring::of_datagrams_with_ring_files(4, 1).expect("io_uring")),
        Kernel::Epoll => Box::new(Epoll::of_datagrams().expect("epoll")),
        Kernel::OldEpoll => Box::new(Epoll::of_datagrams().expect("epoll").without_pwait2()),
    }
}

/// The next event.
fn any_event(backend: &mut dyn ClientBackend<Transport = Datagram>) -> Event {
    let limit_ns = clock::now_ns() + LIMIT_NS;
    loop {
        if let Some(event) = backend.next_event() {
            return event;
        }
        let now_ns = clock::now_ns();
        assert!(now_ns < limit_ns, "nothing happens");
        backend.wait(Some(now_ns + S / 10)).expect("a backend");
    }
}

/// The next event that is no `Sent`.
fn event(backend: &mut dyn ClientBackend<Transport = Datagram>) -> Event {
    loop {
        match any_event(backend) {
            Event::Sent(_) => {}
            event => return event,
        }
    }
}

/// A peer gets these bytes as one datagram.
fn expect(peer: &UdpSocket, bytes: &[u8]) {
    let mut buffer = [0; 1_000];
    let length = peer.recv(&mut buffer).expect("a datagram");
    assert_eq!(&buffer[..length], bytes);
}

fn bind(address: &str) -> UdpSocket {
    let socket = UdpSocket::bind(address).expect("a port");
    let limit = Some(Duration::from_nanos(LIMIT_NS));
    socket.set_read_timeout(limit).expect("an option");
    socket
}

/// A backend with an open slot, and the other side, which is connected to it.
fn connected(
    kernel: Kernel,
    address: &str,
) -> (Box<dyn ClientBackend<Transport = Datagram>>, UdpSocket) {
    let mut backend = backend(kernel);
    let peer = bind(address);
    connect(&mut *backend, Slot(0), &peer);
    (backend, peer)
}

/// Opens a slot to `peer`, which connects to it.
fn connect(backend: &mut dyn ClientBackend<Transport = Datagram>, slot: Slot, peer: &UdpSocket) {
    let to = Peer::Udp(peer.local_addr().expect("an address"));
    backend.open(slot, &to, None).expect("a socket");
    assert_eq!(event(backend), Event::Connected(slot));
    backend.send(slot, datagrams(b"hello", 5, None));
    backend.wait(Some(0)).expect("a backend");
    let (bytes, from) = peer.recv_from(&mut [0; 16]).expect("a datagram");
    assert_eq!(bytes, 5);
    peer.connect(from).expect("a socket");
    assert_eq!(any_event(backend), Event::Sent(slot));
}

fn datagrams(bytes: &[u8], segment_bytes: u16, ecn: Option<Ecn>) -> OutgoingDatagrams {
    OutgoingDatagrams {
        bytes: bytes.to_vec(),
        segment_bytes: NonZeroU16::new(segment_bytes).expect("not 0"),
        ecn,
    }
}

/// `count` datagrams, each filled with its number.
fn numbered(count: usize, segment_bytes: usize) -> Vec<u8> {
    (0..count)
        .flat_map(|number| vec![number as u8; segment_bytes])
        .collect()
}

/// Sends all of them at once.
fn send_at_once(peer: &UdpSocket, outgoing: &OutgoingDatagrams) {
    let sent = datagrams::send_all(peer.as_fd(), None, outgoing, &mut 0, &mut false);
    assert_eq!(sent, Some(0));
}

/// The datagrams of the next event, each by itself.
fn received(backend: &mut dyn ClientBackend<Transport = Datagram>) -> Vec<Vec<u8>> {
    assert_eq!(event(backend), Event::Received(Slot(0)));
    backend.received().segments().map(<[u8]>::to_vec).collect()
}

fn borders_are_kept_both_ways(kernel: Kernel) {
    let (mut backend, peer) = connected(kernel, "127.0.0.1:0");
    let bytes = [numbered(3, 100), vec![9; 50]].concat();
    backend.send(Slot(0), datagrams(&bytes, 100, None));
    backend.wait(Some(0)).expect("a backend");
    for (number, length) in [(0, 100), (1, 100), (2, 100), (9, 50)] {
        expect(&peer, &vec![number; length]);
    }
    for text in ["one", "two and more", "3"] {
        // It is passed over.
        peer.send(b"").expect("a send");
        peer.send(text.as_bytes()).expect("a send");
        assert_eq!(received(&mut *backend), [text.as_bytes()]);
    }
}

fn many_datagrams_are_received_at_once(kernel: Kernel) {
    let (mut backend, peer) = connected(kernel, "127.0.0.1:0");
    let bytes = [numbered(40, 1_000), vec![99; 10]].concat();
    send_at_once(&peer, &datagrams(&bytes, 1_000, None));
    let all = received(&mut *backend);
    assert_eq!(all.len(), 41, "the kernel gives them one by one");
    assert_eq!(all.concat(), bytes);
    assert_eq!(all[40], [99; 10]);
    assert_eq!(backend.received().segment_bytes.get(), 1_000);
}

fn more_than_one_call_takes_are_sent_in_order(kernel: Kernel) {
    let (mut backend, peer) = connected(kernel, "127.0.0.1:0");
    let bytes = numbered(150, 100);
    backend.send(Slot(0), datagrams(&bytes, 100, None));
    for number in 0..150 {
        backend.wait(Some(0)).expect("a backend");
        while let Some(event) = backend.next_event() {
            assert_eq!(event, Event::Sent(Slot(0)));
        }
        expect(&peer, &[number; 100]);
    }
}

fn marks_go_out_and_come_in(kernel: Kernel) {
    let marks = [Ecn::Capable0, Ecn::Capable1, Ecn::CongestionExperienced];
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let (mut backend, peer) = connected(kernel, address);
        // The other side sees marks, too.
        let own = peer.local_addr().expect("an address");
        socket::set_datagram_options(&SockRef::from(&peer), own).expect("an option");
        for ecn in marks.map(Some).into_iter().chain([None]) {
            for count in [1, 3] {
                let bytes = numbered(count, 200);
                backend.send(Slot(0), datagrams(&bytes, 200, ecn));
                backend.wait(Some(0)).expect("a backend");
                let mut came = 0;
                while came < bytes.len() {
                    let mut buffer = [0; 1_000];
                    let (length, about) = receive(&peer, &mut buffer);
                    assert_eq!(about.ecn, ecn, "{address}");
                    came += length;
                }
                send_at_once(&peer, &datagrams(&bytes, 200, ecn));
                assert_eq!(received(&mut *backend).concat(), bytes);
                assert_eq!(backend.received().ecn, ecn, "{address}");
            }
        }
    }
}

/// The next datagrams at the other side.
fn receive(peer: &UdpSocket, buffer: &mut [u8]) -> (usize, About) {
    loop {
        match datagrams::receive(peer.as_fd(), buffer) {
            Err(Errno::INTR) => {}
            outcome => return outcome.expect("datagrams"),
        }
    }
}

fn quiet_sends_arrive_and_nothing_is_heard_of_them(kernel: Kernel) {
    let mut backend = backend(kernel);
    backend.set_stamps(NonZeroU32::new(2));
    let (stamped, unstamped) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    connect(&mut *backend, Slot(0), &stamped);
    connect(&mut *backend, Slot(1), &unstamped);
    // What they point to is used again.
    for number in 0..600_u16 {
        let ecn = (number % 2 == 0).then_some(Ecn::Capable0);
        let outgoing = datagrams(&number.to_le_bytes(), 2, ecn);
        assert!(backend.send_quietly(Slot(1), outgoing), "{number}");
        if number % 50 == 49 {
            backend.wait(Some(0)).expect("a backend");
            assert_eq!(backend.next_event(), None);
            for number in number - 49..=number {
                expect(&unstamped, &number.to_le_bytes());
            }
        }
    }
    // The time of the call is to be known.
    assert!(!backend.send_quietly(Slot(0), datagrams(b"hello", 5, None)));
    assert_eq!(any_event(&mut *backend), Event::Sent(Slot(0)));
    expect(&stamped, b"hello");
}

fn what_was_sent_quietly_survives_its_slot(kernel: Kernel) {
    let (mut backend, peer) = connected(kernel, "127.0.0.1:0");
    assert!(backend.send_quietly(Slot(0), datagrams(b"bye", 3, None)));
    backend.close(Slot(0));
    expect(&peer, b"bye");
    let other = bind("127.0.0.1:0");
    connect(&mut *backend, Slot(0), &other);
    other.send(b"new").expect("a send");
    assert_eq!(received(&mut *backend), [b"new"]);
}

fn a_closed_port_is_an_error(kernel: Kernel) {
    let mut backend = backend(kernel);
    for slot in [Slot(0), Slot(1)] {
        let peer = bind("127.0.0.1:0");
        let to = Peer::Udp(peer.local_addr().expect("an address"));
        drop(peer);
        backend.open(slot, &to, None).expect("a socket");
        assert_eq!(event(&mut *backend), Event::Connected(slot));
        backend.send(slot, datagrams(b"anybody?", 8, None));
        let refused = event(&mut *backend);
        assert_eq!(refused, Event::ReceiveFailed(slot, libc::ECONNREFUSED));
        // It is told once.
        backend.wait(Some(0)).expect("a backend");
        assert_eq!(backend.next_event(), None);
        backend.close(slot);
    }
}

fn buffers_are_bounded_and_drops_are_told(kernel: Kernel) {
    let mut backend = backend(kernel);
    backend.set_sockets(&SocketOptions {
        receive_buffer_bytes: NonZeroU32::new(20_000),
        ..SocketOptions::default()
    });
    let peer = bind("127.0.0.1:0");
    connect(&mut *backend, Slot(0), &peer);
    // Nobody reads meanwhile, but for what a ring takes at once.
    let mut sent = 2_000;
    for _ in 0..sent {
        peer.send(&[7; 1_000]).expect("a send");
    }
    let mut came = 0;
    for _ in 0..2_000 {
        came += received(&mut *backend).len();
        let dropped = backend.received().dropped;
        if dropped > 0 {
            assert!(dropped as usize <= sent - came);
            return;
        }
        // What comes after drops tells of them.
        peer.send(&[8; 1_000]).expect("a send");
        sent += 1;
    }
    panic!("nothing was dropped");
}

fn a_flood_does_not_keep_others_waiting(kernel: Kernel) {
    let (mut backend, flood) = connected(kernel, "127.0.0.1:0");
    let quiet = bind("127.0.0.1:0");
    connect(&mut *backend, Slot(1), &quiet);
    for _ in 0..100 {
        flood.send(&[1; 1_000]).expect("a send");
    }
    quiet.send(b"here").expect("a send");
    let mut before = 0;
    let mut heard = false;
    for _ in 0..500 {
        backend
            .wait(Some(clock::now_ns() + S / 10))
            .expect("a backend");
        while let Some(event) = backend.next_event() {
            match event {
                Event::Received(Slot(0)) => before += 1,
                Event::Received(_) => heard = true,
                other => panic!("{other:?}"),
            }
        }
        if heard {
            break;
        }
        flood.send(&[1; 1_000]).expect("a send");
    }
    assert!(heard && before <= 200, "{before} before");
}

fn what_is_too_large_is_lost(kernel: Kernel) {
    let (mut backend, peer) = connected(kernel, "127.0.0.1:0");
    backend.send(Slot(0), datagrams(&vec![1; 65_535], 65_535, None));
    assert_eq!(any_event(&mut *backend), Event::Sent(Slot(0)));
    backend.send(Slot(0), datagrams(b"next", 4, None));
    backend.wait(Some(0)).expect("a backend");
    expect(&peer, b"next");
}

fn a_slot_may_be_used_again(kernel: Kernel) {
    let (mut backend, peer) = connected(kernel, "127.0.0.1:0");
    peer.send(b"late").expect("a send");
    backend.send(Slot(0), datagrams(&numbered(10, 1_000), 1_000, None));
    backend.close(Slot(0));
    let other = bind("127.0.0.1:0");
    connect(&mut *backend, Slot(0), &other);
    // The port of the first one is closed.
    let _ = peer.send(b"later");
    other.send(b"new").expect("a send");
    assert_eq!(received(&mut *backend), [b"new"]);
}

fn stamps_are_those_of_arrival(kernel: Kernel) {
    let mut backend = backend(kernel);
    backend.set_stamps(NonZeroU32::new(2));
    let (stamped, unstamped) = (bind("127.0.0.1:0"), bind("127.0.0.1:0"));
    connect(&mut *backend, Slot(0), &stamped);
    connect(&mut *backend, Slot(1), &unstamped);
    let call = backend.send_call(Slot(0)).expect("a send call");
    assert!(call.from_ns <= call.to_ns);
    assert_eq!(backend.send_call(Slot(1)), None);
    unstamped.send(b"no").expect("a send");
    assert_eq!(event(&mut *backend), Event::Received(Slot(1)));
    assert_eq!(backend.received_stamp_ns(), None);
    // The kernel gives none until it has patched its own code.
    for _ in 0..2_000 {
        let before_ns = clock::now_ns();
        stamped.send(b"yes").expect("a send");
        assert_eq!(event(&mut *backend), Event::Received(Slot(0)));
        if let Some(stamp_ns) = backend.received_stamp_ns() {
            // Wall time is known on the run's clock to a part of a millisecond.
            assert!(stamp_ns + 2_000_000 >= before_ns && stamp_ns <= clock::now_ns());
            return;
        }
        std::thread::yield_now();
    }
    panic!("the kernel gives no stamps");
}

fn only_udp_is_reached(kernel: Kernel) {
    let udp = SocketAddr::from((Ipv6Addr::LOCALHOST, 9));
    let mut backend = backend(kernel);
    let refused = backend
        .open(Slot(0), &Peer::Tcp(udp), None)
        .expect_err("TCP");
    assert_eq!(refused.raw_os_error(), Some(libc::EPROTOTYPE));
    let mut streams = Epoll::new().expect("epoll");
    let refused = streams
        .open(Slot(0), &Peer::Udp(udp), None)
        .expect_err("UDP");
    assert_eq!(refused.raw_os_error(), Some(libc::EPROTOTYPE));
}
