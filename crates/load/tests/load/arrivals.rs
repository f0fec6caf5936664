//! Arrivals as instants: pinned ones, exact ones, and what holds of any schedule.

use brunt_load::{ArrivalProcess, Schedule, ScheduleError, Stage};
use proptest::prelude::*;

use ArrivalProcess::{Constant, Poisson, Uniform};

const S: u64 = 1_000_000_000;

fn stage(duration_ns: u64, from_per_s: f64, to_per_s: f64) -> Stage {
    Stage {
        duration_ns,
        from_per_s,
        to_per_s,
    }
}

fn endless(process: ArrivalProcess, rate_per_s: f64) -> Schedule {
    Schedule::constant_rate(process, rate_per_s, 42).unwrap()
}

fn staged(process: ArrivalProcess, stages: &[Stage]) -> Schedule {
    Schedule::staged(process, stages.to_vec(), 42).unwrap()
}

/// Up, level, down: 0 to 1,000/s and back, a second each.
fn hill(process: ArrivalProcess) -> Schedule {
    let stages = [stage(S, 0.0, 1e3), stage(S, 1e3, 1e3), stage(S, 1e3, 0.0)];
    staged(process, &stages)
}

fn first<const N: usize>(schedule: &Schedule, worker: u32, workers: u32) -> [u64; N] {
    let mut arrivals = schedule.arrivals(worker, workers);
    std::array::from_fn(|_| arrivals.next().unwrap())
}

/// The arrivals of all workers, in order.
fn united(schedule: &Schedule, workers: u32) -> Vec<u64> {
    let mut all: Vec<u64> = (0..workers)
        .flat_map(|worker| schedule.arrivals(worker, workers))
        .collect();
    all.sort_unstable();
    all
}

/// The values were computed apart from this code, with 60 decimal places. A seed in a report must
/// give the same instants in every version.
#[test]
fn the_first_instants_stay_the_same() {
    for (process, worker, workers, at_1k, on_the_hill) in [
        (
            Constant,
            0,
            1,
            [0, 1_000_000, 2_000_000, 3_000_000, 4_000_000],
            [0, 44_721_360, 63_245_553, 77_459_667, 89_442_719],
        ),
        (
            Constant,
            1,
            3,
            [1_000_000, 4_000_000, 7_000_000, 10_000_000, 13_000_000],
            [
                44_721_360,
                89_442_719,
                118_321_596,
                141_421_356,
                161_245_155,
            ],
        ),
        (
            Poisson,
            0,
            1,
            [1_236_221, 1_452_683, 1_588_933, 1_736_396, 2_634_611],
            [49_723_654, 53_901_446, 56_372_559, 58_930_406, 72_589_407],
        ),
        (
            Poisson,
            1,
            3,
            [304_660, 1_085_773, 4_171_269, 9_634_808, 12_353_835],
            [24_684_394, 46_599_857, 91_337_498, 138_815_044, 157_186_736],
        ),
        (
            Uniform,
            0,
            1,
            [741_565, 1_159_910, 2_278_601, 3_344_191, 4_038_030],
            [38_511_424, 48_164_518, 67_507_053, 81_782_525, 89_866_903],
        ),
        (
            Uniform,
            1,
            3,
            [1_159_910, 4_038_030, 7_800_632, 10_204_902, 13_520_013],
            [
                48_164_518,
                89_866_903,
                124_905_019,
                142_862_884,
                164_438_519,
            ],
        ),
    ] {
        let schedule = endless(process, 1e3);
        assert_eq!(first(&schedule, worker, workers), at_1k, "{process}");
        let schedule = hill(process);
        assert_eq!(first(&schedule, worker, workers), on_the_hill, "{process}");
    }
}

#[test]
fn other_seeds_give_other_instants() {
    for (process, differs) in [(Constant, false), (Poisson, true), (Uniform, true)] {
        let instants = |seed| {
            let schedule = Schedule::constant_rate(process, 1e3, seed).unwrap();
            first::<20>(&schedule, 0, 1)
        };
        for (left, right) in [(0, 1), (1, 2), (1, u64::MAX), (1, 1 << 32)] {
            assert_eq!(instants(left) != instants(right), differs, "{process}");
        }
    }
}

