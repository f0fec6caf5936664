//! How many checks and tests ended how.

/// Checks and tests by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

impl Tally {
    /// One check that passed.
    pub(crate) const ONE: Self = Self {
        passed: 1,
        failed: 0,
        skipped: 0,
    };

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }

    /// Reads the line with which the test harness of one binary ends.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (_verdict, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
        let mut tally = Self::default();
        let counts = counts.split("; ");
        for (count, word) in counts.filter_map(|part| part.split_once(' ')) {
            let place = match word {
                "passed" => &mut tally.passed,
                "failed" => &mut tally.failed,
                "ignored" => &mut tally.skipped,
                _ => continue,
            };
            *place = count.parse().ok()?;
        }
        Some(tally)
    }

    /// The last line of the step's output.
    pub(crate) fn line(self) -> String {
        let mut line = format!("{} passed, {} failed", self.passed, self.failed);
        if self.skipped > 0 {
            line.push_str(&format!(", {} skipped", self.skipped));
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(passed: u64, failed: u64, skipped: u64) -> Tally {
        Tally {
            passed,
            failed,
            skipped,
        }
    }

    #[test]
    fn results_are_read_and_other_lines_are_not() {
        let cases = [
            (
                "test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 1 filtered out; \
                 finished in 0.03s",
                Some(tally(12, 0, 3)),
            ),
            (
                "test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; \
                 finished in 1.20s",
                Some(tally(2, 1, 0)),
            ),
            ("test result_is_read ... ok", None),
            ("running 3 tests", None),
            ("", None),
        ];
        for (line, expected) in cases {
            assert_eq!(Tally::parse(line), expected, "{line}");
        }
    }
}
