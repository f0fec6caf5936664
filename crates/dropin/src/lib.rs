//! Command lines and formats of other load generators, over brunt's own plans and runs.
//!
//! A command line becomes a [`brunt_load::Plan`], and the [`brunt_record::Run`] that it gives
//! becomes the peer's text. Load and measurement are those of every other run of brunt.
//!
//! Open `wrk` first: every tool has the same parts, `options`, `plan` and `report`.

pub mod ab;
mod ending;
mod getopt;
pub mod h2load;
pub mod httperf;
mod libraries;
pub mod nuttcp;
pub mod oha;
mod request;
pub mod tcpkali;
pub mod weighttp;
pub mod wrk;

use brunt_judge::Judged;

pub use ending::Ending;
pub use getopt::Table;

/// The tools in whose place brunt can be called, by the names of their programs.
pub const TOOLS: [&str; 9] = [
    "wrk", "wrk2", "ab", "weighttp", "httperf", "h2load", "tcpkali", "nuttcp", "oha",
];

/// The tool of this name.
pub fn tool_named(name: &str) -> Option<&'static str> {
    TOOLS.into_iter().find(|tool| *tool == name)
}

/// Brunt's own word on a run that another tool's text reports: what limited the run and why, or
/// that its figures cannot be trusted, and whether more was planned than could be done. In one
/// line, without an end.
pub fn verdict_line(judged: &Judged<'_>) -> String {
    let judgement = &judged.judgement;
    let mut line = judgement.verdict.name().to_owned();
    if !judgement.because.is_empty() {
        line.push_str(": ");
        line.push_str(&judgement.because);
    }
    if let Some(overload) = judged.overload {
        line.push_str(&format!(
            "; overloaded: about {:.0} requests/s could be done of those that were planned",
            overload.capacity_per_s
        ));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: &[u8] = include_bytes!("../../../fuzz/corpus/stored_run/open");
    const OVERLOADED: &[u8] = include_bytes!("../../../fuzz/corpus/stored_run/overloaded");

    #[test]
    fn the_line_of_an_overloaded_run_says_so() {
        for (mut stored, is_overloaded) in [(OPEN, false), (OVERLOADED, true)] {
            let run = brunt_report::read(&mut stored).expect("a stored run");
            let line = verdict_line(&Judged::of(&run));
            assert_eq!(line.contains("; overloaded: about "), is_overloaded);
            assert!(!line.contains('\n'), "{line}");
        }
    }
}
