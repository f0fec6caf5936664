//! Every signal at every grade, every rule both ways, and runs that make no sense.

mod any_run;
mod rules;
mod sample;
mod signals;

use super::case::Case;
use super::{Grade, Judgement, Side, Signal};
use crate::Run;
use crate::invariants::sample::MS;
use crate::{ServerEvidence, StatusCounts, TcpCounters, ThreadUse};

/// A change to a run.
type Bend = fn(&mut Run);

fn signal(judgement: &Judgement, id: &str) -> Signal {
    let found = judgement.signals.iter().find(|signal| signal.id == id);
    found.unwrap_or_else(|| panic!("no signal {id}")).clone()
}

fn server(run: &mut Run) -> &mut ServerEvidence {
    run.evidence.server.as_mut().expect("a server")
}

fn tcp(run: &mut Run) -> &mut TcpCounters {
    let network = run.evidence.network.as_mut().expect("a network");
    network.tcp.as_mut().expect("counters")
}

fn thread(run: &mut Run) -> &mut ThreadUse {
    run.workers[1].thread.as_mut().expect("a thread")
}

/// All workers' threads, busy for so many milliseconds of 2,000.
fn busy_for(run: &mut Run, ms: u64) {
    for worker in &mut run.workers {
        let thread = worker.thread.as_mut().expect("a thread");
        thread.cpu_user_ns = 0;
        thread.cpu_system_ns = ms * MS;
    }
    // The process is at least as busy as its threads.
    run.host.cpu_user_ns = 0;
    run.host.cpu_system_ns = 2 * ms * MS;
}

/// The server's CPU, in milliseconds of 2,000 on each of two CPUs.
fn server_busy_for(run: &mut Run, ms: u64) {
    let server = server(run);
    server.cpu_user_ns = 0;
    server.cpu_system_ns = ms * MS;
}

/// The status of the first `count` replies in the window of the first worker.
fn answered_with(run: &mut Run, status: u16, count: u64) {
    let replies = &mut run.workers[0].tallies.measure.replies;
    let total = replies.total();
    *replies = StatusCounts::default();
    (0..count).for_each(|_| replies.add(status));
    (count..total).for_each(|_| replies.add(200));
}
