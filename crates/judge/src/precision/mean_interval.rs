//! The interval of a mean response time, from how intervals of the window differ.

use brunt_record::Intervals;

use crate::precision::equal_parts;
use crate::statistics::variation::{PARTS_LEAST, half_width_of_sum};

/// The upper end of the 95 % interval of the mean `mean_ns` of response times over time: that of a
/// ratio, the sum of the times over their number. Its intervals say how far their sums are from
/// what their numbers of replies let expect. Absent where too few of them have replies.
pub(crate) fn mean_at_most_ns(intervals: &Intervals, mean_ns: f64) -> Option<f64> {
    let each: Vec<(f64, f64)> = intervals
        .filled()
        .map(|filled| {
            filled.fold((0.0, 0.0), |(count, sum), (ns, more)| {
                (count + more as f64, sum + ns as f64 * more as f64)
            })
        })
        .collect();
    if equal_parts(each.iter().map(|(count, _)| *count)) < PARTS_LEAST as f64 {
        return None;
    }
    let (count, sum) = each
        .iter()
        .fold((0.0, 0.0), |all, one| (all.0 + one.0, all.1 + one.1));
    let ratio = sum / count;
    let deviations: Vec<f64> = each
        .iter()
        .map(|(count, sum)| sum - ratio * count)
        .collect();
    Some(mean_ns + half_width_of_sum(&deviations)? / count)
}
