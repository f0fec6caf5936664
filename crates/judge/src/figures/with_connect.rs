//! Response times together with opening the connection, where each request had one of its own.

use brunt_record::{Run, WorkerRecord};

/// [`crate::RunFigures::connects_per_request`].
pub(crate) fn connects_per_request(run: &Run) -> bool {
    let count = run.latencies.with_connect.count();
    let replaces = || {
        let opened = |worker: &WorkerRecord| worker.tallies.lifetime().connections_opened;
        let places = |worker: &WorkerRecord| worker.live.asked.max(worker.live.most);
        run.workers()
            .any(|worker| opened(worker) > places(worker).into())
    };
    count > 0
        && count == run.latencies.response.count()
        && (run.plan.requests_per_connection() == Some(1) || replaces())
}

#[cfg(test)]
mod tests {
    use brunt_record::{Histogram, Opening, Recorder, RequestTiming, Window};

    use super::*;
    use crate::invariants::sample::{answer, replaced_after, run};
    use crate::{Quantile, RunFigures};

    #[test]
    fn opening_is_added_as_far_as_the_response_time_does_not_hold_it() {
        let opening = Opening {
            from_ns: 100,
            to_ns: 130,
        };
        // (due, sent, added): opened beforehand, during its wait, and when it had waited already.
        for (due_ns, sent_ns, added_ns) in [
            (130, 130, 30),
            (900, 905, 30),
            (110, 130, 10),
            (100, 130, 0),
            (50, 130, 0),
        ] {
            let mut recorder = Recorder::new(0, 1, 1);
            recorder.set_window(Window {
                start_ns: 40,
                end_ns: 1_000,
            });
            let timing = RequestTiming {
                due_ns,
                sent_ns,
                request: 0,
                again: 0,
            };
            recorder.reply(timing, 950, &answer(200));
            recorder.reply_on_new_connection(timing, 950, 200.into(), opening);
            let recording = recorder.finish(1_000);
            let latencies = &recording.latencies;
            let response_ns = latencies.response.max_ns().expect("a response");
            assert_eq!(
                latencies.with_connect.max_ns(),
                Some(response_ns + added_ns),
                "due at {due_ns}"
            );
            let first_ns = Some(950 - sent_ns);
            assert_eq!(recording.record.first_service_ns_min, first_ns);
        }
    }

    #[test]
    fn only_successes_of_the_window_count() {
        for (due_ns, status, counts) in [
            (39, 200, 0),
            (40, 200, 1),
            (40, 302, 1),
            (40, 404, 0),
            (99, 200, 1),
            (100, 200, 0),
        ] {
            let mut recorder = Recorder::new(0, 1, 1);
            recorder.set_window(Window {
                start_ns: 40,
                end_ns: 100,
            });
            let timing = RequestTiming {
                due_ns,
                sent_ns: due_ns,
                request: 0,
                again: 0,
            };
            let opening = Opening {
                from_ns: 10,
                to_ns: 20,
            };
            recorder.reply_on_new_connection(timing, 150, status.into(), opening);
            let latencies = recorder.finish(100).latencies;
            assert_eq!(latencies.with_connect.count(), counts, "{due_ns} {status}");
        }
    }

    #[test]
    fn connecting_is_part_of_a_request_where_each_response_is_the_first() {
        /// What is done to a run whose responses were all the first of their connections.
        type Edit = fn(&mut Run);
        let cases: [(&str, bool, Edit); 5] = [
            ("a connection per request", true, |run| {
                run.plan.reuse = replaced_after(1);
            }),
            ("a server that closes", true, |run| {
                run.agents[0].workers[0].tallies.measure.connections_opened += 100;
            }),
            ("as many requests as connections", false, |_| ()),
            ("one response that was not", false, |run| {
                run.plan.reuse = replaced_after(1);
                run.latencies.response.record(1_000);
            }),
            ("no response", false, |run| {
                run.plan.reuse = replaced_after(1);
                run.latencies.response = Histogram::default();
                run.latencies.with_connect = Histogram::default();
            }),
        ];
        for (what, expected, edit) in cases {
            let mut run = run();
            for worker in &mut run.agents[0].workers {
                worker.tallies.measure.connections_opened = 0;
            }
            run.latencies.with_connect = run.latencies.response.clone();
            edit(&mut run);
            assert_eq!(run.connects_per_request(), expected, "{what}");
        }
    }

    #[test]
    fn what_was_never_answered_counts_as_longer() {
        let mut run = run();
        run.latencies.with_connect = Histogram::default();
        run.latencies.unfinished = Histogram::default();
        (0..90).for_each(|_| run.latencies.with_connect.record(10));
        assert_eq!(run.with_connect_mean_at_least_ns(), None);
        (0..10).for_each(|_| run.latencies.unfinished.record(110));
        assert_eq!(run.with_connect_mean_at_least_ns(), Some(20));
        assert_eq!(run.with_connect_max_at_least_ns(), Some(110));
        assert!(matches!(
            run.with_connect_quantile(0.5),
            Quantile::Known { ns: 10, .. }
        ));
        assert_eq!(
            run.with_connect_quantile(0.95),
            Quantile::AtLeast { ns: 110 }
        );
    }
}
