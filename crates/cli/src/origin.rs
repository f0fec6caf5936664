//! What the record of a run holds besides what was measured: how brunt was called and where, what
//! the run was to reach, and what `brunt calibrate` found on this machine.

use brunt_io::backend::Peer;
use brunt_judge::{NoSuccessCause, RunFigures};
use brunt_record::{FailureKind, Objective, Run};

use crate::args::OutputArguments;
use crate::redact::redact;
use crate::{calibration_store, command_line, environment, message, objectives};

/// Limit of the handshake that shows whether TLS is spoken.
const TLS_LIMIT_NS: u64 = 1_000_000_000;

/// What a command knows of its run.
#[derive(Debug, Default)]
pub(crate) struct Origin {
    /// The command line as it may be shown.
    command: Option<Vec<String>>,
    objectives: Vec<Objective>,
    /// What may be secret is left out of the record.
    redacts: bool,
}

impl Origin {
    /// Of a command of brunt.
    pub(crate) fn new(output: &OutputArguments) -> Self {
        Self {
            command: command_line::here(),
            objectives: objectives::asked(&output.objective).unwrap_or_default(),
            redacts: output.redact,
        }
    }

    /// Of a command line of another tool.
    pub(crate) fn of_other_tool(command: Option<Vec<String>>) -> Self {
        Self {
            command,
            ..Self::default()
        }
    }

    /// Completes the record of a run that was just made.
    pub(crate) fn complete(self, run: &mut Run) {
        run.objectives = self.objectives;
        // A simulated run is the same on every machine.
        let machine = (!run.is_simulated()).then(environment::machine);
        for agent in &mut run.agents {
            agent.command.clone_from(&self.command);
            agent.machine.clone_from(&machine);
        }
        add_calibration(run);
        see_whether_tls(run);
        if self.redacts {
            redact(run);
        }
    }
}

/// Whether nothing succeeded because TLS is spoken at that port. Only some servers say so.
fn see_whether_tls(run: &mut Run) {
    let is_clear = run.plan.tls.is_none() && !run.is_streams() && !run.is_simulated();
    // The others would have in their logs what brunt counts nowhere.
    let could_be = run.no_success().is_some_and(|found| {
        matches!(
            found.cause,
            NoSuccessCause::Status(400)
                | NoSuccessCause::Failure(FailureKind::ClosedBeforeReply | FailureKind::Reset)
        )
    });
    let address = run.first().negotiated.address.clone();
    let peer = match &run.plan.unix_socket {
        Some(path) => Some(Peer::Unix(path.into())),
        None => address.parse().ok().map(Peer::Tcp),
    };
    if let (true, true, Some(peer)) = (is_clear, could_be, peer) {
        let speaks_tls = brunt_probe::speaks_tls(&peer, "localhost", TLS_LIMIT_NS);
        for agent in &mut run.agents {
            agent.speaks_tls = speaks_tls;
        }
    }
}

/// What `brunt calibrate` found on this machine. Simulations do not run on it.
fn add_calibration(run: &mut Run) {
    if run.is_simulated() {
        return;
    }
    match calibration_store::load() {
        Ok(calibration) => {
            for agent in &mut run.agents {
                agent.calibration.clone_from(&calibration);
            }
        }
        // The run is as good without it.
        Err(error) => message::print(&format_args!("the calibration is not used: {error:#}")),
    }
}
