//! Tests of response times over time.

use proptest::prelude::*;

use super::*;
use crate::filled::HIGHEST_NS;

const MS: u64 = 1_000_000;
const INTERVAL_NS: u64 = grid::USUAL_NS;

fn of(window_ns: u64, completions: &[(u64, u64)]) -> Intervals {
    let mut recorder = IntervalRecorder::default();
    for &(offset_ns, response_ns) in completions {
        recorder.record(offset_ns, response_ns);
    }
    recorder.finish(window_ns)
}

fn counts(intervals: &Intervals) -> Vec<u64> {
    intervals
        .iter()
        .map(|interval| interval.response.len())
        .collect()
}

/// Response times in the largest form there is: every bucket of every interval is in use.
fn varied(intervals: u64, gap_ns: u64) -> Intervals {
    let completions: Vec<_> = (0..intervals)
        .flat_map(|at| (0..4_400).map(move |place| (at * gap_ns, RESOLUTION.edges(place).0)))
        .collect();
    of(intervals * gap_ns, &completions)
}

fn stored(intervals: &Intervals) -> serde_json::Value {
    serde_json::to_value(intervals).expect("intervals serialise")
}

#[test]
fn completions_fall_into_their_interval() {
    let intervals = of(
        350 * MS,
        &[
            (0, MS),
            (99 * MS, 2 * MS),
            (100 * MS, MS),
            // A late one goes into the interval that goes on.
            (99 * MS, MS),
            (340 * MS, 50 * MS),
        ],
    );
    assert_eq!(counts(&intervals), [2, 2, 0, 1]);
    let last = intervals.iter().last().expect("four intervals");
    assert_eq!((last.start_ns, last.length_ns), (300 * MS, 100 * MS));
    assert!(last.response.equivalent(last.response.max(), 50 * MS));
    assert_eq!(intervals.count(), 5);
    assert_eq!((intervals.len(), intervals.is_empty()), (4, false));
    assert!(Intervals::default().is_empty());
}

#[test]
fn a_bucket_keeps_its_values_when_expanded() {
    let beyond = of(MS, &[(0, u64::MAX), (0, 0)]);
    let only = beyond.iter().next().expect("one interval");
    assert!(only.response.equivalent(only.response.max(), HIGHEST_NS));
    assert_eq!(only.response.min(), 0);
}

#[test]
fn the_interval_doubles_with_the_length() {
    // (offset, interval in units of 100 ms)
    let cases = [
        (59_999 * MS, 1),
        (60_000 * MS, 2),
        (120_000 * MS, 4),
        (3_600_000 * MS, 64),
        (u64::MAX - 1, 1 << 29),
    ];
    for (offset_ns, units) in cases {
        let intervals = of(offset_ns + 1, &[(0, MS), (offset_ns, MS)]);
        assert_eq!(intervals.interval_ns(), units * INTERVAL_NS, "{offset_ns}");
        assert_eq!(
            intervals.len() as u64,
            offset_ns / (units * INTERVAL_NS) + 1
        );
        assert_eq!(intervals.count(), 2);
    }
}

#[test]
fn a_short_window_has_short_intervals() {
    // (length told beforehand, last completion, interval in shares of 100 ms)
    let cases = [
        (1_000 * MS, 999 * MS, 16),
        (1_000 * MS, 10 * MS, 16),
        (10_000 * MS, 9_999 * MS, 1),
        // It is not known beforehand: a run by count.
        (0, 10 * MS, 256),
        (0, 999 * MS, 16),
        (0, 15_999 * MS, 1),
        (0, 59_999 * MS, 1),
        (0, 60_000 * MS, 0),
    ];
    for (window_ns, last_ns, share) in cases {
        let mut recorder = IntervalRecorder::default();
        recorder.set_window(window_ns);
        let completions = (0..200).map(|index| index * last_ns / 199);
        completions.for_each(|offset_ns| recorder.record(offset_ns, MS));
        let intervals = recorder.finish(last_ns + 1);
        let interval_ns = INTERVAL_NS.checked_div(share).unwrap_or(2 * INTERVAL_NS);
        assert_eq!(
            intervals.interval_ns(),
            interval_ns,
            "{window_ns} {last_ns}"
        );
        assert_eq!(intervals.count(), 200);
        assert_eq!(intervals.len() as u64, last_ns / interval_ns + 1);
        let read: Intervals = serde_json::from_value(stored(&intervals)).expect("its own form");
        assert_eq!(read, intervals);
        let coarse = intervals.coarsened();
        assert_eq!(coarse.interval_ns(), interval_ns.max(INTERVAL_NS));
        assert_eq!(coarse.count(), 200);
    }
}

