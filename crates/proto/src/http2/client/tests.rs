//! Tests of the client: exchanges cut at every byte, limits, random and mutated exchanges.

use std::slice::from_ref;

use proptest::prelude::*;
use proptest::sample::Index;

use super::PeerTable;
use crate::Limits;
use crate::http2::frame::flags::{self, PADDED};
use crate::http2::frame::{self, ErrorCode, FrameHeader, Kind, Setting};
use crate::http2::fuzz::{FuzzOutcome, Use, fuzz_http2, talk};
use crate::http2::hpack::{
    CodingError, HpackError, Indexing, TABLE_BYTES, encode_field, encode_size_update,
};
use crate::http2::{
    Client, ClientSettings, ConnectionError, Event, FailedCall, KnownHead, MalformedReply, Reply,
    Request, StreamFailure, Template, Violation,
};
use crate::test_support::{PLAIN, at_every_cut, owned, written};

fn get(path: &str) -> Template {
    request("GET", path, b"")
}

fn request(method: &str, path: &str, body: &[u8]) -> Template {
    let request = Request {
        method,
        path,
        body,
        ..PLAIN
    };
    Template::new(&request).unwrap()
}

/// Two requests in flight at once, and no more of them.
fn two_gets() -> Use {
    Use {
        template: get("/"),
        limits: Limits::default(),
        depth: 2,
        requests: 2,
    }
}

fn settings(settings: &[Setting]) -> Vec<u8> {
    written(|out| frame::write_settings(out, settings))
}

fn raw(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let header = FrameHeader {
        length: payload.len() as u32,
        kind,
        flags,
        stream,
    };
    let mut out = header.to_bytes().to_vec();
    out.extend_from_slice(payload);
    out
}

fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    written(|out| {
        for (name, value) in fields {
            encode_field(out, name.as_bytes(), value.as_bytes(), Indexing::Without);
        }
    })
}

const OK: &[(&str, &str)] = &[(":status", "200")];
const OK_OF_5: &[(&str, &str)] = &[(":status", "200"), ("content-length", "5")];
const END: u8 = flags::END_STREAM;
const WHOLE: u8 = flags::END_HEADERS;

fn head(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    raw(Kind::Headers, flags | WHOLE, stream, &block(fields))
}

fn data(stream: u32, flags: u8, bytes: usize) -> Vec<u8> {
    raw(Kind::Data, flags, stream, &vec![b'x'; bytes])
}

fn rst(stream: u32, code: ErrorCode) -> Vec<u8> {
    written(|out| frame::write_rst_stream(out, stream, code))
}

fn go_away(last_stream: u32, code: ErrorCode) -> Vec<u8> {
    written(|out| frame::write_go_away(out, last_stream, code))
}

fn window(stream: u32, bytes: u32) -> Vec<u8> {
    written(|out| frame::write_window_update(out, stream, bytes))
}

/// What a server sends, after empty SETTINGS.
fn wire(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut wire = settings(&[]);
    wire.extend(parts.iter().flatten());
    wire
}

/// Runs the wire whole, in two pieces at every cut and byte by byte; gives the common outcome.
fn talk_every_cut(wire: &[u8], how: &Use) -> FuzzOutcome {
    let _ = at_every_cut(wire, |pieces| {
        let found = talk(pieces.iter().copied(), how);
        (found.events, found.ending, found.sent)
    });
    talk([wire], how)
}

fn plain(status: u16, head_bytes: usize, body_bytes: usize) -> Reply {
    Reply {
        status,
        retry_after: false,
        failed_call: None,
        interim: 0,
        head_bytes: head_bytes as u64,
        body_bytes: body_bytes as u64,
        first_byte_ns: 7,
    }
}

fn reply(place: u32, status: u16, head_bytes: usize, body_bytes: usize) -> Event {
    let reply = plain(status, head_bytes, body_bytes);
    Event::Reply { place, reply }
}

fn failed(place: u32, why: impl Into<StreamFailure>, discarded_bytes: usize) -> Event {
    Event::Failed {
        place,
        why: why.into(),
        discarded_bytes: discarded_bytes as u64,
    }
}

/// The events of an exchange after [`Event::Ready`], which does not break the connection.
fn events(how: &Use, parts: &[Vec<u8>]) -> Vec<Event> {
    let outcome = talk_every_cut(&wire(parts), how);
    assert_eq!(outcome.ending, Ok(()));
    assert_eq!(outcome.events[0], Event::Ready);
    outcome.events[1..].to_vec()
}

#[test]
fn replies_come_in_any_order_and_shape() {
    let missing = head(1, END, &[(":status", "404")]);
    let of_5 = || head(1, 0, OK_OF_5);
    let bytes_of_5 = of_5().len();
    let checksum = head(1, END, &[("checksum", "1")]);
    let with_checksum = 14 + checksum.len();
    let fields = block(OK_OF_5);
    let all_flags = WHOLE | END | PADDED | flags::PRIORITY;
    let prioritized = raw(Kind::Headers, all_flags, 1, &[2, 0, 0, 0, 0, 9, 0x88, 0, 0]);
    let short = failed(0, MalformedReply::ShortBody, 27 + fields.len());
    for (parts, expected) in [
        (vec![head(1, END, OK)], vec![reply(0, 200, 10, 0)]),
        (
            vec![head(3, END, OK), missing],
            vec![reply(1, 200, 10, 0), reply(0, 404, 10, 0)],
        ),
        (
            vec![of_5(), data(1, END, 5)],
            vec![reply(0, 200, bytes_of_5, 14)],
        ),
        // DATA of two streams in turns, an empty frame among them, no length stated.
        (
            vec![
                head(1, 0, OK),
                head(3, 0, OK),
                data(1, 0, 3),
                data(3, 0, 100),
                data(1, 0, 0),
                data(1, END, 2),
                data(3, END, 0),
            ],
            vec![reply(0, 200, 10, 32), reply(1, 200, 10, 118)],
        ),
        // Padding counts as bytes of the body, and not as its content.
        (
            vec![
                of_5(),
                raw(Kind::Data, PADDED, 1, &[4, b'x', b'x', 0, 0, 0, 0]),
                raw(Kind::Data, PADDED | END, 1, &[0, b'x', b'x', b'x']),
                head(3, 0, OK),
                raw(Kind::Data, PADDED | END, 3, &[0]),
            ],
            vec![reply(0, 200, bytes_of_5, 16 + 13), reply(1, 200, 10, 10)],
        ),
        // A padded head with priority.
        (vec![prioritized], vec![reply(0, 200, 18, 0)]),
        // Trailers belong to the body.
        (
            vec![of_5(), data(1, 0, 5), checksum],
            vec![reply(0, 200, bytes_of_5, with_checksum)],
        ),
        // A field block in three frames, the last one empty.
        (
            vec![
                raw(Kind::Headers, END, 1, &fields[..4]),
                raw(Kind::Continuation, 0, 1, &fields[4..]),
                raw(Kind::Continuation, WHOLE, 1, &[]),
            ],
            vec![short],
        ),
        (
            vec![
                raw(Kind::Headers, END, 1, &[]),
                raw(Kind::Continuation, WHOLE, 1, &block(OK)),
            ],
            vec![reply(0, 200, 19, 0)],
        ),
    ] {
        assert_eq!(events(&two_gets(), &parts), expected, "{parts:x?}");
    }
}

