//! Intervals and tests of statistics, of plain numbers.

pub(crate) mod binomial;
#[cfg(test)]
pub(crate) mod noise;
#[cfg(test)]
mod reference;
pub(crate) mod student_t;
pub(crate) mod trend;
pub(crate) mod variation;
