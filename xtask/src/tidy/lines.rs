//! Single lines: at most 100 columns, nothing after the last visible character.

use super::Finding;

const COLUMNS_MAX: usize = 100;

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fenced = false;
    let prose = path.ends_with(".md");
    // What brunt printed for a test is not broken by hand.
    let measured = (prose && !path.contains("/golden/")) || path.ends_with(".rs");
    for (at, line) in text.lines().enumerate() {
        if line.trim_end() != line {
            findings.push(Finding::new(path, at + 1, "trailing whitespace: remove it"));
        }
        if prose && line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        // An address or a table row cannot be broken; what a program printed is left as it was.
        let unbreakable = line.contains("://") || (prose && (fenced || line.starts_with('|')));
        let columns = line.chars().count();
        if measured && columns > COLUMNS_MAX && !unbreakable {
            findings.push(Finding::new(
                path,
                at + 1,
                format!("{columns} columns, over {COLUMNS_MAX}: break the line"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_characters() {
        let edge = "é".repeat(COLUMNS_MAX);
        assert_eq!(check("a.rs", &edge), []);
        for path in ["a.rs", "a.md"] {
            assert_eq!(check(path, &format!("{edge}é")).len(), 1, "{path}");
        }
        assert_eq!(check("a.toml", &format!("{edge}é")), []);
    }

    #[test]
    fn what_cannot_be_broken_passes() {
        let long = "x".repeat(COLUMNS_MAX);
        assert_eq!(check("a.md", &format!("| {long} |\n")), []);
        assert_eq!(check("a.md", &format!("```\n{long}xx\n```\n")), []);
        assert_eq!(check("a.rs", &format!("// https://{long}\n")), []);
        assert_eq!(check("tests/golden/a.md", &format!("{long}xx\n")), []);
        assert_eq!(check("a.md", &format!("```\n```\n{long}x\n")).len(), 1);
    }

    #[test]
    fn trailing_whitespace_is_refused_everywhere() {
        for path in ["a.rs", "a.md", "a.toml", ".ci/run"] {
            assert_eq!(check(path, "a \nb\t\nc\n").len(), 2, "{path}");
        }
    }
}
