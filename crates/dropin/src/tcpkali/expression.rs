//! Messages as they are typed for tcpkali: bytes, and expressions in `\{...}`, and as templates of
//! brunt's.

use std::io;
use std::num::NonZeroU32;
use std::path::Path;

use brunt_proto::messages::{Pattern, Place, Template, TextPattern, TextPatternError};
use brunt_proto::websocket::{Opcode, put_head};
use thiserror::Error;

use super::options::{Content, TcpkaliOptions, TypedMessage, error};
use crate::Ending;
use crate::ending::{ensure, strerror};

/// Most expressions inside one another.
const DEPTH_MAX: u32 = 16;

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ExpressionPiece {
    /// Constant bytes.
    Bytes(Vec<u8>),
    /// What is another on each connection or in each message.
    Place(Place),
    /// The instant, to be found in what comes back.
    Marker,
    /// A frame of WebSocket.
    Frame(SpeltFrame),
    /// What no frame of WebSocket is put around.
    Unframed(Box<Self>),
}

/// A frame that is spelt out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SpeltFrame {
    opcode: Opcode,
    /// The three reserved bits of the frame.
    reserved: u8,
    /// Whether the frame ends its message.
    is_last: bool,
    payload: Vec<u8>,
}

impl SpeltFrame {
    /// The frame as tcpkali sends it, with a mask of zeros.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let length = self.payload.len() as u64;
        put_head(&mut bytes, self.opcode, self.is_last, length, Some([0; 4]));
        bytes[0] |= self.reserved << 4;
        bytes.extend(&self.payload);
        bytes
    }

    /// Whether it is a whole message.
    fn is_message(&self) -> bool {
        let is_of_message = matches!(self.opcode, Opcode::Text | Opcode::Binary);
        is_of_message && self.reserved == 0 && self.is_last
    }
}

/// Why a text is not a message here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum ExpressionError {
    /// The text in braces is no expression.
    #[error(
        "Parse error in the expression \\{{{0}: what it means begins as connection.uid, \
             connection.re, global.re, re, raw, ws.text, message.marker or <FILE>"
    )]
    Unknown(String),
    /// A random text is none.
    #[error("Parse error in the expression \\{{{0}: {1}")]
    Text(String, TextPatternError),
    /// A file cannot be read.
    #[error("Can't open \"{0}\": {1}")]
    File(String, String),
    /// brunt has no such thing.
    #[error(
        "brunt: \\{{connection.ptr}} is not supported; \\{{connection.uid}} is the number of a \
             connection"
    )]
    Pointer,
}

/// What messages are made of that is not in their text.
pub(super) struct TemplateSource<'a> {
    /// Gives the content of a file.
    pub(super) read: &'a mut dyn FnMut(&Path) -> io::Result<Vec<u8>>,
    /// The state of what is drawn once.
    pub(super) seed: u64,
}

impl TemplateSource<'_> {
    fn random(&mut self) -> u64 {
        // Knuth's MMIX generator; the high bits are the good ones.
        let state = self.seed.wrapping_mul(6_364_136_223_846_793_005);
        self.seed = state.wrapping_add(1_442_695_040_888_963_407);
        self.seed
    }
}

/// The parts of a message. With `unescapes`, backslashes begin escapes; expressions are looked for
/// in any case.
///
/// # Errors
///
/// An expression is none, has no end, or names a file that cannot be read.
fn pieces(
    text: &[u8],
    unescapes: bool,
    source: &mut TemplateSource<'_>,
) -> Result<Vec<ExpressionPiece>, ExpressionError> {
    let mut pieces = Vec::new();
    let add_bytes = |pieces: &mut Vec<ExpressionPiece>, bytes: &mut Vec<u8>| {
        let bytes = escaped(std::mem::take(bytes), unescapes);
        pieces.extend((!bytes.is_empty()).then_some(ExpressionPiece::Bytes(bytes)));
    };
    let mut bytes = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        if text[at..].starts_with(b"\\{") {
            let mut expression = Expression {
                text,
                start: at + 2,
                at: at + 2,
                unescapes,
                source,
            };
            let piece = expression.whole(0)?;
            at = expression.at;
            add_bytes(&mut pieces, &mut bytes);
            pieces.push(piece);
        } else if text[at..].starts_with(b"\\\\") {
            // Not the beginning of an expression, whatever follows.
            bytes.extend_from_slice(b"\\\\");
            at += 2;
        } else {
            bytes.push(byte);
            at += 1;
        }
    }
    add_bytes(&mut pieces, &mut bytes);
    Ok(pieces)
}

