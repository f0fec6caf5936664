//! HTTP/3 in a worker: a stream of QUIC per request, responses in any order.

use std::sync::Arc;

use brunt_io::backend::{PayloadId, Secured};
use brunt_io::clock;
use brunt_io::transport::{Datagram, OutgoingDatagrams, ReceivedDatagrams};
use brunt_load::Plan;
use brunt_proto::http3::{Client, Ended, ErrorCode, Event, KnownHead, Template, WorkerTemplate};
use brunt_proto::quic::{
    self, ClientTransport, Lost, PathFigures, TransportError, TransportOptions,
};
use brunt_proto::tls::ClientSide;
use brunt_proto::{BodiesWanted, Body, Limits};
use brunt_record::{FailureKind, Protocol, QuicCounts, RequestTiming};

use super::filled::Parts;
use super::streams::{Patience, event_of};
use super::{
    Aside, Broken, Capacity, ClientProtocol, Closing, EncodeError, Next, Out, ProtocolEvent, Sizes,
    Taken, TimedOut,
};
use crate::failure::of_code;

/// Timers of QUIC that are due in so much time or more are late by up to `TOGETHER_NS`: what RFC
/// 9002 (section 6.1.2) holds for the granularity of timers.
const FAR_NS: u64 = 16 * TOGETHER_NS;
const TOGETHER_NS: u64 = 1_000_000;

/// The requests of a run, encoded once for all workers, and what their connections share.
#[derive(Debug)]
pub(crate) struct Http3Requests {
    templates: Vec<Template>,
    depth: u32,
    transport: ClientTransport,
}

impl Http3Requests {
    /// Encodes what the plan says, of which up to `depth` are to be in flight per connection.
    pub(super) fn new(
        plan: &Plan,
        depth: u32,
        side: Option<&ClientSide>,
    ) -> Result<Self, EncodeError> {
        let side = side
            .ok_or_else(|| EncodeError::protocol("HTTP/3 is over TLS alone; give an https URL"))?;
        if plan.connection.tls.resumption {
            // Nothing tells which handshakes of QUIC resumed a session.
            return Err(EncodeError::protocol(
                "sessions of TLS are resumed over TCP alone; leave --tls-resume out over HTTP/3",
            ));
        }
        let requests = plan.traffic.requests.requests().enumerate();
        let templates = requests.map(|(index, request)| {
            let parts = Parts::fixed_of(plan, index, request)?;
            Template::new(&parts.request(plan))
                .map_err(|reason| EncodeError::request(plan, index, reason))
        });
        Ok(Self {
            templates: templates.collect::<Result<_, _>>()?,
            depth,
            transport: transport(side, plan.connections_most()).map_err(EncodeError::protocol)?,
        })
    }

    pub(super) fn sizes(&self) -> Sizes {
        let bytes = self.templates.iter().map(|template| template.wire().len());
        Sizes::of(bytes.clone().max().unwrap_or(0), bytes.sum())
    }
}

/// What all of so many connections share that use this TLS.
pub(crate) fn transport(
    side: &ClientSide,
    connections: u32,
) -> Result<ClientTransport, TransportError> {
    let mut options = TransportOptions::default();
    if let Some(window) = Protocol::HTTP3.cost.window {
        let window_bytes = window.of_each(connections);
        options.stream_window_bytes = window_bytes;
        options.connection_window_bytes = window_bytes;
    }
    ClientTransport::new(side, options, clock::origin())
}

/// HTTP/3 (RFC 9114), as one worker speaks it.
#[derive(Clone, Debug)]
pub(crate) struct Http3 {
    pub(super) requests: Arc<Http3Requests>,
    templates: Vec<WorkerTemplate>,
    /// The head that came last, since others are often equal to it.
    known: KnownHead,
    limits: Limits,
    timeout_ns: u64,
    worker: u32,
    /// Connections that were opened.
    opened: u64,
}

