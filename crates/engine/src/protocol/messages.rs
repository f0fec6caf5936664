//! Messages over TCP in a worker: replies in the order of the messages, framed in one of several
//! ways.

use std::sync::Arc;

use brunt_io::backend::PayloadId;
use brunt_io::transport::Stream;
use brunt_load::{MessageExchange, OpeningMessage, Plan, Reuse};
use brunt_proto::messages::{Framing, RespKind, Scanned, Scanner};
use brunt_record::{Answer, FailureKind, ReplyOutcome, RequestTiming};

use super::exchange::{
    self, ConnectionNumbers, Exchanged, InFlight, MessageSet, Rendered, connection_numbers,
};
use super::{
    Aside, Broken, ClientProtocol, Closing, ConnectionEnd, EncodeError, Next, Out, PayloadPart,
    ProtocolEvent, Sizes, Taken,
};
use crate::failure;

/// The messages of a run, encoded once for all workers.
#[derive(Debug)]
pub(crate) struct EncodedMessages {
    set: MessageSet,
    exchange: MessageExchange,
}

impl EncodedMessages {
    /// Encodes what the plan says, of which up to `depth` are to be in flight per connection.
    pub(super) fn new(
        plan: &Plan,
        exchange: &MessageExchange,
        depth: u32,
        clock_origin_unix_ns: u64,
    ) -> Result<Self, EncodeError> {
        let exchanged = Exchanged {
            is_echo: exchange.reply == Framing::Echo,
            depth,
            seed: exchange.seed,
            clock_origin_unix_ns,
        };
        let check = |name: &str, bytes: &[u8]| {
            if bytes.is_empty() {
                return Err(EncodeError::protocol(format!(
                    "the message {name} is empty; a message has at least one byte"
                )));
            }
            Ok(())
        };
        // A single message is repeated, as often as it may be in flight on a connection.
        let copies = if plan.traffic.requests.count() == 1 {
            depth
        } else {
            1
        };
        let opening = exchange.opening.as_ref();
        let first = opening.and_then(|opening| opening.message.given());
        let set = MessageSet::new(plan, first, exchanged, check, |bytes| bytes, |_| copies)?;
        let is_single =
            plan.traffic.reuse == Reuse::Requests(std::num::NonZeroU64::MIN) && depth == 1;
        if exchange.reply == Framing::UntilClose && !is_single {
            return Err(EncodeError::protocol(
                "replies that end with their connection need one message per connection, and one \
                 at a time; use --no-keepalive, and leave out --depth",
            ));
        }
        if opening.is_some_and(|opening| opening.reply == Framing::UntilClose) {
            return Err(EncodeError::protocol(
                "the reply to --first cannot end with its connection; give another --first-reply",
            ));
        }
        Ok(Self {
            set,
            exchange: exchange.clone(),
        })
    }

    pub(super) fn sizes(&self) -> Sizes {
        let longest = self.set.lengths().max().unwrap_or(0);
        Sizes::of(longest, self.set.held_bytes())
    }

    /// The constant bytes that are sent.
    #[inline]
    fn payload(&self) -> &Arc<[u8]> {
        self.set.payload.get(|put| {
            for (message, copies) in self.set.constant() {
                copies.put(message, &[], put);
            }
        })
    }
}

/// Messages over TCP, as one worker exchanges them.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    pub(super) encoded: Arc<EncodedMessages>,
    payload: PayloadId,
    numbers: ConnectionNumbers,
}

impl Messages {
    pub(super) fn new(encoded: EncodedMessages) -> Self {
        Self {
            encoded: Arc::new(encoded),
            payload: PayloadId(0),
            numbers: connection_numbers(0, 1),
        }
    }

    /// What opened the connection is answered by what came, up to its end.
    fn receive_opening(
        &self,
        connection: &mut MessagesConnection,
        opening: &OpeningMessage,
        bytes: &[u8],
    ) -> Result<Taken, Broken> {
        let mut consumed = 0;
        while consumed < bytes.len() {
            let sent = connection.in_flight.rendered.first();
            let rest = &bytes[consumed..];
            let scanned = connection.scanner.receive(&opening.reply, rest, sent);
            let Scanned {
                consumed: taken,
                message_bytes,
                kind,
            } = scanned.map_err(failure::of_scan)?;
            consumed += taken;
            let Some(message_bytes) = message_bytes else {
                break;
            };
            connection.aside.overhead_bytes += message_bytes;
            match kind {
                RespKind::Push => connection.aside.pushes += 1,
                RespKind::Error => return Err(FailureKind::OpeningRefused.into()),
                RespKind::Reply => {
                    connection.is_opening = false;
                    connection.in_flight.rendered = Rendered::default();
                    let event = Some(ProtocolEvent::Ready);
                    return Ok(Taken { consumed, event });
                }
            }
        }
        Ok(Taken::without_event(consumed))
    }
}

