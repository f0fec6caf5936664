//! Target: what people type: URLs, durations, counts, link speeds, rates, stages.

use brunt_load::{ArrivalProcess, Schedule, Target, units};

/// How many arrivals of an accepted schedule are looked at.
const ARRIVALS: usize = 20;

/// Takes the input as a URL, a duration, a count, a link speed, a rate and stages. A rate or stages
/// that are accepted give a schedule, whose arrivals are in order and within it. A URL that is
/// accepted gives a request target and a host without blanks or control characters, and reads the
/// same again.
pub fn typed_text(data: &[u8]) {
    let typed = String::from_utf8_lossy(data);
    // Any answer will do, as long as it is one.
    let _ = units::duration_ns(&typed);
    let _ = units::count(&typed);
    let _ = units::link_bits_per_s(&typed);
    for &process in ArrivalProcess::ALL {
        if let Ok(rate_per_s) = units::rate(&typed) {
            let schedule = Schedule::constant_rate(process, rate_per_s, 1);
            check(&schedule.expect("a rate that was accepted"));
        }
        if let Ok(stages) = units::stages(&typed) {
            let schedule = Schedule::staged(process, stages, 1);
            check(&schedule.expect("stages that were accepted"));
        }
    }
    let Ok(target) = Target::parse(&typed, None) else {
        return;
    };
    for part in [&target.path, &target.authority, &target.host] {
        let clean = |byte: u8| byte.is_ascii_graphic();
        assert!(part.bytes().all(clean), "{part:?} of {typed:?}");
    }
    assert!(target.path.starts_with('/'));
    assert_eq!(Target::parse(&target.url, None), Ok(target));
}

fn check(schedule: &Schedule) {
    let end_ns = schedule.duration_ns().unwrap_or(u64::MAX);
    let expected = schedule.expected(0, end_ns);
    assert!(expected.is_finite() && expected >= 0.0, "{schedule:?}");
    let mut last_ns = 0;
    for offset_ns in schedule.arrivals(1, 3).take(ARRIVALS) {
        assert!(last_ns <= offset_ns && offset_ns < end_ns, "{schedule:?}");
        last_ns = offset_ns;
    }
}
