//! Bytes of any kind given to the client and to HPACK, and what must hold then; for fuzzing, and
//! for the tests.

use std::slice::from_ref;

use super::hpack::{Bytes, Decoder, HpackError, Indexing, Keep, TABLE_BYTES, encode_field};
use super::{Client, ClientSettings, ConnectionError, Event, KnownHead, Request, Template, frame};
use crate::fields::reply::Meaning;
use crate::{BodiesWanted, Body, Limits};

/// What a connection is used for.
#[derive(Clone, Debug)]
pub(super) struct Use {
    pub(super) template: Template,
    pub(super) limits: Limits,
    /// Streams in flight at most.
    pub(super) depth: u32,
    /// Requests in all; sent as soon as they may be.
    pub(super) requests: u32,
}

/// What a connection gave until its bytes were used up, or an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FuzzOutcome {
    pub(super) events: Vec<Event>,
    /// Of the replies whose bodies were wanted.
    pub(super) bodies: Vec<Body>,
    pub(super) ending: Result<(), ConnectionError>,
    /// What was sent after the preface.
    pub(super) sent: Vec<u8>,
    pub(super) overhead_bytes: u64,
}

/// Hands the pieces to a client; checks the account of bytes after each call, and what is sent for
/// what is received.
pub(super) fn talk<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, how: &Use) -> FuzzOutcome {
    let mut client = Client::new(how.depth, ClientSettings::default());
    let mut known = KnownHead::default();
    let mut sent = Vec::new();
    client.open(&mut sent);
    sent.clear();

    let (mut events, mut bodies) = (Vec::new(), Vec::new());
    let mut ending = Ok(());
    let (mut received, mut settled, mut overhead_bytes) = (0, 0, 0);
    let mut requests_left = how.requests;
    'pieces: for piece in pieces {
        let mut rest = piece;
        loop {
            let before = sent.len();
            let progress = client.receive(
                rest,
                7,
                from_ref(&how.template),
                &how.limits,
                &mut known,
                &mut sent,
            );
            overhead_bytes += client.take_overhead();
            let (consumed, event) = match progress {
                Ok(progress) => (progress.consumed, progress.event),
                Err(error) => {
                    received += rest.len() as u64;
                    assert_eq!(received, settled + overhead_bytes + client.pending_bytes());
                    ending = Err(error);
                    break 'pieces;
                }
            };
            assert!(event.is_some() || consumed == rest.len());
            if how.template.body().is_empty() {
                assert!(sent.len() - before <= 2 * consumed + 32);
            }
            rest = &rest[consumed..];
            received += consumed as u64;
            settled += match event {
                Some(Event::Reply { reply, .. }) => reply.head_bytes + reply.body_bytes,
                Some(Event::Failed {
                    discarded_bytes, ..
                }) => discarded_bytes,
                Some(Event::Ready | Event::GoAway { .. }) | None => 0,
            };
            assert_eq!(received, settled + overhead_bytes + client.pending_bytes());
            let Some(event) = event else { break };
            let body = client.take_body();
            let is_wanted = matches!(
                event,
                Event::Reply { reply, .. } if reply.status >= how.limits.bodies.from_status
            );
            assert_eq!(body.is_some(), is_wanted);
            bodies.extend(body);
            events.push(event);
            while requests_left > 0 && client.in_flight() < client.depth() {
                client.request(from_ref(&how.template), 0, &mut sent);
                requests_left -= 1;
            }
            while client.wants_resume() {
                let held = std::mem::take(&mut sent);
                client.resume(from_ref(&how.template), &mut sent);
                sent.splice(..0, held);
            }
        }
    }
    let pending_bytes = client.pending_bytes();
    let (mut streams, mut abandoned_bytes) = (0, 0);
    let in_flight = client.in_flight();
    while let Some((place, bytes)) = client.abandon() {
        assert!(place < how.depth);
        streams += 1;
        abandoned_bytes += bytes;
    }
    assert_eq!(streams, in_flight);
    assert_eq!((client.in_flight(), client.depth()), (0, 0));
    assert_eq!(client.pending_bytes() + abandoned_bytes, pending_bytes);
    FuzzOutcome {
        events,
        bodies,
        ending,
        sent,
        overhead_bytes,
    }
}