/// One connection.
#[derive(Debug, Default)]
pub(crate) struct Http3Connection {
    /// Absent while the connection is down.
    client: Option<Box<Client>>,
    /// When the handshake began, and when it was over.
    begun_ns: u64,
    ready_ns: u64,
    /// When the next timer of QUIC is due.
    deadline_ns: u64,
    patience: Patience,
    counts: Counts,
    /// Its handshake was refused before.
    is_retried: bool,
    /// Bytes that came before, which are in no count yet.
    refused_bytes: u64,
}

impl Http3 {
    pub(super) fn new(requests: Http3Requests, timeout_ns: u64) -> Self {
        Self {
            requests: Arc::new(requests),
            templates: Vec::new(),
            known: KnownHead::default(),
            limits: Limits::default(),
            timeout_ns,
            worker: 0,
            opened: 0,
        }
    }

    /// Begins a handshake.
    fn begin(&mut self, now_ns: u64) -> Option<Box<Client>> {
        // What the randomness in its packets follows from: each connection of a run has its own.
        self.opened += 1;
        let mut seed = [0; 32];
        seed[..8].copy_from_slice(&self.opened.to_le_bytes());
        seed[8..12].copy_from_slice(&self.worker.to_le_bytes());
        let requests = &*self.requests;
        let client = Client::open(&requests.transport, requests.depth, seed, now_ns);
        client.map(Box::new)
    }

    /// The server refused the handshake: another one begins on the same socket.
    #[cold]
    fn retry(&mut self, connection: &mut Http3Connection, now_ns: u64) {
        let next = self.begin(now_ns);
        if let Some(mut refused) = std::mem::replace(&mut connection.client, next) {
            connection.counts.retried(&refused);
            connection.refused_bytes += refused.rest_bytes();
        }
        connection.is_retried = true;
        connection.begun_ns = now_ns;
        connection.deadline_ns = u64::MAX;
    }
}

/// When a timer of QUIC with this deadline is seen to, as it is known at `now_ns`. Those that are
/// far away fall due together: every packet puts them off, and a worker wakes up for each of its
/// connections otherwise.
#[inline]
fn due_ns(deadline_ns: u64, now_ns: u64) -> u64 {
    if deadline_ns.saturating_sub(now_ns) >= FAR_NS {
        deadline_ns
            .checked_next_multiple_of(TOGETHER_NS)
            .unwrap_or(u64::MAX)
    } else {
        deadline_ns
    }
}

impl ClientProtocol for Http3 {
    type Transport = Datagram;
    type Connection = Http3Connection;

    const IN_ORDER: bool = false;

    fn start(&mut self, worker: u32, _workers: u32, _add: &mut dyn FnMut(Arc<[u8]>) -> PayloadId) {
        self.worker = worker;
        let templates = self.requests.templates.iter();
        self.templates = templates.map(Template::of_worker).collect();
    }

    fn connection(&self) -> Http3Connection {
        Http3Connection::default()
    }

    fn open(&mut self, connection: &mut Http3Connection, _out: &mut Out, now_ns: u64) -> bool {
        *connection = Http3Connection {
            client: self.begin(now_ns),
            begun_ns: now_ns,
            deadline_ns: u64::MAX,
            ..Http3Connection::default()
        };
        false
    }

    fn parts(&self) -> bool {
        true
    }

    fn part(&mut self, connection: &mut Http3Connection, _out: &mut Out) -> Closing {
        if let Some(client) = &mut connection.client {
            client.close(ErrorCode::NoError, connection.patience.heard_ns);
        }
        Closing::AtOnce
    }

    fn close(&mut self, connection: &mut Http3Connection) -> u64 {
        let rest_bytes = self.end_round(connection);
        *connection = Http3Connection::default();
        rest_bytes
    }

    fn end_round(&mut self, connection: &mut Http3Connection) -> u64 {
        let client = connection.client.as_mut();
        let rest_bytes = client.map_or(0, |client| client.rest_bytes());
        rest_bytes + std::mem::take(&mut connection.refused_bytes)
    }

