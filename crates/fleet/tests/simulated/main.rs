//! Coordinator and agents in virtual time: whatever dies, goes silent, is lost or comes late, in
//! each phase.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use brunt_fleet::{
    Agent, AgentError, AgentEvent, AgentId, Coordinator, Counts, FleetError, FromAgent, Hello,
    Outcome, Phase, SessionId, Settings, Stage, Timing, ToAgent, Version,
};
use brunt_load::Part;

mod counts;
mod rounds;
mod sessions;
mod waits;

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// The step of virtual time.
const STEP: u64 = MS / 2;
/// No test takes longer.
const END: u64 = 120 * SECOND;

const WINDOW: u64 = 4 * SECOND;

const TIMING: Timing = Timing {
    warmup_ns: SECOND,
    window_ns: Some(WINDOW),
    is_counted: false,
    drain_ns: 2 * SECOND,
};

fn version() -> Version {
    Version {
        protocol: Version::PROTOCOL,
        format: 4,
        brunt: "1.2.3".to_owned(),
    }
}

/// An agent by itself.
fn east() -> Agent {
    let hello = Hello {
        version: version(),
        name: "east".to_owned(),
        usable_cpus: 1,
    };
    Agent::new(hello, None, 0)
}

/// The plan of a round.
fn plan(round: u32) -> Vec<u8> {
    vec![round as u8; 1_050]
}

/// What an agent's engine would do, and what is done to it.
struct Machine {
    id: AgentId,
    agent: Agent,
    /// Its clock is ahead of that of the world by so much.
    ahead_ns: u64,
    /// Time that its messages take, there and back.
    way_ns: (u64, u64),
    /// It does nothing between these instants of the world.
    is_frozen: Option<(u64, u64)>,
    ready_ns: Option<u64>,
    load_ns: Option<u64>,
    /// Plans that came.
    round: u32,
    /// How long the window of a round is, and now, at most.
    window_most_ns: u64,
    window_ns: u64,
    /// How long its share of a count takes.
    share_ns: Option<u64>,
    /// It does not end, whatever is said.
    is_deaf: bool,
    /// Whether the end of the window was said.
    knows_end: bool,
    /// When its window began and how long it was, in the time of the world.
    lived: Option<(u64, u64)>,
    is_measuring: bool,
    has_ended: bool,
    left: Option<Result<(), AgentError>>,
    /// It was told to stop without a result.
    was_aborted: bool,
}

struct World {
    now_ns: u64,
    /// The coordinator's clock is ahead of the world's by so much.
    ahead_ns: u64,
    coordinator: Option<Coordinator>,
    /// Rounds that began, and the stage in which the next one is.
    rounds_begun: u32,
    deals_in: Stage,
    machines: Vec<Machine>,
    to_agents: BTreeMap<(u64, u64), (AgentId, Vec<u8>)>,
    to_coordinator: BTreeMap<(u64, u64), (AgentId, Vec<u8>)>,
    sequence: u64,
    /// Nothing gets through between these instants.
    broker_is_down: (u64, u64),
    /// One message in so many is lost, at random; 0: none.
    loses_one_in: u64,
    seed: u64,
    timing: Timing,
    result_bytes: usize,
}

impl World {
    fn new(agents: u32) -> Self {
        Self::with(agents, TIMING)
    }

    fn with(agents: u32, timing: Timing) -> Self {
        let settings = Settings {
            agents,
            version: version(),
            gather_limit_ns: 20 * SECOND,
            chunk_bytes: 100,
        };
        let ahead_ns = 77 * SECOND;
        let mut world = Self {
            now_ns: 0,
            ahead_ns,
            coordinator: Some(Coordinator::new(settings, ahead_ns)),
            rounds_begun: 0,
            deals_in: Stage::Gathered,
            machines: Vec::new(),
            to_agents: BTreeMap::new(),
            to_coordinator: BTreeMap::new(),
            sequence: 0,
            broker_is_down: (u64::MAX, u64::MAX),
            loses_one_in: 0,
            seed: 0x9e37_79b9_7f4a_7c15,
            timing,
            result_bytes: 1_000,
        };
        for number in 0..agents {
            world.add(&format!("machine-{number}"), version());
        }
        world
    }

