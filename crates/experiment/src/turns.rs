//! The order in which levels take turns.

/// The numbers of `levels` levels over `rounds` rounds. Every round holds each level once, in an
/// order that turns from round to round, so that a steady drift falls on all alike.
pub fn turns(levels: usize, rounds: usize) -> impl Iterator<Item = usize> {
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
