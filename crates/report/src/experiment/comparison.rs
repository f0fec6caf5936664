//! Which of several servers is faster: the outcome of a comparison as data, and in CSV.

use std::io;

use brunt_judge::{
    Basis, Bound, Claim, Compared, ComparedPair, ComparedRounds, ComparedSide, ROUND_QUANTILES,
    RoundRecord,
};
use serde::Serialize;

use super::words::{
    exceeded_limits, limits_not_judged, limits_open, names, quantile, says, side_name,
};
use super::{capacity, csv, figure};
use crate::ReportError;
use crate::figures::data_name;

/// A comparison as it is stored: its own fields, and what is derived from them.
#[derive(Debug, Serialize)]
pub struct StoredComparison<'a> {
    /// The comparison.
    #[serde(flatten)]
    pub compared: &'a ComparedRounds,
    /// Each side compared with the first. Ignored when the comparison is read again, as are the
    /// fields that follow.
    pub comparisons: Vec<ComparisonFigures>,
    /// The limits that were exceeded, in words.
    pub exceeded: Vec<String>,
    /// The limits of which nothing can be said, in words.
    pub not_judged: Vec<String>,
    /// The limits that are neither shown to be exceeded nor shown to be kept, in words.
    pub open: Vec<String>,
    /// Whether each comparison says something.
    pub is_decided: bool,
}

/// What a comparison of two sides shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparisonFigures {
    /// `successes_per_s`, as `response_p99_ns`, or `capacity_per_s`.
    pub compared: String,
    /// The names of the two sides.
    pub sides: [String; 2],
    /// `differs`, `no_difference` or `nothing`.
    pub claim: &'static str,
    /// What the comparison says, in words.
    pub says: String,
    /// Whether pairs of rounds were compared, a stored run of each side, or a search of each.
    pub basis: Basis,
    /// Pairs of rounds that were made; 1 of runs and searches.
    pub pairs: usize,
    /// The pairs that do not count, from 0, and why.
    pub dropped: Vec<(usize, String)>,
    /// How many of the pairs that count have a round in which others took CPUs that it needed.
    pub disturbed: usize,
    /// Medians of the two sides over the pairs that count.
    pub medians: Option<[f64; 2]>,
    /// The second side over the first, as a ratio less 1.
    pub change: Option<f64>,
    /// The lower end of the interval of the change. The intervals of all comparisons of pairs hold
    /// together with 97.5 %, those of stored runs each with 95 %. The interval of searches goes
    /// from the rates that held to those that missed. Null where a bound does not say it.
    pub change_low: Option<f64>,
    /// The upper end of the interval of the change; null where a bound does not say it.
    pub change_high: Option<f64>,
    /// Whether the change is known only to be at least or at most this: brunt was the limit of one
    /// side.
    pub bound: Option<Bound>,
    /// The two-sided permutation test; null without pairs, and of bounds.
    pub p_value: Option<f64>,
    /// What a comparison of each side with itself gave, at most.
    pub noise: Option<f64>,
}

impl<'a> StoredComparison<'a> {
    /// The comparison with what is derived from it.
    pub fn of(compared: &'a ComparedRounds) -> Self {
        Self {
            compared,
            comparisons: {
                let (pairs, names) = (compared.comparisons(), names(compared));
                pairs.iter().map(|pair| figures(pair, &names)).collect()
            },
            exceeded: exceeded_limits(compared),
            not_judged: limits_not_judged(compared),
            open: limits_open(compared),
            is_decided: compared.is_decided(),
        }
    }
}

fn figures(found: &ComparedPair, names: &[String]) -> ComparisonFigures {
    let comparison = &found.comparison;
    let change = comparison.change;
    let low = change.filter(|_| comparison.bound != Some(Bound::AtMost));
    let high = change.filter(|_| comparison.bound != Some(Bound::AtLeast));
    ComparisonFigures {
        compared: match comparison.compared {
            Compared::SuccessesPerS => "successes_per_s".to_owned(),
            Compared::ResponseQuantile(q) => {
                format!("response_{}_ns", quantile(q).replace('.', "_"))
            }
            Compared::CapacityPerS => "capacity_per_s".to_owned(),
            Compared::ServerCpu => "server_cpu_ns_per_reply".to_owned(),
        },
        sides: [side_name(found.first), side_name(found.second)],
        claim: match comparison.claim {
            Claim::Differs => "differs",
            Claim::NoDifference { .. } => "no_difference",
            Claim::Nothing(_) => "nothing",
        },
        says: says(found, names),
        basis: comparison.basis,
        pairs: comparison.pairs,
        dropped: comparison.dropped.clone(),
        disturbed: comparison.disturbed,
        medians: comparison.medians.map(|(first, second)| [first, second]),
        change: change.map(|change| change.value),
        change_low: low.map(|change| change.low),
        change_high: high.map(|change| change.high),
        bound: comparison.bound,
        p_value: comparison.p_value,
        noise: comparison.noise,
    }
}

/// A row per round of each side; where each was searched for its capacity, a row per step.
pub(super) fn table(compared: &ComparedRounds, out: &mut dyn io::Write) -> Result<(), ReportError> {
    let mut header: Vec<String> = [
        "side",
        "url",
        "pair",
        "started_unix_ms",
        "window_ns",
        "verdict",
        "successes_per_s",
        "error_share",
    ]
    .map(str::to_owned)
    .into();
    let names = ROUND_QUANTILES.map(|(name, _)| format!("response_{}_ns", name.replace('.', "_")));
    header.extend(names);
    header.extend(["stage", "outcome", "rate_per_s"].map(str::to_owned));
    let row = |place: usize, side: &ComparedSide, number: usize, round: &RoundRecord| {
        let mut row = vec![
            side_name(place),
            side.url.clone(),
            (number + 1).to_string(),
            round.started_unix_ms.to_string(),
            round.window_ns.to_string(),
            data_name(round.verdict),
            figure(round.successes_per_s),
            figure(round.error_share()),
        ];
        row.extend(ROUND_QUANTILES.map(|(_, q)| figure(round.response.quantile_ns(q))));
        row
    };
    let rows = compared.sides.iter().enumerate().flat_map(|(place, side)| {
        let rounds = side.rounds.iter().enumerate().map(move |(number, round)| {
            let mut row = row(place, side, number, round);
            row.extend([const { String::new() }; 3]);
            row
        });
        let steps = side.capacity.iter().flat_map(|capacity| &capacity.steps);
        let steps = steps.enumerate().map(move |(number, step)| {
            let mut row = row(place, side, number, &step.record);
            row.extend([
                capacity::stage(step.stage).to_owned(),
                capacity::data_outcome(step.outcome),
                step.rate_per_s.to_string(),
            ]);
            row
        });
        rounds.chain(steps)
    });
    csv(&header, rows, out)
}
