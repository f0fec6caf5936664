//! One connection's client state, over QUIC: datagrams and a time in, events out, datagrams to be
//! sent when asked.

#[cfg(test)]
mod tests;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use quinn_proto::{DatagramEvent, Dir, Endpoint, ReadError, StreamEvent, StreamId, WriteError};

use super::error::{ConnectionError, Ended, ErrorCode, ReplyError, StreamFailure};
use super::frame::Side;
use super::message::ReplyReader;
use super::peer::{PeerStreams, code_of, open_control, request_stream};
use super::template::WorkerTemplate;
use crate::fields::reply::{self, KnownHead};
use crate::quic::{self, ClientTransport, Ecn, PathFigures, Sent};
use crate::{Body, Limits};

/// Where a peer is, for quinn-proto: connections have connected sockets, and neither they nor their
/// peers move (RFC 5737).
const REMOTE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);

/// Streams that a client can open on one connection (RFC 9000 section 2.1).
pub const STREAMS_MAX: u64 = 1 << 60;

/// What happened on a connection.
pub type Event = reply::StreamsEvent<ErrorCode>;

/// The client's side of one connection (RFC 9114).
///
/// Every byte is accounted for: the bytes of the datagrams received are those of the replies given
/// out (`head_bytes + body_bytes`), those discarded with failed, cancelled and abandoned requests,
/// and the overhead, which is settled while nothing waits for bytes that were lost on the way, and
/// at the end by [`rest_bytes`](Self::rest_bytes).
#[derive(Debug)]
pub struct Client {
    /// The connection has one of its own, and an id of length zero: its socket says whose datagrams
    /// are.
    endpoint: Endpoint,
    quic: quic::Connection,
    places: Places,
    peer: PeerStreams,
    /// Requests that may be in flight at most.
    depth: u32,
    /// The stream of the next request, by its number among those of the client.
    next_stream: u64,
    /// Streams that were opened with quinn-proto: nothing is sent for that.
    opened_streams: u64,
    is_ready: bool,
    /// Requests behind the last one that GOAWAY names are still to be given out as failed.
    refuses: bool,
    /// The body of the reply that was given out last.
    body: Option<Body>,

    /// What the server may send in advance of what is read.
    window_bytes: u64,
    received_bytes: u64,
    /// Those of them that are accounted for.
    claimed_bytes: u64,
}

impl Client {
    /// Begins a handshake, on a connection that is to carry `depth` requests at once. What is
    /// random in packets follows from `seed`. Absent where `transport` has a name that no
    /// certificate can have.
    pub fn open(
        transport: &ClientTransport,
        depth: u32,
        seed: [u8; 32],
        now_ns: u64,
    ) -> Option<Self> {
        let origin = transport.origin;
        let config = Arc::clone(&transport.endpoint);
        let mut endpoint = Endpoint::new(config, None, true, Some(seed));
        let now = origin + Duration::from_nanos(now_ns);
        let client = transport.client.clone();
        let begun = endpoint.connect(now, client, REMOTE, &transport.server_name);
        let (handle, inner) = begun.ok()?;
        Some(Self {
            endpoint,
            quic: quic::Connection::new(handle, inner, origin),
            places: Places::new(depth),
            peer: PeerStreams::new(Side::Client),
            depth,
            next_stream: 0,
            opened_streams: 0,
            is_ready: false,
            refuses: false,
            body: None,
            window_bytes: transport.window_bytes,
            received_bytes: 0,
            claimed_bytes: 0,
        })
    }

