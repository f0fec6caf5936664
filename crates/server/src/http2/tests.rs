//! One connection from its first byte on, cut anywhere, and what ends it.

use std::collections::BTreeMap;

use brunt_proto::http2::frame::{self, ErrorCode, FrameHeader, HEADER_BYTES, Kind, Setting, flags};
use brunt_proto::http2::hpack::{Bytes, Decoder, Indexing, TABLE_BYTES, encode_field};

use super::*;
use crate::answer::Context;
use crate::batch::Batch;
use crate::counters::{Counters, Shared};
use crate::http1::request::FIELDS_MAX;
use crate::pattern::pattern_byte;
use crate::raw::samples;

/// A frame as the client sees it: kind, flags and payload.
type Seen = (Kind, u8, Vec<u8>);

/// A session without a socket, and what it has sent.
struct Site {
    session: Http2Session,
    shared: Shared,
    batch: Batch,
    input: Vec<u8>,
    sent: Vec<u8>,
    now_ns: u64,
}

impl Site {
    fn new(options: Http2Options) -> Self {
        let mut batch = Batch::default();
        Self {
            session: Http2Session::new(options, &mut batch),
            shared: Shared::new(1),
            batch,
            input: Vec::new(),
            sent: Vec::new(),
            now_ns: 0,
        }
    }

    /// A connection that has asked for `path`, on its first stream.
    fn asking(path: &str) -> Self {
        let mut site = Self::greeted();
        site.say(&get(1, path));
        site
    }

    /// A connection after the exchange of SETTINGS.
    fn greeted() -> Self {
        let mut site = Self::new(Http2Options::default());
        site.say(&settings(&[]));
        site.sent.clear();
        site
    }

    /// Takes input and sends the output.
    fn say(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        let now_ns = self.now_ns;
        let clock = || now_ns;
        let context = Context::new(&self.shared, self.shared.worker(0), None, &clock);
        let mut scratch = Vec::new();
        loop {
            let taken = self
                .session
                .receive(&self.input, &mut self.batch, &mut scratch, &context);
            self.input.drain(..taken);
            self.session
                .advance(now_ns, &mut self.batch, context.counters);
            let sent = self.batch.take_bytes(Vec::new());
            self.session.all_sent();
            if sent.is_empty() {
                return;
            }
            self.sent.extend_from_slice(&sent);
        }
    }

    /// Goes on at an instant.
    fn at(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
        self.say(b"");
    }

    /// The frames sent so far, by stream.
    fn frames(&self) -> BTreeMap<u32, Vec<Seen>> {
        let mut streams = BTreeMap::<u32, Vec<Seen>>::new();
        for (header, payload) in frames(&self.sent) {
            let seen = (header.kind, header.flags, payload.to_vec());
            streams.entry(header.stream).or_default().push(seen);
        }
        streams
    }

    /// What a stream got: the statuses of its heads, the bytes of its body, and how it ended.
    fn reply(&self, stream: u32) -> (Vec<u16>, Vec<u8>, Option<Ending>) {
        let (mut statuses, mut body, mut ending) = (Vec::new(), Vec::new(), None);
        for (kind, flags, payload) in self.frames().remove(&stream).unwrap_or_default() {
            assert_eq!(ending, None, "nothing behind the end");
            match kind {
                Kind::Headers => statuses.extend(status(&payload)),
                Kind::Data => body.extend_from_slice(&payload),
                Kind::RstStream => {
                    ending = Some(Ending::Reset(frame::rst_stream(&payload).unwrap()))
                }
                Kind::WindowUpdate => {}
                other => panic!("{other:?} on a stream"),
            }
            let may_end = matches!(kind, Kind::Headers | Kind::Data);
            if may_end && flags & flags::END_STREAM != 0 {
                ending = Some(Ending::Stream);
            }
        }
        (statuses, body, ending)
    }

    /// The codes of the GOAWAY frames, with the last streams that they take in.
    fn goaways(&self) -> Vec<(u32, ErrorCode)> {
        frames(&self.sent)
            .filter(|(header, _)| header.kind == Kind::GoAway)
            .map(|(_, payload)| frame::go_away(payload).unwrap())
            .collect()
    }

