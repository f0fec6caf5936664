//! Peers that read nothing, send without end, or send descriptors: what the backends do about them.

use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use brunt_io::backend::{Event, Outgoing, PayloadId, Peer, Slot};
use brunt_io::clock;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::common::{MS, S};
use crate::kernels::{Kernel, LIMIT_NS, Rig, event_within, on_every_kernel};

on_every_kernel! {
    sends_to_a_slow_reader_are_bounded_and_in_order,
    closing_gives_up_what_the_peer_did_not_read,
    a_flooding_peer_leaves_room_for_the_others,
    descriptors_from_a_unix_peer_are_closed,
    a_reset_right_after_the_accept_is_no_failed_attempt,
}

const SLOT: Slot = Slot(0);
/// More than the sockets of both sides hold.
const SENT_BYTES_MAX: usize = 64 << 20;
/// Bytes of the payload: the largest that is sent without a completion.
const PAYLOAD_BYTES: usize = 16 << 10;
/// Sizes of sends, used in turn.
const SIZES: [usize; 4] = [PAYLOAD_BYTES, 40, 5_000, 1];

/// Sends parts of one payload on [`SLOT`], and keeps what was sent.
struct Sender {
    rig: Rig,
    payload: PayloadId,
    bytes: Vec<u8>,
    sent: Vec<u8>,
    sends: usize,
}

impl Sender {
    fn new(mut rig: Rig) -> Self {
        let bytes: Vec<u8> = (0..PAYLOAD_BYTES as u32)
            .map(|at| (at ^ at >> 8) as u8)
            .collect();
        Self {
            payload: rig.backend.add_payload(bytes.clone().into()),
            rig,
            bytes,
            sent: Vec::new(),
            sends: 0,
        }
    }

    fn send(&mut self) {
        let size = SIZES[self.sends % SIZES.len()];
        let start = (self.sends * 7) % (PAYLOAD_BYTES - size + 1);
        let end = start + size;
        self.sends += 1;
        self.sent.extend_from_slice(&self.bytes[start..end]);
        let (payload, start, end) = (self.payload, start as u32, end as u32);
        let part = Outgoing::Shared {
            payload,
            start,
            end,
        };
        self.rig.backend.send(SLOT, part);
    }

    fn is_sent_within(&mut self, limit_ns: u64) -> bool {
        match event_within(&mut *self.rig.backend, limit_ns, Some(limit_ns)) {
            Some(Event::Sent(SLOT)) => true,
            None => false,
            other => panic!("{other:?}"),
        }
    }

    /// Sends until the peer, which does not read, is felt.
    fn fill(&mut self) {
        loop {
            self.send();
            if !self.is_sent_within(300 * MS) {
                return;
            }
            assert!(self.sent.len() < SENT_BYTES_MAX, "no end");
        }
    }
}

fn sends_to_a_slow_reader_are_bounded_and_in_order(kernel: Kernel) {
    for every in [0, 1] {
        let mut sender = Sender::new(Rig::new(kernel, every));
        let mut peer = sender.rig.connect(SLOT);
        sender.fill();
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            peer.read_to_end(&mut bytes).map(|_| bytes)
        });
        assert!(sender.is_sent_within(LIMIT_NS));
        for _ in 0..50 {
            sender.send();
            assert!(sender.is_sent_within(LIMIT_NS));
        }
        // What the kernel took is sent after the close.
        sender.rig.backend.close(SLOT);
        sender.rig.backend.wait(Some(0)).expect("a backend");
        let bytes = reader.join().expect("a reader").expect("all bytes");
        assert_eq!(bytes.len(), sender.sent.len());
        assert!(bytes == sender.sent, "in another order");
    }
}

fn closing_gives_up_what_the_peer_did_not_read(kernel: Kernel) {
    let mut sender = Sender::new(Rig::new(kernel, 0));
    let mut peer = sender.rig.connect(SLOT);
    sender.fill();
    sender.rig.backend.close(SLOT);
    let event = event_within(&mut *sender.rig.backend, 50 * MS, Some(S));
    assert_eq!(event, None);
    // The socket is gone, with what was in it: or the peer would wait here.
    let mut bytes = Vec::new();
    let end = peer.read_to_end(&mut bytes).expect_err("a reset");
    assert_eq!(end.kind(), std::io::ErrorKind::ConnectionReset);
    assert!(bytes.len() < sender.sent.len());
    // The slot is as good as new.
    let mut peer = sender.rig.connect(SLOT);
    sender.send();
    assert!(sender.is_sent_within(LIMIT_NS));
    sender.rig.backend.wait(Some(0)).expect("a backend");
    peer.read_exact(&mut [0]).expect("what was sent");
}

/// Writes to peers until it is ended.
struct Flood {
    ends: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Flood {
    fn start(peers: Vec<TcpStream>) -> Self {
        let ends = Arc::new(AtomicBool::new(false));
        let threads = peers.into_iter().map(|mut peer| {
            let ends = Arc::clone(&ends);
            let limit = Some(Duration::from_millis(100));
            peer.set_write_timeout(limit).expect("a limit");
            std::thread::spawn(move || {
                let bytes = vec![b'f'; 256 << 10];
                while !ends.load(Ordering::Relaxed) {
                    // What does not fit is not missed.
                    let _ = peer.write(&bytes);
                }
            })
        });
        Self {
            threads: threads.collect(),
            ends,
        }
    }

    fn end(self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("a thread that writes");
        }
    }
}

