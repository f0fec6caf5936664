//! `brunt tcp`: messages over TCP and their replies, or one-way streams.

use std::process::ExitCode;

use anyhow::{Result, bail};
use brunt_load::{MessageExchange, OpeningMessage, RequestSet, Target};
use brunt_proto::messages::Framing;

use crate::args::{FleetTcpArguments, LoadArguments, TcpArguments};
use crate::load;
use crate::messages::{message_set, template};
use crate::plan::{Load, seed};
use crate::refusals::{self, Given};
use crate::tcp_args::{ExchangeArguments, FramingArguments};
use crate::tcp_streams::StreamArguments;
use crate::websocket_args::MessageArguments;

/// Runs the load.
pub(crate) fn run(arguments: &TcpArguments, given: &Given) -> Result<ExitCode> {
    let TcpArguments {
        exchange,
        streams,
        load: typed,
    } = arguments;
    let (target, load) = asked((exchange, streams, typed), given)?;
    load::run_on(typed, Some(target), load)
}

/// The server, and the load that several agents are to make of it.
pub(crate) fn of_fleet(arguments: &FleetTcpArguments, given: &Given) -> Result<(Target, Load)> {
    let typed = (&arguments.exchange, &arguments.streams, &arguments.load);
    asked(typed, given)
}

/// The server, and its load.
fn asked(
    (exchange, streams, typed): (&ExchangeArguments, &StreamArguments, &LoadArguments),
    given: &Given,
) -> Result<(Target, Load)> {
    given.refuse(refusals::MESSAGES)?;
    given.refuse(refusals::TCP)?;
    if let Some(other) = typed.behind_url.first() {
        bail!("one server is loaded at a time; leave out {other}");
    }
    let url = typed.url.as_deref();
    let target = Target::parse_tcp(url, false, typed.unix_socket.clone())?;
    let sockets = streams.sockets();
    if let Some(streams) = streams.streams()? {
        given.refuse(refusals::STREAMS)?;
        if target.scheme.is_secure() {
            bail!(
                "bandwidth is measured in clear text, since of TLS the kernel counts records and \
                 not what is in them; leave out tls://"
            );
        }
        let load = Load::new(typed, Some(&target))?.streaming(streams, typed.connections);
        return Ok((target, load.over(sockets)));
    }
    if exchange.connect_only {
        let load = Load::new(typed, Some(&target))?.connecting();
        return Ok((target, load.over(sockets)));
    }
    let messages = Messages {
        list: &exchange.list,
        option: "-m",
        framing: &exchange.framing,
    };
    let load = load(typed, messages, &target, None)?;
    Ok((target, load.over(sockets)))
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
    pub(crate) list: &'a MessageArguments,
    /// The option that gave its messages.
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
    let exchange = exchange(typed, messages)?;
    let option = messages.option;
    let set = match (typed.hold, &messages.list.messages[..]) {
        (true, []) => RequestSet::nothing(),
        (true, _) => bail!("--hold sends no messages but that of --first; leave out {option}"),
        (false, _) => message_list(typed, messages)?,
    };
    Ok(Load::at(typed, Some(target), rate)?
        .with_list(Some(set))
        .speaking(exchange))
}

/// What is sent.
fn message_list(typed: &LoadArguments, messages: Messages<'_>) -> Result<RequestSet> {
    message_set(messages.list, messages.option, typed)
}

/// How messages are exchanged.
fn exchange(load: &LoadArguments, messages: Messages<'_>) -> Result<MessageExchange> {
    let (typed, first) = (messages.framing, &messages.list.first);
    let reply = match (&typed.reply, load.hold, first) {
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
    let opening = match first {
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
        seed: seed(load),
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
                list: &typed.exchange.list,
                option: "-m",
                framing: &typed.exchange.framing,
            };
            message_list(&typed.load, messages)
        };
        let set = messages(&["-m", "GET {seq}\\n", "-m", &long]).expect("messages");
        let expected = ["GET {seq}\\n".to_owned(), format!("{}...", &long[..60])];
        assert_eq!(set.names().collect::<Vec<_>>(), expected);
        let typed = "{\"user\":{conn},\"name\":\"Имя\"}\\x0a";
        let set = messages(&["-m", typed]).expect("a message");
        assert_eq!(set.first_name(), typed);
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
            let messages = Messages {
                list: &typed.exchange.list,
                option: "-m",
                framing: &typed.exchange.framing,
            };
            exchange(&typed.load, messages)
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
}
