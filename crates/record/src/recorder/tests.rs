//! What a recorder makes of events, one by one and at random.

use proptest::prelude::*;

use super::*;
use crate::{ArrivalCounts, FailureKind, Instants, Parts, Population, ReplyOutcome, StageRecord};
use brunt_load::Work;

const START_NS: u64 = 500;
const END_NS: u64 = 1_500;

/// Due when it was sent.
fn at(sent_ns: u64) -> RequestTiming {
    due(sent_ns, sent_ns)
}

fn due(due_ns: u64, sent_ns: u64) -> RequestTiming {
    RequestTiming {
        due_ns,
        sent_ns,
        request: 0,
        again: 0,
    }
}

fn answer(status: u16, interim: u16, head_bytes: u64, body_bytes: u64) -> Answer {
    Answer {
        outcome: status.into(),
        retry_after: false,
        interim,
        head_bytes,
        body_bytes,
        first_byte_ns: 0,
    }
}

fn window_of(start_ns: u64, end_ns: u64) -> Window {
    Window { start_ns, end_ns }
}

fn with_window(window: Window) -> Recorder {
    let mut recorder = Recorder::new(0, 8, 8);
    recorder.set_window(window);
    recorder
}

fn ended(recorder: Recorder, end_ns: u64) -> (WorkerRecord, Latencies) {
    let recording = recorder.finish(end_ns);
    (recording.record, recording.latencies)
}

#[test]
fn a_request_that_is_sent_again_stays_one() {
    let mut recorder = with_window(window_of(START_NS, END_NS));
    recorder.sent(at(600), 1, 50);
    recorder.tally(700).discarded_bytes += 13;
    recorder.sent_again(700, 900, 50);
    recorder.reply(at(600), 1_000, &answer(200, 0, 7, 0));
    // It waits when all is over.
    recorder.sent(at(1_400), 1, 50);
    recorder.waited_to_be_sent_again(1_450, 1_600);
    recorder.censored(at(1_400), 1_600, 0);
    let (record, latencies) = ended(recorder, END_NS);
    let tally = &record.tallies.measure;
    let sends = (tally.requests_sent, tally.sent_again, tally.sends());
    assert_eq!(sends, (2, 1, 3));
    assert_eq!((tally.bytes_sent, tally.discarded_bytes), (150, 13));
    assert_eq!(record.population.issued, 2);
    // Of 400 ns and of 100 ns in the window.
    assert_eq!((record.in_flight_ns, record.awaiting_again_ns), (500, 250));
    assert_eq!(latencies.response.max_ns(), Some(400));
}

#[test]
fn replies_without_a_status_are_successes_and_errors() {
    let mut recorder = with_window(window_of(0, 1_000));
    recorder.plan_names(vec![0].into(), 1);
    for (outcome, done_ns) in [
        (ReplyOutcome::SUCCESS, 30),
        (ReplyOutcome::ERROR, 40),
        (200.into(), 50),
    ] {
        let timing = at(10);
        recorder.sent(timing, 1, 5);
        recorder.sent_by_name(timing);
        let answer = Answer {
            outcome,
            ..answer(200, 0, 7, 0)
        };
        recorder.reply(timing, done_ns, &answer);
    }
    let Recording {
        record,
        latencies,
        names,
    } = recorder.finish(1_000);
    let replies = &record.tallies.measure.replies;
    assert_eq!(
        (replies.total(), replies.successes(), replies.errors()),
        (3, 2, 1)
    );
    assert_eq!(latencies.response.count(), 2);
    assert_eq!(latencies.response_error.count(), 1);
    assert_eq!((names[0].population.recorded, names[0].errors()), (3, 1));
    assert_eq!(record.series.points[0].errors, 1);
}

/// Connections opened and closed: `(at, +1 or -1)`.
type Changes<'a> = &'a [(u64, i8)];

/// Live connections and series of a run with these changes.
fn live_of(window: Option<Window>, changes: Changes<'_>, end_ns: u64) -> (LiveConnections, Series) {
    let mut recorder = Recorder::new(0, 8, 8);
    let mut unset = window;
    for &(at_ns, change) in changes {
        // The window is set as late as it may be.
        if let Some(window) = unset.filter(|window| at_ns >= window.start_ns) {
            recorder.set_window(window);
            unset = None;
        }
        match change {
            1 => recorder.connected(at_ns, 10),
            _ => recorder.disconnected(at_ns),
        }
    }
    if let Some(window) = unset {
        recorder.set_window(window);
    }
    let record = recorder.finish(end_ns).record;
    (record.live, record.series)
}

