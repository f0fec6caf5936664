//! What only io_uring can get wrong: submissions that the kernel does not take, and operations that
//! complete while their connection is closed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use super::*;
use crate::backend::Outgoing;

const SLOT: Slot = Slot(0);
const LIMIT_NS: u64 = 30_000_000_000;
const LIMIT: Duration = Duration::from_nanos(LIMIT_NS);

fn listener() -> (TcpListener, Peer) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = Peer::Tcp(listener.local_addr().unwrap());
    (listener, peer)
}

fn event(uring: &mut Uring) -> Event {
    let until_ns = clock::now_ns() + LIMIT_NS;
    loop {
        if let Some(event) = uring.next_event() {
            return event;
        }
        assert!(clock::now_ns() < until_ns, "nothing happens");
        uring.wait(Some(until_ns)).unwrap();
    }
}

fn turn(uring: &mut Uring) {
    uring.wait(Some(0)).unwrap();
    assert_eq!(uring.next_event(), None);
}

fn connect(uring: &mut Uring, slot: Slot, listener: &TcpListener, peer: &Peer) -> TcpStream {
    uring.open(slot, peer, None).unwrap();
    assert_eq!(event(uring), Event::Connected(slot));
    let (other, _) = listener.accept().unwrap();
    other.set_read_timeout(Some(LIMIT)).unwrap();
    other
}

#[test]
fn what_the_kernel_did_not_take_meets_no_other_connection() {
    let (listener, peer) = listener();
    let mut uring = Uring::new(4).unwrap();
    let payload = uring.add_payload((*b"stale").into());
    for is_owned in [true, false] {
        let mut first = connect(&mut uring, SLOT, &listener, &peer);
        uring.send(
            SLOT,
            if is_owned {
                Outgoing::Owned(b"stale".to_vec())
            } else {
                Outgoing::Shared {
                    payload,
                    start: 0,
                    end: 5,
                }
            },
        );
        // Also when the slot is to be used again.
        uring.rings[0].refuse(2);
        uring.close(SLOT);
        let refused = uring.open(SLOT, &peer, None).unwrap_err();
        assert_eq!(refused.raw_os_error(), Some(libc::ENOBUFS));
        let mut second = connect(&mut uring, SLOT, &listener, &peer);
        uring.send(SLOT, Outgoing::Owned(b"fresh".to_vec()));
        assert_eq!(event(&mut uring), Event::Sent(SLOT));
        let mut bytes = [0; 5];
        second.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"fresh");
        // Nor did it go where it was meant to: that connection is closed.
        let mut bytes = Vec::new();
        first.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, b"");
        uring.close(SLOT);
    }
    assert!(uring.abandoned.is_empty());
}

#[test]
fn what_is_accepted_into_a_closed_slot_is_closed() {
    let (listener, peer) = listener();
    listener.set_nonblocking(true).unwrap();
    let Peer::Tcp(address) = peer else {
        unreachable!("it is TCP")
    };
    for is_refused in [false, true] {
        let mut uring = Uring::new(4).unwrap();
        uring.listen(listener.as_fd()).unwrap();
        uring.accept(SLOT);
        turn(&mut uring);
        let mut early = TcpStream::connect(address).unwrap();
        early.set_read_timeout(Some(LIMIT)).unwrap();
        if is_refused {
            // The cancellation waits while the accept completes.
            uring.rings[0].refuse(2);
        }
        uring.close(SLOT);
        for _ in 0..3 {
            turn(&mut uring);
        }
        if is_refused {
            assert_eq!(early.read(&mut [0]).unwrap(), 0, "the socket is closed");
        } else {
            // It was not accepted: the next offer finds it.
            uring.accept(Slot(1));
            assert_eq!(event(&mut uring), Event::Accepted(Slot(1)));
            early.write_all(b"hello").unwrap();
            assert_eq!(event(&mut uring), Event::Received(Slot(1)));
        }
        // The slot can be used again.
        uring.accept(SLOT);
        let _late = TcpStream::connect(address).unwrap();
        assert_eq!(event(&mut uring), Event::Accepted(SLOT));
    }
}

#[test]
fn sends_of_closed_connections_are_given_up() {
    const CONNECTIONS: u32 = 20;
    let (listener, peer) = listener();
    let mut uring = Uring::new(CONNECTIONS).unwrap();
    let mut peers: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|number| connect(&mut uring, Slot(number), &listener, &peer))
        .collect();
    for number in 0..CONNECTIONS {
        uring.send(Slot(number), Outgoing::Owned(vec![0; 8 << 20]));
    }
    turn(&mut uring);
    for number in 0..CONNECTIONS {
        uring.close(Slot(number));
    }
    assert_eq!(uring.abandoned.len(), CONNECTIONS as usize);
    let until_ns = clock::now_ns() + LIMIT_NS;
    while !uring.abandoned.is_empty() {
        assert!(clock::now_ns() < until_ns, "{}", uring.abandoned.len());
        turn(&mut uring);
    }
    for peer in &mut peers {
        let end = io::copy(peer, &mut io::sink()).unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::ConnectionReset);
    }
}
