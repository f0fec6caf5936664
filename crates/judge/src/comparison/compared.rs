//! What servers are compared by.

use serde::{Deserialize, Serialize};

use crate::ROUND_QUANTILES;

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

    /// Whether more of it is better.
    pub fn is_better_if_more(self) -> bool {
        matches!(self, Self::SuccessesPerS | Self::CapacityPerS)
    }
}
