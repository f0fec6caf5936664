//! Byte streams over the kernel's backends: stamps, ends, sleeps, and peers that read nothing or
//! send descriptors.

use std::fs;
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
use socket2::SockRef;

use crate::backend::{ClientBackend, Event, Outgoing, Peer, SendCall, ServerBackend, Slot};
use crate::epoll::Epoll;
use crate::transport::Stream;
use crate::uring::Uring;
use crate::{clock, threads};

/// On what the cases run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    Uring,
    /// With a ring for each connection, or for every few.
    Rings,
    Epoll,
    /// On a kernel without epoll_pwait2.
    OldEpoll,
}

/// Makes a test of each case per interface of the kernel.
macro_rules! on_every_kernel {
    ($($case:ident),+ $(,)?) => {
        mod uring {
            $(#[test] fn $case() { super::$case(crate::kernel_tests::Kernel::Uring) })+
        }
        mod rings {
            $(#[test] fn $case() { super::$case(crate::kernel_tests::Kernel::Rings) })+
        }
        mod epoll {
            $(#[test] fn $case() { super::$case(crate::kernel_tests::Kernel::Epoll) })+
        }
        mod old_epoll {
            $(#[test] fn $case() { super::$case(crate::kernel_tests::Kernel::OldEpoll) })+
        }
    };
}
pub(crate) use on_every_kernel;

on_every_kernel! {
    only_stamped_slots_have_stamps,
    ends_and_resets_are_seen,
    what_came_with_the_connection_is_seen,
    sends_to_a_slow_reader_are_bounded_and_in_order,
    descriptors_from_a_unix_peer_are_closed,
    an_event_ends_a_sleep,
    a_connection_ends_a_sleep,
    a_sleep_ends_with_its_deadline,
}

const MS: u64 = 1_000_000;
/// How long anything may take that is sure to come.
const LIMIT_NS: u64 = 30_000 * MS;
/// How exactly wall time is known on the run's clock: half of the quickest of several readings of
/// both clocks, with room for a machine that is busy.
const OFFSET_NS: u64 = 2 * MS;
const SLOT: Slot = Slot(0);

/// Connects and accepts.
trait BothSides: ClientBackend<Transport = Stream> + ServerBackend {}

impl<B: ClientBackend<Transport = Stream> + ServerBackend> BothSides for B {}

/// A backend, and a listening socket.
struct Rig {
    backend: Box<dyn BothSides>,
    listener: TcpListener,
}

impl Rig {
    /// For so many connections, of which rings have `each`, with kernel stamps on one slot in
    /// `every`.
    fn new(kernel: Kernel, slots: u32, each: u32, every: u32) -> Self {
        let mut backend: Box<dyn BothSides> = match kernel {
            Kernel::Uring => Box::new(Uring::new(slots).unwrap()),
            Kernel::Rings => Box::new(Uring::with_ring_files(slots, each).unwrap()),
            Kernel::Epoll => Box::new(Epoll::new().unwrap()),
            Kernel::OldEpoll => Box::new(Epoll::new().unwrap().without_pwait2()),
        };
        backend.set_stamps(NonZeroU32::new(every));
        Self {
            backend,
            listener: TcpListener::bind("127.0.0.1:0").unwrap(),
        }
    }

    /// Begins to connect a slot.
    fn open(&mut self, slot: Slot) {
        let address = self.listener.local_addr().unwrap();
        self.backend.open(slot, &Peer::Tcp(address), None).unwrap();
    }

    /// Connects a slot; gives the other side.
    fn connect(&mut self, slot: Slot) -> TcpStream {
        self.open(slot);
        assert_eq!(self.event(), Event::Connected(slot));
        let (peer, _) = self.listener.accept().unwrap();
        peer.set_nodelay(true).unwrap();
        peer
    }

    /// The next event, which is sure to come.
    fn event(&mut self) -> Event {
        self.event_within(LIMIT_NS).expect("something happens")
    }

    /// The next event, if it comes in time.
    fn event_within(&mut self, limit_ns: u64) -> Option<Event> {
        let limit_ns = clock::now_ns() + limit_ns;
        loop {
            let event = self.backend.next_event();
            if event.is_some() || clock::now_ns() >= limit_ns {
                return event;
            }
            self.backend.wait(Some(limit_ns)).unwrap();
        }
    }

    /// Has the peer write until the kernel stamps what it writes: it does when it has patched its
    /// own code.
    fn until_stamped(&mut self, slot: Slot, peer: &mut TcpStream) {
        for _ in 0..2_000 {
            peer.write_all(b"x").unwrap();
            assert_eq!(self.event(), Event::Received(slot));
            if self.backend.received_stamp_ns().is_some() {
                return;
            }
            std::thread::yield_now();
        }
        panic!("the kernel gives no stamps");
    }
}

fn only_stamped_slots_have_stamps(kernel: Kernel) {
    for (every, stamped) in [(0, &[][..]), (1, &[0, 1, 2, 3, 4]), (2, &[0, 2, 4])] {
        let mut rig = Rig::new(kernel, 4, 1, every);
        // Connected the other way round, and each slot a second time.
        for number in (0..5).rev().chain(0..5) {
            let slot = Slot(number);
            let mut peer = rig.connect(slot);
            assert_eq!(rig.backend.send_call(slot), None);
            let is_stamped = stamped.contains(&number);
            if is_stamped {
                rig.until_stamped(slot, &mut peer);
            }
            let before_ns = clock::now_ns();
            peer.write_all(b"x").unwrap();
            assert_eq!(rig.event(), Event::Received(slot));
            assert_eq!(rig.backend.received(), b"x");
            let stamp_ns = rig.backend.received_stamp_ns();
            assert_eq!(stamp_ns.is_some(), is_stamped);
            let possible_ns = before_ns.saturating_sub(OFFSET_NS)..=clock::now_ns();
            assert!(stamp_ns.is_none_or(|at_ns| possible_ns.contains(&at_ns)));
            let before_ns = clock::now_ns();
            rig.backend.send(slot, Outgoing::Owned(b"ping".to_vec()));
            assert_eq!(rig.event(), Event::Sent(slot));
            assert_eq!(rig.backend.received_stamp_ns(), None);
            rig.backend.wait(Some(0)).unwrap();
            let after_ns = clock::now_ns();
            let send_call = rig.backend.send_call(slot);
            assert_eq!(send_call.is_some(), is_stamped);
            if let Some(SendCall { from_ns, to_ns }) = send_call {
                assert!(before_ns <= from_ns && from_ns <= to_ns && to_ns <= after_ns);
            }
            let mut bytes = [0; 4];
            peer.read_exact(&mut bytes).unwrap();
            assert_eq!(&bytes, b"ping");
            rig.backend.close(slot);
        }
        assert_eq!(rig.backend.stamps_clamped(), 0);
    }
}

fn ends_and_resets_are_seen(kernel: Kernel) {
    let mut rig = Rig::new(kernel, 4, 1, 1);
    let reset = |peer: TcpStream| {
        SockRef::from(&peer)
            .set_linger(Some(Duration::ZERO))
            .unwrap()
    };
    let is_reset = Event::ReceiveFailed(SLOT, libc::ECONNRESET);
    for _ in 0..10 {
        drop(rig.connect(SLOT));
        assert_eq!(rig.event(), Event::Ended(SLOT));
        assert_eq!(rig.backend.received_stamp_ns(), None);
        rig.backend.close(SLOT);
        let mut peer = rig.connect(SLOT);
        peer.write_all(b"last words").unwrap();
        drop(peer);
        assert_eq!(rig.event(), Event::Received(SLOT));
        assert_eq!(rig.backend.received(), b"last words");
        assert_eq!(rig.event(), Event::Ended(SLOT));
        rig.backend.close(SLOT);
        reset(rig.connect(SLOT));
        assert_eq!(rig.event(), is_reset);
        rig.backend.close(SLOT);
        // A reset right after the accept is no failed attempt.
        rig.open(SLOT);
        rig.backend.wait(Some(0)).unwrap();
        reset(rig.listener.accept().unwrap().0);
        assert_eq!(rig.event(), Event::Connected(SLOT));
        assert_eq!(rig.event(), is_reset);
        rig.backend.close(SLOT);
        // Bytes for a connection that was closed are nobody's.
        let mut peer = rig.connect(SLOT);
        peer.write_all(b"too late").unwrap();
        rig.backend.wait(Some(0)).unwrap();
        rig.backend.close(SLOT);
        assert_eq!(rig.backend.next_event(), None);
    }
}

/// A server that speaks first, or closes at once, before the client looks.
fn what_came_with_the_connection_is_seen(kernel: Kernel) {
    for text in ["first words", ""] {
        let mut rig = Rig::new(kernel, 4, 1, 1);
        rig.open(SLOT);
        if matches!(kernel, Kernel::Uring | Kernel::Rings) {
            // It connects with the first wait.
            rig.backend.wait(Some(0)).unwrap();
        }
        let (mut peer, _) = rig.listener.accept().unwrap();
        peer.write_all(text.as_bytes()).unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        assert_eq!(rig.event(), Event::Connected(SLOT));
        if !text.is_empty() {
            assert_eq!(rig.event(), Event::Received(SLOT));
            assert_eq!(rig.backend.received(), text.as_bytes());
        }
        assert_eq!(rig.event(), Event::Ended(SLOT));
    }
}

/// More than the sockets of both sides hold.
const SENT_BYTES_MAX: usize = 64 << 20;
/// Sizes of sends, used in turn: the largest is the largest that is sent without a completion.
const SIZES: [usize; 4] = [16 << 10, 40, 5_000, 1];

fn sends_to_a_slow_reader_are_bounded_and_in_order(kernel: Kernel) {
    for every in [0, 1] {
        let mut rig = Rig::new(kernel, 4, 1, every);
        let mut peer = rig.connect(SLOT);
        let bytes: Vec<u8> = (0..SIZES[0] as u32)
            .map(|at| (at ^ at >> 8) as u8)
            .collect();
        let payload = rig.backend.add_payload(bytes.clone().into());
        let (mut sent, mut sends) = (Vec::new(), 0);
        let mut send = |rig: &mut Rig, limit_ns| {
            let size = SIZES[sends % SIZES.len()];
            let start = (sends * 7) % (SIZES[0] - size + 1);
            let end = start + size;
            sends += 1;
            sent.extend_from_slice(&bytes[start..end]);
            assert!(sent.len() < SENT_BYTES_MAX, "no end");
            let (start, end) = (start as u32, end as u32);
            let part = Outgoing::Shared {
                payload,
                start,
                end,
            };
            rig.backend.send(SLOT, part);
            rig.event_within(limit_ns)
        };
        // Until the peer, which does not read, is felt.
        while send(&mut rig, 300 * MS) == Some(Event::Sent(SLOT)) {}
        let read = move || {
            let mut bytes = Vec::new();
            peer.read_to_end(&mut bytes).map(|_| bytes)
        };
        let reader = threads::spawn("reader", read).unwrap();
        assert_eq!(rig.event(), Event::Sent(SLOT));
        for _ in 0..50 {
            assert_eq!(send(&mut rig, LIMIT_NS), Some(Event::Sent(SLOT)));
        }
        // What the kernel took is sent after the close.
        rig.backend.close(SLOT);
        rig.backend.wait(Some(0)).unwrap();
        let bytes = reader.join().unwrap().unwrap();
        assert_eq!(bytes.len(), sent.len());
        assert!(bytes == sent, "in another order");
    }
}

fn descriptors_from_a_unix_peer_are_closed(kernel: Kernel) {
    for every in [0, 1] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let sent = directory.path().join("sent");
        let file = fs::File::create(&sent).unwrap();
        let sent = sent.canonicalize().unwrap();
        let mut rig = Rig::new(kernel, 4, 1, every);
        rig.backend.open(SLOT, &Peer::Unix(path), None).unwrap();
        assert_eq!(rig.event(), Event::Connected(SLOT));
        let (peer, _) = listener.accept().unwrap();
        for count in 1..=40 {
            let descriptors = vec![file.as_fd(); count % 20 + 1];
            let mut room = [MaybeUninit::uninit(); 128];
            let mut control = SendAncillaryBuffer::new(&mut room);
            assert!(control.push(SendAncillaryMessage::ScmRights(&descriptors)));
            let parts = [IoSlice::new(b"hello")];
            rustix::net::sendmsg(&peer, &parts, &mut control, SendFlags::empty()).unwrap();
            assert_eq!(rig.event(), Event::Received(SLOT));
            assert_eq!(rig.backend.received(), b"hello");
            // The kernel stamps nothing there.
            assert_eq!(rig.backend.received_stamp_ns(), None);
            assert_eq!(open_descriptors(&sent), 1, "after {count}");
        }
    }
}

/// How many of this process's descriptors are of the file at `path`.
fn open_descriptors(path: &Path) -> usize {
    let links = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = links.filter_map(|link| fs::read_link(link.path()).ok());
    targets.filter(|target| target == path).count()
}

/// Connections, which are more than the rings with little room hold.
const CONNECTIONS: u32 = 7;
/// How long a sleep lasts that nothing ends. One that is ended lasts less than half of it, on the
/// busiest of machines.
const SLEEP_NS: u64 = 20_000 * MS;

/// Rings have room for two connections each.
fn sleeping_rig(kernel: Kernel) -> Rig {
    Rig::new(kernel, CONNECTIONS, 2, 0)
}

/// Sleeps until there is an event, for which `cause` is responsible: it runs while this sleeps.
fn slept(rig: &mut Rig, cause: impl FnOnce() + Send + 'static) -> Event {
    let sleeper = rustix::thread::gettid().as_raw_nonzero();
    let cause = move || {
        // It may be about to wake: then what follows tests less, and fails no more.
        let is_asleep = || {
            let stat = fs::read_to_string(format!("/proc/self/task/{sleeper}/stat")).unwrap();
            let (_, rest) = stat.rsplit_once(')').unwrap();
            rest.trim_start().starts_with('S')
        };
        while !is_asleep() {
            std::thread::yield_now();
        }
        cause();
    };
    let thread = threads::spawn("cause", cause).unwrap();
    let from_ns = clock::now_ns();
    let event = rig.event_within(SLEEP_NS).expect("an event");
    let slept_ns = clock::now_ns() - from_ns;
    assert!(
        slept_ns < SLEEP_NS / 2,
        "the sleep went on for {slept_ns} ns"
    );
    thread.join().unwrap();
    event
}

fn an_event_ends_a_sleep(kernel: Kernel) {
    for gather_ns in [0, MS] {
        let mut rig = sleeping_rig(kernel);
        rig.backend.set_gathering(gather_ns);
        let peers = (0..CONNECTIONS).map(|number| rig.connect(Slot(number)));
        let peers: Vec<_> = peers.collect();
        // The rings' order, and against it.
        for number in (0..CONNECTIONS).chain((0..CONNECTIONS).rev()) {
            let mut peer = peers[number as usize].try_clone().unwrap();
            let event = slept(&mut rig, move || peer.write_all(b"x").unwrap());
            assert_eq!(event, Event::Received(Slot(number)));
            assert_eq!(rig.backend.received(), b"x");
            assert_eq!(rig.backend.next_event(), None);
        }
    }
}

/// Offers in another ring than the first are taken while the worker sleeps.
fn a_connection_ends_a_sleep(kernel: Kernel) {
    let mut rig = sleeping_rig(kernel);
    rig.listener.set_nonblocking(true).unwrap();
    let address = rig.listener.local_addr().unwrap();
    rig.backend.listen(rig.listener.as_fd()).unwrap();
    for number in 0..CONNECTIONS {
        rig.backend.accept(Slot(number));
        let event = slept(&mut rig, move || drop(TcpStream::connect(address).unwrap()));
        assert_eq!(event, Event::Accepted(Slot(number)));
        assert_eq!(rig.event(), Event::Ended(Slot(number)));
    }
}

/// A sleep never ends before its deadline, nor a millisecond after it each time. On a busy machine
/// one may end late, but not all.
fn a_sleep_ends_with_its_deadline(kernel: Kernel) {
    let mut rig = sleeping_rig(kernel);
    let limit_ns = clock::now_ns() + LIMIT_NS;
    loop {
        let until_ns = clock::now_ns() + MS + MS / 10;
        rig.backend.wait(Some(until_ns)).unwrap();
        let now_ns = clock::now_ns();
        assert!(now_ns >= until_ns, "{} ns early", until_ns - now_ns);
        assert_eq!(rig.backend.next_event(), None);
        if now_ns < until_ns + MS / 2 {
            return;
        }
        assert!(now_ns < limit_ns, "each sleep ends with a millisecond");
    }
}