#[test]
fn a_constant_rate_is_exact_to_the_nanosecond_for_hours() {
    // The rate is numerator / denominator per second.
    for (rate_per_s, numerator, denominator) in [
        (1e9, 1_000_000_000, 1),
        (1e6, 1_000_000, 1),
        (999_983.0, 999_983, 1),
        (7.0, 7, 1),
        (33.3, 333, 10),
        (0.1, 1, 10),
        (1e-3, 1, 1_000),
    ] {
        let schedule = endless(Constant, rate_per_s);
        // As the first of very many workers one sees far ahead.
        for workers in [1, 3, 1_000_003, 50_000_017] {
            let arrivals = schedule.arrivals(0, workers);
            for (step, offset_ns) in (0..1_000u128).zip(arrivals) {
                let number = step * u128::from(workers);
                let dividend = number * u128::from(S) * denominator;
                let rounded = (2 * dividend + numerator) / (2 * numerator);
                let offset_ns = u128::from(offset_ns);
                // A day; then the rate as a double shows.
                if offset_ns < 86_400 * u128::from(S) {
                    let error_ns = offset_ns.abs_diff(rounded);
                    assert!(error_ns <= 1, "{rate_per_s}/s, {number}: {error_ns}");
                    if denominator == 1 {
                        assert_eq!(error_ns, 0, "{rate_per_s}/s, {number}");
                    }
                }
            }
        }
    }
}

#[test]
fn ramps_from_and_to_rest_are_exact_to_the_nanosecond() {
    // Over an hour; the integral is 1,800 s times the highest rate.
    for rate_per_s in [0.01, 100.0, 1e6] {
        let rise = staged(Constant, &[stage(3_600 * S, 0.0, rate_per_s)]);
        let fall = staged(Constant, &[stage(3_600 * S, rate_per_s, 0.0)]);
        let all = 1_800.0 * rate_per_s;
        let workers = (all / 18.0).max(1.0) as u32;
        let [mut rising, mut falling] = [&rise, &fall].map(|ramp| ramp.arrivals(0, workers));
        for number in (0..all as u64).step_by(workers as usize) {
            let part = (number as f64 / all).sqrt();
            let expected_ns = (part * 3_600e9).round() as u64;
            let offset_ns = rising.next().unwrap();
            assert!(offset_ns.abs_diff(expected_ns) <= 1, "rise, {number}");
            let part = 1.0 - (1.0 - number as f64 / all).sqrt();
            let expected_ns = (part * 3_600e9).round() as u64;
            let offset_ns = falling.next().unwrap();
            assert!(offset_ns.abs_diff(expected_ns) <= 1, "fall, {number}");
        }
        assert_eq!((rising.next(), falling.next()), (None, None));
    }
    // The second arrival in an hour at a low slope, where small differences would show.
    let ramp = staged(Constant, &[stage(3_600 * S, 0.0, 1e6)]);
    let expected_ns = (3_600e9 / 1.8e9f64.sqrt()).round() as u64;
    assert_eq!(first(&ramp, 0, 1), [0, expected_ns]);
}

#[test]
fn a_ramp_that_hardly_changes_is_a_constant_rate() {
    let level = staged(Constant, &[stage(100 * S, 1e3, 1e3)]);
    for to_per_s in [1e3f64.next_up(), 1e3f64.next_down()] {
        let ramp = staged(Constant, &[stage(100 * S, 1e3, to_per_s)]);
        let mut count = 0;
        for (left, right) in level.arrivals(0, 1).zip(ramp.arrivals(0, 1)) {
            assert!(left.abs_diff(right) <= 1);
            count += 1;
        }
        assert_eq!(count, 100_000);
    }
}

#[test]
fn steps_and_rests_are_where_they_should_be() {
    let stages = [
        stage(S, 0.0, 0.0),
        stage(S, 4.0, 4.0),
        stage(2 * S, 0.0, 0.0),
        stage(S / 2, 10.0, 10.0),
        stage(S, 0.0, 0.0),
    ];
    let schedule = staged(Constant, &stages);
    let ms: Vec<u64> = schedule.arrivals(0, 1).map(|ns| ns / 1_000_000).collect();
    assert_eq!(
        ms,
        [
            1_000, 1_250, 1_500, 1_750, 4_000, 4_100, 4_200, 4_300, 4_400
        ]
    );
    for process in [Poisson, Uniform] {
        let schedule = staged(
            process,
            &stages.map(|rest| Stage {
                from_per_s: rest.from_per_s * 1e3,
                to_per_s: rest.to_per_s * 1e3,
                ..rest
            }),
        );
        for offset_ns in schedule.arrivals(0, 1) {
            assert!(schedule.rate_at(offset_ns) > 0.0, "{process}, {offset_ns}");
        }
    }
}

