//! TLS over a scripted backend, and over real sockets on every backend that has them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};

use brunt_proto::tls::{ClientOptions, Version};

use super::*;
use crate::epoll::Epoll;
use crate::tls_peer::{self, Authority};
use crate::uring::Uring;

const SLOT: Slot = Slot(3);
const MS: u64 = 1_000_000;

/// A server's identity, of which its clients trust the authority.
struct Identity {
    authority: Authority,
    own: tls_peer::Identity,
}

impl Identity {
    fn new() -> Self {
        let authority = Authority::new("authority");
        let own = authority.identity("localhost");
        Self { authority, own }
    }

    fn client(&self, change: impl FnOnce(&mut ClientOptions)) -> ClientSide {
        let mut options = ClientOptions::new("localhost");
        options.roots = vec![self.authority.certificate()];
        change(&mut options);
        ClientSide::new(options).unwrap()
    }

    fn server(&self, alpn: &[&[u8]]) -> ServerSide {
        ServerSide::new(self.own.options(alpn)).unwrap()
    }
}

/// A client whose connection is established but for its handshake, and a server at its far end.
fn connecting() -> (Tls<Script>, Far) {
    let identity = Identity::new();
    let backend = opened(identity.client(|_| {}), None);
    let far = Far::new(Session::server(&identity.server(&[])));
    (backend, far)
}

/// As [`connecting`], the other way round.
fn accepting() -> (Tls<Script>, Far) {
    let identity = Identity::new();
    let backend = accepted(identity.server(&[]));
    let far = Far::new(Session::client(&identity.client(|_| {})));
    (backend, far)
}

/// A backend whose events are pushed by the test, and whose sends are kept.
#[derive(Default)]
struct Script {
    now_ns: u64,
    events: VecDeque<(Event, Vec<u8>)>,
    received: Vec<u8>,
    sent: Vec<Vec<u8>>,
    is_sending: bool,
    closed: u32,
    /// Until when the latest wait may last.
    until_ns: Option<u64>,
}

impl Script {
    fn happen(&mut self, event: Event) {
        self.events.push_back((event, Vec::new()));
    }

    fn arrive(&mut self, bytes: Vec<u8>) {
        self.events.push_back((Event::Received(SLOT), bytes));
    }

    /// The kernel has taken the send in flight.
    fn complete(&mut self) {
        assert!(std::mem::take(&mut self.is_sending), "nothing is in flight");
        self.happen(Event::Sent(SLOT));
    }

    /// What was sent since this was last asked.
    fn take_sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.sent).concat()
    }
}

impl Backend for Script {
    type Transport = Stream;

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn add_payload(&mut self, _bytes: Arc<[u8]>) -> PayloadId {
        unreachable!("payloads are kept above, in plain text")
    }

    fn send(&mut self, slot: Slot, outgoing: Outgoing) {
        assert_eq!(slot, SLOT);
        assert!(!self.is_sending, "one send is in flight at most");
        let Outgoing::Owned(bytes) = outgoing else {
            unreachable!("records are of one connection")
        };
        self.is_sending = true;
        self.sent.push(bytes);
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        Vec::new()
    }

    fn close(&mut self, _slot: Slot) {
        self.closed += 1;
        self.is_sending = false;
        self.events.clear();
    }

    fn wait(&mut self, until_ns: Option<u64>) -> io::Result<()> {
        self.until_ns = until_ns;
        Ok(())
    }

    fn next_event(&mut self) -> Option<Event> {
        let (event, bytes) = self.events.pop_front()?;
        self.received = bytes;
        Some(event)
    }

    fn received(&self) -> &[u8] {
        &self.received
    }
}

impl ClientBackend for Script {
    fn open(&mut self, _slot: Slot, _peer: &Peer, _source: Option<SocketAddr>) -> io::Result<()> {
        Ok(())
    }

    fn tcp_info(&self, _slot: Slot) -> Option<TcpInfo> {
        None
    }
}

impl ServerBackend for Script {
    fn listen(&mut self, _listener: BorrowedFd<'_>) -> io::Result<()> {
        Ok(())
    }

    fn accept(&mut self, _slot: Slot) {}
}

/// The other end of the scripted backend's one connection.
struct Far {
    session: Session,
    scratch: Scratch,
    plain: Vec<u8>,
    out: Vec<u8>,
}

