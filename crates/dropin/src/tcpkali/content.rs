//! What is sent: tcpkali's messages as templates of brunt's.

use std::io;
use std::path::Path;

use brunt_proto::messages::{Pattern, Place, Template};

use super::expression::{ExpressionError, Piece, pieces, unescaped};
use super::options::{Content, Message, Options, error};
use crate::Ending;
use crate::ending::strerror;

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
        Content::File(path) => read(path).map_err(|reason| {
            Ending::error(
                &format!("{}: {}", path.display(), strerror(&reason)),
                EX_DATAERR,
            )
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
