//! Requests at a planned rate: what is planned, what is sent, what waits, and what becomes of it.

use crate::counts_brunt::{all_answered, compare};
use crate::loads::MACHINERIES;
use crate::support::BACKENDS;
use crate::support::nginx::Nginx;
use crate::support::process::brunt;
use crate::support::run::{Arrivals, RunReport, run};
use crate::support::serve::Serve;

const MS: u64 = 1_000_000;

/// Planned, and all of it sent.
fn all_sent(planned: u64) -> Arrivals {
    Arrivals {
        planned,
        sent: planned,
        skipped: 0,
        unsent: 0,
    }
}

/// A rate is kept to the last request, whatever replies do.
fn assert_kept(report: &RunReport, in_window: u64, in_all: u64) {
    assert_eq!(report.arrivals(), all_sent(in_window));
    assert_eq!(report.arrivals_all(), all_sent(in_all));
    assert_eq!(all_answered(report).sent, in_all);
    let population = report.population();
    assert_eq!(
        (population.issued, population.recorded),
        (in_window, in_window)
    );
    // Each was late by something, if only by nanoseconds.
    assert_eq!(report.number("/summary/lag/count"), in_window);
}

#[test]
fn a_constant_rate_against_nginx() {
    let mut nginx = Nginx::start();
    for machinery in MACHINERIES {
        let before = nginx.settled();
        let load = "-r 200 -c 4 -d 300ms --warmup 100ms";
        let report = machinery.run(load, &nginx.url());
        assert_eq!(nginx.settled() - before, 80, "{machinery:?}");
        assert_kept(&report, 60, 80);
    }
}

#[test]
fn stages_end_on_time() {
    compare(
        "/",
        "--stages 200ms:50..150,300ms:150,100ms:0 -c 4 --warmup 100ms",
        |report, _| {
            // The warm-up is at the first rate: 5. Then 20, 45 and none.
            let window = report.arrivals();
            assert!((64..=66).contains(&window.planned), "{window:?}");
            assert_eq!(window.planned, window.sent);
            assert_eq!(report.number("/summary/window_ns"), 600 * MS);
            let end_ns = report.edge_ns("measure_end");
            assert_eq!(end_ns, report.edge_ns("measure_end_planned"));
            let stages = report.at("/plan/model/open/schedule/stages").as_array();
            assert_eq!(stages.map(Vec::len), Some(3));
            let planned = [0, 1, 2].map(|stage| {
                let of = |field: &str| report.number(&format!("/summary/stages/{stage}/{field}"));
                assert_eq!(of("successes"), of("arrivals/planned"), "stage {stage}");
                assert_eq!(of("response/count"), of("successes"), "stage {stage}");
                of("arrivals/planned")
            });
            assert!((19..=21).contains(&planned[0]), "{planned:?}");
            assert!((44..=46).contains(&planned[1]), "{planned:?}");
            assert_eq!(planned.iter().sum::<u64>(), window.planned);
            all_answered(report);
        },
    );
}

#[test]
fn overload_is_said() {
    let server = Serve::start();
    // Two connections and 10 ms per reply: 200 a second at most, on any machine.
    let load = "-r 600 -c 2 -t 1 -d 1s --warmup 0s --drain 100ms -T 10m";
    for backend in BACKENDS {
        let options = format!("--backend {backend} {load} {}", server.url("/delay/10ms"));
        let report = run(&options);
        let arrivals = report.arrivals();
        assert_eq!((arrivals.planned, arrivals.skipped), (600, 0));
        assert!(arrivals.unsent > 200, "{arrivals:?}");
        let capacity = report.at("/summary/overload/capacity_per_s").as_f64();
        assert!(capacity.is_some_and(|per_s| per_s <= 204.0), "{capacity:?}");
        let response = report.at("/summary/response");
        assert!(response["at_least_ns"]["p90"].is_u64(), "{response}");
        let text = brunt(&options).stdout;
        for words in ["open loop", "600 planned", "overloaded", "≥"] {
            assert!(text.contains(words), "{words}: {text}");
        }
    }
}

#[test]
fn a_seed_repeats_the_plan_whatever_the_server_does() {
    let server = Serve::start();
    let planned = |options: &str, path: &str| {
        let url = server.url(path);
        let report = run(&format!(
            "-r 300 -c 4 -d 300ms --warmup 50ms --arrivals poisson {options} {url}"
        ));
        let seed = report.number("/agents/0/seeds/arrivals");
        let of_workers = ["/arrivals/planned", "/arrivals_all/planned"].map(|count| {
            [0, 1].map(|worker| {
                report
                    .at(&format!("/agents/0/workers/{worker}{count}"))
                    .as_u64()
            })
        });
        (seed, of_workers)
    };
    let two = "-t 2 --oversubscribe";
    let first = planned(two, "/");
    let again = format!("{two} --seed {} --drain 0s -T 10m", first.0);
    assert_eq!(planned(&again, "/never"), first);
    let other = planned(two, "/");
    assert_ne!(other.0, first.0, "every run has a seed of its own");
}

#[test]
fn stamps_tell_the_own_share_of_what_they_are_taken_on() {
    let server = Serve::start();
    for backend in BACKENDS {
        for load in ["-n 60 -c 20", "-n 60 -c 20 -r 300"] {
            let own = |stamps: &str| {
                let url = server.url("/");
                let options = format!("--backend {backend} -t 1 {load} {stamps} {url}");
                run(&options).number("/latencies/split/own/count")
            };
            assert_eq!(own("--stamps off"), 0, "{backend} {load}");
            assert_eq!(own("--stamps full"), 60, "{backend} {load}");
            let sampled = own("");
            assert!((1..60).contains(&sampled), "{backend} {load}: {sampled}");
        }
    }
}

#[test]
fn polling_can_be_forced_and_forbidden() {
    let server = Serve::start();
    for backend in BACKENDS {
        let spun = |spin: &str| {
            let url = server.url("/");
            let options = format!("--backend {backend} -t 1 -r 20 -d 200ms --warmup 0s");
            run(&format!("{options} --spin {spin} {url}")).number("/agents/0/workers/0/spun_ns")
        };
        assert_eq!(spun("off"), 0, "{backend}");
        assert!(spun("on") > 0, "{backend}");
    }
}
