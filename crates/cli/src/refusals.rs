//! Options that a command shares with others and has no use for: it refuses them with a reason, and
//! its help leaves them out.

use anyhow::{Result, bail};
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

/// Options that are refused for one reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    /// Their names in the code.
    options: &'static str,
    /// What follows the option in the message.
    reason: &'static str,
}

impl Refusal {
    /// Whether this option is among them.
    pub(crate) fn has(self, id: &str) -> bool {
        self.options().any(|option| option == id)
    }

    pub(crate) fn options(self) -> impl Iterator<Item = &'static str> {
        self.options.split_ascii_whitespace()
    }
}

/// By every experiment, which has several rounds.
pub(crate) const EXPERIMENT: Refusal = Refusal {
    options: "hdr_log hgrm hold latency part script sessions start_at",
    reason: "is about a single run, and an experiment has several; leave it out",
};

/// By `brunt sweep`, besides.
pub(crate) const SWEEP: Refusal = Refusal {
    options: "junit objective",
    reason: EXPERIMENT.reason,
};

/// By `brunt compare`, besides.
pub(crate) const COMPARE: Refusal = Refusal {
    options: "junit objective requests",
    reason: EXPERIMENT.reason,
};

/// By a search for the capacity of a server, besides.
pub(crate) const SEARCH: Refusal = Refusal {
    options: "requests stages connection_rate think_time",
    reason: "does not go with a search for a rate; leave it out",
};

/// By `brunt fleet`, whose agents have a plan and nothing else.
pub(crate) const FLEET: Refusal = Refusal {
    options: "part start_at unix_socket watch",
    reason: "does not go with several agents; leave it out",
};

/// With messages, over WebSocket or TCP.
pub(crate) const MESSAGES: Refusal = Refusal {
    options: "body http1 http2 http3 method raw script seq_from sessions show_errors streams \
              targets urls",
    reason: "is about requests of HTTP; leave it out with messages",
};

/// With messages over TCP, besides: WebSocket begins with a request that has header fields.
pub(crate) const TCP: Refusal = Refusal {
    options: "headers user",
    reason: MESSAGES.reason,
};

/// With messages, whose number in flight is `--depth`. `brunt tcp` calls it so already.
pub(crate) const PIPELINE: Refusal = Refusal {
    options: "pipeline",
    reason: "is about requests of HTTP/1.1; give --depth in its place",
};

/// With `brunt tcp --send`, `--receive` and `--both`.
pub(crate) const STREAMS: Refusal = Refusal {
    options: "arrivals hdr_log hgrm hold latency max_connections no_keepalive objective \
              pipeline rate requests requests_per_connection stages think_time unix_socket",
    reason: "is about messages; leave it out with --send, --receive and --both",
};

/// Where the URL is not that of a server that takes messages over TCP.
pub(crate) const NOT_TCP: Refusal = Refusal {
    options: "reply first_reply",
    reason: "is about messages over TCP; give a URL as tcp://HOST:PORT or tls://",
};

/// Where messages go over TCP, not WebSocket.
pub(crate) const NOT_WEBSOCKET: Refusal = Refusal {
    options: "binary replies reply_match ping subprotocols",
    reason: "is about WebSocket; leave it out where messages go over TCP",
};

/// In a run that is no command, of which messages over TCP are none.
pub(crate) const RUN_OF_HTTP: Refusal = Refusal {
    options: HTTP.options,
    reason: "is about WebSocket; give a URL that begins with ws:// or wss://",
};

/// Where requests of HTTP are sent, not messages.
pub(crate) const HTTP: Refusal = Refusal {
    options: "messages first depth binary replies reply_match ping subprotocols",
    reason: "is about messages; give a URL that begins with ws://, wss://, tcp:// or tls://",
};

/// What was typed of a command.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    command: Command,
    matches: ArgMatches,
}

impl Given {
    /// What `matches` has from the command line, as `command` or its subcommand defines it, or a
    /// subcommand of that.
    pub(crate) fn of(command: &Command, matches: &ArgMatches) -> Self {
        let (mut command, mut matches) = (command, matches);
        while let Some((name, inner)) = matches.subcommand() {
            command = command.find_subcommand(name).unwrap_or(command);
            matches = inner;
        }
        Self {
            command: command.clone(),
            matches: matches.clone(),
        }
    }

    /// The text of an option's value; absent where it was not typed.
    pub(crate) fn text(&self, id: &str) -> Option<&str> {
        let values = self.has(id).then(|| self.matches.get_raw(id));
        values??.next()?.to_str()
    }

    /// The first option that was typed and is none of these, by its name on the command line.
    pub(crate) fn first_besides(&self, options: &str) -> Option<String> {
        self.first(|id| options.split(' ').all(|option| option != id))
    }

    fn first(&self, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
        let mut options = self.command.get_arguments();
        let option = options.find(|option| {
            let id = option.get_id().as_str();
            is_wanted(id) && self.has(id)
        })?;
        let name = option.get_long().unwrap_or(option.get_id().as_str());
        Some(format!("--{name}"))
    }

    fn has(&self, id: &str) -> bool {
        let is_known = self.matches.try_contains_id(id).is_ok();
        is_known && self.matches.value_source(id) == Some(ValueSource::CommandLine)
    }

    /// # Errors
    ///
    /// One of the options was typed.
    pub(crate) fn refuse(&self, refusals: &[Refusal]) -> Result<()> {
        for refusal in refusals {
            if let Some(option) = self.first(|id| refusal.has(id)) {
                bail!("{option} {}", refusal.reason);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::Arguments;

    /// Every refusal, with the command that has its options.
    const ALL: [(Refusal, &str); 12] = [
        (EXPERIMENT, "sweep"),
        (SWEEP, "sweep"),
        (COMPARE, "compare"),
        (SEARCH, "find"),
        (FLEET, "fleet"),
        (TCP, "tcp"),
        (MESSAGES, "tcp"),
        (PIPELINE, "find"),
        (STREAMS, "tcp"),
        (NOT_TCP, "find"),
        (NOT_WEBSOCKET, "find"),
        (HTTP, "find"),
    ];

    #[test]
    fn every_option_that_is_refused_exists() {
        let command = Arguments::command();
        for (refusal, name) in ALL {
            let command = command.find_subcommand(name).expect(name);
            for id in refusal.options() {
                let mut options = command.get_arguments();
                assert!(
                    options.any(|option| option.get_id() == id),
                    "brunt {name}: {id}"
                );
            }
        }
    }
}
