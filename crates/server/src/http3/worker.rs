//! One worker of HTTP/3: takes what comes on its socket, sends answers, keeps time.

use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use brunt_io::listener::DatagramListener;
use brunt_io::transport::OutgoingDatagrams;
use brunt_proto::http3::{ErrorCode, Received, Server};
use brunt_proto::quic::{ServerTransport, TransportError, TransportOptions};
use brunt_proto::tls::ServerSide;

use super::session::{self, Http3Session, Turn, Window};
use crate::answer::Context;
use crate::batch::Room;
use crate::counters::{Shared, WorkerCounters};
use crate::worker::{STOP_CHECK_NS, Wakes, WorkerSettings};

/// How long a handshake may take, nanoseconds: as long as over TCP.
const HANDSHAKE_NS_MAX: u64 = 10_000_000_000;

/// How connections use QUIC, with this TLS. `origin` is the instant 0 of all times.
///
/// # Errors
///
/// TLS is not set up for QUIC.
pub(crate) fn transport(
    side: &ServerSide,
    settings: &WorkerSettings,
    origin: Instant,
) -> Result<ServerTransport, TransportError> {
    let options = TransportOptions {
        stream_window_bytes: session::STREAM_BYTES,
        connection_window_bytes: session::bytes_at_first(settings) as u64,
        streams_max: settings.http2.streams_max.get(),
        idle_timeout_ns: settings.idle_timeout_ns,
        ..TransportOptions::default()
    };
    ServerTransport::new(side, options, origin)
}

/// A worker on its socket.
pub(crate) struct Http3Worker<L> {
    listener: L,
    shared: Arc<Shared>,
    counters: Arc<WorkerCounters>,
    server: Server,
    /// Connections by their numbers.
    places: Vec<Http3Connection>,
    /// Connections on which something waits for an instant.
    wakes: Wakes<u32>,
    /// Room for input: windows, and heads that are not complete.
    room: Rc<Room>,
    /// Connections on which something came.
    touched: Vec<u32>,
    /// What is to be sent back to those that have no connection.
    answers: Vec<(SocketAddr, Vec<u8>)>,
    /// Memory for the field section in hand, and for datagrams.
    scratch: Vec<u8>,
    spare: Vec<u8>,
    settings: WorkerSettings,
}

/// What a connection has beside QUIC.
#[derive(Debug, Default)]
struct Http3Connection {
    session: Http3Session,
    window: Window,
    /// When it goes on.
    wake_ns: Option<u64>,
    /// When its handshake is to be complete.
    handshake_until_ns: u64,
}

