//! The interface of a simulation to those who run workers in it: a kernel in virtual time.

use std::ops::Range;

use brunt_load::ProtocolSpec;
use brunt_proto::tls::{ClientSide, Negotiated, TlsError};

use crate::backend::ClientBackend;
use crate::transport::{Datagram, Stream};

/// Machine, network and servers in virtual time. Workers live in it one after the other, each with
/// a clock of its own that begins at 0 and a server of its own; what is in flight there when a
/// worker's backend is dropped comes to its end.
pub trait VirtualMachine {
    /// A worker's hold on it, where connections are byte streams.
    type Streams: ClientBackend<Transport = Stream>;
    /// A worker's hold on it, where connections are datagram sockets.
    type Datagrams: ClientBackend<Transport = Datagram>;
    /// The account of a worker's thread over the window.
    type ThreadUse;
    /// What would have been read of machine and server over the window.
    type Evidence;

    /// Fixes what all connections speak: what is planned, HTTP in the version of this name (ALPN),
    /// over TLS with `client` where that is given. Gives what TLS negotiates then. To be
    /// called before the first worker.
    ///
    /// # Errors
    ///
    /// There is nothing that both sides can do.
    fn negotiate(
        &mut self,
        planned: &ProtocolSpec,
        alpn: Option<&'static [u8]>,
        client: Option<&ClientSide>,
    ) -> Result<Option<Negotiated>, TlsError>;

    /// Streams that a server of HTTP/2 allows per connection; absent for any number.
    fn streams_max(&self) -> Option<u32>;

    /// When a signal interrupts the run, nanoseconds; absent for never.
    fn interrupt_ns(&self) -> Option<u64>;

    /// The worker of this number, which comes to life at `begin_ns`. What is drawn at random
    /// follows from its number, whichever others live in this machine.
    fn start_worker(&mut self, worker: u32, begin_ns: u64) -> Self::Streams;

    /// As `start_worker`, for a worker whose connections are datagram sockets.
    fn start_datagram_worker(&mut self, worker: u32, begin_ns: u64) -> Self::Datagrams;

    /// The clock of a worker.
    fn now_ns(&self, worker: u32) -> u64;

    /// Has accounts kept of a worker's window, which is still to come, and forgets those of an
    /// earlier one.
    fn observe(&mut self, worker: u32, window: Range<u64>);

    /// The worker is done with its window, which ends now if it has not ended before.
    fn end_window(&mut self, worker: u32);

    /// The account of a worker's thread over its window; absent where no machine is simulated.
    fn thread_use(&self, worker: u32) -> Option<Self::ThreadUse>;

    /// CPU time of a worker since it came to life, nanoseconds.
    fn cpu_ns(&self, worker: u32) -> u64;

    /// What would have been read over the windows of all workers.
    fn evidence(&self) -> Self::Evidence;
}
