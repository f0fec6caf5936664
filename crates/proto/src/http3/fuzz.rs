//! Bytes of any kind given to the readers of streams and to QPACK, and what must hold then; for
//! fuzzing, and for the tests.

use super::error::ReplyError;
use super::frame::Side;
use super::message::ReplyReader;
use super::peer::{Peer, PeerEvent, PeerStream};
use super::qpack::{self, Bytes, QpackError};
use super::{ConnectionError, KnownHead, Reply, RequestPart, RequestReadError, RequestReader};
use crate::fields::coding::Keep;
use crate::fields::reply::Meaning;
use crate::{BodiesWanted, Body, Limits};

/// What a request stream gave to its client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReplyOutcome {
    pub(super) ending: Result<Reply, ReplyError>,
    pub(super) body: Option<Body>,
    pub(super) overhead_bytes: u64,
}

/// Hands the pieces of a whole stream to a reader of replies; checks the account of bytes after
/// each call.
pub(super) fn read_reply<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    is_head: bool,
    limits: &Limits,
    known: &mut KnownHead,
) -> ReplyOutcome {
    let mut reader = ReplyReader::new(is_head);
    let (mut received, mut overhead_bytes) = (0, 0);
    for piece in pieces {
        let taken = reader.receive(piece, 7, limits, known);
        received += piece.len() as u64;
        overhead_bytes += reader.take_overhead();
        assert_eq!(received, reader.pending_bytes() + overhead_bytes);
        if let Err(error) = taken {
            return ReplyOutcome {
                ending: Err(error),
                body: None,
                overhead_bytes,
            };
        }
    }
    let ending = reader.end();
    let body = reader.take_body();
    match &ending {
        Ok(reply) => {
            let bytes = reply.head_bytes + reply.body_bytes;
            assert_eq!(bytes, reader.pending_bytes());
            assert_eq!(reply.first_byte_ns, 7);
            assert_eq!(body.is_some(), reply.status >= limits.bodies.from_status);
        }
        Err(_) => assert_eq!(body, None),
    }
    ReplyOutcome {
        ending,
        body,
        overhead_bytes,
    }
}

/// What a request stream gave to its server: the parts, those of the content as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RequestOutcome {
    pub(super) head: Option<Vec<u8>>,
    pub(super) content: Vec<u8>,
    pub(super) trailers: Option<Vec<u8>>,
    pub(super) ending: Option<RequestReadError>,
}

/// Hands the pieces of a whole stream to a reader of requests. Content-Length is as given.
pub(super) fn read_request<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    content_length: Option<u64>,
    head_bytes_max: u32,
) -> RequestOutcome {
    let mut reader = RequestReader::default();
    let mut outcome = RequestOutcome::default();
    let mut received = 0;
    for mut piece in pieces {
        received += piece.len() as u64;
        loop {
            let is_head = match reader.receive(&mut piece, head_bytes_max) {
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(reader.wire_bytes() + piece.len() as u64, received);
                    outcome.ending = Some(error);
                    return outcome;
                }
                Ok(Some(RequestPart::Head(section))) => {
                    assert!(section.len() <= head_bytes_max as usize);
                    assert_eq!(outcome.head.replace(section.to_vec()), None);
                    true
                }
                Ok(Some(RequestPart::Content(content))) => {
                    assert!(!content.is_empty() && outcome.head.is_some());
                    outcome.content.extend_from_slice(content);
                    false
                }
                Ok(Some(RequestPart::Trailers(section))) => {
                    assert!(section.len() <= head_bytes_max as usize);
                    assert_eq!(outcome.trailers.replace(section.to_vec()), None);
                    false
                }
                Ok(Some(RequestPart::Framing)) => false,
            };
            if is_head {
                reader.set_content_length(content_length);
            }
        }
        assert!(piece.is_empty());
        assert_eq!(reader.wire_bytes(), received);
    }
    outcome.ending = reader.end().err();
    if outcome.ending.is_none() {
        assert!(outcome.head.is_some());
        assert!(content_length.is_none_or(|length| length == outcome.content.len() as u64));
    }
    outcome
}

/// What the peer's streams gave, each event with the number of its stream.
pub(super) type PeerOutcome = (Vec<(usize, PeerEvent)>, Result<(), ConnectionError>);

/// How many streams [`read_peer`] knows.
pub(super) const STREAMS: usize = 4;

