//! Runs in which nothing succeeded, in which the server failed, or brunt was stopped.

use brunt_load::{RequestSet, RequestSpec, Target, Work};
use brunt_record::{Downtime, FailureKind, MissingConnections, Pause, Population, Run, Tally};

use super::bend::{busy_for, failed, tally};
use super::rules::{judged, judged_as};
use crate::invariants::sample::{MS, WINDOW, emptied};
use crate::verdict::Verdict;
use crate::verdict::advice::of_client_errors;
use crate::verdict::tests::bend::{cases_of, closed, open};
use crate::{RunFigures, SignalId};

#[test]
fn what_never_succeeded_is_no_result() {
    // What happened in the window, why, and what to do.
    type RunFacts = (fn(&mut Tally), &'static str, &'static str);
    fn status(tally: &mut Tally, status: u16, count: u64) {
        (0..count).for_each(|_| tally.replies.add(status));
    }
    fn failure(tally: &mut Tally, kind: FailureKind, count: u64) {
        (0..count).for_each(|_| tally.failures.add(kind));
    }
    let cases: &[RunFacts] = &[
        (
            |tally| status(tally, 404, 1_234),
            "all 1,234 requests since the window began had status 404",
            "the method (-m)",
        ),
        (
            |tally| status(tally, 500, 1),
            "the only request since the window began had status 500",
            "server's log",
        ),
        (
            |tally| status(tally, 429, 9),
            "all 9 requests since the window began had status 429",
            "-r RATE",
        ),
        (
            |tally| {
                status(tally, 401, 9);
                failure(tally, FailureKind::Reset, 1);
            },
            "9 of 10 requests since the window began had status 401",
            "Authorization",
        ),
        (
            |tally| failure(tally, FailureKind::TlsExpected, 7),
            "all 7 requests since the window began failed (server wants https)",
            "https://",
        ),
        (
            |tally| failure(tally, FailureKind::MalformedHead, 7),
            "all 7 requests since the window began failed (malformed head)",
            "does not speak HTTP/1.1",
        ),
        (
            |tally| failure(tally, FailureKind::TimedOut, 7),
            "all 7 requests since the window began failed (timed out)",
            "-T",
        ),
        (
            |tally| failure(tally, FailureKind::ConnectRefused, 40),
            "all 40 attempts to connect since the window began failed (connection refused)",
            "start the server",
        ),
        (|_| (), "none was sent", "-d"),
    ];
    for sound in [closed(), open()] {
        for (happened, because, advice) in cases {
            let mut run = emptied(sound.clone());
            let worker = &mut run.agents[0].workers[0];
            happened(&mut worker.tallies.measure);
            let tally = &worker.tallies.measure;
            let (recorded, failed) = (
                tally.replies.total(),
                tally.failures.of_requests(Work::Requests),
            );
            worker.population = Population {
                issued: recorded + failed,
                recorded,
                failed,
                censored: 0,
            };
            (0..recorded).for_each(|_| run.latencies.response_error.record(MS));
            let judgement = judged_as(&run, Verdict::NoSuccess, because, advice);
            let expected = format!("no request succeeded: {because}");
            assert_eq!(judgement.because, expected);
        }
    }
}

#[test]
fn requests_at_fault_come_before_advice_on_the_load() {
    let first = |statuses: &[(u16, u64)]| {
        let mut run = open();
        for worker in &mut run.agents[0].workers {
            let replies = &mut worker.tallies.measure.replies;
            let sound = replies.total();
            for &(status, times) in statuses {
                (0..times * sound).for_each(|_| replies.add(status));
            }
        }
        of_client_errors(&cases_of(&run)[0])
    };
    for few in [
        &[][..],
        &[(409, 1)],
        &[(429, 9)],
        &[(503, 9)],
        &[(400, 2), (401, 2)],
    ] {
        assert_eq!(first(few), None);
    }
    for (statuses, words) in [
        (
            &[(409, 3)][..],
            "75 % of the replies had status 409: the server finds fault",
        ),
        (
            &[(404, 3)],
            "75 % of the replies had status 404: check the path",
        ),
        (
            &[(400, 1), (401, 6), (429, 1)],
            "67 % of the replies had status 401: send what",
        ),
    ] {
        let found = first(statuses).expect(words);
        assert!(found.contains(words), "{found}");
    }
}

