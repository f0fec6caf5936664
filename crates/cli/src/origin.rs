//! What a command knows of its run besides what is measured: how it was called, and what the run is
//! to reach.

use brunt_record::{Objective, Run};

use crate::args::OutputArguments;
use crate::redact::redact;
use crate::{command_line, objectives};

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
    /// The origin of a run that a command of brunt makes.
    pub(crate) fn new(output: &OutputArguments) -> Self {
        Self {
            command: command_line::here(),
            objectives: objectives::asked(&output.objective).unwrap_or_default(),
            redacts: output.redact,
        }
    }

    /// The origin of a run of which nothing but a command line is known here: that of another tool,
    /// or of an agent.
    pub(crate) fn of_command(command: Option<Vec<String>>) -> Self {
        Self {
            command,
            ..Self::default()
        }
    }

    /// Completes the record of a run that was just made.
    pub(crate) fn complete(self, run: &mut Run) {
        let origin = brunt_engine::Origin {
            command: self.command,
            objectives: self.objectives,
        };
        brunt_engine::complete(run, &origin);
        if self.redacts {
            redact(run);
        }
    }
}