#[test]
fn the_end_of_load_is_not_part_of_it() {
    // 66.7 as a double is a little more, so that arrival 667 comes just before the end, and
    // rounding takes it there.
    let schedule = staged(Constant, &[stage(10 * S, 66.7, 66.7)]);
    assert_eq!(schedule.arrivals(0, 1).count(), 667);
    let mut arrivals = schedule.arrivals(0, 1);
    assert_eq!(arrivals.by_ref().last(), Some(9_985_007_496));
    assert_eq!(arrivals.next(), None);
}

#[test]
fn what_comes_after_64_bits_of_time_does_not_come() {
    for (process, rate_per_s) in [
        (Constant, f64::MIN_POSITIVE),
        (Constant, 5e-324),
        (Constant, 1e-11),
    ] {
        assert_eq!(
            endless(process, rate_per_s)
                .arrivals(0, 1)
                .collect::<Vec<_>>(),
            [0]
        );
    }
    for process in [Poisson, Uniform] {
        assert_eq!(
            endless(process, 1e-15).arrivals(0, 1).next(),
            None,
            "{process}"
        );
        let mut arrivals = endless(process, 1e-3).arrivals(3, u32::MAX);
        assert!(arrivals.by_ref().count() < 100, "{process}");
        assert_eq!(arrivals.next(), None, "{process}");
    }
    let tiny = staged(Poisson, &[stage(S, 0.0, 5e-324), stage(S, 5e-324, 0.0)]);
    assert_eq!(tiny.arrivals(0, 1).count(), 0);
}

#[test]
fn workers_start_apart() {
    let schedule = endless(Constant, 1e3);
    let starts: Vec<u64> = (0..4)
        .map(|worker| schedule.arrivals(worker, 4).next().unwrap())
        .collect();
    assert_eq!(starts, [0, 1_000_000, 2_000_000, 3_000_000]);
}

#[test]
fn a_lead_comes_first() {
    let stages = [stage(S, 100.0, 200.0), stage(S, 200.0, 200.0)];
    let schedule = staged(Constant, &stages);
    let led = schedule.clone().after(2 * S);
    assert_eq!(
        led.stages(),
        [[stage(2 * S, 100.0, 100.0)].as_slice(), &stages].concat()
    );
    assert_eq!(led.duration_ns(), Some(4 * S));
    let shifted = schedule.arrivals(0, 1).map(|offset_ns| offset_ns + 2 * S);
    assert!(led.arrivals(0, 1).skip(200).eq(shifted));

    assert_eq!(schedule.clone().after(0), schedule);
    let steady = endless(Poisson, 5.0);
    assert_eq!(steady.clone().after(S), steady);
    let from_rest = hill(Constant).after(5 * S);
    assert_eq!(first(&from_rest, 0, 1), [5 * S, 5_044_721_360]);

    // Bounded, however often.
    let mut long = hill(Constant);
    for _ in 0..3 {
        long = long.after(u64::MAX);
        assert_eq!(long.duration_ns(), Some(2 * Schedule::DURATION_MAX_NS));
    }
}

#[test]
fn rates_and_expectations() {
    let schedule = hill(Constant);
    for (offset_ns, rate_per_s) in [
        (0, 0.0),
        (S / 4, 250.0),
        (S, 1e3),
        (2 * S - 1, 1e3),
        (2 * S, 1e3),
        (5 * S / 2, 500.0),
        (3 * S, 0.0),
        (u64::MAX, 0.0),
    ] {
        assert_eq!(schedule.rate_at(offset_ns), rate_per_s, "{offset_ns}");
    }
    for (from_ns, to_ns, expected) in [
        (0, 3 * S, 2e3),
        (0, S, 500.0),
        (0, S / 2, 125.0),
        (S / 2, 5 * S / 2, 375.0 + 1e3 + 375.0),
        (2 * S, u64::MAX, 500.0),
        (3 * S, u64::MAX, 0.0),
        (S, S, 0.0),
        (2 * S, S, 0.0),
    ] {
        assert_eq!(schedule.expected(from_ns, to_ns), expected, "{from_ns}");
    }
    assert_eq!(
        (schedule.rate_max(), schedule.duration_ns()),
        (1e3, Some(3 * S))
    );
    let schedule = endless(Uniform, 0.1);
    assert_eq!((schedule.rate_max(), schedule.duration_ns()), (0.1, None));
    assert_eq!(
        (schedule.rate_at(0), schedule.rate_at(u64::MAX)),
        (0.1, 0.1)
    );
    assert_eq!(schedule.expected(5 * S, 15 * S), 1.0);
    assert_eq!(schedule.expected(15 * S, 5 * S), 0.0);
    assert_eq!((schedule.process(), schedule.seed()), (Uniform, 42));
    assert!(schedule.stages().is_empty());
}