/// What is expected of eight connections that were asked for.
fn of_eight(min: u32, max: u32, connection_ns: u64) -> LiveConnections {
    LiveConnections {
        asked: 8,
        most: 8,
        min,
        max,
        connection_ns,
        ..LiveConnections::default()
    }
}

#[test]
fn live_connections_are_those_of_the_window() {
    let window = Some(window_of(100, 200));
    // (changes, fewest, most, integral)
    let cases: &[(Changes, u32, u32, u64)] = &[
        (&[], 0, 0, 0),
        (&[(50, 1)], 1, 1, 100),
        (&[(50, 1), (60, 1)], 2, 2, 200),
        (&[(50, 1), (60, -1)], 0, 0, 0),
        (&[(100, 1)], 0, 1, 100),
        (&[(150, 1)], 0, 1, 50),
        (&[(50, 1), (150, -1)], 0, 1, 50),
        (&[(50, 1), (150, -1), (151, 1)], 0, 1, 99),
        (&[(50, 1), (200, -1)], 1, 1, 100),
        (&[(50, 1), (250, 1), (300, -1)], 1, 1, 100),
        // Out of order within a batch: no interval counts twice.
        (&[(50, 1), (160, 1), (150, -1)], 1, 2, 100),
    ];
    for &(changes, min, max, connection_ns) in cases {
        let (live, series) = live_of(window, changes, 200);
        assert_eq!(live, of_eight(min, max, connection_ns), "{changes:?}");
        assert_eq!(series.points.len(), 1, "{changes:?}");
        assert_eq!(
            (series.points[0].live_min, series.points[0].live_max),
            (min, max)
        );
    }
}

#[test]
fn replies_that_say_when_to_come_again_count_in_their_phase() {
    let mut recorder = with_window(window_of(START_NS, END_NS));
    let refusal = Answer {
        retry_after: true,
        ..answer(429, 0, 40, 0)
    };
    let ends = [START_NS - 1, START_NS, END_NS - 1, END_NS, END_NS + 9];
    for done_ns in ends {
        recorder.sent(at(done_ns - 10), 2, 80);
        recorder.reply(at(done_ns - 10), done_ns, &refusal);
        recorder.reply(at(done_ns - 10), done_ns, &answer(429, 0, 40, 0));
    }
    let tallies = recorder.finish(END_NS).record.tallies;
    let counts = [&tallies.before, &tallies.measure, &tallies.after]
        .map(|tally| (tally.retry_afters, tally.replies.errors()));
    assert_eq!(counts, [(1, 2), (2, 4), (2, 4)]);
    assert_eq!(tallies.lifetime().retry_afters, 5);
}

#[test]
fn of_the_wait_for_a_first_request_the_window_counts() {
    let mut recorder = Recorder::new(0, 1, 1);
    recorder.set_window(window_of(100, 200));
    let waited = [(99, 0), (100, 0), (130, 30), (200, 100), (900, 100)];
    let mut expected_ns = 0;
    for (begun_ns, waited_ns) in waited {
        recorder.add_time(0, begun_ns, |live| &mut live.not_begun_ns);
        expected_ns += waited_ns;
        assert_eq!(recorder.record().live.not_begun_ns, expected_ns);
    }
}

#[test]
fn a_run_without_a_window_measures_nothing() {
    let (live, series) = live_of(None, &[(50, 1)], 1_000);
    assert_eq!((live, series), (of_eight(1, 1, 0), Series::default()));
}

#[test]
fn the_end_of_a_run_by_count_comes_with_finish() {
    let window = window_of(100_000_000, u64::MAX);
    let (live, series) = live_of(Some(window), &[(50, 1)], 450_000_000);
    assert_eq!(live.connection_ns, 350_000_000);
    assert_eq!(series.coarsened().points.len(), 4);
    assert!(
        series
            .points
            .iter()
            .all(|point| (point.live_min, point.live_max) == (1, 1))
    );
}

#[test]
fn an_end_that_never_comes_does_not_overflow() {
    let window = window_of(100, u64::MAX);
    let (live, series) = live_of(Some(window), &[(50, 1), (60, 1)], u64::MAX);
    assert_eq!(live.connection_ns, u64::MAX);
    assert!(series.points.len() <= 1_200);
}

