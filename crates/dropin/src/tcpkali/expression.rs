//! Messages as they are typed for tcpkali: bytes, and expressions in `\{...}`, and as templates of
//! brunt's.

use std::io;
use std::num::NonZeroU32;
use std::path::Path;

use brunt_proto::messages::{Pattern, Place, Template, TextPattern, TextPatternError};
use thiserror::Error;

use super::options::{Content, Message, Options, error};
use crate::Ending;
use crate::ending::strerror;

/// Most expressions inside one another.
const DEPTH_MAX: u32 = 16;

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Constant bytes.
    Bytes(Vec<u8>),
    /// What is another on each connection or in each message.
    Place(Place),
    /// The instant, to be found in what comes back.
    Marker,
    /// A frame of WebSocket.
    Frame(Frame),
    /// What no frame of WebSocket is put around.
    Unframed(Box<Self>),
}

/// A frame that is spelt out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    /// Opcode of the frame.
    pub opcode: u8,
    /// The three reserved bits of the frame.
    pub reserved: u8,
    /// Whether the frame ends its message.
    pub is_last: bool,
    /// Payload of the frame.
    pub payload: Vec<u8>,
}

impl Frame {
    /// The frame as tcpkali sends it, with a mask of zeros.
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.is_last) << 7 | self.reserved << 4 | self.opcode];
        match self.payload.len() {
            length @ ..=125 => bytes.push(0x80 | length as u8),
            length @ ..=0xffff => {
                bytes.push(0x80 | 126);
                bytes.extend((length as u16).to_be_bytes());
            }
            length => {
                bytes.push(0x80 | 127);
                bytes.extend((length as u64).to_be_bytes());
            }
        }
        bytes.extend([0; 4]);
        bytes.extend(&self.payload);
        bytes
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

/// What reads a file.
pub(super) type Read<'a> = &'a mut dyn FnMut(&Path) -> io::Result<Vec<u8>>;

/// The parts of a message. With `unescapes`, backslashes begin escapes; expressions are looked for
/// in any case. `read` gives the content of files, `random` what is drawn once.
///
/// # Errors
///
/// An expression is none, has no end, or names a file that cannot be read.
pub(super) fn pieces(
    text: &[u8],
    unescapes: bool,
    read: Read<'_>,
    random: &mut dyn FnMut() -> u64,
) -> Result<Vec<Piece>, ExpressionError> {
    let mut pieces = Vec::new();
    let mut bytes = Vec::new();
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        match text.get(at + 1) {
            Some(b'{') if byte == b'\\' => {
                let mut expression = Expression {
                    text,
                    start: at + 2,
                    at: at + 2,
                    unescapes,
                    read,
                    random,
                };
                let piece = expression.whole(0)?;
                at = expression.at;
                add_bytes(&mut pieces, std::mem::take(&mut bytes), unescapes);
                pieces.push(piece);
                continue;
            }
            // Not the beginning of an expression, whatever follows.
            Some(b'\\') if byte == b'\\' => {
                bytes.extend_from_slice(b"\\\\");
                at += 2;
                continue;
            }
            _ => bytes.push(byte),
        }
        at += 1;
    }
    add_bytes(&mut pieces, bytes, unescapes);
    Ok(pieces)
}

fn add_bytes(pieces: &mut Vec<Piece>, bytes: Vec<u8>, unescapes: bool) {
    if !bytes.is_empty() {
        pieces.push(Piece::Bytes(if unescapes {
            unescaped(&bytes)
        } else {
            bytes
        }));
    }
}

/// An expression as it is read.
struct Expression<'a, 'b> {
    text: &'a [u8],
    /// Where the expression begins, behind its brace.
    start: usize,
    at: usize,
    unescapes: bool,
    read: Read<'b>,
    random: &'b mut dyn FnMut() -> u64,
}

impl Expression<'_, '_> {
    fn unknown(&self) -> ExpressionError {
        ExpressionError::Unknown(self.shown())
    }

    fn shown(&self) -> String {
        let rest = &self.text[self.start.min(self.text.len())..];
        let end = rest.iter().position(|&byte| byte == b'}');
        let shown = &rest[..end.map_or(rest.len(), |end| end + 1)];
        String::from_utf8_lossy(shown).into_owned()
    }

