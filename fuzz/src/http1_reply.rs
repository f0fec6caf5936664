//! Target: the parser of HTTP/1.1 replies, whole against cut.

use brunt_proto::http1::{
    KnownHead, MethodKind, Reply, ReplyError, ReplyParser, RequestKind, head_fields,
};
use brunt_proto::{BodiesWanted, Body, Limits};

use crate::PIECE_BYTES;

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

/// Takes the input as the bytes of a connection. Whole and cut, it must give the same replies and
/// the same end; and after every call the bytes handed over must be those of the replies given out
/// and those pending.
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
            for bytes in PIECE_BYTES {
                let cut = run(data.chunks(bytes), &limits, kind);
                assert_eq!(cut, whole, "in pieces of {bytes}, {limits:?}, {kind:?}");
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
    assert!(reply.interim <= limits.interim_replies);
    assert!(reply.head_bytes <= u64::from(limits.head_bytes) * u64::from(reply.interim + 1));
}
