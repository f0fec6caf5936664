//! The reference server in virtual time, where the figures are known beforehand.

use brunt_engine::{RunError, prepare_simulated};
use brunt_judge::RunFigures;
use brunt_load::{HttpChoice, Plan, Target};
use brunt_record::{FailureKind, Protocol, Run};
use brunt_server::{Counters, Http2Options};
use brunt_testkit::{Costs, SimMachine, SimSettings};

use super::random_plans::Case;
use super::seeds::checked_seeds;
use super::{even_rate, expect_silences, open_loop, plan};
use crate::common::{
    MS, S, US, broken, by_count, change_request, expect_valid, failed, failures, lifetime, many,
    many_long, reference,
};

/// What is spoken: over TLS or not.
const WIRES: [(&str, HttpChoice); 5] = [
    ("http", HttpChoice::HTTP1),
    ("http", HttpChoice::HTTP2),
    ("https", HttpChoice::HTTP1),
    ("https", HttpChoice::HTTP2),
    ("https", HttpChoice::HTTP3),
];

/// What a server that answers late may cause.
const OF_TIME: [FailureKind; 4] = [
    FailureKind::TimedOut,
    FailureKind::ConnectTimedOut,
    FailureKind::HandshakeTimedOut,
    FailureKind::Unanswered,
];

/// The plan, for `path` over this.
fn to(path: &str, (scheme, http): (&str, HttpChoice), mut plan: Plan) -> Plan {
    let url = format!("{scheme}://simulated{path}");
    plan.target = Target::parse(&url, None).expect("a URL");
    change_request(&mut plan, |request| request.path = path.to_owned());
    plan.connection.protocol = http.into();
    plan.traffic.streams = many(10);
    plan
}

/// Runs 100 µs away from the server; neither brunt's work nor the server's takes time.
pub(super) fn run(plan: Plan) -> (Run, Counters) {
    let settings = SimSettings {
        network_ns: 100 * US,
        costs: Costs::NONE,
        ..reference(Http2Options::default())
    };
    let (run, mut counters) = run_in(settings, plan).expect("a run");
    (run, counters.pop().expect("one worker"))
}

/// Gives what the server of each worker counted, too.
pub(super) fn run_in(settings: SimSettings, plan: Plan) -> Result<(Run, Vec<Counters>), RunError> {
    let mut machine = SimMachine::new(settings);
    let prepared = prepare_simulated(plan, &mut machine).expect("a plan that fits");
    let control = prepared.control();
    let run = prepared.run_in(&mut machine, &control)?;
    Ok((run, machine.reference_counters()))
}

/// Runs, and expects a valid run in which the server found nothing wrong, and no more replies and
/// connections than it counted.
pub(super) fn exact(plan: Plan, settings: &SimSettings, what: &str) -> (Run, Vec<Counters>) {
    let (run, counters) = run_in(settings.clone(), plan).expect("a run");
    expect_valid(&run, what);
    expect_agreement(&run, &counters, what);
    (run, counters)
}

/// What the servers of all workers counted.
pub(super) fn sum(counters: &[Counters], count: fn(&Counters) -> u64) -> u64 {
    counters.iter().map(count).sum()
}

#[test]
fn a_delay_is_kept_to_the_nanosecond() {
    for wire in WIRES {
        let planned = open_loop(even_rate(1_000.0), 10, 5 * S);
        let (run, counters) = run(to("/delay/800us", wire, planned));
        expect_valid(&run, "a delay");
        assert_eq!(failures(&run), [], "{wire:?}");
        let response = &run.latencies.response;
        assert_eq!(response.count(), 5_000, "{wire:?}");
        assert_eq!((response.min_ns(), response.max_ns()), (Some(MS), Some(MS)));
        assert_eq!(counters.requests, lifetime(&run).requests_sent);
        assert_eq!(counters.replies, counters.requests);
        let lateness = (counters.replies_delayed, counters.lateness_ns_max);
        assert_eq!(lateness, (counters.replies, Some(0)), "{wire:?}");
    }
}