    fn totals(&self) -> Counters {
        self.shared.totals()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Stream,
    Reset(ErrorCode),
}

const WHOLE: Option<Ending> = Some(Ending::Stream);

pub(crate) fn frames(mut bytes: &[u8]) -> impl Iterator<Item = (FrameHeader, &[u8])> {
    std::iter::from_fn(move || {
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let header = FrameHeader::read(header);
        let (payload, rest) = rest.split_at(header.length as usize);
        bytes = rest;
        Some((header, payload))
    })
}

/// The status in a field block, if it has one. Replies never use the dynamic table.
fn status(block: &[u8]) -> Option<u16> {
    let mut decoder = Decoder::<Bytes>::new(TABLE_BYTES);
    let mut status = None;
    let decoded = decoder.decode(block, &mut Vec::new(), |(name, value), _| {
        if name == b":status" {
            status = std::str::from_utf8(value).unwrap().parse().ok();
        }
    });
    assert!(decoded.unwrap().is_stateless);
    status
}

fn frame_of(kind: Kind, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let header = FrameHeader {
        length: payload.len() as u32,
        kind,
        flags,
        stream,
    };
    header.write(&mut out);
    out.extend_from_slice(payload);
    out
}

pub(crate) fn settings(settings: &[Setting]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write_settings(&mut out, settings);
    out
}

fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        encode_field(
            &mut out,
            name.as_bytes(),
            value.as_bytes(),
            Indexing::Insert,
        );
    }
    out
}

/// The fields of a request for `path`, with `more` behind them.
fn fields<'a>(
    method: &'a str,
    path: &'a str,
    more: &[(&'a str, &'a str)],
) -> Vec<(&'a str, &'a str)> {
    let mut fields = vec![
        (":method", method),
        (":scheme", "http"),
        (":authority", "x"),
        (":path", path),
    ];
    fields.extend_from_slice(more);
    fields
}

pub(crate) fn get(stream: u32, path: &str) -> Vec<u8> {
    let block = block(&fields("GET", path, &[]));
    let flags = flags::END_STREAM | flags::END_HEADERS;
    frame_of(Kind::Headers, flags, stream, &block)
}

pub(crate) fn head(
    stream: u32,
    method: &str,
    path: &str,
    more: &[(&str, &str)],
    is_end: bool,
) -> Vec<u8> {
    let end = if is_end { flags::END_STREAM } else { 0 };
    let block = block(&fields(method, path, more));
    frame_of(Kind::Headers, flags::END_HEADERS | end, stream, &block)
}

fn continuation(stream: u32, flags: u8, block: &[u8]) -> Vec<u8> {
    frame_of(Kind::Continuation, flags, stream, block)
}

/// A field behind the body of a stream, with END_STREAM or without.
fn trailers(stream: u32, end: u8) -> Vec<u8> {
    let block = block(&[("x-trailer", "1")]);
    frame_of(Kind::Headers, flags::END_HEADERS | end, stream, &block)
}

fn data(stream: u32, bytes: &[u8], is_end: bool) -> Vec<u8> {
    let end = if is_end { flags::END_STREAM } else { 0 };
    frame_of(Kind::Data, end, stream, bytes)
}

fn window_update(stream: u32, bytes: u32) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write_window_update(&mut out, stream, bytes);
    out
}

fn letters(bytes: u64) -> Vec<u8> {
    (0..bytes).map(pattern_byte).collect()
}

#[test]
fn what_other_clients_do_not_show_of_routes() {
    for (path, status, start) in [
        ("/refuse-after/0", 503, "no more answers"),
        ("/nowhere", 404, "no such route"),
        ("/http10", 404, "no such route"),
        ("/routes", 200, "/ "),
        ("/counters", 200, "{"),
    ] {
        let site = Site::asking(path);
        let (statuses, body, ending) = site.reply(1);
        assert_eq!((statuses, ending), (vec![status], WHOLE));
        assert!(body.starts_with(start.as_bytes()), "{path}");
    }
    for (path, body) in [
        ("/truncate/9", letters(4)),
        ("/truncate/1", vec![]),
        ("/reset-stream", vec![]),
    ] {
        let site = Site::asking(path);
        let (_, seen, ending) = site.reply(1);
        let reset = Some(Ending::Reset(ErrorCode::InternalError));
        assert_eq!((seen, ending), (body, reset), "{path}");
    }
    let site = Site::asking("/interim/2");
    assert_eq!(site.reply(1), (vec![100, 103, 200], vec![], WHOLE));
    use crate::answer::After;
    for (path, after) in [
        ("/reset", After::Reset),
        ("/random-close/100", After::Close),
    ] {
        let site = Site::asking(path);
        assert_eq!((site.session.end(), site.sent.len()), (End::Now(after), 0));
        assert_eq!(site.totals().faults, 1);
    }
}

