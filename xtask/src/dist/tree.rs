//! The files that packages hold, in the folders of the archive.

use std::fs;
use std::process::Stdio;

use anyhow::{Context, Result};

use super::{Release, copy, write};
use crate::shell;

/// The folder of all files, beside the program.
pub(super) const FOLDER: &str = "package";

/// Completions: what generates them, and the names that shells look for.
const COMPLETIONS: [(&str, &str); 3] = [
    ("complete-bash", "brunt.bash"),
    ("complete-zsh", "_brunt"),
    ("complete-fish", "brunt.fish"),
];
/// What the source has; the last makes an image of the archive.
const FILES: [&str; 6] = [
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "packaging/Containerfile",
];

/// Fills the folder.
///
/// # Errors
///
/// The program cannot be run, or a file cannot be read or written.
pub(super) fn lay(release: &Release<'_>, third_party: &str) -> Result<()> {
    let folder = release.built.join(FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot empty {}", folder.display()))?;
    }
    copy(&release.program(), &folder.join("brunt"))?;
    let main = generate(release, "man")?;
    for name in commands(&main) {
        let page = generate(release, &format!("man-{name}"))?;
        write(&folder.join(format!("man/brunt-{name}.1")), &page)?;
    }
    write(&folder.join("man/brunt.1"), &main)?;
    for (kind, name) in COMPLETIONS {
        write(
            &folder.join("complete").join(name),
            &generate(release, kind)?,
        )?;
    }
    write(&folder.join("THIRD-PARTY.txt"), third_party)?;
    // pyproject.toml names it there.
    write(&release.root.join("target/THIRD-PARTY.txt"), third_party)?;
    for name in FILES {
        let file = name.rsplit('/').next().unwrap_or(name);
        copy(&release.root.join(name), &folder.join(file))?;
    }
    for file in fs::read_dir(release.root.join("docs")).context("cannot read docs")? {
        let file = file.context("cannot read docs")?;
        if file.path().is_file() {
            copy(&file.path(), &folder.join("docs").join(file.file_name()))?;
        }
    }
    Ok(())
}

/// What the program prints that packages install.
fn generate(release: &Release<'_>, kind: &str) -> Result<String> {
    let mut command = release.target.command(&release.program());
    command.args(["--generate", kind]).stderr(Stdio::inherit());
    let text = shell::output(&mut command);
    text.with_context(|| format!("the program does not print its `{kind}`"))
}

/// The commands that a manual page names, in its list of commands.
fn commands(page: &str) -> Vec<String> {
    let plain = page.replace("\\-", "-");
    let names = plain.lines().filter_map(|line| {
        let name = line.strip_prefix("brunt-")?.strip_suffix("(1)")?;
        (!name.contains(' ')).then(|| name.to_owned())
    });
    names.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_from_the_list_alone() {
        let page = ".SH COMMANDS\n.TP\nbrunt\\-serve(1)\nRun it\n.TP\nbrunt\\-tcp(1)\nLoad\n\
                    .SH \"SEE ALSO\"\nbrunt\\-serve(1), brunt\\-tcp(1)\n";
        assert_eq!(commands(page), ["serve", "tcp"]);
    }
}
