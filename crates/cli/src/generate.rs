//! What packages install beside the program, from the description of the command line: manual pages
//! and completions of shells (`brunt --generate KIND`).

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::builder::Resettable;
use clap::{Arg, ArgAction, Command, CommandFactory, Id};
use clap_complete::Shell;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::commands::Arguments;
use crate::message;

/// The section of manuals that programs are in.
const SECTION: &str = "1";

/// Prints what `kind` names: `man`, `man-COMMAND`, `complete-bash`, `complete-zsh` or
/// `complete-fish`.
///
/// # Errors
///
/// It names something else; the message lists what there is.
pub(crate) fn run(kind: &str) -> Result<ExitCode> {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    let text = match kind {
        "man" => page(&command, None)?,
        "complete-bash" => completion(&command, Shell::Bash),
        "complete-zsh" => completion(&command, Shell::Zsh),
        "complete-fish" => completion(&command, Shell::Fish),
        _ => {
            let name = kind.strip_prefix("man-").unwrap_or_default();
            let Some(named) = command.find_subcommand(name) else {
                bail!("--generate takes {}, but got `{kind}`", kinds(&command));
            };
            page(&command, Some(named))?
        }
    };
    message::output(&text);
    Ok(ExitCode::SUCCESS)
}

/// All that can be generated, in words.
fn kinds(command: &Command) -> String {
    let pages = command.get_subcommands().map(Command::get_name);
    let pages: Vec<String> = pages.map(|name| format!("man-{name}")).collect();
    format!(
        "man, {}, complete-bash, complete-zsh or complete-fish",
        pages.join(", ")
    )
}

/// The manual page of `main`, or of `named`, which is one of its commands.
fn page(main: &Command, named: Option<&Command>) -> Result<String> {
    let shown = match named {
        Some(named) => named.clone(),
        None => main
            .clone()
            .subcommand_help_heading("COMMANDS")
            .override_usage("brunt [OPTIONS] [URL]\nbrunt COMMAND [OPTIONS] ..."),
    };
    let notes = shown
        .get_after_long_help()
        .or_else(|| shown.get_after_help());
    let notes = notes.map(ToString::to_string).unwrap_or_default();
    let version = main.get_version().unwrap_or_default();
    let title = shown.get_display_name().unwrap_or("brunt").to_owned();
    let man = Man::new(shown).section(SECTION);
    let mut out = Vec::new();
    // Written here: roff leaves out an argument that is empty, and the same source is to give the
    // same page on any day.
    writeln!(
        out,
        ".TH \"{title}\" {SECTION} \"\" \"brunt {version}\" \"User Commands\""
    )?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    if named.is_none() {
        man.render_subcommands_section(&mut out)?;
    }
    let mut roff = Roff::default();
    render_notes(&mut roff, &notes);
    let commands = main.get_subcommands().map(Command::get_name);
    let others = commands.filter(|name| named.is_none_or(|named| named.get_name() != *name));
    let others = others.map(|name| format!("brunt-{name}({SECTION})"));
    let program = named.map(|_| format!("brunt({SECTION})"));
    let also: Vec<String> = program.into_iter().chain(others).collect();
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(also.join(", "))]);
    roff.to_writer(&mut out)?;
    String::from_utf8(out).context("a manual page is not UTF-8")
}

/// What stands below the options in the help: paragraphs, and indented lines as they are.
fn render_notes(roff: &mut Roff, notes: &str) {
    let lines: Vec<&str> = notes.lines().collect();
    for (at, block) in lines
        .chunk_by(|a, b| a.starts_with(' ') == b.starts_with(' '))
        .enumerate()
    {
        let is_indented = block.iter().all(|line| line.starts_with(' '));
        if at == 0 {
            roff.control("SH", ["NOTES"]);
        }
        if is_indented {
            roff.control("RS", ["4"]).control("nf", []);
        }
        for (number, line) in block.iter().enumerate() {
            if !is_indented && (at, number) != (0, 0) {
                roff.control("PP", []);
            }
            roff.text([roman(line.trim())]);
        }
        if is_indented {
            roff.control("fi", []).control("RE", []);
        }
    }
}

/// The completion for `shell` of the program, of its commands, and of the names of other tools.
/// The first word without a dash is completed to a command, and not taken for the URL.
fn completion(main: &Command, shell: Shell) -> String {
    let commands = main
        .get_subcommands()
        .map(|command| visible(command, |_| true));
    let peers = brunt_dropin::TOOLS.iter().map(|name| {
        Command::new(*name).about(format!(
            "Take the command line of {name}, and print its text"
        ))
    });
    let mut command = visible(main, |option| !option.is_positional())
        .subcommands(commands)
        .subcommands(peers);
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut command, "brunt", &mut out);
    let text = String::from_utf8_lossy(&out);
    // Where the last word is an option that still lacks its value, fish's argparse refuses all.
    text.replace(
        "-- $cmd 2>/dev/null\n    or return\n",
        "-- $cmd 2>/dev/null\n    \
         or argparse -s (__fish_brunt_global_optspecs) -- $cmd[1..-2] 2>/dev/null\n    \
         or return\n",
    )
}

/// `command` with the arguments that `shows` chooses, without its commands, and without what its
/// help hides: completions would show that, too.
fn visible(command: &Command, shows: impl Fn(&Arg) -> bool) -> Command {
    let arguments = command
        .get_arguments()
        .filter(|option| !option.is_hide_set() && shows(option));
    Command::new(for_ever(command.get_name()))
        .about(command.get_about().cloned().unwrap_or_default())
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .disable_version_flag(true)
        .args(arguments.map(bare))
}

/// What a completion knows of an argument: not what it conflicts with or requires, which may be
/// hidden.
fn bare(argument: &Arg) -> Arg {
    let is_set = argument.get_action().takes_values();
    let bare = argument
        .clone()
        .conflicts_with(Resettable::<Id>::Reset)
        .requires(Resettable::<Id>::Reset)
        .required(false);
    if is_set {
        bare
    } else {
        bare.action(ArgAction::SetTrue)
    }
}

/// What clap takes as a name without its feature for owned ones: the process ends soon after.
fn for_ever(name: &str) -> &'static str {
    name.to_owned().leak()
}
