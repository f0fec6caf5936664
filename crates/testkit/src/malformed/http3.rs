//! Answers that break HTTP/3: one for each mistake that a client must not make much of.

use brunt_proto::http3::frame::{
    self, Kind as FrameKind, StreamKind, write_control_opening, write_go_away,
};
use brunt_proto::http3::qpack::encode_field;
use brunt_proto::http3::varint;
use brunt_server::RawBytes::Made;
use brunt_server::RawEnding::{Close, Endless, GoOn, Silence};
use brunt_server::RawPlace;

use super::Kind;

/// The kinds, in the order in which tests name them.
pub(super) static KINDS: &[Kind] = &[
    // Closes without a byte.
    Kind::made("empty", |_, _| {}, Close),
    // Bytes that are no frames.
    Kind::made(
        "garbage",
        |out, _| out.extend_from_slice(b"HTTP/1.1 this is not HTTP/3 \x7f\r\n\r\n"),
        GoOn,
    ),
    // A status that is not a number.
    Kind::made(
        "bad-status",
        |out, _| head(out, &[(":status", "2x0")]),
        GoOn,
    ),
    // A name with upper case.
    Kind::made(
        "bad-field",
        |out, _| head(out, &[OK, ("X-Field", "value")]),
        GoOn,
    ),
    // A NUL byte in a value.
    Kind::made(
        "nul-in-field",
        |out, _| head(out, &[OK, ("x-nul", "a\0b")]),
        GoOn,
    ),
    // Ends the stream in the middle of a field section.
    Kind::made(
        "half-head",
        |out, _| {
            frame::write_header(out, FrameKind::Headers, 100);
            out.extend_from_slice(&[0, 0]);
        },
        GoOn,
    ),
    // A Content-Length that is not a number.
    Kind::made(
        "bad-content-length",
        |out, _| reply(out, &["ten"], b"0123456789"),
        GoOn,
    ),
    // A Content-Length below 0.
    Kind::made(
        "negative-content-length",
        |out, _| reply(out, &["-1"], b""),
        GoOn,
    ),
    // A Content-Length beyond 64 bits.
    Kind::made(
        "huge-content-length",
        |out, _| reply(out, &["99999999999999999999"], b"0123456789"),
        GoOn,
    ),
    // Two Content-Length fields that differ.
    Kind::made(
        "two-lengths",
        |out, _| reply(out, &["4", "8"], b"0123"),
        GoOn,
    ),
    // A 204 with a body.
    Kind::made(
        "body-in-204",
        |out, _| {
            head(out, &[(":status", "204")]);
            data(out, b"0123");
        },
        GoOn,
    ),
    // A 101, which HTTP/3 does not have, then silence.
    Kind::made(
        "unasked-upgrade",
        |out, _| head(out, &[(":status", "101")]),
        Silence,
    ),
    // DATA behind trailers.
    Kind::made(
        "extra-bytes",
        |out, _| {
            reply(out, &["4"], b"0123");
            head(out, &[("x-trailer", "value")]);
            data(out, b"456789");
        },
        GoOn,
    ),
    // Less promised than sent.
    Kind::made(
        "short-length",
        |out, _| reply(out, &["4"], b"01234567"),
        GoOn,
    ),
    // More promised than sent.
    Kind::made("short-body", |out, _| reply(out, &["10"], b"0123"), GoOn),
    // 10,000 header fields.
    Kind::made(
        "too-many-fields",
        |out, _| head(out, &fields(10_000, ("x-field", "value"))),
        GoOn,
    ),
    // Header values of 1 MiB together.
    Kind::made(
        "large-head",
        |out, _| head(out, &fields(16 * 1024, ("x-large", FILLER))),
        GoOn,
    ),
    // A field section without end.
    Kind::made(
        "endless-head",
        |out, _| {
            frame::write_header(out, FrameKind::Headers, varint::MAX);
            out.extend_from_slice(&[0, 0]);
        },
        Endless(Made(|out, _| field(out, ("x-endless", FILLER)))),
    ),
    // Interim replies without end.
    Kind::made(
        "endless-interim",
        |_, _| {},
        Endless(Made(|out, _| head(out, &[(":status", "103")]))),
    ),
    // A value that is no Huffman code.
    Kind::made(
        "bad-huffman",
        |out, _| section(out, &[0x5f, 0x09, 0x84, 0xff, 0xff, 0xff, 0xff]),
        GoOn,
    ),
    // A head without a status.
    Kind::made(
        "no-status",
        |out, _| head(out, &[("x-field", "value")]),
        GoOn,
    ),
    // A head with two statuses.
    Kind::made(
        "two-statuses",
        |out, _| head(out, &[OK, (":status", "404")]),
        GoOn,
    ),
    // A status behind another field.
    Kind::made(
        "late-status",
        |out, _| head(out, &[("x-field", "value"), OK]),
        GoOn,
    ),
    // A field of HTTP/1.1 that HTTP/3 forbids.
    Kind::made(
        "connection-field",
        |out, _| head(out, &[OK, ("transfer-encoding", "chunked")]),
        GoOn,
    ),
    // An interim reply that ends the stream.
    Kind::made(
        "ending-interim",
        |out, _| head(out, &[(":status", "103")]),
        GoOn,
    ),
    // DATA before the head.
    Kind::made("data-first", |out, _| data(out, b"0123"), GoOn),
    // PUSH_PROMISE, which nobody takes.
    Kind::made(
        "push",
        |out, _| {
            frame::write_header(out, FrameKind::PushPromise, 4);
            out.extend_from_slice(&[0, 0, 0, 0xd9]);
        },
        Silence,
    ),
    // SETTINGS for a second time.
    Kind::on(RawPlace::Control, "bad-settings", |out, _| {
        frame::write_header(out, FrameKind::Settings, 0)
    }),
    // GOAWAY, then a second one that takes in more streams.
    Kind::on(RawPlace::Control, "growing-goaway", |out, _| {
        write_go_away(out, 1 << 20);
        write_go_away(out, 1 << 21);
    }),
    // DATA without a byte, without end.
    Kind::made(
        "endless-empty-data",
        |out, _| head(out, &[OK]),
        Endless(Made(|out, _| data(out, b""))),
    ),
    // A field section that refers to no entry of the table.
    Kind::made(
        "bad-qpack",
        |out, _| section(out, &[0xff, 0x80, 0x7f]),
        GoOn,
    ),
    // A field section that needs the dynamic table, which nobody allows.
    Kind::made(
        "dynamic-table",
        |out, _| {
            frame::write_header(out, FrameKind::Headers, 3);
            out.extend_from_slice(&[2, 0, 0x80]);
        },
        GoOn,
    ),
    // A frame of HTTP/2 that HTTP/3 does not have.
    Kind::made(
        "http2-frame",
        |out, _| {
            frame::write_header(out, FrameKind::Http2(0x8), 4);
            out.extend_from_slice(&[0; 4]);
        },
        Silence,
    ),
    // SETTINGS on the stream of a request.
    Kind::made(
        "stream-settings",
        |out, _| frame::write_header(out, FrameKind::Settings, 0),
        Silence,
    ),
    // Ends the stream in the middle of DATA.
    Kind::made(
        "half-data",
        |out, _| {
            head(out, &[OK]);
            frame::write_header(out, FrameKind::Data, 100);
            out.extend_from_slice(b"0123");
        },
        GoOn,
    ),
    // DATA of the greatest length, then silence.
    Kind::made(
        "huge-data",
        |out, _| {
            head(out, &[OK]);
            frame::write_header(out, FrameKind::Data, varint::MAX);
            out.extend_from_slice(b"0123");
        },
        Silence,
    ),
    // Frames of an unknown kind, without end.
    Kind::made(
        "endless-frames",
        |_, _| {},
        Endless(Made(|out, _| {
            frame::write_header(out, FrameKind::Other(0x21), FILLER.len() as u64);
            out.extend_from_slice(FILLER.as_bytes());
        })),
    ),
    // DATA on the control stream.
    Kind::on(RawPlace::Control, "control-data", |out, _| {
        data(out, b"0123")
    }),
    // GOAWAY with what is no stream of a request.
    Kind::on(RawPlace::Control, "bad-goaway", |out, _| {
        write_go_away(out, 3)
    }),
    // CANCEL_PUSH of a push that nobody allows.
    Kind::on(RawPlace::Control, "cancelled-push", |out, _| {
        frame::write_header(out, FrameKind::CancelPush, 1);
        out.push(0);
    }),
    // MAX_PUSH_ID, which only clients send.
    Kind::on(RawPlace::Control, "large-push-id", |out, _| {
        frame::write_header(out, FrameKind::MaxPushId, 1);
        out.push(0);
    }),
    // Ends the control stream.
    Kind::on(RawPlace::ControlEnd, "closed-control", |_, _| {}),
    // A second control stream.
    Kind::on(RawPlace::NewStream, "second-control", |out, _| {
        write_control_opening(out, &[])
    }),
    // A stream of a push that nobody allows.
    Kind::on(RawPlace::NewStream, "push-stream", |out, _| {
        varint::put(out, StreamKind::Push.number());
        varint::put(out, 0);
    }),
    // An entry for the dynamic table, which nobody allows.
    Kind::on(RawPlace::NewStream, "encoder-insert", |out, _| {
        varint::put(out, StreamKind::QpackEncoder.number());
        out.extend_from_slice(&[0xd9, 3, b'2', b'0', b'2']);
    }),
    // An acknowledgement of what was not sent.
    Kind::on(RawPlace::NewStream, "decoder-acknowledges", |out, _| {
        varint::put(out, StreamKind::QpackDecoder.number());
        out.push(0x84);
    }),
];

