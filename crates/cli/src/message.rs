//! The only file that prints: messages on standard error, one line each and safe for a terminal
//! whatever they quote, and what goes to standard output. A stream that takes nothing ends no run.

use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use brunt_report::{annotation, lines, printable};
use rustix::process::{Resource, getrlimit};

/// Returns to the start of a terminal's line, and erases it.
const ERASE: &str = "\r\x1b[K";

/// Standard output has refused something: the rest of it is dropped, too.
static IS_OUTPUT_LOST: AtomicBool = AtomicBool::new(false);
/// It has done so although its reader is there: its disk is full, say.
static HAS_OUTPUT_FAILED: AtomicBool = AtomicBool::new(false);

/// Prints `message`. Parts of it may come from files, from servers and from arguments.
pub(crate) fn print(message: &dyn Display) {
    line(&format!("brunt: {}", printable(&message.to_string())));
}

/// Prints a message that a script has raised: its line breaks and tabs are meant, as in the trace
/// of an error.
pub(crate) fn print_of_script(message: &str) {
    print_lines(&format!("brunt: {message}"));
}

/// Prints the lines of `text` as they are: what another tool says in the place of brunt.
pub(crate) fn print_lines(text: &str) {
    for words in lines(text).lines() {
        line(words);
    }
}

/// Has GitHub Actions show `text` as an error of the run (a workflow command).
pub(crate) fn annotate(text: &str) {
    line(&format!("::error title=brunt::{}", annotation(text)));
}

/// Prints one line of our own words to standard error.
pub(crate) fn line(words: &str) {
    to_stderr(&format!("{words}\n"));
}

/// Draws `words` over what was drawn on the terminal on standard error.
pub(crate) fn draw(words: &str) {
    to_stderr(&format!("{ERASE}{words}"));
}

/// Takes away what was drawn.
pub(crate) fn erase() {
    to_stderr(ERASE);
}

/// Whether standard error is a terminal, on which a line can be drawn over.
pub(crate) fn is_live() -> bool {
    io::stderr().is_terminal()
}

/// Ends the process as `error` asks for: with its help or version on standard output, or with what
/// is wrong about the arguments on standard error.
pub(crate) fn exit_with_usage(error: &clap::Error) -> ! {
    let text = error.render();
    let plain = text.to_string();
    // What is wrong quotes arguments. Colour is left to what quotes nothing harmful.
    if error.use_stderr() && lines(&plain) != plain {
        print_lines(&plain);
        std::process::exit(error.exit_code());
    }
    let outcome = error.print();
    if !error.use_stderr() {
        note_output(outcome);
    }
    exit_with(error.exit_code())
}

/// Ends the process with this code, unless standard output failed.
pub(crate) fn exit_with(code: i32) -> ! {
    std::process::exit(if has_output_failed() {
        i32::from(crate::exit::SETUP)
    } else {
        code
    });
}

/// Whether something that standard output was to hold is missing there, unless its reader went
/// away: nobody misses it then.
pub(crate) fn has_output_failed() -> bool {
    HAS_OUTPUT_FAILED.load(Ordering::Relaxed)
}

/// Notes that standard output has refused something, and says so once.
fn note_output(outcome: io::Result<()>) {
    let Err(error) = outcome else {
        return;
    };
    let was_lost = IS_OUTPUT_LOST.swap(true, Ordering::Relaxed);
    if !was_lost && error.kind() != ErrorKind::BrokenPipe {
        HAS_OUTPUT_FAILED.store(true, Ordering::Relaxed);
        let error = with_limit(error);
        print(&format_args!("cannot write to standard output: {error}"));
    }
}

/// What writes to a file met: where that is the largest size that a file may have, the limit is
/// named.
pub(crate) fn with_limit(error: io::Error) -> io::Error {
    match getrlimit(Resource::Fsize).current {
        Some(bytes) if error.kind() == ErrorKind::FileTooLarge => io::Error::new(
            ErrorKind::FileTooLarge,
            format!(
                "a file may have {bytes} bytes at most here (RLIMIT_FSIZE); raise that with \
                 `ulimit -f`"
            ),
        ),
        _ => error,
    }
}

/// Writes `text` to standard error in one piece, so that lines of several threads do not mix. A
/// failure is ignored: nobody can be told of it.
fn to_stderr(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Prints `text` to standard output at once. A reader that went away is no error; another one is a
/// message, which [`has_output_failed`] remembers.
pub(crate) fn output(text: &str) {
    output_bytes(text.as_bytes());
}

/// Prints `bytes` as [`output`] does a text.
pub(crate) fn output_bytes(bytes: &[u8]) {
    if !IS_OUTPUT_LOST.load(Ordering::Relaxed) {
        note_output(to_stdout(bytes));
    }
}

/// Writes to standard output what was asked for there by name (`-o -`): what cannot be written is
/// an error, as of a file. A reader that went away is none.
pub(crate) fn output_as_file(bytes: &[u8]) -> io::Result<()> {
    match to_stdout(bytes) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

fn to_stdout(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Whether standard output is a terminal.
pub(crate) fn is_output_terminal() -> bool {
    io::stdout().is_terminal()
}
