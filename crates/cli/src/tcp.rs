//! `brunt tcp`: messages over TCP and their replies, or one-way streams.

use std::process::ExitCode;

use anyhow::{Result, bail};
use brunt_load::{MessageExchange, OpeningMessage, RequestSet, Spoken, Target};
use brunt_proto::messages::Framing;

use crate::args::{LoadArguments, TcpArguments};
use crate::load;
use crate::messages::{message_set, template};
use crate::plan::{Load, fresh_seed};
use crate::source::Source;
use crate::tcp_args::FramingArguments;

/// Runs the load.
pub(crate) fn run(arguments: &TcpArguments) -> Result<ExitCode> {
    if let Some(option) = foreign(&arguments.load) {
        bail!("{option} is about runs over HTTP; leave it out of brunt tcp");
    }
    let typed = &arguments.load;
    if let Some(other) = typed.behind_url.first() {
        bail!("one server is loaded at a time; leave out {other}");
    }
    let url = typed.url.as_deref();
    let target = Target::parse_tcp(url, typed.protocol.tls, typed.unix_socket.clone())?;
    if let Some(streams) = arguments.streams.streams()? {
        if let Some(option) = not_of_streams(typed) {
            bail!("{option} is about messages; leave it out with --send, --receive and --both");
        }
        if target.scheme.is_secure() {
            bail!(
                "bandwidth is measured in clear text, since of TLS the kernel counts records and \
                 not what is in them; leave out --tls and tls://"
            );
        }
        let load = Load::new(typed, Some(&target))?
            .streaming(streams, typed.connections)
            .over(arguments.streams.sockets());
        return load::run_on(typed, Some(target), load);
    }
    if arguments.exchange.connect_only {
        let load = Load::new(typed, Some(&target))?.connecting();
        return load::run_on(typed, Some(target), load.over(arguments.streams.sockets()));
    }
    let messages = Messages {
        sources: &arguments.exchange.messages,
        option: "-m",
        framing: &arguments.exchange.framing,
    };
    let load = load(typed, messages, &target, None)?.over(arguments.streams.sockets());
    load::run_on(typed, Some(target), load)
}

/// Whether the URL begins with tcp:// or tls://.
pub(crate) fn is_tcp(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    ["tcp", "tls"]
        .iter()
        .any(|name| scheme.eq_ignore_ascii_case(name))
}

/// What was typed of messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Messages<'a> {
    pub(crate) sources: &'a [Source],
    /// The option that gave them.
    pub(crate) option: &'static str,
    pub(crate) framing: &'a FramingArguments,
}

/// The load of messages on `target`; with planned ones at this rate, where it is given.
pub(crate) fn load(
    typed: &LoadArguments,
    messages: Messages<'_>,
    target: &Target,
    rate: Option<f64>,
) -> Result<Load> {
    if let Some(option) = foreign(typed) {
        bail!("{option} is about runs over HTTP; leave it out with messages over TCP");
    }
    let exchange = exchange(typed, messages.framing)?;
    let option = messages.option;
    let set = match (typed.hold, messages.sources) {
        (true, []) => RequestSet::nothing(),
        (true, _) => bail!("--hold sends no messages but that of --first; leave out {option}"),
        (false, _) => message_list(typed, messages)?,
    };
    Ok(Load::at(typed, Some(target), rate)?
        .with_list(Some(set))
        .speaking(Spoken::Messages(exchange)))
}

/// The first option given that is about HTTP, or about runs of it alone.
fn foreign(load: &LoadArguments) -> Option<&'static str> {
    let given = [
        ("--header", !load.headers.is_empty()),
        ("--user", load.user.is_some()),
    ];
    let option = given.into_iter().find(|&(_, is_given)| is_given);
    option
        .map(|(option, _)| option)
        .or_else(|| about_requests(load))
}

/// The first option given that is about what requests of HTTP hold, or about runs of them alone.
pub(crate) fn about_requests(load: &LoadArguments) -> Option<&'static str> {
    let given = [
        ("--body", load.body.is_some()),
        ("--http1", load.protocol.http1),
        ("--http2", load.protocol.http2),
        ("--streams", load.protocol.streams.is_some()),
        ("--method", load.method.is_some()),
        ("--path", !load.paths.is_empty()),
        (
            load.protocol
                .http2_settings
                .first_given()
                .unwrap_or_default(),
            load.protocol.http2_settings.first_given().is_some(),
        ),
        ("--raw", load.raw.is_some()),
        ("--script", load.script.is_some()),
        ("--sessions", load.sessions.is_some()),
        ("--show-errors", load.show_errors),
        ("--targets", load.targets.is_some()),
        ("--urls", load.urls.is_some()),
        ("--fault", !load.fault.is_empty()),
        ("--schema", load.schema),
    ];
    let option = given.into_iter().find(|&(_, is_given)| is_given);
    option.map(|(option, _)| option)
}