#[test]
fn an_end_before_the_start_leaves_an_empty_window() {
    let mut recorder = with_window(window_of(1_000, 2_000));
    recorder.connected(10, 5);
    recorder.sent(at(20), 1, 80);
    recorder.end_window_at(500);
    recorder.reply(at(20), 600, &answer(200, 0, 100, 0));
    recorder.disconnected(1_500);
    let record = recorder.finish(500).record;
    assert_eq!(record.population, Default::default());
    assert_eq!(record.live.connection_ns, 0);
    assert_eq!(record.in_flight_ns, 0);
    assert_eq!(record.tallies.measure, Tally::default());
    assert!(record.series.points.is_empty());
}

#[test]
fn a_late_notice_of_the_end_keeps_the_accounting() {
    let mut recorder = with_window(window_of(100, 1_000));
    recorder.sent(at(400), 1, 80);
    recorder.end_window_at(300);
    assert_eq!(recorder.window(), window_of(100, 401));
    recorder.received(450, 100);
    recorder.reply(at(400), 450, &answer(200, 0, 100, 0));
    let record = recorder.finish(300).record;
    assert_eq!(
        (record.population.issued, record.population.recorded),
        (1, 1)
    );
    assert_eq!(record.tallies.after.replies.total(), 1);
}

#[test]
fn what_is_planned_counts_from_its_planned_instant() {
    let mut recorder = with_window(window_of(1_000, 2_000));
    recorder.plan_requests();
    // (due, sent, done): due before the window, sent after it, answered after it.
    for (due_ns, sent_ns, done_ns) in [(990, 1_010, 1_100), (1_950, 2_010, 2_100)] {
        let timing = due(due_ns, sent_ns);
        recorder.arrival_planned(due_ns);
        recorder.arrival_sent(due_ns, sent_ns, true);
        recorder.lag(due_ns, 7);
        recorder.sent(timing, 1, 80);
        recorder.received(done_ns, 100);
        recorder.reply(timing, done_ns, &answer(200, 0, 100, 0));
        let (parts, misplaced) = Parts::of(&Instants {
            due_ns,
            free_ns: due_ns + 10,
            send_from_ns: sent_ns + 1,
            send_to_ns: sent_ns + 4,
            arrived_ns: done_ns - 5,
            received_ns: done_ns - 2,
            done_ns,
        });
        recorder.split(due_ns, parts, misplaced);
        recorder.first_reply(due_ns, done_ns);
    }
    let (record, latencies) = ended(recorder, 2_000);
    let population = Population {
        issued: 1,
        recorded: 1,
        ..Population::default()
    };
    assert_eq!(record.population, population);
    // Planned in the window, sent in drain.
    let by_end = (record.arrivals.sent, record.arrivals.sent_by_end);
    assert_eq!(by_end, (1, Some(0)));
    let by_end = (record.arrivals_all.sent, record.arrivals_all.sent_by_end);
    assert_eq!(by_end, (2, Some(1)));
    assert_eq!((record.arrivals.sent, record.arrivals_all.sent), (1, 2));
    assert_eq!(record.arrivals.waited, 1);
    assert_eq!(record.tallies.measure.requests_sent, 1);
    assert_eq!(record.tallies.after.requests_sent, 1);
    assert_eq!(latencies.response.max_ns(), Some(150));
    assert_eq!(latencies.service.max_ns(), Some(90));
    assert_eq!(latencies.first_reply.max_ns(), Some(150));
    assert_eq!(latencies.lag.count(), 1);
    assert_eq!(latencies.split.count(), 1);
    let parts = latencies.split.mean().expect("one response");
    assert_eq!(parts.response_ns(), 150.0);
    assert_eq!((parts.wait_ns, parts.lag_send_ns), (10.0, 51.0));
    assert_eq!(latencies.intervals.count(), 1);
}

#[test]
fn first_byte_and_transfer_make_the_service_time() {
    // (due, sent, first byte, done, of the first byte, of the transfer)
    let cases = [
        (1_000, 1_000, 1_080, 1_100, 80, 20),
        (1_000, 1_050, 1_080, 1_100, 30, 20),
        (1_000, 1_050, 1_100, 1_100, 50, 0),
        // Moved into what is possible.
        (1_000, 1_050, 1_040, 1_100, 0, 50),
        (1_000, 1_050, u64::MAX, 1_100, 50, 0),
        (1_000, 1_050, 1_060, 1_040, 0, 0),
    ];
    for (due_ns, sent_ns, first_byte_ns, done_ns, first_ns, transfer_ns) in cases {
        let mut recorder = with_window(window_of(1_000, 2_000));
        recorder.plan_requests();
        let answer = Answer {
            first_byte_ns,
            ..answer(200, 0, 100, 0)
        };
        recorder.reply(due(due_ns, sent_ns), done_ns, &answer);
        // Neither is that of an error reply, nor of a request of another phase.
        let error = Answer {
            outcome: 500.into(),
            ..answer
        };
        recorder.reply(due(due_ns, sent_ns), done_ns, &error);
        recorder.reply(at(900), done_ns, &answer);
        let latencies = recorder.finish(2_000).latencies;
        let found = [
            &latencies.first_byte,
            &latencies.transfer,
            &latencies.service,
        ]
        .map(|histogram| (histogram.count(), histogram.sum_ns()));
        let service_ns = first_ns + transfer_ns;
        assert_eq!(found, [(1, first_ns), (1, transfer_ns), (1, service_ns)]);
    }
}