impl Far {
    fn new(session: Result<Session, TlsError>) -> Self {
        let mut far = Self {
            session: session.unwrap(),
            scratch: Scratch::default(),
            plain: Vec::new(),
            out: Vec::new(),
        };
        far.take(&[]).unwrap();
        far
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), TlsError> {
        self.session
            .receive(bytes, &mut self.scratch, &mut self.plain, &mut self.out)
    }

    fn say(&mut self, plain: &[u8]) -> Vec<u8> {
        self.session.send(plain, &mut self.out).unwrap();
        std::mem::take(&mut self.out)
    }
}

fn peer() -> Peer {
    Peer::Tcp(SocketAddr::from(([127, 0, 0, 1], 443)))
}

fn events<B: Backend<Transport = Stream>>(backend: &mut Tls<B>) -> Vec<Event> {
    backend.wait(Some(0)).unwrap();
    std::iter::from_fn(|| backend.next_event()).collect()
}

/// Carries bytes both ways until there are none; gives the events meanwhile and the bytes that the
/// backend received.
fn converse(backend: &mut Tls<Script>, far: &mut Far) -> (Vec<Event>, usize) {
    let mut seen = Vec::new();
    let mut received_bytes = 0;
    loop {
        seen.extend(events(backend));
        // As the next turn would.
        backend.send_held();
        let bytes = backend.inner.take_sent();
        if backend.inner.is_sending {
            backend.inner.complete();
        }
        // A peer that fails says so in its last bytes.
        let _ = far.take(&bytes);
        let answer = std::mem::take(&mut far.out);
        if bytes.is_empty() && answer.is_empty() {
            return (seen, received_bytes);
        }
        if !answer.is_empty() {
            received_bytes += answer.len();
            backend.inner.arrive(answer);
        }
    }
}

fn opened(side: ClientSide, alpn: Option<&'static [u8]>) -> Tls<Script> {
    let mut backend = Tls::client(Script::default(), side, alpn);
    backend.open(SLOT, &peer(), None).unwrap();
    backend.inner.now_ns = 5 * MS;
    backend.inner.happen(Event::Connected(SLOT));
    backend
}

fn accepted(side: ServerSide) -> Tls<Script> {
    let mut backend = Tls::server(Script::default(), side);
    backend.accept(SLOT);
    backend.inner.happen(Event::Accepted(SLOT));
    backend
}

/// A client with its connection established, and the server at its far end.
fn established() -> (Tls<Script>, Far) {
    let (mut backend, mut far) = connecting();
    assert_eq!(converse(&mut backend, &mut far).0, [Event::Connected(SLOT)]);
    backend.take_overhead(SLOT);
    (backend, far)
}

/// As [`established`], the other way round.
fn established_server() -> (Tls<Script>, Far) {
    let (mut backend, mut far) = accepting();
    assert_eq!(converse(&mut backend, &mut far).0, [Event::Accepted(SLOT)]);
    (backend, far)
}

#[test]
fn a_connection_counts_when_its_handshake_is_complete() {
    let (mut backend, mut far) = connecting();
    assert_eq!(events(&mut backend), []);
    assert_eq!(backend.secured(SLOT), None);
    backend.inner.now_ns = 7 * MS;
    let (seen, bytes) = converse(&mut backend, &mut far);
    assert_eq!(seen, [Event::Connected(SLOT)]);
    let secured = Secured {
        from_ns: 5 * MS,
        to_ns: 7 * MS,
        is_resumed: false,
    };
    assert_eq!(backend.secured(SLOT), Some(secured));
    assert_eq!(backend.take_overhead(SLOT), bytes as u64);
    assert_eq!(backend.take_overhead(SLOT), 0);
}

