//! How far a run has come: the line that a terminal shows while it lasts, and a line of JSON for
//! programs.

use serde::{Serialize, Serializer};

use crate::{printable, units};

/// How far a run has come at one instant. Counts are of all phases so far; docs/reports.md
/// describes each field of its JSON.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RunProgress<'a> {
    /// What is going on: `set-up`, `ready`, `warm-up`, `measure`, `drain`, or an experiment's name.
    pub phase: &'a str,
    /// Time since the phase began, nanoseconds.
    #[serde(rename = "elapsed_s", serialize_with = "in_seconds")]
    pub elapsed_ns: u64,
    /// How long the phase is, where that is known.
    #[serde(rename = "length_s", serialize_with = "planned_seconds")]
    pub length: Option<PhaseLength>,
    /// Open connections.
    pub connections_open: u64,
    /// Connections that there may be.
    pub connections: u32,
    /// Replies that succeeded.
    pub successes: u64,
    /// Replies with an error status.
    pub errors: u64,
    /// Failures of requests and of attempts to connect.
    pub failures: u64,
    /// Recent successful replies per second; absent before there is an interval to divide by, and
    /// while nothing is sent.
    pub successes_per_s: Option<f64>,
    /// What `successes_per_s` counts: `req/s` or `msg/s`.
    #[serde(skip)]
    pub unit: &'a str,
    /// Recent bytes per second of streams, which have no replies; absent without streams.
    #[serde(skip)]
    pub bytes_per_s: Option<f64>,
    /// What the schedule asks for now; absent without one, and when it is over.
    #[serde(rename = "planned_per_s")]
    pub planned_rate: Option<PlannedRate>,
    /// Planned requests that wait for a connection.
    pub waiting: u64,
    /// Bytes read from sockets.
    pub bytes_received: u64,
    /// Bytes handed to the kernel.
    pub bytes_sent: u64,
    /// How far each agent of a fleet has come.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub agents: &'a [AgentProgress],
}

fn in_seconds<S: Serializer>(ns: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*ns as f64 / 1e9)
}

/// The length by plan, as far as there is one.
fn planned_seconds<S: Serializer>(
    length: &Option<PhaseLength>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match length {
        Some(PhaseLength::Planned(ns) | PhaseLength::About(ns)) => in_seconds(ns, serializer),
        Some(PhaseLength::AtMost(_)) | None => serializer.serialize_none(),
    }
}

/// How long a phase is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PhaseLength {
    /// The phase lasts as many nanoseconds as planned.
    Planned(u64),
    /// The phase ends by itself, and after so many nanoseconds in any case.
    AtMost(u64),
    /// About so many nanoseconds, as it looks now.
    About(u64),
}

impl PhaseLength {
    fn ns(self) -> u64 {
        match self {
            Self::Planned(ns) | Self::AtMost(ns) | Self::About(ns) => ns,
        }
    }
}

/// The rate of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct PlannedRate {
    /// Arrivals per second.
    pub per_s: f64,
    /// What arrives: `req/s`, `msg/s` or `connections/s`.
    #[serde(skip)]
    pub unit: &'static str,
}

