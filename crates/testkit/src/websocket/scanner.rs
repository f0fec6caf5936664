//! How the simulated server reads WebSocket: the upgrade, then a client's frames.

use std::rc::Rc;

use brunt_proto::websocket::{CloseCode, Event, Kind, Reader, Rules, Side, mask};

/// The end of the upgrade.
const HEAD_END: &[u8] = b"\r\n\r\n";
const RULES: Rules = Rules {
    side: Side::Server,
    is_strict: true,
};

/// What brunt's side sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// The upgrade.
    Upgrade {
        /// Empty where it has none.
        key: Rc<[u8]>,
        /// The first that it offers, empty for none.
        subprotocol: Rc<[u8]>,
    },
    /// A whole message.
    Message { is_text: bool, payload: Rc<[u8]> },
    /// A Ping with its payload.
    Ping(Rc<[u8]>),
    /// A Pong with its payload.
    Pong(Rc<[u8]>),
    /// A Close with its code.
    Close(Option<u16>),
    /// What breaks this rule. Nothing is read behind it.
    Broken(&'static str),
}

/// Finds the upgrade and the frames in the bytes of one connection, however they are cut.
#[derive(Debug, Default)]
pub(crate) struct FrameScanner {
    /// The upgrade, as long as it is not complete.
    head: Vec<u8>,
    is_upgraded: bool,
    /// Nothing more may come.
    is_over: bool,
    reader: Reader,
    /// The payload of a message that is not complete.
    message: Vec<u8>,
}

impl FrameScanner {
    /// Takes `bytes`; `found` gets each frame with the bytes up to its end.
    pub(crate) fn scan(&mut self, bytes: &[u8], mut found: impl FnMut(usize, Frame)) {
        let mut taken = 0;
        while taken < bytes.len() {
            let (length, frame) = self.take(&bytes[taken..]);
            taken += length;
            if let Some(frame) = frame {
                self.is_over |= matches!(frame, Frame::Close(_) | Frame::Broken(_));
                found(taken, frame);
            }
        }
    }

    /// Takes bytes up to the end of at most one frame: how many, and what they complete.
    fn take(&mut self, rest: &[u8]) -> (usize, Option<Frame>) {
        if self.is_over {
            let broken = Frame::Broken("nothing follows a Close frame");
            return (rest.len(), Some(broken));
        }
        if !self.is_upgraded {
            let last = rest.iter().position(|&byte| {
                self.head.push(byte);
                self.head.ends_with(HEAD_END)
            });
            let Some(last) = last else {
                return (rest.len(), None);
            };
            self.is_upgraded = true;
            return (last + 1, Some(upgrade(&std::mem::take(&mut self.head))));
        }
        let message = &mut self.message;
        let received = self.reader.receive(rest, RULES, |piece| {
            let start = message.len();
            message.extend_from_slice(piece.bytes);
            if let Some(key) = piece.key {
                mask(&mut message[start..], key);
            }
        });
        let Ok(progress) = received else {
            return (rest.len(), Some(Frame::Broken("a frame is malformed")));
        };
        let frame = progress.event.map(|event| match event {
            Event::Message { kind, .. } => Frame::Message {
                is_text: kind == Kind::Text,
                payload: std::mem::take(&mut self.message).into(),
            },
            Event::Ping { .. } => Frame::Ping(self.reader.control_payload().into()),
            Event::Pong { .. } => Frame::Pong(self.reader.control_payload().into()),
            Event::Close { code, .. } => Frame::Close(code.map(CloseCode::number)),
        });
        (progress.consumed, frame)
    }
}