    fn add(&mut self, name: &str, version: Version) {
        let number = self.machines.len() as u64;
        let ahead_ns = [3_600 * SECOND, 0, 13, 50 * SECOND][number as usize % 4];
        let hello = Hello {
            version,
            name: name.to_owned(),
            usable_cpus: 2,
        };
        self.machines.push(Machine {
            id: AgentId::fresh(),
            agent: Agent::new(hello, Some(30 * SECOND), self.now_ns + ahead_ns),
            ahead_ns,
            way_ns: (MS + number * MS, MS),
            is_frozen: None,
            ready_ns: None,
            load_ns: None,
            round: 0,
            window_most_ns: self.timing.window_ns.unwrap_or(u64::MAX),
            window_ns: self.timing.window_ns.unwrap_or(u64::MAX),
            share_ns: None,
            is_deaf: false,
            knows_end: false,
            lived: None,
            is_measuring: false,
            has_ended: false,
            left: None,
            was_aborted: false,
        });
    }

    /// Kills an agent for good.
    fn kill(&mut self, number: usize) {
        self.machines[number].is_frozen = Some((self.now_ns, u64::MAX));
    }

    fn freeze(&mut self, number: usize, for_ns: u64) {
        self.machines[number].is_frozen = Some((self.now_ns, self.now_ns + for_ns));
    }

    /// Goes on until `is_wanted`.
    fn until(&mut self, is_wanted: impl Fn(&Self) -> bool) {
        while !is_wanted(self) {
            assert!(self.now_ns < END, "it takes too long");
            self.step();
        }
    }

    fn until_stage(&mut self, stage: Stage) {
        self.until(|world| world.stage() == Some(stage));
    }

    fn until_measuring(&mut self) {
        self.until(|world| world.machines.iter().all(|machine| machine.is_measuring));
    }

    /// Until a stage; of the load, until all measure.
    fn until_within(&mut self, stage: Stage) {
        self.until_stage(stage);
        if stage == Stage::Loading {
            self.until_measuring();
        }
    }

    fn interrupt(&mut self, is_hurried: bool) {
        let own_ns = self.now_ns + self.ahead_ns;
        let coordinator = self.coordinator.as_mut().expect("it is there");
        coordinator.interrupt(own_ns, is_hurried);
    }

    fn stage(&self) -> Option<Stage> {
        self.coordinator.as_ref().map(Coordinator::stage)
    }

    fn step(&mut self) {
        self.now_ns += STEP;
        let now_ns = self.now_ns;
        self.step_coordinator();
        for at in 0..self.machines.len() {
            let machine = &mut self.machines[at];
            let is_frozen = machine
                .is_frozen
                .is_some_and(|(from, to)| (from..to).contains(&now_ns));
            if is_frozen || machine.left.is_some() {
                continue;
            }
            let id = machine.id.clone();
            let due: Vec<(u64, u64)> = self
                .to_agents
                .range(..(now_ns, 0))
                .filter(|(_, (to, _))| *to == id)
                .map(|(&key, _)| key)
                .collect();
            for key in due {
                if let Some((_, message)) = self.to_agents.remove(&key) {
                    self.machines[at].receive(now_ns, &message);
                }
            }
            self.machines[at].work(now_ns, self.result_bytes);
            let way_ns = self.machines[at].way_ns.1;
            while let Some(message) = self.machines[at].agent.outgoing() {
                if let Some(key) = self.way(way_ns) {
                    let bytes = message.encode(self.machines[at].agent.session());
                    self.to_coordinator.insert(key, (id.clone(), bytes));
                }
            }
        }
    }