#[test]
fn handshakes_and_what_is_of_connections_count_in_their_phase() {
    let mut recorder = Recorder::new(0, 8, 8);
    for (at_ns, tls_ns, is_resumed) in [(100, 40, false), (200, 10, true), (1_500, 10, true)] {
        if at_ns == 1_500 {
            recorder.set_window(window_of(1_000, 2_000));
        }
        recorder.connected(at_ns, 5);
        recorder.secured(at_ns, tls_ns, is_resumed);
        recorder.received(at_ns, 3_000);
        recorder.tally(at_ns).overhead_bytes += 3_000;
    }
    recorder.tally(1_999).goaways += 1;
    recorder.tally(2_000).goaways += 1;
    let (record, latencies) = ended(recorder, 2_000);
    let phases = [
        record.tallies.before,
        record.tallies.measure,
        record.tallies.after,
    ];
    let counts = phases.map(|tally| {
        let handshakes = (tally.handshakes_full, tally.handshakes_resumed);
        (handshakes, tally.goaways, tally.overhead_bytes)
    });
    assert_eq!(
        counts,
        [((1, 1), 0, 6_000), ((0, 1), 1, 3_000), ((0, 0), 1, 0)]
    );
    assert_eq!(
        (latencies.tls.count(), latencies.tls.max_ns()),
        (3, Some(40))
    );
}

#[test]
fn what_never_ended_has_a_lower_bound() {
    let window = window_of(1_000, 2_000);
    for is_planned in [true, false] {
        let mut recorder = with_window(window);
        if is_planned {
            recorder.plan_requests();
        }
        for (due_ns, why) in [
            (1_100, Skip::Full),
            (1_200, Skip::Late),
            (1_300, Skip::Unsent),
            (900, Skip::Late),
        ] {
            recorder.arrival_planned(due_ns);
            recorder.arrival_skipped(due_ns, 2_500, why);
        }
        let arrivals = ArrivalCounts {
            planned: 3,
            skipped_full: 1,
            skipped_late: 1,
            unsent: 1,
            ..ArrivalCounts::default()
        };
        recorder.sent(at(1_400), 2, 160);
        recorder.request_failed(at(1_400), 2_400, FailureKind::TimedOut, 0);
        recorder.censored(at(1_400), 2_600, 0);
        let (record, latencies) = ended(recorder, 2_000);
        assert_eq!(record.arrivals, arrivals);
        assert_eq!(record.arrivals_all.planned, 4);
        // A connection that was skipped is no request.
        let (count, max_ns) = if is_planned { (5, 1_400) } else { (2, 1_200) };
        assert_eq!(latencies.unfinished.count(), count);
        assert_eq!(latencies.unfinished.max_ns(), Some(max_ns));
    }
}

#[test]
fn what_warmup_leaves_in_flight_is_part_of_what_the_window_shows() {
    let window = window_of(1_000, 2_000);
    for is_planned in [true, false] {
        let mut recorder = with_window(window);
        if is_planned {
            recorder.plan_requests();
        }
        recorder.sent(at(900), 6, 480);
        recorder.reply(at(900), 950, &answer(200, 0, 20, 0));
        recorder.reply(at(900), 1_300, &answer(503, 0, 20, 0));
        recorder.request_failed(at(900), 1_400, FailureKind::TimedOut, 0);
        recorder.reply(at(900), 2_100, &answer(200, 0, 20, 0));
        recorder.request_failed(at(900), 2_200, FailureKind::Reset, 0);
        recorder.censored(at(900), 2_500, 0);
        let (record, latencies) = ended(recorder, 2_000);
        let carried_in = CarriedIn {
            in_flight: 5,
            answered: 1,
            failed: 1,
            unanswered: 3,
            in_flight_ns: 300 + 400 + 3 * 1_000,
        };
        assert_eq!(record.carried_in, carried_in);
        assert_eq!(record.in_flight_ns, carried_in.in_flight_ns);
        assert_eq!(record.population, Population::default());
        // What outlasted the window took at least as long as it was seen to; in a plan, it has
        // no place.
        let unfinished = &latencies.unfinished;
        let bounds = (unfinished.min_ns(), unfinished.max_ns(), unfinished.count());
        let expected = if is_planned {
            (None, None, 0)
        } else {
            (Some(1_200), Some(1_600), 3)
        };
        assert_eq!(bounds, expected);
    }
}