#[test]
fn impossible_schedules_are_refused() {
    let impossible = [
        -1.0,
        1e9f64.next_up(),
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
    ];
    for rate_per_s in impossible.into_iter().chain([0.0, -0.0]) {
        let refused = Schedule::constant_rate(Constant, rate_per_s, 1);
        assert_eq!(refused, Err(ScheduleError::Rate), "{rate_per_s}");
    }
    let good = stage(S, 1.0, 1.0);
    for rate_per_s in impossible {
        for bad in [stage(S, rate_per_s, 1.0), stage(S, 1.0, rate_per_s)] {
            let refused = Schedule::check_stages(&[good, bad]);
            assert_eq!(
                refused,
                Err(ScheduleError::StageRate { stage: 2 }),
                "{rate_per_s}"
            );
        }
    }
    let decade = Schedule::DURATION_MAX_NS;
    for (stages, error) in [
        (vec![], ScheduleError::Silent),
        (vec![stage(S, 0.0, -0.0)], ScheduleError::Silent),
        (
            vec![stage(0, 1.0, 1.0)],
            ScheduleError::StageDuration { stage: 1 },
        ),
        (
            vec![stage(decade, 1.0, 1.0), stage(1, 1.0, 1.0)],
            ScheduleError::TooLong,
        ),
        (vec![stage(u64::MAX, 1.0, 1.0); 2], ScheduleError::TooLong),
        (vec![good; 1_001], ScheduleError::TooMany(1_001)),
    ] {
        assert_eq!(Schedule::staged(Constant, stages, 1), Err(error));
    }
    for stages in [
        vec![good; 1_000],
        vec![stage(decade, 1e9, 0.0)],
        vec![stage(1, 0.0, 1e-9)],
    ] {
        assert!(Schedule::staged(Poisson, stages, 1).is_ok());
    }
}

fn any_process() -> impl Strategy<Value = ArrivalProcess> {
    prop::sample::select(ArrivalProcess::ALL)
}

/// Rates over many orders of magnitude, whole and broken, and rest.
fn any_rate(highest: f64) -> impl Strategy<Value = f64> {
    let orders = 6.0;
    prop_oneof![
        1 => Just(0.0),
        1 => Just(highest),
        2 => (1..=1_000u32).prop_map(move |part| highest * f64::from(part) / 1e3),
        4 => (0.0..orders).prop_map(move |order| highest / 10f64.powf(order)),
    ]
}

/// Schedules of at most some thousands of arrivals; without end if there are no stages.
fn any_schedule() -> impl Strategy<Value = Schedule> {
    let stages = (0..7i32).prop_flat_map(|order| {
        // From milliseconds at a billion a second to hours at a thousand an hour.
        let span_ns = 1_000 * 10u64.pow(order as u32 + 3) / 1_000;
        let highest = 1e9 / 10f64.powi(order);
        let stage = (
            1..=span_ns,
            any_rate(highest),
            any_rate(highest),
            any::<bool>(),
        )
            .prop_map(|(duration_ns, from_per_s, to_per_s, level)| {
                stage(
                    duration_ns,
                    from_per_s,
                    if level { from_per_s } else { to_per_s },
                )
            });
        prop::collection::vec(stage, 0..6)
    });
    (any_process(), stages, any_rate(1e9), any::<u64>()).prop_map(
        |(process, stages, rate_per_s, seed)| {
            Schedule::staged(process, stages, seed).unwrap_or_else(|_| {
                let rate_per_s = if rate_per_s > 0.0 { rate_per_s } else { 33.3 };
                Schedule::constant_rate(process, rate_per_s, seed).unwrap()
            })
        },
    )
}