#[test]
fn shares_are_of_each_interval() {
    let intervals = of(
        350 * MS,
        &[
            (0, MS),
            (1, 3 * MS),
            (100 * MS, 2 * MS),
            (340 * MS, 2 * MS),
            (341 * MS, 2 * MS),
        ],
    );
    let share = |all, below| Share { all, below };
    // Three of five: two of the three equal ones count as below.
    let shares = intervals.shares(2 * MS, 3.0, 500 * MS);
    let third = 2.0 / 3.0;
    let expected = [
        share(2.0, 1.0),
        share(1.0, third),
        share(0.0, 0.0),
        share(2.0, 2.0 * third),
        share(0.0, 0.0),
    ];
    assert_eq!(shares, expected);
    let none = intervals.shares(MS / 2, 0.0, 0);
    assert!(none.len() == 4 && none.iter().all(|share| share.below == 0.0));
    let most = intervals.shares(MS, 1.0, u64::MAX);
    assert_eq!(most.len(), INTERVALS_MAX);
    for ns in [0, 255, 256, MS, HIGHEST_NS, u64::MAX] {
        let bucket = Intervals::bucket_of(ns);
        assert!(bucket.contains(&ns.min(HIGHEST_NS)), "{ns}");
        let width = bucket.end() - bucket.start();
        assert!(width <= bucket.start() >> RESOLUTION.bits, "{ns}");
    }
}

#[test]
fn what_lies_beyond_the_window_is_in_its_last_interval() {
    // The end was brought forward after the last completions.
    let completions = [
        (50 * MS, MS),
        (150 * MS, MS),
        (950 * MS, MS),
        (999 * MS, MS),
    ];
    // (length, counts)
    let cases: [(u64, &[u64]); 4] = [
        (1_000 * MS, &[1, 1, 0, 0, 0, 0, 0, 0, 0, 2]),
        (200 * MS, &[1, 3]),
        (100 * MS, &[4]),
        (0, &[4]),
    ];
    for (window_ns, expected) in cases {
        assert_eq!(
            counts(&of(window_ns, &completions)),
            expected,
            "{window_ns}"
        );
    }
}

#[test]
fn memory_is_bounded_whatever_the_response_times() {
    let intervals = varied(100, INTERVAL_NS);
    let filled = intervals
        .sparse
        .iter()
        .map(|sparse| sparse.len())
        .sum::<usize>();
    assert!(filled <= FILLED_MAX, "{filled}");
    assert_eq!(intervals.count(), 100 * 4_400);
    assert_eq!(intervals.interval_ns(), 8 * INTERVAL_NS);
    let bytes = filled * size_of::<Filled>() + INTERVALS_MAX * size_of::<Sparse>();
    let dense = IntervalRecorder::default().dense.len() * size_of::<u32>();
    assert!(bytes + dense < 600 << 10, "{}", bytes + dense);
}

#[test]
fn what_the_last_interval_adds_is_bounded_too() {
    // 14 intervals are within the limit, 15 are not.
    let intervals = varied(15, INTERVAL_NS);
    let read: Intervals = serde_json::from_value(stored(&intervals)).expect("what was written");
    assert_eq!(read, intervals);
    assert_eq!(read.count(), 15 * 4_400);
}

#[test]
fn an_ordinary_run_is_stored_in_little_space() {
    // 10 s with some 300 filled buckets per interval.
    let completions: Vec<_> = (0..100_000_u64)
        .map(|n| {
            (
                n * 100_000,
                200_000 + n * 7_919 % 800_000 + n * 31 % 97 * 10_000,
            )
        })
        .collect();
    let text = stored(&of(10_000 * MS, &completions)).to_string();
    assert!(text.len() < 80_000, "{}", text.len());
}