    fn skip_blanks(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn takes(&mut self, token: &[u8]) -> bool {
        self.skip_blanks();
        let is_next = self.text[self.at..].starts_with(token);
        if is_next {
            self.at += token.len();
        }
        is_next
    }

    /// Takes the first of `words` that comes next; gives the meaning that stands beside it.
    fn one_of<T: Copy>(&mut self, words: &[(&str, T)]) -> Option<T> {
        let found = words.iter().find(|(word, _)| self.takes(word.as_bytes()));
        found.map(|(_, meaning)| *meaning)
    }

    /// All up to the brace that ends it.
    fn whole(&mut self, depth: u32) -> Result<Piece, ExpressionError> {
        let piece = self.piece(depth)?;
        match self.takes(b"}") {
            true => Ok(piece),
            false => Err(self.unknown()),
        }
    }

    fn piece(&mut self, depth: u32) -> Result<Piece, ExpressionError> {
        if depth > DEPTH_MAX {
            return Err(self.unknown());
        }
        if self.takes(b"raw") {
            let piece = if self.takes(b"{") {
                self.whole(depth + 1)?
            } else {
                let data = self.data()?.ok_or_else(|| self.unknown())?;
                Piece::Bytes(self.again(data))
            };
            return Ok(Piece::Unframed(Box::new(piece)));
        }
        if self.takes(b"global") {
            let pattern = self.pattern_behind_dot()?;
            let mut bytes = Vec::new();
            pattern.render(&mut || (self.random)(), &mut bytes);
            return Ok(Piece::Bytes(bytes));
        }
        if self.takes(b"connection") {
            let after = self.at;
            if self.takes(b".") {
                if self.takes(b"uid") {
                    return self.numbered();
                }
                if self.takes(b"ptr") {
                    return Err(ExpressionError::Pointer);
                }
            }
            self.at = after;
            return self
                .pattern_behind_dot()
                .map(|pattern| Piece::Place(Place::ConnectionText(pattern)));
        }
        if self.takes(b"re") {
            return self
                .pattern()
                .map(|pattern| Piece::Place(Place::Text(pattern)));
        }
        if self.takes(b"message") {
            let is_marker = self.takes(b".") && self.takes(b"marker");
            return match is_marker {
                true => Ok(Piece::Marker),
                false => Err(self.unknown()),
            };
        }
        if self.takes(b"ws") {
            return self.frame().map(Piece::Frame);
        }
        let data = self.data()?.ok_or_else(|| self.unknown())?;
        Ok(Piece::Bytes(self.again(data)))
    }

    /// `-e` holds for what stands in quotation marks and files, too.
    fn again(&self, data: Vec<u8>) -> Vec<u8> {
        match self.unescapes {
            true => unescaped(&data),
            false => data,
        }
    }

    fn numbered(&mut self) -> Result<Piece, ExpressionError> {
        let mut modulo: Option<NonZeroU32> = None;
        while self.takes(b"%") {
            self.skip_blanks();
            let rest = &self.text[self.at..];
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let number = std::str::from_utf8(&rest[..digits]).unwrap_or_default();
            let number: NonZeroU32 = number.parse().map_err(|_| self.unknown())?;
            if modulo.is_some_and(|by| by > number) {
                // The rest of a rest by something smaller.
                return Err(self.unknown());
            }
            self.at += digits;
            modulo.get_or_insert(number);
        }
        Ok(Piece::Place(Place::Connection {
            from_one: true,
            modulo,
        }))
    }

    fn pattern_behind_dot(&mut self) -> Result<TextPattern, ExpressionError> {
        match self.takes(b".") && self.takes(b"re") {
            true => self.pattern(),
            false => Err(self.unknown()),
        }
    }

    fn pattern(&mut self) -> Result<TextPattern, ExpressionError> {
        self.skip_blanks();
        let found = TextPattern::parse_prefix(&self.text[self.at..]);
        let (pattern, taken) = found.map_err(|error| ExpressionError::Text(self.shown(), error))?;
        self.at += taken;
        Ok(pattern)
    }

    fn frame(&mut self) -> Result<Frame, ExpressionError> {
        let opcodes = [
            ("continuation", 0),
            ("cont", 0),
            ("text", 1),
            ("binary", 2),
            ("close", 8),
            ("ping", 9),
            ("pong", 10),
        ];
        if !self.takes(b".") {
            return Err(self.unknown());
        }
        let opcode = self.one_of(&opcodes).ok_or_else(|| self.unknown())?;
        let mut frame = Frame {
            opcode,
            reserved: 0,
            is_last: true,
            payload: Vec::new(),
        };
        loop {
            if let Some(bit) = self.one_of(&[("rsv1", 4), ("rsv2", 2), ("rsv3", 1)]) {
                frame.reserved |= bit;
            } else if self.takes(b"...") {
                frame.is_last = false;
            } else if let Some(data) = self.data()? {
                frame.payload.extend(self.again(data));
            } else {
                return Ok(frame);
            }
        }
    }

    /// What stands in quotation marks, or in the file between angle brackets.
    fn data(&mut self) -> Result<Option<Vec<u8>>, ExpressionError> {
        if self.takes(b"\"") {
            let begin = self.at;
            let mut is_escaped = false;
            while let Some(&byte) = self.text.get(self.at) {
                self.at += 1;
                match byte {
                    b'"' if !is_escaped => {
                        return Ok(Some(unescaped(&self.text[begin..self.at - 1])));
                    }
                    b'\\' => is_escaped = !is_escaped,
                    _ => is_escaped = false,
                }
            }
            return Err(self.unknown());
        }
        if !self.takes(b"<") {
            return Ok(None);
        }
        let rest = &self.text[self.at..];
        let end = rest.iter().position(|&byte| byte == b'>');
        let end = end.ok_or_else(|| self.unknown())?;
        let name = rest[..end].trim_ascii();
        let quoted = name
            .strip_prefix(b"\"")
            .and_then(|name| name.strip_suffix(b"\""));
        let name = std::str::from_utf8(quoted.unwrap_or(name)).map_err(|_| self.unknown())?;
        self.at += end + 1;
        let content = (self.read)(Path::new(name));
        let content =
            content.map_err(|reason| ExpressionError::File(name.into(), strerror(&reason)));
        content.map(Some)
    }
}

/// What a text with escapes means: `\n`, `\r`, `\f`, `\b`, `\xHH` with one or two digits, and
/// octal digits behind `\0`. Two backslashes stay two, and one before anything else is left out,
/// so that `\t` is a t.
pub(super) fn unescaped(text: &[u8]) -> Vec<u8> {
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
            b'x' => match octet(rest, 16, 2) {
                (_, 0) => bytes.extend_from_slice(b"\\x"),
                (value, digits) => {
                    bytes.push(value);
                    rest = &rest[digits..];
                }
            },
            b'0' => {
                let (value, digits) = octet(rest, 8, 3);
                bytes.push(value);
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
/// Opcodes of frames that carry messages.
const TEXT: u8 = 1;
const BINARY: u8 = 2;

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
        let bytes = self
            .messages
            .iter()
            .map(|it| it.bytes_min() + it.bytes_max());
        bytes.sum::<usize>() as f64 / 2.0
    }
}

impl Options {
    /// What is sent; `read` gives the content of files, `seed` is that of what is drawn once.
    pub(super) fn sent(
        &self,
        seed: u64,
        read: &mut dyn FnMut(&Path) -> io::Result<Vec<u8>>,
    ) -> Result<Sent, Ending> {
        let mut state = seed;
        let mut random = || {
            // Knuth's MMIX generator; the high bits are the good ones.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state
        };
        let mut sent = Sent::default();
        let mut kinds = Vec::new();
        let mut whole = Template::default();
        for message in &self.messages {
            let pieces = read_pieces(message, read, &mut random)?;
            sent.has_markers |= pieces.iter().any(is_marker);
            match self.is_websocket {
                true => add_frames(pieces, &mut sent.messages, &mut kinds)?,
                false => pieces.into_iter().for_each(|piece| add(&mut whole, piece)),
            }
        }
        if whole.bytes_max() > 0 {
            sent.messages.push(whole);
        }
        sent.is_binary = kinds.contains(&BINARY);
        if sent.is_binary && kinds.contains(&TEXT) {
            return Err(error(
                "brunt: the messages of a run are all text or all binary: leave out \\{ws.binary}, \
                 or write it in each",
            ));
        }
        let mut first = Template::default();
        for message in &self.first {
            for piece in read_pieces(message, read, &mut random)? {
                sent.has_markers |= is_marker(&piece);
                add(&mut first, piece);
            }
        }
        sent.first = Some(first).filter(|first| first.bytes_max() > 0);
        Ok(sent)
    }