proptest! {
    #[test]
    fn a_split_keeps_every_arrival(schedule in any_schedule(), workers in 1..9u32) {
        prop_assume!(schedule.process() != Poisson);
        let mut shares: Vec<_> = (0..workers)
            .map(|worker| schedule.arrivals(worker, workers))
            .collect();
        for (number, offset_ns) in schedule.arrivals(0, 1).take(3_000).enumerate() {
            let share = &mut shares[number % workers as usize];
            prop_assert_eq!(share.next(), Some(offset_ns), "arrival {}", number);
        }
        if schedule.duration_ns().is_some() && schedule.expected(0, u64::MAX) < 2_990.0 {
            for share in &mut shares {
                prop_assert_eq!(share.next(), None);
            }
        }
    }

    #[test]
    fn arrivals_are_in_order_and_within_the_stages(
        schedule in any_schedule(),
        worker in 0..3u32,
        further in 0..3u32,
    ) {
        let end_ns = schedule.duration_ns().unwrap_or(u64::MAX);
        let mut last_ns = 0;
        for offset_ns in schedule.arrivals(worker, worker + 1 + further).take(3_000) {
            prop_assert!(last_ns <= offset_ns && offset_ns < end_ns);
            last_ns = offset_ns;
        }
    }

    #[test]
    fn counts_follow_the_rate(schedule in any_schedule(), cut in 0.0..1.2f64, workers in 1..5u32) {
        prop_assume!(schedule.process() != Poisson);
        let spanned_ns = schedule.duration_ns().unwrap_or((2e12 / schedule.rate_max()) as u64);
        let until_ns = (spanned_ns as f64 * cut) as u64;
        let count: usize = (0..workers)
            .map(|worker| {
                let due = |&offset_ns: &u64| offset_ns < until_ns;
                schedule.arrivals(worker, workers).take_while(due).count()
            })
            .sum();
        let expected = schedule.expected(0, until_ns);
        // Instants are rounded by up to half a nanosecond.
        let rounding = 0.5e-9 * schedule.rate_max() + 1e-9 * expected;
        let (least, most) = match schedule.process() {
            Constant => ((expected - rounding).floor(), (expected + rounding).ceil()),
            _ => (expected - rounding - 1.0, expected + rounding + 1.0),
        };
        let count = count as f64;
        prop_assert!(least <= count && count <= most, "{} of {}", count, expected);
    }

    #[test]
    fn the_same_schedule_gives_the_same_arrivals(schedule in any_schedule(), workers in 1..4u32) {
        let again = match schedule.stages() {
            [] => Schedule::constant_rate(schedule.process(), schedule.rate_max(), schedule.seed()),
            stages => Schedule::staged(schedule.process(), stages.to_vec(), schedule.seed()),
        };
        prop_assert_eq!(again.as_ref(), Ok(&schedule));
        let again = again.unwrap();
        for worker in 0..workers {
            let [left, right] = [&schedule, &again].map(|one| one.arrivals(worker, workers));
            prop_assert!(left.take(100).eq(right.take(100)));
        }
    }
}

#[test]
fn a_split_keeps_the_whole_of_a_long_schedule() {
    for process in [Constant, Uniform] {
        let whole: Vec<u64> = hill(process).arrivals(0, 1).collect();
        for workers in [2, 3, 7, 64] {
            assert_eq!(
                united(&hill(process), workers),
                whole,
                "{process}, {workers}"
            );
        }
    }
}

#[test]
fn arrivals_that_are_passed_over_are_those_that_would_have_come() {
    let stages = vec![
        stage(2_000_000, 1e6, 3e6),
        stage(1_000_000, 0.0, 0.0),
        stage(2_000_000, 5e5, 0.0),
    ];
    for &process in ArrivalProcess::ALL {
        let schedules = [
            Schedule::constant_rate(process, 1.7e6, 7).expect("a rate"),
            Schedule::staged(process, stages.clone(), 7).expect("stages"),
        ];
        for schedule in schedules {
            for workers in [1, 3] {
                let mut skipping = schedule.arrivals(workers - 1, workers);
                let mut one_by_one = schedule.arrivals(workers - 1, workers).peekable();
                let ends_ns = [0, 1, 2_000, 2_001, 700_000, 700_000, 2_500_000, 4_000_000];
                for (end_ns, most) in ends_ns
                    .into_iter()
                    .zip([9, 0, 2, 9, 900, u64::MAX, 7, 9_999])
                {
                    let mut passed = 0;
                    while passed < most && one_by_one.next_if(|&at_ns| at_ns < end_ns).is_some() {
                        passed += 1;
                    }
                    let mut skipped = 0;
                    loop {
                        match skipping.skip_before(end_ns, most - skipped) {
                            0 => break,
                            more => skipped += more,
                        }
                    }
                    assert_eq!(skipped, passed, "{process} {end_ns}");
                }
                let rest_ns = 6_000_000;
                assert_eq!(
                    skipping
                        .take_while(|&at_ns| at_ns < rest_ns)
                        .collect::<Vec<_>>(),
                    one_by_one
                        .take_while(|&at_ns| at_ns < rest_ns)
                        .collect::<Vec<_>>(),
                );
            }
        }
    }
}

#[test]
fn numbered_arrivals_are_passed_over_by_arithmetic() {
    let schedule = Schedule::constant_rate(Constant, 1e9, 0).expect("a rate");
    let mut arrivals = schedule.arrivals(0, 1);
    let year_ns = 31_536_000_000_000_000;
    assert_eq!(arrivals.skip_before(year_ns, u64::MAX), year_ns);
    assert_eq!(arrivals.next(), Some(year_ns));
}
