//! The files that the rules read, and one Rust file taken apart: tokens, syntax, test code.

use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};

/// Directories that hold no source of ours: built files, and inputs of fuzz targets.
const SKIPPED_DIRECTORIES: &[&str] = &["target", "corpus", "artifacts"];
/// Directories with a leading dot that do hold source of ours.
const KEPT_DOT_DIRECTORIES: &[&str] = &[".cargo", ".ci", ".github"];
const EXTENSIONS: &[&str] = &["rs", "md", "toml", "py", "sh", "yml"];

/// The files under `root` that belong to the project, sorted: not those that are built, nor the
/// inputs of fuzz targets.
///
/// # Errors
///
/// A directory cannot be read.
pub(super) fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut directories = vec![root.to_path_buf()];
    while let Some(directory) = directories.pop() {
        let entries = std::fs::read_dir(&directory)
            .with_context(|| format!("cannot read {}", directory.display()))?;
        for entry in entries {
            let entry = entry?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let kind = entry.file_type()?;
            if kind.is_dir() {
                let hidden = name.starts_with('.') && !KEPT_DOT_DIRECTORIES.contains(&&*name);
                if !hidden && !SKIPPED_DIRECTORIES.contains(&&*name) {
                    directories.push(path);
                }
            } else if kind.is_file() {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a file is one whose text the rules are about: where it has no extension, a script.
pub(super) fn is_source(path: &Path) -> bool {
    match path.extension() {
        Some(extension) => EXTENSIONS.iter().any(|known| extension == *known),
        None => std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"#!")),
    }
}

/// A token with its groups dissolved into delimiters. Comments are not tokens, except doc
/// comments, which are attributes.
pub(super) struct Token {
    /// The token as written; for a delimiter its character.
    pub(super) text: String,
    /// Line on which it starts, from 1.
    pub(super) line: usize,
    span: Span,
}

/// One parsed Rust file.
pub(super) struct Source {
    /// Path from the workspace's root.
    pub(super) path: String,
    pub(super) text: String,
    pub(super) tokens: Vec<Token>,
    pub(super) syntax: syn::File,
    /// Lines of the items under `#[cfg(test)]`.
    test_items: Vec<RangeInclusive<usize>>,
    /// Names of the modules that `#[cfg(test)] mod NAME;` puts into files of their own.
    test_modules: Vec<String>,
    /// Whether the whole file is compiled for tests only.
    all_test: bool,
}

impl Source {
    /// Parses `text`; whether the file is an outlined test module is not known yet.
    ///
    /// # Errors
    ///
    /// It is not Rust.
    pub(super) fn parse(path: &str, text: &str) -> syn::Result<Self> {
        let stream: TokenStream = text.parse().map_err(syn::Error::from)?;
        let mut tokens = Vec::new();
        flatten(stream.clone(), &mut tokens);
        let syntax: syn::File = syn::parse2(stream)?;
        let mut source = Self {
            path: path.to_owned(),
            text: text.to_owned(),
            tokens,
            syntax,
            test_items: Vec::new(),
            test_modules: Vec::new(),
            all_test: is_named_for_tests(path),
        };
        source.find_test_items();
        Ok(source)
    }

    /// Whether this line is compiled for tests only.
    pub(super) fn is_test(&self, line: usize) -> bool {
        self.all_test || self.test_items.iter().any(|range| range.contains(&line))
    }

    /// How many lines hold code that is not compiled for tests only.
    pub(super) fn product_lines(&self) -> usize {
        let mut lines = HashSet::new();
        let mut comment_end = 0;
        for token in &self.tokens {
            let range = token.span.byte_range();
            let text = &self.text[range.clone()];
            // A doc comment is an attribute, whose tokens lie within the comment.
            if text.starts_with("//") || text.starts_with("/*") {
                comment_end = range.end;
            }
            if range.start >= comment_end {
                let numbered = (token.line..).zip(text.lines());
                lines.extend(
                    numbered
                        .filter(|(_, text)| !text.is_empty())
                        .map(|(line, _)| line),
                );
            }
        }
        lines
            .into_iter()
            .filter(|line| !self.is_test(*line))
            .count()
    }

    /// Lines at which the tokens `pattern` follow each other.
    pub(super) fn find<'a>(&'a self, pattern: &'a [&str]) -> impl Iterator<Item = usize> + 'a {
        self.positions(pattern).map(|at| self.tokens[at].line)
    }

    /// Indices of the first token of each place where `pattern` stands.
    pub(super) fn positions<'a>(&'a self, pattern: &'a [&str]) -> impl Iterator<Item = usize> + 'a {
        self.tokens
            .windows(pattern.len())
            .enumerate()
            .filter(move |(_, window)| {
                window
                    .iter()
                    .zip(pattern)
                    .all(|(token, text)| token.text == *text)
            })
            .map(|(at, _)| at)
    }

    /// The tokens inside the group that opens at index `open`.
    pub(super) fn group(&self, open: usize) -> &[Token] {
        let mut depth = 0_usize;
        for (at, token) in self.tokens.iter().enumerate().skip(open) {
            match token.text.as_str() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return &self.tokens[open + 1..at.max(open + 1)];
            }
        }
        &[]
    }

    fn find_test_items(&mut self) {
        const CONDITIONS: [&[&str]; 3] = [
            &["#", "[", "cfg", "(", "test", ")"],
            &["#", "[", "cfg", "(", "any", "(", "test"],
            &["#", "[", "cfg", "(", "all", "(", "test"],
        ];
        let starts: Vec<usize> = CONDITIONS
            .iter()
            .flat_map(|condition| self.positions(condition))
            .collect();
        for start in starts {
            let mut depth = 0_usize;
            // Behind the attribute's own brackets: to the `;` or the closing brace of the item.
            let item = start + 3 + self.group(start + 1).len();
            for at in item..self.tokens.len() {
                match self.tokens[at].text.as_str() {
                    "(" | "[" | "{" => depth += 1,
                    ")" | "]" | "}" => depth = depth.saturating_sub(1),
                    _ => {}
                }
                let token = &self.tokens[at];
                if depth == 0 && matches!(token.text.as_str(), ";" | "}") {
                    let last_line = token.span.end().line;
                    self.test_items.push(self.tokens[start].line..=last_line);
                    if token.text == ";" && self.tokens[at - 2].text == "mod" {
                        self.test_modules.push(self.tokens[at - 1].text.clone());
                    }
                    break;
                }
            }
        }
    }

    /// The paths without `.rs` under which the test modules of this file may be found.
    fn test_module_stems(&self) -> impl Iterator<Item = String> + '_ {
        let stem = self.path.trim_end_matches(".rs");
        let (directory, name) = stem.rsplit_once('/').unwrap_or(("", stem));
        let home = match name {
            "lib" | "main" | "mod" => directory,
            _ => stem,
        };
        self.test_modules
            .iter()
            .map(move |module| format!("{home}/{module}"))
    }
}