#[test]
fn interim_replies_come_before_the_final_one() {
    let interim = head(1, 0, &[(":status", "103"), ("link", "x")]);
    let last = head(1, END, &[(":status", "503"), ("retry-after", "1")]);
    let two = [interim.clone(), interim.clone()];
    let found = events(&two_gets(), &[&two[..], from_ref(&last)].concat());
    let reply = Reply {
        retry_after: true,
        interim: 2,
        ..plain(503, 2 * interim.len() + last.len(), 0)
    };
    assert_eq!(found, [Event::Reply { place: 0, reply }]);

    let mut how = two_gets();
    how.limits.interim_replies = 1;
    let found = events(&how, &two);
    let bytes = 2 * interim.len();
    assert_eq!(found, [failed(0, MalformedReply::BadInterim, bytes)]);
}

#[test]
fn replies_without_a_body() {
    let sized = |status| head(1, END, &[(":status", status), ("content-length", "5")]);
    let with_data = |status| [head(1, 0, &[(":status", status)]), data(1, END, 1)];
    for (method, status) in [("HEAD", "200"), ("GET", "204"), ("GET", "304")] {
        let mut how = two_gets();
        how.template = request(method, "/", b"");
        let expected = reply(0, status.parse().unwrap(), sized(status).len(), 0);
        assert_eq!(events(&how, &[sized(status)]), [expected]);
        let found = events(&how, &with_data(status));
        let head_bytes = with_data(status)[0].len();
        assert_eq!(found, [failed(0, MalformedReply::LongBody, head_bytes + 9)]);
    }
}

/// A call of gRPC says at its very end whether it succeeded.
#[test]
fn calls_succeed_by_their_last_field_block() {
    use FailedCall::{Code, NoStatus};
    let ok = || head(1, 0, OK);
    let grpc = |status| head(1, END, &[("grpc-status", status)]);
    let other = head(1, END, &[("a", "b")]);
    let at_once = |flags, status| head(1, flags, &[(":status", "200"), ("grpc-status", status)]);
    for (parts, failed) in [
        (vec![ok(), grpc("0")], None),
        (vec![ok(), data(1, 0, 7), grpc("0")], None),
        (vec![ok(), data(1, 0, 7), grpc("13")], Some(Code(13))),
        (vec![ok(), data(1, 0, 7), other], Some(NoStatus)),
        (vec![at_once(END, "0")], None),
        (vec![at_once(END, "12")], Some(Code(12))),
        (vec![head(1, END, OK)], Some(NoStatus)),
        (vec![ok(), data(1, END, 7)], Some(NoStatus)),
        // Nothing but a head that ends the stream stands for trailers.
        (vec![at_once(0, "0"), data(1, END, 7)], Some(NoStatus)),
        (vec![at_once(0, "0"), head(1, END, &[])], Some(NoStatus)),
        (vec![at_once(0, "12"), grpc("0")], None),
        // The status of HTTP says so itself.
        (vec![head(1, END, &[(":status", "503")])], None),
    ] {
        let call = Template::new(&Request {
            method: "POST",
            headers: &owned(&[("content-type", "application/grpc")]),
            ..PLAIN
        });
        for (template, failed) in [(call.unwrap(), failed), (get("/"), None)] {
            let mut how = two_gets();
            how.template = template;
            let outcome = talk_every_cut(&wire(&parts), &how);
            let [Event::Ready, Event::Reply { reply, .. }] = outcome.events[..] else {
                panic!("{parts:x?}: {outcome:?}");
            };
            assert_eq!(reply.failed_call, failed, "{parts:x?}");
        }
    }
}

