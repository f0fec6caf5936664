//! The rule about servers that others load as well, both ways.

use super::bend::*;
use super::rules::{saturated, situation, verify};
use super::sample::open;
use crate::verdict::Verdict;

#[test]
fn a_server_of_several_clients_is_not_measured_by_one() {
    use Verdict::{ClientLimited, ConcurrencyLimited, RateLimited, ServerLimited, SharedServer};
    verify([
        situation(
            "the server is at its end for two",
            |run| {
                saturated(run);
                others(run, 8, 15_000);
            },
            SharedServer,
            "other_clients | all clients together bring it | stop the other clients",
        ),
        situation(
            "which others loaded already before brunt did",
            |run| {
                saturated(run);
                server(run).idle_cpus_used = Some(0.98);
                others(run, 8, 15_000);
            },
            SharedServer,
            "other_clients | all clients together bring it | stop the other clients",
        ),
        situation(
            "by the server's own count",
            |run| {
                saturated(run);
                counted_beyond(run, 9_000);
            },
            SharedServer,
            "other_clients | that the server counts | brunt merge",
        ),
        situation(
            "a browser beside brunt",
            |run| {
                saturated(run);
                others(run, 6, 60);
            },
            ServerLimited,
            "server_cpu | used up its CPU | for its capacity",
        ),
        situation(
            "a server with room for all",
            |run| others(run, 8, 15_000),
            ConcurrencyLimited,
            "connections_busy | more of them | -c",
        ),
        situation(
            "a rate that is met",
            |run| others(run, 8, 15_000),
            RateLimited,
            "planned_rate | was met | for its capacity",
        )
        .on(open),
        situation(
            "a client at its end",
            |run| {
                busy_for(run, 1_960);
                others(run, 8, 15_000);
            },
            ClientLimited,
            "worker_idle | brunt was the limit | machines",
        ),
    ]);
}
