//! What a worker looks at more closely than it counts: connections with stamps, the beginnings of
//! responses, the kernel's accounts of some connections.

use std::num::NonZeroU32;

use brunt_io::backend::{ClientBackend, Slot};
use brunt_proto::{BodiesWanted, Body};
use brunt_record::{
    Answer, ErrorBody, Instants, KernelSample, LoggedResponse, Parts, RequestTiming,
};

use super::accounting::Accounting;
use super::table::ConnectionTable;
use crate::connection::{SendTime, State};
use crate::protocol::ClientProtocol;

/// The statuses that report errors (RFC 9110 section 15).
const FIRST_ERROR: u16 = 400;
/// Error responses that are looked at: a server that has but one kind of error is asked no further.
const ERRORS_READ_MAX: u32 = 64;
/// The kernel's account is read for one connection in this many, and this many in all.
const KERNEL_SAMPLE_EVERY: usize = 64;
const KERNEL_SAMPLE_MAX: u32 = 16;

/// What is still to be looked at in a round.
#[derive(Debug)]
pub(super) struct Sampling {
    /// One connection in this many is stamped by the kernel.
    stamps_every: Option<NonZeroU32>,
    /// Error responses whose beginnings are still to be read.
    errors_left: u32,
    /// Responses whose beginnings are still to be logged.
    responses_left: u32,
}

/// When received bytes reached the machine and the worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reception {
    /// Their last byte reached this machine, by the kernel's stamp. Absent on connections without
    /// stamps.
    pub(super) stamp_ns: Option<u64>,
    /// The worker had them.
    pub(super) received_ns: u64,
}

impl Sampling {
    /// The samples of a round. `reads_errors`: the beginnings of error responses are kept.
    /// `responses_max`: so many beginnings of responses are logged.
    pub(super) fn new(
        stamps_every: Option<NonZeroU32>,
        reads_errors: bool,
        responses_max: u32,
    ) -> Self {
        Self {
            stamps_every,
            errors_left: if reads_errors { ERRORS_READ_MAX } else { 0 },
            responses_left: responses_max,
        }
    }

    /// Whether the kernel stamps what comes on the connection.
    #[inline]
    pub(super) fn is_stamped(&self, slot: Slot) -> bool {
        self.stamps_every
            .is_some_and(|every| slot.0.is_multiple_of(every.get()))
    }

    /// What is kept of responses: the beginnings of all that are logged, else of errors alone.
    pub(super) fn wanted(&self) -> BodiesWanted {
        if self.responses_left > 0 {
            return BodiesWanted {
                from_status: 0,
                bytes_max: LoggedResponse::BYTES_MAX,
                heads: true,
            };
        }
        if self.errors_left == 0 {
            return BodiesWanted::NONE;
        }
        BodiesWanted {
            from_status: FIRST_ERROR,
            bytes_max: ErrorBody::BYTES_MAX,
            heads: false,
        }
    }

    /// Whether the beginning of this response is to be read.
    #[inline]
    pub(super) fn reads(&self, answer: &Answer) -> bool {
        self.errors_left > 0 && !answer.outcome.is_success()
    }

    /// Reads a response with an error, of which `body` was kept: what the server says in its first
    /// one of each status is recorded. Gives whether that was the last to be read.
    #[cold]
    pub(super) fn read_error(
        &mut self,
        answer: &Answer,
        body: Option<&Body>,
        kept: &mut Vec<ErrorBody>,
    ) -> bool {
        if let (Some(status), Some(body)) = (answer.outcome.status(), body)
            && kept.iter().all(|one| one.status != status)
        {
            let most = body.bytes.len().min(ErrorBody::BYTES_MAX as usize);
            let beginning = &body.bytes[..most];
            kept.push(ErrorBody {
                status,
                text: String::from_utf8_lossy(beginning).into_owned(),
                is_cut: body.is_cut || beginning.len() < body.bytes.len(),
            });
        }
        self.errors_left -= 1;
        if kept.len() == ErrorBody::KEPT_MAX {
            self.errors_left = 0;
        }
        self.errors_left == 0
    }

    /// Whether the beginning of the response at hand is to be logged. It is one less then.
    pub(super) fn takes_response(&mut self) -> bool {
        let takes = self.responses_left > 0;
        self.responses_left -= u32::from(takes);
        takes
    }
}

impl Reception {
    /// The reception of bytes without a stamp.
    pub(super) fn unstamped(received_ns: u64) -> Self {
        Self {
            stamp_ns: None,
            received_ns,
        }
    }

    /// Since when the requests that these bytes answer are no longer in flight.
    #[inline]
    pub(super) fn free_ns(&self) -> u64 {
        self.stamp_ns.unwrap_or(self.received_ns)
    }