#[test]
fn malformed_replies_fail_their_stream_alone() {
    use MalformedReply::{BadContentLength, BadInterim, Head, LongBody, ShortBody};
    let status = |flags, status| head(1, flags, &[(":status", status)]);
    let length = |flags, length| head(1, flags, &[(":status", "200"), ("content-length", length)]);
    let five = || length(0, "5");
    for (parts, why) in [
        (vec![head(1, END, &[("a", "b")])], Head),
        (vec![head(1, 0, &[("a", "b")])], Head),
        (vec![data(1, 0, 3)], Head),
        (vec![data(1, 0, 0)], Head),
        (vec![status(0, "200"), head(1, 0, &[("a", "b")])], Head),
        (vec![status(0, "200"), status(END, "200")], Head),
        (vec![status(0, "100"), data(1, END, 3)], Head),
        (vec![length(END, "5")], ShortBody),
        (vec![length(0, "5"), data(1, END, 4)], ShortBody),
        (vec![length(0, "5"), data(1, 0, 6)], LongBody),
        (vec![five(), data(1, 0, 4), data(1, END, 2)], LongBody),
        (vec![five(), data(1, 0, 4), head(1, END, &[])], ShortBody),
        (vec![status(END, "103")], BadInterim),
        (vec![status(0, "101")], BadInterim),
        (vec![length(0, "x")], BadContentLength),
    ] {
        let last = &parts[parts.len() - 1];
        // DATA that may not come fails the stream by its header, unless it ends too early.
        let is_header = last[3] == Kind::Data.number() && why != ShortBody;
        let left_bytes = if is_header { last.len() - 9 } else { 0 };
        let discarded_bytes = parts.concat().len() - left_bytes;
        let outcome = talk_every_cut(&wire(&[parts.concat(), head(3, END, OK)]), &two_gets());
        let failed = failed(0, why, discarded_bytes);
        assert_eq!(outcome.ending, Ok(()), "{parts:x?}");
        let expected = [Event::Ready, failed, reply(1, 200, 10, 0)];
        assert_eq!(outcome.events, expected, "{parts:x?}");
        // What the server has ended needs no end.
        let reset = rst(1, ErrorCode::ProtocolError);
        let is_ended = last[4] & END != 0;
        assert_eq!(outcome.sent.ends_with(&reset), !is_ended, "{parts:x?}");
    }
}

#[test]
fn faults_of_the_connection() {
    use ConnectionError::{Compression, FlowControl, FrameSize, HeadTooLarge, NotHttp2, Protocol};
    let too_long = vec![0; frame::PAYLOAD_BYTES as usize + 1];
    let protocol = |violation| Protocol(violation);
    let idle = protocol(Violation::IdleStream);
    let wrong = protocol(Violation::WrongStream);
    let continuation = protocol(Violation::Continuation);
    let (padding, setting) = (protocol(Violation::Padding), protocol(Violation::Setting));
    let open = raw(Kind::Headers, 0, 1, &[]);
    let behind = |part: Vec<u8>| [&open[..], &part].concat();
    let large = frame::WINDOW_BYTES_MAX;
    let one = |flags, payload: &[u8]| raw(Kind::Headers, WHOLE | flags, 1, payload);
    let promise = raw(Kind::PushPromise, WHOLE, 1, &[0, 0, 0, 2, 0x88]);
    let window_max = [
        window(1, large - 65_535),
        settings(&[Setting::InitialWindowSize(65_536)]),
    ];
    let later_go_away = [1, 3].map(|last| go_away(last, ErrorCode::NoError));
    let truncated = Compression(HpackError::Coding(CodingError::Truncated));
    let first_fields = raw(Kind::Headers, 0, 1, &[0x88; 60]);
    let more_fields = raw(Kind::Continuation, 0, 1, &[0x88; 41]);
    for (part, error) in [
        (head(5, END, OK), idle),
        (head(2, END, OK), idle),
        (data(5, 0, 1), idle),
        (rst(5, ErrorCode::Cancel), idle),
        (window(5, 1), idle),
        (head(0, END, OK), wrong),
        (data(0, 0, 1), wrong),
        (rst(0, ErrorCode::Cancel), wrong),
        (raw(Kind::Settings, 0, 1, &[]), wrong),
        (raw(Kind::Ping, 0, 1, &[0; 8]), wrong),
        (raw(Kind::GoAway, 0, 1, &[0; 8]), wrong),
        (raw(Kind::Continuation, WHOLE, 1, &block(OK)), continuation),
        (behind(data(1, 0, 0)), continuation),
        (behind(settings(&[])), continuation),
        (behind(head(1, 0, OK)), continuation),
        (behind(raw(Kind::Continuation, 0, 3, &[])), continuation),
        (behind(raw(Kind::Other(99), 0, 1, &[])), continuation),
        (promise, protocol(Violation::Push)),
        (raw(Kind::Data, PADDED, 1, &[1]), padding),
        (raw(Kind::Headers, WHOLE | PADDED, 1, &[2, 0x88]), padding),
        (raw(Kind::Data, PADDED, 1, &[]), FrameSize),
        (raw(Kind::Headers, WHOLE | PADDED, 1, &[]), FrameSize),
        (one(flags::PRIORITY, &[0x88]), FrameSize),
        (raw(Kind::Data, 0, 1, &too_long), FrameSize),
        (raw(Kind::Other(99), 0, 1, &too_long), FrameSize),
        (raw(Kind::RstStream, 0, 1, &[0; 3]), FrameSize),
        (raw(Kind::Ping, 0, 0, &[0; 7]), FrameSize),
        (raw(Kind::GoAway, 0, 0, &[0; 7]), FrameSize),
        (raw(Kind::WindowUpdate, 0, 0, &[0; 5]), FrameSize),
        (raw(Kind::Settings, 0, 0, &[0; 5]), FrameSize),
        (raw(Kind::Settings, flags::ACK, 0, &[0; 6]), FrameSize),
        (settings(&[Setting::EnablePush(1)]), setting),
        (settings(&[Setting::EnablePush(2)]), setting),
        (settings(&[Setting::MaxFrameSize(16_383)]), setting),
        (settings(&[Setting::MaxFrameSize(1 << 24)]), setting),
        (
            settings(&[Setting::InitialWindowSize(1 << 31)]),
            FlowControl,
        ),
        (window(0, 0), protocol(Violation::Window)),
        (window(0, large), FlowControl),
        (window_max.concat(), FlowControl),
        (later_go_away.concat(), protocol(Violation::GoAway)),
        (one(0, &[0xbe]), Compression(HpackError::Index)),
        (one(0, &[0x88, 0x20]), Compression(HpackError::TableSize)),
        ([head(1, END, OK), one(0, &[0x40])].concat(), truncated),
        ([first_fields, more_fields].concat(), HeadTooLarge),
        (raw(Kind::Headers, WHOLE, 1, &[0x88; 101]), HeadTooLarge),
    ] {
        let mut how = two_gets();
        how.limits.head_bytes = 100;
        let wire = wire(from_ref(&part));
        let outcome = if wire.len() < 1_000 {
            talk_every_cut(&wire, &how)
        } else {
            talk([&wire[..]], &how)
        };
        let begins = &part[..part.len().min(60)];
        assert_eq!(outcome.ending, Err(error), "{begins:x?}");
        assert!(outcome.sent.ends_with(&go_away(0, error.code())));
    }
    for wire in [
        &b"HTTP/1.1 400 Bad Request\r\n\r\n"[..],
        &raw(Kind::Settings, flags::ACK, 0, &[]),
        &raw(Kind::Ping, 0, 0, &[0; 8]),
        &go_away(0, ErrorCode::NoError),
    ] {
        let outcome = talk_every_cut(wire, &two_gets());
        assert_eq!((outcome.ending, outcome.sent), (Err(NotHttp2), vec![]));
    }
}