/// Bytes that all connections together may bring in one turn, however many are there.
const TURN_BYTES_MAX: usize = 8 << 20;
/// Turns after which what had come before must have been seen.
const TURNS_MAX: u32 = 4;

fn a_flooding_peer_leaves_room_for_the_others(kernel: Kernel) {
    let mut rig = Rig::new(kernel, 0);
    let mut peers: Vec<TcpStream> = (0..4).map(|number| rig.connect(Slot(number))).collect();
    let backend = &mut *rig.backend;
    let flood = Flood::start(vec![peers.remove(0)]);
    std::thread::sleep(Duration::from_millis(20));
    for round in 0..300 {
        for peer in &mut peers {
            peer.write_all(b"q").expect("a write");
        }
        let (mut heard, mut turns) = (0, 0);
        while heard < peers.len() {
            turns += 1;
            assert!(turns <= TURNS_MAX, "round {round}: {heard} heard");
            let until_ns = clock::now_ns() + LIMIT_NS;
            backend.wait(Some(until_ns)).expect("a backend");
            let mut flooded = 0;
            while let Some(event) = backend.next_event() {
                match event {
                    Event::Received(Slot(0)) => flooded += backend.received().len(),
                    Event::Received(_) => heard += backend.received().len(),
                    other => panic!("{other:?}"),
                }
            }
            assert!(flooded <= TURN_BYTES_MAX, "{flooded}");
        }
    }
    flood.end();
}

/// Each ring has buffers of its own: what one turn takes is bounded where there is one.
#[test]
fn every_flooding_peer_has_its_turn() {
    for kernel in [Kernel::Uring, Kernel::Epoll] {
        floods_take_turns(kernel);
    }
}

fn floods_take_turns(kernel: Kernel) {
    const PEERS: u32 = 12;
    let mut rig = Rig::new(kernel, 0);
    let peers = (0..PEERS).map(|number| rig.connect(Slot(number)));
    let flood = Flood::start(peers.collect());
    let backend = &mut *rig.backend;
    std::thread::sleep(Duration::from_millis(50));
    let mut bytes = [0; PEERS as usize];
    let limit_ns = clock::now_ns() + LIMIT_NS;
    while bytes.iter().any(|&bytes| bytes < 2 << 20) {
        assert!(clock::now_ns() < limit_ns, "{bytes:?}");
        let until_ns = clock::now_ns() + S;
        backend.wait(Some(until_ns)).expect("a backend");
        let mut turn = 0;
        while let Some(event) = backend.next_event() {
            let Event::Received(slot) = event else {
                panic!("{event:?}");
            };
            bytes[slot.0 as usize] += backend.received().len();
            turn += backend.received().len();
        }
        assert!(turn <= TURN_BYTES_MAX, "{turn}");
    }
    flood.end();
}

fn a_reset_right_after_the_accept_is_no_failed_attempt(kernel: Kernel) {
    for every in [0, 1] {
        let mut rig = Rig::new(kernel, every);
        for _ in 0..20 {
            rig.open(SLOT);
            rig.backend.wait(Some(0)).expect("a backend");
            let peer = rig.accept();
            let linger = rustix::net::sockopt::set_socket_linger(&peer, Some(Duration::ZERO));
            linger.expect("a socket lingers");
            drop(peer);
            assert_eq!(rig.event(), Event::Connected(SLOT));
            let reset = Event::ReceiveFailed(SLOT, rustix::io::Errno::CONNRESET.raw_os_error());
            assert_eq!(rig.event(), reset);
            rig.backend.close(SLOT);
        }
    }
}

fn descriptors_from_a_unix_peer_are_closed(kernel: Kernel) {
    for every in [0, 1] {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).expect("a socket");
        let sent = directory.path().join("sent");
        let file = std::fs::File::create(&sent).expect("a file");
        let sent = sent.canonicalize().expect("it is there");
        let mut rig = Rig::new(kernel, every);
        let opened = rig.backend.open(SLOT, &Peer::Unix(path), None);
        opened.expect("a connection attempt");
        assert_eq!(rig.event(), Event::Connected(SLOT));
        let (peer, _) = listener.accept().expect("a connection");
        for count in 1..=40 {
            let descriptors = vec![file.as_fd(); count % 20 + 1];
            let mut room = [MaybeUninit::uninit(); 128];
            let mut control = SendAncillaryBuffer::new(&mut room);
            assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
            let parts = [IoSlice::new(b"hello")];
            let outcome = rustix::net::sendmsg(&peer, &parts, &mut control, SendFlags::empty());
            outcome.expect("a message with descriptors");
            assert_eq!(rig.event(), Event::Received(SLOT));
            assert_eq!(rig.backend.received(), b"hello");
            assert_eq!(open_descriptors(&sent), 1, "after {count}");
        }
    }
}

/// How many of this process's descriptors are of the file at `path`.
fn open_descriptors(path: &std::path::Path) -> usize {
    let links = std::fs::read_dir("/proc/self/fd")
        .expect("procfs")
        .flatten();
    let targets = links.filter_map(|link| std::fs::read_link(link.path()).ok());
    targets.filter(|target| target == path).count()
}
