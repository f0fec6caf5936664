//! A protocol of the tests: datagrams with a number, which the server sends back. What does not
//! come back is sent again.

use std::num::{NonZeroU16, NonZeroU32};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brunt_io::backend::PayloadId;
use brunt_io::transport::{Datagram, Ecn, OutgoingDatagrams, ReceivedDatagrams};
use brunt_load::{
    MessageExchange, MessageSpec, OpeningMessage, Plan, RequestOrder, RequestSet, Target,
};
use brunt_proto::messages::{Framing, Template};
use brunt_record::{Answer, FailureKind, ReplyOutcome, RequestTiming};

use super::out::Asked;
use super::{
    Broken, ClientProtocol, Ending, Next, Progress, ProtocolEvent, StartOfWorker, TimedOut,
};

/// Datagrams of one send.
const BATCH_MAX: usize = 32;
/// The number of the datagram that opens a connection.
const OPENING: u64 = 0;
/// Bytes of a number.
const NUMBER_BYTES: usize = 8;

/// A closed loop of messages over TCP to `target`, with one that opens each connection. This
/// protocol can speak in their place.
pub(crate) fn echo_plan(target: &str, connections: u32, depth: u32) -> Plan {
    let target = Target::parse_tcp(Some(target), false, None).expect("a server");
    let template = Template::parse("echo").expect("a message");
    let message = MessageSpec {
        name: "echo".to_owned(),
        template: template.clone(),
    };
    let messages = RequestSet::messages_in(RequestOrder::Turns, vec![message]);
    let mut plan = Plan::new(target, messages.expect("a message"));
    let reply: Framing = "line".parse().expect("a framing");
    plan.spoken = MessageExchange {
        reply: reply.clone(),
        opening: Some(OpeningMessage {
            message: template.into(),
            reply,
        }),
        seed: 1,
    }
    .into();
    plan.connections = NonZeroU32::new(connections).expect("not 0");
    plan.pipeline = NonZeroU32::new(depth).expect("not 0");
    plan
}

/// What all workers counted.
#[derive(Debug, Default)]
pub(crate) struct EchoCounts {
    /// Datagrams that were sent.
    pub(crate) sent: AtomicU64,
    /// Of these, those that were sent before.
    pub(crate) again: AtomicU64,
    /// Of these, those that open a connection.
    pub(crate) again_opening: AtomicU64,
    /// Datagrams that came.
    pub(crate) received: AtomicU64,
    /// Of these, those that answer nothing in flight.
    pub(crate) stale: AtomicU64,
    /// Of these, those that the network marked.
    pub(crate) marked: AtomicU64,
    /// Most datagrams that came at once.
    pub(crate) received_at_once: AtomicU64,
}

/// The protocol, as one worker speaks it.
#[derive(Clone, Debug)]
pub(crate) struct Echo {
    datagram_bytes: NonZeroU16,
    /// What did not come back for so long is sent again.
    patience_ns: u64,
    timeout_ns: u64,
    depth: u32,
    counts: Arc<EchoCounts>,
    /// The next number, of all connections.
    next_number: u64,
}

/// A datagram that was sent and did not come back, or that is to be sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u64,
    /// Absent: it is to be sent now.
    again_ns: Option<u64>,
    was_sent: bool,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct EchoConnection {
    opening: Option<Sent>,
    places: Vec<Option<Sent>>,
    overhead_bytes: u64,
}

impl Sent {
    fn new(number: u64) -> Self {
        Self {
            number,
            again_ns: None,
            was_sent: false,
        }
    }
}

impl EchoConnection {
    fn all(&mut self) -> impl Iterator<Item = &mut Sent> {
        self.opening
            .iter_mut()
            .chain(self.places.iter_mut().flatten())
    }
}

impl Echo {
    pub(crate) fn new(
        datagram_bytes: u16,
        patience_ns: u64,
        depth: u32,
        counts: &Arc<EchoCounts>,
    ) -> Self {
        Self {
            datagram_bytes: NonZeroU16::new(datagram_bytes).expect("not 0"),
            patience_ns,
            timeout_ns: u64::MAX,
            depth,
            counts: Arc::clone(counts),
            next_number: OPENING + 1,
        }
    }
}

fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl ClientProtocol for Echo {
    type Transport = Datagram;
    type Connection = EchoConnection;

    const IN_ORDER: bool = false;
    const WRITES_AHEAD: bool = true;

    fn start(&mut self, start: StartOfWorker, _add: &mut dyn FnMut(Arc<[u8]>) -> PayloadId) {
        self.timeout_ns = start.timeout_ns;
    }

    fn connection(&self) -> EchoConnection {
        EchoConnection {
            opening: None,
            places: vec![None; self.depth as usize],
            overhead_bytes: 0,
        }
    }

    fn open(&mut self, connection: &mut EchoConnection, _out: &mut Asked, _now_ns: u64) -> bool {
        connection.opening = Some(Sent::new(OPENING));
        false
    }

    fn close(&mut self, connection: &mut EchoConnection) -> u64 {
        *connection = self.connection();
        0
    }

    fn request(&mut self, connection: &mut EchoConnection, _next: Next, _out: &mut Asked) -> u32 {
        let place = connection.places.iter().position(Option::is_none);
        let place = place.expect("a free place");
        connection.places[place] = Some(Sent::new(self.next_number));
        self.next_number += 1;
        place as u32
    }

    fn transmit(
        &mut self,
        connection: &mut EchoConnection,
        now_ns: u64,
        spare: &mut Vec<u8>,
    ) -> Option<OutgoingDatagrams> {
        let mut bytes = std::mem::take(spare);
        let due = connection.all().filter(|sent| sent.again_ns.is_none());
        for sent in due.take(BATCH_MAX) {
            let end = bytes.len() + usize::from(self.datagram_bytes.get());
            bytes.extend_from_slice(&sent.number.to_be_bytes());
            bytes.resize(end, b'.');
            count(&self.counts.sent, 1);
            count(&self.counts.again, u64::from(sent.was_sent));
            let is_opening = sent.was_sent && sent.number == OPENING;
            count(&self.counts.again_opening, u64::from(is_opening));
            sent.was_sent = true;
            sent.again_ns = Some(now_ns + self.patience_ns);
        }
        if bytes.is_empty() {
            *spare = bytes;
            return None;
        }
        Some(OutgoingDatagrams {
            bytes,
            segment_bytes: self.datagram_bytes,
            ecn: Some(Ecn::Capable0),
        })
    }

    fn receive(
        &mut self,
        connection: &mut EchoConnection,
        received: ReceivedDatagrams<'_>,
        received_ns: u64,
        _places: &[RequestTiming],
        _out: &mut Asked,
    ) -> Result<Progress, Broken> {
        let mut consumed = 0;
        let at_once = received.segments().len() as u64;
        self.counts
            .received_at_once
            .fetch_max(at_once, Ordering::Relaxed);
        for datagram in received.segments() {
            consumed += datagram.len();
            count(&self.counts.received, 1);
            let is_marked = received.ecn == Some(Ecn::CongestionExperienced);
            count(&self.counts.marked, u64::from(is_marked));
            assert_eq!(datagram.len(), usize::from(self.datagram_bytes.get()));
            let number = datagram.first_chunk::<NUMBER_BYTES>().expect("a number");
            let number = u64::from_be_bytes(*number);
            let is_it = |sent: &Sent| sent.number == number;
            if connection.opening.take_if(|sent| is_it(sent)).is_some() {
                connection.overhead_bytes += datagram.len() as u64;
                return Ok(Progress {
                    consumed,
                    event: Some(ProtocolEvent::Ready),
                });
            }
            let place = connection
                .places
                .iter()
                .position(|sent| sent.as_ref().is_some_and(is_it));
            let Some(place) = place else {
                connection.overhead_bytes += datagram.len() as u64;
                count(&self.counts.stale, 1);
                continue;
            };
            connection.places[place] = None;
            let answer = Answer {
                outcome: ReplyOutcome::SUCCESS,
                retry_after: false,
                interim: 0,
                head_bytes: 0,
                body_bytes: datagram.len() as u64,
                first_byte_ns: received_ns,
            };
            return Ok(Progress {
                consumed,
                event: Some(ProtocolEvent::Done {
                    place: place as u32,
                    answer,
                    closes: false,
                }),
            });
        }
        Ok(Progress {
            consumed,
            event: None,
        })
    }

    fn ended(&mut self, _connection: &mut EchoConnection) -> Ending {
        Ending::Fails(FailureKind::ClosedBeforeReply)
    }

    fn next_timeout_ns(&self, connection: &EchoConnection) -> u64 {
        let placed = connection.places.iter().flatten();
        let all = connection.opening.iter().chain(placed);
        all.filter_map(|sent| sent.again_ns)
            .min()
            .unwrap_or(u64::MAX)
    }

    fn timed_out(
        &mut self,
        connection: &mut EchoConnection,
        now_ns: u64,
        places: &[RequestTiming],
        _out: &mut Asked,
    ) -> Option<TimedOut> {
        for sent in connection.all() {
            if sent.again_ns.is_some_and(|again_ns| again_ns <= now_ns) {
                sent.again_ns = None;
            }
        }
        let is_late =
            |timing: &RequestTiming| timing.due_ns.saturating_add(self.timeout_ns) <= now_ns;
        let place = places.iter().position(is_late)?;
        connection.places[place] = None;
        Some(TimedOut::Request {
            place: place as u32,
            discarded_bytes: 0,
        })
    }

    fn abandon(&mut self, connection: &mut EchoConnection) -> Option<(u32, u64)> {
        let place = connection.places.iter().position(Option::is_some)?;
        connection.places[place] = None;
        Some((place as u32, 0))
    }

    fn take_overhead(&mut self, connection: &mut EchoConnection) -> u64 {
        std::mem::take(&mut connection.overhead_bytes)
    }

    fn may_still_hear(&self, _connection: &EchoConnection) -> bool {
        true
    }
}
