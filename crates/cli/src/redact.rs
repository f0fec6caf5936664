//! What may be secret: it is left out of command lines as a report shows them, and, with
//! `--redact`, out of runs and experiments: their URLs lose their queries, and messages are not
//! shown.

use brunt_judge::{Capacity, RoundRecord};
use brunt_load::{HIDDEN, Plan, message_name, redact_field, redact_queries};
use brunt_probe::machine;
use brunt_record::{Environment, Evidence, Run};
use brunt_report::Experiment;
use clap::{ArgAction, Command, CommandFactory};

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
    if let Some(words) = command {
        *words = redacted(words);
    }
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
const REDACTED: [&str; 6] = [
    "messages",
    "subprotocols",
    "start",
    "ready",
    "warmup_command",
    "stop",
];
/// Longer command lines are not shown.
const BYTES_MAX: usize = 64 << 10;

/// The command line of this process; absent where it is longer than is shown. With `--redact`,
/// without messages and the queries of URLs.
pub(crate) fn here() -> Option<Vec<String>> {
    let typed = if_short(habits::typed())?;
    let words = shown(typed.get(1..).unwrap_or_default(), &SECRET);
    Some(if words.iter().any(|word| word == "--redact") {
        redacted(&words)
    } else {
        words
    })
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

/// A stored command line, with its first word, without messages and the queries of URLs. Those of
/// other tools hold no messages: they are stored without.
pub(crate) fn redacted(words: &[String]) -> Vec<String> {
    let typed = words.get(1..).unwrap_or_default();
    let mut words = match typed.first() {
        Some(name) if brunt_dropin::tool_named(name).is_some() => words.to_vec(),
        _ => shown(typed, &[&SECRET[..], &REDACTED].concat()),
    };
    words
        .iter_mut()
        .for_each(|word| *word = redact_queries(word));
    words
}

/// A command line, unless it is longer than is shown.
pub(crate) fn if_short(words: Vec<String>) -> Option<Vec<String>> {
    let bytes: usize = words.iter().map(String::len).sum();
    (bytes <= BYTES_MAX).then_some(words)
}

/// The words of a command line without the values of the options `secret`.
fn shown(typed: &[String], secret: &[&str]) -> Vec<String> {
    let program = Arguments::command();
    let mut command = &program;
    let mut words = vec!["brunt".to_owned()];
    let mut typed = typed.iter();
    while let Some(first) = typed.as_slice().first()
        && let Some(named) = command.find_subcommand(first)
    {
        words.push(first.clone());
        typed.next();
        command = named;
    }
    // A command's are URLs and files; others, behind the first, are a script's.
    let are_shown = words.len() > 1;
    let mut free_words = 0;
    let mut free = |word: &String| {
        free_words += 1;
        if free_words > 1 && !are_shown {
            HIDDEN.to_owned()
        } else {
            word.clone()
        }
    };
    while let Some(word) = typed.next() {
        if word == "--" {
            // Behind it are words alone.
            words.push(word.clone());
            words.extend(typed.by_ref().map(&mut free));
            break;
        }
        let Some((head, id, value)) = option(word, command) else {
            let is_option = word.starts_with('-') && word.len() > 1;
            words.push(if is_option { word.clone() } else { free(word) });
            continue;
        };
        match value {
            Some(value) => words.push(format!("{head}{}", without_secret(id, value, secret))),
            None => {
                words.push(head.to_owned());
                words.extend(typed.next().map(|value| without_secret(id, value, secret)));
            }
        }
    }
    words
}

/// An option that takes a value: the word up to the value, the option's name in the code, and the
/// value where it is in the same word.
fn option<'a>(word: &'a str, command: &'a Command) -> Option<(&'a str, &'a str, Option<&'a str>)> {
    let takes_value =
        |argument: &&clap::Arg| matches!(argument.get_action(), ArgAction::Set | ArgAction::Append);
    if let Some(name) = word.strip_prefix("--") {
        let (name, value) = match name.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (name, None),
        };
        let mut options = command.get_arguments().filter(takes_value);
        let found = options.find(|option| option.get_long() == Some(name))?;
        let head = value.map_or(word, |value| &word[..word.len() - value.len()]);
        return Some((head, found.get_id().as_str(), value));
    }
    let shorts = word.strip_prefix('-')?;
    for (at, short) in shorts.char_indices() {
        let found = command
            .get_arguments()
            .find(|option| option.get_short() == Some(short))?;
        if takes_value(&found) {
            let (head, value) = word.split_at(1 + at + short.len_utf8());
            return Some((
                head,
                found.get_id().as_str(),
                Some(value).filter(|value| !value.is_empty()),
            ));
        }
    }
    None
}

