//! What a worker writes: collected for one connection at a time, and handed to its backend.

use brunt_io::backend::{AT_ONCE_BYTES_MAX, ClientBackend, Slot};

use super::table::ConnectionTable;
use crate::connection::Connection;
use crate::protocol::{ClientProtocol, Outbox, Part, WorkerTransport, Written};
use crate::workload::Chunk;

/// What was written and not yet handed over.
#[derive(Debug)]
pub(super) struct Output<T: WorkerTransport> {
    /// On which connection.
    slot: Slot,
    out: T::Out,
    /// Bytes that were handed over, and those of them that are in no count yet.
    pub(super) bytes_sent: u64,
    uncounted_bytes: u64,
}

impl<T: WorkerTransport> Default for Output<T> {
    fn default() -> Self {
        Self {
            slot: Slot(0),
            out: T::Out::default(),
            bytes_sent: 0,
            uncounted_bytes: 0,
        }
    }
}

impl<T: WorkerTransport> Output<T> {
    /// Where protocols write.
    #[inline]
    pub(super) fn out(&mut self) -> &mut T::Out {
        &mut self.out
    }

    /// What was written on a connection that is no more goes nowhere.
    pub(super) fn forget(&mut self, slot: Slot) {
        if self.slot == slot {
            self.out.clear();
        }
    }

    /// Bytes that were flushed since this was last asked.
    #[inline]
    pub(super) fn take_uncounted(&mut self) -> u64 {
        std::mem::take(&mut self.uncounted_bytes)
    }

    /// What is written from now on is for `slot`, behind what waits there.
    pub(super) fn write_to<B, P>(
        &mut self,
        slot: Slot,
        connections: &mut ConnectionTable<P>,
        (protocol, backend): (&mut P, &mut B),
    ) where
        B: ClientBackend<Transport = T>,
        P: ClientProtocol<Transport = T>,
    {
        if self.slot != slot {
            self.flush(connections, (protocol, backend));
            self.slot = slot;
        }
        if P::WRITES_AHEAD {
            self.out.begin(|| {
                let writing = connections[slot].writing.as_mut();
                writing.map(|writing| &mut writing.outbox)
            });
        }
    }

    /// Hands what was written to the backend, or to the connection while a send is in flight. It is
    /// counted when [`Output::take_uncounted`] is asked.
    pub(super) fn flush<B, P>(
        &mut self,
        connections: &mut ConnectionTable<P>,
        (protocol, backend): (&mut P, &mut B),
    ) where
        B: ClientBackend<Transport = T>,
        P: ClientProtocol<Transport = T>,
    {
        self.uncounted_bytes += self.send(connections, (protocol, backend));
    }

    /// As [`Output::flush`]; gives the bytes that the backend got, for the caller to count. Those
    /// of a large send are counted by [`Output::settle`].
    pub(super) fn send<B, P>(
        &mut self,
        connections: &mut ConnectionTable<P>,
        (protocol, backend): (&mut P, &mut B),
    ) -> u64
    where
        B: ClientBackend<Transport = T>,
        P: ClientProtocol<Transport = T>,
    {
        let Self { slot, out, .. } = self;
        // A worker without a connection in this round has nothing to send.
        let Some(connection) = connections.get_mut(*slot) else {
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
            let outbox = Outbox {
                bytes: writing.as_mut().map(|writing| &mut writing.outbox),
                is_sending: *sending,
            };
            let transmit = |now_ns, spare: &mut _| protocol.transmit(own, now_ns, spare);
            let Some((outgoing, bytes)) = out.next(outbox, transmit, backend) else {
                break;
            };
            if P::WRITES_AHEAD
                && let Some(sends) = connection.sends()
            {
                sends.begin();
            }
            protocol.sending(&mut connection.protocol);
            if T::IS_RELIABLE && bytes > AT_ONCE_BYTES_MAX.into() {
                connection.uncounted_bytes = bytes;
            } else {
                bytes_sent += bytes;
            }
            if T::IS_RELIABLE {
                connection.sending = true;
                backend.send(*slot, outgoing);
                break;
            }
            if !backend.send_quietly(*slot, outgoing) {
                connection.sending = true;
                break;
            }
            // There may be more, and nothing else asks for it.
            out.begin(|| None);
        }
        if !T::IS_RELIABLE {
            let timeout_ns = protocol.next_timeout_ns(&connection.protocol);
            connections.arm(*slot, timeout_ns);
        }
        self.bytes_sent += bytes_sent;
        bytes_sent
    }

    /// Counts the large send in flight on `connection`, of which the kernel has not taken
    /// `unsent_bytes`: all of it was taken, or the connection is about to end.
    pub(super) fn settle<P: ClientProtocol<Transport = T>>(
        &mut self,
        connection: &mut Connection<P>,
        unsent_bytes: u64,
    ) {
        let bytes = std::mem::take(&mut connection.uncounted_bytes);
        self.count_late(bytes.saturating_sub(unsent_bytes));
    }

    /// Counts what the kernel took of sends whose connection had been closed.
    pub(super) fn count_late(&mut self, bytes: u64) {
        self.bytes_sent += bytes;
        self.uncounted_bytes += bytes;
    }