/// By GOAWAY, REFUSED_STREAM and H3_REQUEST_REJECTED.
#[test]
fn what_the_server_did_not_process_is_sent_again() {
    for wire in [WIRES[1], WIRES[3], WIRES[4]] {
        for (path, requests_max) in [("/", Some(many_long(53))), ("/random-refuse/20", None)] {
            let what = format!("{wire:?}, {path}");
            let mut planned = plan();
            planned.traffic.sends_again = true;
            planned.load.connections = many(2);
            by_count(&mut planned, 1_000);
            let settings = SimSettings {
                network_ns: 100 * US,
                costs: Costs::NONE,
                ..reference(Http2Options {
                    requests_max,
                    ..Http2Options::default()
                })
            };
            let (run, counters) = run_in(settings, to(path, wire, planned)).expect("a run");
            expect_valid(&run, &what);
            assert_eq!(failures(&run), [], "{what}");
            let (lifetime, replies) = (lifetime(&run), counters[0].replies);
            assert_eq!((lifetime.requests_sent, replies), (1_000, 1_000), "{what}");
            assert!(lifetime.sent_again > 0, "{what}");
        }
    }
}

/// Whatever timers of QUIC run meanwhile: of acknowledgements, which may wait for 25 ms, of what
/// may be lost, and of pacing.
#[test]
fn a_delay_over_http3_is_kept_however_many_connections_and_streams_there_are() {
    for connections in [1, 100] {
        let mut closed = plan();
        closed.load.connections = many(connections);
        closed.load.stop.duration_ns = Some(100 * MS / u64::from(connections.min(5)));
        let open = open_loop(even_rate(1_000.0), connections, S);
        for planned in [open, closed] {
            let (run, counters) = run(to("/delay/800us", WIRES[4], planned));
            expect_valid(&run, "a delay");
            assert_eq!(failures(&run), [], "{connections} connections");
            let response = &run.latencies.response;
            assert!(response.count() >= 900, "{connections} connections");
            assert_eq!((response.min_ns(), response.max_ns()), (Some(MS), Some(MS)));
            assert_eq!(counters.lateness_ns_max, Some(0));
            assert_eq!(lifetime(&run).quic.packets_lost, 0);
        }
    }
}

#[test]
fn response_times_show_every_silence() {
    for wire in WIRES {
        let mut planned = open_loop(even_rate(1_000.0), 10, 20 * S);
        planned.load.warmup_ns = 200 * MS;
        let (run, counters) = run(to("/stall/100ms/1s", wire, planned));
        expect_valid(&run, "silences");
        assert_eq!(counters.replies, lifetime(&run).replies.total());
        expect_silences(&run, 2 * MS, &format!("{wire:?}"));
    }
}

/// A run goes on, and counts each request once, whatever a server of HTTP/2 does wrong.
#[test]
fn malformed_answers_over_http2_leave_equal_counts() {
    let kinds = "bad-field bad-hpack bad-padding cut-head data-first empty endless-empty-data \
                 endless-head endless-interim endless-pings endless-settings ending-interim \
                 extra-bytes growing-goaway half-head idle-stream large-frame lone-continuation \
                 no-status push short-body stream-zero window-overflow zero-increment";
    for kind in kinds.split(' ') {
        let mut planned = plan();
        planned.load.connections = many(2);
        by_count(&mut planned, 30);
        planned.limits.timeout_ns = 20 * MS;
        let path = format!("/malformed/{kind}");
        let (run, _) = run(to(&path, WIRES[1], planned));
        expect_valid(&run, kind);
        let (sent, summary) = (lifetime(&run).requests_sent, run.summary());
        let ended = summary.population.recorded + summary.population.failed;
        assert_eq!((sent, ended), (30, 30), "{kind}");
    }
}

#[test]
fn random_plans_keep_every_invariant_against_the_reference_server() {
    for seed in checked_seeds(100, 100) {
        let case = Case::of(seed);
        let case = if seed % 3 == 0 {
            case
        } else {
            case.over_http2()
        };
        let case = case.of_reference(seed % 2 == 0);
        let case = if seed % 10 == 0 { case.held() } else { case };
        keeps_every_invariant(case, seed);
    }
}

