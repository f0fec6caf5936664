//! Buckets of equal relative width: `2^bits` per doubling, as HdrHistogram has them.

/// The bucket that holds `value`. Values below `2^(bits + 1)` have one each.
#[inline]
pub(crate) fn index(value: u64, bits: u32) -> usize {
    let octave = value.checked_ilog2().unwrap_or(0);
    match octave.checked_sub(bits) {
        Some(shift) => ((shift as usize) << bits) + (value >> shift) as usize,
        None => value as usize,
    }
}

/// The smallest value of a bucket; the largest there is for buckets that do not exist.
pub(crate) fn lowest(index: usize, bits: u32) -> u64 {
    let Some(shift) = (index >> bits).checked_sub(1) else {
        return index as u64;
    };
    let within = (index & ((1 << bits) - 1)) as u64 | 1 << bits;
    if shift > (u64::BITS - 1 - bits) as usize {
        return u64::MAX;
    }
    within << shift
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn small_values_are_exact_and_the_largest_has_a_bucket() {
        for bits in [4, 7] {
            for value in 0..2 << bits {
                assert_eq!(index(value, bits), value as usize);
                assert_eq!(lowest(value as usize, bits), value);
            }
            let last = index(u64::MAX, bits);
            assert!(lowest(last, bits) < u64::MAX);
            assert_eq!(lowest(last + 1, bits), u64::MAX);
            assert_eq!(lowest(usize::MAX, bits), u64::MAX);
        }
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_values(value in any::<u64>(), bits in 1_u32..10) {
            let place = index(value, bits);
            let from = lowest(place, bits);
            prop_assert!(from <= value);
            prop_assert!(value <= lowest(place + 1, bits));
            prop_assert_eq!(index(from, bits), place);
            // Its width is at most a `2^bits`-th of its start.
            prop_assert!(value - from <= from >> bits);
        }
    }
}