    #[inline]
    fn request(&mut self, connection: &mut Http3Connection, next: Next, _out: &mut Out) -> u32 {
        let template = &self.templates[next.request.0 as usize];
        let client = connection.client.as_mut();
        client.map_or(0, |client| client.request(template))
    }

    #[inline]
    fn receive(
        &mut self,
        connection: &mut Http3Connection,
        received: ReceivedDatagrams<'_>,
        received_ns: u64,
        _places: &[RequestTiming],
        _out: &mut Out,
    ) -> Result<Taken, Broken> {
        let consumed = received.bytes.len();
        let Some(client) = connection.client.as_mut() else {
            return Ok(Taken::without_event(consumed));
        };
        if consumed > 0 {
            connection.patience.heard_ns = received_ns;
            connection.counts.received(received);
            for datagram in received.segments() {
                client.receive(datagram, received.ecn, received_ns);
            }
        }
        let event = match client.event(received_ns, &self.limits, &mut self.known) {
            Ok(Some(Event::Ready)) => {
                connection.ready_ns = received_ns;
                Some(ProtocolEvent::Ready)
            }
            Ok(event) => event.map(|event| event_of(event, of_reset)),
            Err(ended) if !client.is_ready() => {
                if !connection.is_retried && ended.is_refusal() {
                    self.retry(connection, received_ns);
                    return Ok(Taken::without_event(consumed));
                }
                return Err(of_handshake(&ended).into());
            }
            Err(ended) => Some(ProtocolEvent::Closed(of_end(&ended)?)),
        };
        if event.is_none() {
            let is_shut = client.depth() == 0 && client.is_ready();
            connection.patience.note_shut(is_shut, received_ns);
            // Where nothing is sent meanwhile, this is asked for.
            connection.deadline_ns = due_ns(client.deadline_ns(), received_ns);
        }
        Ok(Taken { consumed, event })
    }

    fn abandon(&mut self, connection: &mut Http3Connection) -> Option<(u32, u64)> {
        connection.client.as_mut()?.abandon()
    }

    #[inline]
    fn take_aside(&mut self, connection: &mut Http3Connection) -> Aside {
        let client = connection.client.as_mut();
        let bytes = client.map_or(0, |client| client.take_overhead());
        Aside::of_bytes(bytes + std::mem::take(&mut connection.refused_bytes))
    }

    /// Acknowledgements, and what is repeated.
    fn may_still_hear(&self, _connection: &Http3Connection) -> bool {
        true
    }

    const WRITES_AHEAD: bool = true;

    /// A timer of QUIC; and a server that allows no request for as long as one may take is tried on
    /// another connection.
    #[inline]
    fn next_timeout_ns(&self, connection: &Http3Connection) -> u64 {
        let Some(client) = &connection.client else {
            return u64::MAX;
        };
        let patience = &connection.patience;
        let shut_ns = patience.shut_until_ns(client.in_flight(), self.timeout_ns);
        connection.deadline_ns.min(shut_ns)
    }

    /// Late requests are cancelled. Where nothing was heard for as long, nor since one of them was
    /// sent, the connection itself is dead, and the others go with it.
    fn timed_out(
        &mut self,
        connection: &mut Http3Connection,
        now_ns: u64,
        places: &[RequestTiming],
        _out: &mut Out,
    ) -> Option<TimedOut> {
        let client = connection.client.as_mut()?;
        if connection.deadline_ns <= now_ns {
            client.expire(now_ns);
            connection.deadline_ns = due_ns(client.deadline_ns(), now_ns);
            // Timers bring about nothing but the end of a connection.
            if let Err(ended) = client.event(now_ns, &self.limits, &mut self.known) {
                let kind = if client.is_ready() {
                    of_end(&ended).unwrap_or_else(|broken| broken)
                } else {
                    of_handshake(&ended)
                };
                return Some(TimedOut::Connection(kind));
            }
        }
        let in_flight = client.in_flight();
        let patience = &mut connection.patience;
        patience.timed_out(places, self.timeout_ns, now_ns, in_flight, |place| {
            if client.is_withheld(place) {
                return Err(FailureKind::QuicWithheld);
            }
            Ok(client.cancel(place))
        })
    }

