//! A server's side of all connections of a socket, over QUIC: datagrams, addresses and a time in,
//! events out, datagrams to be sent when asked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::{DatagramEvent, Dir, Endpoint, Incoming, ReadError, StreamEvent, StreamId};

use super::error::{ConnectionError, Ended, RequestReadError};
use super::frame::{self, Setting, Side};
use super::message::{RequestPart, RequestReader};
use super::peer::{PeerStreams, code_of, open_control, request_stream};
use crate::quic::{self, Ecn, Sent, ServerTransport};

/// One place in so many is kept for clients that receive at their addresses.
const PROVEN_PART: u32 = 4;

/// Whose a datagram was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// The connection of this number, which begins with it.
    Begun(u32),
    /// The connection of this number.
    Of(u32),
    /// Nobody's.
    Nobody,
    /// That of a connection which would have been one too many.
    Refused,
    /// That of a connection whose handshake failed with it.
    Failed,
}

/// The server's side of the connections of one socket (RFC 9114). They have numbers, from 0, dense;
/// that of one that is over is free again.
#[derive(Debug)]
pub struct Server {
    /// The connections by the ids in their packets.
    endpoint: Endpoint,
    /// The instant 0.
    origin: Instant,
    connections: Vec<Option<Box<ServerConnection>>>,
    /// How many there are.
    open: u32,
    connections_max: u32,
}

impl Server {
    /// A server without connections, which takes `connections_max` at a time and refuses further
    /// ones. What is random in packets follows from `seed`, but for ids and keys.
    pub fn new(transport: &ServerTransport, connections_max: u32, seed: [u8; 32]) -> Self {
        let config = Arc::clone(&transport.endpoint);
        let server = Some(Arc::clone(&transport.server));
        Self {
            endpoint: Endpoint::new(config, server, true, Some(seed)),
            origin: transport.origin,
            connections: Vec::new(),
            open: 0,
            connections_max,
        }
    }

    /// Takes a datagram. What it brings about is given out by the connection's events. What is to
    /// be sent back at once, as one datagram, is appended to `answer`, which is empty.
    pub fn receive(
        &mut self,
        from: SocketAddr,
        datagram: &[u8],
        ecn: Option<Ecn>,
        now_ns: u64,
        answer: &mut Vec<u8>,
    ) -> Received {
        let now = self.origin + Duration::from_nanos(now_ns);
        let bytes = BytesMut::from(datagram);
        let ecn = ecn.map(Ecn::codepoint);
        match self.endpoint.handle(now, from, None, ecn, bytes, answer) {
            Some(DatagramEvent::NewConnection(incoming)) => self.admit(incoming, now, answer),
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                let Some(Some(connection)) = self.connections.get_mut(handle.0) else {
                    return Received::Nobody;
                };
                connection.quic.take(event);
                Received::Of(handle.0 as u32)
            }
            Some(DatagramEvent::Response(_)) | None => Received::Nobody,
        }
    }

    /// Takes a connection that begins, or not. The last quarter of the places is for clients that
    /// receive at their addresses, which others are asked to show (Retry, RFC 9000 section 8.1.2),
    /// so that datagrams from invented ones cannot take all of them.
    fn admit(&mut self, incoming: Incoming, now: Instant, answer: &mut Vec<u8>) -> Received {
        let left = self.connections_max.saturating_sub(self.open);
        if left == 0 {
            // What it gives is the address, which is that of the datagram.
            let _ = self.endpoint.refuse(incoming, answer);
            return Received::Refused;
        }
        let is_kept = left <= self.connections_max / PROVEN_PART;
        if is_kept && !incoming.remote_address_validated() {
            if let Err(error) = self.endpoint.retry(incoming, answer) {
                self.endpoint.ignore(error.into_incoming());
            }
            return Received::Nobody;
        }
        let Ok((handle, inner)) = self.endpoint.accept(incoming, now, answer, None) else {
            return Received::Failed;
        };
        let number = handle.0;
        if self.connections.len() <= number {
            self.connections.resize_with(number + 1, || None);
        }
        let quic = quic::Connection::new(handle, inner, self.origin);
        self.connections[number] = Some(Box::new(ServerConnection::new(quic)));
        self.open += 1;
        Received::Begun(number as u32)
    }

    /// The connection of this number, while it lasts.
    pub fn connection(&mut self, number: u32) -> Option<&mut ServerConnection> {
        self.connections.get_mut(number as usize)?.as_deref_mut()
    }

    /// Appends what is to be sent next on a connection to `out`, which is empty, and gives to whom;
    /// absent for nothing. To be called after anything that happens on it, until there is nothing.
    pub fn transmit(
        &mut self,
        number: u32,
        now_ns: u64,
        out: &mut Vec<u8>,
    ) -> Option<(SocketAddr, Sent)> {
        let connection = self.connections.get_mut(number as usize)?.as_deref_mut()?;
        // Not before: the number of a connection that is over would be free while it is here.
        connection.quic.tell(&mut self.endpoint);
        connection.quic.transmit(now_ns, out)
    }

    /// When [`expire`](Self::expire) is to be called; [`u64::MAX`] for never. Changes with all that
    /// happens on the connection.
    pub fn deadline_ns(&mut self, number: u32) -> u64 {
        let connection = self.connection(number);
        connection.map_or(u64::MAX, |connection| connection.quic.deadline_ns())
    }

    /// A timer of a connection is due.
    pub fn expire(&mut self, number: u32, now_ns: u64) {
        if let Some(connection) = self.connection(number) {
            connection.quic.expire(now_ns);
        }
    }

    /// Forgets a connection that is over and of which nobody needs to be told any more; to be
    /// called when there is nothing to be sent on it. Gives whether it was.
    pub fn forget(&mut self, number: u32) -> bool {
        let Some(place) = self.connections.get_mut(number as usize) else {
            return false;
        };
        let Some(connection) = place else {
            return false;
        };
        connection.quic.tell(&mut self.endpoint);
        let is_drained = connection.quic.is_drained();
        if is_drained {
            *place = None;
            self.open -= 1;
        }
        is_drained
    }

    /// Forgets a connection at once, whatever its client makes of that; to be called when there is
    /// nothing to be sent on it.
    pub fn give_up(&mut self, number: u32) {
        let place = self.connections.get_mut(number as usize);
        if let Some(connection) = place.and_then(Option::take) {
            connection.quic.forget(&mut self.endpoint);
            self.open -= 1;
        }
    }
}

