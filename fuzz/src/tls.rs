//! Target: sessions of TLS, fed with garbage, and with sessions that are cut and damaged.

use std::sync::LazyLock;

use brunt_proto::tls::{
    ClientOptions, ClientSide, Scratch, ServerOptions, ServerSide, Session, TlsError, Version,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// A certificate that nobody trusts, and its key, which is public.
const CERTIFICATE: &[u8] = include_bytes!("tls/certificate.der");
const KEY: &[u8] = include_bytes!("tls/key.der");

/// What is sent both ways over a session.
const MESSAGE: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
/// A session may keep this much, whatever it is sent.
const KEPT_BYTES_MAX: usize = 256 * 1024;
/// Flights of a handshake and of the messages after it, at most.
const FLIGHTS_MAX: usize = 12;

struct Sides {
    client: ClientSide,
    server: ServerSide,
}

/// The sides of TLS 1.3, and of 1.2.
static SIDES: LazyLock<[Sides; 2]> = LazyLock::new(|| [Version::Tls13, Version::Tls12].map(sides));

fn sides(version: Version) -> Sides {
    let certificate = CertificateDer::from(CERTIFICATE);
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(KEY));
    let mut server = ServerOptions::new(vec![certificate], key);
    server.version_max = version;
    let mut client = ClientOptions::new("localhost");
    client.insecure = true;
    client.resumption = true;
    client.version_max = version;
    Sides {
        client: ClientSide::new(client).expect("a client without roots"),
        server: ServerSide::new(server).expect("a certificate with its key"),
    }
}

/// Feeds a client and a server with `data` itself, and with each other's bytes, cut into pieces and
/// damaged as `data` says.
///
/// # Panics
///
/// A session panics, keeps too much, or shows other plain text than was sent.
pub fn tls(data: &[u8]) {
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    let sides = &SIDES[usize::from(first & 1)];
    let piece_bytes = usize::from(first >> 1) + 1;
    if first & 2 == 0 {
        feed_garbage(Session::client(&sides.client), rest, piece_bytes);
        feed_garbage(Session::server(&sides.server), rest, piece_bytes);
    } else {
        converse(sides, rest, piece_bytes);
    }
}

fn feed_garbage(session: Result<Session, TlsError>, bytes: &[u8], piece_bytes: usize) {
    let mut end = End::new(session.expect("a session of valid options"));
    end.take(&[]);
    for piece in bytes.chunks(piece_bytes) {
        end.take(piece);
    }
    assert!(end.plain.is_empty(), "nobody sent anything");
}

/// A whole session. The damages are pairs of how many bytes to leave alone and what to change
/// in the next one; none, for the end of `damages`.
fn converse(sides: &Sides, damages: &[u8], piece_bytes: usize) {
    let mut damages = damages.chunks_exact(2);
    let mut next = damages.next();
    let mut is_damaged = false;
    let mut spared = 0;
    let session = "a session of valid options";
    let mut client = End::new(Session::client(&sides.client).expect(session));
    let mut server = End::new(Session::server(&sides.server).expect(session));
    client.take(&[]);
    for flight in 0..FLIGHTS_MAX {
        let (from, to) = if flight % 2 == 0 {
            (&mut client, &mut server)
        } else {
            (&mut server, &mut client)
        };
        from.speak();
        let mut bytes = std::mem::take(&mut from.out);
        for byte in &mut bytes {
            let Some(&[distance, change]) = next else {
                break;
            };
            // Long distances reach the later flights.
            if spared < usize::from(distance) * 8 {
                spared += 1;
                continue;
            }
            *byte ^= change;
            is_damaged |= change != 0;
            (spared, next) = (0, damages.next());
        }
        for piece in bytes.chunks(piece_bytes) {
            to.take(piece);
        }
    }
    for end in [&client, &server] {
        assert!(MESSAGE.starts_with(&end.plain), "other text than was sent");
        assert!(is_damaged || end.plain == MESSAGE, "text was lost");
    }
    let mut last = Vec::new();
    client.session.close(&mut last);
    server.take(&last);
    assert!(is_damaged || server.session.is_ended(), "the end was lost");
}

/// One end of a connection.
struct End {
    session: Session,
    scratch: Scratch,
    plain: Vec<u8>,
    out: Vec<u8>,
    has_spoken: bool,
}

impl End {
    fn new(session: Session) -> Self {
        Self {
            session,
            scratch: Scratch::default(),
            plain: Vec::new(),
            out: Vec::new(),
            has_spoken: false,
        }
    }

    /// Errors are what most inputs bring about; a session that failed must still take more.
    fn take(&mut self, bytes: &[u8]) {
        let _ = self
            .session
            .receive(bytes, &mut self.scratch, &mut self.plain, &mut self.out);
        assert!(self.session.kept_bytes() <= KEPT_BYTES_MAX);
    }

    /// Sends its message once, when the handshake is complete.
    fn speak(&mut self) {
        if !self.has_spoken && !self.session.is_handshaking() {
            self.has_spoken = true;
            let _ = self.session.send(MESSAGE, &mut self.out);
        }
    }
}
