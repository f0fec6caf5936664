//! What is compared of servers or stored runs, and the limits of its change.

use anyhow::{Result, bail};
use brunt_measure::{ChangeLimit, Compared, ComparedRounds, ComparisonKind};

use crate::environment::environment;

/// The quantiles of the response time that are compared at equal rates.
const QUANTILES: [f64; 2] = [0.5, 0.99];

/// Throughput is compared in a closed loop, response times at equal rates, and rates that hold
/// objectives by a search.
pub(crate) fn check_limits(limits: &[ChangeLimit], is_closed: bool, is_search: bool) -> Result<()> {
    for limit in limits {
        match (limit.compared, is_closed) {
            (Compared::CapacityPerS, _) if is_search => {}
            (_, _) if is_search => bail!(
                "--fail-if: with --objective the highest rates that hold are compared; limit them, \
                 as in 'capacity < -5%'"
            ),
            (Compared::CapacityPerS, _) => bail!(
                "--fail-if: a capacity is searched for with --objective; limit the rate, as in \
                 'rate < -5%', or with -r a response time"
            ),
            (Compared::SuccessesPerS, false) => bail!(
                "--fail-if: with -r the rate is given; limit a response time, as in 'p99 > +5%'"
            ),
            (Compared::ResponseQuantile(_), true) => bail!(
                "--fail-if: response times are compared at equal rates; give one with -r, or limit \
                 the rate, as in 'rate < -5%'"
            ),
            _ => {}
        }
    }
    Ok(())
}

/// What is compared: with a schedule also the quantiles that have a limit.
pub(crate) fn compared(has_schedule: bool, limits: &[ChangeLimit]) -> Vec<Compared> {
    if !has_schedule {
        return vec![Compared::SuccessesPerS];
    }
    let mut all: Vec<Compared> = QUANTILES.map(Compared::ResponseQuantile).into();
    for limit in limits {
        if !all.contains(&limit.compared) {
            all.push(limit.compared);
        }
    }
    all
}

/// A comparison of which nothing is measured yet.
pub(crate) fn new_comparison(compared: Vec<Compared>, limits: &[ChangeLimit]) -> ComparedRounds {
    ComparedRounds {
        kind: ComparisonKind::Comparison,
        format: ComparedRounds::FORMAT,
        brunt_version: env!("CARGO_PKG_VERSION").to_owned(),
        load: None,
        environment: environment(),
        compared,
        limits: limits.to_vec(),
        sides: Vec::new(),
    }
}
