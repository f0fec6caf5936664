//! Numbers that are filled into requests: the reference server sends as many bytes as the path
//! says, so that the log of a run tells which number each request had.

use std::collections::BTreeMap;

use brunt_engine::{Rounds, prepare_simulated, prepare_simulated_part};
use brunt_load::{Part, Plan, RequestOrder, RequestSet, RequestSpec, Reuse, raw_requests};
use brunt_record::{LoggedEnd, ReplyOutcome, Run};
use brunt_server::Http2Options;
use brunt_testkit::SimMachine;

use super::{KeepLog, even_rate, plan};
use crate::common::{
    by_count, expect_valid, failures, lifetime, many, many_long, reference, requests_by_plan,
};

/// Runs the plan, or a part of it. Gives the numbers that the requests of the window had, in order,
/// by the number of the request in its set.
fn numbers(plan: &Plan, part: Option<Part>) -> (Run, BTreeMap<u32, Vec<u64>>) {
    let mut machine = SimMachine::new(reference(Http2Options::default()));
    let prepared = match part {
        Some(part) => prepare_simulated_part(plan.clone(), Some(part), &mut machine),
        None => prepare_simulated(plan.clone(), &mut machine),
    };
    let prepared = prepared.expect("it fits");
    let control = prepared.control();
    let mut keeping = KeepLog(None);
    let mut session = prepared.open_in(&mut machine, &control);
    let run = session.round(&plan.load, &mut keeping).expect("a run");
    expect_valid(&run, "filled in");
    assert_eq!(failures(&run), []);
    let mut numbers: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for request in keeping.0.expect("it was asked for").requests() {
        assert_eq!(request.end, LoggedEnd::Reply(ReplyOutcome::of_status(200)));
        let of_one = numbers.entry(request.request).or_default();
        of_one.push(request.body_bytes);
    }
    numbers
        .values_mut()
        .for_each(|of_one| of_one.sort_unstable());
    (run, numbers)
}

fn asking(paths: &[&str]) -> RequestSet {
    let requests = paths.iter().map(|path| {
        let mut request = RequestSpec::get(path);
        request.fill_in().expect("placeholders");
        request
    });
    let requests: Vec<RequestSpec> = requests.collect();
    match &requests[..] {
        [only] => RequestSet::one(only.clone()),
        _ => RequestSet::of(requests, RequestOrder::Turns).expect("a list"),
    }
}

/// 600 requests by `workers` on 12 connections, all of which are logged.
fn counted(workers: u32, requests: RequestSet) -> Plan {
    let mut plan = plan();
    plan.traffic.requests = requests;
    plan.load.connections = many(12);
    plan.workers.count = many(workers);
    plan.traffic.has_equal_parts = true;
    by_count(&mut plan, 600);
    plan.observation.logged_requests_max = 10_000;
    plan
}

#[test]
fn every_number_of_a_sequence_is_sent_once() {
    for workers in [1, 3, 12] {
        for (pipeline, reuse) in [
            (1, Reuse::Unlimited),
            (4, Reuse::Unlimited),
            (4, Reuse::Requests(many_long(7))),
        ] {
            let mut plan = counted(workers, asking(&["/bytes/{{seq}}"]));
            (plan.traffic.pipeline, plan.traffic.reuse) = (many(pipeline), reuse);
            let (_, numbers) = numbers(&plan, None);
            let expected: Vec<u64> = (1..=600).collect();
            assert_eq!(numbers[&0], expected, "{workers}, {pipeline}, {reuse:?}");
        }
    }
}

#[test]
fn a_second_run_goes_on_where_it_is_told_to() {
    for (path, first) in [("/bytes/{{seq}}", 601), ("/bytes/{{seq 1000}}", 1_600)] {
        let mut plan = counted(3, asking(&[path]));
        plan.traffic.sequence_offset = 600;
        let (_, numbers) = numbers(&plan, None);
        assert_eq!(numbers[&0], (first..first + 600).collect::<Vec<u64>>());
    }
}

