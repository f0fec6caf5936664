//! What a worker writes: collected for one connection at a time, and handed to its backend.

use brunt_io::backend::{ClientBackend, Outgoing, Slot};

use super::Worker;
use crate::protocol::{ClientProtocol, Out};

/// What was written and not yet handed over.
#[derive(Debug)]
pub(super) struct Output {
    /// On which connection.
    slot: Slot,
    out: Out,
    /// Bytes that were handed over and are in no count yet.
    uncounted_bytes: u64,
}

impl Default for Output {
    fn default() -> Self {
        Self {
            slot: Slot(0),
            out: Out::default(),
            uncounted_bytes: 0,
        }
    }
}

impl Output {
    /// Where protocols write.
    pub(super) fn out(&mut self) -> &mut Out {
        &mut self.out
    }

    /// What was written on a connection that is no more goes nowhere.
    pub(super) fn forget(&mut self, slot: Slot) {
        if self.slot == slot {
            self.out.clear();
        }
    }
}

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    /// What is written from now on is for `slot`, behind what waits there.
    pub(super) fn write_to(&mut self, slot: Slot) {
        if self.output.slot != slot {
            self.flush();
            self.output.slot = slot;
        }
        if P::WRITES_AHEAD
            && self.output.out.is_empty()
            && let Some(writing) = &mut self.connections[slot].writing
            && !writing.outbox.is_empty()
        {
            std::mem::swap(&mut self.output.out.bytes, &mut writing.outbox);
        }
    }

    /// Hands what was written to the backend, or to the connection while a send is in flight. It is
    /// counted by [`Worker::count_output`].
    pub(super) fn flush(&mut self) {
        self.output.uncounted_bytes += self.send_output();
    }

    /// As [`Worker::flush`]; gives the bytes that the backend got, for the caller to count.
    pub(super) fn send_output(&mut self) -> u64 {
        let Output { slot, out, .. } = &mut self.output;
        // A worker without a connection in this round has nothing to send.
        let Some(connection) = self.connections.get_mut(*slot) else {
            return 0;
        };
        let (outgoing, bytes) = if let Some(part) = out.take_shared() {
            let bytes = u64::from(part.end - part.start);
            let outgoing = Outgoing::Shared {
                payload: part.payload,
                start: part.start,
                end: part.end,
            };
            (outgoing, bytes)
        } else if out.bytes.is_empty() {
            return 0;
        } else {
            let written = std::mem::replace(&mut out.bytes, self.backend.take_buffer());
            if let Some(writing) = &mut connection.writing {
                if connection.sending {
                    writing.outbox = written;
                    return 0;
                }
                // An idle connection keeps no buffer.
                writing.outbox = Vec::new();
            }
            let bytes = written.len() as u64;
            (Outgoing::Owned(written), bytes)
        };
        if P::WRITES_AHEAD
            && let Some(sends) = connection.sends()
        {
            sends.begin();
        }
        connection.sending = true;
        self.protocol.sending(&mut connection.protocol);
        self.backend.send(*slot, outgoing);
        self.accounting.progress.bytes_sent += bytes;
        bytes
    }

    /// Counts what was handed over since this was last done.
    pub(super) fn count_output(&mut self, now_ns: u64) {
        let bytes = std::mem::take(&mut self.output.uncounted_bytes);
        if bytes > 0 {
            self.accounting.recorder.handed_over(now_ns, bytes);
        }
    }

    /// A send was taken where more may have been written meanwhile: that goes out with the next
    /// flush.
    pub(super) fn resume_output(&mut self, slot: Slot) {
        self.write_to(slot);
        let connection = &mut self.connections[slot];
        if let Some(sends) = connection.sends() {
            sends.taken(self.backend.send_call(slot));
        }
        self.protocol
            .resume(&mut connection.protocol, &mut self.output.out);
    }

    /// Whether more waits to be sent on the connection that is being written to than the requests
    /// in flight bring about: its server asks for answers and takes none.
    pub(super) fn is_flooded(&self) -> bool {
        let Output { slot, out, .. } = &self.output;
        P::WRITES_AHEAD
            && self.connections[*slot].sending
            && out.bytes.len() > self.protocol.waiting_bytes_max()
    }
}