#[test]
fn answers_to_head_have_no_body() {
    for path in ["/", "/bytes/30", "/chunked/30", "/routes"] {
        let mut site = Site::greeted();
        site.say(&head(1, "HEAD", path, &[], true));
        assert_eq!(site.reply(1), (vec![200], vec![], WHOLE), "{path}");
    }
}

#[test]
fn any_cut_gives_the_same_answers() {
    let long = "x".repeat(200);
    let (first, rest) = (
        block(&fields("GET", "/status/201", &[])),
        block(&[("x-long", &long)]),
    );
    let padded = [&[3][..], b"12", &[0; 3]].concat();
    let prioritised = [&[0, 0, 0, 0, 16][..], &block(&fields("GET", "/", &[]))].concat();
    let exchange = [
        settings(&[Setting::MaxFrameSize(frame::PAYLOAD_BYTES)]),
        window_update(0, 1 << 20),
        get(1, "/"),
        frame_of(Kind::Ping, 0, 0, b"12345678"),
        get(3, "/bytes/40k"),
        head(5, "POST", "/status/404", &[("content-length", "5")], false),
        data(5, b"123", false),
        frame_of(Kind::Headers, flags::END_STREAM, 7, &first),
        continuation(7, 0, &rest),
        continuation(7, flags::END_HEADERS, b""),
        frame_of(Kind::Other(200), 0, 0, b"unknown"),
        frame_of(Kind::Data, flags::PADDED, 5, &padded),
        trailers(5, flags::END_STREAM),
        frame_of(
            Kind::Headers,
            flags::END_HEADERS | flags::END_STREAM | flags::PRIORITY,
            9,
            &prioritised,
        ),
        get(11, "/chunked/20k"),
        get(13, "/refuse"),
        get(15, "/close"),
        get(17, "/never to be answered"),
    ]
    .concat();
    let run = |cut: usize, step: usize| {
        let mut site = Site::new(Http2Options::default());
        let (first, rest) = exchange.split_at(cut);
        for piece in [first, rest] {
            for piece in piece.chunks(step) {
                site.say(piece);
            }
        }
        let totals = site.totals();
        assert_eq!((totals.requests, totals.replies, totals.faults), (8, 7, 1));
        assert_eq!((totals.streams_ignored, totals.goaways), (1, 1));
        assert_eq!(site.session.end(), End::Left);
        site
    };
    let whole = run(0, exchange.len());
    let statuses: Vec<Vec<u16>> = (0..8).map(|at| whole.reply(2 * at + 1).0).collect();
    let expected = [200, 200, 404, 201, 200, 200].map(|status| vec![status]);
    assert_eq!(statuses[..6], expected);
    assert_eq!(whole.reply(3).1, letters(40 << 10));
    assert_eq!(whole.goaways(), [(15, ErrorCode::NoError)]);
    for cut in 1..exchange.len() {
        let site = run(cut, exchange.len());
        assert_eq!(site.frames(), whole.frames(), "cut at {cut}");
    }
    assert_eq!(run(0, 1).frames(), whole.frames());
}

