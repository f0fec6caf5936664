//! Connections that speak HTTP/2, against the scripted backend: what is sent when.

use brunt_io::backend::{Event, Slot};
use brunt_proto::http2::frame::{self, ErrorCode, HEADER_BYTES, Kind, PREFACE, flags};

use super::http2::LEAVING_NS;
use super::tests::{Site, assert_balanced};
use crate::batch::{OUTPUT_BUFFERS, Room};
use crate::connection::INPUT_BYTES_MAX;
use crate::http2::tests::{frames, get, head, settings};

const MS: u64 = 1_000_000;

/// What a client says first.
fn greeting() -> Vec<u8> {
    [&PREFACE[..], &settings(&[])].concat()
}

fn many(streams: impl Iterator<Item = u32>, path: &str) -> Vec<u8> {
    streams.flat_map(|at| get(2 * at + 1, path)).collect()
}

/// A greeting, and a request whose body is to come.
pub(super) fn begun_stream() -> Vec<u8> {
    [greeting(), head(1, "POST", "/", &[], false)].concat()
}

/// A connection after its greeting.
fn greeted(site: &mut Site) -> Slot {
    let slot = site.connect();
    site.say(slot, greeting()).turns(2);
    slot
}

impl Site {
    /// The only worker of a server, with a client of HTTP/2.
    fn greeted() -> (Self, Slot) {
        let mut site = Self::alone();
        let slot = greeted(&mut site);
        (site, slot)
    }
}

/// The streams that ended well, in their order, with the instants at which that was sent.
fn ended(site: &mut Site, slot: Slot) -> Vec<(u32, u64)> {
    let seen = site.seen(slot);
    let (mut sent_bytes, mut sends) = (0, seen.sends.iter());
    let (mut frame_end, mut at_ns) = (0, 0);
    let mut ended = Vec::new();
    for (header, payload) in frames(&seen.sent) {
        frame_end += HEADER_BYTES + payload.len();
        while sent_bytes < frame_end {
            let (sent_ns, length) = sends.next().unwrap();
            (at_ns, sent_bytes) = (*sent_ns, sent_bytes + length);
        }
        let may_end = matches!(header.kind, Kind::Headers | Kind::Data);
        if may_end && header.has(flags::END_STREAM) {
            ended.push((header.stream, at_ns));
        }
    }
    ended
}

fn streams_ended(site: &mut Site, slot: Slot) -> Vec<u32> {
    ended(site, slot).iter().map(|end| end.0).collect()
}

/// The codes of the GOAWAY frames that were sent.
fn goaways(site: &mut Site, slot: Slot) -> Vec<ErrorCode> {
    frames(&site.seen(slot).sent)
        .filter(|(header, _)| header.kind == Kind::GoAway)
        .map(|(_, payload)| frame::go_away(payload).unwrap().1)
        .collect()
}

#[test]
fn the_protocol_is_told_by_the_first_bytes() {
    let bytes = [&greeting()[..], &get(1, "/bytes/5")].concat();
    for cut in 0..bytes.len() {
        let (mut site, slot) = Site::connected();
        site.say(slot, &bytes[..cut]);
        site.say(slot, &bytes[cut..]).turns(2);
        assert_eq!(streams_ended(&mut site, slot), [1], "cut at {cut}");
        let totals = site.totals();
        assert_eq!((totals.requests, totals.connections_http2), (1, 1));
        assert_eq!(totals.bytes_received, bytes.len() as u64);
        assert_eq!(totals.bytes_sent, site.seen(slot).sent.len() as u64);
        assert_balanced(&totals);
    }
    // Its beginning alone is also that of requests of HTTP/1.1.
    for bytes in [
        "PRI * HTTP/1.1\r\nHost: x\r\n\r\n",
        "PUT / HTTP/1.1\r\nHost: x\r\n\r\n",
    ] {
        for cut in 1..bytes.len() {
            let (mut site, slot) = Site::connected();
            site.say(slot, &bytes[..cut]);
            site.say(slot, &bytes[cut..]).turns(2);
            assert!(site.seen(slot).sent.starts_with(b"HTTP/1.1 "), "{cut}");
            assert_eq!(site.totals().connections_http2, 0);
        }
    }
}