    /// What ends a reply; absent where replies are not looked at.
    pub(super) fn reply_pattern(&self, sent: &Sent) -> Result<Option<Pattern>, Ending> {
        if self.marks_messages || sent.has_markers {
            return Ok(Pattern::new(MARKER.as_bytes()));
        }
        let Some(marker) = &self.marker else {
            return Ok(None);
        };
        let Content::Typed(typed) = &marker.content else {
            return Err(error("--latency-marker: Failed to parse expression"));
        };
        let typed = match marker.unescapes {
            true => unescaped(typed.as_bytes()),
            false => typed.clone().into_bytes(),
        };
        let none = &mut |_: &Path| Err(io::ErrorKind::Unsupported.into());
        let found = pieces(&typed, false, none, &mut || 0)
            .map_err(|_| error("--latency-marker: Failed to parse expression"))?;
        let [Piece::Bytes(bytes)] = &found[..] else {
            return Err(error(
                "brunt: --latency-marker is the same on all connections, and holds no expression: \
                 write bytes that are in each reply",
            ));
        };
        let pattern = Pattern::new(bytes);
        let pattern =
            pattern.ok_or_else(|| error("brunt: --latency-marker has at most 1024 bytes"));
        pattern.map(Some)
    }
}

fn is_marker(piece: &Piece) -> bool {
    match piece {
        Piece::Marker => true,
        Piece::Unframed(piece) => is_marker(piece),
        _ => false,
    }
}

fn read_pieces(
    message: &Message,
    read: &mut dyn FnMut(&Path) -> io::Result<Vec<u8>>,
    random: &mut dyn FnMut() -> u64,
) -> Result<Vec<Piece>, Ending> {
    let content = match &message.content {
        Content::Typed(typed) => typed.clone().into_bytes(),
        Content::File(path) => read(Path::new(path)).map_err(|reason| {
            Ending::error(&format!("{path}: {}", strerror(&reason)), EX_DATAERR)
        })?,
    };
    let found = pieces(&content, message.unescapes, read, random);
    found.map_err(|reason: ExpressionError| Ending::error(&reason.to_string(), EXIT_MESSAGE))
}

/// Appends a piece of a message.
fn add(template: &mut Template, piece: Piece) {
    match piece {
        Piece::Bytes(bytes) => template.add_bytes(&bytes),
        Piece::Place(place) => template.add_place(place),
        Piece::Marker => {
            template.add_bytes(MARKER.as_bytes());
            template.add_place(Place::NowHexadecimal);
            template.add_bytes(MARKER_END);
        }
        Piece::Frame(frame) => template.add_bytes(&frame.bytes()),
        Piece::Unframed(piece) => add(template, *piece),
    }
}

/// Appends the messages of WebSocket that the pieces of one typed message make, and their opcodes.
fn add_frames(
    pieces: Vec<Piece>,
    messages: &mut Vec<Template>,
    kinds: &mut Vec<u8>,
) -> Result<(), Ending> {
    let mut text = Template::default();
    let end_text = |text: &mut Template, messages: &mut Vec<Template>| {
        let text = std::mem::take(text);
        let is_one = text.bytes_max() > 0;
        messages.extend(is_one.then_some(text));
        is_one
    };
    for piece in pieces {
        match piece {
            Piece::Frame(frame) => {
                if !matches!(frame.opcode, TEXT | BINARY) || frame.reserved != 0 || !frame.is_last {
                    return Err(error(
                        "brunt: of the frames \\{ws...} brunt sends only those that are a whole \
                         text or binary message; `brunt ws://... --ping 1s` sends pings",
                    ));
                }
                if end_text(&mut text, messages) {
                    kinds.push(TEXT);
                }
                messages.push(Template::constant(frame.payload));
                kinds.push(frame.opcode);
            }
            Piece::Unframed(_) => {
                return Err(error(
                    "brunt: \\{raw} writes bytes between the frames of WebSocket, which breaks the \
                     protocol: leave out --ws, or \\{raw}",
                ));
            }
            piece => add(&mut text, piece),
        }
    }
    if end_text(&mut text, messages) {
        kinds.push(TEXT);
    }
    Ok(())
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

    fn found(text: &str, unescapes: bool) -> Result<Vec<Piece>, ExpressionError> {
        let read = &mut |path: &Path| match path.to_str() {
            Some("a file") => Ok(b"of\\n".to_vec()),
            _ => Err(io::Error::from_raw_os_error(2)),
        };
        pieces(text.as_bytes(), unescapes, read, &mut || 0)
    }

    fn bytes(text: &str) -> Piece {
        Piece::Bytes(text.as_bytes().to_vec())
    }

    fn pattern(text: &str) -> TextPattern {
        let (pattern, _) = TextPattern::parse_prefix(text.as_bytes()).expect(text);
        pattern
    }

    #[test]
    fn expressions_are_read_in_any_case() {
        let raw = |piece| Piece::Unframed(Box::new(piece));
        let uid = |modulo| {
            Piece::Place(Place::Connection {
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
                    vec![Piece::Place(Place::Text(pattern("[a-z]{3}"))), bytes("!")],
                ),
                (
                    "\\{connection.re a|b}",
                    vec![Piece::Place(Place::ConnectionText(pattern("a|b")))],
                ),
                ("\\{global.re [xy]z}", vec![bytes("xz")]),
                ("\\{message.marker}", vec![Piece::Marker]),
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
        let raw = Piece::Unframed(Box::new(bytes("a\"\n")));
        assert_eq!(found("\\{raw \"a\\\"\\n\"}", false), Ok(vec![raw]));
    }

    #[test]
    fn frames_are_spelt_out() {
        let frame = |text: &str| match &found(text, false).expect(text)[..] {
            [Piece::Frame(frame)] => frame.bytes(),
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
