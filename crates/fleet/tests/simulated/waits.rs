//! What nobody waits for: agents that never end, and starts that are far off.

use brunt_fleet::Start;

use super::*;

/// An agent that answers and never ends: the load is interrupted at `at_ns` of the window, and
/// again after `again_ns`. Gives the outcome, and how long it took from the last signal on.
fn interrupted(at_ns: u64, again_ns: Option<u64>) -> (Result<Outcome, FleetError>, u64) {
    let mut world = World::new(1);
    world.machines[0].window_most_ns = u64::MAX;
    world.machines[0].is_deaf = true;
    world.until_measuring();
    let mut interrupt = |after_ns: u64, is_hurried: bool| {
        let until_ns = world.now_ns + after_ns;
        world.until(|world| world.now_ns >= until_ns);
        world.interrupt(is_hurried);
    };
    interrupt(at_ns, false);
    if let Some(again_ns) = again_ns {
        interrupt(again_ns, true);
    }
    let signal_ns = world.now_ns;
    let outcome = world.round();
    (outcome, world.now_ns - signal_ns)
}

#[test]
fn a_signal_ends_the_wait_for_an_agent_that_never_ends() {
    for (at_ns, again_ns, most_ns) in [
        // After the window: it is over at once. In it: agents may drain for a second.
        (WINDOW + SECOND, None, SECOND),
        (SECOND, None, 5 * SECOND / 2),
        (SECOND, Some(100 * MS), SECOND),
    ] {
        let (outcome, took_ns) = interrupted(at_ns, again_ns);
        assert_eq!(outcome, Err(FleetError::Interrupted), "{at_ns}");
        assert!(took_ns <= most_ns, "{at_ns} {again_ns:?}: {took_ns}");
    }
}

#[test]
fn a_start_that_is_far_off_is_not_waited_for() {
    for (load_ns, expected) in [
        (
            60 * SECOND,
            AgentEvent::Start {
                load_ns: 60 * SECOND,
            },
        ),
        (
            2_400 * SECOND,
            AgentEvent::Leave(Err(AgentError::FarStart(2_400))),
        ),
    ] {
        let mut agent = east();
        let start = ToAgent::Start(Start { round: 0, load_ns });
        agent.receive(0, &SessionId::fresh(), start);
        assert_eq!(agent.event(), Some(expected));
    }
}