/// What `bytes` mean, with `unescapes` as a text with escapes.
fn escaped(bytes: Vec<u8>, unescapes: bool) -> Vec<u8> {
    if unescapes { unescaped(&bytes) } else { bytes }
}

/// An expression as it is read.
struct Expression<'a, 'b, 'c> {
    text: &'a [u8],
    /// Where the expression begins, behind its brace.
    start: usize,
    at: usize,
    unescapes: bool,
    source: &'b mut TemplateSource<'c>,
}

impl Expression<'_, '_, '_> {
    fn unknown(&self) -> ExpressionError {
        ExpressionError::Unknown(self.shown())
    }

    fn shown(&self) -> String {
        let rest = &self.text[self.start.min(self.text.len())..];
        let shown = rest.split_inclusive(|&byte| byte == b'}').next();
        String::from_utf8_lossy(shown.unwrap_or_default()).into_owned()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// Takes the tokens that are next, with blanks before each; nothing, if one of them is not.
    fn takes(&mut self, tokens: &[&str]) -> bool {
        let before = self.at;
        for token in tokens {
            self.skip_blanks();
            if !self.text[self.at..].starts_with(token.as_bytes()) {
                self.at = before;
                return false;
            }
            self.at += token.len();
        }
        true
    }

    /// Takes the first of `words` that comes next; gives the meaning that stands beside it.
    fn one_of<T: Copy>(&mut self, words: &[(&str, T)]) -> Option<T> {
        let found = words.iter().find(|(word, _)| self.takes(&[word]));
        found.map(|(_, meaning)| *meaning)
    }

    /// All up to the brace that ends it.
    fn whole(&mut self, depth: u32) -> Result<ExpressionPiece, ExpressionError> {
        let piece = self.piece(depth)?;
        self.takes(&["}"])
            .then_some(piece)
            .ok_or_else(|| self.unknown())
    }

    fn piece(&mut self, depth: u32) -> Result<ExpressionPiece, ExpressionError> {
        if depth > DEPTH_MAX {
            return Err(self.unknown());
        }
        if self.takes(&["raw", "{"]) {
            Ok(ExpressionPiece::Unframed(Box::new(self.whole(depth + 1)?)))
        } else if self.takes(&["raw"]) {
            Ok(ExpressionPiece::Unframed(Box::new(self.constant()?)))
        } else if self.takes(&["global", ".", "re"]) {
            let mut bytes = Vec::new();
            let pattern = self.pattern()?;
            pattern.render(&mut || self.source.random(), &mut bytes);
            Ok(ExpressionPiece::Bytes(bytes))
        } else if self.takes(&["connection", ".", "uid"]) {
            self.numbered().map(ExpressionPiece::Place)
        } else if self.takes(&["connection", ".", "ptr"]) {
            Err(ExpressionError::Pointer)
        } else if self.takes(&["connection", ".", "re"]) {
            Ok(ExpressionPiece::Place(Place::ConnectionText(
                self.pattern()?,
            )))
        } else if self.takes(&["re"]) {
            Ok(ExpressionPiece::Place(Place::Text(self.pattern()?)))
        } else if self.takes(&["message", ".", "marker"]) {
            Ok(ExpressionPiece::Marker)
        } else if self.takes(&["ws", "."]) {
            self.frame().map(ExpressionPiece::Frame)
        } else {
            self.constant()
        }
    }

    /// What stands in quotation marks or in a file, in which `-e` holds, too.
    fn constant(&mut self) -> Result<ExpressionPiece, ExpressionError> {
        let data = self.data()?.ok_or_else(|| self.unknown())?;
        Ok(ExpressionPiece::Bytes(data))
    }

    fn numbered(&mut self) -> Result<Place, ExpressionError> {
        let mut modulo: Option<NonZeroU32> = None;
        while self.takes(&["%"]) {
            self.skip_blanks();
            let rest = &self.text[self.at..];
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let number = std::str::from_utf8(&rest[..digits]).unwrap_or_default();
            let number: NonZeroU32 = number.parse().map_err(|_| self.unknown())?;
            // Otherwise it is the rest of a rest by something smaller.
            if modulo.is_some_and(|by| by > number) {
                return Err(self.unknown());
            }
            self.at += digits;
            modulo.get_or_insert(number);
        }
        Ok(Place::Connection {
            from_one: true,
            modulo,
        })
    }

    fn pattern(&mut self) -> Result<TextPattern, ExpressionError> {
        self.skip_blanks();
        let found = TextPattern::parse_prefix(&self.text[self.at..]);
        let (pattern, taken) = found.map_err(|error| ExpressionError::Text(self.shown(), error))?;
        self.at += taken;
        Ok(pattern)
    }

    fn frame(&mut self) -> Result<SpeltFrame, ExpressionError> {
        let opcodes = [
            ("continuation", Opcode::Continuation),
            ("cont", Opcode::Continuation),
            ("text", Opcode::Text),
            ("binary", Opcode::Binary),
            ("close", Opcode::Close),
            ("ping", Opcode::Ping),
            ("pong", Opcode::Pong),
        ];
        let mut frame = SpeltFrame {
            opcode: self.one_of(&opcodes).ok_or_else(|| self.unknown())?,
            reserved: 0,
            is_last: true,
            payload: Vec::new(),
        };
        loop {
            if let Some(bit) = self.one_of(&[("rsv1", 4), ("rsv2", 2), ("rsv3", 1)]) {
                frame.reserved |= bit;
            } else if self.takes(&["..."]) {
                frame.is_last = false;
            } else if let Some(data) = self.data()? {
                frame.payload.extend(data);
            } else {
                return Ok(frame);
            }
        }
    }

    /// What stands in quotation marks, or in the file between angle brackets.
    fn data(&mut self) -> Result<Option<Vec<u8>>, ExpressionError> {
        let (end, is_file) = if self.takes(&["\""]) {
            (b'"', false)
        } else if self.takes(&["<"]) {
            (b'>', true)
        } else {
            return Ok(None);
        };
        let rest = &self.text[self.at..];
        let mut is_escaped = false;
        let length = rest.iter().position(|&byte| {
            let is_end = byte == end && !is_escaped;
            is_escaped = !is_file && byte == b'\\' && !is_escaped;
            is_end
        });
        let inside = &rest[..length.ok_or_else(|| self.unknown())?];
        self.at += inside.len() + 1;
        let data = if is_file {
            self.file(inside.trim_ascii())?
        } else {
            unescaped(inside)
        };
        Ok(Some(escaped(data, self.unescapes)))
    }

    /// The content of the file that is called so, perhaps in quotation marks.
    fn file(&mut self, typed: &[u8]) -> Result<Vec<u8>, ExpressionError> {
        let name = std::str::from_utf8(typed).map_err(|_| self.unknown())?;
        let inside = name
            .strip_prefix('"')
            .and_then(|name| name.strip_suffix('"'));
        let name = inside.unwrap_or(name);
        let content = (self.source.read)(Path::new(name));
        content.map_err(|reason| ExpressionError::File(name.into(), strerror(&reason)))
    }
}

