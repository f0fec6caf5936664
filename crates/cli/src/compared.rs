//! What is compared of servers or stored runs, and the limits of its change.

use anyhow::{Result, bail};
use brunt_judge::{ChangeLimit, Compared, ComparedRounds, ComparisonKind};
use brunt_record::counted;

use crate::command_line::environment;
use crate::commands::CompareArguments;

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
            (Compared::ServerCpu, _) => {}
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

/// What is compared: the throughput of a closed loop, response times at equal rates, and all that
/// has a limit.
pub(crate) fn compared(has_schedule: bool, limits: &[ChangeLimit]) -> Vec<Compared> {
    let mut all = match has_schedule {
        true => QUANTILES.map(Compared::ResponseQuantile).into(),
        false => vec![Compared::SuccessesPerS],
    };
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
        pairs_planned: None,
        looks: None,
        ended_early: None,
        sides: Vec::new(),
    }
}

/// What each side is called.
pub(crate) fn labels(arguments: &CompareArguments, urls: &[&str]) -> Result<Vec<Option<String>>> {
    let typed = &arguments.label;
    if !typed.is_empty() && typed.len() != urls.len() {
        bail!(
            "--label is given {}, and {} are compared; give it once for each, in their order",
            counted(typed.len() as u64, "time", "times"),
            urls.len()
        );
    }
    let is_one_url = urls.windows(2).all(|pair| pair[0] == pair[1]);
    let of_side = |side: usize| {
        let started = arguments.start.get(side).filter(|_| is_one_url);
        let label = typed.get(side).or(started)?.trim();
        (!label.is_empty()).then(|| label.to_owned())
    };
    Ok((0..urls.len()).map(of_side).collect())
}
