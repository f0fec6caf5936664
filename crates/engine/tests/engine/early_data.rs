//! Requests over HTTP/3 before the handshake is complete.

use std::error::Error;

use brunt_engine::prepare;
use brunt_load::{EarlyRequests, HttpChoice, Plan, Reuse, Stop, Target};
use brunt_record::Run;
use brunt_server::{ListenAddress, Options, Running, TlsOptions};

use crate::common::{
    Kind, change_request, choice, expect_valid, failures, lifetime, many, many_long, plan,
};

/// A server that takes early data over HTTP/3 or not, and a load that sends some where it may.
fn with_early_data(kind: Kind, takes: bool) -> (Running, Plan) {
    let mut options = Options::new(ListenAddress::Tcp(([127, 0, 0, 1], 0).into()));
    options.tls = Some(TlsOptions {
        early_data: takes,
        ..TlsOptions::default()
    });
    options.http3 = true;
    let serving = brunt_server::start(&options).expect("a server");
    let ListenAddress::Tcp(address) = *serving.address() else {
        panic!("it has a port");
    };
    let mut plan = plan("http://127.0.0.1/", choice(kind));
    plan.target = Target::parse(&format!("https://{address}/"), None).expect("a URL");
    plan.spoken = HttpChoice::HTTP3.into();
    plan.tls.roots_der = serving
        .certificates()
        .iter()
        .map(|it| it.to_vec())
        .collect();
    plan.tls.resumption = true;
    plan.tls.early_data = EarlyRequests::Safe;
    plan.connections = many(4);
    plan.reuse = Reuse::Requests(many_long(5));
    plan.stop = Stop {
        duration_ns: None,
        requests: Some(200),
    };
    plan.warmup_ns = 0;
    (serving, plan)
}

fn load_with_early_data(kind: Kind, takes: bool) -> Run {
    let (serving, plan) = with_early_data(kind, takes);
    let prepared = prepare(plan).expect("a plan that fits");
    let control = prepared.control();
    let run = prepared.run(&control, true, &mut |_, _: &_| {});
    let run = run.expect("a run");
    let counters = serving.stop().expect("it stops");
    assert_eq!(counters.requests, 200, "each request comes once");
    expect_valid(&run, "early data");
    assert_eq!(failures(&run), []);
    assert_eq!(lifetime(&run).replies.total(), 200);
    run
}

fn requests_go_before_the_handshake_is_complete(kind: Kind) {
    let run = load_with_early_data(kind, true);
    let counts = lifetime(&run);
    assert!(counts.quic.early_data_accepted > 0, "{counts:?}");
    assert_eq!(counts.quic.early_data_rejected, 0);
    assert_eq!(counts.quic.early_data_accepted, counts.handshakes_resumed);
    // Its tickets allow none, and are good to resume sessions.
    let counts = lifetime(&load_with_early_data(kind, false));
    assert_eq!(counts.quic.early_data_offered, 0);
    assert!(counts.handshakes_resumed > 0, "{counts:?}");
}

#[test]
fn requests_go_before_the_handshake_is_complete_on_uring() {
    requests_go_before_the_handshake_is_complete(Kind::Uring);
}

#[test]
fn requests_go_before_the_handshake_is_complete_on_epoll() {
    requests_go_before_the_handshake_is_complete(Kind::Epoll);
}

#[test]
fn only_safe_requests_are_early_unless_any_may_be() {
    let (serving, mut plan) = with_early_data(Kind::Epoll, true);
    change_request(&mut plan, |request| request.method = "POST".to_owned());
    let error = prepare(plan.clone()).expect_err("not safe");
    let mut reasons = Vec::new();
    let mut next: Option<&dyn Error> = Some(&error);
    while let Some(reason) = next {
        reasons.push(reason.to_string());
        next = reason.source();
    }
    let is_named = reasons
        .iter()
        .any(|reason| reason.contains("POST is not a safe method"));
    assert!(is_named, "{reasons:?}");
    plan.tls.early_data = EarlyRequests::Any;
    prepare(plan).expect("a plan that fits");
    serving.stop().expect("it stops");
}
