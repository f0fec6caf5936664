//! The reasons for figures that are null.

use std::collections::BTreeMap;

use brunt_judge::Figure;

/// The reasons collected so far, by the path of the figure.
#[derive(Default)]
pub(super) struct Absent(BTreeMap<String, String>);

impl Absent {
    /// No figure at `path`, for this reason.
    pub(super) fn note<T>(&mut self, path: &str, reason: &str) -> Option<T> {
        self.0.insert(path.to_owned(), reason.to_owned());
        None
    }

    /// The value of `figure`, or its reason noted.
    pub(super) fn figure(&mut self, path: &str, figure: &Figure) -> Option<f64> {
        match figure {
            Figure::Known(value) => Some(*value),
            Figure::Absent(reason) => self.note(path, reason),
        }
    }

    /// Path and reason of everything that is null.
    pub(super) fn into_reasons(self) -> BTreeMap<String, String> {
        self.0
    }
}
