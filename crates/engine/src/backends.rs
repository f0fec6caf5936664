//! What makes the backends of workers: the kernel's, or others around them. TLS is around those of
//! streams, where it is spoken over them.

use std::io;

use brunt_io::backend::ClientBackend;
use brunt_io::epoll::Epoll;
use brunt_io::tls::Tls;
use brunt_io::transport::{Datagram, Stream};
use brunt_io::uring::Uring;
use brunt_proto::tls::ClientSide;

/// Makes backends, of either transport.
pub(crate) trait Backends {
    /// Where they are made.
    type Machine;
    /// Of byte streams.
    type Streams: ClientBackend<Transport = Stream>;
    /// Of datagrams.
    type Datagrams: ClientBackend<Transport = Datagram>;

    /// For the worker with this number, which has so many connections.
    fn streams(
        &self,
        machine: &mut Self::Machine,
        worker: u32,
        slots: u32,
    ) -> io::Result<Self::Streams>;

    /// The same.
    fn datagrams(
        &self,
        machine: &mut Self::Machine,
        worker: u32,
        slots: u32,
    ) -> io::Result<Self::Datagrams>;
}

/// The kernel's io_uring.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnUring;

impl Backends for OnUring {
    type Machine = ();
    type Streams = Uring;
    type Datagrams = Uring<Datagram>;

    fn streams(&self, _here: &mut (), _worker: u32, slots: u32) -> io::Result<Uring> {
        Uring::new(slots)
    }

    fn datagrams(&self, _here: &mut (), _worker: u32, slots: u32) -> io::Result<Uring<Datagram>> {
        Uring::of_datagrams(slots)
    }
}

/// The kernel's epoll.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnEpoll;

impl Backends for OnEpoll {
    type Machine = ();
    type Streams = Epoll;
    type Datagrams = Epoll<Datagram>;

    fn streams(&self, _here: &mut (), _worker: u32, _slots: u32) -> io::Result<Epoll> {
        Epoll::new()
    }

    fn datagrams(&self, _here: &mut (), _worker: u32, _slots: u32) -> io::Result<Epoll<Datagram>> {
        Epoll::of_datagrams()
    }
}

/// TLS over the streams of others.
#[derive(Clone, Debug)]
pub(crate) struct OverTls<B> {
    pub(crate) inner: B,
    pub(crate) client: TlsClient,
}

impl<B: Backends> Backends for OverTls<B> {
    type Machine = B::Machine;
    type Streams = Tls<B::Streams>;
    type Datagrams = B::Datagrams;

    fn streams(
        &self,
        machine: &mut B::Machine,
        worker: u32,
        slots: u32,
    ) -> io::Result<Tls<B::Streams>> {
        let TlsClient { side, alpn } = &self.client;
        let inner = self.inner.streams(machine, worker, slots)?;
        Ok(Tls::client(inner, side.clone(), *alpn))
    }

    fn datagrams(
        &self,
        machine: &mut B::Machine,
        worker: u32,
        slots: u32,
    ) -> io::Result<B::Datagrams> {
        self.inner.datagrams(machine, worker, slots)
    }
}

/// The client's side of TLS, as negotiated.
#[derive(Clone, Debug)]
pub(crate) struct TlsClient {
    pub(crate) side: ClientSide,
    /// What every server is to choose (ALPN).
    pub(crate) alpn: Option<&'static [u8]>,
}
