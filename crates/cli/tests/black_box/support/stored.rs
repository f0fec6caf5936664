//! A directory for the files of a test, and what it looks for in stored runs.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use super::run::EXACT;

/// The directory, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Stored {
    directory: TempDir,
}

impl Stored {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    /// Where the file of this name is.
    pub(crate) fn place(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The same as text.
    pub(crate) fn path(&self, name: &str) -> String {
        self.place(name).display().to_string()
    }

    /// Writes a file of this name, and gives its path.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        std::fs::write(self.place(name), text).expect("the directory is ours");
        self.path(name)
    }

    /// The text in the file of this name.
    #[track_caller]
    pub(crate) fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.place(name)).expect("it was written")
    }

    /// The run in the file of this name.
    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> Value {
        serde_json::from_str(&self.text(name)).expect("JSON")
    }

    /// The run in `run.json`, whose requests are those that a server counted.
    #[track_caller]
    pub(crate) fn counted(&self, requests: u64) -> Value {
        let run = self.read("run.json");
        assert_exact(&run);
        assert_eq!(number(&run, "/summary/all_phases/sent"), requests);
        run
    }
}

pub(crate) fn number(run: &Value, pointer: &str) -> u64 {
    let value = run.pointer(pointer);
    value
        .and_then(Value::as_u64)
        .unwrap_or_else(|| panic!("no number at {pointer}, but {value:?}"))
}

/// Whether nothing is broken that does not depend on how busy the machine is.
pub(crate) fn assert_exact(run: &Value) {
    let broken = run["summary"]["broken"].as_array().expect("a list");
    let is_exact = |id: &Value| id == "F2" || id.as_str().is_some_and(|id| EXACT.contains(&id));
    assert!(!broken.iter().any(is_exact), "{broken:?}");
}

/// The requests that a run sent, by their names.
pub(crate) fn sent_by_name(run: &Value) -> BTreeMap<String, u64> {
    let names = run["names"].as_array().expect("a list").iter();
    let named = names.map(|name| {
        let text = name["name"].as_str().expect("a name");
        (text.to_owned(), number(name, "/requests_sent"))
    });
    named.collect()
}

/// The names of the agents of a run, in order.
pub(crate) fn agent_names(run: &Value) -> Vec<&str> {
    let agents = run["agents"].as_array().expect("a list").iter();
    let names = agents.filter_map(|agent| agent["fleet"]["name"].as_str());
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names
}
