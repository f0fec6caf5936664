//! Several servers under the same load: rounds that take turns, so that whatever changes on the
//! machine meanwhile falls on all alike.

use brunt_judge::{ComparedRounds, Course, Judged, RoundRecord};
use brunt_record::{Run, ServerDescription};

use crate::turns::shuffled;

/// Has `measure` make rounds of the sides of `found`, by their numbers, until `pairs` pairs count
/// or no more are worth making, and adds each to them. `measure` also gets the number of pairs that
/// is expected by now. No further pair is begun where `may_go_on` says no. Rounds at the same place
/// of all sides are made one after the other, in an order that `seed` decides anew for each place:
/// so the signs of the differences are chance where there is none, whatever the machine does
/// meanwhile, and that is what their test assumes.
///
/// # Errors
///
/// A round gave nothing: what `found` has are the complete pairs before it.
pub fn compare<E>(
    found: &mut ComparedRounds,
    pairs: usize,
    seed: u64,
    may_go_on: &dyn Fn() -> bool,
    measure: &mut dyn FnMut(usize, usize) -> Result<Run, E>,
) -> Result<Course, E> {
    let sides = found.sides.len();
    let mut order = shuffled(sides, seed);
    loop {
        let until = match found.course(pairs) {
            Course::Until(until) if may_go_on() => until,
            Course::Until(_) => return Ok(Course::Done),
            ended => return Ok(ended),
        };
        let complete = found.pairs();
        for side in order.next().unwrap_or_default() {
            let run = match measure(side, until) {
                Ok(run) => run,
                Err(error) => {
                    for side in &mut found.sides {
                        side.rounds.truncate(complete);
                    }
                    return Err(error);
                }
            };
            if side == 0 {
                found.environment.add(&run);
                found.load.get_or_insert_with(|| run.plan.clone());
            }
            let of_side = &mut found.sides[side];
            of_side.server = ServerDescription::of(&run);
            of_side.rounds.push(RoundRecord::of(&Judged::of(&run)));
        }
    }
}