fn answer(kind: RespKind, body_bytes: u64, first_byte_ns: u64) -> Answer {
    let outcome = match kind {
        RespKind::Reply | RespKind::Push => ReplyOutcome::SUCCESS,
        RespKind::Error => ReplyOutcome::ERROR,
    };
    exchange::answer(outcome, 0, body_bytes, first_byte_ns)
}

/// What is in flight and what comes on one connection.
#[derive(Debug, Default)]
pub(crate) struct MessagesConnection {
    scanner: Scanner,
    in_flight: InFlight,
    /// What opens it is not answered yet.
    is_opening: bool,
    /// What is being received began when nothing was in flight: it is no reply.
    is_push: bool,
    /// The only message in flight is still to be handed to the kernel: what comes is no reply.
    is_put_off: bool,
    /// It had pushes, or bytes that nobody awaits.
    was_pushed_to: bool,
    /// When the first byte of the reply that is being received came.
    first_byte_ns: u64,
    aside: Aside,
}

impl ClientProtocol for Messages {
    type Transport = Stream;
    type Connection = MessagesConnection;

    const IN_ORDER: bool = true;

    fn start(&mut self, worker: u32, workers: u32, add: &mut dyn FnMut(Arc<[u8]>) -> PayloadId) {
        self.numbers = connection_numbers(worker, workers);
        let payload = self.encoded.payload();
        if !payload.is_empty() {
            self.payload = add(Arc::clone(payload));
        }
    }

    fn parts(&self) -> bool {
        self.encoded.exchange.reply == Framing::None
    }

    fn part(&mut self, _connection: &mut MessagesConnection, _out: &mut Out) -> Closing {
        Closing::Heard
    }

    fn connection(&self) -> MessagesConnection {
        MessagesConnection::default()
    }

    fn open(&mut self, connection: &mut MessagesConnection, out: &mut Out, now_ns: u64) -> bool {
        *connection = MessagesConnection::default();
        connection.in_flight.number = self.numbers.next().unwrap_or_default();
        let Some(OpeningMessage { message, reply }) = &self.encoded.exchange.opening else {
            return true;
        };
        let values = self.encoded.set.values(&connection.in_flight, now_ns);
        let bytes = out.owned(self.encoded.payload());
        let from = bytes.len();
        if let Some(message) = message.given() {
            message.render(&values, bytes);
        }
        if *reply == Framing::None {
            return true;
        }
        if *reply == Framing::Echo {
            connection.in_flight.rendered.push(&bytes[from..]);
        }
        connection.is_opening = true;
        false
    }

    fn close(&mut self, connection: &mut MessagesConnection) -> u64 {
        let pending_bytes = connection.scanner.pending_bytes();
        *connection = MessagesConnection::default();
        pending_bytes
    }

    #[inline]
    fn request(&mut self, connection: &mut MessagesConnection, next: Next, out: &mut Out) -> u32 {
        let whole = self.encoded.payload();
        let set = &self.encoded.set;
        let message = &set.messages[next.request.0 as usize];
        if let Some(copies) = message.copies {
            let range = copies.before(next.behind);
            if set.keeps_rendered {
                let bytes = &whole[range.start as usize..range.end as usize];
                connection.in_flight.rendered.push(bytes);
            }
            out.append_shared(PayloadPart::of(self.payload, range), whole);
        } else {
            let values = set.values(&connection.in_flight, next.now_ns);
            let bytes = out.owned(whole);
            let from = bytes.len();
            message.template.render(&values, bytes);
            if set.keeps_rendered {
                connection.in_flight.rendered.push(&bytes[from..]);
            }
        }
        set.take(&mut connection.in_flight)
    }