#[test]
fn an_error_stays() {
    let (template, limits) = (get("/"), Limits::default());
    let mut client = Client::new(1, ClientSettings::default());
    let (mut known, mut out) = (KnownHead::default(), Vec::new());
    let mut receive = |bytes: &[u8]| {
        let received = client.receive(bytes, 0, from_ref(&template), &limits, &mut known, &mut out);
        let left = (client.pending_bytes(), out.len(), client.depth());
        (received.map(|_| ()), left)
    };
    let error = Err(ConnectionError::FrameSize);
    let bad = raw(Kind::Settings, 0, 0, &[0; 5]);
    assert_eq!(
        receive(&[&bad[..], &[1, 2, 3]].concat()),
        (error, (3, 17, 0))
    );
    assert_eq!(receive(&[1, 2]), (error, (5, 17, 0)));
    assert_eq!(receive(&[]), (error, (5, 17, 0)));
}

#[test]
fn frames_that_belong_to_no_reply_are_overhead() {
    let other = Setting::Other { id: 99, value: 1 };
    let others = [
        raw(Kind::Priority, 0, 1, &[0; 5]),
        raw(Kind::Other(0x0a), 0xff, 0, &[1, 2, 3]),
        raw(Kind::Ping, flags::ACK, 0, &[0; 8]),
        raw(Kind::Settings, flags::ACK, 0, &[]),
        settings(&[other, Setting::MaxHeaderListSize(1)]),
        window(0, 5),
        window(1, 5),
    ]
    .concat();
    let parts = [others.clone(), head(1, END, OK), window(1, 0)];
    let outcome = talk_every_cut(&wire(&parts), &two_gets());
    assert_eq!(outcome.events, [Event::Ready, reply(0, 200, 10, 0)]);
    assert_eq!(outcome.overhead_bytes as usize, 9 + others.len() + 13);
}

#[test]
fn settings_and_pings_are_answered() {
    let ping = raw(Kind::Ping, 0, 0, b"12345678");
    let mut how = two_gets();
    how.requests = 0;
    let outcome = talk_every_cut(&wire(&[ping, settings(&[])]), &how);
    let ack = raw(Kind::Settings, flags::ACK, 0, &[]);
    let pong = raw(Kind::Ping, flags::ACK, 0, b"12345678");
    assert_eq!(outcome.sent, [ack.clone(), pong, ack].concat());
}

#[test]
fn resets_have_their_code() {
    let ok = head(1, 0, OK);
    for code in (0..=14).map(ErrorCode::of) {
        let found = events(&two_gets(), &[ok.clone(), data(1, 0, 4), rst(1, code)]);
        assert_eq!(found, [failed(0, StreamFailure::Reset(code), 10 + 13 + 13)]);
    }
    // What comes later belongs to no stream; its field block is decoded all the same.
    let insert = raw(Kind::Headers, WHOLE | END, 1, &[0x48, 3, b'3', b'0', b'1']);
    let refer = raw(Kind::Headers, WHOLE | END, 3, &[0xbe]);
    let refused = StreamFailure::Reset(ErrorCode::RefusedStream);
    let [first, second] = [ErrorCode::RefusedStream, ErrorCode::Cancel].map(|code| rst(1, code));
    let parts = [first, insert, data(1, 0, 5), second, refer];
    let expected = [failed(0, refused, 13), reply(1, 301, 10, 0)];
    assert_eq!(events(&two_gets(), &parts), expected);
}

#[test]
fn a_graceful_end_lets_streams_finish() {
    let mut how = two_gets();
    (how.depth, how.requests) = (4, 4);
    let not_processed = |place| failed(place, StreamFailure::NotProcessed, 0);
    let code = ErrorCode::NoError;
    let parts = [
        go_away(frame::STREAM_MAX, code),
        head(3, END, OK),
        go_away(3, code),
        head(1, END, OK),
        go_away(1, code),
    ];
    let expected = [
        Event::GoAway { code: Some(code) },
        reply(1, 200, 10, 0),
        not_processed(2),
        not_processed(3),
        reply(0, 200, 10, 0),
    ];
    assert_eq!(events(&how, &parts), expected);

    let code = ErrorCode::EnhanceYourCalm;
    let found = events(&how, &[go_away(0, code)]);
    assert_eq!(found[0], Event::GoAway { code: Some(code) });
    assert_eq!(found[1..], [0, 1, 2, 3].map(not_processed));
}

/// A connection on which the first SETTINGS are in.
struct Open {
    client: Client,
    template: Template,
    known: KnownHead,
    out: Vec<u8>,
}

impl Open {
    fn new(depth: u32, template: Template, first: &[Setting]) -> Self {
        Self::with(depth, template, first, ClientSettings::default())
    }

    fn with(
        depth: u32,
        template: Template,
        first: &[Setting],
        settings_of_client: ClientSettings,
    ) -> Self {
        let mut open = Self {
            client: Client::new(depth, settings_of_client),
            template,
            known: KnownHead::default(),
            out: Vec::new(),
        };
        assert_eq!(open.receive(&settings(first)), [Event::Ready]);
        open.client.take_overhead();
        open.out.clear();
        open
    }