/// What happened on a connection. Streams are those that carry requests, by their numbers among
/// them, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerEvent {
    /// The handshake is complete.
    Ready,
    /// Something of a request may have come on the stream, which may be a new one.
    Readable {
        /// The stream.
        stream: u64,
    },
    /// More of a reply can be written.
    Writable {
        /// The stream.
        stream: u64,
    },
    /// The client does not want the rest of the reply, and will not get it.
    Stopped {
        /// The stream.
        stream: u64,
        /// The code that it gives.
        code: u64,
    },
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestRead {
    /// More is to come.
    More,
    /// It is complete.
    Complete,
    /// The client gave it up.
    Reset,
    /// It cannot be read any more.
    Failed(RequestReadError),
}

/// The server's side of one connection.
#[derive(Debug)]
pub struct ServerConnection {
    quic: quic::Connection,
    peer: PeerStreams,
    /// The stream on which the server tells of the connection, once the handshake is complete.
    control: Option<StreamId>,
    /// There may be new streams of requests.
    has_opened: bool,
    /// The first stream that the client is told not to be processed.
    goes_away_from: Option<u64>,
    /// Bytes of requests that were read.
    read_bytes: u64,
}

impl ServerConnection {
    fn new(quic: quic::Connection) -> Self {
        Self {
            quic,
            peer: PeerStreams::new(Side::Server),
            control: None,
            has_opened: false,
            goes_away_from: None,
            read_bytes: 0,
        }
    }

    /// What happened since this was last asked; to be called until there is nothing, after
    /// everything that comes or falls due. `settings` are sent when the handshake is complete.
    ///
    /// # Errors
    ///
    /// The connection is over; what says so to the client may still have to be sent.
    pub fn event(
        &mut self,
        now_ns: u64,
        settings: &[(Setting, u64)],
    ) -> Result<Option<ServerEvent>, Ended> {
        loop {
            if self.has_opened {
                if let Some(id) = self.quic.inner.streams().accept(Dir::Bi) {
                    let stream = id.index();
                    return Ok(Some(ServerEvent::Readable { stream }));
                }
                self.has_opened = false;
            }
            let Some(polled) = self.quic.poll() else {
                return Ok(None);
            };
            match polled.map_err(Ended::Lost)? {
                quinn_proto::Event::Connected if self.open_control(settings, now_ns)? => {
                    return Ok(Some(ServerEvent::Ready));
                }
                quinn_proto::Event::Stream(event) => {
                    if let event @ Some(_) = self.stream_event(event, now_ns)? {
                        return Ok(event);
                    }
                }
                _ => {}
            }
        }
    }

