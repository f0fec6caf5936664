//! HTTP/1.1 in a worker: requests out of a shared payload, responses in the order of the requests.

use std::error::Error;
use std::num::NonZeroU64;
use std::ops::Range;
use std::sync::Arc;

use brunt_io::backend::PayloadId;
use brunt_io::transport::Stream;
use brunt_load::{Plan, RequestId, RequestRef, RequestSet, Reuse, kind_of_text};
use brunt_proto::holes::{Hole, Numbers, PlaceholderError, TextWithHoles};
use brunt_proto::http1::{self, KnownHead, Reply, ReplyParser, RequestError, RequestKind};
use brunt_proto::{BodiesWanted, Body, Limits};
use brunt_record::{Answer, FailureKind, ReplyOutcome, RequestTiming};

use super::exchange::InOrder;
use super::filled::Parts;
use super::payload::{Copies, Payload};
use super::{
    Broken, ClientProtocol, ConnectionEnd, EncodeError, Next, Out, PayloadPart, ProtocolEvent,
    Sizes, Taken,
};
use crate::failure;

/// The requests of a run, encoded once for all workers.
#[derive(Debug)]
pub(crate) struct Http1Requests {
    requests: Vec<Encoded>,
    encoder: Encoder,
    depth: u32,
    /// All of them.
    payload: Payload,
    /// The holes of those requests that have any: of the ordinary one, and of the closing one.
    filled: Vec<[Vec<Hole>; 2]>,
    /// What random numbers follow from.
    seed: u64,
    /// Where the sequence of what is filled in begins.
    sequence_offset: u64,
}

/// In place of the number of a request that has no holes.
const FIXED: u32 = u32::MAX;

/// A request.
#[derive(Clone, Copy, Debug)]
struct Encoded {
    /// Where it lies in the payload. The last one on a connection has `Connection: close`, unless
    /// its bytes are given.
    copies: Copies,
    /// The number of its holes among those of all; [`FIXED`] where it has none.
    filled: u32,
    /// What its response depends on.
    kind: RequestKind,
    /// It may be sent again if its connection ends: its method is idempotent, and it is the same
    /// each time.
    may_repeat: bool,
}

/// What the bytes of the requests are made of.
#[derive(Debug)]
struct Encoder {
    requests: RequestSet,
    host: String,
    reuse: Reuse,
}

impl Encoder {
    /// A request, and the same with `Connection: close`, if there is such.
    fn encode(&self, spec: RequestRef<'_>) -> Result<[TextWithHoles; 2], Box<dyn Error>> {
        if let Some(text) = spec.text {
            return Ok([text_of(spec, text)?, TextWithHoles::default()]);
        }
        let parts = Parts::of(spec)?;
        let encode = |close| -> Result<TextWithHoles, RequestError> {
            let request = http1::Request {
                method: spec.method,
                path: &parts.path,
                host: &self.host,
                headers: &parts.headers,
                body: &parts.body,
                close,
            };
            let mut holes = Vec::new();
            let bytes = request.encode_noting(|part, at| holes.extend(parts.holes_of(part, at)))?;
            let mut text = TextWithHoles::fixed(bytes);
            text.holes = holes;
            Ok(text)
        };
        let closing = match self.reuse {
            Reuse::Requests(_) => encode(true)?,
            Reuse::Unlimited => TextWithHoles::default(),
        };
        Ok([encode(false)?, closing])
    }
}

/// The text of a request that comes as one.
fn text_of(spec: RequestRef<'_>, text: &[u8]) -> Result<TextWithHoles, PlaceholderError> {
    if !spec.has_placeholders {
        return Ok(TextWithHoles::fixed(text.to_vec()));
    }
    let head = text.strip_suffix(spec.body).unwrap_or(text);
    let mut filled = TextWithHoles::parse(head)?;
    let body = TextWithHoles::parse_body(spec.body)?;
    let head_bytes = filled.bytes.len();
    let holes = body.holes.into_iter().map(|hole| hole.moved(head_bytes));
    filled.holes.extend(holes);
    filled.bytes.extend(body.bytes);
    Ok(filled)
}

