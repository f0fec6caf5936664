//! One UDP socket that a server shares among its clients: the trait of it, and the socket itself as
//! poll(2) waits for it.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::backend::Payloads;
use crate::clock;
use crate::datagrams::{self, About, RECEIVED_BYTES_MAX};
use crate::epoll::timespec;
use crate::transport::{Datagram, OutgoingDatagrams, ReceivedDatagrams};

/// Receives before the next wait, at most.
const RECEIVES_MAX: u32 = 64;

/// A UDP socket that is not connected: what comes has a sender, what is sent an address.
///
/// The order of calls in one turn: `send` as needed, then `wait`, then `next_arrival` until it
/// gives `None`. What was asked for may be put off until `wait`.
pub trait DatagramListener {
    /// Nanoseconds on the one monotonic clock (virtual in simulation).
    fn now_ns(&self) -> u64;

    /// Sends, in the order of the calls. What the kernel refuses is lost, as it might be later.
    fn send(&mut self, to: SocketAddr, datagrams: OutgoingDatagrams);

    /// An empty buffer with capacity, from earlier sends, or a new one.
    fn take_buffer(&mut self) -> Vec<u8>;

    /// Hands everything to the kernel and waits until something came or until `until_ns` (forever
    /// when absent; not at all when it has passed).
    ///
    /// # Errors
    ///
    /// Only what leaves the socket unusable.
    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()>;

    /// Whose datagrams come next, if there are any without waiting; [`received`](Self::received)
    /// shows them until the next call of this or of `wait`.
    fn next_arrival(&mut self) -> Option<SocketAddr>;

    /// What came with the latest arrival.
    fn received(&self) -> ReceivedDatagrams<'_>;
}

/// A listener that waits by poll(2).
#[derive(Debug)]
pub struct PolledListener {
    socket: Arc<OwnedFd>,
    buffer: Vec<u8>,
    received: usize,
    about: About,
    /// A send call takes one datagram alone.
    is_one_by_one: bool,
    /// What the socket had no room for, and of the first how many bytes were taken.
    unsent: VecDeque<(SocketAddr, OutgoingDatagrams)>,
    taken: usize,
    /// Receives that may still come before the next wait.
    receives: u32,
    payloads: Payloads,
}

impl PolledListener {
    /// Listens on a socket of [`listen_udp`](crate::socket::listen_udp), which nobody else uses.
    ///
    /// # Errors
    ///
    /// The socket cannot be made non-blocking.
    pub fn new(socket: Arc<OwnedFd>) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&socket, true)?;
        Ok(Self {
            socket,
            buffer: vec![0; RECEIVED_BYTES_MAX],
            received: 0,
            about: About::default(),
            is_one_by_one: false,
            unsent: VecDeque::new(),
            taken: 0,
            receives: 0,
            payloads: Payloads::default(),
        })
    }

    /// Sends what waits, as far as there is room.
    fn push_out(&mut self) {
        while let Some((to, datagrams)) = self.unsent.front() {
            let (socket, to) = (self.socket.as_fd(), Some(*to));
            let is_one_by_one = &mut self.is_one_by_one;
            if datagrams::send_all(socket, to, datagrams, &mut self.taken, is_one_by_one).is_none()
            {
                return;
            }
            self.taken = 0;
            if let Some((_, datagrams)) = self.unsent.pop_front() {
                self.payloads.recycle::<Datagram>(datagrams);
            }
        }
    }
}

impl DatagramListener for PolledListener {
    fn now_ns(&self) -> u64 {
        clock::now_ns()
    }

    fn send(&mut self, to: SocketAddr, datagrams: OutgoingDatagrams) {
        self.unsent.push_back((to, datagrams));
        self.push_out();
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.payloads.take_buffer()
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        let left_ns = |until_ns: u64| until_ns.saturating_sub(clock::now_ns());
        let timeout = until_ns.map(|until_ns| timespec(left_ns(until_ns)));
        let interest = if self.unsent.is_empty() {
            PollFlags::IN
        } else {
            PollFlags::IN | PollFlags::OUT
        };
        let mut polled = [PollFd::new(&self.socket, interest)];
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let events = polled[0].revents();
        if events.contains(PollFlags::OUT) {
            self.push_out();
        }
        // An error of the socket is taken by the next receive.
        self.receives = if events.intersects(PollFlags::IN | PollFlags::ERR) {
            RECEIVES_MAX
        } else {
            0
        };
        Ok(())
    }

    fn next_arrival(&mut self) -> Option<SocketAddr> {
        self.received = 0;
        while self.receives > 0 {
            self.receives -= 1;
            let socket = self.socket.as_fd();
            match datagrams::receive_from(socket, &mut self.buffer) {
                Ok((bytes, about, Some(from))) if bytes > 0 => {
                    self.received = bytes;
                    self.about = about;
                    return Some(from);
                }
                Err(Errno::AGAIN) => self.receives = 0,
                // A datagram without bytes says nothing. An error is of an earlier send.
                Ok(_) | Err(_) => {}
            }
        }
        None
    }

    fn received(&self) -> ReceivedDatagrams<'_> {
        self.about.show(&self.buffer[..self.received])
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::num::NonZeroU16;
    use std::time::Duration;

    use super::*;
    use crate::socket;
    use crate::transport::Ecn;

    const MS: u64 = 1_000_000;
    /// A listener that hangs fails the test instead of holding it up.
    const LIMIT_NS: u64 = 10_000 * MS;

    /// A listener with its address.
    fn listener() -> (PolledListener, SocketAddr) {
        let socket = socket::listen_udp(([127, 0, 0, 1], 0).into(), false).expect("a socket");
        let address = socket::local_address(socket.as_fd()).expect("an address");
        let listener = PolledListener::new(Arc::new(socket)).expect("a socket");
        (listener, address)
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
    fn next(listener: &mut PolledListener) -> (SocketAddr, Vec<Vec<u8>>) {
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
        let (mut listener, address) = listener();
        let (one, of_one) = client(address);
        let (other, of_other) = client(address);
        one.send(b"one").expect("a send");
        assert_eq!(next(&mut listener), (of_one, vec![b"one".to_vec()]));
        other.send(b"other").expect("a send");
        assert_eq!(next(&mut listener), (of_other, vec![b"other".to_vec()]));
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
    }

    #[test]
    fn a_wait_ends_when_it_should() {
        let (mut listener, _) = listener();
        let until_ns = clock::now_ns() + 20 * MS;
        while clock::now_ns() < until_ns {
            listener.wait(Some(until_ns)).expect("a wait");
            assert_eq!(listener.next_arrival(), None);
        }
        let late_ns = clock::now_ns() - until_ns;
        assert!(late_ns < 1_000 * MS, "{late_ns}");
    }

    /// Nobody waits for a client that does not read: what finds no room there is lost.
    #[test]
    fn clients_that_read_nothing_hold_up_nobody() {
        let (mut listener, address) = listener();
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
    }

    #[test]
    fn many_datagrams_of_many_clients_all_come() {
        let (mut listener, address) = listener();
        let clients: Vec<_> = (0..50).map(|_| client(address)).collect();
        let mut seen = 0;
        for _ in 0..20 {
            for (socket, _) in &clients {
                socket.send(&[7; 1_200]).expect("a send");
            }
            let mut came = 0;
            while came < clients.len() {
                let (from, datagrams) = next(&mut listener);
                assert!(clients.iter().any(|(_, own)| *own == from));
                assert!(datagrams.iter().all(|datagram| datagram == &[7; 1_200]));
                came += datagrams.len();
            }
            seen += came;
        }
        assert_eq!(seen, 1_000);
    }
}
