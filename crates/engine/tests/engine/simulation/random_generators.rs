//! Random generators of requests: what they give and want follows from a seed.

use std::sync::{Arc, Mutex};

use brunt_engine::{Rounds, RunError, prepare_simulated};
use brunt_load::{
    Batch, BatchTag, GeneratorError, GeneratorResponse, Plan, RequestGenerator, ResponseParts,
    Round,
};
use brunt_measure::Run;
use brunt_sim::{SimCounts, SimMachine, SimSettings};
use rand::Rng;
use rand_pcg::Pcg64;

use crate::common::MS;

/// What became of the batches of all workers.
#[derive(Debug, Default)]
struct Batches {
    /// Per batch, how often its tag was given back.
    ended: Vec<u32>,
    /// Per batch, requests and responses.
    requests: Vec<u32>,
    responses: Vec<u32>,
    failed: bool,
}

#[derive(Debug)]
struct RandomGenerator {
    values: Pcg64,
    batches: Arc<Mutex<Batches>>,
    text: Vec<u8>,
    requests: u32,
    wanted: ResponseParts,
    delays: bool,
    /// Per thousand calls, those that give nothing, and those that fail.
    nothing: u32,
    failing: u32,
    batch_most: u32,
    names: Vec<String>,
}

impl RandomGenerator {
    fn new(seed: u64, worker: u32, batches: &Arc<Mutex<Batches>>) -> Self {
        let mut common = Pcg64::new(seed.into(), 2_000);
        let mut sometimes = |part: u32| common.random_range(0..part) == 0;
        let (delays, parks, fails) = (sometimes(4), sometimes(4), sometimes(20));
        let (has_batches, has_names) = (sometimes(2), sometimes(3));
        Self {
            values: Pcg64::new(seed.into(), 2_001 + u128::from(worker)),
            batches: Arc::clone(batches),
            text: Vec::new(),
            requests: 0,
            wanted: ResponseParts::Nothing,
            delays,
            nothing: if parks { 20 } else { 0 },
            failing: if fails { 2 } else { 0 },
            batch_most: if has_batches { 9 } else { 1 },
            names: (0..if has_names { 3 } else { 0 })
                .map(|name| format!("{worker}/{name}"))
                .collect(),
        }
    }

    fn one_in(&mut self, part: u32) -> bool {
        self.values.random_range(0..part) == 0
    }

    fn request(&mut self) -> Vec<u8> {
        let pad = "x".repeat(self.values.random_range(0..40));
        match self.values.random_range(0..8) {
            0 => format!("HEAD /{pad} HTTP/1.1\r\nHost: x\r\n\r\n"),
            1 => format!(
                "POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{pad}",
                pad.len()
            ),
            _ => format!("GET /{pad} HTTP/1.1\r\nHost: x\r\n\r\n"),
        }
        .into()
    }
}

impl RequestGenerator for RandomGenerator {
    fn delays(&self) -> bool {
        self.delays
    }

    fn delay_ns(&mut self) -> Result<u64, GeneratorError> {
        Ok(self.values.random_range(0..5 * MS))
    }

    fn next(&mut self, text: &mut Vec<u8>) -> Result<Batch, GeneratorError> {
        if self.values.random_range(0..1_000) < self.nothing {
            return Ok(Batch::Nothing);
        }
        if self.values.random_range(0..1_000) < self.failing {
            self.batches.lock().expect("whole").failed = true;
            return Err(GeneratorError {
                message: "as was to be".to_owned(),
            });
        }
        let name = match self.names.len() as u32 {
            0 => None,
            names => (!self.one_in(4)).then(|| self.values.random_range(0..names)),
        };
        let is_same = self.requests > 0 && self.one_in(2);
        if !is_same {
            self.requests = self.values.random_range(1..=self.batch_most);
            self.text = (0..self.requests).flat_map(|_| self.request()).collect();
            text.extend_from_slice(&self.text);
        }
        let mut batches = self.batches.lock().expect("whole");
        let tag = BatchTag(batches.ended.len() as u32);
        batches.ended.push(0);
        batches.requests.push(self.requests);
        batches.responses.push(0);
        Ok(match is_same {
            true => Batch::Same { tag, name },
            false => Batch::New { tag, name },
        })
    }

    fn wanted(&self) -> ResponseParts {
        self.wanted
    }

    fn response(&mut self, response: &GeneratorResponse<'_>) -> Result<(), GeneratorError> {
        let mut batches = self.batches.lock().expect("whole");
        let tag = response.tag.0 as usize;
        assert_eq!(batches.ended[tag], 0, "a tag was given back too early");
        batches.responses[tag] += 1;
        drop(batches);
        self.wanted = match self.values.random_range(0..40) {
            0 => ResponseParts::Status,
            1 => ResponseParts::Headers,
            2 => ResponseParts::Body,
            _ => self.wanted,
        };
        Ok(())
    }

    fn ended(&mut self, tag: BatchTag) {
        self.batches.lock().expect("whole").ended[tag.0 as usize] += 1;
        if self.wanted == ResponseParts::Nothing && self.one_in(20) {
            self.wanted = ResponseParts::Status;
        }
    }

    fn is_stopped(&self) -> bool {
        false
    }

    fn names(&self) -> &[String] {
        &self.names
    }
}

/// Runs a plan whose requests are made at random; gives what is wrong with what its generators saw,
/// too, and whether one of them failed.
pub(super) fn simulate_generated(
    plan: &Plan,
    settings: &SimSettings,
) -> Result<(Run, SimCounts, Vec<String>), RunError> {
    let mut machine = SimMachine::new(settings.clone());
    let prepared = prepare_simulated(plan.clone(), &mut machine).expect("a plan that fits");
    let control = prepared.control();
    let batches = Arc::new(Mutex::new(Batches::default()));
    let generators = (0..prepared.worker_count()).map(|worker| {
        Box::new(RandomGenerator::new(settings.seed, worker, &batches)) as Box<dyn RequestGenerator>
    });
    let generators = generators.collect();
    let mut session = prepared.open(&mut machine, &control);
    session.set_generators(generators).expect("as many");
    let run = session.round(&Round::of(plan), &mut |_, _: &_| {});
    let has_failed = session.generator_error().is_some();
    drop(session);
    let run = run?;
    let batches = batches.lock().expect("whole");
    let mut problems = Vec::new();
    if batches.ended.iter().any(|&times| times != 1) {
        problems.push("a tag was not given back, or twice".to_owned());
    }
    let pairs = batches.responses.iter().zip(&batches.requests);
    if pairs
        .clone()
        .any(|(responses, requests)| responses > requests)
    {
        problems.push("more responses than requests".to_owned());
    }
    if has_failed != batches.failed {
        problems.push("a failure was lost, or made up".to_owned());
    }
    Ok((run, machine.counts(), problems))
}