    fn step_coordinator(&mut self) {
        let now_ns = self.now_ns;
        let own_ns = now_ns + self.ahead_ns;
        let Some(mut coordinator) = self.coordinator.take() else {
            return;
        };
        while let Some(entry) = self.to_coordinator.first_entry()
            && entry.key().0 <= now_ns
        {
            let (from, message) = entry.remove();
            let (session, message) = FromAgent::decode(&message).expect("a message");
            coordinator.receive(own_ns, &from, session.as_ref(), message);
        }
        coordinator.look(own_ns);
        if coordinator.stage() == self.deals_in {
            self.rounds_begun += 1;
            self.deals_in = Stage::Gathered;
            let parts: Vec<Part> = (0..self.machines.len() as u32)
                .map(|number| Part::new(number, NonZeroU32::MIN))
                .collect();
            coordinator.begin_round(own_ns, plan(self.rounds_begun), &parts, self.timing);
        }
        while let Some((to, message)) = coordinator.outgoing() {
            let machine = self.machines.iter().find(|machine| machine.id == to);
            let way_ns = machine.map_or(0, |machine| machine.way_ns.0);
            if let Some(key) = self.way(way_ns) {
                let bytes = message.encode(coordinator.session());
                self.to_agents.insert(key, (to, bytes));
            }
        }
        self.coordinator = Some(coordinator);
    }

    /// When a message comes that is sent now; absent where it is lost.
    fn way(&mut self, way_ns: u64) -> Option<(u64, u64)> {
        self.sequence += 1;
        let (down_ns, up_ns) = self.broker_is_down;
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        let is_lost = self.loses_one_in > 0 && self.seed.is_multiple_of(self.loses_one_in);
        let is_down = (down_ns..up_ns).contains(&self.now_ns);
        (!is_lost && !is_down).then_some((self.now_ns + way_ns, self.sequence))
    }

    /// Goes on to the end of the round, and gives its outcome.
    fn round(&mut self) -> Result<Outcome, FleetError> {
        self.until(|world| matches!(world.stage(), Some(Stage::Collected | Stage::Over)));
        self.coordinator.as_mut().expect("it is there").outcome()
    }

    /// Goes on to the end of the round, which is the last, and gives its outcome.
    fn outcome(&mut self) -> Result<Outcome, FleetError> {
        let outcome = self.round();
        self.end();
        outcome
    }

    /// Lets the agents go.
    fn end(&mut self) {
        self.coordinator.as_mut().expect("it is there").end();
        // The last messages arrive.
        for _ in 0..(100 * MS / STEP) {
            self.step();
        }
    }

    /// Deals another round.
    fn deal_again(&mut self) {
        self.deals_in = Stage::Collected;
        for machine in &mut self.machines {
            machine.is_measuring = false;
        }
        let rounds_begun = self.rounds_begun;
        self.until(|world| world.rounds_begun > rounds_begun);
    }
}

impl Machine {
    fn receive(&mut self, now_ns: u64, message: &[u8]) {
        let (session, message) = ToAgent::decode(message).expect("a message");
        self.agent
            .receive(now_ns + self.ahead_ns, &session, message);
    }

    fn was_refused(&self) -> bool {
        matches!(self.left, Some(Err(AgentError::Refused(_))))
    }