/// What a text with escapes means: `\n`, `\r`, `\f`, `\b`, `\xHH` with one or two digits, and
/// octal digits behind `\0`. Two backslashes stay two, and one before anything else is left out,
/// so that `\t` is a t.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        let Some(&letter) = behind.first().filter(|_| byte == b'\\') else {
            bytes.push(byte);
            continue;
        };
        rest = &behind[1..];
        match letter {
            b'n' => bytes.push(b'\n'),
            b'r' => bytes.push(b'\r'),
            b'f' => bytes.push(12),
            b'b' => bytes.push(8),
            b'\\' => bytes.extend_from_slice(b"\\\\"),
            b'x' | b'0' => {
                let (radix, digits_max) = if letter == b'x' { (16, 2) } else { (8, 3) };
                let (value, digits) = octet(rest, radix, digits_max);
                if letter == b'x' && digits == 0 {
                    bytes.extend_from_slice(b"\\x");
                } else {
                    bytes.push(value);
                }
                rest = &rest[digits..];
            }
            other => bytes.push(other),
        }
    }
    bytes
}

/// The number that `text` begins with, without what does not fit an octet, and how many digits it
/// has, of `digits_max`.
fn octet(text: &[u8], radix: u32, digits_max: usize) -> (u8, usize) {
    let digits = text
        .iter()
        .take(digits_max)
        .map_while(|byte| char::from(*byte).to_digit(radix));
    digits.fold((0, 0), |(value, count), digit| {
        let value = u32::from(value) * radix + digit;
        (value as u8, count + 1)
    })
}

