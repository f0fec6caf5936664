//! Sleeps of a backend: an event on any connection ends them, and so does their deadline, to the
//! nanosecond.

use std::fs;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;

use brunt_io::backend::{Event, Peer, Slot};
use brunt_io::{clock, threads};

use crate::common::{MS, S};
use crate::kernels::{BothSides, Kernel, on_every_kernel};

/// Connections, which are more than the rings with little room hold.
const CONNECTIONS: u32 = 7;
/// How long a sleep lasts that nothing ends.
const SLEEP_NS: u64 = 20 * S;
/// A sleep that is ended lasts less, on the busiest of machines.
const ENDED_NS: u64 = SLEEP_NS / 2;

on_every_kernel! {
    an_event_ends_a_sleep,
    a_connection_ends_a_sleep,
    a_sleep_ends_with_its_deadline,
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

/// Of rings, several with room for two connections each.
fn backend(kernel: Kernel) -> Box<dyn BothSides> {
    let kernel = match kernel {
        Kernel::Rings(_) => Kernel::Rings(2),
        other => other,
    };
    kernel.backend(CONNECTIONS, 0)
}

fn an_event_ends_a_sleep(kernel: Kernel) {
    ends_sleeps(backend(kernel));
}

#[test]
fn an_event_ends_a_sleep_that_gathers_on_several_rings() {
    let mut gathering = backend(Kernel::Rings(2));
    gathering.set_gathering(MS);
    ends_sleeps(gathering);
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
            let against = CONNECTIONS - 1 - number;
            let index = if round == 1 { against } else { number };
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

/// Offers in another ring than the first are taken while the worker sleeps.
fn a_connection_ends_a_sleep(kernel: Kernel) {
    let mut backend = backend(kernel);
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

/// A sleep never ends before its deadline, nor a millisecond after it each time. On a busy machine
/// one may end late, but not all.
fn a_sleep_ends_with_its_deadline(kernel: Kernel) {
    let mut backend = backend(kernel);
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