#[test]
fn what_is_skipped_until_the_end_moves_with_it() {
    let window = window_of(1_000, 20_000_001_000);
    for (end_ns, least) in [(window.end_ns, 0.0), (15_000_001_000, 0.001)] {
        let mut recorder = with_window(window);
        recorder.plan_requests();
        for due_ns in [2_000, 10_000_001_000] {
            recorder.arrival_planned(due_ns);
            recorder.arrival_skipped(due_ns, window.end_ns, Skip::Full);
        }
        recorder.end_window_at(end_ns);
        let unfinished = recorder.finish(end_ns).latencies.unfinished;
        // A lower bound still, to the width of a bucket.
        let truths = [unfinished.min_ns(), unfinished.max_ns()].into_iter();
        for (bound, due_ns) in truths.zip([10_000_001_000, 2_000]) {
            let (bound_ns, truth_ns) = (bound.expect("a bound"), end_ns - due_ns);
            let coarse_ns = (least * window.length_ns() as f64) as u64;
            assert!(
                (truth_ns - coarse_ns..=truth_ns).contains(&bound_ns),
                "{bound_ns}"
            );
        }
    }
}

#[test]
fn arrivals_skipped_at_once_count_as_one_by_one() {
    let window = window_of(1_000_000, 31_000_000);
    let gap_ns = 100;
    for is_planned in [false, true] {
        let make = || {
            let mut recorder = with_window(window);
            if is_planned {
                recorder.plan_requests();
                recorder.plan_stages(&[1_234_567, 10_000_000, 20_000_000]);
            }
            recorder
        };
        let (mut single, mut at_once) = (make(), make());
        let (mut due_ns, mut ranges) = (500_000, 0);
        while due_ns < window.end_ns {
            let until_ns = at_once
                .alike_until_ns(due_ns, window.end_ns)
                .min(window.end_ns);
            let first_due_ns = due_ns;
            let mut count = 0;
            while due_ns < until_ns {
                single.arrival_planned(due_ns);
                single.arrival_skipped(due_ns, window.end_ns, Skip::Full);
                due_ns += gap_ns;
                count += 1;
            }
            at_once.arrivals_skipped(first_due_ns, until_ns, window.end_ns, count);
            ranges += 1;
        }
        let ended = [single, at_once].map(|recorder| recorder.finish(window.end_ns));
        assert_eq!(ended[0].record.arrivals, ended[1].record.arrivals);
        assert_eq!(ended[0].record.arrivals_all, ended[1].record.arrivals_all);
        let [one, other] = [&ended[0], &ended[1]].map(|recording| &recording.latencies);
        for (one, other) in one.stages.iter().zip(&other.stages) {
            assert_eq!(one.arrivals, other.arrivals);
            assert_eq!(one.unfinished.buckets(), other.unfinished.buckets());
        }
        let [one, other] = ended.map(|recording| recording.latencies.unfinished);
        assert_eq!(one.buckets(), other.buckets());
        let (max_ns, bound_ns) = (one.max_ns().unwrap_or(0), other.max_ns().unwrap_or(0));
        assert!(bound_ns <= max_ns && max_ns - bound_ns <= max_ns / 1_000);
        assert!(ranges < 20_000, "{ranges}");
    }
}

#[test]
fn arrivals_that_wait_are_kept_over_time() {
    let mut recorder = with_window(window_of(0, 300_000_000));
    for (at_ns, waiting) in [
        (10, 3),
        (20, 7),
        (30, 5),
        (250_000_000, 1),
        (300_000_000, 9),
    ] {
        recorder.waiting(at_ns, waiting);
    }
    let record = recorder.finish(300_000_000).record;
    let series = record.series.coarsened();
    let most: Vec<_> = series.points.iter().map(|p| p.waiting_max).collect();
    assert_eq!(most, [7, 0, 1]);
}