    #[inline]
    fn receive(
        &mut self,
        connection: &mut MessagesConnection,
        bytes: &[u8],
        received_ns: u64,
        places: &[RequestTiming],
        _out: &mut Out,
    ) -> Result<Taken, Broken> {
        if connection.is_opening
            && let Some(opening) = &self.encoded.exchange.opening
        {
            return self.receive_opening(connection, opening, bytes);
        }
        let reply = &self.encoded.exchange.reply;
        let mut consumed = 0;
        while consumed < bytes.len() {
            let rest = &bytes[consumed..];
            let is_awaited = connection.in_flight.requests.count > 0 && !connection.is_put_off;
            match reply {
                Framing::None => {
                    connection.aside.overhead_bytes += rest.len() as u64;
                    connection.was_pushed_to = true;
                    consumed = bytes.len();
                    break;
                }
                // Nothing echoes what was not sent.
                Framing::Echo if !is_awaited => {
                    return Err(Broken {
                        kind: FailureKind::UnexpectedBytes,
                        unexpected_bytes: rest.len() as u64,
                    });
                }
                _ => {}
            }
            if connection.scanner.pending_bytes() == 0 {
                // What follows a marker may be the rest of a reply, and so nobody's.
                connection.is_push = !is_awaited && !matches!(reply, Framing::Marker { .. });
                connection.first_byte_ns = received_ns;
            } else if is_awaited
                && connection.first_byte_ns
                    < places[connection.in_flight.requests.oldest as usize].sent_ns
            {
                connection.first_byte_ns = received_ns;
            }
            let sent = self.encoded.set.oldest_sent(&connection.in_flight, places);
            let scanned = connection.scanner.receive(reply, rest, sent);
            let scanned = scanned.map_err(failure::of_scan)?;
            consumed += scanned.consumed;
            let Some(message_bytes) = scanned.message_bytes else {
                break;
            };
            if connection.is_push || !is_awaited || scanned.kind == RespKind::Push {
                connection.aside.overhead_bytes += message_bytes;
                connection.aside.pushes += 1;
                connection.was_pushed_to = true;
                continue;
            }
            return Ok(Taken {
                consumed,
                event: Some(ProtocolEvent::Done {
                    answer: answer(scanned.kind, message_bytes, connection.first_byte_ns),
                    closes: false,
                    place: self.encoded.set.leave(&mut connection.in_flight),
                }),
            });
        }
        Ok(Taken::without_event(consumed))
    }

    fn unread_bytes(&self, connection: &MessagesConnection) -> u64 {
        match &self.encoded.exchange.reply {
            _ if connection.is_opening => 0,
            Framing::None => u64::MAX,
            reply => connection.scanner.unread_bytes(reply),
        }
    }

    fn discarded(&mut self, connection: &mut MessagesConnection, bytes: u64) {
        match &self.encoded.exchange.reply {
            Framing::None => connection.aside.overhead_bytes += bytes,
            _ => connection.scanner.discarded(bytes),
        }
    }

    fn ended(&mut self, connection: &mut MessagesConnection) -> ConnectionEnd {
        match connection.scanner.end(&self.encoded.exchange.reply) {
            Ok(Some(bytes)) => ConnectionEnd::Completes {
                answer: answer(RespKind::Reply, bytes, connection.first_byte_ns),
                place: self.encoded.set.leave(&mut connection.in_flight),
            },
            Ok(None) => ConnectionEnd::Fails(FailureKind::ClosedBeforeReply),
            Err(error) => ConnectionEnd::Fails(failure::of_scan(error)),
        }
    }

    fn abandon(&mut self, connection: &mut MessagesConnection) -> Option<(u32, u64)> {
        if connection.in_flight.requests.count == 0 {
            return None;
        }
        let discarded_bytes = connection.scanner.pending_bytes();
        connection.scanner.reset();
        let place = self.encoded.set.leave(&mut connection.in_flight);
        Some((place, discarded_bytes))
    }

    #[inline]
    fn take_aside(&mut self, connection: &mut MessagesConnection) -> Aside {
        std::mem::take(&mut connection.aside)
    }

    fn may_still_hear(&self, connection: &MessagesConnection) -> bool {
        connection.was_pushed_to
    }

    const MAY_BE_PUSHED_TO: bool = true;

    /// A message without a reply is done.
    #[inline]
    fn taken(&mut self, connection: &mut MessagesConnection, now_ns: u64) -> Option<(u32, Answer)> {
        if self.encoded.exchange.reply != Framing::None || connection.in_flight.requests.count == 0
        {
            return None;
        }
        let answer = answer(RespKind::Reply, 0, now_ns);
        Some((self.encoded.set.leave(&mut connection.in_flight), answer))
    }

    fn note_put_off(&mut self, connection: &mut MessagesConnection, is_put_off: bool) {
        // What is echoed tells by itself what it answers.
        connection.is_put_off = is_put_off
            && connection.in_flight.requests.count == 1
            && self.encoded.exchange.reply != Framing::Echo;
    }
}