/// Whether a file is compiled for tests only by its place or its name.
fn is_named_for_tests(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    folders.split('/').any(|folder| folder == "tests")
        || name == "tests.rs"
        || name.ends_with("_tests.rs")
}

/// Marks the files that another file declares as `#[cfg(test)] mod NAME;`, and what is below them.
pub(super) fn mark_outlined_tests(sources: &mut [Source]) {
    let stems: HashSet<String> = sources
        .iter()
        .flat_map(|source| source.test_module_stems().collect::<Vec<_>>())
        .collect();
    for source in sources {
        let path = source.path.trim_end_matches(".rs");
        source.all_test |= stems.iter().any(|stem| {
            path.strip_prefix(stem.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
    }
}

fn flatten(stream: TokenStream, tokens: &mut Vec<Token>) {
    for tree in stream {
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                tokens.push(Token::new(open, group.span_open()));
                flatten(group.stream(), tokens);
                tokens.push(Token::new(close, group.span_close()));
            }
            TokenTree::Ident(ident) => {
                tokens.push(Token::new(ident.to_string(), ident.span()));
            }
            TokenTree::Punct(punct) => {
                tokens.push(Token::new(punct.as_char(), punct.span()));
            }
            TokenTree::Literal(literal) => {
                tokens.push(Token::new(literal.to_string(), literal.span()));
            }
        }
    }
}

impl Token {
    fn new(text: impl Into<String>, span: Span) -> Self {
        Self {
            text: text.into(),
            line: span.start().line,
            span,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITH_TESTS: &str = "\
//! A file.
fn code() {}

#[cfg(test)]
mod tests {
    fn helper() {}
}
#[cfg(test)]
mod outlined;
fn more() {}
";

    #[test]
    fn items_under_cfg_test_are_test_lines() {
        let source = Source::parse("crates/load/src/plan.rs", WITH_TESTS).unwrap();
        let test_lines: Vec<usize> = (1..=10).filter(|line| source.is_test(*line)).collect();
        assert_eq!(test_lines, [4, 5, 6, 7, 8, 9]);
        assert_eq!(source.product_lines(), 2);
    }

    #[test]
    fn outlined_test_modules_are_found_below_their_parent() {
        let parse = |path: &str, text: &str| Source::parse(path, text).unwrap();
        let mut sources = vec![
            parse("crates/load/src/plan.rs", WITH_TESTS),
            parse("crates/load/src/lib.rs", WITH_TESTS),
            parse("crates/load/src/plan/outlined.rs", "//! Tests.\n"),
            parse("crates/load/src/outlined/deep.rs", "//! Tests.\n"),
            parse("crates/load/src/outlined_not.rs", "//! Code.\n"),
            parse("crates/load/tests/all.rs", "//! Tests.\n"),
        ];
        mark_outlined_tests(&mut sources);
        let all_test: Vec<bool> = sources.iter().map(|source| source.all_test).collect();
        assert_eq!(all_test, [false, false, true, true, false, true]);
    }

    #[test]
    fn patterns_are_found_inside_macros_and_not_inside_literals_or_comments() {
        let text = "fn f() {\n    g!(a::b());\n    let _ = \"a::b\"; // a::b\n}\n";
        let source = Source::parse("f.rs", text).unwrap();
        let lines: Vec<usize> = source.find(&["a", ":", ":", "b"]).collect();
        assert_eq!(lines, [2]);
    }

    #[test]
    fn only_sources_are_listed() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("a.rs", ""),
            ("run", "#!/bin/sh\n"),
            ("data", "no script"),
            ("page.html", ""),
            ("target/b.rs", ""),
            (".git/c.toml", ""),
            (".ci/run", "#!/bin/sh\n"),
        ] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let listed = files(root.path()).unwrap();
        let names = |is_wanted: fn(&Path) -> bool| -> Vec<String> {
            let wanted = listed.iter().filter(|path| is_wanted(path));
            wanted
                .map(|path| path.strip_prefix(root.path()).unwrap())
                .map(|path| path.display().to_string())
                .collect()
        };
        let all = [".ci/run", "a.rs", "data", "page.html", "run"];
        assert_eq!(names(|_| true), all);
        assert_eq!(names(is_source), [".ci/run", "a.rs", "run"]);
    }
}
