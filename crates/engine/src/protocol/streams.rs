//! What becomes of requests that have a stream each, in HTTP/2 and HTTP/3.

use brunt_proto::http2::MalformedReply;
use brunt_proto::{StreamFailure, StreamsEvent};
use brunt_record::{Answer, FailureKind, ReplyOutcome};

use super::ProtocolEvent;

/// Bytes of the RST_STREAM that refuses a stream (RFC 9113 section 6.4): where more were discarded,
/// a response had begun.
const RST_STREAM_BYTES: u64 = 13;

/// The event as the worker has it. `of_reset` gives the kind of a stream that the server reset with
/// a code.
#[inline]
pub(super) fn event_of<Code>(
    event: StreamsEvent<Code>,
    of_reset: impl FnOnce(Code) -> FailureKind,
) -> ProtocolEvent {
    match event {
        StreamsEvent::Ready => ProtocolEvent::Ready,
        StreamsEvent::Reply { place, reply } if reply.is_failed_call => ProtocolEvent::Failed {
            place,
            kind: FailureKind::CallFailed,
            discarded_bytes: reply.head_bytes + reply.body_bytes,
        },
        StreamsEvent::Reply { place, reply } => ProtocolEvent::Done {
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
        },
        StreamsEvent::Failed {
            place,
            why,
            discarded_bytes,
        } => {
            let kind = of_failure(why, of_reset);
            let may_be_sent_again = match kind {
                FailureKind::NotProcessed => discarded_bytes == 0,
                FailureKind::StreamRefused => discarded_bytes <= RST_STREAM_BYTES,
                _ => false,
            };
            if may_be_sent_again {
                ProtocolEvent::Refused {
                    place,
                    kind,
                    discarded_bytes,
                }
            } else {
                ProtocolEvent::Failed {
                    place,
                    kind,
                    discarded_bytes,
                }
            }
        }
        StreamsEvent::GoAway { .. } => ProtocolEvent::GoAway,
    }
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
            let told = event_of(event, failure::of_reset);
            let is_told = matches!(told, ProtocolEvent::Refused { place: 3, .. });
            assert_eq!(is_told, is_refused, "{why:?}, {discarded_bytes}");
        }
    }
}
