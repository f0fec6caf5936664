//! What a generator learns of its connections: which one asks, when one is opened anew or lost, and
//! how its batches end.

use std::num::NonZeroU64;

use brunt_load::{BatchOutcome, Plan, RequestFailure, ResponseParts};
use brunt_testkit::{ServiceTime, SimFaults, SimServer};

use crate::common::{Kind, MS, S, by_count, lifetime, many, on_every_backend};
use crate::generated::{GET, load, load_scripted};
use crate::makers::{Call, Maker};

on_every_backend! {
    a_connection_may_be_closed,
    batches_end_as_their_requests_do,
}

/// Where it is, another one is opened in its place, and asked for anew.
fn a_connection_may_be_closed(kind: Kind) {
    // Each second call gives nothing.
    let mut calls = 0;
    let maker = Maker::new(move |_| {
        calls += 1;
        Ok((calls % 2 == 1).then(|| GET.to_owned()))
    });
    let maker = Maker {
        closes: true,
        ..maker
    };
    let change = |plan: &mut Plan| {
        plan.load.connections = many(1);
        by_count(plan, 5);
    };
    let (run, log) = load(kind, change, maker).faultless("closed");
    assert_eq!(lifetime(&run).requests_sent, 5);
    let answered = Call::Ended(BatchOutcome::Answered);
    let one = [Call::Opened, Call::Next, answered, Call::Closed];
    let calls = log.calls_of(0);
    assert!(calls.len() >= 19, "{calls:?}");
    assert!(
        calls.chunks(4).all(|calls| one.starts_with(calls)),
        "{calls:?}"
    );
    let opened = calls.iter().filter(|call| **call == Call::Opened).count();
    assert_eq!(lifetime(&run).connections_opened, opened as u64);
}

fn batches_end_as_their_requests_do(kind: Kind) {
    // The server closes behind this one, and what is behind it in the batch is not answered.
    let closing = GET.replace("Host", "Connection: close\r\nHost");
    let batches = [GET.repeat(2), format!("{GET}{GET}"), closing];
    let maker = Maker::new(move |made| Ok(batches.get(made as usize).cloned()));
    let change = |plan: &mut Plan| {
        plan.load.connections = many(1);
        plan.traffic.pipeline = many(2);
    };
    let outcome = load(kind, change, maker.wanting(ResponseParts::Status));
    let (run, log) = outcome.faultless("closing");
    let answered = Call::Ended(BatchOutcome::Answered);
    let pair = [Call::Next, answered];
    let mut expected = vec![Call::Opened];
    expected.extend(pair.repeat(3));
    expected.extend([Call::Closed, Call::Opened]);
    assert_eq!(log.calls_of(0), expected);
    assert_eq!(lifetime(&run).requests_sent, 5);
    for times in &log.times {
        let in_order = [
            times.opening_ns,
            times.opened_ns,
            times.sent_ns,
            times.done_ns,
        ];
        assert!(in_order.is_sorted(), "{times:?}");
        assert!((times.sent_ns..=times.done_ns).contains(&times.first_byte_ns));
    }
    assert!(
        log.reported
            .iter()
            .all(|told| told.bytes.0 > 30 && told.bytes.1 >= 2)
    );
}

/// Batches of three of which two are sent at once: how they end is said.
#[test]
fn batches_fail_for_a_reason() {
    let closing = |after, announces_close| SimServer {
        close_after: NonZeroU64::new(after),
        announces_close,
        ..SimServer::default()
    };
    let slow = SimServer {
        service: ServiceTime::Constant(10 * S),
        ..SimServer::default()
    };
    let malformed = SimServer {
        faults: SimFaults {
            malformed: 1.0,
            ..SimFaults::default()
        },
        ..SimServer::default()
    };
    for (server, timeout_ns, failure) in [
        (closing(1, false), S, RequestFailure::ConnectionLost),
        (closing(2, true), S, RequestFailure::NotSent),
        (slow.clone(), 50 * MS, RequestFailure::TimedOut),
        (slow, 30 * S, RequestFailure::Unfinished),
        (malformed, S, RequestFailure::Unreadable),
    ] {
        let maker = Maker::new(|made| Ok((made < 3).then(|| GET.repeat(3))));
        let change = |plan: &mut Plan| {
            plan.load.connections = many(1);
            plan.traffic.pipeline = many(2);
            plan.limits.timeout_ns = timeout_ns;
            plan.load.drain_limit_ns = 10 * MS;
        };
        let log = load_scripted(server, change, maker).log;
        let failed = Call::Ended(BatchOutcome::Failed(failure));
        assert_eq!(log.calls_of(0)[..3], [Call::Opened, Call::Next, failed]);
    }
}
