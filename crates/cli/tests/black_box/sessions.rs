//! Connections at a planned rate, each with its requests, and pauses between requests.

use crate::counts_brunt::{agreed, all_answered};
use crate::loads::MACHINERIES;
use crate::support::nginx::Nginx;
use crate::support::serve::Serve;

#[test]
fn connections_come_at_their_rate_to_nginx() {
    let mut nginx = Nginx::start();
    for machinery in MACHINERIES {
        let before = nginx.settled();
        let load = "--connection-rate 50 --requests-per-connection 3 -d 300ms --warmup 100ms";
        let report = machinery.run(load, &nginx.url());
        let received = nginx.settled() - before;
        assert_eq!(all_answered(&report).sent, received, "{machinery:?}");
        assert_eq!(report.arrivals_all().planned, 20, "{machinery:?}");
    }
}

#[test]
fn cut_off_by_a_signal() {
    for machinery in MACHINERIES {
        for load in [
            "--connection-rate 100 --requests-per-connection 3",
            "--connection-rate 100 --requests-per-connection 5 --think-time 20ms -c 4",
        ] {
            let server = Serve::start();
            let report = machinery.run_interrupted(load, &server.url("/"), || {
                server.wait_for_requests(20);
            });
            agreed(machinery, &report, &server);
            assert!(all_answered(&report).sent >= 20);
            let population = report.population();
            assert_eq!(
                population.issued, population.recorded,
                "{machinery:?} {load}"
            );
            assert_eq!(report.arrivals(), report.arrivals_all());
        }
    }
}
