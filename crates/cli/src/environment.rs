//! The machine that experiments are made on, as the head of their reports has it.

use brunt_probe::machine;
use brunt_record::Environment;

use crate::command_line;

/// The command and this machine; server and client are added by the rounds.
pub(crate) fn environment() -> Environment {
    Environment {
        command: command_line::here(),
        agents: Vec::new(),
        machine: machine::description(),
        server: None,
        client: None,
    }
}
