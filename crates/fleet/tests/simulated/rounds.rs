//! Loads of several rounds, over which the agents stay.

use super::*;

#[test]
fn agents_stay_over_all_rounds_and_their_clocks_are_known_on() {
    for loses_one_in in [0, 10] {
        let mut world = World::new(3);
        world.loses_one_in = loses_one_in;
        let first = world.round().expect("an outcome");
        let first_ns = world.now_ns;
        let exchanges = first.results[0].clocks.expect("known").exchanges;
        for round in 2..=5 {
            world.deal_again();
            let outcome = world.round().expect("an outcome");
            assert_eq!(lengths(&outcome), [WINDOW; 3], "{round}");
            assert_eq!((outcome.lost.len(), world.rounds_begun), (0, round));
            let starts = world
                .machines
                .iter()
                .map(|agent| agent.lived.expect("it measured").0);
            let starts: Vec<u64> = starts.collect();
            for (result, start_ns) in outcome.results.iter().zip(&starts) {
                let clocks = result.clocks.expect("its clock is known");
                assert!(clocks.start_bound_ns <= 5 * MS, "{clocks:?}");
                assert!(clocks.exchanges > exchanges, "{clocks:?}");
                assert!(start_ns.abs_diff(starts[0]) <= 5 * MS, "{starts:?}");
            }
        }
        // Nobody is gathered again, and the start is not as far off as the first one.
        let took_ns = world.now_ns - first_ns;
        let most_ns = 4 * (WINDOW + 4 * SECOND);
        assert!(loses_one_in > 0 || took_ns < most_ns, "{took_ns}");
        world.end();
        for machine in &world.machines {
            assert!(
                matches!(machine.left, None | Some(Ok(()))),
                "{loses_one_in}"
            );
        }
    }
}

#[test]
fn an_agent_that_dies_in_a_later_round_leaves_the_earlier_ones_whole() {
    // While it is set up, and in the window.
    for stage in [Stage::SettingUp, Stage::Loading] {
        let mut world = World::new(3);
        let first = world.round().expect("an outcome");
        assert_eq!(lengths(&first), [WINDOW; 3]);
        world.deal_again();
        world.until_within(stage);
        world.kill(1);
        let killed_ns = world.now_ns;
        match (stage, world.outcome()) {
            (Stage::SettingUp, Err(FleetError::Lost { name, .. })) => assert_eq!(name, "machine-1"),
            (Stage::Loading, Ok(outcome)) => {
                assert_eq!(outcome.results.len(), 2);
                assert_eq!(outcome.lost[0].name, "machine-1");
            }
            (_, outcome) => panic!("{stage:?}: {outcome:?}"),
        }
        assert!(world.now_ns - killed_ns < 15 * SECOND, "{stage:?}");
        for survivor in [0, 2] {
            let machine = &world.machines[survivor];
            assert!(machine.was_aborted || machine.has_ended, "{stage:?}");
        }
    }
}

#[test]
fn an_agent_that_dies_between_rounds_is_missed_in_the_next_one() {
    let mut world = World::new(2);
    world.round().expect("an outcome");
    world.kill(0);
    let killed_ns = world.now_ns;
    world.deal_again();
    let error = world.outcome().expect_err("it is not there");
    assert!(matches!(error, FleetError::Lost { name, .. } if name == "machine-0"));
    assert!(world.now_ns - killed_ns < 12 * SECOND);
    let machine = &world.machines[1];
    assert!(
        machine.was_aborted && machine.left.is_some(),
        "{:?}",
        machine.left
    );
}

#[test]
fn an_agent_that_gives_up_between_rounds_is_quoted() {
    let mut world = World::new(2);
    world.round().expect("an outcome");
    world.machines[0].agent.failed("interrupted by a signal");
    world.deal_again();
    let error = world.outcome().expect_err("it does no more");
    let (name, reason) = ("machine-0".to_owned(), "interrupted by a signal".to_owned());
    assert_eq!(error, FleetError::Agent { name, reason });
}

#[test]
fn agents_between_rounds_end_by_themselves_when_the_coordinator_is_gone() {
    let mut world = World::new(2);
    world.round().expect("an outcome");
    world.coordinator = None;
    let gone_ns = world.now_ns;
    world.until(|world| world.machines.iter().all(|machine| machine.left.is_some()));
    assert!(world.now_ns - gone_ns < 11 * SECOND);
}

#[test]
fn a_later_round_may_be_interrupted() {
    let mut world = World::new(2);
    world.round().expect("an outcome");
    world.deal_again();
    world.until_measuring();
    world.interrupt(true);
    let outcome = world.outcome().expect("an outcome");
    assert!(outcome.was_interrupted);
    assert!(lengths(&outcome)[0] < SECOND, "{:?}", lengths(&outcome));
}
