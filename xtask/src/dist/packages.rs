//! The packages, each by the tool of its kind, and the archive.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::{Release, tree};
use crate::{servers, shell};

/// What cargo installs.
const OF_CARGO: [&str; 2] = ["cargo-deb@3.8.0", "cargo-generate-rpm@0.21.1"];
/// What comes from PyPI.
const MATURIN: (&str, &str) = ("maturin", "1.16.0");
/// Where cargo installs, in the folder of the build: another system may share the sources.
const TOOLS: &str = "tools";

/// Installs the tools that are missing.
///
/// # Errors
///
/// One cannot be installed.
pub(super) fn install_tools(target_directory: &Path) -> Result<()> {
    for tool in OF_CARGO {
        let mut install = shell::cargo();
        install.args(["install", "--quiet", "--locked", tool]);
        shell::run(install.arg("--root").arg(target_directory.join(TOOLS)))?;
    }
    servers::install_of_pypi(target_directory, MATURIN.0, MATURIN.1)?;
    Ok(())
}

/// Makes the packages for Debian, Fedora and Python, and their like. The last is for
/// `compatibility`, or for the oldest platform that the program can run on.
///
/// # Errors
///
/// A tool fails. maturin does where the program needs more than `compatibility` has.
pub(super) fn package(release: &Release<'_>, compatibility: Option<&str>) -> Result<()> {
    let (target, version) = (release.target, &release.version);
    let command = |folder: &Path, program: &str, subcommand: Option<&str>| {
        let mut command = Command::new(folder.join(program));
        command
            .current_dir(release.root)
            .envs(release.environment.iter().cloned())
            .args(subcommand)
            .args(["--target", target.triple, "--profile", release.profile]);
        command
    };
    let tools = release.target_directory.join(TOOLS).join("bin");
    let deb = format!("brunt_{version}_{}.deb", target.debian);
    let mut make = command(&tools, "cargo-deb", None);
    make.args(["--package", "brunt", "--no-build", "--no-strip"])
        .args(["--deb-revision", "", "--output"])
        .arg(release.packages.join(deb));
    if let Some(maintainer) = maintainer(|name| std::env::var(name).ok()) {
        make.args(["--maintainer", &maintainer]);
    }
    if !target.is_this_machine() {
        make.args(["--variant", "cross"]);
    }
    shell::run(&mut make)?;

    let rpm = format!("brunt-{version}-1.{}.rpm", target.architecture());
    let mut make = command(&tools, "cargo-generate-rpm", None);
    make.args(["--package", "crates/cli", "--target-dir"])
        .arg(&release.target_directory)
        .arg("--output")
        .arg(release.packages.join(rpm));
    shell::run(&mut make)?;

    // It builds, and finds that the program is built.
    let of_pypi = servers::install_of_pypi(&release.target_directory, MATURIN.0, MATURIN.1)?;
    let mut make = command(&of_pypi, "maturin", Some("build"));
    make.args(["--locked", "--out"]).arg(&release.packages);
    if let Some(platform) = compatibility {
        make.args(["--compatibility", platform]);
    }
    shell::run(&mut make)
}

/// Who builds, by `DEBFULLNAME` and `DEBEMAIL`, which Debian's own tools read too.
fn maintainer(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let given = |name| variable(name).filter(|value| !value.is_empty());
    let (name, address) = (given("DEBFULLNAME")?, given("DEBEMAIL")?);
    Some(format!("{name} <{address}>"))
}

/// Writes the archive that runs from any folder.
///
/// # Errors
///
/// `tar` fails.
pub(super) fn archive(release: &Release<'_>) -> Result<()> {
    let name = release.name();
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=gnu", "--sort=name", "--numeric-owner"])
        .args(["--owner=0", "--group=0", "--mode=u=rwX,go=rX"])
        .arg(format!("--mtime=@{}", release.epoch_s))
        .arg(format!("--transform=s,^{},{name},", tree::FOLDER))
        // Without a name and a time of its own.
        .arg("--use-compress-program=gzip --no-name --best")
        .arg("--file")
        .arg(release.packages.join(format!("{name}.tar.gz")))
        .arg("--directory")
        .arg(&release.built)
        .arg(tree::FOLDER);
    shell::run(&mut tar)
}

/// Writes `SHA256SUMS`: what a download is compared with.
///
/// # Errors
///
/// `sha256sum` fails.
pub(super) fn sum(release: &Release<'_>) -> Result<()> {
    let mut sum = Command::new("sh");
    sum.args([
        "-ec",
        "rm -f SHA256SUMS; sha256sum -- * | tee ../sums; mv ../sums SHA256SUMS",
    ]);
    shell::run(sum.current_dir(&release.packages))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_name_who_builds_them() {
        assert_eq!(maintainer(|_| Some(String::new())), None);
        let given = |name: &str| Some(format!("the {name}"));
        assert_eq!(maintainer(given).unwrap(), "the DEBFULLNAME <the DEBEMAIL>");
    }
}
