//! A protocol over datagrams in simulation, where the network loses, repeats and reorders them.

use std::num::{NonZeroU16, NonZeroU32};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use brunt_judge::{InvariantStatus, RunFigures, check};
use brunt_load::Plan;
use brunt_record::{FailureKind, Tally};
use brunt_testkit::{
    Costs, DatagramCounts, DatagramFault, DatagramNetwork, Outage, PlannedFault, ServiceTime,
    SimCounts, SimMachine, SimSettings,
};

use super::*;
use crate::prepare::prepare_simulated;
use crate::protocol::{Echo, EchoCounts, echo_plan};
use crate::workload::Requests;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;
const DATAGRAM_BYTES: u16 = 1_200;
const DEPTH: u32 = 8;
const CONNECTIONS: u32 = 4;
/// Much longer than service and network.
const PATIENCE_NS: u64 = 10 * MS;

/// What the tests ask of a run.
struct Outcome {
    run: Run,
    lifetime: Tally,
    counts: SimCounts,
    echo: Arc<EchoCounts>,
}

/// A closed loop for a second.
fn plan() -> Plan {
    let mut plan = echo_plan("simulated:1", CONNECTIONS, DEPTH);
    plan.warmup_ns = 50 * MS;
    plan.stop.duration_ns = Some(S);
    plan.timeout_ns = 2 * S;
    plan.drain_limit_ns = 2 * S;
    plan
}

/// A server that takes 800 us, behind this network.
fn settings(datagrams: DatagramNetwork) -> SimSettings {
    let mut settings = SimSettings::new(7);
    settings.server.service = ServiceTime::Constant(800 * US);
    settings.datagrams = datagrams;
    settings
}

/// How a round ends, and what was counted.
fn attempt(
    plan: Plan,
    settings: SimSettings,
) -> (Result<Run, RunError>, SimCounts, Arc<EchoCounts>) {
    let mut machine = SimMachine::new(settings);
    let depth = plan.pipeline.get();
    let prepared = prepare_simulated(plan, &mut machine).expect("a plan that fits");
    let control = prepared.control();
    let echo = Arc::<EchoCounts>::default();
    let maker = WorkerMaker {
        machine: &mut machine,
        backends: InMachine(PhantomData),
    };
    let protocol = Echo::new(DATAGRAM_BYTES, PATIENCE_NS, depth, &echo);
    let mut group = maker.run(protocol, Requests);
    let (mut generators, ignore) = (Generators::default(), &mut |_, _: &_| {});
    let run = group.round(&prepared, &control, (&mut generators, ignore));
    drop(group);
    (run, machine.counts(), echo)
}

fn run(plan: Plan, settings: SimSettings) -> Outcome {
    let (run, counts, echo) = attempt(plan, settings);
    let run = run.expect("a run");
    let broken: Vec<_> = check(&run)
        .into_iter()
        .filter(|finding| finding.status == InvariantStatus::Broken)
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
    let outcome = Outcome {
        lifetime: run.summary().lifetime,
        run,
        counts,
        echo,
    };
    expect_all_accounted_for(&outcome);
    outcome
}

/// The same, of a run in which no connection is lost.
fn faithful(plan: Plan, settings: SimSettings) -> Outcome {
    let outcome = run(plan, settings);
    let (lifetime, echo) = (&outcome.lifetime, &outcome.echo);
    let counts = &outcome.counts.datagrams;
    assert_eq!(lifetime.failures.iter().count(), 0);
    // Each connection has an opening beside its requests.
    let first_sends = counts.to_server.sent - echo.again.load(Ordering::Relaxed);
    let exchanged = lifetime.requests_sent + lifetime.connections_opened;
    assert_eq!(first_sends, exchanged);
    let firsts = counts.delivered - echo.stale.load(Ordering::Relaxed);
    assert_eq!(
        firsts,
        lifetime.replies.total() + lifetime.connections_opened
    );
    outcome
}