const OK: (&str, &str) = (":status", "200");
const FILLER: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn field(out: &mut Vec<u8>, (name, value): (&str, &str)) {
    encode_field(out, name.as_bytes(), value.as_bytes(), false);
}

/// A head of these fields.
fn head(out: &mut Vec<u8>, fields: &[(&str, &str)]) {
    frame::write_head(out, |out| {
        for each in fields {
            field(out, *each);
        }
    });
}

/// A field section of these bytes, behind what each begins with.
fn section(out: &mut Vec<u8>, bytes: &[u8]) {
    frame::write_head(out, |out| out.extend_from_slice(bytes));
}

/// A status, and so many fields.
fn fields(count: usize, each: (&'static str, &'static str)) -> Vec<(&'static str, &'static str)> {
    let mut fields = vec![OK];
    fields.resize(1 + count, each);
    fields
}

fn data(out: &mut Vec<u8>, bytes: &[u8]) {
    frame::write_header(out, FrameKind::Data, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A whole reply with these lengths and this body.
fn reply(out: &mut Vec<u8>, lengths: &[&str], body: &[u8]) {
    let mut fields = vec![OK];
    fields.extend(lengths.iter().map(|length| ("content-length", *length)));
    head(out, &fields);
    if !body.is_empty() {
        data(out, body);
    }
}
