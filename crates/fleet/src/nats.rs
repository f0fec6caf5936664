//! The protocol of NATS, as far as a fleet speaks it: what a server sends, taken apart. Nothing is
//! kept beyond bounds.

use serde::Deserialize;
use thiserror::Error;

use crate::messages::MESSAGE_BYTES_MAX;

/// Longest line of a server: it may name some hundreds of others in one.
const LINE_BYTES_MAX: usize = 64 << 10;

/// What a server sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FromServer {
    Info(Info),
    Ping,
    Pong,
    /// What it refuses, in its words.
    Refused(String),
    Message(Message),
}

/// What a server says of itself. Others that it names are none that we were told to trust.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct Info {
    #[serde(default)]
    pub(crate) tls_required: bool,
    pub(crate) max_payload: usize,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) subject: String,
    pub(crate) payload: Vec<u8>,
}

/// Why a server is of no use.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ProtocolError {
    #[error("it sends a line of more than {LINE_BYTES_MAX} bytes")]
    LongLine,
    #[error("it sends a message of {0} bytes, where {MESSAGE_BYTES_MAX} are the most")]
    LargeMessage(usize),
    #[error("it does not speak the protocol of NATS")]
    Malformed,
}

/// Bytes of a server that are not taken apart yet. More are received when there is nothing whole in
/// them: so they are one line or one message at most, and what one read takes.
#[derive(Debug, Default)]
pub(crate) struct ConnectionInput {
    bytes: Vec<u8>,
    taken: usize,
}

impl ConnectionInput {
    /// Where further bytes are appended.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        &mut self.bytes
    }

    /// Whether all was taken apart.
    pub(crate) fn is_empty(&self) -> bool {
        self.taken == self.bytes.len()
    }

    /// What comes next; absent while it is not whole.
    pub(crate) fn next(&mut self) -> Result<Option<FromServer>, ProtocolError> {
        loop {
            let bytes = &self.bytes[self.taken..];
            let line_bytes = bytes.windows(2).position(|pair| pair == b"\r\n");
            if line_bytes.unwrap_or(bytes.len()) > LINE_BYTES_MAX {
                return Err(ProtocolError::LongLine);
            }
            let Some(line_bytes) = line_bytes else {
                return Ok(None);
            };
            let line = std::str::from_utf8(&bytes[..line_bytes]);
            let line = line.map_err(|_| ProtocolError::Malformed)?;
            let (word, rest) = line.split_once([' ', '\t']).unwrap_or((line, ""));
            let behind = &bytes[line_bytes + 2..];
            let mut used = line_bytes + 2;
            let event = match word {
                "INFO" => {
                    let info = serde_json::from_str(rest);
                    Some(FromServer::Info(
                        info.map_err(|_| ProtocolError::Malformed)?,
                    ))
                }
                "PING" => Some(FromServer::Ping),
                "PONG" => Some(FromServer::Pong),
                "+OK" => None,
                "-ERR" => Some(FromServer::Refused(rest.trim_matches('\'').to_owned())),
                "MSG" => {
                    let Some(message) = message(rest, behind)? else {
                        return Ok(None);
                    };
                    used += message.payload.len() + 2;
                    Some(FromServer::Message(message))
                }
                _ => return Err(ProtocolError::Malformed),
            };
            self.taken += used;
            if event.is_some() {
                return Ok(event);
            }
        }
    }
}

/// The message with this head; absent while `behind` it is not all of it.
fn message(head: &str, behind: &[u8]) -> Result<Option<Message>, ProtocolError> {
    let words: Vec<&str> = head.split_ascii_whitespace().collect();
    let ([subject, _, length] | [subject, _, _, length]) = words[..] else {
        return Err(ProtocolError::Malformed);
    };
    let length: usize = length.parse().map_err(|_| ProtocolError::Malformed)?;
    if length > MESSAGE_BYTES_MAX {
        return Err(ProtocolError::LargeMessage(length));
    }
    match behind.get(length..length + 2) {
        None => Ok(None),
        Some(b"\r\n") => Ok(Some(Message {
            subject: subject.to_owned(),
            payload: behind[..length].to_vec(),
        })),
        Some(_) => Err(ProtocolError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(subject: &str, payload: &[u8]) -> FromServer {
        FromServer::Message(Message {
            subject: subject.to_owned(),
            payload: payload.to_vec(),
        })
    }

    #[test]
    fn what_a_server_sends_is_read_wherever_it_is_cut() {
        let text = b"INFO {\"server_id\":\"a\",\"max_payload\":7,\"connect_urls\":[\"h:1\"]} \r\n\
                     +OK\r\nPING\r\nMSG a.b 1 4\r\n\r\n\r\n\r\nPONG\r\n-ERR 'no'\r\n\
                     MSG c 1 back 0\r\n\r\n";
        let expected = [
            FromServer::Info(Info {
                tls_required: false,
                max_payload: 7,
            }),
            FromServer::Ping,
            message("a.b", b"\r\n\r\n"),
            FromServer::Pong,
            FromServer::Refused("no".to_owned()),
            message("c", b""),
        ];
        for cut in 0..=text.len() {
            let (mut received, mut events) = (ConnectionInput::default(), Vec::new());
            for part in [&text[..cut], &text[cut..]] {
                received.buffer().extend_from_slice(part);
                while let Some(next) = received.next().expect("it is sound") {
                    events.push(next);
                }
            }
            assert_eq!(events, expected, "{cut}");
            assert!(received.is_empty());
        }
    }

    #[test]
    fn nothing_is_kept_beyond_bounds() {
        let long = vec![b'x'; LINE_BYTES_MAX + 1];
        let named = format!(
            "INFO {{\"connect_urls\":[{}]}}\r\n",
            "\"h:1\",".repeat(100_000)
        );
        for (sent, error) in [
            (&long[..], ProtocolError::LongLine),
            (named.as_bytes(), ProtocolError::LongLine),
            (
                b"MSG a 1 400000000\r\n",
                ProtocolError::LargeMessage(400_000_000),
            ),
            (
                b"MSG a 1 99999999999999999999\r\n",
                ProtocolError::Malformed,
            ),
            (b"MSG a 1\r\n", ProtocolError::Malformed),
            (b"MSG a 1 1\r\nabc", ProtocolError::Malformed),
            (b"HMSG a 1 1 1\r\n", ProtocolError::Malformed),
            (b"INFO {}\r\n", ProtocolError::Malformed),
            (b"HTTP/1.1 200 OK\r\n", ProtocolError::Malformed),
            (b"\xff\r\n", ProtocolError::Malformed),
        ] {
            let mut received = ConnectionInput::default();
            received.buffer().extend_from_slice(sent);
            assert_eq!(received.next(), Err(error));
        }
        let mut received = ConnectionInput::default();
        received.buffer().extend_from_slice(b"-ERR\r\n");
        let refused = FromServer::Refused(String::new());
        assert_eq!(received.next(), Ok(Some(refused)));
    }
}