    #[inline]
    fn capacity(&self, connection: &Http3Connection) -> Option<Capacity> {
        let client = connection.client.as_ref()?;
        Some(Capacity {
            depth: client.depth(),
            is_spent: client.is_spent(),
        })
    }

    fn take_unexpected(&mut self) -> Option<String> {
        self.known.take_call_message()
    }

    fn want_bodies(&mut self, wanted: BodiesWanted) {
        self.limits.bodies = wanted;
    }

    fn take_body(&mut self, connection: &mut Http3Connection) -> Option<Body> {
        connection.client.as_mut()?.take_body()
    }

    #[inline]
    fn transmit(
        &mut self,
        connection: &mut Http3Connection,
        now_ns: u64,
        spare: &mut Vec<u8>,
    ) -> Option<OutgoingDatagrams> {
        let client = connection.client.as_mut()?;
        let sent = client.transmit(now_ns, spare);
        connection.deadline_ns = due_ns(client.deadline_ns(), now_ns);
        let sent = sent?;
        let datagrams = OutgoingDatagrams {
            bytes: std::mem::take(spare),
            segment_bytes: sent.segment_bytes,
            ecn: sent.ecn,
        };
        connection.counts.sent(&datagrams);
        Some(datagrams)
    }

    fn secured(&self, connection: &Http3Connection) -> Option<Secured> {
        let client = connection.client.as_ref()?;
        client.is_ready().then_some(Secured {
            from_ns: connection.begun_ns,
            to_ns: connection.ready_ns,
            is_resumed: false,
        })
    }

    fn take_quic(&mut self, connection: &mut Http3Connection) -> Option<QuicCounts> {
        let client = connection.client.as_ref()?;
        Some(connection.counts.take(client))
    }
}

/// What is counted of one connection, since it was last asked.
#[derive(Debug, Default)]
struct Counts {
    since: QuicCounts,
    /// What quinn-proto had counted then.
    path: PathFigures,
    /// Datagrams that the socket had no room for, so far.
    dropped: u32,
}

impl Counts {
    #[inline]
    fn received(&mut self, datagrams: ReceivedDatagrams<'_>) {
        self.since.receives += 1;
        self.since.datagrams_received += datagrams.segments().len() as u64;
        let dropped = datagrams.dropped.saturating_sub(self.dropped);
        self.since.datagrams_dropped += u64::from(dropped);
        self.dropped += dropped;
    }

    #[inline]
    fn sent(&mut self, datagrams: &OutgoingDatagrams) {
        let segment_bytes = usize::from(datagrams.segment_bytes.get());
        self.since.sends += 1;
        self.since.datagrams_sent += datagrams.bytes.len().div_ceil(segment_bytes) as u64;
    }

    /// The server refused the handshake of `client`, which another one takes the place of.
    fn retried(&mut self, client: &Client) {
        self.read(client);
        self.since.handshakes_retried += 1;
        self.path = PathFigures::default();
    }

    fn read(&mut self, client: &Client) -> PathFigures {
        let path = client.path_figures();
        let before = std::mem::replace(&mut self.path, path);
        let since = &mut self.since;
        since.packets_sent += path.packets_sent - before.packets_sent;
        since.packets_lost += path.packets_lost - before.packets_lost;
        since.bytes_lost += path.bytes_lost - before.bytes_lost;
        path
    }

    /// What was counted since this was last asked, with the round trip where it is known.
    fn take(&mut self, client: &Client) -> QuicCounts {
        let path = self.read(client);
        if client.is_ready() {
            self.since.round_trips += 1;
            self.since.round_trips_ns += path.round_trip_ns;
        }
        std::mem::take(&mut self.since)
    }
}

/// Alerts of TLS about a certificate (RFC 8446 section 6.2): bad, unsupported, revoked, expired,
/// unknown, of an unknown authority.
const OF_CERTIFICATES: [u8; 6] = [42, 43, 44, 45, 46, 48];
/// The alert of a server, or of a client, that has none of the protocols.
const NO_APPLICATION_PROTOCOL: u8 = 120;

