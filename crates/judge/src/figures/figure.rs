//! A figure, or why there is none.

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

/// A figure, or why there is none. Never NaN, infinite, or 0 in place of unknown.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure<T = f64> {
    /// The value of the figure.
    Known(T),
    /// Why it is undefined.
    Absent(String),
}

/// The one key under which the reason stands of a figure that is absent, as it serialises: whoever
/// writes it puts null in its place, and the reason beside it.
pub const ABSENT_KEY: &str = "absent\0";

impl Figure {
    /// `numerator / denominator`, or `reason` where that is undefined.
    pub fn ratio(numerator: f64, denominator: f64, reason: &str) -> Self {
        let value = numerator / denominator;
        let is_defined = value.is_finite() && denominator > 0.0;
        Self::of(is_defined.then_some(value), reason)
    }
}

impl<T> Figure<T> {
    /// `value`, or `reason` where there is none.
    pub fn of(value: Option<T>, reason: &str) -> Self {
        value.map_or_else(|| Self::Absent(reason.to_owned()), Self::Known)
    }

    /// The value, where there is one.
    pub fn known(&self) -> Option<T>
    where
        T: Copy,
    {
        self.get().copied()
    }

    /// The value in its place, where there is one.
    pub fn get(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent(_) => None,
        }
    }

    /// The figure that `f` makes of the value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Figure<U> {
        match self {
            Self::Known(value) => Figure::Known(f(value)),
            Self::Absent(reason) => Figure::Absent(reason),
        }
    }

    /// The figure that `f` gives for the value.
    pub fn and_then<U>(self, f: impl FnOnce(T) -> Figure<U>) -> Figure<U> {
        match self {
            Self::Known(value) => f(value),
            Self::Absent(reason) => Figure::Absent(reason),
        }
    }
}

/// The value, or `not known` with the reason.
impl<T: fmt::Display> fmt::Display for Figure<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known(value) => value.fmt(formatter),
            Self::Absent(reason) => write!(formatter, "not known: {reason}"),
        }
    }
}

impl<T, E: ToString> From<Result<T, E>> for Figure<T> {
    fn from(result: Result<T, E>) -> Self {
        result.map_or_else(|reason| Self::Absent(reason.to_string()), Self::Known)
    }
}

impl<T: Serialize> Serialize for Figure<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Known(value) => value.serialize(serializer),
            Self::Absent(reason) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry(ABSENT_KEY, reason)?;
                map.end()
            }
        }
    }
}
