//! No circle of imports between the modules of a crate that have folders of their own. Files of one
//! folder may know each other, and a folder may know what is above it and below it. Circles between
//! crates are refused by cargo itself, and by the table in imports.rs.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use super::Finding;
use super::source::{Source, Token};

/// How many names may lead to other names before an item is reached.
const ALIASES_MAX: usize = 8;

/// A module's path within its crate; empty for the root.
type Module = Vec<String>;

/// What the rule needs of one file.
struct File<'a> {
    path: &'a str,
    /// Names that this file brings in from the same crate, and what they stand for.
    names: HashMap<String, Vec<String>>,
    /// Paths within the crate that it mentions outside of tests, and where.
    mentions: Vec<(Vec<String>, usize)>,
}

pub(super) fn check(sources: &[Source]) -> Vec<Finding> {
    let mut crates: BTreeMap<&str, BTreeMap<Module, File<'_>>> = BTreeMap::new();
    for source in sources {
        let Some((root, module)) = place_of(&source.path) else {
            continue;
        };
        let file = File::read(source, &module);
        crates.entry(root).or_default().insert(module, file);
    }
    crates.values().flat_map(check_crate).collect()
}

/// The crate's folder and the module that a file is; absent for a file that is in no crate, or is a
/// program of its own.
fn place_of(path: &str) -> Option<(&str, Module)> {
    let (root, inner) = path.split_once("/src/")?;
    let parts = inner.strip_suffix(".rs")?.split('/');
    let mut module: Module = parts.map(str::to_owned).collect();
    if module == ["lib"] || module == ["main"] {
        module.clear();
    } else if module.last().is_some_and(|last| last == "mod") {
        module.pop();
    }
    (module.first().map(String::as_str) != Some("bin")).then_some((root, module))
}

impl<'a> File<'a> {
    fn read(source: &'a Source, module: &[String]) -> Self {
        let mut file = Self {
            path: &source.path,
            names: HashMap::new(),
            mentions: Vec::new(),
        };
        let tokens = source.tokens.iter().filter(|token| !token.is_test);
        let tokens: Vec<&Token> = tokens.collect();
        let texts: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
        let declared = texts.windows(3).filter(|it| it[0] == "mod" && it[2] == ";");
        let children: BTreeSet<&str> = declared.map(|it| it[1]).collect();
        let mut at = 0;
        while at < texts.len() {
            let begins = matches!(texts[at], "crate" | "super" | "self");
            let follows = texts[..at].ends_with(&[":", ":"]);
            if follows || !(begins || children.contains(texts[at])) {
                at += 1;
                continue;
            }
            let (line, is_use) = (tokens[at].line, texts[..at].ends_with(&["use"]));
            let mut paths = Vec::new();
            at = spelled(&texts, at, &[], &mut paths);
            for (path, name) in paths {
                // One word alone is a name of anything.
                if path.len() >= 2
                    && let Some(path) = within_crate(&path, module, &children)
                {
                    file.mentions.push((path.clone(), line));
                    if is_use {
                        file.names.insert(name, path);
                    }
                }
            }
        }
        file
    }
}

/// Reads the path that begins at a token, with the braces of a `use`: the paths that it stands for,
/// each with the name that it brings in. `before` is what stands before braces. Gives the first
/// token after it.
fn spelled(
    texts: &[&str],
    mut at: usize,
    before: &[String],
    paths: &mut Vec<(Vec<String>, String)>,
) -> usize {
    let is_word = |text: &&str| text.chars().all(|c| c.is_alphanumeric() || c == '_');
    let mut path = before.to_vec();
    while let Some(word) = texts.get(at).copied().filter(|text| is_word(text)) {
        path.push(word.to_owned());
        at += 1;
        if texts.get(at..at + 2) != Some(&[":", ":"]) {
            break;
        }
        at += 2;
    }
    if texts.get(at) == Some(&"{") && texts[at - 1] == ":" {
        at += 1;
        while at < texts.len() && texts[at] != "}" {
            at = spelled(texts, at, &path, paths);
            // A comma or `*`, which is no name.
            at += usize::from(texts.get(at).is_some_and(|text| *text != "}"));
        }
        return at + 1;
    }
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let mut name = path.last().cloned().unwrap_or_default();
    if let Some(["as", renamed]) = texts.get(at..at + 2) {
        name = (*renamed).to_owned();
        at += 2;
    }
    paths.push((path, name));
    at
}

/// A path as seen from the crate's root; absent for one of another crate.
fn within_crate(
    path: &[String],
    module: &[String],
    children: &BTreeSet<&str>,
) -> Option<Vec<String>> {
    let mut found = match path.first()?.as_str() {
        "crate" => Vec::new(),
        "self" => module.to_vec(),
        "super" => module[..module.len().checked_sub(1)?].to_vec(),
        name if children.contains(name) => [module, &path[..1]].concat(),
        _ => return None,
    };
    for part in &path[1..] {
        if part == "super" {
            found.pop()?;
        } else {
            found.push(part.clone());
        }
    }
    Some(found)
}

/// The folders that each folder uses, and where it does so first: the file and the line.
type Edges<'m> = BTreeMap<&'m [String], BTreeMap<&'m [String], (&'m str, usize)>>;

fn edges<'m>(files: &'m BTreeMap<Module, File<'_>>) -> Edges<'m> {
    let mut edges = Edges::new();
    for (module, file) in files {
        let from = folder_of(files, module);
        for (path, line) in &file.mentions {
            let Some(target) = resolve(files, path, ALIASES_MAX) else {
                continue;
            };
            let to = folder_of(files, target);
            if !from.starts_with(to) && !to.starts_with(from) {
                let targets = edges.entry(from).or_default();
                targets.entry(to).or_insert((file.path, *line));
            }
        }
    }
    edges
}

