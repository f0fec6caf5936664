//! What becomes of requests that have a stream each, in HTTP/2 and HTTP/3.

use brunt_proto::http2::{FailedCall, MalformedReply};
use brunt_proto::{StreamFailure, StreamsEvent};
use brunt_record::{Answer, FailureKind, ReplyOutcome, RequestTiming};

use super::{ProtocolEvent, TimedOut};

/// Bytes of the RST_STREAM that refuses a stream (RFC 9113 section 6.4): where more were discarded,
/// a response had begun.
const RST_STREAM_BYTES: u64 = 13;

/// How long a connection has waited for its server.
#[derive(Debug, Default)]
pub(super) struct Patience {
    /// When something came last.
    pub(super) heard_ns: u64,
    /// Since when the server allows no request; absent while it does.
    shut_since_ns: Option<u64>,
    /// Nothing was heard that a late request waited for.
    is_dead: bool,
}

impl Patience {
    /// The server allows no request, if it `is_shut`.
    #[inline]
    pub(super) fn note_shut(&mut self, is_shut: bool, now_ns: u64) {
        self.shut_since_ns = is_shut.then(|| self.shut_since_ns.unwrap_or(now_ns));
    }

    /// When a server that allows no request has done so for as long as one may take: another
    /// connection is tried then. [`u64::MAX`] for never.
    #[inline]
    pub(super) fn shut_until_ns(&self, in_flight: u32, timeout_ns: u64) -> u64 {
        let since_ns = self.shut_since_ns.filter(|_| in_flight == 0);
        since_ns.map_or(u64::MAX, |since_ns| since_ns.saturating_add(timeout_ns))
    }

    /// What time brought about on a connection with `in_flight` requests: late ones are cancelled,
    /// one at each call, or tell how the connection fails. Where nothing was heard for as long as
    /// one of them waited, nor since it was sent, the connection itself is dead.
    pub(super) fn timed_out(
        &mut self,
        places: &[RequestTiming],
        timeout_ns: u64,
        now_ns: u64,
        in_flight: u32,
        cancel: impl FnOnce(u32) -> Result<u64, FailureKind>,
    ) -> Option<TimedOut> {
        let is_long_ago = |at_ns: u64| at_ns.saturating_add(timeout_ns) <= now_ns;
        let mut numbered = (0..).zip(places);
        if let Some((place, timing)) = numbered.find(|(_, timing)| is_long_ago(timing.due_ns)) {
            self.is_dead |= is_long_ago(self.heard_ns) && self.heard_ns < timing.sent_ns;
            return Some(match cancel(place) {
                Ok(discarded_bytes) => TimedOut::Request {
                    place,
                    discarded_bytes,
                },
                Err(kind) => TimedOut::Connection(kind),
            });
        }
        let is_shut = self.shut_until_ns(in_flight, timeout_ns) <= now_ns;
        let is_lost = std::mem::take(&mut self.is_dead) || is_shut;
        is_lost.then_some(TimedOut::Connection(FailureKind::Unanswered))
    }
}

/// The event as the worker has it. `of_reset` gives the kind of a stream that the server reset with
/// a code.
#[inline]
pub(super) fn event_of<Code>(
    event: StreamsEvent<Code>,
    of_reset: impl FnOnce(Code) -> FailureKind,
) -> ProtocolEvent {
    match event {
        StreamsEvent::Ready => ProtocolEvent::Ready,
        StreamsEvent::Reply { place, reply } => {
            if let Some(failed) = reply.failed_call {
                return ProtocolEvent::Failed {
                    place,
                    kind: of_call(failed),
                    discarded_bytes: reply.head_bytes + reply.body_bytes,
                    is_unprocessed: false,
                };
            }
            ProtocolEvent::Done {
                place,
                answer: Answer {
                    outcome: ReplyOutcome::of_status(reply.status),
                    retry_after: reply.retry_after,
                    interim: reply.interim,
                    head_bytes: reply.head_bytes,
                    body_bytes: reply.body_bytes,
                    first_byte_ns: reply.first_byte_ns,
                },
                closes: false,
            }
        }
        StreamsEvent::Failed {
            place,
            why,
            discarded_bytes,
        } => {
            let kind = of_failure(why, of_reset);
            let is_unprocessed = match kind {
                FailureKind::NotProcessed => discarded_bytes == 0,
                FailureKind::StreamRefused => discarded_bytes <= RST_STREAM_BYTES,
                _ => false,
            };
            ProtocolEvent::Failed {
                place,
                kind,
                discarded_bytes,
                is_unprocessed,
            }
        }
        StreamsEvent::GoAway { .. } => ProtocolEvent::GoAway,
    }
}