#[test]
fn text_of_many_records_is_one_event_and_what_is_no_text_is_overhead() {
    let (mut backend, mut far) = established();
    let mut bytes = far.say(b"one");
    bytes.extend(far.say(b", two"));
    let last = far.say(b", three");
    bytes.extend_from_slice(&last[..10]);
    let first_bytes = bytes.len() as u64;
    backend.inner.arrive(bytes);
    backend.wait(None).unwrap();
    assert_eq!(backend.next_event(), Some(Event::Received(SLOT)));
    assert_eq!(backend.received(), b"one, two");
    assert_eq!(backend.next_event(), None);
    assert_eq!(backend.received(), b"");
    assert_eq!(backend.take_overhead(SLOT), first_bytes - 10 - 8);
    // A part that completes nothing is no event, and not yet overhead.
    backend.inner.arrive(last[10..20].to_vec());
    assert_eq!(events(&mut backend), []);
    assert_eq!(backend.take_overhead(SLOT), 0);
    backend.inner.arrive(last[20..].to_vec());
    backend.wait(None).unwrap();
    assert_eq!(backend.next_event(), Some(Event::Received(SLOT)));
    assert_eq!(backend.received(), b", three");
    assert_eq!(backend.take_overhead(SLOT), last.len() as u64 - 7);
}

#[test]
fn an_incomplete_record_is_overhead_in_the_end() {
    for ending in [Some(Event::Ended(SLOT)), None] {
        let (mut backend, mut far) = established();
        let record = far.say(b"never complete");
        backend.inner.arrive(record[..12].to_vec());
        assert_eq!(events(&mut backend), []);
        if let Some(event) = ending {
            backend.inner.happen(event);
            assert_eq!(events(&mut backend), [event]);
            assert_eq!(backend.take_overhead(SLOT), 12);
        }
        backend.close(SLOT);
        let rest = if ending.is_some() { 0 } else { 12 };
        assert_eq!(backend.take_overhead(SLOT), rest);
    }
}

#[test]
fn every_send_is_answered_once_and_in_order() {
    let (mut backend, mut far) = established();
    let payload = backend.add_payload((*b"GET / HTTP/1.1\r\n\r\n").into());
    backend.send(
        SLOT,
        Outgoing::Shared {
            payload,
            start: 4,
            end: 14,
        },
    );
    assert_eq!(events(&mut backend), []);
    backend.inner.complete();
    assert_eq!(events(&mut backend), [Event::Sent(SLOT)]);
    let text = vec![7; 40_000];
    backend.send(SLOT, Outgoing::Owned(text.clone()));
    let sent = backend.inner.take_sent();
    assert_eq!(sent.len(), 32 + 40_000 + 3 * 22);
    far.take(&sent).unwrap();
    assert_eq!(far.plain.split_off(10), text);
    assert_eq!(far.plain, b"/ HTTP/1.1");
    assert!(backend.take_buffer().capacity() >= 40_000, "used again");
}

#[test]
fn the_first_send_takes_the_end_of_the_handshake_along() {
    let (mut backend, mut far) = connecting();
    assert_eq!(events(&mut backend), []);
    far.take(&backend.inner.take_sent()).unwrap();
    backend.inner.complete();
    backend.inner.arrive(std::mem::take(&mut far.out));
    assert_eq!(events(&mut backend), [Event::Connected(SLOT)]);
    backend.send(SLOT, Outgoing::Owned(b"question".to_vec()));
    assert_eq!(backend.inner.sent.len(), 1);
    far.take(&backend.inner.take_sent()).unwrap();
    assert_eq!(far.plain, b"question");
    // Both ways: the server's tickets and its answer.
    let (mut server, mut far) = accepting();
    server.inner.arrive(std::mem::take(&mut far.out));
    assert_eq!(events(&mut server), []);
    far.take(&server.inner.take_sent()).unwrap();
    server.inner.complete();
    let question = far.say(b"question");
    server.inner.arrive(question);
    server.wait(None).unwrap();
    let seen: Vec<_> = std::iter::from_fn(|| server.next_event()).collect();
    assert_eq!(seen, [Event::Accepted(SLOT), Event::Received(SLOT)]);
    server.send(SLOT, Outgoing::Owned(b"answer".to_vec()));
    assert_eq!(server.inner.sent.len(), 1);
    far.take(&server.inner.take_sent()).unwrap();
    assert_eq!(far.plain, b"answer");
    server.inner.complete();
    assert_eq!(events(&mut server), [Event::Sent(SLOT)]);
}