/// Whatever the network does, every datagram is somewhere.
fn expect_all_accounted_for(outcome: &Outcome) {
    let counts = &outcome.counts.datagrams;
    for way in [&counts.to_server, &counts.to_client] {
        let ends = way.lost + way.too_large + way.arrived;
        assert_eq!(way.sent + way.repeated, ends, "{way:?}");
    }
    let DatagramCounts {
        to_server,
        to_client,
        ..
    } = counts;
    assert_eq!(to_server.arrived, counts.served + counts.refused);
    assert_eq!(counts.served, to_client.sent);
    let taken = counts.delivered + counts.dropped + counts.unclaimed;
    assert_eq!(to_client.arrived, taken);
    let echo = &outcome.echo;
    assert_eq!(echo.sent.load(Ordering::Relaxed), to_server.sent);
    assert_eq!(echo.received.load(Ordering::Relaxed), counts.delivered);
}

/// 800 us of the server, 100 us of the network, and what brunt's work takes.
#[test]
fn requests_over_datagrams_are_answered_by_their_echoes() {
    let mut settings = settings(DatagramNetwork::default());
    settings.costs = Costs::NONE;
    let outcome = faithful(plan(), settings);
    let latencies = &outcome.run.latencies;
    assert_eq!(latencies.response.min_ns(), Some(900 * US));
    assert_eq!(latencies.response.max_ns(), Some(900 * US));
    assert_eq!(latencies.greeting.count(), u64::from(CONNECTIONS));
    let rounds = S / (900 * US);
    let replies = outcome.run.summary().window.replies.total();
    let expected = (rounds - 1) * u64::from(CONNECTIONS * DEPTH)..=(rounds + 2) * 32;
    assert!(expected.contains(&replies), "{replies}");
    assert_eq!(outcome.echo.again.load(Ordering::Relaxed), 0);
    // What is sent at once, comes at once.
    let at_once = outcome.echo.received_at_once.load(Ordering::Relaxed);
    assert_eq!(at_once, u64::from(DEPTH));
}

fn bad_network() -> DatagramNetwork {
    DatagramNetwork {
        lost: 0.02,
        repeated: 0.03,
        held_back: 0.05,
        marked: 0.1,
        held_back_ns: 3 * MS,
        ..DatagramNetwork::default()
    }
}

#[test]
fn what_is_lost_repeated_or_reordered_is_counted_once() {
    let outcome = faithful(plan(), settings(bad_network()));
    let counts = &outcome.counts.datagrams;
    for way in [&counts.to_server, &counts.to_client] {
        assert!(way.lost > 100 && way.repeated > 100 && way.held_back > 100);
        assert!(way.marked > 100, "{way:?}");
    }
    let echo = &outcome.echo;
    // Nothing is given up: all that was lost was sent again.
    let lost = counts.to_server.lost + counts.to_client.lost;
    let again = echo.again.load(Ordering::Relaxed);
    assert!((1..=lost).contains(&again), "{again} of {lost}");
    assert!(echo.stale.load(Ordering::Relaxed) > 100);
    let marked = echo.marked.load(Ordering::Relaxed);
    assert!(marked > counts.to_client.marked / 2, "{marked}");
    let slowest_ns = outcome.run.latencies.response.max_ns().expect("replies");
    assert!(slowest_ns > PATIENCE_NS);
}

#[test]
fn equal_seeds_give_equal_runs() {
    let one = run(plan(), settings(bad_network()));
    let two = run(plan(), settings(bad_network()));
    assert_eq!(one.run, two.run);
    assert_eq!(one.counts, two.counts);
    let mut other = settings(bad_network());
    other.seed += 1;
    assert_ne!(run(plan(), other).counts, one.counts);
}

#[test]
fn a_lost_opening_is_sent_again_while_the_connection_opens() {
    let at_start = |fault| PlannedFault { at_ns: 0, fault };
    let mut plan = plan();
    plan.connections = NonZeroU32::MIN;
    let outcome = faithful(
        plan,
        settings(DatagramNetwork {
            planned: vec![at_start(DatagramFault::Lost); 3],
            ..DatagramNetwork::default()
        }),
    );
    assert_eq!(outcome.echo.again_opening.load(Ordering::Relaxed), 3);
    assert_eq!(outcome.echo.again.load(Ordering::Relaxed), 3);
    let opening_ns = outcome.run.latencies.greeting.min_ns().expect("one");
    let expected_ns = 3 * PATIENCE_NS..3 * PATIENCE_NS + 2 * MS;
    assert!(expected_ns.contains(&opening_ns), "{opening_ns}");
}

