//! How the simulated server reads WebSocket: the upgrade, then a client's frames.

use std::rc::Rc;

/// The end of the upgrade.
const HEAD_END: &[u8] = b"\r\n\r\n";
/// Bytes of a client's mask.
const MASK_BYTES: usize = 4;

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
    /// With its payload.
    Ping(Rc<[u8]>),
    /// With its payload.
    Pong(Rc<[u8]>),
    /// With its code.
    Close(Option<u16>),
    /// What breaks this rule. Nothing is read behind it.
    Broken(&'static str),
}

/// Finds the upgrade and the frames in the bytes of one connection, however they are cut.
#[derive(Debug, Default)]
pub(crate) struct FrameScanner {
    /// The beginning of what is not complete.
    begun: Vec<u8>,
    is_upgraded: bool,
    /// Nothing more may come.
    is_over: bool,
    /// A message whose last frame has not come: whether it is a text, and its parts.
    message: Option<(bool, Vec<u8>)>,
}

impl FrameScanner {
    /// Takes `bytes`; `found` gets each frame with the bytes up to its end.
    pub(crate) fn scan(&mut self, bytes: &[u8], mut found: impl FnMut(usize, Frame)) {
        let before = self.begun.len();
        self.begun.extend_from_slice(bytes);
        let mut taken = 0;
        while let Some((length, frame)) = self.take(taken) {
            taken += length;
            if let Some(frame) = frame {
                self.is_over |= matches!(frame, Frame::Close(_) | Frame::Broken(_));
                found(taken - before, frame);
            }
        }
        self.begun.drain(..taken);
    }

    /// The bytes of what is complete from `start` on and, but for a part of a message, what it is.
    fn take(&mut self, start: usize) -> Option<(usize, Option<Frame>)> {
        let rest = &self.begun[start..];
        if rest.is_empty() {
            return None;
        }
        if self.is_over {
            let length = rest.len();
            return Some((length, Some(Frame::Broken("nothing follows a Close frame"))));
        }
        if !self.is_upgraded {
            let end = rest.windows(HEAD_END.len()).position(|at| at == HEAD_END)?;
            let length = end + HEAD_END.len();
            self.is_upgraded = true;
            return Some((length, Some(upgrade(&rest[..length]))));
        }
        let &[first, second, ..] = rest else {
            return None;
        };
        let (head_bytes, payload_bytes) = match second & 0x7f {
            126 => (4, u64::from(u16::from_be_bytes(*rest[2..].first_chunk()?))),
            127 => (10, u64::from_be_bytes(*rest[2..].first_chunk()?)),
            length => (2, u64::from(length)),
        };
        let least = match head_bytes {
            2 => 0,
            4 => 126,
            _ => 0x1_0000,
        };
        let rule = if first & 0x70 != 0 {
            "no extension was agreed on"
        } else if second & 0x80 == 0 {
            "a client masks its frames"
        } else if payload_bytes < least {
            "a length is as short as it can be"
        } else if payload_bytes > 1 << 40 {
            "nobody sends that much"
        } else if first & 0x08 != 0 && (first & 0x80 == 0 || payload_bytes > 125) {
            "a control frame is whole and short"
        } else {
            ""
        };
        if !rule.is_empty() {
            return Some((rest.len(), Some(Frame::Broken(rule))));
        }
        let length = head_bytes + MASK_BYTES + payload_bytes as usize;
        let body = rest.get(head_bytes..length)?;
        let (mask, masked) = body.split_at(MASK_BYTES);
        let payload = masked.iter().zip(mask.iter().cycle());
        let payload: Vec<u8> = payload.map(|(byte, mask)| byte ^ mask).collect();
        Some((length, self.frame(first, payload)))
    }

    fn frame(&mut self, first: u8, payload: Vec<u8>) -> Option<Frame> {
        let is_final = first & 0x80 != 0;
        let frame = match (first & 0x0f, &mut self.message) {
            (0, None) => Frame::Broken("there is no message to continue"),
            (1 | 2, Some(_)) => Frame::Broken("a message has an end"),
            (opcode @ 0..=2, begun) => {
                let (_, message) = begun.get_or_insert((opcode == 1, Vec::new()));
                message.extend_from_slice(&payload);
                if !is_final {
                    return None;
                }
                let (is_text, message) = self.message.take()?;
                if is_text && std::str::from_utf8(&message).is_err() {
                    Frame::Broken("a text is UTF-8")
                } else {
                    let payload = message.into();
                    Frame::Message { is_text, payload }
                }
            }
            (8, _) => match *payload {
                [] => Frame::Close(None),
                [high, low, ..] => Frame::Close(Some(u16::from_be_bytes([high, low]))),
                [_] => Frame::Broken("a code has two bytes"),
            },
            (9, _) => Frame::Ping(payload.into()),
            (10, _) => Frame::Pong(payload.into()),
            _ => Frame::Broken("an opcode has a meaning"),
        };
        Some(frame)
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
