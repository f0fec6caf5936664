//! One-way streams: bytes without requests, in one direction or both.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

/// What the connections of a run carry where it measures bandwidth: bytes without end, up to the
/// end of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Streams {
    /// Brunt sends.
    pub sends: bool,
    /// The server sends, and nobody looks at what comes.
    pub receives: bool,
    /// Bits of payload per second that brunt sends at most, all connections together; the kernel
    /// paces them, each at an equal share.
    pub paced_bits_per_s: Option<NonZeroU64>,
    /// The server was asked for these streams and takes as many connections as there are: none is
    /// made to it before the run.
    pub is_arranged: bool,
}

impl Streams {
    /// Bytes per second that one of `connections` sends at most.
    pub fn paced_bytes_per_s(&self, connections: u32) -> Option<NonZeroU64> {
        let bits_per_s = self.paced_bits_per_s?.get();
        let bytes_per_s = bits_per_s / 8 / u64::from(connections.max(1));
        Some(NonZeroU64::new(bytes_per_s).unwrap_or(NonZeroU64::MIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_is_split_over_the_connections() {
        let streams = |bits_per_s| Streams {
            sends: true,
            receives: false,
            paced_bits_per_s: NonZeroU64::new(bits_per_s),
            is_arranged: false,
        };
        for (bits_per_s, connections, bytes_per_s) in [
            (1_000_000_000, 1, Some(125_000_000)),
            (1_000_000_000, 4, Some(31_250_000)),
            (8, 100, Some(1)),
            (0, 1, None),
        ] {
            let split = streams(bits_per_s).paced_bytes_per_s(connections);
            assert_eq!(
                split.map(NonZeroU64::get),
                bytes_per_s,
                "{bits_per_s} {connections}"
            );
        }
    }
}