impl Http1Requests {
    /// Looks at what the plan says, of which up to `depth` requests are to be in flight per
    /// connection.
    pub(super) fn new(plan: &Plan, depth: u32) -> Result<Self, EncodeError> {
        let encoder = Encoder {
            requests: plan.traffic.requests.clone(),
            host: plan.target.authority.clone(),
            reuse: plan.traffic.reuse,
        };
        let mut requests = Vec::with_capacity(plan.traffic.requests.count());
        let (mut payload, mut filled) = (Payload::default(), Vec::new());
        for (index, spec) in plan.traffic.requests.requests().enumerate() {
            let encoded = encoder.encode(spec);
            let [ordinary, closing] =
                encoded.map_err(|reason| EncodeError::request(plan, index, reason))?;
            let kind = match spec.text {
                Some(_) => kind_of_text(&ordinary.bytes).map_err(|reason| {
                    let reason = format!("the text of the request: {reason}");
                    EncodeError::request(plan, index, reason)
                })?,
                None => RequestKind::of_method(spec.method.as_bytes()),
            };
            let is_fixed = ordinary.holes.is_empty();
            // A single request is repeated, as often as it may be in flight on a connection.
            let count = if is_fixed && plan.traffic.requests.count() == 1 {
                depth
            } else {
                1
            };
            requests.push(Encoded {
                copies: payload.add(ordinary.bytes.len(), count, closing.bytes.len())?,
                filled: if is_fixed { FIXED } else { filled.len() as u32 },
                kind,
                may_repeat: http1::is_idempotent(spec.method.as_bytes()) && is_fixed,
            });
            if !is_fixed {
                filled.push([ordinary.holes, closing.holes]);
            }
        }
        Ok(Self {
            requests,
            encoder,
            depth,
            payload,
            filled,
            seed: plan.traffic.think_seed,
            sequence_offset: plan.traffic.sequence_offset,
        })
    }

    pub(super) fn sizes(&self) -> Sizes {
        let is_last = self.encoder.reuse == Reuse::Requests(NonZeroU64::MIN);
        let lengths = self.requests.iter().map(|request| match request.copies {
            Copies { last_bytes, .. } if is_last && last_bytes > 0 => last_bytes,
            copies => copies.bytes,
        });
        Sizes {
            request: lengths.max().unwrap_or(0) as usize,
            copies: self.payload.copies_bytes,
            of_connection: self.own_bytes(),
            held: self.held_bytes(),
        }
    }

    /// Bytes that each connection has beside those at most: copies of what is filled in, and of
    /// requests that follow each other and do not lie so.
    fn own_bytes(&self) -> usize {
        let are_apart = self.depth > 1 && self.payload.copies_bytes == 0;
        let requests = self.requests.iter();
        let copied = requests.filter(|request| are_apart || request.filled != FIXED);
        let bytes = copied.map(|request| request.copies.bytes).max();
        (bytes.unwrap_or(0) as usize).saturating_mul(self.depth as usize)
    }

    /// Bytes that are held of them.
    fn held_bytes(&self) -> usize {
        let holes = self.filled.iter().flatten();
        let holes = holes.map(|holes| size_of_val(&holes[..]));
        self.payload.len()
            + size_of_val(&self.requests[..])
            + size_of_val(&self.filled[..])
            + holes.sum::<usize>()
    }

    /// The bytes that are sent.
    #[inline]
    fn payload(&self) -> &Arc<[u8]> {
        self.payload.get(|put| {
            for (spec, request) in self.encoder.requests.requests().zip(&self.requests) {
                // It was encoded before.
                if let Ok([ordinary, closing]) = self.encoder.encode(spec) {
                    request.copies.put(&ordinary.bytes, &closing.bytes, put);
                }
            }
        })
    }

    /// Where a request lies in the payload, and its holes.
    #[inline]
    fn range(&self, next: Next) -> (Range<u32>, &[Hole]) {
        let Encoded { copies, filled, .. } = &self.requests[next.request.0 as usize];
        let closes = next.closes && copies.last_bytes > 0;
        let is_closing = closes && next.behind == 0;
        let holes = match self.filled.get(*filled as usize) {
            None => &[][..],
            Some([_, closing]) if is_closing => closing,
            Some([ordinary, _]) => ordinary,
        };
        let range = if is_closing {
            copies.last()
        } else {
            copies.before(next.behind - u32::from(closes))
        };
        (range, holes)
    }
}

