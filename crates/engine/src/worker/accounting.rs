//! What a worker keeps of its requests: the record, what is shown while it runs, and how long the
//! server takes at present.

use brunt_record::{FailureKind, Recorder, RequestTiming, Skip};

use crate::observer::Progress;

/// The record of a worker, and what follows from the same events.
#[derive(Debug)]
pub(super) struct Accounting {
    pub(super) recorder: Recorder,
    pub(super) progress: Progress,
    /// When the last request was answered or failed, 0 for none.
    pub(super) last_done_ns: u64,
    /// Mean of the latest service times, which count for less the older they are.
    service_ns: u64,
    /// The same of send calls, network and server alone, in an open loop; 0 where no stamp told
    /// them yet.
    stamped_ns: u64,
}

/// The mean of the latest values, which count for less the older they are; 0 before the first.
fn moving_mean(mean_ns: u64, latest_ns: u64) -> u64 {
    match mean_ns {
        0 => latest_ns,
        _ => mean_ns - mean_ns / 8 + latest_ns / 8,
    }
}

impl Accounting {
    pub(super) fn new(recorder: Recorder) -> Self {
        Self {
            recorder,
            progress: Progress::default(),
            last_done_ns: 0,
            service_ns: 0,
            stamped_ns: 0,
        }
    }

    /// Bytes came.
    #[inline]
    pub(super) fn received(&mut self, now_ns: u64, bytes: u64) {
        self.progress.bytes_received += bytes;
        self.recorder.received(now_ns, bytes);
    }

    /// An attempt to connect, or a connection without a request in flight, failed.
    pub(super) fn failed(&mut self, now_ns: u64, kind: FailureKind, discarded_bytes: u64) {
        self.progress.failures += 1;
        self.recorder.failed(now_ns, kind, discarded_bytes);
    }

    /// A request failed that is no longer in flight.
    pub(super) fn request_failed(
        &mut self,
        timing: RequestTiming,
        now_ns: u64,
        kind: FailureKind,
        discarded_bytes: u64,
    ) {
        self.progress.failures += 1;
        self.recorder
            .request_failed(timing, now_ns, kind, discarded_bytes);
        self.last_done_ns = now_ns;
    }

    /// An arrival is never sent: it has no reply by `until_ns`.
    pub(super) fn arrival_skipped(&mut self, due_ns: u64, until_ns: u64, why: Skip) {
        self.progress.failures += 1;
        self.recorder.arrival_skipped(due_ns, until_ns, why);
    }

    /// A request was answered after this time.
    #[inline]
    pub(super) fn served(&mut self, service_ns: u64) {
        self.service_ns = moving_mean(self.service_ns, service_ns);
    }

    /// The same, of send call, network and server alone.
    pub(super) fn served_by_stamp(&mut self, answering_ns: u64) {
        self.stamped_ns = moving_mean(self.stamped_ns, answering_ns);
    }

    /// Mean of the latest service times; 0 before the first.
    pub(super) fn service_ns(&self) -> u64 {
        self.service_ns
    }

    /// How long the server takes for a request at present, without what brunt adds where stamps
    /// tell that.
    pub(super) fn answering_ns(&self) -> u64 {
        match self.stamped_ns {
            0 => self.service_ns,
            known_ns => known_ns,
        }
    }
}