    fn receive(&mut self, bytes: &[u8]) -> Vec<Event> {
        self.receive_at(bytes, 0)
    }

    fn receive_at(&mut self, bytes: &[u8], now_ns: u64) -> Vec<Event> {
        let mut events = Vec::new();
        let mut rest = bytes;
        loop {
            let (limits, template) = (Limits::default(), from_ref(&self.template));
            let (known, out) = (&mut self.known, &mut self.out);
            let progress = self
                .client
                .receive(rest, now_ns, template, &limits, known, out);
            let progress = progress.unwrap();
            rest = &rest[progress.consumed..];
            match progress.event {
                Some(event) => events.push(event),
                None => return events,
            }
        }
    }

    fn request(&mut self) -> u32 {
        let template = from_ref(&self.template);
        self.client.request(template, 0, &mut self.out)
    }

    /// What was sent since this was last asked: kind, flags, stream and length of each frame.
    fn sent(&mut self) -> Vec<(Kind, u8, u32, u32)> {
        let out = std::mem::take(&mut self.out);
        let mut frames = Vec::new();
        let mut rest = &out[..];
        while let Some(header) = rest.first_chunk() {
            let header = FrameHeader::read(header);
            frames.push((header.kind, header.flags, header.stream, header.length));
            rest = &rest[frame::HEADER_BYTES + header.length as usize..];
        }
        frames
    }

    /// Bytes of DATA per stream, of what was sent since this was last asked, and whether the
    /// stream was ended.
    fn sent_data(&mut self) -> Vec<(u32, u32, bool)> {
        let mut sums: Vec<(u32, u32, bool)> = Vec::new();
        for (kind, flags, stream, length) in self.sent() {
            if kind == Kind::Data {
                assert!(length <= frame::PAYLOAD_BYTES);
                match sums.iter_mut().find(|sum| sum.0 == stream) {
                    Some(sum) => *sum = (stream, sum.1 + length, flags & END != 0),
                    None => sums.push((stream, length, flags & END != 0)),
                }
            }
        }
        sums
    }
}

#[test]
fn a_connection_opens_with_large_windows_and_without_push() {
    let mut client = Client::new(1, ClientSettings::default());
    let mut out = Vec::new();
    client.open(&mut out);
    let rest = out.strip_prefix(frame::PREFACE).unwrap();
    let of_streams = Setting::InitialWindowSize((1 << 30) - 1);
    let of_connection = window(0, (1 << 30) - 1 - 65_535);
    let first = settings(&[Setting::EnablePush(0), of_streams]);
    assert_eq!(rest, [first, of_connection].concat());
    assert!(!client.is_ready());
    assert_eq!((client.depth(), client.in_flight()), (0, 0));
    assert_eq!(client.peer_streams_max(), None);
}

#[test]
fn the_servers_setting_bounds_the_depth() {
    let streams_max = Setting::MaxConcurrentStreams;
    let mut open = Open::new(3, get("/"), &[]);
    let found = (open.client.depth(), open.client.peer_streams_max());
    assert_eq!(found, (3, None));
    for (setting, depth) in [(100, 3), (2, 2), (0, 0), (u32::MAX, 3)] {
        assert!(open.receive(&settings(&[streams_max(setting)])).is_empty());
        let found = (open.client.depth(), open.client.peer_streams_max());
        assert_eq!(found, (depth, Some(setting)));
    }
    open.request();
    assert_eq!(open.client.in_flight(), 1);
    let code = ErrorCode::NoError;
    let event = Event::GoAway { code: Some(code) };
    assert_eq!(open.receive(&go_away(1, code)), [event]);
    assert_eq!((open.client.depth(), open.client.in_flight()), (0, 1));
}

#[test]
fn stream_identifiers_are_used_up() {
    let mut open = Open::new(1, get("/"), &[]);
    open.client.next_stream = frame::STREAM_MAX;
    assert_eq!(open.client.depth(), 1);
    open.request();
    assert_eq!(open.sent()[0].2, frame::STREAM_MAX);
    let last = head(frame::STREAM_MAX, END, OK);
    assert_eq!(open.receive(&last).len(), 1);
    assert_eq!((open.client.depth(), open.client.in_flight()), (0, 0));
}

#[test]
fn the_first_byte_is_that_of_the_first_frame() {
    let interim = head(1, 0, &[(":status", "100")]);
    let last = head(1, END, OK);
    let wire = [interim, last].concat();
    for cut in 1..wire.len() {
        let mut open = Open::new(1, get("/"), &[]);
        open.request();
        assert!(open.receive_at(&wire[..cut], 5).is_empty());
        let events = open.receive_at(&wire[cut..], 9);
        let [Event::Reply { reply, .. }] = events[..] else {
            panic!("{events:?}");
        };
        assert_eq!(reply.first_byte_ns, 5, "cut at {cut}");
    }
    // Also where CONTINUATION brings the end.
    let mut open = Open::new(1, get("/"), &[]);
    open.request();
    open.receive_at(&raw(Kind::Headers, END, 1, &[]), 6);
    let events = open.receive_at(&raw(Kind::Continuation, WHOLE, 1, &[0x88]), 8);
    assert!(matches!(events[..], [Event::Reply { reply, .. }] if reply.first_byte_ns == 6));
}

#[test]
fn a_cancelled_stream_is_reset_and_its_late_frames_are_overhead() {
    let mut open = Open::new(1, get("/"), &[]);
    let place = open.request();
    open.sent();
    let frames = [head(1, 0, OK), data(1, END, 100)].concat();
    // Cut inside of DATA, of which the header came.
    assert!(open.receive(&frames[..30]).is_empty());
    assert_eq!(open.client.pending_bytes(), 30);
    assert_eq!(open.client.cancel(place, &mut open.out), 30);
    assert_eq!(open.sent(), [(Kind::RstStream, 0, 1, 4)]);
    assert_eq!(open.client.cancel(place, &mut open.out), 0);
    assert!(open.receive(&frames[30..]).is_empty());
    assert_eq!(open.client.take_overhead() as usize, frames.len() - 30);
    assert_eq!(open.client.pending_bytes(), 0);
    assert_eq!(open.client.in_flight(), 0);

    // Cut inside of a head.
    let place = open.request();
    let head = head(3, END, OK);
    open.receive(&head[..9]);
    assert_eq!(open.client.cancel(place, &mut open.out), 0);
    assert_eq!(open.client.pending_bytes(), 9);
    open.receive(&head[9..]);
    assert_eq!(open.client.take_overhead(), 10);
    assert_eq!(open.client.pending_bytes(), 0);
}

