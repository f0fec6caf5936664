//! I6 and R1 to R3: what the link, memory, workers and limits allow.

use brunt_record::{GeneratorUse, NameRecord, NetworkEvidence, Protocol, Route};

use crate::invariants::sample::nonzero;
use crate::invariants::tests::*;

/// Payload received by the sample run in its window of 2 s, bytes per second, to 1 %: some 8,000
/// replies per second of 220 bytes.
const RECEIVED_PER_S: f64 = 1_760_000.0;

/// The run through a network of this kind.
fn through(run: &mut Run, route: Route) {
    run.agents[0].evidence.interval_ns = WINDOW.length_ns();
    run.agents[0].evidence.network = Some(NetworkEvidence {
        route,
        tcp: None,
        conntrack: None,
        time_wait: None,
    });
}

/// The run through an interface whose link carries `times` the payload received; it counted
/// `counted_times` of it in either direction.
fn through_link(run: &mut Run, times: f64, counted_times: f64) {
    let counted_bytes = (RECEIVED_PER_S * 2.0 * counted_times) as u64;
    through(
        run,
        Route::Interface {
            name: "eth0".to_owned(),
            link_bits_per_s: Some((RECEIVED_PER_S * 8.0 * times) as u64),
            was_given: false,
            received_bytes: counted_bytes,
            sent_bytes: counted_bytes,
            dropped_packets: 0,
        },
    );
}

#[test]
fn payload_fits_the_link() {
    verify([
        broken("I6", "more received than the link carries", |run| {
            through_link(run, 0.9, 0.5)
        }),
        broken("I6", "the same, of a link that counted nothing", |run| {
            through_link(run, 0.9, 0.0)
        }),
        broken("I6", "the same, with no reading of the interface", |run| {
            through_link(run, 0.9, 2.0);
            run.agents[0].evidence.interval_ns = 0;
        }),
        broken("I6", "more sent than the link carries", |run| {
            through_link(run, 1.5, 1.5);
            first(run).tallies.measure.bytes_sent += 6_000_000;
        }),
        flagged("I6", "a speed that the interface itself exceeds", |run| {
            through_link(run, 0.5, 1.1)
        }),
        held("I6", "a link that is nearly full", |run| {
            through_link(run, 1.03, 1.0)
        }),
        held("I6", "requests that are not yet sent", |run| {
            through_link(run, 1.1, 1.1);
            run.agents[0].negotiated.request_bytes = 1_000_000;
            first(run).tallies.measure.bytes_sent += 8_000_000;
        }),
        not_applicable("I6", "a link of unknown speed", |run| {
            through_link(run, 0.5, 0.5);
            if let Some(NetworkEvidence {
                route: Route::Interface {
                    link_bits_per_s, ..
                },
                ..
            }) = &mut run.agents[0].evidence.network
            {
                *link_bits_per_s = None;
            }
        }),
        not_applicable("I6", "a Unix socket", |run| through(run, Route::UnixSocket)),
        not_applicable("I6", "a way that is not known", |run| {
            through(run, Route::Unknown)
        }),
        not_applicable("I6", "simulated", |run| {
            through_link(run, 0.5, 0.5);
            run.agents[0].backend = Backend::Sim;
        }),
        not_applicable("I6", "interrupted in warm-up", |run| {
            interrupted_in_warmup(run);
            through_link(run, 0.5, 0.5);
        }),
    ]);
}

/// A log and names grow with what was sent.
#[test]
fn what_was_asked_for_belongs_to_the_budget_of_memory() {
    let outcome = |change: &dyn Fn(&mut Run)| {
        let mut run = run();
        run.agents[0].host.peak_resident_bytes = 200 << 20;
        change(&mut run);
        outcome_of("R1", &Facts::of(&run)).status
    };
    assert_eq!(outcome(&|_| {}), InvariantStatus::Broken);
    let logged = |most: u64| {
        move |run: &mut Run| {
            run.agents[0].limits.logged_requests_max = most;
            run.agents[0].workers[0].population.issued = 2_000_000;
        }
    };
    assert_eq!(outcome(&logged(4_000_000)), InvariantStatus::Held);
    assert_eq!(outcome(&logged(100_000)), InvariantStatus::Broken);
    let named = |names: usize| move |run: &mut Run| run.names = vec![NameRecord::default(); names];
    assert_eq!(outcome(&named(1 << 20)), InvariantStatus::Held);
    assert_eq!(outcome(&named(1 << 10)), InvariantStatus::Broken);
}

#[test]
fn resources() {
    verify([
        broken("R1", "memory beyond every budget", |run| {
            run.agents[0].host.peak_resident_bytes = 130 << 20
        }),
        not_applicable("R1", "memory of a script", |run| {
            run.agents[0].host.peak_resident_bytes = 1 << 40;
            run.agents[0].workers[0].generator = Some(GeneratorUse::default());
        }),
        held("R1", "a large body", |run| {
            run.agents[0].negotiated.request_bytes = 100 << 20;
            run.agents[0].host.peak_resident_bytes = 500 << 20;
        }),
        held("R1", "a list and what a script held", |run| {
            run.agents[0].limits.planned_bytes = 400 << 20;
            run.agents[0].host.peak_resident_bytes = 600 << 20;
        }),
        broken("R1", "more than twice a list", |run| {
            run.agents[0].limits.planned_bytes = 400 << 20;
            run.agents[0].host.peak_resident_bytes = 1_000 << 20;
        }),
        held("R1", "windows filled behind gaps", |run| {
            run.agents[0].negotiated.protocol = Protocol::HTTP3;
            run.agents[0].host.peak_resident_bytes = 200 << 20;
        })
        .on(http2_run),
        not_applicable("R1", "with the server", |run| {
            run.agents[0].own_server = true;
            run.agents[0].host.peak_resident_bytes = 130 << 20;
        }),
        broken("R2", "more workers than CPUs", |run| {
            run.agents[0].host.usable_cpus = 1
        }),
        flagged("R2", "more workers than CPUs, as forced", |run| {
            run.agents[0].host.usable_cpus = 1;
            run.plan.workers.oversubscribe = true;
        }),
        not_applicable("R2", "simulated", |run| {
            run.agents[0].host.usable_cpus = 1;
            run.agents[0].backend = Backend::Sim;
        }),
        broken("R2", "a worker did not report", |run| {
            run.plan.workers.count = nonzero(3)
        }),
        broken("R3", "too few descriptors", |run| {
            run.agents[0].limits.descriptors_limit = 39
        }),
        broken("R3", "too few ports", |run| {
            run.agents[0].limits.ports_available = Some(7)
        }),
        broken("R3", "too little memory", |run| {
            run.agents[0].limits.memory_available_bytes = Some(1 << 20)
        }),
        held("R3", "a Unix socket", |run| {
            run.agents[0].limits.ports_needed = None;
            run.agents[0].limits.ports_available = None;
        }),
    ]);
}
