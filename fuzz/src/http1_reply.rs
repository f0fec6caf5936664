//! Target: the parser of HTTP/1.1 replies, whole against cut.

use brunt_proto::http1::{
    KnownHead, MethodKind, Reply, ReplyError, ReplyParser, RequestKind, head_fields,
};
use brunt_proto::{BodiesWanted, Body, Limits};

/// What the replies are taken to answer.
const KINDS: [RequestKind; 4] = [
    of(MethodKind::Other, false),
    of(MethodKind::Other, true),
    of(MethodKind::Head, false),
    of(MethodKind::Connect, false),
];

const fn of(method: MethodKind, is_http_1_0: bool) -> RequestKind {
    RequestKind {
        method,
        is_http_1_0,
    }
}

/// How often an input is cut at random places.
const RANDOM_CUTS: u64 = 2;

/// Takes the input as the bytes of a connection. Whole, byte by byte and cut at places that follow
/// from the input, it must give the same replies and the same end; and after every call the bytes
/// handed over must be those of the replies given out and those pending.
pub(crate) fn http1_reply(data: &[u8]) {
    let tight = Limits {
        head_bytes: 48,
        header_fields: 2,
        interim_replies: 1,
        bodies: BodiesWanted {
            from_status: 400,
            bytes_max: 8,
            heads: true,
        },
    };
    for limits in [Limits::default(), tight] {
        for kind in KINDS {
            let whole = run([data], &limits, kind);
            let bytewise = run(data.chunks(1), &limits, kind);
            assert_eq!(bytewise, whole, "byte by byte, {limits:?}, {kind:?}");
            for round in 0..RANDOM_CUTS {
                let pieces = Pieces {
                    rest: data,
                    state: hash(data) ^ round,
                };
                let cut = run(pieces, &limits, kind);
                assert_eq!(cut, whole, "round {round}, {limits:?}, {kind:?}");
            }
        }
    }
}

/// A reply, with its body where that is kept.
type Answered = (Reply, Option<Body>);

/// The replies of a connection, and what came in place of a next one.
fn run<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
    limits: &Limits,
    kind: RequestKind,
) -> (Vec<Answered>, Result<(), ReplyError>) {
    let (mut parser, mut known) = (ReplyParser::default(), KnownHead::default());
    let mut replies = Vec::new();
    let mut handed_over = 0;
    let mut given_out = 0;
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            let received = parser.receive(rest, limits, kind, &mut known);
            let taken = received.map_or(rest.len(), |progress| progress.consumed);
            handed_over += taken as u64;
            if let Ok(Some(reply)) = received.map(|progress| progress.reply) {
                check_reply(&reply, limits);
                given_out += reply.head_bytes + reply.body_bytes;
                replies.push((reply, body_of(&reply, &mut parser, limits)));
                assert!(parser.is_idle());
            } else {
                assert_eq!(taken, rest.len(), "bytes left without a reply");
                assert!(!parser.is_idle());
            }
            assert_eq!(
                given_out + parser.pending_bytes(),
                handed_over,
                "bytes lost or made up"
            );
            if let Err(error) = received {
                assert_eq!(parser.end(), Err(error));
                return (replies, Err(error));
            }
            rest = &rest[taken..];
        }
    }
    let was_idle = parser.is_idle();
    let ended = parser.end();
    if let Ok(reply) = ended {
        assert_eq!(reply.is_none(), was_idle);
        if let Some(reply) = reply {
            assert!(!reply.keep_alive, "kept a connection that was closed");
            check_reply(&reply, limits);
            given_out += reply.head_bytes + reply.body_bytes;
            replies.push((reply, body_of(&reply, &mut parser, limits)));
        }
        assert_eq!(parser.pending_bytes(), 0);
    }
    assert_eq!(
        given_out + parser.pending_bytes(),
        handed_over,
        "bytes lost or made up"
    );
    (replies, ended.map(|_| ()))
}

/// The body of the reply that was just given out, which is kept if it is wanted.
fn body_of(reply: &Reply, parser: &mut ReplyParser, limits: &Limits) -> Option<Body> {
    let body = parser.take_body();
    let wanted = limits.bodies;
    assert_eq!(
        body.is_some(),
        wanted.heads || reply.status >= wanted.from_status
    );
    if let Some(body) = &body {
        assert!(body.bytes.len() <= wanted.bytes_max as usize);
        assert!(body.bytes.is_empty() || reply.status >= wanted.from_status);
        assert_eq!(body.head.is_empty(), !wanted.heads);
        assert!(body.head.len() as u64 <= reply.head_bytes);
        for (name, value) in head_fields(&body.head) {
            assert!(!name.is_empty() && value.trim_ascii().len() == value.len());
        }
        assert!(body.bytes.len() as u64 <= reply.body_bytes);
    }
    body
}

fn check_reply(reply: &Reply, limits: &Limits) {
    assert!((200..1000).contains(&reply.status));
    assert!(!reply.retry_after || reply.status >= 400);
    assert!(reply.interim <= limits.interim_replies.into());
    assert!(reply.head_bytes <= u64::from(limits.head_bytes) * u64::from(reply.interim + 1));
}

/// Cuts the input into pieces of 1 to 64 bytes, more often short ones.
struct Pieces<'a> {
    rest: &'a [u8],
    state: u64,
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.rest.is_empty() {
            return None;
        }
        // The constants of Knuth's MMIX generator; its high bits are the good ones.
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let longest = 1 << (self.state >> 61).min(6);
        let length = 1 + (self.state >> 33) as usize % longest;
        let (piece, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        Some(piece)
    }
}

/// FNV-1a: the cuts change with every byte of the input.
fn hash(data: &[u8]) -> u64 {
    data.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
