//! The line that a terminal shows while a run is under way.

use crate::units;

/// What is known while a run is under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// Name of the phase, such as `warm-up`.
    pub phase: &'a str,
    /// Time since the phase began, nanoseconds.
    pub elapsed_ns: u64,
    /// Length of the phase, nanoseconds, where it has one.
    pub planned_ns: Option<u64>,
    /// Open connections.
    pub live: u32,
    /// Connections asked for.
    pub connections: u32,
    /// Replies per second lately; absent before there is an interval to divide by.
    pub replies_per_s: Option<f64>,
    /// Failures of any scope so far.
    pub failures: u64,
}

/// `progress` in one line of at most `width` columns, without a newline. What does not fit is
/// left out, the least important first.
pub fn progress_line(progress: &Progress<'_>, width: u16) -> String {
    let elapsed = units::seconds(progress.elapsed_ns, 1);
    let mut items = vec![match progress.planned_ns {
        Some(planned_ns) => {
            format!(
                "{} {elapsed} of {}",
                progress.phase,
                units::seconds(planned_ns, 1)
            )
        }
        None => format!("{} {elapsed}", progress.phase),
    }];
    items.extend(
        progress
            .replies_per_s
            .map(|rate| format!("{} req/s", units::rate(rate))),
    );
    if progress.failures > 0 {
        let plural = if progress.failures == 1 { "" } else { "s" };
        items.push(format!(
            "{} failure{plural}",
            units::count(progress.failures)
        ));
    }
    items.push(format!(
        "{} of {} connections",
        units::count(progress.live.into()),
        units::count(progress.connections.into()),
    ));
    loop {
        let line = items.join(" · ");
        if line.chars().count() <= width.into() {
            return line;
        }
        items.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_keeps_to_its_width() {
        let progress = Progress {
            phase: "measure",
            elapsed_ns: 3_210_000_000,
            planned_ns: Some(10_000_000_000),
            live: 998,
            connections: 1_000,
            replies_per_s: Some(155_310.4),
            failures: 2,
        };
        let whole =
            "measure 3.2 s of 10.0 s · 155,310 req/s · 2 failures · 998 of 1,000 connections";
        for (width, line) in [
            (80, whole),
            (79, whole),
            (78, "measure 3.2 s of 10.0 s · 155,310 req/s · 2 failures"),
            (40, "measure 3.2 s of 10.0 s · 155,310 req/s"),
            (30, "measure 3.2 s of 10.0 s"),
            (0, ""),
        ] {
            assert_eq!(progress_line(&progress, width), line, "{width} columns");
        }
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let progress = Progress {
            phase: "set-up",
            elapsed_ns: 50_000_000,
            planned_ns: None,
            live: 0,
            connections: 1,
            replies_per_s: None,
            failures: 0,
        };
        assert_eq!(
            progress_line(&progress, 80),
            "set-up 0.1 s · 0 of 1 connections"
        );
    }
}
