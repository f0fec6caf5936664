//! The options of `brunt serve` about raw TCP, as typed.

use std::str::FromStr;

use brunt_load::units;
use brunt_server::{ParseTcpError, Stall, TcpService};
use clap::Args;

#[derive(Debug, Args)]
#[command(next_help_heading = "Raw TCP")]
pub(crate) struct ServeTcpArguments {
    /// Serve raw TCP on a second address, counted in /counters as `tcp`: echo and echo=FRAMING
    /// send back what they read, at once or message by message; sink and sink=FRAMING throw it
    /// away; source and source=RATE send without end, or RATE bytes per second on each connection;
    /// reply=FRAMING:REPLY answers each message with a text (escapes as \r\n), or, where REPLY is
    /// a number (10, 64k), with so many letters, framed as the messages are. FRAMING: line,
    /// delim=BYTES, fixed=N, len8, len16be, len16le, len24be, len24le, len32be, len32le with
    /// @OFFSET and +N or -N, marker=BYTES*N, until-close. --threads are of this address then; HTTP
    /// has one more
    #[arg(long, value_name = "WHAT", value_parser = raw_tcp::<TcpService>)]
    pub(crate) tcp: Option<TcpService>,
    /// Where to serve it: an address, or the path of a Unix socket (with a slash in it)
    #[arg(
        long,
        value_name = "IP:PORT|PATH",
        default_value = "127.0.0.1:8081",
        requires = "tcp"
    )]
    pub(crate) tcp_listen: String,
    /// Answer so long after the message was noticed. With echo and reply=
    #[arg(long, value_name = "TIME", value_parser = units::duration_ns, requires = "tcp")]
    pub(crate) tcp_delay: Option<u64>,
    /// Neither answer, send as a source nor read as a sink in the first SILENCE of every PERIOD
    #[arg(
        long,
        value_name = "SILENCE/PERIOD",
        value_parser = raw_tcp::<Stall>,
        requires = "tcp"
    )]
    pub(crate) tcp_stall: Option<Stall>,
}

/// Parses a part of what is served over raw TCP.
fn raw_tcp<T: FromStr<Err = ParseTcpError>>(typed: &str) -> Result<T, ParseTcpError> {
    typed.parse()
}