#[test]
fn streams_take_their_own_time() {
    const MS: u64 = 1_000_000;
    let mut site = Site::greeted();
    site.now_ns = 1_000 * MS;
    site.say(&get(1, "/delay/5ms"));
    site.say(&get(3, "/delay/1ms"));
    site.say(&get(5, "/delay/2ms"));
    site.say(&get(7, "/never"));
    site.say(&get(9, "/"));
    let ended = |site: &Site| -> Vec<u32> {
        let streams = [1, 3, 5, 7, 9].into_iter();
        streams
            .filter(|stream| site.reply(*stream).2 == WHOLE)
            .collect()
    };
    assert_eq!(ended(&site), [9]);
    assert_eq!(site.session.streams.all.wake_ns(), Some(1_001 * MS));
    site.at(1_001 * MS - 1);
    assert_eq!(ended(&site), [9]);
    site.at(1_001 * MS);
    assert_eq!(ended(&site), [3, 9]);
    site.at(1_002 * MS);
    assert_eq!(ended(&site), [3, 5, 9]);
    // Given up: no answer, no timer.
    let mut reset = Vec::new();
    frame::write_rst_stream(&mut reset, 1, ErrorCode::Cancel);
    site.say(&reset);
    assert_eq!(site.session.streams.all.wake_ns(), None);
    site.at(1_010 * MS);
    assert_eq!(ended(&site), [3, 5, 9]);
    let totals = site.totals();
    let lateness = (totals.replies_delayed, totals.lateness_ns_max);
    assert_eq!(lateness, (2, Some(0)));
    let counted = (totals.streams_cancelled, totals.requests_abandoned);
    assert_eq!(counted, (1, 1));
    assert_eq!((totals.requests, totals.replies, totals.faults), (5, 3, 1));
}

#[test]
fn the_last_of_many_windows_counts() {
    let mut site = Site::greeted();
    site.say(&settings(&[Setting::InitialWindowSize(0)]));
    for stream in [1, 3] {
        site.say(&get(stream, "/bytes/25"));
    }
    let windows = (0..2_000).map(|bytes| Setting::InitialWindowSize(bytes % 3));
    let many: Vec<_> = windows.chain([Setting::InitialWindowSize(7)]).collect();
    site.say(&settings(&many));
    for stream in [1, 3] {
        assert_eq!(site.reply(stream).1, letters(7));
    }
    let most = Setting::InitialWindowSize(frame::WINDOW_BYTES_MAX);
    site.say(&settings(&[most, Setting::InitialWindowSize(7)]));
    assert_eq!(site.session.end(), End::Open);
    // A stream whose window the client has widened, and that sends nothing, has less room.
    site.say(&get(5, "/never"));
    site.say(&window_update(5, 100));
    site.say(&settings(&[most]));
    assert_eq!(site.session.end(), End::Failed);
}

#[test]
fn bodies_keep_to_the_windows_and_take_turns() {
    let mut site = Site::greeted();
    site.say(&settings(&[Setting::InitialWindowSize(10)]));
    site.sent.clear();
    site.say(&get(1, "/bytes/25"));
    site.say(&get(3, "/chunked/12"));
    let counted = (site.reply(1).1, site.reply(3).1);
    assert_eq!(counted, (letters(10), letters(10)));
    assert!(!site.session.streams.can_send());
    site.say(&window_update(3, 1));
    assert_eq!(site.reply(3).1, letters(11));
    // The window of every stream grows at once, and shrinks below zero.
    site.say(&settings(&[Setting::InitialWindowSize(12)]));
    assert_eq!(site.reply(1).1, letters(12));
    assert_eq!((site.reply(3).1, site.reply(3).2), (letters(12), WHOLE));
    site.say(&settings(&[Setting::InitialWindowSize(0)]));
    site.say(&window_update(1, 11));
    assert_eq!(site.reply(1).1, letters(12));
    site.say(&window_update(1, 100));
    assert_eq!((site.reply(1).1, site.reply(1).2), (letters(25), WHOLE));
    // The connection's window binds all streams together.
    let mut site = Site::greeted();
    site.say(&settings(&[Setting::InitialWindowSize(1 << 20)]));
    for stream in [1, 3] {
        site.say(&get(stream, "/bytes/100k"));
    }
    let got = |site: &Site| [1, 3].map(|stream| site.reply(stream).1.len());
    assert_eq!(got(&site).iter().sum::<usize>(), 65_535);
    site.say(&window_update(0, 100_000));
    let [first, second] = got(&site);
    assert_eq!(first + second, 165_535);
    assert!(first.abs_diff(second) <= 65_535, "{first} and {second}");
    site.say(&window_update(0, 1 << 20));
    assert_eq!(got(&site), [100 << 10; 2]);
}

