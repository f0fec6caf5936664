//! What the server says in its first errors: read once for each status, and then no more.

use brunt_io::backend::ClientBackend;
use brunt_proto::{BodiesWanted, Body};
use brunt_record::{Answer, ErrorBody, LoggedResponse};

use super::Worker;
use crate::protocol::ClientProtocol;

/// The statuses that report errors (RFC 9110 section 15).
const FIRST_ERROR: u16 = 400;
/// Error responses that are looked at: a server that has but one kind of error is asked no further.
const READ_MAX: u32 = 64;

/// How many error responses a worker reads.
pub(super) fn to_read(keeps_errors: bool) -> u32 {
    if keeps_errors { READ_MAX } else { 0 }
}

/// What it keeps of responses: the beginnings of all that are logged, else of errors alone.
pub(super) fn wanted(keeps_errors: bool, logs_responses: bool) -> BodiesWanted {
    if logs_responses {
        return BodiesWanted {
            from_status: 0,
            bytes_max: LoggedResponse::BYTES_MAX,
            heads: true,
        };
    }
    if !keeps_errors {
        return BodiesWanted::NONE;
    }
    BodiesWanted {
        from_status: FIRST_ERROR,
        bytes_max: ErrorBody::BYTES_MAX,
        heads: false,
    }
}

impl<B: ClientBackend, P: ClientProtocol> Worker<B, P> {
    /// A response with an error is complete; `body` was kept of it.
    #[cold]
    pub(super) fn keep_error(&mut self, answer: &Answer, body: Option<&Body>) {
        let kept = &mut self.accounting.recorder.record().error_bodies;
        if let (Some(status), Some(body)) = (answer.outcome.status(), body)
            && kept.iter().all(|one| one.status != status)
        {
            let most = body.bytes.len().min(ErrorBody::BYTES_MAX as usize);
            let beginning = &body.bytes[..most];
            kept.push(ErrorBody {
                status,
                text: String::from_utf8_lossy(beginning).into_owned(),
                is_cut: body.is_cut || beginning.len() < body.bytes.len(),
            });
        }
        self.round.errors_left -= 1;
        if kept.len() == ErrorBody::KEPT_MAX || self.round.errors_left == 0 {
            self.round.errors_left = 0;
            self.want_bodies();
        }
    }
}
