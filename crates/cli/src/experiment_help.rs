//! The help of experiments of several rounds: options that mean something else there than in a run,
//! and those that are refused.

use clap::Arg;

use crate::refusals::{self, EXPERIMENT, Refusal};

/// An experiment, as its help differs from that of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExperimentHelp {
    /// Length of a round's window where none is typed.
    pub(crate) window: &'static str,
    /// What `--warmup` is.
    pub(crate) warmup: &'static str,
    /// What `--objective` is; absent where it is as for a run.
    pub(crate) objective: Option<&'static str>,
    /// What is refused beside options about a single run.
    pub(crate) refused: Refusal,
}

pub(crate) const SWEEP: ExperimentHelp = ExperimentHelp {
    window: "1s",
    warmup: "Load before all rounds, at the largest value, not counted [default: 1s]",
    objective: None,
    refused: refusals::SWEEP,
};

pub(crate) const FIND: ExperimentHelp = ExperimentHelp {
    window: "2s, or as long as the objectives need",
    warmup: "Load at the start of each round, not counted [default: 500ms]",
    objective: None,
    refused: refusals::SEARCH,
};

pub(crate) const COMPARE: ExperimentHelp = ExperimentHelp {
    window: "2s",
    warmup: "Load at the start of each round, not counted [default: 500ms]",
    objective: Some(
        "Compare the highest rates that hold these, as in 'p99 < 10ms, errors < 0.1%', by a search \
         of each server; may be given again",
    ),
    refused: refusals::COMPARE,
};

impl ExperimentHelp {
    fn refuses(self, id: &str) -> bool {
        let refusals = [EXPERIMENT, self.refused];
        refusals.iter().any(|refusal| refusal.has(id))
    }

    /// An option as the help of this experiment has it.
    pub(crate) fn of(self, option: Arg) -> Arg {
        match option.get_id().as_str() {
            "url" => option.help(
                "URL of the server: http[s]://HOST[:PORT]/PATH, ws[s]:// for messages of \
                 WebSocket, or tcp://HOST:PORT and tls://HOST:PORT for messages as brunt tcp has \
                 them",
            ),
            "messages" => option.help(
                "Message to send where the URL is ws://, wss://, tcp:// or tls://; as with \
                 brunt tcp. Several are sent in turns, or as --order says",
            ),
            "duration" => option.help(format!(
                "Length of the measure phase of each round [default: {}]",
                self.window
            )),
            "warmup" => option.help(self.warmup),
            "objective" if let Some(words) = self.objective => option.help(words),
            "max_rate" if self.objective.is_some() => option
                .help("With --objective: highest rate to try, requests per second")
                .help_heading("Comparison")
                .requires("objective"),
            "http3" => option.help(
                "Speak HTTP/3, over UDP, without asking whether the server does (prior knowledge)",
            ),
            id if self.refuses(id) => option.hide(true),
            _ => option,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Arguments;

    #[test]
    fn what_is_refused_is_in_no_help() {
        for (name, help) in [("sweep", SWEEP), ("find", FIND), ("compare", COMPARE)] {
            let mut command = Arguments::command();
            let command = command.find_subcommand_mut(name).expect(name);
            let shown = command.render_long_help().to_string();
            assert!(shown.contains(help.warmup.split('[').next().expect("words")));
            assert!(!shown.contains("built-in"), "{name}: {shown}");
            // The line of an option begins with its names.
            let is_listed = |long: &str| {
                let mut heads = shown.lines().map(|line| line.trim_start().split(' '));
                heads.any(|mut words| {
                    let first = words.next().unwrap_or_default();
                    first == long || first.ends_with(',') && words.next() == Some(long)
                })
            };
            assert!(is_listed("--duration") && is_listed("--max-connections"));
            for id in EXPERIMENT.options().chain(help.refused.options()) {
                let option = command.get_arguments().find(|it| it.get_id() == id);
                let long = option.and_then(Arg::get_long).expect(id);
                assert!(!is_listed(&format!("--{long}")), "{name} {id}: {shown}");
            }
        }
    }
}
