//! Answers that break HTTP/3: one for each mistake that a client must not make much of.

use brunt_proto::http3::frame::{self, Kind, StreamKind, write_control_opening, write_go_away};
use brunt_proto::http3::qpack::encode_field;
use brunt_proto::http3::varint;

/// Where the bytes of a malformed answer go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// The stream of the request.
    Request,
    /// The server's control stream; that of the request stays silent.
    Control,
    /// The same, and the control stream ends behind them.
    ControlEnd,
    /// A new unidirectional stream; that of the request stays silent.
    NewStream,
}

/// What follows a malformed answer on the stream of the request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    /// The connection is closed.
    Close,
    /// The end of the stream.
    GoOn,
    /// The stream stays open and silent until the client gives it up.
    Silence,
    /// The repeated part, without end.
    Endless(fn(&mut Vec<u8>)),
}

/// A kind of malformed answer.
#[derive(Debug)]
pub(crate) struct Malformation {
    /// The name in the path.
    pub(crate) name: &'static str,
    /// What the answer does, in a few words.
    pub(crate) meaning: &'static str,
    pub(crate) on: On,
    /// Appends the answer; for an endless one, its beginning.
    pub(crate) write: fn(&mut Vec<u8>),
    /// What follows the bytes that `write` gives.
    pub(crate) ending: Ending,
}

impl Malformation {
    const fn new(
        name: &'static str,
        meaning: &'static str,
        write: fn(&mut Vec<u8>),
        ending: Ending,
    ) -> Self {
        Self {
            name,
            meaning,
            on: On::Request,
            write,
            ending,
        }
    }

    const fn on(
        on: On,
        name: &'static str,
        meaning: &'static str,
        write: fn(&mut Vec<u8>),
    ) -> Self {
        Self {
            name,
            meaning,
            on,
            write,
            ending: Ending::Silence,
        }
    }

    /// Appends the next piece of an endless answer.
    pub(crate) fn write_more(&self, out: &mut Vec<u8>) {
        if let Ending::Endless(more) = self.ending {
            let end = out.len() + ENDLESS_PIECE_BYTES;
            while out.len() < end {
                more(out);
            }
        }
    }
}

/// Bytes of an endless part that are written at once, about.
const ENDLESS_PIECE_BYTES: usize = 16 * 1024;