/// The module whose folder a file lies in.
fn folder_of<'m>(files: &BTreeMap<Module, File<'_>>, module: &'m [String]) -> &'m [String] {
    let has_folder = |other: &Module| other.len() > module.len() && other.starts_with(module);
    match module.split_last() {
        Some((_, folder)) if !files.keys().any(has_folder) => folder,
        _ => module,
    }
}

fn check_crate(files: &BTreeMap<Module, File<'_>>) -> Vec<Finding> {
    let edges = edges(files);
    let mut reported: BTreeSet<&[String]> = BTreeSet::new();
    let mut findings = Vec::new();
    for folder in edges.keys().copied() {
        if reported.contains(folder) {
            continue;
        }
        let Some(circle) = shortest_circle(&edges, folder) else {
            continue;
        };
        let names: Vec<String> = circle.iter().map(|folder| folder.join("::")).collect();
        let (path, line) = edges[folder][circle[1 % circle.len()]];
        findings.push(Finding::new(
            path,
            line,
            format!(
                "imports go in a circle: {}; move what both need into a module below both",
                names.join(" uses ")
            ),
        ));
        reported.extend(circle);
    }
    findings
}

/// The file in which the item at `path` is defined.
fn resolve<'f>(
    files: &'f BTreeMap<Module, File<'_>>,
    path: &[String],
    aliases_left: usize,
) -> Option<&'f Module> {
    let mut depth = path.len();
    let (module, file) = loop {
        match files.get_key_value(&path[..depth]) {
            Some(found) => break found,
            None => depth = depth.checked_sub(1)?,
        }
    };
    let named = path.get(depth).and_then(|name| file.names.get(name));
    match named {
        Some(target) if aliases_left > 0 => {
            let mut target = target.clone();
            target.extend_from_slice(&path[depth + 1..]);
            resolve(files, &target, aliases_left - 1)
        }
        _ => Some(module),
    }
}

/// The shortest way from a folder back to itself, beginning with it.
fn shortest_circle<'m>(edges: &Edges<'m>, from: &'m [String]) -> Option<Vec<&'m [String]>> {
    let mut seen = BTreeSet::new();
    let mut ways = VecDeque::from([vec![from]]);
    while let Some(way) = ways.pop_front() {
        for target in edges.get(way.last()?).into_iter().flat_map(BTreeMap::keys) {
            if *target == from {
                return Some(way);
            }
            if seen.insert(target) {
                ways.push_back([&way[..], &[target]].concat());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(path, text)| Source::parse(path, text).unwrap())
            .collect();
        check(&sources)
            .iter()
            .map(|finding| format!("{}:{}", finding.path, finding.line))
            .collect()
    }

    #[test]
    fn one_way_is_no_circle() {
        assert!(
            circles(&[
                ("crates/a/src/lib.rs", "mod b;\nmod c;\npub use b::B;\n"),
                (
                    "crates/a/src/b/mod.rs",
                    "use crate::c::C;\npub struct B(C);\n"
                ),
                ("crates/a/src/b/x.rs", ""),
                ("crates/a/src/c/mod.rs", "pub struct C;\n"),
                ("crates/a/src/c/x.rs", ""),
                ("crates/d/src/lib.rs", "use a::B;\n"),
            ])
            .is_empty()
        );
    }

    #[test]
    fn circles_are_found_through_every_kind_of_path() {
        // (what b says of c, what c says of b)
        for (there, back) in [
            ("use crate::c::C;", "use crate::b::B;"),
            ("use super::c::{C, D};", "use super::b;"),
            ("use crate::c::C;", "use crate::B;"),
            ("use crate::c::C;", "fn f() { crate::b::f(); }"),
            ("use crate::c::C;", "fn f() { use crate::{b::f, d}; f(); }"),
            ("use crate::c;", "fn f(b: super::b::B) {}"),
            ("use crate::c::*;", "use crate::b::B as Other;"),
        ] {
            let (b, c) = (format!("\n{there}\n"), format!("\n{back}\n"));
            let found = circles(&[
                ("crates/a/src/lib.rs", "mod b;\nmod c;\npub use b::B;\n"),
                ("crates/a/src/b/mod.rs", &b),
                ("crates/a/src/b/x.rs", ""),
                ("crates/a/src/c/mod.rs", &c),
                ("crates/a/src/c/x.rs", ""),
            ]);
            assert_eq!(found, ["crates/a/src/b/mod.rs:2"], "{there} {back}");
        }
    }

    #[test]
    fn files_of_a_folder_may_know_each_other() {
        let parent = "mod child;\nmod other;\nuse child::C;\npub struct P;\n";
        let found = circles(&[
            ("crates/a/src/b/mod.rs", parent),
            (
                "crates/a/src/b/child.rs",
                "use super::other::O;\npub struct C;\n",
            ),
            (
                "crates/a/src/b/other.rs",
                "use super::{C, P};\npub struct O;\n",
            ),
        ]);
        assert!(found.is_empty());
    }

    #[test]
    fn tests_may_look_back() {
        let with_test = "#[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n";
        let found = circles(&[
            ("crates/a/src/b/mod.rs", "use crate::c::C;\n"),
            ("crates/a/src/b/x.rs", ""),
            ("crates/a/src/c/mod.rs", with_test),
            ("crates/a/src/c/x.rs", ""),
        ]);
        assert!(found.is_empty());
    }
}