#[test]
fn a_client_says_what_its_settings_are() {
    let default = ClientSettings::default();
    for (settings_of_client, sent, increment) in [
        (
            ClientSettings {
                stream_window_bytes: (1 << 20) - 1,
                connection_window_bytes: 65_536,
                ..default
            },
            &[Setting::InitialWindowSize((1 << 20) - 1)][..],
            Some(1),
        ),
        (
            ClientSettings {
                stream_window_bytes: 0,
                connection_window_bytes: 1_023,
                frame_bytes_max: 32_768,
                decoder_table_bytes: 0,
                encoder_table_bytes: 0,
            },
            &[
                Setting::InitialWindowSize(0),
                Setting::HeaderTableSize(0),
                Setting::MaxFrameSize(32_768),
            ],
            None,
        ),
    ] {
        let mut out = Vec::new();
        Client::new(1, settings_of_client).open(&mut out);
        let rest = out.strip_prefix(frame::PREFACE).unwrap();
        let sent = [&[Setting::EnablePush(0)], sent].concat();
        let increment = increment.map(|bytes| window(0, bytes));
        let expected = [settings(&sent), increment.unwrap_or_default()];
        assert_eq!(rest, expected.concat());
    }
}

#[test]
fn small_windows_are_kept_and_opened_when_half_is_used() {
    let small = ClientSettings {
        stream_window_bytes: 1_000,
        connection_window_bytes: 10_000,
        frame_bytes_max: 20_000,
        ..ClientSettings::default()
    };
    let update = |stream| (Kind::WindowUpdate, 0, stream, 4);
    let mut open = Open::with(200, get("/"), &[], small);
    for _ in 0..4 {
        open.request();
    }
    for stream in [1, 3, 5, 7] {
        open.receive(&head(stream, 0, OK));
    }
    open.sent();
    open.receive(&data(1, 0, 499));
    assert_eq!(open.sent(), []);
    open.receive(&data(1, 0, 1));
    assert_eq!(open.sent(), [update(1)]);
    // Every connection begins with 65,535 bytes, of which 500 are used: the server is told nothing
    // before no more than half of its own window is left.
    for _ in 0..60 {
        open.receive(&data(1, 0, 1_000));
        assert_eq!(open.sent(), [update(1)]);
    }
    open.receive(&data(1, 0, 35));
    assert_eq!(open.sent(), [update(0)]);
    // Late frames use the connection's window too.
    open.client.cancel(0, &mut open.out);
    open.sent();
    for _ in 0..5 {
        assert_eq!(open.sent(), []);
        open.receive(&data(1, 0, 1_000));
    }
    assert_eq!(open.sent(), [update(0)]);
    // What is over a window breaks the connection.
    let mut client = open.client;
    let (mut known, mut out) = (KnownHead::default(), Vec::new());
    let (wire, template, limits) = (data(3, 0, 1_001), get("/"), Limits::default());
    let outcome = client.receive(&wire, 0, from_ref(&template), &limits, &mut known, &mut out);
    assert_eq!(outcome.err(), Some(ConnectionError::FlowControl));

    // Frames may be as long as was said.
    let wide = ClientSettings {
        frame_bytes_max: 20_000,
        ..ClientSettings::default()
    };
    let mut open = Open::with(1, get("/"), &[], wide);
    open.request();
    open.receive(&head(1, 0, OK));
    let events = open.receive(&data(1, END, 20_000));
    assert!(matches!(events[..], [Event::Reply { .. }]), "{events:?}");
}

#[test]
fn bodies_wait_for_the_windows() {
    let body = vec![b'x'; 100_000];
    let first = [Setting::InitialWindowSize(40_000)];
    let mut open = Open::new(3, request("POST", "/", &body), &first);
    // The streams' windows first, then the connection's.
    for _ in 0..3 {
        open.request();
    }
    assert_eq!(open.sent_data(), [(1, 40_000, false), (3, 25_535, false)]);
    assert!(!open.client.wants_resume());
    open.receive(&window(0, 10_000));
    assert_eq!(open.sent_data(), [(3, 10_000, false)]);
    open.receive(&window(1, 60_000));
    assert_eq!(open.sent_data(), []);
    open.receive(&window(0, 200_000));
    let expected = [(3, 4_465, false), (5, 40_000, false), (1, 60_000, true)];
    assert_eq!(open.sent_data(), expected);
    // A lower setting makes windows negative, and a higher one opens all.
    open.receive(&settings(&[Setting::InitialWindowSize(10_000)]));
    open.receive(&window(5, 29_999));
    open.receive(&window(3, 30_001));
    assert_eq!(open.sent_data(), [(3, 1, false)]);
    open.receive(&settings(&[Setting::InitialWindowSize(30_000)]));
    assert_eq!(open.sent_data(), [(3, 20_000, false), (5, 19_999, false)]);
    // A reply may come before all of the body was sent: the rest is not needed.
    let early = head(3, END, &[(":status", "413")]);
    let reply = Reply {
        first_byte_ns: 0,
        ..plain(413, early.len(), 0)
    };
    assert_eq!(open.receive(&early), [Event::Reply { place: 1, reply }]);
    assert_eq!(open.sent(), [(Kind::RstStream, 0, 3, 4)]);
    open.receive(&window(5, 100_000));
    assert_eq!(open.sent_data(), [(5, 40_001, true)]);
    // The first two are done: what comes for the third goes on as usual.
    open.receive(&head(1, END, OK));
    assert_eq!(open.sent(), []);
    assert_eq!(open.client.in_flight(), 1);
}