#[test]
fn bodies_have_the_length_that_was_promised() {
    for (promised, sent, is_right) in [
        (Some("5"), &["123", "45"][..], true),
        (None, &["123"], true),
        (Some("0"), &[""], true),
        (Some("5"), &["1234"], false),
        (Some("5"), &["123", "456"], false),
        (Some("1"), &[], false),
    ] {
        let mut site = Site::greeted();
        let length = promised.map(|length| ("content-length", length));
        site.say(&head(1, "PUT", "/", length.as_slice(), sent.is_empty()));
        for (at, piece) in sent.iter().enumerate() {
            site.say(&data(1, piece.as_bytes(), at + 1 == sent.len()));
        }
        let (statuses, ..) = site.reply(1);
        assert_eq!(statuses, [if is_right { 200 } else { 400 }], "{promised:?}");
        let totals = site.totals();
        assert_eq!(totals.requests, u64::from(is_right));
        assert_eq!(totals.requests_malformed, u64::from(!is_right));
        assert_eq!(totals.replies, 1);
    }
}

#[test]
fn malformed_requests_are_answered_with_400() {
    let whole = fields("GET", "/", &[]);
    let without = |name: &str| {
        let mut fields = whole.clone();
        fields.retain(|field| field.0 != name);
        fields
    };
    let with = |field| [&whole[..], &[field]].concat();
    let many = vec![("x", "y"); FIELDS_MAX + 1];
    let cases = [
        without(":method"),
        without(":scheme"),
        without(":path"),
        with((":path", "/")),
        with(("connection", "close")),
        with(("transfer-encoding", "chunked")),
        with(("X-Upper", "x")),
        with(("x y", "x")),
        with(("x", "a\rb")),
        with(("te", "gzip")),
        with((":unknown", "x")),
        with(("content-length", "+0")),
        [&[("x", "y")], &whole[..]].concat(),
        [&whole[..], &many].concat(),
        fields("GET", "", &[]),
        fields("G T", "/", &[]),
    ];
    for fields in cases {
        let mut site = Site::greeted();
        let flags = flags::END_STREAM | flags::END_HEADERS;
        site.say(&frame_of(Kind::Headers, flags, 1, &block(&fields)));
        let (statuses, _, ending) = site.reply(1);
        assert_eq!((statuses, ending), (vec![400], WHOLE), "{fields:?}");
        // The connection is as good as before, the table included.
        site.say(&get(3, "/"));
        assert_eq!(site.reply(3).0, [200]);
        let totals = site.totals();
        assert_eq!((totals.requests, totals.requests_malformed), (1, 1));
        assert_eq!(totals.replies_by_status, [(200, 1), (400, 1)].into());
    }
    for fields in [
        &[("te", "Trailers")][..],
        &[("expect", "100-continue")],
        &[("host", "x")],
        &many[1..],
    ] {
        let mut site = Site::greeted();
        site.say(&head(1, "GET", "/", fields, true));
        assert_eq!(site.reply(1).0, [200], "{fields:?}");
    }
}

#[test]
fn a_body_is_asked_for() {
    let mut site = Site::greeted();
    site.say(&head(1, "POST", "/", &[("expect", "100-continue")], false));
    assert_eq!(site.reply(1), (vec![100], vec![], None));
    site.say(&data(1, b"12", true));
    assert_eq!(site.reply(1), (vec![100, 200], vec![], WHOLE));
}

