//! What every listener of datagrams does, on real sockets.

use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroU16;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use crate::clock;
use crate::listener::{DatagramListener, PolledListener};
use crate::socket;
use crate::transport::{Ecn, OutgoingDatagrams};
use crate::uring::UringListener;

const MS: u64 = 1_000_000;
/// A listener that hangs fails the test instead of holding it up.
const LIMIT_NS: u64 = 10_000 * MS;

/// Each of them, with its address.
fn each(test: impl Fn(&mut dyn DatagramListener, SocketAddr)) {
    for is_uring in [false, true] {
        let socket = socket::listen_udp(([127, 0, 0, 1], 0).into(), false).expect("a socket");
        let address = socket::local_address(socket.as_fd()).expect("an address");
        let socket = Arc::new(socket);
        let mut listener: Box<dyn DatagramListener> = match is_uring {
            true => Box::new(UringListener::new(socket).expect("io_uring")),
            false => Box::new(PolledListener::new(socket).expect("a socket")),
        };
        test(listener.as_mut(), address);
    }
}

fn client(address: SocketAddr) -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(address).expect("an address");
    let patience = Duration::from_nanos(LIMIT_NS);
    socket.set_read_timeout(Some(patience)).expect("an option");
    let own = socket.local_addr().expect("an address");
    (socket, own)
}

/// The next datagrams, and whose they are.
fn next(listener: &mut dyn DatagramListener) -> (SocketAddr, Vec<Vec<u8>>) {
    let until_ns = clock::now_ns() + LIMIT_NS;
    loop {
        if let Some(from) = listener.next_arrival() {
            let all = listener.received().segments().map(<[u8]>::to_vec);
            return (from, all.collect());
        }
        assert!(clock::now_ns() < until_ns, "nothing comes");
        listener.wait(Some(until_ns)).expect("a wait");
    }
}

#[test]
fn what_comes_has_a_sender_and_what_is_sent_an_address() {
    each(|listener, address| {
        let (one, of_one) = client(address);
        let (other, of_other) = client(address);
        one.send(b"one").expect("a send");
        assert_eq!(next(listener), (of_one, vec![b"one".to_vec()]));
        other.send(b"other").expect("a send");
        assert_eq!(next(listener), (of_other, vec![b"other".to_vec()]));
        for (to, ecn) in [(of_one, None), (of_other, Some(Ecn::Capable0))] {
            let mut bytes = listener.take_buffer();
            bytes.extend_from_slice(b"aaabbbc");
            let segment_bytes = NonZeroU16::new(3).expect("not 0");
            let datagrams = OutgoingDatagrams {
                bytes,
                segment_bytes,
                ecn,
            };
            listener.send(to, datagrams);
        }
        listener.wait(Some(clock::now_ns())).expect("a wait");
        assert_eq!(listener.next_arrival(), None);
        for socket in [one, other] {
            for expected in [b"aaa".as_slice(), b"bbb", b"c"] {
                let mut buffer = [0; 16];
                let length = socket.recv(&mut buffer).expect("a datagram");
                assert_eq!(&buffer[..length], expected);
            }
        }
    });
}

#[test]
fn a_wait_ends_when_it_should() {
    each(|listener, _| {
        let until_ns = clock::now_ns() + 20 * MS;
        while clock::now_ns() < until_ns {
            listener.wait(Some(until_ns)).expect("a wait");
            assert_eq!(listener.next_arrival(), None);
        }
        let late_ns = clock::now_ns() - until_ns;
        assert!(late_ns < 1_000 * MS, "{late_ns}");
    });
}

/// Nobody waits for a client that does not read: what finds no room there is lost.
#[test]
fn clients_that_read_nothing_hold_up_nobody() {
    each(|listener, address| {
        let (_silent, of_silent) = client(address);
        let (other, of_other) = client(address);
        for _ in 0..500 {
            let datagrams = OutgoingDatagrams {
                bytes: vec![b'x'; 12_000],
                segment_bytes: NonZeroU16::new(1_200).expect("not 0"),
                ecn: None,
            };
            listener.send(of_silent, datagrams);
        }
        let last = OutgoingDatagrams {
            bytes: b"last".to_vec(),
            segment_bytes: NonZeroU16::new(4).expect("not 0"),
            ecn: None,
        };
        listener.send(of_other, last);
        listener.wait(Some(clock::now_ns())).expect("a wait");
        let mut buffer = [0; 16];
        assert_eq!(other.recv(&mut buffer).expect("a datagram"), 4);
        // What was sent is taken back.
        while listener.next_arrival().is_some() {}
        assert!(listener.take_buffer().capacity() > 0);
    });
}

#[test]
fn many_datagrams_of_many_clients_all_come() {
    each(|listener, address| {
        let clients: Vec<_> = (0..50).map(|_| client(address)).collect();
        let mut seen = 0;
        for _ in 0..20 {
            for (socket, _) in &clients {
                socket.send(&[7; 1_200]).expect("a send");
            }
            let mut came = 0;
            while came < clients.len() {
                let (from, datagrams) = next(listener);
                assert!(clients.iter().any(|(_, own)| *own == from));
                assert!(datagrams.iter().all(|datagram| datagram == &[7; 1_200]));
                came += datagrams.len();
            }
            seen += came;
        }
        assert_eq!(seen, 1_000);
    });
}