/// The malformations, in the order of the documentation.
pub(crate) static KINDS: &[Malformation] = &[
    Malformation::new("empty", "closes without a byte", |_| {}, Ending::Close),
    Malformation::new(
        "garbage",
        "bytes that are no frames",
        |out| out.extend_from_slice(b"HTTP/1.1 this is not HTTP/3 \x7f\r\n\r\n"),
        Ending::GoOn,
    ),
    Malformation::new(
        "bad-status",
        "a status that is not a number",
        |out| head(out, &[(":status", "2x0")]),
        Ending::GoOn,
    ),
    Malformation::new(
        "bad-field",
        "a name with upper case",
        |out| head(out, &[OK, ("X-Field", "value")]),
        Ending::GoOn,
    ),
    Malformation::new(
        "nul-in-field",
        "a NUL byte in a value",
        |out| head(out, &[OK, ("x-nul", "a\0b")]),
        Ending::GoOn,
    ),
    Malformation::new(
        "half-head",
        "ends the stream in the middle of a field section",
        |out| {
            frame::write_header(out, Kind::Headers, 100);
            out.extend_from_slice(&[0, 0]);
        },
        Ending::GoOn,
    ),
    Malformation::new(
        "bad-content-length",
        "a Content-Length that is not a number",
        |out| reply(out, &["ten"], b"0123456789"),
        Ending::GoOn,
    ),
    Malformation::new(
        "negative-content-length",
        "a Content-Length below 0",
        |out| reply(out, &["-1"], b""),
        Ending::GoOn,
    ),
    Malformation::new(
        "huge-content-length",
        "a Content-Length beyond 64 bits",
        |out| reply(out, &["99999999999999999999"], b"0123456789"),
        Ending::GoOn,
    ),
    Malformation::new(
        "two-lengths",
        "two Content-Length fields that differ",
        |out| reply(out, &["4", "8"], b"0123"),
        Ending::GoOn,
    ),
    Malformation::new(
        "body-in-204",
        "a 204 with a body",
        |out| {
            head(out, &[(":status", "204")]);
            data(out, b"0123");
        },
        Ending::GoOn,
    ),
    Malformation::new(
        "unasked-upgrade",
        "a 101, which HTTP/3 does not have, then silence",
        |out| head(out, &[(":status", "101")]),
        Ending::Silence,
    ),
    Malformation::new(
        "extra-bytes",
        "DATA behind trailers",
        |out| {
            reply(out, &["4"], b"0123");
            head(out, &[("x-trailer", "value")]);
            data(out, b"456789");
        },
        Ending::GoOn,
    ),
    Malformation::new(
        "short-length",
        "less promised than sent",
        |out| reply(out, &["4"], b"01234567"),
        Ending::GoOn,
    ),
    Malformation::new(
        "short-body",
        "more promised than sent",
        |out| reply(out, &["10"], b"0123"),
        Ending::GoOn,
    ),
    Malformation::new(
        "too-many-fields",
        "10,000 header fields",
        |out| head(out, &fields(10_000, ("x-field", "value"))),
        Ending::GoOn,
    ),
    Malformation::new(
        "large-head",
        "header values of 1 MiB together",
        |out| head(out, &fields(16 * 1024, ("x-large", FILLER))),
        Ending::GoOn,
    ),
    Malformation::new(
        "endless-head",
        "a field section without end",
        |out| {
            frame::write_header(out, Kind::Headers, varint::MAX);
            out.extend_from_slice(&[0, 0]);
        },
        Ending::Endless(|out| field(out, ("x-endless", FILLER))),
    ),
    Malformation::new(
        "endless-interim",
        "interim replies without end",
        |_| {},
        Ending::Endless(|out| head(out, &[(":status", "103")])),
    ),
    Malformation::new(
        "bad-huffman",
        "a value that is no Huffman code",
        |out| section(out, &[0x5f, 0x09, 0x84, 0xff, 0xff, 0xff, 0xff]),
        Ending::GoOn,
    ),
    Malformation::new(
        "no-status",
        "a head without a status",
        |out| head(out, &[("x-field", "value")]),
        Ending::GoOn,
    ),
    Malformation::new(
        "two-statuses",
        "a head with two statuses",
        |out| head(out, &[OK, (":status", "404")]),
        Ending::GoOn,
    ),
    Malformation::new(
        "late-status",
        "a status behind another field",
        |out| head(out, &[("x-field", "value"), OK]),
        Ending::GoOn,
    ),
    Malformation::new(
        "connection-field",
        "a field of HTTP/1.1 that HTTP/3 forbids",
        |out| head(out, &[OK, ("transfer-encoding", "chunked")]),
        Ending::GoOn,
    ),
    Malformation::new(
        "ending-interim",
        "an interim reply that ends the stream",
        |out| head(out, &[(":status", "103")]),
        Ending::GoOn,
    ),
    Malformation::new(
        "data-first",
        "DATA before the head",
        |out| data(out, b"0123"),
        Ending::GoOn,
    ),
    Malformation::new(
        "push",
        "PUSH_PROMISE, which nobody takes",
        |out| {
            frame::write_header(out, Kind::PushPromise, 4);
            out.extend_from_slice(&[0, 0, 0, 0xd9]);
        },
        Ending::Silence,
    ),
    Malformation::on(
        On::Control,
        "bad-settings",
        "SETTINGS for a second time",
        |out| frame::write_header(out, Kind::Settings, 0),
    ),
    Malformation::on(
        On::Control,
        "growing-goaway",
        "GOAWAY, then a second one that takes in more streams",
        |out| {
            write_go_away(out, 1 << 20);
            write_go_away(out, 1 << 21);
        },
    ),
    Malformation::new(
        "endless-empty-data",
        "DATA without a byte, without end",
        |out| head(out, &[OK]),
        Ending::Endless(|out| data(out, b"")),
    ),
    Malformation::new(
        "bad-qpack",
        "a field section that refers to no entry of the table",
        |out| section(out, &[0xff, 0x80, 0x7f]),
        Ending::GoOn,
    ),
    Malformation::new(
        "dynamic-table",
        "a field section that needs the dynamic table, which nobody allows",
        |out| {
            frame::write_header(out, Kind::Headers, 3);
            out.extend_from_slice(&[2, 0, 0x80]);
        },
        Ending::GoOn,
    ),
    Malformation::new(
        "http2-frame",
        "a frame of HTTP/2 that HTTP/3 does not have",
        |out| {
            frame::write_header(out, Kind::Http2(0x8), 4);
            out.extend_from_slice(&[0; 4]);
        },
        Ending::Silence,
    ),
    Malformation::new(
        "stream-settings",
        "SETTINGS on the stream of a request",
        |out| frame::write_header(out, Kind::Settings, 0),
        Ending::Silence,
    ),
    Malformation::new(
        "half-data",
        "ends the stream in the middle of DATA",
        |out| {
            head(out, &[OK]);
            frame::write_header(out, Kind::Data, 100);
            out.extend_from_slice(b"0123");
        },
        Ending::GoOn,
    ),
    Malformation::new(
        "huge-data",
        "DATA of the greatest length, then silence",
        |out| {
            head(out, &[OK]);
            frame::write_header(out, Kind::Data, varint::MAX);
            out.extend_from_slice(b"0123");
        },
        Ending::Silence,
    ),
    Malformation::new(
        "endless-frames",
        "frames of an unknown kind, without end",
        |_| {},
        Ending::Endless(|out| {
            frame::write_header(out, Kind::Other(0x21), FILLER.len() as u64);
            out.extend_from_slice(FILLER.as_bytes());
        }),
    ),
    Malformation::on(
        On::Control,
        "control-data",
        "DATA on the control stream",
        |out| data(out, b"0123"),
    ),
    Malformation::on(
        On::Control,
        "bad-goaway",
        "GOAWAY with what is no stream of a request",
        |out| write_go_away(out, 3),
    ),
    Malformation::on(
        On::Control,
        "cancelled-push",
        "CANCEL_PUSH of a push that nobody allows",
        |out| {
            frame::write_header(out, Kind::CancelPush, 1);
            out.push(0);
        },
    ),
    Malformation::on(
        On::Control,
        "large-push-id",
        "MAX_PUSH_ID, which only clients send",
        |out| {
            frame::write_header(out, Kind::MaxPushId, 1);
            out.push(0);
        },
    ),
    Malformation::on(
        On::ControlEnd,
        "closed-control",
        "ends the control stream",
        |_| {},
    ),
    Malformation::on(
        On::NewStream,
        "second-control",
        "a second control stream",
        |out| write_control_opening(out, &[]),
    ),
    Malformation::on(
        On::NewStream,
        "push-stream",
        "a stream of a push that nobody allows",
        |out| {
            varint::put(out, StreamKind::Push.number());
            varint::put(out, 0);
        },
    ),
    Malformation::on(
        On::NewStream,
        "encoder-insert",
        "an entry for the dynamic table, which nobody allows",
        |out| {
            varint::put(out, StreamKind::QpackEncoder.number());
            out.extend_from_slice(&[0xd9, 3, b'2', b'0', b'2']);
        },
    ),
    Malformation::on(
        On::NewStream,
        "decoder-acknowledges",
        "an acknowledgement of what was not sent",
        |out| {
            varint::put(out, StreamKind::QpackDecoder.number());
            out.push(0x84);
        },
    ),
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
    frame::write_header(out, Kind::Data, bytes.len() as u64);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_sends_something_or_ends_something() {
        for kind in KINDS {
            let mut bytes = Vec::new();
            (kind.write)(&mut bytes);
            if let Ending::Endless(_) = kind.ending {
                kind.write_more(&mut bytes);
                assert!(bytes.len() >= ENDLESS_PIECE_BYTES, "{}", kind.name);
            }
            let ends = matches!(kind.ending, Ending::Close) || kind.on == On::ControlEnd;
            assert!(!bytes.is_empty() || ends, "{}", kind.name);
        }
    }
}
