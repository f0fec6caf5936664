//! h2load's rows of times, as version 1.52 prints them, and as versions from 1.69 on do. Writing to
//! a string cannot fail.

use std::fmt::Write;

/// Durations in microseconds, or rates.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample(pub(super) Vec<f64>);

/// What is said of a sample; 0 throughout of none.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    min: f64,
    max: f64,
    mean: f64,
    stdev: f64,
    /// The share within one standard deviation of the mean, percent.
    within: f64,
}

impl Sample {
    fn row(&self) -> Row {
        let count = self.0.len() as f64;
        if self.0.is_empty() {
            return Row::default();
        }
        let mean = self.0.iter().sum::<f64>() / count;
        let squares: f64 = self.0.iter().map(|it| (it - mean).powi(2)).sum();
        let stdev = (squares / (count - 1.0).max(1.0)).sqrt();
        let within = self.0.iter().filter(|&it| (it - mean).abs() <= stdev);
        Row {
            min: self.0.iter().copied().fold(f64::INFINITY, f64::min),
            max: self.0.iter().copied().fold(0.0, f64::max),
            mean,
            stdev,
            within: within.count() as f64 * 100.0 / count,
        }
    }

    /// The median, and the values behind 95 and 99 % of the others; 0 of none.
    fn quantiles(&self) -> [f64; 3] {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let at = |place: usize| sorted.get(place).copied().unwrap_or(0.0);
        let half = sorted.len() / 2;
        let median = match sorted.len() {
            0 => 0.0,
            count if count.is_multiple_of(2) => (at(half - 1) + at(half)) / 2.0,
            _ => at(half),
        };
        let behind = |share: f64| at((sorted.len() as f64 * share) as usize);
        [median, behind(0.95), behind(0.99)]
    }
}

/// What took how long.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    pub(super) request: Sample,
    pub(super) connect: Sample,
    pub(super) first_byte: Sample,
    /// Requests per second of each client.
    pub(super) rate: Sample,
}

impl Times {
    /// The rows of version 1.52.
    pub(super) fn rows(&self) -> String {
        let mut text =
            "                     min         max         mean         sd        +/- sd\n"
                .to_owned();
        let mut print = |name: &str, sample: &Sample, shown: fn(f64) -> String| {
            let row = sample.row();
            let [min, max, mean, stdev] = [row.min, row.max, row.mean, row.stdev].map(shown);
            let within = row.within;
            let _ = writeln!(
                text,
                "{name} {min:>10}  {max:>10}  {mean:>10}  {stdev:>10}{within:9.2}%"
            );
        };
        print("time for request:", &self.request, duration);
        print("time for connect:", &self.connect, duration);
        print("time to 1st byte:", &self.first_byte, duration);
        print("req/s           :", &self.rate, rate);
        text
    }

    /// The rows of versions from 1.69 on.
    pub(super) fn newer_rows(&self) -> String {
        let mut text = "                 min         max         median      p95         \
                        p99         mean        sd         +/- sd\n"
            .to_owned();
        let mut print = |name: &str, sample: &Sample, shown: fn(f64) -> String| {
            let row = sample.row();
            let [min, max, mean, stdev] = [row.min, row.max, row.mean, row.stdev].map(shown);
            let [median, p95, p99] = sample.quantiles().map(shown);
            let within = row.within;
            let _ = writeln!(
                text,
                "{name:12}: {min:>10}  {max:>10}  {median:>10}  {p95:>10}  {p99:>10}  {mean:>10}  \
                 {stdev:>10}{within:9.2}%"
            );
        };
        print("request", &self.request, duration);
        print("connect", &self.connect, duration);
        print("TTFB", &self.first_byte, duration);
        print("req/s", &self.rate, rate);
        text
    }
}

fn rate(per_s: f64) -> String {
    format!("{per_s:.2}")
}

/// Microseconds as h2load prints them.
pub(super) fn duration(us: f64) -> String {
    if us >= 1e6 {
        format!("{:.2}s", us / 1e6)
    } else if us >= 1e3 {
        format!("{:.2}ms", us / 1e3)
    } else {
        format!("{us:.0}us")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_rows_have_quantiles() {
        let times = Times {
            // In an order that is not theirs.
            request: Sample((0..100).map(|number| f64::from(number * 7 % 100)).collect()),
            connect: Sample(vec![1_500.0]),
            first_byte: Sample::default(),
            rate: Sample(vec![30.0, 10.0, 20.0]),
        };
        let expected = [
            "                 min         max         median      p95         p99         mean    \
             \x20   sd         +/- sd",
            "request     :        0us        99us        50us        95us        99us        50us  \
             \x20     29us    58.00%",
            "connect     :     1.50ms      1.50ms      1.50ms      1.50ms      1.50ms      1.50ms  \
             \x20      0us   100.00%",
            "TTFB        :        0us         0us         0us         0us         0us         0us  \
             \x20      0us     0.00%",
            "req/s       :      10.00       30.00       20.00       30.00       30.00       20.00  \
             \x20    10.00   100.00%",
        ];
        let rows = times.newer_rows();
        assert_eq!(rows.lines().collect::<Vec<_>>(), expected, "{rows}");
    }
}
