//! Answers that break what HTTP/2 and HTTP/3 have in common, and of what such answers are made.

use brunt_server::RawEnding::{self, Endless, GoOn, Silence};

use super::{Case, written};

/// A field of a head.
pub(super) type Field = (&'static str, &'static str);

/// A part of an answer. Over HTTP/2, where a flag of a frame ends its stream, [`Portion::Last`],
/// [`Portion::Many`], [`Portion::Reply`] and [`Portion::Data`] do so.
#[derive(Debug)]
enum Portion {
    /// A head of these fields.
    Head(&'static [Field]),
    /// One with nothing behind it.
    Last(&'static [Field]),
    /// A head with so many of a field, and nothing behind it.
    Many(usize, Field),
    /// A whole reply with these lengths and this body.
    Reply(&'static [&'static str], &'static str),
    /// The rest of a body.
    Data(&'static str),
}

const OK: Field = (":status", "200");
const FILLER: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Those behind which the server goes on.
const TEXTS: &[(&str, &[Portion])] = &[
    // A status that is not a number.
    ("bad-status", &[Portion::Last(&[(":status", "2x0")])]),
    // A name with upper case.
    ("bad-field", &[Portion::Last(&[OK, ("X-Field", "value")])]),
    // A NUL byte in a value.
    ("nul-in-field", &[Portion::Last(&[OK, ("x-nul", "a\0b")])]),
    // A Content-Length that is not a number.
    ("bad-content-length", &[Portion::Reply(&["ten"], "01234")]),
    // A Content-Length below 0.
    ("negative-content-length", &[Portion::Reply(&["-1"], "")]),
    // A Content-Length beyond 64 bits.
    ("huge-content-length", &[Portion::Reply(&[HUGE], "01234")]),
    // Two Content-Length fields that differ.
    ("two-lengths", &[Portion::Reply(&["4", "8"], "0123")]),
    // A 204 with a body.
    (
        "body-in-204",
        &[Portion::Head(NO_CONTENT), Portion::Data("01")],
    ),
    // Less promised than sent.
    ("short-length", &[Portion::Reply(&["4"], "01234567")]),
    // More promised than sent.
    ("short-body", &[Portion::Reply(&["10"], "0123")]),
    // 10,000 header fields.
    (
        "too-many-fields",
        &[Portion::Many(10_000, ("x-field", "v"))],
    ),
    // Header values of 1 MiB together.
    (
        "large-head",
        &[Portion::Many(16 * 1024, ("x-large", FILLER))],
    ),
    // A head without a status.
    ("no-status", &[Portion::Last(&[("x-field", "value")])]),
    // A head with two statuses.
    ("two-statuses", &[Portion::Last(&[OK, (":status", "404")])]),
    // A status behind another field.
    ("late-status", &[Portion::Last(&[("x-field", "value"), OK])]),
    // A field of HTTP/1.1 that is forbidden.
    ("connection-field", &[Portion::Last(&[OK, CHUNKED])]),
    // An interim reply that ends the stream.
    ("ending-interim", &[Portion::Last(INTERIM)]),
    // DATA before the head.
    ("data-first", &[Portion::Data("0123")]),
];

const HUGE: &str = "99999999999999999999";
const NO_CONTENT: &[Field] = &[(":status", "204")];
const INTERIM: &[Field] = &[(":status", "103")];
const SWITCHING: &[Field] = &[(":status", "101")];
const CHUNKED: Field = ("transfer-encoding", "chunked");

/// Writes a head, which ends its stream or not.
type WriteHead = fn(&mut Vec<u8>, u32, &[Field], bool);
/// Writes the last DATA of a stream.
type WriteData = fn(&mut Vec<u8>, u32, &str);

/// The kinds, over the protocol of which heads and DATA are written so.
pub(super) fn kinds(head: WriteHead, data: WriteData) -> impl Iterator<Item = Case> {
    let kind = move |name, parts: &'static [Portion], ending: RawEnding| {
        let all = move |out: &mut Vec<u8>, stream| {
            for part in parts {
                part.write(head, data, out, stream);
            }
        };
        Case::new(name, written(all), ending)
    };
    let interim = written(move |out, stream| head(out, stream, INTERIM, false));
    let others = [
        // A 101, which only HTTP/1.1 has, then silence.
        kind("unasked-upgrade", &[Portion::Head(SWITCHING)], Silence),
        // Interim replies without end.
        kind("endless-interim", &[], Endless(interim)),
    ];
    let texts = TEXTS.iter();
    let texts = texts.map(move |&(name, parts)| kind(name, parts, GoOn));
    texts.chain(others)
}

impl Portion {
    fn write(&self, head: WriteHead, data: WriteData, out: &mut Vec<u8>, stream: u32) {
        match self {
            Self::Head(fields) => head(out, stream, fields, false),
            Self::Last(fields) => head(out, stream, fields, true),
            Self::Many(count, field) => {
                let mut fields = vec![OK];
                fields.resize(1 + count, *field);
                head(out, stream, &fields, true);
            }
            Self::Reply(lengths, body) => {
                let lengths = lengths.iter().map(|length| ("content-length", *length));
                let fields: Vec<Field> = [OK].into_iter().chain(lengths).collect();
                head(out, stream, &fields, body.is_empty());
                if !body.is_empty() {
                    data(out, stream, body);
                }
            }
            Self::Data(body) => data(out, stream, body),
        }
    }
}
