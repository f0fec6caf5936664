//! Bytes of any kind given to the reader and to the client, and what must hold then; for fuzzing,
//! and for the tests.

use super::frame::{Opcode, mask, put_frame};
use super::reader::{FrameEvent, Reader, Rules, Side};
use super::{ClientEvent, Fault, Offer, Settings, WebSocketClient};
use crate::Limits;

/// What a reader gave until its bytes were used up, or a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FuzzOutcome {
    /// Each with the payload of the message or control frame.
    pub(super) events: Vec<(FrameEvent, Vec<u8>)>,
    pub(super) ending: Result<(), Fault>,
    pub(super) pending_bytes: u64,
}

/// Hands the pieces to a reader; checks the account of bytes after each call.
pub(super) fn read<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, rules: Rules) -> FuzzOutcome {
    let mut reader = Reader::default();
    let (mut events, mut payload) = (Vec::new(), Vec::new());
    let mut ending = Ok(());
    let (mut received, mut settled) = (0, 0);
    'pieces: for mut piece in pieces {
        loop {
            let progress = reader.receive(piece, rules, |part| {
                assert!(!part.bytes.is_empty());
                let start = payload.len();
                payload.extend_from_slice(part.bytes);
                if let Some(key) = part.key {
                    mask(&mut payload[start..], key);
                }
            });
            let progress = match progress {
                Ok(progress) => progress,
                Err(fault) => {
                    received += piece.len() as u64;
                    ending = Err(fault);
                    break 'pieces;
                }
            };
            assert!(progress.event.is_some() || progress.consumed == piece.len());
            received += progress.consumed as u64;
            piece = &piece[progress.consumed..];
            settled += match progress.event {
                Some(
                    FrameEvent::Message { wire_bytes, .. }
                    | FrameEvent::Ping { wire_bytes }
                    | FrameEvent::Pong { wire_bytes }
                    | FrameEvent::Close { wire_bytes, .. },
                ) => wire_bytes,
                None => 0,
            };
            assert_eq!(received, settled + reader.pending_bytes());
            match progress.event {
                Some(event @ FrameEvent::Message { payload_bytes, .. }) => {
                    assert_eq!(payload.len() as u64, payload_bytes);
                    assert!(!reader.is_in_message());
                    events.push((event, std::mem::take(&mut payload)));
                }
                Some(event) => events.push((event, reader.control_payload().to_vec())),
                None => break,
            }
        }
    }
    assert_eq!(received, settled + reader.pending_bytes());
    FuzzOutcome {
        events,
        ending,
        pending_bytes: reader.pending_bytes(),
    }
}

/// The first byte says who reads, how strictly, and how long pieces are; the others are read whole
/// and in pieces, which must not matter, and as those of a server by a client.
pub fn fuzz_frames(data: &[u8]) {
    let Some((&first, bytes)) = data.split_first() else {
        return;
    };
    let side = match first & 1 {
        0 => Side::Client,
        _ => Side::Server,
    };
    let rules = Rules {
        side,
        is_strict: first & 2 != 0,
    };
    let whole = read([bytes], rules);
    for length in [1, 2 + usize::from(first >> 3)] {
        assert_eq!(same_up_to_fault(read(bytes.chunks(length), rules)), {
            same_up_to_fault(whole.clone())
        });
    }
    if let (Side::Client, false, Ok(())) = (side, rules.is_strict, whole.ending) {
        talk(bytes, &whole);
    }
}

/// The outcome without the pending bytes of a call that failed: these depend on the pieces.
pub(super) fn same_up_to_fault(outcome: FuzzOutcome) -> FuzzOutcome {
    FuzzOutcome {
        pending_bytes: match outcome.ending {
            Ok(()) => outcome.pending_bytes,
            Err(_) => 0,
        },
        ..outcome
    }
}

/// An open client gives the same messages as its reader, and answers.
fn talk(bytes: &[u8], expected: &FuzzOutcome) {
    let key = [1, 2, 3, 4];
    let offer = Offer::new("/", "host", &[], &[]).expect("it is one");
    let limits = Limits::default();
    let settings = Settings {
        offer: &offer,
        limits: &limits,
    };
    let (mut client, mut out) = (WebSocketClient::default(), Vec::new());
    client.open(&offer, [7; 16], &mut out);
    let answer = answer_to(&out);
    out.clear();
    let progress = client.receive(&answer, settings, key, &mut out, |_| {});
    let taken = progress.map(|progress| (progress.consumed, progress.event));
    assert_eq!(taken, Ok((answer.len(), Some(ClientEvent::Open))));
    let mut rest = bytes;
    let (mut message_bytes, mut answered) = (0, Vec::new());
    let mut is_closed = false;
    for (event, payload) in &expected.events {
        if is_closed {
            break;
        }
        let progress = client.receive(rest, settings, key, &mut out, |_| {});
        let progress = progress.expect("the reader takes it");
        rest = &rest[progress.consumed..];
        match (event, progress.event) {
            (FrameEvent::Message { wire_bytes, .. }, Some(ClientEvent::Message { .. })) => {
                message_bytes += wire_bytes;
            }
            (FrameEvent::Ping { .. }, Some(ClientEvent::Ping)) => {
                put_frame(&mut answered, Opcode::Pong, payload, Some(key));
            }
            (FrameEvent::Pong { .. }, Some(ClientEvent::Pong)) => {}
            (FrameEvent::Close { code, .. }, Some(ClientEvent::Closed { code: given })) => {
                assert_eq!(*code, given);
                let payload = &payload[..payload.len().min(2)];
                put_frame(&mut answered, Opcode::Close, payload, Some(key));
                is_closed = true;
            }
            (event, given) => panic!("{event:?}, but the client says {given:?}"),
        }
    }
    assert_eq!(out, answered);
    let progress = client.receive(rest, settings, key, &mut out, |_| {});
    let taken = progress.map(|progress| (progress.consumed, progress.event));
    assert_eq!(taken, Ok((rest.len(), None)));
    let accounted = client.take_overhead() + client.pending_bytes() + message_bytes;
    assert_eq!(accounted, (answer.len() + bytes.len()) as u64);
}

/// A server's response that accepts an upgrade.
pub(super) fn answer_to(upgrade: &[u8]) -> Vec<u8> {
    let key = &upgrade[upgrade.len() - 28..upgrade.len() - 4];
    assert!(super::is_key(key));
    let mut answer = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
        Connection: Upgrade\r\nSec-WebSocket-Accept: "
        .to_vec();
    answer.extend_from_slice(&super::accept_of(key));
    answer.extend_from_slice(b"\r\n\r\n");
    answer
}
