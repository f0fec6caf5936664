//! What says that work is unfinished: marks in comments, placeholder macros, hidden tests and
//! silenced warnings about dead code.

use super::Finding;
use super::source::Source;

const MARKS: &[&str] = &["TODO", "FIXME", "XXX"];
const MACROS: &[&str] = &["todo", "unimplemented", "dbg"];

pub(super) fn check(source: &Source) -> Vec<Finding> {
    let mut findings = marks(&source.path, &source.without_literals());
    for name in MACROS {
        for line in source.find(&[name, "!"]) {
            findings.push(Finding::new(
                &source.path,
                line,
                format!("`{name}!` is for work in progress: finish it or take it out"),
            ));
        }
    }
    for level in ["allow", "expect"] {
        for at in source.positions(&[level, "("]) {
            let names = source.group(at + 1);
            if names.iter().any(|token| token.text == "dead_code") {
                findings.push(Finding::new(
                    &source.path,
                    source.tokens[at].line,
                    "dead code is not silenced: remove the code",
                ));
            }
        }
    }
    for line in source.find(&["#", "[", "ignore"]) {
        findings.push(Finding::new(
            &source.path,
            line,
            "`#[ignore]` hides a test: make it fast and certain, or remove it",
        ));
    }
    findings
}

/// The marks alone, for scripts and configuration. Prose may speak of them.
pub(super) fn check_text(path: &str, text: &str) -> Vec<Finding> {
    if path.ends_with(".md") {
        return Vec::new();
    }
    marks(path, text)
}

fn marks(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_');
        if let Some(mark) = words.find(|word| MARKS.contains(word)) {
            findings.push(Finding::new(
                path,
                at + 1,
                format!("`{mark}`: do it now, or open an issue and take the mark out"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<usize> {
        let source = Source::parse("crates/load/src/plan.rs", text).unwrap();
        check(&source).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn finished_code_passes() {
        let good = "\
//! TODOS are not marks.
const MARK: &str = \"TODO\";
const XXXL: u32 = 1;
#[expect(clippy::too_many_lines, reason = \"dead_codes\")]
fn todo() { assert!(unreachable!()) }
";
        assert!(lines(good).is_empty());
    }

    #[test]
    fn unfinished_code_is_refused() {
        let cases = [
            "// TODO: later\n",
            "/// FIXME: wrong\nfn f() {}\n",
            "fn f() {} // XXX\n",
            "fn f() { todo!() }\n",
            "fn f() { unimplemented!(\"f\") }\n",
            "fn f() { g(dbg!(1)) }\n",
            "#[allow(unused, dead_code)] fn f() {}\n",
            "#![expect(dead_code, reason = \"later\")]\n",
            "#[ignore = \"slow\"] fn f() {}\n",
            "#[ignore] fn f() {}\n",
        ];
        for bad in cases {
            assert_eq!(lines(bad), [1], "{bad}");
        }
    }

    #[test]
    fn scripts_are_read_and_prose_is_not() {
        assert_eq!(check_text("bench/run", "# TODO\n").len(), 1);
        assert_eq!(check_text("bench/run", "# done\n"), []);
        assert_eq!(check_text("CONTRIBUTING.md", "no TODO\n"), []);
    }
}