/// HTTP/1.1 (RFC 9112), as one worker speaks it.
#[derive(Clone, Debug)]
pub(crate) struct Http1 {
    pub(super) requests: Arc<Http1Requests>,
    /// What responses depend on, by the number of the request; of those that come as text, by that
    /// of their kind.
    kinds: Arc<[RequestKind]>,
    payload: PayloadId,
    /// What is filled in next.
    numbers: Numbers,
    /// The head that came last, since others are often equal to it.
    known: KnownHead,
    limits: Limits,
}

impl Http1 {
    pub(super) fn new(requests: Http1Requests) -> Self {
        let kinds = requests.requests.iter().map(|request| request.kind);
        Self {
            kinds: kinds.collect(),
            requests: Arc::new(requests),
            payload: PayloadId(0),
            numbers: Numbers::default(),
            known: KnownHead::default(),
            limits: Limits::default(),
        }
    }
}

/// Whether these bytes, which came with nothing in flight, are a reply that says that the server
/// closes the connection, such as 408 (RFC 9110 section 15.5.9). It must be there at once, and
/// whole.
#[cold]
fn is_last_reply(bytes: &[u8]) -> bool {
    let (mut parser, mut known) = (ReplyParser::default(), KnownHead::default());
    let kind = RequestKind::of_method(b"GET");
    let reply = match parser.receive(bytes, &Limits::default(), kind, &mut known) {
        Ok(progress) if progress.consumed < bytes.len() => None,
        Ok(progress) => progress.reply.or_else(|| parser.end().ok().flatten()),
        Err(_) => None,
    };
    let is_error = |status| !ReplyOutcome::of_status(status).is_success();
    reply.is_some_and(|reply| is_error(reply.status) && !reply.keep_alive)
}

/// The responses of one connection.
#[derive(Debug, Default)]
pub(crate) struct Http1Connection {
    parser: ReplyParser,
    requests: InOrder,
    /// When the first byte of the response that is being received came.
    first_byte_ns: u64,
}

impl ClientProtocol for Http1 {
    type Transport = Stream;
    type Connection = Http1Connection;

    const IN_ORDER: bool = true;

    fn start(&mut self, worker: u32, workers: u32, add: &mut dyn FnMut(Arc<[u8]>) -> PayloadId) {
        self.payload = add(Arc::clone(self.requests.payload()));
        let first = self.requests.sequence_offset;
        self.numbers = Numbers::new(self.requests.seed, first, worker, workers);
    }

    fn connection(&self) -> Http1Connection {
        Http1Connection::default()
    }

    fn open(&mut self, connection: &mut Http1Connection, _out: &mut Out, _now_ns: u64) -> bool {
        *connection = Http1Connection::default();
        true
    }

    fn close(&mut self, connection: &mut Http1Connection) -> u64 {
        *connection = Http1Connection::default();
        0
    }

    #[inline]
    fn request(&mut self, connection: &mut Http1Connection, next: Next, out: &mut Out) -> u32 {
        let (range, holes) = self.requests.range(next);
        let part = PayloadPart::of(self.payload, range);
        let whole = self.requests.payload();
        if holes.is_empty() {
            out.append_shared(part, whole);
        } else {
            self.numbers.fill(out.append_copy(part, whole), holes);
        }
        connection.requests.take(self.requests.depth)
    }