/// What tcpkali exits with when a message means nothing.
const EXIT_MESSAGE: u8 = 1;
/// Exit code when a file cannot be read.
const EX_DATAERR: u8 = 65;
/// What markers begin with, by which instants are found again.
pub(super) const MARKER: &str = "TCPKaliMsgTS-";
/// What markers end with.
const MARKER_END: &[u8] = b".";

/// What a command line sends.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// Sent again and again: over TCP one, over WebSocket as many as there are frames.
    pub(super) messages: Vec<Template>,
    /// Sent once on each connection.
    pub(super) first: Option<Template>,
    /// Whether instants are in it that are to be found in what comes back.
    pub(super) has_markers: bool,
    /// Whether the messages of WebSocket are binary.
    pub(super) is_binary: bool,
}

impl Sent {
    /// Bytes of all messages together, on average.
    pub(super) fn bytes(&self) -> f64 {
        let messages = self.messages.iter();
        let bytes = messages.map(|message| message.bytes_min() + message.bytes_max());
        bytes.sum::<usize>() as f64 / 2.0
    }

    /// Adds what is sent as one, if there is anything of it; says whether there was.
    fn add(&mut self, message: Template) -> bool {
        let is_any = message.bytes_max() > 0;
        self.messages.extend(is_any.then_some(message));
        is_any
    }
}

impl TcpkaliOptions {
    /// What is sent.
    pub(super) fn sent(&self, source: &mut TemplateSource<'_>) -> Result<Sent, Ending> {
        let mut sent = Sent::default();
        let mut has_text = false;
        let mut whole = Template::default();
        for message in &self.messages {
            let pieces = read_pieces(message, source)?;
            sent.has_markers |= pieces.iter().any(is_marker);
            if self.is_websocket {
                has_text |= add_frames(pieces, &mut sent)?;
            } else {
                pieces.into_iter().for_each(|piece| add(&mut whole, piece));
            }
        }
        sent.add(whole);
        ensure(!(sent.is_binary && has_text), || {
            error(
                "brunt: the messages of a run are all text or all binary: leave out \\{ws.binary}, \
                 or write it in each",
            )
        })?;
        let mut first = Template::default();
        for message in &self.first {
            let pieces = read_pieces(message, source)?;
            sent.has_markers |= pieces.iter().any(is_marker);
            pieces.into_iter().for_each(|piece| add(&mut first, piece));
        }
        sent.first = Some(first).filter(|first| first.bytes_max() > 0);
        Ok(sent)
    }

    /// What ends a reply; absent where replies are not looked at.
    pub(super) fn reply_pattern(&self, sent: &Sent) -> Result<Option<Pattern>, Ending> {
        if self.marks_messages || sent.has_markers {
            return Ok(Pattern::new(MARKER.as_bytes()));
        }
        let Some((typed, unescapes)) = &self.marker else {
            return Ok(None);
        };
        let typed = escaped(typed.clone().into_bytes(), *unescapes);
        let mut source = TemplateSource {
            read: &mut |_| Err(io::ErrorKind::Unsupported.into()),
            seed: 0,
        };
        let found = pieces(&typed, false, &mut source)
            .map_err(|_| error("--latency-marker: Failed to parse expression"))?;
        let [ExpressionPiece::Bytes(bytes)] = &found[..] else {
            return Err(error(
                "brunt: --latency-marker is the same on all connections, and holds no expression: \
                 write bytes that are in each reply",
            ));
        };
        let pattern = Pattern::new(bytes);
        let too_long = || error("brunt: --latency-marker has at most 1024 bytes");
        pattern.map(Some).ok_or_else(too_long)
    }
}

