//! Loads by count: the window ends with the last reply of the agent that takes longest.

use super::*;

const COUNTED: Timing = Timing {
    window_ns: None,
    is_counted: true,
    ..TIMING
};

/// Agents whose shares of a count take so long.
fn counted(timing: Timing, shares_ns: &[u64]) -> World {
    let mut world = World::with(shares_ns.len() as u32, timing);
    for (machine, &share_ns) in world.machines.iter_mut().zip(shares_ns) {
        machine.share_ns = Some(share_ns);
    }
    world
}

#[test]
fn a_load_by_count_lasts_until_the_last_one_is_done() {
    for loses_one_in in [0, 4, 10] {
        let shares_ns = [3 * SECOND, 41 * SECOND + 7, SECOND, 0];
        let mut world = counted(COUNTED, &shares_ns);
        world.loses_one_in = loses_one_in;
        let outcome = world.outcome().expect("an outcome");
        let window_ns = 41 * SECOND + 7;
        assert_eq!(lengths(&outcome), [window_ns; 4], "{loses_one_in}");
        assert_eq!(outcome.lost, []);
        assert!(!outcome.was_interrupted);
        for result in &outcome.results {
            let clocks = result.clocks.expect("its clock is known");
            // Exchanges go on while the others are waited for.
            assert!(clocks.end_bound_ns < 20 * MS, "{clocks:?}");
        }
    }
}

#[test]
fn a_load_by_count_may_have_a_longest_window_too() {
    for (shares_ns, window_ns) in [
        ([SECOND, 9 * SECOND], WINDOW),
        ([SECOND, 2 * SECOND], 2 * SECOND),
    ] {
        let timing = Timing {
            window_ns: Some(WINDOW),
            ..COUNTED
        };
        let outcome = counted(timing, &shares_ns).outcome().expect("an outcome");
        assert_eq!(lengths(&outcome), [window_ns; 2]);
    }
}

#[test]
fn one_that_dies_before_its_share_is_done_is_not_waited_for() {
    // The others are done long before, or are not.
    for (other_ns, is_done) in [(2 * SECOND, true), (80 * SECOND, false)] {
        let mut world = counted(COUNTED, &[SECOND, other_ns, 90 * SECOND]);
        world.until_measuring();
        let began_ns = world.now_ns;
        world.until(|world| world.now_ns > began_ns + 50 * SECOND);
        world.kill(2);
        let outcome = world.outcome().expect("an outcome");
        let lengths = lengths(&outcome);
        assert_eq!(lengths.len(), 2);
        assert!(lengths.iter().all(|&ns| ns == lengths[0]), "{lengths:?}");
        if is_done {
            assert_eq!(lengths[0], other_ns)
        } else {
            assert!((50 * SECOND..60 * SECOND).contains(&lengths[0]))
        }
        let lost: Vec<&str> = outcome
            .lost
            .iter()
            .map(|agent| agent.name.as_str())
            .collect();
        assert_eq!(lost, ["machine-2"]);
    }
}

#[test]
fn a_load_by_count_may_be_interrupted() {
    let mut world = counted(COUNTED, &[SECOND, 50 * SECOND]);
    world.until_measuring();
    let began_ns = world.now_ns;
    world.until(|world| world.now_ns > began_ns + 10 * SECOND);
    world.interrupt(false);
    let outcome = world.outcome().expect("an outcome");
    assert!(outcome.was_interrupted);
    let lengths = lengths(&outcome);
    assert_eq!(lengths[0], lengths[1]);
    assert!(
        (10 * SECOND..12 * SECOND).contains(&lengths[0]),
        "{lengths:?}"
    );
}
