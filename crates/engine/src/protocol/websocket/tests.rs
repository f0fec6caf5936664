//! What a worker's side of WebSocket writes, and what it makes of what comes.

use std::collections::HashSet;

use brunt_load::{MessageSpec, RequestId, RequestOrder, RequestSet, Target, WebSocketOpening};
use brunt_proto::messages::Pattern;
use brunt_proto::websocket::{FrameEvent, Reader, Rules, Side, accept_of};
use brunt_record::ControlFrames;

use super::super::FREE_PLACE;
use super::*;

const DEPTH: u32 = 4;

fn exchange() -> WebSocketExchange {
    WebSocketExchange {
        headers: Vec::new().into(),
        subprotocols: Vec::new(),
        is_binary: false,
        replies: 1,
        matching: ReplyMatch::Echo,
        opening: None,
        ping_interval_ns: None,
        seed: 7,
    }
}

/// A worker with one connection, whose upgrade is answered.
struct WebsocketSite {
    protocol: WebSocket,
    connection: WebSocketConnection,
    out: Out,
    places: Vec<RequestTiming>,
}

impl WebsocketSite {
    fn new(exchange: &WebSocketExchange, messages: &[&str]) -> Self {
        let (site, progress) = Self::upgraded(exchange, messages);
        assert!(matches!(progress.event, Some(ProtocolEvent::Ready)));
        site
    }

    /// Such a worker, with what the answer to the upgrade brought about.
    fn upgraded(exchange: &WebSocketExchange, messages: &[&str]) -> (Self, Taken) {
        let specs = messages.iter().map(|text| MessageSpec {
            name: (*text).to_owned(),
            template: Template::parse(text).expect("a message"),
        });
        let set = RequestSet::messages_in(RequestOrder::Turns, specs.collect());
        let target = Target::parse_websocket("ws://host/a", None).expect("a URL");
        let plan = Plan::new(target, set.expect("messages"));
        let encoded = EncodedWebSocket::new(&plan, exchange, DEPTH, 0).expect("they can be sent");
        let mut protocol = WebSocket::new(encoded);
        protocol.start(0, 1, &mut |_| PayloadId(0));
        let mut site = Self {
            connection: protocol.connection(),
            protocol,
            out: Out::default(),
            places: vec![FREE_PLACE; DEPTH as usize],
        };
        let is_open = site.protocol.open(&mut site.connection, &mut site.out, 0);
        assert!(!is_open);
        let upgrade = site.written();
        let key = &upgrade[upgrade.len() - 28..upgrade.len() - 4];
        let accept = String::from_utf8(accept_of(key).to_vec()).expect("text");
        let answer = format!(
            "HTTP/1.1 101 x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\n"
        );
        let progress = site.receive(answer.as_bytes()).expect("it agrees");
        assert_eq!(site.aside(), (answer.len() as u64, 0));
        (site, progress)
    }

    /// Bytes that belong to no response, and messages that answer nothing, since this was last
    /// asked.
    fn aside(&mut self) -> (u64, u64) {
        let aside = self.protocol.take_aside(&mut self.connection);
        (aside.overhead_bytes, aside.pushes)
    }

    /// What was written since this was last asked.
    fn written(&mut self) -> Vec<u8> {
        let owned = self.out.owned(self.protocol.encoded.payload());
        let bytes = std::mem::take(owned);
        self.out.clear();
        bytes
    }

    fn send(&mut self, request: u32, behind: u32) -> u32 {
        let next = Next {
            request: RequestId(request),
            behind,
            closes: false,
            now_ns: 5,
        };
        let connection = &mut self.connection;
        let place = self.protocol.request(connection, next, &mut self.out);
        self.places[place as usize].request = request;
        place
    }