#[test]
fn what_breaks_the_protocol_ends_the_connection() {
    use ErrorCode::*;
    let headers = flags::END_STREAM | flags::END_HEADERS;
    let opened = || get(1, "/never");
    let begun = || frame_of(Kind::Headers, flags::END_STREAM, 1, b"");
    let cases = [
        // Too large, or too short.
        (FrameSizeError, frame_of(Kind::Data, 0, 1, &[0; 16_385])),
        (
            FrameSizeError,
            [opened(), frame_of(Kind::RstStream, 0, 1, &[0; 3])].concat(),
        ),
        (FrameSizeError, frame_of(Kind::Settings, 0, 0, &[0; 5])),
        (
            FrameSizeError,
            frame_of(Kind::Settings, flags::ACK, 0, &[0; 6]),
        ),
        (FrameSizeError, frame_of(Kind::Ping, 0, 0, b"1")),
        (FrameSizeError, frame_of(Kind::GoAway, 0, 0, &[0; 7])),
        // On a stream where it cannot be.
        (ProtocolError, data(0, b"x", false)),
        (ProtocolError, data(1, b"x", false)),
        (ProtocolError, get(2, "/")),
        (ProtocolError, get(0, "/")),
        (ProtocolError, frame_of(Kind::RstStream, 0, 1, &[0; 4])),
        (ProtocolError, frame_of(Kind::Settings, 0, 1, b"")),
        (ProtocolError, frame_of(Kind::Ping, 0, 1, &[0; 8])),
        (ProtocolError, frame_of(Kind::Priority, 0, 0, &[0; 5])),
        (ProtocolError, window_update(5, 1)),
        // Within a head, and the rest of one without its beginning.
        (ProtocolError, continuation(1, flags::END_HEADERS, b"")),
        (ProtocolError, [begun(), data(1, b"", false)].concat()),
        (
            ProtocolError,
            [begun(), continuation(3, flags::END_HEADERS, b"")].concat(),
        ),
        // Padding beyond the frame, a frame size too small, a push, no more window.
        (
            ProtocolError,
            frame_of(Kind::Headers, headers | flags::PADDED, 1, &[9, 0x82]),
        ),
        (ProtocolError, settings(&[Setting::MaxFrameSize(1)])),
        (ProtocolError, frame_of(Kind::PushPromise, 0, 1, &[0; 4])),
        (ProtocolError, window_update(0, 0)),
        // A stream again, HEADERS behind the end, an index without entry.
        (StreamClosed, [get(3, "/"), get(1, "/")].concat()),
        (StreamClosed, [opened(), get(1, "/")].concat()),
        (
            CompressionError,
            frame_of(Kind::Headers, headers, 1, &[0xff, 0x7f]),
        ),
        // Windows that are too large.
        (
            FlowControlError,
            settings(&[Setting::InitialWindowSize(1 << 31)]),
        ),
        (FlowControlError, window_update(0, (1 << 31) - 1)),
    ];
    for (at, (code, bytes)) in cases.into_iter().enumerate() {
        let mut site = Site::greeted();
        site.say(&bytes);
        let codes: Vec<ErrorCode> = site.goaways().iter().map(|(_, code)| *code).collect();
        assert_eq!(
            (codes, site.session.end()),
            (vec![code], End::Failed),
            "{at}"
        );
        // What comes later means nothing.
        let sent = site.sent.len();
        site.say(&get(101, "/"));
        assert_eq!((site.sent.len(), site.input.len()), (sent, 0), "{at}");
    }
    let mut site = Site::new(Http2Options::default());
    site.say(&get(1, "/"));
    assert_eq!(site.goaways(), [(0, ProtocolError)], "SETTINGS come first");
}

#[test]
fn errors_of_a_stream_end_it_alone() {
    let upload = || head(1, "POST", "/", &[], false);
    let short = head(1, "POST", "/", &[("content-length", "1")], false);
    let (bytes, silent) = (get(1, "/bytes/1m"), get(1, "/never"));
    use ErrorCode::*;
    let cases = [
        // Trailers that do not end, too much window, no more of it.
        (upload(), trailers(1, 0), ProtocolError),
        (bytes, window_update(1, (1 << 31) - 1), FlowControlError),
        (silent.clone(), window_update(1, 0), ProtocolError),
        // DATA behind the end, and more of it than was announced.
        (silent, data(1, b"x", false), StreamClosed),
        (short, data(1, b"12", false), ProtocolError),
    ];
    for (request, error, code) in cases {
        let mut site = Site::greeted();
        let bytes = [request, error].concat();
        site.say(&bytes);
        let last = site.frames().remove(&1).unwrap().pop().unwrap();
        assert_eq!(last.0, Kind::RstStream, "{bytes:?}");
        assert_eq!(frame::rst_stream(&last.2), Ok(code), "{bytes:?}");
        // What is still in flight on it is ignored.
        site.say(&data(1, b"x", true));
        site.say(&get(3, "/"));
        assert_eq!(site.reply(3).0, [200], "{bytes:?}");
    }
    let mut site = Site::greeted();
    site.say(&upload());
    assert_eq!(site.reply(1), (vec![], vec![], None));
}

