//! How far a sum over a window may be off, where neighbours in time are alike: from how it varies
//! at the lowest frequencies that the window holds.

use crate::statistics::student_t::{quantile_975, share_beyond};

/// Fewer parts of a window than this do not tell how much a figure varies.
pub(crate) const PARTS_LEAST: usize = 16;
/// How many of the lowest frequencies are looked at, of at most half as many as there are parts.
const FREQUENCIES_MOST: usize = 32;
/// How probable it is, before anything is seen, that neighbours are alike for so short a time that
/// all these frequencies have the same power.
const EVEN: f64 = 0.7;
/// The frequencies above which power falls, if it does: correlation that decays over the 10th,
/// the 20th and the 40th part of the window. All are equally probable.
const CORNERS: [f64; 3] = [3.0, 6.0, 12.0];
/// The power that falls off, in multiples of what remains: 1, 2, 4, ... All are equally probable.
const DOUBLINGS: i32 = 10;
/// Where so few of the lowest frequencies have so many times the power of all on average, the values
/// vary as slowly as the window can show, perhaps in a step or a slope, which no such spectrum has:
/// the interval is at least that of these frequencies alone. By chance one in ten windows has it.
const SLOW: (usize, f64) = (4, 2.0);
/// What a two-sided 95 % interval leaves out.
const OUTSIDE: f64 = 0.05;
/// What is less probable than the most probable by this factor plays no part.
const NEGLIGIBLE: f64 = 1e-5;
/// Halvings of the range that holds the end of the interval, of at most a factor of some 40.
const HALVINGS: u32 = 16;

/// Half the width of the two-sided 95 % interval of the sum of `values`: how much it would vary
/// from one such window to the next. The values, one for each of a window's parts of equal
/// length, are deviations from what is expected of each, so that their sum is 0. Absent with
/// fewer than [`PARTS_LEAST`].
///
/// The variance of the sum is the power of the values at zero frequency. Nothing is seen there, but
/// at the lowest frequencies (cosines with 1, 2, ... half periods in the window). If their power is
/// even, its mean is the best estimate. If neighbours are alike for long, power falls from a corner
/// on, as for correlation that decays exponentially, and the mean is too low. Which is the case is
/// seen only roughly. So the interval is that of the mixture of all these spectra, each with the
/// probability that it has after the powers are seen (their likelihood by Whittle 1953, Arkiv för
/// Matematik 2, with the scale integrated out). Given a spectrum, the sum has Student's t
/// distribution.
pub(crate) fn half_width_of_sum(values: &[f64]) -> Option<f64> {
    let parts = values.len();
    if parts < PARTS_LEAST {
        return None;
    }
    let powers = &lowest_powers(values)[..FREQUENCIES_MOST.min(parts / 2)];
    let total: f64 = powers.iter().sum();
    if total <= 0.0 {
        return Some(0.0);
    }
    let spectra = spectra(powers);
    let scales = spectra.iter().map(|it| it.scale);
    if !total.is_finite() || !scales.clone().all(f64::is_normal) {
        return None;
    }
    // The interval is as wide as with the narrowest and the widest of them, or between.
    let beyond = |half: f64| {
        let shares = spectra.iter().map(|it| {
            let share = share_beyond(half / it.scale, powers.len());
            it.probability * share
        });
        shares.sum::<f64>()
    };
    let mut low = scales.clone().fold(f64::INFINITY, f64::min);
    // Student's t with the fewest degrees of freedom ends at 2.31.
    let mut high = 2.5 * scales.fold(0.0, f64::max);
    for _ in 0..HALVINGS {
        let middle = (low * high).sqrt();
        if beyond(middle) > OUTSIDE {
            low = middle;
        } else {
            high = middle;
        }
    }
    let (count, times) = SLOW;
    let slow = powers[..count].iter().sum::<f64>() / count as f64;
    if slow > times * total / powers.len() as f64 {
        high = high.max(quantile_975(count) * slow.sqrt());
    }
    high.is_finite().then_some(high)
}

/// The power of `values` at each of the lowest frequencies: if it were the same everywhere, the
/// variance of their sum.
fn lowest_powers(values: &[f64]) -> [f64; FREQUENCIES_MOST] {
    let mut amplitudes = [0.0; FREQUENCIES_MOST];
    for (part, value) in values.iter().enumerate() {
        let cosine = (std::f64::consts::PI * (part as f64 + 0.5) / values.len() as f64).cos();
        // cos((k + 1) x) = 2 cos(x) cos(k x) - cos((k - 1) x)
        let (mut before, mut at) = (1.0, cosine);
        for amplitude in &mut amplitudes {
            *amplitude += value * at;
            (before, at) = (at, 2.0 * cosine * at - before);
        }
    }
    amplitudes.map(|amplitude| 2.0 * amplitude * amplitude)
}

/// What a spectrum says of the sum.
struct Spectrum {
    /// How probable it is.
    probability: f64,
    /// The standard deviation of the sum, as it is estimated with this spectrum.
    scale: f64,
}