/// The kind of a handshake that failed.
fn of_handshake(ended: &Ended) -> FailureKind {
    use quic::ErrorCode::{ConnectionRefused, Tls};
    let Ended::Lost(lost) = ended else {
        return FailureKind::OtherProtocol;
    };
    let (code, is_ours) = match lost {
        Lost::Version => return FailureKind::QuicVersion,
        Lost::Idle => return FailureKind::HandshakeTimedOut,
        Lost::ClosedAbove { .. } | Lost::Reset | Lost::Here => return FailureKind::HandshakeCut,
        Lost::Closed { code, .. } => (*code, false),
        Lost::Broken { code, .. } => (*code, true),
    };
    match code {
        Tls(NO_APPLICATION_PROTOCOL) => FailureKind::OtherProtocol,
        Tls(alert) if is_ours && OF_CERTIFICATES.contains(&alert) => FailureKind::TlsCertificate,
        Tls(_) if is_ours => FailureKind::TlsFailed,
        Tls(_) => FailureKind::TlsAlert,
        _ if is_ours => FailureKind::QuicFailed,
        ConnectionRefused => FailureKind::QuicRefused,
        _ => FailureKind::HandshakeCut,
    }
}

/// The kind of the requests in flight on a connection that the server closed, or that idled for too
/// long.
///
/// # Errors
///
/// Their kind where the server broke a rule.
fn of_end(ended: &Ended) -> Result<FailureKind, FailureKind> {
    match ended {
        Ended::Lost(Lost::Closed { code, .. }) => Ok(of_transport(*code)),
        Ended::Lost(Lost::ClosedAbove { code, .. }) => Ok(of_application(ErrorCode::of(*code))),
        Ended::Lost(Lost::Idle) => Ok(FailureKind::QuicIdle),
        Ended::Lost(Lost::Reset | Lost::Here) => Ok(FailureKind::Reset),
        Ended::Lost(Lost::Version | Lost::Broken { .. }) => Err(FailureKind::QuicError),
        Ended::Broken(_) => Err(FailureKind::Http3Error),
    }
}

fn of_transport(code: quic::ErrorCode) -> FailureKind {
    if let quic::ErrorCode::Tls(_) = code {
        return FailureKind::QuicClosedTlsAlert;
    }
    of_code("QUIC closed", code, FailureKind::QuicClosedOtherCode)
}

fn of_application(code: ErrorCode) -> FailureKind {
    of_code("closed", code, FailureKind::Http3ClosedOtherCode)
}

/// The kind of a stream that the server reset.
fn of_reset(code: ErrorCode) -> FailureKind {
    of_code("stream reset", code, FailureKind::Http3ResetOtherCode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_kinds_that_name_them() {
        let named = |kind: FailureKind| kind.label().rsplit(": ").next().unwrap_or_default();
        let mut kinds = std::collections::BTreeSet::new();
        for code in (0x100..=0x110).chain(0x200..=0x202).map(ErrorCode::of) {
            for kind in [of_application(code), of_reset(code)] {
                assert!(
                    [code.to_string().as_str(), "another code of HTTP/3"].contains(&named(kind))
                );
                kinds.insert(kind);
            }
        }
        for code in (0..=0x10).map(quic::ErrorCode::of) {
            let kind = of_transport(code);
            assert!([code.to_string().as_str(), "another code"].contains(&named(kind)));
            kinds.insert(kind);
        }
        kinds.insert(of_transport(quic::ErrorCode::of(0x128)));
        let all = FailureKind::ALL.iter().map(|kind| format!("{kind:?}"));
        let prefixes = ["Http3Reset", "Http3Closed", "QpackClosed", "QuicClosed"];
        let of_codes = all.filter(|name| prefixes.iter().any(|prefix| name.starts_with(prefix)));
        assert_eq!(of_codes.count(), kinds.len());
    }
}