    /// Takes a datagram that came. What it brings about is given out by [`event`](Self::event).
    #[inline]
    pub fn receive(&mut self, datagram: &[u8], ecn: Option<Ecn>, now_ns: u64) {
        self.received_bytes += datagram.len() as u64;
        let now = self.quic.instant(now_ns);
        let bytes = BytesMut::from(datagram);
        let ecn = ecn.map(Ecn::codepoint);
        // A client has no answer to what belongs to no connection.
        let mut answer = Vec::new();
        let event = self
            .endpoint
            .handle(now, REMOTE, None, ecn, bytes, &mut answer);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
            self.quic.take(event);
            self.quic.tell(&mut self.endpoint);
        }
    }

    /// What happened since this was last asked; to be called until there is nothing, after
    /// [`receive`](Self::receive) and [`expire`](Self::expire). `limits` and `known` are the same
    /// for all calls of a worker.
    ///
    /// # Errors
    ///
    /// The connection cannot be used any more; what is in flight is still to be abandoned.
    pub fn event(
        &mut self,
        now_ns: u64,
        limits: &Limits,
        known: &mut KnownHead,
    ) -> Result<Option<Event>, Ended> {
        loop {
            if self.refuses {
                if let Some(refused) = self.next_refused() {
                    return Ok(Some(refused));
                }
                self.refuses = false;
            }
            let Some(polled) = self.quic.poll() else {
                return Ok(None);
            };
            let event = match polled.map_err(Ended::Lost)? {
                quinn_proto::Event::Connected => self.connected(now_ns)?,
                quinn_proto::Event::Stream(event) => {
                    self.stream_event(event, now_ns, limits, known)?
                }
                _ => None,
            };
            if event.is_some() {
                return Ok(event);
            }
        }
    }

    /// Sends a request; there must be [room](Self::depth) for it. Gives its place, below the depth.
    #[inline]
    pub fn request(&mut self, template: &WorkerTemplate) -> u32 {
        debug_assert!(self.next_stream < self.opened_streams, "there is a stream");
        let stream = self.next_stream;
        self.next_stream += 1;
        let place = self.places.take(stream, template);
        self.write(place);
        place
    }

    /// Gives up a request in flight; gives the bytes that came of its reply.
    pub fn cancel(&mut self, place: u32) -> u64 {
        self.abort(place, ErrorCode::RequestCancelled);
        self.free(place)
    }

    /// Takes a request in flight out of a connection that is lost: its place, and the bytes that
    /// came of its reply.
    pub fn abandon(&mut self) -> Option<(u32, u64)> {
        let place = self.places.first_in_flight()?;
        let (discarded_bytes, _) = self.places.free(place);
        Some((place, discarded_bytes))
    }

    /// Ends the connection; what says so to the server is still to be sent.
    pub fn close(&mut self, code: ErrorCode, now_ns: u64) {
        self.quic.close(code.number(), String::new(), now_ns);
    }

    /// Appends what is to be sent next to `out`, which is empty; absent for nothing.
    #[inline]
    pub fn transmit(&mut self, now_ns: u64, out: &mut Vec<u8>) -> Option<Sent> {
        let (_, sent) = self.quic.transmit(now_ns, out)?;
        self.quic.tell(&mut self.endpoint);
        Some(sent)
    }

    /// When [`expire`](Self::expire) is to be called; [`u64::MAX`] for never.
    #[inline]
    pub fn deadline_ns(&mut self) -> u64 {
        self.quic.deadline_ns()
    }

    /// A timer of QUIC is due.
    pub fn expire(&mut self, now_ns: u64) {
        self.quic.expire(now_ns);
        self.quic.tell(&mut self.endpoint);
    }

    /// Requests that may be in flight at once: as many as were asked for, or as the server allows.
    /// It allows no further one before it takes note of the end of earlier ones.
    #[inline]
    pub fn depth(&self) -> u32 {
        let free = (self.opened_streams - self.next_stream) as u32;
        self.places.in_flight() + free
    }

    /// Requests in flight.
    #[inline]
    pub fn in_flight(&self) -> u32 {
        self.places.in_flight()
    }

    /// Packets of the connection that were sent and lost so far, and its round trip.
    pub fn path_figures(&self) -> PathFigures {
        self.quic.path_figures()
    }

    /// Whether the handshake is complete.
    #[inline]
    pub fn is_ready(&self) -> bool {
        self.is_ready
    }

    /// Whether the SETTINGS of the server are in.
    pub fn has_settings(&self) -> bool {
        self.peer.has_settings()
    }

    /// Whether no further request can be sent, ever.
    #[inline]
    pub fn is_spent(&self) -> bool {
        self.peer.go_away_stream().is_some() || self.next_stream >= STREAMS_MAX
    }

    /// Takes the body of the reply that was given out last, where [`Limits::bodies`] has it kept.
    pub fn take_body(&mut self) -> Option<Body> {
        self.body.take()
    }

    /// Bytes received since this was last asked that belong to no reply. While something that came
    /// waits for what was lost before it, they cannot be told and are given later.
    #[inline]
    pub fn take_overhead(&mut self) -> u64 {
        if self.places.have_gaps() {
            0
        } else {
            self.rest_bytes()
        }
    }

    /// Whether the server keeps back bytes of a reply and has filled half of the window behind
    /// them, which is all that is kept of what cannot be read yet.
    pub fn is_withheld(&self, place: u32) -> bool {
        let kept_bytes = self.places.bytes_behind_gap(place, self.unread_bytes());
        kept_bytes >= self.window_bytes / 2
    }

    fn unread_bytes(&self) -> u64 {
        self.received_bytes.saturating_sub(self.claimed_bytes)
    }

    /// Bytes received that were not accounted for by anything else, on a connection that is over.
    pub fn rest_bytes(&mut self) -> u64 {
        let bytes = self.unread_bytes();
        self.claimed_bytes += bytes;
        bytes
    }

    /// The handshake is complete.
    fn connected(&mut self, now_ns: u64) -> Result<Option<Event>, Ended> {
        if open_control(&mut self.quic.inner, &[]).is_none() {
            if self.quic.inner.is_closed() {
                // The server closed it at once. That comes next.
                return Ok(None);
            }
            return Err(self.broken(ConnectionError::StreamCreation, now_ns));
        }
        self.is_ready = true;
        self.open_streams();
        Ok(Some(Event::Ready))
    }

    fn stream_event(
        &mut self,
        event: StreamEvent,
        now_ns: u64,
        limits: &Limits,
        known: &mut KnownHead,
    ) -> Result<Option<Event>, Ended> {
        match event {
            StreamEvent::Readable { id } if id.dir() == Dir::Bi => {
                return self.read_reply(id, now_ns, limits, known);
            }
            StreamEvent::Readable { id } => return self.read_peer(id, now_ns),
            StreamEvent::Opened { dir: Dir::Uni } => {
                let mut went_away = None;
                while let Some(id) = self.quic.inner.streams().accept(Dir::Uni) {
                    self.peer.opened(id);
                    went_away = self.read_peer(id, now_ns)?.or(went_away);
                }
                return Ok(went_away);
            }
            StreamEvent::Writable { id } => {
                if let Some(place) = self.places.of_stream(id.index()) {
                    self.write(place);
                }
            }
            // The rest of the body is not wanted. The reply may come all the same.
            StreamEvent::Stopped { id, error_code } => {
                if let Some(place) = self.places.of_stream(id.index()) {
                    let place = self.places.get_mut(place);
                    (place.unsent, place.is_sent) = (Bytes::new(), true);
                }
                let _ = self.quic.inner.send_stream(id).reset(error_code);
            }
            StreamEvent::Available { dir: Dir::Bi } => self.open_streams(),
            StreamEvent::Opened { .. }
            | StreamEvent::Available { .. }
            | StreamEvent::Finished { .. } => {}
        }
        Ok(None)
    }

    /// Reads what came of a reply.
    #[inline]
    fn read_reply(
        &mut self,
        id: StreamId,
        now_ns: u64,
        limits: &Limits,
        known: &mut KnownHead,
    ) -> Result<Option<Event>, Ended> {
        let Some(at) = self.places.of_stream(id.index()) else {
            return Ok(None);
        };
        let reader = &mut self.places.get_mut(at).reader;
        let mut stream = self.quic.inner.recv_stream(id);
        let (mut read_bytes, mut end) = (0, None);
        // One that was stopped is not read any more.
        if let Ok(mut chunks) = stream.read(true) {
            end = loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => {
                        read_bytes += chunk.bytes.len() as u64;
                        let taken = reader.receive(&chunk.bytes, now_ns, limits, known);
                        if let Err(error) = taken {
                            break Some(Err(error));
                        }
                    }
                    Ok(None) => break Some(reader.end()),
                    Err(ReadError::Blocked) => break None,
                    Err(ReadError::Reset(code)) => {
                        break Some(Err(StreamFailure::of_reset(code.into_inner()).into()));
                    }
                }
            };
            // What is to be sent is asked for in any case.
            let _ = chunks.finalize();
        }
        let overhead_bytes = reader.take_overhead();
        self.claimed_bytes += read_bytes;
        self.claimed_bytes -= overhead_bytes;
        let Some(end) = end else {
            let unread_bytes = self.unread_bytes();
            if read_bytes == 0 {
                // What came lies behind something that did not.
                self.places.note_gap(at, unread_bytes);
            } else {
                self.places.note_progress(at, unread_bytes);
            }
            return Ok(None);
        };
        match end {
            Ok(reply) => {
                self.body = self.places.get_mut(at).reader.take_body();
                self.free(at);
                Ok(Some(Event::Reply { place: at, reply }))
            }
            Err(ReplyError::Stream(why)) => {
                if let Some(code) = why.code() {
                    self.abort(at, code);
                }
                let discarded_bytes = self.free(at);
                Ok(Some(Event::Failed {
                    place: at,
                    why,
                    discarded_bytes,
                }))
            }
            Err(ReplyError::Connection(error)) => Err(self.broken(error, now_ns)),
        }
    }

    /// Reads what came on a unidirectional stream of the server.
    fn read_peer(&mut self, id: StreamId, now_ns: u64) -> Result<Option<Event>, Ended> {
        let went_before = self.peer.go_away_stream().is_some();
        match self.peer.read(&mut self.quic.inner, id) {
            Ok(false) => Ok(None),
            Ok(true) => {
                self.refuses = true;
                // A graceful server says it twice (RFC 9114 section 5.2).
                Ok((self.is_ready && !went_before).then_some(Event::GoAway { code: None }))
            }
            Err(error) => Err(self.broken(error, now_ns)),
        }
    }

    /// Gives out a request that GOAWAY names as not processed (RFC 9114 section 5.2).
    fn next_refused(&mut self) -> Option<Event> {
        let from = self.peer.go_away_stream().unwrap_or(STREAMS_MAX);
        let place = self.places.first_from(from)?;
        // It might still come, and is of no use to anybody.
        self.abort(place, ErrorCode::RequestCancelled);
        Some(Event::Failed {
            place,
            why: StreamFailure::NotProcessed,
            discarded_bytes: self.free(place),
        })
    }

    /// Writes what the server's windows take of a request, and ends its stream behind the last
    /// byte.
    #[inline]
    fn write(&mut self, place: u32) {
        let place = self.places.get_mut(place);
        let id = request_stream(place.stream);
        let mut stream = self.quic.inner.send_stream(id);
        if place.is_sent {
            return;
        }
        while !place.unsent.is_empty() {
            match stream.write_chunks(std::slice::from_mut(&mut place.unsent)) {
                Ok(_) => {}
                Err(WriteError::Blocked) => return,
                // It is reset where that is told.
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => break,
            }
        }
        place.is_sent = true;
        let _ = stream.finish();
    }

    /// Has both sides end the stream of a request with this code.
    fn abort(&mut self, place: u32, code: ErrorCode) {
        let code = code_of(code.number());
        let place = self.places.get_mut(place);
        let id = request_stream(place.stream);
        // What the server has ended already needs neither.
        let _ = self.quic.inner.recv_stream(id).stop(code);
        if !place.is_sent {
            let _ = self.quic.inner.send_stream(id).reset(code);
        }
    }

    /// The place is free again; gives the bytes that came of its reply.
    fn free(&mut self, place: u32) -> u64 {
        let (discarded_bytes, was_sent) = self.places.free(place);
        if !was_sent.is_sent {
            // The reply came before the whole request was sent: the rest is of no use (RFC 9114
            // section 4.1).
            let id = request_stream(was_sent.stream);
            let code = code_of(ErrorCode::RequestCancelled.number());
            let _ = self.quic.inner.send_stream(id).reset(code);
        }
        self.open_streams();
        discarded_bytes
    }

    /// Opens the streams of the next requests, as far as the server allows them.
    #[inline]
    fn open_streams(&mut self) {
        while self.depth() < self.depth {
            if self.quic.inner.streams().open(Dir::Bi).is_none() {
                return;
            }
            self.opened_streams += 1;
        }
    }

    /// The server broke a rule: the connection is closed.
    fn broken(&mut self, error: ConnectionError, now_ns: u64) -> Ended {
        self.close(error.code(), now_ns);
        Ended::Broken(error)
    }
}