/// The first option given that streams have no use for.
fn not_of_streams(load: &LoadArguments) -> Option<&'static str> {
    let output = &load.output;
    let given = [
        ("--depth", load.pipeline.get() > 1),
        ("--requests", load.requests.is_some()),
        ("--equal-parts", load.equal_parts),
        ("--rate", load.rate.is_some()),
        ("--stages", load.stages.is_some()),
        ("--arrivals", load.arrivals.is_some()),
        ("--max-connections", load.max_connections.is_some()),
        ("--queue", load.queue.is_some()),
        ("--no-keepalive", load.no_keepalive),
        (
            "--requests-per-connection",
            load.requests_per_connection.is_some(),
        ),
        ("--think-time", load.think_time.is_some()),
        ("--unix-socket", load.unix_socket.is_some()),
        ("--diagnose", load.diagnose),
        ("--objective", !output.objective.is_empty()),
        ("--request-log", output.request_log.is_some()),
        ("--hdr-log", output.hdr_log.is_some()),
        ("--hdr-log-service", output.hdr_log_service.is_some()),
        ("--hgrm", output.hgrm.is_some()),
        ("--latency", output.latency),
        ("--hold", load.hold),
    ];
    let option = given.into_iter().find(|&(_, is_given)| is_given);
    option.map(|(option, _)| option)
}

/// What is sent.
fn message_list(typed: &LoadArguments, messages: Messages<'_>) -> Result<RequestSet> {
    let readers = messages.sources.iter().chain(&messages.framing.first);
    if readers.filter(|it| **it == Source::StandardInput).count() > 1 {
        bail!("only one message can be read from standard input; give the others as @FILE");
    }
    message_set(messages.sources, messages.option, typed)
}

/// How messages are exchanged.
fn exchange(load: &LoadArguments, typed: &FramingArguments) -> Result<MessageExchange> {
    let reply = match (&typed.reply, load.hold, &typed.first) {
        (Some(reply), _, _) => Some(reply.clone()),
        (None, true, None) => Some(Framing::None),
        (None, true, Some(_)) => typed.first_reply.clone(),
        (None, false, _) => None,
    };
    let Some(reply) = reply else {
        bail!(
            "--reply says where the reply to a message ends, such as line, fixed=64, echo, or none \
             where nothing comes back; see brunt tcp --help"
        );
    };
    let opening = match &typed.first {
        Some(source) => Some(OpeningMessage {
            message: template(source, "--first", load.output.redact)?.into(),
            reply: match &typed.first_reply {
                Some(reply) => reply.clone(),
                None if reply == Framing::UntilClose => Framing::None,
                None => reply.clone(),
            },
        }),
        None => None,
    };
    Ok(MessageExchange {
        reply,
        opening,
        seed: load.seed.unwrap_or_else(fresh_seed),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Arguments, Command};

    fn typed(words: &[&str]) -> TcpArguments {
        let words = ["brunt", "tcp"].iter().chain(words);
        let arguments = Arguments::try_parse_from(words).expect("they are good");
        match arguments.command {
            Some(Command::Tcp(tcp)) => *tcp,
            _ => panic!("another command"),
        }
    }

    #[test]
    fn messages_are_named_by_what_was_typed() {
        let long = "x".repeat(70);
        let messages = |words: &[&str]| {
            let typed = typed(words);
            let messages = Messages {
                sources: &typed.exchange.messages,
                option: "-m",
                framing: &typed.exchange.framing,
            };
            message_list(&typed.load, messages)
        };
        let set = messages(&["-m", "GET {seq}\\n", "-m", &long]).expect("messages");
        let expected = ["GET {seq}\\n".to_owned(), format!("{}...", &long[..60])];
        assert_eq!(set.names().collect::<Vec<_>>(), expected);
        let one = messages(&["-m", "secret", "--redact"]).expect("a message");
        assert_eq!(one.first_name(), "message 1");
        for (words, part) in [
            (&["-m", "\\q"][..], "-m '\\q'"),
            (&[], "give one with -m"),
            (&["-m", "@-", "--first", "@-"], "only one message"),
        ] {
            let error = messages(words).expect_err("bad").to_string();
            assert!(error.contains(part), "{words:?}: {error}");
        }
    }

    #[test]
    fn the_first_reply_is_framed_like_the_others_unless_it_is_said() {
        let exchange = |words: &[&str]| {
            let typed = typed(words);
            exchange(&typed.load, &typed.exchange.framing)
        };
        let reply_of = |words: &[&str]| {
            let exchange = exchange(words).expect("an exchange");
            exchange.opening.expect("an opening").reply
        };
        let line = reply_of(&["--first", "a", "--reply", "line"]);
        assert_eq!(line, Framing::Line);
        let echo = reply_of(&["--first", "a", "--reply", "line", "--first-reply", "echo"]);
        assert_eq!(echo, Framing::Echo);
        let none = reply_of(&["--first", "a", "--reply", "until-close"]);
        assert_eq!(none, Framing::None);
        let error = exchange(&["-m", "a"]).expect_err("no reply").to_string();
        assert!(error.starts_with("--reply says"), "{error}");
    }

    #[test]
    fn every_option_about_http_is_known_as_one() {
        for words in [
            "--body x",
            "-H a:b",
            "--http1",
            "--http2",
            "--streams 2",
            "--method GET",
            "--script x.lua host:1",
            "--sessions x host:1",
            "--show-errors",
            "--targets x",
            "--urls x",
            "-u a:b",
            "--fault busy=0:1s",
        ] {
            let option = foreign(&typed(&words.split(' ').collect::<Vec<_>>()).load).expect(words);
            assert!(option.starts_with("--"), "{words}");
        }
        let ours = typed(&[
            "-c", "3", "--depth", "4", "-m", "a", "-m", "b", "--tls", "--cacert", "ca", "h:1",
        ]);
        assert_eq!(foreign(&ours.load), None);
        assert_eq!(
            (ours.exchange.messages.len(), ours.load.pipeline.get()),
            (2, 4)
        );
    }
}