#[derive(Clone, Debug)]
enum Op {
    Wait(u64),
    Open,
    Close,
    /// With a schedule, one request that was due `late_ns` ago, and had waited or not.
    Send {
        requests: u32,
        late_ns: u64,
        waited: bool,
    },
    Skip {
        late_ns: u64,
        why: Skip,
    },
    Reply {
        which: usize,
        status: u16,
        body: u64,
    },
    Fail {
        which: usize,
        kind: FailureKind,
        discarded: u64,
    },
    ConnectFailed,
    SetWindow,
    EndNow,
}

fn op() -> impl Strategy<Value = Op> {
    let why = prop::sample::select(vec![Skip::Full, Skip::Late, Skip::Unsent]);
    let kind = prop::sample::select(vec![FailureKind::TruncatedBody, FailureKind::TimedOut]);
    prop_oneof![
        4 => (1_u64..120).prop_map(Op::Wait),
        2 => Just(Op::Open),
        1 => Just(Op::Close),
        4 => (1_u32..4, 0_u64..100, any::<bool>())
            .prop_map(|(requests, late_ns, waited)| Op::Send { requests, late_ns, waited }),
        1 => (0_u64..100, why).prop_map(|(late_ns, why)| Op::Skip { late_ns, why }),
        6 => (any::<usize>(), 100_u16..=999, 0_u64..500)
            .prop_map(|(which, status, body)| Op::Reply { which, status, body }),
        1 => (any::<usize>(), kind, 0_u64..50)
            .prop_map(|(which, kind, discarded)| Op::Fail { which, kind, discarded }),
        1 => Just(Op::ConnectFailed),
        1 => Just(Op::SetWindow),
        1 => Just(Op::EndNow),
    ]
}

/// What the recorder should say, kept as plain lists.
#[derive(Default)]
struct Model {
    in_flight: Vec<RequestTiming>,
    /// Issued, ended, answered.
    ended: Vec<(RequestTiming, u64, bool)>,
    /// Due instants of what timed out, was censored or, with a schedule, skipped.
    unfinished: Vec<u64>,
    /// `(at, live from then on)`.
    live: Vec<(u64, u64)>,
}

impl Model {
    /// The number of `instants` of the window at which something is so, one by one.
    fn integral(window: Window, mut value: impl FnMut(u64) -> u64) -> u64 {
        (window.start_ns..window.end_ns).map(&mut value).sum()
    }

    fn live_at(&self, at_ns: u64) -> u64 {
        self.live
            .iter()
            .take_while(|&&(from, _)| from <= at_ns)
            .last()
            .map_or(0, |&(_, n)| n)
    }
}

