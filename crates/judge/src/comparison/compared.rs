//! What servers are compared by.

use serde::{Deserialize, Serialize};

use crate::{ROUND_QUANTILES, RoundRecord};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Compared {
    /// Successful replies per second: more is better.
    SuccessesPerS,
    /// A quantile (0 to 1) of the response time, one of [`crate::ROUND_QUANTILES`]: less is better.
    ResponseQuantile(f64),
    /// The highest rate that holds objectives: more is better.
    CapacityPerS,
    /// CPU time of the server per successful reply: less is better.
    ServerCpu,
}

impl Compared {
    /// The name of the quantile that is compared, as rounds have it.
    pub(crate) fn quantile_name(self) -> Option<&'static str> {
        let Self::ResponseQuantile(q) = self else {
            return None;
        };
        let mut quantiles = ROUND_QUANTILES.iter();
        let known = quantiles.find(|(_, known)| (known - q).abs() < 1e-9)?;
        Some(known.0)
    }

    /// What is compared, of one round.
    pub fn figure(self, round: &RoundRecord) -> Option<f64> {
        match self {
            Self::SuccessesPerS => round.successes_per_s,
            Self::ResponseQuantile(q) => round.response.quantile_ns(q).map(|ns| ns as f64),
            Self::ServerCpu => round.server_cpu_ns_per_reply(),
            // That of a search is no figure of a round.
            Self::CapacityPerS => None,
        }
    }

    /// Whether more of it is better.
    pub fn is_better_if_more(self) -> bool {
        matches!(self, Self::SuccessesPerS | Self::CapacityPerS)
    }
}
