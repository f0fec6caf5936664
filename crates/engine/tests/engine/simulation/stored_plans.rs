//! Plans that were written, read back and run: the run is the same. What is stored of a run has no
//! secrets, and says what it lacks.

use brunt_engine::{PrepareError, RunError, prepare_simulated};
use brunt_load::{ArrivalProcess, ReplyMatch, RequestOrder, Schedule, Target, Withheld};
use brunt_load::{
    ClientIdentity, Plan, ProtocolSpec, RequestSet, RequestSpec, Stage, WebSocketExchange,
};
use brunt_testkit::{SimMachine, SimSettings};

use super::random_plans::Case;
use super::{open_loop, plan, textbook};
use crate::common::{S, US, change_request, many, simulate};

/// What may be secret in a plan.
const SECRET: &str = "hush-hush";

fn read_back(plan: &Plan) -> Plan {
    let text = serde_json::to_string(plan).expect("a plan serialises");
    serde_json::from_str(&text).expect("its own form")
}

/// Expects that a plan, and the same plan after it was stored and read, make equal runs.
fn expect_equal_runs(plan: Plan, settings: &SimSettings, what: &str) {
    let read = read_back(&plan);
    assert_eq!(read, plan, "{what}");
    let outcome = |plan| simulate(plan, settings).map_err(|error| error.to_string());
    let (first, second) = (outcome(plan), outcome(read));
    assert!(first == second, "{what}: the runs differ");
}

#[test]
fn a_plan_that_was_read_back_gives_an_equal_run() {
    type Kind = (&'static str, fn(Case) -> Case);
    let kinds: [Kind; 7] = [
        ("HTTP/1.1", |case| case),
        ("TLS", Case::over_tls),
        ("HTTP/2", |case| case.over_http2().of_reference(false)),
        ("messages", Case::over_messages),
        ("WebSocket", Case::over_websocket),
        ("held", Case::held),
        ("streams", Case::of_streams),
    ];
    for (what, kind) in kinds {
        for seed in 0..12 {
            let case = kind(Case::of(seed));
            expect_equal_runs(case.plan, &case.settings, &format!("{what}, seed {seed}"));
        }
    }
    let stage = |from_per_s, to_per_s| Stage {
        duration_ns: S,
        from_per_s,
        to_per_s,
    };
    let stages = vec![stage(0.0, 500.0), stage(500.0, 100.0)];
    let schedule = Schedule::staged(ArrivalProcess::Poisson, stages, 5).expect("stages");
    let staged = open_loop(schedule, 8, 2 * S);
    expect_equal_runs(staged, &textbook(800 * US), "stages");
    let requests = ["/a", "/b?c", "/d"].map(RequestSpec::get).to_vec();
    let list = RequestSet::of(requests, RequestOrder::Random { seed: 3 });
    let mut listed = plan();
    listed.traffic.requests = list
        .and_then(|list| list.with_weights(&[3, 1, 2]))
        .expect("a list");
    listed.load.stop.duration_ns = Some(S);
    expect_equal_runs(listed, &textbook(800 * US), "a list");
    let mut post = plan();
    change_request(&mut post, |request| {
        request.method = "POST".to_owned();
        request.headers = vec![("Authorization".to_owned(), SECRET.to_owned())];
        request.body = SECRET.as_bytes().to_vec();
    });
    post.load.stop.duration_ns = Some(S);
    expect_equal_runs(post, &textbook(800 * US), "a body");
}

#[test]
fn the_plan_of_a_run_runs_again_where_nothing_is_secret() {
    let mut first = plan();
    first.load.connections = many(3);
    first.load.stop.duration_ns = Some(S);
    let (run, _) = simulate(first, &textbook(800 * US)).expect("a run");
    let (again, _) = simulate(read_back(&run.plan), &textbook(800 * US)).expect("a run");
    assert!(run == again);
}

/// A plan with all that may be secret.
fn secretive() -> Plan {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("key.pem");
    std::fs::write(&path, SECRET).expect("it is written");
    let mut plan = plan();
    plan.target = Target::parse(&format!("https://simulated/?{SECRET}"), None)
        .expect("a URL")
        .redacted();
    plan.connection.tls.identity = Some(ClientIdentity {
        certificate: path.clone().into(),
        key: path.into(),
    });
    brunt_io::tls_config::read_files(&mut plan.connection.tls).expect("it is read");
    plan.connection.protocol = ProtocolSpec::WebSocket(WebSocketExchange {
        headers: vec![("Cookie".to_owned(), SECRET.to_owned())].into(),
        subprotocols: Vec::new(),
        is_binary: false,
        replies: 1,
        matching: ReplyMatch::Any,
        opening: None,
        ping_interval_ns: None,
        seed: 0,
    });
    change_request(&mut plan, |request| {
        request.headers = vec![("Authorization".to_owned(), SECRET.to_owned())];
        request.body = SECRET.as_bytes().to_vec();
    });
    plan
}

#[test]
fn secrets_go_to_who_runs_the_plan_and_are_not_stored() {
    let plan = secretive();
    assert_eq!(read_back(&plan), plan);
    let stored = read_back(&plan.without_secrets());
    let text = serde_json::to_string(&stored).expect("a plan serialises");
    let coded = "aHVzaC1odXNo";
    assert!(!text.contains(SECRET) && !text.contains(coded), "{text}");
    let mut machine = SimMachine::new(textbook(800 * US));
    let Err(PrepareError::Withheld(missing)) = prepare_simulated(stored, &mut machine) else {
        panic!("secrets are missing");
    };
    let [requests, query, fields, certificate, key] = &missing.0[..] else {
        panic!("{missing:?}");
    };
    assert!(
        matches!(requests, Withheld::Requests { .. }),
        "{requests:?}"
    );
    assert!(matches!(query, Withheld::Query { .. }), "{query:?}");
    assert_eq!(*fields, Withheld::UpgradeFields);
    assert!(matches!(certificate, Withheld::File { .. }));
    assert!(matches!(key, Withheld::File { .. }));
    let words = missing.to_string();
    for word in [
        "Authorization, with a body of 9 bytes",
        "Traffic::requests",
        "Target::path",
        "key.pem",
        "TlsSpec",
    ] {
        assert!(words.contains(word), "{words}");
    }
}

#[test]
fn a_plan_whose_requests_were_generated_needs_what_makes_them() {
    let mut plan = plan();
    plan.traffic.is_generated = true;
    let error = simulate(read_back(&plan), &textbook(800 * US)).map(drop);
    assert!(matches!(error, Err(RunError::NoGenerator)), "{error:?}");
}

#[test]
fn a_file_that_was_not_read_does_not_go_anywhere() {
    let mut plan = plan();
    plan.connection.tls.roots = Some("/nowhere/roots.pem".into());
    assert!(serde_json::to_string(&plan).is_err());
}