#[test]
fn streams_beyond_the_limit_are_refused() {
    let mut site = Site::new(Http2Options {
        streams_max: NonZeroU32::new(2).unwrap(),
        ..Http2Options::default()
    });
    site.say(&settings(&[]));
    // Answers count until they are sent: the client cannot have seen them.
    let at_once: Vec<u8> = (0..4).flat_map(|at| get(2 * at + 1, "/")).collect();
    site.say(&at_once);
    let refused = Some(Ending::Reset(ErrorCode::RefusedStream));
    let endings: Vec<_> = (0..4).map(|at| site.reply(2 * at + 1).2).collect();
    assert_eq!(endings, [WHOLE, WHOLE, refused, refused]);
    site.say(&get(9, "/never"));
    site.say(&get(11, "/never"));
    site.say(&get(13, "/"));
    assert_eq!(site.reply(13).2, refused);
    let totals = site.totals();
    assert_eq!((totals.requests, totals.streams_refused), (4, 3));
}

#[test]
fn a_goaway_takes_in_what_came_before() {
    let mut site = Site::new(Http2Options {
        requests_max: NonZeroU64::new(3),
        ..Http2Options::default()
    });
    site.say(&settings(&[]));
    site.say(&get(1, "/delay/1ms"));
    site.say(&get(3, "/"));
    site.say(&get(5, "/delay/2ms"));
    // They were on their way already.
    site.say(&head(7, "POST", "/", &[], false));
    site.say(&data(7, b"body", true));
    site.say(&get(9, "/"));
    assert_eq!(site.goaways(), [(5, ErrorCode::NoError)]);
    assert_eq!(site.session.end(), End::Open);
    site.at(1_000_000);
    assert_eq!(site.session.end(), End::Open);
    site.at(2_000_000);
    assert_eq!(site.session.end(), End::Left);
    assert_eq!((site.reply(5).2, site.reply(7).2), (WHOLE, None));
    let totals = site.totals();
    assert_eq!((totals.requests, totals.replies), (3, 3));
    assert_eq!((totals.streams_ignored, totals.goaways), (2, 1));

    for (path, last, code) in [
        ("/close", 3, ErrorCode::NoError),
        ("/goaway", 1, ErrorCode::NoError),
        ("/goaway/11", 1, ErrorCode::EnhanceYourCalm),
    ] {
        let mut site = Site::asking("/delay/1ms");
        site.say(&get(3, path));
        assert_eq!(site.goaways(), [(last, code)], "{path}");
        site.at(1_000_000);
        let answered = [1, 3].map(|stream| site.reply(stream).2 == WHOLE);
        assert_eq!(answered, [true, last == 3], "{path}");
        assert_eq!(site.session.end(), End::Left);
    }
}

#[test]
fn streams_that_a_goaway_leaves_out_are_not_answered() {
    let mut site = Site::asking("/delay/1ms");
    site.say(&head(3, "POST", "/goaway", &[], false));
    site.say(&get(5, "/delay/2ms"));
    site.say(&head(7, "POST", "/", &[], false));
    site.say(&data(3, b"body", true));
    assert_eq!(site.goaways(), [(1, ErrorCode::NoError)]);
    // Its request is ignored, whatever of it is still to come.
    site.say(&data(7, b"body", true));
    site.at(1_000_000);
    assert_eq!(site.session.end(), End::Left);
    site.at(2_000_000);
    let endings = [1, 3, 5, 7].map(|stream| site.reply(stream).2);
    assert_eq!(endings, [WHOLE, None, None, None]);
    let totals = site.totals();
    assert_eq!((totals.requests, totals.replies, totals.faults), (3, 1, 1));
    assert_eq!((totals.streams_ignored, totals.requests_abandoned), (2, 1));
}

