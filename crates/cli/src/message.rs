//! What goes to standard error: one line per message, safe for a terminal whatever it quotes.

use std::fmt::Display;

use brunt_report::printable;

/// Prints `message`. Parts of it may come from files, from servers and from arguments.
pub(crate) fn print(message: &dyn Display) {
    eprintln!("brunt: {}", printable(&message.to_string()));
}

/// Prints a message that a script has raised: its line breaks and tabs are meant, as in the trace
/// of an error.
pub(crate) fn print_of_script(message: &str) {
    print_lines(&format!("brunt: {message}"));
}

/// Prints the lines of `text` as they are: what another tool says in the place of brunt.
pub(crate) fn print_lines(text: &str) {
    for line in text.lines() {
        eprintln!("{}", printable_with_tabs(line));
    }
}

/// A line in which tabs are left: Lua's messages have them, and they move the cursor alone.
fn printable_with_tabs(line: &str) -> String {
    let parts: Vec<_> = line.split('\t').map(printable).collect();
    parts.join("\t")
}

/// Has GitHub Actions show `text` as an error of the run (a workflow command).
pub(crate) fn annotate(text: &str) {
    eprintln!("::error title=brunt::{}", workflow_data(text));
}

/// `text` as the message of a workflow command, in which a line break would begin another one.
fn workflow_data(text: &str) -> String {
    printable(text).replace('%', "%25")
}

/// Ends the process as `error` asks for: with its help or version on standard output, or with what
/// is wrong about the arguments on standard error.
pub(crate) fn exit_with_usage(error: &clap::Error) -> ! {
    let text = error.render();
    let lines = text.to_string();
    // What is wrong quotes arguments. Colour is left to what quotes nothing harmful.
    if error.use_stderr() && lines.lines().any(|line| printable(line) != line) {
        for line in lines.lines() {
            eprintln!("{}", printable(line));
        }
        std::process::exit(error.exit_code());
    }
    error.exit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabs_of_messages_are_left() {
        assert_eq!(printable_with_tabs("\tno\u{1b}\tfile"), "\tno\\u{1b}\tfile");
        assert_eq!(printable_with_tabs(""), "");
    }

    #[test]
    fn a_workflow_command_is_one_line() {
        assert_eq!(workflow_data("50 %\n::error::x"), "50 %25\\u{a}::error::x");
    }
}