#[test]
fn a_wrong_window_fails_its_stream() {
    for (bytes, code) in [
        (0, ErrorCode::ProtocolError),
        (frame::WINDOW_BYTES_MAX, ErrorCode::FlowControlError),
    ] {
        let outcome = talk_every_cut(&wire(&[window(1, bytes)]), &two_gets());
        let failed = failed(0, StreamFailure::Window, 0);
        assert_eq!(outcome.events, [Event::Ready, failed]);
        assert!(outcome.sent.ends_with(&rst(1, code)));
    }
}

/// However far the windows are open, the caller's buffer stays small.
#[test]
fn bodies_are_held_back_while_the_callers_buffer_is_full() {
    let body = vec![b'x'; 1_000_000];
    let wide = [Setting::InitialWindowSize(frame::WINDOW_BYTES_MAX)];
    let mut open = Open::new(2, request("PUT", "/", &body), &wide);
    open.receive(&window(0, frame::WINDOW_BYTES_MAX - 65_535));
    open.request();
    open.request();
    let mut sums = [0; 2];
    let mut rounds = 0;
    loop {
        assert!(open.out.len() < 150_000);
        let wants_resume = open.client.wants_resume();
        for (stream, bytes, _) in open.sent_data() {
            sums[stream as usize / 2] += bytes;
        }
        if !wants_resume {
            break;
        }
        let Open {
            client,
            template,
            out,
            ..
        } = &mut open;
        client.resume(from_ref(template), out);
        rounds += 1;
    }
    assert_eq!(sums, [1_000_000; 2]);
    assert!((14..18).contains(&rounds));
}

#[test]
fn heads_refer_to_the_servers_table_once_it_is_filled() {
    let mut open = Open::new(9, get("/path"), &[]);
    let lengths = |open: &mut Open| {
        open.request();
        open.sent().iter().map(|frame| frame.3).collect::<Vec<_>>()
    };
    let (inserting, indexed) = (lengths(&mut open), lengths(&mut open));
    assert_eq!(indexed, [4]);
    assert!(inserting[0] > 4);
    assert_eq!(lengths(&mut open), indexed);
    // A table without room: the size's change comes first, one byte.
    open.receive(&settings(&[Setting::HeaderTableSize(0)]));
    open.sent();
    let stateless = lengths(&mut open)[0] - 1;
    assert_eq!(lengths(&mut open), [stateless]);
    // There is room again: 4,096 takes three bytes.
    open.receive(&settings(&[Setting::HeaderTableSize(9_000)]));
    open.sent();
    assert_eq!(lengths(&mut open), [inserting[0] + 3]);
    assert_eq!(lengths(&mut open), indexed);
}

#[test]
#[should_panic(expected = "more streams than are allowed")]
fn the_depth_is_a_promise() {
    let mut open = Open::new(1, get("/"), &[]);
    open.request();
    open.request();
}

/// A frame of a reply that a random server sends.
#[derive(Clone, Debug)]
struct RandomReply {
    status: u16,
    interim: usize,
    other_fields: Vec<(String, String)>,
    is_inserted: bool,
    tells_length: bool,
    /// Content and padding of each DATA frame.
    pieces: Vec<(usize, Option<u8>)>,
    has_trailers: bool,
    /// Bytes of the head in its first frame, where there are several.
    head_cut: Option<Index>,
}

prop_compose! {
    fn random_reply()(
        status in prop_oneof![
            Just(200_u16), Just(404), Just(503), 200..204_u16, 205..304_u16, 305..=999_u16
        ],
        interim in 0..3_usize,
        other_fields in prop::collection::vec(("[a-z]{1,9}-x", "[!-~]{0,40}"), 0..4),
        is_inserted: bool,
        tells_length: bool,
        pieces in prop::collection::vec((0..300_usize, prop::option::of(0..40_u8)), 0..5),
        has_trailers: bool,
        head_cut: Option<Index>,
    ) -> RandomReply {
        RandomReply {
            status,
            interim,
            other_fields,
            is_inserted,
            tells_length,
            pieces,
            has_trailers,
            head_cut,
        }
    }
}

impl RandomReply {
    /// Its frames, those of one field block together, and the event that must follow.
    fn frames(&self, place: u32) -> (Vec<Vec<u8>>, Event) {
        let stream = 2 * place + 1;
        let mut frames = Vec::new();
        for _ in 0..self.interim {
            frames.push(head(stream, 0, &[(":status", "103")]));
        }
        let indexing = [Indexing::Without, Indexing::Insert][usize::from(self.is_inserted)];
        let mut block = Vec::new();
        let mut put = |name: &str, value: &str| {
            encode_field(&mut block, name.as_bytes(), value.as_bytes(), indexing);
        };
        put(":status", &self.status.to_string());
        if self.tells_length {
            let length: usize = self.pieces.iter().map(|piece| piece.0).sum();
            put("content-length", &length.to_string());
        }
        for (name, value) in &self.other_fields {
            put(name, value);
        }
        let ends_by_head = self.pieces.is_empty() && !self.has_trailers;
        let end = if ends_by_head { END } else { 0 };
        frames.push(match &self.head_cut {
            None => raw(Kind::Headers, WHOLE | end, stream, &block),
            Some(cut) => {
                let (first, last) = block.split_at(cut.index(block.len()));
                let first = raw(Kind::Headers, end, stream, first);
                [first, raw(Kind::Continuation, WHOLE, stream, last)].concat()
            }
        });
        let head_bytes = frames.iter().map(Vec::len).sum();
        let heads = frames.len();
        for (at, (content, padding)) in self.pieces.iter().enumerate() {
            let is_last = at + 1 == self.pieces.len() && !self.has_trailers;
            let end = if is_last { END } else { 0 };
            frames.push(match padding {
                None => data(stream, end, *content),
                Some(padding) => {
                    let mut payload = vec![*padding];
                    payload.resize(1 + content + usize::from(*padding), 0);
                    raw(Kind::Data, end | PADDED, stream, &payload)
                }
            });
        }
        if self.has_trailers {
            frames.push(head(stream, END, &[("x-checksum", "1")]));
        }
        let body_bytes = frames[heads..].iter().map(Vec::len).sum();
        let reply = Reply {
            interim: self.interim as u16,
            ..plain(self.status, head_bytes, body_bytes)
        };
        (frames, Event::Reply { place, reply })
    }
}

