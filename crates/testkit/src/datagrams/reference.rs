//! The reference server of HTTP/3 in simulation: its socket, and what passes between that and the
//! network.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::rc::Rc;

use brunt_io::backend::Payloads;
use brunt_io::listener::DatagramListener;
use brunt_io::transport::{self, OutgoingDatagrams, ReceivedDatagrams};
use brunt_proto::quic::TransportError;
use brunt_proto::tls::ServerSide;
use brunt_server::{Counters, Hosted, Http2Options};

use super::datagram::Datagram;
use crate::reference::Wakes;

/// What passes between the network and the server's socket.
#[derive(Debug, Default)]
struct Exchange {
    now_ns: u64,
    arrivals: VecDeque<(SocketAddr, Datagram)>,
    sent: VecDeque<(SocketAddr, Datagram)>,
}

/// The server's socket. Work takes no time.
#[derive(Debug)]
struct ServerEnd {
    exchange: Rc<RefCell<Exchange>>,
    payloads: Payloads,
    received: Option<Datagram>,
}

impl DatagramListener for ServerEnd {
    fn now_ns(&self) -> u64 {
        self.exchange.borrow().now_ns
    }

    fn send(&mut self, to: SocketAddr, outgoing: OutgoingDatagrams) {
        let mut exchange = self.exchange.borrow_mut();
        for bytes in outgoing.bytes.chunks(outgoing.segment_bytes.get().into()) {
            let datagram = Datagram {
                bytes: bytes.into(),
                ecn: outgoing.ecn,
            };
            exchange.sent.push_back((to, datagram));
        }
        self.payloads.recycle::<transport::Datagram>(outgoing);
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.payloads.take_buffer()
    }

    fn wait(&mut self, _until_ns: Option<u64>) -> io::Result<()> {
        Ok(())
    }

    fn next_arrival(&mut self) -> Option<SocketAddr> {
        let (from, datagram) = self.exchange.borrow_mut().arrivals.pop_front()?;
        self.received = Some(datagram);
        Some(from)
    }

    fn received(&self) -> ReceivedDatagrams<'_> {
        let Some(datagram) = &self.received else {
            return ReceivedDatagrams::NONE;
        };
        let length = u16::try_from(datagram.bytes.len()).ok();
        ReceivedDatagrams {
            bytes: &datagram.bytes,
            segment_bytes: length.and_then(NonZeroU16::new).unwrap_or(NonZeroU16::MAX),
            ecn: datagram.ecn,
            dropped: 0,
        }
    }
}

/// The reference server of one network.
#[derive(Debug)]
pub(super) struct Reference {
    server: Hosted,
    exchange: Rc<RefCell<Exchange>>,
    wakes: Wakes,
}

impl Reference {
    pub(super) fn new(http2: Http2Options, tls: &ServerSide) -> Result<Self, TransportError> {
        let exchange = Rc::<RefCell<Exchange>>::default();
        let listener = ServerEnd {
            exchange: Rc::clone(&exchange),
            payloads: Payloads::default(),
            received: None,
        };
        Ok(Self {
            server: Hosted::of_datagrams(listener, http2, tls)?,
            exchange,
            wakes: Wakes::default(),
        })
    }

    pub(super) fn counters(&self) -> Counters {
        self.server.counters()
    }

    pub(super) fn arrived(&self, from: SocketAddr, datagram: Datagram) {
        let arrival = (from, datagram);
        self.exchange.borrow_mut().arrivals.push_back(arrival);
    }

    /// Does all that there is to do at this instant: what it sends, and when it is to go on by
    /// itself, where that is news.
    pub(super) fn settle(&mut self, at_ns: u64) -> (VecDeque<(SocketAddr, Datagram)>, Option<u64>) {
        self.exchange.borrow_mut().now_ns = at_ns;
        // This socket never fails.
        let wakes_ns = self.server.settle().unwrap_or(None);
        let sent = std::mem::take(&mut self.exchange.borrow_mut().sent);
        (sent, self.wakes.news_ns(at_ns, wakes_ns))
    }
}
