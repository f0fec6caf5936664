//! How a total is split over workers.

/// The share of part `index` (from 0) when `total` is split over `parts`: shares add up to the
/// total and differ by one at most.
pub fn share(total: u32, parts: u32, index: u32) -> u32 {
    total / parts + u32::from(index < total % parts)
}

/// The share of part `index` (from 0) when a large `total` is split over `parts`: shares add up to
/// the total and differ by one at most.
pub fn share_u64(total: u64, parts: u32, index: u32) -> u64 {
    let parts = u64::from(parts);
    total / parts + u64::from(u64::from(index) < total % parts)
}

#[cfg(test)]
mod tests {
    use super::{share, share_u64};

    #[test]
    fn shares_add_up_and_differ_by_one_at_most() {
        for total in 0..200 {
            for parts in 1..20 {
                let shares: Vec<u32> = (0..parts).map(|index| share(total, parts, index)).collect();
                assert_eq!(shares.iter().sum::<u32>(), total);
                let large: Vec<u64> = (0..parts)
                    .map(|index| share_u64(total.into(), parts, index))
                    .collect();
                assert!(
                    large.iter().eq(shares
                        .iter()
                        .map(|&it| u64::from(it))
                        .collect::<Vec<_>>()
                        .iter())
                );
                assert!(shares.iter().max().unwrap() - shares.iter().min().unwrap() <= 1);
            }
        }
    }
}
