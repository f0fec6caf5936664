//! The course of an experiment: one round after the other, each by what those before it showed.

use brunt_judge::SweepAxis;
use brunt_load::Plan;
use brunt_record::Run;

/// A round that is to be made.
#[derive(Clone, Debug)]
pub struct NextRound {
    /// The server that it loads, by its place: 0 where there is one.
    pub side: usize,
    /// The load.
    pub plan: Plan,
    /// What is varied in a sweep, and its value; absent in its warm-up.
    pub value: Option<(SweepAxis, f64)>,
    /// How long this round takes and those behind it, as it looks now, nanoseconds.
    pub left_ns: u64,
}

/// Which round of an experiment is next, and what its rounds show.
pub trait ExperimentCourse {
    /// The next round, so long after the experiment began; absent where nothing is left to be
    /// measured.
    fn next(&mut self, elapsed_ns: u64) -> Option<NextRound>;

    /// Takes what was measured of `side` in the round that was next.
    fn take(&mut self, side: usize, run: Run);
}

/// Has `make` make one round after the other, until nothing is left to be measured. `elapsed_ns` is
/// how long ago the experiment began.
///
/// # Errors
///
/// A round gave nothing: the course has those before it.
pub fn make_rounds<E>(
    course: &mut dyn ExperimentCourse,
    elapsed_ns: &dyn Fn() -> u64,
    make: &mut dyn FnMut(NextRound) -> Result<Run, E>,
) -> Result<(), E> {
    while let Some(round) = course.next(elapsed_ns()) {
        let side = round.side;
        course.take(side, make(round)?);
    }
    Ok(())
}
