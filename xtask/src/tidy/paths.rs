//! Paths that documents name exist: those from the root of the repository, the targets of links,
//! and files of Rust by the end of their path.

use std::path::Path;

use super::Finding;

/// Folders whose paths are checked wherever a document names one.
const FOLDERS: &[&str] = &["crates/", "xtask/", "fuzz/", "bench/", "docs/", ".ci/"];

/// Looks through the document at `path`. `files` are the repository's sources, from its root.
pub(super) fn check(root: &Path, path: &str, text: &str, files: &[String]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let folder = Path::new(path).parent().unwrap_or(Path::new(""));
    for (line, number) in text.lines().zip(1..) {
        let missing_paths = paths(line).filter(|named| !root.join(named).exists());
        let missing_links = links(line).filter(|link| !root.join(folder).join(link).exists());
        let missing_files = quoted(line).filter(|name| is_unknown(name, files));
        for named in missing_paths.chain(missing_links).chain(missing_files) {
            let message = format!("{named} does not exist: name what does, or nothing");
            findings.push(Finding::new(path, number, message));
        }
    }
    findings
}

/// Paths that begin with one of the folders.
fn paths(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !(c.is_ascii_alphanumeric() || "_-./".contains(c)))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| FOLDERS.iter().any(|folder| word.starts_with(folder)))
}

/// Targets of links within the repository, without the place in the document.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let (target, _) = rest.split_once(')')?;
        let (target, _) = target.split_once('#').unwrap_or((target, ""));
        (!target.is_empty() && !target.contains("://")).then_some(target)
    })
}

/// What stands between back quotes.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Whether `name` is a file of Rust, named by the end of its path, that is not among `files`.
fn is_unknown(name: &str, files: &[String]) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let is_found = |file: &String| {
        file.strip_suffix(name)
            .is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    let is_rust = name.len() > 3 && name.ends_with(".rs") && name.chars().all(is_name);
    is_rust && !FOLDERS.iter().any(|folder| name.starts_with(folder)) && !files.iter().any(is_found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Workspace;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let files = ["xtask/src/main.rs".to_owned()];
        let workspace = Workspace::find().unwrap();
        check(workspace.root(), path, text, &files)
            .iter()
            .map(|finding| finding.line)
            .collect()
    }

    #[test]
    fn what_exists_may_be_named() {
        let text = "`xtask/src/main.rs`, `main.rs`, `src/main.rs`, xtask/src.\n\
            ```\nxtask/src/main.rs\n```\n[a](README.md#use) [b](#here) [c](https://a.example/b)\n";
        assert_eq!(lines("ARCHITECTURE.md", text), [0_usize; 0]);
        assert_eq!(
            lines("docs/a.md", "[a](../README.md), `.rs`\n"),
            [0_usize; 0]
        );
    }

    #[test]
    fn what_does_not_exist_is_found() {
        for text in [
            "`xtask/src/gone.rs`",
            "in xtask/gone, and",
            "`gone.rs`",
            "`ain.rs`",
            "[a](GONE.md)",
            "```\nbench/gone\n```",
        ] {
            let number = 1 + usize::from(text.starts_with("```"));
            assert_eq!(lines("ARCHITECTURE.md", text), [number], "{text}");
        }
        // From its own folder: this one stands at the root.
        assert_eq!(lines("docs/a.md", "[a](CONTRIBUTING.md)\n"), [1]);
    }
}
