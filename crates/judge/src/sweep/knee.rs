//! Where a curve bends: the point beyond which more costs much and gives little.
//!
//! The method is Kneedle (Satopää, Albrecht, Irwin, Raghavan: Finding a "Kneedle" in a Haystack,
//! ICDCS Workshops 2011) on all points at once: both axes are scaled to 0 to 1, and the knee is
//! where the curve is farthest from the straight line between its ends. Of a curve that grows ever
//! more slowly, as throughput over connections, that is above the line; of one that grows ever
//! faster, as response times over the rate, below it.

/// Fewest points of which a bend can be told.
const POINTS_LEAST: usize = 5;
/// A curve that stays nearer to the straight line than this, of scaled axes, has no knee.
const DISTANCE_LEAST: f64 = 0.1;

/// How a curve bends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bend {
    /// The curve grows ever more slowly.
    Flattens,
    /// The curve grows ever faster.
    Steepens,
}

/// The place of the knee among `points` (x ascending, and y), from 0. Absent where there is none,
/// or with too few points.
pub fn knee(points: &[(f64, f64)], bend: Bend) -> Option<usize> {
    let ends = |of: fn(&(f64, f64)) -> f64| {
        let values = || points.iter().map(of);
        let least = values().reduce(f64::min)?;
        let most = values().reduce(f64::max)?;
        let length = most - least;
        (length.is_finite() && length > 0.0).then_some((least, length))
    };
    if points.len() < POINTS_LEAST {
        return None;
    }
    let (x_least, x_length) = ends(|point| point.0)?;
    let (y_least, y_length) = ends(|point| point.1)?;
    let mut best: Option<(usize, f64)> = None;
    for (place, (x, y)) in points.iter().enumerate() {
        let above = (y - y_least) / y_length - (x - x_least) / x_length;
        let distance = match bend {
            Bend::Flattens => above,
            Bend::Steepens => -above,
        };
        if best.is_none_or(|(_, most)| distance > most) {
            best = Some((place, distance));
        }
    }
    let (place, distance) = best?;
    let is_within = place > 0 && place + 1 < points.len();
    (distance >= DISTANCE_LEAST && is_within).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(x: &[f64], y: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        x.iter().map(|&x| (x, y(x))).collect()
    }

    #[test]
    fn saturation_is_a_knee() {
        let x: Vec<f64> = (1..=100).map(f64::from).collect();
        // A server with 20 places: its rate follows the connections, then no more.
        let points = curve(&x, |x| x.min(20.0) * 1_000.0);
        assert_eq!(knee(&points, Bend::Flattens), Some(19));
        // It declines behind it.
        let points = curve(&x, |x| x.min(20.0) * 1_000.0 - 10.0 * x);
        assert_eq!(knee(&points, Bend::Flattens), Some(19));
        // Kneedle's own example: y = 5 - 1/x over 0.1 to 1 has its knee near 0.32 (the largest
        // distance of -1/x from the line: x = 1/sqrt(10)).
        let x: Vec<f64> = (10..=100).map(|x| f64::from(x) / 100.0).collect();
        let points = curve(&x, |x| 5.0 - 1.0 / x);
        let place = knee(&points, Bend::Flattens).expect("a knee");
        assert!(
            (points[place].0 - 0.316).abs() < 0.01,
            "{:?}",
            points[place]
        );
    }

    #[test]
    fn response_times_bend_the_other_way() {
        let x: Vec<f64> = (1..100).map(f64::from).collect();
        let points = curve(&x, |x| 1.0 / (100.0 - x));
        let place = knee(&points, Bend::Steepens).expect("a knee");
        assert!((85.0..95.0).contains(&points[place].0), "{place}");
        assert_eq!(knee(&points, Bend::Flattens), None);
    }

    #[test]
    fn straight_short_and_flat_curves_have_none() {
        let x: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(knee(&curve(&x, |x| 3.0 * x), Bend::Flattens), None);
        assert_eq!(knee(&curve(&x, |_| 3.0), Bend::Flattens), None);
        assert_eq!(knee(&curve(&x[..4], |x| x.min(2.0)), Bend::Flattens), None);
        assert_eq!(knee(&[], Bend::Flattens), None);
    }
}
