//! Arrivals of any schedule, as instants and as a distribution.

mod arrivals;
mod distribution;