/// `progress` in one line of at most `width` columns, without a newline. What does not fit is
/// left out, the least important first.
pub fn progress_line(progress: &RunProgress<'_>, width: u16) -> String {
    let elapsed = units::seconds(progress.elapsed_ns, 1);
    // What lasts longer than planned is said without the plan.
    let is_kept = |length: &PhaseLength| length.ns() >= progress.elapsed_ns;
    let length = match progress.length.filter(is_kept) {
        Some(PhaseLength::Planned(ns)) => format!(" of {}", units::seconds(ns, 1)),
        Some(PhaseLength::AtMost(ns)) => format!(" of at most {}", units::seconds(ns, 1)),
        Some(PhaseLength::About(ns)) => {
            let left_ns = ns.saturating_sub(progress.elapsed_ns);
            format!(", about {} left", units::seconds(left_ns, 0))
        }
        None => String::new(),
    };
    let asked = units::counted(progress.connections.into(), "connection", "connections");
    let connections = format!("{} of {asked}", units::count(progress.connections_open));
    let mut items = vec![format!("{} {elapsed}{length}", progress.phase)];
    if progress.successes_per_s.is_none() {
        // While nothing is sent, connections are what there is to wait for.
        items.push(connections.clone());
    }
    let (rate, planned) = (progress.successes_per_s, progress.planned_rate);
    items.extend(rate.map(|rate| format!("{} {}", units::rate(rate), progress.unit)));
    items.extend(
        progress
            .bytes_per_s
            .map(|rate| units::bits_per_s(rate * 8.0)),
    );
    items.extend(planned.map(|rate| format!("plan {} {}", units::rate(rate.per_s), rate.unit)));
    items.extend(counted(progress.errors, "error status", "error statuses"));
    items.extend(counted(progress.failures, "failure", "failures"));
    items.extend(counted(progress.waiting, "waiting", "waiting"));
    if progress.successes_per_s.is_some() {
        items.push(connections);
    }
    items.extend(counted(progress.agents.len() as u64, "agent", "agents"));
    loop {
        let line = items.join(" · ");
        let line = printable(&line);
        if line.chars().count() <= width.into() {
            return line.into_owned();
        }
        items.pop();
    }
}

/// So many of them, where there are some.
fn counted(count: u64, one: &str, many: &str) -> Option<String> {
    (count > 0).then(|| units::counted(count, one, many))
}

/// How far one of several agents has come.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgentProgress {
    /// What it is called.
    pub name: String,
    /// Name of its phase, `done`, `finished` or `failed`.
    pub phase: &'static str,
    /// Open connections.
    pub connections_open: u64,
    /// Replies that succeeded so far.
    pub successes: u64,
    /// Replies with an error status so far.
    pub errors: u64,
    /// Failures of any scope so far.
    pub failures: u64,
    /// Recent successful replies per second, where they are known.
    pub successes_per_s: Option<f64>,
}