proptest! {
    #[test]
    fn any_sequence_of_events_keeps_the_accounting(
        ops in prop::collection::vec(op(), 0..80),
        by_count in any::<bool>(),
        is_planned in any::<bool>(),
    ) {
        let planned = if by_count { u64::MAX } else { END_NS };
        let mut recorder = Recorder::new(0, 8, 8);
        if is_planned {
            recorder.plan_requests();
            recorder.plan_stages(&[300, 1, 500]);
        }
        let (mut now_ns, mut window_set, mut end_ns) = (1_u64, false, planned);
        let (mut open, mut head_total) = (0_u64, 0_u64);
        let mut model = Model::default();
        for op in ops {
            match op {
                Op::Wait(ns) => {
                    if !window_set && now_ns + ns >= START_NS {
                        recorder.set_window(window_of(START_NS, planned ));
                        window_set = true;
                    }
                    now_ns += ns;
                }
                Op::SetWindow if !window_set => {
                    recorder.set_window(window_of(START_NS, planned ));
                    window_set = true;
                }
                Op::EndNow if window_set => {
                    // Agreed on for an instant still to come.
                    recorder.end_window_at(now_ns + 1);
                    end_ns = end_ns.min(now_ns + 1).max(START_NS);
                }
                Op::Open => {
                    recorder.connected(now_ns, 7);
                    recorder.secured(now_ns, 9, open % 2 == 1);
                    recorder.received(now_ns, 50);
                    recorder.tally(now_ns).overhead_bytes += 50;
                    open += 1;
                    model.live.push((now_ns, open));
                }
                Op::Close if open > 0 => {
                    recorder.disconnected(now_ns);
                    open -= 1;
                    model.live.push((now_ns, open));
                }
                Op::Send { late_ns, waited, .. } if is_planned => {
                    let due_ns = now_ns.saturating_sub(late_ns);
                    let timing = due(due_ns, now_ns);
                    recorder.arrival_planned(due_ns);
                    recorder.arrival_sent(due_ns, now_ns, waited);
                    recorder.lag(due_ns, late_ns);
                    recorder.sent(timing, 1, 80);
                    model.in_flight.push(timing);
                }
                Op::Send { requests, .. } => {
                    recorder.sent(at(now_ns), requests, 80 * u64::from(requests));
                    model.in_flight.extend((0..requests).map(|_| at(now_ns)));
                }
                Op::Skip { late_ns, why } => {
                    let due_ns = now_ns.saturating_sub(late_ns);
                    recorder.arrival_planned(due_ns);
                    recorder.arrival_skipped(due_ns, now_ns, why);
                    if is_planned {
                        model.unfinished.push(due_ns);
                    }
                }
                Op::Reply { which, status, body } if !model.in_flight.is_empty() => {
                    let timing = model.in_flight.swap_remove(which % model.in_flight.len());
                    recorder.received(now_ns, 30 + body);
                    let answer = Answer {
                        first_byte_ns: now_ns.saturating_sub(body),
                        ..answer(status, 1, 30, body)
                    };
                    recorder.reply(timing, now_ns, &answer);
                    head_total += 30;
                    model.ended.push((timing, now_ns, true));
                }
                Op::Fail { which, kind, discarded } if !model.in_flight.is_empty() => {
                    let timing = model.in_flight.swap_remove(which % model.in_flight.len());
                    recorder.received(now_ns, discarded);
                    recorder.request_failed(timing, now_ns, kind, discarded);
                    model.ended.push((timing, now_ns, false));
                    if kind == FailureKind::TimedOut {
                        model.unfinished.push(timing.due_ns);
                    }
                }
                Op::ConnectFailed => recorder.failed(now_ns, FailureKind::ConnectRefused, 0),
                _ => {}
            }
        }
        let drained_ns = now_ns + 1;
        for timing in std::mem::take(&mut model.in_flight) {
            recorder.censored(timing, drained_ns, 0);
            model.ended.push((timing, drained_ns, false));
            model.unfinished.push(timing.due_ns);
        }
        let common_end_ns = end_ns.min(drained_ns.max(START_NS));
        let recording = recorder.finish(if window_set { common_end_ns } else { now_ns });
        let record = recording.record;
        let lifetime = record.tallies.lifetime();

        let ended = lifetime.replies.total() + lifetime.failures.of_requests(Work::Requests);
        let replied_bytes = lifetime.reply_head_bytes + lifetime.reply_body_bytes;
        let other_bytes = lifetime.discarded_bytes + lifetime.overhead_bytes;
        let population = record.population;
        let outcomes = population.recorded + population.failed + population.censored;
        for (what, left, right) in [
            ("requests", lifetime.requests_sent, ended + record.in_flight_at_end),
            ("bytes", lifetime.bytes_received, replied_bytes + other_bytes),
            ("heads", lifetime.reply_head_bytes, head_total),
            ("the population", population.issued, outcomes),
        ] {
            prop_assert_eq!(left, right, "{}", what);
        }
        let (arrivals, arrivals_all) = (record.arrivals, record.arrivals_all);
        for counts in [arrivals, arrivals_all] {
            prop_assert_eq!(
                counts.planned,
                counts.sent + counts.skipped_full + counts.skipped_late + counts.unsent
            );
        }
        let latencies = &recording.latencies;
        if is_planned {
            prop_assert_eq!(population.issued, arrivals.sent);
            prop_assert_eq!(lifetime.requests_sent, arrivals_all.sent);
            prop_assert_eq!(latencies.service.count(), latencies.response.count());
            prop_assert_eq!(latencies.lag.count(), arrivals.sent);
        } else {
            prop_assert_eq!(population.issued, record.tallies.measure.requests_sent);
            prop_assert_eq!(latencies.service.count(), 0);
        }
        prop_assert_eq!(
            latencies.response.count() + latencies.response_error.count(),
            population.recorded
        );
        if is_planned {
            let mut stages = StageRecord::default();
            latencies.stages.iter().for_each(|stage| stages.merge(stage));
            prop_assert_eq!(latencies.stages.len(), 3);
            prop_assert_eq!((stages.arrivals, stages.population), (arrivals, population));
            for (stages, window) in [
                (&stages.response, &latencies.response),
                (&stages.unfinished, &latencies.unfinished),
            ] {
                prop_assert_eq!(stages.count(), window.count());
                // Bounds that moved with the end are known to a bucket's width.
                let [max_ns, finer_ns] = [stages, window].map(|histogram| histogram.max_ns().unwrap_or(0));
                prop_assert!(max_ns <= finer_ns && finer_ns - max_ns <= finer_ns >> 7);
            }
            prop_assert_eq!(stages.errors(), latencies.response_error.count());
        } else {
            prop_assert!(latencies.stages.is_empty());
        }
        let service = if is_planned { &latencies.service } else { &latencies.response };
        let (first_byte, transfer) = (&latencies.first_byte, &latencies.transfer);
        let opened = lifetime.connections_opened;
        let handshakes = lifetime.handshakes_full + lifetime.handshakes_resumed;
        let measure = &record.tallies.measure;
        let failures: u64 = measure.failures.iter().map(|(_, count)| count).sum();
        let points = &record.series.points;
        let points = |of: fn(&SeriesPoint) -> u64| points.iter().map(of).sum::<u64>();
        for (what, left, right) in [
            ("intervals", latencies.intervals.count(), latencies.response.count()),
            ("connections", latencies.connect.count(), opened),
            ("TLS", latencies.tls.count(), opened),
            ("handshakes", handshakes, opened),
            ("first bytes", first_byte.count(), service.count()),
            ("transfers", transfer.count(), service.count()),
            ("service times", first_byte.sum_ns() + transfer.sum_ns(), service.sum_ns()),
            ("successes over time", points(|point| point.successes), measure.replies.successes()),
            ("errors over time", points(|point| point.errors), measure.replies.errors()),
            ("bytes over time", points(|point| point.bytes_received), measure.bytes_received),
            ("failures over time", points(|point| point.failures), failures),
        ] {
            prop_assert_eq!(left, right, "{}", what);
        }

        if window_set {
            let window = window_of(START_NS, common_end_ns );
            let expected = model
                .ended
                .iter()
                .filter(|(timing, _, answered)| *answered && window.contains(timing.due_ns))
                .count() as u64;
            prop_assert_eq!(population.recorded, expected);
            let carried = |is_so: &dyn Fn(u64, bool) -> bool| {
                let of_warmup = model.ended.iter().filter(|(timing, done_ns, answered)| {
                    let left = timing.sent_ns < START_NS && *done_ns >= START_NS.min(drained_ns);
                    left && is_so(*done_ns, *answered)
                });
                of_warmup.count() as u64
            };
            let in_it = |done_ns| window.contains(done_ns) && done_ns < drained_ns;
            let expected = CarriedIn {
                in_flight: carried(&|_, _| true),
                answered: carried(&|done_ns, answered| in_it(done_ns) && answered),
                failed: carried(&|done_ns, answered| in_it(done_ns) && !answered),
                unanswered: carried(&|done_ns, _| !in_it(done_ns)),
                in_flight_ns: Model::integral(window, |at_ns| {
                    let lasts = |(timing, done_ns, _): &&(RequestTiming, u64, bool)| {
                        timing.sent_ns < START_NS && at_ns < *done_ns
                    };
                    model.ended.iter().filter(lasts).count() as u64
                }),
            };
            prop_assert_eq!(record.carried_in, expected);
            let unfinished = model.unfinished.iter().filter(|&&due| window.contains(due));
            // Without a window, nothing is known of it.
            let outlasted = if is_planned || drained_ns < START_NS || end_ns <= START_NS {
                0
            } else {
                expected.unanswered
            };
            let unfinished = unfinished.count() as u64 + outlasted;
            prop_assert_eq!(latencies.unfinished.count(), unfinished);
            let open_ns = Model::integral(window, |at_ns| model.live_at(at_ns));
            prop_assert_eq!(record.live.connection_ns, open_ns);
            let in_flight_ns = Model::integral(window, |at_ns| {
                let lasts = |(timing, done_ns, _): &&(RequestTiming, u64, bool)| {
                    timing.sent_ns <= at_ns && at_ns < *done_ns
                };
                model.ended.iter().filter(lasts).count() as u64
            });
            prop_assert_eq!(record.in_flight_ns, in_flight_ns);
            let in_window = |&&(at_ns, _): &&(u64, u64)| window.contains(at_ns);
            let levels = model.live.iter().filter(in_window).map(|&(_, live)| live);
            let before = model.live_at(START_NS - 1);
            let (min, max) = levels.fold((before, before), |(min, max), live| {
                (min.min(live), max.max(live))
            });
            prop_assert_eq!((record.live.min.into(), record.live.max.into()), (min, max));
        }
    }
}
