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
/// It names something else.
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
                bail!(
                    "--generate takes man, man-COMMAND, complete-bash, complete-zsh or \
                     complete-fish, but got `{kind}`"
                );
            };
            page(&command, Some(named))?
        }
    };
    message::output(&text);
    Ok(ExitCode::SUCCESS)
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
    let notes = shown.get_after_help().map(ToString::to_string);
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
    if notes.is_some() {
        roff.control("SH", ["NOTES"]);
    }
    for line in notes.iter().flat_map(|notes| notes.lines()) {
        let paragraph = if line.starts_with(' ') { "nf" } else { "PP" };
        // Indented lines stay lines.
        roff.control(paragraph, []).text([roman(line)]);
        roff.control("fi", []);
    }
    roff.to_writer(&mut out)?;
    String::from_utf8(out).context("a manual page is not UTF-8")
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
    let options = command.get_arguments();
    let options = options.filter(|option| !option.is_hide_set() && shows(option));
    // clap takes a name for ever without its feature for owned ones: the process ends soon.
    Command::new(&*command.get_name().to_owned().leak())
        .about(command.get_about().cloned().unwrap_or_default())
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .disable_version_flag(true)
        .args(options.map(bare))
}

/// What a completion knows of an argument: not what it conflicts with or requires, which may be
/// hidden.
fn bare(option: &Arg) -> Arg {
    let bare = option
        .clone()
        .conflicts_with(Resettable::<Id>::Reset)
        .requires(Resettable::<Id>::Reset)
        .required(false);
    if option.get_action().takes_values() {
        bare
    } else {
        bare.action(ArgAction::SetTrue)
    }
}
