//! Several coordinators that name one job.

use super::*;

#[test]
fn an_agent_serves_one_of_two_coordinators_of_its_job_and_the_other_knows() {
    let settings = Settings {
        agents: 1,
        version: version(),
        gather_limit_ns: 5 * SECOND,
        chunk_bytes: 100,
    };
    let (id, mut agent) = (AgentId::fresh(), east());
    let mut coordinators = [0, 1].map(|_| Coordinator::new(settings.clone(), 0));
    let mut plans = Vec::new();
    for now_ns in (0..6 * SECOND).step_by(STEP as usize) {
        agent.look(now_ns);
        while let Some(message) = agent.outgoing() {
            for coordinator in &mut coordinators {
                coordinator.receive(now_ns, &id, agent.session(), message.clone());
            }
        }
        for (coordinator, round) in coordinators.iter_mut().zip(1..) {
            coordinator.look(now_ns);
            let part = Part::new(0, NonZeroU32::MIN);
            coordinator.begin_round(now_ns, plan(round), &[part], TIMING);
            while let Some((_, message)) = coordinator.outgoing() {
                agent.receive(now_ns, coordinator.session(), message);
            }
        }
        while let Some(event) = agent.event() {
            match event {
                AgentEvent::Plan { bytes, .. } => plans.push(bytes),
                other => panic!("{other:?}"),
            }
        }
    }
    assert_eq!(plans, [plan(1)]);
    let [first, other] = &mut coordinators;
    assert_eq!(first.stage(), Stage::SettingUp);
    let error = other.outcome().expect_err("it has none").to_string();
    assert!(error.contains("0 of 1 agents"), "{error}");
    let words = "east serves another coordinator of the same job";
    assert!(error.contains(words), "{error}");
}

#[test]
fn a_result_of_another_session_or_round_is_none() {
    let chunk = brunt_fleet::Chunks::new(b"0".to_vec(), 9).chunk(0);
    let chunk = chunk.expect("a chunk");
    let mut world = World::new(2);
    world.until_measuring();
    let (id, own_ns) = (world.machines[1].id.clone(), world.now_ns + world.ahead_ns);
    let coordinator = world.coordinator.as_mut().expect("it is there");
    let session = coordinator.session().clone();
    for (session, round) in [
        (None, 1),
        (Some(&session), 2),
        (Some(&SessionId::fresh()), 1),
    ] {
        let chunk = chunk.clone();
        coordinator.receive(own_ns, &id, session, FromAgent::Result { round, chunk });
    }
    let outcome = world.outcome().expect("an outcome");
    assert_eq!(outcome.results.len(), 1);
    let words = "serves another coordinator of the same job";
    assert_eq!(outcome.lost[0].reason, words);
}