impl<L: DatagramListener> Http3Worker<L> {
    /// Worker number `index` of those that `shared` counts.
    pub(crate) fn new(
        listener: L,
        transport: &ServerTransport,
        shared: &Arc<Shared>,
        index: usize,
        settings: WorkerSettings,
    ) -> Self {
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&(index as u64).to_le_bytes());
        Self {
            listener,
            shared: Arc::clone(shared),
            counters: Arc::clone(shared.worker(index)),
            server: Server::new(transport, settings.connections_max, seed),
            places: Vec::new(),
            wakes: Wakes::default(),
            room: session::room(&settings),
            touched: Vec::new(),
            answers: Vec::new(),
            scratch: Vec::new(),
            spare: Vec::new(),
            settings,
        }
    }

    /// Serves until it is stopped.
    ///
    /// # Errors
    ///
    /// Only what leaves the socket unusable.
    pub(crate) fn run(&mut self) -> io::Result<()> {
        while !self.shared.stop.load(Ordering::Relaxed) {
            self.turn()?;
        }
        for number in 0..self.places.len() as u32 {
            self.part(number);
        }
        let now_ns = self.listener.now_ns();
        self.listener.wait(Some(now_ns))
    }

    /// One turn: what is due, then what comes.
    fn turn(&mut self) -> io::Result<()> {
        let now_ns = self.listener.now_ns();
        let wake_ns = self.go_on(now_ns);
        let check_ns = now_ns + STOP_CHECK_NS;
        let until_ns = wake_ns.map_or(check_ns, |wake_ns| wake_ns.min(check_ns));
        self.listener.wait(Some(until_ns))?;
        self.receive();
        Ok(())
    }

    /// Turns until there is nothing more to do at this instant. Gives the instant at which there
    /// will be something, if nothing comes before.
    pub(crate) fn settle(&mut self) -> io::Result<Option<u64>> {
        loop {
            let now_ns = self.listener.now_ns();
            self.go_on(now_ns);
            self.listener.wait(Some(now_ns))?;
            if !self.receive() {
                return Ok(self.wakes.first_ns());
            }
        }
    }

    /// Does what is due; gives when the next is.
    fn go_on(&mut self, now_ns: u64) -> Option<u64> {
        while let Some(number) = self.wakes.next(now_ns) {
            self.places[number as usize].wake_ns = None;
            if self.server.deadline_ns(number) <= now_ns {
                self.server.expire(number, now_ns);
            }
            self.drive(number);
        }
        let has_open = || self.places.iter().any(|place| place.session.is_open());
        if self.settings.spin && has_open() {
            return Some(now_ns);
        }
        self.wakes.first_ns()
    }

    /// Takes what came; whether there was anything.
    fn receive(&mut self) -> bool {
        let mut has_come = false;
        while let Some(from) = self.listener.next_arrival() {
            has_come = true;
            self.take(from);
            for (to, bytes) in std::mem::take(&mut self.answers) {
                let length = u16::try_from(bytes.len()).ok().and_then(NonZeroU16::new);
                if let Some(segment_bytes) = length {
                    let answer = OutgoingDatagrams {
                        bytes,
                        segment_bytes,
                        ecn: None,
                    };
                    self.listener.send(to, answer);
                }
            }
            for number in std::mem::take(&mut self.touched) {
                self.drive(number);
            }
        }
        has_come
    }

    /// Gives the datagrams that came from one address to their connections, and notes these.
    fn take(&mut self, from: SocketAddr) {
        let now_ns = self.listener.now_ns();
        let received = self.listener.received();
        let mut answer = Vec::new();
        for datagram in received.segments() {
            let of = self
                .server
                .receive(from, datagram, received.ecn, now_ns, &mut answer);
            let number = match of {
                Received::Begun(number) => {
                    let index = number as usize;
                    if self.places.len() <= index {
                        self.places.resize_with(index + 1, Http3Connection::default);
                    }
                    self.places[index] = Http3Connection {
                        window: Window::new(&self.settings),
                        handshake_until_ns: now_ns + HANDSHAKE_NS_MAX,
                        ..Http3Connection::default()
                    };
                    Some(number)
                }
                Received::Of(number) => Some(number),
                Received::Nobody => None,
                Received::Refused => {
                    self.counters.links.accepts_failed.add(1);
                    None
                }
                Received::Failed => {
                    self.counters.links.handshakes_failed.add(1);
                    None
                }
            };
            // Datagrams of one address are most often of one connection.
            self.touched
                .extend(number.filter(|number| self.touched.last() != Some(number)));
            if !answer.is_empty() {
                self.answers.push((from, std::mem::take(&mut answer)));
            }
        }
    }

    /// Sees to what happened on a connection, and sends what there is.
    fn drive(&mut self, number: u32) {
        let now_ns = self.listener.now_ns();
        let Some(connection) = self.server.connection(number) else {
            return;
        };
        let clock = || self.listener.now_ns();
        let context = Context::new(&self.shared, &self.counters, Some(now_ns), &clock);
        let place = &mut self.places[number as usize];
        place.session.drive(&mut Turn {
            connection,
            context: &context,
            scratch: &mut self.scratch,
            options: self.settings.http2,
            room: &self.room,
            now_ns,
        });
        if place.session.is_open() {
            place.window.fit(connection, &self.room);
        } else if place.session.is_handshaking() && place.handshake_until_ns <= now_ns {
            connection.close(ErrorCode::NoError.number(), "", now_ns);
            place.session.over(&self.counters);
            self.flush(number);
            return self.give_up(number);
        }
        self.flush(number);
    }

    /// The windows of the places.
    #[cfg(test)]
    pub(super) fn window_bytes(&self) -> Vec<usize> {
        let places = self.places.iter();
        places.map(|place| place.window.bytes()).collect()
    }

    /// Forgets a connection at once: its client may never answer.
    fn give_up(&mut self, number: u32) {
        self.server.give_up(number);
        let mut place = std::mem::take(&mut self.places[number as usize]);
        self.wakes.plan(number, &mut place.wake_ns, None);
    }

    /// Ends a connection that is open: the server stops.
    fn part(&mut self, number: u32) {
        let now_ns = self.listener.now_ns();
        let is_open = self.places[number as usize].session.is_open();
        if is_open && let Some(connection) = self.server.connection(number) {
            connection.close(ErrorCode::NoError.number(), "", now_ns);
            self.places[number as usize].session.over(&self.counters);
            self.flush(number);
        }
    }

    /// Sends what there is to be sent on a connection, and plans when it goes on.
    fn flush(&mut self, number: u32) {
        let now_ns = self.listener.now_ns();
        while let Some((to, sent)) = self.server.transmit(number, now_ns, &mut self.spare) {
            let bytes = std::mem::replace(&mut self.spare, self.listener.take_buffer());
            let datagrams = OutgoingDatagrams {
                bytes,
                segment_bytes: sent.segment_bytes,
                ecn: sent.ecn,
            };
            self.listener.send(to, datagrams);
        }
        let is_forgotten = self.server.forget(number);
        let place = &mut self.places[number as usize];
        let mut wake_ns = None;
        if !is_forgotten {
            let handshake_until_ns = place.handshake_until_ns;
            let handshake_ns = place.session.is_handshaking().then_some(handshake_until_ns);
            let deadline_ns = Some(self.server.deadline_ns(number)).filter(|&ns| ns != u64::MAX);
            let instants = [deadline_ns, place.session.wake_ns(), handshake_ns];
            wake_ns = instants.into_iter().flatten().min();
        }
        self.wakes.plan(number, &mut place.wake_ns, wake_ns);
        if is_forgotten {
            *place = Http3Connection::default();
        }
    }
}
