//! A blocking connection, in clear text or over TLS, with a deadline: for what is exchanged
//! beside the load.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use brunt_load::SocketOptions;
use brunt_proto::tls::{ClientSide, Negotiated, Scratch, Session, TlsError};
use socket2::Socket;

use crate::backend::Peer;
use crate::clock;
use crate::socket::{self, Blocking};

/// Most bytes that one read takes.
const READ_BYTES: usize = 64 << 10;
/// First byte of a TLS record (RFC 8446 section 5.1) that a server's handshake may begin with.
const RECORD_ALERT: u8 = 21;
const RECORD_HANDSHAKE: u8 = 22;

/// The instant until which something may last.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    at_ns: u64,
}

impl Deadline {
    /// The deadline `limit_ns` from now.
    pub fn after(limit_ns: u64) -> Self {
        Self {
            at_ns: clock::now_ns().saturating_add(limit_ns),
        }
    }

    /// The earlier one of this deadline and `limit_ns` from now.
    pub fn or_after(self, limit_ns: u64) -> Self {
        Self {
            at_ns: self.at_ns.min(Self::after(limit_ns).at_ns),
        }
    }

    /// Time left until the deadline, more than 0.
    ///
    /// # Errors
    ///
    /// [`LinkError::Timeout`]: nothing is.
    pub fn left(self) -> Result<Duration, LinkError> {
        match self.at_ns.saturating_sub(clock::now_ns()) {
            0 => Err(LinkError::Timeout),
            ns => Ok(Duration::from_nanos(ns)),
        }
    }
}

/// Why a connection did not come about, or is of no more use.
#[derive(Debug)]
pub enum LinkError {
    /// The deadline has passed.
    Timeout,
    /// The kernel's reason.
    Lost(io::Error),
    /// The peer answered the TLS handshake by something else.
    NotTls,
    /// The TLS handshake failed, or a record could not be read.
    Tls(TlsError),
}

impl From<io::Error> for LinkError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Timeout,
            _ => Self::Lost(error),
        }
    }
}

impl From<TlsError> for LinkError {
    fn from(error: TlsError) -> Self {
        Self::Tls(error)
    }
}

/// A connection.
pub struct Link {
    socket: Socket,
    session: Option<Session>,
    scratch: Scratch,
    /// Plain text that came with the end of the handshake.
    early: Vec<u8>,
    /// Bytes from or for the socket.
    buffer: Vec<u8>,
    wire: Vec<u8>,
}

impl Link {
    /// Connects, within `patience`.
    pub fn connect(peer: &Peer, patience: Duration) -> io::Result<Self> {
        let socket = socket::client(peer, None, Blocking::Yes, &SocketOptions::default())?;
        socket.connect_timeout(&socket::address(peer)?, patience)?;
        Ok(Self {
            socket,
            session: None,
            scratch: Scratch::default(),
            early: Vec::new(),
            buffer: vec![0; READ_BYTES],
            wire: Vec::new(),
        })
    }

    /// Makes the TLS handshake.
    pub fn secure(
        &mut self,
        side: &ClientSide,
        deadline: Deadline,
    ) -> Result<Negotiated, LinkError> {
        let mut session = Session::client(side)?;
        session.receive(&[], &mut self.scratch, &mut self.early, &mut self.wire)?;
        let mut is_first = true;
        self.flush(deadline)?;
        loop {
            if let Some(negotiated) = session.negotiated() {
                self.session = Some(session);
                return Ok(negotiated);
            }
            let count = self.read(deadline)?;
            if count == 0 {
                return Err(LinkError::Lost(closed()));
            }
            if is_first && !matches!(self.buffer[0], RECORD_ALERT | RECORD_HANDSHAKE) {
                return Err(LinkError::NotTls);
            }
            is_first = false;
            let bytes = &self.buffer[..count];
            let outcome =
                session.receive(bytes, &mut self.scratch, &mut self.early, &mut self.wire);
            self.send_output(outcome, deadline)?;
        }
    }

    /// Sends all of `bytes`.
    pub fn send(&mut self, bytes: &[u8], deadline: Deadline) -> Result<(), LinkError> {
        match &mut self.session {
            Some(session) => session.send(bytes, &mut self.wire)?,
            None => self.wire.extend_from_slice(bytes),
        }
        self.flush(deadline)
    }

    /// Appends what comes next to `plain`, which may be nothing of its own (a session ticket).
    /// False at the end of the connection.
    pub fn receive(&mut self, plain: &mut Vec<u8>, deadline: Deadline) -> Result<bool, LinkError> {
        if !self.early.is_empty() {
            plain.append(&mut self.early);
            return Ok(true);
        }
        if self.session.as_ref().is_some_and(Session::is_ended) {
            return Ok(false);
        }
        let count = self.read(deadline)?;
        if count == 0 {
            return Ok(false);
        }
        let Some(session) = &mut self.session else {
            plain.extend_from_slice(&self.buffer[..count]);
            return Ok(true);
        };
        let bytes = &self.buffer[..count];
        let outcome = session.receive(bytes, &mut self.scratch, plain, &mut self.wire);
        self.send_output(outcome, deadline)?;
        Ok(true)
    }

    /// Sends the session's output after received bytes, the alert for an error included.
    fn send_output(
        &mut self,
        outcome: Result<(), TlsError>,
        deadline: Deadline,
    ) -> Result<(), LinkError> {
        let sent = self.flush(deadline);
        outcome?;
        sent
    }

    /// Takes leave: the peer need not take the end for a cut.
    pub fn close(mut self, deadline: Deadline) {
        if let Some(session) = self.session.take() {
            session.close(&mut self.wire);
            // Whether it still hears that makes no difference here.
            let _ = self.flush(deadline);
        }
    }

    /// Sends what is to be sent. A peer that takes no more may have said why: that it is gone is
    /// left to be found by the next read.
    fn flush(&mut self, deadline: Deadline) -> Result<(), LinkError> {
        if self.wire.is_empty() {
            return Ok(());
        }
        self.socket.set_write_timeout(Some(deadline.left()?))?;
        let outcome = self.socket.write_all(&self.wire).map_err(LinkError::from);
        self.wire.clear();
        match outcome {
            Err(LinkError::Timeout) => Err(LinkError::Timeout),
            _ => Ok(()),
        }
    }

    fn read(&mut self, deadline: Deadline) -> Result<usize, LinkError> {
        loop {
            self.socket.set_read_timeout(Some(deadline.left()?))?;
            match self.socket.read(&mut self.buffer) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                outcome => return Ok(outcome?),
            }
        }
    }
}

/// A connection that ended too early.
pub fn closed() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the peer closed it")
}
