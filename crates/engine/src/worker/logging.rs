//! What a worker logs of single requests, where a log is kept.

use brunt_io::backend::{ClientBackend, Slot};
use brunt_proto::Body;
use brunt_record::{Answer, FailureKind, LogPlace, LoggedResponse, Opening, RequestTiming};

use super::Worker;
use crate::protocol::ClientProtocol;

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    /// Logs a request that is answered.
    #[cold]
    pub(super) fn log_reply(
        &mut self,
        slot: Slot,
        timing: RequestTiming,
        done_ns: u64,
        answer: &Answer,
    ) {
        if self.round.responses_left > 0 {
            self.round.responses_left -= 1;
            let connection = &mut self.connections[slot].protocol;
            if let Some(Body { bytes, head, .. }) = self.protocol.take_body(connection) {
                let recorder = &mut self.accounting.recorder;
                recorder.log_response(LoggedResponse {
                    done_ns,
                    head,
                    content: bytes,
                });
            }
            self.want_bodies();
        }
        let place = self.log_place(slot);
        self.accounting
            .recorder
            .log_reply(timing, done_ns, answer, place);
    }

    /// Records a request that failed in this way, with the bytes of its incomplete response, and is
    /// no longer in flight.
    pub(super) fn request_failed(
        &mut self,
        slot: Slot,
        timing: RequestTiming,
        now_ns: u64,
        (kind, discarded_bytes): (FailureKind, u64),
    ) {
        self.accounting
            .request_failed(timing, now_ns, kind, discarded_bytes);
        if self.accounting.recorder.keeps_log() {
            let place = self.log_place(slot);
            let recorder = &mut self.accounting.recorder;
            recorder.log_failure(timing, now_ns, kind, discarded_bytes, place);
        }
        self.connections[slot].has_ended_one = true;
    }

    fn log_place(&self, slot: Slot) -> LogPlace {
        let connection = &self.connections[slot];
        LogPlace {
            connection: slot.0,
            opening: (!connection.has_ended_one).then_some(Opening {
                from_ns: connection.opened_from_ns,
                to_ns: connection.opened_ns,
            }),
        }
    }
}
