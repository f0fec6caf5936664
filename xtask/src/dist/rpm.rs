//! The package of Fedora, RHEL, openSUSE and their like.

use std::process::Command;

use anyhow::{Context, Result};

use super::tree::{DOCUMENTATION, LICENCES, Tree};
use super::{Release, copy, write as write_text};
use crate::shell;

/// Writes it.
///
/// # Errors
///
/// `rpmbuild` fails, or a file cannot be written.
pub(super) fn write(release: &Release<'_>, tree: &Tree) -> Result<()> {
    let top = release.scratch.join("rpm");
    let files = top.join("files");
    tree.lay(&files, |entry| Some(on_system(&entry.on_system)))?;
    let mut pages = Command::new("gzip");
    pages.args(["--no-name", "--best"]);
    let man = tree.entries.iter().filter(|it| is_page(&it.on_system));
    pages.args(man.map(|it| files.join(&it.on_system)));
    shell::run(&mut pages)?;
    let spec = top.join("brunt.spec");
    let date = release.date("+%a %b %d %Y")?;
    let text = self::spec(release, tree, &files.display().to_string(), &date);
    write_text(&spec, &text)?;
    let mut rpmbuild = Command::new("rpmbuild");
    rpmbuild
        .arg("-bb")
        .arg(format!("--target={}-linux", release.target.architecture))
        .args(["--define", &format!("_topdir {}", top.display())])
        .arg(&spec)
        .env("SOURCE_DATE_EPOCH", release.epoch_s.to_string());
    shell::run(&mut rpmbuild)?;
    let architecture = release.target.architecture;
    let name = format!("brunt-{}-1.{architecture}.rpm", release.version);
    let written = top.join("RPMS").join(architecture).join(&name);
    copy(&written, &release.directory.join(&name)).context("rpmbuild has not written the package")
}

fn is_page(path: &str) -> bool {
    path.starts_with("usr/share/man/")
}

/// Licences have a folder of their own.
fn on_system(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or_default();
    match LICENCES.contains(&name) || name == "THIRD-PARTY.txt" {
        true => format!("usr/share/licenses/brunt/{name}"),
        false => path.to_owned(),
    }
}

fn spec(release: &Release<'_>, tree: &Tree, files: &str, date: &str) -> String {
    let list = tree.entries.iter().map(|entry| {
        let path = on_system(&entry.on_system);
        match () {
            () if is_page(&path) => format!("%doc /{path}.gz\n"),
            () if path.starts_with(DOCUMENTATION) => format!("%doc /{path}\n"),
            () if path.starts_with("usr/share/licenses/") => format!("%license /{path}\n"),
            () => format!("/{path}\n"),
        }
    });
    format!(
        "# The program is built and stripped already, and its symbols are beside the packages.\n\
         %global debug_package %{{nil}}\n\
         %global __os_install_post %{{nil}}\n\
         %global _build_id_links none\n\
         %global _buildhost localhost\n\
         %global _binary_payload w9.xzdio\n\
         %global use_source_date_epoch_as_buildtime 1\n\
         %global clamp_mtime_to_source_date_epoch 1\n\
         %global source_date_epoch_from_changelog 0\n\
         Name: brunt\n\
         Version: {version}\n\
         Release: 1\n\
         Summary: Load generator for HTTP and TCP servers\n\
         License: MIT OR Apache-2.0\n\
         Group: Development/Tools\n\
         Packager: {maintainer}\n\
         {home}\
         Recommends: ca-certificates\n\
         %description\n\
         brunt loads servers of HTTP/1.1, HTTP/2, HTTP/3, WebSocket and raw TCP, with TLS or\n\
         without. It reports throughput, latency and failures, and says what limited\n\
         the run: the server, brunt itself, the network, or the load asked for.\n\
         %install\n\
         cp -a '{files}/.' %{{buildroot}}\n\
         %files\n\
         %dir /{DOCUMENTATION}\n\
         %dir /{DOCUMENTATION}/docs\n\
         %dir /usr/share/licenses/brunt\n\
         {list}\
         %changelog\n\
         * {date} {maintainer} - {version}-1\n\
         - CHANGELOG.md lists the changes.\n",
        version = release.version,
        maintainer = release.maintainer,
        home = release.home_line("URL:"),
        list = list.collect::<String>(),
    )
}
