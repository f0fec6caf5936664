//! The stored form of response times over time.

use serde::{Deserialize, Serialize};

use super::sparse::{Filled, LAYOUT, Sparse, expand};
use super::{FILLED_MAX, INTERVAL_MAX_NS, INTERVALS_MAX, Intervals};
use crate::{grid, hdr_v2};

/// The stored form.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// Length of an interval, nanoseconds: 100 ms times a power of two, from 1/256 on.
    interval_ns: u64,
    /// For each interval from the start of the window, at most 600: response times of what
    /// completed in it, HdrHistogram V2, compressed, base64, two significant digits, nanoseconds;
    /// null when nothing did.
    hdr_v2: Vec<Option<String>>,
}

impl Serialize for Intervals {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut hdr_v2 = Vec::with_capacity(self.sparse.len());
        for sparse in &self.sparse {
            if sparse.is_empty() {
                hdr_v2.push(None);
                continue;
            }
            let text = hdr_v2::write(&expand(sparse.iter().copied()));
            hdr_v2.push(Some(text.map_err(serde::ser::Error::custom)?));
        }
        Stored {
            interval_ns: self.interval_ns,
            hdr_v2,
        }
        .serialize(serializer)
    }
}

impl TryFrom<Stored> for Intervals {
    type Error = String;

    fn try_from(stored: Stored) -> Result<Self, String> {
        let Stored {
            interval_ns,
            hdr_v2,
        } = stored;
        if !grid::is_length(interval_ns, INTERVAL_MAX_NS) {
            return Err(format!(
                "no such interval of response times: {interval_ns} ns"
            ));
        }
        if hdr_v2.len() > INTERVALS_MAX {
            return Err(format!(
                "over the limit of {INTERVALS_MAX} intervals of response times"
            ));
        }
        let mut intervals = Self {
            interval_ns,
            sparse: Vec::with_capacity(hdr_v2.len()),
        };
        let mut filled = 0;
        for text in hdr_v2 {
            let sparse = match text {
                Some(text) => read(&text)?,
                None => Sparse::default(),
            };
            filled += sparse.len();
            if filled > FILLED_MAX {
                return Err(format!(
                    "intervals of response times with over {FILLED_MAX} filled buckets"
                ));
            }
            intervals.sparse.push(sparse);
        }
        Ok(intervals)
    }
}

/// One stored interval.
fn read(text: &str) -> Result<Sparse, String> {
    let filled = LAYOUT
        .read(text, Filled::COUNT_MAX)
        .map_err(|error| format!("an interval of response times: {error}"))?;
    let sparse = filled
        .into_iter()
        .map(|(index, count)| Filled::new(index, count));
    Ok(sparse.collect())
}

impl<'de> Deserialize<'de> for Intervals {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Stored::deserialize(deserializer)?
            .try_into()
            .map_err(serde::de::Error::custom::<String>)
    }
}
