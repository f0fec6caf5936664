//! Random generators of requests: what they give and want follows from a seed.

use std::sync::{Arc, Mutex};

use brunt_engine::{Rounds, RunError, prepare_simulated};
use brunt_load::{
    Batch, BatchOutcome, BatchTag, ConnectionNumber, GeneratorError, GeneratorResponse, LoadModel,
    Plan, RequestGenerator, ResponseParts,
};
use brunt_record::Run;
use brunt_testkit::{SimCounts, SimMachine, SimSettings};
use rand::Rng;
use rand_pcg::Pcg64;

use crate::common::{MS, lifetime};

/// What is known of a connection.
#[derive(Clone, Debug, Default)]
struct OfConnection {
    is_open: bool,
    /// The batches that have not ended.
    batches: Vec<BatchTag>,
}

/// Outcomes of the batches of all workers.
#[derive(Debug, Default)]
struct Batches {
    /// Per batch, how often its tag was given back.
    ended: Vec<u32>,
    /// Per batch, requests and responses.
    requests: Vec<u32>,
    responses: Vec<u32>,
    /// Whether each batch ended with every request answered.
    answered: Vec<bool>,
    failed: bool,
}

#[derive(Debug)]
struct RandomGenerator {
    values: Pcg64,
    batches: Arc<Mutex<Batches>>,
    connections: Vec<OfConnection>,
    text: Vec<u8>,
    requests: u32,
    wanted: ResponseParts,
    delays: bool,
    /// Requests are planned, so that several batches may be in flight on a connection.
    is_planned: bool,
    /// Per thousand calls, those that give nothing, and those that fail.
    nothing: u32,
    failing: u32,
    batch_most: u32,
    names: Vec<String>,
}

impl RandomGenerator {
    fn new(plan: &Plan, seed: u64, worker: u32, batches: &Arc<Mutex<Batches>>) -> Self {
        let mut common = Pcg64::new(seed.into(), 2_000);
        let mut sometimes = |part: u32| common.random_range(0..part) == 0;
        let (delays, parks, fails) = (sometimes(4), sometimes(4), sometimes(20));
        let (has_batches, has_names) = (sometimes(2), sometimes(3));
        Self {
            values: Pcg64::new(seed.into(), 2_001 + u128::from(worker)),
            batches: Arc::clone(batches),
            connections: Vec::new(),
            text: Vec::new(),
            requests: 0,
            wanted: ResponseParts::Nothing,
            delays,
            is_planned: matches!(plan.load.model, LoadModel::Open { .. }),
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

    fn connection(&mut self, number: ConnectionNumber) -> &mut OfConnection {
        &mut self.connections[number.0 as usize]
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
    fn begin(&mut self, connections: u32) {
        self.connections = vec![OfConnection::default(); connections as usize];
    }

    fn opened(&mut self, number: ConnectionNumber) {
        let connection = self.connection(number);
        assert!(!connection.is_open, "it was not closed");
        connection.is_open = true;
    }

    fn closed(&mut self, number: ConnectionNumber) {
        let connection = self.connection(number);
        assert!(connection.is_open && connection.batches.is_empty());
        connection.is_open = false;
    }

    fn delays(&self) -> bool {
        self.delays
    }

    fn delay_ns(&mut self, number: ConnectionNumber) -> Result<u64, GeneratorError> {
        assert!(self.connection(number).is_open);
        Ok(self.values.random_range(0..5 * MS))
    }

    fn next(
        &mut self,
        number: ConnectionNumber,
        text: &mut Vec<u8>,
    ) -> Result<Batch, GeneratorError> {
        let is_planned = self.is_planned;
        let connection = self.connection(number);
        assert!(connection.is_open && (is_planned || connection.batches.is_empty()));
        if self.values.random_range(0..1_000) < self.nothing {
            return Ok(if self.one_in(2) {
                Batch::Nothing
            } else {
                Batch::Close
            });
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
        batches.answered.push(false);
        drop(batches);
        self.connection(number).batches.push(tag);
        Ok(if is_same {
            Batch::Same { tag, name }
        } else {
            Batch::New { tag, name }
        })
    }

    fn wanted(&self) -> ResponseParts {
        self.wanted
    }

    fn response(&mut self, response: &GeneratorResponse<'_>) -> Result<(), GeneratorError> {
        let mut batches = self.batches.lock().expect("whole");
        let tag = response.tag.0 as usize;
        let connection = &self.connections[response.connection.0 as usize];
        assert!(connection.batches.contains(&response.tag));
        let times = response.times;
        let in_order = [
            times.opening_ns,
            times.opened_ns,
            times.sent_ns,
            times.done_ns,
        ];
        assert!(in_order.is_sorted(), "{times:?}");
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

    fn ended(&mut self, number: ConnectionNumber, tag: BatchTag, outcome: BatchOutcome) {
        let batches = &mut self.connection(number).batches;
        let place = batches.iter().position(|&batch| batch == tag);
        batches.remove(place.expect("a batch of this connection"));
        let mut batches = self.batches.lock().expect("whole");
        batches.ended[tag.0 as usize] += 1;
        batches.answered[tag.0 as usize] = outcome == BatchOutcome::Answered;
        drop(batches);
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
        Box::new(RandomGenerator::new(plan, settings.seed, worker, &batches))
            as Box<dyn RequestGenerator>
    });
    let generators = generators.collect();
    let mut session = prepared.open_in(&mut machine, &control);
    session.set_generators(generators).expect("as many");
    let run = session.round(&plan.load, &mut |_, _: &_| {});
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
    let answered: u64 = (batches.requests.iter().zip(&batches.answered))
        .filter(|(_, is_answered)| **is_answered)
        .map(|(requests, _)| u64::from(*requests))
        .sum();
    if answered > lifetime(&run).replies.total() {
        problems.push(format!("{answered} requests were answered, it is said"));
    }
    if has_failed != batches.failed {
        problems.push("a failure was lost, or made up".to_owned());
    }
    Ok((run, machine.counts(), problems))
}