    /// Hands a whole payload to the backend, on a connection on which nothing is written.
    pub(super) fn send_chunk<B: ClientBackend<Transport = T>>(
        &mut self,
        slot: Slot,
        chunk: Chunk,
        backend: &mut B,
    ) {
        let part = Part {
            payload: chunk.payload,
            start: 0,
            end: chunk.bytes,
        };
        if let Some(outgoing) = T::shared(part) {
            backend.send(slot, outgoing);
            self.bytes_sent += u64::from(chunk.bytes);
        }
    }

    /// A send was taken where more may have been written meanwhile: that goes out with the next
    /// flush.
    pub(super) fn resume<B, P>(
        &mut self,
        slot: Slot,
        connections: &mut ConnectionTable<P>,
        (protocol, backend): (&mut P, &mut B),
    ) where
        B: ClientBackend<Transport = T>,
        P: ClientProtocol<Transport = T>,
    {
        self.write_to(slot, connections, (protocol, backend));
        let connection = &mut connections[slot];
        if let Some(sends) = connection.sends() {
            sends.taken(backend.send_call(slot));
        }
        protocol.resume(&mut connection.protocol, &mut self.out);
    }

    /// Whether more waits to be sent on the connection that is being written to than the requests
    /// in flight bring about: its server asks for answers and takes none.
    pub(super) fn is_flooded<P: ClientProtocol<Transport = T>>(
        &self,
        connections: &ConnectionTable<P>,
        protocol: &P,
    ) -> bool {
        P::WRITES_AHEAD
            && connections[self.slot].sending
            && self.out.own_bytes() > protocol.waiting_bytes_max()
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::SocketAddr;
    use std::sync::Arc;

    use brunt_io::backend::{Backend, Event, Outgoing, PayloadId, Peer};
    use brunt_io::tcp_info::TcpInfo;
    use brunt_io::transport::Stream;

    use super::*;
    use crate::protocol::Unread;

    /// What was sent on which slot.
    #[derive(Default)]
    struct Sent(Vec<(u32, Vec<u8>)>);

    impl Backend for Sent {
        type Transport = Stream;

        fn now_ns(&self) -> u64 {
            0
        }

        fn add_payload(&mut self, _bytes: Arc<[u8]>) -> PayloadId {
            PayloadId(0)
        }

        fn send(&mut self, slot: Slot, outgoing: Outgoing) {
            let bytes = match outgoing {
                Outgoing::Owned(bytes) => bytes,
                Outgoing::Shared { start, end, .. } => vec![b'.'; (end - start) as usize],
            };
            self.0.push((slot.0, bytes));
        }

        fn take_buffer(&mut self) -> Vec<u8> {
            Vec::new()
        }

        fn close(&mut self, _slot: Slot) {}

        fn wait(&mut self, _until_ns: Option<u64>) -> io::Result<()> {
            Ok(())
        }

        fn next_event(&mut self) -> Option<Event> {
            None
        }

        fn received(&self) -> &[u8] {
            &[]
        }
    }

    impl ClientBackend for Sent {
        fn open(&mut self, _: Slot, _: &Peer, _: Option<SocketAddr>) -> io::Result<()> {
            Ok(())
        }

        fn tcp_info(&self, _slot: Slot) -> Option<TcpInfo> {
            None
        }
    }

    #[test]
    fn what_is_written_goes_out_before_another_connection_is_written_to() {
        let mut table = ConnectionTable::new(&Unread, 3, 0, 1);
        let (mut output, mut backend) = (Output::<Stream>::default(), Sent::default());
        output.write_to(Slot(1), &mut table, (&mut Unread, &mut backend));
        output.out().bytes.extend_from_slice(b"one");
        output.write_to(Slot(1), &mut table, (&mut Unread, &mut backend));
        assert!(backend.0.is_empty());
        output.write_to(Slot(2), &mut table, (&mut Unread, &mut backend));
        assert_eq!(backend.0, [(1, b"one".to_vec())]);
        assert!(table[Slot(1)].sending && !table[Slot(2)].sending);
        output.out().bytes.extend_from_slice(b"four");
        assert_eq!(output.send(&mut table, (&mut Unread, &mut backend)), 4);
        output.flush(&mut table, (&mut Unread, &mut backend));
        // What was sent for somebody to count is not among what is still to be counted.
        assert_eq!([output.take_uncounted(), output.take_uncounted()], [3, 0]);
        assert_eq!((output.bytes_sent, backend.0.len()), (7, 2));
    }

    #[test]
    fn what_was_written_on_a_lost_connection_goes_nowhere() {
        let mut table = ConnectionTable::new(&Unread, 2, 0, 1);
        let (mut output, mut backend) = (Output::<Stream>::default(), Sent::default());
        output.write_to(Slot(1), &mut table, (&mut Unread, &mut backend));
        output.out().bytes.extend_from_slice(b"one");
        output.forget(Slot(0));
        assert!(!output.out().is_empty());
        output.forget(Slot(1));
        output.flush(&mut table, (&mut Unread, &mut backend));
        assert!(backend.0.is_empty());
    }

    #[test]
    fn chunks_of_streams_are_counted() {
        let (mut output, mut backend) = (Output::<Stream>::default(), Sent::default());
        let chunk = Chunk {
            payload: PayloadId(0),
            bytes: 5,
        };
        output.send_chunk(Slot(0), chunk, &mut backend);
        assert_eq!((backend.0.len(), output.bytes_sent), (1, 5));
        assert_eq!(output.take_uncounted(), 0);
    }
}
