//! Requests that are sent before the handshake is complete (0-RTT, RFC 9001 section 4.6), and again
//! where the server does not take them.

use bytes::{Buf as _, Bytes};
use quinn_proto::{Dir, SendStream, WriteError};

use super::{Client, STREAMS_MAX};
use crate::http3::template::WorkerTemplate;
use crate::quic::EARLY_BYTES_MAX;

/// Whether a connection has sent early data, and whether the server accepted it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EarlyData {
    /// None can be sent: no session that allows it is resumed, or nobody asked for it.
    #[default]
    None,
    /// Requests can be sent before the handshake is complete.
    Offered,
    /// The server took them.
    Accepted,
    /// The server took none. Requests in flight were sent again, as far as it allows streams; the
    /// others are given out as not processed.
    Rejected,
}

/// Requests that are sent as early data, as long as the server may not take them.
#[derive(Debug)]
pub(super) struct EarlyRequests {
    /// By place.
    sent: Vec<(u32, WorkerTemplate)>,
    /// Bytes that may still go before the handshake is confirmed; absent when it is, or without
    /// early data.
    left_bytes: Option<usize>,
}

impl EarlyRequests {
    pub(super) fn new() -> Self {
        Self {
            sent: Vec::new(),
            left_bytes: None,
        }
    }

    /// Whether only so much may go.
    #[inline]
    pub(super) fn are_limited(&self) -> bool {
        self.left_bytes.is_some()
    }

    pub(super) fn push(&mut self, place: u32, template: &WorkerTemplate) {
        self.sent.push((place, template.clone()));
    }

    /// The request in this place is given up.
    pub(super) fn remove(&mut self, place: u32) {
        self.sent.retain(|&(at, _)| at != place);
    }

    /// Writes of a request what may go before the handshake is confirmed.
    pub(super) fn write(
        &mut self,
        stream: &mut SendStream<'_>,
        unsent: &mut Bytes,
    ) -> Result<(), WriteError> {
        let left_bytes = self.left_bytes.unwrap_or(0);
        let may_go = unsent.len().min(left_bytes);
        if may_go == 0 {
            return Err(WriteError::Blocked);
        }
        let written = stream.write(&unsent[..may_go])?;
        self.left_bytes = Some(left_bytes - written);
        unsent.advance(written);
        Ok(())
    }

    fn take(&mut self) -> Vec<(u32, WorkerTemplate)> {
        std::mem::take(&mut self.sent)
    }
}

impl Client {
    /// Whether early data was sent, and whether the server accepted it, as far as is known.
    pub fn early_data(&self) -> EarlyData {
        self.early_data
    }

    /// Opens what can be used before the handshake is complete.
    pub(super) fn begin_early(&mut self) {
        if !self.quic.has_early_data() {
            return;
        }
        // Until the handshake is confirmed, which ends the probes, too.
        self.early_requests.left_bytes = Some(EARLY_BYTES_MAX);
        if self.open_control() {
            self.early_data = EarlyData::Offered;
            self.open_streams();
        }
    }

    /// The handshake is complete: gives whether the server took early data.
    pub(super) fn early_data_taken(&mut self, now_ns: u64) -> bool {
        if self.early_data != EarlyData::Offered || !self.quic.took_early_data(now_ns) {
            return false;
        }
        self.early_data = EarlyData::Accepted;
        self.early_requests.take();
        true
    }

    /// Sends what was held up until the handshake is confirmed, if it is.
    pub(super) fn send_held_up(&mut self) {
        if self.is_ready && self.quic.is_confirmed() {
            self.early_requests.left_bytes = None;
            for place in self.places.unsent() {
                self.write(place);
            }
        }
    }

    /// Sends again what the server did not take. There are no streams any more, and those that it
    /// allows now may be fewer than when the session was made.
    pub(super) fn repeat_early(&mut self) {
        if self.early_data != EarlyData::Offered {
            return;
        }
        self.early_data = EarlyData::Rejected;
        self.early_requests.left_bytes = Some(EARLY_BYTES_MAX);
        (self.next_stream, self.opened_streams) = (0, 0);
        for (place, template) in self.early_requests.take() {
            if self.quic.inner().streams().open(Dir::Bi).is_some() {
                self.places.retake(place, self.next_stream, &template);
                self.next_stream += 1;
                self.opened_streams += 1;
                self.write(place);
            } else {
                // No stream has that number.
                let without_stream = self.places.get_mut(place);
                without_stream.stream = STREAMS_MAX + u64::from(place);
                (without_stream.unsent, without_stream.is_sent) = (Bytes::new(), true);
                self.refuses = true;
            }
        }
    }
}