/// A value as it may be shown: of a header field the name.
fn without_secret(id: &str, value: &str, secret: &[&str]) -> String {
    // An equals sign may stand between a short option and its value.
    let (sign, value) = match value.strip_prefix('=') {
        Some(rest) => ("=", rest),
        None => ("", value),
    };
    let shown = match value.split_once(':') {
        _ if !secret.contains(&id) || value.starts_with('@') => value.to_owned(),
        Some(_) if id == "headers" => redact_field(value),
        _ => HIDDEN.to_owned(),
    };
    format!("{sign}{shown}")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::Arguments;

    #[test]
    fn secrets_are_hidden_however_they_are_typed() {
        for (typed, words) in [
            ("-c 4 http://h/?a=b", "-c 4 http://h/?a=b"),
            ("-H X-Token:hush http://h/", "-H X-Token: ... http://h/"),
            ("-HX-Token:hush", "-HX-Token: ..."),
            ("-H=X-Token:hush", "-H=X-Token: ..."),
            ("-kqHX-Token:hush", "-kqHX-Token: ..."),
            ("--header=X-Token:hush", "--header=X-Token: ..."),
            ("--header X-Token:hush", "--header X-Token: ..."),
            ("-b hush --body=hush -bhush", "-b ... --body=... -b..."),
            ("-u a:hush --user a:hush", "-u ... --user ..."),
            (
                "-b @file -u @env:USER -H @fields",
                "-b @file -u @env:USER -H @fields",
            ),
            (
                "-s a.lua http://h/ hush -- -x hush",
                "-s a.lua http://h/ ... -- ... ...",
            ),
            ("-- http://h/ hush", "-- http://h/ ..."),
            ("-d1s -vq --redact", "-d1s -vq --redact"),
            ("--no-such hush", "--no-such hush"),
            (
                "sweep -c 1..9:2 -H=X-Token:hush http://h/?a=b",
                "sweep -c 1..9:2 -H=X-Token: ... http://h/?a=b",
            ),
            (
                "compare http://a/ -u a:hush http://b/",
                "compare http://a/ -u ... http://b/",
            ),
        ] {
            let typed: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            let found = shown(&typed, &SECRET).join(" ");
            assert_eq!(found, format!("brunt {words}"));
        }
    }

    #[test]
    fn redacted_command_lines_hold_no_messages() {
        for (stored, words) in [
            (
                "tcp -m hush --message=hush -m@file --first hush --reply line h:1",
                "tcp -m ... --message=... -m@file --first ... --reply line h:1",
            ),
            (
                "--message hush --subprotocol hush ws://h/?hush",
                "--message ... --subprotocol ... ws://h/?redacted",
            ),
            (
                "compare --start hush --ready hush --stop=hush http://h/?hush",
                "compare --start ... --ready ... --stop=... http://h/?redacted",
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
            let found = redacted(&stored);
            assert_eq!(found.join(" "), format!("brunt {words}"));
            assert_eq!(redacted(&found), found);
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
            output output_max pairs part ping pipeline preset rate rcvbuf \
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