/// `progress` as JSON on one line, without a newline.
///
/// # Errors
///
/// When a value has no JSON form.
pub fn progress_json(progress: &RunProgress<'_>) -> Result<String, serde_json::Error> {
    serde_json::to_string(progress)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the middle of a window of 10 s on 10 connections.
    const MEASURING: RunProgress<'_> = RunProgress {
        phase: "measure",
        elapsed_ns: 3_210_000_000,
        length: Some(PhaseLength::Planned(10_000_000_000)),
        connections_open: 10,
        connections: 10,
        successes: 12,
        errors: 0,
        failures: 0,
        successes_per_s: Some(155_310.4),
        unit: "req/s",
        bytes_per_s: None,
        planned_rate: None,
        waiting: 0,
        bytes_received: 100,
        bytes_sent: 50,
        agents: &[],
    };

    fn agent(name: &str) -> AgentProgress {
        AgentProgress {
            name: name.to_owned(),
            phase: "drain",
            connections_open: 4,
            successes: 7,
            errors: 0,
            failures: 1,
            successes_per_s: None,
        }
    }

    /// What a line says of a change of the progress.
    fn line_of(change: impl FnOnce(&mut RunProgress<'_>)) -> String {
        let mut progress = MEASURING;
        change(&mut progress);
        progress_line(&progress, 120)
    }

    #[test]
    fn a_line_tells_what_is_known_while_requests_are_sent() {
        const TIME: &str = "measure 3.2 s of 10.0 s";
        const OPEN: &str = "10 of 10 connections";
        let agents = [agent("one"), agent("two")];
        let progress = RunProgress {
            agents: &agents,
            ..MEASURING
        };
        let line = progress_line(&progress, 120);
        assert_eq!(line, format!("{TIME} · 155,310 req/s · {OPEN} · 2 agents"));
        // Streams have bits per second.
        let line = line_of(|of| {
            (of.successes_per_s, of.bytes_per_s) = (None, Some(125_000_000.0));
        });
        assert_eq!(line, format!("{TIME} · {OPEN} · 1.00 Gbit/s"));
        for (per_s, unit, waiting, words) in [
            (5_000.0, "req/s", 9, "plan 5,000 req/s · 9 waiting"),
            (0.5, "connections/s", 0, "plan 0.500 connections/s"),
        ] {
            let line = line_of(|of| {
                of.planned_rate = Some(PlannedRate { per_s, unit });
                of.waiting = waiting;
            });
            assert_eq!(line, format!("{TIME} · 155,310 req/s · {words} · {OPEN}"));
        }
        // Error statuses are no throughput.
        for (errors, words) in [(98_012, "98,012 error statuses"), (1, "1 error status")] {
            let line = line_of(|of| {
                (of.successes_per_s, of.errors, of.failures) = (Some(0.0), errors, 1);
            });
            assert_eq!(
                line,
                format!("{TIME} · 0 req/s · {words} · 1 failure · {OPEN}")
            );
        }
    }

    #[test]
    fn a_phase_has_its_length_where_that_is_known_and_not_over() {
        use PhaseLength::{About, AtMost, Planned};
        const S: u64 = 1_000_000_000;
        let at_most = Some(AtMost(30 * S));
        for (phase, elapsed_ns, length, words) in [
            ("set-up", 3 * S, at_most, "set-up 3.0 s of at most 30.0 s"),
            ("set-up", S / 20, None, "set-up 0.1 s"),
            (
                "drain",
                17 * S,
                Some(Planned(18 * S)),
                "drain 17.0 s of 18.0 s",
            ),
            ("drain", 19 * S, Some(Planned(18 * S)), "drain 19.0 s"),
            (
                "find",
                12 * S,
                Some(About(40 * S)),
                "find 12.0 s, about 28 s left",
            ),
        ] {
            let line = line_of(|of| {
                (of.phase, of.elapsed_ns, of.length) = (phase, elapsed_ns, length);
                // Connections come first while they are opened.
                (of.successes_per_s, of.failures) = (None, 2);
            });
            assert_eq!(line, format!("{words} · 10 of 10 connections · 2 failures"));
        }
    }

    #[test]
    fn the_line_keeps_to_its_width() {
        let progress = RunProgress {
            connections_open: 998,
            connections: 1_000,
            failures: 2,
            ..MEASURING
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
    fn a_record_is_one_line() {
        let mut progress = RunProgress {
            elapsed_ns: 1_500_000_000,
            length: Some(PhaseLength::AtMost(2_000_000_000)),
            successes_per_s: Some(8.0),
            ..MEASURING
        };
        assert_eq!(
            progress_json(&progress).expect("JSON"),
            "{\"phase\":\"measure\",\"elapsed_s\":1.5,\"length_s\":null,\"connections_open\":10,\
             \"connections\":10,\"successes\":12,\"errors\":0,\"failures\":0,\
             \"successes_per_s\":8.0,\"planned_per_s\":null,\"waiting\":0,\"bytes_received\":100,\
             \"bytes_sent\":50}"
        );
        let agents = [agent("east\n")];
        progress.agents = &agents;
        progress.length = Some(PhaseLength::Planned(2_000_000_000));
        progress.planned_rate = Some(PlannedRate {
            per_s: 0.5,
            unit: "req/s",
        });
        let line = progress_json(&progress).expect("JSON");
        for part in ["\"length_s\":2.0,", "\"planned_per_s\":0.5,"] {
            assert!(line.contains(part), "{line}");
        }
        let rows = "\"bytes_sent\":50,\"agents\":[{\"name\":\"east\\n\",\"phase\":\"drain\",\
                    \"connections_open\":4,\"successes\":7,\"errors\":0,\"failures\":1,\
                    \"successes_per_s\":null}]}";
        assert!(line.ends_with(rows), "{line}");
    }

    #[test]
    fn every_field_is_described() {
        let docs = include_str!("../../../docs/reports.md");
        let agents = &[agent("one")];
        let progress = RunProgress {
            agents,
            ..MEASURING
        };
        let fields = serde_json::to_value(progress).expect("JSON");
        let fields = fields.as_object().expect("an object");
        assert_eq!(fields.len(), 14, "{fields:?}");
        for name in fields.keys() {
            assert!(docs.contains(&format!("| `{name}` |")), "{name}");
        }
    }
}