#[test]
fn messages_that_match_nothing_are_shown() {
    let mut run = emptied(closed());
    let worker = &mut run.agents[0].workers[0];
    worker.population.issued = 4;
    worker.population.censored = 4;
    worker.in_flight_at_end = 4;
    worker.tallies.measure.pushes = 1_234;
    worker.unexpected = Some("{\"user\": \"Имя\"}".to_owned());
    let judgement = judged_as(&run, Verdict::NoSuccess, "", "");
    let advice = "look at what came: --reply-match matched none of 1,234 messages, such as \
                  {\"user\": \"Имя\"}";
    assert_eq!(judgement.advice, [advice]);
}

#[test]
fn what_was_never_answered_is_no_result() {
    let mut run = emptied(closed());
    let worker = &mut run.agents[0].workers[0];
    worker.in_flight_at_end = 4;
    worker.population.issued = 4;
    worker.population.censored = 4;
    let because = "no request succeeded: all 4 requests in the window of 2 s got no reply";
    judged_as(&run, Verdict::NoSuccess, because, "-d");
}

#[test]
fn a_server_that_speaks_tls_is_named_whatever_it_answered() {
    let mut run = emptied(closed());
    run.plan.target.url = "http://host:8443/a?b=c&d".to_owned();
    run.agents[0].speaks_tls = true;
    let replies = &mut tally(&mut run).replies;
    (0..9).for_each(|_| replies.add(400));
    let judgement = judged_as(&run, Verdict::NoSuccess, "", "");
    let advice = ["the server speaks TLS at that port: 'https://host:8443/a?b=c&d'"];
    assert_eq!(judgement.advice, advice);
}

#[test]
fn what_is_to_be_tried_is_the_request_that_was_sent() {
    let mut spec = RequestSpec::get("/");
    spec.headers = vec![("Authorization".to_owned(), "Basic x".to_owned())];
    for (url, status, advice) in [
        (
            "http://h/",
            401,
            "the server refuses the Authorization that is sent",
        ),
        ("http://h/", 409, "--show-errors prints one reply"),
        ("https://h/", 400, "--cert and --key"),
    ] {
        let mut run = emptied(closed());
        run.plan.target = Target::parse(url, None).expect("a URL");
        run.plan.traffic.requests = RequestSet::one(spec.clone());
        let replies = &mut tally(&mut run).replies;
        (0..9).for_each(|_| replies.add(status));
        judged_as(&run, Verdict::NoSuccess, "", advice);
    }
}

/// A run whose server was gone at these times of the window, milliseconds.
fn gone(times: &[(u64, Option<u64>)]) -> Run {
    let mut run = closed();
    let at_ns = |ms: u64| (ms * MS) as i64;
    for (index, worker) in run.agents[0].workers.iter_mut().enumerate() {
        // They do not notice at the same time.
        let later_ns = (index as u64 * MS) as i64;
        worker.downtimes = times
            .iter()
            .map(|&(from_ms, until_ms)| Downtime {
                from_ns: at_ns(from_ms) - later_ns,
                until_ns: until_ms.map(|ms| at_ns(ms) + later_ns),
            })
            .collect();
        let failures = &mut worker.tallies.measure.failures;
        (0..20).for_each(|_| failures.add(FailureKind::ConnectRefused));
        (0..4).for_each(|_| failures.add(FailureKind::Reset));
        worker.tallies.measure.connections_opened = 4;
        worker.population.issued += 4;
        worker.population.failed = 4;
    }
    run
}

#[test]
fn a_server_that_was_gone_is_a_finding_of_its_own() {
    type RunFacts<'a> = (&'a [(u64, Option<u64>)], &'a str);
    let cases: &[RunFacts<'_>] = &[
        (
            &[(500, Some(1_000))],
            "gone for 500 ms, from 500 ms of the window on; ",
        ),
        (
            &[(500, None)],
            "gone for 1.5 s, from 500 ms of the window on, and did not come back; ",
        ),
        (
            &[(0, Some(400))],
            "gone for 400 ms, from the start of the window on; ",
        ),
        (
            &[(500, Some(700)), (1_000, Some(1_100))],
            "gone for 300 ms in all, 2 times, from 500 ms of the window on; ",
        ),
    ];
    for &(times, when) in cases {
        let mut run = gone(times);
        let judgement = judged_as(&run, Verdict::ServerFailed, when, "");
        let losses = "8 requests failed, and 40 attempts to connect (connection refused)";
        assert!(judgement.because.ends_with(losses), "{}", judgement.because);
        // Even one that is at its end, or a brunt that is.
        busy_for(&mut run, 1_960);
        assert_eq!(judged(&run).verdict, Verdict::ServerFailed);
        // One worker had a connection all the time.
        run.agents[0].workers[0].downtimes.clear();
        assert_ne!(judged(&run).verdict, Verdict::ServerFailed);
    }
}

