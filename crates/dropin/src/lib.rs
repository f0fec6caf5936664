//! Command lines and formats of other load generators, over brunt's own plans and runs.
//!
//! A command line becomes a [`brunt_load::Plan`], and the [`brunt_record::Run`] that it gives
//! becomes the peer's text. Load and measurement are those of every other run of brunt.

pub mod ab;
mod ending;
mod getopt;
pub mod h2load;
pub mod httperf;
mod numbers;
pub mod nuttcp;
pub mod oha;
mod request;
#[cfg(test)]
mod shell;
pub mod tcpkali;
mod tls_names;
mod verdict;
pub mod weighttp;
pub mod wrk;

pub use ending::Ending;
pub use getopt::Table;
pub use verdict::verdict_line;

/// The tools in whose place brunt can be called, by the names of their programs.
pub const TOOLS: [&str; 9] = [
    "wrk", "wrk2", "ab", "weighttp", "httperf", "h2load", "tcpkali", "nuttcp", "oha",
];

/// The tool of this name.
pub fn tool_named(name: &str) -> Option<&'static str> {
    TOOLS.into_iter().find(|tool| *tool == name)
}
