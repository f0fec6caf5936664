//! The options of `brunt tcp` beside those of a run, and what those of a run mean there: others are
//! about HTTP, and are refused.

use brunt_proto::messages::Framing;
use clap::builder::Resettable;
use clap::{Arg, Args, Id};

use crate::refusals::{MESSAGES, TCP};
use crate::websocket_args::MessageArguments;

/// What stands below the options.
pub(crate) const TCP_HELP: &str = "\
    Messages: text with \\r \\n \\t \\0 \\xHH \\\\, or @FILE, @- (standard input) or @env:NAME, \
    whose bytes are sent as they are. {conn} (number of the connection), {seq} (number of the \
    message on its connection), {rand:N} (N random hexadecimal digits) and \
    {now} (nanoseconds since 1970) are filled in; \\{ is a brace.\n\
    Framings: line (to LF); delim=BYTES; fixed=N; echo (the message, verified); len8, len16be, \
    len16le, len24be, len24le, len32be, len32le (a length at the beginning, of what follows \
    it; +N or -N is added to it, @N is its offset); marker=BYTES[*N] (to the N-th occurrence); \
    resp (Redis' protocol, RESP2 and RESP3); until-close; none.\n\
    brunt tcp -c 100 -m 'GET k{rand:3}\\r\\n' --reply resp localhost:6379\n\
    brunt tcp -r 20k -m @request.bin --reply len32be tls://host:9000\n\
    brunt tcp --send -c 4 host:5001\n\
    See docs/tcp.md.";

/// Messages and their replies.
#[derive(Debug, Args)]
pub(crate) struct ExchangeArguments {
    #[command(flatten)]
    pub(crate) list: MessageArguments,
    #[command(flatten)]
    pub(crate) framing: FramingArguments,
    /// Send nothing: open connections, with --tls the handshake too, and close them again, -c at a
    /// time or as planned. Connections per second are the throughput, the time to open one the
    /// latency
    #[arg(long, help_heading = "Load", conflicts_with_all = [
        "messages", "reply", "first", "order", "send", "receive", "both",
        "bandwidth", "hold", "pipeline", "no_keepalive", "requests_per_connection",
        "connection_rate", "verify_url"])]
    pub(crate) connect_only: bool,
}

/// Where replies end, and what comes before the first message.
#[derive(Debug, Args)]
pub(crate) struct FramingArguments {
    /// Where the reply to a message ends: one of the framings at the end of `brunt tcp --help`;
    /// none: a message is done when the kernel has taken it
    #[arg(long, value_name = "FRAMING", help_heading = "Messages")]
    pub(crate) reply: Option<Framing>,
    /// Where the reply to --first ends; brunt waits for it [default: as --reply]
    #[arg(
        long,
        value_name = "FRAMING",
        requires = "first",
        help_heading = "Messages"
    )]
    pub(crate) first_reply: Option<Framing>,
}

/// An option of a run as the help of `brunt tcp` has it.
pub(crate) fn of_messages(option: Arg) -> Arg {
    let id = option.get_id().as_str().to_owned();
    let nothing = Resettable::<Id>::Reset;
    match id.as_str() {
        "url" => option
            .value_name("HOST:PORT")
            .help("The server: HOST:PORT, tcp://HOST:PORT, or tls://HOST:PORT over TLS"),
        "messages" => option.short('m').help_heading("Messages").help(
            "Message to send; several are sent in turns, or as --order says. Figures are kept of \
             each",
        ),
        "first" => option.help_heading("Messages"),
        "requests" => option.help(
            "Number of messages to send, or with --connect-only of connections to open, in the \
                 measure phase; with --rate, of planned ones",
        ),
        "pipeline" => option
            .long("depth")
            .help("Messages in flight per connection"),
        "no_keepalive" => option.help("A new connection for each message"),
        "requests_per_connection" => {
            option.help("Replace each connection after this many messages")
        }
        "rate" => option.help(
            "Open loop: messages per second, or with --connect-only connections, planned without \
             regard to replies; response times count from the planned instants. At most 10m for \
             each worker",
        ),
        "connection_rate" => option.help(
            "Connections per second, each with the messages of --requests-per-connection or \
             --no-keepalive; with neither, how fast set-up opens those of a closed loop",
        ),
        "order" => option.help("Order of several messages, with the seed of --seed"),
        "seed" => option.help(
            "Seed of random arrivals, think times, order and {rand:N} [default: a fresh one, named \
             in the report]",
        ),
        "unix_socket" => option
            .requires(nothing)
            .help("Connect through a Unix socket; HOST:PORT may be left out"),
        "connect_timeout" => option.help(
            "Limit of one connection attempt, with its TLS handshake and the reply to --first",
        ),
        "timeout" => option.help(
            "Limit of one message to the end of its reply, from its send or, in an open loop, from \
             its planned instant",
        ),
        "sni" => {
            option.help("Server name to ask for (SNI) and to verify [default: that of HOST:PORT]")
        }
        "method" => option.short(None::<char>).hide(true),
        "behind_url" => option.hide(true),
        name if MESSAGES.has(name) || TCP.has(name) => option.hide(true),
        _ => option,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Arguments;

    #[test]
    fn what_is_refused_is_in_no_help() {
        let mut command = Arguments::command();
        let command = command.find_subcommand_mut("tcp").expect("it is there");
        let shown = command.render_long_help().to_string();
        assert!(shown.contains("--depth <N>") && shown.contains("-m, --message <MESSAGE>"));
        for option in command.get_arguments() {
            let id = option.get_id().as_str();
            assert_eq!(
                option.is_hide_set(),
                MESSAGES.has(id) || TCP.has(id) || ["behind_url", "no_evidence"].contains(&id),
                "{id}"
            );
        }
    }
}
