//! File length: a long file has more than one role.

use super::Finding;
use super::source::Source;

const LINES_MAX: usize = 800;

pub(super) fn check(source: &Source) -> Option<Finding> {
    // A test module in a file of its own is as exempt as one at the end of its parent.
    let outlined = !source.path.contains("/tests/") && source.is_test(1);
    let lines = source.text.lines().count() - source.test_line_count();
    (lines > LINES_MAX && !outlined).then(|| {
        Finding::new(
            &source.path,
            LINES_MAX + 1,
            format!(
                "{lines} lines without tests, over {LINES_MAX}: split the file by what its parts \
                 do"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(code: usize, test: usize) -> Source {
        let code = "fn f() {}\n".repeat(code);
        let test = "    fn f() {}\n".repeat(test);
        let text = format!("{code}#[cfg(test)]\nmod tests {{\n{test}}}\n");
        Source::parse("crates/load/src/plan.rs", &text).unwrap()
    }

    #[test]
    fn tests_do_not_count() {
        assert_eq!(check(&source(LINES_MAX, 500)), None);
        let finding = check(&source(LINES_MAX + 1, 5)).unwrap();
        assert!(finding.message.starts_with("801 lines"), "{finding}");
    }

    #[test]
    fn black_box_tests_count() {
        let text = "fn f() {}\n".repeat(LINES_MAX + 1);
        let source = Source::parse("crates/cli/tests/all.rs", &text).unwrap();
        assert!(check(&source).is_some());
    }
}
