//! The answers of the simulated server: made once, sent again and again.

use super::settings::{Framing, SimServer};

/// Most bytes of one chunk.
const CHUNK_BYTES: usize = 16 * 1024;
/// What comes unasked behind an answer.
const EXTRA: &[u8] = b"boo!";

/// Which of the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Template {
    /// Status 200 or 503, with or without a body (HEAD), keeping the connection or not.
    Reply {
        is_error: bool,
        is_head: bool,
        closes: bool,
    },
    Malformed,
    Extra,
}

/// All answers of one server.
#[derive(Debug)]
pub(super) struct Replies {
    replies: [Vec<u8>; 8],
    malformed: Vec<u8>,
}

impl Replies {
    pub(super) fn new(server: &SimServer) -> Self {
        let reply = |place: usize| {
            let [is_error, is_head, closes] = [1, 2, 4].map(|bit| place & bit != 0);
            encode(server, is_error, is_head, closes)
        };
        Self {
            replies: std::array::from_fn(reply),
            malformed: server.malformed.clone(),
        }
    }

    /// The bytes of an answer.
    pub(super) fn bytes(&self, template: Template) -> &[u8] {
        match template {
            Template::Reply {
                is_error,
                is_head,
                closes,
            } => {
                let place =
                    usize::from(is_error) | usize::from(is_head) << 1 | usize::from(closes) << 2;
                &self.replies[place]
            }
            Template::Malformed => &self.malformed,
            Template::Extra => EXTRA,
        }
    }
}

fn encode(server: &SimServer, is_error: bool, is_head: bool, closes: bool) -> Vec<u8> {
    let mut bytes = b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(server.interim as usize);
    let version = match server.framing {
        Framing::Length | Framing::Chunked => "HTTP/1.1",
        Framing::UntilClose => "HTTP/1.0",
    };
    let status = if is_error {
        "503 Service Unavailable"
    } else {
        "200 OK"
    };
    bytes.extend_from_slice(format!("{version} {status}\r\nServer: sim\r\n").as_bytes());
    if closes {
        bytes.extend_from_slice(b"Connection: close\r\n");
    }
    let body = vec![b'x'; server.body_bytes as usize];
    let (field, coded) = match server.framing {
        Framing::Length => (format!("Content-Length: {}\r\n", body.len()), body),
        Framing::Chunked => ("Transfer-Encoding: chunked\r\n".to_owned(), chunked(&body)),
        Framing::UntilClose => (String::new(), body),
    };
    bytes.extend_from_slice(field.as_bytes());
    bytes.extend_from_slice(b"\r\n");
    if !is_head {
        bytes.extend_from_slice(&coded);
    }
    bytes
}

fn chunked(body: &[u8]) -> Vec<u8> {
    let mut coded = Vec::new();
    for chunk in body.chunks(CHUNK_BYTES) {
        coded.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        coded.extend_from_slice(chunk);
        coded.extend_from_slice(b"\r\n");
    }
    coded.extend_from_slice(b"0\r\nTrailer: yes\r\n\r\n");
    coded
}

#[cfg(test)]
mod tests {
    use brunt_proto::http1::{Limits, ReplyParser};

    use super::*;

    #[test]
    fn replies_are_http() {
        for framing in [Framing::Length, Framing::Chunked, Framing::UntilClose] {
            let server = SimServer {
                framing,
                body_bytes: 40_000,
                interim: 2,
                ..SimServer::default()
            };
            let replies = Replies::new(&server);
            for place in 0..8 {
                let [is_error, is_head, closes] = [1, 2, 4].map(|bit| place & bit != 0);
                let bytes = replies.bytes(Template::Reply {
                    is_error,
                    is_head,
                    closes,
                });
                let mut parser = ReplyParser::default();
                let progress = parser
                    .receive(bytes, &Limits::default(), is_head)
                    .expect("well formed");
                assert_eq!(progress.consumed, bytes.len());
                let reply = progress
                    .reply
                    .or_else(|| parser.end().expect("complete"))
                    .expect("a reply");
                assert_eq!(reply.status, if is_error { 503 } else { 200 });
                assert_eq!(reply.interim, 2);
                assert_eq!(
                    reply.keep_alive,
                    !closes && framing != Framing::UntilClose,
                    "{framing:?}"
                );
                assert_eq!(reply.head_bytes + reply.body_bytes, bytes.len() as u64);
            }
        }
    }
}