/// Of a place that is free.
const NO_STREAM: u64 = u64::MAX;

/// A place, with the request in flight in it.
#[derive(Debug)]
struct RequestPlace {
    /// The number of its stream among those of the client.
    stream: u64,
    reader: ReplyReader,
    /// What was not written yet of the request.
    unsent: Bytes,
    /// All of it was written, and the end of its stream.
    is_sent: bool,
    /// Something may have come that lies behind something lost.
    has_gap: bool,
    /// Bytes of the connection that nobody had read when the reply got on last.
    unread_bytes: u64,
    /// The hint of its stream leads here.
    is_hinted: bool,
}

/// How the sending of a request stood when its place became free.
#[derive(Clone, Copy, Debug)]
struct Sending {
    stream: u64,
    is_sent: bool,
}

/// All places of a connection.
#[derive(Debug)]
struct Places {
    places: Vec<RequestPlace>,
    free: Vec<u32>,
    /// Where the request of a stream is, by the low bits of the stream's number. Streams that lie
    /// far from each other may share an entry, which is the later one's.
    hints: Box<[u32]>,
    /// Places of requests in flight that no hint leads to.
    unhinted: u32,
    /// Places that may have gaps.
    gaps: u32,
    depth: u32,
}

impl Places {
    /// Room for `depth` requests, which takes memory as it is used.
    fn new(depth: u32) -> Self {
        let hints = (2 * depth as usize).next_power_of_two();
        Self {
            places: Vec::new(),
            free: Vec::new(),
            hints: vec![0; hints].into(),
            unhinted: 0,
            gaps: 0,
            depth,
        }
    }

