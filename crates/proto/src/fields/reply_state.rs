//! A reply while it is received, in HTTP/2 and HTTP/3.

use super::reply::{FailedCall, MalformedReply, Reply};
use super::reply_head::{ContentLength, Head};
use crate::Limits;

/// A reply while it is received: what it is so far, and whether the next part may follow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyState {
    /// It has no body, whatever its head says.
    pub(crate) is_head: bool,
    /// The request is a call of gRPC.
    pub(crate) is_call: bool,
    /// How a call of gRPC ended, by what came last: the code in `grpc-status`.
    call_code: Option<u8>,
    retry_after: bool,
    /// Of the final head; 0 before it.
    status: u16,
    interim: u16,
    /// Bytes that DATA frames must add up to.
    content_length: Option<u64>,
    /// Bytes in DATA frames, padding left out.
    content_bytes: u64,
    pub(crate) head_bytes: u64,
    pub(crate) body_bytes: u64,
    pub(crate) first_byte_ns: u64,
}

impl ReplyState {
    /// A reply of which nothing was received.
    pub(crate) const fn new(is_head: bool) -> Self {
        Self {
            is_head,
            is_call: false,
            call_code: None,
            retry_after: false,
            status: 0,
            interim: 0,
            content_length: None,
            content_bytes: 0,
            head_bytes: 0,
            body_bytes: 0,
            first_byte_ns: 0,
        }
    }

    /// Bytes received for it.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.head_bytes + self.body_bytes
    }

    /// Whether its final head came.
    #[inline]
    pub(crate) fn has_head(&self) -> bool {
        self.status != 0
    }

    /// A head came, before which there was no final one. `is_last`: nothing follows it. True for a
    /// final one.
    #[inline]
    pub(crate) fn take_head(
        &mut self,
        head: Head,
        is_last: bool,
        limits: &Limits,
    ) -> Result<bool, MalformedReply> {
        if head.status < 200 {
            // RFC 9113 sections 8.1 and 8.6, RFC 9114 sections 4.1 and 4.5.
            if head.status == 101 || is_last || self.interim >= limits.interim_replies {
                return Err(MalformedReply::BadInterim);
            }
            self.interim += 1;
            return Ok(false);
        }
        self.status = head.status;
        self.retry_after = head.retry_after;
        self.call_code = head.call_code;
        let has_body = !self.is_head && head.status != 204 && head.status != 304;
        self.content_length = match head.content_length {
            _ if !has_body => Some(0),
            ContentLength::Absent => None,
            ContentLength::Bytes(bytes) => Some(bytes),
            ContentLength::Bad => return Err(MalformedReply::BadContentLength),
        };
        Ok(true)
    }

    /// So many bytes of content come.
    #[inline]
    pub(crate) fn take_content(&mut self, bytes: u64) -> Result<(), MalformedReply> {
        self.call_code = None;
        self.content_bytes = self.content_bytes.saturating_add(bytes);
        if self
            .content_length
            .is_some_and(|length| self.content_bytes > length)
        {
            return Err(MalformedReply::LongBody);
        }
        Ok(())
    }

    /// Trailers came, with this code in `grpc-status`.
    #[inline]
    pub(crate) fn take_trailers(&mut self, call_code: Option<u8>) {
        self.call_code = call_code;
    }

    /// Nothing follows, and its final head came.
    #[inline]
    pub(crate) fn end(&self) -> Result<Reply, MalformedReply> {
        if self
            .content_length
            .is_some_and(|length| length != self.content_bytes)
        {
            return Err(MalformedReply::ShortBody);
        }
        Ok(Reply {
            status: self.status,
            retry_after: self.retry_after,
            failed_call: self.failed_call(),
            interim: self.interim.into(),
            head_bytes: self.head_bytes,
            body_bytes: self.body_bytes,
            first_byte_ns: self.first_byte_ns,
        })
    }

    #[inline]
    fn failed_call(&self) -> Option<FailedCall> {
        if !self.is_call || self.status >= 400 || self.call_code == Some(0) {
            return None;
        }
        Some(
            self.call_code
                .map_or(FailedCall::NoStatus, FailedCall::Code),
        )
    }
}
