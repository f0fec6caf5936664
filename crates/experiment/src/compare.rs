//! Several servers under the same load: rounds that take turns, so that whatever changes on the
//! machine meanwhile falls on all alike.

use brunt_judge::{
    ChangeLimit, Compared, ComparedRounds, ComparedSide, Course, EndedEarly, ExperimentKind,
    Judged, PAIRS_MAX, RoundRecord,
};
use brunt_load::Plan;
use brunt_record::{Environment, Run, ServerDescription};

use crate::course::{ExperimentCourse, NextRound};
use crate::turns::shuffled;

/// How often pairs so far are looked at where a time is given: each time at twice as many.
pub const LOOKS: u32 = 4;

/// The quantiles of the response time that are compared at equal rates.
const QUANTILES: [f64; 2] = [0.5, 0.99];

/// What is compared: the throughput of a closed loop, response times at equal rates, and all that
/// has a limit.
pub fn compared(has_schedule: bool, limits: &[ChangeLimit]) -> Vec<Compared> {
    let mut all = if has_schedule {
        QUANTILES.map(Compared::ResponseQuantile).into()
    } else {
        vec![Compared::SuccessesPerS]
    };
    for limit in limits {
        if !all.contains(&limit.compared) {
            all.push(limit.compared);
        }
    }
    all
}

/// A comparison of `sides`, labels and URLs, of which nothing is measured yet.
pub fn comparison(
    compared: Vec<Compared>,
    limits: Vec<ChangeLimit>,
    sides: impl Iterator<Item = (Option<String>, String)>,
    environment: Environment,
) -> ComparedRounds {
    let sides = sides.map(|(label, url)| ComparedSide {
        label,
        url,
        server: None,
        rounds: Vec::new(),
        single_run: None,
    });
    ComparedRounds {
        kind: ExperimentKind::Comparison,
        format: ComparedRounds::FORMAT,
        brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
        load: None,
        environment,
        compared,
        limits,
        pairs_planned: None,
        looks: None,
        ended_early: None,
        sides: sides.collect(),
    }
}

/// Rounds of several servers. Those at the same place of all sides are made one after the other, in
/// an order that chance decides anew for each place: so the signs of the differences are chance
/// where there is none, whatever the machine does meanwhile, and that is what their test assumes.
pub struct ComparisonCourse {
    found: ComparedRounds,
    /// By side; the load of the first is that of all.
    plans: Vec<Plan>,
    /// Pairs that are to count at the first look.
    pairs: usize,
    seed: u64,
    /// Further looks are taken for so long, until all limits are decided; absent: none is.
    until_ns: Option<u64>,
    /// The number of the look, from 0.
    look: u32,
    /// Pairs in all, as it looks now.
    expected: usize,
    order: Box<dyn Iterator<Item = Vec<usize>>>,
    /// Sides that have no round yet in the pair that is made.
    turn: std::vec::IntoIter<usize>,
}

impl ComparisonCourse {
    /// Rounds of the sides of `found`, of which nothing is measured yet, until `pairs` pairs count
    /// or no more are worth making. With `until_ns` it goes on, for so long at most, until each
    /// limit is exceeded or kept.
    pub fn new(
        found: ComparedRounds,
        plans: Vec<Plan>,
        pairs: usize,
        seed: u64,
        until_ns: Option<u64>,
    ) -> Self {
        let mut course = Self {
            found,
            plans,
            pairs,
            seed,
            until_ns,
            look: 0,
            expected: pairs,
            order: Box::new(std::iter::empty()),
            turn: Vec::new().into_iter(),
        };
        course.found.looks = until_ns.map(|_| LOOKS);
        course.begin_look();
        course
    }

    /// What was found, by the pairs that are complete.
    pub fn finish(mut self) -> ComparedRounds {
        let complete = self.found.pairs();
        for side in &mut self.found.sides {
            side.rounds.truncate(complete);
        }
        self.found
    }

    fn planned(&self) -> usize {
        (self.pairs << self.look).min(PAIRS_MAX)
    }

    fn begin_look(&mut self) {
        self.found.pairs_planned = u32::try_from(self.planned()).ok();
        let seed = self.seed.wrapping_add(self.look.into());
        self.order = Box::new(shuffled(self.plans.len(), seed));
    }

    /// Begins a pair; false where no more are worth making.
    fn begin_pair(&mut self, elapsed_ns: u64) -> bool {
        let is_over = self.until_ns.is_none_or(|limit_ns| elapsed_ns >= limit_ns);
        loop {
            match self.found.course(self.planned()) {
                // The first look takes what it takes: with fewer pairs nothing can be said.
                Course::Until(expected) if self.look == 0 || !is_over => {
                    self.expected = expected;
                    self.turn = self.order.next().unwrap_or_default().into_iter();
                    return true;
                }
                Course::ClientLimited => {
                    self.found.ended_early = Some(EndedEarly::ClientLimited);
                    return false;
                }
                Course::Until(_) | Course::Done => {}
            }
            if is_over || self.look + 1 == LOOKS || self.found.are_limits_decided() {
                return false;
            }
            self.look += 1;
            self.begin_look();
        }
    }

    /// How long the rest takes: by plan before there is a round, then as those so far.
    fn left_ns(&self, elapsed_ns: u64) -> u64 {
        let sides = self.found.sides.iter();
        let done: usize = sides.map(|side| side.rounds.len()).sum();
        let left = (self.expected * self.plans.len()).saturating_sub(done) as u64;
        match elapsed_ns.checked_div(done as u64) {
            Some(each_ns) => each_ns.saturating_mul(left),
            None => self.until_ns.unwrap_or_else(|| {
                let load = self.plans.first().map(|plan| &plan.load);
                let round_ns = load.map_or(0, |load| {
                    load.warmup_ns + load.stop.duration_ns.unwrap_or(0)
                });
                round_ns.saturating_mul(left)
            }),
        }
    }
}

impl ExperimentCourse for ComparisonCourse {
    fn next(&mut self, elapsed_ns: u64) -> Option<NextRound> {
        let side = match self.turn.next() {
            Some(side) => side,
            None if self.begin_pair(elapsed_ns) => self.turn.next()?,
            None => return None,
        };
        let mut plan = self.plans[side].clone();
        plan.load.clone_from(&self.plans[0].load);
        Some(NextRound {
            side,
            plan,
            value: None,
            left_ns: self.left_ns(elapsed_ns),
        })
    }

    fn take(&mut self, side: usize, run: Run) {
        let found = &mut self.found;
        if side == 0 {
            found.environment.add(&run);
            found.load.get_or_insert_with(|| run.plan.clone());
        }
        let of_side = &mut found.sides[side];
        of_side.server = ServerDescription::of(&run);
        of_side.rounds.push(RoundRecord::of(&Judged::of(&run)));
    }
}