    /// A request takes a place, with this stream.
    #[inline]
    fn take(&mut self, stream: u64, template: &WorkerTemplate) -> u32 {
        debug_assert!(self.in_flight() < self.depth, "there is a place");
        let mut reader = ReplyReader::new(template.is_head);
        if template.is_call {
            reader.expect_call();
        }
        let place = RequestPlace {
            stream,
            reader,
            unsent: template.wire.clone(),
            is_sent: false,
            has_gap: false,
            unread_bytes: 0,
            is_hinted: true,
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.places[at as usize] = place;
                at
            }
            None => {
                if self.places.len() == self.places.capacity() {
                    // Most connections have few. A vector would begin with four.
                    self.places.reserve_exact(self.places.len().max(1));
                }
                self.places.push(place);
                self.places.len() as u32 - 1
            }
        };
        self.hint(at, stream);
        at
    }

    /// Has the hint of a stream lead to its place, and to no other one.
    #[inline]
    fn hint(&mut self, at: u32, stream: u64) {
        let hint = self.hint_of(stream);
        let before = std::mem::replace(&mut self.hints[hint], at);
        if before != at
            && let Some(other) = self.places.get(before as usize)
            && other.stream != NO_STREAM
            && other.is_hinted
            && self.hint_of(other.stream) == hint
        {
            self.places[before as usize].is_hinted = false;
            self.unhinted += 1;
        }
    }

    #[inline]
    fn hint_of(&self, stream: u64) -> usize {
        stream as usize & (self.hints.len() - 1)
    }

    /// The place of the request with this stream; absent where it is not in flight.
    #[inline]
    fn of_stream(&self, stream: u64) -> Option<u32> {
        let hinted = self.hints[self.hint_of(stream)];
        match self.places.get(hinted as usize) {
            Some(place) if place.stream == stream => Some(hinted),
            // What comes of a stream behind its reply is as frequent as replies.
            _ if self.unhinted == 0 => None,
            _ => self.find(|number| number == stream),
        }
    }

    /// A place whose request has a stream from this one on.
    fn first_from(&self, stream: u64) -> Option<u32> {
        self.find(|number| number >= stream && number != NO_STREAM)
    }

    /// The first place with a request in flight.
    fn first_in_flight(&self) -> Option<u32> {
        self.find(|number| number != NO_STREAM)
    }

    fn find(&self, is_it: impl Fn(u64) -> bool) -> Option<u32> {
        let at = self.places.iter().position(|place| is_it(place.stream));
        at.map(|at| at as u32)
    }

    #[inline]
    fn get_mut(&mut self, at: u32) -> &mut RequestPlace {
        &mut self.places[at as usize]
    }

    /// Frees a place; gives the bytes that came of its reply.
    #[inline]
    fn free(&mut self, at: u32) -> (u64, Sending) {
        let place = &mut self.places[at as usize];
        let sending = Sending {
            stream: place.stream,
            is_sent: place.is_sent,
        };
        let bytes = place.reader.pending_bytes();
        self.gaps -= u32::from(place.has_gap);
        self.unhinted -= u32::from(!place.is_hinted);
        (place.has_gap, place.is_hinted) = (false, true);
        place.stream = NO_STREAM;
        place.unsent = Bytes::new();
        self.free.push(at);
        (bytes, sending)
    }

    /// Something came for a place, and could not be read, as `unread_bytes` of the connection.
    fn note_gap(&mut self, at: u32, unread_bytes: u64) {
        let place = &mut self.places[at as usize];
        if !std::mem::replace(&mut place.has_gap, true) {
            place.unread_bytes = unread_bytes;
            self.gaps += 1;
        }
    }

    /// More of a reply was read, with so many bytes of the connection left.
    #[inline]
    fn note_progress(&mut self, at: u32, unread_bytes: u64) {
        self.places[at as usize].unread_bytes = unread_bytes;
    }

    /// Bytes that came since a reply got on, where it waits for something in front of them.
    fn bytes_behind_gap(&self, at: u32, unread_bytes: u64) -> u64 {
        let place = &self.places[at as usize];
        if place.has_gap {
            unread_bytes.saturating_sub(place.unread_bytes)
        } else {
            0
        }
    }

    /// Whether something may have come that cannot be read yet.
    #[inline]
    fn have_gaps(&self) -> bool {
        self.gaps > 0
    }

    /// Requests in flight.
    #[inline]
    fn in_flight(&self) -> u32 {
        (self.places.len() - self.free.len()) as u32
    }
}
