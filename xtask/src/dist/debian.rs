//! The package of Debian and Ubuntu.

use std::process::Command;

use anyhow::{Context, Result};

use super::floor::GlibcVersion;
use super::tree::{DOCUMENTATION, LICENCES, Tree, ZSH_OF_DEBIAN};
use super::{Release, write as write_text};
use crate::shell;

/// Writes it.
///
/// # Errors
///
/// A tool fails, or a file cannot be written.
pub(super) fn write(release: &Release<'_>, tree: &Tree, glibc: GlibcVersion) -> Result<()> {
    let folder = release.scratch.join("debian");
    tree.lay(&folder, |entry| {
        let name = entry.in_archive.as_str();
        // In /usr/share/doc/brunt/copyright.
        if LICENCES.contains(&name) {
            return None;
        }
        Some(match name {
            "complete/_brunt" => ZSH_OF_DEBIAN.to_owned(),
            _ => entry.on_system.clone(),
        })
    })?;
    let documentation = folder.join(DOCUMENTATION);
    write_text(&documentation.join("copyright"), &copyright(release)?)?;
    write_text(&documentation.join("changelog"), &changelog(release)?)?;
    let mut compressed = vec![
        documentation.join("changelog"),
        documentation.join("THIRD-PARTY.txt"),
    ];
    let pages = tree
        .entries
        .iter()
        .filter(|it| it.on_system.ends_with(".1"));
    compressed.extend(pages.map(|it| folder.join(&it.on_system)));
    let mut gzip = Command::new("gzip");
    shell::run(gzip.args(["--no-name", "--best"]).args(compressed))?;
    let mut du = Command::new("du");
    let size = shell::output(
        du.args(["--summarize", "--apparent-size", "--block-size=1024"])
            .arg(&folder),
    );
    let size = size.context("`du` fails")?;
    let size = size.split_whitespace().next().unwrap_or("0");
    let mut md5sum = Command::new("sh");
    // In the order of names, and without the folder of control files, which is not yet there.
    md5sum.args(["-c", "find usr -type f | LC_ALL=C sort | xargs md5sum"]);
    let sums = shell::output(md5sum.current_dir(&folder)).context("`md5sum` fails")?;
    write_text(
        &folder.join("DEBIAN/control"),
        &control(release, size, glibc),
    )?;
    write_text(&folder.join("DEBIAN/md5sums"), &sums)?;
    let name = format!("brunt_{}_{}.deb", release.version, release.target.debian);
    let mut dpkg = Command::new("dpkg-deb");
    dpkg.args(["--root-owner-group", "-Zxz", "--build"])
        .arg(&folder)
        .arg(release.directory.join(name))
        .env("SOURCE_DATE_EPOCH", release.epoch_s.to_string());
    shell::run(&mut dpkg)
}

/// The control file: what the package manager reads.
fn control(release: &Release<'_>, size_kib: &str, glibc: GlibcVersion) -> String {
    format!(
        "Package: brunt\n\
         Version: {version}\n\
         Architecture: {architecture}\n\
         Maintainer: {maintainer}\n\
         Installed-Size: {size_kib}\n\
         Depends: libc6 (>= {glibc}), libgcc-s1 (>= 4.2)\n\
         Recommends: ca-certificates\n\
         Section: net\n\
         Priority: optional\n\
         {homepage}\
         Description: load generator for HTTP and TCP servers\n \
         brunt loads servers of HTTP/1.1, HTTP/2, HTTP/3, WebSocket and raw TCP, with\n \
         TLS or without. It reports throughput, latency and failures, and says what limited\n \
         the run: the server, brunt itself, the network, or the load asked for.\n",
        version = release.version,
        architecture = release.target.debian,
        maintainer = release.maintainer,
        homepage = release.home_line("Homepage:"),
    )
}

/// Debian's form of the licences: the whole text of one, and the place of the other.
fn copyright(release: &Release<'_>) -> Result<String> {
    let mit = std::fs::read_to_string(release.root.join("LICENSE-MIT"));
    let mit = mit.context("cannot read LICENSE-MIT")?;
    let holder = mit.lines().find(|line| line.starts_with("Copyright"));
    let holder = holder.context("LICENSE-MIT names no holder")?;
    let holder = holder.trim_start_matches("Copyright (c)").trim();
    let indented = mit.lines().map(|line| match line.trim() {
        "" => " .\n".to_owned(),
        line => format!(" {line}\n"),
    });
    Ok(format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: brunt\n\
         Comment: The program holds libraries of others, whose licences are in\n \
         /usr/share/doc/brunt/THIRD-PARTY.txt.gz.\n\
         \n\
         Files: *\n\
         Copyright: {holder}\n\
         License: Expat or Apache-2.0\n\
         \n\
         License: Expat\n\
         {}\
         \n\
         License: Apache-2.0\n \
         On Debian systems the text of the Apache License, Version 2.0, is in\n \
         /usr/share/common-licenses/Apache-2.0.\n",
        indented.collect::<String>()
    ))
}

/// Debian's form of a changelog, which says where the changes are.
fn changelog(release: &Release<'_>) -> Result<String> {
    let date = release.date("--rfc-email")?;
    Ok(format!(
        "brunt ({}) unstable; urgency=medium\n\n  \
         * CHANGELOG.md in this folder lists the changes.\n\n \
         -- {}  {}\n",
        release.version, release.maintainer, date
    ))
}