#[test]
fn an_open_loop_has_the_numbers_in_the_order_of_its_requests() {
    let mut plan = counted(1, asking(&["/bytes/{{seq 1000}}"]));
    plan.traffic.has_equal_parts = false;
    requests_by_plan(&mut plan, even_rate(2_000.0), 1_000);
    let (run, numbers) = numbers(&plan, None);
    assert_eq!(numbers[&0], (1_000..1_600).collect::<Vec<u64>>());
    assert_eq!(lifetime(&run).requests_sent, 600);
}

#[test]
fn shares_of_a_load_have_the_numbers_of_the_whole() {
    let plan = counted(4, asking(&["/bytes/{{seq}}"]));
    let mut all: Vec<u64> = Vec::new();
    for (first, workers) in [(0, 1), (1, 3)] {
        let part = Part::new(first, many(workers));
        let (_, numbers) = numbers(&plan, Some(part));
        assert_eq!(numbers[&0].len() as u32, 150 * workers);
        all.extend(&numbers[&0]);
    }
    all.sort_unstable();
    assert_eq!(all, (1..=600).collect::<Vec<u64>>());
}

#[test]
fn fixed_requests_of_a_list_take_no_number() {
    let list = asking(&["/bytes/7000", "/bytes/{{seq}}", "/bytes/{{rand 3000 3004}}"]);
    let (run, numbers) = numbers(&counted(3, list), None);
    assert_eq!(numbers[&0], [7_000; 200]);
    let names: Vec<&str> = run.names.iter().map(|name| &*name.name).collect();
    assert_eq!(names[1..], ["/bytes/{{seq}}", "/bytes/{{rand 3000 3004}}"]);
    let sequence = &numbers[&1];
    assert_eq!(sequence.len(), 200);
    // Workers begin the list at different places: each has a few more or fewer of one request.
    assert!(sequence.windows(2).all(|pair| pair[0] < pair[1]));
    assert!((200..=206).contains(&sequence[199]), "{sequence:?}");
    for number in 3_000..3_005 {
        assert!(numbers[&2].contains(&number), "{number}: {numbers:?}");
    }
    let between = |number| (3_000..3_005).contains(number);
    assert!(numbers[&2].iter().all(between));
}

#[test]
fn random_numbers_follow_from_the_seed() {
    let drawn = |seed| {
        let mut plan = counted(2, asking(&["/bytes/{{rand 0 100000}}"]));
        plan.traffic.think_seed = seed;
        numbers(&plan, None).1
    };
    assert_eq!(drawn(1), drawn(1));
    assert_ne!(drawn(1), drawn(2));
    assert!(drawn(1)[&0].iter().all(|number| *number <= 100_000));
}

#[test]
fn raw_requests_are_filled_in_byte_by_byte() {
    let text = b"POST /bytes/{{seq 5001}} HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n\
        [{{rand 1 999999}}]\
        GET /bytes/{{rand 7 7}} HTTP/1.1\r\nHost: x\r\n\r\n";
    let requests = raw_requests(text).expect("two");
    let set = RequestSet::of(requests, RequestOrder::Turns).expect("a list");
    let mut plan = counted(1, set);
    plan.traffic.pipeline = many(3);
    let (run, numbers) = numbers(&plan, None);
    assert_eq!(numbers[&0], (5_001..5_301).collect::<Vec<u64>>());
    assert_eq!(numbers[&1], [7; 300]);
    let bytes =
        b"POST /bytes/000000005001 HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n[999999]\
        GET /bytes/7 HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_eq!(lifetime(&run).bytes_sent, 300 * bytes.len() as u64);
}

#[test]
fn what_is_filled_in_needs_http_1() {
    let mut plan = counted(1, asking(&["/bytes/{{seq}}"]));
    plan.connection.protocol = brunt_load::HttpChoice::HTTP2.into();
    let mut machine = SimMachine::new(reference(Http2Options::default()));
    let error = prepare_simulated(plan, &mut machine).expect_err("its head is compressed");
    let source = std::error::Error::source(&error).expect("a reason");
    assert!(source.to_string().contains("use --http1"), "{source}");
}
