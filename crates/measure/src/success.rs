//! Whether any request of a run succeeded, and if none did, what they ended in instead.

use crate::{FailureKind, FailureScope, ReplyOutcome, Run, Summary, Tally};

/// Why no request of a run succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuccess {
    /// What most of them ended in.
    pub cause: NoSuccessCause,
    /// How many ended so.
    pub count: u64,
    /// How many there were in all, since the window began: requests or, where none could be sent,
    /// attempts to connect.
    pub total: u64,
}

/// What most requests of a run without a success ended in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSuccessCause {
    /// Replies with this status.
    Status(u16),
    /// Replies that report an error in a protocol without statuses.
    Error,
    /// Failures of this kind: of requests or, where none could be sent, of attempts to connect.
    Failure(FailureKind),
    /// Neither a reply nor a failure came: the requests were still in flight at the end.
    Unanswered,
    /// No request was due.
    NothingSent,
    /// Streams were open, and no byte moved on them.
    NothingMoved,
}

impl Run {
    /// Why no request of this run succeeded; absent where one did, and where nothing was measured.
    pub fn no_success(&self) -> Option<NoSuccess> {
        no_success_of(self, &self.summary())
    }
}

/// [`Run::no_success`], of a run whose summary is at hand.
pub(crate) fn no_success_of(run: &Run, summary: &Summary) -> Option<NoSuccess> {
    let has_moved = || {
        let mut streams = run.stream_records();
        summary.window.bytes_received > 0 || streams.any(|it| it.window.bytes_acked > 0)
    };
    let has_success = match run.is_streams() {
        true => has_moved(),
        false if run.is_held() => summary.live.max > 0,
        false => summary.window.replies.successes() > 0 || run.latencies.response.count() > 0,
    };
    if has_success || run.window_ns == 0 || run.workers().next().is_none() {
        return None;
    }
    let mut ended = Tally::default();
    for worker in run.workers() {
        ended.merge(&worker.tallies.measure);
        ended.merge(&worker.tallies.after);
    }
    let failures = |scope| {
        let of_scope = ended.failures.iter();
        of_scope.filter(move |(kind, _)| kind.scope() == scope)
    };
    let statuses = ended.replies.iter();
    let by_kind = |(kind, count)| (NoSuccessCause::Failure(kind), count);
    let of_requests = statuses
        .map(|(status, count)| (NoSuccessCause::Status(status), count))
        .chain([(
            NoSuccessCause::Error,
            ended.replies.count(ReplyOutcome::ERROR),
        )])
        .chain(failures(FailureScope::Request).map(by_kind))
        .chain([(NoSuccessCause::Unanswered, summary.in_flight_at_end)]);
    let of_attempts = failures(FailureScope::Connect).map(by_kind);
    let nothing = NoSuccess {
        cause: match run.is_streams() && summary.live.max > 0 {
            true => NoSuccessCause::NothingMoved,
            false => NoSuccessCause::NothingSent,
        },
        count: 0,
        total: 0,
    };
    Some(
        most_of(of_requests)
            .or_else(|| most_of(of_attempts))
            .unwrap_or(nothing),
    )
}

/// The cause that occurred most often, the first of those that did equally often; absent without
/// any.
fn most_of(causes: impl Iterator<Item = (NoSuccessCause, u64)>) -> Option<NoSuccess> {
    let mut most = None;
    let mut total = 0_u64;
    for (cause, count) in causes {
        total = total.saturating_add(count);
        if count > 0 && most.is_none_or(|(_, most)| most < count) {
            most = Some((cause, count));
        }
    }
    most.map(|(cause, count)| NoSuccess {
        cause,
        count,
        total,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StatusCounts;
    use crate::invariants::sample::{emptied, open_run, run};

    #[test]
    fn the_most_frequent_cause_is_told() {
        use FailureKind::{ConnectRefused, ConnectTimedOut, Reset, TimedOut, UnexpectedBytes};
        use NoSuccessCause::{Failure, NothingSent, Status, Unanswered};
        type Case<'a> = (
            &'a [(u16, u64)],
            &'a [(FailureKind, u64)],
            u64,
            (NoSuccessCause, u64, u64),
        );
        let cases: &[Case<'_>] = &[
            (&[], &[], 0, (NothingSent, 0, 0)),
            (&[(404, 10)], &[], 0, (Status(404), 10, 10)),
            (
                &[(404, 10), (500, 11)],
                &[(Reset, 9)],
                0,
                (Status(500), 11, 30),
            ),
            (
                &[(404, 1)],
                &[(Reset, 9), (ConnectRefused, 99)],
                0,
                (Failure(Reset), 9, 10),
            ),
            (
                &[],
                &[
                    (UnexpectedBytes, 7),
                    (ConnectTimedOut, 2),
                    (ConnectRefused, 3),
                ],
                0,
                (Failure(ConnectRefused), 3, 5),
            ),
            (&[], &[(ConnectRefused, 99)], 4, (Unanswered, 4, 4)),
            (&[], &[(TimedOut, 3)], 4, (Unanswered, 4, 7)),
        ];
        for &(statuses, failures, in_flight, (cause, count, total)) in cases {
            let mut run = emptied(run());
            let worker = &mut run.agents[0].workers[1];
            worker.in_flight_at_end = in_flight;
            for &(status, count) in statuses {
                (0..count).for_each(|_| worker.tallies.after.replies.add(status));
            }
            for &(kind, count) in failures {
                (0..count).for_each(|_| worker.tallies.measure.failures.add(kind));
            }
            let expected = NoSuccess {
                cause,
                count,
                total,
            };
            assert_eq!(
                run.no_success(),
                Some(expected),
                "{statuses:?} {failures:?}"
            );
        }
    }

    #[test]
    fn errors_without_a_status_are_a_cause() {
        let mut run = emptied(run());
        let replies = &mut run.agents[0].workers[0].tallies.after.replies;
        (0..3).for_each(|_| replies.add(ReplyOutcome::ERROR));
        replies.add(500);
        let expected = NoSuccess {
            cause: NoSuccessCause::Error,
            count: 3,
            total: 4,
        };
        assert_eq!(run.no_success(), Some(expected));
    }

    #[test]
    fn one_success_is_enough() {
        assert_eq!(run().no_success(), None);
        assert_eq!(open_run().no_success(), None);
        // In the window, of a request from the warm-up.
        let mut carried = emptied(run());
        let mut replies = StatusCounts::default();
        replies.add(302);
        carried.agents[0].workers[0].tallies.measure.replies = replies;
        assert_eq!(carried.no_success(), None);
        // In drain, of a request of the window.
        let mut late = emptied(run());
        late.latencies.response.record(5);
        assert_eq!(late.no_success(), None);
    }

    #[test]
    fn without_a_window_nothing_is_said() {
        let mut run = emptied(run());
        run.window_ns = 0;
        assert_eq!(run.no_success(), None);
    }
}
