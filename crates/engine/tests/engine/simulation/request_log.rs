//! The log of single requests beside the record: the same sums, and the same instants.

use brunt_engine::Rounds;
use brunt_judge::RunFigures;
use brunt_load::{Plan, Reuse};
use brunt_record::{LoggedEnd, LoggedRequest, RequestLog, Run};
use brunt_testkit::SimSettings;

use super::{KeepLog, plan, textbook};
use crate::common::{MS, Server, US, by_count, many, many_long};

fn logged(plan: Plan, settings: &SimSettings) -> (Run, Option<RequestLog>) {
    let mut keeping = KeepLog(None);
    let server = Server::Simulated(Box::new(settings.clone()));
    let (run, _) = server.session(&plan, |session| session.round(&plan.load, &mut keeping));
    (run.expect("a run"), keeping.0)
}

#[test]
fn every_request_of_the_window_that_ends_is_logged_once() {
    let mut settings = SimSettings::new(7);
    settings.server.faults.reset = 0.05;
    for (workers, reuse) in [
        (1, Reuse::Unlimited),
        (3, Reuse::Unlimited),
        (2, Reuse::Requests(many_long(3))),
    ] {
        let mut plan = plan();
        plan.load.connections = many(9);
        plan.workers.count = many(workers);
        plan.traffic.reuse = reuse;
        plan.observation.logged_requests_max = 1_000_000;
        plan.observation.logged_responses_max = 2;
        let (run, log) = logged(plan, &settings);
        let log = log.expect("it was asked for");
        let requests: Vec<LoggedRequest> = log.requests().collect();
        let population = run.summary().population;
        let is_reply = |request: &&LoggedRequest| matches!(request.end, LoggedEnd::Reply(_));
        let replies: Vec<_> = requests.iter().filter(is_reply).collect();
        assert_eq!(log.len(), population.recorded + population.failed);
        assert_eq!(replies.len() as u64, population.recorded);
        assert!(population.failed > 0 && log.left_out() == 0);
        assert!(requests.is_sorted_by_key(|request| request.done_ns));
        assert!(requests.iter().all(|request| request.connection < 9));
        // The same response times, to the last nanosecond.
        let sum: u64 = replies
            .iter()
            .map(|reply| reply.done_ns - reply.due_ns)
            .sum();
        let (response, errors) = (&run.latencies.response, &run.latencies.response_error);
        assert_eq!(sum, response.sum_ns() + errors.sum_ns());
        let opened = requests
            .iter()
            .filter(|request| request.opening_us().is_some());
        assert!(opened.count() > 9);
        let responses = log.responses();
        assert_eq!(responses.len(), 2 * workers as usize);
        assert!(responses[0].head.starts_with(b"HTTP/1.1 200"));
        assert_eq!(responses[0].content.len(), 100);
    }
}

#[test]
fn instants_are_those_of_the_server() {
    let mut plan = plan();
    plan.load.connections = many(1);
    by_count(&mut plan, 3);
    plan.traffic.reuse = Reuse::Requests(many_long(2));
    plan.observation.logged_requests_max = 3;
    let (run, log) = logged(plan, &textbook(MS));
    let log = log.expect("it was asked for");
    let requests: Vec<LoggedRequest> = log.requests().collect();
    let [first, second, third] = &requests[..] else {
        panic!("{requests:?}");
    };
    // 100 µs each way, 1 ms of service; a connection takes a round trip.
    assert_eq!((first.sent_ns, first.done_ns), (0, MS + 200 * US));
    assert_eq!(second.sent_ns, first.done_ns);
    assert_eq!(third.sent_ns, second.done_ns + 200 * US);
    let openings = requests.iter().map(LoggedRequest::opening_us);
    assert_eq!(openings.collect::<Vec<_>>(), [Some(200), None, Some(200)]);
    let closes = [first, second, third].map(|request| request.closes);
    assert_eq!(closes, [false, true, false]);
    assert_eq!(run.summary().population.recorded, 3);
}

#[test]
fn nothing_is_logged_unasked() {
    let (_, log) = logged(plan(), &textbook(MS));
    assert!(log.is_none());
}
