//! Several servers under the same load: rounds that take turns, so that whatever changes on the
//! machine meanwhile falls on all alike.

use brunt_engine::{Rounds, RunError, RunObserver};
use brunt_load::Round;
use brunt_measure::Run;

use crate::turns::turns;

/// Measures `pairs` rounds of each side, and gives each run with the number of its side to `taken`.
/// Runs at the same place of all sides were made one after the other, and which side came first
/// changes from place to place.
///
/// # Errors
///
/// A round gave nothing: a part of the pairs is no comparison.
pub fn compare(
    sides: &mut [&mut dyn Rounds],
    round: &Round,
    pairs: usize,
    observer: &mut dyn RunObserver,
    taken: &mut dyn FnMut(usize, &Run),
) -> Result<(), RunError> {
    for side in turns(sides.len(), pairs) {
        taken(side, &sides[side].round(round, observer)?);
    }
    Ok(())
}