/// Nothing else happens on the connection: only a timer asked for after the send can be due.
#[test]
fn a_lost_request_is_sent_again_by_a_timer_that_runs_from_its_send_on() {
    let mut plan = plan();
    (plan.connections, plan.pipeline) = (NonZeroU32::MIN, NonZeroU32::MIN);
    let mut settings = settings(DatagramNetwork {
        planned: vec![PlannedFault {
            at_ns: 200 * MS,
            fault: DatagramFault::Lost,
        }],
        ..DatagramNetwork::default()
    });
    settings.costs = Costs::NONE;
    let outcome = faithful(plan, settings);
    assert_eq!(outcome.echo.again.load(Ordering::Relaxed), 1);
    assert_eq!(outcome.echo.again_opening.load(Ordering::Relaxed), 0);
    let slowest_ns = outcome.run.latencies.response.max_ns();
    assert_eq!(slowest_ns, Some(PATIENCE_NS + 900 * US));
}

#[test]
fn a_planned_fault_meets_one_datagram() {
    let in_window = |at_ms, fault| PlannedFault {
        at_ns: at_ms * MS,
        fault,
    };
    let outcome = faithful(
        plan(),
        settings(DatagramNetwork {
            held_back_ns: 2 * MS,
            planned: vec![
                in_window(200, DatagramFault::Lost),
                in_window(300, DatagramFault::Repeated),
                in_window(400, DatagramFault::HeldBack),
                in_window(500, DatagramFault::Marked),
            ],
            ..DatagramNetwork::default()
        }),
    );
    let counts = &outcome.counts.datagrams;
    let both =
        |of: fn(&brunt_testkit::WayCounts) -> u64| of(&counts.to_server) + of(&counts.to_client);
    assert_eq!(both(|way| way.lost), 1);
    assert_eq!(both(|way| way.repeated), 1);
    assert_eq!(both(|way| way.held_back), 1);
    assert_eq!(both(|way| way.marked), 1);
    assert_eq!(outcome.echo.again.load(Ordering::Relaxed), 1);
    assert_eq!(outcome.echo.stale.load(Ordering::Relaxed), 1);
}

#[test]
fn datagrams_larger_than_the_path_never_arrive() {
    let mut plan = plan();
    plan.connect_timeout_ns = 50 * MS;
    let mut settings = settings(DatagramNetwork::default());
    settings.datagrams.bytes_max = NonZeroU16::new(DATAGRAM_BYTES - 1);
    let (run, counts, _) = attempt(plan, settings);
    let Err(RunError::NoConnection { set_up, .. }) = run else {
        panic!("no connection opens");
    };
    assert!(set_up.failures.get(FailureKind::HandshakeTimedOut) > 0);
    let counts = counts.datagrams;
    assert_eq!(counts.to_server.too_large, counts.to_server.sent);
    assert!(counts.to_server.sent > u64::from(CONNECTIONS));
}

#[test]
fn a_server_that_goes_away_is_told_of_and_comes_back() {
    let mut settings = settings(DatagramNetwork::default());
    settings.server.outage = Some(Outage {
        from_ns: 300 * MS,
        until_ns: 500 * MS,
    });
    let outcome = run(plan(), settings);
    let failures = &outcome.lifetime.failures;
    assert!(failures.get(FailureKind::Reset) >= u64::from(CONNECTIONS));
    assert!(failures.get(FailureKind::ConnectRefused) >= 1);
    assert!(outcome.counts.datagrams.refused > 0);
    assert!(outcome.lifetime.connections_opened > u64::from(CONNECTIONS));
}

#[test]
fn what_finds_the_buffer_of_a_socket_full_is_dropped() {
    let mut settings = settings(DatagramNetwork::default());
    settings.datagrams.socket_bytes_max = 3 * u32::from(DATAGRAM_BYTES);
    let outcome = faithful(plan(), settings);
    assert!(outcome.counts.datagrams.dropped > 0);
    assert!(outcome.echo.again.load(Ordering::Relaxed) > 0);
}
