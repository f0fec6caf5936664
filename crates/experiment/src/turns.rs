//! The order in which levels take turns.

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::RngCore as _;

/// The numbers of `levels` levels over `rounds` rounds. Every round holds each level once, in an
/// order that turns from round to round, so that a steady drift falls on all alike.
pub(crate) fn turns(levels: usize, rounds: usize) -> impl Iterator<Item = usize> {
    (0..rounds).flat_map(move |round| {
        (0..levels).map(move |place| {
            // Forwards and backwards in turn, from another beginning each two rounds.
            let place = if round % 2 == 0 {
                place
            } else {
                levels - 1 - place
            };
            (place + round / 2) % levels
        })
    })
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_drift_falls_on_all_levels_alike() {
        for rounds in [2, 4, 8] {
            let order: Vec<usize> = turns(4, rounds).collect();
            assert_eq!(order.len(), 4 * rounds);
            let mean_place = |level| {
                let places = order
                    .iter()
                    .enumerate()
                    .filter(|(_, given)| **given == level);
                places.map(|(place, _)| place).sum::<usize>() as f64 / rounds as f64
            };
            for level in 0..4 {
                let middle = (order.len() - 1) as f64 / 2.0;
                assert_eq!(mean_place(level), middle, "{level} in {order:?}");
            }
        }
    }

    #[test]
    fn the_order_turns() {
        let order: Vec<usize> = turns(3, 4).collect();
        assert_eq!(order, [0, 1, 2, 2, 1, 0, 1, 2, 0, 0, 2, 1]);
        assert_eq!(turns(0, 4).count(), 0);
    }
}
