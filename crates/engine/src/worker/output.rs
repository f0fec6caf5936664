//! What a worker writes: collected for one connection at a time, and handed to its backend.

use brunt_io::backend::{AT_ONCE_BYTES_MAX, ClientBackend, Slot};

use super::Worker;
use crate::connection::Connection;
use crate::protocol::{ClientProtocol, Out, PayloadPart, WorkerTransport};
use crate::workload::Workload;

/// What was written and not yet handed over.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// On which connection.
    pub(super) slot: Slot,
    pub(super) out: Out,
    /// Bytes that were handed over and are in no count yet.
    pub(super) uncounted_bytes: u64,
}

impl Output {
    /// What was written on a connection that is no more goes nowhere.
    pub(super) fn forget(&mut self, slot: Slot) {
        if self.slot == slot {
            self.out.clear();
        }
    }

    /// Counts the large send in flight on `connection`, of which the kernel has not taken
    /// `unsent_bytes`: all of it was taken, or the connection is about to end.
    pub(super) fn settle<P: ClientProtocol>(
        &mut self,
        connection: &mut Connection<P>,
        unsent_bytes: u64,
    ) {
        let bytes = std::mem::take(&mut connection.uncounted_bytes);
        self.uncounted_bytes += bytes.saturating_sub(unsent_bytes);
    }
}

impl<P: ClientProtocol, B: ClientBackend<Transport = P::Transport>, W: Workload> Worker<B, P, W> {
    /// What is written from now on is for `slot`, behind what waits there.
    pub(super) fn write_to(&mut self, slot: Slot) {
        if self.output.slot != slot {
            self.flush();
            self.output.slot = slot;
        }
        if P::WRITES_AHEAD {
            let connections = &mut self.connections;
            self.output.out.begin(|| {
                let writing = connections[slot].writing.as_mut();
                writing.map(|writing| &mut writing.outbox)
            });
        }
    }

    /// Hands what was written to the backend, or to the connection while a send is in flight. It is
    /// counted by [`Worker::count_output`].
    pub(super) fn flush(&mut self) {
        let bytes = self.send_written();
        self.output.uncounted_bytes += bytes;
    }

    /// As [`Worker::flush`]; gives the bytes that the backend got, for the caller to count. Those
    /// of a large send are counted by [`Output::settle`].
    pub(super) fn send_written(&mut self) -> u64 {
        let (protocol, backend) = (&mut self.protocol, &mut self.backend);
        let slot = self.output.slot;
        // A worker without a connection in this round has nothing to send.
        let Some(connection) = self.connections.get_mut(slot) else {
            return 0;
        };
        let mut bytes_sent = 0;
        loop {
            let Connection {
                protocol: own,
                writing,
                sending,
                ..
            } = connection;
            let outbox = writing.as_mut().map(|writing| &mut writing.outbox);
            let transmit = |now_ns, spare: &mut _| protocol.transmit(own, now_ns, spare);
            let out = &mut self.output.out;
            let next = P::Transport::next(out, outbox, *sending, transmit, backend);
            let Some((outgoing, bytes)) = next else {
                break;
            };
            if P::WRITES_AHEAD
                && let Some(sends) = connection.sends()
            {
                sends.begin();
            }
            protocol.sending(&mut connection.protocol);
            if P::Transport::IS_RELIABLE && bytes > AT_ONCE_BYTES_MAX.into() {
                connection.uncounted_bytes = bytes;
            } else {
                bytes_sent += bytes;
            }
            if P::Transport::IS_RELIABLE {
                connection.sending = true;
                backend.send(slot, outgoing);
                break;
            }
            if !backend.send_quietly(slot, outgoing) {
                connection.sending = true;
                break;
            }
            // There may be more, and nothing else asks for it.
            self.output.out.begin(|| None);
        }
        if !P::Transport::IS_RELIABLE {
            let timeout_ns = protocol.next_timeout_ns(&connection.protocol);
            self.connections.arm(slot, timeout_ns);
        }
        bytes_sent
    }

    /// Hands over what was written, unless the protocol collects that while a send is in flight.
    /// Gives the bytes that the backend got.
    #[inline]
    pub(super) fn send_unless_ahead(&mut self) -> u64 {
        if P::WRITES_AHEAD {
            0
        } else {
            self.send_written()
        }
    }

    /// Sends the next part of a stream, a whole payload, on a connection that takes it.
    pub(super) fn send_bytes(&mut self, slot: Slot, chunk: Option<PayloadPart>, now_ns: u64) {
        let connection = &mut self.connections[slot];
        connection.is_used = true;
        if let Some(part) = chunk
            && let Some(outgoing) = P::Transport::shared(part)
        {
            connection.sending = true;
            self.recorder().tally(now_ns).bytes_sent += u64::from(part.end);
            self.backend.send(slot, outgoing);
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
        P::WRITES_AHEAD
            && self.connections[self.output.slot].sending
            && self.output.out.bytes.len() > self.protocol.waiting_bytes_max()
    }
}
