//! Weights: in which turns requests are sent of which some are to be sent more often than others.

use std::sync::Arc;

/// The order of one round, in which each request has as many turns as its weight says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Turns(Arc<[u32]>);

impl Turns {
    /// Most turns of a round.
    pub(super) const MAX: u64 = 1 << 20;

    /// The round of requests with these weights, each at least 1: the turns of each are as far
    /// apart as they can be. Absent where there would be more than [`Turns::MAX`], whatever the
    /// weights have in common.
    pub(super) fn of(weights: &[u32]) -> Option<Self> {
        let common = weights.iter().copied().reduce(divisor).unwrap_or(1).max(1);
        let shares = weights.iter().map(|&weight| u64::from(weight / common));
        let all: u64 = shares.clone().sum();
        if all > Self::MAX {
            return None;
        }
        // The turns of a request stand in the middles of as many equal parts of the round.
        let mut turns: Vec<(u64, u32)> = Vec::with_capacity(all as usize);
        for (request, share) in shares.enumerate() {
            let middle = |turn: u64| (((2 * turn + 1) as u128) << 40) / u128::from(2 * share);
            turns.extend((0..share).map(|turn| (middle(turn) as u64, request as u32)));
        }
        turns.sort_unstable();
        Some(Self(
            turns.into_iter().map(|(_, request)| request).collect(),
        ))
    }

    /// How many turns a round has.
    pub(super) fn count(&self) -> u32 {
        self.0.len() as u32
    }

    /// Bytes that it takes in memory, at most: while it is made, each turn has its place, too.
    pub(super) fn held_bytes(&self) -> usize {
        self.0.len() * (size_of::<u32>() + size_of::<(u64, u32)>())
    }

    /// The request whose turn it is.
    #[inline]
    pub(super) fn request(&self, turn: u32) -> u32 {
        self.0[turn as usize]
    }
}

/// The greatest common divisor.
fn divisor(mut one: u32, mut other: u32) -> u32 {
    while other > 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(weights: &[u32]) -> Vec<u32> {
        let turns = Turns::of(weights).expect("few");
        (0..turns.count()).map(|turn| turns.request(turn)).collect()
    }

    #[test]
    fn turns_are_exact_and_far_apart() {
        assert_eq!(turns(&[1, 1, 1]), [0, 1, 2]);
        assert_eq!(turns(&[7]), [0]);
        assert_eq!(turns(&[5, 1, 1]), [0, 0, 0, 1, 2, 0, 0]);
        assert_eq!(turns(&[3, 1]), [0, 0, 1, 0]);
        assert_eq!(turns(&[200, 100]), [0, 1, 0]);
        for weights in [&[9, 3, 1][..], &[1, 1_000, 7], &[2, 2, 5, 11]] {
            let turns = turns(weights);
            let all: u32 = weights.iter().sum();
            assert_eq!(turns.len(), all as usize);
            for (request, &weight) in weights.iter().enumerate() {
                // Of any beginning of the round each has its share, but for one turn.
                let mut had = 0_u32;
                for (at, &turn) in (1_u32..).zip(&turns) {
                    had += u32::from(turn as usize == request);
                    let due = f64::from(at) * f64::from(weight) / f64::from(all);
                    assert!(
                        (f64::from(had) - due).abs() <= 1.0 + 1e-9,
                        "{weights:?} {request} {at}"
                    );
                }
                assert_eq!(had, weight);
            }
        }
    }

    #[test]
    fn rounds_are_bounded() {
        assert!(Turns::of(&[u32::MAX, 1]).is_none());
        assert_eq!(turns(&[u32::MAX, u32::MAX]), [0, 1]);
        let most = Turns::MAX as u32;
        assert_eq!(
            Turns::of(&[most - 1, 1])
                .expect("as many as can be")
                .count(),
            most
        );
        assert!(Turns::of(&[most, 1]).is_none());
    }
}