#[test]
fn a_request_is_noticed_while_a_send_is_in_flight() {
    let (mut site, slot) = Site::greeted();
    let now_ns = 1_000 * MS;
    site.script().now_ns = now_ns;
    site.script().hold_sends = true;
    site.say(slot, get(1, "/"));
    site.say(slot, get(3, "/delay/5ms"));
    site.script().now_ns = now_ns + 2 * MS;
    site.say(slot, get(5, "/delay/1ms"));
    site.say(slot, get(7, "/"));
    site.script().now_ns = now_ns + 4 * MS;
    site.script().release();
    site.turns(6);
    let expected = [
        (1, now_ns),
        // What waits for the send goes at once, the one that is late meanwhile included.
        (7, now_ns + 4 * MS),
        (5, now_ns + 4 * MS),
        (3, now_ns + 5 * MS),
    ];
    assert_eq!(ended(&mut site, slot), expected);
    assert_eq!(site.totals().lateness_ns_max, Some(MS));
}

#[test]
fn null_answers_share_one_send() {
    let (mut site, slot) = Site::greeted();
    let sends = site.seen(slot).sends.len();
    site.say(slot, many(0..1_000, "/")).turns(2);
    assert_eq!(site.seen(slot).sends.len(), sends + 1);
    assert_eq!(ended(&mut site, slot).len(), 1_000);
    assert!(site.worker.again.is_empty(), "idle again");
    assert_eq!(site.totals().replies_by_status[&200], 1_000);
}

#[test]
fn a_client_that_was_told_to_leave_is_waited_for() {
    for leaves in [true, false] {
        let (mut site, slot) = Site::greeted();
        let now_ns = 1_000 * MS;
        site.script().now_ns = now_ns;
        site.say(slot, [get(1, "/delay/3ms"), get(3, "/close")].concat());
        site.say(slot, get(5, "/"));
        site.turns(3);
        assert_eq!(ended(&mut site, slot), [(3, now_ns), (1, now_ns + 3 * MS)]);
        assert_eq!(goaways(&mut site, slot), [ErrorCode::NoError]);
        assert!(!site.seen(slot).closed);
        if leaves {
            site.script().happen(Event::Ended(slot));
            site.turns(1);
        } else {
            site.turns(40);
            assert!(site.script().now_ns >= now_ns + 3 * MS + LEAVING_NS);
        }
        assert!(site.seen(slot).closed);
        assert_eq!(site.worker.wakes.count(), 0);
        let totals = site.totals();
        assert_eq!((totals.requests, totals.streams_ignored), (2, 1));
        assert_balanced(&totals);
    }
}

#[test]
fn a_client_that_leaves_is_let_go() {
    let mut site = Site::alone();
    let (request, never, large) = (get(1, "/"), get(1, "/never"), get(1, "/bytes/10m"));
    for bytes in [b"", &request[..5], &never, &large] {
        let slot = greeted(&mut site);
        site.say(slot, bytes).turns(4);
        site.script().happen(Event::Ended(slot));
        assert!(site.turns(2).seen(slot).closed);
        assert_eq!(site.totals().requests_abandoned, 0);
    }
    // Half-closed clients still get what they asked for.
    let slot = greeted(&mut site);
    site.script().arrive(slot, &get(1, "/delay/5ms"));
    site.script().happen(Event::Ended(slot));
    site.turns(6);
    let counted = (ended(&mut site, slot).len(), site.seen(slot).closed);
    assert_eq!(counted, (1, true));
    // Lost connections leave no timer behind.
    let slot = greeted(&mut site);
    site.say(slot, many(0..3, "/delay/60m"));
    assert_eq!(site.worker.wakes.count(), 1);
    assert!(site.lose(slot).seen(slot).closed);
    assert_eq!(site.worker.wakes.count(), 0);
    let totals = site.totals();
    assert_eq!(totals.requests_abandoned, 3);
    assert_eq!(totals.connections_live, 0);
    assert_balanced(&totals);
}