    /// What the engine does.
    fn work(&mut self, now_ns: u64, result_bytes: usize) {
        let own_ns = now_ns + self.ahead_ns;
        self.agent.look(own_ns);
        while let Some(event) = self.agent.event() {
            match event {
                AgentEvent::Plan { bytes, .. } => {
                    self.round += 1;
                    assert_eq!(bytes, plan(self.round));
                    self.ready_ns = Some(own_ns + 300 * MS);
                    self.load_ns = None;
                    self.window_ns = self.window_most_ns;
                    self.knows_end = false;
                    self.is_measuring = false;
                    self.has_ended = false;
                }
                AgentEvent::Start { load_ns } => self.load_ns = Some(load_ns),
                AgentEvent::Stop(_) if self.is_deaf => {}
                AgentEvent::Stop(stop) => match stop.window_ns {
                    Some(window_ns) => {
                        self.window_ns = self.window_ns.min(window_ns);
                        self.knows_end = true;
                    }
                    None => {
                        self.was_aborted = true;
                        self.agent.failed("stopped");
                        self.ready_ns = None;
                    }
                },
                AgentEvent::Leave(outcome) => self.left = Some(outcome),
            }
        }
        let Some(ready_ns) = self.ready_ns else {
            return;
        };
        let Some(load_ns) = self.load_ns else {
            if own_ns >= ready_ns {
                self.agent.has_come(Phase::Ready, Counts::default());
            }
            return;
        };
        let start_ns = load_ns + TIMING.warmup_ns;
        let lasted_ns = self.share_ns.unwrap_or(u64::MAX).min(self.window_ns);
        let end_ns = start_ns.saturating_add(lasted_ns);
        if self.has_ended {
            return;
        }
        if own_ns >= end_ns && self.share_ns.is_some() && !self.knows_end {
            let window_ns = lasted_ns;
            self.agent
                .has_come(Phase::Done { window_ns }, Counts::default());
        } else if own_ns >= end_ns {
            self.has_ended = true;
            self.lived = Some((start_ns - self.ahead_ns, self.window_ns));
            let mut result = self.window_ns.to_string().into_bytes();
            result.resize(result.len() + result_bytes, b' ');
            self.agent.finished(result, 999);
        } else if own_ns >= start_ns {
            self.is_measuring = true;
            self.agent.has_come(Phase::Measure, Counts::default());
        } else {
            self.agent.has_come(Phase::WarmUp, Counts::default());
        }
    }
}

fn lengths(outcome: &Outcome) -> Vec<u64> {
    let results = outcome.results.iter();
    results
        .map(|result| {
            let text = std::str::from_utf8(&result.bytes).expect("a number");
            text.trim().parse().expect("a number")
        })
        .collect()
}

#[test]
fn all_measure_one_window_and_all_is_collected() {
    for loses_one_in in [0, 4, 10] {
        let mut world = World::new(4);
        world.loses_one_in = loses_one_in;
        let outcome = world.outcome().expect("an outcome");
        assert_eq!(lengths(&outcome), [WINDOW; 4], "{loses_one_in}");
        assert_eq!(outcome.lost, []);
        let first_ns = world.machines[0].lived.expect("it measured").0;
        for (result, machine) in outcome.results.iter().zip(&world.machines) {
            let clocks = result.clocks.expect("its clock is known");
            let start_ns = machine.lived.expect("it measured").0;
            // What is stated holds the truth, and is no more than the ways and the drift say.
            let apart_ns = start_ns.abs_diff(first_ns);
            let most_ns = 2 * clocks.start_bound_ns + clocks.start_skew_ns.unsigned_abs();
            assert!(apart_ns <= 5 * MS, "{apart_ns}");
            assert!(apart_ns <= most_ns + 10 * MS, "{apart_ns} {clocks:?}");
            assert!(clocks.start_bound_ns <= 5 * MS, "{clocks:?}");
            assert!(clocks.end_bound_ns <= 5 * MS, "{clocks:?}");
            assert!(clocks.exchanges > 24);
        }
        for machine in &world.machines {
            assert!(matches!(machine.left, None | Some(Ok(()))));
        }
    }
}

#[test]
fn a_long_result_comes_in_chunks_over_ways_that_lose_them() {
    let mut world = World::new(2);
    world.result_bytes = 20_000;
    world.loses_one_in = 10;
    let outcome = world.outcome().expect("an outcome");
    assert_eq!(lengths(&outcome), [WINDOW; 2]);
    assert!(
        outcome
            .results
            .iter()
            .all(|result| result.bytes.len() > 20_000)
    );
}

#[test]
fn a_result_that_is_not_handed_over_whole_is_none() {
    let handing_over = || {
        let mut world = World::new(2);
        world.result_bytes = 50_000;
        world.until(|world| world.machines.iter().all(|machine| machine.has_ended));
        for _ in 0..(20 * MS / STEP) {
            world.step();
        }
        assert_eq!(world.stage(), Some(Stage::Loading));
        world
    };
    let mut world = handing_over();
    world.kill(1);
    let outcome = world.outcome().expect("an outcome");
    assert_eq!(lengths(&outcome), [WINDOW]);
    assert_eq!(outcome.lost[0].name, "machine-1");
    let mut world = handing_over();
    world.coordinator = None;
    world.until(|world| world.machines.iter().all(|machine| machine.left.is_some()));
    for machine in &world.machines {
        assert_eq!(machine.left, Some(Err(AgentError::CoordinatorGone(10))));
    }
}

