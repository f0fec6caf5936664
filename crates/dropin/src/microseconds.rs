//! Durations in whole microseconds, as other tools keep them.

use brunt_record::Histogram;

/// Durations in whole microseconds, in order, with their counts: the longest exactly, the others to
/// a thousandth.
pub(crate) fn in_us(durations: &Histogram) -> Vec<(u64, u64)> {
    let (Some(least_ns), Some(most_ns)) = (durations.min_ns(), durations.max_ns()) else {
        return Vec::new();
    };
    let buckets = durations.buckets();
    let mut counts: Vec<(u64, u64)> = buckets
        .iter_recorded()
        .map(|bucket| {
            let ns = buckets.median_equivalent(bucket.value_iterated_to());
            (ns.clamp(least_ns, most_ns) / 1_000, bucket.count_at_value())
        })
        .collect();
    if let Some((_, count)) = counts.last_mut() {
        *count -= 1;
    }
    counts.push((most_ns / 1_000, 1));
    counts
}