    /// Finds the parts of a response time where the kernel's stamps tell them, and records them if
    /// the response time `is_recorded`. Gives since when the place of the request would be free,
    /// had brunt taken no time: what makes the next request there later than that is brunt's fault,
    /// and not the server's.
    #[inline]
    pub(super) fn split(
        self,
        timing: RequestTiming,
        done_ns: u64,
        send: SendTime,
        is_recorded: bool,
        accounting: &mut Accounting,
    ) -> u64 {
        let (Some(arrived_ns), Some(send_call)) = (self.stamp_ns, send.send_call) else {
            return self.free_ns();
        };
        if timing.again > 0 {
            // Its parts are those of several sends.
            return self.free_ns();
        }
        let (parts, misplaced) = Parts::of(&Instants {
            due_ns: timing.due_ns,
            free_ns: send.free_ns,
            send_from_ns: send_call.from_ns,
            send_to_ns: send_call.to_ns,
            arrived_ns,
            received_ns: self.received_ns,
            done_ns,
        });
        accounting.split(timing.due_ns, (parts, misplaced), is_recorded);
        timing.due_ns.saturating_add(parts.rest_ns())
    }
}

/// The kernel's accounts of a sample of connections, to be set beside brunt's own.
pub(super) fn kernel_sample<B: ClientBackend, P: ClientProtocol>(
    connections: &ConnectionTable<P>,
    protocol: &P,
    backend: &B,
) -> KernelSample {
    let mut sample = KernelSample::default();
    for slot in connections.slots().step_by(KERNEL_SAMPLE_EVERY) {
        let connection = &connections[slot];
        // Only connections at rest: bytes of a reply in flight may be anywhere between the kernel
        // and here.
        let at_rest = connection.state == State::Open
            && connection.in_flight == 0
            && !protocol.may_still_hear(&connection.protocol);
        if !at_rest || sample.connections == KERNEL_SAMPLE_MAX {
            continue;
        }
        let Some(info) = backend.tcp_info(slot) else {
            continue;
        };
        sample.merge(&KernelSample {
            connections: 1,
            kernel_bytes_received: info.bytes_received,
            own_bytes_received: connection.received_bytes + info.bytes_unread,
            min_rtt_ns: info.min_rtt_ns,
            segments_sent: info.segments_sent,
            segments_retransmitted: info.segments_retransmitted,
            segments_received: info.segments_received,
            segments_out_of_order: info.segments_out_of_order,
            busy_ns: info.busy_ns,
            receive_window_limited_ns: info.receive_window_limited_ns,
            send_buffer_limited_ns: info.send_buffer_limited_ns,
            receive_rtt_ns_max: info.receive_rtt_ns,
        });
    }
    sample
}

#[cfg(test)]
mod tests {
    use brunt_record::ReplyOutcome;

    use super::*;

    fn answer(status: u16) -> Answer {
        Answer {
            outcome: ReplyOutcome::of_status(status),
            retry_after: false,
            interim: 0,
            head_bytes: 0,
            body_bytes: 0,
            first_byte_ns: 0,
        }
    }

    fn body(text: &str) -> Body {
        Body {
            bytes: text.as_bytes().to_vec(),
            ..Body::default()
        }
    }

    #[test]
    fn one_connection_in_so_many_is_stamped() {
        let stamped = |every| {
            let sampling = Sampling::new(NonZeroU32::new(every), false, 0);
            (0..6)
                .filter(|&slot| sampling.is_stamped(Slot(slot)))
                .count()
        };
        assert_eq!([stamped(0), stamped(1), stamped(4)], [0, 6, 2]);
    }

    #[test]
    fn what_is_kept_of_responses_gets_less_as_they_are_read() {
        let mut sampling = Sampling::new(None, true, 2);
        assert!(sampling.wanted().heads);
        assert!(sampling.takes_response() && sampling.takes_response());
        assert!(!sampling.takes_response());
        assert_eq!(sampling.wanted().from_status, FIRST_ERROR);
        let mut kept = Vec::new();
        assert!(sampling.reads(&answer(500)) && !sampling.reads(&answer(200)));
        for _ in 1..ERRORS_READ_MAX {
            assert!(!sampling.read_error(&answer(500), Some(&body("down")), &mut kept));
        }
        assert!(sampling.read_error(&answer(500), Some(&body("down")), &mut kept));
        assert!(!sampling.reads(&answer(500)));
        assert_eq!(kept.len(), 1);
        assert_eq!((kept[0].status, kept[0].text.as_str()), (500, "down"));
        assert_eq!(sampling.wanted().bytes_max, BodiesWanted::NONE.bytes_max);
    }

    #[test]
    fn errors_of_enough_kinds_are_read_and_no_more() {
        let mut sampling = Sampling::new(None, true, 0);
        let mut kept = Vec::new();
        let read = (400..600).take_while(|&status| {
            !sampling.read_error(&answer(status), Some(&body("no")), &mut kept)
        });
        assert_eq!(read.count() + 1, ErrorBody::KEPT_MAX);
    }

    #[test]
    fn a_place_is_free_since_the_stamp_where_there_is_one() {
        assert_eq!(Reception::unstamped(9).free_ns(), 9);
        let stamped = Reception {
            stamp_ns: Some(4),
            received_ns: 9,
        };
        assert_eq!(stamped.free_ns(), 4);
    }
}
