//! Connections at a planned rate, each with its requests, and pauses between requests.

use crate::counts_brunt::{agreed, all_answered, compare};
use crate::loads::MACHINERIES;
use crate::support::BACKENDS;
use crate::support::nginx::Nginx;
use crate::support::run::run;
use crate::support::serve::Serve;

const MS: u64 = 1_000_000;

#[test]
fn connections_come_at_their_rate() {
    compare(
        "/",
        "--connection-rate 50 --requests-per-connection 3 -d 400ms --warmup 200ms",
        |report, _| {
            assert!(report.at("/plan/model/sessions").is_object());
            assert_eq!(report.number("/plan/connections"), 10_000);
            assert_eq!(report.arrivals().planned, 20);
            let all = report.arrivals_all();
            assert_eq!((all.planned, all.skipped), (30, 0));
            assert_eq!(all.planned, all.sent + all.unsent);
            // The last ones may not have come to their requests.
            let requests = all_answered(report);
            assert!(requests.sent <= 3 * all.sent, "{requests:?}");
            assert!(report.total("connections_opened") <= all.sent);
        },
    );
}

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
fn one_request_each() {
    compare(
        "/",
        "--connection-rate 100 --no-keepalive --arrivals uniform -d 300ms --warmup 0s",
        |report, _| {
            assert_eq!(report.arrivals().planned, 30);
            let sent = all_answered(report).sent;
            assert!(sent <= report.total("connections_opened"), "{sent}");
            // From its planned instant to its first reply: one for each that had one.
            let first = report.number("/latencies/first_reply/count");
            assert_eq!(first, report.population().recorded);
        },
    );
}

#[test]
fn a_number_of_requests() {
    compare(
        "/",
        "--connection-rate 100 --requests-per-connection 4 -n 20",
        |report, _| {
            assert_eq!(all_answered(report).sent, 20);
            let opened = report.total("connections_opened");
            assert!(opened >= 5, "{opened}");
        },
    );
}

#[test]
fn no_more_at_once_than_allowed() {
    compare(
        "/never",
        "--connection-rate 80 --no-keepalive -c 4 -d 500ms --warmup 0s --drain 0s -T 10m",
        |report, _| {
            let arrivals = report.arrivals();
            assert_eq!((arrivals.planned, arrivals.sent), (40, 4));
            assert_eq!(arrivals.unsent, 36);
            assert_eq!(report.total("connections_opened"), 4);
            let population = report.population();
            assert_eq!((population.issued, population.censored), (4, 4));
        },
    );
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

#[test]
fn users_think() {
    compare(
        "/",
        "-c 4 --think-time 100ms -d 350ms --warmup 0s",
        |report, _| {
            // A request at the start, and one after each whole pause.
            let sent = all_answered(report).sent;
            assert!((4..=16).contains(&sent), "{sent}");
            assert_eq!(report.number("/plan/think_time_ns"), 100 * MS);
        },
    );
    compare(
        "/",
        "--connection-rate 20 --requests-per-connection 99 --think-time 100ms -d 350ms --warmup 0s",
        |report, _| {
            // Seven connections, none of them there for more than 350 ms.
            let sent = all_answered(report).sent;
            assert!((1..=28).contains(&sent), "{sent}");
        },
    );
}

#[test]
fn set_up_can_be_slowed_down() {
    let server = Serve::start();
    for backend in BACKENDS {
        let url = server.url("/");
        let report = run(&format!(
            "--backend {backend} -t 1 -c 10 --connection-rate 50 -n 20 {url}"
        ));
        assert!(report.at("/plan/model/closed").is_object());
        let setup_ns = report.edge_ns("warmup_start") - report.edge_ns("setup_start");
        assert!(setup_ns >= 9 * 20 * MS, "{backend}: {setup_ns}");
        assert_eq!(all_answered(&report).sent, 20, "{backend}");
        assert_eq!(report.total("connections_opened"), 10, "{backend}");
    }
}
