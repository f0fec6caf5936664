//! What ab says of the times of its requests.

use std::fmt::Write;

const PERCENTILES: [u64; 9] = [50, 66, 75, 80, 90, 95, 98, 99, 100];

/// Times in order, microseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Times(Vec<u32>);

impl Times {
    /// Sorts `us`, which may be in any order.
    pub(super) fn of(mut us: Vec<u32>) -> Self {
        us.sort_unstable();
        Self(us)
    }

    /// How many there are.
    pub(super) fn total(&self) -> u64 {
        self.0.len() as u64
    }

    /// The one in this place from 0; the longest beyond the end.
    fn at(&self, place: u64) -> u64 {
        let place = place.min(self.total().saturating_sub(1));
        self.0.get(place as usize).copied().unwrap_or(0).into()
    }

    /// All together.
    pub(super) fn sum(&self) -> u64 {
        self.0.iter().copied().map(u64::from).sum()
    }

    /// The shortest and the longest.
    pub(super) fn range(&self) -> (u64, u64) {
        (self.at(0), self.longest())
    }

    fn longest(&self) -> u64 {
        self.at(u64::MAX)
    }

    fn row(&self) -> Row {
        let mean = self.sum() / self.total().max(1);
        let squares = self.0.iter().map(|&us| {
            let difference = f64::from(us) - mean as f64;
            difference * difference
        });
        let stdev = match self.total() {
            0 | 1 => 0.0,
            total => (squares.sum::<f64>() / (total - 1) as f64).sqrt(),
        };
        let half = self.total() / 2;
        let median = if self.total() > 1 && self.total() % 2 == 1 {
            (self.at(half) + self.at(half + 1)) / 2
        } else {
            self.at(half)
        };
        Row {
            min: ms(self.at(0)),
            mean: ms(mean),
            stdev: stdev / 1e3,
            median: ms(median),
            max: ms(self.longest()),
        }
    }
}

/// A row of the table, milliseconds.
#[derive(Clone, Copy, Debug)]
struct Row {
    min: u64,
    mean: u64,
    stdev: f64,
    median: u64,
    max: u64,
}

/// Whole milliseconds, rounded.
pub(super) fn ms(us: u64) -> u64 {
    us.saturating_add(500) / 1_000
}

/// The times of the rows of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ConnectionTimes {
    /// From the beginning of the request to the open connection; 0 where the connection was open
    /// already.
    pub(super) connect: Times,
    /// From the send of the request to the end of the reply.
    pub(super) processing: Times,
    /// From the send of the request to the first byte of the reply.
    pub(super) waiting: Times,
    /// From the beginning of the request to the end of the reply.
    pub(super) total: Times,
}

/// The table of connection times, and what is doubtful about it.
pub(super) fn table(times: &ConnectionTimes, confidence: bool, text: &mut String) {
    let rows = [
        (
            "Connect:",
            "the initial connection time",
            times.connect.row(),
        ),
        ("Processing:", "the processing time", times.processing.row()),
        ("Waiting:", "the waiting time", times.waiting.row()),
        ("Total:", "the total time", times.total.row()),
    ];
    text.push_str("\nConnection Times (ms)\n");
    // Writing to a string cannot fail.
    if !confidence {
        text.push_str("              min   avg   max\n");
        for (name, _, row) in rows {
            let _ = writeln!(text, "{name:<12}{:5} {:5}{:5}", row.min, row.mean, row.max);
        }
        return;
    }
    text.push_str("              min  mean[+/-sd] median   max\n");
    for (name, _, row) in rows {
        let _ = writeln!(
            text,
            "{name:<12}{:5} {:4} {:5.1} {:6} {:7}",
            row.min, row.mean, row.stdev, row.median, row.max
        );
    }
    for (_, what, row) in rows {
        let apart = row.mean.abs_diff(row.median) as f64;
        if apart > 2.0 * row.stdev {
            let _ = writeln!(
                text,
                "ERROR: The median and mean for {what} are more than twice the standard\n       \
                 deviation apart. These results are NOT reliable."
            );
        } else if apart > row.stdev {
            let _ = writeln!(
                text,
                "WARNING: The median and mean for {what} are not within a normal deviation\n\
                 {:8}These results are probably not that reliable.",
                ""
            );
        }
    }
}

/// The table of percentiles.
pub(super) fn percentiles(total: &Times, text: &mut String) {
    text.push_str("\nPercentage of the requests served within a certain time (ms)\n");
    for percent in PERCENTILES {
        let (us, end) = match percent {
            100 => (total.longest(), " (longest request)"),
            percent => (total.at(total.total() * percent / 100), ""),
        };
        let _ = writeln!(text, "{percent:4}%  {:5}{end}", ms(us));
    }
}

/// All percentiles, for `-e`.
pub(super) fn csv(total: &Times) -> String {
    let mut text = "Percentage served,Time in ms\n".to_owned();
    for percent in 0..=100_u32 {
        let us = match percent {
            0 => total.at(0),
            100 => total.longest(),
            percent => total.at((0.5 + total.total() as f64 * f64::from(percent) / 100.0) as u64),
        };
        let _ = writeln!(text, "{percent},{:.3}", us as f64 / 1e3);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(us: &[u32]) -> Times {
        Times::of(us.to_vec())
    }

    #[test]
    fn percentiles_are_abs() {
        let times = of(&(1..=20).map(|ms| ms * 1_000).collect::<Vec<_>>());
        let mut text = String::new();
        percentiles(&times, &mut text);
        let rows: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            rows,
            [
                "  50%     11",
                "  66%     14",
                "  75%     16",
                "  80%     17",
                "  90%     19",
                "  95%     20",
                "  98%     20",
                "  99%     20",
                " 100%     20 (longest request)",
            ]
        );
        let csv = csv(&times);
        let lines: Vec<&str> = csv.lines().collect();
        assert_eq!(
            (lines.len(), lines[1], lines[51]),
            (102, "0,1.000", "50,11.000")
        );
        assert_eq!((lines[99], lines[101]), ("98,20.000", "100,20.000"));
    }

    #[test]
    fn rows_are_abs() {
        let row = of(&[20_499, 20_500, 21_500]).row();
        assert_eq!((row.min, row.mean, row.median, row.max), (20, 21, 21, 22));
        let row = Times::default().row();
        assert_eq!(
            (row.min, row.mean, row.stdev, row.median, row.max),
            (0, 0, 0.0, 0, 0)
        );
    }

    #[test]
    fn doubtful_tables_say_so() {
        let mut text = String::new();
        let mut times = ConnectionTimes {
            processing: of(&[1_000, 1_000, 1_000, 9_000]),
            ..ConnectionTimes::default()
        };
        table(&times, true, &mut text);
        assert!(!text.contains("reliable"), "{text}");
        times.processing = Times::of([vec![1_000; 400], vec![2_000; 399]].concat());
        table(&times, true, &mut text);
        assert!(
            text.contains("WARNING: The median and mean for the processing"),
            "{text}"
        );
    }
}
