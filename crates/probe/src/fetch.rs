//! One GET in HTTP/1.1, in clear text or over TLS, for metrics and counters beside the load:
//! blocking, bounded in time and size.

use std::io::{self, ErrorKind};
use std::net::ToSocketAddrs;

use brunt_io::backend::Peer;
use brunt_io::blocking::{Deadline, Link, LinkError, closed};
use brunt_io::tls_config::{PageTls, TlsConfigError, remedy};
use brunt_load::Target;
use brunt_proto::http1::{KnownHead, ReplyError, ReplyParser, Request, RequestError, RequestKind};
use brunt_proto::tls::{CertificateObjection, ClientOptions, ClientSide, TlsError};
use brunt_proto::{BodiesWanted, Limits};
use thiserror::Error;

/// Most that a body may have, bytes; with its chunk framing.
const BODY_BYTES_MAX: usize = 4 << 20;
/// Addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// Why a page beside the load could not be read.
#[derive(Debug, Error)]
#[error("cannot read {url}: {fault}")]
pub struct FetchError {
    /// What was to be read.
    pub url: String,
    /// What went wrong.
    pub fault: FetchFault,
}

/// What went wrong when a page was to be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FetchFault {
    /// The host name has no address, for the resolver's reason.
    #[error("its host has no address ({0}); check the name")]
    Resolve(io::Error),
    /// The URL cannot be put into a request.
    #[error(transparent)]
    Request(RequestError),
    /// TLS cannot be spoken as it is asked for.
    #[error(transparent)]
    TlsConfig(TlsConfigError),
    /// The server's certificate does not pass.
    #[error("the certificate {0}; {remedy}", remedy = remedy(.0.fault))]
    Certificate(CertificateObjection),
    /// The TLS handshake failed otherwise, or the session broke.
    #[error(transparent)]
    Tls(TlsError),
    /// An https URL, and a server that answers in clear text.
    #[error("its server does not speak TLS; use http:// in place of https://")]
    NotTls,
    /// No connection, for the kernel's reason at the last address tried.
    #[error("{0}; is it running, and the address and port right?")]
    Connect(io::Error),
    /// The connection was lost, for the kernel's reason.
    #[error("the connection was lost ({0})")]
    Lost(io::Error),
    /// The answer took too long.
    #[error("no complete answer within {limit_ms} ms; give a page that is faster")]
    Timeout {
        /// The limit.
        limit_ms: u64,
    },
    /// The answer is not HTTP.
    #[error("the answer is not an HTTP/1.1 reply ({0}); is this an http port?")]
    Reply(ReplyError),
    /// The answer has this status, and not 200. Redirections are not followed.
    #[error("it answered with status {0}; give the URL that answers 200")]
    Status(u16),
    /// The body is too large.
    #[error("its body is over 4 MiB; give a smaller page")]
    TooLarge,
}

impl From<LinkError> for FetchFault {
    /// The limit of a time-out is left to [`Page::get`], which knows it.
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Timeout => Self::Timeout { limit_ms: 0 },
            LinkError::Lost(reason) => Self::Lost(reason),
            LinkError::NotTls => Self::NotTls,
            LinkError::Tls(TlsError::Certificate(reason)) => Self::Certificate(reason),
            LinkError::Tls(reason) => Self::Tls(reason),
        }
    }
}

/// Asks for a page once: whether it is answered with 200, within `limit_ns` and the time that it
/// takes to resolve its host.
///
/// # Errors
///
/// It is not.
pub fn ask(target: &Target, tls: &PageTls, limit_ns: u64) -> Result<(), FetchError> {
    match Page::new(target, tls)?.get(limit_ns) {
        // It was answered.
        Err(error) if !matches!(error.fault, FetchFault::TooLarge) => Err(error),
        _ => Ok(()),
    }
}

