//! A worker in virtual time, whose clients say little, or nothing at all.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::rc::Rc;
use std::sync::Arc;

use brunt_io::backend::Payloads;
use brunt_io::clock;
use brunt_io::listener::DatagramListener;
use brunt_io::transport::{self as kind, OutgoingDatagrams, ReceivedDatagrams};
use brunt_proto::Limits;
use brunt_proto::http3::{Client, KnownHead, Request, Template, WorkerTemplate};
use brunt_proto::quic::{ClientTransport, TransportOptions};
use brunt_proto::tls::{ALPN_HTTP3, ClientOptions, ClientSide};

use super::session;
use super::worker::{Http3Worker, transport};
use crate::counters::{Counters, Shared};
use crate::http2::Http2Options;
use crate::tls::{Secure, TlsOptions};
use crate::worker::WorkerSettings;

const SECOND_NS: u64 = 1_000_000_000;
/// Datagrams that pass before a world has come to a stop.
const DATAGRAMS_MAX: usize = 100_000;

/// Datagrams, with the addresses of clients.
type Datagrams = VecDeque<(SocketAddr, Vec<u8>)>;

#[derive(Default)]
struct Exchange {
    now_ns: u64,
    arrivals: Datagrams,
    sent: Datagrams,
}

/// The server's socket.
#[derive(Default)]
struct End {
    exchange: Rc<RefCell<Exchange>>,
    payloads: Payloads,
    received: Vec<u8>,
}

impl DatagramListener for End {
    fn now_ns(&self) -> u64 {
        self.exchange.borrow().now_ns
    }

    fn send(&mut self, to: SocketAddr, outgoing: OutgoingDatagrams) {
        let sent = &mut self.exchange.borrow_mut().sent;
        let datagrams = outgoing.bytes.chunks(outgoing.segment_bytes.get().into());
        sent.extend(datagrams.map(|bytes| (to, bytes.to_vec())));
        self.payloads.recycle::<kind::Datagram>(outgoing);
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.payloads.take_buffer()
    }

    fn wait(&mut self, _until_ns: Option<u64>) -> io::Result<()> {
        Ok(())
    }

    fn next_arrival(&mut self) -> Option<SocketAddr> {
        let (from, bytes) = self.exchange.borrow_mut().arrivals.pop_front()?;
        self.received = bytes;
        Some(from)
    }

    fn received(&self) -> ReceivedDatagrams<'_> {
        ReceivedDatagrams {
            bytes: &self.received,
            segment_bytes: NonZeroU16::new(self.received.len() as u16).unwrap(),
            ..ReceivedDatagrams::NONE
        }
    }
}

/// A worker with its clients, each of which has a port.
struct Site {
    worker: Http3Worker<End>,
    exchange: Rc<RefCell<Exchange>>,
    shared: Arc<Shared>,
    transport: ClientTransport,
    clients: Vec<Client>,
    known: KnownHead,
}

fn settings(connections_max: u32) -> WorkerSettings {
    WorkerSettings {
        connections_max,
        spin: false,
        is_tls: true,
        idle_timeout_ns: None,
        input_bytes_max: 1 << 30,
        output_bytes_max: 1 << 30,
        http2: Http2Options::default(),
    }
}

impl Site {
    fn new(settings: WorkerSettings) -> Self {
        let secure = Secure::new(&TlsOptions::default(), None).unwrap();
        let mut options = ClientOptions::new("localhost");
        options.roots = secure.certificates.clone();
        options.alpn = vec![ALPN_HTTP3.to_vec()];
        let side = ClientSide::new(options).unwrap();
        let origin = clock::origin();
        let of_server = transport(&secure.http3, &settings, origin).unwrap();
        let of_client = ClientTransport::new(&side, TransportOptions::default(), origin);
        let (end, shared) = (End::default(), Arc::new(Shared::new(1)));
        let exchange = Rc::clone(&end.exchange);
        Self {
            worker: Http3Worker::new(end, &of_server, &shared, 0, settings),
            exchange,
            shared,
            transport: of_client.unwrap(),
            clients: Vec::new(),
            known: KnownHead::default(),
        }
    }

    fn now_ns(&self) -> u64 {
        self.exchange.borrow().now_ns
    }

    fn counters(&self) -> Counters {
        self.shared.totals()
    }

    /// Another client, which has sent nothing; gives its number.
    fn join(&mut self) -> usize {
        let number = self.clients.len();
        let seed = [number as u8 + 1; 32];
        let client = Client::open(&self.transport, 100, seed, self.now_ns()).unwrap();
        self.clients.push(client);
        number
    }