fn upgrade(head: &[u8]) -> Frame {
    let field = |name: &str| {
        let values = head.split(|&byte| byte == b'\n').skip(1).map(|line| {
            let colon = line.iter().position(|&byte| byte == b':')?;
            let (found, value) = line.split_at(colon);
            let is_it = found.eq_ignore_ascii_case(name.as_bytes());
            is_it.then(|| value[1..].trim_ascii())
        });
        values.flatten().next().unwrap_or_default()
    };
    let is_upgrade = head.starts_with(b"GET ")
        && field("connection").eq_ignore_ascii_case(b"upgrade")
        && field("upgrade").eq_ignore_ascii_case(b"websocket")
        && field("sec-websocket-version") == b"13"
        && field("sec-websocket-key").len() == 24;
    if !is_upgrade {
        return Frame::Broken("a connection begins with an upgrade");
    }
    let offered = field("sec-websocket-protocol");
    let first = offered.split(|&byte| byte == b',').next();
    Frame::Upgrade {
        key: field("sec-websocket-key").into(),
        subprotocol: first.unwrap_or_default().trim_ascii().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UPGRADE: &[u8] = b"GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n\
        upgrade: websocket\r\nSec-WebSocket-Protocol: chat, talk\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

    fn found(bytes: &[u8], cut: usize) -> Vec<(usize, Frame)> {
        let (mut scanner, mut found) = (FrameScanner::default(), Vec::new());
        let (first, second) = bytes.split_at(cut);
        for (before, part) in [(0, first), (cut, second)] {
            scanner.scan(part, |end, frame| found.push((before + end, frame)));
        }
        found
    }

    #[test]
    fn frames_are_found_at_every_cut_with_their_ends() {
        let frames: [(&[u8], Option<Frame>); 6] = [
            (
                b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58",
                Some(Frame::Message {
                    is_text: true,
                    payload: (*b"Hello").into(),
                }),
            ),
            (b"\x02\x82\0\0\0\0ab", None),
            (b"\x89\x81\0\0\0\x01p", Some(Frame::Ping((*b"p").into()))),
            (
                b"\x80\x81\x01\0\0\0b",
                Some(Frame::Message {
                    is_text: false,
                    payload: (*b"abc").into(),
                }),
            ),
            (b"\x8a\x80\0\0\0\0", Some(Frame::Pong([].into()))),
            (b"\x88\x82\0\0\0\0\x03\xe8", Some(Frame::Close(Some(1_000)))),
        ];
        let mut bytes = UPGRADE.to_vec();
        let upgrade = Frame::Upgrade {
            key: (*b"dGhlIHNhbXBsZSBub25jZQ==").into(),
            subprotocol: (*b"chat").into(),
        };
        let mut expected = vec![(bytes.len(), upgrade)];
        for (frame, event) in frames {
            bytes.extend_from_slice(frame);
            expected.extend(event.map(|event| (bytes.len(), event)));
        }
        for cut in 0..=bytes.len() {
            assert_eq!(found(&bytes, cut), expected, "cut at {cut}");
        }
    }

    #[test]
    fn what_a_client_must_not_send_is_broken() {
        for bad in [
            &b"\x81\x05Hello"[..],
            b"\xc1\x80\0\0\0\0",
            b"\x83\x80\0\0\0\0",
            b"\x80\x80\0\0\0\0",
            b"\x01\x80\0\0\0\0\x81\x80\0\0\0\0",
            b"\x09\x80\0\0\0\0",
            b"\x89\xfe\0\x7e\0\0\0\0",
            b"\x81\xfe\0\x05\0\0\0\0Hello",
            b"\x81\xff\0\0\0\0\0\0\xff\xff\0\0\0\0",
            b"\x81\xff\x80\0\0\0\0\0\0\0\0\0\0\0",
            b"\x81\x81\0\0\0\0\xff",
            b"\x88\x81\0\0\0\0\x03",
            b"\x88\x80\0\0\0\0\x81\x80\0\0\0\0",
        ] {
            let found = found(&[UPGRADE, bad].concat(), 0);
            let last = found.last().map(|(_, frame)| frame);
            assert!(matches!(last, Some(Frame::Broken(_))), "{bad:x?}: {last:?}");
        }
        let plain = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        assert!(matches!(found(plain, 3)[0].1, Frame::Broken(_)));
    }
}
