//! What the tests of single backends run on, and a peer on the other side.

use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU32;

use brunt_io::backend::{ClientBackend, Event, Peer, ServerBackend, Slot};
use brunt_io::clock;
use brunt_io::epoll::Epoll;
use brunt_io::transport::Stream;
use brunt_io::uring::Uring;

use crate::common::S;

/// How long anything may take that is sure to come.
pub(crate) const LIMIT_NS: u64 = 30 * S;

/// Connects and accepts.
pub(crate) trait BothSides: ClientBackend<Transport = Stream> + ServerBackend {}

impl<B: ClientBackend<Transport = Stream> + ServerBackend> BothSides for B {}

/// An interface of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    Uring,
    /// With a ring for every so many connections.
    Rings(u32),
    Epoll,
    /// Without epoll_pwait2, as on older kernels.
    OldEpoll,
}

impl Kernel {
    /// A backend for `slots` connections, with kernel stamps on one slot in `every`.
    pub(crate) fn backend(self, slots: u32, every: u32) -> Box<dyn BothSides> {
        let mut backend: Box<dyn BothSides> = match self {
            Self::Uring => Box::new(Uring::new(slots).expect("io_uring")),
            Self::Rings(each) => Box::new(Uring::with_ring_files(slots, each).expect("io_uring")),
            Self::Epoll => Box::new(Epoll::new().expect("epoll")),
            Self::OldEpoll => Box::new(Epoll::new().expect("epoll").without_pwait2()),
        };
        backend.set_stamps(NonZeroU32::new(every));
        backend
    }
}

/// Makes a test of each case per interface of the kernel; with rings, one per connection.
macro_rules! on_every_kernel {
    ($($case:ident),+ $(,)?) => {
        mod uring {
            $(#[test] fn $case() { super::$case(crate::kernels::Kernel::Uring) })+
        }
        mod rings {
            $(#[test] fn $case() { super::$case(crate::kernels::Kernel::Rings(1)) })+
        }
        mod epoll {
            $(#[test] fn $case() { super::$case(crate::kernels::Kernel::Epoll) })+
        }
        mod old_epoll {
            $(#[test] fn $case() { super::$case(crate::kernels::Kernel::OldEpoll) })+
        }
    };
}
pub(crate) use on_every_kernel;

/// A backend of four connections, and a listening socket.
pub(crate) struct Rig {
    pub(crate) backend: Box<dyn BothSides>,
    pub(crate) listener: TcpListener,
}

impl Rig {
    pub(crate) fn new(kernel: Kernel, every: u32) -> Self {
        Self {
            backend: kernel.backend(4, every),
            listener: TcpListener::bind("127.0.0.1:0").expect("a port"),
        }
    }

    /// Begins to connect a slot.
    pub(crate) fn open(&mut self, slot: Slot) {
        let address = self.listener.local_addr().expect("an address");
        let opened = self.backend.open(slot, &Peer::Tcp(address), None);
        opened.expect("a connection attempt");
    }

    /// The other side of what is being connected.
    pub(crate) fn accept(&self) -> TcpStream {
        self.listener.accept().expect("a connection").0
    }

    /// Connects a slot; gives the other side.
    pub(crate) fn connect(&mut self, slot: Slot) -> TcpStream {
        self.open(slot);
        assert_eq!(self.event(), Event::Connected(slot));
        let peer = self.accept();
        peer.set_nodelay(true).expect("an option");
        peer
    }

    /// The next event, which is sure to come.
    pub(crate) fn event(&mut self) -> Event {
        let event = event_within(&mut *self.backend, LIMIT_NS, Some(S));
        event.expect("something happens")
    }
}

/// The next event, if it comes in time; each wait for it is at most `wait_ns`, or a poll.
pub(crate) fn event_within(
    backend: &mut dyn BothSides,
    limit_ns: u64,
    wait_ns: Option<u64>,
) -> Option<Event> {
    let limit_ns = clock::now_ns() + limit_ns;
    loop {
        if let Some(event) = backend.next_event() {
            return Some(event);
        }
        let now_ns = clock::now_ns();
        if now_ns >= limit_ns {
            return None;
        }
        let until_ns = wait_ns.map_or(0, |wait_ns| limit_ns.min(now_ns + wait_ns));
        backend.wait(Some(until_ns)).expect("a backend");
    }
}