#[test]
fn an_agent_that_dies_before_the_window_ends_all_without_a_result() {
    for stage in [Stage::SettingUp, Stage::Starting, Stage::Loading] {
        let mut world = World::new(3);
        world.until_stage(stage);
        world.kill(1);
        let killed_ns = world.now_ns;
        match (world.outcome(), stage) {
            (Err(FleetError::Lost { name, .. }), _) => assert_eq!(name, "machine-1"),
            // The load lasts for one second before the window: silence is noticed in it.
            (Ok(outcome), Stage::Loading | Stage::Starting) => {
                assert_eq!(outcome.lost.len(), 1);
                assert_eq!(outcome.lost[0].name, "machine-1");
            }
            (outcome, stage) => panic!("{stage:?}: {outcome:?}"),
        }
        assert!(world.now_ns - killed_ns < 15 * SECOND, "{stage:?}");
        for survivor in [0, 2] {
            let machine = &world.machines[survivor];
            let has_stopped = machine.was_aborted || machine.has_ended;
            assert!(has_stopped, "{stage:?} {survivor}");
        }
    }
}

#[test]
fn an_agent_that_leaves_before_all_are_there_makes_room() {
    let mut world = World::new(2);
    world.machines[1].is_frozen = Some((0, 7 * SECOND));
    world.until(|world| {
        let mut coordinators = world.coordinator.iter();
        coordinators.any(|coordinator| coordinator.members().len() == 1)
    });
    world.kill(0);
    world.until(|world| world.now_ns > 9 * SECOND);
    world.add("machine-2", version());
    let outcome = world.outcome().expect("an outcome");
    let names: Vec<&str> = outcome
        .results
        .iter()
        .map(|result| result.name.as_str())
        .collect();
    assert_eq!(names, ["machine-1", "machine-2"]);
}

#[test]
fn an_agent_that_dies_in_the_window_ends_that_of_all_at_one_instant() {
    let long = Timing {
        window_ns: Some(60 * SECOND),
        ..TIMING
    };
    let mut world = World::with(3, long);
    world.until_measuring();
    world.kill(1);
    let killed_ns = world.now_ns;
    let outcome = world.outcome().expect("an outcome");
    assert_eq!(outcome.lost.len(), 1);
    assert_eq!(outcome.lost[0].name, "machine-1");
    assert!(outcome.lost[0].reason.contains("silent"), "{outcome:?}");
    assert!(world.now_ns - killed_ns < 10 * SECOND);
    let lengths = lengths(&outcome);
    assert!(
        (4 * SECOND..8 * SECOND).contains(&lengths[0]),
        "{lengths:?}"
    );
    assert_eq!(lengths, [lengths[0]; 2]);
}

#[test]
fn whoever_asked_ends_the_window_of_all_at_one_instant() {
    let mut world = World::new(3);
    world.until_measuring();
    world.interrupt(false);
    world.until_stage(Stage::Collected);
    // It is said as long as the process lasts.
    world.interrupt(false);
    let outcome = world.outcome().expect("an outcome");
    let lengths = lengths(&outcome);
    assert!(outcome.was_interrupted);
    assert!(lengths[0] < SECOND, "{lengths:?}");
    assert_eq!(lengths, [lengths[0]; 3]);
    assert_eq!(outcome.lost, []);
}

#[test]
fn before_the_window_there_is_nothing_to_interrupt() {
    let mut world = World::new(2);
    world.until_stage(Stage::SettingUp);
    world.interrupt(false);
    assert_eq!(world.outcome(), Err(FleetError::Interrupted));
    assert!(world.machines.iter().all(|machine| machine.was_aborted));
}

