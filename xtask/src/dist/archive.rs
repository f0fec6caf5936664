//! The archive that runs from any folder: `brunt-VERSION-ARCHITECTURE-linux.tar.gz`, or
//! `…-linux-static.tar.gz`.

use std::process::Command;

use anyhow::Result;

use super::tree::Tree;
use super::{Release, copy};
use crate::shell;

/// Writes it.
///
/// # Errors
///
/// `tar` fails.
pub(super) fn write(release: &Release<'_>, tree: &Tree) -> Result<()> {
    let name = format!("brunt-{}-{}", release.version, release.target.label());
    let parent = release.scratch.join("archive");
    tree.lay(&parent.join(&name), |entry| Some(entry.in_archive.clone()))?;
    // Makes an image of the folder that it is in.
    let containerfile = release.root.join("packaging/Containerfile");
    copy(&containerfile, &parent.join(&name).join("Containerfile"))?;
    let mut tar = Command::new("tar");
    tar.args(["--create", "--format=gnu", "--sort=name", "--numeric-owner"])
        .args(["--owner=0", "--group=0"])
        .arg(format!("--mtime=@{}", release.epoch_s))
        // Without a name and a time of its own.
        .arg("--use-compress-program=gzip --no-name --best")
        .arg("--file")
        .arg(release.directory.join(format!("{name}.tar.gz")))
        .arg("--directory")
        .arg(&parent)
        .arg(&name);
    shell::run(&mut tar)
}