    /// What a client has to send.
    fn outgoing(&mut self, number: usize) -> Datagrams {
        let now_ns = self.now_ns();
        let client = &mut self.clients[number];
        let limits = Limits::default();
        while let Ok(Some(_)) = client.event(now_ns, &limits, &mut self.known) {}
        let mut all = Datagrams::new();
        let mut bytes = Vec::new();
        while let Some(sent) = client.transmit(now_ns, &mut bytes) {
            let datagrams = bytes.chunks(sent.segment_bytes.get().into());
            all.extend(datagrams.map(|bytes| (address(number), bytes.to_vec())));
            bytes.clear();
        }
        all
    }

    /// The server takes these datagrams; gives what it sends.
    fn deliver(&mut self, datagrams: Datagrams) -> Datagrams {
        self.exchange.borrow_mut().arrivals.extend(datagrams);
        self.worker.settle().unwrap();
        std::mem::take(&mut self.exchange.borrow_mut().sent)
    }

    /// Carries datagrams between a client and the server until there are none.
    fn carry(&mut self, number: usize) {
        for _ in 0..DATAGRAMS_MAX {
            let outgoing = self.outgoing(number);
            let answers = self.deliver(outgoing);
            if answers.is_empty() {
                return;
            }
            let now_ns = self.now_ns();
            for (to, bytes) in answers {
                if to == address(number) {
                    self.clients[number].receive(&bytes, None, now_ns);
                }
            }
        }
        panic!("it comes to no rest");
    }

    fn pass(&mut self, ns: u64) {
        self.exchange.borrow_mut().now_ns += ns;
        self.worker.settle().unwrap();
    }

    /// A client that is connected.
    fn connect(&mut self) -> usize {
        let number = self.join();
        self.carry(number);
        number
    }

    fn is_ready(&self, number: usize) -> bool {
        self.clients[number].is_ready()
    }
}

fn address(number: usize) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 1_000 + number as u16))
}

fn upload(bytes: usize) -> WorkerTemplate {
    let template = Template::new(&Request {
        method: "POST",
        scheme: "https",
        authority: "localhost",
        path: "/",
        headers: &[],
        body: &vec![b'x'; bytes],
    });
    template.unwrap().of_worker()
}

#[test]
fn lone_initials_hold_some_places_for_as_long_as_a_handshake_may_take() {
    let mut site = Site::new(settings(8));
    for _ in 0..10 {
        let number = site.join();
        let lone = site.outgoing(number);
        site.deliver(lone);
    }
    // Some places are kept for clients that can be reached.
    let honest = [(); 2].map(|()| site.connect());
    assert!(honest.iter().all(|&number| site.is_ready(number)));
    assert_eq!(site.counters().connections_accepted, 2);
    let late = site.connect();
    assert!(!site.is_ready(late));
    site.pass(10 * SECOND_NS - 1);
    assert_eq!(site.counters().handshakes_failed, 0);
    site.pass(1);
    assert_eq!(site.counters().handshakes_failed, 6);
    for _ in 0..6 {
        let number = site.connect();
        assert!(site.is_ready(number));
    }
}

#[test]
fn a_request_that_trickles_keeps_no_place() {
    // A datagram of 1,200 bytes each so many seconds: at 500 bytes per second it stays.
    for (each_s, is_kept) in [(2, true), (4, false)] {
        let mut site = Site::new(WorkerSettings {
            idle_timeout_ns: Some(8 * SECOND_NS),
            ..settings(8)
        });
        let number = site.connect();
        site.clients[number].request(&upload(1_000_000));
        let mut body = site.outgoing(number);
        for _ in 0..20 / each_s {
            (0..each_s).for_each(|_| site.pass(SECOND_NS));
            let next = body.pop_front();
            site.deliver(next.into_iter().collect());
        }
        let counters = site.counters();
        assert_eq!(counters.connections_timed_out, u64::from(!is_kept));
    }
}

#[test]
fn windows_grow_within_the_room_for_input() {
    // Clients, and the largest window that they come to.
    for (clients, input_bytes_max, largest_bytes) in
        [(1, 1 << 30, 2 << 20), (100, 8 << 20, 64 << 10)]
    {
        let settings = WorkerSettings {
            input_bytes_max,
            ..settings(200)
        };
        let mut site = Site::new(settings);
        for _ in 0..clients {
            let number = site.connect();
            site.clients[number].request(&upload(4_000_000 / clients));
            site.carry(number);
            assert_eq!(site.clients[number].in_flight(), 0);
        }
        let windows = site.worker.window_bytes();
        let all: usize = windows.iter().sum();
        assert!(2 * all <= input_bytes_max, "{all}");
        assert!(windows.iter().max() >= Some(&largest_bytes), "{windows:?}");
        let first_bytes = session::bytes_at_first(&settings);
        assert!(windows.iter().min() >= Some(&first_bytes), "{windows:?}");
    }
}
