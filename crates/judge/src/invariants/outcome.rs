//! What a check says: how the invariant stands, and the words for it.

use super::InvariantStatus;

/// Problems spelt out; of the rest only the number is given.
const PROBLEMS_TOLD: usize = 3;

/// How an invariant stands, with its inputs in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(super) status: InvariantStatus,
    pub(super) detail: String,
}

/// What a check comes to; `Err` where something ended it early.
pub(crate) type Checked = Result<Outcome, Outcome>;

impl Outcome {
    fn new(status: InvariantStatus, detail: impl Into<String>) -> Self {
        let detail = detail.into();
        Self { status, detail }
    }

    pub(super) fn held(detail: impl Into<String>) -> Self {
        Self::new(InvariantStatus::Held, detail)
    }

    pub(super) fn flagged(detail: impl Into<String>) -> Self {
        Self::new(InvariantStatus::Flagged, detail)
    }

    pub(super) fn broken(detail: impl Into<String>) -> Self {
        Self::new(InvariantStatus::Broken, detail)
    }

    pub(super) fn not_applicable(detail: impl Into<String>) -> Self {
        Self::new(InvariantStatus::NotApplicable, detail)
    }

    pub(super) fn held_or_flagged(is_flagged: bool, detail: impl Into<String>) -> Self {
        if is_flagged {
            Self::flagged(detail)
        } else {
            Self::held(detail)
        }
    }

    /// What the same check came to on each of several agents: it stands as on the one where it
    /// stands worst, and the detail is of those.
    pub(super) fn worst(mut outcomes: Vec<Self>) -> Self {
        if outcomes.len() == 1 {
            return outcomes.remove(0);
        }
        let badness = |status: &InvariantStatus| match status {
            InvariantStatus::NotApplicable => 0,
            InvariantStatus::Held => 1,
            InvariantStatus::Flagged => 2,
            InvariantStatus::Broken => 3,
        };
        let worst = outcomes.iter().map(|it| it.status).max_by_key(badness);
        let status = worst.unwrap_or(InvariantStatus::NotApplicable);
        let of_worst = (1..).zip(&outcomes).filter(|(_, it)| it.status == status);
        let words = of_worst.map(|(agent, it)| format!("agent {agent}: {}", it.detail));
        Self::new(status, first_of(&words.collect::<Vec<_>>()))
    }
}

/// The first of these, and how many more there are.
fn first_of(words: &[String]) -> String {
    let told = words[..words.len().min(PROBLEMS_TOLD)].join("; ");
    match words.len().saturating_sub(PROBLEMS_TOLD) {
        0 => told,
        untold => format!("{told}; and {untold} more"),
    }
}

/// An invariant that says nothing about this run, for the reason in `words`, unless `applies`.
pub(super) fn only_if(applies: bool, words: &str) -> Result<(), Outcome> {
    if applies {
        Ok(())
    } else {
        Err(Outcome::not_applicable(words))
    }
}

/// The problems found by a check that looks at many things.
#[derive(Debug, Default)]
pub(super) struct Problems(Vec<String>);

impl Problems {
    /// Notes the problem in `words` unless `holds`.
    pub(super) fn expect(&mut self, holds: bool, words: impl FnOnce() -> String) {
        if !holds {
            self.0.push(words());
        }
    }

    /// `Broken` with the problems, where there are any.
    pub(super) fn none(self) -> Result<(), Outcome> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(Outcome::broken(first_of(&self.0)))
        }
    }

    /// `Broken` with the problems, or `Held` with `detail`.
    pub(super) fn or_held(self, detail: impl Into<String>) -> Checked {
        self.none().map(|()| Outcome::held(detail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_problems_are_counted_not_listed() {
        let mut problems = Problems::default();
        for number in 0..10 {
            problems.expect(number % 2 == 0, || format!("problem {number}"));
        }
        let told = Outcome::broken("problem 1; problem 3; problem 5; and 2 more");
        assert_eq!(problems.or_held("fine"), Err(told));
        let held = Problems::default().or_held("fine");
        assert_eq!(held, Ok(Outcome::held("fine")));
    }
}