#[test]
fn before_and_after_an_outage_are_told_apart() {
    let failure = gone(&[(500, Some(1_000))]).server_failure();
    let failure = failure.expect("it failed");
    let [before, after] = [failure.before, failure.after].map(|part| part.expect("it is long"));
    assert_eq!((before.length_ns, after.length_ns), (500 * MS, 1_000 * MS));
    // 8 connections with a reply each millisecond.
    for stretch in [before, after] {
        let off_per_s = (stretch.successes_per_s - 8_000.0).abs();
        assert!(off_per_s < 100.0, "{stretch:?}");
    }
    // Less than an interval of the series.
    let failure = gone(&[(10, None)]).server_failure().expect("it failed");
    assert_eq!((failure.before, failure.after), (None, None));
}

#[test]
fn too_short_or_outside_of_the_window_is_no_outage() {
    for times in [&[(500, Some(530))][..], &[(2_100, None)], &[(0, Some(0))]] {
        assert_eq!(gone(times).server_failure(), None, "{times:?}");
    }
}

#[test]
fn connections_that_are_not_taken_are_a_finding() {
    let mut run = gone(&[]);
    run.agents[0].workers[0].live.missing = MissingConnections {
        opening_ns: 0,
        retrying_ns: WINDOW.length_ns() / 2,
        ..MissingConnections::default()
    };
    let missing = "did not take all connections: 0.50 of 8 were missing";
    // It answers throughout: a server that limits its connections has not failed.
    judged_as(&run, Verdict::ConcurrencyLimited, missing, "about 7");
    // A server at its end is at its end before that, and a brunt that is as well.
    let mut busy = run.clone();
    busy_for(&mut busy, 1_960);
    assert_eq!(judged(&busy).verdict, Verdict::ClientLimited);
    // For a time it answered on none.
    let mut broken = run.clone();
    for worker in &mut broken.agents[0].workers {
        let points = worker.series.points.len();
        for point in worker.series.points.iter_mut().skip(points / 2) {
            point.successes = 0;
        }
    }
    judged_as(&broken, Verdict::ServerFailed, missing, "");
    run.agents[0].workers[0].live.missing = MissingConnections::default();
    assert_ne!(judged(&run).verdict, Verdict::ServerFailed);
}

/// A brunt that did not run for so many milliseconds from the middle of the window on.
fn stopped(mut run: Run, ms: u64) -> Run {
    for worker in &mut run.agents[0].workers {
        worker.pauses = vec![Pause {
            from_ns: (1_000 * MS) as i64,
            until_ns: ((1_000 + ms) * MS) as i64,
        }];
    }
    run
}

#[test]
fn a_brunt_that_was_stopped_is_told_so() {
    for sound in [closed(), open()] {
        let mut run = stopped(sound, 600);
        let because = "did not run for 600 ms";
        let judgement = judged_as(&run, Verdict::ClientLimited, because, "SIGSTOP");
        assert_eq!(judgement.decisive[0], SignalId::Pauses);
        // The other one ran.
        run.agents[0].workers[1].pauses.clear();
        assert_ne!(judged(&run).verdict, Verdict::ClientLimited);
    }
}

#[test]
fn a_rate_that_was_met_is_met_however_busy_brunt_was() {
    let mut run = open();
    busy_for(&mut run, 1_960);
    judged_as(&run, Verdict::RateLimited, "the planned rate was met", "");
}

#[test]
fn a_server_that_closes_the_connections_of_many_requests_has_failed() {
    let with = |kind: FailureKind, count: u64, mut run: Run| {
        failed(&mut run, kind, count);
        judged(&run)
    };
    let replies = |run: &Run| run.summary().window.replies.total();
    for (kind, is_cut) in [
        (FailureKind::Reset, true),
        (FailureKind::ClosedBeforeReply, true),
        (FailureKind::TruncatedBody, true),
        (FailureKind::TimedOut, false),
        (FailureKind::MalformedHead, false),
        // Of a connection that nobody waited for.
        (FailureKind::IdleReset, false),
    ] {
        for run in [closed(), open()] {
            let all = replies(&run);
            let few = with(kind, all / 10, run.clone());
            assert_ne!(few.verdict, Verdict::ServerFailed, "{kind:?}");
            let many = with(kind, all / 8, run);
            let has_failed = many.verdict == Verdict::ServerFailed;
            assert_eq!(has_failed, is_cut, "{kind:?}: {many:?}");
            if is_cut {
                let words = "of 11 % of the requests";
                assert!(many.because.contains(words), "{}", many.because);
                assert!(many.advice[0].contains("connections"), "{:?}", many.advice);
            }
        }
    }
}
