//! Heads of replies in QPACK, of which the latest is known.

use super::qpack::{self, QpackError};
use crate::Limits;
use crate::fields::reply::MalformedReply;
use crate::fields::reply_head::{Head, Meaning, ReplyFields};

/// The latest head and what it meant; one per worker, with one value of [`Limits`]. Servers send
/// the same head over and over, and without a dynamic table equal bytes mean an equal head.
#[derive(Clone, Debug, Default)]
pub struct KnownHead {
    section: Vec<u8>,
    /// What `section` means; `None` before there is one.
    head: Option<Head>,
    /// Where strings are decoded.
    scratch: Vec<u8>,
    /// Of the first call of gRPC that failed with one.
    call_message: Option<String>,
}

impl KnownHead {
    /// Reads the field section of a head.
    #[inline]
    pub(super) fn head(
        &mut self,
        section: &[u8],
        limits: &Limits,
    ) -> Result<Result<Head, MalformedReply>, QpackError> {
        match self.head {
            Some(head) if self.section == section => Ok(Ok(head)),
            _ => self.new_head(section, limits),
        }
    }

    fn new_head(
        &mut self,
        section: &[u8],
        limits: &Limits,
    ) -> Result<Result<Head, MalformedReply>, QpackError> {
        let head = self.fields(section)?.head(limits);
        if let Ok(head) = head {
            self.section.clear();
            self.section.extend_from_slice(section);
            self.head = Some(head);
        }
        Ok(head)
    }

    /// Reads the field section of trailers: the code in `grpc-status`.
    pub(super) fn trailers(
        &mut self,
        section: &[u8],
        limits: &Limits,
    ) -> Result<Result<Option<u8>, MalformedReply>, QpackError> {
        Ok(self.fields(section)?.trailers(limits))
    }

    fn fields(&mut self, section: &[u8]) -> Result<ReplyFields, QpackError> {
        let mut fields = ReplyFields::default();
        qpack::decode::<Meaning>(section, &mut self.scratch, |field, bytes| {
            fields.add(field, bytes);
        })?;
        if let Some(message) = fields.take_call_message() {
            self.call_message.get_or_insert(message.into());
        }
        Ok(fields)
    }

    /// What the server said of the first call of gRPC that failed (`grpc-message`); once.
    pub fn take_call_message(&mut self) -> Option<String> {
        self.call_message.take()
    }
}
