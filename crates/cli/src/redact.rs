//! What may be secret: it is left out of command lines as a report shows them, and, with
//! `--redact`, out of runs and experiments: their URLs lose their queries, and messages are not
//! shown.

use brunt_judge::{Capacity, RoundRecord};
use brunt_load::{HIDDEN, Plan, message_name, redact_field, redact_queries};
use brunt_probe::machine;
use brunt_record::{Environment, Evidence, Run};
use brunt_report::Experiment;
use clap::parser::ValueSource;
use clap::{Arg, CommandFactory};

use crate::commands::Arguments;
use crate::habits;

/// The name of a request without the query that it may have.
pub(crate) fn without_query(name: &str) -> &str {
    name.split_once('?').map_or(name, |(before, _)| before)
}

/// Makes what may be secret in the run unreadable.
pub(crate) fn redact(run: &mut Run) {
    let has_messages = !run.protocol().carries_http;
    run.plan.redact();
    for (number, name) in (1..).zip(&mut run.names) {
        if has_messages {
            name.name = message_name(number);
        } else if name.name.contains('?') {
            name.name = without_query(&name.name).into();
        }
    }
    for lost in &mut run.lost_agents {
        hide(&mut lost.reason);
    }
    for agent in &mut run.agents {
        redact_evidence(&mut agent.evidence);
        redact_command(&mut agent.command);
        for worker in &mut agent.workers {
            worker.error_bodies.clear();
            worker.unexpected = None;
        }
    }
}

fn redact_command(command: &mut Option<Vec<String>>) {
    *command = command.as_deref().and_then(redacted);
}

/// Makes what may be secret in the experiment unreadable.
pub(crate) fn redact_experiment(experiment: &mut Experiment) {
    match experiment {
        Experiment::Sweep(sweep) => {
            hide(&mut sweep.plan.url);
            redact_command(&mut sweep.environment.command);
            sweep.load.iter_mut().for_each(Plan::redact);
            let rounds = sweep.rounds.iter_mut();
            rounds.for_each(|round| redact_round(&mut round.record));
        }
        Experiment::Comparison(compared) => {
            compared.load.iter_mut().for_each(Plan::redact);
            // Where none was given, the command that starts a side stands for it.
            let words = compared.environment.command.iter().flatten();
            let are_typed = words.into_iter().any(|word| word.starts_with("--label"));
            redact_command(&mut compared.environment.command);
            for side in &mut compared.sides {
                hide(&mut side.url);
                side.label = side.label.take().filter(|_| are_typed);
                side.rounds.iter_mut().for_each(redact_round);
            }
        }
        Experiment::Capacity(capacity) => redact_capacity(capacity),
    }
}

fn redact_capacity(capacity: &mut Capacity) {
    hide(&mut capacity.plan.url);
    redact_command(&mut capacity.environment.command);
    capacity.load.iter_mut().for_each(Plan::redact);
    for step in &mut capacity.steps {
        hide(&mut step.because);
        redact_round(&mut step.record);
    }
}

fn redact_round(round: &mut RoundRecord) {
    hide(&mut round.because);
    round.missing.values_mut().for_each(hide);
}

fn hide(text: &mut String) {
    *text = redact_queries(text);
}

fn redact_evidence(evidence: &mut Evidence) {
    evidence.missing.values_mut().for_each(hide);
    let counts = [&mut evidence.server_count, &mut evidence.server_sent];
    for count in counts.into_iter().flatten() {
        hide(&mut count.url);
    }
}

/// Options whose values may be secret, unless they only say where to read them.
const SECRET: [&str; 5] = ["headers", "body", "raw", "user", "first"];
/// Options whose values are shown unless `--redact` is given.
const REDACTED: [&str; 4] = ["messages", "subprotocols", "start", "ready"];
/// Longer command lines are not shown.
const BYTES_MAX: usize = 64 << 10;

/// The command line of this process; absent where it is longer than is shown. With `--redact`,
/// without messages and the queries of URLs.
pub(crate) fn here() -> Option<Vec<String>> {
    let words = shown(&if_short(habits::typed())?, &SECRET)?;
    if words.iter().any(|word| word == "--redact") {
        redacted(&words)
    } else {
        Some(words)
    }
}

/// The command and this machine; server and client are added by the rounds.
pub(crate) fn environment() -> Environment {
    Environment {
        command: here(),
        agents: Vec::new(),
        machine: machine::description(),
        server: None,
        client: None,
    }
}

/// A stored command line without messages and the queries of URLs. Those of other tools hold no
/// messages: they are stored without.
fn redacted(words: &[String]) -> Option<Vec<String>> {
    let is_of_other = words.get(1).and_then(|name| brunt_dropin::tool_named(name));
    let words = match is_of_other {
        Some(_) => words.to_vec(),
        None => shown(words, &[&SECRET[..], &REDACTED].concat())?,
    };
    Some(words.iter().map(|word| redact_queries(word)).collect())
}

/// A command line, unless it is longer than is shown.
pub(crate) fn if_short(words: Vec<String>) -> Option<Vec<String>> {
    let bytes: usize = words.iter().map(String::len).sum();
    (bytes <= BYTES_MAX).then_some(words)
}

