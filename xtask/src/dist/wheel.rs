//! The package of Python, for `pip install`: the program lies in the folder of scripts, and no
//! Python runs.

use std::process::Command;

use anyhow::{Context, Result};

use super::floor::GlibcVersion;
use super::tree::{LICENCES, Tree};
use super::{Release, write as write_text};
use crate::shell;

/// Writes it.
///
/// # Errors
///
/// A file cannot be written, or Python fails.
pub(super) fn write(release: &Release<'_>, tree: &Tree, glibc: GlibcVersion) -> Result<()> {
    let version = &release.version;
    let folder = release.scratch.join("wheel");
    tree.lay(&folder, |entry| {
        let name = entry.in_archive.as_str();
        let is_licence = LICENCES.contains(&name) || name == "THIRD-PARTY.txt";
        match name {
            "brunt" => Some(format!("brunt-{version}.data/scripts/brunt")),
            _ if is_licence => Some(format!("brunt-{version}.dist-info/licenses/{name}")),
            _ => None,
        }
    })?;
    let tag = format!(
        "py3-none-{}_{}",
        glibc.manylinux(),
        release.target.architecture
    );
    let information = folder.join(format!("brunt-{version}.dist-info"));
    write_text(&information.join("METADATA"), &metadata(release)?)?;
    let wheel = format!(
        "Wheel-Version: 1.0\nGenerator: brunt-xtask ({version})\nRoot-Is-Purelib: false\n\
         Tag: {tag}\n"
    );
    write_text(&information.join("WHEEL"), &wheel)?;
    let mut python = Command::new("python3");
    python
        .arg(release.root.join("packaging/wheel.py"))
        .arg(&folder)
        .arg(format!("brunt-{version}.dist-info/RECORD"))
        .arg(release.directory.join(format!("brunt-{version}-{tag}.whl")))
        .arg(release.epoch_s.to_string());
    shell::run(&mut python)
}

fn metadata(release: &Release<'_>) -> Result<String> {
    let readme = std::fs::read_to_string(release.root.join("README.md"));
    let readme = readme.context("cannot read README.md")?;
    let files = LICENCES.into_iter().chain(["THIRD-PARTY.txt"]);
    let files = files.map(|name| format!("License-File: {name}\n"));
    Ok(format!(
        "Metadata-Version: 2.4\n\
         Name: brunt\n\
         Version: {}\n\
         Summary: {}\n\
         License-Expression: MIT OR Apache-2.0\n\
         {}\
         {}\
         Requires-Python: >=3.7\n\
         Description-Content-Type: text/markdown\n\
         \n\
         {}",
        release.version,
        release.summary,
        files.collect::<String>(),
        release.home_line("Project-URL: Home,"),
        readme
    ))
}
