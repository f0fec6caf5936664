//! Whether any request of a run succeeded, and if none did, what they ended in instead.

use brunt_record::{FailureKind, FailureScope, ReplyOutcome, Run, Tally};

use crate::Summary;

/// Why no request of a run succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuccess {
    /// What most of them ended in.
    pub cause: NoSuccessCause,
    /// How many ended so or, where not all of these had one status or one kind of failure, in an
    /// error status, or a failure.
    pub count: u64,
    /// Whether all that are counted had the status or the kind of failure that `cause` names.
    pub is_uniform: bool,
    /// How many there were in all.
    pub total: u64,
    /// What is counted.
    pub counted: NoSuccessPopulation,
}

/// A population of which [`NoSuccess`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSuccessPopulation {
    /// The requests issued in the window.
    Issued,
    /// Where none was: the requests that ended since the window began, or were in flight when the
    /// run ended.
    Ended,
    /// Where there are none of these either: the attempts to connect since the window began.
    Attempts,
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
    /// The requests were still in flight at the end: neither a reply nor a failure came.
    Unanswered,
    /// No request was due.
    NothingSent,
    /// Streams were open, and no byte moved on them.
    NothingMoved,
}

/// [`crate::RunFigures::no_success`], from a summary that was already computed.
pub(crate) fn no_success_of(run: &Run, summary: &Summary) -> Option<NoSuccess> {
    let has_success = if run.is_streams() {
        let mut streams = run.stream_records();
        summary.window.bytes_received > 0 || streams.any(|it| it.window.bytes_acked > 0)
    } else if run.is_held() {
        summary.live.max > 0
    } else {
        summary.window.replies.successes() > 0 || run.latencies.response.count() > 0
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
        let of_scope = ended.failures.iter().filter(move |(kind, _)| {
            // Where connections are the requests, so are attempts to make them.
            kind.scope() == scope || run.plan.connects_only()
        });
        of_scope.map(|(kind, count)| (NoSuccessCause::Failure(kind), count))
    };
    let statuses = ended.replies.iter();
    let statuses = statuses.map(|(status, count)| (NoSuccessCause::Status(status), count));
    let errors = ended.replies.count(ReplyOutcome::ERROR);
    let replies: Vec<_> = statuses.chain([(NoSuccessCause::Error, errors)]).collect();
    let failed: Vec<_> = failures(FailureScope::Request).collect();
    let unanswered = |count| vec![(NoSuccessCause::Unanswered, count)];
    let population = &summary.population;
    let of_issued = [
        (run.latencies.response_error.count(), replies.clone()),
        (population.failed, failed.clone()),
        (population.censored, unanswered(population.censored)),
    ];
    let all = [replies, failed, unanswered(summary.in_flight_at_end)].concat();
    let attempts = failures(FailureScope::Connect).collect();
    let cause = if run.is_streams() && summary.live.max > 0 {
        NoSuccessCause::NothingMoved
    } else {
        NoSuccessCause::NothingSent
    };
    let nothing = NoSuccess {
        cause,
        count: 0,
        is_uniform: true,
        total: 0,
        counted: NoSuccessPopulation::Ended,
    };
    let found = most_of_issued(of_issued)
        .or_else(|| most_of(NoSuccessPopulation::Ended, all))
        .or_else(|| most_of(NoSuccessPopulation::Attempts, attempts));
    Some(found.unwrap_or(nothing))
}

/// The first of the causes that occurred most often; absent without any.
fn most_of(counted: NoSuccessPopulation, causes: Vec<(NoSuccessCause, u64)>) -> Option<NoSuccess> {
    let counts = causes.iter().map(|(_, count)| *count);
    let total = counts.fold(0, u64::saturating_add);
    let (cause, count) = causes.into_iter().rev().max_by_key(|(_, count)| *count)?;
    (count > 0).then_some(NoSuccess {
        cause,
        count,
        is_uniform: true,
        total,
        counted,
    })
}

/// Which of the ends of the requests of the window most of them had. Statuses and kinds of failure
/// are counted when they occur, so that those of requests from the warm-up are among them: the
/// numbers are those of the window's requests, the causes what most of all had.
fn most_of_issued(ends: [(u64, Vec<(NoSuccessCause, u64)>); 3]) -> Option<NoSuccess> {
    let counts = ends.iter().map(|(count, _)| *count);
    let total = counts.fold(0, u64::saturating_add);
    let (count, causes) = ends.into_iter().rev().max_by_key(|(count, _)| *count)?;
    let found = most_of(NoSuccessPopulation::Issued, causes)?;
    (count > 0).then_some(NoSuccess {
        count,
        is_uniform: found.count == found.total,
        total,
        ..found
    })
}

#[cfg(test)]
mod tests {
    use brunt_record::{Population, StatusCounts};

    use super::*;
    use crate::RunFigures;
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
            let counted = match cause {
                Failure(kind) if kind.scope() == FailureScope::Connect => {
                    NoSuccessPopulation::Attempts
                }
                _ => NoSuccessPopulation::Ended,
            };
            let expected = NoSuccess {
                cause,
                count,
                is_uniform: true,
                total,
                counted,
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
            is_uniform: true,
            total: 4,
            counted: NoSuccessPopulation::Ended,
        };
        assert_eq!(run.no_success(), Some(expected));
    }

    /// Replies come in the window to requests from the warm-up, and in drain to those of the
    /// window: what is counted is what the row of the requests counts.
    #[test]
    fn requests_of_the_window_are_what_is_counted() {
        use FailureKind::{Reset, TimedOut};
        use NoSuccessCause::{Failure, Status, Unanswered};
        type Case<'a> = (
            &'a [(u16, u64)],
            &'a [(FailureKind, u64)],
            [u64; 3],
            (NoSuccessCause, u64, bool),
        );
        let cases: &[Case<'_>] = &[
            (&[(404, 64)], &[], [60, 0, 0], (Status(404), 60, true)),
            (
                &[(404, 6), (500, 4)],
                &[],
                [9, 0, 1],
                (Status(404), 9, false),
            ),
            (
                &[(404, 5)],
                &[(TimedOut, 634)],
                [5, 633, 0],
                (Failure(TimedOut), 633, true),
            ),
            (
                &[],
                &[(TimedOut, 3), (Reset, 4)],
                [0, 6, 0],
                (Failure(Reset), 6, false),
            ),
            (&[(404, 1)], &[(Reset, 1)], [0, 0, 8], (Unanswered, 8, true)),
        ];
        for &(statuses, failures, [errors, failed, censored], (cause, count, is_uniform)) in cases {
            let mut run = emptied(run());
            (0..errors).for_each(|_| run.latencies.response_error.record(5));
            let worker = &mut run.agents[0].workers[1];
            for &(status, count) in statuses {
                (0..count).for_each(|_| worker.tallies.measure.replies.add(status));
            }
            for &(kind, count) in failures {
                (0..count).for_each(|_| worker.tallies.measure.failures.add(kind));
            }
            worker.population = Population {
                issued: errors + failed + censored,
                recorded: errors,
                failed,
                censored,
            };
            let expected = NoSuccess {
                cause,
                count,
                is_uniform,
                total: errors + failed + censored,
                counted: NoSuccessPopulation::Issued,
            };
            assert_eq!(
                run.no_success(),
                Some(expected),
                "{statuses:?} {failures:?}"
            );
        }
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