#[test]
fn a_bucket_that_is_full_is_put_away() {
    let mut recorder = IntervalRecorder::default();
    recorder.dense[1] = u32::MAX - 1;
    recorder.record(0, 1);
    assert_eq!(recorder.dense[1], 0);
    recorder.record(0, 1);
    assert_eq!(recorder.finish(MS).count(), u64::from(u32::MAX) + 1);
    let full = |count| Filled::new(7, count);
    let sum = sum_of(Box::new([full(Filled::COUNT_MAX)]), Box::new([full(9)]));
    assert_eq!((sum[0].bucket(), sum[0].count()), (7, Filled::COUNT_MAX));
}

#[test]
fn what_is_stored_must_be_intervals() {
    let sound = stored(&of(300 * MS, &[(0, MS), (250 * MS, 3 * MS)]));
    assert_eq!(sound["buckets"][1], "");
    type Value = serde_json::Value;
    let cases: [(&str, &str, Value); 8] = [
        ("no such interval", "interval_ns", 0.into()),
        (
            "no such interval",
            "interval_ns",
            (grid::SHORTEST_NS / 2).into(),
        ),
        ("no such interval", "interval_ns", (3 * INTERVAL_NS).into()),
        (
            "no such interval",
            "interval_ns",
            (2 * grid::LONGEST_NS).into(),
        ),
        ("over the limit of 600", "buckets", vec![""; 601].into()),
        ("not those of a histogram", "buckets", vec!["!"].into()),
        (
            "not those of a histogram",
            "buckets",
            vec![format!("-{} 1", RESOLUTION.buckets())].into(),
        ),
        (
            "more values than any run",
            "buckets",
            vec![format!("{} 1", Filled::COUNT_MAX)].into(),
        ),
    ];
    for (message, field, value) in cases {
        let mut changed = sound.clone();
        changed[field] = value;
        let read = serde_json::from_value::<Intervals>(changed).map(drop);
        let words = read.map_err(|error| error.to_string()).expect_err(message);
        assert!(words.contains(message), "{words}");
    }
    let mut swollen = stored(&varied(1, INTERVAL_NS));
    swollen["buckets"] = vec![swollen["buckets"][0].clone(); 20].into();
    let words = serde_json::from_value::<Intervals>(swollen).map(drop);
    assert!(
        words
            .expect_err("swollen")
            .to_string()
            .contains("filled buckets")
    );
}

fn completions() -> impl Strategy<Value = Vec<(u64, u64)>> {
    // Up to ten minutes: the interval doubles up to four times.
    prop::collection::vec((0_u64..600_000_000_000, 0_u64..5_000_000_000_000), 0..60)
}

proptest! {
    #[test]
    fn merging_commutes_and_is_recording_all_in_one(a in completions(), b in completions()) {
        let window_ns = 600_000 * MS;
        let (mut a, mut b) = (a, b);
        a.sort_unstable();
        b.sort_unstable();
        let mut ab = of(window_ns, &a);
        ab.merge(&of(window_ns, &b));
        let mut ba = of(window_ns, &b);
        ba.merge(&of(window_ns, &a));
        let mut all = [a, b].concat();
        all.sort_unstable();
        prop_assert_eq!(&ab, &ba);
        prop_assert_eq!(&ab, &of(window_ns, &all));
        prop_assert_eq!(ab.count(), all.len() as u64);
    }

    #[test]
    fn nothing_is_lost_in_any_order(
        offsets in prop::collection::vec(any::<u64>(), 0..60),
        window_ns in any::<u64>(),
    ) {
        let completions: Vec<_> = offsets.iter().map(|&offset_ns| (offset_ns, MS)).collect();
        let intervals = of(window_ns, &completions);
        prop_assert_eq!(intervals.count(), offsets.len() as u64);
        prop_assert!(intervals.len() <= INTERVALS_MAX);
        let most = window_ns.saturating_sub(1) / intervals.interval_ns() + 1;
        prop_assert!(intervals.len() as u64 <= most);
        prop_assert_eq!(counts(&intervals).iter().sum::<u64>(), offsets.len() as u64);
    }
}
