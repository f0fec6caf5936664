//! The files that the rules read, and one Rust file taken apart: tokens, syntax, test code.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::{Delimiter, LexError, Span, TokenStream, TokenTree};

/// Directories that hold no source of ours: built files, and inputs of fuzz targets.
const SKIPPED_DIRECTORIES: &[&str] = &["target", "corpus", "artifacts"];
/// Directories with a leading dot that do hold source of ours.
const KEPT_DOT_DIRECTORIES: &[&str] = &[".cargo", ".ci", ".github"];
/// What the rules are about: Rust and documents.
const EXTENSIONS: &[&str] = &["rs", "md"];

/// The files under `root` that the rules are about, sorted: not those that are built, nor the
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
            } else if EXTENSIONS
                .iter()
                .any(|known| path.extension() == Some(known.as_ref()))
            {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// A token, with groups dissolved into their delimiters. Comments are not tokens.
pub(super) struct Token {
    /// The token as written; for a delimiter its character.
    pub(super) text: String,
    /// Line on which it starts, from 1.
    pub(super) line: usize,
    /// It is compiled for tests only.
    pub(super) is_test: bool,
}

/// One Rust file.
pub(super) struct Source {
    /// Path from the workspace's root.
    pub(super) path: String,
    pub(super) tokens: Vec<Token>,
    /// Names of the modules that `#[cfg(test)] mod NAME;` puts into files of their own.
    test_modules: Vec<String>,
}

impl Source {
    /// Reads `text`; whether the file is an outlined test module is not known yet.
    ///
    /// # Errors
    ///
    /// It is not Rust.
    pub(super) fn parse(path: &str, text: &str) -> Result<Self, LexError> {
        let mut source = Self {
            path: path.to_owned(),
            tokens: Vec::new(),
            test_modules: Vec::new(),
        };
        source.read(text, text.parse()?, is_named_for_tests(path));
        Ok(source)
    }

    fn read(&mut self, text: &str, stream: TokenStream, is_test: bool) {
        let trees: Vec<TokenTree> = stream.into_iter().collect();
        let mut is_test_item = false;
        for (at, tree) in trees.iter().enumerate() {
            // A doc comment is an attribute, whose tokens lie where the comment does.
            let written = &text[tree.span().byte_range().start..];
            if written.starts_with("//") || written.starts_with("/*") {
                continue;
            }
            is_test_item |= is_test_condition(&trees[at..]);
            let is_test = is_test || is_test_item;
            let token = |text: &str, span: Span| Token {
                text: text.to_owned(),
                line: span.start().line,
                is_test,
            };
            let mut is_end = false;
            if let TokenTree::Group(group) = tree {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                // `use a::{b};` ends behind its braces.
                let next = trees.get(at + 1).map(ToString::to_string);
                is_end = open == "{" && next.as_deref() != Some(";");
                self.tokens.push(token(open, group.span_open()));
                self.read(text, group.stream(), is_test);
                self.tokens.push(token(close, group.span_close()));
            } else {
                let written = tree.to_string();
                self.tokens.push(token(&written, tree.span()));
                if is_test_item && written == ";" {
                    is_end = true;
                    if let [.., keyword, name, _] = &trees[..=at]
                        && keyword.to_string() == "mod"
                    {
                        self.test_modules.push(name.to_string());
                    }
                }
            }
            is_test_item &= !is_end;
        }
    }

    /// How many lines hold code that is not compiled for tests only.
    pub(super) fn product_lines(&self) -> usize {
        let product = self.tokens.iter().filter(|token| !token.is_test);
        let lines = product.flat_map(|token| (token.line..).zip(token.text.lines()));
        let lines = lines.filter(|(_, text)| !text.is_empty());
        lines.map(|(line, _)| line).collect::<HashSet<_>>().len()
    }

    /// The first token of each place at which the tokens `pattern` follow each other.
    pub(super) fn find<'a>(&'a self, pattern: &'a [&str]) -> impl Iterator<Item = &'a Token> + 'a {
        let windows = self.tokens.windows(pattern.len());
        let found = windows.filter(move |window| {
            let mut pairs = window.iter().zip(pattern);
            pairs.all(|(token, text)| token.text == *text)
        });
        found.map(|window| &window[0])
    }

    /// The paths without `.rs` under which the test modules of this file may be found.
    fn test_module_stems(&self) -> impl Iterator<Item = String> + '_ {
        let stem = self.path.trim_end_matches(".rs");
        let (directory, name) = stem.rsplit_once('/').unwrap_or(("", stem));
        let home = match name {
            "lib" | "main" | "mod" => directory,
            _ => stem,
        };
        let modules = self.test_modules.iter();
        modules.map(move |module| format!("{home}/{module}"))
    }
}

/// Whether an attribute begins here that compiles its item for tests only.
fn is_test_condition(trees: &[TokenTree]) -> bool {
    let [TokenTree::Punct(punct), TokenTree::Group(group), ..] = trees else {
        return false;
    };
    let condition: String = group.stream().to_string().split_whitespace().collect();
    let conditions = ["cfg(test)", "cfg(any(test", "cfg(all(test"];
    punct.as_char() == '#' && conditions.iter().any(|begin| condition.starts_with(begin))
}

/// Whether a file is compiled for tests only by its place or its name.
fn is_named_for_tests(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    folders
        .split('/')
        .any(|folder| matches!(folder, "tests" | "benches"))
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
        let is_test = stems.iter().any(|stem| {
            let below = path.strip_prefix(stem.as_str());
            below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        for token in &mut source.tokens {
            token.is_test |= is_test;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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
        let tests = source.tokens.iter().filter(|token| token.is_test);
        let test_lines: BTreeSet<usize> = tests.map(|token| token.line).collect();
        assert_eq!(Vec::from_iter(test_lines), [4, 5, 6, 7, 8, 9]);
        assert_eq!(source.product_lines(), 2);
    }

    #[test]
    fn outlined_test_modules_are_found_below_their_parent() {
        let parse = |path: &str, text: &str| Source::parse(path, text).unwrap();
        let mut sources = vec![
            parse("crates/load/src/plan.rs", WITH_TESTS),
            parse("crates/load/src/lib.rs", WITH_TESTS),
            parse("crates/load/src/plan/outlined.rs", "fn f() {}\n"),
            parse("crates/load/src/outlined/deep.rs", "fn f() {}\n"),
            parse("crates/load/src/outlined_not.rs", "fn f() {}\n"),
            parse("crates/load/tests/all.rs", "fn f() {}\n"),
        ];
        mark_outlined_tests(&mut sources);
        let product_lines: Vec<usize> = sources.iter().map(Source::product_lines).collect();
        assert_eq!(product_lines, [2, 2, 0, 0, 1, 0]);
    }

    #[test]
    fn patterns_are_found_inside_macros_and_not_inside_literals_or_comments() {
        let text = "fn f() {\n    g!(a::b());\n    let _ = \"a::b\"; // a::b\n}\n";
        let source = Source::parse("f.rs", text).unwrap();
        let found = source.find(&["a", ":", ":", "b"]);
        let lines: Vec<usize> = found.map(|token| token.line).collect();
        assert_eq!(lines, [2]);
    }

    #[test]
    fn only_sources_are_listed() {
        let root = tempfile::tempdir().unwrap();
        for path in [
            "a.rs",
            "page.html",
            "target/b.rs",
            ".git/c.md",
            ".github/d.md",
        ] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let listed = files(root.path()).unwrap();
        let expected = [".github/d.md", "a.rs"].map(|path| root.path().join(path));
        assert_eq!(listed, expected);
    }
}
