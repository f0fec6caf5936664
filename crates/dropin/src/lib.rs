//! Command lines and formats of other load generators, over brunt's own plans and runs.
//!
//! A command line becomes a [`brunt_load::Plan`], and the [`brunt_record::Run`] that it gives
//! becomes the peer's text. Load and measurement are those of every other run of brunt.

pub mod ab;
mod counts;
mod ending;
mod getopt;
pub mod h2load;
pub mod httperf;
mod microseconds;
pub mod nuttcp;
pub mod oha;
mod recorded;
#[cfg(test)]
mod shell;
mod sizes;
pub mod tcpkali;
mod tls_names;
mod verbatim;
mod verdict;
pub mod weighttp;
pub mod wrk;

pub use counts::Counts;
pub use ending::Ending;
pub use verdict::verdict_line;
