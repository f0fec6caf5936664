//! Tests of streams: messages and control streams cut at every byte, limits, random and mutated
//! ones.

use std::cell::RefCell;

use proptest::prelude::*;
use proptest::sample::Index;

use super::error::ReplyError;
use super::frame::Side;
use super::frame::{self, Kind};
use super::fuzz::{
    PeerOutcome, ReplyOutcome, RequestOutcome, fuzz_http3, read_peer, read_reply, read_request,
};
use super::message::ReplyReader;
use super::peer::{Peer, PeerEvent, PeerStream};
use super::qpack::{self, CodingError, QpackError};
use super::{
    ConnectionError, ErrorCode, FailedCall, KnownHead, MalformedReply, Reply, RequestPart,
    RequestReadError, RequestReader, Setting, StreamFailure,
};
use crate::test_support::{at_every_cut, hex, written};
use crate::{BodiesWanted, Limits};

fn head(fields: &[(&str, &str)]) -> Vec<u8> {
    let encode = |out: &mut Vec<u8>| {
        for (name, value) in fields {
            qpack::encode_field(out, name.as_bytes(), value.as_bytes(), false);
        }
    };
    written(|out| frame::write_head(out, encode))
}

/// A frame with this length in its header, whatever follows.
fn frame_of(kind: u64, payload_bytes: u64, payload: &[u8]) -> Vec<u8> {
    let header = written(|out| frame::write_header(out, Kind::of(kind), payload_bytes));
    [&header, payload].concat()
}

fn raw(kind: u64, payload: &[u8]) -> Vec<u8> {
    frame_of(kind, payload.len() as u64, payload)
}

fn data(bytes: usize) -> Vec<u8> {
    raw(0, &vec![b'x'; bytes])
}

/// A frame of a type that is reserved so that unknown ones are passed over (RFC 9114 section
/// 7.2.8).
fn unknown(bytes: usize) -> Vec<u8> {
    raw(0x1f * 1_000 + 0x21, &vec![b'u'; bytes])
}

const OK: &[(&str, &str)] = &[(":status", "200")];

/// Reads the wire whole, in two pieces at every cut and byte by byte; gives the common outcome.
fn reply_every_cut(wire: &[u8], is_head: bool, limits: &Limits) -> ReplyOutcome {
    let known = RefCell::new(KnownHead::default());
    let _ = at_every_cut(wire, |pieces| {
        let pieces = pieces.iter().copied();
        let found = read_reply(pieces, is_head, limits, &mut known.borrow_mut());
        (found.ending, found.body)
    });
    read_reply([wire], is_head, limits, &mut KnownHead::default())
}

fn ending(parts: &[Vec<u8>]) -> Result<Reply, ReplyError> {
    reply_every_cut(&parts.concat(), false, &Limits::default()).ending
}

