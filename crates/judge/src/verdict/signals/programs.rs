//! The signal of other programs on the CPUs of client and server.

use super::super::facts::{RunFacts, ratio};
use super::super::thresholds::{RUN_WAIT_FAIL, SERVER_FAIL};
use super::super::words::program;
use super::Reading;
use crate::CpuLedger;
use crate::units::short::{cpus, percent};

/// Share of the CPUs of client and server that other programs used, from which on they disturb
/// whoever waits for one.
const TAKEN_BY_OTHERS_FAIL: f64 = 0.05;

/// What other programs used of the CPUs that brunt or the server may use. A server on this machine
/// that was not watched is one of those programs: then nobody knows who took what from whom.
pub(super) fn other_programs(facts: &RunFacts<'_>) -> Reading {
    let is_server_unseen = facts.is_local() && facts.server().is_none();
    if is_server_unseen && !facts.run.is_simulated() {
        return Reading::unknown("the server was not watched, and would count as another program");
    }
    let wanted = facts.agent.cpus_of_both();
    let ledger = CpuLedger::over(facts.agent, |cpu| wanted.contains(&cpu));
    let Some((ledger, others_ns)) = ledger.and_then(|it| it.others_ns.map(|ns| (it, ns))) else {
        return Reading::unknown("other programs were not read");
    };
    let used = ledger.in_cpus(others_ns);
    let share = ratio(used, ledger.cpus.into()).unwrap_or(0.0);
    let mut words = format!(
        "other programs used {used:.2} of {}",
        cpus(ledger.cpus.into())
    );
    if let Some(largest) = ledger
        .others
        .first()
        .filter(|_| share >= TAKEN_BY_OTHERS_FAIL)
    {
        let of_it = ledger.in_cpus(largest.cpu_ns);
        words = format!("{words} ({} {of_it:.2})", program(&largest.name));
    }
    let waited = |share: Option<f64>| share.filter(|&share| share >= RUN_WAIT_FAIL);
    let client = waited(facts.threads.and_then(|threads| threads.waited));
    let of_others = |_: &f64| facts.others_took_from_server(used);
    let server = waited(facts.server_run_wait()).filter(of_others);
    // A server that has all the CPU that it may have is measured, whatever brunt waits for.
    let is_full = facts.server_use().is_some_and(|used| used >= SERVER_FAIL);
    let who = match (client, server) {
        _ if share < TAKEN_BY_OTHERS_FAIL => return Reading::healthy(words),
        (_, Some(share)) => format!("the server waited for a CPU {} of its time", percent(share)),
        (Some(share), None) if !is_full => {
            format!("brunt waited for a CPU {} of the time", percent(share))
        }
        _ => return Reading::healthy(format!("{words}, and nobody waited for one")),
    };
    Reading::fail(format!("{words} while {who}"))
}