#[test]
fn counters_leave_out_whole_requests_for_them() {
    let trailers = trailers(1, flags::END_STREAM);
    let asked = |is_end| head(1, "POST", "/counters", &[], is_end);
    for asked in [
        asked(true),
        [asked(false), data(1, b"body", false), data(1, b"", true)].concat(),
        [asked(false), data(1, b"body", false), trailers].concat(),
    ] {
        let mut site = Site::greeted();
        // As the worker counts them.
        let received = &site.shared.worker(0).links.bytes_received;
        received.add(asked.len() as u64);
        site.say(&asked);
        assert_eq!(site.reply(1).2, WHOLE);
        let totals = site.totals();
        assert_eq!((totals.bytes_received, totals.counters_requests), (0, 1));
    }
}

#[test]
fn floods_have_an_end() {
    // A head without end.
    for piece in [&b""[..], &[b'x'; 1_000]] {
        let mut site = Site::greeted();
        site.say(&frame_of(Kind::Headers, 0, 1, b""));
        for _ in 0..2_000 {
            site.say(&continuation(1, 0, piece));
        }
        assert_eq!(site.goaways(), [(0, ErrorCode::EnhanceYourCalm)]);
    }
    // More than the windows, all at once: neither is given back while nothing is taken.
    let mut site = Site::greeted();
    site.say(&head(1, "POST", "/", &[], false));
    let context = Context::new(&site.shared, site.shared.worker(0), None, &|| 0);
    let pings = frame_of(Kind::Ping, 0, 0, &[0; 8]).repeat(100_000);
    let mut batch = Batch::default();
    let session = &mut site.session;
    let taken = session.receive(&pings, &mut batch, &mut Vec::new(), &context);
    assert!(taken < pings.len(), "a full batch is sent first");
    assert!(batch.is_full());
    assert!(batch.bytes().len() < 66 << 10);
    site.session.calm_down(&mut batch, &context);
    assert_eq!(site.session.end(), End::Failed);
}

#[test]
fn raw_answers_end_as_they_say() {
    samples::install();
    for path in samples::PATHS {
        let mut site = Site::greeted();
        let request = get(1, path);
        site.input.extend_from_slice(&request);
        let context = Context::new(&site.shared, site.shared.worker(0), None, &|| 0);
        let mut batch = Batch::default();
        site.session
            .receive(&request, &mut batch, &mut Vec::new(), &context);
        let sent = batch.take_bytes(Vec::new());
        assert_eq!(sent, samples::START.as_bytes(), "{path}");
        let end = match path {
            "/raw/close" => End::Now(crate::answer::After::Close),
            _ => End::Open,
        };
        assert_eq!(site.session.end(), end, "{path}");
        // What has no end goes on, a batch at a time.
        let is_endless = path == "/raw/endless";
        assert_eq!(site.session.streams.can_send(), is_endless, "{path}");
        let counters = context.counters;
        for _ in 0..3 {
            site.session.advance(0, &mut batch, counters);
            let length = batch.take_bytes(Vec::new()).len();
            assert_eq!(length >= 64 << 10, is_endless, "{path}: {length}");
        }
        let totals = site.totals();
        assert_eq!((totals.requests, totals.faults_by_kind["raw"]), (1, 1));
    }
}

#[test]
fn mutated_connections_read_the_same_in_pieces() {
    samples::install();
    let seed = [
        settings(&[Setting::InitialWindowSize(100)]),
        head(1, "POST", "/bytes/40k", &[("content-length", "3")], false),
        data(1, b"abc", true),
        get(3, "/raw/endless"),
        get(5, "/counters"),
        window_update(1, 50),
        frame_of(Kind::RstStream, 0, 3, &[0, 0, 0, 8]),
        get(7, "/goaway"),
    ]
    .concat();
    fuzz_http2(&seed);
    for at in 0..seed.len() {
        for byte in [0, 1, 5, 8, 0x7f, 0x80, 0xff] {
            let mut data = seed.clone();
            data[at] = byte;
            fuzz_http2(&data);
            data.truncate(at + 1);
            fuzz_http2(&data);
        }
    }
}