    // Always: what it gives is large, and is then never put together.
    #[inline(always)]
    fn receive(
        &mut self,
        connection: &mut Http1Connection,
        bytes: &[u8],
        received_ns: u64,
        places: &[RequestTiming],
        _out: &mut Out,
    ) -> Result<Taken, Broken> {
        if bytes.is_empty() {
            return Ok(Taken::without_event(0));
        }
        if connection.requests.count == 0 {
            if is_last_reply(bytes) {
                return Ok(Taken {
                    consumed: bytes.len(),
                    event: Some(ProtocolEvent::IdleReply),
                });
            }
            return Err(Broken {
                kind: FailureKind::UnexpectedBytes,
                unexpected_bytes: bytes.len() as u64,
            });
        }
        if connection.parser.pending_bytes() == 0 {
            connection.first_byte_ns = received_ns;
        }
        let kind = self.kinds[places[connection.requests.oldest as usize].request as usize];
        let progress = connection
            .parser
            .receive(bytes, &self.limits, kind, &mut self.known)
            .map_err(failure::of_reply)?;
        Ok(Taken {
            consumed: progress.consumed,
            event: progress.reply.map(|reply| ProtocolEvent::Done {
                answer: answer_of(&reply, connection.first_byte_ns),
                closes: !reply.keep_alive,
                place: connection.requests.leave(self.requests.depth),
            }),
        })
    }

    fn unread_bytes(&self, connection: &Http1Connection) -> u64 {
        connection.parser.unread_bytes()
    }

    fn discarded(&mut self, connection: &mut Http1Connection, bytes: u64) {
        connection.parser.discarded(bytes);
    }

    fn ended(&mut self, connection: &mut Http1Connection) -> ConnectionEnd {
        match connection.parser.end() {
            Ok(Some(reply)) => ConnectionEnd::Completes {
                answer: answer_of(&reply, connection.first_byte_ns),
                place: connection.requests.leave(self.requests.depth),
            },
            Ok(None) => ConnectionEnd::Fails(FailureKind::ClosedBeforeReply),
            Err(error) => ConnectionEnd::Fails(failure::of_reply(error)),
        }
    }

    fn may_repeat(&self, request: RequestId) -> bool {
        let request = self.requests.requests.get(request.0 as usize);
        request.is_some_and(|request| request.may_repeat)
    }

    fn abandon(&mut self, connection: &mut Http1Connection) -> Option<(u32, u64)> {
        if connection.requests.count == 0 {
            return None;
        }
        let discarded_bytes = connection.parser.pending_bytes();
        connection.parser.reset();
        let place = connection.requests.leave(self.requests.depth);
        Some((place, discarded_bytes))
    }

    fn want_bodies(&mut self, wanted: BodiesWanted) {
        self.limits.bodies = wanted;
    }

    fn take_body(&mut self, connection: &mut Http1Connection) -> Option<Body> {
        connection.parser.take_body()
    }

    fn accept_texts(&mut self) {
        self.kinds = RequestKind::ALL.into();
    }

    #[inline]
    fn place_of_text(&mut self, connection: &mut Http1Connection) -> u32 {
        connection.requests.take(self.requests.depth)
    }
}

#[inline]
fn answer_of(reply: &Reply, first_byte_ns: u64) -> Answer {
    Answer {
        outcome: ReplyOutcome::of_status(reply.status),
        retry_after: reply.retry_after,
        interim: reply.interim,
        head_bytes: reply.head_bytes,
        body_bytes: reply.body_bytes,
        first_byte_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_with_nothing_in_flight_is_the_last_one_if_it_is_an_error_and_says_close() {
        let closing = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n";
        for (text, is_last) in [
            (format!("{closing}Content-Length: 4\r\n\r\nlate"), true),
            (format!("{closing}\r\n"), true),
            (format!("{closing}\r\n<html>late</html>"), true),
            ("HTTP/1.0 400 Bad Request\r\n\r\nno".to_owned(), true),
            (format!("{closing}Content-Length: 4\r\n\r\nlater"), false),
            (format!("{closing}Content-Length: 4\r\n\r\nlat"), false),
            ("HTTP/1.1 408 Request Timeout\r\n".to_owned(), false),
            (
                "HTTP/1.1 408 No\r\nContent-Length: 0\r\n\r\n".to_owned(),
                false,
            ),
            (closing.replace("408", "200") + "\r\n", false),
            ("boo!".to_owned(), false),
        ] {
            assert_eq!(is_last_reply(text.as_bytes()), is_last, "{text}");
        }
    }
}
