//! Streams that the server ended or reset while they were to last.

use brunt_record::{FailureKind, Run};

/// Streams that did not last, in the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndedStreams {
    /// Streams that the server ended.
    pub ended: u64,
    /// Streams that were reset.
    pub reset: u64,
    /// Streams that were asked for.
    pub asked: u64,
    /// What one of them moved, both ways together, on average.
    pub bytes_mean: f64,
    /// How long it was open, on average, nanoseconds.
    pub life_ns_mean: f64,
}

impl EndedStreams {
    /// The streams that the server ended or reset in the window; absent where it ended none, and in
    /// a run of requests.
    pub fn of(run: &Run) -> Option<Self> {
        if !run.is_streams() {
            return None;
        }
        let (mut ended, mut reset, mut moved) = (0_u64, 0_u64, 0.0);
        let (mut asked, mut connection_ns) = (0_u64, 0.0);
        for worker in run.workers() {
            let failures = &worker.tallies.measure.failures;
            ended = ended.saturating_add(failures.get(FailureKind::StreamEnded));
            reset = reset.saturating_add(failures.get(FailureKind::StreamReset));
            asked = asked.saturating_add(worker.live.asked.into());
            connection_ns += worker.live.connection_ns as f64;
            if let Some(streams) = &worker.streams {
                let window = &streams.window;
                moved += window.bytes_acked as f64 + window.bytes_received as f64;
            }
        }
        let all = ended.saturating_add(reset);
        (all > 0).then(|| Self {
            ended,
            reset,
            asked,
            bytes_mean: moved / all as f64,
            life_ns_mean: connection_ns / all as f64,
        })
    }

    /// Streams that the server ended or reset.
    pub fn all(&self) -> u64 {
        self.ended.saturating_add(self.reset)
    }

    /// Whether most streams did last: then what was moved is theirs.
    pub fn do_last(&self) -> bool {
        self.all().saturating_mul(2) < self.asked.max(1)
    }
}