/// Whatever the network does to datagrams.
#[test]
fn random_plans_over_http3_keep_every_invariant() {
    // Each takes a third of a second, some eight times as long as one over HTTP/1.1.
    for seed in checked_seeds(20, 28) {
        keeps_every_invariant(Case::of(seed).over_http3(), seed);
    }
}

#[test]
fn random_plans_over_websocket_keep_every_invariant() {
    for seed in checked_seeds(100, 100) {
        keeps_every_invariant(Case::of(seed).over_websocket(), seed);
    }
}

#[test]
fn sessions_of_quic_are_not_resumed() {
    let mut planned = to("/", WIRES[4], plan());
    planned.connection.tls.resumption = true;
    let mut machine = SimMachine::new(reference(Http2Options::default()));
    let error = prepare_simulated(planned, &mut machine).expect_err("over QUIC");
    let words = "sessions of TLS are resumed over TCP alone";
    assert!(format!("{error:?}").contains(words), "{error:?}");
}

/// Runs a case against the reference server.
fn keeps_every_invariant(case: Case, seed: u64) {
    let what = format!("seed {seed}: {}", case.plan.target.path);
    let is_faultless = case.is_faultless();
    let has_late_wake_ups = case.settings.late_wake_ups.is_some();
    // Each attempt may fail, or an interrupt come before there is a measurement.
    let Ok((run, counters)) = run_in(case.settings, case.plan) else {
        return;
    };
    // A brunt that wakes up late replaces connections late.
    let excused: &[&str] = if has_late_wake_ups { &["L1"] } else { &[] };
    let broken = broken(&run, excused);
    assert!(broken.is_empty(), "{what}: {broken:#?}");
    expect_agreement(&run, &counters, &what);
    let kinds = failures(&run);
    let unexplained = kinds.iter().find(|(kind, _)| !OF_TIME.contains(kind));
    assert!(!is_faultless || unexplained.is_none(), "{what}: {kinds:?}");
}

/// Expects that brunt counted no more than the servers of all workers, as much where nothing
/// failed, and that these found nothing wrong.
fn expect_agreement(run: &Run, counters: &[Counters], what: &str) {
    let sum = |count| sum(counters, count);
    let lifetime = lifetime(run);
    let upgrades = sum(|server| server.connections_websocket);
    let messages = sum(|server| server.websocket_messages_received);
    let requests = sum(|server| server.requests) - upgrades + messages;
    assert!(requests <= lifetime.sends(), "{what}");
    let mut replies =
        sum(|server| server.replies) + sum(|server| server.websocket_messages_answered);
    let in_flight = run.summary().in_flight_at_end;
    if failed(run) + in_flight + lifetime.sent_again + sum(|server| server.faults) == 0 {
        let sent = (lifetime.sends(), lifetime.replies.total() + upgrades);
        assert_eq!(sent, (requests, replies), "{what}");
    }
    // With `/interim` and several replies each of them counts once, and `/malformed` gives some.
    replies += sum(|server| *server.faults_by_kind.get("raw").unwrap_or(&0));
    let request = run.plan.traffic.requests.first();
    if request.is_some_and(|request| request.to_spec().method == "HEAD") {
        // Without its body a truncated answer is whole: a fault to the server alone.
        replies += sum(|server| *server.faults_by_kind.get("truncated").unwrap_or(&0));
    }
    assert!(lifetime.replies.total() <= replies, "{what}");
    assert!(lifetime.goaways <= sum(|server| server.goaways), "{what}");
    if run.protocol() != Protocol::HTTP3 {
        // Over QUIC the client's last flight may be lost.
        let accepted = sum(|server| server.connections_accepted);
        assert!(lifetime.connections_opened <= accepted, "{what}");
    }
    // They find nothing wrong with what brunt sends.
    let wrong = [
        sum(|server| server.requests_malformed),
        sum(|server| server.websocket_refused),
        sum(|server| server.http2_errors),
    ];
    assert_eq!(wrong, [0, 0, 0], "{what}");
}
