//! What a run does not find out by itself: how it was called, and what it was asked to reach.

use brunt_io::backend::Peer;
use brunt_judge::{NoSuccessCause, RunFigures};
use brunt_load::Plan;
use brunt_record::{FailureKind, Objective, Run};
use thiserror::Error;

use crate::error::RunError;
use crate::observer::{Phase, Progress};
use crate::prepare::{PrepareError, prepare};

/// Limit of the handshake that shows whether TLS is spoken, nanoseconds.
const TLS_LIMIT_NS: u64 = 1_000_000_000;

/// Where a run comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    /// The command line, a word each, without what may be secret; absent where there is none.
    pub command: Option<Vec<String>>,
    /// What the run is asked to reach.
    pub objectives: Vec<Objective>,
}

/// Why a plan was not run.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The run could not be prepared.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The run could not be made.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Runs a plan from beginning to end, and completes its record: what `brunt -o` stores.
///
/// # Errors
///
/// The plan does not fit this machine, nobody answers, or nothing was measured.
pub fn run(plan: Plan, origin: &Origin) -> Result<Run, LoadError> {
    let prepared = prepare(plan)?;
    let control = prepared.control();
    let mut run = prepared.run(&control, false, &mut |_: Phase, _: &Progress| ())?;
    complete(&mut run, origin);
    Ok(run)
}

/// Adds to a run what it does not know of itself. A simulated one is the same on every machine, and
/// says nothing of it.
pub fn complete(run: &mut Run, origin: &Origin) {
    run.objectives.clone_from(&origin.objectives);
    let is_simulated = run.is_simulated();
    let machine = (!is_simulated).then(brunt_probe::machine::description);
    let speaks_tls = speaks_tls(run);
    for agent in &mut run.agents {
        agent.command.clone_from(&origin.command);
        agent.machine.clone_from(&machine);
        agent.speaks_tls |= speaks_tls;
    }
}

/// Whether nothing succeeded because TLS is spoken at that port. Only some servers say so.
fn speaks_tls(run: &Run) -> bool {
    let is_clear = run.plan.tls().is_none() && !run.is_streams() && !run.is_simulated();
    // The others would have in their logs what brunt counts nowhere.
    let could_be = run.no_success().is_some_and(|found| {
        matches!(
            found.cause,
            NoSuccessCause::Status(400)
                | NoSuccessCause::Failure(FailureKind::ClosedBeforeReply | FailureKind::Reset)
        )
    });
    let address = &run.first().negotiated.address;
    let peer = match &run.plan.target.unix_socket {
        Some(path) => Some(Peer::Unix(path.clone())),
        None => address.parse().ok().map(Peer::Tcp),
    };
    let peer = peer.filter(|_| is_clear && could_be);
    peer.is_some_and(|peer| brunt_probe::speaks_tls(&peer, "localhost", TLS_LIMIT_NS))
}