#[test]
fn a_short_silence_is_no_loss_and_a_long_one_is() {
    let mut world = World::new(2);
    world.until_measuring();
    world.freeze(1, 3 * SECOND);
    let outcome = world.outcome().expect("an outcome");
    assert_eq!((outcome.results.len(), outcome.lost.len()), (2, 0));
    let mut world = World::new(2);
    world.until_measuring();
    world.freeze(1, 20 * SECOND);
    let outcome = world.outcome().expect("an outcome");
    assert_eq!((outcome.results.len(), outcome.lost.len()), (1, 1));
}

#[test]
fn agents_end_by_themselves_when_the_coordinator_is_gone() {
    for stage in [Stage::SettingUp, Stage::Starting, Stage::Loading] {
        let mut world = World::new(3);
        world.until_within(stage);
        world.coordinator = None;
        let gone_ns = world.now_ns;
        world.until(|world| world.machines.iter().all(|machine| machine.left.is_some()));
        assert!(world.now_ns - gone_ns < 11 * SECOND, "{stage:?}");
        for machine in &world.machines {
            assert_eq!(machine.left, Some(Err(AgentError::CoordinatorGone(10))));
        }
    }
}

#[test]
fn nobody_waits_for_ever_for_a_coordinator() {
    let mut world = World::new(1);
    world.coordinator = None;
    world.until(|world| world.machines[0].left.is_some());
    let left = &world.machines[0].left;
    assert_eq!(*left, Some(Err(AgentError::NobodyAnswers(30))));
}

#[test]
fn a_broker_that_restarts_is_survived() {
    for stage in [Stage::SettingUp, Stage::Starting, Stage::Loading] {
        let mut world = World::new(3);
        world.until_within(stage);
        let down_ns = match stage {
            // All must hear of the start before it.
            Stage::Starting => SECOND,
            _ => 3 * SECOND,
        };
        world.broker_is_down = (world.now_ns, world.now_ns + down_ns);
        let outcome = world.outcome();
        let outcome = outcome.unwrap_or_else(|error| panic!("{stage:?}: {error}"));
        assert_eq!((outcome.results.len(), outcome.lost.len()), (3, 0));
    }
}

#[test]
fn a_broker_that_stays_away_ends_all() {
    let mut world = World::new(2);
    world.until_measuring();
    world.broker_is_down = (world.now_ns, u64::MAX);
    let error = world.outcome().expect_err("nothing came");
    assert!(matches!(error, FleetError::AllLost { .. }), "{error:?}");
    world.until(|world| world.machines.iter().all(|machine| machine.left.is_some()));
}

#[test]
fn other_versions_are_refused_and_named() {
    let mut world = World::new(1);
    let newer = Version {
        brunt: "1.2.4".to_owned(),
        ..version()
    };
    let foreign = Version {
        protocol: 9,
        ..version()
    };
    world.machines.clear();
    world.add("newer", newer);
    world.add("foreign", foreign);
    let error = world.outcome().expect_err("nobody fits").to_string();
    for words in [
        "0 of 1 agents",
        "newer was refused",
        "brunt 1.2.4",
        "version 9",
    ] {
        assert!(error.contains(words), "{words}: {error}");
    }
    assert!(world.machines.iter().all(Machine::was_refused));
}

#[test]
fn late_comers_are_refused_and_change_nothing() {
    let mut world = World::new(2);
    world.until_stage(Stage::Loading);
    world.add("late", version());
    let outcome = world.outcome().expect("an outcome");
    assert_eq!(outcome.results.len(), 2);
    assert!(world.machines[2].was_refused());
}

#[test]
fn only_so_many_are_taken_as_are_needed_when_more_come_at_once() {
    let mut world = World::new(2);
    world.add("third", version());
    let outcome = world.outcome().expect("an outcome");
    assert_eq!((outcome.results.len(), outcome.lost.len()), (2, 0));
    let refused = world
        .machines
        .iter()
        .filter(|machine| machine.was_refused());
    assert_eq!(refused.count(), 1);
}