/// The kind of a call of gRPC that failed.
#[cold]
fn of_call(failed: FailedCall) -> FailureKind {
    // The kinds stand in the order of the codes.
    let all = FailureKind::ALL.iter().copied();
    let mut kinds = all.skip_while(|&kind| kind != FailureKind::CallNoStatus);
    let named = match failed {
        FailedCall::NoStatus => Some(FailureKind::CallNoStatus),
        FailedCall::Code(code @ 1..=16) => kinds.nth(code as usize),
        FailedCall::Code(_) => None,
    };
    named.unwrap_or(FailureKind::CallUnknown)
}

/// The kind of a request that failed while its connection did not.
fn of_failure<Code>(
    why: StreamFailure<Code>,
    of_reset: impl FnOnce(Code) -> FailureKind,
) -> FailureKind {
    match why {
        StreamFailure::NotProcessed => FailureKind::NotProcessed,
        StreamFailure::Reset(code) => of_reset(code),
        StreamFailure::Incomplete => FailureKind::TruncatedHead,
        StreamFailure::Window => FailureKind::Http2Error,
        StreamFailure::Malformed(reason) => match reason {
            MalformedReply::Head => FailureKind::MalformedHead,
            MalformedReply::HeadTooLarge => FailureKind::HeadTooLarge,
            MalformedReply::TooManyHeaders => FailureKind::TooManyHeaders,
            MalformedReply::BadContentLength => FailureKind::BadContentLength,
            MalformedReply::ShortBody => FailureKind::TruncatedBody,
            MalformedReply::LongBody => FailureKind::LongBody,
            MalformedReply::BadInterim => FailureKind::BadInterim,
        },
    }
}

#[cfg(test)]
mod tests {
    use brunt_proto::http2::Reply;
    use brunt_proto::http2::frame::ErrorCode;

    use super::*;
    use crate::failure;

    #[test]
    fn what_was_not_processed_is_told_unless_a_response_had_begun() {
        let refused = StreamFailure::Reset(ErrorCode::RefusedStream);
        for (why, discarded_bytes, is_refused) in [
            (StreamFailure::NotProcessed, 0, true),
            (StreamFailure::NotProcessed, 10, false),
            (refused, RST_STREAM_BYTES, true),
            (refused, RST_STREAM_BYTES + 10, false),
            (StreamFailure::Reset(ErrorCode::Cancel), 13, false),
        ] {
            let event = StreamsEvent::Failed {
                place: 3,
                why,
                discarded_bytes,
            };
            let event = event_of(event, failure::of_reset);
            let ProtocolEvent::Failed {
                place: 3,
                is_unprocessed,
                ..
            } = event
            else {
                panic!("{why:?}");
            };
            assert_eq!(is_unprocessed, is_refused, "{why:?}, {discarded_bytes}");
        }
    }

    #[test]
    fn a_call_that_failed_is_counted_by_its_status() {
        use FailedCall::{Code, NoStatus};
        for (failed, words) in [
            (NoStatus, "no status"),
            (Code(1), "CANCELLED"),
            (Code(2), "UNKNOWN"),
            (Code(3), "INVALID_ARGUMENT"),
            (Code(4), "DEADLINE_EXCEEDED"),
            (Code(5), "NOT_FOUND"),
            (Code(6), "ALREADY_EXISTS"),
            (Code(7), "PERMISSION_DENIED"),
            (Code(8), "RESOURCE_EXHAUSTED"),
            (Code(9), "FAILED_PRECONDITION"),
            (Code(10), "ABORTED"),
            (Code(11), "OUT_OF_RANGE"),
            (Code(12), "UNIMPLEMENTED"),
            (Code(13), "INTERNAL"),
            (Code(14), "UNAVAILABLE"),
            (Code(15), "DATA_LOSS"),
            (Code(16), "UNAUTHENTICATED"),
            (Code(17), "UNKNOWN"),
            (Code(255), "UNKNOWN"),
        ] {
            let reply = Reply {
                status: 200,
                retry_after: false,
                failed_call: Some(failed),
                interim: 0,
                head_bytes: 20,
                body_bytes: 3,
                first_byte_ns: 1,
            };
            let event = StreamsEvent::Reply { place: 3, reply };
            let event = event_of(event, failure::of_reset);
            let ProtocolEvent::Failed {
                place: 3,
                kind,
                discarded_bytes: 23,
                is_unprocessed: false,
            } = event
            else {
                panic!("{failed:?}");
            };
            assert_eq!(kind.label(), format!("gRPC: {words}"));
        }
    }
}
