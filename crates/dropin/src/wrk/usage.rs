//! What wrk and wrk2 print about themselves.

use super::program::Program;

const WRK: &str = include_str!("wrk.txt");

const WRK2: &str = include_str!("wrk2.txt");

/// The last line, which no blanks follow.
const TIMES: &str = "  Time arguments may include a time unit (2s, 2m, 2h)\n";

/// Columns to which the other lines are filled with blanks.
const WIDTH: usize = 54;

/// The usage text of a program.
pub(super) fn usage(program: Program) -> String {
    let text = match program {
        Program::Wrk => WRK,
        Program::Wrk2 => WRK2,
    };
    let lines = text.lines().map(|line| format!("{line:<WIDTH$}\n"));
    lines.chain([TIMES.to_owned()]).collect()
}

/// The version whose command line and text these are, and in brackets, where wrk names what makes
/// the load, brunt.
pub(super) fn version(program: Program) -> String {
    let version = match program {
        Program::Wrk => "4.1.0",
        Program::Wrk2 => "4.0.0",
    };
    let brunt = env!("CARGO_PKG_VERSION");
    format!("wrk {version} [brunt {brunt}] Copyright (C) 2012 Will Glozer\n")
}
