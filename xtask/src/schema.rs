//! The step `schema`: the committed JSON Schemas of what is stored must be the generated ones.

use anyhow::{Context, Result, bail};

use crate::shell;
use crate::workspace::Workspace;

const COMMITTED: &str = "crates/report/schema";

/// What to do with a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Refuse it.
    Compare,
    /// Write the generated schema over the committed one.
    Bless,
}

impl Mode {
    /// Reads `[--bless]`.
    ///
    /// # Errors
    ///
    /// Anything else; the message quotes it.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        match arguments {
            [] => Ok(Self::Compare),
            [only] if only == "--bless" => Ok(Self::Bless),
            [first, ..] => bail!("`schema` takes only --bless, but got `{first}`"),
        }
    }
}

/// Compares, or rewrites, each of them.
///
/// # Errors
///
/// The schemas differ, or the schema cannot be generated, read or written.
pub(crate) fn run(workspace: &Workspace, mode: Mode) -> Result<()> {
    for name in generate(workspace, &[])?.lines() {
        let file = format!("{COMMITTED}/{name}.schema.json");
        let generated = generate(workspace, &["--", name])?;
        check(workspace, mode, &file, generated)?;
    }
    Ok(())
}

fn check(workspace: &Workspace, mode: Mode, file: &str, generated: String) -> Result<()> {
    let path = workspace.root().join(file);
    if mode == Mode::Bless {
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)
                .with_context(|| format!("cannot create {}", directory.display()))?;
        }
        std::fs::write(&path, generated).with_context(|| format!("cannot write {file}"))?;
        println!("schema: wrote {file}");
        return Ok(());
    }
    let committed =
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {file}"))?;
    if let Some(line) = first_difference(&committed, &generated) {
        bail!(
            "{file}:{line}: differs from what the code generates; if the change of the \
             format is meant, `cargo xtask schema --bless` and commit"
        );
    }
    Ok(())
}

/// What the example prints with these arguments.
fn generate(workspace: &Workspace, arguments: &[&str]) -> Result<String> {
    let mut command = shell::cargo();
    command.current_dir(workspace.root()).args([
        "run",
        "--quiet",
        "--package",
        "brunt-report",
        "--features",
        "schema",
        "--example",
        "schema",
    ]);
    command.args(arguments);
    shell::announce(&command);
    // What the compiler says still goes to the terminal.
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    shell::check(&shell::describe(&command), output.status)?;
    String::from_utf8(output.stdout).context("the generated schema is not UTF-8")
}

/// The first line, from 1, that is not the same in both.
fn first_difference(committed: &str, generated: &str) -> Option<usize> {
    if committed == generated {
        return None;
    }
    let same = committed
        .lines()
        .zip(generated.lines())
        .take_while(|(a, b)| a == b)
        .count();
    Some(same + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_different_line_is_named() {
        assert_eq!(first_difference("a\nb\n", "a\nb\n"), None);
        assert_eq!(first_difference("a\nb\n", "a\nc\n"), Some(2));
        assert_eq!(first_difference("a\n", "a\nb\n"), Some(2));
        assert_eq!(first_difference("a", "a\n"), Some(2));
    }

    #[test]
    fn bless_is_the_only_argument() {
        assert_eq!(Mode::parse(&[]).unwrap(), Mode::Compare);
        assert_eq!(Mode::parse(&["--bless".into()]).unwrap(), Mode::Bless);
        assert!(Mode::parse(&["--force".into()]).is_err());
    }
}
