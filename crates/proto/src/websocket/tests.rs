//! Tests: cases of frames and handshakes, each cut at every byte.

use proptest::prelude::*;

use super::frame::{frame_head_bytes, mask, put_frame, put_head};
use super::fuzz::{FuzzOutcome, answer_to, read, same_up_to_fault};
use super::*;
use crate::http1::ReplyError;
use crate::test_support::at_every_cut;

const CLIENT: Rules = Rules {
    side: Side::Client,
    is_strict: true,
};
const SERVER: Rules = Rules {
    side: Side::Server,
    is_strict: true,
};

/// What comes of `bytes`, whole, in two pieces cut anywhere, and byte by byte.
fn outcome(bytes: &[u8], rules: Rules) -> FuzzOutcome {
    at_every_cut(bytes, |pieces| {
        same_up_to_fault(read(pieces.iter().copied(), rules))
    })
}

fn message(kind: Kind, payload: &[u8], wire_bytes: u64) -> (FrameEvent, Vec<u8>) {
    let event = FrameEvent::Message {
        kind,
        payload_bytes: payload.len() as u64,
        wire_bytes,
    };
    (event, payload.to_vec())
}

fn closed(number: Option<u16>, wire_bytes: u64, payload: &[u8]) -> (FrameEvent, Vec<u8>) {
    let code = number.and_then(CloseCode::of);
    (FrameEvent::Close { code, wire_bytes }, payload.to_vec())
}

