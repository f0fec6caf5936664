//! `THIRD-PARTY.txt`: the libraries that are in the program or helped to build it, with their
//! licences.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use cargo_metadata::{Metadata, Package};

use crate::tidy::built_packages;

/// How files begin that hold a licence or a notice, in lower case.
const NAMES: [&str; 6] = [
    "license",
    "licence",
    "copying",
    "copyright",
    "notice",
    "unlicense",
];
/// How deep libraries in C lie in the package that brings them.
const DEPTH_MAX: usize = 3;
const RULE: &str =
    "================================================================================";

/// The text for `program` and everything below it.
///
/// # Errors
///
/// A file cannot be read, or a package comes without the text of a licence that is not brunt's own.
pub(super) fn text(metadata: &Metadata, program: &Package) -> Result<String> {
    let packages = built_packages(metadata, std::slice::from_ref(&program.id))?;
    // Many packages have the same text.
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut list = String::new();
    for package in packages {
        let name = format!("{} {}", package.name, package.version);
        let licence = package.license.as_deref().unwrap_or("see its text");
        let folder = package.manifest_path.parent();
        let folder = folder.context("a package has no folder")?.as_std_path();
        let files = files(folder, DEPTH_MAX)?;
        let mut note = "";
        if files.is_empty() {
            note = without_text(licence)
                .with_context(|| format!("{name} ({licence}) comes without its licence"))?;
        }
        writeln!(list, "{name}: {licence}{note}")?;
        for author in &package.authors {
            writeln!(list, "    {author}")?;
        }
        for file in files {
            let text = fs::read(&file);
            let text = text.with_context(|| format!("cannot read {}", file.display()))?;
            let text = String::from_utf8_lossy(&text).replace('\r', "");
            let place = file.strip_prefix(folder).unwrap_or(&file).display();
            let users = texts.entry(text.trim_end().to_owned()).or_default();
            users.insert(format!("{name} ({place})"));
        }
    }
    let mut out = format!(
        "brunt is made with the libraries below. They are in the program, or helped to build it.\n\
         Rust's standard library is in it, too: Copyright (c) The Rust Project Contributors,\n\
         MIT OR Apache-2.0.\n\n{list}"
    );
    for (text, users) in texts {
        let users: Vec<String> = users.into_iter().collect();
        write!(out, "\n{RULE}\nOf {}:\n\n{text}\n", users.join(",\n   "))?;
    }
    Ok(out)
}

/// What stands for the text of a package that comes without: one that is in every archive.
fn without_text(licence: &str) -> Option<&'static str> {
    if licence.contains("Apache-2.0") {
        Some("; it comes without a text, which is that of brunt's own LICENSE-APACHE")
    } else if licence.contains("MIT") {
        Some("; it comes without a text, which is that of brunt's own LICENSE-MIT, but held by")
    } else {
        None
    }
}

/// The files in `folder`, and so many levels below, that hold licences, sorted.
fn files(folder: &Path, depth: usize) -> Result<Vec<PathBuf>> {
    let read = || format!("cannot read {}", folder.display());
    let mut files = Vec::new();
    for item in fs::read_dir(folder).with_context(read)? {
        let path = item.with_context(read)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.to_lowercase();
        if path.is_dir() {
            if depth > 0 {
                files.extend(self::files(&path, depth - 1)?);
            }
        } else if NAMES.iter().any(|begin| name.starts_with(begin)) && !name.ends_with(".rs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_licences_of_brunt_need_no_text() {
        assert!(without_text("MIT OR Apache-2.0").is_some_and(|it| it.contains("APACHE")));
        assert!(without_text("MIT").is_some_and(|it| it.contains("LICENSE-MIT")));
        assert_eq!(without_text("ISC"), None);
    }

    #[test]
    fn licences_are_found_in_folders_of_libraries_too() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "LICENSE-MIT",
            "src/license.rs",
            "lib/COPYRIGHT",
            "a/b/c/d/NOTICE",
        ] {
            super::super::write(&folder.path().join(name), "").unwrap();
        }
        let found = files(folder.path(), DEPTH_MAX).unwrap();
        let found = found
            .iter()
            .map(|it| it.strip_prefix(folder.path()).unwrap());
        let found: Vec<&Path> = found.collect();
        assert_eq!(
            found,
            [Path::new("LICENSE-MIT"), Path::new("lib/COPYRIGHT")]
        );
    }
}
