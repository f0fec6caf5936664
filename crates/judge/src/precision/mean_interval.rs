//! The interval of a mean response time, from how parts of the window differ.

use brunt_record::Intervals;

use crate::statistics::student_t::quantile_975;

/// Parts that the window is divided into, and how many of them must have replies: parts that are
/// long beside what holds a server up vary independently.
const PARTS: usize = 20;
const PARTS_LEAST: usize = 10;

/// The upper end of the 95 % interval of the mean `mean_ns` of response times over time: that of a
/// ratio (the sum of the times over their number) estimated from parts of the window (batch
/// means). Absent where too few of them have replies.
pub(crate) fn mean_at_most_ns(intervals: &Intervals, mean_ns: f64) -> Option<f64> {
    let each: Vec<(f64, f64)> = intervals
        .filled()
        .map(|filled| {
            filled.fold((0.0, 0.0), |(count, sum), (ns, more)| {
                (count + more as f64, sum + ns as f64 * more as f64)
            })
        })
        .collect();
    let length = each.len().div_ceil(PARTS).max(1);
    let parts: Vec<(f64, f64)> = each
        .chunks(length)
        .map(|part| {
            let add = |sum: (f64, f64), one: &(f64, f64)| (sum.0 + one.0, sum.1 + one.1);
            part.iter().fold((0.0, 0.0), add)
        })
        .filter(|(count, _)| *count > 0.0)
        .collect();
    if parts.len() < PARTS_LEAST {
        return None;
    }
    let (count, sum) = parts
        .iter()
        .fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
    let ratio = sum / count;
    let squares: f64 = parts
        .iter()
        .map(|(count, sum)| (sum - ratio * count).powi(2))
        .sum();
    let parts = parts.len() as f64;
    let error_ns = (squares * parts / (parts - 1.0)).sqrt() / count;
    Some(mean_ns + quantile_975(parts as usize - 1) * error_ns)
}