/// Frames of several replies, each reply's in their order, and the event of each reply; among them
/// frames about the connection.
fn exchange(replies: &[RandomReply], order: &[Index]) -> (Vec<u8>, Vec<Event>) {
    let mut queues: Vec<_> = (0..)
        .zip(replies)
        .map(|(place, reply)| {
            let (frames, event) = reply.frames(place);
            (frames.into_iter(), event)
        })
        .collect();
    let mut wire = settings(&[]);
    let mut events = vec![Event::Ready];
    let mut order = order.iter().cycle();
    while !queues.is_empty() {
        let choice = order.next().unwrap().index(queues.len() * 10);
        match choice {
            0 => wire.extend(raw(Kind::Ping, 0, 0, b"12345678")),
            1 => wire.extend(window(0, 1)),
            _ => {}
        }
        let which = choice % queues.len();
        match queues[which].0.next() {
            Some(frame) => wire.extend(frame),
            None => {
                queues.remove(which);
            }
        }
        // The event comes with the last frame.
        if let Some((frames, event)) = queues.get(which)
            && frames.len() == 0
            && !events.contains(event)
        {
            events.push(*event);
        }
    }
    (wire, events)
}

fn use_for(replies: &[RandomReply]) -> Use {
    Use {
        depth: replies.len() as u32,
        requests: replies.len() as u32,
        ..two_gets()
    }
}

proptest! {
    #[test]
    fn random_replies_are_understood(
        replies in prop::collection::vec(random_reply(), 1..6),
        order in prop::collection::vec(any::<Index>(), 10..40),
        cuts in prop::collection::vec(1..400_usize, 1..10),
    ) {
        let (wire, expected) = exchange(&replies, &order);
        let how = use_for(&replies);
        let whole = talk([&wire[..]], &how);
        prop_assert_eq!(whole.ending, Ok(()));
        prop_assert_eq!(&whole.events, &expected);
        let mut pieces = Vec::new();
        let mut rest = &wire[..];
        for cut in cuts.iter().cycle() {
            let (piece, later) = rest.split_at(rest.len().min(*cut));
            pieces.push(piece);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(talk(pieces, &how), whole);
    }

    /// Whatever comes, every byte is accounted for, and cuts change nothing.
    #[test]
    fn mutated_exchanges_are_survived(
        replies in prop::collection::vec(random_reply(), 1..4),
        order in prop::collection::vec(any::<Index>(), 10..40),
        changes in prop::collection::vec((any::<Index>(), any::<u8>(), 0..4_u8), 1..6),
        choice in any::<u8>(),
        limit in any::<u8>(),
    ) {
        let (mut wire, _) = exchange(&replies, &order);
        for (at, byte, how) in changes {
            let at = at.index(wire.len());
            match how {
                0 => wire[at] = byte,
                1 => wire[at] ^= 1 << (byte % 8),
                2 => wire.insert(at, byte),
                _ => {
                    if wire.len() > 1 {
                        wire.remove(at);
                    }
                }
            }
        }
        fuzz_http2(&[&[choice | 0x40, limit][..], &wire].concat());
    }

    #[test]
    fn random_frames_are_survived(
        frames in prop::collection::vec(
            (0..11_u8, any::<u8>(), 0..8_u32, prop::collection::vec(any::<u8>(), 0..20)),
            0..20,
        ),
        choice in any::<u8>(),
    ) {
        let mut input = vec![choice & 0x3f, 255];
        for (kind, flags, stream, payload) in frames {
            input.extend(raw(Kind::of(kind), flags, stream, &payload));
        }
        fuzz_http2(&input);
    }
}

#[test]
fn endless_continuation_ends() {
    let mut frames = vec![raw(Kind::Headers, 0, 1, &[])];
    let piece = raw(Kind::Continuation, 0, 1, &[0x88; 10_000]);
    frames.extend(std::iter::repeat_n(piece, 7));
    let outcome = talk([&wire(&frames)[..]], &two_gets());
    assert_eq!(outcome.ending, Err(ConnectionError::HeadTooLarge));
}

#[test]
fn the_lowest_size_and_the_last_are_told() {
    // What the server allowed between two heads, and the sizes signalled in the second.
    for (allowed, signalled) in [
        (&[][..], &[][..]),
        (&[4_096], &[]),
        (&[65_536], &[]),
        (&[0], &[0]),
        (&[100], &[100]),
        (&[0, 4_096], &[0, 4_096]),
        (&[0, 100, 50], &[0, 50]),
        (&[200, 100, 9_999], &[100, 4_096]),
    ] {
        let template = get("/");
        let mut table = PeerTable::new(TABLE_BYTES);
        let mut first = Vec::new();
        table.write_head(&template, 1, &mut first);
        for bytes in allowed {
            table.allow(*bytes);
        }
        let mut second = Vec::new();
        table.write_head(&template, 3, &mut second);
        let mut expected = Vec::new();
        for bytes in signalled {
            encode_size_update(&mut expected, *bytes);
        }
        let lowest = signalled.iter().min().copied().unwrap_or(TABLE_BYTES);
        let last = signalled.last().copied().unwrap_or(TABLE_BYTES);
        let is_filled = lowest >= template.table_bytes();
        expected.extend_from_slice(&template.form(last, is_filled).0.block);
        assert_eq!(second[frame::HEADER_BYTES..], expected, "{allowed:?}");

        let mut third = Vec::new();
        table.write_head(&template, 5, &mut third);
        let form = template.form(last, last >= template.table_bytes()).0;
        assert_eq!(third[frame::HEADER_BYTES..], form.block, "{allowed:?}");
    }
}
