//! The other tools in whose place brunt is called, by their names.

use brunt_dropin::wrk::Program;

/// A tool in whose place brunt can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Wrk(Program),
    Ab,
    Weighttp,
    H2load,
    Httperf,
    Nuttcp,
    Tcpkali,
    Oha,
}

/// All tools in whose place brunt can be called, by name.
pub(crate) const PEERS: [(&str, Peer); 9] = [
    ("wrk", Peer::Wrk(Program::Wrk)),
    ("wrk2", Peer::Wrk(Program::Wrk2)),
    ("ab", Peer::Ab),
    ("weighttp", Peer::Weighttp),
    ("httperf", Peer::Httperf),
    ("h2load", Peer::H2load),
    ("tcpkali", Peer::Tcpkali),
    ("nuttcp", Peer::Nuttcp),
    ("oha", Peer::Oha),
];

impl Peer {
    /// The tool of this name: of the program, or of the first word of a command line.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let found = PEERS.iter().find(|(known, _)| *known == name);
        found.map(|(_, peer)| *peer)
    }
}
