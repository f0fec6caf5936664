//! Random numbers of arrivals. The same seed gives the same numbers on every platform and in
//! every version: integers, and floating-point steps that IEEE 754 defines to the bit.

use brunt_proto::holes::{RANDOM_STEP, next_random};
use rand_pcg::Pcg64;
use rand_pcg::rand_core::RngCore;

/// The stream that PCG proposes.
const PCG_STREAM: u128 = 0x0a02_bdbf_7bb3_c0a7_ac28_fa16_a64a_bf96;

/// The random number with this index, any of 64 bits: the sequence of SplitMix64, which can be
/// entered anywhere.
#[inline]
pub(crate) fn draw(seed: u64, index: u64) -> u64 {
    next_random(&mut seed.wrapping_add(index.wrapping_mul(RANDOM_STEP)))
}

/// Exponentially distributed steps, from a stream per seed and worker.
#[derive(Clone, Debug)]
pub(super) struct Exponential(Pcg64);

impl Exponential {
    pub(super) fn new(seed: u64, worker: u32) -> Self {
        // Neighbouring states and streams of PCG resemble each other, so the state is drawn.
        let index = 2 * u64::from(worker);
        let state = u128::from(draw(seed, index)) << 64 | u128::from(draw(seed, index + 1));
        Self(Pcg64::new(state, PCG_STREAM))
    }

    /// A step of this mean, with 64 binary places.
    #[inline]
    pub(super) fn next_step(&mut self, mean: u32) -> u128 {
        /// Binary places of a step of mean 1, which is below 37.
        const PLACES: i32 = 58;
        // In (0, 1]: its logarithm is finite. The one of libm is the same everywhere, that of the
        // standard library is the platform's.
        let uniform = ((self.0.next_u64() >> 11) + 1) as f64 * 2f64.powi(-53);
        let unit = (-libm::log(uniform) * 2f64.powi(PLACES)) as u64;
        (u128::from(unit) * u128::from(mean)) << (64 - PLACES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_splitmix64() {
        let values: Vec<u64> = (0..3).map(|index| draw(1_234_567, index)).collect();
        assert_eq!(
            values,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
        assert_eq!(draw(0, 0), 0xe220_a839_7b1d_cdaf);
    }
}