    /// Takes bytes that bring nothing about.
    fn quiet(&mut self, bytes: &[u8]) {
        assert!(self.receive(bytes).expect("good").event.is_none());
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<Taken, Broken> {
        let (connection, out) = (&mut self.connection, &mut self.out);
        self.protocol
            .receive(connection, bytes, 100, &self.places, out)
    }
}

/// The frames in `wire` as a server reads them: what they are, and what they hold.
fn read(wire: &[u8]) -> Vec<(FrameEvent, Vec<u8>)> {
    let rules = Rules {
        side: Side::Server,
        is_strict: true,
    };
    let (mut reader, mut rest, mut found) = (Reader::default(), wire, Vec::new());
    while !rest.is_empty() {
        let mut payload = Vec::new();
        let progress = reader.receive(rest, rules, |piece| {
            payload.extend_from_slice(piece.bytes);
            mask(&mut payload, piece.key.expect("a client masks"));
        });
        let progress = progress.expect("it keeps to the protocol");
        rest = &rest[progress.consumed..];
        let event = progress.event.expect("whole frames");
        if payload.is_empty() {
            payload = reader.control_payload().to_vec();
        }
        found.push((event, payload));
    }
    found
}

fn frame(opcode: Opcode, payload: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    put_frame(&mut wire, opcode, payload, None);
    wire
}

fn done(progress: Result<Taken, Broken>) -> (u32, Answer) {
    match progress.expect("good").event {
        Some(ProtocolEvent::Done { place, answer, .. }) => (place, answer),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_server_reads_what_was_meant() {
    let mut site = WebsocketSite::new(&exchange(), &["hello", "{conn}-{seq}", ""]);
    for (request, text) in [(0, "hello"), (1, "0-1"), (2, ""), (0, "hello"), (1, "0-4")] {
        site.send(request, 0);
        let found = read(&site.written());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].1, text.as_bytes());
        let kind = Kind::Text;
        let (payload_bytes, wire_bytes) = (text.len() as u64, text.len() as u64 + 6);
        let event = FrameEvent::Message {
            kind,
            payload_bytes,
            wire_bytes,
        };
        assert_eq!(found[0].0, event);
        let echo = frame(Opcode::Text, text.as_bytes());
        done(site.receive(&echo));
    }
}

#[test]
fn constant_messages_are_sent_in_one_piece_with_64_masks() {
    let mut site = WebsocketSite::new(&exchange(), &["hello"]);
    let mut keys = HashSet::new();
    for _ in 0..COPIES / DEPTH as usize {
        (0..DEPTH).rev().for_each(|behind| {
            site.send(0, behind);
        });
        let part = site.out.shared.take().expect("one part of the payload");
        site.protocol.sending(&mut site.connection);
        let whole = Arc::clone(site.protocol.encoded.payload());
        let wire = &whole[part.start as usize..part.end as usize];
        assert_eq!(read(wire).len(), DEPTH as usize);
        keys.extend(wire.chunks(11).map(|frame| frame[2..6].to_vec()));
        (0..DEPTH).for_each(|_| {
            done(site.receive(&frame(Opcode::Text, b"hello")));
        });
        // While a send is in flight nothing can be sent out of the payload.
        site.send(0, 0);
        assert!(site.out.shared.take().is_none());
        assert_eq!(read(&site.written())[0].1, b"hello");
        done(site.receive(&frame(Opcode::Text, b"hello")));
        site.protocol.resume(&mut site.connection, &mut site.out);
        site.connection.in_flight.sequence -= 1;
    }
    assert_eq!(keys.len(), COPIES);
}

#[test]
fn long_messages_have_fewer_copies() {
    let long = "x".repeat(1 << 20);
    let site = WebsocketSite::new(&exchange(), &[&long]);
    let copies = site.protocol.encoded.set.messages[0].copies;
    assert_eq!(copies.map(|copies| copies.count), Some(15));
    assert!(site.protocol.encoded.payload().len() <= COPIES_BYTES_MAX);
    assert!(site.protocol.encoded.set.held_bytes() <= COPIES_BYTES_MAX + (2 << 20));
}

#[test]
fn echoes_are_told_from_pushes() {
    let mut site = WebsocketSite::new(&exchange(), &["hello", "{seq}"]);
    // Nothing is in flight.
    let push = frame(Opcode::Text, b"hello");
    site.quiet(&push);
    let first = site.send(0, 1);
    let second = site.send(1, 0);
    let others = [
        frame(Opcode::Text, b"hell"),
        frame(Opcode::Text, b"hello!"),
        frame(Opcode::Binary, b"hello"),
        frame(Opcode::Text, b"jello"),
    ];
    site.quiet(&others.concat());
    let parts = b"\x01\x02he\x80\x03llo";
    let (place, answer) = done(site.receive(parts));
    assert_eq!((place, answer.head_bytes, answer.body_bytes), (first, 4, 5));
    let (place, answer) = done(site.receive(&frame(Opcode::Text, b"1")));
    assert_eq!((place, answer.body_bytes), (second, 1));
    let pushed_bytes = (push.len() + others.concat().len()) as u64;
    assert_eq!(site.aside(), (pushed_bytes, 5));
    assert_eq!(site.protocol.close(&mut site.connection), 0);
}

#[test]
fn several_messages_answer_one() {
    let several = WebSocketExchange {
        replies: 3,
        matching: ReplyMatch::Any,
        ..exchange()
    };
    let mut site = WebsocketSite::new(&several, &["a"]);
    let place = site.send(0, 0);
    let two = [frame(Opcode::Text, b"x"), frame(Opcode::Binary, b"yy")].concat();
    site.quiet(&two);
    let (done_place, answer) = done(site.receive(&frame(Opcode::Text, b"zzz")));
    assert_eq!(done_place, place);
    assert_eq!((answer.head_bytes, answer.body_bytes), (6, 6));
    // The bytes of its incomplete reply are lost with a connection.
    site.send(0, 0);
    site.quiet(&two);
    site.quiet(b"\x81\x02x");
    let ending = site.protocol.ended(&mut site.connection);
    assert!(matches!(
        ending,
        ConnectionEnd::Fails(FailureKind::TruncatedReply)
    ));
    let abandoned = site.protocol.abandon(&mut site.connection);
    assert_eq!(abandoned, Some((1, two.len() as u64 + 3)));
    assert_eq!(site.protocol.abandon(&mut site.connection), None);
}

#[test]
fn messages_that_contain_something_answer_one() {
    let containing = WebSocketExchange {
        matching: ReplyMatch::Containing(Pattern::new(b"ok").expect("a pattern")),
        ..exchange()
    };
    let mut site = WebsocketSite::new(&containing, &["a"]);
    let place = site.send(0, 0);
    let others = [frame(Opcode::Text, b"o"), frame(Opcode::Text, b"k no")].concat();
    site.quiet(&others);
    assert_eq!(site.aside().1, 2);
    let reply = frame(Opcode::Binary, b"it is ok, ok?");
    site.quiet(&reply[..9]);
    let (done_place, answer) = done(site.receive(&reply[9..]));
    assert_eq!((done_place, answer.body_bytes), (place, 13));
    assert_eq!(site.aside().1, 0);
}

#[test]
fn of_messages_that_match_nothing_the_first_is_kept() {
    let containing = WebSocketExchange {
        matching: ReplyMatch::Containing(Pattern::new(b"ok").expect("a pattern")),
        ..exchange()
    };
    let user = "{\"user\": \"Имя\"}";
    for (pushed, kept) in [
        (user.to_owned(), user.to_owned()),
        ("x".repeat(300), format!("{}...", "x".repeat(200))),
        (String::new(), String::new()),
    ] {
        let mut site = WebsocketSite::new(&containing, &["a"]);
        site.send(0, 0);
        let push = frame(Opcode::Text, pushed.as_bytes());
        let wire = [push, frame(Opcode::Text, b"another")].concat();
        site.quiet(&wire);
        assert_eq!(site.protocol.take_unexpected(), Some(kept));
        assert_eq!(site.protocol.take_unexpected(), None);
    }
    // Where any message is a reply, there is none to be told of.
    let any = WebSocketExchange {
        matching: ReplyMatch::Any,
        ..exchange()
    };
    let mut site = WebsocketSite::new(&any, &["a"]);
    let push = frame(Opcode::Text, b"push");
    site.quiet(&push);
    assert_eq!(site.protocol.take_unexpected(), None);
}

#[test]
fn a_first_message_is_sent_once_and_its_replies_are_awaited() {
    let opened = |replies| WebSocketExchange {
        opening: Some(WebSocketOpening {
            message: Template::parse("user {conn} {seq}").expect("one").into(),
            replies,
        }),
        ..exchange()
    };
    let is_ready = |progress: Taken| matches!(progress.event, Some(ProtocolEvent::Ready));
    let (mut site, progress) = WebsocketSite::upgraded(&opened(2), &["a", "{seq}"]);
    assert!(!is_ready(progress));
    let sent = read(&site.written());
    assert_eq!(sent.len(), 1);
    assert_eq!(sent[0].1, b"user 0 0");
    // Whatever answers it, and in whatever pieces it comes.
    let [welcome, other] = [frame(Opcode::Text, b"welcome"), frame(Opcode::Binary, b"")];
    assert!(!is_ready(site.receive(&welcome[..4]).expect("good")));
    assert!(!is_ready(site.receive(&welcome[4..]).expect("good")));
    assert!(is_ready(site.receive(&other).expect("good")));
    assert_eq!(site.aside(), ((welcome.len() + other.len()) as u64, 0));
    for (request, text) in [(0, "a"), (1, "1")] {
        let place = site.send(request, 0);
        assert_eq!(read(&site.written()).len(), 1);
        let echo = frame(Opcode::Text, text.as_bytes());
        assert_eq!(done(site.receive(&echo)).0, place);
    }
    let (mut site, progress) = WebsocketSite::upgraded(&opened(0), &["a"]);
    assert!(is_ready(progress));
    assert_eq!(read(&site.written()).len(), 1);
    let (mut refused, _) = WebsocketSite::upgraded(&opened(1), &["a"]);
    let broken = refused.receive(&frame(Opcode::Close, &1_008_u16.to_be_bytes()));
    let kind = broken.expect_err("it is closed").kind;
    assert_eq!(kind, FailureKind::OpeningRefused);
}

#[test]
fn messages_without_replies_are_done_when_they_are_sent() {
    let one_way = WebSocketExchange {
        replies: 0,
        ..exchange()
    };
    let mut site = WebsocketSite::new(&one_way, &["a"]);
    let first = site.send(0, 0);
    site.protocol.sending(&mut site.connection);
    // This one waits behind the send.
    site.send(0, 0);
    let taken = |site: &mut WebsocketSite| {
        let taken = site.protocol.taken(&mut site.connection, 9);
        taken.map(|(place, answer)| (place, answer.body_bytes))
    };
    assert_eq!(taken(&mut site), Some((first, 0)));
    assert_eq!(taken(&mut site), None);
    // What comes all the same is a push.
    let push = frame(Opcode::Text, b"a");
    site.quiet(&push);
    assert_eq!(site.aside().1, 1);
}

#[test]
fn pings_and_closes_are_answered_and_counted() {
    let pinging = WebSocketExchange {
        ping_interval_ns: Some(50),
        ..exchange()
    };
    let mut site = WebsocketSite::new(&pinging, &["a"]);
    site.written();
    assert_eq!(site.protocol.next_timeout_ns(&site.connection), 150);
    let ping = frame(Opcode::Ping, b"are you there");
    site.quiet(&ping);
    let answers = read(&site.written());
    assert!(matches!(answers[..], [(FrameEvent::Pong { .. }, _)]));
    assert_eq!(answers[0].1, b"are you there");
    let timed_out = site
        .protocol
        .timed_out(&mut site.connection, 160, &site.places, &mut site.out);
    assert_eq!(timed_out, None);
    assert!(matches!(
        read(&site.written())[..],
        [(FrameEvent::Ping { .. }, _)]
    ));
    assert_eq!(site.protocol.next_timeout_ns(&site.connection), 210);
    site.send(0, 0);
    site.written();
    let close = site.receive(b"\x88\x02\x03\xf0").expect("good").event;
    assert!(matches!(
        close,
        Some(ProtocolEvent::Closed(FailureKind::ClosePolicy))
    ));
    assert!(matches!(
        read(&site.written())[..],
        [(FrameEvent::Close { .. }, _)]
    ));
    let controls = site.protocol.take_aside(&mut site.connection).controls;
    let expected = ControlFrames {
        pings_sent: 1,
        pongs_received: 0,
        pings_received: 1,
        closes_received: 1,
    };
    assert_eq!(controls, expected);
    let controls = site.protocol.take_aside(&mut site.connection).controls;
    assert!(controls.is_none());
}

#[test]
fn what_breaks_the_protocol_is_answered_too() {
    let mut site = WebsocketSite::new(&exchange(), &["a"]);
    site.send(0, 0);
    site.written();
    let broken = site.receive(b"\x81\x81").expect_err("it is masked");
    assert_eq!(broken.kind, FailureKind::WebSocketError);
    let answers = read(&site.written());
    assert_eq!(answers[0].1, 1002_u16.to_be_bytes());
    let abandoned = site.protocol.abandon(&mut site.connection);
    assert_eq!(abandoned, Some((0, 2)));
}

#[test]
fn texts_are_utf8() {
    let set = RequestSet::messages_in(
        RequestOrder::Turns,
        vec![MessageSpec {
            name: "x".to_owned(),
            template: Template::constant(vec![0xff]),
        }],
    );
    let target = Target::parse_websocket("ws://host/", None).expect("a URL");
    let plan = Plan::new(target, set.expect("a message"));
    let refused = EncodedWebSocket::new(&plan, &exchange(), 1, 0).expect_err("no text");
    assert!(refused.to_string().contains("--binary"), "{refused}");
    let binary = WebSocketExchange {
        is_binary: true,
        ..exchange()
    };
    assert!(EncodedWebSocket::new(&plan, &binary, 1, 0).is_ok());
}

#[test]
fn what_comes_behind_a_close_is_overhead() {
    let mut site = WebsocketSite::new(&exchange(), &["a"]);
    site.send(0, 0);
    let close = b"\x88\x02\x03\xe8\x81\x04more\x81";
    let progress = site.receive(close).expect("good");
    let event = progress.event;
    assert!(matches!(
        event,
        Some(ProtocolEvent::Closed(FailureKind::CloseNormal))
    ));
    assert_eq!(progress.consumed, close.len());
    assert_eq!(site.aside(), (close.len() as u64, 0));
}

#[test]
fn connections_are_parted_from_once() {
    let closes = |site: &mut WebsocketSite| -> Vec<(FrameEvent, Vec<u8>)> { read(&site.written()) };
    let part = |site: &mut WebsocketSite| site.protocol.part(&mut site.connection, &mut site.out);
    let mut site = WebsocketSite::new(&exchange(), &["a"]);
    assert_eq!(part(&mut site), Closing::Answered);
    assert_eq!(closes(&mut site)[0].1, 1_000_u16.to_be_bytes());
    // What still comes is heard, and its pings are not answered.
    let rest = [frame(Opcode::Text, b"push"), frame(Opcode::Ping, b"")].concat();
    site.quiet(&rest);
    assert_eq!(site.aside().1, 1);
    assert_eq!(part(&mut site), Closing::AtOnce);
    let end = site.receive(b"\x88\x00").expect("good").event;
    assert!(matches!(end, Some(ProtocolEvent::Closed(_))));
    assert_eq!(closes(&mut site), []);
    // Who has not answered all is not waited for.
    let mut site = WebsocketSite::new(&exchange(), &["a"]);
    site.send(0, 0);
    site.written();
    assert!(site.protocol.abandon(&mut site.connection).is_some());
    assert_eq!(part(&mut site), Closing::AtOnce);
    assert_eq!(closes(&mut site)[0].1, 1_001_u16.to_be_bytes());
    // Who has closed was answered.
    let mut site = WebsocketSite::new(&exchange(), &["a"]);
    assert!(site.receive(b"\x88\x00").expect("good").event.is_some());
    assert_eq!(closes(&mut site).len(), 1);
    assert_eq!(part(&mut site), Closing::AtOnce);
    assert_eq!(closes(&mut site), []);
}

/// A round may end in the middle of a message; the next one goes on with it.
#[test]
fn a_message_cut_by_the_end_of_a_round_is_read_on() {
    let mut site = WebsocketSite::new(&exchange(), &["a"]);
    let push = frame(Opcode::Text, b"a long push");
    site.quiet(&push[..5]);
    assert_eq!(site.protocol.close(&mut site.connection), 5);
    site.quiet(&push[5..]);
    assert_eq!(site.aside(), (push.len() as u64 - 5, 1));
    site.send(0, 0);
    let (_, answer) = done(site.receive(&frame(Opcode::Text, b"a")));
    assert_eq!((answer.head_bytes, answer.body_bytes), (2, 1));
}
