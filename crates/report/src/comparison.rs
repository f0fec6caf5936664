//! Which of several servers is faster: the outcome of rounds that took turns, as a sentence and as
//! data.

use std::collections::BTreeMap;

use brunt_measure::{Claim, Compared, Comparison, Effect, Run};
use serde::Serialize;

use crate::figures::data_name;
use crate::{foreign, units};

/// The quantiles of the response time that are compared at equal rates.
const QUANTILES: [f64; 2] = [0.5, 0.99];

/// The rounds of several servers, of which each is compared with the first. They are called A, B,
/// C and so on.
#[derive(Clone, Copy, Debug)]
pub struct ComparedSides<'a>(pub &'a [Vec<Run>]);

/// All that was found, as data.
#[derive(Debug, Serialize)]
struct Data<'a> {
    /// Version of this layout: 1.
    format: u32,
    brunt_version: &'a str,
    sides: Vec<SideData<'a>>,
    comparisons: Vec<ComparisonData>,
}

#[derive(Debug, Serialize)]
struct SideData<'a> {
    name: String,
    url: &'a str,
    /// How often each verdict was given.
    verdicts: BTreeMap<&'static str, usize>,
}

#[derive(Debug, Serialize)]
struct ComparisonData {
    /// `successes_per_s`, or as `response_p99_ns`.
    compared: String,
    /// The two sides.
    sides: [String; 2],
    /// `differs`, `no_difference` or `nothing`.
    claim: &'static str,
    /// The same in words.
    says: String,
    /// Pairs of rounds that were made.
    pairs: usize,
    /// The pairs that do not count, from 0, and why.
    dropped: Vec<(usize, String)>,
    /// Medians of the two sides over the pairs that count.
    medians: Option<[f64; 2]>,
    /// The second side over the first, as a ratio less 1, and the ends of its 95 % interval.
    change: Option<f64>,
    change_low: Option<f64>,
    change_high: Option<f64>,
    /// The two-sided permutation test.
    p_value: Option<f64>,
    /// What a comparison of each side with itself gave, at most.
    noise: Option<f64>,
}

/// Two sides and what was found.
pub(crate) struct Found {
    pub(crate) first: usize,
    pub(crate) second: usize,
    pub(crate) comparison: Comparison,
}

impl ComparedSides<'_> {
    /// Every side against the first one.
    pub(crate) fn comparisons(&self) -> Vec<Found> {
        let Some((first, others)) = self.0.split_first() else {
            return Vec::new();
        };
        let is_closed = first
            .first()
            .is_none_or(|run| run.plan.model.schedule().is_none());
        let compared: Vec<Compared> = match is_closed {
            true => vec![Compared::SuccessesPerS],
            false => QUANTILES.map(Compared::ResponseQuantile).into(),
        };
        others
            .iter()
            .zip(1..)
            .flat_map(|(other, second)| {
                compared.iter().map(move |&compared| Found {
                    first: 0,
                    second,
                    comparison: Comparison::of(compared, first, other),
                })
            })
            .collect()
    }

    /// As indented JSON with a newline at the end.
    ///
    /// # Errors
    ///
    /// A figure has no JSON form.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        let mut runs = self.0.iter().flatten();
        let data = Data {
            format: 1,
            brunt_version: runs.next().map_or("", |run| &run.brunt_version),
            sides: self
                .0
                .iter()
                .enumerate()
                .map(|(place, runs)| SideData {
                    name: name(place),
                    url: runs.first().map_or("", |run| &run.plan.url),
                    verdicts: verdicts(runs),
                })
                .collect(),
            comparisons: self.comparisons().iter().map(Found::data).collect(),
        };
        let mut bytes = Vec::new();
        foreign::write_json(&mut bytes, &data)?;
        bytes.push(b'\n');
        // What is no UTF-8 is no JSON either.
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Found {
    /// The sentence.
    pub(crate) fn says(&self) -> String {
        let comparison = &self.comparison;
        let (first, second) = (name(self.first), name(self.second));
        let (change, pairs) = match &comparison.paired {
            Some(paired) => (paired.change(), paired.pairs),
            None => (
                Effect {
                    value: 0.0,
                    low: 0.0,
                    high: 0.0,
                },
                0,
            ),
        };
        match &comparison.claim {
            Claim::Differs => {
                let is_more = change.value > 0.0;
                let (value, low, high) = match is_more {
                    true => (change.value, change.low, change.high),
                    false => (-change.value, -change.high, -change.low),
                };
                let [value, low, high] = [value, low, high].map(units::percent);
                let how = match (comparison.compared, is_more) {
                    (Compared::SuccessesPerS, true) => format!("{second} is {value} faster"),
                    (Compared::SuccessesPerS, false) => format!("{second} is {value} slower"),
                    (Compared::ResponseQuantile(q), true) => {
                        format!("{} of {second} is {value} higher", quantile(q))
                    }
                    (Compared::ResponseQuantile(q), false) => {
                        format!("{} of {second} is {value} lower", quantile(q))
                    }
                };
                format!("{how} (95 % CI {low} to {high}, {pairs} pairs)")
            }
            Claim::NoDifference { visible } => format!(
                "no difference shown between {first} and {second} (95 % CI {} to {}, {pairs} \
                 pairs); {} would have been seen",
                units::percent_change(change.low),
                units::percent_change(change.high),
                units::percent(*visible)
            ),
            Claim::Nothing(reason) => {
                format!("nothing can be said of {first} and {second}: {reason}")
            }
        }
    }

    fn data(&self) -> ComparisonData {
        let comparison = &self.comparison;
        let change = comparison.paired.as_ref().map(|paired| paired.change());
        ComparisonData {
            compared: match comparison.compared {
                Compared::SuccessesPerS => "successes_per_s".to_owned(),
                Compared::ResponseQuantile(q) => format!("response_{}_ns", quantile(q)),
            },
            sides: [name(self.first), name(self.second)],
            claim: match comparison.claim {
                Claim::Differs => "differs",
                Claim::NoDifference { .. } => "no_difference",
                Claim::Nothing(_) => "nothing",
            },
            says: self.says(),
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
}

/// A, B, C and so on; behind Z the number.
pub(crate) fn name(place: usize) -> String {
    match u8::try_from(place) {
        Ok(place @ 0..26) => char::from(b'A' + place).to_string(),
        _ => (place + 1).to_string(),
    }
}

/// `p50`, `p99`.
pub(crate) fn quantile(q: f64) -> String {
    format!("p{}", q * 100.0)
}

/// How often each verdict was given, by its name in data.
pub(crate) fn verdicts(runs: &[Run]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for run in runs {
        *counts.entry(data_name(run.judge().verdict)).or_default() += 1;
    }
    counts
}