fn is_marker(piece: &ExpressionPiece) -> bool {
    match piece {
        ExpressionPiece::Marker => true,
        ExpressionPiece::Unframed(piece) => is_marker(piece),
        _ => false,
    }
}

fn read_pieces(
    message: &TypedMessage,
    source: &mut TemplateSource<'_>,
) -> Result<Vec<ExpressionPiece>, Ending> {
    let content = match &message.content {
        Content::Typed(typed) => typed.clone().into_bytes(),
        Content::File(path) => (source.read)(Path::new(path)).map_err(|reason| {
            Ending::error(&format!("{path}: {}", strerror(&reason)), EX_DATAERR)
        })?,
    };
    let found = pieces(&content, message.unescapes, source);
    found.map_err(|reason| Ending::error(&reason.to_string(), EXIT_MESSAGE))
}

/// Appends a piece of a message.
fn add(template: &mut Template, piece: ExpressionPiece) {
    match piece {
        ExpressionPiece::Bytes(bytes) => template.add_bytes(&bytes),
        ExpressionPiece::Place(place) => template.add_place(place),
        ExpressionPiece::Marker => {
            template.add_bytes(MARKER.as_bytes());
            template.add_place(Place::NowHexadecimal);
            template.add_bytes(MARKER_END);
        }
        ExpressionPiece::Frame(frame) => template.add_bytes(&frame.bytes()),
        ExpressionPiece::Unframed(piece) => add(template, *piece),
    }
}

