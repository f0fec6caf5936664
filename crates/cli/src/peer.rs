//! The other tools in whose place brunt is called, by their names.

use brunt_dropin::wrk::Program;

/// One of the other tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    Wrk(Program),
    Ab,
    Weighttp,
    H2load,
    Httperf,
    Nuttcp,
    Tcpkali,
}

impl Peer {
    /// The tool of this name: of the program, or of the first word of a command line.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "wrk" => Some(Self::Wrk(Program::Wrk)),
            "wrk2" => Some(Self::Wrk(Program::Wrk2)),
            "ab" => Some(Self::Ab),
            "weighttp" => Some(Self::Weighttp),
            "h2load" => Some(Self::H2load),
            "httperf" => Some(Self::Httperf),
            "nuttcp" => Some(Self::Nuttcp),
            "tcpkali" => Some(Self::Tcpkali),
            _ => None,
        }
    }
}