/// Whether `peer`, which is called `host`, takes part in a TLS handshake. Nothing is asked of it
/// behind that; takes at most `limit_ns`.
pub fn speaks_tls(peer: &Peer, host: &str, limit_ns: u64) -> bool {
    let deadline = Deadline::after(limit_ns);
    let Ok(side) = ClientSide::new(ClientOptions {
        insecure: true,
        ..ClientOptions::new(host)
    }) else {
        return false;
    };
    let outcome = deadline.left().and_then(|patience| {
        let mut link = Link::connect(peer, patience)?;
        link.secure(&side, deadline)?;
        link.close(deadline);
        Ok(())
    });
    // One that ends the handshake by an alert speaks it, too.
    matches!(outcome, Ok(()) | Err(LinkError::Tls(_)))
}

/// A page that can be read again and again. Its host is resolved once.
#[derive(Debug)]
pub(crate) struct Page {
    url: String,
    peers: Vec<Peer>,
    /// The TLS side of the connection; absent in clear text.
    tls: Option<ClientSide>,
    request: Vec<u8>,
}

impl Page {
    /// Resolves the host and reads the files of TLS; connects to nothing.
    pub(crate) fn new(target: &Target, tls: &PageTls) -> Result<Self, FetchError> {
        let url = target.url.clone();
        let fail = |fault| FetchError {
            url: url.clone(),
            fault,
        };
        let tls = tls.side(target).map_err(FetchFault::TlsConfig);
        let tls = tls.map_err(fail)?;
        let headers = [("Accept".to_owned(), "text/plain, */*".to_owned())];
        let request = Request {
            method: "GET",
            path: &target.path,
            host: &target.authority,
            headers: &headers,
            body: &[],
            close: true,
        };
        let request = request.encode().map_err(FetchFault::Request);
        let request = request.map_err(fail)?;
        let peers = match &target.unix_socket {
            Some(path) => vec![Peer::Unix(path.clone())],
            None => match (target.host.as_str(), target.port).to_socket_addrs() {
                Ok(addresses) => addresses.take(ADDRESSES_MAX).map(Peer::Tcp).collect(),
                Err(reason) => return Err(fail(FetchFault::Resolve(reason))),
            },
        };
        Ok(Self {
            url,
            peers,
            tls,
            request,
        })
    }

    /// What is read.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Reads it: the body, with what is not UTF-8 replaced. Takes at most `limit_ns`.
    pub(crate) fn get(&self, limit_ns: u64) -> Result<String, FetchError> {
        let outcome = self.exchange(Deadline::after(limit_ns));
        outcome.map_err(|mut fault| {
            if let FetchFault::Timeout { limit_ms } = &mut fault {
                *limit_ms = limit_ns / 1_000_000;
            }
            let url = self.url.clone();
            FetchError { url, fault }
        })
    }

    fn exchange(&self, deadline: Deadline) -> Result<String, FetchFault> {
        let mut link = self.connect(deadline)?;
        if let Some(side) = &self.tls {
            link.secure(side, deadline)?;
        }
        link.send(&self.request, deadline)?;
        let mut reader = ReplyReader::default();
        let mut received = Vec::new();
        loop {
            received.clear();
            let is_open = link.receive(&mut received, deadline)?;
            if is_open && received.is_empty() {
                // A TLS record without content of its own.
                continue;
            }
            if let Some(body) = reader.receive(&received)? {
                link.close(deadline);
                return Ok(String::from_utf8_lossy(&body).into_owned());
            }
        }
    }

    fn connect(&self, deadline: Deadline) -> Result<Link, FetchFault> {
        let mut failure = io::Error::new(ErrorKind::NotFound, "the host has no address");
        for (peer, peers_left) in self.peers.iter().zip((1..=self.peers.len() as u32).rev()) {
            // An address that stays silent leaves the others their share of the time.
            match Link::connect(peer, deadline.left()? / peers_left) {
                Ok(link) => return Ok(link),
                Err(error) => failure = error,
            }
        }
        Err(match failure.kind() {
            ErrorKind::TimedOut => LinkError::Timeout.into(),
            _ => FetchFault::Connect(failure),
        })
    }
}

/// A reply that is being received.
#[derive(Debug, Default)]
pub(crate) struct ReplyReader {
    parser: ReplyParser,
    received_bytes: usize,
}