    /// Bytes of requests that were read so far.
    pub fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Has the client send so many bytes in advance of what is read, on all streams together.
    pub fn set_window(&mut self, bytes: u64) {
        self.quic.set_window(bytes);
    }

    /// Reads what came of the request on a stream, and hands its parts to `each`, which gives what
    /// a head says of the bytes of content. A field section has `head_bytes_max` as it comes. A
    /// client that broke the rules of the whole connection is told so.
    pub fn read(
        &mut self,
        stream: u64,
        reader: &mut RequestReader,
        head_bytes_max: u32,
        now_ns: u64,
        mut each: impl FnMut(RequestPart<'_>) -> Option<u64>,
    ) -> RequestRead {
        let mut received = self.quic.inner.recv_stream(request_stream(stream));
        // One that was stopped is not read any more.
        let Ok(mut chunks) = received.read(true) else {
            return RequestRead::More;
        };
        let read = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    self.read_bytes += chunk.bytes.len() as u64;
                    if let Err(error) = take(reader, &chunk.bytes, head_bytes_max, &mut each) {
                        break RequestRead::Failed(error);
                    }
                }
                Ok(None) => {
                    let end = reader.end();
                    break end.map_or_else(RequestRead::Failed, |()| RequestRead::Complete);
                }
                Err(ReadError::Blocked) => break RequestRead::More,
                Err(ReadError::Reset(_)) => break RequestRead::Reset,
            }
        };
        // What is to be sent is asked for in any case.
        let _ = chunks.finalize();
        if let RequestRead::Failed(RequestReadError::Connection(error)) = read {
            self.close(error.code().number(), error.to_string(), now_ns);
        }
        read
    }

    /// Writes what the client's windows take of a reply; gives how many bytes that is. Those that
    /// nobody will read count as written. Where it is not all, [`ServerEvent::Writable`] says when
    /// more is taken.
    pub fn write(&mut self, stream: u64, bytes: &[u8]) -> usize {
        let mut stream = self.quic.inner.send_stream(request_stream(stream));
        let mut written = 0;
        // Only a write of which nothing was taken has that event follow.
        while written < bytes.len() {
            match stream.write(&bytes[written..]) {
                Ok(count) => written += count,
                Err(quinn_proto::WriteError::Blocked) => break,
                Err(_) => return bytes.len(),
            }
        }
        written
    }

    /// Ends a stream behind what was written on it.
    pub fn finish(&mut self, stream: u64) {
        // One that the client stopped has ended.
        let _ = self.quic.inner.send_stream(request_stream(stream)).finish();
    }

    /// Ends a stream with this code; what was written and not sent is dropped.
    pub fn reset(&mut self, stream: u64, code: u64) {
        let _ = self
            .quic
            .inner
            .send_stream(request_stream(stream))
            .reset(code_of(code));
    }

    /// Tells the client that the rest of a request is not wanted.
    pub fn stop(&mut self, stream: u64, code: u64) {
        // One that is complete cannot be stopped.
        let _ = self
            .quic
            .inner
            .recv_stream(request_stream(stream))
            .stop(code_of(code));
    }

    /// Tells the client that streams from this one on are not processed (GOAWAY). A later call
    /// never takes in more.
    pub fn go_away(&mut self, from_stream: u64) {
        let from = self.goes_away_from.map_or(from_stream, |before| {
            // RFC 9114 section 5.2.
            before.min(from_stream)
        });
        let (Some(control), false) = (self.control, self.goes_away_from == Some(from)) else {
            return;
        };
        self.goes_away_from = Some(from);
        let mut bytes = Vec::new();
        frame::write_go_away(&mut bytes, u64::from(request_stream(from)));
        // A few bytes find room in any window that a client may give (RFC 9114 section 6.2).
        let _ = self.quic.inner.send_stream(control).write(&bytes);
    }

    /// Writes these bytes on the control stream, and ends it behind them if it `ends`: for servers
    /// by which clients are tested.
    pub fn write_control(&mut self, bytes: &[u8], ends: bool) {
        let Some(control) = self.control else {
            return;
        };
        let mut stream = self.quic.inner.send_stream(control);
        // A few bytes find room in any window; what a client refuses is its own doing.
        let _ = stream.write(bytes);
        if ends {
            let _ = stream.finish();
        }
    }

    /// Writes these bytes on a unidirectional stream more, where the client allows one: for the
    /// same.
    pub fn write_on_new_stream(&mut self, bytes: &[u8]) {
        if let Some(id) = self.quic.inner.streams().open(Dir::Uni) {
            let _ = self.quic.inner.send_stream(id).write(bytes);
        }
    }

    /// The first stream that is not processed, once [`go_away`](Self::go_away) was called.
    pub fn goes_away_from(&self) -> Option<u64> {
        self.goes_away_from
    }

    /// Ends the connection with a code of HTTP/3, and a reason for people; what says so to the
    /// client is still to be sent.
    pub fn close(&mut self, code: u64, reason: impl Into<String>, now_ns: u64) {
        self.quic.close(code, reason.into(), now_ns);
    }

    /// Opens the control stream (RFC 9114 section 6.2.1); not where the client closed the
    /// connection at once.
    fn open_control(&mut self, settings: &[(Setting, u64)], now_ns: u64) -> Result<bool, Ended> {
        let Some(control) = open_control(&mut self.quic.inner, settings) else {
            if self.quic.inner.is_closed() {
                return Ok(false);
            }
            return Err(self.broken(ConnectionError::StreamCreation, now_ns));
        };
        self.control = Some(control);
        Ok(true)
    }

    fn stream_event(
        &mut self,
        event: StreamEvent,
        now_ns: u64,
    ) -> Result<Option<ServerEvent>, Ended> {
        Ok(match event {
            StreamEvent::Readable { id } if id.dir() == Dir::Bi => {
                Some(ServerEvent::Readable { stream: id.index() })
            }
            StreamEvent::Readable { id } => {
                self.read_peer(id, now_ns)?;
                None
            }
            StreamEvent::Opened { dir: Dir::Bi } => {
                self.has_opened = true;
                None
            }
            StreamEvent::Opened { dir: Dir::Uni } => {
                while let Some(id) = self.quic.inner.streams().accept(Dir::Uni) {
                    self.peer.opened(id);
                    self.read_peer(id, now_ns)?;
                }
                None
            }
            StreamEvent::Writable { id } if id.dir() == Dir::Bi => {
                Some(ServerEvent::Writable { stream: id.index() })
            }
            StreamEvent::Stopped { id, .. } if id.dir() == Dir::Uni => {
                return Err(self.broken(ConnectionError::ClosedCriticalStream, now_ns));
            }
            StreamEvent::Stopped { id, error_code } => {
                let _ = self.quic.inner.send_stream(id).reset(error_code);
                Some(ServerEvent::Stopped {
                    stream: id.index(),
                    code: error_code.into_inner(),
                })
            }
            StreamEvent::Writable { .. }
            | StreamEvent::Available { .. }
            | StreamEvent::Finished { .. } => None,
        })
    }

    /// Reads what came on a unidirectional stream of the client.
    fn read_peer(&mut self, id: StreamId, now_ns: u64) -> Result<(), Ended> {
        match self.peer.read(&mut self.quic.inner, id) {
            // It pushes nothing, and leaves when it is done.
            Ok(_) => Ok(()),
            Err(error) => Err(self.broken(error, now_ns)),
        }
    }

    fn broken(&mut self, error: ConnectionError, now_ns: u64) -> Ended {
        self.close(error.code().number(), error.to_string(), now_ns);
        Ended::Broken(error)
    }
}

/// Takes bytes of a request.
fn take(
    reader: &mut RequestReader,
    bytes: &[u8],
    head_bytes_max: u32,
    each: &mut impl FnMut(RequestPart<'_>) -> Option<u64>,
) -> Result<(), RequestReadError> {
    let mut rest = bytes;
    loop {
        let content_length = match reader.receive(&mut rest, head_bytes_max)? {
            None => return Ok(()),
            Some(part @ RequestPart::Head(_)) => Some(each(part)),
            Some(part) => {
                each(part);
                None
            }
        };
        if let Some(content_length) = content_length {
            reader.set_content_length(content_length);
        }
    }
}
