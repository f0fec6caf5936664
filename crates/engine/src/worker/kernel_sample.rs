//! The kernel's accounts of a sample of a worker's connections, to be set beside brunt's own.

use brunt_io::backend::ClientBackend;
use brunt_record::KernelSample;

use super::Worker;
use crate::connection::State;
use crate::protocol::ClientProtocol;

/// The kernel's account is read for one connection in this many, and this many in all.
const SAMPLE_EVERY: usize = 64;
const SAMPLE_MAX: u32 = 16;

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    /// Records them, at the end of a round.
    pub(super) fn take_kernel_sample(&mut self) {
        let mut sample = KernelSample::default();
        for slot in self.connections.slots().step_by(SAMPLE_EVERY) {
            let connection = &self.connections[slot];
            // Only connections at rest: bytes of a reply in flight may be anywhere between the
            // kernel and here.
            let at_rest = connection.state == State::Open
                && connection.in_flight == 0
                && !self.protocol.may_still_hear(&connection.protocol);
            if !at_rest || sample.connections == SAMPLE_MAX {
                continue;
            }
            let Some(info) = self.backend.tcp_info(slot) else {
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
        self.accounting.recorder.record().kernel = sample;
    }
}
