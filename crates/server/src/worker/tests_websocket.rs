//! WebSocket against the scripted backend.

use brunt_io::backend::Slot;
use brunt_proto::websocket::{CloseCode, Opcode, put_close, put_frame, put_head};

use super::tests::{Site, assert_balanced};
use crate::connection::INPUT_BYTES_MAX;
use crate::counters::Counters;
use crate::route::MESSAGE_BYTES_MAX;

const MS: u64 = 1_000_000;
pub(super) const KEY: [u8; 4] = [1, 2, 3, 4];

pub(super) fn upgrade(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

const AGREED: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";

pub(super) fn frame(opcode: Opcode, payload: &[u8], key: Option<[u8; 4]>) -> Vec<u8> {
    let mut wire = Vec::new();
    put_frame(&mut wire, opcode, payload, key);
    wire
}

/// A text message as the client sends it.
pub(super) fn text(payload: &str) -> Vec<u8> {
    frame(Opcode::Text, payload.as_bytes(), Some(KEY))
}

/// A text message as the server echoes it.
fn echo(payload: &str) -> Vec<u8> {
    frame(Opcode::Text, payload.as_bytes(), None)
}

fn close(number: u16, reason: &str, key: Option<[u8; 4]>) -> Vec<u8> {
    let mut wire = Vec::new();
    put_close(&mut wire, CloseCode::of(number), reason, key);
    wire
}

/// What frames get behind an upgrade on `path`, when they come whole and byte by byte: what is
/// sent, whether the connection is closed then, and the counters.
fn exchange(path: &str, frames: &[u8]) -> (Vec<u8>, bool, Counters) {
    let talk = |pieces: Vec<&[u8]>| {
        let (mut site, slot) = Site::connected();
        for piece in pieces {
            if site.seen(slot).closed {
                break;
            }
            site.say(slot, piece);
        }
        site.turns(200);
        let seen = site.seen(slot);
        let (sent, closed) = (seen.sent.clone(), seen.closed);
        let counters = site.totals();
        assert_balanced(&counters);
        assert_eq!(counters.bytes_sent, sent.len() as u64);
        let frames = sent.strip_prefix(AGREED).expect("it agrees").to_vec();
        (frames, closed, counters)
    };
    let request = upgrade(path);
    let whole = [request.as_bytes(), frames].concat();
    let (sent, closed, counters) = talk(vec![&whole]);
    assert_eq!(counters.connections_websocket, 1);
    assert_eq!(counters.replies_by_status.get(&101), Some(&1));
    let (again, closed_again, _) = talk(whole.chunks(1).collect());
    assert_eq!((&again, closed_again), (&sent, closed), "{path}");
    let behind = talk(vec![request.as_bytes(), frames]);
    assert_eq!((behind.0, behind.1), (sent.clone(), closed), "{path}");
    (sent, closed, counters)
}

#[test]
fn messages_get_what_their_path_says() {
    let two = [text("one"), text("two")].concat();
    let both = [echo("one"), echo("two")].concat();
    let pattern = |bytes: usize| {
        let letters = b"abcdefghijklmnopqrstuvwxyz".iter().cycle();
        letters.take(bytes).copied().collect::<Vec<u8>>()
    };
    let sized = |bytes| frame(Opcode::Text, &pattern(bytes), None);
    let mut in_frames = Vec::new();
    put_head(&mut in_frames, Opcode::Text, false, 16_384, None);
    in_frames.extend_from_slice(&pattern(16_384));
    put_head(&mut in_frames, Opcode::Continuation, true, 3, None);
    in_frames.extend_from_slice(&pattern(16_387)[16_384..]);
    let mut half = Vec::new();
    put_head(&mut half, Opcode::Text, true, 9, None);
    half.extend_from_slice(b"abcd");
    let echoes = "
        ?x=y /delay/5ms /stall/1ms/2ms /drift/0ms/1ms/1s /locked/1ms /compute/0ms
        /random-close/0";
    for route in echoes.split_whitespace().chain([""]) {
        let (sent, closed, counters) = exchange(&format!("/websocket{route}"), &two);
        assert_eq!((sent, closed), (both.clone(), false), "{route}");
        let counted = (counters.websocket_messages_answered, counters.faults);
        assert_eq!(counted, (2, 0));
    }
    let pushes = [echo("push"), echo("one"), echo("push"), echo("two")];
    for (route, expected, is_closed, answered, faults) in [
        ("bytes/200", sized(200).repeat(2), false, 2, 0),
        ("bytes/0", sized(0).repeat(2), false, 2, 0),
        ("chunked/16387", in_frames.repeat(2), false, 2, 0),
        ("interim/1", pushes.concat(), false, 2, 0),
        ("never", vec![], false, 0, 2),
        ("reset", vec![], true, 0, 1),
        ("random-close/100", vec![], true, 0, 1),
        ("truncate/9", half, true, 0, 1),
    ] {
        let (sent, closed, counters) = exchange(&format!("/websocket/{route}"), &two);
        assert_eq!((sent, closed), (expected, is_closed), "{route}");
        let counted = (counters.websocket_messages_answered, counters.faults);
        assert_eq!(counted, (answered, faults), "{route}");
    }
    for (path, expected) in [
        (
            "/websocket/close",
            [echo("one"), close(1000, "", None)].concat(),
        ),
        ("/websocket/goaway", close(1001, "", None)),
        ("/websocket/goaway/3999", close(3999, "", None)),
    ] {
        // What follows is not answered, and the client's Close ends the connection.
        let frames = [text("one"), text("two"), close(1000, "", Some(KEY))].concat();
        let (sent, closed, counters) = exchange(path, &frames);
        assert_eq!((sent, closed), (expected, true), "{path}");
        let counted = (counters.requests_abandoned, counters.websocket_closes);
        assert_eq!(counted, (1, 1), "{path}");
    }
}

#[test]
fn control_frames_are_answered_and_counted() {
    let frames = [
        frame(Opcode::Ping, b"hi", Some(KEY)),
        // Between the two parts of a message.
        vec![0x02, 0x81, 0, 0, 0, 0, b'a'],
        frame(Opcode::Ping, b"", Some(KEY)),
        frame(Opcode::Pong, b"x", Some(KEY)),
        vec![0x80, 0x81, 0, 0, 0, 0, b'b'],
        close(4000, "bye", Some(KEY)),
        text("late"),
    ]
    .concat();
    let (sent, closed, counters) = exchange("/websocket", &frames);
    let expected = [
        frame(Opcode::Pong, b"hi", None),
        frame(Opcode::Pong, b"", None),
        frame(Opcode::Binary, b"ab", None),
        close(4000, "", None),
    ];
    assert_eq!((sent, closed), (expected.concat(), true));
    assert_eq!(
        (
            counters.websocket_pings,
            counters.websocket_pongs,
            counters.websocket_closes,
            counters.websocket_messages_received,
            counters.websocket_bytes_received,
            counters.websocket_bytes_sent,
        ),
        (2, 1, 1, 1, 2, 2)
    );
}

#[test]
fn what_breaks_the_protocol_is_refused() {
    let long = MESSAGE_BYTES_MAX as usize + 1;
    for (frames, number, reason) in [
        (
            frame(Opcode::Text, b"a", None),
            1002,
            "a frame of the client is not masked",
        ),
        (
            frame(Opcode::Text, b"\xff", Some(KEY)),
            1007,
            "a text is not UTF-8",
        ),
    ] {
        let (sent, closed, counters) = exchange("/websocket", &frames);
        assert_eq!((sent, closed), (close(number, reason, None), true));
        assert_eq!(counters.websocket_refused, 1);
        assert_eq!(counters.websocket_messages_received, 0);
    }
    let (mut site, slot) = Site::connected();
    site.say(slot, upgrade("/websocket"));
    let wire = frame(Opcode::Binary, &vec![b'x'; long], Some(KEY));
    for piece in wire.chunks(INPUT_BYTES_MAX / 4) {
        if !site.seen(slot).closed {
            site.say(slot, piece).turns(3);
        }
    }
    let seen = site.seen(slot);
    let expected = [AGREED, &close(1009, "", None)].concat();
    assert_eq!((&seen.sent, seen.closed), (&expected, true));
    assert_eq!(site.totals().websocket_refused, 1);
}

#[test]
fn a_message_of_the_greatest_length_comes_back() {
    let payload = vec![b'x'; MESSAGE_BYTES_MAX as usize];
    let (mut site, slot) = Site::connected();
    site.say(slot, upgrade("/websocket"));
    for piece in frame(Opcode::Binary, &payload, Some(KEY)).chunks(65_536) {
        site.say(slot, piece);
    }
    site.turns(20);
    let expected = [AGREED, &frame(Opcode::Binary, &payload, None)].concat();
    assert!(site.seen(slot).sent == expected);
}

fn delayed_site() -> (Site, Slot) {
    let (mut site, slot) = Site::connected();
    site.say(slot, upgrade("/websocket/delay/10ms")).turns(2);
    (site, slot)
}

#[test]
fn delays_are_from_the_answer_before() {
    let (mut site, slot) = delayed_site();
    let from_ns = site.script().now_ns;
    site.say(slot, [text("a"), text("b")].concat()).turns(20);
    let expected = [from_ns + 10 * MS, from_ns + 20 * MS];
    assert_eq!(site.sent_at(slot)[1..], expected);
    let counters = site.totals();
    let counted = (counters.replies_delayed, counters.lateness_ns_max);
    assert_eq!(counted, (2, Some(0)));
}

#[test]
fn a_client_that_leaves_abandons_what_it_waits_for() {
    let (mut site, slot) = delayed_site();
    site.say(slot, text("a"));
    assert!(site.lose(slot).seen(slot).closed);
    let counters = site.totals();
    assert_eq!(counters.requests_abandoned, 1);
    assert_balanced(&counters);
}

#[test]
fn requests_that_are_no_upgrade() {
    const REQUIRED: &str = "426 Upgrade Required";
    let changed = |from, to| upgrade("/websocket").replace(from, to);
    for (request, status) in [
        (changed("Upgrade: websocket\r\n", ""), REQUIRED),
        (changed(": 13", ": 8"), REQUIRED),
        (changed("websocket\r", "h2c\r"), REQUIRED),
        (changed("GET", "POST"), "400 Bad Request"),
        (changed("dGhl", "dGh"), "400 Bad Request"),
        (upgrade("/websocket/x"), "404 Not Found"),
        (upgrade("/"), "200 OK"),
    ] {
        let (mut site, slot) = Site::connected();
        site.say(slot, &request).turns(2);
        let sent = site.text(slot);
        assert!(
            sent.starts_with(&format!("HTTP/1.1 {status}\r\n")),
            "{request}: {sent}"
        );
        assert!(!site.seen(slot).closed);
        let counters = site.totals();
        assert_balanced(&counters);
        assert_eq!((counters.requests, counters.connections_websocket), (1, 0));
    }
}

#[test]
fn the_first_subprotocol_is_chosen() {
    let (mut site, slot) = Site::connected();
    let request = upgrade("/websocket");
    let offer = "Sec-WebSocket-Protocol: a, b\r\nSec-WebSocket-Protocol: c\r\n\r\n";
    site.say(slot, format!("{}{offer}", &request[..request.len() - 2]));
    let sent = site.text(slot);
    assert!(
        sent.ends_with("\r\nSec-WebSocket-Protocol: a\r\n\r\n"),
        "{sent}"
    );
}