/// A command line without the values of the options `secret`: each option by its letter where it
/// has one, its value in a word of its own, and behind them what is no option. Absent where it is
/// not understood.
fn shown(typed: &[String], secret: &[&str]) -> Option<Vec<String>> {
    let program = Arguments::command();
    let matches = program.clone().try_get_matches_from(typed).ok()?;
    let (mut command, mut matches) = (&program, &matches);
    let mut words = vec!["brunt".to_owned()];
    while let Some((name, inner)) = matches.subcommand() {
        words.push(name.to_owned());
        (command, matches) = (command.find_subcommand(name)?, inner);
    }
    let is_typed = |argument: &&Arg| {
        matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
    };
    let typed = command.get_arguments().filter(is_typed);
    let (free, options): (Vec<_>, Vec<_>) = typed.partition(|argument| argument.is_positional());
    for argument in options.into_iter().chain(free) {
        let id = argument.get_id().as_str();
        let name = argument.get_short().map(|letter| format!("-{letter}"));
        let name = name.or(argument.get_long().map(|name| format!("--{name}")));
        if !argument.get_action().takes_values() {
            words.extend(name);
            continue;
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            words.extend(name.clone());
            // Behind a URL stand the arguments of a script, or the other servers of a comparison.
            let is_of_script = id == "behind_url" && command.get_name() != "compare";
            words.push(if is_of_script {
                HIDDEN.to_owned()
            } else {
                without_secret(id, &value.to_string_lossy(), secret)
            });
        }
    }
    Some(words)
}

/// A value as it may be shown: of a header field the name.
fn without_secret(id: &str, value: &str, secret: &[&str]) -> String {
    match value.split_once(':') {
        _ if !secret.contains(&id) || value.starts_with('@') => value.to_owned(),
        Some(_) if id == "headers" => redact_field(value),
        _ => HIDDEN.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_however_they_are_typed() {
        for (typed, words) in [
            ("http://h/?a=b --connections=4", "-c 4 http://h/?a=b"),
            ("-H X-Token:hush http://h/", "-H X-Token: ... http://h/"),
            ("-kqHX-Token:hush", "-H X-Token: ... -k -q"),
            ("--header=X-Token:hush -b=hush", "-H X-Token: ... -b ..."),
            (
                "-b @file -u @env:USER -H @fields",
                "-H @fields -b @file -u @env:USER",
            ),
            (
                "-s a.lua http://h/ @hush -- -x hush",
                "-s a.lua http://h/ ... ... ...",
            ),
            ("-d1s -v --redact", "-d 1s -v --redact"),
            (
                "sweep -c 1..9:2 -H=X-Token:hush http://h/?a=b",
                "sweep -c 1..9:2 -H X-Token: ... http://h/?a=b",
            ),
            (
                "compare http://a/ -u a:hush http://b/",
                "compare -u ... http://a/ http://b/",
            ),
        ] {
            let typed: Vec<String> = std::iter::once("brunt")
                .chain(typed.split(' '))
                .map(str::to_owned)
                .collect();
            let found = shown(&typed, &SECRET).expect("it is understood").join(" ");
            assert_eq!(found, format!("brunt {words}"));
        }
    }

    #[test]
    fn redacted_command_lines_hold_no_messages() {
        for (stored, words) in [
            (
                "tcp -m hush -m @file --first hush --reply line h:1",
                "tcp -m ... -m @file --first ... --reply line h:1",
            ),
            (
                "--message hush --subprotocol hush ws://h/?hush",
                "--message ... --subprotocol ... ws://h/?redacted",
            ),
            (
                "compare --start hush --ready hush http://h/?hush",
                "compare --start ... --ready ... http://h/?redacted",
            ),
            (
                "wrk -t 1 http://h/?hush ...",
                "wrk -t 1 http://h/?redacted ...",
            ),
        ] {
            let stored: Vec<String> = ["brunt"]
                .into_iter()
                .chain(stored.split(' '))
                .map(str::to_owned)
                .collect();
            let found = redacted(&stored).expect("it is understood");
            assert_eq!(found.join(" "), format!("brunt {words}"));
            assert_eq!(redacted(&found), Some(found));
        }
    }

    /// What the values of options are: a new one is put where it belongs.
    #[test]
    fn of_each_option_it_is_known_whether_it_may_be_secret() {
        /// Numbers, names of files, machines and CPUs, and words of a fixed list.
        const HARMLESS: &str = "\
            agents allow_target alpn arrivals backend bandwidth behind_url body_size budget \
            cacert cert cert_out client_ca congestion connect_timeout connection_rate \
            connections connections_max depth drain duration fail_if file files first_reply \
            format gather generate h2_requests h2_streams hdr_log hgrm idle_timeout input_max \
            job json_progress junit keep key label link_speed listen local max_connections max_rate method \
            mss name nats nats_ca nats_cert nats_credentials nats_key nodelay objective order \
            output output_max pairs part ping pipeline rate rcvbuf \
            ready_timeout replies reply reply_match requests requests_per_connection \
            round_warmup rounds script seed seq_from sessions sndbuf sni source_addresses spin \
            ssh stages stamps start_at step streams targets tcp tcp_delay tcp_listen \
            tcp_stall think_time threads timeout tls_max tls_min unix_socket until_decided url \
            urls vary verify_url wait warmup watch";
        let known = |id: &str| {
            let harmless = HARMLESS.split_whitespace().any(|name| name == id);
            let secret = SECRET.contains(&id) || REDACTED.contains(&id);
            assert!(!(harmless && secret), "{id} is in two lists");
            harmless || secret
        };
        let main = Arguments::command();
        let mut unknown = Vec::new();
        let mut commands = vec![&main];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands());
            for argument in command.get_arguments() {
                let id = argument.get_id().as_str();
                if argument.get_action().takes_values() && !known(id) {
                    unknown.push(id);
                }
            }
        }
        assert_eq!(unknown, Vec::<&str>::new(), "whether they may be secret");
    }
}