impl ReplyReader {
    /// Takes bytes, none at the end of the connection. The body, when it is complete.
    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, FetchFault> {
        let mut limits = Limits::default();
        let received_max = BODY_BYTES_MAX + limits.head_bytes as usize;
        limits.bodies = BodiesWanted {
            from_status: 200,
            bytes_max: received_max as u32,
            heads: false,
        };
        self.received_bytes += bytes.len();
        if self.received_bytes > received_max {
            return Err(FetchFault::TooLarge);
        }
        let reply = if bytes.is_empty() {
            match self.parser.end() {
                Ok(Some(reply)) => Some(reply),
                Ok(None) | Err(ReplyError::TruncatedHead | ReplyError::TruncatedBody) => {
                    return Err(FetchFault::Lost(closed()));
                }
                Err(reason) => return Err(FetchFault::Reply(reason)),
            }
        } else {
            let (kind, mut known) = (RequestKind::default(), KnownHead::default());
            let progress = self.parser.receive(bytes, &limits, kind, &mut known);
            progress.map_err(FetchFault::Reply)?.reply
        };
        match reply {
            None => Ok(None),
            Some(reply) if reply.status != 200 => Err(FetchFault::Status(reply.status)),
            Some(_) => Ok(Some(self.parser.take_body().unwrap_or_default().bytes)),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener};

    use brunt_io::threads;
    use brunt_io::tls_peer::{self, Authority};
    use brunt_load::TlsSpec;
    use brunt_proto::tls::ServerSide;

    use super::*;

    const LIMIT_NS: u64 = 10_000_000_000;

    /// A server that gives these answers, one per connection, and then ends. It reads a request
    /// first, and closes after its answer.
    pub(crate) fn serve(answers: Vec<Vec<u8>>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        threads::spawn("answers", move || {
            for answer in answers {
                let (mut socket, _) = listener.accept().unwrap();
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    if socket.read(&mut byte).unwrap() == 0 {
                        break;
                    }
                    request.push(byte[0]);
                }
                // The client may have seen enough.
                let _ = socket.write_all(&answer);
            }
        })
        .unwrap();
        address
    }

    /// A reply with this body.
    pub(crate) fn ok(body: &str) -> Vec<u8> {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }

    pub(crate) fn target(address: SocketAddr) -> Target {
        Target::parse(&format!("http://{address}/page"), None).unwrap()
    }

