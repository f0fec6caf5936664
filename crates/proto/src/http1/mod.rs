//! HTTP/1.1 (RFC 9112): requests encoded once or given as text, replies framed and counted but not
//! kept.

mod filled_text;
mod head;
mod reply;
mod request;
mod request_text;
#[cfg(test)]
mod tests;

pub use filled_text::{RawRequestsError, check_filled_field, scan_filled_requests};
pub(crate) use head::{Gathered, head_status};
pub use head::{KnownHead, MAX_HEADER_FIELDS, ReplyError, head_fields};
pub use reply::{ChunkedReader, Reply, ReplyParser, ReplyProgress};
pub use request::{Request, RequestError, RequestPart};
pub use request_text::{
    MethodKind, RequestKind, RequestTextError, TEXT_BYTES_MAX, TEXT_REQUESTS_MAX, TextFault,
    TextParts, TextRequest, is_idempotent, scan_requests, scan_requests_into,
};