#[test]
fn a_coordinator_that_was_stopped_hears_what_came_meanwhile() {
    let long = Timing {
        window_ns: Some(12 * SECOND),
        ..TIMING
    };
    let mut world = World::with(2, long);
    world.until_measuring();
    let mut coordinator = world.coordinator.take().expect("it is there");
    let stopped_ns = world.now_ns;
    world.until(|world| world.now_ns > stopped_ns + 8 * SECOND);
    // It looks before it reads.
    coordinator.look(world.now_ns + world.ahead_ns);
    world.coordinator = Some(coordinator);
    let outcome = world.outcome().expect("an outcome");
    assert_eq!((outcome.results.len(), outcome.lost.len()), (2, 0));
    assert_eq!(lengths(&outcome), [12 * SECOND; 2]);
}

#[test]
fn strangers_who_answer_unasked_are_not_heard() {
    let mut world = World::new(1);
    world.until_measuring();
    let stranger = AgentId::fresh();
    let own_ns = world.now_ns + world.ahead_ns;
    let coordinator = world.coordinator.as_mut().expect("it is there");
    let chunk = brunt_fleet::Chunks::new(b"0".to_vec(), 9).chunk(0);
    let chunk = chunk.expect("a chunk");
    let session = coordinator.session().clone();
    let result = FromAgent::Result { round: 1, chunk };
    coordinator.receive(own_ns, &stranger, Some(&session), result);
    coordinator.look(own_ns);
    assert_eq!(coordinator.members().len(), 1);
    let outcome = world.outcome().expect("an outcome");
    assert_eq!(lengths(&outcome), [WINDOW]);
}

#[test]
fn an_agent_whose_result_was_not_taken_says_so() {
    for (fetched, expected) in [
        (&[][..], Err(AgentError::Unwanted)),
        (&[0, 1], Err(AgentError::Unwanted)),
        (&[0, 1, 2], Ok(())),
    ] {
        let (mut agent, session) = (east(), SessionId::fresh());
        agent.finished(vec![7; 10], 4);
        for &number in fetched {
            agent.receive(1, &session, ToAgent::Fetch { round: 0, number });
        }
        agent.receive(2, &session, ToAgent::Done);
        assert_eq!(agent.event(), Some(AgentEvent::Leave(expected)));
    }
}

#[test]
fn an_agent_that_is_let_go_before_it_has_a_result_says_so() {
    for phase in [
        Phase::Idle,
        Phase::SetUp,
        Phase::Measure,
        Phase::Drain,
        Phase::Done { window_ns: 1 },
    ] {
        let mut agent = east();
        let expected = match phase {
            Phase::Idle => Ok(()),
            _ => Err(AgentError::Unwanted),
        };
        agent.has_come(phase, Counts::default());
        agent.receive(1, &SessionId::fresh(), ToAgent::Done);
        // It is too late for a result.
        agent.finished(vec![7; 10], 4);
        assert_eq!(agent.event(), Some(AgentEvent::Leave(expected)));
    }
}

#[test]
fn an_agent_that_cannot_is_quoted() {
    let mut world = World::new(2);
    world.until_stage(Stage::SettingUp);
    world.machines[1].agent.failed("no route to host");
    let error = world.outcome().expect_err("it cannot");
    let (name, reason) = ("machine-1".to_owned(), "no route to host".to_owned());
    assert_eq!(error, FleetError::Agent { name, reason });
    assert!(world.machines[0].was_aborted);
}

#[test]
fn an_agent_that_is_known_to_be_gone_is_not_waited_for() {
    let mut world = World::new(2);
    world.until_measuring();
    world.kill(0);
    let own_ns = world.now_ns + world.ahead_ns;
    let coordinator = world.coordinator.as_mut().expect("it is there");
    coordinator.is_gone(own_ns, "machine-0", "ended with signal 9");
    let outcome = world.outcome().expect("an outcome");
    assert_eq!(outcome.lost[0].reason, "ended with signal 9");
    let lengths = lengths(&outcome);
    assert_eq!(lengths.len(), 1);
    assert!(lengths[0] < SECOND, "{lengths:?}");
}