#[test]
fn good_frames() {
    let ping = |payload: &[u8]| {
        let wire_bytes = 2 + payload.len() as u64;
        (FrameEvent::Ping { wire_bytes }, payload.to_vec())
    };
    let text = |payload: &[u8], wire_bytes| message(Kind::Text, payload, wire_bytes);
    let euro = text("€".as_bytes(), 9);
    let gone = closed(Some(1001), 8, b"\x03\xe9gone");
    let own_code = closed(Some(4000), 4, b"\x0f\xa0");
    for (bytes, events) in [
        // The examples of RFC 6455 section 5.7.
        (&b"\x81\x05Hello"[..], vec![text(b"Hello", 7)]),
        (b"\x01\x03Hel\x80\x02lo", vec![text(b"Hello", 9)]),
        (b"\x89\x05Hello", vec![ping(b"Hello")]),
        // Control frames between the parts of a message, and parts without a byte.
        (
            b"\x02\x01a\x89\x01x\x00\x00\x8a\x00\x80\x01b\x81\x00",
            vec![
                ping(b"x"),
                (FrameEvent::Pong { wire_bytes: 2 }, Vec::new()),
                message(Kind::Binary, b"ab", 8),
                text(b"", 2),
            ],
        ),
        // A character that is cut by frames.
        (b"\x01\x01\xe2\x00\x01\x82\x80\x01\xac", vec![euro]),
        (b"\x88\x00", vec![closed(None, 2, b"")]),
        (b"\x88\x06\x03\xe9gone", vec![gone]),
        (b"\x88\x02\x0f\xa0", vec![own_code]),
    ] {
        let found = outcome(bytes, CLIENT);
        assert_eq!((found.events, found.ending), (events, Ok(())), "{bytes:x?}");
        assert_eq!(found.pending_bytes, 0);
    }
    // The masked one of the RFC.
    let found = outcome(b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58", SERVER);
    assert_eq!(found.events, [text(b"Hello", 11)]);
}

#[test]
fn lengths_of_16_and_64_bits() {
    for (length, head_bytes) in [(125, 2), (126, 4), (0xffff, 4), (0x1_0000, 10)] {
        let mut wire = Vec::new();
        put_frame(&mut wire, Opcode::Binary, &vec![b'x'; length], None);
        assert_eq!(wire.len(), length + head_bytes);
        let expected = head_bytes as u64;
        assert_eq!(frame_head_bytes(length as u64, false), expected, "{length}");
        assert_eq!(frame_head_bytes(length as u64, true), expected + 4);
        // Cut around the head, since there are many bytes.
        for cut in 0..16 {
            let (a, b) = wire.split_at(cut);
            let found = read([a, b], CLIENT);
            assert_eq!(found.events.len(), 1, "{length} at {cut}");
            assert_eq!(found.events[0].1.len(), length);
        }
    }
    // A message longer than any memory is counted as it comes.
    let mut reader = Reader::default();
    let head = b"\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff";
    let progress = reader.receive(head, CLIENT, |_| {}).expect("allowed");
    assert_eq!((progress.consumed, progress.event), (10, None));
    assert_eq!(reader.unread_bytes(CLIENT), i64::MAX as u64 - 1);
    reader.discarded(1 << 62);
    assert_eq!(reader.pending_bytes(), (1 << 62) + 10);
    assert_eq!(reader.unread_bytes(CLIENT), i64::MAX as u64 - 1 - (1 << 62));
}

#[test]
fn discarded_bytes_keep_the_place_in_the_key() {
    let mut wire = Vec::new();
    let payload: Vec<u8> = (0..100).collect();
    put_frame(&mut wire, Opcode::Binary, &payload, Some([1, 2, 3, 4]));
    let mut reader = Reader::default();
    let progress = reader.receive(&wire[..9], SERVER, |_| {}).expect("good");
    assert_eq!(progress.event, None);
    assert_eq!(reader.unread_bytes(SERVER), 96);
    reader.discarded(93);
    let mut rest = Vec::new();
    let progress = reader.receive(&wire[102..], SERVER, |piece| {
        rest = piece.bytes.to_vec();
        mask(&mut rest, piece.key.expect("masked"));
    });
    assert_eq!(rest, payload[96..]);
    let event = progress.expect("good").event;
    assert_eq!(event, Some(message(Kind::Binary, &payload, 106).0));
}

#[test]
fn bad_frames() {
    let not_shortest = Fault::LengthNotShortest;
    for (bytes, rules, fault) in [
        (&b"\xc1\x00"[..], CLIENT, Fault::ReservedBits),
        (b"\x91\x00", CLIENT, Fault::ReservedBits),
        (b"\x83\x00", CLIENT, Fault::ReservedOpcode(3)),
        (b"\x87\x00", CLIENT, Fault::ReservedOpcode(7)),
        (b"\x8b\x00", CLIENT, Fault::ReservedOpcode(11)),
        (b"\x0f\x00", CLIENT, Fault::ReservedOpcode(15)),
        (b"\x09\x00", CLIENT, Fault::ControlInParts),
        (b"\x08\x00", CLIENT, Fault::ControlInParts),
        (b"\x89\x7e\x00\x7e", CLIENT, Fault::ControlTooLong),
        (b"\x88\x7f", CLIENT, Fault::ControlTooLong),
        (b"\x80\x00", CLIENT, Fault::NothingToContinue),
        (b"\x00\x00", CLIENT, Fault::NothingToContinue),
        (b"\x01\x00\x81\x00", CLIENT, Fault::MessageInside),
        (b"\x02\x00\x82\x00", CLIENT, Fault::MessageInside),
        (b"\x81\x80\0\0\0\0", CLIENT, Fault::Masked),
        (b"\x81\x00", SERVER, Fault::NotMasked),
        (b"\x89\x01x", SERVER, Fault::NotMasked),
        (b"\x82\x7f\x80\0\0\0\0\0\0\0", CLIENT, Fault::LengthTooLarge),
        (b"\x82\x7e\x00\x7d", CLIENT, not_shortest),
        (b"\x82\x7f\0\0\0\0\0\0\xff\xff", CLIENT, not_shortest),
        (b"\x81\x03a\xc3(", CLIENT, Fault::NotUtf8),
        (b"\x81\x02\xe2\x82", CLIENT, Fault::NotUtf8),
        (b"\x01\x01\xc3\x80\x01(", CLIENT, Fault::NotUtf8),
        (b"\x88\x01\x03", CLIENT, Fault::CloseLength),
        (b"\x88\x02\x00\x00", CLIENT, Fault::CloseCode(0)),
        (b"\x88\x02\x03\xe7", CLIENT, Fault::CloseCode(999)),
        (b"\x88\x02\x03\xec", CLIENT, Fault::CloseCode(1004)),
        (b"\x88\x02\x03\xed", CLIENT, Fault::CloseCode(1005)),
        (b"\x88\x02\x03\xee", CLIENT, Fault::CloseCode(1006)),
        (b"\x88\x02\x03\xf7", CLIENT, Fault::CloseCode(1015)),
        (b"\x88\x02\x0b\xb7", CLIENT, Fault::CloseCode(2999)),
        (b"\x88\x02\x13\x88", CLIENT, Fault::CloseCode(5000)),
        (b"\x88\x04\x03\xe8\xc3(", CLIENT, Fault::CloseReason),
    ] {
        let found = outcome(bytes, rules);
        assert_eq!(found.ending, Err(fault), "{bytes:x?}");
        assert_eq!(found.events, [], "{bytes:x?}");
    }
}

/// A fault shows at its byte: what is behind it does not matter, nor need it come.
#[test]
fn faults_show_at_once() {
    for (bytes, shown_at) in [
        (&b"\xc1"[..], 1),
        (b"\x81\x80", 2),
        (b"\x89\x7e", 2),
        (b"\x82\x7f\x80", 3),
        (b"\x81\x7e\x01\x00a\xf4\x90", 7),
        (b"\x88\x01\x03", 3),
    ] {
        assert_eq!(bytes.len(), shown_at);
        let before = read([&bytes[..shown_at - 1]], CLIENT);
        assert_eq!(before.ending, Ok(()), "{bytes:x?}");
        assert!(read([bytes], CLIENT).ending.is_err(), "{bytes:x?}");
    }
}

#[test]
fn what_only_strict_rules_refuse() {
    let lax = Rules {
        is_strict: false,
        ..CLIENT
    };
    let found = outcome(b"\x81\x02\xc3(", lax);
    assert_eq!(found.events, [message(Kind::Text, b"\xc3(", 4)]);
    let found = outcome(b"\x82\x7e\x00\x01a", lax);
    assert_eq!(found.events, [message(Kind::Binary, b"a", 5)]);
}

#[test]
fn a_reason_is_cut_between_characters() {
    let code = CloseCode::of(3000);
    let mut wire = Vec::new();
    put_close(&mut wire, code, &"ä".repeat(100), None);
    let [(event, payload)] = &outcome(&wire, CLIENT).events[..] else {
        panic!("one");
    };
    let wire_bytes = 126;
    assert_eq!(*event, FrameEvent::Close { code, wire_bytes });
    assert_eq!(payload[2..], *"ä".repeat(61).as_bytes());
}

#[test]
fn the_upgrade_of_the_rfc() {
    // RFC 6455 section 1.3.
    let accept = accept_of(b"dGhlIHNhbXBsZSBub25jZQ==");
    assert_eq!(&accept, b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert!(is_key(b"dGhlIHNhbXBsZSBub25jZQ=="));
    for key in [
        &b""[..],
        b"dGhlIHNhbXBsZSBub25jZQ",
        b"dGhlIHNhbXBsZSBub25jZSE=",
        b"dGhlIHNhbXBsZSBub25jZ!==",
    ] {
        assert!(!is_key(key), "{key:?}");
    }
}

#[test]
fn what_is_offered() {
    let headers = [("Origin".to_owned(), "http://a".to_owned())];
    let names = ["chat".to_owned(), "v2.x".to_owned()];
    let offer = Offer::new("/a?b", "h:1", &headers, &names).expect("good");
    let mut out = Vec::new();
    WebSocketClient::default().open(&offer, *b"the sample nonce", &mut out);
    assert_eq!(out.len(), offer.bytes());
    let text = String::from_utf8(out).expect("text").replace("\r\n", "|");
    assert_eq!(
        text,
        "GET /a?b HTTP/1.1|Host: h:1|Origin: http://a|Connection: Upgrade|Upgrade: websocket|\
         Sec-WebSocket-Protocol: chat, v2.x|Sec-WebSocket-Version: 13|\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==||"
    );
}

#[test]
fn what_cannot_be_offered() {
    let field = |name: &str| vec![(name.to_owned(), "x".to_owned())];
    for (headers, names, words) in [
        (field("upgrade"), vec![], "`upgrade` is part of"),
        (field("Sec-WebSocket-Extensions"), vec![], "leave it out"),
        (field("a b"), vec![], "not a token"),
        (vec![], vec!["a b"], "`a b` is not a token"),
        (vec![], vec!["a", "a"], "given twice"),
        (vec![], vec![""], "``"),
    ] {
        let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let error = Offer::new("/", "h", &headers, &names).expect_err("refused");
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// What a client says of bytes in answer to its upgrade.
fn handshake<'a>(
    offer: &Offer,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Option<ClientEvent>, ClientError> {
    let (mut client, mut out) = (WebSocketClient::default(), Vec::new());
    client.open(offer, [7; 16], &mut out);
    let limits = crate::Limits::default();
    let settings = Settings {
        offer,
        limits: &limits,
    };
    for piece in pieces {
        let progress = client.receive(piece, settings, [0; 4], &mut out, |_| {})?;
        if progress.event.is_some() {
            return Ok(progress.event);
        }
    }
    Ok(None)
}

/// The server's answer with one line in place of another.
fn answer(replaced: &str, by: &str) -> Vec<u8> {
    let offer = Offer::new("/", "h", &[], &[]).expect("good");
    let mut out = Vec::new();
    WebSocketClient::default().open(&offer, [7; 16], &mut out);
    let text = String::from_utf8(answer_to(&out)).expect("text");
    assert!(text.contains(replaced), "{replaced}");
    text.replace(replaced, by).into_bytes()
}

#[test]
fn answers_to_an_upgrade() {
    use HandshakeError::{
        Extension, NoSubprotocol, NotHttp, NotUpgraded, OtherSubprotocol, WrongAccept,
    };
    let (none, chat, both) = (&[][..], &["chat"][..], &["chat", "v2"][..]);
    let end = "\r\n\r\n";
    let open = Ok(Some(ClientEvent::Open));
    let refused = |error: HandshakeError| Err(ClientError::Handshake(error));
    let to = |status, location: Option<&str>| {
        let location = location.map(str::to_owned);
        refused(HandshakeError::Refused { status, location })
    };
    let with = |line: &str| answer(end, &format!("\r\n{line}{end}"));
    let wants = |name: &str| with(&format!("Sec-WebSocket-Protocol: {name}"));
    let (connection, switching) = ("Connection: Upgrade", "101 Switching Protocols");
    let interim = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 101";
    let elsewhere = "302 Found\r\nlocation: wss://b/a";
    let deflate = "permessage-deflate; a=1";
    let accept = "Sec-WebSocket-Accept: ";
    let extensions = |value: &str| with(&format!("Sec-WebSocket-Extensions: {value}"));
    let extension = refused(Extension(deflate.to_owned()));
    let other = |name: &str| refused(OtherSubprotocol(name.to_owned()));
    let (not_upgraded, wrong_accept) = (refused(NotUpgraded), refused(WrongAccept));
    let moved = to(302, Some("wss://b/a"));
    let kept = "connection: keep-alive, upgrade";
    let h2c = answer("Upgrade: websocket", "Upgrade: h2c");
    let closing = answer(connection, "Connection: close");
    let x = "Sec-WebSocket-Accept: x";
    let not_http = refused(NotHttp(ReplyError::MalformedHead));
    for (bytes, names, expected) in [
        (answer(end, end), none, open.clone()),
        (answer("websocket", "WebSocket"), none, open.clone()),
        (answer(connection, kept), none, open.clone()),
        (answer("HTTP/1.1 101", interim), none, open.clone()),
        (wants("chat"), chat, open.clone()),
        (wants("v2"), both, open.clone()),
        (extensions(""), none, open),
        (answer(switching, "404 Not Found"), none, to(404, None)),
        (answer(switching, elsewhere), none, moved),
        (answer("101", "200"), none, to(200, None)),
        (h2c, none, not_upgraded.clone()),
        (closing, none, not_upgraded),
        (answer(accept, x), none, wrong_accept.clone()),
        (answer(accept, "X-Accept: "), none, wrong_accept),
        (extensions(deflate), none, extension),
        (wants("chat"), none, other("chat")),
        (wants("chat, v2"), both, other("chat, v2")),
        (answer(end, end), chat, refused(NoSubprotocol)),
        (b"SSH-2.0-OpenSSH_9\r\n".to_vec(), none, not_http),
        (b"HTTP/1.1 101 ".to_vec(), none, Ok(None)),
    ] {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let offer = Offer::new("/", "h", &[], &names).expect("good");
        let found = at_every_cut(&bytes, |pieces| handshake(&offer, pieces.iter().copied()));
        assert_eq!(found, expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn an_upgrade_has_no_endless_answer() {
    let offer = Offer::new("/", "h", &[], &[]).expect("good");
    let interim = b"HTTP/1.1 103 x\r\n\r\n".repeat(17);
    let too_many = HandshakeError::NotHttp(ReplyError::BadInterim);
    assert_eq!(handshake(&offer, [&interim[..]]), Err(too_many.into()));
    let long = [b"HTTP/1.1 101 x\r\na: ", &[b'x'; 70_000][..]].concat();
    let too_large = HandshakeError::NotHttp(ReplyError::HeadTooLarge);
    assert_eq!(handshake(&offer, [&long[..]]), Err(too_large.into()));
}

/// A client whose upgrade is answered.
fn open_client(offer: &Offer, settings: Settings<'_>) -> WebSocketClient {
    let (mut client, mut out) = (WebSocketClient::default(), Vec::new());
    client.open(offer, [7; 16], &mut out);
    let answer = answer_to(&out);
    let progress = client.receive(&answer, settings, [0; 4], &mut out, |_| {});
    let event = progress.expect("good").event;
    assert_eq!(event, Some(ClientEvent::Open), "it agrees");
    assert_eq!(client.take_overhead(), answer.len() as u64);
    client
}

#[test]
fn a_client_answers_and_closes_once() {
    let offer = Offer::new("/", "h", &[], &[]).expect("good");
    let limits = crate::Limits::default();
    let settings = Settings {
        offer: &offer,
        limits: &limits,
    };
    let key = [9, 8, 7, 6];
    let mut out = Vec::new();
    let mut client = open_client(&offer, settings);
    assert!(client.is_open());
    let mut receive = |client: &mut WebSocketClient, bytes: &[u8]| {
        out.clear();
        let progress = client.receive(bytes, settings, key, &mut out, |_| {});
        (progress.map(|progress| progress.event), out.clone())
    };
    let frame = |opcode, payload: &[u8]| {
        let mut wire = Vec::new();
        put_frame(&mut wire, opcode, payload, Some(key));
        wire
    };
    let (event, sent) = receive(&mut client, b"\x89\x02hi");
    assert_eq!(event, Ok(Some(ClientEvent::Ping)));
    assert_eq!(sent, frame(Opcode::Pong, b"hi"));
    let (event, sent) = receive(&mut client, b"\x88\x04\x03\xe9ok");
    let code = CloseCode::of(1001);
    assert_eq!(event, Ok(Some(ClientEvent::Closed { code })));
    assert_eq!(sent, frame(Opcode::Close, b"\x03\xe9"));
    assert!(!client.is_open());
    // What follows is nothing.
    assert_eq!(receive(&mut client, b"\x81\x05Hello"), (Ok(None), vec![]));
    assert_eq!(client.take_overhead(), 4 + 6 + 7);

    // A client that closed first answers nothing more, and takes what still comes.
    let mut client = open_client(&offer, settings);
    let mut wire = Vec::new();
    client.close(Some(CloseCode::NORMAL), key, &mut wire);
    assert_eq!(wire, frame(Opcode::Close, b"\x03\xe8"));
    let (event, sent) = receive(&mut client, b"\x81\x01a");
    let kind = Kind::Text;
    let message = ClientEvent::Message {
        kind,
        payload_bytes: 1,
        wire_bytes: 3,
    };
    assert_eq!(event, Ok(Some(message)));
    assert_eq!(sent, b"");
    let (event, bytes) = receive(&mut client, b"\x89\x00");
    assert_eq!((event, bytes.len()), (Ok(Some(ClientEvent::Ping)), 0));
    let code = Some(CloseCode::NORMAL);
    let closed = (Ok(Some(ClientEvent::Closed { code })), vec![]);
    assert_eq!(receive(&mut client, b"\x88\x02\x03\xe8"), closed);

    // A fault is answered by a Close frame with the reason.
    let mut client = open_client(&offer, settings);
    let (event, sent) = receive(&mut client, b"\x81\x81");
    assert_eq!(event, Err(ClientError::Frame(Fault::Masked)));
    assert_eq!(sent, frame(Opcode::Close, b"\x03\xea"));
    assert_eq!(client.pending_bytes(), 2);
}

#[test]
fn idle_connections_are_small() {
    assert!(
        size_of::<WebSocketClient>() <= 144,
        "{}",
        size_of::<WebSocketClient>()
    );
}

proptest! {
    /// Messages in any number of frames, with pings between them, come back whole from either
    /// side, however they are cut.
    #[test]
    fn what_is_written_is_read(
        messages in prop::collection::vec(
            (any::<bool>(), prop::collection::vec(any::<Vec<u8>>(), 1..4), any::<bool>()),
            0..5,
        ),
        key in any::<Option<MaskKey>>(),
        piece in 1_usize..40,
    ) {
        let mut wire = Vec::new();
        let mut expected = Vec::new();
        for (is_text, parts, has_ping) in &messages {
            let kind = if *is_text { Kind::Text } else { Kind::Binary };
            let (start, mut pings) = (wire.len(), 0);
            for (index, part) in parts.iter().enumerate() {
                let opcode = if index == 0 { kind.opcode() } else { Opcode::Continuation };
                let is_last = index + 1 == parts.len();
                put_head(&mut wire, opcode, is_last, part.len() as u64, key);
                let payload_start = wire.len();
                wire.extend_from_slice(part);
                if let Some(key) = key {
                    mask(&mut wire[payload_start..], key);
                }
                if *has_ping && !is_last {
                    let before = wire.len();
                    put_frame(&mut wire, Opcode::Ping, b"p", key);
                    let wire_bytes = (wire.len() - before) as u64;
                    pings += wire_bytes;
                    expected.push((FrameEvent::Ping { wire_bytes }, b"p".to_vec()));
                }
            }
            let wire_bytes = (wire.len() - start) as u64 - pings;
            expected.push(message(kind, &parts.concat(), wire_bytes));
        }
        let side = if key.is_some() { Side::Server } else { Side::Client };
        let found = read(wire.chunks(piece), Rules { side, is_strict: false });
        prop_assert_eq!(found.ending, Ok(()));
        prop_assert_eq!(found.events, expected);
    }

    /// Masking twice gives what was there, and each byte goes with its byte of the key.
    #[test]
    fn masks(payload in any::<Vec<u8>>(), key in any::<MaskKey>()) {
        let mut masked = payload.clone();
        mask(&mut masked, key);
        let simple: Vec<u8> =
            payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key).collect();
        prop_assert_eq!(&masked, &simple);
        mask(&mut masked, key);
        prop_assert_eq!(masked, payload);
    }

    /// Whatever bytes come, the pieces do not matter and every byte is accounted for.
    #[test]
    fn any_bytes(data in any::<Vec<u8>>()) {
        fuzz_frames(&data);
    }
}
