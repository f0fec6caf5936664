//! Several servers under the same load: rounds that take turns, so that whatever changes on the
//! machine meanwhile falls on all alike.

use brunt_measure::Run;

use crate::turns::turns;

/// Has `measure` make `pairs` rounds of each of so many sides, by their numbers, and gives each run
/// with the number of its side to `taken`. Runs at the same place of all sides were made one after
/// the other, and which side came first changes from place to place.
///
/// # Errors
///
/// A round gave nothing: a part of the pairs is no comparison.
pub fn compare<E>(
    sides: usize,
    pairs: usize,
    measure: &mut dyn FnMut(usize) -> Result<Run, E>,
    taken: &mut dyn FnMut(usize, &Run),
) -> Result<(), E> {
    for side in turns(sides, pairs) {
        taken(side, &measure(side)?);
    }
    Ok(())
}
