//! Several servers under the same load: rounds that take turns, so that whatever changes on the
//! machine meanwhile falls on all alike.

use brunt_engine::{Rounds, RunError, RunObserver};
use brunt_load::Round;
use brunt_measure::Run;

use crate::turns::turns;

/// Measures `pairs` rounds of each side. Gives the runs of each side in the order in which they
/// were made: those at the same place were made one after the other, and which side came first
/// changes from place to place.
///
/// # Errors
///
/// A round gave nothing. What was measured before is lost: a part of the pairs is no comparison.
pub fn compare(
    sides: &mut [&mut dyn Rounds],
    round: &Round,
    pairs: usize,
    observer: &mut dyn RunObserver,
) -> Result<Vec<Vec<Run>>, RunError> {
    let mut runs: Vec<Vec<Run>> = sides.iter().map(|_| Vec::with_capacity(pairs)).collect();
    for side in turns(sides.len(), pairs) {
        runs[side].push(sides[side].round(round, observer)?);
    }
    Ok(runs)
}