#[test]
fn sends_wait_for_what_is_in_flight() {
    let (mut backend, mut far) = established_server();
    // Something of the session's own is in flight.
    backend.put(SLOT, b"own ".to_vec(), Sending::Own);
    backend.send(SLOT, Outgoing::Owned(b"answer".to_vec()));
    assert_eq!(backend.inner.take_sent(), b"own ");
    backend.inner.complete();
    assert_eq!(events(&mut backend), []);
    far.take(&backend.inner.take_sent()).unwrap();
    assert_eq!(far.plain, b"answer");
    backend.inner.complete();
    assert_eq!(events(&mut backend), [Event::Sent(SLOT)]);
}

#[test]
fn failed_sends_are_told_once() {
    let (mut backend, _far) = established();
    backend.send(SLOT, Outgoing::Owned(b"lost".to_vec()));
    backend.inner.happen(Event::SendFailed(SLOT, libc::EPIPE));
    assert_eq!(events(&mut backend), [Event::SendFailed(SLOT, libc::EPIPE)]);
    let (mut backend, _far) = established();
    backend.put(SLOT, b"own".to_vec(), Sending::Own);
    backend.inner.happen(Event::SendFailed(SLOT, libc::EPIPE));
    assert_eq!(events(&mut backend), []);
    backend.send(SLOT, Outgoing::Owned(b"next".to_vec()));
    assert_eq!(events(&mut backend), [Event::SendFailed(SLOT, libc::EPIPE)]);
}

#[test]
fn leaving_tells_the_peer() {
    let (mut backend, mut far) = established();
    backend.leave();
    assert!(!far.session.is_ended());
    far.take(&backend.inner.take_sent()).unwrap();
    assert!(far.session.is_ended());
}

#[test]
fn close_notify_ends_a_connection_once() {
    let (mut backend, mut far) = established();
    let mut bytes = far.say(b"last");
    far.session.close(&mut bytes);
    bytes.extend_from_slice(b"not looked at");
    let bytes_received = bytes.len() as u64;
    backend.inner.arrive(bytes);
    backend.wait(None).unwrap();
    assert_eq!(backend.next_event(), Some(Event::Received(SLOT)));
    assert_eq!(backend.received(), b"last");
    assert_eq!(backend.next_event(), Some(Event::Ended(SLOT)));
    assert_eq!(backend.take_overhead(SLOT), bytes_received - 4);
    backend.inner.arrive(b"more".to_vec());
    backend.inner.happen(Event::Ended(SLOT));
    assert_eq!(events(&mut backend), []);
    assert_eq!(backend.take_overhead(SLOT), 4);
}

#[test]
fn closing_tells_the_peer() {
    let (mut backend, mut far) = established();
    backend.close(SLOT);
    far.take(&backend.inner.take_sent()).unwrap();
    assert!(far.session.is_ended());
    assert_eq!(backend.inner.closed, 1);
    let (mut backend, _far) = established();
    backend.reset(SLOT);
    assert!(backend.inner.take_sent().is_empty());
}

#[test]
fn broken_records_fail_the_connection_after_what_came_before() {
    let (mut backend, mut far) = established();
    let mut bytes = far.say(b"good");
    let mut bad = far.say(b"bad");
    bad[7] ^= 1;
    bytes.extend(bad);
    backend.inner.arrive(bytes);
    let seen = events(&mut backend);
    let failed = Event::ReceiveFailed(SLOT, libc::EPROTO);
    assert_eq!(seen, [Event::Received(SLOT), failed]);
    assert!(matches!(
        far.take(&backend.inner.take_sent()),
        Err(TlsError::Alert(_))
    ));
    backend.inner.arrive(b"ignored".to_vec());
    assert_eq!(events(&mut backend), []);
}

