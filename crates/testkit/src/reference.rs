//! The reference server in simulation: its backend, and what passes between that and the network.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::sync::Arc;

use brunt_io::backend::{Backend, Event, Outgoing, PayloadId, Payloads, ServerBackend, Slot};
use brunt_io::transport::Stream;
use brunt_proto::tls::ServerSide;
use brunt_server::{Counters, Hosted, Http2Options};

use crate::link::LinkId;
use crate::malformed;
use crate::piece::Piece;

/// What the server asks of the network.
#[derive(Debug)]
pub(crate) enum Order {
    Send(LinkId, Rc<[u8]>),
    End(LinkId, Piece),
}

/// What passes between the network and the server's backend.
#[derive(Debug, Default)]
struct Exchange {
    now_ns: u64,
    /// Slots for connections to come, and connections that wait for one.
    offered: VecDeque<Slot>,
    waiting: VecDeque<LinkId>,
    /// The connections that the server has not closed.
    links: BTreeMap<Slot, LinkId>,
    slots: BTreeMap<LinkId, Slot>,
    events: VecDeque<(Event, Rc<[u8]>)>,
    orders: VecDeque<Order>,
}

impl Exchange {
    /// Puts connections into slots, as long as there are both.
    fn accept(&mut self) {
        while !self.offered.is_empty()
            && let Some(link) = self.waiting.pop_front()
            && let Some(slot) = self.offered.pop_front()
        {
            self.links.insert(slot, link);
            self.slots.insert(link, slot);
            self.events
                .push_back((Event::Accepted(slot), Rc::default()));
        }
    }

    /// The server is done with a slot.
    fn end(&mut self, slot: Slot, how: Piece) {
        self.events.retain(|(event, _)| event.slot() != slot);
        if let Some(link) = self.links.remove(&slot) {
            self.slots.remove(&link);
            self.orders.push_back(Order::End(link, how));
        }
    }
}

/// The server's backend. Work takes no time.
#[derive(Debug)]
struct ServerEnd {
    exchange: Rc<RefCell<Exchange>>,
    payloads: Payloads,
    received: Rc<[u8]>,
}

impl Backend for ServerEnd {
    type Transport = Stream;

    fn now_ns(&self) -> u64 {
        self.exchange.borrow().now_ns
    }

    fn add_payload(&mut self, bytes: Arc<[u8]>) -> PayloadId {
        self.payloads.add(bytes)
    }

    fn send(&mut self, slot: Slot, outgoing: Outgoing) {
        let mut exchange = self.exchange.borrow_mut();
        if let Some(&link) = exchange.links.get(&slot) {
            let bytes = self.payloads.bytes(&outgoing).into();
            exchange.orders.push_back(Order::Send(link, bytes));
        }
        self.payloads.recycle::<Stream>(outgoing);
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.payloads.take_buffer()
    }

    fn close(&mut self, slot: Slot) {
        let mut exchange = self.exchange.borrow_mut();
        exchange.end(slot, Piece::END);
    }

    fn reset(&mut self, slot: Slot) {
        self.exchange.borrow_mut().end(slot, Piece::Reset);
    }

    fn wait(&mut self, _until_ns: Option<u64>) -> io::Result<()> {
        Ok(())
    }

    fn next_event(&mut self) -> Option<Event> {
        let (event, bytes) = self.exchange.borrow_mut().events.pop_front()?;
        self.received = bytes;
        Some(event)
    }

    fn received(&self) -> &[u8] {
        &self.received
    }
}

impl ServerBackend for ServerEnd {
    fn listen(&mut self, _listener: BorrowedFd<'_>) -> io::Result<()> {
        Ok(())
    }

    fn accept(&mut self, slot: Slot) {
        let mut exchange = self.exchange.borrow_mut();
        exchange.offered.push_back(slot);
        exchange.accept();
    }
}

/// The reference server of one world.
#[derive(Debug)]
pub(crate) struct Reference {
    server: Hosted,
    exchange: Rc<RefCell<Exchange>>,
    wakes: Wakes,
}

impl Reference {
    /// A server that answers as the path of a request says.
    pub(crate) fn new(http2: Http2Options, tls: Option<ServerSide>) -> Self {
        malformed::install();
        let exchange = Rc::<RefCell<Exchange>>::default();
        let backend = ServerEnd {
            exchange: Rc::clone(&exchange),
            payloads: Payloads::default(),
            received: Rc::default(),
        };
        Self {
            server: Hosted::new(backend, http2, tls),
            exchange,
            wakes: Wakes::default(),
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        self.server.counters()
    }

    /// A connection is there.
    pub(crate) fn attempted(&self, link: LinkId) {
        let mut exchange = self.exchange.borrow_mut();
        exchange.waiting.push_back(link);
        exchange.accept();
    }

    /// Something happens on a connection, unless the server has closed it.
    pub(crate) fn happened(
        &self,
        link: LinkId,
        event: impl FnOnce(Slot) -> Event,
        bytes: Rc<[u8]>,
    ) {
        let mut exchange = self.exchange.borrow_mut();
        if let Some(&slot) = exchange.slots.get(&link) {
            exchange.events.push_back((event(slot), bytes));
        }
    }

    /// Nobody waits for this connection to be accepted any more.
    pub(crate) fn forget(&self, link: LinkId) {
        let mut exchange = self.exchange.borrow_mut();
        exchange.waiting.retain(|&waiting| waiting != link);
    }

    /// Does all that there is to do at this instant: what it asks of the network, and when it is to
    /// go on by itself, where that is news.
    pub(crate) fn settle(&mut self, at_ns: u64) -> (VecDeque<Order>, Option<u64>) {
        self.exchange.borrow_mut().now_ns = at_ns;
        // This backend never fails.
        let wakes_ns = self.server.settle().unwrap_or(None);
        let orders = std::mem::take(&mut self.exchange.borrow_mut().orders);
        (orders, self.wakes.news_ns(at_ns, wakes_ns))
    }
}

/// When a server goes on by itself, as far as that is on the agenda.
#[derive(Debug, Default)]
pub(crate) struct Wakes(Option<u64>);

impl Wakes {
    /// At `at_ns` the server says when it goes on: that instant, where it is to go on the agenda.
    pub(crate) fn news_ns(&mut self, at_ns: u64, wakes_ns: Option<u64>) -> Option<u64> {
        let known_ns = self.0.filter(|&known_ns| known_ns > at_ns);
        let is_news = |wakes_ns: &u64| known_ns.is_none_or(|known_ns| *wakes_ns < known_ns);
        let news_ns = wakes_ns.filter(is_news);
        self.0 = news_ns.or(known_ns);
        news_ns
    }
}
