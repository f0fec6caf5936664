//! Which of several servers is faster: the outcome of rounds that took turns, as a sentence, as
//! data, and in CSV.

use std::io;

use brunt_measure::{Claim, Compared, ComparedPair, ComparedRounds, ROUND_QUANTILES};
use serde::Serialize;

use super::words::{exceeded_limits, quantile, says, side_name};
use super::{csv, figure};
use crate::ReportError;
use crate::figures::data_name;

/// A comparison as it is stored: its own fields, and what is derived from them.
#[derive(Debug, Serialize)]
#[cfg_attr(
    feature = "schema",
    derive(schemars::JsonSchema),
    schemars(rename = "StoredComparison")
)]
pub struct StoredComparison<'a> {
    /// The comparison.
    #[serde(flatten)]
    pub compared: &'a ComparedRounds,
    /// Each side against the first; ignored when the comparison is read again, as what follows.
    pub comparisons: Vec<ComparisonFigures>,
    /// The limits that were exceeded, in words.
    pub exceeded: Vec<String>,
}

/// What two sides show.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparisonFigures {
    /// `successes_per_s`, or as `response_p99_ns`.
    pub compared: String,
    /// The names of the two sides.
    pub sides: [String; 2],
    /// `differs`, `no_difference` or `nothing`.
    pub claim: &'static str,
    /// The same in words.
    pub says: String,
    /// Pairs of rounds that were made.
    pub pairs: usize,
    /// The pairs that do not count, from 0, and why.
    pub dropped: Vec<(usize, String)>,
    /// Medians of the two sides over the pairs that count.
    pub medians: Option<[f64; 2]>,
    /// The second side over the first, as a ratio less 1.
    pub change: Option<f64>,
    /// The lower end of its 95 % interval.
    pub change_low: Option<f64>,
    /// The upper end of its 95 % interval.
    pub change_high: Option<f64>,
    /// The two-sided permutation test.
    pub p_value: Option<f64>,
    /// What a comparison of each side with itself gave, at most.
    pub noise: Option<f64>,
}

impl<'a> StoredComparison<'a> {
    /// With what is derived.
    pub fn of(compared: &'a ComparedRounds) -> Self {
        Self {
            compared,
            comparisons: compared.comparisons().iter().map(figures).collect(),
            exceeded: exceeded_limits(compared),
        }
    }
}

fn figures(found: &ComparedPair) -> ComparisonFigures {
    let comparison = &found.comparison;
    let change = comparison.paired.as_ref().map(|paired| paired.change());
    ComparisonFigures {
        compared: match comparison.compared {
            Compared::SuccessesPerS => "successes_per_s".to_owned(),
            Compared::ResponseQuantile(q) => {
                format!("response_{}_ns", quantile(q).replace('.', "_"))
            }
        },
        sides: [side_name(found.first), side_name(found.second)],
        claim: match comparison.claim {
            Claim::Differs => "differs",
            Claim::NoDifference { .. } => "no_difference",
            Claim::Nothing(_) => "nothing",
        },
        says: says(found),
        pairs: comparison.pairs,
        dropped: comparison.dropped.clone(),
        medians: comparison.medians.map(|(first, second)| [first, second]),
        change: change.map(|change| change.value),
        change_low: change.map(|change| change.low),
        change_high: change.map(|change| change.high),
        p_value: comparison.paired.as_ref().map(|paired| paired.p_value),
        noise: comparison.noise,
    }
}

/// A row per round of each side.
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
    let rows = compared.sides.iter().enumerate().flat_map(|(place, side)| {
        let rounds = side.rounds.iter().zip(1_u32..);
        rounds.map(move |(round, pair)| {
            let mut row = vec![
                side_name(place),
                side.url.clone(),
                pair.to_string(),
                round.started_unix_ms.to_string(),
                round.window_ns.to_string(),
                data_name(round.verdict).to_owned(),
                figure(round.successes_per_s),
                figure(round.error_share()),
            ];
            row.extend(ROUND_QUANTILES.map(|(_, q)| figure(round.response.quantile_ns(q))));
            row
        })
    });
    csv(&header, rows, out)
}
