//! Negotiation over QUIC: a handshake, the server's settings, and the streams that it allows.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use brunt_io::backend::Peer;
use brunt_io::blocking::{Deadline, LinkError};
use brunt_io::clock;
use brunt_load::Plan;
use brunt_proto::Limits;
use brunt_proto::http3::{Client, Ended, ErrorCode, KnownHead};
use brunt_proto::quic::ClientTransport;
use brunt_proto::tls::{ClientSide, Version};
use brunt_record::NegotiatedTls as DescribedTls;

use super::{NegotiateError, Negotiated, NegotiatedTls, allowed_note, link_failed};
use crate::protocol::quic_transport;

/// Most bytes of a datagram.
const DATAGRAM_BYTES_MAX: usize = 65_535;
/// What is random in the packets of the one connection before the run, and of the one that takes
/// its place where the server refuses it.
const SEEDS: [[u8; 32]; 2] = [
    *b"brunt negotiates over QUIC first",
    *b"brunt negotiates over QUIC again",
];
/// What is said of the cipher suite, which QUIC does not tell.
const SUITE: &str = "in QUIC";
/// The step that is QUIC's own (RFC 9001 section 4).
const HANDSHAKE: &str = "the handshake of QUIC, over UDP,";

/// Negotiates with a server of HTTP/3 at `peer`, on a connection that is closed again.
///
/// # Errors
///
/// Nobody speaks it there, or not before the time of an attempt is over.
pub(crate) fn negotiate(
    plan: &Plan,
    side: ClientSide,
    peer: &Peer,
) -> Result<Negotiated, NegotiateError> {
    let Peer::Udp(address) = *peer else {
        unreachable!("QUIC is over datagrams");
    };
    let protocol = plan.connection.protocol.preferred();
    let server = &plan.target.authority;
    // A part of the reason may be the server's words.
    let failed = |reason: String| {
        NegotiateError(format!(
            "{server} does not speak HTTP/3 with brunt: {reason}"
        ))
    };
    let transport = quic_transport(&side, 1).map_err(|reason| failed(reason.to_string()))?;
    let asked = plan.depth_over(protocol);
    let deadline = Deadline::after(plan.limits.connect_timeout_ns);
    let exchanged = attempts(&transport, asked, address, deadline);
    let depth = exchanged
        .map_err(|error| link_failed(plan, HANDSHAKE, error))?
        .map_err(|ended| failed(ended.to_string()))?;
    if depth == 0 {
        return Err(NegotiateError(format!(
            "{server} allows no requests in HTTP/3 (its initial_max_streams_bidi is 0); use --http1"
        )));
    }
    let description = DescribedTls {
        version: Version::Tls13.as_str().to_owned(),
        cipher_suite: SUITE.to_owned(),
        group: None,
    };
    Ok(Negotiated {
        protocol,
        note: allowed_note(protocol, depth, asked),
        tls: Some(NegotiatedTls::new(side, protocol, description)),
        depth,
    })
}

/// Negotiates on a connection, and on another one where the server refuses that, from the same
/// socket.
fn attempts(
    transport: &ClientTransport,
    asked: u32,
    address: SocketAddr,
    deadline: Deadline,
) -> Result<Result<u32, Ended>, LinkError> {
    let unspecified: SocketAddr = match address {
        SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
        SocketAddr::V6(_) => ([0; 16], 0).into(),
    };
    let socket = UdpSocket::bind(unspecified)?;
    socket.connect(address)?;
    let attempt = |seed| {
        let client = Client::open(transport, asked, seed, clock::now_ns());
        let nameless = || io::Error::other("no certificate can have the server's name");
        exchange(client.ok_or_else(nameless)?, &socket, deadline)
    };
    match attempt(SEEDS[0]) {
        Ok(Err(ended)) if ended.is_refusal() => attempt(SEEDS[1]),
        exchanged => exchanged,
    }
}

/// Exchanges datagrams until the server's settings are in, and closes the connection; gives how
/// many requests the server allows.
fn exchange(
    mut client: Client,
    socket: &UdpSocket,
    deadline: Deadline,
) -> Result<Result<u32, Ended>, LinkError> {
    let (limits, mut known) = (Limits::default(), KnownHead::default());
    let (mut buffer, mut out) = (vec![0; DATAGRAM_BYTES_MAX], Vec::new());
    loop {
        send(socket, &mut client, &mut out)?;
        if client.is_ready() && client.has_settings() {
            let depth = client.depth();
            client.close(ErrorCode::NoError, clock::now_ns());
            // Whether it still hears that makes no difference here.
            let _ = send(socket, &mut client, &mut out);
            return Ok(Ok(depth));
        }
        let now_ns = clock::now_ns();
        let timer_ns = client.deadline_ns().saturating_sub(now_ns).max(1);
        let left = deadline.left()?;
        socket.set_read_timeout(Some(left.min(Duration::from_nanos(timer_ns))))?;
        match socket.recv(&mut buffer) {
            // A datagram without bytes says nothing, and anybody may send one.
            Ok(0) => {}
            Ok(bytes) => client.receive(&buffer[..bytes], None, clock::now_ns()),
            Err(error) if is_no_matter(&error) => client.expire(clock::now_ns()),
            Err(error) => return Err(error.into()),
        }
        loop {
            let event = client.event(clock::now_ns(), &limits, &mut known);
            match event {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(ended) => {
                    // It may have to be told.
                    let _ = send(socket, &mut client, &mut out);
                    return Ok(Err(ended));
                }
            }
        }
    }
}

/// Sends what is to be sent.
fn send(socket: &UdpSocket, client: &mut Client, out: &mut Vec<u8>) -> io::Result<()> {
    loop {
        out.clear();
        let Some(sent) = client.transmit(clock::now_ns(), out) else {
            return Ok(());
        };
        for datagram in out.chunks(sent.segment_bytes.get().into()) {
            socket.send(datagram)?;
        }
    }
}

/// Nothing came in time, or the wait was interrupted.
fn is_no_matter(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}