fn reply(status: u16, head_bytes: usize, body_bytes: usize) -> Reply {
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

fn malformed(why: MalformedReply) -> Result<Reply, ReplyError> {
    Err(why.into())
}

fn broken(error: ConnectionError) -> Result<Reply, ReplyError> {
    Err(error.into())
}

#[test]
fn replies_are_counted() {
    let plain = || head(OK);
    let sized = || head(&[(":status", "404"), ("content-length", "5")]);
    let trailers = || head(&[("checksum", "x")]);
    let early = || head(&[(":status", "103"), ("link", "</x>")]);
    let ok = |body_bytes| reply(200, plain().len(), body_bytes);
    let of_sized = reply(404, sized().len(), 11);
    let third = Reply {
        interim: 2,
        ..reply(404, 2 * early().len() + sized().len(), 7)
    };
    for (parts, expected) in [
        (vec![plain()], ok(0)),
        (vec![plain(), data(0)], ok(2)),
        (vec![plain(), data(70)], ok(73)),
        (vec![sized(), data(2), data(0), data(3)], of_sized),
        (vec![plain(), data(1), trailers()], ok(3 + trailers().len())),
        (vec![plain(), trailers()], ok(trailers().len())),
        (vec![early(), early(), sized(), data(5)], third),
    ] {
        assert_eq!(ending(&parts), Ok(expected));
    }
    let later = head(&[(":status", "503"), ("retry-after", "1")]);
    let expected = Reply {
        retry_after: true,
        ..reply(503, later.len(), 0)
    };
    assert_eq!(ending(&[later]), Ok(expected));
}

/// Between all other frames, and behind the last.
#[test]
fn unknown_frames_are_passed_over() {
    let (plain, trailers) = (head(OK), head(&[]));
    let parts = [
        unknown(3),
        head(&[(":status", "100")]),
        unknown(0),
        plain.clone(),
        unknown(100),
        data(4),
        unknown(1),
        trailers.clone(),
        unknown(2),
    ];
    let outcome = reply_every_cut(&parts.concat(), false, &Limits::default());
    let expected = Reply {
        interim: 1,
        ..reply(200, parts[1].len() + plain.len(), 6 + trailers.len())
    };
    assert_eq!(outcome.ending, Ok(expected));
    let unknown_bytes: usize = parts.iter().step_by(2).map(Vec::len).sum();
    assert_eq!(outcome.overhead_bytes, unknown_bytes as u64);
}

#[test]
fn some_replies_have_no_body() {
    let limits = Limits::default();
    for (is_head, status) in [(true, "200"), (false, "204"), (false, "304")] {
        let sized = head(&[(":status", status), ("content-length", "5")]);
        let number = status.parse().unwrap();
        let whole = reply_every_cut(&sized, is_head, &limits);
        assert_eq!(whole.ending, Ok(reply(number, sized.len(), 0)));
        let empty = [&sized[..], &data(0)].concat();
        let whole = reply_every_cut(&empty, is_head, &limits);
        assert_eq!(whole.ending, Ok(reply(number, sized.len(), 2)));
        let wrong = [&sized[..], &data(5)].concat();
        let whole = reply_every_cut(&wrong, is_head, &limits);
        assert_eq!(whole.ending, malformed(MalformedReply::LongBody));
    }
}

#[test]
fn malformed_replies_fail_their_stream() {
    use MalformedReply::{BadContentLength, BadInterim, Head, LongBody, ShortBody};
    let sized = head(&[(":status", "200"), ("content-length", "5")]);
    let length_x = head(&[(":status", "200"), ("content-length", "x")]);
    let closing = head(&[(":status", "200"), ("connection", "close")]);
    for (parts, why) in [
        (vec![sized.clone()], ShortBody),
        (vec![sized.clone(), data(4)], ShortBody),
        (vec![sized.clone(), data(6)], LongBody),
        (vec![sized.clone(), data(5), data(1)], LongBody),
        (vec![sized.clone(), data(4), head(&[("a", "b")])], ShortBody),
        (vec![length_x], BadContentLength),
        (vec![head(&[])], Head),
        (vec![head(&[(":status", "20")])], Head),
        (vec![head(&[("a", "b"), (":status", "200")])], Head),
        (vec![closing], Head),
        (vec![head(&[(":status", "200"), ("Upper", "x")])], Head),
        (vec![head(OK), head(OK)], Head),
        (vec![head(&[(":status", "101")])], BadInterim),
        (vec![head(&[(":status", "100")]); 17], BadInterim),
    ] {
        assert_eq!(ending(&parts), malformed(why), "{parts:x?}");
    }
    for parts in [vec![], vec![unknown(5)], vec![head(&[(":status", "103")])]] {
        let expected = Err(StreamFailure::Incomplete.into());
        assert_eq!(ending(&parts), expected, "{parts:x?}");
    }
}

#[test]
fn what_breaks_the_protocol_ends_the_connection() {
    use ConnectionError::{Compression, FrameSize, FrameUnexpected, Push};
    let (plain, far) = (head(OK), raw(1, &[0, 0, 0xff, 0x24]));
    let truncated = QpackError::Coding(CodingError::Truncated);
    let mut cases = vec![
        (vec![data(1)], FrameUnexpected),
        (vec![head(&[(":status", "100")]), data(0)], FrameUnexpected),
        (vec![plain.clone(), head(&[]), data(0)], FrameUnexpected),
        (vec![plain.clone(), head(&[]), head(&[])], FrameUnexpected),
        (vec![raw(5, &[0])], Push),
        (vec![plain.clone(), raw(5, &[0])], Push),
        // Cut off inside a frame.
        (vec![plain[..1].to_vec()], FrameSize),
        (vec![plain[..plain.len() - 1].to_vec()], FrameSize),
        (vec![plain.clone(), data(5)[..3].to_vec()], FrameSize),
        (vec![plain.clone(), data(5)[..2].to_vec()], FrameSize),
        (vec![plain.clone(), unknown(5)[..4].to_vec()], FrameSize),
        (vec![plain.clone(), unknown(5)[..8].to_vec()], FrameSize),
        (vec![raw(1, &[])], Compression(truncated)),
        (vec![raw(1, &[2, 0])], Compression(QpackError::Dynamic)),
        (vec![plain.clone(), far], Compression(QpackError::Index)),
    ];
    // Frames of the control stream, and of HTTP/2.
    for kind in [2, 3, 4, 6, 7, 8, 9, 0xd] {
        cases.push((vec![raw(kind, &[0])], FrameUnexpected));
        cases.push((vec![plain.clone(), raw(kind, &[0])], FrameUnexpected));
    }
    for (parts, error) in cases {
        assert_eq!(ending(&parts), broken(error), "{parts:x?}");
    }
}

#[test]
fn limits_hold_before_anything_is_kept() {
    let limits = Limits {
        head_bytes: 100,
        header_fields: 2,
        ..Limits::default()
    };
    let too_large = malformed(MalformedReply::HeadTooLarge);
    // 101 bytes, and as many as a header can promise.
    for bytes in [101, 16_384, frame::VARINT_MAX] {
        let wire = frame_of(1, bytes, &[0; 50]);
        assert_eq!(reply_every_cut(&wire, false, &limits).ending, too_large);
        let wire = [&head(OK)[..], &wire].concat();
        assert_eq!(reply_every_cut(&wire, false, &limits).ending, too_large);
    }
}

/// A frame of any length costs what came of it, and not what it promises.
#[test]
fn the_longest_frames_cost_nothing() {
    let limits = Limits::default();
    let mut known = KnownHead::default();
    let longest = [head(OK), frame_of(0, frame::VARINT_MAX, b"")].concat();
    let mut reader = ReplyReader::new(false);
    assert_eq!(reader.receive(&longest, 7, &limits, &mut known), Ok(()));
    for _ in 0..1_000 {
        assert_eq!(reader.receive(&[0; 1_000], 7, &limits, &mut known), Ok(()));
    }
    assert_eq!(reader.pending_bytes(), longest.len() as u64 + 1_000_000);
    assert_eq!(reader.end(), broken(ConnectionError::FrameSize));

    let mut reader = ReplyReader::new(false);
    let unknown = frame_of(0x21, frame::VARINT_MAX, &[0; 1_000]);
    assert_eq!(reader.receive(&unknown, 7, &limits, &mut known), Ok(()));
    assert_eq!(reader.take_overhead(), unknown.len() as u64);
    assert_eq!((reader.pending_bytes(), reader.take_overhead()), (0, 0));
}

/// The state of a stream is small: a client has one per request in flight.
#[test]
fn readers_are_small() {
    let bytes = size_of::<ReplyReader>();
    assert!(bytes <= 160, "{bytes}");
    assert!(size_of::<Peer>() <= 192, "{}", size_of::<Peer>());
}

#[test]
fn wanted_bodies_are_kept() {
    let limits = Limits {
        bodies: BodiesWanted {
            from_status: 400,
            bytes_max: 5,
            heads: false,
        },
        ..Limits::default()
    };
    for (status, pieces, expected) in [
        ("200", &[4][..], None),
        ("500", &[2, 0, 2], Some((4, false))),
        ("404", &[3, 4], Some((5, true))),
    ] {
        let mut wire = head(&[(":status", status)]);
        for &bytes in pieces {
            wire.extend(unknown(bytes));
            wire.extend(data(bytes));
        }
        let body = reply_every_cut(&wire, false, &limits).body;
        let found = body.map(|body| (body.bytes.len(), body.is_cut));
        assert_eq!(found, expected, "{status}");
    }
}

/// The first byte is that of the first head, not of an unknown frame before it.
#[test]
fn first_bytes_are_those_of_a_head() {
    let limits = Limits::default();
    let mut known = KnownHead::default();
    let (unknown, plain) = (unknown(3), head(OK));
    let across = [&unknown[5..], &plain[..1]].concat();
    for (pieces, expected) in [
        (vec![&unknown[..], &plain], 2),
        (vec![&unknown[..5], &across, &plain[1..]], 2),
        (vec![&plain[..1], &plain[1..]], 1),
        (vec![&[&unknown[..], &plain[..1]].concat(), &plain[1..]], 1),
    ] {
        let mut reader = ReplyReader::new(false);
        for (at, piece) in pieces.iter().enumerate() {
            let now_ns = at as u64 + 1;
            assert_eq!(reader.receive(piece, now_ns, &limits, &mut known), Ok(()));
        }
        let first_byte_ns = reader.end().map(|reply| reply.first_byte_ns);
        assert_eq!(first_byte_ns, Ok(expected), "{pieces:x?}");
    }
}

/// A call of gRPC says at its very end whether it succeeded.
#[test]
fn calls_succeed_by_their_last_field_section() {
    use FailedCall::{Code, NoStatus};
    let (limits, mut known) = (Limits::default(), KnownHead::default());
    let grpc = |status: &str| head(&[("grpc-status", status)]);
    let at_once = |status: &str| head(&[(":status", "200"), ("grpc-status", status)]);
    for (parts, failed) in [
        (vec![head(OK), data(7), grpc("0")], None),
        (vec![head(OK), grpc("0")], None),
        (vec![head(OK), data(7), grpc("13")], Some(Code(13))),
        (vec![head(OK), data(7), head(&[("a", "b")])], Some(NoStatus)),
        (vec![head(OK), data(7)], Some(NoStatus)),
        (vec![head(OK)], Some(NoStatus)),
        (vec![at_once("0")], None),
        // Nothing but a head that ends the stream stands for trailers.
        (vec![at_once("0"), data(7)], Some(NoStatus)),
        (vec![at_once("0"), head(&[])], Some(NoStatus)),
        (vec![at_once("12")], Some(Code(12))),
        (vec![at_once("12"), grpc("0")], None),
        // The status of HTTP says so itself.
        (vec![head(&[(":status", "503")])], None),
    ] {
        for is_call in [true, false] {
            let mut reader = ReplyReader::new(false);
            if is_call {
                reader.expect_call();
            }
            for part in &parts {
                assert_eq!(reader.receive(part, 7, &limits, &mut known), Ok(()));
            }
            let found = reader.end().map(|reply| reply.failed_call);
            assert_eq!(found, Ok(failed.filter(|_| is_call)), "{parts:x?}");
        }
    }
}

/// Equal heads are known, and others after them are read.
#[test]
fn heads_are_known() {
    let (limits, mut known) = (Limits::default(), KnownHead::default());
    for status in ["200", "200", "503", "200", "200"] {
        let wire = head(&[(":status", status), ("retry-after", "1")]);
        let found = read_reply([&wire[..]], false, &limits, &mut known);
        let expected = Reply {
            retry_after: status == "503",
            ..reply(status.parse().unwrap(), wire.len(), 0)
        };
        assert_eq!(found.ending, Ok(expected));
    }
}

#[test]
fn failures_have_their_codes() {
    let too_large = Some(ErrorCode::ExcessiveLoad);
    for (failure, code) in [
        (StreamFailure::of_reset(0x10b), None),
        (StreamFailure::of_reset(0x10c), None),
        (StreamFailure::Incomplete, None),
        (MalformedReply::Head.into(), Some(ErrorCode::MessageError)),
        (MalformedReply::HeadTooLarge.into(), too_large),
    ] {
        assert_eq!(failure.code(), code, "{failure:?}");
    }
    assert_eq!(StreamFailure::of_reset(0x10b), StreamFailure::NotProcessed);
    let reset = StreamFailure::of_reset(0x10c);
    let words = "the server reset the stream: H3_REQUEST_CANCELLED";
    assert_eq!(reset.to_string(), words);
}

/// Reads a request whole, at every cut and byte by byte; gives the common outcome.
fn request_every_cut(wire: &[u8], content_length: Option<u64>, bytes_max: u32) -> RequestOutcome {
    at_every_cut(wire, |pieces| {
        read_request(pieces.iter().copied(), content_length, bytes_max)
    })
}

#[test]
fn requests_are_read() {
    let get = head(&[(":method", "GET")]);
    let parts = [
        unknown(2),
        get.clone(),
        data(3),
        unknown(0),
        data(4),
        head(&[("a", "b")]),
        unknown(1),
    ];
    let outcome = request_every_cut(&parts.concat(), Some(7), 1_000);
    let expected = RequestOutcome {
        head: Some(get[3..].to_vec()),
        content: vec![b'x'; 7],
        trailers: Some(parts[5][3..].to_vec()),
        ending: None,
    };
    assert_eq!(outcome, expected);
}

#[test]
fn what_is_no_request_has_its_code() {
    use ConnectionError::{FrameSize, FrameUnexpected};
    use RequestReadError::{Connection, ContentLength, HeadTooLarge, Incomplete};
    let get = head(&[(":method", "GET")]);
    for (parts, error) in [
        (vec![], Incomplete),
        (vec![get.clone(), data(4)], ContentLength),
        (vec![get.clone(), data(6)], ContentLength),
        (vec![frame_of(1, 1_001, b"")], HeadTooLarge),
        (vec![get[..2].to_vec()], Connection(FrameSize)),
    ] {
        let outcome = request_every_cut(&parts.concat(), Some(5), 1_000);
        assert_eq!(outcome.ending, Some(error), "{parts:x?}");
    }
    for (error, code) in [
        (Incomplete, ErrorCode::RequestIncomplete),
        (ContentLength, ErrorCode::MessageError),
        (HeadTooLarge, ErrorCode::ExcessiveLoad),
        (Connection(FrameSize), ErrorCode::FrameError),
        (Connection(FrameUnexpected), ErrorCode::FrameUnexpected),
    ] {
        assert_eq!(error.code(), code);
    }
    for parts in [
        vec![data(1)],
        vec![get.clone(), raw(5, &[0])],
        vec![get.clone(), data(5), head(&[]), head(&[])],
    ] {
        let outcome = request_every_cut(&parts.concat(), Some(5), 1_000);
        assert_eq!(outcome.ending, Some(FrameUnexpected.into()), "{parts:x?}");
    }
    // Without a stated length, any is right.
    let outcome = request_every_cut(&[get, data(4)].concat(), None, 1_000);
    assert_eq!(outcome.ending, None);
}

/// A server learns of the length from a head that it decodes itself.
#[test]
fn a_body_is_refused_as_soon_as_it_is_too_long() {
    let longest = frame_of(0, frame::VARINT_MAX, b"");
    let wire = [head(&[(":method", "PUT")]), longest].concat();
    let mut rest = &wire[..];
    let mut reader = RequestReader::default();
    let part = reader.receive(&mut rest, 1_000);
    assert!(matches!(part, Ok(Some(RequestPart::Head(_)))));
    reader.set_content_length(Some(frame::VARINT_MAX - 1));
    let part = reader.receive(&mut rest, 1_000);
    assert_eq!(part, Err(RequestReadError::ContentLength));
}

/// Reads the bytes of streams whole and in pieces of any length; gives the common outcome.
fn peer_every_step(side: Side, parts: &[(usize, Vec<u8>)]) -> PeerOutcome {
    let parts = parts.iter().map(|(stream, bytes)| (*stream, &bytes[..]));
    let parts: Vec<(usize, &[u8])> = parts.collect();
    let whole = read_peer(&parts, side, usize::MAX);
    for step in 1..20 {
        assert_eq!(read_peer(&parts, side, step), whole, "step {step}");
    }
    whole
}

fn opening(settings: &[(Setting, u64)]) -> Vec<u8> {
    written(|out| frame::write_control_opening(out, settings))
}

#[test]
fn a_peer_says_what_it_does() {
    let mut control = opening(&[
        (Setting::of(0x1f * 7 + 0x21), frame::VARINT_MAX),
        (Setting::QpackMaxTableCapacity, 4_096),
        (Setting::MaxFieldSectionSize, 65_536),
        (Setting::QpackBlockedStreams, 16),
    ]);
    control.extend(unknown(500));
    control.extend(unknown(0));
    frame::write_go_away(&mut control, frame::VARINT_MAX - 3);
    control.extend(unknown(3));
    frame::write_go_away(&mut control, 400);
    frame::write_go_away(&mut control, 400);
    let (events, ending) = peer_every_step(
        Side::Client,
        &[
            (1, vec![0x02, 0x20]),
            (0, control),
            (2, vec![0x03, 0x40, 0x7f, 0x01]),
            (1, vec![0x20]),
            (3, [&[0x40, 0x40][..], &[9; 100]].concat()),
            (3, vec![9; 100]),
        ],
    );
    let go_away = |id| (0, PeerEvent::GoAway { id });
    let expected = vec![
        (0, PeerEvent::Settings),
        go_away(frame::VARINT_MAX - 3),
        go_away(400),
        go_away(400),
        (3, PeerEvent::Unknown),
    ];
    assert_eq!((events, ending), (expected, Ok(())));
    let empty = peer_every_step(Side::Server, &[(0, opening(&[]))]);
    assert_eq!(empty, (vec![(0, PeerEvent::Settings)], Ok(())));
}

#[test]
fn what_a_peer_may_not_do_ends_the_connection() {
    use ConnectionError::{
        DecoderStream, EncoderStream, FrameSize, FrameUnexpected, GoAway, MissingSettings, Push,
        PushId, StreamCreation,
    };
    use Side::{Client, Server};
    let after = |frame: Vec<u8>| vec![(0, opening(&[])), (0, frame)];
    let first = |frame: &[u8]| vec![(0, [&[0x00], frame].concat())];
    let go_away = |first: u64, second: u64| {
        let mut out = opening(&[]);
        frame::write_go_away(&mut out, first);
        frame::write_go_away(&mut out, second);
        vec![(0, out)]
    };
    let push_ids = [5, 5, 4].map(|id| raw(0xd, &[id])).concat();
    let mut cases = vec![
        // The first frame.
        (Client, first(&unknown(3)), MissingSettings),
        (Client, first(&raw(7, &[0])), MissingSettings),
        (Server, first(&raw(0, &[0])), MissingSettings),
        (Client, after(raw(4, &[])), FrameUnexpected),
        // SETTINGS that end inside a setting.
        (Client, first(&raw(4, &[0x06])), FrameSize),
        (Client, first(&raw(4, &[0x06, 0x40])), FrameSize),
        (Client, first(&raw(4, &[0x40])), FrameSize),
        // Frames of one number with none, a part of one, and more.
        (Client, after(raw(7, &[])), FrameSize),
        (Client, after(raw(7, &[0x40])), FrameSize),
        (Client, after(raw(7, &[0, 0])), FrameSize),
        (Server, after(raw(0xd, &[0x40, 0, 0])), FrameSize),
        // GOAWAY.
        (Client, after(raw(7, &[3])), GoAway),
        (Client, go_away(4, 8), GoAway),
        (Server, go_away(4, 5), GoAway),
        // Pushes.
        (Client, after(raw(3, &[0])), Push),
        (Client, after(raw(0xd, &[0])), FrameUnexpected),
        (Server, after(raw(3, &[0])), PushId),
        (Server, after(push_ids), PushId),
        (Client, vec![(0, vec![0x01])], Push),
        (Server, vec![(0, vec![0x01])], StreamCreation),
        // Streams of which there is one.
        (Client, vec![(0, vec![0]), (1, vec![0])], StreamCreation),
        (Client, vec![(0, vec![2]), (1, vec![2])], StreamCreation),
        (Server, vec![(0, vec![3]), (1, vec![3])], StreamCreation),
        // A dynamic table.
        (Client, vec![(0, vec![2, 0x3f, 0xe1, 0x1f])], EncoderStream),
        (Server, vec![(0, vec![2, 0xc0, 0x00])], EncoderStream),
        (Client, vec![(0, vec![3, 0x80])], DecoderStream),
        (Server, vec![(0, vec![3, 0x01])], DecoderStream),
    ];
    for kind in [0, 1, 2, 5, 6, 8, 9] {
        cases.push((Client, after(raw(kind, &[0])), FrameUnexpected));
        cases.push((Server, after(raw(kind, &[0])), FrameUnexpected));
    }
    for (id, value) in [(0, 0), (2, 0), (3, 100), (4, 65_535), (5, 16_384)] {
        let settings = opening(&[(Setting::of(id), value)]);
        cases.push((Client, vec![(0, settings)], ConnectionError::Setting));
    }
    for id in [1, 6, 7] {
        let settings = opening(&[id, 0x21, id].map(|id| (Setting::of(id), 1)));
        cases.push((Server, vec![(0, settings)], ConnectionError::Setting));
    }
    for (side, parts, error) in cases {
        assert_eq!(peer_every_step(side, &parts).1, Err(error), "{parts:x?}");
    }
}

/// Whole SETTINGS of any length are read, and the longest promise costs nothing.
#[test]
fn settings_are_not_kept() {
    let mut peer = Peer::new(Side::Client);
    let mut stream = PeerStream::default();
    let control = [&[0x00][..], &frame_of(4, frame::VARINT_MAX, b"")].concat();
    assert_eq!(peer.receive(&mut stream, &mut &control[..]), Ok(None));
    for _ in 0..10_000 {
        let setting = [0x21, 0x00];
        assert_eq!(peer.receive(&mut stream, &mut &setting[..]), Ok(None));
    }
    assert!(!peer.has_settings());
}

#[test]
fn the_connection_needs_some_streams() {
    let mut peer = Peer::new(Side::Client);
    for (first, expected) in [
        (&[][..], Ok(())),
        (&[0x40], Ok(())),
        (&[0x21, 0x00], Ok(())),
        (&[0x00], Err(ConnectionError::ClosedCriticalStream)),
        (&[0x02], Err(ConnectionError::ClosedCriticalStream)),
        (&[0x03, 0x40], Err(ConnectionError::ClosedCriticalStream)),
    ] {
        let mut stream = PeerStream::default();
        assert!(peer.receive(&mut stream, &mut &first[..]).is_ok());
        assert_eq!(peer.end(&stream), expected, "{first:x?}");
    }
    let code = ConnectionError::ClosedCriticalStream.code();
    assert_eq!(code.number(), 0x104);
}

/// Streams of aioquic 1.7.2: both control streams, a reply after an interim one and with trailers,
/// and a request.
#[test]
fn streams_of_another_implementation_are_read() {
    for (side, control) in [
        (Side::Client, "00 0409 01 5000 07 10 08 01 21 01"),
        (Side::Server, "00 0409 01 5000 07 10 08 01 21 01 0d01 08"),
    ] {
        let parts = [(0, hex(control)), (1, vec![0x02]), (2, vec![0x03])];
        let expected = (vec![(0, PeerEvent::Settings)], Ok(()));
        assert_eq!(peer_every_step(side, &parts), expected);
    }

    let wire = hex("0119 0000d85b94fff8c213ea82ae4423fefed4b0b4415d85a0e393
        0110 0000d95f4d85198fdad313f554023132
        0006 68656c6c6f20 0006 776f726c640a
        0110 00002e24e527545b4f8691a0c8f1247f");
    let outcome = reply_every_cut(&wire, false, &Limits::default());
    let expected = Reply {
        interim: 1,
        ..reply(200, 27 + 18, 8 + 8 + 18)
    };
    assert_eq!(outcome.ending, Ok(expected));

    let wire = hex(
        "011e 0000d4d75086a0e41d139d09518562dae838e45f5085198fdad313540135
        0005 68656c6c6f",
    );
    let outcome = request_every_cut(&wire, Some(5), 1_000);
    assert_eq!((outcome.content, outcome.ending), (b"hello".to_vec(), None));
    let mut fields = String::new();
    qpack::decode::<qpack::Bytes>(
        &outcome.head.unwrap(),
        &mut Vec::new(),
        |(name, value), _| {
            fields += &format!("{}: {}|", name.escape_ascii(), value.escape_ascii());
        },
    )
    .unwrap();
    let expected = ":method: POST|:scheme: https|:authority: localhost|:path: /upload|\
        user-agent: aioquic|content-length: 5|";
    assert_eq!(fields, expected);
}

/// One part of a random reply.
fn part() -> impl Strategy<Value = Vec<u8>> {
    let fields = prop_oneof![
        Just(head(OK)),
        Just(head(&[(":status", "103")])),
        Just(head(&[(":status", "404"), ("content-length", "6")])),
        Just(head(&[("checksum", "x")])),
    ];
    prop_oneof![
        4 => fields,
        4 => (0_usize..70).prop_map(data),
        2 => (0_usize..70).prop_map(unknown),
        1 => (0_u64..16, prop::collection::vec(any::<u8>(), 0..20))
            .prop_map(|(kind, payload)| raw(kind, &payload)),
        1 => prop::collection::vec(any::<u8>(), 0..20),
    ]
}

proptest! {
    #[test]
    fn random_replies_are_read_at_any_cut(
        parts in prop::collection::vec(part(), 0..8),
        is_head: bool,
    ) {
        reply_every_cut(&parts.concat(), is_head, &Limits::default());
        request_every_cut(&parts.concat(), None, 1_000);
    }

    /// What is well formed is taken whatever is passed over between its frames.
    #[test]
    fn well_formed_replies_are_replies(
        interim in 0_usize..16,
        content in prop::collection::vec(0_usize..20_000, 0..5),
        has_length: bool,
        has_trailers: bool,
        between in prop::collection::vec(prop::option::of(0_usize..100), 30),
        step in 1_usize..5_000,
    ) {
        let content_bytes: usize = content.iter().sum();
        let length = content_bytes.to_string();
        let mut parts = vec![head(&[(":status", "103")]); interim];
        parts.push(if has_length {
            head(&[(":status", "200"), ("content-length", &length)])
        } else {
            head(OK)
        });
        let head_bytes: usize = parts.iter().map(Vec::len).sum();
        parts.extend(content.iter().map(|&bytes| data(bytes)));
        if has_trailers {
            parts.push(head(&[("a", "b")]));
        }
        let bytes: usize = parts.iter().map(Vec::len).sum();
        let unknown = between.iter().map(|bytes| bytes.map(unknown).unwrap_or_default());
        let wire: Vec<Vec<u8>> = parts.into_iter().zip(unknown).flat_map(<[_; 2]>::from).collect();
        let wire = wire.concat();
        let found = read_reply(
            wire.chunks(step),
            false,
            &Limits::default(),
            &mut KnownHead::default(),
        );
        let expected = Reply {
            interim: interim as u16,
            ..reply(200, head_bytes, bytes - head_bytes)
        };
        prop_assert_eq!(found.ending, Ok(expected));
        prop_assert_eq!(found.overhead_bytes, (wire.len() - bytes) as u64);
    }

    #[test]
    fn mutated_streams_keep_the_rules(
        parts in prop::collection::vec(part(), 0..6),
        changes in prop::collection::vec((any::<Index>(), any::<u8>()), 0..4),
        choice: u8,
        limit: u8,
    ) {
        let mut data = [&[choice, limit][..], &parts.concat()].concat();
        for (place, byte) in changes {
            let place = place.index(data.len());
            data[place] = byte;
        }
        fuzz_http3(&data);
    }
}
