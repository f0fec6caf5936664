//! How far a run has come, as a line of JSON: for programs that show it.

use serde::Serialize;

use crate::progress::AgentProgress;

/// How far a run has come at one instant. Counts are of all phases so far; docs/reports.md
/// describes each field.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProgressRecord<'a> {
    /// What is going on: `set-up`, `ready`, `warm-up`, `measure`, `drain`, or an experiment's name.
    pub phase: &'static str,
    /// How long the phase has lasted, seconds.
    pub elapsed_s: f64,
    /// Length of the phase by plan, seconds; null where that is not known.
    pub length_s: Option<f64>,
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
    /// Successes per second since the line before; null where that is not known yet.
    pub successes_per_s: Option<f64>,
    /// Planned per second now; null without a schedule.
    pub planned_per_s: Option<f64>,
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

/// `record` on one line, without a newline.
///
/// # Errors
///
/// When a value has no JSON form.
pub fn progress_json(record: &ProgressRecord<'_>) -> Result<String, serde_json::Error> {
    serde_json::to_string(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line() {
        let mut record = ProgressRecord {
            phase: "measure",
            elapsed_s: 1.5,
            length_s: None,
            connections_open: 8,
            connections: 8,
            successes: 12,
            errors: 0,
            failures: 1,
            successes_per_s: Some(8.0),
            planned_per_s: None,
            waiting: 0,
            bytes_received: 100,
            bytes_sent: 50,
            agents: &[],
        };
        assert_eq!(
            progress_json(&record).expect("JSON"),
            "{\"phase\":\"measure\",\"elapsed_s\":1.5,\"length_s\":null,\"connections_open\":8,\
             \"connections\":8,\"successes\":12,\"errors\":0,\"failures\":1,\
             \"successes_per_s\":8.0,\"planned_per_s\":null,\"waiting\":0,\"bytes_received\":100,\
             \"bytes_sent\":50}"
        );
        let agents = [AgentProgress {
            name: "east\n".to_owned(),
            phase: "drain",
            connections_open: 4,
            successes: 7,
            errors: 0,
            failures: 1,
            successes_per_s: None,
        }];
        record.agents = &agents;
        let line = progress_json(&record).expect("JSON");
        let rows = "\"bytes_sent\":50,\"agents\":[{\"name\":\"east\\n\",\"phase\":\"drain\",\
                    \"connections_open\":4,\"successes\":7,\"errors\":0,\"failures\":1,\
                    \"successes_per_s\":null}]}";
        assert!(line.ends_with(rows), "{line}");
    }

    #[test]
    fn every_field_is_described() {
        let docs = include_str!("../../../docs/reports.md");
        let source = include_str!("progress_json.rs");
        let fields = source.lines().take_while(|line| *line != "}");
        let fields = fields.filter_map(|line| line.trim().strip_prefix("pub ")?.split_once(':'));
        let names: Vec<&str> = fields.map(|(name, _)| name).collect();
        assert_eq!(names.len(), 14, "{names:?}");
        for name in names {
            assert!(docs.contains(&format!("| `{name}` |")), "{name}");
        }
    }
}
