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
    /// What the schedule asks for now; absent without one, and when it is over.
    pub planned_rate: Option<PlannedRate>,
    /// Arrivals that wait for a connection.
    pub waiting: u64,
    /// Failures of any scope so far.
    pub failures: u64,
}

/// The rate of a schedule.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlannedRate {
    /// Arrivals per second.
    pub per_s: f64,
    /// What arrives: `req/s` or `connections/s`.
    pub unit: &'static str,
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
    items.extend(
        progress
            .planned_rate
            .map(|planned| format!("plan {} {}", units::rate(planned.per_s), planned.unit)),
    );
    if progress.waiting > 0 {
        items.push(format!("{} waiting", units::count(progress.waiting)));
    }
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
            planned_rate: None,
            waiting: 0,
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
    fn a_schedule_is_named_with_what_waits_behind_it() {
        let progress = Progress {
            phase: "measure",
            elapsed_ns: 3_210_000_000,
            planned_ns: Some(10_000_000_000),
            live: 1_000,
            connections: 1_000,
            replies_per_s: Some(4_998.0),
            planned_rate: Some(PlannedRate {
                per_s: 5_000.0,
                unit: "req/s",
            }),
            waiting: 12_345,
            failures: 0,
        };
        assert_eq!(
            progress_line(&progress, 80),
            "measure 3.2 s of 10.0 s · 4,998 req/s · plan 5,000 req/s · 12,345 waiting"
        );
        let progress = Progress {
            replies_per_s: Some(52.1),
            planned_rate: Some(PlannedRate {
                per_s: 0.5,
                unit: "connections/s",
            }),
            waiting: 0,
            live: 5,
            connections: 10,
            ..progress
        };
        assert_eq!(
            progress_line(&progress, 100),
            "measure 3.2 s of 10.0 s · 52.1 req/s · plan 0.500 connections/s · 5 of 10 connections"
        );
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
            planned_rate: None,
            waiting: 0,
            failures: 0,
        };
        assert_eq!(
            progress_line(&progress, 80),
            "set-up 0.1 s · 0 of 1 connections"
        );
    }
}
