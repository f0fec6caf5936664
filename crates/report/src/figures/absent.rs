//! The reasons for figures that are null.

use std::collections::BTreeMap;

use brunt_judge::Figure;

/// The reasons collected so far, by the path of the figure.
pub(super) struct Absent {
    /// Why there are no rates; absent where there are.
    withheld: Option<String>,
    reasons: BTreeMap<String, String>,
}

impl Absent {
    /// No reason so far; `withheld` is the one for which there are no rates.
    pub(super) fn new(withheld: Option<String>) -> Self {
        Self {
            withheld,
            reasons: BTreeMap::new(),
        }
    }

    /// Whether there are no rates.
    pub(super) fn is_withheld(&self) -> bool {
        self.withheld.is_some()
    }

    /// No figure at `path`, for this reason.
    pub(super) fn note<T>(&mut self, path: &str, reason: &str) -> Option<T> {
        self.reasons.insert(path.to_owned(), reason.to_owned());
        None
    }

    /// `value`, or the reason noted for which there is none.
    pub(super) fn known<T>(&mut self, path: &str, value: Option<T>, reason: &str) -> Option<T> {
        value.or_else(|| self.note(path, reason))
    }

    /// The value of `figure`, or its reason noted.
    pub(super) fn figure(&mut self, path: &str, figure: &Figure) -> Option<f64> {
        match figure {
            Figure::Known(value) => Some(*value),
            Figure::Absent(reason) => self.note(path, reason),
        }
    }

    /// The value of `figure`, which is a rate, unless rates are withheld.
    pub(super) fn rate(&mut self, path: &str, figure: &Figure) -> Option<f64> {
        self.unless_withheld(path)?;
        self.figure(path, figure)
    }

    /// Absent, and noted, where rates are withheld.
    pub(super) fn unless_withheld(&mut self, path: &str) -> Option<()> {
        match self.withheld.clone() {
            Some(reason) => self.note(path, &reason),
            None => Some(()),
        }
    }

    /// Path and reason of everything that is null.
    pub(super) fn into_reasons(self) -> BTreeMap<String, String> {
        self.reasons
    }
}