/// The spectra that `powers`, not all of which are 0, leave probable.
fn spectra(powers: &[f64]) -> Vec<Spectrum> {
    let corners = CORNERS.iter().filter(|&&it| it <= powers.len() as f64 / 2.0);
    let shapes = corners.flat_map(|&corner| (0..DOUBLINGS).map(move |it| (corner, 2_f64.powi(it))));
    let each = (1.0 - EVEN) / shapes.clone().count() as f64;
    let shapes = shapes.map(|(corner, excess)| (each, corner, excess));
    let shapes = std::iter::once((EVEN, 1.0, 0.0)).chain(shapes);
    let count = powers.len() as f64;
    // The logarithm of the probability first, which may be out of the range of floats.
    let mut spectra: Vec<Spectrum> = shapes
        .map(|(before, corner, excess)| {
            let (mut logarithm, mut squares) = (0.0, 0.0);
            for (place, power) in powers.iter().enumerate() {
                let ratio = (place + 1) as f64 / corner;
                let height = 1.0 + excess / (1.0 + ratio * ratio);
                logarithm += height.ln();
                squares += power / height;
            }
            Spectrum {
                probability: before.ln() - 0.5 * (logarithm + count * squares.ln()),
                scale: ((1.0 + excess) * squares / count).sqrt(),
            }
        })
        .collect();
    let probabilities = spectra.iter().map(|it| it.probability);
    let most = probabilities.fold(f64::NEG_INFINITY, f64::max);
    for spectrum in &mut spectra {
        spectrum.probability = (spectrum.probability - most).exp();
    }
    spectra.retain(|it| it.probability > NEGLIGIBLE);
    let sum: f64 = spectra.iter().map(|it| it.probability).sum();
    for spectrum in &mut spectra {
        spectrum.probability /= sum;
    }
    spectra
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::noise::Noise;

    /// Deviations of `values` from their mean.
    fn deviations(values: &[f64]) -> Vec<f64> {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.iter().map(|value| value - mean).collect()
    }

    #[test]
    fn the_interval_of_a_sum_holds_it() {
        const RUNS: usize = 1_000;
        // (correlation of neighbours, parts, least and most mean width against the true one)
        for (correlation, parts, least, most) in [
            (0.0, 20, 1.1, 1.6),
            (0.0, 100, 1.0, 1.25),
            (0.5, 100, 1.0, 1.25),
            (0.8, 100, 1.1, 1.6),
            (-0.5, 100, 1.0, 1.5),
        ] {
            let mut noise = Noise::new(7);
            let (mut held, mut widths) = (0, 0.0);
            for _ in 0..RUNS {
                let mut level = noise.normal();
                let innovation = f64::sqrt(1.0 - correlation * correlation);
                let values: Vec<f64> = (0..parts)
                    .map(|_| {
                        level = correlation * level + innovation * noise.normal();
                        level
                    })
                    .collect();
                let sum: f64 = values.iter().sum();
                let half = half_width_of_sum(&deviations(&values)).expect("parts enough");
                held += usize::from(sum.abs() <= half);
                widths += half / RUNS as f64;
            }
            let long_run = (1.0 + correlation) / (1.0 - correlation);
            let width = widths / (1.96 * (parts as f64 * long_run).sqrt());
            let share = held as f64 / RUNS as f64;
            assert!(share >= 0.93, "{correlation} {parts}: {share}");
            assert!(
                least < width && width < most,
                "{correlation} {parts}: {width}"
            );
        }
    }

    #[test]
    fn a_step_and_a_slope_are_seen_and_even_values_have_no_width() {
        let even = vec![0.0; 100];
        assert_eq!(half_width_of_sum(&even), Some(0.0));
        let step: Vec<f64> = (0..100)
            .map(|part| if part < 50 { -1.0 } else { 1.0 })
            .collect();
        let slope: Vec<f64> = (0..100).map(|part| f64::from(part) / 49.5 - 1.0).collect();
        for values in [step, slope] {
            let half = half_width_of_sum(&values).expect("100 parts");
            assert!(half > 100.0 / 2.0, "{half}");
        }
        // By turns: the sum of any stretch is 0 or 1.
        let turns: Vec<f64> = (0..100).map(|part| f64::from(part % 2) - 0.5).collect();
        assert!(half_width_of_sum(&turns).expect("100 parts") < 3.0);
    }

    #[test]
    fn few_parts_say_nothing() {
        assert_eq!(half_width_of_sum(&[1.0; PARTS_LEAST - 1]), None);
        assert!(half_width_of_sum(&[1.0; PARTS_LEAST]).is_some());
        for value in [f64::NAN, f64::INFINITY, f64::MAX] {
            let mut values = [1.0; PARTS_LEAST];
            values[3] = value;
            assert_eq!(half_width_of_sum(&values), None, "{value}");
        }
    }
}
