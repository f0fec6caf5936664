//! What a peer said before it closed is read, whatever becomes of the send meanwhile: over both
//! kernel interfaces.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use crate::backend::{Backend, ClientBackend, Event, Outgoing, Peer, Slot};
use crate::clock;
use crate::epoll::Epoll;
use crate::transport::Stream;
use crate::uring::Uring;

const SLOT: Slot = Slot(0);
const LIMIT_NS: u64 = 30_000_000_000;
/// More than sockets hold.
const UPLOAD_BYTES: usize = 32 << 20;

/// What a peer answers without having read everything: its reset follows.
fn answer(mut other: TcpStream, has_finished: bool) {
    other.read_exact(&mut [0]).unwrap();
    // A connection is reset where it is closed with bytes unread: some have to be there by then.
    other.peek(&mut [0]).unwrap();
    other.write_all(b"early reply").unwrap();
    if has_finished {
        other.shutdown(Shutdown::Write).unwrap();
    }
}

fn connect<B: ClientBackend<Transport = Stream>>(backend: &mut B) -> TcpStream {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = Peer::Tcp(listener.local_addr().unwrap());
    backend.open(SLOT, &peer, None).unwrap();
    assert_eq!(next_event(backend), Event::Connected(SLOT));
    listener.accept().unwrap().0
}

fn next_event(backend: &mut impl Backend<Transport = Stream>) -> Event {
    let until_ns = clock::now_ns() + LIMIT_NS;
    loop {
        if let Some(event) = backend.next_event() {
            return event;
        }
        assert!(clock::now_ns() < until_ns, "nothing happens");
        backend.wait(Some(until_ns)).unwrap();
    }
}

/// What is received on the connection, and the event that ends it.
pub(crate) fn rest(backend: &mut impl Backend<Transport = Stream>) -> (Vec<u8>, Event) {
    let mut received = Vec::new();
    loop {
        match next_event(backend) {
            Event::Received(_) => received.extend_from_slice(backend.received()),
            Event::Sent(_) => {}
            end => return (received, end),
        }
    }
}

fn check_ends(backend: &mut impl Backend<Transport = Stream>, has_finished: bool) {
    let (received, end) = rest(backend);
    assert_eq!(received.as_slice(), b"early reply");
    let is_expected = match end {
        Event::Ended(_) => has_finished,
        Event::SendFailed(_, errno) | Event::ReceiveFailed(_, errno) => {
            !has_finished && errno == libc::ECONNRESET
        }
        _ => false,
    };
    assert!(is_expected, "{end:?}");
    backend.close(SLOT);
}

/// The send is waiting when the answer comes.
fn check_uploads<B: ClientBackend<Transport = Stream>>(mut backend: B) {
    for has_finished in [false, true] {
        let other = connect(&mut backend);
        backend.send(SLOT, Outgoing::Owned(vec![0; UPLOAD_BYTES]));
        backend.wait(Some(0)).unwrap();
        assert_eq!(backend.next_event(), None);
        answer(other, has_finished);
        check_ends(&mut backend, has_finished);
    }
}

/// The send begins after the answer came, and before anybody looked.
fn check_late_sends<B: ClientBackend<Transport = Stream>>(mut backend: B) {
    let payload = backend.add_payload((*b"request").into());
    let shared = || Outgoing::Shared {
        payload,
        start: 0,
        end: 7,
    };
    for is_shared in [true, false] {
        for has_finished in [false, true] {
            let other = connect(&mut backend);
            backend.send(SLOT, shared());
            assert_eq!(next_event(&mut backend), Event::Sent(SLOT));
            backend.wait(Some(0)).unwrap();
            answer(other, has_finished);
            let next = if is_shared {
                shared()
            } else {
                Outgoing::Owned(b"request".to_vec())
            };
            backend.send(SLOT, next);
            check_ends(&mut backend, has_finished);
        }
    }
}

#[test]
fn epoll_shows_what_came_before_a_send_failed() {
    check_uploads(Epoll::new().unwrap());
    check_late_sends(Epoll::new().unwrap());
}

#[test]
fn uring_shows_what_came_before_a_send_failed() {
    check_uploads(Uring::new(4).unwrap());
    check_late_sends(Uring::new(4).unwrap());
}