/// Hands bytes of streams to what reads the peer; with `step`, in pieces of so many bytes.
pub(super) fn read_peer(parts: &[(usize, &[u8])], side: Side, step: usize) -> PeerOutcome {
    let mut peer = Peer::new(side);
    let mut streams = [PeerStream::default(); STREAMS];
    let mut events = Vec::new();
    for &(number, bytes) in parts {
        for mut piece in bytes.chunks(step) {
            loop {
                match peer.receive(&mut streams[number], &mut piece) {
                    Ok(Some(event)) => {
                        let is_settings = matches!(event, PeerEvent::Settings);
                        assert!(peer.has_settings() || !is_settings);
                        events.push((number, event));
                    }
                    Ok(None) => break,
                    Err(error) => return (events, Err(error)),
                }
            }
            assert!(piece.is_empty());
        }
    }
    (events, Ok(()))
}

/// The first byte says whose stream it is and how long pieces are, the second gives limits; the
/// others are read whole and in pieces, which must not matter.
pub fn fuzz_http3(data: &[u8]) {
    let [choice, limit, bytes @ ..] = data else {
        return;
    };
    let step = usize::from(choice & 0x0f) + 1;
    let limits = Limits {
        head_bytes: u32::from(*limit) * 4 + 16,
        header_fields: 5,
        interim_replies: 2,
        bodies: BodiesWanted {
            from_status: 400,
            bytes_max: 8,
            heads: false,
        },
    };
    match choice >> 4 & 3 {
        0 | 1 => {
            let is_head = choice & 0x10 != 0;
            let mut known = KnownHead::default();
            let whole = read_reply([bytes], is_head, &limits, &mut known);
            for mut known in [known, KnownHead::default()] {
                let cut = read_reply(bytes.chunks(step), is_head, &limits, &mut known);
                // What is behind an error is never looked at.
                assert_eq!((whole.ending, &whole.body), (cut.ending, &cut.body));
                assert!(whole.ending.is_err() || whole.overhead_bytes == cut.overhead_bytes);
            }
        }
        2 => {
            let length = (choice & 0x40 != 0).then_some(u64::from(*limit & 7));
            let whole = read_request([bytes], length, limits.head_bytes);
            let cut = read_request(bytes.chunks(step), length, limits.head_bytes);
            assert_eq!(whole, cut);
        }
        _ => {
            let side = if choice & 0x40 == 0 {
                Side::Client
            } else {
                Side::Server
            };
            let parts = parts(bytes);
            let whole = read_peer(&parts, side, usize::MAX);
            assert_eq!(whole, read_peer(&parts, side, step));
        }
    }
}

/// Each part of the streams after a byte with the number of the stream and the part's length.
fn parts(bytes: &[u8]) -> Vec<(usize, &[u8])> {
    let (mut rest, mut parts) = (bytes, Vec::new());
    while let Some((&first, tail)) = rest.split_first() {
        let (part, later) = tail.split_at(tail.len().min(usize::from(first >> 2)));
        parts.push((usize::from(first) % STREAMS, part));
        rest = later;
    }
    parts
}

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

/// A field section: what gives fields as they are and what gives their meaning alone agree, though
/// one passes over values that the other decodes, and fields come back when they are encoded again.
pub fn fuzz_qpack(data: &[u8]) {
    let mut scratch = Vec::new();
    let mut fields = Fields::new();
    let decoded = decode(data, &mut fields);
    let mut meanings = Vec::new();
    let lean = qpack::decode::<Meaning>(data, &mut scratch, |field, bytes| {
        meanings.push((Meaning::keep(field), bytes));
    });
    assert_eq!(decoded, lean);
    let of_fields = fields.iter().map(|(name, value)| {
        let meaning = Meaning::field(Meaning::name(name), value);
        (Meaning::keep(meaning), name.len() + value.len())
    });
    assert_eq!(of_fields.collect::<Vec<_>>(), meanings);
    if decoded.is_err() {
        return;
    }
    for is_secret in [false, true] {
        let mut section = Vec::new();
        qpack::encode_prefix(&mut section);
        for (name, value) in &fields {
            qpack::encode_field(&mut section, name, value, is_secret);
        }
        let mut again = Fields::new();
        assert_eq!(decode(&section, &mut again), Ok(()));
        assert_eq!(again, fields);
    }
}

fn decode(section: &[u8], fields: &mut Fields) -> Result<(), QpackError> {
    qpack::decode::<Bytes>(section, &mut Vec::new(), |(name, value), bytes| {
        assert_eq!(bytes, name.len() + value.len());
        fields.push((name.to_vec(), value.to_vec()));
    })
}
