//! The files that are installed, each with its place in the archive and on a system.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result};

use super::{Release, copy, write};
use crate::shell;

/// Completions: what generates them, their place in the archive, and that on a system.
const COMPLETIONS: [(&str, &str, &str); 3] = [
    (
        "complete-bash",
        "complete/brunt.bash",
        "usr/share/bash-completion/completions/brunt",
    ),
    (
        "complete-zsh",
        "complete/_brunt",
        "usr/share/zsh/site-functions/_brunt",
    ),
    (
        "complete-fish",
        "complete/brunt.fish",
        "usr/share/fish/vendor_completions.d/brunt.fish",
    ),
];
/// Where Debian has zsh look for what packages bring.
pub(super) const ZSH_OF_DEBIAN: &str = "usr/share/zsh/vendor-completions/_brunt";
/// Texts of the source that every archive holds.
pub(super) const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
/// Every package has its documentation here.
pub(super) const DOCUMENTATION: &str = "usr/share/doc/brunt";

/// One file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) source: PathBuf,
    /// Path in the folder of the archive.
    pub(super) in_archive: String,
    /// Path from the root of a system.
    pub(super) on_system: String,
    pub(super) is_program: bool,
}

/// All files.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) entries: Vec<Entry>,
}

impl Tree {
    /// Generates what `program` generates, and lists it with what the source has.
    ///
    /// # Errors
    ///
    /// The program cannot be run, or a file cannot be read or written.
    pub(super) fn gather(release: &Release<'_>, program: &Path, third_party: &str) -> Result<Self> {
        let mut tree = Self {
            entries: Vec::new(),
        };
        tree.add(program.into(), "brunt".into(), "usr/bin/brunt".into(), true);
        let generated = release.scratch.join("generated");
        let main = generate(release, program, "man")?;
        let mut pages = vec![("brunt.1".to_owned(), main.clone())];
        for name in commands(&main) {
            let page = generate(release, program, &format!("man-{name}"))?;
            pages.push((format!("brunt-{name}.1"), page));
        }
        for (name, page) in pages {
            let path = generated.join(&name);
            write(&path, &page)?;
            let system = format!("usr/share/man/man1/{name}");
            tree.add(path, format!("man/{name}"), system, false);
        }
        for (kind, archive, system) in COMPLETIONS {
            let path = generated.join(kind);
            write(&path, &generate(release, program, kind)?)?;
            tree.add(path, archive.into(), system.into(), false);
        }
        let path = generated.join("THIRD-PARTY.txt");
        write(&path, third_party)?;
        tree.document(path, "THIRD-PARTY.txt");
        for name in ["README.md", "CHANGELOG.md", "SECURITY.md"] {
            tree.document(release.root.join(name), name);
        }
        for name in LICENCES {
            tree.document(release.root.join(name), name);
        }
        let folder = fs::read_dir(release.root.join("docs")).context("cannot read docs")?;
        for file in folder {
            let path = file.context("cannot read docs")?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_file() {
                let name = format!("docs/{name}");
                tree.document(path, &name);
            }
        }
        tree.entries.sort_by(|a, b| a.on_system.cmp(&b.on_system));
        Ok(tree)
    }

    fn add(&mut self, source: PathBuf, in_archive: String, on_system: String, is_program: bool) {
        self.entries.push(Entry {
            source,
            in_archive,
            on_system,
            is_program,
        });
    }

    fn document(&mut self, source: PathBuf, name: &str) {
        let system = format!("{DOCUMENTATION}/{name}");
        self.add(source, name.to_owned(), system, false);
    }

    /// Copies every file to the place that `place` gives it below `folder`, if any.
    ///
    /// # Errors
    ///
    /// It cannot be copied.
    pub(super) fn lay(
        &self,
        folder: &Path,
        place: impl Fn(&Entry) -> Option<String>,
    ) -> Result<()> {
        for entry in &self.entries {
            let Some(place) = place(entry) else {
                continue;
            };
            let path = folder.join(place);
            copy(&entry.source, &path)?;
            let mode = if entry.is_program { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode))
                .with_context(|| format!("cannot set the mode of {}", path.display()))?;
        }
        set_folder_modes(folder)
    }
}

/// The modes of folders, whatever this process's mask is.
fn set_folder_modes(folder: &Path) -> Result<()> {
    let read = || format!("cannot read {}", folder.display());
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).with_context(read)?;
    for item in fs::read_dir(folder).with_context(read)? {
        let path = item.with_context(read)?.path();
        if path.is_dir() {
            set_folder_modes(&path)?;
        }
    }
    Ok(())
}

/// What the program prints that packages install.
fn generate(release: &Release<'_>, program: &Path, kind: &str) -> Result<String> {
    let mut command = release.target.command(program);
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
