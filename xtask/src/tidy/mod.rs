//! The step `tidy`: rules about the sources that the compiler does not know. Each rule is a file
//! beside this one, with its table (who may use whom, where `unsafe` lives) at the top.

mod budget;
mod homes;
mod imports;
mod licences;
mod paths;
mod source;

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use cargo_metadata::{DependencyKind, Metadata};

pub(crate) use self::licences::built_packages;
use self::source::Source;
use crate::workspace::Workspace;

/// One thing that a rule refuses.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    /// Path from the workspace's root.
    path: String,
    /// Number of the line, from 1.
    line: usize,
    /// What is wrong, and what to do instead.
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// Applies every rule to the whole workspace.
///
/// # Errors
///
/// A rule refuses something (every finding has been printed), or the workspace cannot be read.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    println!("tidy: sources, layers, licences");
    let metadata = workspace.metadata()?;
    let mut findings = check_files(workspace.root())?;
    findings.extend(imports::check(&manifests(workspace, &metadata)));
    findings.extend(licences::check(&metadata)?);
    findings.sort();
    findings.dedup();
    for finding in &findings {
        println!("{finding}");
    }
    ensure!(findings.is_empty(), "findings: {}", findings.len());
    Ok(())
}

fn manifests(workspace: &Workspace, metadata: &Metadata) -> Vec<imports::Manifest> {
    let packages = metadata.workspace_packages();
    let ours = |name: &str| packages.iter().any(|package| *package.name == name);
    let manifests = packages.iter().map(|package| {
        let used = package.dependencies.iter().filter(|used| {
            let is_for_tests = used.kind == DependencyKind::Development
                && imports::is_for_tests(&package.name, &used.name);
            ours(&used.name) && !is_for_tests
        });
        imports::Manifest {
            path: relative(workspace.root(), package.manifest_path.as_std_path()),
            name: package.name.to_string(),
            uses: used.map(|used| used.name.clone()).collect(),
        }
    });
    manifests.collect()
}

/// Applies the rules about single files to everything under `root`.
fn check_files(root: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let mut sources = Vec::new();
    let files = source::files(root)?;
    let files: Vec<String> = files.iter().map(|path| relative(root, path)).collect();
    for relative in &files {
        let text = std::fs::read_to_string(root.join(relative));
        let text = text.with_context(|| format!("cannot read {relative}"))?;
        if relative.ends_with(".md") {
            findings.extend(paths::check(root, relative, &text, &files));
        }
        if !relative.ends_with(".rs") {
            continue;
        }
        match Source::parse(relative, &text) {
            Ok(source) => sources.push(source),
            Err(error) => findings.push(Finding::new(
                relative,
                error.span().start().line,
                format!("does not parse: {error}"),
            )),
        }
    }
    source::mark_outlined_tests(&mut sources);
    for source in &sources {
        findings.extend(homes::check(source));
    }
    findings.extend(budget::check(&sources));
    Ok(findings)
}

fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_come_from_every_rule_about_files() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("crates/load/src");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("lib.rs"), "pub fn now() { eprintln!(); }\n").unwrap();
        std::fs::write(directory.join("broken.rs"), "//! Broken.\nfn )\n").unwrap();
        let findings = check_files(root.path()).unwrap();
        for part in [
            "broken.rs:2: does not parse",
            "lib.rs:1: crates/cli/src/message.rs alone writes",
        ] {
            let found = findings.iter().any(|f| f.to_string().contains(part));
            assert!(found, "{part} is not in {findings:#?}");
        }
    }
}