/// Adds the messages of WebSocket that the pieces of one typed message make. Says whether one of
/// them is text.
fn add_frames(pieces: Vec<ExpressionPiece>, sent: &mut Sent) -> Result<bool, Ending> {
    let mut has_text = false;
    let mut text = Template::default();
    for piece in pieces {
        match piece {
            ExpressionPiece::Frame(frame) if frame.is_message() => {
                has_text |= sent.add(std::mem::take(&mut text)) || frame.opcode == Opcode::Text;
                sent.is_binary |= frame.opcode == Opcode::Binary;
                sent.messages.push(Template::constant(frame.payload));
            }
            ExpressionPiece::Frame(_) => {
                return Err(error(
                    "brunt: of the frames \\{ws...} brunt sends only those that are a whole text \
                     or binary message; `brunt ws://... --ping 1s` sends pings",
                ));
            }
            ExpressionPiece::Unframed(_) => {
                return Err(error(
                    "brunt: \\{raw} writes bytes between the frames of WebSocket, which breaks the \
                     protocol: leave out --ws, or \\{raw}",
                ));
            }
            piece => add(&mut text, piece),
        }
    }
    Ok(sent.add(text) || has_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_mean_what_tcpkali_sends() {
        for (text, bytes) in [
            ("PING\\r\\n", &b"PING\r\n"[..]),
            ("a\\tb\\\"c", b"atb\"c"),
            ("\\\\n", b"\\\\n"),
            ("\\101\\x41\\0z\\012\\07771", b"101A\0z\n\xff1"),
            ("\\x4\\xg\\x414", b"\x04\\xgA4"),
            ("end\\", b"end\\"),
        ] {
            assert_eq!(unescaped(text.as_bytes()), bytes, "{text}");
        }
    }

    fn found(text: &str, unescapes: bool) -> Result<Vec<ExpressionPiece>, ExpressionError> {
        let read = &mut |path: &Path| match path.to_str() {
            Some("a file") => Ok(b"of\\n".to_vec()),
            _ => Err(io::Error::from_raw_os_error(2)),
        };
        pieces(
            text.as_bytes(),
            unescapes,
            &mut TemplateSource { read, seed: 0 },
        )
    }

    fn bytes(text: &str) -> ExpressionPiece {
        ExpressionPiece::Bytes(text.as_bytes().to_vec())
    }

    fn pattern(text: &str) -> TextPattern {
        let (pattern, _) = TextPattern::parse_prefix(text.as_bytes()).expect(text);
        pattern
    }

    #[test]
    fn expressions_are_read_in_any_case() {
        let raw = |piece| ExpressionPiece::Unframed(Box::new(piece));
        let uid = |modulo| {
            ExpressionPiece::Place(Place::Connection {
                from_one: true,
                modulo: NonZeroU32::new(modulo),
            })
        };
        for unescapes in [true, false] {
            for (text, expected) in [
                ("a\\{connection.uid}b", vec![bytes("a"), uid(0), bytes("b")]),
                ("\\{connection.uid%10}", vec![uid(10)]),
                ("\\{ connection . uid % 7 % 8 }", vec![uid(7)]),
                ("\\{ raw \"c\" }d", vec![raw(bytes("c")), bytes("d")]),
                ("\\{raw {connection.uid}}", vec![raw(uid(0))]),
                (
                    "\\{re [a-z]{3}}!",
                    vec![
                        ExpressionPiece::Place(Place::Text(pattern("[a-z]{3}"))),
                        bytes("!"),
                    ],
                ),
                (
                    "\\{connection.re a|b}",
                    vec![ExpressionPiece::Place(Place::ConnectionText(pattern(
                        "a|b",
                    )))],
                ),
                ("\\{global.re [xy]z}", vec![bytes("xz")]),
                ("\\{message.marker}", vec![ExpressionPiece::Marker]),
                ("{\"a\": {}}", vec![bytes("{\"a\": {}}")]),
            ] {
                assert_eq!(found(text, unescapes), Ok(expected), "{text}");
            }
        }
    }

    #[test]
    fn escapes_are_read_where_that_is_asked_for() {
        assert_eq!(found("PING\\r\\n", true), Ok(vec![bytes("PING\r\n")]));
        assert_eq!(found("PING\\r\\n", false), Ok(vec![bytes("PING\\r\\n")]));
        // Two backslashes begin no expression.
        assert_eq!(found("\\\\{re a}", true), Ok(vec![bytes("\\\\{re a}")]));
        assert_eq!(found("\\{<a file>}", false), Ok(vec![bytes("of\\n")]));
        assert_eq!(found("\\{ < \"a file\" > }", true), Ok(vec![bytes("of\n")]));
        let raw = ExpressionPiece::Unframed(Box::new(bytes("a\"\n")));
        assert_eq!(found("\\{raw \"a\\\"\\n\"}", false), Ok(vec![raw]));
    }

    #[test]
    fn frames_are_spelt_out() {
        let frame = |text: &str| match &found(text, false).expect(text)[..] {
            [ExpressionPiece::Frame(frame)] => frame.bytes(),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(frame("\\{ws.ping}"), b"\x89\x80\0\0\0\0");
        assert_eq!(frame("\\{ws.text \"ab\" \"c\"}"), b"\x81\x83\0\0\0\0abc");
        assert_eq!(
            frame("\\{ws.binary <a file> ...}"),
            b"\x02\x84\0\0\0\0of\\n"
        );
        assert_eq!(frame("\\{ws.cont rsv1 rsv3}"), b"\xd0\x80\0\0\0\0");
        let long = frame(&format!("\\{{ws.text \"{}\"}}", "x".repeat(126)));
        assert_eq!(&long[..4], b"\x81\xfe\0\x7e");
        let longer = frame(&format!("\\{{ws.text \"{}\"}}", "x".repeat(65_536)));
        assert_eq!(&longer[..10], b"\x81\xff\0\0\0\0\0\x01\0\0");
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for text in [
            "\\{",
            "\\{}",
            "\\{connection",
            "\\{connection.index}",
            "\\{connection.uid%}",
            "\\{connection.uid%0}",
            "\\{connection.uid",
            "\\{raw}",
            "\\{raw \"x}",
            "\\{ws.}",
            "\\{ws.nothing}",
            "\\{message}",
            "\\{global.uid}",
            "\\{<unclosed}",
        ] {
            let error = found(text, true).expect_err(text);
            assert!(
                matches!(error, ExpressionError::Unknown(_)),
                "{text}: {error:?}"
            );
        }
        assert!(matches!(
            found("\\{re }", true),
            Err(ExpressionError::Text(..))
        ));
        assert_eq!(
            found("\\{connection.ptr}", true),
            Err(ExpressionError::Pointer)
        );
        let missing = found("\\{<none>}", true).expect_err("no such file");
        assert_eq!(
            missing.to_string(),
            "Can't open \"none\": No such file or directory"
        );
        let nested = format!("\\{{{}", "raw {".repeat(100));
        assert!(found(&nested, true).is_err());
    }
}