/// A server's bytes, whole and in pieces: the same events, the same bytes sent, every byte
/// accounted for. The first byte chooses pieces and request, the second the limits.
pub fn fuzz_http2(data: &[u8]) {
    let [choice, limit, rest @ ..] = data else {
        return;
    };
    let step = usize::from(choice & 0x0f) + 1;
    let body = if choice & 0x10 == 0 {
        &b""[..]
    } else {
        &[b'x'; 70_000]
    };
    let Ok(template) = Template::new(&Request {
        method: if choice & 0x20 == 0 { "GET" } else { "HEAD" },
        scheme: "http",
        authority: "localhost",
        path: "/",
        headers: &[],
        body,
    }) else {
        return;
    };
    let how = Use {
        template,
        limits: Limits {
            head_bytes: u32::from(*limit) * 16 + 16,
            header_fields: 10,
            interim_replies: 2,
            bodies: BodiesWanted {
                from_status: 400,
                bytes_max: 8,
                heads: false,
            },
        },
        depth: 3,
        requests: 50,
    };
    let mut wire = Vec::new();
    if choice & 0x40 == 0 {
        frame::write_settings(&mut wire, &[]);
    }
    wire.extend_from_slice(rest);
    let whole = talk([&wire[..]], &how);
    let cut = talk(wire.chunks(step), &how);
    assert_eq!((whole.events, whole.ending), (cut.events, cut.ending));
    assert_eq!(whole.sent, cut.sent);
}

/// Field blocks, each with a length before it: both ways of keeping fields agree, though one passes
/// over values that the other decodes, and fields come back when they are encoded again.
pub fn fuzz_hpack(data: &[u8]) {
    let mut rest = data;
    let mut scratch = Vec::new();
    let mut full = Decoder::<Bytes>::new(TABLE_BYTES / 8);
    let mut lean = Decoder::<Meaning>::new(TABLE_BYTES / 8);
    while let Some((&length, tail)) = rest.split_first() {
        let (block, later) = tail.split_at(tail.len().min(length.into()));
        rest = later;
        let mut fields: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let decoded = full.decode(block, &mut scratch, |(name, value), bytes| {
            assert_eq!(bytes, name.len() + value.len());
            fields.push((name.to_vec(), value.to_vec()));
        });
        let mut meanings = Vec::new();
        let decoded_lean = lean.decode(block, &mut scratch, |field, bytes| {
            meanings.push((Meaning::keep(field), bytes));
        });
        assert_eq!(decoded, decoded_lean);
        let of_full = fields.iter().map(|(name, value)| {
            let meaning = Meaning::field(Meaning::name(name), value);
            (Meaning::keep(meaning), name.len() + value.len())
        });
        assert_eq!(of_full.collect::<Vec<_>>(), meanings);
        if decoded.is_err() {
            return;
        }
        for indexing in [Indexing::Insert, Indexing::Without, Indexing::Never] {
            assert_eq!(encoded_and_decoded(&fields, indexing).as_ref(), Ok(&fields));
        }
    }
}

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn encoded_and_decoded(fields: &Fields, indexing: Indexing) -> Result<Fields, HpackError> {
    let mut block = Vec::new();
    for (name, value) in fields {
        encode_field(&mut block, name, value, indexing);
    }
    let mut found = Vec::new();
    let mut decoder = Decoder::<Bytes>::new(TABLE_BYTES);
    decoder.decode(&block, &mut Vec::new(), |(name, value), _| {
        found.push((name.to_vec(), value.to_vec()));
    })?;
    Ok(found)
}