    #[test]
    fn bodies_come_without_their_framing_however_they_are_cut() {
        for (wire, body) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", ""),
            ("HTTP/1.0 200 OK\r\n\r\nuntil the end", "until the end"),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                 5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nA: b\r\n\r\n",
                "hello world",
            ),
            (
                "HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTRANSFER-ENCODING:  \
                 Chunked\r\nServer: y\r\n\r\n0B\r\nhello\r\nline\r\n0\r\n\r\n",
                "hello\r\nline",
            ),
        ] {
            for cut in 1..wire.len() {
                let (first, second) = wire.as_bytes().split_at(cut);
                let received = receive(&[first, second]).unwrap();
                assert_eq!(
                    String::from_utf8(received).unwrap(),
                    body,
                    "{wire:?} at {cut}"
                );
            }
        }
    }

    /// The result of a connection on which these pieces arrive.
    fn receive(pieces: &[&[u8]]) -> Result<Vec<u8>, FetchFault> {
        let mut reader = ReplyReader::default();
        for piece in pieces {
            if let Some(body) = reader.receive(piece)? {
                return Ok(body);
            }
        }
        reader.receive(&[]).map(Option::unwrap)
    }

    #[test]
    fn answers_that_are_of_no_use_are_told_apart() {
        let over = format!(
            "HTTP/1.1 200 OK\r\n\r\n{}",
            "x".repeat(BODY_BYTES_MAX + 64 * 1024)
        );
        for (wire, kind) in [
            (
                "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n",
                "Status(404)",
            ),
            ("SSH-2.0-OpenSSH\r\n", "Reply("),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx", "Lost("),
            ("HTTP/1.1 200", "Lost("),
            ("", "Lost("),
            (&over, "TooLarge"),
        ] {
            let failure = format!("{:?}", receive(&[wire.as_bytes()]).unwrap_err());
            assert!(failure.starts_with(kind), "{failure}");
        }
    }

    #[test]
    fn a_page_is_read_over_a_socket() {
        let address = serve(vec![
            ok("one"),
            ok("two"),
            b"HTTP/1.1 503 No\r\n\r\n".to_vec(),
        ]);
        let page = Page::new(&target(address), &PageTls::default()).unwrap();
        assert_eq!(page.get(LIMIT_NS).unwrap(), "one");
        assert_eq!(page.get(LIMIT_NS).unwrap(), "two");
        let message = page.get(LIMIT_NS).unwrap_err().to_string();
        assert!(
            message.contains("503") && message.contains("/page"),
            "{message}"
        );
    }

    #[test]
    fn a_page_is_read_over_tls() {
        let authority = Authority::new("trusted");
        let server = authority.identity("127.0.0.1");
        let get = |alpn: &[&[u8]], spec: &TlsSpec| {
            let side = ServerSide::new(server.options(alpn)).unwrap();
            let address = tls_peer::serve(move |mut peer| {
                if peer.secure(&side) {
                    let mut request = Vec::new();
                    while !request.ends_with(b"\r\n\r\n") && peer.take(&mut request) {}
                    peer.give(&ok("secret"));
                }
                peer.wait();
            });
            let target = Target::parse(&format!("https://{address}/page"), None).unwrap();
            Page::new(&target, &PageTls::new(spec, "127.0.0.1"))?.get(LIMIT_NS)
        };
        let trusting = TlsSpec {
            roots_der: vec![authority.certificate().to_vec()],
            ..TlsSpec::default()
        };
        assert_eq!(get(&[b"h2", b"http/1.1"], &trusting).unwrap(), "secret");
        assert_eq!(get(&[], &trusting).unwrap(), "secret");
        let insecure = TlsSpec {
            insecure: true,
            ..TlsSpec::default()
        };
        assert_eq!(get(&[], &insecure).unwrap(), "secret");

        let strange = Authority::new("strange");
        let distrustful = TlsSpec {
            roots_der: vec![strange.certificate().to_vec()],
            ..TlsSpec::default()
        };
        let no_root = TlsSpec {
            roots: Some("/nowhere/roots.pem".into()),
            ..TlsSpec::default()
        };
        for (alpn, spec, words) in [
            (&[][..], &distrustful, "give its root with --cacert FILE"),
            (&[&b"h2"[..]][..], &trusting, "(ALPN)"),
            (&[], &no_root, "cannot read /nowhere/roots.pem (--cacert)"),
        ] {
            let message = get(alpn, spec).unwrap_err().to_string();
            assert!(
                message.starts_with("cannot read https://127.0.0.1") && message.contains(words),
                "{message}"
            );
        }
        let address = tls_peer::serve(|mut peer| {
            peer.give(&ok("public"));
            peer.wait();
        });
        let target = Target::parse(&format!("https://{address}/page"), None).unwrap();
        let page = Page::new(&target, &PageTls::new(&trusting, "127.0.0.1")).unwrap();
        let message = page.get(LIMIT_NS).unwrap_err().to_string();
        assert!(
            message.contains("use http:// in place of https://"),
            "{message}"
        );
    }

    #[test]
    fn all_addresses_of_a_host_are_tried() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap();
        let closed_address = closed.local_addr().unwrap();
        drop(closed);
        let mut page = Page::new(&target(serve(vec![ok("here")])), &PageTls::default()).unwrap();
        page.peers.insert(0, Peer::Tcp(closed_address));
        assert_eq!(page.get(LIMIT_NS).unwrap(), "here");
    }

    #[test]
    fn nobody_and_silence_end_in_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let silent =
            Page::new(&target(listener.local_addr().unwrap()), &PageTls::default()).unwrap();
        let fault = |limit_ns| silent.get(limit_ns).unwrap_err().fault;
        assert!(matches!(
            fault(20_000_000),
            FetchFault::Timeout { limit_ms: 20 }
        ));
        drop(listener);
        assert!(matches!(fault(LIMIT_NS), FetchFault::Connect(_)));
    }
}
