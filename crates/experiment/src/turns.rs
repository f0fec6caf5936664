//! The order in which levels take turns.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::RngCore as _;

/// Rounds that each hold every level once, in an order that chance alone decides: the same for the
/// same seed. Whatever comes and goes, at whatever period, then falls on each level by chance.
pub fn shuffled(levels: usize, seed: u64) -> impl Iterator<Item = Vec<usize>> {
    let mut source = Pcg64Mcg::new(seed.into());
    std::iter::repeat_with(move || {
        let mut places: Vec<usize> = (0..levels).collect();
        // Fisher and Yates; the bias of the remainder is one in 2^50.
        for last in (1..places.len()).rev() {
            let other = source.next_u64() % (last as u64 + 1);
            places.swap(last, other as usize);
        }
        places
    })
}