#[test]
fn handshakes_fail_by_kind() {
    let identity = Identity::new();
    let stranger = Identity::new();
    type Case = (ClientSide, Option<&'static [u8]>, ServerSide);
    let with_alpn = |names: &'static [&'static [u8]]| {
        identity.client(|options| {
            options.alpn = names.iter().map(|name| name.to_vec()).collect();
        })
    };
    let only_13 = || identity.client(|options| options.version_min = Version::Tls13);
    let only_12 = {
        let mut options = identity.own.options(&[]);
        options.version_max = Version::Tls12;
        ServerSide::new(options).unwrap()
    };
    let table: [(Case, Event); 6] = [
        (
            (stranger.client(|_| {}), None, identity.server(&[])),
            Event::HandshakeFailed(SLOT, HandshakeFailure::Certificate),
        ),
        (
            (only_13(), None, only_12),
            Event::HandshakeFailed(SLOT, HandshakeFailure::Alert),
        ),
        (
            (with_alpn(&[b"h2"]), Some(b"h2"), identity.server(&[b"x"])),
            Event::HandshakeFailed(SLOT, HandshakeFailure::OtherProtocol),
        ),
        (
            (with_alpn(&[b"h2"]), Some(b"h2"), identity.server(&[])),
            Event::HandshakeFailed(SLOT, HandshakeFailure::OtherProtocol),
        ),
        (
            (
                with_alpn(&[b"h2", b"http/1.1"]),
                Some(b"h2"),
                identity.server(&[b"http/1.1"]),
            ),
            Event::HandshakeFailed(SLOT, HandshakeFailure::OtherProtocol),
        ),
        (
            (
                with_alpn(&[b"http/1.1"]),
                Some(b"http/1.1"),
                identity.server(&[]),
            ),
            Event::Connected(SLOT),
        ),
    ];
    for ((client, alpn, server), event) in table {
        let mut backend = opened(client, alpn);
        let mut far = Far::new(Session::server(&server));
        let (seen, bytes) = converse(&mut backend, &mut far);
        assert_eq!(seen, [event]);
        assert_eq!(backend.take_overhead(SLOT), bytes as u64);
    }
}

#[test]
fn clear_text_and_cuts_fail_a_handshake() {
    let identity = Identity::new();
    let broken = Event::HandshakeFailed(SLOT, HandshakeFailure::Broken);
    let mut backend = opened(identity.client(|_| {}), None);
    backend
        .inner
        .arrive(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec());
    assert_eq!(events(&mut backend), [broken]);
    for event in [
        Event::Ended(SLOT),
        Event::ReceiveFailed(SLOT, libc::ECONNRESET),
        Event::SendFailed(SLOT, libc::EPIPE),
    ] {
        let mut backend = opened(identity.client(|_| {}), None);
        backend.inner.happen(event);
        let cut = Event::HandshakeFailed(SLOT, HandshakeFailure::Cut);
        assert_eq!(events(&mut backend), [cut]);
    }
}

#[test]
fn an_accepted_handshake_that_fails_frees_the_slot() {
    let identity = Identity::new();
    let mut backend = accepted(identity.server(&[]));
    assert_eq!(events(&mut backend), []);
    backend.inner.happen(Event::Ended(SLOT));
    let failed = Event::AcceptFailed(SLOT, libc::ECONNABORTED);
    assert_eq!(events(&mut backend), [failed]);
    assert_eq!(backend.inner.closed, 1);

    // The alert is sent first; then the slot can be offered again.
    backend.accept(SLOT);
    backend.inner.happen(Event::Accepted(SLOT));
    backend.inner.arrive(b"GET / HTTP/1.1\r\n\r\n".to_vec());
    assert_eq!(events(&mut backend), []);
    assert_eq!(backend.inner.take_sent()[0], 21, "an alert");
    backend.inner.complete();
    let failed = Event::AcceptFailed(SLOT, libc::EPROTO);
    assert_eq!(events(&mut backend), [failed]);
    assert_eq!(backend.inner.closed, 2);

    backend.accept(SLOT);
    backend.inner.happen(Event::Accepted(SLOT));
    let mut far = Far::new(Session::client(&identity.client(|_| {})));
    assert_eq!(converse(&mut backend, &mut far).0, [Event::Accepted(SLOT)]);
}

