//! How far a sum over a window may be off, where neighbours in time are alike: from how it varies
//! at the lowest frequencies that the window holds.

use crate::statistics::student_t::quantile_975;

/// Fewer parts of a window than this do not tell how much a figure varies.
pub(crate) const PARTS_LEAST: usize = 16;
/// How many of the lowest frequencies are averaged. More of them are surer of their mean, which
/// narrows the interval by 4 % with 12 and by 6 % with 16; but they miss variation that lasts for a
/// fiftieth of the window.
const FREQUENCIES: usize = 8;
/// How many are averaged where power falls from frequency to frequency: the values vary as slowly
/// as the window can show, perhaps in a step or a slope.
const FREQUENCIES_FALLING: usize = 4;
/// Power falls where the mean of those is so many times as high as the mean of the others that are
/// looked at. By chance one in 20 windows has it (the 0.95-quantile of Fisher's F with 4 and 28
/// degrees of freedom).
const FALLING: f64 = 2.71;
const FREQUENCIES_SEEN: usize = 32;

/// Half the width of the two-sided 95 % interval of the sum of `values`: how much it would vary
/// from one such window to the next. The values, one for each of a window's parts of equal
/// length, are deviations from what is expected of each, so that their sum is 0. Absent with
/// fewer than [`PARTS_LEAST`].
///
/// The variance of the sum is the power of the values at zero frequency. Nothing is seen there, so
/// it is estimated by the mean over the lowest frequencies, of cosines with 1, 2, ... half periods
/// in the window. With as many degrees of freedom as there are frequencies, the sum has Student's t
/// distribution.
pub(crate) fn half_width_of_sum(values: &[f64]) -> Option<f64> {
    if values.len() < PARTS_LEAST {
        return None;
    }
    let powers = lowest_powers(values);
    let (lowest, above) =
        powers[..FREQUENCIES_SEEN.min(values.len() - 1)].split_at(FREQUENCIES_FALLING);
    let count = if mean(lowest) > FALLING * mean(above) {
        FREQUENCIES_FALLING
    } else {
        FREQUENCIES
    };
    let half = quantile_975(count) * mean(&powers[..count]).sqrt();
    half.is_finite().then_some(half)
}

fn mean(powers: &[f64]) -> f64 {
    powers.iter().sum::<f64>() / powers.len() as f64
}

/// The power of `values` at each of the lowest frequencies: if it were the same everywhere, the
/// variance of their sum.
fn lowest_powers(values: &[f64]) -> [f64; FREQUENCIES_SEEN] {
    let mut amplitudes = [0.0; FREQUENCIES_SEEN];
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
            (0.0, 20, 1.05, 1.25),
            (0.0, 100, 1.05, 1.25),
            (0.5, 100, 1.05, 1.25),
            (0.8, 100, 0.95, 1.25),
            (-0.5, 100, 1.05, 1.35),
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