#[test]
fn faults_end_the_connection_with_all_of_its_streams() {
    for path in ["/reset", "/random-close/100"] {
        let (mut site, slot) = Site::greeted();
        let sent_bytes = site.seen(slot).sent.len();
        let before = [get(1, "/delay/60m"), get(3, "/"), get(5, "/bytes/60k")].concat();
        site.say(slot, [before, get(7, path)].concat()).turns(2);
        // What goes before still arrives, and of the body only its head.
        let streams = streams_ended(&mut site, slot);
        assert_eq!((streams, site.seen(slot).closed), (vec![3], true), "{path}");
        assert!(site.seen(slot).sent.len() - sent_bytes < 100, "{path}");
        assert_eq!(site.worker.wakes.count(), 0);
        let totals = site.totals();
        assert_eq!((totals.requests_abandoned, totals.faults), (1, 1));
        assert_balanced(&totals);
    }
}

#[test]
fn a_client_that_has_to_leave_and_does_not_read_is_let_go() {
    for path in ["/close", "/goaway", "/reset"] {
        let (mut site, slot) = Site::greeted();
        let now_ns = 1_000 * MS;
        site.script().now_ns = now_ns;
        site.script().hold_sends = true;
        site.say(slot, [get(1, "/delay/3ms"), get(3, "/")].concat());
        site.say(slot, get(5, path));
        site.turns(2);
        assert!(!site.seen(slot).closed, "{path}");
        site.script().release();
        site.script().hold_sends = true;
        site.turns(80);
        let seen = site.seen(slot);
        assert!(seen.closed, "{path}");
        assert!(site.script().now_ns >= now_ns + 3 * MS);
        assert_eq!(site.worker.wakes.count(), 0);
        assert_balanced(&site.totals());
    }
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let (mut site, slot) = Site::greeted();
    site.script().hold_sends = true;
    let mut pings = Vec::new();
    frame::write_ping(&mut pings, [0; 8], false);
    let pings = pings.repeat(1_000);
    let mut bytes_sent = 0;
    while site.totals().connections_overflowed == 0 {
        site.say(slot, &pings);
        bytes_sent += pings.len();
        assert!(bytes_sent < 2 * INPUT_BYTES_MAX);
    }
    site.say(slot, &pings);
    site.script().release();
    site.turns(3);
    assert_eq!(goaways(&mut site, slot), [ErrorCode::EnhanceYourCalm]);
    assert!(site.seen(slot).sent.len() < 200_000, "bounded");
    site.turns(40);
    assert!(site.seen(slot).closed);
}

/// Clients that ask for much and read nothing have a bounded part of the memory together, and
/// leave everybody enough to be answered.
#[test]
fn output_of_all_connections_together_is_bounded() {
    let mut site = Site::alone();
    site.worker.service.output = Room::new(4 << 20, 1_000, OUTPUT_BUFFERS);
    let hoarders: Vec<_> = (0..100).map(|_| greeted(&mut site)).collect();
    site.script().hold_sends = true;
    let mut pings = Vec::new();
    (0..1_000).for_each(|_| frame::write_ping(&mut pings, [0; 8], false));
    let asked = [
        get(1, "/bytes/60000"),
        many(1..200, "/delay/60m"),
        many(200..220, "/counters"),
        pings,
    ];
    for &slot in &hoarders {
        for bytes in &asked {
            if !site.seen(slot).closed {
                site.say(slot, bytes);
            }
        }
        assert!(site.worker.service.output.shared_bytes() <= 2 << 20);
    }
    assert!(site.worker.service.output.shared_bytes() > 0);
    let refused = site.totals().connections_overflowed;
    assert!(refused > 0);
    site.script().hold_sends = false;
    let honest = greeted(&mut site);
    site.say(honest, get(1, "/bytes/60000")).turns(5_000);
    assert_eq!(streams_ended(&mut site, honest), [1]);
    assert!(!site.seen(honest).closed);
    assert_eq!(site.totals().connections_overflowed, refused);
    for slot in hoarders {
        if !site.seen(slot).closed {
            site.lose(slot);
        }
    }
    site.turns(2);
    assert_eq!(site.worker.service.output.shared_bytes(), 0);
}