#[test]
fn an_accepted_handshake_has_a_limit_in_time() {
    let identity = Identity::new();
    let late = Event::AcceptFailed(SLOT, libc::ETIMEDOUT);
    let broken = Event::AcceptFailed(SLOT, libc::EPROTO);
    // A client that says nothing, one that stops half-way, and one that does not take the alert.
    let client_hello = Far::new(Session::client(&identity.client(|_| {}))).out;
    for (said, expected) in [
        (&[][..], late),
        (&client_hello[..], late),
        (b"GET / HTTP/1.1\r\n\r\n", broken),
    ] {
        let mut backend = accepted(identity.server(&[]));
        // Others find a slot.
        backend.accept(Slot(9));
        assert_eq!(events(&mut backend), []);
        let deadline_ns = HANDSHAKE_NS_MAX;
        if !said.is_empty() {
            backend.inner.arrive(said.to_vec());
        }
        backend.inner.now_ns = deadline_ns - 1;
        assert_eq!(events(&mut backend), []);
        backend.wait(None).unwrap();
        assert_eq!(backend.inner.until_ns, Some(deadline_ns));
        backend.wait(Some(deadline_ns - 1)).unwrap();
        assert_eq!(backend.inner.until_ns, Some(deadline_ns - 1));
        backend.inner.now_ns = deadline_ns;
        assert_eq!(events(&mut backend), [expected]);
        assert_eq!(backend.inner.until_ns, Some(0), "there is news");
        assert_eq!((backend.inner.closed, backend.handshakes.len()), (1, 0));
        // The slot may be used again.
        backend.inner.take_sent();
        backend.accept(SLOT);
        backend.inner.happen(Event::Accepted(SLOT));
        let mut far = Far::new(Session::client(&identity.client(|_| {})));
        assert_eq!(converse(&mut backend, &mut far).0, [Event::Accepted(SLOT)]);
    }
    // A handshake that is complete is not late, and one of a client is its caller's affair.
    let (mut server, _far) = established_server();
    let mut client = opened(identity.client(|_| {}), None);
    events(&mut client);
    for backend in [&mut server, &mut client] {
        backend.inner.now_ns = 2 * HANDSHAKE_NS_MAX;
        assert_eq!(events(backend), []);
        backend.wait(None).unwrap();
        assert_eq!((backend.inner.until_ns, backend.inner.closed), (None, 0));
    }
}

#[test]
fn no_event_of_a_closed_slot_is_seen() {
    let (mut backend, mut far) = established();
    let mut bytes = far.say(b"text");
    far.session.close(&mut bytes);
    backend.inner.arrive(bytes);
    backend.wait(None).unwrap();
    assert_eq!(backend.next_event(), Some(Event::Received(SLOT)));
    backend.close(SLOT);
    assert_eq!(backend.next_event(), None, "the end of the closed one");
    backend.open(SLOT, &peer(), None).unwrap();
    assert_eq!(backend.secured(SLOT), None);
    assert_eq!(backend.take_overhead(SLOT), 0);
    assert_eq!(events(&mut backend), []);
}

/// An answer to an upload that was not read, and the reset that follows it.
fn check_early_reply<B: ClientBackend<Transport = Stream>>(inner: B) {
    let identity = Identity::new();
    let mut client = Tls::client(inner, identity.client(|_| {}), None);
    let mut far = Far::new(Session::server(&identity.server(&[])));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let peer = Peer::Tcp(listener.local_addr().unwrap());
    client.open(SLOT, &peer, None).unwrap();
    client.wait(Some(0)).unwrap();
    assert_eq!(client.next_event(), None);
    let mut other = listener.accept().unwrap().0;
    other.set_nonblocking(true).unwrap();
    let mut buffer = vec![0; 64 << 10];
    while far.session.is_handshaking() {
        client.wait(Some(client.now_ns() + MS)).unwrap();
        while client.next_event().is_some() {}
        if let Ok(count) = other.read(&mut buffer) {
            far.take(&buffer[..count]).unwrap();
            other.write_all(&std::mem::take(&mut far.out)).unwrap();
        }
    }
    client.send(SLOT, Outgoing::Owned(vec![0; 32 << 20]));
    client.wait(Some(0)).unwrap();
    while client.next_event().is_some() {}
    other.set_nonblocking(false).unwrap();
    other.write_all(&far.say(b"early reply")).unwrap();
    drop(other);
    let (received, end) = crate::stream_tests::rest(&mut client);
    assert_eq!(received, b"early reply");
    assert!(
        matches!(end, Event::SendFailed(..) | Event::ReceiveFailed(..)),
        "{end:?}"
    );
}

#[test]
fn early_replies_are_decrypted_before_a_send_fails() {
    check_early_reply(Epoll::new().unwrap());
    check_early_reply(Uring::new(4).unwrap());
}

#[test]
fn an_idle_slot_is_small() {
    assert!(size_of::<TlsConnection>() <= 128);
}
