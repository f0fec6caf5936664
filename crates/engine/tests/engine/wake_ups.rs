//! Sleeps of a backend: an event on any connection ends them, and so does their deadline, to the
//! nanosecond.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use brunt_io::backend::{ClientBackend, Event, Peer, ServerBackend, Slot};
use brunt_io::epoll::Epoll;
use brunt_io::uring::Uring;
use brunt_io::{clock, threads};

use crate::common::{MS, S};

/// Connections, which are more than the rings with little room hold.
const CONNECTIONS: u32 = 7;
/// How long a sleep lasts that nothing ends.
const SLEEP_NS: u64 = 20 * S;
/// A sleep that is ended lasts less, on the busiest of machines.
const ENDED_NS: u64 = SLEEP_NS / 2;

/// Connects and accepts.
trait BothSides: ClientBackend + ServerBackend {}

impl<B: ClientBackend + ServerBackend> BothSides for B {}

fn one_ring() -> Box<dyn BothSides> {
    Box::new(Uring::new(CONNECTIONS).expect("io_uring"))
}

fn several_rings() -> Box<dyn BothSides> {
    Box::new(Uring::with_ring_files(CONNECTIONS, 2).expect("io_uring"))
}

fn gathering_rings() -> Box<dyn BothSides> {
    let mut backend = several_rings();
    backend.set_gathering(MS);
    backend
}

fn epoll() -> Box<dyn BothSides> {
    Box::new(Epoll::new().expect("epoll"))
}

/// On a kernel without epoll_pwait2.
fn old_epoll() -> Box<dyn BothSides> {
    Box::new(Epoll::new().expect("epoll").without_pwait2())
}

/// Sleeps until there is an event.
fn slept(backend: &mut dyn BothSides) -> Event {
    let from_ns = clock::now_ns();
    loop {
        backend.wait(Some(from_ns + SLEEP_NS)).expect("a backend");
        let slept_ns = clock::now_ns() - from_ns;
        assert!(slept_ns < ENDED_NS, "the sleep went on for {slept_ns} ns");
        if let Some(event) = backend.next_event() {
            return event;
        }
    }
}

/// Waits until the thread with this number sleeps. It may be about to wake: then what follows tests
/// less, and fails no more.
fn sleeps(thread: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/self/task/{thread}/stat")).expect("a thread");
    stat.rsplit_once(')')
        .is_some_and(|(_, rest)| rest.trim_start().starts_with('S'))
}

fn ends_sleeps(mut backend: Box<dyn BothSides>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let peers: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|number| {
            let opened = backend.open(Slot(number), &Peer::Tcp(address), None);
            opened.expect("a connection attempt");
            assert_eq!(slept(&mut *backend), Event::Connected(Slot(number)));
            listener.accept().expect("a connection").0
        })
        .collect();
    let sleeper = rustix::thread::gettid().as_raw_nonzero().get();
    for round in 0..3 {
        // The rings' order, and against it.
        for number in 0..CONNECTIONS {
            let index = if round == 1 {
                CONNECTIONS - 1 - number
            } else {
                number
            };
            let mut peer = peers[index as usize].try_clone().expect("a descriptor");
            let writer = threads::spawn("writer", move || {
                while !sleeps(sleeper) {
                    std::thread::yield_now();
                }
                peer.write_all(b"x").expect("a write");
            });
            assert_eq!(slept(&mut *backend), Event::Received(Slot(index)));
            assert_eq!(backend.received(), b"x");
            assert_eq!(backend.next_event(), None);
            writer.expect("a thread").join().expect("it wrote");
        }
    }
}

#[test]
fn an_event_ends_a_sleep_on_epoll() {
    ends_sleeps(epoll());
}

#[test]
fn an_event_ends_a_sleep_on_epoll_without_pwait2() {
    ends_sleeps(old_epoll());
}

#[test]
fn an_event_ends_a_sleep_on_one_ring() {
    ends_sleeps(one_ring());
}

#[test]
fn an_event_ends_a_sleep_on_several_rings() {
    ends_sleeps(several_rings());
}

#[test]
fn an_event_ends_a_sleep_that_gathers_on_several_rings() {
    ends_sleeps(gathering_rings());
}

/// Offers in another ring than the first are taken while the worker sleeps.
fn accepts_in_its_sleep(mut backend: Box<dyn BothSides>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("an option");
    let address = listener.local_addr().expect("an address");
    backend.listen(listener.as_fd()).expect("a listener");
    let sleeper = rustix::thread::gettid().as_raw_nonzero().get();
    for number in 0..CONNECTIONS {
        backend.accept(Slot(number));
        let client = threads::spawn("client", move || {
            while !sleeps(sleeper) {
                std::thread::yield_now();
            }
            TcpStream::connect(address).expect("a connection")
        });
        assert_eq!(slept(&mut *backend), Event::Accepted(Slot(number)));
        client.expect("a thread").join().expect("it connected");
        assert_eq!(slept(&mut *backend), Event::Ended(Slot(number)));
    }
}

#[test]
fn a_connection_ends_a_sleep_on_epoll() {
    accepts_in_its_sleep(epoll());
}

#[test]
fn a_connection_ends_a_sleep_on_epoll_without_pwait2() {
    accepts_in_its_sleep(old_epoll());
}

#[test]
fn a_connection_ends_a_sleep_on_several_rings() {
    accepts_in_its_sleep(several_rings());
}

/// A sleep never ends before its deadline, nor a millisecond after it each time. On a busy machine
/// one may end late, but not all.
fn ends_with_its_deadline(mut backend: Box<dyn BothSides>) {
    let limit_ns = clock::now_ns() + S * 30;
    loop {
        let until_ns = clock::now_ns() + MS + MS / 10;
        backend.wait(Some(until_ns)).expect("a backend");
        let now_ns = clock::now_ns();
        assert!(now_ns >= until_ns, "{} ns early", until_ns - now_ns);
        assert_eq!(backend.next_event(), None);
        if now_ns < until_ns + MS / 2 {
            return;
        }
        assert!(now_ns < limit_ns, "each sleep ends with a millisecond");
    }
}

#[test]
fn a_sleep_ends_with_its_deadline_on_epoll() {
    ends_with_its_deadline(epoll());
}

#[test]
fn a_sleep_ends_with_its_deadline_on_epoll_without_pwait2() {
    ends_with_its_deadline(old_epoll());
}

#[test]
fn a_sleep_ends_with_its_deadline_on_one_ring() {
    ends_with_its_deadline(one_ring());
}
