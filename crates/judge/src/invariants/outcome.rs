//! What a check says: how the invariant stands, and the words for it.

use std::fmt::Write as _;

use super::InvariantStatus;

/// Problems spelt out; of the rest only the number is given.
const PROBLEMS_TOLD: usize = 3;

/// How an invariant stands, with its inputs in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) status: InvariantStatus,
    pub(super) detail: String,
}

impl Outcome {
    pub(super) fn held(detail: impl Into<String>) -> Self {
        Self {
            status: InvariantStatus::Held,
            detail: detail.into(),
        }
    }

    pub(super) fn flagged(detail: impl Into<String>) -> Self {
        Self {
            status: InvariantStatus::Flagged,
            detail: detail.into(),
        }
    }

    pub(super) fn broken(detail: impl Into<String>) -> Self {
        Self {
            status: InvariantStatus::Broken,
            detail: detail.into(),
        }
    }

    pub(super) fn not_applicable(detail: impl Into<String>) -> Self {
        Self {
            status: InvariantStatus::NotApplicable,
            detail: detail.into(),
        }
    }
}

impl Outcome {
    /// What the same check came to on each of several agents: it stands as on the one where it
    /// stands worst, and the detail is of those.
    pub(super) fn of_agents(outcomes: impl Iterator<Item = Self>) -> Self {
        let badness = |status| match status {
            InvariantStatus::NotApplicable => 0,
            InvariantStatus::Held => 1,
            InvariantStatus::Flagged => 2,
            InvariantStatus::Broken => 3,
        };
        let outcomes: Vec<(usize, Self)> = (1..).zip(outcomes).collect();
        let statuses = outcomes.iter().map(|(_, outcome)| outcome.status);
        let worst = statuses.max_by_key(|&status| badness(status));
        let status = worst.unwrap_or(InvariantStatus::NotApplicable);
        let of_worst = || outcomes.iter().filter(|(_, it)| it.status == status);
        let told = of_worst().take(PROBLEMS_TOLD);
        let told: Vec<String> = told
            .map(|(agent, outcome)| format!("agent {agent}: {}", outcome.detail))
            .collect();
        let mut detail = told.join("; ");
        let untold = of_worst().count() - told.len();
        if untold > 0 {
            let _ = write!(detail, "; and {untold} more");
        }
        Self { status, detail }
    }
}

/// The problems found by a check that looks at many things.
#[derive(Debug, Default)]
pub(super) struct Problems {
    told: Vec<String>,
    count: usize,
}

impl Problems {
    /// Notes the problem in `words` unless `holds`.
    pub(super) fn expect(&mut self, holds: bool, words: impl FnOnce() -> String) {
        if !holds {
            self.count += 1;
            if self.told.len() < PROBLEMS_TOLD {
                self.told.push(words());
            }
        }
    }

    /// `Broken` with the problems, where there are any.
    pub(super) fn broken(self) -> Option<Outcome> {
        if self.count == 0 {
            return None;
        }
        let mut detail = self.told.join("; ");
        let untold = self.count - self.told.len();
        if untold > 0 {
            let _ = write!(detail, "; and {untold} more");
        }
        Some(Outcome::broken(detail))
    }

    /// `Broken` with the problems, or `Held` with `detail`.
    pub(super) fn or_held(self, detail: impl Into<String>) -> Outcome {
        self.broken().unwrap_or_else(|| Outcome::held(detail))
    }
}

/// A length of time in words, four significant digits.
pub(super) fn time(ns: u64) -> String {
    let ns = ns as f64;
    let (value, unit) = match ns {
        ns if ns >= 1e9 => (ns / 1e9, "s"),
        ns if ns >= 1e6 => (ns / 1e6, "ms"),
        ns if ns >= 1e3 => (ns / 1e3, "µs"),
        ns => return format!("{ns:.0} ns"),
    };
    significant(value, unit)
}

/// A share in words.
pub(super) fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// A rate of bytes in words, four significant digits.
pub(super) fn bytes_per_s(rate: f64) -> String {
    let (value, unit) = match rate {
        rate if rate >= 1e9 => (rate / 1e9, "GB/s"),
        rate if rate >= 1e6 => (rate / 1e6, "MB/s"),
        rate if rate >= 1e3 => (rate / 1e3, "kB/s"),
        rate => return format!("{rate:.0} B/s"),
    };
    significant(value, unit)
}

fn significant(value: f64, unit: &str) -> String {
    let decimals = match value {
        value if value >= 1_000.0 => 0,
        value if value >= 100.0 => 1,
        value if value >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_well() {
        let cases = [
            (0, "0 ns"),
            (999, "999 ns"),
            (1_500, "1.500 µs"),
            (12_345_678, "12.35 ms"),
            (10_000_000_000, "10.00 s"),
            (123_456_000_000, "123.5 s"),
            (7_200_000_000_000, "7200 s"),
        ];
        for (ns, words) in cases {
            assert_eq!(time(ns), words);
        }
    }

    #[test]
    fn rates_of_bytes_read_well() {
        for (rate, words) in [
            (0.0, "0 B/s"),
            (1_500.0, "1.500 kB/s"),
            (122_500_000.0, "122.5 MB/s"),
            (12_345_678_901.0, "12.35 GB/s"),
        ] {
            assert_eq!(bytes_per_s(rate), words);
        }
    }

    #[test]
    fn many_problems_are_counted_not_listed() {
        let mut problems = Problems::default();
        for number in 0..10 {
            problems.expect(number % 2 == 0, || format!("problem {number}"));
        }
        let outcome = problems.or_held("fine");
        assert_eq!(
            outcome,
            Outcome::broken("problem 1; problem 3; problem 5; and 2 more")
        );
        assert_eq!(Problems::default().or_held("fine"), Outcome::held("fine"));
    }
}
